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
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for what is no SQL.
    pub fn missing_tables(&self, statement: &str) -> Result<Vec<String>> {
        let state = self.context.state();
        let dialect = state.config().options().sql_parser.dialect;
        on_deep_stack(|| {
            let statement = state.sql_to_statement(statement, &dialect)?;
            let mut missing = Vec::new();
            for name in state.resolve_table_references(&statement)? {
                if matches!(name, TableReference::Bare { .. }) && !self.context.table_exist(name.clone())? {
                    missing.push(name.table().to_owned());
                }
            }
            Ok(missing)
        })
    }
}
