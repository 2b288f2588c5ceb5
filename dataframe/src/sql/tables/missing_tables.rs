//! Names in a statement that a session has no table for.

use crate::engine::on_deep_stack;
use crate::error::Result;
use crate::sql::faults::mistakes::in_begin;
use crate::sql::session::SqlSession;
use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use std::borrow::Cow;

impl SqlSession {
    /// Names of tables that a statement has and the session does not.
    ///
    /// ```
    /// use tharsis_dataframe::SqlSession;
    /// let session = SqlSession::default();
    /// let query = "with t as (select 1) select * from t, 'sales.csv'";
    /// assert_eq!(session.missing_tables(query)?, ["sales.csv"]);
    /// assert_eq!(session.missing_tables("summarize 'sales.csv'")?, ["sales.csv"]);
    /// let query = "select * from (summarize 'sales.csv') s join 'shops.csv' on true";
    /// assert_eq!(session.missing_tables(query)?, ["sales.csv", "shops.csv"]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for what is no SQL.
    pub fn missing_tables(&self, statement: &str) -> Result<Vec<String>> {
        let state = self.context.state();
        on_deep_stack(|| {
            let (mut whole, mut missing) = (Cow::Borrowed(statement), Vec::new());
            let mut as_written = statement.len();
            while let Some(summary) = crate::sql::clauses::summary::asked(&whole, &state) {
                let added = self.add_missing(&state, &summary.query, &mut missing);
                added.map_err(|error| in_begin(error, statement, as_written))?;
                as_written = as_written.min(summary.before.len());
                whole = Cow::Owned(summary.left_out());
            }
            let added = self.add_missing(&state, &whole, &mut missing);
            added.map_err(|error| in_begin(error, statement, as_written))?;
            Ok(missing)
        })
    }

    fn add_missing(&self, state: &SessionState, query: &str, missing: &mut Vec<String>) -> Result<()> {
        for name in state.resolve_table_references(&crate::sql::parsed(state, query)?)? {
            let is_bare = matches!(name, TableReference::Bare { .. });
            let is_new = is_bare && !missing.iter().any(|known| known == name.table());
            if is_new && !self.context.table_exist(name.clone())? {
                missing.push(name.table().to_owned());
            }
        }
        Ok(())
    }

    /// Takes the name of a table away, if it has one. Views of it keep what they show.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn forget(&mut self, name: &str) -> Result<()> {
        self.context.deregister_table(TableReference::bare(name))?;
        self.forget_lower_names()
    }
}
