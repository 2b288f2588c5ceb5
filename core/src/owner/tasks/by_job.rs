//! Tasks by job: those of one job are found without a look at those of others.
//!
//! Each job has a list of slots. A slot stays in it when its task has gone, since the next task there is
//! nearly always of the same job, and then there is nothing to do. Slots that other jobs have taken are left
//! out when a list has doubled: a few looks for each slot that was entered.

use super::Task;
use crate::slab::Slot;
use std::collections::BTreeSet;
use tharsis_types::JobId;
use tharsis_types::hash::IdMap;

/// Entries of a list from which none is left out.
const FEW: usize = 64;
/// No job has this number.
const NOBODY: JobId = JobId(0);

/// The slots of tasks, by job.
#[derive(Debug, Default)]
pub(super) struct ByJob {
    lists: IdMap<JobId, List>,
    /// The job in whose list each slot was entered last, by number.
    entered: Vec<JobId>,
}

#[derive(Debug, Default)]
struct List {
    slots: Vec<Slot<Task>>,
    /// Number from which on slots of other jobs are left out.
    full: usize,
}

impl ByJob {
    /// A slot has a task of a job. `is_its` says of other slots whether they have one.
    pub(super) fn enter(&mut self, slot: Slot<Task>, job: JobId, is_its: impl Fn(Slot<Task>) -> bool) {
        let at = slot.number() as usize;
        if self.entered.get(at) == Some(&job) {
            return;
        }
        if self.entered.len() <= at {
            self.entered.resize(at + 1, NOBODY);
        }
        if self.lists.get(&job).is_some_and(|list| list.full.max(FEW) <= list.slots.len()) {
            self.clean(job, is_its);
        }
        self.entered[at] = job;
        self.lists.entry(job).or_default().slots.push(slot);
    }

    /// The slots of a job, in their order.
    pub(super) fn of(&self, job: JobId, is_its: impl Fn(Slot<Task>) -> bool) -> Vec<Slot<Task>> {
        let listed = self.lists.get(&job).into_iter().flat_map(|list| &list.slots);
        let mut slots: Vec<_> = listed.copied().filter(|slot| is_its(*slot)).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// The jobs that have or had any.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.lists.keys().copied()
    }

    /// Whether a job has any.
    pub(super) fn has(&self, job: JobId, is_its: impl Fn(Slot<Task>) -> bool) -> bool {
        self.lists.get(&job).is_some_and(|list| list.slots.iter().any(|slot| is_its(*slot)))
    }

    /// A job has no tasks, and gets none.
    pub(super) fn forget(&mut self, job: JobId) {
        for slot in self.lists.remove(&job).into_iter().flat_map(|list| list.slots) {
            self.leave(slot, job);
        }
    }

    /// Asserts that the slots of tasks are found.
    pub(super) fn check(&self, tasks: impl Iterator<Item = (Slot<Task>, JobId)>) {
        let all = self.lists.iter().flat_map(|(job, list)| list.slots.iter().map(|slot| (*job, *slot)));
        let listed: BTreeSet<_> = all.collect();
        let entered = self.entered.iter().enumerate().filter(|(_, job)| **job != NOBODY);
        let entered = entered.map(|(at, job)| (Slot::from_number(at as u32), *job));
        for (slot, job) in tasks.chain(entered) {
            assert!(listed.contains(&(job, slot)), "{slot:?} is not in the list of {job}");
        }
    }

    /// Leaves the slots of other jobs out of a list.
    fn clean(&mut self, job: JobId, is_its: impl Fn(Slot<Task>) -> bool) {
        let kept = self.of(job, &is_its);
        let Some(list) = self.lists.get_mut(&job) else { return };
        list.full = 2 * kept.len();
        for slot in std::mem::replace(&mut list.slots, kept) {
            if !is_its(slot) {
                self.leave(slot, job);
            }
        }
    }

    fn leave(&mut self, slot: Slot<Task>, job: JobId) {
        if let Some(entered) = self.entered.get_mut(slot.number() as usize).filter(|of| **of == job) {
            *entered = NOBODY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const A: JobId = JobId(1);
    const B: JobId = JobId(2);

    /// Slots with the jobs of their tasks, and the number of looks at them.
    struct Bench {
        by_job: ByJob,
        jobs: Vec<JobId>,
        looks: Cell<usize>,
    }

    impl Bench {
        fn new(count: u32) -> Self {
            Self { by_job: ByJob::default(), jobs: vec![NOBODY; count as usize], looks: Cell::new(0) }
        }

        fn is_its(jobs: &[JobId], looks: &Cell<usize>, job: JobId, slot: Slot<Task>) -> bool {
            looks.set(looks.get() + 1);
            jobs[slot.number() as usize] == job
        }

        fn enter(&mut self, number: u32, job: JobId) {
            let (jobs, looks) = (&mut self.jobs, &self.looks);
            jobs[number as usize] = job;
            let slot = Slot::from_number(number);
            self.by_job.enter(slot, job, |slot| Self::is_its(jobs, looks, job, slot));
        }

        fn of(&self, job: JobId) -> Vec<u32> {
            let slots = self.by_job.of(job, |slot| Self::is_its(&self.jobs, &self.looks, job, slot));
            slots.into_iter().map(Slot::number).collect()
        }

        fn check(&self) {
            let tasks = self.jobs.iter().enumerate().filter(|(_, job)| **job != NOBODY);
            self.by_job.check(tasks.map(|(at, job)| (Slot::from_number(at as u32), *job)));
        }
    }

    #[test]
    fn the_end_of_a_job_looks_at_its_own_tasks_only() {
        let mut bench = Bench::new(100_010);
        (0..100_000).for_each(|number| bench.enter(number, A));
        (100_000..100_010).for_each(|number| bench.enter(number, B));
        bench.check();
        assert!(bench.looks.get() < 4 * 100_010, "{} looks to enter them", bench.looks.get());
        bench.looks.set(0);
        assert_eq!(bench.of(B), (100_000..100_010).collect::<Vec<_>>());
        assert!(bench.looks.get() <= 10, "{} looks at ten tasks", bench.looks.get());
    }

    #[test]
    fn a_slot_that_goes_to_and_fro_between_jobs_is_found_once() {
        let mut bench = Bench::new(10);
        for turn in 0..10_000 {
            (0..10).for_each(|number| bench.enter(number, if (turn + number) % 2 == 0 { A } else { B }));
        }
        bench.check();
        assert_eq!((bench.of(A), bench.of(B)), (vec![1, 3, 5, 7, 9], vec![0, 2, 4, 6, 8]));
        assert!(bench.looks.get() < 4 * 100_000, "{} looks", bench.looks.get());
        let listed: usize = bench.by_job.lists.values().map(|list| list.slots.len()).sum();
        assert!(listed <= 2 * FEW, "{listed} entries for ten slots");
    }

    #[test]
    fn the_next_task_of_the_same_job_in_a_slot_costs_nothing() {
        let mut bench = Bench::new(1);
        (0..1_000).for_each(|_| bench.enter(0, A));
        assert_eq!((bench.by_job.lists[&A].slots.len(), bench.looks.get()), (1, 0));
        bench.jobs[0] = NOBODY;
        bench.by_job.forget(A);
        assert!(bench.by_job.lists.is_empty());
        bench.enter(0, A);
        assert_eq!(bench.of(A), [0], "it is entered anew");
    }
}
