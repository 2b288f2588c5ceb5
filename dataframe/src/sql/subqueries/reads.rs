//! Columns of the rows around a subquery that it reads.

use datafusion::common::Column;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::logical_plan::SubqueryAlias;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

/// The columns around a plan that it reads, each once. Subqueries within it that are left to the library read
/// its own columns alone.
pub(in crate::sql) fn outer_columns(plan: &LogicalPlan) -> Vec<Column> {
    let mut found: Vec<Column> = Vec::new();
    // The closures do not fail.
    let _whole = plan.apply(|node| {
        if matches!(node, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::OuterReferenceColumn(_, column) = part
                    && !found.contains(column)
                {
                    found.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    found
}

/// Whether the rows of a plan are others for another row around it.
pub(in crate::sql) fn depends(plan: &LogicalPlan) -> bool {
    !outer_columns(plan).is_empty()
}

/// The lateral query that a side of a join is.
pub(in crate::sql) fn lateral_of(mut side: &LogicalPlan) -> Option<&Subquery> {
    loop {
        side = match side {
            LogicalPlan::Subquery(lateral) => return Some(lateral),
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => input,
            _ => return None,
        };
    }
}
