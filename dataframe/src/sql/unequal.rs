//! Values of subqueries that depend on the row around them by another condition than equality, or below
//! another query.
//!
//! The library makes joins of those that depend by equality, and of conditions of rows. Here the rows of
//! such a subquery are found once for each combination of the values that it reads, aggregated, and joined
//! to the rows around it by these values. Those rows are read twice, so they must be the same ones each time.

use super::plans::{columns, projection};
use crate::frame::HIDDEN;
use crate::stage::asked_values::depends_by_equality;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, Result as EngineResult, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::{bool_or, count};
use datafusion::logical_expr::expr::{InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{Join, SubqueryAlias, Union, Window};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery,
    binary_expr, lit, not,
};
use std::sync::Arc;

/// Operators of rows that are read twice at most: a plan that reads itself twice again and again has 2^n.
const OPERATORS_MAX: usize = 500;

/// The expressions over rows that have what such subqueries give as more columns. Others stay as they are.
pub(super) fn joined(
    exprs: Vec<Expr>,
    rows: Arc<LogicalPlan>,
) -> EngineResult<(Vec<Expr>, Arc<LogicalPlan>)> {
    let mut source = Arc::clone(&rows);
    // Windows add columns, and leave the rows as they are.
    while let LogicalPlan::Window(window) = &*source {
        source = Arc::clone(&window.input);
    }
    let mut beside = Beside { source, rows, subqueries: 0 };
    let exprs = exprs.into_iter().map(|expr| Ok(expr.transform_down(|part| beside.value(part))?.data));
    let exprs = exprs.collect::<EngineResult<Vec<Expr>>>()?;
    Ok((exprs, beside.rows))
}

/// Rows with what subqueries give beside them.
struct Beside {
    /// The rows alone, without the columns of windows.
    source: Arc<LogicalPlan>,
    rows: Arc<LogicalPlan>,
    subqueries: usize,
}

/// The values around a subquery that it reads: each combination once.
struct Outer {
    rows: LogicalPlan,
    /// The columns around it, and what they are called here.
    columns: Vec<(Column, String)>,
    /// The value that is compared with its rows, and what it is called there and here.
    compared: Option<(Expr, [String; 2])>,
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
        let Some(rows) = outer.beside(&subquery.subquery)? else { return Ok(None) };
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

impl Outer {
    fn names(&self) -> Vec<&str> {
        let compared = self.compared.iter().map(|(_, [name, _])| name.as_str());
        self.columns.iter().map(|(_, name)| name.as_str()).chain(compared).collect()
    }

    /// An expression of a subquery over rows that have the values around it.
    fn read(&self, expr: Expr) -> EngineResult<Expr> {
        let read = expr.transform_up(|part| {
            let Expr::OuterReferenceColumn(_, column) = &part else { return Ok(Transformed::no(part)) };
            let name = self.columns.iter().find(|(known, _)| known == column).map(|(_, name)| name);
            Ok(match name {
                Some(name) => Transformed::yes(Expr::Column(Column::new_unqualified(name))),
                None => Transformed::no(part),
            })
        })?;
        Ok(read.data)
    }

    /// The rows of a subquery for each combination of values around it, which are more columns. `None` for
    /// operators between them that look at several rows.
    fn beside(&self, plan: &LogicalPlan) -> EngineResult<Option<LogicalPlan>> {
        if !depends(plan)? {
            let rows = LogicalPlanBuilder::from(plan.clone()).cross_join(self.rows.clone())?;
            return Ok(Some(rows.build()?));
        }
        Ok(match plan {
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let Some(rows) = self.beside(input)? else { return Ok(None) };
                let labels = NamePreserver::new_for_projection();
                let exprs = expr.iter().map(|expr| Ok(labels.save(expr).restore(self.read(expr.clone())?)));
                Some(self.with_own(exprs.collect::<EngineResult<Vec<Expr>>>()?, rows)?)
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let Some(rows) = self.beside(input)? else { return Ok(None) };
                let own = columns(input).into_iter().zip(input.schema().fields());
                let own =
                    own.map(|(column, field)| column.alias_qualified(Some(alias.clone()), field.name()));
                Some(self.with_own(own.collect(), rows)?)
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some(rows) = self.beside(input)? else { return Ok(None) };
                Some(LogicalPlan::Distinct(Distinct::All(Arc::new(rows))))
            }
            LogicalPlan::Union(Union { inputs, .. }) => {
                let sides = inputs.iter().map(|input| self.beside(input));
                let Some(sides) = sides.collect::<EngineResult<Option<Vec<LogicalPlan>>>>()? else {
                    return Ok(None);
                };
                let sides = sides.into_iter().map(Arc::new).collect();
                Some(LogicalPlan::Union(Union::try_new_with_loose_types(sides)?))
            }
            LogicalPlan::Join(join) => self.beside_join(join)?,
            LogicalPlan::Window(window) => self.beside_window(window)?,
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let Some(rows) = self.beside(input)? else { return Ok(None) };
                Some(LogicalPlan::Filter(Filter::try_new(self.read(predicate.clone())?, Arc::new(rows))?))
            }
            _ => None,
        })
    }
}

impl Outer {
    /// The rows with these columns, and those of the values around.
    fn with_own(&self, own: Vec<Expr>, rows: LogicalPlan) -> EngineResult<LogicalPlan> {
        let names = self.names().into_iter().map(|name| Expr::Column(Column::new_unqualified(name)));
        let made = projection(own.into_iter().chain(names).collect(), Arc::new(rows))?;
        Ok(Arc::unwrap_or_clone(made))
    }

    /// Windows over the rows of each combination of values around, apart from those of the others.
    fn beside_window(&self, window: &Window) -> EngineResult<Option<LogicalPlan>> {
        let Window { input, window_expr, schema } = window;
        let Some(rows) = self.beside(input)? else { return Ok(None) };
        let around: Vec<Expr> =
            self.names().into_iter().map(|name| Expr::Column(Column::new_unqualified(name))).collect();
        let exprs = window_expr.iter().map(|expr| {
            let apart = self.read(expr.clone())?.transform_down(|part| {
                let Expr::WindowFunction(mut call) = part else { return Ok(Transformed::no(part)) };
                call.params.partition_by.extend(around.iter().cloned());
                Ok(Transformed::yes(Expr::WindowFunction(call)))
            })?;
            Ok(apart.data)
        });
        let exprs = exprs.collect::<EngineResult<Vec<Expr>>>()?;
        let width = rows.schema().fields().len();
        let made = LogicalPlan::Window(Window::try_new(exprs, Arc::new(rows))?);
        // The plans above know the values by the texts that they had.
        let values = columns(&made).split_off(width);
        let named = values.into_iter().zip(schema.iter().skip(input.schema().fields().len()));
        let named =
            named.map(|(column, (table, field))| column.alias_qualified(table.cloned(), field.name()));
        let own = columns(input).into_iter().chain(named).collect();
        Ok(Some(self.with_own(own, made)?))
    }

    /// A join with the values around beside one of its sides, each of whose rows it has at least once, or
    /// with all that it is joined to.
    fn beside_join(&self, join: &Join) -> EngineResult<Option<LogicalPlan>> {
        let is_left = match (join.join_type, depends(&join.left)?, depends(&join.right)?) {
            (JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti, _, false) => true,
            (JoinType::Inner | JoinType::Right, false, _) => false,
            _ => return Ok(None),
        };
        let side = if is_left { &join.left } else { &join.right };
        let Some(side) = self.beside(side)? else { return Ok(None) };
        let (left, right) = if is_left {
            (Arc::new(side), Arc::clone(&join.right))
        } else {
            (Arc::clone(&join.left), Arc::new(side))
        };
        let on =
            join.on.iter().map(|(left, right)| Ok((self.read(left.clone())?, self.read(right.clone())?)));
        let filter = join.filter.clone().map(|condition| self.read(condition)).transpose()?;
        let made = Join::try_new(
            left,
            right,
            on.collect::<EngineResult<_>>()?,
            filter,
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        let own = join.schema.iter();
        let own = own.map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name())));
        Ok(Some(self.with_own(own.collect(), LogicalPlan::Join(made))?))
    }
}

/// Whether a part of a plan depends on the row around it.
pub(super) fn depends(plan: &LogicalPlan) -> EngineResult<bool> {
    plan.exists(|node| Ok(node.contains_outer_reference()))
}

/// Whether a plan depends on the row around it below a query of its own, or by a condition of a join: of such
/// ones the library makes no join. Of what depends below a window it makes a wrong one, whose windows run
/// over the rows of all rows around.
pub(super) fn depends_below(plan: &LogicalPlan) -> EngineResult<bool> {
    plan.exists(|node| match node {
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Window(_) => depends(node),
        LogicalPlan::Join(_) => Ok(node.contains_outer_reference()),
        _ => Ok(false),
    })
}

/// Whether a plan gives the same rows each time.
fn is_same_each_time(plan: &LogicalPlan) -> EngineResult<bool> {
    // Subqueries within it read its own columns.
    let (mut operators, mut is_same) = (0, !depends(plan)?);
    plan.apply_with_subqueries(|node| {
        operators += 1;
        is_same &= operators <= OPERATORS_MAX && !is_limited(node);
        is_same &= !matches!(node, LogicalPlan::Window(_) | LogicalPlan::Extension(_));
        node.apply_expressions(|expr| {
            is_same &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if is_same { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_same)
}

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
        let query = "select (select count(*) from u where u.a < t.a) from (select random() as a from t) t";
        let error = session().run(query).expect_err("no operator for it");
        assert!(error.to_string().contains("by another condition than equality"), "{error}");
    }
}
