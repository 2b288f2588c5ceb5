//! A build without tensors: it has no programs as data.

use crate::refusal::Refusal;
use anyhow::Result;
use std::path::Path;

/// Refuses programs.
///
/// # Errors
/// Always `NoTensors`.
pub fn run(_: Option<&Path>) -> Result<()> {
    Err(Refusal::NoTensors.into())
}

/// Refuses to list operations.
///
/// # Errors
/// Always `NoTensors`.
pub fn list() -> Result<()> {
    Err(Refusal::NoTensors.into())
}
