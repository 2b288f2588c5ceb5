//! Least squares that count far samples by their distance and not by its square.
//!
//! Huber's loss with a scale that is fitted along (Owen, "A robust hybrid of lasso and ridge regression",
//! 2007). Its logarithm is the parameter, so that it stays positive. Features and targets are measured in
//! units of their deviations around their means, so that steps are few and the same in any unit.

use super::least::solved;
use super::line::{self, Line, line_model};
use super::minimize::{Measure, Minimum, minimize};
use super::sums::Sums;
use crate::base::{Estimator, FitOptions};
use crate::bounds::{check, check_not_negative};
use crate::checks::{Nan, Training};
use crate::params::estimator;
use crate::states::{all_finite, lost, vector};
use ndarray::{Array1, ArrayD, Axis, Slice};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{DType, Result, Tensor, where_};

/// The least scale in parts of the deviation of the targets: below it the line goes through all samples.
const SCALE_LEAST: f64 = 1e-12;

estimator! {
    /// scikit-learn's `HuberRegressor`: a line that samples far from it do not bend.
    ///
    /// ```
    /// use tharsis_learn::linear_model::HuberRegressor;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape(&[7, 1]);
    /// let y = array([0.1, 1.9, 4.1, 5.9, 8.1, 9.9, 90.0]);
    /// let model = HuberRegressor::new().fit(&x, &y, ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 0.1 && model.converged);
    /// assert!(model.outliers(&x, &y).to_vec::<bool>()?[6]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    HuberRegressor {
        /// scikit-learn's `epsilon`: the distance in units of the scale from which on a sample is far; at
        /// least 1.
        epsilon "epsilon": f64, f64 = 1.35;
        /// scikit-learn's `max_iter`: the most steps of the solver.
        max_iter "max_iter": usize, usize = 100;
        /// scikit-learn's `alpha`: the weight of the penalty on the squares of the coefficients.
        alpha "alpha": f64, f64 = 1e-4;
        /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
        fit_intercept "fit_intercept": bool, bool = true;
        /// scikit-learn's `tol`: the largest part of the slope at the minimum, of targets and features in
        /// units of their deviations.
        tol "tol": f64, f64 = 1e-5;
    }
}

/// A fitted [`HuberRegressor`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedHuberRegressor {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `scale_`: what distances are divided by.
    pub scale: f64,
    /// scikit-learn's `n_iter_`: steps of the solver. Each reads the samples once, rarely more often.
    pub n_iter: usize,
    /// Whether the solver has found the minimum within `tol`.
    pub converged: bool,
    epsilon: f64,
}

impl HuberRegressor {
    /// Fits the model on samples (n, d) and targets (n,), of real dtypes: a pass for each step, rarely more.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, shapes that do not fit, no samples, no features,
    /// complex numbers, NaN, infinity, and weights that are negative or all zero; `OverflowError` for sums
    /// beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedHuberRegressor> {
        self.fit_any(x, Some(y), &options.into())
    }
}

/// Data of a fit: the samples around their means, and the targets in units of about their deviation.
struct Problem<'a> {
    training: &'a Training,
    targets: Tensor,
    sums: Sums,
    /// The unit of the targets, a power of two.
    unit: f64,
    /// The root of the curvature along each coefficient; (d,).
    units: Array1<f64>,
    epsilon: f64,
    alpha: f64,
    fit_intercept: bool,
}

impl<'a> Problem<'a> {
    /// The problem of an estimator, and the place from which it is solved.
    #[track_caller]
    fn of(estimator: &HuberRegressor, training: &'a Training) -> Result<(Problem<'a>, Array1<f64>)> {
        let HuberRegressor { epsilon, alpha, fit_intercept, .. } = *estimator;
        let targets = training.one_target()?;
        let mut sums = Sums::of(training, &targets, line::around(fit_intercept))?;
        let unit = match (sums.squares[0] / sums.weight).sqrt() {
            0.0 => 1.0,
            deviation => deviation.log2().floor().exp2(),
        };
        // The objective in this unit, up to a factor; its penalty is the only part that has the unit twice.
        let (targets, alpha) = (targets / unit, alpha * unit);
        sums.target_mean /= unit;
        sums.cross /= unit;
        sums.squares.mapv_inplace(|square| square / unit / unit);
        let all = (sums.squares[0] / sums.weight).sqrt();
        let scale_of = |slopes: &Array1<f64>| {
            let left = sums.left(slopes, &sums, 0).sqrt();
            left.max(all * SCALE_LEAST).max(f64::MIN_POSITIVE)
        };
        // From least squares on, with the penalty as far as it counts beside them.
        let penalty = alpha * scale_of(&sums.least_squares()?);
        let slopes = match solved(&sums.gram, &sums.cross, penalty)? {
            Some(slopes) => slopes.column(0).to_owned(),
            None => sums.least_squares()?,
        };
        let units = sums.gram.diag().mapv(|square| match ((square + penalty) / sums.weight).sqrt() {
            0.0 => 1.0,
            unit => unit,
        });
        let start = (&slopes * &units).into_iter().chain([0.0, scale_of(&slopes).ln()]).collect();
        Ok((Problem { training, targets, sums, unit, units, epsilon, alpha, fit_intercept }, start))
    }

    /// The objective and its slope at coefficients in units of their curvature, the intercept at the means
    /// and the logarithm of the scale. One pass.
    #[track_caller]
    fn at(&self, point: &Array1<f64>) -> Result<(f64, Array1<f64>)> {
        let columns = self.units.len();
        let coef = &point.slice_axis(Axis(0), Slice::from(..columns)) / &self.units;
        let (intercept, scale) = (point[columns], point[columns + 1].exp());
        let middle = self.sums.target_mean[0] + intercept;
        let (x, apart) = self.sums.apart((&self.training.x, &self.targets), &coef, middle);
        let is_far = apart.abs().greater(self.epsilon * scale);
        let far = is_far.astype(DType::F64);
        let slopes = where_(&is_far, apart.sign() * self.epsilon, &apart / scale) * -2.0;
        let (near, beyond) = (where_(&is_far, 0.0, apart.square()), where_(&is_far, apart.abs(), 0.0));
        let weighted = |part: Tensor| match &self.training.weight {
            None => part,
            Some(weight) => part * weight.expand_dims(1),
        };
        let slopes = weighted(slopes);
        let wanted = [
            weighted(near).sum(..),
            weighted(beyond).sum(..),
            weighted(far).sum(..),
            slopes.sum(..),
            slopes.t().matmul(&x).ravel(),
        ];
        let states = self.training.engine.run(&wanted.iter().collect::<Vec<_>>())?;
        if !all_finite(&states) {
            self.training.explain_not_finite(Nan::Refused)?;
        }
        let [near, beyond, far, by_intercept, by_coef] = <[_; 5]>::try_from(states).map_err(|_| lost())?;
        let (near, beyond, far) = (near.sum(), beyond.sum(), far.sum());
        let squared = self.epsilon * self.epsilon;
        let value = scale * (self.sums.weight - far * squared)
            + near / scale
            + 2.0 * self.epsilon * beyond
            + self.alpha * coef.dot(&coef);
        let by_scale = self.sums.weight - far * squared - near / (scale * scale);
        let by_coef = (vector(by_coef)? + coef * (2.0 * self.alpha)) / &self.units;
        let by_intercept = if self.fit_intercept { by_intercept.sum() } else { 0.0 };
        let slope = by_coef.into_iter().chain([by_intercept, by_scale * scale]).collect();
        Ok((value, slope))
    }
}

impl Estimator for HuberRegressor {
    type Fitted = FittedHuberRegressor;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedHuberRegressor> {
        let name = "HuberRegressor";
        let is_sound = 1.0 <= self.epsilon && self.epsilon.is_finite();
        check(name, "epsilon", is_sound, "a float in the range [1.0, inf)", self.epsilon)?;
        check_not_negative(name, "alpha", self.alpha)?;
        check_not_negative(name, "tol", self.tol)?;
        let training = Training::supervised(name, x, y, options)?;
        let (problem, start) = Problem::of(self, &training)?;
        let tol = (self.tol, Measure::One);
        let Minimum { point, rounds, converged } = minimize(start, tol, self.max_iter, |at| problem.at(at))?;
        if point.at.iter().chain([&point.value]).any(|number| !number.is_finite()) {
            return Err(training.beyond_float64());
        }
        let (columns, unit) = (training.columns, problem.unit);
        let slopes = &point.at.slice_axis(Axis(0), Slice::from(..columns)) / &problem.units * unit;
        let through = (&problem.sums.target_mean + point.at[columns]) * unit;
        let Line { coef, intercept } =
            Line::through(&slopes.insert_axis(Axis(1)), &problem.sums.mean, &through, true);
        let scale = point.at[columns + 1].exp() * unit;
        Ok(FittedHuberRegressor { coef, intercept, scale, n_iter: rounds, converged, epsilon: self.epsilon })
    }
}

impl FittedHuberRegressor {
    /// scikit-learn's `outliers_`: whether samples (n, d) lie far from the line, as an expression; (n,),
    /// bool. Carries a `ValueError` for another number of features.
    #[track_caller]
    pub fn outliers(&self, x: &Tensor, y: &Tensor) -> Tensor {
        (self.predict(x) - y.ravel()).abs().greater(self.epsilon * self.scale)
    }
}

line_model!(FittedHuberRegressor, "HuberRegressor", |_model| "HuberRegressor", |model| model.coef.ndim()
    == 1);
