//! Circles of actors that seem to wait for each other: if they do, none of them goes on. A read-only view for
//! people.
//!
//! A call waits for the call that its actor runs, and a call that waits inside, for those that it has called.
//! The node does not know which values a run waits for, so it takes all that the run has called and that has
//! not ended: a circle of runs that all wait, each perhaps for a call of the next, and perhaps only for some
//! time. It sees the actors that live on it. Actors that run several calls at the same time wait for no
//! single one of them, and are left out.

use super::Node;
use std::collections::BTreeMap;
use tharsis_types::TaskId;

/// Looks at a task for the sake of one that waits for it, at most.
const STEPS_MAX: usize = 10_000;
/// Calls of a circle that are told one by one, at most.
const CALLS_TOLD_MAX: usize = 16;

impl Node {
    /// The circle of actors in which a task waits, in words; `None` if it waits in none that this node can
    /// see.
    pub(super) fn circle_of(&self, task: TaskId) -> Option<String> {
        let circle = self.find_circle(task)?;
        // The circle is the same wherever it begins: the smallest id first.
        let calls: Vec<_> =
            circle.iter().filter_map(|task| Some((*task, self.owner.called(*task)?))).collect();
        let begin = (0..calls.len()).min_by_key(|at| calls[*at].0)?;
        let told = (0..calls.len()).map(|at| &calls[(begin + at) % calls.len()].1);
        let mut names: Vec<_> = told.take(CALLS_TOLD_MAX).cloned().collect();
        let untold = calls.len() - names.len();
        names.extend((0 < untold).then(|| format!("{untold} more")));
        names.push(calls[begin].1.clone());
        let circle = names.join(" waits for ");
        Some(format!("a circle of actors that seem to wait for each other, and then never go on: {circle}"))
    }

    /// The tasks of a circle to which a task leads, each waiting for the next.
    fn find_circle(&self, from: TaskId) -> Option<Vec<TaskId>> {
        // Each task that was come to, and whether it is on the way.
        let mut seen = BTreeMap::from([(from, true)]);
        let mut way = vec![(from, self.awaits(from))];
        for _ in 0..STEPS_MAX {
            let (last, next) = way.last_mut()?;
            let Some(task) = next.pop() else {
                seen.insert(*last, false);
                way.pop();
                continue;
            };
            match seen.get(&task) {
                Some(true) => {
                    let begin = way.iter().position(|(on_way, _)| *on_way == task)?;
                    return Some(way[begin..].iter().map(|(task, _)| *task).collect());
                }
                Some(false) => {}
                None => {
                    seen.insert(task, true);
                    way.push((task, self.awaits(task)));
                }
            }
        }
        None
    }

    /// Tasks without whose end a task does not go on, as far as this node knows.
    fn awaits(&self, task: TaskId) -> Vec<TaskId> {
        let Some((_, run)) = self.runs.find(task) else {
            let mut awaited = self.owner.awaited_by(task);
            // A call that is not sent stands behind the one that its actor runs.
            let worker = self.owner.actor_of_call(task).and_then(|actor| self.leases.host_of(actor));
            awaited.extend(worker.and_then(|client| self.runs.first(client)).map(|first| first.task));
            return awaited;
        };
        if run.rules.concurrent {
            return Vec::new();
        }
        if !run.is_first() {
            let first = self.runs.first(run.client).filter(|first| first.is_first());
            return first.map(|first| first.task).into_iter().collect();
        }
        if !self.leases.is_blocked(run.client) {
            return Vec::new();
        }
        let children = self.runs.children(task).iter().copied();
        children.filter(|child| self.owner.is_unfinished(*child)).collect()
    }
}
