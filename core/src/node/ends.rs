//! Ends of runs: reported by their workers, or given back unstarted.

use super::Node;
use super::runs::{Origin, Run};
use crate::event::{Action, OutputValue, TaskOutcome};
use crate::owner::Ended;
use crate::pull::Purpose;
use crate::slab::Slot;
use smallvec::SmallVec;
use std::sync::Arc;
use tharsis_types::peer::{DoneValue, Message};
use tharsis_types::task::Output;
use tharsis_types::{ClientId, NodeId, ObjectId, TaskId};

impl Node {
    /// A worker reports the end of a run. It may name any run: only those that it was sent count.
    pub(super) fn finished(
        &mut self,
        client: ClientId,
        slot: Slot<Run>,
        run_ns: u64,
        outcome: TaskOutcome,
        out: &mut Vec<Action>,
    ) {
        let Some(run) = self.runs.get(slot).filter(|run| run.client == client && !run.is_staging()) else {
            return;
        };
        let (task, attempt, max_calls, owner) = (run.task, run.attempt, run.max_calls, run.lease.0);
        let is_killed_for_it = run.is_doomed() && !self.kills.spare(client);
        let is_dying = is_killed_for_it || self.pressure.is_doomed(client);
        let outcome = self.seal_outputs(task, owner, client, outcome);
        if matches!(outcome, TaskOutcome::Returned(_)) && self.runs[slot].constructs {
            self.lease_change(out, |leases, effects| leases.constructed(client, task, attempt, effects));
        }
        self.end_run(slot, run_ns, outcome, out);
        if is_dying && !self.runs.has_sent(client) {
            return self.dismiss_idle(client, out);
        }
        self.end_lent(client, out);
        if max_calls > 0 && self.leases.called(client, max_calls) {
            self.lease_change(out, |leases, effects| {
                leases.worker_ends(client, effects);
                effects.push(crate::lease::Effect::StopWorker(client));
            });
        }
    }

    /// Enters written outputs into the store. A value of an earlier run for the same owner that is still here
    /// stays: its owner refers to the objects inside that value. The bytes that this run wrote are then freed
    /// with their region.
    fn seal_outputs(
        &mut self,
        task: TaskId,
        owner: NodeId,
        client: ClientId,
        mut outcome: TaskOutcome,
    ) -> TaskOutcome {
        let TaskOutcome::Returned(outputs) = &mut outcome else { return outcome };
        let mut sealed = SmallVec::<[ObjectId; 4]>::new();
        for (index, output) in outputs.iter_mut().enumerate() {
            let OutputValue::Written(extent) = &mut output.value else { continue };
            let object = ObjectId::output(task, index as u32);
            self.give_up_copy_of_others(object, owner);
            if let Some(len) = self.store.spilled_len(object) {
                extent.len = len;
                continue;
            }
            match self.store.seal(client, object, *extent) {
                Ok(lies) => {
                    if lies == *extent {
                        sealed.push(object);
                    }
                    *extent = lies;
                }
                Err(failure) => {
                    sealed.into_iter().for_each(|object| self.store.free(object));
                    return TaskOutcome::Failed { error_type: String::new(), failure: Arc::new(failure) };
                }
            }
        }
        outcome
    }

    /// Removes a run and tells the owner of its task the outcome.
    pub(super) fn end_run(
        &mut self,
        slot: Slot<Run>,
        run_ns: u64,
        mut outcome: TaskOutcome,
        out: &mut Vec<Action>,
    ) {
        let Some(run) = self.take_run(slot, out) else { return };
        let (to, lease) = run.lease;
        let is_own = matches!(run.origin, Origin::Own(_));
        assert_eq!(is_own, to == self.id, "a run of {} is under another node's lease", run.task);
        let ended = Ended { lease, task: run.task, attempt: run.attempt, run_ns, node: self.id };
        match run.origin {
            Origin::Own(task) => {
                self.owner.ended_at(
                    self.now,
                    Some(task),
                    &ended,
                    outcome.map(DoneValue::from),
                    &mut self.effects,
                );
            }
            Origin::Lent(lent) => {
                if let TaskOutcome::Returned(outputs) = &mut outcome {
                    self.lend_outputs(run.task, outputs, to);
                }
                lent.references.into_iter().for_each(|slot| self.owner.unuse(slot, &mut self.effects));
                let outcome = Box::new(outcome.map(DoneValue::from));
                self.send(
                    to,
                    Message::TaskDone { lease, task: run.task, attempt: run.attempt, run_ns, outcome },
                );
            }
        }
        // Borrows go back after the end is reported.
        self.apply(out);
    }

    /// Hands outputs over to the node that they were made for: it frees them, and borrows the references
    /// inside.
    fn lend_outputs(&mut self, task: TaskId, outputs: &mut [Output<OutputValue>], to: NodeId) {
        let lives = self.view.knows(to);
        for (index, output) in outputs.iter_mut().enumerate() {
            let object = ObjectId::output(task, index as u32);
            match output.value {
                OutputValue::Written(_) if lives => self.copy_owners.add(object, to),
                OutputValue::Written(_) => self.store.free(object),
                OutputValue::Inline(_) => {}
            }
            if lives {
                output.nested = self.owner.lend_references(&output.nested, to);
            }
        }
    }

    /// A run that was not started goes back to where its task came from.
    pub(super) fn return_run(&mut self, slot: Slot<Run>, out: &mut Vec<Action>) {
        self.send_back(slot, false, out);
    }

    /// As [`Node::return_run`]; a run that was `started` runs again as another attempt.
    pub(super) fn send_back(&mut self, slot: Slot<Run>, started: bool, out: &mut Vec<Action>) {
        let Some((client, key, rules)) = self.runs.get(slot).map(|run| (run.client, run.lease, run.rules))
        else {
            return;
        };
        let is_first_of_more = rules.keep_order() && self.leases.close(key);
        let Some(run) = self.take_run(slot, out) else { return };
        let (to, lease) = run.lease;
        match run.origin {
            Origin::Own(_) => {
                self.owner.given_back(lease, &[(run.task, run.attempt)], started, &mut self.effects)
            }
            Origin::Lent(lent) => {
                lent.references.into_iter().for_each(|slot| self.owner.unuse(slot, &mut self.effects));
                let tasks = vec![(run.task, run.attempt)];
                self.send(to, Message::TaskGiveBack { lease, tasks, started });
            }
        }
        if is_first_of_more {
            // The calls behind it must not overtake it.
            for behind in self.runs.staging_under(client, key) {
                self.send_back(behind, false, out);
            }
        }
    }

    /// Removes a run, with its pins and its wait for arguments; `None` if an earlier effect of the same step
    /// has ended it.
    fn take_run(&mut self, slot: Slot<Run>, out: &mut Vec<Action>) -> Option<Run> {
        let run = self.runs.remove(slot)?;
        for object in run.pins() {
            let was_pinned = self.store.unpin(run.client, object);
            assert!(was_pinned, "a run of {} had {object} and did not keep it pinned", run.task);
        }
        if run.is_staging() {
            let purpose = Purpose::Arguments(slot);
            self.pull_change(out, |pulls, room, effects| pulls.forget(purpose, room, effects));
            self.next_in_order(run.client, out);
        }
        self.mark_first(run.client);
        Some(run)
    }
}
