//! Samples of the Fourier transform of the additive chi squared kernel.

use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check, check_count};
use crate::checks::{Nan, Training, in_dtype_of, refused, samples_for};
use crate::params::parameters;
use crate::passes::in_fixed_chunks;
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::fmt;
use tharsis_graph::ops::Require;
use tharsis_numeric::{Result, Tensor, concatenate, where_};

/// Distances of samples for one, two and three of them, as scikit-learn has them.
const INTERVALS: [f64; 3] = [0.8, 0.5, 0.4];

/// Most samples: each is a part of an expression.
const STEPS_MAX: usize = 1 << 12;

/// scikit-learn's `AdditiveChi2Sampler`: features whose products are nearly the additive chi squared kernel,
/// the sum of 2 x y / (x + y).
///
/// ```
/// use tharsis_learn::kernel_approximation::AdditiveChi2Sampler;
/// use tharsis_numeric::array;
/// let x = array([1.0, 2.0]).reshape(&[2, 1]);
/// let made = AdditiveChi2Sampler::new().sample_steps(3).fit(&x, ..)?.transform(&x);
/// assert_eq!(made.shape()?, [2, 5]);
/// let kernel = made.matmul(&made.t()).to_vec::<f64>()?;
/// assert!((kernel[1] - 4.0 / 3.0).abs() < 0.05);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct AdditiveChi2Sampler {
    sample_steps: usize,
    sample_interval: Option<f64>,
}

/// A fitted [`AdditiveChi2Sampler`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedAdditiveChi2Sampler {
    columns: usize,
    sample_steps: usize,
    interval: f64,
}

parameters!(
    AdditiveChi2Sampler,
    "AdditiveChi2Sampler",
    ["sample_steps" => sample_steps >= 1, "sample_interval" => sample_interval]
);

impl Default for AdditiveChi2Sampler {
    fn default() -> AdditiveChi2Sampler {
        AdditiveChi2Sampler { sample_steps: 2, sample_interval: None }
    }
}

impl AdditiveChi2Sampler {
    /// An estimator with scikit-learn's defaults: two samples.
    pub fn new() -> AdditiveChi2Sampler {
        AdditiveChi2Sampler::default()
    }

    /// scikit-learn's `sample_steps`: the samples of the transform.
    pub fn sample_steps(self, sample_steps: usize) -> AdditiveChi2Sampler {
        AdditiveChi2Sampler { sample_steps, ..self }
    }

    /// scikit-learn's `sample_interval`: their distance; needed for more than three samples.
    pub fn sample_interval(self, sample_interval: f64) -> AdditiveChi2Sampler {
        AdditiveChi2Sampler { sample_interval: Some(sample_interval), ..self }
    }

    /// Fits the map on samples (n, d), of any real dtype. One pass looks for NaN and negative numbers.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without rows or
    /// features, complex, NaN, infinite or negative; `TypeError` for weights; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedAdditiveChi2Sampler> {
        self.fit_any(x, None, &options.into())
    }

    #[track_caller]
    fn interval(&self) -> Result<f64> {
        let (name, steps) = ("AdditiveChi2Sampler", self.sample_steps);
        check_count(name, "sample_steps", steps, 1)?;
        check(name, "sample_steps", steps <= STEPS_MAX, "an int of at most 2^12", steps)?;
        if let Some(given) = self.sample_interval {
            let is_sound = (0.0..f64::INFINITY).contains(&given);
            check(name, "sample_interval", is_sound, "a float in the range [0.0, inf) or None", given)?;
            return Ok(given);
        }
        INTERVALS.get(steps - 1).copied().ok_or_else(|| {
            refused("If sample_steps is not in [1, 2, 3], you need to provide sample_interval")
        })
    }
}

const NEGATIVE: &str = "Negative values in data passed to X in AdditiveChi2Sampler.";

impl Estimator for AdditiveChi2Sampler {
    type Fitted = FittedAdditiveChi2Sampler;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedAdditiveChi2Sampler> {
        let interval = self.interval()?;
        let training = Training::unsupervised("AdditiveChi2Sampler", x, options)?.without_weights()?;
        training.check_finite(Nan::Refused)?;
        let states = training.engine.run(&[&training.x.min(..)])?;
        if states.iter().any(|least| least.sum() < 0.0) {
            return Err(refused(NEGATIVE));
        }
        Ok(FittedAdditiveChi2Sampler { columns: training.columns, sample_steps: self.sample_steps, interval })
    }
}

impl FittedAdditiveChi2Sampler {
    /// The features of samples (n, d), as an expression; (n, d (2 steps - 1)). Floats keep their dtype.
    /// Carries a `ValueError` for another number of features; when run for infinity, NaN and negative
    /// numbers.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples_for("AdditiveChi2Sampler", x, self.columns) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let message = NEGATIVE.to_owned();
        let samples = Tensor::apply(Require { message }, &[&samples, &samples.greater_equal(0.0)]);
        let is_zero = samples.equal(0.0);
        // The logarithm of zero is not needed: its factor is zero.
        let logs = where_(&is_zero, 1.0, &samples).log();
        let mut parts = vec![(&samples * self.interval).sqrt()];
        for step in 1..self.sample_steps {
            let place = step as f64 * self.interval;
            let factor = (&samples * (2.0 * self.interval / (PI * place).cosh())).sqrt();
            let angle = &logs * place;
            parts.push(&factor * angle.cos());
            parts.push(factor * angle.sin());
        }
        let made = concatenate(&parts.iter().collect::<Vec<_>>(), 1);
        in_dtype_of(x, in_fixed_chunks(&made, self.columns.saturating_mul(2 * self.sample_steps - 1)))
    }
}

saved!(FittedAdditiveChi2Sampler, "AdditiveChi2Sampler", |model| {
    0 < model.columns && (1..=STEPS_MAX).contains(&model.sample_steps)
});

impl Transform for FittedAdditiveChi2Sampler {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedAdditiveChi2Sampler::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        if names.len() != self.columns {
            return None;
        }
        let waves = (1..self.sample_steps).flat_map(|step| [format!("cos{step}"), format!("sin{step}")]);
        let of = |wave: String| names.iter().map(move |name| format!("additivechi2sampler_{name}_{wave}"));
        Some(std::iter::once("sqrt".to_owned()).chain(waves).flat_map(of).collect())
    }
}

impl fmt::Display for FittedAdditiveChi2Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FittedAdditiveChi2Sampler { columns, sample_steps, interval } = self;
        write!(f, "AdditiveChi2Sampler of {columns} features: {sample_steps} samples at {interval}")
    }
}
