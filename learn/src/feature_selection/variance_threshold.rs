//! Features that vary.

use super::support::Support;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::check_not_negative;
use crate::checks::{Nan, Training, refused};
use crate::params::parameters;
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, vector};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `VarianceThreshold`: leaves out features whose variance is not above a threshold.
///
/// NaN counts as missing.
///
/// ```
/// use tharsis_learn::feature_selection::VarianceThreshold;
/// use tharsis_numeric::array;
/// let x = array([1.0, 7.0, 2.0, 7.0]).reshape(&[2, 2]);
/// let model = VarianceThreshold::new().fit(&x, ..)?;
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [1.0, 2.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct VarianceThreshold {
    threshold: f64,
}

parameters!(VarianceThreshold, "VarianceThreshold", ["threshold" => threshold]);

/// A fitted [`VarianceThreshold`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedVarianceThreshold {
    /// scikit-learn's `variances_`: the variance of each feature, with divisor n; without a threshold, and
    /// without NaN, at most the distance of its ends, which is 0 for a constant; (d,).
    pub variances: Array1<f64>,
    support: Support,
}

impl VarianceThreshold {
    /// An estimator with scikit-learn's defaults: leaves out features that are constant.
    pub fn new() -> VarianceThreshold {
        VarianceThreshold::default()
    }

    /// scikit-learn's `threshold`: the largest variance of a feature that is left out.
    pub fn threshold(self, threshold: f64) -> VarianceThreshold {
        VarianceThreshold { threshold }
    }

    /// Fits the selector on samples (n, d), of any real dtype. One plan, which reads them for the means and
    /// then for the squares around them.
    ///
    /// # Errors
    /// `ValueError` for a negative threshold, no feature above it, samples of other than two axes, without
    /// rows or features, complex or infinite; `OverflowError` for sums beyond float64; `TypeError` for
    /// weights; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedVarianceThreshold> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for VarianceThreshold {
    type Fitted = FittedVarianceThreshold;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedVarianceThreshold> {
        check_not_negative("VarianceThreshold", "threshold", self.threshold)?;
        let training = Training::unsupervised("VarianceThreshold", x, options)?.without_weights()?;
        let x = &training.x;
        let has_nan = x.isnan().any(0);
        let states = training.engine.run(&[&x.nanvar(0, 0.0), &x.nanmin(0), &x.nanmax(0), &has_nan])?;
        let [variances, least, most, has_nan] = <[_; 4]>::try_from(states).map_err(|_| lost())?;
        if least.iter().chain(&most).any(|end| end.is_infinite()) {
            training.explain_not_finite(Nan::Missing)?;
        }
        let (mut variances, least, most) = (vector(variances)?, vector(least)?, vector(most)?);
        let has_nan = vector(has_nan)?;
        for (at, variance) in variances.iter_mut().enumerate() {
            if self.threshold == 0.0 && has_nan[at] == 0.0 {
                *variance = variance.min(most[at] - least[at]);
            }
            // A feature without numbers has no variance.
            if !variance.is_finite() && most[at].is_finite() {
                return Err(training.beyond_float64());
            }
        }
        let mask: Vec<bool> = variances.iter().map(|&variance| self.threshold < variance).collect();
        if !mask.contains(&true) {
            let one = if training.rows == 1 { " (X contains only one sample)" } else { "" };
            return Err(refused(format!(
                "No feature in X meets the variance threshold {:.5}{one}",
                self.threshold
            )));
        }
        let support = Support { model: "VarianceThreshold", mask, takes_nan: true };
        Ok(FittedVarianceThreshold { variances, support })
    }
}

impl FittedVarianceThreshold {
    /// scikit-learn's `get_support`: whether each feature is kept; (d,).
    #[must_use]
    pub fn support(&self) -> &[bool] {
        &self.support.mask
    }

    /// The kept features of samples, as an expression: (n, d) to (n, k). Carries a `ValueError` for another
    /// number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.support.transform(x)
    }

    /// Samples with zeros in the place of features that were left out: (n, k) to (n, d).
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        self.support.inverse_transform(x)
    }
}

saved!(FittedVarianceThreshold, "VarianceThreshold", |model| model.support.is_sound(&[&model.variances]));

impl Transform for FittedVarianceThreshold {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedVarianceThreshold::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        self.support.names(names)
    }
}

impl fmt::Display for FittedVarianceThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VarianceThreshold: {} of {} features", self.support.chosen().len(), self.variances.len())?;
        show::line(f, "variances", &self.variances)
    }
}
