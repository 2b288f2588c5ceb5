//! Idle workers: how many are kept, and for how long.
//!
//! One idle worker per CPU of the node is kept for as long as its job lives. While tasks wait for tasks that
//! they submitted, more workers than that start and stop with every wait. Starting a process takes longer
//! than such a wait, so the surplus workers stay for a moment as well.

use super::{Effect, Leases, worker_mut};
use crate::{MS, Now};
use std::collections::BTreeMap;
use tharsis_types::{ClientId, JobId, Resources};

/// A surplus worker is stopped when it has been idle for this long.
const LINGER: Now = 500 * MS;

/// Workers without a lease.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// The job of each idle worker, the longest idle first.
    order: BTreeMap<(Now, ClientId), JobId>,
    of_job: BTreeMap<JobId, usize>,
}

impl Idle {
    fn add(&mut self, client: ClientId, job: JobId, now: Now) {
        let before = self.order.insert((now, client), job);
        assert!(before.is_none(), "{client:?} was idle already");
        *self.of_job.entry(job).or_default() += 1;
    }

    fn remove(&mut self, client: ClientId, since: Now) {
        let job = self.order.remove(&(since, client));
        assert!(job.is_some(), "{client:?} is not among the idle workers");
        let Some(job) = job else { return };
        let count = self.of_job.entry(job).or_default();
        assert!(0 < *count, "more workers of {job} are in use again than were idle");
        *count -= 1;
        if *count == 0 {
            self.of_job.remove(&job);
        }
    }

    /// The idle worker of a job that was used last: its memory is warm.
    pub(super) fn newest(&self, job: JobId) -> Option<ClientId> {
        self.order.iter().rev().find(|(_, of)| **of == job).map(|((_, client), _)| *client)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The worker to stop first if more than `kept` are idle, and the time since when it is idle. Each job
    /// keeps one, so that jobs that take turns do not start a process each time.
    fn surplus(&self, kept: usize) -> Option<(Now, ClientId)> {
        let is_spare = |job: &JobId| self.of_job.get(job).is_some_and(|count| 1 < *count);
        let mut spare = self.order.iter().filter(|(_, job)| is_spare(job));
        spare.next().filter(|_| kept < self.len()).map(|(at, _)| *at)
    }
}

impl Leases {
    /// Workers without a lease.
    pub(super) fn resting(&self) -> Vec<ClientId> {
        self.idle.order.keys().map(|(_, client)| *client).collect()
    }

    /// The time at which the next surplus worker is stopped.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Now> {
        self.idle.surplus(self.kept_workers()).map(|(since, _)| since + LINGER)
    }

    /// Stops workers that were idle for too long.
    pub fn stop_surplus(&mut self, out: &mut Vec<Effect>) {
        let now = self.shares.now();
        while let Some((since, client)) = self.idle.surplus(self.kept_workers())
            && since + LINGER <= now
        {
            self.forget_worker(client);
            out.push(Effect::StopWorker(client));
        }
    }

    /// Stops a worker that has no lease if its job has ended, if the node drains, if it shares its process
    /// (such a worker starts in no time), or if it was started for a lease with GPUs that has ended.
    pub(super) fn rest(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        let Some(worker) = self.workers.get(&client).filter(|w| w.lease.is_none()) else { return };
        let is_special = worker.process.is_some() || !worker.gpus.is_empty();
        if self.ended_jobs.contains(worker.job) || self.only_owner.is_some() || is_special {
            self.forget_worker(client);
            out.push(Effect::StopWorker(client));
        }
    }

    pub(super) fn begin_idle(&mut self, client: ClientId) {
        let now = self.shares.now();
        let worker = worker_mut(&mut self.workers, client);
        assert_eq!(worker.lease, None, "{client:?} rests and has a lease");
        self.idle.add(client, worker.job, now);
        worker.idle_since = Some(now);
    }

    pub(super) fn end_idle(&mut self, client: ClientId) {
        let since = self.workers.get_mut(&client).and_then(|worker| worker.idle_since.take());
        if let Some(since) = since {
            self.idle.remove(client, since);
        }
    }

    /// Removes a worker from the tables.
    pub(super) fn forget_worker(&mut self, client: ClientId) {
        self.end_idle(client);
        if let Some(worker) = self.workers.remove(&client) {
            self.of_job.remove(&(worker.job, client));
            self.processes.leave(worker.process);
        }
    }

    /// Number of idle workers that stay.
    fn kept_workers(&self) -> usize {
        (self.total.cpu / Resources::UNIT).max(1) as usize
    }
}
