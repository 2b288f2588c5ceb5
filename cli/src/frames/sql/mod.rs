//! `tharsis sql`: statements over files, from the command line, files, standard input or a shell.

mod bar;
mod completion;
mod mistakes;
mod place;
mod rows;
mod session;
mod shell;
mod statements;

pub use place::clean;

use crate::args::SqlArgs;
use crate::format::{self, Format, Shown};
use crate::interrupt::{self, Ends};
use crate::refusal::Refusal;
use anyhow::{Context, Result};
use mistakes::Origin;
use session::Session;
use statements::{Statement, Statements};
use std::io::{IsTerminal, Read};
use tharsis::frame::{
    CsvOptions, DataFrame, Error, SqlSession, WriteOptions, read_arrow, read_avro, read_csv, read_json,
    read_parquet,
};

/// Rows of a table that a terminal shows if the user does not say how many.
const ROWS_MAX: usize = 40;

/// Answers the statements that the user gives, one after the other; ends at the first that fails.
///
/// # Errors
/// `Query` with the class of the error and the place of the statement; those of the output.
pub fn run(asked: &SqlArgs) -> Result<()> {
    let view = view(asked)?;
    let is_given = !asked.statements().is_empty() || !asked.files.is_empty();
    let is_typed = !is_given && std::io::stdin().is_terminal();
    let file = asked.output.as_deref().filter(|path| *path != "-");
    if let (Some(path), Some(shown)) = (file, asked.format)
        && let Err(problem) = format::check_form(path, shown)
    {
        return Err(Refusal::TwoFormats { path: path.to_owned(), problem }.into());
    }
    if is_typed && file.is_some() {
        return Err(Refusal::Statements { problem: "-o FILE takes one query" }.into());
    }
    let _place = place::choose(asked)?;
    if is_typed {
        interrupt::watch(Ends::Statement)?;
        return shell::run(asked, view);
    }
    interrupt::watch(Ends::Command)?;
    interrupt::run(|| answer_all(asked, view, file))
}

fn answer_all(asked: &SqlArgs, view: rows::View, file: Option<&str>) -> Result<()> {
    let texts = texts(asked)?;
    let statements = asked.statements();
    if statements.iter().any(|text| is_file_of_statements(text)) {
        let problem = "a name that ends with .sql is a file of statements; -f FILE runs them";
        return Err(Refusal::Statements { problem }.into());
    }
    let is_none = texts.iter().all(|(_, text)| Statements::of(text).all().next().is_none());
    if !statements.is_empty() && is_none {
        return Err(Refusal::Statements { problem: "there is none" }.into());
    }
    if let Some(path) = file {
        let mut all = texts.iter().flat_map(|(_, text)| Statements::of(text).all());
        let (Some(query), None) = (all.next(), all.next()) else {
            let problem = "-o FILE takes one query; COPY .. TO 'x.csv' writes from among others";
            return Err(Refusal::Statements { problem }.into());
        };
        let file = texts.iter().find_map(|(name, _)| name.as_deref());
        return to_file(query, Origin { file, is_one: file.is_none() }, asked, path);
    }
    let mut session = Session::new(asked, view)?;
    let with_statements = |text: &str| Statements::of(text).all().next().is_some();
    let last = texts.iter().rposition(|(_, text)| with_statements(text));
    for (at, (name, text)) in texts.iter().enumerate() {
        session.run_all(name.as_deref(), text, last == Some(at))?;
    }
    Ok(())
}

/// The texts of the statements, each with the name of its file.
fn texts(asked: &SqlArgs) -> Result<Vec<(Option<String>, String)>> {
    let statements = asked.statements();
    if !statements.is_empty() {
        return Ok(statements.into_iter().map(|text| (None, text.to_owned())).collect());
    }
    if asked.files.is_empty() {
        return Ok(vec![(None, from_standard_input()?)]);
    }
    let read = |path: &String| match path.as_str() {
        "-" => Ok((None, from_standard_input()?)),
        path => {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|cause| Refusal::Unreadable { path: path.to_owned(), cause })?;
            Ok((Some(path.to_owned()), without_mark(text)))
        }
    };
    asked.files.iter().map(read).collect()
}

/// Whether a text is the name of a file of statements, and none itself.
fn is_file_of_statements(text: &str) -> bool {
    let text = text.trim();
    !text.contains(char::is_whitespace) && text.to_ascii_lowercase().ends_with(".sql")
}

/// A text without the mark that some editors begin it with.
fn without_mark(text: String) -> String {
    text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
}

fn from_standard_input() -> Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input")?;
    Ok(without_mark(text))
}

/// The way in which rows are shown: all of them, unless somebody looks.
fn view(asked: &SqlArgs) -> Result<rows::View> {
    let terminal = std::io::stdout().is_terminal();
    if terminal && asked.format == Some(Shown::Arrow) {
        return Err(Refusal::ArrowOnTerminal.into());
    }
    let rows_max = match asked.rows {
        None if terminal => ROWS_MAX,
        None | Some(0) => usize::MAX,
        Some(rows) => rows,
    };
    let default = if asked.output.is_some() { Shown::Csv } else { Shown::Table };
    let width = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    let width = if terminal && 0 < width { width } else { usize::MAX };
    Ok(rows::View { shown: asked.format.unwrap_or(default), rows_max, width })
}

/// Writes the rows of a query to a file, as they are made.
fn to_file(query: Statement<'_>, origin: Origin<'_>, asked: &SqlArgs, path: &str) -> Result<()> {
    let mut session = SqlSession::default();
    to_file_in(&mut session, query.text, asked, path).map_err(|cause| {
        let cause = session.placed(cause, query.text);
        mistakes::refusal(&cause, query, origin, 0).into()
    })
}

fn to_file_in(session: &mut SqlSession, query: &str, asked: &SqlArgs, path: &str) -> Result<(), Error> {
    for (name, path) in &asked.tables {
        session.register(name, &table(path)?)?;
    }
    for path in session::named_files(session, query)? {
        session.register(&path, &table(&path)?)?;
    }
    let rows = session.frame(query);
    rows.check()?;
    write(&rows, path)
}

/// The refusal of a file that is a table.
fn refused(cause: Error) -> Refusal {
    Refusal::Query { at: String::new(), cause: Box::new(cause.root().clone()), shown: String::new() }
}

/// Writes rows to a file in the format that its ending says.
fn write(rows: &DataFrame, path: &str) -> Result<(), Error> {
    match Format::of(path) {
        Some(Format::Csv) => rows.to_csv(path),
        Some(Format::Tsv) => rows.to_csv_with(path, WriteOptions::new().sep(b'\t')),
        Some(Format::Json) => rows.to_json(path),
        Some(Format::Arrow) => rows.to_arrow(path),
        // The words of the command have been checked: no other format is written.
        Some(Format::Parquet | Format::Avro) | None => rows.to_parquet(path),
    }?;
    Ok(())
}

/// The frame of a file, a folder or a pattern. In SQL a text such as NA is a text: what is missing is empty.
fn table(path: &str) -> Result<DataFrame, Error> {
    let options = CsvOptions::new().keep_default_na(false);
    Ok(match Format::of_files(path).map_err(Error::Value)? {
        Some(Format::Csv) => read_csv(path, options),
        Some(Format::Tsv) => read_csv(path, options.sep(b'\t')),
        Some(Format::Json) => read_json(path),
        Some(Format::Arrow) => read_arrow(path),
        Some(Format::Avro) => read_avro(path),
        Some(Format::Parquet) | None => read_parquet(path),
    })
}
