//! A build with frames: programs as data, and statements of SQL.

use crate::commands::Started;
use crate::output;
use anyhow::Result;
use serde_json::Value as Json;
use std::path::Path;
pub use tharsis_dataframe::STORAGE_VARIABLES;
use tharsis_dataframe::{SqlSession, sql_stream};
use tharsis_frame_programs as frames;

/// Answers statements of SQL, one a line of standard input, as an engine of a runner of SQL logic tests.
///
/// # Errors
/// If statements cannot be read or replies cannot be written.
pub fn statements() -> Result<()> {
    let mut session = SqlSession::default();
    let replies = std::io::stdout().lock();
    output::until_nobody_reads(sql_stream(&mut session, std::io::stdin().lock(), replies))
}

/// The reply to a program about frames; none if it is about tensors.
pub fn answer(request: &Json, folder: &Path, places: &Started) -> Option<Json> {
    frames::is_about_frames(request).then(|| frames::run(request, folder, places))
}

/// Adds a line per operation.
///
/// # Errors
/// Never: lines go to memory.
pub fn list(lines: &mut Vec<u8>) -> std::io::Result<()> {
    frames::list(lines)
}
