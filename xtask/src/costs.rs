//! The ledger of costs, `benches/costs.toml`, which the package `tests/costs` counts and compares with.

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
    // By what compares: the compiler that lints optimises less, and cargo cuts crates for builds in parts.
    let status = Command::new("/proc/self/exe")
        .args(["test", "tests/costs"])
        .env("UPDATE_COSTS", "1")
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(root)
        .status()
        .context("cannot start the tests")?;
    if !status.success() {
        bail!("the costs were not counted");
    }
    Ok(())
}
