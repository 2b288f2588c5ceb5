//! Texts cut at separators and at matches, characters put in place of others: functions of one text.

use super::durations::duration;
use super::kernel::{Constants, Kernel};

/// Stands before a match; no text has this character, which Unicode keeps for programs.
pub(crate) const BEGIN: char = '\u{fdd0}';
/// Stands behind a match.
pub(crate) const END: char = '\u{fdd1}';
/// Stands between the groups of a match.
pub(crate) const BETWEEN: char = '\u{fdd2}';

/// The functions by name.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("tharsis_text_casefold", Kernel::Text(|text, _| Some(casefold(text)))),
    ("tharsis_text_isascii", Kernel::Truth(str::is_ascii)),
    ("tharsis_text_index", Kernel::Checked(|text, constants| index(text, constants, true))),
    ("tharsis_text_rindex", Kernel::Checked(|text, constants| index(text, constants, false))),
    ("tharsis_text_partition", Kernel::Texts(partition)),
    ("tharsis_text_slice_replace", Kernel::Text(|text, constants| Some(slice_replace(text, constants)))),
    ("tharsis_text_translate", Kernel::Text(|text, constants| Some(translate(text, constants)))),
    ("tharsis_text_wrap", Kernel::Text(|text, constants| Some(wrap(text, constants)))),
    ("tharsis_text_matches", Kernel::Texts(|text, _| matches(text))),
    ("tharsis_text_group", Kernel::Text(group)),
    ("tharsis_text_duration", Kernel::Checked(duration)),
    ("tharsis_text_duration_or_missing", Kernel::Optional(|text, constants| duration(text, constants).ok())),
];

/// The text without differences of case, as Python folds them.
fn casefold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // A letter without a dot, and letters that have no small ones or fold into large ones.
            'ı' | '\u{13a0}'..='\u{13f5}' => folded.push(c),
            '\u{13f8}'..='\u{13fd}' | '\u{ab70}'..='\u{abbf}' => folded.extend(c.to_uppercase()),
            'ẞ' => folded.push_str("ss"),
            c => folded.extend(c.to_uppercase().flat_map(char::to_lowercase)),
        }
    }
    folded
}

fn index(text: &str, constants: &Constants, first: bool) -> std::result::Result<i64, String> {
    let part = constants.text(0).unwrap_or_default();
    let found = if first { text.find(part) } else { text.rfind(part) };
    let place = found.map(|at| text[..at].chars().count() as i64);
    place.ok_or_else(|| format!("substring not found: {part:?} in {text:?}"))
}

/// The text before a separator, the separator, and the text behind it; from the end if the second constant is
/// one. Without the separator, all of it is the first or the last part.
fn partition(text: &str, constants: &Constants) -> Vec<String> {
    let separator = constants.text(0).unwrap_or_default();
    let from_end = constants.whole(1) == Some(1);
    let cut = if from_end { text.rsplit_once(separator) } else { text.split_once(separator) };
    match (cut, from_end) {
        (Some((before, behind)), _) => vec![before.to_owned(), separator.to_owned(), behind.to_owned()],
        (None, false) => vec![text.to_owned(), String::new(), String::new()],
        (None, true) => vec![String::new(), String::new(), text.to_owned()],
    }
}

/// The text with another in place of the characters between two places.
fn slice_replace(text: &str, constants: &Constants) -> String {
    let count = text.chars().count() as i64;
    let place = |at: i64| if at < 0 { (count + at).max(0) } else { at.min(count) };
    let from = place(constants.whole(0).unwrap_or(0));
    let to = place(constants.whole(1).unwrap_or(count)).max(from);
    let before = text.chars().take(from as usize);
    let behind = text.chars().skip(to as usize);
    before.chain(constants.text(2).unwrap_or_default().chars()).chain(behind).collect()
}

/// Characters with a text in place of each that is a constant, followed by that text.
fn translate(text: &str, constants: &Constants) -> String {
    let pairs: Vec<(char, &str)> = (0..constants.0.len() / 2)
        .filter_map(|at| Some((constants.text(2 * at)?.chars().next()?, constants.text(2 * at + 1)?)))
        .collect();
    let mut made = String::with_capacity(text.len());
    for c in text.chars() {
        match pairs.iter().find(|(from, _)| *from == c) {
            Some((_, to)) => made.push_str(to),
            None => made.push(c),
        }
    }
    made
}

/// Words of a text as Python's module for wrapping cuts them: white space, and words that end at hyphens
/// between letters.
fn chunks(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut found: Vec<String> = Vec::new();
    let mut chunk = String::new();
    let mut push = |chunk: &mut String| {
        if !chunk.is_empty() {
            found.push(std::mem::take(chunk));
        }
    };
    for (at, c) in letters.iter().enumerate() {
        if chunk.chars().next().is_some_and(|first| (first == ' ') != (*c == ' ')) {
            push(&mut chunk);
        }
        chunk.push(*c);
        let letter = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(|c| c.is_alphabetic());
        let wordlike = letter(at.checked_sub(1))
            && letter(at.checked_sub(2))
            && letter(Some(at + 1))
            && letter(Some(at + 2));
        if *c == '-' && wordlike {
            push(&mut chunk);
        }
    }
    push(&mut chunk);
    found
}

/// The text in lines of at most so many characters, cut between words where possible.
fn wrap(text: &str, constants: &Constants) -> String {
    let width = constants.whole(0).unwrap_or(1).max(1) as usize;
    let mut expanded = String::new();
    for c in text.chars() {
        match c {
            '\t' => {
                let column = expanded.chars().rev().take_while(|c| *c != '\n').count();
                expanded.extend(std::iter::repeat_n(' ', 8 - column % 8));
            }
            c if c.is_ascii_whitespace() || c == '\u{b}' => expanded.push(' '),
            c => expanded.push(c),
        }
    }
    let length = |text: &str| text.chars().count();
    let mut rest: Vec<String> = chunks(&expanded);
    rest.reverse();
    let mut lines: Vec<String> = Vec::new();
    while !rest.is_empty() {
        if !lines.is_empty() && rest.last().is_some_and(|chunk| chunk.trim().is_empty()) {
            rest.pop();
        }
        let mut line: Vec<String> = Vec::new();
        let mut used = 0;
        while let Some(chunk) = rest.last() {
            if used + length(chunk) > width {
                break;
            }
            used += length(chunk);
            line.extend(rest.pop());
        }
        if let Some(chunk) = rest.last_mut().filter(|chunk| length(chunk) > width) {
            // A word that is longer than a line fills what is left of this one.
            let room = (width - used).max(usize::from(used == 0));
            let head: String = chunk.chars().take(room).collect();
            *chunk = chunk.chars().skip(room).collect();
            if !head.is_empty() {
                line.push(head);
            }
        }
        if line.last().is_some_and(|chunk| chunk.trim().is_empty()) {
            line.pop();
        }
        if !line.is_empty() {
            lines.push(line.concat());
        }
    }
    lines.join("\n")
}

/// The texts between the signs around matches.
fn matches(marked: &str) -> Vec<String> {
    let found = marked.split(BEGIN).skip(1);
    found.filter_map(|part| part.split_once(END)).map(|(part, _)| part.to_owned()).collect()
}

/// One group of a match; missing if it is empty, as in pandas.
fn group(found: &str, constants: &Constants) -> Option<String> {
    let at = usize::try_from(constants.whole(0)?).ok()?;
    found.split(BETWEEN).nth(at).filter(|part| !part.is_empty()).map(str::to_owned)
}
