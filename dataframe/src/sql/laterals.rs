//! Lateral queries, which read columns of the tables before them.

use super::dependent::Beside;
use super::plain::is_plain_lateral;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, Result as EngineResult, not_impl_err};
use datafusion::logical_expr::logical_plan::{Join, SubqueryAlias};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Subquery};
use std::sync::Arc;

/// The lateral query that a side of a join is.
pub(super) fn lateral_of(mut side: &LogicalPlan) -> Option<&Subquery> {
    loop {
        side = match side {
            LogicalPlan::Subquery(lateral) => return Some(lateral),
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
            | LogicalPlan::Projection(Projection { input, .. }) => input,
            _ => return None,
        };
    }
}

/// The join of rows with a lateral query as one with its rows for each combination of values; `None` if the
/// library makes a right one. It has more columns than the first one.
pub(super) fn with_lateral(join: &Join) -> EngineResult<Option<Join>> {
    let Some(lateral) = lateral_of(&join.right) else { return Ok(None) };
    if join.join_type == JoinType::Inner && is_plain_lateral(&lateral.subquery, join.left.schema()) {
        return Ok(None);
    }
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return not_impl_err!("LATERAL in a {} join is not supported", join.join_type);
    }
    let right = LogicalPlan::clone(&join.right).transform_down(|node| {
        Ok(match node {
            LogicalPlan::Subquery(lateral) => {
                let rows = Arc::unwrap_or_clone(lateral.subquery);
                Transformed::new(rows, true, TreeNodeRecursion::Jump)
            }
            node => Transformed::no(node),
        })
    })?;
    let combinations = Beside::of(Arc::clone(&join.left)).combinations(&right.data, None)?;
    let made = combinations.beside(&right.data)?;
    let on = combinations.columns.iter();
    let on =
        on.map(|(outer, name)| (Expr::Column(outer.clone()), Expr::Column(Column::new_unqualified(name))));
    let equal = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let made = Join::try_new(
        Arc::clone(&join.left),
        Arc::new(made),
        on.collect(),
        conjunction(equal.chain(join.filter.clone())),
        join.join_type,
        join.join_constraint,
        NullEquality::NullEqualsNull,
        false,
    )?;
    Ok(Some(made))
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        let mut session = SqlSession::default().part_rows_min(1);
        for statement in [
            "create table t (a int, b int) as values (1, 10), (2, 20), (3, 30), (null, 40)",
            "create table u (a int) as values (2), (3), (5)",
            "create table w (a int) as values (2), (3), (3), (5)",
        ] {
            session.run(statement).expect("a table");
        }
        let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.into_iter().map(|row| row.join(" ")).collect()
    }

    #[test]
    fn lateral_rows_are_of_one_row_around() {
        let lateral = |shown: &str, rows_of: &str| {
            rows(&format!("select {shown} from t, lateral ({rows_of}) s(x) order by 1, 2"))
        };
        let different = "select distinct u.a > 2 from u where u.a <> t.a";
        assert_eq!(lateral("b, x", different), ["10 false", "10 true", "20 true", "30 false", "30 true"]);
        let except = "select u.a from u except select u.a from u where u.a = t.a";
        let expected = ["10 2", "10 3", "10 5", "20 3", "20 5", "30 2", "30 5", "40 2", "40 3", "40 5"];
        assert_eq!(lateral("b, x", except), expected);
        let number = "select row_number() over (order by w.a) from w where w.a = t.a";
        assert_eq!(lateral("b, x", number), ["20 1", "30 1", "30 2"]);
        assert_eq!(lateral("b, x", "select u.a + t.a from u where u.a = t.a"), ["20 4", "30 6"]);
        let sums = ["10 NULL", "20 2", "30 3", "40 NULL"];
        assert_eq!(lateral("b, x", "select sum(u.a) from u where u.a = t.a"), sums);
        let sums = ["10 NULL", "20 NULL", "30 2", "40 NULL"];
        assert_eq!(lateral("b, x", "select sum(u.a) from u where u.a + 1 = t.a"), sums);
        assert_eq!(lateral("b, x", "values (t.a), (t.b)")[..2], ["10 1", "10 10"]);
        let left =
            "select t.b, s.a from t left join lateral (select u.a from u where u.a > t.a) s on s.a < 5";
        assert_eq!(rows(&format!("{left} order by 1, 2")), ["10 2", "10 3", "20 3", "30 NULL", "40 NULL"]);
        let two = "select t.b, r.a, s.n from t, lateral (select u.a from u where u.a > t.a order by 1 limit 1) r, \
                   lateral (select count(*) n from u where u.a > r.a) s order by 1";
        assert_eq!(rows(two), ["10 2 2", "20 3 1", "30 5 0"]);
        // Plain rows are joined by the library, whatever rows are around.
        let some = "select s.a from (select * from t where a = 2 limit 1) t, lateral (select u.a from u where u.a > t.a) s";
        assert_eq!(rows(&format!("{some} order by 1")), ["3", "5"]);
    }

    #[test]
    fn lateral_rows_depend_in_subqueries_of_their_own() {
        let greatest = "lateral (select (select max(u.a) from u where u.a <= t.a) m) s";
        let of_each = ["10 NULL", "20 2", "30 3", "40 NULL"];
        assert_eq!(rows(&format!("select t.b, s.m from t, {greatest} order by 1")), of_each);
        assert_eq!(rows(&format!("select t.b, s.m from t left join {greatest} on true order by 1")), of_each);
        let named = greatest.replace(") s", ") s(x)");
        assert_eq!(rows(&format!("select t.b, s.x from t cross join {named} order by 1")), of_each);
        // The nearest table of this name.
        let sums = format!("select b, (select sum(m) from t, {greatest}) from t order by b");
        assert_eq!(rows(&sums), ["10 5", "20 5", "30 5", "40 5"]);
        let some = "select t.b, s.a from t, lateral (select u.a from u where exists \
                    (select 1 from w where w.a = u.a and w.a > t.a)) s order by 1, 2";
        assert_eq!(rows(some), ["10 2", "10 3", "10 5", "20 3", "20 5", "30 5"]);
        // Columns of the lateral query alone.
        let own = "select t.b, s.n from t, lateral (select count(*) n from u where exists \
                   (select 1 from w where w.a > u.a)) s order by 1";
        assert_eq!(rows(own), ["10 2", "20 2", "30 2", "40 2"]);
    }

    #[test]
    fn missing_values_are_equal_in_no_condition_beside_joins_back() {
        let mut session = SqlSession::default().part_rows_min(1);
        for statement in [
            "create table t (k int, x int) as values (1, null), (2, 5), (2, null)",
            "create table v (y int) as values (null), (5)",
            "create table u (k int, a int) as values (1, null), (2, 5), (3, null), (3, 2)",
        ] {
            session.run(statement).expect("a table");
        }
        for (query, expected) in [
            (
                "select t.k, t.x, s.k from t left join lateral (select u.k, u.a from u where u.k >= t.k) s \
                 on s.a = t.x",
                &["1 NULL NULL", "2 5 2", "2 NULL NULL"][..],
            ),
            (
                "select t.k, t.x, s.a from t join v on t.x = v.y, lateral (select u.a from u where u.a > t.k \
                 order by 1 limit 1) s",
                &["2 5 5"],
            ),
            ("select k, x, 0 from t where (select max(u.a) from u where u.k <= t.k) = t.x", &["2 5 0"]),
            (
                "select * from t join v on t.x = v.y where (select max(u.a) from u where u.a > t.k) > 1",
                &["2 5 5"],
            ),
            (
                "select k, x, 0 from t where exists (select max(u.a) from u where u.k <= t.k \
                 having max(u.a) = t.x)",
                &["2 5 0"],
            ),
            (
                "select t.k, t.x, s.a from t, lateral (select u.a from u where u.k <= t.k order by u.k limit 5) s \
                 where s.a = t.x",
                &["2 5 5"],
            ),
            (
                "select t.k, v.y, w.y from t join v on t.x = v.y join v w on t.x is not distinct from w.y",
                &["2 5 5"],
            ),
            (
                "select t.k, v.y, w.y from t join v w on t.x is not distinct from w.y join v on t.x = v.y",
                &["2 5 5"],
            ),
            (
                "select t.k, t.x, u.k from t join u on t.k is not distinct from u.k where t.x = u.a",
                &["2 5 2"],
            ),
            ("select t.k, t.x, u.k from t, u where t.k is not distinct from u.k and t.x = u.a", &["2 5 2"]),
            (
                "select t.k, t.x, u.a from t left join u on t.k is not distinct from u.k and t.x = u.a",
                &["1 NULL NULL", "2 5 5", "2 NULL NULL"],
            ),
            (
                "select t.k, v.y, w.y from t join v on t.x is not distinct from v.y \
                 join v w on v.y is not distinct from w.y",
                &["1 NULL NULL", "2 5 5", "2 NULL NULL"],
            ),
        ] {
            let query = format!("{query} order by 1, 2, 3");
            let rows = session.run(&query).unwrap_or_else(|error| panic!("{query}: {error}"));
            let rows: Vec<String> = rows.into_iter().map(|row| row.join(" ")).collect();
            assert_eq!(rows, expected, "{query}");
        }
    }
}
