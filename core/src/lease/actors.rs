//! Actors: workers that belong to one, and the attachments of the nodes that call it.
//!
//! A worker whose run has constructed an actor belongs to that actor until its lease ends: it is not asked
//! back, not idle, and stops in the end, so that nothing finds what the actor left. Nodes that call the
//! actor have *attachments*: leases that name the same worker and take no resources.

use super::{Effect, LeaseKey, Leases, State};
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::hash::IdMap;
use tharsis_types::{Attempt, ClientId, LeaseId, NodeId, TaskId};

/// Workers of actors.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    by_worker: BTreeMap<ClientId, Host>,
    /// The workers of actors that take resources, and their leases: most of very many take none.
    taking: BTreeMap<ClientId, LeaseKey>,
    by_actor: IdMap<TaskId, ClientId>,
    attached: BTreeMap<LeaseKey, ClientId>,
    /// The attachments of each worker.
    of_worker: BTreeSet<(ClientId, LeaseKey)>,
    /// Attachments of which a call was given back: later ones go back too.
    closed: BTreeSet<LeaseKey>,
}

/// The actor of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The lease under which the actor was constructed.
    pub lease: LeaseKey,
    /// The task that constructed it.
    pub actor: TaskId,
    /// The attempt.
    pub attempt: Attempt,
}

impl Hosts {
    /// The workers of living actors that take resources, and the leases under which these were constructed.
    pub(super) fn taking(&self) -> impl Iterator<Item = (ClientId, LeaseKey)> {
        self.taking.iter().map(|(client, lease)| (*client, *lease))
    }

    fn attach(&mut self, key: LeaseKey, client: ClientId) {
        if let Some(before) = self.attached.insert(key, client) {
            self.of_worker.remove(&(before, key));
        }
        self.of_worker.insert((client, key));
    }

    fn detach(&mut self, key: LeaseKey) -> bool {
        self.closed.remove(&key);
        let Some(client) = self.attached.remove(&key) else { return false };
        let was_there = self.of_worker.remove(&(client, key));
        assert!(was_there, "{key:?} is not among the attachments of its worker");
        true
    }

    /// The attachments of a worker.
    fn attached_to(&self, client: ClientId) -> Vec<LeaseKey> {
        const FIRST: LeaseKey = (NodeId(0), LeaseId(0));
        const LAST: LeaseKey = (NodeId(u64::MAX), LeaseId(u64::MAX));
        self.of_worker.range((client, FIRST)..=(client, LAST)).map(|(_, key)| *key).collect()
    }
}

impl Leases {
    /// The worker of an active lease or of an attachment.
    #[must_use]
    pub fn worker(&self, lease: LeaseKey) -> Option<ClientId> {
        let Some(known) = self.leases.get(&lease) else { return self.attached(lease) };
        match known.state {
            State::Active(client) => Some(client),
            State::Waiting(_) | State::Placed | State::Bundle => None,
        }
    }

    /// The run of a worker has constructed an actor. Its resources do not come back while others want them
    /// any more, so what was kept for a request that needs them is for the others.
    pub fn constructed(&mut self, client: ClientId, actor: TaskId, attempt: Attempt, out: &mut Vec<Effect>) {
        // The lease may have ended since the run was sent.
        let Some(lease) = self.lease_of(client) else { return };
        let before = self.hosts.by_worker.insert(client, Host { lease, actor, attempt });
        assert!(before.is_none(), "{client:?} has two actors");
        self.hosts.by_actor.insert(actor, client);
        let taking = self.leases.get(&lease).filter(|lease| !lease.class.resources.is_nothing());
        let Some(pool) = taking.map(|lease| lease.pool) else { return };
        self.hosts.taking.insert(client, lease);
        pool.into_iter().for_each(|(group, _)| self.waiting.group_changed(group));
        self.place_waiting(out);
    }

    /// The actor of a worker.
    #[must_use]
    pub fn host(&self, client: ClientId) -> Option<Host> {
        self.hosts.by_worker.get(&client).copied()
    }

    /// The workers of living actors.
    #[must_use]
    pub fn hosts(&self) -> Vec<ClientId> {
        self.hosts.by_worker.keys().copied().collect()
    }

    /// Whether a worker belongs to an actor.
    #[must_use]
    pub fn is_host(&self, client: ClientId) -> bool {
        self.hosts.by_worker.contains_key(&client)
    }

    /// The worker of an actor, named by the task that constructed it.
    #[must_use]
    pub fn host_of(&self, actor: TaskId) -> Option<ClientId> {
        self.hosts.by_actor.get(&actor).copied()
    }

    /// A node calls an actor.
    pub fn attach(&mut self, key: LeaseKey, actor: TaskId, out: &mut Vec<Effect>) {
        match self.host_of(actor) {
            Some(client) => {
                self.hosts.attach(key, client);
                out.push(Effect::Granted(key, client));
            }
            None => out.push(Effect::Revoked(key)),
        }
    }

    /// The worker of an attachment.
    pub(super) fn attached(&self, key: LeaseKey) -> Option<ClientId> {
        self.hosts.attached.get(&key).copied()
    }

    /// A call under an attachment goes back: later ones must not overtake it. Returns whether it was open.
    pub fn close(&mut self, key: LeaseKey) -> bool {
        self.hosts.attached.contains_key(&key) && self.hosts.closed.insert(key)
    }

    /// Whether calls under an attachment go back.
    #[must_use]
    pub fn is_closed(&self, key: LeaseKey) -> bool {
        self.hosts.closed.contains(&key)
    }

    /// A node does not call an actor any more; false if it has no such attachment.
    pub(super) fn detach(&mut self, key: LeaseKey) -> bool {
        self.hosts.detach(key)
    }

    /// A node is gone: its attachments end.
    pub(super) fn detach_node(&mut self, node: NodeId) {
        let gone = self.hosts.attached.keys().filter(|(owner, _)| *owner == node);
        for key in gone.copied().collect::<Vec<_>>() {
            self.hosts.detach(key);
        }
    }

    /// A worker does not belong to its actor any more: attachments end. Returns whether it had an actor.
    pub(super) fn host_gone(&mut self, client: ClientId, out: &mut Vec<Effect>) -> bool {
        let Some(Host { actor, .. }) = self.hosts.by_worker.remove(&client) else { return false };
        self.hosts.taking.remove(&client);
        if self.hosts.by_actor.get(&actor) == Some(&client) {
            self.hosts.by_actor.remove(&actor);
        }
        for key in self.hosts.attached_to(client) {
            self.hosts.detach(key);
            out.push(Effect::Revoked(key));
        }
        true
    }

    /// Asserts that each actor has its worker.
    pub(super) fn check_hosts(&self) {
        for (client, host) in &self.hosts.by_worker {
            assert_eq!(self.lease_of(*client), Some(host.lease), "{client:?} has an actor and no lease");
            let takes = !self.leases[&host.lease].class.resources.is_nothing();
            let known = self.hosts.taking.get(client);
            assert_eq!(known, takes.then_some(&host.lease), "what the actor of {client:?} takes");
        }
        let is_host = |client: &ClientId| self.hosts.by_worker.contains_key(client);
        assert!(self.hosts.taking.keys().all(is_host), "what takes resources is an actor");
        for (actor, client) in &self.hosts.by_actor {
            assert_eq!(self.host(*client).map(|host| host.actor), Some(*actor), "{actor} has no worker");
        }
        let is_attached = |key: &LeaseKey| self.hosts.attached.contains_key(key);
        assert!(self.hosts.closed.iter().all(is_attached), "an attachment is closed and gone");
        assert_eq!(self.hosts.of_worker.len(), self.hosts.attached.len(), "attachments of workers");
        for (key, client) in &self.hosts.attached {
            assert!(self.hosts.of_worker.contains(&(*client, *key)), "{key:?} is not with its worker");
            assert!(self.is_host(*client), "{key:?} is attached to a worker without an actor");
        }
    }

    /// Sizes of tables that must be empty when nothing is under way.
    pub(crate) fn host_leftovers(&self) -> [(&'static str, usize); 2] {
        [("workers of actors", self.hosts.by_worker.len()), ("attachments", self.hosts.attached.len())]
    }
}
