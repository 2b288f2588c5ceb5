//! Operators of series and frames, value by value, and their reductions.

use super::Failure;
use super::args::{Args, operand};
use super::row::Row;
use super::value::Value;
use tharsis_dataframe::{FrameOperand, Operator, Series, Value as Scalar};

/// Rows of an operator: of a series, of a frame, and NumPy's.
macro_rules! operators {
    ($($name:literal $numpy:literal $doc:literal),*) => {
        &[$((concat!("pd.Series.", $name), "(other, fill_value=None)", $doc, binary),
            (concat!("pd.DataFrame.", $name), "(other, axis=1, fill_value=None)", $doc, binary),
            (concat!("np.", $numpy), "(x1, x2)", $doc, binary)),*,
            ("np.logical_not", "(x)", "the opposite truth value", unary),
            ("np.invert", "(x)", "the opposite truth value", unary),
            ("np.negative", "(x)", "the value with the other sign", unary),
            ("np.absolute", "(x)", "the absolute value", unary),
            ("np.logical_and", "(x1, x2)", "whether both hold", binary),
            ("np.logical_or", "(x1, x2)", "whether one holds", binary),
            ("np.logical_xor", "(x1, x2)", "whether exactly one holds", binary),
            ("np.bitwise_and", "(x1, x2)", "whether both hold", binary),
            ("np.bitwise_or", "(x1, x2)", "whether one holds", binary),
            ("np.bitwise_xor", "(x1, x2)", "whether exactly one holds", binary)]
    };
}

/// Rows of operators of series and frames beside those that NumPy has too.
macro_rules! both {
    ($($name:literal $signature:literal $doc:literal $run:ident),*) => {
        &[$((concat!("pd.Series.", $name), $signature, $doc, $run),
            (concat!("pd.DataFrame.", $name), $signature, $doc, $run)),*]
    };
}

pub(super) const OPERATORS: &[Row] = both!(
    "radd" "(other, fill_value=None)" "the sum, the other first" reversed,
    "rsub" "(other, fill_value=None)" "the difference, the other first" reversed,
    "rmul" "(other, fill_value=None)" "the product, the other first" reversed,
    "rdiv" "(other, fill_value=None)" "the quotient, the other first" reversed,
    "rfloordiv" "(other, fill_value=None)" "the quotient rounded down, the other first" reversed,
    "rmod" "(other, fill_value=None)" "the remainder, the other first" reversed,
    "rpow" "(other, fill_value=None)" "the power, the other first" reversed,
    "and" "(other)" "whether both hold" binary,
    "or" "(other)" "whether one holds" binary,
    "xor" "(other)" "whether exactly one holds" binary,
    "neg" "()" "the value with the other sign" unary,
    "invert" "()" "the opposite truth value" unary
);

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
    let fill = args.given(usize::MAX, "fill_value").map(Value::scalar).transpose()?;
    let of_rows = match (&left, &right) {
        (Value::Frame(_), Value::Series(_)) => !args.axis_or(2, true)?,
        _ => {
            args.given(2, "level");
            args.given(usize::MAX, "axis");
            false
        }
    };
    let operator = operator(name)?;
    Ok(match (left, right) {
        (Value::Frame(frame), Value::Series(series)) if of_rows => {
            Value::Frame(frame.operate_rows(operator, &series))
        }
        (Value::Frame(frame), right) => {
            let right = frame_operand(right)?;
            Value::Frame(match fill {
                Some(fill) => frame.operate_filled(operator, right, fill),
                None => frame.operate(operator, right),
            })
        }
        (left, Value::Frame(right)) => Value::Frame(right.operate_reversed(operator, frame_operand(left)?)),
        (Value::Series(left), right) => {
            let right = operand(right)?;
            Value::Series(match fill {
                Some(fill) => {
                    let (left, right) = left.align_filled(right, fill);
                    left.operate(operator, &right)
                }
                None => left.operate(operator, right),
            })
        }
        (left, Value::Series(right)) => Value::Series(mirrored(operator, left.scalar()?, &right)),
        (left, right) => {
            let kinds = (left.kind(), right.kind());
            return Err(Failure::missing(format!("{name} of {} and {} without frames", kinds.0, kinds.1)));
        }
    })
}

fn frame_operand(value: Value) -> Result<FrameOperand, Failure> {
    Ok(match value {
        Value::Frame(frame) => FrameOperand::Frame(frame),
        Value::Series(series) => FrameOperand::Series(series),
        Value::List(_) => return Err(Failure::missing("a list as an operand is not implemented")),
        one => FrameOperand::Value(one.scalar()?),
    })
}

/// The operator for a name of pandas or NumPy.
fn operator(name: &str) -> Result<Operator, Failure> {
    Ok(match name {
        "true_divide" => Operator::Div,
        "floor_divide" => Operator::FloorDiv,
        "remainder" => Operator::Rem,
        "power" => Operator::Pow,
        "equal" => Operator::Eq,
        "not_equal" => Operator::Ne,
        "less" => Operator::Lt,
        "less_equal" => Operator::Le,
        "greater" => Operator::Gt,
        "greater_equal" => Operator::Ge,
        "logical_and" | "bitwise_and" => Operator::And,
        "logical_or" | "bitwise_or" => Operator::Or,
        "logical_xor" | "bitwise_xor" => Operator::Xor,
        other => Operator::named(other)?,
    })
}

/// An operator whose left side is one value.
fn mirrored(operator: Operator, left: Scalar, right: &Series) -> Series {
    right.filled_with(left).operate(operator, right)
}

fn reversed(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let operator = operator(name.strip_prefix('r').unwrap_or(name))?;
    let own = args.need(0, "self")?;
    let other = args.need(1, "other")?;
    let fill = args.given(usize::MAX, "fill_value").map(Value::scalar).transpose()?;
    Ok(match (own, other, fill) {
        (Value::Frame(frame), other, Some(fill)) => {
            Value::Frame(frame.operate_reversed_filled(operator, frame_operand(other)?, fill))
        }
        (Value::Frame(frame), other, None) => {
            Value::Frame(frame.operate_reversed(operator, frame_operand(other)?))
        }
        (own, other, Some(fill)) => {
            let (own, other) = own.series()?.align_filled(operand(other)?, fill);
            Value::Series(other.operate(operator, &own))
        }
        (own, Value::Series(other), None) => Value::Series(other.operate(operator, &own.series()?)),
        (own, other, None) => Value::Series(mirrored(operator, other.scalar()?, &own.series()?)),
    })
}

fn unary(name: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(match (args.need(0, "self")?, name) {
        (Value::Frame(frame), "absolute") => Value::Frame(frame.abs()),
        (Value::Frame(frame), "neg" | "negative") => Value::Frame(-&frame),
        (Value::Frame(frame), _) => Value::Frame(!&frame),
        (other, "absolute") => Value::Series(other.series()?.abs()),
        (other, "neg" | "negative") => Value::Series(-&other.series()?),
        (other, _) => Value::Series(!&other.series()?),
    })
}
