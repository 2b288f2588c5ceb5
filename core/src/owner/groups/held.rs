//! Leases of bundles, and what those of a job with a quota hold or were asked to hold of it.
//!
//! A group of such a job asks for its bundles only if they fit the quota beside all of these. So the groups
//! of a ledger never each hold what the others wait for. One that does not fit stands *behind*: it holds
//! nothing, and is looked at again when a lease of its job ends, after those that were made before it.
//! Smaller ones may pass it. Of those that lack the same, only the first is looked at, however many there
//! are.

use crate::owner::Object;
use crate::slab::Slot;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::hash::IdMap;
use tharsis_types::{JobId, LeaseId, Quota, Resources};

/// Leases of bundles by name, and the groups that stand behind others.
#[derive(Debug, Default)]
pub(super) struct Held {
    leases: IdMap<LeaseId, Bundle>,
    /// The parts of quotas that the leases of each job take.
    sums: BTreeMap<JobId, Resources>,
    /// Groups that stand behind others of their job, by what they lack, in the order in which they were made.
    behind: BTreeMap<JobId, BTreeMap<Resources, Line>>,
    /// The places of these.
    places: BTreeMap<Slot<Object>, Place>,
    /// Jobs of which the groups behind are to be looked at: a lease has ended, or one of them stands behind
    /// no more.
    relieved: BTreeSet<JobId>,
}

/// Groups that lack the same, each after its number.
type Line = BTreeSet<(u64, Slot<Object>)>;

#[derive(Debug)]
struct Place {
    job: JobId,
    lacks: Resources,
    number: u64,
}

#[derive(Debug)]
struct Bundle {
    group: Slot<Object>,
    /// The part of its job's quota that it takes, if that has one.
    counted: Option<(JobId, Resources)>,
}

impl Held {
    /// The group of a lease.
    pub(super) fn group(&self, lease: LeaseId) -> Option<Slot<Object>> {
        self.leases.get(&lease).map(|bundle| bundle.group)
    }

    /// A node is asked for a bundle of a group.
    pub(super) fn enter(
        &mut self,
        lease: LeaseId,
        group: Slot<Object>,
        (job, quota): (JobId, Option<&Quota>),
        bundle: &Resources,
    ) {
        let counted = quota.map(|quota| (job, quota.part(bundle)));
        if let Some((job, part)) = &counted {
            self.sums.entry(*job).or_default().give(part);
        }
        let before = self.leases.insert(lease, Bundle { group, counted });
        assert!(before.is_none(), "two leases have one name");
    }

    /// A lease is given back, or gone. Returns its group if it was one of a bundle.
    pub(super) fn leave(&mut self, lease: LeaseId) -> Option<Slot<Object>> {
        let Bundle { group, counted } = self.leases.remove(&lease)?;
        if let Some((job, part)) = counted {
            let sum = self.sums.entry(job).or_default();
            let was_held = sum.take(&part);
            assert!(was_held, "the groups of {job} give back more than they hold");
            if sum.is_nothing() {
                self.sums.remove(&job);
            }
            if self.behind.contains_key(&job) {
                self.relieved.insert(job);
            }
        }
        Some(group)
    }

    /// The amount of its job's quota that a group lacks, if the groups here hold too much for it.
    pub(super) fn lacks<'a>(
        &self,
        (job, quota): (JobId, Option<&Quota>),
        bundles: impl Iterator<Item = &'a Resources>,
    ) -> Option<Resources> {
        let quota = quota?;
        let mut lacks = Resources::default();
        bundles.for_each(|bundle| lacks.give(&quota.part(bundle)));
        let mut sum = self.sums.get(&job).cloned().unwrap_or_default();
        sum.give(&lacks);
        (!quota.all().fits(&sum)).then_some(lacks)
    }

    /// A group waits until others of its job hold less.
    pub(super) fn stand_behind(&mut self, group: Slot<Object>, job: JobId, number: u64, lacks: Resources) {
        self.stand_no_more(group);
        self.behind.entry(job).or_default().entry(lacks.clone()).or_default().insert((number, group));
        self.places.insert(group, Place { job, lacks, number });
    }

    /// A group does not wait for others of its job, or not any more: it is the turn of the next one.
    pub(super) fn stand_no_more(&mut self, group: Slot<Object>) {
        let Some(Place { job, lacks, number }) = self.places.remove(&group) else { return };
        let Some(lines) = self.behind.get_mut(&job) else { return };
        if let Some(line) = lines.get_mut(&lacks) {
            line.remove(&(number, group));
            if line.is_empty() {
                lines.remove(&lacks);
            }
        }
        if lines.is_empty() {
            self.behind.remove(&job);
            self.relieved.remove(&job);
        } else {
            self.relieved.insert(job);
        }
    }

    /// Whether a group stands behind others.
    pub(super) fn stands_behind(&self, group: Slot<Object>) -> bool {
        self.places.contains_key(&group)
    }

    /// Whether there are groups that stood behind and may fit now.
    pub(super) fn has_relieved(&self) -> bool {
        !self.relieved.is_empty()
    }

    /// Groups that stand behind and may fit now, each after its number.
    pub(super) fn take_relieved(&mut self) -> Vec<(u64, Slot<Object>)> {
        let relieved = std::mem::take(&mut self.relieved);
        let lines = relieved.iter().filter_map(|job| self.behind.get(job)).flat_map(BTreeMap::values);
        lines.filter_map(|line| line.first().copied()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    /// Asserts that the sums are those of the leases, and that all places are those in lines.
    pub(super) fn check(&self) {
        let mut sums: BTreeMap<JobId, Resources> = BTreeMap::new();
        for (job, part) in self.leases.values().filter_map(|bundle| bundle.counted.as_ref()) {
            sums.entry(*job).or_default().give(part);
        }
        sums.retain(|_, sum| !sum.is_nothing());
        assert!(sums.keys().eq(self.sums.keys()), "jobs with bundles are miscounted");
        for (job, sum) in sums {
            let known = &self.sums[&job];
            assert!(known.fits(&sum) && sum.fits(known), "the bundles of {job} are miscounted");
        }
        for (group, Place { job, lacks, number }) in &self.places {
            let line = self.behind.get(job).and_then(|lines| lines.get(lacks));
            assert!(line.is_some_and(|line| line.contains(&(*number, *group))), "a group stands nowhere");
        }
        let count: usize = self.behind.values().flat_map(BTreeMap::values).map(BTreeSet::len).sum();
        assert_eq!(count, self.places.len(), "a group stands behind others twice");
        let waits = |job: &JobId| self.behind.contains_key(job);
        assert!(self.relieved.iter().all(waits), "nobody stands behind the groups of a relieved job");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;

    #[test]
    fn of_very_many_groups_that_lack_the_same_only_the_first_is_looked_at() {
        let (job, quota) = (JobId(1), "cpus=2".parse::<Quota>().unwrap());
        let (one, two) = (Resources::cpus(1.0).unwrap(), Resources::cpus(2.0).unwrap());
        let mut slots = Slab::default();
        let mut held = Held::default();
        let holder = slots.insert(());
        let slot = |slot: Slot<()>| Slot::from_number(slot.number());
        held.enter(LeaseId(1), slot(holder), (job, Some(&quota)), &two);
        for number in 0..100_000 {
            let demand = if number % 2 == 0 { &two } else { &one };
            let lacks = held.lacks((job, Some(&quota)), [demand].into_iter()).unwrap();
            held.stand_behind(slot(slots.insert(())), job, number, lacks);
        }
        assert!(!held.has_relieved());
        assert_eq!(held.leave(LeaseId(1)), Some(slot(holder)));
        let firsts = held.take_relieved();
        assert_eq!(firsts.iter().map(|(number, _)| *number).collect::<BTreeSet<_>>(), [0, 1].into());
        held.check();
        // The first one is served: the next of its kind is looked at, and finds no room.
        let first = firsts.iter().find(|(number, _)| *number == 0).unwrap().1;
        held.stand_no_more(first);
        held.enter(LeaseId(2), first, (job, Some(&quota)), &two);
        let next: BTreeSet<_> = held.take_relieved().iter().map(|(number, _)| *number).collect();
        assert_eq!(next, [1, 2].into());
        assert!(held.lacks((job, Some(&quota)), [&one].into_iter()).is_some());
        held.check();
    }

    #[test]
    fn a_job_without_a_quota_lacks_nothing() {
        let mut held = Held::default();
        let all = Resources::cpus(1_000.0).unwrap();
        held.enter(LeaseId(1), Slot::from_number(1), (JobId(1), None), &all);
        assert_eq!(held.lacks((JobId(1), None), [&all].into_iter()), None);
        held.check();
    }
}
