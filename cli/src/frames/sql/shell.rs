//! The shell of `tharsis sql`: statements of several lines, history, completion, and commands with a dot.

use super::completion::Words;
use super::mistakes::Origin;
use super::rows::View;
use super::session::Session;
use super::statements::{Statement, Statements};
use crate::args::SqlArgs;
use crate::format::Shown;
use crate::interrupt;
use crate::output;
use anyhow::{Context as _, Result};
use clap::ValueEnum;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::path::PathBuf;
use std::time::Instant;

const HELP: &str = "\
A statement ends with a semicolon and may have several lines. FROM takes tables and quoted paths: from 'sales.csv'.
  .help              this
  .mode FORM         the form of rows: table, csv, tsv, json, jsonl, markdown or vertical
  .quit              the end, as Ctrl-D, exit, quit and \\q
  .read FILE         run the statements of a file
  .rows N            rows that a table shows at most; 0 for all
  .schema NAME       columns and types of a table
  .tables            the tables
  .timer on|off      print the time that each statement takes
Ctrl-C forgets what was typed of a statement, and ends one that runs; a second time, also the shell.";

/// The tables of the user.
const TABLES: &str =
    "select table_name from information_schema.tables where table_schema <> 'information_schema' order by 1";
/// Their columns.
const COLUMNS: &str =
    "select distinct column_name from information_schema.columns where table_schema <> 'information_schema'";

/// Reads statements from the terminal and answers them until the user ends it.
///
/// # Errors
/// If the terminal cannot be read.
pub fn run(asked: &SqlArgs, view: View) -> Result<()> {
    let mut shell = Shell { session: Session::new(asked, view)?, typed: String::new(), is_timed: false };
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
    let mut editor: Editor<Words, FileHistory> = Editor::with_config(config).context("the terminal")?;
    editor.set_helper(Some(Words::default()));
    let history = history();
    if let Some(history) = &history {
        // There is none before the first time.
        let _none = editor.load_history(history);
    }
    output::line("Statements end with a semicolon; .help tells the rest, Ctrl-D ends.")?;
    loop {
        if let Some(words) = editor.helper_mut() {
            *words = shell.words();
        }
        interrupt::forget();
        match editor.readline(if shell.typed.is_empty() { "sql> " } else { "...> " }) {
            Ok(line) => {
                let entry = shell.entry(&line);
                if let Some(entry) = &entry {
                    // A history that cannot be kept is no reason to end.
                    let _kept = editor.add_history_entry(entry.as_str());
                    let _kept = history.as_ref().map(|history| editor.append_history(history));
                }
                // The shell has told that it was interrupted.
                if let Ok(Next::End) = interrupt::run(|| Ok(shell.line(&line))) {
                    return Ok(());
                }
            }
            Err(ReadlineError::Interrupted) => shell.typed.clear(),
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error).context("the terminal"),
        }
    }
}

/// The file of the history, in the folder of the user for what programs keep.
fn history() -> Option<PathBuf> {
    // A variable without a value stands for none: XDG Base Directory Specification.
    let state = std::env::var_os("XDG_STATE_HOME").filter(|state| !state.is_empty()).map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    let folder = state.join("tharsis");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("sql_history"))
}

struct Shell {
    session: Session,
    /// Lines of a statement that has not ended.
    typed: String,
    is_timed: bool,
}

/// The command that a line is, if no statement has begun: one with a dot, or the word of another shell that
/// means one.
fn command(line: &str) -> Option<&str> {
    let line = line.trim();
    let word = line.trim_end_matches(';').trim_end().to_lowercase();
    match word.as_str() {
        "exit" | "quit" | "\\q" => Some(".quit"),
        "help" | "\\h" | "\\?" => Some(".help"),
        "\\d" | "\\dt" => Some(".tables"),
        _ => line.starts_with('.').then_some(line),
    }
}

/// The shell after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Line,
    End,
}

impl Shell {
    /// The entry of the history that a line completes.
    fn entry(&self, line: &str) -> Option<String> {
        if self.typed.is_empty() && command(line).is_some() {
            return Some(line.to_owned());
        }
        let text = format!("{}{line}", self.typed);
        let found = Statements::of(&text);
        (!found.whole.is_empty() && found.rest.is_none()).then(|| text.trim().to_owned())
    }

    /// Takes a line. Errors are told, and the shell goes on.
    fn line(&mut self, line: &str) -> Next {
        if let Some(command) = command(line).filter(|_| self.typed.is_empty()) {
            return self.command(command);
        }
        self.typed += line;
        self.typed.push('\n');
        let text = std::mem::take(&mut self.typed);
        let found = Statements::of(&text);
        if let Some(rest) = found.rest {
            rest.text.clone_into(&mut self.typed);
        }
        for statement in found.whole {
            if !self.answered(statement.text) {
                // The user may have meant the rest for what did not work.
                self.typed.clear();
                break;
            }
        }
        Next::Line
    }

    /// Answers a statement; whether it did not fail.
    fn answered(&mut self, statement: &str) -> bool {
        let begin = Instant::now();
        let answered = self.session.answer(
            Statement::from(statement),
            Origin { file: None, is_one: true },
            &mut output::Stream::new(),
        );
        if self.is_timed {
            output::complain(&format!("({:.3} s)", begin.elapsed().as_secs_f64()));
        }
        told(answered)
    }

    fn command(&mut self, line: &str) -> Next {
        let mut words = line.splitn(2, char::is_whitespace);
        let (name, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().trim());
        let rest = rest.trim_end_matches(';');
        match name {
            ".exit" | ".quit" => return Next::End,
            ".help" => tell(output::line(HELP)),
            ".mode" => match Shown::from_str(rest, true) {
                Ok(Shown::Arrow) => output::complain(".mode: a terminal cannot show arrow"),
                Ok(shown) => self.session.view.shown = shown,
                Err(_) => {
                    output::complain(".mode: expected table, csv, tsv, json, jsonl, markdown or vertical")
                }
            },
            ".read" => {
                let read = self.read(rest);
                tell(read);
            }
            ".rows" => match rest.parse() {
                Ok(0) => self.session.view.rows_max = usize::MAX,
                Ok(rows) => self.session.view.rows_max = rows,
                Err(_) => output::complain(".rows: expected a number"),
            },
            ".schema" if rest.is_empty() => output::complain(".schema: expected the name of a table"),
            ".schema" => {
                let _told = self.answered(&format!("describe {rest}"));
            }
            ".tables" => {
                let tables = self.session.words(TABLES, "table_name");
                tell(output::line(&tables.join("\n")));
            }
            ".timer" => match rest {
                "on" => self.is_timed = true,
                "off" => self.is_timed = false,
                _ => output::complain(".timer: expected on or off"),
            },
            _ => output::complain(&format!("{name}: no such command; .help has those there are")),
        }
        Next::Line
    }

    fn read(&mut self, path: &str) -> Result<()> {
        let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
        self.session.run_all(Some(path), &text, true)
    }

    /// Words that are completed beside those of SQL.
    fn words(&mut self) -> Words {
        Words {
            tables: self.session.words(TABLES, "table_name"),
            columns: self.session.words(COLUMNS, "column_name"),
        }
    }
}

/// Tells an error; whether there was none.
fn told(outcome: Result<()>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(_) if interrupt::is_interrupted() => {
            output::complain("interrupted");
            false
        }
        Err(error) => {
            output::complain(&format!("{error:#}"));
            false
        }
    }
}

/// Tells an error, if there is one.
fn tell(outcome: Result<()>) {
    let _is_told = told(outcome);
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, command};
    use tharsis::frame::SqlSession;

    #[test]
    fn columns_of_one_name_are_one_word() {
        let mut session = SqlSession::default();
        session.run("create view v as select 1 as a, 2 as a").unwrap();
        assert_eq!(session.run(COLUMNS).unwrap(), [["a"]]);
    }

    #[test]
    fn words_of_other_shells_are_commands() {
        for (line, wanted) in [
            ("exit", Some(".quit")),
            (" QUIT; ", Some(".quit")),
            ("\\q", Some(".quit")),
            ("help", Some(".help")),
            ("\\dt", Some(".tables")),
            (" .mode csv", Some(".mode csv")),
            ("exit 1", None),
            ("select 1", None),
            ("", None),
        ] {
            assert_eq!(command(line), wanted, "{line}");
        }
    }
}
