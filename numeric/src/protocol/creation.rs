//! Operations that make arrays.

use super::Failure;
use super::args::Args;
use super::bounds::check_number;
use super::row::{Row, tensor, tuple};
use super::value::{Value, check_numbers};
use crate::create;
use crate::dtypes::{Casting, can_cast};
use crate::elementwise::where_;
use crate::grid::{Indexing, indices, meshgrid, tri, vander};
use crate::manipulate::stack;
use crate::operand::cast;
use crate::tensor::Tensor;
use tharsis_kernels::{DType, Scalar, f16_of};

/// All operations that make arrays.
pub(super) const CREATION: &[Row] = &[
    (
        "np.arange",
        "(start, stop=None, step=1, dtype=None, device=None)",
        "numbers at equal distances",
        |_, args| {
            args.placement()?;
            arange(args)
        },
    ),
    (
        "np.array",
        "(a, dtype=None, copy=True, order='K', ndmin=0)",
        "an array of numbers, or of an array",
        |_, args| {
            let made = converted(args)?;
            let rank = args.integer_or(usize::MAX, "ndmin", 0)?;
            let missing = (made.ndim()? as i64..rank).collect::<Vec<_>>();
            tensor(if missing.is_empty() {
                made
            } else {
                made.expand_all_dims(&(0..missing.len() as i64).collect::<Vec<_>>())
            })
        },
    ),
    (
        "np.asarray",
        "(a, dtype=None, order=None, device=None, copy=None)",
        "an array of numbers, or the array itself",
        |_, args| tensor(converted(args)?),
    ),
    (
        "np.astype",
        "(x, dtype, copy=True, device=None, casting='unsafe')",
        "the same values in another dtype",
        |_, args| {
            args.placement()?;
            let x = args.tensor(0, "x")?;
            let dtype = args.dtype(1, "dtype")?;
            args.flag(usize::MAX, "copy", true)?;
            let rule = Casting::named(&args.text_or(usize::MAX, "casting", "unsafe")?)?;
            if let Some(dtype) = dtype
                && !can_cast(x.dtype()?, dtype, rule)
            {
                let text = format!("Cannot cast array data from {} to {dtype} by this rule", x.dtype()?);
                return Err(Failure::kind(text));
            }
            in_dtype(x, dtype)
        },
    ),
    ("np.copy", "(a, order='K')", "the same elements: arrays do not change", |_, args| {
        args.placement()?;
        tensor(args.tensor(0, "a")?.copy())
    }),
    ("np.diag", "(v, k=0)", "a matrix with a diagonal, or the diagonal of a matrix", |_, args| {
        let x = args.tensor(0, "v")?;
        tensor(x.diag(args.integer_or(1, "k", 0)?))
    }),
    ("np.diagflat", "(v, k=0)", "a matrix with all elements on a diagonal", |_, args| {
        let x = args.tensor(0, "v")?;
        tensor(x.ravel().diag(args.integer_or(1, "k", 0)?))
    }),
    (
        "np.empty",
        "(shape, dtype=float, order='C', device=None)",
        "an array of this shape: zeros",
        |_, args| filled(args, Scalar::Int(0)),
    ),
    (
        "np.empty_like",
        "(prototype, dtype=None, order='K', shape=None, device=None)",
        "an array of the shape of another: zeros",
        |_, args| like(args, "prototype", Scalar::Int(0)),
    ),
    ("np.eye", "(N, M=None, k=0, dtype=float, order='C', device=None)", "ones on a diagonal", |_, args| {
        args.placement()?;
        let rows = extent(args.need(0, "N")?.integer()?)?;
        let columns = extent(args.integer_or(1, "M", rows as i64)?)?;
        let offset = args.integer_or(2, "k", 0)?;
        let dtype = args.dtype(3, "dtype")?;
        in_dtype(create::eye(rows, columns, offset), dtype)
    }),
    (
        "np.full",
        "(shape, fill_value, dtype=None, order='C', device=None)",
        "one number everywhere",
        |_, args| {
            args.placement()?;
            let shape = args.shape(0, "shape")?;
            let value = args.need(1, "fill_value")?;
            let dtype = args.dtype(2, "dtype")?;
            in_dtype(filling(value, dtype)?.broadcast_to(&shape), dtype)
        },
    ),
    (
        "np.full_like",
        "(a, fill_value, dtype=None, order='K', shape=None, device=None)",
        "one number in the shape of another array",
        |_, args| {
            args.placement()?;
            let x = args.tensor(0, "a")?;
            let value = args.need(1, "fill_value")?;
            let dtype = args.dtype(2, "dtype")?.unwrap_or(x.dtype()?);
            let value = filling(value, Some(dtype))?.astype(dtype);
            match args.integers(usize::MAX, "shape")? {
                Some(shape) => tensor(value.broadcast_to(&extents(&shape)?)),
                None if x.is_known()? => tensor(value.broadcast_to(x.shape()?)),
                None => tensor(x.zeros_like().astype(dtype).add(&value).astype(dtype)),
            }
        },
    ),
    (
        "np.geomspace",
        "(start, stop, num=50, endpoint=True, dtype=None)",
        "numbers of equal ratios",
        |_, args| {
            let (start, stop) = (args.need(0, "start")?.real()?, args.need(1, "stop")?.real()?);
            let (count, endpoint) = (samples(args)?, args.flag(3, "endpoint", true)?);
            let dtype = args.dtype(4, "dtype")?;
            in_dtype(create::geomspace(start, stop, count, endpoint), dtype)
        },
    ),
    ("np.identity", "(n, dtype=float)", "ones on the main diagonal", |_, args| {
        let side = extent(args.need(0, "n")?.integer()?)?;
        let dtype = args.dtype(1, "dtype")?;
        in_dtype(create::eye(side, side, 0), dtype)
    }),
    ("np.indices", "(dimensions, dtype=int, sparse=False)", "the coordinates of each element", |_, args| {
        let shape = args.shape(0, "dimensions")?;
        let dtype = args.dtype(1, "dtype")?.unwrap_or(DType::I64);
        if args.flag(2, "sparse", false)? {
            let axes: Vec<Tensor> = shape.iter().map(|&extent| create::arange(extent)).collect();
            let grid = meshgrid(&axes.iter().collect::<Vec<_>>(), Indexing::Ij, true);
            return tuple(grid.into_iter().map(|along| along.astype(dtype)));
        }
        if shape.is_empty() {
            return in_dtype(create::zeros(&[0]), Some(dtype));
        }
        in_dtype(stack(&indices(&shape).iter().collect::<Vec<_>>(), 0), Some(dtype))
    }),
    (
        "np.linspace",
        "(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, device=None)",
        "evenly spaced numbers",
        |_, args| {
            args.placement()?;
            linspace(args)
        },
    ),
    (
        "np.logspace",
        "(start, stop, num=50, endpoint=True, base=10.0, dtype=None)",
        "powers with evenly spaced exponents",
        |_, args| {
            let (start, stop) = (args.need(0, "start")?.real()?, args.need(1, "stop")?.real()?);
            let (count, endpoint) = (samples(args)?, args.flag(3, "endpoint", true)?);
            let base = args.number_or(4, "base", 10.0)?;
            let dtype = args.dtype(5, "dtype")?;
            in_dtype(create::logspace(start, stop, count, endpoint, base), dtype)
        },
    ),
    (
        "np.meshgrid",
        "(*xi, copy=True, sparse=False, indexing='xy')",
        "the coordinates of a grid, an array for each axis",
        |_, args| {
            let sparse = args.flag(usize::MAX, "sparse", false)?;
            args.flag(usize::MAX, "copy", true)?;
            let indexing = match args.text_or(usize::MAX, "indexing", "xy")?.as_str() {
                "xy" => Indexing::Xy,
                "ij" => Indexing::Ij,
                _ => return Err(Failure::value("Valid values for `indexing` are 'xy' and 'ij'.")),
            };
            let axes = args.rest(0).into_iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
            tuple(meshgrid(&axes.iter().collect::<Vec<_>>(), indexing, sparse))
        },
    ),
    ("np.ones", "(shape, dtype=float, order='C', device=None)", "ones", |_, args| {
        filled(args, Scalar::Int(1))
    }),
    (
        "np.ones_like",
        "(a, dtype=None, order='K', shape=None, device=None)",
        "ones in the shape of another array",
        |_, args| like(args, "a", Scalar::Int(1)),
    ),
    ("np.tri", "(N, M=None, k=0, dtype=float)", "ones on a diagonal and below it", |_, args| {
        let rows = extent(args.need(0, "N")?.integer()?)?;
        let columns = extent(args.integer_or(1, "M", rows as i64)?)?;
        let offset = args.integer_or(2, "k", 0)?;
        let dtype = args.dtype(3, "dtype")?;
        in_dtype(tri(rows, columns, offset), dtype)
    }),
    ("np.tril", "(m, k=0)", "elements on a diagonal and below it, else zeros", |_, args| {
        let x = args.tensor(0, "m")?;
        tensor(x.tril(args.integer_or(1, "k", 0)?))
    }),
    ("np.triu", "(m, k=0)", "elements on a diagonal and above it, else zeros", |_, args| {
        let x = args.tensor(0, "m")?;
        tensor(x.triu(args.integer_or(1, "k", 0)?))
    }),
    ("np.vander", "(x, N=None, increasing=False)", "powers of the elements in columns", |_, args| {
        let x = args.tensor(0, "x")?;
        let columns = match args.take(1, "N") {
            None | Some(Value::None) => x.size()? as usize,
            Some(columns) => extent(columns.integer()?)?,
        };
        tensor(vander(&x, columns, args.flag(2, "increasing", false)?))
    }),
    ("np.zeros", "(shape, dtype=float, order='C', device=None)", "zeros", |_, args| {
        filled(args, Scalar::Int(0))
    }),
    (
        "np.zeros_like",
        "(a, dtype=None, order='K', shape=None, device=None)",
        "zeros in the shape of another array",
        |_, args| like(args, "a", Scalar::Int(0)),
    ),
];

/// `made`, in another dtype if one is given.
pub(super) fn in_dtype(made: Tensor, dtype: Option<DType>) -> Result<Value, Failure> {
    tensor(match dtype {
        Some(dtype) => made.astype(dtype),
        None => made,
    })
}

fn extent(extent: i64) -> Result<usize, Failure> {
    usize::try_from(extent).map_err(|_| Failure::value("negative dimensions are not allowed"))
}

fn extents(shape: &[i64]) -> Result<Vec<usize>, Failure> {
    shape.iter().map(|&length| extent(length)).collect()
}

fn samples(args: &mut Args) -> Result<usize, Failure> {
    let count = args.integer_or(2, "num", 50)?;
    usize::try_from(count)
        .map_err(|_| Failure::value(format!("Number of samples, {count}, must be non-negative.")))
}

/// One number in a shape.
fn filled(args: &mut Args, value: Scalar) -> Result<Value, Failure> {
    args.placement()?;
    let shape = args.shape(0, "shape")?;
    let dtype = args.dtype(1, "dtype")?.unwrap_or(DType::F64);
    tensor(create::full(&shape, value, dtype))
}

/// One number in the shape of an array, or in another one.
fn like(args: &mut Args, name: &str, value: Scalar) -> Result<Value, Failure> {
    args.placement()?;
    let x = args.tensor(0, name)?;
    let dtype = args.dtype(1, "dtype")?.unwrap_or(x.dtype()?);
    match args.integers(usize::MAX, "shape")? {
        Some(shape) => tensor(create::full(&extents(&shape)?, value, dtype)),
        None => tensor(x.astype(dtype).full_like(value)),
    }
}

/// The number to fill an array of a dtype with.
fn filling(value: Value, dtype: Option<DType>) -> Result<Tensor, Failure> {
    if let (Value::Number(number @ (Scalar::Int(_) | Scalar::Unsigned(_))), Some(dtype)) = (&value, dtype) {
        check_number(*number, dtype)?;
    }
    value.tensor()
}

/// The first argument as an array, in the dtype asked for.
fn converted(args: &mut Args) -> Result<Tensor, Failure> {
    args.placement()?;
    let numbers = args.need(0, "a")?;
    let dtype = args.dtype(1, "dtype")?;
    let own = match &numbers {
        Value::Tensor(tensor) => Some(tensor.dtype()?),
        _ => None,
    };
    // An array does not change, so it is never copied; a request to avoid a copy may be refused all the same.
    if !args.flag(usize::MAX, "copy", true)?
        && (own.is_none() || dtype.is_some_and(|dtype| own != Some(dtype)))
    {
        return Err(Failure::value("Unable to avoid copy while creating an array as requested."));
    }
    if let Some(dtype) = dtype {
        check_numbers(&numbers, dtype)?;
    }
    let made = numbers.tensor()?;
    Ok(match dtype {
        Some(dtype) => made.astype(dtype),
        None => made,
    })
}

fn linspace(args: &mut Args) -> Result<Value, Failure> {
    let (start, stop) = (args.need(0, "start")?, args.need(1, "stop")?);
    let (count, endpoint) = (samples(args)?, args.flag(3, "endpoint", true)?);
    let with_step = args.flag(4, "retstep", false)?;
    let dtype = args.dtype(5, "dtype")?;
    let axis = args.integer_or(6, "axis", 0)?;
    let steps = if endpoint { count.saturating_sub(1) } else { count };
    let real = |value: &Value| match value {
        Value::Number(Scalar::Complex(..)) => None,
        Value::Number(number) => Some(number.to_f64()),
        _ => None,
    };
    let (made, step) = match (real(&start), real(&stop)) {
        (Some(start), Some(stop)) => {
            let step = if steps == 0 { f64::NAN } else { (stop - start) / steps as f64 };
            (create::linspace_endpoint(start, stop, count, endpoint), Tensor::number(step))
        }
        _ => {
            let (start, stop) = crate::operand::pair(start.operand()?, stop.operand()?);
            start.check()?;
            stop.check()?;
            let step = stop.subtract(&start).divide(steps as f64);
            (create::linspace_between(&start, &stop, count, endpoint).moveaxis(0, axis), step)
        }
    };
    // Rounded down, not towards zero.
    let made = match dtype {
        Some(dtype) if dtype.is_integer() => in_dtype(made.floor(), Some(dtype))?,
        _ => in_dtype(made, dtype)?,
    };
    Ok(if with_step { Value::Tuple(vec![made, tensor(step)?]) } else { made })
}

fn arange(args: &mut Args) -> Result<Value, Failure> {
    let number = |value: Option<Value>| match value {
        None | Some(Value::None) => Ok(None),
        Some(Value::Number(number)) => Ok(Some(number)),
        Some(other) => Err(Failure::kind(format!("expected a number, found {other:?}"))),
    };
    let first = number(args.take(0, "start"))?.unwrap_or(Scalar::Int(0));
    let stop = number(args.take(1, "stop"))?;
    let step = number(args.take(2, "step"))?.unwrap_or(Scalar::Int(1));
    let dtype = args.dtype(3, "dtype")?;
    let (start, stop) = stop.map_or((Scalar::Int(0), first), |stop| (first, stop));
    let made = match dtype {
        Some(dtype) if dtype.is_integer() => whole_range(start, stop, step, dtype)?,
        Some(dtype @ (DType::F16 | DType::F32)) => narrow_range(start, stop, step, dtype)?,
        _ => create::arange_step(start, stop, step),
    };
    if dtype == Some(DType::Bool) && 2 < made.size()? {
        return Err(Failure::kind(
            "arange() is only supported for booleans when the result has at most length 2.",
        ));
    }
    in_dtype(made, dtype)
}

/// `np.arange` of narrow floats: the first two elements are rounded, and their difference is the step of all,
/// in float32.
fn narrow_range(start: Scalar, stop: Scalar, step: Scalar, dtype: DType) -> Result<Tensor, Failure> {
    let count = create::arange_step(start, stop, step).size()?;
    let rounded = |number: f64| if dtype == DType::F16 { f16_of(number).to_f32() } else { number as f32 };
    let (first, second) = (rounded(start.to_f64()), rounded(start.to_f64() + step.to_f64()));
    let in_float = |number: f32| Scalar::Float(f64::from(number));
    let numbers = create::arange(count as usize);
    let steps = numbers.astype(DType::F32).multiply(in_float(second - first)).add(in_float(first));
    Ok(cast(&where_(&numbers.equal(1), in_float(second), steps), dtype))
}

/// `np.arange` of whole numbers: the first two elements are converted, and their difference is the step of
/// all.
fn whole_range(start: Scalar, stop: Scalar, step: Scalar, dtype: DType) -> Result<Tensor, Failure> {
    let count = create::arange_step(start, stop, step).size()? as i64;
    let second = match (start, step) {
        (Scalar::Int(start), Scalar::Int(step)) => start.checked_add(step).map(Scalar::Int),
        _ => None,
    };
    let second = second.unwrap_or(Scalar::Float(start.to_f64() + step.to_f64()));
    let whole = |number: Scalar| match number {
        Scalar::Float(number) => Scalar::Int(number as i64),
        other => other,
    };
    for (number, _) in [start, second].into_iter().zip(0..count) {
        check_number(number, dtype)?;
    }
    let (Scalar::Int(first), Scalar::Int(second)) = (whole(start), whole(second)) else {
        return Ok(create::arange_step(start, stop, step));
    };
    Ok(create::arange(count as usize).multiply(second.wrapping_sub(first)).add(first))
}
