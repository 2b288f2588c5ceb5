//! Boosted trees of classifiers.

use super::boosting::{Boosted, Boosting, EarlyStopping, Problem, boosting_parameters};
use crate::base::{Estimator, FitOptions, Predict, classifies};
use crate::checks::Training;
use crate::labels::{largest, log_sum_exp};
use crate::saved::saved;
use crate::tree::loss::Loss;
use crate::tree::targets::Targets;
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor, array, where_};

/// scikit-learn's `HistGradientBoostingClassifier`: trees on bins, each along the slopes of the log loss that
/// those before have left; for more than two classes a tree for each at every step.
///
/// Passes, missing values and growth are those of
/// [`HistGradientBoostingRegressor`](super::HistGradientBoostingRegressor). The trees of all classes grow in
/// the same passes.
///
/// ```
/// use tharsis_learn::datasets::load_iris;
/// use tharsis_learn::ensemble::HistGradientBoostingClassifier;
/// let iris = load_iris()?;
/// let model = HistGradientBoostingClassifier::new().max_iter(20).fit(&iris.data, &iris.target, ..)?;
/// assert!(0.96 < model.score(&iris.data, &iris.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct HistGradientBoostingClassifier {
    boosting: Boosting,
}

/// A fitted [`HistGradientBoostingClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedHistGradientBoostingClassifier {
    /// scikit-learn's `classes_`, ascending.
    pub classes: Vec<i64>,
    /// scikit-learn's `n_iter_`: the number of steps.
    pub n_iter: usize,
    /// scikit-learn's `train_score_`: the negative loss of the samples before each step and after the last;
    /// empty without early stopping.
    pub train_score: Array1<f64>,
    /// scikit-learn's `validation_score_`: the same of the samples that are left out.
    pub validation_score: Array1<f64>,
    boosted: Boosted,
}

boosting_parameters!(HistGradientBoostingClassifier, []);

const NAME: &str = "HistGradientBoostingClassifier";

impl HistGradientBoostingClassifier {
    /// An estimator with scikit-learn's defaults: 100 steps of trees of at most 31 leaves.
    ///
    /// ```
    /// use tharsis_learn::ensemble::HistGradientBoostingClassifier;
    /// use tharsis_numeric::arange;
    /// let x = arange(60).reshape(&[60, 1]);
    /// let model = HistGradientBoostingClassifier::new().fit(&x, &x.squeeze(None).less(30), ..)?;
    /// assert_eq!((model.n_iter, model.classes), (100, vec![0, 1]));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> HistGradientBoostingClassifier {
        HistGradientBoostingClassifier::default()
    }

    /// Fits the trees to samples (n, d), of any real dtype, and labels (n,), whole numbers.
    ///
    /// ```
    /// use tharsis_learn::ensemble::HistGradientBoostingClassifier;
    /// use tharsis_numeric::{arange, array};
    /// let (x, y) = (arange(2).reshape(&[2, 1]), array([1i64, 2]));
    /// let refused = HistGradientBoostingClassifier::new().max_bins(256).fit(&x, &y, ..);
    /// assert!(refused.unwrap_err().to_string().contains("'max_bins' parameter"));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, labels that are not whole, shapes that do not fit, no
    /// samples, no features, complex numbers, and weights that are negative, NaN or all zero; `MemoryError`
    /// if bins and scores do not fit; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedHistGradientBoostingClassifier> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl FittedHistGradientBoostingClassifier {
    /// The labels of samples (n, d), as an expression; (n,), int64.
    ///
    /// ```
    /// use tharsis_learn::ensemble::HistGradientBoostingClassifier;
    /// use tharsis_numeric::{arange, array};
    /// let x = arange(60).reshape(&[60, 1]);
    /// let y = x.squeeze(None).less(30) * 5;
    /// let model = HistGradientBoostingClassifier::new().fit(&x, &y, ..)?;
    /// assert_eq!(model.predict(&array([3.0, 50.0]).reshape(&[2, 1])).to_vec::<i64>()?, [5, 0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        largest(&self.predict_proba(x), &self.classes)
    }

    /// The probability of each class, in ascending order, for samples (n, d), as an expression; (n, k).
    ///
    /// ```
    /// use tharsis_learn::datasets::load_iris;
    /// use tharsis_learn::ensemble::HistGradientBoostingClassifier;
    /// let iris = load_iris()?;
    /// let model = HistGradientBoostingClassifier::new().max_iter(3).fit(&iris.data, &iris.target, ..)?;
    /// let chances = model.predict_proba(&iris.data);
    /// assert_eq!(chances.shape()?, [150, 3]);
    /// assert!(chances.sum(1).isclose(1.0, 0.0, 1e-12).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        let scores = match self.boosted.trees.sums(NAME, x) {
            Ok(scores) => scores,
            Err(error) => return Tensor::from(error),
        };
        match self.classes.len() {
            1 => scores * 0.0 + 1.0,
            2 => {
                let small = scores.abs().negative().exp();
                let second = where_(&scores.greater_equal(0.0), 1.0, &small) / (small + 1.0);
                second * array([-1.0, 1.0]) + array([1.0, 0.0])
            }
            _ => (&scores - log_sum_exp(&scores)).exp(),
        }
    }

    /// The scores of the classes for samples (n, d), as an expression; (n, k), or (n,) of the second one of
    /// two.
    ///
    /// ```
    /// use tharsis_learn::ensemble::HistGradientBoostingClassifier;
    /// use tharsis_numeric::arange;
    /// let x = arange(60).reshape(&[60, 1]);
    /// let model = HistGradientBoostingClassifier::new().fit(&x, &x.squeeze(None).less(30), ..)?;
    /// assert!(0.0 < model.decision_function(&x).to_vec::<f64>()?[0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        match self.boosted.trees.sums(NAME, x) {
            Ok(scores) if self.classes.len() <= 2 => scores.squeeze(Some(&[1])),
            Ok(scores) => scores,
            Err(error) => Tensor::from(error),
        }
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// ```
    /// use tharsis_learn::ensemble::HistGradientBoostingClassifier;
    /// use tharsis_numeric::arange;
    /// let x = arange(60).reshape(&[60, 1]);
    /// let y = x.squeeze(None).less(30);
    /// assert_eq!(HistGradientBoostingClassifier::new().fit(&x, &y, ..)?.score(&x, &y, ..)?, 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

impl Estimator for HistGradientBoostingClassifier {
    type Fitted = FittedHistGradientBoostingClassifier;

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedHistGradientBoostingClassifier> {
        self.boosting.check(NAME)?;
        let training = Training::supervised(NAME, x, y, options)?;
        let (classes, targets) = Targets::classes(&training)?;
        let (loss, scores) = match classes.len() {
            0..=2 => (Loss::Logistic, 1),
            several => (Loss::Softmax, several),
        };
        let executor = options.chosen_executor();
        let problem = Problem { training: &training, targets: &targets, loss, scores, executor };
        let boosted = self.boosting.fit(&problem)?;
        Ok(FittedHistGradientBoostingClassifier {
            classes,
            n_iter: boosted.n_iter,
            train_score: boosted.train_score.clone(),
            validation_score: boosted.validation_score.clone(),
            boosted,
        })
    }
}

saved!(FittedHistGradientBoostingClassifier, NAME, |model| {
    let scores = if model.classes.len() <= 2 { 1 } else { model.classes.len() };
    !model.classes.is_empty() && model.boosted.trees.width() == scores
});

classifies!(FittedHistGradientBoostingClassifier, NAME; decision_function);

impl fmt::Display for FittedHistGradientBoostingClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} of {} features, classes {:?}", self.boosted.trees.features(), self.classes)?;
        self.boosted.show(f)
    }
}
