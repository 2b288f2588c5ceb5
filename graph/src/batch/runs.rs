//! Runs: tasks that stay together because the output of each is read by the next one only.
//!
//! A run joins a batch as a whole. So a product that is multiplied again, or summed up, is never stored,
//! wherever the other factor comes from.

use super::BatchLimits;
use crate::plan::{ChunkId, TaskId};
use crate::schedule::Schedule;
use crate::task::Runnable;

/// A run may grow to this many times the limits of a batch; beyond, a task joins it only if that adds little.
const RUN_SHARE: u64 = 8;
/// A task of at most this part of a run adds little to it.
const LITTLE_SHARE: u64 = 4;
/// Smaller results do not form runs: storing one costs no more than submitting a task. The partial results of
/// a sum are such: one task reads many of them.
const RUN_BYTES_MIN: u64 = 32 << 10;

/// Facts about the tasks of each stage, computed once since they are looked up for every task. They take no
/// room per task.
pub(super) struct Facts {
    stages: Vec<StageFacts>,
}

struct StageFacts {
    /// In the unit of [`Runnable::task_cost`].
    cost: f64,
    made_bytes: u64,
    scratch_bytes: u64,
}

/// Consecutive tasks; the output of each is read by the next one only.
#[derive(Default)]
pub(super) struct Run {
    tasks: Vec<TaskId>,
    /// The chunks that its tasks read and do not make, each once.
    inputs: Vec<ChunkId>,
    cost: f64,
    made_bytes: u64,
}

impl Facts {
    pub(super) fn of(runnable: &Runnable) -> Facts {
        let facts = |stage| StageFacts {
            cost: runnable.task_cost(stage),
            made_bytes: runnable.output_bytes(stage),
            scratch_bytes: runnable.scratch_bytes(stage),
        };
        Facts { stages: (0..runnable.plan().stages.len()).map(facts).collect() }
    }

    /// Bytes that a task of a stage makes, and its scratch bytes.
    pub(super) fn made_and_scratch_bytes(&self, stage: usize) -> (u64, u64) {
        (self.stages[stage].made_bytes, self.stages[stage].scratch_bytes)
    }

    fn of_task(&self, task: TaskId) -> &StageFacts {
        &self.stages[task.stage as usize]
    }
}

impl Run {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(super) fn tasks(&self) -> &[TaskId] {
        &self.tasks
    }

    pub(super) fn inputs(&self) -> &[ChunkId] {
        &self.inputs
    }

    pub(super) fn cost(&self) -> f64 {
        self.cost
    }

    pub(super) fn made_bytes(&self) -> u64 {
        self.made_bytes
    }

    /// Adds a task that reads these chunks.
    pub(super) fn push(&mut self, task: TaskId, read: &[ChunkId], facts: &Facts) {
        self.tasks.push(task);
        self.inputs.extend(read);
        self.cost += facts.of_task(task).cost;
        self.made_bytes += facts.of_task(task).made_bytes;
    }

    pub(super) fn clear(&mut self) {
        self.tasks.clear();
        self.inputs.clear();
        (self.cost, self.made_bytes) = (0.0, 0);
    }

    /// Whether a task that reads these chunks is the only reader of all that the last task makes, and these
    /// outputs are large enough that not storing them pays.
    pub(super) fn feeds(
        &self,
        read: &[ChunkId],
        runnable: &Runnable,
        schedule: &Schedule,
        facts: &Facts,
    ) -> bool {
        let Some(&last) = self.tasks.last() else { return false };
        RUN_BYTES_MIN <= facts.of_task(last).made_bytes
            && runnable.outputs(last).all(|chunk| schedule.readers[chunk] == 1 && read.contains(&chunk))
    }

    pub(super) fn has_room_for(&self, next: TaskId, facts: &Facts, limits: &BatchLimits) -> bool {
        let StageFacts { cost, made_bytes: bytes, .. } = *facts.of_task(next);
        let is_cheap =
            self.cost + cost <= RUN_SHARE as f64 * limits.cost || LITTLE_SHARE as f64 * cost <= self.cost;
        let is_small = self.made_bytes + bytes <= RUN_SHARE.saturating_mul(limits.bytes)
            || LITTLE_SHARE * bytes <= self.made_bytes;
        self.tasks.len() < limits.tasks && is_cheap && is_small
    }

    /// Removes the chunks that its own tasks make from its inputs; to be called when the run is complete.
    pub(super) fn forget_own(&mut self, runnable: &Runnable) {
        if self.tasks.len() < 2 {
            return;
        }
        let own: Vec<ChunkId> = self.tasks.iter().flat_map(|&task| runnable.outputs(task)).collect();
        self.inputs.retain(|chunk| !own.contains(chunk));
        self.inputs.sort_unstable();
        self.inputs.dedup();
    }
}
