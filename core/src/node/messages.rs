//! Members that come and go, and messages between nodes.
//!
//! [`super::peers`] owns the links; this file passes the arrival, death and messages of members on to the
//! other machines.
//!
//! Messages come from outside. The ids that they name may be gone, or may never have been here: the machines
//! look them up, and ignore those that they do not have.

use super::Node;
use super::terms::Said;
use crate::Now;
use crate::event::{Action, Member, Operation};
use crate::lease::LeaseKey;
use crate::owner::Ended;
use crate::place::Load;
use crate::relay::Request;
use std::sync::Arc;
use tharsis_types::peer::{DrainMessage, Message, Packet};
use tharsis_types::{
    ClientId, Failure, FailureKind, LeaseId, NodeId, ObjectId, Resources, TaskClass, TaskId,
};

impl Node {
    pub(super) fn member_joined(&mut self, member: Arc<Member>) {
        if member.node == self.id || self.view.knows(member.node) {
            return;
        }
        let (node, was_small) = (member.node, self.view.is_small());
        self.owner.node_joined(node);
        self.owner.members_changed();
        self.view.joined(member);
        self.peers.joined(node);
        if self.drain.is_draining() {
            self.send(node, Message::Drain(DrainMessage::Begun));
        }
        if self.view.is_small() {
            self.listeners.add(self.now, node, true);
        } else if was_small {
            self.listeners.clear();
        }
        self.owner.dirty_all();
    }

    pub(super) fn member_left(&mut self, now: Now, node: NodeId, out: &mut Vec<Action>) {
        if node == self.id {
            return;
        }
        self.peers.left(node);
        if !self.view.knows(node) {
            return self.forget_node(now, node, out);
        }
        let was_small = self.view.is_small();
        self.view.left(node);
        self.listeners.remove(node);
        self.involved.node_gone(node);
        self.quotas_of_gone(node);
        if self.view.is_small() && !was_small {
            self.all_listen();
        }
        self.pulls.holder_gone(node);
        self.transfers_with_gone(node, out);
        self.forget_node(now, node, out);
        let runs = &self.runs;
        let mut busy = Vec::new();
        let mut effects = Vec::new();
        self.leases.owner_gone(node, |client| runs.is_busy(client), &mut busy, &mut effects);
        self.apply_leases(effects, out);
        let reason = Arc::new(Failure::new(
            FailureKind::NodeDied,
            format!("node {node}, which owned the task, is gone"),
        ));
        out.extend(
            busy.into_iter()
                .map(|client| Action::Do(Operation::KillWorker { client, reason: reason.clone() })),
        );
    }

    /// The cluster is small: all members hear the load of this node from now on.
    fn all_listen(&mut self) {
        let now = self.now;
        self.view.others().for_each(|node| self.listeners.add(now, node, true));
    }

    /// Asks for nodes that were named and have not joined here: they died before this node joined, or the
    /// news that they joined is late.
    pub(super) fn ask_for_unknown_peers(&mut self, now: Now, out: &mut Vec<Action>) {
        let unknown = self.peers.take_unknown(now).into_iter();
        out.extend(unknown.map(|node| Action::Do(Operation::FindMember(node))));
    }

    /// A node is dead, even if it was never a member here: nobody owns its objects and tasks any more.
    fn forget_node(&mut self, now: Now, node: NodeId, out: &mut Vec<Action>) {
        self.moves.node_gone(node);
        self.owner.node_gone(now, node, &mut self.effects);
        self.apply(out);
        self.drop_orphaned_copies(node);
    }

    pub(super) fn packet(&mut self, now: Now, from: NodeId, packet: Packet, out: &mut Vec<Action>) {
        // The sender has left, or has not joined here yet; in the latter case it repeats the packet.
        if !self.view.knows(from) {
            return;
        }
        for message in self.peers.receive(now, from, packet) {
            self.message(from, message, out);
            self.apply(out);
        }
    }

    /// Carries out a message. Messages of this node to itself come by [`Node::route`].
    pub(super) fn message(&mut self, from: NodeId, message: Message, out: &mut Vec<Action>) {
        let now = self.now;
        // A message about a lease of this node counts only from the node that was asked for it.
        if message.lease_of_receiver().is_some_and(|lease| self.owner.is_leased_elsewhere(lease, from)) {
            return;
        }
        match message {
            Message::ActorAttach { lease, actor } => {
                self.lease_change(out, |leases, effects| leases.attach((from, lease), actor, effects));
            }
            Message::ActorCheckpoint(offered) => self.checkpoint_offered(from, *offered, out),
            Message::ActorCheckpointed { object, refusal } => self.checkpointed(from, object, refusal, out),
            Message::ActorRestart { actor } => self.actor_restart(from, actor, out),
            Message::BorrowAdded { reference } => self.owner.borrowed(from, reference),
            Message::BorrowReleased { object, count } => {
                self.owner.borrows_returned(from, object, count, &mut self.effects)
            }
            Message::CopiesUnreadable { object } => self.copies_unreadable(from, object),
            Message::Drain(message) => self.drain_message(from, message, out),
            Message::HolderAdded { object } => self.copy_told(from, object, true),
            Message::HolderRemoved { object } => self.copy_told(from, object, false),
            Message::JobEnded { job } => self.job_end_told(job, from, out),
            Message::LeaseDenied { lease, free } => self.lease_denied(from, lease, free),
            Message::LeaseFailed { lease, failure } => {
                self.owner.lease_failed(now, lease, &failure, &mut self.effects);
            }
            Message::LeaseGranted { lease } => self.owner.lease_granted(now, lease, from, &mut self.effects),
            Message::LeaseRecall { lease } => self.owner.lease_recalled(lease, &mut self.effects),
            Message::LeaseRaise { lease, urgency } => self.leases.raise((from, lease), urgency),
            Message::LeaseRequest { lease, class, wait, urgency, weight, quota } => {
                self.lease_wanted((from, lease), class, wait, urgency, Said { weight, quota }, out)
            }
            Message::LeaseReturned { lease } => {
                self.lease_change(out, |leases, effects| leases.end((from, lease), effects));
            }
            Message::LeaseRevoked { lease } => self.owner.lease_revoked(lease, &mut self.effects),
            Message::LoadReport { free, waiting } => self.load_reported(from, Load { free, waiting }),
            Message::ObjectFree { object } if from == self.id => self.drop_own_copy(object),
            Message::ObjectFree { object } => self.drop_lent_copy(object, from),
            Message::ObjectLocate { object } => self.owner.locate(from, object, &mut self.effects),
            Message::ObjectState { object, state, nested } => {
                self.object_told(from, object, state, &nested, out)
            }
            Message::Quota(message) => self.quota_message(from, message, out),
            Message::ReadEnded { object } => self.transfers.reader_ended(object, from),
            Message::ReadReply { object, turn } => self.read_answered(object, from, turn, out),
            Message::ReadRequest { object, sent, failed_at } => {
                self.read_wanted(object, Request { reader: from, sent, failed_at }, out)
            }
            Message::TaskCancel { task, force, recursive } => {
                self.task_cancel(from, task, force, recursive, out)
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
            Message::Unreadable { answer } => {
                answer.into_iter().for_each(|answer| self.send(from, *answer));
            }
        }
    }

    /// A node could not read an object for a task of this one, which comes back next.
    fn copies_unreadable(&mut self, from: NodeId, object: ObjectId) {
        self.owner.not_read(from, object);
        self.owner.ask_anew(object, &mut self.effects);
    }

    /// Another node says how busy it is.
    fn load_reported(&mut self, from: NodeId, load: Load) {
        self.view.reported(self.now, from, load);
        self.owner.room_changed();
    }

    /// A node, this one or another, wants a lease here.
    fn lease_wanted(
        &mut self,
        key: LeaseKey,
        class: Arc<TaskClass>,
        wait: bool,
        urgency: i32,
        said: Said,
        out: &mut Vec<Action>,
    ) {
        if key.0 != self.id {
            self.asked_by_other(key.0, class.job, said, out);
        }
        self.lease_change(out, |lent, to_do| lent.request(key, class, wait, urgency, to_do));
    }

    /// A node, this one or another, has no room for a lease.
    fn lease_denied(&mut self, from: NodeId, lease: LeaseId, free: Resources) {
        self.owner.lease_denied(lease, &mut self.effects);
        // The view is given the load of this node before each round of scheduling.
        if from != self.id {
            self.view.denied(self.now, from, free);
        }
    }

    /// Cancels a task. The message comes to the owner from a client of another node, and from the owner to
    /// the node that runs the task.
    fn task_cancel(
        &mut self,
        from: NodeId,
        task: TaskId,
        force: bool,
        recursive: bool,
        out: &mut Vec<Action>,
    ) {
        let object = ObjectId::output(task, 0);
        if self.is_told_as_owner(from, object) {
            self.owner.cancel(object, force, recursive, &mut self.effects)
        } else {
            self.cancel_run(from, task, force, recursive, out)
        }
    }

    /// Kills the worker of an actor that is to be started again.
    fn actor_restart(&mut self, from: NodeId, actor: TaskId, out: &mut Vec<Action>) {
        let object = ObjectId::output(actor, 0);
        if self.is_told_as_owner(from, object) {
            return self.owner.restart_actor(object, &mut self.effects);
        }
        // It may have ended meanwhile. Only its owner has a say in it.
        if let Some(client) = self.leases.host_of(actor).filter(|client| self.is_lent_to(*client, from)) {
            let text = "the actor was killed, to be started again";
            let reason = Arc::new(Failure::new(FailureKind::WorkerCrashed, text));
            out.push(Action::Do(Operation::KillWorker { client, reason }));
        }
    }

    /// Whether the worker of an actor has its lease from a node: the owner of the actor.
    pub(super) fn is_lent_to(&self, client: ClientId, node: NodeId) -> bool {
        self.leases.host(client).is_some_and(|host| host.lease.0 == node)
    }

    /// Whether a message about a task comes to this node as the owner, and not from the owner to the node
    /// that runs it. That one may know the value too: an actor that is called from its own node has one while
    /// it lives.
    fn is_told_as_owner(&self, from: NodeId, object: ObjectId) -> bool {
        from != self.id && self.owner.owns(object)
    }
}
