//! The terminal of `tharsis top`: its size, its keys, and the lines on it. It is as before when the screen is
//! dropped.

use super::table::{Line, Tone};
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{IsTerminal, Write, stdin, stdout};
use std::time::Duration;

/// Another screen than that of the shell, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Size of a terminal that does not say it.
const SIZE: Size = Size { columns: 80, rows: 24 };
/// The key Ctrl-C, where the terminal makes no signal of it.
const CTRL_C: u8 = 3;

/// Size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// A terminal whose keys are read one by one.
pub struct Screen {
    before: Termios,
    is_coloured: bool,
}

/// Whether there is a terminal to look at and to type on.
pub fn is_terminal() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// The size of the terminal of standard output; none if that is no terminal.
pub fn size() -> Option<Size> {
    let size = tcgetwinsize(stdout()).ok()?;
    let is_told = 0 < size.ws_col && 0 < size.ws_row;
    Some(if is_told { Size { columns: size.ws_col.into(), rows: size.ws_row.into() } } else { SIZE })
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// If its modes cannot be set.
    pub fn open(is_coloured: bool) -> Result<Self> {
        let before = tcgetattr(stdin()).context("the terminal")?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(stdin(), OptionalActions::Now, &modes).context("the terminal")?;
        // From here on it is restored, whatever happens.
        let screen = Self { before, is_coloured };
        write(ENTER)?;
        Ok(screen)
    }

    /// Waits for keys, and tells whether one of them leaves: q, Ctrl-C, or the end of the terminal.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn is_left(&self, wait: Duration) -> Result<bool> {
        let stdin = stdin();
        let mut waited = [PollFd::new(&stdin, PollFlags::IN)];
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut waited, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error).context("the keys of the terminal"),
        }
        let mut keys = [0_u8; 64];
        match rustix::io::read(&stdin, &mut keys) {
            Ok(count) => Ok(count == 0 || keys[..count].iter().any(|key| leaves(*key))),
            Err(Errno::INTR | Errno::AGAIN) => Ok(false),
            // It is gone.
            Err(_) => Ok(true),
        }
    }

    /// Shows these lines and nothing else.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn draw(&self, lines: &[Line]) -> Result<()> {
        write(&frame(lines, self.is_coloured))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There may be no terminal any more.
        let _gone = write(LEAVE);
        let _gone = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

fn write(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("the terminal")
}

/// Function keys send capital letters.
fn leaves(key: u8) -> bool {
    key == b'q' || key == CTRL_C
}

/// The bytes that show these lines. The last one has no end, which would move the others up.
fn frame(lines: &[Line], is_coloured: bool) -> String {
    let mut text = String::from("\x1b[H");
    for (at, line) in lines.iter().enumerate() {
        text += if at == 0 { "\x1b[2K" } else { "\r\n\x1b[2K" };
        let colour = match line.tone {
            Tone::Head => "\x1b[1m",
            Tone::Warning => "\x1b[33m",
            Tone::Plain => "",
        };
        if is_coloured && !colour.is_empty() {
            text += &format!("{colour}{}\x1b[0m", line.text);
        } else {
            text += &line.text;
        }
    }
    text + "\x1b[J"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_lines_and_colours_where_they_are_wanted() {
        let line = |tone, text: &str| Line { tone, text: text.to_owned() };
        let lines = [line(Tone::Plain, "a"), line(Tone::Head, "b"), line(Tone::Warning, "c")];
        assert_eq!(frame(&lines, false), "\x1b[H\x1b[2Ka\r\n\x1b[2Kb\r\n\x1b[2Kc\x1b[J");
        let coloured = frame(&lines, true);
        assert!(
            coloured.contains("\x1b[1mb\x1b[0m") && coloured.contains("\x1b[33mc\x1b[0m"),
            "{coloured:?}"
        );
        assert!(coloured.contains("\x1b[2Ka\r\n"), "{coloured:?}");
    }

    #[test]
    fn q_and_ctrl_c_leave_and_function_keys_do_not() {
        assert!(leaves(b'q') && leaves(CTRL_C));
        assert!(!"\x1bOQ\x1b[A\r".bytes().any(leaves));
    }
}
