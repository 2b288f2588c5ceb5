//! Requests that wait, by job and in the order of each: however many there are, the next one is found without
//! a look at the others, and so is that none can be served.
//!
//! Those inside placement groups stand apart, by group: they wait for the bundles of that group alone, so a
//! group is looked at only when something of it has changed, however many others wait.

use super::LeaseKey;
use super::bundles::{BundleId, held_bundle};
use crate::Now;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{JobId, Placement, Resources, TaskClass, TaskId};

/// The place of a request among those of its job: the most urgent first, then the oldest.
pub(super) type Place = (Reverse<i32>, u64);

/// Requests that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Those for resources of the node itself.
    outside: Queues,
    needs: Needs,
    /// The requests for each bundle, of which the first that is served leaves nothing for the others.
    for_bundles: BTreeSet<(BundleId, LeaseKey)>,
    inside: BTreeMap<TaskId, Group>,
    inside_count: usize,
    /// Groups of which requests or bundles have changed since they were looked at.
    changed: BTreeSet<TaskId>,
    /// When the reservations of groups end.
    reserved: BTreeSet<(Now, TaskId)>,
    /// The number of requests, in order, before the next one that a recall looks at besides the first.
    pub(super) looked_to: usize,
    /// The group after which a recall goes on with those inside groups.
    pub(super) recalled_to: Option<TaskId>,
}

/// Requests of the same resources: those of each job that has any.
#[derive(Debug, Default)]
pub(super) struct Queues {
    of_job: BTreeMap<JobId, BTreeMap<Place, LeaseKey>>,
    count: usize,
}

/// Requests inside a placement group.
#[derive(Debug, Default)]
struct Group {
    queues: Queues,
    /// When the first of the present reservations ends.
    reserved_until: Option<Now>,
    /// The number of requests, in order, before the next one that a recall looks at besides the first.
    looked_to: usize,
}

/// The numbers of requests that need certain amounts of CPUs, GPUs and memory of the node itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs([BTreeMap<u64, usize>; 3]);

/// A walk over requests that wait, in the order in which they are served: those of the job with the least
/// rank first. A request that is served on the way moves its job back.
#[derive(Debug)]
pub(super) struct Walk<R> {
    jobs: BTreeSet<(R, JobId)>,
    /// The last place that was seen of each job.
    seen: BTreeMap<JobId, Place>,
}

impl Waiting {
    /// Number of requests for resources of the node itself.
    pub(super) fn outside_count(&self) -> usize {
        self.outside.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outside.count == 0 && self.inside_count == 0
    }

    /// A request waits.
    pub(super) fn add(&mut self, class: &TaskClass, place: Place, key: LeaseKey) {
        if let Some(group) = group_of(class) {
            self.inside.entry(group).or_default().queues.add(class.job, place, key);
            self.inside_count += 1;
            self.changed.insert(group);
            return;
        }
        self.outside.add(class.job, place, key);
        self.needs.add(&class.resources);
        self.for_bundles.extend(held_bundle(class).map(|bundle| (bundle, key)));
    }

    /// A request waits no more. What was reserved for one inside a group is free for the others there.
    pub(super) fn remove(&mut self, class: &TaskClass, place: Place, key: LeaseKey) {
        let Some(group) = group_of(class) else {
            self.outside.remove(class.job, place, key);
            self.needs.remove(&class.resources);
            if let Some(bundle) = held_bundle(class) {
                self.for_bundles.remove(&(bundle, key));
            }
            return;
        };
        let inside = group_mut(&mut self.inside, group);
        inside.queues.remove(class.job, place, key);
        self.inside_count -= 1;
        if inside.queues.count == 0 {
            if let Some(until) = inside.reserved_until {
                self.reserved.remove(&(until, group));
            }
            self.inside.remove(&group);
            self.changed.remove(&group);
        } else {
            self.changed.insert(group);
        }
    }

    /// Whether a request waits at a place.
    pub(super) fn is_at(&self, class: &TaskClass, place: Place, key: LeaseKey) -> bool {
        let queues = match group_of(class) {
            Some(group) => self.inside(group),
            None => Some(&self.outside),
        };
        let of_job = queues.and_then(|queues| queues.of_job.get(&class.job));
        of_job.and_then(|of_job| of_job.get(&place)) == Some(&key)
    }

    /// The requests for resources of the node itself.
    pub(super) fn outside(&self) -> &Queues {
        &self.outside
    }

    /// The requests inside a group, if there are any.
    pub(super) fn inside(&self, group: TaskId) -> Option<&Queues> {
        self.inside.get(&group).map(|group| &group.queues)
    }

    /// The requests inside a group, in no order that means anything.
    pub(super) fn keys_inside(&self, group: TaskId) -> impl Iterator<Item = LeaseKey> {
        self.inside(group).into_iter().flat_map(Queues::keys)
    }

    /// The numbers of requests inside a group, and of those before the next one that a recall looks at
    /// besides the first.
    pub(super) fn counts_inside(&self, group: TaskId) -> (usize, usize) {
        self.inside.get(&group).map_or((0, 0), |group| (group.queues.count, group.looked_to))
    }

    /// A recall goes on at another place among the requests inside a group.
    pub(super) fn set_looked_to(&mut self, group: TaskId, looked_to: usize) {
        if let Some(group) = self.inside.get_mut(&group) {
            group.looked_to = looked_to;
        }
    }

    /// The groups with requests inside, from the one after `after` on, each once.
    pub(super) fn groups_after(&self, after: Option<TaskId>) -> impl Iterator<Item = TaskId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let later = self.inside.range((after.map_or(Unbounded, Excluded), Unbounded));
        let earlier = after.map(|after| self.inside.range(..=after));
        later.chain(earlier.into_iter().flatten()).map(|(group, _)| *group)
    }

    /// Something of the bundles of a group has changed.
    pub(super) fn group_changed(&mut self, group: TaskId) {
        if self.inside.contains_key(&group) {
            self.changed.insert(group);
        }
    }

    /// Other jobs are served now: all groups are to be looked at.
    pub(super) fn all_groups_changed(&mut self) {
        self.changed.extend(self.inside.keys());
    }

    /// The next group to look at.
    pub(super) fn next_changed(&mut self) -> Option<TaskId> {
        self.changed.pop_first()
    }

    /// A group was looked at, and reservations there end then.
    pub(super) fn looked_at(&mut self, group: TaskId, reserved_until: Option<Now>) {
        self.changed.remove(&group);
        let Some(inside) = self.inside.get_mut(&group) else { return };
        if let Some(before) = std::mem::replace(&mut inside.reserved_until, reserved_until) {
            self.reserved.remove(&(before, group));
        }
        self.reserved.extend(reserved_until.map(|until| (until, group)));
    }

    /// Whether reservations of groups are over: those are to be looked at.
    pub(super) fn end_reservations(&mut self, now: Now) -> bool {
        let mut is_over = false;
        while let Some((_, group)) = self.reserved.first().copied().filter(|(until, _)| *until <= now) {
            self.reserved.pop_first();
            group_mut(&mut self.inside, group).reserved_until = None;
            self.changed.insert(group);
            is_over = true;
        }
        is_over
    }

    /// The requests for a bundle.
    pub(super) fn for_bundle(&self, bundle: BundleId) -> Vec<LeaseKey> {
        const FIRST: LeaseKey = (tharsis_types::NodeId(0), tharsis_types::LeaseId(0));
        let from = self.for_bundles.range((bundle, FIRST)..);
        from.take_while(|(of, _)| *of == bundle).map(|(_, key)| *key).collect()
    }

    /// Whether some request may fit what is free of the node itself.
    pub(super) fn may_fit(&self, free: &Resources) -> bool {
        let free = [free.cpu, free.gpu, free.memory];
        let mut least = self.needs.0.iter().zip(free);
        least.all(|(amounts, free)| amounts.first_key_value().is_some_and(|(least, _)| *least <= free))
    }

    /// Asserts that the needs are those of the requests, given with their classes.
    pub(super) fn check<'a>(&self, classes: impl Iterator<Item = &'a TaskClass>) {
        let (mut needs, mut outside, mut inside, mut bundles) = (Needs::default(), 0, 0, 0);
        for class in classes {
            if group_of(class).is_some() {
                inside += 1;
            } else {
                outside += 1;
                needs.add(&class.resources);
                bundles += usize::from(held_bundle(class).is_some());
            }
        }
        let counted = (self.outside.count, self.inside_count, self.for_bundles.len());
        assert_eq!((outside, inside, bundles), counted, "requests that wait are miscounted");
        assert_eq!(needs, self.needs, "the needs of requests that wait are miscounted");
        let all = self.inside.values().map(|group| &group.queues).chain([&self.outside]);
        all.for_each(Queues::check);
        assert!(self.inside.values().all(|group| 0 < group.queues.count), "a group without requests is kept");
        assert!(self.changed.iter().all(|group| self.inside.contains_key(group)), "a group is gone");
        let reserved = self.inside.iter().filter_map(|(id, group)| Some((group.reserved_until?, *id)));
        assert_eq!(reserved.collect::<BTreeSet<_>>(), self.reserved, "reservations are misfiled");
    }
}

impl Queues {
    fn add(&mut self, job: JobId, place: Place, key: LeaseKey) {
        let before = self.of_job.entry(job).or_default().insert(place, key);
        assert!(before.is_none(), "{key:?} waits where another one does");
        self.count += 1;
    }

    fn remove(&mut self, job: JobId, place: Place, key: LeaseKey) {
        let of_job = self.of_job.get_mut(&job);
        let (waited, is_last) =
            of_job.map_or((None, false), |of_job| (of_job.remove(&place), of_job.is_empty()));
        assert_eq!(waited, Some(key), "a lease does not wait where it says");
        if is_last {
            self.of_job.remove(&job);
        }
        self.count -= 1;
    }

    fn keys(&self) -> impl Iterator<Item = LeaseKey> {
        self.of_job.values().flat_map(BTreeMap::values).copied()
    }

    /// The jobs that have requests.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.of_job.keys().copied()
    }

    /// The requests of a job, in order.
    pub(super) fn of(&self, job: JobId) -> impl Iterator<Item = LeaseKey> {
        self.of_job.get(&job).into_iter().flat_map(BTreeMap::values).copied()
    }

    fn check(&self) {
        assert_eq!(self.keys().count(), self.count, "requests that wait are miscounted");
        assert!(self.of_job.values().all(|of_job| !of_job.is_empty()), "a job without requests is kept");
    }
}

/// The group inside which a class belongs.
fn group_of(class: &TaskClass) -> Option<TaskId> {
    match class.placement {
        Placement::Group { group, .. } => Some(group),
        _ => None,
    }
}

/// The group that a request or a list names; it must exist.
#[allow(clippy::expect_used, reason = "a request that waits in no group is a defect here")]
fn group_mut(inside: &mut BTreeMap<TaskId, Group>, group: TaskId) -> &mut Group {
    inside.get_mut(&group).expect("a request does not wait inside its group")
}

impl Needs {
    fn add(&mut self, demand: &Resources) {
        for (amounts, amount) in self.0.iter_mut().zip([demand.cpu, demand.gpu, demand.memory]) {
            *amounts.entry(amount).or_default() += 1;
        }
    }

    fn remove(&mut self, demand: &Resources) {
        for (amounts, amount) in self.0.iter_mut().zip([demand.cpu, demand.gpu, demand.memory]) {
            match amounts.get_mut(&amount) {
                Some(count) if 1 < *count => *count -= 1,
                known => {
                    assert!(known.is_some(), "more requests wait no more than wait");
                    amounts.remove(&amount);
                }
            }
        }
    }
}

impl<R: Ord> Walk<R> {
    /// A walk from the first request on, over those of jobs with ranks.
    pub(super) fn new(jobs: impl Iterator<Item = (R, JobId)>) -> Self {
        Self { jobs: jobs.collect(), seen: BTreeMap::new() }
    }

    /// The next request.
    pub(super) fn next(&mut self, waiting: &Queues) -> Option<LeaseKey> {
        use std::ops::Bound::{Excluded, Unbounded};
        loop {
            let (_, job) = self.jobs.first()?;
            let from = self.seen.get(job).map_or(Unbounded, |place| Excluded(*place));
            let of_job = waiting.of_job.get(job);
            match of_job.and_then(|of_job| of_job.range((from, Unbounded)).next()) {
                Some((place, key)) => {
                    self.seen.insert(*job, *place);
                    return Some(*key);
                }
                None => {
                    self.jobs.pop_first();
                }
            }
        }
    }

    /// The job of the request that was seen last has another rank now.
    pub(super) fn rank(&mut self, rank: R) {
        if let Some((_, job)) = self.jobs.pop_first() {
            self.jobs.insert((rank, job));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::class;
    use tharsis_types::{LeaseId, NodeId};

    fn key(lease: u64) -> LeaseKey {
        (NodeId(1), LeaseId(lease))
    }

    #[test]
    fn a_walk_takes_turns_as_ranks_change_and_sees_each_request_once() {
        let mut waiting = Waiting::default();
        let (one, two) = (class(1), class(2));
        for number in 0..4 {
            waiting.add(&one, (Reverse(0), number), key(number));
            waiting.add(&two, (Reverse(0), number), key(10 + number));
        }
        waiting.add(&one, (Reverse(5), 9), key(9));
        let mut walk = Walk::new([(0, JobId(1)), (1, JobId(2))].into_iter());
        assert_eq!(walk.next(waiting.outside()), Some(key(9)), "the most urgent");
        waiting.remove(&one, (Reverse(5), 9), key(9));
        walk.rank(2);
        assert_eq!(walk.next(waiting.outside()), Some(key(10)), "the job that has had less");
        walk.rank(3);
        let rest: Vec<_> = std::iter::from_fn(|| walk.next(waiting.outside())).collect();
        assert_eq!(rest, [0, 1, 2, 3, 11, 12, 13].map(key));
    }

    #[test]
    fn requests_that_need_more_than_is_free_are_known_without_a_look_at_each() {
        let mut waiting = Waiting::default();
        assert!(!waiting.may_fit(&Resources::cpus(8.0).unwrap()), "nobody waits");
        let class =
            |cpus: f64| TaskClass { resources: Resources::cpus(cpus).unwrap(), ..(*class(1)).clone() };
        waiting.add(&class(2.0), (Reverse(0), 1), key(1));
        waiting.add(&class(4.0), (Reverse(0), 2), key(2));
        assert!(waiting.may_fit(&Resources::cpus(2.0).unwrap()));
        assert!(!waiting.may_fit(&Resources::cpus(1.0).unwrap()));
        waiting.remove(&class(2.0), (Reverse(0), 1), key(1));
        assert!(!waiting.may_fit(&Resources::cpus(2.0).unwrap()));
        waiting.check([&class(4.0)].into_iter());
    }

    fn of_group(number: u64, placement: impl FnOnce(TaskId) -> Placement) -> TaskClass {
        let group = TaskId::root(JobId(1)).child(number);
        TaskClass { placement: placement(group), ..(*class(1)).clone() }
    }

    /// A request that waits inside a group is looked at when something of that group has changed.
    #[test]
    fn of_very_many_groups_only_those_that_have_changed_are_looked_at() {
        let mut waiting = Waiting::default();
        let inside = |number| of_group(number, |group| Placement::Group { group, bundle: None });
        let group = |number| group_of(&inside(number)).unwrap();
        for number in 0..10_000 {
            waiting.add(&inside(number), (Reverse(0), number), key(number));
        }
        waiting.add(&inside(7), (Reverse(0), 10_000), key(10_000));
        assert!(!waiting.may_fit(&Resources::cpus(8.0).unwrap()), "nothing of the node is waited for");
        let changed =
            |waiting: &mut Waiting| std::iter::from_fn(|| waiting.next_changed()).collect::<BTreeSet<_>>();
        assert_eq!(changed(&mut waiting).len(), 10_000);
        // Its bundles, one of its requests, a reservation, another group that has none.
        waiting.group_changed(group(3));
        waiting.remove(&inside(7), (Reverse(0), 7), key(7));
        waiting.looked_at(group(5), Some(100));
        waiting.looked_at(group(6), Some(200));
        waiting.remove(&inside(8), (Reverse(0), 8), key(8));
        waiting.group_changed(group(8));
        assert!(!waiting.end_reservations(99) && waiting.end_reservations(100));
        assert_eq!(changed(&mut waiting), [3, 5, 7].map(group).into());
        assert!(!waiting.end_reservations(100));
        let all: BTreeSet<_> = waiting.groups_after(None).collect();
        let last = *all.last().unwrap();
        for after in [None, Some(group(1)), Some(group(8)), Some(last)] {
            let some: Vec<_> = waiting.groups_after(after).collect();
            assert_eq!((some.len(), some.iter().copied().collect()), (9_999, all.clone()), "each once");
            assert_eq!(some.first(), all.iter().find(|group| after < Some(**group)).or(all.first()));
        }
    }

    #[test]
    fn requests_for_bundles_count_as_what_they_take() {
        let mut waiting = Waiting::default();
        let resources = Resources::cpus(2.0).unwrap();
        let bundle = |index| {
            let class = of_group(1, |group| Placement::Bundle { group, index });
            TaskClass { resources: resources.clone(), ..class }
        };
        let id = |index| held_bundle(&bundle(index)).unwrap();
        for (number, index) in [(1, 0), (2, 1), (3, 0)] {
            waiting.add(&bundle(index), (Reverse(0), number), key(number));
        }
        assert!(!waiting.may_fit(&Resources::cpus(1.0).unwrap()) && waiting.may_fit(&resources));
        assert_eq!(waiting.for_bundle(id(0)), [key(1), key(3)]);
        waiting.remove(&bundle(0), (Reverse(0), 1), key(1));
        assert_eq!((waiting.for_bundle(id(0)), waiting.for_bundle(id(1))), (vec![key(3)], vec![key(2)]));
        waiting.check([&bundle(1), &bundle(0)].into_iter());
    }
}
