//! Samples in bins: one byte for each value, read by all passes.

use super::bins::{Bins, Coder, FeatureBins};
use crate::checks::{Nan, Training, refused};
use crate::engine::Engine;
use crate::passes::{RowFunction, RowPass};
use crate::states::{lost, matrix, vector};
use ndarray::Axis;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis_graph::{Executor, Foreign};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Index, Result, Tensor, arange, execute};

/// Sizes at which trees change the way in which they are made. What they tell of a tree is the samples of
/// which bins are made, and roundings; the bytes of tables tell nothing of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Bytes of bins up to which trees are made in the memory of this process, each by one thread, and those
    /// of the rows of nodes that are grown there.
    pub(crate) table_bytes_max: u64,
    /// Samples of which bins are made; of more, about as many are drawn.
    pub(crate) sample_rows: usize,
    /// Rows of a piece of a pass: few enough that there are some for each thread, and enough that its state
    /// is not more than what it reads.
    pub(crate) pass_rows_min: usize,
    /// Bytes of sums of nodes that are kept until those of their children are known.
    pub(crate) kept_bytes_max: u64,
}

impl Default for Sizes {
    /// Small ones in debug builds, so that the tests of few samples take all ways.
    fn default() -> Sizes {
        if cfg!(debug_assertions) {
            Sizes {
                table_bytes_max: 64 << 10,
                sample_rows: 10_000,
                pass_rows_min: 1 << 11,
                kept_bytes_max: 1 << 20,
            }
        } else {
            Sizes {
                table_bytes_max: 64 << 20,
                sample_rows: 200_000,
                pass_rows_min: 1 << 15,
                kept_bytes_max: 64 << 20,
            }
        }
    }
}

/// Bytes of the values that are looked at together; few in debug builds, as all sizes.
const SAMPLE_BYTES_MAX: u64 = if cfg!(debug_assertions) { 256 << 10 } else { 256 << 20 };
/// Elements of a chunk that is put in bins.
const CODED_ELEMENTS: usize = if cfg!(debug_assertions) { 1 << 13 } else { 1 << 20 };
/// Bytes of bins of a chunk that a pass reads, at most.
const READ_BYTES_MAX: usize = 1 << 24;
/// Chunks that a pass has at least, as far as they have enough rows.
const READS_MIN: usize = 64;
/// Bytes of the state of a pass.
const STATE_BYTES_MAX: u64 = 32 << 20;
/// Part of a thread's memory that is for a state: a task has several copies of it, and others wait to be
/// added.
const STATE_SHARE: u64 = 32;
/// Part of the memory that bins may take in this process; targets and lists of rows take as much again.
const TABLE_SHARE: u64 = 8;
/// Part of the memory that the sums of a node may take.
const NODE_SHARE: u64 = 2;
/// Part of the memory that values may take from which bins are made.
const SAMPLE_SHARE: u64 = 8;
/// Part of all that can be stored that bins may take; more are made again for each pass.
const STORED_SHARE: u64 = 3;

/// Samples in bins.
pub(crate) struct Binned {
    pub(crate) bins: Arc<Bins>,
    /// The bin of each value; (n, d), uint8.
    codes: Tensor,
    pub(crate) columns: usize,
    /// Rows of a chunk that a pass reads; a function of the size of the samples alone.
    pub(crate) pass_rows: usize,
    /// Bytes of a state that a pass may have.
    pub(crate) state_bytes: u64,
    /// Bytes that the sums of one node may have.
    pub(crate) node_bytes: u64,
    /// The bins in the memory of this process, if they are few.
    pub(crate) table_codes: Option<Vec<u8>>,
    /// Bytes of rows of nodes that may be in the memory of this process.
    pub(crate) table_bytes: u64,
    /// Bytes of sums of nodes that are kept until those of their children are known.
    pub(crate) kept_bytes_max: u64,
    /// Threads that may run at the same time.
    pub(crate) threads: usize,
    pub(crate) rows: usize,
    /// Passes that have been made.
    passes: AtomicUsize,
    engine: Engine,
    executor: Arc<dyn Executor>,
}

/// Some of the rows.
pub(crate) struct Rows {
    pub(crate) numbers: Vec<u64>,
    pub(crate) codes: Vec<u8>,
    pub(crate) inputs: Vec<Vec<f64>>,
}

/// The bins to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binning {
    /// At most so many for each feature, without that of missing values.
    pub(crate) bins_max: usize,
    /// The seed of the draw of samples.
    pub(crate) seed: u64,
    /// Whether infinite values are an error.
    pub(crate) is_finite: bool,
    pub(crate) sizes: Sizes,
}

impl Binned {
    /// Puts samples in bins: a pass that checks them, one or more that read some of them, and one that writes
    /// the bins. Samples whose weight is not positive have no part in the choice of the bins.
    ///
    /// # Errors
    /// `ValueError` for infinite values, where these are refused; errors of the passes.
    #[track_caller]
    pub(crate) fn of(
        training: &Training,
        weight: Option<&Tensor>,
        executor: Arc<dyn Executor>,
        binning: Binning,
    ) -> Result<Binned> {
        let (rows, columns) = (training.rows, training.columns);
        let x = &training.x;
        let [missing, infinite] =
            <[_; 2]>::try_from(training.engine.run(&[&x.isnan().any(0), &x.isinf().any(..)])?)
                .map_err(|_| lost())?;
        if binning.is_finite && infinite.sum() != 0.0 {
            training.explain_not_finite(Nan::Missing)?;
        }
        let mut features = sampled(training, weight, &*executor, binning)?;
        for (feature, missing) in features.iter_mut().zip(&vector(missing)?) {
            feature.has_missing = *missing != 0.0;
        }
        let bins = Arc::new(Bins { features });
        let pass_rows = rows
            .div_ceil(READS_MIN)
            .max(binning.sizes.pass_rows_min)
            .min((READ_BYTES_MAX / columns).max(1))
            .min(rows);
        let coded_rows = (CODED_ELEMENTS / columns).clamp(1, pass_rows);
        // Whole chunks that are written make a chunk that is read.
        let pass_rows = (pass_rows / coded_rows * coded_rows).max(1);
        let coder = RowPass {
            function: Arc::new(Coder { bins: bins.clone(), rows: coded_rows }),
            rows: coded_rows,
            whole: 0,
        };
        let codes = coder.map(&[x], columns, DType::U8);
        let limits = executor.limits();
        let share = limits.memory_bytes / (STATE_SHARE * limits.threads.max(1) as u64);
        let engine = training.engine.clone();
        let mut binned = Binned {
            bins,
            codes,
            columns,
            pass_rows,
            state_bytes: share.min(STATE_BYTES_MAX),
            node_bytes: limits.memory_bytes / NODE_SHARE,
            table_codes: None,
            table_bytes: binning.sizes.table_bytes_max.min(limits.memory_bytes / TABLE_SHARE),
            kept_bytes_max: binning.sizes.kept_bytes_max,
            threads: limits.threads.max(1),
            rows,
            passes: AtomicUsize::new(0),
            engine,
            executor,
        };
        let bytes = (rows as u64).saturating_mul(columns as u64);
        if bytes <= limits.stored_bytes / STORED_SHARE {
            binned.codes = binned.stored(&binned.codes)?;
        }
        if bytes <= binned.table_bytes {
            let codes = binned.codes.fetch_on::<u8>(&*binned.executor)?;
            binned.table_codes = Some(codes.into_iter().collect());
        }
        Ok(binned)
    }

    /// The values of an expression, kept in the store.
    ///
    /// # Errors
    /// Errors of the run.
    #[track_caller]
    pub(crate) fn stored(&self, expression: &Tensor) -> Result<Tensor> {
        self.engine.stored(expression)
    }

    /// The numbers of an expression.
    ///
    /// # Errors
    /// Errors of the run.
    #[track_caller]
    pub(crate) fn numbers(&self, expression: &Tensor) -> Result<Vec<f64>> {
        Ok(self.engine.run(&[expression])?.pop().ok_or_else(lost)?.into_iter().collect())
    }

    /// A state of all rows: sums of so many numbers, of the bins and other inputs.
    ///
    /// # Errors
    /// Errors of the pass.
    #[track_caller]
    pub(crate) fn state(
        &self,
        function: Arc<dyn Foreign>,
        inputs: &[&Tensor],
        elements: usize,
    ) -> Result<Vec<f64>> {
        self.passes.fetch_add(1, Ordering::Relaxed);
        let inputs: Vec<&Tensor> = std::iter::once(&self.codes).chain(inputs.iter().copied()).collect();
        let state = RowPass { function, rows: self.pass_rows, whole: 0 }.state(
            &inputs,
            elements,
            Arc::new(RowFunction::ADD),
        );
        let made = self.engine.run(&[&state])?.pop().ok_or_else(lost)?;
        Ok(vector(made)?.to_vec())
    }

    /// The rows for which a function gives another number than 0: their numbers, ascending, their bins, and
    /// their other inputs.
    ///
    /// # Errors
    /// Errors of the passes.
    #[track_caller]
    pub(crate) fn rows_of(&self, function: Arc<dyn Foreign>, inputs: &[&Tensor]) -> Result<Rows> {
        self.passes.fetch_add(1, Ordering::Relaxed);
        let all: Vec<&Tensor> = std::iter::once(&self.codes).chain(inputs.iter().copied()).collect();
        let members = RowPass { function, rows: self.pass_rows, whole: 0 }.map(&all, 1, DType::U8);
        let mask = self.stored(&members.squeeze(Some(&[1])).not_equal(0))?;
        let chosen = [self.codes.filter(&mask), arange(self.rows).filter(&mask)];
        let others: Vec<Tensor> = inputs.iter().map(|input| input.filter(&mask)).collect();
        let wanted: Vec<&Tensor> = chosen.iter().chain(&others).collect();
        let made = execute(&wanted, &*self.executor)?.0;
        let [codes, numbers, inputs @ ..] = &made[..] else { return Err(lost()) };
        let fetched = |input: &Tensor| Ok(input.fetch_on::<f64>(&*self.executor)?.into_iter().collect());
        Ok(Rows {
            numbers: numbers.fetch_on::<i64>(&*self.executor)?.into_iter().map(|row| row as u64).collect(),
            codes: codes.fetch_on::<u8>(&*self.executor)?.into_iter().collect(),
            inputs: inputs.iter().map(fetched).collect::<Result<_>>()?,
        })
    }

    /// Number of passes that have been made to grow trees.
    #[cfg(test)]
    pub(crate) fn passes(&self) -> usize {
        self.passes.load(Ordering::Relaxed)
    }

    /// So many float64 numbers for each row, of the bins and other inputs, as an expression.
    #[track_caller]
    pub(crate) fn map(&self, function: Arc<dyn Foreign>, inputs: &[&Tensor], columns: usize) -> Tensor {
        let inputs: Vec<&Tensor> = std::iter::once(&self.codes).chain(inputs.iter().copied()).collect();
        RowPass { function, rows: self.pass_rows, whole: 0 }.map(&inputs, columns, DType::F64)
    }
}

/// The bins of all features, of samples that are drawn if there are many.
#[track_caller]
fn sampled(
    training: &Training,
    weight: Option<&Tensor>,
    executor: &dyn Executor,
    binning: Binning,
) -> Result<Vec<FeatureBins>> {
    let (rows, columns) = (training.rows, training.columns);
    let mut chosen = weight.map(|weight| weight.greater(0.0));
    let sample_rows = binning.sizes.sample_rows;
    // A share of the rows that have a part, which may be few.
    let candidates = match &chosen {
        Some(has_part) if sample_rows < rows => training.engine.run(&[&has_part.sum(..)])?[0].sum() as usize,
        _ => rows,
    };
    let is_drawn = sample_rows < candidates;
    if is_drawn {
        let share = sample_rows as f64 / candidates as f64;
        let drawn = default_rng(binning.seed).random(&[rows]).less(share);
        chosen = Some(chosen.map_or_else(|| drawn.clone(), |chosen| chosen.logical_and(&drawn)));
    }
    let of_chosen =
        |tensor: &Tensor| chosen.as_ref().map_or_else(|| tensor.clone(), |mask| tensor.filter(mask));
    let bytes = SAMPLE_BYTES_MAX.min(executor.limits().memory_bytes / SAMPLE_SHARE);
    let row_bytes = (candidates.min(sample_rows) * size_of::<f64>()) as u64;
    let group = usize::try_from(bytes / row_bytes.max(1)).unwrap_or(columns).clamp(1, columns);
    let weights = match weight {
        Some(weight) => {
            let weights = training.engine.run(&[&of_chosen(weight)])?.pop().ok_or_else(lost)?;
            Some(vector(weights)?.to_vec())
        }
        None => None,
    };
    if weights.as_ref().is_some_and(Vec::is_empty) {
        return Err(refused("Sample weights must contain at least one non-zero number."));
    }
    let mut features = Vec::with_capacity(columns);
    for first in (0..columns).step_by(group) {
        let last = (first + group).min(columns);
        let part = training.x.get(&[Index::from(..), Index::from(first as i64..last as i64)]);
        let values = matrix(training.engine.run(&[&of_chosen(&part)])?.pop().ok_or_else(lost)?)?;
        for column in values.axis_iter(Axis(1)) {
            let bins = FeatureBins::of(&column.to_vec(), weights.as_deref(), binning.bins_max);
            // The bins of drawn samples have the values of others too.
            features.push(FeatureBins { is_exact: bins.is_exact && !is_drawn, ..bins });
        }
    }
    Ok(features)
}
