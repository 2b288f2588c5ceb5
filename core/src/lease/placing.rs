//! Grants of free resources: first to workers that resume, then to requests in order.

use super::bundles::{Pool, held_bundle, is_inside};
use super::gpus::Devices;
use super::share::Virtual;
use super::waiting::{Queues, Walk};
use super::{Effect, Lease, LeaseKey, Leases, State, lease_mut};
use crate::journal::Fact;
use crate::{MS, Now};
use std::cmp::Reverse;
use tharsis_types::{ClientId, JobId, NodeId, Resources, TaskClass};

/// Once a request that does not fit has waited this long, the resources that it needs are reserved for it.
/// Until then, later requests may use them.
const RESERVE_AFTER: Now = 100 * MS;
/// The time for which resources are reserved at first. Then others may use them for as long, then they are
/// reserved for twice as long, and so on: whatever the request waits for, the node is not idle for its sake
/// for more than two thirds of the time.
const RESERVE_FOR: Now = 10_000 * MS;

impl Leases {
    /// Makes requests wait. Running tasks go on, and blocked workers may resume.
    pub fn hold_placing(&mut self) {
        self.is_held = true;
    }

    /// Ends the hold of [`Leases::hold_placing`].
    pub fn resume_placing(&mut self, out: &mut Vec<Effect>) {
        self.is_held = false;
        self.place_waiting(out);
    }

    /// Refuses all requests but those of this node, also if they take nothing: it has no resources, and runs
    /// nothing for others.
    pub fn serve_own_only(&mut self, me: NodeId) {
        self.own_only = Some(me);
    }

    /// Whether a request cannot even wait here.
    pub(super) fn refuses(&self, (owner, _): LeaseKey, class: &TaskClass) -> bool {
        self.only_owner.or(self.own_only).is_some_and(|only| only != owner)
            || is_inside(class) && self.bundles.pools(class).is_empty()
            || held_bundle(class).is_some_and(|id| self.only_owner.is_some() || self.bundles.has(id))
    }

    /// Whether a request can be served at once, without passing others, if the quota of its job allows it.
    pub(super) fn has_room(&self, class: &TaskClass) -> bool {
        let is_first = || {
            let is_outside = |client: &ClientId| self.pool_of(*client).is_none();
            let resumes = |client: &ClientId| is_outside(client) && !self.resumes_beyond_quota(*client);
            let resumes_outside = self.resuming.iter().any(resumes);
            !self.has_earlier(&class.resources) && !resumes_outside
        };
        let fits = |pool: &Pool| self.free_in(*pool).fits(&class.resources);
        !self.is_held
            && self.serves(class.job)
            && (is_inside(class) || is_first())
            && self.bundles.pools(class).iter().any(fits)
    }

    /// Whether a request waits that must not be passed by one with a demand: not for a quota, not for what
    /// actors or placement groups hold, and not for other resources alone. However many wait, each demand is
    /// looked at once.
    fn has_earlier(&self, demand: &Resources) -> bool {
        let mut movable = Movable::default();
        let mut earlier = self.demands.iter().filter(|(_, earlier, _)| compete(earlier, demand));
        earlier.any(|(job, earlier, _)| self.quotas.allows(job, earlier) && movable.fits(self, None, earlier))
    }

    /// Serves resuming workers first, then the waiting leases that fit.
    pub(super) fn place_waiting(&mut self, out: &mut Vec<Effect>) {
        self.end_closed(out);
        let short = self.resume(out);
        if self.is_held {
            return self.balance_quotas(out);
        }
        let mut kept = Kept::default();
        let mut walk = Walk::new(self.served_jobs(self.waiting.outside()));
        // Behind the last one that may fit nothing is served, so nothing needs to be reserved either.
        while self.waiting.may_fit(self.free())
            && let Some(key) = walk.next(self.waiting.outside())
        {
            self.place_next(key, &short, &mut kept, &mut walk, out);
        }
        self.reserved_until = kept.until;
        self.place_inside(&short, out);
        self.balance_quotas(out);
    }

    /// Serves a request that takes nothing, if any are served: nothing is reserved against it.
    pub(super) fn place_alone(&mut self, key: LeaseKey, out: &mut Vec<Effect>) {
        self.end_closed(out);
        let short = self.resume(out);
        if !self.is_held && self.serves(self.leases[&key].class.job) {
            self.place(key, &short, &Kept::default(), out);
        }
        self.balance_quotas(out);
    }

    /// Serves requests inside the groups of which something has changed.
    fn place_inside(&mut self, short: &[Pool], out: &mut Vec<Effect>) {
        while let Some(group) = self.waiting.next_changed() {
            let mut kept = Kept::default();
            let jobs = self.waiting.inside(group).map(|queues| self.served_jobs(queues));
            let mut walk = Walk::new(jobs.into_iter().flatten());
            while let Some(key) = self.waiting.inside(group).and_then(|queues| walk.next(queues)) {
                self.place_next(key, short, &mut kept, &mut walk, out);
            }
            self.waiting.looked_at(group, kept.until);
        }
    }

    /// Places the next request of a walk, or reserves what it needs.
    fn place_next(
        &mut self,
        key: LeaseKey,
        short: &[Pool],
        kept: &mut Kept,
        walk: &mut Walk<Virtual>,
        out: &mut Vec<Effect>,
    ) {
        let job = self.leases[&key].class.job;
        if self.place(key, short, kept, out) {
            kept.movable = Movable::default();
            walk.rank(self.shares.rank(job));
        } else {
            self.reserve(key, kept);
        }
    }

    /// Gives workers that resume their CPUs back, in order. Returns the pools in which some still wait:
    /// nothing else is placed there.
    fn resume(&mut self, out: &mut Vec<Effect>) -> Vec<Pool> {
        let mut short = Vec::new();
        let mut at = 0;
        while let Some(client) = self.resuming.get(at).copied() {
            let pool = self.pool_of(client);
            if short.contains(&pool) || self.resumes_beyond_quota(client) {
                at += 1;
            } else if self.take_lent_back(client) {
                self.resuming.remove(at);
                out.push(Effect::Resume(client));
            } else {
                short.push(pool);
                at += 1;
            }
        }
        short
    }

    /// Requests in the order in which they are served: those of the job that has had least first, of these
    /// the most urgent, then the oldest. So the urgency of a job's tasks takes nothing from other jobs.
    /// Without those that are not served now.
    pub(super) fn in_order<'a>(&'a self, queues: &'a Queues) -> impl Iterator<Item = LeaseKey> {
        let mut jobs: Vec<_> = self.served_jobs(queues).collect();
        jobs.sort_unstable();
        jobs.into_iter().flat_map(|(_, job)| queues.of(job))
    }

    /// The jobs whose requests are served now, each with its rank.
    fn served_jobs(&self, queues: &Queues) -> impl Iterator<Item = (Virtual, JobId)> {
        let jobs = queues.jobs().filter(|job| self.serves(*job));
        jobs.map(|job| (self.shares.rank(job), job))
    }

    /// Makes placed leases of a pool wait again while workers want to resume there: no worker uses these
    /// leases yet.
    pub(super) fn unplace_for_resuming(&mut self, pool: Pool, out: &mut Vec<Effect>) {
        let waits =
            |leases: &Self, client| leases.pool_of(client) == pool && !leases.resumes_beyond_quota(client);
        while self.resuming.iter().any(|client| waits(self, *client))
            && let Some(at) = self.placed.iter().rposition(|key| self.takes_cpu(*key, pool))
            && let Some(key) = self.placed.get(at).copied()
        {
            self.unplace(key);
            self.place_waiting(out);
        }
    }

    /// Makes a placed lease wait again.
    pub(super) fn unplace(&mut self, key: LeaseKey) {
        self.placed.retain(|placed| *placed != key);
        let lease = lease_mut(&mut self.leases, key);
        assert_eq!(lease.state, State::Placed, "{key:?} stands among placed leases");
        let (class, pool) = (lease.class.clone(), lease.pool.take());
        let gpus = std::mem::take(&mut lease.gpus);
        lease.state = State::Waiting(lease.asked);
        self.waiting.add(&class, (Reverse(lease.urgency), lease.asked), key);
        self.waits(&class);
        self.release(pool, class.job, &class.resources, &gpus);
        self.bundles.leave(pool, key);
    }

    /// A request of a class waits.
    pub(super) fn waits(&mut self, class: &TaskClass) {
        if !is_inside(class) {
            self.demands.add(class.job, &class.resources);
        }
        self.shares.wait(class.job);
    }

    /// A request of a class is served, or is gone.
    pub(super) fn waits_no_more(&mut self, class: &TaskClass) {
        if !is_inside(class) {
            self.demands.remove(class.job, &class.resources);
        }
        self.shares.wait_no_more(class.job);
    }

    fn takes_cpu(&self, key: LeaseKey, pool: Pool) -> bool {
        let lease = &self.leases[&key];
        lease.pool == pool && 0 < lease.class.resources.cpu
    }

    /// Places a request if it fits; false if it goes on waiting.
    fn place(&mut self, key: LeaseKey, short: &[Pool], kept: &Kept, out: &mut Vec<Effect>) -> bool {
        let class = self.leases[&key].class.clone();
        let bundle = held_bundle(&class);
        let has_room = |pool: &Pool| {
            let mut usable = self.free_in(*pool).clone();
            kept.take_from(*pool, &mut usable);
            !short.contains(pool) && usable.fits(&class.resources)
        };
        if self.lacks_quota(&class) {
            return false;
        }
        let Some(pool) = self.bundles.pools(&class).into_iter().find(has_room) else { return false };
        let Some(gpus) = self.occupy(pool, class.job, &class.resources) else { return false };
        let lease = lease_mut(&mut self.leases, key);
        assert_eq!(lease.state, State::Waiting(lease.asked), "{key:?} gets resources and does not wait");
        self.waiting.remove(&class, (Reverse(lease.urgency), lease.asked), key);
        if let Some(id) = bundle {
            lease.state = State::Bundle;
            self.waits_no_more(&class);
            self.open_bundle(key, id, &class, gpus);
            out.push(Effect::Reserved(key));
            self.deny_others(id, out);
            return true;
        }
        (lease.state, lease.pool, lease.gpus) = (State::Placed, pool, gpus);
        self.bundles.enter(pool, key);
        self.waits_no_more(&class);
        self.placed.push_back(key);
        self.note(key, Fact::Placed);
        self.find_worker(key, out);
        true
    }

    /// Reserves the resources of a request against later ones, if it has waited long enough and they can
    /// come.
    fn reserve(&mut self, key: LeaseKey, kept: &mut Kept) {
        let Some(lease) = self.leases.get(&key) else { return };
        let waited = self.shares.now().saturating_sub(lease.asked_at);
        let Some(time_left) = reserved_for(waited).filter(|_| !self.lacks_quota(&lease.class)) else {
            return;
        };
        let can_come = |pool: &Pool| kept.movable.fits(self, *pool, &lease.class.resources);
        if let Some(pool) = self.bundles.pools(&lease.class).into_iter().find(can_come) {
            kept.give(pool, &lease.class.resources);
            let until = self.shares.now() + time_left;
            kept.until = Some(kept.until.map_or(until, |other| other.min(until)));
        }
    }

    /// Places requests again if the time of a reservation is over.
    pub fn end_reservations(&mut self, out: &mut Vec<Effect>) {
        let now = self.shares.now();
        if self.waiting.end_reservations(now) || self.reserved_until.is_some_and(|until| until <= now) {
            self.place_waiting(out);
        }
    }

    /// The resources of a pool that do not come back while others want them: those of actors, but for what
    /// these lend, of bundles, and of workers that were cut off.
    fn held_for_good(&self, pool: Pool) -> Resources {
        let mut held = Resources::default();
        for (client, lease) in self.hosts_in(pool) {
            held.give(&lease.class.resources);
            let lent = self.workers.get(&client).and_then(|worker| worker.lent.as_ref());
            lent.into_iter().for_each(|lent| take_what_is_there(&mut held, lent));
        }
        for worker in self.cut_off.values().filter(|worker| worker.pool == pool) {
            held.give(&worker.taken);
            worker.lent.iter().for_each(|lent| take_what_is_there(&mut held, lent));
        }
        if pool.is_none() {
            held.give(self.bundles.held());
        }
        held
    }

    /// The largest demand for GPUs of a pool that may be placed in the end, without those that are held for
    /// good; `None` if they are only counted. What is left of several devices is no whole one.
    fn movable_gpus(&self, pool: Pool) -> Option<u64> {
        let mut devices = match pool {
            None => Devices::of_node(self.total.gpu),
            Some(bundle) => Devices::of_bundle(self.bundles.gpus(bundle)),
        };
        if devices.is_empty() {
            return None;
        }
        self.hosts_in(pool).for_each(|(_, lease)| devices.hold(&lease.gpus));
        let cut_off = self.cut_off.values().filter(|worker| worker.pool == pool);
        cut_off.for_each(|worker| devices.hold(&worker.gpus));
        if pool.is_none() {
            self.bundles.all_gpus().for_each(|gpus| devices.hold(gpus));
        }
        Some(devices.largest())
    }

    /// The workers of living actors that take resources of a pool, and their leases.
    fn hosts_in(&self, pool: Pool) -> impl Iterator<Item = (ClientId, &Lease)> {
        let inside = pool.into_iter().flat_map(|bundle| self.bundles.leases(bundle));
        let inside = inside.filter_map(|key| Some((self.worker(key).filter(|it| self.is_host(*it))?, key)));
        let all = pool.is_none().then(|| self.hosts.taking()).into_iter().flatten();
        let leases = all.chain(inside).filter_map(|(client, key)| Some((client, self.leases.get(&key)?)));
        leases.filter(move |(_, lease)| lease.pool == pool)
    }

    /// All resources of a pool.
    fn total_of(&self, pool: Pool) -> &Resources {
        pool.map_or(&self.total, |bundle| self.bundles.total(bundle))
    }
}

/// Whether two demands are for the same resources, or some of these.
fn compete(one: &Resources, other: &Resources) -> bool {
    let builtin = [(one.cpu, other.cpu), (one.gpu, other.gpu), (one.memory, other.memory)];
    let custom =
        one.custom.iter().map(|(name, amount)| (*amount, other.custom.get(name).copied().unwrap_or(0)));
    builtin.into_iter().chain(custom).any(|(one, other)| 0 < one && 0 < other)
}

/// For how much longer resources are reserved for a request that has waited for some time; `None` if they
/// are not.
fn reserved_for(waited: Now) -> Option<Now> {
    let since = waited.checked_sub(RESERVE_AFTER)?;
    match (since / RESERVE_FOR).checked_ilog2() {
        None => Some(RESERVE_FOR - since),
        Some(doublings) if doublings % 2 == 1 => Some((RESERVE_FOR << (doublings + 1)) - since),
        Some(_) => None,
    }
}

/// Resources of pools that may come free for a request: all but those that are held for good. Looked up
/// once, as there may be many actors.
#[derive(Default)]
struct Movable(Vec<(Pool, Resources)>);

impl Movable {
    /// Whether a demand may fit a pool in the end.
    fn fits(&mut self, leases: &Leases, pool: Pool, demand: &Resources) -> bool {
        if let Some((_, movable)) = self.0.iter().find(|(of, _)| *of == pool) {
            return movable.fits(demand);
        }
        let mut movable = leases.total_of(pool).clone();
        take_what_is_there(&mut movable, &leases.held_for_good(pool));
        movable.gpu = leases.movable_gpus(pool).unwrap_or(movable.gpu);
        let fits = movable.fits(demand);
        self.0.push((pool, movable));
        fits
    }
}

/// Resources that are kept for requests which have waited for long, by pool.
#[derive(Default)]
struct Kept {
    resources: Vec<(Pool, Resources)>,
    movable: Movable,
    /// When the first of these reservations ends.
    until: Option<Now>,
}

impl Kept {
    fn give(&mut self, pool: Pool, resources: &Resources) {
        match self.resources.iter_mut().find(|(of, _)| *of == pool) {
            Some((_, kept)) => kept.give(resources),
            None => self.resources.push((pool, resources.clone())),
        }
    }

    /// Takes what is kept out of what is free.
    fn take_from(&self, pool: Pool, free: &mut Resources) {
        if let Some((_, kept)) = self.resources.iter().find(|(of, _)| *of == pool) {
            take_what_is_there(free, kept);
        }
    }
}

fn take_what_is_there(from: &mut Resources, what: &Resources) {
    from.cpu = from.cpu.saturating_sub(what.cpu);
    from.gpu = from.gpu.saturating_sub(what.gpu);
    from.memory = from.memory.saturating_sub(what.memory);
    for (name, have) in &mut from.custom {
        *have = have.saturating_sub(what.custom.get(name).copied().unwrap_or(0));
    }
}
