//! The unfinished tasks, the graphs and the placement groups of the ledger as lists show them, for people.

use super::Owner;
use super::graphs::StepTally;
use super::groups::{GroupStage, Shown};
use super::tasks::TaskState;
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
