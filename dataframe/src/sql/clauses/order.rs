//! The order of a query's rows as that of a frame.
//!
//! Planning drops a sort below whatever needs no order, so that the next step after `sql` would have the rows
//! in any order. The keys of a sort at the top of a query become hidden columns, by which the frame is
//! ordered.

use crate::error::Result;
use crate::frame::{HIDDEN, OrderKey, named};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result as EngineResult};
use datafusion::logical_expr::expr::{AggregateFunction, Sort as SortKey};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Sort;
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias,
};
use std::collections::HashSet;
use std::sync::Arc;

/// Aggregates whose value depends on the order of rows.
const IN_ORDER: [&str; 5] = ["array_agg", "first_value", "last_value", "nth_value", "string_agg"];

/// The plan whose aggregates take their rows in the order of the subquery below them: it would be dropped as
/// one that no operator asks for.
pub(in crate::sql) fn with_orders(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        let mut takes_order = false;
        for expr in &aggregate.aggr_expr {
            takes_order |= expr.exists(|part| Ok(is_in_any_order(part)))?;
        }
        let below = if takes_order { ordered(&aggregate.input)? } else { None };
        let Some((below, keys)) = below else { return Ok(Transformed::no(node)) };
        let order = keys.iter().map(|key| {
            let value = hidden(below.schema(), &key.column)?;
            Ok(value.sort(key.ascending, key.nulls_first))
        });
        let order = order.collect::<EngineResult<Vec<SortKey>>>()?;
        let names = NamePreserver::new(&node);
        let exprs = aggregate.aggr_expr.iter().map(|expr| {
            let name = names.save(expr);
            let expr = expr.clone().transform_up(|part| Ok(in_order(part, &order)))?;
            Ok(name.restore(expr.data))
        });
        let exprs = exprs.collect::<EngineResult<Vec<Expr>>>()?;
        let aggregate = Aggregate::try_new(Arc::new(below), aggregate.group_expr.clone(), exprs)?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
    })?;
    Ok(changed.data)
}

/// Whether it is an aggregate that depends on an order and has none of its own. Different values have
/// another.
fn is_in_any_order(expr: &Expr) -> bool {
    matches!(expr, Expr::AggregateFunction(AggregateFunction { func, params })
        if params.order_by.is_empty() && !params.distinct && IN_ORDER.contains(&func.name()))
}

fn in_order(expr: Expr, order: &[SortKey]) -> Transformed<Expr> {
    if !is_in_any_order(&expr) {
        return Transformed::no(expr);
    }
    let Expr::AggregateFunction(mut call) = expr else { return Transformed::no(expr) };
    call.params.order_by = order.to_vec();
    Transformed::yes(Expr::AggregateFunction(call))
}

/// A hidden column, to which a subquery has given the name of its table.
fn hidden(schema: &DFSchema, name: &str) -> EngineResult<Expr> {
    let field = schema.qualified_field_with_unqualified_name(name)?;
    Ok(Expr::Column(Column::from(field)))
}

/// A plan of the same rows with the keys of the sort at its top as more columns, and these keys; none for a
/// plan without one.
pub(in crate::sql) fn ordered(plan: &LogicalPlan) -> Result<Option<(LogicalPlan, Vec<OrderKey>)>> {
    let mut known = HashSet::new();
    plan.apply(|node| {
        let names = node.schema().fields().iter().map(|field| field.name());
        known.extend(names.filter(|name| name.starts_with(HIDDEN)).cloned());
        Ok(TreeNodeRecursion::Continue)
    })?;
    taken_apart(plan, false, &known)
}

/// `is_cut`: whether a limit above needs the rows in order. `known`: hidden columns that the rows have
/// already, as those of a frame have.
fn taken_apart(
    plan: &LogicalPlan,
    is_cut: bool,
    known: &HashSet<String>,
) -> Result<Option<(LogicalPlan, Vec<OrderKey>)>> {
    Ok(match plan {
        LogicalPlan::Sort(sort) => {
            let names = (0_usize..).map(|at| format!("{HIDDEN}sql_order_{at}"));
            let free = names.filter(|name| !known.contains(name));
            let keys = sort.expr.iter().zip(free).map(|(key, column)| OrderKey {
                column,
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
            let Some((below, keys)) = taken_apart(&projection.input, is_cut, known)? else { return Ok(None) };
            let hidden = keys.iter().map(|key| hidden(below.schema(), &key.column));
            let exprs: Vec<Expr> =
                projection.expr.iter().cloned().map(Ok).chain(hidden).collect::<EngineResult<_>>()?;
            Some((LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(below))?), keys))
        }
        LogicalPlan::Filter(filter) => {
            let Some((below, keys)) = taken_apart(&filter.input, is_cut, known)? else { return Ok(None) };
            Some((LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), Arc::new(below))?), keys))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let Some((below, keys)) = taken_apart(&alias.input, is_cut, known)? else { return Ok(None) };
            let named = SubqueryAlias::try_new(Arc::new(below), alias.alias.clone())?;
            Some((LogicalPlan::SubqueryAlias(named), keys))
        }
        LogicalPlan::Limit(limit) => {
            let Some((below, keys)) = taken_apart(&limit.input, true, known)? else { return Ok(None) };
            Some((LogicalPlan::Limit(Limit { input: Arc::new(below), ..limit.clone() }), keys))
        }
        _ => None,
    })
}

/// The columns of a plan.
fn columns(plan: &LogicalPlan) -> impl Iterator<Item = Expr> {
    plan.schema().iter().map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name())))
}
