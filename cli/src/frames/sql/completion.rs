//! Completion in the shell: words of SQL, tables and columns, paths in quotes, and commands with a dot.

use crate::format::Shown;
use clap::ValueEnum;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::path::Path;

/// Commands with a dot.
const COMMANDS: [&str; 9] =
    [".exit", ".help", ".mode", ".quit", ".read", ".rows", ".schema", ".tables", ".timer"];

/// Words of SQL that are completed.
const KEYWORDS: &str = "all analyze and as asc between by case cast copy count create cross delete desc describe distinct \
     drop else end except exclude exists explain false fetch filter first from full glob group having \
     ilike in inner insert intersect interval into is join left like limit not null nulls offset on or \
     order outer over partition qualify read_arrow read_avro read_csv read_json read_parquet replace \
     right rows select set show sum summarize table then true union unnest update using values view when \
     where window with";

/// The words that a session has.
#[derive(Default)]
pub struct Words {
    /// Names of tables.
    pub tables: Vec<String>,
    /// Names of their columns.
    pub columns: Vec<String>,
}

/// The part of a line that is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    /// A command with a dot.
    Command(&'a str),
    /// The argument of a command.
    Argument { command: &'a str, begun: &'a str },
    /// A path in single quotes.
    Path(&'a str),
    /// A name behind a point.
    Column(&'a str),
    /// A word, a table or a column.
    Word(&'a str),
}

impl<'a> Part<'a> {
    /// The part before the cursor.
    fn of(before: &'a str) -> Part<'a> {
        let typed = before.trim_start();
        if typed.starts_with('.') {
            return match typed.split_once(char::is_whitespace) {
                None => Part::Command(typed),
                Some((command, begun)) => Part::Argument { command, begun: begun.trim_start() },
            };
        }
        if let Some(path) = open_quote(before) {
            return Part::Path(path);
        }
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let word = before.len()
            - before.chars().rev().take_while(|letter| is_part(*letter)).map(char::len_utf8).sum::<usize>();
        if before[..word].ends_with('.') {
            Part::Column(&before[word..])
        } else {
            Part::Word(&before[word..])
        }
    }
}

/// The text behind a single quote that is open at the end of a line.
fn open_quote(line: &str) -> Option<&str> {
    let mut open: Option<(char, usize)> = None;
    for (at, letter) in line.char_indices() {
        match open {
            None if matches!(letter, '\'' | '"') => open = Some((letter, at + 1)),
            Some((quote, _)) if quote == letter => open = None,
            _ => {}
        }
    }
    open.filter(|(quote, _)| *quote == '\'').map(|(_, at)| &line[at..])
}

impl Words {
    /// The texts in the place of the part before the cursor, and the bytes of it that they stand for.
    fn complete(&self, before: &str) -> (usize, Vec<String>) {
        let keywords = || KEYWORDS.split_whitespace().map(str::to_owned);
        match Part::of(before) {
            Part::Command(begun) => begun_with(begun, COMMANDS.map(str::to_owned)),
            Part::Argument { command: ".mode", begun } => {
                let forms = Shown::value_variants().iter().filter(|form| **form != Shown::Arrow);
                begun_with(
                    begun,
                    forms.filter_map(|form| Some(form.to_possible_value()?.get_name().to_owned())),
                )
            }
            Part::Argument { command: ".timer", begun } => {
                begun_with(begun, ["off", "on"].map(str::to_owned))
            }
            Part::Argument { command: ".schema", begun } => begun_with(begun, self.tables.iter().cloned()),
            Part::Argument { command: ".read", begun } | Part::Path(begun) => paths(begun),
            Part::Argument { .. } | Part::Word("") => (0, Vec::new()),
            Part::Column(begun) => begun_with(begun, self.columns.iter().cloned()),
            Part::Word(begun) => {
                let names = self.tables.iter().chain(&self.columns).cloned();
                begun_with(begun, keywords().chain(names))
            }
        }
    }
}

/// The words that begin so in any letters.
fn begun_with(begun: &str, words: impl IntoIterator<Item = String>) -> (usize, Vec<String>) {
    let lower = begun.to_lowercase();
    let mut found: Vec<String> =
        words.into_iter().filter(|word| word.to_lowercase().starts_with(&lower)).collect();
    found.sort();
    found.dedup();
    (begun.len(), found)
}

/// The files and folders whose paths begin so.
fn paths(begun: &str) -> (usize, Vec<String>) {
    let (folder, name) = match begun.rsplit_once('/') {
        None => (Path::new("."), begun),
        Some(("", name)) => (Path::new("/"), name),
        Some((folder, name)) => (Path::new(folder), name),
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let found = entry.file_name().into_string().ok()?;
            let is_hidden = found.starts_with('.') && !name.starts_with('.');
            // A control character could move the cursor, and a quote would end the path.
            let is_plain = !found.contains(|letter: char| letter.is_control() || letter == '\'');
            let end = if entry.path().is_dir() { "/" } else { "" };
            (found.starts_with(name) && !is_hidden && is_plain).then(|| found + end)
        })
        .collect();
    found.sort();
    (name.len(), found)
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (bytes, found) = self.complete(&line[..at]);
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((at - bytes, found.into_iter().map(pair).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(before: &str) -> Vec<String> {
        let words =
            Words { tables: vec!["sales".to_owned()], columns: vec!["Sold".to_owned(), "ä_b".to_owned()] };
        words.complete(before).1
    }

    #[test]
    fn a_part_is_completed_by_what_may_stand_there() {
        for (before, wanted) in [
            ("sel", vec!["select"]),
            ("select so", vec!["Sold"]),
            ("select s", vec!["Sold", "sales", "select", "set", "show", "sum", "summarize"]),
            ("select t.", vec!["Sold", "ä_b"]),
            ("select t.s", vec!["Sold"]),
            ("select ä", vec!["ä_b"]),
            ("select ", vec![]),
            (".mo", vec![".mode"]),
            (".mode j", vec!["json", "jsonl"]),
            (".mode  a", vec![]),
            (".timer o", vec!["off", "on"]),
            (".schema S", vec!["sales"]),
            (".rows 1", vec![]),
            ("select 'it''s' fro", vec!["from"]),
            ("select \"it's\" fro", vec!["from"]),
        ] {
            assert_eq!(completed(before), wanted, "{before}");
        }
    }

    #[test]
    fn paths_are_completed_in_quotes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for name in ["part.csv", "part.parquet", ".part", "p'art"] {
            std::fs::write(path(name), "").unwrap();
        }
        std::fs::create_dir(path("parts")).unwrap();
        let wanted = ["part.csv", "part.parquet", "parts/"];
        for before in ["select * from '", "from x, '", ".read "] {
            assert_eq!(completed(&format!("{before}{}", path("pa"))), wanted, "{before}");
            assert_eq!(completed(&format!("{before}{}", path(""))), wanted, "{before}");
        }
        assert_eq!(completed(&format!("from '{}", path(".p"))), [".part"]);
        assert_eq!(completed(&format!("from '{}", path("no/"))), Vec::<String>::new());
    }
}
