//! Effects of the ledger and the leases, which are carried out here or on another node.
//!
//! A machine names the receiver of an effect; [`Node::route`] delivers it to this node or to another one. A
//! message of this node to itself is handled at once, without a link and without a packet.

use super::Node;
use super::peers::Standing;
use crate::event::{Action, Operation, Record};
use crate::lease::{self, Leases};
use crate::owner;
use std::sync::Arc;
use tharsis_types::peer::Message;
use tharsis_types::{JobId, LeaseId, NodeId, TaskClass};

impl Node {
    /// Passes a message on to a node, this one or another.
    pub(super) fn route(&mut self, to: NodeId, message: Message, out: &mut Vec<Action>) {
        if to == self.id {
            self.message(to, message, out);
        } else {
            self.send(to, message);
        }
    }

    /// Sends a message to another node.
    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        assert_ne!(to, self.id, "a node has no link to itself");
        let (owner, view) = (&self.owner, &self.view);
        self.peers.send(self.now, to, message, || match (owner.is_gone(to), view.knows(to)) {
            (_, true) => Standing::Member,
            (true, false) => Standing::Dead,
            (false, false) => Standing::Unknown,
        });
    }

    /// Asks a node, this one or another, for a lease.
    fn request_lease(
        &mut self,
        to: NodeId,
        lease: LeaseId,
        class: Arc<TaskClass>,
        (wait, urgency): (bool, i32),
        out: &mut Vec<Action>,
    ) {
        let (job, weight) = (class.job, self.leases.weight(class.job));
        let quota = self.owner.quota(job).cloned();
        self.route(to, Message::LeaseRequest { lease, class, wait, urgency, weight, quota }, out);
        if to != self.id {
            self.involve(job, to);
        }
    }

    /// Another node is sent something of a job: it must hear of the end of that.
    pub(super) fn involve(&mut self, job: JobId, node: NodeId) {
        if self.owner.has_ended(job) {
            self.send(node, Message::JobEnded { job });
        } else if self.view.knows(node) {
            self.involved.ask(job, node);
        }
    }

    /// Carries out the effects of the ledger until none is left.
    pub(super) fn apply(&mut self, out: &mut Vec<Action>) {
        if self.effects.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.spare);
        while !self.effects.is_empty() {
            std::mem::swap(&mut batch, &mut self.effects);
            for effect in batch.drain(..) {
                self.apply_one(effect, out);
            }
        }
        self.spare = batch;
    }

    fn apply_one(&mut self, effect: owner::Effect, out: &mut Vec<Action>) {
        use owner::Effect;
        match effect {
            Effect::Attach { to, lease, actor } => self.route(to, Message::ActorAttach { lease, actor }, out),
            Effect::Cancel { to, task, force, recursive } => {
                self.route(to, Message::TaskCancel { task, force, recursive }, out)
            }
            Effect::CopyIsValue { holder, object, len } => self.copy_is_value(holder, object, len, out),
            Effect::Deliver { client, token, object } => {
                out.push(Record::Value { token, object, extent: None }.to(client))
            }
            Effect::DropCopy { holder, object } => {
                self.moves.copy_goes(object, holder);
                self.route(holder, Message::ObjectFree { object }, out)
            }
            Effect::MemoryFreed => out.push(Action::Do(Operation::MemoryFreed)),
            Effect::RequestLease { to, lease, class, wait, urgency } => {
                self.request_lease(to, lease, class, (wait, urgency), out)
            }
            Effect::RaiseLease { to, lease, urgency } => {
                self.route(to, Message::LeaseRaise { lease, urgency }, out)
            }
            Effect::Restart { to, actor } => self.route(to, Message::ActorRestart { actor }, out),
            Effect::ReturnLease { to, lease } => self.route(to, Message::LeaseReturned { lease }, out),
            Effect::Send { to, message } => self.send(to, message),
            Effect::Serve { client, token, object } => self.serve(client, token, object, out),
            Effect::Start { to, lease, task } => self.start(to, lease, task, out),
            Effect::StealBack { to, lease } => self.route(to, Message::TaskStealBack { lease }, out),
        }
    }

    /// Changes leases and carries out the effects.
    pub(super) fn lease_change(
        &mut self,
        out: &mut Vec<Action>,
        change: impl FnOnce(&mut Leases, &mut Vec<lease::Effect>),
    ) {
        let mut effects = Vec::new();
        change(&mut self.leases, &mut effects);
        let runs = &self.runs;
        self.leases.make_way(|client| !runs.is_busy(client), false, &mut effects);
        self.apply_leases(effects, out);
    }

    /// Carries out the effects of leases.
    pub(super) fn apply_leases(&mut self, effects: Vec<lease::Effect>, out: &mut Vec<Action>) {
        effects.into_iter().for_each(|effect| self.apply_lease(effect, out));
    }

    fn apply_lease(&mut self, effect: lease::Effect, out: &mut Vec<Action>) {
        use lease::Effect;
        match effect {
            Effect::Denied((owner, lease)) => {
                let free = self.leases.free().clone();
                self.route(owner, Message::LeaseDenied { lease, free }, out);
            }
            Effect::Evict(client) => self.evict(client, out),
            Effect::Granted((owner, lease), _) => self.route(owner, Message::LeaseGranted { lease }, out),
            Effect::Quota(to, message) => self.tell_of_quotas(vec![(to, message)]),
            Effect::Recall((owner, lease)) => self.route(owner, Message::LeaseRecall { lease }, out),
            Effect::Reserved((owner, lease)) => self.route(owner, Message::LeaseGranted { lease }, out),
            Effect::Resume(client) => out.push(Record::Resumed.to(client)),
            Effect::Revoked((owner, lease)) => self.route(owner, Message::LeaseRevoked { lease }, out),
            Effect::StartWorker { start, job, process, gpus } => {
                out.push(Action::Do(Operation::StartWorker { start, job, process, gpus }));
            }
            Effect::StopWorker(client) => out.push(Record::Stop.to(client)),
        }
    }
}
