//! Rows for the runs of workers: bars of one row do not overlap.

use super::gather::Run;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A loaded node notes the end of a run late by up to this time, in ns.
const LATE: u64 = 100_000_000;

/// Puts the runs of a node in order and gives each a lane of its worker.
///
/// A worker that runs one task at a time has one lane: the node takes the ends of several short runs
/// together, and notes one time for all. So runs that reach into the next one of their worker are moved
/// before it. Those of an actor that runs several calls at a time are where they are, in lanes.
pub fn arrange(runs: &mut [Run]) {
    // As they ended; the node tells those with equal ends in their order.
    runs.sort_by_key(|run| run.end);
    let mut next_begins = BTreeMap::new();
    for run in runs.iter_mut().rev() {
        let next = next_begins.get(&run.worker).copied().unwrap_or(u64::MAX);
        let late = run.end.saturating_sub(next);
        if !run.is_concurrent && late <= LATE {
            run.begin = run.begin.saturating_sub(late);
            run.end -= late;
        }
        next_begins.insert(run.worker, run.begin);
    }
    runs.sort_by_key(|run| (run.worker, run.begin, run.end, run.task, run.attempt));
    let mut free: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut worker = None;
    for run in runs {
        if worker.replace(run.worker) != Some(run.worker) {
            free.clear();
        }
        let lanes = free.len() as u32;
        run.lane = match free.peek() {
            Some(Reverse((end, lane))) if *end <= run.begin => *lane,
            _ => lanes,
        };
        if run.lane < lanes {
            free.pop();
        }
        free.push(Reverse((run.end, run.lane)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_protos::runs::RunOutcome;
    use tharsis_types::{ClientId, JobId, NodeId, TaskId};

    fn run(number: u64, worker: u32, is_concurrent: bool, (begin, end): (u64, u64)) -> Run {
        Run {
            task: TaskId::root(JobId(1)).child(number),
            attempt: 0,
            owner: NodeId(1),
            name: "f".into(),
            call_site: "".into(),
            worker: ClientId(worker),
            pid: 1,
            is_concurrent,
            begin,
            end,
            outcome: RunOutcome::Returned,
            lane: 0,
        }
    }

    /// Begin, end and lane of each, as they are arranged.
    fn arranged(mut runs: Vec<Run>) -> Vec<(u64, u64, u32)> {
        arrange(&mut runs);
        runs.iter().map(|run| (run.begin, run.end, run.lane)).collect()
    }

    #[test]
    fn runs_whose_ends_came_together_follow_each_other() {
        let spans = [(990, 1_000), (980, 1_000), (970, 1_000)];
        let runs = (0..).zip(spans).map(|(number, span)| run(number, 3, false, span)).collect();
        assert_eq!(arranged(runs), [(940, 950, 0), (950, 970, 0), (970, 1_000, 0)]);
        // Nothing is moved by more than an end is late, nor before 1970.
        let runs = vec![run(0, 3, false, (0, 2 * LATE)), run(1, 3, false, (5, 2 * LATE))];
        assert_eq!(arranged(runs), [(0, 2 * LATE, 0), (5, 2 * LATE, 1)]);
        let runs = vec![run(0, 3, false, (1, 9)), run(1, 3, false, (5, 9))];
        assert_eq!(arranged(runs), [(0, 5, 0), (5, 9, 0)]);
    }

    #[test]
    fn calls_at_the_same_time_have_lanes() {
        let spans = [(0, 10), (2, 4), (3, 9), (4, 6), (10, 12)];
        let runs: Vec<Run> = (0..).zip(spans).map(|(number, span)| run(number, 3, true, span)).collect();
        let expected = [(0, 10, 0), (2, 4, 1), (3, 9, 2), (4, 6, 1), (10, 12, 1)];
        assert_eq!(arranged(runs.clone()), expected);
        // In whichever order they come.
        assert_eq!(arranged(runs.into_iter().rev().collect()), expected);
        let others = vec![run(0, 3, true, (0, 10)), run(1, 4, true, (0, 10)), run(2, 4, true, (0, 10))];
        assert_eq!(arranged(others), [(0, 10, 0), (0, 10, 0), (0, 10, 1)]);
    }

    #[test]
    fn no_two_bars_of_a_lane_overlap() {
        let spans = (0..100_000_u64).map(|number| (number * 7919 % 10_007, number * 104_729 % 1_000));
        let mut runs: Vec<Run> = (0..)
            .zip(spans)
            .map(|(number, (begin, len))| run(number, number as u32 % 3, true, (begin, begin + len)))
            .collect();
        arrange(&mut runs);
        let mut ends = BTreeMap::new();
        for run in &runs {
            let before = ends.insert((run.worker, run.lane), run.end).unwrap_or(0);
            assert!(before <= run.begin, "{run:?} begins before {before}");
        }
    }
}
