//! Conditions on the one row of an aggregate of all rows.
//!
//! `SELECT count(*) FROM u WHERE u.a = t.a` has a row also where no row of `u` fits, and the join that the
//! library makes of `EXISTS`, `IN`, `ANY` or `ALL` of it has none there. Its value is right as that of a
//! subquery, so that a condition on the only row is written here as a comparison with this value. `HAVING`
//! says whether there is a row at all. Nor does that join know an `OFFSET`: `EXISTS` with one is a comparison
//! of the number of rows.

use super::plans::{columns, projection};
use super::wrong_joins::has_whole;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result as EngineResult, ScalarValue};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Sort;
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, LogicalPlan, Projection, Subquery, binary_expr, lit, not,
};
use std::sync::Arc;

/// The node with values in the place of such conditions.
pub(super) fn as_values(node: LogicalPlan) -> EngineResult<LogicalPlan> {
    let names = NamePreserver::new(&node);
    let changed = node.map_expressions(|expr| {
        if !expr.exists(|part| Ok(row_of(part).is_some() || skipped(part).is_some()))? {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let changed = expr.transform_up(|part| {
            Ok(match (row_of(&part), skipped(&part)) {
                (Some(row), _) => Transformed::yes(row.compared(part)?),
                (None, Some(skipped)) => Transformed::yes(skipped.counted()?),
                (None, None) => Transformed::no(part),
            })
        })?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })?;
    if changed.transformed { changed.data.recompute_schema() } else { Ok(changed.data) }
}

/// The row of an aggregate of all rows that depend on the row around them.
struct Row {
    subquery: Subquery,
    value: Option<Expr>,
    rows: Arc<LogicalPlan>,
    having: Option<Expr>,
}

/// The row on which a condition is, if it is on one.
fn row_of(part: &Expr) -> Option<Row> {
    let subquery = match part {
        Expr::Exists(asked) => &asked.subquery,
        Expr::InSubquery(asked) => &asked.subquery,
        Expr::SetComparison(asked) => &asked.subquery,
        _ => return None,
    };
    let LogicalPlan::Projection(Projection { expr, input, .. }) = &*subquery.subquery else { return None };
    let (rows, having) = match &**input {
        LogicalPlan::Filter(Filter { input, predicate, .. }) => (input, Some(predicate.clone())),
        _ => (input, None),
    };
    let is_whole = match &**rows {
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.is_empty(),
        _ => false,
    };
    let row = Row {
        subquery: subquery.clone(),
        value: expr.first().map(|value| value.clone().unalias()),
        rows: Arc::clone(rows),
        having,
    };
    (is_whole && !subquery.outer_ref_columns.is_empty()).then_some(row)
}

/// `EXISTS` of rows behind an offset.
struct Skipped {
    subquery: Subquery,
    rows: Arc<LogicalPlan>,
    skip: i64,
    negated: bool,
}

fn skipped(part: &Expr) -> Option<Skipped> {
    let Expr::Exists(Exists { subquery, negated }) = part else { return None };
    let LogicalPlan::Limit(limit) = &*subquery.subquery else { return None };
    let number = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => Some(*number),
        _ => None,
    };
    let skip = number(limit.skip.as_deref()?)?;
    let has_rows = limit.fetch.as_deref().is_none_or(|fetch| number(fetch).is_some_and(|rows| 0 < rows));
    let mut rows = &limit.input;
    while let LogicalPlan::Sort(Sort { input, .. }) | LogicalPlan::Projection(Projection { input, .. }) =
        &**rows
    {
        rows = input;
    }
    // The number of rows of an aggregate of all rows is no number of joined rows either.
    let is_counted = has_rows && !has_whole(rows).unwrap_or(true);
    let skipped = Skipped { subquery: subquery.clone(), rows: Arc::clone(rows), skip, negated: *negated };
    (is_counted && !subquery.outer_ref_columns.is_empty()).then_some(skipped)
}

impl Skipped {
    /// Whether there are more rows than those.
    fn counted(self) -> EngineResult<Expr> {
        let number = count(lit(1_i64));
        let counted = LogicalPlan::Aggregate(Aggregate::try_new(self.rows, Vec::new(), vec![number])?);
        let subquery = projection(columns(&counted), Arc::new(counted))?;
        let number = Expr::ScalarSubquery(Subquery { subquery, ..self.subquery });
        let is_there = number.gt(lit(self.skip));
        Ok(if self.negated { not(is_there) } else { is_there })
    }
}

impl Row {
    /// An expression of the row as the value of a subquery.
    fn value_of(&self, expr: Expr) -> EngineResult<Expr> {
        let rows = Projection::try_new(vec![expr], Arc::clone(&self.rows))?;
        let subquery = Arc::new(LogicalPlan::Projection(rows));
        Ok(Expr::ScalarSubquery(Subquery { subquery, ..self.subquery.clone() }))
    }

    /// A condition on the row as a comparison with its value.
    fn compared(self, part: Expr) -> EngineResult<Expr> {
        let is_there =
            self.having.clone().map(|having| self.value_of(having)).transpose()?.map(Expr::is_true);
        let with_value = |compare: &dyn Fn(Expr) -> Expr, without_rows: bool| -> EngineResult<Expr> {
            let Some(value) = self.value.clone() else { return Ok(lit(without_rows)) };
            let compared = compare(self.value_of(value)?);
            match is_there.clone() {
                Some(is_there) => when(is_there, compared).otherwise(lit(without_rows)),
                None => Ok(compared),
            }
        };
        Ok(match part {
            Expr::Exists(Exists { negated, .. }) => {
                let is_there = is_there.unwrap_or_else(|| lit(true));
                if negated { not(is_there) } else { is_there }
            }
            Expr::InSubquery(InSubquery { expr, negated, .. }) => {
                let is_in = with_value(&|value| expr.as_ref().clone().eq(value), false)?;
                if negated { not(is_in) } else { is_in }
            }
            Expr::SetComparison(SetComparison { expr, op, quantifier, .. }) => {
                let compare = |value| binary_expr(expr.as_ref().clone(), op, value);
                with_value(&compare, matches!(quantifier, SetQuantifier::All))?
            }
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        let mut session = SqlSession::default().part_rows_min(1);
        for statement in [
            "create table t (a int, b int) as values (1, 10), (2, 20), (3, 30), (null, 40)",
            "create table u (a int) as values (2), (3), (3), (5)",
        ] {
            session.run(statement).expect("a table");
        }
        let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.into_iter().map(|row| row.join(" ")).collect()
    }

    #[test]
    fn an_aggregate_of_no_rows_has_a_row() {
        let of = "from u where u.a = t.a";
        let all = ["10", "20", "30", "40"];
        for (condition, expected) in [
            (format!("exists (select count(*) {of})"), &all[..]),
            (format!("exists (select max(u.a) {of})"), &all[..]),
            (format!("not exists (select count(*) {of})"), &[]),
            (format!("exists (select 1 {of} having count(*) = 0)"), &["10", "40"]),
            (format!("not exists (select 1 {of} having count(*) > 1)"), &["10", "20", "40"]),
            (format!("exists (select 1 {of} having max(u.a) > 2)"), &["30"]),
            (format!("0 in (select count(*) {of})"), &["10", "40"]),
            (format!("0 not in (select count(*) {of})"), &["20", "30"]),
            (format!("0 = any (select count(*) {of})"), &["10", "40"]),
            (format!("1 < all (select count(*) {of})"), &["30"]),
            (format!("2 in (select max(u.a) {of})"), &["20"]),
            (format!("2 not in (select max(u.a) {of})"), &["30"]),
            (format!("not (2 in (select max(u.a) {of}))"), &["30"]),
            (format!("(2 in (select max(u.a) {of})) is null"), &["10", "40"]),
            (format!("0 in (select coalesce(max(u.a), 0) {of})"), &["10", "40"]),
            (format!("2 in (select count(*) {of} having count(*) > 1)"), &["30"]),
            (format!("2 <> all (select count(*) {of} having count(*) > 1)"), &["10", "20", "40"]),
            ("0 in (select count(*) from u where u.a > t.a) or b = 10".to_owned(), &["10", "40"]),
            (format!("exists (select u.a {of} order by 1 offset 1)"), &["30"]),
            (format!("not exists (select u.a {of} limit 3 offset 1)"), &["10", "20", "40"]),
            (format!("exists (select 1 {of} order by u.a offset 1)"), &["30"]),
            ("exists (select u.a from u where u.a > t.a offset 2)".to_owned(), &["10", "20"]),
        ] {
            assert_eq!(
                rows(&format!("select b from t where {condition} order by b")),
                expected,
                "{condition}"
            );
            let shown = rows(&format!("select b from (select b, {condition} c from t) s where c order by b"));
            assert_eq!(shown, expected, "{condition}");
        }
    }
}
