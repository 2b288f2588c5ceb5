//! The ledger of one node: its objects, the references to them, the tasks that make them, and their
//! scheduling.
//!
//! [`Owner`] is made of machines that own their state. None reaches into another: they interact through
//! [`Owner`], in the files beside them, or by arguments of methods. A machine names the entries of another
//! one by [`Slot`]. Each has a `check` of its own relations and its part of `leftovers`; [`Owner::check`]
//! adds the relations between them. The owner asks for all outside work by an [`Effect`], which
//! [`crate::Node`] carries out.
//!
//! | machine | owns | file |
//! |---|---|---|
//! | `References` | objects, references of clients, borrows, copies | `references/` |
//! | `Tasks` | tasks and their states, their deadlines, kept tasks | `tasks/` |
//! | `Schedule` | shapes, queues, leases | `schedule/` |
//! | `Actors` | lines of calls, attachments to actors | `actors/` |
//! | `Graphs` | graphs of tasks: their steps | `graphs/` |
//! | `Groups` | placement groups and their bundles, groups of tasks | `groups/` |
//! | `Classes` | task classes by number | `classes.rs` |
//! | `EndedJobs` | ended jobs, whose tasks do not start again | `jobs.rs` |
//! | `Checkpoints` | snapshots of actors on other nodes that are on their way here | `checkpoints.rs` |
//!
//! | file between them | concern |
//! |---|---|
//! | `submit.rs` | a call: its task and outputs are entered, its arguments counted and awaited |
//! | `scheduling.rs` | queues and leases: the queue of a task, tasks that come back, tasks that never run |
//! | `starts.rs` | data for the start of a task; tasks that come back unstarted |
//! | `ends.rs` | ends: returned, failed, tried again, cancelled |
//! | `deadlines.rs` | ends because the time of the task that called them is over |
//! | `objects.rs` | values that come and are lost, references that come and go, freeing |
//! | `calls.rs` | actors: constructed, called, lost, started again, ended |
//! | `steps.rs` | graphs: parts that come, steps that become tasks, end and fail |
//! | `grouped.rs` | placement groups and the tasks inside |
//! | `lists.rs` | unfinished tasks, for lists |
//! | `story.rs` | state of a task or an object, in words |
//! | `recompute.rs` | lineage: kept tasks, and lost objects that are computed again |
//!
//! # States of a task
//!
//! A task is in one state; its slot stands in the collection that goes with it, and nowhere else.
//! `tasks/state.rs` has the transitions, each of which asserts the state that it comes from.
//!
//! | state | collection | enters by | leaves by |
//! |---|---|---|---|
//! | waiting | `dependents` of arguments, or the pauses | `submit`, `waits_again`, `run_again`, `try_after_pause` | `input_ready`, `end_pauses`, `fail` |
//! | queued | a queue of its shape | `enqueue`, `try_after_pause`, `requeue_first`, `requeue_elsewhere` | `Schedule::round`, `fail_hopeless`, `fail_queue` |
//! | sent | `in_flight` of its lease | `Schedule::round` | `ended_slot`, `given_back`, `take_back` |
//! | kept | kept tasks by age | `finish_kept` | `run_again`, `forget_task`, `output_gone` |
//! | tombstone | the queue in which it ended | `finish` | `Schedule::round`, `fail_hopeless`, `fail_queue` |
//!
//! A call of an actor stands in the line of its caller while it waits or is queued, and in `in_flight` of an
//! attachment while it is sent (`actors/`); it is never kept, and no tombstone. The constructor of an actor
//! stays sent while the actor lives. A call that makes a placement group stays waiting while the group lives.
//!
//! # References of an object
//!
//! An entry lives as long as something refers to it. `Owner::free_if_unused` frees it in the step in which
//! the last reference goes.
//!
//! | reference | counted in | comes by | goes by |
//! |---|---|---|---|
//! | the client that made it | `maker` | `submit`, `put` | `released`, `client_gone` |
//! | other clients | `holders` | `held` | `released`, `client_gone` |
//! | unfinished tasks, runs for other nodes | `uses` | `adopt`, `run_again` | `finish`, `unuse` |
//! | values with its reference inside | `uses` | `adopt_nested` | `fill`, `free_if_unused` |
//! | its own unfinished task | `producer` | `submit`, `run_again` | `fill` |
//! | other nodes | `borrowers` | `lend`, `borrowed` | `borrows_returned`, `node_gone` |
//! | kept tasks that take it | `origin.needed_by` | `keep` | `forget_task`, `output_gone`, `run_again` |
//!
//! A reference to another node's object has a *proxy* entry, which counts the local references. When the last
//! one goes, the proxy gives its borrows back to the nodes that lent it (`borrowed_from`).
//!
//! # Ids that may be gone
//!
//! A slot of a machine of this crate names a value that exists. It is indexed, so a defect stops the node at
//! once instead of going on with wrong counts. Ids, tokens and leases that clients and other nodes name may
//! be gone, and so may entries that an earlier effect of the same call has ended. These are looked up and
//! ignored if they are gone; comments say where this can happen.

mod actors;
mod calls;
mod checkpoints;
mod classes;
mod deadlines;
mod ends;
mod graphs;
mod grouped;
mod groups;
mod jobs;
mod lists;
mod objects;
mod recompute;
mod references;
mod schedule;
mod scheduling;
mod starts;
mod steps;
mod story;
mod submit;
mod tasks;

pub(crate) use checkpoints::{Offered, Taken};
pub use classes::Class;
pub(crate) use deadlines::unreached_failure;
pub(crate) use ends::dependency_failure;
pub use graphs::StepTally;
pub use groups::GroupStage;
pub(crate) use lists::Unfinished;
pub use lists::{ActorItem, ActorStage, GraphItem, GroupItem};
pub(crate) use objects::{because, decline};
pub(crate) use references::value_told;
pub use references::{Holders, MadeBy, Object};
pub use schedule::Pending;
pub use starts::StartView;
pub use steps::GraphSubmitter;
pub use submit::Submission;
pub(crate) use submit::unknown_argument;
pub use tasks::{LineageUsage, Task};

use crate::slab::Slot;
use crate::{MS, Now};
use actors::Actors;
use checkpoints::Checkpoints;
use classes::Classes;
use graphs::Graphs;
use groups::Groups;
use jobs::EndedJobs;
use objects::Wakes;
use references::References;
use schedule::{Schedule, Shape};
use std::sync::Arc;
use tasks::{TaskState, Tasks};
use tharsis_types::peer::Message;
use tharsis_types::{Attempt, ClientId, JobId, LeaseId, NodeId, ObjectId, TaskClass, TaskId};

/// An attempt that ended, wherever it ran.
#[derive(Debug)]
pub struct Ended {
    /// The lease it ran under.
    pub lease: LeaseId,
    /// The task.
    pub task: TaskId,
    /// The number of the attempt.
    pub attempt: Attempt,
    /// Time in the function, in nanoseconds.
    pub run_ns: u64,
    /// The node it ran on.
    pub node: NodeId,
}

/// The effects that the ledger asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the node of an actor to take calls under a lease.
    Attach {
        /// The node.
        to: NodeId,
        /// The id of the lease.
        lease: LeaseId,
        /// The task that constructed the actor.
        actor: TaskId,
    },
    /// Stop a task that was sent.
    Cancel {
        /// Node it was sent to.
        to: NodeId,
        /// The task.
        task: TaskId,
        /// Whether to kill its worker.
        force: bool,
        /// Whether to stop the tasks that it submitted as well.
        recursive: bool,
    },
    /// Kill the worker of an actor, so that the actor is started again.
    Restart {
        /// The node of the worker.
        to: NodeId,
        /// The task that constructed the actor.
        actor: TaskId,
    },
    /// Drop a copy.
    DropCopy {
        /// The node that has it.
        holder: NodeId,
        /// The object.
        object: ObjectId,
    },
    /// The first copy of an own object is another one now: it stays until the owner frees it.
    CopyIsValue {
        /// The node that has it.
        holder: NodeId,
        /// The object.
        object: ObjectId,
        /// Bytes.
        len: u64,
    },
    /// Tell a client the state of a reference.
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
    /// Memory of finished tasks was returned to the allocator.
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
        /// The node that is asked.
        to: NodeId,
        /// The id of the lease.
        lease: LeaseId,
        /// The class of tasks that it is for.
        class: Arc<TaskClass>,
        /// Whether to wait there.
        wait: bool,
        /// Of requests that wait, those of higher urgency are served first.
        urgency: i32,
    },
    /// Say that the request for a lease is more urgent now.
    RaiseLease {
        /// The node that was asked.
        to: NodeId,
        /// The id of the lease.
        lease: LeaseId,
        /// As in the request.
        urgency: i32,
    },
    /// Give back a lease, or the request for it.
    ReturnLease {
        /// The node of the lease.
        to: NodeId,
        /// The id of the lease.
        lease: LeaseId,
    },
    /// Take back tasks that were sent ahead and have not started.
    StealBack {
        /// The node that has the worker.
        to: NodeId,
        /// The lease.
        lease: LeaseId,
    },
    /// Start a task under a lease.
    Start {
        /// The node that has the worker.
        to: NodeId,
        /// The lease.
        lease: LeaseId,
        /// The task's slot in the ledger.
        task: Slot<Task>,
    },
}

/// Number of table pages that are given back at a time: too few to delay other work.
const TRIM_PAGES: usize = 64;
/// Memory of tasks that are gone is kept for this long, in case more tasks come.
const TRIM_AFTER: Now = 1_000 * MS;
/// Interval at which portions of that memory are given back.
const TRIM_EVERY: Now = 5 * MS;

/// The ledger of one node.
#[derive(Debug)]
pub struct Owner {
    me: NodeId,
    references: References,
    tasks: Tasks,
    classes: Classes,
    schedule: Schedule,
    actors: Actors,
    groups: Groups,
    graphs: Graphs,
    wakes: Wakes,
    jobs: EndedJobs,
    checkpoints: Checkpoints,
    /// The node that said last that it does not reach a copy of an object, or cannot read one. The task that
    /// comes back from there next for this reason is not sent there again at once.
    unread: Option<(NodeId, ObjectId)>,
    /// When to give back memory of entries that are gone.
    trim_at: Option<Now>,
    totals: Totals,
}

/// Tasks of a ledger since its node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tasks that were submitted.
    pub submitted: u64,
    /// Tasks that returned; one that ran again for a lost value counts again.
    pub returned: u64,
    /// Tasks that failed.
    pub failed: u64,
}

impl Owner {
    /// The ledger of a new node.
    #[must_use]
    pub fn new(me: NodeId, lineage_bytes_max: usize) -> Self {
        Self {
            me,
            references: References::new(me),
            tasks: Tasks::new(lineage_bytes_max),
            classes: Classes::default(),
            schedule: Schedule::new(me),
            actors: Actors::default(),
            groups: Groups::default(),
            graphs: Graphs::default(),
            wakes: Wakes::default(),
            jobs: EndedJobs::default(),
            checkpoints: Checkpoints::default(),
            unread: None,
            trim_at: None,
            totals: Totals::default(),
        }
    }

    /// Tasks since the node started.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Sets the time at which the changes that follow happen.
    pub fn tell_time(&mut self, now: Now) {
        self.references.tell_time(now);
        self.tasks.tell_time(now);
        self.schedule.tell_time(now);
        self.actors.tell_time(now);
        self.groups.tell_time(now);
    }

    /// Gives back some memory of entries that are gone, if it is time.
    fn trim(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.trim_at.is_none_or(|at| now < at) {
            return;
        }
        self.forget_ended_jobs(now);
        self.forget_unused_classes();
        let more = self.references.trim() | self.tasks.trim();
        self.trim_at = more.then_some(now + TRIM_EVERY);
        if !more {
            out.push(Effect::MemoryFreed);
        }
    }

    /// Sets the time at which memory of entries that are gone is given back.
    fn plan_trim(&mut self, now: Now) {
        let is_loose = self.references.is_loose()
            || self.tasks.is_loose()
            || self.jobs.has_ending()
            || self.classes.is_crowded();
        if self.trim_at.is_none() && is_loose {
            self.trim_at = Some(now + TRIM_AFTER);
        }
    }

    /// Number of objects in the ledger, and of tasks that are not finished.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.references.len(), self.tasks.count() + self.graphs.waiting_count())
    }

    /// Tasks of a job that are not finished.
    #[must_use]
    pub fn unfinished_of(&self, job: JobId) -> usize {
        self.tasks.unfinished_of(job) + self.graphs.waiting_of(job)
    }

    /// Sizes of tables that must be empty once there are no references.
    pub(crate) fn leftovers(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let others = [
            ("tasks to wake", self.wakes.len()),
            ("snapshots on their way here", self.checkpoints.len()),
            ("classes of ended jobs", self.classes.of_ended_jobs(&self.jobs)),
        ];
        self.references
            .leftovers()
            .into_iter()
            .chain(self.tasks.leftovers())
            .chain(self.schedule.leftovers())
            .chain(self.actors.leftovers())
            .chain(self.groups.leftovers())
            .chain(self.graphs.leftovers())
            .chain(others)
    }

    /// When [`Owner::expire`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Now> {
        let (schedule, actors) = (self.schedule.next_timeout(), self.actors.next_timeout());
        let (groups, deadlines) = (self.groups.next_timeout(), self.tasks.deadlines.next());
        let pauses = self.tasks.pauses.next();
        let times =
            [schedule, actors, groups, deadlines, pauses, self.references.next_timeout(), self.trim_at];
        times.into_iter().flatten().min()
    }

    /// Does the work that is due: ends grace periods, asks owners again, gives back memory and idle leases,
    /// takes back tasks that wait behind a long one, looks for actors again, goes on with placement groups,
    /// ends tasks whose time is over, tries failed ones again.
    pub fn expire(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.end_grace(now, out);
        self.references.ask_after_pauses(now, out);
        self.end_overdue(now, out);
        self.end_pauses(now);
        self.look_again(now, out);
        self.expire_groups(now, out);
        self.trim(now, out);
        self.schedule.expire(now, out);
    }

    /// Asserts invariants 2 and 3; `lent` are the uses by runs of other nodes' tasks.
    pub fn check(&self, lent: impl Iterator<Item = Slot<Object>>) {
        let mut uses = self.tasks.uses();
        let others = self.actors.without_handles().chain(self.groups.without_handles());
        let others = others.chain(self.graphs.uses()).chain(self.checkpoints.uses());
        lent.chain(others).for_each(|slot| *uses.entry(slot).or_default() += 1);
        self.references.check(uses, self.tasks.needs());
        self.tasks.check();
        self.classes.check(&self.schedule, &self.tasks);
        self.jobs.check();
        self.wakes.check();
        self.check_producers();
        self.schedule.check(&self.tasks);
        self.actors.check(&self.tasks);
        self.groups.check();
        self.graphs.check();
        self.check_steps();
    }

    /// Asserts that tasks of graphs are those of their steps.
    fn check_steps(&self) {
        for (_, task) in self.tasks.iter().filter(|(_, task)| task.is_unfinished()) {
            if let Some(member) = task.member() {
                self.graphs[member.graph].check_member(member, task.id());
            }
        }
    }

    /// Asserts that objects and tasks agree about producers and dependents.
    fn check_producers(&self) {
        for (slot, object) in self.references.iter() {
            let id = object.id();
            if let Some(producer) = object.producer() {
                let task = &self.tasks[producer];
                assert!(task.is_unfinished(), "{id} is made by {}, which has ended", task.id());
                assert!(task.output_slots().any(|output| output == Some(slot)), "{id} is not of its task");
            }
            if let Some(kept) = object.origin().lineage_task() {
                let task = &self.tasks[kept];
                assert!(task.id() == id.task, "{id} has a wrong lineage task");
                assert!(task.output_slots().any(|output| output == Some(slot)), "{id} is not of its lineage");
            }
            for dependent in object.dependents() {
                let task = &self.tasks[dependent];
                let is_waiting = matches!(task.state(), TaskState::Waiting { .. });
                assert!(is_waiting, "{} waits for {id} and is {:?}", task.id(), task.state());
            }
        }
        for (_, task) in self.tasks.iter().filter(|(_, task)| task.is_unfinished()) {
            assert!(self.classes.get(task.class()).is_some(), "{} has no class", task.id());
        }
    }
}
