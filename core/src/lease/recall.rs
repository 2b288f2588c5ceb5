//! Choice of the leases that are asked back for workers that resume and for requests that wait, and the end
//! of the leases of a dead owner.

use super::bundles::Pool;
use super::{Effect, Lease, LeaseKey, Leases, State, lease_mut};
use std::cmp::Reverse;
use tharsis_types::{ClientId, JobId, NodeId, Resources, TaskClass, TaskId};

/// Requests at the front, and of the others, that one call of [`Leases::recall`] looks at.
const RECALL_LOOKS: usize = 64;

impl Leases {
    /// Whether workers or requests wait for resources that leases hold.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        !self.resuming.is_empty() || !self.waiting.is_empty()
    }

    /// Finds CPUs for workers that want to resume. A lease whose worker is still starting waits again. Idle
    /// leases are asked back at once, busy ones if these are too few. The youngest go first, because nested
    /// tasks depend on the oldest. With `again`, busy leases that were asked back before do not count: their
    /// tasks may take long.
    pub fn make_way(&mut self, is_idle: impl Fn(ClientId) -> bool, again: bool, out: &mut Vec<Effect>) {
        let mut pools: Vec<Pool> = Vec::new();
        for client in &self.resuming {
            let pool = self.pool_of(*client);
            if !pools.contains(&pool) {
                pools.push(pool);
            }
        }
        pools.into_iter().for_each(|pool| self.make_way_in(pool, &is_idle, again, out));
    }

    /// As [`Leases::make_way`], in one pool.
    fn make_way_in(
        &mut self,
        pool: Pool,
        is_idle: impl Fn(ClientId) -> bool,
        again: bool,
        out: &mut Vec<Effect>,
    ) {
        self.unplace_for_resuming(pool, out);
        let mut coming = self.free_in(pool).cpu_part();
        let recalled = self.active().filter(|(_, l)| l.recalled && l.pool == pool);
        let recalled: Vec<_> = recalled.filter_map(|(_, l)| self.gives(l, &is_idle)).collect();
        recalled.iter().filter(|(idle, _)| *idle || !again).for_each(|(_, part)| coming.give(part));
        let waits =
            |client: &&ClientId| self.pool_of(**client) == pool && !self.resumes_beyond_quota(**client);
        let resuming = self.resuming.iter().filter(waits);
        let need = resuming.filter_map(|client| self.workers.get(client)?.lent.as_ref());
        let mut need: u64 = need.map(|part| part.cpu).sum();
        need = need.saturating_sub(coming.cpu);
        if need == 0 {
            return;
        }
        let candidates = self.active().filter(|(_, l)| !l.recalled && l.pool == pool);
        let mut candidates: Vec<_> = candidates
            .filter_map(|(key, l)| self.gives(l, &is_idle).map(|(idle, part)| (!idle, Reverse(key), part)))
            .filter(|(_, _, part)| 0 < part.cpu)
            .collect();
        candidates.sort_unstable_by_key(|(busy, key, _)| (*busy, *key));
        for (_, Reverse(key), part) in candidates {
            if need == 0 {
                return;
            }
            need = need.saturating_sub(part.cpu);
            self.ask_back(key, out);
        }
    }

    /// Asks leases back for the first request that is entitled to some. Called periodically. Idle leases go
    /// first. If many wait, a call looks at the first of them, and at some of the others in turn. Requests
    /// inside groups want other leases than those are: of some groups in turn, the first is looked for too,
    /// in the same way.
    pub fn recall(&mut self, is_idle: impl Fn(ClientId) -> bool, out: &mut Vec<Effect>) {
        let from = self.waiting.looked_to.max(RECALL_LOOKS);
        let outside = self.waiting.outside();
        let mut looked_at: Vec<_> = self.in_order(outside).take(RECALL_LOOKS).collect();
        looked_at.extend(self.in_order(outside).skip(from).take(RECALL_LOOKS));
        self.waiting.looked_to = if looked_at.len() < 2 * RECALL_LOOKS { 0 } else { from + RECALL_LOOKS };
        self.recall_for_one(looked_at, &is_idle, out);
        let groups: Vec<_> = self.waiting.groups_after(self.waiting.recalled_to).take(RECALL_LOOKS).collect();
        let mut looks = RECALL_LOOKS;
        for group in groups {
            let looked_at = self.look_inside(group, looks);
            looks -= looked_at.len();
            self.recall_for_one(looked_at, &is_idle, out);
            self.waiting.recalled_to = Some(group);
            if looks == 0 {
                return;
            }
        }
    }

    /// The requests inside a group that a recall looks at, at most so many: all of them, or the first and
    /// those whose turn has come.
    fn look_inside(&mut self, group: TaskId, looks: usize) -> Vec<LeaseKey> {
        let (count, looked_to) = self.waiting.counts_inside(group);
        let first = if count <= looks { looks } else { looks / 2 };
        let from = looked_to.max(first);
        let Some(queues) = self.waiting.inside(group) else { return Vec::new() };
        let mut looked_at: Vec<_> = self.in_order(queues).take(first).collect();
        looked_at.extend(self.in_order(queues).skip(from).take(looks - first));
        let next = if looked_at.len() < looks { 0 } else { from + looks - first };
        self.waiting.set_looked_to(group, next);
        looked_at
    }

    /// Asks leases back for the first of some requests that is entitled to any.
    fn recall_for_one(
        &mut self,
        requests: Vec<LeaseKey>,
        is_idle: impl Fn(ClientId) -> bool,
        out: &mut Vec<Effect>,
    ) {
        for key in requests {
            let wanted = self.leases[&key].class.clone();
            if self.lacks_quota(&wanted) {
                continue;
            }
            for pool in self.bundles.pools(&wanted) {
                let victims = self.victims(pool, &wanted, &is_idle);
                if !victims.is_empty() {
                    victims.into_iter().for_each(|victim| self.ask_back(victim, out));
                    return;
                }
            }
        }
    }

    /// Leases of other shapes or jobs that make room for a request in a pool, no more than it needs; none if
    /// all together are not enough.
    fn victims(&self, pool: Pool, wanted: &TaskClass, is_idle: impl Fn(ClientId) -> bool) -> Vec<LeaseKey> {
        let mut free = self.free_in(pool).clone();
        if free.fits(&wanted.resources) {
            return Vec::new();
        }
        let is_other = |c: &TaskClass| {
            c.job != wanted.job
                || c.resources != wanted.resources
                || c.priority != wanted.priority
                || c.max_calls != wanted.max_calls
                || c.placement != wanted.placement
        };
        let may_go = |l: &Lease| {
            let yields = l.class.job != wanted.job || l.class.priority <= wanted.priority;
            l.pool == pool && !l.recalled && yields && is_other(&l.class)
        };
        let candidate = |(key, lease): (LeaseKey, &Lease)| {
            let (idle, part) = self.gives(lease, &is_idle)?;
            let rank = Reverse(self.shares.rank(lease.class.job));
            (idle || self.may_take(lease, wanted)).then_some(((!idle, rank, key), part))
        };
        let inside = pool.into_iter().flat_map(|bundle| self.bundles.leases(bundle));
        let inside = inside.filter_map(|key| Some((key, self.leases.get(&key)?)));
        let outside = pool.is_none().then(|| self.active()).into_iter().flatten();
        let may_go = outside.chain(inside).filter(|(_, l)| may_go(l));
        let mut candidates: Vec<_> = may_go.filter_map(candidate).collect();
        candidates.sort_unstable_by_key(|(order, _)| *order);
        let mut victims = Vec::new();
        for ((.., key), part) in candidates {
            free.give(&part);
            victims.push(key);
            if free.fits(&wanted.resources) {
                return victims;
            }
        }
        Vec::new()
    }

    /// Whether a busy lease may be asked back for a request. Priorities count within a job only.
    fn may_take(&self, lease: &Lease, wanted: &TaskClass) -> bool {
        let class = &lease.class;
        let holder = (class.job, &class.resources);
        class.job == wanted.job || self.shares.gives_way(holder, (wanted.job, &wanted.resources))
    }

    /// The leases that workers have, however many requests wait.
    fn active(&self) -> impl Iterator<Item = (LeaseKey, &Lease)> {
        let keys = self.workers.values().filter_map(|worker| worker.lease);
        keys.filter_map(|key| Some((key, self.leases.get(&key)?)))
    }

    /// Whether an active lease is idle, and the resources that it would return; `None` if its worker is
    /// blocked or belongs to an actor.
    pub(super) fn gives(
        &self,
        lease: &Lease,
        is_idle: impl Fn(ClientId) -> bool,
    ) -> Option<(bool, Resources)> {
        let State::Active(client) = lease.state else { return None };
        if self.is_host(client) {
            return None;
        }
        let is_lent = self.workers.get(&client).is_some_and(|w| w.lent.is_some());
        (!is_lent).then(|| (is_idle(client), lease.class.resources.clone()))
    }

    /// Ends all leases of a node that died. A busy worker keeps its lease, and so its resources, until it is
    /// gone: it is appended to `doomed`, to be killed.
    pub fn owner_gone(
        &mut self,
        owner: NodeId,
        is_busy: impl Fn(ClientId) -> bool,
        doomed: &mut Vec<ClientId>,
        out: &mut Vec<Effect>,
    ) {
        self.detach_node(owner);
        let keys: Vec<_> = self.leases.keys().filter(|(node, _)| *node == owner).copied().collect();
        for key in keys {
            match self.worker(key).filter(|client| is_busy(*client)) {
                Some(client) => doomed.push(client),
                None => self.end(key, out),
            }
        }
    }

    /// A job begins here. Nobody knows of a job before: requests and leases of it were made up, and end. A
    /// busy worker keeps its lease until it is gone: it is appended to `doomed`, to be killed.
    pub fn end_made_up(
        &mut self,
        job: JobId,
        is_busy: impl Fn(ClientId) -> bool,
        doomed: &mut Vec<ClientId>,
        out: &mut Vec<Effect>,
    ) {
        let of_job = self.leases.iter().filter(|(_, lease)| lease.class.job == job);
        let mut keys: Vec<_> =
            of_job.map(|(key, lease)| (!matches!(lease.state, State::Waiting(_)), *key)).collect();
        // First those that wait: they do not take what the others free.
        keys.sort_unstable();
        for (_, key) in keys {
            // A bundle may have ended some of those inside.
            let Some(lease) = self.leases.get(&key) else { continue };
            let effect = match lease.state {
                State::Active(client) if is_busy(client) => {
                    doomed.push(client);
                    continue;
                }
                State::Active(_) | State::Bundle => Effect::Revoked(key),
                State::Waiting(_) | State::Placed => Effect::Denied(key),
            };
            self.end(key, out);
            out.push(effect);
        }
    }

    pub(super) fn ask_back(&mut self, key: LeaseKey, out: &mut Vec<Effect>) {
        let lease = lease_mut(&mut self.leases, key);
        assert!(!lease.recalled, "{key:?} is asked back twice");
        lease.recalled = true;
        out.push(Effect::Recall(key));
    }
}
