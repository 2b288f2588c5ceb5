//! Operations that put parts in, around and together.

use super::Failure;
use super::args::Args;
use super::arranged::axis;
use super::row::{Row, tensor};
use super::value::Value;
use crate::pad::Padding;
use crate::parts::{Block, block, lexsort};
use crate::tensor::Tensor;
use tharsis_kernels::Scalar;

/// Borders, insertions, blocks, and partial orders.
pub(super) const BORDERS: &[Row] = &[
    ("np.argpartition", "(a, kth, axis=-1)", "positions in the order of partition", |_, args| {
        partition(args, Tensor::argpartition)
    }),
    ("np.block", "(arrays)", "nested lists of blocks put together", |_, args| {
        tensor(block(&blocks(args.need(0, "arrays")?)?))
    }),
    ("np.insert", "(arr, obj, values, axis=None)", "with values put before positions", |_, args| {
        let (x, at) = (args.tensor(0, "arr")?, args.need(1, "obj")?.tensor()?);
        let values = args.need(2, "values")?.operand()?;
        match axis(args, 3)? {
            Some(axis) => tensor(x.insert(&at, values, axis)),
            None => tensor(x.in_one_axis().insert(&at, values, 0)),
        }
    }),
    ("np.lexsort", "(keys, axis=-1)", "positions in the order of several keys", |_, args| {
        let keys = match args.need(0, "keys")? {
            Value::Tensor(keys) => keys.unstack(0)?,
            keys => Args::parts(keys)?,
        };
        let axis = args.integer_or(1, "axis", -1)?;
        tensor(lexsort(&keys.iter().collect::<Vec<_>>(), axis))
    }),
    (
        "np.pad",
        "(array, pad_width, mode='constant', stat_length=None, constant_values=0, end_values=0, \
         reflect_type='even')",
        "with borders",
        |_, args| pad(args),
    ),
    ("np.partition", "(a, kth, axis=-1)", "elements so that some are where they are in order", |_, args| {
        partition(args, Tensor::partition)
    }),
];

fn blocks(value: Value) -> Result<Block, Failure> {
    match value {
        Value::List(parts) => Ok(Block::List(parts.into_iter().map(blocks).collect::<Result<_, _>>()?)),
        Value::Tuple(_) => Err(Failure::kind("arrays is a tuple. Only lists can be used to arrange blocks")),
        other => other.tensor().map(Block::Tensor),
    }
}

fn partition(args: &mut Args, of: fn(&Tensor, &[i64], i64) -> Tensor) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let kth = args.need(1, "kth")?.integers()?;
    match args.take(2, "axis") {
        None => tensor(of(&x, &kth, -1)),
        Some(Value::None) => tensor(of(&x.in_one_axis(), &kth, 0)),
        Some(axis) => tensor(of(&x, &kth, axis.integer()?)),
    }
}

fn pad(args: &mut Args) -> Result<Value, Failure> {
    let x = args.tensor(0, "array")?;
    let rank = x.ndim()?;
    let extent = |number: Scalar| match number {
        Scalar::Int(extent) => {
            usize::try_from(extent).map_err(|_| Failure::value("index can't contain negative values"))
        }
        _ => Err(Failure::kind("`pad_width` must be of integral type.")),
    };
    let extents = |value: Value| -> Result<Vec<[usize; 2]>, Failure> {
        let pair = |[before, behind]: [Scalar; 2]| Ok([extent(before)?, extent(behind)?]);
        pairs(value, rank)?.into_iter().map(pair).collect()
    };
    let widths = extents(args.need(1, "pad_width")?)?;
    let mode = args.text_or(2, "mode", "constant")?;
    let mut numbers = |name| match args.take(usize::MAX, name) {
        None => pairs(Value::Number(Scalar::Int(0)), rank),
        Some(value) => pairs(value, rank),
    };
    let with = match mode.as_str() {
        "constant" => Padding::Constant(numbers("constant_values")?),
        "empty" => Padding::Constant(pairs(Value::Number(Scalar::Int(0)), rank)?),
        "linear_ramp" => Padding::LinearRamp(numbers("end_values")?),
        "edge" => Padding::Edge,
        "wrap" => Padding::Wrap,
        "reflect" | "symmetric" => {
            let odd = args.text_or(usize::MAX, "reflect_type", "even")? == "odd";
            if mode == "reflect" { Padding::Reflect { odd } } else { Padding::Symmetric { odd } }
        }
        "maximum" | "mean" | "median" | "minimum" => {
            let lengths = match args.take(usize::MAX, "stat_length") {
                None | Some(Value::None) => None,
                Some(lengths) => Some(extents(lengths)?),
            };
            match mode.as_str() {
                "maximum" => Padding::Maximum(lengths),
                "mean" => Padding::Mean(lengths),
                "median" => Padding::Median(lengths),
                _ => Padding::Minimum(lengths),
            }
        }
        other => return Err(Failure::value(format!("mode '{other}' is not supported"))),
    };
    tensor(x.pad(&widths, &with))
}

/// A pair for each axis, from a number for all, a pair for all, or a pair or number for each.
fn pairs(value: Value, rank: usize) -> Result<Vec<[Scalar; 2]>, Failure> {
    let number = |value: &Value| match value {
        Value::Number(number) => Ok(*number),
        other => Err(Failure::kind(format!("expected a number, found {other:?}"))),
    };
    let both = |parts: &[Value]| match parts {
        [one] => Ok([number(one)?; 2]),
        [before, behind] => Ok([number(before)?, number(behind)?]),
        _ => Err(Failure::value("operands could not be broadcast together with remapped shapes")),
    };
    match value {
        Value::List(parts) | Value::Tuple(parts) => match parts.first() {
            Some(Value::List(_) | Value::Tuple(_)) => {
                let pair = |part: &Value| match part {
                    Value::List(parts) | Value::Tuple(parts) => both(parts),
                    one => Ok([number(one)?; 2]),
                };
                match parts.as_slice() {
                    [only] => Ok(vec![pair(only)?; rank]),
                    several if several.len() == rank => several.iter().map(pair).collect(),
                    _ => Err(Failure::value("operands could not be broadcast together with remapped shapes")),
                }
            }
            _ => Ok(vec![both(&parts)?; rank]),
        },
        one => Ok(vec![[number(&one)?; 2]; rank]),
    }
}
