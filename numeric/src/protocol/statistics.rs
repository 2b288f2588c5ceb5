//! Statistics of programs: quantiles, averages, covariances, gradients, values between points.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor, tuple};
use super::value::Value;
use crate::operand::cast;
use crate::quantile::{Method, Quantiles};
use crate::reduction::Axes;
use crate::statistics::{Beyond, Covariance, Spacing};
use crate::tensor::Tensor;

/// All statistics but histograms.
pub(super) const STATISTICS: &[Row] = &[
    (
        "np.average",
        "(a, axis=None, weights=None, returned=False, keepdims=False)",
        "the weighted mean",
        |_, args| average(args),
    ),
    ("np.corrcoef", "(x, y=None, rowvar=True, dtype=None)", "correlations of variables", |_, args| {
        let (x, y) = (args.tensor(0, "x")?, other(args, 1, "y")?);
        let rowvar = args.flag(2, "rowvar", true)?;
        let made = x.corrcoef(y.as_ref(), rowvar);
        tensor(args.dtype(usize::MAX, "dtype")?.map_or_else(|| made.clone(), |dtype| cast(&made, dtype)))
    }),
    (
        "np.cov",
        "(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, dtype=None)",
        "covariances of variables",
        |_, args| cov(args),
    ),
    ("np.digitize", "(x, bins, right=False)", "the interval in which each is", |_, args| {
        let (x, bins) = (args.tensor(0, "x")?, args.tensor(1, "bins")?);
        tensor(x.digitize(&bins, args.flag(2, "right", false)?))
    }),
    ("np.gradient", "(f, *varargs, axis=None, edge_order=1)", "slopes along axes", |_, args| gradient(args)),
    (
        "np.interp",
        "(x, xp, fp, left=None, right=None, period=None)",
        "values of the lines between points",
        |_, args| {
            let (x, points) = (args.tensor(0, "x")?, args.tensor(1, "xp")?);
            let values = args.tensor(2, "fp")?;
            let mut number = |position, name| match args.take(position, name) {
                None | Some(Value::None) => Ok(None),
                Some(value) => value.real().map(Some),
            };
            let (left, right) = (number(3, "left")?, number(4, "right")?);
            tensor(x.interp(&points, &values, Beyond { left, right, period: number(5, "period")? }))
        },
    ),
    ("np.median", "(a, axis=None, keepdims=False)", "the middle element", |_, args| {
        let x = args.tensor(0, "a")?;
        tensor(x.median(args.axes(1)?))
    }),
    ("np.nanmedian", "(a, axis=None, keepdims=False)", "the middle number", |_, args| {
        let x = args.tensor(0, "a")?;
        tensor(x.nanmedian(args.axes(1)?))
    }),
    (
        "np.nanpercentile",
        "(a, q, axis=None, method='linear', keepdims=False)",
        "numbers below which percents of all numbers are",
        |_, args| quantile(args, 100.0, Tensor::nanquantile),
    ),
    (
        "np.nanquantile",
        "(a, q, axis=None, method='linear', keepdims=False)",
        "numbers below which a share of all numbers is",
        |_, args| quantile(args, 1.0, Tensor::nanquantile),
    ),
    (
        "np.percentile",
        "(a, q, axis=None, method='linear', keepdims=False)",
        "elements below which percents of all are",
        |_, args| quantile(args, 100.0, Tensor::quantile),
    ),
    (
        "np.quantile",
        "(a, q, axis=None, method='linear', keepdims=False)",
        "elements below which a share of all is",
        |_, args| quantile(args, 1.0, Tensor::quantile),
    ),
    (
        "np.trapezoid",
        "(y, x=None, dx=1.0, axis=-1)",
        "the integral of the lines between elements",
        |_, args| {
            let y = args.tensor(0, "y")?;
            let points = other(args, 1, "x")?;
            let distance = args.number_or(2, "dx", 1.0)?;
            let axis = args.integer_or(3, "axis", -1)?;
            tensor(y.trapezoid(&points.map_or(Spacing::Even(distance), Spacing::At), axis))
        },
    ),
];

/// A tensor, or none.
pub(super) fn other(args: &mut Args, position: usize, name: &str) -> Result<Option<Tensor>, Failure> {
    match args.take(position, name) {
        None | Some(Value::None) => Ok(None),
        Some(value) => value.tensor().map(Some),
    }
}

fn average(args: &mut Args) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let given = args.take(1, "axis").filter(|axis| !matches!(axis, Value::None));
    let has_axes = given.is_some();
    let axes = match given {
        None => Axes::default(),
        Some(axes @ (Value::Tuple(_) | Value::List(_))) => Axes::from(axes.integers()?),
        Some(axis) => Axes::from(axis.integer()?),
    };
    let weights = other(args, 2, "weights")?;
    let returned = args.flag(3, "returned", false)?;
    let axes = if args.flag(usize::MAX, "keepdims", false)? { axes.keepdims() } else { axes };
    let (mean, sum) = match weights {
        Some(weights) => {
            if !has_axes && x.ndim()? != weights.ndim()? {
                let text = "Axis must be specified when shapes of a and weights differ.";
                return Err(Failure::kind(text));
            }
            x.average(&weights, axes)
        }
        None => {
            let mean = x.mean(axes.clone());
            let count = x.ones_like().sum(axes);
            let count = cast(&count, mean.dtype()?);
            (mean, count)
        }
    };
    if returned { tuple([mean, sum]) } else { tensor(mean) }
}

fn cov(args: &mut Args) -> Result<Value, Failure> {
    let (x, y) = (args.tensor(0, "m")?, other(args, 1, "y")?);
    let rowvar = args.flag(2, "rowvar", true)?;
    let bias = args.flag(3, "bias", false)?;
    let ddof = match args.take(4, "ddof") {
        None | Some(Value::None) => f64::from(u8::from(!bias)),
        Some(ddof) => match ddof.real()? {
            number if number.fract() == 0.0 => number,
            _ => return Err(Failure::value("ddof must be integer")),
        },
    };
    let (fweights, aweights) = (other(args, 5, "fweights")?, other(args, 6, "aweights")?);
    let made = x.cov(y.as_ref(), &Covariance { rowvar, ddof, fweights, aweights });
    tensor(args.dtype(usize::MAX, "dtype")?.map_or_else(|| made.clone(), |dtype| cast(&made, dtype)))
}

fn gradient(args: &mut Args) -> Result<Value, Failure> {
    let x = args.tensor(0, "f")?;
    let given = args.rest(1);
    let axis = args.take(usize::MAX, "axis").filter(|axis| !matches!(axis, Value::None));
    let axes = match &axis {
        None => (0..x.ndim()? as i64).collect(),
        Some(axis) => axis.integers()?,
    };
    let order = match args.integer_or(usize::MAX, "edge_order", 1)? {
        order @ 1..=2 => order as usize,
        _ => return Err(Failure::value("'edge_order' greater than 2 not supported")),
    };
    let spacing = |value: &Value| match value {
        Value::Number(number) => Ok(Spacing::Even(number.to_f64())),
        Value::Tensor(x) if x.ndim()? == 0 => {
            Err(Failure::missing("a distance that is an array without axes"))
        }
        other => other.clone().tensor().map(Spacing::At),
    };
    let spacings: Vec<Spacing> = match given.as_slice() {
        [] => vec![Spacing::Even(1.0); axes.len()],
        [one] => vec![spacing(one)?; axes.len()],
        several if several.len() == axes.len() => several.iter().map(spacing).collect::<Result<_, _>>()?,
        _ => return Err(Failure::kind("invalid number of arguments")),
    };
    let made: Vec<Tensor> =
        axes.iter().zip(&spacings).map(|(&axis, spacing)| x.gradient(axis, spacing, order)).collect();
    match <[Tensor; 1]>::try_from(made) {
        Ok([only]) => tensor(only),
        Err(several) => tuple(several),
    }
}

type Quantile = fn(&Tensor, Quantiles, Axes, Method) -> Tensor;

/// Quantiles; `whole` is the number that stands for all elements.
fn quantile(args: &mut Args, whole: f64, of: Quantile) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let mut q = quantiles(args.need(1, "q")?)?;
    if q.values.iter().any(|q| !(0.0..=whole).contains(q)) {
        return Err(Failure::value(match whole {
            1.0 => "Quantiles must be in the range [0, 1]",
            _ => "Percentiles must be in the range [0, 100]",
        }));
    }
    q.values.iter_mut().for_each(|q| *q /= whole);
    let axes = args.axes(2)?;
    let method = Method::from_name(&args.text_or(usize::MAX, "method", "linear")?)?;
    tensor(of(&x, q, axes, method))
}

/// Numbers in nested lists, with the shape that these have.
fn quantiles(value: Value) -> Result<Quantiles, Failure> {
    match value {
        Value::List(parts) | Value::Tuple(parts) => {
            let parts = parts.into_iter().map(quantiles).collect::<Result<Vec<_>, _>>()?;
            let inner = parts.first().map_or(Vec::new(), |part| part.shape.clone());
            if parts.iter().any(|part| part.shape != inner) {
                return Err(Failure::value("setting an array element with a sequence"));
            }
            let shape = [&[parts.len()][..], &inner].concat();
            Ok(Quantiles { shape, values: parts.into_iter().flat_map(|part| part.values).collect() })
        }
        Value::Tensor(x) => {
            // Few numbers, which the plan depends on: they are computed here.
            let shape = x.compute_chunk_sizes()?.shape()?.to_vec();
            let values = cast(&x, tharsis_kernels::DType::F64).to_vec::<f64>()?;
            Ok(Quantiles { shape, values })
        }
        number => Ok(Quantiles::from(number.real()?)),
    }
}
