//! `NOT IN (SELECT ..)` as SQL defines it where there are missing values.
//!
//! `x NOT IN (..)` is true if the rows are none, or if neither `x` nor one of them is missing and none equals
//! `x`. The library makes a join of it that knows this only if `x` is a column, the condition stands by
//! itself, and the rows are the same for each `x`. Beside `OR`, and for other expressions, it keeps rows that
//! must go: a missing value counts as one that is not there. Such conditions are written here in another way,
//! before the library's rules see them: with counts, or with `NOT EXISTS` where the rows depend on `x`. Where
//! more than its truth is asked, as by `IS NULL` or in `CASE`, `IN` is written as `= ANY`, of which the
//! library knows three values.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ExprSchema, Result};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_fn::{case, when};
use datafusion::logical_expr::logical_plan::Subquery;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, lit, not,
    not_in_subquery, scalar_subquery,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule for the optimizer.
pub(crate) fn rule() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(NotIn)
}

#[derive(Debug)]
struct NotIn;

impl OptimizerRule for NotIn {
    fn name(&self) -> &str {
        "not_in"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
        if !filter.predicate.exists(|part| Ok(matches!(part, Expr::InSubquery(_))))? {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let place = Place { is_wanted: true, is_alone: true };
        let predicate = rewritten(filter.predicate.clone(), place, filter.input.schema())?;
        if predicate == filter.predicate {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
    }
}

/// The place of a condition within that of a filter.
#[derive(Clone, Copy)]
struct Place {
    /// Whether rows are kept where it is true; if not, they are kept where it is false.
    is_wanted: bool,
    /// Whether nothing but other conditions, each of which must hold, is beside it.
    is_alone: bool,
}

/// The condition with others in the place of some, which hold for the same rows. A value that is missing and
/// one that is not true are the same to a filter.
fn rewritten(expr: Expr, place: Place, schema: &DFSchema) -> Result<Expr> {
    let beside = Place { is_alone: false, ..place };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let place = if op == Operator::And && place.is_wanted { place } else { beside };
            let (left, right) = (rewritten(*left, place, schema)?, rewritten(*right, place, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(asked) => {
                rewritten(Expr::InSubquery(InSubquery { negated: !asked.negated, ..asked }), place, schema)
            }
            inner => {
                let place = Place { is_wanted: !place.is_wanted, is_alone: false };
                Ok(not(rewritten(inner, place, schema)?))
            }
        },
        Expr::InSubquery(asked) if asked.negated == place.is_wanted => {
            let depends = !asked.subquery.outer_ref_columns.is_empty();
            let is_join = place.is_alone && !depends && matches!(*asked.expr, Expr::Column(_));
            if is_join || !can_be_missing(&asked, schema)? {
                return Ok(Expr::InSubquery(asked));
            }
            let differs = if depends { without_match(asked, schema)? } else { counted(asked)? };
            Ok(if place.is_wanted { differs } else { not(differs) })
        }
        // A missing value is known to be one behind these, so that they are true or false.
        Expr::IsTrue(inner) => Ok(Expr::IsTrue(Box::new(asked_of(*inner, true, schema)?))),
        Expr::IsNotTrue(inner) => Ok(Expr::IsNotTrue(Box::new(asked_of(*inner, true, schema)?))),
        Expr::IsFalse(inner) => Ok(Expr::IsFalse(Box::new(asked_of(*inner, false, schema)?))),
        Expr::IsNotFalse(inner) => Ok(Expr::IsNotFalse(Box::new(asked_of(*inner, false, schema)?))),
        // It is the same to a filter as one that is not true.
        Expr::InSubquery(asked) => Ok(Expr::InSubquery(asked)),
        other => in_three_values(other, schema),
    }
}

/// A condition of which is asked only whether it is true, or only whether it is false.
fn asked_of(condition: Expr, is_wanted: bool, schema: &DFSchema) -> Result<Expr> {
    rewritten(condition, Place { is_wanted, is_alone: false }, schema)
}

/// An expression whose conditions may be missing as well as true or false.
fn in_three_values(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let changed = expr.transform_up(|part| match part {
        Expr::InSubquery(asked) if can_be_missing(&asked, schema)? => {
            let InSubquery { expr, subquery, negated } = asked;
            let subquery = Subquery { subquery: Arc::new(apart(&subquery.subquery)?), ..subquery };
            let any = SetComparison { expr, subquery, op: Operator::Eq, quantifier: SetQuantifier::Any };
            let any = Expr::SetComparison(any);
            Ok(Transformed::yes(if negated { not(any) } else { any }))
        }
        part => Ok(Transformed::no(part)),
    })?;
    Ok(changed.data)
}

/// Whether the value or a row may be missing. Rows without missing ones stay as they are, so that a second
/// look changes nothing.
pub(crate) fn can_be_missing(asked: &InSubquery, schema: &DFSchema) -> Result<bool> {
    let rows = &asked.subquery.subquery;
    let is_known =
        matches!(&**rows, LogicalPlan::Filter(filter) if filter.predicate == value_of(rows).is_not_null());
    Ok(!is_known && (asked.expr.nullable(schema)? || rows.schema().field(0).is_nullable()))
}

/// The value that a query with one column has in a row.
pub(super) fn value_of(rows: &LogicalPlan) -> Expr {
    Expr::Column(Column::from(rows.schema().qualified_field(0)))
}

/// The rows of a subquery, whose value has a name of its own: both queries may read one table, whose columns
/// would be taken for the same ones. No alias of the table: the library does not take conditions out of one.
pub(super) fn apart(rows: &Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let value = value_of(rows).alias("__tharsis_row");
    LogicalPlanBuilder::from(Arc::clone(rows)).project(vec![value])?.build()
}

/// `NOT IN` for rows that depend on the value: there is none that is equal, or may be.
fn without_match(asked: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let InSubquery { expr, subquery, negated: _ } = asked;
    let rows = apart(&subquery.subquery)?;
    let matches = of_outer(*expr, schema)?.eq(value_of(&rows)).is_not_false();
    let found = LogicalPlanBuilder::from(rows).filter(matches)?.build()?;
    let subquery = Subquery {
        outer_ref_columns: found.all_out_ref_exprs(),
        subquery: Arc::new(found),
        spans: subquery.spans,
    };
    Ok(Expr::Exists(Exists { subquery, negated: true }))
}

/// An expression over the rows around a subquery, within it.
pub(super) fn of_outer(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let outer = expr.transform_up(|part| match part {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        part => Ok(Transformed::no(part)),
    })?;
    Ok(outer.data)
}

/// `NOT IN` for rows of which some may be missing, the same ones for each value.
fn counted(asked: InSubquery) -> Result<Expr> {
    let rows = &asked.subquery.subquery;
    let known = LogicalPlanBuilder::from(Arc::clone(rows)).filter(value_of(rows).is_not_null())?.build()?;
    let needle = *asked.expr;
    let differs = needle.clone().is_not_null().and(not_in_subquery(needle, Arc::new(known)));
    case(state(rows)?).when(lit(ROWS_NONE), lit(true)).when(lit(ROWS_MISSING), lit(false)).otherwise(differs)
}

/// States of rows that have one value each: there are none, some are missing, all are there.
pub(super) const ROWS_NONE: i64 = 0;
pub(super) const ROWS_MISSING: i64 = 2;
const ROWS_THERE: i64 = 1;

/// The state of rows, as a value for which they are read once.
pub(super) fn state(rows: &Arc<LogicalPlan>) -> Result<Expr> {
    // The value may be the number 1 itself.
    let rows = apart(rows)?;
    let counts = vec![count(lit(1_i64)), count(value_of(&rows))];
    let counted = LogicalPlanBuilder::from(rows).aggregate(Vec::<Expr>::new(), counts)?.build()?;
    let counted_value = |at| Expr::Column(Column::from(counted.schema().qualified_field(at)));
    let (all, there) = (counted_value(0), counted_value(1));
    let state = when(all.clone().eq(lit(0_i64)), lit(ROWS_NONE))
        .when(there.lt(all), lit(ROWS_MISSING))
        .otherwise(lit(ROWS_THERE))?;
    let value = LogicalPlanBuilder::from(counted).project(vec![state.alias("state")])?.build()?;
    Ok(scalar_subquery(Arc::new(value)))
}
