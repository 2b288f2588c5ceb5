//! Grants of free resources: first to workers that resume, then to requests in order.

use super::{Effect, LeaseKey, Leases, State, lease_mut};
use crate::journal::Fact;
use crate::{MS, Now};
use std::cmp::Reverse;
use tharsis_types::Resources;

/// Once a request that does not fit has waited this long, the resources that it needs are reserved for it.
/// Until then, later requests may use them.
const RESERVE_AFTER: Now = 100 * MS;

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

    /// Serves resuming workers first, then the waiting leases that fit.
    pub(super) fn place_waiting(&mut self, out: &mut Vec<Effect>) {
        while let Some(client) = self.resuming.front().copied() {
            if !self.take_lent_back(client) {
                return;
            }
            self.resuming.pop_front();
            out.push(Effect::Resume(client));
        }
        if self.is_held {
            return;
        }
        let mut kept = Resources::default();
        let mut order = self.in_order();
        let mut at = 0;
        while let Some(key) = order.get(at).copied() {
            if self.place(key, &kept, out) {
                // The grant moves its job back in the order.
                order.remove(at);
                self.put_in_order(&mut order[at..]);
            } else {
                self.reserve(key, &mut kept);
                at += 1;
            }
        }
    }

    /// Requests in the order in which they are served: the most urgent first, then the job that has had
    /// least, then the oldest. Without those that are not served now.
    pub(super) fn in_order(&self) -> Vec<LeaseKey> {
        let is_served = |key: &LeaseKey| self.serves(self.leases[key].class.job);
        let mut order: Vec<_> = self.waiting.values().copied().filter(is_served).collect();
        self.put_in_order(&mut order);
        order
    }

    fn put_in_order(&self, requests: &mut [LeaseKey]) {
        requests.sort_by_cached_key(|key| {
            let lease = &self.leases[key];
            (Reverse(lease.class.priority), self.shares.rank(lease.class.job), lease.asked)
        });
    }

    /// Makes placed leases wait again while workers want to resume: no worker uses these leases yet.
    pub(super) fn unplace_for_resuming(&mut self, out: &mut Vec<Effect>) {
        while !self.resuming.is_empty()
            && let Some(at) = self.placed.iter().rposition(|key| self.takes_cpu(*key))
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
        let class = lease.class.clone();
        lease.state = State::Waiting(lease.asked);
        self.waiting.insert((Reverse(class.priority), lease.asked), key);
        self.shares.wait(class.job);
        self.release(class.job, &class.resources);
    }

    fn takes_cpu(&self, key: LeaseKey) -> bool {
        0 < self.leases[&key].class.resources.cpu
    }

    fn place(&mut self, key: LeaseKey, kept: &Resources, out: &mut Vec<Effect>) -> bool {
        let class = self.leases[&key].class.clone();
        let mut usable = self.free.clone();
        take_what_is_there(&mut usable, kept);
        if !usable.fits(&class.resources) || !self.occupy(class.job, &class.resources) {
            return false;
        }
        let lease = lease_mut(&mut self.leases, key);
        assert_eq!(lease.state, State::Waiting(lease.asked), "{key:?} gets resources and does not wait");
        lease.state = State::Placed;
        let waited = self.waiting.remove(&(Reverse(class.priority), lease.asked));
        assert_eq!(waited, Some(key), "a lease does not wait where it says");
        self.shares.wait_no_more(class.job);
        self.placed.push_back(key);
        self.note(key, Fact::Placed);
        self.find_worker(key, out);
        true
    }

    /// Reserves the resources of a request against later ones, if it has waited long enough.
    fn reserve(&self, key: LeaseKey, kept: &mut Resources) {
        let lease = &self.leases[&key];
        if lease.asked_at + RESERVE_AFTER <= self.shares.now() {
            kept.give(&lease.class.resources);
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
