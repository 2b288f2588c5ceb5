//! The ledger of one node: what its objects are, who refers to them, which task makes them, when a task may
//! start.
//!
//! An object lives as long as something refers to it: the client that made it, other clients, unfinished
//! tasks that take it as argument, objects that contain it, nodes it was lent to. A reference of another
//! node's object is a *proxy* entry: it counts the local references, and when the last one goes it gives back
//! what it borrowed to the nodes that lent it.
//!
//! A task is *waiting* for arguments, *queued* for a lease, *sent* under one, or gone. Everything the owner
//! wants done is an [`Effect`]; [`crate::Node`] passes them on.
//!
//! | file | concern |
//! |---|---|
//! | `references/` | the machine of objects: entries, clients, borrows, locations |
//! | `objects.rs` | what happens to objects, and what follows for tasks |
//! | `lineage.rs` | what ended tasks were, to compute their outputs again |
//! | `tasks.rs` | submission, arguments, ends and retries |
//! | `schedule/` | queues by shape, leases, who gets the next task; asking for leases |

mod classes;
mod lineage;
mod objects;
mod references;
mod schedule;
mod tasks;

pub use lineage::LineageUsage;
pub use objects::MadeBy;
pub(crate) use objects::because;
pub use references::{Holders, Object};
pub use schedule::Pending;
pub use tasks::Ended;
pub(crate) use tasks::dependency_failure;

use crate::event::Tokens;
use crate::jobs::JobSet;
use crate::peer::{Message, PushedDependency};
use crate::slab::{Slab, Slot};
use crate::{MS, Now};
use classes::{Class, Classes};
use lineage::Lineage;
use objects::Wakes;
use references::{References, TRIM_PAGES};
use schedule::{LeaseUse, Refusals, Shape, ShapeKey};
use std::collections::BTreeSet;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{
    Attempt, ClientId, Dependency, JobId, LeaseId, NodeId, ObjectId, SmallBytes, TaskClass, TaskId,
};

/// What the ledger wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Stop a task that was sent.
    Cancel {
        /// Where it was sent.
        to: NodeId,
        /// The task.
        task: TaskId,
        /// Whether to kill its worker.
        force: bool,
        /// Whether to stop the tasks that it submitted as well.
        recursive: bool,
    },
    /// Drop a copy.
    DropCopy {
        /// Who has it.
        holder: NodeId,
        /// The object.
        object: ObjectId,
    },
    /// The copy here is the only one left: it is the value now, and stays until the owner frees it.
    CopyIsValue {
        /// The object.
        object: ObjectId,
    },
    /// Tell a client that a reference has a value.
    Deliver {
        /// The client.
        client: ClientId,
        /// Its name for the reference.
        token: u64,
        /// The object.
        object: ObjectId,
    },
    /// A client asked for the bytes of a stored object: make it readable and send it.
    Serve {
        /// The client.
        client: ClientId,
        /// Its name for the reference.
        token: u64,
        /// The object.
        object: ObjectId,
    },
    /// Memory of finished tasks was given back to the allocator.
    MemoryFreed,
    /// Send a message.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: Message,
    },
    /// Ask for a lease.
    RequestLease {
        /// Whom.
        to: NodeId,
        /// Its name.
        lease: LeaseId,
        /// For what.
        class: Arc<TaskClass>,
        /// Whether to wait there.
        wait: bool,
    },
    /// Give a lease (or the request for it) back.
    ReturnLease {
        /// Whom.
        to: NodeId,
        /// Its name.
        lease: LeaseId,
    },
    /// Take back tasks that were sent ahead and have not started.
    StealBack {
        /// Where.
        to: NodeId,
        /// The lease.
        lease: LeaseId,
    },
    /// Start a task under a lease.
    Start {
        /// Where.
        to: NodeId,
        /// The lease.
        lease: LeaseId,
        /// The task's slot in the ledger.
        task: Slot<Task>,
    },
}

/// Memory of tasks that are gone is kept for this long: another wave of them may come.
const TRIM_AFTER: Now = 1_000 * MS;
/// Then it is given back in portions, this far apart.
const TRIM_EVERY: Now = 5 * MS;

/// The ledger of one node.
#[derive(Debug)]
pub struct Owner {
    me: NodeId,
    references: References,
    tasks: Slab<Task>,
    /// Unfinished tasks of each job.
    unfinished: IdMap<JobId, usize>,
    classes: Classes,
    shapes: Slab<Shape>,
    refusals: Refusals,
    shape_by_key: IdMap<ShapeKey, Slot<Shape>>,
    leases: IdMap<LeaseId, LeaseUse>,
    next_lease: u64,
    /// Shapes whose queues or leases changed since the last look.
    dirty: BTreeSet<Slot<Shape>>,
    wakes: Wakes,
    /// Jobs whose driver is gone: nothing of theirs starts again.
    ended_jobs: JobSet,
    /// Those of them that may have classes left, and when to look at them.
    ending: BTreeSet<JobId>,
    forget_at: Now,
    /// When to give back the memory of what is gone.
    trim_at: Option<Now>,
    lineage: Lineage,
}

/// One task of the ledger.
#[derive(Debug)]
pub struct Task {
    id: TaskId,
    class: Slot<Class>,
    state: TaskState,
    attempt: Attempt,
    retries_left: i32,
    /// Time in the function when it last ended, in nanoseconds.
    run_ns: u64,
    /// Someone wants it stopped: it is not started again.
    cancelled: bool,
    /// How many tasks of this node it is nested in.
    depth: u16,
    payload: SmallBytes,
    inputs: Option<Box<Inputs>>,
    /// `None` for an output whose entry is gone.
    first_output: Option<Slot<Object>>,
    more_outputs: Option<Box<[Option<Slot<Object>>]>>,
}

/// The references of a task; most tasks have none.
#[derive(Clone, Debug, Default)]
struct Inputs {
    dependencies: Vec<(Dependency, Slot<Object>)>,
    nested: Vec<Slot<Object>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    Waiting {
        missing: u32,
    },
    Queued,
    Sent {
        lease: LeaseId,
    },
    /// Ended, and kept so that its outputs can be made again.
    Kept {
        since: u64,
    },
    /// Ended while it stood in a queue: its entry is removed when its turn comes.
    Tombstone,
}

/// A submission as the ledger needs it.
#[derive(Debug)]
pub struct Submission {
    /// Who submits.
    pub client: ClientId,
    /// How many tasks of this node it is nested in, as far as the node knows.
    pub depth: u16,
    /// Its number of the class.
    pub class: u32,
    /// Id of the task.
    pub task: TaskId,
    /// Names of the outputs in the client.
    pub tokens: Tokens,
    /// The arguments.
    pub args: tharsis_types::TaskArgs,
}

/// What starting a task needs, read from the ledger.
#[derive(Debug)]
pub struct StartView<'a> {
    /// Id of the task.
    pub id: TaskId,
    /// Which attempt.
    pub attempt: Attempt,
    /// Its class.
    pub class: &'a Arc<TaskClass>,
    /// Number of the class in this node.
    pub class_number: u32,
    /// Arguments by value.
    pub payload: &'a [u8],
    /// Arguments by reference.
    pub dependencies: &'a [(Dependency, Slot<Object>)],
}

impl Owner {
    /// The ledger of a new node.
    #[must_use]
    pub fn new(me: NodeId, lineage_bytes_max: usize) -> Self {
        Self {
            me,
            references: References::new(me),
            tasks: Slab::default(),
            unfinished: IdMap::default(),
            classes: Classes::default(),
            shapes: Slab::default(),
            refusals: Refusals::default(),
            shape_by_key: IdMap::default(),
            leases: IdMap::default(),
            next_lease: 0,
            dirty: BTreeSet::new(),
            wakes: Wakes::default(),
            ended_jobs: JobSet::default(),
            ending: BTreeSet::new(),
            forget_at: 0,
            trim_at: None,
            lineage: Lineage::new(lineage_bytes_max),
        }
    }

    /// Gives back some memory of what is gone, if its time has come.
    fn trim(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.trim_at.is_none_or(|at| now < at) {
            return;
        }
        self.forget_ended_jobs(now);
        let more = self.references.trim() | self.tasks.trim(TRIM_PAGES);
        self.trim_at = more.then_some(now + TRIM_EVERY);
        if !more {
            out.push(Effect::MemoryFreed);
        }
    }

    /// Sets the time at which memory of what is gone is given back.
    fn plan_trim(&mut self, now: Now) {
        let is_loose = self.references.is_loose() || self.tasks.has_spare() || !self.ending.is_empty();
        if self.trim_at.is_none() && is_loose {
            self.trim_at = Some(now + TRIM_AFTER);
        }
    }

    /// How many tasks of this node a task is nested in.
    #[must_use]
    pub fn depth(&self, task: Slot<Task>) -> u16 {
        self.tasks.get(task).map_or(0, |task| task.depth)
    }

    /// What is needed to start a task, if it is (still) sent under this lease.
    #[must_use]
    pub fn start_view(&self, task: Slot<Task>, lease: LeaseId) -> Option<StartView<'_>> {
        let task = self.tasks.get(task).filter(|t| t.state == TaskState::Sent { lease })?;
        let class = self.classes.get(task.class)?;
        Some(StartView {
            id: task.id,
            attempt: task.attempt,
            class: &class.definition,
            class_number: task.class.number(),
            payload: &task.payload,
            dependencies: task.inputs.as_ref().map_or(&[], |i| &i.dependencies),
        })
    }

    /// A task as another node needs it; its references count as lent to that node. `None` if an argument is
    /// being made again.
    pub fn push_view(&mut self, task: Slot<Task>, to: NodeId) -> Option<crate::peer::PushedTask> {
        let entry = self.tasks.get(task)?;
        let class = self.classes.get(entry.class)?.definition.clone();
        let (id, attempt, payload) = (entry.id, entry.attempt, entry.payload.clone());
        let inputs = entry.inputs.as_ref();
        let is_made = |(_, slot): &(Dependency, Slot<Object>)| self.references[*slot].value().is_some();
        if !inputs.is_none_or(|i| i.dependencies.iter().all(is_made)) {
            return None;
        }
        let needed: Vec<_> = inputs.map(|i| i.dependencies.clone()).unwrap_or_default();
        let inside: Vec<_> = inputs.map(|i| i.nested.clone()).unwrap_or_default();
        let nested = inside.iter().map(|slot| self.references.lend(*slot, to)).collect();
        let dependencies = needed
            .into_iter()
            .map(|(mut dependency, slot)| {
                // The client's name for it may be out of date: what ran again elsewhere has another owner.
                dependency.reference = self.references.lend(slot, to);
                let (state, nested) = self.references.remote_state(slot, to);
                PushedDependency { dependency, state, nested }
            })
            .collect();
        Some(crate::peer::PushedTask { task: id, attempt, class, payload, dependencies, nested })
    }

    /// Objects in the ledger, tasks that are not finished.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.references.len(), self.tasks.len() - self.lineage.usage().task_count)
    }

    /// Tasks of a job that are not finished.
    #[must_use]
    pub fn unfinished_of(&self, job: JobId) -> usize {
        self.unfinished.get(&job).copied().unwrap_or(0)
    }

    /// What is in tables that are empty when nobody refers to anything.
    pub(crate) fn leftovers(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let tasks = [
            ("tasks", self.counts().1),
            ("queued tasks", self.queued_count()),
            ("leases held", self.leased_count()),
            ("kept tasks", self.lineage.usage().task_count),
            ("tasks to wake", self.wakes.len()),
            ("classes of ended jobs", self.classes_of_ended_jobs()),
        ];
        self.references.leftovers().into_iter().chain(tasks)
    }

    /// Leases that were asked for or granted.
    #[must_use]
    pub fn leased_count(&self) -> usize {
        self.leases.len()
    }

    /// Asserts invariants 2 and 3; `lent` are the uses that runs of other nodes' tasks hold.
    pub fn check(&self, lent: impl Iterator<Item = Slot<Object>>) {
        let mut uses: IdMap<Slot<Object>, u32> = IdMap::default();
        lent.for_each(|slot| *uses.entry(slot).or_default() += 1);
        let mut unfinished: IdMap<JobId, usize> = IdMap::default();
        for (_, task) in self.tasks.iter().filter(|(_, t)| t.is_unfinished()) {
            assert!(self.classes.get(task.class).is_some(), "{} has no class", task.id);
            *unfinished.entry(task.id.job()).or_default() += 1;
            let inputs =
                task.inputs.iter().flat_map(|i| i.dependencies.iter().map(|(_, s)| s).chain(&i.nested));
            inputs.for_each(|slot| *uses.entry(*slot).or_default() += 1);
        }
        assert_eq!(self.unfinished, unfinished, "unfinished tasks are miscounted");
        self.references.check(uses, self.check_lineage());
        self.check_producers();
        self.check_schedule();
    }

    /// Asserts that objects and tasks agree about which task makes which object, and which waits for which.
    fn check_producers(&self) {
        for (slot, object) in self.references.iter() {
            let id = object.id();
            if let Some(producer) = object.producer() {
                let task = &self.tasks[producer];
                assert!(task.is_unfinished(), "{id} is made by {}, which has ended", task.id);
                assert!(task.output_slots().any(|output| output == Some(slot)), "{id} is not of its task");
            }
            if let Some(kept) = object.origin().lineage_task() {
                let task = &self.tasks[kept];
                assert!(task.id == id.task, "{id} has a wrong lineage task");
            }
            for dependent in object.dependents() {
                let task = &self.tasks[*dependent];
                let is_waiting = matches!(task.state, TaskState::Waiting { .. });
                assert!(is_waiting, "{} waits for {id} and is {:?}", task.id, task.state);
            }
        }
    }
}
