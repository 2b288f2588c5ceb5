//! A progress bar on a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// A progress line on standard error, redrawn in place.
pub(crate) struct Bar {
    label: String,
    started: Instant,
    drawn: String,
}

const WIDTH: usize = 40;

impl Bar {
    /// A bar, if standard error is a terminal.
    pub(crate) fn on_terminal(label: &str) -> Option<Bar> {
        stderr().is_terminal().then(|| Bar::new(label))
    }

    fn new(label: &str) -> Bar {
        Bar { label: label.to_owned(), started: Instant::now(), drawn: String::new() }
    }

    /// Draws the line if it has changed; clears it once all is done. Errors of the terminal are ignored.
    pub(crate) fn draw(&mut self, done: u64, total: u64) {
        let line = if done < total { self.line(done, total, self.started.elapsed()) } else { String::new() };
        if line != self.drawn {
            let _gone = write!(stderr(), "\r\x1b[2K{line}").and_then(|()| stderr().flush());
            self.drawn = line;
        }
    }

    fn line(&self, done: u64, total: u64, elapsed: Duration) -> String {
        let share = done as f64 / total.max(1) as f64;
        let full = (share * WIDTH as f64) as usize;
        let left = match done {
            0 => String::new(),
            _ => format!(", {:.0} s left", elapsed.as_secs_f64() * (1.0 - share) / share),
        };
        let (bar, rest) = ("█".repeat(full), "░".repeat(WIDTH - full));
        let seconds = elapsed.as_secs_f64();
        format!(
            "{} {bar}{rest} {:3.0} %  {done}/{total} tasks  {seconds:.0} s{left}",
            self.label,
            100.0 * share
        )
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if !self.drawn.is_empty() {
            let _gone = writeln!(stderr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_how_far_and_how_long() {
        let bar = Bar::new("pi");
        let line = bar.line(25, 100, Duration::from_secs(10));
        assert!(line.starts_with("pi ██████████░"), "{line}");
        assert!(line.ends_with(" 25 %  25/100 tasks  10 s, 30 s left"), "{line}");
        assert!(bar.line(0, 0, Duration::ZERO).contains("0/0"));
    }
}
