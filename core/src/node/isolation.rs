//! A node that reaches nobody: it goes on with the jobs of its own drivers and starts no work of others.
//!
//! The other nodes declare it dead when its lease runs out, and start its tasks again, and its actors. It
//! cannot hear of it, so it stops before: leases of other nodes' jobs are asked back, their unstarted runs
//! are given back, and no new ones are placed or begin. Tasks and calls that run go on. The jobs of its own
//! drivers end with it for all other nodes, so nobody starts their tasks again.
//!
//! The calls that an actor was sent are for no other worker. Those that it has not begun come back from the
//! worker, and wait here in their order until the node reaches somebody again. So do all calls of the actor
//! of another node's job, and calls of such a job to any actor. If the node is declared dead instead, the
//! callers are told that their calls may have run.

use super::Node;
use super::runs::Run;
use crate::event::{Action, Record, TaskOutcome};
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::{ClientId, Failure, FailureKind};

impl Node {
    /// The node has reached nobody for a while, or reaches somebody again.
    pub(super) fn isolation_changed(&mut self, is_isolated: bool, out: &mut Vec<Action>) {
        if !is_isolated {
            self.lease_change(out, |leases, effects| leases.serve_all(effects));
            return self.leases.hosts().into_iter().for_each(|client| self.send_held(client, out));
        }
        let own = self.clients.driven_jobs();
        let mut left = Vec::new();
        self.lease_change(out, |leases, effects| left = leases.serve_only(own, effects));
        for key in left {
            if let Some(client) = self.leases.worker(key) {
                self.unstarted_given_back(client, out);
            }
        }
        for client in self.leases.hosts() {
            let mut sent = self.runs.line(client).into_iter().map(|slot| &self.runs[slot]);
            let holds_back = sent.any(|run| !run.is_staging() && !self.is_served(run));
            if let Some(question) = holds_back.then(|| self.runs.ask_back(client)).flatten() {
                out.push(Record::StealBack { count: u32::MAX, question }.to(client));
            }
        }
    }

    /// Whether a run may begin now. Nothing is sent to an actor that was asked for its calls: it would
    /// overtake them.
    pub(super) fn may_begin(&self, run: &Run) -> bool {
        // Nearly always: each task asks this.
        let holds_none_back = self.leases.serves_all() && !self.runs.has_asked_back();
        holds_none_back || self.may_begin_here(run)
    }

    #[cold]
    fn may_begin_here(&self, run: &Run) -> bool {
        self.is_served(run) && !self.runs.is_asked_back(run.client)
    }

    /// Whether neither a run nor its actor can begin elsewhere, as this node reaches nobody.
    fn is_served(&self, run: &Run) -> bool {
        let leases = &self.leases;
        let is_served = |client| leases.host(client).is_none_or(|host| leases.serves(host.actor.job()));
        leases.serves_all() || leases.serves(run.task.job()) && is_served(run.client)
    }

    /// The worker of an actor hands back calls that it has not begun: it gets them again when they may begin.
    pub(super) fn calls_given_back(
        &mut self,
        client: ClientId,
        question: u32,
        returned: &[u32],
        out: &mut Vec<Action>,
    ) {
        let returned = returned.iter().copied().map(Slot::from_number).collect();
        for slot in self.runs.unsent(client, question, &returned) {
            // The end of one may have ended another.
            let Some(lease) = self.runs.get(slot).map(|run| run.lease) else { continue };
            if self.runs.is_stopping(slot) {
                // The worker had handed it back before it was told to stop it.
                let failure = Arc::new(Failure::new(FailureKind::Cancelled, "cancelled before it started"));
                self.end_run(slot, 0, TaskOutcome::Failed { error_type: String::new(), failure }, out);
            } else if self.leases.is_closed(lease) {
                // One behind it went back while it was with the worker: nothing is sent there any more.
                self.return_run(slot, out);
            }
        }
        self.mark_first(client);
        self.send_held(client, out);
    }

    /// Sends the calls of an actor that wait for nothing but their turn, in their order.
    fn send_held(&mut self, client: ClientId, out: &mut Vec<Action>) {
        for slot in self.runs.line(client) {
            // The one before may have ended it, or sent it too.
            if self.runs.get(slot).is_some_and(Run::is_staging) && self.may_be_sent(slot) {
                self.arguments_ready(slot, out);
            }
        }
    }
}
