//! Few factors behind many features.

use super::projection::coordinates;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::{check, check_count, check_not_negative};
use crate::checks::{Training, refused, samples_for};
use crate::dense::{cholesky, factor, svd, tensor};
use crate::params::parameters;
use crate::passes::{Around, Moments, in_fixed_chunks};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::lost;
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::fmt;
use tharsis_numeric::{Result, Tensor};

const NAME: &str = "FactorAnalysis";
/// The least noise of a feature.
const LEAST_NOISE: f64 = 1e-12;
/// Steps after which a fit asks whether there is time left.
const STEPS_BETWEEN_CHECKS: usize = 16;

/// scikit-learn's `FactorAnalysis`: samples as sums of few factors and of noise, which is another one for
/// each feature. All steps are made of the covariance of one pass (the solver `lapack`).
///
/// ```
/// use tharsis_learn::decomposition::FactorAnalysis;
/// use tharsis_numeric::array;
/// let x = array([0.0, 0.1, 2.0, 1.9, 4.0, 4.2, 6.0, 5.8]).reshape(&[4, 2]);
/// let model = FactorAnalysis::new().n_components(1).fit(&x, ..)?;
/// assert_eq!(model.components.dim(), (1, 2));
/// assert!(model.noise_variance.iter().all(|noise| *noise < 0.1));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct FactorAnalysis {
    n_components: Option<usize>,
    tol: f64,
    max_iter: usize,
    noise_variance_init: Option<Vec<f64>>,
}

/// A fitted [`FactorAnalysis`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedFactorAnalysis {
    /// scikit-learn's `components_`: a factor a row, of any sign; (k, d).
    pub components: Array2<f64>,
    /// scikit-learn's `noise_variance_`; (d,).
    pub noise_variance: Array1<f64>,
    /// scikit-learn's `mean_`; (d,).
    pub mean: Array1<f64>,
    /// scikit-learn's `loglike_`: the logarithm of the likelihood in each step.
    pub loglike: Vec<f64>,
    /// scikit-learn's `n_iter_`.
    pub n_iter: usize,
    /// Whether the likelihood has grown by less than `tol` in the last step.
    pub converged: bool,
}

parameters!(
    FactorAnalysis,
    NAME,
    [
        "n_components" => n_components >= 1, "tol" => tol, "max_iter" => max_iter >= 1,
        "noise_variance_init" => noise_variance_init
    ]
);

impl Default for FactorAnalysis {
    fn default() -> FactorAnalysis {
        FactorAnalysis { n_components: None, tol: 1e-2, max_iter: 1000, noise_variance_init: None }
    }
}

impl FactorAnalysis {
    /// An estimator with scikit-learn's defaults: as many factors as features, `tol` 0.01, at most 1000
    /// steps.
    pub fn new() -> FactorAnalysis {
        FactorAnalysis::default()
    }

    /// scikit-learn's `n_components`: the number of factors, not zero; `None` is the number of features.
    pub fn n_components(self, n_components: impl Into<Option<usize>>) -> FactorAnalysis {
        FactorAnalysis { n_components: n_components.into(), ..self }
    }

    /// scikit-learn's `tol`: the growth of the logarithm of the likelihood at which steps end.
    pub fn tol(self, tol: f64) -> FactorAnalysis {
        FactorAnalysis { tol, ..self }
    }

    /// scikit-learn's `max_iter`: the most steps; not zero.
    pub fn max_iter(self, max_iter: usize) -> FactorAnalysis {
        FactorAnalysis { max_iter, ..self }
    }

    /// scikit-learn's `noise_variance_init`: the first variances of noise, one for each feature; 1 by
    /// default.
    pub fn noise_variance_init(self, variances: &[f64]) -> FactorAnalysis {
        FactorAnalysis { noise_variance_init: Some(variances.to_vec()), ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without rows or
    /// features, complex, NaN or infinite; `MemoryError` if the covariance takes more than the memory;
    /// `OverflowError` for sums beyond float64; `TypeError` for weights; errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedFactorAnalysis> {
        self.fit_any(x, None, &options.into())
    }

    /// The steps, on the covariance.
    #[track_caller]
    fn steps(&self, moments: &Moments, rows: usize, training: &Training) -> Result<FittedFactorAnalysis> {
        let features = moments.mean.len();
        let kept = self.n_components.unwrap_or(features).min(features).min(rows);
        let covariance = &moments.gram / rows as f64;
        let variance = covariance.diag().to_owned();
        // Squares have too few digits where the noise of a feature vanishes; their root has enough.
        let root = factor(&covariance, features)?.reversed_axes();
        let mut noise = match &self.noise_variance_init {
            None => Array1::ones(features),
            Some(given) => Array1::from_vec(given.clone()),
        };
        let (mut loglike, mut before) = (Vec::new(), f64::NEG_INFINITY);
        let constant = features as f64 * (2.0 * PI).ln() + self.n_components.unwrap_or(features) as f64;
        for step in 1..=self.max_iter {
            let deviation = noise.mapv(|noise| noise.sqrt() + LEAST_NOISE);
            let (_, singular, directions) = svd(&(&root / &deviation))?;
            let all = singular.mapv(|value| value * value);
            let squares: Array1<f64> = all.iter().take(kept).copied().collect();
            let components = Array2::from_shape_fn((kept, features), |(factor, column)| {
                let length = (squares[factor] - 1.0).max(0.0).sqrt();
                length * directions[[factor, column]] * deviation[column]
            });
            let left: f64 = all.iter().skip(kept).sum();
            let logarithms: f64 = squares.iter().map(|square| square.max(f64::MIN_POSITIVE).ln()).sum();
            let noises: f64 = noise.iter().map(|noise| noise.ln()).sum();
            let likely = -0.5 * rows as f64 * (constant + logarithms + left + noises);
            loglike.push(likely);
            let converged = likely - before < self.tol;
            if !converged {
                // As in scikit-learn the noise is a step ahead of components that have not come to rest.
                noise = &variance - &components.mapv(|part| part * part).sum_axis(Axis(0));
                noise.mapv_inplace(|noise| noise.max(LEAST_NOISE));
            }
            if converged || step == self.max_iter {
                let mean = moments.mean.clone();
                return Ok(FittedFactorAnalysis {
                    components,
                    noise_variance: noise,
                    mean,
                    loglike,
                    n_iter: step,
                    converged,
                });
            }
            before = likely;
            if step.is_multiple_of(STEPS_BETWEEN_CHECKS) {
                training.engine.check_time()?;
            }
        }
        Err(lost())
    }
}

impl Estimator for FactorAnalysis {
    type Fitted = FittedFactorAnalysis;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedFactorAnalysis> {
        if let Some(count) = self.n_components {
            check_count(NAME, "n_components", count, 1)?;
        }
        check_count(NAME, "max_iter", self.max_iter, 1)?;
        check_not_negative(NAME, "tol", self.tol)?;
        let training = Training::unsupervised(NAME, x, options)?.without_weights()?;
        if let Some(given) = &self.noise_variance_init {
            if given.len() != training.columns {
                return Err(refused(format!(
                    "noise_variance_init dimension does not with number of features : {} != {}",
                    given.len(),
                    training.columns
                )));
            }
            let is_sound = given.iter().all(|&noise| 0.0 < noise && noise.is_finite());
            check(NAME, "noise_variance_init", is_sound, "positive numbers", format!("{given:?}"))?;
        }
        let moments = Moments::of(&training, None, Around::Mean)?;
        self.steps(&moments, training.rows, &training)
    }
}

impl FittedFactorAnalysis {
    /// The factors of samples (n, d): their means, given the samples, as an expression; (n, k). Floats keep
    /// their dtype.
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.transformed(x).unwrap_or_else(Tensor::from)
    }

    #[track_caller]
    fn transformed(&self, x: &Tensor) -> Result<Tensor> {
        let scaled = &self.components / &self.noise_variance;
        let inner = Array2::eye(self.components.nrows()) + scaled.dot(&self.components.t());
        // Positive definite: at least the identity.
        let Some((_, inverse)) = cholesky(&inner)? else { return Err(refused("components are not finite")) };
        let directions = inverse.t().dot(&inverse).dot(&scaled);
        coordinates(NAME, x, &self.mean, &directions)
    }

    /// scikit-learn's `get_covariance` of the model; (d, d).
    #[must_use]
    pub fn get_covariance(&self) -> Array2<f64> {
        let mut covariance = self.components.t().dot(&self.components);
        covariance.diag_mut().zip_mut_with(&self.noise_variance, |variance, noise| *variance += noise);
        covariance
    }

    /// scikit-learn's `score_samples`: the logarithm of the likelihood of each sample (n, d), as an
    /// expression; (n,).
    ///
    /// # Errors
    /// `ValueError` for another number of features; `LinAlgError` for a covariance that is singular up to
    /// rounding.
    #[track_caller]
    pub fn score_samples(&self, x: &Tensor) -> Result<Tensor> {
        let samples = samples_for(NAME, x, self.mean.len())? - tensor(&self.mean);
        let Some((lower, inverse)) = cholesky(&self.get_covariance())? else {
            return Err(refused("the covariance is singular up to rounding, so samples have no density"));
        };
        let features = self.mean.len();
        let scaled = in_fixed_chunks(&samples.matmul(&tensor(&inverse).t()), features);
        let logarithm: f64 = lower.diag().iter().map(|root| root.ln()).sum();
        Ok(scaled.square().sum(1) * -0.5 - (0.5 * features as f64 * (2.0 * PI).ln() + logarithm))
    }

    /// The mean logarithm of the likelihoods of samples (n, d).
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; `TypeError` for weights; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        let training = Training::unsupervised(NAME, x, &options.into())?.without_weights()?;
        let mean = self.score_samples(&training.x)?.mean(..);
        Ok(training.engine.run(&[&mean])?.pop().ok_or_else(lost)?.sum())
    }
}

saved!(FittedFactorAnalysis, NAME, |model| {
    let features = model.mean.len();
    0 < features && model.components.ncols() == features && model.noise_variance.len() == features
});

impl Transform for FittedFactorAnalysis {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedFactorAnalysis::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered(NAME, self.components.nrows()))
    }
}

impl fmt::Display for FittedFactorAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (factors, features) = self.components.dim();
        write!(f, "{NAME} of {features} features, {factors} factors")?;
        show::line(f, "noise_variance", &self.noise_variance)?;
        show::rows(f, "components", &self.components.clone().into_dyn())
    }
}
