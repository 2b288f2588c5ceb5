//! Requests that wait, by job and in the order of each: however many there are, the next one is found without
//! a look at the others, and so is that none can be served.

use super::LeaseKey;
use super::bundles::{held_bundle, is_inside};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{JobId, Resources, TaskClass};

/// The place of a request among those of its job: the most urgent first, then the oldest.
pub(super) type Place = (Reverse<i32>, u64);

/// Requests that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Those of each job that has any.
    of_job: BTreeMap<JobId, BTreeMap<Place, LeaseKey>>,
    count: usize,
    needs: Needs,
    /// The number of requests, in order, before the next one that a recall looks at besides the first.
    pub(super) looked_to: usize,
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
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A request waits.
    pub(super) fn add(&mut self, class: &TaskClass, place: Place, key: LeaseKey) {
        let before = self.of_job.entry(class.job).or_default().insert(place, key);
        assert!(before.is_none(), "{key:?} waits where another one does");
        self.count += 1;
        self.needs.add(class);
    }

    /// A request waits no more.
    pub(super) fn remove(&mut self, class: &TaskClass, place: Place, key: LeaseKey) {
        let of_job = self.of_job.get_mut(&class.job);
        let (waited, is_last) =
            of_job.map_or((None, false), |of_job| (of_job.remove(&place), of_job.is_empty()));
        assert_eq!(waited, Some(key), "a lease does not wait where it says");
        if is_last {
            self.of_job.remove(&class.job);
        }
        self.count -= 1;
        self.needs.remove(class);
    }

    /// Whether a request waits at a place.
    pub(super) fn is_at(&self, job: JobId, place: Place, key: LeaseKey) -> bool {
        self.of_job.get(&job).and_then(|of_job| of_job.get(&place)) == Some(&key)
    }

    /// All requests, in no order that means anything.
    pub(super) fn keys(&self) -> impl Iterator<Item = LeaseKey> {
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

    /// Whether some request may fit what is free of the node itself. Those that bundles serve, or that are
    /// for bundles, count as if they did.
    pub(super) fn may_fit(&self, free: &Resources) -> bool {
        let free = [free.cpu, free.gpu, free.memory];
        let mut least = self.needs.0.iter().zip(free);
        least.all(|(amounts, free)| amounts.first_key_value().is_some_and(|(least, _)| *least <= free))
    }

    /// Asserts that the needs are those of the requests, given with their classes.
    pub(super) fn check<'a>(&self, classes: impl Iterator<Item = &'a TaskClass>) {
        let mut needs = Needs::default();
        let count = classes.inspect(|class| needs.add(class)).count();
        assert_eq!((count, &needs), (self.count, &self.needs), "requests that wait are miscounted");
        assert_eq!(self.keys().count(), self.count, "requests that wait are miscounted");
        assert!(self.of_job.values().all(|of_job| !of_job.is_empty()), "a job without requests is kept");
    }
}

impl Needs {
    /// The amounts that a request takes at least of the node itself.
    fn of(class: &TaskClass) -> [u64; 3] {
        if is_inside(class) || held_bundle(class).is_some() {
            return [0; 3];
        }
        let Resources { cpu, gpu, memory, .. } = class.resources;
        [cpu, gpu, memory]
    }

    fn add(&mut self, class: &TaskClass) {
        for (amounts, amount) in self.0.iter_mut().zip(Self::of(class)) {
            *amounts.entry(amount).or_default() += 1;
        }
    }

    fn remove(&mut self, class: &TaskClass) {
        for (amounts, amount) in self.0.iter_mut().zip(Self::of(class)) {
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
    pub(super) fn next(&mut self, waiting: &Waiting) -> Option<LeaseKey> {
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
        assert_eq!(walk.next(&waiting), Some(key(9)), "the most urgent");
        waiting.remove(&one, (Reverse(5), 9), key(9));
        walk.rank(2);
        assert_eq!(walk.next(&waiting), Some(key(10)), "the job that has had less");
        walk.rank(3);
        let rest: Vec<_> = std::iter::from_fn(|| walk.next(&waiting)).collect();
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
}
