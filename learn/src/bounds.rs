//! Ranges of parameters, with the texts of scikit-learn.

use crate::checks::refused;
use std::fmt::Display;
use tharsis_numeric::Result;

/// Checks a parameter of an estimator: what it must be, and what was found.
///
/// # Errors
/// `ValueError` unless it is sound.
#[track_caller]
pub(crate) fn check(
    estimator: &str,
    parameter: &str,
    is_sound: bool,
    wanted: &str,
    found: impl Display,
) -> Result<()> {
    if is_sound {
        return Ok(());
    }
    Err(refused(format!("The '{parameter}' parameter of {estimator} must be {wanted}. Got {found} instead.")))
}

/// Checks a float that is zero or more.
///
/// # Errors
/// `ValueError` for a negative one, NaN and infinity.
#[track_caller]
pub(crate) fn check_not_negative(estimator: &str, parameter: &str, found: f64) -> Result<()> {
    let is_sound = 0.0 <= found && found.is_finite();
    check(estimator, parameter, is_sound, "a float in the range [0.0, inf)", found)
}

/// Checks a float that is more than zero.
///
/// # Errors
/// `ValueError` for others, NaN and infinity.
#[track_caller]
pub(crate) fn check_positive(estimator: &str, parameter: &str, found: f64) -> Result<()> {
    let is_sound = 0.0 < found && found.is_finite();
    check(estimator, parameter, is_sound, "a float in the range (0.0, inf)", found)
}

/// Checks a whole number that is at least `least`.
///
/// # Errors
/// `ValueError` for a smaller one.
#[track_caller]
pub(crate) fn check_count(estimator: &str, parameter: &str, found: usize, least: usize) -> Result<()> {
    let wanted = format!("an int in the range [{least}, inf)");
    check(estimator, parameter, least <= found, &wanted, found)
}

/// Checks a number of folds.
///
/// # Errors
/// `ValueError` for fewer than two.
#[track_caller]
pub(crate) fn check_folds(estimator: &str, folds: Option<usize>) -> Result<()> {
    let Some(folds) = folds else { return Ok(()) };
    check(estimator, "cv", 2 <= folds, "an int in the range [2, inf) or None", folds)
}
