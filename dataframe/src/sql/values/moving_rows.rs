//! Aggregates of truth values over frames of rows that move.
//!
//! The library cannot take rows out of `bool_and` and `bool_or`. They are the least and the greatest of their
//! values, of which it can.

use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::logical_plan::Window;
use datafusion::logical_expr::{Expr, WindowFunctionDefinition};

/// Whether a window has such aggregates.
pub(in crate::sql) fn has_truths(window: &Window) -> EngineResult<bool> {
    let mut found = false;
    for expr in &window.window_expr {
        expr.apply(|part| {
            if let Expr::WindowFunction(call) = part {
                found |= is_truth(&call.fun);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

/// The function that gives the same value, and can leave rows out again.
pub(in crate::sql) fn of_moving_rows(function: WindowFunctionDefinition) -> WindowFunctionDefinition {
    match &function {
        WindowFunctionDefinition::AggregateUDF(aggregate) if aggregate.name() == "bool_and" => {
            WindowFunctionDefinition::AggregateUDF(min_udaf())
        }
        WindowFunctionDefinition::AggregateUDF(aggregate) if aggregate.name() == "bool_or" => {
            WindowFunctionDefinition::AggregateUDF(max_udaf())
        }
        _ => function,
    }
}

fn is_truth(function: &WindowFunctionDefinition) -> bool {
    matches!(function, WindowFunctionDefinition::AggregateUDF(aggregate)
        if matches!(aggregate.name(), "bool_and" | "bool_or"))
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[test]
    fn truth_values_move_with_their_rows() {
        let mut session = SqlSession::default();
        session
            .run("create table t (b int, p boolean) as values (1, true), (2, false), (3, null), (4, null), (5, true)")
            .expect("a table");
        let over = "over (order by b rows between 1 preceding and current row)";
        let query = format!("select b, bool_and(p) {over}, bool_or(p) {over} from t order by b");
        let rows = session.run(&query).expect("rows");
        let rows: Vec<String> = rows.into_iter().map(|row| row.join(" ")).collect();
        let expected = ["1 true true", "2 false true", "3 false false", "4 NULL NULL", "5 true true"];
        assert_eq!(rows, expected);
        let query = "select b from t qualify bool_and(p) over (order by b rows 1 preceding) order by b";
        assert_eq!(session.run(query).expect("rows"), [["1"], ["5"]]);
    }
}
