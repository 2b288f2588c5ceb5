//! Splines of features.

use super::categories::column;
use crate::Setting;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check, check_count};
use crate::checks::{Nan, Training, checked_for, in_dtype_of, refused};
use crate::dense::tensor;
use crate::metrics::regression::{Neighbours, weighted_quantiles};
use crate::params::{Parameter, parameters, words};
use crate::passes::in_chunks_for;
use crate::saved::{Save, saved};
use crate::score::check_some_weight;
use crate::show;
use crate::states::lost;
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::ops::Require;
use tharsis_numeric::quantile::Method;
use tharsis_numeric::{DType, Index, Result, Tensor, concatenate, where_};

/// Largest degree: each is a part of an expression.
const DEGREE_MAX: usize = 1 << 8;

/// The knots of splines.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Knots {
    /// At even distances from the least to the largest number of each feature.
    #[default]
    Uniform,
    /// At even quantiles of each feature.
    Quantile,
    /// These, ascending; (knots, d).
    Given(Array2<f64>),
}

impl From<&Array2<f64>> for Knots {
    fn from(given: &Array2<f64>) -> Knots {
        Knots::Given(given.clone())
    }
}

impl Parameter for Knots {
    fn words(_: usize) -> String {
        "a str among {'uniform', 'quantile'}".to_owned()
    }

    fn of(value: &Setting) -> Option<Knots> {
        match value {
            Setting::Text(text) if text == "uniform" => Some(Knots::Uniform),
            Setting::Text(text) if text == "quantile" => Some(Knots::Quantile),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        match self {
            Knots::Uniform => "uniform".into(),
            Knots::Quantile => "quantile".into(),
            Knots::Given(given) => Setting::Numbers(given.iter().copied().collect()),
        }
    }
}

/// The splines beyond the first and the last knot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extrapolation {
    /// Those at the knot.
    #[default]
    Constant,
    /// The polynomials of the pieces that end there.
    Continue,
    /// An error.
    Error,
    /// The tangents at the knot.
    Linear,
    /// Those between the knots, again and again.
    Periodic,
}

words!(
    Extrapolation,
    [
        "constant" => Extrapolation::Constant, "continue" => Extrapolation::Continue,
        "error" => Extrapolation::Error, "linear" => Extrapolation::Linear,
        "periodic" => Extrapolation::Periodic
    ]
);

/// The handling of NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandleMissing {
    /// An error.
    #[default]
    Error,
    /// All splines are zero.
    Zeros,
}

words!(HandleMissing, ["error" => HandleMissing::Error, "zeros" => HandleMissing::Zeros]);

/// scikit-learn's `SplineTransformer`: the B-splines of each feature.
///
/// ```
/// use tharsis_learn::preprocessing::SplineTransformer;
/// use tharsis_numeric::array;
/// let x = array([0.0, 0.5, 2.0]).reshape(&[3, 1]);
/// let model = SplineTransformer::new().n_knots(2).degree(1).fit(&x, ..)?;
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [1.0, 0.0, 0.75, 0.25, 0.0, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct SplineTransformer {
    n_knots: usize,
    degree: usize,
    knots: Knots,
    extrapolation: Extrapolation,
    include_bias: bool,
    handle_missing: HandleMissing,
}

/// A fitted [`SplineTransformer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedSplineTransformer {
    /// The knots of each feature, with as many before and behind them as the degree says; (d, knots).
    pub knots: Array2<f64>,
    degree: usize,
    extrapolation: Extrapolation,
    include_bias: bool,
    handle_missing: HandleMissing,
}

parameters!(
    SplineTransformer,
    "SplineTransformer",
    [
        "n_knots" => n_knots >= 2, "degree" => degree, "knots" => knots, "extrapolation" => extrapolation,
        "include_bias" => include_bias, "handle_missing" => handle_missing
    ]
);

impl Default for SplineTransformer {
    fn default() -> SplineTransformer {
        SplineTransformer {
            n_knots: 5,
            degree: 3,
            knots: Knots::Uniform,
            extrapolation: Extrapolation::Constant,
            include_bias: true,
            handle_missing: HandleMissing::Error,
        }
    }
}

impl SplineTransformer {
    /// An estimator with scikit-learn's defaults: cubic splines of five knots at even distances.
    pub fn new() -> SplineTransformer {
        SplineTransformer::default()
    }

    /// scikit-learn's `n_knots`: the number of knots, where they are not given.
    pub fn n_knots(self, n_knots: usize) -> SplineTransformer {
        SplineTransformer { n_knots, ..self }
    }

    /// scikit-learn's `degree`: that of the polynomials.
    pub fn degree(self, degree: usize) -> SplineTransformer {
        SplineTransformer { degree, ..self }
    }

    /// scikit-learn's `knots`: the places of the knots.
    pub fn knots(self, knots: impl Into<Knots>) -> SplineTransformer {
        SplineTransformer { knots: knots.into(), ..self }
    }

    /// scikit-learn's `extrapolation`: the splines beyond the first and the last knot.
    pub fn extrapolation(self, extrapolation: Extrapolation) -> SplineTransformer {
        SplineTransformer { extrapolation, ..self }
    }

    /// scikit-learn's `include_bias`: whether the last spline of each feature is kept, with which their sum
    /// is 1 between the knots.
    pub fn include_bias(self, include_bias: bool) -> SplineTransformer {
        SplineTransformer { include_bias, ..self }
    }

    /// scikit-learn's `handle_missing`: the handling of NaN.
    pub fn handle_missing(self, handle_missing: HandleMissing) -> SplineTransformer {
        SplineTransformer { handle_missing, ..self }
    }

    /// Fits the knots to samples (n, d), of any real dtype. One pass; for quantiles a sort of each column.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, given knots that do not ascend or are not those of d
    /// features, samples of other than two axes, without rows or features, complex or infinite, NaN where it
    /// is refused, and weights that are negative or all zero; `MemoryError` for more knots than the memory
    /// holds; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedSplineTransformer> {
        self.fit_any(x, None, &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let (name, degree) = ("SplineTransformer", self.degree);
        check_count(name, "n_knots", self.n_knots, 2)?;
        check(name, "degree", degree <= DEGREE_MAX, "an int of at most 2^8", degree)?;
        let n_knots = match &self.knots {
            Knots::Given(given) => given.nrows(),
            Knots::Quantile | Knots::Uniform => self.n_knots,
        };
        if n_knots < 2 {
            return Err(refused("Number of knots, knots.shape[0], must be >= 2."));
        }
        if self.extrapolation == Extrapolation::Periodic && n_knots <= degree {
            return Err(refused(format!(
                "Periodic splines require degree < n_knots. Got n_knots={n_knots} and degree={degree}."
            )));
        }
        Ok(())
    }

    /// The knots of each feature between the least and the largest number; (knots, d).
    #[track_caller]
    fn base(&self, training: &Training) -> Result<Array2<f64>> {
        let (nan, x) = (self.nan(), &training.x);
        let columns: Vec<Tensor> = (0..training.columns).map(|at| column(x, at)).collect();
        let counts = |numbers: &Tensor, weight: &Tensor| where_(&numbers.isnan(), 0.0, weight);
        let shares: Vec<f64> = (0..self.n_knots).map(|at| at as f64 / (self.n_knots - 1) as f64).collect();
        let wanted = columns.iter().map(|numbers| match (&self.knots, &training.weight) {
            (Knots::Quantile, None) => Ok(numbers.nanquantile(&shares[..], 0, Method::Linear)),
            (Knots::Quantile, Some(weight)) => {
                let known = where_(&numbers.isnan(), 0.0, numbers).expand_dims(1);
                let found = weighted_quantiles(&known, &counts(numbers, weight), &shares, Neighbours::Lower)?;
                Ok(concatenate(&found.iter().collect::<Vec<_>>(), 0))
            }
            (_, weight) => {
                let known = match weight {
                    None => numbers.clone(),
                    Some(weight) => where_(&counts(numbers, weight).equal(0.0), f64::NAN, numbers),
                };
                Ok(concatenate(&[&known.nanmin(0).expand_dims(0), &known.nanmax(0).expand_dims(0)], 0))
            }
        });
        let mut wanted = wanted.collect::<Result<Vec<_>>>()?;
        let is_wrong = if nan == Nan::Missing { x.isinf() } else { x.isfinite().logical_not() };
        wanted.push(is_wrong.any(..));
        wanted.push(training.weight.as_ref().map_or_else(|| Tensor::number(1.0), |weight| weight.sum(..)));
        let mut states = training.engine.run(&wanted.iter().collect::<Vec<_>>())?;
        let all = states.pop().ok_or_else(lost)?.sum();
        if states.pop().ok_or_else(lost)?.sum() != 0.0 || all.is_nan() {
            return Err(training.not_finite(nan));
        }
        check_some_weight(all)?;
        if let Knots::Given(given) = &self.knots {
            return Ok(given.clone());
        }
        let mut base = Array2::zeros((self.n_knots, training.columns));
        for (mut knots, state) in base.columns_mut().into_iter().zip(states) {
            let numbers: Vec<f64> = state.into_iter().collect();
            match (&self.knots, &numbers[..]) {
                (Knots::Quantile, numbers) => knots.assign(&Array1::from(numbers.to_vec())),
                (_, &[least, most]) => {
                    knots.assign(&Array1::linspace(least, most, self.n_knots));
                    // As in NumPy, the last one is the end itself, and no product with rounding.
                    let last = &mut knots[self.n_knots - 1];
                    if last.is_finite() {
                        *last = most;
                    }
                }
                _ => return Err(lost()),
            }
        }
        Ok(base)
    }

    fn nan(&self) -> Nan {
        match self.handle_missing {
            HandleMissing::Error => Nan::Refused,
            HandleMissing::Zeros => Nan::Missing,
        }
    }

    /// Knots with those before the first and behind the last one.
    fn extended(&self, base: &[f64]) -> Vec<f64> {
        let (degree, last) = (self.degree, base.len() - 1);
        let far = |at: usize, distance: f64, times: usize| base[at] + distance * times as f64;
        if self.extrapolation == Extrapolation::Periodic {
            let period = base[last] - base[0];
            let before = base[last - degree..last].iter().map(|knot| knot - period);
            let behind = base[1..=degree].iter().map(|knot| knot + period);
            return before.chain(base.iter().copied()).chain(behind).collect();
        }
        let (first, end) = (base[1] - base[0], base[last] - base[last - 1]);
        let before = (1..=degree).rev().map(|times| far(0, -first, times));
        let behind = (1..=degree).map(|times| far(last, end, times));
        before.chain(base.iter().copied()).chain(behind).collect()
    }
}

impl Estimator for SplineTransformer {
    type Fitted = FittedSplineTransformer;

    fn takes_nan(&self) -> bool {
        self.handle_missing == HandleMissing::Zeros
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedSplineTransformer> {
        self.check()?;
        let training = Training::unsupervised("SplineTransformer", x, options)?;
        training.check_least(2, 1)?;
        if let Knots::Given(given) = &self.knots {
            if given.ncols() != training.columns {
                return Err(refused("knots.shape[1] == n_features is violated."));
            }
            let ascends = |knots: ndarray::ArrayView1<'_, f64>| {
                knots.iter().zip(knots.iter().skip(1)).all(|(a, b)| a < b)
                    && knots.iter().all(|k| k.is_finite())
            };
            if !given.columns().into_iter().all(ascends) {
                return Err(refused("knots must be sorted without duplicates."));
            }
        }
        training.check_held(self.n_knots.saturating_add(2 * self.degree), training.columns)?;
        let base = self.base(&training)?;
        let mut knots = Array2::zeros((training.columns, base.nrows() + 2 * self.degree));
        for (mut row, base) in knots.outer_iter_mut().zip(base.columns()) {
            row.assign(&Array1::from(self.extended(&base.to_vec())));
        }
        if knots.iter().any(|knot: &f64| knot.is_infinite()) {
            return Err(training.beyond_float64());
        }
        Ok(FittedSplineTransformer {
            knots,
            degree: self.degree,
            extrapolation: self.extrapolation,
            include_bias: self.include_bias,
            handle_missing: self.handle_missing,
        })
    }
}

/// 1 divided by a distance of knots; 0 for knots at one place, whose spline is zero.
fn reciprocal(distance: f64) -> f64 {
    if distance == 0.0 { 0.0 } else { 1.0 / distance }
}

/// Tables of the recursion of Cox and de Boor for each feature; (d, splines) each.
struct Step {
    /// The knot at which a spline begins, and the reciprocal of the distance over which it rises.
    rise: [Array2<f64>; 2],
    /// The knot at which it ends, and the reciprocal of the distance over which it falls.
    fall: [Array2<f64>; 2],
}

impl FittedSplineTransformer {
    /// Knots of a feature between its ends.
    fn base(&self) -> usize {
        self.knots.ncols() - 2 * self.degree
    }

    /// The splines of each feature before periods are folded.
    fn splines(&self) -> usize {
        self.knots.ncols() - self.degree - 1
    }

    /// The splines of each feature that are told.
    fn told(&self) -> usize {
        let all =
            if self.extrapolation == Extrapolation::Periodic { self.base() - 1 } else { self.splines() };
        all - usize::from(!self.include_bias)
    }

    /// scikit-learn's `n_features_out_`: the splines of all features.
    #[must_use]
    pub fn n_features_out(&self) -> usize {
        self.knots.nrows() * self.told()
    }

    /// The ends of each feature: the first or the last knot that is no extension; (d,).
    fn end(&self, is_last: bool) -> Array1<f64> {
        let at = if is_last { self.knots.ncols() - 1 - self.degree } else { self.degree };
        self.knots.column(at).to_owned()
    }

    /// The bounds of the pieces, (d, knots - 1) each: the first and the last piece have no end, and those
    /// without length, or beyond the ends, have nothing between them.
    fn pieces(&self) -> (Array2<f64>, Array2<f64>) {
        let pieces = self.knots.ncols() - 1;
        let mut low = Array2::from_elem((self.knots.nrows(), pieces), f64::INFINITY);
        let mut high = Array2::from_elem((self.knots.nrows(), pieces), f64::NEG_INFINITY);
        for (at, knots) in self.knots.outer_iter().enumerate() {
            let own = self.degree..self.knots.ncols() - 1 - self.degree;
            let own: Vec<usize> = own.filter(|piece| knots[*piece] < knots[piece + 1]).collect();
            for &piece in &own {
                low[[at, piece]] = knots[piece];
                high[[at, piece]] = knots[piece + 1];
            }
            if let (Some(first), Some(last)) = (own.first(), own.last()) {
                low[[at, *first]] = f64::NEG_INFINITY;
                high[[at, *last]] = f64::INFINITY;
            }
        }
        (low, high)
    }

    /// The tables of splines of a degree from those of one less.
    fn step(&self, degree: usize) -> Step {
        let shape = (self.knots.nrows(), self.knots.ncols() - 1 - degree);
        let knot = |at: usize, of: usize| self.knots[[at, of]];
        let table =
            |of: &dyn Fn(usize, usize) -> f64| Array2::from_shape_fn(shape, |(at, spline)| of(at, spline));
        Step {
            rise: [
                table(&knot),
                table(&|at, spline| reciprocal(knot(at, spline + degree) - knot(at, spline))),
            ],
            fall: [
                table(&|at, spline| knot(at, spline + degree + 1)),
                table(&|at, spline| reciprocal(knot(at, spline + degree + 1) - knot(at, spline + 1))),
            ],
        }
    }

    /// The splines of numbers (n, d, 1) up to a degree; (n, d, splines).
    #[track_caller]
    fn values(&self, numbers: &Tensor, degree: usize) -> Tensor {
        let (low, high) = self.pieces();
        let is_in = numbers.greater_equal(tensor(&low)).logical_and(numbers.less(tensor(&high)));
        let mut splines = is_in.astype(DType::F64);
        for degree in 1..=degree {
            let Step { rise: [begin, rise], fall: [end, fall] } = self.step(degree);
            let part = |from: i64, to: i64| {
                let to = if to == 0 { Index::from(from..) } else { Index::from(from..to) };
                splines.get(&[(..).into(), (..).into(), to])
            };
            let rising = (numbers - tensor(&begin)) * tensor(&rise) * part(0, -1);
            let falling = (tensor(&end) - numbers) * tensor(&fall) * part(1, 0);
            splines = rising + falling;
        }
        splines
    }

    /// The slopes of the splines at one end of each feature; (d, splines).
    #[track_caller]
    fn slopes(&self, is_last: bool) -> Tensor {
        let shape = (self.knots.nrows(), self.splines());
        if self.degree == 0 {
            return tensor(&Array2::zeros(shape));
        }
        let end = tensor(&self.end(is_last)).expand_dims(0).expand_dims(2);
        let lower = self.values(&end, self.degree - 1).squeeze(Some(&[0]));
        let Step { rise: [_, rise], fall: [_, fall] } = self.step(self.degree);
        let part = |index: Index| lower.get(&[(..).into(), index]);
        (tensor(&rise) * part(Index::from(..-1i64)) - tensor(&fall) * part(Index::from(1i64..)))
            * self.degree as f64
    }

    /// The splines of samples (n, d), as an expression; (n, splines of all features). Floats keep their
    /// dtype. Carries a `ValueError` for another number of features; when run for infinity, for NaN where it
    /// is refused, and beyond the knots where that is an error.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let columns = self.knots.nrows();
        let nan = match self.handle_missing {
            HandleMissing::Error => Nan::Refused,
            HandleMissing::Zeros => Nan::Missing,
        };
        let samples = match checked_for("SplineTransformer", x, columns, nan) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let width = columns.saturating_mul(self.knots.ncols());
        let samples = in_chunks_for(&samples, columns, width);
        if self.told() == 0 {
            return in_dtype_of(x, samples.get(&[Index::from(..), Index::from(..0i64)]));
        }
        let (first, last) = (tensor(&self.end(false)), tensor(&self.end(true)));
        let within = samples.clip(&first, &last);
        let wide = |numbers: &Tensor| numbers.expand_dims(2);
        let mut splines = match self.extrapolation {
            Extrapolation::Constant => self.values(&wide(&within), self.degree),
            Extrapolation::Continue => self.values(&wide(&samples), self.degree),
            Extrapolation::Error => {
                let message = "`X` contains values beyond the limits of the knots.".to_owned();
                let is_within = within.equal(&samples).logical_or(samples.isnan());
                let samples = Tensor::apply(Require { message }, &[&samples, &is_within]);
                self.values(&wide(&samples), self.degree)
            }
            Extrapolation::Linear => {
                let slope = where_(&wide(&samples.less(&first)), self.slopes(false), self.slopes(true));
                let beyond = wide(&(&samples - &within));
                self.values(&wide(&within), self.degree) + beyond * slope
            }
            Extrapolation::Periodic => {
                let period = &last - &first;
                let around = (&samples - &first) % &period + &first;
                self.folded(&self.values(&wide(&around), self.degree))
            }
        };
        if !self.include_bias {
            splines = splines.get(&[(..).into(), (..).into(), (..self.told() as i64).into()]);
        }
        if self.handle_missing == HandleMissing::Zeros {
            splines = where_(&wide(&samples.isnan()), 0.0, splines);
        }
        in_dtype_of(x, splines.reshape(&[-1, self.n_features_out() as i64]))
    }

    /// Splines whose period begins again added to those of its beginning.
    #[track_caller]
    fn folded(&self, splines: &Tensor) -> Tensor {
        let period = (self.base() - 1) as i64;
        let all = self.splines() as i64;
        let part = |from: i64, to: i64| splines.get(&[(..).into(), (..).into(), (from..to).into()]);
        let mut made = part(0, period.min(all));
        let mut from = period;
        while from < all {
            let count = period.min(all - from);
            let sum = made.get(&[(..).into(), (..).into(), (..count).into()]) + part(from, from + count);
            let rest = made.get(&[(..).into(), (..).into(), (count..).into()]);
            made = concatenate(&[&sum, &rest], 2);
            from += period;
        }
        made
    }
}

saved!(FittedSplineTransformer, "SplineTransformer", |model| {
    let (columns, knots) = model.knots.dim();
    0 < columns
        && model.degree <= DEGREE_MAX
        && 2 * model.degree + 2 <= knots
        && (model.extrapolation != Extrapolation::Periodic || model.degree < knots - 2 * model.degree)
        && 0 < model.told()
});

impl Transform for FittedSplineTransformer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedSplineTransformer::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        let own = crate::feature_names::same(names, self.knots.nrows())?;
        let of = |name| (0..self.told()).map(move |spline| format!("{name}_sp_{spline}"));
        Some(own.iter().flat_map(of).collect())
    }
}

impl fmt::Display for FittedSplineTransformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SplineTransformer of {} features, degree {}", self.knots.nrows(), self.degree)?;
        show::rows(f, "knots", &self.knots.clone().into_dyn())
    }
}
