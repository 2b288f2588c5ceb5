//! The covariance of samples.

use super::fitted::{Empirical, FittedCovariance};
use crate::base::{Estimator, FitOptions};
use crate::checks::Training;
use crate::params::parameters;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `EmpiricalCovariance`: the covariance of samples, with divisor n.
///
/// ```
/// use tharsis_learn::covariance::EmpiricalCovariance;
/// use tharsis_numeric::array;
/// let x = array([0.0, 0.0, 2.0, 4.0]).reshape(&[2, 2]);
/// let model = EmpiricalCovariance::new().fit(&x, ..)?;
/// assert_eq!(model.covariance[[0, 1]], 2.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct EmpiricalCovariance {
    assume_centered: bool,
}

parameters!(EmpiricalCovariance, "EmpiricalCovariance", ["assume_centered" => assume_centered]);

impl EmpiricalCovariance {
    /// An estimator with scikit-learn's defaults: around the means.
    pub fn new() -> EmpiricalCovariance {
        EmpiricalCovariance::default()
    }

    /// scikit-learn's `assume_centered`: whether products are taken around zero.
    pub fn assume_centered(self, assume_centered: bool) -> EmpiricalCovariance {
        EmpiricalCovariance { assume_centered }
    }

    /// Fits the covariance of samples (n, d), of any real dtype. One pass, rarely two.
    ///
    /// # Errors
    /// `ValueError` for other than two axes, no samples, no features, complex numbers, NaN and infinity;
    /// `OverflowError` for sums beyond float64; `MemoryError` for too many features; `TypeError` for weights;
    /// errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedCovariance> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for EmpiricalCovariance {
    type Fitted = FittedCovariance;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedCovariance> {
        let training = Training::unsupervised("EmpiricalCovariance", x, options)?.without_weights()?;
        Empirical::of(&training, self.assume_centered)?.shrunk("EmpiricalCovariance", 0.0)
    }
}
