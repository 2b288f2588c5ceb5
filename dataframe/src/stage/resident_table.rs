//! Resident tables as the planner reads them.

use super::input::InputExec;
use super::part::Resident;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as EngineResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// A resident table, as the library's planner wants it.
#[derive(Debug)]
pub(crate) struct ResidentTable(Arc<Resident>);

impl ResidentTable {
    pub(crate) fn new(table: Resident) -> ResidentTable {
        ResidentTable(Arc::new(table))
    }
}

#[async_trait::async_trait]
impl TableProvider for ResidentTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(InputExec::of_table(&self.0, projection.cloned())?))
    }
}
