//! Samples in bins: one byte for each value, read by all passes.

use super::bins::{Bins, Coder, FeatureBins};
use crate::checks::{Nan, Training, refused};
use crate::engine::Engine;
use crate::passes::RowPass;
use crate::states::{lost, matrix, vector};
use ndarray::Axis;
use std::sync::Arc;
use tharsis_graph::{Executor, Foreign};
use tharsis_numeric::errstate::{ErrState, Reaction, errstate};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Index, Result, Tensor, execute};

/// Samples of which bins are made; of more, about as many are drawn.
const SAMPLE_ROWS: usize = 200_000;
/// Bytes of the values that are looked at together.
const SAMPLE_BYTES_MAX: u64 = 256 << 20;
/// Elements of a chunk that is put in bins.
const CODED_ELEMENTS: usize = 1 << 20;
/// Bytes of bins of a chunk that a pass reads, at most.
const READ_BYTES_MAX: usize = 1 << 24;
/// Rows of a chunk that a pass reads: few enough that there are some for each thread, and enough that its
/// state is not more than what it reads.
const READ_ROWS_MIN: usize = 1 << 15;
/// Chunks that a pass has at least, as far as they have enough rows.
const READS_MIN: usize = 64;
/// Bytes of the state of a pass.
const STATE_BYTES_MAX: u64 = 32 << 20;
/// Part of a thread's memory that is for a state: a task has several copies of it, and others wait to be
/// added.
const STATE_SHARE: u64 = 32;
/// Part of the memory that bins may take in the process that fits; targets and lists of rows take as much
/// again.
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
    /// Threads that may run at the same time.
    pub(crate) threads: usize,
    engine: Engine,
    executor: Arc<dyn Executor>,
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
    /// Bytes of bins up to which trees are made in the memory of this process.
    pub(crate) table_bytes_max: u64,
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
        let pass_rows =
            rows.div_ceil(READS_MIN).max(READ_ROWS_MIN).min((READ_BYTES_MAX / columns).max(1)).min(rows);
        let coded_rows = (CODED_ELEMENTS / columns).clamp(1, pass_rows);
        // Whole chunks that are written make a chunk that is read.
        let pass_rows = (pass_rows / coded_rows * coded_rows).max(1);
        let coder =
            RowPass { function: Arc::new(Coder { bins: bins.clone(), rows: coded_rows }), rows: coded_rows };
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
            threads: limits.threads.max(1),
            engine,
            executor,
        };
        let bytes = (rows as u64).saturating_mul(columns as u64);
        if bytes <= limits.stored_bytes / STORED_SHARE {
            binned.codes = binned.stored(&binned.codes)?;
        }
        if bytes <= binning.table_bytes_max.min(limits.memory_bytes / TABLE_SHARE) {
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
        let ignored = Reaction::Ignore;
        let _quiet = errstate(ErrState { divide: ignored, invalid: ignored, over: ignored });
        execute(&[expression], &*self.executor)?.0.pop().ok_or_else(lost)
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
        let inputs: Vec<&Tensor> = std::iter::once(&self.codes).chain(inputs.iter().copied()).collect();
        let state = RowPass { function, rows: self.pass_rows }.state(&inputs, elements);
        let made = self.engine.run(&[&state])?.pop().ok_or_else(lost)?;
        Ok(vector(made)?.to_vec())
    }

    /// So many float64 numbers for each row, of the bins and other inputs, as an expression.
    #[track_caller]
    pub(crate) fn map(&self, function: Arc<dyn Foreign>, inputs: &[&Tensor], columns: usize) -> Tensor {
        let inputs: Vec<&Tensor> = std::iter::once(&self.codes).chain(inputs.iter().copied()).collect();
        RowPass { function, rows: self.pass_rows }.map(&inputs, columns, DType::F64)
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
    if SAMPLE_ROWS < rows {
        let share = SAMPLE_ROWS as f64 / rows as f64;
        let drawn = default_rng(binning.seed).random(&[rows]).less(share);
        chosen = Some(chosen.map_or_else(|| drawn.clone(), |chosen| chosen.logical_and(&drawn)));
    }
    let of_chosen =
        |tensor: &Tensor| chosen.as_ref().map_or_else(|| tensor.clone(), |mask| tensor.filter(mask));
    let bytes = SAMPLE_BYTES_MAX.min(executor.limits().memory_bytes / SAMPLE_SHARE);
    let row_bytes = (rows.min(SAMPLE_ROWS) * size_of::<f64>()) as u64;
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
            features.push(FeatureBins::of(&column.to_vec(), weights.as_deref(), binning.bins_max));
        }
    }
    Ok(features)
}
