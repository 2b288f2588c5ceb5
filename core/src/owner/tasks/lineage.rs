//! Tasks that have ended and are kept, by age.

use super::{Task, TaskState, Tasks};
use crate::owner::Object;
use crate::slab::Slot;
use std::collections::BTreeMap;

/// Kept tasks.
#[derive(Debug)]
pub(super) struct Lineage {
    /// By age.
    kept: BTreeMap<u64, Slot<Task>>,
    /// Number of tasks that were ever kept: the age of the youngest one.
    clock: u64,
    bytes: usize,
    bytes_max: usize,
    forgotten_count: u64,
}

/// Use of the ledger's memory by finished tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineageUsage {
    /// Number of kept tasks.
    pub task_count: usize,
    /// Bytes that they take.
    pub bytes: usize,
    /// Number of tasks that were forgotten because the limit was exceeded.
    pub forgotten_count: u64,
}

impl Lineage {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { kept: BTreeMap::new(), clock: 0, bytes: 0, bytes_max, forgotten_count: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// The slots of all kept tasks, oldest first.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot<Task>> {
        self.kept.values().copied()
    }

    /// Adds a task as the youngest; returns its age.
    pub(super) fn add(&mut self, slot: Slot<Task>, bytes: usize) -> u64 {
        self.clock += 1;
        self.bytes += bytes;
        let old = self.kept.insert(self.clock, slot);
        assert!(old.is_none(), "two kept tasks have one age");
        self.clock
    }

    fn remove(&mut self, since: u64, slot: Slot<Task>, bytes: usize) {
        let removed = self.kept.remove(&since);
        assert_eq!(removed, Some(slot), "a kept task is not where it says");
        assert!(bytes <= self.bytes, "kept tasks take less than one of them");
        self.bytes -= bytes;
    }
}

impl Tasks {
    /// Use of memory by kept tasks.
    pub(in crate::owner) fn lineage_usage(&self) -> LineageUsage {
        let lineage = &self.lineage;
        LineageUsage {
            task_count: lineage.len(),
            bytes: lineage.bytes,
            forgotten_count: lineage.forgotten_count,
        }
    }

    /// Bytes that kept tasks may take.
    pub(in crate::owner) fn lineage_bytes_max(&self) -> usize {
        self.lineage.bytes_max
    }

    /// Whether any task was ever kept: most programs return nothing large.
    pub(in crate::owner) fn has_kept_any(&self) -> bool {
        0 < self.lineage.clock
    }

    /// The oldest kept task, if kept tasks take more memory than the limit: it has to be forgotten.
    pub(in crate::owner) fn next_to_forget(&mut self) -> Option<Slot<Task>> {
        if self.lineage.bytes <= self.lineage.bytes_max {
            return None;
        }
        let oldest = self.lineage.kept.first_key_value().map(|(_, slot)| *slot);
        assert!(oldest.is_some(), "no task is kept, and they take {} bytes", self.lineage.bytes);
        self.lineage.forgotten_count += 1;
        oldest
    }

    /// The entry of a kept task's output is gone; returns whether it was the last.
    pub(in crate::owner) fn output_gone(&mut self, slot: Slot<Task>, output: Slot<Object>) -> bool {
        let task = &mut self.entries[slot];
        assert!(task.is_kept(), "{} is {:?}, not kept", task.id, task.state);
        let all = std::iter::once(&mut task.first_output)
            .chain(task.more_outputs.iter_mut().flat_map(|more| more.iter_mut()));
        let mut outputs = all.filter(|known| **known == Some(output));
        let known = outputs.next();
        assert!(known.is_some(), "an entry is no output of the task that is kept for it");
        if let Some(known) = known {
            *known = None;
        }
        task.output_slots().all(|output| output.is_none())
    }

    /// Removes a task from the kept ones.
    pub(super) fn forget_kept(&mut self, slot: Slot<Task>) {
        let task = &self.entries[slot];
        assert!(task.is_kept(), "{} is {:?}, not kept", task.id, task.state);
        if let TaskState::Kept { since } = task.state {
            self.lineage.remove(since, slot, task.kept_bytes());
        }
    }

    /// Asserts that the kept tasks are those in the state `Kept`, and that their bytes are counted.
    pub(super) fn check_lineage(&self) {
        let mut bytes = 0;
        for (since, slot) in &self.lineage.kept {
            let task = &self.entries[*slot];
            assert!(task.state == TaskState::Kept { since: *since }, "{slot:?} is not kept: {task:?}");
            bytes += task.kept_bytes();
        }
        assert_eq!(bytes, self.lineage.bytes, "bytes of kept tasks");
        let youngest = self.lineage.kept.last_key_value().map_or(0, |(since, _)| *since);
        assert!(youngest <= self.lineage.clock, "a task is kept that is younger than the clock");
        let count = self.entries.iter().filter(|(_, task)| task.is_kept()).count();
        assert_eq!(count, self.lineage.len(), "kept tasks");
    }
}

impl Task {
    pub(super) fn kept_bytes(&self) -> usize {
        let inputs = self
            .inputs
            .as_ref()
            .map_or(0, |i| size_of_val(i.dependencies.as_slice()) + size_of_val(i.nested.as_slice()));
        size_of::<Self>() + self.payload.len() + inputs
    }
}
