//! Arguments of runs: pinned, waited for, or not to be had.

use super::{Run, Stage};
use crate::event::{Action, TaskOutcome, Value};
use crate::node::Node;
use crate::owner::{because, dependency_failure};
use crate::peer::Message;
use crate::pull::{Missing, Purpose};
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::hash::IdSet;
use tharsis_types::{Failure, FailureKind, ObjectId};

impl Node {
    /// All arguments of a run are here.
    pub(in crate::node) fn arguments_ready(&mut self, run: Slot<Run>, out: &mut Vec<Action>) {
        match self.failed_argument(run) {
            None => {}
            Some(Some(failure)) => return self.arguments_refused(run, failure, out),
            Some(None) => return self.return_run(run, out),
        }
        let missing = self.pin_arguments(run);
        if !missing.is_empty() {
            self.want(Purpose::Arguments(run.number()), missing, out);
            return;
        }
        let Some(entry) = self.runs.get_mut(run) else { return };
        let client = entry.client;
        entry.stage = Stage::Sent { first_since: None };
        self.line_up(client, run);
        out.push(Action::Run { client, run: run.number() });
    }

    /// No copy of an argument can be read, and its owner is asked: whoever sent the task here asks as well,
    /// as it named the copies.
    pub(in crate::node) fn argument_awaited(
        &mut self,
        run: Slot<Run>,
        object: ObjectId,
        out: &mut Vec<Action>,
    ) {
        if let Some(sender) = self.runs.get(run).map(|r| r.lease.0).filter(|node| *node != self.id) {
            self.send(sender, Message::CopiesUnreadable { object });
        }
        self.return_run(run, out);
    }

    /// An argument of a run has no copy left.
    pub(in crate::node) fn arguments_lost(
        &mut self,
        run: Slot<Run>,
        object: ObjectId,
        cause: Option<&str>,
        out: &mut Vec<Action>,
    ) {
        let text = because(format!("argument {object} has no copy left"), cause);
        let failure = Arc::new(Failure::new(FailureKind::ObjectLost, text));
        self.arguments_refused(run, failure, out);
    }

    /// A run cannot have its arguments.
    pub(in crate::node) fn arguments_refused(
        &mut self,
        run: Slot<Run>,
        failure: Arc<Failure>,
        out: &mut Vec<Action>,
    ) {
        self.end_run(run, 0, TaskOutcome::Failed { error_type: String::new(), failure }, out);
    }

    /// Whether an argument had a value when the run was sent here and has none now: its failure, or nothing
    /// if it is being made again.
    fn failed_argument(&self, number: Slot<Run>) -> Option<Option<Arc<Failure>>> {
        let run = self.runs.get(number)?;
        let call = run.origin.call(&self.owner, run.lease.1)?;
        call.dependencies.iter().find_map(|(dependency, slot)| match self.owner.entry(*slot)? {
            (_, Some(Value::Inline(_) | Value::Stored { .. })) => None,
            (_, Some(Value::Failed(cause))) => {
                Some(Some(Arc::new(dependency_failure(dependency.parameter, cause))))
            }
            (_, None) => Some(None),
        })
    }

    /// Pins what is here of a run's arguments and returns what is not.
    fn pin_arguments(&mut self, number: Slot<Run>) -> Vec<Missing> {
        let mut missing: Vec<Missing> = Vec::new();
        let mut seen: IdSet<ObjectId> = IdSet::default();
        let Some(run) = self.runs.get_mut(number) else { return missing };
        let Some(call) = run.origin.call(&self.owner, run.lease.1) else { return missing };
        for (_, slot) in call.dependencies {
            let Some((object, Some(Value::Stored { len }))) = self.owner.entry(*slot) else { continue };
            if run.pins.contains(&object) || seen.contains(&object) {
                continue;
            }
            if self.store.pin(run.client, object).is_some() {
                run.pins.insert(object);
            } else {
                seen.insert(object);
                missing.push(Missing { object, len: *len, holders: Vec::new() });
            }
        }
        for m in &mut missing {
            m.holders = self.holders(m.object);
        }
        missing
    }

    /// An argument arrived that a run still waits for the rest of: it must not be evicted meanwhile.
    pub(in crate::node) fn pin_argument(&mut self, number: Slot<Run>, object: ObjectId) {
        if let Some(run) = self.runs.get_mut(number)
            && !run.pins.contains(&object)
            && self.store.pin(run.client, object).is_some()
        {
            run.pins.insert(object);
        }
    }
}
