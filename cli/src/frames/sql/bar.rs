//! A bar on standard error while a statement runs.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tharsis::frame::{Done, Progress};

/// Time before the bar is drawn for the first time.
const WAIT: Duration = Duration::from_secs(1);
/// Time between two drawings.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Columns of characters of the bar.
const BAR_MIN: usize = 5;
const BAR_MAX: usize = 40;
/// Columns of a terminal that does not tell how many it has.
const WIDTH: usize = 80;

/// Runs a step, with a bar if it takes more than a second and standard error is a terminal.
pub fn shown<T>(progress: &Progress, step: impl FnOnce() -> T) -> T {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if is_dumb || !stderr().is_terminal() {
        return step();
    }
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (begin, mut pause, mut is_drawn) = (Instant::now(), WAIT, false);
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = DRAW_EVERY;
                let line = line(progress.done(), begin.elapsed(), width());
                is_drawn = true;
                draw(&line);
            }
            if is_drawn {
                draw("");
            }
        });
        // Also dropped by a panic, so that the drawing thread ends.
        let _end = end;
        step()
    })
}

/// Draws a line in the place of the one before. Errors of the terminal are ignored.
fn draw(line: &str) {
    let _gone = write!(stderr(), "\r\x1b[2K{line}").and_then(|()| stderr().flush());
}

fn width() -> usize {
    match rustix::termios::tcgetwinsize(stderr()) {
        Ok(size) if 0 < size.ws_col => usize::from(size.ws_col),
        _ => WIDTH,
    }
}

/// The line for a terminal of some width, whose last column stays free: some terminals would wrap there.
fn line(done: Done, elapsed: Duration, width: usize) -> String {
    let Done { tasks, all, rows, .. } = done;
    let room = width.saturating_sub(1);
    let share = if all == 0 { 0.0 } else { (tasks as f64 / all as f64).min(1.0) };
    let percent = format!("{:3.0} %", 100.0 * share);
    let seconds = format!("  {} s", elapsed.as_secs());
    let counts = format!("  {tasks}/{all} tasks  {rows} rows{seconds}");
    for (begin, end) in [(percent.as_str(), counts.as_str()), (percent.as_str(), seconds.as_str())] {
        let taken = begin.len() + end.len() + 1;
        if taken + BAR_MIN <= room {
            let bar = (room - taken).min(BAR_MAX);
            let full = ((share * bar as f64) as usize).min(bar);
            return format!("{begin} {}{}{end}", "█".repeat(full), "░".repeat(bar - full));
        }
    }
    percent.chars().take(room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn the_line_fits_the_terminal() {
        let mut done = Done::default();
        (done.tasks, done.all, done.rows) = (25, 100, 1_234_567_890);
        for width in [1, 4, 10, 20, 60, 80, 220] {
            let line = line(done, Duration::from_secs(75), width);
            assert!(line.width() < width, "{width}: {line}");
        }
        let wide = line(done, Duration::from_secs(75), 220);
        assert!(
            wide.starts_with(" 25 % ██████████░░") && wide.ends_with("  25/100 tasks  1234567890 rows  75 s"),
            "{wide}"
        );
        let narrow = line(done, Duration::from_secs(75), 30);
        assert!(narrow.ends_with("░  75 s") && !narrow.contains("rows"), "{narrow}");
        assert!(line(Done::default(), Duration::ZERO, 80).starts_with("  0 % ░"));
    }
}
