//! Sets of jobs whose memory grows with the number of gaps, not of members.

use std::collections::BTreeMap;
use tharsis_types::JobId;

/// Jobs, as ranges of numbers. Jobs are numbered in order and nearly all of them have ended, so a node that
/// has served a million jobs keeps a handful of ranges.
#[derive(Clone, Debug, Default)]
pub struct JobSet {
    /// The last of each range, by its first.
    ranges: BTreeMap<u32, u32>,
}

impl JobSet {
    /// Whether a job is in the set.
    #[must_use]
    pub fn contains(&self, job: JobId) -> bool {
        self.ranges.range(..=job.0).next_back().is_some_and(|(_, last)| job.0 <= *last)
    }

    /// Adds a job; false if it was there.
    pub fn insert(&mut self, job: JobId) -> bool {
        if self.contains(job) {
            return false;
        }
        let (mut first, mut last) = (job.0, job.0);
        if let Some(after) = job.0.checked_add(1).and_then(|next| self.ranges.remove(&next)) {
            last = after;
        }
        let before = self.ranges.range(..job.0).next_back().map(|(first, last)| (*first, *last));
        if let Some((begin, end)) = before
            && end.checked_add(1) == Some(job.0)
        {
            first = begin;
        }
        self.ranges.insert(first, last);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn holds_what_a_set_holds(jobs in proptest::collection::vec(prop_oneof![0u32..40, Just(u32::MAX - 1), Just(u32::MAX)], 0..60)) {
            let (mut set, mut model) = (JobSet::default(), BTreeSet::new());
            for job in jobs {
                prop_assert_eq!(set.insert(JobId(job)), model.insert(job));
            }
            for job in (0..41).chain([u32::MAX - 1, u32::MAX]) {
                prop_assert_eq!(set.contains(JobId(job)), model.contains(&job));
            }
            let gaps = model.iter().filter(|job| !job.checked_sub(1).is_some_and(|before| model.contains(&before)));
            prop_assert_eq!(set.ranges.len(), gaps.count());
        }
    }
}
