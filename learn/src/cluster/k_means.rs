//! Clusters around their means.

use super::centers::{between, clusters, distances, inertia, nearest};
use super::initial::{Draw, Init};
use crate::base::{Estimator, FitOptions, Predict, Task, Transform};
use crate::checks::{Training, refused};
use crate::params::{Auto, parameters};
use crate::passes::{Clusters, ColumnSums, Lloyd};
use crate::saved::{Save, saved};
use crate::show;
use crate::states::{lost, matrix};
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::random::{Generator, default_rng, default_rng_words};
use tharsis_numeric::select::UNKNOWN;
use tharsis_numeric::{DType, Error, Result, Tensor};

const NAME: &str = "KMeans";
/// Runs from first centres that are drawn without a look at each other.
const RANDOM_RUNS: usize = 10;

/// scikit-learn's `KMeans` by Lloyd's algorithm: centres so that the squared distances of samples to the
/// nearest one are small in sum.
///
/// Each step is one pass. First centres are drawn by `k-means||`, which takes six passes where k-means++
/// takes one for each centre. All draws are functions of `random_state`, whatever the chunks.
///
/// ```
/// use tharsis_learn::cluster::KMeans;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 10.0, 11.0]).reshape(&[4, 1]);
/// let model = KMeans::new().n_clusters(2).fit(&x, ..)?;
/// let mut centers = model.cluster_centers.clone().into_raw_vec_and_offset().0;
/// centers.sort_by(f64::total_cmp);
/// assert_eq!((centers, model.inertia), (vec![0.5, 10.5], 1.0));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct KMeans {
    n_clusters: usize,
    init: Init,
    n_init: Auto<usize>,
    max_iter: usize,
    tol: f64,
    random_state: u64,
}

/// A fitted [`KMeans`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedKMeans {
    /// scikit-learn's `cluster_centers_`; (k, d).
    pub cluster_centers: Array2<f64>,
    /// scikit-learn's `labels_`: the cluster of each sample of the fit, as an expression; (n,), int64. A file
    /// has no labels, as it would have one for each sample: those of a model that is read are an error, and
    /// [`predict`](FittedKMeans::predict) tells them again.
    #[serde(skip, default = "crate::saved::left_out")]
    pub labels: Tensor,
    /// scikit-learn's `inertia_`: the weighted sum of squared distances to the nearest centre.
    pub inertia: f64,
    /// scikit-learn's `n_iter_`: steps of the best run.
    pub n_iter: usize,
    /// Whether the centres moved less than `tol` in the last step. Otherwise `max_iter` steps were not
    /// enough.
    pub converged: bool,
}

parameters!(
    KMeans,
    "KMeans",
    [
        "n_clusters" => n_clusters >= 1, "init" => init, "n_init" => n_init >= 1, "max_iter" => max_iter >= 1,
        "tol" => tol, "random_state" => random_state
    ]
);

impl Default for KMeans {
    fn default() -> KMeans {
        KMeans {
            n_clusters: 8,
            init: Init::default(),
            n_init: Auto(None),
            max_iter: 300,
            tol: 1e-4,
            random_state: 0,
        }
    }
}

impl KMeans {
    /// An estimator with scikit-learn's defaults: 8 clusters, `max_iter` 300, `tol` 1e-4; but `random_state`
    /// is 0.
    ///
    /// ```
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::arange;
    /// let model = KMeans::new().fit(&arange(100).reshape(&[100, 1]), ..)?;
    /// assert_eq!(model.cluster_centers.dim(), (8, 1));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> KMeans {
        KMeans::default()
    }

    /// scikit-learn's `n_clusters`: the number of clusters.
    ///
    /// ```
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::arange;
    /// let refused = KMeans::new().n_clusters(5).fit(&arange(4).reshape(&[4, 1]), ..);
    /// assert!(refused.unwrap_err().to_string().starts_with("n_samples=4 should be >= n_clusters=5."));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn n_clusters(self, n_clusters: usize) -> KMeans {
        KMeans { n_clusters, ..self }
    }

    /// scikit-learn's `init`: the first centres; a tensor (k, d), or a way to draw them.
    ///
    /// ```
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 10.0, 11.0]).reshape(&[4, 1]);
    /// let model = KMeans::new().n_clusters(2).init(&array([0.0, 10.0]).reshape(&[2, 1])).fit(&x, ..)?;
    /// assert_eq!(model.labels.to_vec::<i64>()?, [0, 0, 1, 1]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn init(self, init: impl Into<Init>) -> KMeans {
        KMeans { init: init.into(), ..self }
    }

    /// scikit-learn's `n_init`: the number of runs from different first centres, of which the best is taken.
    /// Without it 10 for [`Init::Random`], else one, as scikit-learn's `'auto'`.
    ///
    /// ```
    /// use tharsis_learn::cluster::{Init, KMeans};
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 10.0, 11.0]).reshape(&[4, 1]);
    /// assert_eq!(KMeans::new().n_clusters(2).init(Init::Random).n_init(5).fit(&x, ..)?.inertia, 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn n_init(self, n_init: usize) -> KMeans {
        KMeans { n_init: Auto(Some(n_init)), ..self }
    }

    /// scikit-learn's `max_iter`: the most steps of a run; not zero.
    ///
    /// ```
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 10.0, 11.0]).reshape(&[4, 1]);
    /// let init = array([0.0, 1.0]).reshape(&[2, 1]);
    /// let model = KMeans::new().n_clusters(2).init(&init).max_iter(1).fit(&x, ..)?;
    /// assert!(!model.converged);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn max_iter(self, max_iter: usize) -> KMeans {
        KMeans { max_iter, ..self }
    }

    /// scikit-learn's `tol`: the sum of squared moves of the centres at which a run ends, in parts of the
    /// mean variance of the features.
    ///
    /// ```
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::arange;
    /// let model = KMeans::new().tol(0.0).fit(&arange(50).reshape(&[50, 1]), ..)?;
    /// assert!(model.converged);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn tol(self, tol: f64) -> KMeans {
        KMeans { tol, ..self }
    }

    /// scikit-learn's `random_state`: the seed of all draws; the numbers are not scikit-learn's.
    ///
    /// ```
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::arange;
    /// let x = arange(100).reshape(&[100, 1]);
    /// let [a, b] = [7, 7].map(|seed| KMeans::new().random_state(seed).fit(&x, ..));
    /// assert_eq!(a?.cluster_centers, b?.cluster_centers);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn random_state(self, random_state: u64) -> KMeans {
        KMeans { random_state, ..self }
    }

    /// Fits the clusters to samples (n, d), of any real dtype.
    ///
    /// ```
    /// use tharsis_learn::FitOptions;
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 4.0]).reshape(&[2, 1]);
    /// let weighted = FitOptions::new().sample_weight(&array([3.0, 1.0]));
    /// assert_eq!(KMeans::new().n_clusters(1).fit(&x, weighted)?.cluster_centers[[0, 0]], 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, first centres that do not fit, fewer samples than
    /// clusters, samples of other than two axes, without features, complex, NaN or infinite, and weights that
    /// are negative or all zero; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedKMeans> {
        self.check()?;
        let training = Training::unsupervised("KMeans", x, &options.into())?;
        let (rows, clusters) = (training.rows, self.n_clusters);
        if rows < clusters {
            return Err(refused(format!("n_samples={rows} should be >= n_clusters={clusters}.")));
        }
        let given = match &self.init {
            Init::Centers(centers) => Some(given(&training, centers, clusters)?),
            Init::Parallel | Init::Random => None,
        };
        let sums = ColumnSums::of_all(&training)?;
        training.weight_sum()?;
        let tol = self.tol * sums.variance().sum() / training.columns as f64;
        let mean = sums.mean();
        // Around zero, where products lose no digits.
        let lloyd = Lloyd::new(&training, &mean);
        let draw = Draw { training: &training, lloyd: &lloyd, clusters };
        let given = given.map(|given| given - &mean);
        let Run { centers, inertia, steps, converged } = self.best(&draw, given.as_ref(), tol)?;
        let cluster_centers = centers + &mean;
        let labels = distances(NAME, &training.x, &cluster_centers)?.argmin(1);
        Ok(FittedKMeans { cluster_centers, labels, inertia, n_iter: steps, converged })
    }

    /// The best of all runs, from given centres or drawn ones; around the same point as the samples.
    #[track_caller]
    pub(super) fn best(&self, draw: &Draw<'_>, given: Option<&Array2<f64>>, tol: f64) -> Result<Run> {
        let mut best: Option<Run> = None;
        for run in 0..self.runs() as u64 {
            let first = match (given, &self.init) {
                (Some(given), _) => given.clone(),
                (None, Init::Random) => draw.random(&self.generator(run))?,
                (None, _) => draw.parallel(&self.generator(run))?,
            };
            let made = self.run(draw.lloyd, first, tol)?;
            if best.as_ref().is_none_or(|best| made.inertia < best.inertia) {
                best = Some(made);
            }
        }
        best.ok_or_else(lost)
    }

    /// Number of runs.
    fn runs(&self) -> usize {
        match (&self.init, self.n_init.0) {
            (Init::Centers(_), _) => 1,
            (_, Some(runs)) => runs,
            (Init::Random, None) => RANDOM_RUNS,
            (Init::Parallel, None) => 1,
        }
    }

    /// The draws of a run: those of two runs have nothing in common, nor have those of two seeds.
    fn generator(&self, run: u64) -> Generator {
        match run {
            0 => default_rng(self.random_state),
            run => default_rng_words(&[self.random_state, run]),
        }
    }

    /// Checks what needs no data.
    #[track_caller]
    fn check(&self) -> Result<()> {
        let n_init = self.n_init.0.unwrap_or(1);
        for (name, count) in
            [("n_clusters", self.n_clusters), ("n_init", n_init), ("max_iter", self.max_iter)]
        {
            if count == 0 {
                return Err(refused(format!(
                    "The '{name}' parameter of KMeans must be an int in the range [1, inf). Got 0 instead."
                )));
            }
        }
        let is_tolerance = 0.0 <= self.tol && self.tol.is_finite();
        if !is_tolerance {
            return Err(refused(format!(
                "The 'tol' parameter of KMeans must be a float in the range [0.0, inf). Got {} instead.",
                self.tol
            )));
        }
        if let Init::Centers(centers) = &self.init
            && let [found, _] = *centers.shape()?
            && found != self.n_clusters
            && found != UNKNOWN
        {
            return Err(unfit(centers.shape()?, "number of clusters", self.n_clusters));
        }
        Ok(())
    }

    /// Steps from these centres until they rest.
    #[track_caller]
    fn run(&self, lloyd: &Lloyd<'_>, first: Array2<f64>, tol: f64) -> Result<Run> {
        let mut centers = first;
        for step in 1..=self.max_iter {
            let moved = means(lloyd, &centers, lloyd.around(&centers)?)?;
            let distance = (&moved - &centers).iter().map(|part| part * part).sum::<f64>();
            centers = moved;
            if distance <= tol || step == self.max_iter {
                let inertia = lloyd.inertia(&centers)?;
                return Ok(Run { centers, inertia, steps: step, converged: distance <= tol });
            }
        }
        Err(lost())
    }
}

/// The first centres that were given; (k, d).
#[track_caller]
pub(super) fn given(training: &Training, centers: &Tensor, clusters: usize) -> Result<Array2<f64>> {
    let known = training.engine.with_sizes(&[centers])?;
    let centers = known.first().ok_or_else(lost)?;
    let shape = centers.shape()?;
    match *shape {
        [found, _] if found != clusters => Err(unfit(shape, "number of clusters", clusters)),
        [_, found] if found != training.columns => {
            Err(unfit(shape, "number of features of the data", training.columns))
        }
        [_, _] => {
            let found = training.engine.run(&[&centers.astype(DType::F64)])?.pop().ok_or_else(lost)?;
            if found.iter().any(|part| !part.is_finite()) {
                return Err(refused("Input init contains NaN or infinity."));
            }
            matrix(found)
        }
        _ => Err(unfit(shape, "number of clusters", clusters)),
    }
}

/// The error of first centres of another shape.
#[track_caller]
fn unfit(shape: &[usize], what: &str, count: usize) -> Error {
    refused(format!("The shape of the initial centers {shape:?} does not match the {what} {count}."))
}

/// Centres at rest, or after the last step.
pub(super) struct Run {
    pub(super) centers: Array2<f64>,
    pub(super) inertia: f64,
    steps: usize,
    converged: bool,
}

/// Roundings of a weight from which others were taken, in units of the last place.
const ROUNDINGS: f64 = 16.0;

/// The means of clusters. One without samples takes the sample that is farthest from its own centre, as in
/// scikit-learn; if all samples lie on centres, its own centre stays.
#[track_caller]
fn means(lloyd: &Lloyd<'_>, centers: &Array2<f64>, clusters: Clusters) -> Result<Array2<f64>> {
    let Clusters { mut sums, mut weights } = clusters;
    let whole = weights.clone();
    let empty: Vec<usize> =
        weights.iter().enumerate().filter(|(_, weight)| **weight == 0.0).map(|(at, _)| at).collect();
    if !empty.is_empty() {
        let far = lloyd.farthest(centers, empty.len())?;
        for (&cluster, far) in empty.iter().zip(&far).filter(|(_, far)| 0.0 < far.distance) {
            let weighted: Array1<f64> = &far.row * far.weight;
            let mut left = sums.row_mut(far.cluster);
            left -= &weighted;
            weights[far.cluster] -= far.weight;
            sums.row_mut(cluster).assign(&weighted);
            weights[cluster] = far.weight;
        }
    }
    let mut moved = centers.clone();
    for (at, mut center) in moved.outer_iter_mut().enumerate() {
        // The rest of a weight of which all was taken may be its rounding, and so is the rest of the sum.
        if ROUNDINGS * f64::EPSILON * whole[at] < weights[at] {
            center.assign(&sums.row(at).mapv(|sum| sum / weights[at]));
        }
    }
    Ok(moved)
}

impl FittedKMeans {
    /// The nearest centre of each sample (n, d), as an expression; (n,), int64.
    ///
    /// ```
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::array;
    /// let init = array([0.0, 10.0]).reshape(&[2, 1]);
    /// let model = KMeans::new().n_clusters(2).init(&init).fit(&init, ..)?;
    /// assert_eq!(model.predict(&array([7.0, -1.0]).reshape(&[2, 1])).to_vec::<i64>()?, [1, 0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for NaN and infinity.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        nearest(NAME, x, &self.cluster_centers)
    }

    /// The distance of each sample (n, d) to each centre, as an expression; (n, k).
    ///
    /// ```
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::array;
    /// let init = array([0.0, 10.0]).reshape(&[2, 1]);
    /// let model = KMeans::new().n_clusters(2).init(&init).fit(&init, ..)?;
    /// assert_eq!(model.transform(&array([7.0]).reshape(&[1, 1])).to_vec::<f64>()?, [7.0, 3.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        between(NAME, x, &self.cluster_centers)
    }

    /// The negative sum of squared distances of samples (n, d) to their nearest centres, weighted.
    ///
    /// ```
    /// use tharsis_learn::cluster::KMeans;
    /// use tharsis_numeric::array;
    /// let init = array([0.0, 10.0]).reshape(&[2, 1]);
    /// let model = KMeans::new().n_clusters(2).init(&init).fit(&init, ..)?;
    /// assert_eq!(model.score(&array([7.0]).reshape(&[1, 1]), ..)?, -9.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, NaN and infinity; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        Ok(-inertia(NAME, x, &options.into(), &self.cluster_centers)?)
    }
}

impl Estimator for KMeans {
    type Fitted = FittedKMeans;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedKMeans> {
        self.fit(x, options)
    }
}

saved!(FittedKMeans, "KMeans", |model| {
    0 < model.cluster_centers.nrows() && 0 < model.cluster_centers.ncols()
});

clusters!(FittedKMeans, NAME);

impl fmt::Display for FittedKMeans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clusters, features) = self.cluster_centers.dim();
        write!(f, "KMeans of {features} features, {clusters} clusters")?;
        for (at, center) in self.cluster_centers.axis_iter(Axis(0)).enumerate() {
            show::line(f, &format!("cluster_centers[{at}]"), center)?;
        }
        let state = if self.converged { "converged" } else { "not converged" };
        write!(f, "\n  inertia: {}, {state} after {} steps", self.inertia, self.n_iter)
    }
}

#[cfg(test)]
mod tests {
    use super::{Init, KMeans};
    use tharsis_numeric::zeros;

    #[test]
    fn no_two_runs_have_draws_in_common() {
        let mut seen: Vec<Vec<f64>> = Vec::new();
        for seed in 0..4 {
            for run in 0..4 {
                let generator = KMeans::new().random_state(seed).generator(run);
                let draws = generator.random(&[3]).to_vec::<f64>().unwrap();
                assert!(!seen.contains(&draws), "seed {seed}, run {run}");
                seen.push(draws);
            }
        }
    }

    #[test]
    fn random_centers_are_drawn_ten_times_unless_told() {
        let random = KMeans::new().init(Init::Random);
        assert_eq!((random.runs(), random.n_init(3).runs(), KMeans::new().runs()), (10, 3, 1));
        assert_eq!(KMeans::new().init(&zeros(&[8, 1])).n_init(5).runs(), 1);
    }
}
