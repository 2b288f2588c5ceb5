//! A shape: the common properties of its tasks, and their queues.

use super::line::{End, Line, Turn};
use super::queue::Queue;
use crate::Now;
use crate::owner::Task;
use crate::owner::tasks::Tasks;
use crate::slab::Slot;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use tharsis_types::limits::{PIPELINE_AHEAD_NS, PIPELINE_DEPTH_MAX};
use tharsis_types::task::Role;
use tharsis_types::{Failure, JobId, LeaseId, NodeId, Placement, Resources, TaskClass};

/// Tasks that need the same resources in the same way: they share a queue and leases.
#[derive(Debug)]
pub struct Shape {
    pub(super) key: ShapeKey,
    /// Any class of the shape, for lease requests.
    pub(super) sample: Arc<TaskClass>,
    pub(super) queue: Queue,
    /// Tasks that are queued for a certain node; none of these queues is empty.
    pub(super) near: BTreeMap<NodeId, Line>,
    /// Tasks for which a node is passed over; none of these queues is empty either.
    pub(super) passed: BTreeMap<Passed, Line>,
    /// Tasks that ended while they stood in a queue, and still do.
    pub(super) tombstones: usize,
    /// Leases that were asked for or granted, without those of living actors.
    pub(super) leases: Vec<LeaseId>,
    /// Number of leases that belong to living actors.
    pub(super) settled: usize,
    /// Time a task takes, in nanoseconds; 0 while unknown.
    run_ns: u64,
    /// The node on which no worker started for it, which is left out now, until that is looked at.
    pub(super) refused: Option<(NodeId, Arc<Failure>)>,
    /// The reason why no lease can be asked for, for people.
    pub(super) stuck: Option<String>,
    /// Whether it had tasks or leases at the end of its last round.
    pub(super) was_busy: bool,
}

/// The node that tasks avoid, and one that they prefer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::owner) struct Passed {
    /// The node that is passed over.
    pub(in crate::owner) node: NodeId,
    /// Of the others, the one that has most of the arguments.
    pub(in crate::owner) near: Option<NodeId>,
}

/// Key that makes two classes one shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShapeKey {
    pub(super) job: JobId,
    pub(super) resources: Resources,
    priority: i32,
    pub(super) placement: Placement,
    max_calls: u32,
    /// Whether its tasks construct actors: each keeps its lease while its actor lives.
    pub(super) constructs: bool,
    /// Whether these may share a process.
    shared_process: bool,
}

impl ShapeKey {
    pub(super) fn of(class: &TaskClass) -> Self {
        Self {
            job: class.job,
            resources: class.resources.clone(),
            priority: class.priority,
            placement: class.placement.clone(),
            max_calls: class.max_calls,
            constructs: class.role == Role::Constructor,
            shared_process: class.shared_process,
        }
    }
}

impl Shape {
    pub(super) fn new(key: ShapeKey, sample: Arc<TaskClass>) -> Self {
        Self {
            key,
            sample,
            queue: Queue::default(),
            near: BTreeMap::new(),
            passed: BTreeMap::new(),
            tombstones: 0,
            leases: Vec::new(),
            settled: 0,
            run_ns: 0,
            refused: None,
            stuck: None,
            was_busy: false,
        }
    }

    /// A lease is gone, or belongs to an actor.
    pub(super) fn forget_lease(&mut self, lease: LeaseId) {
        let before = self.leases.len();
        self.leases.retain(|known| *known != lease);
        assert_eq!(self.leases.len() + 1, before, "a lease is not with its shape");
    }

    /// Whether it has tasks, or leases that are not those of living actors.
    pub(super) fn is_busy(&self) -> bool {
        0 < self.len() || !self.leases.is_empty()
    }

    /// Tasks in its queues, tombstones among them.
    pub(super) fn len(&self) -> usize {
        // Each round asks for it several times, and hardly a shape has other queues than the common one.
        let has_others = !self.near.is_empty() || !self.passed.is_empty();
        self.queue.len() + if has_others { self.of_some().map(Line::len).sum::<usize>() } else { 0 }
    }

    /// The tasks in its queues, tombstones among them.
    pub(super) fn queued(&self) -> impl Iterator<Item = Slot<Task>> {
        self.queue.iter().chain(self.of_some().flat_map(Line::iter)).copied()
    }

    /// The queues that not all nodes serve.
    fn of_some(&self) -> impl Iterator<Item = &Line> {
        self.near.values().chain(self.passed.values())
    }

    /// Whether tasks in its queues differ in priority.
    pub(super) fn is_ranked(&self) -> bool {
        self.queue.is_ranked() || self.of_some().any(Line::is_ranked)
    }

    /// The urgency of each of its first leases, at most so many: the priorities of its tasks, highest first,
    /// each added to that of their class.
    pub(super) fn urgencies(&self, count: usize) -> Vec<i32> {
        let lines = self.queue.lines().chain(self.of_some());
        let mut all: Vec<_> = lines.flat_map(|line| line.priorities().take(count)).collect();
        all.sort_unstable_by_key(|priority| Reverse(*priority));
        all.truncate(count);
        all.iter_mut().for_each(|priority| *priority = priority.saturating_add(self.key.priority));
        all
    }

    /// The urgency of a lease beside those that it has asked for.
    pub(super) fn urgency_at(&self, asked: usize) -> i32 {
        if !self.is_ranked() {
            return self.key.priority;
        }
        self.urgencies(asked + 1).get(asked).copied().unwrap_or(self.key.priority)
    }

    /// Whether there is a task for a lease on a node.
    pub(super) fn has_for(&self, node: NodeId) -> bool {
        let is_passed_on = |passed: &Passed| passed.node != node;
        !self.queue.is_empty() || self.near.contains_key(&node) || self.passed.keys().any(is_passed_on)
    }

    /// Puts a task into the queue of a node, or into the common one.
    pub(super) fn push(&mut self, near: Option<NodeId>, turn: Turn, slot: Slot<Task>) {
        match near {
            Some(node) => self.near.entry(node).or_default().push(turn, slot),
            None => self.queue.push(turn, slot),
        }
    }

    /// Takes the next task for a lease on a node, which may be a tombstone; and tells the queue in which it
    /// stood, if that is one for which a node is passed over.
    pub(super) fn next_for(&mut self, node: NodeId, now: Now) -> Option<(Slot<Task>, Option<Passed>)> {
        if let Some(near) = self.near.get_mut(&node) {
            let next = near.pop();
            assert!(next.is_some(), "an empty queue is kept for node {node}");
            if near.is_empty() {
                self.near.remove(&node);
            }
            return next.map(|slot| (slot, None));
        }
        let passed_on = self.passed.iter_mut().find(|(passed, _)| passed.node != node);
        if let Some((passed, line)) = passed_on {
            let (passed, next) = (*passed, line.pop());
            assert!(next.is_some(), "an empty queue is kept for others than node {}", passed.node);
            if line.is_empty() {
                self.passed.remove(&passed);
            }
            return next.map(|slot| (slot, Some(passed)));
        }
        self.queue.pop(now).map(|slot| (slot, None))
    }

    /// Puts a task into the queue of all nodes but one, or into the common one.
    pub(super) fn push_besides(&mut self, passed: Option<Passed>, turn: Turn, slot: Slot<Task>) {
        match passed {
            Some(passed) => self.passed.entry(passed).or_default().push(turn, slot),
            None => self.queue.push(turn, slot),
        }
    }

    /// Moves the tasks that are queued for a node to the common queue.
    pub(super) fn forget_near(&mut self, node: NodeId, tasks: &Tasks) {
        for slot in self.near.remove(&node).unwrap_or_default().iter() {
            self.queue.push(Turn::of(&tasks[*slot], End::Back), *slot);
        }
    }

    /// Moves tasks for which a node is passed over to the common queue.
    pub(super) fn forget_passed(&mut self, passed: Passed, tasks: &Tasks) {
        for slot in self.passed.remove(&passed).unwrap_or_default().iter() {
            self.queue.push(Turn::of(&tasks[*slot], End::Back), *slot);
        }
    }

    /// A tombstone has left its queue.
    pub(super) fn tombstone_left(&mut self) {
        assert!(0 < self.tombstones, "more tombstones leave a queue than there are");
        self.tombstones -= 1;
    }

    /// Takes tombstones out of the queues once they are half of the entries, so that no leases are asked for
    /// on their behalf.
    pub(super) fn sweep(&mut self, tasks: &mut Tasks) {
        if self.tombstones == 0 || self.tombstones * 2 < self.len() {
            return;
        }
        let before = self.len();
        let mut lives = |slot: &Slot<Task>| !tasks.tombstone_to_gone(*slot);
        self.queue.retain(&mut lives);
        self.near.values_mut().for_each(|queue| queue.retain(&mut lives));
        self.near.retain(|_, queue| !queue.is_empty());
        self.passed.values_mut().for_each(|queue| queue.retain(&mut lives));
        self.passed.retain(|_, queue| !queue.is_empty());
        assert_eq!(before - self.len(), self.tombstones, "ended tasks in queues are miscounted");
        self.tombstones = 0;
        self.queue.shrink();
    }

    /// Asserts that no queue for a node is empty and that tombstones are counted.
    pub(super) fn check(&self) {
        self.queue.check();
        assert!(self.of_some().all(|queue| !queue.is_empty()), "an empty queue is kept for some nodes");
        assert!(self.tombstones <= self.len(), "more ended tasks in queues than tasks");
    }

    /// Takes the run time of a task into the estimate.
    pub(super) fn note_run(&mut self, run_ns: u64) {
        let run_ns = run_ns.max(1);
        // The estimate rises quickly and falls slowly.
        self.run_ns =
            if run_ns > self.run_ns { run_ns.midpoint(self.run_ns) } else { (self.run_ns * 7 + run_ns) / 8 };
    }

    /// Time a task takes, in nanoseconds; 0 while unknown.
    pub(super) fn run_ns(&self) -> u64 {
        self.run_ns
    }

    /// Maximum number of tasks under one lease at a time: as many as keep its worker busy until more can
    /// come. More may come late if the processors are busy with other tasks, so a second task is sent if
    /// tasks are brief enough that it will not have to be taken back.
    pub(super) fn depth(&self) -> usize {
        let ahead = PIPELINE_AHEAD_NS.checked_div(self.run_ns).map_or(1, |n| n as usize + 1);
        let is_brief = 0 < self.run_ns && self.run_ns < super::STEAL_AFTER / 2;
        let depth = ahead.max(1 + usize::from(is_brief)).min(PIPELINE_DEPTH_MAX);
        match self.key.max_calls {
            0 if !self.key.constructs => depth,
            _ => 1,
        }
    }
}
