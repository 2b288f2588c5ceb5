//! Decimals beside floats.
//!
//! The library compares both as decimals of 30 digits with 15 behind the point. There `0.00 = 1e-20` is true,
//! `price < 1e20` is an error, and `price = 123456.789` finds no row, since the literal becomes another
//! decimal. Here a literal beside decimals is the decimal that it is written as, and a decimal beside other
//! floats is a float, as in DuckDB and PostgreSQL: wherever both are compared, or values of one type.

use super::clocks::values_of;
use super::types_within::has_decimals;
use crate::error::Result;
use crate::sql::plans::{with_other_types, with_parts_of, with_value};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue};
use datafusion::logical_expr::expr::{InSubquery, SetComparison};
use datafusion::logical_expr::logical_plan::{Join, Subquery};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast};
use std::sync::Arc;

/// The plan whose decimals beside floats are floats, and whose literals beside decimals are decimals.
pub(in crate::sql) fn as_one_type(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_decimals(&plan)? {
        return Ok(plan);
    }
    Ok(with_other_types(plan, |node| with_parts_of(node, &with_numbers)?.transform_data(with_keys))?)
}

/// A part of an expression whose numbers are of one type.
fn with_numbers(mut part: Expr, schema: &DFSchema) -> EngineResult<Transformed<Expr>> {
    let is_new = match &mut part {
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => beside_rows(expr, subquery, schema)?,
        // A difference with a float is a float.
        Expr::BinaryExpr(BinaryExpr { op: Operator::Minus, .. }) => false,
        part => {
            let mut is_new = false;
            for values in values_of(part) {
                is_new |= in_one_type(values, schema);
            }
            is_new
        }
    };
    Ok(Transformed::new_transformed(part, is_new))
}

/// Makes decimals of the floats among values if all are literals, or floats of the decimals. Whether it does.
fn in_one_type(values: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if values.len() < 2 {
        return false;
    }
    let types: Vec<Option<DataType>> = values.iter().map(|value| value.get_type(schema).ok()).collect();
    let is_float = |dtype: &Option<DataType>| dtype.as_ref().is_some_and(DataType::is_floating);
    let decimals = types.iter().flatten().filter(|dtype| dtype.is_decimal());
    let decimals: Vec<&DataType> = decimals.collect();
    if decimals.is_empty() || !types.iter().any(is_float) {
        return false;
    }
    let literals = values.iter().zip(&types).filter(|(_, dtype)| is_float(dtype));
    let literals: Option<Vec<ScalarValue>> = literals.map(|(value, _)| decimal(value)).collect();
    if let Some(literals) = literals.filter(|literals| have_room(&decimals, literals)) {
        let floats = values.into_iter().zip(&types).filter(|(_, dtype)| is_float(dtype));
        for ((value, _), literal) in floats.zip(literals) {
            *value = Expr::Literal(literal, None);
        }
        return true;
    }
    for (value, dtype) in values.into_iter().zip(&types) {
        if dtype.as_ref().is_some_and(DataType::is_decimal) {
            as_float(value);
        }
    }
    true
}

fn as_float(value: &mut Expr) {
    *value = cast(std::mem::take(value), DataType::Float64);
}

/// The decimal that a literal is written as; `None` for one that has none, and for other values.
pub(in crate::sql) fn decimal(value: &Expr) -> Option<ScalarValue> {
    let Expr::Literal(ScalarValue::Float64(Some(value)), _) = value else { return None };
    if !value.is_finite() {
        return None;
    }
    let text = value.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let digits = number.unsigned_abs().checked_ilog10().map_or(1, |power| power + 1);
    let scale = u32::try_from(fraction.len()).ok()?;
    let (precision, scale) = (u8::try_from(digits.max(scale)).ok()?, i8::try_from(scale).ok()?);
    (precision <= DIGITS_MAX).then_some(ScalarValue::Decimal128(Some(number), precision, scale))
}

/// Digits of decimals of 128 bits at most.
const DIGITS_MAX: u8 = 38;

/// Whether one type of 128 bits has all of these decimals.
pub(in crate::sql) fn have_room(decimals: &[&DataType], literals: &[ScalarValue]) -> bool {
    let literals: Vec<DataType> = literals.iter().map(ScalarValue::data_type).collect();
    let (mut before, mut behind) = (0, 0);
    for dtype in decimals.iter().copied().chain(&literals) {
        let (DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)) = dtype
        else {
            return false;
        };
        before = before.max(i16::from(*digits) - i16::from(*scale));
        behind = behind.max(i16::from(*scale));
    }
    before + behind <= i16::from(DIGITS_MAX)
}

/// Makes a float of a value beside the rows of a query, or of these rows, if the others are floats. Whether
/// it does.
fn beside_rows(value: &mut Expr, rows: &mut Subquery, schema: &DFSchema) -> EngineResult<bool> {
    let Ok(own) = value.get_type(schema) else { return Ok(false) };
    let first = rows.subquery.schema().fields().first().map(|field| field.data_type().clone());
    match first {
        Some(of_rows) if own.is_decimal() && of_rows.is_floating() => as_float(value),
        Some(of_rows) if own.is_floating() && of_rows.is_decimal() => {
            rows.subquery =
                with_value(Arc::clone(&rows.subquery), |value, _| cast(value, DataType::Float64))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A join whose decimal keys beside floats are floats.
fn with_keys(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = node else { return Ok(Transformed::no(node)) };
    let are_mixed = join.on.iter().map(|keys| is_mixed(keys, &join));
    let are_mixed: Vec<bool> = are_mixed.collect();
    if !are_mixed.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let mixed = join.on.iter_mut().zip(are_mixed).filter(|(_, is_mixed)| *is_mixed);
    for ((left, right), _) in mixed {
        as_float(left);
        as_float(right);
    }
    LogicalPlan::Join(join).recompute_schema().map(Transformed::yes)
}

/// Whether one of two keys is a decimal and the other one a float.
fn is_mixed((left, right): &(Expr, Expr), join: &Join) -> bool {
    match (left.get_type(join.left.schema()), right.get_type(join.right.schema())) {
        (Ok(left), Ok(right)) => {
            left.is_decimal() && right.is_floating() || left.is_floating() && right.is_decimal()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{cells, rows_in, session_of};

    fn session() -> SqlSession {
        session_of(&["create table t as select 123456.789::decimal(12, 3) as d, 0::decimal(10, 2) as none,
                      123456.789::double as f, 1e-20::double as small, 1e20::double as large"])
    }

    #[test]
    fn decimals_beside_floats_are_compared_as_they_are() {
        let mut session = session();
        for condition in [
            "d = 123456.789",
            "123456.789 = d",
            "d <= 123456.789 and d >= 123456.789",
            "d <> 123456.7891",
            "d between 123456.789 and 123456.789",
            "d in (0.5, 123456.789)",
            "d not in (0.5, 123456.7891)",
            "case d when 123456.789 then true else false end",
            "d is not distinct from 123456.789",
            "nullif(d, 123456.789) is null",
            "d < 1e20 and d > -1e20 and none < 1e-20",
            "d < 1e300 and none < 1e-300",
            "d = f and f = d",
            "none <> small and none < small",
            "d < large and d between small and large",
            "none not in (small, large)",
            "none not in (select small from t)",
            "small not in (select none from t)",
            "d = any([0.5, 123456.789])",
            "123456.789 = any([none, d])",
            "array_position([123456.789], d) = 1",
            "d in (select f from t)",
            "d = any (select f from t)",
            "(select count(*) from (select 0 as x union all select u.f from t u where u.f > t.none) s where s.x = t.d) = 1",
            "small > all (select none from t)",
            "greatest(none, small) = small",
            "coalesce(nullif(none, 0), large) = large",
            "case when none < 0 then none else large end = large",
            "(select count(*) from t x join t y on x.d = y.f) = 1",
            "(select count(*) from t x join t y on x.none = y.small) = 0",
            "(select count(*) from (select d as k from t) x join (select f as k from t) y using (k)) = 1",
            "(select count(*) from (select none as k from t) x join (select small as k from t) y using (k)) = 0",
        ] {
            let query = format!("select count(*) from t where {condition}");
            assert_eq!(rows_in(&mut session, &query), ["1"], "{condition}");
        }
    }

    #[test]
    fn values_of_one_type_have_the_digits_of_decimals_beside_literals() {
        let mut session = session();
        for (value, expected) in [
            ("coalesce(nullif(none, 0), 0.5)", "0.50"),
            ("case when none < 0.5 then none else 0.125 end", "0.000"),
            ("arrow_typeof(coalesce(none, small))", "Float64"),
            // Other operators compute floats.
            ("arrow_typeof(none - 0.5)", "Float64"),
            ("arrow_typeof(none + 0.5)", "Float64"),
        ] {
            assert_eq!(cells(&mut session, &format!("select {value} from t")), [[expected]], "{value}");
        }
        cells(&mut session, "prepare p(double) as select count(*) from t where d = $1");
        assert_eq!(rows_in(&mut session, "execute p(123456.789)"), ["1"]);
        cells(&mut session, "create view v as select d from t where d = 123456.789");
        assert_eq!(rows_in(&mut session, "select count(*) from v where d < 123456.79"), ["1"]);
    }
}
