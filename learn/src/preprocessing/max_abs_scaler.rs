//! Features scaled by their largest absolute value.

use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, check_samples, checked_for, in_dtype_of};
use crate::dense::tensor;
use crate::params::parameters;
use crate::preprocessing::without_zeros;
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, vector};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `MaxAbsScaler`: divides each feature by its largest absolute value.
///
/// NaN counts as missing: it has no part in the scale, and stays in what is transformed.
///
/// ```
/// use tharsis_learn::preprocessing::MaxAbsScaler;
/// use tharsis_numeric::array;
/// let x = array([1.0, -4.0]).reshape(&[2, 1]);
/// let model = MaxAbsScaler::new().fit(&x, ..)?;
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [0.25, -1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct MaxAbsScaler {}

/// A fitted [`MaxAbsScaler`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedMaxAbsScaler {
    /// scikit-learn's `max_abs_`: the largest absolute value of each feature; (d,).
    pub max_abs: Array1<f64>,
    /// scikit-learn's `scale_`: the same, 1 for a feature of zeros; (d,).
    pub scale: Array1<f64>,
}

parameters!(MaxAbsScaler, "MaxAbsScaler", []);

impl MaxAbsScaler {
    /// An estimator; it has no parameters.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MaxAbsScaler;
    /// use tharsis_numeric::zeros;
    /// assert_eq!(MaxAbsScaler::new().fit(&zeros(&[2, 1]), ..)?.scale[0], 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> MaxAbsScaler {
        MaxAbsScaler::default()
    }

    /// Fits the scaler on samples (n, d), of any real dtype. One pass.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MaxAbsScaler;
    /// use tharsis_numeric::array;
    /// assert_eq!(MaxAbsScaler::new().fit(&array([-3i64, 2]).reshape(&[2, 1]), ..)?.max_abs[0], 3.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for samples of other than two axes, without rows or features, complex or infinite;
    /// `TypeError` for weights; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedMaxAbsScaler> {
        let training = Training::unsupervised("MaxAbsScaler", x, &options.into())?.without_weights()?;
        Ok(FittedMaxAbsScaler::of(largest(&training)?))
    }
}

/// The largest absolute values of features, NaN for one without numbers; (d,). One pass.
#[track_caller]
fn largest(training: &Training) -> Result<Array1<f64>> {
    let states = training.engine.run(&[&training.x.abs().nanmax(0)])?;
    if states.iter().any(|state| state.iter().any(|end| end.is_infinite())) {
        training.explain_not_finite(Nan::Missing)?;
    }
    vector(states.into_iter().next().ok_or_else(lost)?)
}

impl FittedMaxAbsScaler {
    fn of(max_abs: Array1<f64>) -> FittedMaxAbsScaler {
        let scale = max_abs.mapv(without_zeros);
        FittedMaxAbsScaler { max_abs, scale }
    }

    /// scikit-learn's `partial_fit`: the model of the samples before and of these (n, d). A feature that has
    /// no numbers here keeps its scale; scikit-learn's is NaN from then on.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MaxAbsScaler;
    /// use tharsis_numeric::array;
    /// let mut model = MaxAbsScaler::new().fit(&array([-3.0]).reshape(&[1, 1]), ..)?;
    /// model.partial_fit(&array([2.0, -5.0]).reshape(&[2, 1]), ..)?;
    /// assert_eq!(model.max_abs[0], 5.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the fit; `ValueError` for another number of features. The model stays as it was then.
    #[track_caller]
    pub fn partial_fit(&mut self, x: &Tensor, options: impl Into<FitOptions>) -> Result<()> {
        let training = Training::unsupervised("MaxAbsScaler", x, &options.into())?.without_weights()?;
        check_samples("MaxAbsScaler", &training.own, self.scale.len())?;
        let mut max_abs = largest(&training)?;
        max_abs.zip_mut_with(&self.max_abs, |largest, &before| *largest = largest.max(before));
        *self = FittedMaxAbsScaler::of(max_abs);
        Ok(())
    }

    /// Samples (n, d) divided by the scale; floats keep their dtype.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MaxAbsScaler;
    /// use tharsis_numeric::array;
    /// let model = MaxAbsScaler::new().fit(&array([-4.0, 2.0]).reshape(&[2, 1]), ..)?;
    /// assert_eq!(model.transform(&array([8.0]).reshape(&[1, 1])).to_vec::<f64>()?, [2.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for infinity.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        match checked_for("MaxAbsScaler", x, self.scale.len(), Nan::Missing) {
            Ok(samples) => in_dtype_of(x, samples / tensor(&self.scale)),
            Err(error) => Tensor::from(error),
        }
    }

    /// The samples that [`transform`](FittedMaxAbsScaler::transform) maps to these.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MaxAbsScaler;
    /// use tharsis_numeric::array;
    /// let model = MaxAbsScaler::new().fit(&array([-4.0, 2.0]).reshape(&[2, 1]), ..)?;
    /// assert_eq!(model.inverse_transform(&array([0.5]).reshape(&[1, 1])).to_vec::<f64>()?, [2.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`transform`](FittedMaxAbsScaler::transform).
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        match checked_for("MaxAbsScaler", x, self.scale.len(), Nan::Missing) {
            Ok(samples) => in_dtype_of(x, samples * tensor(&self.scale)),
            Err(error) => Tensor::from(error),
        }
    }
}

impl Estimator for MaxAbsScaler {
    type Fitted = FittedMaxAbsScaler;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedMaxAbsScaler> {
        self.fit(x, options)
    }
}

saved!(FittedMaxAbsScaler, "MaxAbsScaler", |model| {
    !model.scale.is_empty() && model.max_abs.len() == model.scale.len()
});

impl Transform for FittedMaxAbsScaler {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedMaxAbsScaler::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        crate::feature_names::same(names, self.scale.len())
    }
}

impl fmt::Display for FittedMaxAbsScaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaxAbsScaler of {} features", self.scale.len())?;
        show::line(f, "max_abs", &self.max_abs)
    }
}
