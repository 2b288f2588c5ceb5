//! Spill directories as they are said: `PATH` or `PATH:QUOTA`, several with commas, or `none`.

use super::parse;
use std::path::PathBuf;

/// Says that nothing is spilled.
const NONE: &str = "none";

/// One directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillDir {
    /// Path of the directory.
    pub path: PathBuf,
    /// Quota of the directory, if one was given.
    pub quota_bytes: Option<u64>,
}

/// Reads a list of directories.
pub fn dirs(text: &str) -> Result<Vec<SpillDir>, String> {
    if text == NONE {
        return Ok(Vec::new());
    }
    text.split(',').map(dir).collect()
}

/// Takes each directory once, by whatever path it is named; also answers the paths that name one again.
pub fn once(dirs: Vec<SpillDir>) -> Result<(Vec<SpillDir>, Vec<PathBuf>), String> {
    let place = |dir: &SpillDir| std::fs::canonicalize(&dir.path).unwrap_or_else(|_| dir.path.clone());
    let (mut taken, mut again): (Vec<SpillDir>, _) = (Vec::new(), Vec::new());
    for dir in dirs {
        let Some(first) = taken.iter_mut().find(|first| place(first) == place(&dir)) else {
            taken.push(dir);
            continue;
        };
        match (first.quota_bytes, dir.quota_bytes) {
            (Some(one), Some(other)) if one != other => {
                let shown = dir.path.display();
                return Err(format!("{shown} is named twice, with quotas of {one} and of {other} bytes"));
            }
            (one, other) => first.quota_bytes = one.or(other),
        }
        again.push(dir.path);
    }
    Ok((taken, again))
}

/// The text after the last colon is a quota if it begins like a number: paths may contain colons.
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
    fn a_directory_that_is_named_twice_is_taken_once() {
        let taken = |text| once(dirs(text).unwrap());
        let (all, again) = taken("/a/b,/c,/a/b/:1GB").unwrap();
        assert_eq!(all, dirs("/a/b:1GB,/c").unwrap());
        assert_eq!(again, [PathBuf::from("/a/b/")]);
        assert!(taken("/a,/b").unwrap().1.is_empty());
        // The same by another name.
        let (all, again) = taken("/proc/self,/proc/self/../self").unwrap();
        assert_eq!((all.len(), again.len()), (1, 1));
        let problem = taken("/a:1GB,/a:2GB").unwrap_err();
        assert!(problem.contains("1000000000") && problem.contains("2000000000"), "{problem}");
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
        ] {
            let problem = dirs(text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
