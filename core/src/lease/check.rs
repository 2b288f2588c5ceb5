//! Relations between the tables of leases that hold in every state.

use super::bundles::{BundleId, is_inside};
use super::demands::Demands;
use super::gpus::numbers;
use super::{Lease, Leases, State};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{JobId, Resources};

/// Resources that leases, bundles and workers use, added up.
#[derive(Default)]
struct Used {
    /// Of the node itself.
    node: Resources,
    /// Of bundles.
    inside: BTreeMap<BundleId, Resources>,
    /// Of the node, for each job, in parts of its share.
    held: BTreeMap<JobId, u64>,
    /// The same as amounts.
    of_job: BTreeMap<JobId, Resources>,
}

impl Leases {
    /// Asserts invariant 1 and that the tables agree.
    pub fn check(&self) {
        let used = self.used();
        let (mut waiting, mut demands) = (BTreeMap::<_, usize>::new(), Demands::default());
        for (key, lease) in &self.leases {
            let State::Waiting(clock) = lease.state else { continue };
            *waiting.entry(lease.class.job).or_default() += 1;
            if !is_inside(&lease.class) {
                demands.add(lease.class.job, &lease.class.resources);
            }
            assert!(
                self.waiting.is_at(&lease.class, (Reverse(lease.urgency), clock), *key),
                "a waiting lease is not in the queue"
            );
            assert_eq!(lease.pool, None, "a waiting lease has resources");
        }
        let waits = |lease: &&Lease| matches!(lease.state, State::Waiting(_));
        self.waiting.check(self.leases.values().filter(waits).map(|lease| &*lease.class));
        assert_eq!(demands, self.demands, "what requests wait for is miscounted");
        let of_jobs: BTreeSet<_> =
            self.workers.iter().map(|(client, worker)| (worker.job, *client)).collect();
        assert_eq!(of_jobs, self.of_job, "a worker is not among those of its job");
        let idle = self.workers.values().filter(|w| w.lease.is_none());
        assert_eq!(
            idle.count(),
            self.idle.len(),
            "workers without a lease are among the idle ones, and no others"
        );
        self.shares.check(&used.held, &waiting);
        self.quotas.check(&used.of_job);
        self.check_hosts();
        self.check_inside(&used.inside);
        let mut all = self.stock.sum();
        all.give(&used.node);
        all.custom.retain(|_, n| *n > 0);
        let mut total = self.total.clone();
        total.custom.retain(|_, n| *n > 0);
        assert_eq!(all, total, "free and used resources do not add up to the total");
        self.check_workers();
        self.check_processes();
    }

    fn used(&self) -> Used {
        let mut used = Used::default();
        for (job, total) in self.check_bundles() {
            used.node.give(total);
            used.of_job.entry(job).or_default().give(total);
            *used.held.entry(job).or_default() += self.shares.part(total);
        }
        for lease in self.leases.values() {
            if let State::Placed | State::Active(_) = lease.state {
                self.add_use(&mut used, lease.pool, lease.class.job, &lease.class.resources);
            }
        }
        for cut_off in self.cut_off.values() {
            self.add_use(&mut used, cut_off.pool, cut_off.job, &cut_off.taken);
            if let Some(lent) = &cut_off.lent {
                self.drop_use(&mut used, cut_off.pool, cut_off.job, lent);
            }
        }
        for (client, worker) in &self.workers {
            if let Some(lent) = &worker.lent {
                self.drop_use(&mut used, self.pool_of(*client), worker.job, lent);
            }
        }
        used
    }

    fn add_use(&self, used: &mut Used, pool: Option<BundleId>, job: JobId, taken: &Resources) {
        match pool {
            Some(bundle) => used.inside.entry(bundle).or_default().give(taken),
            None => {
                used.node.give(taken);
                used.of_job.entry(job).or_default().give(taken);
                *used.held.entry(job).or_default() += self.shares.part(taken);
            }
        }
    }

    fn drop_use(&self, used: &mut Used, pool: Option<BundleId>, job: JobId, lent: &Resources) {
        let from = match pool {
            Some(bundle) => used.inside.entry(bundle).or_default(),
            None => {
                *used.held.entry(job).or_default() -= self.shares.part(lent);
                let held = used.of_job.entry(job).or_default();
                *held = held.without(lent);
                &mut used.node
            }
        };
        assert!(from.take(lent), "more was lent than is leased");
    }

    fn check_workers(&self) {
        for (client, worker) in &self.workers {
            let lease = worker.lease.map(|key| self.leases[&key].state);
            assert!(
                lease.is_none_or(|state| state == State::Active(*client)),
                "{client:?} has another's lease"
            );
            assert!(worker.lent.is_none() || worker.lease.is_some(), "{client:?} lends and has nothing");
            let numbers = worker.lease.map(|key| numbers(&self.leases[&key].gpus)).unwrap_or_default();
            assert_eq!(worker.gpus, numbers, "{client:?} was told of other GPUs than its lease has");
        }
        for lease in self.leases.values() {
            if let State::Active(client) = lease.state {
                assert!(self.workers.contains_key(&client), "a lease without its worker");
            }
        }
        for client in &self.resuming {
            assert!(self.workers[client].lent.is_some(), "{client:?} waits for CPUs that it has not lent");
        }
        for key in &self.placed {
            assert_eq!(self.leases[key].state, State::Placed, "{key:?} stands among placed leases");
        }
    }
}
