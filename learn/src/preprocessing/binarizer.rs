//! Features as zeros and ones.

use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, finite, samples_of_any};
use crate::params::parameters;
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `Binarizer`: numbers above a threshold become 1, others 0.
///
/// It learns nothing from data, so it is its own model.
///
/// ```
/// use tharsis_learn::preprocessing::Binarizer;
/// use tharsis_numeric::array;
/// let x = array([-1.0, 0.0, 2.0]).reshape(&[1, 3]);
/// assert_eq!(Binarizer::new().transform(&x).to_vec::<f64>()?, [0.0, 0.0, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Binarizer {
    threshold: f64,
}

parameters!(Binarizer, "Binarizer", ["threshold" => threshold]);

impl Binarizer {
    /// A transformer with scikit-learn's defaults: the threshold is 0.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::Binarizer;
    /// use tharsis_numeric::{DType, array};
    /// let made = Binarizer::new().transform(&array([3i64]).reshape(&[1, 1]));
    /// assert_eq!((made.dtype()?, made.to_vec::<i64>()?), (DType::I64, vec![1]));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> Binarizer {
        Binarizer::default()
    }

    /// scikit-learn's `threshold`: the largest number that becomes 0.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::Binarizer;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 1.5]).reshape(&[1, 2]);
    /// assert_eq!(Binarizer::new().threshold(1.0).transform(&x).to_vec::<f64>()?, [0.0, 1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn threshold(self, threshold: f64) -> Binarizer {
        Binarizer { threshold }
    }

    /// Samples (n, d) as zeros and ones, as an expression; the dtype stays.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::Binarizer;
    /// use tharsis_numeric::ones;
    /// assert_eq!(Binarizer::new().transform(&ones(&[1, 1])).to_vec::<f64>()?, [1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for other than two axes, and for complex numbers; when run for NaN and infinity.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        match (samples_of_any(x), x.dtype()) {
            (Ok(samples), Ok(dtype)) => finite(&samples, Nan::Refused).greater(self.threshold).astype(dtype),
            (Err(error), _) | (_, Err(error)) => Tensor::from(error),
        }
    }
}

impl Estimator for Binarizer {
    type Fitted = Binarizer;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<Binarizer> {
        Training::unsupervised("Binarizer", x, options)?.without_weights()?;
        Ok(self.clone())
    }
}

saved!(Binarizer, "Binarizer", |_model| true);

impl Transform for Binarizer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        Binarizer::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        Some(names.to_vec())
    }
}
