//! Operators of series and frames, value by value, and their reductions.

use super::Failure;
use super::args::{Args, operand};
use super::input::{column, frame_of};
use super::row::Row;
use super::value::Value;
use crate::frame::series::{Operand, Series};
use crate::frame::{Aggregate, DataFrame};
use crate::value::Value as Scalar;

/// Rows of an operator: of a series, of a frame, and NumPy's.
macro_rules! operators {
    ($($name:literal $numpy:literal $doc:literal),*) => {
        &[$((concat!("pd.Series.", $name), "(other)", $doc, binary),
            (concat!("pd.DataFrame.", $name), "(other)", $doc, binary),
            (concat!("np.", $numpy), "(x1, x2)", $doc, binary)),*,
            ("np.logical_not", "(x)", "the opposite truth value", unary),
            ("np.invert", "(x)", "the opposite truth value", unary),
            ("np.negative", "(x)", "the value with the other sign", unary),
            ("np.absolute", "(x)", "the absolute value", unary),
            ("pd.Series.radd", "(other)", "the sum, the other first", reversed),
            ("pd.Series.rsub", "(other)", "the difference, the other first", reversed),
            ("pd.Series.rmul", "(other)", "the product, the other first", reversed),
            ("pd.Series.rdiv", "(other)", "the quotient, the other first", reversed),
            ("pd.Series.and", "(other)", "whether both hold", binary),
            ("pd.Series.or", "(other)", "whether one holds", binary),
            ("pd.Series.xor", "(other)", "whether exactly one holds", binary),
            ("pd.Series.neg", "()", "the value with the other sign", unary),
            ("pd.Series.invert", "()", "the opposite truth value", unary),
            ("np.logical_and", "(x1, x2)", "whether both hold", binary),
            ("np.logical_or", "(x1, x2)", "whether one holds", binary),
            ("np.logical_xor", "(x1, x2)", "whether exactly one holds", binary),
            ("np.bitwise_and", "(x1, x2)", "whether both hold", binary),
            ("np.bitwise_or", "(x1, x2)", "whether one holds", binary),
            ("np.bitwise_xor", "(x1, x2)", "whether exactly one holds", binary)]
    };
}

pub(super) const ELEMENTWISE: &[Row] = operators!(
    "add" "add" "the sum",
    "sub" "subtract" "the difference",
    "mul" "multiply" "the product",
    "div" "true_divide" "the quotient",
    "floordiv" "floor_divide" "the quotient rounded down",
    "mod" "remainder" "the remainder, with the divisor's sign",
    "pow" "power" "the power",
    "eq" "equal" "whether each value is equal",
    "ne" "not_equal" "whether each value differs",
    "lt" "less" "whether each value is less",
    "le" "less_equal" "whether each value is less or equal",
    "gt" "greater" "whether each value is greater",
    "ge" "greater_equal" "whether each value is greater or equal"
);

fn binary(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let (left, right) = (args.need(0, "x1")?, args.need(1, if name.len() <= 8 { "other" } else { "x2" })?);
    match (left, right) {
        (Value::Frame(frame), Value::Frame(_) | Value::Series(_)) => {
            frame.check()?;
            Err(Failure::missing("an operator of a frame and a frame or series is not implemented"))
        }
        (Value::Frame(frame), right) => {
            let right = operand(right)?;
            let columns = frame.columns()?.into_iter();
            let columns =
                columns.map(|label| Ok((label.clone(), apply(name, frame.col(&label), right.clone())?)));
            let columns: Vec<(String, Series)> = columns.collect::<Result<_, Failure>>()?;
            Ok(Value::Frame(frame.of_same_rows(columns)))
        }
        (Value::Series(left), right) => Ok(Value::Series(apply(name, left, operand(right)?)?)),
        (left, Value::Series(right)) => Ok(Value::Series(mirrored(name, left.scalar()?, &right)?)),
        (left, right) => {
            let kinds = (left.kind(), right.kind());
            Err(Failure::missing(format!("{name} of {} and {} without frames", kinds.0, kinds.1)))
        }
    }
}

/// An operator whose left side is one value.
fn mirrored(name: &str, left: Scalar, right: &Series) -> Result<Series, Failure> {
    apply(name, right.filled_with(left), Operand::Series(right.clone()))
}

fn reversed(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let other = args.need(1, "other")?.scalar()?;
    Ok(Value::Series(mirrored(name.strip_prefix('r').unwrap_or(name), other, &series)?))
}

fn apply(name: &str, left: Series, right: Operand) -> Result<Series, Failure> {
    Ok(match name {
        "add" => left + right,
        "sub" | "subtract" => left - right,
        "mul" | "multiply" => left * right,
        "div" | "true_divide" => left / right,
        "floordiv" | "floor_divide" => left.floordiv(right),
        "mod" | "remainder" => left % right,
        "pow" | "power" => left.pow(right),
        "eq" | "equal" => left.eq(right),
        "ne" | "not_equal" => left.ne(right),
        "lt" | "less" => left.lt(right),
        "le" | "less_equal" => left.le(right),
        "gt" | "greater" => left.gt(right),
        "ge" | "greater_equal" => left.ge(right),
        "and" | "logical_and" | "bitwise_and" => left & right,
        "or" | "logical_or" | "bitwise_or" => left | right,
        "xor" | "logical_xor" | "bitwise_xor" => left ^ right,
        other => return Err(Failure::missing(format!("{other} is not implemented"))),
    })
}

fn unary(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    Ok(Value::Series(match name {
        "absolute" => series.abs(),
        "neg" | "negative" => -&series,
        _ => !&series,
    }))
}

/// One aggregate of each column of a frame, as a series with the labels as index.
pub(super) fn reduced(
    frame: &DataFrame,
    aggregate: Aggregate,
    numbers_only: bool,
    args: &Args,
) -> Result<Value, Failure> {
    let numeric = |dtype: &arrow::datatypes::DataType| {
        dtype.is_numeric() || *dtype == arrow::datatypes::DataType::Boolean
    };
    let columns = frame.dtypes()?.into_iter().filter(|(_, dtype)| !numbers_only || numeric(dtype));
    reduced_each(frame, columns.map(|(label, _)| (label, aggregate)).collect(), args)
}

/// An aggregate for each of some columns.
pub(super) fn reduced_each(
    frame: &DataFrame,
    aggregates: Vec<(String, Aggregate)>,
    args: &Args,
) -> Result<Value, Failure> {
    let (mut labels, mut values) = (Vec::new(), Vec::new());
    for (label, aggregate) in aggregates {
        values.push(frame.col(&label).agg_on(aggregate, &*args.context.executor)?);
        labels.push(Scalar::from(label));
    }
    let columns = vec![("index".to_owned(), column(labels, None)?), ("0".to_owned(), column(values, None)?)];
    let frame = frame_of(columns, None)?.set_index(["index"]).unnamed_index();
    Ok(Value::Series(frame.col("0").named(None)))
}
