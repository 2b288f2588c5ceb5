//! Batches: tasks that are handed out together, because handing one out costs as much as running a small one.
//!
//! Tasks join a batch in the order of the schedule, so what is made for each other meets in one batch and the
//! chunks between them never leave it. A batch must not wait for another one that is made at the same time,
//! or batches would run one after the other: so there is one open batch per *level*, and a task joins the
//! level of what it reads only if the open batch there makes all of it; otherwise it goes one level up. The
//! tasks of a sum's leaves fill batches of level 0, whoever merges across these is of level 1, and so on.
//!
//! A task whose result only the next one reads stays with it: together they are a *run*, which joins a batch
//! as a whole. A product that is multiplied again, or summed up, is then never stored, wherever the other
//! factor comes from.
//!
//! Batches are numbered in the order in which they are to be handed out: each after those whose chunks it
//! reads. A task that is large enough to stand alone is a batch at once, and the order stays that of the
//! schedule.
//!
//! Batches that read nothing are *sources*, and each has a *home*: a number that those share whose chunks
//! meet in one batch. An executor with several nodes starts what has one home on one node; later batches go
//! where their chunks lie anyway.

use crate::error::Error;
use crate::homes::{Homes, ROAMING};
use crate::plan::{ChunkId, TaskId};
use crate::schedule::Schedule;
use crate::task::Runnable;

/// When a batch is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchLimits {
    /// What its tasks cost, in the unit of [`Runnable::task_cost`].
    pub cost: f64,
    /// Tasks in it.
    pub tasks: usize,
    /// Bytes of the chunks that its tasks read and make.
    pub bytes: u64,
}

/// The tasks of a plan in batches, and the memory that handing them out in order takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    tasks: Vec<TaskId>,
    /// Where each batch ends in `tasks`.
    ends: Vec<u32>,
    /// Which batch makes each chunk, by tensor and chunk; [`RESIDENT`] for those at hand.
    makers: Vec<Vec<u32>>,
    /// How many batches beside its maker read each chunk, by tensor and chunk; results that are made count
    /// one more.
    readers: Vec<Vec<u32>>,
    /// The home of each batch; [`ROAMING`] for those that have none.
    homes: Vec<u32>,
    /// How many batches read nothing.
    sources: usize,
    /// The most bytes of chunks that are made, or stored, and still to be read, between any two batches.
    pub live_bytes: u64,
    /// The most bytes that a batch takes: [`Batches::bytes`] and [`Batches::resident_bytes`].
    pub largest_bytes: u64,
}

/// A run may grow to so many times the limits of a batch; beyond, a task joins it only if that adds little.
const RUN_SHARE: u64 = 8;
/// What is this part of a run adds little to it.
const LITTLE_SHARE: u64 = 4;
/// A smaller result costs no more to store than a task to hand out, and reads of many such ones are what sums
/// are made of.
const RUN_BYTES_MIN: u64 = 32 << 10;

/// The maker of chunks that were handed over with the plan.
const RESIDENT: u32 = u32::MAX;

impl Batches {
    /// Puts the tasks of a schedule into batches.
    ///
    /// # Errors
    /// `Internal` if a task reads what no task before it makes.
    ///
    /// # Memory
    /// 8 bytes per task and 8 per chunk.
    pub fn new(runnable: &Runnable, schedule: &Schedule, limits: BatchLimits) -> Result<Batches, Error> {
        let mut filling = Filling::new(runnable, limits);
        let weights = Weights::of(runnable);
        let (mut run, mut inputs) = (Run::default(), Vec::new());
        for (at, &task) in schedule.order.iter().enumerate() {
            run.push(task, &weights);
            if let Some(&next) = schedule.order.get(at + 1)
                && run.has_room_for(next, &weights, &limits)
                && run.goes_on(next, runnable, schedule, &weights)
            {
                continue;
            }
            inputs.clear();
            run.inputs(runnable, &mut inputs);
            filling.add(&run, &inputs)?;
            run.clear();
        }
        let mut batches = filling.finish();
        batches.count_readers(runnable);
        batches.walk(runnable);
        Ok(batches)
    }

    /// How many batches there are.
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
        let maker = self.makers[chunk.tensor as usize][chunk.index as usize];
        (maker != RESIDENT).then_some(maker as usize)
    }

    /// How many batches beside its maker read a chunk; results that are made count one more.
    pub fn readers(&self, chunk: ChunkId) -> u32 {
        self.readers[chunk.tensor as usize][chunk.index as usize]
    }

    /// The home of a batch, if it has one: what others of this home make is read together with what it makes.
    pub fn home(&self, batch: usize) -> Option<u32> {
        Some(self.homes[batch]).filter(|home| *home != ROAMING)
    }

    /// How many batches read nothing, and how many homes they have.
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
        // By number, for want of a better order: what a task reads is found by its id.
        chunks.sort_unstable();
        chunks.dedup();
    }

    /// Bytes that a batch takes beside the chunks it reads: its own, as made and, if others read them, as
    /// stored, and what its tasks need while they run.
    pub fn bytes(&self, runnable: &Runnable, batch: usize) -> u64 {
        let (mut made, mut stored, mut scratch) = (0, 0, 0);
        for &task in self.tasks(batch) {
            let stage = task.stage as usize;
            made += runnable.output_bytes(stage);
            let kept = runnable.outputs(task).filter(|&id| self.readers(id) != 0);
            let bytes = |id: ChunkId| runnable.plan().tensors[id.tensor as usize].chunk_bytes_max();
            stored += kept.map(bytes).sum::<u64>();
            scratch = runnable.scratch_bytes(stage).max(scratch);
        }
        made + stored + scratch
    }

    /// Bytes of those of these chunks that were handed over with the plan: they are stored when they are
    /// first read.
    pub fn resident_bytes(&self, runnable: &Runnable, inputs: &[ChunkId]) -> u64 {
        let resident = inputs.iter().filter(|chunk| self.maker(**chunk).is_none());
        resident.map(|chunk| runnable.plan().tensors[chunk.tensor as usize].chunk_bytes_max()).sum()
    }

    /// Counts who reads what, and gives homes: in the order of the batches in which sources meet first.
    fn count_readers(&mut self, runnable: &Runnable) {
        let mut chunks = Vec::new();
        let mut homes = Homes::new(self.len());
        for batch in 0..self.len() {
            chunks.clear();
            self.inputs(runnable, batch, &mut chunks);
            chunks.iter().for_each(|chunk| self.readers[chunk.tensor as usize][chunk.index as usize] += 1);
            self.sources += usize::from(chunks.is_empty());
            let reads_more = chunks.iter().any(|&chunk| self.maker(chunk).is_none());
            homes.meet(chunks.iter().filter_map(|&chunk| self.maker(chunk)), reads_more);
        }
        self.homes = homes.finish();
        for &result in &runnable.plan().results {
            let made = self.readers[result].iter_mut().zip(&self.makers[result]);
            made.filter(|(_, maker)| **maker != RESIDENT).for_each(|(count, _)| *count += 1);
        }
    }

    /// Follows the chunks through all batches, for the bytes that are alive.
    fn walk(&mut self, runnable: &Runnable) {
        let plan = runnable.plan();
        let bytes = |chunk: ChunkId| plan.tensors[chunk.tensor as usize].chunk_bytes_max();
        let mut left = self.readers.clone();
        let (mut live, mut chunks) = (0u64, Vec::new());
        for batch in 0..self.len() {
            for &task in self.tasks(batch) {
                live += runnable.outputs(task).filter(|&id| self.readers(id) != 0).map(bytes).sum::<u64>();
            }
            chunks.clear();
            self.inputs(runnable, batch, &mut chunks);
            for &chunk in &chunks {
                let is_first = left[chunk.tensor as usize][chunk.index as usize] == self.readers(chunk);
                if is_first && self.maker(chunk).is_none() {
                    live += bytes(chunk);
                }
                let left = &mut left[chunk.tensor as usize][chunk.index as usize];
                *left -= 1;
                if *left == 0 {
                    live -= bytes(chunk);
                }
            }
            let taken = self.bytes(runnable, batch) + self.resident_bytes(runnable, &chunks);
            self.live_bytes = self.live_bytes.max(live);
            self.largest_bytes = self.largest_bytes.max(taken);
        }
    }
}

/// What tasks of each stage cost, and the bytes they make: looked up a million times.
struct Weights {
    costs: Vec<f64>,
    made_bytes: Vec<u64>,
}

/// Tasks in a row, each of which makes what only the next one reads.
#[derive(Default)]
struct Run {
    tasks: Vec<TaskId>,
    cost: f64,
    made_bytes: u64,
}

impl Weights {
    fn of(runnable: &Runnable) -> Weights {
        let stages = 0..runnable.plan().stages.len();
        let costs = stages.clone().map(|stage| runnable.task_cost(stage)).collect();
        Weights { costs, made_bytes: stages.map(|stage| runnable.output_bytes(stage)).collect() }
    }
}

impl Run {
    fn push(&mut self, task: TaskId, weights: &Weights) {
        self.tasks.push(task);
        self.cost += weights.costs[task.stage as usize];
        self.made_bytes += weights.made_bytes[task.stage as usize];
    }

    fn clear(&mut self) {
        self.tasks.clear();
        (self.cost, self.made_bytes) = (0.0, 0);
    }

    /// Whether what its last task makes is all for `next`, and that may be added.
    fn goes_on(&self, next: TaskId, runnable: &Runnable, schedule: &Schedule, weights: &Weights) -> bool {
        let Some(&last) = self.tasks.last() else { return false };
        if weights.made_bytes[last.stage as usize] < RUN_BYTES_MIN {
            return false;
        }
        let mut read = Vec::new();
        runnable.inputs(next, &mut read);
        let readers = |chunk: ChunkId| schedule.readers[chunk.tensor as usize][chunk.index as usize];
        runnable.outputs(last).all(|chunk| readers(chunk) == 1 && read.contains(&chunk))
    }

    fn has_room_for(&self, next: TaskId, weights: &Weights, limits: &BatchLimits) -> bool {
        let (cost, bytes) = (weights.costs[next.stage as usize], weights.made_bytes[next.stage as usize]);
        let is_cheap =
            self.cost + cost <= RUN_SHARE as f64 * limits.cost || LITTLE_SHARE as f64 * cost <= self.cost;
        let is_small = self.made_bytes + bytes <= RUN_SHARE.saturating_mul(limits.bytes)
            || LITTLE_SHARE * bytes <= self.made_bytes;
        self.tasks.len() < limits.tasks && is_cheap && is_small
    }

    /// The chunks that its tasks read and do not make, each once.
    fn inputs(&self, runnable: &Runnable, chunks: &mut Vec<ChunkId>) {
        let Some((first, others)) = self.tasks.split_first() else { return };
        runnable.inputs(*first, chunks);
        if others.is_empty() {
            return;
        }
        others.iter().for_each(|&task| runnable.inputs(task, chunks));
        let own: Vec<ChunkId> = self.tasks.iter().flat_map(|&task| runnable.outputs(task)).collect();
        chunks.retain(|chunk| !own.contains(chunk));
        chunks.sort_unstable();
        chunks.dedup();
    }
}

/// Batches while they are put together.
struct Filling<'a> {
    runnable: &'a Runnable,
    limits: BatchLimits,
    /// The open batch of each level.
    open: Vec<Option<Open>>,
    /// Level of each batch by its number while filling; the numbers of closed batches are given anew.
    levels: Vec<u32>,
    numbers: Vec<u32>,
    closed: Batches,
}

struct Open {
    id: u32,
    tasks: Vec<TaskId>,
    cost: f64,
    bytes: u64,
}

impl<'a> Filling<'a> {
    fn new(runnable: &'a Runnable, limits: BatchLimits) -> Filling<'a> {
        let plan = runnable.plan();
        let per_chunk =
            |value: u32| plan.tensors.iter().map(|spec| vec![value; spec.tiling.count()]).collect();
        Filling {
            runnable,
            limits,
            open: Vec::new(),
            levels: Vec::new(),
            numbers: Vec::new(),
            closed: Batches {
                tasks: Vec::new(),
                ends: Vec::new(),
                makers: per_chunk(RESIDENT),
                readers: per_chunk(0),
                homes: Vec::new(),
                sources: 0,
                live_bytes: 0,
                largest_bytes: 0,
            },
        }
    }

    /// Adds a run, which reads these chunks beside those that it makes.
    fn add(&mut self, run: &Run, inputs: &[ChunkId]) -> Result<(), Error> {
        let level = self.level(inputs)?;
        let (runnable, limits) = (self.runnable, self.limits);
        let read: u64 = inputs.iter().map(|chunk| runnable.chunk_bytes(*chunk)).sum();
        let batch = self.open_at(level);
        batch.tasks.extend(&run.tasks);
        batch.bytes += read + run.made_bytes;
        batch.cost += run.cost;
        let id = batch.id;
        let is_full =
            limits.cost <= batch.cost || limits.tasks <= batch.tasks.len() || limits.bytes <= batch.bytes;
        for chunk in run.tasks.iter().flat_map(|&task| runnable.outputs(task)) {
            self.closed.makers[chunk.tensor as usize][chunk.index as usize] = id;
        }
        if is_full {
            self.close_up_to(level);
        }
        Ok(())
    }

    fn maker(&self, chunk: &ChunkId) -> u32 {
        self.closed.makers[chunk.tensor as usize][chunk.index as usize]
    }

    /// The level of a task that reads these chunks.
    fn level(&self, inputs: &[ChunkId]) -> Result<usize, Error> {
        let plan = self.runnable.plan();
        let mut above: Option<(u32, bool)> = None;
        for chunk in inputs {
            let maker = self.maker(chunk);
            if maker == RESIDENT {
                if !plan.resident.contains(&(chunk.tensor as usize)) {
                    return Err(Error::Internal(format!("{chunk:?} is read before it is made")));
                }
                continue;
            }
            let level = self.levels[maker as usize];
            let is_open = self.open[level as usize].as_ref().is_some_and(|open| open.id == maker);
            above = match above {
                Some((highest, all_open)) if highest == level => Some((level, all_open && is_open)),
                Some((highest, all_open)) if level < highest => Some((highest, all_open)),
                _ => Some((level, is_open)),
            };
        }
        Ok(match above {
            None => 0,
            Some((level, true)) => level as usize,
            Some((level, false)) => level as usize + 1,
        })
    }

    fn open_at(&mut self, level: usize) -> &mut Open {
        if self.open.len() <= level {
            self.open.resize_with(level + 1, || None);
        }
        let (levels, numbers) = (&mut self.levels, &mut self.numbers);
        self.open[level].get_or_insert_with(|| {
            levels.push(level as u32);
            numbers.push(RESIDENT);
            Open { id: levels.len() as u32 - 1, tasks: Vec::new(), cost: 0.0, bytes: 0 }
        })
    }

    /// Closes the open batches of these levels: the lower ones first, since the others may read what they
    /// make.
    fn close_up_to(&mut self, level: usize) {
        for open in self.open[..=level].iter_mut().filter_map(Option::take) {
            self.numbers[open.id as usize] = self.closed.ends.len() as u32;
            self.closed.tasks.extend(open.tasks);
            self.closed.ends.push(self.closed.tasks.len() as u32);
        }
    }

    fn finish(mut self) -> Batches {
        if let Some(highest) = self.open.len().checked_sub(1) {
            self.close_up_to(highest);
        }
        for maker in self.closed.makers.iter_mut().flatten().filter(|maker| **maker != RESIDENT) {
            *maker = self.numbers[*maker as usize];
        }
        self.closed
    }
}
