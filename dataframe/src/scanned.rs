//! Tables as DataFusion's planner wants them: [`Scanned`] around a type that says what a scan of it reads.

use crate::engine_future::EngineFuture;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraints, Result as EngineResult};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::fmt::Debug;
use std::sync::Arc;

/// A table that plans scan.
pub(crate) trait ScannedTable: Debug + Send + Sync + 'static {
    fn schema(&self) -> SchemaRef;

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn constraints(&self) -> Option<&Constraints> {
        None
    }

    fn column_default(&self, _column: &str) -> Option<&Expr> {
        None
    }

    /// The part that a scan takes in the work of each filter.
    fn pushed_filters(&self, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
        vec![TableProviderFilterPushDown::Unsupported; filters.len()]
    }

    /// The plan of a scan.
    fn scan<'a>(&'a self, scan: Scan<'a>) -> EngineFuture<'a, Arc<dyn ExecutionPlan>>;

    /// The table as plans refer to it.
    fn source(self) -> Arc<dyn TableSource>
    where
        Self: Sized,
    {
        provider_as_source(Arc::new(Scanned(self)))
    }
}

/// The rows and columns of a table that a plan reads.
pub(crate) struct Scan<'a> {
    pub(crate) session: &'a dyn Session,
    /// The columns to read, by their positions, if not all.
    pub(crate) projection: Option<&'a Vec<usize>>,
    /// The filters that the table takes a part in.
    pub(crate) filters: &'a [Expr],
    /// The number of rows that are enough.
    pub(crate) limit: Option<usize>,
}

/// A table as DataFusion's planner wants it.
#[derive(Debug)]
pub(crate) struct Scanned<T>(pub(crate) T);

impl<T: ScannedTable> Scanned<T> {
    /// The table of a provider, if it has this type.
    pub(crate) fn table_of(provider: &dyn TableProvider) -> Option<&T> {
        provider.downcast_ref::<Scanned<T>>().map(|scanned| &scanned.0)
    }
}

impl<T: ScannedTable> TableProvider for Scanned<T> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.0.constraints()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.0.column_default(column)
    }

    fn scan<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        session: &'life1 dyn Session,
        projection: Option<&'life2 Vec<usize>>,
        filters: &'life3 [Expr],
        limit: Option<usize>,
    ) -> EngineFuture<'async_trait, Arc<dyn ExecutionPlan>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
        Self: 'async_trait,
    {
        self.0.scan(Scan { session, projection, filters, limit })
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        Ok(self.0.pushed_filters(filters))
    }
}
