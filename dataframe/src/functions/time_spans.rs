//! Intervals and durations times numbers, and divided by them.
//!
//! The library has no such operators. By whole numbers all is exact, up to the nearest unit of a quotient.
//! As in PostgreSQL, a part of a month is so many parts of 30 days, and a part of a day so many of 24 hours.

use super::on_arrays::on_arrays;
use crate::error::Error;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    UInt64Type,
};
use datafusion::common::{Result, exec_datafusion_err, plan_err};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, OnceLock};

const MONTH_DAYS: i64 = 30;
const DAY_SECONDS: f64 = 86_400.0;
const DAY_NANOSECONDS: i128 = 86_400_000_000_000;
const SECOND_NANOSECONDS: f64 = 1e9;

/// One more than the largest number of 64 bits with a sign.
const WHOLE_END: f64 = 9_223_372_036_854_775_808.0;

/// A length of time, so many times.
pub(crate) fn times(span: Expr, number: Expr) -> Expr {
    let [times, _] = functions();
    times.call(vec![span, number])
}

/// A length of time, divided by a number.
pub(crate) fn divided(span: Expr, number: Expr) -> Expr {
    let [_, divided] = functions();
    divided.call(vec![span, number])
}

/// The functions, of which a process has one each.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    static FUNCTIONS: OnceLock<[Arc<ScalarUDF>; 2]> = OnceLock::new();
    let made = |act| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(TimeSpan { act, signature }))
    };
    FUNCTIONS.get_or_init(|| [made(Act::Times), made(Act::Divided)]).clone()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Times,
    Divided,
}

/// The number beside a length of time.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    /// The number of a float; `None` for what is not a number.
    fn of(value: f64) -> Option<Number> {
        if value.is_nan() {
            return None;
        }
        let is_whole = value.fract() == 0.0 && value.abs() < WHOLE_END;
        Some(if is_whole { Number::Whole(value as i128) } else { Number::Real(value) })
    }
}

/// The numbers of an array.
fn numbers(values: &ArrayRef) -> Result<Vec<Option<Number>>> {
    Ok(match values.data_type() {
        DataType::UInt64 => {
            let values = values.as_primitive::<UInt64Type>().iter();
            values.map(|value| value.map(|value| Number::Whole(value.into()))).collect()
        }
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>().iter();
            values.map(|value| Number::of(value?)).collect()
        }
        _ => {
            let values = cast(values, &DataType::Int64)?;
            let values = values.as_primitive::<Int64Type>().iter();
            values.map(|value| value.map(|value| Number::Whole(value.into()))).collect()
        }
    })
}

impl Act {
    /// The lengths of time that are made of some.
    fn made(self, spans: &ArrayRef, numbers: &[Option<Number>]) -> Result<ArrayRef> {
        if let DataType::Duration(_) = spans.data_type() {
            let units = cast(spans, &DataType::Int64)?;
            let units = units.as_primitive::<Int64Type>().iter().zip(numbers);
            let made = units.map(|(unit, number)| self.each(unit, *number, duration));
            let made = made.collect::<Result<Int64Array>>()?;
            return Ok(cast(&made, spans.data_type())?);
        }
        let spans = spans.as_primitive::<IntervalMonthDayNanoType>().iter().zip(numbers);
        let made = spans.map(|(span, number)| self.each(span, *number, interval));
        Ok(Arc::new(made.collect::<Result<PrimitiveArray<IntervalMonthDayNanoType>>>()?))
    }

    /// The result of one row.
    fn each<T>(
        self,
        span: Option<T>,
        number: Option<Number>,
        result: impl Fn(Act, T, Number) -> Option<T>,
    ) -> Result<Option<T>> {
        let (Some(span), Some(number)) = (span, number) else { return Ok(None) };
        if let (Act::Divided, Number::Whole(0)) = (self, number) {
            return Err(Error::ZeroDivision("division by zero".to_owned()).into());
        }
        match result(self, span, number) {
            Some(span) => Ok(Some(span)),
            None => {
                let act = if self == Act::Times { "times" } else { "divided by" };
                let number = match number {
                    Number::Whole(number) => number.to_string(),
                    Number::Real(number) => number.to_string(),
                };
                Err(Error::Overflow(format!("out of range: a length of time {act} {number} has no room"))
                    .into())
            }
        }
    }
}

/// A number of units; `None` if it has no room.
fn duration(act: Act, units: i64, number: Number) -> Option<i64> {
    match (act, number) {
        (Act::Times, Number::Whole(number)) => i64::try_from(i128::from(units).checked_mul(number)?).ok(),
        (Act::Divided, Number::Whole(number)) => i64::try_from(nearest(units.into(), number)).ok(),
        (Act::Times, Number::Real(number)) => whole(units as f64 * number),
        (Act::Divided, Number::Real(number)) => whole(units as f64 / number),
    }
}

/// An interval; `None` if it has no room.
fn interval(act: Act, span: IntervalMonthDayNano, number: Number) -> Option<IntervalMonthDayNano> {
    match (act, number) {
        (Act::Times, Number::Whole(number)) => product(span, number),
        (Act::Divided, Number::Whole(number)) => quotient(span, number),
        (Act::Times, Number::Real(number)) => in_parts(span, |part| part * number),
        (Act::Divided, Number::Real(number)) => in_parts(span, |part| part / number),
    }
}

fn product(span: IntervalMonthDayNano, number: i128) -> Option<IntervalMonthDayNano> {
    let months = i128::from(span.months).checked_mul(number)?;
    let days = i128::from(span.days).checked_mul(number)?;
    let nanoseconds = i128::from(span.nanoseconds).checked_mul(number)?;
    of_parts(months, days, nanoseconds)
}

fn quotient(span: IntervalMonthDayNano, number: i128) -> Option<IntervalMonthDayNano> {
    let (months, days) = (i128::from(span.months), i128::from(span.days));
    let days_of_months = months % number * i128::from(MONTH_DAYS);
    let left = days_of_months % number + days % number;
    let all_days = days / number + days_of_months / number + left / number;
    let nanoseconds = i128::from(span.nanoseconds) + left % number * DAY_NANOSECONDS;
    of_parts(months / number, all_days, nearest(nanoseconds, number))
}

fn of_parts(months: i128, days: i128, nanoseconds: i128) -> Option<IntervalMonthDayNano> {
    let (months, days) = (i32::try_from(months).ok()?, i32::try_from(days).ok()?);
    Some(IntervalMonthDayNano::new(months, days, i64::try_from(nanoseconds).ok()?))
}

/// The nearest whole number of a quotient, the even one of two.
fn nearest(value: i128, number: i128) -> i128 {
    let (value, number) = if number < 0 { (-value, -number) } else { (value, number) };
    let (below, left) = (value.div_euclid(number), value.rem_euclid(number));
    match (2 * left).cmp(&number) {
        std::cmp::Ordering::Less => below,
        std::cmp::Ordering::Equal => below + below.rem_euclid(2),
        std::cmp::Ordering::Greater => below + 1,
    }
}

/// An interval of parts that are no whole numbers: what is behind the point of months goes to days, and what
/// is behind that of days to nanoseconds.
fn in_parts(span: IntervalMonthDayNano, part: impl Fn(f64) -> f64) -> Option<IntervalMonthDayNano> {
    let (months, days) = (part(f64::from(span.months)), part(f64::from(span.days)));
    let days_of_months = without_noise(months.fract() * MONTH_DAYS as f64);
    let seconds = without_noise((days.fract() + days_of_months.fract()) * DAY_SECONDS);
    let days_of_seconds = (seconds / DAY_SECONDS).trunc();
    let days = days.trunc() + days_of_months.trunc() + days_of_seconds;
    let seconds = seconds - days_of_seconds * DAY_SECONDS;
    let nanoseconds = part(span.nanoseconds as f64) + seconds * SECOND_NANOSECONDS;
    let (months, days) = (whole(months.trunc())?, whole(days)?);
    of_parts(months.into(), days.into(), whole(nanoseconds)?.into())
}

/// A number without what the last digits of floats add to it.
fn without_noise(value: f64) -> f64 {
    (value * SECOND_NANOSECONDS).round_ties_even() / SECOND_NANOSECONDS
}

/// The nearest whole number; `None` if it has no room.
fn whole(value: f64) -> Option<i64> {
    let value = value.round_ties_even();
    (-WHOLE_END..WHOLE_END).contains(&value).then_some(value as i64)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeSpan {
    act: Act,
    signature: Signature,
}

impl ScalarUDFImpl for TimeSpan {
    fn name(&self) -> &str {
        match self.act {
            Act::Times => "tharsis_time_span_times",
            Act::Divided => "tharsis_time_span_divided",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [span, number] = types else { return plan_err!("{} takes 2 arguments", self.name()) };
        let span = match span {
            DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::Duration(_) => span.clone(),
            _ => return plan_err!("{} of {span}", self.name()),
        };
        let number = match number {
            number if number.is_unsigned_integer() => DataType::UInt64,
            number if number.is_signed_integer() || number.is_null() => DataType::Int64,
            number if number.is_numeric() => DataType::Float64,
            _ => return plan_err!("{} with {number}", self.name()),
        };
        Ok(vec![span, number])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name()))
    }

    /// Any length of the type.
    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        Interval::make_unbounded(&inputs.first().map_or(DataType::Null, |input| input.data_type()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        on_arrays(args, |arrays| {
            let [span, number] = arrays else { return plan_err!("{} takes 2 arguments", self.name()) };
            self.act.made(span, &numbers(number)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = (i32, i32, i64);

    fn made(act: Act, (months, days, nanoseconds): Parts, number: Number) -> Option<Parts> {
        let span = IntervalMonthDayNano::new(months, days, nanoseconds);
        interval(act, span, number).map(|span| (span.months, span.days, span.nanoseconds))
    }

    const HOUR: i64 = 3_600_000_000_000;

    #[test]
    fn parts_of_months_are_days_and_parts_of_days_are_hours() {
        let (half, tenth) = (Number::Real(0.5), Number::Real(0.1));
        for (span, number, product) in [
            ((1, 1, HOUR), Number::Whole(-3), (-3, -3, -3 * HOUR)),
            ((1, 0, 0), half, (0, 15, 0)),
            ((1, 1, 0), half, (0, 15, 12 * HOUR)),
            ((3, 0, 0), half, (1, 15, 0)),
            ((0, 1, 0), tenth, (0, 0, 2 * HOUR + 24 * HOUR / 60)),
            ((1, 0, 0), tenth, (0, 3, 0)),
            ((-1, 0, HOUR), Number::Real(1.5), (-1, -15, HOUR + HOUR / 2)),
            // As in PostgreSQL: more than a day goes to the days.
            ((17, 19, 0), Number::Real(0.05), (0, 26, 10 * HOUR + 48 * HOUR / 60)),
        ] {
            assert_eq!(made(Act::Times, span, number), Some(product), "{span:?}");
        }
        for (span, number, quotient) in [
            ((1, 0, 0), Number::Whole(2), (0, 15, 0)),
            ((0, 1, 0), Number::Whole(2), (0, 0, 12 * HOUR)),
            ((7, 7, 7), Number::Whole(7), (1, 1, 1)),
            ((0, 0, 10), Number::Whole(4), (0, 0, 2)),
            ((0, 0, -10), Number::Whole(4), (0, 0, -2)),
            ((0, 0, 11), Number::Whole(-4), (0, 0, -3)),
            ((13, 0, 0), Number::Whole(-4), (-3, -7, -12 * HOUR)),
            ((0, 0, HOUR), half, (0, 0, 2 * HOUR)),
            ((0, 0, HOUR), Number::Real(f64::INFINITY), (0, 0, 0)),
        ] {
            assert_eq!(made(Act::Divided, span, number), Some(quotient), "{span:?}");
        }
    }

    #[test]
    fn lengths_without_room_are_none() {
        for (act, span, number) in [
            (Act::Times, (i32::MAX, 0, 0), Number::Whole(2)),
            (Act::Times, (0, i32::MIN, 0), Number::Whole(-1)),
            (Act::Times, (0, 0, i64::MIN), Number::Whole(u64::MAX.into())),
            (Act::Times, (0, 0, i64::MAX), Number::Real(1.5)),
            (Act::Times, (0, 1, 0), Number::Real(1e300)),
            (Act::Times, (0, 0, 0), Number::Real(f64::INFINITY)),
            (Act::Divided, (0, i32::MIN, 0), Number::Whole(-1)),
            (Act::Divided, (1, 0, 0), Number::Real(5e-324)),
        ] {
            assert_eq!(made(act, span, number), None, "{act:?} {span:?}");
        }
        assert_eq!(duration(Act::Times, i64::MAX, Number::Whole(2)), None);
        assert_eq!(duration(Act::Divided, i64::MIN, Number::Whole(-1)), None);
        assert_eq!(duration(Act::Divided, 7, Number::Whole(2)), Some(4));
        assert_eq!(duration(Act::Times, 3, Number::Real(0.5)), Some(2));
    }
}
