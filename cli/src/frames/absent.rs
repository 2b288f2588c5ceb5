//! A build without frames: it answers nothing about them.

use crate::args::SqlArgs;
#[cfg(feature = "tensors")]
use crate::commands::Started;
use crate::refusal::Refusal;
use anyhow::Result;
#[cfg(feature = "tensors")]
use {serde_json::Value as Json, std::path::Path};

/// Variables of frames: none is known to this build.
pub const STORAGE_VARIABLES: [&str; 0] = [];

/// Refuses a query.
///
/// # Errors
/// Always `NoFrames`.
pub fn query(_: &SqlArgs) -> Result<()> {
    Err(Refusal::NoFrames.into())
}

/// Refuses statements of SQL.
///
/// # Errors
/// Always `NoFrames`.
pub fn statements() -> Result<()> {
    Err(Refusal::NoFrames.into())
}

/// The reply to a program about frames. No program is: the evaluator of tensors does not know the operations.
#[cfg(feature = "tensors")]
pub fn answer(_: &Json, _: &Path, _: &Started) -> Option<Json> {
    None
}

/// Adds a line per operation: none.
///
/// # Errors
/// Never.
#[cfg(feature = "tensors")]
pub fn list(_: &mut Vec<u8>) -> std::io::Result<()> {
    Ok(())
}
