//! Features with mean 0 and deviation 1.

use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, in_dtype_of, refused, samples_for};
use crate::dense::tensor;
use crate::passes::{first_rows_nanmean, is_constant};
use crate::show;
use crate::states::{all_finite, lost, vector};
use ndarray::{Array1, Zip};
use std::fmt;
use tharsis_numeric::{Result, Tensor, where_};

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
#[derive(Clone, Debug)]
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

    /// Fits the scaler on samples (n, d), of any real dtype. One pass.
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
    /// that do not fit, are negative, or NaN; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedStandardScaler> {
        let training = Training::unsupervised("StandardScaler", x, &options.into())?;
        let x = &training.x;
        let shift = first_rows_nanmean(x);
        let shift = where_(&shift.isfinite(), &shift, 0.0);
        let is_there = x.isnan().logical_not();
        let shifted = where_(&is_there, x - &shift, 0.0);
        let (count, sum, squares) = match &training.weight {
            None => (is_there.count_nonzero(0), shifted.sum(0), shifted.square().sum(0)),
            Some(weight) => {
                let weight = weight.expand_dims(1);
                let weighted = &shifted * &weight;
                let count = where_(&is_there, &weight, 0.0).sum(0);
                (count, weighted.sum(0), (&weighted * &shifted).sum(0))
            }
        };
        let states = training.engine.run(&[&count, &sum, &squares, &shift])?;
        if !all_finite(&states) {
            training.explain_not_finite(Nan::Missing)?;
        }
        let states: Vec<Array1<f64>> = states.into_iter().map(vector).collect::<Result<_>>()?;
        let [count, sum, squares, shift] = <[_; 4]>::try_from(states).map_err(|_| lost())?;
        if training.weight.is_some() && count.iter().all(|&count| count == 0.0) {
            return Err(refused("Weights sum to zero, can't be normalized"));
        }
        Ok(self.fitted(count, &sum, &squares, &shift))
    }

    /// The model of these sums of shifted columns.
    fn fitted(
        &self,
        count: Array1<f64>,
        sum: &Array1<f64>,
        squares: &Array1<f64>,
        shift: &Array1<f64>,
    ) -> FittedStandardScaler {
        let rest = sum / &count;
        let mean = shift + &rest;
        let ones = Array1::ones(mean.len());
        let (mut var, mut scale) = (ones.clone(), ones);
        if self.with_std {
            var = squares / &count - rest.mapv(|rest| rest * rest);
            // Rounding may leave a negative number; NaN of a feature without numbers stays.
            var.mapv_inplace(|var| if var < 0.0 { 0.0 } else { var });
            Zip::from(&mut scale).and(&var).and(&mean).and(&count).for_each(|scale, &var, &mean, &count| {
                *scale = if is_constant(var, mean, count) { 1.0 } else { var.sqrt() };
            });
        }
        let (with_mean, with_std) = (self.with_mean, self.with_std);
        FittedStandardScaler { mean, var, scale, n_samples_seen: count, with_mean, with_std }
    }
}

impl FittedStandardScaler {
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
        let mut made = match samples_for("StandardScaler", x, self.mean.len()) {
            Ok(made) => made,
            Err(error) => return Tensor::from(error),
        };
        if self.with_mean {
            made -= tensor(&self.mean);
        }
        if self.with_std {
            made /= tensor(&self.scale);
        }
        in_dtype_of(x, made)
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
        let mut made = match samples_for("StandardScaler", x, self.mean.len()) {
            Ok(made) => made,
            Err(error) => return Tensor::from(error),
        };
        if self.with_std {
            made *= tensor(&self.scale);
        }
        if self.with_mean {
            made += tensor(&self.mean);
        }
        in_dtype_of(x, made)
    }
}

impl Estimator for StandardScaler {
    type Fitted = FittedStandardScaler;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedStandardScaler> {
        self.fit(x, options)
    }
}

impl Transform for FittedStandardScaler {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedStandardScaler::transform(self, x)
    }
}

impl fmt::Display for FittedStandardScaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StandardScaler of {} features", self.mean.len())?;
        show::line(f, "mean", &self.mean)?;
        show::line(f, "scale", &self.scale)
    }
}
