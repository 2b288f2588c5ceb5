//! An actor as its callers on this node know it: its lines, and which of them may have a call to send.

use super::{Caller, Home, Line};
use crate::Now;
use crate::owner::Task;
use crate::owner::tasks::{TaskState, Tasks};
use crate::slab::Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use tharsis_types::{LeaseId, TaskId};

/// An actor that clients of this node call.
#[derive(Debug)]
pub(super) struct Called {
    /// The task that constructed it.
    pub(super) id: TaskId,
    /// Calls that are not sent, by line and by number.
    pub(super) unsent: BTreeMap<Line, BTreeMap<u64, Slot<Task>>>,
    /// Lines, by group, whose first call may be ready to be sent.
    pub(super) ready: BTreeMap<u16, BTreeSet<Line>>,
    /// Lines looked at, for a test.
    #[cfg(test)]
    pub(super) steps: usize,
    /// Calls of each group that the actor runs at the same time, if it is more than one: so many may be sent
    /// besides those that are sent ahead.
    pub(super) limits: BTreeMap<u16, usize>,
    /// Unfinished calls of callers that have a bound on them.
    pub(super) pending: BTreeMap<Caller, usize>,
    /// Whether a call that comes back holds up later ones: some of them keep their order.
    pub(super) keeps_order: bool,
    pub(super) home: Option<Home>,
    pub(super) attachment: Option<LeaseId>,
    /// When its home is looked for again.
    pub(super) look_at: Option<Now>,
}

impl Called {
    /// No calls yet.
    pub(super) fn new(id: TaskId) -> Self {
        Self {
            id,
            unsent: BTreeMap::new(),
            ready: BTreeMap::new(),
            #[cfg(test)]
            steps: 0,
            limits: BTreeMap::new(),
            pending: BTreeMap::new(),
            keeps_order: false,
            home: None,
            attachment: None,
            look_at: None,
        }
    }

    /// The first call of a line may be ready: another one may be the first, or it may have its arguments.
    pub(super) fn look_at_line(&mut self, line: Line) {
        self.ready.entry(line.1).or_default().insert(line);
    }

    /// The line after `last` in the order of lines, from the first one again after the last.
    pub(super) fn next_line(&self, group: u16, last: Option<Line>) -> Option<Line> {
        let lines = self.ready.get(&group)?;
        let after = last.and_then(|last| lines.range((Bound::Excluded(last), Bound::Unbounded)).next());
        after.or_else(|| lines.first()).copied()
    }

    /// Takes the first call out of a line, if it is ready. If not, the line is not looked at again before it
    /// changes.
    pub(super) fn take_ready(&mut self, key: Line, tasks: &Tasks) -> Option<Slot<Task>> {
        self.count_step();
        let is_ready = |call: &Slot<Task>| tasks[*call].state() == TaskState::Queued;
        let taken = self.unsent.get_mut(&key).and_then(|line| {
            let first = line.first_entry().filter(|first| is_ready(first.get()))?;
            Some((first.remove(), line.is_empty()))
        });
        if taken.is_some_and(|(_, is_empty)| is_empty) {
            self.unsent.remove(&key);
        }
        if taken.is_none_or(|(_, is_empty)| is_empty) {
            self.forget_line(key);
        }
        taken.map(|(call, _)| call)
    }

    fn forget_line(&mut self, key: Line) {
        if let Some(lines) = self.ready.get_mut(&key.1) {
            lines.remove(&key);
            if lines.is_empty() {
                self.ready.remove(&key.1);
            }
        }
    }

    /// Leaves out lines that are not ready, until the first one in each group that is.
    pub(super) fn forget_unready(&mut self, tasks: &Tasks) {
        for group in self.ready.keys().copied().collect::<Vec<_>>() {
            while let Some(key) = self.next_line(group, None) {
                self.count_step();
                let first = self.unsent.get(&key).and_then(|line| line.first_key_value());
                if first.is_some_and(|(_, call)| tasks[*call].state() == TaskState::Queued) {
                    break;
                }
                self.forget_line(key);
            }
        }
    }

    fn count_step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }

    /// Asserts that no line is forgotten whose first call is ready.
    pub(super) fn check_ready(&self, tasks: &Tasks) {
        for (key, line) in &self.unsent {
            let is_ready = |call: &Slot<Task>| tasks[*call].state() == TaskState::Queued;
            let is_known = self.ready.get(&key.1).is_some_and(|lines| lines.contains(key));
            assert!(is_known || !line.values().next().is_some_and(is_ready), "line {key:?} is forgotten");
        }
    }
}
