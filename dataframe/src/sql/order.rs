//! The order of a query's rows as that of a frame.
//!
//! Planning drops a sort below whatever needs no order, so that the next step after `sql` would have the rows
//! in any order. The keys of a sort at the top of a query become hidden columns, by which the frame is
//! ordered.

use crate::error::Result;
use crate::frame::{HIDDEN, OrderKey, named};
use datafusion::common::Column;
use datafusion::logical_expr::logical_plan::Sort;
use datafusion::logical_expr::{
    Expr, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias,
};
use std::sync::Arc;

/// A plan of the same rows with the keys of the sort at its top as more columns, and these keys; none for a
/// plan without one.
pub(super) fn ordered(plan: &LogicalPlan) -> Result<Option<(LogicalPlan, Vec<OrderKey>)>> {
    taken_apart(plan, false)
}

/// `is_cut`: whether a limit above needs the rows in order.
fn taken_apart(plan: &LogicalPlan, is_cut: bool) -> Result<Option<(LogicalPlan, Vec<OrderKey>)>> {
    Ok(match plan {
        LogicalPlan::Sort(sort) => {
            let keys = sort.expr.iter().enumerate().map(|(at, key)| OrderKey {
                column: format!("{HIDDEN}sql_order_{at}"),
                ascending: key.asc,
                nulls_first: key.nulls_first,
            });
            let keys: Vec<OrderKey> = keys.collect();
            let values =
                sort.expr.iter().zip(&keys).map(|(sorted, key)| sorted.expr.clone().alias(&key.column));
            let exprs: Vec<Expr> = columns(&sort.input).chain(values).collect();
            let mut rows = LogicalPlanBuilder::from((*sort.input).clone()).project(exprs)?.build()?;
            if is_cut || sort.fetch.is_some() {
                let expr = keys.iter().map(|key| named(&key.column).sort(key.ascending, key.nulls_first));
                rows = LogicalPlan::Sort(Sort {
                    expr: expr.collect(),
                    input: Arc::new(rows),
                    fetch: sort.fetch,
                });
            }
            Some((rows, keys))
        }
        LogicalPlan::Projection(projection) => {
            let Some((below, keys)) = taken_apart(&projection.input, is_cut)? else { return Ok(None) };
            let hidden = keys.iter().map(|key| {
                // A subquery has given it the name of its table.
                let field = below.schema().qualified_field_with_unqualified_name(&key.column)?;
                Ok(Expr::Column(Column::from(field)))
            });
            let exprs: Vec<Expr> =
                projection.expr.iter().cloned().map(Ok).chain(hidden).collect::<Result<_>>()?;
            Some((LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(below))?), keys))
        }
        LogicalPlan::Filter(filter) => {
            let Some((below, keys)) = taken_apart(&filter.input, is_cut)? else { return Ok(None) };
            Some((LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), Arc::new(below))?), keys))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let Some((below, keys)) = taken_apart(&alias.input, is_cut)? else { return Ok(None) };
            let named = SubqueryAlias::try_new(Arc::new(below), alias.alias.clone())?;
            Some((LogicalPlan::SubqueryAlias(named), keys))
        }
        LogicalPlan::Limit(limit) => {
            let Some((below, keys)) = taken_apart(&limit.input, true)? else { return Ok(None) };
            Some((LogicalPlan::Limit(Limit { input: Arc::new(below), ..limit.clone() }), keys))
        }
        _ => None,
    })
}

/// The columns of a plan.
fn columns(plan: &LogicalPlan) -> impl Iterator<Item = Expr> {
    plan.schema().iter().map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name())))
}
