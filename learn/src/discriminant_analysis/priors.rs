//! Chances of classes before a sample is seen.

use crate::checks::refused;
use ndarray::Array1;
use tharsis_numeric::Result;

/// Distance of a sum of chances from 1 above which they are divided by it.
const SUM_TOLERANCE: f64 = 1e-5;

/// Checks given chances as far as that needs no data.
///
/// # Errors
/// `ValueError` for negative ones and NaN, and if all are zero.
#[track_caller]
pub(super) fn check(priors: Option<&Vec<f64>>) -> Result<()> {
    let Some(priors) = priors else { return Ok(()) };
    if !priors.iter().all(|prior| 0.0 <= *prior && prior.is_finite()) {
        return Err(refused("priors must be non-negative"));
    }
    if priors.iter().sum::<f64>() == 0.0 {
        return Err(refused("priors must not all be zero"));
    }
    Ok(())
}

/// The given chances as they are, or the shares of the classes.
///
/// # Errors
/// `ValueError` for another number of given ones than of classes.
#[track_caller]
pub(super) fn of(priors: Option<&Vec<f64>>, count: &Array1<f64>) -> Result<Array1<f64>> {
    let Some(given) = priors else { return Ok(count / count.sum()) };
    if given.len() != count.len() {
        return Err(refused("Number of priors must match number of classes."));
    }
    Ok(Array1::from(given.clone()))
}

/// Chances divided by their sum, unless that is 1.
pub(super) fn normalised(priors: Array1<f64>) -> Array1<f64> {
    let sum = priors.sum();
    let is_one = (sum - 1.0).abs() <= SUM_TOLERANCE;
    if is_one { priors } else { priors / sum }
}
