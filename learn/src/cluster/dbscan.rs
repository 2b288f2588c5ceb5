//! Clusters of samples in dense places.

use crate::base::{Estimator, FitOptions};
use crate::bounds::{check_count, check_positive};
use crate::checks::{Nan, Training, refused};
use crate::dense::positions;
use crate::engine::Engine;
use crate::neighbors::block::{Around, LeastLabel, Summed};
use crate::neighbors::metric::Distance;
use crate::neighbors::{Metric, Weights};
use crate::params::parameters;
use crate::saved::{Save, decoded, encoded, stored};
use crate::states::{lost, matrix};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use tharsis_numeric::{Result, Tensor};

const NAME: &str = "DBSCAN";
/// Numbers for each sample that the fit holds.
const HELD_COLUMNS: usize = 2;

/// scikit-learn's `DBSCAN`: clusters are places in which samples have many others around them (Ester and
/// others, 1996).
///
/// A pass over all pairs of samples counts those around each; pairs are never held. Others give each sample
/// with enough of them the least number of a cluster around it, until none changes: clusters that touch
/// become one, at least half of those that are left in a pass. The fit holds a few numbers for each sample.
///
/// ```
/// use tharsis_learn::cluster::DBSCAN;
/// use tharsis_numeric::array;
/// let x = array([1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 8.0, 7.0, 8.0, 8.0, 25.0, 80.0]).reshape(&[6, 2]);
/// let model = DBSCAN::new().eps(3.0).min_samples(2).fit(&x, ..)?;
/// assert_eq!(model.labels, [0, 0, 0, 1, 1, -1]);
/// assert_eq!(model.core_sample_indices, [0, 1, 2, 3, 4]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct DBSCAN {
    eps: f64,
    min_samples: usize,
    metric: Metric,
    p: Option<f64>,
}

/// A fitted [`DBSCAN`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedDBSCAN {
    /// scikit-learn's `labels_`: the cluster of each sample of the fit, -1 for one that is in none; (n,).
    pub labels: Vec<i64>,
    /// scikit-learn's `core_sample_indices_`: the samples with enough others around them, ascending.
    pub core_sample_indices: Vec<usize>,
    /// scikit-learn's `components_`: those samples themselves, as an expression; (k, d), float64.
    #[serde(with = "stored")]
    pub components: Tensor,
}

parameters!(
    DBSCAN,
    NAME,
    ["eps" => eps, "min_samples" => min_samples >= 1, "metric" => metric, "p" => p]
);

impl Default for DBSCAN {
    fn default() -> DBSCAN {
        DBSCAN { eps: 0.5, min_samples: 5, metric: Metric::Euclidean, p: None }
    }
}

impl DBSCAN {
    /// An estimator with scikit-learn's defaults: 5 samples within a distance of 0.5, Euclidean distances.
    pub fn new() -> DBSCAN {
        DBSCAN::default()
    }

    /// scikit-learn's `eps`: the largest distance of samples that are around each other; above 0.
    pub fn eps(self, eps: f64) -> DBSCAN {
        DBSCAN { eps, ..self }
    }

    /// scikit-learn's `min_samples`: the number of samples, or their weight, around one in a dense place,
    /// itself included; not zero.
    pub fn min_samples(self, min_samples: usize) -> DBSCAN {
        DBSCAN { min_samples, ..self }
    }

    /// scikit-learn's `metric`: the distance of two samples.
    pub fn metric(self, metric: Metric) -> DBSCAN {
        DBSCAN { metric, ..self }
    }

    /// scikit-learn's `p`: the power of the metric of Minkowski, above 0; `None` is 2.
    pub fn p(self, p: impl Into<Option<f64>>) -> DBSCAN {
        DBSCAN { p: p.into(), ..self }
    }

    /// Finds the clusters of samples (n, d), of any real dtype.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without rows or
    /// features, complex, NaN or infinite, and weights that are negative or all zero; `MemoryError` if
    /// numbers for all samples take more than the memory; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedDBSCAN> {
        self.fit_any(x, None, &options.into())
    }
}

impl Estimator for DBSCAN {
    type Fitted = FittedDBSCAN;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedDBSCAN> {
        check_positive(NAME, "eps", self.eps)?;
        check_count(NAME, "min_samples", self.min_samples, 1)?;
        let distance = Distance::of(NAME, self.metric, self.p.unwrap_or(2.0))?;
        let training = Training::unsupervised(NAME, x, options)?;
        training.check_held(training.rows, HELD_COLUMNS)?;
        training.check_finite(Nan::Refused)?;
        check_weight(&training)?;
        let carried: Vec<Tensor> = training.weight.iter().map(|weight| weight.expand_dims(1)).collect();
        let (radius, columns) = (self.eps, training.columns);
        let (summed, weights) = (Summed::Columns(carried.len()), Weights::Uniform);
        let around = Around { distance, radius, weights, summed, is_own: true, columns }.pass();
        let counts = around.states(&training.x, &training.x, &carried.iter().collect::<Vec<_>>());
        let counts = matrix(training.engine.run(&[&counts])?.pop().ok_or_else(lost)?)?;
        // The last column is that of the weights, or of the numbers without them.
        let is_core: Vec<bool> =
            counts.column(counts.ncols() - 1).iter().map(|&count| self.min_samples as f64 <= count).collect();
        let labels =
            labels(&training.engine, &training.x, &is_core, &LeastLabel { distance, radius, columns })?;
        let core_sample_indices: Vec<usize> = (0..is_core.len()).filter(|&at| is_core[at]).collect();
        let components = training.x.take_at(&positions(&core_sample_indices), 0);
        Ok(FittedDBSCAN { labels, core_sample_indices, components })
    }
}

/// Checks the weights, if there are any.
#[track_caller]
fn check_weight(training: &Training) -> Result<()> {
    let Some(weight) = &training.weight else { return Ok(()) };
    let sum = training.engine.run(&[&weight.sum(..)])?.pop().ok_or_else(lost)?.sum();
    if !sum.is_finite() {
        return Err(training.not_finite(Nan::Refused));
    }
    if sum == 0.0 {
        return Err(refused("Weights sum to zero, can't be normalized"));
    }
    Ok(())
}

/// The cluster of each sample; -1 of one that is in none.
#[track_caller]
fn labels(engine: &Engine, x: &Tensor, is_core: &[bool], around: &LeastLabel) -> Result<Vec<i64>> {
    // The first sample of the cluster of each; in the end it is the first of its whole cluster.
    let mut first: Vec<usize> = (0..is_core.len()).collect();
    loop {
        let label = |(at, &is_core): (usize, &bool)| if is_core { first[at] as f64 } else { f64::INFINITY };
        let labels: Vec<f64> = is_core.iter().enumerate().map(label).collect();
        let labels = Tensor::from_elements(&[labels.len(), 1], &labels);
        let least = engine.run(&[&around.clone().pass().states(x, x, &[&labels])])?.pop().ok_or_else(lost)?;
        let least: Vec<f64> = least.into_iter().collect();
        let mut is_done = true;
        for (at, &least) in least.iter().enumerate().filter(|(at, _)| is_core[*at]) {
            // A sample that is around itself has a label.
            let (own, other) = (first_of(&mut first, at), first_of(&mut first, least as usize));
            if own != other {
                is_done = false;
                first[own.max(other)] = own.min(other);
            }
        }
        for at in 0..first.len() {
            first[at] = first_of(&mut first, at);
        }
        if is_done {
            return Ok(numbered(&least));
        }
    }
}

/// The first sample of a cluster, to which all samples on the way then point.
fn first_of(first: &mut [usize], sample: usize) -> usize {
    let mut root = sample;
    while first[root] != root {
        root = first[root];
    }
    let mut at = sample;
    while first[at] != root {
        at = std::mem::replace(&mut first[at], root);
    }
    root
}

/// Clusters in the order of their first samples, for the least of these around each sample.
fn numbered(least: &[f64]) -> Vec<i64> {
    let found = least.iter().filter(|least| least.is_finite()).map(|&least| (least as usize, 0i64));
    let mut numbers: BTreeMap<usize, i64> = found.collect();
    numbers.values_mut().zip(0..).for_each(|(number, at)| *number = at);
    let label = |least: &f64| if least.is_finite() { numbers.get(&(*least as usize)).copied() } else { None };
    least.iter().map(|least| label(least).unwrap_or(-1)).collect()
}

impl Save for FittedDBSCAN {
    const KIND: &'static str = NAME;

    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        let components = Tensor::from_array(&self.components.fetch::<f64>()?);
        encoded(&FittedDBSCAN { components, ..self.clone() })
    }

    fn of_body(body: &[u8]) -> Option<FittedDBSCAN> {
        let read: FittedDBSCAN = decoded(body)?;
        let &[rows, columns] = read.components.shape().ok()? else { return None };
        let core = &read.core_sample_indices;
        let is_sound = core.len() == rows
            && 0 < columns
            && core.iter().all(|&at| at < read.labels.len())
            && core.windows(2).all(|pair| pair[0] < pair[1]);
        is_sound.then_some(read)
    }
}

impl fmt::Display for FittedDBSCAN {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clusters = self.labels.iter().max().map_or(0, |&last| last + 1);
        let noise = self.labels.iter().filter(|&&label| label < 0).count();
        write!(f, "{NAME} of {} samples, {clusters} clusters, {noise} samples in none", self.labels.len())
    }
}
