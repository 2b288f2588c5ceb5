//! Lateral queries that read columns around them only in subqueries of their own.
//!
//! The library marks a side of a join as lateral if it finds such a column in it, and does not look into
//! subqueries: what they read would be taken for columns of a query further out, or of none.

use super::plain::subquery_of;
use crate::sql::names::by_name::check_by_name;
use crate::sql::names::plain_names::with_plain_names;
use crate::sql::values::union_types::of_all_sides;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as EngineResult, Spans};
use datafusion::logical_expr::logical_plan::SubqueryAlias;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::TableFactor;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use std::sync::Arc;

/// The planner of such queries.
pub(in crate::sql) fn planner() -> Arc<dyn RelationPlanner> {
    Arc::new(LateralSides)
}

#[derive(Debug)]
struct LateralSides;

impl RelationPlanner for LateralSides {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<RelationPlanning> {
        let plan = match relation {
            TableFactor::Derived { lateral: true, subquery, alias, sample } => {
                context.plan(TableFactor::Derived { lateral: false, subquery, alias, sample })?
            }
            other => return Ok(RelationPlanning::Original(Box::new(other))),
        };
        check_by_name(&plan)?;
        let plan = with_plain_names(of_all_sides(plan)?)?;
        let plan = if plan.all_out_ref_exprs().is_empty() { marked(plan)? } else { plan };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// The plan with the mark of lateral queries, if it reads columns around it.
fn marked(plan: LogicalPlan) -> EngineResult<LogicalPlan> {
    let outer_ref_columns = read_within(&plan)?;
    if outer_ref_columns.is_empty() {
        return Ok(plan);
    }
    let lateral =
        |subquery| LogicalPlan::Subquery(Subquery { subquery, outer_ref_columns, spans: Spans::new() });
    Ok(match plan {
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(lateral(input)), alias)?)
        }
        plan => lateral(Arc::new(plan)),
    })
}

/// The columns around a plan that subqueries within it read.
fn read_within(plan: &LogicalPlan) -> EngineResult<Vec<Expr>> {
    let mut found = Vec::new();
    plan.apply(|node| {
        let own = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                let Some(subquery) = subquery_of(part) else { return Ok(TreeNodeRecursion::Continue) };
                let read = subquery.subquery.all_out_ref_exprs().into_iter();
                let read = read.chain(read_within(&subquery.subquery)?);
                found.extend(read.filter(|column| match column {
                    Expr::OuterReferenceColumn(_, column) => !own.has_column(column),
                    _ => false,
                }));
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}
