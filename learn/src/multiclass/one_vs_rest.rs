//! A classifier for each class, against all others.

use super::binary_score;
use crate::base::{ByClass, Estimator, FitOptions, Predict, Task};
use crate::checks::{Training, refused};
use crate::held::{AnyClassifier, Classifies, FittedAny, holds};
use crate::labels::{Classes, class_tensor, is_known, of_scores};
use crate::params::Params;
use crate::saved::{Save, saved};
use crate::states::lost;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Index, Result, Tensor, concatenate, where_};

const NAME: &str = "OneVsRestClassifier";

/// scikit-learn's `OneVsRestClassifier`: for each class a classifier that tells its samples from all others.
/// Targets may be labels, or whether each of several labels is there.
///
/// ```
/// use tharsis_learn::datasets::load_iris;
/// use tharsis_learn::multiclass::OneVsRestClassifier;
/// use tharsis_learn::svm::LinearSVC;
/// let iris = load_iris()?;
/// let model = OneVsRestClassifier::new(LinearSVC::new()).fit(&iris.data, &iris.target, ..)?;
/// assert_eq!(model.estimators().len(), 3);
/// assert!(0.9 < model.score(&iris.data, &iris.target, ..)?);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct OneVsRestClassifier {
    estimator: AnyClassifier,
}

/// A fitted [`OneVsRestClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedOneVsRestClassifier {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `multilabel_`: whether targets are several labels.
    pub multilabel: bool,
    models: Vec<Rest>,
}

/// The classifier of a class.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Rest {
    /// All samples have it, or none has it.
    Constant(bool),
    Model(FittedAny<Classifies>),
}

holds!(OneVsRestClassifier, NAME, "estimator" => estimator, []);

impl OneVsRestClassifier {
    /// A classifier for each class by this one.
    pub fn new<E>(estimator: E) -> OneVsRestClassifier
    where
        E: Estimator + Params + Clone + Send + Sync + 'static,
        E::Fitted: Predict + Save + fmt::Debug + Send + Sync + 'static,
    {
        OneVsRestClassifier::any(AnyClassifier::new(estimator))
    }

    /// As [`new`](OneVsRestClassifier::new), of a type that is not told.
    pub fn any(estimator: AnyClassifier) -> OneVsRestClassifier {
        OneVsRestClassifier { estimator }
    }

    /// Fits a classifier for each class on samples (n, d) and labels (n,), whole numbers, or zeros and ones,
    /// (n, k). Two classes need one classifier.
    ///
    /// # Errors
    /// `ValueError` for an estimator that does not classify, and several targets that are not zeros and ones;
    /// `TypeError` for weights; errors of the fits.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedOneVsRestClassifier> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The model of zeros and ones; (n,).
    #[track_caller]
    fn rest(&self, training: &Training, is_class: &Tensor) -> Result<Rest> {
        let ends = training.engine.run(&[&is_class.min(..), &is_class.max(..)])?;
        let [least, most] = <[_; 2]>::try_from(ends).map_err(|_| lost())?;
        if least.sum() == most.sum() {
            return Ok(Rest::Constant(least.sum() != 0.0));
        }
        let model = self.estimator.fit_any(&training.x, Some(is_class), &training.options())?;
        Ok(Rest::Model(model))
    }
}

impl Estimator for OneVsRestClassifier {
    type Fitted = FittedOneVsRestClassifier;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedOneVsRestClassifier> {
        self.estimator.check()?;
        let training = Training::supervised(NAME, x, y, options)?.without_weights()?;
        let y = training.target()?;
        let multilabel = matches!(*y.shape()?, [_, labels] if labels != 1);
        let (classes, columns): (Vec<i64>, Vec<Tensor>) = if multilabel {
            check_indicators(&training, y)?;
            let labels = y.shape()?[1] as i64;
            let column = |at: i64| y.get(&[Index::from(..), Index::from(at)]).astype(DType::I64);
            ((0..labels).collect(), (0..labels).map(column).collect())
        } else {
            let classes = Classes::of(&training)?;
            let (labels, count) = (classes.positions(), classes.values.len() as i64);
            // Of two classes one classifier tells both; of one class there are no others.
            let first = if count <= 2 { 1 } else { 0 };
            let columns = (first..count.max(2)).map(|class| labels.equal(class).astype(DType::I64));
            (classes.values, columns.collect())
        };
        let models = columns.iter().map(|column| self.rest(&training, column)).collect::<Result<_>>()?;
        Ok(FittedOneVsRestClassifier { classes, multilabel, models })
    }
}

/// Checks that targets are zeros and ones.
#[track_caller]
fn check_indicators(training: &Training, y: &Tensor) -> Result<()> {
    training.check_finite_target()?;
    let is_either = y.equal(0.0).logical_or(y.equal(1.0)).all(..);
    if training.engine.run(&[&is_either])?.iter().all(|all| all.sum() != 0.0) {
        return Ok(());
    }
    Err(refused("Multioutput target data is not supported with label binarization"))
}

impl FittedOneVsRestClassifier {
    /// scikit-learn's `estimators_`: a model for each class, one for two classes; none where all samples, or
    /// none, have a label.
    pub fn estimators(&self) -> Vec<Option<&FittedAny<Classifies>>> {
        let models = self.models.iter().map(|rest| match rest {
            Rest::Model(model) => Some(model),
            Rest::Constant(_) => None,
        });
        models.collect()
    }

    /// The labels of samples (n, d), as an expression; (n,), int64, or zeros and ones, (n, k).
    ///
    /// # Errors
    /// Those that the results of the models carry.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.told(x).unwrap_or_else(Tensor::from)
    }

    #[track_caller]
    fn told(&self, x: &Tensor) -> Result<Tensor> {
        let mut scores = Vec::with_capacity(self.models.len());
        let mut bound = 0.0;
        for model in &self.models {
            let (score, least) = self.score_of(model, x)?;
            bound = least;
            // Each label has a bound of its own: that of probabilities, of decisions, or of a label that all
            // or none have.
            let score = if self.multilabel {
                of_scores(&score.greater(least).astype(DType::I64), &score.isfinite())
            } else {
                score
            };
            scores.push(score.expand_dims(1));
        }
        let together = concatenate(&scores.iter().collect::<Vec<_>>(), 1);
        if self.multilabel {
            return Ok(together);
        }
        let chosen = match self.classes.len() {
            1 | 2 => together.squeeze(Some(&[1])).greater(bound).astype(DType::I64),
            count => {
                // As in scikit-learn, the last one of classes with the same score is told.
                let reversed = concatenate(&scores.iter().rev().collect::<Vec<_>>(), 1);
                (reversed.argmax(1) - (count as i64 - 1)).negative()
            }
        };
        let chosen = of_scores(&chosen, &is_known(&together));
        Ok(class_tensor(&self.classes).take_at(&chosen.minimum(self.classes.len() as i64 - 1), 0))
    }

    /// The score of a class, (n,), and the number above which it is predicted.
    #[track_caller]
    fn score_of(&self, rest: &Rest, x: &Tensor) -> Result<(Tensor, f64)> {
        match rest {
            Rest::Model(model) => binary_score(model, x),
            Rest::Constant(is_there) => Ok((constant(x, f64::from(u8::from(*is_there)))?, 0.0)),
        }
    }

    /// The decisions for each class, as an expression: (n,) for two classes, else (n, k); none if a model
    /// tells none.
    ///
    /// # Errors
    /// As [`predict`](FittedOneVsRestClassifier::predict).
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Option<Tensor> {
        let parts = self.models.iter().map(|rest| match rest {
            Rest::Model(model) => model.decisions(x).map(|(_, decisions)| decisions.expand_dims(1)),
            Rest::Constant(_) => {
                let score = self.score_of(rest, x).map_or_else(Tensor::from, |(score, _)| score);
                Some(score.expand_dims(1))
            }
        });
        let parts: Vec<Tensor> = parts.collect::<Option<_>>()?;
        let scores = concatenate(&parts.iter().collect::<Vec<_>>(), 1);
        Some(if self.models.len() == 1 { scores.squeeze(Some(&[1])) } else { scores })
    }

    /// The probabilities of classes, (n, k), as an expression: they add up to one unless targets are several
    /// labels; none if a model tells none. A single class has one column; scikit-learn adds a second one.
    ///
    /// # Errors
    /// As [`predict`](FittedOneVsRestClassifier::predict).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Option<Tensor> {
        let last = |chances: Tensor| chances.get(&[Index::from(..), Index::from(-1i64..)]);
        let parts = self.models.iter().map(|rest| match rest {
            Rest::Model(model) => model.probabilities(x).map(|(_, chances)| last(chances)),
            Rest::Constant(is_there) => {
                let there = constant(x, f64::from(u8::from(*is_there)));
                Some(there.map_or_else(Tensor::from, |there| there.expand_dims(1)))
            }
        });
        let mut parts: Vec<Tensor> = parts.collect::<Option<_>>()?;
        if let [greater] = &parts[..] {
            let lesser = 1.0 - greater;
            // Of a single class there is no greater one.
            parts = if self.classes.len() == 1 { vec![lesser] } else { vec![lesser, parts.remove(0)] };
        }
        let chances = concatenate(&parts.iter().collect::<Vec<_>>(), 1);
        if self.multilabel {
            return Some(chances);
        }
        let sums = chances.sum(tharsis_numeric::Axes::from(1).keepdims());
        let divisor = where_(&sums.equal(0.0), 1.0, &sums);
        Some(chances / divisor)
    }

    /// The share of samples (n, d) all of whose labels are predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

/// The same number for each sample; (n,).
#[track_caller]
fn constant(x: &Tensor, number: f64) -> Result<Tensor> {
    let first = x.astype(DType::F64).get(&[Index::from(..), Index::from(0)]);
    Ok(where_(&first.equal(&first).logical_or(true), number, 0.0))
}

impl Predict for FittedOneVsRestClassifier {
    const TASK: Task = Task::Classification;

    fn name(&self) -> &'static str {
        NAME
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedOneVsRestClassifier::predict(self, x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        (!self.multilabel).then_some(&self.classes)
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.classes, self.predict_proba(x)?))
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        Some((&self.classes, self.decision_function(x)?))
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        let training = Training::supervised(NAME, x, Some(y), options)?;
        let predicted = self.predict(&training.x);
        if !self.multilabel {
            return crate::score::accuracy(&training, &predicted);
        }
        // Samples all of whose labels are right are those of one class.
        let is_right = training.target()?.equal(&predicted).all(1).astype(DType::I64);
        let options = training.weighted_options();
        let scored = Training::supervised(NAME, &training.x, Some(&is_right), &options)?;
        crate::score::accuracy(&scored, &(is_right.maximum(1)))
    }
}

saved!(FittedOneVsRestClassifier, NAME, |model| {
    let wanted = match model.classes.len() {
        0 => usize::MAX,
        1 | 2 if !model.multilabel => 1,
        count => count,
    };
    model.models.len() == wanted
});

impl fmt::Display for FittedOneVsRestClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} of classes {:?}", self.classes)?;
        self.estimators().iter().flatten().try_for_each(|model| write!(f, "\n  {model}"))
    }
}
