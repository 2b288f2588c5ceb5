//! Labels and probabilities from the joint log likelihood of samples and classes, (n, k).

use crate::base::FitOptions;
use crate::checks::{Training, refused};
use crate::labels::{largest, log_sum_exp};
use crate::score::accuracy;
use ndarray::Array1;
use tharsis_numeric::{Result, Tensor};

/// The most likely class of each sample.
#[track_caller]
pub(crate) fn predict(joint: Result<Tensor>, classes: &[i64]) -> Tensor {
    match joint {
        Ok(joint) => largest(&joint, classes),
        Err(error) => Tensor::from(error),
    }
}

/// The logarithm of the probability of each class.
#[track_caller]
pub(crate) fn log_proba(joint: Result<Tensor>) -> Tensor {
    match joint {
        Ok(joint) => &joint - log_sum_exp(&joint),
        Err(error) => Tensor::from(error),
    }
}

/// The share of right predictions.
///
/// # Errors
/// `ValueError` for shapes that do not fit; errors of the pass.
#[track_caller]
pub(crate) fn score(
    model: &'static str,
    x: &Tensor,
    y: &Tensor,
    options: &FitOptions,
    predict: impl Fn(&Tensor) -> Tensor,
) -> Result<f64> {
    let training = Training::supervised(model, x, Some(y), options)?;
    accuracy(&training, &predict(&training.x))
}

/// Given probabilities of the classes, in ascending order.
///
/// # Errors
/// `ValueError` for another number of them, negative ones, or those that do not add up to 1.
#[track_caller]
pub(crate) fn checked_priors(priors: &[f64], classes: usize) -> Result<Array1<f64>> {
    let sum: f64 = priors.iter().sum();
    let reason = if priors.len() != classes {
        "Number of priors must match number of classes."
    } else if 1e-8 < (sum - 1.0).abs() || sum.is_nan() {
        "The sum of the priors should be 1."
    } else if priors.iter().any(|&prior| prior < 0.0) {
        "Priors must be non-negative."
    } else {
        return Ok(Array1::from(priors.to_vec()));
    };
    Err(refused(reason))
}
