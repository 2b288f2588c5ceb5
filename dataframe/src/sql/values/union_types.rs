//! Types of the columns of `UNION`, `INTERSECT` and `EXCEPT`.
//!
//! The library gives a union the types of its first side, and those of all its sides behind the steps of this
//! crate. These steps ask for types: whether a sum is one of whole numbers, and whether a time has a zone. So
//! a union has the types of its rows before them. `INTERSECT` and `EXCEPT` keep the types of their first side
//! in the library; here they have those of a union of both sides.

use super::moment_types::check_days;
use super::sides_with_moments::{below_distinct, is_set_operation, joined, types_of, united};
use super::union_literals::with_literals;
use super::union_names::with_names;
use super::untyped_sides::{check_parameters, parameter};
use crate::error::Result;
use crate::sql::plans::with_casts;
use crate::value::is_text;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeContainer, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as EngineResult};
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Union, cast};
use std::sync::Arc;

/// The plan whose set operations have the types that the library gives the rows of all sides of a union.
pub(in crate::sql) fn of_all_sides(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_several = false;
    plan.apply_with_subqueries(|node| {
        has_several |= match node {
            LogicalPlan::Union(_) => true,
            LogicalPlan::Join(join) => is_set_operation(join),
            _ => false,
        };
        Ok(if has_several { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !has_several {
        return Ok(plan);
    }
    let typed = typed(plan, false)?;
    if !typed.transformed {
        return Ok(typed.data);
    }
    let known = typed.data.transform_down_with_subqueries(with_rows_around)?;
    // The values of subqueries may have other types, and unions of them.
    Ok(if known.transformed { self::typed(known.data, true)?.data } else { known.data })
}

/// The plan whose unions have these types. Operators above a union have the types that it had when they were
/// planned.
fn typed(plan: LogicalPlan, mut has_other_types: bool) -> EngineResult<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(|node| {
        let node = if has_other_types { node.recompute_schema()? } else { node };
        let before = Arc::clone(node.schema());
        // Days begin on the clock of the moments beside them, which the library does not know.
        let changed = match node {
            LogicalPlan::Union(union) => {
                united(union)?.transform_data(with_types)?.transform_data(with_names)?
            }
            LogicalPlan::Join(join) if is_set_operation(&join) => {
                joined(join)?.transform_data(with_left_types)?
            }
            node => return Ok(Transformed::new_transformed(node, has_other_types)),
        };
        has_other_types |= changed.data.schema().inner() != before.inner();
        Ok(Transformed::new_transformed(changed.data, changed.transformed || has_other_types))
    })
}

/// The operator, whose subqueries know the types of the rows around them. Those within a subquery come later,
/// and the rows next to them hide others.
fn with_rows_around(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    let around = merge_schema(&node.inputs());
    let asked = node.map_subqueries(|rows| with_types_around(rows, &around))?;
    asked.transform_data(|node| match node {
        // A lateral query reads the rows at its left.
        LogicalPlan::Join(mut join) => {
            let right = with_types_around(Arc::unwrap_or_clone(join.right), join.left.schema())?;
            join.right = Arc::new(right.data);
            Ok(Transformed::new_transformed(LogicalPlan::Join(join), right.transformed))
        }
        node => Ok(Transformed::no(node)),
    })
}

/// The rows of a subquery, which read columns of the rows around by their types.
fn with_types_around(rows: LogicalPlan, around: &DFSchema) -> EngineResult<Transformed<LogicalPlan>> {
    rows.transform_up_with_subqueries(|node| {
        let changed = node.map_expressions(|expr| read_around(expr, around))?;
        changed.transform_data(|node| match node {
            LogicalPlan::Subquery(mut rows) => {
                let read = std::mem::take(&mut rows.outer_ref_columns);
                let read = read.map_elements(|column| read_around(column, around))?;
                rows.outer_ref_columns = read.data;
                Ok(Transformed::new_transformed(LogicalPlan::Subquery(rows), read.transformed))
            }
            node => Ok(Transformed::no(node)),
        })
    })
}

/// The expression, whose columns of the rows around have their types.
fn read_around(expr: Expr, around: &DFSchema) -> EngineResult<Transformed<Expr>> {
    expr.transform_up(|part| {
        let Expr::OuterReferenceColumn(field, column) = part else { return Ok(Transformed::no(part)) };
        let known = around.maybe_index_of_column(&column).map(|at| around.field(at).data_type().clone());
        Ok(match known.filter(|known| known != field.data_type()) {
            Some(dtype) => {
                let field = Arc::new(field.as_ref().clone().with_data_type(dtype));
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
        })
    })
}

/// A union with the types of all its sides. The library casts the sides to them, but floats to decimals.
fn with_types(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(Union { mut inputs, schema }) = node else { return Ok(Transformed::no(node)) };
    let sides = inputs.iter().map(|side| known_types(side));
    let mut sides = sides.collect::<EngineResult<Vec<Vec<Option<DataType>>>>>()?;
    check_parameters(&inputs, &sides)?;
    let mut is_new = false;
    for column in 0..schema.fields().len() {
        check_days(sides.iter().filter_map(|side| side.get(column)?.as_ref()))?;
        is_new |= with_literals(column, &mut inputs, &mut sides)?;
    }
    let meant = (0..schema.fields().len()).map(|column| {
        let types = sides.iter().map(|side| side.get(column)?.as_ref());
        of_all(&types.collect::<Option<Vec<&DataType>>>()?)
    });
    let meant: Vec<Option<DataType>> = meant.collect();
    let of_others = (0..schema.fields().len()).map(|column| {
        let types = sides.iter().filter_map(|side| side.get(column)?.as_ref());
        of_all(&types.collect::<Vec<&DataType>>())
    });
    let of_others: Vec<Option<DataType>> = of_others.collect();
    let mut with_casts = Vec::new();
    for (side, types) in inputs.into_iter().zip(sides) {
        let own = types_of(&side);
        let to = types.into_iter().zip(own).zip(meant.iter().zip(&of_others)).enumerate();
        let to = to.map(|(column, ((dtype, own), (meant, of_others)))| {
            let Some(dtype) = dtype else {
                // The library finds no type for a parameter that stands alone.
                return of_others.clone().filter(|_| parameter(&side, column).is_some());
            };
            let meant = meant.as_ref()?;
            let is_other = own.is_some_and(|own| own != dtype);
            if dtype.is_decimal() && meant.is_floating() {
                Some(meant.clone())
            } else {
                Some(dtype).filter(|_| is_other)
            }
        });
        let to: Vec<Option<DataType>> = to.collect();
        is_new |= to.iter().any(Option::is_some);
        with_casts.push(cast_to(side, &to)?);
    }
    let fields = schema.iter().zip(meant).map(|((table, field), meant)| {
        let field = match meant.filter(|meant| !meant.equals_datatype(field.data_type())) {
            Some(dtype) => {
                is_new = true;
                Arc::new(field.as_ref().clone().with_data_type(dtype))
            }
            None => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let fields = fields.collect();
    let schema = Arc::new(DFSchema::new_with_metadata(fields, schema.metadata().clone())?);
    let union = LogicalPlan::Union(Union { inputs: with_casts, schema });
    Ok(Transformed::new_transformed(union, is_new))
}

/// `INTERSECT` or `EXCEPT`, whose rows are those of the left side, with the types of both sides.
fn with_left_types(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = node else { return Ok(Transformed::no(node)) };
    let types = join.on.iter().map(|keys| types_of_both(keys, &join));
    let types: Vec<[Option<DataType>; 2]> = types.collect::<EngineResult<_>>()?;
    if types.iter().flatten().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let (left, right): (Vec<_>, Vec<_>) = types.into_iter().map(|[left, right]| (left, right)).unzip();
    join.left = below_distinct(join.left, |rows| cast_to(rows, &left))?;
    // Rows that are counted are equal as values of these types.
    join.right = cast_to(join.right, &right)?;
    LogicalPlan::Join(join).recompute_schema().map(Transformed::yes)
}

/// The types that two columns are cast to; `None` for one that stays. The library refuses texts that are no
/// numbers beside numbers.
fn types_of_both((left, right): &(Expr, Expr), join: &Join) -> EngineResult<[Option<DataType>; 2]> {
    let types = (left.get_type(join.left.schema()), right.get_type(join.right.schema()));
    let (Ok(left), Ok(right)) = types else { return Ok([None, None]) };
    if left.is_null() && has_parameters(&join.left)? || right.is_null() && has_parameters(&join.right)? {
        return Ok([None, None]);
    }
    check_days([&left, &right].into_iter())?;
    let both = match &left {
        // Texts of one moment, or of one number, are equal.
        DataType::Timestamp(_, Some(zone)) if is_text(&right) => {
            return Ok([None, Some(DataType::Timestamp(TimeUnit::Nanosecond, Some(Arc::clone(zone))))]);
        }
        number if number.is_numeric() && is_text(&right) => return Ok([None, Some(number.clone())]),
        DataType::Timestamp(_, Some(_)) => None,
        left => of_all(&[left, &right]),
    };
    let is_known = |meant: &DataType| meant.equals_datatype(&left) && meant.equals_datatype(&right);
    let both = both.filter(|meant| !is_text(meant) && !is_known(meant));
    Ok([both.clone(), both])
}

/// The rows with casts of some columns.
fn cast_to(rows: Arc<LogicalPlan>, types: &[Option<DataType>]) -> EngineResult<Arc<LogicalPlan>> {
    with_casts(rows, types, cast)
}

/// The type that the library gives a column whose sides have these types; `None` if it refuses them. A
/// decimal beside a float is a float, as in DuckDB and PostgreSQL: the library's decimals have no room for
/// all floats.
pub(in crate::sql) fn of_all(types: &[&DataType]) -> Option<DataType> {
    let has_floats = types.iter().any(|dtype| dtype.is_floating());
    let types = types.iter().map(|dtype| {
        if has_floats && dtype.is_decimal() { DataType::Float64 } else { DataType::clone(dtype) }
    });
    let types: Vec<DataType> = types.collect();
    let (first, others) = types.split_first()?;
    let meet = |known: DataType, side: &DataType| type_union_coercion(&known, side);
    let meant = others.iter().try_fold(first.clone(), meet)?;
    // It asks all sides again, beginning with the type of the union.
    let again = types.iter().try_fold(meant.clone(), meet)?;
    (again == meant).then_some(meant)
}

/// The types of a side; `None` for values of parameters, which have no type before they have a value. Then
/// the plan comes here again.
fn known_types(side: &LogicalPlan) -> EngineResult<Vec<Option<DataType>>> {
    let types = types_of(side);
    if !types.contains(&Some(DataType::Null)) || !has_parameters(side)? {
        return Ok(types);
    }
    Ok(types.into_iter().map(|dtype| dtype.filter(|dtype| !dtype.is_null())).collect())
}

fn has_parameters(rows: &LogicalPlan) -> EngineResult<bool> {
    let mut found = false;
    rows.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(matches!(part, Expr::Placeholder(_))))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::of_all_sides;
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{cells, rows_in, session_of};
    use arrow::datatypes::DataType;
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

    fn sales() -> SqlSession {
        session_of(&["create table sales (price double, cost decimal(10, 2)) as values (2.5, 2.5)"])
    }

    #[test]
    fn columns_of_a_union_have_the_types_of_all_sides() {
        let mut session = sales();
        for union in [
            "select 0 as x union all select price from sales",
            "select price as x from sales union all select 0",
            "select 0 as x union all select cost from sales",
            "select cost as x from sales union all select 0",
            "select 0 as x union select price from sales",
            "select 0 as x union by name select price as x from sales",
            "select 0 as x union by name select cost as x from sales",
            "select null as x union all select 0 union all select price from sales",
            "select 0 as x union all select null union all select cost from sales",
            "select 0 as x union all (select 0 union all select price from sales)",
            "(select 0 as x union all select 0) union all select cost from sales",
            "select 0 as x intersect select 0.0 union all select price from sales",
        ] {
            for value in [
                "sum(x) = 2.5",
                "sum(distinct x) = 2.5",
                "max(x + 1) = 3.5",
                "max(x * 2) = 5",
                "min(-x) = -2.5",
                "min(x - 1) = -1",
            ] {
                let around = format!("select {value} from ({union}) s");
                assert_eq!(cells(&mut session, &around), [["true"]], "{around}");
            }
            for query in [
                "select distinct total = 2.5 from (select sum(x) over () as total from (@) s) w",
                "with s as (@), w as (select x from s) select sum(x) = 2.5 from w",
                "with recursive s as (@) select sum(x) = 2.5 from s",
                "select sum(x) = 2.5 from (select * from (@) s) w",
                "select sum(x) = 2.5 from ((@)) s",
                "select sum(x) = 2.5 from ((@) s)",
                "select sum(s.x) = 2.5 from sales join (@) s on true",
                "select sum(s.x) = 2.5 from sales, lateral (@) s",
                "select (select sum(x) from (@) s) = 2.5",
            ] {
                let query = query.replace('@', union);
                assert_eq!(cells(&mut session, &query), [["true"]], "{query}");
            }
        }
    }

    #[test]
    fn sides_of_other_types_meet_in_one_type() {
        let mut session = sales();
        for (one, other, dtype, condition) in [
            ("1::smallint", "5000000000", "Int64", "sum(x) = 5000000001"),
            ("arrow_cast(1, 'UInt64')", "-2", "Decimal128(20, 0)", "sum(x) = -1 and min(x + 1) = -1"),
            ("arrow_cast(1, 'UInt64')", "2.5", "Float64", "sum(x) = 3.5"),
            ("1::decimal(10, 2)", "2.125::decimal(20, 3)", "Decimal128(20, 3)", "sum(x) = 3.125"),
            ("1::decimal(10, 2)", "1e20::double", "Float64", "max(x) = 1e20::double and min(x) = 1"),
            ("1::decimal(10, 2)", "1e-20::double", "Float64", "min(x) = 1e-20::double and max(x) = 1"),
            (
                "date '2024-01-01'",
                "timestamp '2024-01-01 12:00:00'",
                "Timestamp(ns)",
                "max(x) - min(x) = interval '12 hours'",
            ),
            ("1::decimal(10, 2)", "123456.789", "Decimal128(11, 3)", "max(x) = 123456.789"),
            ("1::decimal(10, 2)", "1e300", "Float64", "max(x) = 1e300 and min(x) = 1"),
            ("null", "2", "Int64", "sum(x) = 2 and min(x / 4) = 0"),
            ("null", "2.5", "Float64", "sum(x) = 2.5 and avg(x) = 2.5"),
            ("null", "2.5::decimal(10, 2)", "Decimal128(10, 2)", "sum(x) = 2.5"),
            ("null", "date '2024-03-31'", "Date32", "max(extract(year from x)) = 2024"),
            ("null", "'b'", "Utf8", "max(upper(x) || 'c') = 'Bc'"),
            ("null", "true", "Boolean", "bool_or(x)"),
            ("1", "'b'", "Utf8", "max(x) = 'b' and min(x) = '1'"),
        ] {
            for (first, second) in [(one, other), (other, one)] {
                let query = format!(
                    "select min(arrow_typeof(x)) = '{dtype}' and {condition}
                     from (select {first} as x union all select {second}) s"
                );
                assert_eq!(cells(&mut session, &query), [["true"]], "{query}");
            }
        }
        for (one, other, value, class) in [
            ("1", "'b'", "sum(x)", "TypeError"),
            ("true", "1", "count(x)", "ValueError"),
            ("interval '1 day'", "1", "count(x)", "ValueError"),
            ("date '2024-01-01'", "1", "count(x)", "ValueError"),
        ] {
            for (first, second) in [(one, other), (other, one)] {
                let query = format!("select {value} from (select {first} as x union all select {second}) s");
                let error = session.run(&query).expect_err(&query);
                assert_eq!(error.class(), class, "{query}: {error}");
                assert!(!error.to_string().contains("tharsis_"), "{query}: {error}");
            }
        }
        for operator in ["intersect", "except"] {
            let query = format!("select 5 as x {operator} select date '2024-01-01'");
            assert_eq!(session.run(&query).expect_err(&query).class(), "ValueError", "{query}");
        }
    }

    #[test]
    fn rows_of_intersect_and_except_have_the_types_of_both_sides() {
        let mut session = sales();
        for (rows, dtype, condition) in [
            ("select 1 as x intersect select 1.0", "Float64", "sum(x / 2) = 0.5"),
            ("select 1.0 as x intersect select 1", "Float64", "sum(x / 2) = 0.5"),
            ("select 1 as x intersect all select 1.0", "Float64", "sum(x / 2) = 0.5"),
            ("select 1 as x except select 2.5", "Float64", "sum(x / 2) = 0.5"),
            ("select 1 as x except all select 2.5", "Float64", "sum(x / 2) = 0.5"),
            ("select 1 as x except select cost from sales", "Decimal128(22, 2)", "sum(x / 2) = 0.5"),
            ("select 1::smallint as x except select 5000000000", "Int64", "sum(x * 5000000000) = 5000000000"),
            ("select 2.5::decimal(10, 2) as x intersect select price from sales", "Float64", "sum(x) = 2.5"),
            ("select null as x except select 1", "Int64", "count(*) = 1 and sum(x) is null"),
            (
                "select column1 as x from (values (9007199254740993), (9007199254740992)) v
                 intersect select 9007199254740992.0",
                "Float64",
                "count(*) = 1",
            ),
            (
                "select column1 as x from (values (9007199254740992.0), (9007199254740992.0)) v
                 intersect all select column1 from (values (9007199254740993), (9007199254740992)) w",
                "Float64",
                "count(*) = 2",
            ),
            ("select 'a' as x except select 'b'", "Utf8", "max(x || 'c') = 'ac'"),
        ] {
            let query = format!("select min(arrow_typeof(x)) = '{dtype}' and {condition} from ({rows}) s");
            assert_eq!(cells(&mut session, &query), [["true"]], "{query}");
        }
    }

    #[test]
    fn columns_of_one_name_are_refused_by_name_in_subqueries_too() {
        for from in ["(@) s", "sales, lateral (@) s", "sales cross join lateral (select * from (@) s) l"] {
            let union = "select 1 as a, 2 as a union by name select 1.5 as a";
            let query = format!("select * from {from}").replace('@', union);
            let error = sales().run(&query).expect_err("several columns of one name");
            assert!(error.to_string().contains("several columns \"a\" in UNION BY NAME"), "{query}: {error}");
        }
    }

    #[test]
    fn operators_above_a_union_know_its_types() {
        let mut session = sales();
        for (query, expected) in [
            (
                "select sum(n) = 2 from (select 1 as n union all select row_number() over () from sales) s",
                "true",
            ),
            ("select count(x / y) from (select 0 as x, 0 as y union all select price, 1 from sales) s", "1"),
            (
                "with recursive r as (select 1 as n union all select n + 1 from r where n < 3)
                 select sum(x) from (select n as x from r union all select 0.5) s",
                "6.5",
            ),
            ("select (select sum(x) from (select 1 as x union all select 2.5) s)", "3.5"),
            ("select sum(x) from (select null as x |> union all (select 2.5)) s", "2.5"),
            ("select null as x |> union all (select 2.5) |> aggregate sum(x) as s", "2.5"),
            (
                "select 1 as x |> union all (select 2.5) |> where x < 2 |> union all (select 4) |> aggregate sum(x) as s",
                "5",
            ),
            ("select sum(y) from (select x + 1 as y from (select 1 as x union all select 2.5) s) w", "5.5"),
        ] {
            assert_eq!(rows_in(&mut session, query), [expected], "{query}");
        }
        let whole = session.run("select sum(x) from (select 9223372036854775807 as x union all select 1) s");
        assert_eq!(whole.expect_err("a sum without room").class(), "OverflowError");
        let missing =
            "select sum(x) from (select null as x union all select 9223372036854775807 union all select 1) s";
        assert_eq!(session.run(missing).expect_err("a sum without room").class(), "OverflowError");
    }

    #[test]
    fn subqueries_know_the_types_of_a_union_around_them() {
        let mut session = sales();
        for side in ["price", "cost"] {
            for query in [
                "select count(*) from s where (select count(*) from sales where price >= s.x + 1) = 0",
                "select count(*) from s where exists (select 1 from sales where price < s.x * 2)",
                "select count(*) from s where x in (select price from sales where price > s.x - 1)",
                "select count(*) from s where (select sum(s.x + price - price) from sales) = 2.5",
                "select count(*) from s, lateral (select s.x + u.price as y from sales u) l where y = 5",
            ] {
                let query = format!("with s as (select 0 as x union all select {side} from sales) {query}");
                assert_eq!(rows_in(&mut session, &query), ["1"], "{query}");
            }
        }
        // A value that is no number is missing.
        let query = "with s as (select 0 as x union all select price from sales)
                     select count(*) from s where exists (select 1 from sales where s.x / (s.x - s.x) is null)";
        assert_eq!(rows_in(&mut session, query), ["1"]);
    }

    #[test]
    fn unions_of_views_and_of_prepared_statements_have_the_types_of_all_sides() {
        let mut session = sales();
        for statement in [
            "create view v as select sum(x) as total from (select 0 as x union all select price from sales) s",
            "create view both as select 0 as x union all select price from sales",
            "prepare p(double) as select sum(x) from (select 1 as x union all select $1) s",
            "prepare q as select sum(x) from (select 1 as x union all select price from sales where 0 < $1) s",
        ] {
            cells(&mut session, statement);
        }
        for (query, expected) in [
            ("select total from v", "2.5"),
            ("select sum(x) from both", "2.5"),
            ("execute p(2.5)", "3.5"),
            ("execute q(1)", "3.5"),
        ] {
            assert_eq!(rows_in(&mut session, query), [expected], "{query}");
        }
    }

    #[test]
    fn rows_of_one_moment_are_counted_as_one() {
        let moment = "arrow_cast('2024-03-31T01:00:00Z', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')";
        let mut session = session_of(&[
            &format!("create table t as select {moment} as ts, 1 as n from (values (1), (2)) v"),
            "create table u (s text, one text) as values ('2024-03-31 3:00', '1'), ('2024-03-31 03:00:00', '01')",
            "create table n (n timestamp) as values ('2024-03-31 02:10:00'), ('2024-03-31 02:40:00')",
        ]);
        for (query, expected) in [
            ("select ts from t intersect all select s from u", "2"),
            ("select ts from t except all select s from u", "0"),
            ("select s from u intersect all select ts from t", "2"),
            ("select n from t intersect all select one from u", "2"),
            // The clock leaves these readings out.
            ("select n from n intersect select ts from t", "1"),
            ("select n from n except select ts + interval '1 hour' from t", "1"),
        ] {
            assert_eq!(
                rows_in(&mut session, &format!("select count(*) from ({query}) x")),
                [expected],
                "{query}"
            );
        }
    }

    #[test]
    fn times_of_a_union_have_the_zone_of_its_moments() {
        let of =
            |text: &str| format!("arrow_cast('{text}', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')");
        let mut session = session_of(&[&format!(
            "create table t as select {} as ts, timestamp '2024-03-31 00:30:00' as n, '2024-03-31 00:30:00' as s",
            of("2024-03-30T23:30:00Z")
        )]);
        for union in [
            "select n as x from t union all select ts from t",
            "select ts as x from t union all select n from t",
            "select s as x from t union all select ts from t",
            "select ts as x from t union all select s from t",
            "select null as x union all select n from t union all select ts from t",
            "select n as x from t union all (select null union all select ts from t)",
        ] {
            for condition in [
                "x::timestamp = timestamp '2024-03-31 00:30:00'",
                "x::date = date '2024-03-31'",
                "x >= date '2024-03-31'",
                "x < date '2024-04-01' and x > date '2024-03-31'",
                "coalesce(x, date '2000-01-01') > date '2024-03-31'",
                "x = timestamp '2024-03-31 00:30:00'",
            ] {
                let query = format!("select count(*) from ({union}) s where {condition}");
                assert_eq!(cells(&mut session, &query), [["2"]], "{query}");
            }
        }
    }

    #[test]
    fn rows_of_a_union_are_inserted_with_the_types_of_the_table() {
        let mut session = session_of(&["create table n (a bigint, b double)"]);
        for statement in [
            "insert into n select 1, 2 union all select 2.0, 2.5",
            "insert into n (b, a) select 3, 3 union all select 3.5, 4.0",
        ] {
            cells(&mut session, statement);
        }
        let rows = rows_in(&mut session, "select a, (b * 2)::bigint from n order by a");
        assert_eq!(rows, ["1 4", "2 5", "3 6", "4 7"]);
        cells(
            &mut session,
            "update n set a = (select 8 as x union all select 9.5 order by 1 limit 1) where a < 3",
        );
        cells(&mut session, "insert into n values (5, 4)");
        assert_eq!(
            rows_in(&mut session, "select a, (b * 2)::bigint from n order by a, b"),
            ["3 6", "4 7", "5 8", "8 4", "8 5"]
        );
    }

    fn union_of(values: [ScalarValue; 3]) -> LogicalPlan {
        let side = |value: ScalarValue| {
            let value: Expr = lit(value);
            LogicalPlanBuilder::empty(true)
                .project([value.alias("x")])
                .expect("a column")
                .build()
                .expect("a side")
        };
        let [first, second, third] = values.map(side);
        let union = LogicalPlanBuilder::from(first).union(second).expect("two sides");
        union.union(third).expect("three sides").build().expect("a union")
    }

    #[test]
    fn a_union_of_equal_types_keeps_its_plan() {
        let same = union_of([1_i64, 2, 3].map(ScalarValue::from));
        assert_eq!(of_all_sides(same.clone()).expect("a plan"), same);
        let other = union_of([ScalarValue::from(1_i64), ScalarValue::Null, ScalarValue::from(2.5)]);
        let typed = of_all_sides(other).expect("a plan");
        assert_eq!(typed.schema().field(0).data_type(), &DataType::Float64);
        assert_eq!(of_all_sides(typed.clone()).expect("a plan"), typed);
    }
}
