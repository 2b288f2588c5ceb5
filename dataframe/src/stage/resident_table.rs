//! Resident tables as the planner reads them.

use super::input::InputExec;
use super::part::Resident;
use crate::engine_future::EngineFuture;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::future::ready;
use std::sync::Arc;

/// A resident table, as the library's planner wants it.
#[derive(Debug)]
pub(crate) struct ResidentTable(Arc<Resident>);

impl ResidentTable {
    pub(crate) fn new(table: Resident) -> ResidentTable {
        ResidentTable(Arc::new(table))
    }
}

impl TableProvider for ResidentTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
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
        Box::pin(ready(InputExec::scan_of_table(&self.0, projection)))
    }
}
