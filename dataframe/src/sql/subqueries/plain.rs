//! Subqueries that depend on the row around them of which the library makes the right join: rows of a query
//! that does not depend, behind conditions that do. All others are joined here, or refused.

use super::reads::{depends, outer_columns};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Alias, Exists, InSubquery};
use datafusion::logical_expr::logical_plan::SubqueryAlias;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, Filter, LogicalPlan, Operator, Projection, Subquery,
};
use std::sync::Arc;

/// Aggregates whose value of no rows the library knows in its joins.
const KNOWN: [&str; 5] = ["avg", "count", "max", "min", "sum"];

/// The subquery of an expression.
pub(in crate::sql) fn subquery_of(part: &Expr) -> Option<&Subquery> {
    match part {
        Expr::Exists(asked) => Some(&asked.subquery),
        Expr::InSubquery(asked) => Some(&asked.subquery),
        Expr::SetComparison(asked) => Some(&asked.subquery),
        Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

/// Whether the library makes a join of a condition that stands by itself in a filter of rows.
pub(in crate::sql) fn is_plain_condition(part: &Expr, around: &DFSchema) -> bool {
    let (Expr::Exists(Exists { subquery, .. }) | Expr::InSubquery(InSubquery { subquery, .. })) = part else {
        return false;
    };
    reads_only(&subquery.subquery, around) && is_rows(&subquery.subquery, Vec::new(), |_, _| true)
}

/// Whether the library makes a join of a subquery wherever its value stands.
pub(in crate::sql) fn is_plain_value(part: &Expr, around: &DFSchema) -> bool {
    let Some(subquery) = subquery_of(part) else { return false };
    let plan = &*subquery.subquery;
    // The library groups rows by what is compared with a value, too.
    let compared = match part {
        Expr::InSubquery(asked) => Some(&asked.expr),
        Expr::SetComparison(asked) => Some(&asked.expr),
        _ => None,
    };
    if compared.is_some_and(|value| !is_same(value.get_type(around).ok(), first_type(plan))) {
        return false;
    }
    let (rows, labels) = match (part, plan) {
        (Expr::ScalarSubquery(_), LogicalPlan::Projection(Projection { expr, input, .. })) => {
            let LogicalPlan::Aggregate(made) = &**input else { return false };
            let is_known = |expr: &Expr| match expr.clone().unalias_nested().data {
                Expr::AggregateFunction(call) => KNOWN.contains(&call.func.name()),
                _ => false,
            };
            let mut exprs = expr.iter().chain(&made.aggr_expr);
            let is_own = exprs.all(|expr| !expr.contains_outer() && !has_subquery(expr));
            if !made.group_expr.is_empty() || !is_own || !made.aggr_expr.iter().all(is_known) {
                return false;
            }
            (&*made.input, labels_of(expr))
        }
        (Expr::ScalarSubquery(_), _) => return false,
        _ => (plan, Vec::new()),
    };
    reads_only(plan, around) && is_rows(rows, labels, is_equality)
}

/// Whether the rows of a lateral query are those that the library joins.
pub(in crate::sql) fn is_plain_lateral(rows: &LogicalPlan, around: &DFSchema) -> bool {
    reads_only(rows, around) && is_rows(rows, Vec::new(), |_, _| true)
}

/// Whether a subquery reads columns of the rows next around it alone.
fn reads_only(plan: &LogicalPlan, around: &DFSchema) -> bool {
    outer_columns(plan).iter().all(|column| around.has_column(column))
}

/// The labels of values, which are columns of no table.
fn labels_of(exprs: &[Expr]) -> Vec<&str> {
    let labels = exprs.iter().filter_map(|expr| match expr {
        Expr::Alias(Alias { relation: None, name, .. }) => Some(name.as_str()),
        _ => None,
    });
    labels.collect()
}

/// Whether a plan depends on the row around it by such conditions on rows alone. The library shows the
/// columns in these beside the others: none may have the name of one of the labels above.
fn is_rows<'a>(
    mut plan: &'a LogicalPlan,
    mut labels: Vec<&'a str>,
    is_right: impl Fn(&Expr, &DFSchema) -> bool,
) -> bool {
    while depends(plan) {
        plan = match plan {
            LogicalPlan::Projection(made) if made.expr.iter().all(|expr| !expr.contains_outer()) => {
                labels.extend(labels_of(&made.expr));
                &made.input
            }
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let mut conditions = split_conjunction(predicate).into_iter();
                let is_labelled = |column: &&Column| labels.contains(&column.name());
                let is_right = |condition: &Expr| {
                    !condition.contains_outer()
                        || is_right(condition, input.schema())
                            && !has_subquery(condition)
                            && !condition.column_refs().iter().any(is_labelled)
                };
                if !conditions.all(is_right) {
                    return false;
                }
                input
            }
            _ => return false,
        };
    }
    true
}

/// Whether a condition is the equality of a column with a value around. The library groups rows by the
/// column: if it is converted, several groups may equal one value.
fn is_equality(condition: &Expr, rows: &DFSchema) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return false };
    let is_side = |own: &Expr, around: &Expr| {
        matches!(own, Expr::Column(_))
            && !around.any_column_refs()
            && is_same(own.get_type(rows).ok(), around.get_type(rows).ok())
    };
    is_side(left, right) || is_side(right, left)
}

/// Whether values of two types meet so that different ones stay different.
fn is_same(one: Option<DataType>, other: Option<DataType>) -> bool {
    let same = |(one, other): (DataType, DataType)| one == other || one.is_integer() && other.is_integer();
    one.zip(other).is_some_and(same)
}

fn first_type(plan: &LogicalPlan) -> Option<DataType> {
    plan.schema().fields().first().map(|field| field.data_type().clone())
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true)
}

/// A condition that asks for no more than the same condition: rows are there without an order, without their
/// columns, and if equal ones are there once.
pub(in crate::sql) fn simplest(part: Expr) -> Expr {
    let Expr::Exists(Exists { subquery, negated }) = part else { return part };
    if !depends(&subquery.subquery) {
        return Expr::Exists(Exists { subquery, negated });
    }
    let rows = Arc::new(as_there(&subquery.subquery).clone());
    let outer_ref_columns = if depends(&rows) { subquery.outer_ref_columns } else { Vec::new() };
    Expr::Exists(Exists { subquery: Subquery { subquery: rows, outer_ref_columns, ..subquery }, negated })
}

fn as_there(mut rows: &LogicalPlan) -> &LogicalPlan {
    loop {
        rows = match rows {
            LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
            | LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Distinct(Distinct::On(first)) => &first.input,
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
            LogicalPlan::Limit(limit) if limit.skip.is_none() && has_rows(limit.fetch.as_deref()) => {
                &limit.input
            }
            rows => return rows,
        };
    }
}

fn has_rows(fetch: Option<&Expr>) -> bool {
    matches!(fetch, Some(Expr::Literal(ScalarValue::Int64(Some(rows)), _)) if 0 < *rows)
}
