//! Answers of nodes at one moment, and the runs of a node counted by job.

use std::collections::BTreeMap;
use tharsis_protos::listing::Table;
use tharsis_protos::report::Report;
use tharsis_protos::runs::{RunBatch, RunOutcome};
use tharsis_types::JobId;

/// Runs that have ended of one node that are counted at most: a busy node remembers more, and would send each
/// of them with its texts.
const ENDED_MAX: u64 = 4096;
/// The shortest time, in ns, over which a rate is told.
const WINDOW_MIN: u64 = 1_000_000;

/// Answers of nodes at one moment.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The node of this machine, as `tharsis status` shows it.
    pub report: Report,
    /// Its jobs, as `tharsis jobs` shows them.
    pub jobs: Table,
    /// Its queued tasks, as `tharsis tasks` shows them: the oldest first.
    pub queued: Table,
    /// Runs of each node, or the reason for which it does not tell them.
    pub runs: BTreeMap<u64, Result<Counted, String>>,
}

impl Sample {
    /// Runs of the nodes that tell them.
    pub fn counted(&self) -> impl Iterator<Item = &Counted> {
        self.runs.values().filter_map(|told| told.as_ref().ok())
    }
}

/// Runs of a node: those that go on, and those that finished in a window of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    running: BTreeMap<JobId, u64>,
    finished: BTreeMap<JobId, u64>,
    ended_count: u64,
    /// Begin and end of the window, in ns since 1970.
    since: u64,
    until: u64,
    is_begun: bool,
}

impl Counted {
    /// No runs yet of a window, in ns since 1970.
    pub fn new(since: u64, until: u64) -> Self {
        Self { since, until, ..Self::default() }
    }

    /// Counts a batch, which follows the one before. Whether more are wanted.
    pub fn take(&mut self, batch: &RunBatch) -> bool {
        if !self.is_begun {
            // Later batches may have forgotten more, of which runs were counted already.
            self.since = self.since.max(batch.remembers_since_unix_ns);
            self.is_begun = true;
        }
        let mut last_end = 0;
        for span in &batch.spans {
            let counts = match span.outcome {
                RunOutcome::Running => &mut self.running,
                RunOutcome::Returned | RunOutcome::Failed => &mut self.finished,
                RunOutcome::Crashed => continue,
            };
            *counts.entry(span.task.job()).or_default() += 1;
            if span.outcome != RunOutcome::Running {
                self.ended_count += 1;
                last_end = last_end.max(span.end_unix_ns);
            }
        }
        if batch.is_last {
            // Its clock may be ahead of the one here.
            self.until = self.until.max(last_end);
        } else if ENDED_MAX <= self.ended_count {
            self.until = last_end;
            return false;
        }
        !batch.is_last
    }

    /// The jobs that have such runs.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.running.keys().chain(self.finished.keys()).copied()
    }

    /// Runs that go on.
    pub fn running(&self) -> u64 {
        self.running.values().sum()
    }

    /// Runs of a job that go on.
    pub fn running_of(&self, job: JobId) -> u64 {
        self.running.get(&job).copied().unwrap_or(0)
    }

    /// Runs that finish in a second.
    pub fn finished_per_s(&self) -> f64 {
        self.per_s(self.finished.values().sum())
    }

    /// Runs of a job that finish in a second.
    pub fn finished_per_s_of(&self, job: JobId) -> f64 {
        self.per_s(self.finished.get(&job).copied().unwrap_or(0))
    }

    fn per_s(&self, count: u64) -> f64 {
        count as f64 / (self.until.saturating_sub(self.since).max(WINDOW_MIN) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_protos::runs::RunSpan;
    use tharsis_types::{ClientId, NodeId, TaskId};

    const S: u64 = 1_000_000_000;

    fn span(job: u32, end: u64, outcome: RunOutcome) -> RunSpan {
        RunSpan {
            task: TaskId::root(JobId(job)),
            attempt: 0,
            owner: NodeId(1),
            name: "f".to_owned(),
            call_site: "f.rs:3".to_owned(),
            worker: ClientId(2),
            pid: 3,
            is_concurrent: false,
            begin_unix_ns: 0,
            end_unix_ns: end,
            outcome,
        }
    }

    fn batch(spans: Vec<RunSpan>, remembers_since_unix_ns: u64, is_last: bool) -> RunBatch {
        RunBatch { spans, forgotten: 0, remembers_since_unix_ns, is_last }
    }

    #[test]
    fn runs_are_counted_by_job_and_crashed_ones_did_not_finish() {
        let mut counted = Counted::new(100 * S, 105 * S);
        let first = vec![
            span(1, 105 * S, RunOutcome::Running),
            span(1, 101 * S, RunOutcome::Returned),
            span(2, 102 * S, RunOutcome::Failed),
        ];
        assert!(counted.take(&batch(first, 0, false)));
        let second = vec![span(1, 103 * S, RunOutcome::Returned), span(3, 104 * S, RunOutcome::Crashed)];
        assert!(!counted.take(&batch(second, 0, true)));
        assert_eq!(
            (counted.running(), counted.running_of(JobId(1)), counted.running_of(JobId(2))),
            (1, 1, 0)
        );
        assert_eq!((counted.finished_per_s(), counted.finished_per_s_of(JobId(1))), (0.6, 0.4));
        assert_eq!(counted.jobs().collect::<Vec<_>>(), [JobId(1), JobId(1), JobId(2)]);
    }

    #[test]
    fn a_window_begins_where_the_node_remembers_all() {
        let mut counted = Counted::new(100 * S, 105 * S);
        assert!(counted.take(&batch(vec![span(1, 103 * S, RunOutcome::Returned)], 103 * S, false)));
        // Meanwhile it has forgotten more.
        assert!(!counted.take(&batch(vec![span(1, 104 * S, RunOutcome::Returned)], 104 * S, true)));
        assert_eq!(counted.finished_per_s(), 1.0);
    }

    #[test]
    fn the_window_of_a_busy_node_ends_with_the_last_run_that_it_told() {
        let mut counted = Counted::new(100 * S, 105 * S);
        let mut ended = 0;
        while counted.take(&batch(vec![span(1, 101 * S, RunOutcome::Returned); 1024], 0, false)) {
            ended += 1024;
            assert!(ended < ENDED_MAX, "it is never enough");
        }
        assert_eq!(counted.finished_per_s(), 4096.0);
    }

    #[test]
    fn a_clock_that_is_ahead_or_behind_makes_no_endless_rate() {
        let mut ahead = Counted::new(100 * S, 105 * S);
        ahead.take(&batch(vec![span(1, 110 * S, RunOutcome::Returned); 5], 0, true));
        assert_eq!(ahead.finished_per_s(), 0.5);
        let mut behind = Counted::new(100 * S, 105 * S);
        behind.take(&batch(vec![span(1, 0, RunOutcome::Returned); 5000], 0, false));
        assert!(behind.finished_per_s().is_finite());
        assert_eq!(Counted::default().finished_per_s(), 0.0);
    }
}
