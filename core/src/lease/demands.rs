//! The needs of requests that wait, without the requests: many need the same, and a request that cannot wait
//! asks whether it would pass any of them.

use std::collections::BTreeMap;
use tharsis_types::{JobId, Resources};

/// The number of requests that wait for resources of the node itself, by what they need.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Demands(BTreeMap<(JobId, Resources), usize>);

impl Demands {
    /// A request waits.
    pub(super) fn add(&mut self, job: JobId, demand: &Resources) {
        *self.0.entry((job, demand.clone())).or_default() += 1;
    }

    /// A request is served, or is gone.
    pub(super) fn remove(&mut self, job: JobId, demand: &Resources) {
        let key = (job, demand.clone());
        match self.0.get_mut(&key) {
            Some(count) if 1 < *count => *count -= 1,
            known => {
                assert!(known.is_some(), "more requests of {job} are served than wait");
                self.0.remove(&key);
            }
        }
    }

    /// Each demand, and the number of requests that have it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (JobId, &Resources, usize)> {
        self.0.iter().map(|((job, demand), count)| (*job, demand, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_need_the_same_are_one_demand() {
        let mut demands = Demands::default();
        let (one, two) = (Resources::cpus(1.0).unwrap(), Resources::cpus(2.0).unwrap());
        (0..100_000).for_each(|_| demands.add(JobId(1), &one));
        demands.add(JobId(1), &two);
        demands.add(JobId(2), &one);
        let all: Vec<_> = demands.iter().map(|(job, _, count)| (job.0, count)).collect();
        assert_eq!(all, [(1, 100_000), (1, 1), (2, 1)]);
        demands.remove(JobId(1), &two);
        demands.remove(JobId(2), &one);
        (0..100_000).for_each(|_| demands.remove(JobId(1), &one));
        assert_eq!(demands, Demands::default());
    }
}
