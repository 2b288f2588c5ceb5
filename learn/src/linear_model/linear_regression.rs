//! Ordinary least squares.

use super::line::{self, Line};
use crate::base::{Estimator, FitOptions, Predict};
use crate::checks::{Nan, Training, refused};
use crate::dense::{eigh, tensor};
use crate::passes::Moments;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, ArrayD, Axis};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// Above this condition number of the Gram matrix of scaled columns, least squares are solved on the samples:
/// the Gram matrix has lost half of the digits.
const CONDITION_MAX: f64 = 1e8;
/// A singular value this many times above the bound is above it whatever the rounding.
const SURE: f64 = 2.0;

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
#[derive(Clone, Debug)]
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
    /// weights that are negative or all zero; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedLinearRegression> {
        self.fit_any(x, Some(y), &options.into())
    }

    #[track_caller]
    fn fitted(&self, training: &Training) -> Result<FittedLinearRegression> {
        let one_axis = training.target()?.ndim()? == 1;
        let targets = training.target_columns()?;
        if training.rows <= training.columns {
            return self.by_factors(training, &targets, one_axis);
        }
        let moments = Moments::of(training, Some(&targets), line::around(self.fit_intercept))?;
        if moments.gram.iter().chain(&moments.cross).any(|product| !product.is_finite()) {
            // Squares have left the range of float64; the samples themselves have not.
            return self.by_factors(training, &targets, one_axis);
        }
        let singular: Array1<f64> =
            eigh(&moments.gram)?.0.iter().rev().map(|&value| value.max(0.0).sqrt()).collect();
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
        let mean = |columns: &Tensor| match &training.weight {
            _ if !self.fit_intercept => columns.get(&[(..0i64).into()]).sum(0),
            None => columns.mean(0),
            Some(weight) => (columns * weight.expand_dims(1)).sum(0) / weight.sum(..),
        };
        let (x_mean, y_mean) = (mean(&training.x), mean(targets));
        let root = match &training.weight {
            Some(weight) => weight.sqrt().expand_dims(1),
            None => Tensor::number(1.0),
        };
        let states = training.engine.run(&[&x_mean, &y_mean, &root.sum(..)])?;
        if !all_finite(&states) {
            training.explain_not_finite(Nan::Refused)?;
        }
        if states[2].sum() == 0.0 {
            return Err(refused("Weights sum to zero, can't be normalized"));
        }
        let (x_mean, y_mean) = (tensor(&states[0]), tensor(&states[1]));
        let x = (&training.x - &x_mean) * &root;
        let made = x.lstsq(&((targets - &y_mean) * &root), Some(self.tol));
        let found = training.engine.run(&[&made.solution, &made.rank, &made.singular_values])?;
        let [slopes, rank, singular] = <[_; 3]>::try_from(found).map_err(|_| lost())?;
        let mut means = states.into_iter();
        let mut next = || vector(means.next().ok_or_else(lost)?);
        let Line { coef, intercept } = Line::through(&matrix(slopes)?, &next()?, &next()?, one_axis);
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

/// The slopes (d, k) by eigenvectors of the Gram matrix of columns of length 1; `None` if it has lost too
/// many digits.
#[track_caller]
fn by_gram(moments: &Moments) -> Result<Option<Array2<f64>>> {
    let columns = moments.mean.len();
    if (0..columns).any(|column| moments.is_constant(column)) {
        return Ok(None);
    }
    let scale = moments.gram.diag().mapv(|square| 1.0 / square.sqrt());
    if scale.iter().any(|scale| !scale.is_finite() || *scale == 0.0) {
        return Ok(None);
    }
    let rows = scale.view().insert_axis(Axis(1));
    let (values, vectors) = eigh(&(&moments.gram * &rows * &scale))?;
    let (Some(&least), Some(&largest)) = (values.first(), values.last()) else { return Ok(None) };
    let is_sound = 0.0 < least && largest <= CONDITION_MAX * least;
    if !is_sound {
        return Ok(None);
    }
    let along = vectors.t().dot(&(&moments.cross * &rows)) / values.insert_axis(Axis(1));
    Ok(Some(vectors.dot(&along) * rows))
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
        line::score("LinearRegression", x, y, &options.into(), |x| self.predict(x))
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

impl Predict for FittedLinearRegression {
    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedLinearRegression::predict(self, x)
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        self.score(x, y, options)
    }
}

impl fmt::Display for FittedLinearRegression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line::show(f, "LinearRegression", &self.coef, &self.intercept)
    }
}
