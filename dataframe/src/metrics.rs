//! Time, rows and bytes of runs.

use std::time::Duration;

/// Time, rows and bytes of the run of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// By stage.
    pub stages: Vec<StageMetrics>,
    /// From start to end.
    pub elapsed: Duration,
    /// Attempts beyond the first of each task.
    pub retries: u64,
}

/// Time, rows and bytes of the tasks of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageMetrics {
    /// Number of tasks that ran. One with far more rows than others counts as several.
    pub tasks: usize,
    /// Rows of all outputs.
    pub rows: usize,
    /// Bytes of all outputs.
    pub bytes: usize,
    /// Bytes of the outputs of the largest task.
    pub largest_bytes: usize,
    /// Bytes that operators wrote to files because memory did not suffice.
    pub spilled_bytes: usize,
    /// Time in tasks, all threads together.
    pub busy: Duration,
    /// Time of the slowest task.
    pub slowest: Duration,
    /// Attempts beyond the first of each task.
    pub retries: u64,
}

/// Time, rows and bytes of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskMetrics {
    /// Rows of all outputs.
    pub rows: usize,
    /// Bytes of all outputs.
    pub bytes: usize,
    /// Bytes that operators wrote to files because memory did not suffice.
    pub spilled_bytes: usize,
    /// Time from its start to its end.
    pub busy: Duration,
    /// Attempts beyond the first.
    pub retries: u64,
}

impl StageMetrics {
    /// Counts one more task that has ended.
    pub fn add(&mut self, task: TaskMetrics) {
        self.tasks += 1;
        self.rows += task.rows;
        self.bytes += task.bytes;
        self.largest_bytes = self.largest_bytes.max(task.bytes);
        self.spilled_bytes += task.spilled_bytes;
        self.busy += task.busy;
        self.slowest = self.slowest.max(task.busy);
        self.retries += task.retries;
    }
}
