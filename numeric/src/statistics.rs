//! Averages, covariances, gradients and integrals, and values between given points.
//!
//! All of it is composed of element-wise functions, reductions, products and shifted views, which are cut
//! into chunks and fused like any other.

use crate::elementwise::{binary, where_};
use crate::error::Blame;
use crate::index::{Index, slice};
use crate::joined::all_known;
use crate::late::late;
use crate::manipulate::concatenate;
use crate::operand::cast;
use crate::reduction::Axes;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::{Require, RequireDivisor};
use tharsis_graph::shape::{UNKNOWN, agree, normalize_axis, require_known};
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::{BinaryOp, DType, Kind, promote};

/// Options of [`Tensor::cov`].
#[derive(Clone, Debug)]
pub struct Covariance {
    /// Whether each row is a variable and each column an observation, rather than the other way round.
    pub rowvar: bool,
    /// Subtracted from the number of observations in the divisor.
    pub ddof: f64,
    /// Number of times that each observation counts: whole numbers (n,).
    pub fweights: Option<Tensor>,
    /// Weight of each observation: (n,).
    pub aweights: Option<Tensor>,
}

impl Default for Covariance {
    fn default() -> Covariance {
        Covariance { rowvar: true, ddof: 1.0, fweights: None, aweights: None }
    }
}

/// Distances of points along an axis, for [`Tensor::gradient`] and [`Tensor::trapezoid`].
#[derive(Clone, Debug)]
pub enum Spacing {
    /// The same distance between all neighbours.
    Even(f64),
    /// The points themselves.
    At(Tensor),
}

/// Values beyond the points of [`Tensor::interp`], and the period of these points.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beyond {
    /// The value below the first point; that of the first point if there is none.
    pub left: Option<f64>,
    /// The value above the last point; that of the last point if there is none.
    pub right: Option<f64>,
    /// The period in which points and places are taken; `left` and `right` play no part then.
    pub period: Option<f64>,
}

impl Tensor {
    /// NumPy's `average`: the mean with weights, and the sum of the weights, over axes. Weights have the
    /// shape of the tensor, or that of the axes. Floats as wide as both; others give float64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let (mean, sum) = array([1.0, 5.0]).average(&array([3.0, 1.0]), ..);
    /// assert_eq!(mean.to_vec::<f64>()?, [2.0]);
    /// assert_eq!(sum.to_vec::<f64>()?, [4.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `ValueError` if the weights do not fit; `ZeroDivisionError` when it runs if they add up
    /// to zero.
    #[track_caller]
    pub fn average(&self, weights: &Tensor, axes: impl Into<Axes>) -> (Tensor, Tensor) {
        let axes = axes.into();
        let (weights, dtype) = match self.weights_over(weights, &axes) {
            Ok(parts) => parts,
            Err(error) => return (Tensor::from(error.clone()), Tensor::from(error)),
        };
        let wide = cast(&weights, dtype);
        let everywhere = match (self.shape(), wide.shape()) {
            (Ok(own), Ok(given)) if own != given && self.is_known().unwrap_or(false) => {
                wide.broadcast_to(own)
            }
            _ => wide.clone(),
        };
        let sum = everywhere.sum(axes.clone());
        let message = "Weights sum to zero, can't be normalized".to_owned();
        let is_divisor = sum.not_equal(0.0).all(..);
        let sum = Tensor::apply(RequireDivisor { message }, &[&sum, &is_divisor]);
        (cast(self, dtype).multiply(&wide).sum(axes).divide(&sum), sum)
    }

    /// NumPy's `cov`: covariances of the variables of this tensor, (variables, observations) or
    /// (observations,), and those of another one below them; (variables, variables), or a number for one
    /// variable; float64 or complex128.
    ///
    /// ```
    /// use tharsis_numeric::{arange, statistics::Covariance};
    /// let x = arange(6).reshape(&[2, 3]);
    /// assert_eq!(x.cov(None, &Covariance::default()).to_vec::<f64>()?, [1.0, 1.0, 1.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for more than two axes, and if observations or weights do not fit each other.
    ///
    /// # Distributed
    /// As a matrix product of (variables, observations) with its transpose.
    #[track_caller]
    pub fn cov(&self, other: Option<&Tensor>, options: &Covariance) -> Tensor {
        let inputs: Vec<&Tensor> =
            std::iter::once(self).chain(other).chain(&options.fweights).chain(&options.aweights).collect();
        let mut dtype = DType::F64;
        for input in &inputs[..1 + usize::from(other.is_some())] {
            let meta = carry!(input.meta());
            if 2 < meta.shape.len() {
                let text = "m has more than 2 dimensions".to_owned();
                return Tensor::bad_value(text, &inputs);
            }
            dtype = promote(dtype, meta.dtype);
        }
        let variables = |x: &Tensor| {
            let rows = cast(&x.atleast(2), dtype);
            if !options.rowvar && x.ndim().is_ok_and(|rank| rank == 2) { rows.t() } else { rows }
        };
        let mut x = variables(self);
        if let Some(other) = other {
            x = concatenate(&[&x, &variables(other)], 0);
        }
        let count = carry!(x.shape())[1];
        if count == UNKNOWN || !all_known(&inputs) {
            let rank = carry!(x.shape())[0];
            let shape = if rank == 1 { vec![] } else { vec![rank; 2] };
            let (weights, keep) = ([options.fweights.is_some(), options.aweights.is_some()], options.clone());
            let has_other = other.is_some();
            let text = (weights, has_other, options.rowvar, options.ddof);
            return late("cov", text, Meta { shape, dtype }, &inputs, move |x| {
                let mut rest = x[1..].iter();
                let mut next = |is_there: bool| if is_there { rest.next().cloned() } else { None };
                let other = next(has_other);
                let (fweights, aweights) = (next(weights[0]), next(weights[1]));
                x[0].cov(other.as_ref(), &Covariance { fweights, aweights, ..keep.clone() })
            });
        }
        let weights = carry!(weights_of(options, count), self);
        let (mean, divisor) = match &weights {
            None => {
                (x.mean(Axes::from(1).keepdims()), Tensor::number((count as f64 - options.ddof).max(0.0)))
            }
            Some(weights) => {
                let sum = weights.sum(..);
                let lost = match &options.aweights {
                    Some(own) if options.ddof != 0.0 => {
                        weights.multiply(cast(own, DType::F64)).sum(..).multiply(options.ddof).divide(&sum)
                    }
                    _ => Tensor::number(options.ddof),
                };
                let mean = x.multiply(weights).sum(Axes::from(1).keepdims()).divide(&sum);
                (mean, sum.subtract(lost).maximum(0.0))
            }
        };
        let away = x.subtract(mean);
        let right = weights.map_or_else(|| away.clone(), |weights| away.multiply(weights));
        let right = if dtype.is_complex() { right.conj() } else { right };
        let products = away.matmul(&right.t());
        products.multiply(Tensor::number(1.0).divide(divisor)).squeeze(None)
    }

    /// NumPy's `corrcoef`: correlations of variables, as [`Tensor::cov`] takes them; from -1 to 1.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let found = arange(6).reshape(&[2, 3]).corrcoef(None, true).to_vec::<f64>()?;
    /// assert!(found.iter().all(|r| (r - 1.0).abs() < 1e-12));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::cov`].
    #[track_caller]
    pub fn corrcoef(&self, other: Option<&Tensor>, rowvar: bool) -> Tensor {
        let found = self.cov(other, &Covariance { rowvar, ..Covariance::default() });
        if carry!(found.ndim()) == 0 {
            return found.divide(&found);
        }
        let deviation = found.diagonal(0).real().sqrt();
        let scaled = found.divide(deviation.expand_dims(1)).divide(&deviation);
        if carry!(scaled.dtype()).is_complex() {
            binary(BinaryOp::FromParts, scaled.real().clip(-1.0, 1.0), scaled.imag().clip(-1.0, 1.0))
        } else {
            scaled.clip(-1.0, 1.0)
        }
    }

    /// NumPy's `gradient` along one axis: differences of the neighbours on both sides, on the edges of one
    /// side only, exact for polynomials of degree `edge_order` (1 or 2) there. Floats keep their dtype, other
    /// numbers give float64.
    ///
    /// ```
    /// use tharsis_numeric::{array, statistics::Spacing};
    /// let x = array([1.0, 2.0, 4.0, 7.0]);
    /// assert_eq!(x.gradient(0, &Spacing::Even(1.0), 1).to_vec::<f64>()?, [1.0, 1.5, 2.5, 3.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `ValueError` for fewer than `edge_order + 1` elements, another order, or if there are not
    /// as many points as elements; `TypeError` for bool.
    #[track_caller]
    pub fn gradient(&self, axis: i64, spacing: &Spacing, edge_order: usize) -> Tensor {
        let meta = carry!(self.meta());
        let at = carry!(normalize_axis(axis, meta.shape.len()), self);
        if edge_order == 0 || 2 < edge_order {
            return Tensor::bad_value("'edge_order' greater than 2 not supported", &[self]);
        }
        if meta.dtype == DType::Bool {
            let text = "numpy boolean subtract, the `-` operator, is not supported";
            return Tensor::refused(GraphError::Type(text.to_owned()), &[self]);
        }
        let dtype = if meta.dtype.kind() < Kind::Float { DType::F64 } else { meta.dtype };
        let (even, points) = match spacing {
            Spacing::Even(distance) => (*distance, None),
            Spacing::At(points) => (1.0, Some(points)),
        };
        let inputs: Vec<&Tensor> = std::iter::once(self).chain(points).collect();
        if !all_known(&inputs) {
            let meta = Meta { shape: meta.shape.clone(), dtype };
            return late("gradient", (axis, even, edge_order), meta, &inputs, move |x| {
                let spacing = x.get(1).map_or(Spacing::Even(even), |points| Spacing::At(points.clone()));
                x[0].gradient(axis, &spacing, edge_order)
            });
        }
        let (extent, rank) = (meta.shape[at], meta.shape.len());
        if extent < edge_order + 1 {
            let text = "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) \
                        elements are required.";
            return Tensor::bad_value(text, &[self]);
        }
        let x = cast(self, dtype);
        match points {
            None => even_gradient(&x, at, even, edge_order),
            Some(points) => {
                let distances = carry!(distances(points, extent, rank, at), self, points);
                uneven_gradient(&x, at, &distances, edge_order)
            }
        }
    }

    /// NumPy's `trapezoid`: the integral along an axis of the lines between neighbours. Floats; whole numbers
    /// give float64.
    ///
    /// ```
    /// use tharsis_numeric::{array, statistics::Spacing};
    /// assert_eq!(array([1.0, 2.0, 3.0]).trapezoid(&Spacing::Even(2.0), -1).to_vec::<f64>()?, [8.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `ValueError` if the points do not fit the elements.
    #[track_caller]
    pub fn trapezoid(&self, spacing: &Spacing, axis: i64) -> Tensor {
        let rank = carry!(self.ndim());
        let at = carry!(normalize_axis(axis, rank), self);
        let sums = part(self, at, slice(1, None, 1)).add(part(self, at, slice(None, -1, 1)));
        let products = match spacing {
            Spacing::Even(distance) => sums.multiply(*distance),
            Spacing::At(points) => {
                let own = carry!(points.ndim());
                let apart = points.diff(1, if own == 1 { 0 } else { axis });
                let apart = match own {
                    1 => {
                        let others = (0..rank).filter(|&other| other != at).map(|other| other as i64);
                        apart.expand_all_dims(&others.collect::<Vec<_>>())
                    }
                    _ => apart,
                };
                sums.multiply(apart)
            }
        };
        products.divide(2.0).sum(at as i64)
    }

    /// NumPy's `digitize`: for each element the number of the interval between neighbouring `bins` in which
    /// it is, 0 before the first one; an edge belongs to the interval above it, or with `right` to the one
    /// below. Bins ascend or descend. int64, the shape stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([0.2, 6.4, 1.0]);
    /// assert_eq!(x.digitize(&array([0.0, 1.0, 2.5]), false).to_vec::<i64>()?, [1, 3, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` for complex numbers; `ValueError` unless the bins have one axis, and when it runs if they
    /// neither ascend nor descend.
    ///
    /// # Distributed
    /// As [`Tensor::searchsorted`].
    #[track_caller]
    pub fn digitize(&self, bins: &Tensor, right: bool) -> Tensor {
        if carry!(self.dtype()).is_complex() {
            return Tensor::refused(GraphError::Type("x may not be complex".to_owned()), &[self, bins]);
        }
        if carry!(bins.ndim()) != 1 {
            let text = "object of too small depth for desired array".to_owned();
            return Tensor::bad_value(text, &[self, bins]);
        }
        let (before, behind) = (part(bins, 0, slice(None, -1, 1)), part(bins, 0, slice(1, None, 1)));
        let ascends = before.less_equal(&behind).all(..);
        let descends = before.greater_equal(&behind).all(..);
        let message = "bins must be monotonically increasing or decreasing".to_owned();
        let sorted = Tensor::apply(Require { message }, &[bins, &ascends.logical_or(descends)]).sort(0);
        let found = if right { sorted.searchsorted(self) } else { sorted.searchsorted_right(self) };
        let count = bins.equal(bins).logical_or(true).count_nonzero(..);
        where_(&ascends, &found, count.subtract(&found))
    }

    /// NumPy's `interp`: values at these places of the lines between points (`points`, `values`), which
    /// ascend; both (n,). float64, or complex128 if the values are complex; the shape stays.
    ///
    /// ```
    /// use tharsis_numeric::{array, statistics::Beyond};
    /// let (points, values) = (array([1.0, 2.0, 3.0]), array([3.0, 2.0, 0.0]));
    /// let found = array([0.0, 1.5, 2.5]).interp(&points, &values, Beyond::default());
    /// assert_eq!(found.to_vec::<f64>()?, [3.0, 2.5, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless points and values have one axis of one extent, which is not 0, and for a period of
    /// 0; `TypeError` for complex places or points.
    ///
    /// # Distributed
    /// As [`Tensor::searchsorted`] and [`Tensor::take_at`].
    #[track_caller]
    pub fn interp(&self, points: &Tensor, values: &Tensor, beyond: Beyond) -> Tensor {
        let inputs = [self, points, values];
        let (own, from, to) = (carry!(self.meta()), carry!(points.meta()), carry!(values.meta()));
        if own.dtype.is_complex() || from.dtype.is_complex() {
            let text = "Cannot cast array data from complex128 to float64 according to the rule 'safe'";
            return Tensor::refused(GraphError::Type(text.to_owned()), &inputs);
        }
        if from.shape.len() != 1 || to.shape.len() != 1 {
            return Tensor::bad_value("Data points must be 1-D sequences", &inputs);
        }
        if to.dtype.is_complex() {
            // Numbers beyond the points are real.
            let none = |given: Option<f64>| given.map(|_| 0.0);
            let beside = Beyond { left: none(beyond.left), right: none(beyond.right), ..beyond };
            let imaginary = self.interp(points, &values.imag(), beside);
            let imaginary = where_(&self.isnan(), 0.0, imaginary);
            return binary(BinaryOp::FromParts, self.interp(points, &values.real(), beyond), imaginary);
        }
        if !all_known(&inputs) {
            let meta = Meta { shape: own.shape.clone(), dtype: DType::F64 };
            return late("interp", beyond, meta, &inputs, move |x| x[0].interp(&x[1], &x[2], beyond));
        }
        if from.shape != to.shape {
            return Tensor::bad_value("fp and xp are not of the same length.", &inputs);
        }
        if from.shape[0] == 0 {
            return Tensor::bad_value("array of sample points is empty", &inputs);
        }
        let [x, points, values] = inputs.map(|input| cast(input, DType::F64));
        let Some(period) = beyond.period else { return between_points(&x, &points, &values, beyond) };
        if period == 0.0 {
            return Tensor::bad_value("period must be a non-zero value", &inputs);
        }
        let period = period.abs();
        let places = points.remainder(period);
        let order = places.argsort(0);
        let (places, values) = (places.take_at(&order, 0), values.take_at(&order, 0));
        let ends = |x: &Tensor, shift: f64| {
            let (first, last) = (part(x, 0, slice(0, 1, 1)), part(x, 0, slice(-1, None, 1)));
            concatenate(&[&last.subtract(shift), x, &first.add(shift)], 0)
        };
        between_points(&x.remainder(period), &ends(&places, period), &ends(&values, 0.0), beyond)
    }
}

/// Part of a tensor along an axis.
#[track_caller]
fn part(x: &Tensor, axis: usize, range: Index) -> Tensor {
    let mut index = vec![Index::from(..); axis];
    index.push(range);
    x.get(&index)
}

impl Tensor {
    /// Weights of the elements, or along the axes of an average, with axes as this tensor has, and the dtype
    /// of the average.
    #[track_caller]
    fn weights_over(&self, weights: &Tensor, axes: &Axes) -> crate::Result<(Tensor, DType)> {
        let (own, given) = (self.meta()?, weights.meta()?);
        let mut dtype = promote(own.dtype, given.dtype);
        if own.dtype.kind() < Kind::Float {
            dtype = promote(dtype, DType::F64);
        }
        let reduced = axes.of_tensor(self)?;
        let alike = own.shape.len() == given.shape.len()
            && own.shape.iter().zip(&given.shape).all(|(&a, &b)| agree(a, b));
        if alike {
            return Ok((weights.clone(), dtype));
        }
        let fits = reduced.len() == given.shape.len()
            && reduced.iter().zip(&given.shape).all(|(&axis, &extent)| agree(own.shape[axis], extent));
        if !fits {
            let text = "Shape of weights must be consistent with shape of a along specified axis.";
            return Err(GraphError::Value(text.to_owned())).blame();
        }
        let new: Vec<i64> =
            (0..own.shape.len()).filter(|axis| !reduced.contains(axis)).map(|axis| axis as i64).collect();
        Ok((weights.expand_all_dims(&new), dtype))
    }
}

/// The weights of observations, in float64.
#[track_caller]
fn weights_of(options: &Covariance, count: usize) -> crate::Result<Option<Tensor>> {
    let mut made: Option<Tensor> = None;
    for (weights, name, whole) in
        [(&options.fweights, "fweights", true), (&options.aweights, "aweights", false)]
    {
        let Some(weights) = weights else { continue };
        let meta = weights.meta()?;
        if meta.shape.len() != 1 {
            return Err(GraphError::Value(format!("cannot handle multidimensional {name}"))).blame();
        }
        if !agree(meta.shape[0], count) {
            let text = format!("incompatible numbers of samples and {name}");
            return Err(GraphError::Value(text)).blame();
        }
        if whole && Kind::Float <= meta.dtype.kind() {
            return Err(GraphError::Type("fweights must be integer".to_owned())).blame();
        }
        let weights = cast(weights, DType::F64);
        let message = format!("{name} cannot be negative");
        let weights = Tensor::apply(Require { message }, &[&weights, &weights.greater_equal(0.0)]);
        made = Some(made.map_or_else(|| weights.clone(), |made| made.multiply(&weights)));
    }
    Ok(made)
}

#[track_caller]
fn even_gradient(x: &Tensor, axis: usize, distance: f64, edge_order: usize) -> Tensor {
    let at = |range: Index| part(x, axis, range);
    let middle = at(slice(2, None, 1)).subtract(at(slice(None, -2, 1))).divide(2.0 * distance);
    let one = |from: i64| match from {
        -1 => at(slice(-1, None, 1)),
        from => at(slice(from, from + 1, 1)),
    };
    let (first, last) = match edge_order {
        1 => (one(1).subtract(one(0)).divide(distance), one(-1).subtract(one(-2)).divide(distance)),
        _ => (
            weighted([(-1.5 / distance, one(0)), (2.0 / distance, one(1)), (-0.5 / distance, one(2))]),
            weighted([(0.5 / distance, one(-3)), (-2.0 / distance, one(-2)), (1.5 / distance, one(-1))]),
        ),
    };
    concatenate(&[&first, &middle, &last], axis as i64)
}

#[track_caller]
fn weighted(terms: [(f64, Tensor); 3]) -> Tensor {
    let [a, b, c] = terms.map(|(factor, x)| x.multiply(factor));
    a.add(b).add(c)
}

/// Distances of neighbouring points, along an axis of a tensor of this rank.
#[track_caller]
fn distances(points: &Tensor, extent: usize, rank: usize, axis: usize) -> crate::Result<Tensor> {
    let meta = points.meta()?;
    if meta.shape.len() != 1 {
        return Err(GraphError::Value("distances must be either scalars or 1d".to_owned())).blame();
    }
    require_known("gradient", &meta.shape).blame()?;
    if meta.shape[0] != extent {
        let text = "when 1d, distances must match the length of the corresponding dimension";
        return Err(GraphError::Value(text.to_owned())).blame();
    }
    let points = if meta.dtype.kind() < Kind::Float { cast(points, DType::F64) } else { points.clone() };
    let others: Vec<i64> = (0..rank).filter(|&other| other != axis).map(|other| other as i64).collect();
    Ok(points.diff(1, 0).expand_all_dims(&others))
}

#[track_caller]
fn uneven_gradient(x: &Tensor, axis: usize, distances: &Tensor, edge_order: usize) -> Tensor {
    let at = |range: Index| part(x, axis, range);
    let one = |x: &Tensor, from: i64| match from {
        -1 => part(x, axis, slice(-1, None, 1)),
        from => part(x, axis, slice(from, from + 1, 1)),
    };
    let (d1, d2) = (part(distances, axis, slice(None, -1, 1)), part(distances, axis, slice(1, None, 1)));
    let both = d1.add(&d2);
    let a = d2.negative().divide(d1.multiply(&both));
    let b = d2.subtract(&d1).divide(d1.multiply(&d2));
    let c = d1.divide(d2.multiply(&both));
    let terms = [(a, slice(None, -2, 1)), (b, slice(1, -1, 1)), (c, slice(2, None, 1))];
    // NumPy has another formula for points that turn out to be even, in which the middle element plays no
    // part.
    let nearest = one(distances, 0);
    let is_even = distances.equal(&nearest).all(..);
    let even = at(slice(2, None, 1)).subtract(at(slice(None, -2, 1))).divide(nearest.multiply(2.0));
    let [a, b, c] = terms.map(|(factor, range)| (factor, at(range)));
    let b = (b.0, where_(&is_even, 0.0, b.1));
    let [a, b, c] = [a, b, c].map(|(factor, x)| factor.multiply(x));
    let middle = where_(&is_even, even, a.add(b).add(c));
    let edge = |near: i64, next: i64, places: [i64; 3]| {
        let (near, next) = (one(distances, near), one(distances, next));
        let both = near.add(&next);
        let factors = [
            near.multiply(2.0).add(&next).divide(near.multiply(&both)).negative(),
            both.divide(near.multiply(&next)),
            near.divide(next.multiply(&both)).negative(),
        ];
        let terms = factors.into_iter().zip(places).map(|(factor, place)| factor.multiply(one(x, place)));
        terms.reduce(|sum, term| sum.add(term)).unwrap_or_else(|| x.clone())
    };
    let (first, last) = match edge_order {
        1 => (
            one(x, 1).subtract(one(x, 0)).divide(one(distances, 0)),
            one(x, -1).subtract(one(x, -2)).divide(one(distances, -1)),
        ),
        _ => (edge(0, 1, [0, 1, 2]), edge(-1, -2, [-1, -2, -3]).negative()),
    };
    let dtype = carry!(x.dtype());
    concatenate(
        &[&first, &middle, &last].map(|part| cast(part, dtype)).iter().collect::<Vec<_>>(),
        axis as i64,
    )
}

/// Values of the lines between points, all of float64.
#[track_caller]
fn between_points(x: &Tensor, points: &Tensor, values: &Tensor, beyond: Beyond) -> Tensor {
    let count = carry!(points.shape())[0] as i64;
    let behind = points.searchsorted_right(x);
    let low = behind.subtract(1).maximum(0).minimum((count - 2).max(0));
    let high = low.add(1).minimum(count - 1);
    let at = |of: &Tensor, place: &Tensor| of.take_at(place, 0);
    let (x0, x1) = (at(points, &low), at(points, &high));
    let (y0, y1) = (at(values, &low), at(values, &high));
    // Equal points are the first or the last ones, of places outside or at the end: no slope is used there.
    let distance = where_(&x1.equal(&x0), 1.0, x1.subtract(&x0));
    let slope = y1.subtract(&y0).divide(distance);
    let from_below = slope.multiply(x.subtract(&x0)).add(&y0);
    let from_above = slope.multiply(x.subtract(&x1)).add(&y1);
    // A line from or to an infinite value has a value at one of its ends only.
    let found = where_(&from_below.isnan(), from_above, &from_below);
    let found = where_(&found.isnan().logical_and(y0.equal(&y1)), &y0, &found);
    let found = where_(&x.equal(&x0), &y0, &found);
    let end = |at: Index| part(values, 0, at);
    let (first, last) = (end(slice(0, 1, 1)).squeeze(None), end(slice(-1, None, 1)).squeeze(None));
    let edge = |given: Option<f64>, own: &Tensor| match (given, beyond.period) {
        (Some(value), None) => Tensor::number(value),
        _ => own.clone(),
    };
    let last_point = part(points, 0, slice(-1, None, 1)).squeeze(None);
    let first_point = part(points, 0, slice(0, 1, 1)).squeeze(None);
    let found = where_(&x.equal(&last_point), &last, &found);
    let found = where_(&x.greater(&last_point), edge(beyond.right, &last), &found);
    let found = where_(&x.less(&first_point), edge(beyond.left, &first), &found);
    where_(&x.isnan(), x, &found)
}
