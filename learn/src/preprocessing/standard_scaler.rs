//! Features with mean 0 and deviation 1.

use super::affine::Affine;
use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Training, check_samples, refused};
use crate::params::parameters;
use crate::passes::{ColumnSums, is_constant};
use crate::saved::{Save, saved};
use crate::show;
use ndarray::{Array1, Zip};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `StandardScaler`: takes the mean off each feature, and divides it by its deviation.
///
/// NaN counts as missing: it is left out of means and deviations, and stays in what is transformed.
///
/// ```
/// use tharsis_learn::preprocessing::StandardScaler;
/// use tharsis_numeric::array;
/// let x = array([0.0, 0.0, 1.0, 1.0]).reshape(&[4, 1]);
/// let model = StandardScaler::new().fit(&x, ..)?;
/// assert_eq!((model.mean[0], model.scale[0]), (0.5, 0.5));
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [-1.0, -1.0, 1.0, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct StandardScaler {
    with_mean: bool,
    with_std: bool,
}

/// A fitted [`StandardScaler`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedStandardScaler {
    /// scikit-learn's `mean_`; (d,).
    pub mean: Array1<f64>,
    /// scikit-learn's `var_`: the variances, with divisor n; (d,). Ones without `with_std`.
    pub var: Array1<f64>,
    /// scikit-learn's `scale_`: the deviations, 1 for a feature that is constant; (d,).
    pub scale: Array1<f64>,
    /// scikit-learn's `n_samples_seen_`: the samples that are not missing, or their weights; (d,).
    pub n_samples_seen: Array1<f64>,
    with_mean: bool,
    with_std: bool,
}

parameters!(StandardScaler, "StandardScaler", ["with_mean" => with_mean, "with_std" => with_std]);

impl Default for StandardScaler {
    fn default() -> StandardScaler {
        StandardScaler { with_mean: true, with_std: true }
    }
}

impl StandardScaler {
    /// An estimator with scikit-learn's defaults.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::array;
    /// let model = StandardScaler::new().fit(&array([1.0, 3.0]).reshape(&[2, 1]), ..)?;
    /// assert_eq!(model.var[0], 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> StandardScaler {
        StandardScaler::default()
    }

    /// scikit-learn's `with_mean`: whether the mean is taken off.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 3.0]).reshape(&[2, 1]);
    /// let model = StandardScaler::new().with_mean(false).fit(&x, ..)?;
    /// assert_eq!(model.transform(&x).to_vec::<f64>()?, [1.0, 3.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn with_mean(self, with_mean: bool) -> StandardScaler {
        StandardScaler { with_mean, ..self }
    }

    /// scikit-learn's `with_std`: whether features are divided by their deviation.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 4.0]).reshape(&[2, 1]);
    /// let model = StandardScaler::new().with_std(false).fit(&x, ..)?;
    /// assert_eq!(model.transform(&x).to_vec::<f64>()?, [-2.0, 2.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn with_std(self, with_std: bool) -> StandardScaler {
        StandardScaler { with_std, ..self }
    }

    /// Fits the scaler on samples (n, d), of any real dtype. One pass; a second one if the first rows are far
    /// from the others.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::array;
    /// let model = StandardScaler::new().fit(&array([f64::NAN, 3.0]).reshape(&[2, 1]), ..)?;
    /// assert_eq!((model.mean[0], model.n_samples_seen[0]), (3.0, 1.0));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for other than two axes, no samples, no features, complex numbers, infinity, and weights
    /// that do not fit, are negative, or NaN; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedStandardScaler> {
        self.fitted_to(&Training::unsupervised("StandardScaler", x, &options.into())?)
    }

    /// The model of samples that have been checked.
    #[track_caller]
    fn fitted_to(&self, training: &Training) -> Result<FittedStandardScaler> {
        let sums = ColumnSums::of(training, training.weight.as_ref(), self.with_std)?;
        if training.weight.is_some() && sums.count.iter().all(|&count| count == 0.0) {
            return Err(refused("Weights sum to zero, can't be normalized"));
        }
        if !sums.are_finite(self.with_std) {
            return Err(training.beyond_float64());
        }
        Ok(self.fitted(sums))
    }

    /// The model of these sums.
    fn fitted(&self, sums: ColumnSums) -> FittedStandardScaler {
        let mean = sums.mean();
        let ones = Array1::ones(mean.len());
        let (mut var, mut scale) = (ones.clone(), ones);
        if self.with_std {
            var = sums.variance();
            Zip::from(&mut scale).and(&var).and(&mean).for_each(|scale, &var, &mean| {
                *scale = deviation(var, mean);
            });
        }
        let (with_mean, with_std) = (self.with_mean, self.with_std);
        FittedStandardScaler { mean, var, scale, n_samples_seen: sums.count, with_mean, with_std }
    }
}

/// The deviation of numbers of this variance around this mean, 1 if they are constant.
fn deviation(var: f64, mean: f64) -> f64 {
    if is_constant(var, mean) { 1.0 } else { var.sqrt() }
}

impl FittedStandardScaler {
    /// scikit-learn's `partial_fit`: the model of the samples before and of these (n, d).
    ///
    /// ```
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::array;
    /// let mut model = StandardScaler::new().fit(&array([1.0, 3.0]).reshape(&[2, 1]), ..)?;
    /// model.partial_fit(&array([5.0, 7.0]).reshape(&[2, 1]), ..)?;
    /// assert_eq!((model.mean[0], model.var[0], model.n_samples_seen[0]), (4.0, 5.0, 4.0));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the fit; `ValueError` for another number of features. The model stays as it was then.
    #[track_caller]
    pub fn partial_fit(&mut self, x: &Tensor, options: impl Into<FitOptions>) -> Result<()> {
        let training = Training::unsupervised("StandardScaler", x, &options.into())?;
        check_samples("StandardScaler", &training.own, self.mean.len())?;
        let (with_mean, with_std) = (self.with_mean, self.with_std);
        let more = StandardScaler { with_mean, with_std }.fitted_to(&training)?;
        let mut all = self.clone();
        for at in 0..all.mean.len() {
            let (seen, own) = (self.n_samples_seen[at], more.n_samples_seen[at]);
            if own == 0.0 {
                continue;
            }
            all.n_samples_seen[at] = seen + own;
            (all.mean[at], all.var[at]) = (more.mean[at], more.var[at]);
            if 0.0 < seen {
                let (before, share) = (seen / (seen + own), own / (seen + own));
                let apart = more.mean[at] - self.mean[at];
                all.mean[at] = self.mean[at] + apart * share;
                if with_std {
                    let between = apart * before * (apart * share);
                    all.var[at] = self.var[at] * before + more.var[at] * share + between;
                }
            }
            if !(all.mean[at].is_finite() && all.var[at].is_finite()) {
                return Err(training.beyond_float64());
            }
            if with_std {
                all.scale[at] = deviation(all.var[at], all.mean[at]);
            }
        }
        *self = all;
        Ok(())
    }

    /// Whether there are as many numbers of each kind.
    pub(super) fn is_sound(&self) -> bool {
        let lengths = [&self.mean, &self.var, &self.scale, &self.n_samples_seen].map(|array| array.len());
        0 < lengths[0] && lengths.iter().all(|&length| length == lengths[0])
    }

    fn map(&self) -> Affine<'_> {
        Affine {
            model: "StandardScaler",
            columns: self.mean.len(),
            offset: self.with_mean.then_some(&self.mean),
            scale: self.with_std.then_some(&self.scale),
        }
    }

    /// Samples (n, d) in units of deviations around the means; floats keep their dtype.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 2.0]).reshape(&[2, 1]);
    /// let model = StandardScaler::new().fit(&x, ..)?;
    /// assert_eq!(model.transform(&array([5.0]).reshape(&[1, 1])).to_vec::<f64>()?, [4.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.map().forward(x)
    }

    /// The samples that [`transform`](FittedStandardScaler::transform) maps to these.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 2.0]).reshape(&[2, 1]);
    /// let model = StandardScaler::new().fit(&x, ..)?;
    /// assert_eq!(model.inverse_transform(&model.transform(&x)).to_vec::<f64>()?, [0.0, 2.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`transform`](FittedStandardScaler::transform).
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        self.map().back(x)
    }
}

impl Estimator for StandardScaler {
    type Fitted = FittedStandardScaler;

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedStandardScaler> {
        self.fit(x, options)
    }
}

saved!(FittedStandardScaler, "StandardScaler", |model| model.is_sound());

impl Transform for FittedStandardScaler {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedStandardScaler::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        crate::feature_names::same(names, self.mean.len())
    }
}

impl fmt::Display for FittedStandardScaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StandardScaler of {} features", self.mean.len())?;
        show::line(f, "mean", &self.mean)?;
        show::line(f, "scale", &self.scale)
    }
}
