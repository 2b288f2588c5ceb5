//! Fitted covariance matrices, of any estimator of them.

use crate::base::FitOptions;
use crate::checks::{Training, samples_for};
use crate::dense::{eigh, tensor};
use crate::passes::{Around, Moments};
use crate::saved::{EstimatorName, name_among, saved};
use crate::show;
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Deserializer, Serialize};
use std::f64::consts::PI;
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// A fitted covariance matrix.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedCovariance {
    /// scikit-learn's `location_`: the means, or zeros; (d,).
    pub location: Array1<f64>,
    /// scikit-learn's `covariance_`; (d, d).
    pub covariance: Array2<f64>,
    /// scikit-learn's `precision_`: the inverse, without the directions in which there is no variance; (d,
    /// d).
    pub precision: Array2<f64>,
    /// scikit-learn's `shrinkage_`: the part of the identity; 0 without shrinkage.
    pub shrinkage: f64,
    #[serde(deserialize_with = "estimator")]
    name: EstimatorName,
}

/// The estimators of covariances.
const ESTIMATORS: &[&str] = &["EmpiricalCovariance", "ShrunkCovariance", "LedoitWolf", "OAS"];

fn estimator<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<&'static str, D::Error> {
    name_among(deserializer, ESTIMATORS)
}

saved!(FittedCovariance, "Covariance", |model| {
    let columns = model.location.len();
    let is_square = |matrix: &Array2<f64>| matrix.dim() == (columns, columns);
    0 < columns && is_square(&model.covariance) && is_square(&model.precision)
});

/// The moments of samples: their mean, or zeros, and their covariance with divisor n.
pub(crate) struct Empirical {
    pub(crate) location: Array1<f64>,
    pub(crate) covariance: Array2<f64>,
}

impl Empirical {
    /// One pass over the samples, rarely two.
    ///
    /// # Errors
    /// Those of [`Moments::of`].
    #[track_caller]
    pub(crate) fn of(training: &Training, assume_centered: bool) -> Result<Empirical> {
        let around = if assume_centered { Around::Zero } else { Around::Mean };
        let moments = Moments::of(training, None, around)?;
        let location = if assume_centered { Array1::zeros(training.columns) } else { moments.mean };
        Ok(Empirical { location, covariance: moments.gram / training.rows as f64 })
    }

    /// The model with a part of the identity, which has the mean variance on its diagonal.
    #[track_caller]
    pub(crate) fn shrunk(self, name: &'static str, shrinkage: f64) -> Result<FittedCovariance> {
        let mean = self.covariance.diag().sum() / self.location.len() as f64;
        let mut covariance = self.covariance * (1.0 - shrinkage);
        covariance.diag_mut().mapv_inplace(|variance| variance + shrinkage * mean);
        let precision = inverse(&covariance)?;
        Ok(FittedCovariance { location: self.location, covariance, precision, shrinkage, name })
    }
}

/// The largest eigenvalue, of those of a symmetric matrix, that is rounding.
fn rounding(values: &Array1<f64>) -> f64 {
    let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    largest * f64::EPSILON * values.len() as f64
}

/// The inverse of a symmetric matrix, without directions whose eigenvalue is rounding.
#[track_caller]
fn inverse(symmetric: &Array2<f64>) -> Result<Array2<f64>> {
    let (values, vectors) = eigh(symmetric)?;
    let bound = rounding(&values);
    let factors = values.mapv(|value| if bound < value.abs() { 1.0 / value } else { 0.0 });
    Ok((&vectors * &factors).dot(&vectors.t()))
}

impl FittedCovariance {
    /// scikit-learn's `mahalanobis`: the squared distances of samples (n, d) from the location, measured by
    /// the precision, as an expression; (n,). Carries a `ValueError` for another number of features.
    ///
    /// ```
    /// use tharsis_learn::covariance::EmpiricalCovariance;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, 2.0]).reshape(&[2, 1]);
    /// let model = EmpiricalCovariance::new().fit(&x, ..)?;
    /// assert_eq!(model.mahalanobis(&(&x * 2)).to_vec::<f64>()?, [4.0, 4.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    #[track_caller]
    pub fn mahalanobis(&self, x: &Tensor) -> Tensor {
        match samples_for(self.name, x, self.location.len()) {
            Ok(samples) => {
                let around = samples - tensor(&self.location);
                (around.matmul(&tensor(&self.precision)) * around).sum(1)
            }
            Err(error) => Tensor::from(error),
        }
    }

    /// scikit-learn's `score`: the mean logarithm of the likelihood of samples (n, d), minus infinity if the
    /// covariance has a direction without variance. One pass.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, NaN and infinity; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        samples_for(self.name, x, self.location.len()).map(drop)?;
        let training = Training::unsupervised(self.name, x, &options.into())?.without_weights()?;
        let moments = Moments::of(&training, None, Around::Mean)?;
        let offset = (&moments.mean - &self.location).insert_axis(Axis(1));
        let seen = moments.gram / training.rows as f64 + offset.dot(&offset.t());
        let (values, _) = eigh(&self.covariance)?;
        let bound = rounding(&values);
        // The inverse leaves directions out, and the determinant of what is left is zero.
        let is_whole = values.iter().all(|value| bound < *value);
        let determinant =
            if is_whole { -values.iter().map(|value| value.ln()).sum::<f64>() } else { f64::NEG_INFINITY };
        let fit = (&seen * &self.precision).sum();
        Ok(0.5 * (determinant - fit - values.len() as f64 * (2.0 * PI).ln()))
    }
}

impl fmt::Display for FittedCovariance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} features, shrinkage {}", self.name, self.location.len(), self.shrinkage)?;
        show::line(f, "location", &self.location)?;
        show::rows(f, "covariance", &self.covariance.clone().into_dyn())
    }
}
