//! Actors: the constructors of living ones, and the lines of calls.
//!
//! An actor is an object of the ledger: the output of its constructor. While the actor lives, the constructor
//! stays *sent*, under the lease that holds the worker; if the worker is lost, the attempt has failed and is
//! repeated like that of any task. The value of the object says where the actor lives ([`Home`]). A call
//! takes the object as its first argument, so it waits for the actor, keeps it alive, and fails if there is
//! no actor.
//!
//! Each node that calls an actor keeps a *line* per caller, in the order of submission. Only the first call
//! of a line may be sent, and only when its arguments are there, so the calls of a caller run in the order in
//! which it made them. Calls are sent under an *attachment*: a lease of the actor's worker that any number of
//! nodes can have, and that takes no resources. Calls that come back enter their line at their old place.
//! Their attachment is *closed* then, by both nodes: later calls of it that are on their way come back too,
//! and a new one is asked for when those before them have ended.
//!
//! | state of a call | place |
//! |---|---|
//! | waiting for arguments, or queued | `unsent` of its actor, in the line of its caller |
//! | sent | `in_flight` of an attachment |
//!
//! Each group of an actor has lines of its own, and its share of what may be in flight, so that calls of one
//! group do not wait for those of another. Where calls may overtake each other, each has a line of its own.
//!
//! This machine owns lines and attachments. It names objects and tasks by their slots; the entry of an actor
//! goes with the entry of its object.

mod called;
mod home;
#[cfg(test)]
mod tests;

pub(super) use home::Home;

use super::jobs::Detached;
use super::tasks::{TaskState, Tasks};
use super::{Effect, Object, Task};
use crate::slab::Slot;
use crate::{MS, Now};
use called::Called;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tharsis_types::hash::IdMap;
use tharsis_types::limits::{CONCURRENCY_MAX, PIPELINE_DEPTH_MAX};
use tharsis_types::task::CallRules;
use tharsis_types::{ClientId, JobId, LeaseId, NodeId, TaskId};

/// The time after which the home of an actor is looked for again where it was not: the news of its end may
/// still be on the way to its owner.
const LOOK_AGAIN_AFTER: Now = 10 * MS;

/// A caller, whose calls keep their order: a client, and its task unless the client is a driver or an actor.
/// The tasks of a worker have nothing to do with each other, and one may make the argument of a call of
/// another one.
pub(super) type Caller = (ClientId, Option<TaskId>);

/// A line: a caller, a group of the actor and, if the call keeps no order, the number of the call.
type Line = (Caller, u16, u64);

/// The actors that this node owns or calls.
#[derive(Debug, Default)]
pub(super) struct Actors {
    /// Living actors of this node's ledger, and their constructors.
    constructors: IdMap<Slot<Object>, Slot<Task>>,
    /// Actors that live without handles, until they end otherwise, and their jobs.
    detached: IdMap<Slot<Object>, JobId>,
    /// The same, by job.
    detached_of: Detached,
    called: IdMap<Slot<Object>, Called>,
    calls: IdMap<Slot<Task>, Call>,
    attachments: IdMap<LeaseId, Attachment>,
    /// Actors with something to send or to ask for.
    dirty: BTreeSet<Slot<Object>>,
    /// Actors that have calls in line.
    in_line: BTreeSet<Slot<Object>>,
    /// Actors whose homes are looked for again, by time.
    looks: BTreeSet<(Now, Slot<Object>)>,
    next_number: u64,
    now: Now,
}

/// A call and its place in the line of its caller.
#[derive(Clone, Copy, Debug)]
struct Call {
    actor: Slot<Object>,
    line: Line,
    number: u64,
    /// Whether it counts as pending.
    is_counted: bool,
}

/// A lease under which calls of an actor are sent.
#[derive(Debug)]
struct Attachment {
    actor: Slot<Object>,
    node: NodeId,
    is_granted: bool,
    /// A call came back: nothing more is sent under it.
    is_closed: bool,
    /// Calls sent and not ended, oldest first.
    in_flight: VecDeque<Slot<Task>>,
    /// Their number in each group that has any.
    in_flight_of: BTreeMap<u16, usize>,
}

impl Attachment {
    fn new(actor: Slot<Object>, node: NodeId) -> Self {
        let (in_flight, in_flight_of) = (VecDeque::new(), BTreeMap::new());
        Self { actor, node, is_granted: false, is_closed: false, in_flight, in_flight_of }
    }

    /// Whether another call of a group may be sent to an actor that runs so many of them at the same time.
    fn has_room(&self, group: u16, limit: usize) -> bool {
        self.in_flight_of.get(&group).is_none_or(|count| *count < PIPELINE_DEPTH_MAX + limit)
    }

    fn enter_flight(&mut self, call: Slot<Task>, group: u16) {
        self.in_flight.push_back(call);
        *self.in_flight_of.entry(group).or_default() += 1;
    }

    fn left_flight(&mut self, group: u16) {
        match self.in_flight_of.get_mut(&group) {
            Some(count) if 1 < *count => *count -= 1,
            _ => drop(self.in_flight_of.remove(&group)),
        }
    }
}

/// Living actors.
impl Actors {
    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.now = now;
    }

    /// The constructor of an actor has returned.
    pub(super) fn lives(&mut self, actor: Slot<Object>, constructor: Slot<Task>) {
        let before = self.constructors.insert(actor, constructor);
        assert!(before.is_none(), "{actor:?} is constructed twice");
    }

    /// The constructor of a living actor of this node's ledger.
    pub(super) fn constructor(&self, actor: Slot<Object>) -> Option<Slot<Task>> {
        self.constructors.get(&actor).copied()
    }

    /// An actor lives no more; returns its constructor if it did.
    pub(super) fn ends(&mut self, actor: Slot<Object>) -> Option<Slot<Task>> {
        if let Some(called) = self.called.get_mut(&actor) {
            called.home = None;
        }
        self.constructors.remove(&actor)
    }
}

/// Actors that need no handles.
impl Actors {
    /// An actor is constructed that needs no handles.
    pub(super) fn detach_from_handles(&mut self, actor: Slot<Object>, job: JobId) {
        let before = self.detached.insert(actor, job);
        assert!(before.is_none(), "{actor:?} is detached twice");
        self.detached_of.enter(job);
    }

    /// An actor has ended; whether it needed no handles.
    pub(super) fn detached_ends(&mut self, actor: Slot<Object>) -> bool {
        self.detached.remove(&actor).inspect(|job| self.detached_of.leave(*job)).is_some()
    }

    /// Whether an actor of a job lives on without its driver.
    pub(super) fn has_detached(&self, job: JobId) -> bool {
        self.detached_of.has(job)
    }

    /// Whether a job has lost the last of these actors, since this was asked last.
    pub(super) fn take_undetached(&mut self) -> bool {
        self.detached_of.take_last_left()
    }

    /// Actors that need no handles: each counts as a use.
    pub(super) fn without_handles(&self) -> impl Iterator<Item = Slot<Object>> {
        self.detached.keys().copied()
    }
}

/// Lines of calls.
impl Actors {
    /// Enters a call at the end of its caller's line. Returns whether it is the first call of the actor here.
    pub(super) fn enter(
        &mut self,
        actor: Slot<Object>,
        id: TaskId,
        caller: Caller,
        rules: CallRules,
        call: Slot<Task>,
    ) -> bool {
        self.next_number += 1;
        let number = self.next_number;
        let line = (caller, rules.group, if rules.out_of_order { number } else { 0 });
        let entry = Call { actor, line, number, is_counted: 0 < rules.max_pending };
        let before = self.calls.insert(call, entry);
        assert!(before.is_none(), "{call:?} is called twice");
        let is_first = !self.called.contains_key(&actor);
        let called = self.called.entry(actor).or_insert_with(|| Called::new(id));
        // A call that ends the actor keeps its order among calls that do not.
        called.keeps_order |= rules.keep_order();
        let limit = rules.limit.min(CONCURRENCY_MAX) as usize;
        if 1 < limit {
            let known = called.limits.entry(rules.group).or_default();
            *known = limit.max(*known);
        }
        if entry.is_counted {
            *called.pending.entry(caller).or_default() += 1;
        }
        self.stand_in_line(call);
        is_first
    }

    /// Puts a call into its place in the line.
    fn stand_in_line(&mut self, call: Slot<Task>) {
        let Call { actor, line: key, number, .. } = self.calls[&call];
        let called = called_mut(&mut self.called, actor);
        let before = called.unsent.entry(key).or_default().insert(number, call);
        assert!(before.is_none(), "{call:?} stands in line twice");
        called.look_at_line(key);
        self.dirty.insert(actor);
        self.in_line.insert(actor);
    }

    /// Takes a call out of its line; returns whether it stood there.
    fn leave_line(&mut self, call: Slot<Task>) -> bool {
        let Call { actor, line: key, number, .. } = self.calls[&call];
        let called = called_mut(&mut self.called, actor);
        let Some(line) = called.unsent.get_mut(&key) else { return false };
        let stood = line.remove(&number).is_some();
        if line.is_empty() {
            called.unsent.remove(&key);
        }
        called.look_at_line(key);
        if called.unsent.is_empty() {
            self.in_line.remove(&actor);
        }
        self.dirty.insert(actor);
        stood
    }

    /// A call that is not sent has ended.
    pub(super) fn leave(&mut self, call: Slot<Task>) {
        let stood = self.leave_line(call);
        assert!(stood, "{call:?} ends and does not stand in its line");
        let Some(Call { actor, line: (caller, ..), is_counted: true, .. }) = self.calls.remove(&call) else {
            return;
        };
        let pending = &mut called_mut(&mut self.called, actor).pending;
        match pending.get_mut(&caller) {
            Some(count) if 1 < *count => *count -= 1,
            _ => drop(pending.remove(&caller)),
        }
    }

    /// Unfinished calls of a caller, of those that count.
    pub(super) fn pending(&self, actor: Slot<Object>, caller: Caller) -> usize {
        self.called.get(&actor).and_then(|called| called.pending.get(&caller)).copied().unwrap_or(0)
    }

    /// A call in line has its arguments.
    pub(super) fn ready(&mut self, call: Slot<Task>) {
        let Call { actor, line, .. } = self.calls[&call];
        called_mut(&mut self.called, actor).look_at_line(line);
        self.dirty.insert(actor);
    }

    /// The actor of a call.
    pub(super) fn actor_of(&self, call: Slot<Task>) -> Slot<Object> {
        self.calls[&call].actor
    }

    /// The calls of an actor that are not sent, in the order of each caller.
    pub(super) fn unsent(&self, actor: Slot<Object>) -> Vec<Slot<Task>> {
        let lines = self.called.get(&actor).into_iter().flat_map(|called| called.unsent.values());
        lines.flat_map(|line| line.values().copied()).collect()
    }

    /// Whether clients of this node call an actor.
    pub(super) fn is_called(&self, actor: Slot<Object>) -> bool {
        self.called.contains_key(&actor)
    }

    /// The last known home of an actor.
    pub(super) fn home(&self, actor: Slot<Object>) -> Option<Home> {
        self.called.get(&actor)?.home
    }

    /// The home of an actor has become known.
    pub(super) fn found(&mut self, actor: Slot<Object>, home: Home) {
        let called = called_mut(&mut self.called, actor);
        called.home = Some(home);
        if let Some(at) = called.look_at.take() {
            self.looks.remove(&(at, actor));
        }
        self.dirty.insert(actor);
    }

    /// The entry of an object is gone. If it was an actor, returns its attachment, which is to be returned.
    pub(super) fn freed(&mut self, actor: Slot<Object>) -> Option<(NodeId, LeaseId)> {
        let called = self.called.remove(&actor)?;
        assert!(called.unsent.is_empty(), "{actor:?} is freed while calls of it wait");
        self.dirty.remove(&actor);
        if let Some(at) = called.look_at {
            self.looks.remove(&(at, actor));
        }
        let lease = called.attachment?;
        let attachment = self.attachments.remove(&lease)?;
        assert!(attachment.in_flight.is_empty(), "{actor:?} is freed while calls of it run");
        Some((attachment.node, lease))
    }
}

/// Attachments.
impl Actors {
    /// Whether a lease is an attachment.
    pub(super) fn has_lease(&self, lease: LeaseId) -> bool {
        self.attachments.contains_key(&lease)
    }

    /// The node of an attachment.
    pub(super) fn node_of(&self, lease: LeaseId) -> Option<NodeId> {
        self.attachments.get(&lease).map(|attachment| attachment.node)
    }

    /// Whether a lease is an attachment of another node than `node`.
    pub(super) fn is_leased_elsewhere(&self, lease: LeaseId, node: NodeId) -> bool {
        self.node_of(lease).is_some_and(|of| of != node)
    }

    /// Attachments on a node.
    pub(super) fn leases_on(&self, node: NodeId) -> Vec<LeaseId> {
        self.attachments.iter().filter(|(_, a)| a.node == node).map(|(lease, _)| *lease).collect()
    }

    /// The actor lives where it was looked for.
    pub(super) fn granted(&mut self, lease: LeaseId) {
        if let Some(attachment) = self.attachments.get_mut(&lease) {
            attachment.is_granted = true;
            self.dirty.insert(attachment.actor);
        }
    }

    /// The calls that were sent under an attachment, oldest first.
    pub(super) fn in_flight(&self, lease: LeaseId) -> Vec<Slot<Task>> {
        self.attachments.get(&lease).map_or_else(Vec::new, |a| a.in_flight.iter().copied().collect())
    }

    /// A call that was sent comes back: it stands in its line again.
    pub(super) fn came_back(&mut self, lease: LeaseId, call: Slot<Task>) {
        let attachment = self.attachments.get_mut(&lease);
        let at = attachment.as_ref().and_then(|a| a.in_flight.iter().position(|slot| *slot == call));
        assert!(at.is_some(), "{call:?} is not with the attachment that it was sent under");
        if let Some((attachment, at)) = attachment.zip(at) {
            attachment.in_flight.remove(at);
            attachment.left_flight(self.calls[&call].line.1);
        }
        self.stand_in_line(call);
    }

    /// A call under an attachment came back, or was not sent: no later one may overtake it.
    pub(super) fn close(&mut self, lease: LeaseId) {
        let Some(attachment) = self.attachments.get_mut(&lease) else { return };
        if self.called.get(&attachment.actor).is_some_and(|called| called.keeps_order) {
            attachment.is_closed = true;
            self.dirty.insert(attachment.actor);
        }
    }

    /// Whether nothing more may be sent under an attachment.
    pub(super) fn is_closed(&self, lease: LeaseId) -> bool {
        self.attachments.get(&lease).is_some_and(|attachment| attachment.is_closed)
    }

    /// Returns the attachment of an actor if it is closed and the calls under it have ended.
    fn return_closed(&mut self, actor: Slot<Object>, out: &mut Vec<Effect>) {
        let Some(lease) = self.called.get(&actor).and_then(|called| called.attachment) else { return };
        let attachment = &self.attachments[&lease];
        if attachment.is_closed && attachment.in_flight.is_empty() {
            out.push(Effect::ReturnLease { to: attachment.node, lease });
            self.attachments.remove(&lease);
            called_mut(&mut self.called, actor).attachment = None;
        }
    }

    /// Removes an attachment that is gone, and whose calls came back. Returns its actor, and whether the
    /// actor lived there.
    pub(super) fn detached(&mut self, lease: LeaseId) -> Option<(Slot<Object>, bool)> {
        let gone = self.attachments.remove(&lease)?;
        assert!(gone.in_flight.is_empty(), "calls are lost with their attachment");
        let called = called_mut(&mut self.called, gone.actor);
        assert_eq!(called.attachment, Some(lease), "an attachment is not with its actor");
        (called.attachment, called.home) = (None, None);
        Some((gone.actor, gone.is_granted))
    }

    /// Looks for the home of an actor again, later.
    pub(super) fn look_later(&mut self, actor: Slot<Object>) {
        let at = self.now + LOOK_AGAIN_AFTER;
        if let Some(before) = called_mut(&mut self.called, actor).look_at.replace(at) {
            self.looks.remove(&(before, actor));
        }
        self.looks.insert((at, actor));
    }

    /// When [`Actors::take_due`] has something.
    pub(super) fn next_timeout(&self) -> Option<Now> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// Actors whose homes are to be looked for now.
    pub(super) fn take_due(&mut self, now: Now) -> Vec<Slot<Object>> {
        let mut due = Vec::new();
        while let Some((_, actor)) = self.looks.first().copied().filter(|(at, _)| *at <= now) {
            self.looks.pop_first();
            due.push(actor);
        }
        due.sort_unstable();
        due.iter().for_each(|actor| called_mut(&mut self.called, *actor).look_at = None);
        due
    }

    /// Whether there is an actor to send to.
    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Marks all actors that have calls in line.
    pub(super) fn dirty_all(&mut self) {
        self.dirty.extend(self.in_line.iter().copied());
    }

    /// The next actor to send to.
    pub(super) fn next_dirty(&mut self) -> Option<Slot<Object>> {
        self.dirty.pop_first()
    }

    /// Sends the calls of an actor whose turn has come; asks for an attachment if there is none. `lease`
    /// makes the name of a new one.
    pub(super) fn round(
        &mut self,
        actor: Slot<Object>,
        tasks: &mut Tasks,
        lease: impl FnOnce() -> LeaseId,
        out: &mut Vec<Effect>,
    ) {
        self.return_closed(actor, out);
        let Some(called) = self.called.get_mut(&actor) else { return };
        called.forget_unready(tasks);
        if called.ready.is_empty() {
            return;
        }
        let Some(attached) = called.attachment else {
            let Some(home) = called.home else { return };
            let (lease, node) = (lease(), home.node);
            called.attachment = Some(lease);
            let attachment = Attachment::new(actor, node);
            let before = self.attachments.insert(lease, attachment);
            assert!(before.is_none(), "two leases have one name");
            out.push(Effect::Attach { to: node, lease, actor: called.id });
            return;
        };
        let Some(attachment) = self.attachments.get_mut(&attached) else { return };
        if !attachment.is_granted || attachment.is_closed {
            return;
        }
        for group in called.ready.keys().copied().collect::<Vec<_>>() {
            // One call of each line in turn.
            let mut last = None;
            while attachment.has_room(group, called.limits.get(&group).copied().unwrap_or(0)) {
                let Some(line) = called.next_line(group, last) else { break };
                last = Some(line);
                let Some(call) = called.take_ready(line, tasks) else { continue };
                tasks.queued_to_sent(call, attached);
                attachment.enter_flight(call, group);
                out.push(Effect::Start { to: attachment.node, lease: attached, task: call });
            }
        }
        if called.unsent.is_empty() {
            self.in_line.remove(&actor);
        }
    }

    /// Sizes of tables that must be empty once there are no references.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 5] {
        [
            ("detached actors", self.detached.len()),
            ("living actors", self.constructors.len()),
            ("called actors", self.called.len()),
            ("calls of actors", self.calls.len()),
            ("attachments to actors", self.attachments.len()),
        ]
    }

    /// Asserts that each call stands in the place of its state, and that attachments and actors agree.
    pub(super) fn check(&self, tasks: &Tasks) {
        let mut places: IdMap<Slot<Task>, Option<LeaseId>> = IdMap::default();
        self.detached_of.check(self.detached.values().copied());
        let timed = self.called.values().filter(|called| called.look_at.is_some()).count();
        assert_eq!(timed, self.looks.len(), "an actor that is gone is looked for");
        for (actor, called) in &self.called {
            called.check_ready(tasks);
            assert_eq!(self.in_line.contains(actor), !called.unsent.is_empty(), "calls of {actor:?} in line");
            let is_timed = called.look_at.is_none_or(|at| self.looks.contains(&(at, *actor)));
            assert!(is_timed, "{actor:?} is never looked for again");
            for (key, line) in &called.unsent {
                assert!(!line.is_empty(), "an empty line is kept for {key:?}");
                for (number, call) in line {
                    let entry = self.calls[call];
                    let stands = (entry.actor, entry.line, entry.number);
                    assert_eq!(stands, (*actor, *key, *number), "{call:?} stands in a wrong line");
                    assert!(places.insert(*call, None).is_none(), "{call:?} stands in two lines");
                }
            }
            if let Some(lease) = called.attachment {
                assert_eq!(self.attachments[&lease].actor, *actor, "{actor:?} has another's attachment");
            }
        }
        for (lease, attachment) in &self.attachments {
            assert_eq!(self.called[&attachment.actor].attachment, Some(*lease), "an attachment of no actor");
            assert!(attachment.is_granted || attachment.in_flight.is_empty(), "sent before it was granted");
            let counted: usize = attachment.in_flight_of.values().sum();
            assert_eq!(counted, attachment.in_flight.len(), "calls in flight are counted wrongly");
            for call in &attachment.in_flight {
                assert!(places.insert(*call, Some(*lease)).is_none(), "{call:?} is sent twice");
            }
        }
        for (slot, task) in tasks.iter().filter(|(_, task)| task.is_call()) {
            let (id, state, place) = (task.id(), task.state(), places.remove(&slot));
            let expected = match state {
                TaskState::Waiting { .. } | TaskState::Queued => Some(None),
                TaskState::Sent { lease } => Some(Some(lease)),
                TaskState::Kept { .. } | TaskState::Tombstone => None,
            };
            assert!(place.is_some() && place == expected, "call {id} is {state:?} and stands at {place:?}");
            assert!(self.calls.contains_key(&slot), "call {} is unknown", task.id());
        }
        assert!(places.is_empty(), "ended calls stand in lines");
        assert_eq!(self.calls.len(), tasks.iter().filter(|(_, task)| task.is_call()).count(), "calls");
        for constructor in self.constructors.values() {
            let state = tasks[*constructor].state();
            assert!(matches!(state, TaskState::Sent { .. }), "a living actor's constructor is {state:?}");
        }
    }
}

/// The actor that a call or an attachment names; it must exist.
#[allow(clippy::expect_used, reason = "a name of our own for an actor that is gone is a defect here")]
fn called_mut(called: &mut IdMap<Slot<Object>, Called>, actor: Slot<Object>) -> &mut Called {
    called.get_mut(&actor).expect("a call or an attachment names an actor that is gone")
}
