//! States of a task, and all transitions between them.
//!
//! ```text
//!                 ┌──────────────────────── sent_to_waiting ◀──┐
//!                 ▼                                            │
//!  insert ──▶ Waiting ──────────▶ Queued ──────────────────▶ Sent ──▶ Kept ──▶ gone
//!                 │ ◀── taken ────┘ │  ◀── sent_to_queued ───┘ │      │
//!                 │                 ▼                          │      └──▶ Waiting
//!                 └──▶ gone     Tombstone ──▶ gone             └──▶ gone
//! ```
//!
//! A slot stands in one place, which depends on the state:
//!
//! | state | place | moved there by |
//! |---|---|---|
//! | `Waiting` | `dependents` of arguments | `insert`, `sent_to_`, `kept_to_` and `queued_to_waiting` |
//! | `Waiting` for nothing | the pauses | `sent_to_paused` |
//! | `Queued` | one queue of its shape | `waiting_to_queued`, `sent_to_queued` |
//! | `Sent` | `in_flight` of its lease | `queued_to_sent` |
//! | `Kept` | the kept tasks, by age | `sent_to_kept` |
//! | `Tombstone` | the queue in which it ended | `queued_to_tombstone` |
//!
//! The caller changes the place itself, in the same step; [`super::super::Owner::check`] compares them. Every
//! function here asserts the state that it comes from.

use super::{Inputs, NewTask, OutputSlots, Task, Tasks};
use crate::journal::{About, Fact};
use crate::slab::Slot;
use crate::{MS, Now};
use tharsis_types::{LeaseId, TaskId};

/// Stages of a task from submission to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owner) enum TaskState {
    /// Some of its arguments have no value.
    Waiting {
        /// Number of arguments still missing.
        missing: u32,
    },
    /// It waits for a lease.
    Queued,
    /// It was sent to a worker.
    Sent {
        /// The lease under which it was sent.
        lease: LeaseId,
    },
    /// It has ended, and is kept so that its outputs can be computed again.
    Kept {
        /// Its place in the order of age.
        since: u64,
    },
    /// It ended while it stood in a queue: its entry is removed when its turn comes.
    Tombstone,
}

impl Task {
    /// Whether it has not ended yet.
    pub(in crate::owner) fn is_unfinished(&self) -> bool {
        !matches!(self.state, TaskState::Tombstone | TaskState::Kept { .. })
    }

    pub(in crate::owner) fn is_sent_under(&self, lease: LeaseId) -> bool {
        self.state == TaskState::Sent { lease }
    }

    pub(in crate::owner) fn is_kept(&self) -> bool {
        matches!(self.state, TaskState::Kept { .. })
    }

    fn enter(&mut self, state: TaskState, now: Now) {
        (self.state, self.since) = (state, now);
    }

    /// Asserts that it is sent.
    pub(super) fn assert_sent(&self) {
        assert!(matches!(self.state, TaskState::Sent { .. }), "{} is {:?}, not sent", self.id, self.state);
    }

    /// Asserts that it is queued.
    fn assert_queued(&self) {
        assert!(self.state == TaskState::Queued, "{} is {:?}, not queued", self.id, self.state);
    }
}

impl Tasks {
    /// Adds a task that waits for nothing yet.
    pub(in crate::owner) fn insert(&mut self, new: NewTask<'_>) -> Slot<Task> {
        let mut task = Task {
            id: new.id,
            class: new.class,
            state: TaskState::Waiting { missing: 0 },
            since: self.journal.now(),
            attempt: 0,
            retries_left: new.retries,
            run_ns: 0,
            cancelled: false,
            is_call: false,
            is_group: false,
            depth: new.depth,
            priority: new.priority,
            member: new.member,
            payload: new.payload,
            inputs: None,
            first_output: None,
            more_outputs: None,
        };
        task.set_outputs(new.outputs);
        self.begun(new.id);
        let slot = self.entries.insert(task);
        self.by_job.enter(slot, new.id.job());
        slot
    }

    /// A task that was just entered waits for so many steps of its graph; the graph tells it when they have
    /// ended.
    pub(in crate::owner) fn awaits_step(&mut self, slot: Slot<Task>, missing: u32) {
        let task = &mut self.entries[slot];
        assert!(0 < missing && task.member.is_some(), "{} waits for no step", task.id);
        task.enter(TaskState::Waiting { missing }, self.journal.now());
        self.journal.note(About::Task(task.id), Fact::Waits(missing));
    }

    /// One more argument of a waiting task has its value. Returns whether it was the last; `None` if the task
    /// has ended because another argument failed at the same time.
    pub(in crate::owner) fn input_arrived(&mut self, slot: Slot<Task>) -> Option<bool> {
        let task = self.entries.get_mut(slot)?;
        let TaskState::Waiting { missing } = &mut task.state else { return None };
        assert!(0 < *missing, "{} is told of an argument that it does not wait for", task.id);
        *missing -= 1;
        Some(*missing == 0)
    }

    /// All arguments have their values.
    pub(in crate::owner) fn waiting_to_queued(&mut self, slot: Slot<Task>) {
        let task = &mut self.entries[slot];
        let is_ready = task.state == TaskState::Waiting { missing: 0 };
        assert!(is_ready, "{} is {:?}, not ready to be queued", task.id, task.state);
        task.enter(TaskState::Queued, self.journal.now());
        if task.inputs.is_some() {
            self.journal.note(About::Task(task.id), Fact::Queued);
        }
    }

    /// Its turn in the queue has come, for a lease.
    pub(in crate::owner) fn queued_to_sent(&mut self, slot: Slot<Task>, lease: LeaseId) {
        let task = &mut self.entries[slot];
        task.assert_queued();
        task.enter(TaskState::Sent { lease }, self.journal.now());
        if task.inputs.is_some() || 0 < task.attempt {
            self.journal.note(About::Task(task.id), Fact::Sent(lease));
        }
    }

    /// It was taken out of its queue to fail, or to be queued anew.
    pub(in crate::owner) fn queued_to_waiting(&mut self, slot: Slot<Task>) {
        let task = &mut self.entries[slot];
        task.assert_queued();
        task.enter(TaskState::Waiting { missing: 0 }, self.journal.now());
    }

    /// It was taken back, or runs again.
    pub(in crate::owner) fn sent_to_queued(&mut self, slot: Slot<Task>) {
        let task = &mut self.entries[slot];
        task.assert_sent();
        task.enter(TaskState::Queued, self.journal.now());
        self.journal.note(About::Task(task.id), Fact::BackInQueue);
    }

    /// Its attempt has failed, and another one follows. Returns whether it waits before that; if not, it is
    /// still to be queued.
    pub(in crate::owner) fn sent_to_paused(&mut self, slot: Slot<Task>) -> bool {
        let now = self.journal.now();
        let task = &mut self.entries[slot];
        task.assert_sent();
        let due = self.pauses.failed(slot, (task.id, task.attempt), task.since, now);
        let Some(due) = due else { return false };
        task.enter(TaskState::Waiting { missing: 0 }, now);
        self.journal.note(About::Task(task.id), Fact::Paused(due.saturating_sub(now) / MS));
        true
    }

    /// It was taken back, and some of its arguments are being computed again.
    pub(in crate::owner) fn sent_to_waiting(&mut self, slot: Slot<Task>, missing: u32) {
        let task = &mut self.entries[slot];
        task.assert_sent();
        assert!(0 < missing, "{} waits for nothing", task.id);
        task.enter(TaskState::Waiting { missing }, self.journal.now());
        self.journal.note(About::Task(task.id), Fact::WaitsAgain(missing));
    }

    /// It has ended, and its outputs are worth computing again.
    pub(in crate::owner) fn sent_to_kept(&mut self, slot: Slot<Task>) {
        let task = &mut self.entries[slot];
        task.assert_sent();
        task.member = None;
        let (id, since) = (task.id, self.lineage.add(slot, task.kept_bytes()));
        task.enter(TaskState::Kept { since }, self.journal.now());
        self.journal.note(About::Task(id), Fact::Kept);
        self.ended(slot, id);
    }

    /// It runs again, as another attempt, for new entries of its outputs; `missing` of its arguments have no
    /// value.
    pub(in crate::owner) fn kept_to_waiting(
        &mut self,
        slot: Slot<Task>,
        outputs: &[Slot<super::Object>],
        missing: u32,
    ) {
        self.forget_kept(slot);
        let task = &mut self.entries[slot];
        assert_eq!(task.output_count(), outputs.len(), "{} has lost an output", task.id);
        task.set_outputs(outputs);
        task.enter(TaskState::Waiting { missing }, self.journal.now());
        let id = task.id;
        self.journal.note(About::Task(id), Fact::RunsAgain(task.attempt));
        self.begun(id);
    }

    /// It is not kept any more: nothing needs its outputs, or kept tasks took too much memory.
    pub(in crate::owner) fn kept_to_gone(&mut self, slot: Slot<Task>) -> Option<Box<Inputs>> {
        self.forget_kept(slot);
        self.names.remove(&slot);
        let task = self.entries.take(slot);
        self.journal.note(About::Task(task.id), Fact::Forgotten);
        task.inputs
    }

    /// It ended in its queue.
    fn queued_to_tombstone(&mut self, slot: Slot<Task>) -> Option<Box<Inputs>> {
        let task = &mut self.entries[slot];
        task.assert_queued();
        task.enter(TaskState::Tombstone, self.journal.now());
        task.more_outputs = None;
        task.inputs.take()
    }

    /// Removes a tombstone whose turn has come; false if the task is none.
    pub(in crate::owner) fn tombstone_to_gone(&mut self, slot: Slot<Task>) -> bool {
        let is_tombstone = self.entries[slot].state == TaskState::Tombstone;
        if is_tombstone {
            self.entries.take(slot);
        }
        is_tombstone
    }

    /// Ends an unfinished task for good: it leaves the table, or a tombstone in its queue. Returns its
    /// outputs and its references.
    pub(in crate::owner) fn end(&mut self, slot: Slot<Task>) -> (OutputSlots, Option<Box<Inputs>>) {
        let task = &self.entries[slot];
        assert!(task.is_unfinished(), "{} ends twice", task.id);
        let outputs: OutputSlots = task.output_slots().flatten().collect();
        assert_eq!(outputs.len(), task.output_count(), "{} lacks an output", task.id);
        let (id, is_queued) = (task.id, task.state == TaskState::Queued);
        self.ended(slot, id);
        if !self.names.is_empty() {
            self.names.remove(&slot);
        }
        let fact = if is_queued { Fact::EndedInQueue } else { Fact::Ended };
        self.journal.note(About::Task(id), fact);
        if is_queued {
            (outputs, self.queued_to_tombstone(slot))
        } else {
            (outputs, self.entries.take(slot).inputs)
        }
    }

    fn begun(&mut self, id: TaskId) {
        *self.unfinished.entry(id.job()).or_default() += 1;
    }

    /// A task is not unfinished any more, for whatever reason.
    fn ended(&mut self, slot: Slot<Task>, id: TaskId) {
        self.deadlines.forget(slot);
        self.pauses.forget(slot);
        self.comebacks.forget(slot);
        let job = id.job();
        let count = self.unfinished.get_mut(&job).filter(|count| 0 < **count);
        assert!(count.is_some(), "more tasks of {job} end than there are");
        if let Some(count) = count {
            *count -= 1;
            if *count == 0 {
                self.unfinished.remove(&job);
            }
        }
    }
}
