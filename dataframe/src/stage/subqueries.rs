//! Subqueries that give one value. Each is a stage of its own; a fragment that reads its value reads its row
//! first.

use crate::error::Result;
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::physical_planning_context::ScalarSubqueryResults;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::scalar_subquery::{ScalarSubqueryExec, ScalarSubqueryLink};
use std::sync::Arc;

/// Readers of the rows of subqueries, and the place of their values.
pub(super) struct Subqueries {
    pub(super) readers: Vec<ScalarSubqueryLink>,
    pub(super) values: ScalarSubqueryResults,
}

impl Subqueries {
    /// The fragment, which sets the values first if it reads any of them.
    pub(super) fn set_for(&self, fragment: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut reads = false;
        fragment.apply(|node| {
            node.apply_expressions(&mut |expr| {
                reads |= self.are_read_by(expr);
                Ok(TreeNodeRecursion::Continue)
            })?;
            Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(if reads {
            let (readers, values) = (self.readers.clone(), self.values.clone());
            Arc::new(ScalarSubqueryExec::new(fragment, readers, values))
        } else {
            fragment
        })
    }

    /// Whether an expression reads one of these values.
    pub(super) fn are_read_by(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        let value = expr.downcast_ref::<ScalarSubqueryExpr>();
        value.is_some_and(|value| *value.results() == self.values)
            || expr.children().into_iter().any(|part| self.are_read_by(part))
    }
}

/// Shows the expressions of an operator of ours to a visitor, such as the one that looks for values of
/// subqueries.
pub(super) fn visit_roots<'a>(
    exprs: impl IntoIterator<Item = &'a Arc<dyn PhysicalExpr>>,
    visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
) -> EngineResult<TreeNodeRecursion> {
    for expr in exprs {
        if visit(expr)? == TreeNodeRecursion::Stop {
            return Ok(TreeNodeRecursion::Stop);
        }
    }
    Ok(TreeNodeRecursion::Continue)
}
