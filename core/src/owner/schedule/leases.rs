//! Leases on the side of their owner: granted, recalled, given back, and the tasks that were sent under them.
//!
//! Other nodes name leases by id: a lease that is gone, or was asked of another node, changes nothing.

use super::{STEAL_AFTER, Schedule, Shape};
use crate::journal::Fact;
use crate::owner::tasks::Tasks;
use crate::owner::{Effect, Task};
use crate::place::View;
use crate::slab::Slot;
use crate::{MS, Now};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::limits::{LEASE_IDLE_MS, PIPELINE_DEPTH_MAX};
use tharsis_types::{Failure, LeaseId, NodeId};

/// A request that is not granted after this time waits for room, whatever its node says about its load.
const WAITS_AFTER: Now = 1_000 * MS;
/// Timers that are to be looked at again among which the first that is not is looked for.
const TIMER_LOOKS_MAX: usize = 16;

/// A lease on the side of its owner.
#[derive(Debug)]
pub(in crate::owner) struct LeaseUse {
    pub(super) node: NodeId,
    pub(super) shape: Slot<Shape>,
    /// The request for it, until it is granted.
    pub(super) request: Option<Request>,
    pub(super) recalled: bool,
    /// Its task waits for others; nothing is sent until that task ends.
    pub(super) paused: bool,
    /// Tasks sent and not ended, oldest first: the first may have started.
    pub(super) in_flight: VecDeque<Slot<Task>>,
    /// When a task was last sent or ended.
    pub(super) active_at: Now,
    /// It was asked for long ago, for a job with a quota, and is not granted: the request waits, whatever was
    /// asked for.
    pub(super) is_late: bool,
    /// It belongs to a living actor: its only task is the constructor, and its shape does not look at it.
    pub(super) is_settled: bool,
    /// Whether its shape is one of tasks inside a placement group.
    is_inside: bool,
    /// Its time in [`Timers`], which may be earlier than that of [`LeaseUse::next_timeout`].
    timer: Option<Now>,
}

/// Times at which something is to be done about leases. Each lease has one at most. It is seldom moved to a
/// later time but looked at again when it is over: most leases go on before theirs is.
#[derive(Debug, Default)]
pub(super) struct Timers {
    outside: BTreeSet<(Now, LeaseId)>,
    /// Those of leases inside placement groups, which never make way for others.
    inside: BTreeSet<(Now, LeaseId)>,
}

impl Timers {
    /// A lease has changed.
    pub(super) fn set(&mut self, lease: LeaseId, used: &mut LeaseUse) {
        if let Some(at) = used.next_timeout().filter(|at| used.timer.is_none_or(|set| *at < set)) {
            self.forget(lease, used);
            self.of(used.is_inside).insert((at, lease));
            used.timer = Some(at);
        }
    }

    /// A lease is gone, or is not to be looked at.
    fn forget(&mut self, lease: LeaseId, used: &mut LeaseUse) {
        if let Some(set) = used.timer.take() {
            let was_there = self.of(used.is_inside).remove(&(set, lease));
            assert!(was_there, "the timer of {lease:?} is misfiled");
        }
    }

    fn of(&mut self, is_inside: bool) -> &mut BTreeSet<(Now, LeaseId)> {
        if is_inside { &mut self.inside } else { &mut self.outside }
    }

    /// The first time that is not to be looked at again. Behind many that are, the next of them: a look at
    /// all of them each time would take longer than that one.
    fn next(&self, leases: &IdMap<LeaseId, LeaseUse>) -> Option<Now> {
        let of = |timers: &BTreeSet<(Now, LeaseId)>| {
            let mut next: Option<Now> = None;
            for (count, (at, lease)) in timers.iter().enumerate() {
                if next.is_some_and(|next| next <= *at) {
                    break;
                }
                if count == TIMER_LOOKS_MAX {
                    return Some(*at);
                }
                next = next.into_iter().chain(leases[lease].next_timeout()).min();
            }
            next
        };
        of(&self.outside).into_iter().chain(of(&self.inside)).min()
    }

    /// The leases outside groups that have timers, those that no task is sent under among them.
    pub(super) fn outside(&self) -> impl Iterator<Item = LeaseId> {
        self.outside.iter().map(|(_, lease)| *lease)
    }

    /// Takes a lease whose time has come.
    fn take(&mut self, now: Now) -> Option<LeaseId> {
        let is_due =
            |timers: &&mut BTreeSet<(Now, LeaseId)>| timers.first().is_some_and(|(at, _)| *at <= now);
        let due = [&mut self.outside, &mut self.inside].into_iter().find(is_due)?;
        due.pop_first().map(|(_, lease)| lease)
    }

    /// Asserts that each lease has its timer, and that nothing waits for a lease that is gone.
    pub(super) fn check(&self, leases: &IdMap<LeaseId, LeaseUse>) {
        let timed = leases.values().filter(|used| used.timer.is_some()).count();
        assert_eq!(timed, self.outside.len() + self.inside.len(), "a timer of a lease that is gone");
        for (lease, used) in leases {
            let timers = if used.is_inside { &self.inside } else { &self.outside };
            assert!(used.timer.is_none_or(|at| timers.contains(&(at, *lease))), "{lease:?} is misfiled");
            let is_early = |at| used.timer.is_some_and(|set| set <= at);
            assert!(used.next_timeout().is_none_or(is_early), "{lease:?} is looked at too late");
        }
    }
}

/// A request for a lease.
#[derive(Clone, Copy, Debug)]
pub(in crate::owner) struct Request {
    /// Whether it waits at its node while there is no room.
    pub(super) waits: bool,
    /// Whether its job has a quota: the request then waits at a node with room while the quota is in use,
    /// also if it does not wait for room.
    pub(super) has_quota: bool,
    pub(super) urgency: i32,
}

impl LeaseUse {
    /// A lease that was asked for and is not granted yet.
    pub(super) fn new(
        node: NodeId,
        (shape, is_inside): (Slot<Shape>, bool),
        request: Request,
        now: Now,
    ) -> Self {
        Self {
            node,
            shape,
            request: Some(request),
            recalled: false,
            paused: false,
            in_flight: VecDeque::new(),
            active_at: now,
            is_late: false,
            is_settled: false,
            is_inside,
            timer: None,
        }
    }

    pub(super) fn is_granted(&self) -> bool {
        self.request.is_none()
    }

    /// Whether tasks may be sent under it.
    pub(super) fn is_usable(&self) -> bool {
        self.is_granted() && !self.recalled && !self.paused
    }

    /// Whether it was asked for, and waits at its node while there is no room. One that was to be denied then
    /// waits too if it had room and the quota of its job was in use: others may have taken the room since.
    /// Without a quota it is as good as granted, however long its worker takes to start.
    pub(super) fn waits(&self) -> bool {
        self.request.is_some_and(|request| request.waits || request.has_quota && self.is_late)
    }

    /// Whether it was asked for so long ago that it waits if it may.
    pub(super) fn is_old(&self, now: Now) -> bool {
        self.active_at + WAITS_AFTER <= now
    }

    /// When its task will have taken long, which is after `after`; `None` if it has, or waits for others.
    pub(super) fn long_from(&self, now: Now, after: Now) -> Option<Now> {
        let at = self.active_at + after;
        let is_long = !self.in_flight.is_empty() && (self.paused || at <= now);
        (!is_long).then_some(at)
    }

    /// Forgets a sent task; returns whether it was the first.
    fn take_out(&mut self, slot: Slot<Task>) -> bool {
        let at = self.in_flight.iter().position(|s| *s == slot);
        assert!(at.is_some(), "{slot:?} is not with the lease that it was sent under");
        at.and_then(|at| self.in_flight.remove(at));
        at == Some(0)
    }

    /// Asserts that tasks are sent under granted leases only, and no more than a worker may have.
    pub(super) fn check(&self) {
        assert!(self.is_granted() || self.in_flight.is_empty(), "a task is sent under a request");
        assert!(self.in_flight.len() <= PIPELINE_DEPTH_MAX, "too many tasks are sent under a lease");
        assert!(!self.is_settled || self.in_flight.len() == 1, "the lease of an actor has its constructor");
    }

    /// When it has been idle for too long, or tasks have stood behind a long one for too long, or it is late.
    fn next_timeout(&self) -> Option<Now> {
        match self.in_flight.len() {
            0 if self.is_granted() => Some(self.active_at + LEASE_IDLE_MS * MS),
            // Nothing else may happen when others take the room of a request that waits for a quota.
            0 if !self.is_late => {
                let request = self.request.filter(|request| request.has_quota);
                request.map(|_| self.active_at + WAITS_AFTER)
            }
            0 | 1 => None,
            _ if self.paused => None,
            _ => Some(self.active_at + STEAL_AFTER),
        }
    }
}

/// Answers of nodes.
impl Schedule {
    /// A lease was granted; false if it is not wanted any more.
    pub(in crate::owner) fn granted(&mut self, now: Now, lease: LeaseId, from: NodeId) -> bool {
        self.waits_no_more(lease);
        let Some(granted) = self.leases.get_mut(&lease) else { return false };
        granted.request = None;
        granted.active_at = now;
        self.timers.set(lease, granted);
        let shape = granted.shape;
        self.dirty.insert(shape);
        self.refusals.started(self.shapes[shape].key.job, from);
        self.note(shape, Fact::LeaseGranted(from));
        true
    }

    /// A lease was denied.
    pub(in crate::owner) fn denied(&mut self, lease: LeaseId) {
        if let Some(denied) = self.leases.get(&lease).filter(|l| !l.is_granted()) {
            let (shape, node) = (denied.shape, denied.node);
            self.note(shape, Fact::LeaseDenied(node));
            self.remove_lease(lease);
        }
    }

    /// The node wants a lease back soon.
    pub(in crate::owner) fn recalled(&mut self, lease: LeaseId) {
        if let Some(recalled) = self.leases.get_mut(&lease) {
            recalled.recalled = true;
            let (shape, node) = (recalled.shape, recalled.node);
            self.dirty.insert(shape);
            self.note(shape, Fact::LeaseRecalled(node));
        }
    }

    /// The worker's task is blocked: nothing more is sent until it ends.
    pub(in crate::owner) fn paused(&mut self, lease: LeaseId) {
        if let Some(used) = self.leases.get_mut(&lease) {
            used.paused = !used.in_flight.is_empty();
            self.dirty.insert(used.shape);
        }
    }

    /// The constructor that was sent under a lease has returned: the lease belongs to the actor. However many
    /// live, rounds of the shape look only at what is not settled.
    pub(in crate::owner) fn settled(&mut self, lease: LeaseId) {
        let used = used_mut(&mut self.leases, lease);
        assert!(!used.is_settled && used.in_flight.len() == 1, "{lease:?} has an actor already");
        used.is_settled = true;
        self.timers.forget(lease, used);
        let shape = &mut self.shapes[used.shape];
        shape.forget_lease(lease);
        shape.settled += 1;
        self.dirty.insert(used.shape);
    }

    /// The actor of a lease lives no more: its shape looks at it again.
    fn unsettle(&mut self, lease: LeaseId) {
        let used = used_mut(&mut self.leases, lease);
        if std::mem::take(&mut used.is_settled) {
            let shape = &mut self.shapes[used.shape];
            shape.settled -= 1;
            shape.leases.push(lease);
        }
    }

    /// No worker could be started for a lease. No task has run, so none has failed: other leases may serve
    /// them. If it goes on, the node is left out, and [`Schedule::take_hopeless`] looks at what is left.
    pub(in crate::owner) fn failed(&mut self, now: Now, lease: LeaseId, failure: &Arc<Failure>) {
        let Some(failed) = self.remove_lease(lease) else { return };
        self.note(failed.shape, Fact::LeaseFailed(failed.node));
        let shape = &mut self.shapes[failed.shape];
        if self.refusals.failed(now, shape.key.job, failed.node, failure) {
            shape.refused = Some((failed.node, failure.clone()));
        }
    }

    /// The next task of a shape if no worker starts for it anywhere: each node that it may run on is left
    /// out. Returns the node and the reason of the last attempt. One task for each attempt: the fault may be
    /// repaired.
    pub(in crate::owner) fn take_hopeless(
        &mut self,
        now: Now,
        slot: Slot<Shape>,
        tasks: &mut Tasks,
        view: &mut View,
    ) -> Option<(NodeId, Slot<Task>, Arc<Failure>)> {
        let (node, failure) = self.shapes[slot].refused.take()?;
        if self.has_granted(slot) || self.choose_elsewhere(now, slot, view, None).is_some() {
            return None;
        }
        let shape = &mut self.shapes[slot];
        loop {
            let (task, _) = shape.next_for(node, now)?;
            if !tasks.tombstone_to_gone(task) {
                return Some((node, task, failure));
            }
            shape.tombstone_left();
        }
    }

    /// Whether a shape has workers that serve its tasks one after the other. Those of actors do not.
    pub(super) fn has_granted(&self, shape: Slot<Shape>) -> bool {
        let shape = &self.shapes[shape];
        !shape.key.constructs && shape.leases.iter().any(|id| self.leases[id].is_granted())
    }

    /// Removes a lease that is gone; returns the tasks that were sent under it, oldest first.
    pub(in crate::owner) fn revoked(&mut self, lease: LeaseId) -> VecDeque<Slot<Task>> {
        let Some(gone) = self.remove_lease(lease) else { return VecDeque::new() };
        self.note(gone.shape, Fact::LeaseEnded);
        gone.in_flight
    }

    /// Leases of workers on a node.
    pub(in crate::owner) fn leases_on(&self, node: NodeId) -> Vec<LeaseId> {
        self.leases.iter().filter(|(_, used)| used.node == node).map(|(lease, _)| *lease).collect()
    }

    /// Whether a lease was asked of another node than `node`.
    pub(in crate::owner) fn is_leased_elsewhere(&self, lease: LeaseId, node: NodeId) -> bool {
        self.leases.get(&lease).is_some_and(|asked| asked.node != node)
    }

    /// Whether any lease is on another node than this one.
    pub(in crate::owner) fn has_lease_abroad(&self) -> bool {
        0 < self.abroad
    }

    /// Leases that were asked for or granted.
    pub(in crate::owner) fn leased_count(&self) -> usize {
        self.leases.len()
    }
}

/// Tasks that were sent.
impl Schedule {
    /// The node of the lease that a task was sent under.
    pub(in crate::owner) fn node_of(&self, lease: LeaseId) -> NodeId {
        self.leases[&lease].node
    }

    /// The task that may have started under a lease.
    pub(in crate::owner) fn first_sent(&self, lease: LeaseId) -> Option<Slot<Task>> {
        self.leases[&lease].in_flight.front().copied()
    }

    /// An attempt ended: its lease has room again.
    pub(in crate::owner) fn sent_ended(&mut self, now: Now, lease: LeaseId, slot: Slot<Task>, run_ns: u64) {
        let used = used_mut(&mut self.leases, lease);
        let was_first = used.take_out(slot);
        // The end of a task that was cancelled behind a blocked one does not end the pause.
        used.paused &= !was_first;
        used.active_at = now;
        let shape = used.shape;
        self.timers.set(lease, used);
        self.unsettle(lease);
        self.dirty.insert(shape);
        self.shapes[shape].note_run(run_ns);
    }

    /// A sent task is not with its lease any more.
    pub(in crate::owner) fn sent_left(&mut self, lease: LeaseId, slot: Slot<Task>) {
        let used = used_mut(&mut self.leases, lease);
        used.take_out(slot);
        let shape = used.shape;
        self.timers.set(lease, used);
        self.unsettle(lease);
        self.dirty.insert(shape);
    }

    /// When [`Schedule::expire`] has something to do.
    pub(in crate::owner) fn next_timeout(&self) -> Option<Now> {
        self.timers
            .next(&self.leases)
            .into_iter()
            .chain(self.refusals.next_timeout())
            .chain(self.look_at)
            .chain(self.look_at_crowded)
            .min()
    }

    /// Marks the shapes of leases that have been idle for long, and those with tasks near nodes, and takes
    /// back tasks that wait behind a long one.
    pub(in crate::owner) fn expire(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.look_for_behind(now);
        let is_crowd_over = self.look_at_crowded.is_some_and(|at| at <= now);
        if is_crowd_over {
            self.look_at_crowded = None;
        }
        if self.refusals.take_ended(now) || is_crowd_over {
            self.dirty_all();
        }
        let mut due = Vec::new();
        while let Some(lease) = self.timers.take(now) {
            let used = used_mut(&mut self.leases, lease);
            used.timer = None;
            match used.next_timeout() {
                Some(at) if at <= now => due.push(lease),
                _ => self.timers.set(lease, used),
            }
        }
        for lease in due {
            let used = used_mut(&mut self.leases, lease);
            self.dirty.insert(used.shape);
            used.is_late = !used.is_granted();
            if used.in_flight.len() > 1 {
                used.paused = true;
                out.push(Effect::StealBack { to: used.node, lease });
            }
            // An idle one goes back in the round that follows, and is looked at again if it does not.
            self.timers.set(lease, used);
        }
    }

    /// Gives back idle leases when they have been idle for long or the node wants them, and unneeded requests
    /// at once.
    pub(super) fn return_leases(&mut self, now: Now, shape: Slot<Shape>, out: &mut Vec<Effect>) {
        let shape = &self.shapes[shape];
        let is_over = |used: &LeaseUse| {
            let is_unneeded = !shape.has_for(used.node);
            let is_expired = is_unneeded && used.active_at + LEASE_IDLE_MS * MS <= now;
            let is_over = if used.is_granted() { used.recalled || is_expired } else { is_unneeded };
            used.in_flight.is_empty() && is_over
        };
        let over: Vec<_> = shape.leases.iter().copied().filter(|id| is_over(&self.leases[id])).collect();
        for lease in over {
            self.give_back(lease, out);
        }
    }

    /// Gives a lease back, or the request for it.
    pub(in crate::owner) fn give_back(&mut self, lease: LeaseId, out: &mut Vec<Effect>) {
        if let Some(used) = self.remove_lease(lease) {
            assert!(used.in_flight.is_empty(), "a lease goes back while tasks are sent under it");
            self.note(used.shape, Fact::LeaseEnded);
            out.push(Effect::ReturnLease { to: used.node, lease });
        }
    }

    /// Forgets a lease; `None` if it is gone, as leases that other nodes name may be.
    fn remove_lease(&mut self, lease: LeaseId) -> Option<LeaseUse> {
        self.waits_no_more(lease);
        let mut used = self.leases.remove(&lease)?;
        self.timers.forget(lease, &mut used);
        let shape = &mut self.shapes[used.shape];
        if used.is_settled {
            shape.settled -= 1;
        } else {
            shape.forget_lease(lease);
        }
        self.abroad -= usize::from(used.node != self.me);
        self.dirty.insert(used.shape);
        Some(used)
    }
}

/// The lease that a shape or a sent task names; it must exist.
#[allow(clippy::expect_used, reason = "a name of our own for a lease that is gone is a defect here")]
pub(super) fn used_mut(leases: &mut IdMap<LeaseId, LeaseUse>, lease: LeaseId) -> &mut LeaseUse {
    leases.get_mut(&lease).expect("a shape or a task names a lease that is gone")
}
