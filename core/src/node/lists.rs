//! Lists of tasks, of actors, of graphs, of placement groups and of workers: a read-only view for people.
//!
//! A node lists the unfinished tasks of its own ledger and the tasks that it runs for other nodes.

use super::Node;
use super::runs::Run;
use crate::Now;
use crate::owner::{ActorItem, GraphItem, GroupItem, Unfinished};
use crate::slab::Slot;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{Attempt, ClientId, JobId, NodeId, TaskClass, TaskId};

/// An unfinished task as a list shows it.
#[derive(Clone, Copy, Debug)]
pub struct TaskItem<'a> {
    /// Its id.
    pub id: TaskId,
    /// The function that it calls, and the place of the call.
    pub class: &'a TaskClass,
    /// Its name.
    pub name: &'a str,
    /// Its stage.
    pub stage: TaskStage,
    /// The time for which it has been at this stage, in nanoseconds; 0 if only its owner knows.
    pub age: Now,
    /// Its attempt.
    pub attempt: Attempt,
    /// The node that owns it.
    pub owner: NodeId,
    /// The node that it was sent to.
    pub node: Option<NodeId>,
    /// Its worker on this node.
    pub worker: Option<ClientId>,
}

/// The stage of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskStage {
    /// Some of its arguments have no value yet.
    Waiting,
    /// It waits for a lease.
    Queued,
    /// It was sent to another node, which knows its progress.
    Sent,
    /// It is on its node, but some of its arguments are not.
    Fetching,
    /// Its worker has it, behind another task.
    InLine,
    /// Its worker runs it.
    Running,
    /// It runs, and waits for other tasks.
    Blocked,
}

/// A worker as a list shows it.
#[derive(Clone, Copy, Debug)]
pub struct WorkerItem<'a> {
    /// Its number on this node.
    pub client: ClientId,
    /// The job it works for.
    pub job: JobId,
    /// The task that it runs.
    pub task: Option<TaskItem<'a>>,
    /// Number of tasks that it has beside this one.
    pub in_line_count: usize,
}

/// A run as a timeline shows it.
#[derive(Clone, Copy, Debug)]
pub struct RunItem<'a> {
    /// Its task.
    pub task: TaskId,
    /// The attempt of its task.
    pub attempt: Attempt,
    /// The node that owns its task.
    pub owner: NodeId,
    /// The function that it calls, and the place of the call; none if its task was taken back.
    pub class: Option<&'a Arc<TaskClass>>,
    /// The name of the call, if it has one of its own.
    pub own_name: Option<&'a str>,
    /// Its worker.
    pub client: ClientId,
    /// When it began, as far as the node can know; none if it may stand behind another one.
    pub since: Option<Now>,
}

/// Tasks found by a search.
#[derive(Clone, Debug)]
pub struct TaskList<'a> {
    /// The tasks that have been at their stage longest.
    pub tasks: Vec<TaskItem<'a>>,
    /// Number of found tasks that are not listed.
    pub other_count: usize,
}

impl TaskStage {
    /// All stages, in the order in which a task passes them.
    pub const ALL: [Self; 7] =
        [Self::Waiting, Self::Queued, Self::Sent, Self::Fetching, Self::InLine, Self::Running, Self::Blocked];

    /// Whether its function has begun, as far as the node can know.
    fn is_begun(self) -> bool {
        matches!(self, Self::Running | Self::Blocked)
    }

    /// Its name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Queued => "queued",
            Self::Sent => "sent",
            Self::Fetching => "fetching",
            Self::InLine => "in-line",
            Self::Running => "running",
            Self::Blocked => "blocked",
        }
    }
}

impl Node {
    /// A run that a worker was sent and that is not over.
    #[must_use]
    pub fn run_in(&self, client: ClientId, run: u32) -> Option<RunItem<'_>> {
        let run = self.runs.get(Slot::from_number(run)).filter(|run| run.client == client)?;
        (!run.is_staging()).then(|| self.begun_item(run))
    }

    /// The run that a worker is at, as far as the node can know: of the calls that an actor runs at the same
    /// time, the one that was sent first.
    #[must_use]
    pub fn begun_run(&self, client: ClientId) -> Option<RunItem<'_>> {
        let run = self.runs.first(client).filter(|run| run.is_first())?;
        Some(self.begun_item(run))
    }

    /// Since when a worker is at its present run, if it has one.
    #[must_use]
    pub fn running_since(&self, client: ClientId) -> Option<Now> {
        self.runs.first(client)?.first_since()
    }

    /// The worker in which a task runs here, and since when, if it has begun.
    #[must_use]
    pub fn worker_of(&self, task: TaskId) -> Option<(ClientId, Now)> {
        let (_, run) = self.runs.find(task)?;
        Some((run.client, run.first_since()?))
    }
}

impl Node {
    /// Lists the unfinished tasks that `is_wanted` accepts: at most `max`, those that have been at their
    /// stage longest, in this order. Looks at every task once, and keeps `2 * max + 1` rows at most.
    #[must_use]
    pub fn list_tasks(
        &self,
        now: Now,
        max: usize,
        mut is_wanted: impl FnMut(&TaskItem<'_>) -> bool,
    ) -> TaskList<'_> {
        let mut tasks: Vec<TaskItem<'_>> = Vec::new();
        let mut other_count = 0;
        let mut cut = |tasks: &mut Vec<TaskItem<'_>>| {
            tasks.sort_unstable_by_key(|task| (Reverse(task.age), task.id));
            other_count += tasks.len().saturating_sub(max);
            tasks.truncate(max);
        };
        for task in self.tasks(now).filter(|task| is_wanted(task)) {
            tasks.push(task);
            if 2 * max < tasks.len() {
                cut(&mut tasks);
            }
        }
        cut(&mut tasks);
        TaskList { tasks, other_count }
    }

    /// Lists the workers of this node.
    pub fn list_workers(&self, now: Now) -> impl Iterator<Item = WorkerItem<'_>> {
        self.leases.workers().map(move |(client, job)| {
            let line = self.runs.line(client);
            let first = line.front().map(|slot| &self.runs[*slot]).filter(|run| run.is_first());
            let task = first.and_then(|run| self.run_item(now, run));
            WorkerItem { client, job, task, in_line_count: line.len() - usize::from(task.is_some()) }
        })
    }

    /// The graphs that were submitted to this node and are not over. Looks at every step once.
    #[must_use]
    pub fn list_graphs(&self) -> Vec<GraphItem> {
        self.owner.graph_items()
    }

    /// Steps of these graphs that wait and are not tasks yet, by job.
    pub fn waiting_steps(&self) -> impl Iterator<Item = (JobId, usize)> {
        self.owner.waiting_steps()
    }

    /// The actors that were created here and have not ended, the oldest first. Looks at every task once.
    #[must_use]
    pub fn list_actors(&self) -> Vec<ActorItem<'_>> {
        self.owner.actor_items()
    }

    /// The placement groups that this node has made, the oldest first.
    #[must_use]
    pub fn list_groups(&self) -> Vec<GroupItem<'_>> {
        self.owner.group_items()
    }

    /// Every unfinished task of the ledger, then the tasks that run here for other nodes.
    pub fn tasks(&self, now: Now) -> impl Iterator<Item = TaskItem<'_>> {
        // Two nodes may own tasks with the same id: the parent ran again on another node and submitted the
        // task there as well.
        let runs = self.runs.iter().filter_map(|run| self.run_item(now, run));
        let (here, lent): (Vec<_>, Vec<_>) = runs.partition(|run| run.owner == self.id);
        let here: IdMap<TaskId, TaskItem<'_>> = here.into_iter().map(|run| (run.id, run)).collect();
        let own = self.owner.unfinished().map(move |task| {
            let entered = self.ledger_item(now, task);
            match here.get(&task.id) {
                None => entered,
                Some(run) if run.stage.is_begun() => *run,
                // The run does not know since when it waits, but the ledger knows when it was sent.
                Some(run) => TaskItem { age: entered.age, ..*run },
            }
        });
        own.chain(lent)
    }

    /// Asserts that every unfinished task of the ledger is listed once, and that running ones have a worker.
    pub(super) fn check_lists(&self) {
        let (mut own, mut seen) = (0, BTreeSet::new());
        for task in self.tasks(0) {
            assert!(seen.insert((task.owner, task.id)), "{} is listed twice", task.id);
            assert!(!task.stage.is_begun() || task.worker.is_some(), "{} runs without a worker", task.id);
            own += usize::from(task.owner == self.id);
        }
        assert_eq!(own, self.owner.unfinished().count(), "tasks that are not listed");
    }

    /// A task of the ledger that does not run here.
    fn ledger_item<'a>(&'a self, now: Now, task: Unfinished<'a>) -> TaskItem<'a> {
        let stage = match (task.sent_to, task.is_queued) {
            (Some(_), _) => TaskStage::Sent,
            (None, true) => TaskStage::Queued,
            (None, false) => TaskStage::Waiting,
        };
        TaskItem {
            id: task.id,
            class: task.class,
            name: task.name,
            stage,
            age: now.saturating_sub(task.since),
            attempt: task.attempt,
            owner: self.id,
            node: task.sent_to,
            worker: None,
        }
    }

    /// A run that was sent to its worker.
    fn begun_item<'a>(&'a self, run: &'a Run) -> RunItem<'a> {
        let call = run.call(&self.owner);
        RunItem {
            task: run.task,
            attempt: run.attempt,
            owner: run.lease.0,
            class: call.as_ref().map(|call| call.class),
            own_name: call.as_ref().and_then(|call| call.own_name),
            client: run.client,
            since: run.begun_since(),
        }
    }

    /// A task that runs here; `None` if its owner took it back and the worker has not returned it yet.
    fn run_item<'a>(&'a self, now: Now, run: &'a Run) -> Option<TaskItem<'a>> {
        let call = run.call(&self.owner)?;
        let stage = if run.is_first() {
            if self.leases.is_blocked(run.client) { TaskStage::Blocked } else { TaskStage::Running }
        } else if run.is_staging() {
            TaskStage::Fetching
        } else {
            TaskStage::InLine
        };
        Some(TaskItem {
            id: run.task,
            class: call.class,
            name: call.name(),
            stage,
            age: run.first_since().map_or(0, |since| now.saturating_sub(since)),
            attempt: run.attempt,
            owner: run.lease.0,
            node: Some(self.id),
            worker: Some(run.client),
        })
    }
}
