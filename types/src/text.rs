//! Text of others on a terminal.

use std::fmt::{self, Write};

/// A text as people may see it: whatever would act on a terminal is shown as its escape instead. Quotes stay
/// as they are, and so do tabs; a line break is an escape too, so that a line stays one.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\t' => f.write_char(c),
            c if acts(c) => write!(f, "{}", c.escape_default()),
            c => f.write_char(c),
        })
    }
}

/// Whether a character changes how others look: controls, and marks that turn the direction of text.
fn acts(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_nothing_else() {
        let shown = Shown("\u{1b}[31m\u{202e}'a' \"b\" \\ ä\t\r\n\u{9b}").to_string();
        assert_eq!(shown, "\\u{1b}[31m\\u{202e}'a' \"b\" \\ ä\t\\r\\n\\u{9b}");
    }
}
