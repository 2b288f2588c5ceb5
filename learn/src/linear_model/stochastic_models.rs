//! Linear models by steps for one sample after the other: classifiers and regressors.

use super::line::line_model;
use super::ridge_classifier::{are_scores_sound, show_scores, signs};
use super::stochastic::{LearningRate, Steps, StochasticLoss, StochasticPenalty, Walked};
use crate::base::{ByClass, Estimator, FitOptions, Predict, Task};
use crate::bounds::{check, check_count, check_not_negative, check_positive};
use crate::checks::{Training, refused};
use crate::dense::tensor;
use crate::labels::{Classes, chosen_label, linear_scores, log_chances};
use crate::params::{estimator, words};
use crate::saved::{EstimatorName, name_among, saved};
use ndarray::{Array1, Array2, ArrayD};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use tharsis_numeric::{Axes, Result, Tensor, concatenate, where_};

/// An estimator by steps, with the name of its model and of what makes it: its own parameters, and its steps
/// as far as these tell them. The others are those that all estimators by steps have.
macro_rules! steps {
    (
        $(#[$doc:meta])*
        $estimator:ident, $fitted:ident, $kind:ident { $($own:tt)* }
        |$of:ident| { $($field:ident: $value:expr),* $(,)? }
    ) => {
        estimator! {
            $(#[$doc])*
            $estimator {
                $($own)*
                /// scikit-learn's `fit_intercept`: whether scores need not be zero at zero.
                fit_intercept "fit_intercept": bool, bool = true;
                /// scikit-learn's `max_iter`: the most rounds over all samples.
                max_iter "max_iter" >= 1: usize, usize = 1000;
                /// scikit-learn's `tol`: the fall of the loss of a sample that counts; `None` for `max_iter`
                /// rounds.
                tol "tol": Option<f64>, impl Into<Option<f64>> = Some(1e-3);
                /// scikit-learn's `n_iter_no_change`: the rounds without a fall after which the steps end.
                n_iter_no_change "n_iter_no_change" >= 1: usize, usize = 5;
                /// scikit-learn's `shuffle`: whether each round has an order of its own, which is not
                /// scikit-learn's.
                shuffle "shuffle": bool, bool = true;
                /// scikit-learn's `random_state`: the seed of the orders.
                random_state "random_state": u64, u64 = 0;
            }
        }

        impl $estimator {
            /// Fits the model on samples (n, d), of real dtypes, and targets (n,). Samples that fit the
            /// memory are read once, others once for each round, and pass one after the other in this
            /// process.
            ///
            /// # Errors
            /// `ValueError` for parameters out of their ranges, one class, labels that are not whole, shapes
            /// that do not fit, no samples, no features, complex numbers, NaN, infinity, negative weights,
            /// and coefficients beyond float64; errors of the passes.
            #[track_caller]
            pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<$fitted> {
                self.fit_any(x, Some(y), &options.into())
            }
        }

        impl Estimator for $estimator {
            type Fitted = $fitted;

            #[track_caller]
            fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<$fitted> {
                let $of = self;
                let steps = Steps {
                    $($field: $value,)*
                    fit_intercept: $of.fit_intercept,
                    max_iter: $of.max_iter,
                    tol: $of.tol,
                    n_iter_no_change: $of.n_iter_no_change,
                    shuffle: $of.shuffle,
                    random_state: $of.random_state,
                };
                steps.$kind(stringify!($estimator), (x, y, options))
            }
        }
    };
}

steps! {
    /// scikit-learn's `SGDClassifier`: a linear classifier by steps for one sample after the other.
    ///
    /// ```
    /// use tharsis_learn::linear_model::SGDClassifier;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]);
    /// let model = SGDClassifier::new().fit(&x, &array([7i64, 7, 9, 9]), ..)?;
    /// assert_eq!(model.predict(&array([-3.0, 5.0]).reshape(&[2, 1])).to_vec::<i64>()?, [7, 9]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    SGDClassifier, FittedStochasticClassifier, classifier {
        /// scikit-learn's `loss`.
        loss "loss": StochasticLoss, StochasticLoss = StochasticLoss::Hinge;
        /// scikit-learn's `penalty`.
        penalty "penalty": Option<StochasticPenalty>, impl Into<Option<StochasticPenalty>> = Some(StochasticPenalty::L2);
        /// scikit-learn's `alpha`: the weight of the penalty, not negative.
        alpha "alpha": f64, f64 = 1e-4;
        /// scikit-learn's `l1_ratio`: the part of absolute values in the penalty `ElasticNet`.
        l1_ratio "l1_ratio": f64, f64 = 0.15;
        /// scikit-learn's `epsilon`: the distance that some losses forgive.
        epsilon "epsilon": f64, f64 = 0.1;
        /// scikit-learn's `learning_rate`: the length of steps.
        learning_rate "learning_rate": LearningRate, LearningRate = LearningRate::Optimal;
        /// scikit-learn's `eta0`: the first length, more than zero.
        eta0 "eta0": f64, f64 = 0.01;
        /// scikit-learn's `power_t`: the power of the number of steps in `InvScaling`.
        power_t "power_t": f64, f64 = 0.5;
    }
    |own| {
        loss: own.loss,
        penalty: own.penalty,
        alpha: own.alpha,
        l1_ratio: own.l1_ratio,
        epsilon: own.epsilon,
        rate: own.learning_rate,
        eta0: own.eta0,
        power_t: own.power_t,
    }
}

steps! {
    /// scikit-learn's `SGDRegressor`: a line by steps for one sample after the other.
    ///
    /// ```
    /// use tharsis_learn::linear_model::SGDRegressor;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]);
    /// let model = SGDRegressor::new().tol(1e-6).fit(&x, &array([-4.0, -2.0, 2.0, 4.0]), ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 0.05);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    SGDRegressor, FittedStochasticRegressor, regressor {
        /// scikit-learn's `loss`.
        loss "loss": StochasticLoss, StochasticLoss = StochasticLoss::SquaredError;
        /// As [`SGDClassifier::penalty`].
        penalty "penalty": Option<StochasticPenalty>, impl Into<Option<StochasticPenalty>> = Some(StochasticPenalty::L2);
        /// As [`SGDClassifier::alpha`].
        alpha "alpha": f64, f64 = 1e-4;
        /// As [`SGDClassifier::l1_ratio`].
        l1_ratio "l1_ratio": f64, f64 = 0.15;
        /// As [`SGDClassifier::epsilon`].
        epsilon "epsilon": f64, f64 = 0.1;
        /// As [`SGDClassifier::learning_rate`].
        learning_rate "learning_rate": LearningRate, LearningRate = LearningRate::InvScaling;
        /// As [`SGDClassifier::eta0`].
        eta0 "eta0": f64, f64 = 0.01;
        /// As [`SGDClassifier::power_t`].
        power_t "power_t": f64, f64 = 0.25;
    }
    |own| {
        loss: own.loss,
        penalty: own.penalty,
        alpha: own.alpha,
        l1_ratio: own.l1_ratio,
        epsilon: own.epsilon,
        rate: own.learning_rate,
        eta0: own.eta0,
        power_t: own.power_t,
    }
}

steps! {
    /// scikit-learn's `Perceptron`: steps of one length for the samples that are on the wrong side.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Perceptron;
    /// use tharsis_numeric::array;
    /// let (x, y) = (array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]), array([0i64, 0, 1, 1]));
    /// assert_eq!(Perceptron::new().fit(&x, &y, ..)?.score(&x, &y, ..)?, 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    Perceptron, FittedStochasticClassifier, classifier {
        /// As [`SGDClassifier::penalty`]; none by default.
        penalty "penalty": Option<StochasticPenalty>, impl Into<Option<StochasticPenalty>> = None;
        /// As [`SGDClassifier::alpha`].
        alpha "alpha": f64, f64 = 1e-4;
        /// As [`SGDClassifier::l1_ratio`].
        l1_ratio "l1_ratio": f64, f64 = 0.15;
        /// scikit-learn's `eta0`: the length of steps, more than zero.
        eta0 "eta0": f64, f64 = 1.0;
    }
    |own| {
        loss: StochasticLoss::Perceptron,
        penalty: own.penalty,
        alpha: own.alpha,
        l1_ratio: own.l1_ratio,
        epsilon: 0.0,
        rate: LearningRate::Constant,
        eta0: own.eta0,
        power_t: 0.0,
    }
}

/// The losses of passive-aggressive classifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassiveLoss {
    /// Steps are at most `c`.
    Hinge,
    /// Steps are shortened by `c`.
    SquaredHinge,
}

words!(PassiveLoss, ["hinge" => PassiveLoss::Hinge, "squared_hinge" => PassiveLoss::SquaredHinge]);

/// The losses of passive-aggressive regressors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassiveDistance {
    /// Steps are at most `c`.
    EpsilonInsensitive,
    /// Steps are shortened by `c`.
    SquaredEpsilonInsensitive,
}

words!(
    PassiveDistance,
    [
        "epsilon_insensitive" => PassiveDistance::EpsilonInsensitive,
        "squared_epsilon_insensitive" => PassiveDistance::SquaredEpsilonInsensitive,
    ]
);

steps! {
    /// scikit-learn's `PassiveAggressiveClassifier`: each step is as long as its sample needs to be right.
    ///
    /// ```
    /// use tharsis_learn::linear_model::PassiveAggressiveClassifier;
    /// use tharsis_numeric::array;
    /// let (x, y) = (array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]), array([0i64, 0, 1, 1]));
    /// assert_eq!(PassiveAggressiveClassifier::new().fit(&x, &y, ..)?.score(&x, &y, ..)?, 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    PassiveAggressiveClassifier, FittedStochasticClassifier, classifier {
        /// scikit-learn's `C`: the longest step, more than zero.
        c "C": f64, f64 = 1.0;
        /// scikit-learn's `loss`.
        loss "loss": PassiveLoss, PassiveLoss = PassiveLoss::Hinge;
    }
    |own| {
        loss: StochasticLoss::Hinge,
        penalty: None,
        alpha: 1.0,
        l1_ratio: 0.0,
        epsilon: 0.0,
        rate: if own.loss == PassiveLoss::Hinge { LearningRate::Pa1 } else { LearningRate::Pa2 },
        eta0: own.c,
        power_t: 0.0,
    }
}

steps! {
    /// scikit-learn's `PassiveAggressiveRegressor`: each step is as long as its sample needs to be near.
    ///
    /// ```
    /// use tharsis_learn::linear_model::PassiveAggressiveRegressor;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]);
    /// let model = PassiveAggressiveRegressor::new().fit(&x, &array([-4.0, -2.0, 2.0, 4.0]), ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 0.2);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    PassiveAggressiveRegressor, FittedStochasticRegressor, regressor {
        /// scikit-learn's `C`: the longest step, more than zero.
        c "C": f64, f64 = 1.0;
        /// scikit-learn's `loss`.
        loss "loss": PassiveDistance, PassiveDistance = PassiveDistance::EpsilonInsensitive;
        /// scikit-learn's `epsilon`: the distance that is forgiven, not negative.
        epsilon "epsilon": f64, f64 = 0.1;
    }
    |own| {
        loss: StochasticLoss::EpsilonInsensitive,
        penalty: None,
        alpha: 1.0,
        l1_ratio: 0.0,
        epsilon: own.epsilon,
        rate: match own.loss {
            PassiveDistance::EpsilonInsensitive => LearningRate::Pa1,
            PassiveDistance::SquaredEpsilonInsensitive => LearningRate::Pa2,
        },
        eta0: own.c,
        power_t: 0.0,
    }
}

/// A fitted [`SGDClassifier`], [`Perceptron`] or [`PassiveAggressiveClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedStochasticClassifier {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `coef_`; (1, d) for two classes, else (k, d).
    pub coef: Array2<f64>,
    /// scikit-learn's `intercept_`; (1,) for two classes, else (k,).
    pub intercept: Array1<f64>,
    /// scikit-learn's `n_iter_`: the rounds over all samples.
    pub n_iter: usize,
    /// scikit-learn's `t_`: one more than the number of samples of all rounds.
    pub t: f64,
    /// Whether the loss no longer fell at the end.
    pub converged: bool,
    loss: StochasticLoss,
    #[serde(deserialize_with = "classifier_name")]
    name: EstimatorName,
}

/// A fitted [`SGDRegressor`] or [`PassiveAggressiveRegressor`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedStochasticRegressor {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`, there (1,); ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `n_iter_`: the rounds over all samples.
    pub n_iter: usize,
    /// scikit-learn's `t_`: one more than the number of samples of all rounds.
    pub t: f64,
    /// Whether the loss no longer fell at the end.
    pub converged: bool,
    #[serde(deserialize_with = "regressor_name")]
    name: EstimatorName,
}

const CLASSIFIERS: &[&str] = &["SGDClassifier", "Perceptron", "PassiveAggressiveClassifier"];
const REGRESSORS: &[&str] = &["SGDRegressor", "PassiveAggressiveRegressor"];

fn classifier_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<&'static str, D::Error> {
    name_among(deserializer, CLASSIFIERS)
}

fn regressor_name<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<&'static str, D::Error> {
    name_among(deserializer, REGRESSORS)
}

impl Steps {
    /// Checks the ranges of parameters.
    #[track_caller]
    fn check(&self, name: &str) -> Result<()> {
        check_not_negative(name, "alpha", self.alpha)?;
        let is_part = (0.0..=1.0).contains(&self.l1_ratio);
        check(name, "l1_ratio", is_part, "a float in the range [0.0, 1.0] or None", self.l1_ratio)?;
        check_count(name, "max_iter", self.max_iter, 1)?;
        check_count(name, "n_iter_no_change", self.n_iter_no_change, 1)?;
        let tol = self.tol.unwrap_or(0.0);
        let is_sound = 0.0 <= tol && tol.is_finite();
        check(name, "tol", is_sound, "a float in the range [0.0, inf) or None", tol)?;
        check_not_negative(name, "epsilon", self.epsilon)?;
        let parameter = if name.starts_with("Passive") { "C" } else { "eta0" };
        check_positive(name, parameter, self.eta0)?;
        check(name, "power_t", self.power_t.is_finite(), "a float in the range (-inf, inf)", self.power_t)?;
        if self.rate == LearningRate::Optimal && self.alpha == 0.0 {
            return Err(refused(
                "alpha must be > 0 since learning_rate is 'optimal'. alpha is used to compute the optimal learning \
                 rate.",
            ));
        }
        let wanted = match (self.rate, self.loss) {
            (
                LearningRate::Pa1 | LearningRate::Pa2,
                StochasticLoss::Hinge | StochasticLoss::EpsilonInsensitive,
            ) => {
                return Ok(());
            }
            (LearningRate::Pa1, _) => "pa1",
            (LearningRate::Pa2, _) => "pa2",
            _ => return Ok(()),
        };
        let loss = if name == "SGDRegressor" { "epsilon_insensitive" } else { "hinge" };
        Err(refused(format!("Learning rate '{wanted}' only works with loss '{loss}'.")))
    }

    /// A classifier of these steps.
    #[track_caller]
    fn classifier(
        self,
        name: &'static str,
        (x, y, options): (&Tensor, Option<&Tensor>, &FitOptions),
    ) -> Result<FittedStochasticClassifier> {
        self.check(name)?;
        let training = Training::supervised(name, x, y, options)?;
        let classes = Classes::of(&training)?;
        if classes.values.len() < 2 {
            return Err(refused("The number of classes has to be greater than one; got 1 class"));
        }
        let Walked { coef, intercept, rounds, converged } = self.walked(&training, &signs(&classes))?;
        let t = 1.0 + rounds as f64 * training.rows as f64;
        let (classes, loss) = (classes.values, self.loss);
        Ok(FittedStochasticClassifier { classes, coef, intercept, n_iter: rounds, t, converged, loss, name })
    }

    /// A regressor of these steps.
    #[track_caller]
    fn regressor(
        self,
        name: &'static str,
        (x, y, options): (&Tensor, Option<&Tensor>, &FitOptions),
    ) -> Result<FittedStochasticRegressor> {
        use StochasticLoss::{EpsilonInsensitive, Huber, SquaredEpsilonInsensitive, SquaredError};
        self.check(name)?;
        let is_distance =
            matches!(self.loss, SquaredError | Huber | EpsilonInsensitive | SquaredEpsilonInsensitive);
        let wanted =
            "a str among {'squared_error', 'huber', 'epsilon_insensitive', 'squared_epsilon_insensitive'}";
        check(name, "loss", is_distance, wanted, format!("{:?}", self.loss))?;
        let training = Training::supervised(name, x, y, options)?;
        let Walked { coef, intercept, rounds, converged } =
            self.walked(&training, &training.one_target()?)?;
        let t = 1.0 + rounds as f64 * training.rows as f64;
        let (coef, intercept) = (coef.row(0).to_owned().into_dyn(), ndarray::arr0(intercept[0]).into_dyn());
        Ok(FittedStochasticRegressor { coef, intercept, n_iter: rounds, t, converged, name })
    }
}

impl FittedStochasticClassifier {
    /// scikit-learn's `decision_function`: the scores of samples (n, d), as an expression; (n,) for two
    /// classes, else (n, k). Carries a `ValueError` for another number of features.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        linear_scores(self.name, x, &self.coef, &self.intercept)
    }

    /// The labels of samples (n, d), as an expression; (n,), int64. Carries a `ValueError` for another number
    /// of features; when run for NaN.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        chosen_label(&self.decision_function(x), &self.classes)
    }

    /// The probability of each class for samples (n, d), as an expression; (n, k). Of more than two classes
    /// each is told from all others, and the chances are made to sum to 1. Carries a `ValueError` for losses
    /// other than `LogLoss` and `ModifiedHuber`, and for another number of features.
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        let scores = self.decision_function(x);
        let two = self.classes.len() == 2;
        let chances = match self.loss {
            StochasticLoss::LogLoss if two => return log_chances(&scores, &self.classes).exp(),
            StochasticLoss::LogLoss => ((&scores * 0.5).tanh() + 1.0) * 0.5,
            StochasticLoss::ModifiedHuber => (scores.maximum(-1.0).minimum(1.0) + 1.0) * 0.5,
            other => {
                let text = format!("probability estimates are not available for loss={other:?}");
                return Tensor::from(refused(text));
            }
        };
        if two {
            let chances = chances.expand_dims(1);
            return concatenate(&[&(1.0 - &chances), &chances], 1);
        }
        let all = chances.sum(Axes::from(1).keepdims());
        let equal = tensor(&Array1::from_elem(self.classes.len(), 1.0 / self.classes.len() as f64));
        where_(&all.equal(0.0), equal, chances / &all)
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

saved!(FittedStochasticClassifier, "StochasticClassifier", |model| {
    2 <= model.classes.len() && are_scores_sound(&model.classes, &model.coef, &model.intercept)
});

impl Predict for FittedStochasticClassifier {
    const TASK: Task = Task::Classification;

    fn name(&self) -> &'static str {
        self.name
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedStochasticClassifier::predict(self, x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        Some(&self.classes)
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        let has_chances = matches!(self.loss, StochasticLoss::LogLoss | StochasticLoss::ModifiedHuber);
        has_chances.then(|| (&self.classes[..], self.predict_proba(x)))
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.classes, self.decision_function(x)))
    }
}

impl fmt::Display for FittedStochasticClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_scores(f, self.name, &self.classes, (&self.coef, &self.intercept))
    }
}

line_model!(FittedStochasticRegressor, "StochasticRegressor", |model| model.name, |model| model.coef.ndim()
    == 1);
