//! A place in a statement of SQL.

use std::fmt;

/// The place of a mistake in a statement.
///
/// ```
/// use tharsis_dataframe::SqlSession;
/// let error = SqlSession::default().run("select (1").expect_err("no statement");
/// let place = error.sql_place().expect("a place");
/// assert_eq!(place.to_string(), "line 1, column 10");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlPlace {
    line: usize,
    column: usize,
    width: usize,
    text: String,
}

impl SqlPlace {
    /// So many characters of a text, from a line and a column that are counted from 1. It ends with its line.
    pub(crate) fn of(statement: &str, line: usize, column: usize, width: usize) -> SqlPlace {
        let text = statement.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
        let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
        let left = text.chars().count().saturating_sub(column.saturating_sub(1));
        SqlPlace { line, column, width: width.min(left).max(1), text }
    }

    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The first character of its line, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The number of characters, at least one.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The text of its line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for SqlPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}
