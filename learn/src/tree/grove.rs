//! Fits of trees that do not follow from each other: one, or a forest.

use super::criterion::{Criterion, Rules};
use super::data::{Binned, Binning};
use super::grow::{Grown, Growth, Samples, grow};
use super::histogram::{Bootstrap, Sums};
use super::nodes::Tree;
use super::parameters::{MaxFeatures, Ranges};
use super::predict::{Trees, Values};
use super::targets::Targets;
use crate::checks::Training;
use crate::show;
use ndarray::Array1;
use std::fmt;
use std::sync::Arc;
use tharsis_graph::Executor;
use tharsis_numeric::Result;

/// Bins of a feature.
const BINS_MAX: usize = 255;

/// Parameters of trees and forests.
#[derive(Clone, Debug)]
pub(crate) struct Grove {
    pub(crate) n_estimators: usize,
    pub(crate) max_depth: Option<usize>,
    pub(crate) min_samples_split: usize,
    pub(crate) min_samples_leaf: usize,
    pub(crate) max_features: MaxFeatures,
    pub(crate) max_leaf_nodes: Option<usize>,
    pub(crate) min_impurity_decrease: f64,
    pub(crate) bootstrap: bool,
    pub(crate) max_samples: Option<f64>,
    pub(crate) random_state: u64,
    /// Whether thresholds are drawn.
    pub(crate) is_random: bool,
}

/// The trees of a model, and what the features have done.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    pub(crate) trees: Trees,
    pub(crate) importances: Array1<f64>,
}

impl Grove {
    /// One tree with all features and the best thresholds.
    pub(crate) fn tree() -> Grove {
        Grove {
            n_estimators: 1,
            max_depth: None,
            min_samples_split: 2,
            min_samples_leaf: 1,
            max_features: MaxFeatures::All,
            max_leaf_nodes: None,
            min_impurity_decrease: 0.0,
            bootstrap: false,
            max_samples: None,
            random_state: 0,
            is_random: false,
        }
    }

    /// A hundred trees that look at so many features for each split.
    pub(crate) fn forest(max_features: MaxFeatures) -> Grove {
        Grove { n_estimators: 100, max_features, bootstrap: true, ..Grove::tree() }
    }

    /// A hundred trees of all samples, with drawn thresholds.
    pub(crate) fn random(max_features: MaxFeatures) -> Grove {
        Grove { bootstrap: false, is_random: true, ..Grove::forest(max_features) }
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
        if let Some(share) = self.max_samples {
            let is_share = 0.0 < share && share <= 1.0;
            ranges.check("max_samples", is_share, "None or a float in the range (0.0, 1.0]", &share)?;
            if !self.bootstrap {
                return Err(crate::checks::refused(
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
    ) -> Result<(Vec<i64>, Planted)> {
        let (classes, targets) = Targets::classes(training)?;
        let sums = Sums::Classes(classes.len());
        let grown = self.grow(training, &targets, executor, (sums, criterion))?;
        let shares = |sums: &[f64]| {
            let all: f64 = sums[1..].iter().sum();
            sums[1..].iter().map(|class| class / all).collect()
        };
        let planted = self.planted(&grown, training.columns, classes.len(), shares);
        Ok((classes, planted))
    }

    /// Trees of numbers, whose values are means.
    #[track_caller]
    pub(crate) fn numbers(&self, training: &Training, executor: Arc<dyn Executor>) -> Result<Planted> {
        let mut targets = Targets::numbers(training)?;
        // Squares around the mean lose no digits.
        let mean = targets.mean;
        targets.y = &targets.y - mean;
        let grown = self.grow(training, &targets, executor, (Sums::Squares, Criterion::SquaredError))?;
        Ok(self.planted(&grown, training.columns, 1, |sums| vec![mean + sums[2] / sums[1]]))
    }

    #[track_caller]
    fn grow(
        &self,
        training: &Training,
        targets: &Targets,
        executor: Arc<dyn Executor>,
        (sums, criterion): (Sums, Criterion),
    ) -> Result<Vec<Grown>> {
        let binning = Binning { bins_max: BINS_MAX, seed: self.random_state, is_finite: true };
        let binned = Binned::of(training, targets.weight.as_ref(), executor, binning)?;
        let y = binned.stored(&targets.y)?;
        let weight = targets.weight.as_ref().map(|weight| binned.stored(weight)).transpose()?;
        let samples = Samples {
            binned: &binned,
            inputs: std::iter::once(&y).chain(&weight).collect(),
            is_weighted: weight.is_some(),
            sums,
            scores: 1,
            bootstrap: self.bootstrap.then(|| Bootstrap::of(self.max_samples.unwrap_or(1.0))),
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

    fn planted(
        &self,
        grown: &[Grown],
        features: usize,
        width: usize,
        values: impl Fn(&[f64]) -> Vec<f64>,
    ) -> Planted {
        let trees: Vec<Tree> = grown.iter().map(|grown| grown.tree(0, width, &values)).collect();
        let scale = 1.0 / trees.len() as f64;
        Planted {
            trees: Trees::new(trees, features, (vec![0.0; width], scale), Values::NotInfinite),
            importances: importances(grown, features),
        }
    }
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

impl Planted {
    /// The lines that follow the name of the model.
    pub(crate) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trees = self.trees.list();
        show::line(f, "trees", &[trees.len() as f64])?;
        show::line(f, "leaves", &[trees.iter().map(Tree::leaves).sum::<usize>() as f64])?;
        show::line(f, "depth", &[trees.iter().map(Tree::depth).max().unwrap_or(0) as f64])?;
        show::line(f, "feature_importances", &self.importances)
    }
}
