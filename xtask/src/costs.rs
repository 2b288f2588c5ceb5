//! The ledger of costs, `benches/costs.toml`, which the package `tests/costs` counts and compares with.

use crate::cargo;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// Counts all costs and writes the ledger.
///
/// # Errors
/// If something cannot be counted: there is no valgrind, or a script fails.
pub fn write(root: &Path) -> Result<()> {
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind {
        bail!("valgrind counts the costs and is not installed");
    }
    let status = cargo()
        .args(["test", "--quiet", "--package", "tharsis-costs", "--test", "ledger"])
        .env("UPDATE_COSTS", "1")
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the costs were not counted");
    }
    Ok(())
}
