//! Calls of actors: who makes them, where and in which order they start.
//!
//! Now and then a call takes a snapshot of its actor, from which the actor must continue when it is started
//! again, or from a later one.
//!
//! In some clusters, calls of some kinds construct actors or are calls of them. Actors are references like
//! others, which are passed on and cancelled (a kill), but nobody reads them.

use crate::client::{Argument, Client, RunRecord};
use crate::cluster::Cluster;
use crate::oracle::Oracle;
use crate::program::{self, CONSTRUCTOR, Content, INSIDE, is_method};
use tharsis_core::{Event, Record};
use tharsis_types::{ClientId, Dependency, Extent, ObjectId, RefId, TaskId};

/// Calls of a thousand that end their actor.
const EXIT_PERMILLE: u64 = 20;

/// Calls of a thousand that take a snapshot of their actor.
const SNAPSHOT_PERMILLE: u64 = 300;
/// Bytes of snapshots that are stored.
const SNAPSHOT_BYTES: u64 = 6_000;

/// The rule that snapshots keep.
const CONTINUES: &str = "an actor that is started again continues from its last snapshot";
/// The rule that calls keep.
const IN_ORDER: &str = "calls of an actor run where it lives, and those of a caller in order";

impl Cluster {
    /// The kind that a call of `kind` has in this cluster, and the actor that it calls, or the group in which
    /// it runs.
    pub(crate) fn kind_of_call(
        &mut self,
        host: usize,
        id: ClientId,
        kind: u32,
        choices: &[u64],
    ) -> (u32, Option<RefId>) {
        let Some(client) = self.hosts[host].clients.get(&id) else { return (kind, None) };
        // A method that calls an actor might call its own.
        let running = client.current.as_ref().map(|run| run.record.kind);
        if running.is_some_and(|kind| kind == INSIDE || is_method(kind)) {
            return (kind, None);
        }
        let choice = choices.first().copied().unwrap_or(u64::from(kind));
        if !self.has_actors {
            return self.kind_with_groups(host, id, kind, choice);
        }
        let held = client.context.locals.iter().filter_map(|token| client.refs.get(token));
        let actors: Vec<_> =
            held.map(|held| held.reference).filter(|r| self.oracle.is_actor(r.object)).collect();
        match kind {
            1 => (CONSTRUCTOR, None),
            2..=6 if !actors.is_empty() => {
                let actor = actors[(choice % actors.len() as u64) as usize];
                (program::method_of(actor.object.task, choice), Some(actor))
            }
            _ => self.kind_with_groups(host, id, kind, choice),
        }
    }

    /// Notes who makes a call, and its number.
    pub(crate) fn note_call(
        &mut self,
        host: usize,
        id: ClientId,
        (parent, task): (TaskId, TaskId),
        actor: RefId,
    ) {
        self.oracle.called.insert(task, actor.object.task);
        let number = self.oracle.calls.len() as u64;
        self.summary.call_count += 1;
        // A call that is made again may run for either caller.
        self.oracle.calls.entry(task).or_insert(((host, id, parent), number));
    }

    /// A constructor has returned: its worker belongs to the actor.
    pub(crate) fn constructed(&mut self, host: usize, id: ClientId, task: TaskId) {
        if let Some(client) = self.hosts[host].clients.get_mut(&id) {
            client.actor = Some(task);
        }
    }

    /// A call has ended: now and then its actor ends by itself, and starts none of the calls behind it.
    pub(crate) fn may_leave(&mut self, host: usize, id: ClientId) {
        if !self.rng.chance(EXIT_PERMILLE) {
            return;
        }
        // Calls that run beside are not cut short.
        let may = |client: &&mut Client| !client.has_left && client.sides.is_empty();
        let Some(client) = self.hosts[host].clients.get_mut(&id).filter(may) else { return };
        client.has_left = true;
        client.side_queue.clear();
        client.queue.clear();
        let actor = client.actor;
        self.oracle.exits.extend(actor);
        self.send(host, id, Event::ActorEnded { client: id });
    }

    /// A call ends: now and then it takes a snapshot before, small or, if there is room, stored.
    pub(crate) fn may_checkpoint(&mut self, host: usize, id: ClientId) {
        if !self.rng.chance(SNAPSHOT_PERMILLE) {
            return;
        }
        let (is_small, memory_bytes) = (self.rng.chance(500), self.store_bytes);
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        let Some(actor) = client.actor else { return };
        let extent = if is_small { None } else { client.carve(SNAPSHOT_BYTES, memory_bytes) };
        let number = self.oracle.snapshots.len() as u64;
        self.oracle.snapshots.push(actor);
        let value = self.store(host, extent, Content { hash: number, nested: Vec::new() });
        let (request, nested) = (number as u32, Vec::new());
        self.send(host, id, Event::CheckpointWanted { client: id, request, value, nested });
    }

    /// A snapshot is kept, or not.
    pub(crate) fn snapshot_answered(&mut self, host: usize, id: ClientId, record: &Record) {
        let Record::CheckpointEnded { request, refusal } = record else { return };
        let (number, is_kept) = (u64::from(*request), refusal.is_none());
        let offered = self.oracle.snapshots.get(*request as usize).copied();
        // The worker may be gone.
        let told = self.hosts[host].clients.get(&id).map(|client| client.actor);
        let Some(actor) = offered.filter(|_| told.is_none_or(|told| told == offered)) else {
            return self.fail(CONTINUES, format!("client {} is told of snapshot {number}", id.0));
        };
        if is_kept {
            let kept = self.oracle.kept_snapshots.entry(actor).or_default();
            *kept = number.max(*kept);
        }
    }

    /// The snapshot that a constructor gets, if it is stored.
    pub(crate) fn read_snapshot(&mut self, host: usize, record: &RunRecord) -> Option<(Extent, Content)> {
        let given = record.arguments.iter().find(|(parameter, ..)| *parameter == Dependency::SNAPSHOT);
        let content = given.and_then(|(_, _, argument)| match argument {
            Argument::Inline(bytes) => Content::decode(bytes),
            Argument::Local(extent) => self.read(host, *extent).cloned(),
        });
        // An actor that is made again for another owner, because its owner died, begins anew.
        let is_again = self.oracle.tasks.get(&record.task).is_some_and(|facts| 1 < facts.submissions);
        let least = self.oracle.kept_snapshots.get(&record.task).copied().filter(|_| !is_again);
        let number = content.as_ref().map(|content| content.hash);
        let actor = number.and_then(|number| self.oracle.snapshots.get(number as usize)).copied();
        let is_its = number.is_none() || actor == Some(record.task);
        if record.kind == CONSTRUCTOR && (number < least || !is_its || given.is_some() != number.is_some()) {
            let text = format!("{} got {number:?} of {actor:?}, {least:?} was kept", record.task);
            self.fail(CONTINUES, text);
        }
        match (given, content) {
            (Some((_, _, Argument::Local(extent))), Some(content)) => Some((*extent, content)),
            _ => None,
        }
    }

    /// A run starts: if it is a call, then in its place.
    pub(crate) fn check_call(&mut self, host: usize, id: ClientId, record: &RunRecord) {
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        let mut arguments = record.arguments.iter();
        let actor = arguments.find(|(parameter, ..)| *parameter == Dependency::ACTOR);
        let actor = actor.map(|(_, reference, _)| reference.object.task);
        if actor != client.actor {
            let text = format!("{} of {actor:?} runs at {:?}", record.task, client.actor);
            return self.fail(IN_ORDER, text);
        }
        let is_again = self.oracle.tasks.get(&record.task).is_some_and(|facts| 1 < facts.submissions);
        let Some((caller, number)) = self.oracle.calls.get(&record.task).copied() else { return };
        if is_again || program::overtakes(record.task.job()) || actor.is_some_and(program::runs_several) {
            return;
        }
        let last = client.last_calls.insert(caller, number);
        if last.is_some_and(|last| number <= last) {
            let text = format!("{} of {caller:?} is number {number}, after {last:?}", record.task);
            self.fail(IN_ORDER, text);
        }
    }
}

impl Oracle {
    /// Whether an object is an actor.
    pub(crate) fn is_actor(&self, object: ObjectId) -> bool {
        !object.is_put() && self.tasks.get(&object.task).is_some_and(|facts| facts.kind == CONSTRUCTOR)
    }
}
