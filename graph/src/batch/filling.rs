//! Assignment of runs to batches.
//!
//! Tasks join a batch in the order of the schedule, so producers and consumers meet in one batch and the
//! chunks between them never leave it. A batch must not wait for another batch that is filled at the same
//! time, or batches would run one after the other. So there is one open batch per *level*: a run joins the
//! highest level that it reads from if the open batch there makes all that it reads from this level;
//! otherwise it goes one level up. The tasks of a sum's leaves fill batches of level 0, merges across these
//! are of level 1, and so on.

use super::runs::Run;
use super::{BatchLimits, Batches, RESIDENT};
use crate::chunk_table::ChunkTable;
use crate::error::Error;
use crate::plan::{ChunkId, TaskId};
use crate::task::Runnable;

/// Batches while they are put together.
pub(super) struct Filling<'a> {
    runnable: &'a Runnable,
    limits: BatchLimits,
    /// The open batch of each level.
    open: Vec<Option<Open>>,
    /// Level of each batch, by the id that it has while filling. `numbers` maps these ids to final positions.
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
    pub(super) fn new(runnable: &'a Runnable, limits: BatchLimits) -> Filling<'a> {
        let plan = runnable.plan();
        Filling {
            runnable,
            limits,
            open: Vec::new(),
            levels: Vec::new(),
            numbers: Vec::new(),
            closed: Batches {
                tasks: Vec::new(),
                ends: Vec::new(),
                makers: ChunkTable::new(plan, RESIDENT),
                readers: ChunkTable::new(plan, 0),
                homes: Vec::new(),
                sources: 0,
                live_bytes: 0,
                largest_bytes: 0,
                running_bytes: 0,
            },
        }
    }

    /// Adds a run, which is empty afterwards.
    ///
    /// # Errors
    /// `Internal` if it reads a chunk that no earlier task makes.
    pub(super) fn add(&mut self, run: &mut Run) -> Result<(), Error> {
        run.forget_own(self.runnable);
        let level = self.level(run.inputs())?;
        let (runnable, limits) = (self.runnable, self.limits);
        let read: u64 = run.inputs().iter().map(|chunk| runnable.chunk_bytes(*chunk)).sum();
        let batch = self.open_at(level);
        batch.tasks.extend(run.tasks());
        batch.bytes += read + run.made_bytes();
        batch.cost += run.cost();
        let id = batch.id;
        let is_full =
            limits.cost <= batch.cost || limits.tasks <= batch.tasks.len() || limits.bytes <= batch.bytes;
        for chunk in run.tasks().iter().flat_map(|&task| runnable.outputs(task)) {
            let before = std::mem::replace(&mut self.closed.makers[chunk], id);
            assert_eq!(before, RESIDENT, "{chunk:?} is made by two batches");
        }
        if is_full {
            self.close_up_to(level);
        }
        run.clear();
        Ok(())
    }

    /// The level of a run that reads these chunks.
    fn level(&self, inputs: &[ChunkId]) -> Result<usize, Error> {
        let plan = self.runnable.plan();
        let mut above: Option<(u32, bool)> = None;
        for chunk in inputs {
            let maker = self.closed.makers[*chunk];
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

    /// Closes the open batches of these levels, lower ones first: higher ones may read from them.
    fn close_up_to(&mut self, level: usize) {
        for open in self.open[..=level].iter_mut().filter_map(Option::take) {
            self.numbers[open.id as usize] = self.closed.ends.len() as u32;
            self.closed.tasks.extend(open.tasks);
            self.closed.ends.push(self.closed.tasks.len() as u32);
        }
    }

    /// Closes all open batches and returns the batches.
    pub(super) fn finish(mut self) -> Batches {
        if let Some(highest) = self.open.len().checked_sub(1) {
            self.close_up_to(highest);
        }
        for maker in self.closed.makers.values_mut().filter(|maker| **maker != RESIDENT) {
            *maker = self.numbers[*maker as usize];
            assert_ne!(*maker, RESIDENT, "a batch was not closed");
        }
        self.closed
    }
}
