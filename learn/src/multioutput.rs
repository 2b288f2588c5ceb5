//! scikit-learn's `multioutput`: an estimator of one target for several of them.

use crate::base::{Estimator, FitOptions, Predict, Task, predicts};
use crate::checks::{Training, refused};
use crate::held::{
    AnyClassifier, AnyEstimator, AnyRegressor, Classifies, FittedAny, Regresses, Tells, holds,
};
use crate::params::Params;
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Index, Result, Tensor, concatenate};

const CLASSIFIER: &str = "MultiOutputClassifier";
const REGRESSOR: &str = "MultiOutputRegressor";

/// scikit-learn's `MultiOutputRegressor`: a regressor for each target.
///
/// ```
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_learn::multioutput::MultiOutputRegressor;
/// use tharsis_numeric::arange;
/// let (x, y) = (arange(6).reshape(&[6, 1]), arange(12).reshape(&[6, 2]));
/// let model = MultiOutputRegressor::new(Ridge::new().alpha(1e-9)).fit(&x, &y, ..)?;
/// assert_eq!(model.estimators.len(), 2);
/// assert!(0.999 < model.score(&x, &y, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct MultiOutputRegressor {
    estimator: AnyRegressor,
}

/// scikit-learn's `MultiOutputClassifier`: a classifier for each target.
///
/// ```
/// use tharsis_learn::multioutput::MultiOutputClassifier;
/// use tharsis_learn::naive_bayes::GaussianNB;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 8.0, 9.0]).reshape(&[4, 1]);
/// let y = array([0i64, 7, 0, 7, 1, 5, 1, 5]).reshape(&[4, 2]);
/// let model = MultiOutputClassifier::new(GaussianNB::new()).fit(&x, &y, ..)?;
/// assert_eq!(model.predict(&x).to_vec::<i64>()?, [0, 7, 0, 7, 1, 5, 1, 5]);
/// assert_eq!(model.score(&x, &y, ..)?, 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct MultiOutputClassifier {
    estimator: AnyClassifier,
}

/// A fitted [`MultiOutputRegressor`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedMultiOutputRegressor {
    /// scikit-learn's `estimators_`: a model for each target.
    pub estimators: Vec<FittedAny<Regresses>>,
}

/// A fitted [`MultiOutputClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedMultiOutputClassifier {
    /// scikit-learn's `estimators_`: a model for each target.
    pub estimators: Vec<FittedAny<Classifies>>,
}

/// The models of all targets.
#[track_caller]
fn each<T: Tells>(
    name: &'static str,
    estimator: &AnyEstimator<T>,
    (x, y, options): (&Tensor, Option<&Tensor>, &FitOptions),
) -> Result<Vec<FittedAny<T>>> {
    estimator.check()?;
    let training = Training::supervised(name, x, y, options)?;
    let y = training.target()?;
    let &[_, targets] = y.shape()? else {
        return Err(refused(
            "y must have at least two dimensions for multi-output regression but has only one.",
        ));
    };
    if training.weight.is_some() && !estimator.takes_weights() {
        return Err(refused("Underlying estimator does not support sample weights."));
    }
    let options = training.weighted_options();
    let fitted = |target: i64| {
        let column = y.get(&[Index::from(..), Index::from(target)]);
        estimator.fit_any(&training.x, Some(&column), &options)
    };
    (0..targets as i64).map(fitted).collect()
}

/// The predictions of all models beside each other; (n, k).
#[track_caller]
fn told<T: Tells>(models: &[FittedAny<T>], x: &Tensor) -> Tensor {
    let parts: Vec<Tensor> = models.iter().map(|model| model.predict(x).expand_dims(1)).collect();
    concatenate(&parts.iter().collect::<Vec<_>>(), 1)
}

macro_rules! multioutput {
    ($estimator:ident, $any:ty, $fitted:ident, $name:expr) => {
        holds!($estimator, $name, "estimator" => estimator, []);

        impl $estimator {
            /// A model for each target by this estimator.
            pub fn new<E>(estimator: E) -> $estimator
            where
                E: Estimator + Params + Clone + Send + Sync + 'static,
                E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
            {
                $estimator::any(<$any>::new(estimator))
            }

            /// As `new`, of a type that is not told.
            pub fn any(estimator: $any) -> $estimator {
                $estimator { estimator }
            }

            /// Fits a model for each target on samples (n, d) and targets (n, k).
            ///
            /// # Errors
            /// `ValueError` for an estimator of another kind, targets of one axis, and weights of samples if
            /// the estimator takes none; errors of the fits.
            #[track_caller]
            pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<$fitted> {
                self.fit_any(x, Some(y), &options.into())
            }
        }

        impl Estimator for $estimator {
            type Fitted = $fitted;

            fn takes_weights(&self) -> bool {
                self.estimator.takes_weights()
            }

            #[track_caller]
            fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<$fitted> {
                Ok($fitted { estimators: each($name, &self.estimator, (x, y, options))? })
            }
        }

        impl $fitted {
            /// The predictions for samples (n, d), as an expression; (n, k).
            ///
            /// # Errors
            /// Those that the predictions of the models carry.
            #[track_caller]
            pub fn predict(&self, x: &Tensor) -> Tensor {
                told(&self.estimators, x)
            }

            /// The score on samples (n, d) and targets (n, k): R², or the share of samples all of whose
            /// labels are predicted.
            ///
            /// # Errors
            /// `ValueError` for shapes that do not fit; errors of the pass.
            #[track_caller]
            pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
                self.score_any(x, y, &options.into())
            }
        }

        saved!($fitted, $name, |model| !model.estimators.is_empty());

        impl fmt::Display for $fitted {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} of {} targets", $name, self.estimators.len())?;
                self.estimators.iter().try_for_each(|model| write!(f, "\n  {model}"))
            }
        }
    };
}

multioutput!(MultiOutputRegressor, AnyRegressor, FittedMultiOutputRegressor, REGRESSOR);
multioutput!(MultiOutputClassifier, AnyClassifier, FittedMultiOutputClassifier, CLASSIFIER);
predicts!(FittedMultiOutputRegressor, Regression, REGRESSOR);

impl FittedMultiOutputClassifier {
    /// The probabilities of the classes of each target, (n, classes), as expressions.
    ///
    /// # Errors
    /// `ValueError` if the classifiers tell none.
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Result<Vec<Tensor>> {
        let chances = |model: &FittedAny<Classifies>| {
            let name = model.name();
            let chances = model.probabilities(x).map(|(_, chances)| chances);
            chances.ok_or_else(|| refused(format!("'{name}' object has no attribute 'predict_proba'")))
        };
        self.estimators.iter().map(chances).collect()
    }
}

impl Predict for FittedMultiOutputClassifier {
    const TASK: Task = Task::Classification;

    fn name(&self) -> &'static str {
        CLASSIFIER
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedMultiOutputClassifier::predict(self, x)
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        let training = Training::supervised(CLASSIFIER, x, Some(y), options)?;
        let y = training.target()?;
        let (found, own) = (y.shape()?.to_vec(), self.estimators.len());
        match found[..] {
            [_, targets] if targets == own => {}
            [_, targets] => {
                return Err(refused(format!(
                    "The number of outputs of Y for fit {own} and score {targets} should be same"
                )));
            }
            _ => {
                return Err(refused(
                    "y must have at least two dimensions for multi target classification but has only one",
                ));
            }
        }
        let is_right = y.equal(self.predict(&training.x)).all(1).astype(DType::I64);
        let options = training.weighted_options();
        let scored = Training::supervised(CLASSIFIER, &training.x, Some(&is_right), &options)?;
        crate::score::accuracy(&scored, &is_right.maximum(1))
    }
}
