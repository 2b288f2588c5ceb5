//! Answers of the loop about runs: those that it remembers, and those that go on.

use super::{CLOCK_START, Engine};
use crate::runs::{Moment, RunPage, RunPlace, RunTime, Window, is_wanted};
use tharsis_core::{Now, TaskOutcome};
use tharsis_protos::runs::{RunOutcome, RunQuery};
use tharsis_types::{ClientId, TaskId};

impl Engine {
    /// The next runs that a reader asks for; on the first page those that go on as well.
    pub(super) fn run_page(&mut self, now: Now, query: &RunQuery, place: Option<RunPlace>) -> RunPage {
        let moment = Moment::at(now);
        let (mut runs, next) = self.runs.page(query, moment.loop_time(query.since_unix_ns), place);
        if place.is_none() {
            for port in self.ports.iter().flatten() {
                let Some(run) = self.node.begun_run(port.client) else { continue };
                let noted = self.runs.going_on(now, &run, port.facts.pid);
                runs.extend(noted.filter(|noted| is_wanted(noted, query)));
            }
        }
        let (forgotten, remembers_since) = self.runs.forgotten();
        RunPage { runs, place: next, moment, forgotten, remembers_since: remembers_since.max(CLOCK_START) }
    }

    /// Notes the run that a client was at, which is gone.
    pub(super) fn note_crashed(&mut self, now: Now, client: ClientId, pid: u32) {
        let Some(run) = self.node.begun_run(client) else { return };
        if let Some(since) = run.since {
            self.runs.ended(now, &run, pid, now.saturating_sub(since), RunOutcome::Crashed);
        }
    }

    /// When a task ran here, as far as that is remembered.
    pub(super) fn run_times(&self, task: TaskId) -> Vec<RunTime> {
        let since_ms = |at: Now| self.started_unix_ms + at.saturating_sub(CLOCK_START) / tharsis_core::MS;
        let running = self.node.worker_of(task).and_then(|(client, from)| {
            let port = self.ports.get(*self.index_of.get(&client)?)?.as_ref()?;
            Some(Window { pid: port.facts.pid, from, to: None, next: None })
        });
        let all = self.runs.of(task).chain(running);
        let told = |w: Window| RunTime {
            pid: w.pid,
            from_ms: since_ms(w.from),
            to_ms: w.to.map(since_ms),
            next_ms: w.next.or_else(|| w.to.and_then(|_| self.running_since(w.pid))).map(since_ms),
        };
        all.map(told).collect()
    }

    /// Since when a worker is at its present run.
    fn running_since(&self, pid: u32) -> Option<Now> {
        let port = self.ports.iter().flatten().find(|port| port.facts.pid == pid)?;
        self.node.running_since(port.client)
    }
}

/// The outcome of a run that its worker reports.
pub(super) fn outcome_of(outcome: &TaskOutcome) -> RunOutcome {
    match outcome {
        TaskOutcome::Returned(_) => RunOutcome::Returned,
        TaskOutcome::Failed { .. } => RunOutcome::Failed,
    }
}
