//! Workers and their lines of runs: workers that start, block, run for too long or are gone, and runs that
//! come back unstarted.

use super::Node;
use super::pressure::Running;
use super::runs::Run;
use crate::Now;
use crate::event::{Action, Operation, Record, TaskOutcome};
use crate::lease::{self, Host, LeaseKey};
use crate::owner::{Ended, unreached_failure};
use crate::pull::Purpose;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::peer::{DoneOutcome, Message};
use tharsis_types::task::Role;
use tharsis_types::{ClientId, Failure, FailureKind, NodeId, ObjectId, TaskId};

/// Workers that come.
impl Node {
    /// A worker that was started is ready; one whose start is unknown here is stopped.
    pub(super) fn worker_ready(&mut self, start: u64, client: ClientId, out: &mut Vec<Action>) {
        self.lease_change(out, |leases, effects| {
            if !leases.worker_ready(start, client, effects) {
                effects.push(lease::Effect::StopWorker(client));
            }
        });
    }

    /// A worker could not be started: the owner of the lease that counted on it is told.
    pub(super) fn start_failed(&mut self, start: u64, failure: &Arc<Failure>, out: &mut Vec<Action>) {
        let mut failed = None;
        self.lease_change(out, |leases, effects| failed = leases.start_failed(start, effects));
        if let Some((owner, lease)) = failed {
            self.route(owner, Message::LeaseFailed { lease, failure: failure.clone() }, out);
        }
    }
}

/// Workers inside a bundle that is given up.
impl Node {
    /// Ends the lease of a worker whose bundle is given up. One that runs something, or belongs to an actor,
    /// is killed.
    pub(super) fn evict(&mut self, client: ClientId, out: &mut Vec<Action>) {
        // An earlier eviction of the same step may have ended it.
        let Some((owner, lease)) = self.leases.lease_of(client) else { return };
        if self.runs.is_busy(client) || self.leases.is_host(client) {
            let text = "the placement group in which it ran was removed";
            let reason = Arc::new(Failure::new(FailureKind::GroupRemoved, text));
            return out.push(Action::Do(Operation::KillWorker { client, reason }));
        }
        self.lease_change(out, |leases, effects| leases.end((owner, lease), effects));
        self.route(owner, Message::LeaseRevoked { lease }, out);
    }
}

/// Runs that come back unstarted.
impl Node {
    /// Takes back runs that a worker has not started. It may name any run: those of other workers are
    /// ignored.
    pub(super) fn given_back(
        &mut self,
        client: ClientId,
        question: u32,
        returned: &[u32],
        out: &mut Vec<Action>,
    ) {
        if self.leases.is_host(client) {
            return self.calls_given_back(client, question, returned, out);
        }
        for slot in returned.iter().copied().map(Slot::from_number) {
            if self.runs.get(slot).is_some_and(|run| run.client == client) {
                self.return_run(slot, out);
            }
        }
        self.end_lent(client, out);
        self.kill_if_alone(client, out);
    }

    /// Gives back the runs of a worker that have not started, whether they are sent or not.
    pub(super) fn unstarted_given_back(&mut self, client: ClientId, out: &mut Vec<Action>) {
        if self.leases.is_host(client) {
            // No other worker can run them, and they keep their order: they wait here if they must.
            return;
        }
        self.staging_given_back(client, out);
        if self.runs.has_sent(client) {
            out.push(Record::StealBack { count: u32::MAX, question: 0 }.to(client));
        }
    }

    /// Gives back the runs of a worker that are not sent yet.
    pub(super) fn staging_given_back(&mut self, client: ClientId, out: &mut Vec<Action>) {
        self.staging_of(client, 0, out);
    }

    /// Gives back the runs of a worker that are not sent yet, except the first of its line.
    pub(super) fn staging_behind_given_back(&mut self, client: ClientId, out: &mut Vec<Action>) {
        self.staging_of(client, 1, out);
    }

    /// Gives back the runs that wait for arguments in the line of a worker, from position `from` on.
    fn staging_of(&mut self, client: ClientId, from: usize, out: &mut Vec<Action>) {
        for slot in self.runs.line(client).into_iter().skip(from) {
            // The return of one may have ended or sent another.
            if self.runs.get(slot).is_some_and(Run::is_staging) {
                self.return_run(slot, out);
            }
        }
    }

    /// The task of a worker waits for values.
    pub(super) fn blocked(&mut self, client: ClientId, returned: &[u32], out: &mut Vec<Action>) {
        if self.leases.is_host(client) {
            return self.lease_change(out, |leases, effects| leases.blocked(client, effects));
        }
        if let Some((owner, lease)) = self.leases.lease_of(client)
            && owner == self.id
        {
            self.owner.lease_paused(lease);
        }
        self.given_back(client, 0, returned, out);
        self.staging_given_back(client, out);
        self.lease_change(out, |leases, effects| leases.blocked(client, effects));
        if self.runs.has_behind(client) {
            // Sent before the node knew: behind a blocked task, they could wait for each other.
            out.push(Record::StealBack { count: u32::MAX, question: 0 }.to(client));
        }
    }

    /// The task of a worker has ended while threads of it wait, so that its CPUs are lent: they do not come
    /// back for the sake of what is over, so its lease ends. Another one finds the worker idle.
    pub(super) fn end_lent(&mut self, client: ClientId, out: &mut Vec<Action>) {
        // Runs that were sent before the node knew come back first.
        if self.leases.is_blocked(client) && !self.leases.is_host(client) && !self.runs.is_busy(client) {
            self.lease_change(out, |leases, effects| leases.end_lent(client, effects));
        }
    }

    /// The task of a worker has its values.
    pub(super) fn unblocked(&mut self, client: ClientId, out: &mut Vec<Action>) {
        self.lease_change(out, |leases, effects| leases.unblocked(client, effects));
    }

    /// The owner of a lease takes back the runs that have not started under it.
    pub(super) fn steal_back(&mut self, key: LeaseKey, out: &mut Vec<Action>) {
        if let Some(client) = self.leases.worker(key).filter(|client| !self.leases.is_host(*client)) {
            self.staging_behind_given_back(client, out);
            out.push(Record::StealBack { count: u32::MAX, question: 0 }.to(client));
        }
    }
}

/// A run that is being stopped.
impl Node {
    /// The run in a worker, as far as the node can know.
    pub(super) fn running(&self, client: ClientId) -> Option<Running> {
        let run = self.runs.first(client)?;
        let since = run.first_since()?;
        let call = run.call(&self.owner)?;
        Some(Running {
            task: run.task,
            attempt: run.attempt,
            name: call.name().to_owned(),
            since,
            memory_bytes: run.memory_bytes,
            has_retries: call.class.max_retries != 0,
        })
    }

    /// Stops the run of a task, and with `recursive` the tasks that it has submitted, for its owner: of a run
    /// for another owner, `owner` has no say.
    pub(super) fn cancel_run(
        &mut self,
        owner: NodeId,
        task: TaskId,
        force: bool,
        recursive: bool,
        out: &mut Vec<Action>,
    ) {
        // Most runs are only told.
        let cancelled = || Arc::new(Failure::new(FailureKind::Cancelled, "cancelled"));
        // The run may have ended before the cancellation arrived; its actor may live.
        let Some(slot) = self.runs.find_for(task, owner) else {
            let host = self.leases.host_of(task).filter(|client| force && self.is_lent_to(*client, owner));
            if let Some(client) = host {
                let reason = Arc::new(Failure::new(FailureKind::Cancelled, "the actor was killed"));
                out.push(Action::Do(Operation::KillWorker { client, reason }));
            }
            return;
        };
        if recursive {
            for child in self.runs.children(task).to_vec() {
                self.owner.cancel(ObjectId::output(child, 0), force, recursive, &mut self.effects);
            }
        }
        let run = &self.runs[slot];
        let client = run.client;
        if run.is_staging() {
            let outcome = TaskOutcome::Failed { error_type: String::new(), failure: cancelled() };
            self.end_run(slot, 0, outcome, out);
        } else if force && run.is_first() {
            // Once its worker is being killed, nothing is asked back any more.
            if !run.is_doomed() || self.kills.awaits(client) {
                self.runs.doom(slot);
                self.kill_for(client, slot, cancelled(), out);
            }
        } else {
            self.runs.stops(slot);
            out.push(Record::CancelRun { run: slot.number() }.to(client));
        }
    }

    /// Ends runs whose arguments were not reached for longer than their timeout, and kills workers whose task
    /// has run for longer than its own.
    pub(super) fn kill_overdue(&mut self, now: Now, out: &mut Vec<Action>) {
        for slot in self.runs.overdue_aside(now) {
            self.overdue_aside(now, slot, out);
        }
        for (client, timeout_ms) in self.runs.doom_overdue(now) {
            let text = format!("ran longer than its timeout of {timeout_ms} ms");
            let reason = Arc::new(Failure::new(FailureKind::TimedOut, text));
            match self.runs.first_slot(client) {
                Some(slot) => self.kill_for(client, slot, reason, out),
                None => out.push(Action::Do(Operation::KillWorker { client, reason })),
            }
        }
        self.late_kills(now, out);
    }

    /// The timeout of a run is over that waits for arguments: it fails, unless they are on their way, or one
    /// of them has come since the time began.
    fn overdue_aside(&mut self, now: Now, slot: Slot<Run>, out: &mut Vec<Action>) {
        // The end of another one may have ended it.
        if !self.runs.get(slot).is_some_and(Run::is_staging) {
            return;
        }
        self.runs.set_aside_later(slot, self.pulls.aside_since(Purpose::Arguments(slot)));
        let run = &self.runs[slot];
        if run.due().is_some_and(|due| due <= now) {
            let failure = Arc::new(unreached_failure(run.timeout_ms));
            self.arguments_refused(slot, failure, out);
        }
    }
}

/// Workers that are gone.
impl Node {
    /// A worker is gone but still reads its arguments: they stay pinned until its memory is free.
    pub(super) fn keep_arguments(&mut self, client: ClientId) {
        self.runs.forget_pins(client);
    }

    /// A worker is gone: the first run it was sent had started, the others had not, unless they are calls of
    /// an actor that runs several at the same time. If it belonged to an actor, the actor is gone.
    pub(super) fn runs_lost(&mut self, client: ClientId, failure: &Arc<Failure>, out: &mut Vec<Action>) {
        let host = self.leases.host(client);
        self.kills.gone(client);
        self.line_lost(client, failure, out);
        let Some(host) = host else { return };
        let failure = match failure.kind {
            FailureKind::Cancelled | FailureKind::GroupRemoved | FailureKind::Shutdown => failure.clone(),
            kind if kind.is_crash() => failure.clone(),
            _ => {
                let text = "its worker was killed because of one of its calls";
                Arc::new(Failure::new(FailureKind::WorkerCrashed, text).because((**failure).clone()))
            }
        };
        self.host_ended(host, failure, out);
    }

    /// The actor of a worker has ended by itself. The calls that it has not started come back, and fail where
    /// they were made.
    pub(super) fn actor_ended(&mut self, client: ClientId, out: &mut Vec<Action>) {
        let Some(host) = self.leases.host(client) else { return };
        for slot in self.runs.take_line(client) {
            self.return_run(slot, out);
        }
        let failure = Failure::new(FailureKind::ActorDied, "the actor has ended by itself");
        self.host_ended(host, Arc::new(failure), out);
        let (owner, lease) = host.lease;
        self.lease_change(out, |leases, effects| leases.end(host.lease, effects));
        self.route(owner, Message::LeaseRevoked { lease }, out);
    }

    /// Tells the owner of a constructor that its actor has ended.
    fn host_ended(&mut self, host: Host, failure: Arc<Failure>, out: &mut Vec<Action>) {
        let Host { lease: (owner, lease), actor: task, attempt } = host;
        let outcome = DoneOutcome::Failed { error_type: String::new(), failure };
        if owner == self.id {
            let ended = Ended { lease, task, attempt, run_ns: 0, node: self.id };
            self.owner.ended(self.now, &ended, outcome, &mut self.effects);
        } else {
            let outcome = Box::new(outcome);
            self.send(owner, Message::TaskDone { lease, task, attempt, run_ns: 0, outcome });
        }
        self.apply(out);
    }

    fn line_lost(&mut self, client: ClientId, failure: &Arc<Failure>, out: &mut Vec<Action>) {
        let line = self.runs.take_line(client);
        let first = line.front().copied().filter(|slot| !self.runs[*slot].is_staging());
        for slot in line.into_iter().filter(|slot| Some(*slot) != first) {
            // The end of one may have ended another.
            match self.runs.get(slot) {
                Some(run) if run.rules.concurrent && !run.is_staging() => {
                    let failure = failure_of(run, failure);
                    let outcome = TaskOutcome::Failed { error_type: String::new(), failure };
                    self.end_run(slot, 0, outcome, out);
                }
                _ => self.return_run(slot, out),
            }
        }
        let runs_again = self.pressure.gone(client);
        // The return of another may have ended it.
        let Some((slot, run)) = first.and_then(|slot| Some((slot, self.runs.get(slot)?))) else { return };
        let class = run.call(&self.owner).map(|call| call.class);
        let has_retries = class.is_some_and(|class| class.max_retries != 0);
        let is_task = class.is_some_and(|class| class.role == Role::Task);
        // It stood behind the run for which the worker was killed.
        let is_innocent = is_task && is_of_one_run(failure) && !run.is_doomed();
        if (runs_again || is_innocent) && has_retries {
            return self.send_back(slot, true, out);
        }
        let failure = failure_of(run, failure);
        self.end_run(slot, 0, TaskOutcome::Failed { error_type: String::new(), failure }, out);
    }
}

/// Error of a run whose worker is gone. If the worker was killed because of a run that ended just before, it
/// counts as crashed for the next run.
fn failure_of(run: &Run, failure: &Arc<Failure>) -> Arc<Failure> {
    if !is_of_one_run(failure) || run.is_doomed() {
        return failure.clone();
    }
    let text = "its worker was killed because of another task";
    Arc::new(Failure::new(FailureKind::WorkerCrashed, text).because((**failure).clone()))
}

/// Whether a worker was killed because of one of its runs.
fn is_of_one_run(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Cancelled | FailureKind::TimedOut)
}
