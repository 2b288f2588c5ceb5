//! Numbers that stand for missing ones.

use crate::checks::{Nan, Training, in_dtype_of};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{DType, Result, Tensor};

/// The number that stands for a missing one: NaN, or any other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Missing(pub(crate) f64);

impl Missing {
    /// Whether each number is missing, of samples in float64 that were given as `x`. The number that stands
    /// for missing ones is rounded to the dtype of `x`: in float32 no sample is 0.1.
    #[track_caller]
    pub(crate) fn mask(self, samples: &Tensor, x: &Tensor) -> Tensor {
        if self.0.is_nan() {
            return samples.isnan();
        }
        samples.equal(in_dtype_of(x, Tensor::number(self.0)).astype(DType::F64))
    }

    /// The kind of NaN among samples.
    pub(crate) fn nan(self) -> Nan {
        if self.0.is_nan() { Nan::Missing } else { Nan::Refused }
    }

    /// Checks the samples of a fit; one pass.
    ///
    /// # Errors
    /// `ValueError` for infinity, and for NaN unless it stands for missing numbers; errors of the pass.
    #[track_caller]
    pub(crate) fn check(self, training: &Training) -> Result<()> {
        training.check_finite(self.nan())
    }
}
