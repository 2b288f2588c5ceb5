//! Deadlines of tasks, by time.

use super::Task;
use crate::Now;
use crate::slab::Slot;
use std::collections::BTreeSet;
use tharsis_types::hash::IdMap;

/// The deadlines of unfinished tasks; most tasks have none.
#[derive(Debug, Default)]
pub(in crate::owner) struct Deadlines {
    of: IdMap<Slot<Task>, Now>,
    by_time: BTreeSet<(Now, Slot<Task>)>,
}

impl Deadlines {
    /// Sets the deadline of a new task.
    pub(in crate::owner) fn set(&mut self, task: Slot<Task>, due: Now) {
        let before = self.of.insert(task, due);
        assert!(before.is_none(), "{task:?} has two deadlines");
        self.by_time.insert((due, task));
    }

    /// A task has ended. [`super::Tasks`] says so itself, for each end of a task: its slot is then another's.
    pub(super) fn forget(&mut self, task: Slot<Task>) {
        // Each end of a task comes here, and hardly one has a deadline.
        if self.of.is_empty() {
            return;
        }
        if let Some(due) = self.of.remove(&task) {
            self.by_time.remove(&(due, task));
        }
    }

    /// Takes a task whose deadline is over; it keeps it until it has ended.
    pub(in crate::owner) fn take_overdue(&mut self, now: Now) -> Option<Slot<Task>> {
        let (due, task) = self.by_time.first().copied()?;
        (due <= now).then(|| {
            self.by_time.pop_first();
            task
        })
    }

    /// The next deadline.
    pub(in crate::owner) fn next(&self) -> Option<Now> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// The deadline of a task.
    pub(in crate::owner) fn of(&self, task: Slot<Task>) -> Option<Now> {
        self.of.get(&task).copied()
    }

    /// Whether the deadline of a task has come, and it was told to end.
    pub(in crate::owner) fn is_over(&self, task: Slot<Task>) -> bool {
        self.of.get(&task).is_some_and(|due| !self.by_time.contains(&(*due, task)))
    }

    /// Number of tasks with a deadline.
    pub(in crate::owner) fn len(&self) -> usize {
        self.of.len()
    }

    /// Asserts that the deadlines are those of tasks that are not finished.
    pub(in crate::owner) fn check(&self, is_unfinished: impl Fn(Slot<Task>) -> bool) {
        assert!(self.by_time.len() <= self.of.len(), "a deadline of no task");
        for task in self.of.keys() {
            assert!(is_unfinished(*task), "{task:?} has ended and has a deadline");
        }
    }
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
