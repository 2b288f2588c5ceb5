//! Boosted trees of regressors.

use super::boosting::{Boosted, Boosting, EarlyStopping, Problem, boosting_parameters};
use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::checks::{Training, refused};
use crate::params::words;
use crate::saved::saved;
use crate::show;
use crate::tree::loss::Loss;
use crate::tree::targets::Targets;
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `loss` of [`HistGradientBoostingRegressor`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegressionLoss {
    /// The squared error.
    #[default]
    SquaredError,
    /// The Poisson deviance: targets are not negative, and predictions positive.
    Poisson,
    /// The gamma deviance: targets and predictions are positive.
    Gamma,
}

words!(
    RegressionLoss,
    [
        "squared_error" => RegressionLoss::SquaredError, "poisson" => RegressionLoss::Poisson,
        "gamma" => RegressionLoss::Gamma
    ]
);

/// scikit-learn's `HistGradientBoostingRegressor`: trees on bins, each along the slopes of the loss that
/// those before have left.
///
/// A fit reads the samples a few times to put them in bins, one byte for each value, and then only these:
/// once for each level of a tree. Trees grow best first, as scikit-learn's. Missing values are NaN, and go to
/// the side that is better.
///
/// ```
/// use tharsis_learn::ensemble::HistGradientBoostingRegressor;
/// use tharsis_numeric::arange;
/// let x = arange(100).reshape(&[100, 1]);
/// let y = x.squeeze(None).greater_equal(50);
/// let model = HistGradientBoostingRegressor::new().max_iter(50).fit(&x, &y, ..)?;
/// assert!(0.99 < model.score(&x, &y, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct HistGradientBoostingRegressor {
    loss: RegressionLoss,
    boosting: Boosting,
}

/// A fitted [`HistGradientBoostingRegressor`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedHistGradientBoostingRegressor {
    /// scikit-learn's `n_iter_`: the number of trees.
    pub n_iter: usize,
    /// scikit-learn's `train_score_`: the negative loss of the samples before each tree and after the last;
    /// empty without early stopping.
    pub train_score: Array1<f64>,
    /// scikit-learn's `validation_score_`: the same of the samples that are left out.
    pub validation_score: Array1<f64>,
    loss: RegressionLoss,
    boosted: Boosted,
}

boosting_parameters!(HistGradientBoostingRegressor, ["loss" => loss,]);

const NAME: &str = "HistGradientBoostingRegressor";

impl HistGradientBoostingRegressor {
    /// An estimator with scikit-learn's defaults: the squared error, 100 trees of at most 31 leaves.
    ///
    /// ```
    /// use tharsis_learn::ensemble::HistGradientBoostingRegressor;
    /// use tharsis_numeric::arange;
    /// let x = arange(60).reshape(&[60, 1]);
    /// let model = HistGradientBoostingRegressor::new().fit(&x, &x.squeeze(None), ..)?;
    /// assert_eq!(model.n_iter, 100);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> HistGradientBoostingRegressor {
        HistGradientBoostingRegressor::default()
    }

    /// scikit-learn's `loss`, of which each tree leaves less.
    ///
    /// ```
    /// use tharsis_learn::ensemble::{HistGradientBoostingRegressor, RegressionLoss};
    /// use tharsis_numeric::{arange, array};
    /// let poisson = HistGradientBoostingRegressor::new().loss(RegressionLoss::Poisson);
    /// let refused = poisson.fit(&arange(2).reshape(&[2, 1]), &array([1.0, -1.0]), ..);
    /// assert!(refused.unwrap_err().to_string().contains("requires non-negative y"));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn loss(self, loss: RegressionLoss) -> HistGradientBoostingRegressor {
        HistGradientBoostingRegressor { loss, ..self }
    }

    /// Fits the trees to samples (n, d) and targets (n,), of any real dtype.
    ///
    /// ```
    /// use tharsis_learn::ensemble::HistGradientBoostingRegressor;
    /// use tharsis_numeric::{arange, array};
    /// let refused = HistGradientBoostingRegressor::new().learning_rate(0.0);
    /// let refused = refused.fit(&arange(2).reshape(&[2, 1]), &array([1.0, 2.0]), ..);
    /// assert!(refused.unwrap_err().to_string().contains("'learning_rate' parameter"));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, shapes that do not fit, no samples, no features,
    /// complex numbers, targets that are NaN, infinite or not in the domain of the loss, and weights that are
    /// negative or all zero; `MemoryError` if bins and scores do not fit; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedHistGradientBoostingRegressor> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl FittedHistGradientBoostingRegressor {
    /// The predictions for samples (n, d), as an expression; (n,), float64.
    ///
    /// ```
    /// use tharsis_learn::ensemble::HistGradientBoostingRegressor;
    /// use tharsis_numeric::ones;
    /// let (x, y) = (ones(&[30, 2]), ones(&[30]) * 4.0);
    /// let model = HistGradientBoostingRegressor::new().fit(&x, &y, ..)?;
    /// assert_eq!(model.predict(&ones(&[1, 2])).to_vec::<f64>()?, [4.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let scores = match self.boosted.trees.sums(NAME, x) {
            Ok(scores) => scores.squeeze(Some(&[1])),
            Err(error) => return Tensor::from(error),
        };
        match self.loss {
            RegressionLoss::SquaredError => scores,
            RegressionLoss::Poisson | RegressionLoss::Gamma => scores.exp(),
        }
    }

    /// R² of the predictions for samples (n, d) with these targets.
    ///
    /// ```
    /// use tharsis_learn::ensemble::HistGradientBoostingRegressor;
    /// use tharsis_numeric::arange;
    /// let x = arange(200).reshape(&[200, 1]);
    /// let y = x.squeeze(None).square();
    /// assert!(0.95 < HistGradientBoostingRegressor::new().fit(&x, &y, ..)?.score(&x, &y, ..)?);
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

impl Estimator for HistGradientBoostingRegressor {
    type Fitted = FittedHistGradientBoostingRegressor;

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedHistGradientBoostingRegressor> {
        self.boosting.check(NAME)?;
        let training = Training::supervised(NAME, x, y, options)?;
        let targets = Targets::numbers(&training)?;
        let loss = match self.loss {
            RegressionLoss::SquaredError => Loss::Squared,
            RegressionLoss::Poisson => Loss::Poisson,
            RegressionLoss::Gamma => Loss::Gamma,
        };
        let refusal = match self.loss {
            RegressionLoss::Poisson if targets.least < 0.0 || targets.mean <= 0.0 => {
                Some("loss='poisson' requires non-negative y and sum(y) > 0.")
            }
            RegressionLoss::Gamma if targets.least <= 0.0 => {
                Some("loss='gamma' requires strictly positive y.")
            }
            _ => None,
        };
        if let Some(text) = refusal {
            return Err(refused(text));
        }
        let problem = Problem {
            training: &training,
            targets: &targets,
            loss,
            scores: 1,
            executor: options.chosen_executor(),
        };
        let boosted = self.boosting.fit(&problem)?;
        Ok(FittedHistGradientBoostingRegressor {
            n_iter: boosted.n_iter,
            train_score: boosted.train_score.clone(),
            validation_score: boosted.validation_score.clone(),
            loss: self.loss,
            boosted,
        })
    }
}

saved!(FittedHistGradientBoostingRegressor, NAME, |model| model.boosted.trees.width() == 1);

predicts!(FittedHistGradientBoostingRegressor, Regression, NAME);

impl fmt::Display for FittedHistGradientBoostingRegressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}(loss={:?}) of {} features", self.loss, self.boosted.trees.features())?;
        self.boosted.show(f)
    }
}

impl Boosted {
    /// The lines that follow the name of the model.
    pub(super) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show::line(f, "n_iter", &[self.n_iter as f64])?;
        show::line(f, "leaves", &[self.trees.list().iter().map(|tree| tree.leaves()).sum::<usize>() as f64])?;
        match self.validation_score.last() {
            Some(last) => show::line(f, "validation_score", &[*last]),
            None => Ok(()),
        }
    }
}
