//! Outliers: samples that few random splits part from all others.

use crate::base::{Estimator, FitOptions, predicts};
use crate::checks::{Training, refused};
use crate::params::{Auto, parameters};
use crate::saved::saved;
use crate::show;
use crate::states::{lost, matrix};
use crate::tree::nodes::{MISSING, Node, Tree};
use crate::tree::parameters::Ranges;
use crate::tree::predict::{Trees, Values};
use ndarray::{ArrayView2, Axis, Slice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use tharsis_kernels::Key;
use tharsis_kernels::random::below;
use tharsis_numeric::quantile::Method;
use tharsis_numeric::{DType, Result, Tensor, where_};

/// Samples of a tree if no number is given.
const SAMPLES: usize = 256;
/// Bytes of samples that are drawn at the same time; few in debug builds, so that tests draw several times.
const DRAWN_BYTES_MAX: u64 = if cfg!(debug_assertions) { 32 << 10 } else { 64 << 20 };
/// Part of the memory that these may take.
const DRAWN_SHARE: u64 = 16;
/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// scikit-learn's `IsolationForest`: outliers are samples that random splits isolate soon.
///
/// Each tree has a few samples, drawn without replacement, and is made in this process; all samples are read
/// once for a `contamination`. NaN is a value that is missing, and infinity a number beyond all others.
/// Weights of samples are refused.
///
/// ```
/// use tharsis_learn::ensemble::IsolationForest;
/// use tharsis_numeric::array;
/// let x = array([-1.1, 0.3, 0.5, 100.0]).reshape(&[4, 1]);
/// let model = IsolationForest::new().fit(&x, ..)?;
/// let new = array([0.1, 90.0]).reshape(&[2, 1]);
/// assert_eq!(model.predict(&new).to_vec::<i64>()?, [1, -1]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct IsolationForest {
    n_estimators: usize,
    max_samples: Auto<usize>,
    contamination: Auto<f64>,
    random_state: u64,
}

/// A fitted [`IsolationForest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedIsolationForest {
    /// scikit-learn's `max_samples_`: the samples of each tree.
    pub max_samples: usize,
    /// scikit-learn's `offset_`: the score below which a sample is an outlier.
    pub offset: f64,
    trees: Trees,
}

parameters!(
    IsolationForest,
    NAME,
    [
        "n_estimators" => n_estimators >= 1, "max_samples" => max_samples >= 1, "contamination" => contamination,
        "random_state" => random_state
    ]
);

impl Default for IsolationForest {
    fn default() -> IsolationForest {
        IsolationForest {
            n_estimators: 100,
            max_samples: Auto(None),
            contamination: Auto(None),
            random_state: 0,
        }
    }
}

const NAME: &str = "IsolationForest";

impl IsolationForest {
    /// An estimator with scikit-learn's defaults: 100 trees of 256 samples, or of all if there are fewer.
    ///
    /// ```
    /// use tharsis_learn::ensemble::IsolationForest;
    /// use tharsis_numeric::arange;
    /// let model = IsolationForest::new().fit(&arange(300).reshape(&[300, 1]), ..)?;
    /// assert_eq!((model.max_samples, model.offset), (256, -0.5));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> IsolationForest {
        IsolationForest::default()
    }

    /// scikit-learn's `n_estimators`: the number of trees.
    ///
    /// ```
    /// use tharsis_learn::ensemble::IsolationForest;
    /// use tharsis_numeric::arange;
    /// let refused = IsolationForest::new().n_estimators(0).fit(&arange(3).reshape(&[3, 1]), ..);
    /// assert!(refused.unwrap_err().to_string().contains("'n_estimators' parameter"));
    /// ```
    pub fn n_estimators(self, n_estimators: usize) -> IsolationForest {
        IsolationForest { n_estimators, ..self }
    }

    /// scikit-learn's `max_samples`: the number of samples of each tree; of all if there are fewer. `None` is
    /// scikit-learn's `"auto"`: 256.
    ///
    /// ```
    /// use tharsis_learn::ensemble::IsolationForest;
    /// use tharsis_numeric::arange;
    /// let x = arange(30).reshape(&[30, 1]);
    /// assert_eq!(IsolationForest::new().max_samples(9).fit(&x, ..)?.max_samples, 9);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn max_samples(self, max_samples: impl Into<Option<usize>>) -> IsolationForest {
        IsolationForest { max_samples: Auto(max_samples.into()), ..self }
    }

    /// scikit-learn's `contamination`: the share of outliers among the samples, above 0 and at most 0.5.
    /// `None` is `"auto"`: samples are outliers whose score is below -0.5.
    ///
    /// ```
    /// use tharsis_learn::ensemble::IsolationForest;
    /// use tharsis_numeric::arange;
    /// let x = arange(100).reshape(&[100, 1]);
    /// let model = IsolationForest::new().contamination(0.1).fit(&x, ..)?;
    /// let outliers = model.predict(&x).equal(-1).sum(..).item()?.to_f64();
    /// assert!((8.0..=12.0).contains(&outliers));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn contamination(self, contamination: impl Into<Option<f64>>) -> IsolationForest {
        IsolationForest { contamination: Auto(contamination.into()), ..self }
    }

    /// scikit-learn's `random_state`: the seed of all draws; the numbers are not scikit-learn's.
    ///
    /// ```
    /// use tharsis_learn::ensemble::IsolationForest;
    /// use tharsis_numeric::arange;
    /// let x = arange(50).reshape(&[50, 1]);
    /// let [a, b] = [7, 7].map(|seed| IsolationForest::new().random_state(seed).fit(&x, ..));
    /// assert_eq!(a?.score_samples(&x).to_vec::<f64>()?, b?.score_samples(&x).to_vec::<f64>()?);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn random_state(self, random_state: u64) -> IsolationForest {
        IsolationForest { random_state, ..self }
    }

    /// Fits the trees to samples (n, d), of any real dtype.
    ///
    /// ```
    /// use tharsis_learn::ensemble::IsolationForest;
    /// use tharsis_numeric::array;
    /// let refused = IsolationForest::new().fit(&array([1.0, 2.0]), ..);
    /// assert!(refused.unwrap_err().to_string().starts_with("Expected 2D array, got 1D array instead."));
    /// ```
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, samples of other than two axes, without features,
    /// complex, and for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedIsolationForest> {
        self.fit_any(x, None, &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let ranges = Ranges { estimator: NAME };
        ranges.int("n_estimators", self.n_estimators, 1)?;
        if let Some(samples) = self.max_samples.0 {
            ranges.int("max_samples", samples, 1)?;
        }
        if let Some(share) = self.contamination.0 {
            let is_share = 0.0 < share && share <= 0.5;
            let range = "a str among {'auto'} or a float in the range (0.0, 0.5]";
            ranges.check("contamination", is_share, range, &share)?;
        }
        Ok(())
    }

    /// All trees, each of its own samples.
    #[track_caller]
    fn trees(&self, training: &Training, samples: usize, memory_bytes: u64) -> Result<Vec<Tree>> {
        let bytes = (samples as u64).saturating_mul((training.columns * size_of::<f64>()) as u64);
        let together = DRAWN_BYTES_MAX.min(memory_bytes / DRAWN_SHARE) / bytes.max(1);
        let together = together.clamp(1, self.n_estimators as u64) as usize;
        let depth_max = (samples.max(2) as f64).log2().ceil() as usize;
        let mut trees = Vec::with_capacity(self.n_estimators);
        for first in (0..self.n_estimators).step_by(together) {
            let keys: Vec<Key> = (first..(first + together).min(self.n_estimators))
                .map(|tree| Key::for_purpose(self.random_state, tree as u64, "isolation"))
                .collect();
            let chosen: Vec<i64> =
                keys.iter().flat_map(|&key| distinct(key, samples, training.rows)).collect();
            let rows = training.x.take_at(&Tensor::from_elements(&[chosen.len()], &chosen), 0);
            let rows = matrix(training.engine.run(&[&rows])?.pop().ok_or_else(lost)?)?;
            for (at, &key) in keys.iter().enumerate() {
                let own = rows.slice_axis(Axis(0), Slice::from(at * samples..(at + 1) * samples));
                trees.push(isolated(own, Key::of_bits(key.bits(u64::MAX)), depth_max));
            }
        }
        Ok(trees)
    }
}

/// So many different numbers below a bound, ascending (Floyd's method).
fn distinct(key: Key, count: usize, bound: usize) -> BTreeSet<i64> {
    let mut chosen = BTreeSet::new();
    for last in bound - count..bound {
        let drawn = below(key.bits(last as u64), last as u64 + 1) as i64;
        if !chosen.insert(drawn) {
            chosen.insert(last as i64);
        }
    }
    chosen
}

/// A tree that parts rows at random, whose values are the lengths of the ways to the leaves.
fn isolated(rows: ArrayView2<'_, f64>, key: Key, depth_max: usize) -> Tree {
    let mut nodes = vec![Node::leaf()];
    let mut values = vec![0.0];
    let mut drawn = 0;
    let mut stack = vec![(0, 0, (0..rows.nrows()).collect::<Vec<usize>>())];
    while let Some((node, depth, members)) = stack.pop() {
        let question = if depth < depth_max { question(rows, &members, key, &mut drawn) } else { None };
        let Some((feature, threshold)) = question else {
            values[node] = depth as f64 + average_path(members.len() as f64);
            continue;
        };
        let left = nodes.len();
        let is_below = |row: usize| rows[[row, feature]] <= threshold;
        let is_missing = |row: usize| rows[[row, feature]].is_nan();
        // As in scikit-learn: missing values go to a side that is drawn, and new ones, where the fit had
        // none, with most samples.
        let missing_left = if members.iter().any(|&row| is_missing(row)) {
            drawn += 1;
            key.bits(drawn) & 1 == 0
        } else {
            members.len() < 2 * members.iter().filter(|&&row| is_below(row)).count()
        };
        nodes[node] =
            Node { feature: feature as u32, left: left as u32, threshold, bin: MISSING, missing_left };
        let (below, above): (Vec<usize>, Vec<usize>) =
            members.into_iter().partition(|&row| is_below(row) || missing_left && is_missing(row));
        for (child, members) in [(left, below), (left + 1, above)] {
            nodes.push(Node::leaf());
            values.push(0.0);
            stack.push((child, depth + 1, members));
        }
    }
    Tree { nodes, values, width: 1, column: 0 }
}

/// A feature in which rows differ, and a threshold between them. NaN differs from no number. `None` if all
/// rows are the same.
fn question(rows: ArrayView2<'_, f64>, members: &[usize], key: Key, drawn: &mut u64) -> Option<(usize, f64)> {
    if members.len() < 2 {
        return None;
    }
    let mut draw = || {
        *drawn += 1;
        key.bits(*drawn)
    };
    let mut order: Vec<usize> = (0..rows.ncols()).collect();
    for at in 0..order.len() {
        let left = (order.len() - at) as u64;
        order.swap(at, at + below(draw(), left) as usize);
        let column = rows.index_axis(Axis(1), order[at]);
        let (low, high) = members.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &row| {
            (low.min(column[row]), high.max(column[row]))
        });
        if low < high {
            let share = Key::of_bits(draw()).uniform(0);
            // Halves first: the width of a range may overflow.
            let threshold = low + 2.0 * (share * (high / 2.0 - low / 2.0));
            return Some((order[at], if threshold < high { threshold } else { low }));
        }
    }
    None
}

/// The average length of the way to a leaf in a tree of random splits of so many samples.
fn average_path(samples: f64) -> f64 {
    if samples <= 1.0 {
        0.0
    } else if samples <= 2.0 {
        1.0
    } else {
        2.0 * ((samples - 1.0).ln() + EULER) - 2.0 * (samples - 1.0) / samples
    }
}

impl FittedIsolationForest {
    /// 1 for each of the samples (n, d), or -1 if it is an outlier, as an expression; (n,), int64.
    ///
    /// ```
    /// use tharsis_learn::ensemble::IsolationForest;
    /// use tharsis_numeric::{arange, array};
    /// let model = IsolationForest::new().fit(&arange(50).reshape(&[50, 1]), ..)?;
    /// assert_eq!(model.predict(&array([25.0, 500.0]).reshape(&[2, 1])).to_vec::<i64>()?, [1, -1]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        where_(&self.decision_function(x).less(0.0), -1, 1).astype(DType::I64)
    }

    /// The scores less `offset`, as an expression; (n,). Outliers are below zero.
    ///
    /// ```
    /// use tharsis_learn::ensemble::IsolationForest;
    /// use tharsis_numeric::arange;
    /// let x = arange(50).reshape(&[50, 1]);
    /// let model = IsolationForest::new().fit(&x, ..)?;
    /// let apart = model.decision_function(&x) - model.score_samples(&x);
    /// assert!(apart.isclose(0.5, 0.0, 1e-12).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`predict`](FittedIsolationForest::predict).
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        self.score_samples(x) - self.offset
    }

    /// A number from -1, an outlier, to 0 for each of the samples (n, d), as an expression; (n,).
    ///
    /// ```
    /// use tharsis_learn::ensemble::IsolationForest;
    /// use tharsis_numeric::{arange, array};
    /// let model = IsolationForest::new().fit(&arange(50).reshape(&[50, 1]), ..)?;
    /// let scores = model.score_samples(&array([25.0, 500.0]).reshape(&[2, 1])).to_vec::<f64>()?;
    /// assert!(scores[1] < scores[0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`predict`](FittedIsolationForest::predict).
    #[track_caller]
    pub fn score_samples(&self, x: &Tensor) -> Tensor {
        scores(&self.trees, self.max_samples, x).unwrap_or_else(Tensor::from)
    }
}

/// The negative power of two whose exponent is the average way of each sample, by that of all samples.
#[track_caller]
fn scores(trees: &Trees, samples: usize, x: &Tensor) -> Result<Tensor> {
    let ways = trees.sums(NAME, x)?.squeeze(Some(&[1]));
    let average = average_path(samples as f64);
    // All are alike where a tree has one sample.
    let share = if average == 0.0 { ways * 0.0 + 1.0 } else { ways / average };
    Ok((share * -std::f64::consts::LN_2).exp().negative())
}

impl Estimator for IsolationForest {
    type Fitted = FittedIsolationForest;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        true
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedIsolationForest> {
        self.check()?;
        if options.weights().is_some() {
            return Err(refused("IsolationForest does not support sample_weight."));
        }
        let training = Training::unsupervised(NAME, x, options)?;
        let max_samples = self.max_samples.0.unwrap_or(SAMPLES).min(training.rows);
        let trees = self.trees(&training, max_samples, options.chosen_executor().limits().memory_bytes)?;
        let scale = 1.0 / trees.len() as f64;
        let trees = Trees::new(trees, training.columns, (vec![0.0], scale), Values::Any);
        let offset = match self.contamination.0 {
            None => -0.5,
            Some(share) => {
                let scores = scores(&trees, max_samples, &training.x)?;
                let bound = scores.quantile(share, .., Method::Linear);
                training.engine.run(&[&bound])?.iter().map(|bound| bound.sum()).sum()
            }
        };
        Ok(FittedIsolationForest { max_samples, offset, trees })
    }
}

saved!(FittedIsolationForest, NAME, |model| {
    0 < model.max_samples && model.trees.width() == 1 && !model.trees.list().is_empty()
});

predicts!(FittedIsolationForest, Unsupervised, NAME);

impl fmt::Display for FittedIsolationForest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} of {} features", self.trees.features())?;
        show::line(f, "trees", &[self.trees.list().len() as f64])?;
        show::line(f, "max_samples", &[self.max_samples as f64])?;
        show::line(f, "offset", &[self.offset])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_distinct_and_equally_likely() {
        let mut counts = [0; 10];
        for seed in 0..10_000 {
            let chosen = distinct(Key::new(seed, 0), 4, 10);
            assert_eq!(chosen.len(), 4);
            chosen.iter().for_each(|&at| counts[at as usize] += 1);
        }
        assert!(counts.iter().all(|&count| (3800..4200).contains(&count)), "{counts:?}");
        assert_eq!(distinct(Key::new(1, 1), 3, 3).len(), 3);
    }

    #[test]
    fn ways_end_at_their_samples() {
        let rows = ndarray::arr2(&[[0.0, 5.0], [1.0, 5.0], [8.0, 5.0], [8.0, 5.0]]);
        let tree = isolated(rows.view(), Key::new(3, 3), 5);
        let ways: Vec<f64> = rows.outer_iter().map(|row| tree.values[tree.leaf_of(&row.to_vec())]).collect();
        // Two samples are the same: their way is that of a pair.
        assert_eq!(ways[2], ways[3]);
        assert!(ways.iter().all(|&way| (1.0..=3.0).contains(&way)), "{ways:?}");
        assert_eq!(tree.leaves(), 3);
    }

    #[test]
    fn missing_values_go_to_one_side_and_divide_no_others() {
        let rows = ndarray::arr2(&[[f64::NAN], [1.0], [f64::NAN], [4.0]]);
        let sides: Vec<bool> = (0..20)
            .map(|seed| {
                let tree = isolated(rows.view(), Key::new(seed, 0), 5);
                let of = |row: usize| tree.leaf_of(&rows.row(row).to_vec());
                assert!(of(0) == of(2) && of(1) != of(3), "{seed}");
                assert_eq!(tree.nodes[0].missing_left, of(0) == of(1), "{seed}");
                tree.nodes[0].missing_left
            })
            .collect();
        assert!(sides.contains(&true) && sides.contains(&false), "{sides:?}");
        let ends = ndarray::arr2(&[[f64::NEG_INFINITY], [1.0], [f64::INFINITY]]);
        assert_eq!(isolated(ends.view(), Key::new(0, 0), 5).leaves(), 3);
    }

    #[test]
    fn thresholds_part_values_at_the_ends_of_the_range() {
        for pair in [[f64::MIN, f64::MAX], [1.0, 1.0 + f64::EPSILON], [0.0, 5e-324]] {
            let rows = ndarray::arr2(&[[pair[0]], [pair[1]]]);
            let (_, threshold) = question(rows.view(), &[0, 1], Key::new(0, 0), &mut 0).unwrap();
            assert!(pair[0] <= threshold && threshold < pair[1], "{pair:?}: {threshold}");
        }
    }
}
