//! Cuts between two hosts: of all that goes between them, or of transfers alone.

use crate::cluster::{Cluster, SimEvent, Transfer};
use crate::remembered::Cut;
use crate::rng::{Rng, mix};
use crate::waiting::SETTLES_IN;
use tharsis_core::pull::Interrupted;
use tharsis_core::{Event, MS, Now};

/// A large object of which a holder that is not reached was asked is asked of another one within this time.
const LEFT_WITHIN: Now = 10_000 * MS;

impl Cluster {
    /// In some clusters there are long cuts: of transfers, and of all if nothing else would be late by that
    /// for which nodes have no patience.
    pub(crate) fn plan_cuts(&mut self, seed: u64, may_be_of_all: bool) {
        let mut rng = Rng::new(mix(seed, 5));
        let count = if rng.chance(300) { rng.range(1, 4) } else { 0 };
        for _ in 0..count {
            let hosts = (rng.index(self.hosts.len()), rng.index(self.hosts.len()));
            let is_of_transfers = !may_be_of_all || rng.chance(500);
            let from = self.now + rng.range(MS, 300 * MS);
            let length = rng.range(10 * MS, 15_000 * MS);
            self.at(from, SimEvent::Cut { hosts, length, is_of_transfers });
        }
    }

    /// Two hosts do not reach each other from now on.
    pub(crate) fn cut(&mut self, hosts: (usize, usize), length: Now, is_of_transfers: bool) {
        let until = self.now + length;
        self.cuts.push(Cut { hosts, until, is_of_transfers });
        if !is_of_transfers {
            self.waiting.news_late = self.waiting.news_late.max(until + SETTLES_IN);
        }
        self.upset(hosts.0, until);
        self.upset(hosts.1, until);
    }

    /// Whether messages do not pass between two hosts.
    pub(crate) fn is_cut(&self, a: usize, b: usize) -> bool {
        let mut cuts = self.cuts.iter().filter(|cut| !cut.is_of_transfers && self.now < cut.until);
        cuts.any(|cut| cut.is_between(a, b))
    }

    /// A transfer breaks off in a cut, with its source, or by accident; a number for the bytes that had come.
    pub(crate) fn breaks_off(&mut self, host: usize, source: Option<usize>) -> Option<u64> {
        let mut cuts = self.cuts.iter().filter(|cut| self.now < cut.until);
        if source.is_none_or(|source| cuts.any(|cut| cut.is_between(host, source))) {
            return Some(0);
        }
        self.rng.chance(self.faults.pull_failure).then(|| self.rng.next())
    }

    /// A transfer has ended before all of it has come.
    pub(crate) fn pull_interrupted(&mut self, host: usize, transfer: &Transfer, done_bytes: u64) {
        self.summary.interruption_count += 1;
        let Transfer { object, from, into, copy, .. } = *transfer;
        let done_bytes = done_bytes % (into.len + 1);
        let ended = Interrupted { object, from, done_bytes, copy, cause: "broke off".into() };
        self.feed(host, Event::PullInterrupted(ended));
    }

    /// Nobody waits for an answer that cannot come: a transfer would hold its place for as long.
    pub(crate) fn look_at_asked(&mut self) {
        let before = std::mem::take(&mut self.waiting.asked);
        let serving = |host: &usize| self.hosts[*host].alive && self.hosts[*host].paused_until <= self.now;
        for host in (0..self.hosts.len()).filter(serving).collect::<Vec<_>>() {
            let at = &self.hosts[host];
            for (object, holder) in at.node.asked_for().collect::<Vec<_>>() {
                let other = self.hosts.iter().position(|other| other.id == holder && other.alive);
                if other.is_none_or(|other| !self.is_cut(host, other)) {
                    continue;
                }
                let key = (self.hosts[host].id, object, holder);
                let since = before.get(&key).copied().unwrap_or(self.now);
                self.waiting.asked.insert(key, since);
                if since + LEFT_WITHIN < self.now {
                    let text = format!("{object} is asked of node {holder} since {} ms", since / MS);
                    return self.fail("a transfer leaves a holder that is not reached", text);
                }
            }
        }
    }
}
