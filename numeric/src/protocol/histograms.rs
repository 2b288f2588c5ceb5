//! Histograms of programs.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor};
use super::statistics::other;
use super::value::Value;
use crate::histogram::{Bins, Estimator, Histogram, histogramdd};
use crate::tensor::Tensor;
use tharsis_kernels::Scalar;

/// Numbers of elements in bins.
pub(super) const HISTOGRAMS: &[Row] = &[
    ("np.bincount", "(x, weights=None, minlength=0)", "how often each number occurs", |_, args| {
        let (x, weights) = (args.tensor(0, "x")?, other(args, 1, "weights")?);
        let least = args.integer_or(2, "minlength", 0)?;
        let least = usize::try_from(least).map_err(|_| Failure::value("'minlength' must not be negative"))?;
        tensor(x.bincount(weights.as_ref(), least))
    }),
    (
        "np.histogram",
        "(a, bins=10, range=None, density=False, weights=None)",
        "numbers of elements in bins, and the edges of the bins",
        |_, args| {
            let (x, bins) = (args.tensor(0, "a")?, args.take(1, "bins"));
            let range = range(args.take(2, "range"))?;
            let density = args.flag(3, "density", false)?;
            let weights = other(args, 4, "weights")?;
            let bins = bins_of(&x, bins, range, weights.is_some())?;
            let (counts, edges) = x.histogram(bins, &Histogram { range, weights, density });
            pair(counts, edges)
        },
    ),
    (
        "np.histogram2d",
        "(x, y, bins=10, range=None, density=False, weights=None)",
        "numbers of pairs in bins of the plane, and the edges of the bins",
        |_, args| plane(args),
    ),
    (
        "np.histogram_bin_edges",
        "(a, bins=10, range=None, weights=None)",
        "the edges of the bins of histogram",
        |_, args| {
            let (x, bins) = (args.tensor(0, "a")?, args.take(1, "bins"));
            let range = range(args.take(2, "range"))?;
            let weights = other(args, 3, "weights")?;
            let bins = bins_of(&x, bins, range, weights.is_some())?;
            tensor(x.histogram_bin_edges(bins, range))
        },
    ),
    (
        "np.histogramdd",
        "(sample, bins=10, range=None, density=False, weights=None)",
        "numbers of points in bins of a space, and the edges of the bins",
        |_, args| space(args),
    ),
];

fn pair(counts: Tensor, edges: Tensor) -> Result<Value, Failure> {
    Ok(Value::Tuple(vec![tensor(counts)?, tensor(edges)?]))
}

/// A pair of numbers.
fn range(value: Option<Value>) -> Result<Option<[f64; 2]>, Failure> {
    let ends = match value {
        None | Some(Value::None) => return Ok(None),
        Some(Value::Tuple(ends) | Value::List(ends)) => ends,
        Some(other) => return Err(Failure::kind(format!("range: expected two numbers, found {other:?}"))),
    };
    match ends.as_slice() {
        [first, last] => Ok(Some([first.real()?, last.real()?])),
        [_, _, _, ..] => Err(Failure::value("too many values to unpack (expected 2)")),
        few => Err(Failure::value(format!("not enough values to unpack (expected 2, got {})", few.len()))),
    }
}

/// A pair of numbers for each axis.
fn ranges(value: Option<Value>, axes: usize) -> Result<Vec<Option<[f64; 2]>>, Failure> {
    match value {
        None | Some(Value::None) => Ok(vec![None; axes]),
        Some(Value::Tuple(parts) | Value::List(parts)) => {
            parts.into_iter().map(|part| range(Some(part))).collect()
        }
        Some(other) => Err(Failure::kind(format!("range: expected pairs of numbers, found {other:?}"))),
    }
}

/// A number of bins, the name of a rule for it, or edges.
fn bins_of(
    x: &Tensor,
    bins: Option<Value>,
    range: Option<[f64; 2]>,
    weighted: bool,
) -> Result<Bins, Failure> {
    match bins {
        None => Ok(Bins::Count(10)),
        Some(Value::Text(name)) if name == "stone" => {
            Err(Failure::missing("the estimator 'stone', which makes a histogram for each number of bins"))
        }
        Some(Value::Text(name)) => {
            let rule = Estimator::from_name(&name)?;
            if weighted {
                let text = "Automated estimation of the number of bins is not supported for weighted data";
                return Err(Failure::kind(text));
            }
            Ok(Bins::Count(x.histogram_bin_count(rule, range)?))
        }
        Some(bins) => axis_bins(bins, "`bins` must be an integer, a string, or an array", "`bins`"),
    }
}

/// A number of bins or edges.
fn axis_bins(bins: Value, no_integer: &str, name: &str) -> Result<Bins, Failure> {
    match bins {
        Value::Number(count @ (Scalar::Int(_) | Scalar::Unsigned(_) | Scalar::Bool(_))) => {
            let count = Value::Number(count).integer().unwrap_or(0);
            let refused = |_| Failure::value(format!("{name} must be positive, when an integer"));
            usize::try_from(count).map(Bins::Count).map_err(refused)
        }
        Value::Number(_) | Value::Large(_) => Err(Failure::kind(no_integer)),
        edges => edges.tensor().map(Bins::Edges),
    }
}

/// Bins for each of several axes.
fn all_bins(bins: Option<Value>, axes: usize) -> Result<Vec<Bins>, Failure> {
    let one = |(axis, bins): (usize, Value)| {
        let text = format!("`bins[{axis}]` must be an integer, when a scalar");
        axis_bins(bins, &text, &format!("`bins[{axis}]`"))
    };
    match bins {
        None => Ok(vec![Bins::Count(10); axes]),
        Some(Value::Tuple(parts) | Value::List(parts)) => parts.into_iter().enumerate().map(one).collect(),
        Some(Value::Tensor(x)) if x.ndim()? != 0 => {
            // A number of bins for each axis: shapes depend on them, so they are computed here.
            let parts = x.unstack(0)?.into_iter();
            let parts = parts.map(|part| {
                if part.ndim()? == 0 { part.item().map(Value::Number) } else { Ok(Value::Tensor(part)) }
            });
            parts.collect::<crate::Result<Vec<_>>>()?.into_iter().enumerate().map(one).collect()
        }
        Some(bins) => (0..axes).map(|axis| one((axis, bins.clone()))).collect(),
    }
}

fn plane(args: &mut Args) -> Result<Value, Failure> {
    let (x, y) = (args.tensor(0, "x")?, args.tensor(1, "y")?);
    let several = |bins: &Value| match bins {
        Value::Tuple(parts) | Value::List(parts) => Ok(!matches!(parts.len(), 1 | 2)),
        Value::Tensor(x) if x.ndim()? != 0 => Ok(!matches!(x.shape()?[0], 1 | 2)),
        _ => Ok::<bool, Failure>(false),
    };
    let bins = match args.take(2, "bins") {
        Some(bins) if several(&bins)? => {
            let edges = bins.tensor()?;
            vec![Bins::Edges(edges.clone()), Bins::Edges(edges)]
        }
        bins => all_bins(bins, 2)?,
    };
    let ranges = ranges(args.take(3, "range"), 2)?;
    let density = args.flag(4, "density", false)?;
    let weights = other(args, 5, "weights")?;
    let unequal = |_| Failure::value("The dimension of bins must be equal to the dimension of the sample x.");
    let bins = <[Bins; 2]>::try_from(bins).map_err(unequal)?;
    let unequal = |_| Failure::value("range argument must have one entry per dimension");
    let ranges = <[Option<[f64; 2]>; 2]>::try_from(ranges).map_err(unequal)?;
    let (counts, edges) = x.histogram2d(&y, bins, ranges, &Histogram { range: None, weights, density });
    let [along_x, along_y] = edges;
    Ok(Value::Tuple(vec![tensor(counts)?, tensor(along_x)?, tensor(along_y)?]))
}

fn space(args: &mut Args) -> Result<Value, Failure> {
    let columns = match args.need(0, "sample")? {
        Value::Tensor(points) => match points.ndim()? {
            2 => points.unstack(1)?,
            _ => vec![points.in_one_axis()],
        },
        Value::Tuple(columns) | Value::List(columns) => match columns.first() {
            Some(Value::Number(_)) => vec![Value::List(columns).tensor()?],
            _ => columns_of(columns)?,
        },
        other => vec![other.tensor()?],
    };
    let bins = all_bins(args.take(1, "bins"), columns.len())?;
    let ranges = ranges(args.take(2, "range"), columns.len())?;
    let density = args.flag(3, "density", false)?;
    let weights = other(args, 4, "weights")?;
    let (counts, edges) = histogramdd(&columns, &bins, &ranges, &Histogram { range: None, weights, density });
    let counts = tensor(counts)?;
    let edges = edges.into_iter().map(tensor).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::Tuple(vec![counts, Value::List(edges)]))
}

/// Columns of one dtype.
fn columns_of(columns: Vec<Value>) -> Result<Vec<Tensor>, Failure> {
    let columns = columns.into_iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
    let dtypes = columns.iter().map(Tensor::dtype).collect::<crate::Result<Vec<_>>>()?;
    let dtype = tharsis_kernels::promote_all(dtypes);
    Ok(columns.iter().map(|column| crate::operand::cast(column, dtype)).collect())
}
