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

/// A loaded machine tells the end of a run late by up to this time, and so its beginning too. The last lines
/// of a run may come this late as well.
pub const LATE: Now = 100 * tharsis_core::MS;

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
            let mut before = self.ended.iter().take(at).rev().map(|(_, before)| before);
            let before = before.find(|before| before.pid == window.pid);
            let last_lines = before.and_then(|before| before.to).map_or(0, |to| to + LATE);
            let from = window.from.min(last_lines.max(window.from.saturating_sub(LATE)));
            Window { from, next, ..*window }
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
        let expected = Window { pid: 7, from: 0, to: Some(101), next: Some(72) };
        assert_eq!(windows.of(task(1)).collect::<Vec<_>>(), [expected]);
        assert_eq!(windows.ended.len(), WINDOWS_MAX);
    }

    #[test]
    fn a_run_after_a_pause_may_have_begun_before_its_end_says() {
        let task = |number| TaskId::root(JobId(1)).child(number);
        let mut windows = Windows::default();
        let ends = [10 * LATE, 12 * LATE, 12 * LATE + 2, 13 * LATE + 3];
        for (number, end) in (0..).zip(ends) {
            windows.ended(end, task(number), 7, 1);
        }
        let from = |number| windows.of(task(number)).next().expect("it is remembered").from;
        assert_eq!(from(0), 9 * LATE - 1);
        assert_eq!(from(1), 11 * LATE, "lines before may be those of the last run");
        assert_eq!(from(2), 12 * LATE + 1, "it follows the last one at once");
        assert_eq!(from(3), 13 * LATE + 2);
    }
}
