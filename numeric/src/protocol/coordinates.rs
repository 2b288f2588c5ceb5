//! Operations on coordinates and positions of programs, and choices between arrays.

use super::Failure;
use super::args::{Args, extents_of};
use super::row::{Row, tensor, tuple};
use super::selections::nonzero;
use super::value::Value;
use crate::coordinates::{ix, ravel_multi_index, select};
use crate::create::arange;
use crate::grid::tri;
use crate::operand::{Operand, cast};
use crate::tensor::Tensor;
use tharsis_graph::ops::Require;
use tharsis_kernels::{DType, Scalar};

/// All operations on coordinates.
pub(super) const COORDINATES: &[Row] = &[
    ("np.asarray_chkfinite", "(a, dtype=None)", "an array, if there is no NaN and no infinity", |_, args| {
        let x = args.tensor(0, "a")?;
        let x = args.dtype(1, "dtype")?.map_or(x.clone(), |dtype| cast(&x, dtype));
        let message = "array must not contain infs or NaNs".to_owned();
        tensor(Tensor::apply(Require { message }, &[&x, &x.isfinite().all(..)]))
    }),
    ("np.choose", "(a, choices, mode='raise')", "elements of the choice that each number says", |_, args| {
        let x = args.tensor(0, "a")?;
        let choices = operands(args.need(1, "choices")?)?;
        let count = choices.len() as i64;
        let number = match args.text_or(usize::MAX, "mode", "raise")?.as_str() {
            "wrap" if 0 < count => x.remainder(count),
            "clip" if 0 < count => x.clip(0, count - 1),
            "raise" | "wrap" | "clip" => x,
            other => return Err(mode(other)),
        };
        tensor(number.choose_from(&choices))
    }),
    ("np.diag_indices", "(n, ndim=2)", "the coordinates of the main diagonal", |_, args| {
        let count = extents_of(&[args.need(0, "n")?.integer()?])?[0];
        let rank = extents_of(&[args.integer_or(1, "ndim", 2)?])?[0];
        tuple(vec![arange(count); rank])
    }),
    ("np.diag_indices_from", "(arr)", "the coordinates of the main diagonal of an array", |_, args| {
        let x = args.tensor(0, "arr")?;
        match x.shape()? {
            &[] | &[_] => Err(Failure::value("input array must be at least 2-d")),
            shape if shape.iter().any(|&extent| extent != shape[0]) => {
                Err(Failure::value("All dimensions of input must be of equal length"))
            }
            shape => tuple(vec![arange(shape[0]); shape.len()]),
        }
    }),
    ("np.ix_", "(*args)", "positions in shapes that broadcast to their grid", |_, args| {
        let axes = args.rest(0).into_iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
        tuple(ix(&axes.iter().collect::<Vec<_>>())?)
    }),
    (
        "np.place",
        "(arr, mask, vals)",
        "a new array with the next of some values where a mask is true",
        |_, args| {
            let (x, mask) = (args.tensor(0, "arr")?, args.tensor(1, "mask")?);
            tensor(x.place(&mask, args.need(2, "vals")?.operand()?))
        },
    ),
    ("np.putmask", "(a, mask, values)", "a new array with values where a mask is true", |_, args| {
        let (x, mask) = (args.tensor(0, "a")?, args.tensor(1, "mask")?);
        tensor(x.putmask(&mask, args.need(2, "values")?.operand()?))
    }),
    (
        "np.ravel_multi_index",
        "(multi_index, dims, mode='raise', order='C')",
        "positions as if flattened, from coordinates",
        |_, args| positions(args),
    ),
    (
        "np.select",
        "(condlist, choicelist, default=0)",
        "elements of the first choice whose condition is true",
        |_, args| {
            let conditions = args.tensors(0, "condlist")?;
            let choices = operands(args.need(1, "choicelist")?)?;
            let default = args.take(2, "default").unwrap_or(Value::Number(Scalar::Int(0))).operand()?;
            tensor(select(&conditions.iter().collect::<Vec<_>>(), &choices, default))
        },
    ),
    ("np.sort_complex", "(a)", "elements in ascending order, as complex numbers", |_, args| {
        let x = args.tensor(0, "a")?.sort(-1);
        tensor(match x.dtype()? {
            dtype if dtype.is_complex() => x,
            DType::I8 | DType::I16 | DType::U8 | DType::U16 => cast(&x, DType::C64),
            _ => cast(&x, DType::C128),
        })
    }),
    ("np.tril_indices", "(n, k=0, m=None)", "the coordinates of the lower triangle", |_, args| {
        triangle(args, false)
    }),
    ("np.tril_indices_from", "(arr, k=0)", "the coordinates of the lower triangle of an array", |_, args| {
        triangle_of(args, false)
    }),
    ("np.triu_indices", "(n, k=0, m=None)", "the coordinates of the upper triangle", |_, args| {
        triangle(args, true)
    }),
    ("np.triu_indices_from", "(arr, k=0)", "the coordinates of the upper triangle of an array", |_, args| {
        triangle_of(args, true)
    }),
    (
        "np.unravel_index",
        "(indices, shape, order='C')",
        "coordinates, from positions as if flattened",
        |_, args| {
            let at = args.tensor(0, "indices")?;
            let shape = args.shape(1, "shape")?;
            row_major(args, 2)?;
            tuple(at.unravel_index(&shape)?)
        },
    ),
];

fn operands(sequence: Value) -> Result<Vec<Operand>, Failure> {
    match sequence {
        Value::Tuple(parts) | Value::List(parts) => parts.into_iter().map(Value::operand).collect(),
        Value::Tensor(stack) => Ok(stack.unstack(0)?.into_iter().map(Operand::Tensor).collect()),
        other => Err(Failure::kind(format!("expected a sequence of arrays, found {other:?}"))),
    }
}

fn mode(found: &str) -> Failure {
    Failure::value(format!("clipmode must be one of 'clip', 'raise', or 'wrap' (got '{found}')"))
}

fn row_major(args: &mut Args, place: usize) -> Result<(), Failure> {
    match args.text_or(place, "order", "C")?.as_str() {
        "C" => Ok(()),
        other => Err(Failure::missing(format!("order {other:?}: elements are always in C order"))),
    }
}

fn positions(args: &mut Args) -> Result<Value, Failure> {
    let coordinates = match args.need(0, "multi_index")? {
        Value::Tensor(stack) => stack.unstack(0)?,
        parts => Args::parts(parts)?,
    };
    let shape = args.shape(1, "dims")?;
    let modes = match args.take(2, "mode") {
        None => vec!["raise".to_owned(); shape.len()],
        Some(Value::Text(mode)) => vec![mode; shape.len()],
        Some(Value::Tuple(modes)) if modes.len() == shape.len() => modes
            .into_iter()
            .map(|found| match found {
                Value::Text(found) => Ok(found),
                other => Err(mode(&format!("{other:?}"))),
            })
            .collect::<Result<_, Failure>>()?,
        Some(other) => return Err(mode(&format!("{other:?}"))),
    };
    row_major(args, 3)?;
    let bounded = coordinates.iter().zip(shape.iter().zip(&modes)).map(|(along, (&extent, found))| {
        let extent = extent as i64;
        match found.as_str() {
            "raise" => Ok(along.clone()),
            "wrap" => Ok(along.remainder(extent.max(1))),
            "clip" => Ok(along.clip(0, (extent - 1).max(0))),
            other => Err(mode(other)),
        }
    });
    let bounded = bounded.collect::<Result<Vec<_>, Failure>>()?;
    let all = if bounded.len() == coordinates.len() { &bounded } else { &coordinates };
    tensor(ravel_multi_index(&all.iter().collect::<Vec<_>>(), &shape))
}

fn triangle(args: &mut Args, is_upper: bool) -> Result<Value, Failure> {
    let rows = args.need(0, "n")?.integer()?;
    let offset = args.integer_or(1, "k", 0)?;
    let columns = args.integer_or(2, "m", rows)?;
    let extents = extents_of(&[rows, columns])?;
    coordinates_of(extents[0], extents[1], offset, is_upper)
}

fn triangle_of(args: &mut Args, is_upper: bool) -> Result<Value, Failure> {
    let x = args.tensor(0, "arr")?;
    let offset = args.integer_or(1, "k", 0)?;
    match x.shape()? {
        &[rows, columns] => coordinates_of(rows, columns, offset, is_upper),
        _ => Err(Failure::value("input array must be 2-d")),
    }
}

fn coordinates_of(rows: usize, columns: usize, offset: i64, is_upper: bool) -> Result<Value, Failure> {
    let below = if is_upper {
        tri(rows, columns, offset.saturating_sub(1)).logical_not()
    } else {
        tri(rows, columns, offset)
    };
    nonzero(&below)
}
