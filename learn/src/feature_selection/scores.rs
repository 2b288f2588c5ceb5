//! Scores of features by their dependence on a target, each by one plan.

use super::survival::{chi2_survival, f_survival};
use crate::base::FitOptions;
use crate::checks::{Nan, Training, refused};
use crate::labels::Classes;
use crate::passes::is_constant;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Axis};
use tharsis_numeric::{Result, Tensor};

/// Scores of features, and the chances of larger ones if a feature told nothing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Scores {
    /// The statistics; (d,).
    pub scores: Array1<f64>,
    /// The p-values; (d,).
    pub pvalues: Array1<f64>,
}

/// scikit-learn's `f_classif`: the variance of each feature between classes against that within them, for
/// samples (n, d) and labels (n,). A constant feature has NaN for both.
///
/// ```
/// use tharsis_learn::feature_selection::f_classif;
/// use tharsis_numeric::array;
/// let x = array([0.0, 5.0, 1.0, 5.5, 8.0, 5.5, 9.0, 5.0]).reshape(&[4, 2]);
/// let found = f_classif(&x, &array([0i64, 0, 1, 1]), ..)?;
/// assert!(found.pvalues[0] < 0.01 && found.pvalues[1] == 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for shapes that do not fit, no samples, no features, more than 2^14 groups, complex
/// numbers, NaN and infinity; `OverflowError` for sums beyond float64; errors of the passes.
#[track_caller]
pub fn f_classif(x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<Scores> {
    of_classes(&Training::supervised("f_classif", x, Some(y), &options.into())?.without_weights()?)
}

/// scikit-learn's `f_regression`: the correlation of each feature with a target, for samples (n, d) and
/// targets (n,). A constant feature has score 0. Two samples tell nothing: scores are 0 and p-values NaN,
/// where those of scikit-learn are NaN or 1 by its rounding.
///
/// ```
/// use tharsis_learn::feature_selection::f_regression;
/// use tharsis_numeric::array;
/// let x = array([0.0, 5.0, 1.0, 5.0, 2.0, 5.0, 3.5, 5.0]).reshape(&[4, 2]);
/// let found = f_regression(&x, &array([0.0, 1.0, 2.0, 3.0]), ..)?;
/// assert!(100.0 < found.scores[0] && found.scores[1] == 0.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for several targets, shapes that do not fit, no samples, no features, complex numbers, NaN
/// and infinity; `OverflowError` for sums beyond float64; errors of the passes.
#[track_caller]
pub fn f_regression(x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<Scores> {
    of_targets(&Training::supervised("f_regression", x, Some(y), &options.into())?.without_weights()?)
}

/// scikit-learn's `chi2`: the sums of each feature in the classes against those that their shares would make,
/// for samples (n, d), not negative, and labels (n,).
///
/// ```
/// use tharsis_learn::feature_selection::chi2;
/// use tharsis_numeric::array;
/// let x = array([9.0, 1.0, 8.0, 1.0, 0.0, 1.0, 1.0, 1.0]).reshape(&[4, 2]);
/// let found = chi2(&x, &array([0i64, 0, 1, 1]), ..)?;
/// assert!(found.pvalues[0] < 0.001 && found.scores[1] == 0.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for negative numbers, labels that are not whole, shapes that do not fit, no samples, no
/// features, complex numbers, NaN and infinity; `OverflowError` for sums beyond float64; errors of the
/// passes.
#[track_caller]
pub fn chi2(x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<Scores> {
    of_counts(&Training::supervised("chi2", x, Some(y), &options.into())?.without_weights()?)
}

/// As [`f_classif`], of data that have been checked.
#[track_caller]
pub(crate) fn of_classes(training: &Training) -> Result<Scores> {
    let classes = Classes::of_any_numbers(training)?;
    // Sums of numbers around their mean, and squares around the means of the classes, lose no digits.
    let shift = training.x.mean(0);
    let (x, member) = (&(&training.x - &shift), classes.indicators());
    let count = member.sum(0);
    let mean = member.t().matmul(x) / count.expand_dims(1);
    let within = (x - member.matmul(&mean)).square().sum(0);
    let states = training.engine.run(&[&count, &(mean - x.mean(0)), &within, &shift])?;
    if !all_finite(&states) {
        return Err(training.not_finite(Nan::Refused));
    }
    let [count, offset, within, shift] = <[_; 4]>::try_from(states).map_err(|_| lost())?;
    let (count, offset, within, shift) = (vector(count)?, matrix(offset)?, vector(within)?, vector(shift)?);
    let weights = count.view().insert_axis(Axis(1));
    let between = (&offset * &offset * weights).sum_axis(Axis(0));
    let (above, below) = (count.len() as f64 - 1.0, training.rows as f64 - count.len() as f64);
    // Rounding leaves a constant feature with variances, of which a quotient would tell nothing.
    let variance = (&between + &within) / training.rows as f64;
    let mut scores = (between / above) / (within / below);
    for ((score, &variance), &mean) in scores.iter_mut().zip(&variance).zip(&shift) {
        if is_constant(variance, mean) {
            *score = f64::NAN;
        }
    }
    let pvalues = scores.mapv(|score| f_survival(above, below, score));
    Ok(Scores { scores, pvalues })
}

/// As [`f_regression`], of data that have been checked.
#[track_caller]
pub(crate) fn of_targets(training: &Training) -> Result<Scores> {
    let y = training.target_columns()?;
    if y.shape()?[1] != 1 {
        let shape = y.shape()?;
        return Err(refused(format!("y should be a 1d array, got an array of shape {shape:?} instead.")));
    }
    let (x, y) = (&training.x - training.x.mean(0), &y - y.mean(0));
    let states = training.engine.run(&[&(&x * &y).sum(0), &x.square().sum(0), &y.square().sum(..)])?;
    if !all_finite(&states) {
        return Err(training.not_finite(Nan::Refused));
    }
    let [products, squares, target] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
    let (products, squares, target) = (vector(products)?, vector(squares)?, target.sum());
    let below = training.rows as f64 - 2.0;
    let scores: Array1<f64> = products
        .iter()
        .zip(&squares)
        .map(|(&product, &squares)| {
            // Rounding may leave more than all. NaN stays, which a minimum would not let it.
            let share = (product / squares) * (product / target);
            let share = if 1.0 < share { 1.0 } else { share };
            share / (1.0 - share) * below
        })
        .collect();
    // Of a constant feature, and of two samples, no number tells anything: the score is 0, as scikit-learn
    // has it. That of a feature which is the target is finite.
    let pvalues = scores.mapv(|score| f_survival(1.0, below, if score.is_nan() { 0.0 } else { score }));
    let scores = scores.mapv(|score| if score.is_nan() { 0.0 } else { score.min(f64::MAX) });
    Ok(Scores { scores, pvalues })
}

/// As [`chi2`], of data that have been checked.
#[track_caller]
pub(crate) fn of_counts(training: &Training) -> Result<Scores> {
    let classes = Classes::of(training)?;
    let (x, member) = (&training.x, classes.indicators());
    let states = training.engine.run(&[&member.t().matmul(x), &member.sum(0), &x.min(..), &x.max(..)])?;
    if !all_finite(&states) {
        return Err(training.not_finite(Nan::Refused));
    }
    let [observed, count, least, _] = <[_; 4]>::try_from(states).map_err(|_| lost())?;
    if least.sum() < 0.0 {
        return Err(refused("Input X must be non-negative."));
    }
    let (observed, count) = (matrix(observed)?, vector(count)?);
    let share = (&count / training.rows as f64).insert_axis(Axis(1));
    let expected = share * observed.sum_axis(Axis(0));
    let distance = &observed - &expected;
    let scores = (&distance * &(&distance / &expected)).sum_axis(Axis(0));
    // One class has no freedom, as in scikit-learn.
    let scores = if count.len() == 1 { scores * f64::NAN } else { scores };
    let pvalues = scores.mapv(|score| chi2_survival(count.len() as f64 - 1.0, score));
    Ok(Scores { scores, pvalues })
}
