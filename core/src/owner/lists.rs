//! The unfinished tasks of the ledger as lists show them, for people.

use super::Owner;
use super::tasks::TaskState;
use crate::Now;
use tharsis_types::{Attempt, NodeId, TaskClass, TaskId};

/// An unfinished task as the ledger knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished<'a> {
    pub(crate) id: TaskId,
    pub(crate) class: &'a TaskClass,
    pub(crate) attempt: Attempt,
    /// When it came into its state.
    pub(crate) since: Now,
    /// Whether it waits for a lease; otherwise it waits for arguments, or was sent.
    pub(crate) is_queued: bool,
    /// The node that it was sent to.
    pub(crate) sent_to: Option<NodeId>,
}

impl Owner {
    /// Every unfinished task, in no order.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Unfinished<'_>> {
        self.tasks.iter().filter(|(_, task)| task.is_unfinished()).map(|(slot, task)| Unfinished {
            id: task.id(),
            class: self.class_of(slot),
            attempt: task.attempt(),
            since: task.since(),
            is_queued: task.state() == TaskState::Queued,
            sent_to: self.node_of(slot),
        })
    }
}
