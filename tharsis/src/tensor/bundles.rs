//! Assignment of chunks to objects: small ones of a batch share bundles, each large one is an object.

use super::task::ChunkStorage;
use std::collections::HashMap;
use tharsis_graph::Job;
use tharsis_graph::batch::Batches;
use tharsis_graph::plan::{ChunkId, TaskId};
use tharsis_types::limits::INLINE_BYTES_MAX;

/// Chunks up to this many bytes are stored in bundles.
const BUNDLED_BYTES_MAX: u64 = 64 << 10;
/// A task that makes more bytes of small chunks stores them in several bundles, so that a reader of one of
/// them need not have all in memory.
const BUNDLE_BYTES_MAX: u64 = 128 << 10;
/// Smaller bundles would not lie in the store but with their owner.
const BUNDLE_BYTES_MIN: u64 = 2 * INLINE_BYTES_MAX as u64;
/// Batches per thread whose inputs fit into the memory when each reads a bundle of all tasks of a stage, as
/// batches of an exchange do.
const READERS_PER_THREAD: u64 = 4;

/// Kind of an object in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Small chunks of a batch.
    Bundle(usize, u32),
    Chunk(ChunkId),
}

/// The chunks of a job, and the bundles of its small ones.
pub(super) struct Bundles<'a> {
    job: &'a Job,
    batches: &'a Batches,
    /// Whether the chunks of each tensor are small.
    is_small: Vec<bool>,
    /// The bundles of small chunks, but for those in the first bundle of their batch.
    later: HashMap<ChunkId, u32>,
    /// Upper bound on one bundle of each task of a stage, together, unless these would be too small.
    share_bytes: u64,
}

impl<'a> Bundles<'a> {
    /// No batch has chunks yet. `memory_bytes` is for all that batches on `threads` use at a time.
    pub(super) fn new(job: &'a Job, batches: &'a Batches, memory_bytes: u64, threads: usize) -> Bundles<'a> {
        let tensors = &job.runnable.plan().tensors;
        Bundles {
            job,
            batches,
            is_small: tensors.iter().map(|spec| spec.chunk_bytes_max() <= BUNDLED_BYTES_MAX).collect(),
            later: HashMap::new(),
            share_bytes: memory_bytes / (READERS_PER_THREAD * threads as u64),
        }
    }

    /// The object that holds a chunk.
    pub(super) fn key(&self, id: ChunkId) -> Key {
        match self.batches.maker(id) {
            Some(batch) if self.is_small(id) => Key::Bundle(batch, self.later.get(&id).copied().unwrap_or(0)),
            _ => Key::Chunk(id),
        }
    }

    /// The chunks that tasks of a batch make, and how each is stored.
    pub(super) fn assign(&mut self, tasks: &[TaskId]) -> (Vec<ChunkId>, Vec<ChunkStorage>) {
        let (mut outputs, mut fates) = (Vec::new(), Vec::new());
        let mut bundle = 0;
        for &task in tasks {
            let (mut bundled_bytes, bundle_bytes) = (0, self.bundle_bytes(task));
            for id in self.job.runnable.outputs(task) {
                let fate = match self.batches.readers(id) {
                    0 => ChunkStorage::Dropped,
                    _ if self.is_small(id) => {
                        if bundle_bytes <= bundled_bytes {
                            (bundle, bundled_bytes) = (bundle + 1, 0);
                        }
                        bundled_bytes += self.job.runnable.chunk_bytes(id);
                        ChunkStorage::Bundled(bundle)
                    }
                    _ => ChunkStorage::Apart,
                };
                outputs.push(id);
                fates.push(fate);
            }
        }
        let later = outputs.iter().zip(&fates).filter_map(|(&id, fate)| match fate {
            ChunkStorage::Bundled(bundle) if *bundle != 0 => Some((id, *bundle)),
            _ => None,
        });
        self.later.extend(later);
        (outputs, fates)
    }

    /// The size from which on a bundle of a task is full.
    fn bundle_bytes(&self, task: TaskId) -> u64 {
        let makers = self.job.runnable.plan().stages[task.stage as usize].grid.count() as u64;
        (self.share_bytes / makers.max(1)).clamp(BUNDLE_BYTES_MIN, BUNDLE_BYTES_MAX)
    }

    fn is_small(&self, id: ChunkId) -> bool {
        self.is_small[id.tensor as usize]
    }
}

/// The number of bundles of a batch.
pub(super) fn bundle_count(fates: &[ChunkStorage]) -> usize {
    let numbers = fates.iter().filter_map(|fate| match fate {
        ChunkStorage::Bundled(bundle) => Some(*bundle as usize + 1),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}
