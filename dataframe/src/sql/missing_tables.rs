//! Names in a statement that a session has no table for.

use super::session::SqlSession;
use crate::engine::on_deep_stack;
use crate::error::Result;
use datafusion::common::TableReference;

impl SqlSession {
    /// Names of tables that a statement has and the session does not.
    ///
    /// ```
    /// use tharsis_dataframe::SqlSession;
    /// let session = SqlSession::default();
    /// let query = "with t as (select 1) select * from t, 'sales.csv'";
    /// assert_eq!(session.missing_tables(query)?, ["sales.csv"]);
    /// assert_eq!(session.missing_tables("summarize 'sales.csv'")?, ["sales.csv"]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for what is no SQL.
    pub fn missing_tables(&self, statement: &str) -> Result<Vec<String>> {
        let state = self.context.state();
        on_deep_stack(|| {
            let summary = super::summary::asked(statement);
            let query = summary.as_ref().map_or(statement, |summary| summary.query.as_str());
            let statement = super::parsed(&state, query)?;
            let mut missing = Vec::new();
            for name in state.resolve_table_references(&statement)? {
                if matches!(name, TableReference::Bare { .. }) && !self.context.table_exist(name.clone())? {
                    missing.push(name.table().to_owned());
                }
            }
            Ok(missing)
        })
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
