//! Keys behind the names of tables that are no columns.
//!
//! The library finds only when rows are made that there is no column `t.sold` in ORDER BY or DISTINCT ON, or
//! in a window of ORDER BY. It tells neither the place then nor the columns of the table.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, Diagnostic, Result as EngineResult, SchemaError, Span};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Projection};
use datafusion::sql::parser::Statement;
use std::collections::HashSet;

/// The plan of a statement, all of whose keys are columns.
pub(in crate::sql) async fn plan_of(
    session: &SessionState,
    statement: Statement,
) -> EngineResult<LogicalPlan> {
    let plan = session.statement_to_plan(statement).await?;
    plan.apply_with_subqueries(|node| {
        check(node)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(plan)
}

fn check(node: &LogicalPlan) -> EngineResult<()> {
    let rows = match node {
        LogicalPlan::Sort(sort) => &sort.input,
        LogicalPlan::Distinct(Distinct::On(first)) => &first.input,
        LogicalPlan::Window(windows) => &windows.input,
        _ => return Ok(()),
    };
    node.apply_expressions(|expr| {
        expr.apply(|part| match part {
            Expr::Column(column) if column.relation.is_some() && !is_there(column, rows) => {
                Err(unknown(column, rows))
            }
            _ => Ok(TreeNodeRecursion::Continue),
        })
    })?;
    Ok(())
}

/// Whether rows have a column, shown or not. The library leaves all keys that are not shown as they are if
/// one of them is no column.
fn is_there(column: &Column, rows: &LogicalPlan) -> bool {
    let is_hidden = |shown: &Projection| shown.input.schema().is_column_from_schema(column);
    rows.schema().is_column_from_schema(column)
        || matches!(rows, LogicalPlan::Projection(shown) if is_hidden(shown))
}

/// The error of a column that rows have not, as of one that planning has looked for.
fn unknown(column: &Column, rows: &LogicalPlan) -> DataFusionError {
    let mut known = rows.schema().columns();
    if let LogicalPlan::Projection(shown) = rows {
        // Rows may be ordered by columns that are not shown.
        known.extend(shown.input.schema().columns());
    }
    let mut seen = HashSet::new();
    known.retain(|column| seen.insert(column.clone()));
    no_column(column.clone(), known, column.spans().first())
}

/// The error of a column that is none of these, at its place.
pub(in crate::sql) fn no_column(column: Column, known: Vec<Column>, place: Option<Span>) -> DataFusionError {
    let said = Diagnostic::new_error(format!("no column {column}"), place);
    let reason = SchemaError::FieldNotFound { field: Box::new(column), valid_fields: known };
    DataFusionError::SchemaError(Box::new(reason), Box::new(None)).with_diagnostic(said)
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{failed, rows};

    #[test]
    fn keys_that_are_no_columns_have_a_place_and_the_columns_of_the_table() {
        for (query, column) in [
            ("select a from t order by t.c", 26),
            ("select distinct on (t.c) a from t", 21),
            ("select a from t order by rank() over (order by t.c), a", 48),
            ("select a from t order by sum(a) over (partition by t.c)", 52),
        ] {
            let error = failed(query);
            let found = error.to_string();
            assert!(
                found.starts_with(&format!("line 1, column {column}: no column \"c\"; there are ")),
                "{found}"
            );
            assert_eq!(error.class(), "KeyError", "{query}");
        }
        let found = failed("select a from t order by t.c").to_string();
        assert!(found.contains("there are \"a\", \"b\""), "{found}");
    }

    #[test]
    fn rows_are_ordered_by_columns_that_are_not_shown() {
        assert_eq!(rows("select x.a from t x join u on x.a = u.a order by u.a desc, x.b"), ["3", "2"]);
        assert_eq!(rows("select a + 1 as c from t where a < 3 group by a order by t.a desc"), ["3", "2"]);
        assert_eq!(rows("select distinct on (t.a) b from t where a < 3 order by t.a"), ["10", "20"]);
        let windows = "rank() over (partition by sum(t.b) > 20 order by t.a desc)";
        assert_eq!(
            rows(&format!("select a from t where a < 4 group by a order by {windows}, a")),
            ["2", "3", "1"]
        );
        assert_eq!(
            rows("select a from (select a from t order by t.b desc limit 3) x order by x.a"),
            ["2", "3", "NULL"]
        );
    }
}
