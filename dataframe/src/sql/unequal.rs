//! Values of subqueries that depend on the row around them by another condition than equality, or below
//! another query.
//!
//! The library makes joins of those that depend by equality, and of conditions of rows. Here the rows of
//! such a subquery are found once for each combination of the values that it reads, aggregated, and joined
//! to the rows around it by these values.
//!
//! Those rows are read twice, so they must be the same ones each time. Plans whose rows may be others are
//! refused: those of `random()`, of some rows out of many, of windows, and of sums of floats, which depend on
//! the order in which tasks have ended. Files are listed once for a plan, and a file that changes while a
//! plan runs is an error of its scan.
//!
//! A condition without an equality looks at each combination beside each row of the subquery, in tasks that
//! read the rows of one side in parts; conditions with one, such as `u.k = t.k and u.a < t.a`, look at rows
//! of equal keys only. Combinations are fewer than rows: `docs/frames.md` tells what a query costs.

use super::outer_values::Outer;
use super::plans::{columns, projection};
use super::same_rows::is_same_each_time;
use crate::frame::HIDDEN;
use crate::stage::asked_values::{depends, depends_by_equality};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, Result as EngineResult, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::{bool_or, count};
use datafusion::logical_expr::expr::{InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery, binary_expr,
    lit, not,
};
use std::sync::Arc;

/// The expressions over rows that have what such subqueries give as more columns. Others stay as they are.
pub(super) fn joined(
    exprs: Vec<Expr>,
    rows: Arc<LogicalPlan>,
) -> EngineResult<(Vec<Expr>, Arc<LogicalPlan>)> {
    let mut beside = Beside { source: below_windows(&rows), rows, subqueries: 0 };
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
struct Beside {
    /// The rows alone, without the columns of windows.
    source: Arc<LogicalPlan>,
    rows: Arc<LogicalPlan>,
    subqueries: usize,
}

impl Beside {
    fn value(&mut self, part: Expr) -> EngineResult<Transformed<Expr>> {
        let subquery = match &part {
            Expr::InSubquery(asked) => &asked.subquery,
            Expr::SetComparison(asked) => &asked.subquery,
            Expr::Exists(asked) => &asked.subquery,
            Expr::ScalarSubquery(subquery) => subquery,
            _ => return Ok(Transformed::no(part)),
        };
        let is_other = !depends_by_equality(&subquery.subquery)? || depends_below(&subquery.subquery)?;
        let is_other = !subquery.outer_ref_columns.is_empty() && is_other;
        if !is_other || !is_same_each_time(&self.source)? {
            return Ok(Transformed::no(part));
        }
        let made = match &part {
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => self
                .any(expr, Operator::Eq, subquery)?
                .map(|is_any| if *negated { not(is_any) } else { is_any }),
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => match quantifier {
                SetQuantifier::Any => self.any(expr, *op, subquery)?,
                SetQuantifier::All => match op.negate() {
                    Some(other) => self.any(expr, other, subquery)?.map(not),
                    None => None,
                },
            },
            Expr::Exists(asked) => {
                let is_there = self.exists(&asked.subquery)?;
                is_there.map(|is_there| if asked.negated { not(is_there) } else { is_there })
            }
            Expr::ScalarSubquery(subquery) => self.scalar(subquery)?,
            _ => None,
        };
        Ok(made.map_or_else(|| Transformed::no(part), Transformed::yes))
    }

    fn exists(&mut self, subquery: &Subquery) -> EngineResult<Option<Expr>> {
        let Some(outer) = self.outer(subquery, None)? else { return Ok(None) };
        let Some(rows) = outer.beside(without_limit(&subquery.subquery))? else { return Ok(None) };
        let [number] = self.aggregated(&outer, rows, [count(lit(1_i64))])?;
        Ok(Some(number.is_not_null()))
    }

    /// Whether a comparison with any row holds; missing if none does and one is missing.
    fn any(&mut self, value: &Expr, op: Operator, subquery: &Subquery) -> EngineResult<Option<Expr>> {
        let Some(outer) = self.outer(subquery, Some(value))? else { return Ok(None) };
        let Some(rows) = outer.beside(&subquery.subquery)? else { return Ok(None) };
        let Some(of_row) = columns(&rows).into_iter().next() else { return Ok(None) };
        let compared =
            outer.compared.iter().map(|(_, [name, _])| Expr::Column(Column::new_unqualified(name)));
        let Some(compared) = compared.map(|value| binary_expr(value, op, of_row.clone())).next() else {
            return Ok(None);
        };
        let measures = [bool_or(compared.clone()), count(compared), count(lit(1_i64))];
        let [is_any, known, all] = self.aggregated(&outer, rows, measures)?;
        let missing = lit(ScalarValue::Boolean(None));
        Ok(Some(when(is_any, lit(true)).when(known.lt(all), missing).otherwise(lit(false))?))
    }

    /// The value of an aggregate of all rows.
    fn scalar(&mut self, subquery: &Subquery) -> EngineResult<Option<Expr>> {
        let (shown, aggregate) = match &*subquery.subquery {
            LogicalPlan::Projection(Projection { expr, input, .. }) => match (expr.as_slice(), &**input) {
                ([shown], LogicalPlan::Aggregate(aggregate)) => (shown.clone(), aggregate),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        if !aggregate.group_expr.is_empty() {
            return Ok(None);
        }
        let Some(outer) = self.outer(subquery, None)? else { return Ok(None) };
        let Some(rows) = outer.beside(&aggregate.input)? else { return Ok(None) };
        let measures = aggregate.aggr_expr.iter().map(|expr| outer.read(expr.clone()));
        let values = self.aggregated_all(&outer, rows, measures.collect::<EngineResult<Vec<Expr>>>()?)?;
        let of_none = aggregate.aggr_expr.iter().zip(aggregate.schema.fields());
        let of_none = of_none.map(|(expr, field)| match expr.clone().unalias_nested().data {
            Expr::AggregateFunction(call) => call.func.default_value(field.data_type()),
            _ => ScalarValue::try_from(field.data_type()),
        });
        let of_none = of_none.collect::<EngineResult<Vec<ScalarValue>>>()?;
        let shown = shown.unalias_nested().data.transform_up(|part| {
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
                Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column.clone())),
                _ => Transformed::no(part),
            })
        })?;
        Ok(Some(shown.data))
    }

    /// The values that a subquery reads; `None` if they are not all columns of the rows around it.
    fn outer(&mut self, subquery: &Subquery, compared: Option<&Expr>) -> EngineResult<Option<Outer>> {
        let name = format!("{HIDDEN}outer_{}_{}", self.rows.schema().fields().len(), self.subqueries);
        self.subqueries += 1;
        let mut columns: Vec<(Column, String)> = Vec::new();
        for outer in &subquery.outer_ref_columns {
            outer.apply(|part| {
                if let Expr::OuterReferenceColumn(_, column) = part
                    && columns.iter().all(|(known, _)| known != column)
                {
                    columns.push((column.clone(), format!("{name}_{}", columns.len())));
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        let mut read = columns.iter().map(|(column, _)| column);
        let mut compared_with = compared.iter().flat_map(|value| value.column_refs());
        let is_there = |column: &Column| self.source.schema().has_column(column);
        if !read.all(is_there) || !compared_with.all(is_there) {
            return Ok(None);
        }
        let compared =
            compared.map(|value| (value.clone(), [format!("{name}_value"), format!("{name}_own")]));
        let mut exprs: Vec<Expr> =
            columns.iter().map(|(column, name)| Expr::Column(column.clone()).alias(name)).collect();
        exprs.extend(compared.iter().map(|(value, [name, _])| value.clone().alias(name)));
        let rows = projection(exprs, Arc::clone(&self.source))?;
        let rows = LogicalPlan::Distinct(Distinct::All(rows));
        Ok(Some(Outer { rows, columns, compared }))
    }

    /// Columns with aggregates of the rows of a subquery, missing where there are no rows.
    fn aggregated<const N: usize>(
        &mut self,
        outer: &Outer,
        rows: LogicalPlan,
        measures: [Expr; N],
    ) -> EngineResult<[Expr; N]> {
        let values = self.aggregated_all(outer, rows, measures.to_vec())?;
        let wrong = |_| datafusion::common::internal_datafusion_err!("another number of aggregates");
        values.try_into().map_err(wrong)
    }

    fn aggregated_all(
        &mut self,
        outer: &Outer,
        rows: LogicalPlan,
        measures: Vec<Expr>,
    ) -> EngineResult<Vec<Expr>> {
        let keys = outer.names();
        let groups: Vec<Expr> =
            keys.iter().map(|name| Expr::Column(Column::new_unqualified(*name))).collect();
        let made = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(rows), groups.clone(), measures)?);
        let measured = columns(&made).split_off(groups.len());
        let first = keys.first().copied().unwrap_or_default();
        let names: Vec<String> = (0..measured.len()).map(|at| format!("{first}_measure_{at}")).collect();
        let measured = measured.into_iter().zip(&names).map(|(column, name)| column.alias(name));
        let made = projection(groups.into_iter().chain(measured).collect(), Arc::new(made))?;
        let mut own = Arc::clone(&self.rows);
        let mut lefts: Vec<Column> = outer.columns.iter().map(|(column, _)| column.clone()).collect();
        if let Some((value, [_, name])) = &outer.compared {
            own = projection(columns(&own).into_iter().chain([value.clone().alias(name)]).collect(), own)?;
            lefts.push(Column::new_unqualified(name));
        }
        let rights = keys.iter().map(|name| Column::new_unqualified(*name)).collect();
        let equal = NullEquality::NullEqualsNull;
        let rows = LogicalPlanBuilder::from(own);
        let rows =
            rows.join_detailed(Arc::unwrap_or_clone(made), JoinType::Left, (lefts, rights), None, equal)?;
        self.rows = Arc::new(rows.build()?);
        Ok(names.into_iter().map(|name| Expr::Column(Column::new_unqualified(name))).collect())
    }
}

/// Whether a plan depends on the row around it below a query of its own, or elsewhere than by a condition of
/// its rows: of such ones the library makes no join. Of what depends below a window it makes a wrong one,
/// whose windows run over the rows of all rows around; so it does of a side of an outer join.
pub(super) fn depends_below(plan: &LogicalPlan) -> EngineResult<bool> {
    plan.exists(|node| match node {
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Window(_) => depends(node),
        LogicalPlan::Filter(_) => Ok(false),
        LogicalPlan::Join(join) if join.join_type != JoinType::Inner => depends(node),
        _ => Ok(node.contains_outer_reference()),
    })
}

/// Rows of which some are there if some of the others are: those without an order, without a limit that lets
/// some through, and with other columns.
fn without_limit(mut rows: &LogicalPlan) -> &LogicalPlan {
    loop {
        rows = match rows {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
            LogicalPlan::Limit(limit) if limit.skip.is_none() && has_rows(limit.fetch.as_deref()) => {
                &limit.input
            }
            rows => return rows,
        };
    }
}

fn has_rows(fetch: Option<&Expr>) -> bool {
    matches!(fetch, Some(Expr::Literal(ScalarValue::Int64(Some(rows)), _)) if 0 < *rows)
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

    /// The values of an expression for each row of `t`.
    #[track_caller]
    fn shown(value: &str) -> Vec<String> {
        rows(&format!("select {value} from t order by b"))
    }

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
    fn several_subqueries_read_the_rows_once_each() {
        let value = |at: usize| format!("(select count(*) from u where u.a > t.a + {at}) c{at}");
        let query = |count: usize| {
            format!("select {} from t order by b", (0..count).map(value).collect::<Vec<_>>().join(", "))
        };
        assert_eq!(rows(&query(3)), ["3 2 1", "2 1 1", "1 1 0", "0 0 0"]);
        let scans = |count: usize| {
            let plan = session().run(&format!("explain {}", query(count))).expect("a plan");
            plan.concat().concat().matches("TableScan: t").count()
        };
        assert_eq!([1, 2, 4].map(scans), [2, 3, 5]);
    }
}
