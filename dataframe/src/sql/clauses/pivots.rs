//! `PIVOT` and `UNPIVOT` of a table: columns out of rows, and rows out of columns.
//!
//! The parser knows both, and the library plans neither. A pivot is an aggregate with a filter for each
//! value, by all columns that it does not name. Its opposite is two lists, with a row for each of their
//! elements.

use crate::error::{Error, Result};
use crate::sql::names::by_name::check_by_name;
use crate::sql::names::plain_names::with_plain_names;
use crate::sql::plans::columns;
use crate::sql::values::moment_types::check_days;
use crate::sql::values::union_types::{of_all, of_all_sides};
use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result as EngineResult, UnnestOptions};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, ExprWithAlias, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    NullInclusion, PivotValueSource, TableFactor, TypedString, Value,
};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use std::collections::HashSet;
use std::sync::Arc;

/// The call with the columns by which a PIVOT groups. It stands where the parser has a clause that is
/// refused.
pub(in crate::sql) const GROUPS: &str = "__tharsis_groups";

/// The planner of these tables.
pub(in crate::sql) fn planner() -> Arc<dyn RelationPlanner> {
    Arc::new(Pivots)
}

#[derive(Debug)]
struct Pivots;

impl RelationPlanner for Pivots {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<RelationPlanning> {
        let (plan, alias) = match relation {
            TableFactor::Pivot {
                table,
                aggregate_functions,
                value_column,
                value_source,
                default_on_null,
                alias,
            } => {
                check_pivot(&value_column, &value_source)?;
                let rows = rows_of(*table, context)?;
                let groups = groups_of(default_on_null, &rows, context)?;
                let mut pivot = Pivot::new(&rows, value_column, context)?;
                pivot.add_aggregates(aggregate_functions, context)?;
                let made = pivot.made(value_source, context)?;
                let groups = groups.unwrap_or_else(|| {
                    columns(&rows).into_iter().filter(|column| !pivot.has(column)).collect()
                });
                (LogicalPlanBuilder::from(rows).aggregate(groups, made)?.build()?, alias)
            }
            TableFactor::Unpivot { table, value, name, columns, null_inclusion, alias } => {
                let SqlExpr::Identifier(value) = value else {
                    return Err(refused("UNPIVOT into several columns").into());
                };
                let rows = rows_of(*table, context)?;
                let labels = [name, value].map(|label| context.normalize_ident(label));
                let keeps_missing = matches!(null_inclusion, Some(NullInclusion::IncludeNulls));
                (unpivoted(rows, labels, columns, keeps_missing, context)?, alias)
            }
            other => return Ok(RelationPlanning::Original(Box::new(other))),
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

/// The rows of the table, whose unions have the types of all sides.
fn rows_of(table: TableFactor, context: &mut dyn RelationPlannerContext) -> EngineResult<LogicalPlan> {
    let rows = context.plan(table)?;
    check_by_name(&rows)?;
    with_plain_names(of_all_sides(rows)?)
}

fn refused(what: &str) -> Error {
    Error::NotImplemented(format!("{what} is not supported"))
}

fn check_pivot(columns: &[SqlExpr], values: &PivotValueSource) -> Result<()> {
    if columns.len() != 1 {
        return Err(refused("PIVOT by several columns"));
    }
    if !matches!(values, PivotValueSource::List(_)) {
        return Err(refused("PIVOT without its values (write IN ('a', 'b'))"));
    }
    Ok(())
}

/// The columns by which a statement groups, if it names them.
fn groups_of(
    written: Option<SqlExpr>,
    rows: &LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> EngineResult<Option<Vec<Expr>>> {
    let Some(written) = written else { return Ok(None) };
    let Some(keys) = arguments(written) else {
        return Err(refused("DEFAULT ON NULL of PIVOT (write coalesce)").into());
    };
    let mut groups = Vec::new();
    for key in keys {
        let group = context.sql_to_expr(key, rows.schema())?;
        if !matches!(group, Expr::Column(_)) {
            return Err(Error::Type("GROUP BY of PIVOT takes columns".to_owned()).into());
        }
        groups.push(group);
    }
    Ok(Some(groups))
}

/// The arguments of the call with the columns by which a statement groups.
fn arguments(call: SqlExpr) -> Option<Vec<SqlExpr>> {
    let SqlExpr::Function(Function { name, args: FunctionArguments::List(list), .. }) = call else {
        return None;
    };
    let keys = list.args.into_iter().map(|key| match key {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(key)) => Some(key),
        _ => None,
    });
    if name.to_string() == GROUPS { keys.collect() } else { None }
}

/// A pivot whose parts are planned.
struct Pivot {
    schema: Arc<DFSchema>,
    key: Expr,
    aggregates: Vec<Aggregate>,
    /// The columns that it names, by which it does not group.
    named: HashSet<Column>,
}

/// An aggregate, and what stands behind the values in the names of its columns.
struct Aggregate {
    call: AggregateFunction,
    label: Option<String>,
}

impl Pivot {
    fn new(
        rows: &LogicalPlan,
        key: Vec<SqlExpr>,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<Pivot> {
        let schema = Arc::clone(rows.schema());
        let Some(key) = key.into_iter().next() else { return Err(refused("PIVOT by no column").into()) };
        let key = context.sql_to_expr(key, &schema)?;
        let named = key.column_refs().into_iter().cloned().collect();
        Ok(Pivot { schema, key, aggregates: Vec::new(), named })
    }

    fn add_aggregates(
        &mut self,
        aggregates: Vec<ExprWithAlias>,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<()> {
        let is_alone = aggregates.len() == 1;
        for ExprWithAlias { expr, alias } in aggregates {
            let written = expr.to_string();
            let planned = context.sql_to_expr(expr, &self.schema)?.unalias_nested().data;
            self.named.extend(planned.column_refs().into_iter().cloned());
            let Expr::AggregateFunction(call) = planned else {
                let reason = format!("PIVOT takes aggregates, such as sum(x), and {written} is none");
                return Err(Error::Type(reason).into());
            };
            let label = match alias {
                Some(alias) => Some(context.normalize_ident(alias)),
                None => (!is_alone).then_some(written),
            };
            self.aggregates.push(Aggregate { call, label });
        }
        Ok(())
    }

    fn has(&self, column: &Expr) -> bool {
        matches!(column, Expr::Column(column) if self.named.contains(column))
    }

    /// The aggregates of each value, with the names of their columns.
    fn made(
        &self,
        values: PivotValueSource,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<Vec<Expr>> {
        let PivotValueSource::List(values) = values else { return Ok(Vec::new()) };
        let mut made = Vec::new();
        for ExprWithAlias { expr, alias } in values {
            let label = match alias {
                Some(alias) => context.normalize_ident(alias),
                None => label_of(&expr),
            };
            let value = context.sql_to_expr(expr, &self.schema)?;
            let is_missing = matches!(&value, Expr::Literal(missing, _) if missing.is_null());
            if !value.column_refs().is_empty() {
                let reason =
                    format!("IN of PIVOT has values, and {label} is a column: write it in single quotes");
                return Err(Error::Value(reason).into());
            }
            let is_it = if is_missing { self.key.clone().is_null() } else { self.key.clone().eq(value) };
            made.extend(self.aggregates.iter().map(|aggregate| aggregate.of(&is_it, &label)));
        }
        Ok(made)
    }
}

impl Aggregate {
    /// The aggregate of the rows that have a value.
    fn of(&self, is_it: &Expr, value: &str) -> Expr {
        let mut call = self.call.clone();
        let filter = match call.params.filter.take() {
            Some(filter) => filter.and(is_it.clone()),
            None => is_it.clone(),
        };
        call.params.filter = Some(Box::new(filter));
        let made = Expr::AggregateFunction(call);
        match &self.label {
            Some(label) => made.alias(format!("{value}_{label}")),
            None => made.alias(value),
        }
    }
}

/// The name of the column of a value: its text, without the type.
fn label_of(value: &SqlExpr) -> String {
    match value {
        SqlExpr::Value(value) | SqlExpr::TypedString(TypedString { value, .. }) => match &value.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        SqlExpr::Cast { expr, .. } | SqlExpr::Nested(expr) => label_of(expr),
        other => other.to_string(),
    }
}

/// A row for each of the columns: its name, and its value.
fn unpivoted(
    rows: LogicalPlan,
    [name, value]: [String; 2],
    named: Vec<ExprWithAlias>,
    keeps_missing: bool,
    context: &mut dyn RelationPlannerContext,
) -> EngineResult<LogicalPlan> {
    let schema = Arc::clone(rows.schema());
    let (mut labels, mut values) = (Vec::new(), Vec::new());
    for ExprWithAlias { expr, alias } in named {
        let label = alias.map(|Ident { value, .. }| value);
        let Expr::Column(column) = context.sql_to_expr(expr, &schema)? else {
            return Err(Error::Type("UNPIVOT takes columns".to_owned()).into());
        };
        labels.push(lit(label.unwrap_or_else(|| column.name.clone())));
        values.push(Expr::Column(column));
    }
    let types =
        values.iter().map(|value| value.get_type(&schema)).collect::<EngineResult<Vec<DataType>>>()?;
    check_days(types.iter())?;
    let Some(dtype) = of_all(&types.iter().collect::<Vec<_>>()) else {
        return Err(Error::Type("the columns of UNPIVOT have no type in common: cast them".to_owned()).into());
    };
    let mut shown: Vec<Expr> = columns(&rows).into_iter().filter(|own| !values.contains(own)).collect();
    shown.push(make_array(labels).alias(&name));
    shown
        .push(make_array(values.into_iter().map(|value| cast(value, dtype.clone())).collect()).alias(&value));
    let lists = [&name, &value].map(Column::new_unqualified).to_vec();
    let plan = LogicalPlanBuilder::from(rows).project(shown)?;
    let plan = plan.unnest_columns_with_options(lists, UnnestOptions::new())?;
    if keeps_missing {
        return plan.build();
    }
    plan.filter(Expr::Column(Column::new_unqualified(&value)).is_not_null())?.build()
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{answer, rows_in, session_of};

    fn session() -> SqlSession {
        session_of(&[
            "create table sales as select * from (values ('Oslo', 2023, 3, 1.5), ('Oslo', 2024, 4, 2.5), \
             ('Rome', 2024, 5, 3.5), ('Rome', 2024, 1, 0.5), ('Bern', null, 7, 4.0)) v(city, year, sold, paid)",
            "create table wide as select * from (values ('Oslo', 3, 4.5), ('Rome', null, 6.0)) v(city, a, b)",
        ])
    }

    #[test]
    fn a_pivot_has_a_column_for_each_value() {
        let mut session = session();
        let few = "(select city, year, sold from sales)";
        for (query, expected) in [
            (format!("select * from {few} pivot (sum(sold) for year in (2023, 2024)) order by city"),
             "Bern NULL NULL, Oslo 3 4, Rome NULL 6"),
            (format!("select city, y24 from {few} pivot (count(sold) for year in (2024 as y24, null as other)) p order by p.city"),
             "Bern 0, Oslo 1, Rome 2"),
            (format!("select other from {few} pivot (max(sold) for year in (null as other)) order by city"), "7, NULL, NULL"),
            (format!("select \"2024_sum(sold)\", \"2024_most\" from {few} pivot (sum(sold), max(sold) as most for year in (2024)) \
              order by city"),
             "NULL NULL, 4 4, 6 5"),
            (format!("select * from {few} pivot (sum(sold) filter (where sold > 1) for year in (2024)) order by city"),
             "Bern NULL, Oslo 4, Rome 5"),
            ("select * from (select year, sold from sales) pivot (sum(sold) for year in (2023, 2024))".to_owned(), "3 10"),
            ("select * from (select city, sold from sales union all select 'Bern', 0.5) pivot (sum(sold) for city in ('Bern'))"
                .to_owned(), "7.5"),
            (format!("select p.\"Oslo\", w.a from (select city, sold from {few} f) pivot (sum(sold) for city in ('Oslo')) p, wide w \
              where w.city = 'Oslo'"), "7 3"),
        ] {
            assert_eq!(rows_in(&mut session, &query).join(", "), expected, "{query}");
        }
        let query =
            format!("select * from {few} pivot (sum(sold) for year in (2023, 2024 as later)) order by city");
        assert_eq!(answer(&mut session, &query).0, ["city", "2023", "later"]);
        let query = "select * from (select date '2024-01-02' as d, 3 as n) \
                     pivot (sum(n) for d in (date '2024-01-02', '2024-01-03'::date, (null)))";
        let (names, values) = answer(&mut session, query);
        assert_eq!(names, ["2024-01-02", "2024-01-03", "NULL"]);
        assert_eq!(values, ["3", "NULL", "NULL"]);
    }

    #[test]
    fn an_unpivot_has_a_row_for_each_column() {
        let mut session = session();
        for (query, expected) in [
            (
                "select * from wide unpivot (v for k in (a, b)) order by city, k",
                "Oslo a 3, Oslo b 4.5, Rome b 6",
            ),
            (
                "select * from wide unpivot include nulls (v for k in (a, b)) order by city, k",
                "Oslo a 3, Oslo b 4.5, Rome a NULL, Rome b 6",
            ),
            (
                "select k, sum(v) from wide unpivot (v for k in (a as first, b as second)) u group by k order by u.k",
                "first 3, second 10.5",
            ),
            ("select count(*) from wide unpivot (v for k in (city))", "2"),
        ] {
            assert_eq!(rows_in(&mut session, query).join(", "), expected, "{query}");
        }
    }

    #[test]
    fn what_is_no_pivot_is_refused() {
        let mut session = session();
        for (query, class, reason) in [
            (
                "select * from sales pivot (sum(sold) for (city, year) in (('Oslo', 2023)))",
                "NotImplemented",
                "several columns",
            ),
            ("select * from sales pivot (sum(sold) for city in (any))", "NotImplemented", "IN ('a', 'b')"),
            (
                "select * from sales pivot (sum(sold) for city in (select 'Oslo'))",
                "NotImplemented",
                "IN ('a', 'b')",
            ),
            ("select * from sales pivot (abs(sold) for city in ('Oslo'))", "TypeError", "abs(sold) is none"),
            ("select * from sales pivot (sum(sold) for city in (city))", "ValueError", "city is a column"),
            ("select * from sales pivot (sum(nope) for city in ('Oslo'))", "KeyError", "nope"),
            (
                "select * from (select 5 as n, date '2024-01-02' as d) unpivot (v for k in (n, d))",
                "ValueError",
                "beside days",
            ),
            ("select * from sales unpivot (v for k in (sold, city, nope))", "KeyError", "nope"),
        ] {
            let error = session.run(query).expect_err(query);
            assert_eq!(error.class(), class, "{query}: {error}");
            assert!(error.to_string().contains(reason), "{query}: {error}");
        }
    }
}
