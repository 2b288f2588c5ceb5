//! Nodes that drain, and leave in time or not.

use crate::cluster::{Cluster, Host, SimEvent};
use crate::rng::{Rng, mix};
use tharsis_core::{Event, MS, Now};

impl Cluster {
    /// In some clusters nodes drain, with enough time for it or not; the number of these.
    pub(crate) fn plan_drains(&mut self, seed: u64) -> u64 {
        let mut rng = Rng::new(mix(seed, 1));
        let count = if rng.chance(400) { rng.range(1, 3) } else { 0 };
        for _ in 0..count {
            let is_free = |host: &usize| self.hosts[*host].clients.values().all(|c| c.driver.is_none());
            let free: Vec<_> = (0..self.hosts.len()).filter(is_free).collect();
            let any = rng.index(self.hosts.len());
            // A node with a driver stays until its deadline.
            let host = if free.is_empty() || rng.chance(200) { any } else { free[rng.index(free.len())] };
            let when = self.now + rng.range(MS, 200 * MS);
            let within = if rng.chance(200) { rng.range(0, 50 * MS) } else { 20_000 * MS };
            self.at(when, SimEvent::Drain { host, within });
        }
        count
    }

    pub(crate) fn drain_host(&mut self, host: usize, within: Now) {
        let serves = |h: &&Host| h.alive && !h.node.is_draining();
        if self.hosts[host].node.is_draining() || self.hosts.iter().filter(serves).count() < 2 {
            return;
        }
        self.oracle.drains += 1;
        self.summary.drain_count += u32::from(self.hosts[host].alive);
        self.feed(host, Event::DrainWanted { within });
    }

    /// A node that drained ends. If it left anything behind, that is lost as with a node that died.
    pub(crate) fn leave(&mut self, host: usize) {
        if self.hosts.iter().filter(|h| h.alive).count() < 2 {
            return;
        }
        let state = self.hosts[host].node.drain_state();
        if !state.is_some_and(|state| state.is_clean) {
            return self.crash_host(host);
        }
        self.oracle.departures.insert(self.hosts[host].id);
        self.summary.departure_count += 1;
        self.hosts[host].alive = false;
        self.hosts[host].clients.clear();
        self.tell_left(host, 0, 20 * MS);
    }

    /// Tells the others that a node is gone, after a while.
    pub(crate) fn tell_left(&mut self, about: usize, from: Now, to: Now) {
        // Also those whose end may not have been heard.
        let jobs = self.hosts[about].driven.clone();
        for other in 0..self.hosts.len() {
            if other != about && self.hosts[other].alive {
                let when = self.now + self.rng.range(from, to);
                self.at(when, SimEvent::ToldLeft { host: other, about, jobs: jobs.clone() });
            }
        }
    }
}
