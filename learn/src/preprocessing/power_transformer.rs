//! Features bent by a power until they are as normal as that makes them.
//!
//! The likelihood of an exponent is a pass: the variance of the bent feature, and a sum of logarithms. A pass
//! tries a row of exponents for each feature, and the next one a finer row around the best of them.
//!
//! Far from zero, powers of numbers are equal to many digits, and their variance is lost. So a feature whose
//! numbers have one sign is bent around its geometric mean: that is the same but for a factor and an offset,
//! which standardizing takes off again, and no digit is lost.

use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, checked_for, in_dtype_of, refused};
use crate::dense::tensor;
use crate::params::{parameters, words};
use crate::passes::{in_chunks_for, is_constant};
use crate::preprocessing::{FittedStandardScaler, StandardScaler};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, matrix, vector};
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::ops::Require;
use tharsis_numeric::{Result, Tensor, where_};

/// Exponents that a pass tries for each feature: so many on each side of the best one.
const SIDE: usize = 8;
/// Distance of the exponents of the first pass.
const FIRST_STEP: f64 = 0.25;
/// Distance of exponents at which a parabola through the best three tells the rest.
const LAST_STEP: f64 = 1e-4;
/// Largest variance of a bent feature: later sums of squares stay within float64.
const VARIANCE_MAX: f64 = 1e200;
/// Largest logarithm of a factor: it is neither zero nor infinite.
const LARGEST_LOG: f64 = 700.0;
/// Most passes; each moves by up to [`SIDE`] steps, which double while the best exponent is further away.
const PASSES_MAX: usize = 40;

/// A family of powers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PowerMethod {
    /// Of positive numbers alone.
    BoxCox,
    /// Of all numbers.
    #[default]
    YeoJohnson,
}

/// scikit-learn's `PowerTransformer`: bends each feature by the power that makes it most likely to be normal.
///
/// NaN counts as missing: it is left out, and stays in what is transformed.
///
/// ```
/// use tharsis_learn::preprocessing::{PowerMethod, PowerTransformer};
/// use tharsis_numeric::array;
/// let x = array([1.0f64, 2.0, 4.0, 8.0]).reshape(&[4, 1]);
/// let model = PowerTransformer::new().method(PowerMethod::BoxCox).fit(&x, ..)?;
/// assert!(model.lambdas[0].abs() < 1e-6, "the logarithm makes them even");
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct PowerTransformer {
    method: PowerMethod,
    standardize: bool,
}

/// A fitted [`PowerTransformer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedPowerTransformer {
    /// scikit-learn's `lambdas_`: the exponents; (d,).
    pub lambdas: Array1<f64>,
    /// False if the search for an exponent has ended before it had the best one.
    pub converged: bool,
    method: PowerMethod,
    /// The centres: zero, unless features are standardized.
    around: Around,
    scaler: Option<FittedStandardScaler>,
}

words!(PowerMethod, ["yeo-johnson" => PowerMethod::YeoJohnson, "box-cox" => PowerMethod::BoxCox]);
parameters!(PowerTransformer, "PowerTransformer", ["method" => method, "standardize" => standardize]);

impl Default for PowerTransformer {
    fn default() -> PowerTransformer {
        PowerTransformer { method: PowerMethod::YeoJohnson, standardize: true }
    }
}

impl PowerTransformer {
    /// An estimator with scikit-learn's defaults: Yeo and Johnson's powers, then mean 0 and variance 1.
    pub fn new() -> PowerTransformer {
        PowerTransformer::default()
    }

    /// scikit-learn's `method`: the family of powers.
    pub fn method(self, method: PowerMethod) -> PowerTransformer {
        PowerTransformer { method, ..self }
    }

    /// scikit-learn's `standardize`: whether bent features get mean 0 and variance 1.
    pub fn standardize(self, standardize: bool) -> PowerTransformer {
        PowerTransformer { standardize, ..self }
    }

    /// Fits the transformer on samples (n, d), of any real dtype. About seven passes, and one for the scale.
    ///
    /// # Errors
    /// `ValueError` for features without numbers, numbers that are not positive and constant features
    /// (`BoxCox`), samples of other than two axes, without rows or features, complex or infinite;
    /// `OverflowError` if no exponent keeps a feature within float64; `TypeError` for weights; errors of the
    /// passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedPowerTransformer> {
        self.fit_any(x, None, &options.into())
    }

    /// Whether each feature is constant, and the centre of its logarithms; (d,) each. One pass, which looks
    /// at the numbers as well.
    #[track_caller]
    fn seen(&self, training: &Training) -> Result<(Vec<bool>, Around)> {
        let x = &training.x;
        // Squares of small numbers would leave the range of float64.
        let logs = &match self.method {
            PowerMethod::BoxCox => x.log(),
            PowerMethod::YeoJohnson => x.clone(),
        };
        let states = training.engine.run(&[
            &x.isinf().any(..),
            &x.isnan().all(0),
            &x.nanmin(0),
            &x.nanmax(0),
            &logs.nanmean(0),
            &logs.nanvar(0, 0.0),
            &self.method.logarithms(x).nanmean(0),
        ])?;
        let [infinite, empty, least, most, mean, variance, center] =
            <[_; 7]>::try_from(states).map_err(|_| lost())?;
        if infinite.sum() != 0.0 {
            training.explain_not_finite(Nan::Missing)?;
        }
        if empty.sum() != 0.0 {
            return Err(refused("Column must not be all nan."));
        }
        if self.method == PowerMethod::BoxCox && least.iter().any(|&least| least <= 0.0) {
            return Err(refused(NOT_POSITIVE));
        }
        let (least, most, mut center) = (vector(least)?, vector(most)?, vector(center)?);
        for (at, center) in center.iter_mut().enumerate() {
            // Around zero nothing is lost.
            let has_one_sign = 0.0 <= least[at] || most[at] <= 0.0;
            if self.method == PowerMethod::YeoJohnson && !has_one_sign {
                *center = 0.0;
            }
        }
        let (variance, mean) = (vector(variance)?, vector(mean)?);
        let is_constant: Vec<bool> =
            variance.iter().zip(&mean).map(|(&var, &mean)| is_constant(var, mean)).collect();
        if self.method == PowerMethod::BoxCox && is_constant.contains(&true) {
            return Err(refused("Data must not be constant."));
        }
        let is_negative = least.mapv(|least| least < 0.0);
        Ok((is_constant, Around { center, is_negative }))
    }

    /// The searches for the most likely exponents, when they have ended, and the centres; (d,) each.
    #[track_caller]
    fn search(&self, training: &Training) -> Result<(Vec<Search>, Around)> {
        let (is_constant, around) = self.seen(training)?;
        // Of a constant feature all exponents are as good; the one that leaves it alone is 1.
        let mut searches: Vec<Search> = is_constant
            .into_iter()
            .map(|is_constant| Search {
                center: f64::from(u8::from(is_constant)),
                step: FIRST_STEP,
                is_done: is_constant,
            })
            .collect();
        for _ in 0..PASSES_MAX {
            if searches.iter().all(|search| search.is_done) {
                break;
            }
            let tried = Array2::from_shape_fn((2 * SIDE + 1, searches.len()), |(at, column)| {
                searches[column].exponent(at)
            });
            let likelihoods = self.likelihoods(training, &tried, &around)?;
            for (search, column) in searches.iter_mut().zip(likelihoods.columns()) {
                if !search.is_done && !search.narrow(&column.to_vec()) {
                    return Err(training.beyond_float64());
                }
            }
        }
        Ok((searches, around))
    }

    /// The logarithms of the likelihoods of exponents (m, d), up to a constant for each feature. One pass.
    #[track_caller]
    fn likelihoods(
        &self,
        training: &Training,
        exponents: &Array2<f64>,
        around: &Around,
    ) -> Result<Array2<f64>> {
        let (tried, columns) = exponents.dim();
        let x = in_chunks_for(&training.x, columns, columns * tried);
        let logs = self.method.logarithms(&x) - tensor(&around.center);
        let wide = logs.expand_dims(1);
        let is_negative = x.less(0.0).expand_dims(1);
        let bent = grown(&wide, &self.method.signed(&tensor(exponents), &is_negative));
        let count = x.isnan().logical_not().count_nonzero(0);
        let states = training.engine.run(&[&bent.nanvar(0, 0.0), &logs.nansum(0), &count])?;
        let [variance, logs, count] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
        let (variance, logs, count) = (matrix(variance)?, vector(logs)?, vector(count)?);
        Ok(Array2::from_shape_fn((tried, columns), |(at, column)| {
            let variance = variance[[at, column]];
            let variance = if variance <= VARIANCE_MAX { variance } else { f64::NAN };
            let spread = -0.5 * count[column] * variance.ln();
            spread + (exponents[[at, column]] - 1.0) * logs[column]
        }))
    }
}

/// The centres that features are bent around.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Around {
    /// The mean of the logarithms of each feature of one sign; else 0; (d,).
    center: Array1<f64>,
    /// Whether that is of negative numbers; (d,).
    is_negative: Array1<bool>,
}

impl Around {
    /// Zero: features as they are.
    fn zero(columns: usize) -> Around {
        Around { center: Array1::zeros(columns), is_negative: Array1::from_elem(columns, false) }
    }
}

/// The map of bent features, without the scale.
struct Bend {
    method: PowerMethod,
    center: Tensor,
    is_negative: Tensor,
    /// The exponents of numbers of the sign of the centre, and of others.
    exponent: Tensor,
    other: Tensor,
    /// The centre without centring, and what a number of its sign is multiplied by.
    offset: Tensor,
    factor: Tensor,
    /// Zero, bent.
    zero: Tensor,
}

impl Bend {
    #[track_caller]
    fn new(method: PowerMethod, lambdas: &Array1<f64>, around: &Around) -> Bend {
        let center = &around.center;
        let of = |is_negative: bool| match method {
            PowerMethod::YeoJohnson if is_negative => -2.0,
            _ => 0.0,
        };
        let exponent = lambdas + &around.is_negative.mapv(of);
        let other = lambdas + &around.is_negative.mapv(|is_negative| of(!is_negative));
        let pairs = |map: fn(f64, f64) -> f64| -> Tensor {
            let mapped: Array1<f64> = center.iter().zip(&exponent).map(|(&t, &m)| map(t, m)).collect();
            tensor(&mapped)
        };
        Bend {
            method,
            center: tensor(center),
            is_negative: tensor(&around.is_negative.mapv(|negative| f64::from(u8::from(negative))))
                .not_equal(0.0),
            offset: pairs(grown_number),
            factor: pairs(|t, m| (-m * t).clamp(-LARGEST_LOG, LARGEST_LOG).exp()),
            zero: pairs(|t, m| grown_number(-t, m)),
            exponent: tensor(&exponent),
            other: tensor(&other),
        }
    }

    /// Numbers where a condition holds, and zero elsewhere.
    #[track_caller]
    fn only(is_wanted: &Tensor, x: &Tensor) -> Tensor {
        where_(is_wanted, x, 0.0)
    }

    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let logs = self.method.logarithms(x);
        if self.method == PowerMethod::BoxCox {
            return grown(&(logs - &self.center), &self.exponent);
        }
        let is_near = logs.less(0.0).equal(&self.is_negative);
        let near = grown(&Bend::only(&is_near, &(&logs - &self.center)), &self.exponent);
        let far = Bend::only(&is_near.logical_not(), &logs);
        let far = (grown(&far, &self.other) - &self.offset) * &self.factor;
        where_(&is_near, near, far)
    }

    #[track_caller]
    fn back(&self, made: &Tensor) -> Tensor {
        if self.method == PowerMethod::BoxCox {
            return (shrunk(made, &self.exponent) + &self.center).exp();
        }
        let is_near = made.less(&self.zero).equal(&self.is_negative);
        let near = shrunk(&Bend::only(&is_near, made), &self.exponent) + &self.center;
        let far = Bend::only(&is_near.logical_not(), &(made / &self.factor + &self.offset));
        let logs = where_(&is_near, near, shrunk(&far, &self.other));
        logs.sign() * logs.abs().expm1()
    }
}

/// scikit-learn's text for numbers that have no logarithm.
const NOT_POSITIVE: &str = "The Box-Cox transformation can only be applied to strictly positive data";

/// The search for the best exponent of a feature.
struct Search {
    center: f64,
    step: f64,
    is_done: bool,
}

impl Search {
    /// An exponent of the row around the centre.
    fn exponent(&self, at: usize) -> f64 {
        self.center + (at as f64 - SIDE as f64) * self.step
    }

    /// Moves to the best exponent of the row, and makes the next row finer, or wider at its ends. False if
    /// none is finite.
    fn narrow(&mut self, likelihoods: &[f64]) -> bool {
        let finite = likelihoods.iter().enumerate().filter(|(_, likelihood)| likelihood.is_finite());
        let Some((best, _)) = finite.max_by(|a, b| a.1.total_cmp(b.1)) else { return false };
        let center = self.exponent(best);
        let inner = 0 < best && best + 1 < likelihoods.len();
        if !inner {
            self.center = center;
            // Exponents of small numbers are far away: of numbers around 1e-5, at 1e5.
            self.step *= 2.0;
            return true;
        }
        let [below, here, above] = [best - 1, best, best + 1].map(|at| likelihoods[at]);
        let curvature = below - 2.0 * here + above;
        let offset = if curvature < 0.0 { 0.5 * (below - above) / curvature } else { 0.0 };
        self.center = if offset.abs() <= 1.0 { center + offset * self.step } else { center };
        self.is_done = self.step <= LAST_STEP;
        self.step /= SIDE as f64;
        true
    }
}

impl PowerMethod {
    /// The logarithms of numbers, with the sign of the number if they may have either.
    #[track_caller]
    fn logarithms(self, x: &Tensor) -> Tensor {
        match self {
            PowerMethod::BoxCox => x.log(),
            PowerMethod::YeoJohnson => x.sign() * x.abs().log1p(),
        }
    }

    /// The exponents of numbers of either sign: of those below zero they are less by 2.
    #[track_caller]
    fn signed(self, exponents: &Tensor, is_negative: &Tensor) -> Tensor {
        match self {
            PowerMethod::BoxCox => exponents.clone(),
            PowerMethod::YeoJohnson => where_(is_negative, exponents - 2.0, exponents),
        }
    }
}

/// `(exp(m t) - 1) / m`, which is t for m = 0.
#[track_caller]
fn grown(t: &Tensor, m: &Tensor) -> Tensor {
    let is_zero = m.equal(0.0);
    let safe = where_(&is_zero, 1.0, m);
    where_(&is_zero, t, (t * &safe).expm1() / &safe)
}

/// As [`grown`], of numbers.
fn grown_number(t: f64, m: f64) -> f64 {
    if m == 0.0 { t } else { (t * m).exp_m1() / m }
}

/// `log(1 + m y) / m`, which is y for m = 0.
#[track_caller]
fn shrunk(y: &Tensor, m: &Tensor) -> Tensor {
    let is_zero = m.equal(0.0);
    let safe = where_(&is_zero, 1.0, m);
    where_(&is_zero, y, (y * &safe).log1p() / &safe)
}

impl Estimator for PowerTransformer {
    type Fitted = FittedPowerTransformer;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedPowerTransformer> {
        let training = Training::unsupervised("PowerTransformer", x, options)?.without_weights()?;
        let (searches, found) = self.search(&training)?;
        let lambdas: Array1<f64> = searches.iter().map(|search| search.center).collect();
        let converged = searches.iter().all(|search| search.is_done);
        let around = if self.standardize { found } else { Around::zero(lambdas.len()) };
        let method = self.method;
        let mut model = FittedPowerTransformer { lambdas, converged, method, around, scaler: None };
        if self.standardize {
            let bent = model.transform(&training.x);
            model.scaler = Some(StandardScaler::new().fit(&bent, options)?);
        }
        Ok(model)
    }
}

impl FittedPowerTransformer {
    /// Samples (n, d) bent, and standardized if that was asked for; floats keep their dtype. Carries a
    /// `ValueError` for another number of features; when run for infinity, and
    /// for numbers that are not positive (`BoxCox`).
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match checked_for("PowerTransformer", x, self.lambdas.len(), Nan::Missing) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let mut made = Bend::new(self.method, &self.lambdas, &self.around).forward(&samples);
        if self.method == PowerMethod::BoxCox {
            let is_sound = samples.less_equal(0.0).logical_not();
            made = Tensor::apply(Require { message: NOT_POSITIVE.to_owned() }, &[&made, &is_sound]);
        }
        if let Some(scaler) = &self.scaler {
            made = scaler.transform(&made);
        }
        in_dtype_of(x, made)
    }

    /// The samples that [`transform`](FittedPowerTransformer::transform) maps to these; NaN where there are
    /// none.
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        let mut made = match checked_for("PowerTransformer", x, self.lambdas.len(), Nan::Missing) {
            Ok(made) => made,
            Err(error) => return Tensor::from(error),
        };
        if let Some(scaler) = &self.scaler {
            made = scaler.inverse_transform(&made);
        }
        in_dtype_of(x, Bend::new(self.method, &self.lambdas, &self.around).back(&made))
    }
}

saved!(FittedPowerTransformer, "PowerTransformer", |model| {
    let columns = model.lambdas.len();
    0 < columns
        && model.around.center.len() == columns
        && model.around.is_negative.len() == columns
        && model.scaler.as_ref().is_none_or(|scaler| scaler.is_sound() && scaler.mean.len() == columns)
});

impl Transform for FittedPowerTransformer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedPowerTransformer::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        crate::feature_names::same(names, self.lambdas.len())
    }
}

impl fmt::Display for FittedPowerTransformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PowerTransformer of {} features", self.lambdas.len())?;
        show::line(f, "lambdas", &self.lambdas)
    }
}
