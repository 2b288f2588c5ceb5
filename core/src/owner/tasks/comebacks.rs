//! Attempts that came back because nodes do not reach their arguments.
//!
//! A timeout counts from the start of a task, and these do not start. So it counts from the first time on at
//! which an attempt came back, for all nodes together.

use super::Task;
use crate::Now;
use crate::slab::Slot;
use tharsis_types::Attempt;
use tharsis_types::hash::IdMap;

/// The first times, of tasks with a timeout.
#[derive(Debug, Default)]
pub(super) struct Comebacks {
    first: IdMap<Slot<Task>, (Attempt, Now)>,
}

impl Comebacks {
    /// An attempt has come back. Returns when it did so first.
    pub(super) fn add(&mut self, slot: Slot<Task>, attempt: Attempt, now: Now) -> Now {
        let first = self.first.entry(slot).or_insert((attempt, now));
        if first.0 != attempt {
            *first = (attempt, now);
        }
        first.1
    }

    /// A task has ended. [`super::Tasks`] says so itself: its slot is then another's.
    pub(super) fn forget(&mut self, slot: Slot<Task>) {
        // Each end of a task comes here, and hardly one has come back.
        if !self.first.is_empty() {
            self.first.remove(&slot);
        }
    }

    /// Number of tasks that have come back and not ended.
    pub(super) fn len(&self) -> usize {
        self.first.len()
    }

    /// Asserts that the tasks are unfinished.
    pub(super) fn check(&self, is_unfinished: impl Fn(Slot<Task>) -> bool) {
        assert!(self.first.keys().all(|slot| is_unfinished(*slot)), "a task that has ended came back");
    }
}
