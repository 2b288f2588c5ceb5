//! `INTERSECT ALL` and `EXCEPT ALL`.
//!
//! The library makes semi and anti joins of them, which keep all rows of the left side that have an equal one
//! on the right side, or none that has. Equal rows are numbered here on both sides, and the numbers compared
//! too: the third `a` of the left side has a partner if there are three on the right side.

use crate::error::{Error, Result};
use crate::frame::HIDDEN;
use crate::sql::plans::columns;
use datafusion::common::{Column, Result as EngineResult};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::logical_plan::{Join, Window};
use datafusion::logical_expr::sqlparser::ast::{Query, SetExpr, Statement, TableFactor};
use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::parser::Parser;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, Projection};
use std::sync::Arc;

/// The name of a left side whose equal rows are counted.
const COUNTED: &str = "__tharsis_counted";

/// Gives the left side of a set operation a name by which its plan is found.
pub(in crate::sql) fn mark_counted(left: &mut SetExpr) -> Result<()> {
    mark(left, COUNTED)
}

/// Makes a table with a name of rows.
pub(in crate::sql) fn mark(rows: &mut SetExpr, name: &str) -> Result<()> {
    let template = format!("SELECT * FROM (SELECT 1) AS {name}");
    let parsed = Parser::parse_sql(&GenericDialect {}, &template);
    let mut parsed = parsed.map_err(|error| Error::Internal(error.to_string()))?;
    let side = match parsed.first_mut() {
        Some(Statement::Query(query)) => derived(query),
        _ => None,
    };
    let Some(side) = side else { return Err(Error::Internal(format!("{template} has no table"))) };
    std::mem::swap(&mut *side.body, rows);
    if let Some(Statement::Query(query)) = parsed.pop() {
        *rows = *query.body;
    }
    Ok(())
}

/// The query that is the table of another one.
fn derived(query: &mut Query) -> Option<&mut Query> {
    let SetExpr::Select(select) = &mut *query.body else { return None };
    match &mut select.from.first_mut()?.relation {
        TableFactor::Derived { subquery, .. } => Some(subquery),
        _ => None,
    }
}

/// Whether a join is a set operation whose equal rows are counted.
pub(in crate::sql) fn is_counted(join: &Join) -> bool {
    let mut side = &*join.left;
    loop {
        side = match side {
            LogicalPlan::SubqueryAlias(alias) if alias.alias.table() == COUNTED => return true,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Projection(projection) => &projection.input,
            _ => return false,
        };
    }
}

/// The rows of a set operation, with the numbers of equal rows compared too.
pub(in crate::sql) fn counted(join: Join) -> EngineResult<LogicalPlan> {
    let own = columns(&join.left);
    let (left, of_left) = numbered(join.left, "left")?;
    let (right, of_right) = numbered(join.right, "right")?;
    let on = join.on.into_iter().chain([(of_left, of_right)]).collect();
    let rows = Join::try_new(
        left,
        right,
        on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    Ok(LogicalPlan::Projection(Projection::try_new(own, Arc::new(LogicalPlan::Join(rows)))?))
}

/// The rows with a number among those that are equal, and its column.
fn numbered(rows: Arc<LogicalPlan>, side: &str) -> EngineResult<(Arc<LogicalPlan>, Expr)> {
    let label = format!("{HIDDEN}number_{side}");
    let mut exprs = columns(&rows);
    let number = row_number().partition_by(exprs.clone()).build()?;
    let window = LogicalPlan::Window(Window::try_new(vec![number], rows)?);
    if let Some(number) = columns(&window).pop() {
        exprs.push(number.alias(&label));
    }
    let rows = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(window))?);
    Ok((Arc::new(rows), Expr::Column(Column::new_unqualified(label))))
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{rows_in, session_of};

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        let mut session = session_of(&[
            "create table t (a int, s text) as values (1, 'x'), (1, 'x'), (1, 'x'), (null, 'y'), (null, 'y'), (3, null)",
            "create table u (b bigint, r text) as values (1, 'x'), (1, 'x'), (null, 'y'), (4, 'z'), (3, null), (3, null)",
        ]);
        let mut rows = rows_in(&mut session, query);
        rows.sort();
        rows
    }

    #[test]
    fn equal_rows_are_counted() {
        let (t, u) = ("select a, s from t", "select b, r from u");
        assert_eq!(rows(&format!("{t} intersect all {u}")), ["1 x", "1 x", "3 NULL", "NULL y"]);
        assert_eq!(rows(&format!("{t} except all {u}")), ["1 x", "NULL y"]);
        assert_eq!(rows(&format!("{u} except all {t}")), ["3 NULL", "4 z"]);
        assert_eq!(rows(&format!("{t} except {u}")), [""; 0]);
        assert_eq!(rows(&format!("{t} except all {u} except all {u}")), [""; 0]);
        assert_eq!(
            rows(&format!("{t} intersect all ({u} except all select 1, 'x')")),
            ["1 x", "3 NULL", "NULL y"]
        );
        assert_eq!(rows(&format!("{t} intersect all {t} order by a limit 2")), ["1 x", "1 x"]);
        assert_eq!(
            rows(&format!("select count(*), a from ({t} union all {t} except all {t}) v group by a")),
            ["1 3", "2 NULL", "3 1"]
        );
        assert_eq!(rows("select a from t except all select b from u order by 1"), ["1", "NULL"]);
    }
}
