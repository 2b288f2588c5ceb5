//! Spill directories as they are said: `PATH` or `PATH:QUOTA`, several with commas, or `none`.

use super::parse;
use std::path::PathBuf;

/// Says that nothing is spilled.
const NONE: &str = "none";

/// One directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillDir {
    /// Where.
    pub path: PathBuf,
    /// How much it may hold, if that was said.
    pub quota_bytes: Option<u64>,
}

/// Reads a list of directories.
pub fn dirs(text: &str) -> Result<Vec<SpillDir>, String> {
    if text == NONE {
        return Ok(Vec::new());
    }
    let dirs: Vec<_> = text.split(',').map(dir).collect::<Result<_, _>>()?;
    let twice = |(at, dir): (usize, &SpillDir)| dirs[..at].iter().any(|other| other.path == dir.path);
    match dirs.iter().enumerate().any(twice) {
        true => Err("a directory is named twice".to_owned()),
        false => Ok(dirs),
    }
}

/// What follows the last colon is a quota if it begins like a number: paths may have colons.
fn dir(text: &str) -> Result<SpillDir, String> {
    let (path, quota) = match text.rsplit_once(':') {
        Some((path, quota)) if quota.starts_with(|c: char| c.is_ascii_digit()) => (path, Some(quota)),
        _ => (text, None),
    };
    if path.is_empty() {
        return Err("expected PATH or PATH:QUOTA, several with commas, or none".to_owned());
    }
    Ok(SpillDir { path: PathBuf::from(path), quota_bytes: quota.map(quota_size).transpose()? })
}

fn quota_size(text: &str) -> Result<u64, String> {
    let bytes = parse::size(text)?;
    let min = tharsis::spill_dirs::QUOTA_BYTES_MIN;
    if bytes < min { Err(format!("the smallest quota is {min} bytes")) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_have_quotas_if_that_is_said() {
        let dir = |path: &str, quota_bytes| SpillDir { path: PathBuf::from(path), quota_bytes };
        assert_eq!(dirs("/a"), Ok(vec![dir("/a", None)]));
        assert_eq!(dirs("/a:4GB,b"), Ok(vec![dir("/a", Some(4_000_000_000)), dir("b", None)]));
        assert_eq!(dirs("/a:b:100MiB"), Ok(vec![dir("/a:b", Some(100 << 20))]));
        assert_eq!(dirs("/a:b"), Ok(vec![dir("/a:b", None)]));
        assert_eq!(dirs("none"), Ok(vec![]));
    }

    #[test]
    fn what_is_none_is_told_why() {
        for (text, part) in [
            ("", "PATH:QUOTA"),
            ("/a,,/b", "PATH:QUOTA"),
            (":1GB", "PATH:QUOTA"),
            ("/a:4x", "KiB"),
            ("/a:1KiB", "67108864"),
            ("/a:99999999999TiB", "out of range"),
            ("/a,/a:1GB", "twice"),
        ] {
            let problem = dirs(text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
