//! Lateral queries, which read columns of the tables before them.

use super::dependent::Beside;
use super::plain::{is_plain_lateral, subquery_of};
use super::reads::{depends, lateral_of, outer_columns};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, JoinType, NullEquality, Result as EngineResult, Spans, not_impl_err,
};
use datafusion::logical_expr::logical_plan::{Join, SubqueryAlias};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Subquery};
use std::sync::Arc;

/// The operator over rows that are no lateral queries. The mark of one is left at the right side of a join,
/// whose left side has the columns: anywhere else these are columns of a query further out.
pub(in crate::sql) fn without_marks(node: LogicalPlan) -> EngineResult<LogicalPlan> {
    let keeps_marks = matches!(node, LogicalPlan::Join(_) | LogicalPlan::SubqueryAlias(_));
    if keeps_marks || node.inputs().into_iter().all(|input| lateral_of(input).is_none()) {
        return Ok(node);
    }
    Ok(node.map_children(|input| Ok(Transformed::yes(unmarked(input)?)))?.data)
}

/// The rows of a lateral query.
fn unmarked(side: LogicalPlan) -> EngineResult<LogicalPlan> {
    Ok(match side {
        LogicalPlan::Subquery(lateral) => Arc::unwrap_or_clone(lateral.subquery),
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            let rows = unmarked(Arc::unwrap_or_clone(input))?;
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(rows), alias)?)
        }
        side => side,
    })
}

/// The join without the marks of sides that read no columns of its left side, and whether there was one that
/// reads others: those of tables before the left side, or of queries further out.
pub(in crate::sql) fn without_foreign_marks(mut join: Join) -> EngineResult<(Join, bool)> {
    let mut is_foreign = false;
    if let Some(lateral) = lateral_of(&join.left) {
        is_foreign = depends(&lateral.subquery);
        join.left = Arc::new(unmarked(Arc::unwrap_or_clone(join.left))?);
    }
    if let Some(lateral) = lateral_of(&join.right) {
        let read = outer_columns(&lateral.subquery);
        let is_own = |column: &Column| join.left.schema().has_column(column);
        is_foreign |= !read.iter().all(is_own);
        if !read.iter().any(is_own) {
            join.right = Arc::new(unmarked(Arc::unwrap_or_clone(join.right))?);
        }
    }
    Ok((join, is_foreign))
}

/// The rows as a lateral query, for the join that they are a side of.
pub(in crate::sql) fn marked(rows: LogicalPlan) -> LogicalPlan {
    let outer_ref_columns = rows.all_out_ref_exprs();
    LogicalPlan::Subquery(Subquery { subquery: Arc::new(rows), outer_ref_columns, spans: Spans::new() })
}

/// The join of rows with a lateral query as one with its rows for each combination of values; `None` if the
/// library makes a right one. It has more columns than the first one.
pub(in crate::sql) fn with_lateral(join: &Join) -> EngineResult<Option<Join>> {
    let Some(lateral) = lateral_of(&join.right) else { return Ok(None) };
    if join.join_type == JoinType::Inner && is_plain_lateral(&lateral.subquery, join.left.schema()) {
        return Ok(None);
    }
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return not_impl_err!("LATERAL in a {} join is not supported", join.join_type);
    }
    let right = unmarked(LogicalPlan::clone(&join.right))?;
    let mut beside = Beside::of(Arc::clone(&join.left));
    let combinations = beside.combinations(&right, None)?;
    let made = combinations.beside(&right)?;
    let on = combinations.columns.iter();
    let on =
        on.map(|(outer, name)| (Expr::Column(outer.clone()), Expr::Column(Column::new_unqualified(name))));
    let equal = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let made = Join::try_new(
        beside.into_rows(),
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

/// The plan in which conditions of the rows before a lateral query stand below the query: it is for the rows
/// that they leave.
pub(in crate::sql) fn with_conditions_below(plan: LogicalPlan) -> EngineResult<LogicalPlan> {
    let changed = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Filter(filter) => conditions_below(filter),
        node => Ok(Transformed::no(node)),
    })?;
    Ok(changed.data)
}

fn conditions_below(filter: Filter) -> EngineResult<Transformed<LogicalPlan>> {
    let join = match &*filter.input {
        LogicalPlan::Join(join)
            if matches!(join.join_type, JoinType::Inner | JoinType::Left)
                && lateral_of(&join.right).is_some() =>
        {
            join
        }
        _ => return Ok(Transformed::no(LogicalPlan::Filter(filter))),
    };
    let conditions = split_conjunction(&filter.predicate).into_iter().cloned();
    let (below, above): (Vec<Expr>, Vec<Expr>) =
        conditions.partition(|condition| is_of_rows(condition, join.left.schema()));
    let Some(below) = conjunction(below) else { return Ok(Transformed::no(LogicalPlan::Filter(filter))) };
    let left = Filter::try_new(below, Arc::clone(&join.left))?;
    let rows = LogicalPlan::Join(Join { left: Arc::new(LogicalPlan::Filter(left)), ..join.clone() });
    Ok(Transformed::yes(match conjunction(above) {
        Some(above) => LogicalPlan::Filter(Filter::try_new(above, Arc::new(rows))?),
        None => rows,
    }))
}

/// Whether a condition reads these rows alone, and is the same for a row each time.
fn is_of_rows(condition: &Expr, rows: &DFSchema) -> bool {
    let read = condition.column_refs();
    let has_subquery = || condition.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true);
    !read.is_empty()
        && read.iter().all(|column| rows.has_column(column))
        && !condition.is_volatile()
        && !has_subquery()
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{failed, plan, rows, session, shown};

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
    fn laterals_behind_each_other_are_made_once_each() {
        let query = |count: usize, kind: &str| {
            let of = |at: usize| {
                let before = at - 1;
                format!(
                    "{kind} lateral (select count(*) + r{before}.a a from u where u.a > r{before}.a) r{at}"
                )
            };
            let laterals: Vec<String> = (1..=count).map(of).collect();
            let on = if kind == ", " { " " } else { " on true " };
            format!("select r0.b, r{count}.a from t r0 {}{on}order by 1", laterals.join(on))
        };
        for kind in [", ", "left join"] {
            assert_eq!(rows(&query(1, kind)), ["10 4", "20 4", "30 4", "40 NULL"]);
            assert_eq!(rows(&query(8, kind)), ["10 5", "20 5", "30 5", "40 NULL"]);
            let scans = |count: usize| {
                let plan = plan(&query(count, kind));
                ["TableScan: t", "TableScan: u"].map(|scan| plan.matches(scan).count())
            };
            // Aggregates of all rows read the values around once more.
            assert_eq!(scans(8), [3, 8], "{kind}");
            assert_eq!(scans(16), [3, 16], "{kind}");
        }
        let some = query(8, ", ").replace("from t r0", "from (select * from t where b < 40 limit 3) r0");
        assert_eq!(rows(&some), ["10 5", "20 5", "30 5"]);
        let deep = failed(&query(120, ", "));
        // Each mistake of a statement has this class.
        assert!(deep.class() == "ValueError" && deep.to_string().contains("more than 100 "), "{deep}");
        // Values of subqueries over rows that have such values.
        let nested = (0..10).fold("t".to_owned(), |rows, _| {
            format!("(select b, (select count(*) from u where u.a > r.a) as a from {rows} r)")
        });
        assert_eq!(
            rows(&format!("select b, a from {nested} r order by b")),
            ["10 1", "20 2", "30 3", "40 3"]
        );
    }

    #[test]
    fn lateral_rows_depend_on_tables_before_a_comma() {
        let count = "lateral (select count(*) n from w where w.a > t.a) s";
        let of_each = ["10 4", "20 3", "30 1", "40 0"].map(|row| vec![row; 3]).concat();
        for from in [
            format!("t, u x join {count} on true"),
            format!("t, u x left join {count} on true"),
            format!("t cross join (u x cross join {count})"),
            format!("t, (u x cross join {count}) z"),
            format!("t, u x join (u y join {count} on true) on y.a = x.a"),
            format!("t, (u x cross join {count}) join u y on y.a = x.a"),
        ] {
            let n = if from.ends_with('z') { "z.n" } else { "s.n" };
            let query = format!("select t.b, {n} from {from} order by 1");
            assert_eq!(rows(&query), of_each, "{query}");
            // The nearest table of this name.
            let query = format!("select b, (select sum({n}) from {from}) from t order by b");
            assert_eq!(rows(&query), ["10 24", "20 24", "30 24", "40 24"], "{query}");
        }
        let both = "select t.b, x.a, s.n from t, u x join lateral (select count(*) n from w \
                    where w.a > t.a and w.a < x.a) s on s.n > 0 order by 1, 2";
        assert_eq!(rows(both), ["10 3 1", "10 5 3", "20 5 2"]);
        // One that is not lateral reads a table further out.
        let further = "select b, (select sum(q.n) from t x, (select count(*) n from w where w.a > t.a) q) from t order by b";
        assert_eq!(rows(further), ["10 16", "20 12", "30 4", "40 0"]);
    }

    #[test]
    fn rows_before_lateral_queries_depend_further_out() {
        for join in [", lateral", "left join lateral", "cross apply"] {
            let on = if join.starts_with("left") { " on true" } else { "" };
            let of = format!("t x {join} (select u.a from u where u.a > x.a) s{on}");
            let none = "(select count(*) from w where w.a > s.a) = 0";
            let query =
                format!("select b from t where exists (select 1 from {of} where x.b = t.b and {none})");
            let expected = if on.is_empty() { &["10", "20", "30"][..] } else { &["10", "20", "30", "40"] };
            assert_eq!(rows(&format!("{query} order by b")), expected, "{query}");
            let mut session = session();
            let counted = "select x.b, (select count(*) from u where u.a > s.a) n";
            session
                .run(&format!("prepare p(int) as {counted} from {of} where x.b > $1"))
                .expect("a statement");
            let mut found = session.run("execute p(20)").expect("rows");
            found.sort();
            let last = if on.is_empty() { Vec::new() } else { vec![["40", "0"]] };
            assert_eq!(found, [vec![["30", "0"]], last].concat(), "{of}");
        }
    }

    #[test]
    fn lateral_queries_need_not_depend() {
        let within = "select t.b, s.m from t, lateral (select q.m from u v, \
                      lateral (select (select max(w.a) from w where w.a <= v.a) m) q) s order by 1, 2";
        let of_each = [10, 20, 30, 40].map(|b| [2, 3, 5].map(|m| format!("{b} {m}"))).concat();
        assert_eq!(rows(within), of_each);
        let first = "(select s.m from lateral (select (select max(u.a) from u where u.a <= t.a) m) s)";
        assert_eq!(shown(first), ["NULL", "2", "3", "NULL"]);
        let condition =
            "(select s.m from lateral (select (select max(u.a) from u where u.a <= t.a) m) s where s.m > 2)";
        assert_eq!(shown(condition), ["NULL", "NULL", "3", "NULL"]);
        let order = "select x.b, s.a from t x, lateral (select t.a from t order by \
                     (select max(w.a) from w where w.a * 10 <= t.b) desc nulls last, t.b limit 1) s order by 1";
        assert_eq!(rows(order), ["10 3", "20 3", "30 3", "40 3"]);
    }

    #[test]
    fn conditions_of_the_rows_before_a_lateral_query_stand_below_it() {
        let lateral = "lateral (select count(*) n from w where w.a > t.a) s";
        let query =
            format!("select t.b, v.a, s.n from t, u v, {lateral} where t.a = v.a and s.n > 0 order by 1");
        assert_eq!(rows(&query), ["20 2 3", "30 3 1"]);
        assert!(!plan(&query).contains("Cross Join"), "{}", plan(&query));
        let left =
            format!("select t.b, s.n from t left join {lateral} on t.b < 30 where t.a + 1 > 2 order by 1");
        assert_eq!(rows(&left), ["20 3", "30 NULL"]);
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
        // The condition is a key, too.
        let query = "explain select t.k from t join u on t.k is not distinct from u.k where t.x = u.a";
        let plan = session.run(query).expect("a plan").concat().concat();
        assert!(plan.contains("t.k = u.k, t.x = u.a"), "{plan}");
    }
}
