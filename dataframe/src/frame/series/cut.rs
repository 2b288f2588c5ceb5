//! Numbers by the intervals that they lie in.

use super::Series;
use super::elementwise::check_numbers;
use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};

/// The intervals of [`cut`]: their bounds, which bound belongs to them, and their labels.
#[must_use]
#[derive(Clone, Debug)]
pub struct Cut {
    bins: Bins,
    right: bool,
    include_lowest: bool,
    unique: bool,
    labels: Labels,
    precision: i32,
}

#[derive(Clone, Debug)]
enum Bins {
    /// Bounds, which are shown as integers if they were given so.
    Bounds(Vec<f64>, bool),
    /// So many intervals of one length, from the smallest number to the largest.
    Count(usize),
    /// The bounds are these quantiles.
    Quantiles(Vec<f64>),
}

#[derive(Clone, Debug)]
enum Labels {
    Intervals,
    Numbers,
    Texts(Vec<String>),
}

impl Cut {
    fn new(bins: Bins) -> Cut {
        let labels = Labels::Intervals;
        Cut { bins, right: true, include_lowest: false, unique: false, labels, precision: 3 }
    }

    /// Intervals between these bounds, which grow.
    pub fn at(bounds: &[f64]) -> Cut {
        Cut::new(Bins::Bounds(bounds.to_vec(), false))
    }

    /// Intervals between these integers.
    pub fn at_integers(bounds: &[i64]) -> Cut {
        Cut::new(Bins::Bounds(bounds.iter().map(|&bound| bound as f64).collect(), true))
    }

    /// So many intervals of one length. The smallest and the largest number are computed at once.
    pub fn into_equal(count: usize) -> Cut {
        Cut::new(Bins::Count(count))
    }

    /// Intervals between these quantiles, as pandas' `qcut`. The quantiles are computed at once.
    pub fn at_quantiles(parts: &[f64]) -> Cut {
        Cut::new(Bins::Quantiles(parts.to_vec())).include_lowest(true)
    }

    /// Whether an interval has its upper bound, as by default, or its lower one.
    pub fn right(self, right: bool) -> Cut {
        Cut { right, ..self }
    }

    /// Whether the first interval has its lower bound too.
    pub fn include_lowest(self, include_lowest: bool) -> Cut {
        Cut { include_lowest, ..self }
    }

    /// Drops bounds that are there twice, which are a `ValueError` otherwise.
    pub fn drop_duplicates(self) -> Cut {
        Cut { unique: true, ..self }
    }

    /// Labels of the intervals, one less than bounds.
    pub fn labels<'a>(self, labels: impl IntoIterator<Item = &'a str>) -> Cut {
        Cut { labels: Labels::Texts(labels.into_iter().map(str::to_owned).collect()), ..self }
    }

    /// The number of the interval in place of its label, from 0.
    pub fn numbered(self) -> Cut {
        Cut { labels: Labels::Numbers, ..self }
    }

    /// The number of decimals of the bounds in labels; 3 by default. Bounds that would look equal get more.
    pub fn precision(self, precision: i32) -> Cut {
        Cut { precision, ..self }
    }

    /// The bounds for the numbers of a series.
    fn bounds(&self, series: &Series) -> Result<Vec<f64>> {
        let mut bounds = match &self.bins {
            Bins::Bounds(bounds, _) => bounds.clone(),
            Bins::Count(count) => self.equal_bounds(series, *count)?,
            Bins::Quantiles(parts) => {
                parts.iter().map(|&part| quantile(series, part)).collect::<Result<_>>()?
            }
        };
        if bounds.windows(2).any(|pair| !matches!(pair, [low, high] if low <= high)) {
            return Err(Error::Value("bins must increase monotonically".to_owned()));
        }
        let had = bounds.len();
        bounds.dedup();
        // pandas allows two equal bounds if they are the only ones.
        if bounds.len() < had && had != 2 && !self.unique {
            return Err(Error::Value("bin edges must be unique".to_owned()));
        }
        Ok(bounds)
    }

    fn equal_bounds(&self, series: &Series, count: usize) -> Result<Vec<f64>> {
        if count == 0 {
            return Err(Error::Value("there must be one bin or more".to_owned()));
        }
        let (Some(low), Some(high)) = (series.min()?.as_f64(), series.max()?.as_f64()) else {
            return Err(Error::Value("Cannot cut empty array".to_owned()));
        };
        if !low.is_finite() || !high.is_finite() {
            return Err(Error::Value("numbers with an infinite one have no equal bins".to_owned()));
        }
        let around = |number: f64| if number == 0.0 { 0.001 } else { 0.001 * number.abs() };
        let is_one = low == high;
        let (low, high) = if is_one { (low - around(low), high + around(high)) } else { (low, high) };
        let step = (high - low) / count as f64;
        let mut bounds: Vec<f64> = (0..count).map(|at| low + at as f64 * step).chain([high]).collect();
        // The number at the open end belongs to its interval.
        let wider = (high - low) * 0.001;
        match (self.right, bounds.as_mut_slice()) {
            _ if is_one => {}
            (true, [first, ..]) => *first -= wider,
            (false, [.., last]) => *last += wider,
            _ => {}
        }
        Ok(bounds)
    }

    /// The labels as values of one type.
    fn values(&self, bounds: &[f64]) -> Result<Vec<Expr>> {
        let count = bounds.len().saturating_sub(1);
        match &self.labels {
            Labels::Numbers => Ok((0..count as i64).map(lit).collect()),
            Labels::Texts(labels) if labels.len() != count => {
                Err(Error::Value("there must be one label less than bin edges".to_owned()))
            }
            Labels::Texts(labels) => Ok(labels.iter().map(|label| lit(label.as_str())).collect()),
            Labels::Intervals => Ok(self.interval_labels(bounds).into_iter().map(lit).collect()),
        }
    }

    fn interval_labels(&self, bounds: &[f64]) -> Vec<String> {
        let is_moved = self.right && self.include_lowest;
        let whole = matches!(self.bins, Bins::Bounds(_, true)) && !is_moved;
        let rounded =
            |precision: i32| -> Vec<f64> { bounds.iter().map(|&bound| rounded(bound, precision)).collect() };
        let differ = |precision: &i32| rounded(*precision).windows(2).all(|pair| pair[0] < pair[1]);
        let precision = (self.precision..20).find(differ).unwrap_or(self.precision);
        let mut shown = rounded(precision);
        if let (true, Some(first)) = (is_moved, shown.first_mut()) {
            // The lowest interval has its bound, which pandas writes as one just below.
            *first -= 10_f64.powi(-precision);
        }
        let (open, close) = if self.right { ('(', ']') } else { ('[', ')') };
        let label = |pair: &[f64]| match pair {
            [low, high] if whole => format!("{open}{}, {}{close}", *low as i64, *high as i64),
            [low, high] => format!("{open}{low:?}, {high:?}{close}"),
            _ => String::new(),
        };
        shown.windows(2).map(label).collect()
    }

    fn expr(&self, number: &Expr, bounds: &[f64]) -> Result<Expr> {
        let missing = match self.labels {
            Labels::Numbers => ScalarValue::Int64(None),
            _ => ScalarValue::Utf8(None),
        };
        // A first branch, as there may be no interval.
        let mut cases = when(lit(false), lit(missing.clone()));
        for ((at, pair), value) in bounds.windows(2).enumerate().zip(self.values(bounds)?) {
            let (low, high) = (lit(pair[0]), lit(pair[1]));
            let has_low = !self.right || (self.include_lowest && at == 0);
            let above = if has_low { number.clone().gt_eq(low) } else { number.clone().gt(low) };
            let below = if self.right { number.clone().lt_eq(high) } else { number.clone().lt(high) };
            cases.when(above.and(below), value);
        }
        Ok(cases.otherwise(lit(missing))?)
    }
}

fn quantile(series: &Series, part: f64) -> Result<f64> {
    let quantile = series.quantile(part)?;
    quantile.as_f64().ok_or_else(|| Error::Value("no numbers to take quantiles of".to_owned()))
}

/// A bound with so many decimals, or so many digits if it is less than one.
fn rounded(bound: f64, precision: i32) -> f64 {
    if !bound.is_finite() || bound == 0.0 {
        return bound;
    }
    let zeros = if bound.trunc() == 0.0 { -bound.abs().log10().floor() as i32 - 1 } else { 0 };
    let scale = 10_f64.powi(zeros + precision);
    (bound * scale).round_ties_even() / scale
}

/// The interval of each number as a text like `(0.0, 1.5]`, its label or its number; missing outside of all.
/// pandas gives categories, which print alike.
///
/// ```
/// use tharsis_dataframe::{Cut, Series, cut};
/// let ages = Series::from_values("age", vec![4, 30, 70]);
/// let groups = cut(&ages, &Cut::at(&[0.0, 18.0, 65.0]).labels(["child", "adult"]));
/// assert_eq!(groups.values::<String>()?, [Some("child".to_owned()), Some("adult".to_owned()), None]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
pub fn cut(series: &Series, cut: &Cut) -> Series {
    let numbers = match series.dtype() {
        Ok(DataType::Boolean) => series.map_expr(|truth| Ok(cast(truth, DataType::Int64))),
        _ => series.clone(),
    };
    let bounds = numbers.dtype().and_then(|dtype| {
        check_numbers(&dtype, "cut")?;
        cut.bounds(&numbers)
    });
    numbers.map_expr(|expr| cut.expr(&expr, &bounds?))
}

/// The interval of each number between quantiles: `count` intervals with about as many numbers each, as
/// texts or labels. It computes the quantiles at once, which runs the plan.
#[track_caller]
pub fn qcut(series: &Series, count: usize, labels: Option<&[&str]>) -> Series {
    let count = count.max(1);
    let parts: Vec<f64> = (0..=count).map(|at| at as f64 / count as f64).collect();
    let quantiles = Cut::at_quantiles(&parts);
    match labels {
        Some(labels) => cut(series, &quantiles.labels(labels.iter().copied())),
        None => cut(series, &quantiles),
    }
}
