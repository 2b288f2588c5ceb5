//! Windows over the order of rows.
//!
//! A window is an expression like any other: a series may hold it among others. It becomes a node of a plan
//! where the series is made a column ([`Frame::lifted`]), so that series of one frame need no join to meet.
//!
//! Rows of a window without keys are all in one task, which sorts and reads them once. Running sums, filled
//! values and shifts could be computed in blocks instead: each task handles the rows of its partition, a
//! second stage adds what the partitions before carry over (a sum, the last values, the last `n` rows).

mod applied;
mod fill;
mod over;
mod pairs;
mod rolling;
mod span;
mod spans;
mod step;

pub use fill::{FillLimit, LimitArea, LimitDirection};
pub(crate) use over::Over;
pub use rolling::{Ewm, Rolling};
pub use spans::{Ends, SpanRolling};
pub(crate) use step::{Fading, Step};
pub use step::{NaOption, Rank, RankMethod};

use super::{DataFrame, Frame, HIDDEN, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlanBuilder, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition, lit,
};
use std::collections::HashSet;
use std::sync::Arc;

/// Stands for the order of the frame's rows in a window, until the window becomes a node.
const IN_ORDER: &str = "__tharsis_in_order";

/// The order of the frame's rows, as the sort of a window.
pub(crate) fn in_order() -> SortExpr {
    lit(IN_ORDER).sort(true, false)
}

/// The order of the frame's rows from the last to the first.
pub(crate) fn from_end() -> SortExpr {
    lit(IN_ORDER).sort(false, false)
}

/// Rows from some before to some after each row; all if there is no number.
pub(crate) fn rows(before: Option<u64>, after: Option<u64>) -> WindowFrame {
    between_rows(before, after.map(|after| after as i64))
}

/// As [`rows`], with a last row that stands before each row if its number is negative.
pub(crate) fn between_rows(before: Option<u64>, after: Option<i64>) -> WindowFrame {
    let bound = |rows| datafusion::common::ScalarValue::UInt64(rows);
    let end = match after {
        Some(0) => WindowFrameBound::CurrentRow,
        Some(before @ ..0) => WindowFrameBound::Preceding(bound(Some(before.unsigned_abs()))),
        after => WindowFrameBound::Following(bound(after.map(i64::unsigned_abs))),
    };
    WindowFrame::new_bounds(WindowFrameUnits::Rows, WindowFrameBound::Preceding(bound(before)), end)
}

/// A window expression.
pub(crate) fn window(
    fun: impl Into<WindowFunctionDefinition>,
    args: Vec<Expr>,
    keys: &[Expr],
    order_by: Vec<SortExpr>,
    window_frame: WindowFrame,
) -> Expr {
    let params = WindowFunctionParams {
        args,
        partition_by: keys.to_vec(),
        order_by,
        window_frame,
        filter: None,
        null_treatment: None,
        distinct: false,
    };
    Expr::from(WindowFunction { fun: fun.into(), params })
}

/// An expression with aggregates, each computed over a window.
pub(crate) fn over_window(
    aggregate: Expr,
    keys: &[Expr],
    order: Vec<SortExpr>,
    frame: WindowFrame,
) -> Result<Expr> {
    let changed = aggregate.transform_up(|expr| match expr {
        Expr::AggregateFunction(call) => {
            let mut over = WindowFunction::new(call.func, call.params.args);
            over.params.partition_by = keys.to_vec();
            over.params.order_by.clone_from(&order);
            over.params.window_frame = frame.clone();
            over.params.distinct = call.params.distinct;
            over.params.null_treatment = call.params.null_treatment;
            Ok(Transformed::yes(Expr::from(over)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(changed.data)
}

impl Frame {
    /// The frame with hidden columns for the windows in these expressions, and the expressions over them.
    pub(crate) fn lifted(&self, mut exprs: Vec<Expr>) -> Result<(Frame, Vec<Expr>)> {
        let mut windows = innermost(&exprs)?;
        if windows.is_empty() {
            return Ok((self.clone(), exprs));
        }
        // Also a window without an order moves rows.
        let mut frame = self.with_order()?;
        while !windows.is_empty() {
            let mut columns = Vec::new();
            for window in &windows {
                columns.push(frame.resolve(window.clone())?);
            }
            let fields = frame.plan.schema().fields().iter();
            let taken: HashSet<String> = fields.map(|field| field.name().clone()).collect();
            let fields = frame.plan.schema().fields().iter();
            let mut plain: Vec<Expr> = fields.map(|field| named(field.name())).collect();
            frame.plan = LogicalPlanBuilder::window_plan(frame.plan.clone(), columns.clone())?;
            let mut names = Vec::new();
            let mut number = plain.len();
            for column in &columns {
                // An earlier window may have this number: it may be a key of the order, in a plan that has
                // lost other columns since.
                let mut name = format!("{HIDDEN}window_{number}");
                while taken.contains(&name) {
                    number += 1;
                    name = format!("{HIDDEN}window_{number}");
                }
                number += 1;
                plain.push(named(&column.schema_name().to_string()).alias(&name));
                names.push(name);
            }
            frame.plan = frame.builder().project(plain)?.build()?;
            exprs = replace(exprs, &windows, &names)?;
            windows = innermost(&exprs)?;
        }
        Ok((frame, exprs))
    }

    /// A window with the frame's order in place of its sign.
    fn resolve(&self, window: Expr) -> Result<Expr> {
        let Expr::WindowFunction(mut window) = window else {
            return Err(Error::Internal("a window that is none".to_owned()));
        };
        let is_sign = |key: &SortExpr| key.expr == lit(IN_ORDER);
        let mut order = Vec::new();
        for key in std::mem::take(&mut window.params.order_by) {
            match (is_sign(&key), key.asc) {
                (false, _) => order.push(key),
                (true, true) => order.extend(self.sort_exprs()),
                (true, false) => order.extend(self.sort_exprs().into_iter().map(|key| SortExpr {
                    asc: !key.asc,
                    nulls_first: !key.nulls_first,
                    ..key
                })),
            }
        }
        window.params.order_by = order;
        Ok(Expr::WindowFunction(window))
    }
}

/// The windows of expressions that have no window within, each once.
fn innermost(exprs: &[Expr]) -> Result<Vec<Expr>> {
    let mut found: Vec<Expr> = Vec::new();
    for expr in exprs {
        expr.apply(|part| {
            let Expr::WindowFunction(window) = part else { return Ok(TreeNodeRecursion::Continue) };
            let mut within = false;
            let sorts = window.params.order_by.iter().map(|key| &key.expr);
            for inner in window.params.args.iter().chain(&window.params.partition_by).chain(sorts) {
                within |= inner.exists(|inner| Ok(matches!(inner, Expr::WindowFunction(_))))?;
            }
            if !within && !found.contains(part) {
                found.push(part.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

/// Expressions with columns in place of windows.
fn replace(exprs: Vec<Expr>, windows: &[Expr], names: &[String]) -> Result<Vec<Expr>> {
    let column = |expr: &Expr| windows.iter().position(|window| window == expr).map(|at| named(&names[at]));
    let replaced = exprs.into_iter().map(|expr| {
        let changed = expr.transform_down(|part| match column(&part) {
            Some(column) => Ok(Transformed::new(column, true, TreeNodeRecursion::Jump)),
            None => Ok(Transformed::no(part)),
        })?;
        Ok(changed.data)
    });
    replaced.collect()
}

impl Series {
    /// A step over the order of all rows.
    #[track_caller]
    pub(crate) fn window_step(&self, step: &Step) -> Series {
        let made = self.parts().and_then(|(frame, expr)| {
            let dtype = expr.get_type(frame.plan.schema())?;
            let stepped = Over::default().step(step, expr.clone(), &dtype)?;
            Ok((Arc::clone(frame), stepped))
        });
        Series::new(made, self.name().map(str::to_owned))
    }
}

impl DataFrame {
    /// A step over the order of all rows, in each column that it is made for.
    #[track_caller]
    pub(crate) fn window_step(&self, step: &Step) -> DataFrame {
        self.then(|frame| {
            let mut columns = Vec::new();
            for column in &frame.columns {
                let dtype = frame.dtype(column)?;
                // pandas refuses a frame with texts here; elsewhere columns are left out.
                if step.fits(&dtype) || matches!(step, Step::Interpolate(_)) {
                    columns.push((column.clone(), Over::default().step(step, named(column), &dtype)?));
                }
            }
            frame.project(columns)
        })
    }
}
