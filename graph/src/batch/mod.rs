//! Batches: tasks that are handed out together, because handing one out costs as much as running a small one.
//!
//! Batches are numbered in the order in which they are to be handed out: each after those whose chunks it
//! reads. A task that is large enough to stand alone is a batch at once, and the order stays that of the
//! schedule.
//!
//! Batches that read nothing are *sources*. Each source has a *home*, a number: sources whose chunks meet in
//! one batch share it. An executor with several nodes starts all sources of a home on one node; later batches
//! run where their inputs are.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | batches that are complete: their tasks, chunks and memory |
//! | `filling.rs` | assignment of runs of tasks to batches |
//! | `runs.rs` | runs: tasks that stay together, and facts about the tasks of a stage |

mod filling;
mod runs;

use crate::chunk_table::ChunkTable;
use crate::error::Error;
use crate::homes::{Homes, ROAMING};
use crate::plan::{ChunkId, TaskId};
use crate::schedule::Schedule;
use crate::task::Runnable;
use filling::Filling;
use runs::{Facts, Run};

/// When a batch is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchLimits {
    /// Cost of its tasks, in the unit of [`Runnable::task_cost`].
    pub cost: f64,
    /// Tasks in it.
    pub tasks: usize,
    /// Bytes of the chunks that its tasks read and make.
    pub bytes: u64,
}

/// The tasks of a plan in batches, and the memory needed to run the batches in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    tasks: Vec<TaskId>,
    /// End of each batch in `tasks`.
    ends: Vec<u32>,
    /// The batch that makes each chunk; [`RESIDENT`] for those at hand.
    makers: ChunkTable<u32>,
    /// Number of batches beside its maker that read each chunk; results that are made count one more.
    readers: ChunkTable<u32>,
    /// The home of each batch; [`ROAMING`] for those that have none.
    homes: Vec<u32>,
    /// Number of batches that read nothing.
    sources: usize,
    /// Peak bytes of stored chunks that are still to be read, between any two batches.
    pub live_bytes: u64,
    /// Most bytes that one batch takes: the sum of [`Batches::bytes`] and [`Batches::resident_bytes`].
    pub largest_bytes: u64,
    /// Most bytes that one batch takes together with all chunks that it reads.
    pub running_bytes: u64,
}

/// The maker of chunks that were handed over with the plan.
const RESIDENT: u32 = u32::MAX;

impl Batches {
    /// Puts the tasks of a schedule into batches.
    ///
    /// # Errors
    /// `Internal` if a task reads a chunk that no earlier task makes.
    ///
    /// # Memory
    /// 8 bytes per task and 8 per chunk.
    pub fn new(runnable: &Runnable, schedule: &Schedule, limits: BatchLimits) -> Result<Batches, Error> {
        let facts = Facts::of(runnable);
        let mut filling = Filling::new(runnable, limits);
        let (mut run, mut read) = (Run::default(), Vec::new());
        for &task in &schedule.order {
            read.clear();
            runnable.inputs(task, &mut read);
            let joins =
                run.has_room_for(task, &facts, &limits) && run.feeds(&read, runnable, schedule, &facts);
            if !joins && !run.is_empty() {
                filling.add(&mut run)?;
            }
            run.push(task, &read, &facts);
        }
        if !run.is_empty() {
            filling.add(&mut run)?;
        }
        let mut batches = filling.finish();
        assert_eq!(batches.tasks.len(), schedule.order.len(), "a task is in two batches, or in none");
        batches.count_readers(runnable);
        batches.walk(runnable, &facts);
        Ok(batches)
    }

    /// Number of batches of the job.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The tasks of a batch, in the order in which they run.
    pub fn tasks(&self, batch: usize) -> &[TaskId] {
        let start = batch.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.tasks[start..self.ends[batch] as usize]
    }

    /// The batch that makes a chunk; `None` for resident ones.
    pub fn maker(&self, chunk: ChunkId) -> Option<usize> {
        let maker = self.makers[chunk];
        (maker != RESIDENT).then_some(maker as usize)
    }

    /// Number of batches beside its maker that read a chunk; results that are made count one more.
    pub fn readers(&self, chunk: ChunkId) -> u32 {
        self.readers[chunk]
    }

    /// The home of a batch, if it has one. Chunks made by batches of one home are read together.
    pub fn home(&self, batch: usize) -> Option<u32> {
        Some(self.homes[batch]).filter(|home| *home != ROAMING)
    }

    /// Number of batches that read nothing, and the number of their homes.
    pub fn source_count(&self) -> (usize, usize) {
        let homes = self.homes.iter().filter(|home| **home != ROAMING);
        (self.sources, homes.max().map_or(0, |last| *last as usize + 1))
    }

    /// The chunks that a batch reads and does not make, each once.
    pub fn inputs(&self, runnable: &Runnable, batch: usize, chunks: &mut Vec<ChunkId>) {
        for &task in self.tasks(batch) {
            runnable.inputs(task, chunks);
        }
        chunks.retain(|chunk| self.maker(*chunk) != Some(batch));
        // Any order would do: a task finds its inputs by id.
        chunks.sort_unstable();
        chunks.dedup();
    }

    /// Bytes that a batch takes beside the chunks it reads: the chunks it makes, a second copy of those that
    /// are stored for other batches, and the scratch memory of its largest task.
    pub fn bytes(&self, runnable: &Runnable, batch: usize) -> u64 {
        self.bytes_by(runnable, batch, |stage| (runnable.output_bytes(stage), runnable.scratch_bytes(stage)))
    }

    /// [`Batches::bytes`], with the bytes that a task of a stage makes and needs.
    fn bytes_by(&self, runnable: &Runnable, batch: usize, of_stage: impl Fn(usize) -> (u64, u64)) -> u64 {
        let (mut made, mut stored, mut scratch) = (0, 0, 0);
        for &task in self.tasks(batch) {
            let (made_bytes, scratch_bytes) = of_stage(task.stage as usize);
            made += made_bytes;
            scratch = scratch_bytes.max(scratch);
            let kept = runnable.outputs(task).filter(|&chunk| self.readers(chunk) != 0);
            stored += kept.map(|chunk| runnable.chunk_bytes(chunk)).sum::<u64>();
        }
        made + stored + scratch
    }

    /// Bytes of those inputs that were handed over with the plan: they are stored when they are first read.
    pub fn resident_bytes(&self, runnable: &Runnable, inputs: &[ChunkId]) -> u64 {
        let resident = inputs.iter().filter(|chunk| self.maker(**chunk).is_none());
        resident.map(|chunk| runnable.chunk_bytes(*chunk)).sum()
    }

    /// Counts the readers of each chunk and assigns homes, in the order in which sources first meet.
    fn count_readers(&mut self, runnable: &Runnable) {
        let mut chunks = Vec::new();
        let mut homes = Homes::new(self.len());
        for batch in 0..self.len() {
            chunks.clear();
            self.inputs(runnable, batch, &mut chunks);
            chunks.iter().for_each(|chunk| self.readers[*chunk] += 1);
            self.sources += usize::from(chunks.is_empty());
            let reads_more = chunks.iter().any(|&chunk| self.maker(chunk).is_none());
            homes.meet(chunks.iter().filter_map(|&chunk| self.maker(chunk)), reads_more);
        }
        self.homes = homes.finish();
        assert_eq!(self.homes.len(), self.len(), "a batch without a home, or two");
        for &result in &runnable.plan().results {
            let made = self.readers.of_tensor_mut(result).iter_mut().zip(self.makers.of_tensor(result));
            made.filter(|(_, maker)| **maker != RESIDENT).for_each(|(count, _)| *count += 1);
        }
    }

    /// Walks over all batches in order to find the peak of live bytes.
    fn walk(&mut self, runnable: &Runnable, facts: &Facts) {
        let mut left = self.readers.clone();
        let (mut live, mut chunks) = (0u64, Vec::new());
        for batch in 0..self.len() {
            for &task in self.tasks(batch) {
                let kept = runnable.outputs(task).filter(|&chunk| self.readers(chunk) != 0);
                live += kept.map(|chunk| runnable.chunk_bytes(chunk)).sum::<u64>();
            }
            chunks.clear();
            self.inputs(runnable, batch, &mut chunks);
            for &chunk in &chunks {
                let bytes = runnable.chunk_bytes(chunk);
                if left[chunk] == self.readers(chunk) && self.maker(chunk).is_none() {
                    live += bytes;
                }
                assert!(0 < left[chunk], "{chunk:?} is read by more batches than were counted");
                left[chunk] -= 1;
                if left[chunk] == 0 {
                    assert!(bytes <= live, "{chunk:?} dies and was never alive");
                    live -= bytes;
                }
            }
            let own = self.bytes_by(runnable, batch, |stage| facts.made_and_scratch_bytes(stage));
            let taken = own + self.resident_bytes(runnable, &chunks);
            self.live_bytes = self.live_bytes.max(live);
            self.largest_bytes = self.largest_bytes.max(taken);
            let read = chunks.iter().map(|chunk| runnable.chunk_bytes(*chunk)).sum::<u64>();
            self.running_bytes = self.running_bytes.max(own + read);
        }
    }
}
