//! A classifier for each pair of classes.

use super::binary_score;
use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::checks::{Training, refused};
use crate::held::{AnyClassifier, Classifies, FittedAny, holds};
use crate::labels::{Classes, class_tensor};
use crate::params::Params;
use crate::saved::{Save, saved};
use crate::states::lost;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Result, Tensor, concatenate};

const NAME: &str = "OneVsOneClassifier";
/// Most classes: there is a classifier for each pair.
const CLASSES_MAX: usize = 1 << 10;

/// scikit-learn's `OneVsOneClassifier`: for each pair of classes a classifier that tells their samples apart,
/// and the class that most of them predict; of several the one with the largest scores.
///
/// ```
/// use tharsis_learn::datasets::load_iris;
/// use tharsis_learn::multiclass::OneVsOneClassifier;
/// use tharsis_learn::svm::LinearSVC;
/// let iris = load_iris()?;
/// let model = OneVsOneClassifier::new(LinearSVC::new()).fit(&iris.data, &iris.target, ..)?;
/// assert_eq!(model.estimators.len(), 3);
/// assert!(0.9 < model.score(&iris.data, &iris.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct OneVsOneClassifier {
    estimator: AnyClassifier,
}

/// A fitted [`OneVsOneClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedOneVsOneClassifier {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `estimators_`, of 0 for the first and 1 for the second of two classes: the first with
    /// each of the others, the second with those behind it, and so on.
    pub estimators: Vec<FittedAny<Classifies>>,
}

holds!(OneVsOneClassifier, NAME, "estimator" => estimator, []);

/// The pairs of so many classes.
fn pairs(classes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..classes).flat_map(move |first| (first + 1..classes).map(move |second| (first, second)))
}

impl OneVsOneClassifier {
    /// A classifier for each pair of classes by this one.
    pub fn new<E>(estimator: E) -> OneVsOneClassifier
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
    {
        OneVsOneClassifier::any(AnyClassifier::new(estimator))
    }

    /// As [`new`](OneVsOneClassifier::new), of a type that is not told.
    pub fn any(estimator: AnyClassifier) -> OneVsOneClassifier {
        OneVsOneClassifier { estimator }
    }

    /// Fits a classifier for each pair of classes on samples (n, d) and labels (n,), whole numbers. Its
    /// passes take the samples of its two classes out of all.
    ///
    /// # Errors
    /// `ValueError` for an estimator that does not classify, for one class and for more than 1024;
    /// `TypeError` for weights; errors of the fits.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedOneVsOneClassifier> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl Estimator for OneVsOneClassifier {
    type Fitted = FittedOneVsOneClassifier;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedOneVsOneClassifier> {
        self.estimator.check()?;
        let training = Training::supervised(NAME, x, y, options)?.without_weights()?;
        let classes = Classes::of(&training)?;
        let count = classes.values.len();
        if count == 1 {
            return Err(refused("OneVsOneClassifier can not be fit when only one class is present."));
        }
        if CLASSES_MAX < count {
            return Err(refused(format!("y has {count} classes, {NAME} takes at most {CLASSES_MAX}.")));
        }
        let labels = training.engine.kept(&classes.positions())?;
        let mut estimators = Vec::new();
        for (first, second) in pairs(count) {
            let is_second = labels.equal(second as i64);
            let mask = is_second.logical_or(labels.equal(first as i64));
            let parts = [training.x.filter(&mask), is_second.astype(DType::I64).filter(&mask)];
            let known = training.engine.with_sizes(&[&parts[0], &parts[1]])?;
            let [x, y] = &known[..] else { return Err(lost()) };
            estimators.push(self.estimator.fit_any(x, Some(y), &training.options())?);
        }
        Ok(FittedOneVsOneClassifier { classes: classes.values, estimators })
    }
}

impl FittedOneVsOneClassifier {
    /// The labels of samples (n, d), as an expression; (n,), int64.
    ///
    /// # Errors
    /// Those that the results of the models carry.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.told(x).unwrap_or_else(Tensor::from)
    }

    #[track_caller]
    fn told(&self, x: &Tensor) -> Result<Tensor> {
        let decisions = self.decision_function(x);
        let chosen = match &self.estimators[..] {
            [only] => decisions.greater(binary_score(only, x)?.1).astype(DType::I64),
            _ => decisions.argmax(1),
        };
        Ok(class_tensor(&self.classes).take_at(&chosen, 0))
    }

    /// For each class the number of classifiers that predict it, and a part below one by their scores, as an
    /// expression; (n,) for two classes, else (n, k).
    ///
    /// # Errors
    /// As [`predict`](FittedOneVsOneClassifier::predict).
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        self.votes(x).unwrap_or_else(Tensor::from)
    }

    #[track_caller]
    fn votes(&self, x: &Tensor) -> Result<Tensor> {
        let count = self.classes.len();
        let zero = || Tensor::number(0.0);
        let (mut votes, mut scores) = (vec![zero(); count], vec![zero(); count]);
        for ((first, second), model) in pairs(count).zip(&self.estimators) {
            let (score, _) = binary_score(model, x)?;
            let is_second = model.predict(x).equal(1).astype(DType::F64);
            scores[first] = &scores[first] - &score;
            scores[second] = &scores[second] + &score;
            votes[first] = &votes[first] + (1.0 - &is_second);
            votes[second] = &votes[second] + is_second;
        }
        let all = votes.iter().zip(&scores).map(|(votes, scores)| {
            let below = scores / ((scores.abs() + 1.0) * 3.0);
            votes + below
        });
        let mut all: Vec<Tensor> = all.collect();
        match (&self.estimators[..], all.pop()) {
            ([_], Some(second)) => Ok(second),
            (_, Some(last)) => {
                all.push(last);
                let columns: Vec<Tensor> = all.iter().map(|column| column.expand_dims(1)).collect();
                Ok(concatenate(&columns.iter().collect::<Vec<_>>(), 1))
            }
            (_, None) => Err(lost()),
        }
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

predicts!(FittedOneVsOneClassifier, Classification, NAME; decision_function as decisions);
saved!(FittedOneVsOneClassifier, NAME, |model| {
    let count = model.classes.len();
    (2..=CLASSES_MAX).contains(&count) && model.estimators.len() == count * (count - 1) / 2
});

impl fmt::Display for FittedOneVsOneClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.estimators.len();
        write!(f, "{NAME} of classes {:?}, {count} estimators", self.classes)
    }
}
