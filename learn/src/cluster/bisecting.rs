//! Clusters that are split in two until there are enough.

use super::centers::{between, clusters, inertia};
use super::initial::{Draw, Init};
use super::k_means::KMeans;
use crate::base::{Estimator, FitOptions, Predict, Task, Transform};
use crate::bounds::{check_count, check_not_negative};
use crate::checks::{Training, refused, samples_for};
use crate::dense::tensor;
use crate::params::{estimator, words};
use crate::passes::{ColumnSums, Lloyd};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::lost;
use ndarray::{Array1, Array2, Axis, stack};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Result, Tensor, full, where_};

const NAME: &str = "BisectingKMeans";
/// Most clusters: each split is a part of the expression of a prediction.
const CLUSTERS_MAX: usize = 1 << 10;
/// The part by which another run must be better.
const BETTER: f64 = 1e-6;

/// The cluster that is split next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BisectingStrategy {
    /// The one with the largest sum of squared distances.
    #[default]
    BiggestInertia,
    /// The one of most samples.
    LargestCluster,
}

words!(
    BisectingStrategy,
    [
        "biggest_inertia" => BisectingStrategy::BiggestInertia,
        "largest_cluster" => BisectingStrategy::LargestCluster
    ]
);

estimator! {
    /// scikit-learn's `BisectingKMeans`: the samples are split in two by [`KMeans`], and then
    /// the worst or the largest cluster, until there are enough. A split reads the samples of its cluster
    /// alone, as far as they lie in chunks of their own; which cluster a sample is in is stored, 8 bytes for
    /// each.
    ///
    /// ```
    /// use tharsis_learn::cluster::BisectingKMeans;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 10.0, 11.0, 30.0, 31.0]).reshape(&[6, 1]);
    /// let model = BisectingKMeans::new().n_clusters(3).fit(&x, ..)?;
    /// assert_eq!(model.inertia, 1.5);
    /// assert_eq!(model.predict(&x).to_vec::<i64>()?, model.labels.to_vec::<i64>()?);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    BisectingKMeans {
        /// scikit-learn's `n_clusters`: the number of clusters.
        n_clusters "n_clusters" >= 1: usize, usize = 8;
        /// scikit-learn's `init`: the way to draw the two centres of a split; centres cannot be given.
        init "init": Init, Init = Init::Random;
        /// scikit-learn's `n_init`: runs of a split, of which the best is taken; not zero.
        n_init "n_init" >= 1: usize, usize = 1;
        /// scikit-learn's `random_state`: the seed of all draws; the numbers are not scikit-learn's.
        random_state "random_state": u64, u64 = 0;
        /// scikit-learn's `max_iter`: the most steps of a run; not zero.
        max_iter "max_iter" >= 1: usize, usize = 300;
        /// scikit-learn's `tol`: the sum of squared moves of the centres at which a run ends.
        tol "tol": f64, f64 = 1e-4;
        /// scikit-learn's `bisecting_strategy`: the cluster that is split next.
        bisecting_strategy "bisecting_strategy": BisectingStrategy, BisectingStrategy =
            BisectingStrategy::BiggestInertia;
    }
}

/// A fitted [`BisectingKMeans`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedBisectingKMeans {
    /// scikit-learn's `cluster_centers_`; (k, d).
    pub cluster_centers: Array2<f64>,
    /// scikit-learn's `labels_`: the cluster of each sample of the fit, as an expression; (n,), int64. A file
    /// has none.
    #[serde(skip, default = "crate::saved::left_out")]
    pub labels: Tensor,
    /// scikit-learn's `inertia_`: the weighted sum of squared distances to the own centre.
    pub inertia: f64,
    /// The splits: those of a cluster come behind its own, and the first is that of all samples.
    splits: Vec<Split>,
    columns: usize,
}

/// A cluster that was split.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Split {
    /// The centres of both parts; (2, d).
    centers: Array2<f64>,
    parts: [Part; 2],
}

/// A part of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    /// The cluster of this number.
    Cluster(usize),
    /// Those of a split behind.
    Split(usize),
}

/// A cluster while others are split.
struct Leaf {
    /// Around the mean of all samples; (d,).
    center: Array1<f64>,
    score: f64,
    inertia: f64,
    /// The split and the part of it that the cluster is; none of all samples.
    of: Option<(usize, usize)>,
}

impl BisectingKMeans {
    /// Fits the clusters to samples (n, d), of any real dtype.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, more than 1024 clusters or than samples, samples of
    /// other than two axes, without features, complex, NaN or infinite, and weights that are negative or all
    /// zero; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedBisectingKMeans> {
        self.fit_any(x, None, &options.into())
    }

    /// Checks what needs no data.
    #[track_caller]
    fn check(&self) -> Result<()> {
        for (name, count) in
            [("n_clusters", self.n_clusters), ("n_init", self.n_init), ("max_iter", self.max_iter)]
        {
            check_count(NAME, name, count, 1)?;
        }
        if CLUSTERS_MAX < self.n_clusters {
            return Err(refused(format!(
                "n_clusters={}: {NAME} has at most {CLUSTERS_MAX}",
                self.n_clusters
            )));
        }
        if let Init::Centers(_) = self.init {
            return Err(refused(format!(
                "The 'init' parameter of {NAME} must be a str among {{'k-means++', 'random'}} or a callable. Got \
                 an array instead."
            )));
        }
        check_not_negative(NAME, "tol", self.tol)
    }

    /// The two centres of samples around zero, and the sums of squared distances and the weights of both.
    #[track_caller]
    fn halves(&self, part: &Training, zero: &Array1<f64>, seed: u64) -> Result<Halves> {
        let lloyd = Lloyd::new(part, zero);
        let estimator = KMeans::new().n_clusters(2).init(self.init.clone()).max_iter(self.max_iter);
        let mut best: Option<(f64, Array2<f64>)> = None;
        for run in 0..self.n_init as u64 {
            let seeded = estimator.clone().n_init(1).random_state(seed.wrapping_add(run));
            let centers = if part.rows < 2 {
                let only = lloyd.around(&Array2::zeros((1, part.columns)))?.sums.row(0).to_owned();
                (0.0, stack(Axis(0), &[only.view(), only.view()]).map_err(|_| lost())?)
            } else {
                let found =
                    seeded.best(&Draw { training: part, lloyd: &lloyd, clusters: 2 }, None, self.tol)?;
                (found.inertia, found.centers)
            };
            if best.as_ref().is_none_or(|(inertia, _)| centers.0 < inertia * (1.0 - BETTER)) {
                best = Some(centers);
            }
        }
        best.map(|(_, centers)| Halves { centers }).ok_or_else(lost)
    }
}

/// The centres of a split, around the mean of all samples.
struct Halves {
    centers: Array2<f64>,
}

/// Whether each sample is nearer to the second of two centres; (n,).
#[track_caller]
fn is_second(x: &Tensor, centers: &Array2<f64>) -> Tensor {
    let apart = |at: usize| (x - tensor(&centers.row(at).to_owned())).square().sum(1);
    apart(1).less(apart(0))
}

impl Estimator for BisectingKMeans {
    type Fitted = FittedBisectingKMeans;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedBisectingKMeans> {
        self.check()?;
        let training = Training::unsupervised(NAME, x, options)?;
        let (rows, wanted) = (training.rows, self.n_clusters);
        if rows < wanted {
            return Err(refused(format!("n_samples={rows} should be >= n_clusters={wanted}.")));
        }
        training.weight_sum()?;
        let mean = ColumnSums::of_all(&training)?.mean();
        let zero = Array1::zeros(training.columns);
        let around = &training.x - tensor(&mean);
        let centred = Training::unsupervised(NAME, &around, &training.weighted_options())?;
        let mut place = full(&[rows], 0i64, DType::I64);
        let mut leaves = vec![Leaf { center: zero.clone(), score: 0.0, inertia: 0.0, of: None }];
        let mut splits: Vec<Split> = Vec::new();
        while leaves.len() < wanted {
            // The first of those with the largest score, in the order of the leaves of the tree.
            let order = in_order(&leaves, &splits);
            let best = order
                .into_iter()
                .reduce(|best, at| if leaves[best].score < leaves[at].score { at } else { best });
            let chosen = best.ok_or_else(lost)?;
            let is_own = place.equal(chosen as i64);
            let part = centred.part(|tensor| tensor.filter(&is_own))?;
            let seed = self.random_state.wrapping_add((splits.len() as u64) << 32);
            let Halves { centers } = self.halves(&part, &zero, seed)?;
            let second = leaves.len();
            let is_new = is_own.logical_and(is_second(&centred.x, &centers));
            place = centred.engine.stored(&where_(&is_new, second as i64, &place))?;
            let at = splits.len();
            if let Some((split, half)) = leaves[chosen].of {
                splits[split].parts[half] = Part::Split(at);
            }
            splits.push(Split {
                centers: centers.clone(),
                parts: [Part::Cluster(chosen), Part::Cluster(second)],
            });
            let both = [chosen, second].map(|leaf| place.equal(leaf as i64));
            let scores = self.scores(&centred, &both, &centers)?;
            let mut made = (0..2).map(|half| Leaf {
                center: centers.row(half).to_owned(),
                score: scores[half].0,
                inertia: scores[half].1,
                of: Some((at, half)),
            });
            leaves[chosen] = made.next().ok_or_else(lost)?;
            leaves.push(made.next().ok_or_else(lost)?);
        }
        self.finished(&centred, &mean, (leaves, splits, place))
    }
}

impl BisectingKMeans {
    /// The scores and the sums of squared distances of the samples of two clusters.
    #[track_caller]
    fn scores(
        &self,
        training: &Training,
        both: &[Tensor; 2],
        centers: &Array2<f64>,
    ) -> Result<[(f64, f64); 2]> {
        let mut wanted = Vec::with_capacity(4);
        for (half, is_own) in both.iter().enumerate() {
            let apart = (&training.x - tensor(&centers.row(half).to_owned())).square().sum(1);
            let apart = where_(is_own, apart, 0.0);
            let weighted = match &training.weight {
                Some(weight) => apart * weight,
                None => apart,
            };
            wanted.extend([weighted.sum(..), is_own.astype(DType::F64).sum(..)]);
        }
        let found = training.engine.run(&wanted.iter().collect::<Vec<_>>())?;
        let found: Vec<f64> = found.iter().map(|sum| sum.sum()).collect();
        let score = |half: usize| {
            let (inertia, count) = (found[2 * half], found[2 * half + 1]);
            let is_by_inertia = self.bisecting_strategy == BisectingStrategy::BiggestInertia;
            (if is_by_inertia { inertia } else { count }, inertia)
        };
        Ok([score(0), score(1)])
    }

    /// The model, whose clusters have the order of the tree.
    #[track_caller]
    fn finished(
        &self,
        training: &Training,
        mean: &Array1<f64>,
        (leaves, mut splits, place): (Vec<Leaf>, Vec<Split>, Tensor),
    ) -> Result<FittedBisectingKMeans> {
        let order = in_order(&leaves, &splits);
        let mut numbers = vec![0i64; leaves.len()];
        order.iter().enumerate().for_each(|(number, &leaf)| numbers[leaf] = number as i64);
        for split in &mut splits {
            split.centers = &split.centers + mean;
            for part in &mut split.parts {
                if let Part::Cluster(leaf) = part {
                    *part = Part::Cluster(numbers[*leaf] as usize);
                }
            }
        }
        let centers: Vec<Array1<f64>> = order.iter().map(|&leaf| &leaves[leaf].center + mean).collect();
        let views: Vec<_> = centers.iter().map(|center| center.view()).collect();
        let cluster_centers = stack(Axis(0), &views).map_err(|_| lost())?;
        let inertia = if leaves.len() == 1 {
            let zero = Array1::zeros(training.columns);
            Lloyd::new(training, &zero).inertia(&Array2::zeros((1, training.columns)))?
        } else {
            leaves.iter().map(|leaf| leaf.inertia).sum()
        };
        let labels = Tensor::from_elements(&[numbers.len()], &numbers).take_at(&place, 0);
        let columns = training.columns;
        Ok(FittedBisectingKMeans { cluster_centers, labels, inertia, splits, columns })
    }
}

/// The leaves of the tree from its first to its last.
fn in_order(leaves: &[Leaf], splits: &[Split]) -> Vec<usize> {
    let mut order = Vec::with_capacity(leaves.len());
    let mut open = vec![if splits.is_empty() { Part::Cluster(0) } else { Part::Split(0) }];
    while let Some(part) = open.pop() {
        match part {
            Part::Cluster(leaf) => order.push(leaf),
            Part::Split(split) => {
                let [first, second] = splits[split].parts;
                open.extend([second, first]);
            }
        }
    }
    order
}

impl FittedBisectingKMeans {
    /// The cluster of each sample (n, d), down the splits, as an expression; (n,), int64.
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for NaN and infinity.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        match samples_for(NAME, x, self.columns) {
            Ok(samples) => self.told(&samples),
            Err(error) => Tensor::from(error),
        }
    }

    #[track_caller]
    fn told(&self, x: &Tensor) -> Tensor {
        // Splits behind others first: those that they lead to are known then.
        let none = x.sum(1).isnan().logical_and(false).astype(DType::I64);
        let mut told: Vec<Tensor> = vec![none.clone(); self.splits.len()];
        for (at, split) in self.splits.iter().enumerate().rev() {
            let of = |part: Part| match part {
                Part::Cluster(cluster) => &none + cluster as i64,
                Part::Split(split) => told.get(split).cloned().unwrap_or_else(|| none.clone()),
            };
            let [first, second] = split.parts.map(of);
            told[at] = where_(&is_second(x, &split.centers), second, first);
        }
        told.into_iter().next().unwrap_or(none)
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

saved!(FittedBisectingKMeans, NAME, |model| {
    let count = model.cluster_centers.nrows();
    let is_part = |at: usize, part: &Part| match *part {
        Part::Cluster(cluster) => cluster < count,
        Part::Split(split) => at < split && split < model.splits.len(),
    };
    let is_split = |(at, split): (usize, &Split)| {
        split.centers.dim() == (2, model.columns) && split.parts.iter().all(|part| is_part(at, part))
    };
    0 < model.columns
        && (1..=CLUSTERS_MAX).contains(&count)
        && model.cluster_centers.ncols() == model.columns
        && model.splits.len() + 1 == count
        && model.splits.iter().enumerate().all(is_split)
});

clusters!(FittedBisectingKMeans, NAME);

impl fmt::Display for FittedBisectingKMeans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.cluster_centers.nrows();
        write!(f, "{NAME} of {} features, {count} clusters", self.columns)?;
        show::rows(f, "cluster_centers", &self.cluster_centers.clone().into_dyn())?;
        write!(f, "\n  inertia: {}", self.inertia)
    }
}
