//! Relations of FROM whose unions have the types of all their sides when queries of them are planned.
//!
//! The library plans a query with the types of the first side of a union in FROM. It refuses some functions
//! of these, such as the sum of a side of missing values, and keeps the types of columns that subqueries
//! read. Its planners of relations come first, but one cannot have the library plan the relation that it is
//! asked for. So relations of statements with set operations are written in parentheses, and these are
//! planned here.

use super::recursive_types::{mark_parts, with_types_of_run};
use super::union_types::of_all_sides;
use crate::error::{Error, Result};
use crate::planning::OPERATORS_MAX;
use crate::sql::clauses::counted_sets::mark;
use crate::sql::names::by_name::check_by_name;
use crate::sql::names::namesakes::plain_name;
use crate::sql::names::plain_names::with_plain_names;
use datafusion::common::Result as EngineResult;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, PipeOperator, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, Value, Visit,
    VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The name of rows of pipes until they have none.
const SETS: &str = "__tharsis_sets";

/// Writes the relations of a part of a statement in parentheses if it has set operations or hidden names.
pub(in crate::sql) fn write_parentheses(part: &mut (impl Visit + VisitMut)) -> Result<()> {
    if Visit::visit(&*part, &mut Reasons).is_continue() {
        return Ok(());
    }
    VisitMut::visit(part, &mut Relations).break_value().map_or(Ok(()), Err)
}

/// The planner of relations in parentheses.
pub(in crate::sql) fn planner() -> Arc<dyn RelationPlanner> {
    Arc::new(TypedRelations)
}

/// Finds set operations and hidden names.
struct Reasons;

impl Visitor for Reasons {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let has_set =
            matches!(&*query.body, SetExpr::SetOperation { .. }) || query.pipe_operators.iter().any(is_set);
        if has_set { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_hidden = |item: &SelectItem| match item {
            SelectItem::ExprWithAlias { alias, .. } => plain_name(&alias.value) != alias.value,
            _ => false,
        };
        if select.projection.iter().any(is_hidden) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

struct Relations;

impl VisitorMut for Relations {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        match mark_parts(query).and_then(|()| write_sets(query)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        select.from.iter_mut().for_each(write_all);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        for operator in &mut query.pipe_operators {
            if let PipeOperator::Join(join) = operator {
                write(&mut join.relation);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            write_all(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

fn is_set(operator: &PipeOperator) -> bool {
    use PipeOperator::{Except, Intersect, Union};
    matches!(operator, Except { .. } | Intersect { .. } | Union { .. })
}

/// Makes tables without a name of the rows of set operations in pipes before other operators: these operators
/// know their types then, as queries around a set operation do.
fn write_sets(query: &mut Query) -> Result<()> {
    for _ in 0..=OPERATORS_MAX {
        let operators = &query.pipe_operators;
        let mut pairs = operators.iter().zip(operators.iter().skip(1));
        let Some(last) = pairs.position(|(own, next)| is_set(own) && !is_set(next)) else { return Ok(()) };
        let behind = query.pipe_operators.split_off(last + 1);
        let before = std::mem::replace(&mut query.pipe_operators, behind);
        let (order_by, limit_clause) = (query.order_by.take(), query.limit_clause.take());
        mark(&mut query.body, SETS)?;
        if let SetExpr::Select(select) = &mut *query.body
            && let Some(tables) = select.from.first_mut()
            && let TableFactor::Derived { subquery, alias, .. } = &mut tables.relation
        {
            *alias = None;
            (subquery.order_by, subquery.limit_clause) = (order_by, limit_clause);
            subquery.pipe_operators = before;
        }
    }
    Err(Error::NotImplemented(format!(
        "more than {OPERATORS_MAX} set operations before other operators of a pipe are not supported (make a table \
         of a part of them)"
    )))
}

fn write_all(tables: &mut TableWithJoins) {
    write(&mut tables.relation);
    for join in &mut tables.joins {
        write(&mut join.relation);
    }
}

fn write(relation: &mut TableFactor) {
    if is_of_rows(relation) {
        let nothing = Expr::Value(Value::Null.with_empty_span());
        let nothing = TableFactor::TableFunction { expr: nothing, alias: None };
        let relation_alone =
            TableWithJoins { relation: std::mem::replace(relation, nothing), joins: Vec::new() };
        *relation = TableFactor::NestedJoin { table_with_joins: Box::new(relation_alone), alias: None };
    }
}

/// Whether a relation is a query, or a table, which may be one of WITH. Lateral queries are planned apart.
fn is_of_rows(relation: &TableFactor) -> bool {
    matches!(relation, TableFactor::Table { args: None, .. } | TableFactor::Derived { lateral: false, .. })
}

#[derive(Debug)]
struct TypedRelations;

impl RelationPlanner for TypedRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<RelationPlanning> {
        let inner = match relation {
            TableFactor::NestedJoin { table_with_joins, alias: None }
                if table_with_joins.joins.is_empty() && is_of_rows(&table_with_joins.relation) =>
            {
                table_with_joins.relation
            }
            other => return Ok(RelationPlanning::Original(Box::new(other))),
        };
        let plan = context.plan(inner)?;
        // It knows these unions by the schemas that they have when they are planned.
        check_by_name(&plan)?;
        let plan = with_plain_names(with_types_of_run(of_all_sides(plan)?)?)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

#[cfg(test)]
mod tests {
    use super::OPERATORS_MAX;
    use crate::sql::small_tables::{rows_in, session_of};

    #[test]
    fn set_operations_of_pipes_are_planned_to_a_bound() {
        let mut session = session_of(&[]);
        let pipe =
            |count| format!("select 1 as x{}", " |> union all (select 2) |> where x < 2".repeat(count));
        assert_eq!(rows_in(&mut session, &pipe(20)), ["1"]);
        let error = session.run(&pipe(OPERATORS_MAX + 1)).expect_err("too deep");
        assert_eq!(error.class(), "NotImplemented", "{error}");
        let query = "select column1 as x from (values (2), (3), (1)) v order by x limit 2
                     |> union all (select 9.5) |> where 1 < x |> order by x";
        assert_eq!(rows_in(&mut session, query), ["2", "9.5"]);
    }
}
