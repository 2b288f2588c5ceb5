//! The values around a subquery that it reads, and the rows of the subquery for each combination of them.
//!
//! Each operator of the subquery gets one that does its work for each combination apart: groups and windows
//! have the values as more keys, joins compare them on both sides, `LIMIT` counts the rows of each. Operators
//! without such a form are refused by their names.

use super::reads::outer_columns;
use crate::sql::plans::{columns, projection};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, JoinType, NullEquality, Result as EngineResult, ScalarValue, not_impl_err,
};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{
    FetchType, Limit, SkipType, Sort, SubqueryAlias, Union, Values, Window,
};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprFunctionExt, Filter, LogicalPlan, LogicalPlanBuilder,
    Projection, lit,
};
use std::sync::Arc;

/// The values around a subquery that it reads: each combination once.
pub(in crate::sql) struct Combinations {
    pub(in crate::sql) rows: LogicalPlan,
    /// The columns around it, and what they are called here.
    pub(in crate::sql) columns: Vec<(Column, String)>,
    /// The value that is compared with its rows, and what it is called there and here.
    pub(in crate::sql) compared: Option<(Expr, [String; 2])>,
    /// The beginning of the names of columns that are made for it.
    pub(in crate::sql) name: String,
}

impl Combinations {
    pub(in crate::sql) fn names(&self) -> Vec<&str> {
        let compared = self.compared.iter().map(|(_, [name, _])| name.as_str());
        self.columns.iter().map(|(_, name)| name.as_str()).chain(compared).collect()
    }

    /// The columns that have the values in the rows of the subquery.
    pub(in crate::sql) fn keys(&self) -> Vec<Expr> {
        self.names().into_iter().map(column).collect()
    }

    /// An expression of a subquery over rows that have the values around it.
    pub(in crate::sql) fn read(&self, expr: Expr) -> EngineResult<Expr> {
        let read = expr.transform_up(|part| {
            let Expr::OuterReferenceColumn(_, outer) = &part else { return Ok(Transformed::no(part)) };
            let name = self.columns.iter().find(|(known, _)| known == outer).map(|(_, name)| name);
            Ok(match name {
                Some(name) => Transformed::yes(column(name)),
                // A column of a query further out.
                None => Transformed::no(part),
            })
        })?;
        Ok(read.data)
    }

    fn read_all(&self, exprs: &[Expr]) -> EngineResult<Vec<Expr>> {
        exprs.iter().map(|expr| self.read(expr.clone())).collect()
    }

    fn read_keys(&self, keys: &[SortKey]) -> EngineResult<Vec<SortKey>> {
        keys.iter().map(|key| Ok(SortKey { expr: self.read(key.expr.clone())?, ..key.clone() })).collect()
    }

    /// Whether the rows of a plan are others for another combination.
    pub(in crate::sql) fn is_read_by(&self, plan: &LogicalPlan) -> bool {
        let read = outer_columns(plan);
        self.columns.iter().any(|(column, _)| read.contains(column))
    }

    /// The rows of a subquery for each combination of values around it, which are more columns.
    pub(in crate::sql) fn beside(&self, plan: &LogicalPlan) -> EngineResult<LogicalPlan> {
        if !self.is_read_by(plan) {
            return LogicalPlanBuilder::from(plan.clone()).cross_join(self.rows.clone())?.build();
        }
        match plan {
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let labels = NamePreserver::new_for_projection();
                let exprs = expr.iter().map(|expr| Ok(labels.save(expr).restore(self.read(expr.clone())?)));
                self.with_keys(exprs.collect::<EngineResult<Vec<Expr>>>()?, self.beside(input)?)
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let own = columns(input).into_iter().zip(input.schema().fields());
                let own =
                    own.map(|(column, field)| column.alias_qualified(Some(alias.clone()), field.name()));
                self.with_keys(own.collect(), self.beside(input)?)
            }
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let rows = Arc::new(self.beside(input)?);
                Ok(LogicalPlan::Filter(Filter::try_new(self.read(predicate.clone())?, rows)?))
            }
            LogicalPlan::Sort(Sort { expr, input, fetch: None }) => {
                let input = Arc::new(self.beside(input)?);
                Ok(LogicalPlan::Sort(Sort { expr: self.read_keys(expr)?, input, fetch: None }))
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(self.beside(input)?))))
            }
            LogicalPlan::Distinct(Distinct::On(first)) => self.beside_first(first),
            LogicalPlan::Union(Union { inputs, .. }) => {
                let sides = inputs.iter().map(|input| Ok(Arc::new(self.beside(input)?)));
                let sides = sides.collect::<EngineResult<Vec<Arc<LogicalPlan>>>>()?;
                Ok(LogicalPlan::Union(Union::try_new_with_loose_types(sides)?))
            }
            LogicalPlan::Values(values) => self.beside_values(values),
            LogicalPlan::Join(join) => self.beside_join(join),
            LogicalPlan::Window(window) => self.beside_window(window),
            LogicalPlan::Aggregate(aggregate) => self.beside_aggregate(aggregate),
            LogicalPlan::Limit(limit) => self.beside_limit(limit),
            other => refused(construct(other)),
        }
    }

    /// The rows with these columns, and those of the values around.
    pub(in crate::sql) fn with_keys(&self, own: Vec<Expr>, rows: LogicalPlan) -> EngineResult<LogicalPlan> {
        let made = projection(own.into_iter().chain(self.keys()).collect(), Arc::new(rows))?;
        Ok(Arc::unwrap_or_clone(made))
    }

    /// The columns of an operator by the names that the plans above know.
    fn renamed(made: impl IntoIterator<Item = Expr>, known: &DFSchema) -> Vec<Expr> {
        let made = made.into_iter().zip(known.iter());
        made.map(|(column, (table, field))| column.alias_qualified(table.cloned(), field.name())).collect()
    }

    /// `VALUES` of which each row is one of a projection.
    fn beside_values(&self, values: &Values) -> EngineResult<LogicalPlan> {
        let mut sides = Vec::new();
        for row in &values.values {
            let named = self.read_all(row)?.into_iter().zip(values.schema.fields());
            let own = named.map(|(expr, field)| expr.alias(field.name()));
            sides.push(Arc::new(self.with_keys(own.collect(), self.rows.clone())?));
        }
        match (sides.pop(), sides.is_empty()) {
            (Some(only), true) => Ok(Arc::unwrap_or_clone(only)),
            (Some(last), false) => {
                sides.push(last);
                Ok(LogicalPlan::Union(Union::try_new_with_loose_types(sides)?))
            }
            (None, _) => refused("VALUES without rows"),
        }
    }

    /// The first rows of each combination.
    fn beside_first(&self, first: &DistinctOn) -> EngineResult<LogicalPlan> {
        let DistinctOn { on_expr, select_expr, sort_expr, input, schema } = first;
        let keys = self.keys();
        // A value around is there already, and no other within its combination.
        let other = |expr: &Expr| !keys.contains(expr);
        let on = self.read_all(on_expr)?.into_iter().filter(other);
        let on = keys.iter().cloned().chain(on).collect();
        let shown = select_expr.iter().zip(schema.iter());
        let shown = shown.map(|(expr, (table, field))| {
            Ok(self.read(expr.clone())?.alias_qualified(table.cloned(), field.name()))
        });
        let shown = shown.chain(keys.iter().cloned().map(Ok)).collect::<EngineResult<Vec<Expr>>>()?;
        // The order begins with what is different.
        let sorted = match sort_expr {
            Some(order) => {
                let around = keys.iter().cloned().map(|key| key.sort(true, false));
                let order = self.read_keys(order)?.into_iter().filter(|key| other(&key.expr));
                Some(around.chain(order).collect())
            }
            None => None,
        };
        let first = DistinctOn::try_new(on, shown, sorted, Arc::new(self.beside(input)?))?;
        Ok(LogicalPlan::Distinct(Distinct::On(first)))
    }

    /// Groups of each combination. An aggregate of all rows has a row also for a combination that has none.
    fn beside_aggregate(&self, aggregate: &Aggregate) -> EngineResult<LogicalPlan> {
        let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
        if group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return refused("ROLLUP, CUBE or GROUPING SETS");
        }
        let keys = self.keys();
        // A group by a value around is one by its key.
        let (mut groups, mut places) = (keys.clone(), Vec::new());
        for expr in self.read_all(group_expr)? {
            let place = groups.iter().position(|known| *known == expr);
            places.push(place.unwrap_or(groups.len()));
            if place.is_none() {
                groups.push(expr);
            }
        }
        let width = groups.len();
        let rows = Arc::new(self.beside(input)?);
        let made = Aggregate::try_new(rows, groups, self.read_all(aggr_expr)?)?;
        let made = LogicalPlan::Aggregate(made);
        if !group_expr.is_empty() || keys.is_empty() {
            let mut groups = columns(&made);
            let values = groups.split_off(width);
            let own = places.into_iter().filter_map(|place| groups.get(place).cloned()).chain(values);
            return self.with_keys(Combinations::renamed(own, &aggregate.schema), made);
        }
        self.with_row_of_none(aggregate, made)
    }

    /// The values of aggregates of all rows, also for combinations without rows.
    fn with_row_of_none(&self, aggregate: &Aggregate, made: LogicalPlan) -> EngineResult<LogicalPlan> {
        let names = self.names();
        let other: Vec<String> = names.iter().map(|name| format!("{name}_grouped")).collect();
        let values: Vec<String> =
            (0..aggregate.aggr_expr.len()).map(|at| format!("{}_aggregate_{at}", self.name)).collect();
        let labels = other.iter().chain(&values);
        let exprs = columns(&made).into_iter().zip(labels).map(|(column, label)| column.alias(label));
        let made = projection(exprs.collect(), Arc::new(made))?;
        let lefts = names.into_iter().map(Column::new_unqualified).collect();
        let rights = other.iter().map(Column::new_unqualified).collect();
        let rows = LogicalPlanBuilder::from(self.rows.clone()).join_detailed(
            Arc::unwrap_or_clone(made),
            JoinType::Left,
            (lefts, rights),
            None,
            NullEquality::NullEqualsNull,
        )?;
        let own = values.iter().zip(values_of_none(aggregate)?).zip(aggregate.schema.iter());
        let own = own.map(|((value, none), (table, field))| {
            let value = column(value);
            let value = if none.is_null() { value } else { coalesce(vec![value, lit(none)]) };
            value.alias_qualified(table.cloned(), field.name())
        });
        self.with_keys(own.collect(), rows.build()?)
    }

    /// So many rows of each combination.
    fn beside_limit(&self, limit: &Limit) -> EngineResult<LogicalPlan> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return refused("LIMIT or OFFSET of an expression");
        };
        let limited = |input: &Arc<LogicalPlan>| {
            Arc::new(LogicalPlan::Limit(Limit { input: Arc::clone(input), ..limit.clone() }))
        };
        // The order is below what has a row for each row.
        let (input, order) = match &*limit.input {
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let rows = Projection::try_new(expr.clone(), limited(input))?;
                return self.beside(&LogicalPlan::Projection(rows));
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let rows = SubqueryAlias::try_new(limited(input), alias.clone())?;
                return self.beside(&LogicalPlan::SubqueryAlias(rows));
            }
            LogicalPlan::Sort(Sort { expr, input, fetch: None }) => (input, self.read_keys(expr)?),
            _ => (&limit.input, Vec::new()),
        };
        let rows = Arc::new(self.beside(input)?);
        let own = columns(&rows);
        // Computed keys are columns: some values have no bounds that the library knows.
        let (mut computed, mut order) = (Vec::new(), order);
        for key in order.iter_mut().filter(|key| !matches!(key.expr, Expr::Column(_))) {
            let name = format!("{}_order_{}", self.name, computed.len());
            computed.push(std::mem::replace(&mut key.expr, column(&name)).alias(name));
        }
        let rows = projection(own.iter().cloned().chain(computed).collect(), rows)?;
        let number = row_number().partition_by(self.keys());
        let number = if order.is_empty() { number.build()? } else { number.order_by(order).build()? };
        let rows = LogicalPlan::Window(Window::try_new(vec![number], rows)?);
        let Some(number) = columns(&rows).pop() else { return refused("LIMIT") };
        let first = (0 < skip).then(|| number.clone().gt(lit(skip as u64)));
        let last = fetch.map(|fetch| number.lt_eq(lit(skip.saturating_add(fetch) as u64)));
        let kept = match conjunction(first.into_iter().chain(last)) {
            Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, Arc::new(rows))?),
            None => rows,
        };
        Ok(Arc::unwrap_or_clone(projection(own, Arc::new(kept))?))
    }

    /// Windows over the rows of each combination of values around, apart from those of the others.
    fn beside_window(&self, window: &Window) -> EngineResult<LogicalPlan> {
        let Window { input, window_expr, schema } = window;
        let rows = self.beside(input)?;
        let around = self.keys();
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
        self.with_keys(columns(input).into_iter().chain(named).collect(), made)
    }
}

/// A column of a name that no table has.
pub(in crate::sql) fn column(name: impl Into<String>) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The values that aggregates have of no rows.
pub(in crate::sql) fn values_of_none(aggregate: &Aggregate) -> EngineResult<Vec<ScalarValue>> {
    let values = aggregate.schema.fields().iter().skip(aggregate.group_expr.len());
    let values = aggregate.aggr_expr.iter().zip(values);
    let values = values.map(|(expr, field)| match expr.clone().unalias_nested().data {
        Expr::AggregateFunction(call) => call.func.default_value(field.data_type()),
        _ => ScalarValue::try_from(field.data_type()),
    });
    values.collect()
}

/// The name of an operator in SQL.
fn construct(plan: &LogicalPlan) -> &'static str {
    match plan {
        LogicalPlan::Unnest(_) => "UNNEST",
        LogicalPlan::RecursiveQuery(_) => "WITH RECURSIVE",
        LogicalPlan::Subquery(_) => "LATERAL",
        LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => "LIMIT",
        LogicalPlan::TableScan(_) => "a table",
        _ => "an operator of this kind",
    }
}

pub(in crate::sql) fn refused<T>(construct: &str) -> EngineResult<T> {
    not_impl_err!("{construct} over rows that depend on the row around them is not supported")
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{failed, plan, refused, rows, shown};

    #[test]
    fn an_aggregate_of_no_rows_has_a_row() {
        let of = "from w where w.a = t.a";
        let all = ["10", "20", "30", "40"];
        for (condition, expected) in [
            (format!("exists (select count(*) {of})"), &all[..]),
            (format!("exists (select max(w.a) {of})"), &all[..]),
            (format!("not exists (select count(*) {of})"), &[]),
            (format!("not exists (select count(*) {of} limit 1 offset 0)"), &[]),
            (format!("exists (select 1 {of} having count(*) = 0)"), &["10", "40"]),
            (format!("not exists (select 1 {of} having count(*) > 1)"), &["10", "20", "40"]),
            (format!("exists (select 1 {of} having max(w.a) > 2)"), &["30"]),
            (format!("0 in (select count(*) {of})"), &["10", "40"]),
            (format!("0 not in (select count(*) {of})"), &["20", "30"]),
            (format!("0 = any (select count(*) {of})"), &["10", "40"]),
            (format!("1 < all (select count(*) {of})"), &["30"]),
            (format!("2 in (select max(w.a) {of})"), &["20"]),
            (format!("2 not in (select max(w.a) {of})"), &["30"]),
            (format!("not (2 in (select max(w.a) {of}))"), &["30"]),
            (format!("2 in (select max(w.a) {of}) or b = 10"), &["10", "20"]),
            (format!("(2 in (select max(w.a) {of})) is null"), &["10", "40"]),
            (format!("0 in (select coalesce(max(w.a), 0) {of})"), &["10", "40"]),
            (format!("2 in (select count(*) {of} having count(*) > 1)"), &["30"]),
            (format!("2 <> all (select count(*) {of} having count(*) > 1)"), &["10", "20", "40"]),
            ("0 in (select count(*) from w where w.a > t.a) or b = 10".to_owned(), &["10", "40"]),
            (format!("exists (select w.a {of} order by 1 offset 1)"), &["30"]),
            (format!("not exists (select w.a {of} limit 3 offset 1)"), &["10", "20", "40"]),
            (format!("exists (select 1 {of} order by w.a offset 1)"), &["30"]),
            (format!("exists (select 1 {of} limit 0 offset 1)"), &[]),
            ("exists (select w.a from w where w.a > t.a offset 2)".to_owned(), &["10", "20"]),
            (format!("exists (select 1 from (select count(*) n {of}) s where n > 0)"), &["20", "30"]),
            (format!("0 in (select n from (select count(*) n {of}) s where n < 5)"), &["10", "40"]),
            (format!("(select max(n) from (select count(*) n {of}) s) = 0"), &["10", "40"]),
            (format!("(select count(*) from (select count(*) n {of}) s) = 1"), &all[..]),
            (format!("(select n from (select count(*) n {of} having count(*) > 1) s) = 2"), &["30"]),
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

    #[test]
    fn a_value_is_that_of_the_only_row() {
        assert_eq!(
            shown("(select u.a from u where u.a > t.a order by u.a limit 1)"),
            ["2", "3", "5", "NULL"]
        );
        assert_eq!(
            shown("(select u.a from u where u.a > t.a order by u.a desc limit 1 offset 1)"),
            ["3", "3", "NULL", "NULL"]
        );
        assert_eq!(shown("(select t.a)"), ["1", "2", "3", "NULL"]);
        assert_eq!(shown("(select u.a > 2 from u where u.a = t.a)"), ["NULL", "false", "true", "NULL"]);
        let several = "(select u.a from u where u.a > t.a)";
        assert_eq!(rows(&format!("select {several} from t where t.a = 3")), ["5"]);
        assert_eq!(
            rows(&format!("select case when t.a >= 3 then {several} end from t order by b")),
            ["NULL", "NULL", "5", "NULL"]
        );
        for query in
            [format!("select {several} from t"), "select (select w.a from w where w.a = t.a) from t".into()]
        {
            assert!(failed(&query).to_string().contains("more than one row"));
        }
    }

    #[test]
    fn groups_and_first_rows_are_of_one_row_around() {
        let groups = "select u.a / 2 k, count(*) n from u where u.a > t.a group by u.a / 2";
        assert_eq!(shown(&format!("(select count(*) from ({groups}) s)")), ["2", "2", "1", "0"]);
        assert_eq!(shown(&format!("2 in (select n from ({groups}) s)")), ["true", "false", "false", "false"]);
        let first = "select distinct on (u.a > 2) u.a y from u where u.a > t.a order by u.a > 2, u.a desc";
        assert_eq!(shown(&format!("(select sum(y) from ({first}) s)")), ["7", "5", "5", "NULL"]);
        assert_eq!(shown("(select count(*) from u where u.a > t.a group by t.a)"), ["3", "2", "1", "NULL"]);
        let around = "select t.b + count(*) n, t.a k, u.a from u where u.a > t.a group by t.b, u.a, t.a";
        assert_eq!(shown(&format!("(select sum(n + k) from ({around}) s)")), ["36", "46", "34", "NULL"]);
        let there = "exists (select u.a, t.b from u where u.a <> t.a group by u.a, t.b)";
        assert_eq!(rows(&format!("select b from t where {there} order by b")), ["10", "20", "30"]);
        let first =
            "select distinct on (t.a, u.a > 2) u.a y from u where u.a > t.a order by t.a, u.a > 2, u.a desc";
        assert_eq!(shown(&format!("(select sum(y) from ({first}) s)")), ["7", "5", "5", "NULL"]);
        let some = "select u.a from u where u.a > t.a order by u.a limit 2";
        assert_eq!(shown(&format!("(select sum(a) from ({some}) s)")), ["5", "8", "5", "NULL"]);
        assert_eq!(shown(&format!("3 in ({some})")), ["true", "true", "false", "false"]);
        assert_eq!(shown("(select max(v.x) from (values (t.a), (t.b - 10)) v(x))"), ["1", "10", "20", "30"]);
        let sets = "select u.a from u where u.a > t.a group by rollup (u.a)";
        assert!(refused(&format!("select b from t where exists ({sets})")).contains("ROLLUP"));
    }

    #[test]
    fn rows_depend_on_queries_further_out() {
        let within = "exists (select 1 from u v where v.a = t.a and v.a < u.a)";
        assert_eq!(
            rows(&format!("select b from t where exists (select 1 from u where {within}) order by b")),
            ["20", "30"]
        );
        assert_eq!(shown(&format!("(select count(*) from u where {within})")), ["0", "2", "1", "0"]);
        assert_eq!(
            shown("(select count(*) from u where u.a > (select min(v.a) from u v where v.a >= t.a))"),
            ["2", "2", "1", "0"]
        );
        assert_eq!(
            shown("(select sum((select count(*) from u v where v.a > t.a and v.a < u.a)) from u)"),
            ["3", "1", "0", "0"]
        );
        assert_eq!(
            shown("(select max(u.a) from u where exists (select 1 from w where w.a = t.a + 1))"),
            ["5", "5", "NULL", "NULL"]
        );
    }

    #[test]
    fn conditions_on_groups_read_their_rows_once() {
        let scans = |query: &str| plan(query).matches("TableScan:").count();
        let query = |conditions: usize| {
            let having: Vec<String> = (0..conditions).map(|at| format!("count(*) <> {}", 10 + at)).collect();
            let having = having.join(" and ");
            format!("select b from t where 0 not in (select max(w.a) from w where w.a = t.a having {having})")
        };
        assert_eq!(scans(&query(1)), scans(&query(8)));
        // Levels within each other.
        let nested = |levels: usize| {
            let inner = (0..levels).fold("select count(*) from w w0 where w0.a = 3".to_owned(), |inner, at| {
                let (own, below) = (format!("w{}", at + 1), format!("w{at}"));
                let inner = inner.replace(&format!("{below}.a = 3"), &format!("{below}.a = {own}.a"));
                format!("select count(*) from w {own} where 1 < any ({inner} having count(*) > 0) and {own}.a = 3")
            });
            scans(&inner)
        };
        let [one, two, three] = [1, 2, 3].map(nested);
        assert!(three - two <= 2 * (two - one), "{one} {two} {three}");
    }
}
