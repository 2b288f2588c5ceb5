//! Quotas of jobs on the side of an owner: no more leases are asked for than they allow.
//!
//! The nodes that lend hold a job to its quota (`lease/quota.rs`). An owner that knows what it has asked for
//! itself spares them requests that could only wait. It does not know all: whether a task waits for others
//! and lends its CPUs, or what other owners hold. So each shape may have one request more than fits, which
//! waits where it is known.

use super::{LeaseUse, Schedule, Shape};
use crate::owner::Effect;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::{Failure, FailureKind, JobId, JobQuota, Resources};

impl Schedule {
    /// A job has a quota, or none.
    pub(in crate::owner) fn set_quota(&mut self, job: JobId, terms: Option<&Arc<JobQuota>>) {
        match terms {
            Some(terms) => drop(self.quotas.insert(job, Arc::clone(terms))),
            None => drop(self.quotas.remove(&job)),
        }
    }

    /// The quota of a job, if it has one.
    pub(in crate::owner) fn quota(&self, job: JobId) -> Option<&Arc<JobQuota>> {
        self.quotas.get(&job)
    }

    /// The failure of what needs more at once than the quota of its job allows.
    pub(in crate::owner) fn beyond_quota(&self, job: JobId, demand: &Resources) -> Option<Failure> {
        let reason = self.quota(job)?.quota.refuses(demand)?;
        Some(Failure::new(FailureKind::Infeasible, reason))
    }

    /// The same for the tasks of a shape. Those inside a placement group are counted with the group.
    pub(super) fn shape_beyond_quota(&self, shape: Slot<Shape>) -> Option<Failure> {
        let Shape { key, .. } = &self.shapes[shape];
        if self.shapes[shape].is_inside() { None } else { self.beyond_quota(key.job, &key.resources) }
    }

    /// Whether a shape may ask for one more lease now.
    pub(super) fn has_quota_left(&self, shape: Slot<Shape>) -> bool {
        self.fits_quota(shape) || self.requested(shape).next().is_none()
    }

    /// The quota of a shape's job, if it allows no further lease as far as this owner knows.
    pub(super) fn used_up(&self, shape: Slot<Shape>) -> Option<&Arc<JobQuota>> {
        self.quota(self.shapes[shape].key.job).filter(|_| !self.fits_quota(shape))
    }

    /// Whether one more lease of a shape and those that this owner knows to be in use fit the quota.
    fn fits_quota(&self, shape: Slot<Shape>) -> bool {
        self.fits_quota_with(shape, |used| !used.paused)
    }

    /// Whether a lease of a shape fits the quota in place of requests that wait at nodes without room: those
    /// of other shapes of its job hold nothing either, and may wait there for long.
    pub(super) fn fits_quota_instead(&self, shape: Slot<Shape>) -> bool {
        self.fits_quota_with(shape, |used| !(used.paused || used.waits()))
    }

    fn fits_quota_with(&self, shape: Slot<Shape>, counts: impl Fn(&LeaseUse) -> bool) -> bool {
        let shape = &self.shapes[shape];
        let Some(terms) = self.quota(shape.key.job).filter(|_| !shape.is_inside()) else { return true };
        let mut held = terms.quota.part(&shape.key.resources);
        for used in self.leases.values().filter(|used| counts(used)) {
            let other = &self.shapes[used.shape];
            if other.key.job == shape.key.job && !other.is_inside() {
                held.give(&terms.quota.part(&other.key.resources));
            }
        }
        terms.quota.all().fits(&held)
    }

    /// Gives back an idle lease of a job that no queue needs; false if there is none.
    pub(super) fn return_idle_of(&mut self, job: JobId, out: &mut Vec<Effect>) -> bool {
        let idle = self.leases.iter().find(|(_, used)| {
            let shape = &self.shapes[used.shape];
            let is_idle = used.is_granted() && used.in_flight.is_empty() && !shape.has_for(used.node);
            is_idle && shape.key.job == job && !shape.is_inside()
        });
        let Some(lease) = idle.map(|(lease, _)| *lease) else { return false };
        self.give_back(lease, out);
        true
    }
}
