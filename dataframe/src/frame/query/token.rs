//! Words and signs of expressions.

use crate::error::{Error, Result};

/// A word or sign, with its place in characters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    End,
    Float(f64),
    /// The name of a value that the caller gives, written with `@`.
    Given(String),
    /// A name in backticks, which may have any letters.
    Quoted(String),
    Sign(&'static str),
    Text(String),
    Whole(i64),
    Word(String),
}

/// Signs, those of two letters before those that they begin with.
const SIGNS: [&str; 26] = [
    "**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<", ">", "=", "(", ")", "[", "]", ",", ".",
    "&", "|", "~", "^", ":", ";",
];

/// The error at a place in a text.
pub(super) fn wrong<T>(at: usize, reason: impl Into<String>) -> Result<T> {
    Err(Error::Syntax { at, reason: reason.into() })
}

/// The tokens of a text, with one for its end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        let start = at;
        let kind = match c {
            '0'..='9' => number(&chars, &mut at)?,
            '.' if chars.get(at + 1).is_some_and(char::is_ascii_digit) => number(&chars, &mut at)?,
            '\'' | '"' => Kind::Text(quoted(&chars, &mut at)?),
            '`' => {
                let end = chars[at + 1..].iter().position(|c| *c == '`');
                let Some(end) = end else { return wrong(at, "a backtick that is not closed") };
                at += end + 2;
                Kind::Quoted(chars[start + 1..at - 1].iter().collect())
            }
            '@' => {
                at += 1;
                match word(&chars, &mut at) {
                    name if name.is_empty() => return wrong(start, "a name is expected behind @"),
                    name => Kind::Given(name),
                }
            }
            c if c.is_alphabetic() || c == '_' => Kind::Word(word(&chars, &mut at)),
            c => {
                let fits =
                    |sign: &&&str| sign.chars().enumerate().all(|(n, c)| chars.get(start + n) == Some(&c));
                let Some(sign) = SIGNS.iter().find(fits) else {
                    return wrong(at, format!("{c:?} has no meaning here"));
                };
                at += sign.len();
                Kind::Sign(sign)
            }
        };
        found.push(Token { at: start, kind });
    }
    found.push(Token { at: chars.len(), kind: Kind::End });
    Ok(found)
}

fn word(chars: &[char], at: &mut usize) -> String {
    let start = *at;
    while chars.get(*at).is_some_and(|c| c.is_alphanumeric() || *c == '_') {
        *at += 1;
    }
    chars[start..*at].iter().collect()
}

fn number(chars: &[char], at: &mut usize) -> Result<Kind> {
    let start = *at;
    let is_float = |text: &str| text.contains(['.', 'e', 'E']);
    while let Some(c) = chars.get(*at) {
        let signed = matches!(c, '+' | '-') && matches!(chars[*at - 1], 'e' | 'E');
        if !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_') || (signed && *at > start)) {
            break;
        }
        *at += 1;
    }
    let text: String = chars[start..*at].iter().filter(|c| **c != '_').collect();
    let made = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok().map(Kind::Whole),
        None if is_float(&text) => text.parse().ok().map(Kind::Float),
        None => text.parse().ok().map(Kind::Whole),
    };
    made.map_or_else(|| wrong(start, format!("{text:?} is no number")), Ok)
}

fn quoted(chars: &[char], at: &mut usize) -> Result<String> {
    let (start, quote) = (*at, chars[*at]);
    let mut text = String::new();
    *at += 1;
    loop {
        let Some(c) = chars.get(*at).copied() else { return wrong(start, "a text that is not closed") };
        *at += 1;
        match c {
            c if c == quote => return Ok(text),
            '\\' => {
                let Some(next) = chars.get(*at).copied() else { continue };
                *at += 1;
                match next {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    '\\' | '\'' | '"' => text.push(next),
                    other => text.extend(['\\', other]),
                }
            }
            c => text.push(c),
        }
    }
}
