//! Quantiles and medians along axes: elements of sorted lines, or places between two of them.
//!
//! Lines are sorted as [`Tensor::sort`] does it, so a line that lies in many chunks is exchanged by ranges
//! and no task has more than a chunk of it. From the sorted line only the elements around a quantile are
//! read. Of a single line in many chunks, only the ranges in which these elements are get exchanged and
//! sorted; where NaN do not count, the places are known only from the sorted line, so it is sorted as a
//! whole.

use crate::elementwise::where_;
use crate::error::Blame;
use crate::joined::all_known;
use crate::late::late;
use crate::operand::cast;
use crate::reduction::Axes;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::{LINE_ELEMENTS_MAX, Ranked};
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::{DType, Kind, Scalar};

/// NumPy's `method` of quantiles: which element, or which place between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method {
    AveragedInvertedCdf,
    ClosestObservation,
    Hazen,
    Higher,
    InterpolatedInvertedCdf,
    InvertedCdf,
    #[default]
    Linear,
    Lower,
    MedianUnbiased,
    Midpoint,
    Nearest,
    NormalUnbiased,
    Weibull,
}

const METHODS: [(&str, Method); 13] = [
    ("averaged_inverted_cdf", Method::AveragedInvertedCdf),
    ("closest_observation", Method::ClosestObservation),
    ("hazen", Method::Hazen),
    ("higher", Method::Higher),
    ("interpolated_inverted_cdf", Method::InterpolatedInvertedCdf),
    ("inverted_cdf", Method::InvertedCdf),
    ("linear", Method::Linear),
    ("lower", Method::Lower),
    ("median_unbiased", Method::MedianUnbiased),
    ("midpoint", Method::Midpoint),
    ("nearest", Method::Nearest),
    ("normal_unbiased", Method::NormalUnbiased),
    ("weibull", Method::Weibull),
];

impl Method {
    /// The method of this name.
    ///
    /// ```
    /// use tharsis_numeric::quantile::Method;
    /// assert_eq!(Method::from_name("hazen").ok(), Some(Method::Hazen));
    /// assert_eq!(Method::from_name("cubic").unwrap_err().class(), "ValueError");
    /// ```
    ///
    /// # Errors
    /// `ValueError` if there is none.
    #[track_caller]
    pub fn from_name(name: &str) -> crate::Result<Method> {
        let found = METHODS.iter().find(|(known, _)| *known == name).map(|(_, method)| *method);
        let names: Vec<&str> = METHODS.iter().map(|(known, _)| *known).collect();
        let text = || format!("'{name}' is not a valid method. Use one of: {}", names.join(", "));
        found.ok_or_else(|| GraphError::Value(text())).blame()
    }

    /// Whether the result is an element, so that the dtype stays.
    fn chooses(self) -> bool {
        use Method::{ClosestObservation, Higher, InvertedCdf, Lower, Nearest};
        matches!(self, ClosestObservation | Higher | InvertedCdf | Lower | Nearest)
    }

    /// The place of a quantile is `(n + shift) * q + plus - minus`, in a line of n elements.
    fn terms(self, q: f64) -> (f64, f64, f64) {
        let between = |alpha: f64, beta: f64| (0.0, alpha + q * (1.0 - alpha - beta), 1.0);
        match self {
            Method::Linear | Method::Lower | Method::Higher | Method::Midpoint | Method::Nearest => {
                (-1.0, 0.0, 0.0)
            }
            Method::InvertedCdf | Method::AveragedInvertedCdf => (0.0, 0.0, 1.0),
            Method::ClosestObservation => (0.0, 0.0, 1.5),
            Method::InterpolatedInvertedCdf => between(0.0, 1.0),
            Method::Hazen => between(0.5, 0.5),
            Method::Weibull => between(0.0, 0.0),
            Method::MedianUnbiased => between(1.0 / 3.0, 1.0 / 3.0),
            Method::NormalUnbiased => between(3.0 / 8.0, 3.0 / 8.0),
        }
    }
}

/// Quantiles that are asked for: numbers from 0 to 1, and the shape in which they are given.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    /// The shape, which stands before that of the lines in the result.
    pub shape: Vec<usize>,
    /// As many numbers as the shape has elements.
    pub values: Vec<f64>,
}

impl From<f64> for Quantiles {
    fn from(q: f64) -> Quantiles {
        Quantiles { shape: Vec::new(), values: vec![q] }
    }
}

impl From<&[f64]> for Quantiles {
    fn from(values: &[f64]) -> Quantiles {
        Quantiles { shape: vec![values.len()], values: values.to_vec() }
    }
}

impl<const N: usize> From<[f64; N]> for Quantiles {
    fn from(values: [f64; N]) -> Quantiles {
        Quantiles::from(&values[..])
    }
}

/// Places in sorted lines: the elements below and above, and the share of the one above.
struct Place {
    below: Tensor,
    above: Tensor,
    share: Tensor,
}

impl Tensor {
    /// NumPy's `quantile`: the elements below which a share of all lies, along axes; the axes are dropped,
    /// those of `q` come first.
    ///
    /// Floats keep their dtype for a single `q`; other numbers give float64, or stay as they are where the
    /// method chooses an element. A line with NaN gives NaN.
    ///
    /// ```
    /// use tharsis_numeric::{array, quantile::Method};
    /// let x = array([1.0, 2.0, 4.0, 8.0]);
    /// assert_eq!(x.quantile(0.5, .., Method::Linear).to_vec::<f64>()?, [3.0]);
    /// assert_eq!(x.quantile([0.25, 1.0], .., Method::Lower).to_vec::<f64>()?, [1.0, 8.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for quantiles that are not from 0 to 1, `TypeError` for complex numbers, and for bool if
    /// the method is not one that chooses, `IndexError` for lines without elements, `AxisError`.
    ///
    /// # Distributed
    /// As [`Tensor::sort`]; of a single line, the elements are read twice and few of them sorted.
    #[track_caller]
    pub fn quantile(&self, q: impl Into<Quantiles>, axes: impl Into<Axes>, method: Method) -> Tensor {
        self.quantiles(&q.into(), &axes.into(), method, false)
    }

    /// NumPy's `nanquantile`: as [`Tensor::quantile`], of the elements that are not NaN. NaN for lines with
    /// nothing else.
    ///
    /// ```
    /// use tharsis_numeric::{array, quantile::Method};
    /// let x = array([f64::NAN, 2.0, 4.0]);
    /// assert_eq!(x.nanquantile(0.5, .., Method::Linear).to_vec::<f64>()?, [3.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::quantile`].
    ///
    /// # Distributed
    /// As [`Tensor::sort`].
    #[track_caller]
    pub fn nanquantile(&self, q: impl Into<Quantiles>, axes: impl Into<Axes>, method: Method) -> Tensor {
        let skips = carry!(self.dtype()).kind() == Kind::Float;
        self.quantiles(&q.into(), &axes.into(), method, skips)
    }

    /// NumPy's `median`: the middle element of each line along axes, or the mean of the two in the middle;
    /// floats and complex numbers keep their dtype, others give float64. NaN for lines with NaN or without
    /// elements.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([7i64, 1, 2, 9]).median(..).to_vec::<f64>()?, [4.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    ///
    /// # Distributed
    /// As [`Tensor::quantile`].
    #[track_caller]
    pub fn median(&self, axes: impl Into<Axes>) -> Tensor {
        self.middle(&axes.into(), false)
    }

    /// NumPy's `nanmedian`: as [`Tensor::median`], of the elements that are not NaN.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([f64::NAN, 1.0, 2.0]).nanmedian(..).to_vec::<f64>()?, [1.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::median`].
    ///
    /// # Distributed
    /// As [`Tensor::sort`].
    #[track_caller]
    pub fn nanmedian(&self, axes: impl Into<Axes>) -> Tensor {
        let skips = Kind::Float <= carry!(self.dtype()).kind();
        self.middle(&axes.into(), skips)
    }

    #[track_caller]
    fn quantiles(&self, q: &Quantiles, axes: &Axes, method: Method, skips_nan: bool) -> Tensor {
        let meta = carry!(self.meta());
        let out = carry!(out_shape(self, axes));
        if meta.dtype.is_complex() {
            return Tensor::refused(
                GraphError::Type("a must be an array of real numbers".to_owned()),
                &[self],
            );
        }
        if q.values.iter().any(|q| !(0.0..=1.0).contains(q)) {
            return Tensor::bad_value("Quantiles must be in the range [0, 1]", &[self]);
        }
        if meta.dtype == DType::Bool && !method.chooses() {
            let text = "numpy boolean subtract, the `-` operator, is not supported";
            return Tensor::refused(GraphError::Type(text.to_owned()), &[self]);
        }
        let shape = [&q.shape[..], &out].concat();
        if !all_known(&[self]) {
            let meta = Meta { shape, dtype: result_dtype(meta.dtype, q, method) };
            let (later, along) = (q.clone(), axes.clone());
            return late("quantile", (q, axes, method, skips_nan), meta, &[self], move |x| {
                x[0].quantiles(&later, &along, method, skips_nan)
            });
        }
        let (lines, count) = carry!(lines_over(self, axes));
        let wide: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
        let dtype = result_dtype(meta.dtype, q, method);
        if shape.contains(&0) {
            return crate::create::full(&shape, 0i64, dtype);
        }
        if count == 0 && skips_nan {
            return crate::create::full(&shape, Scalar::Float(f64::NAN), dtype);
        }
        if count == 0 {
            return Tensor::refused(
                GraphError::Indices("index -1 is out of bounds for axis 0 with size 0".to_owned()),
                &[self],
            );
        }
        // A single number counts as one of the dtype of floats, as in NumPy.
        let narrow = if q.shape.is_empty() && meta.dtype.is_float() { meta.dtype } else { DType::F64 };
        let found = if skips_nan {
            at_awaited_places(&lines.sort(-1), &q.values, narrow, dtype, method)
        } else {
            let (sorted, places) = ordered(&lines, count, known_places(&q.values, count, method, narrow));
            let found = at_known_places(&sorted, &places, dtype, method);
            if meta.dtype.is_float() { spoiled(&sorted, &found) } else { found }
        };
        found.moveaxis(-1, 0).reshape(&wide)
    }

    #[track_caller]
    fn middle(&self, axes: &Axes, skips_nan: bool) -> Tensor {
        let meta = carry!(self.meta());
        let shape = carry!(out_shape(self, axes));
        let dtype = if meta.dtype.kind() < Kind::Float { DType::F64 } else { meta.dtype };
        if !all_known(&[self]) {
            let along = axes.clone();
            return late("median", (axes, skips_nan), Meta { shape, dtype }, &[self], move |x| {
                x[0].middle(&along, skips_nan)
            });
        }
        let (lines, count) = carry!(lines_over(self, axes));
        let wide: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
        if count == 0 || shape.contains(&0) {
            return crate::create::full(&shape, Scalar::Float(f64::NAN), dtype);
        }
        let found = if skips_nan {
            let sorted = lines.sort(-1);
            let numbers = sorted.isnan().logical_not().count_nonzero(Axes::from(-1).keepdims());
            let last = numbers.subtract(1).maximum(0);
            let [low, high] = [last.floor_divide(2), numbers.floor_divide(2).minimum(&last)]
                .map(|at| cast(&sorted.take_along_axis(&at, -1), dtype));
            crate::manipulate::concatenate(&[&low, &high], -1).mean(Axes::from(-1).keepdims())
        } else {
            let both = [(count as i64 - 1) / 2, count as i64 / 2];
            let (sorted, places) = ordered(&lines, count, vec![(both, 0.0)]);
            let both = places[0].0;
            let middle = if both[0] == both[1] { &both[..1] } else { &both };
            let mean = cast(&pick(&sorted, middle), dtype).mean(Axes::from(-1).keepdims());
            if Kind::Float <= meta.dtype.kind() { spoiled(&sorted, &mean) } else { mean }
        };
        found.reshape(&wide)
    }
}

/// The shape of a reduction over axes.
#[track_caller]
fn out_shape(x: &Tensor, axes: &Axes) -> crate::Result<Vec<usize>> {
    let reduced = axes.named(x)?;
    let shape = x.shape()?.iter().enumerate();
    let kept = shape.filter(|(axis, _)| axes.keeps() || !reduced.contains(axis));
    Ok(kept.map(|(axis, &extent)| if reduced.contains(&axis) { 1 } else { extent }).collect())
}

/// The elements over axes as lines along the last axis, and their length.
#[track_caller]
fn lines_over(x: &Tensor, axes: &Axes) -> crate::Result<(Tensor, usize)> {
    let reduced = axes.named(x)?;
    let from = x.shape()?;
    if from.is_empty() {
        return Ok((x.reshape(&[1]), 1));
    }
    let count = reduced.iter().map(|&axis| from[axis]).product();
    let kept = (0..from.len()).filter(|axis| !reduced.contains(axis));
    let order: Vec<i64> = kept.clone().chain(reduced.iter().copied()).map(|axis| axis as i64).collect();
    let mut lines = x.transpose(&order);
    if reduced.len() != 1 {
        let shape: Vec<i64> = kept.map(|axis| from[axis] as i64).chain([count as i64]).collect();
        lines = lines.reshape(&shape);
    }
    Ok((lines, count))
}

/// Positions below and above a quantile, and the share of the one above.
type Between = ([i64; 2], f64);

/// Lines in order, and places in them. Of one line in many chunks only the elements at these places and the
/// last one are made, and places are those among them.
#[track_caller]
fn ordered(lines: &Tensor, count: usize, mut places: Vec<Between>) -> (Tensor, Vec<Between>) {
    let wanted = places.iter().flat_map(|(around, _)| *around).chain([count as i64 - 1]);
    let mut ranks: Vec<u64> = wanted.map(|at| at as u64).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let is_one = lines.shape().is_ok_and(|shape| shape.len() == 1);
    if !is_one || count <= LINE_ELEMENTS_MAX || RANKS_MAX < ranks.len() {
        return (lines.sort(-1), places);
    }
    let among = |at: i64| ranks.partition_point(|&rank| rank < at as u64) as i64;
    places.iter_mut().for_each(|(around, _)| *around = around.map(among));
    (Tensor::apply(Ranked::new(ranks), &[lines]), places)
}

/// Some elements of each line.
#[track_caller]
fn pick(sorted: &Tensor, positions: &[i64]) -> Tensor {
    match positions.len() {
        0..=PARTS_MAX => sorted.take(positions, -1),
        count => sorted.take_at(&Tensor::from_elements(&[count], positions), -1),
    }
}

/// A result, or NaN where the line of it has one: NaN are last in order.
#[track_caller]
fn spoiled(sorted: &Tensor, found: &Tensor) -> Tensor {
    let last = sorted.take(&[-1], -1);
    let nan = cast(&Tensor::number(f64::NAN), carry!(found.dtype()));
    where_(&last.isnan(), nan, found)
}

fn result_dtype(from: DType, q: &Quantiles, method: Method) -> DType {
    let keeps = method.chooses() || (q.shape.is_empty() && from.is_float());
    if keeps { from } else { DType::F64 }
}

/// The nearest number of a float dtype.
fn rounded(number: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => tharsis_kernels::f16_of(number).to_f64(),
        DType::BF16 => tharsis_kernels::bf16_of(number).to_f64(),
        DType::F32 => f64::from(number as f32),
        _ => number,
    }
}

/// Quantiles of sorted lines of one length, with the axis of quantiles at the end.
#[track_caller]
fn at_known_places(sorted: &Tensor, places: &[Between], dtype: DType, method: Method) -> Tensor {
    let [below, above] = [0, 1].map(|side| {
        let positions: Vec<i64> = places.iter().map(|place| place.0[side]).collect();
        pick(sorted, &positions)
    });
    let shares: Vec<f64> = places.iter().map(|place| place.1).collect();
    let share = Tensor::from_elements(&[shares.len()], &shares);
    interpolated(&Place { below, above, share }, dtype, method)
}

/// As [`at_known_places`] for lines whose last elements are NaN and do not count.
#[track_caller]
fn at_awaited_places(sorted: &Tensor, values: &[f64], narrow: DType, dtype: DType, method: Method) -> Tensor {
    let numbers = sorted.isnan().logical_not().count_nonzero(-1);
    let mut parts = Vec::with_capacity(values.len());
    for &q in values {
        let [below, above, share] = awaited_place(&numbers, q, method, narrow);
        let [below, above] = [below, above].map(|at| sorted.take_along_axis(&at, -1));
        parts.push(interpolated(&Place { below, above, share }, dtype, method));
    }
    crate::manipulate::concatenate(&parts.iter().collect::<Vec<_>>(), -1)
}

/// For lines of one length: the positions below and above each quantile, and the share of the one above.
fn known_places(values: &[f64], count: usize, method: Method, narrow: DType) -> Vec<Between> {
    let last = count as i64 - 1;
    let place = |&q: &f64| {
        let q = rounded(q, narrow);
        let (shift, plus, minus) = method.terms(q);
        let product = (count as f64 + shift) * q;
        let place = if narrow == DType::F32 { rounded(product, narrow) } else { product } + plus - minus;
        let below = place.floor();
        let share = place - below;
        let chosen = |at: f64| ([(at as i64).clamp(0, last); 2], 0.0);
        match method {
            Method::Lower => chosen(below),
            Method::Higher => chosen(place.ceil()),
            Method::Nearest => chosen(place.round_ties_even()),
            Method::InvertedCdf => chosen(if share == 0.0 { below } else { below + 1.0 }),
            Method::ClosestObservation => {
                let stays = share == 0.0 && below.rem_euclid(2.0) == 1.0;
                chosen(if stays { below } else { below + 1.0 })
            }
            _ if last as f64 <= place => ([last; 2], 0.0),
            _ if place < 0.0 => ([0; 2], 0.0),
            Method::AveragedInvertedCdf => {
                ([below as i64, below as i64 + 1], if share == 0.0 { 0.5 } else { 1.0 })
            }
            Method::Midpoint => ([below as i64, below as i64 + 1], if share == 0.0 { 0.0 } else { 0.5 }),
            _ => ([below as i64, below as i64 + 1], share),
        }
    };
    values.iter().map(place).collect()
}

/// As [`known_places`] for one quantile, in lines with these numbers of elements: positions and shares with
/// an axis of extent 1 at the end. The first position for lines without elements.
#[track_caller]
fn awaited_place(numbers: &Tensor, q: f64, method: Method, narrow: DType) -> [Tensor; 3] {
    let q = rounded(q, narrow);
    let (shift, plus, minus) = method.terms(q);
    let numbers = cast(&numbers.expand_dims(-1), DType::F64);
    let product = numbers.add(shift).multiply(q);
    let product = if narrow == DType::F32 { cast(&cast(&product, narrow), DType::F64) } else { product };
    let place = product.add(plus).subtract(minus);
    let last = numbers.subtract(1.0).maximum(0.0);
    let below = place.floor();
    let share = place.subtract(&below);
    let limited = |at: Tensor| cast(&at.maximum(0.0).minimum(&last), DType::I64);
    let next = below.add(1.0);
    let whole = share.equal(0.0);
    let chosen = match method {
        Method::Lower => Some(below.clone()),
        Method::Higher => Some(place.ceil()),
        Method::Nearest => Some(place.rint()),
        Method::InvertedCdf => Some(where_(&whole, &below, &next)),
        Method::ClosestObservation => {
            Some(where_(&whole.logical_and(below.remainder(2.0).equal(1.0)), &below, &next))
        }
        _ => None,
    };
    if let Some(chosen) = chosen {
        let at = limited(chosen);
        return [at.clone(), at, share];
    }
    let share = match method {
        Method::AveragedInvertedCdf => where_(&whole, 0.5, 1.0),
        Method::Midpoint => where_(&whole, 0.0, 0.5),
        _ => share,
    };
    let above = where_(&place.less(0.0), &below, &next);
    [limited(below), limited(above), share]
}

/// Elements, or what lies between two of them.
#[track_caller]
fn interpolated(place: &Place, dtype: DType, method: Method) -> Tensor {
    if method.chooses() {
        return place.below.clone();
    }
    let wide = if dtype == DType::F16 || dtype == DType::BF16 { DType::F32 } else { dtype };
    let [below, above, share] = [&place.below, &place.above, &place.share].map(|part| cast(part, wide));
    let distance = above.subtract(&below);
    // From the nearer side, so that the result does not pass the elements and grows with the share.
    let from_below = below.add(distance.multiply(&share));
    let from_above = above.subtract(distance.multiply(1.0 - &share));
    cast(&where_(&share.less(0.5), from_below, from_above), dtype)
}

/// For more elements, most of a line would be sorted anyway.
const RANKS_MAX: usize = 256;
/// Positions up to which parts of the sorted lines are read as views.
const PARTS_MAX: usize = 64;
