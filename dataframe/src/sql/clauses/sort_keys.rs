//! Keys of orders that the library cannot follow.
//!
//! It asks keys for the bounds of their values. Where it gets none, it takes rows that were just sorted for
//! rows in no order, and refuses what it has planned itself. Such keys are columns of a projection below.

use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::logical_plan::Window;
use datafusion::logical_expr::{Aggregate, BinaryExpr, Expr, Operator};

/// Whether a window has such keys.
pub(in crate::sql) fn has_computed_keys(window: &Window) -> EngineResult<bool> {
    let mut found = false;
    for expr in &window.window_expr {
        expr.apply(|part| {
            if let Expr::WindowFunction(call) = part {
                let order = call.params.order_by.iter().map(|key| &key.expr);
                for key in call.params.partition_by.iter().chain(order) {
                    found |= is_unbounded(key)?;
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

/// Whether an order has such keys.
pub(in crate::sql) fn has_unbounded(keys: &[SortKey]) -> EngineResult<bool> {
    for key in keys {
        if is_unbounded(&key.expr)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a key has a part of which the library may know neither bounds nor type when it asks for the order
/// of rows. Then it compares bounds of different types, as in `abs(CASE ..)`, or gives up on those outside
/// what a function takes, as in `sqrt(a)`, and takes sorted rows for rows in no order.
pub(in crate::sql) fn is_unbounded(key: &Expr) -> EngineResult<bool> {
    let is_operand = |part: &Expr| {
        matches!(part, Expr::Alias(_) | Expr::Column(_) | Expr::Literal(..) | Expr::OuterReferenceColumn(..))
    };
    // A product of a column, which has no bounds, has none of its type.
    let is_product =
        |binary: &BinaryExpr| matches!(binary.op, Operator::Multiply | Operator::Divide | Operator::Modulo);
    let is_operator = |part: &Expr| match part {
        Expr::BinaryExpr(binary) => !is_product(binary),
        part => matches!(part, Expr::Between(_) | Expr::Cast(_) | Expr::Negative(_) | Expr::Not(_)),
    };
    key.exists(|part| Ok(!is_operand(part) && !is_operator(part)))
}

/// Whether there are aggregates of rows in an order by such keys.
pub(in crate::sql) fn has_computed_orders(aggregate: &Aggregate) -> EngineResult<bool> {
    let mut found = false;
    for expr in &aggregate.aggr_expr {
        found |= expr.exists(|part| match part {
            Expr::AggregateFunction(call) if !call.params.distinct => has_unbounded(&call.params.order_by),
            _ => Ok(false),
        })?;
    }
    Ok(found)
}
