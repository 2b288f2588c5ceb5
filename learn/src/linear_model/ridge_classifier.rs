//! Classes by least squares on targets of -1 and 1.

use super::least::Least;
use super::line;
use crate::base::{Estimator, FitOptions, predicts};
use crate::bounds::check_not_negative;
use crate::checks::Training;
use crate::labels::{Classes, chosen_label, linear_scores};
use crate::params::parameters;
use crate::saved::saved;
use crate::score::accuracy;
use crate::show;
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `RidgeClassifier`: [`Ridge`](super::Ridge) on targets of 1 for the samples of a class and
/// -1 for others.
///
/// ```
/// use tharsis_learn::linear_model::RidgeClassifier;
/// use tharsis_numeric::array;
/// let x = array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]);
/// let model = RidgeClassifier::new().fit(&x, &array([7i64, 7, 9, 9]), ..)?;
/// assert_eq!(model.predict(&array([-3.0, 5.0]).reshape(&[2, 1])).to_vec::<i64>()?, [7, 9]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RidgeClassifier {
    alpha: f64,
    fit_intercept: bool,
}

/// A fitted [`RidgeClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedRidgeClassifier {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `coef_`; (1, d) for up to two classes (scikit-learn: (d,)), else (k, d).
    pub coef: Array2<f64>,
    /// scikit-learn's `intercept_`; (1,) for up to two classes, else (k,).
    pub intercept: Array1<f64>,
}

parameters!(RidgeClassifier, "RidgeClassifier", ["alpha" => alpha, "fit_intercept" => fit_intercept]);

impl Default for RidgeClassifier {
    fn default() -> RidgeClassifier {
        RidgeClassifier { alpha: 1.0, fit_intercept: true }
    }
}

impl RidgeClassifier {
    /// An estimator with scikit-learn's defaults: `alpha` is 1.
    pub fn new() -> RidgeClassifier {
        RidgeClassifier::default()
    }

    /// scikit-learn's `alpha`: the weight of the penalty, not negative.
    pub fn alpha(self, alpha: f64) -> RidgeClassifier {
        RidgeClassifier { alpha, ..self }
    }

    /// scikit-learn's `fit_intercept`: whether scores need not be zero at zero.
    pub fn fit_intercept(self, fit_intercept: bool) -> RidgeClassifier {
        RidgeClassifier { fit_intercept, ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. Passes as those
    /// of [`Ridge`](super::Ridge), and one or two over the labels.
    ///
    /// # Errors
    /// `ValueError` for an `alpha` that is negative, labels that are not whole, shapes that do
    /// not fit, no samples, no features, complex numbers, NaN, infinity, and weights that are negative or all
    /// zero; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedRidgeClassifier> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl Estimator for RidgeClassifier {
    type Fitted = FittedRidgeClassifier;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedRidgeClassifier> {
        check_not_negative("RidgeClassifier", "alpha", self.alpha)?;
        let training = Training::supervised("RidgeClassifier", x, y, options)?;
        let classes = Classes::of(&training)?;
        let targets = signs(&classes);
        let least = Least::of(&training, &targets, line::around(self.fit_intercept), |_| self.alpha)?;
        let intercept = &least.target_mean - &least.slopes.t().dot(&least.mean);
        let coef = least.slopes.reversed_axes().as_standard_layout().into_owned();
        Ok(FittedRidgeClassifier { classes: classes.values, coef, intercept })
    }
}

impl FittedRidgeClassifier {
    /// scikit-learn's `decision_function`: the scores of samples (n, d), as an expression; (n,) for two
    /// classes, else (n, k). Carries a `ValueError` for another number of features.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        linear_scores("RidgeClassifier", x, &self.coef, &self.intercept)
    }

    /// The labels of samples (n, d), as an expression; (n,), int64. Carries a `ValueError` for another number
    /// of features; when run for NaN.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        chosen_label(&self.decision_function(x), &self.classes)
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        let training = Training::supervised("RidgeClassifier", x, Some(y), &options.into())?;
        accuracy(&training, &self.predict(&training.x))
    }
}

saved!(FittedRidgeClassifier, "RidgeClassifier", |model| are_scores_sound(
    &model.classes,
    &model.coef,
    &model.intercept
));

predicts!(FittedRidgeClassifier, Classification, "RidgeClassifier"; decision_function as decisions);

impl fmt::Display for FittedRidgeClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_scores(f, "RidgeClassifier", &self.classes, (&self.coef, &self.intercept))
    }
}

/// Targets of 1 for the samples of a class and -1 for others: of the last class for up to two, else of each;
/// (n, k).
#[track_caller]
pub(crate) fn signs(classes: &Classes) -> Tensor {
    match classes.values.len() {
        // The only class is the first of two, of which the other one is never seen.
        1 => classes.is_last() * 0.0 - 1.0,
        2 => classes.is_last() * 2.0 - 1.0,
        _ => classes.indicators() * 2.0 - 1.0,
    }
}

/// Whether the shapes of classes, coefficients and intercepts fit each other: one score for up to two
/// classes, else one for each.
pub(crate) fn are_scores_sound(classes: &[i64], coef: &Array2<f64>, intercept: &Array1<f64>) -> bool {
    let scores = if classes.len() <= 2 { 1 } else { classes.len() };
    !classes.is_empty() && coef.nrows() == scores && intercept.len() == scores && 0 < coef.ncols()
}

/// Text of a linear classifier.
pub(crate) fn show_scores(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    classes: &[i64],
    (coef, intercept): (&Array2<f64>, &Array1<f64>),
) -> fmt::Result {
    write!(f, "{name} of {} features, classes {classes:?}", coef.ncols())?;
    show::rows(f, "coef", &coef.clone().into_dyn())?;
    show::line(f, "intercept", intercept)
}
