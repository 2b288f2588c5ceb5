//! Features scaled to a range.

use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, check_samples, checked_for, in_dtype_of, refused};
use crate::dense::tensor;
use crate::params::parameters;
use crate::passes::column_ends;
use crate::preprocessing::without_zeros;
use crate::saved::{Save, saved};
use crate::show;
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `MinMaxScaler`: scales each feature so that its smallest and largest number become the ends
/// of a range.
///
/// NaN counts as missing: it has no part in the range, and stays in what is transformed.
///
/// ```
/// use tharsis_learn::preprocessing::MinMaxScaler;
/// use tharsis_numeric::array;
/// let x = array([2.0, 4.0, 6.0]).reshape(&[3, 1]);
/// let model = MinMaxScaler::new().fit(&x, ..)?;
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct MinMaxScaler {
    feature_range: [f64; 2],
    clip: bool,
}

/// A fitted [`MinMaxScaler`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedMinMaxScaler {
    /// scikit-learn's `data_min_`: the smallest number of each feature; (d,).
    pub data_min: Array1<f64>,
    /// scikit-learn's `data_max_`: the largest number of each feature; (d,).
    pub data_max: Array1<f64>,
    /// scikit-learn's `data_range_`; (d,).
    pub data_range: Array1<f64>,
    /// scikit-learn's `scale_`: the factor of each feature; (d,).
    pub scale: Array1<f64>,
    /// scikit-learn's `min_`: the summand of each feature, behind the factor; (d,).
    pub min: Array1<f64>,
    feature_range: [f64; 2],
    clip: bool,
}

parameters!(MinMaxScaler, "MinMaxScaler", ["feature_range" => feature_range, "clip" => clip]);

impl Default for MinMaxScaler {
    fn default() -> MinMaxScaler {
        MinMaxScaler { feature_range: [0.0, 1.0], clip: false }
    }
}

impl MinMaxScaler {
    /// An estimator with scikit-learn's defaults.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MinMaxScaler;
    /// use tharsis_numeric::array;
    /// let model = MinMaxScaler::new().fit(&array([2.0, 4.0]).reshape(&[2, 1]), ..)?;
    /// assert_eq!(model.data_range[0], 2.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> MinMaxScaler {
        MinMaxScaler::default()
    }

    /// scikit-learn's `feature_range`: the range that features are scaled to.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MinMaxScaler;
    /// use tharsis_numeric::array;
    /// let x = array([2.0, 4.0]).reshape(&[2, 1]);
    /// let model = MinMaxScaler::new().feature_range(-1.0, 1.0).fit(&x, ..)?;
    /// assert_eq!(model.transform(&x).to_vec::<f64>()?, [-1.0, 1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn feature_range(self, low: f64, high: f64) -> MinMaxScaler {
        MinMaxScaler { feature_range: [low, high], ..self }
    }

    /// scikit-learn's `clip`: whether what is transformed is limited to the range.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MinMaxScaler;
    /// use tharsis_numeric::array;
    /// let x = array([2.0, 4.0]).reshape(&[2, 1]);
    /// let model = MinMaxScaler::new().clip(true).fit(&x, ..)?;
    /// assert_eq!(model.transform(&array([9.0]).reshape(&[1, 1])).to_vec::<f64>()?, [1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn clip(self, clip: bool) -> MinMaxScaler {
        MinMaxScaler { clip, ..self }
    }

    /// Fits the scaler on samples (n, d), of any real dtype. One pass.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MinMaxScaler;
    /// use tharsis_numeric::array;
    /// let error = MinMaxScaler::new().feature_range(1.0, 0.0).fit(&array([2.0]).reshape(&[1, 1]), ..);
    /// assert!(error.unwrap_err().to_string().starts_with("Minimum of desired feature range"));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a range whose ends are not in order, and for samples of other than two axes, without
    /// rows or features, complex or infinite; `TypeError` for weights; `OverflowError` for a range beyond
    /// float64; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedMinMaxScaler> {
        let [low, high] = self.feature_range;
        let is_range = low < high;
        if !is_range {
            return Err(refused(format!(
                "Minimum of desired feature range must be smaller than maximum. Got ({low}, {high})."
            )));
        }
        let training = Training::unsupervised("MinMaxScaler", x, &options.into())?.without_weights()?;
        let ends = column_ends(&training)?;
        self.fitted(&training, ends)
    }

    /// The model of features between these ends.
    #[track_caller]
    fn fitted(
        &self,
        training: &Training,
        (data_min, data_max): (Array1<f64>, Array1<f64>),
    ) -> Result<FittedMinMaxScaler> {
        let data_range = &data_max - &data_min;
        if data_range.iter().any(|range| range.is_infinite()) {
            return Err(training.beyond_float64());
        }
        let [low, high] = self.feature_range;
        let scale = data_range.mapv(|range| (high - low) / without_zeros(range));
        let min = low - &data_min * &scale;
        let (feature_range, clip) = (self.feature_range, self.clip);
        Ok(FittedMinMaxScaler { data_min, data_max, data_range, scale, min, feature_range, clip })
    }
}

impl FittedMinMaxScaler {
    /// scikit-learn's `partial_fit`: the model of the samples before and of these (n, d). A feature that has
    /// no numbers here keeps its range; scikit-learn's is NaN from then on.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MinMaxScaler;
    /// use tharsis_numeric::array;
    /// let mut model = MinMaxScaler::new().fit(&array([2.0, 4.0]).reshape(&[2, 1]), ..)?;
    /// model.partial_fit(&array([8.0]).reshape(&[1, 1]), ..)?;
    /// assert_eq!((model.data_min[0], model.data_max[0]), (2.0, 8.0));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the fit; `ValueError` for another number of features. The model stays as it was then.
    #[track_caller]
    pub fn partial_fit(&mut self, x: &Tensor, options: impl Into<FitOptions>) -> Result<()> {
        let training = Training::unsupervised("MinMaxScaler", x, &options.into())?.without_weights()?;
        check_samples("MinMaxScaler", &training.own, self.scale.len())?;
        let (mut least, mut largest) = column_ends(&training)?;
        // NaN is neither of two ends.
        least.zip_mut_with(&self.data_min, |end, &before| *end = end.min(before));
        largest.zip_mut_with(&self.data_max, |end, &before| *end = end.max(before));
        let (feature_range, clip) = (self.feature_range, self.clip);
        *self = MinMaxScaler { feature_range, clip }.fitted(&training, (least, largest))?;
        Ok(())
    }

    /// Samples (n, d) scaled to the range; floats keep their dtype.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MinMaxScaler;
    /// use tharsis_numeric::array;
    /// let model = MinMaxScaler::new().fit(&array([2.0, 4.0]).reshape(&[2, 1]), ..)?;
    /// assert_eq!(model.transform(&array([5.0]).reshape(&[1, 1])).to_vec::<f64>()?, [1.5]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for infinity.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match checked_for("MinMaxScaler", x, self.scale.len(), Nan::Missing) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let made = samples * tensor(&self.scale) + tensor(&self.min);
        let [low, high] = self.feature_range;
        in_dtype_of(x, if self.clip { made.clip(low, high) } else { made })
    }

    /// The samples that [`transform`](FittedMinMaxScaler::transform) maps to these.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::MinMaxScaler;
    /// use tharsis_numeric::array;
    /// let model = MinMaxScaler::new().fit(&array([2.0, 4.0]).reshape(&[2, 1]), ..)?;
    /// assert_eq!(model.inverse_transform(&array([0.5]).reshape(&[1, 1])).to_vec::<f64>()?, [3.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`transform`](FittedMinMaxScaler::transform).
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        match checked_for("MinMaxScaler", x, self.scale.len(), Nan::Missing) {
            Ok(samples) => in_dtype_of(x, (samples - tensor(&self.min)) / tensor(&self.scale)),
            Err(error) => Tensor::from(error),
        }
    }
}

impl Estimator for MinMaxScaler {
    type Fitted = FittedMinMaxScaler;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedMinMaxScaler> {
        self.fit(x, options)
    }
}

saved!(FittedMinMaxScaler, "MinMaxScaler", |model| {
    let lengths = [&model.data_min, &model.data_max, &model.data_range, &model.scale, &model.min]
        .map(|array| array.len());
    0 < lengths[0] && lengths.iter().all(|&length| length == lengths[0])
});

impl Transform for FittedMinMaxScaler {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedMinMaxScaler::transform(self, x)
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

impl fmt::Display for FittedMinMaxScaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = self.feature_range;
        write!(f, "MinMaxScaler(feature_range=({low}, {high})) of {} features", self.scale.len())?;
        show::line(f, "data_min", &self.data_min)?;
        show::line(f, "data_max", &self.data_max)
    }
}
