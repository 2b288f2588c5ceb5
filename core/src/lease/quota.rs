//! Quotas on the side of the node that lends resources: what jobs hold here is counted against parts of their
//! quotas.
//!
//! The node of a job's driver gives each lender a part (`node/budgets.rs`). A request that has room here and
//! no part waits, and the lender says what it lacks for the first of these. A lender keeps a part that is not
//! in use until it is asked for it. What blocked workers lend is not in use: a job whose tasks wait for each
//! other within its quota goes on, and a worker resumes only within it.

use super::bundles::is_inside;
use super::{Effect, Lease, Leases, State};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_types::peer::QuotaMessage;
use tharsis_types::{ClientId, JobId, JobQuota, NodeId, Resources, TaskClass};

/// The parts of this node in the quotas of jobs.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    parts: BTreeMap<JobId, Part>,
    /// Jobs about which there may be something to say, though none of their requests has room.
    unsettled: BTreeSet<JobId>,
    /// Parts that were balanced, for a test.
    #[cfg(test)]
    balanced: usize,
}

#[derive(Debug)]
struct Part {
    terms: Arc<JobQuota>,
    /// All that the job holds here.
    held: Resources,
    /// The part of that for which no part of the quota was given: it was here before the quota was known. It
    /// is paid first of all that is given.
    unpaid: Resources,
    /// All that it may hold besides; nothing of what is unpaid.
    spare: Resources,
    /// The amount that was said to be lacking last; `None` if that is answered.
    told: Option<Resources>,
    /// The amount that goes back as soon as it is not in use.
    owed: Resources,
}

/// The wish of the node of a driver to have a part of a quota back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// The part.
    pub amount: Resources,
    /// Whether to ask leases back.
    pub in_use: bool,
    /// Whether it is for requests here: it does not go back.
    pub keep: bool,
}

impl Quotas {
    /// Whether a job may hold this besides what it holds.
    pub(super) fn allows(&self, job: JobId, demand: &Resources) -> bool {
        self.parts.get(&job).is_none_or(|part| part.lacks(demand).is_nothing())
    }

    /// A job holds more.
    pub(super) fn take(&mut self, job: JobId, demand: &Resources) {
        let Some(part) = self.parts.get_mut(&job) else { return };
        let demand = part.terms.quota.part(demand);
        assert!(part.spare.take(&demand), "{job} holds more than its part of the quota");
        part.held.give(&demand);
    }

    /// A job holds less.
    pub(super) fn give(&mut self, job: JobId, demand: &Resources) {
        let Some(part) = self.parts.get_mut(&job) else { return };
        let demand = part.terms.quota.part(demand);
        assert!(part.held.take(&demand), "{job} gives back more than it holds");
        part.come_by(&demand);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Jobs with quotas.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.parts.keys().copied()
    }

    /// A job has ended: nothing is counted any more.
    pub(super) fn end(&mut self, job: JobId) {
        self.remove(job);
    }

    fn remove(&mut self, job: JobId) -> Option<Part> {
        self.unsettled.remove(&job);
        self.parts.remove(&job)
    }

    /// Asserts that what jobs hold is counted; `held` is what they hold of the node itself.
    pub(super) fn check(&self, held: &BTreeMap<JobId, Resources>) {
        for (job, part) in &self.parts {
            assert!(part.is_settled() || self.unsettled.contains(job), "nothing is said of {job}");
            let counted = held.get(job).map(|held| part.terms.quota.part(held)).unwrap_or_default();
            let is_equal = counted.fits(&part.held) && part.held.fits(&counted);
            assert!(is_equal, "{job} holds {counted}, and {} is counted", part.held);
            assert!(part.held.fits(&part.unpaid), "{job} has to pay for more than it holds");
            assert!(least(&part.unpaid, &part.spare).is_nothing(), "{job} does not pay with what it has");
        }
    }
}

impl Part {
    /// The part of a demand that is lacking.
    fn lacks(&self, demand: &Resources) -> Resources {
        self.terms.quota.part(demand).without(&self.spare.without(&self.owed))
    }

    /// Whether there is nothing to say while no request of the job has room.
    fn is_settled(&self) -> bool {
        self.owed.is_nothing() && self.told.as_ref().is_some_and(Resources::is_nothing)
    }

    /// All that the node of the driver has given.
    fn given(&self) -> Resources {
        let mut given = self.held.without(&self.unpaid);
        given.give(&self.spare);
        given
    }

    /// This much is given, or not held any more: it pays first.
    fn come_by(&mut self, amount: &Resources) {
        let pays = least(amount, &self.unpaid);
        self.unpaid = self.unpaid.without(&pays);
        self.spare.give(&amount.without(&pays));
    }

    /// The amount that goes back now.
    fn take_owed(&mut self) -> Option<Resources> {
        // The part of the debt that is not in use.
        let now = least(&self.owed, &self.spare);
        self.owed = self.owed.without(&now);
        assert!(self.spare.take(&now), "more goes back than is spare");
        (!now.is_nothing()).then_some(now)
    }
}

/// The smaller amount of each resource.
fn least(one: &Resources, other: &Resources) -> Resources {
    one.without(&one.without(other))
}

impl Leases {
    /// A job has a quota or none, as its driver says, or whoever is believed until then.
    pub fn set_quota(&mut self, job: JobId, terms: Option<&Arc<JobQuota>>) {
        let before = self.quotas.remove(job);
        let Some(terms) = terms.filter(|_| !self.ended_jobs.contains(job)) else { return };
        // Nothing, unless leases were granted before the quota was known.
        let held = terms.quota.part(&self.held_by(job));
        let mut part = Part {
            terms: Arc::clone(terms),
            unpaid: held.clone(),
            held,
            spare: terms.quota.part(&Resources::default()),
            told: Some(Resources::default()),
            owed: Resources::default(),
        };
        // The node of the driver counts what it has given, whatever was said of the quota.
        if let Some(before) = before.filter(|before| before.terms.home == terms.home) {
            part.come_by(&terms.quota.part(&before.given()));
            part.told = before.told;
        }
        self.quotas.unsettled.insert(job);
        self.quotas.parts.insert(job, part);
    }

    /// A quota is another one: requests that have waited for parts of it may be placed.
    pub fn look_again(&mut self, out: &mut Vec<Effect>) {
        self.place_waiting(out);
    }

    /// A job of which nothing is here has a quota no more; what it was given of it goes back.
    pub(super) fn give_up_quota(&mut self, job: JobId, out: &mut Vec<Effect>) {
        let is_unused = |part: &Part| part.held.is_nothing();
        if !self.quotas.parts.get(&job).is_some_and(is_unused) {
            return;
        }
        let Some(Part { terms, spare, .. }) = self.quotas.remove(job) else { return };
        if !spare.is_nothing() {
            out.push(Effect::Quota(terms.home, QuotaMessage::Returned { job, amount: spare }));
        }
    }

    /// All that a job holds of the node itself.
    fn held_by(&self, job: JobId) -> Resources {
        // However many requests of other jobs wait.
        let placed = self.placed.iter().filter_map(|key| self.leases.get(key));
        let active = self.workers_of(job).filter_map(|client| self.leases.get(&self.workers[&client].lease?));
        let is_of_node = |lease: &&Lease| lease.class.job == job && lease.pool.is_none();
        let leases = placed.chain(active).filter(is_of_node);
        let cut_off = self.cut_off.values().filter(|worker| worker.job == job && worker.pool.is_none());
        let workers = self.workers_of(job).filter(|client| self.pool_of(*client).is_none());
        let (mut held, mut lent) = (Resources::default(), Resources::default());
        leases.for_each(|lease| held.give(&lease.class.resources));
        self.bundles.of_job(job).for_each(|bundle| held.give(bundle));
        for worker in cut_off {
            held.give(&worker.taken);
            worker.lent.iter().for_each(|part| lent.give(part));
        }
        workers.filter_map(|client| self.workers[&client].lent.as_ref()).for_each(|part| lent.give(part));
        held.without(&lent)
    }

    /// The quota of a job, if it has one.
    #[must_use]
    pub fn quota(&self, job: JobId) -> Option<&Arc<JobQuota>> {
        self.quotas.parts.get(&job).map(|part| &part.terms)
    }

    /// Resources that a job with a quota holds here, of those that it bounds.
    #[must_use]
    pub fn held_of_quota(&self, job: JobId) -> Option<&Resources> {
        self.quotas.parts.get(&job).map(|part| &part.held)
    }

    /// The node of a job's driver gives a part of the quota.
    pub fn quota_granted(&mut self, from: NodeId, job: JobId, amount: &Resources, out: &mut Vec<Effect>) {
        // The node of the driver counts what it gives: what is not taken goes back.
        let mut back = |amount| out.push(Effect::Quota(from, QuotaMessage::Returned { job, amount }));
        let Some(part) = self.quotas.parts.get_mut(&job).filter(|part| part.terms.home == from) else {
            return back(amount.clone());
        };
        self.quotas.unsettled.insert(job);
        let taken = part.terms.quota.part(amount);
        let mut room = part.terms.quota.all();
        if !(room.take(&part.given()) && room.fits(&taken)) {
            // Asked for again at the next change here, and not at once: the answer would be the same.
            part.told = None;
            return back(amount.clone());
        }
        let amount = taken;
        part.come_by(&amount);
        part.told = None;
        // Whoever it was wanted back for came before, and has it.
        part.owed = Resources::default();
        self.place_waiting(out);
    }

    /// The node of a job's driver wants a part of the quota back: what is not in use at once, and what leases
    /// hold when they end. Some are asked back if it says so, idle ones first, then the youngest.
    pub fn quota_recalled(
        &mut self,
        from: NodeId,
        job: JobId,
        recalled: Recalled,
        is_idle: impl Fn(ClientId) -> bool,
        out: &mut Vec<Effect>,
    ) {
        let part = self.quotas.parts.get_mut(&job).filter(|part| part.terms.home == from);
        let Some(part) = part else { return };
        self.quotas.unsettled.insert(job);
        let Recalled { amount, in_use, keep } = recalled;
        let amount = part.terms.quota.part(&amount);
        part.owed = if keep { Resources::default() } else { amount.clone() };
        let spare = if keep { Resources::default() } else { part.spare.clone() };
        let terms = Arc::clone(&part.terms);
        self.balance_quotas(out);
        if !in_use {
            return;
        }
        let mut missing = amount.without(&spare);
        let of_job = |lease: &&Lease| lease.class.job == job && lease.pool.is_none();
        let coming = self.leases.values().filter(of_job).filter(|lease| lease.recalled);
        for lease in coming.filter(|lease| self.gives(lease, &is_idle).is_some()) {
            missing = missing.without(&terms.quota.part(&lease.class.resources));
        }
        let candidates = self.leases.iter().filter(|(_, lease)| of_job(lease) && !lease.recalled);
        let mut candidates: Vec<_> = candidates
            .filter_map(|(key, lease)| {
                self.gives(lease, &is_idle).map(|(idle, part)| (!idle, Reverse(*key), part))
            })
            .collect();
        candidates.sort_unstable_by_key(|(is_busy, key, _)| (*is_busy, *key));
        for (_, Reverse(key), part) in candidates {
            let left = missing.without(&terms.quota.part(&part));
            if left != missing {
                self.ask_back(key, out);
                missing = left;
            }
        }
    }

    /// Whether a request waits for a part of its job's quota, whatever is free here.
    pub(super) fn lacks_quota(&self, class: &TaskClass) -> bool {
        !is_inside(class) && !self.quotas.allows(class.job, &class.resources)
    }

    /// Whether a worker that wants to resume has to wait for a part of its job's quota.
    pub(super) fn resumes_beyond_quota(&self, client: ClientId) -> bool {
        let Some(worker) = self.workers.get(&client) else { return false };
        let lent = worker.lent.as_ref().filter(|_| self.pool_of(client).is_none());
        lent.is_some_and(|lent| !self.quotas.allows(worker.job, lent))
    }

    /// Number of requests that wait for parts of quotas.
    pub(super) fn waiting_for_quota(&self) -> usize {
        if self.quotas.is_empty() {
            return 0;
        }
        let lacking = self.demands.iter().filter(|(job, demand, _)| !self.quotas.allows(*job, demand));
        lacking.map(|(.., count)| count).sum()
    }

    /// Returns parts of quotas that are wanted elsewhere and not in use here, and says what is lacking. Very
    /// many jobs may have quotas here, and nothing is to be said of most.
    pub(super) fn balance_quotas(&mut self, out: &mut Vec<Effect>) {
        if self.quotas.is_empty() {
            return;
        }
        let lacking = self.lacking_of_quotas();
        let mut jobs = std::mem::take(&mut self.quotas.unsettled);
        jobs.extend(lacking.keys());
        for job in jobs {
            #[cfg(test)]
            {
                self.quotas.balanced += 1;
            }
            let Some(part) = self.quotas.parts.get_mut(&job) else { continue };
            let home = part.terms.home;
            if let Some(amount) = part.take_owed() {
                out.push(Effect::Quota(home, QuotaMessage::Returned { job, amount }));
            }
            let amount = lacking.get(&job).cloned().unwrap_or_default();
            if part.told.as_ref() != Some(&amount) {
                part.told = Some(amount.clone());
                out.push(Effect::Quota(home, QuotaMessage::Wanted { job, amount }));
            }
            if !part.is_settled() {
                self.quotas.unsettled.insert(job);
            }
        }
    }

    /// The part of its quota that each job lacks: for the first worker that wants to resume, or for the first
    /// request that has room here.
    fn lacking_of_quotas(&self) -> BTreeMap<JobId, Resources> {
        let mut lacking: BTreeMap<JobId, Resources> = BTreeMap::new();
        let mut note = |job: JobId, demand: &Resources| {
            let part = self.quotas.parts.get(&job).filter(|_| !lacking.contains_key(&job));
            let Some(part) = part else { return };
            let lacks = part.lacks(demand);
            // More than the whole quota is never given: it would stand before all others of the job.
            if !lacks.is_nothing() && part.terms.quota.refuses(demand).is_none() {
                lacking.insert(job, lacks);
            }
        };
        for client in &self.resuming {
            if let Some(worker) = self.workers.get(client)
                && let Some(lent) = worker.lent.as_ref().filter(|_| self.pool_of(*client).is_none())
            {
                note(worker.job, lent);
            }
        }
        if self.is_held {
            return lacking;
        }
        for key in self.in_order(self.waiting.outside()) {
            let Lease { class, state, .. } = &self.leases[&key];
            assert!(matches!(state, State::Waiting(_)), "{key:?} stands among waiting leases");
            if self.free().fits(&class.resources) {
                note(class.job, &class.resources);
            }
        }
        lacking
    }
}

#[cfg(test)]
mod tests;
