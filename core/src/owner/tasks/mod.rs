//! Tasks: their arguments, outputs and states.
//!
//! This machine owns the tasks. It knows objects only by their slots. `state.rs` has all transitions between
//! states. A method that ends a task returns its references, which the caller must drop.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | entries: submission, attempts, retries |
//! | `by_job.rs` | the tasks of each job |
//! | `comebacks.rs` | attempts that came back because nodes do not reach their arguments |
//! | `state.rs` | states, and the transitions between them |
//! | `deadlines.rs` | deadlines of unfinished tasks |
//! | `lineage.rs` | tasks that have ended and are kept, to compute their outputs again |
//! | `pauses.rs` | pauses before the next attempts of tasks that have failed |

mod by_job;
mod comebacks;
mod deadlines;
mod lineage;
mod pauses;
mod state;

pub use lineage::LineageUsage;
pub(super) use state::TaskState;

use super::graphs::Member;
use super::{Class, Object};
use crate::journal::{About, Entry, Fact, Journal};
use crate::slab::{COPIED_IN_PLACE_BYTES, Slab, Slot};
use crate::{MS, Now};
use by_job::ByJob;
use comebacks::Comebacks;
use deadlines::Deadlines;
use lineage::Lineage;
use pauses::Pauses;
use std::ops::Index;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{Attempt, Dependency, JobId, LeaseId, ObjectId, RefId, SmallBytes, TaskId};

/// Slots of a task's outputs.
pub(super) type OutputSlots = smallvec::SmallVec<[Slot<Object>; 2]>;

/// The tasks of one node's ledger.
#[derive(Debug)]
pub(super) struct Tasks {
    entries: Slab<Task>,
    /// Unfinished tasks of each job.
    unfinished: IdMap<JobId, usize>,
    by_job: ByJob,
    lineage: Lineage,
    /// The ends of the times that unfinished tasks have from their callers.
    pub(super) deadlines: Deadlines,
    pub(super) pauses: Pauses,
    comebacks: Comebacks,
    /// Names of calls that have one of their own, unfinished or kept. A name is no property of a class: a
    /// program that gives each call its own would make a class of each.
    names: IdMap<Slot<Task>, Arc<str>>,
    journal: Journal,
}

/// One task of the ledger.
#[derive(Debug)]
pub struct Task {
    id: TaskId,
    class: Slot<Class>,
    state: TaskState,
    /// When it came into that state.
    since: Now,
    attempt: Attempt,
    /// Negative for a task that may run again any number of times.
    retries_left: i32,
    /// Time spent in the function by the last run, in nanoseconds.
    run_ns: u64,
    /// A client cancelled it: it is not started again.
    cancelled: bool,
    /// It is a call of an actor, in one of its lines.
    is_call: bool,
    /// It makes a placement group, and waits for as long as the group lives.
    is_group: bool,
    /// Depth: the number of tasks of this node in which it is nested.
    depth: u16,
    /// Its rank among the ready tasks of its shape and depth: higher ones start first.
    priority: i32,
    /// The step of a graph whose task it is, until it has ended.
    member: Option<Member>,
    payload: SmallBytes,
    inputs: Option<Box<Inputs>>,
    /// `None` for an output whose entry is gone, which only a kept task has.
    first_output: Option<Slot<Object>>,
    #[allow(clippy::box_collection, reason = "nearly all tasks have one output, and this takes a word")]
    more_outputs: Option<Box<Vec<Option<Slot<Object>>>>>,
}

const _: () = assert!(size_of::<Task>() <= COPIED_IN_PLACE_BYTES);

/// The references of a task; most tasks have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Inputs {
    pub(super) dependencies: Vec<(Dependency, Slot<Object>)>,
    pub(super) nested: Vec<Slot<Object>>,
}

/// A task as it is entered.
#[derive(Debug)]
pub(super) struct NewTask<'a> {
    pub(super) id: TaskId,
    pub(super) class: Slot<Class>,
    pub(super) retries: i32,
    pub(super) depth: u16,
    pub(super) priority: i32,
    pub(super) member: Option<Member>,
    pub(super) payload: SmallBytes,
    pub(super) outputs: &'a [Slot<Object>],
}

impl Inputs {
    /// The entries that it refers to, with those that it takes as arguments first.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot<Object>> {
        self.dependencies.iter().map(|(_, slot)| *slot).chain(self.nested.iter().copied())
    }
}

impl Index<Slot<Task>> for Tasks {
    type Output = Task;

    fn index(&self, slot: Slot<Task>) -> &Task {
        &self.entries[slot]
    }
}

impl Tasks {
    pub(super) fn new(lineage_bytes_max: usize) -> Self {
        let lineage = Lineage::new(lineage_bytes_max);
        Self {
            entries: Slab::default(),
            unfinished: IdMap::default(),
            by_job: ByJob::default(),
            lineage,
            deadlines: Deadlines::default(),
            pauses: Pauses::default(),
            comebacks: Comebacks::default(),
            names: IdMap::default(),
            journal: Journal::default(),
        }
    }

    /// Sets the time at which the transitions that follow happen.
    pub(super) fn tell_time(&mut self, now: Now) {
        self.journal.tell_time(now);
    }

    /// The remembered history of a task.
    pub(super) fn past(&self, task: TaskId) -> impl Iterator<Item = Entry> {
        self.journal.about(About::Task(task))
    }

    /// A task that may have ended; another task may have its slot.
    pub(super) fn get(&self, slot: Slot<Task>) -> Option<&Task> {
        self.entries.get(slot)
    }

    /// The task of a slot if it is still this attempt, sent under this lease.
    pub(super) fn is_sent(&self, slot: Slot<Task>, id: TaskId, lease: LeaseId, attempt: Attempt) -> bool {
        self.get(slot).is_some_and(|t| t.id == id && t.attempt == attempt && t.is_sent_under(lease))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot<Task>, &Task)> {
        self.entries.iter()
    }

    /// Number of all tasks.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tasks that are not kept: unfinished ones, and those that ended in a queue and still stand there.
    pub(super) fn count(&self) -> usize {
        self.entries.len() - self.lineage.len()
    }

    /// Tasks of a job that are not finished.
    pub(super) fn unfinished_of(&self, job: JobId) -> usize {
        self.unfinished.get(&job).copied().unwrap_or(0)
    }

    /// Tasks of a job: unfinished, kept, or tombstones.
    pub(super) fn of_job(&self, job: JobId) -> Vec<Slot<Task>> {
        self.walk_job(job).collect()
    }

    fn walk_job(&self, job: JobId) -> impl Iterator<Item = Slot<Task>> {
        let near = self.by_job.pages(job).flat_map(move |page| self.entries.page(page));
        near.filter(move |(_, task)| task.id.job() == job).map(|(slot, _)| slot)
    }

    /// The jobs that have tasks, and some that had any.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.by_job.jobs()
    }

    /// Whether there is any task of a job.
    pub(super) fn has_any_of(&self, job: JobId) -> bool {
        self.walk_job(job).next().is_some()
    }

    /// A job that has ended has no tasks left.
    pub(super) fn forget_job(&mut self, job: JobId) {
        self.by_job.forget(job);
    }

    /// Gives a new task a name of its own.
    pub(super) fn set_name(&mut self, slot: Slot<Task>, name: Arc<str>) {
        let before = self.names.insert(slot, name);
        assert!(before.is_none(), "{slot:?} has the name of another task");
    }

    /// The name that a task has of its own.
    pub(super) fn name(&self, slot: Slot<Task>) -> Option<&Arc<str>> {
        self.names.get(&slot)
    }

    /// Notes the references of a task that was entered without any.
    pub(super) fn set_inputs(&mut self, slot: Slot<Task>, inputs: Inputs, missing: u32) {
        let task = &mut self.entries[slot];
        assert!(task.inputs.is_none(), "{} has its references already", task.id);
        assert!(missing as usize <= inputs.dependencies.len(), "{} waits for more than it takes", task.id);
        task.state = TaskState::Waiting { missing };
        task.inputs = Some(Box::new(inputs));
        if 0 < missing {
            self.journal.note(About::Task(task.id), Fact::Waits(missing));
        }
    }

    /// Gives the constructor of a living actor another snapshot to continue from; returns the one before.
    pub(super) fn set_snapshot(
        &mut self,
        slot: Slot<Task>,
        snapshot: RefId,
        object: Slot<Object>,
    ) -> Option<Slot<Object>> {
        let task = &mut self.entries[slot];
        task.assert_sent();
        let new = (Dependency { reference: snapshot, parameter: Dependency::SNAPSHOT }, object);
        let dependencies = &mut task.inputs.get_or_insert_default().dependencies;
        match dependencies.iter_mut().find(|(known, _)| known.parameter == Dependency::SNAPSHOT) {
            Some(known) => Some(std::mem::replace(known, new).1),
            None => {
                dependencies.push(new);
                None
            }
        }
    }

    /// Notes the time spent in the function.
    pub(super) fn set_run_ns(&mut self, slot: Slot<Task>, run_ns: u64) {
        let task = &mut self.entries[slot];
        task.assert_sent();
        task.run_ns = run_ns;
    }

    /// Notes that a client cancelled a task that was sent.
    pub(super) fn set_cancelled(&mut self, slot: Slot<Task>) {
        let task = &mut self.entries[slot];
        task.assert_sent();
        task.cancelled = true;
        self.journal.note(About::Task(task.id), Fact::CancelWanted);
    }

    /// Notes that a task is that of another step.
    pub(super) fn set_member(&mut self, slot: Slot<Task>, member: Option<Member>) {
        self.entries[slot].member = member;
    }

    /// Notes that a task is a call of an actor.
    pub(super) fn set_call(&mut self, slot: Slot<Task>) {
        self.entries[slot].is_call = true;
    }

    /// Notes that a task makes a placement group.
    pub(super) fn set_group(&mut self, slot: Slot<Task>) {
        self.entries[slot].is_group = true;
    }

    /// The next run of a task is another attempt: this one may have been started.
    pub(super) fn next_attempt(&mut self, slot: Slot<Task>) {
        self.entries[slot].attempt += 1;
    }

    /// Takes one of a task's retries and begins its next attempt; false if there is none left.
    pub(super) fn take_retry(&mut self, slot: Slot<Task>) -> bool {
        let task = &mut self.entries[slot];
        if task.retries_left == 0 {
            return false;
        }
        task.retries_left -= i32::from(task.retries_left > 0);
        task.attempt += 1;
        self.journal.note(About::Task(task.id), Fact::TriedAgain(task.attempt));
        true
    }

    /// An attempt came back because a node does not reach an argument of it. Returns whether it did so first
    /// longer ago than its timeout.
    pub(super) fn has_come_back_for(&mut self, slot: Slot<Task>, timeout_ms: u64) -> bool {
        let now = self.journal.now();
        let first = self.comebacks.add(slot, self.entries[slot].attempt, now);
        first.saturating_add(timeout_ms.saturating_mul(MS)) <= now
    }

    /// Gives back some memory of entries that are gone; true if there is more.
    pub(super) fn trim(&mut self) -> bool {
        if self.entries.is_empty() {
            self.by_job = ByJob::default();
        }
        self.entries.trim(super::TRIM_PAGES)
    }

    /// Whether [`Tasks::trim`] would give anything back.
    pub(super) fn is_loose(&self) -> bool {
        self.entries.has_spare()
    }

    /// Sizes of tables that must be empty once there are no references.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 6] {
        [
            ("tasks", self.count()),
            ("kept tasks", self.lineage.len()),
            ("deadlines", self.deadlines.len()),
            ("failures of tasks", self.pauses.len()),
            ("tasks that came back", self.comebacks.len()),
            ("names of tasks", self.names.len()),
        ]
    }

    /// Uses of each object by unfinished tasks.
    pub(super) fn uses(&self) -> IdMap<Slot<Object>, u32> {
        let unfinished = self.entries.iter().map(|(_, task)| task).filter(|task| task.is_unfinished());
        count(unfinished.flat_map(Task::input_slots))
    }

    /// Uses of each object by tasks kept as lineage.
    pub(super) fn needs(&self) -> IdMap<Slot<Object>, u32> {
        count(self.lineage.slots().flat_map(|slot| self.entries[slot].input_slots()))
    }

    /// Asserts that the counts match the tasks, and that each task has the outputs and references of its
    /// state.
    pub(super) fn check(&self) {
        let mut unfinished: IdMap<JobId, usize> = IdMap::default();
        for (_, task) in self.entries.iter() {
            if task.is_unfinished() {
                *unfinished.entry(task.id.job()).or_default() += 1;
                assert!(task.output_slots().all(|output| output.is_some()), "{} lacks an output", task.id);
            }
            if task.state == TaskState::Tombstone {
                assert!(task.inputs.is_none(), "{} has ended and refers to something", task.id);
            }
        }
        assert_eq!(self.unfinished, unfinished, "unfinished tasks are miscounted");
        self.by_job.check(self.entries.iter().map(|(slot, task)| (slot, task.id.job())));
        let is_unfinished = |task| self.get(task).is_some_and(Task::is_unfinished);
        self.deadlines.check(is_unfinished);
        let is_paused =
            |task| self.get(task).is_some_and(|task| task.state == TaskState::Waiting { missing: 0 });
        self.pauses.check(is_paused, is_unfinished);
        self.comebacks.check(is_unfinished);
        for slot in self.names.keys() {
            let has_ended = self.get(*slot).is_none_or(|task| task.state == TaskState::Tombstone);
            assert!(!has_ended, "{slot:?} has ended and has a name");
        }
        self.check_lineage();
    }
}

fn count(slots: impl Iterator<Item = Slot<Object>>) -> IdMap<Slot<Object>, u32> {
    let mut counts: IdMap<Slot<Object>, u32> = IdMap::default();
    slots.for_each(|slot| *counts.entry(slot).or_default() += 1);
    counts
}

impl Task {
    pub(super) fn id(&self) -> TaskId {
        self.id
    }

    pub(super) fn class(&self) -> Slot<Class> {
        self.class
    }

    pub(super) fn state(&self) -> TaskState {
        self.state
    }

    /// When it came into its state.
    pub(super) fn since(&self) -> Now {
        self.since
    }

    pub(super) fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Whether a further run of it is allowed if one may have started.
    pub(super) fn has_retries(&self) -> bool {
        self.retries_left != 0
    }

    /// Time spent in the function by the last run, in nanoseconds.
    pub(super) fn run_ns(&self) -> u64 {
        self.run_ns
    }

    /// Whether it is a call of an actor.
    pub(super) fn is_call(&self) -> bool {
        self.is_call
    }

    /// Whether it makes a placement group.
    pub(super) fn is_group(&self) -> bool {
        self.is_group
    }

    /// Whether a client cancelled it.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Depth: the number of tasks of this node in which it is nested.
    pub(super) fn depth(&self) -> u16 {
        self.depth
    }

    /// Its rank among the ready tasks of its shape and depth.
    pub(super) fn priority(&self) -> i32 {
        self.priority
    }

    /// The step of a graph whose task it is, until it has ended.
    pub(super) fn member(&self) -> Option<Member> {
        self.member
    }

    pub(super) fn payload(&self) -> &SmallBytes {
        &self.payload
    }

    /// The references that it takes as arguments.
    pub(super) fn dependencies(&self) -> &[(Dependency, Slot<Object>)] {
        self.inputs.as_ref().map_or(&[], |inputs| &inputs.dependencies)
    }

    /// The snapshot from which the actor that it constructs continues.
    pub(super) fn snapshot(&self) -> Option<ObjectId> {
        let taken = self.dependencies().iter().map(|(dependency, _)| dependency);
        let snapshot = taken.rev().find(|dependency| dependency.parameter == Dependency::SNAPSHOT);
        snapshot.map(|dependency| dependency.reference.object)
    }

    /// The references that stand inside its arguments.
    pub(super) fn nested(&self) -> &[Slot<Object>] {
        self.inputs.as_ref().map_or(&[], |inputs| &inputs.nested)
    }

    /// All entries that it refers to.
    pub(super) fn input_slots(&self) -> impl Iterator<Item = Slot<Object>> {
        self.inputs.iter().flat_map(|inputs| inputs.slots())
    }

    /// Its outputs in their order; `None` for one whose entry is gone, which only a kept task has.
    pub(super) fn output_slots(&self) -> impl Iterator<Item = Option<Slot<Object>>> {
        std::iter::once(self.first_output)
            .chain(self.more_outputs.iter().flat_map(|more| more.iter()).copied())
    }

    /// Number of its outputs.
    pub(super) fn output_count(&self) -> usize {
        1 + self.more_outputs.as_ref().map_or(0, |more| more.len())
    }

    fn set_outputs(&mut self, outputs: &[Slot<Object>]) {
        let (first, more) = (outputs.first().copied(), outputs.get(1..).unwrap_or_default());
        assert!(first.is_some(), "{} has no output", self.id);
        self.first_output = first;
        self.more_outputs = (!more.is_empty()).then(|| Box::new(more.iter().copied().map(Some).collect()));
    }
}
