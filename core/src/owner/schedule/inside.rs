//! Leases inside placement groups: they are asked of the nodes that have the bundles, and wait there.

use super::{Schedule, Shape};
use crate::owner::groups::{KnownGroups, Nodes};
use crate::place::{Choice, View};
use crate::slab::Slot;
use tharsis_types::{Failure, FailureKind, LeaseId, NodeId, Placement, TaskId};

impl Shape {
    /// Whether its tasks run inside a placement group: their leases take nothing of a node itself.
    pub(super) fn is_inside(&self) -> bool {
        self.group().is_some()
    }

    /// The placement group inside which its tasks run.
    pub(super) fn group(&self) -> Option<TaskId> {
        match self.key.placement {
            Placement::Group { group, .. } => Some(group),
            _ => None,
        }
    }
}

impl Schedule {
    /// The placement group inside which a lease was asked for.
    pub(in crate::owner) fn group_of(&self, lease: LeaseId) -> Option<TaskId> {
        self.shapes[self.leases.get(&lease)?.shape].group()
    }

    /// The node to ask for a lease inside a group: of the nodes of its bundles, the one with the fewest
    /// leases of the shape. One request waits at each.
    pub(super) fn choose_inside(
        &self,
        shape: Slot<Shape>,
        group: TaskId,
        bundle: Option<u32>,
        groups: &KnownGroups,
        view: &View,
    ) -> Choice {
        let nowhere = |reason: &str| Choice::Nowhere(reason.to_owned());
        let nodes = match groups.nodes(group) {
            Nodes::Gone(failure) => return Choice::Never(Box::new((*failure).clone())),
            Nodes::Unknown => return nowhere("its placement group is not placed"),
            Nodes::At(nodes) => nodes.0,
        };
        let nodes = match bundle {
            None => nodes,
            Some(index) => match nodes.get(index as usize) {
                Some(node) => vec![*node],
                None => return Choice::Never(Box::new(no_such_bundle(index, nodes.len()))),
            },
        };
        if groups.is_in_doubt(group) {
            return nowhere("its placement group is looked for");
        }
        let is_there = |node: &NodeId| view.knows(*node) && !view.is_draining(*node);
        let waits_at = |node: &NodeId| self.requested(shape).any(|lease| lease.node == *node);
        let count = |node: &NodeId| {
            let leases = self.shapes[shape].leases.iter();
            leases.filter(|lease| self.leases[*lease].node == *node).count()
        };
        let all = nodes.into_iter().flatten().filter(is_there);
        match all.min_by_key(|node| (waits_at(node), count(node))) {
            Some(node) => Choice::Wait(node),
            None => nowhere("the node of its bundle is gone, and the bundle is placed again"),
        }
    }
}

fn no_such_bundle(index: u32, count: usize) -> Failure {
    let text = format!("there is no bundle {index}: the placement group has {count}, counted from 0");
    Failure::new(FailureKind::InvalidArgument, text)
}
