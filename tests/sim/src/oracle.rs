//! Rules that hold after any faults: the expected values, and the failures that the faults so far excuse.

use crate::client::Caller;
use crate::program::{self, CONSTRUCTOR, TIMED};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_types::{Failure, FailureKind, JobId, NodeId, ObjectId, RefId, TaskId};

/// Facts that no node knows.
#[derive(Debug, Default)]
pub struct Oracle {
    /// The value of every object that was ever put or will be returned.
    pub expected: BTreeMap<ObjectId, u64>,
    /// Every task ever submitted.
    pub tasks: BTreeMap<TaskId, TaskFacts>,
    /// Jobs whose driver is gone.
    pub ended_jobs: BTreeSet<JobId>,
    /// Nodes when the run began.
    pub nodes_at_start: usize,
    /// Nodes that died.
    pub dead: BTreeSet<NodeId>,
    /// The nodes to which each task, or a value that it made or put, has ever come.
    pub places: BTreeMap<TaskId, BTreeSet<NodeId>>,
    /// Nodes that began to drain.
    pub drains: u32,
    /// Nodes that drained and left nothing behind.
    pub departures: BTreeSet<NodeId>,
    /// Actors of which a worker was lost.
    pub lost_actors: BTreeSet<TaskId>,
    /// Actors that have ended by themselves.
    pub exits: BTreeSet<TaskId>,
    /// The actor of each call.
    pub called: BTreeMap<TaskId, TaskId>,
    /// The actor of each snapshot that was offered, by number.
    pub snapshots: Vec<TaskId>,
    /// The last snapshot of each actor that was kept, by number.
    pub kept_snapshots: BTreeMap<TaskId, u64>,
    /// The caller and the number of each call of an actor.
    pub calls: BTreeMap<TaskId, (Caller, u64)>,
    /// The group of each task inside of one.
    pub inside: BTreeMap<TaskId, RefId>,
    /// The graph of each task that was submitted with one.
    pub graphs: BTreeMap<TaskId, TaskId>,
    /// Graphs of which a result was cancelled.
    pub cancelled_graphs: BTreeSet<TaskId>,
    /// The same, with what their tasks submit.
    pub graphs_cancelled_with_children: BTreeSet<TaskId>,
    /// Worker starts that failed, by job.
    pub start_failures: BTreeMap<JobId, u32>,
    /// Objects of which a disk has lost copies, and how many.
    pub disk_losses: BTreeMap<ObjectId, u32>,
    /// Objects that were looked for on a node in vain, with that node.
    pub absent: BTreeSet<(ObjectId, NodeId)>,
    /// A copy could not be read back for want of memory.
    pub lacks_pages: bool,
    /// Stores are small enough to be full at times.
    pub small_store: bool,
}

/// Facts about a task.
#[derive(Debug, Default)]
pub struct TaskFacts {
    /// Kind of its class.
    pub kind: u32,
    /// Depth of its calls.
    pub depth: u8,
    /// Number of submissions: a parent that runs again submits its children again.
    pub submissions: u32,
    /// Attempts that a worker has started, and how often.
    pub started: BTreeMap<u32, u32>,
    /// Starts that ended with the death of the worker.
    pub crashes: u32,
    /// Starts that ended because their node was short of memory.
    pub memory_kills: u32,
    /// Starts that ended with an error value.
    pub raises: u32,
    /// The tasks whose outputs it takes, and the objects that were put.
    pub inputs: Vec<ObjectId>,
    /// The task that first submitted it; a driver's root for what drivers submit.
    pub parent: Option<TaskId>,
    /// Someone asked to cancel it.
    pub cancelled: bool,
    /// And with it what it submitted.
    pub cancelled_with_children: bool,
    /// An output goes to the store.
    pub stores: bool,
    /// The name of its call, if that has one of its own.
    pub name: Option<Arc<str>>,
}

impl TaskFacts {
    /// Its worker died.
    pub fn ended_by(&mut self, kind: FailureKind) {
        match kind {
            FailureKind::OutOfMemory => self.memory_kills += 1,
            _ => self.crashes += 1,
        }
    }
}

impl Oracle {
    /// Notes a submission; the same task must come with the same arguments each time.
    ///
    /// # Errors
    /// A text if it does not.
    pub fn submitted(
        &mut self,
        parent: TaskId,
        task: TaskId,
        kind: u32,
        depth: u8,
        arguments: &[ObjectId],
    ) -> Result<(), String> {
        let values: Option<Vec<_>> =
            arguments.iter().map(|object| self.expected.get(object).copied()).collect();
        let Some(values) = values else {
            return Err(format!("task {task} got an argument that nobody made"));
        };
        for index in 0..program::returns(kind) {
            let value = program::output_value(task, index, &values);
            let old = self.expected.insert(ObjectId::output(task, index), value);
            if old.is_some_and(|old| old != value) {
                return Err(format!("task {task} was submitted again with other arguments"));
            }
        }
        let facts = self.tasks.entry(task).or_default();
        (facts.kind, facts.depth) = (kind, depth);
        facts.parent.get_or_insert(parent);
        facts.submissions += 1;
        facts.inputs = arguments.to_vec();
        facts.stores = program::script(task, kind, depth).outputs.iter().any(|o| o.stored.is_some());
        Ok(())
    }

    /// Notes that someone asks to cancel a task, or kills an actor or a group, perhaps with all that it
    /// submitted. With its last result, all of a graph is cancelled.
    pub fn cancelled(&mut self, reference: RefId, with_children: bool) {
        let task = reference.object.task;
        let Some(facts) = self.tasks.get_mut(&task) else { return };
        facts.cancelled = true;
        facts.cancelled_with_children |= with_children;
        let graph = self.graphs.get(&task).copied();
        self.cancelled_graphs.extend(graph);
        self.graphs_cancelled_with_children.extend(graph.filter(|_| with_children));
    }

    /// Why a failure may not be, given what went wrong so far.
    ///
    /// # Errors
    /// The reason.
    pub fn excuse(&self, object: ObjectId, failure: &Failure) -> Result<(), String> {
        let root = decisive(failure);
        let origin = |link: &Failure| link.origin.as_ref().and_then(|o| o.task);
        let links = failure.links();
        let task = origin(root).or_else(|| links.filter_map(origin).last()).unwrap_or(object.task);
        let facts = self.tasks.get(&task);
        let kind = facts.map_or(u32::MAX, |f| f.kind);
        let faulty = self.died_near(ObjectId::output(task, 0)) || self.died_near(object);
        let losses = self.losses(task);
        let start_failures = self.start_failures.get(&task.job()).copied().unwrap_or(0);
        let deaths =
            self.places.get(&task).map_or(0, |places| places.intersection(&self.dead).count() as u32);
        // Number of events that may have taken a retry of the task; no retry was left for the last one.
        let spent = facts.is_some_and(|f| {
            let retries = program::class(task.job(), kind, &[tharsis_types::NodeId(1)]).max_retries;
            let taken = f.crashes + f.raises + start_failures + deaths + losses;
            u32::try_from(retries).is_ok_and(|retries| retries < taken)
        });
        // The end of an actor ends its calls, whatever retries they have.
        let actor = if kind == CONSTRUCTOR { Some(task) } else { self.called.get(&task).copied() };
        let is_lost = actor.is_some_and(|actor| self.lost_actors.contains(&actor));
        let is_killed = actor.and_then(|actor| self.tasks.get(&actor)).is_some_and(|facts| facts.cancelled);
        let has = |kind| failure.links().any(|link| link.kind == kind);
        // Its own group, or that of a task whose value it was to read: a failed argument fails it.
        let may_be_removed = || {
            self.may_be_removed(task) || self.made_of(object).iter().any(|task| self.may_be_removed(*task))
        };
        let excused = match root.kind {
            FailureKind::WorkerCrashed | FailureKind::NodeDied | FailureKind::OutOfMemory
                if actor.is_some() && (faulty || is_lost) =>
            {
                true
            }
            FailureKind::Cancelled if is_killed => true,
            // The node of its group is gone, which says why the group is.
            FailureKind::NodeDied if has(FailureKind::GroupRemoved) && may_be_removed() => true,
            FailureKind::ActorDied => actor.is_some_and(|actor| self.exits.contains(&actor)),
            // Refused where it was called: the failure names no task of its own.
            FailureKind::TooManyPendingCalls => self
                .made_of(object)
                .iter()
                .any(|task| self.called.contains_key(task) && program::max_pending(task.job()) != 0),
            FailureKind::UserError => facts.is_some_and(|f| raises(task, f) && f.raises > 0),
            FailureKind::Cancelled => self.is_cancelled(task),
            FailureKind::WorkerCrashed | FailureKind::NodeDied => spent,
            FailureKind::RetriesExhausted => spent && (faulty || losses > 0),
            // Or the memory of others in its process was too much, which is a crash like others.
            FailureKind::OutOfMemory => {
                self.lacks_pages || facts.is_some_and(|f| 0 < f.memory_kills) || actor.is_some() && spent
            }
            FailureKind::WorkerStartFailed => start_failures > 0,
            FailureKind::ObjectLost => {
                faulty || self.lost_near(ObjectId::output(task, 0)) || self.lost_near(object)
            }
            FailureKind::ObjectFreed => faulty,
            FailureKind::NodeNotFound => kind == 9 && !(self.dead.is_empty() && self.departures.is_empty()),
            FailureKind::Infeasible => self.made_of(object).iter().any(|task| self.may_be_impossible(*task)),
            FailureKind::GroupRemoved => may_be_removed(),
            FailureKind::Shutdown => {
                let jobs = [Some(task.job()), actor.map(|actor| actor.job())];
                jobs.into_iter().flatten().any(|job| self.ended_jobs.contains(&job))
            }
            FailureKind::StoreFull | FailureKind::OutOfDisk => self.small_store,
            FailureKind::TimedOut => self.has_timeout(task),
            _ => false,
        };
        if excused {
            Ok(())
        } else {
            let known = actor.map_or_else(String::new, |actor| format!(", a call of {actor}"));
            Err(format!("{object} of a task of kind {kind}{known} failed without a cause: {failure}"))
        }
    }

    /// A task, or a value of it, is on a node, or on its way there.
    pub fn came_to(&mut self, task: TaskId, node: NodeId) {
        self.places.entry(task).or_default().insert(node);
    }

    /// Nodes that died so far.
    #[must_use]
    pub fn node_deaths(&self) -> u32 {
        self.dead.len() as u32
    }

    /// Whether a node has died to which an object, or anything that it was made of, has ever come.
    #[must_use]
    pub fn died_near(&self, object: ObjectId) -> bool {
        !self.dead.is_empty()
            && self.made_of(object).iter().any(|task| {
                let places = self.places.get(task);
                places.is_some_and(|places| !places.is_disjoint(&self.dead))
            })
    }

    /// Whether a disk has lost a copy of an object, or of anything that it was made of.
    fn lost_near(&self, object: ObjectId) -> bool {
        let made_of = self.made_of(object);
        self.disk_losses.keys().any(|lost| made_of.contains(&lost.task))
    }

    /// The task of an object, and all those whose values it was made of: arguments, actors, groups.
    fn made_of(&self, object: ObjectId) -> BTreeSet<TaskId> {
        let (mut found, mut next) = (BTreeSet::new(), vec![object.task]);
        while let Some(task) = next.pop() {
            if found.insert(task) {
                let facts = self.tasks.get(&task);
                next.extend(facts.into_iter().flat_map(|facts| facts.inputs.iter().map(|input| input.task)));
                next.extend(self.called.get(&task).copied());
                next.extend(self.inside.get(&task).map(|group| group.object.task));
            }
        }
        found
    }

    /// A task and those that led to it.
    fn line(&self, task: TaskId) -> impl Iterator<Item = &TaskFacts> {
        let facts = |task: &TaskId| self.tasks.get(task);
        std::iter::successors(facts(&task), move |f| f.parent.as_ref().and_then(facts))
    }

    /// Whether a task has a timeout, or one that led to it.
    fn has_timeout(&self, task: TaskId) -> bool {
        self.line(task).any(|facts| facts.kind == TIMED)
    }

    /// Whether someone asked to cancel a task, or what led to it together with what that submitted. The end
    /// of a task's time cancels what it submitted too.
    pub fn is_cancelled(&self, task: TaskId) -> bool {
        let with_children = |facts: &TaskFacts| facts.cancelled_with_children || facts.kind == TIMED;
        let of = |graphs: &BTreeSet<TaskId>, task| self.graphs.get(task).is_some_and(|g| graphs.contains(g));
        let ancestors = std::iter::successors(Some(&task), |task| self.tasks.get(task)?.parent.as_ref());
        self.tasks.get(&task).is_some_and(|f| f.cancelled)
            || of(&self.cancelled_graphs, &task)
            || self.line(task).skip(1).any(with_children)
            || ancestors.skip(1).any(|task| of(&self.graphs_cancelled_with_children, task))
    }

    /// Copies of what a task made that disks have lost.
    fn losses(&self, task: TaskId) -> u32 {
        let of_task = ObjectId::output(task, 0)..ObjectId::put(task, 0);
        self.disk_losses.range(of_task).map(|(_, count)| count).sum()
    }

    /// Side effects that a task may have had at most.
    #[must_use]
    pub fn starts_max(&self, facts: &TaskFacts, retries: i32) -> u32 {
        let each = (retries + 1).unsigned_abs() + self.node_deaths() + facts.memory_kills;
        // A stored value may be dropped to make room and recomputed, which takes no retry.
        if retries < 0 || facts.stores { u32::MAX } else { each * facts.submissions }
    }
}

/// The link of the chain that explains it: a task that was cancelled failed for that, whatever else befell
/// it.
fn decisive(failure: &Failure) -> &Failure {
    let mut links = failure.links();
    links.find(|link| link.kind == FailureKind::Cancelled).unwrap_or_else(|| failure.root())
}

fn raises(task: TaskId, facts: &TaskFacts) -> bool {
    let script = program::script(task, facts.kind, facts.depth);
    script.fatal || script.flaky_raises > 0
}
