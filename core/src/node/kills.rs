//! Workers that are killed because of one run, without harm to the runs behind it.
//!
//! A worker is sent several runs ahead. By the time that it is dead, the run for which it is killed may have
//! ended, and the next one begun: that one would fail for nothing of its own. So the runs behind it are asked
//! back first, and nothing more is sent. When they are back, either the run still goes on, alone, and the
//! worker is killed; or it has ended, and nobody need be killed: the worker serves its lease as before. A
//! worker that does not answer is killed after [`ANSWER_WAIT`].

use super::Node;
use super::runs::Run;
use crate::event::{Action, Operation, Record};
use crate::slab::Slot;
use crate::{MS, Now};
use std::collections::BTreeMap;
use std::sync::Arc;
use tharsis_types::{Attempt, ClientId, Failure, TaskId};

/// The time in which a worker hands back what was sent ahead.
const ANSWER_WAIT: Now = 50 * MS;

/// Workers that are to be killed as soon as nothing stands behind their run.
#[derive(Debug, Default)]
pub(super) struct Kills(BTreeMap<ClientId, Kill>);

#[derive(Debug)]
struct Kill {
    run: Slot<Run>,
    task: TaskId,
    attempt: Attempt,
    at: Now,
    reason: Arc<Failure>,
}

impl Kills {
    /// Whether a worker is to be killed and is not yet.
    pub(super) fn awaits(&self, client: ClientId) -> bool {
        self.0.contains_key(&client)
    }

    /// The run for which a worker was to be killed has ended; false if the worker is being killed already.
    pub(super) fn spare(&mut self, client: ClientId) -> bool {
        self.0.remove(&client).is_some()
    }

    /// A worker is gone.
    pub(super) fn gone(&mut self, client: ClientId) {
        self.0.remove(&client);
    }

    /// When [`Node::late_kills`] has something to do.
    pub(super) fn next_timeout(&self) -> Option<Now> {
        self.0.values().map(|kill| kill.at).min()
    }

    /// Sizes of tables that must be empty when no worker is there.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 1] {
        [("workers that are to be killed", self.0.len())]
    }
}

impl Node {
    /// Kills a worker because of its first run, which is doomed.
    pub(super) fn kill_for(
        &mut self,
        client: ClientId,
        run: Slot<Run>,
        reason: Arc<Failure>,
        out: &mut Vec<Action>,
    ) {
        // An actor dies with its call, and so do the calls behind that.
        if self.leases.is_host(client) || !self.runs.has_behind(client) {
            // A kill that waited for the runs behind waits no longer.
            self.kills.0.remove(&client);
            return out.push(Action::Do(Operation::KillWorker { client, reason }));
        }
        if let Some((owner, lease)) = self.leases.lease_of(client)
            && owner == self.id
        {
            self.owner.lease_paused(lease);
        }
        let (task, attempt) = (self.runs[run].task, self.runs[run].attempt);
        // One that is repeated does not wait longer.
        let at = self.kills.0.get(&client).map_or(self.now + ANSWER_WAIT, |kill| kill.at);
        self.kills.0.insert(client, Kill { run, task, attempt, at, reason });
        self.staging_behind_given_back(client, out);
        out.push(Record::StealBack { count: u32::MAX, question: 0 }.to(client));
    }

    /// A worker has handed back runs: it is killed if it is to be, and its run still goes on.
    pub(super) fn kill_if_alone(&mut self, client: ClientId, out: &mut Vec<Action>) {
        if !self.runs.has_behind(client) {
            self.carry_out(client, out);
        }
    }

    /// Kills workers that do not answer.
    pub(super) fn late_kills(&mut self, now: Now, out: &mut Vec<Action>) {
        let late: Vec<_> =
            self.kills.0.iter().filter(|(_, kill)| kill.at <= now).map(|(client, _)| *client).collect();
        late.into_iter().for_each(|client| self.carry_out(client, out));
    }

    fn carry_out(&mut self, client: ClientId, out: &mut Vec<Action>) {
        let Some(Kill { run, task, attempt, reason, .. }) = self.kills.0.remove(&client) else { return };
        let is_it = |run: &Run| (run.client, run.task, run.attempt) == (client, task, attempt);
        if self.runs.get(run).is_some_and(|run| is_it(run) && run.is_doomed()) {
            out.push(Action::Do(Operation::KillWorker { client, reason }));
        }
    }
}
