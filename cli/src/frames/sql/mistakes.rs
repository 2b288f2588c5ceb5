//! Mistakes in statements: where they stand, with the line and a mark below it.

use super::statements::Statement;
use crate::refusal::Refusal;
use std::fmt::Write as _;
use tharsis::frame::{Error, SqlPlace};
use unicode_width::UnicodeWidthChar;

/// Columns of characters that the line of a mistake takes, if nobody knows how wide the terminal is.
const WIDTH: usize = 100;
/// The least of them that shows something.
const WIDTH_MIN: usize = 20;
/// The space before the line.
const INDENT: &str = "  ";
/// Words with which a query begins.
const QUERIES: [&str; 7] = ["describe", "from", "select", "summarize", "table", "values", "with"];
/// The sign that a line goes on.
const CUT: &str = "…";

/// The text in which a statement stands.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Its file.
    pub file: Option<&'a str>,
    /// Whether it has no other statement.
    pub is_one: bool,
}

/// The refusal of a statement. `lines_before` were put before it when it was answered.
pub fn refusal(cause: &Error, statement: Statement<'_>, origin: Origin<'_>, lines_before: usize) -> Refusal {
    let place = cause.sql_place();
    let (line, column) = match place {
        None => (statement.line, None),
        Some(place) => {
            let line = place.line().saturating_sub(lines_before).max(1);
            let before = if line == 1 { statement.column - 1 } else { 0 };
            (statement.line + line - 1, Some(before + place.column()))
        }
    };
    let at = match (origin.file, column) {
        (Some(file), Some(column)) => format!("{file}:{line}:{column}: "),
        (Some(file), None) => format!("{file}:{line}: "),
        (None, Some(column)) => format!("line {line}, column {column}: "),
        (None, None) if origin.is_one => String::new(),
        (None, None) => format!("line {line}: "),
    };
    let shown = place.filter(|place| !has_secret_url(place.text()) && !names_secrets(statement.text));
    let shown = shown.map(|place| excerpt(place, width())).unwrap_or_default();
    Refusal::Query { at, cause: Box::new(cause.root().clone()), shown }
}

/// Whether a line has a URL with a user, a password or a query, which may be a signature. Errors may end up
/// in files that others read.
fn has_secret_url(line: &str) -> bool {
    line.split_once("://").is_some_and(|(_, url)| url.contains(['@', '?']))
}

/// Whether a statement that is no query has options, among which the keys of a store may be, on any of its
/// lines.
fn names_secrets(statement: &str) -> bool {
    let lower = statement.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words = words.skip_while(|word| ["analyze", "explain", "verbose"].contains(word));
    if words.next().is_some_and(|first| QUERIES.contains(&first)) {
        return false;
    }
    ["options", "secret", "password", "token", "credential", "access_key"]
        .iter()
        .any(|word| lower.contains(word))
}

/// The width of the terminal that shows errors.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map_or(0, |size| usize::from(size.ws_col)).checked_sub(1).map_or(WIDTH, |width| width.max(WIDTH_MIN))
}

/// The line of a mistake, and below it a mark; the part around the mistake, if the line is wider.
fn excerpt(place: &SqlPlace, width: usize) -> String {
    // A control character could move the cursor, and a tab has no width of its own.
    let letters: Vec<char> =
        place.text().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let wide = |letters: &[char]| letters.iter().map(|letter| letter.width().unwrap_or(0)).sum::<usize>();
    let room = width.saturating_sub(INDENT.len() + 2);
    let at = (place.column() - 1).min(letters.len());
    let wide_at = |at: usize| wide(&letters[at..=at]);
    let (mut begin, mut end) = (0, letters.len());
    if room < wide(&letters) {
        let mut used = 0;
        begin = at;
        while 0 < begin && used + wide_at(begin - 1) <= room / 2 {
            begin -= 1;
            used += wide_at(begin);
        }
        (end, used) = (begin, 0);
        while end < letters.len() && used + wide_at(end) <= room {
            used += wide_at(end);
            end += 1;
        }
    }
    let (before, behind) = (if 0 < begin { CUT } else { "" }, if end < letters.len() { CUT } else { "" });
    let line: String = letters[begin..end].iter().collect();
    let last = (at + place.width()).min(end);
    let space = usize::from(0 < begin) + wide(&letters[begin..at]);
    let marks = if at < last { wide(&letters[at..last]).max(1) } else { 1 };
    let mut shown = String::new();
    // A text takes all that is written.
    let _written =
        write!(shown, "\n{INDENT}{before}{line}{behind}\n{INDENT}{}{}", " ".repeat(space), "^".repeat(marks));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis::frame::SqlSession;
    use unicode_width::UnicodeWidthStr;

    fn cause(statement: &str) -> Error {
        SqlSession::default().execute(statement).unwrap_err()
    }

    fn shown(statement: &str, width: usize) -> String {
        excerpt(cause(statement).sql_place().unwrap(), width)
    }

    #[test]
    fn the_mark_stands_below_the_mistake() {
        assert_eq!(shown("select a", 80), "\n  select a\n         ^");
        assert_eq!(shown("select 1,\n\tnothing + 2", 80), "\n   nothing + 2\n   ^^^^^^^");
        assert_eq!(
            shown("select '東京', nothing", 80),
            "\n  select '東京', nothing\n                 ^^^^^^^"
        );
        assert_eq!(shown("select (1", 80), "\n  select (1\n           ^");
    }

    #[test]
    fn a_wide_line_is_cut_around_the_mistake() {
        let many = vec!["1111"; 40].join(", ");
        for statement in [
            format!("select nothing, {many}"),
            format!("select {many}, nothing, {many}"),
            format!("select {many}, nothing"),
        ] {
            for width in [20, 60, 80] {
                let shown = shown(&statement, width);
                let lines: Vec<&str> = shown.lines().skip(1).collect();
                assert!(
                    lines.iter().all(|line| line.width() <= width) && shown.contains(CUT),
                    "{width}: {shown}"
                );
                let at = lines[1].find('^').unwrap();
                let below: String = lines[0].chars().skip(at).take(lines[1].matches('^').count()).collect();
                assert_eq!(below, "nothing", "{width}: {shown}");
            }
        }
    }

    #[test]
    fn a_line_with_a_secret_is_not_shown() {
        let shown = |text: &'static str| {
            let one = Origin { file: None, is_one: true };
            refusal(&cause(text), text.into(), one, 0).to_string()
        };
        let told = "line 1, column 8: KeyError: no column \"a\"; there are none";
        assert_eq!(shown("select a, 'https://me:word@bucket.example/k.csv'"), told);
        assert_eq!(shown("select a, 'https://bucket.example/k.csv?sig=abc'"), told);
        assert!(shown("select a, 'https://bucket.example/k.csv'").ends_with("\n         ^"));
        let told =
            shown("create external table t stored as csv location 's3://b/x/' options (\n'aws.id' 'abc' eu)");
        assert!(told.starts_with("line 2, column ") && !told.contains("abc"), "{told}");
        let told = shown(
            "create external table t stored as csv location 's3://b/x/' options ('aws.key' 'ok' 'abc')",
        );
        assert!(told.ends_with("found a text") && !told.contains("abc"), "{told}");
        let told = shown("explain select tokens, nope from (select 1 as tokens)");
        assert!(told.ends_with("^^^^"), "a query has no options: {told}");
    }

    #[test]
    fn places_are_those_of_the_text_around_the_statement() {
        let at = |statement: Statement<'_>, origin: Origin<'_>, lines_before: usize| {
            let text = format!("{}{}", "explain\n".repeat(lines_before), statement.text);
            let Refusal::Query { at, .. } = refusal(&cause(&text), statement, origin, lines_before) else {
                panic!("another refusal");
            };
            at
        };
        let one = Origin { file: None, is_one: true };
        let several = Origin { is_one: false, ..one };
        let of_file = Origin { file: Some("q.sql"), is_one: false };
        let second = Statement { text: "select nothing", line: 3, column: 11 };
        let lines = Statement { text: "select 1,\n nothing", ..second };
        assert_eq!(at("select nothing".into(), one, 0), "line 1, column 8: ");
        assert_eq!(at(second, several, 0), "line 3, column 18: ");
        assert_eq!(at(second, several, 1), "line 3, column 18: ");
        assert_eq!(at(lines, of_file, 0), "q.sql:4:2: ");
        assert_eq!(at(lines, of_file, 1), "q.sql:4:2: ");
        let of_run = Statement { text: "select 1 / 0", ..second };
        assert_eq!(at(of_run, several, 0), "line 3: ");
        assert_eq!(at(of_run, of_file, 0), "q.sql:3: ");
        assert_eq!(at(of_run, one, 0), "");
    }
}
