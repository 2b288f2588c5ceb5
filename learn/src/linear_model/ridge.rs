//! Least squares with a penalty on the squares of the coefficients.

use super::least::Least;
use super::line::{self, Line};
use super::linear_regression::{FittedLinearRegression, LinearRegression};
use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::checks::{Training, refused};
use crate::params::parameters;
use crate::saved::saved;
use ndarray::{ArrayD, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// Directions below this part of the largest are rounding.
const ROUNDING: f64 = 1e-13;

/// scikit-learn's `Ridge`: the least sum of squares of what is left of the targets, plus `alpha` times the
/// squares of the coefficients.
///
/// ```
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_numeric::array;
/// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
/// let model = Ridge::new().alpha(2.0).fit(&x, &array([-1.0, 1.0]), ..)?;
/// assert!((model.coef[[0]] - 0.5).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct Ridge {
    alpha: f64,
    fit_intercept: bool,
}

/// A fitted [`Ridge`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedRidge {
    /// scikit-learn's `coef_`; (d,), or (k, d) for several targets.
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; (), or (k,) for several targets.
    pub intercept: ArrayD<f64>,
    alpha: f64,
}

parameters!(Ridge, "Ridge", ["alpha" => alpha, "fit_intercept" => fit_intercept]);

impl Default for Ridge {
    fn default() -> Ridge {
        Ridge { alpha: 1.0, fit_intercept: true }
    }
}

impl Ridge {
    /// An estimator with scikit-learn's defaults: `alpha` is 1.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0]).reshape(&[2, 1]);
    /// let model = Ridge::new().fit(&x, &array([-3.0, 3.0]), ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> Ridge {
        Ridge::default()
    }

    /// scikit-learn's `alpha`: the weight of the penalty, not negative.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_numeric::{array, ones};
    /// let refused = Ridge::new().alpha(-1.0).fit(&ones(&[1, 1]), &array([1.0]), ..);
    /// assert!(refused.unwrap_err().to_string().contains("'alpha' parameter of Ridge"));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn alpha(self, alpha: f64) -> Ridge {
        Ridge { alpha, ..self }
    }

    /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0]).reshape(&[2, 1]);
    /// let model = Ridge::new().fit_intercept(false).fit(&x, &array([2.0, 4.0]), ..)?;
    /// assert_eq!(model.intercept.sum(), 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn fit_intercept(self, fit_intercept: bool) -> Ridge {
        Ridge { fit_intercept, ..self }
    }

    /// Fits the model on samples (n, d) and targets (n,) or (n, k), of real dtypes. One column of targets is
    /// as one axis, as in scikit-learn.
    ///
    /// One pass makes the Gram matrix. If there are fewer samples than features, products of samples take its
    /// place; if the system is close to singular, factors of the samples do.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_numeric::arange;
    /// let x = arange(8).reshape(&[4, 2]);
    /// let model = Ridge::new().fit(&x, &(&x * 2), ..)?;
    /// assert_eq!((model.coef.shape(), model.intercept.shape()), (&[2, 2][..], &[2][..]));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative `alpha`, shapes that do not fit, no samples, no features, complex numbers,
    /// NaN, infinity, and weights that are negative or all zero; `OverflowError` for sums beyond float64;
    /// errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedRidge> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The model of data of any estimator, which errors name.
    #[track_caller]
    pub(super) fn fitted(&self, training: &Training) -> Result<FittedRidge> {
        let alpha = self.alpha;
        if alpha == 0.0 {
            // Least squares, whose matrix may be singular.
            let least = LinearRegression::new().fit_intercept(self.fit_intercept).tol(ROUNDING);
            let FittedLinearRegression { mut coef, mut intercept, .. } = least.fitted(training)?;
            if training.has_one_target()? && coef.ndim() == 2 {
                (coef, intercept) = (coef.index_axis_move(Axis(0), 0), intercept.index_axis_move(Axis(0), 0));
            }
            return Ok(FittedRidge { coef, intercept, alpha });
        }
        let one_axis = training.has_one_target()?;
        let targets = training.target_columns()?;
        let around = line::around(self.fit_intercept);
        let least = Least::of(training, &targets, around, |_| alpha)?;
        let Line { coef, intercept } =
            Line::through(&least.slopes, &least.mean, &least.target_mean, one_axis);
        Ok(FittedRidge { coef, intercept, alpha })
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let is_sound = 0.0 <= self.alpha && self.alpha.is_finite();
        if is_sound {
            return Ok(());
        }
        Err(refused(format!(
            "The 'alpha' parameter of Ridge must be a float in the range [0.0, inf). Got {} instead.",
            self.alpha
        )))
    }
}

impl FittedRidge {
    /// The predictions for samples (n, d), as an expression: (n,), or (n, k) for several targets; float64.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_numeric::{arange, array};
    /// let model = Ridge::new().fit(&arange(2).reshape(&[2, 1]), &array([1.0, 1.0]), ..)?;
    /// assert_eq!(model.predict(&arange(3).reshape(&[3, 1])).to_vec::<f64>()?, [1.0, 1.0, 1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        line::predict("Ridge", x, &self.coef, &self.intercept)
    }

    /// R² of the predictions for samples (n, d) with these targets.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_numeric::{arange, array};
    /// let (x, y) = (arange(3).reshape(&[3, 1]), array([0.0, 1.0, 2.0]));
    /// let score = Ridge::new().alpha(0.0).fit(&x, &y, ..)?.score(&x, &y, ..)?;
    /// assert!((score - 1.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, NaN and infinity; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

impl Estimator for Ridge {
    type Fitted = FittedRidge;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedRidge> {
        self.check()?;
        self.fitted(&Training::supervised("Ridge", x, y, options)?)
    }
}
saved!(FittedRidge, "Ridge", |model| line::is_sound(&model.coef, &model.intercept));

predicts!(FittedRidge, Regression, "Ridge");

impl fmt::Display for FittedRidge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line::show(f, &format!("Ridge(alpha={})", self.alpha), &self.coef, &self.intercept)
    }
}
