//! Rust text as pieces: code, comments and literals; and the tokens of its code.
//!
//! Enough of the language to know what is code, without a parser: checks that read lines alone take texts in
//! strings for comments and imports.

use std::ops::Range;

/// Kind of a [`Piece`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything that is nothing else, white space too.
    Code,
    /// `//` and its line, without the end of line.
    LineComment,
    /// `/*` to its `*/`, with those inside.
    BlockComment,
    /// A string or a character, with its quotes.
    Literal,
}

/// A part of a text. The pieces of a text lie side by side and cover it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The kind of all of it.
    pub kind: Kind,
    /// Its bytes in the text.
    pub range: Range<usize>,
}

/// The pieces of a Rust text, in order.
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    let (mut at, mut code) = (0, 0);
    while at < text.len() {
        let Some((kind, end)) = other_piece(text, at) else {
            at = after_word(text, at);
            continue;
        };
        if code < at {
            found.push(Piece { kind: Kind::Code, range: code..at });
        }
        found.push(Piece { kind, range: at..end });
        (at, code) = (end, end);
    }
    if code < at {
        found.push(Piece { kind: Kind::Code, range: code..at });
    }
    found
}

/// The names, numbers and signs of a text's code, without comments. A literal is the token `"`.
pub fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for piece in pieces(text) {
        match piece.kind {
            Kind::LineComment | Kind::BlockComment => {}
            Kind::Literal => found.push("\""),
            Kind::Code => {
                let (mut at, end) = (piece.range.start, piece.range.end);
                while at < end {
                    let next = if text[at..end].starts_with("::") { at + 2 } else { after_word(text, at) };
                    let token = text[at..next].trim();
                    if !token.is_empty() {
                        found.push(token);
                    }
                    at = next;
                }
            }
        }
    }
    found
}

/// The end of the word that begins here, or of one sign. A lifetime is one word with its quote.
fn after_word(text: &str, at: usize) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let first = text[at..].chars().next().map_or(0, char::len_utf8);
    let is_quote = text[at..].starts_with('\'');
    if !is_quote && !text[at..].starts_with(is_word) {
        return at + first;
    }
    let rest = &text[at + first..];
    at + first + rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// A comment or a literal that begins here, and where it ends.
fn other_piece(text: &str, at: usize) -> Option<(Kind, usize)> {
    let rest = &text[at..];
    if rest.starts_with("//") {
        let length = rest.find('\n').unwrap_or(rest.len());
        let length = rest[..length].trim_end_matches('\r').len();
        return Some((Kind::LineComment, at + length));
    }
    if rest.starts_with("/*") {
        return Some((Kind::BlockComment, at + block_length(rest)));
    }
    let quoted = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let prefix = rest.len() - quoted.len();
    if quoted.starts_with('"') {
        return Some((Kind::Literal, at + prefix + quoted_length(quoted, '"')));
    }
    if let Some(raw) = quoted.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = &raw[hashes + 1..];
            let length = body.find(&close).map_or(body.len(), |n| n + close.len());
            return Some((Kind::Literal, at + prefix + 1 + hashes + 1 + length));
        }
    }
    let is_byte = prefix == 1 && rest.starts_with('b');
    if quoted.starts_with('\'') && (prefix == 0 || is_byte) {
        return character_length(quoted).map(|length| (Kind::Literal, at + prefix + length));
    }
    None
}

fn block_length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a literal with its two quotes, in which a backslash takes the next character along.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if c == '\\' {
            characters.next();
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

/// The length of a character in its quotes; nothing for a lifetime.
fn character_length(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    let (_, first) = characters.next()?;
    let (end, second) = characters.next()?;
    if first == '\\' { Some(quoted_length(text, '\'')) } else { (second == '\'').then_some(end + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, kind: Kind) -> Vec<&str> {
        pieces(text).into_iter().filter(|p| p.kind == kind).map(|p| &text[p.range]).collect()
    }

    #[test]
    fn pieces_cover_the_text() {
        let text =
            "fn a<'x>() { /* b /* c */ \" */ d(\"//\\\"\", r#\"\"/*\"#, b'\\'', 'é', br\"\\\") } // \"e\n//";
        let ends: Vec<usize> = pieces(text).iter().map(|p| p.range.end).collect();
        let starts: Vec<usize> = pieces(text).iter().map(|p| p.range.start).collect();
        assert_eq!(starts[0], 0);
        assert_eq!(ends[..ends.len() - 1], starts[1..]);
        assert_eq!(ends.last(), Some(&text.len()));
        assert_eq!(of(text, Kind::BlockComment), ["/* b /* c */ \" */"]);
        assert_eq!(of(text, Kind::LineComment), ["// \"e", "//"]);
        assert_eq!(of(text, Kind::Literal), ["\"//\\\"\"", "r#\"\"/*\"#", "b'\\''", "'é'", "br\"\\\""]);
    }

    #[test]
    fn tokens_are_words_and_signs() {
        let found = tokens("use crate::a_1::{b as c}; // d\nlet x: &'a str = \"e\" ;");
        let wanted = "use crate :: a_1 :: { b as c } ; let x : & 'a str = \" ;";
        assert_eq!(found, wanted.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn a_letter_before_a_quote_belongs_to_its_word() {
        assert_eq!(tokens("web r#type b"), ["web", "r", "#", "type", "b"]);
        assert_eq!(of("for_r\"c\\\"\"", Kind::Literal), ["\"c\\\"\""]);
    }
}
