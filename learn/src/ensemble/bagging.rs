//! One estimator on many draws of samples and features.

use super::drawn::Drawn;
use crate::base::{ByClass, Estimator, FitOptions, Predict, Task, predicts};
use crate::bounds::check_count;
use crate::checks::{Training, refused, unchecked_for};
use crate::dense::positions;
use crate::held::{
    AnyClassifier, AnyEstimator, AnyRegressor, Classifies, FittedAny, Regresses, Tells, holds,
};
use crate::labels::{Classes, class_tensor, spread};
use crate::model_selection::Share;
use crate::params::Params;
use crate::saved::{Save, saved};
use crate::score::{accuracy, r2};
use crate::states::lost;
use crate::tree::{DecisionTreeClassifier, DecisionTreeRegressor};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::random::{Generator, default_rng_words};
use tharsis_numeric::{DType, Index, Result, Tensor, arange};

/// Draws of samples until there is one.
const DRAWS_MAX: u64 = 64;

/// The part that a [`BaggingClassifier`] and a [`BaggingRegressor`] have alike.
#[derive(Clone, Debug)]
struct Bagging<T> {
    estimator: AnyEstimator<T>,
    n_estimators: usize,
    max_samples: Option<Share>,
    max_features: Share,
    bootstrap: bool,
    bootstrap_features: bool,
    oob_score: bool,
    random_state: u64,
}

/// scikit-learn's `BaggingClassifier`: models of one classifier, each of samples and features that are drawn,
/// and their mean probabilities.
///
/// A sample is drawn as often as a Poisson number of mean `max_samples` says. It is a weight of the fit, so
/// that no samples are copied; for classifiers that take no weights the drawn samples are stored.
///
/// ```
/// use tharsis_learn::datasets::load_iris;
/// use tharsis_learn::ensemble::BaggingClassifier;
/// let iris = load_iris()?;
/// let model = BaggingClassifier::new().oob_score(true).fit(&iris.data, &iris.target, ..)?;
/// assert!(0.9 < model.score(&iris.data, &iris.target, ..)?);
/// assert!(model.oob_score().is_some_and(|score| 0.85 < score));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct BaggingClassifier {
    bagging: Bagging<Classifies>,
}

/// scikit-learn's `BaggingRegressor`: as [`BaggingClassifier`], with mean
/// predictions.
///
/// ```
/// use tharsis_learn::datasets::load_diabetes;
/// use tharsis_learn::ensemble::BaggingRegressor;
/// let data = load_diabetes()?;
/// let model = BaggingRegressor::new().fit(&data.data, &data.target, ..)?;
/// assert!(0.7 < model.score(&data.data, &data.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct BaggingRegressor {
    bagging: Bagging<Regresses>,
}

/// The models of draws.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
struct Bag<T: Tells> {
    models: Vec<(Vec<usize>, FittedAny<T>)>,
    columns: usize,
    oob_score: Option<f64>,
}

/// A fitted [`BaggingClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedBaggingClassifier {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    bag: Bag<Classifies>,
}

/// A fitted [`BaggingRegressor`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedBaggingRegressor {
    bag: Bag<Regresses>,
}

const CLASSIFIER: &str = "BaggingClassifier";
const REGRESSOR: &str = "BaggingRegressor";

impl<T: Tells> Bagging<T> {
    fn new(estimator: AnyEstimator<T>) -> Bagging<T> {
        Bagging {
            estimator,
            n_estimators: 10,
            max_samples: None,
            max_features: Share::Fraction(1.0),
            bootstrap: true,
            bootstrap_features: false,
            oob_score: false,
            random_state: 0,
        }
    }

    /// Checks what needs no data.
    #[track_caller]
    fn check(&self, name: &'static str) -> Result<()> {
        self.estimator.check()?;
        check_count(name, "n_estimators", self.n_estimators, 1)?;
        if !self.bootstrap && self.oob_score {
            return Err(refused("Out of bag estimation only available if bootstrap=True"));
        }
        let shares = [("max_samples", self.max_samples), ("max_features", Some(self.max_features))];
        for (param, share) in shares {
            let (is_sound, found) = match share {
                Some(Share::Count(count)) => (0 < count, count.to_string()),
                Some(Share::Fraction(part)) => (0.0 < part && part <= 1.0, part.to_string()),
                None => continue,
            };
            let or_none = if param == "max_samples" { "None, " } else { "" };
            let wanted = format!("{or_none}an int in the range [1, inf) or a float in the range (0.0, 1.0]");
            crate::bounds::check(name, param, is_sound, &wanted, found)?;
        }
        Ok(())
    }

    /// The models of all draws.
    #[track_caller]
    fn fitted(&self, training: &Training, y: &Tensor) -> Result<(Bag<T>, Vec<Tensor>)> {
        let (rows, columns) = (training.rows, training.columns);
        let samples = match self.max_samples {
            None => rows,
            Some(Share::Count(count)) => count,
            Some(Share::Fraction(part)) => ((part * rows as f64) as usize).max(1),
        };
        if !self.bootstrap && rows < samples {
            return Err(refused(format!(
                "Effective max_samples={samples} must be <= n_samples={rows} to be able to sample without \
                 replacement."
            )));
        }
        let features = match self.max_features {
            Share::Count(count) => count,
            Share::Fraction(part) => ((part * columns as f64) as usize).max(1),
        };
        if columns < features {
            return Err(refused("max_features must be <= n_features"));
        }
        let takes_weights = self.estimator.takes_weights();
        let (mut models, mut draws) = (Vec::new(), Vec::new());
        for at in 0..self.n_estimators as u64 {
            let generator = default_rng_words(&[self.random_state, at]);
            let chosen = self.features(training, &generator, features)?;
            let counts = self.counts(training, &generator, samples)?;
            let x = selected(&training.x, &chosen, columns);
            let estimator = self.estimator.seeded(self.random_state.wrapping_add(at + 1))?;
            let drawn = Drawn { training, x: &x, y, counts: counts.as_ref() };
            let model = if takes_weights { drawn.weighted(&estimator) } else { drawn.rows(&estimator) }?;
            models.push((chosen, model));
            draws.extend(counts.filter(|_| self.oob_score));
        }
        Ok((Bag { models, columns, oob_score: None }, draws))
    }

    /// The features of a draw.
    #[track_caller]
    fn features(&self, training: &Training, generator: &Generator, count: usize) -> Result<Vec<usize>> {
        let columns = training.columns;
        if !self.bootstrap_features && count == columns {
            return Ok((0..columns).collect());
        }
        let drawn = if self.bootstrap_features {
            generator.integers(0, columns as i64, &[count])
        } else {
            generator.permutation(columns).get(&[Index::from(..count as i64)])
        };
        let drawn = training.engine.integers(&drawn, count as u64)?.map_err(|_| lost())?;
        Ok(drawn.into_iter().map(|column| column as usize).collect())
    }

    /// Numbers of times that each sample is drawn, kept in the store; none if all are there once.
    #[track_caller]
    fn counts(&self, training: &Training, generator: &Generator, samples: usize) -> Result<Option<Tensor>> {
        let rows = training.rows;
        if !self.bootstrap {
            if samples == rows {
                return Ok(None);
            }
            let keys = training.engine.kept(&generator.random(&[rows]))?;
            let last = keys.sort(0).get(&[Index::from(samples as i64 - 1)]);
            return training.engine.kept(&keys.less_equal(last).astype(DType::F64)).map(Some);
        }
        for _ in 0..DRAWS_MAX {
            let drawn = generator.poisson(samples as f64 / rows as f64, &[rows]).astype(DType::F64);
            let drawn = training.engine.kept(&drawn)?;
            let counted = match &training.weight {
                Some(weight) => (&drawn * weight).sum(..),
                None => drawn.sum(..),
            };
            if training.engine.run(&[&counted])?.iter().any(|sum| sum.sum() != 0.0) {
                return Ok(Some(drawn));
            }
        }
        Err(refused("Sample weights must contain at least one non-zero number."))
    }
}

/// The chosen features of samples.
#[track_caller]
fn selected(x: &Tensor, features: &[usize], columns: usize) -> Tensor {
    if features.iter().copied().eq(0..columns) { x.clone() } else { x.take_at(&positions(features), 1) }
}

impl<T: Tells> Bag<T> {
    /// Results of all models of samples (n, d), each of its features.
    #[track_caller]
    fn each(
        &self,
        name: &str,
        x: &Tensor,
        tell: impl Fn(&FittedAny<T>, &Tensor) -> Result<Tensor>,
    ) -> Result<Vec<Tensor>> {
        let x = unchecked_for(name, x, self.columns)?;
        self.models
            .iter()
            .map(|(features, model)| tell(model, &selected(&x, features, self.columns)))
            .collect()
    }

    fn is_sound(&self) -> bool {
        let is_within = |features: &[usize]| features.iter().all(|&feature| feature < self.columns);
        !self.models.is_empty() && self.models.iter().all(|(features, _)| is_within(features))
    }
}

/// The mean of expressions of one shape.
#[track_caller]
fn mean(parts: Vec<Tensor>) -> Tensor {
    let count = parts.len() as f64;
    parts.into_iter().reduce(|sum, part| sum + part).unwrap_or_else(|| Tensor::number(0.0)) / count
}

/// The probabilities that a model gives to so many classes, or its prediction as the only one; (n, k).
#[track_caller]
fn chances(model: &FittedAny<Classifies>, x: &Tensor, classes: usize) -> Tensor {
    match model.probabilities(x) {
        Some((found, chances)) => spread(&chances, found, classes),
        None => model.predict(x).expand_dims(1).equal(arange(classes)).astype(DType::F64),
    }
}

/// The methods of both estimators and of their models.
macro_rules! bags {
    ($bagging:ident, $any:ty, $tells:ty, $fitted:ident, $name:expr, $default:expr) => {
        impl Default for $bagging {
            fn default() -> $bagging {
                $bagging { bagging: Bagging::new(<$any>::new($default)) }
            }
        }

        impl $bagging {
            /// Ten decision trees of samples that are drawn with replacement.
            pub fn new() -> $bagging {
                $bagging::default()
            }

            /// scikit-learn's `estimator`: the estimator of each draw.
            pub fn estimator<E>(self, estimator: E) -> $bagging
            where
                E: Estimator + Params + Clone + Send + Sync + 'static,
                E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
            {
                self.any(<$any>::new(estimator))
            }

            /// As `estimator`, of a type that is not told.
            pub fn any(mut self, estimator: $any) -> $bagging {
                self.bagging.estimator = estimator;
                self
            }

            /// scikit-learn's `n_estimators`: the number of draws; not zero.
            pub fn n_estimators(mut self, n_estimators: usize) -> $bagging {
                self.bagging.n_estimators = n_estimators;
                self
            }

            /// scikit-learn's `max_samples`: samples of a draw, as a number or a part of all; `None` is as
            /// many as there are.
            pub fn max_samples(mut self, max_samples: impl Into<Option<Share>>) -> $bagging {
                self.bagging.max_samples = max_samples.into();
                self
            }

            /// scikit-learn's `max_features`: features of a draw, as a number or a part of all.
            pub fn max_features(mut self, max_features: Share) -> $bagging {
                self.bagging.max_features = max_features;
                self
            }

            /// scikit-learn's `bootstrap`: whether a sample may be drawn several times.
            pub fn bootstrap(mut self, bootstrap: bool) -> $bagging {
                self.bagging.bootstrap = bootstrap;
                self
            }

            /// scikit-learn's `bootstrap_features`: whether a feature may be drawn several times.
            pub fn bootstrap_features(mut self, bootstrap_features: bool) -> $bagging {
                self.bagging.bootstrap_features = bootstrap_features;
                self
            }

            /// scikit-learn's `oob_score`: whether samples are scored by models that have not seen them.
            pub fn oob_score(mut self, oob_score: bool) -> $bagging {
                self.bagging.oob_score = oob_score;
                self
            }

            /// scikit-learn's `random_state`: the seed of all draws; the numbers are not scikit-learn's.
            pub fn random_state(mut self, random_state: u64) -> $bagging {
                self.bagging.random_state = random_state;
                self
            }

            /// Fits all models on samples (n, d) and targets (n,).
            ///
            /// # Errors
            /// `ValueError` for parameters out of their ranges, and an estimator of another kind;
            /// `NotImplemented` for weights of samples if the estimator takes none; errors of the fits.
            #[track_caller]
            pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<$fitted> {
                self.fit_any(x, Some(y), &options.into())
            }
        }

        holds!(
            $bagging,
            $name,
            "estimator" => bagging.estimator,
            [
                "n_estimators" => bagging.n_estimators >= 1, "max_samples" => bagging.max_samples >= 1,
                "max_features" => bagging.max_features >= 1, "bootstrap" => bagging.bootstrap,
                "bootstrap_features" => bagging.bootstrap_features, "oob_score" => bagging.oob_score,
                "random_state" => bagging.random_state
            ]
        );

        impl $fitted {
            /// scikit-learn's `estimators_` and `estimators_features_`.
            pub fn estimators(&self) -> &[(Vec<usize>, FittedAny<$tells>)] {
                &self.bag.models
            }

            /// scikit-learn's `oob_score_`; none if it was not asked for.
            pub fn oob_score(&self) -> Option<f64> {
                self.bag.oob_score
            }

            /// The score on samples (n, d) and their targets: the share of right labels, or R².
            ///
            /// # Errors
            /// `ValueError` for shapes that do not fit; errors of the pass.
            #[track_caller]
            pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
                self.score_any(x, y, &options.into())
            }
        }

        impl fmt::Display for $fitted {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} of {} features, {} estimators", $name, self.bag.columns, self.bag.models.len())
            }
        }
    };
}

bags!(
    BaggingClassifier,
    AnyClassifier,
    Classifies,
    FittedBaggingClassifier,
    CLASSIFIER,
    DecisionTreeClassifier::new()
);
bags!(
    BaggingRegressor,
    AnyRegressor,
    Regresses,
    FittedBaggingRegressor,
    REGRESSOR,
    DecisionTreeRegressor::new()
);

impl Estimator for BaggingClassifier {
    type Fitted = FittedBaggingClassifier;

    fn takes_weights(&self) -> bool {
        self.bagging.estimator.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.bagging.estimator.takes_nan()
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedBaggingClassifier> {
        self.bagging.check(CLASSIFIER)?;
        let training = Training::supervised(CLASSIFIER, x, y, options)?;
        let classes = Classes::of(&training)?;
        let labels = classes.positions();
        let (mut bag, draws) = self.bagging.fitted(&training, &labels)?;
        let count = classes.values.len();
        if self.bagging.oob_score {
            let told = bag.each(CLASSIFIER, &training.x, |model, x| Ok(chances(model, x, count)))?;
            let unseen = told
                .into_iter()
                .zip(&draws)
                .map(|(told, drawn)| told * drawn.equal(0.0).astype(DType::F64).expand_dims(1));
            let chosen = mean(unseen.collect()).argmax(1);
            let scored = Training::supervised(CLASSIFIER, &training.x, Some(&labels), &training.options())?;
            bag.oob_score = Some(accuracy(&scored, &chosen)?);
        }
        Ok(FittedBaggingClassifier { classes: classes.values, bag })
    }
}

impl Estimator for BaggingRegressor {
    type Fitted = FittedBaggingRegressor;

    fn takes_weights(&self) -> bool {
        self.bagging.estimator.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.bagging.estimator.takes_nan()
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedBaggingRegressor> {
        self.bagging.check(REGRESSOR)?;
        let training = Training::supervised(REGRESSOR, x, y, options)?;
        let target = training.one_target()?.squeeze(Some(&[1]));
        let (mut bag, draws) = self.bagging.fitted(&training, &target)?;
        if self.bagging.oob_score {
            let told = bag.each(REGRESSOR, &training.x, |model, x| Ok(model.predict(x)))?;
            let (mut sum, mut count) = (Tensor::number(0.0), Tensor::number(0.0));
            for (told, drawn) in told.iter().zip(&draws) {
                let is_unseen = drawn.equal(0.0).astype(DType::F64);
                sum += told * &is_unseen;
                count += is_unseen;
            }
            let scored = Training::supervised(REGRESSOR, &training.x, Some(&target), &training.options())?;
            // As in scikit-learn, samples that all models have seen count as predictions of 0.
            bag.oob_score = Some(r2(&scored, &(sum / count.maximum(1.0)))?);
        }
        Ok(FittedBaggingRegressor { bag })
    }
}

impl FittedBaggingClassifier {
    /// The labels of samples (n, d), as an expression; (n,), int64.
    ///
    /// # Errors
    /// `ValueError` for another number of features; the errors of the models.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        class_tensor(&self.classes).take_at(&self.predict_proba(x).argmax(1), 0)
    }

    /// The probabilities of classes, (n, k), as an expression: means of those of the models, or of their
    /// predictions if they tell none.
    ///
    /// # Errors
    /// As [`predict`](FittedBaggingClassifier::predict).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        let count = self.classes.len();
        self.bag.each(CLASSIFIER, x, |model, x| Ok(chances(model, x, count))).map_or_else(Tensor::from, mean)
    }

    /// The logarithms of the probabilities.
    ///
    /// # Errors
    /// As [`predict`](FittedBaggingClassifier::predict).
    #[track_caller]
    pub fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.predict_proba(x).log()
    }

    /// The mean decisions of the models, as an expression; none if they tell none.
    ///
    /// # Errors
    /// As [`predict`](FittedBaggingClassifier::predict).
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Option<Tensor> {
        let mut has_decisions = true;
        let told = self.bag.models.iter().map(|(features, model)| {
            let decisions = model.decisions(&selected(x, features, self.bag.columns));
            has_decisions &= decisions.as_ref().is_some_and(|(known, _)| known.len() == self.classes.len());
            decisions.map(|(_, decisions)| decisions)
        });
        let told: Vec<Tensor> = told.flatten().collect();
        has_decisions.then(|| mean(told))
    }
}

impl FittedBaggingRegressor {
    /// The mean predictions for samples (n, d), as an expression; (n,).
    ///
    /// # Errors
    /// `ValueError` for another number of features; the errors of the models.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.bag.each(REGRESSOR, x, |model, x| Ok(model.predict(x))).map_or_else(Tensor::from, mean)
    }
}

impl Predict for FittedBaggingClassifier {
    const TASK: Task = Task::Classification;

    fn name(&self) -> &'static str {
        CLASSIFIER
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedBaggingClassifier::predict(self, x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        Some(&self.classes)
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.classes, self.predict_proba(x)))
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.classes, self.decision_function(x)?))
    }
}

predicts!(FittedBaggingRegressor, Regression, REGRESSOR);
saved!(FittedBaggingClassifier, CLASSIFIER, |model| !model.classes.is_empty() && model.bag.is_sound());
saved!(FittedBaggingRegressor, REGRESSOR, |model| model.bag.is_sound());
