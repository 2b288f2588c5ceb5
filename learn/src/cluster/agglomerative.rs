//! Clusters of clusters.

use crate::base::{Estimator, FitOptions};
use crate::bounds::{check, check_count, check_not_negative};
use crate::checks::{Nan, Training, refused};
use crate::neighbors::Metric;
use crate::neighbors::metric::Distance;
use crate::params::{parameters, words};
use crate::saved::saved;
use crate::states::{lost, matrix};
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result, Tensor};

const NAME: &str = "AgglomerativeClustering";
/// Most samples of a fit: their distances take 5 GB.
const SAMPLES_MAX: usize = 36_000;

/// scikit-learn's `AgglomerativeClustering`: samples that are near are joined, then those clusters, until
/// there are as many as asked for.
///
/// Unlike other fits, this one holds the samples and the distances of all pairs in this process, 4 n² bytes.
/// Fits of more than 36 000 samples are refused.
///
/// ```
/// use tharsis_learn::cluster::AgglomerativeClustering;
/// use tharsis_numeric::array;
/// let x = array([1.0, 2.0, 1.0, 4.0, 1.0, 0.0, 4.0, 2.0, 4.0, 4.0, 4.0, 0.0]).reshape(&[6, 2]);
/// assert_eq!(AgglomerativeClustering::new().fit(&x, ..)?.labels, [1, 1, 1, 0, 0, 0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct AgglomerativeClustering {
    n_clusters: Option<usize>,
    metric: Metric,
    linkage: Linkage,
    distance_threshold: Option<f64>,
}

/// scikit-learn's `linkage`: the distance of two clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// By how much the sum of squared distances to the means grows if they become one.
    #[default]
    Ward,
    /// The largest distance of two samples.
    Complete,
    /// The mean distance of two samples.
    Average,
    /// The least distance of two samples.
    Single,
}

words!(
    Linkage,
    [
        "ward" => Linkage::Ward, "complete" => Linkage::Complete, "average" => Linkage::Average,
        "single" => Linkage::Single
    ]
);

/// A fitted [`AgglomerativeClustering`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedAgglomerativeClustering {
    /// scikit-learn's `labels_`: the cluster of each sample of the fit; (n,).
    pub labels: Vec<i64>,
    /// scikit-learn's `children_`: the two clusters that each step has joined; those below n are samples,
    /// `n + i` is what step `i` has made; (n - 1, 2).
    pub children: Vec<[usize; 2]>,
    /// scikit-learn's `distances_`: their distances, which ascend; (n - 1,).
    pub distances: Array1<f64>,
    /// scikit-learn's `n_clusters_`.
    pub n_clusters: usize,
    n_features: usize,
}

parameters!(
    AgglomerativeClustering,
    NAME,
    [
        "n_clusters" => n_clusters >= 1, "metric" => metric, "linkage" => linkage,
        "distance_threshold" => distance_threshold
    ]
);

impl Default for AgglomerativeClustering {
    fn default() -> AgglomerativeClustering {
        AgglomerativeClustering {
            n_clusters: Some(2),
            metric: Metric::Euclidean,
            linkage: Linkage::Ward,
            distance_threshold: None,
        }
    }
}

impl AgglomerativeClustering {
    /// An estimator with scikit-learn's defaults: 2 clusters, Ward's linkage.
    pub fn new() -> AgglomerativeClustering {
        AgglomerativeClustering::default()
    }

    /// scikit-learn's `n_clusters`: the number of clusters, not zero; `None` if a distance tells it.
    pub fn n_clusters(self, n_clusters: impl Into<Option<usize>>) -> AgglomerativeClustering {
        AgglomerativeClustering { n_clusters: n_clusters.into(), ..self }
    }

    /// scikit-learn's `metric`: the distance of two samples; Ward's linkage takes the Euclidean one alone.
    pub fn metric(self, metric: Metric) -> AgglomerativeClustering {
        AgglomerativeClustering { metric, ..self }
    }

    /// scikit-learn's `linkage`: the distance of two clusters.
    pub fn linkage(self, linkage: Linkage) -> AgglomerativeClustering {
        AgglomerativeClustering { linkage, ..self }
    }

    /// scikit-learn's `distance_threshold`: the distance from which on clusters are not joined, without a
    /// number of clusters.
    pub fn distance_threshold(self, distance_threshold: impl Into<Option<f64>>) -> AgglomerativeClustering {
        AgglomerativeClustering { distance_threshold: distance_threshold.into(), ..self }
    }

    /// Finds the clusters of samples (n, d), of any real dtype.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges or that do not go together, samples of other than two
    /// axes, fewer than two or than clusters, without features, complex, NaN or infinite; `MemoryError` for
    /// more than 36 000 samples, and if their distances take more than the memory; `TypeError` for weights;
    /// errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedAgglomerativeClustering> {
        self.fit_any(x, None, &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        if let Some(count) = self.n_clusters {
            check_count(NAME, "n_clusters", count, 1)?;
        }
        if let Some(threshold) = self.distance_threshold {
            check_not_negative(NAME, "distance_threshold", threshold)?;
        }
        if self.n_clusters.is_some() == self.distance_threshold.is_some() {
            return Err(refused(
                "Exactly one of n_clusters and distance_threshold has to be set, and the other needs to be None.",
            ));
        }
        if self.linkage == Linkage::Ward {
            let is_euclidean = self.metric == Metric::Euclidean;
            let text = "Euclidean for linkage=\"ward\", which works with no other distances";
            return check(NAME, "metric", is_euclidean, text, format!("{:?}", self.metric));
        }
        Ok(())
    }
}

impl Estimator for AgglomerativeClustering {
    type Fitted = FittedAgglomerativeClustering;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedAgglomerativeClustering> {
        self.check()?;
        let training = Training::unsupervised(NAME, x, options)?.without_weights()?;
        let (rows, columns) = (training.rows, training.columns);
        training.check_least(2, 1)?;
        if self.n_clusters.is_some_and(|count| rows < count) {
            let count = self.n_clusters.unwrap_or(0);
            return Err(refused(format!(
                "Cannot extract more clusters than samples: {count} clusters were given for a tree with {rows} \
                 leaves."
            )));
        }
        check_memory(&training)?;
        training.check_finite(Nan::Refused)?;
        let samples = matrix(training.engine.run(&[&training.x])?.pop().ok_or_else(lost)?)?;
        let is_zero = |row: ndarray::ArrayView1<'_, f64>| row.iter().all(|&part| part == 0.0);
        if self.metric == Metric::Cosine && samples.outer_iter().any(is_zero) {
            return Err(refused("Cosine affinity cannot be used when X contains zero vectors"));
        }
        let distance = Distance::of(NAME, self.metric, 2.0)?;
        let pairs = distances(&samples, distance);
        let steps = match self.linkage {
            Linkage::Single => spanned(&training, &pairs, rows)?,
            linkage => joined(&training, pairs, rows, linkage)?,
        };
        let (mut children, distances) = sorted(steps, rows);
        if self.linkage != Linkage::Single {
            children.iter_mut().for_each(|pair| pair.sort_unstable());
        }
        if distances.iter().any(|distance| !distance.is_finite()) {
            return Err(training.beyond_float64());
        }
        let below = |threshold: f64| distances.iter().filter(|distance| **distance < threshold).count();
        let n_clusters = match (self.n_clusters, self.distance_threshold) {
            (Some(count), _) => count,
            (None, threshold) => rows - below(threshold.unwrap_or(0.0)),
        };
        let labels = cut(&children, rows, n_clusters);
        Ok(FittedAgglomerativeClustering { labels, children, distances, n_clusters, n_features: columns })
    }
}

/// Checks that the distances of all pairs may be held.
#[track_caller]
fn check_memory(training: &Training) -> Result<()> {
    let bytes = |rows: u64| rows * rows / 2 * size_of::<f64>() as u64;
    let most = bytes(SAMPLES_MAX as u64).min(training.engine.memory_bytes());
    let (needed_bytes, limit_bytes) = (bytes(training.rows as u64), most);
    if limit_bytes < needed_bytes {
        return Err(Error::here(GraphError::Memory { needed_bytes, limit_bytes }));
    }
    training.check_held(training.rows, training.columns)
}

/// Distances of pairs of clusters: of `a < b` at `b (b - 1) / 2 + a`.
struct Pairs(Vec<f64>);

impl Pairs {
    fn place(a: usize, b: usize) -> usize {
        let (low, high) = (a.min(b), a.max(b));
        high * (high - 1) / 2 + low
    }

    fn of(&self, a: usize, b: usize) -> f64 {
        self.0[Pairs::place(a, b)]
    }
}

/// The distances of all pairs of samples.
fn distances(samples: &Array2<f64>, distance: Distance) -> Pairs {
    let (rows, columns) = samples.dim();
    let mut pairs = Vec::with_capacity(rows * (rows - 1) / 2);
    let mut straight: Vec<f64> = samples.iter().copied().collect();
    distance.prepare(&mut straight, columns);
    // Features one behind the other, as distances read them.
    let mut turned = vec![0.0; straight.len()];
    let mut found = vec![0.0; rows];
    for (at, row) in straight.chunks_exact(columns).enumerate() {
        row.iter().enumerate().for_each(|(column, &element)| turned[column * rows + at] = element);
    }
    for (at, row) in straight.chunks_exact(columns).enumerate() {
        distance.reduced_to_all(row, &turned, &mut found);
        pairs.extend(found[..at].iter().map(|&reduced| distance.whole(reduced)));
    }
    Pairs(pairs)
}

/// The two clusters, each named by one of its samples, and the distance of each step, in no order: by chains
/// of nearest neighbours (Murtagh, 1983).
#[track_caller]
fn joined(
    training: &Training,
    mut pairs: Pairs,
    rows: usize,
    linkage: Linkage,
) -> Result<Vec<(usize, usize, f64)>> {
    let mut sizes = vec![1usize; rows];
    let mut chain: Vec<usize> = Vec::new();
    let mut steps = Vec::with_capacity(rows - 1);
    let mut start = 0;
    while steps.len() + 1 < rows {
        if chain.is_empty() {
            while sizes[start] == 0 {
                start += 1;
            }
            chain.push(start);
        }
        let Some(&top) = chain.last() else { return Err(lost()) };
        // Of equal distances the one before in the chain, so that it ends.
        let before = chain.len().checked_sub(2).map(|at| chain[at]);
        let mut nearest = before.map(|before| (pairs.of(top, before), before));
        for other in (0..rows).filter(|&other| other != top && 0 < sizes[other]) {
            let distance = pairs.of(top, other);
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, other));
            }
        }
        let Some((distance, nearest)) = nearest else { return Err(training.beyond_float64()) };
        if Some(nearest) != before {
            chain.push(nearest);
            continue;
        }
        chain.truncate(chain.len() - 2);
        steps.push((top.min(nearest), top.max(nearest), distance));
        join(&mut pairs, &mut sizes, (top.min(nearest), top.max(nearest)), linkage);
        if steps.len().is_multiple_of(STEPS_BETWEEN_CHECKS) {
            training.engine.check_time()?;
        }
    }
    Ok(steps)
}

/// The steps of single linkage: the edges of a shortest tree, each beside the sample that came before (Prim,
/// 1957). scikit-learn's clusters are numbered by them in this order.
#[track_caller]
fn spanned(training: &Training, pairs: &Pairs, rows: usize) -> Result<Vec<(usize, usize, f64)>> {
    let mut nearest = vec![f64::INFINITY; rows];
    let mut is_in = vec![false; rows];
    let mut steps = Vec::with_capacity(rows - 1);
    let mut last = 0;
    for step in 1..rows {
        is_in[last] = true;
        let mut next: Option<(f64, usize)> = None;
        for other in (0..rows).filter(|&other| !is_in[other]) {
            nearest[other] = nearest[other].min(pairs.of(last, other));
            if next.is_none_or(|(least, _)| nearest[other] < least) {
                next = Some((nearest[other], other));
            }
        }
        let (distance, other) = next.ok_or_else(lost)?;
        steps.push((last, other, distance));
        last = other;
        if step.is_multiple_of(STEPS_BETWEEN_CHECKS) {
            training.engine.check_time()?;
        }
    }
    Ok(steps)
}

/// Steps after which a fit asks whether there is time left.
const STEPS_BETWEEN_CHECKS: usize = 1024;

/// Makes the second one of two clusters both of them (Lance and Williams, 1967).
fn join(pairs: &mut Pairs, sizes: &mut [usize], (gone, kept): (usize, usize), linkage: Linkage) {
    let between = pairs.of(gone, kept);
    let (own, other) = (sizes[gone] as f64, sizes[kept] as f64);
    sizes[kept] += std::mem::take(&mut sizes[gone]);
    for at in (0..sizes.len()).filter(|&at| at != kept && 0 < sizes[at]) {
        let (a, b) = (pairs.of(gone, at), pairs.of(kept, at));
        let third = sizes[at] as f64;
        pairs.0[Pairs::place(kept, at)] = match linkage {
            Linkage::Complete => a.max(b),
            Linkage::Single => a.min(b),
            Linkage::Average => (own * a + other * b) / (own + other),
            Linkage::Ward => {
                let all = own + other + third;
                let (a, b, between) = (a * a, b * b, between * between);
                let square = ((own + third) * a + (other + third) * b - third * between) / all;
                square.max(0.0).sqrt()
            }
        };
    }
}

/// Steps in the order of their distances, with the numbers of clusters that they have made.
fn sorted(mut steps: Vec<(usize, usize, f64)>, rows: usize) -> (Vec<[usize; 2]>, Array1<f64>) {
    steps.sort_by(|a, b| a.2.total_cmp(&b.2));
    // The number of the cluster of each sample that is the first on its way.
    let mut above: Vec<usize> = (0..rows).collect();
    let mut number: Vec<usize> = (0..rows).collect();
    let mut children = Vec::with_capacity(steps.len());
    for (at, &(a, b, _)) in steps.iter().enumerate() {
        let (a, b) = (root_of(&mut above, a), root_of(&mut above, b));
        children.push([number[a], number[b]]);
        above[a] = b;
        number[b] = rows + at;
    }
    (children, steps.iter().map(|step| step.2).collect())
}

fn root_of(above: &mut [usize], sample: usize) -> usize {
    let mut at = sample;
    while above[at] != at {
        above[at] = above[above[at]];
        at = above[at];
    }
    at
}

/// The cluster of each sample, if the last steps are not done. Clusters are numbered as scikit-learn does: a
/// heap of those that are left has the last one that was made on top, which its children replace.
fn cut(children: &[[usize; 2]], rows: usize, clusters: usize) -> Vec<i64> {
    let mut heap = vec![rows + children.len() - 1];
    for _ in 1..clusters {
        let [low, high] = children[heap[0] - rows];
        // Python's `heappush` of one, and then `heappushpop` of the other, which is put on top if it is
        // larger.
        heap.push(low);
        let last = heap.len() - 1;
        sift_up(&mut heap, last);
        if high < heap[0] {
            heap[0] = high;
            sift_down(&mut heap);
        }
    }
    let mut labels = vec![0; rows];
    for (label, &cluster) in (0i64..).zip(&heap) {
        let mut left = vec![cluster];
        while let Some(at) = left.pop() {
            match at.checked_sub(rows) {
                None => labels[at] = label,
                Some(step) => left.extend(children[step]),
            }
        }
    }
    labels
}

/// Moves an element of a heap, whose largest is on top, up to its place.
fn sift_up(heap: &mut [usize], from: usize) {
    let mut at = from;
    while 0 < at && heap[(at - 1) / 2] < heap[at] {
        heap.swap((at - 1) / 2, at);
        at = (at - 1) / 2;
    }
}

/// Moves the top of a heap down to a leaf, past the larger child of each, and from there up to its place.
fn sift_down(heap: &mut [usize]) {
    let mut at = 0;
    while 2 * at + 1 < heap.len() {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        let larger = if right < heap.len() && heap[left] <= heap[right] { right } else { left };
        heap.swap(at, larger);
        at = larger;
    }
    sift_up(heap, at);
}

saved!(FittedAgglomerativeClustering, NAME, |model| {
    model.children.len() + 1 == model.labels.len() && model.distances.len() == model.children.len()
});

impl fmt::Display for FittedAgglomerativeClustering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, columns) = (self.labels.len(), self.n_features);
        write!(f, "{NAME} of {columns} features, {rows} samples, {} clusters", self.n_clusters)
    }
}
