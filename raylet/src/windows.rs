//! When tasks ran in which worker: by it the output of a worker is that of a task.
//!
//! A worker does not mark its output, because a mark for each task would cost a system call. The loop notes
//! the end of each run with the time that it took, which costs a few nanoseconds. The last runs are
//! remembered.

use std::collections::VecDeque;
use tharsis_core::Now;
use tharsis_types::TaskId;

/// Runs that are remembered.
const WINDOWS_MAX: usize = 1 << 14;

/// The time in which a worker ran a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The worker's process.
    pub pid: u32,
    /// When it began.
    pub from: Now,
    /// When it ended; none if it still runs.
    pub to: Option<Now>,
    /// When the worker began its next run, if that is known.
    pub next: Option<Now>,
}

/// The time in which a worker ran a task, in ms since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTime {
    /// The worker's process.
    pub pid: u32,
    /// When it began.
    pub from_ms: u64,
    /// When it ended; none if it still runs.
    pub to_ms: Option<u64>,
    /// When the worker began its next run.
    pub next_ms: Option<u64>,
}

/// The last runs of a node.
#[derive(Default)]
pub struct Windows {
    ended: VecDeque<(TaskId, Window)>,
}

impl Windows {
    /// A run has ended.
    pub fn ended(&mut self, now: Now, task: TaskId, pid: u32, run_ns: u64) {
        if self.ended.len() == WINDOWS_MAX {
            self.ended.pop_front();
        }
        let from = now.saturating_sub(run_ns);
        self.ended.push_back((task, Window { pid, from, to: Some(now), next: None }));
    }

    /// The runs of a task that have ended, as far as they are remembered.
    pub fn of(&self, task: TaskId) -> impl Iterator<Item = Window> {
        let found = self.ended.iter().enumerate().filter(move |(_, (of, _))| *of == task);
        found.map(|(at, (_, window))| {
            let mut later = self.ended.iter().skip(at + 1).map(|(_, later)| later);
            let next = later.find(|later| later.pid == window.pid).map(|later| later.from);
            Window { next, ..*window }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::JobId;

    #[test]
    fn the_last_runs_are_remembered() {
        let task = |number| TaskId::root(JobId(1)).child(number);
        let mut windows = Windows::default();
        for number in 0..WINDOWS_MAX as u64 + 1 {
            windows.ended(100 + number, task(number), 7, 30);
        }
        assert_eq!(windows.of(task(0)).count(), 0);
        let expected = Window { pid: 7, from: 71, to: Some(101), next: Some(72) };
        assert_eq!(windows.of(task(1)).collect::<Vec<_>>(), [expected]);
        assert_eq!(windows.ended.len(), WINDOWS_MAX);
    }
}
