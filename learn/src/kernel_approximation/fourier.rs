//! Cosines of random directions: kernels of differences, by Fourier's transform of their distributions.

use super::COMPONENTS_MAX;
use crate::Setting;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check, check_count};
use crate::checks::{Nan, Training, in_dtype_of, samples_for};
use crate::params::{Parameter, parameters};
use crate::passes::in_fixed_chunks;
use crate::saved::{Save, saved};
use crate::states::{all_finite, lost};
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_1_PI, FRAC_PI_2, TAU};
use std::fmt;
use tharsis_graph::ops::Require;
use tharsis_numeric::random::{Generator, default_rng};
use tharsis_numeric::{Result, Tensor};

/// The factor of squared distances in a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gamma {
    /// 1 / (d v), where v is the variance of all numbers; 1 if that is zero.
    Scale,
    /// This number.
    Value(f64),
}

impl From<f64> for Gamma {
    fn from(gamma: f64) -> Gamma {
        Gamma::Value(gamma)
    }
}

impl Parameter for Gamma {
    fn words(_: usize) -> String {
        "a str among {'scale'} or a float in the range [0.0, inf)".to_owned()
    }

    fn of(value: &Setting) -> Option<Gamma> {
        match value {
            Setting::Text(text) if text == "scale" => Some(Gamma::Scale),
            other => f64::of(other).map(Gamma::Value),
        }
    }

    fn setting(&self) -> Setting {
        match self {
            Gamma::Scale => "scale".into(),
            Gamma::Value(gamma) => Setting::Real(*gamma),
        }
    }
}

/// scikit-learn's `RBFSampler`: features whose products are nearly exp(-gamma |x - y|²).
///
/// Directions and angles are functions of `random_state`, made where they are used. The numbers are not
/// scikit-learn's.
///
/// ```
/// use tharsis_learn::kernel_approximation::RBFSampler;
/// use tharsis_numeric::array;
/// let x = array([0.0, 0.5]).reshape(&[2, 1]);
/// let made = RBFSampler::new().n_components(4000).fit(&x, ..)?.transform(&x);
/// let kernel = made.matmul(&made.t()).to_vec::<f64>()?;
/// assert!((kernel[1] - (-0.25f64).exp()).abs() < 0.1);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RBFSampler {
    gamma: Gamma,
    n_components: usize,
    random_state: u64,
}

/// A fitted [`RBFSampler`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedRBFSampler {
    /// The factor of squared distances.
    pub gamma: f64,
    n_components: usize,
    columns: usize,
    random_state: u64,
}

parameters!(
    RBFSampler,
    "RBFSampler",
    ["gamma" => gamma, "n_components" => n_components >= 1, "random_state" => random_state]
);

impl Default for RBFSampler {
    fn default() -> RBFSampler {
        RBFSampler { gamma: Gamma::Value(1.0), n_components: 100, random_state: 0 }
    }
}

/// Checks a number of components.
#[track_caller]
fn check_components(name: &str, n_components: usize) -> Result<()> {
    check_count(name, "n_components", n_components, 1)?;
    check(name, "n_components", n_components < COMPONENTS_MAX, "an int below 2^32", n_components)
}

/// Cosines of samples in random directions, shifted by random angles; (n, d) to (n, components).
#[track_caller]
fn cosines(samples: &Tensor, (weights, offsets): &(Tensor, Tensor), components: usize) -> Tensor {
    let angles = samples.matmul(weights) + offsets;
    in_fixed_chunks(&(angles.cos() * (2.0 / components as f64).sqrt()), components)
}

/// Directions, and angles from the next draw of the same generator: those of another one with this seed would
/// be made of the same numbers.
#[track_caller]
fn draws(seed: u64, components: usize, weights: impl Fn(&Generator) -> Tensor) -> (Tensor, Tensor) {
    let generator = default_rng(seed);
    let weights = weights(&generator);
    (weights, generator.uniform(0.0, TAU, &[components]))
}

impl RBFSampler {
    /// An estimator with scikit-learn's defaults: `gamma` is 1, 100 components.
    pub fn new() -> RBFSampler {
        RBFSampler::default()
    }

    /// scikit-learn's `gamma`: the factor of squared distances.
    pub fn gamma(self, gamma: impl Into<Gamma>) -> RBFSampler {
        RBFSampler { gamma: gamma.into(), ..self }
    }

    /// scikit-learn's `n_components`: the features that are made.
    pub fn n_components(self, n_components: usize) -> RBFSampler {
        RBFSampler { n_components, ..self }
    }

    /// scikit-learn's `random_state`: the seed of directions and angles.
    pub fn random_state(self, random_state: u64) -> RBFSampler {
        RBFSampler { random_state, ..self }
    }

    /// Fits the map on samples (n, d), of any real dtype: one pass looks for NaN, and sums squares for the
    /// `gamma` `scale`.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without rows or
    /// features, complex, NaN or infinite; `TypeError` for weights; `OverflowError` for sums beyond float64;
    /// errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedRBFSampler> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for RBFSampler {
    type Fitted = FittedRBFSampler;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedRBFSampler> {
        check_components("RBFSampler", self.n_components)?;
        if let Gamma::Value(gamma) = self.gamma {
            let is_sound = (0.0..f64::INFINITY).contains(&gamma);
            check("RBFSampler", "gamma", is_sound, &Gamma::words(0), gamma)?;
        }
        let training = Training::unsupervised("RBFSampler", x, options)?.without_weights()?;
        let gamma = match self.gamma {
            Gamma::Value(gamma) => {
                training.check_finite(Nan::Refused)?;
                gamma
            }
            Gamma::Scale => {
                let states = training.engine.run(&[&training.x.var(..)])?;
                if !all_finite(&states) {
                    return Err(training.not_finite(Nan::Refused));
                }
                let variance = states.first().ok_or_else(lost)?.sum();
                if variance == 0.0 { 1.0 } else { 1.0 / (training.columns as f64 * variance) }
            }
        };
        Ok(FittedRBFSampler {
            gamma,
            n_components: self.n_components,
            columns: training.columns,
            random_state: self.random_state,
        })
    }
}

impl FittedRBFSampler {
    fn draws(&self) -> (Tensor, Tensor) {
        let shape = [self.columns, self.n_components];
        let scale = (2.0 * self.gamma).sqrt();
        draws(self.random_state, self.n_components, |generator| generator.standard_normal(&shape) * scale)
    }

    /// scikit-learn's `random_weights_`: the directions, as an expression; (d, components).
    #[track_caller]
    pub fn random_weights(&self) -> Tensor {
        self.draws().0
    }

    /// scikit-learn's `random_offset_`: the angles, as an expression; (components,).
    #[track_caller]
    pub fn random_offset(&self) -> Tensor {
        self.draws().1
    }

    /// The features of samples (n, d), as an expression; (n, components). Floats keep their dtype. Carries a
    /// `ValueError` for another number of features; when run for infinity and NaN.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        match samples_for("RBFSampler", x, self.columns) {
            Ok(samples) => {
                let made = cosines(&samples, &self.draws(), self.n_components);
                in_dtype_of(x, made)
            }
            Err(error) => Tensor::from(error),
        }
    }
}

saved!(FittedRBFSampler, "RBFSampler", |model| {
    let is_extent = |extent: usize| 0 < extent && extent < COMPONENTS_MAX;
    is_extent(model.n_components) && is_extent(model.columns)
});

impl Transform for FittedRBFSampler {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedRBFSampler::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered("RBFSampler", self.n_components))
    }
}

impl fmt::Display for FittedRBFSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FittedRBFSampler { gamma, n_components, columns, .. } = self;
        write!(f, "RBFSampler of {columns} features: {n_components} components, gamma {gamma}")
    }
}

/// scikit-learn's `SkewedChi2Sampler`: features whose products are nearly the skewed chi squared kernel.
///
/// Directions and angles are functions of `random_state`, made where they are used. The numbers are not
/// scikit-learn's.
///
/// ```
/// use tharsis_learn::kernel_approximation::SkewedChi2Sampler;
/// use tharsis_numeric::array;
/// let x = array([0.0, 3.0]).reshape(&[2, 1]);
/// let made = SkewedChi2Sampler::new().n_components(4000).fit(&x, ..)?.transform(&x);
/// let kernel = made.matmul(&made.t()).to_vec::<f64>()?;
/// // 2 √(x + c) √(y + c) / (x + y + 2 c).
/// assert!((kernel[1] - 4.0 / 5.0).abs() < 0.1);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct SkewedChi2Sampler {
    skewedness: f64,
    n_components: usize,
    random_state: u64,
}

/// A fitted [`SkewedChi2Sampler`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedSkewedChi2Sampler {
    skewedness: f64,
    n_components: usize,
    columns: usize,
    random_state: u64,
}

parameters!(
    SkewedChi2Sampler,
    "SkewedChi2Sampler",
    ["skewedness" => skewedness, "n_components" => n_components >= 1, "random_state" => random_state]
);

impl Default for SkewedChi2Sampler {
    fn default() -> SkewedChi2Sampler {
        SkewedChi2Sampler { skewedness: 1.0, n_components: 100, random_state: 0 }
    }
}

impl SkewedChi2Sampler {
    /// An estimator with scikit-learn's defaults: the skewedness is 1, 100 components.
    pub fn new() -> SkewedChi2Sampler {
        SkewedChi2Sampler::default()
    }

    /// scikit-learn's `skewedness`: what is added to each number.
    pub fn skewedness(self, skewedness: f64) -> SkewedChi2Sampler {
        SkewedChi2Sampler { skewedness, ..self }
    }

    /// scikit-learn's `n_components`: the features that are made.
    pub fn n_components(self, n_components: usize) -> SkewedChi2Sampler {
        SkewedChi2Sampler { n_components, ..self }
    }

    /// scikit-learn's `random_state`: the seed of directions and angles.
    pub fn random_state(self, random_state: u64) -> SkewedChi2Sampler {
        SkewedChi2Sampler { random_state, ..self }
    }

    /// Fits the map on samples (n, d), of any real dtype. One pass looks for NaN.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without rows or
    /// features, complex, NaN or infinite; `TypeError` for weights; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedSkewedChi2Sampler> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for SkewedChi2Sampler {
    type Fitted = FittedSkewedChi2Sampler;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedSkewedChi2Sampler> {
        let SkewedChi2Sampler { skewedness, n_components, random_state } = *self;
        check_components("SkewedChi2Sampler", n_components)?;
        let wanted = "a float in the range (-inf, inf)";
        check("SkewedChi2Sampler", "skewedness", skewedness.is_finite(), wanted, skewedness)?;
        let training = Training::unsupervised("SkewedChi2Sampler", x, options)?.without_weights()?;
        training.check_finite(Nan::Refused)?;
        Ok(FittedSkewedChi2Sampler { skewedness, n_components, columns: training.columns, random_state })
    }
}

impl FittedSkewedChi2Sampler {
    fn draws(&self) -> (Tensor, Tensor) {
        let shape = [self.columns, self.n_components];
        draws(self.random_state, self.n_components, |generator| {
            // A draw of zero would be an infinite direction.
            let draws = generator.random(&shape).maximum(f64::EPSILON);
            (draws * FRAC_PI_2).tan().log() * FRAC_1_PI
        })
    }

    /// scikit-learn's `random_weights_`: the directions, with the distribution of a hyperbolic secant, as an
    /// expression; (d, components).
    #[track_caller]
    pub fn random_weights(&self) -> Tensor {
        self.draws().0
    }

    /// scikit-learn's `random_offset_`: the angles, as an expression; (components,).
    #[track_caller]
    pub fn random_offset(&self) -> Tensor {
        self.draws().1
    }

    /// The features of samples (n, d), as an expression; (n, components). Floats keep their dtype. Carries a
    /// `ValueError` for another number of features; when run for infinity, NaN, and numbers that are not
    /// above the negative skewedness.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples_for("SkewedChi2Sampler", x, self.columns) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let message = "X may not contain entries smaller than -skewedness.".to_owned();
        let shifted = Tensor::apply(
            Require { message },
            &[&(&samples + self.skewedness), &samples.greater(-self.skewedness)],
        );
        let made = cosines(&shifted.log(), &self.draws(), self.n_components);
        in_dtype_of(x, made)
    }
}

saved!(FittedSkewedChi2Sampler, "SkewedChi2Sampler", |model| {
    let is_extent = |extent: usize| 0 < extent && extent < COMPONENTS_MAX;
    is_extent(model.n_components) && is_extent(model.columns)
});

impl Transform for FittedSkewedChi2Sampler {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedSkewedChi2Sampler::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered("SkewedChi2Sampler", self.n_components))
    }
}

impl fmt::Display for FittedSkewedChi2Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FittedSkewedChi2Sampler { skewedness, n_components, columns, .. } = self;
        write!(
            f,
            "SkewedChi2Sampler of {columns} features: {n_components} components, skewedness {skewedness}"
        )
    }
}
