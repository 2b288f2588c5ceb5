//! Tables that statements make and change.

use crate::engine_future::EngineFuture;
use crate::error::Result;
use crate::stage::{InputExec, KeptPart, Resident};
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Constraints;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, PoisonError, RwLock};

/// A table whose rows are replaced as a whole: a query reads those of the moment when it was planned.
#[derive(Debug)]
pub(super) struct SessionTable {
    rows: RwLock<Arc<Resident>>,
    constraints: Constraints,
    defaults: HashMap<String, Expr>,
}

impl SessionTable {
    /// A table of these rows.
    pub(super) fn new(
        rows: Resident,
        constraints: Constraints,
        defaults: impl IntoIterator<Item = (String, Expr)>,
    ) -> SessionTable {
        SessionTable {
            rows: RwLock::new(Arc::new(rows)),
            constraints,
            defaults: defaults.into_iter().collect(),
        }
    }

    /// The rows at this moment.
    pub(super) fn rows(&self) -> Arc<Resident> {
        Arc::clone(&self.rows.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the rows. Parts in memory must fit the declaration; others are checked when they are read.
    pub(super) fn put(&self, parts: Vec<Arc<dyn KeptPart>>) -> Result<()> {
        let schema = Arc::clone(&self.rows().schema);
        for part in &parts {
            super::change::check_missing(&schema, part)?;
        }
        *self.rows.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Resident { schema, parts });
        Ok(())
    }
}

impl TableProvider for SessionTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.rows().schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    fn scan<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        _: &'life1 dyn Session,
        projection: Option<&'life2 Vec<usize>>,
        _: &'life3 [Expr],
        _: Option<usize>,
    ) -> EngineFuture<'async_trait, Arc<dyn ExecutionPlan>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(ready(InputExec::scan_of_table(&self.rows(), projection)))
    }
}
