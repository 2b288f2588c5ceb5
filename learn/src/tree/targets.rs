//! Targets and weights of trees, checked by one pass.

use crate::checks::{Training, refused};
use crate::labels::{Classes, class_tensor};
use crate::states::lost;
use tharsis_numeric::{Chunks, DType, Result, Tensor};

/// Rows of a chunk of targets.
const CHUNK_ROWS: usize = 1 << 16;

/// Targets and weights of samples, all finite.
pub(crate) struct Targets {
    /// The target of each sample, or the number of its class; (n,), float64.
    pub(crate) y: Tensor,
    /// The weight of each sample; (n,).
    pub(crate) weight: Option<Tensor>,
    /// The weighted mean of the targets.
    pub(crate) mean: f64,
    /// The sum of the weights.
    pub(crate) all: f64,
    /// The number of samples with a positive weight.
    pub(crate) positive: f64,
    /// The least target.
    pub(crate) least: f64,
    /// The target farthest from zero, without its sign.
    pub(crate) farthest: f64,
}

impl Targets {
    /// Numbers, one for each sample.
    ///
    /// # Errors
    /// `ValueError` for several targets, NaN, infinity, negative weights, and weights that are all zero;
    /// errors of the pass.
    #[track_caller]
    pub(crate) fn numbers(training: &Training) -> Result<Targets> {
        let y = one_axis(training.target()?)?;
        Targets::checked(training, y.astype(DType::F64))
    }

    /// The classes of labels, ascending, and for each sample the number of its class.
    ///
    /// # Errors
    /// As [`Targets::numbers`]; `ValueError` for labels that are not whole numbers.
    #[track_caller]
    pub(crate) fn classes(training: &Training) -> Result<(Vec<i64>, Targets)> {
        let classes = Classes::of(training)?.values;
        let labels = one_axis(training.target()?)?.astype(DType::I64);
        let number = class_tensor(&classes).searchsorted(&labels).astype(DType::F64);
        Ok((classes, Targets::checked(training, number)?))
    }

    #[track_caller]
    fn checked(training: &Training, y: Tensor) -> Result<Targets> {
        // In chunks that depend on nothing else, so that sums do not either.
        let chunks = Chunks::PerAxis(vec![CHUNK_ROWS]);
        let y = y.rechunk(chunks.clone());
        let weight = training.weight.as_ref().map(|weight| weight.rechunk(chunks));
        let weighted = weight.as_ref().map_or_else(|| y.clone(), |weight| &y * weight);
        let all =
            weight.as_ref().map_or_else(|| Tensor::number(training.rows as f64), |weight| weight.sum(..));
        let number = Tensor::number(training.rows as f64);
        let positive = weight.as_ref().map_or(number, |weight| weight.greater(0.0).sum(..));
        let sums = [&y.sum(..), &weighted.sum(..), &all, &positive, &y.min(..), &y.max(..)];
        let [plain, sum, all, positive, least, most] =
            <[_; 6]>::try_from(training.engine.run(&sums)?).map_err(|_| lost())?.map(|sum| sum.sum());
        if !(plain.is_finite() && all.is_finite() && sum.is_finite()) {
            explain(training, &y)?;
        }
        if all == 0.0 {
            return Err(refused("Sample weights must contain at least one non-zero number."));
        }
        let farthest = most.abs().max(least.abs());
        Ok(Targets { y, weight, mean: sum / all, all, positive, least, farthest })
    }
}

/// Targets of one axis.
#[track_caller]
fn one_axis(y: &Tensor) -> Result<Tensor> {
    let shape = y.shape()?;
    match *shape {
        [_] => Ok(y.clone()),
        [_, 1] => Ok(y.squeeze(Some(&[1]))),
        _ => Err(refused(format!("y should be a 1d array, got an array of shape {shape:?} instead."))),
    }
}

/// The reason why targets or weights have no finite sum. No error if each of them is finite.
#[track_caller]
fn explain(training: &Training, y: &Tensor) -> Result<()> {
    let number = Tensor::number(0.0);
    let weight = training.weight.as_ref().unwrap_or(&number);
    let wrong = training.engine.run(&[
        &y.isnan().any(..),
        &y.isinf().any(..),
        &weight.isnan().any(..),
        &weight.isinf().any(..),
    ])?;
    let texts = [
        "Input y contains NaN.",
        "Input y contains infinity or a value too large for dtype('float64').",
        "Input sample_weight contains NaN or negative values.",
        "Input sample_weight contains infinity or a value too large for dtype('float64').",
    ];
    match wrong.iter().position(|found| found.sum() != 0.0) {
        Some(at) => Err(refused(texts[at])),
        None => Err(refused("The sum of the targets or weights leaves the range of dtype('float64').")),
    }
}
