//! Requests for leases: made once, and raised while they wait.

use super::bundles::is_inside;
use super::gpus::Parts;
use super::{Effect, Lease, LeaseKey, Leases, State};
use crate::journal::Fact;
use std::cmp::Reverse;
use std::sync::Arc;
use tharsis_types::TaskClass;

impl Leases {
    /// An owner wants a worker.
    pub fn request(
        &mut self,
        key: LeaseKey,
        class: Arc<TaskClass>,
        wait: bool,
        urgency: i32,
        out: &mut Vec<Effect>,
    ) {
        if let Some(known) = self.leases.get(&key) {
            match known.state {
                State::Active(client) => out.push(Effect::Granted(key, client)),
                State::Bundle => out.push(Effect::Reserved(key)),
                State::Waiting(_) | State::Placed => {}
            }
            return;
        }
        if self.refuses(key, &class) || !wait && !self.has_room(&class) {
            out.push(Effect::Denied(key));
            return;
        }
        self.clock += 1;
        self.waiting.add(&class, (Reverse(urgency), self.clock), key);
        let job = class.job;
        self.waits(&class);
        let fits = is_inside(&class) || self.free().fits(&class.resources);
        let is_free = !is_inside(&class) && class.resources.is_nothing();
        let (asked, asked_at) = (self.clock, self.shares.now());
        let state = State::Waiting(asked);
        let (pool, gpus) = (None, Parts::new());
        let lease = Lease { class, state, pool, gpus, urgency, asked, asked_at, recalled: false };
        let before = self.leases.insert(key, lease);
        assert!(before.is_none(), "{key:?} is asked for twice");
        if self.ended_jobs.contains(job) {
            self.shares.end(job);
        }
        // Whatever waited before did not fit, and nothing has come free. One that takes nothing passes all.
        if is_free {
            self.place_alone(key, out);
        } else if fits {
            self.place_waiting(out);
        }
        if self.leases.get(&key).is_some_and(|lease| matches!(lease.state, State::Waiting(_))) {
            self.note(key, Fact::LeaseWaits);
        }
    }

    /// An owner wants a worker more urgently than it said. A request that does not wait any more stays as it
    /// is: made anew, it could give a lease to tasks that were sent under the one before.
    pub fn raise(&mut self, key: LeaseKey, urgency: i32) {
        let Some(known) = self.leases.get_mut(&key) else { return };
        if let State::Waiting(asked) = known.state
            && known.urgency < urgency
        {
            self.waiting.remove(&known.class, (Reverse(known.urgency), asked), key);
            known.urgency = urgency;
            self.waiting.add(&known.class, (Reverse(urgency), asked), key);
        }
    }
}
