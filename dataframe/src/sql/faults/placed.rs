//! The places of errors that come from beside a session, such as those of the files that a statement names.

use super::mistakes;
use crate::error::Error;
use crate::sql::session::SqlSession;

impl SqlSession {
    /// An error with the place in a statement that it is about, if that is known: the path of a file, or a
    /// value of the statement.
    ///
    /// ```
    /// use tharsis_dataframe::{CsvOptions, SqlSession, read_csv};
    /// let missing = read_csv("no.csv", CsvOptions::new()).check().expect_err("no such file");
    /// let placed = SqlSession::default().placed(missing, "select * from 'no.csv'");
    /// assert_eq!(placed.sql_place().map(|place| place.column()), Some(15));
    /// ```
    #[must_use]
    pub fn placed(&self, error: Error, statement: &str) -> Error {
        if error.sql_place().is_some() {
            return error;
        }
        mistakes::of_run(error.root().clone(), statement, &self.context.state())
    }
}
