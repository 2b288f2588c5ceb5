//! Rows of all outputs of a task while it makes them.
//!
//! They are gathered until they take more than a share of the task's memory. Then those of the fullest output
//! go to the store as a block. At the end, an output with few rows is one object; one with more, or with
//! blocks, is a list of blocks.

use super::failure::from_engine;
use crate::object::{Block, Blocks, TaskOutput};
use arrow_array::RecordBatch;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tharsis_dataframe::{Error, OutputRows, Result};
use tharsis_remote::{Client, FailureKind, ObjectRef, current, put};

/// Bytes of a block, if its output has as many.
const BLOCK_BYTES: usize = 16 << 20;
/// Part of a task's memory that rows may take before some go to the store, as a divisor.
const MEMORY_SHARE: u64 = 4;

/// The bounds of the rows of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Bytes of all outputs that may be in memory.
    gathered_bytes: usize,
    /// Bytes of an output that is one object.
    single_bytes: usize,
}

impl Bounds {
    /// The bounds of a task that has this memory, and outputs of this size that are one object.
    pub(super) fn new(memory_bytes: u64, single_bytes: u64) -> Bounds {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Bounds { gathered_bytes: bytes(memory_bytes / MEMORY_SHARE), single_bytes: bytes(single_bytes) }
    }

    /// Each output is one object.
    pub(super) fn none() -> Bounds {
        Bounds { gathered_bytes: usize::MAX, single_bytes: usize::MAX }
    }
}

/// Bytes of an output that is one object, of a task with this memory: all of them that one reader has may
/// take a share of its memory, which is as large.
pub(super) fn single_bytes(memory_bytes: u64, makers: usize) -> u64 {
    let share = memory_bytes / MEMORY_SHARE / makers.max(1) as u64;
    share.clamp(SINGLE_BYTES_MIN, BLOCK_BYTES as u64)
}

/// Below this size a block costs more than it saves.
const SINGLE_BYTES_MIN: u64 = 128 << 10;

/// Rows of all outputs of a task.
pub(super) struct Gathered {
    client: Client,
    bounds: Bounds,
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    outputs: Vec<Output>,
    /// Bytes of all outputs in memory.
    bytes: usize,
}

/// Rows of an output: those of its blocks, then those in memory.
#[derive(Default)]
struct Output {
    blocks: Vec<Block>,
    batches: VecDeque<RecordBatch>,
    /// Bytes of the batches.
    bytes: usize,
    /// Rows and bytes of all, blocks included.
    size: (usize, usize),
}

/// An output of a task that has ended.
pub(super) struct Made {
    pub(super) output: TaskOutput,
    /// Rows and bytes.
    pub(super) size: (usize, usize),
}

/// The place of an output.
pub(super) struct Place {
    gathered: Arc<Gathered>,
    number: usize,
}

impl Gathered {
    /// No rows yet.
    ///
    /// # Errors
    /// There is no task.
    pub(super) fn new(bounds: Bounds) -> Result<Arc<Gathered>> {
        let client = current::current().map_err(from_engine)?;
        Ok(Arc::new(Gathered { client, bounds, rows: Mutex::default() }))
    }

    /// The place of an output.
    pub(super) fn place(self: &Arc<Self>, number: usize) -> Place {
        Place { gathered: Arc::clone(self), number }
    }

    fn push(&self, number: usize, batch: RecordBatch) -> Result<()> {
        let mut rows = self.lock();
        rows.push(number, batch);
        while self.bounds.gathered_bytes < rows.bytes {
            let Some(fullest) = rows.fullest() else { return Ok(()) };
            self.store_block(&mut rows, fullest)?;
        }
        Ok(())
    }

    /// The outputs, so many as the task has.
    ///
    /// # Errors
    /// The store has no room for a block.
    pub(super) fn end(&self, count: usize) -> Result<Vec<Made>> {
        let mut rows = self.lock();
        rows.outputs.resize_with(count, Output::default);
        for number in 0..count {
            let output = &rows.outputs[number];
            if output.blocks.is_empty() && output.bytes <= self.bounds.single_bytes {
                continue;
            }
            while !rows.outputs[number].batches.is_empty() {
                self.store_block(&mut rows, number)?;
            }
        }
        Ok(std::mem::take(&mut *rows).outputs.into_iter().map(Output::end).collect())
    }

    /// Puts the first rows of an output that are in memory.
    fn store_block(&self, rows: &mut Rows, number: usize) -> Result<()> {
        let (batches, bytes) = rows.take_first(number);
        let count = batches.iter().map(RecordBatch::num_rows).sum();
        // An operator may have moved the task to a thread of its own.
        let _binding = current::bind(self.client.clone());
        let object = put(&TaskOutput::of_rows(batches)).map_err(no_room)?;
        rows.outputs[number].blocks.push(Block { object, rows: count, bytes });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    fn push(&mut self, number: usize, batch: RecordBatch) {
        if self.outputs.len() <= number {
            self.outputs.resize_with(number + 1, Output::default);
        }
        let bytes = batch.get_array_memory_size();
        let output = &mut self.outputs[number];
        output.size = (output.size.0 + batch.num_rows(), output.size.1 + bytes);
        output.bytes += bytes;
        output.batches.push_back(batch);
        self.bytes += bytes;
    }

    /// The output with the most bytes in memory, if there are any.
    fn fullest(&self) -> Option<usize> {
        let filled = self.outputs.iter().enumerate().filter(|(_, output)| !output.batches.is_empty());
        filled.max_by_key(|(_, output)| output.bytes).map(|(number, _)| number)
    }

    /// Takes the first batches of an output, as many as make a block; gives their bytes too.
    fn take_first(&mut self, number: usize) -> (Vec<RecordBatch>, usize) {
        let output = &mut self.outputs[number];
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < BLOCK_BYTES
            && let Some(batch) = output.batches.pop_front()
        {
            bytes += batch.get_array_memory_size();
            taken.push(batch);
        }
        output.bytes -= bytes;
        self.bytes -= bytes;
        (taken, bytes)
    }
}

impl Output {
    fn end(self) -> Made {
        let output = if self.blocks.is_empty() {
            TaskOutput::of_rows(self.batches.into())
        } else {
            TaskOutput::Blocks(Blocks::new(self.blocks))
        };
        Made { output, size: self.size }
    }
}

impl OutputRows for Place {
    type Kept = ();

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.gathered.push(self.number, batch)
    }

    fn finish(self) -> Result<()> {
        Ok(())
    }
}

/// Smaller tasks may find room where there was none.
fn no_room(error: tharsis_remote::Error) -> Error {
    match error.failure().root().kind {
        FailureKind::StoreFull => Error::Memory(error.failure().to_string()),
        _ => from_engine(error),
    }
}

/// A mark of a run for its report: an object of this run alone.
///
/// # Errors
/// The task is over.
pub(super) fn mark() -> Result<ObjectRef<()>> {
    put(&()).map_err(from_engine)
}
