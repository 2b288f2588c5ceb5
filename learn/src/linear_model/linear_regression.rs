//! Ordinary least squares.

use super::least::solved;
use super::line::{self, Line};
use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::checks::{Nan, Training, refused};
use crate::dense::{eigh, spectrum};
use crate::params::parameters;
use crate::passes::{Centred, Moments};
use crate::saved::saved;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, ArrayD};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// A singular value this many times above the bound is above it whatever the rounding.
const SURE: f64 = 2.0;
/// The part of the largest eigenvalue of products down to which others have eight digits: they are exact to
/// the largest one.
const DIGITS: f64 = 1e-8;

/// scikit-learn's `LinearRegression`: the least sum of squares of what is left of the targets.
///
/// ```
/// use tharsis_learn::linear_model::LinearRegression;
/// use tharsis_numeric::{arange, array};
/// let x = arange(4).reshape(&[4, 1]);
/// let model = LinearRegression::new().fit(&x, &array([1.0, 3.0, 5.0, 7.0]), ..)?;
/// assert!((model.coef[[0]] - 2.0).abs() < 1e-12);
/// assert!((model.intercept.sum() - 1.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct LinearRegression {
    fit_intercept: bool,
    tol: f64,
}

/// A fitted [`LinearRegression`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLinearRegression {
    /// scikit-learn's `coef_`; (d,), or (k, d) for several targets.
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; (), or (k,) for several targets.
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `rank_`: the rank of the samples around their means.
    pub rank: usize,
    /// scikit-learn's `singular_`: the singular values of the samples around their means, largest first;
    /// (min(n, d),).
    pub singular: Array1<f64>,
}

parameters!(LinearRegression, "LinearRegression", ["fit_intercept" => fit_intercept, "tol" => tol]);

impl Default for LinearRegression {
    fn default() -> LinearRegression {
        LinearRegression { fit_intercept: true, tol: 1e-6 }
    }
}

impl LinearRegression {
    /// An estimator with scikit-learn's defaults.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LinearRegression;
    /// use tharsis_numeric::{array, ones};
    /// let model = LinearRegression::new().fit(&ones(&[2, 1]), &array([1.0, 3.0]), ..)?;
    /// assert_eq!((model.rank, model.coef[[0]], model.intercept.sum()), (0, 0.0, 2.0));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> LinearRegression {
        LinearRegression::default()
    }

    /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LinearRegression;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0]).reshape(&[2, 1]);
    /// let model = LinearRegression::new().fit_intercept(false).fit(&x, &array([2.0, 4.0]), ..)?;
    /// assert_eq!(model.intercept.sum(), 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn fit_intercept(self, fit_intercept: bool) -> LinearRegression {
        LinearRegression { fit_intercept, ..self }
    }

    /// scikit-learn's `tol`: directions whose singular value is not larger than this part of the largest one
    /// are left out; not negative.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LinearRegression;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 0.0, -1.0, 0.0, 0.0, 1e-4, 0.0, -1e-4]).reshape(&[4, 2]);
    /// let y = array([1.0, -1.0, 1.0, -1.0]);
    /// assert_eq!(LinearRegression::new().fit(&x, &y, ..)?.rank, 2);
    /// assert_eq!(LinearRegression::new().tol(1e-3).fit(&x, &y, ..)?.rank, 1);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn tol(self, tol: f64) -> LinearRegression {
        LinearRegression { tol, ..self }
    }

    /// Fits the model on samples (n, d) and targets (n,) or (n, k), of real dtypes.
    ///
    /// One pass makes the Gram matrix. If that is close to singular, or there are not more samples than
    /// features, factors of the samples themselves are made, by blocks of rows if there are many: of all
    /// solutions the shortest one is taken, as in scikit-learn.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LinearRegression;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0]).reshape(&[3, 2]);
    /// let model = LinearRegression::new().fit(&x, &array([0.0, 2.0, 4.0]), ..)?;
    /// assert_eq!(model.rank, 1);
    /// assert!((model.coef[[0]] - 1.0).abs() < 1e-12 && (model.coef[[1]] - 1.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, no samples, no features, complex numbers, NaN, infinity, and
    /// weights that are negative or all zero; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedLinearRegression> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The model of data of any estimator, which errors name.
    #[track_caller]
    pub(super) fn fitted(&self, training: &Training) -> Result<FittedLinearRegression> {
        let one_axis = training.target()?.ndim()? == 1;
        let targets = training.target_columns()?;
        if training.rows <= training.columns {
            return self.by_factors(training, &targets, one_axis);
        }
        let around = line::around(self.fit_intercept);
        let Some(moments) = Moments::within_float64(training, Some(&targets), around)? else {
            // Squares have left the range of float64; the samples themselves may not have.
            return self.by_factors(training, &targets, one_axis);
        };
        let singular = singular_values(&moments.gram)?;
        let (largest, least) = (singular.iter().next(), singular.iter().next_back());
        // Whether all directions stay is for the factors to tell if it is close.
        let is_full =
            matches!((largest, least), (Some(most), Some(least)) if SURE * self.tol * most < *least);
        let slopes = if is_full { by_gram(&moments)? } else { None };
        let Some(slopes) = slopes else {
            return self.by_factors(training, &targets, one_axis);
        };
        let Line { coef, intercept } = Line::through(&slopes, &moments.mean, &moments.target_mean, one_axis);
        Ok(FittedLinearRegression { coef, intercept, rank: training.columns, singular })
    }

    /// The model by orthogonal factors of the samples around their means.
    #[track_caller]
    fn by_factors(
        &self,
        training: &Training,
        targets: &Tensor,
        one_axis: bool,
    ) -> Result<FittedLinearRegression> {
        let centred = Centred::of(training, targets, line::around(self.fit_intercept))?;
        let made = centred.x.lstsq(&centred.y, Some(self.tol));
        let found = training.engine.run(&[&made.solution, &made.rank, &made.singular_values])?;
        if !all_finite(&found) {
            return Err(training.not_finite(Nan::Refused));
        }
        let [slopes, rank, singular] = <[_; 3]>::try_from(found).map_err(|_| lost())?;
        let (mean, target_mean) = (&centred.mean, &centred.target_mean);
        let Line { coef, intercept } = Line::through(&matrix(slopes)?, mean, target_mean, one_axis);
        Ok(FittedLinearRegression { coef, intercept, rank: rank.sum() as usize, singular: vector(singular)? })
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let is_sound = 0.0 <= self.tol && self.tol.is_finite();
        if is_sound {
            return Ok(());
        }
        Err(refused(format!(
            "The 'tol' parameter of LinearRegression must be a float in the range [0, inf). Got {} instead.",
            self.tol
        )))
    }
}

/// The singular values of samples by the products of their columns (d, d), largest first.
#[track_caller]
fn singular_values(gram: &Array2<f64>) -> Result<Array1<f64>> {
    let (values, _) = eigh(gram)?;
    let (least, most) = (values.iter().next(), values.iter().next_back());
    let has_digits = matches!((least, most), (Some(least), Some(most)) if DIGITS * most <= *least);
    let squares: Array1<f64> =
        if has_digits { values.iter().rev().copied().collect() } else { spectrum(gram, gram.nrows())?.0 };
    Ok(squares.mapv(|square| square.max(0.0).sqrt()))
}

/// The slopes (d, k) by the Gram matrix; `None` if it has lost too many digits.
#[track_caller]
fn by_gram(moments: &Moments) -> Result<Option<Array2<f64>>> {
    if (0..moments.mean.len()).any(|column| moments.is_constant(column)) {
        return Ok(None);
    }
    solved(&moments.gram, &moments.cross, 0.0)
}

impl FittedLinearRegression {
    /// The predictions for samples (n, d), as an expression: (n,), or (n, k) for several targets; float64.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LinearRegression;
    /// use tharsis_numeric::{arange, array};
    /// let model = LinearRegression::new().fit(&arange(2).reshape(&[2, 1]), &array([1.0, 1.0]), ..)?;
    /// assert_eq!(model.predict(&arange(3).reshape(&[3, 1])).to_vec::<f64>()?, [1.0, 1.0, 1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        line::predict("LinearRegression", x, &self.coef, &self.intercept)
    }

    /// R² of the predictions for samples (n, d) with these targets.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LinearRegression;
    /// use tharsis_numeric::{arange, array};
    /// let (x, y) = (arange(3).reshape(&[3, 1]), array([0.0, 1.0, 2.0]));
    /// let score = LinearRegression::new().fit(&x, &y, ..)?.score(&x, &y, ..)?;
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

impl Estimator for LinearRegression {
    type Fitted = FittedLinearRegression;

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedLinearRegression> {
        self.check()?;
        self.fitted(&Training::supervised("LinearRegression", x, y, options)?)
    }
}

saved!(FittedLinearRegression, "LinearRegression", |model| line::is_sound(&model.coef, &model.intercept));

predicts!(FittedLinearRegression, Regression, "LinearRegression");

impl fmt::Display for FittedLinearRegression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line::show(f, "LinearRegression", &self.coef, &self.intercept)
    }
}
