//! Samples scaled to length 1.

use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, finite, in_dtype_of, samples_of_any};
use crate::params::{parameters, words};
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{Axes, Result, Tensor, where_};

/// The length of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Norm {
    /// The sum of absolute values.
    L1,
    /// The root of the sum of squares.
    #[default]
    L2,
    /// The largest absolute value.
    Max,
}

/// scikit-learn's `Normalizer`: divides each sample by its length; one of length zero stays.
///
/// It learns nothing from data, so it is its own model.
///
/// ```
/// use tharsis_learn::preprocessing::Normalizer;
/// use tharsis_numeric::array;
/// let x = array([3.0, 4.0, 0.0, 0.0]).reshape(&[2, 2]);
/// assert_eq!(Normalizer::new().transform(&x).to_vec::<f64>()?, [0.6, 0.8, 0.0, 0.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Normalizer {
    norm: Norm,
}

words!(Norm, ["l1" => Norm::L1, "l2" => Norm::L2, "max" => Norm::Max]);
parameters!(Normalizer, "Normalizer", ["norm" => norm]);

impl Normalizer {
    /// A transformer with scikit-learn's defaults: the norm is `l2`.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::Normalizer;
    /// use tharsis_numeric::array;
    /// let x = array([-2i64, 0]).reshape(&[1, 2]);
    /// assert_eq!(Normalizer::new().transform(&x).to_vec::<f64>()?, [-1.0, 0.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> Normalizer {
        Normalizer::default()
    }

    /// scikit-learn's `norm`: the length that becomes 1.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::{Norm, Normalizer};
    /// use tharsis_numeric::array;
    /// let x = array([1.0, -3.0]).reshape(&[1, 2]);
    /// assert_eq!(Normalizer::new().norm(Norm::L1).transform(&x).to_vec::<f64>()?, [0.25, -0.75]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn norm(self, norm: Norm) -> Normalizer {
        Normalizer { norm }
    }

    /// Samples (n, d) divided by their lengths, as an expression; floats keep their dtype.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::{Norm, Normalizer};
    /// use tharsis_numeric::array;
    /// let x = array([1.0, -4.0]).reshape(&[1, 2]);
    /// assert_eq!(Normalizer::new().norm(Norm::Max).transform(&x).to_vec::<f64>()?, [0.25, -1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for other than two axes, and for complex numbers; when run for NaN and infinity.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples_of_any(x) {
            Ok(samples) => finite(&samples, Nan::Refused),
            Err(error) => return Tensor::from(error),
        };
        let rows = || Axes::from(1).keepdims();
        let length = match self.norm {
            Norm::L1 => samples.abs().sum(rows()),
            Norm::L2 => {
                // The largest number is divided out: its square may be beyond the range of floats.
                let most = samples.abs().max(rows());
                let most = where_(&most.equal(0.0), 1.0, &most);
                (&samples / &most).square().sum(rows()).sqrt() * most
            }
            Norm::Max => samples.abs().max(rows()),
        };
        let length = where_(&length.equal(0.0), 1.0, &length);
        in_dtype_of(x, samples / length)
    }
}

impl Estimator for Normalizer {
    type Fitted = Normalizer;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<Normalizer> {
        Training::unsupervised("Normalizer", x, options)?.without_weights()?;
        Ok(self.clone())
    }
}

saved!(Normalizer, "Normalizer", |_model| true);

impl Transform for Normalizer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        Normalizer::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        Some(names.to_vec())
    }
}
