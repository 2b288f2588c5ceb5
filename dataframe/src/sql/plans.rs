//! The columns of a plan, and plans of other columns.

use datafusion::common::{Column, Result as EngineResult};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use std::sync::Arc;

/// The rows with these expressions for columns.
pub(super) fn projection(exprs: Vec<Expr>, rows: Arc<LogicalPlan>) -> EngineResult<Arc<LogicalPlan>> {
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, rows)?)))
}

/// The columns of a plan.
pub(super) fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    let columns = plan.schema().iter();
    columns.map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name()))).collect()
}
