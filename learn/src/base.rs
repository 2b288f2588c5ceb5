//! Contract of estimators and of their models.
//!
//! Estimators have `fit` as a method of their own, with the arguments that they need. The traits here are for
//! code that takes any estimator or model, and have by default what all of them do alike, such as `score`.

use crate::checks::Training;
pub use crate::options::FitOptions;
use crate::score::{accuracy, r2};
use tharsis_numeric::{Result, Tensor};

/// Estimators: what can be fitted. `y` is the target of those that are supervised; others leave it alone.
pub trait Estimator {
    /// The fitted model.
    type Fitted;

    /// Fits the estimator on samples (n, d) and their targets, if there are any.
    ///
    /// ```
    /// use tharsis_learn::base::{Estimator, Transform};
    /// use tharsis_learn::preprocessing::MaxAbsScaler;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, -4.0]).reshape(&[2, 1]);
    /// let model = MaxAbsScaler::new().fit_any(&x, None, &(..).into())?;
    /// assert_eq!(model.transform(&x).to_vec::<f64>()?, [0.25, -1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the estimator's own `fit`; `ValueError` if it needs a target and there is none.
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<Self::Fitted>;

    /// Whether a fit takes weights of samples. scikit-learn's other estimators have no parameter
    /// `sample_weight`: with weights, a fit of those is a `TypeError`.
    ///
    /// ```
    /// use tharsis_learn::base::Estimator;
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_learn::neighbors::KNeighborsRegressor;
    /// assert!(Ridge::new().takes_weights() && !KNeighborsRegressor::new().takes_weights());
    /// ```
    fn takes_weights(&self) -> bool {
        true
    }

    /// Whether samples may have NaN, which stands for a missing value: the tag `allow_nan` of scikit-learn
    /// 1.9.1, by which selectors of features know what they may hand on. Pipelines have none, and a frozen
    /// model does not know that of its estimator: selectors by these refuse NaN.
    ///
    /// ```
    /// use tharsis_learn::base::Estimator;
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_learn::tree::DecisionTreeRegressor;
    /// assert!(DecisionTreeRegressor::new().takes_nan() && !Ridge::new().takes_nan());
    /// ```
    fn takes_nan(&self) -> bool {
        false
    }

    /// Whether a fit is a model that was there before, whatever the samples:
    /// [`FrozenEstimator`](crate::frozen::FrozenEstimator).
    fn is_frozen(&self) -> bool {
        false
    }

    /// scikit-learn's `fit_transform`, of estimators whose samples of the fit are mapped in another way than
    /// those that come later; none of others.
    fn fit_transform_any(
        &self,
        _x: &Tensor,
        _y: Option<&Tensor>,
        _options: &FitOptions,
    ) -> Option<Result<(Self::Fitted, Tensor)>> {
        None
    }
}

/// Models that map samples to other samples.
pub trait Transform {
    /// The mapped samples, as an expression: (n, d) to (n, k). Carries a `ValueError` if the number of
    /// features is not that of the fit; when run for infinity, and for NaN unless it is a missing value.
    fn transform(&self, x: &Tensor) -> Tensor;

    /// scikit-learn's `inverse_transform`: samples from what they were mapped to, as an expression; none if
    /// the model has no way back.
    fn inverse(&self, _: &Tensor) -> Option<Tensor> {
        None
    }

    /// scikit-learn's `get_feature_names_out`: the names of the features of results, from those of the
    /// samples. `None` for another number of names than the fit had features, and of models that have no
    /// names.
    ///
    /// ```
    /// use tharsis_learn::base::Transform;
    /// use tharsis_learn::preprocessing::OneHotEncoder;
    /// use tharsis_numeric::array;
    /// let model = OneHotEncoder::new().fit(&array([3i64, 8, 3]).reshape(&[3, 1]), ..)?;
    /// assert_eq!(model.feature_names_out(&["code".to_owned()]).unwrap_or_default(), ["code_3", "code_8"]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        None
    }

    /// The name of the type and the numbers of the model, for the file of a pipeline; none if the model
    /// cannot be a part of one.
    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        None
    }
}

/// Kinds of what a model tells, which choose its score and the folds of its validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A class for each sample: the score is the share of right ones.
    Classification,
    /// Numbers for each sample: the score is R².
    Regression,
    /// Something that no target tells, such as a cluster.
    Unsupervised,
}

/// Classes, ascending, and what a model tells of them.
pub type ByClass<'a> = (&'a [i64], Tensor);

/// Models that tell a target for each sample.
pub trait Predict {
    /// The kind of the predictions.
    const TASK: Task;

    /// scikit-learn's name of the estimator, for errors.
    fn name(&self) -> &'static str;

    /// The predictions, as an expression: (n, d) to (n,), or to (n, k) for several targets. Carries a
    /// `ValueError` if the number of features is not that of the fit; when run for infinity, and for NaN
    /// unless it is a missing value.
    fn predict(&self, x: &Tensor) -> Tensor;

    /// scikit-learn's `classes_`, ascending; (k,). None of models that tell no classes, and of those that
    /// tell several labels at once, which have classes for each of them.
    fn class_labels(&self) -> Option<&[i64]> {
        None
    }

    /// The classes, ascending, and their probabilities for samples, for scores that need them; (k,) and
    /// (n, k). None if the model tells no probabilities.
    fn probabilities(&self, _: &Tensor) -> Option<ByClass<'_>> {
        None
    }

    /// The classes, ascending, and the decisions for samples, for scores that need them; (k,), and (n, k) or
    /// (n,) for two classes, positive for the greater one. None if the model tells no decisions.
    fn decisions(&self, _: &Tensor) -> Option<ByClass<'_>> {
        None
    }

    /// scikit-learn's `score`: the share of right predictions of classifiers, R² of regressors. Of other
    /// models, such as detectors of outliers, which have none in scikit-learn, it is the share of right ones
    /// as well.
    ///
    /// # Errors
    /// `ValueError` if the shapes do not fit; errors of the pass.
    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        let training = Training::supervised(self.name(), x, Some(y), options)?;
        let predicted = self.predict(&training.x);
        match Self::TASK {
            Task::Regression => r2(&training, &predicted),
            Task::Classification | Task::Unsupervised => accuracy(&training, &predicted),
        }
    }
}

/// Classifiers that tell the probability of each class.
pub trait PredictProba {
    /// scikit-learn's `classes_`, ascending; (k,).
    fn classes(&self) -> &[i64];

    /// The probabilities, as an expression: (n, d) to (n, k), classes in ascending order.
    fn predict_proba(&self, x: &Tensor) -> Tensor;

    /// The logarithms of the probabilities.
    #[track_caller]
    fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.predict_proba(x).log()
    }
}

/// [`Predict`] of a model that has the method itself, and its `score` from there. Of models with `classes`,
/// methods that tell more of each class may follow.
macro_rules! predicts {
    (
        $fitted:ty, $task:ident, |$model:ident| $name:expr
        $(; $($method:ident as $told:ident),+)?
    ) => {
        impl $crate::base::Predict for $fitted {
            const TASK: $crate::base::Task = $crate::base::Task::$task;

            fn name(&self) -> &'static str {
                let $model = self;
                $name
            }

            #[track_caller]
            fn predict(&self, x: &tharsis_numeric::Tensor) -> tharsis_numeric::Tensor {
                <$fitted>::predict(self, x)
            }

            $(fn class_labels(&self) -> Option<&[i64]> {
                Some(&self.classes)
            }

            $(#[track_caller]
            fn $told(&self, x: &tharsis_numeric::Tensor) -> Option<$crate::base::ByClass<'_>> {
                Some((&self.classes, <$fitted>::$method(self, x)))
            })+)?
        }
    };
    ($fitted:ty, $task:ident, $name:expr $(; $($told:tt)+)?) => {
        $crate::base::predicts!($fitted, $task, |_model| $name $(; $($told)+)?);
    };
}
pub(crate) use predicts;

/// [`Predict`] and [`PredictProba`] of a classifier that has `predict` and `predict_proba` itself, and
/// further methods that are told: its logarithms of probabilities, and behind a semicolon its decisions.
macro_rules! classifies {
    ($fitted:ty, $name:expr $(, $further:ident)? $(; $decision:ident)?) => {
        $crate::base::predicts!(
            $fitted, Classification, $name; predict_proba as probabilities $(, $decision as decisions)?
        );

        impl $crate::base::PredictProba for $fitted {
            fn classes(&self) -> &[i64] {
                &self.classes
            }

            #[track_caller]
            fn predict_proba(&self, x: &tharsis_numeric::Tensor) -> tharsis_numeric::Tensor {
                <$fitted>::predict_proba(self, x)
            }

            $(#[track_caller]
            fn $further(&self, x: &tharsis_numeric::Tensor) -> tharsis_numeric::Tensor {
                <$fitted>::$further(self, x)
            })?
        }
    };
}
pub(crate) use classifies;
