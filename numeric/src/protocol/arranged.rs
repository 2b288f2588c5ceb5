//! Operations that move, repeat, join and cut arrays.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor, tuple};
use super::value::Value;
use crate::joined::{append, broadcast_arrays, broadcast_shapes, column_stack, dstack, hstack, vstack};
use crate::manipulate::concatenate;
use crate::tensor::Tensor;
use tharsis_kernels::Scalar;

/// All operations that arrange elements anew.
pub(super) const ARRANGED: &[Row] = &[
    ("nd.mT", "(x)", "the last two axes exchanged", |_, args| {
        tensor(args.tensor(0, "x")?.matrix_transpose())
    }),
    ("np.append", "(arr, values, axis=None)", "arrays behind one another", |_, args| {
        let (x, other) = (args.tensor(0, "arr")?, args.tensor(1, "values")?);
        tensor(append(&x, &other, axis(args, 2)?))
    }),
    ("np.array_split", "(ary, indices_or_sections, axis=0)", "parts of about equal length", |_, args| {
        split(args, false, None)
    }),
    ("np.atleast_1d", "(*arys)", "with at least one axis", |_, args| atleast(args, 1)),
    ("np.atleast_2d", "(*arys)", "with at least two axes", |_, args| atleast(args, 2)),
    ("np.atleast_3d", "(*arys)", "with at least three axes", |_, args| atleast(args, 3)),
    ("np.broadcast_arrays", "(*args)", "repeated to one shape", |_, args| {
        let arrays = args.rest(0).into_iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
        tuple(broadcast_arrays(&arrays.iter().collect::<Vec<_>>())?)
    }),
    ("np.broadcast_shapes", "(*args)", "the shape that all broadcast to", |_, args| {
        let shapes = args.rest(0).iter().map(Value::integers).collect::<Result<Vec<_>, _>>()?;
        let shapes = shapes.iter().map(|shape| super::args::extents_of(shape));
        let shapes = shapes.collect::<Result<Vec<_>, _>>()?;
        let shape = broadcast_shapes(&shapes.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let number = |extent: usize| Value::Number(Scalar::Int(extent as i64));
        Ok(Value::Tuple(shape.into_iter().map(number).collect()))
    }),
    ("np.column_stack", "(tup)", "arrays as columns beside one another", |_, args| {
        joined(args, column_stack)
    }),
    ("np.delete", "(arr, obj, axis=None)", "without the parts at positions", |_, args| {
        let x = args.tensor(0, "arr")?;
        let positions = args.need(1, "obj")?.integers()?;
        match axis(args, 2)? {
            Some(axis) => tensor(x.delete(&positions, axis)),
            None => tensor(x.ravel().delete(&positions, 0)),
        }
    }),
    ("np.diff", "(a, n=1, axis=-1, prepend=None, append=None)", "differences of neighbours", |_, args| {
        diff(args)
    }),
    ("np.dsplit", "(ary, indices_or_sections)", "parts along the third axis", |_, args| {
        split(args, true, Some(("dsplit only works on arrays of 3 or more dimensions", 3, 2)))
    }),
    ("np.dstack", "(tup)", "arrays along the third axis", |_, args| joined(args, dstack)),
    ("np.ediff1d", "(ary)", "differences of neighbours, as if flattened", |_, args| {
        tensor(args.tensor(0, "ary")?.ediff1d())
    }),
    ("np.fliplr", "(m)", "columns in reverse order", |_, args| {
        let x = args.tensor(0, "m")?;
        least(&x, 2, "Input must be >= 2-d.")?;
        tensor(x.flip(Some(&[1])))
    }),
    ("np.flipud", "(m)", "rows in reverse order", |_, args| {
        let x = args.tensor(0, "m")?;
        least(&x, 1, "Input must be >= 1-d.")?;
        tensor(x.flip(Some(&[0])))
    }),
    ("np.hsplit", "(ary, indices_or_sections)", "parts beside one another", |_, args| {
        split(args, true, Some(("hsplit only works on arrays of 1 or more dimensions", 1, 1)))
    }),
    ("np.hstack", "(tup)", "arrays beside one another", |_, args| joined(args, hstack)),
    ("np.matrix_transpose", "(x)", "the last two axes exchanged", |_, args| {
        tensor(args.tensor(0, "x")?.matrix_transpose())
    }),
    ("np.repeat", "(a, repeats, axis=None)", "each element repeated", |_, args| {
        let (x, repeats) = (args.tensor(0, "a")?, args.need(1, "repeats")?);
        let (x, axis) = match axis(args, 2)? {
            Some(axis) => (in_some_axis(x, axis)?, axis),
            None => (x.in_one_axis(), 0),
        };
        match repeats {
            Value::Number(Scalar::Int(times)) => match usize::try_from(times) {
                Ok(times) => tensor(x.repeat(times, axis)),
                Err(_) => Err(Failure::value("repeats may not contain negative values.")),
            },
            other => tensor(x.repeat_each(&other.tensor()?, axis)),
        }
    }),
    ("np.resize", "(a, new_shape)", "elements from the first on again, in another shape", |_, args| {
        let x = args.tensor(0, "a")?;
        let shape = args.need(1, "new_shape")?.integers()?;
        let negative = |_| Failure::value("all elements of `new_shape` must be non-negative");
        let shape: Result<Vec<usize>, _> = shape.into_iter().map(usize::try_from).collect();
        tensor(x.resize(&shape.map_err(negative)?))
    }),
    ("np.roll", "(a, shift, axis=None)", "moved along axes, from one end to the other", |_, args| {
        let (x, shifts) = (args.tensor(0, "a")?, args.need(1, "shift")?.integers()?);
        match args.integers(2, "axis")? {
            None => tensor(x.roll_flat(shifts.iter().fold(0, |sum, &shift| sum.wrapping_add(shift)))),
            Some(axes) => tensor(x.roll(&pairs(&axes, &shifts)?)),
        }
    }),
    ("np.rot90", "(m, k=1, axes=(0, 1))", "turned by right angles", |_, args| {
        let x = args.tensor(0, "m")?;
        let times = args.integer_or(1, "k", 1)?;
        match args.integers(2, "axes")?.as_deref() {
            None => tensor(x.rot90(times, [0, 1])),
            Some(&[a, b]) => tensor(x.rot90(times, [a, b])),
            Some(_) => Err(Failure::value("len(axes) must be 2.")),
        }
    }),
    (
        "np.split",
        "(ary, indices_or_sections, axis=0)",
        "parts of equal length, or between positions",
        |_, args| split(args, true, None),
    ),
    ("np.tile", "(A, reps)", "repeated as a whole", |_, args| {
        let (x, times) = (args.tensor(0, "A")?, args.need(1, "reps")?.integers()?);
        tensor(x.tile(&super::args::extents_of(&times)?))
    }),
    ("np.unstack", "(x, axis=0)", "the parts along an axis", |_, args| {
        let x = args.tensor(0, "x")?;
        tuple(x.unstack(args.integer_or(usize::MAX, "axis", 0)?)?)
    }),
    ("np.vsplit", "(ary, indices_or_sections)", "parts below one another", |_, args| {
        split(args, true, Some(("vsplit only works on arrays of 2 or more dimensions", 2, 0)))
    }),
    ("np.vstack", "(tup)", "arrays below one another", |_, args| joined(args, vstack)),
];

/// An axis, or none.
pub(super) fn axis(args: &mut Args, position: usize) -> Result<Option<i64>, Failure> {
    match args.take(position, "axis") {
        None | Some(Value::None) => Ok(None),
        Some(axis) => axis.integer().map(Some),
    }
}

/// An array whose axis is asked for: one without axes is taken for one of one element.
pub(super) fn in_some_axis(x: Tensor, axis: i64) -> Result<Tensor, Failure> {
    Ok(if x.ndim()? == 0 && matches!(axis, 0 | -1) { x.atleast(1) } else { x })
}

fn least(x: &Tensor, rank: usize, message: &str) -> Result<(), Failure> {
    if x.ndim()? < rank { Err(Failure::value(message)) } else { Ok(()) }
}

fn joined(args: &mut Args, join: fn(&[&Tensor]) -> Tensor) -> Result<Value, Failure> {
    let parts = args.tensors(0, "tup")?;
    tensor(join(&parts.iter().collect::<Vec<_>>()))
}

fn atleast(args: &mut Args, rank: usize) -> Result<Value, Failure> {
    let arrays = args.rest(0).into_iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
    match arrays.as_slice() {
        [one] => tensor(one.atleast(rank)),
        several => tuple(several.iter().map(|x| x.atleast(rank))),
    }
}

/// Axes with their shifts; one of either is for all.
fn pairs(axes: &[i64], shifts: &[i64]) -> Result<Vec<(i64, i64)>, Failure> {
    match (axes, shifts) {
        (&[axis], _) => Ok(shifts.iter().map(|&shift| (axis, shift)).collect()),
        (_, &[shift]) => Ok(axes.iter().map(|&axis| (axis, shift)).collect()),
        _ if axes.len() == shifts.len() => Ok(axes.iter().copied().zip(shifts.iter().copied()).collect()),
        _ => Err(Failure::value("shape mismatch: shifts and axes cannot be broadcast to a single shape")),
    }
}

/// Parts between positions, or a number of them; `fixed` is an error, the least rank and the axis.
fn split(args: &mut Args, equal: bool, fixed: Option<(&str, usize, i64)>) -> Result<Value, Failure> {
    let (x, sections) = (args.tensor(0, "ary")?, args.need(1, "indices_or_sections")?);
    let axis = match fixed {
        None => args.integer_or(2, "axis", 0)?,
        Some((message, rank, axis)) => {
            least(&x, rank, message)?;
            // The parts of an array of one axis lie beside one another along that.
            if x.ndim()? == 1 { 0 } else { axis }
        }
    };
    let parts = match sections {
        list @ (Value::List(_) | Value::Tuple(_)) => x.split_at(&list.integers()?, axis)?,
        count => {
            let count = count.integer()?;
            let parts = usize::try_from(count).unwrap_or(0);
            if parts == 0 && equal && count == 0 {
                return Err(Failure::new("ZeroDivisionError", "integer modulo by zero"));
            }
            let parts_of = x.array_split(parts, axis)?;
            let extent = |part: &Tensor| -> Result<usize, Failure> {
                let at = tharsis_graph::shape::normalize_axis(axis, part.ndim()?)?;
                Ok(part.shape()?[at])
            };
            let lengths = parts_of.iter().map(extent).collect::<Result<Vec<_>, _>>()?;
            if equal && lengths.windows(2).any(|pair| pair[0] != pair[1]) {
                return Err(Failure::value("array split does not result in an equal division"));
            }
            parts_of
        }
    };
    Ok(Value::List(parts.into_iter().map(tensor).collect::<Result<_, _>>()?))
}

fn diff(args: &mut Args) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let times = args.integer_or(1, "n", 1)?;
    let axis = args.integer_or(2, "axis", -1)?;
    let (before, behind) = (args.take(3, "prepend"), args.take(4, "append"));
    let Ok(times) = usize::try_from(times) else {
        return Err(Failure::value(format!("order must be non-negative but got {times}")));
    };
    if times == 0 {
        return tensor(x);
    }
    least(&x, 1, "diff requires input that is at least one dimensional")?;
    let mut parts = Vec::new();
    for part in [before, Some(Value::Tensor(x.clone())), behind] {
        match part {
            None | Some(Value::None) => {}
            Some(part) => parts.push(edge(part.tensor()?, &x, axis)?),
        }
    }
    match parts.as_slice() {
        [only] => tensor(only.diff(times, axis)),
        several => tensor(concatenate(&several.iter().collect::<Vec<_>>(), axis).diff(times, axis)),
    }
}

/// The part before or behind an array: a number is put there once for each line.
fn edge(part: Tensor, x: &Tensor, axis: i64) -> Result<Tensor, Failure> {
    if part.ndim()? != 0 {
        return Ok(part);
    }
    let mut shape = x.shape()?.to_vec();
    let at = tharsis_graph::shape::normalize_axis(axis, shape.len())?;
    shape[at] = 1;
    Ok(part.broadcast_to(&shape))
}
