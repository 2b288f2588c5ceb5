//! scikit-learn's `random_projection`: samples in fewer dimensions that nearly keep their distances.

use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check, check_count, check_positive};
use crate::checks::{Nan, Training, in_dtype_of, refused, samples_for};
use crate::params::{Auto, parameters};
use crate::passes::in_fixed_chunks;
use crate::saved::{EstimatorName, Save, name_among, saved};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Result, Tensor, where_};

/// Components and features that no model has.
const EXTENT_MAX: usize = 1 << 32;

/// scikit-learn's `johnson_lindenstrauss_min_dim`: the dimensions in which so many samples keep their
/// distances up to a part `eps`, from 0 to 1.
///
/// ```
/// use tharsis_learn::random_projection::johnson_lindenstrauss_min_dim;
/// assert_eq!(johnson_lindenstrauss_min_dim(1000, 0.1)?, 5920);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for another `eps`, and for no samples.
#[track_caller]
pub fn johnson_lindenstrauss_min_dim(n_samples: usize, eps: f64) -> Result<usize> {
    let is_sound = 0.0 < eps && eps < 1.0;
    if !is_sound {
        return Err(refused(format!("The JL bound is defined for eps in ]0, 1[, got array({eps})")));
    }
    if n_samples == 0 {
        return Err(refused("The JL bound is defined for n_samples greater than zero, got array(0)"));
    }
    let denominator = eps * eps / 2.0 - eps * eps * eps / 3.0;
    Ok((4.0 * (n_samples as f64).ln() / denominator) as usize)
}

/// Parameters of both estimators.
#[derive(Clone, Debug)]
struct Projection {
    n_components: Auto<usize>,
    eps: f64,
    random_state: u64,
}

impl Default for Projection {
    fn default() -> Projection {
        Projection { n_components: Auto(None), eps: 0.1, random_state: 0 }
    }
}

impl Projection {
    /// The number of components for these samples.
    #[track_caller]
    fn components(&self, training: &Training) -> Result<usize> {
        if let Auto(Some(given)) = self.n_components {
            return Ok(given);
        }
        let Training { rows, columns, .. } = *training;
        let (found, eps) = (johnson_lindenstrauss_min_dim(rows, self.eps)?, self.eps);
        let text =
            format!("eps={eps:.6} and n_samples={rows} lead to a target dimension of {found} which is ");
        if found == 0 {
            return Err(refused(text + "invalid"));
        }
        if columns < found {
            let space = format!("larger than the original space with n_features={columns}");
            return Err(refused(text + &space));
        }
        Ok(found)
    }

    /// Checks the parameters, and finite samples in a pass.
    #[track_caller]
    fn fit(
        &self,
        name: &'static str,
        density: Option<Auto<f64>>,
        (x, options): (&Tensor, &FitOptions),
    ) -> Result<FittedRandomProjection> {
        if let Auto(Some(given)) = self.n_components {
            check_count(name, "n_components", given, 1)?;
        }
        check_positive(name, "eps", self.eps)?;
        if let Some(Auto(Some(density))) = density {
            let is_sound = 0.0 < density && density <= 1.0;
            let wanted = "a float in the range (0.0, 1.0] or a str among {'auto'}";
            check(name, "density", is_sound, wanted, density)?;
        }
        let training = Training::unsupervised(name, x, options)?.without_weights()?;
        let n_components = self.components(&training)?;
        check(name, "n_components", n_components < EXTENT_MAX, "an int below 2^32", n_components)?;
        training.check_finite(Nan::Refused)?;
        let columns = training.columns;
        let density = density.map(|Auto(density)| density.unwrap_or_else(|| 1.0 / (columns as f64).sqrt()));
        Ok(FittedRandomProjection { n_components, density, columns, random_state: self.random_state, name })
    }
}

/// scikit-learn's `GaussianRandomProjection`: samples times a matrix of normal numbers.
///
/// The matrix is a function of `random_state`: it is made where it is used, and no part of the model. Its
/// numbers are not scikit-learn's.
///
/// ```
/// use tharsis_learn::random_projection::GaussianRandomProjection;
/// use tharsis_numeric::ones;
/// let x = ones(&[3, 1000]);
/// let model = GaussianRandomProjection::new().n_components(200).fit(&x, ..)?;
/// let lengths = model.transform(&x).square().sum(1).to_vec::<f64>()?;
/// assert!((lengths[0] / 1000.0 - 1.0).abs() < 0.5);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct GaussianRandomProjection {
    projection: Projection,
}

/// scikit-learn's `SparseRandomProjection`: samples times a matrix of few numbers of one size, and zeros.
///
/// As [`GaussianRandomProjection`]; what is made is dense.
///
/// ```
/// use tharsis_learn::random_projection::SparseRandomProjection;
/// use tharsis_numeric::ones;
/// let model = SparseRandomProjection::new().n_components(5).fit(&ones(&[3, 16]), ..)?;
/// assert_eq!(model.density, Some(0.25));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct SparseRandomProjection {
    projection: Projection,
    density: Auto<f64>,
}

impl Default for SparseRandomProjection {
    fn default() -> SparseRandomProjection {
        SparseRandomProjection { projection: Projection::default(), density: Auto(None) }
    }
}

parameters!(
    GaussianRandomProjection,
    "GaussianRandomProjection",
    [
        "n_components" => projection.n_components >= 1, "eps" => projection.eps,
        "random_state" => projection.random_state
    ]
);
parameters!(
    SparseRandomProjection,
    "SparseRandomProjection",
    [
        "n_components" => projection.n_components >= 1, "density" => density, "eps" => projection.eps,
        "random_state" => projection.random_state
    ]
);

/// The methods that both estimators have.
macro_rules! projection {
    ($name:ident, |$estimator:ident| $density:expr) => {
        impl $name {
            /// An estimator with scikit-learn's defaults: as many components as keep distances up to a tenth.
            pub fn new() -> $name {
                $name::default()
            }

            /// scikit-learn's `n_components`: the dimensions that are made; as many as `eps` needs if none is
            /// given.
            pub fn n_components(mut self, n_components: usize) -> $name {
                self.projection.n_components = Auto(Some(n_components));
                self
            }

            /// scikit-learn's `eps`: the part by which squares of distances may change, for a number of
            /// components that is not given.
            pub fn eps(mut self, eps: f64) -> $name {
                self.projection.eps = eps;
                self
            }

            /// scikit-learn's `random_state`: the seed of the matrix.
            pub fn random_state(mut self, random_state: u64) -> $name {
                self.projection.random_state = random_state;
                self
            }

            /// Fits the projection on samples (n, d), of any real dtype: counts them, and looks for NaN in
            /// one pass.
            ///
            /// # Errors
            /// `ValueError` for parameters out of their ranges, more components than features where their
            /// number is not given, samples of other than two axes, without rows or features, complex, NaN or
            /// infinite; `TypeError` for weights; errors of the pass.
            #[track_caller]
            pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedRandomProjection> {
                self.fit_any(x, None, &options.into())
            }
        }

        impl Estimator for $name {
            type Fitted = FittedRandomProjection;

            fn takes_weights(&self) -> bool {
                false
            }

            #[track_caller]
            fn fit_any(
                &self,
                x: &Tensor,
                _: Option<&Tensor>,
                options: &FitOptions,
            ) -> Result<FittedRandomProjection> {
                let $estimator = self;
                self.projection.fit(stringify!($name), $density, (x, options))
            }
        }
    };
}

projection!(GaussianRandomProjection, |_estimator| None);
projection!(SparseRandomProjection, |estimator| Some(estimator.density));

impl SparseRandomProjection {
    /// scikit-learn's `density`: the part of the matrix that is not zero; 1 / √d if none is given.
    pub fn density(self, density: f64) -> SparseRandomProjection {
        SparseRandomProjection { density: Auto(Some(density)), ..self }
    }
}

/// A fitted random projection.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedRandomProjection {
    /// scikit-learn's `n_components_`: the dimensions that are made.
    pub n_components: usize,
    /// scikit-learn's `density_` of a sparse matrix: the part that is not zero.
    pub density: Option<f64>,
    columns: usize,
    random_state: u64,
    #[serde(deserialize_with = "estimator")]
    name: EstimatorName,
}

fn estimator<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<&'static str, D::Error> {
    name_among(deserializer, &["GaussianRandomProjection", "SparseRandomProjection"])
}

impl FittedRandomProjection {
    /// scikit-learn's `components_`: the matrix, as an expression; (components, d).
    #[track_caller]
    pub fn components(&self) -> Tensor {
        let shape = [self.n_components, self.columns];
        let generator = default_rng(self.random_state);
        let root = (self.n_components as f64).sqrt();
        let Some(density) = self.density else { return generator.normal(0.0, 1.0 / root, &shape) };
        let draws = generator.random(&shape);
        let size = 1.0 / (density.sqrt() * root);
        where_(&draws.less(density * 0.5), -size, where_(&draws.less(density), size, 0.0))
    }

    /// Samples (n, d) times the matrix, as an expression; (n, components). Floats keep their dtype. Carries a
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        match samples_for(self.name, x, self.columns) {
            Ok(samples) => {
                let made = samples.matmul(&self.components().t());
                in_dtype_of(x, in_fixed_chunks(&made, self.n_components))
            }
            Err(error) => Tensor::from(error),
        }
    }

    /// The samples of least length that [`transform`](FittedRandomProjection::transform) maps to these, as an
    /// expression; (n, components) to (n, d). Carries a `ValueError` for another number of components; the
    /// matrix and its pseudoinverse must fit the memory.
    #[track_caller]
    pub fn inverse_transform(&self, x: &Tensor) -> Tensor {
        match samples_for(self.name, x, self.n_components) {
            Ok(samples) => in_dtype_of(x, samples.matmul(&self.components().pinv(None).t())),
            Err(error) => Tensor::from(error),
        }
    }
}

saved!(FittedRandomProjection, "RandomProjection", |model| {
    let is_extent = |extent: usize| 0 < extent && extent < EXTENT_MAX;
    let is_share = |density: f64| 0.0 < density && density <= 1.0;
    is_extent(model.n_components) && is_extent(model.columns) && model.density.is_none_or(is_share)
});

impl Transform for FittedRandomProjection {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedRandomProjection::transform(self, x)
    }

    #[track_caller]
    fn inverse(&self, x: &Tensor) -> Option<Tensor> {
        Some(self.inverse_transform(x))
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered(self.name, self.n_components))
    }
}

impl fmt::Display for FittedRandomProjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} features: {} components", self.name, self.columns, self.n_components)
    }
}
