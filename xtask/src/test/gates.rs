//! The gates that cost seconds: format, tidy, and commit subjects. They come before the build, so that a
//! comment's width is not refused after half an hour.

use super::processes::Run;
use super::workspace::{LIBRARY, Package};
use crate::commits::Range;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Stdio;

/// The test programs of this package that are gates.
const GATES: &[&str] = &[LIBRARY, "ci", "runs", "shared_target", "tidy"];

/// Fails at the first gate that is not passed, or is none any more.
pub fn check(root: &Path, packages: &[Package], run: &Run) -> Result<()> {
    let left_out = left_out(packages);
    if !left_out.is_empty() {
        bail!("cargo does not run these tests of xtask: {}", left_out.join(", "));
    }
    crate::format::run(true)?;
    crate::commits::check(root, Range::New)?;
    cargo(root, run, &["test", "--quiet", "--package", "xtask"])
}

/// The gates that cargo would not run.
fn left_out(packages: &[Package]) -> Vec<&'static str> {
    let xtask = packages.iter().find(|package| package.folder == "xtask");
    let has = |gate: &&str| xtask.is_some_and(|package| package.tests.contains(*gate));
    GATES.iter().copied().filter(|gate| !has(gate)).collect()
}

/// Runs cargo in the root of the workspace; its output goes to ours.
fn cargo(root: &Path, run: &Run, words: &[&str]) -> Result<()> {
    let mut cargo = crate::cargo();
    cargo.args(words).current_dir(root).stdin(Stdio::null());
    let job = run.start(&mut cargo).with_context(|| format!("cannot start cargo {}", words.join(" ")))?;
    if !job.wait().context("cargo was lost")?.success() {
        bail!("cargo {} failed", words.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::left_out;
    use crate::test::workspace::Workspace;

    #[test]
    fn a_gate_that_cargo_would_not_run_is_found() {
        let mut packages = Workspace::read(&crate::root()).unwrap().packages;
        assert!(left_out(&packages).is_empty());
        for package in &mut packages {
            package.tests.remove("tidy");
        }
        assert_eq!(left_out(&packages), ["tidy"]);
        assert!(left_out(&[]).contains(&"lib"));
    }
}
