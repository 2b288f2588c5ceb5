//! Schedule: queues by shape, leases, and the choice of the next task.
//!
//! Tasks that need the same resources in the same way (a *shape*) share a queue and leases. A lease holds one
//! worker. As many tasks are sent ahead to it as keep it busy for a moment, judged by the run times of
//! earlier tasks of the shape. Tasks whose arguments lie on another node stand in a queue of that node and
//! move to the common queue if there is no room there, or if the node falls behind.
//!
//! This machine owns shapes, queues and leases. Tasks are named by their slots. Their depths and states are
//! read from [`Tasks`], which is passed in. This machine also makes the transitions that go with the queues:
//! `queued_to_sent` and `tombstone_to_gone`.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | shapes, and the round of one: tasks to leases |
//! | `shape.rs` | one shape: its queues and the run time of its tasks |
//! | `queue.rs` | one queue, the most deeply nested first |
//! | `line.rs` | tasks of one depth, by priority |
//! | `leases.rs` | leases, and the tasks that were sent under them |
//! | `requests.rs` | asking nodes for leases |
//! | `behind.rs` | nodes that fall behind, and the tasks that leave their queues |
//! | `inside.rs` | leases inside placement groups |
//! | `passed.rs` | nodes that are passed over, as they do not reach an argument |
//! | `quotas.rs` | what a job may ask for |
//! | `refusals.rs` | nodes on which workers of a job do not start |
//! | `waits.rs` | requests that wait at nodes |

mod behind;
mod inside;
mod leases;
mod line;
mod passed;
mod queue;
mod quotas;
mod refusals;
mod requests;
mod shape;
mod waits;

pub(super) use line::{End, Turn};
pub(super) use shape::Passed;
pub use shape::Shape;

use super::groups::KnownGroups;
use super::tasks::{TaskState, Tasks};
use super::{Effect, Task};
use crate::journal::{About, Entry, Fact, Journal};
use crate::place::View;
use crate::slab::{Slab, Slot};
use crate::{MS, Now};
use leases::{LeaseUse, Timers};
use refusals::Refusals;
use shape::ShapeKey;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{Failure, JobId, JobQuota, LeaseId, NodeId, Placement, Resources, TaskClass, TaskId};
use waits::Waits;

/// Tasks are taken back when they have stood this long behind a task that does not end.
const STEAL_AFTER: Now = 5 * MS;
/// Shapes that are looked at in turn at one time.
const LOOKS_MAX: usize = 256;
/// Maximum number of leases that are told one by one.
const LEASES_TOLD_MAX: usize = 8;

/// Queues and leases of one node's ledger.
#[derive(Debug)]
pub(super) struct Schedule {
    me: NodeId,
    shapes: Slab<Shape>,
    shape_by_key: IdMap<ShapeKey, Slot<Shape>>,
    /// The shapes of tasks inside each placement group.
    inside: IdMap<TaskId, Vec<Slot<Shape>>>,
    leases: IdMap<LeaseId, LeaseUse>,
    timers: Timers,
    waits: Waits,
    /// Number of leases on other nodes.
    abroad: usize,
    next_lease: u64,
    /// Shapes whose queues or leases changed since the last look.
    dirty: BTreeSet<Slot<Shape>>,
    /// Shapes that had tasks or leases at the end of their last round. What has changed since is dirty.
    busy: BTreeSet<Slot<Shape>>,
    /// The number of the next shape that is looked at in turn as time passes.
    looked_to: u32,
    /// The job, by its place among those with dirty shapes, that came first in the last round.
    turn: usize,
    refusals: Refusals,
    /// When to look for nodes that have fallen behind, if tasks are queued near any.
    look_at: Option<Now>,
    /// When to look again at shapes without resources that have many leases.
    look_at_crowded: Option<Now>,
    /// Quotas of jobs.
    quotas: IdMap<JobId, Arc<JobQuota>>,
    journal: Journal,
}

/// Work that waits, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Name of a task of the shape.
    pub name: String,
    /// The resources that each task needs.
    pub resources: Resources,
    /// Number of tasks in the queues of the shape.
    pub count: usize,
    /// The reason why they wait.
    pub reason: String,
    /// One of them, if any is still wanted.
    pub task: Option<TaskId>,
}

/// Shapes.
impl Schedule {
    pub(super) fn new(me: NodeId) -> Self {
        Self {
            me,
            shapes: Slab::default(),
            shape_by_key: IdMap::default(),
            inside: IdMap::default(),
            leases: IdMap::default(),
            timers: Timers::default(),
            waits: Waits::default(),
            abroad: 0,
            next_lease: 0,
            dirty: BTreeSet::new(),
            busy: BTreeSet::new(),
            looked_to: 0,
            turn: 0,
            refusals: Refusals::default(),
            look_at: None,
            look_at_crowded: None,
            quotas: IdMap::default(),
            journal: Journal::default(),
        }
    }

    /// Sets the time at which the changes that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.journal.tell_time(now);
    }

    /// The remembered history of the leases of a shape.
    pub(super) fn past(&self, shape: Slot<Shape>) -> impl Iterator<Item = Entry> {
        self.journal.about(self.about(shape))
    }

    /// The reason why tasks of a shape are queued, and the states of its leases, in words.
    pub(super) fn describe(&self, slot: Slot<Shape>) -> Vec<String> {
        let shape = &self.shapes[slot];
        let (count, resources) = (shape.len(), &shape.key.resources);
        let mut lines =
            vec![format!("tasks queued that need {resources}: {count}; {}", self.why_pending(shape))];
        for id in shape.leases.iter().take(LEASES_TOLD_MAX) {
            let used = &self.leases[id];
            let how = match used {
                LeaseUse { request: Some(_), .. } => "asked for, not granted".to_owned(),
                LeaseUse { recalled: true, in_flight, .. } => {
                    format!("wanted back, tasks sent under it: {}", in_flight.len())
                }
                LeaseUse { paused: true, in_flight, .. } => {
                    format!(
                        "its task waits for others or takes long, tasks sent under it: {}",
                        in_flight.len()
                    )
                }
                LeaseUse { in_flight, .. } => format!("granted, tasks sent under it: {}", in_flight.len()),
            };
            lines.push(format!("lease {} on node {}: {how}", id.0, used.node));
        }
        let untold = shape.leases.len().saturating_sub(LEASES_TOLD_MAX);
        if 0 < untold {
            lines.push(format!("and {untold} more leases"));
        }
        if 0 < shape.settled {
            lines.push(format!("leases of living actors: {}", shape.settled));
        }
        lines
    }

    /// The resources that each task of a shape needs.
    pub(super) fn resources(&self, shape: Slot<Shape>) -> &Resources {
        &self.shapes[shape].key.resources
    }

    fn about(&self, shape: Slot<Shape>) -> About {
        About::Shape(self.shapes[shape].key.job, shape.number())
    }

    /// Notes a fact about a lease of a shape.
    fn note(&mut self, shape: Slot<Shape>, fact: Fact) {
        self.journal.note(self.about(shape), fact);
    }

    /// The shape of a class.
    pub(super) fn shape_of(&mut self, class: &Arc<TaskClass>) -> Slot<Shape> {
        let key = ShapeKey::of(class);
        if let Some(known) = self.shape_by_key.get(&key) {
            return *known;
        }
        let shape = self.shapes.insert(Shape::new(key.clone(), class.clone()));
        if let Placement::Group { group, .. } = key.placement {
            self.inside.entry(group).or_default().push(shape);
        }
        self.shape_by_key.insert(key, shape);
        shape
    }

    /// Jobs that have leases.
    pub(super) fn leased_jobs(&self) -> impl Iterator<Item = JobId> {
        self.leases.values().map(|used| self.shapes[used.shape].key.job)
    }

    /// Forgets the shapes of jobs that have no task, class or lease any more.
    pub(super) fn forget_jobs(&mut self, is_over: impl Fn(JobId) -> bool) {
        let shapes = self.shapes.iter().filter(|(_, shape)| is_over(shape.key.job));
        for slot in shapes.map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.forget_shape(slot);
        }
    }

    /// Forgets shapes that are not of any class, and have no task and no lease.
    pub(super) fn forget_unused(&mut self, used: &BTreeSet<Slot<Shape>>) {
        let is_unused = |(slot, shape): &(Slot<Shape>, &Shape)| {
            !used.contains(slot) && !shape.is_busy() && shape.settled == 0
        };
        for slot in self.shapes.iter().filter(is_unused).map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.forget_shape(slot);
        }
    }

    /// Number of shapes.
    #[cfg(test)]
    pub(super) fn shape_count(&self) -> usize {
        self.shapes.len()
    }

    fn forget_shape(&mut self, slot: Slot<Shape>) {
        self.dirty.remove(&slot);
        self.busy.remove(&slot);
        let gone = self.shapes.take(slot);
        assert!(!gone.is_busy() && gone.settled == 0, "a shape is forgotten that is in use");
        if let Some(group) = gone.group()
            && let Some(shapes) = self.inside.get_mut(&group)
        {
            shapes.retain(|shape| *shape != slot);
            if shapes.is_empty() {
                self.inside.remove(&group);
            }
        }
        self.shape_by_key.remove(&gone.key);
    }

    /// A job has ended.
    pub(super) fn job_ended(&mut self, job: JobId) {
        self.refusals.job_ended(job);
        self.quotas.remove(&job);
    }

    /// A node is gone: tasks that stand in its queues go to the common queues.
    pub(super) fn node_gone(&mut self, node: NodeId, tasks: &Tasks) {
        for slot in self.known_busy().collect::<Vec<_>>() {
            self.shapes[slot].forget_near(node, tasks);
        }
        self.refusals.node_gone(node);
    }

    /// Work that waits for leases, and the reasons.
    pub(super) fn pending(&self, tasks: &Tasks) -> Vec<Pending> {
        let waiting = self.known_busy().map(|slot| &self.shapes[slot]).filter(|s| s.len() > 0);
        let is_wanted = |task: &&Task| task.state() != TaskState::Tombstone;
        waiting
            .map(|s| {
                let one = s.queued().find(|slot| is_wanted(&&tasks[*slot]));
                let name = one.and_then(|slot| tasks.name(slot)).map_or(s.sample.name.as_str(), |name| name);
                Pending {
                    name: name.to_owned(),
                    resources: s.key.resources.clone(),
                    count: s.len(),
                    reason: self.why_pending(s),
                    task: one.map(|slot| tasks[slot].id()),
                }
            })
            .collect()
    }

    fn why_pending(&self, shape: &Shape) -> String {
        if let Some(terms) = self.shape_by_key.get(&shape.key).and_then(|slot| self.used_up(*slot)) {
            return format!("the quota of the job, {}, is in use", terms.quota);
        }
        let refusal = self.refusals.explain(shape.key.job);
        match (&shape.stuck, refusal) {
            (Some(stuck), Some(refusal)) => format!("{stuck}; {refusal}"),
            (Some(stuck), None) => stuck.clone(),
            (None, Some(refusal)) => refusal,
            (None, None) => "all workers are busy".to_owned(),
        }
    }

    /// Number of tasks in queues.
    pub(super) fn queued_count(&self) -> usize {
        self.known_busy().map(|slot| self.shapes[slot].len()).sum()
    }

    /// All shapes that have tasks or leases, and perhaps others, in order.
    fn known_busy(&self) -> impl Iterator<Item = Slot<Shape>> {
        self.busy.union(&self.dirty).copied()
    }
}

/// Queues.
impl Schedule {
    /// Puts a queued task into the queue of a node, or into the common one.
    pub(super) fn push(&mut self, shape: Slot<Shape>, near: Option<NodeId>, turn: Turn, slot: Slot<Task>) {
        self.dirty.insert(shape);
        self.shapes[shape].push(near, turn, slot);
    }

    /// A task ended in its queue.
    pub(super) fn add_tombstone(&mut self, shape: Slot<Shape>) {
        self.shapes[shape].tombstones += 1;
        self.dirty.insert(shape);
    }

    /// Takes all tasks that are not tombstones out of the common queue of a shape.
    pub(super) fn take_queue(&mut self, shape: Slot<Shape>, tasks: &mut Tasks) -> Vec<Slot<Task>> {
        let shape = &mut self.shapes[shape];
        let mut taken = shape.queue.take();
        taken.retain(|slot| {
            let is_tombstone = tasks.tombstone_to_gone(*slot);
            if is_tombstone {
                shape.tombstone_left();
            }
            !is_tombstone
        });
        taken
    }

    /// Marks every shape that has tasks or leases as dirty, because the cluster has changed.
    pub(super) fn dirty_all(&mut self) {
        self.dirty.extend(&self.busy);
    }

    /// Marks the shapes that have tasks or leases as dirty, because other nodes have more room or less.
    /// Leases inside groups are asked of the nodes that have the bundles, however much room there is.
    pub(super) fn room_changed(&mut self) {
        let shapes = &self.shapes;
        self.dirty.extend(self.busy.iter().filter(|slot| !shapes[**slot].is_inside()));
    }

    /// Marks the shapes of tasks inside a group as dirty, because its bundles are elsewhere.
    pub(super) fn dirty_inside(&mut self, group: TaskId) {
        self.dirty.extend(self.inside.get(&group).into_iter().flatten());
    }

    /// Marks shapes that have tasks or leases as dirty, because time has passed: all of them, or if there are
    /// many, the next ones. What has a time of its own is marked at that time.
    pub(super) fn dirty_in_turn(&mut self) {
        let next = self.busy.range(Slot::from_number(self.looked_to)..).chain(&self.busy);
        let next: Vec<_> = next.take(LOOKS_MAX).copied().collect();
        self.looked_to = next.last().map_or(0, |last| last.number() + 1);
        self.dirty.extend(next);
    }

    /// Whether there is a shape to look at.
    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The shapes to look at, the most urgent of a job first. Jobs take turns: what one calls urgent says
    /// nothing about another.
    pub(super) fn take_dirty(&mut self) -> Vec<Slot<Shape>> {
        let mut dirty: Vec<_> = std::mem::take(&mut self.dirty).into_iter().collect();
        if 1 < dirty.len() {
            let job = |shape: &Slot<Shape>| self.shapes[*shape].key.job;
            let mut jobs: Vec<_> = dirty.iter().map(job).collect();
            jobs.sort_unstable();
            jobs.dedup();
            self.turn = (self.turn + 1) % jobs.len();
            jobs.rotate_left(self.turn);
            let turns: BTreeMap<_, _> = jobs.into_iter().enumerate().map(|(turn, job)| (job, turn)).collect();
            dirty.sort_by_cached_key(|shape| {
                (turns.get(&job(shape)), Reverse(self.shapes[*shape].urgency_at(0)))
            });
        }
        dirty
    }

    /// Sends tasks of a shape to its leases and asks for more leases if tasks are left. Returns an error if
    /// the tasks can never run.
    pub(super) fn round(
        &mut self,
        now: Now,
        shape: Slot<Shape>,
        tasks: &mut Tasks,
        groups: &KnownGroups,
        view: &mut View,
        out: &mut Vec<Effect>,
    ) -> Result<(), Box<Failure>> {
        self.shapes[shape].sweep(tasks);
        self.pass_on(now, shape, tasks, view, out);
        self.send_tasks(now, shape, tasks, out);
        self.return_leases(now, shape, out);
        self.make_way(now, shape, view, out);
        let asked = self.request_leases(now, shape, tasks, groups, view, out);
        let is_busy = self.shapes[shape].is_busy();
        if std::mem::replace(&mut self.shapes[shape].was_busy, is_busy) != is_busy {
            if is_busy {
                self.busy.insert(shape);
            } else {
                self.busy.remove(&shape);
            }
        }
        asked
    }

    fn send_tasks(&mut self, now: Now, shape: Slot<Shape>, tasks: &mut Tasks, out: &mut Vec<Effect>) {
        let shape = &mut self.shapes[shape];
        if shape.len() == 0 {
            return;
        }
        let ready: Vec<_> = shape.leases.iter().copied().filter(|id| self.leases[id].is_usable()).collect();
        if ready.is_empty() {
            return;
        }
        let in_flight: usize = ready.iter().map(|id| self.leases[id].in_flight.len()).sum();
        let share = (shape.len() + in_flight).div_ceil(ready.len());
        let depth = shape.depth().min(share);
        for lease in ready {
            let used = leases::used_mut(&mut self.leases, lease);
            while used.in_flight.len() < depth {
                let Some((slot, passed)) = shape.next_for(used.node, now) else { break };
                let task = &tasks[slot];
                if !task.has_retries() && used.node != self.me && !used.in_flight.is_empty() {
                    // If that node died, this task might have started or not, and it has no retry.
                    shape.push_besides(passed, Turn::of(task, End::Front), slot);
                    break;
                }
                if tasks.tombstone_to_gone(slot) {
                    shape.tombstone_left();
                    continue;
                }
                tasks.queued_to_sent(slot, lease);
                used.in_flight.push_back(slot);
                used.active_at = now;
                out.push(Effect::Start { to: used.node, lease, task: slot });
            }
            self.timers.set(lease, used);
        }
        shape.queue.shrink();
    }

    /// Sizes of tables that must be empty once there are no references.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 2] {
        [("queued tasks", self.queued_count()), ("leases held", self.leased_count())]
    }

    /// Whether there is such a shape.
    pub(super) fn has_shape(&self, shape: Slot<Shape>) -> bool {
        self.shapes.get(shape).is_some()
    }

    /// Asserts that each task stands only in the place of its state, and that leases and shapes agree.
    pub(super) fn check(&self, tasks: &Tasks) {
        let mut places = tharsis_types::hash::IdMap::default();
        let mut leases = 0;
        for (slot, shape) in self.shapes.iter() {
            assert_eq!(self.shape_by_key.get(&shape.key), Some(&slot), "a shape is filed wrongly");
            shape.check();
            assert_eq!(shape.was_busy, self.busy.contains(&slot), "a busy shape is misfiled");
            let is_known = self.busy.contains(&slot) || self.dirty.contains(&slot);
            assert!(is_known || !shape.is_busy(), "a shape is busy and was not looked at");
            let of_group = shape.group().and_then(|group| self.inside.get(&group));
            assert!(!shape.is_inside() || of_group.is_some_and(|shapes| shapes.contains(&slot)));
            let is_tombstone = |slot: &Slot<Task>| tasks[*slot].state() == TaskState::Tombstone;
            let tombstones = shape.queued().filter(is_tombstone).count();
            assert_eq!(tombstones, shape.tombstones, "ended tasks in queues are miscounted");
            for slot in shape.queued() {
                assert!(places.insert(slot, TaskState::Queued).is_none(), "{slot:?} is queued twice");
            }
            for lease in &shape.leases {
                let used = &self.leases[lease];
                assert!(used.shape == slot && !used.is_settled, "a lease is with two shapes");
            }
            let settled = self.leases.values().filter(|used| used.is_settled && used.shape == slot);
            assert_eq!(settled.count(), shape.settled, "leases of actors are miscounted");
            leases += shape.leases.len() + shape.settled;
        }
        for (lease, used) in &self.leases {
            used.check();
            for slot in &used.in_flight {
                let sent = TaskState::Sent { lease: *lease };
                assert!(places.insert(*slot, sent).is_none(), "{slot:?} is in two places");
            }
        }
        self.timers.check(&self.leases);
        let waits =
            |used: &LeaseUse| Some((used.node, used.request.filter(|request| request.waits)?.urgency));
        self.waits.check(|lease| self.leases.get(&lease).and_then(waits));
        let abroad = self.leases.values().filter(|used| used.node != self.me).count();
        assert_eq!(abroad, self.abroad, "leases on other nodes are miscounted");
        assert_eq!(leases, self.leases.len(), "a lease without a shape");
        assert_eq!(self.shape_by_key.len(), self.shapes.len(), "a key without a shape");
        // Calls of actors stand in lines of their own, and calls that make placement groups never run.
        for (slot, task) in tasks.iter().filter(|(_, task)| !task.is_call() && !task.is_group()) {
            let (id, place) = (task.id(), places.remove(&slot));
            match task.state() {
                TaskState::Waiting { missing } => {
                    let is_paused = tasks.pauses.until(slot).is_some();
                    assert!(place.is_none() && (missing > 0) != is_paused, "task {id} waits for nothing");
                }
                TaskState::Tombstone => assert_eq!(place, Some(TaskState::Queued), "{id} stands nowhere"),
                TaskState::Kept { .. } => assert!(place.is_none(), "task {id} has ended and is queued"),
                state => assert_eq!(place, Some(state), "task {id} is not where it says"),
            }
        }
        assert!(places.is_empty(), "finished tasks stand in queues");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_for_each_of_many_shapes_in_turn_and_for_few_at_once() {
        for shapes in [10, LOOKS_MAX, 4 * LOOKS_MAX + 7] {
            let mut schedule = Schedule::new(NodeId(1));
            for memory in 0..shapes as u64 {
                let resources = Resources { memory, ..Resources::default() };
                let class = TaskClass { resources, ..(*crate::testing::class(1)).clone() };
                let shape = schedule.shape_of(&Arc::new(class));
                let turn = Turn { depth: 0, priority: 0, end: End::Back };
                schedule.push(shape, None, turn, Slot::from_number(0));
                schedule.busy.insert(shape);
            }
            schedule.take_dirty();
            let mut seen = BTreeSet::new();
            for _ in 0..shapes.div_ceil(LOOKS_MAX) {
                schedule.dirty_in_turn();
                let looked_at = schedule.take_dirty();
                assert_eq!(looked_at.len(), shapes.min(LOOKS_MAX));
                seen.extend(looked_at);
            }
            assert_eq!(seen.len(), shapes, "each was looked at");
        }
    }
}
