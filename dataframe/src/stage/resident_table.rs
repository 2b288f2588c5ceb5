//! Resident tables in plans.

use super::input::InputExec;
use super::part::Resident;
use crate::engine_future::EngineFuture;
use crate::scanned::{Scan, ScannedTable};
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use std::future::ready;
use std::sync::Arc;

/// A resident table that plans scan.
#[derive(Debug)]
pub(crate) struct ResidentTable(Arc<Resident>);

impl ResidentTable {
    pub(crate) fn new(table: Resident) -> ResidentTable {
        ResidentTable(Arc::new(table))
    }
}

impl ScannedTable for ResidentTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn scan<'a>(&'a self, scan: Scan<'a>) -> EngineFuture<'a, Arc<dyn ExecutionPlan>> {
        Box::pin(ready(InputExec::scan_of_table(&self.0, scan.projection)))
    }
}
