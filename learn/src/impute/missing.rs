//! Numbers that stand for missing ones.

use crate::checks::{Nan, Training};
use tharsis_numeric::{Result, Tensor};

/// The number that stands for a missing one: NaN, or any other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missing(pub(crate) f64);

impl Missing {
    /// Whether each number is missing.
    #[track_caller]
    pub(crate) fn mask(self, x: &Tensor) -> Tensor {
        if self.0.is_nan() { x.isnan() } else { x.equal(self.0) }
    }

    /// Checks the samples of a fit; one pass.
    ///
    /// # Errors
    /// `ValueError` for infinity, and for NaN unless it stands for missing numbers; errors of the pass.
    #[track_caller]
    pub(crate) fn check(self, training: &Training) -> Result<()> {
        training.check_finite(if self.0.is_nan() { Nan::Missing } else { Nan::Refused })
    }
}
