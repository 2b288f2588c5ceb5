//! Plans whose rows may be read twice: they are the same ones each time.

use super::plans::columns;
use arrow::datatypes::DataType;
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::logical_plan::Window;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan};

/// Operators of rows that are read twice at most: a plan that reads itself twice again and again has 2^n.
const OPERATORS_MAX: usize = 500;

/// Whether a plan gives the same rows each time.
pub(super) fn is_same_each_time(plan: &LogicalPlan) -> EngineResult<bool> {
    let (mut operators, mut is_same) = (0, true);
    plan.apply_with_subqueries(|node| {
        operators += 1;
        is_same &= operators <= OPERATORS_MAX && !is_limited(node);
        is_same &= match node {
            LogicalPlan::Window(window) => is_of_all_columns(window),
            LogicalPlan::Extension(_) => false,
            _ => true,
        };
        is_same &= !depends_on_order(node);
        node.apply_expressions(|expr| {
            is_same &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if is_same { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_same)
}

/// Whether windows tell all rows apart that are not equal: any of equal ones may be the first.
fn is_of_all_columns(window: &Window) -> bool {
    let own = columns(&window.input);
    window.window_expr.iter().all(|expr| {
        let Expr::WindowFunction(call) = expr.clone().unalias_nested().data else { return false };
        let order = call.params.order_by.iter().map(|key| &key.expr);
        let keys: Vec<&Expr> = call.params.partition_by.iter().chain(order).collect();
        own.iter().all(|column| keys.contains(&column))
    })
}

/// Whether an operator has aggregates whose values depend on the order of rows. That of the groups is the
/// order in which tasks end.
fn depends_on_order(node: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = node else { return false };
    aggregate.aggr_expr.iter().any(|expr| {
        let Expr::AggregateFunction(call) = expr.clone().unalias_nested().data else { return false };
        let of = call.params.args.first();
        let of = of.and_then(|value| value.get_type(aggregate.input.schema()).ok());
        match call.func.name() {
            "sum" | "tharsis_checked_sum" => !of.is_some_and(|of| of.is_decimal() || of.is_integer()),
            // They add floats.
            "avg" => !of.is_some_and(|of| of.is_decimal() || of.is_integer() && !is_wide(&of)),
            name => !WITHOUT_ORDER.contains(&name),
        }
    })
}

/// Whether sums of such whole numbers are no whole numbers as floats.
fn is_wide(of: &DataType) -> bool {
    matches!(of, DataType::Int64 | DataType::UInt64)
}

/// Aggregates whose values do not depend on the order of rows.
const WITHOUT_ORDER: [&str; 10] = [
    "approx_distinct",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "count",
    "max",
    "median",
    "min",
];

/// Whether an operator gives some of its rows, which may be others each time: not so if they are in an order
/// by all their columns.
fn is_limited(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Limit(limit) => match &*limit.input {
            LogicalPlan::Sort(sort) => {
                let is_key = |column: &Expr| sort.expr.iter().any(|key| key.expr == *column);
                !columns(&sort.input).iter().all(is_key)
            }
            _ => true,
        },
        LogicalPlan::Distinct(Distinct::On(_)) => true,
        LogicalPlan::Sort(sort) => sort.fetch.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    fn session() -> SqlSession {
        let mut session = SqlSession::default().part_rows_min(1);
        for statement in [
            "create table t (a int, b int) as values (1, 10), (2, 20), (3, 30), (null, 40)",
            "create table u (a int) as values (2), (3), (5)",
        ] {
            session.run(statement).expect("a table");
        }
        session
    }

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        let rows = session().run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.into_iter().map(|row| row.join(" ")).collect()
    }

    #[test]
    fn rows_that_may_be_others_are_not_read_twice() {
        for of in [
            "(select * from t limit 2)",
            "(select * from t order by a limit 2)",
            "(select a, b, row_number() over () from t)",
        ] {
            let query = format!("select exists (select 1 from u where u.a < t.a) from {of} t");
            let error = session().run(&query).expect_err("no operator for it");
            assert_eq!(error.class(), "NotImplemented", "{error}");
        }
        let first = "(select * from t order by a nulls first, b limit 2)";
        let query = format!("select b, exists (select 1 from u where u.a > t.a) from {first} t order by b");
        assert_eq!(rows(&query), ["10 true", "40 false"]);
        let of = |value: &str| {
            let of = format!("(select b, {value} as a from t group by b)");
            session()
                .run(&format!("select b, exists (select 1 from u where u.a < t.a) from {of} t order by b"))
        };
        for value in ["sum(a * 0.5::double)", "avg(a::bigint)", "first_value(a)", "stddev(a)"] {
            assert!(of(value).is_err(), "{value}");
        }
        for value in ["sum(a)", "avg(a)", "max(a * 0.5)", "count(distinct a) + max(a) - 1"] {
            let rows = of(value).unwrap_or_else(|error| panic!("{value}: {error}"));
            let truths: Vec<String> = rows.into_iter().map(|row| row.join(" ")).collect();
            let third = if value.contains("0.5") { "30 false" } else { "30 true" };
            assert_eq!(truths, ["10 false", "20 false", third, "40 false"], "{value}");
        }
        let query = "select (select count(*) from u where u.a < t.a) from (select random() as a from t) t";
        let error = session().run(query).expect_err("no operator for it");
        assert!(error.to_string().contains("by another condition than equality"), "{error}");
    }
}
