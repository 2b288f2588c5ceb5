//! Large expressions as columns of their own, and bounds of plans and expressions.
//!
//! A series is an expression, and a step on it may need it several times: `s + s`, `s * (s - 1)`. Expressions
//! are trees, so that thirty such steps would make 2^30 parts; and each rule of planning takes time that
//! grows with the square of an expression, since it makes its name for every part. So an expression of more
//! than [`PARTS_SHARED`] parts becomes a hidden column of its frame, and the series is that column. Frames
//! that differ in hidden columns only have the same rows: [`Frame::meeting`] gives one with the columns of
//! both. Columns that are set again and again are taken [`apart`] in the same way.
//!
//! Planning would put such columns together again. It leaves alone a column that is used twice, and pushes no
//! filter below one that is volatile: see [`kept`] and [`read`].
//!
//! A plan has a bound too: the library walks it by recursion, and a stack that overflows ends the process.

use super::{Frame, HIDDEN, named};
use crate::error::{Error, Result};
use crate::functions::arithmetic::{is_kept, kept, read};
use crate::planning::parts;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts of an expression that is kept as it is.
const PARTS_SHARED: usize = 100;
/// Parts of a condition that is kept as it is: readers of files can prune by it.
const PARTS_OF_CONDITION: usize = 1_500;
/// Parts of an expression that cannot be a column: one with windows, whose rows have another order.
const PARTS_MAX: usize = 50_000;
/// Nodes of a plan.
const NODES_MAX: usize = 50_000;
/// Nodes of a plan below each other.
const DEPTH_MAX: usize = 500;

/// An expression that is not too large to be used again: itself, or a hidden column with its values.
pub(super) fn shared(frame: Arc<Frame>, expr: Expr) -> Result<(Arc<Frame>, Expr)> {
    let is_condition =
        matches!(&expr, Expr::BinaryExpr(both) if matches!(both.op, Operator::And | Operator::Or));
    let bound = if is_condition { PARTS_OF_CONDITION } else { PARTS_SHARED };
    if parts(&expr, bound).0 <= bound {
        return Ok((frame, expr));
    }
    let (count, window) = parts(&expr, PARTS_MAX);
    if count > PARTS_MAX {
        let text = format!("an expression of more than {PARTS_MAX} parts");
        return Err(Error::Value(format!("{text}; `execute` a frame with a part of it as a column")));
    }
    if window {
        return Ok((frame, expr));
    }
    // Of two expressions with one name, a frame that meets both would have one only.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("{SHARED}{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let plan = with_layer(&frame.plan, &kept(expr).alias(&name))?;
    let wide = Frame { plan, ..(*frame).clone() };
    check(&wide.plan)?;
    Ok((Arc::new(wide), read(named(&name))))
}

/// The parts that an expression over a plan has when planning puts the projections below into it; it stops
/// counting behind a bound.
fn merged(plan: &LogicalPlan, expr: &Expr, bound: usize) -> usize {
    let mut count = parts(expr, bound).0;
    let mut below = plan;
    while let LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) = below
        && let [input] = below.inputs()[..]
    {
        below = input;
    }
    let LogicalPlan::Projection(projection) = below else { return count };
    for column in expr.column_refs() {
        let found = projection.expr.iter().zip(projection.schema.fields());
        let found = found.filter(|(_, field)| field.name() == column.name()).map(|(expr, _)| expr).next();
        let found = found.map(|expr| if let Expr::Alias(alias) = expr { &*alias.expr } else { expr });
        if let Some(found) = found.filter(|expr| !is_kept(expr))
            && count <= bound
        {
            count += merged(&projection.input, found, bound - count);
        }
    }
    count
}

/// Expressions over a plan, and the plan with those columns computed apart that would make them large.
pub(super) fn apart(plan: &LogicalPlan, exprs: Vec<Expr>) -> Result<(LogicalPlan, Vec<Expr>)> {
    let mut large: BTreeSet<String> = BTreeSet::new();
    for expr in exprs.iter().filter(|expr| !is_plain(expr)) {
        if merged(plan, expr, PARTS_SHARED) > PARTS_SHARED {
            let columns = expr.column_refs();
            let computed = columns
                .iter()
                .filter(|column| merged(plan, &named(column.name()), PARTS_SHARED) > PARTS_SHARED / 8);
            large.extend(computed.map(|column| column.name().to_owned()));
        }
    }
    if large.is_empty() {
        return Ok((plan.clone(), exprs));
    }
    let columns = plan.schema().fields().iter().map(|field| match field.name() {
        name if large.contains(name) => kept(named(name)).alias(name),
        name => named(name),
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(plan.clone()).project(columns)?.build()?;
    let read_column = |expr: Expr| {
        expr.transform_down(|part| match &part {
            Expr::Column(column) if large.contains(column.name()) => {
                Ok(Transformed::new(read(part), true, TreeNodeRecursion::Jump))
            }
            _ => Ok(Transformed::no(part)),
        })
    };
    let exprs =
        exprs.into_iter().map(|expr| Ok(if is_plain(&expr) { expr } else { read_column(expr)?.data }));
    let exprs = exprs.collect::<Result<_>>()?;
    Ok((plan, exprs))
}

fn is_plain(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(_) | Expr::Literal(..))
}

/// Beginning of the names of such columns.
const SHARED: &str = "__tharsis_shared_";
const _: () = assert!(SHARED.len() > HIDDEN.len());

fn with_layer(plan: &LogicalPlan, layer: &Expr) -> Result<LogicalPlan> {
    let plain = plan.schema().fields().iter().map(|field| named(field.name()));
    let exprs: Vec<Expr> = plain.chain([layer.clone()]).collect();
    Ok(LogicalPlanBuilder::from(plan.clone()).project(exprs)?.build()?)
}

/// The hidden columns that a plan adds to one below, from below, and that plan.
fn layers(plan: &LogicalPlan) -> (Vec<&Expr>, &LogicalPlan) {
    let (mut found, mut base) = (Vec::new(), plan);
    while let LogicalPlan::Projection(projection) = base
        && let Some((layer @ Expr::Alias(alias), _)) = projection.expr.split_last()
        && alias.name.starts_with(SHARED)
    {
        found.push(layer);
        base = &projection.input;
    }
    found.reverse();
    (found, base)
}

impl Frame {
    /// This frame with the hidden columns of another one, if the two differ in nothing else.
    pub(super) fn meeting(&self, other: &Frame) -> Result<Option<Frame>> {
        let ((own, base), (others, other_base)) = (layers(&self.plan), layers(&other.plan));
        if own.is_empty() && others.is_empty() {
            return Ok(None);
        }
        let below = |frame: &Frame, plan: &LogicalPlan| Frame { plan: plan.clone(), ..frame.clone() };
        if !below(self, base).is_same(&below(other, other_base)) {
            return Ok(None);
        }
        self.with_shared_of(other).map(Some)
    }

    /// This frame with the hidden columns of another one that has the same columns below them.
    pub(super) fn with_shared_of(&self, other: &Frame) -> Result<Frame> {
        let mut plan = self.plan.clone();
        for layer in layers(&other.plan).0 {
            let Expr::Alias(alias) = layer else { continue };
            if !plan.schema().has_column_with_unqualified_name(&alias.name) {
                plan = with_layer(&plan, layer)?;
            }
        }
        Ok(Frame { plan, ..self.clone() })
    }
}

/// Refuses a plan that is too large or too deep for the library.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    let (mut rest, mut nodes) = (vec![(plan, 1)], 0);
    while let Some((node, depth)) = rest.pop() {
        nodes += 1;
        if depth > DEPTH_MAX || nodes > NODES_MAX {
            let bound = if depth > DEPTH_MAX { DEPTH_MAX } else { NODES_MAX };
            let text = format!("a plan of more than {bound} steps");
            return Err(Error::Value(format!("{text}; `execute` computes what a frame is so far")));
        }
        rest.extend(node.inputs().into_iter().map(|input| (input, depth + 1)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DataFrame;
    use crate::frame::series::Series;

    fn frame() -> DataFrame {
        DataFrame::from_columns(["a", "b", "c"].map(|label| (label, vec![1.0, 2.0].into())))
    }

    fn parts_of(series: &Series) -> usize {
        parts(series.parts().unwrap().1, usize::MAX).0
    }

    #[test]
    fn an_operator_adds_a_few_parts() {
        let frame = frame();
        for operator in ["+", "-", "*", "/", "//", "%", "**"] {
            let text = |terms: usize| vec!["a"; terms].join(&format!(" {operator} "));
            let terms = if operator == "**" { 50 } else { 200 };
            let made = frame.eval_series(&text(terms), &[]);
            assert!(parts_of(&made) <= 4 * terms, "{} for {terms} of {operator}", parts_of(&made));
        }
        let clipped = (0..50).fold(frame.col("a"), |series, _| series.clip(0.0, 1.0));
        assert!(parts_of(&clipped) <= 4 * 50);
    }

    #[test]
    fn an_expression_used_twice_is_a_column_when_it_is_large() {
        let frame = frame();
        let doubled = (0..30).fold(frame.col("a"), |sum, _| &sum + &sum);
        assert!(parts_of(&doubled) <= 2 * PARTS_SHARED + 2, "{}", parts_of(&doubled));
        let hidden = layers(&doubled.parts().unwrap().0.plan).0.len();
        assert!((1..=10).contains(&hidden), "{hidden}");
        // Both are of the rows of the same frame, and so is what is made of them.
        let other = (0..9).fold(frame.col("b"), |sum, _| &sum + &sum);
        let both = &doubled + &other;
        let (wide, _) = both.parts().unwrap();
        assert!(wide.meeting(frame.frame().unwrap()).unwrap().is_some());
        assert!(!wide.plan.exists(|node| Ok(matches!(node, LogicalPlan::Join(_)))).unwrap());
    }

    #[test]
    fn a_key_of_many_steps_is_planned_as_long_as_they_are() {
        let frame = DataFrame::from_columns([("x", vec![1, 3, 1].into()), ("v", vec![1, 2, 4].into())]);
        let sums = |steps: usize| {
            let key = (0..steps).fold(frame.col("x"), |sum, _| &sum + &sum);
            frame.groupby([&key]).sum()
        };
        // One more step doubled the time: sixty would never end.
        let plan = |steps: usize| sums(steps).explain().unwrap().to_string().len();
        let (short, long) = (plan(15), plan(60));
        assert!(long < 5 * short, "{long} for {short}");
        assert_eq!(sums(30).col("v").values::<i64>().unwrap(), [Some(5), Some(2)]);
    }

    #[test]
    fn a_deep_plan_is_refused() {
        let steps =
            |count: usize| (0..count).fold(frame(), |frame, _| frame.assign("a", frame.col("a") + 1.0));
        // Columns that are computed apart are steps too.
        assert!(steps(DEPTH_MAX * 9 / 10).check().is_ok());
        assert_eq!(steps(DEPTH_MAX + 10).check().unwrap_err().class(), "ValueError");
        let doubled = (0..20).fold(frame(), |frame, _| DataFrame::concat([&frame, &frame], true));
        assert_eq!(doubled.check().unwrap_err().class(), "ValueError");
    }
}
