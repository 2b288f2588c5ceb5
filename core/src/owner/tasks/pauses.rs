//! Pauses before the next attempts of tasks that have failed.
//!
//! A first failure costs no time: a worker that was lost is no sign that the next one is lost too. From the
//! second failure in a row on a task waits, twice as long each time, up to a bound: what fails because
//! something else is away (a service, a disk, the memory of a node) must neither spend its retries within a
//! moment nor keep the cluster busy with starts. The pauses of tasks that have failed together differ, so
//! that they do not come back together. An attempt that has run for long begins the count anew.
//!
//! Restarts of an actor are attempts of its constructor, which goes on for as long as the actor lives.

use super::Task;
use crate::slab::Slot;
use crate::{MS, Now};
use std::collections::BTreeSet;
use tharsis_types::hash::IdMap;
use tharsis_types::{Attempt, TaskId};

/// The pause after the second failure in a row, at most.
const FIRST: Now = 50 * MS;
/// The longest pause.
const LONGEST: Now = 10_000 * MS;
/// Doublings of the first pause that reach the longest one.
const DOUBLINGS_MAX: u32 = 8;
const _: () = assert!(LONGEST <= FIRST << DOUBLINGS_MAX, "pauses grow up to the longest one");
/// An attempt that ran for this long does not count as one in a row.
const CALM_AFTER: Now = 30_000 * MS;

/// Tasks that have failed, and those that wait before their next attempt.
#[derive(Debug, Default)]
pub(in crate::owner) struct Pauses {
    /// Failures in a row.
    failures: IdMap<Slot<Task>, u32>,
    due: IdMap<Slot<Task>, Now>,
    by_time: BTreeSet<(Now, Slot<Task>)>,
}

impl Pauses {
    /// An attempt that began at `since` has failed, and another one is to follow. Returns the end of the
    /// pause before it if there is one.
    pub(super) fn failed(
        &mut self,
        slot: Slot<Task>,
        (task, attempt): (TaskId, Attempt),
        since: Now,
        now: Now,
    ) -> Option<Now> {
        let failures = self.failures.entry(slot).or_default();
        *failures = if CALM_AFTER <= now.saturating_sub(since) { 1 } else { failures.saturating_add(1) };
        let due = now.saturating_add(pause(*failures, task, attempt)?);
        let before = self.due.insert(slot, due);
        assert!(before.is_none(), "{slot:?} fails while it waits");
        self.by_time.insert((due, slot));
        Some(due)
    }

    /// A task has ended. [`super::Tasks`] says so itself: its slot is then another's.
    pub(super) fn forget(&mut self, slot: Slot<Task>) {
        // Each end of a task comes here, and hardly one has a pause.
        if self.failures.is_empty() && self.due.is_empty() {
            return;
        }
        self.failures.remove(&slot);
        if let Some(due) = self.due.remove(&slot) {
            self.by_time.remove(&(due, slot));
        }
    }

    /// Takes a task whose pause is over.
    pub(in crate::owner) fn take_due(&mut self, now: Now) -> Option<Slot<Task>> {
        let (_, slot) = self.by_time.first().copied().filter(|(due, _)| *due <= now)?;
        self.by_time.pop_first();
        self.due.remove(&slot);
        Some(slot)
    }

    /// When [`Pauses::take_due`] has something.
    pub(in crate::owner) fn next(&self) -> Option<Now> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// The end of the pause of a task that waits.
    pub(in crate::owner) fn until(&self, slot: Slot<Task>) -> Option<Now> {
        self.due.get(&slot).copied()
    }

    /// Number of tasks that have failed and not ended.
    pub(super) fn len(&self) -> usize {
        self.failures.len()
    }

    /// Asserts that pauses are those of waiting tasks, and failures those of unfinished ones.
    pub(super) fn check(
        &self,
        is_waiting: impl Fn(Slot<Task>) -> bool,
        is_unfinished: impl Fn(Slot<Task>) -> bool,
    ) {
        assert_eq!(self.due.len(), self.by_time.len(), "a pause never ends");
        for (slot, due) in &self.due {
            assert!(self.by_time.contains(&(*due, *slot)), "the pause of {slot:?} never ends");
            assert!(is_waiting(*slot), "{slot:?} waits before its next attempt and is elsewhere");
        }
        assert!(self.failures.keys().all(|slot| is_unfinished(*slot)), "failures of a task that has ended");
    }
}

/// The pause after so many failures in a row: between half and all of a time that doubles. The part is
/// derived from the task and its attempt, so it is the same whenever the same happens.
fn pause(failures: u32, task: TaskId, attempt: Attempt) -> Option<Now> {
    let doublings = failures.checked_sub(2)?.min(DOUBLINGS_MAX);
    let longest = (FIRST << doublings).min(LONGEST);
    let part = task.child(u64::from(attempt) * u64::from(TaskId::SIBLINGS)).mixed() % (longest / 2 + 1);
    Some(longest - part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;
    use std::collections::BTreeSet;
    use tharsis_types::JobId;

    fn task(number: u64) -> TaskId {
        TaskId::root(JobId(1)).child(number)
    }

    #[test]
    fn pauses_double_from_the_second_failure_on_and_are_bounded() {
        assert_eq!(pause(0, task(1), 0), None);
        assert_eq!(pause(1, task(1), 1), None, "the first costs no time");
        let mut longest = FIRST;
        for failures in 2..100 {
            let pause = pause(failures, task(1), failures).unwrap();
            assert!((longest / 2..=longest).contains(&pause), "{pause} after {failures} failures");
            longest = (2 * longest).min(LONGEST);
        }
        assert!(pause(u32::MAX, task(1), u32::MAX).unwrap() <= LONGEST);
    }

    #[test]
    fn tasks_that_fail_together_do_not_come_back_together() {
        let pauses: BTreeSet<_> = (0..100).map(|number| pause(5, task(number), 5).unwrap()).collect();
        assert!(90 < pauses.len(), "{}", pauses.len());
        assert_eq!(pause(5, task(7), 5), pause(5, task(7), 5), "and yet nothing is random");
    }

    #[test]
    fn a_task_waits_until_its_time_and_a_calm_attempt_begins_anew() {
        let mut places = Slab::<u8>::default();
        let [a, b] = [0, 1].map(|n| Slot::<Task>::from_number(places.insert(n).number()));
        let mut pauses = Pauses::default();
        assert_eq!(pauses.failed(a, (task(1), 1), 0, MS), None);
        let due = pauses.failed(a, (task(1), 2), MS, 2 * MS).unwrap();
        assert_eq!((pauses.next(), pauses.until(a)), (Some(due), Some(due)));
        assert_eq!(
            (pauses.take_due(due - 1), pauses.take_due(due), pauses.take_due(due)),
            (None, Some(a), None)
        );
        assert_eq!(pauses.failed(a, (task(1), 3), due, due + CALM_AFTER), None, "it ran for long");
        assert_eq!(pauses.failed(b, (task(2), 1), 0, 0), None);
        pauses.failed(b, (task(2), 2), 0, 0).unwrap();
        pauses.forget(b);
        assert_eq!((pauses.next(), pauses.len()), (None, 1));
        assert_eq!(pauses.failed(b, (task(3), 1), 0, 0), None, "another task has its slot");
    }
}
