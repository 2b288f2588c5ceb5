//! Bundles of objects that are needed here: the waiters are told of arrival, loss or refusal.
//!
//! [`crate::pull`] decides the order in which objects are read, [`super::room`] gives them their place,
//! [`super::transfers`] reads them from other nodes.

use super::Node;
use super::runs::Run;
use crate::event::{Action, Value};
use crate::pull::{self, Missing, Purpose};
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::peer::RemoteState;
use tharsis_types::{Failure, NodeId, ObjectId, RefId};

/// Bundles that are read here, for runs that are named by their slots.
pub(super) type Pulls = pull::Pulls<Slot<Run>>;

impl Node {
    /// Changes pulls and carries out the effects.
    pub(super) fn pull_change(
        &mut self,
        out: &mut Vec<Action>,
        change: impl FnOnce(&mut Pulls, u64, &mut Vec<pull::Effect<Slot<Run>>>),
    ) {
        let mut effects = Vec::new();
        let room = self.store.receivable_bytes();
        change(&mut self.pulls, room, &mut effects);
        for effect in effects {
            match effect {
                pull::Effect::Aside(run) => self.argument_aside(run),
                pull::Effect::Late(run, object) => self.argument_unreached(run, object, out),
                pull::Effect::Ready(purpose) => self.pulled(purpose, out),
                // It was written here while it was to be read from others.
                pull::Effect::Lost { purpose, object, .. } if self.is_here(object) => {
                    self.pulled(purpose, out)
                }
                pull::Effect::Lost { purpose, object, cause } => {
                    self.pull_lost(purpose, object, cause.as_deref(), out)
                }
                pull::Effect::Start { object, len, from } => self.begin_pull(object, len, from, out),
                pull::Effect::Unreached { object, asks } => self.not_reached(object, asks, out),
            }
        }
    }

    /// Waits for objects that are not here; those without any holder are lost at once.
    pub(super) fn want(&mut self, purpose: Purpose<Slot<Run>>, missing: Vec<Missing>, out: &mut Vec<Action>) {
        if let Some(lost) = missing.iter().find(|m| m.holders.is_empty()).map(|m| m.object) {
            self.pull_lost(purpose, lost, None, out);
            return;
        }
        self.pull_change(out, |pulls, room, effects| pulls.want(purpose, missing, room, effects));
    }

    /// No holder of an object that is known here is reached. It may have been written here meanwhile, or its
    /// owner may know of other copies, and is asked if it is time to.
    fn not_reached(&mut self, object: ObjectId, asks: bool, out: &mut Vec<Action>) {
        if !self.pulls.is_wanted(object) {
            // The last run that waited for it has just gone back.
            return;
        }
        if self.store.find(object).is_some() {
            self.pull_done(object, out);
        } else if self.store.is_spilled(object) {
            self.pulls.copy_added(object, self.id);
        } else if asks {
            self.owner.ask_for_copies(object, &mut self.effects);
        }
    }

    /// Holders that were not reached are tried again.
    pub(super) fn end_pull_pauses(&mut self, out: &mut Vec<Action>) {
        if self.pulls.next_timeout().is_some_and(|at| at <= self.now) {
            self.pull_change(out, Pulls::end_pauses);
        }
    }

    /// The owner of an object tells its state. The holders that it names are tried as well; if the value is
    /// not in a store any more, nobody waits for them.
    pub(super) fn object_told(
        &mut self,
        from: NodeId,
        object: ObjectId,
        state: RemoteState,
        nested: &[RefId],
        out: &mut Vec<Action>,
    ) {
        self.owner.owner_told(from, object, state, nested, &mut self.effects);
        if !self.pulls.is_wanted(object) {
            return;
        }
        if matches!(self.owner.value_ref(object), Some(Value::Stored { .. }) | None) {
            let others = self.holders(object).into_iter().filter(|holder| *holder != self.id);
            return others.for_each(|holder| self.pulls.copy_added(object, holder));
        }
        if self.pulls.is_running(object) {
            // The owner is asked again if it brings nothing.
            return;
        }
        for purpose in self.pulls.refused(object) {
            match purpose {
                Purpose::Ahead(_) => {}
                Purpose::Arguments(run) => {
                    // It would wait for the copy again that its sender told, in vain.
                    self.runs.forget_told(run, object);
                    self.arguments_ready(run, out)
                }
                Purpose::Move(object) => self.move_failed(object, out),
                Purpose::Read(client, token) => self.read_lost(client, token, object, out),
            }
        }
        self.pull_change(out, Pulls::resume);
    }

    /// Whether a whole copy of an object is here, in the arena or on disk.
    pub(super) fn is_here(&self, object: ObjectId) -> bool {
        self.store.find(object).is_some() || self.store.is_spilled(object)
    }

    /// All objects of a bundle are here.
    fn pulled(&mut self, purpose: Purpose<Slot<Run>>, out: &mut Vec<Action>) {
        match purpose {
            Purpose::Ahead(_) => {}
            Purpose::Arguments(run) => self.arguments_ready(run, out),
            Purpose::Move(object) => self.move_arrived(object, out),
            Purpose::Read(client, token) => self.read_arrived(client, token, out),
        }
    }

    /// Whether a run reads an object as its sender told it, not as its owner did.
    fn reads_told(&self, run: Slot<Run>, object: ObjectId) -> bool {
        self.runs.get(run).is_some_and(|run| run.was_told(object))
    }

    /// An object that somebody waits for has no copy left.
    fn pull_lost(
        &mut self,
        purpose: Purpose<Slot<Run>>,
        object: ObjectId,
        cause: Option<&str>,
        out: &mut Vec<Action>,
    ) {
        match purpose {
            // The next reader of the object finds out.
            Purpose::Ahead(_) => return,
            Purpose::Move(_) => return self.move_failed(object, out),
            Purpose::Arguments(run) if self.reads_told(run, object) => {
                // The sender of the run is mistaken: that says nothing of the copies that the owner knows.
                self.owner.ask_if_awaited(object, &mut self.effects);
                return if self.owner.is_over(object) {
                    self.arguments_lost(run, object, cause, out)
                } else {
                    self.argument_awaited(run, object, out)
                };
            }
            Purpose::Arguments(_) | Purpose::Read(..) => {}
        }
        if !self.owner.is_awaited(object) {
            self.owner.lost(object, cause, &mut self.effects);
        }
        let is_awaited = self.owner.is_awaited(object);
        match purpose {
            Purpose::Ahead(_) | Purpose::Move(_) => {}
            Purpose::Arguments(run) if is_awaited => self.argument_awaited(run, object, out),
            Purpose::Arguments(run) => self.arguments_lost(run, object, cause, out),
            Purpose::Read(client, token) => self.read_lost(client, token, object, out),
        }
    }

    /// An object cannot be brought here because there is no room: its waiters get the failure, its copies
    /// stay.
    pub(super) fn pull_refused(&mut self, object: ObjectId, failure: &Arc<Failure>, out: &mut Vec<Action>) {
        for purpose in self.pulls.refused(object) {
            match purpose {
                Purpose::Ahead(_) => {}
                Purpose::Arguments(run) => self.arguments_refused(run, failure.clone(), out),
                Purpose::Move(object) => self.move_failed(object, out),
                Purpose::Read(client, token) => self.read_refused(client, token, object, failure, out),
            }
        }
        self.pull_change(out, Pulls::resume);
    }
}
