//! Labels and probabilities from the joint log likelihood of samples and classes, (n, k).

use crate::checks::refused;
use crate::labels::{largest, log_sum_exp};
use ndarray::Array1;
use tharsis_numeric::{Result, Tensor};

/// Distance of a sum of probabilities from 1: NumPy's `isclose` allows 1e-5 of it, and 1e-8.
const SUM_TOLERANCE: f64 = 1e-5 + 1e-8;

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

/// Checks given probabilities of the classes, as far as that needs no data. Their sum may differ from 1 by
/// what NumPy's `isclose` allows.
///
/// # Errors
/// `ValueError` for negative ones, and those that do not add up to 1.
#[track_caller]
pub(crate) fn check_shares(priors: &[f64]) -> Result<()> {
    let sum: f64 = priors.iter().sum();
    let is_one = (sum - 1.0).abs() <= SUM_TOLERANCE;
    if !is_one {
        return Err(refused("The sum of the priors should be 1."));
    }
    check_signs(priors)
}

/// Checks that none of given probabilities is negative, NaN or infinite.
///
/// # Errors
/// `ValueError` otherwise.
#[track_caller]
pub(crate) fn check_signs(priors: &[f64]) -> Result<()> {
    if priors.iter().all(|prior| 0.0 <= *prior && prior.is_finite()) {
        return Ok(());
    }
    Err(refused("Priors must be non-negative."))
}

/// Given probabilities of so many classes, in ascending order.
///
/// # Errors
/// `ValueError` for another number of them.
#[track_caller]
pub(crate) fn check_count(priors: &[f64], classes: usize) -> Result<Array1<f64>> {
    if priors.len() == classes {
        return Ok(Array1::from(priors.to_vec()));
    }
    Err(refused("Number of priors must match number of classes."))
}
