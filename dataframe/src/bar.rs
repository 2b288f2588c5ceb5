//! A progress bar on a terminal.

use crate::explain::bytes_text;
use crate::progress::Done;
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
    pub(crate) fn draw(&mut self, done: Done) {
        let line =
            if done.tasks < done.all { self.line(done, self.started.elapsed()) } else { String::new() };
        if line != self.drawn {
            let _gone = write!(stderr(), "\r\x1b[2K{line}").and_then(|()| stderr().flush());
            self.drawn = line;
        }
    }

    fn line(&self, done: Done, elapsed: Duration) -> String {
        let Done { tasks, all, rows, bytes, spilled_bytes } = done;
        let share = tasks as f64 / all.max(1) as f64;
        let full = (share * WIDTH as f64) as usize;
        let left = match tasks {
            0 => String::new(),
            _ => format!(", {:.0} s left", elapsed.as_secs_f64() * (1.0 - share) / share),
        };
        let (bar, rest) = ("█".repeat(full), "░".repeat(WIDTH - full));
        let (label, percent, seconds) = (&self.label, 100.0 * share, elapsed.as_secs_f64());
        let (rows, bytes) = (count_text(rows), bytes_text(bytes));
        let spilled = match spilled_bytes {
            0 => String::new(),
            spilled => format!("  {} spilled", bytes_text(spilled)),
        };
        format!(
            "{label} {bar}{rest} {percent:3.0} %  {tasks}/{all} tasks  {rows} rows  {bytes}{spilled}  {seconds:.0} s{left}"
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

/// A number in the largest of these units in which it is at least one.
fn count_text(count: u64) -> String {
    match count {
        0..1_000_000 => count.to_string(),
        1_000_000..1_000_000_000 => format!("{:.1} million", count as f64 / 1e6),
        _ => format!("{:.1} billion", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_how_far_how_much_and_how_long() {
        let bar = Bar::new("sales");
        let done = Done { tasks: 25, all: 100, rows: 2_500_000, bytes: 3 << 30, spilled_bytes: 0 };
        let line = bar.line(done, Duration::from_secs(10));
        assert!(line.starts_with("sales ██████████░"), "{line}");
        let end = " 25 %  25/100 tasks  2.5 million rows  3.0 GiB  10 s, 30 s left";
        assert!(line.ends_with(end), "{line}");
        let line = bar.line(Done { spilled_bytes: 2 << 20, ..done }, Duration::from_secs(10));
        assert!(line.ends_with("3.0 GiB  2.0 MiB spilled  10 s, 30 s left"), "{line}");
        assert!(bar.line(Done::default(), Duration::ZERO).contains("0/0 tasks  0 rows  0 B"));
        assert_eq!(count_text(999_999), "999999");
        assert_eq!(count_text(4_200_000_000), "4.2 billion");
    }
}
