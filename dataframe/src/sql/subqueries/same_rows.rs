//! Readings of the rows of a plan: as they are each time, or made once for all.

use super::plain::subquery_of;
use super::reads::depends;
use crate::sql::plans::columns;
use crate::sql::tables::frame_rows::plan_of;
use arrow::datatypes::DataType;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as EngineResult, not_impl_err};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::logical_plan::{SubqueryAlias, Window};
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, Filter, LogicalPlan, Projection};

/// Operators of rows that are read twice at most: a plan that reads itself twice again and again has 2^n.
const OPERATORS_MAX: usize = 500;

/// The ways in which rows may be read several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sql) enum Readings {
    /// As they are: they are those of a table, and the same ones each time.
    Any,
    /// As they are. They depend on a row further out or on a parameter, and cannot be made before it is
    /// known.
    AnyOfDependent,
    /// Made once: they may be others each time, or cost more than rows that wait for their readers.
    Once,
}

/// The way in which the rows of a plan may be read several times. Those that must be made once and cannot are
/// refused.
pub(in crate::sql) fn readings_of(plan: &LogicalPlan) -> EngineResult<Readings> {
    if reads_itself(plan)? {
        return not_impl_err!(
            "WITH RECURSIVE: a subquery of the recursive term that depends on a row of the query itself by \
             another condition than equality, or as more than rows or an aggregate of them, is not supported"
        );
    }
    if !is_dependent(plan)? {
        let is_any = is_of_table(plan) && is_same_each_time(plan)?;
        return Ok(if is_any { Readings::Any } else { Readings::Once });
    }
    if !is_same_each_time(plan)? {
        return not_impl_err!(
            "a subquery that depends on the row around it by another condition than equality, or as more \
             than rows or an aggregate of them, is not supported where the rows around may be others each \
             time they are read, and depend on a row further out or on a parameter"
        );
    }
    if OPERATORS_MAX < operators_of(plan)? {
        return not_impl_err!(
            "subqueries that depend on rows around them, which depend on rows further out, make a plan of \
             more than {OPERATORS_MAX} operators"
        );
    }
    Ok(Readings::AnyOfDependent)
}

/// The number of operators of a plan.
fn operators_of(plan: &LogicalPlan) -> EngineResult<usize> {
    let mut operators = 0;
    plan.apply_with_subqueries(|node| {
        operators += plan_of(node).map_or(Ok(1), operators_of)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(operators)
}

/// Whether a plan reads the rows that a recursive query has made in the round before: there is one reader of
/// them.
pub(in crate::sql) fn reads_itself(plan: &LogicalPlan) -> EngineResult<bool> {
    let (mut read, mut own) = (Vec::new(), Vec::new());
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let table = source_as_provider(&scan.source).ok();
                let table = table.as_ref().and_then(|table| table.downcast_ref::<CteWorkTable>());
                read.extend(table.map(|table| table.name().to_owned()));
            }
            // Another recursive query within has rows of its own.
            LogicalPlan::RecursiveQuery(query) => own.push(query.name.clone()),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(read.iter().any(|name| !own.contains(name)))
}

/// Whether the rows of a plan depend on a row further out, or on parameters, whose values are set in it
/// later.
pub(in crate::sql) fn is_dependent(plan: &LogicalPlan) -> EngineResult<bool> {
    let mut found = depends(plan);
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(matches!(part, Expr::Placeholder(_))))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether the rows of a plan are those of a table, with conditions and values of each row alone: it costs
/// less to read them twice than to keep them.
pub(in crate::sql) fn is_of_table(mut plan: &LogicalPlan) -> bool {
    loop {
        let has_subquery = |expr: &Expr| expr.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true);
        plan = match plan {
            LogicalPlan::Projection(Projection { expr, input, .. }) if !expr.iter().any(has_subquery) => {
                input
            }
            LogicalPlan::Filter(Filter { predicate, input, .. }) if !has_subquery(predicate) => input,
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => input,
            LogicalPlan::TableScan(_) | LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => {
                return true;
            }
            other => match plan_of(other) {
                Some(plan) => plan,
                None => return false,
            },
        };
    }
}

/// Whether a plan gives the same rows each time.
pub(in crate::sql) fn is_same_each_time(plan: &LogicalPlan) -> EngineResult<bool> {
    let mut is_same = true;
    plan.apply_with_subqueries(|node| {
        is_same &= !is_limited(node) && !depends_on_order(node);
        is_same &= match node {
            LogicalPlan::Window(window) => is_of_all_columns(window),
            LogicalPlan::Extension(_) => plan_of(node).map_or(Ok(false), is_same_each_time)?,
            _ => true,
        };
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
    use crate::sql::small_tables::{refused, rows, session};

    /// The number of rows of `u` above a value of `t`, which is the row's own in rows that are made once.
    const ABOVE: &str = "(select count(*) from u where u.a > t.a)";

    #[test]
    fn rows_that_may_be_others_are_made_once() {
        let all = ["1 10 3", "2 20 2", "3 30 1", "NULL 40 0"];
        for of in [
            "(select * from t limit 2)",
            "(select * from t order by a limit 2)",
            "(select * from t order by abs(b % 10) limit 3 offset 1)",
            "(select distinct on (abs(b % 20)) a, b from t)",
        ] {
            let found = rows(&format!("select a, b, {ABOVE} from {of} t"));
            assert!(!found.is_empty() && found.iter().all(|row| all.contains(&row.as_str())), "{found:?}");
            let there = "exists (select 1 from u where u.a > t.a and u.a > 2)";
            let query = format!("select a, {there} x from {of} t");
            let query = format!("select count(*), bool_and(x = (a is not null)) from ({query}) s");
            assert_eq!(rows(&query), [format!("{} true", found.len())], "{of}");
        }
        let numbered = "(select a, b, row_number() over () as n from t)";
        let query =
            format!("select n, (select count(*) from u where u.a > t.n) from {numbered} t order by 1");
        assert_eq!(rows(&query), ["1 3", "2 2", "3 1", "4 1"]);
        let first = "(select * from t order by a nulls first, b limit 2)";
        let query = format!("select b, exists (select 1 from u where u.a > t.a) from {first} t order by b");
        assert_eq!(rows(&query), ["10 true", "40 false"]);
        for condition in [
            "exists (select count(*) from w where w.a = t.a)",
            "exists (select u.a from u except select u.a from u where u.a = t.a)",
            "t.b > any (select w.a from w where w.a <> t.b)",
        ] {
            let query = format!("select count(*) from (select * from t limit 2) t where {condition}");
            assert_eq!(rows(&query), ["2"], "{condition}");
        }
        let equal = "exists (select distinct w.a from w where w.a = t.a order by 1 limit 3)";
        let query = format!("select b from (select * from t where b > 20 limit 2) t where {equal}");
        assert_eq!(rows(&query), ["30"]);
    }

    #[test]
    fn values_that_are_others_each_time_are_made_once() {
        let drawn = "(select random() as r, b from t)";
        let query = format!("select count(*) from {drawn} t, lateral (values (t.r)) v(x) where v.x = t.r");
        assert_eq!(rows(&query), ["4"]);
        let own = format!("select r, (select max(v.x) from (values (t.r)) v(x)) x from {drawn} t");
        assert_eq!(rows(&format!("select count(*) from ({own}) s where r = x")), ["4"]);
        // One value for all rows of a subquery.
        let between = "random() > all (select u.a - 10 from u where u.a <> t.b)";
        assert_eq!(rows(&format!("select count(*) from t where {between}")), ["4"]);
        let of_groups = |value: &str| {
            let of = format!("(select b, {value} as a from t group by b)");
            rows(&format!("select b, exists (select 1 from u where u.a < t.a) from {of} t order by b"))
        };
        for value in ["sum(a * 2.0::double)", "avg(a::bigint)", "first_value(a)", "sum(a)", "max(a * 0.5)"] {
            let third = if value.contains("0.5") { "30 false" } else { "30 true" };
            let second = if value.contains("2.0") { "20 true" } else { "20 false" };
            assert_eq!(of_groups(value), ["10 false", second, third, "40 false"], "{value}");
        }
    }

    #[test]
    fn rows_that_values_are_compared_with_are_made_once() {
        // One row, which is 0 or missing: it is never known that no row is 0.
        let among = |at: usize| format!("0 in (select nullif(floor(random() * 2), 1) + {at} * 0) c{at}");
        let values: Vec<String> = (0..20).map(among).collect();
        let found = rows(&format!("select {} from (values (1)) v", values.join(", ")));
        assert!(found.iter().all(|row| !row.contains("false")), "{found:?}");
        assert_eq!(rows("select b from t where a not in (select a from u limit 5) order by b"), ["10"]);
    }

    #[test]
    fn rows_that_are_made_once_are_those_of_views_and_of_prepared_statements() {
        let mut session = session();
        let of = "(select * from t limit 4)";
        for statement in [
            format!("create view v as select b, {ABOVE} n from {of} t"),
            format!("prepare p(int) as select b, {ABOVE} + $1 n from {of} t where b > $1 order by b"),
            format!("create table made as select b, {ABOVE} n from {of} t"),
        ] {
            session.run(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let expected = ["10 3", "20 2", "30 1", "40 0"];
        for (query, expected) in [
            ("select * from v order by b", &expected[..]),
            ("select * from made order by b", &expected),
            ("select a.b, b.n from v a join v b on a.b = b.b order by 1", &expected),
            ("execute p(10)", &["20 12", "30 11", "40 10"]),
            ("execute p(20)", &["30 21", "40 20"]),
        ] {
            let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
            let rows: Vec<String> = rows.into_iter().map(|row| row.join(" ")).collect();
            assert_eq!(rows, expected, "{query}");
        }
    }

    #[test]
    fn rows_that_are_made_once_are_those_of_frames() {
        use crate::{DataFrame, sql};
        let t = DataFrame::from_columns([("a", vec![1, 2, 3].into())]);
        let u = DataFrame::from_columns([("a", vec![2, 3, 5].into())]);
        let query = format!("select a, {ABOVE} n from (select * from t limit 3) t order by a");
        let counted = sql(&query, &[("t", &t), ("u", &u)]);
        assert_eq!(counted.col("n").values::<i64>().expect("rows"), [3, 2, 1].map(Some));
        let query = "select x.a, (select sum(y.n) from y where y.a > x.a) s from x order by a";
        let again = sql(query, &[("x", &counted), ("y", &counted)]);
        assert_eq!(again.col("s").values::<i64>().expect("rows"), [Some(3), Some(1), None]);
    }

    #[test]
    fn rows_that_cannot_be_made_once_are_refused() {
        let recursive = |step: &str| {
            format!("with recursive r(a) as (select 1 union all {step}) select a from r order by a")
        };
        let least = "select (select min(u.a) from u where u.a > r.a) from r where a < 5";
        assert!(refused(&recursive(least)).contains("recursive term"));
        let inner = "with recursive s(m) as (select a from r union all select m + 1 from s where m < 3) \
                     select m x, (select count(*) from u where u.a > s.m) n from s";
        let within = format!("select q.x from ({inner}) q where q.n > 0 and q.x < 3");
        assert!(refused(&recursive(&within)).contains("recursive term"));
        let of_others = "select r.a + 1 from r join \
                         (select a, (select count(*) from u where u.a > x.a) n from (select * from t limit 4) x) s \
                         on s.a = r.a where s.n > 0";
        assert_eq!(rows(&recursive(of_others)), ["1", "2", "3", "4"]);
        let within = "select s.a from (select u.a from u where u.a > t.a limit 1) s \
                      where (select count(*) from w where w.a > s.a) > 0";
        let query = format!("select b from t where exists ({within})");
        assert!(refused(&query).contains("depend on a row further out"));
    }
}
