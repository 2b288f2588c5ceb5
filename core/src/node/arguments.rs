//! Arguments of runs: pinned, awaited, or unavailable.

use super::Node;
use super::runs::Run;
use crate::event::{Action, Record, TaskOutcome, Value};
use crate::owner::{because, dependency_failure};
use crate::pull::Purpose;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::peer::Message;
use tharsis_types::{ClientId, Failure, FailureKind, ObjectId};

impl Node {
    /// All arguments of a run are here, as far as the ledger knew when they were wanted.
    pub(super) fn arguments_ready(&mut self, slot: Slot<Run>, out: &mut Vec<Action>) {
        // An earlier effect of the same step may have ended it.
        // Or it was sent with the one before it, whose arguments came in the same step.
        let Some(run) = self.runs.get(slot).filter(|run| run.is_staging()) else { return };
        let client = run.client;
        match self.failed_argument(slot) {
            None => {}
            Some(Some(failure)) => return self.arguments_refused(slot, failure, out),
            Some(None) => return self.return_run(slot, out),
        }
        let mut missing = self.runs.pin_arguments(slot, &self.owner, &mut self.store);
        if !missing.is_empty() {
            missing.iter_mut().for_each(|m| m.holders = self.holders(m.object));
            return self.want(Purpose::Arguments(slot), missing, out);
        }
        let keeps_order = self.leases.is_host(client) && self.runs[slot].rules.keep_order();
        if keeps_order && self.runs.waits_behind_another(slot) {
            return;
        }
        self.runs.sent(slot);
        self.mark_first(client);
        out.push(Record::Run { run: slot.number() }.to(client));
        self.next_in_order(client, out);
    }

    /// The calls of each caller of an actor are sent in order: sends those that have their arguments and
    /// waited for one before them.
    pub(super) fn next_in_order(&mut self, client: ClientId, out: &mut Vec<Action>) {
        if !self.leases.is_host(client) {
            return;
        }
        let (pulls, leases, runs) = (&self.pulls, &self.leases, &self.runs);
        let is_ready = |slot: Slot<Run>| {
            !pulls.has_bundle(Purpose::Arguments(slot)) && !leases.is_closed(runs[slot].lease)
        };
        if let Some(next) = self.runs.first_staging(client, is_ready) {
            self.arguments_ready(next, out);
        }
    }

    /// Notes the time from which the first run of a worker may have started. If the memory of the run is
    /// limited, the memory is read at once.
    pub(super) fn mark_first(&mut self, client: ClientId) {
        if self.runs.mark_first(self.now, client).is_some_and(|run| 0 < run.memory_bytes) {
            self.pressure.look_now();
        }
    }

    /// No copy of an argument can be read, and its owner is being asked. The node that sent the task must ask
    /// as well, because it named the copies.
    pub(super) fn argument_awaited(&mut self, slot: Slot<Run>, object: ObjectId, out: &mut Vec<Action>) {
        let sender = self.runs.get(slot).map(|run| run.lease.0);
        if let Some(sender) = sender.filter(|node| *node != self.id) {
            self.send(sender, Message::CopiesUnreadable { object });
        }
        self.return_run(slot, out);
    }

    /// An argument of a run has no copy left.
    pub(super) fn arguments_lost(
        &mut self,
        slot: Slot<Run>,
        object: ObjectId,
        cause: Option<&str>,
        out: &mut Vec<Action>,
    ) {
        let text = because(format!("argument {object} has no copy left"), cause);
        let failure = Arc::new(Failure::new(FailureKind::ObjectLost, text));
        self.arguments_refused(slot, failure, out);
    }

    /// Fails a run whose arguments are unavailable.
    pub(super) fn arguments_refused(
        &mut self,
        slot: Slot<Run>,
        failure: Arc<Failure>,
        out: &mut Vec<Action>,
    ) {
        self.end_run(slot, 0, TaskOutcome::Failed { error_type: String::new(), failure }, out);
    }

    /// Finds an argument that has lost its value since the run was sent here: its failure, or `Some(None)` if
    /// it is being computed again.
    fn failed_argument(&self, slot: Slot<Run>) -> Option<Option<Arc<Failure>>> {
        let call = self.runs[slot].call(&self.owner)?;
        call.dependencies.iter().find_map(|(dependency, slot)| match self.owner.entry(*slot) {
            (_, Some(Value::Inline(_) | Value::Stored { .. })) => None,
            (_, Some(Value::Failed(cause))) => {
                Some(Some(Arc::new(dependency_failure(dependency.parameter, cause))))
            }
            (_, None) => Some(None),
        })
    }

    /// Pins an argument that arrived while its run waits for others: it must not be evicted meanwhile.
    pub(super) fn pin_argument(&mut self, slot: Slot<Run>, object: ObjectId) {
        self.runs.pin_argument(slot, object, &mut self.store);
    }
}
