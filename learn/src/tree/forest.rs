//! Fits of trees that do not follow from each other: one, or a forest.

use super::criterion::{Criterion, Rules};
use super::data::{Binned, Binning, Sizes};
use super::grow::{Samples, grow};
use super::histogram::{Bootstrap, Sums, new_number};
use super::nodes::Tree;
use super::out_of_bag::OutOfBag;
use super::parameters::{MaxFeatures, Ranges};
use super::partial::{Grown, Growth};
use super::predict::{Trees, Values};
use super::table::Table;
use super::targets::Targets;
use crate::checks::{Training, refused};
use crate::params::Fraction;
use crate::show;
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use tharsis_graph::Executor;
use tharsis_numeric::{Chunks, Index, Result, Tensor, where_};

/// Bins of a feature.
const BINS_MAX: usize = 255;

/// Parameters of trees and forests.
#[derive(Clone, Debug)]
pub(crate) struct Forest {
    pub(crate) n_estimators: usize,
    pub(crate) max_depth: Option<usize>,
    pub(crate) min_samples_split: usize,
    pub(crate) min_samples_leaf: usize,
    pub(crate) max_features: MaxFeatures,
    pub(crate) max_leaf_nodes: Option<usize>,
    pub(crate) min_impurity_decrease: f64,
    pub(crate) bootstrap: bool,
    pub(crate) max_samples: Option<Fraction>,
    pub(crate) oob_score: bool,
    pub(crate) random_state: u64,
    /// Whether thresholds are drawn.
    pub(crate) is_random: bool,
    pub(crate) sizes: Sizes,
}

/// The trees of a model, and what the features have done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FittedForest {
    pub(crate) trees: Trees,
    pub(crate) importances: Array1<f64>,
    /// The score by samples that trees have not seen, if it was asked for.
    pub(crate) oob_score: Option<f64>,
}

impl Forest {
    /// One tree with all features and the best thresholds.
    pub(crate) fn one_tree() -> Forest {
        Forest {
            n_estimators: 1,
            max_depth: None,
            min_samples_split: 2,
            min_samples_leaf: 1,
            max_features: MaxFeatures::All,
            max_leaf_nodes: None,
            min_impurity_decrease: 0.0,
            bootstrap: false,
            max_samples: None,
            oob_score: false,
            random_state: 0,
            is_random: false,
            sizes: Sizes::default(),
        }
    }

    /// A hundred trees that look at so many features for each split.
    pub(crate) fn random_forest(max_features: MaxFeatures) -> Forest {
        Forest { n_estimators: 100, max_features, bootstrap: true, ..Forest::one_tree() }
    }

    /// A hundred trees of all samples, with drawn thresholds.
    pub(crate) fn extra_trees(max_features: MaxFeatures) -> Forest {
        Forest { bootstrap: false, is_random: true, ..Forest::random_forest(max_features) }
    }

    #[track_caller]
    pub(crate) fn check(&self, estimator: &'static str) -> Result<()> {
        let ranges = Ranges { estimator };
        ranges.int("n_estimators", self.n_estimators, 1)?;
        ranges.optional_int("max_depth", self.max_depth, 1)?;
        let range = "an int in the range [2, inf) or a float in the range (0.0, 1.0]";
        ranges.check("min_samples_split", 2 <= self.min_samples_split, range, &self.min_samples_split)?;
        let range = "an int in the range [1, inf) or a float in the range (0.0, 1.0)";
        ranges.check("min_samples_leaf", 1 <= self.min_samples_leaf, range, &self.min_samples_leaf)?;
        self.max_features.of(estimator, 1)?;
        ranges.optional_int("max_leaf_nodes", self.max_leaf_nodes, 2)?;
        ranges.not_negative("min_impurity_decrease", self.min_impurity_decrease)?;
        if self.oob_score && !self.bootstrap {
            return Err(refused("Out of bag estimation only available if bootstrap=True"));
        }
        if let Some(Fraction(share)) = self.max_samples {
            let is_share = 0.0 < share && share <= 1.0;
            ranges.check("max_samples", is_share, "None or a float in the range (0.0, 1.0]", &share)?;
            if !self.bootstrap {
                return Err(refused(
                    "`max_sample` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set \
                     `max_sample=None`.",
                ));
            }
        }
        Ok(())
    }

    /// Trees of classes, whose values are the shares of the classes.
    #[track_caller]
    pub(crate) fn classes(
        &self,
        training: &Training,
        executor: Arc<dyn Executor>,
        criterion: Criterion,
    ) -> Result<(Vec<i64>, FittedForest)> {
        let (classes, targets) = Targets::classes(training)?;
        let sums = Sums::Classes(classes.len());
        let binned = self.binned(training, &targets, executor)?;
        let grown = self.grow(training, &binned, &targets, (sums, criterion))?;
        let shares = |sums: &[f64]| {
            let all: f64 = sums[1..].iter().sum();
            sums[1..].iter().map(|class| class / all).collect()
        };
        let mut fitted = self.fitted(&grown, training.columns, classes.len(), shares);
        if self.oob_score {
            let (sums, is_left_out) = self.out_of_bag(&binned, &targets, &grown, &fitted);
            let is_right = sums.argmax(1).equal(&targets.y).logical_and(&is_left_out);
            let counts = training.engine.run(&[&is_right.sum(..), &is_left_out.sum(..)])?;
            fitted.oob_score = Some(counts[0].sum() / counts[1].sum());
        }
        Ok((classes, fitted))
    }

    /// Trees of numbers, whose values are means.
    #[track_caller]
    pub(crate) fn numbers(&self, training: &Training, executor: Arc<dyn Executor>) -> Result<FittedForest> {
        let mut targets = Targets::numbers(training)?;
        let y = targets.y.clone();
        // Squares around the mean lose no digits, and those of numbers of this size are in the range of
        // float64.
        let (mean, size) = (targets.mean, size_of_target(targets.farthest));
        targets.y = (&targets.y - mean) / size;
        let binned = self.binned(training, &targets, executor)?;
        // Impurities are squares of targets.
        let min_impurity_decrease = self.min_impurity_decrease / size / size;
        let scaled = Forest { min_impurity_decrease, ..self.clone() };
        let grown = scaled.grow(training, &binned, &targets, (Sums::Squares, Criterion::SquaredError))?;
        let mean_of = |sums: &[f64]| vec![mean + sums[2] / sums[1] * size];
        let mut fitted = self.fitted(&grown, training.columns, 1, mean_of);
        if self.oob_score {
            let (sums, is_left_out) = self.out_of_bag(&binned, &targets, &grown, &fitted);
            let of_left_out = |tensor: &Tensor| where_(&is_left_out, tensor, 0.0);
            let average = of_left_out(&y).sum(..) / is_left_out.sum(..);
            let left = of_left_out(&((&y - sums.squeeze(Some(&[1]))) / size).square()).sum(..);
            let spread = of_left_out(&((&y - average) / size).square()).sum(..);
            let sums = training.engine.run(&[&left, &spread])?;
            fitted.oob_score = Some(1.0 - sums[0].sum() / sums[1].sum());
        }
        Ok(fitted)
    }

    /// The average of the trees that do not have a sample, (n, width), and whether there are any, (n,).
    #[track_caller]
    fn out_of_bag(
        &self,
        binned: &Binned,
        targets: &Targets,
        grown: &[Grown],
        fitted: &FittedForest,
    ) -> (Tensor, Tensor) {
        let trees = fitted.trees.list().iter().cloned();
        let width = fitted.trees.width();
        let function = OutOfBag {
            trees: trees.zip(grown.iter().map(|grown| grown.draws)).collect(),
            bootstrap: self.draws(binned, targets),
            width,
            columns: binned.columns,
            rows: binned.pass_rows,
            number: new_number(),
        };
        let made = binned.map(Arc::new(function), &[], width + 1);
        let made = made.rechunk(Chunks::PerAxis(vec![binned.pass_rows, width + 1]));
        let columns = |range: std::ops::Range<usize>| {
            made.get(&[Index::from(..), Index::from(range.start as i64..range.end as i64)])
        };
        let count = columns(width..width + 1);
        let is_left_out = count.squeeze(Some(&[1])).greater(0.0);
        (columns(0..width) / count.maximum(1.0), is_left_out)
    }

    /// The draws of samples.
    fn draws(&self, binned: &Binned, targets: &Targets) -> Bootstrap {
        Bootstrap::of_share(self.max_samples.map_or(1.0, |part| part.0), binned.rows, targets.positive)
    }

    #[track_caller]
    fn binned(&self, training: &Training, targets: &Targets, executor: Arc<dyn Executor>) -> Result<Binned> {
        let binning =
            Binning { bins_max: BINS_MAX, seed: self.random_state, is_finite: true, sizes: self.sizes };
        Binned::of(training, targets.weight.as_ref(), executor, binning)
    }

    #[track_caller]
    fn grow(
        &self,
        training: &Training,
        binned: &Binned,
        targets: &Targets,
        (sums, criterion): (Sums, Criterion),
    ) -> Result<Vec<Grown>> {
        let y = binned.stored(&targets.y)?;
        let weight = targets.weight.as_ref().map(|weight| binned.stored(weight)).transpose()?;
        let bootstrap = self.bootstrap.then(|| self.draws(binned, targets));
        let (targets, weights) = match binned.table_codes {
            Some(_) => {
                let weights = weight.as_ref().map(|weight| binned.numbers(weight)).transpose()?;
                (binned.numbers(&y)?, weights)
            }
            None => (Vec::new(), None),
        };
        let table = binned.table_codes.as_ref().map(|codes| Table {
            codes,
            columns: binned.columns,
            targets: &targets,
            weights: weights.as_deref(),
            sums: sums.clone(),
            slopes: Vec::new(),
            scores: 1,
            bootstrap: bootstrap.clone(),
            numbers: None,
            pass_rows: binned.pass_rows,
        });
        let samples = Samples {
            binned,
            inputs: std::iter::once(&y).chain(&weight).collect(),
            is_weighted: weight.is_some(),
            sums,
            scores: 1,
            bootstrap,
            table,
        };
        let rules = Rules {
            criterion,
            samples_min: self.min_samples_leaf as f64,
            is_random: self.is_random,
            is_within_node: true,
        };
        let growth = Growth {
            rules,
            max_leaf_nodes: self.max_leaf_nodes,
            max_depth: self.max_depth,
            samples_split_min: self.min_samples_split as f64,
            decrease_min: self.min_impurity_decrease,
            features: self.max_features.of(training.estimator, training.columns)?,
            subtracts: false,
        };
        let numbers: Vec<usize> = (0..self.n_estimators).collect();
        grow(&samples, &growth, self.random_state, &numbers)
    }

    fn fitted(
        &self,
        grown: &[Grown],
        features: usize,
        width: usize,
        values: impl Fn(&[f64]) -> Vec<f64>,
    ) -> FittedForest {
        let trees: Vec<Tree> = grown.iter().map(|grown| grown.tree(0, width, &values)).collect();
        let scale = 1.0 / trees.len() as f64;
        FittedForest {
            trees: Trees::new(trees, features, (vec![0.0; width], scale), Values::NotInfinite),
            importances: importances(grown, features),
            oob_score: None,
        }
    }
}

/// A power of two by which targets are divided: 1 unless their squares may leave the range of float64.
fn size_of_target(farthest: f64) -> f64 {
    let is_usual = farthest == 0.0 || (1e-100..1e100).contains(&farthest);
    if is_usual { 1.0 } else { farthest.log2().floor().clamp(-1000.0, 1000.0).exp2() }
}

/// The part of the gain of a tree that each feature has, averaged over the trees with any.
fn importances(grown: &[Grown], features: usize) -> Array1<f64> {
    let mut sum = Array1::zeros(features);
    for grown in grown {
        let all: f64 = grown.gains.iter().sum();
        if 0.0 < all {
            sum += &(Array1::from(grown.gains.clone()) / all);
        }
    }
    let all = sum.sum();
    if 0.0 < all { sum / all } else { sum }
}

impl FittedForest {
    /// The lines that follow the name of the model.
    pub(crate) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trees = self.trees.list();
        show::line(f, "trees", &[trees.len() as f64])?;
        show::line(f, "leaves", &[trees.iter().map(Tree::leaves).sum::<usize>() as f64])?;
        show::line(f, "depth", &[trees.iter().map(Tree::depth).max().unwrap_or(0) as f64])?;
        show::line(f, "feature_importances", &self.importances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FitOptions;
    use tharsis_numeric::LocalExecutor;
    use tharsis_numeric::random::default_rng;

    /// Samples with missing values, classes and weights.
    fn samples(rows: usize) -> [Tensor; 3] {
        let generator = default_rng(7);
        let group = generator.integers(0, 3, &[rows]);
        let x = generator.normal(0.0, 1.0, &[rows, 5]) + group.expand_dims(1);
        let x = where_(&generator.random(&[rows, 5]).less(0.1), f64::NAN, &x);
        [x, group, generator.random(&[rows])].map(|tensor| tensor.execute().unwrap())
    }

    /// The trees of classes and of numbers, as bits.
    fn bits(forest: &Forest, [x, y, weight]: &[Tensor; 3], threads: usize, memory_bytes: u64) -> Vec<u64> {
        let executor: Arc<dyn Executor> = Arc::new(LocalExecutor::sized(threads, memory_bytes));
        let options = FitOptions::new().sample_weight(weight).executor(executor.clone());
        let training = Training::supervised("test", x, Some(y), &options).unwrap();
        let (_, classes) = forest.classes(&training, executor.clone(), Criterion::Gini).unwrap();
        let numbers = forest.numbers(&training, executor).unwrap();
        let trees = classes.trees.list().iter().chain(numbers.trees.list());
        let numbers = trees.flat_map(|tree| {
            let questions = tree.nodes.iter().map(|node| node.threshold + f64::from(node.feature));
            questions.chain(tree.values.iter().copied())
        });
        numbers.map(f64::to_bits).collect()
    }

    fn forests(sizes: Sizes) -> [Forest; 5] {
        let forest = Forest { sizes, max_depth: Some(6), ..Forest::one_tree() };
        let bagged =
            Forest { bootstrap: true, n_estimators: 3, max_features: MaxFeatures::Sqrt, ..forest.clone() };
        let random = Forest { bootstrap: false, is_random: true, ..bagged.clone() };
        let best = Forest { max_leaf_nodes: Some(20), max_depth: None, ..forest.clone() };
        let unlimited = Forest { max_depth: None, n_estimators: 2, ..bagged.clone() };
        [forest, bagged, random, best, unlimited]
    }

    /// Passes over pieces of few rows, and so many bytes in memory.
    fn sizes(table_bytes_max: u64) -> Sizes {
        Sizes { table_bytes_max, pass_rows_min: 40, ..Sizes::default() }
    }

    #[test]
    fn a_table_makes_the_trees_of_passes() {
        let samples = samples(1_500);
        for (at, table) in forests(sizes(u64::MAX)).iter().enumerate() {
            let expected = bits(table, &samples, 3, 1 << 28);
            // Nodes of up to a hundred rows are grown in memory, or none.
            for table_bytes_max in [7_000, 0] {
                let passes = &forests(sizes(table_bytes_max))[at];
                assert!(expected == bits(passes, &samples, 3, 1 << 28), "{passes:?}");
            }
        }
    }

    #[test]
    fn trees_of_passes_do_not_depend_on_threads_chunks_and_memory() {
        let samples = samples(3_000);
        let cut = |rows: usize, columns: usize| {
            let [x, y, weight] = &samples;
            let x = x.rechunk(Chunks::PerAxis(vec![rows, columns]));
            let one = Chunks::PerAxis(vec![rows]);
            [x, y.rechunk(one.clone()), weight.rechunk(one)].map(|tensor| tensor.execute().unwrap())
        };
        let cut = cut(701, 4);
        // Nodes of up to 144 rows are grown in memory.
        for forest in forests(sizes(10_000)) {
            let one = bits(&forest, &samples, 1, 1 << 28);
            assert!(one == bits(&forest, &samples, 4, 1 << 28), "threads, {forest:?}");
            assert!(one == bits(&forest, &cut, 2, 1 << 28), "chunks, {forest:?}");
            // The sums of a pass have room for a few nodes.
            assert!(one == bits(&forest, &samples, 2, 20 << 20), "memory, {forest:?}");
        }
    }

    #[test]
    fn bins_of_drawn_samples_are_not_those_of_all_values() {
        let x = (default_rng(2).integers(0, 5, &[1_000]).expand_dims(1)).execute().unwrap();
        let executor: Arc<dyn Executor> = Arc::new(LocalExecutor::sized(1, 1 << 28));
        let options = FitOptions::new().executor(executor.clone());
        let training = Training::supervised("test", &x, Some(&x.squeeze(Some(&[1]))), &options).unwrap();
        let targets = Targets::numbers(&training).unwrap();
        for (sample_rows, is_exact) in [(1_000, true), (999, false)] {
            let forest = Forest { sizes: Sizes { sample_rows, ..sizes(0) }, ..Forest::one_tree() };
            let bins = forest.binned(&training, &targets, executor.clone()).unwrap().bins;
            assert_eq!((bins.features[0].count(), bins.features[0].is_exact), (5, is_exact));
        }
    }

    #[test]
    fn trees_without_a_limit_take_few_passes() {
        let rows = 4_000;
        let [x, _, weight] = samples(rows);
        let noise = default_rng(3).random(&[rows]).execute().unwrap();
        let executor: Arc<dyn Executor> = Arc::new(LocalExecutor::sized(2, 20 << 20));
        let options = FitOptions::new().sample_weight(&weight).executor(executor.clone());
        let training = Training::supervised("test", &x, Some(&noise), &options).unwrap();
        let targets = Targets::numbers(&training).unwrap();
        let fit = |table_bytes_max: u64| {
            let forest = Forest { n_estimators: 2, sizes: sizes(table_bytes_max), ..Forest::one_tree() };
            let binned = forest.binned(&training, &targets, executor.clone()).unwrap();
            let kind = (Sums::Squares, Criterion::SquaredError);
            let grown = forest.grow(&training, &binned, &targets, kind).unwrap();
            (grown.iter().map(|grown| grown.nodes.len()).sum::<usize>(), binned.passes())
        };
        // Nodes of up to 217 rows are in memory, and so many rows at the same time: about 20 passes for a
        // tree, and eight before there are no others. A pass has room for eight nodes.
        let (nodes, passes) = fit(15_000);
        assert!(10_000 < nodes && (30..110).contains(&passes), "{nodes} nodes, {passes} passes");
    }
}
