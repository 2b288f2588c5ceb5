//! Arguments of runs: pinned, awaited, or unavailable.

use super::Node;
use super::runs::Run;
use crate::event::{Action, Record, TaskOutcome, Value};
use crate::owner::{because, dependency_failure};
use crate::pull::{Missing, Purpose};
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::peer::Message;
use tharsis_types::{ClientId, Failure, FailureKind, NodeId, ObjectId};

impl Node {
    /// All arguments of a run are here, as far as the ledger knew when they were wanted.
    pub(super) fn arguments_ready(&mut self, slot: Slot<Run>, out: &mut Vec<Action>) {
        if let Some(client) = self.send_ready(slot, out) {
            self.next_in_order(client, out);
        }
    }

    /// Sends a run to its worker if it may begin and its arguments are here; the worker, if it was sent.
    fn send_ready(&mut self, slot: Slot<Run>, out: &mut Vec<Action>) -> Option<ClientId> {
        // An earlier effect of the same step may have ended it.
        // Or it was sent with the one before it, whose arguments came in the same step.
        let client = self.runs.get(slot).filter(|run| run.is_staging())?.client;
        if let Some(failed) = self.failed_argument(slot) {
            match failed {
                Some(failure) => self.arguments_refused(slot, failure, out),
                None => self.return_run(slot, out),
            }
            return None;
        }
        let mut missing = self.runs.pin_arguments(slot, &self.owner, &mut self.store);
        if !missing.is_empty() {
            missing.iter_mut().for_each(|m| m.holders = self.holders_for_run(m));
            self.want(Purpose::Arguments(slot), missing, out);
            return None;
        }
        let run = &self.runs[slot];
        let keeps_order = self.leases.is_host(client) && run.rules.keep_order();
        if !self.may_begin(run) || keeps_order && self.runs.waits_behind_another(slot) {
            return None;
        }
        self.runs.sent(slot);
        self.mark_first(client);
        out.push(Record::Run { run: slot.number() }.to(client));
        Some(client)
    }

    /// The calls of each caller of an actor are sent in order: sends those that have their arguments and
    /// waited for one before them.
    pub(super) fn next_in_order(&mut self, client: ClientId, out: &mut Vec<Action>) {
        while self.leases.is_host(client) {
            let next = self.runs.first_staging(client, |slot| self.may_be_sent(slot));
            let Some(next) = next else { return };
            if self.send_ready(next, out).is_none() {
                return;
            }
        }
    }

    /// Whether a run waits for nothing but its turn. One that came back and was told to stop is about to end.
    pub(super) fn may_be_sent(&self, slot: Slot<Run>) -> bool {
        let run = &self.runs[slot];
        let has_arguments = !self.pulls.has_bundle(Purpose::Arguments(slot));
        has_arguments
            && !self.runs.is_stopping(slot)
            && !self.leases.is_closed(run.lease)
            && self.may_begin(run)
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

    /// No holder of an argument of a run is reached: from now on the timeout of its task counts. The runs of
    /// actors wait without an end.
    pub(super) fn argument_aside(&mut self, slot: Slot<Run>) {
        if self.is_of_task(slot) {
            self.runs.set_aside(slot, self.now);
        }
    }

    /// No holder of an argument of a run was reached for long: the run goes back, as another node may reach
    /// one. The node that sent the task is told why, so that it does not send it here again at once.
    pub(super) fn argument_unreached(&mut self, slot: Slot<Run>, object: ObjectId, out: &mut Vec<Action>) {
        if !self.is_of_task(slot) {
            return;
        }
        match self.runs[slot].lease.0 {
            sender if sender == self.id => self.owner.not_read(sender, object),
            sender => self.send(sender, Message::CopiesUnreadable { object }),
        }
        self.return_run(slot, out);
    }

    /// Whether a run is there and belongs to no actor: another worker could run it.
    fn is_of_task(&self, slot: Slot<Run>) -> bool {
        self.runs.get(slot).is_some_and(|run| !run.constructs && !self.leases.is_host(run.client))
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
        call.dependencies.iter().find_map(|(dependency, slot)| match call.argument(&self.owner, *slot) {
            (_, Some(Value::Inline(_) | Value::Stored { .. })) => None,
            (_, Some(Value::Failed(cause))) => {
                Some(Some(Arc::new(dependency_failure(dependency.parameter, cause))))
            }
            (_, None) => Some(None),
        })
    }

    /// Nodes with a copy of an argument that is not in the arena here: those that are known, then those that
    /// the sender of the run told.
    fn holders_for_run(&self, missing: &Missing) -> Vec<NodeId> {
        let mut holders = self.holders(missing.object);
        for told in &missing.holders {
            if *told != self.id && self.view.knows(*told) && !holders.contains(told) {
                holders.push(*told);
            }
        }
        holders
    }

    /// Pins an argument that arrived while its run waits for others: it must not be evicted meanwhile.
    pub(super) fn pin_argument(&mut self, slot: Slot<Run>, object: ObjectId) {
        self.runs.pin_argument(slot, object, &mut self.store);
    }
}
