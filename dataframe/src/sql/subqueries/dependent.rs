//! Subqueries that depend on the row around them, as joins.
//!
//! The library makes right joins of some, see `plain`. Of all others the rows are found once for each
//! combination of the values that they read, see `combinations`, and what they give is joined to the rows
//! around by these values. `laterals` joins the rows themselves.
//!
//! The rows around are read twice. Those of a table are, as they are: files are listed once for a plan, and a
//! file that changes while a plan runs is an error of its scan. All others are made once, by a stage of their
//! own (`materialized`): they may be others each time, as those of `random()` or of `LIMIT`, and n subqueries
//! behind each other would make 2^n copies of a plan. Rows that depend on a row further out cannot be made
//! before it is known: they are read twice if they are the same ones each time, else refused.
//!
//! A condition without an equality looks at each combination beside each row of the subquery, in tasks that
//! read the rows of one side in parts; conditions with one, such as `u.k = t.k and u.a < t.a`, look at rows
//! of equal keys only. Combinations are fewer than rows: `docs/frames.md` tells what a query costs.

use super::combinations::{Combinations, values_of_none};
use super::materialized::{materialized, with_materialized_parts};
use super::plain::{is_plain_value, simplest, subquery_of};
use super::reads::{depends, outer_columns};
use super::same_rows::{Readings, readings_of};
use crate::frame::HIDDEN;
use crate::functions::only_row;
use crate::sql::plans::{columns, projection};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, Result as EngineResult, ScalarValue, not_impl_err};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::{bool_or, count, first_value, max};
use datafusion::logical_expr::expr::{InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Projection, binary_expr, lit, not,
};
use std::sync::Arc;

/// The expressions over rows that have what such subqueries give as more columns. Plain ones stay.
pub(in crate::sql) fn joined(
    exprs: Vec<Expr>,
    rows: Arc<LogicalPlan>,
) -> EngineResult<(Vec<Expr>, Arc<LogicalPlan>)> {
    let mut beside = Beside::of(rows);
    let exprs = exprs.into_iter().map(|expr| Ok(expr.transform_down(|part| beside.value(part))?.data));
    let exprs = exprs.collect::<EngineResult<Vec<Expr>>>()?;
    Ok((exprs, beside.rows))
}

/// The rows without the columns that windows add, which leave the rows as they are.
fn below_windows(rows: &Arc<LogicalPlan>) -> Arc<LogicalPlan> {
    let (mut source, mut passed) = (rows, rows);
    loop {
        passed = match &**passed {
            LogicalPlan::Window(window) => {
                source = &window.input;
                source
            }
            LogicalPlan::Projection(projection) if keeps_columns(projection) => &projection.input,
            _ => return Arc::clone(source),
        };
    }
}

/// Whether the columns of a projection are those of its rows, or have names that these do not have.
fn keeps_columns(projection: &Projection) -> bool {
    let below = projection.input.schema();
    projection.expr.iter().all(|expr| match expr {
        Expr::Column(_) => true,
        Expr::Alias(alias) => {
            matches!(*alias.expr, Expr::Column(_))
                && below.fields().iter().all(|field| *field.name() != alias.name)
        }
        _ => false,
    })
}

/// Rows with what subqueries give beside them.
pub(in crate::sql) struct Beside {
    /// The rows alone, without the columns of windows.
    source: Arc<LogicalPlan>,
    rows: Arc<LogicalPlan>,
    /// Whether the rows are those that were given.
    are_given: bool,
    /// Subqueries, and the values that they have.
    known: Vec<(Expr, Expr)>,
    made: usize,
}

impl Beside {
    pub(in crate::sql) fn of(rows: Arc<LogicalPlan>) -> Beside {
        Beside { source: below_windows(&rows), rows, are_given: true, known: Vec::new(), made: 0 }
    }

    fn value(&mut self, part: Expr) -> EngineResult<Transformed<Expr>> {
        if subquery_of(&part).is_none_or(|subquery| !depends(&subquery.subquery)) {
            return Ok(Transformed::no(part));
        }
        let part = simplest(part);
        if subquery_of(&part).is_none_or(|subquery| !depends(&subquery.subquery))
            || is_plain_value(&part, self.rows.schema())
        {
            return Ok(Transformed::yes(part));
        }
        if let Some((_, value)) = self.known.iter().find(|(known, _)| *known == part) {
            return Ok(Transformed::new(value.clone(), true, TreeNodeRecursion::Jump));
        }
        let value = match &part {
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let is_any = self.any(expr, Operator::Eq, &subquery.subquery)?;
                if *negated { not(is_any) } else { is_any }
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                match (quantifier, op.negate()) {
                    (SetQuantifier::Any, _) => self.any(expr, *op, &subquery.subquery)?,
                    (SetQuantifier::All, Some(other)) => not(self.any(expr, other, &subquery.subquery)?),
                    (SetQuantifier::All, None) => return not_impl_err!("{op} ALL (SELECT ..)"),
                }
            }
            Expr::Exists(asked) => {
                let is_there = self.exists(&asked.subquery.subquery)?;
                if asked.negated { not(is_there) } else { is_there }
            }
            Expr::ScalarSubquery(subquery) => self.scalar(&subquery.subquery)?,
            _ => return Ok(Transformed::no(part)),
        };
        if !part.is_volatile() {
            self.known.push((part, value.clone()));
        }
        Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
    }

    fn exists(&mut self, subquery: &LogicalPlan) -> EngineResult<Expr> {
        let combinations = self.combinations(subquery, None)?;
        let rows = combinations.beside(subquery)?;
        let [number] = self.aggregated(&combinations, rows, [count(lit(1_i64))])?;
        Ok(coalesce(vec![number, lit(0_i64)]).gt(lit(0_i64)))
    }

    /// Whether a comparison with any row holds; missing if none does and one is missing.
    fn any(&mut self, value: &Expr, op: Operator, subquery: &LogicalPlan) -> EngineResult<Expr> {
        let combinations = self.combinations(subquery, Some(value))?;
        let rows = combinations.beside(subquery)?;
        let compared = combinations.compared.iter();
        let compared = compared.map(|(_, [name, _])| Expr::Column(Column::new_unqualified(name)));
        let compared = compared.zip(columns(&rows));
        let Some(compared) = compared.map(|(value, of_row)| binary_expr(value, op, of_row)).next() else {
            return not_impl_err!("a comparison with rows without columns is not supported");
        };
        let measures = [bool_or(compared.clone()), count(compared), count(lit(1_i64))];
        let [is_any, known, all] = self.aggregated(&combinations, rows, measures)?;
        let missing = lit(ScalarValue::Boolean(None));
        when(is_any, lit(true)).when(known.lt(all), missing).otherwise(lit(false))
    }

    /// The value of the only row; missing if there is none, and an error if there are several.
    fn scalar(&mut self, subquery: &LogicalPlan) -> EngineResult<Expr> {
        if let Some((shown, aggregate)) = of_all_rows(subquery) {
            return self.of_all_rows(subquery, shown, aggregate);
        }
        let combinations = self.combinations(subquery, None)?;
        let rows = combinations.beside(subquery)?;
        let Some(value) = columns(&rows).into_iter().next() else {
            return not_impl_err!("a value of a subquery without columns is not supported");
        };
        // Any of several rows would do for the error; the greatest is the same each time.
        let is_nested = rows.schema().field(0).data_type().is_nested();
        let value = if is_nested { first_value(value, Vec::new()) } else { max(value) };
        let [value, number] = self.aggregated(&combinations, rows, [value, count(lit(1_i64))])?;
        Ok(only_row(value, number))
    }

    /// The value of an aggregate of all rows.
    fn of_all_rows(
        &mut self,
        subquery: &LogicalPlan,
        shown: &Expr,
        aggregate: &Aggregate,
    ) -> EngineResult<Expr> {
        let combinations = self.combinations(subquery, None)?;
        let rows = combinations.beside(&aggregate.input)?;
        let measures = aggregate.aggr_expr.iter().map(|expr| combinations.read(expr.clone()));
        let measures = measures.collect::<EngineResult<Vec<Expr>>>()?;
        let values = self.aggregated_all(&combinations, rows, measures)?;
        let of_none = values_of_none(aggregate)?;
        let shown = shown.clone().unalias_nested().data.transform_up(|part| {
            Ok(match &part {
                Expr::Column(column) => {
                    let at = aggregate.schema.index_of_column(column)?;
                    match (values.get(at), of_none.get(at)) {
                        (Some(value), Some(none)) if none.is_null() => Transformed::yes(value.clone()),
                        // No rows make no group.
                        (Some(value), Some(none)) => {
                            Transformed::yes(coalesce(vec![value.clone(), lit(none.clone())]))
                        }
                        _ => Transformed::no(part),
                    }
                }
                Expr::OuterReferenceColumn(_, column)
                    if combinations.columns.iter().any(|(known, _)| known == column) =>
                {
                    Transformed::yes(Expr::Column(column.clone()))
                }
                _ => Transformed::no(part),
            })
        })?;
        Ok(shown.data)
    }

    /// The values of the rows around that a subquery reads. It may read others of queries further out.
    pub(in crate::sql) fn combinations(
        &mut self,
        subquery: &LogicalPlan,
        compared: Option<&Expr>,
    ) -> EngineResult<Combinations> {
        let compared = match compared {
            Some(value) if value.is_volatile() => Some(self.kept(value)?),
            compared => compared.cloned(),
        };
        let around = self.rows.schema();
        let read: Vec<Column> =
            outer_columns(subquery).into_iter().filter(|column| around.has_column(column)).collect();
        let compared_with = compared.iter().flat_map(|value| value.column_refs().into_iter().cloned());
        let all: Vec<Column> = read.iter().cloned().chain(compared_with).collect();
        let is_of_rows = !all.is_empty();
        if is_of_rows {
            self.read_twice(&all)?;
        }
        // Subqueries within this one have fewer operators, and so other names.
        let operators = operators(&self.source)? + operators(subquery)?;
        let name = format!("{HIDDEN}around_{operators}_{}", self.made);
        self.made += 1;
        let columns: Vec<(Column, String)> =
            read.into_iter().enumerate().map(|(at, column)| (column, format!("{name}_{at}"))).collect();
        let compared = compared.map(|value| (value, [format!("{name}_value"), format!("{name}_own")]));
        let mut exprs: Vec<Expr> =
            columns.iter().map(|(column, name)| Expr::Column(column.clone()).alias(name)).collect();
        exprs.extend(compared.iter().map(|(value, [name, _])| value.clone().alias(name)));
        let rows = if is_of_rows {
            LogicalPlan::Distinct(Distinct::All(projection(exprs, Arc::clone(&self.source))?))
        } else {
            let row = LogicalPlanBuilder::empty(true);
            if exprs.is_empty() { row.build()? } else { row.project(exprs)?.build()? }
        };
        Ok(Combinations { rows, columns, compared, name })
    }

    /// Has the rows made once, if they are not to be read twice for these columns of them.
    fn read_twice(&mut self, read: &[Column]) -> EngineResult<()> {
        if std::mem::take(&mut self.are_given) {
            self.rows = with_materialized_parts(Arc::clone(&self.rows))?;
            self.source = below_windows(&self.rows);
        }
        // The values of windows are above.
        let has_all = read.iter().all(|column| self.source.schema().has_column(column));
        match readings_of(if has_all { &self.source } else { &self.rows })? {
            Readings::Any | Readings::AnyOfDependent if has_all => {}
            Readings::Any | Readings::Once => {
                self.rows = materialized(Arc::clone(&self.rows))?;
                self.source = Arc::clone(&self.rows);
            }
            Readings::AnyOfDependent => {
                return not_impl_err!(
                    "a subquery that depends on the value of a window is not supported over rows that depend on \
                     a row further out or on a parameter"
                );
            }
        }
        Ok(())
    }

    /// The column of a value that is another one each time. The rows have it, and are made once.
    fn kept(&mut self, value: &Expr) -> EngineResult<Expr> {
        let label = format!("{HIDDEN}compared_{}", self.made);
        let exprs = columns(&self.rows).into_iter().chain([value.clone().alias(&label)]).collect();
        let rows = projection(exprs, Arc::clone(&self.rows))?;
        self.are_given = false;
        // They are not the same ones each time: it is refused if they cannot be made once.
        readings_of(&rows)?;
        self.rows = materialized(rows)?;
        self.source = Arc::clone(&self.rows);
        Ok(Expr::Column(Column::new_unqualified(label)))
    }

    /// The rows with all columns that were found for subqueries.
    pub(in crate::sql) fn into_rows(self) -> Arc<LogicalPlan> {
        self.rows
    }

    /// Columns with aggregates of the rows of a subquery, missing where there are no rows.
    fn aggregated<const N: usize>(
        &mut self,
        combinations: &Combinations,
        rows: LogicalPlan,
        measures: [Expr; N],
    ) -> EngineResult<[Expr; N]> {
        let values = self.aggregated_all(combinations, rows, measures.to_vec())?;
        let wrong = |_| datafusion::common::internal_datafusion_err!("another number of aggregates");
        values.try_into().map_err(wrong)
    }

    fn aggregated_all(
        &mut self,
        combinations: &Combinations,
        rows: LogicalPlan,
        measures: Vec<Expr>,
    ) -> EngineResult<Vec<Expr>> {
        let groups = combinations.keys();
        let made = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(rows), groups.clone(), measures)?);
        let measured = columns(&made).split_off(groups.len());
        let names: Vec<String> =
            (0..measured.len()).map(|at| format!("{}_measure_{at}", combinations.name)).collect();
        let measured = measured.into_iter().zip(&names).map(|(column, name)| column.alias(name));
        let made = projection(groups.into_iter().chain(measured).collect(), Arc::new(made))?;
        let mut own = Arc::clone(&self.rows);
        let mut lefts: Vec<Column> = combinations.columns.iter().map(|(column, _)| column.clone()).collect();
        if let Some((value, [_, name])) = &combinations.compared {
            own = projection(columns(&own).into_iter().chain([value.clone().alias(name)]).collect(), own)?;
            lefts.push(Column::new_unqualified(name));
        }
        let rights: Vec<Column> = combinations.names().into_iter().map(Column::new_unqualified).collect();
        let (rows, made) = (LogicalPlanBuilder::from(own), Arc::unwrap_or_clone(made));
        let rows = if rights.is_empty() {
            // One row, whatever the rows around are.
            rows.cross_join(made)?
        } else {
            let equal = NullEquality::NullEqualsNull;
            rows.join_detailed(made, JoinType::Left, (lefts, rights), None, equal)?
        };
        self.rows = Arc::new(rows.build()?);
        self.are_given = false;
        Ok(names.into_iter().map(|name| Expr::Column(Column::new_unqualified(name))).collect())
    }
}

/// The value that is shown of an aggregate of all rows, if a subquery is one.
fn of_all_rows(subquery: &LogicalPlan) -> Option<(&Expr, &Aggregate)> {
    let LogicalPlan::Projection(Projection { expr, input, .. }) = subquery else { return None };
    let ([shown], LogicalPlan::Aggregate(aggregate)) = (expr.as_slice(), &**input) else { return None };
    // A subquery within it reads the columns of the aggregate.
    let has_subquery = shown.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true);
    (aggregate.group_expr.is_empty() && !has_subquery).then_some((shown, aggregate))
}

/// The number of operators of a plan.
fn operators(plan: &LogicalPlan) -> EngineResult<usize> {
    let mut operators = 0;
    plan.apply_with_subqueries(|_| {
        operators += 1;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(operators)
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{plan, rows, shown};

    #[test]
    fn aggregates_are_of_rows_with_other_values() {
        assert_eq!(shown("(select max(u.a) from u where u.a <= t.a)"), ["NULL", "2", "3", "NULL"]);
        assert_eq!(shown("(select count(*) from u where u.a > t.a)"), ["3", "2", "1", "0"]);
        assert_eq!(shown("(select count(*) + 1 from u where u.a <> t.a and u.a * 10 = t.b)"), ["1"; 4]);
        assert_eq!(shown("(select sum(t.a + u.a) from u where u.a > t.a)"), ["13", "12", "8", "NULL"]);
        assert_eq!(
            shown("(select coalesce(sum(u.a), 0) + t.b from u where u.a > t.a)"),
            ["20", "28", "35", "40"]
        );
        assert_eq!(shown("(select max(u.a) from u where u.a is distinct from t.a)"), ["5"; 4]);
        assert_eq!(
            shown("sum(b) over (order by b), (select count(*) from u where u.a > t.a)"),
            ["10 3", "30 2", "60 1", "100 0"]
        );
        assert_eq!(
            shown(
                "sum(b) over (partition by abs(b % 1) order by b), (select count(*) from u where u.a > t.a)"
            ),
            ["10 3", "30 2", "60 1", "100 0"]
        );
        let above = "(select count(*) from u where u.a < t.a)";
        assert_eq!(rows(&format!("select b from t where {above} = 0 order by b")), ["10", "20", "40"]);
        assert_eq!(rows(&format!("select b from t order by {above} desc, b")), ["30", "10", "20", "40"]);
        assert_eq!(rows(&format!("select {above} k, sum(b) from t group by 1 order by 1")), ["0 70", "1 30"]);
    }

    #[test]
    fn windows_are_of_the_rows_of_one_row_around() {
        let rows_of = "from (values (1, 7), (2, 7), (2, 7)) v(k, w) where v.k = t.a";
        let number = format!("select row_number() over (partition by w) {rows_of}");
        assert_eq!(shown(&format!("1 < any ({number})")), ["false", "true", "false", "false"]);
        assert_eq!(shown(&format!("2 in ({number})")), ["false", "true", "false", "false"]);
        assert_eq!(rows(&format!("select b from t where 2 in ({number})")), ["20"]);
        assert_eq!(rows(&format!("select b from t where 3 in ({number})")), Vec::<String>::new());
        let second = format!("select 1 {rows_of} qualify row_number() over (order by w) = 2");
        assert_eq!(rows(&format!("select b from t where exists ({second})")), ["20"]);
        let sums = format!("select sum(w) over (order by w) - 7 {rows_of}");
        assert_eq!(shown(&format!("0 < all ({sums})")), ["false", "true", "true", "true"]);
        assert_eq!(shown(&format!("(select max(r) from ({number}) n(r))")), ["1", "2", "NULL", "NULL"]);
    }

    #[test]
    fn conditions_are_of_rows_with_other_values() {
        let exists = "exists (select 1 from u where u.a < t.a)";
        assert_eq!(shown(exists), ["false", "false", "true", "false"]);
        assert_eq!(shown(&format!("not {exists}")), ["true", "true", "false", "true"]);
        assert_eq!(
            shown("t.a in (select u.a from u where u.a > t.a - 1 and u.a < t.b)"),
            ["false", "true", "true", "false"]
        );
        assert_eq!(
            shown("t.a not in (select nullif(u.a, 3) from u where u.a > t.a - 1)"),
            ["NULL", "false", "NULL", "true"]
        );
        assert_eq!(
            shown("t.a > any (select u.a from u where u.a <> t.b)"),
            ["false", "false", "true", "NULL"]
        );
        assert_eq!(
            shown("t.a >= all (select u.a from u where u.a * 10 < t.b)"),
            ["true", "true", "true", "NULL"]
        );
        assert_eq!(rows(&format!("select b from t where b = 10 or {exists} order by b")), ["10", "30"]);
        assert_eq!(rows(&format!("select b from t where {exists}")), ["30"]);
        let over = format!("sum(b) over (partition by {exists} order by b)");
        assert_eq!(shown(&over), ["10", "30", "30", "70"]);
        let query = "select t.b, u.a from t left join u on t.a = u.a and exists (select 1 from u v where v.a > t.a) \
                     order by b";
        assert_eq!(rows(query), ["10 NULL", "20 2", "30 3", "40 NULL"]);
    }

    #[test]
    fn rows_depend_by_equalities_of_which_the_library_makes_no_join() {
        assert_eq!(shown("(select max(u.a) from u where u.a + 1 = t.a)"), ["NULL", "NULL", "2", "NULL"]);
        assert_eq!(
            shown("(select max(u.a) from u where u.a = t.a and t.b = 20)"),
            ["NULL", "2", "NULL", "NULL"]
        );
        assert_eq!(
            shown("(select max(u.a) from u where u.a is not distinct from t.a)"),
            ["NULL", "2", "3", "NULL"]
        );
        assert_eq!(
            shown("t.a in (select u.a from u where u.a is not distinct from t.a)"),
            ["false", "true", "true", "false"]
        );
        assert_eq!(
            shown("t.a > any (select u.a from u where u.a + 1 = t.a)"),
            ["false", "false", "true", "false"]
        );
        assert_eq!(shown("(select count(*) from u join u v on u.a = t.a)"), ["0", "3", "3", "0"]);
        assert_eq!(shown("(select max(u.a + t.a) from u)"), ["6", "7", "8", "NULL"]);
        // Several values of a column are one when they are converted.
        let of = "from (values (1.2, '1'), (1.4, '01'), (2.0, '3')) v(x, s)";
        assert_eq!(
            shown(&format!("(select count(*) {of} where cast(v.x as int) = t.a)")),
            ["2", "1", "0", "0"]
        );
        assert_eq!(
            shown(&format!("(select count(*) {of} where cast(v.s as int) = t.a)")),
            ["2", "0", "1", "0"]
        );
        assert_eq!(shown("t.b in (select u.a * 5 + t.b - 10 from u)"), ["true"; 4]);
        assert_eq!(rows("select b from t where a in (select u.a + t.b - 20 from u) order by b"), ["20"]);
        assert_eq!(
            shown("exists (select 1 from u where u.a = t.a order by 1 limit 1)"),
            ["false", "true", "true", "false"]
        );
    }

    #[test]
    fn rows_depend_below_queries_of_their_own() {
        assert_eq!(
            shown("(select max(v.c) from (select u.a as c from u where u.a > t.a) v)"),
            ["5", "5", "5", "NULL"]
        );
        assert_eq!(
            shown("(select max(v.c) from (select u.a * 2 as c from u where u.a = t.a) v)"),
            ["NULL", "4", "6", "NULL"]
        );
        assert_eq!(
            shown("exists (select 1 from u join u v on u.a = v.a and u.a > t.a)"),
            ["true", "true", "true", "false"]
        );
        assert_eq!(
            shown("(select count(*) from u left join u v on u.a = v.a and v.a > t.a)"),
            ["3", "3", "3", "3"]
        );
        let both = "(select u.a from u where u.a = t.a union all select 1)";
        assert_eq!(shown(&format!("t.a in {both}")), ["true", "true", "true", "NULL"]);
        assert_eq!(rows(&format!("select b from t where a in {both} order by b")), ["10", "20", "30"]);
        assert_eq!(rows(&format!("select b from t where a not in {both} order by b")), [""; 0]);
        let some = "(select u.a from u where u.a = t.a intersect select u.a from u where u.a > 2)";
        assert_eq!(shown(&format!("t.a in {some}")), ["false", "false", "true", "false"]);
        let others = "(select u.a from u where u.a >= t.a except select 2)";
        assert_eq!(shown(&format!("t.a in {others}")), ["false", "false", "true", "false"]);
        assert_eq!(rows(&format!("select b from t where a not in {others} order by b")), ["10", "20", "40"]);
        let query = "select b from t where exists (select u.a from u where u.a = t.a union select u.a from u \
                     where u.a < t.a) order by b";
        assert_eq!(rows(query), ["20", "30"]);
        assert_eq!(
            shown("(select count(*) from (select distinct u.a > 2 from u where u.a >= t.a) v)"),
            ["2", "2", "1", "0"]
        );
    }

    #[test]
    fn rows_depend_on_both_sides_of_joins() {
        let exists = |rows_of: &str| rows(&format!("select b from t where exists ({rows_of}) order by b"));
        let none = |rows_of: &str| rows(&format!("select b from t where not exists ({rows_of}) order by b"));
        let of = "(values (2, 10), (3, 30), (5, 40), (null, 20)) v(k, w)";
        let except = format!("select u.a from u where u.a <> t.a except select k from {of} where w = t.b");
        assert_eq!(exists(&except), ["10", "20", "30"]);
        assert_eq!(none(&except), ["40"]);
        let few = format!("select u.a from u where u.a < 3 except select k from {of} where w = t.b");
        assert_eq!(exists(&few), ["20", "30", "40"]);
        let some = format!("select u.a from u where u.a = t.a intersect select k from {of} where w = t.b");
        assert_eq!(exists(&some), ["30"]);
        assert_eq!(shown(&format!("exists ({some})")), ["false", "false", "true", "false"]);
        let left = format!(
            "select 1 from u left join (select * from {of} where w = t.b) s on u.a = s.k where s.k is null"
        );
        assert_eq!(shown(&format!("(select count(*) from ({left}) c)")), ["2", "3", "2", "2"]);
        assert_eq!(exists(&left), ["10", "20", "30", "40"]);
        let full = format!(
            "select 1 from (select * from u where a = t.a) u full join {of} on u.a = v.k where u.a is null"
        );
        assert_eq!(shown(&format!("(select count(*) from ({full}) c)")), ["4", "3", "3", "4"]);
        assert_eq!(exists(&full), ["10", "20", "30", "40"]);
    }

    #[test]
    fn conditions_are_of_aggregates_that_do_not_depend() {
        let of = "from (select max(u.a) - 3 m from u) s where s.m = t.a";
        assert_eq!(shown(&format!("exists (select 1 {of})")), ["false", "true", "false", "false"]);
        assert_eq!(shown(&format!("not exists (select 1 {of})")), ["true", "false", "true", "true"]);
        assert_eq!(shown(&format!("t.b in (select s.m * 10 {of})")), ["false", "true", "false", "false"]);
        assert_eq!(shown(&format!("t.b > any (select s.m {of})")), ["false", "true", "false", "false"]);
        assert_eq!(rows(&format!("select b from t where exists (select 1 {of})")), ["20"]);
    }

    #[test]
    fn values_have_labels_of_columns_that_they_depend_by() {
        assert_eq!(shown("(select max(u.a * 2) as a from u where u.a = t.a)"), ["NULL", "4", "6", "NULL"]);
        assert_eq!(
            shown("(select a from (select max(u.a * 2) as a from u where u.a = t.a) s)"),
            ["NULL", "4", "6", "NULL"]
        );
        let of = "(select u.a * 10 as a from u where u.a = t.a)";
        assert_eq!(shown(&format!("t.b in {of}")), ["false", "true", "true", "false"]);
        assert_eq!(rows(&format!("select b from t where b in {of} order by b")), ["20", "30"]);
        assert_eq!(rows(&format!("select b from t where b not in {of} order by b")), ["10", "40"]);
        assert_eq!(rows(&format!("select b from t where exists {of} order by b")), ["20", "30"]);
        assert_eq!(rows(&format!("select t.b, s.a from t, lateral {of} s order by 1")), ["20 20", "30 30"]);
    }

    #[test]
    fn joins_of_dependent_sides_have_keys_of_both() {
        let sides = "(select u.a, u.a % 2 g from u where u.a > t.a) x \
                     KIND join (select nullif(w.a, 5) a, nullif(w.a, 5) % 2 g from w where w.a <> t.a) y";
        let number = |kind: &str, on: &str| {
            let sides = sides.replace("KIND", kind);
            shown(&format!("(select count(*) from {sides} on {on})"))
        };
        assert_eq!(number("inner", "x.g = y.g"), ["5", "4", "0", "0"]);
        assert_eq!(number("left", "x.g = y.g"), ["5", "4", "1", "0"]);
        assert_eq!(number("full", "x.g = y.g"), ["6", "5", "3", "0"]);
        assert_eq!(number("right", "x.g = y.g"), ["6", "5", "2", "0"]);
        assert_eq!(number("full", "x.a = y.a and x.a + y.a > 4"), ["6", "4", "3", "0"]);
        let plan =
            plan(&format!("select (select count(*) from {sides} on x.g = y.g) from t").replace("KIND", ""));
        assert!(!plan.contains("IS NOT DISTINCT FROM"), "{plan}");
    }

    #[test]
    fn several_subqueries_read_the_rows_once_each() {
        let value = |at: usize| format!("(select count(*) from u where u.a > t.a + {at}) c{at}");
        let query = |count: usize| {
            format!("select {} from t order by b", (0..count).map(value).collect::<Vec<_>>().join(", "))
        };
        assert_eq!(rows(&query(3)), ["3 2 1", "2 1 1", "1 1 0", "0 0 0"]);
        let scans = |count: usize| plan(&query(count)).matches("TableScan: t").count();
        assert_eq!([1, 2, 4].map(scans), [2, 3, 5]);
    }
}
