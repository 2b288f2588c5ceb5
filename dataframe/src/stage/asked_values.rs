//! `IN (SELECT ..)`, `EXISTS`, `ANY` and `ALL` as values: among the columns of a query, in `CASE`, within
//! aggregates.
//!
//! The library makes joins of those that are conditions of rows, and has no operator for the others. They are
//! written here as comparisons of counts, which it makes joins of too, before its rules see them. `x IN (..)`
//! is missing where no row equals `x`, and `x` or a row is missing. Rows of which some may be missing are
//! read twice: `sql/subqueries/levels.rs` bounds how deep such conditions stand within each other.

use super::not_in::{ROWS_MISSING, ROWS_NONE, apart, can_be_missing, of_outer, state, value_of};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, not_impl_err};
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_fn::case;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery,
    binary_expr, lit, not, scalar_subquery,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule for the optimizer.
pub(crate) fn rule() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(AskedValues)
}

#[derive(Debug)]
struct AskedValues;

impl OptimizerRule for AskedValues {
    fn name(&self) -> &str {
        "asked_values"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Projection(projection) if ask(&projection.expr)? => projected(projection),
            LogicalPlan::Aggregate(aggregate)
                if ask(&aggregate.group_expr)? || ask(&aggregate.aggr_expr)? =>
            {
                aggregated(aggregate)
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

/// Whether expressions ask for rows of subqueries. The names of grouping sets are those of their parts, which
/// cannot be preserved.
fn ask(exprs: &[Expr]) -> Result<bool> {
    for expr in exprs.iter().filter(|expr| !matches!(expr, Expr::GroupingSet(_))) {
        if expr.exists(|part| Ok(asks(part)))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn asks(part: &Expr) -> bool {
    matches!(part, Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
}

/// The same columns with values in the place of conditions.
fn projected(projection: Projection) -> Result<Transformed<LogicalPlan>> {
    let Projection { expr, input, .. } = projection;
    let names = NamePreserver::new_for_projection();
    let exprs = expr.into_iter().map(|expr| {
        let name = names.save(&expr);
        let value = expr.transform_up(|part| with_value(part, input.schema()))?;
        Ok(name.restore(value.data))
    });
    let exprs = exprs.collect::<Result<Vec<Expr>>>()?;
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(exprs, input)?)))
}

/// The same aggregates over rows that have the conditions as columns.
fn aggregated(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
    let names = NamePreserver::new_for_projection();
    let mut asked: Vec<Expr> = Vec::new();
    let mut over_columns = |exprs: Vec<Expr>| {
        let changed = exprs.into_iter().map(|expr| {
            if matches!(expr, Expr::GroupingSet(_)) {
                return Ok(expr);
            }
            let name = names.save(&expr);
            let changed = expr.transform_down(|part| {
                if !asks(&part) {
                    return Ok(Transformed::no(part));
                }
                let at = asked.iter().position(|known| *known == part).unwrap_or(asked.len());
                if at == asked.len() {
                    asked.push(part);
                }
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(column(at)))))
            })?;
            Ok(name.restore(changed.data))
        });
        changed.collect::<Result<Vec<Expr>>>()
    };
    let (group_expr, aggr_expr) = (over_columns(group_expr)?, over_columns(aggr_expr)?);
    let own = input.schema().iter();
    let own = own.map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name())));
    let asked = asked.into_iter().enumerate().map(|(at, expr)| expr.alias(column(at)));
    let exprs: Vec<Expr> = own.chain(asked).collect();
    let rows = LogicalPlan::Projection(Projection::try_new(exprs, input)?);
    let aggregate = Aggregate::try_new(Arc::new(rows), group_expr, aggr_expr)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
}

/// The name of a condition as a column.
fn column(at: usize) -> String {
    format!("__tharsis_asked_{at}")
}

fn with_value(part: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match part {
        Expr::InSubquery(asked) => Transformed::yes(is_among(asked, schema)?),
        Expr::SetComparison(asked) => Transformed::yes(compared(asked, schema)?),
        Expr::Exists(Exists { subquery, negated }) => {
            check(&subquery)?;
            let is_there = number(LogicalPlanBuilder::from(subquery.subquery))?.gt(lit(0_i64));
            Transformed::yes(if negated { not(is_there) } else { is_there })
        }
        part => Transformed::no(part),
    })
}

fn is_among(asked: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let can_be_missing = can_be_missing(&asked, schema)?;
    let InSubquery { expr, subquery, negated } = asked;
    check(&subquery)?;
    let needle = *expr;
    let rows = Arc::new(apart(&subquery.subquery)?);
    let is_value = of_outer(needle.clone(), schema)?.eq(value_of(&rows));
    let is_there = number(LogicalPlanBuilder::from(Arc::clone(&rows)).filter(is_value)?)?.gt(lit(0_i64));
    let is_among = if can_be_missing { is_there.or(is_unknown(needle, &rows)?) } else { is_there };
    Ok(if negated { not(is_among) } else { is_among })
}

/// The answer where no row gives one: it is missing if the value or a row is, and there are rows.
fn is_unknown(needle: Expr, rows: &Arc<LogicalPlan>) -> Result<Expr> {
    let missing = || lit(ScalarValue::Boolean(None));
    // Forms with a base: the library would write one without as AND and OR, and read the rows again.
    let of_needle = case(needle.is_null()).when(lit(true), missing()).otherwise(lit(false))?;
    case(state(rows)?)
        .when(lit(ROWS_NONE), lit(false))
        .when(lit(ROWS_MISSING), missing())
        .otherwise(of_needle)
}

/// `x < ANY (..)` by the largest row, and its like; `x < ALL (..)` is not `x >= ANY (..)`.
fn compared(asked: SetComparison, schema: &DFSchema) -> Result<Expr> {
    let SetComparison { expr, subquery, op, quantifier } = asked;
    let (of_any, is_all) = match quantifier {
        SetQuantifier::Any => (Some(op), false),
        SetQuantifier::All => (op.negate(), true),
    };
    let is_any = if of_any == Some(Operator::Eq) {
        is_among(InSubquery { expr, subquery, negated: false }, schema)?
    } else {
        check(&subquery)?;
        let rows = Arc::new(apart(&subquery.subquery)?);
        let with = |operator: Operator, border: Expr| -> Result<Expr> {
            let made =
                LogicalPlanBuilder::from(Arc::clone(&rows)).aggregate(Vec::<Expr>::new(), vec![border])?;
            Ok(binary_expr((*expr).clone(), operator, scalar_subquery(Arc::new(made.build()?))))
        };
        let is_there = match of_any {
            Some(operator @ (Operator::Lt | Operator::LtEq)) => with(operator, max(value_of(&rows)))?,
            Some(operator @ (Operator::Gt | Operator::GtEq)) => with(operator, min(value_of(&rows)))?,
            Some(operator @ Operator::NotEq) => {
                with(operator, min(value_of(&rows)))?.or(with(operator, max(value_of(&rows)))?)
            }
            _ => return not_impl_err!("{op} of any or all rows as a value is not supported"),
        };
        is_there.is_true().or(is_unknown(*expr, &rows)?)
    };
    Ok(if is_all { not(is_any) } else { is_any })
}

/// Refuses aggregates of all rows that depend on the row around them. Each has a row also where it has no
/// rows to aggregate; the join that the library makes of a count of it has none there.
fn check(asked: &Subquery) -> Result<()> {
    let is_whole = |plan: &LogicalPlan| match plan {
        LogicalPlan::Aggregate(made) if made.group_expr.is_empty() => depends(plan),
        _ => Ok(false),
    };
    if asked.subquery.exists(is_whole)? {
        return not_impl_err!("IN and EXISTS as values over aggregates that depend on the row");
    }
    if !depends_by_equality(&asked.subquery)? {
        return not_impl_err!(
            "IN, EXISTS, ANY and ALL as values over rows that depend on the row around them {BY_OTHERS}"
        );
    }
    Ok(())
}

/// The conditions under which a subquery that depends on the row around it is refused.
const BY_OTHERS: &str = "by another condition than equality, or below LIMIT or ORDER BY, are not supported";

/// Whether the rows of a subquery depend on the row around it as the library makes joins of aggregates of
/// them: by equalities of a column. It refuses others by the names of inner columns, or as expressions that
/// have no operator.
fn depends_by_equality(rows: &LogicalPlan) -> Result<bool> {
    let has_other = |plan: &LogicalPlan| {
        Ok(match plan {
            LogicalPlan::Filter(filter) => {
                let mut conditions = split_conjunction(&filter.predicate).into_iter();
                conditions.any(|condition| condition.contains_outer() && !is_equality(condition))
            }
            LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => depends(plan)?,
            other => other.contains_outer_reference(),
        })
    };
    Ok(!rows.exists(has_other)?)
}

/// Whether a condition is the equality of a column with a value of the row around.
fn is_equality(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return false };
    let is_column = |expr: &Expr| match expr {
        Expr::Cast(cast) => matches!(*cast.expr, Expr::Column(_)),
        other => matches!(other, Expr::Column(_)),
    };
    is_column(left) && !right.any_column_refs() || is_column(right) && !left.any_column_refs()
}

/// Whether a part of a plan depends on the row around it.
fn depends(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(node.contains_outer_reference()))
}

/// The number of rows.
fn number(rows: LogicalPlanBuilder) -> Result<Expr> {
    let counted = rows.aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64))])?.build()?;
    let number = value_of(&counted);
    Ok(scalar_subquery(Arc::new(LogicalPlanBuilder::from(counted).project(vec![number])?.build()?)))
}
