//! Sketches of counts of products of features, by Fourier's transform.

use super::COMPONENTS_MAX;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check, check_count};
use crate::checks::{Nan, Training, in_dtype_of, samples_for};
use crate::params::parameters;
use crate::passes::in_fixed_chunks;
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::fft::Norm;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Result, Tensor, arange, concatenate};

/// Largest degree: each factor is a part of an expression.
const DEGREE_MAX: usize = 1 << 10;

/// scikit-learn's `PolynomialCountSketch`: features whose products are nearly (gamma x·y + coef0)^degree.
///
/// The places and signs of features are functions of `random_state`; the numbers are not
/// scikit-learn's.
///
/// ```
/// use tharsis_learn::kernel_approximation::PolynomialCountSketch;
/// use tharsis_numeric::array;
/// let x = array([1.0, 2.0, 2.0, 0.5]).reshape(&[2, 2]);
/// let made = PolynomialCountSketch::new().n_components(512).fit(&x, ..)?.transform(&x);
/// let kernel = made.matmul(&made.t()).to_vec::<f64>()?;
/// assert!((kernel[1] - 9.0).abs() < 4.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct PolynomialCountSketch {
    gamma: f64,
    degree: usize,
    coef0: f64,
    n_components: usize,
    random_state: u64,
}

/// A fitted [`PolynomialCountSketch`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedPolynomialCountSketch {
    columns: usize,
    gamma: f64,
    degree: usize,
    coef0: f64,
    n_components: usize,
    random_state: u64,
}

parameters!(
    PolynomialCountSketch,
    "PolynomialCountSketch",
    [
        "gamma" => gamma, "degree" => degree >= 1, "coef0" => coef0, "n_components" => n_components >= 1,
        "random_state" => random_state
    ]
);

impl Default for PolynomialCountSketch {
    fn default() -> PolynomialCountSketch {
        PolynomialCountSketch { gamma: 1.0, degree: 2, coef0: 0.0, n_components: 100, random_state: 0 }
    }
}

impl PolynomialCountSketch {
    /// An estimator with scikit-learn's defaults: squares of products, 100 components.
    pub fn new() -> PolynomialCountSketch {
        PolynomialCountSketch::default()
    }

    /// scikit-learn's `gamma`: the factor of products.
    pub fn gamma(self, gamma: f64) -> PolynomialCountSketch {
        PolynomialCountSketch { gamma, ..self }
    }

    /// scikit-learn's `degree`: the exponent.
    pub fn degree(self, degree: usize) -> PolynomialCountSketch {
        PolynomialCountSketch { degree, ..self }
    }

    /// scikit-learn's `coef0`: what is added to products; of a negative one there are no features.
    pub fn coef0(self, coef0: f64) -> PolynomialCountSketch {
        PolynomialCountSketch { coef0, ..self }
    }

    /// scikit-learn's `n_components`: the features that are made; a power of two is fastest.
    pub fn n_components(self, n_components: usize) -> PolynomialCountSketch {
        PolynomialCountSketch { n_components, ..self }
    }

    /// scikit-learn's `random_state`: the seed of places and signs.
    pub fn random_state(self, random_state: u64) -> PolynomialCountSketch {
        PolynomialCountSketch { random_state, ..self }
    }

    /// Fits the map on samples (n, d), of any real dtype. One pass looks for NaN.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, a negative `coef0`, samples of other than two axes,
    /// without rows or features, complex, NaN or infinite; `TypeError` for weights; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedPolynomialCountSketch> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for PolynomialCountSketch {
    type Fitted = FittedPolynomialCountSketch;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedPolynomialCountSketch> {
        let name = "PolynomialCountSketch";
        let PolynomialCountSketch { gamma, degree, coef0, n_components, random_state } = *self;
        check_count(name, "degree", degree, 1)?;
        check(name, "degree", degree <= DEGREE_MAX, "an int of at most 2^10", degree)?;
        check_count(name, "n_components", n_components, 1)?;
        check(name, "n_components", n_components < COMPONENTS_MAX, "an int below 2^32", n_components)?;
        let is_sound = |number: f64| (0.0..f64::INFINITY).contains(&number);
        check(name, "gamma", is_sound(gamma), "a float in the range [0.0, inf)", gamma)?;
        check(name, "coef0", is_sound(coef0), "a float in the range [0.0, inf)", coef0)?;
        let training = Training::unsupervised(name, x, options)?.without_weights()?;
        training.check_finite(Nan::Refused)?;
        let columns = training.columns;
        Ok(FittedPolynomialCountSketch { columns, gamma, degree, coef0, n_components, random_state })
    }
}

impl FittedPolynomialCountSketch {
    /// The numbers of features, with one for `coef0`.
    fn width(&self) -> usize {
        self.columns + usize::from(self.coef0 != 0.0)
    }

    /// scikit-learn's `indexHash_`: the place of each feature in each sketch, as an expression;
    /// (degree, features).
    #[track_caller]
    pub fn index_hash(&self) -> Tensor {
        self.hashes().0
    }

    /// scikit-learn's `bitHash_`: the sign of each feature in each sketch, as an expression;
    /// (degree, features).
    #[track_caller]
    pub fn bit_hash(&self) -> Tensor {
        self.hashes().1
    }

    #[track_caller]
    fn hashes(&self) -> (Tensor, Tensor) {
        let (generator, shape) = (default_rng(self.random_state), [self.degree, self.width()]);
        let places = generator.integers(0, self.n_components as i64, &shape);
        (places, generator.integers(0, 2, &shape) * 2 - 1)
    }

    /// The features of samples (n, d), as an expression; (n, components). Floats keep their dtype. Carries a
    /// `ValueError` for another number of features; when run for infinity and NaN.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples_for("PolynomialCountSketch", x, self.columns) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let first =
            samples.get(&[(..).into(), (..1i64).into()]).isnan().logical_and(false).astype(DType::F64);
        let mut samples = samples * self.gamma.sqrt();
        if self.coef0 != 0.0 {
            samples = concatenate(&[&samples, &(first + self.coef0.sqrt())], 1);
        }
        let (places, signs) = self.hashes();
        let row = |of: &Tensor, factor: usize| of.get(&[(factor as i64).into()]).expand_dims(1);
        let sketch = |factor: usize| {
            // Whether a feature is added at each place, with its sign: sums of features are a product.
            let is_there = row(&places, factor).equal(arange(self.n_components)).astype(DType::F64);
            let sums = samples.matmul(&(is_there * row(&signs, factor)));
            sums.rfft(None, 1, Norm::Backward)
        };
        let mut product = sketch(0);
        for factor in 1..self.degree {
            product *= sketch(factor);
        }
        let made = product.irfft(Some(self.n_components), 1, Norm::Backward);
        in_dtype_of(x, in_fixed_chunks(&made, self.n_components))
    }
}

saved!(FittedPolynomialCountSketch, "PolynomialCountSketch", |model| {
    let is_extent = |extent: usize| 0 < extent && extent < COMPONENTS_MAX;
    let is_sound = |number: f64| (0.0..f64::INFINITY).contains(&number);
    is_extent(model.n_components)
        && is_extent(model.columns)
        && (1..=DEGREE_MAX).contains(&model.degree)
        && is_sound(model.gamma)
        && is_sound(model.coef0)
});

impl Transform for FittedPolynomialCountSketch {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedPolynomialCountSketch::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered("PolynomialCountSketch", self.n_components))
    }
}

impl fmt::Display for FittedPolynomialCountSketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FittedPolynomialCountSketch { columns, degree, n_components, .. } = self;
        write!(f, "PolynomialCountSketch of {columns} features: {n_components} components of degree {degree}")
    }
}
