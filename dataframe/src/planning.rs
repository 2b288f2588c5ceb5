//! Plans made physical.

use crate::engine::{Settings, pin, session};
use crate::error::Result;
use crate::stage::read_here;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Optimises a plan and makes it physical.
pub(crate) async fn physical(plan: &LogicalPlan, settings: Settings) -> Result<Arc<dyn ExecutionPlan>> {
    let session = session(settings);
    read_here(session.create_physical_plan(plan).await?, &session.task_ctx()).await
}

/// Optimises a plan in the session of a user and makes it physical.
pub(crate) async fn physical_in(
    session: &SessionState,
    plan: &LogicalPlan,
    settings: Settings,
) -> Result<Arc<dyn ExecutionPlan>> {
    // Building a state makes its catalog anew otherwise, in place of that which the session shares.
    let mut config = session.config().clone().with_create_default_catalog_and_schema(false);
    pin(config.options_mut());
    settings.choose(config.options_mut());
    let planning = SessionStateBuilder::new_from_existing(session.clone()).with_config(config).build();
    read_here(planning.create_physical_plan(plan).await?, &session.task_ctx()).await
}

/// The number of parts of an expression, and whether one is a window; it stops counting behind a bound.
pub(crate) fn parts(expr: &Expr, bound: usize) -> (usize, bool) {
    let (mut count, mut window) = (0, false);
    let visited = expr.apply(|part| {
        count += 1;
        window |= matches!(part, Expr::WindowFunction(_));
        Ok(if count > bound { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    // No step of the visit fails.
    debug_assert!(visited.is_ok());
    (count, window)
}

/// Nodes below each other, and parts of an expression, for which the usual stack of a thread is enough.
const DEPTH_USUAL: usize = 30;
const PARTS_USUAL: usize = 100;

/// Whether a plan needs a large stack when it is optimised.
pub(crate) fn is_deep(plan: &LogicalPlan) -> bool {
    let mut rest = vec![(plan, 1)];
    while let Some((node, depth)) = rest.pop() {
        let mut large = depth > DEPTH_USUAL;
        let visited = node.apply_expressions(|expr| {
            large |= parts(expr, PARTS_USUAL).0 > PARTS_USUAL;
            Ok(TreeNodeRecursion::Continue)
        });
        // No step of the visit fails.
        debug_assert!(visited.is_ok());
        if large {
            return true;
        }
        rest.extend(node.inputs().into_iter().map(|input| (input, depth + 1)));
    }
    false
}
