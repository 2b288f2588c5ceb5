//! Tasks by job: those of one job are found without a look at all those of others.
//!
//! The table of tasks has pages. Each job has a list of those in which it has or had a task, so its tasks are
//! found by a look at these pages: at one for each of its tasks, at most, and as a rule at far fewer. A new
//! task costs a comparison with the job of the one before it in its page. A list for each job of its tasks
//! would be exact, and cost each task more than all else that its entry takes.

use super::Task;
use crate::slab::Slot;
use std::collections::BTreeSet;
use tharsis_types::JobId;
use tharsis_types::hash::IdMap;

/// No job has this number.
const NOBODY: JobId = JobId(0);

/// The pages of tasks, by job.
#[derive(Debug, Default)]
pub(super) struct ByJob {
    pages: IdMap<JobId, BTreeSet<u32>>,
    /// The job of the last task that was entered in each page: the page is in its list.
    last: Vec<JobId>,
}

impl ByJob {
    /// A slot has a task of a job.
    pub(super) fn enter(&mut self, slot: Slot<Task>, job: JobId) {
        let page = slot.page();
        let at = page as usize;
        if self.last.get(at) == Some(&job) {
            return;
        }
        if self.last.len() <= at {
            self.last.resize(at + 1, NOBODY);
        }
        self.last[at] = job;
        self.pages.entry(job).or_default().insert(page);
    }

    /// The pages in which a job has or had tasks, in their order.
    pub(super) fn pages(&self, job: JobId) -> impl Iterator<Item = u32> {
        self.pages.get(&job).into_iter().flatten().copied()
    }

    /// The jobs that have or had any.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.pages.keys().copied()
    }

    /// A job has no tasks, and gets none.
    pub(super) fn forget(&mut self, job: JobId) {
        for page in self.pages.remove(&job).into_iter().flatten() {
            if let Some(last) = self.last.get_mut(page as usize).filter(|last| **last == job) {
                *last = NOBODY;
            }
        }
    }

    /// Asserts that the pages of tasks are found.
    pub(super) fn check(&self, tasks: impl Iterator<Item = (Slot<Task>, JobId)>) {
        let entered = self.last.iter().enumerate().filter(|(_, job)| **job != NOBODY);
        let entered = entered.map(|(page, job)| (page as u32, *job));
        for (page, job) in tasks.map(|(slot, job)| (slot.page(), job)).chain(entered) {
            let is_listed = self.pages.get(&job).is_some_and(|pages| pages.contains(&page));
            assert!(is_listed, "page {page} is not in the list of {job}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: JobId = JobId(1);
    const B: JobId = JobId(2);

    fn slot(number: u32) -> Slot<Task> {
        Slot::from_number(number)
    }

    #[test]
    fn a_job_has_the_pages_of_its_own_tasks_only() {
        let mut by_job = ByJob::default();
        (0..100_000).for_each(|number| by_job.enter(slot(number), A));
        (100_000..100_010).for_each(|number| by_job.enter(slot(number), B));
        assert_eq!(by_job.pages(B).collect::<Vec<_>>(), [slot(100_000).page()]);
        assert_eq!(by_job.pages(A).count(), slot(99_999).page() as usize + 1);
        let all = (0..100_010).map(|number| (slot(number), if number < 100_000 { A } else { B }));
        by_job.check(all);
    }

    #[test]
    fn tasks_that_come_and_go_add_nothing() {
        let mut by_job = ByJob::default();
        for turn in 0..10_000 {
            (0..10)
                .for_each(|number| by_job.enter(slot(number), if (turn + number) % 2 == 0 { A } else { B }));
        }
        assert_eq!((by_job.pages(A).count(), by_job.pages(B).count(), by_job.last.len()), (1, 1, 1));
        by_job.forget(B);
        by_job.check([(slot(0), A)].into_iter());
        by_job.forget(A);
        assert!(by_job.pages.is_empty() && by_job.jobs().next().is_none());
        by_job.enter(slot(0), A);
        assert_eq!(by_job.pages(A).collect::<Vec<_>>(), [0], "it is entered anew");
    }
}
