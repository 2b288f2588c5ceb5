//! A session of the user: statements in turn, tables, and files by their paths.

use super::bar;
use super::mistakes::{self, Origin};
use super::rows::{self, View};
use super::statements::{Statement, Statements};
use super::table;
use crate::args::SqlArgs;
use crate::format::{Format, Shown};
use crate::output;
use crate::refusal::UNREAD;
use anyhow::Result;
use std::io::Write;
use tharsis::frame::{Error, Progress, SqlAnswer, SqlSession, Table};

/// The statements of a user.
pub struct Session {
    inner: SqlSession,
    progress: Progress,
    /// The way in which rows are written.
    pub view: View,
    is_explained: bool,
}

impl Session {
    /// A session with the tables of the command line.
    ///
    /// # Errors
    /// `Query` for a file that cannot be read.
    pub fn new(asked: &SqlArgs, view: View) -> Result<Session> {
        let progress = Progress::default();
        let mut inner = SqlSession::default().progress(&progress);
        for (name, path) in &asked.tables {
            table(path).and_then(|table| inner.register(name, &table)).map_err(super::refused)?;
        }
        Ok(Session { inner, progress, view, is_explained: asked.explain })
    }

    /// Answers all statements of a text on standard output, up to the first that fails. If its reader goes
    /// away, the status tells whether statements are left, of this text or of another.
    ///
    /// # Errors
    /// `Query` with the file and line of the statement that fails, if there are several.
    pub fn run_all(&mut self, file: Option<&str>, text: &str, is_last: bool) -> Result<()> {
        let statements: Vec<Statement<'_>> = Statements::of(text).all().collect();
        let origin = Origin { file, is_one: file.is_none() && statements.len() < 2 };
        let to = &mut output::Stream::new();
        for (number, statement) in statements.iter().enumerate() {
            let are_left = !is_last || number + 1 < statements.len();
            output::end_unread_with(if are_left { UNREAD } else { 0 });
            self.answer(*statement, origin, to)?;
        }
        Ok(())
    }

    /// Answers a statement.
    ///
    /// # Errors
    /// `Query` with the place of the mistake, or an error of the output.
    pub fn answer(&mut self, statement: Statement<'_>, origin: Origin<'_>, to: &mut dyn Write) -> Result<()> {
        let progress = self.progress.clone();
        let answer = bar::shown(&progress, || self.execute(statement.text));
        let answer = answer
            .map_err(|cause| mistakes::refusal(&cause, statement, origin, usize::from(self.is_explained)))?;
        match answer {
            SqlAnswer::Rows(table) => match plans(&table) {
                Some(plans) if self.view.shown == Shown::Table => write!(to, "{plans}")?,
                _ => rows::write(&table, self.view, to).map_err(|error| match error.downcast::<Error>() {
                    // A column that the form has no texts for.
                    Ok(cause @ Error::Type(_)) => mistakes::refusal(&cause, statement, origin, 0).into(),
                    Ok(cause) => cause.into(),
                    Err(error) => error,
                })?,
            },
            SqlAnswer::Changed(rows) if self.view.shown == Shown::Table => {
                writeln!(to, "{} changed", rows::counted(rows, "row"))?
            }
            SqlAnswer::Changed(_) | SqlAnswer::Done => {}
        }
        Ok(to.flush()?)
    }

    /// Files of a statement are tables for as long as it runs: the next one looks at them anew. None stays
    /// one, whatever fails.
    fn execute(&mut self, statement: &str) -> Result<SqlAnswer, Error> {
        let paths = named_files(&self.inner, statement)?;
        // On a line of its own: the places in the statement stay.
        let text = if self.is_explained { format!("explain\n{statement}") } else { statement.to_owned() };
        let mut known = 0;
        let registered = paths.iter().try_for_each(|path| {
            let registered = table(path).and_then(|table| self.inner.register(path, &table));
            registered.map_err(|cause| self.inner.placed(cause, &text))?;
            known += 1;
            Ok(())
        });
        let answer = registered.and_then(|()| self.inner.execute(&text));
        let forgotten = paths[..known].iter().map(|path| self.inner.forget(path));
        let forgotten: Vec<Result<(), Error>> = forgotten.collect();
        answer.and_then(|answer| forgotten.into_iter().collect::<Result<(), Error>>().map(|()| answer))
    }

    /// A column of the rows of a query; nothing if it fails.
    pub fn words(&mut self, statement: &str, column: &str) -> Vec<String> {
        match self.inner.execute(statement) {
            Ok(SqlAnswer::Rows(table)) => table
                .column::<String>(column)
                .map(|words| words.into_iter().flatten().collect())
                .unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}

/// The paths among the names of tables that a statement has and a session does not: of files by their ending,
/// patterns, and folders with a slash behind.
///
/// # Errors
/// Those of a text that is no SQL.
pub fn named_files(session: &SqlSession, statement: &str) -> Result<Vec<String>, Error> {
    let is_path = |name: &String| Format::of(name).is_some() || name.ends_with(['/', '*']);
    Ok(session.missing_tables(statement)?.into_iter().filter(is_path).collect())
}

/// The text of a plan, which a table would cut.
fn plans(table: &Table) -> Option<String> {
    if table.columns() != ["plan_type", "plan"] {
        return None;
    }
    let (kinds, plans) = (table.column::<String>("plan_type").ok()?, table.column::<String>("plan").ok()?);
    let texts = kinds.into_iter().zip(plans).map(|(kind, plan)| {
        let plan = plan.unwrap_or_default();
        format!("{}:\n{}\n", kind.unwrap_or_default(), plan.trim_end())
    });
    Some(texts.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use clap::Parser;

    #[test]
    fn no_file_of_a_statement_that_fails_stays_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("a.csv"), "a\n1\n").unwrap();
        let Command::Sql(asked) = Args::try_parse_from(["tharsis", "sql"]).unwrap().command else {
            panic!("another command");
        };
        let view = View { shown: Shown::Table, rows_max: usize::MAX, width: usize::MAX };
        let mut session = Session::new(&asked, view).unwrap();
        let both = format!("select * from '{}' x, '{}' y, '{0}' z", path("a.csv"), path("no.csv"));
        for statement in [both, format!("select nothing from '{}'", path("a.csv"))] {
            session.execute(&statement).unwrap_err();
            let left = session.inner.missing_tables(&format!("select * from '{}'", path("a.csv"))).unwrap();
            assert_eq!(left, [path("a.csv")], "{statement}");
        }
    }
}
