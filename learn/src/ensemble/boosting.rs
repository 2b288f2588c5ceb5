//! Boosting: each tree is a Newton step along the slopes of the loss that those before have left.

use crate::checks::{Training, refused};
use crate::dense::tensor;
use crate::params::{Fraction, Parameter, Setting};
use crate::states::{lost, vector};
use crate::tree::criterion::{Criterion, Rules};
use crate::tree::data::{Binned, Binning, Sizes};
use crate::tree::grow::{Samples, grow};
use crate::tree::histogram::{AddTrees, LOSS_SUMS, SumLosses, Sums, new_number};
use crate::tree::loss::Loss;
use crate::tree::nodes::Tree;
use crate::tree::parameters::Ranges;
use crate::tree::partial::{Grown, Growth};
use crate::tree::predict::{Trees, Values};
use crate::tree::table::Table;
use crate::tree::targets::Targets;
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tharsis_graph::Executor;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, DType, Result, Tensor, where_, zeros};

/// Samples beyond which scikit-learn's `early_stopping="auto"` stops early.
const EARLY_ROWS: usize = 10_000;
/// Samples up to which the number of those for validation is exact; few in debug builds, so that tests have
/// both ways.
const EXACT_ROWS: usize = if cfg!(debug_assertions) { 1 << 14 } else { 1 << 20 };
/// A share of a class is at least this, and that of all others too.
const SHARE_MIN: f64 = 10.0 * f64::EPSILON;

/// scikit-learn's `early_stopping`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStopping {
    /// For more than 10 000 samples.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl Parameter for EarlyStopping {
    fn words(_: usize) -> String {
        "a str among {'auto'} or an instance of 'bool'".to_owned()
    }

    fn of(value: &Setting) -> Option<EarlyStopping> {
        match value {
            Setting::Text(text) if text == "auto" => Some(EarlyStopping::Auto),
            Setting::Boolean(is_on) => Some((*is_on).into()),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        match self {
            EarlyStopping::Auto => "auto".into(),
            EarlyStopping::On => true.into(),
            EarlyStopping::Off => false.into(),
        }
    }
}

impl From<bool> for EarlyStopping {
    fn from(is_on: bool) -> EarlyStopping {
        if is_on { EarlyStopping::On } else { EarlyStopping::Off }
    }
}

/// The parameters of boosting, with scikit-learn's defaults.
#[derive(Clone, Debug)]
pub(super) struct Boosting {
    pub(super) learning_rate: f64,
    pub(super) max_iter: usize,
    pub(super) max_leaf_nodes: Option<usize>,
    pub(super) max_depth: Option<usize>,
    pub(super) min_samples_leaf: usize,
    pub(super) l2_regularization: f64,
    pub(super) max_bins: usize,
    pub(super) early_stopping: EarlyStopping,
    pub(super) validation_fraction: Option<Fraction>,
    pub(super) n_iter_no_change: usize,
    pub(super) tol: f64,
    pub(super) random_state: u64,
    pub(super) sizes: Sizes,
}

impl Default for Boosting {
    fn default() -> Boosting {
        Boosting {
            learning_rate: 0.1,
            max_iter: 100,
            max_leaf_nodes: Some(31),
            max_depth: None,
            min_samples_leaf: 20,
            l2_regularization: 0.0,
            max_bins: 255,
            early_stopping: EarlyStopping::Auto,
            validation_fraction: Some(Fraction(0.1)),
            n_iter_no_change: 10,
            tol: 1e-7,
            random_state: 0,
            sizes: Sizes::default(),
        }
    }
}

/// Trees of boosting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Boosted {
    pub(super) trees: Trees,
    pub(super) n_iter: usize,
    pub(super) train_score: Array1<f64>,
    pub(super) validation_score: Array1<f64>,
}

/// The samples of a fit.
pub(super) struct Problem<'a> {
    pub(super) training: &'a Training,
    pub(super) targets: &'a Targets,
    pub(super) loss: Loss,
    /// Scores of a sample.
    pub(super) scores: usize,
    pub(super) executor: Arc<dyn Executor>,
}

impl Boosting {
    #[track_caller]
    pub(super) fn check(&self, estimator: &'static str) -> Result<()> {
        let ranges = Ranges { estimator };
        let is_rate = 0.0 < self.learning_rate && self.learning_rate.is_finite();
        ranges.check("learning_rate", is_rate, "a float in the range (0.0, inf)", &self.learning_rate)?;
        ranges.int("max_iter", self.max_iter, 1)?;
        ranges.optional_int("max_leaf_nodes", self.max_leaf_nodes, 2)?;
        ranges.optional_int("max_depth", self.max_depth, 1)?;
        ranges.int("min_samples_leaf", self.min_samples_leaf, 1)?;
        ranges.not_negative("l2_regularization", self.l2_regularization)?;
        let is_bins = (2..=255).contains(&self.max_bins);
        ranges.check("max_bins", is_bins, "an int in the range [2, 255]", &self.max_bins)?;
        if let Some(Fraction(share)) = self.validation_fraction {
            let is_share = 0.0 < share && share < 1.0;
            ranges.check(
                "validation_fraction",
                is_share,
                "a float in the range (0.0, 1.0) or None",
                &share,
            )?;
        }
        ranges.int("n_iter_no_change", self.n_iter_no_change, 1)?;
        ranges.not_negative("tol", self.tol)
    }

    /// Adds trees until there are enough, or until they do not help any more.
    #[track_caller]
    pub(super) fn fit(&self, problem: &Problem<'_>) -> Result<Boosted> {
        let &Problem { training, targets, loss, scores: width, .. } = problem;
        let stops_early = match self.early_stopping {
            EarlyStopping::Auto => EARLY_ROWS < training.rows,
            EarlyStopping::On => true,
            EarlyStopping::Off => false,
        };
        let weight = match self.validation_fraction.filter(|_| stops_early) {
            Some(Fraction(share)) => Some(self.without_validation(training, targets, share)?),
            None => targets.weight.clone(),
        };
        let base = base(problem, weight.as_ref())?;
        let binned = self.binned(problem, weight.as_ref())?;
        let chunks = Chunks::PerAxis(vec![binned.pass_rows, width]);
        let first = (zeros(&[training.rows, width]) + tensor(&base)).rechunk(chunks);
        let y = binned.stored(&targets.y)?;
        let weight = weight.map(|weight| binned.stored(&weight)).transpose()?;
        let in_memory = InMemory::of(&binned, &y, weight.as_ref())?;
        let steps =
            Steps { boosting: self, loss, width, binned: &binned, y: &y, weight: weight.as_ref(), in_memory };
        let mut scores = binned.stored(&first)?;
        let mut losses = Losses::default();
        if stops_early {
            steps.add_losses(&scores, &mut losses)?;
        }
        let mut trees = Vec::new();
        for _ in 0..self.max_iter {
            let step = steps.step(&scores)?;
            scores = steps.moved(&scores, &step)?;
            trees.extend(step);
            if stops_early {
                steps.add_losses(&scores, &mut losses)?;
                if self.is_enough(losses.decisive()) {
                    break;
                }
            }
        }
        let n_iter = trees.len() / width;
        let trees = Trees::new(trees, binned.columns, (base.to_vec(), 1.0), Values::Any);
        let Losses { training, validation } = losses;
        Ok(Boosted { trees, n_iter, train_score: training.into(), validation_score: validation.into() })
    }

    #[track_caller]
    fn binned(&self, problem: &Problem<'_>, weight: Option<&Tensor>) -> Result<Binned> {
        let binning =
            Binning { bins_max: self.max_bins, seed: self.random_state, is_finite: false, sizes: self.sizes };
        Binned::of(problem.training, weight, problem.executor.clone(), binning)
    }

    fn criterion(&self) -> Criterion {
        Criterion::Newton { l2_regularization: self.l2_regularization }
    }

    fn growth(&self) -> Growth {
        let samples_min = self.min_samples_leaf as f64;
        let rules =
            Rules { criterion: self.criterion(), samples_min, is_random: false, is_within_node: false };
        Growth {
            rules,
            max_leaf_nodes: self.max_leaf_nodes,
            max_depth: self.max_depth,
            samples_split_min: 0.0,
            decrease_min: 0.0,
            features: usize::MAX,
            subtracts: true,
        }
    }

    /// The tree of a score. A root that is not split changes nothing, as in scikit-learn.
    fn tree(&self, score: usize, grown: &Grown) -> Tree {
        let is_split = 1 < grown.nodes.len();
        let value = |sums: &[f64]| self.criterion().newton(sums) * self.learning_rate;
        grown.tree(score, 1, |sums| vec![if is_split { value(sums) } else { 0.0 }])
    }

    /// Weights that are negative for samples that validate the others.
    #[track_caller]
    fn without_validation(&self, training: &Training, targets: &Targets, share: f64) -> Result<Tensor> {
        let draws = default_rng(self.random_state).random(&[training.rows]);
        let mask = if training.rows <= EXACT_ROWS {
            let wanted = (share * training.rows as f64).ceil() as usize;
            if training.rows <= wanted {
                return Err(refused(format!(
                    "With n_samples={}, validation_fraction={share} the resulting train set will be empty. \
                     Adjust any of the aforementioned parameters.",
                    training.rows
                )));
            }
            let mut sorted = vector(training.engine.run(&[&draws])?.pop().ok_or_else(lost)?)?.to_vec();
            sorted.sort_by(f64::total_cmp);
            draws.less(sorted[wanted])
        } else {
            draws.less(share)
        };
        Ok(match &targets.weight {
            Some(weight) => where_(&mask, weight.negative(), weight),
            None => where_(&mask, -1.0, 1.0),
        })
    }

    /// Whether the last scores are no better than the one before them.
    fn is_enough(&self, scores: &[f64]) -> bool {
        let Some(reference) = scores.len().checked_sub(self.n_iter_no_change + 1) else { return false };
        scores[reference + 1..].iter().all(|&score| score <= scores[reference] + self.tol)
    }
}

/// The samples in the memory of this process.
struct InMemory<'a> {
    codes: &'a [u8],
    y: Vec<f64>,
    weights: Option<Vec<f64>>,
}

impl InMemory<'_> {
    /// The samples, if their bins are in memory.
    #[track_caller]
    fn of<'a>(binned: &'a Binned, y: &Tensor, weight: Option<&Tensor>) -> Result<Option<InMemory<'a>>> {
        let Some(codes) = &binned.table_codes else { return Ok(None) };
        let weights = weight.map(|weight| binned.numbers(weight)).transpose()?;
        Ok(Some(InMemory { codes, y: binned.numbers(y)?, weights }))
    }

    /// The samples with the slopes of the loss at these scores.
    fn table(&self, binned: &Binned, loss: Loss, scores: &[f64], width: usize) -> Table<'_> {
        Table {
            codes: self.codes,
            columns: binned.columns,
            targets: &self.y,
            weights: self.weights.as_deref(),
            sums: Sums::Slopes(loss),
            slopes: loss.all_slopes(&self.y, scores, width),
            scores: width,
            bootstrap: None,
            numbers: None,
            pass_rows: binned.pass_rows,
        }
    }
}

/// The scores of a model without trees.
#[track_caller]
fn base(problem: &Problem<'_>, weight: Option<&Tensor>) -> Result<Array1<f64>> {
    let Problem { training, targets, loss, scores, .. } = problem;
    let classes = if *loss == Loss::Logistic { 2 } else { *scores };
    let weight = weight.map(|weight| weight.maximum(0.0));
    let (sums, all) = match loss {
        Loss::Logistic | Loss::Softmax => {
            let counts = targets.y.astype(DType::I64).bincount(weight.as_ref(), classes);
            let counts = vector(training.engine.run(&[&counts])?.pop().ok_or_else(lost)?)?;
            let all = counts.sum();
            (counts, all)
        }
        _ => match &weight {
            None => (Array1::from_elem(1, targets.mean * targets.all), targets.all),
            Some(weight) => {
                let sums = training.engine.run(&[&(&targets.y * weight).sum(..), &weight.sum(..)])?;
                (Array1::from_elem(1, sums[0].sum()), sums[1].sum())
            }
        },
    };
    if all == 0.0 {
        return Err(refused("Sample weights must contain at least one non-zero number."));
    }
    let means = sums / all;
    Ok(match loss {
        Loss::Squared => means,
        // Those that are trained with may all be zero.
        Loss::Poisson | Loss::Gamma => means.mapv(|mean| mean.max(SHARE_MIN).ln()),
        Loss::Logistic => {
            let share = means[1].clamp(SHARE_MIN, 1.0 - SHARE_MIN);
            Array1::from_elem(1, (share / (1.0 - share)).ln())
        }
        Loss::Softmax => {
            let logs = means.mapv(|share| share.clamp(SHARE_MIN, 1.0 - SHARE_MIN).ln());
            let mean = logs.mean().unwrap_or(0.0);
            logs - mean
        }
    })
}

/// The steps of a fit.
struct Steps<'a> {
    boosting: &'a Boosting,
    loss: Loss,
    /// Scores of a sample.
    width: usize,
    binned: &'a Binned,
    y: &'a Tensor,
    weight: Option<&'a Tensor>,
    in_memory: Option<InMemory<'a>>,
}

impl Steps<'_> {
    /// The next trees, one for each score of a sample.
    #[track_caller]
    fn step(&self, scores: &Tensor) -> Result<Vec<Tree>> {
        let &Steps { boosting, loss, width, binned, .. } = self;
        let table = match &self.in_memory {
            Some(samples) => Some(samples.table(binned, loss, &binned.numbers(scores)?, width)),
            None => None,
        };
        let samples = Samples {
            binned,
            inputs: [self.y, scores].into_iter().chain(self.weight).collect(),
            is_weighted: self.weight.is_some(),
            sums: Sums::Slopes(loss),
            scores: width,
            bootstrap: None,
            table,
        };
        let numbers: Vec<usize> = (0..width).collect();
        let grown = grow(&samples, &boosting.growth(), boosting.random_state, &numbers)?;
        Ok(grown.iter().enumerate().map(|(score, grown)| boosting.tree(score, grown)).collect())
    }

    /// The scores after a step.
    #[track_caller]
    fn moved(&self, scores: &Tensor, step: &[Tree]) -> Result<Tensor> {
        let function = AddTrees {
            trees: step.iter().map(|tree| (tree.nodes.clone(), tree.values.clone())).collect(),
            columns: self.binned.columns,
            rows: self.binned.pass_rows,
            number: new_number(),
        };
        self.binned.stored(&self.binned.map(Arc::new(function), &[scores], self.width))
    }

    /// Adds the losses at these scores.
    #[track_caller]
    fn add_losses(&self, scores: &Tensor, losses: &mut Losses) -> Result<()> {
        let function = SumLosses {
            loss: self.loss,
            scores: self.width,
            is_weighted: self.weight.is_some(),
            rows: self.binned.pass_rows,
        };
        let inputs: Vec<&Tensor> = [self.y, scores].into_iter().chain(self.weight).collect();
        let state = self.binned.state(Arc::new(function), &inputs, LOSS_SUMS)?;
        for (sums, losses) in state.chunks_exact(2).zip([&mut losses.training, &mut losses.validation]) {
            if sums[0] != 0.0 {
                losses.push(-sums[1] / sums[0]);
            }
        }
        Ok(())
    }
}

/// Scores of all steps, the larger the better: of the samples that are trained with, and of the others.
#[derive(Default)]
struct Losses {
    training: Vec<f64>,
    validation: Vec<f64>,
}

impl Losses {
    /// The scores by which to stop: those of other samples, if there are any.
    fn decisive(&self) -> &[f64] {
        if self.validation.is_empty() { &self.training } else { &self.validation }
    }
}

/// The setters of the parameters of boosting.
macro_rules! boosting_parameters {
    ($name:ident, [$($further:tt)*]) => {
        crate::params::parameters!(
            $name,
            stringify!($name),
            [
                $($further)*
                "learning_rate" => boosting.learning_rate,
                "max_iter" => boosting.max_iter >= 1,
                "max_leaf_nodes" => boosting.max_leaf_nodes >= 2,
                "max_depth" => boosting.max_depth >= 1,
                "min_samples_leaf" => boosting.min_samples_leaf >= 1,
                "l2_regularization" => boosting.l2_regularization,
                "max_bins" => boosting.max_bins >= 2,
                "early_stopping" => boosting.early_stopping,
                "validation_fraction" => boosting.validation_fraction,
                "n_iter_no_change" => boosting.n_iter_no_change >= 1,
                "tol" => boosting.tol,
                "random_state" => boosting.random_state
            ]
        );

        impl $name {
            /// scikit-learn's `learning_rate`: the part of each step that is taken, above 0; 0.1 by default.
            pub fn learning_rate(self, learning_rate: f64) -> $name {
                self.with(|boosting| boosting.learning_rate = learning_rate)
            }

            /// scikit-learn's `max_iter`: the number of steps, each a tree for each score; 100 by default.
            pub fn max_iter(self, max_iter: usize) -> $name {
                self.with(|boosting| boosting.max_iter = max_iter)
            }

            /// scikit-learn's `max_leaf_nodes`: the number of leaves of a tree, at least 2, or `None` for no
            /// limit; 31 by default.
            pub fn max_leaf_nodes(self, max_leaf_nodes: impl Into<Option<usize>>) -> $name {
                self.with(|boosting| boosting.max_leaf_nodes = max_leaf_nodes.into())
            }

            /// scikit-learn's `max_depth`: the number of splits on the way to a leaf, or `None` for no limit,
            /// the default.
            pub fn max_depth(self, max_depth: impl Into<Option<usize>>) -> $name {
                self.with(|boosting| boosting.max_depth = max_depth.into())
            }

            /// scikit-learn's `min_samples_leaf`: the least number of samples of a leaf; 20 by default.
            pub fn min_samples_leaf(self, min_samples_leaf: usize) -> $name {
                self.with(|boosting| boosting.min_samples_leaf = min_samples_leaf)
            }

            /// scikit-learn's `l2_regularization`: the weight of the squares of the values of leaves; 0 by
            /// default.
            pub fn l2_regularization(self, l2_regularization: f64) -> $name {
                self.with(|boosting| boosting.l2_regularization = l2_regularization)
            }

            /// scikit-learn's `max_bins`: the number of bins of a feature without that of missing values,
            /// from 2 to 255; 255 by default.
            pub fn max_bins(self, max_bins: usize) -> $name {
                self.with(|boosting| boosting.max_bins = max_bins)
            }

            /// scikit-learn's `early_stopping`: whether to stop when the loss of samples that are left out
            /// does not get smaller; by default for more than 10 000 samples.
            pub fn early_stopping(self, early_stopping: impl Into<EarlyStopping>) -> $name {
                self.with(|boosting| boosting.early_stopping = early_stopping.into())
            }

            /// scikit-learn's `validation_fraction`: the part of the samples that is left out to stop early;
            /// 0.1 by default. With `None` the loss of all samples tells. Classes are not stratified.
            pub fn validation_fraction(self, validation_fraction: impl Into<Option<f64>>) -> $name {
                self.with(|boosting| boosting.validation_fraction = validation_fraction.into().map($crate::params::Fraction))
            }

            /// scikit-learn's `n_iter_no_change`: the number of last steps that must not have helped; 10 by
            /// default.
            pub fn n_iter_no_change(self, n_iter_no_change: usize) -> $name {
                self.with(|boosting| boosting.n_iter_no_change = n_iter_no_change)
            }

            /// scikit-learn's `tol`: a loss that is smaller by no more than this is not better; 1e-7 by
            /// default.
            pub fn tol(self, tol: f64) -> $name {
                self.with(|boosting| boosting.tol = tol)
            }

            /// scikit-learn's `random_state`: the seed of the draws of samples that are left out and of which
            /// bins are made; the numbers are not scikit-learn's.
            pub fn random_state(self, random_state: u64) -> $name {
                self.with(|boosting| boosting.random_state = random_state)
            }

            fn with(mut self, change: impl FnOnce(&mut Boosting)) -> $name {
                change(&mut self.boosting);
                self
            }
        }
    };
}
pub(super) use boosting_parameters;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FitOptions;
    use tharsis_numeric::LocalExecutor;

    /// The scores of some samples by models of three classes and of numbers, as bits.
    fn bits(boosting: &Boosting, rows: usize, threads: usize, memory_bytes: u64) -> Vec<u64> {
        let generator = default_rng(7);
        let y = generator.integers(0, 3, &[rows]).execute().unwrap();
        let x = (generator.normal(0.0, 1.0, &[rows, 5]) + y.expand_dims(1)).execute().unwrap();
        let executor: Arc<dyn Executor> = Arc::new(LocalExecutor::sized(threads, memory_bytes));
        let weight = generator.random(&[rows]).execute().unwrap();
        let options = FitOptions::new().sample_weight(&weight).executor(executor.clone());
        let training = Training::supervised("test", &x, Some(&y), &options).unwrap();
        let (_, targets) = Targets::classes(&training).unwrap();
        let fit = |loss, scores| {
            let executor = executor.clone();
            let problem = Problem { training: &training, targets: &targets, loss, scores, executor };
            boosting.fit(&problem).unwrap().trees.sums("test", &x).unwrap().fetch::<f64>().unwrap()
        };
        fit(Loss::Softmax, 3).iter().chain(&fit(Loss::Squared, 1)).map(|score| score.to_bits()).collect()
    }

    /// Passes over pieces of few rows, and so many bytes in memory.
    fn sizes(table_bytes_max: u64) -> Sizes {
        Sizes { table_bytes_max, pass_rows_min: 40, ..Sizes::default() }
    }

    #[test]
    fn a_table_makes_the_trees_of_passes() {
        let stops = [
            (EarlyStopping::On, Some(9), u64::MAX),
            (EarlyStopping::Off, Some(9), 0),
            (EarlyStopping::Off, None, 0),
        ];
        for (early_stopping, max_leaf_nodes, kept_bytes_max) in stops {
            let boosting =
                Boosting { max_iter: 2, min_samples_leaf: 4, early_stopping, ..Boosting::default() };
            let fit = |table_bytes_max: u64| {
                let sizes = Sizes { kept_bytes_max, ..sizes(table_bytes_max) };
                bits(&Boosting { sizes, max_leaf_nodes, ..boosting.clone() }, 600, 3, 1 << 28)
            };
            let table = fit(u64::MAX);
            // Nodes of one or two dozen rows are grown in memory where leaves have no limit, or none.
            for table_bytes_max in [2_000, 0] {
                assert!(table == fit(table_bytes_max), "{boosting:?}, {table_bytes_max} bytes");
            }
        }
    }

    #[test]
    fn trees_of_passes_do_not_depend_on_threads_and_memory() {
        let passes = Boosting { max_iter: 2, sizes: sizes(0), ..Boosting::default() };
        let one = bits(&passes, 3_000, 1, 1 << 28);
        assert!(one == bits(&passes, 3_000, 4, 1 << 28), "threads");
        assert!(one == bits(&passes, 3_000, 2, 20 << 20), "memory");
    }

    #[test]
    fn trees_of_a_table_do_not_depend_on_threads() {
        let table = Boosting { max_iter: 1, sizes: sizes(u64::MAX), ..Boosting::default() };
        assert!(bits(&table, 60_000, 1, 1 << 28) == bits(&table, 60_000, 4, 1 << 28));
    }
}
