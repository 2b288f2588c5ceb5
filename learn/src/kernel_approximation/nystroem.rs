//! A kernel by some of the samples.

use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check, check_count};
use crate::checks::{Nan, Training, in_dtype_of, samples_for};
use crate::dense::{svd, tensor};
use crate::metrics::{
    Polynomial, Rbf, Sigmoid, cosine_similarity, laplacian_kernel, linear_kernel, polynomial_kernel,
    rbf_kernel, sigmoid_kernel,
};
use crate::params::{parameters, words};
use crate::passes::in_fixed_chunks;
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{all_finite, lost, matrix};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Result, Tensor};

/// Smallest singular value of the kernel of the chosen samples, as scikit-learn has it.
const SINGULAR_MIN: f64 = 1e-12;

/// A kernel of pairs of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kernel {
    /// The cosine of the angle between samples.
    Cosine,
    /// exp(-gamma |x - y|), with the sum of absolute differences.
    Laplacian,
    /// x·y.
    Linear,
    /// (gamma x·y + coef0)^degree.
    Poly,
    /// exp(-gamma |x - y|²).
    #[default]
    Rbf,
    /// tanh(gamma x·y + coef0).
    Sigmoid,
}

words!(
    Kernel,
    [
        "cosine" => Kernel::Cosine, "laplacian" => Kernel::Laplacian, "linear" => Kernel::Linear,
        "poly" => Kernel::Poly, "polynomial" => Kernel::Poly, "rbf" => Kernel::Rbf,
        "sigmoid" => Kernel::Sigmoid
    ]
);

/// A kernel and its parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Chosen {
    kernel: Kernel,
    gamma: Option<f64>,
    coef0: Option<f64>,
    degree: Option<f64>,
}

impl Chosen {
    /// The kernel of samples with others; (n, d) and (m, d) to (n, m).
    #[track_caller]
    fn of(&self, x: &Tensor, others: &Tensor) -> Tensor {
        let (y, gamma) = (Some(others.clone()), self.gamma);
        match self.kernel {
            Kernel::Cosine => cosine_similarity(x, others),
            Kernel::Laplacian => laplacian_kernel(x, Rbf { y, gamma }),
            Kernel::Linear => linear_kernel(x, others),
            Kernel::Poly => {
                let (degree, coef0) = (self.degree.unwrap_or(3.0), self.coef0.unwrap_or(1.0));
                polynomial_kernel(x, Polynomial { y, degree, gamma, coef0 })
            }
            Kernel::Rbf => rbf_kernel(x, Rbf { y, gamma }),
            Kernel::Sigmoid => sigmoid_kernel(x, Sigmoid { y, gamma, coef0: self.coef0.unwrap_or(1.0) }),
        }
    }
}

/// scikit-learn's `Nystroem`: features whose products are nearly a kernel, by the kernel with some of the
/// samples.
///
/// The choice of samples is a function of `random_state`, and not scikit-learn's.
///
/// ```
/// use tharsis_learn::kernel_approximation::Nystroem;
/// use tharsis_numeric::array;
/// let x = array([0.0, 0.5, 2.0]).reshape(&[3, 1]);
/// let made = Nystroem::new().gamma(1.0).n_components(3).fit(&x, ..)?.transform(&x);
/// let kernel = made.matmul(&made.t()).to_vec::<f64>()?;
/// assert!((kernel[1] - (-0.25f64).exp()).abs() < 1e-9);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct Nystroem {
    chosen: Chosen,
    n_components: usize,
    random_state: u64,
}

/// A fitted [`Nystroem`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedNystroem {
    /// scikit-learn's `components_`: the samples that were chosen; (components, d).
    pub components: Array2<f64>,
    /// scikit-learn's `component_indices_`: their rows; (components,).
    pub component_indices: Vec<usize>,
    /// scikit-learn's `normalization_`: the root of the inverse of their kernel; (components, components).
    pub normalization: Array2<f64>,
    chosen: Chosen,
}

parameters!(
    Nystroem,
    "Nystroem",
    [
        "kernel" => chosen.kernel, "gamma" => chosen.gamma, "coef0" => chosen.coef0,
        "degree" => chosen.degree, "n_components" => n_components >= 1, "random_state" => random_state
    ]
);

impl Default for Nystroem {
    fn default() -> Nystroem {
        Nystroem { chosen: Chosen::default(), n_components: 100, random_state: 0 }
    }
}

impl Nystroem {
    /// An estimator with scikit-learn's defaults: the kernel `rbf`, 100 samples.
    pub fn new() -> Nystroem {
        Nystroem::default()
    }

    /// scikit-learn's `kernel`: the function of two samples.
    pub fn kernel(mut self, kernel: Kernel) -> Nystroem {
        self.chosen.kernel = kernel;
        self
    }

    /// scikit-learn's `gamma`: the factor of distances and products; 1 / d if none is given.
    pub fn gamma(mut self, gamma: f64) -> Nystroem {
        self.chosen.gamma = Some(gamma);
        self
    }

    /// scikit-learn's `coef0`: what is added to products; 1 if none is given.
    pub fn coef0(mut self, coef0: f64) -> Nystroem {
        self.chosen.coef0 = Some(coef0);
        self
    }

    /// scikit-learn's `degree`: the exponent of the kernel `poly`; 3 if none is given.
    pub fn degree(mut self, degree: f64) -> Nystroem {
        self.chosen.degree = Some(degree);
        self
    }

    /// scikit-learn's `n_components`: the samples that are chosen, at most all.
    pub fn n_components(self, n_components: usize) -> Nystroem {
        Nystroem { n_components, ..self }
    }

    /// scikit-learn's `random_state`: the seed of their choice.
    pub fn random_state(self, random_state: u64) -> Nystroem {
        Nystroem { random_state, ..self }
    }

    /// Fits the map on samples (n, d), of any real dtype: reads the chosen ones, and looks for NaN in all.
    /// Two passes.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without rows or
    /// features, complex, NaN or infinite; `TypeError` for weights; `MemoryError` for more chosen samples
    /// than the memory holds; `OverflowError` for kernels beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedNystroem> {
        self.fit_any(x, None, &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let name = "Nystroem";
        check_count(name, "n_components", self.n_components, 1)?;
        let Chosen { gamma, coef0, degree, .. } = self.chosen;
        if let Some(gamma) = gamma {
            let is_sound = (0.0..f64::INFINITY).contains(&gamma);
            check(name, "gamma", is_sound, "a float in the range [0.0, inf) or None", gamma)?;
        }
        if let Some(coef0) = coef0 {
            check(name, "coef0", coef0.is_finite(), "a float in the range (-inf, inf) or None", coef0)?;
        }
        if let Some(degree) = degree {
            let is_sound = 1.0 <= degree && degree.is_finite();
            check(name, "degree", is_sound, "a float in the range [1.0, inf) or None", degree)?;
        }
        Ok(())
    }
}

impl Estimator for Nystroem {
    type Fitted = FittedNystroem;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedNystroem> {
        self.check()?;
        let training = Training::unsupervised("Nystroem", x, options)?.without_weights()?;
        let (rows, count) = (training.rows, self.n_components.min(training.rows));
        training.check_square(count)?;
        training.check_held(count, training.columns)?;
        let order = default_rng(self.random_state).permutation(rows).get(&[(..count as i64).into()]);
        let is_finite = training.x.isfinite().all(..);
        let states = training.engine.run(&[&order, &training.x.take_at(&order, 0), &is_finite])?;
        let [order, components, is_finite] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
        if is_finite.sum() == 0.0 {
            return Err(training.not_finite(Nan::Refused));
        }
        let components = matrix(components)?;
        let basis = tensor(&components);
        let kernel = training.engine.run(&[&self.chosen.of(&basis, &basis)])?;
        if !all_finite(&kernel) {
            return Err(training.beyond_float64());
        }
        let (left, singular, right) = svd(&matrix(kernel.into_iter().next().ok_or_else(lost)?)?)?;
        let roots = singular.mapv(|value| value.max(SINGULAR_MIN).sqrt());
        Ok(FittedNystroem {
            components,
            component_indices: order.into_iter().map(|row| row as usize).collect(),
            normalization: (left / roots).dot(&right),
            chosen: self.chosen.clone(),
        })
    }
}

impl FittedNystroem {
    /// The features of samples (n, d), as an expression; (n, components). Floats keep their dtype. Carries a
    /// `ValueError` for another number of features; when run for infinity and NaN.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples_for("Nystroem", x, self.components.ncols()) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let kernel = self.chosen.of(&samples, &tensor(&self.components)).astype(DType::F64);
        let made = kernel.matmul(&tensor(&self.normalization).t());
        in_dtype_of(x, in_fixed_chunks(&made, self.normalization.nrows()))
    }
}

saved!(FittedNystroem, "Nystroem", |model| {
    let (count, columns) = model.components.dim();
    0 < count
        && 0 < columns
        && model.normalization.dim() == (count, count)
        && model.component_indices.len() == count
});

impl Transform for FittedNystroem {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedNystroem::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered("Nystroem", self.components.nrows()))
    }
}

impl fmt::Display for FittedNystroem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, columns) = self.components.dim();
        write!(f, "Nystroem of {columns} features: {count} components, kernel {:?}", self.chosen.kernel)?;
        show::rows(f, "components", &self.components.clone().into_dyn())
    }
}
