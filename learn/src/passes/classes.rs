//! Samples around the means of their classes, by one plan.

use crate::checks::{Nan, Training};
use crate::dense::tensor;
use crate::labels::Classes;
use crate::passes::chunks::in_fixed_chunks;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2};
use tharsis_numeric::{Result, Tensor};

/// The means of classes, and what is left of the samples behind them.
pub(crate) struct ClassMeans {
    /// The samples of each class; (k,).
    pub(crate) count: Array1<f64>,
    /// (k, d).
    pub(crate) mean: Array2<f64>,
    /// Whether each sample is of each class; (n, k).
    pub(crate) member: Tensor,
    /// Each sample less the mean of its class, as an expression; (n, d).
    pub(crate) rest: Tensor,
}

impl ClassMeans {
    /// One pass for the means. The rest is of numbers that this process holds, so that what is summed of it
    /// loses no digits and the pass that sums it reads the samples once.
    ///
    /// # Errors
    /// `ValueError` for NaN and infinity; `OverflowError` for sums beyond float64; errors of the pass.
    #[track_caller]
    pub(crate) fn of(training: &Training, classes: &Classes) -> Result<ClassMeans> {
        let (x, member) = (&training.x, classes.indicators());
        let count = member.sum(0);
        let mean = member.t().matmul(x) / count.expand_dims(1);
        let states = training.engine.run(&[&count, &mean])?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let [count, mean] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        let (count, mean) = (vector(count)?, matrix(mean)?);
        let rest = x - in_fixed_chunks(&member.matmul(&tensor(&mean)), training.columns);
        Ok(ClassMeans { count, mean, member, rest })
    }
}
