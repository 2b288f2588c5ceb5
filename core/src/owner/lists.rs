//! The unfinished tasks, the actors, the graphs and the placement groups of the ledger as lists show them,
//! for people.

use super::graphs::StepTally;
use super::groups::{GroupStage, Shown};
use super::tasks::TaskState;
use super::{Owner, Task};
use crate::Now;
use tharsis_types::{Attempt, GroupSpec, JobId, NodeId, TaskClass, TaskId};

/// An unfinished task as the ledger knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished<'a> {
    pub(crate) id: TaskId,
    pub(crate) class: &'a TaskClass,
    pub(crate) name: &'a str,
    pub(crate) attempt: Attempt,
    /// When it came into its state.
    pub(crate) since: Now,
    /// Whether it waits for a lease; otherwise it waits for arguments, or was sent.
    pub(crate) is_queued: bool,
    /// The node that it was sent to.
    pub(crate) sent_to: Option<NodeId>,
}

/// A placement group that a node has made.
#[derive(Clone, Debug)]
pub struct GroupItem<'a> {
    /// The call that made it.
    pub id: TaskId,
    /// The place of that call.
    pub class: &'a TaskClass,
    /// Its name.
    pub name: &'a str,
    /// Its bundles.
    pub spec: &'a GroupSpec,
    /// When it was asked for.
    pub since: Now,
    /// The node of each bundle that is placed.
    pub nodes: Vec<Option<NodeId>>,
    /// Its stage.
    pub stage: GroupStage,
    /// Why it is not placed; empty if it is.
    pub reason: String,
    /// Whether it outlives its driver.
    pub is_detached: bool,
}

/// An actor that was created at a node and has not ended.
#[derive(Clone, Copy, Debug)]
pub struct ActorItem<'a> {
    /// The call that made it.
    pub id: TaskId,
    /// The place of that call.
    pub class: &'a TaskClass,
    /// Its name.
    pub name: &'a str,
    /// Its stage.
    pub stage: ActorStage,
    /// When it came to this stage.
    pub since: Now,
    /// The node of its worker, if it has one.
    pub node: Option<NodeId>,
    /// Number of times that it was started again.
    pub restarts: Attempt,
}

/// The stage of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ActorStage {
    /// It waits to be constructed for the first time, or is being constructed.
    Pending,
    /// Its constructor has returned.
    Alive,
    /// Its worker was lost, and it is constructed again.
    Restarting,
}

impl ActorStage {
    /// Its name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Alive => "alive",
            Self::Restarting => "restarting",
        }
    }
}

/// A graph of tasks that was submitted to a node and is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphItem {
    /// Its id, the number of a call of its submitter.
    pub id: TaskId,
    /// Whether parts of it are still to come.
    pub is_open: bool,
    /// Whether it was cancelled: no step starts any more.
    pub is_stopped: bool,
    /// Its steps by state.
    pub steps: StepTally,
}

impl Owner {
    /// Every graph that is not over, by id. Looks at every step once.
    #[must_use]
    pub fn graph_items(&self) -> Vec<GraphItem> {
        let mut items: Vec<_> = self
            .graphs
            .iter()
            .map(|graph| GraphItem {
                id: graph.id(),
                is_open: graph.is_open(),
                is_stopped: graph.is_stopped(),
                steps: graph.tally(),
            })
            .collect();
        items.sort_unstable_by_key(|item| item.id);
        items
    }

    /// Steps of graphs that wait and have no task, by job.
    pub fn waiting_steps(&self) -> impl Iterator<Item = (JobId, usize)> {
        self.graphs.waiting_by_job()
    }

    /// Every actor that has not ended, the oldest first. Looks at every task once.
    #[must_use]
    pub fn actor_items(&self) -> Vec<ActorItem<'_>> {
        let constructors =
            self.tasks.iter().filter(|(slot, task)| task.is_unfinished() && self.is_constructor(*slot));
        let item = |(slot, task): (_, &Task)| {
            let output = task.output_slots().flatten().next();
            let stage = match output.and_then(|actor| self.actors.constructor(actor)) {
                Some(_) => ActorStage::Alive,
                None if task.attempt() == 0 => ActorStage::Pending,
                None => ActorStage::Restarting,
            };
            ActorItem {
                id: task.id(),
                class: self.class_of(slot),
                name: self.name_of(slot),
                stage,
                since: task.since(),
                node: self.node_of(slot),
                restarts: task.attempt(),
            }
        };
        let mut items: Vec<_> = constructors.map(item).collect();
        items.sort_unstable_by_key(|item| (item.since, item.id));
        items
    }

    /// Every placement group, the oldest first.
    #[must_use]
    pub fn group_items<'a>(&'a self) -> Vec<GroupItem<'a>> {
        let item = |group: Shown<'a>| {
            let task = &self.tasks[group.task];
            GroupItem {
                id: task.id(),
                class: self.class_of(group.task),
                name: self.name_of(group.task),
                spec: group.spec,
                since: task.since(),
                nodes: group.nodes,
                stage: group.stage,
                reason: group.reason,
                is_detached: group.is_detached,
            }
        };
        let mut items: Vec<_> = self.groups.iter().map(item).collect();
        items.sort_unstable_by_key(|item| (item.since, item.id));
        items
    }

    /// Every unfinished task, in no order.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Unfinished<'_>> {
        self.tasks.iter().filter(|(_, task)| task.is_unfinished()).map(|(slot, task)| Unfinished {
            id: task.id(),
            class: self.class_of(slot),
            name: self.name_of(slot),
            attempt: task.attempt(),
            since: task.since(),
            is_queued: task.state() == TaskState::Queued,
            sent_to: self.node_of(slot),
        })
    }
}
