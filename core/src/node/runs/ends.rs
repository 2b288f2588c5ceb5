//! Ends of runs: reported, handed back, lost with the worker.

use super::{Origin, Run, Stage};
use crate::event::{Action, Output, OutputValue, TaskOutcome};
use crate::node::Node;
use crate::owner::Ended;
use crate::peer::{DoneOutcome, Message};
use crate::pull::Purpose;
use crate::slab::Slot;
use smallvec::SmallVec;
use std::sync::Arc;
use tharsis_types::{ClientId, Failure, FailureKind, NodeId, ObjectId, TaskId};

impl Node {
    /// A worker reports the end of a run.
    pub(in crate::node) fn finished(
        &mut self,
        client: ClientId,
        run: Slot<Run>,
        run_ns: u64,
        outcome: TaskOutcome,
        out: &mut Vec<Action>,
    ) {
        let Some(entry) = self.runs.get(run) else { return };
        if entry.client != client || entry.stage == Stage::Staging {
            return;
        }
        let max_calls = entry.max_calls;
        let is_dying = entry.stage == Stage::Doomed || self.pressure.is_doomed(client);
        let outcome = self.seal_outputs(run, client, outcome);
        self.end_run(run, run_ns, outcome, out);
        if is_dying && !self.has_sent_runs(client) {
            return self.dismiss_idle(client, out);
        }
        if max_calls > 0 && self.leases.called(client, max_calls) {
            self.lease_change(out, |leases, effects| {
                leases.worker_gone(client, effects);
                effects.push(crate::lease::Effect::StopWorker(client));
            });
        }
    }

    /// Runs come back that a worker has not started.
    pub(in crate::node) fn given_back(&mut self, client: ClientId, returned: &[u32], out: &mut Vec<Action>) {
        for run in returned.iter().copied().map(Slot::from_number) {
            if self.runs.get(run).is_some_and(|r| r.client == client) {
                self.return_run(run, out);
            }
        }
    }

    /// Runs of a worker that are not sent yet go back as well.
    pub(in crate::node) fn staging_given_back(&mut self, client: ClientId, out: &mut Vec<Action>) {
        let runs = self.runs_of.get(&client).cloned().unwrap_or_default();
        for run in runs {
            if self.runs.get(run).is_some_and(|r| r.stage == Stage::Staging) {
                self.return_run(run, out);
            }
        }
    }

    /// Runs that are not sent yet go back, unless one is the next of its worker.
    pub(in crate::node) fn staging_behind_given_back(&mut self, client: ClientId, out: &mut Vec<Action>) {
        let runs = self.runs_of.get(&client).cloned().unwrap_or_default();
        for run in runs.into_iter().skip(1) {
            if self.runs.get(run).is_some_and(|r| r.stage == Stage::Staging) {
                self.return_run(run, out);
            }
        }
    }

    /// A worker is gone and still looks at its arguments: they stay pinned until its memory is free.
    pub(in crate::node) fn keep_arguments(&mut self, client: ClientId) {
        for run in self.runs_of.get(&client).into_iter().flatten() {
            if let Some(run) = self.runs.get_mut(*run) {
                run.pins.clear();
            }
        }
    }

    /// A worker is gone: the first run it was sent had started, the others had not.
    pub(in crate::node) fn runs_lost(
        &mut self,
        client: ClientId,
        failure: &Arc<Failure>,
        out: &mut Vec<Action>,
    ) {
        let runs = self.runs_of.remove(&client).unwrap_or_default();
        let sent = |n: &Slot<Run>| self.runs.get(*n).is_some_and(|r| r.stage != Stage::Staging);
        let first = runs.iter().copied().find(sent);
        for run in runs.iter().copied().filter(|run| Some(*run) != first) {
            self.return_run(run, out);
        }
        let runs_again = self.pressure.gone(client);
        if let Some(run) = first {
            if runs_again && self.has_retries(run) {
                return self.send_back(run, true, out);
            }
            let failure = self.failure_of(run, failure);
            self.end_run(run, 0, TaskOutcome::Failed { error_type: String::new(), failure }, out);
        }
    }

    /// What a run whose worker is gone fails with: a worker that was killed for a run which ended just before
    /// has simply crashed for the next one.
    fn failure_of(&self, run: Slot<Run>, failure: &Arc<Failure>) -> Arc<Failure> {
        let is_doomed = self.runs.get(run).is_some_and(|r| r.stage == Stage::Doomed);
        match failure.kind {
            FailureKind::Cancelled | FailureKind::TimedOut if !is_doomed => {
                let text = "its worker was killed because of another task";
                Arc::new(Failure::new(FailureKind::WorkerCrashed, text).because((**failure).clone()))
            }
            _ => failure.clone(),
        }
    }

    fn has_sent_runs(&self, client: ClientId) -> bool {
        let sent = |run: &Slot<Run>| self.runs.get(*run).is_some_and(|r| r.stage != Stage::Staging);
        self.runs_of.get(&client).is_some_and(|runs| runs.iter().any(sent))
    }

    /// Puts written outputs into the books of the arena. A value of an earlier run that is here stands: its
    /// owner refers to what is inside of that one, and what this run wrote is free with its region.
    fn seal_outputs(&mut self, run: Slot<Run>, client: ClientId, mut outcome: TaskOutcome) -> TaskOutcome {
        let (TaskOutcome::Returned(outputs), Some(task)) = (&mut outcome, self.runs.get(run).map(|r| r.task))
        else {
            return outcome;
        };
        let mut sealed = SmallVec::<[ObjectId; 4]>::new();
        for (index, output) in outputs.iter_mut().enumerate() {
            let OutputValue::Written(extent) = &mut output.value else { continue };
            let object = ObjectId::output(task, index as u32);
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

    /// Takes a run off the books and tells the owner of its task how it ended.
    pub(super) fn end_run(
        &mut self,
        number: Slot<Run>,
        run_ns: u64,
        mut outcome: TaskOutcome,
        out: &mut Vec<Action>,
    ) {
        let Some(run) = self.take_run(number, out) else { return };
        let (to, lease) = run.lease;
        let ended = Ended { lease, task: run.task, attempt: run.attempt, run_ns, node: self.id };
        match run.origin {
            Origin::Own(slot) => {
                self.owner.ended_at(
                    self.now,
                    Some(slot),
                    &ended,
                    DoneOutcome::from_local(outcome),
                    &mut self.effects,
                );
            }
            Origin::Lent(lent) => {
                if let TaskOutcome::Returned(outputs) = &mut outcome {
                    self.lend_outputs(run.task, outputs, to);
                }
                lent.references.into_iter().for_each(|slot| self.owner.unuse(slot, &mut self.effects));
                let outcome = Box::new(DoneOutcome::from_local(outcome));
                self.send(
                    to,
                    Message::TaskDone { lease, task: run.task, attempt: run.attempt, run_ns, outcome },
                );
            }
        }
        // Loans go back to their lenders after the end is reported.
        self.apply(out);
    }

    /// Outputs made for another node: it decides how long they live, and has the references inside on loan.
    fn lend_outputs(&mut self, task: TaskId, outputs: &mut [Output], to: NodeId) {
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
    pub(in crate::node) fn return_run(&mut self, number: Slot<Run>, out: &mut Vec<Action>) {
        self.send_back(number, false, out);
    }

    fn send_back(&mut self, number: Slot<Run>, started: bool, out: &mut Vec<Action>) {
        let Some(run) = self.take_run(number, out) else { return };
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
    }

    fn take_run(&mut self, number: Slot<Run>, out: &mut Vec<Action>) -> Option<Run> {
        let run = self.runs.remove(number)?;
        self.children.remove(&run.task);
        for object in &run.pins {
            self.store.unpin(run.client, *object);
        }
        let mut next = None;
        if let Some(runs) = self.runs_of.get_mut(&run.client) {
            match runs.front() {
                Some(first) if *first == number => drop(runs.pop_front()),
                _ => runs.retain(|n| *n != number),
            }
            next = runs.front().copied();
            if next.is_none() {
                self.runs_of.remove(&run.client);
            }
        }
        if run.stage == Stage::Staging {
            self.pull_change(out, |pulls, room, effects| {
                pulls.forget(Purpose::Arguments(number.number()), room, effects)
            });
        }
        self.mark_first(next);
        Some(run)
    }
}
