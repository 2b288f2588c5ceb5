//! Plans as texts.

use crate::error::Result;
use crate::explain::Explanation;
use crate::metrics::Metrics;
use crate::planning::Optimised;
use crate::stage::Stages;
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;

/// The optimised plan and its stages, with times and rows if it was run: a row each.
pub(super) fn plans(
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
    let stages = stages.to_string();
    let optimised = Optimised::of(plan, session)?.text();
    let kinds: ArrayRef = Arc::new(StringArray::from(vec!["logical_plan", "stages"]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![optimised.as_str(), stages.trim_end()]));
    Ok(RecordBatch::try_from_iter([("plan_type", kinds), ("plan", texts)])?)
}
