//! Plans as texts.

use crate::error::{Error, Result};
use crate::explain::Explanation;
use crate::metrics::Metrics;
use crate::planning::{Optimised, statement_name};
use crate::sql::names::namesakes::plain_text;
use crate::stage::Stages;
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, DmlStatement, LogicalPlan, WriteOp};
use std::sync::Arc;

/// The optimised plan and its stages, with times and rows if it was run: a row each.
pub(in crate::sql) fn plans(
    plan: &LogicalPlan,
    stages: &Stages,
    metrics: Option<&Metrics>,
    session: &SessionState,
) -> Result<RecordBatch> {
    let stages = Explanation::new(stages);
    let stages = match metrics {
        Some(metrics) => stages.with_metrics(metrics),
        None => stages,
    };
    let stages = plain_text(stages.to_string().trim_end());
    let optimised = plain_text(&Optimised::of(plan, session)?.text());
    let kinds: ArrayRef = Arc::new(StringArray::from(vec!["logical_plan", "stages"]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![optimised, stages]));
    Ok(RecordBatch::try_from_iter([("plan_type", kinds), ("plan", texts)])?)
}

/// The query that makes the rows of a statement: its tasks are those of the statement.
pub(in crate::sql) fn query_of(statement: &LogicalPlan) -> Result<&LogicalPlan> {
    match statement {
        LogicalPlan::Copy(copy) => Ok(&copy.input),
        LogicalPlan::Dml(DmlStatement { op: WriteOp::Insert(_), input, .. }) => Ok(input),
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => Ok(&table.input),
        plan => match statement_name(plan) {
            None => Ok(plan),
            Some(name) => Err(Error::NotImplemented(format!("EXPLAIN of {name} is not supported"))),
        },
    }
}

/// Refuses to run a statement for its times.
pub(in crate::sql) fn check_query(plan: &LogicalPlan) -> Result<()> {
    let Some(name) = statement_name(plan) else { return Ok(()) };
    Err(Error::NotImplemented(format!(
        "EXPLAIN ANALYZE of {name} is not supported, since it runs what it explains: EXPLAIN ANALYZE its query"
    )))
}
