//! Deadlines that tasks have from the tasks that called them.
//!
//! A task with a timeout hands the end of its time to the tasks that it calls, and these to theirs: nothing
//! that was called for it goes on when its time is over, even if it has returned before. A deadline holds
//! from the call on, so it also ends tasks that wait for arguments or for their turn. It holds for all
//! attempts together. Actors and placement groups have no deadline: handles of them outlive the task that
//! created them.
//!
//! The node of the ledger keeps the deadlines of its tasks, wherever they run. Clocks of nodes are not
//! compared: a task that runs on another node hands on no deadline by itself, but what it calls is cancelled
//! with it.

use super::{Effect, Owner, Task};
use crate::Now;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::task::Role;
use tharsis_types::{Failure, FailureKind, Placement, TaskId};

impl Owner {
    /// The deadline that a task has from its callers.
    pub(crate) fn deadline_of(&self, slot: Slot<Task>, id: TaskId) -> Option<Now> {
        let due = self.tasks.deadlines.of(slot)?;
        // A run may outlive its task for a moment, whose slot is then another one's.
        self.tasks.get(slot).is_some_and(|task| task.id() == id).then_some(due)
    }

    /// Sets the deadline of a task that was just entered.
    pub(super) fn set_deadline(&mut self, slot: Slot<Task>, due: Option<Now>) {
        let class = self.class_of(slot);
        let runs = class.role == Role::Task && !matches!(class.placement, Placement::Reserve(_));
        if let Some(due) = due.filter(|_| runs) {
            self.tasks.deadlines.set(slot, due);
        }
    }

    /// Ends the tasks whose deadlines are over: those that were sent are cancelled where they run, with what
    /// they have called.
    pub(super) fn end_overdue(&mut self, now: Now, out: &mut Vec<Effect>) {
        while let Some(slot) = self.tasks.deadlines.take_overdue(now) {
            match self.node_of(slot) {
                Some(to) => {
                    self.tasks.set_cancelled(slot);
                    let task = self.tasks[slot].id();
                    out.push(Effect::Cancel { to, task, force: true, recursive: true });
                }
                None => {
                    let failure = self.located_failure(slot, &deadline_failure(), self.me);
                    self.fail(slot, &failure, out);
                }
            }
        }
    }

    /// The failure of a task that was cancelled, however it ended.
    pub(super) fn failure_of_cancelled(&self, slot: Slot<Task>, failure: &Arc<Failure>) -> Arc<Failure> {
        if self.tasks.deadlines.is_over(slot) {
            return Arc::new(deadline_failure());
        }
        // This holds however it ended: with its worker, or because the failure of a child that was cancelled
        // too came first.
        match failure.kind {
            FailureKind::Cancelled => failure.clone(),
            _ => Arc::new(Failure::new(FailureKind::Cancelled, "cancelled").because((**failure).clone())),
        }
    }
}

/// The failure of a task that nodes could not start because they did not reach its arguments.
pub(crate) fn unreached_failure(timeout_ms: u64) -> Failure {
    let text = format!("its arguments were not reached for longer than its timeout of {timeout_ms} ms");
    Failure::new(FailureKind::TimedOut, text)
}

fn deadline_failure() -> Failure {
    Failure::new(FailureKind::TimedOut, "the time of the task that called it was over")
}
