//! Messages of other nodes, members coming and going, transfers.

use super::Node;
use crate::event::{Action, Member};
use crate::link::Link;
use crate::owner::Ended;
use crate::peer::{Load, Message, Packet};
use crate::relay::Wish;
use crate::slab::Slot;
use crate::{MS, Now};
use std::sync::Arc;
use tharsis_types::{Failure, FailureKind, NodeId, ObjectId, RefId};

/// News of a node that joined may be later than a reference of its; what never joined within this time is
/// dead.
const STRANGER_WAIT: Now = 2_000 * MS;

/// A node that somebody spoke of and that is not a member as far as this one knows.
#[derive(Debug, Default)]
pub(super) struct Stranger {
    /// When it is given up.
    pub(super) until: Now,
    messages: Vec<Message>,
}

impl Node {
    pub(super) fn member_joined(&mut self, member: Member) {
        if member.node == self.id || self.view.knows(member.node) {
            return;
        }
        self.links.insert(member.node, Link::default());
        self.owner.node_joined(member.node);
        self.view.joined(member.clone());
        let waiting = self.strangers.remove(&member.node).unwrap_or_default();
        waiting.messages.into_iter().for_each(|message| self.send(member.node, message));
        let load = self.load();
        self.send(member.node, Message::LoadReport { free: load.free, waiting: load.waiting });
        for job in self.ended_jobs.clone() {
            self.send(member.node, Message::JobEnded { job });
        }
        self.owner.dirty_all();
    }

    pub(super) fn member_left(&mut self, now: Now, node: NodeId, out: &mut Vec<Action>) {
        if node == self.id {
            return;
        }
        if !self.view.knows(node) {
            self.strangers.remove(&node);
            return self.forget_node(now, node, out);
        }
        self.links.remove(&node);
        self.view.left(node);
        self.pulls.holder_gone(node);
        self.transfers_with_gone(node, out);
        self.forget_node(now, node, out);
        let runs_of = &self.runs_of;
        let mut busy = Vec::new();
        let mut effects = Vec::new();
        self.leases.owner_gone(node, |client| runs_of.contains_key(&client), &mut busy, &mut effects);
        effects.into_iter().for_each(|effect| self.apply_lease(effect, out));
        let reason = Arc::new(Failure::new(
            FailureKind::NodeDied,
            format!("node {node}, which owned the task, is gone"),
        ));
        out.extend(busy.into_iter().map(|client| Action::KillWorker { client, reason: reason.clone() }));
    }

    /// Nodes that somebody spoke of and that never joined have died before this one joined.
    pub(super) fn give_up_strangers(&mut self, now: Now, out: &mut Vec<Action>) {
        let late = |(node, stranger): (&NodeId, &Stranger)| (stranger.until <= now).then_some(*node);
        let dead: Vec<_> = self.strangers.iter().filter_map(late).collect();
        for node in dead {
            self.strangers.remove(&node);
            self.forget_node(now, node, out);
        }
    }

    /// A node is dead, whether it was ever a member here: nobody will say what becomes of what it owned.
    fn forget_node(&mut self, now: Now, node: NodeId, out: &mut Vec<Action>) {
        self.owner.node_gone(now, node, &mut self.effects);
        self.apply(out);
        self.drop_orphaned_copies(node);
    }

    /// Sends a message to another node; one that is not known yet gets it when it joins.
    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        if let Some(link) = self.links.get_mut(&to) {
            link.push(message);
        } else if !self.owner.is_gone(to) {
            let until = self.now + STRANGER_WAIT;
            let stranger =
                self.strangers.entry(to).or_insert_with(|| Stranger { until, ..Stranger::default() });
            stranger.messages.push(message);
        }
    }

    /// Copies of a dead owner's objects stay only where something refers to them as its, or the ledger here
    /// counts on them.
    fn drop_orphaned_copies(&mut self, owner: NodeId) {
        let orphans: Vec<_> =
            self.copy_owners.iter().filter(|(_, o)| o.contains(&owner)).map(|(object, _)| *object).collect();
        for object in orphans {
            if self.owner.reference_of(object).is_none_or(|reference| reference.owner == self.id) {
                self.drop_lent_copy(object, owner);
            }
        }
    }

    pub(super) fn packet(&mut self, now: Now, from: NodeId, packet: Packet, out: &mut Vec<Action>) {
        let Some(link) = self.links.get_mut(&from) else { return };
        for message in link.receive(now, packet) {
            self.message(now, from, message, out);
            self.apply(out);
        }
    }

    fn message(&mut self, now: Now, from: NodeId, message: Message, out: &mut Vec<Action>) {
        // Numbers of leases are this node's own: what it says of one counts only if it is the node that was
        // asked for it.
        if message.lease_of_receiver().is_some_and(|lease| self.owner.is_leased_elsewhere(lease, from)) {
            return;
        }
        match message {
            Message::BorrowAdded { reference } => self.owner.borrowed(from, reference),
            Message::BorrowReleased { object, count } => {
                self.owner.borrows_returned(from, object, count, &mut self.effects)
            }
            Message::CopiesUnreadable { object } => self.owner.ask_anew(object, &mut self.effects),
            Message::HolderAdded { object } => self.owner.copy_changed(from, object, true, &mut self.effects),
            Message::HolderRemoved { object } => {
                self.owner.copy_changed(from, object, false, &mut self.effects)
            }
            Message::JobEnded { job } => {
                self.owner.drop_job(job, &mut self.effects);
                self.job_ended(job, out);
            }
            Message::LeaseDenied { lease, free } => {
                self.owner.lease_denied(lease);
                self.view.denied(now, from, free);
            }
            Message::LeaseFailed { lease, failure } => {
                self.owner.lease_failed(now, lease, &failure, &mut self.effects)
            }
            Message::LeaseGranted { lease } => self.owner.lease_granted(now, lease, from, &mut self.effects),
            Message::LeaseRecall { lease } => self.owner.lease_recalled(lease),
            Message::LeaseRequest { lease, class, wait, weight } => {
                self.leases.set_weight(class.job, weight);
                self.lease_change(out, |leases, effects| leases.request((from, lease), class, wait, effects));
            }
            Message::LeaseReturned { lease } => {
                self.lease_change(out, |leases, effects| leases.end((from, lease), effects));
            }
            Message::LeaseRevoked { lease } => self.owner.lease_revoked(lease, &mut self.effects),
            Message::LoadReport { free, waiting } => {
                self.view.reported(from, Load { free, waiting });
                self.owner.dirty_all();
            }
            Message::ObjectFree { object } => self.drop_lent_copy(object, from),
            Message::ObjectLocate { object } => self.owner.locate(from, object, &mut self.effects),
            Message::ObjectState { object, state, nested } => {
                self.owner.located(from, object, state, &nested, &mut self.effects);
            }
            Message::ReadEnded { object } => self.relay.ended(object, from),
            Message::ReadReply { object, turn } => self.read_answered(object, from, turn, out),
            Message::ReadRequest { object, sent, in_vain } => {
                self.read_wanted(object, Wish { reader: from, sent, in_vain })
            }
            Message::TaskCancel { task, force, recursive } => {
                let object = ObjectId::output(task, 0);
                match self.owner.value_ref(object).is_some() || self.owner.owns(object) {
                    true => self.owner.cancel(object, force, recursive, &mut self.effects),
                    false => self.cancel_run(task, force, recursive, out),
                }
            }
            Message::TaskDone { lease, task, attempt, run_ns, outcome } => {
                let ended = Ended { lease, task, attempt, run_ns, node: from };
                self.owner.ended(now, &ended, *outcome, &mut self.effects);
            }
            Message::TaskGiveBack { lease, tasks, started } => {
                self.owner.given_back(lease, &tasks, started, &mut self.effects)
            }
            Message::TaskPush { lease, task } => self.start_pushed(from, lease, *task, out),
            Message::TaskStealBack { lease } => self.steal_back((from, lease), out),
        }
    }

    pub(super) fn pull_done(&mut self, object: ObjectId, out: &mut Vec<Action>) {
        self.store.received(object, true);
        self.transfer_ended(object, true);
        if !self.store.is_spilled(object) {
            self.copy_arrived(object);
        }
        for run in self.pulls.runs_that_need(object).into_iter().map(Slot::from_number) {
            self.pin_argument(run, object);
        }
        self.pull_change(out, |pulls, room, effects| pulls.arrived(object, room, effects));
    }

    /// The disk has lost a copy.
    pub(super) fn copy_lost(&mut self, object: ObjectId, out: &mut Vec<Action>) {
        if !self.store.is_spilled(object) {
            return;
        }
        out.push(Action::Discard(object));
        self.pulls.copy_gone(object, self.id);
        if self.store.spill_lost(object) {
            self.copy_gone(object);
        }
    }

    /// A copy of an object is here that was not here before.
    fn copy_arrived(&mut self, object: ObjectId) {
        self.owner.copy_changed(self.id, object, true, &mut self.effects);
        if let Some(RefId { owner, .. }) = self.owner.reference_of(object)
            && owner != self.id
        {
            self.copy_for(object, owner);
        }
    }

    /// Notes that another node owns what lies here.
    pub(super) fn copy_for(&mut self, object: ObjectId, owner: NodeId) {
        let owners = self.copy_owners.entry(object).or_default();
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
}
