//! `NOT IN (SELECT ..)` as SQL defines it where there are missing values.
//!
//! `x NOT IN (..)` is true if the rows are none, or if neither `x` nor one of them is missing and none equals
//! `x`. The library makes a join of it that knows this only if `x` is a column and the condition stands by
//! itself. Beside `OR`, and for other expressions, it keeps rows that must go: a missing value counts as one
//! that is not there. Such conditions are written with counts here, before the library's rule sees them.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, not_impl_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::InSubquery;
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
            let is_column = matches!(*asked.expr, Expr::Column(_));
            if (place.is_alone && is_column) || !can_be_missing(&asked, schema)? {
                return Ok(Expr::InSubquery(asked));
            }
            let counted = counted(asked)?;
            Ok(if place.is_wanted { counted } else { not(counted) })
        }
        other => Ok(other),
    }
}

/// Whether the value or a row may be missing. Rows without missing ones stay as they are, so that a second
/// look changes nothing.
fn can_be_missing(asked: &InSubquery, schema: &DFSchema) -> Result<bool> {
    let rows = &asked.subquery.subquery;
    let is_known =
        matches!(&**rows, LogicalPlan::Filter(filter) if filter.predicate == value_of(rows).is_not_null());
    Ok(!is_known && (asked.expr.nullable(schema)? || rows.schema().field(0).is_nullable()))
}

/// The value that a query with one column has in a row.
fn value_of(rows: &LogicalPlan) -> Expr {
    Expr::Column(Column::from(rows.schema().qualified_field(0)))
}

/// `NOT IN` for rows of which some may be missing.
fn counted(asked: InSubquery) -> Result<Expr> {
    if !asked.subquery.outer_ref_columns.is_empty() {
        return not_impl_err!(
            "NOT IN with a subquery about columns of the query around it, for a value that is no column or \
             beside OR, where values may be missing; write NOT EXISTS"
        );
    }
    let rows = &asked.subquery.subquery;
    let value = value_of(rows);
    let number = |rows: LogicalPlanBuilder| -> Result<Expr> {
        let count = count(lit(1_i64)).alias("rows");
        Ok(scalar_subquery(Arc::new(rows.aggregate(Vec::<Expr>::new(), vec![count])?.build()?)))
    };
    let of_rows = || LogicalPlanBuilder::from(Arc::clone(rows));
    let all = number(of_rows())?;
    let missing = number(of_rows().filter(value.clone().is_null())?)?;
    let known = of_rows().filter(value.is_not_null())?.build()?;
    let needle = *asked.expr;
    let differs = needle
        .clone()
        .is_not_null()
        .and(missing.eq(lit(0_i64)))
        .and(not_in_subquery(needle, Arc::new(known)));
    Ok(all.eq(lit(0_i64)).or(differs))
}
