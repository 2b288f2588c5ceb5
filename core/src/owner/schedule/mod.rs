//! Queues by shape, leases, who gets the next task.
//!
//! Tasks that need the same resources in the same way (a *shape*) share a queue and leases. A lease holds one
//! worker; as many tasks are sent ahead to it as keep it busy for a moment, judged by how long tasks of the
//! shape have taken. Tasks whose arguments lie on another node stand in a queue of that node and move to the
//! common queue if there is no room there.

mod queue;
mod refusals;
mod requests;

pub(super) use refusals::Refusals;

use super::{Effect, Owner, Task, TaskState};
use crate::event::Value;
use crate::peer::DoneOutcome;
use crate::place::View;
use crate::slab::Slot;
use crate::{MS, Now};
use queue::Queue;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tharsis_types::limits::{LEASE_IDLE_MS, PIPELINE_AHEAD_NS, PIPELINE_DEPTH_MAX};
use tharsis_types::{Failure, FailureKind, JobId, LeaseId, NodeId, Placement, Resources, TaskClass};

/// Arguments elsewhere that are worth going there for, in bytes.
const NEAR_BYTES_MIN: u64 = 64 << 10;

/// Tasks that stand this long behind one that does not end are taken back.
const STEAL_AFTER: Now = 5 * MS;

/// What tasks of one queue have in common.
#[derive(Debug)]
pub struct Shape {
    key: ShapeKey,
    /// Any class of the shape, for lease requests.
    sample: Arc<TaskClass>,
    queue: Queue,
    /// Tasks that would rather run on a certain node.
    near: BTreeMap<NodeId, VecDeque<Slot<Task>>>,
    /// Tasks that ended while they stood in a queue, and still do.
    tombstones: usize,
    leases: Vec<LeaseId>,
    /// Time a task takes, in nanoseconds; 0 while unknown.
    run_ns: u64,
    /// Why nothing can be done, for people.
    stuck: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShapeKey {
    job: JobId,
    resources: Resources,
    priority: i32,
    placement: Placement,
    max_calls: u32,
}

/// A lease as its owner uses it.
#[derive(Debug)]
pub(super) struct LeaseUse {
    pub(super) node: NodeId,
    pub(super) shape: Slot<Shape>,
    granted: bool,
    recalled: bool,
    /// Its task waits for others; nothing is sent until that task ends.
    paused: bool,
    /// Tasks sent and not ended, oldest first: the first may have started.
    in_flight: VecDeque<Slot<Task>>,
    /// When a task was last sent or ended.
    active_at: Now,
}

/// Work that waits, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Name of a task of the shape.
    pub name: String,
    /// What each task needs.
    pub resources: Resources,
    /// How many.
    pub count: usize,
    /// Why they wait.
    pub reason: String,
}

impl Owner {
    /// A lease was granted.
    pub fn lease_granted(&mut self, now: Now, lease: LeaseId, from: NodeId, out: &mut Vec<Effect>) {
        let Some(granted) = self.leases.get_mut(&lease) else {
            out.push(Effect::ReturnLease { to: from, lease });
            return;
        };
        granted.granted = true;
        granted.active_at = now;
        let shape = granted.shape;
        self.dirty.insert(shape);
        self.refusals.started(self.shapes[shape].key.job, from);
    }

    /// Whether a lease was asked of another node than this one.
    pub fn is_leased_elsewhere(&self, lease: LeaseId, node: NodeId) -> bool {
        self.leases.get(&lease).is_some_and(|asked| asked.node != node)
    }

    /// A lease was denied.
    pub fn lease_denied(&mut self, lease: LeaseId) {
        if self.leases.get(&lease).is_some_and(|l| !l.granted) {
            self.remove_lease(lease);
        }
    }

    /// The node wants a lease back soon.
    pub fn lease_recalled(&mut self, lease: LeaseId) {
        if let Some(recalled) = self.leases.get_mut(&lease) {
            recalled.recalled = true;
            self.dirty.insert(recalled.shape);
        }
    }

    /// A lease is gone; whatever was not reported before was never started.
    pub fn lease_revoked(&mut self, lease: LeaseId, out: &mut Vec<Effect>) {
        self.take_back(lease, false, out);
    }

    fn take_back(&mut self, lease: LeaseId, may_have_started: bool, out: &mut Vec<Effect>) {
        let Some(gone) = self.remove_lease(lease) else { return };
        for slot in gone.in_flight.into_iter().rev() {
            self.restore(slot, may_have_started, out);
        }
    }

    /// The worker's task is blocked: nothing more is sent until it ends.
    pub fn lease_paused(&mut self, lease: LeaseId) {
        if let Some(used) = self.leases.get_mut(&lease) {
            used.paused = !used.in_flight.is_empty();
        }
    }

    /// No worker could be started for the lease: the next task of its shape has failed an attempt.
    pub fn lease_failed(&mut self, now: Now, lease: LeaseId, failure: &Arc<Failure>, out: &mut Vec<Effect>) {
        let Some(failed) = self.remove_lease(lease) else { return };
        self.refusals.failed(now, self.shapes[failed.shape].key.job, failed.node, failure);
        let Some(slot) = self.shapes[failed.shape].next_for(failed.node, now) else { return };
        if self.drop_tombstone(failed.shape, slot) {
            return;
        }
        let Some(task) = self.tasks.get_mut(slot) else { return };
        task.state = TaskState::Waiting { missing: 0 };
        if self.take_retry(slot) {
            self.enqueue(slot);
        } else {
            let failure = self.located_failure(slot, failure, failed.node);
            self.fail(slot, &failure, out);
        }
    }

    /// A node is gone: the first task of each of its leases may have run, the others have not.
    pub fn node_gone(&mut self, now: Now, node: NodeId, out: &mut Vec<Effect>) {
        let leases: Vec<_> = self.leases.iter().filter(|(_, l)| l.node == node).map(|(id, _)| *id).collect();
        for lease in leases {
            let started = self.leases.get(&lease).and_then(|l| l.in_flight.front().copied());
            if let Some(slot) = started
                && let Some(task) = self.tasks.get(slot)
            {
                let ended = super::Ended { lease, task: task.id, attempt: task.attempt, run_ns: 0, node };
                let failure = Arc::new(Failure::new(FailureKind::NodeDied, format!("node {node} is gone")));
                self.ended_slot(
                    now,
                    slot,
                    &ended,
                    DoneOutcome::Failed { error_type: String::new(), failure },
                    out,
                );
            }
            // Of the others, reports may be lost.
            self.take_back(lease, true, out);
        }
        let shapes: Vec<_> = self.shapes.iter().map(|(number, _)| number).collect();
        shapes.into_iter().for_each(|shape| self.forget_near(shape, node));
        self.refusals.node_gone(node);
        self.objects_of_dead_node(now, node, out);
        self.dirty_all();
    }

    /// Something about the cluster changed: look at every shape again.
    pub fn dirty_all(&mut self) {
        let busy = self.shapes.iter().filter(|(_, s)| s.len() > 0 || !s.leases.is_empty());
        self.dirty.extend(busy.map(|(number, _)| number));
    }

    /// Sends tasks to leases and asks for more leases where queues are left.
    pub fn schedule(&mut self, now: Now, view: &mut View, out: &mut Vec<Effect>) {
        while let Some(shape) = self.dirty.pop_first() {
            self.sweep(shape);
            self.send_tasks(now, shape, out);
            self.return_leases(now, shape, out);
            self.request_leases(now, shape, view, out);
        }
        self.plan_trim(now);
    }

    /// Whether there is something for [`Owner::schedule`] to look at.
    #[must_use]
    pub fn has_changed_shapes(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// When [`Owner::expire`] has something to do.
    #[must_use]
    pub fn next_timeout(&self, now: Now) -> Option<Now> {
        let refusals = self.refusals.next_timeout(now);
        let grace = self.references.next_timeout();
        self.leases
            .values()
            .filter_map(LeaseUse::next_timeout)
            .chain(grace)
            .chain(self.trim_at)
            .chain(refusals)
            .min()
    }

    /// Gives back leases that have been idle for long, and takes tasks back that wait behind a long one.
    pub fn expire(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.end_grace(now, out);
        self.trim(now, out);
        for (lease, used) in &mut self.leases {
            if used.next_timeout().is_none_or(|at| at > now) {
                continue;
            }
            self.dirty.insert(used.shape);
            if used.in_flight.len() > 1 {
                used.paused = true;
                out.push(Effect::StealBack { to: used.node, lease: *lease });
            }
        }
    }

    /// Work that waits for leases, and why.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        let waiting = self.shapes.iter().map(|(_, s)| s).filter(|s| s.len() > 0);
        waiting
            .map(|s| Pending {
                name: s.sample.name.clone(),
                resources: s.key.resources.clone(),
                count: s.len(),
                reason: self.why_pending(s),
            })
            .collect()
    }

    fn why_pending(&self, shape: &Shape) -> String {
        let refusal = self.refusals.explain(shape.key.job);
        match (&shape.stuck, refusal) {
            (Some(stuck), Some(refusal)) => format!("{stuck}; {refusal}"),
            (Some(stuck), None) => stuck.clone(),
            (None, Some(refusal)) => refusal,
            (None, None) => "all workers are busy".to_owned(),
        }
    }

    /// How many tasks are in queues.
    #[must_use]
    pub fn queued_count(&self) -> usize {
        self.shapes.iter().map(|(_, shape)| shape.len()).sum()
    }

    pub(super) fn shape_of(&mut self, class: &Arc<TaskClass>) -> Slot<Shape> {
        let key = ShapeKey {
            job: class.job,
            resources: class.resources.clone(),
            priority: class.priority,
            placement: class.placement.clone(),
            max_calls: class.max_calls,
        };
        if let Some(known) = self.shape_by_key.get(&key) {
            return *known;
        }
        let shape = self.shapes.insert(Shape {
            key: key.clone(),
            sample: class.clone(),
            queue: Queue::default(),
            near: BTreeMap::new(),
            tombstones: 0,
            leases: Vec::new(),
            run_ns: 0,
            stuck: None,
        });
        self.shape_by_key.insert(key, shape);
        shape
    }

    pub(super) fn job_of_shape(&self, shape: Slot<Shape>) -> Option<JobId> {
        self.shapes.get(shape).map(Shape::job)
    }

    /// Lets go of a shape that no task, class or lease has any more.
    pub(super) fn forget_shape(&mut self, shape: Slot<Shape>) {
        self.dirty.remove(&shape);
        if let Some(gone) = self.shapes.remove(shape) {
            assert!(gone.len() == 0 && gone.leases.is_empty(), "a shape is forgotten that is in use");
            self.shape_by_key.remove(&gone.key);
        }
    }

    pub(super) fn enqueue(&mut self, slot: Slot<Task>) {
        self.queue_with(slot, VecDeque::push_back, Queue::push_back);
    }

    /// Puts a task first that waited for large arguments: the sooner it runs, the sooner they can go.
    pub(super) fn enqueue_soon(&mut self, slot: Slot<Task>) {
        self.queue_with(slot, VecDeque::push_front, Queue::push_front);
    }

    fn queue_with(
        &mut self,
        slot: Slot<Task>,
        push_near: fn(&mut VecDeque<Slot<Task>>, Slot<Task>),
        push: fn(&mut Queue, u16, Slot<Task>),
    ) {
        let near = self.near(slot);
        let Some((shape, depth)) = self.set_queued(slot) else { return };
        let queues = &mut self.shapes[shape];
        match near {
            Some(node) => push_near(queues.near.entry(node).or_default(), slot),
            None => push(&mut queues.queue, depth, slot),
        }
    }

    pub(super) fn enqueue_first(&mut self, slot: Slot<Task>) {
        if let Some((shape, depth)) = self.set_queued(slot) {
            self.shapes[shape].queue.push_front(depth, slot);
        }
    }

    /// Tasks that would rather have run on a node go to the common queue.
    fn forget_near(&mut self, shape_index: Slot<Shape>, node: NodeId) {
        let shape = &mut self.shapes[shape_index];
        for slot in shape.near.remove(&node).unwrap_or_default() {
            let depth = self.tasks.get(slot).map_or(0, |task| task.depth);
            shape.queue.push_back(depth, slot);
        }
    }

    /// An attempt ended: its lease has room again.
    pub(super) fn lease_done(&mut self, now: Now, lease: LeaseId, slot: Slot<Task>, run_ns: u64) {
        let Some(used) = self.leases.get_mut(&lease) else { return };
        let first = used.in_flight.front() == Some(&slot);
        if !used.take_out(slot) {
            return;
        }
        // One that was cancelled behind a blocked task says nothing of that.
        used.paused &= !first;
        used.active_at = now;
        self.dirty.insert(used.shape);
        let shape = &mut self.shapes[used.shape];
        let run_ns = run_ns.max(1);
        // Quick to believe that tasks are long, slow to believe that they are short.
        shape.run_ns = if run_ns > shape.run_ns {
            run_ns.midpoint(shape.run_ns)
        } else {
            (shape.run_ns * 7 + run_ns) / 8
        };
    }

    /// A sent task is not with its lease any more.
    pub(super) fn lease_unsent(&mut self, lease: LeaseId, slot: Slot<Task>) {
        if let Some(used) = self.leases.get_mut(&lease)
            && used.take_out(slot)
        {
            self.dirty.insert(used.shape);
        }
    }

    pub(super) fn check_schedule(&self) {
        let mut places = std::collections::HashMap::new();
        for (_, shape) in self.shapes.iter() {
            let queued = shape.queue.iter().chain(shape.near.values().flatten());
            let tombstones =
                queued.filter(|slot| self.tasks.get(**slot).is_some_and(|t| t.state == TaskState::Tombstone));
            assert_eq!(tombstones.count(), shape.tombstones, "ended tasks in queues are miscounted");
            for slot in shape.queue.iter().chain(shape.near.values().flatten()) {
                assert!(places.insert(*slot, TaskState::Queued).is_none(), "{slot:?} is queued twice");
            }
            for lease in &shape.leases {
                let used = &self.leases[lease];
                for slot in &used.in_flight {
                    let sent = TaskState::Sent { lease: *lease };
                    assert!(places.insert(*slot, sent).is_none(), "{slot:?} is in two places");
                }
            }
        }
        for (slot, task) in self.tasks.iter() {
            let place = places.remove(&slot);
            match task.state {
                TaskState::Waiting { missing } => {
                    assert!(place.is_none() && missing > 0, "task {} waits for nothing", task.id);
                }
                TaskState::Tombstone => assert_eq!(place, Some(TaskState::Queued)),
                TaskState::Kept { .. } => {
                    assert!(place.is_none(), "task {} has ended and is queued", task.id)
                }
                state => assert_eq!(place, Some(state), "task {} is not where it says", task.id),
            }
        }
        assert!(places.is_empty(), "finished tasks stand in queues");
    }

    /// Marks a task as queued: its shape and depth.
    fn set_queued(&mut self, slot: Slot<Task>) -> Option<(Slot<Shape>, u16)> {
        let task = self.tasks.get_mut(slot)?;
        task.state = TaskState::Queued;
        let (class, depth) = (task.class, task.depth);
        let shape = self.classes.get(class)?.shape;
        self.dirty.insert(shape);
        Some((shape, depth))
    }

    /// The node that has most of a task's arguments, if it is another one and worth going there. It is this
    /// one if leases elsewhere would otherwise take the task away from its arguments.
    fn near(&self, slot: Slot<Task>) -> Option<NodeId> {
        let inputs = self.tasks.get(slot)?.inputs.as_ref()?;
        let mut bytes: BTreeMap<NodeId, u64> = BTreeMap::new();
        for (_, object) in &inputs.dependencies {
            let object = &self.references[*object];
            if let Some(Value::Stored { len }) = object.value() {
                object.copies().iter().for_each(|node| *bytes.entry(*node).or_default() += len);
            }
        }
        let (most, node) = bytes.iter().map(|(node, n)| (*n, *node)).max()?;
        let is_mine = node == self.me;
        let rival = bytes.iter().filter(|(n, _)| if is_mine { **n != node } else { **n == self.me });
        let rival = rival.map(|(_, n)| *n).max().unwrap_or(0);
        let is_worth_it = most >= rival + NEAR_BYTES_MIN;
        let may_leave = || self.leases.values().any(|lease| lease.node != self.me);
        (is_worth_it && (!is_mine || may_leave())).then_some(node)
    }

    /// Notes that a task ended in its queue.
    pub(super) fn add_tombstone(&mut self, slot: Slot<Task>) {
        let class = self.tasks.get(slot).and_then(|t| self.classes.get(t.class));
        if let Some(shape) = class.map(|c| c.shape) {
            self.shapes[shape].tombstones += 1;
            self.dirty.insert(shape);
        }
    }

    /// Forgets a task that ended in its queue, if this is one, as its turn comes.
    fn drop_tombstone(&mut self, shape_index: Slot<Shape>, slot: Slot<Task>) -> bool {
        let tombstone = self.tasks.get(slot).is_some_and(|t| t.state == TaskState::Tombstone);
        if tombstone {
            self.tasks.remove(slot);
            self.shapes[shape_index].tombstones -= 1;
        }
        tombstone
    }

    /// Takes ended tasks out of queues once they are half of them, so that nothing is asked for on their
    /// behalf.
    fn sweep(&mut self, shape_index: Slot<Shape>) {
        let shape = &mut self.shapes[shape_index];
        if shape.tombstones == 0 || shape.tombstones * 2 < shape.len() {
            return;
        }
        let tasks = &mut self.tasks;
        let mut lives = |slot: &Slot<Task>| {
            let tombstone = tasks.get(*slot).is_some_and(|t| t.state == TaskState::Tombstone);
            if tombstone {
                tasks.remove(*slot);
            }
            !tombstone
        };
        shape.queue.retain(&mut lives);
        shape.near.values_mut().for_each(|queue| queue.retain(&mut lives));
        shape.near.retain(|_, queue| !queue.is_empty());
        shape.tombstones = 0;
        shape.queue.shrink();
    }

    fn send_tasks(&mut self, now: Now, shape_index: Slot<Shape>, out: &mut Vec<Effect>) {
        let shape = &mut self.shapes[shape_index];
        if shape.len() == 0 {
            return;
        }
        let usable = |l: &LeaseUse| l.granted && !l.recalled && !l.paused;
        let ready: Vec<_> =
            shape.leases.iter().copied().filter(|id| self.leases.get(id).is_some_and(usable)).collect();
        if ready.is_empty() {
            return;
        }
        let in_flight: usize =
            ready.iter().filter_map(|id| self.leases.get(id)).map(|l| l.in_flight.len()).sum();
        let share = (shape.len() + in_flight).div_ceil(ready.len());
        let depth = shape.depth().min(share);
        for lease in ready {
            let Some(used) = self.leases.get_mut(&lease) else { continue };
            while used.in_flight.len() < depth {
                let Some(slot) = shape.next_for(used.node, now) else { break };
                let Some(task) = self.tasks.get_mut(slot) else { continue };
                if task.retries_left == 0 && used.node != self.me && !used.in_flight.is_empty() {
                    // Were that node to die, nobody could tell whether this task had started.
                    shape.queue.push_front(task.depth, slot);
                    break;
                }
                if task.state == TaskState::Tombstone {
                    self.tasks.remove(slot);
                    shape.tombstones -= 1;
                    continue;
                }
                task.state = TaskState::Sent { lease };
                used.in_flight.push_back(slot);
                used.active_at = now;
                out.push(Effect::Start { to: used.node, lease, task: slot });
            }
        }
        shape.queue.shrink();
    }

    /// Idle leases go back when they have been idle for long or the node wants them, unneeded requests at
    /// once.
    fn return_leases(&mut self, now: Now, shape_index: Slot<Shape>, out: &mut Vec<Effect>) {
        let shape = &self.shapes[shape_index];
        let over = |l: &LeaseUse| {
            let idle = l.in_flight.is_empty();
            let unneeded = !shape.has_for(l.node);
            let expired = unneeded && l.active_at + LEASE_IDLE_MS * MS <= now;
            idle && if l.granted { l.recalled || expired } else { unneeded }
        };
        let ended: Vec<_> =
            shape.leases.iter().copied().filter(|id| self.leases.get(id).is_some_and(over)).collect();
        for lease in ended {
            if let Some(used) = self.remove_lease(lease) {
                out.push(Effect::ReturnLease { to: used.node, lease });
            }
        }
    }

    fn fail_queue(&mut self, shape_index: Slot<Shape>, failure: &Failure, out: &mut Vec<Effect>) {
        for slot in self.shapes[shape_index].queue.take() {
            if self.drop_tombstone(shape_index, slot) {
                continue;
            }
            let Some(task) = self.tasks.get_mut(slot) else { continue };
            task.state = TaskState::Waiting { missing: 0 };
            let failure = self.located_failure(slot, failure, self.me);
            self.fail(slot, &failure, out);
        }
    }

    fn remove_lease(&mut self, lease: LeaseId) -> Option<LeaseUse> {
        let used = self.leases.remove(&lease)?;
        let shape = &mut self.shapes[used.shape];
        shape.leases.retain(|l| *l != lease);
        self.dirty.insert(used.shape);
        Some(used)
    }
}

impl LeaseUse {
    /// Forgets a sent task; false if it is none.
    fn take_out(&mut self, slot: Slot<Task>) -> bool {
        let at = self.in_flight.iter().position(|s| *s == slot);
        at.and_then(|at| self.in_flight.remove(at)).is_some()
    }

    fn next_timeout(&self) -> Option<Now> {
        match self.in_flight.len() {
            0 if self.granted => Some(self.active_at + LEASE_IDLE_MS * MS),
            0 | 1 => None,
            _ if self.paused => None,
            _ => Some(self.active_at + STEAL_AFTER),
        }
    }
}

impl Shape {
    pub(super) fn job(&self) -> JobId {
        self.key.job
    }

    fn len(&self) -> usize {
        self.queue.len() + self.near.values().map(VecDeque::len).sum::<usize>()
    }

    /// Tasks one lease may have at a time: as many as keep its worker busy until more can come. Where
    /// processors are busy with other tasks that may be a while, so a second one is sent unless it could
    /// stand there until it is taken back.
    fn depth(&self) -> usize {
        let ahead = PIPELINE_AHEAD_NS.checked_div(self.run_ns).map_or(1, |n| n as usize + 1);
        let is_brief = 0 < self.run_ns && self.run_ns < STEAL_AFTER / 2;
        let depth = ahead.max(1 + usize::from(is_brief)).min(PIPELINE_DEPTH_MAX);
        match self.key.max_calls {
            0 => depth,
            _ => 1,
        }
    }

    fn has_for(&self, node: NodeId) -> bool {
        !self.queue.is_empty() || self.near.contains_key(&node)
    }

    fn next_for(&mut self, node: NodeId, now: Now) -> Option<Slot<Task>> {
        if let Some(near) = self.near.get_mut(&node) {
            let next = near.pop_front();
            if near.is_empty() {
                self.near.remove(&node);
            }
            if next.is_some() {
                return next;
            }
        }
        self.queue.pop(now)
    }
}
