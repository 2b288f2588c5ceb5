//! Use of the node by each job so far, so that jobs share it by weight.
//!
//! Weighted fair queueing in virtual time: while a job holds resources, its virtual time runs at the rate of
//! its share of the node (by its fullest resource) divided by its weight. The job with the least virtual time
//! comes first. A job that was away starts at the least virtual time of the active jobs or later: it cannot
//! save up time that it did not use.

use crate::{MS, Now};
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::limits::JOB_WEIGHT_DEFAULT;
use tharsis_types::{JobId, Resources};

/// The length of a turn where jobs cannot run side by side. A job that holds the whole node keeps it until
/// its virtual time is this far ahead of a job that holds nothing. Short enough that a newcomer starts within
/// 50 ms.
const TURN: Now = 20 * MS;

/// Virtual time: nanoseconds times 1/1000 of the node, for a job of the default weight.
pub(super) type Virtual = u128;

/// The jobs of a node and their use of it.
#[derive(Debug)]
pub(super) struct Shares {
    total: Resources,
    now: Now,
    jobs: BTreeMap<JobId, Share>,
    /// Jobs that hold something.
    holding: BTreeSet<JobId>,
    /// Jobs that have requests and hold nothing, by their virtual time, which stands still.
    resting: BTreeSet<(Virtual, JobId)>,
    /// Looks for the least virtual time, for a test.
    #[cfg(test)]
    looks: std::cell::Cell<usize>,
}

#[derive(Clone, Debug)]
struct Share {
    weight: u32,
    /// Resources its leases hold, each lease by its fullest resource, in 1/1000 of the node.
    held: u64,
    /// Requests that wait.
    waiting: usize,
    /// Virtual time at `since`.
    used: Virtual,
    since: Now,
    /// Its driver is gone.
    is_over: bool,
}

impl Shares {
    pub(super) fn new(total: Resources) -> Self {
        Self {
            total,
            now: 0,
            jobs: BTreeMap::new(),
            holding: BTreeSet::new(),
            resting: BTreeSet::new(),
            #[cfg(test)]
            looks: std::cell::Cell::default(),
        }
    }

    pub(super) fn advance(&mut self, now: Now) {
        self.now = self.now.max(now);
    }

    pub(super) fn now(&self) -> Now {
        self.now
    }

    pub(super) fn weight(&self, job: JobId) -> u32 {
        self.jobs.get(&job).map_or(JOB_WEIGHT_DEFAULT, |share| share.weight)
    }

    pub(super) fn set_weight(&mut self, job: JobId, weight: u32) {
        let now = self.now;
        self.change(job, |share| {
            share.used = share.used_at(now);
            share.since = now;
            share.weight = weight.max(1);
        });
    }

    pub(super) fn wait(&mut self, job: JobId) {
        self.awaken(job);
        self.change(job, |share| share.waiting += 1);
    }

    pub(super) fn wait_no_more(&mut self, job: JobId) {
        self.change(job, |share| {
            assert!(0 < share.waiting, "more requests of {job} are served than wait");
            share.waiting -= 1;
        });
        self.forget_ended(job);
    }

    pub(super) fn take(&mut self, job: JobId, demand: &Resources) {
        self.awaken(job);
        let part = self.part(demand);
        let now = self.now;
        self.change(job, |share| share.hold(now, |held| held + part));
    }

    pub(super) fn give(&mut self, job: JobId, demand: &Resources) {
        let part = self.part(demand);
        let now = self.now;
        self.change(job, |share| {
            assert!(part <= share.held, "{job} gives back more than it holds");
            share.hold(now, |held| held - part);
        });
        self.forget_ended(job);
    }

    /// The job is over; it is forgotten as soon as it holds nothing and waits for nothing.
    pub(super) fn end(&mut self, job: JobId) {
        if let Some(share) = self.jobs.get_mut(&job) {
            share.is_over = true;
        }
        self.forget_ended(job);
    }

    /// Forgets a job that holds nothing and waits for nothing. If it comes again, it begins anew.
    pub(super) fn forget(&mut self, job: JobId) {
        if self.jobs.get(&job).is_some_and(|share| !share.is_here()) {
            self.jobs.remove(&job);
        }
    }

    /// The rank of a job: the least is served first. Resources that a job holds count for a turn, so that
    /// jobs with equal use are served in turn.
    pub(super) fn rank(&self, job: JobId) -> Virtual {
        self.rank_with(job, |held| held)
    }

    /// Whether `holder` should give up a part so that `asker` gets its demand: `holder` would still have had
    /// at least as much.
    pub(super) fn gives_way(
        &self,
        (holder, part): (JobId, &Resources),
        (asker, demand): (JobId, &Resources),
    ) -> bool {
        let (part, demand) = (self.part(part), self.part(demand));
        self.rank_with(asker, |held| held + demand)
            <= self.rank_with(holder, |held| held.saturating_sub(part))
    }

    /// Asserts that the shares agree with the resources that jobs hold, given as parts by job.
    pub(super) fn check(&self, held: &BTreeMap<JobId, u64>, waiting: &BTreeMap<JobId, usize>) {
        for (job, share) in &self.jobs {
            assert_eq!(share.held, held.get(job).copied().unwrap_or(0), "the share of {job} is miscounted");
            assert_eq!(
                share.waiting,
                waiting.get(job).copied().unwrap_or(0),
                "requests of {job} are miscounted"
            );
        }
        let holding = self.jobs.iter().filter(|(_, share)| 0 < share.held).map(|(job, _)| job);
        assert!(holding.eq(&self.holding), "jobs that hold something are misfiled");
        let resting = self.jobs.iter().filter(|(_, share)| share.is_resting());
        let resting: BTreeSet<_> = resting.map(|(job, share)| (share.used, *job)).collect();
        assert_eq!(resting, self.resting, "jobs that hold nothing are misfiled");
        let known = |job: &JobId| self.jobs.contains_key(job);
        assert!(held.iter().all(|(job, part)| *part == 0 || known(job)), "a job without a share");
    }

    /// A set of resources in 1/1000 of the node, by its fullest one; at least 1.
    pub(super) fn part(&self, demand: &Resources) -> u64 {
        let mut free = self.total.clone();
        let _fits = free.take(demand);
        free.used_permille(&self.total).max(1)
    }

    fn rank_with(&self, job: JobId, held: impl FnOnce(u64) -> u64) -> Virtual {
        let Some(share) = self.jobs.get(&job) else { return self.least() };
        share.used_at(self.now) + share.virtual_time(held(share.held), TURN)
    }

    /// The least virtual time of the jobs that are here.
    fn least(&self) -> Virtual {
        #[cfg(test)]
        {
            self.looks.set(self.looks.get() + self.holding.len());
        }
        let holding = self.holding.iter().filter_map(|job| self.jobs.get(job));
        let rests = self.resting.first().map(|(used, _)| *used);
        holding.map(|share| share.used_at(self.now)).chain(rests).min().unwrap_or(0)
    }

    /// Makes a job that was away start at the use of the job that has had least, or later.
    fn awaken(&mut self, job: JobId) {
        let (least, now) = (self.least(), self.now);
        self.change(job, |share| {
            if !share.is_here() {
                share.used = share.used.max(least);
                share.since = now;
            }
        });
    }

    /// Changes the share of a job, which is made if there is none, and files it.
    fn change(&mut self, job: JobId, change: impl FnOnce(&mut Share)) {
        let since = self.now;
        let weight = JOB_WEIGHT_DEFAULT;
        let fresh = Share { weight, held: 0, waiting: 0, used: 0, since, is_over: false };
        let share = self.jobs.entry(job).or_insert(fresh);
        if share.is_resting() {
            self.resting.remove(&(share.used, job));
        }
        change(share);
        if share.is_resting() {
            self.resting.insert((share.used, job));
        }
        if 0 < share.held {
            self.holding.insert(job);
        } else {
            self.holding.remove(&job);
        }
    }

    fn forget_ended(&mut self, job: JobId) {
        if self.jobs.get(&job).is_some_and(|share| share.is_over && !share.is_here()) {
            self.jobs.remove(&job);
        }
    }
}

impl Share {
    fn is_here(&self) -> bool {
        0 < self.held || 0 < self.waiting
    }

    fn is_resting(&self) -> bool {
        self.held == 0 && 0 < self.waiting
    }

    fn hold(&mut self, now: Now, held: impl FnOnce(u64) -> u64) {
        self.used = self.used_at(now);
        self.since = now;
        self.held = held(self.held);
    }

    fn used_at(&self, now: Now) -> Virtual {
        self.used + self.virtual_time(self.held, now.saturating_sub(self.since))
    }

    /// Charge for holding a part of the node for some time.
    fn virtual_time(&self, held: u64, time: Now) -> Virtual {
        let weighted = Virtual::from(held) * Virtual::from(time) * Virtual::from(JOB_WEIGHT_DEFAULT);
        weighted / Virtual::from(self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs that a member makes up have requests and hold nothing.
    #[test]
    fn a_job_comes_beside_very_many_that_hold_nothing_without_a_look_at_each() {
        const COUNT: u32 = 10_000;
        let cpus = |count: f64| Resources::cpus(count).unwrap();
        let mut shares = Shares::new(cpus(2.0));
        shares.take(JobId(1), &cpus(1.0));
        shares.advance(1_000 * MS);
        for job in 2..COUNT {
            shares.set_weight(JobId(job), 100);
            shares.wait(JobId(job));
        }
        assert_eq!(shares.looks.get(), COUNT as usize - 2, "the one that holds something, each time");
        // The one that has waited longest begins where the first was then.
        let (first, others) = (shares.rank(JobId(1)), shares.rank(JobId(2)));
        assert!(others < first && shares.rank(JobId(COUNT - 1)) == others);
        shares.advance(2_000 * MS);
        shares.wait(JobId(COUNT));
        assert_eq!(shares.rank(JobId(COUNT)), others, "the least of all that are here");
        shares.give(JobId(1), &cpus(1.0));
        let waiting = (2..=COUNT).map(|job| (JobId(job), 1)).collect();
        shares.check(&BTreeMap::new(), &waiting);
    }
}
