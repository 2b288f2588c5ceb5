//! Several estimators, each fitted to all samples, and what most of them say.

use crate::base::{ByClass, Estimator, FitOptions, Predict, Task, Transform, predicts};
use crate::checks::{Training, refused};
use crate::held::{AnyClassifier, AnyRegressor, Classifies, FittedAny, Regresses, Tells, Together};
use crate::labels::{Classes, class_tensor};
use crate::params::{Parameter, Params, Setting, field, words};
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Axes, Result, Tensor, arange, concatenate, where_};

/// The way in which a [`VotingClassifier`] chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Voting {
    /// The class that most estimators predict; of several the first.
    #[default]
    Hard,
    /// The class of the largest mean probability.
    Soft,
}

words!(Voting, ["hard" => Voting::Hard, "soft" => Voting::Soft]);

/// scikit-learn's `VotingClassifier`: several classifiers, and the class that most of them predict.
///
/// ```
/// use tharsis_learn::ensemble::{Voting, VotingClassifier};
/// use tharsis_learn::linear_model::LogisticRegression;
/// use tharsis_learn::naive_bayes::GaussianNB;
/// use tharsis_numeric::array;
/// let (x, y) = (array([0.0, 1.0, 8.0, 9.0]).reshape(&[4, 1]), array([3i64, 3, 5, 5]));
/// let voting = VotingClassifier::new()
///     .estimator("line", LogisticRegression::new())
///     .estimator("bayes", GaussianNB::new())
///     .voting(Voting::Soft);
/// let model = voting.fit(&x, &y, ..)?;
/// assert_eq!(model.predict(&x).to_vec::<i64>()?, [3, 3, 5, 5]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct VotingClassifier {
    estimators: Together<Classifies>,
    voting: Voting,
    weights: Option<Vec<f64>>,
    flatten_transform: Flat,
}

/// scikit-learn's `VotingRegressor`: several regressors, and the mean of what they predict.
///
/// ```
/// use tharsis_learn::ensemble::VotingRegressor;
/// use tharsis_learn::dummy::DummyRegressor;
/// use tharsis_learn::linear_model::LinearRegression;
/// use tharsis_numeric::array;
/// let (x, y) = (array([0.0, 1.0, 2.0]).reshape(&[3, 1]), array([0.0, 2.0, 4.0]));
/// let voting = VotingRegressor::new()
///     .estimator("line", LinearRegression::new())
///     .estimator("mean", DummyRegressor::new())
///     .weights([3.0, 1.0]);
/// let found = voting.fit(&x, &y, ..)?.predict(&x).to_vec::<f64>()?;
/// assert!((found[2] - 3.5).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct VotingRegressor {
    estimators: Together<Regresses>,
    weights: Option<Vec<f64>>,
}

/// Whether probabilities of all estimators stand beside each other in one row.
#[derive(Clone, Copy, Debug)]
struct Flat(bool);

impl Default for Flat {
    fn default() -> Flat {
        Flat(true)
    }
}

/// A fitted [`VotingClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedVotingClassifier {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `named_estimators_`: models of positions among the classes.
    pub named_estimators: Vec<(String, FittedAny<Classifies>)>,
    voting: Voting,
    weights: Option<Vec<f64>>,
    is_flat: bool,
}

/// A fitted [`VotingRegressor`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedVotingRegressor {
    /// scikit-learn's `named_estimators_`.
    pub named_estimators: Vec<(String, FittedAny<Regresses>)>,
    weights: Option<Vec<f64>>,
}

const CLASSIFIER: &str = "VotingClassifier";
const REGRESSOR: &str = "VotingRegressor";
const OF_CLASSIFIER: &[&str] = &["estimators", "voting", "weights", "n_jobs", "flatten_transform", "verbose"];
const OF_REGRESSOR: &[&str] = &["estimators", "weights", "n_jobs", "verbose"];

/// The weights of the estimators that are not left out. Means are divided by the sum of weights.
#[track_caller]
fn checked_weights<T: Tells>(
    weights: Option<&Vec<f64>>,
    estimators: &Together<T>,
    are_means: bool,
) -> Result<Option<Vec<f64>>> {
    if let Some(weights) = weights.filter(|weights| weights.len() != estimators.all.len()) {
        return Err(refused(format!(
            "Number of `estimators` and weights must be equal; got {} weights, {} estimators",
            weights.len(),
            estimators.all.len()
        )));
    }
    let Some(weights) = estimators.weights(weights) else { return Ok(None) };
    let sum: f64 = weights.iter().sum();
    if are_means && (!sum.is_finite() || sum == 0.0) {
        return Err(refused("Weights sum to zero, can't be normalized"));
    }
    Ok(Some(weights))
}

/// The weights of estimators; all the same without any.
fn weights_of(weights: Option<&Vec<f64>>, estimators: usize) -> Vec<f64> {
    weights.cloned().unwrap_or_else(|| vec![1.0; estimators])
}

/// The weighted mean of expressions of one shape.
#[track_caller]
fn mean(parts: impl Iterator<Item = Tensor>, weights: &[f64]) -> Tensor {
    let all: f64 = weights.iter().sum();
    let weighted = parts.zip(weights).map(|(part, &weight)| part * weight);
    weighted.reduce(|sum, part| sum + part).unwrap_or_else(|| Tensor::number(0.0)) / all
}

impl VotingClassifier {
    /// No classifiers yet, of which each is to have one vote.
    pub fn new() -> VotingClassifier {
        VotingClassifier::default()
    }

    /// Adds a classifier to scikit-learn's `estimators`.
    pub fn estimator<E>(self, name: &str, estimator: E) -> VotingClassifier
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
    {
        self.any(name, AnyClassifier::new(estimator))
    }

    /// As [`estimator`](VotingClassifier::estimator), of a type that is not told.
    pub fn any(self, name: &str, estimator: AnyClassifier) -> VotingClassifier {
        self.any_or_none(name, Some(estimator))
    }

    /// Adds a name whose classifier is left out: scikit-learn's `"drop"`. Its weight does not count. A search
    /// leaves one out by the parameter of its name, which is set to `"drop"`.
    pub fn dropped(self, name: &str) -> VotingClassifier {
        self.any_or_none(name, None)
    }

    pub(crate) fn any_or_none(mut self, name: &str, estimator: Option<AnyClassifier>) -> VotingClassifier {
        self.estimators.all.push((name.to_owned(), estimator));
        self
    }

    /// scikit-learn's `voting`: whether classes or probabilities are counted.
    pub fn voting(self, voting: Voting) -> VotingClassifier {
        VotingClassifier { voting, ..self }
    }

    /// scikit-learn's `weights`: how much each classifier counts.
    pub fn weights(self, weights: impl Into<Vec<f64>>) -> VotingClassifier {
        VotingClassifier { weights: Some(weights.into()), ..self }
    }

    /// scikit-learn's `flatten_transform`: whether `transform` to probabilities gives (n, m k) instead of
    /// (m, n, k).
    pub fn flatten_transform(self, flatten_transform: bool) -> VotingClassifier {
        VotingClassifier { flatten_transform: Flat(flatten_transform), ..self }
    }

    /// Fits all classifiers on samples (n, d) and labels (n,), whole numbers, one after the other.
    ///
    /// # Errors
    /// `ValueError` for no classifiers, names that stand twice, another number of weights, and estimators
    /// that do not classify; `TypeError` for weights of samples if a classifier takes none; errors of the
    /// fits.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedVotingClassifier> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl VotingRegressor {
    /// No regressors yet, which are all to count the same.
    pub fn new() -> VotingRegressor {
        VotingRegressor::default()
    }

    /// Adds a regressor to scikit-learn's `estimators`.
    pub fn estimator<E>(self, name: &str, estimator: E) -> VotingRegressor
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
    {
        self.any(name, AnyRegressor::new(estimator))
    }

    /// As [`estimator`](VotingRegressor::estimator), of a type that is not told.
    pub fn any(self, name: &str, estimator: AnyRegressor) -> VotingRegressor {
        self.any_or_none(name, Some(estimator))
    }

    /// Adds a name whose regressor is left out, as [`VotingClassifier::dropped`].
    pub fn dropped(self, name: &str) -> VotingRegressor {
        self.any_or_none(name, None)
    }

    pub(crate) fn any_or_none(mut self, name: &str, estimator: Option<AnyRegressor>) -> VotingRegressor {
        self.estimators.all.push((name.to_owned(), estimator));
        self
    }

    /// scikit-learn's `weights`: how much each regressor counts.
    pub fn weights(self, weights: impl Into<Vec<f64>>) -> VotingRegressor {
        VotingRegressor { weights: Some(weights.into()), ..self }
    }

    /// Fits all regressors on samples (n, d) and targets (n,), one after the other.
    ///
    /// # Errors
    /// `ValueError` for no regressors, names that stand twice, another number of weights, and estimators that
    /// are no regressors; `TypeError` for weights of samples if a regressor takes none; errors of the fits.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedVotingRegressor> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl Estimator for VotingClassifier {
    type Fitted = FittedVotingClassifier;

    fn takes_weights(&self) -> bool {
        self.estimators.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.estimators.takes_nan()
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedVotingClassifier> {
        self.estimators.check(OF_CLASSIFIER)?;
        let are_means = self.voting == Voting::Soft;
        let weights = checked_weights(self.weights.as_ref(), &self.estimators, are_means)?;
        let training = Training::supervised(CLASSIFIER, x, y, options)?;
        let classes = Classes::of(&training)?;
        let (labels, options) = (classes.positions(), training.weighted_options());
        let mut models = Vec::with_capacity(self.estimators.all.len());
        for (name, estimator) in self.estimators.there() {
            let model = estimator.weighted(&training.x, &labels, &options)?;
            if self.voting == Voting::Soft && model.probabilities(&training.x).is_none() {
                let text = format!("'{}' object has no attribute 'predict_proba'", estimator.name());
                return Err(refused(text));
            }
            models.push((name.clone(), model));
        }
        Ok(FittedVotingClassifier {
            classes: classes.values,
            named_estimators: models,
            voting: self.voting,
            weights,
            is_flat: self.flatten_transform.0,
        })
    }
}

impl Estimator for VotingRegressor {
    type Fitted = FittedVotingRegressor;

    fn takes_weights(&self) -> bool {
        self.estimators.takes_weights()
    }

    fn takes_nan(&self) -> bool {
        self.estimators.takes_nan()
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedVotingRegressor> {
        self.estimators.check(OF_REGRESSOR)?;
        let weights = checked_weights(self.weights.as_ref(), &self.estimators, true)?;
        let training = Training::supervised(REGRESSOR, x, y, options)?;
        let (y, options) = (training.one_target()?.squeeze(Some(&[1])), training.weighted_options());
        let fitted = |(name, estimator): (&String, &AnyRegressor)| {
            Ok((name.clone(), estimator.weighted(&training.x, &y, &options)?))
        };
        let named_estimators = self.estimators.there().map(fitted).collect::<Result<_>>()?;
        Ok(FittedVotingRegressor { named_estimators, weights })
    }
}

impl Params for VotingClassifier {
    fn estimator(&self) -> &'static str {
        CLASSIFIER
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let own = [
            ("voting", self.voting.setting()),
            ("weights", self.weights.setting()),
            ("flatten_transform", self.flatten_transform.0.setting()),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.estimators.params()).collect()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        match name {
            "voting" => self.voting = field(CLASSIFIER, name, value, 0)?,
            "weights" => self.weights = field(CLASSIFIER, name, value, 0)?,
            "flatten_transform" => self.flatten_transform = Flat(field(CLASSIFIER, name, value, 0)?),
            _ => match self.estimators.set(name, value) {
                Some(set) => return set,
                None => return Err(crate::held::unknown(CLASSIFIER, OF_CLASSIFIER, name)),
            },
        }
        Ok(())
    }
}

impl Params for VotingRegressor {
    fn estimator(&self) -> &'static str {
        REGRESSOR
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let own = [("weights".to_owned(), self.weights.setting())];
        own.into_iter().chain(self.estimators.params()).collect()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        if name == "weights" {
            self.weights = field(REGRESSOR, name, value, 0)?;
            return Ok(());
        }
        let set = self.estimators.set(name, value);
        set.unwrap_or_else(|| Err(crate::held::unknown(REGRESSOR, OF_REGRESSOR, name)))
    }
}

impl FittedVotingClassifier {
    /// The labels of samples (n, d), as an expression; (n,), int64.
    ///
    /// # Errors
    /// Those that the predictions of the classifiers carry.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let votes = match self.voting {
            Voting::Soft => self.chances(x),
            Voting::Hard => self.votes(x),
        };
        class_tensor(&self.classes).take_at(&votes.argmax(1), 0)
    }

    /// The probabilities of classes, (n, k), as an expression: means of those of the classifiers; none if
    /// classes are counted instead.
    ///
    /// # Errors
    /// Those that the probabilities of the classifiers carry.
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Option<Tensor> {
        (self.voting == Voting::Soft).then(|| self.chances(x))
    }

    /// The predictions of each classifier, as an expression: positions of classes (n, m), or with soft votes
    /// probabilities, (n, m k) or (m, n, k).
    ///
    /// # Errors
    /// As [`predict`](FittedVotingClassifier::predict).
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let parts: Vec<Tensor> = match (self.voting, self.is_flat) {
            (Voting::Hard, _) => self.models().map(|model| model.predict(x).expand_dims(1)).collect(),
            (Voting::Soft, is_flat) => {
                let chances = self.models().filter_map(|model| model.probabilities(x));
                let chances = chances.map(|(_, chances)| chances);
                if is_flat { chances.collect() } else { chances.map(|part| part.expand_dims(0)).collect() }
            }
        };
        let axis = i64::from(self.voting == Voting::Hard || self.is_flat);
        concatenate(&parts.iter().collect::<Vec<_>>(), axis)
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }

    fn models(&self) -> impl Iterator<Item = &FittedAny<Classifies>> {
        self.named_estimators.iter().map(|(_, model)| model)
    }

    /// The names of the columns of `transform`; none if it has three axes.
    fn names_out(&self) -> Option<Vec<String>> {
        let names = prefixed(CLASSIFIER, &self.named_estimators);
        match (self.voting, self.is_flat) {
            (Voting::Hard, _) => Some(names),
            (Voting::Soft, true) => {
                let of = |name: String| (0..self.classes.len()).map(move |class| format!("{name}{class}"));
                Some(names.into_iter().flat_map(of).collect())
            }
            (Voting::Soft, false) => None,
        }
    }

    /// Mean probabilities; (n, k).
    #[track_caller]
    fn chances(&self, x: &Tensor) -> Tensor {
        let chances = self.models().filter_map(|model| model.probabilities(x).map(|(_, chances)| chances));
        mean(chances, &weights_of(self.weights.as_ref(), self.named_estimators.len()))
    }

    /// The sums of weights of the classifiers that predict each class; (n, k). As scikit-learn counts no
    /// classes above the greatest one that is predicted, those have no sum, which is less than a negative
    /// one.
    #[track_caller]
    fn votes(&self, x: &Tensor) -> Tensor {
        let classes = arange(self.classes.len());
        let told: Vec<Tensor> = self.models().map(|model| model.predict(x).expand_dims(1)).collect();
        let weights = weights_of(self.weights.as_ref(), told.len());
        let counted =
            told.iter().zip(weights).map(|(told, weight)| where_(&told.equal(&classes), weight, 0.0));
        let sums = counted.reduce(|sum, part| sum + part).unwrap_or_else(|| Tensor::number(0.0));
        let greatest = concatenate(&told.iter().collect::<Vec<_>>(), 1).max(Axes::from(1).keepdims());
        where_(&classes.less_equal(greatest), sums, f64::NEG_INFINITY)
    }
}

impl FittedVotingRegressor {
    fn names_out(&self) -> Option<Vec<String>> {
        Some(prefixed(REGRESSOR, &self.named_estimators))
    }

    /// The mean predictions for samples (n, d), as an expression; (n,).
    ///
    /// # Errors
    /// Those that the predictions of the regressors carry.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let parts = self.named_estimators.iter().map(|(_, model)| model.predict(x));
        mean(parts, &weights_of(self.weights.as_ref(), self.named_estimators.len()))
    }

    /// The predictions of each regressor, as an expression; (n, m).
    ///
    /// # Errors
    /// As [`predict`](FittedVotingRegressor::predict).
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let parts: Vec<Tensor> =
            self.named_estimators.iter().map(|(_, model)| model.predict(x).expand_dims(1)).collect();
        concatenate(&parts.iter().collect::<Vec<_>>(), 1)
    }

    /// R² of the predictions for samples (n, d) with these targets.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

/// The names of some estimators behind that of a class.
fn prefixed<T: Tells>(class: &str, named: &[(String, FittedAny<T>)]) -> Vec<String> {
    let class = class.to_lowercase();
    named.iter().map(|(name, _)| format!("{class}_{name}")).collect()
}

/// Whether a model has so many weights as estimators, of which there are some.
fn is_sound(weights: Option<&Vec<f64>>, estimators: usize) -> bool {
    0 < estimators && weights.is_none_or(|weights| weights.len() == estimators)
}

saved!(FittedVotingClassifier, CLASSIFIER, |model| {
    !model.classes.is_empty() && is_sound(model.weights.as_ref(), model.named_estimators.len())
});
saved!(FittedVotingRegressor, REGRESSOR, |model| {
    is_sound(model.weights.as_ref(), model.named_estimators.len())
});
predicts!(FittedVotingRegressor, Regression, REGRESSOR);

impl Predict for FittedVotingClassifier {
    const TASK: Task = Task::Classification;

    fn name(&self) -> &'static str {
        CLASSIFIER
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedVotingClassifier::predict(self, x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        Some(&self.classes)
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.classes, self.predict_proba(x)?))
    }
}

macro_rules! maps {
    ($($fitted:ty),*) => {$(
        impl Transform for $fitted {
            #[track_caller]
            fn transform(&self, x: &Tensor) -> Tensor {
                <$fitted>::transform(self, x)
            }

            fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
                Some(self.kind_and_body())
            }

            fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
                self.names_out()
            }
        }
    )*};
}
maps!(FittedVotingClassifier, FittedVotingRegressor);

impl fmt::Display for FittedVotingClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{CLASSIFIER} of classes {:?}", self.classes)?;
        self.named_estimators.iter().try_for_each(|(name, model)| write!(f, "\n  {name}: {model}"))
    }
}

impl fmt::Display for FittedVotingRegressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REGRESSOR)?;
        self.named_estimators.iter().try_for_each(|(name, model)| write!(f, "\n  {name}: {model}"))
    }
}
