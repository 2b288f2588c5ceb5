//! Plans whose rows are others in each run.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Volatility;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Whether a plan calls a function such as `random()` or `uuid()`.
pub(super) fn is_volatile(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut found = false;
    let visited = plan.apply(|node| {
        node.apply_expressions(&mut |expr| {
            found |= calls_volatile(expr)?;
            Ok(TreeNodeRecursion::Continue)
        })
    });
    // A plan that cannot be looked at may be one.
    found || visited.is_err()
}

fn calls_volatile(expr: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    expr.exists(|part| {
        Ok(part.downcast_ref::<ScalarFunctionExpr>().is_some_and(|call| {
            let function = call.fun();
            function.signature().volatility == Volatility::Volatile && !is_own(function.name())
        }))
    })
}

/// Functions of frames say that they are volatile so that planning leaves them where they are. Functions of
/// the program are taken for what they promise to be.
fn is_own(name: &str) -> bool {
    name.starts_with("tharsis_")
}
