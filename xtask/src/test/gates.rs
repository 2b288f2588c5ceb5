//! The gates that cost seconds: format, tidy, and commit subjects. They come before the build, so that a
//! comment's width is not refused after half an hour.

use super::processes::Run;
use crate::commits::Range;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Stdio;

/// Fails at the first gate that is not passed.
pub fn check(root: &Path, run: &Run) -> Result<()> {
    crate::format::run(true)?;
    crate::commits::check(root, Range::New)?;
    cargo(root, run, &["test", "--quiet", "--package", "xtask"])
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
