//! Samples of several normal distributions.

use super::covariances::{CovarianceType, Roots};
use super::step::{Parts, Step};
use crate::base::{Estimator, FitOptions, Predict, Task};
use crate::bounds::{check, check_count, check_not_negative};
use crate::checks::{Nan, Training, refused, samples_for};
use crate::cluster::KMeans;
use crate::dense::tensor;
use crate::labels::log_sum_exp;
use crate::params::{parameters, words};
use crate::saved::saved;
use crate::show;
use crate::states::{lost, matrix, vector};
use ndarray::{Array1, Array2, ArrayD, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::random::default_rng_words;
use tharsis_numeric::{Axes, DType, Result, Tensor, arange};

const NAME: &str = "GaussianMixture";

/// scikit-learn's `GaussianMixture`: samples of several normal distributions, by expectation and
/// maximization. Each step is one pass.
///
/// ```
/// use tharsis_learn::mixture::GaussianMixture;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 2.0, 20.0, 21.0, 22.0]).reshape(&[6, 1]);
/// let model = GaussianMixture::new().n_components(2).fit(&x, ..)?;
/// let mut means = model.means.clone().into_raw_vec_and_offset().0;
/// means.sort_by(f64::total_cmp);
/// assert!((means[0] - 1.0).abs() < 1e-9 && (means[1] - 21.0).abs() < 1e-9);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct GaussianMixture {
    n_components: usize,
    covariance_type: CovarianceType,
    tol: f64,
    reg_covar: f64,
    max_iter: usize,
    n_init: usize,
    init_params: MixtureInit,
    weights_init: Option<Tensor>,
    means_init: Option<Tensor>,
    precisions_init: Option<Tensor>,
    random_state: u64,
}

/// First shares of the components in each sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MixtureInit {
    /// The clusters of [`KMeans`].
    #[default]
    KMeans,
    /// At random.
    Random,
}

words!(MixtureInit, ["kmeans" => MixtureInit::KMeans, "random" => MixtureInit::Random]);

/// A fitted [`GaussianMixture`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedGaussianMixture {
    /// scikit-learn's `weights_`: the share of each component; (k,).
    pub weights: Array1<f64>,
    /// scikit-learn's `means_`; (k, d).
    pub means: Array2<f64>,
    /// scikit-learn's `covariances_`: (k, d, d), tied (d, d), diagonal (k, d), or spherical (k,).
    pub covariances: ArrayD<f64>,
    /// scikit-learn's `lower_bound_`: the mean logarithm of the likelihood of samples before the last step.
    pub lower_bound: f64,
    /// scikit-learn's `n_iter_`: steps of the best run.
    pub n_iter: usize,
    /// scikit-learn's `converged_`: whether the bound has grown by less than `tol` in the last step.
    pub converged: bool,
    roots: Roots,
    random_state: u64,
}

parameters!(
    GaussianMixture,
    NAME,
    [
        "n_components" => n_components >= 1, "covariance_type" => covariance_type, "tol" => tol,
        "reg_covar" => reg_covar, "max_iter" => max_iter, "n_init" => n_init >= 1,
        "init_params" => init_params, "weights_init" => weights_init, "means_init" => means_init,
        "precisions_init" => precisions_init, "random_state" => random_state
    ]
);

impl Default for GaussianMixture {
    fn default() -> GaussianMixture {
        GaussianMixture {
            n_components: 1,
            covariance_type: CovarianceType::Full,
            tol: 1e-3,
            reg_covar: 1e-6,
            max_iter: 100,
            n_init: 1,
            init_params: MixtureInit::KMeans,
            weights_init: None,
            means_init: None,
            precisions_init: None,
            random_state: 0,
        }
    }
}

impl GaussianMixture {
    /// An estimator with scikit-learn's defaults: one component, full covariances, `tol` 1e-3, at most 100
    /// steps; but `random_state` is 0.
    pub fn new() -> GaussianMixture {
        GaussianMixture::default()
    }

    /// scikit-learn's `n_components`: the number of distributions; not zero.
    pub fn n_components(self, n_components: usize) -> GaussianMixture {
        GaussianMixture { n_components, ..self }
    }

    /// scikit-learn's `covariance_type`: how components may spread.
    pub fn covariance_type(self, covariance_type: CovarianceType) -> GaussianMixture {
        GaussianMixture { covariance_type, ..self }
    }

    /// scikit-learn's `tol`: the growth of the bound of the likelihood below which a run ends.
    pub fn tol(self, tol: f64) -> GaussianMixture {
        GaussianMixture { tol, ..self }
    }

    /// scikit-learn's `reg_covar`: added to variances, so that they are positive.
    pub fn reg_covar(self, reg_covar: f64) -> GaussianMixture {
        GaussianMixture { reg_covar, ..self }
    }

    /// scikit-learn's `max_iter`: the most steps of a run.
    pub fn max_iter(self, max_iter: usize) -> GaussianMixture {
        GaussianMixture { max_iter, ..self }
    }

    /// scikit-learn's `n_init`: the number of runs, of which the best is taken; not zero.
    pub fn n_init(self, n_init: usize) -> GaussianMixture {
        GaussianMixture { n_init, ..self }
    }

    /// scikit-learn's `init_params`: the first shares of the components.
    pub fn init_params(self, init_params: MixtureInit) -> GaussianMixture {
        GaussianMixture { init_params, ..self }
    }

    /// scikit-learn's `weights_init`: the first shares of the components; (k,), which sum to 1.
    pub fn weights_init(self, weights: &Tensor) -> GaussianMixture {
        GaussianMixture { weights_init: Some(weights.clone()), ..self }
    }

    /// scikit-learn's `means_init`: the first means; (k, d).
    pub fn means_init(self, means: &Tensor) -> GaussianMixture {
        GaussianMixture { means_init: Some(means.clone()), ..self }
    }

    /// scikit-learn's `precisions_init`: the first inverses of covariances, in the form of these.
    pub fn precisions_init(self, precisions: &Tensor) -> GaussianMixture {
        GaussianMixture { precisions_init: Some(precisions.clone()), ..self }
    }

    /// scikit-learn's `random_state`: the seed of all draws; the numbers are not scikit-learn's.
    pub fn random_state(self, random_state: u64) -> GaussianMixture {
        GaussianMixture { random_state, ..self }
    }

    /// Fits the mixture to samples (n, d), of any real dtype.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, fewer than two or
    /// than components, without features, complex, NaN or infinite, and for a component that has collapsed to
    /// a point; `MemoryError` if the covariances take more than the memory; `OverflowError` for sums beyond
    /// float64; `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedGaussianMixture> {
        self.fit_any(x, None, &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        check_count(NAME, "n_components", self.n_components, 1)?;
        check_count(NAME, "n_init", self.n_init, 1)?;
        check_not_negative(NAME, "tol", self.tol)?;
        check_not_negative(NAME, "reg_covar", self.reg_covar)
    }

    /// An array that was given, of this shape.
    #[track_caller]
    fn given(
        &self,
        training: &Training,
        name: &str,
        given: &Option<Tensor>,
        shape: &[usize],
    ) -> Result<Option<ArrayD<f64>>> {
        let Some(given) = given else { return Ok(None) };
        let known = training.engine.with_sizes(&[given])?.pop().ok_or_else(lost)?;
        if known.shape()? != shape {
            let name = name.trim_end_matches("_init");
            return Err(refused(format!(
                "The parameter '{name}' should have the shape of {shape:?}, but got {:?}",
                known.shape()?
            )));
        }
        let found = training.engine.run(&[&known])?.pop().ok_or_else(lost)?;
        if found.iter().any(|number| !number.is_finite()) {
            return Err(refused(format!("Input {name} contains NaN or infinity.")));
        }
        Ok(Some(found))
    }

    /// The arrays that were given.
    #[track_caller]
    fn start(&self, training: &Training) -> Result<Start> {
        let (components, features) = (self.n_components, training.columns);
        let weights = self.given(training, "weights_init", &self.weights_init, &[components])?;
        let weights = weights.map(vector).transpose()?;
        if let Some(weights) = &weights {
            let sum = weights.sum();
            let is_sound =
                weights.iter().all(|weight| (0.0..=1.0).contains(weight)) && (sum - 1.0).abs() <= 1e-8;
            check(NAME, "weights", is_sound, "numbers from 0 to 1 that sum to 1", format!("{weights}"))?;
        }
        let means = self.given(training, "means_init", &self.means_init, &[components, features])?;
        let shape = self.covariance_type.shape(components, features);
        let precisions = self.given(training, "precisions_init", &self.precisions_init, &shape)?;
        let roots = match &precisions {
            None => None,
            Some(precisions) => {
                let roots = Roots::of_precisions(self.covariance_type, precisions)?;
                Some(roots.ok_or_else(|| refused("precisions_init should be positive-definite"))?)
            }
        };
        Ok(Start { weights, means: means.map(matrix).transpose()?, roots })
    }

    /// The first shares of the components in each sample, (n, k), and means near which they are.
    #[track_caller]
    fn shares(&self, training: &Training, run: u64) -> Result<(Tensor, Array2<f64>)> {
        let components = self.n_components;
        match self.init_params {
            MixtureInit::KMeans => {
                let estimator = KMeans::new().n_clusters(components).n_init(1);
                let seed = if run == 0 { self.random_state } else { self.random_state ^ (run << 32) };
                let found = estimator.random_state(seed).fit(&training.x, training.options())?;
                let member = found.labels.expand_dims(1).equal(arange(components)).astype(DType::F64);
                Ok((member, found.cluster_centers))
            }
            MixtureInit::Random => {
                let generator = default_rng_words(&[self.random_state, run]);
                let drawn = generator.random(&[training.rows, components]);
                let mean = training.engine.run(&[&training.x.mean(0)])?.pop().ok_or_else(lost)?;
                let mean = vector(mean)?;
                if mean.iter().any(|number| !number.is_finite()) {
                    return Err(training.not_finite(Nan::Refused));
                }
                let means = Array2::from_shape_fn((components, mean.len()), |(_, column)| mean[column]);
                Ok((&drawn / drawn.sum(Axes::from(1).keepdims()), means))
            }
        }
    }

    /// One run from first shares.
    #[track_caller]
    fn run(&self, training: &Training, start: &Start, run: u64) -> Result<Parts> {
        let step = Step { training, form: self.covariance_type, reg_covar: self.reg_covar };
        let mut parts = match start {
            Start { weights: Some(weights), means: Some(means), roots: Some(roots) } => {
                Parts::first(weights.clone(), means.clone(), roots.clone())
            }
            _ => {
                let (shares, near) = self.shares(training, run)?;
                let parts = step.maximized(&shares, &near, None)?;
                Parts {
                    weights: start.weights.clone().unwrap_or(parts.weights),
                    means: start.means.clone().unwrap_or(parts.means),
                    roots: start.roots.clone().unwrap_or(parts.roots),
                    ..parts
                }
            }
        };
        let mut bound = f64::NEG_INFINITY;
        for number in 1..=self.max_iter {
            let joint = parts.joint(&training.x);
            let norm = log_sum_exp(&joint);
            let likelihood = norm.mean(..);
            let next = step.maximized(&(joint - &norm).exp(), &parts.means, Some(&likelihood))?;
            let change = next.bound - bound;
            bound = next.bound;
            parts = Parts { n_iter: number, converged: change.abs() < self.tol, ..next };
            if parts.converged {
                break;
            }
        }
        Ok(parts)
    }
}

/// The start of a run, as far as it was given.
struct Start {
    weights: Option<Array1<f64>>,
    means: Option<Array2<f64>>,
    roots: Option<Roots>,
}

impl Estimator for GaussianMixture {
    type Fitted = FittedGaussianMixture;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedGaussianMixture> {
        self.check()?;
        let training = Training::unsupervised(NAME, x, options)?.without_weights()?;
        let (rows, columns) = (training.rows, training.columns);
        training.check_least(2, 1)?;
        if rows < self.n_components {
            return Err(refused(format!(
                "Expected n_samples >= n_components but got n_components = {}, n_samples = {rows}",
                self.n_components
            )));
        }
        training.check_held(self.n_components.saturating_mul(columns), columns)?;
        let start = self.start(&training)?;
        let mut best: Option<Parts> = None;
        for run in 0..self.n_init as u64 {
            let parts = self.run(&training, &start, run)?;
            if best.as_ref().is_none_or(|best| best.bound < parts.bound) {
                best = Some(parts);
            }
        }
        let Parts { weights, means, covariances, roots, bound, n_iter, converged } = best.ok_or_else(lost)?;
        let random_state = self.random_state;
        Ok(FittedGaussianMixture {
            weights,
            means,
            covariances,
            lower_bound: bound,
            n_iter,
            converged,
            roots,
            random_state,
        })
    }
}

impl FittedGaussianMixture {
    /// scikit-learn's `precisions_`: the inverses of the covariances, in the same form.
    #[must_use]
    pub fn precisions(&self) -> ArrayD<f64> {
        self.roots.precisions()
    }

    /// scikit-learn's `precisions_cholesky_`: U with the inverse U Uᵀ of a covariance, or the reciprocal of a
    /// deviation, in the same form.
    #[must_use]
    pub fn precisions_cholesky(&self) -> ArrayD<f64> {
        self.roots.of_precisions.clone()
    }

    /// The likeliest component of each sample (m, d), as an expression; (m,), int64.
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for NaN and infinity.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.of_joint(x, |joint| joint.argmax(1))
    }

    /// The probabilities of the components for each sample (m, d), as an expression; (m, k), float64.
    ///
    /// # Errors
    /// As [`predict`](FittedGaussianMixture::predict).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.of_joint(x, |joint| (joint - log_sum_exp(joint)).exp())
    }

    /// The logarithms of the likelihoods of samples (m, d), as an expression; (m,), float64.
    ///
    /// # Errors
    /// As [`predict`](FittedGaussianMixture::predict).
    #[track_caller]
    pub fn score_samples(&self, x: &Tensor) -> Tensor {
        self.of_joint(x, |joint| log_sum_exp(joint).squeeze(Some(&[1])))
    }

    /// The mean logarithm of the likelihoods of samples (m, d).
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, NaN and infinity; `TypeError` for weights; errors of the
    /// pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        let training = Training::unsupervised(NAME, x, &options.into())?.without_weights()?;
        let mean = self.score_samples(&training.x).mean(..);
        Ok(training.engine.run(&[&mean])?.pop().ok_or_else(lost)?.sum())
    }

    /// Akaike's criterion of the mixture for samples (m, d): the lower the better.
    ///
    /// # Errors
    /// As [`score`](FittedGaussianMixture::score).
    #[track_caller]
    pub fn aic(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.criterion(x, &options.into(), |_| 2.0)
    }

    /// The Bayesian criterion of the mixture for samples (m, d): the lower the better.
    ///
    /// # Errors
    /// As [`score`](FittedGaussianMixture::score).
    #[track_caller]
    pub fn bic(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.criterion(x, &options.into(), f64::ln)
    }

    #[track_caller]
    fn criterion(&self, x: &Tensor, options: &FitOptions, weight: impl Fn(f64) -> f64) -> Result<f64> {
        let rows = Training::unsupervised(NAME, x, options)?.rows as f64;
        let (components, features) = self.means.dim();
        let of_covariances = self.roots.form.parameters(components, features);
        let parameters = (of_covariances + components * features + components - 1) as f64;
        Ok(-2.0 * self.score(x, options)? * rows + parameters * weight(rows))
    }

    /// scikit-learn's `sample`: so many samples that are drawn from the mixture, (n, d), and the component of
    /// each, which ascend. Draws are functions of `random_state`; they are not scikit-learn's.
    ///
    /// ```
    /// use tharsis_learn::mixture::GaussianMixture;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 2.0, 20.0, 21.0, 22.0]).reshape(&[6, 1]);
    /// let model = GaussianMixture::new().n_components(2).fit(&x, ..)?;
    /// let (drawn, component) = model.sample(100)?;
    /// assert_eq!((drawn.dim(), component.len()), ((100, 1), 100));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for no samples; errors of the draws.
    #[track_caller]
    pub fn sample(&self, n_samples: usize) -> Result<(Array2<f64>, Vec<i64>)> {
        if n_samples == 0 {
            return Err(refused(format!(
                "Invalid value for 'n_samples': 0 . The sampling requires at least one sample. {NAME}"
            )));
        }
        let (components, features) = self.means.dim();
        let generator = default_rng_words(&[self.random_state, u64::MAX]);
        let shares = vector(generator.random(&[n_samples]).fetch::<f64>()?)?;
        let normal = matrix(generator.standard_normal(&[n_samples, features]).fetch::<f64>()?)?;
        let mut counts = vec![0usize; components];
        for share in shares {
            let mut left = share;
            let passed = self.weights.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            counts[passed.unwrap_or(components - 1)] += 1;
        }
        let labels: Vec<i64> =
            counts.iter().zip(0..).flat_map(|(&count, at)| std::iter::repeat_n(at, count)).collect();
        let mut drawn = normal.clone();
        for ((mut row, normal), &label) in drawn.outer_iter_mut().zip(normal.outer_iter()).zip(&labels) {
            let component = label as usize;
            let around = self.roots.drawn(component, &normal.to_owned());
            row.assign(&(around + self.means.row(component)));
        }
        Ok((drawn, labels))
    }

    /// A result that is made of the joint densities of samples and components.
    #[track_caller]
    fn of_joint(&self, x: &Tensor, make: impl Fn(&Tensor) -> Tensor) -> Tensor {
        let samples = match samples_for(NAME, x, self.means.ncols()) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let joint = self.roots.log_densities(&samples, &self.means) + tensor(&self.weights.mapv(f64::ln));
        make(&joint)
    }
}

saved!(FittedGaussianMixture, NAME, |model| {
    let (components, features) = model.means.dim();
    0 < components
        && 0 < features
        && model.weights.len() == components
        && model.roots.is_sound(components, features)
        && model.covariances.shape() == model.roots.of_precisions.shape()
});

impl Predict for FittedGaussianMixture {
    const TASK: Task = Task::Unsupervised;

    fn name(&self) -> &'static str {
        NAME
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedGaussianMixture::predict(self, x)
    }

    /// The mean logarithm of the likelihoods; the target is not read.
    #[track_caller]
    fn score_any(&self, x: &Tensor, _: &Tensor, options: &FitOptions) -> Result<f64> {
        self.score(x, options)
    }
}

impl fmt::Display for FittedGaussianMixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (components, features) = self.means.dim();
        write!(f, "{NAME} of {features} features, {components} components")?;
        show::line(f, "weights", &self.weights)?;
        for (at, mean) in self.means.axis_iter(Axis(0)).enumerate() {
            show::line(f, &format!("means[{at}]"), mean)?;
        }
        let state = if self.converged { "converged" } else { "not converged" };
        write!(f, "\n  lower_bound: {}, {state} after {} steps", self.lower_bound, self.n_iter)
    }
}
