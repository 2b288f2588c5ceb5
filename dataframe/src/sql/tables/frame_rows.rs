//! Rows of frames in the plans of statements.
//!
//! The casts and the arithmetic of a frame have the meaning that frames give them, and its plan stays as it
//! is. While a statement gets the meaning of SQL, the rows of a frame are a leaf of its plan, into which no
//! step goes. Behind these steps the plan of the frame stands there again, where the library's rules find
//! scans, for filters and columns, and orders.

use crate::error::Result;
use datafusion::catalog::view::ViewTable;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchemaRef, Result as EngineResult};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A leaf that stands for the rows of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FrameRows {
    plan: Arc<LogicalPlan>,
}

/// The rows that the plan of a frame makes, as a table of statements.
pub(in crate::sql) fn table(plan: LogicalPlan) -> ViewTable {
    let node = Arc::new(FrameRows { plan: Arc::new(plan) });
    ViewTable::new(LogicalPlan::Extension(Extension { node }), None)
}

/// The plan of the frame whose rows an operator stands for; `None` for any other operator.
pub(in crate::sql) fn plan_of(node: &LogicalPlan) -> Option<&LogicalPlan> {
    let LogicalPlan::Extension(Extension { node }) = node else { return None };
    node.as_any().downcast_ref::<FrameRows>().map(|rows| &*rows.plan)
}

/// The plan in which the plans of frames stand for their rows.
pub(in crate::sql) fn put_in(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| {
        let plan = plan_of(&node).cloned();
        Ok(plan.map_or_else(|| Transformed::no(node), Transformed::yes))
    })?;
    Ok(changed.data)
}

impl PartialOrd for FrameRows {
    fn partial_cmp(&self, other: &FrameRows) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for FrameRows {
    fn name(&self) -> &str {
        "FrameRows"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        Vec::new()
    }

    fn schema(&self) -> &DFSchemaRef {
        self.plan.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrameRows")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, _: Vec<LogicalPlan>) -> EngineResult<FrameRows> {
        Ok(self.clone())
    }
}
