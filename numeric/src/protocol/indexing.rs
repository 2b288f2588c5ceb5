//! Operations that take parts of arrays by position, and that put others in their place.

use super::Failure;
use super::args::Args;
use super::arranged::{axis, in_some_axis};
use super::row::{Row, tensor};
use super::value::Value;
use crate::advanced::Selector;
use crate::dtypes::{Casting, can_cast};
use crate::index::Index;
use crate::operand::{Operand, cast};
use crate::tensor::Tensor;
use tharsis_kernels::{DType, Kind, Scalar};

/// All operations on positions.
pub(super) const INDEXING: &[Row] = &[
    ("getitem", "(x, index)", "a part of an array, or of a tuple", |_, args| {
        let x = match args.need(0, "x")? {
            Value::Tuple(parts) | Value::Fields(_, parts) => {
                return part_of(parts, args.need(1, "index")?.integer()?);
            }
            other => other.tensor()?,
        };
        let index = args.need(1, "index")?;
        // Few positions in a list are parts of the plan: nothing is looked up when it runs.
        if let Value::List(parts) = &index
            && parts.len() <= LIST_MAX
            && parts.iter().all(|part| matches!(part, Value::Number(Scalar::Int(_))))
            && !parts.is_empty()
            && 0 < x.ndim()?
        {
            return tensor(x.take(&index.integers()?, 0));
        }
        tensor(x.select(&selectors(index)?))
    }),
    (
        "np.put",
        "(a, ind, v, mode='raise')",
        "a new array with values at positions, as if flattened",
        |_, args| {
            let (x, positions, values) = (args.tensor(0, "a")?, args.tensor(1, "ind")?, args.tensor(2, "v")?);
            let count = x.size()?;
            let positions = bounded(args, 3, &positions, count)?;
            tensor(x.put(&positions, &values))
        },
    ),
    (
        "np.put_along_axis",
        "(arr, indices, values, axis=-1)",
        "a new array with values at positions along an axis",
        |_, args| {
            let (x, positions) = (args.tensor(0, "arr")?, args.tensor(1, "indices")?);
            let values = args.need(2, "values")?.operand()?;
            tensor(x.put_along_axis(&positions, values, args.integer_or(3, "axis", -1)?))
        },
    ),
    ("setitem", "(x, index, value)", "a new array with others in place of a part", |_, args| {
        let x = args.tensor(0, "x")?;
        let index = selectors(args.need(1, "index")?)?;
        let value = args.need(2, "value")?.operand()?;
        tensor(x.set(&index, value))
    }),
    ("np.take", "(a, indices, axis=None, mode='raise')", "parts at positions along an axis", |_, args| {
        let (x, positions) = (args.tensor(0, "a")?, args.need(1, "indices")?);
        if let Value::Tensor(positions) = &positions
            && !can_cast(positions.dtype()?, DType::I64, Casting::SameKind)
        {
            let from = positions.dtype()?;
            let text =
                format!("Cannot cast array data from {from} to int64 according to the rule 'same_kind'");
            return Err(Failure::kind(text));
        }
        let positions = positions.tensor()?;
        let (x, at) = match axis(args, 2)? {
            Some(axis) => (in_some_axis(x, axis)?, axis),
            None => (x.in_one_axis(), 0),
        };
        let along = tharsis_graph::shape::normalize_axis(at, x.ndim()?)?;
        let extent = x.shape()?[along] as u64;
        let positions = bounded(args, 3, &positions, extent)?;
        tensor(x.take_at(&positions, at))
    }),
    ("np.take_along_axis", "(arr, indices, axis=-1)", "elements at positions on their lines", |_, args| {
        let (x, positions) = (args.tensor(0, "arr")?, args.tensor(1, "indices")?);
        let axis = match args.take(2, "axis") {
            None => -1,
            Some(Value::None) => {
                if positions.ndim()? != 1 {
                    return Err(Failure::value("when axis=None, `indices` must have a single dimension."));
                }
                return tensor(x.in_one_axis().take_along_axis(&positions, 0));
            }
            Some(axis) => axis.integer()?,
        };
        tensor(x.take_along_axis(&positions, axis))
    }),
];

/// Up to this number, positions in a list are parts of the plan.
const LIST_MAX: usize = 64;

/// Positions as an option has them that are out of range: refused, counted around, or at the nearest end.
fn bounded(args: &mut Args, place: usize, positions: &Tensor, extent: u64) -> Result<Tensor, Failure> {
    let mode = args.text_or(place, "mode", "raise")?;
    if mode != "raise" && (Kind::Float <= positions.dtype()?.kind()) {
        return Err(Failure::kind("Cannot cast array data from float to int64 according to the rule 'safe'"));
    }
    let known = || match extent {
        0 => Err(Failure::new("IndexError", "cannot do a non-empty take from an empty axes.")),
        u64::MAX => Err(Failure::missing(format!("mode {mode:?} on an array of unknown size"))),
        extent => Ok(extent as i64),
    };
    let whole = cast(positions, DType::I64);
    match mode.as_str() {
        "raise" => Ok(positions.clone()),
        _ if positions.size()? == 0 => Ok(positions.clone()),
        "wrap" => Ok(whole.remainder(known()?)),
        "clip" => Ok(whole.clip(0, known()? - 1)),
        other => {
            Err(Failure::value(format!("clipmode must be one of 'clip', 'raise', or 'wrap' (got '{other}')")))
        }
    }
}

/// The parts of an index expression.
fn selectors(index: Value) -> Result<Vec<Selector>, Failure> {
    match index {
        Value::Tuple(parts) | Value::Fields(_, parts) => parts.into_iter().map(selector).collect(),
        one => Ok(vec![selector(one)?]),
    }
}

fn selector(value: Value) -> Result<Selector, Failure> {
    let refused = || {
        Failure::new(
            "IndexError",
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean \
             arrays are valid indices",
        )
    };
    Ok(match value {
        Value::Index(index) => Selector::Basic(index),
        Value::Number(Scalar::Int(at)) => Selector::Basic(Index::At(at)),
        Value::Number(Scalar::Bool(chosen)) => Selector::Mask(Tensor::number(chosen)),
        Value::Number(Scalar::Unsigned(_)) | Value::Large(_) => {
            return Err(Failure::new("IndexError", "cannot fit 'int' into an index-sized integer"));
        }
        Value::None => Selector::Basic(Index::NewAxis),
        list @ (Value::List(_) | Value::Tuple(_)) => match list.operand()? {
            Operand::Tensor(tensor) => Selector::from(tensor),
            _ => return Err(refused()),
        },
        Value::Tensor(tensor) if tensor.dtype()?.kind() < Kind::Float => Selector::from(tensor),
        Value::Tensor(tensor) => {
            let text = match tensor.ndim()? {
                0 => return Err(refused()),
                _ => "arrays used as indices must be of integer (or boolean) type",
            };
            return Err(Failure::new("IndexError", text));
        }
        _ => return Err(refused()),
    })
}

fn part_of(mut parts: Vec<Value>, index: i64) -> Result<Value, Failure> {
    let at = if index < 0 { index + parts.len() as i64 } else { index };
    match usize::try_from(at) {
        Ok(at) if at < parts.len() => Ok(parts.swap_remove(at)),
        _ => Err(Failure::new("IndexError", "tuple index out of range")),
    }
}
