//! Deadlines that tasks have from the tasks that called them.
//!
//! A task with a timeout hands the end of its time to the tasks that it calls, and these to theirs: nothing
//! that was called for it goes on when its time is over, even if it has returned before. A deadline holds
//! from the call on, so it also ends tasks that wait for arguments or for their turn. It holds for all
//! attempts together. Actors have no deadline: handles of them outlive the task that created them.
//!
//! The node of the ledger keeps the deadlines of its tasks, wherever they run. Clocks of nodes are not
//! compared: a task that runs on another node hands on no deadline by itself, but what it calls is cancelled
//! with it.

use super::{Effect, Owner, Task};
use crate::Now;
use crate::slab::Slot;
use std::collections::BTreeSet;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::task::Role;
use tharsis_types::{Failure, FailureKind, TaskId};

/// The deadlines of unfinished tasks; most tasks have none.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    of: IdMap<Slot<Task>, Now>,
    by_time: BTreeSet<(Now, Slot<Task>)>,
}

impl Deadlines {
    /// Sets the deadline of a new task.
    fn set(&mut self, task: Slot<Task>, due: Now) {
        let before = self.of.insert(task, due);
        assert!(before.is_none(), "{task:?} has two deadlines");
        self.by_time.insert((due, task));
    }

    /// A task has ended.
    pub(super) fn forget(&mut self, task: Slot<Task>) {
        if let Some(due) = self.of.remove(&task) {
            self.by_time.remove(&(due, task));
        }
    }

    /// Takes a task whose deadline is over; it keeps it until it has ended.
    fn take_overdue(&mut self, now: Now) -> Option<Slot<Task>> {
        let (due, task) = self.by_time.first().copied()?;
        (due <= now).then(|| {
            self.by_time.pop_first();
            task
        })
    }

    /// The next deadline.
    pub(super) fn next(&self) -> Option<Now> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// Whether the deadline of a task has come, and it was told to end.
    pub(super) fn is_over(&self, task: Slot<Task>) -> bool {
        self.of.get(&task).is_some_and(|due| !self.by_time.contains(&(*due, task)))
    }

    /// Number of tasks with a deadline.
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// Asserts that the deadlines are those of tasks that are not finished.
    pub(super) fn check(&self, is_unfinished: impl Fn(Slot<Task>) -> bool) {
        assert!(self.by_time.len() <= self.of.len(), "a deadline of no task");
        for task in self.of.keys() {
            assert!(is_unfinished(*task), "{task:?} has ended and has a deadline");
        }
    }
}

impl Owner {
    /// The deadline that a task has from its callers.
    pub(crate) fn deadline_of(&self, slot: Slot<Task>, id: TaskId) -> Option<Now> {
        let due = self.deadlines.of.get(&slot).copied()?;
        // A run may outlive its task for a moment, whose slot is then another one's.
        self.tasks.get(slot).is_some_and(|task| task.id() == id).then_some(due)
    }

    /// Sets the deadline of a task that was just entered.
    pub(super) fn set_deadline(&mut self, slot: Slot<Task>, due: Option<Now>, role: Role) {
        if let Some(due) = due.filter(|_| role == Role::Task) {
            self.deadlines.set(slot, due);
        }
    }

    /// Ends the tasks whose deadlines are over: those that were sent are cancelled where they run, with what
    /// they have called.
    pub(super) fn end_overdue(&mut self, now: Now, out: &mut Vec<Effect>) {
        while let Some(slot) = self.deadlines.take_overdue(now) {
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
        if self.deadlines.is_over(slot) {
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

fn deadline_failure() -> Failure {
    Failure::new(FailureKind::TimedOut, "the time of the task that called it was over")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;

    #[test]
    fn deadlines_come_in_order_and_stay_until_their_task_has_ended() {
        let mut places = Slab::<u8>::default();
        let [a, b, c] = [0, 1, 2].map(|n| Slot::<Task>::from_number(places.insert(n).number()));
        let mut deadlines = Deadlines::default();
        deadlines.set(a, 30);
        deadlines.set(b, 10);
        deadlines.set(c, 20);
        assert_eq!((deadlines.next(), deadlines.take_overdue(9)), (Some(10), None));
        assert_eq!(deadlines.take_overdue(10), Some(b));
        assert!(deadlines.is_over(b) && !deadlines.is_over(c));
        deadlines.forget(c);
        deadlines.forget(b);
        assert_eq!((deadlines.next(), deadlines.len()), (Some(30), 1));
        deadlines.check(|task| task == a);
        assert_eq!(deadlines.take_overdue(100), Some(a));
        assert_eq!((deadlines.take_overdue(100), deadlines.next(), deadlines.len()), (None, None, 1));
        deadlines.forget(a);
        assert_eq!(deadlines.len(), 0);
    }
}
