//! Subqueries that depend on the row around them, of which the library makes a join that gives wrong rows.

use crate::stage::asked_values::{BY_OTHERS, depends, depends_by_equality};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{JoinType, Result as EngineResult, not_impl_err};
use datafusion::logical_expr::expr::SetQuantifier;
use datafusion::logical_expr::logical_plan::SubqueryAlias;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection};

/// Refuses a subquery that depends on the row around it, of which the library would make a wrong join: one
/// with windows, a condition on the rows of an aggregate that has one also of no rows, and `EXISTS` with an
/// `OFFSET`. A condition of a filter may be missing where it does not hold.
pub(super) fn check(part: &Expr, is_condition: bool) -> EngineResult<()> {
    let (subquery, may_lack_rows) = match part {
        Expr::ScalarSubquery(subquery) => (subquery, true),
        Expr::Exists(asked) => (&asked.subquery, false),
        Expr::InSubquery(asked) => (&asked.subquery, is_condition && !asked.negated),
        Expr::SetComparison(asked) => {
            (&asked.subquery, is_condition && matches!(asked.quantifier, SetQuantifier::Any))
        }
        _ => return Ok(()),
    };
    let is_exists = matches!(part, Expr::Exists(_));
    let is_value = matches!(part, Expr::ScalarSubquery(_));
    let is_right = is_value || may_lack_rows && is_missing(&subquery.subquery);
    if subquery.outer_ref_columns.is_empty() {
        return Ok(());
    }
    check_windows(&subquery.subquery)?;
    check_joins(&subquery.subquery)?;
    if !is_right && has_whole(&subquery.subquery)? || is_value && has_whole_below(&subquery.subquery)? {
        return not_impl_err!(
            "IN, EXISTS and values over aggregates that depend on the row around them are not supported here"
        );
    }
    let skips = |node: &LogicalPlan| match node {
        LogicalPlan::Limit(limit) => Ok(limit.skip.is_some() && depends(node)?),
        _ => Ok(false),
    };
    if is_exists && subquery.subquery.exists(skips)? {
        return not_impl_err!(
            "EXISTS with OFFSET over rows that depend on the row around them is not supported"
        );
    }
    Ok(())
}

/// Whether there is an aggregate of all rows that depend on the row around them.
pub(super) fn has_whole(plan: &LogicalPlan) -> EngineResult<bool> {
    plan.exists(|node| match node {
        LogicalPlan::Aggregate(made) if made.group_expr.is_empty() => depends(node),
        _ => Ok(false),
    })
}

/// Whether there is one below another aggregate, or another operator than those of one row.
fn has_whole_below(mut plan: &LogicalPlan) -> EngineResult<bool> {
    loop {
        plan = match plan {
            LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
            | LogicalPlan::Filter(Filter { input, .. }) => input,
            LogicalPlan::Aggregate(made) => return has_whole(&made.input),
            other => return has_whole(other),
        };
    }
}

/// Refuses lateral joins with windows or outer joins, or with groups of rows that depend by others than
/// equalities.
pub(super) fn check_lateral(plan: &LogicalPlan) -> EngineResult<()> {
    check_windows(plan)?;
    check_joins(plan)?;
    let is_made = |node: &LogicalPlan| match node {
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) => depends(node),
        _ => Ok(false),
    };
    if plan.exists(is_made)? && !depends_by_equality(plan)? {
        return not_impl_err!(
            "lateral joins of groups of rows that depend on the row around them {BY_OTHERS}"
        );
    }
    Ok(())
}

/// Refuses joins of which a side depends on the row around it that may lack rows, or that says which rows of
/// the other side there are: the condition would be one above the join.
fn check_joins(plan: &LogicalPlan) -> EngineResult<()> {
    let is_wrong = |node: &LogicalPlan| {
        let LogicalPlan::Join(join) = node else { return Ok(false) };
        Ok(match join.join_type {
            JoinType::Inner => false,
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                depends(&join.right)?
            }
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                depends(&join.left)?
            }
            JoinType::Full => depends(node)?,
        })
    };
    if plan.exists(is_wrong)? {
        return not_impl_err!(
            "outer joins, INTERSECT and EXCEPT of rows that depend on the row around them are not supported here"
        );
    }
    Ok(())
}

/// Refuses windows over rows that depend on the row around them.
fn check_windows(plan: &LogicalPlan) -> EngineResult<()> {
    let is_window = |node: &LogicalPlan| match node {
        LogicalPlan::Window(_) => depends(node),
        _ => Ok(false),
    };
    if plan.exists(is_window)? {
        return not_impl_err!("a window over rows that depend on the row around them is not supported here");
    }
    Ok(())
}

/// Whether the value of an aggregate of no rows is missing, so that a comparison with it holds as little as
/// one with no rows.
fn is_missing(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let is_column = |expr: &Expr| matches!(expr.clone().unalias_nested().data, Expr::Column(_));
            expr.iter().all(is_column) && is_missing(input)
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
        | LogicalPlan::Filter(Filter { input, .. }) => is_missing(input),
        LogicalPlan::Aggregate(made) => made.aggr_expr.iter().all(|expr| {
            let expr = expr.clone().unalias_nested().data;
            let Expr::AggregateFunction(call) = expr else { return false };
            ["avg", "max", "min", "sum"].contains(&call.func.name())
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    /// The rows of a query over `t` and `u`, or the reason why it is refused.
    fn run(query: &str) -> Result<String, String> {
        let mut session = SqlSession::default().part_rows_min(1);
        for statement in [
            "create table t (a int, b int) as values (1, 10), (2, 20), (3, 30), (null, 40)",
            "create table u (a int) as values (2), (3), (5)",
        ] {
            session.run(statement).expect("a table");
        }
        let rows = session.run(query).map_err(|error| error.to_string())?;
        Ok(rows.concat().join(" "))
    }

    #[track_caller]
    fn refused(query: &str) -> String {
        run(query).expect_err(query)
    }

    #[test]
    fn conditions_on_aggregates_of_no_rows_are_refused_where_they_hold() {
        let rows_of = "from u where u.a = t.a";
        // Below another query, so that the row is not that of the subquery.
        for condition in [
            format!("exists (select 1 from (select count(*) {rows_of}) s)"),
            format!("0 in (select n from (select count(*) n {rows_of}) s where n < 5)"),
        ] {
            let query = format!("select b from (select * from t limit 4) t where {condition}");
            assert!(refused(&query).contains("depend"), "{query}");
        }
        for condition in [
            format!("not exists (select count(*) {rows_of} limit 1 offset 0)"),
            format!("(select max(n) from (select count(*) n {rows_of}) s) = 0"),
            format!("(select count(*) from (select count(*) n {rows_of}) s) = 1"),
        ] {
            let query = format!("select b from t where {condition}");
            assert!(refused(&query).contains("depend"), "{query}");
        }
        for (condition, expected) in [
            (format!("2 in (select max(u.a) {rows_of})"), "20"),
            // Missing where the aggregate is, not true.
            (format!("not (2 in (select max(u.a) {rows_of}))"), "30"),
            (format!("2 in (select max(u.a) {rows_of}) or b = 10"), "10 20"),
        ] {
            let query = format!("select b from t where {condition} order by b");
            assert_eq!(run(&query).as_deref(), Ok(expected), "{query}");
        }
        let offset = format!("select b from t where exists (select 1 {rows_of} limit 0 offset 1)");
        assert!(refused(&offset).contains("OFFSET"));
    }

    #[test]
    fn aggregates_of_lateral_joins_are_of_rows_that_depend_by_equality() {
        let joined = |condition: &str| {
            run(&format!(
                "select k from t, lateral (select sum(u.a) k from u where {condition}) s order by k limit 2"
            ))
        };
        assert_eq!(joined("u.a = t.a").as_deref(), Ok("2 3"));
        assert!(joined("u.a + 1 = t.a").expect_err("no join").contains("lateral joins of groups"));
    }

    #[test]
    fn outer_joins_and_different_rows_of_lateral_joins_are_refused() {
        let lateral = |rows_of: &str| refused(&format!("select t.b from t, lateral ({rows_of}) s(x)"));
        assert!(
            lateral("select distinct u.a > 2 from u where u.a <> t.a").contains("lateral joins of groups")
        );
        let except = "select u.a from u except select u.a from u where u.a = t.a";
        assert!(lateral(except).contains("outer joins, INTERSECT and EXCEPT"));
        // Rows that may be others each time are not read twice.
        let query = format!("select b from (select * from t limit 2) t where exists ({except})");
        assert!(refused(&query).contains("outer joins, INTERSECT and EXCEPT"));
        let left =
            "select 1 from u left join (select * from u where u.a = t.a) v on u.a = v.a where v.a is null";
        let query = format!("select b from (select * from t limit 2) t where exists ({left})");
        assert!(refused(&query).contains("outer joins, INTERSECT and EXCEPT"));
    }

    #[test]
    fn windows_of_lateral_joins_are_refused() {
        let rows_of = "from (values (1, 7), (2, 7), (2, 7)) v(k, w) where v.k = t.a";
        let lateral =
            format!("select b, r from t, lateral (select row_number() over (order by w) r {rows_of}) s");
        assert!(refused(&lateral).contains("a window over rows that depend"));
    }
}
