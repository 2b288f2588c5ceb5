//! Models one after the other, each for the samples that those before have wrong.

use super::importances::tree_importances;
use crate::base::{Estimator, FitOptions, Predict, classifies, predicts};
use crate::bounds::{check_count, check_positive};
use crate::checks::{Nan, Training, finite, refused};
use crate::dense::tensor;
use crate::held::{
    AnyClassifier, AnyEstimator, AnyRegressor, Classifies, FittedAny, Importances, Regresses, Tells, holds,
};
use crate::labels::{Classes, class_tensor};
use crate::params::{Params, words};
use crate::saved::{Save, saved};
use crate::states::lost;
use crate::tree::{DecisionTreeClassifier, DecisionTreeRegressor};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::random::default_rng_words;
use tharsis_numeric::{DType, Index, Result, Tensor, full, where_};

const CLASSIFIER: &str = "AdaBoostClassifier";
const REGRESSOR: &str = "AdaBoostRegressor";

/// scikit-learn's `AdaBoostClassifier` (SAMME): each classifier is fitted to weights that are larger where
/// those before it were wrong, and has a vote by its own error.
///
/// The weights of the samples are kept in the store, 17 bytes for each sample with those of the next round;
/// if those are more than can be stored, each round makes the ones before it again.
///
/// ```
/// use tharsis_learn::datasets::load_breast_cancer;
/// use tharsis_learn::ensemble::AdaBoostClassifier;
/// let data = load_breast_cancer()?;
/// let model = AdaBoostClassifier::new().n_estimators(5).fit(&data.data, &data.target, ..)?;
/// assert!(0.9 < model.score(&data.data, &data.target, ..)?);
/// assert_eq!(model.estimator_errors.len(), 5);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct AdaBoostClassifier {
    boosting: Boosting<Classifies>,
}

/// scikit-learn's `AdaBoostRegressor` (AdaBoost.R2): each regressor is fitted to samples that are drawn more
/// often where those before it were wrong, and the median of all, by their errors, is the prediction.
///
/// The drawn samples of one regressor at a time are kept in the store.
///
/// ```
/// use tharsis_learn::datasets::load_diabetes;
/// use tharsis_learn::ensemble::AdaBoostRegressor;
/// let data = load_diabetes()?;
/// let model = AdaBoostRegressor::new().n_estimators(5).fit(&data.data, &data.target, ..)?;
/// assert!(0.4 < model.score(&data.data, &data.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct AdaBoostRegressor {
    boosting: Boosting<Regresses>,
    loss: AdaBoostLoss,
}

/// The loss of an [`AdaBoostRegressor`], of errors in parts of the largest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdaBoostLoss {
    /// The error.
    #[default]
    Linear,
    /// Its square.
    Square,
    /// One less its exponential.
    Exponential,
}

words!(
    AdaBoostLoss,
    [
        "linear" => AdaBoostLoss::Linear, "square" => AdaBoostLoss::Square,
        "exponential" => AdaBoostLoss::Exponential
    ]
);

/// The part that both have.
#[derive(Clone, Debug)]
struct Boosting<T> {
    estimator: AnyEstimator<T>,
    n_estimators: usize,
    learning_rate: f64,
    random_state: u64,
}

/// A fitted [`AdaBoostClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedAdaBoostClassifier {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `estimators_`: models of positions among the classes.
    pub estimators: Vec<FittedAny<Classifies>>,
    /// scikit-learn's `estimator_weights_`, as many as there may be; 0 behind the last model.
    pub estimator_weights: Vec<f64>,
    /// scikit-learn's `estimator_errors_`, as many as there may be; 1 behind the last model.
    pub estimator_errors: Vec<f64>,
}

/// A fitted [`AdaBoostRegressor`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedAdaBoostRegressor {
    /// scikit-learn's `estimators_`.
    pub estimators: Vec<FittedAny<Regresses>>,
    /// scikit-learn's `estimator_weights_`, as many as there may be; 0 behind the last model.
    pub estimator_weights: Vec<f64>,
    /// scikit-learn's `estimator_errors_`, as many as there may be; 1 behind the last model.
    pub estimator_errors: Vec<f64>,
}

/// The models so far, and the weights of the samples.
struct Rounds<'a, T> {
    training: &'a Training,
    /// Weights of samples whose sum is one; (n,).
    weight: Tensor,
    /// Whether a sample has a weight; none if all have.
    counts: Option<Tensor>,
    models: Vec<FittedAny<T>>,
    weights: Vec<f64>,
    errors: Vec<f64>,
}

impl<'a, T> Rounds<'a, T> {
    #[track_caller]
    fn new(training: &'a Training, most: usize) -> Result<Rounds<'a, T>> {
        let sum = training.weight_sum()?;
        let weight = match &training.weight {
            Some(weight) => training.engine.kept(&(weight / sum))?,
            None => full(&[training.rows], 1.0 / sum, DType::F64),
        };
        let counts = training.weight.as_ref().map(|weight| weight.greater(0.0));
        let (models, weights, errors) = (Vec::new(), vec![0.0; most], vec![1.0; most]);
        Ok(Rounds { training, weight, counts, models, weights, errors })
    }

    /// Weights that are not too small for a next round.
    fn clipped(&self) -> Tensor {
        let weight = self.weight.maximum(f64::EPSILON);
        match &self.counts {
            Some(counts) => where_(counts, weight, 0.0),
            None => weight,
        }
    }

    /// Adds a model with its vote and its error.
    fn add(&mut self, model: FittedAny<T>, weight: f64, error: f64) {
        let at = self.models.len();
        self.models.push(model);
        if let (Some(own_weight), Some(own_error)) = (self.weights.get_mut(at), self.errors.get_mut(at)) {
            (*own_weight, *own_error) = (weight, error);
        }
    }

    /// Bytes that a round holds: numbers and bytes for each sample.
    fn bytes(&self, numbers: usize, bytes: usize) -> u64 {
        (self.training.rows as u64).saturating_mul((numbers * size_of::<f64>() + bytes) as u64)
    }

    /// Takes new weights; none if their sum is no number to divide by.
    #[track_caller]
    fn reweigh(&mut self, weight: &Tensor) -> Result<Option<()>> {
        let sum = self.training.engine.run(&[&weight.sum(..)])?.pop().ok_or_else(lost)?.sum();
        if !sum.is_finite() || sum <= 0.0 {
            return Ok(None);
        }
        // The weights before it and these.
        self.weight = self.training.engine.held(&(weight / sum), self.bytes(2, 0))?;
        Ok(Some(()))
    }
}

impl AdaBoostClassifier {
    /// Fifty stumps: decision trees with one split.
    pub fn new() -> AdaBoostClassifier {
        AdaBoostClassifier::default()
    }

    /// One classifier more; none if there are to be no others.
    #[track_caller]
    fn round(
        &self,
        rounds: &mut Rounds<'_, Classifies>,
        (labels, classes): (&Tensor, usize),
        at: usize,
    ) -> Result<Option<()>> {
        let Boosting { estimator, n_estimators, learning_rate, random_state } = &self.boosting;
        let weight = rounds.clipped();
        let training = rounds.training;
        let options = training.options().sample_weight(&weight);
        let estimator = estimator.seeded(random_state.wrapping_add(at as u64))?;
        let model = estimator.fit_any(&training.x, Some(labels), &options)?;
        // A byte for each sample, beside the weights before it and those behind it.
        let is_wrong = model.predict(&training.x).not_equal(labels);
        let is_wrong = training.engine.held(&is_wrong, rounds.bytes(2, 1))?.astype(DType::F64);
        let sums = training.engine.run(&[&(&is_wrong * &weight).sum(..), &weight.sum(..)])?;
        let [wrong, all] = <[_; 2]>::try_from(sums).map_err(|_| lost())?;
        let error = wrong.sum() / all.sum();
        if error <= 0.0 {
            rounds.add(model, 1.0, 0.0);
            return Ok(None);
        }
        if 1.0 - 1.0 / classes as f64 <= error {
            if rounds.models.is_empty() {
                return Err(refused(
                    "BaseClassifier in AdaBoostClassifier ensemble is worse than random, ensemble can not be fit.",
                ));
            }
            return Ok(None);
        }
        let vote = learning_rate * (((1.0 - error) / error).ln() + (classes as f64 - 1.0).ln());
        rounds.add(model, vote, error);
        if at + 1 == *n_estimators {
            return Ok(None);
        }
        rounds.reweigh(&(weight * (is_wrong * vote).exp()))
    }
}

impl AdaBoostRegressor {
    /// Fifty decision trees of depth 3.
    pub fn new() -> AdaBoostRegressor {
        AdaBoostRegressor::default()
    }

    /// scikit-learn's `loss`: how much an error weighs.
    pub fn loss(self, loss: AdaBoostLoss) -> AdaBoostRegressor {
        AdaBoostRegressor { loss, ..self }
    }

    /// One regressor more; none if there are to be no others.
    #[track_caller]
    fn round(&self, rounds: &mut Rounds<'_, Regresses>, y: &Tensor, at: usize) -> Result<Option<()>> {
        let Boosting { estimator, n_estimators, learning_rate, random_state } = &self.boosting;
        let weight = rounds.clipped();
        let training = rounds.training;
        let estimator = estimator.seeded(random_state.wrapping_add(at as u64))?;
        let model = estimator.fit_any(
            &drawn(training, &training.x, &weight, (*random_state, at))?,
            Some(&drawn(training, y, &weight, (*random_state, at))?),
            &training.options(),
        )?;
        let apart = training.engine.held(&(model.predict(&training.x) - y).abs(), rounds.bytes(3, 0))?;
        let counted = match &rounds.counts {
            Some(counts) => where_(counts, &apart, 0.0),
            None => apart,
        };
        let largest = training.engine.run(&[&counted.max(..)])?.pop().ok_or_else(lost)?.sum();
        let part = if largest == 0.0 { counted } else { counted / largest };
        let part = match self.loss {
            AdaBoostLoss::Linear => part,
            AdaBoostLoss::Square => part.square(),
            AdaBoostLoss::Exponential => 1.0 - (-part).exp(),
        };
        let error = training.engine.run(&[&(&part * &weight).sum(..)])?.pop().ok_or_else(lost)?.sum();
        if !error.is_finite() {
            return Err(training.not_finite(Nan::Refused));
        }
        if error <= 0.0 {
            rounds.add(model, 1.0, 0.0);
            return Ok(None);
        }
        if 0.5 <= error {
            // The only model stays, with the weight of none, as in scikit-learn.
            if rounds.models.is_empty() {
                rounds.add(model, 0.0, 1.0);
            }
            return Ok(None);
        }
        let beta = error / (1.0 - error);
        rounds.add(model, learning_rate * (1.0 / beta).ln(), error);
        if at + 1 == *n_estimators {
            return Ok(None);
        }
        rounds.reweigh(&(weight * (((1.0 - part) * *learning_rate) * beta.ln()).exp()))
    }
}

/// The importances of a model of trees; (d,).
fn importances<T: Tells>(model: &FittedAny<T>) -> Option<Array1<f64>> {
    match model.held().importances() {
        Some(Importances::Trees(importances)) => Some(importances.into_iter().collect()),
        Some(Importances::Coefficients(_)) => None,
        None => tree_importances(model.held().as_any()),
    }
}

/// As many samples, or targets, as there are, drawn with chances by weights; kept in the store.
#[track_caller]
fn drawn(training: &Training, of: &Tensor, weight: &Tensor, (seed, round): (u64, usize)) -> Result<Tensor> {
    let shares = default_rng_words(&[seed, round as u64]).random(&[training.rows]).sort(0);
    let passed = weight.cumsum(0);
    let last = passed.get(&[Index::from(-1i64)]);
    let places = passed.searchsorted(&(shares * last)).minimum(training.rows as i64 - 1);
    training.engine.stored(&of.take_at(&places, 0))
}

/// The methods of both estimators and of their models.
macro_rules! boosts {
    ($boosting:ident, $any:ty, $fitted:ident, $name:expr, [$($param:literal => $field:ident),*]) => {
        impl $boosting {
            /// scikit-learn's `estimator`: the estimator of each round.
            pub fn estimator<E>(self, estimator: E) -> $boosting
            where
                E: Estimator + Params + Clone + Send + Sync + 'static,
                E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
            {
                self.any(<$any>::new(estimator))
            }

            /// As `estimator`, of a type that is not told.
            pub fn any(mut self, estimator: $any) -> $boosting {
                self.boosting.estimator = estimator;
                self
            }

            /// scikit-learn's `n_estimators`: the most rounds; not zero.
            pub fn n_estimators(mut self, n_estimators: usize) -> $boosting {
                self.boosting.n_estimators = n_estimators;
                self
            }

            /// scikit-learn's `learning_rate`: the part of its vote that a model has; positive.
            pub fn learning_rate(mut self, learning_rate: f64) -> $boosting {
                self.boosting.learning_rate = learning_rate;
                self
            }

            /// scikit-learn's `random_state`: the seed of all draws; the numbers are not scikit-learn's.
            pub fn random_state(mut self, random_state: u64) -> $boosting {
                self.boosting.random_state = random_state;
                self
            }

            /// Fits the models on samples (n, d) and targets (n,), one after the other.
            ///
            /// # Errors
            /// `ValueError` for parameters out of their ranges, an estimator of another kind, and a
            /// classifier that takes no weights or is worse than chance; errors of the fits.
            #[track_caller]
            pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<$fitted> {
                self.fit_any(x, Some(y), &options.into())
            }

            /// Checks what needs no data.
            #[track_caller]
            fn check(&self) -> Result<()> {
                self.boosting.estimator.check()?;
                check_count($name, "n_estimators", self.boosting.n_estimators, 1)?;
                check_positive($name, "learning_rate", self.boosting.learning_rate)
            }
        }

        holds!(
            $boosting,
            $name,
            "estimator" => boosting.estimator,
            [
                "n_estimators" => boosting.n_estimators >= 1, "learning_rate" => boosting.learning_rate,
                $($param => $field,)* "random_state" => boosting.random_state
            ]
        );

        impl $fitted {
            /// The score on samples (n, d) and their targets: the share of right labels, or R².
            ///
            /// # Errors
            /// `ValueError` for shapes that do not fit; errors of the pass.
            #[track_caller]
            pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
                self.score_any(x, y, &options.into())
            }

            /// scikit-learn's `feature_importances_`: the mean of those of the models, by their votes; none
            /// if they have none. (d,).
            pub fn feature_importances(&self) -> Option<Array1<f64>> {
                let mut sum: Option<Array1<f64>> = None;
                for (model, weight) in self.estimators.iter().zip(&self.estimator_weights) {
                    let part = importances(model)? * *weight;
                    sum = Some(match sum {
                        Some(sum) if sum.len() == part.len() => sum + part,
                        Some(_) => return None,
                        None => part,
                    });
                }
                Some(sum? / self.estimator_weights.iter().sum::<f64>())
            }
        }

        impl fmt::Display for $fitted {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} of {} estimators", $name, self.estimators.len())?;
                crate::show::line(f, "estimator_weights", &self.estimator_weights)?;
                crate::show::line(f, "estimator_errors", &self.estimator_errors)
            }
        }
    };
}

boosts!(AdaBoostClassifier, AnyClassifier, FittedAdaBoostClassifier, CLASSIFIER, []);
boosts!(AdaBoostRegressor, AnyRegressor, FittedAdaBoostRegressor, REGRESSOR, ["loss" => loss]);

impl Default for AdaBoostClassifier {
    fn default() -> AdaBoostClassifier {
        let estimator = AnyClassifier::new(DecisionTreeClassifier::new().max_depth(1));
        AdaBoostClassifier {
            boosting: Boosting { estimator, n_estimators: 50, learning_rate: 1.0, random_state: 0 },
        }
    }
}

impl Default for AdaBoostRegressor {
    fn default() -> AdaBoostRegressor {
        let estimator = AnyRegressor::new(DecisionTreeRegressor::new().max_depth(3));
        AdaBoostRegressor {
            boosting: Boosting { estimator, n_estimators: 50, learning_rate: 1.0, random_state: 0 },
            loss: AdaBoostLoss::Linear,
        }
    }
}

impl Estimator for AdaBoostClassifier {
    type Fitted = FittedAdaBoostClassifier;

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedAdaBoostClassifier> {
        self.check()?;
        let Boosting { estimator, .. } = &self.boosting;
        if !estimator.takes_weights() {
            return Err(refused(format!("{} doesn't support sample_weight.", estimator.name())));
        }
        let training = Training::supervised(CLASSIFIER, x, y, options)?;
        training.check_finite(Nan::Refused)?;
        let classes = Classes::of(&training)?;
        let labels = training.engine.kept(&classes.positions())?;
        let mut rounds = Rounds::new(&training, self.boosting.n_estimators)?;
        for at in 0..self.boosting.n_estimators {
            if self.round(&mut rounds, (&labels, classes.values.len()), at)?.is_none() {
                break;
            }
        }
        Ok(FittedAdaBoostClassifier {
            classes: classes.values,
            estimators: rounds.models,
            estimator_weights: rounds.weights,
            estimator_errors: rounds.errors,
        })
    }
}

impl Estimator for AdaBoostRegressor {
    type Fitted = FittedAdaBoostRegressor;

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedAdaBoostRegressor> {
        self.check()?;
        let training = Training::supervised(REGRESSOR, x, y, options)?;
        training.check_finite(Nan::Refused)?;
        training.check_finite_target()?;
        let target = training.one_target()?.squeeze(Some(&[1]));
        let mut rounds = Rounds::new(&training, self.boosting.n_estimators)?;
        for at in 0..self.boosting.n_estimators {
            if self.round(&mut rounds, &target, at)?.is_none() {
                break;
            }
        }
        Ok(FittedAdaBoostRegressor {
            estimators: rounds.models,
            estimator_weights: rounds.weights,
            estimator_errors: rounds.errors,
        })
    }
}

impl FittedAdaBoostClassifier {
    /// The labels of samples (n, d), as an expression; (n,), int64.
    ///
    /// # Errors
    /// Those that the predictions of the models carry; `ValueError` when run for NaN and infinity, which
    /// trees alone would take.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let decisions = self.decision_function(x);
        let chosen = match self.classes.len() {
            2 => decisions.greater(0.0).astype(DType::I64),
            _ => decisions.argmax(1),
        };
        class_tensor(&self.classes).take_at(&chosen, 0)
    }

    /// The mean votes for each class, less those for others, as an expression; (n,) for two classes, else
    /// (n, k).
    ///
    /// # Errors
    /// As [`predict`](FittedAdaBoostClassifier::predict).
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        let (count, x) = (self.classes.len(), finite(x, Nan::Refused));
        let positions = tharsis_numeric::arange(count);
        let votes = self.estimators.iter().zip(&self.estimator_weights).map(|(model, &weight)| {
            let is_told = model.predict(&x).expand_dims(1).equal(&positions);
            where_(&is_told, weight, if count < 2 { 0.0 } else { -weight / (count as f64 - 1.0) })
        });
        let all: f64 = self.estimator_weights.iter().sum();
        let sum = votes.reduce(|sum, votes| sum + votes).unwrap_or_else(|| Tensor::number(0.0)) / all;
        match count {
            1 => sum * 0.0,
            2 => sum.get(&[Index::from(..), Index::from(1)]) - sum.get(&[Index::from(..), Index::from(0)]),
            _ => sum,
        }
    }

    /// The probabilities of classes by the votes, (n, k), as an expression.
    ///
    /// # Errors
    /// As [`predict`](FittedAdaBoostClassifier::predict).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        let decisions = self.decision_function(x);
        let scores = match self.classes.len() {
            1 => return decisions + 1.0,
            2 => decisions.expand_dims(1) * tensor(&ndarray::arr1(&[-0.5, 0.5])),
            count => decisions / (count as f64 - 1.0),
        };
        (&scores - crate::labels::log_sum_exp(&scores)).exp()
    }
}

impl FittedAdaBoostClassifier {
    /// The logarithms of the probabilities.
    ///
    /// # Errors
    /// As [`predict`](FittedAdaBoostClassifier::predict).
    #[track_caller]
    pub fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.predict_proba(x).log()
    }
}

impl FittedAdaBoostRegressor {
    /// The median of what the models predict for samples (n, d), by their weights, as an expression; (n,).
    ///
    /// # Errors
    /// Those that the predictions of the models carry; `ValueError` when run for NaN and infinity, which
    /// trees alone would take.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let x = finite(x, Nan::Refused);
        let told: Vec<Tensor> =
            self.estimators.iter().map(|model| model.predict(&x).expand_dims(1)).collect();
        let told = tharsis_numeric::concatenate(&told.iter().collect::<Vec<_>>(), 1);
        let order = told.argsort(1);
        let count = self.estimators.len();
        let weights = self.estimator_weights.get(..count).unwrap_or_default();
        let passed = Tensor::from_elements(&[count], weights).take_at(&order, 0).cumsum(1);
        let half = passed.get(&[Index::from(..), Index::from(-1i64..)]) * 0.5;
        let median = passed.greater_equal(half).argmax(1).expand_dims(1);
        told.take_along_axis(&order.take_along_axis(&median, 1), 1).squeeze(Some(&[1]))
    }
}

classifies!(FittedAdaBoostClassifier, CLASSIFIER; decision_function);
predicts!(FittedAdaBoostRegressor, Regression, REGRESSOR);

/// Whether a model has some estimators, and numbers for all of them.
fn is_sound<T>(models: &[T], weights: &[f64], errors: &[f64]) -> bool {
    !models.is_empty() && models.len() <= weights.len() && weights.len() == errors.len()
}

saved!(FittedAdaBoostClassifier, CLASSIFIER, |model| {
    !model.classes.is_empty()
        && is_sound(&model.estimators, &model.estimator_weights, &model.estimator_errors)
});
saved!(FittedAdaBoostRegressor, REGRESSOR, |model| is_sound(
    &model.estimators,
    &model.estimator_weights,
    &model.estimator_errors
));
