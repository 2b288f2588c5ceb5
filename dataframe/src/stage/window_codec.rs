//! Fields that the library leaves out of the messages of window functions.

use datafusion::common::{Result, ScalarValue, not_impl_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};
use datafusion_proto::protobuf::{PhysicalExprNode, PhysicalWindowExprNode};
use std::sync::Arc;

/// The functions of a window.
pub(super) fn functions(plan: &Arc<dyn ExecutionPlan>) -> Option<&[Arc<dyn WindowExpr>]> {
    match plan.downcast_ref::<BoundedWindowAggExec>() {
        Some(window) => Some(window.window_expr()),
        None => plan.downcast_ref::<WindowAggExec>().map(WindowAggExec::window_expr),
    }
}

/// Completes the message of a function, or refuses the function.
///
/// The library has no accessors for some of its fields. They are the last ones that it shows.
pub(super) fn complete(
    function: &Arc<dyn WindowExpr>,
    sent: &mut PhysicalWindowExprNode,
    encode: impl Fn(&Arc<dyn PhysicalExpr>) -> Result<PhysicalExprNode>,
) -> Result<()> {
    let standard = function.as_any().downcast_ref::<StandardWindowExpr>();
    let Some(standard) = standard else {
        return if format!("{function:?}").ends_with("filter: None }") {
            Ok(())
        } else {
            not_impl_err!("a window's aggregate with FILTER cannot run as a remote task")
        };
    };
    let shown = format!("{:?}", standard.get_standard_func_expr());
    let flags = [(false, false), (false, true), (true, false), (true, true)];
    let is_shown = |(reversed, ignores): &(bool, bool)| {
        shown.ends_with(&format!("is_reversed: {reversed}, ignore_nulls: {ignores} }}"))
    };
    let Some((reversed, ignores)) = flags.into_iter().find(is_shown) else {
        return not_impl_err!("the window's function {} cannot run as a remote task", function.name());
    };
    sent.ignore_nulls = ignores;
    let function = standard.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>();
    match function.filter(|_| reversed) {
        Some(function) => count_backwards(function, sent, encode),
        None => Ok(()),
    }
}

/// A function over rows in reverse order counts its offset from the other side.
fn count_backwards(
    function: &WindowUDFExpr,
    sent: &mut PhysicalWindowExprNode,
    encode: impl Fn(&Arc<dyn PhysicalExpr>) -> Result<PhysicalExprNode>,
) -> Result<()> {
    if !matches!(function.fun().name(), "lag" | "lead" | "nth_value") {
        return Ok(());
    }
    let offset = match function.args().get(1).map(|offset| offset.downcast_ref::<Literal>()) {
        None => ScalarValue::Int64(Some(-1)),
        Some(Some(offset)) => offset.value().arithmetic_negate()?,
        Some(None) => return not_impl_err!("an offset that is no literal cannot be sent"),
    };
    let offset: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(offset));
    sent.args.truncate(function.args().len());
    match sent.args.get_mut(1) {
        Some(sent) => *sent = encode(&offset)?,
        None => sent.args.push(encode(&offset)?),
    }
    Ok(())
}
