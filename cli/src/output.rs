//! Output of the command. A reader that goes away (`| head -1`) ends the command quietly.

use anyhow::Result;
use std::io::{ErrorKind, Write};

/// Prints a line to standard output.
///
/// # Errors
/// If it cannot be written, unless the reader is gone.
pub fn line(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        outcome => Ok(outcome?),
    }
}

/// Ends a stream of replies quietly if its reader went away.
///
/// # Errors
/// Any other error.
#[cfg(feature = "tensors")]
pub fn until_nobody_reads(outcome: std::io::Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Prints a warning on standard error.
pub fn warn(text: &str) {
    complain(&format!("tharsis: warning: {text}"));
}

/// Prints a line to standard error.
pub fn complain(text: &str) {
    let _nobody_reads = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes bytes to standard output as they are.
///
/// # Errors
/// If they cannot be written, unless the reader is gone.
pub fn bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        outcome => Ok(outcome?),
    }
}
