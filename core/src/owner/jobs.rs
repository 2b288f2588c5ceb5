//! Jobs that have ended: none of their tasks starts again, and their classes are forgotten when unused.

use super::{Owner, TRIM_AFTER};
use crate::Now;
use crate::jobs::JobSet;
use std::collections::BTreeSet;
use std::sync::Arc;
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

/// Quotas of jobs.
impl Owner {
    /// A job has a quota.
    pub fn set_quota(&mut self, job: JobId, terms: &Arc<JobQuota>) {
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
