//! Kernels around the mean of the samples in their space.

use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Nan, Training, in_dtype_of, refused, samples_for};
use crate::dense::tensor;
use crate::params::parameters;
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{all_finite, lost, vector};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `KernelCenterer`: the kernel of samples less their mean, from the kernel alone.
///
/// ```
/// use tharsis_learn::metrics::linear_kernel;
/// use tharsis_learn::preprocessing::KernelCenterer;
/// use tharsis_numeric::array;
/// let kernel = linear_kernel(&array([1.0, 3.0]).reshape(&[2, 1]), ..);
/// let model = KernelCenterer::new().fit(&kernel, ..)?;
/// assert_eq!(model.transform(&kernel).to_vec::<f64>()?, [1.0, -1.0, -1.0, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct KernelCenterer {}

/// A fitted [`KernelCenterer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedKernelCenterer {
    /// scikit-learn's `K_fit_rows_`: the mean of each column of the kernel; (n,).
    pub k_fit_rows: Array1<f64>,
    /// scikit-learn's `K_fit_all_`: the mean of the kernel.
    pub k_fit_all: f64,
}

parameters!(KernelCenterer, "KernelCenterer", []);

impl KernelCenterer {
    /// An estimator; it has no parameters.
    pub fn new() -> KernelCenterer {
        KernelCenterer::default()
    }

    /// Fits the centerer on a kernel (n, n) of samples with themselves, of any real dtype. One pass.
    ///
    /// # Errors
    /// `ValueError` for a kernel that is not square, without rows, complex, NaN or infinite; `TypeError` for
    /// weights; `OverflowError` for sums beyond float64; errors of the pass.
    #[track_caller]
    pub fn fit(&self, kernel: &Tensor, options: impl Into<FitOptions>) -> Result<FittedKernelCenterer> {
        self.fit_any(kernel, None, &options.into())
    }
}

impl Estimator for KernelCenterer {
    type Fitted = FittedKernelCenterer;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedKernelCenterer> {
        let training = Training::unsupervised("KernelCenterer", x, options)?.without_weights()?;
        let (rows, columns) = (training.rows, training.columns);
        if rows != columns {
            return Err(refused(format!(
                "Kernel matrix must be a square matrix. Input is a {rows}x{columns} matrix."
            )));
        }
        let states = training.engine.run(&[&training.x.mean(0)])?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let k_fit_rows = vector(states.into_iter().next().ok_or_else(lost)?)?;
        let k_fit_all = k_fit_rows.sum() / rows as f64;
        Ok(FittedKernelCenterer { k_fit_rows, k_fit_all })
    }
}

impl FittedKernelCenterer {
    /// A kernel (m, n) of samples with those of the fit, around the mean of those, as an expression; floats
    /// keep their dtype. Carries a `ValueError` for another number of columns.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let kernel = match samples_for("KernelCenterer", x, self.k_fit_rows.len()) {
            Ok(kernel) => kernel,
            Err(error) => return Tensor::from(error),
        };
        let rows = kernel.mean(tharsis_numeric::Axes::from(1).keepdims());
        in_dtype_of(x, kernel - tensor(&self.k_fit_rows) - rows + self.k_fit_all)
    }
}

saved!(FittedKernelCenterer, "KernelCenterer", |model| !model.k_fit_rows.is_empty());

impl Transform for FittedKernelCenterer {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedKernelCenterer::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered("KernelCenterer", self.k_fit_rows.len()))
    }
}

impl fmt::Display for FittedKernelCenterer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelCenterer of {} samples", self.k_fit_rows.len())?;
        show::line(f, "k_fit_rows", &self.k_fit_rows)
    }
}
