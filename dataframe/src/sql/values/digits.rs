//! Decimals that are rounded to a number of digits.
//!
//! The type of `round(x, 1)` has one digit behind the point, unless the number is no literal. The library's
//! literals are of 64 bits, `round` takes one of 32, and while it stands within a cast, the types of values
//! beside the call are chosen for all digits of `x`. Later the call has the other type, and the values beside
//! it lose their digits. So the literal is made as the function takes it, before types are chosen; also of
//! `1 + 0` and other texts that are the same number for all rows, which the library computes later.

use super::overflow::with_check;
use crate::error::Result;
use crate::sql::plans::with_parts_of;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue};
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};

/// The plan whose roundings of decimals have their types from the beginning.
pub(in crate::sql) fn with_digits(plan: LogicalPlan) -> Result<LogicalPlan> {
    let with_literals = |part: Expr, schema: &DFSchema| Ok(with_literal(part, schema));
    let changed = plan.transform_up_with_subqueries(|node| with_parts_of(node, &with_literals))?;
    Ok(changed.data)
}

fn with_literal(part: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match rounded(&part, schema) {
        Ok(Some(rounded)) => Transformed::yes(rounded),
        // A column of a query around this one has no type here.
        Ok(None) | Err(_) => Transformed::no(part),
    }
}

/// The call with a literal of 32 bits; none for any other expression.
fn rounded(part: &Expr, schema: &DFSchema) -> EngineResult<Option<Expr>> {
    let Expr::ScalarFunction(call) = part else { return Ok(None) };
    let [value, digits] = call.args.as_slice() else { return Ok(None) };
    if call.func.name() != "round" || !value.get_type(schema)?.is_decimal() {
        return Ok(None);
    }
    let digits = match constant(digits)? {
        Some(Expr::Literal(ScalarValue::Int64(Some(digits)), _)) => i32::try_from(digits).ok(),
        _ => None,
    };
    Ok(digits.map(|digits| call.func.call(vec![value.clone(), lit(digits)])))
}

/// The value of a whole number that reads no row, in 64 bits; none for any other expression. One that has no
/// room has no value: it ends the statement where the function is called.
fn constant(expr: &Expr) -> EngineResult<Option<Expr>> {
    if expr.any_column_refs() || expr.is_volatile() || expr.exists(|part| Ok(reads_rows(part)))? {
        return Ok(None);
    }
    let (simplifier, no_columns) = (ExprSimplifier::new(SimplifyContext::default()), DFSchema::empty());
    if !expr.get_type(&no_columns)?.is_integer() {
        return Ok(None);
    }
    let checked = expr.clone().transform_up(|part| with_check(part, &no_columns))?;
    let typed = simplifier.coerce(checked.data, &no_columns)?;
    simplifier.simplify(cast(typed, DataType::Int64)).map(Some)
}

/// Parameters have no value yet.
fn reads_rows(part: &Expr) -> bool {
    match part {
        Expr::Placeholder(_) | Expr::AggregateFunction(_) | Expr::WindowFunction(_) => true,
        Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_) => true,
        part => matches!(part, Expr::OuterReferenceColumn(..)),
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{cells, session_of};

    fn session() -> SqlSession {
        let table = "create table d (b boolean, m decimal(10, 2)) as values (false, 12345.67), (true, -2.54)";
        session_of(&[table])
    }

    #[track_caller]
    fn rows(query: &str) -> Vec<Vec<String>> {
        cells(&mut session(), query)
    }

    #[test]
    fn values_beside_a_rounded_decimal_keep_their_digits() {
        let expected = [["-2.50"], ["12345.67"]];
        let query = "select case when b then round(m, 1) else m end from d order by m";
        assert_eq!(rows(query), expected);
        let query = "select coalesce(case when b then round(m, 1) end, m) from d order by m";
        assert_eq!(rows(query), expected);
        let query =
            "select x from (select case when b then round(m, 1) else m end x from d) group by x order by x";
        assert_eq!(rows(query), expected);
        for digits in ["1 + 0", "3 - 2", "cast('1' as int)", "length('a')", "case when true then 1 end"] {
            let query = format!("select case when b then round(m, {digits}) else m end from d order by m");
            assert_eq!(rows(&query), expected, "{digits}");
        }
    }

    #[test]
    fn only_whole_numbers_that_have_room_are_digits() {
        for digits in ["9223372036854775807 + 9223372036854775807 + 3", "1.5", "true", "date '1970-01-02'"] {
            for query in [
                format!("select round(m, {digits}) from d"),
                format!("select m from d where round(m, {digits}) = -2.5"),
            ] {
                let found = session().run(&query);
                assert!(found.is_err(), "{query}: {found:?}");
            }
        }
    }

    #[test]
    fn rounded_decimals_are_found_by_their_names() {
        assert_eq!(rows("select round(m, 1) from d group by round(m, 1) order by round(m, 1)")[0], ["-2.5"]);
        assert_eq!(rows("select \"round(m, 1)\" from (select round(m, 1) from d) order by 1")[0], ["-2.5"]);
        assert_eq!(rows("select sum(round(m, 0)) from d group by rollup(round(m, 0))").len(), 3);
        assert_eq!(rows("select round(m, -1) from d where not b"), [["12350"]]);
    }
}
