//! Scores of models, each by one pass.

use crate::checks::{Nan, Training, refused};
use crate::passes::in_fixed_chunks;
use crate::states::{all_finite, lost};
use tharsis_numeric::{DType, Result, Tensor};

/// Fewest samples of which R² is defined.
const R2_ROWS_MIN: usize = 2;

/// scikit-learn's R²: the share of the variance of targets that predictions explain, averaged over targets.
/// NaN for fewer than two samples.
///
/// # Errors
/// `ValueError` for shapes that do not fit, or for NaN or infinity; `OverflowError` for sums beyond float64;
/// errors of the pass.
#[track_caller]
pub(crate) fn r2(training: &Training, predicted: &Tensor) -> Result<f64> {
    let y = training.target_columns()?;
    let predicted = if predicted.ndim()? == 1 { predicted.expand_dims(1) } else { predicted.clone() };
    if y.shape()? != predicted.shape()? {
        let [expected, found] =
            [y.shape()?, predicted.shape()?].map(|shape| shape.last().copied().unwrap_or(1));
        return Err(refused(format!(
            "y_true and y_pred have different number of output ({expected}!={found})"
        )));
    }
    let predicted = in_fixed_chunks(&predicted, predicted.shape()?[1]);
    let left = (&y - &predicted).square();
    let mut states = match &training.weight {
        None => {
            let spread = (&y - y.mean(0)).square().sum(0);
            training.engine.run(&[&left.sum(0), &spread])?
        }
        Some(weight) => {
            let weight = weight.expand_dims(1);
            let mean = (&y * &weight).sum(0) / weight.sum(..);
            let spread = ((&y - mean).square() * &weight).sum(0);
            training.engine.run(&[&(left * &weight).sum(0), &spread, &weight.sum(..)])?
        }
    };
    if let Some(all) = states.get(2) {
        check_some_weight(all.sum())?;
        states.truncate(2);
    }
    if !all_finite(&states) {
        return Err(training.not_finite(Nan::Refused));
    }
    if training.rows < R2_ROWS_MIN {
        return Ok(f64::NAN);
    }
    let [left, spread] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
    let shares = left.iter().zip(&spread).map(|(&left, &spread)| match (left == 0.0, spread == 0.0) {
        (true, true) => 1.0,
        (false, true) => 0.0,
        _ => 1.0 - left / spread,
    });
    Ok(shares.sum::<f64>() / spread.len() as f64)
}

/// scikit-learn's accuracy: the share of the samples, or of their weights, whose label is the predicted one.
///
/// # Errors
/// `ValueError` for shapes that do not fit; errors of the pass.
#[track_caller]
pub(crate) fn accuracy(training: &Training, predicted: &Tensor) -> Result<f64> {
    let y = training.target()?;
    let y = match *y.shape()? {
        [_] => y.clone(),
        [_, 1] => y.squeeze(Some(&[1])),
        _ => return Err(refused("y should be a 1d array of labels")),
    };
    let is_right = y.equal(predicted).astype(DType::F64);
    // Labels that are not finite are no wrong predictions.
    let is_label = y.isfinite().all(..);
    let (right, all) = match &training.weight {
        None => (is_right.sum(..), Tensor::number(training.rows as f64)),
        Some(weight) => ((is_right * weight).sum(..), weight.sum(..)),
    };
    let states = training.engine.run(&[&right, &all, &is_label])?;
    if !all_finite(&states) || states.last().is_some_and(|is_label| is_label.sum() == 0.0) {
        return Err(training.not_finite(Nan::Refused));
    }
    let [right, all, _] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
    check_some_weight(all.sum())?;
    Ok(right.sum() / all.sum())
}

/// Checks the sum of the weights of all samples.
///
/// # Errors
/// `ValueError` if it is zero: there would be no average.
#[track_caller]
pub(crate) fn check_some_weight(all: f64) -> Result<()> {
    if all == 0.0 {
        return Err(refused("Sample weights must contain at least one non-zero number."));
    }
    Ok(())
}
