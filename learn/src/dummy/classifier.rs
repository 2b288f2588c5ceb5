//! Classes without regard to the samples.

use crate::base::{Estimator, FitOptions, Predict, classifies};
use crate::checks::{Nan, Training, refused, samples_of_any};
use crate::dense::tensor;
use crate::labels::{Classes, class_tensor};
use crate::metrics::inputs::settled;
use crate::params::{parameters, words};
use crate::saved::saved;
use crate::score::check_some_weight;
use crate::show;
use crate::states::{all_finite, lost, vector};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Result, Tensor, arange, where_};

/// The choice of a class for a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClassStrategy {
    /// The class that the parameter `constant` names.
    Constant,
    /// The class with the most samples, whose chance is 1.
    MostFrequent,
    /// The class with the most samples; the chances are the shares of the classes.
    #[default]
    Prior,
    /// A class that is drawn by the shares of the classes.
    Stratified,
    /// A class that is drawn, all with the same chance.
    Uniform,
}

words!(
    ClassStrategy,
    [
        "constant" => ClassStrategy::Constant, "most_frequent" => ClassStrategy::MostFrequent,
        "prior" => ClassStrategy::Prior, "stratified" => ClassStrategy::Stratified,
        "uniform" => ClassStrategy::Uniform
    ]
);

/// scikit-learn's `DummyClassifier`: predicts classes without regard to the samples.
///
/// Labels are whole numbers of any dtype. Samples are not read, so they may be NaN or infinite, and
/// predictions take any number of features. What is drawn for a sample is a function of `random_state` and
/// the number of its row; the numbers are not scikit-learn's.
///
/// ```
/// use tharsis_learn::dummy::DummyClassifier;
/// use tharsis_numeric::{array, zeros};
/// let model = DummyClassifier::new().fit(&zeros(&[4, 1]), &array([3i64, 7, 7, 7]), ..)?;
/// assert_eq!(model.class_prior.to_vec(), [0.25, 0.75]);
/// assert_eq!(model.predict(&zeros(&[2, 1])).to_vec::<i64>()?, [7, 7]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct DummyClassifier {
    strategy: ClassStrategy,
    constant: Option<i64>,
    random_state: u64,
}

/// A fitted [`DummyClassifier`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedDummyClassifier {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `class_prior_`: the share of each class; (k,).
    pub class_prior: Array1<f64>,
    strategy: ClassStrategy,
    /// The position of the constant among the classes.
    constant: usize,
    random_state: u64,
}

parameters!(
    DummyClassifier,
    "DummyClassifier",
    ["strategy" => strategy, "random_state" => random_state, "constant" => constant]
);

impl DummyClassifier {
    /// An estimator with scikit-learn's defaults: the strategy is `prior`.
    pub fn new() -> DummyClassifier {
        DummyClassifier::default()
    }

    /// scikit-learn's `strategy`: the choice of a class.
    pub fn strategy(self, strategy: ClassStrategy) -> DummyClassifier {
        DummyClassifier { strategy, ..self }
    }

    /// scikit-learn's `constant`: the class of the strategy `constant`.
    pub fn constant(self, constant: i64) -> DummyClassifier {
        DummyClassifier { constant: Some(constant), ..self }
    }

    /// scikit-learn's `random_state`: the seed of what is drawn.
    pub fn random_state(self, random_state: u64) -> DummyClassifier {
        DummyClassifier { random_state, ..self }
    }

    /// Fits the model on labels (n,), whole numbers; of the samples (n, d) the number is read. Two or three
    /// passes over the labels.
    ///
    /// # Errors
    /// `ValueError` for labels that are not whole, a constant that is no label, shapes that do not fit, no
    /// samples, no features, complex numbers, and weights that are negative or all zero; errors of the
    /// passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedDummyClassifier> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The position of the constant among the classes; 0 with other strategies.
    #[track_caller]
    fn position(&self, classes: &[i64]) -> Result<usize> {
        let Some(constant) = self.constant.filter(|_| self.strategy == ClassStrategy::Constant) else {
            return Ok(0);
        };
        classes.binary_search(&constant).map_err(|_| {
            refused(format!(
                "The constant target value must be present in the training data. You provided \
                 constant={constant}. Possible values are: {classes:?}."
            ))
        })
    }
}

impl Estimator for DummyClassifier {
    type Fitted = FittedDummyClassifier;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedDummyClassifier> {
        if self.strategy == ClassStrategy::Constant && self.constant.is_none() {
            return Err(refused(
                "Constant target value has to be specified when the constant strategy is used.",
            ));
        }
        let training = Training::supervised("DummyClassifier", x, y, options)?;
        let classes = Classes::of(&training)?;
        let constant = self.position(&classes.values)?;
        let member = classes.indicators();
        let counts = match &training.weight {
            None => member.sum(0),
            Some(weight) => (member * weight.expand_dims(1)).sum(0),
        };
        let states = training.engine.run(&[&counts])?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let counts = vector(states.into_iter().next().ok_or_else(lost)?)?;
        check_some_weight(counts.sum())?;
        Ok(FittedDummyClassifier {
            classes: classes.values,
            class_prior: &counts / counts.sum(),
            strategy: self.strategy,
            constant,
            random_state: self.random_state,
        })
    }
}

/// The chances of classes.
enum Chances {
    /// The same for all samples; (k,).
    Same(Array1<f64>),
    /// The position of the class that is drawn for each sample; (n,).
    Drawn(Tensor),
}

impl FittedDummyClassifier {
    /// The labels of samples (n, d), as an expression; (n,), int64.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let most = || self.largest_class();
        let made = match self.strategy {
            ClassStrategy::Constant => same(x, self.constant),
            ClassStrategy::MostFrequent | ClassStrategy::Prior => same(x, most()),
            ClassStrategy::Stratified => self.draws(x).map(|draws| self.by_shares(&draws)),
            ClassStrategy::Uniform => {
                let count = self.classes.len() as f64;
                self.draws(x).map(|draws| (draws * count).floor().minimum(count - 1.0).astype(DType::I64))
            }
        };
        match made {
            Ok(position) => class_tensor(&self.classes).take_at(&position, 0),
            Err(error) => Tensor::from(error),
        }
    }

    /// The chance of each class, in ascending order, for samples (n, d), as an expression; (n, k).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.rows(x, |chance| chance)
    }

    /// The logarithms of [`predict_proba`](FittedDummyClassifier::predict_proba).
    #[track_caller]
    pub fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.rows(x, f64::ln)
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }

    /// A function of the chances of each sample; (n, k).
    #[track_caller]
    fn rows(&self, x: &Tensor, function: fn(f64) -> f64) -> Tensor {
        let only = |position: usize| {
            let mut chances = Array1::zeros(self.classes.len());
            chances[position] = 1.0;
            Chances::Same(chances)
        };
        let made = match self.strategy {
            ClassStrategy::Constant => Ok(only(self.constant)),
            ClassStrategy::MostFrequent => Ok(only(self.largest_class())),
            ClassStrategy::Prior => Ok(Chances::Same(self.class_prior.clone())),
            ClassStrategy::Uniform => {
                let count = self.classes.len();
                Ok(Chances::Same(Array1::from_elem(count, 1.0 / count as f64)))
            }
            ClassStrategy::Stratified => self.draws(x).map(|draws| Chances::Drawn(self.by_shares(&draws))),
        };
        let made = made.and_then(|chances| match chances {
            Chances::Same(chances) => {
                let none = same(x, 0)?.astype(DType::F64).expand_dims(1);
                Ok(none + tensor(&chances.mapv(function)))
            }
            Chances::Drawn(position) => {
                let is_drawn = position.expand_dims(1).equal(arange(self.classes.len()));
                Ok(where_(&is_drawn, function(1.0), function(0.0)))
            }
        });
        made.unwrap_or_else(Tensor::from)
    }

    /// The position of the class with the largest share, of equal ones the first.
    fn largest_class(&self) -> usize {
        let mut most = 0;
        for (at, share) in self.class_prior.iter().enumerate() {
            if self.class_prior[most] < *share {
                most = at;
            }
        }
        most
    }

    /// A number from 0 to 1 for each sample; (n,).
    #[track_caller]
    fn draws(&self, x: &Tensor) -> Result<Tensor> {
        let known = settled(&[&samples_of_any(x)?])?;
        let rows = known.first().map(Tensor::shape).transpose()?.and_then(|shape| shape.first()).copied();
        Ok(default_rng(self.random_state).random(&[rows.ok_or_else(lost)?]))
    }

    /// The positions of the classes whose part of the shares these numbers are in; (n,).
    fn by_shares(&self, draws: &Tensor) -> Tensor {
        let last = self.class_prior.iter().rposition(|share| 0.0 < *share).unwrap_or(0);
        let mut sum = 0.0;
        let ends = self.class_prior.iter().enumerate().map(|(at, share)| {
            sum += share;
            // Rounding of the sum leaves nothing to classes without a share.
            if at < last { sum } else { f64::INFINITY }
        });
        let ends: Array1<f64> = ends.collect();
        draws.expand_dims(1).greater_equal(tensor(&ends)).count_nonzero(1)
    }
}

/// The same position for each sample; (n,), int64.
#[track_caller]
fn same(x: &Tensor, position: usize) -> Result<Tensor> {
    let first = samples_of_any(x)?.get(&[(..).into(), (..1i64).into()]);
    Ok(first.isnan().any(1).logical_and(false).astype(DType::I64) + position as i64)
}

saved!(FittedDummyClassifier, "DummyClassifier", |model| {
    let count = model.classes.len();
    0 < count && model.class_prior.len() == count && model.constant < count
});

classifies!(FittedDummyClassifier, "DummyClassifier", predict_log_proba);

impl fmt::Display for FittedDummyClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DummyClassifier of classes {:?}, {:?}", self.classes, self.strategy)?;
        show::line(f, "class_prior", &self.class_prior)
    }
}
