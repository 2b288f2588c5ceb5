//! Classes of classifiers: whole numbers in ascending order.

use crate::checks::{Nan, Training, refused, samples_for};
use crate::dense::tensor;
use ndarray::{Array1, Array2};
use tharsis_graph::ops::Require;
use tharsis_kernels::Kind;
use tharsis_numeric::{Axes, DType, Error, Result, Tensor, concatenate, where_};

/// Most classes of a classifier. A sample is told apart from each of them, so states and chunks are so many
/// times as large.
const CLASSES_MAX: u64 = 1 << 14;
/// The error of scores that are NaN or infinite, though the samples are finite.
const NO_SCORE: &str =
    "Samples have no label: scores of the model are beyond float64, or NaN. Scale the features down.";

/// A target of one axis, or of one column; (n,).
#[track_caller]
fn one_axis(training: &Training) -> Result<Tensor> {
    let y = training.target()?;
    match *y.shape()? {
        [_, 1] => Ok(y.squeeze(Some(&[1]))),
        [_] => Ok(y.clone()),
        ref shape => {
            Err(refused(format!("y should be a 1d array, got an array of shape {shape:?} instead.")))
        }
    }
}

/// The classes of a fit, ascending, and the labels of its samples.
pub(crate) struct Classes {
    pub(crate) values: Vec<i64>,
    /// The label of each sample; (n,), int64.
    labels: Tensor,
}

impl Classes {
    /// The distinct labels of the target. One or two passes over it.
    ///
    /// # Errors
    /// `ValueError` for a target of other than one axis, with numbers that are not whole, NaN or beyond
    /// int64, or with more than 2^14 classes; errors of the passes.
    #[track_caller]
    pub(crate) fn of(training: &Training) -> Result<Classes> {
        let y = one_axis(training)?;
        check_whole(training, &y)?;
        let labels = y.astype(DType::I64);
        // No closure: it would not know the caller.
        match training.engine.integers(&labels.unique(), CLASSES_MAX)? {
            Ok(values) => Ok(Classes { values, labels }),
            Err(count) => Err(too_many(training, count)),
        }
    }

    /// As [`Classes::of`], of targets that need not be whole: the classes are the positions of their distinct
    /// numbers. For scores that need groups alone.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub(crate) fn of_any_numbers(training: &Training) -> Result<Classes> {
        let y = one_axis(training)?;
        if !y.dtype()?.is_float() {
            return Classes::of(training);
        }
        let y = y.astype(DType::F64);
        let numbers = match training.engine.elements::<f64>(&[&y.unique()], CLASSES_MAX)? {
            Ok(numbers) => numbers.concat(),
            Err(count) => return Err(too_many(training, count)),
        };
        if numbers.iter().any(|number| !number.is_finite()) {
            training.explain_not_finite(Nan::Missing)?;
        }
        let labels = Tensor::from_elements(&[numbers.len()], &numbers).searchsorted(&y);
        Ok(Classes { values: (0..numbers.len() as i64).collect(), labels })
    }

    /// The labels of a part of some data, whose classes are those of all.
    ///
    /// # Errors
    /// `ValueError` for a target of other than one axis.
    #[track_caller]
    pub(crate) fn of_part(training: &Training, values: &[i64]) -> Result<Classes> {
        Ok(Classes { values: values.to_vec(), labels: one_axis(training)?.astype(DType::I64) })
    }

    /// At least two classes.
    ///
    /// # Errors
    /// `ValueError` for one class.
    #[track_caller]
    pub(crate) fn at_least_two(self) -> Result<Classes> {
        match self.values[..] {
            [only] => Err(refused(format!(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one \
                 class: {only}"
            ))),
            _ => Ok(self),
        }
    }

    /// Whether each sample is of each class; (n, k), float64 zeros and ones.
    #[track_caller]
    pub(crate) fn indicators(&self) -> Tensor {
        self.labels.expand_dims(1).equal(class_tensor(&self.values)).astype(DType::F64)
    }

    /// The position of the class of each sample among the classes; (n,), int64.
    #[track_caller]
    pub(crate) fn positions(&self) -> Tensor {
        class_tensor(&self.values).searchsorted(&self.labels)
    }

    /// Whether each sample is of the last class; (n, 1), float64 zeros and ones.
    #[track_caller]
    pub(crate) fn is_last(&self) -> Tensor {
        let last = self.values.last().copied().unwrap_or(0);
        self.labels.expand_dims(1).equal(last).astype(DType::F64)
    }
}

/// The error of targets with so many distinct numbers.
#[track_caller]
fn too_many(training: &Training, count: u64) -> Error {
    refused(format!(
        "y has {count} classes, {} takes at most {CLASSES_MAX}. Maybe you are trying to fit a classifier on a \
         regression target.",
        training.estimator
    ))
}

/// Whether each target is no whole number within int64; none if the dtype has no others.
#[track_caller]
pub(crate) fn is_not_whole(y: &Tensor) -> Result<Option<Tensor>> {
    Ok(match y.dtype()? {
        DType::U64 => Some(y.greater(i64::MAX)),
        dtype if dtype.kind() == Kind::Float => {
            let limit = 2f64.powi(63);
            let y = y.astype(DType::F64);
            let fits = y.greater_equal(-limit).logical_and(y.less(limit));
            Some(y.equal(y.trunc()).logical_and(fits).logical_not())
        }
        _ => None,
    })
}

#[track_caller]
fn check_whole(training: &Training, y: &Tensor) -> Result<()> {
    let Some(is_wrong) = is_not_whole(y)? else { return Ok(()) };
    let found = training.engine.run(&[&is_wrong.any(..)])?;
    if found.iter().all(|found| found.sum() == 0.0) {
        return Ok(());
    }
    training.explain_not_finite(Nan::Missing)?;
    if y.dtype()? == DType::U64 {
        return Err(refused("Unknown label type: uint64 beyond int64. Number the classes."));
    }
    Err(refused(
        "Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects discrete \
         classes on a regression target with continuous values.",
    ))
}

/// The class with the largest score for each sample: (n, k) to (n,), int64.
///
/// Carries a `ValueError` when run if a score is NaN, as there is no largest one then, or infinite. A class
/// that cannot be has a score of negative infinity.
#[track_caller]
pub(crate) fn largest(scores: &Tensor, classes: &[i64]) -> Tensor {
    class_tensor(classes).take_at(&of_scores(&scores.argmax(1), &is_known(scores)), 0)
}

/// Whether the scores of all classes are known, for each sample: (n, k) to (n,). Negative infinity is the
/// score of a class that cannot be.
#[track_caller]
pub(crate) fn is_known(scores: &Tensor) -> Tensor {
    scores.isnan().logical_or(scores.equal(f64::INFINITY)).any(1).logical_not()
}

/// The labels of scores: of one for two classes or a single one, (n,), the second class where it is positive;
/// of one for each class, (n, k), as [`largest`]. (n,), int64.
#[track_caller]
pub(crate) fn chosen_label(scores: &Tensor, classes: &[i64]) -> Tensor {
    let [negative, positive] = match *classes {
        [only] if scores.ndim().is_ok_and(|rank| rank == 1) => [only, only],
        [negative, positive] => [negative, positive],
        _ => return largest(scores, classes),
    };
    let labels = class_tensor(&[negative, positive]);
    let label = |at: i64| labels.get(&[at.into()]);
    let chosen = where_(&scores.greater(0.0), label(1), label(0));
    of_scores(&chosen, &scores.isfinite())
}

/// A result of scores, each of which is known. Carries a `ValueError` when run otherwise: labels do not show
/// of what they were made.
#[track_caller]
pub(crate) fn of_scores(made: &Tensor, is_known: &Tensor) -> Tensor {
    Tensor::apply(Require { message: NO_SCORE.to_owned() }, &[made, is_known])
}

/// Scores that are linear in the features, as expressions: of one for two classes (1, d), (n,); else of one
/// for each class (k, d), (n, k). Carries a `ValueError` for another number of features.
#[track_caller]
pub(crate) fn linear_scores(model: &str, x: &Tensor, coef: &Array2<f64>, intercept: &Array1<f64>) -> Tensor {
    let samples = match samples_for(model, x, coef.ncols()) {
        Ok(samples) => samples,
        Err(error) => return Tensor::from(error),
    };
    let scores = samples.matmul(&tensor(coef).t()) + tensor(intercept);
    if coef.nrows() == 1 { scores.squeeze(Some(&[1])) } else { scores }
}

/// The logarithms of the chances of classes by the same scores: logistic for two classes, else softmax;
/// (n, k).
#[track_caller]
pub(crate) fn log_chances(scores: &Tensor, classes: &[i64]) -> Tensor {
    if classes.len() != 2 {
        return scores - log_sum_exp(scores);
    }
    // log(1 / (1 + exp(-s))) for both signs of the score.
    let scores = scores.expand_dims(1);
    let both = concatenate(&[&-&scores, &scores], 1);
    both.minimum(0.0) - both.abs().negative().exp().log1p()
}

/// Classes as a tensor; (k,), int64.
#[track_caller]
pub(crate) fn class_tensor(classes: &[i64]) -> Tensor {
    Tensor::from_elements(&[classes.len()], classes)
}

/// The logarithm of the sum of exponentials of each row; (n, k) to (n, 1).
#[track_caller]
pub(crate) fn log_sum_exp(scores: &Tensor) -> Tensor {
    let rows = || Axes::from(1).keepdims();
    let largest = scores.max(rows());
    (scores - &largest).exp().sum(rows()).log() + largest
}

/// Values of some classes, by their positions among so many, as values of all; zero for others. (n, m) to
/// (n, k).
#[track_caller]
pub(crate) fn spread(values: &Tensor, found: &[i64], classes: usize) -> Tensor {
    if found.len() == classes {
        return values.clone();
    }
    let place = |(from, to): (usize, usize)| f64::from(u8::from(found.get(from) == Some(&(to as i64))));
    values.matmul(&crate::dense::tensor(&Array2::from_shape_fn((found.len(), classes), place)))
}
