//! Output of the command. A reader that goes away (`| head -1`) ends the command quietly.

use anyhow::Result;
use std::borrow::Cow;
use std::io::{ErrorKind, Write};
#[cfg(feature = "frames")]
use std::sync::atomic::{AtomicU8, Ordering};

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

/// A line for people. A program may write what moves the cursor, sets the title or answers in the place of
/// whoever looks at its output, and choose its names so: such characters are escaped. Programs read `--json`.
pub fn plain(line: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c == '\t' || !c.is_control();
    if line.chars().all(is_plain) {
        return line.into();
    }
    line.chars().map(|c| if is_plain(c) { c.to_string() } else { c.escape_default().to_string() }).collect()
}

/// Prints lines for people, each as [`plain`] has it.
///
/// # Errors
/// As of [`line()`].
pub fn plain_lines(lines: &[String]) -> Result<()> {
    lines.iter().try_for_each(|text| line(&plain(text)))
}

/// The status with which the command ends when the reader of a [`Stream`] goes away.
#[cfg(feature = "frames")]
static UNREAD_STATUS: AtomicU8 = AtomicU8::new(0);

/// Has the command end with this status when the reader of a [`Stream`] goes away.
#[cfg(feature = "frames")]
pub fn end_unread_with(status: u8) {
    UNREAD_STATUS.store(status, Ordering::Relaxed);
}

/// Standard output for a writer of many pieces. A reader that goes away ends the command quietly; Ctrl-C ends
/// the writing.
#[cfg(feature = "frames")]
pub struct Stream(std::io::BufWriter<std::io::Stdout>);

#[cfg(feature = "frames")]
impl Stream {
    /// The stream of this process.
    pub fn new() -> Self {
        Stream(std::io::BufWriter::new(std::io::stdout()))
    }
}

#[cfg(feature = "frames")]
impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if crate::interrupt::is_interrupted() {
            return Err(std::io::Error::other("interrupted"));
        }
        or_end(self.0.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        or_end(self.0.flush())
    }
}

#[cfg(feature = "frames")]
fn or_end<T>(outcome: std::io::Result<T>) -> std::io::Result<T> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            crate::frames::clean();
            std::process::exit(UNREAD_STATUS.load(Ordering::Relaxed).into())
        }
        outcome => outcome,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_move_the_cursor_are_escaped() {
        assert_eq!(plain("tab\there"), "tab\there");
        assert_eq!(plain("\u{1b}]0;title\u{7}\r\u{9b}2J ä"), "\\u{1b}]0;title\\u{7}\\r\\u{9b}2J ä");
    }
}
