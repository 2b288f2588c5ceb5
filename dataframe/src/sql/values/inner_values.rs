//! `VALUES` in queries of statements whose rows are of a table.
//!
//! The library gives all VALUES of INSERT, and of CREATE TABLE with columns, the types of the table, from the
//! first column on; also those in FROM and WITH, which have columns of their own: 2.5 was cut beside a whole
//! number of the table, and rows of another length were refused. Here they are tables of a name, which are
//! planned as in other statements.

use super::value_rows::{rows_of_table, within};
use crate::error::{Error, Result};
use crate::sql::clauses::counted_sets::mark;
use datafusion::common::{DFSchema, Result as EngineResult};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Query, SetExpr, Statement, TableFactor, VisitMut, VisitorMut,
};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The name of such rows.
const ROWS: &str = "__tharsis_rows";

/// Makes tables of the VALUES in queries of a statement whose rows are of a table.
pub(in crate::sql) fn mark_rows(part: &mut impl VisitMut) -> Result<()> {
    part.visit(&mut Finder).break_value().flatten().map_or(Ok(()), Err)
}

/// The planner of these tables.
pub(in crate::sql) fn planner() -> Arc<dyn RelationPlanner> {
    Arc::new(InnerValues)
}

/// Finds the rows of a table.
struct Finder;

impl VisitorMut for Finder {
    type Break = Option<Error>;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Option<Error>> {
        match rows_of_table(statement) {
            Some(rows) => ControlFlow::Break(within(rows, &mut Marker).break_value()),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Option<Error>> {
        ControlFlow::Break(None)
    }
}

/// Makes tables of VALUES.
struct Marker;

impl VisitorMut for Marker {
    type Break = Error;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        match mark_sides(&mut query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn mark_sides(rows: &mut SetExpr) -> Result<()> {
    if matches!(rows, SetExpr::Values(_)) {
        return mark(rows, ROWS);
    }
    if let SetExpr::SetOperation { left, right, .. } = rows {
        mark_sides(left)?;
        mark_sides(right)?;
    }
    Ok(())
}

#[derive(Debug)]
struct InnerValues;

impl RelationPlanner for InnerValues {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<RelationPlanning> {
        let (query, alias) = match relation {
            TableFactor::Derived { subquery, alias: Some(alias), .. } if alias.name.value == ROWS => {
                (subquery, alias)
            }
            other => return Ok(RelationPlanning::Original(Box::new(other))),
        };
        let Query { body, .. } = *query;
        let SetExpr::Values(values) = *body else {
            return Err(Error::Internal(format!("{ROWS} are no VALUES")).into());
        };
        let (no_columns, mut rows) = (DFSchema::empty(), Vec::with_capacity(values.rows.len()));
        for row in values.rows {
            let row = row.content.into_iter().map(|value| context.sql_to_expr(value, &no_columns));
            rows.push(row.collect::<EngineResult<Vec<Expr>>>()?);
        }
        let plan = LogicalPlanBuilder::values(rows)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, Some(alias)))))
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, rows_in, session_of};

    #[test]
    fn values_in_queries_have_types_of_their_own() {
        let mut session = session_of(&["create table t (a bigint, b double)"]);
        for (insert, expected) in [
            ("insert into t select y, x from (values (2.5, 1)) v (x, y)", "1 2.5"),
            ("insert into t select x, x from (values (3)) v (x)", "3 3"),
            ("insert into t with v (x, y) as (values (0.5, 4)) select y, x from v", "4 0.5"),
            ("insert into t (b, a) select x, z from (values (5.5, 'z', 5)) v (x, y, z)", "5 5.5"),
            (
                "insert into t select y, x from (values (6.5, 6) union values (6.5, 6)) v (x, y) where y in
                 (select * from (values (6), (7)) w)",
                "6 6.5",
            ),
            ("insert into t values (7, 7.5)", "7 7.5"),
        ] {
            cells(&mut session, insert);
            assert_eq!(rows_in(&mut session, "select a, b from t"), [expected], "{insert}");
            cells(&mut session, "delete from t");
        }
        cells(
            &mut session,
            "create table c (a bigint, b double) as select y, x from (values (2.5, 1)) v (x, y)",
        );
        assert_eq!(rows_in(&mut session, "select a, b from c"), ["1 2.5"]);
        cells(&mut session, "create table d (ts timestamp)");
        cells(&mut session, "insert into d select x from (values (date '2024-01-02'), ('2024-01-03')) v (x)");
        let query = "select count(*) from d where ts = timestamp '2024-01-03 00:00:00'";
        assert_eq!(rows_in(&mut session, query), ["1"]);
    }
}
