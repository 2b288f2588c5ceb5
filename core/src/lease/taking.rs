//! Resources of a pool that leases take, lend and give back.

use super::bundles::Pool;
use super::gpus::{Part, Parts};
use super::{Lease, LeaseKey, Leases, worker_mut};
use tharsis_types::{ClientId, JobId, Resources};

/// Devices of what has none: the CPUs that a blocked worker lends.
const NO_GPUS: &[Part] = &[];

impl Leases {
    /// The resources that are not in use. Of its GPUs, those that one demand could have: two halves of
    /// different ones are no room for a whole one.
    #[must_use]
    pub fn free(&self) -> &Resources {
        self.stock.free()
    }

    /// All resources that are not in use.
    #[must_use]
    pub fn unused(&self) -> Resources {
        self.stock.sum()
    }

    /// Takes resources of a pool for a job, and returns the GPUs among them; `None` if there are not enough.
    pub(super) fn occupy(&mut self, pool: Pool, job: JobId, demand: &Resources) -> Option<Parts> {
        if let Some(bundle) = pool {
            self.waiting.group_changed(bundle.0);
            return self.bundles.stock_mut(bundle).take(demand);
        }
        let taken = self.quotas.allows(job, demand).then(|| self.stock.take(demand)).flatten()?;
        self.shares.take(job, demand);
        self.quotas.take(job, demand);
        Some(taken)
    }

    /// Returns resources that [`Leases::occupy`] took.
    pub(super) fn release(&mut self, pool: Pool, job: JobId, taken: &Resources, gpus: &[Part]) {
        if let Some(bundle) = pool {
            self.waiting.group_changed(bundle.0);
            return self.bundles.stock_mut(bundle).give(taken, gpus);
        }
        self.stock.give(taken, gpus);
        self.shares.give(job, taken);
        self.quotas.give(job, taken);
    }

    /// Returns the CPUs that a blocked worker lends.
    pub(super) fn release_lent(&mut self, pool: Pool, job: JobId, part: &Resources) {
        self.release(pool, job, part, NO_GPUS);
    }

    /// The free resources of a pool.
    pub(super) fn free_in(&self, pool: Pool) -> &Resources {
        pool.map_or(self.free(), |bundle| self.bundles.free(bundle))
    }

    /// The pool in which a worker has its lease.
    pub(super) fn pool_of(&self, client: ClientId) -> Pool {
        let lease = self.workers.get(&client)?.lease?;
        self.leases.get(&lease)?.pool
    }

    /// Takes back the resources that a worker has lent; false if others still use them.
    pub(super) fn take_lent_back(&mut self, client: ClientId) -> bool {
        let pool = self.pool_of(client);
        let worker = worker_mut(&mut self.workers, client);
        let job = worker.job;
        let part = worker.lent.take();
        assert!(part.is_some(), "{client:?} wants back what it has not lent");
        let Some(part) = part else { return true };
        if self.occupy(pool, job, &part).is_some() {
            return true;
        }
        worker_mut(&mut self.workers, client).lent = Some(part);
        false
    }

    /// Frees the resources of a worker's lease, except those that it lends right now.
    pub(super) fn give_back(&mut self, client: ClientId, (key, lease): (LeaseKey, &Lease)) {
        let lent = self.workers.get_mut(&client).and_then(|w| w.lent.take());
        self.resuming.retain(|c| *c != client);
        self.release_rest(lease.pool, lease.class.job, (&lease.class.resources, &lease.gpus[..]), lent);
        self.bundles.leave(lease.pool, key);
    }

    /// Frees resources that were taken for a job, except the lent part, which is free already.
    pub(super) fn release_rest(
        &mut self,
        pool: Pool,
        job: JobId,
        (taken, gpus): (&Resources, &[Part]),
        lent: Option<Resources>,
    ) {
        if let Some(bundle) = pool {
            self.waiting.group_changed(bundle.0);
            let stock = self.bundles.stock_mut(bundle);
            stock.give(taken, gpus);
            let was_free = lent.is_none_or(|part| stock.take(&part).is_some());
            assert!(was_free, "what is lent is part of what was taken");
            return;
        }
        self.stock.give(taken, gpus);
        // The lent part does not count, and others of the job may hold as much.
        self.quotas.give(job, &lent.as_ref().map_or_else(|| taken.clone(), |lent| taken.without(lent)));
        if let Some(part) = lent {
            assert!(self.stock.take(&part).is_some(), "what is lent is part of what was taken");
            self.shares.take(job, &part);
        }
        self.shares.give(job, taken);
        if self.ended_jobs.contains(job) {
            // If all that the job held was lent, its share was forgotten, and the lines above have created it
            // again.
            self.shares.end(job);
        }
    }
}
