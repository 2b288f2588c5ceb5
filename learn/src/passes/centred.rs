//! Samples and targets around their means, as expressions: for fits that need the samples themselves.

use crate::checks::{Nan, Training, refused};
use crate::dense::tensor;
use crate::passes::moments::Around;
use crate::states::{all_finite, lost, vector};
use ndarray::Array1;
use tharsis_numeric::{Result, Tensor};

/// Samples and targets less their means, times the roots of the weights.
pub(crate) struct Centred {
    /// (n, d).
    pub(crate) x: Tensor,
    /// (n, k).
    pub(crate) y: Tensor,
    /// The means of the columns, or zeros; (d,).
    pub(crate) mean: Array1<f64>,
    /// The means of the targets, or zeros; (k,).
    pub(crate) target_mean: Array1<f64>,
    /// The sum of the weights; without weights the number of samples.
    pub(crate) weight: f64,
}

impl Centred {
    /// One pass for the means; targets are (n, k).
    ///
    /// # Errors
    /// `ValueError` for NaN, infinity, negative weights, and weights that are all zero; `OverflowError` for
    /// sums beyond float64; errors of the pass.
    #[track_caller]
    pub(crate) fn of(training: &Training, targets: &Tensor, around: Around) -> Result<Centred> {
        let mean = |columns: &Tensor| match &training.weight {
            _ if around == Around::Zero => columns.get(&[(..0i64).into()]).sum(0),
            None => columns.mean(0),
            Some(weight) => (columns * weight.expand_dims(1)).sum(0) / weight.sum(..),
        };
        let weight = match &training.weight {
            Some(weight) => weight.sum(..),
            None => Tensor::number(training.rows as f64),
        };
        let states = training.engine.run(&[&weight, &mean(&training.x), &mean(targets)])?;
        if states.first().is_some_and(|weight| weight.sum() == 0.0) {
            return Err(refused("Weights sum to zero, can't be normalized"));
        }
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let [weight, mean, target_mean] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
        let (mean, target_mean) = (vector(mean)?, vector(target_mean)?);
        let root = training.weight.as_ref().map(|weight| weight.sqrt().expand_dims(1));
        let rooted = |columns: &Tensor, mean: &Array1<f64>| {
            let around = columns - tensor(mean);
            root.as_ref().map_or_else(|| around.clone(), |root| &around * root)
        };
        let (x, y) = (rooted(&training.x, &mean), rooted(targets, &target_mean));
        Ok(Centred { x, y, mean, target_mean, weight: weight.sum() })
    }
}
