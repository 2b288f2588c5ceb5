//! The gates that cost seconds: format, tidy, and commit subjects. They come before the build, so that a
//! comment's width is not refused after half an hour.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// Fails at the first gate that is not passed.
pub fn check(root: &Path) -> Result<()> {
    crate::format::run(true)?;
    crate::commits::check(root, None)?;
    cargo(root, &["test", "--quiet", "--package", "xtask"])
}

/// Runs cargo in the root of the workspace; its output goes to ours.
fn cargo(root: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new(crate::cargo_program())
        .args(words)
        .current_dir(root)
        .status()
        .with_context(|| format!("cannot start cargo {}", words.join(" ")))?;
    if !status.success() {
        bail!("cargo {} failed", words.join(" "));
    }
    Ok(())
}
