//! Histograms: numbers of elements in bins, or sums of their weights.
//!
//! Each task tallies one chunk with all bins at hand, and the results of the chunks are summed as a tree. So
//! elements are read once for the counts, and once more for their range if none is given. A task needs the
//! bytes of all bins beside its chunk; the numbered bins of [`Tensor::bincount`] are cut at 2^20.

use crate::create::{full, linspace, linspace_between};
use crate::elementwise::where_;
use crate::error::{Blame, Result};
use crate::index::{Index, slice};
use crate::joined::all_known;
use crate::late::late;
use crate::manipulate::stack;
use crate::operand::cast;
use crate::quantile::Method;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::{Count, Histogram as Tallied, Require};
use tharsis_graph::shape::{UNKNOWN, agree};
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::tally::Tally;
use tharsis_kernels::{DType, Kind, promote};

/// The bins of one axis of a histogram.
#[derive(Clone, Debug)]
pub enum Bins {
    /// This number of bins of one width, over the range.
    Count(usize),
    /// The edges between bins, ascending: (bins + 1,). The last bin has both of its edges.
    Edges(Tensor),
}

impl From<usize> for Bins {
    fn from(count: usize) -> Bins {
        Bins::Count(count)
    }
}

impl From<&Tensor> for Bins {
    fn from(edges: &Tensor) -> Bins {
        Bins::Edges(edges.clone())
    }
}

/// Options of histograms.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// The first and the last edge where bins are given by their number; those of the elements without it.
    pub range: Option<[f64; 2]>,
    /// Weights in the shape of the elements; 1 for each without it.
    pub weights: Option<Tensor>,
    /// Whether the result is a density: the integral over the bins is 1.
    pub density: bool,
}

/// Rules for the number of bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Estimator {
    Auto,
    Doane,
    FreedmanDiaconis,
    Rice,
    Scott,
    SquareRoot,
    Sturges,
}

const ESTIMATORS: [(&str, Estimator); 7] = [
    ("auto", Estimator::Auto),
    ("doane", Estimator::Doane),
    ("fd", Estimator::FreedmanDiaconis),
    ("rice", Estimator::Rice),
    ("scott", Estimator::Scott),
    ("sqrt", Estimator::SquareRoot),
    ("sturges", Estimator::Sturges),
];

impl Estimator {
    /// The rule of this name.
    ///
    /// ```
    /// use tharsis_numeric::histogram::Estimator;
    /// assert_eq!(Estimator::from_name("fd").ok(), Some(Estimator::FreedmanDiaconis));
    /// assert_eq!(Estimator::from_name("few").unwrap_err().class(), "ValueError");
    /// ```
    ///
    /// # Errors
    /// `ValueError` if there is none.
    #[track_caller]
    pub fn from_name(name: &str) -> Result<Estimator> {
        let found = ESTIMATORS.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule);
        let text = || format!("'{name}' is not a valid estimator for `bins`");
        found.ok_or_else(|| GraphError::Value(text())).blame()
    }
}

impl Tensor {
    /// NumPy's `histogram`: the number of elements in each bin, or the sum of their weights, (bins,), and the
    /// edges of the bins, (bins + 1,). int64, the dtype of the weights, or float64 for a density. NaN and
    /// elements outside of the edges do not count.
    ///
    /// ```
    /// use tharsis_numeric::{array, histogram::Histogram};
    /// let (counts, edges) = array([1.0, 2.0, 1.0, 5.0]).histogram(2, &Histogram::default());
    /// assert_eq!(counts.to_vec::<i64>()?, [3, 1]);
    /// assert_eq!(edges.to_vec::<f64>()?, [1.0, 3.0, 5.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::histogram_bin_edges`]; `ValueError` for weights of another shape.
    ///
    /// # Distributed
    /// Each task has a chunk of the elements and all bins.
    #[track_caller]
    pub fn histogram(&self, bins: impl Into<Bins>, options: &Histogram) -> (Tensor, Tensor) {
        let bins = bins.into();
        let even = matches!(bins, Bins::Count(_));
        let edges = self.histogram_bin_edges(bins, options.range);
        let counts = self.counts_between(&edges, even, options);
        (counts, edges)
    }

    #[track_caller]
    fn counts_between(&self, edges: &Tensor, even: bool, options: &Histogram) -> Tensor {
        if let Some(weights) = &options.weights {
            let (own, given) = (carry!(self.shape()), carry!(weights.shape()));
            if own.len() != given.len() || own.iter().zip(given).any(|(&a, &b)| !agree(a, b)) {
                return Tensor::bad_value("weights should have the same shape as a.", &[self, weights]);
            }
        }
        let counts = tallied(
            std::slice::from_ref(self),
            std::slice::from_ref(edges),
            &[even],
            options.weights.as_ref(),
        );
        if options.density {
            counts.divide(cast(&edges.diff(1, 0), DType::F64)).divide(counts.sum(..))
        } else {
            counts
        }
    }

    /// NumPy's `histogram_bin_edges`: the edges of the bins of [`Tensor::histogram`]; (bins + 1,), a float of
    /// the elements' width, float64 for other numbers; edges that are given keep their dtype.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let edges = array([0.0, 4.0]).histogram_bin_edges(2, None);
    /// assert_eq!(edges.to_vec::<f64>()?, [0.0, 2.0, 4.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for no bins, edges of several axes, a range that is not finite or descends; when it runs
    /// if edges descend, elements are not finite, or bins are narrower than numbers of the dtype.
    /// `TypeError` for complex numbers.
    #[track_caller]
    pub fn histogram_bin_edges(&self, bins: impl Into<Bins>, range: Option<[f64; 2]>) -> Tensor {
        let count = match bins.into() {
            Bins::Edges(edges) => {
                return given_edges(self, &edges, "`bins`", "increase monotonically, when an array");
            }
            Bins::Count(count) => count,
        };
        if count == 0 {
            return Tensor::bad_value("`bins` must be positive, when an integer", &[self]);
        }
        let edges = self.even_edges(count, range, false);
        let message = format!("Too many bins for data range. Cannot create {count} finite-sized bins.");
        let (low, high) = neighbours(&edges);
        Tensor::apply(Require { message }, &[&edges, &low.less(&high).all(..)])
    }

    /// Evenly spaced edges over a range or that of the elements. A range is taken as float64 if `wide`.
    #[track_caller]
    fn even_edges(&self, count: usize, range: Option<[f64; 2]>, wide: bool) -> Tensor {
        let dtype = carry!(self.dtype());
        if dtype.is_complex() {
            let text = format!("histogram: {dtype} numbers have no order that bins could follow");
            return Tensor::refused(GraphError::Type(text), &[self]);
        }
        let dtype = if dtype.kind() < Kind::Float { DType::F64 } else { dtype };
        let fixed = |first: f64, last: f64| {
            let (first, last) = if first == last { (first - 0.5, last + 0.5) } else { (first, last) };
            cast(&linspace(first, last, count + 1), if wide { DType::F64 } else { dtype })
        };
        match range {
            Some([first, last]) if last < first => {
                return Tensor::bad_value("max must be larger than min in range parameter.", &[self]);
            }
            Some([first, last]) if !(first.is_finite() && last.is_finite()) => {
                return Tensor::bad_value(
                    format!("supplied range of [{first}, {last}] is not finite"),
                    &[self],
                );
            }
            Some([first, last]) => return fixed(first, last),
            None => {}
        }
        if !all_known(&[self]) {
            let meta = Meta { shape: vec![count + 1], dtype };
            return late("histogram_bin_edges", (count, wide), meta, &[self], move |x| {
                x[0].even_edges(count, None, wide)
            });
        }
        if carry!(self.shape()).contains(&0) {
            return fixed(0.0, 1.0);
        }
        let [first, last] = [self.min(..), self.max(..)].map(|edge| cast(&edge, dtype));
        let message = "autodetected range of the elements is not finite".to_owned();
        let met = first.isfinite().logical_and(last.isfinite());
        let first = Tensor::apply(Require { message }, &[&first, &met]);
        let alike = first.equal(&last);
        let apart = |edge: &Tensor, by: f64| where_(&alike, edge.add(by), edge);
        linspace_between(&apart(&first, -0.5), &apart(&last, 0.5), count + 1, true)
    }

    /// The number of bins that one of NumPy's rules finds for these elements, or for those within a range.
    /// The rule's statistics are computed at once, since shapes depend on them.
    ///
    /// ```
    /// use tharsis_numeric::{arange, histogram::Estimator};
    /// assert_eq!(arange(100).histogram_bin_count(Estimator::Sturges, None)?, 8);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a range that is not finite or descends, and for elements that are not finite;
    /// `TypeError` for complex numbers; all errors of the computation.
    #[track_caller]
    pub fn histogram_bin_count(&self, rule: Estimator, range: Option<[f64; 2]>) -> Result<usize> {
        self.even_edges(1, range, false).check()?;
        let x = if self.dtype()? == DType::Bool { cast(self, DType::U8) } else { self.clone() };
        let x = match range {
            Some([first, last]) => x.filter(&x.greater_equal(first).logical_and(x.less_equal(last))),
            None => x.in_one_axis(),
        };
        let x = x.compute_chunk_sizes()?;
        let whole = x.dtype()?.is_integer();
        let (count, x) = (x.size()? as f64, cast(&x, DType::F64));
        if count == 0.0 {
            return Ok(1);
        }
        let mut wanted = vec![x.min(..), x.max(..)];
        match rule {
            Estimator::Auto | Estimator::FreedmanDiaconis => {
                wanted.extend([0.25, 0.75].map(|q| x.quantile(q, .., Method::Linear)));
            }
            Estimator::Scott => wanted.push(x.std(..)),
            Estimator::Doane => {
                let deviation = x.std(..);
                let skew = x.subtract(x.mean(..)).divide(&deviation).power(3.0).mean(..);
                wanted.extend([deviation, skew]);
            }
            Estimator::Rice | Estimator::SquareRoot | Estimator::Sturges => {}
        }
        let found = stack(&wanted.iter().collect::<Vec<_>>(), 0).to_vec::<f64>()?;
        let [low, high] = [found[0], found[1]];
        if !(low.is_finite() && high.is_finite()) {
            let text = format!("autodetected range of [{low}, {high}] is not finite");
            return Err(GraphError::Value(text)).blame();
        }
        let width = rule.width(count, high - low, &found[2..]);
        let width = if whole && 0.0 < width && width < 1.0 { 1.0 } else { width };
        let (first, last) = range.map_or((low, high), |[first, last]| (first, last));
        let (first, last) = if first == last { (first - 0.5, last + 0.5) } else { (first, last) };
        let bins = if width == 0.0 || width.is_nan() { 1.0 } else { ((last - first) / width).ceil() };
        Ok(bins as usize)
    }

    /// NumPy's `histogram2d`: the number of pairs of an element of this tensor and one of another in each bin
    /// of the plane, or the sum of their weights, and the edges along both axes; (n,) and (n,) to (bins,
    /// bins) of float64.
    ///
    /// ```
    /// use tharsis_numeric::{array, histogram::Histogram};
    /// let (x, y) = (array([0.0, 1.0, 1.0]), array([0.0, 0.0, 4.0]));
    /// let (counts, _) = x.histogram2d(&y, [2.into(), 2.into()], [None, None], &Histogram::default());
    /// assert_eq!(counts.to_vec::<f64>()?, [1.0, 0.0, 1.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`histogramdd`]; `ValueError` for tensors of several lengths.
    ///
    /// # Distributed
    /// As [`Tensor::histogram`].
    #[track_caller]
    pub fn histogram2d(
        &self,
        other: &Tensor,
        bins: [Bins; 2],
        ranges: [Option<[f64; 2]>; 2],
        options: &Histogram,
    ) -> (Tensor, [Tensor; 2]) {
        let refused = |tensor: Tensor| (tensor.clone(), [tensor.clone(), tensor]);
        let (own, given) = match (self.meta(), other.meta()) {
            (Ok(own), Ok(given)) => (own, given),
            (Err(error), _) | (_, Err(error)) => return refused(Tensor::from(error)),
        };
        if let (&[a], &[b]) = (&own.shape[..], &given.shape[..])
            && !agree(a, b)
        {
            return refused(Tensor::bad_value("x and y must have the same length.", &[self, other]));
        }
        let dtype = promote(own.dtype, given.dtype);
        let columns = [self, other].map(|column| cast(column, dtype));
        let (counts, edges) = histogramdd(&columns, &bins, &ranges, options);
        match <[Tensor; 2]>::try_from(edges) {
            Ok(edges) => (counts, edges),
            Err(_) => refused(counts),
        }
    }

    /// NumPy's `bincount`: how often each number from 0 to the largest element occurs, or the sum of the
    /// weights of its places; at least `minlength` numbers. (n,) to (?,): int64, float64 with weights of at
    /// least one element.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1i64, 3, 1]).bincount(None, 0).to_vec::<i64>()?, [0, 2, 0, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless there is one axis, for weights of another length, and when it runs for negative
    /// elements; `TypeError` for elements that are no integers and for complex weights.
    ///
    /// # Distributed
    /// Each task has a chunk of the elements and 2^20 of the numbers: all elements are read once for each
    /// 2^20 numbers.
    #[track_caller]
    pub fn bincount(&self, weights: Option<&Tensor>, minlength: usize) -> Tensor {
        let inputs: Vec<&Tensor> = std::iter::once(self).chain(weights).collect();
        let meta = carry!(self.meta());
        if meta.shape.len() != 1 {
            let depth = if meta.shape.is_empty() { "of too small depth for" } else { "too deep for" };
            return Tensor::bad_value(format!("object {depth} desired array"), &inputs);
        }
        if Kind::Float <= meta.dtype.kind() {
            let text =
                format!("Cannot cast array data from {} to int64 according to the rule 'safe'", meta.dtype);
            return Tensor::refused(GraphError::Type(text), &inputs);
        }
        let mut dtype = DType::I64;
        if let Some(weights) = weights {
            let given = carry!(weights.meta());
            if given.shape.len() != 1 || !agree(given.shape[0], meta.shape[0]) {
                return Tensor::bad_value("The weights and list don't have the same length.", &inputs);
            }
            if given.dtype.is_complex() {
                let text = format!(
                    "Cannot cast array data from {} to float64 according to the rule 'safe'",
                    given.dtype
                );
                return Tensor::refused(GraphError::Type(text), &inputs);
            }
            dtype = DType::F64;
        }
        if !all_known(&inputs) {
            let meta = Meta { shape: vec![UNKNOWN], dtype };
            return late("bincount", minlength, meta, &inputs, move |x| {
                cast(&x[0].bincount(x.get(1), minlength), dtype)
            });
        }
        if meta.shape[0] == 0 {
            // As in NumPy, without elements the weights do not count.
            return full(&[minlength], 0i64, DType::I64);
        }
        let x = cast(self, DType::I64);
        let least = i64::try_from(minlength).unwrap_or(i64::MAX);
        let message = "'list' argument must have no negative elements".to_owned();
        let largest = x.max(..);
        let message_of_size = format!("'list' argument must have no elements of {BINS_MAX} or more");
        let is_small = largest.less(BINS_MAX);
        let largest = Tensor::apply(Require { message: message_of_size }, &[&largest, &is_small]);
        let length = largest.add(1).maximum(least);
        let length = Tensor::apply(Require { message }, &[&length, &x.min(..).greater_equal(0)]);
        let numbers = Tensor::lazily(Count::default(), &[&length]);
        let weights = weights.map(|weights| cast(weights, DType::F64));
        numbered(&numbers, &x, weights.as_ref())
    }
}

impl Estimator {
    /// The width of a bin for this number of elements, their range, and the statistics of the rule.
    fn width(self, count: f64, range: f64, found: &[f64]) -> f64 {
        let sturges = range / (count.log2() + 1.0);
        let root = range / count.sqrt();
        let freedman_diaconis = |found: &[f64]| 2.0 * (found[1] - found[0]) * count.powf(-1.0 / 3.0);
        match self {
            Estimator::Auto => freedman_diaconis(found).max(root / 2.0).min(sturges),
            Estimator::FreedmanDiaconis => freedman_diaconis(found),
            Estimator::Rice => range / (2.0 * count.powf(1.0 / 3.0)),
            Estimator::Scott => (24.0 * std::f64::consts::PI.sqrt() / count).powf(1.0 / 3.0) * found[0],
            Estimator::SquareRoot => root,
            Estimator::Sturges => sturges,
            Estimator::Doane if 2.0 < count && 0.0 < found[0] => {
                let scale = (6.0 * (count - 2.0) / ((count + 1.0) * (count + 3.0))).sqrt();
                range / (1.0 + count.log2() + (1.0 + found[1].abs() / scale).log2())
            }
            Estimator::Doane => 0.0,
        }
    }
}

/// NumPy's `histogramdd`: the number of points in each bin of a space, or the sum of their weights, and the
/// edges along each axis; a column (n,) for each axis to (bins, bins, ..) of float64.
///
/// ```
/// use tharsis_numeric::{array, histogram::{Histogram, histogramdd}};
/// let columns = [array([0.0, 1.0]), array([0.0, 1.0]), array([0.0, 4.0])];
/// let bins = [1.into(), 2.into(), 2.into()];
/// let (counts, _) = histogramdd(&columns, &bins, &[None; 3], &Histogram::default());
/// assert_eq!(counts.to_vec::<f64>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` unless there are columns of one length, and bins and a range for each; as
/// [`Tensor::histogram_bin_edges`]. The range in the options plays no part.
///
/// # Distributed
/// As [`Tensor::histogram`]: a task has all bins of the space.
#[track_caller]
pub fn histogramdd(
    columns: &[Tensor],
    bins: &[Bins],
    ranges: &[Option<[f64; 2]>],
    options: &Histogram,
) -> (Tensor, Vec<Tensor>) {
    let inputs: Vec<&Tensor> = columns.iter().chain(&options.weights).collect();
    let refused = |text: &str| (Tensor::bad_value(text, &inputs), Vec::new());
    if let Some(error) = inputs.iter().find_map(|input| input.check().err()) {
        return (Tensor::from(error), Vec::new());
    }
    if bins.len() != columns.len() {
        return refused("The dimension of bins must be equal to the dimension of the sample x.");
    }
    if ranges.len() != columns.len() {
        return refused("range argument must have one entry per dimension");
    }
    let shape = |x: &Tensor| x.shape().map(<[usize]>::to_vec).unwrap_or_default();
    let first = columns.first().map(shape).unwrap_or_default();
    let alike = |other: Vec<usize>| other.len() == 1 && first.len() == 1 && agree(first[0], other[0]);
    if columns.is_empty() || !columns.iter().all(|column| alike(shape(column))) {
        return refused("histogramdd: columns have one axis, all of one length");
    }
    if options.weights.as_ref().is_some_and(|weights| !alike(shape(weights))) {
        return refused("The weights and list don't have the same length.");
    }
    let mut edges = Vec::with_capacity(columns.len());
    for (axis, (column, bins)) in columns.iter().zip(bins).enumerate() {
        let name = format!("`bins[{axis}]`");
        edges.push(match bins {
            Bins::Count(0) => return refused(&format!("{name} must be positive, when an integer")),
            Bins::Count(count) => column.even_edges(*count, ranges[axis], true),
            Bins::Edges(edges) => {
                given_edges(column, edges, &name, "be monotonically increasing, when an array")
            }
        });
    }
    let even: Vec<bool> = bins.iter().map(|bins| matches!(bins, Bins::Count(_))).collect();
    let weights = options.weights.as_ref().map(|weights| cast(weights, DType::F64));
    let counts = cast(&tallied(columns, &edges, &even, weights.as_ref()), DType::F64);
    let counts = if options.density { density_of(&counts, &edges) } else { counts };
    (counts, edges)
}

/// Counts by the volume of their bins, and by their sum.
#[track_caller]
fn density_of(counts: &Tensor, edges: &[Tensor]) -> Tensor {
    let mut made = counts.clone();
    for (axis, edges) in edges.iter().enumerate() {
        let others: Vec<i64> = (0..edges_rank(counts)).filter(|&other| other != axis as i64).collect();
        made = made.divide(edges.diff(1, 0).expand_all_dims(&others));
    }
    made.divide(counts.sum(..))
}

fn edges_rank(counts: &Tensor) -> i64 {
    counts.ndim().unwrap_or(0) as i64
}

/// Edges that a user gives, which must not descend.
#[track_caller]
fn given_edges(x: &Tensor, edges: &Tensor, name: &str, order: &str) -> Tensor {
    let rank = carry!(edges.ndim());
    if rank != 1 {
        return Tensor::bad_value(format!("{name} must be 1d, when an array"), &[x, edges]);
    }
    if carry!(edges.dtype()).is_complex() || carry!(x.dtype()).is_complex() {
        let text = "histogram: complex numbers have no order that bins could follow".to_owned();
        return Tensor::refused(GraphError::Type(text), &[x, edges]);
    }
    let (low, high) = neighbours(edges);
    let message = format!("{name} must {order}");
    // An edge that is not a number is not above the one before it, and not below it either.
    Tensor::apply(Require { message }, &[edges, &low.greater(&high).any(..).logical_not()])
}

/// All edges but the last one, and all but the first one.
#[track_caller]
fn neighbours(edges: &Tensor) -> (Tensor, Tensor) {
    let part = |range: Index| edges.get(&[range]);
    (part(slice(None, -1, 1)), part(slice(1, None, 1)))
}

/// Sums of weights by intervals, with an axis for each column.
#[track_caller]
fn tallied(columns: &[Tensor], edges: &[Tensor], even: &[bool], weights: Option<&Tensor>) -> Tensor {
    let inputs: Vec<&Tensor> = columns.iter().chain(edges).chain(weights).collect();
    let dtype = match weights {
        Some(weights) => carry!(weights.dtype()),
        None => DType::I64,
    };
    let mut extents = Vec::with_capacity(edges.len());
    for edges in edges {
        let count = carry!(edges.shape())[0];
        extents.push(if count == UNKNOWN { UNKNOWN } else { count.saturating_sub(1) });
    }
    if !all_known(&inputs) {
        let (axes, even, meta) = (columns.len(), even.to_vec(), Meta { shape: extents, dtype });
        return late("histogram", even.clone(), meta, &inputs, move |x| {
            tallied(&x[..axes], &x[axes..2 * axes], &even, x.get(2 * axes))
        });
    }
    let (mut compared, mut bounds) = (Vec::with_capacity(columns.len()), Vec::with_capacity(edges.len()));
    for (column, edges) in columns.iter().zip(edges) {
        let dtype = order_dtype(promote(carry!(column.dtype()), carry!(edges.dtype())));
        compared.push(cast(column, dtype));
        bounds.push(cast(edges, dtype));
    }
    let weights = weights.map(|weights| cast(weights, sum_dtype(dtype)));
    let tally = Tally::Between { even: even.to_vec(), weighted: weights.is_some() };
    let inputs: Vec<&Tensor> = compared.iter().chain(&bounds).chain(&weights).collect();
    let sums = cast(&Tensor::apply(Tallied { tally }, &inputs), dtype);
    match extents.len() {
        1 => sums,
        _ => sums.reshape(&extents.iter().map(|&extent| extent as i64).collect::<Vec<_>>()),
    }
}

/// Sums of weights by consecutive numbers.
#[track_caller]
fn numbered(numbers: &Tensor, x: &Tensor, weights: Option<&Tensor>) -> Tensor {
    let inputs: Vec<&Tensor> = [numbers, x].into_iter().chain(weights).collect();
    if !all_known(&inputs) {
        let dtype = if weights.is_some() { DType::F64 } else { DType::I64 };
        let meta = Meta { shape: carry!(numbers.shape()).to_vec(), dtype };
        return late("bincount", (), meta, &inputs, |x| numbered(&x[0], &x[1], x.get(2)));
    }
    Tensor::apply(Tallied { tally: Tally::Numbers { weighted: weights.is_some() } }, &inputs)
}

/// The dtype in which elements are compared with edges.
fn order_dtype(dtype: DType) -> DType {
    match dtype {
        DType::U64 => DType::U64,
        dtype if dtype.kind() < Kind::Float => DType::I64,
        _ => DType::F64,
    }
}

/// The dtype in which weights are summed.
fn sum_dtype(dtype: DType) -> DType {
    match dtype {
        DType::U64 => DType::U64,
        dtype if dtype.is_integer() => DType::I64,
        dtype if dtype.is_complex() => DType::C128,
        _ => DType::F64,
    }
}

/// The most bins that are made of numbers: what is beyond would be no array that fits anywhere.
const BINS_MAX: i64 = 1 << 48;
