//! Jobs that have ended: none of their tasks starts again, and their classes are forgotten when unused.

use super::{Owner, TRIM_AFTER};
use crate::Now;
use crate::jobs::JobSet;
use std::collections::BTreeSet;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{Failure, FailureKind, JobId, JobQuota};

/// Jobs whose driver is gone.
#[derive(Debug, Default)]
pub(super) struct EndedJobs {
    all: JobSet,
    /// Ended jobs that may have classes left.
    ending: BTreeSet<JobId>,
    /// When to look at the ending jobs again.
    look_at: Now,
}

impl EndedJobs {
    pub(super) fn contains(&self, job: JobId) -> bool {
        self.all.contains(job)
    }

    /// A job has ended.
    pub(super) fn add(&mut self, job: JobId) {
        self.all.insert(job);
        self.ending.insert(job);
    }

    /// A class of a job was entered, perhaps late.
    pub(super) fn class_entered(&mut self, job: JobId) {
        if self.all.contains(job) {
            self.ending.insert(job);
        }
    }

    /// Whether some jobs may have classes left.
    pub(super) fn has_ending(&self) -> bool {
        !self.ending.is_empty()
    }

    /// Jobs that may have classes left.
    pub(super) fn ending(&self) -> impl Iterator<Item = JobId> {
        self.ending.iter().copied()
    }

    /// Whether a job may have classes left.
    pub(super) fn is_ending(&self, job: JobId) -> bool {
        self.ending.contains(&job)
    }

    /// Whether it is time to look at the ending jobs; the next time comes [`TRIM_AFTER`] later.
    pub(super) fn is_time(&mut self, now: Now) -> bool {
        let is_time = self.has_ending() && self.look_at <= now;
        if is_time {
            self.look_at = now + TRIM_AFTER;
        }
        is_time
    }

    /// Forgets the ending jobs except those that still have tasks or leases.
    pub(super) fn keep(&mut self, busy: BTreeSet<JobId>) {
        assert!(busy.is_subset(&self.ending), "a job is busy that was not about to end");
        self.ending = busy;
    }

    /// Asserts that the ending jobs are among the ended ones.
    pub(super) fn check(&self) {
        assert!(self.ending.iter().all(|job| self.all.contains(*job)), "a job goes that has not ended");
    }
}

/// Things that live on without the driver of their job: actors, or placement groups.
#[derive(Debug, Default)]
pub(super) struct Detached {
    of_job: IdMap<JobId, usize>,
    /// Whether the last one of some job has ended.
    last_left: bool,
}

impl Detached {
    /// A thing of a job needs no driver.
    pub(super) fn enter(&mut self, job: JobId) {
        *self.of_job.entry(job).or_default() += 1;
    }

    /// One has ended.
    pub(super) fn leave(&mut self, job: JobId) {
        let count = self.of_job.get_mut(&job).filter(|count| 0 < **count);
        assert!(count.is_some(), "more of {job} has ended than lived without its driver");
        if let Some(count) = count {
            *count -= 1;
            if *count == 0 {
                self.of_job.remove(&job);
                self.last_left = true;
            }
        }
    }

    /// Whether the last one of some job has ended since this was asked last.
    pub(super) fn take_last_left(&mut self) -> bool {
        std::mem::take(&mut self.last_left)
    }

    /// Whether a job has any.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.of_job.contains_key(&job)
    }

    /// Asserts that those of each job are counted.
    pub(super) fn check(&self, jobs: impl Iterator<Item = JobId>) {
        let mut counted = IdMap::<JobId, usize>::default();
        jobs.for_each(|job| *counted.entry(job).or_default() += 1);
        assert_eq!(counted, self.of_job, "what lives without its driver is miscounted");
    }
}

/// Quotas of jobs.
impl Owner {
    /// A job has a quota, or none.
    pub fn set_quota(&mut self, job: JobId, terms: Option<&Arc<JobQuota>>) {
        if !self.jobs.contains(job) {
            self.schedule.set_quota(job, terms);
        }
    }

    /// The quota of a job, if it has one.
    #[must_use]
    pub fn quota(&self, job: JobId) -> Option<&Arc<JobQuota>> {
        self.schedule.quota(job)
    }
}

/// Error of tasks whose job has ended.
pub(super) fn job_ended() -> Arc<Failure> {
    Arc::new(Failure::new(FailureKind::Shutdown, "the driver of the job is gone"))
}
