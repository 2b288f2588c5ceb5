//! Actors and their calls: constructed, called, lost, started again, ended.
//!
//! [`super::actors`] owns lines and attachments; this file carries a change of one on to objects, tasks and
//! leases.

use super::actors::{Caller, Home};
use super::references::Unused;
use super::tasks::TaskState;
use super::{Effect, Ended, Object, Owner, Task};
use crate::Now;
use crate::event::Value;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::failure::Executed;
use tharsis_types::peer::{DoneOutcome, DoneValue};
use tharsis_types::task::{Outputs, Role};
use tharsis_types::{Dependency, Failure, FailureKind, JobId, LeaseId, ObjectId};

/// Living actors of this node's ledger.
impl Owner {
    /// Whether a task constructs an actor.
    pub(super) fn is_constructor(&self, slot: Slot<Task>) -> bool {
        self.class_of(slot).role == Role::Constructor
    }

    /// The actor of a new constructor needs no handles: until it ends it counts as used.
    pub(super) fn detach(&mut self, slot: Slot<Task>) {
        let job = self.tasks[slot].id().job();
        let actor = self.tasks[slot].output_slots().flatten().next();
        if let Some(actor) = actor.filter(|_| self.is_constructor(slot)) {
            self.references.add_use(actor);
            self.actors.detach_from_handles(actor, job);
        }
    }

    /// Whether an actor or a placement group of a job lives on without its driver.
    #[must_use]
    pub fn has_detached(&self, job: JobId) -> bool {
        self.actors.has_detached(job) || self.groups.has_detached(job)
    }

    /// Whether a job has lost the last of its actors, or of its placement groups, that live without its
    /// driver, since this was asked last.
    pub fn take_undetached(&mut self) -> bool {
        self.actors.take_undetached() | self.groups.take_undetached()
    }

    /// A constructor has returned: its actor lives, and the task goes on until the actor ends.
    pub(super) fn actor_lives(
        &mut self,
        slot: Slot<Task>,
        ended: &Ended,
        outputs: &Outputs<DoneValue>,
        out: &mut Vec<Effect>,
    ) {
        self.drop_returned(ended.task, ended.node, outputs, out);
        let task = &self.tasks[slot];
        let (attempt, may_restart) = (task.attempt(), task.has_retries());
        let Some(actor) = task.output_slots().flatten().next() else { return };
        self.actors.lives(actor, slot);
        self.schedule.settled(ended.lease);
        let home = Home { node: ended.node, attempt, may_restart };
        self.fill(actor, Value::Inline(home.to_bytes()), None, Vec::new(), out);
    }

    /// The worker of an actor is gone: its constructor has no value any more. False if the actor did not
    /// live.
    pub(super) fn actor_stops(&mut self, slot: Slot<Task>) -> bool {
        let Some(actor) = self.tasks[slot].output_slots().flatten().next() else { return false };
        let lived = self.actors.constructor(actor) == Some(slot);
        if lived {
            self.actors.ends(actor);
            self.references.await_again(actor, slot);
        }
        lived
    }

    /// Nothing refers to an object any more: if it was an actor, it ends. Appends what only the actor needed
    /// to `unused`.
    pub(super) fn actor_freed(&mut self, actor: Slot<Object>, unused: &mut Unused, out: &mut Vec<Effect>) {
        if let Some((to, lease)) = self.actors.freed(actor) {
            out.push(Effect::ReturnLease { to, lease });
        }
        let Some(slot) = self.actors.ends(actor) else { return };
        let TaskState::Sent { lease } = self.tasks[slot].state() else { return };
        self.schedule.sent_left(lease, slot);
        self.schedule.give_back(lease, out);
        let (_, inputs) = self.tasks.end(slot);
        for input in inputs.iter().flat_map(|inputs| inputs.slots()) {
            self.references.drop_use(input);
            unused.push(input);
        }
    }

    /// Has the worker of a living actor killed. One that does not live yet is about to be constructed anyway.
    pub fn restart_actor(&mut self, actor: ObjectId, out: &mut Vec<Effect>) {
        let slot = self.references.find(&actor).and_then(|actor| self.actors.constructor(actor));
        if let Some((slot, to)) = slot.and_then(|slot| Some((slot, self.node_of(slot)?))) {
            out.push(Effect::Restart { to, actor: self.tasks[slot].id() });
        }
    }

    /// The failure of a constructor, as the callers of its actor get it.
    fn actor_failure(&self, slot: Slot<Task>, cause: &Arc<Failure>) -> Arc<Failure> {
        if cause.kind == FailureKind::ActorDied {
            return cause.clone();
        }
        let text = format!("actor {} has ended", self.name_of(slot));
        Arc::new(Failure::new(FailureKind::ActorDied, text).because((**cause).clone()))
    }
}

/// Calls.
impl Owner {
    /// Enters a call, whose arguments are known, into the line of its caller. Returns the failure if the call
    /// names no actor.
    pub(super) fn enter_line(&mut self, slot: Slot<Task>, caller: Caller) -> Result<(), Failure> {
        let first = self.tasks[slot].dependencies().first().copied();
        let Some((_, actor)) = first.filter(|(first, _)| first.parameter == Dependency::ACTOR) else {
            return Err(Failure::new(FailureKind::InvalidArgument, "a method was called without an actor"));
        };
        let object = &self.references[actor];
        let home = match object.value() {
            Some(Value::Inline(bytes)) => Some(Home::from_bytes(bytes).ok_or_else(no_actor)?),
            Some(Value::Stored { .. }) => return Err(no_actor()),
            Some(Value::Failed(_)) | None => None,
        };
        let rules = self.class_of(slot).calls;
        if 0 < rules.max_pending && rules.max_pending as usize <= self.actors.pending(actor, caller) {
            let text = format!("max_pending_calls is {}", rules.max_pending);
            return Err(Failure::new(FailureKind::TooManyPendingCalls, text).with_executed(Executed::No));
        }
        let is_first = self.actors.enter(actor, object.id().task, caller, rules, slot);
        self.tasks.set_call(slot);
        if let Some(home) = home.filter(|_| is_first) {
            self.home_told(actor, home);
        }
        Ok(())
    }

    /// The home of an actor is known; if its node is gone, the news is on its way to the owner.
    fn home_told(&mut self, actor: Slot<Object>, home: Home) {
        if self.is_gone(home.node) { self.actors.look_later(actor) } else { self.actors.found(actor, home) }
    }

    /// An object has its value: if it is an actor that is called here, its calls are sent to its home, or
    /// fail.
    pub(super) fn actor_told(&mut self, actor: Slot<Object>, out: &mut Vec<Effect>) {
        if !self.actors.is_called(actor) {
            return;
        }
        let failure = match self.references[actor].value() {
            None => return,
            Some(Value::Failed(cause)) => call_refused(cause),
            Some(Value::Inline(bytes)) => match Home::from_bytes(bytes) {
                Some(home) => return self.home_told(actor, home),
                None => no_actor(),
            },
            Some(Value::Stored { .. }) => no_actor(),
        };
        for call in self.actors.unsent(actor) {
            // The failure of one may have ended others that take its result.
            if self.tasks.get(call).is_some_and(|task| task.is_call() && task.is_unfinished()) {
                let failure = self.located_failure(call, &failure, self.me);
                self.fail(call, &failure, out);
            }
        }
    }

    /// The failure of a call whose run has ended.
    pub(super) fn call_failure(&self, call: Slot<Task>, failure: &Arc<Failure>) -> Arc<Failure> {
        let is_killed = matches!(failure.root().kind, FailureKind::Cancelled | FailureKind::Shutdown);
        let executed = match failure.kind {
            FailureKind::UserError | FailureKind::Panicked | FailureKind::ReturnsMismatch => Executed::Yes,
            FailureKind::TimedOut => Executed::Unknown,
            kind if kind.is_crash() || kind == FailureKind::OutOfMemory => {
                let home = self.actors.home(self.actors.actor_of(call));
                let may_restart = home.is_some_and(|home| home.may_restart) && !is_killed;
                let (kind, text) = if may_restart {
                    (FailureKind::ActorUnavailable, "the worker of the actor is gone")
                } else {
                    (FailureKind::ActorDied, "the actor has ended")
                };
                let unknown = Failure::new(kind, text).with_executed(Executed::Unknown);
                return Arc::new(unknown.because((**failure).clone()));
            }
            _ => return failure.clone(),
        };
        Arc::new((**failure).clone().with_executed(executed))
    }

    /// Whether a call whose worker is gone may run again: the actor is started again.
    pub(super) fn may_call_again(&self, call: Slot<Task>, failure: &Failure) -> bool {
        let is_killed = failure.root().kind == FailureKind::Cancelled;
        !is_killed && self.actors.home(self.actors.actor_of(call)).is_some_and(|home| home.may_restart)
    }

    /// A failure as the outputs of a task get it.
    pub(super) fn failure_of_outputs(&self, slot: Slot<Task>, failure: &Arc<Failure>) -> Arc<Failure> {
        let task = &self.tasks[slot];
        let was_not_run = failure.executed == Some(Executed::No)
            || (failure.executed.is_none() && failure.kind == FailureKind::DependencyFailed);
        if task.is_call() && was_not_run {
            // An earlier attempt may have run.
            let executed = if 0 < task.attempt() { Executed::Unknown } else { Executed::No };
            return Arc::new((**failure).clone().with_executed(executed));
        }
        if self.is_constructor(slot) { self.actor_failure(slot, failure) } else { failure.clone() }
    }
}

/// Attachments.
impl Owner {
    /// An attachment is gone, or was refused: its calls were not started, and the home of the actor is looked
    /// for again.
    pub(super) fn detached(&mut self, lease: LeaseId, may_have_started: bool, out: &mut Vec<Effect>) {
        for call in self.actors.in_flight(lease) {
            self.actors.came_back(lease, call);
            self.restore(call, may_have_started, out);
        }
        match self.actors.detached(lease) {
            Some((actor, true)) => self.look_for(actor, out),
            Some((actor, false)) => self.actors.look_later(actor),
            None => {}
        }
    }

    /// Looks for the home of an actor: in the ledger, or by asking its owner.
    pub(super) fn look_for(&mut self, actor: Slot<Object>, out: &mut Vec<Effect>) {
        let object = &self.references[actor];
        let Some(owner) = object.owner() else { return self.actor_told(actor, out) };
        match object.value() {
            Some(Value::Failed(_)) => self.actor_told(actor, out),
            _ if self.is_gone(owner) => {
                let text = format!("node {owner}, which owned the actor, is gone");
                let died = Failure::new(FailureKind::NodeDied, text);
                let failure = Failure::new(FailureKind::ActorDied, "the actor has ended").because(died);
                self.lose(actor, failure, out);
            }
            _ => {
                self.references.forget_value(actor);
                self.references.ask_owner(actor, out);
            }
        }
    }

    /// Looks again for the homes of actors that were not where they were looked for.
    pub(super) fn look_again(&mut self, now: Now, out: &mut Vec<Effect>) {
        for actor in self.actors.take_due(now) {
            // The failure of calls of another one may have freed it.
            if self.actors.is_called(actor) {
                self.look_for(actor, out);
            }
        }
    }

    /// The node of an attachment is gone: each call that was sent may have run.
    pub(super) fn home_gone(
        &mut self,
        now: Now,
        lease: LeaseId,
        failure: &Arc<Failure>,
        out: &mut Vec<Effect>,
    ) {
        for call in self.actors.in_flight(lease) {
            // The failure of one may have ended others.
            let Some(task) = self.tasks.get(call).filter(|task| task.is_sent_under(lease)) else { continue };
            let Some(node) = self.actors.node_of(lease) else { return };
            let ended = Ended { lease, task: task.id(), attempt: task.attempt(), run_ns: 0, node };
            let outcome = DoneOutcome::Failed { error_type: String::new(), failure: failure.clone() };
            self.ended_slot(now, call, &ended, outcome, out);
        }
        self.detached(lease, true, out);
    }

    /// A sent task is not with its lease any more.
    pub(super) fn left_lease(&mut self, lease: LeaseId, slot: Slot<Task>) {
        if self.tasks[slot].is_call() {
            self.actors.came_back(lease, slot)
        } else {
            self.schedule.sent_left(lease, slot)
        }
    }
}

/// The failure of a call that was never sent, because there is no actor.
pub(super) fn call_refused(cause: &Failure) -> Failure {
    let failure = match cause.kind {
        FailureKind::ActorDied => cause.clone(),
        _ => Failure::new(FailureKind::ActorDied, "there is no actor").because(cause.clone()),
    };
    failure.with_executed(Executed::No)
}

fn no_actor() -> Failure {
    Failure::new(FailureKind::InvalidArgument, "the reference is no actor").with_executed(Executed::No)
}
