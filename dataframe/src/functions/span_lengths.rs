//! Lengths of intervals and durations, as values that the library compares.
//!
//! It compares intervals by their months first, then by their days: 25 hours are less than a day. As in
//! PostgreSQL, a month has 30 days here and a day 24 hours. A key has the length first and then the parts, so
//! that the interval can be made of it again.

use super::on_arrays::on_arrays;
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, PrimitiveArray};
use arrow::compute::{cast, nullif};
use arrow::datatypes::{
    DataType, Decimal128Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit,
};
use datafusion::common::{Result, exec_datafusion_err, plan_err};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, OnceLock};

const MONTH_DAYS: i128 = 30;
const DAY_NANOSECONDS: i128 = 86_400_000_000_000;

/// Digits of a length in nanoseconds: the longest interval has 25.
const DIGITS: u8 = 38;

/// Bytes of a length and of the parts behind it.
const LENGTH_BYTES: usize = 16;
const KEY_BYTES: usize = 32;

const SPAN: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The length of an interval or a duration, in nanoseconds.
pub(crate) fn length(span: Expr) -> Expr {
    let [length, ..] = functions();
    length.call(vec![span])
}

/// The key of an interval or a duration: of two keys the one of the longer interval is greater.
pub(crate) fn key(span: Expr) -> Expr {
    let [_, key, ..] = functions();
    key.call(vec![span])
}

/// The interval that has a key.
pub(crate) fn of_key(key: Expr) -> Expr {
    let [_, _, of_key, _] = functions();
    of_key.call(vec![key])
}

/// The first one of two spans, missing if they are equally long.
pub(crate) fn unless_as_long(span: Expr, other: Expr) -> Expr {
    let [_, _, _, unless] = functions();
    unless.call(vec![span, other])
}

/// The functions, of which a process has one each.
pub(super) fn functions() -> [Arc<ScalarUDF>; 4] {
    static FUNCTIONS: OnceLock<[Arc<ScalarUDF>; 4]> = OnceLock::new();
    let made = |act| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(SpanLength { act, signature }))
    };
    let acts = [Act::Length, Act::Key, Act::OfKey, Act::UnlessAsLong];
    FUNCTIONS.get_or_init(|| acts.map(made)).clone()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Key,
    Length,
    OfKey,
    UnlessAsLong,
}

fn length_of(span: IntervalMonthDayNano) -> i128 {
    let days = i128::from(span.months) * MONTH_DAYS + i128::from(span.days);
    days * DAY_NANOSECONDS + i128::from(span.nanoseconds)
}

fn lengths(spans: &ArrayRef) -> Result<Decimal128Array> {
    let lengths: Decimal128Array = match spans.data_type() {
        DataType::Duration(unit) => {
            let nanoseconds: i128 = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1_000,
                TimeUnit::Nanosecond => 1,
            };
            let units = cast(spans, &DataType::Int64)?;
            units.as_primitive::<Int64Type>().unary(|count| i128::from(count) * nanoseconds)
        }
        _ => spans.as_primitive::<IntervalMonthDayNanoType>().unary::<_, Decimal128Type>(length_of),
    };
    Ok(lengths.with_precision_and_scale(DIGITS, 0)?)
}

/// The bytes of a key, whose order is that of the lengths: the first bit of a number with a sign is turned.
fn bytes_of(span: IntervalMonthDayNano) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    let (length, parts) = bytes.split_at_mut(LENGTH_BYTES);
    length.copy_from_slice(&(length_of(span) ^ i128::MIN).to_be_bytes());
    let in_order = [(span.months ^ i32::MIN).to_be_bytes(), (span.days ^ i32::MIN).to_be_bytes()].concat();
    let (days, nanoseconds) = parts.split_at_mut(in_order.len());
    days.copy_from_slice(&in_order);
    nanoseconds.copy_from_slice(&(span.nanoseconds ^ i64::MIN).to_be_bytes());
    bytes
}

fn span_of(key: &[u8]) -> Result<IntervalMonthDayNano> {
    let parts = key.get(LENGTH_BYTES..).and_then(|parts| {
        let (months, rest) = parts.split_first_chunk()?;
        let (days, nanoseconds) = rest.split_first_chunk()?;
        let nanoseconds: [u8; 8] = nanoseconds.try_into().ok()?;
        Some((i32::from_be_bytes(*months), i32::from_be_bytes(*days), i64::from_be_bytes(nanoseconds)))
    });
    let (months, days, nanoseconds) =
        parts.ok_or_else(|| exec_datafusion_err!("{} bytes are no key of an interval", key.len()))?;
    Ok(IntervalMonthDayNano::new(months ^ i32::MIN, days ^ i32::MIN, nanoseconds ^ i64::MIN))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SpanLength {
    act: Act,
    signature: Signature,
}

impl ScalarUDFImpl for SpanLength {
    fn name(&self) -> &str {
        match self.act {
            Act::Key => "tharsis_span_key",
            Act::Length => "tharsis_span_length",
            Act::OfKey => "tharsis_span_of_key",
            Act::UnlessAsLong => "tharsis_span_unless_as_long",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let wanted = if self.act == Act::UnlessAsLong { 2 } else { 1 };
        if types.len() != wanted {
            return plan_err!("{} takes {wanted} arguments", self.name());
        }
        let coerced = types.iter().map(|dtype| match dtype {
            DataType::Binary if self.act == Act::OfKey => Ok(DataType::Binary),
            DataType::Duration(_) if self.act != Act::Key => Ok(dtype.clone()),
            DataType::Interval(_) | DataType::Duration(_) | DataType::Null if self.act != Act::OfKey => {
                Ok(SPAN)
            }
            _ => plan_err!("{} of {dtype}", self.name()),
        });
        coerced.collect()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self.act, types.first()) {
            (Act::Key, _) => Ok(DataType::Binary),
            (Act::Length, _) => Ok(DataType::Decimal128(DIGITS, 0)),
            (Act::UnlessAsLong, Some(DataType::Duration(unit))) => Ok(DataType::Duration(*unit)),
            (Act::OfKey | Act::UnlessAsLong, _) => Ok(SPAN),
        }
    }

    /// Any value of the type.
    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        let types: Vec<DataType> = inputs.iter().map(|input| input.data_type()).collect();
        Interval::make_unbounded(&self.return_type(&types)?)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        on_arrays(args, |arrays| match (self.act, arrays) {
            (Act::Key, [spans]) => {
                let spans = spans.as_primitive::<IntervalMonthDayNanoType>().iter();
                Ok(Arc::new(spans.map(|span| span.map(bytes_of)).collect::<BinaryArray>()))
            }
            (Act::Length, [spans]) => Ok(Arc::new(lengths(spans)?)),
            (Act::OfKey, [keys]) => {
                let spans = keys.as_binary::<i32>().iter().map(|key| key.map(span_of).transpose());
                Ok(Arc::new(spans.collect::<Result<PrimitiveArray<IntervalMonthDayNanoType>>>()?))
            }
            (Act::UnlessAsLong, [spans, others]) => {
                let (own, other) = (lengths(spans)?, lengths(others)?);
                let pairs = own.iter().zip(&other);
                let are_equal: BooleanArray =
                    pairs.map(|(own, other)| Some(own.is_some() && own == other)).collect();
                Ok(nullif(spans, &are_equal)?)
            }
            _ => plan_err!("{} with {} arguments", self.name(), arrays.len()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_lengths_and_keep_the_parts() {
        let hour = 3_600_000_000_000;
        let spans = [
            (i32::MIN, i32::MIN, i64::MIN),
            (-1, 0, 0),
            (0, -1, -1),
            (0, -1, 0),
            (1, -30, -1),
            (0, 0, 0),
            (0, 0, 1),
            (0, 0, 24 * hour),
            (0, 1, 0),
            (0, 0, 25 * hour),
            (0, 30, 0),
            (1, 0, 0),
            (0, 40, 0),
            (i32::MAX, i32::MAX, i64::MAX),
        ];
        let spans =
            spans.map(|(months, days, nanoseconds)| IntervalMonthDayNano::new(months, days, nanoseconds));
        assert!(spans.is_sorted_by_key(|span| length_of(*span)));
        assert!(spans.is_sorted_by_key(|span| bytes_of(*span)));
        for span in spans {
            assert_eq!(span_of(&bytes_of(span)).expect("a key"), span);
        }
        assert!(span_of(&[0; 31]).is_err());
    }
}
