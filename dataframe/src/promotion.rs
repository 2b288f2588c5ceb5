//! The type that two numbers meet in: NumPy's `result_type`, in which numbers of a program take the type of
//! the column that they meet if they fit (NEP 50).
//!
//! Each step that puts numbers of two types together asks here and casts both, so that the library's rules
//! are not asked: it computes whole numbers with 32-bit floats in 32 bits, and has decimals for what no type
//! of integers holds.

use crate::error::{Error, Result};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{Expr, ExprSchemable};

/// Bits of a type of numbers, and which of these it is.
fn bits(dtype: &DataType) -> Option<(Class, u32)> {
    Some(match dtype {
        DataType::Boolean => (Class::Truth, 1),
        DataType::Int8 => (Class::Signed, 8),
        DataType::Int16 => (Class::Signed, 16),
        DataType::Int32 => (Class::Signed, 32),
        DataType::Int64 => (Class::Signed, 64),
        DataType::UInt8 => (Class::Unsigned, 8),
        DataType::UInt16 => (Class::Unsigned, 16),
        DataType::UInt32 => (Class::Unsigned, 32),
        DataType::UInt64 => (Class::Unsigned, 64),
        DataType::Float16 => (Class::Float, 16),
        DataType::Float32 => (Class::Float, 32),
        DataType::Float64 => (Class::Float, 64),
        _ => return None,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Truth,
    Unsigned,
    Signed,
    Float,
}

fn signed(bits: u32) -> DataType {
    match bits {
        0..=8 => DataType::Int8,
        9..=16 => DataType::Int16,
        17..=32 => DataType::Int32,
        33..=64 => DataType::Int64,
        // No type of integers has both.
        _ => DataType::Float64,
    }
}

/// The floats that hold all whole numbers of some bits, as NumPy has it: 64 bits fit only roughly.
fn float_for(bits: u32) -> u32 {
    match bits {
        0..=8 => 16,
        9..=16 => 32,
        _ => 64,
    }
}

fn float(bits: u32) -> DataType {
    match bits {
        16 => DataType::Float16,
        32 => DataType::Float32,
        _ => DataType::Float64,
    }
}

/// The type of numbers or truth values that holds those of two types; `None` if one is neither, or a decimal.
pub(crate) fn of_numbers(left: &DataType, right: &DataType) -> Option<DataType> {
    let (one, other) = (bits(left)?, bits(right)?);
    let ((low, few), (high, many), wide) =
        if one.0 <= other.0 { (one, other, right) } else { (other, one, left) };
    Some(match (low, high) {
        (Class::Truth, _) => wide.clone(),
        (same, other) if same == other => {
            if one.1 < other_bits(right) {
                right.clone()
            } else {
                left.clone()
            }
        }
        // One bit more than the unsigned number has.
        (Class::Unsigned, Class::Signed) => signed(many.max(few + 1)),
        _ => float(many.max(float_for(few))),
    })
}

fn other_bits(dtype: &DataType) -> u32 {
    bits(dtype).map_or(0, |(_, bits)| bits)
}

/// A number of the program: Python's have no width of their own.
enum Plain {
    Truth,
    Whole(i128),
    Float,
}

fn plain(expr: &Expr) -> Option<Plain> {
    let Expr::Literal(value, _) = expr else { return None };
    Some(match value {
        ScalarValue::Boolean(Some(_)) => Plain::Truth,
        ScalarValue::Int64(Some(whole)) => Plain::Whole(i128::from(*whole)),
        ScalarValue::UInt64(Some(whole)) => Plain::Whole(i128::from(*whole)),
        ScalarValue::Float64(Some(_)) => Plain::Float,
        _ => return None,
    })
}

/// The smallest and the largest number of a type of integers.
fn range(dtype: &DataType) -> Option<(i128, i128)> {
    match bits(dtype)? {
        (Class::Signed, bits) => Some((-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)),
        (Class::Unsigned, bits) => Some((0, (1_i128 << bits) - 1)),
        _ => None,
    }
}

/// The narrowest type of a whole number.
fn narrowest(whole: i128) -> DataType {
    const SIGNED: [DataType; 4] = [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64];
    let fits = |dtype: &&DataType| range(dtype).is_some_and(|(low, high)| low <= whole && whole <= high);
    SIGNED.iter().find(fits).cloned().unwrap_or(DataType::UInt64)
}

/// Whether a number that does not fit into the type of a column widens it, or is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutOfRange {
    Refused,
    Widens,
}

/// The type that two numbers of an expression meet in; `None` if one is no number, or a decimal.
///
/// # Errors
/// `OverflowError`'s text, as a value error, for a whole number that the type of the column does not have.
pub(crate) fn of_exprs(
    left: (&Expr, &DataType),
    right: (&Expr, &DataType),
    out_of_range: OutOfRange,
) -> Result<Option<DataType>> {
    let ((one, left), (other, right)) = (left, right);
    match (left, right) {
        (DataType::Null, other) => return Ok(bits(other).map(|_| other.clone())),
        (other, DataType::Null) => return Ok(bits(other).map(|_| other.clone())),
        _ => {}
    }
    let Some(common) = of_numbers(left, right) else { return Ok(None) };
    let (number, column) = match (plain(one), plain(other)) {
        (Some(number), None) => (number, right),
        (None, Some(number)) => (number, left),
        _ => return Ok(Some(common)),
    };
    Ok(Some(match number {
        _ if *column == DataType::Boolean => common,
        Plain::Truth => column.clone(),
        Plain::Float if column.is_floating() => column.clone(),
        Plain::Float => DataType::Float64,
        Plain::Whole(whole) => match range(column) {
            Some((low, high)) if whole < low || high < whole => {
                if out_of_range == OutOfRange::Refused {
                    return Err(Error::Value(format!("Python integer {whole} out of bounds for {column}")));
                }
                of_numbers(column, &narrowest(whole)).unwrap_or(common)
            }
            _ => column.clone(),
        },
    }))
}

/// An expression as another type, if it has not that one.
pub(crate) fn as_type(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    if from == to {
        return expr;
    }
    match &expr {
        // A literal stays one, which readers of files can prune by.
        Expr::Literal(value, metadata) => match value.cast_to(to) {
            Ok(value) => Expr::Literal(value, metadata.clone()),
            Err(_) => cast(expr, to.clone()),
        },
        _ => cast(expr, to.clone()),
    }
}

/// Two values of one column, in the type of both: planning takes the type of a choice from its first branch,
/// so that rows of another one would not be those that the plan says.
///
/// # Errors
/// `TypeError` for values that do not fit into one column.
pub(crate) fn unified(
    schema: &dyn datafusion::common::ExprSchema,
    left: Expr,
    right: Expr,
) -> Result<(Expr, Expr)> {
    let (own, other) = (left.get_type(schema)?, right.get_type(schema)?);
    if own == other {
        return Ok((left, right));
    }
    let common = match of_exprs((&left, &own), (&right, &other), OutOfRange::Widens)? {
        Some(common) => common,
        None => of_values((&left, &own), (&right, &other))?,
    };
    Ok((as_type(left, &own, &common), as_type(right, &other, &common)))
}

/// The type that two values meet in that are not both numbers. A text of the program may stand for a time.
fn of_values(left: (&Expr, &DataType), right: (&Expr, &DataType)) -> Result<DataType> {
    let stands_for = |value: &Expr, dtype: &DataType| match value {
        Expr::Literal(value, _) => {
            let is_text = value.try_as_str().flatten().is_some();
            is_text && dtype.is_temporal() && value.cast_to(dtype).is_ok()
        }
        _ => false,
    };
    match (left, right) {
        ((_, DataType::Null), (_, dtype)) | ((_, dtype), (_, DataType::Null)) => Ok(dtype.clone()),
        ((value, _), (_, dtype)) | ((_, dtype), (value, _)) if stands_for(value, dtype) => Ok(dtype.clone()),
        ((_, one), (_, other)) => of_column(&[one.clone(), other.clone()])?.ok_or_else(|| unfit(one, other)),
    }
}

fn unfit(one: &DataType, other: &DataType) -> Error {
    Error::Type(format!("values of {one} and of {other} do not fit into one column"))
}

/// Whether no value of one type is equal to one of another: texts and times, times with a zone and without.
pub(crate) fn never_meet(one: &DataType, other: &DataType) -> bool {
    let is_known = |dtype: &DataType| *dtype != DataType::Null;
    let numbers = |dtype: &DataType| matches!(side(dtype), Side::Number | Side::Truth);
    is_known(one) && is_known(other) && side(one) != side(other) && !(numbers(one) && numbers(other))
}

/// Kinds of values that no column has beside each other: pandas would make it one of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Text,
    Truth,
    Number,
    /// A time, or a date, of no zone.
    Reading,
    /// A time of a zone.
    Moment,
    Length,
    Other,
}

fn side(dtype: &DataType) -> Side {
    match dtype {
        DataType::Dictionary(_, values) => side(values),
        text if crate::value::is_text(text) => Side::Text,
        DataType::Boolean => Side::Truth,
        number if number.is_numeric() => Side::Number,
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => Side::Reading,
        DataType::Timestamp(_, Some(_)) => Side::Moment,
        DataType::Duration(_) => Side::Length,
        _ => Side::Other,
    }
}

/// The type of a column with values of all these types: that of numbers, the finest unit of times, or else
/// the one that the library has for values of one kind; `None` if it has none.
///
/// # Errors
/// `TypeError` for texts beside other values, and likewise for numbers, truth values, durations, and times
/// with a zone or without: pandas would make a column of objects.
pub(crate) fn of_column(types: &[DataType]) -> Result<Option<DataType>> {
    let known: Vec<&DataType> = types.iter().filter(|dtype| **dtype != DataType::Null).collect();
    let Some((first, rest)) = known.split_first() else { return Ok(None) };
    if let Some(other) = rest.iter().find(|dtype| side(dtype) != side(first)) {
        return Err(unfit(first, other));
    }
    Ok(rest.iter().try_fold((*first).clone(), |common, dtype| match (&common, *dtype) {
        (one, other) if one == other => Some(common),
        (DataType::Timestamp(one, zone), DataType::Timestamp(other, others)) if zone == others => {
            Some(DataType::Timestamp(finer(*one, *other), zone.clone()))
        }
        (DataType::Duration(one), DataType::Duration(other)) => Some(DataType::Duration(finer(*one, *other))),
        (DataType::Date32 | DataType::Date64, time @ DataType::Timestamp(..))
        | (time @ DataType::Timestamp(..), DataType::Date32 | DataType::Date64) => Some(time.clone()),
        (one, other) => {
            of_numbers(one, other).or_else(|| type_union_resolution(&[one.clone(), other.clone()]))
        }
    }))
}

/// The type that holds values of all these types.
///
/// # Errors
/// No type holds the values of all.
pub fn common_type(types: &[DataType]) -> Result<DataType> {
    let Some(first) = types.first() else {
        return Err(Error::Value("there is no column for this".to_owned()));
    };
    let text = crate::value::is_text;
    let known: Vec<&DataType> = types.iter().filter(|dtype| **dtype != DataType::Null).collect();
    if known.iter().all(|dtype| *dtype == first) {
        return Ok(first.clone());
    }
    if known.iter().all(|dtype| text(dtype)) {
        return Ok(DataType::Utf8);
    }
    match known.iter().find(|dtype| !dtype.is_numeric()) {
        None => {
            let common =
                known.iter().try_fold((*known[0]).clone(), |common, dtype| of_numbers(&common, dtype));
            // Decimals have no type with others but that of floats.
            Ok(common.unwrap_or(DataType::Float64))
        }
        Some(other) => {
            let text = "values of these columns do not fit into one column";
            Err(Error::Type(format!("{text}: {first} and {other}; select columns of one kind first")))
        }
    }
}

/// The finer of two units of time.
pub(crate) fn finer(one: TimeUnit, other: TimeUnit) -> TimeUnit {
    let rank = |unit: TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    };
    if rank(one) < rank(other) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::{col, lit};

    const TYPES: [DataType; 12] = [
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
    ];

    /// NumPy 2: `np.result_type(row, column).char` of each pair, in the order of `TYPES`.
    const RESULTS: [&str; 12] = [
        "?bhiqBHILefd",
        "bbhiqhiqdefd",
        "hhhiqhiqdffd",
        "iiiiqiiqdddd",
        "qqqqqqqqdddd",
        "BhhiqBHILefd",
        "HiiiqHHILffd",
        "IqqqqIIILddd",
        "LddddLLLLddd",
        "eefddefddefd",
        "fffddffddffd",
        "dddddddddddd",
    ];

    #[test]
    fn the_common_type_is_that_of_numpy() {
        let letter = |dtype: &DataType| {
            TYPES.iter().zip("?bhiqBHILefd".chars()).find(|(known, _)| *known == dtype).unwrap().1
        };
        for (one, row) in TYPES.iter().zip(RESULTS) {
            let found: String = TYPES.iter().map(|other| letter(&of_numbers(one, other).unwrap())).collect();
            assert_eq!(found, row, "{one}");
        }
        assert_eq!(of_numbers(&DataType::Utf8, &DataType::Int8), None);
    }

    #[test]
    fn a_number_of_the_program_takes_the_type_of_the_column() {
        let met = |number: Expr, column: DataType, out_of_range| {
            let own = match &number {
                Expr::Literal(value, _) => value.data_type(),
                _ => unreachable!(),
            };
            of_exprs((&col("x"), &column), (&number, &own), out_of_range)
        };
        let refused = |number, column| met(number, column, OutOfRange::Refused).unwrap();
        assert_eq!(refused(lit(1_i64), DataType::Int8), Some(DataType::Int8));
        assert_eq!(refused(lit(1_i64), DataType::UInt64), Some(DataType::UInt64));
        assert_eq!(refused(lit(0.1), DataType::Float32), Some(DataType::Float32));
        assert_eq!(refused(lit(0.1), DataType::Int8), Some(DataType::Float64));
        assert_eq!(refused(lit(1_i64), DataType::Boolean), Some(DataType::Int64));
        assert_eq!(refused(lit(true), DataType::Int16), Some(DataType::Int16));
        assert_eq!(met(lit(128_i64), DataType::Int8, OutOfRange::Refused).unwrap_err().class(), "ValueError");
        assert_eq!(
            met(lit(-1_i64), DataType::UInt64, OutOfRange::Refused).unwrap_err().class(),
            "ValueError"
        );
        assert_eq!(met(lit(128_i64), DataType::Int8, OutOfRange::Widens).unwrap(), Some(DataType::Int16));
        assert_eq!(met(lit(-1_i64), DataType::UInt64, OutOfRange::Widens).unwrap(), Some(DataType::Float64));
    }
}
