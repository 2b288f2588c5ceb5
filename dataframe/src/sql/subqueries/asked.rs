//! `IN (SELECT ..)`, `EXISTS` and values of subqueries in clauses for which the library has no operator.
//!
//! It plans them among the columns of a query and in the conditions of `WHERE`. A key of `ORDER BY`, a
//! window, a condition of `ON` and a set of groups read them here as columns that a projection below has
//! computed, and one above leaves out again. Clauses that cannot be written so are refused by their names.

use super::dependent;
use super::grouped::{grouped, has_computed_sets};
use super::laterals::{marked, with_conditions_below, with_lateral, without_foreign_marks, without_marks};
use super::materialized::with_materialized_rows;
use super::plain::{is_plain_condition, is_plain_lateral, is_plain_value, simplest, subquery_of};
use super::reads::{depends, lateral_of, outer_columns};
use crate::error::{Error, Result};
use crate::sql::below::{Below, apart, asks, has_asked, is_subquery};
use crate::sql::clauses::counted_sets::{counted, is_counted};
use crate::sql::clauses::sort_keys::{has_computed_keys, has_computed_orders, has_unbounded, is_unbounded};
use crate::sql::names::compared_names::with_named_values;
use crate::sql::plans::{columns, projection};
use crate::sql::values::moving_rows::{has_truths, of_moving_rows};
use crate::stage::{materialized_levels, materialized_tables};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result as EngineResult, not_impl_datafusion_err, not_impl_err};
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{Join, Sort, Window};
use datafusion::logical_expr::utils::{
    conjunction, merge_schema, split_conjunction, split_conjunction_owned,
};
use datafusion::logical_expr::{Distinct, DistinctOn, Expr, Filter, LogicalPlan, Projection};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows that are made once within each other at most: their plans are dropped by recursion.
const MATERIALIZED_LEVELS_MAX: usize = 100;

/// The plan in which subqueries stand where the library's rules, and ours, find them.
pub(in crate::sql) fn as_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = with_conditions_below(plan)?.transform_up_with_subqueries(|node| {
        let node = with_materialized_rows(with_named_values(without_marks(node)?)?)?.data;
        let has_computed = match &node {
            LogicalPlan::Aggregate(aggregate) => {
                has_computed_sets(aggregate) || has_computed_orders(aggregate)?
            }
            LogicalPlan::Join(join) => {
                let mut sides = [&join.left, &join.right].into_iter();
                is_counted(join) || sides.any(|side| lateral_of(side).is_some())
            }
            LogicalPlan::Sort(sort) => has_unbounded(&sort.expr)?,
            LogicalPlan::Window(window) => has_computed_keys(window)? || has_truths(window)?,
            _ => false,
        };
        if !has_computed && !node_asks(&node)? {
            return Ok(Transformed::no(node));
        }
        match node {
            LogicalPlan::Sort(sort) => sorted(sort),
            LogicalPlan::Window(window) => windowed(window),
            LogicalPlan::Join(join) if is_counted(&join) => Ok(Transformed::yes(counted(join)?)),
            LogicalPlan::Join(join) => joined_beside(join),
            LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
            LogicalPlan::Distinct(Distinct::On(distinct)) => first_of(distinct),
            LogicalPlan::Filter(filter) => filtered(filter),
            LogicalPlan::Limit(_) => refused("LIMIT or OFFSET"),
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let names = NamePreserver::new_for_projection();
                let saved: Vec<_> = expr.iter().map(|expr| names.save(expr)).collect();
                let (exprs, rows) = apart(expr, input)?;
                let (exprs, rows) = dependent::joined(exprs, rows)?;
                let exprs = exprs.into_iter().zip(saved).map(|(expr, name)| name.restore(expr));
                Ok(changed(projection(exprs.collect(), rows)?))
            }
            LogicalPlan::Values(_) => refused("VALUES"),
            other => Ok(Transformed::no(other)),
        }
    })?;
    check_materialized(&changed.data)?;
    let materialized = materialized_tables(&changed.data)?;
    for plan in materialized.values().map(|table| &**table.rows()).chain([&changed.data]) {
        if depends(plan) {
            return Err(not_impl_datafusion_err!("a query that reads columns of no table around it").into());
        }
        plan.apply_with_subqueries(|node| {
            check_values(node)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(changed.data)
}

/// Refuses a plan in which more rows that are made once stand within each other.
pub(in crate::sql) fn check_materialized(plan: &LogicalPlan) -> Result<()> {
    if materialized_levels(plan)? <= MATERIALIZED_LEVELS_MAX {
        return Ok(());
    }
    Err(Error::Value(format!(
        "more than {MATERIALIZED_LEVELS_MAX} subqueries or lateral queries over the rows of each other; `execute` computes what a \
         frame is so far, and CREATE TABLE .. AS has rows of its own"
    )))
}

/// Refuses subqueries that depend on the row around them of which no join was made, and of which the library
/// makes none, or a wrong one.
fn check_values(node: &LogicalPlan) -> EngineResult<()> {
    let around = merge_schema(&node.inputs());
    let conditions = match node {
        LogicalPlan::Filter(filter) => split_conjunction(&filter.predicate),
        _ => Vec::new(),
    };
    let lateral = match node {
        LogicalPlan::Join(join) => lateral_of(&join.right).zip(Some(join.left.schema())),
        _ => None,
    };
    if lateral.is_some_and(|(lateral, around)| !is_plain_lateral(&lateral.subquery, around)) {
        return not_impl_err!("LATERAL of this kind is not supported");
    }
    node.apply_expressions(|expr| {
        expr.apply(|part| {
            let is_alone = || conditions.iter().any(|condition| std::ptr::eq(*condition, part));
            let is_dependent = subquery_of(part).is_some_and(|subquery| depends(&subquery.subquery));
            let is_right =
                || is_plain_value(part, &around) || is_alone() && is_plain_condition(part, &around);
            if is_dependent && !is_right() {
                return not_impl_err!("a subquery that depends on the row around it is not supported here");
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

fn refused<T>(clause: &str) -> EngineResult<T> {
    not_impl_err!("IN (SELECT ..), EXISTS or a subquery that depends on the row in {clause} is not supported")
}

/// Whether an expression of a node asks for rows of a subquery.
fn node_asks(node: &LogicalPlan) -> EngineResult<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= has_asked(expr)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn filtered(filter: Filter) -> EngineResult<Transformed<LogicalPlan>> {
    let Filter { predicate, input, .. } = filter;
    let own = columns(&input);
    let width = own.len();
    let (conditions, mut rows) = apart(split_conjunction_owned(predicate), input)?;
    // The library makes joins of conditions that stand by themselves.
    let (mut alone, values): (Vec<Expr>, Vec<Expr>) = conditions
        .into_iter()
        .map(simplest)
        .partition(|condition| is_plain_condition(condition, rows.schema()) || !is_of_join(condition, &rows));
    if !values.is_empty() {
        // Rows that other conditions leave out need no values of subqueries.
        let (first, last): (Vec<Expr>, Vec<Expr>) = alone.into_iter().partition(is_of_row);
        alone = last;
        if let Some(first) = conjunction(first) {
            rows = Arc::new(LogicalPlan::Filter(Filter::try_new(first, rows)?));
        }
    }
    let (values, rows) = dependent::joined(values, rows)?;
    alone.extend(values);
    let is_wider = width < rows.schema().fields().len();
    let kept = conjunction(alone).map(|condition| Filter::try_new(condition, Arc::clone(&rows)));
    let kept = kept.transpose()?.map_or(rows, |filter| Arc::new(LogicalPlan::Filter(filter)));
    Ok(if is_wider { changed(projection(own, kept)?) } else { Transformed::no(Arc::unwrap_or_clone(kept)) })
}

/// Whether a condition has a subquery that is joined here.
fn is_of_join(condition: &Expr, rows: &LogicalPlan) -> bool {
    let is_joined = |part: &Expr| {
        Ok(subquery_of(part).is_some_and(|subquery| depends(&subquery.subquery))
            && !is_plain_value(part, rows.schema()))
    };
    condition.exists(is_joined).unwrap_or(true)
}

/// Whether a condition reads its row alone, and is the same for it each time.
fn is_of_row(condition: &Expr) -> bool {
    !condition.is_volatile() && !condition.exists(|part| Ok(is_subquery(part))).unwrap_or(true)
}

fn changed(plan: Arc<LogicalPlan>) -> Transformed<LogicalPlan> {
    Transformed::yes(Arc::unwrap_or_clone(plan))
}

fn sorted(sort: Sort) -> EngineResult<Transformed<LogicalPlan>> {
    let Sort { expr: mut keys, input, fetch } = sort;
    let own = columns(&input);
    let input = with_read_columns(input, &keys)?;
    let mut below = Below::new("sort_key");
    for key in &mut keys {
        if has_asked(&key.expr)? || is_unbounded(&key.expr)? {
            key.expr = below.column(key.expr.clone());
        }
    }
    let sorted = LogicalPlan::Sort(Sort { expr: keys, input: below.beside(input)?, fetch });
    Ok(changed(projection(own, Arc::new(sorted))?))
}

/// The rows with the columns that subqueries in keys of an order read. The library adds those that keys read
/// themselves.
fn with_read_columns(rows: Arc<LogicalPlan>, keys: &[SortKey]) -> EngineResult<Arc<LogicalPlan>> {
    let mut lost = Vec::new();
    for key in keys {
        key.expr.apply(|part| {
            lost.extend(read_columns(part)?.into_iter().filter(|column| !rows.schema().has_column(column)));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    if lost.is_empty() {
        return Ok(rows);
    }
    if let LogicalPlan::Projection(own) = &*rows
        && lost.iter().all(|column| own.input.schema().has_column(column))
    {
        let lost: BTreeSet<Column> = lost.into_iter().collect();
        let exprs = own.expr.iter().cloned().chain(lost.into_iter().map(Expr::Column)).collect();
        // It fails where another column has the name of one of them without its table.
        if let Ok(rows) = projection(exprs, Arc::clone(&own.input)) {
            return Ok(rows);
        }
    }
    refused("ORDER BY, over columns that the query does not give,")
}

/// The first rows by columns in the place of subqueries.
fn first_of(distinct: DistinctOn) -> EngineResult<Transformed<LogicalPlan>> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, .. } = distinct;
    let mut below = Below::new("distinct_on");
    let on = on_expr.into_iter().map(|expr| below.over_columns(expr)).collect::<EngineResult<Vec<_>>>()?;
    let names = NamePreserver::new_for_projection();
    let shown = select_expr.into_iter().map(|expr| {
        let name = names.save(&expr);
        Ok(name.restore(below.over_columns(expr)?))
    });
    let shown = shown.collect::<EngineResult<Vec<_>>>()?;
    let keys = sort_expr.into_iter().flatten().map(|key| {
        let expr = below.over_columns(key.expr)?;
        Ok(SortKey { expr, ..key })
    });
    let keys = keys.collect::<EngineResult<Vec<SortKey>>>()?;
    let keys = if keys.is_empty() { None } else { Some(keys) };
    let distinct = DistinctOn::try_new(on, shown, keys, below.beside(input)?)?;
    Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(distinct))))
}

fn windowed(window: Window) -> EngineResult<Transformed<LogicalPlan>> {
    let Window { input, window_expr, schema } = window;
    let own = columns(&input);
    let mut below = Below::new("in_window");
    let exprs = window_expr.into_iter().map(|expr| {
        let expr = expr.transform_down(|part| {
            let Expr::WindowFunction(mut call) = part else { return Ok(Transformed::no(part)) };
            call.fun = of_moving_rows(call.fun);
            let params = &mut call.params;
            let order = params.order_by.iter_mut().map(|key| &mut key.expr);
            for key in params.partition_by.iter_mut().chain(order) {
                if is_unbounded(key)? {
                    *key = below.column(key.clone());
                }
            }
            Ok(Transformed::yes(Expr::WindowFunction(call)))
        })?;
        below.over_columns(expr.data)
    });
    let exprs = exprs.collect::<EngineResult<Vec<Expr>>>()?;
    let values = schema.fields().len() - own.len();
    let made = LogicalPlan::Window(Window::try_new(exprs, below.beside(input)?)?);
    // The plans above know the values by the texts that they had.
    let mut columns = columns(&made);
    let columns = columns.split_off(columns.len().saturating_sub(values));
    let named = columns.into_iter().zip(schema.iter().skip(own.len()));
    let named = named.map(|(column, (table, field))| column.alias_qualified(table.cloned(), field.name()));
    let exprs = own.iter().cloned().chain(named).collect();
    Ok(changed(projection(exprs, Arc::new(made))?))
}

fn joined_beside(join: Join) -> EngineResult<Transformed<LogicalPlan>> {
    let own = shown(&join);
    let (join, is_lateral) = without_foreign_marks(join)?;
    let (rows, is_wider) = match with_lateral(&join)? {
        Some(made) => (made, true),
        None => (join, false),
    };
    let asks = rows.filter.as_ref().map(has_asked).transpose()?.unwrap_or_default();
    let made = if asks { joined(rows)? } else { Transformed::no(LogicalPlan::Join(rows)) };
    let made = if is_wider { changed(projection(own, Arc::new(made.data))?) } else { made };
    Ok(if is_lateral { made.update_data(marked) } else { made })
}

/// The columns that a join gives.
fn shown(join: &Join) -> Vec<Expr> {
    let own = join.schema.iter();
    own.map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name()))).collect()
}

fn joined(join: Join) -> EngineResult<Transformed<LogicalPlan>> {
    let own = shown(&join);
    let Join { left, right, on, filter, join_type, join_constraint, null_equality, null_aware, .. } = join;
    let (mut of_left, mut of_right) = (Below::new("on_left"), Below::new("on_right"));
    let (mut kept, mut above) = (Vec::new(), Vec::new());
    for condition in filter.into_iter().flat_map(split_conjunction_owned) {
        if join_type == JoinType::Inner && has_asked(&condition)? {
            above.push(condition);
            continue;
        }
        let condition = condition.transform_down(|part| {
            if !asks(&part) {
                return Ok(Transformed::no(part));
            }
            let read = read_columns(&part)?;
            // The rows of some joins have the columns of one side only.
            let is_beside =
                |column: &&Column| left.schema().has_column(column) || right.schema().has_column(column);
            let mut read = read.iter().filter(is_beside).peekable();
            let is_left = read.peek().is_none_or(|column| left.schema().has_column(column));
            let side = if is_left { &left } else { &right };
            if !read.all(|column| side.schema().has_column(column)) {
                return refused(&format!("ON of a {join_type} join, over columns of both tables,"));
            }
            Ok(Transformed::yes(if is_left { of_left.column(part) } else { of_right.column(part) }))
        })?;
        kept.push(condition.data);
    }
    let (left, right) = (of_left.beside(left)?, of_right.beside(right)?);
    let kept = conjunction(kept);
    let join = Join::try_new(left, right, on, kept, join_type, join_constraint, null_equality, null_aware)?;
    let mut rows = LogicalPlan::Join(join);
    if let Some(condition) = conjunction(above) {
        rows = filtered(Filter::try_new(condition, Arc::new(rows))?)?.data;
    }
    Ok(changed(projection(own, Arc::new(rows))?))
}

/// The columns of the rows around a subquery that it reads, or that its value is compared with.
fn read_columns(part: &Expr) -> EngineResult<Vec<Column>> {
    let (value, subquery) = match part {
        Expr::InSubquery(asked) => (Some(&asked.expr), &asked.subquery),
        Expr::SetComparison(asked) => (Some(&asked.expr), &asked.subquery),
        Expr::Exists(asked) => (None, &asked.subquery),
        Expr::ScalarSubquery(subquery) => (None, subquery),
        _ => return Ok(Vec::new()),
    };
    let mut read: Vec<Column> =
        value.into_iter().flat_map(|value| value.column_refs().into_iter().cloned()).collect();
    read.extend(outer_columns(&subquery.subquery));
    Ok(read)
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{refused, rows, session};

    #[test]
    fn rows_are_in_an_order_by_any_key() {
        let mut session = session();
        // Several parts, whose sorted rows are merged.
        session
            .run("create table s as select a, b from t union all select a, b + 1 from t")
            .expect("a table");
        for key in
            ["abs(coalesce(a, 2))", "-coalesce(-a, -2)", "sqrt(coalesce(a, 2))", "a not in (1, 4) is true"]
        {
            for (query, expected) in [
                (format!("select b from (select b from s order by {key}, b limit 2) v order by b"), "10 11"),
                (
                    format!(
                        "select string_agg(cast(b as varchar), ',' order by {key}, b) from s where b < 20"
                    ),
                    "10,11",
                ),
                (format!("select row_number() over (order by {key}, b) from s limit 0"), ""),
                (format!("select count(*) from (select b from s order by {key}) v"), "8"),
            ] {
                let rows = session.run(&query).unwrap_or_else(|error| panic!("{query}: {error}"));
                assert_eq!(rows.concat().join(" "), expected, "{query}");
            }
        }
    }

    #[test]
    fn the_first_rows_by_conditions_are_found() {
        let query = "select distinct on (a in (select a from u)) a in (select a from u), b, exists (select 1 from u \
                     where u.a = t.a) from t order by a in (select a from u) nulls last, (select max(u.a) from u \
                     where u.a = t.a) desc nulls last, b";
        assert_eq!(rows(query), ["false 10 false", "true 30 true", "NULL 40 false"]);
    }

    #[test]
    fn comparisons_with_any_and_all_rows_are_values() {
        let shown = |condition: &str| rows(&format!("select b, {condition} from t x order by b"));
        let rows_of = "(select q.a from u q)";
        assert_eq!(shown(&format!("x.a > any {rows_of}")), ["10 false", "20 false", "30 true", "40 NULL"]);
        assert_eq!(shown(&format!("x.a >= all {rows_of}")), ["10 false", "20 false", "30 false", "40 NULL"]);
        assert_eq!(shown(&format!("x.a < all {rows_of}")), ["10 true", "20 false", "30 false", "40 NULL"]);
        assert_eq!(shown(&format!("x.a <> any {rows_of}")), ["10 true", "20 true", "30 true", "40 NULL"]);
        assert_eq!(shown(&format!("x.a = any {rows_of}")), ["10 false", "20 true", "30 true", "40 NULL"]);
        assert_eq!(shown(&format!("x.a <> all {rows_of}")), ["10 true", "20 false", "30 false", "40 NULL"]);
        let missing = "(select q.a from t q)";
        assert_eq!(shown(&format!("x.a < any {missing}")), ["10 true", "20 true", "30 NULL", "40 NULL"]);
        assert_eq!(shown(&format!("x.a <= all {missing}")), ["10 NULL", "20 false", "30 false", "40 NULL"]);
        let none = "(select q.a from t q where q.a > 9)";
        assert_eq!(shown(&format!("x.a < any {none}")), ["10 false", "20 false", "30 false", "40 false"]);
        assert_eq!(shown(&format!("x.a < all {none}")), ["10 true", "20 true", "30 true", "40 true"]);
        let equal = "(select q.a from u q where q.a = x.a)";
        assert_eq!(shown(&format!("x.a >= any {equal}")), ["10 false", "20 true", "30 true", "40 false"]);
        assert_eq!(shown(&format!("x.a < all {equal}")), ["10 true", "20 false", "30 false", "40 true"]);
        let query = format!("select count(case when x.a > any {rows_of} then 1 end) from t x");
        assert_eq!(rows(&query), ["1"]);
    }

    #[test]
    fn joins_with_the_rows_of_one_side_have_conditions_on_both() {
        let query = |join: &str, condition: &str| {
            format!("select t.b from t left {join} join u on t.a = u.a and {condition} order by b")
        };
        assert_eq!(rows(&query("semi", "u.a in (select a from u where a < 3)")), ["20"]);
        assert_eq!(rows(&query("semi", "t.a in (select a from u where a < 3)")), ["20"]);
        assert_eq!(rows(&query("anti", "u.a in (select a from u where a < 3)")), ["10", "30", "40"]);
    }

    #[test]
    fn keys_of_orders_are_conditions_on_subqueries() {
        let query = "select a from t order by a in (select a from u) desc nulls last, b desc";
        assert_eq!(rows(query), ["3", "2", "1", "NULL"]);
        let query = "select a from t order by exists (select 1 from u where u.a = t.a), b limit 2";
        assert_eq!(rows(query), ["1", "NULL"]);
        let query = "select a from t order by (select max(u.a) from u where u.a = t.a) desc nulls last, b";
        assert_eq!(rows(query), ["3", "2", "1", "NULL"]);
        let exists = "exists (select 1 from u where u.a = t.a)";
        assert_eq!(rows(&format!("select b as c from t order by {exists} desc, c limit 2")), ["20", "30"]);
        assert_eq!(rows(&format!("select a as c from t order by {exists} desc, b limit 2")), ["2", "3"]);
        assert!(refused(&format!("select b as a from t order by {exists}")).contains("ORDER BY"));
        let query = "select b from (select b from t order by not a in (select a from u), b) limit 1";
        assert_eq!(rows(query), ["20"]);
        let below =
            "(select cast(b as varchar) b from t order by a in (select a from u) desc nulls last, b) s";
        assert_eq!(rows(&format!("select string_agg(b, ',') from {below}")), ["20,30,10,40"]);
    }

    #[test]
    fn the_rows_of_a_frame_have_the_order_of_a_condition() {
        use crate::{DataFrame, sql};
        let t = DataFrame::from_columns([("a", vec![1, 2, 3].into())]);
        let u = DataFrame::from_columns([("a", vec![2].into())]);
        let found = sql("select a from t order by a in (select a from u) desc, a", &[("t", &t), ("u", &u)]);
        assert_eq!(found.columns().expect("columns"), ["a"]);
        assert_eq!(found.col("a").values::<i64>().expect("rows"), [2, 1, 3].map(Some));
    }

    #[test]
    fn windows_read_conditions_on_subqueries() {
        let over = "over (partition by a in (select a from u) order by b)";
        let query = format!("select b, sum(b) {over} from t order by b");
        assert_eq!(rows(&query), ["10 10", "20 20", "30 50", "40 40"]);
        let query = format!("select row_number() {over} r, sum(b) {over} s from t order by b");
        assert_eq!(rows(&query), ["1 10", "1 20", "2 50", "1 40"]);
        let query = "select b, sum(case when exists (select 1 from u where u.a = t.a) then 1 else 0 end) \
                     over (order by b) from t order by b";
        assert_eq!(rows(query), ["10 0", "20 1", "30 2", "40 2"]);
        let query = "select b from t qualify row_number() over (order by a in (select a from u) desc \
                     nulls last, b) = 1";
        assert_eq!(rows(query), ["20"]);
    }

    #[test]
    fn windows_have_keys_of_any_kind() {
        for key in [
            "abs(case when a > 1 then a end)",
            "abs(nullif(a, b))",
            "b >= case when a > 1 then a end",
            "case a when 1 then b end between abs(a) and b",
            "abs((select count(*) from u))",
            "b * 0.25 > 0.5",
            "cast((cast(b as decimal(12, 2)) * 0.25) > 0.5 as integer)",
            "b / 2.5 < a",
        ] {
            let query = format!("select count(*) over (partition by {key} order by {key}, b) from t");
            assert_eq!(rows(&query).len(), 4, "{key}");
        }
    }

    #[test]
    fn conditions_of_joins_ask_for_subqueries() {
        let query = "select t.a, u.a from t join u on t.a = u.a and t.a in (select a - 1 from u) order by 1";
        assert_eq!(rows(query), ["2 2"]);
        let outer = "select t.b, u.a from t left join u on t.a = u.a";
        let query = format!("{outer} and u.a in (select a - 1 from u) order by 1");
        assert_eq!(rows(&query), ["10 NULL", "20 2", "30 NULL", "40 NULL"]);
        let query = format!("{outer} and t.b in (select a * 10 from u) order by 1");
        assert_eq!(rows(&query), ["10 NULL", "20 2", "30 3", "40 NULL"]);
        let exists = "exists (select 1 from u v where v.a = t.a + 2)";
        let query = format!("select t.b, u.a from t full join u on t.a = u.a and {exists} order by 1, 2");
        assert_eq!(rows(&query), ["10 NULL", "20 NULL", "30 3", "40 NULL", "NULL 2", "NULL 5"]);
        let query = "select count(*) from t join u on t.a + u.a in (select a from u)";
        assert_eq!(rows(query), ["3"]);
        let query = "select * from t left join u on t.a + u.a in (select a from u)";
        assert!(refused(query).contains("ON of a Left join"));
    }

    #[test]
    fn values_that_are_compared_with_subqueries_are_of_subqueries() {
        let is_true = "(select b > 10 from t)";
        let query = format!("select a from t where (a in (select a from u)) in {is_true} order by b");
        assert_eq!(rows(&query), ["1", "2", "3"]);
        let query = "select (a in (select a from u)) not in (select a > 1 from u) from t order by b";
        assert_eq!(rows(query), ["true", "false", "false", "NULL"]);
        let most = "(select max(u.a) from u where u.a = t.a)";
        assert_eq!(
            rows(&format!("select a from t where {most} in (select a from u) order by b")),
            ["2", "3"]
        );
        let query = format!("select b from t order by {most} in (select 3) nulls last, b");
        assert_eq!(rows(&query), ["20", "30", "10", "40"]);
        let query =
            format!("select t.b, u.a from t join u on {most} in (select a from u) and u.a = 5 order by 1");
        assert_eq!(rows(&query), ["20 5", "30 5"]);
    }

    #[test]
    fn aggregates_and_groups_are_of_values_that_depend_on_the_row() {
        let most = "(select max(u.a) from u where u.a = t.a)";
        assert_eq!(rows(&format!("select count({most}), sum({most}) from t")), ["2 5"]);
        let query = format!("select {most} k, sum(b) from t group by 1 order by 1 nulls last");
        assert_eq!(rows(&query), ["2 20", "3 30", "NULL 50"]);
        let query = "select count(*) filter (where exists (select 1 from u where u.a = t.a)) from t";
        assert_eq!(rows(query), ["2"]);
        let query = "select a in (select a from u) k, count(case when a in (select a from u) then 1 end) n \
                     from t group by 1 having max(a) in (select a from u) order by 2";
        assert_eq!(rows(query), ["true 2"]);
    }

    #[test]
    fn other_clauses_are_refused_by_their_names() {
        assert!(refused("values (1 in (select a from u))").contains("VALUES"));
    }
}
