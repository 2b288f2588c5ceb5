//! Runs of tasks, as a node remembers them: what is asked for, and what it tells.

use serde::{Deserialize, Serialize};
use tharsis_types::{Attempt, ClientId, JobId, NodeId, TaskId};

/// Runs of one batch at most.
pub const BATCH_RUNS_MAX: usize = 1024;
/// Bytes of a name or of the place of a call at most; longer ones are cut.
pub const RUN_TEXT_BYTES_MAX: usize = 256;

/// Runs that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunQuery {
    /// Only of this job.
    pub job: Option<JobId>,
    /// Only of this task.
    pub task: Option<TaskId>,
    /// Only those that ended at this time or later, or go on: in ns since 1970, by the clock of the node.
    pub since_unix_ns: u64,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RunOutcome {
    /// It goes on.
    Running,
    /// With values.
    Returned,
    /// With a failure, which its worker reported.
    Failed,
    /// Its worker ended, or was killed.
    Crashed,
}

impl RunOutcome {
    /// Its name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Returned => "returned",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
        }
    }
}

/// A run of a task in a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpan {
    /// The task.
    pub task: TaskId,
    /// Its attempt.
    pub attempt: Attempt,
    /// The node that owns the task.
    pub owner: NodeId,
    /// The name of the call; empty if it is not known.
    pub name: String,
    /// `file:line` of the call.
    pub call_site: String,
    /// The worker's number at the node.
    pub worker: ClientId,
    /// The worker's process, which may have several workers.
    pub pid: u32,
    /// Whether the worker runs others at the same time.
    pub is_concurrent: bool,
    /// When it began, in ns since 1970.
    pub begin_unix_ns: u64,
    /// When it ended; when the node answered, if it goes on.
    pub end_unix_ns: u64,
    /// Its outcome.
    pub outcome: RunOutcome,
}

/// Some of the runs that a node was asked for, in the order of their ends; those that go on are in the first
/// batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunBatch {
    /// The runs.
    pub spans: Vec<RunSpan>,
    /// Runs of all jobs that the node has forgotten.
    pub forgotten: u64,
    /// The node remembers all that ended since then, in ns since 1970.
    pub remembers_since_unix_ns: u64,
    /// Whether no batch follows.
    pub is_last: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_survives_its_frame_with_every_field_at_its_ends() {
        let span = |ns: u64, number: u32, outcome, text: String| RunSpan {
            task: TaskId::from_bytes([u8::MAX; TaskId::LEN]),
            attempt: number,
            owner: NodeId(ns),
            name: text.clone(),
            call_site: text,
            worker: ClientId(number),
            pid: number,
            is_concurrent: number == 0,
            begin_unix_ns: ns,
            // The clock was set back.
            end_unix_ns: 0,
            outcome,
        };
        let longest = format!("{}é", "x".repeat(RUN_TEXT_BYTES_MAX - 2));
        let spans = vec![
            span(u64::MAX, u32::MAX, RunOutcome::Crashed, longest),
            span(0, 0, RunOutcome::Returned, String::new()),
            span(1, 1, RunOutcome::Failed, "\"\u{0}\n".to_owned()),
            span(1, 1, RunOutcome::Running, "f".to_owned()),
        ];
        let (forgotten, remembers_since_unix_ns) = (u64::MAX, u64::MAX);
        let batch = RunBatch { spans, forgotten, remembers_since_unix_ns, is_last: true };
        let bytes = postcard::to_stdvec(&batch).unwrap();
        assert_eq!(postcard::from_bytes::<RunBatch>(&bytes).unwrap(), batch);
    }

    #[test]
    fn a_full_batch_fits_into_a_frame() {
        let span = RunSpan {
            task: TaskId::from_bytes([u8::MAX; TaskId::LEN]),
            attempt: u32::MAX,
            owner: NodeId(u64::MAX),
            name: "x".repeat(RUN_TEXT_BYTES_MAX),
            call_site: "x".repeat(RUN_TEXT_BYTES_MAX),
            worker: ClientId(u32::MAX),
            pid: u32::MAX,
            is_concurrent: true,
            begin_unix_ns: u64::MAX,
            end_unix_ns: u64::MAX,
            outcome: RunOutcome::Crashed,
        };
        let batch = RunBatch { spans: vec![span; BATCH_RUNS_MAX], ..RunBatch::default() };
        let bytes = postcard::to_stdvec(&batch).unwrap();
        assert!(2 * bytes.len() < crate::handshake::HELLO_BYTES_MAX, "{} bytes", bytes.len());
    }
}
