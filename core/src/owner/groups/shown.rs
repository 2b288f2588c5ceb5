//! Placement groups as people see them: their stages, and why they are not placed.

use super::{Group, Groups, State};
use crate::owner::Task;
use crate::slab::Slot;
use tharsis_types::{GroupSpec, NodeId};

/// The stage of a placement group, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupStage {
    /// Nodes are asked for bundles.
    Asking,
    /// The nodes that could hold it are in use.
    Waiting,
    /// The cluster cannot hold it.
    Infeasible,
    /// All bundles are placed.
    Placed,
}

/// A group as it is shown to people.
#[derive(Debug)]
pub(in crate::owner) struct Shown<'a> {
    /// The call that made it.
    pub(in crate::owner) task: Slot<Task>,
    pub(in crate::owner) spec: &'a GroupSpec,
    pub(in crate::owner) is_detached: bool,
    /// The node of each bundle that is placed.
    pub(in crate::owner) nodes: Vec<Option<NodeId>>,
    pub(in crate::owner) stage: GroupStage,
    /// Why it is not placed; empty if it is.
    pub(in crate::owner) reason: String,
}

impl GroupStage {
    /// Its name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Asking => "asking",
            Self::Waiting => "waiting",
            Self::Infeasible => "infeasible",
            Self::Placed => "placed",
        }
    }
}

impl Groups {
    /// All groups, in no order.
    pub(in crate::owner) fn iter(&self) -> impl Iterator<Item = Shown<'_>> {
        self.all.values().map(|group| Shown {
            task: group.task,
            spec: &group.spec,
            is_detached: group.is_detached,
            nodes: group.seats.iter().map(|seat| seat.placed_at()).collect(),
            stage: group.stage(),
            reason: group.why(),
        })
    }
}

impl Group {
    fn stage(&self) -> GroupStage {
        match self.state {
            State::Whole => GroupStage::Placed,
            State::Impossible(..) => GroupStage::Infeasible,
            State::Planned | State::Asking(None) => GroupStage::Asking,
            State::Asking(Some(_)) | State::Again(_) | State::Behind => GroupStage::Waiting,
        }
    }

    /// Why it is not whole, for people.
    fn why(&self) -> String {
        let strategy = self.spec.strategy;
        match &self.state {
            State::Whole => String::new(),
            State::Impossible(_, reason) => format!("{strategy}: {reason}"),
            State::Behind => format!("{strategy}: other groups of its job hold what the quota allows"),
            State::Asking(None) | State::Planned => format!("{strategy}: nodes are asked"),
            State::Asking(Some(_)) | State::Again(_) => {
                format!("{strategy}: the nodes that could hold it, or the quota of its job, are in use")
            }
        }
    }
}
