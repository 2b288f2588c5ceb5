//! Counts of a run, readable from other threads.

use crate::metrics::TaskMetrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a run, noted by its executor. Clones refer to the same run.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: AtomicU64,
    tasks: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    spilled_bytes: AtomicU64,
}

/// Tasks, rows and bytes of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Tasks that have ended, or need not run.
    pub tasks: u64,
    /// Tasks of the whole plan.
    pub all: u64,
    /// Rows that tasks have made, those between stages too.
    pub rows: u64,
    /// Bytes of these rows.
    pub bytes: u64,
    /// Bytes that were written to files because memory did not suffice.
    pub spilled_bytes: u64,
}

impl Progress {
    /// Begins a plan of so many tasks; what was noted before does not count.
    pub(crate) fn begin(&self, tasks: usize) {
        let counts = &self.0;
        counts.all.store(tasks as u64, Ordering::Relaxed);
        for count in [&counts.tasks, &counts.rows, &counts.bytes, &counts.spilled_bytes] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Notes a task that has ended.
    pub fn add(&self, task: TaskMetrics) {
        let Counts { tasks, rows, bytes, spilled_bytes, .. } = &*self.0;
        for (count, more) in
            [(tasks, 1), (rows, task.rows), (bytes, task.bytes), (spilled_bytes, task.spilled_bytes)]
        {
            count.fetch_add(more as u64, Ordering::Relaxed);
        }
    }

    /// Notes calls that do a task together with others.
    pub fn more(&self, calls: usize) {
        self.0.all.fetch_add(calls as u64, Ordering::Relaxed);
    }

    /// Notes tasks that need not run.
    pub fn skip(&self, tasks: usize) {
        self.0.tasks.fetch_add(tasks as u64, Ordering::Relaxed);
    }

    /// The counts of the run so far.
    #[must_use]
    pub fn done(&self) -> Done {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { all, tasks, rows, bytes, spilled_bytes } = &*self.0;
        Done {
            tasks: count(tasks),
            all: count(all),
            rows: count(rows),
            bytes: count(bytes),
            spilled_bytes: count(spilled_bytes),
        }
    }
}
