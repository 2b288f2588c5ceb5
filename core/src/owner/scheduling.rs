//! Scheduling: the consequences of leases and queues for tasks.
//!
//! [`super::schedule`] owns queues and leases; this file handles the tasks in them: the preferred node of a
//! task, tasks that come back from a lease that is gone, and tasks that fail without ever having a lease.

use super::schedule::{End, Passed, Pending, Turn};
use super::{Effect, Ended, Owner, Shape, Task};
use crate::Now;
use crate::event::Value;
use crate::place::View;
use crate::slab::Slot;
use std::collections::BTreeMap;
use std::sync::Arc;
use tharsis_types::peer::DoneOutcome;
use tharsis_types::{Failure, FailureKind, LeaseId, NodeId, Placement};

/// Minimum bytes of arguments on another node for which it is preferred.
const NEAR_BYTES_MIN: u64 = 64 << 10;
/// Bytes that come from another node in a nanosecond, as they do in a fast network.
const FETCHED_BYTES_PER_NS: u64 = 1;

/// Answers of nodes about leases.
impl Owner {
    /// A lease was granted.
    pub fn lease_granted(&mut self, now: Now, lease: LeaseId, from: NodeId, out: &mut Vec<Effect>) {
        if self.bundle_granted(lease, out) {
            return;
        }
        if self.actors.has_lease(lease) {
            self.actors.granted(lease);
        } else if !self.schedule.granted(now, lease, from) {
            out.push(Effect::ReturnLease { to: from, lease });
        }
    }

    /// A lease was denied.
    pub fn lease_denied(&mut self, lease: LeaseId, out: &mut Vec<Effect>) {
        if !self.groups.refused(lease, out) {
            self.denied_inside(lease);
            self.schedule.denied(lease);
        }
    }

    /// The node wants a lease back soon.
    pub fn lease_recalled(&mut self, lease: LeaseId, out: &mut Vec<Effect>) {
        self.bundle_recalled(lease, out);
        self.schedule.recalled(lease);
    }

    /// A lease is gone: its tasks whose end was not reported were never started.
    pub fn lease_revoked(&mut self, lease: LeaseId, out: &mut Vec<Effect>) {
        if self.bundle_lost(lease, out) {
            return;
        }
        if self.actors.has_lease(lease) {
            self.detached(lease, false, out)
        } else {
            self.take_back(lease, false, out)
        }
    }

    fn take_back(&mut self, lease: LeaseId, may_have_started: bool, out: &mut Vec<Effect>) {
        for slot in self.schedule.revoked(lease).into_iter().rev() {
            self.restore(slot, may_have_started, out);
        }
    }

    /// The worker's task is blocked: nothing more is sent until it ends.
    pub fn lease_paused(&mut self, lease: LeaseId) {
        self.schedule.paused(lease);
    }

    /// No worker could be started for the lease. If none can be started anywhere, a task of its shape fails.
    /// A bundle has no worker: its node could not read the request, and the attempt of its group is over.
    pub fn lease_failed(&mut self, now: Now, lease: LeaseId, failure: &Arc<Failure>, out: &mut Vec<Effect>) {
        if !self.groups.refused(lease, out) {
            self.schedule.failed(now, lease, failure);
        }
    }

    /// Fails the next task of a shape if no node starts workers for it.
    fn fail_hopeless(&mut self, now: Now, shape: Slot<Shape>, view: &mut View, out: &mut Vec<Effect>) {
        let hopeless = self.schedule.take_hopeless(now, shape, &mut self.tasks, view);
        let Some((node, slot, failure)) = hopeless else { return };
        self.tasks.queued_to_waiting(slot);
        let failure = self.located_failure(slot, &failure, node);
        self.fail(slot, &failure, out);
    }

    /// A node is gone: the first task of each of its leases may have run, the others have not.
    pub fn node_gone(&mut self, now: Now, node: NodeId, out: &mut Vec<Effect>) {
        self.bundles_of_gone(node, out);
        let failure = Arc::new(Failure::new(FailureKind::NodeDied, format!("node {node} is gone")));
        for lease in self.actors.leases_on(node) {
            self.home_gone(now, lease, &failure, out);
        }
        for lease in self.schedule.leases_on(node) {
            if let Some(slot) = self.schedule.first_sent(lease) {
                let (task, attempt) = (self.tasks[slot].id(), self.tasks[slot].attempt());
                let ended = Ended { lease, task, attempt, run_ns: 0, node };
                let outcome = DoneOutcome::Failed { error_type: String::new(), failure: failure.clone() };
                self.ended_slot(now, slot, &ended, outcome, out);
            }
            // Reports of the other tasks may be lost.
            self.take_back(lease, true, out);
        }
        self.schedule.node_gone(node, &self.tasks);
        self.objects_of_dead_node(now, node, out);
        self.schedule.dirty_all();
    }

    /// Whether a lease was asked of another node than `node`.
    pub fn is_leased_elsewhere(&self, lease: LeaseId, node: NodeId) -> bool {
        self.schedule.is_leased_elsewhere(lease, node)
            || self.actors.is_leased_elsewhere(lease, node)
            || self.groups.is_leased_elsewhere(lease, node)
    }

    /// Leases that were asked for or granted.
    #[must_use]
    pub fn leased_count(&self) -> usize {
        self.schedule.leased_count()
    }
}

/// Rounds of scheduling.
impl Owner {
    /// Marks every shape that has tasks or leases as dirty, because the cluster has changed.
    pub fn dirty_all(&mut self) {
        self.schedule.dirty_all();
        self.actors.dirty_all();
    }

    /// Marks what has tasks or leases as dirty, because another node has more room or less.
    pub fn room_changed(&mut self) {
        self.schedule.room_changed();
        self.actors.dirty_all();
    }

    /// Looks again at shapes and actors, as what time changes may help them.
    pub fn time_passed(&mut self) {
        self.schedule.dirty_in_turn();
        self.actors.dirty_all();
    }

    /// Sends tasks to leases and asks for more leases where queues are left.
    pub fn schedule(&mut self, now: Now, view: &mut View, out: &mut Vec<Effect>) {
        self.plan_groups(view, out);
        while self.schedule.is_dirty() {
            for shape in self.schedule.take_dirty() {
                self.fail_hopeless(now, shape, view, out);
                self.relieve(now, shape, view);
                let known = &self.groups.known;
                if let Err(failure) = self.schedule.round(now, shape, &mut self.tasks, known, view, out) {
                    self.fail_queue(shape, &failure, out);
                }
            }
        }
        while let Some(actor) = self.actors.next_dirty() {
            let schedule = &mut self.schedule;
            self.actors.round(actor, &mut self.tasks, || schedule.name_lease(), out);
        }
        self.plan_trim(now);
    }

    /// Moves tasks away from a node that has their arguments, if they would wait there for longer than it
    /// takes to bring these to another one.
    fn relieve(&mut self, now: Now, shape: Slot<Shape>, view: &mut View) {
        for behind in self.schedule.behind(now, shape, view) {
            let references = &self.references;
            let is_worth_it = |task: &Task| {
                let arguments = task.dependencies().iter().map(|(_, object)| references[*object].value());
                let bytes: u64 = arguments.map(|value| value.map_or(0, Value::stored_bytes)).sum();
                bytes / FETCHED_BYTES_PER_NS < behind.wait
            };
            self.schedule.relieve(shape, &behind, &self.tasks, is_worth_it);
        }
    }

    /// Fails the tasks of a queue that no node will ever run.
    fn fail_queue(&mut self, shape: Slot<Shape>, failure: &Failure, out: &mut Vec<Effect>) {
        for slot in self.schedule.take_queue(shape, &mut self.tasks) {
            self.tasks.queued_to_waiting(slot);
            let failure = self.located_failure(slot, failure, self.me);
            self.fail(slot, &failure, out);
        }
    }

    /// Whether there are changed shapes for [`Owner::schedule`].
    #[must_use]
    pub fn has_changed_shapes(&self) -> bool {
        self.schedule.is_dirty() || self.actors.is_dirty() || self.groups.is_dirty()
    }

    /// Work that waits for leases, and the reasons.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        self.pending_groups().chain(self.schedule.pending(&self.tasks)).collect()
    }

    /// Number of tasks in queues.
    #[must_use]
    pub fn queued_count(&self) -> usize {
        self.schedule.queued_count()
    }
}

/// Choice of the queue of a task, and of its position there.
impl Owner {
    /// Queues a task whose arguments are there.
    pub(super) fn enqueue(&mut self, slot: Slot<Task>) {
        self.tasks.waiting_to_queued(slot);
        self.push_near(slot, End::Back);
    }

    /// Queues a task that waited for stored arguments, as the next: the sooner it runs, the sooner they can
    /// be freed.
    pub(super) fn enqueue_soon(&mut self, slot: Slot<Task>) {
        self.tasks.waiting_to_queued(slot);
        self.push_near(slot, End::Front);
    }

    /// Queues a task that computes lost objects again, as the next of the common queue.
    pub(super) fn enqueue_first(&mut self, slot: Slot<Task>) {
        self.tasks.waiting_to_queued(slot);
        self.push(slot, None, End::Front);
    }

    /// Queues a task whose attempt failed, now or after a pause.
    pub(super) fn try_after_pause(&mut self, slot: Slot<Task>) {
        if !self.tasks.sent_to_paused(slot) {
            self.tasks.sent_to_queued(slot);
            self.push_near(slot, End::Back);
        }
    }

    /// Queues tasks whose pauses are over.
    pub(super) fn end_pauses(&mut self, now: Now) {
        while let Some(slot) = self.tasks.pauses.take_due(now) {
            self.enqueue(slot);
        }
    }

    /// Queues a task that was taken back, as the next of the common queue.
    pub(super) fn requeue_first(&mut self, slot: Slot<Task>) {
        self.tasks.sent_to_queued(slot);
        self.push(slot, None, End::Front);
    }

    /// Queues a task that a node could not start because it does not reach an argument. Others come first,
    /// and of these the one that has most of the arguments.
    pub(super) fn requeue_elsewhere(&mut self, slot: Slot<Task>, node: NodeId) {
        self.tasks.sent_to_queued(slot);
        if matches!(self.class_of(slot).placement, Placement::Group { .. }) {
            return self.push(slot, None, End::Back);
        }
        let task = &self.tasks[slot];
        let others = self.bytes_by_node(task).into_iter().filter(|(holder, _)| *holder != node);
        let near = others.max_by_key(|(_, bytes)| *bytes).map(|(holder, _)| holder);
        let shape = self.classes[task.class()].shape;
        self.schedule.push_passed(shape, Passed { node, near }, Turn::of(task, End::Back), slot);
    }

    fn push_near(&mut self, slot: Slot<Task>, end: End) {
        let task = &self.tasks[slot];
        if task.is_call() {
            return self.actors.ready(slot);
        }
        let is_free = !matches!(self.class_of(slot).placement, Placement::Group { .. });
        let near = if is_free && !task.dependencies().is_empty() { self.near(task) } else { None };
        let shape = self.classes[task.class()].shape;
        self.schedule.push(shape, near, Turn::of(task, end), slot);
    }

    fn push(&mut self, slot: Slot<Task>, near: Option<NodeId>, end: End) {
        let task = &self.tasks[slot];
        if task.is_call() {
            return self.actors.ready(slot);
        }
        self.schedule.push(self.classes[task.class()].shape, near, Turn::of(task, end), slot);
    }

    /// The node that has most of a task's arguments, if the difference is large enough. This node is returned
    /// only if leases on other nodes could otherwise take the task away from its arguments.
    fn near(&self, task: &Task) -> Option<NodeId> {
        let bytes = self.bytes_by_node(task);
        let (most, node) = bytes.iter().map(|(node, n)| (*n, *node)).max()?;
        let is_mine = node == self.me;
        let rival = bytes.iter().filter(|(n, _)| if is_mine { **n != node } else { **n == self.me });
        let rival = rival.map(|(_, n)| *n).max().unwrap_or(0);
        let is_worth_it = most >= rival + NEAR_BYTES_MIN;
        (is_worth_it && (!is_mine || self.schedule.has_lease_abroad())).then_some(node)
    }

    /// The bytes of the stored arguments of a task that each node has.
    fn bytes_by_node(&self, task: &Task) -> BTreeMap<NodeId, u64> {
        let mut bytes: BTreeMap<NodeId, u64> = BTreeMap::new();
        for (_, object) in task.dependencies() {
            let object = &self.references[*object];
            if let Some(Value::Stored { len }) = object.value() {
                object.copies().iter().for_each(|node| *bytes.entry(*node).or_default() += len);
            }
        }
        bytes
    }
}
