//! Counts of one run: valgrind's callgrind, and the file that it writes.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Instructions of the counted part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In all.
    pub total: u64,
    /// The part of these outside of the program: the C library allocates and copies.
    pub of_libraries: u64,
    /// In each function itself, without what it calls.
    pub functions: BTreeMap<String, u64>,
}

/// The version of valgrind; `None` without one.
#[must_use]
pub fn version() -> Option<String> {
    let output = Command::new("valgrind").arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Counts a run of `program` with a script and a number of units. The profile is written into `folder`.
///
/// # Errors
/// If valgrind or the program fails, or counts nothing.
pub fn count(program: &Path, script: &str, units: u64, folder: &Path) -> Result<Counts> {
    let file = folder.join(format!("{script}-{units}.out"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"])
        .args(["--collect-atstart=no", "--toggle-collect=*counted_part*"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args([script, &units.to_string()])
        // Nothing of the caller's that the program or its libraries could read.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .context("cannot start valgrind")?;
    if !output.status.success() {
        bail!("{script} fails under valgrind: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = std::fs::read_to_string(&file).with_context(|| format!("no profile {}", file.display()))?;
    let counts = parse(&text, program)?;
    if counts.total == counts.of_libraries {
        bail!("no instruction of {script} was counted");
    }
    Ok(counts)
}

/// Reads a profile of a program.
///
/// # Errors
/// If a line is not what callgrind writes.
pub fn parse(text: &str, program: &Path) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut function = None;
    let mut is_of_library = false;
    // The line behind a call has the cost of what was called, which is counted there.
    let mut is_of_call = false;
    for line in text.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_of_library = Path::new(object).file_name() != program.file_name();
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = Some(plain(name));
        } else if line.starts_with("calls=") {
            is_of_call = true;
        } else if line
            .starts_with(|first: char| first.is_ascii_digit() || first == '+' || first == '-' || first == '*')
        {
            if std::mem::take(&mut is_of_call) {
                continue;
            }
            // A place without costs has no second number.
            let Some(cost) = line.split(' ').nth(1) else { continue };
            let cost: u64 = cost.parse().with_context(|| format!("a line of costs is {line}"))?;
            let function = function.as_ref().context("costs come before the first function")?;
            *counts.functions.entry(function.clone()).or_default() += cost;
            counts.total += cost;
            counts.of_libraries += if is_of_library { cost } else { 0 };
        }
    }
    Ok(counts)
}

/// The name of a function without what differs between builds, or between calls of itself.
fn plain(name: &str) -> String {
    let name = name.split_once('\'').map_or(name, |(name, _)| name);
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()) => {
            path.to_owned()
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_where_they_go() {
        let text = "version: 1\nevents: Ir\n\nob=/t/costs\nfl=a.rs\nfn=a::outer::h0123456789abcdef\n10 5\n11 2\n\
                    cob=/lib/libc.so.6\ncfn=b::inner\ncalls=3 40\n11 900\nfi=c.rs\n7 1\n\nob=/lib/libc.so.6\n\
                    fl=b.rs\nfn=b::inner'2\n40 600\nfn=b::inner\n40 300\ntotals: 908\n";
        let counts = parse(text, Path::new("/elsewhere/costs")).unwrap();
        assert_eq!((counts.total, counts.of_libraries), (908, 900));
        let functions = [("a::outer".to_owned(), 8), ("b::inner".to_owned(), 900)];
        assert_eq!(counts.functions, functions.into_iter().collect());
    }

    #[test]
    fn costs_without_a_function_are_an_error() {
        let program = Path::new("costs");
        assert!(parse("10 5\n", program).is_err());
        assert!(parse("fn=a\n10 x\n", program).is_err());
    }
}
