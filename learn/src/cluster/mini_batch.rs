//! Clusters around means that few samples at a time move.
//!
//! Steps are made in the process that fits, of samples that a pass draws for many steps at once: a block is
//! at most 16 MiB. scikit-learn draws each batch from all samples, which costs as much as a pass over their
//! weights; here that is the cost of a block.

use super::centers::{between, clusters, distances, inertia, nearest};
use super::initial::{Init, plus_plus, trials};
use super::k_means::given;
use crate::base::{Estimator, FitOptions, Predict, Task, Transform};
use crate::bounds::{check, check_count, check_not_negative};
use crate::checks::{Training, refused};
use crate::params::{Auto, estimator};
use crate::passes::{ColumnSums, Lloyd};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, matrix, vector};
use ndarray::{Array1, Array2, ArrayView2, Axis, Slice};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::rows::{Around, Centers};
use tharsis_numeric::random::{Generator, default_rng_words};
use tharsis_numeric::{Error, Result, Tensor};

const NAME: &str = "MiniBatchKMeans";
/// Numbers of the samples of a block.
const BLOCK_ELEMENTS: usize = 1 << 21;
/// Batches that are drawn at once of samples that fit a block.
const BATCHES: usize = 32;
/// Runs from first centres that are drawn without a look at each other.
const RANDOM_RUNS: usize = 3;
/// Sets draws apart from each other.
const BLOCK: u64 = 1;
const START: u64 = 2;
const PICK: u64 = 3;

estimator! {
    /// scikit-learn's `MiniBatchKMeans`: as [`KMeans`](super::KMeans), with steps of few samples each.
    ///
    /// Samples of a block are drawn without replacement, by their weights, unless all of them are in it. The
    /// numbers of draws are not scikit-learn's.
    ///
    /// ```
    /// use tharsis_learn::cluster::MiniBatchKMeans;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 10.0, 11.0]).reshape(&[4, 1]);
    /// let model = MiniBatchKMeans::new().n_clusters(2).fit(&x, ..)?;
    /// let found = model.predict(&x).to_vec::<i64>()?;
    /// assert!(found[0] == found[1] && found[1] != found[2] && found[2] == found[3]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    MiniBatchKMeans {
        /// scikit-learn's `n_clusters`: the number of clusters.
        n_clusters "n_clusters" >= 1: usize, usize = 8;
        /// scikit-learn's `init`: the first centres; a tensor (k, d), or a way to draw them.
        init "init": Init, impl Into<Init> = Init::Parallel;
        /// scikit-learn's `max_iter`: the most rounds through as many samples as there are; not zero.
        max_iter "max_iter" >= 1: usize, usize = 100;
        /// scikit-learn's `batch_size`: samples of a step; not zero.
        batch_size "batch_size" >= 1: usize, usize = 1024;
        /// scikit-learn's `compute_labels`: whether the inertia is that of all samples, by one more pass.
        compute_labels "compute_labels": bool, bool = true;
        /// scikit-learn's `random_state`: the seed of all draws.
        random_state "random_state": u64, u64 = 0;
        /// scikit-learn's `tol`: the squared move of the centres at which steps end, in parts of the mean
        /// variance of the features; 0 for no such end.
        tol "tol": f64, f64 = 0.0;
        /// scikit-learn's `max_no_improvement`: steps without a smaller mean inertia at which they end.
        max_no_improvement "max_no_improvement": Option<usize>, impl Into<Option<usize>> = Some(10);
        /// scikit-learn's `init_size`: samples of which first centres are chosen; three batches by default.
        init_size "init_size" >= 1: Option<usize>, impl Into<Option<usize>> = None;
        /// scikit-learn's `n_init`: starts, of which the best is taken; 3 for [`Init::Random`], else one.
        n_init "n_init" >= 1: Auto<usize>, usize = Auto(None);
        /// scikit-learn's `reassignment_ratio`: the part of the largest cluster below which a cluster gets
        /// another centre.
        reassignment_ratio "reassignment_ratio": f64, f64 = 0.01;
    }
}

/// A fitted [`MiniBatchKMeans`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedMiniBatchKMeans {
    /// scikit-learn's `cluster_centers_`; (k, d).
    pub cluster_centers: Array2<f64>,
    /// scikit-learn's `labels_`: the cluster of each sample of the fit, as an expression; (n,), int64. A file
    /// has none.
    #[serde(skip, default = "crate::saved::left_out")]
    pub labels: Tensor,
    /// scikit-learn's `inertia_`: the weighted sum of squared distances to the nearest centre; without
    /// `compute_labels` what the last batches tell of it.
    pub inertia: f64,
    /// scikit-learn's `n_iter_`: rounds through as many samples as there are.
    pub n_iter: usize,
    /// scikit-learn's `n_steps_`: steps.
    pub n_steps: usize,
    /// Samples, or their weights, that have moved each centre.
    pub counts: Array1<f64>,
}

/// Centres that batches move.
struct Moving {
    centers: Array2<f64>,
    counts: Array1<f64>,
    /// Samples since centres were last looked at for a new place.
    since: usize,
}

impl Moving {
    fn new(centers: Array2<f64>) -> Moving {
        let counts = Array1::zeros(centers.nrows());
        Moving { centers, counts, since: 0 }
    }

    /// Takes the sums of a batch, of weights too, by clusters.
    fn take(&mut self, sums: ArrayView2<'_, f64>, weights: &[f64]) {
        for (at, &weight) in weights.iter().enumerate().filter(|(_, weight)| 0.0 < **weight) {
            let before = self.counts[at];
            self.counts[at] += weight;
            let mut center = self.centers.row_mut(at);
            center *= before;
            center += &sums.row(at);
            center /= self.counts[at];
        }
    }

    /// A step by a batch; the sum of squared distances to the centres before it.
    ///
    /// # Errors
    /// `ValueError` if the batch does not fit the centres or the weights.
    #[track_caller]
    fn step(&mut self, batch: ArrayView2<'_, f64>, weights: Option<&[f64]>) -> Result<f64> {
        let columns = batch.ncols();
        let (rows, centers) = (flat(batch), flat(self.centers.view()));
        let origin = vec![0.0; columns];
        let look = || {
            let (near, rows) = (Centers::new(&centers, columns, false)?, Around::new(&rows, &origin)?);
            Ok((near.distances(rows, weights)?, near.clusters(rows, weights)?))
        };
        let (distances, found) = match look() {
            Ok(made) => made,
            Err(error) => return Err(Error::here(GraphError::Kernel(error))),
        };
        if let Ok(sums) = ArrayView2::from_shape((self.centers.nrows(), columns), &found.sums) {
            self.take(sums, &found.weights);
        }
        Ok(distances.iter().sum())
    }

    /// Whether centres without samples are to be looked for before the next step.
    fn is_due(&mut self, batch: usize) -> bool {
        self.since += batch;
        let is_due = self.counts.iter().any(|&count| count == 0.0) || 10 * self.counts.len() <= self.since;
        if is_due {
            self.since = 0;
        }
        is_due
    }

    /// Moves centres of few samples to some of a batch, which `pick` chooses.
    fn reassign(&mut self, batch: ArrayView2<'_, f64>, ratio: f64, pick: impl Fn(usize, usize) -> f64) {
        let largest = self.counts.iter().fold(0.0f64, |most, &count| most.max(count));
        let mut few: Vec<usize> =
            (0..self.counts.len()).filter(|&at| self.counts[at] < ratio * largest).collect();
        few.sort_by(|&a, &b| self.counts[a].total_cmp(&self.counts[b]));
        few.truncate(batch.nrows() / 2);
        let others = (0..self.counts.len()).filter(|at| !few.contains(at));
        let least = others.map(|at| self.counts[at]).fold(f64::INFINITY, f64::min);
        let mut left: Vec<usize> = (0..batch.nrows()).collect();
        for (nth, &at) in few.iter().enumerate() {
            let chosen = (pick(nth, left.len()) * left.len() as f64) as usize;
            let row = left.swap_remove(chosen.min(left.len() - 1));
            self.centers.row_mut(at).assign(&batch.row(row));
            self.counts[at] = if least.is_finite() { least } else { 0.0 };
        }
    }
}

/// Numbers in the order of rows.
fn flat(rows: ArrayView2<'_, f64>) -> Vec<f64> {
    rows.iter().copied().collect()
}

/// Draws samples for steps, block by block.
struct Blocks<'a> {
    training: &'a Training,
    /// The samples around their mean.
    x: &'a Tensor,
    seed: u64,
    weight_sum: f64,
    drawn: u64,
    block: Block,
    next: usize,
    /// All samples and the running sums of their weights, where they fit a block.
    all: Option<(Array2<f64>, Vec<f64>)>,
}

/// Samples of a block, and their weights.
#[derive(Default)]
struct Block {
    rows: Array2<f64>,
    weights: Option<Vec<f64>>,
}

impl<'a> Blocks<'a> {
    fn new(training: &'a Training, x: &'a Tensor, weight_sum: f64, seed: u64) -> Blocks<'a> {
        let block = Block { rows: Array2::zeros((0, training.columns)), weights: None };
        Blocks { training, x, seed, weight_sum, drawn: 0, block, next: 0, all: None }
    }

    /// So many samples, with their weights.
    #[track_caller]
    fn batch(&mut self, count: usize) -> Result<Block> {
        let mut missing = count;
        let (mut rows, mut weights) = (Array2::zeros((0, self.training.columns)), Vec::new());
        while 0 < missing {
            if self.next == self.block.rows.nrows() {
                self.refill(count)?;
            }
            let end = self.block.rows.nrows().min(self.next + missing);
            let part = self.block.rows.slice_axis(Axis(0), Slice::from(self.next..end));
            rows.append(Axis(0), part).map_err(|_| lost())?;
            match &self.block.weights {
                Some(own) => weights.extend_from_slice(&own[self.next..end]),
                None => weights.resize(rows.nrows(), 1.0),
            }
            missing -= end - self.next;
            self.next = end;
        }
        Ok(Block { rows, weights: Some(weights) })
    }

    /// Draws another block, in which there is at least one sample.
    #[track_caller]
    fn refill(&mut self, least: usize) -> Result<()> {
        let (rows, columns) = (self.training.rows, self.training.columns);
        let wanted = (BLOCK_ELEMENTS / columns).max(least);
        self.training.check_held(wanted.min(rows), columns)?;
        self.next = 0;
        loop {
            self.drawn += 1;
            let generator = default_rng_words(&[self.seed, BLOCK, self.drawn]);
            self.block = if rows <= wanted {
                self.of_all(&generator, (BATCHES * least).min(wanted))?
            } else {
                self.of_some(&generator, wanted)?
            };
            if 0 < self.block.rows.nrows() {
                return Ok(());
            }
        }
    }

    /// So many of all samples, with replacement, by their weights.
    #[track_caller]
    fn of_all(&mut self, generator: &Generator, count: usize) -> Result<Block> {
        let (all, passed) = match self.all.take() {
            Some(all) => all,
            None => {
                let inputs: Vec<&Tensor> = std::iter::once(self.x).chain(&self.training.weight).collect();
                let mut found = self.training.engine.run(&inputs)?.into_iter();
                let all = matrix(found.next().ok_or_else(lost)?)?;
                let weights = found.next().map_or_else(|| Ok(Array1::ones(all.nrows())), vector)?;
                let sums = weights.iter().scan(0.0, |sum, weight| {
                    *sum += weight;
                    Some(*sum)
                });
                (all, sums.collect::<Vec<f64>>())
            }
        };
        let last = passed.last().copied().unwrap_or(0.0);
        let draws = self.draws(generator, count)?;
        let place = |&draw: &f64| passed.partition_point(|&sum| sum <= draw * last).min(all.nrows() - 1);
        let order: Vec<usize> = draws.iter().map(place).collect();
        let rows = all.select(Axis(0), &order);
        self.all = Some((all, passed));
        Ok(Block { rows, weights: None })
    }

    /// About so many of all samples, each at most once, by their weights. A sample that would be drawn more
    /// often counts as often.
    #[track_caller]
    fn of_some(&self, generator: &Generator, count: usize) -> Result<Block> {
        let chance = count as f64 / self.weight_sum;
        let keys = generator.random(&[self.training.rows]);
        let is_chosen = match &self.training.weight {
            Some(weight) => (&keys / chance).less(weight),
            None => keys.less(chance),
        };
        let mut wanted = vec![self.x.filter(&is_chosen)];
        let weights = self.training.weight.as_ref();
        wanted.extend(weights.map(|weight| (weight * chance).maximum(1.0).filter(&is_chosen)));
        let mut found = self.training.engine.run(&wanted.iter().collect::<Vec<_>>())?.into_iter();
        let rows = matrix(found.next().ok_or_else(lost)?)?;
        let weights = found.next().map(vector).transpose()?;
        // They are found in the order of the samples.
        let draws = self.draws(generator, rows.nrows())?;
        let mut order: Vec<usize> = (0..rows.nrows()).collect();
        order.sort_by(|&a, &b| draws[a].total_cmp(&draws[b]));
        let weights = weights.map(|weights| order.iter().map(|&at| weights[at]).collect());
        Ok(Block { rows: rows.select(Axis(0), &order), weights })
    }

    /// So many random numbers.
    #[track_caller]
    fn draws(&self, generator: &Generator, count: usize) -> Result<Array1<f64>> {
        vector(self.training.engine.run(&[&generator.random(&[count])])?.pop().ok_or_else(lost)?)
    }
}

/// The mean inertia of batches, and how long it has not fallen.
#[derive(Default)]
struct Watch {
    mean: Option<f64>,
    least: Option<f64>,
    without_fall: usize,
}

impl Watch {
    /// Whether steps end.
    fn ends(&mut self, inertia: f64, part: f64, moved: Option<f64>, most: Option<usize>) -> bool {
        let mean = self.mean.map_or(inertia, |mean| mean * (1.0 - part) + inertia * part);
        self.mean = Some(mean);
        if moved.is_some_and(|moved| moved <= 0.0) {
            return true;
        }
        if self.least.is_none_or(|least| mean < least) {
            (self.least, self.without_fall) = (Some(mean), 0);
        } else {
            self.without_fall += 1;
        }
        most.is_some_and(|most| most <= self.without_fall)
    }
}

impl MiniBatchKMeans {
    /// Fits the clusters to samples (n, d), of any real dtype.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, first centres that do not fit, fewer samples than
    /// clusters, samples of other than two axes, without features, complex, NaN or infinite, and weights that
    /// are negative or all zero; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedMiniBatchKMeans> {
        self.fit_any(x, None, &options.into())
    }

    /// scikit-learn's `partial_fit`: a step by all samples (n, d), one pass, from the centres of a model, or
    /// from first centres. Centres of few samples keep their places.
    ///
    /// ```
    /// use tharsis_learn::cluster::MiniBatchKMeans;
    /// use tharsis_numeric::array;
    /// let init = array([0.0, 10.0]).reshape(&[2, 1]);
    /// let estimator = MiniBatchKMeans::new().n_clusters(2).init(&init);
    /// let first = estimator.partial_fit(None, &array([1.0, 9.0]).reshape(&[2, 1]), ..)?;
    /// let second = estimator.partial_fit(Some(&first), &array([3.0]).reshape(&[1, 1]), ..)?;
    /// assert_eq!(second.cluster_centers[[0, 0]], 2.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fit`](MiniBatchKMeans::fit).
    #[track_caller]
    pub fn partial_fit(
        &self,
        model: Option<&FittedMiniBatchKMeans>,
        x: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedMiniBatchKMeans> {
        self.check()?;
        let training = Training::unsupervised(NAME, x, &options.into())?;
        let mean = ColumnSums::of_all(&training)?.mean();
        let lloyd = Lloyd::new(&training, &mean);
        let (mut moving, steps) = match model {
            Some(model) => {
                crate::checks::samples_for(NAME, &training.x, model.cluster_centers.ncols()).map(drop)?;
                let centers = &model.cluster_centers - &mean;
                (Moving { centers, counts: model.counts.clone(), since: 0 }, model.n_steps)
            }
            None => {
                self.check_rows(training.rows)?;
                let mut blocks =
                    Blocks::new(&training, lloyd.samples(), training.weight_sum()?, self.random_state);
                (Moving::new(self.start(&mut blocks, &mean)?), 0)
            }
        };
        let found = lloyd.around(&moving.centers)?;
        moving.take(found.sums.view(), &found.weights.to_vec());
        let cluster_centers = &moving.centers + &mean;
        let labels = distances(NAME, &training.x, &cluster_centers)?.argmin(1);
        let inertia = if self.compute_labels { lloyd.inertia(&moving.centers)? } else { f64::NAN };
        let n_steps = steps + 1;
        Ok(FittedMiniBatchKMeans {
            cluster_centers,
            labels,
            inertia,
            n_iter: n_steps,
            n_steps,
            counts: moving.counts,
        })
    }

    /// Checks what needs no data.
    #[track_caller]
    fn check(&self) -> Result<()> {
        for (name, count) in [
            ("n_clusters", self.n_clusters),
            ("max_iter", self.max_iter),
            ("batch_size", self.batch_size),
            ("n_init", self.n_init.0.unwrap_or(1)),
        ] {
            check_count(NAME, name, count, 1)?;
        }
        if let Some(size) = self.init_size {
            check(NAME, "init_size", 0 < size, "an int in the range [1, inf) or None", size)?;
        }
        check_not_negative(NAME, "tol", self.tol)?;
        check_not_negative(NAME, "reassignment_ratio", self.reassignment_ratio)
    }

    #[track_caller]
    fn check_rows(&self, rows: usize) -> Result<()> {
        let clusters = self.n_clusters;
        if rows < clusters {
            return Err(refused(format!("n_samples={rows} should be >= n_clusters={clusters}.")));
        }
        Ok(())
    }

    /// First centres around the mean of the samples; (k, d).
    #[track_caller]
    fn start(&self, blocks: &mut Blocks<'_>, mean: &Array1<f64>) -> Result<Array2<f64>> {
        let training = blocks.training;
        if let Init::Centers(centers) = &self.init {
            return Ok(given(training, centers, self.n_clusters)? - mean);
        }
        let batch = self.batch_size.min(training.rows);
        let size = match self.init_size {
            Some(size) if self.n_clusters <= size => size,
            None if self.n_clusters <= 3 * batch => 3 * batch,
            _ => 3 * self.n_clusters,
        }
        .min(training.rows);
        let is_random = matches!(self.init, Init::Random);
        let runs = self.n_init.0.unwrap_or(if is_random { RANDOM_RUNS } else { 1 });
        let beside = if 1 < runs { Some(blocks.batch(size)?) } else { None };
        let mut best: Option<(f64, Array2<f64>)> = None;
        for run in 0..runs as u64 {
            let from = blocks.batch(size)?;
            let generator = default_rng_words(&[self.random_state, START, run]);
            let draws = generator.random(&[self.n_clusters * trials(self.n_clusters)]);
            let draws = vector(training.engine.run(&[&draws])?.pop().ok_or_else(lost)?)?;
            let centers = if is_random {
                from.rows.slice_axis(Axis(0), Slice::from(..self.n_clusters)).to_owned()
            } else {
                let weights = Array1::from_vec(from.weights.unwrap_or_default());
                plus_plus(&from.rows, &weights, self.n_clusters, &draws)
            };
            let inertia = match &beside {
                Some(beside) => Moving::new(centers.clone()).step(beside.rows.view(), None)?,
                None => 0.0,
            };
            if best.as_ref().is_none_or(|(least, _)| inertia < *least) {
                best = Some((inertia, centers));
            }
        }
        best.map(|(_, centers)| centers).ok_or_else(lost)
    }

    /// Steps until the inertia falls no more; their number and the last mean inertia of a sample.
    #[track_caller]
    fn steps(&self, blocks: &mut Blocks<'_>, moving: &mut Moving, tol: f64) -> Result<(usize, f64)> {
        let rows = blocks.training.rows;
        let batch = self.batch_size.min(rows);
        let most = ((self.max_iter as u128 * rows as u128) / batch as u128).max(1);
        let part = (2.0 * batch as f64 / (rows as f64 + 1.0)).min(1.0);
        let mut watch = Watch::default();
        let mut steps = 0;
        loop {
            let drawn = blocks.batch(batch)?;
            let is_due = moving.is_due(batch);
            let before = (0.0 < tol).then(|| moving.centers.clone());
            let inertia = moving.step(drawn.rows.view(), drawn.weights.as_deref())? / batch as f64;
            if !inertia.is_finite() {
                return Err(blocks.training.beyond_float64());
            }
            if is_due && 0.0 < self.reassignment_ratio {
                let seed = [self.random_state, PICK, steps as u64];
                moving.reassign(drawn.rows.view(), self.reassignment_ratio, |nth, _| share(&seed, nth));
            }
            steps += 1;
            let moved = before.map(|before| {
                let squares = (&moving.centers - &before).mapv(|part| part * part).sum();
                squares - tol
            });
            // The first step tells of the start.
            let is_over = 1 < steps && watch.ends(inertia, part, moved, self.max_no_improvement);
            if is_over || most <= steps as u128 {
                return Ok((steps, watch.mean.unwrap_or(inertia)));
            }
        }
    }
}

/// A number in [0, 1) of a seed.
fn share(seed: &[u64], nth: usize) -> f64 {
    let mut bits = nth as u64;
    for word in seed {
        // SplitMix64, whose bits all depend on all before.
        bits = (bits ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
    }
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

impl Estimator for MiniBatchKMeans {
    type Fitted = FittedMiniBatchKMeans;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedMiniBatchKMeans> {
        self.check()?;
        let training = Training::unsupervised(NAME, x, options)?;
        self.check_rows(training.rows)?;
        let weight_sum = training.weight_sum()?;
        let sums = ColumnSums::of_all(&training)?;
        let tol = self.tol * sums.variance().sum() / training.columns as f64;
        let mean = sums.mean();
        let lloyd = Lloyd::new(&training, &mean);
        let mut blocks = Blocks::new(&training, lloyd.samples(), weight_sum, self.random_state);
        let mut moving = Moving::new(self.start(&mut blocks, &mean)?);
        let (n_steps, mean_inertia) = self.steps(&mut blocks, &mut moving, tol)?;
        let cluster_centers = &moving.centers + &mean;
        let labels = distances(NAME, &training.x, &cluster_centers)?.argmin(1);
        let inertia =
            if self.compute_labels { lloyd.inertia(&moving.centers)? } else { mean_inertia * weight_sum };
        let batch = self.batch_size.min(training.rows);
        let n_iter = (n_steps as u128 * batch as u128).div_ceil(training.rows as u128) as usize;
        Ok(FittedMiniBatchKMeans { cluster_centers, labels, inertia, n_iter, n_steps, counts: moving.counts })
    }
}

impl FittedMiniBatchKMeans {
    /// The nearest centre of each sample (n, d), as an expression; (n,), int64.
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for NaN and infinity.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        nearest(NAME, x, &self.cluster_centers)
    }

    /// The distance of each sample (n, d) to each centre, as an expression; (n, k).
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        between(NAME, x, &self.cluster_centers)
    }

    /// The negative sum of squared distances of samples (n, d) to their nearest centres, weighted.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, NaN and infinity; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        Ok(-inertia(NAME, x, &options.into(), &self.cluster_centers)?)
    }
}

saved!(FittedMiniBatchKMeans, NAME, |model| {
    let (clusters, features) = model.cluster_centers.dim();
    0 < clusters && 0 < features && model.counts.len() == clusters
});

clusters!(FittedMiniBatchKMeans, NAME);

impl fmt::Display for FittedMiniBatchKMeans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clusters, features) = self.cluster_centers.dim();
        write!(f, "{NAME} of {features} features, {clusters} clusters")?;
        show::rows(f, "cluster_centers", &self.cluster_centers.clone().into_dyn())?;
        write!(f, "\n  inertia: {}, {} steps", self.inertia, self.n_steps)
    }
}
