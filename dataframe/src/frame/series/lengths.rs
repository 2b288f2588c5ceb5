//! Arithmetic with durations, of numbers and of other durations, as NumPy has it: quotients by numbers are
//! cut to whole units, those of two durations are numbers.

use crate::error::{Error, Result};
use crate::functions::arithmetic::{floordiv, present, rem};
use crate::functions::checked::checked;
use crate::promotion::finer;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::functions::core::expr_fn::nullif;
use datafusion::logical_expr::expr_fn::{cast, try_cast};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};

/// Arithmetic by its sign, of which one operand at least is a duration. `None` where both are none, and for
/// times with durations.
pub(super) fn with_lengths(
    left: &Expr,
    right: &Expr,
    types: &(DataType, DataType),
    sign: &str,
) -> Result<Option<Expr>> {
    let (left, right) = (left.clone(), right.clone());
    let made = match types {
        (DataType::Duration(one), DataType::Duration(other)) => {
            let unit = finer(*one, *other);
            let (left, right) = (in_unit(left, *one, unit), in_unit(right, *other, unit));
            of_two(left, right, unit, sign)
        }
        (DataType::Duration(unit), number) if number.is_numeric() => {
            of_number(units(left), (right, number), sign)?.map(|made| cast(made, DataType::Duration(*unit)))
        }
        (number, DataType::Duration(unit)) if number.is_numeric() && sign == "*" => {
            of_number(units(right), (left, number), sign)?.map(|made| cast(made, DataType::Duration(*unit)))
        }
        // A missing value may be a duration too.
        (DataType::Duration(_), DataType::Null) | (DataType::Null, DataType::Duration(_))
            if matches!(sign, "+" | "-") =>
        {
            return Ok(None);
        }
        (DataType::Timestamp(..) | DataType::Date32 | DataType::Date64, _)
        | (_, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) => return Ok(None),
        (DataType::Duration(_), _) | (_, DataType::Duration(_)) => None,
        _ => return Ok(None),
    };
    made.map(Some).ok_or_else(|| {
        let (left, right) = types;
        Error::Type(format!("unsupported operand types for {sign}: {left} and {right}"))
    })
}

/// A duration in another unit, which is as fine or finer.
fn in_unit(length: Expr, own: TimeUnit, unit: TimeUnit) -> Expr {
    if own == unit { length } else { cast(length, DataType::Duration(unit)) }
}

/// The number of units of a duration.
fn units(length: Expr) -> Expr {
    cast(length, DataType::Int64)
}

/// Arithmetic of two durations of one unit. A quotient rounded down by a duration of zero is missing, as that
/// of whole numbers.
fn of_two(left: Expr, right: Expr, unit: TimeUnit, sign: &str) -> Option<Expr> {
    let float = |length: Expr| cast(units(length), DataType::Float64);
    Some(match sign {
        "+" => left + right,
        "-" => left - right,
        "/" => present(float(left) / float(right)),
        "//" => floordiv(units(left), units(right)),
        "%" => cast(rem(units(left), units(right)), DataType::Duration(unit)),
        _ => return None,
    })
}

/// The units of a duration by a number.
fn of_number(units: Expr, (number, dtype): (Expr, &DataType), sign: &str) -> Result<Option<Expr>> {
    if dtype.is_integer() {
        let number = cast(number, DataType::Int64);
        // A divisor of zero leaves nothing.
        let divisor = |number: Expr| nullif(number, lit(0_i64));
        return Ok(Some(match sign {
            "*" => {
                let product = BinaryExpr::new(Box::new(units), Operator::Multiply, Box::new(number));
                let whole = &DataType::Int64;
                checked(&product, whole, whole).unwrap_or(Expr::BinaryExpr(product))
            }
            "/" | "//" => units / divisor(number),
            "%" => units % divisor(number),
            _ => return Ok(None),
        }));
    }
    let (float, number) = (cast(units, DataType::Float64), cast(number, DataType::Float64));
    Ok(Some(match sign {
        // A product without room is an error, no number of units is missing.
        "*" => cast(present(float * number), DataType::Int64),
        "/" | "//" => try_cast(float / number, DataType::Int64),
        "%" => return Err(Error::NotImplemented("the remainder of a duration by a float".to_owned())),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use crate::frame::series::Series;
    use crate::{Operator, Value};
    use arrow::datatypes::{DataType, TimeUnit};
    use datafusion::common::ScalarValue;

    fn length(count: i64) -> Value {
        Value(ScalarValue::DurationNanosecond(Some(count)))
    }

    fn lengths(counts: &[i64]) -> Series {
        let counts = Series::from_values("l", counts.to_vec());
        counts.astype(DataType::Duration(TimeUnit::Nanosecond))
    }

    #[track_caller]
    fn whole(series: &Series) -> Vec<Option<i64>> {
        series.astype(DataType::Int64).values::<i64>().expect("whole numbers")
    }

    #[test]
    fn units_that_differ_meet_in_the_finer_one() {
        let (seven, second) = (lengths(&[7_000_000_000, -500_000_000]), ScalarValue::DurationSecond(Some(2)));
        let second = Value(second);
        for (operator, expected) in [
            (Operator::Add, [9_000_000_000, 1_500_000_000]),
            (Operator::Sub, [5_000_000_000, -2_500_000_000]),
            (Operator::Rem, [1_000_000_000, 1_500_000_000]),
        ] {
            let made = seven.operate(operator, second.clone());
            assert_eq!(made.dtype().expect("a type"), DataType::Duration(TimeUnit::Nanosecond));
            assert_eq!(whole(&made), expected.map(Some), "{operator:?}");
        }
        let quotient = seven.operate(Operator::Div, second.clone());
        assert_eq!(quotient.values::<f64>().expect("floats"), [Some(3.5), Some(-0.25)]);
        assert_eq!(whole(&seven.operate(Operator::FloorDiv, second)), [Some(3), Some(-1)]);
    }

    #[test]
    fn products_and_quotients_by_numbers_are_cut_to_units() {
        let seven = lengths(&[7, -7]);
        for (operator, number, expected) in [
            (Operator::Mul, Value::from(3), [Some(21), Some(-21)]),
            (Operator::Mul, Value::from(2.5), [Some(17), Some(-17)]),
            (Operator::Div, Value::from(2), [Some(3), Some(-3)]),
            (Operator::FloorDiv, Value::from(2), [Some(3), Some(-3)]),
            (Operator::Div, Value::from(2.5), [Some(2), Some(-2)]),
            (Operator::Rem, Value::from(2), [Some(1), Some(-1)]),
            (Operator::Div, Value::from(0), [None, None]),
            (Operator::Div, Value::from(0.0), [None, None]),
            (Operator::Rem, Value::from(0), [None, None]),
            (Operator::Div, Value::from(f64::INFINITY), [Some(0), Some(0)]),
        ] {
            assert_eq!(whole(&seven.operate(operator, number.clone())), expected, "{operator:?} {number:?}");
        }
        let numbers = Series::from_values("n", vec![2, -1]);
        assert_eq!(whole(&numbers.operate(Operator::Mul, length(5))), [Some(10), Some(-5)]);
    }

    #[test]
    fn products_without_room_are_errors() {
        for number in [Value::from(4), Value::from(4.0), Value::from(f64::INFINITY)] {
            let error = lengths(&[1 << 62]).operate(Operator::Mul, number).values::<i64>();
            assert!(error.is_err(), "{error:?}");
        }
    }

    #[test]
    fn other_operators_are_type_errors() {
        let one = lengths(&[1]);
        let number = Series::from_values("n", vec![1]);
        for made in [
            one.operate(Operator::Add, 1),
            one.operate(Operator::Sub, 1.5),
            one.operate(Operator::Pow, 2),
            one.operate(Operator::Mul, true),
            one.operate(Operator::Mul, length(1)),
            one.operate(Operator::Lt, 1),
            number.operate(Operator::Div, length(1)),
            number.operate(Operator::Rem, length(1)),
        ] {
            assert_eq!(made.dtype().expect_err("no such operator").class(), "TypeError");
        }
        let equal = |operator| one.operate(operator, 1).values::<bool>().expect("truth values");
        assert_eq!([equal(Operator::Eq), equal(Operator::Ne)], [[Some(false)], [Some(true)]]);
    }
}
