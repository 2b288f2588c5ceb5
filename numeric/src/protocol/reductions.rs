//! Reductions of programs, with NumPy's options: `dtype`, `initial`, `where`, `ddof` and `correction`.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor};
use super::value::Value;
use crate::elementwise::where_;
use crate::manipulate::concatenate;
use crate::nan::{moment_dtype, sum_and_count, variance_where};
use crate::operand::{Operand, cast};
use crate::reduction::Axes;
use crate::tensor::Tensor;
use tharsis_graph::shape::agree;
use tharsis_kernels::{DType, Kind, Scalar};

/// All reductions, and running sums and products.
pub(super) const REDUCTIONS: &[Row] = &[
    ("np.all", "(a, axis=None, keepdims=False, where=True)", "whether all are true", |_, args| {
        logical(args, true, Tensor::all)
    }),
    ("np.any", "(a, axis=None, keepdims=False, where=True)", "whether any is true", |_, args| {
        logical(args, false, Tensor::any)
    }),
    ("np.argmax", "(a, axis=None, keepdims=False)", "where the largest is", |_, args| {
        reduce(args, Tensor::argmax)
    }),
    ("np.argmin", "(a, axis=None, keepdims=False)", "where the smallest is", |_, args| {
        reduce(args, Tensor::argmin)
    }),
    ("np.count_nonzero", "(a, axis=None, keepdims=False)", "how many are not zero", |_, args| {
        reduce(args, Tensor::count_nonzero)
    }),
    ("np.cumprod", "(a, axis=None, dtype=None)", "running products", |_, args| scan(args, Tensor::cumprod)),
    ("np.cumsum", "(a, axis=None, dtype=None)", "running sums", |_, args| scan(args, Tensor::cumsum)),
    (
        "np.cumulative_prod",
        "(x, axis=None, dtype=None, include_initial=False)",
        "running products",
        |_, args| scan_one_axis(args, 1, Tensor::cumprod),
    ),
    ("np.cumulative_sum", "(x, axis=None, dtype=None, include_initial=False)", "running sums", |_, args| {
        scan_one_axis(args, 0, Tensor::cumsum)
    }),
    ("np.max", "(a, axis=None, keepdims=False, initial=None, where=True)", "the largest", |_, args| {
        extreme(args, "maximum", Tensor::max, |a, b| a.maximum(b))
    }),
    ("np.mean", "(a, axis=None, dtype=None, keepdims=False, where=True)", "the mean", |_, args| {
        mean(args, false)
    }),
    ("np.min", "(a, axis=None, keepdims=False, initial=None, where=True)", "the smallest", |_, args| {
        extreme(args, "minimum", Tensor::min, |a, b| a.minimum(b))
    }),
    ("np.nanargmax", "(a, axis=None, keepdims=False)", "where the largest number is", |_, args| {
        reduce(args, Tensor::nanargmax)
    }),
    ("np.nanargmin", "(a, axis=None, keepdims=False)", "where the smallest number is", |_, args| {
        reduce(args, Tensor::nanargmin)
    }),
    ("np.nancumprod", "(a, axis=None, dtype=None)", "running products of numbers", |_, args| {
        scan_of(args, |x| without_nan(x, 1), Tensor::cumprod)
    }),
    ("np.nancumsum", "(a, axis=None, dtype=None)", "running sums of numbers", |_, args| {
        scan_of(args, |x| without_nan(x, 0), Tensor::cumsum)
    }),
    (
        "np.nanmax",
        "(a, axis=None, keepdims=False, initial=None, where=True)",
        "the largest number",
        |_, args| nan_extreme(args, "fmax", Tensor::nanmax, |a, b| a.fmax(b)),
    ),
    (
        "np.nanmean",
        "(a, axis=None, dtype=None, keepdims=False, where=True)",
        "the mean of numbers",
        |_, args| mean(args, true),
    ),
    (
        "np.nanmin",
        "(a, axis=None, keepdims=False, initial=None, where=True)",
        "the smallest number",
        |_, args| nan_extreme(args, "fmin", Tensor::nanmin, |a, b| a.fmin(b)),
    ),
    (
        "np.nanprod",
        "(a, axis=None, dtype=None, keepdims=False, initial=1, where=True)",
        "the product of numbers",
        |_, args| total(args, 1, Tensor::nanprod, |a, b| a.multiply(b)),
    ),
    (
        "np.nanstd",
        "(a, axis=None, dtype=None, ddof=0, keepdims=False, where=True, correction=0)",
        "the standard deviation of numbers",
        |_, args| moment(args, Tensor::nanstd, [true, true]),
    ),
    (
        "np.nansum",
        "(a, axis=None, dtype=None, keepdims=False, initial=0, where=True)",
        "the sum of numbers",
        |_, args| total(args, 0, Tensor::nansum, |a, b| a.add(b)),
    ),
    (
        "np.nanvar",
        "(a, axis=None, dtype=None, ddof=0, keepdims=False, where=True, correction=0)",
        "the variance of numbers",
        |_, args| moment(args, Tensor::nanvar, [false, true]),
    ),
    (
        "np.prod",
        "(a, axis=None, dtype=None, keepdims=False, initial=1, where=True)",
        "the product",
        |_, args| total(args, 1, Tensor::prod, |a, b| a.multiply(b)),
    ),
    ("np.ptp", "(a, axis=None, keepdims=False)", "largest minus smallest", |_, args| {
        reduce(args, Tensor::ptp)
    }),
    (
        "np.std",
        "(a, axis=None, dtype=None, ddof=0, keepdims=False, where=True, correction=0)",
        "the standard deviation",
        |_, args| moment(args, Tensor::std_ddof, [true, false]),
    ),
    ("np.sum", "(a, axis=None, dtype=None, keepdims=False, initial=0, where=True)", "the sum", |_, args| {
        total(args, 0, Tensor::sum, |a, b| a.add(b))
    }),
    (
        "np.var",
        "(a, axis=None, dtype=None, ddof=0, keepdims=False, where=True, correction=0)",
        "the variance",
        |_, args| moment(args, Tensor::var_ddof, [false, false]),
    ),
];

fn reduce(args: &mut Args, with: fn(&Tensor, Axes) -> Tensor) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let axes = args.axes(1)?;
    tensor(with(&x, axes))
}

/// The mask of the option `where`, if it leaves anything out.
fn mask(args: &mut Args, x: &Tensor) -> Result<Option<Tensor>, Failure> {
    let mask = match args.take(usize::MAX, "where") {
        None | Some(Value::None) => return Ok(None),
        Some(Value::Number(Scalar::Bool(true))) => return Ok(None),
        Some(mask) => mask.tensor()?,
    };
    match mask.dtype()? {
        DType::Bool if fits(mask.shape()?, x.shape()?) => Ok(Some(mask)),
        DType::Bool => Err(Failure::value("the mask `where` does not broadcast to the shape of the array")),
        other => {
            let text = format!("Cannot cast array data from {other} to bool according to the rule 'safe'");
            Err(Failure::kind(text))
        }
    }
}

/// Whether a mask broadcasts to a shape without widening it.
fn fits(mask: &[usize], shape: &[usize]) -> bool {
    let pairs = mask.iter().rev().zip(shape.iter().rev());
    mask.len() <= shape.len() && pairs.into_iter().all(|(&a, &b)| a == 1 || agree(a, b))
}

/// An array with a number where a mask of its shape is false.
fn masked(x: &Tensor, mask: Option<&Tensor>, instead: Scalar) -> Result<Tensor, Failure> {
    let Some(mask) = mask else { return Ok(x.clone()) };
    let dtype = x.dtype()?;
    Ok(where_(mask, x, cast(&Tensor::number(instead), dtype)))
}

fn initial(args: &mut Args) -> Option<Value> {
    args.take(usize::MAX, "initial").filter(|value| !matches!(value, Value::None))
}

fn logical(args: &mut Args, instead: bool, with: fn(&Tensor, Axes) -> Tensor) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let (axes, mask) = (args.axes(1)?, mask(args, &x)?);
    let x = match &mask {
        None => x,
        Some(_) => masked(&cast(&x, DType::Bool), mask.as_ref(), Scalar::Bool(instead))?,
    };
    tensor(with(&x, axes))
}

/// Sums and products; `nothing` is the result for no elements.
fn total(
    args: &mut Args,
    nothing: i64,
    with: fn(&Tensor, Axes) -> Tensor,
    join: fn(&Tensor, Operand) -> Tensor,
) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let (axes, dtype) = (args.axes(1)?, args.dtype(2, "dtype")?);
    let (mask, initial) = (mask(args, &x)?, initial(args));
    let x = dtype.map_or_else(|| x.clone(), |dtype| cast(&x, dtype));
    let made = with(&masked(&x, mask.as_ref(), Scalar::Int(nothing))?, axes);
    // Small integers are added up in 64 bits; in a dtype that is asked for the result wraps as that does.
    let made = dtype.map_or_else(|| made.clone(), |dtype| cast(&made, dtype));
    match initial {
        None => tensor(made),
        Some(initial) => {
            let own = made.dtype()?;
            tensor(cast(&join(&made, initial.operand()?), own))
        }
    }
}

/// The largest or smallest.
fn extreme(
    args: &mut Args,
    name: &str,
    with: fn(&Tensor, Axes) -> Tensor,
    join: fn(&Tensor, Operand) -> Tensor,
) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    extreme_of(args, x, name, with, join)
}

fn extreme_of(
    args: &mut Args,
    x: Tensor,
    name: &str,
    with: fn(&Tensor, Axes) -> Tensor,
    join: fn(&Tensor, Operand) -> Tensor,
) -> Result<Value, Failure> {
    let (axes, mask, initial) = (args.axes(1)?, mask(args, &x)?, initial(args));
    let Some(initial) = initial else {
        return if mask.is_some() { Err(no_identity(name)) } else { tensor(with(&x, axes)) };
    };
    let dtype = x.dtype()?;
    let least = initial.operand()?.beside(dtype);
    least.check()?;
    let least = cast(&least, dtype);
    let wide = match &mask {
        None => x,
        Some(mask) => where_(mask, &x, &least),
    };
    let reduced = axes.of_tensor(&wide)?;
    let shape = wide.shape()?;
    if reduced.iter().any(|&axis| shape[axis] == 0) {
        // A sum is defined for no elements, and has the shape.
        let shape = wide.sum(axes).shape()?.to_vec();
        return tensor(least.broadcast_to(&shape));
    }
    tensor(join(&with(&wide, axes), Operand::from(&least)))
}

/// The largest or smallest number, where a mask is true.
fn nan_extreme(
    args: &mut Args,
    name: &str,
    with: fn(&Tensor, Axes) -> Tensor,
    join: fn(&Tensor, Operand) -> Tensor,
) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let dtype = x.dtype()?;
    if dtype.kind() < Kind::Float {
        return extreme_of(args, x, name, with, join);
    }
    // Elements that the mask leaves out count as NaN does.
    let (axes, mask, initial) = (args.axes(1)?, mask(args, &x)?, initial(args));
    if mask.is_some() && initial.is_none() {
        return Err(no_identity(name));
    }
    let nan = cast(&Tensor::number(f64::NAN), dtype);
    let x = match &mask {
        None => x,
        Some(mask) => where_(mask, &x, nan),
    };
    let Some(initial) = initial else { return tensor(with(&x, axes)) };
    let least = initial.operand()?.beside(dtype);
    least.check()?;
    let least = cast(&least, dtype);
    let reduced = axes.of_tensor(&x)?;
    let shape = x.shape()?;
    if reduced.iter().any(|&axis| shape[axis] == 0) {
        let shape = x.sum(axes).shape()?.to_vec();
        return tensor(least.broadcast_to(&shape));
    }
    tensor(join(&with(&x, axes), Operand::from(&least)))
}

fn no_identity(name: &str) -> Failure {
    Failure::value(format!(
        "reduction operation '{name}' does not have an identity, so to use a where mask one has to specify \
         'initial'"
    ))
}

/// The places of numbers, among those where a mask is true.
fn numbers_where(x: &Tensor, mask: Option<Tensor>) -> Tensor {
    let numbers = x.isnan().logical_not();
    mask.map_or_else(|| numbers.clone(), |mask| numbers.logical_and(mask))
}

/// The mean; of numbers alone if `skips_nan`.
fn mean(args: &mut Args, skips_nan: bool) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let (axes, dtype, mask) = (args.axes(1)?, args.dtype(2, "dtype")?, mask(args, &x)?);
    let x = dtype.map_or_else(|| x.clone(), |dtype| cast(&x, dtype));
    let own = x.dtype()?;
    let out = match dtype {
        Some(dtype) => dtype,
        None if own.kind() < Kind::Float => DType::F64,
        None => own,
    };
    let skips_nan = skips_nan && Kind::Float <= own.kind();
    let mask = if skips_nan { Some(numbers_where(&x, mask)) } else { mask };
    let Some(mask) = mask else { return tensor(cast(&x.mean(axes), out)) };
    let (sum, count) = sum_and_count(&x, &mask, &axes);
    tensor(cast(&sum.divide(&count), out))
}

type Moment = fn(&Tensor, Axes, f64) -> Tensor;

/// The variance or, if the first flag is set, its root; of numbers alone if the second one is.
fn moment(args: &mut Args, with: Moment, [root, skips_nan]: [bool; 2]) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let (axes, dtype) = (args.axes(1)?, args.dtype(2, "dtype")?);
    let (ddof, correction) = (args.take(4, "ddof"), args.take(usize::MAX, "correction"));
    let given = |value: &Option<Value>| value.as_ref().is_some_and(|value| !matches!(value, Value::None));
    let zero = |value: &Option<Value>| match value {
        Some(Value::Number(number)) => number.to_f64() == 0.0,
        _ => true,
    };
    if given(&ddof) && given(&correction) && !zero(&ddof) {
        return Err(Failure::value("ddof and correction can't be provided simultaneously."));
    }
    let divisor = if given(&correction) { correction } else { ddof };
    let ddof = match divisor {
        None | Some(Value::None) => 0.0,
        Some(number) => number.real()?,
    };
    let mask = mask(args, &x)?;
    let x = dtype.map_or_else(|| x.clone(), |dtype| cast(&x, dtype));
    let Some(mask) = mask else {
        let made = with(&x, axes, ddof);
        return tensor(match dtype {
            Some(dtype) if !dtype.is_complex() => cast(&made, dtype),
            _ => made,
        });
    };
    let skips_nan = skips_nan && Kind::Float <= x.dtype()?.kind();
    let mask = if skips_nan { numbers_where(&x, Some(mask)) } else { mask };
    let variance = variance_where(&x, &mask, &axes, ddof, skips_nan);
    let made = if root { variance.sqrt() } else { variance };
    tensor(cast(&made, moment_dtype(x.dtype()?)))
}

fn without_nan(x: &Tensor, instead: i64) -> Tensor {
    match x.dtype() {
        Ok(dtype) if Kind::Float <= dtype.kind() => where_(&x.isnan(), Scalar::Int(instead), x),
        _ => x.clone(),
    }
}

fn scan(args: &mut Args, with: fn(&Tensor, i64) -> Tensor) -> Result<Value, Failure> {
    scan_of(args, Tensor::clone, with)
}

fn scan_of(
    args: &mut Args,
    prepared: fn(&Tensor) -> Tensor,
    with: fn(&Tensor, i64) -> Tensor,
) -> Result<Value, Failure> {
    let x = prepared(&args.tensor(0, "a")?);
    let axis = args.take(1, "axis");
    let dtype = args.dtype(2, "dtype")?;
    let x = dtype.map_or_else(|| x.clone(), |dtype| cast(&x, dtype));
    let made = match axis {
        None | Some(Value::None) => with(&x.in_one_axis(), 0),
        Some(axis) => with(&x, axis.integer()?),
    };
    tensor(dtype.map_or_else(|| made.clone(), |dtype| cast(&made, dtype)))
}

/// As [`scan`], but an array of several axes is flattened only on request; perhaps with the result for no
/// elements in front.
fn scan_one_axis(args: &mut Args, nothing: i64, with: fn(&Tensor, i64) -> Tensor) -> Result<Value, Failure> {
    let x = args.tensor(0, "x")?;
    let axis = match args.take(usize::MAX, "axis") {
        Some(Value::None) | None if 1 < x.ndim()? => {
            return Err(Failure::value(
                "For arrays which have more than one dimension ``axis`` argument is required.",
            ));
        }
        Some(Value::None) | None => 0,
        Some(axis) => axis.integer()?,
    };
    let dtype = args.dtype(usize::MAX, "dtype")?;
    let x = dtype.map_or_else(|| x.clone(), |dtype| cast(&x, dtype));
    let made = with(&x.atleast(1), axis);
    let made = dtype.map_or_else(|| made.clone(), |dtype| cast(&made, dtype));
    if !args.flag(usize::MAX, "include_initial", false)? {
        return tensor(made);
    }
    let mut shape = made.shape()?.to_vec();
    let at = tharsis_graph::shape::normalize_axis(axis, shape.len())?;
    shape[at] = 1;
    let first = crate::create::full(&shape, nothing, made.dtype()?);
    tensor(concatenate(&[&first, &made], axis))
}
