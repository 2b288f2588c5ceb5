//! Output of workers, as a node keeps it: what is asked for, and lines.

use serde::{Deserialize, Serialize};
use tharsis_types::{JobId, TaskId};

/// Lines of one batch at most.
pub const BATCH_LINES_MAX: usize = 1024;
/// Bytes of the texts of one batch at most, if it has more than one line.
pub const BATCH_BYTES_MAX: usize = 1 << 20;
/// Bytes of the text of a line at most; longer ones are cut.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Lines from the end that can be asked for at most.
pub const TAIL_LINES_MAX: u32 = 1_000_000;

/// Lines that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogQuery {
    /// Only of this job.
    pub job: Option<JobId>,
    /// Only those that a worker wrote while it ran this task. An actor that runs several calls at the same
    /// time does not tell their lines apart: those of the others are among them, also if they are of other
    /// jobs.
    pub task: Option<TaskId>,
    /// Lines from the end to begin with.
    pub tail: u32,
    /// Whether to go on with lines that come later.
    pub follow: bool,
}

/// A line that a worker wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was read from the worker, in ms since 1970.
    pub unix_ms: u64,
    /// The worker's job.
    pub job: JobId,
    /// The worker's process.
    pub pid: u32,
    /// Whether it was written to stderr.
    pub is_stderr: bool,
    /// The line, without its end.
    pub text: String,
}
