//! Nodes that drain: they take no new work, and others keep their copies.

use super::{View, mixed};
use tharsis_types::limits::MOVE_TARGETS_MAX;
use tharsis_types::{NodeId, ObjectId, Resources};

impl View {
    /// Notes that a node takes no new work.
    pub fn drains(&mut self, node: NodeId) {
        self.members.drain(node);
    }

    /// Whether a node takes no new work.
    #[must_use]
    pub fn is_draining(&self, node: NodeId) -> bool {
        self.members.is_draining(node)
    }

    /// Nodes that could keep a copy of an object whose holder drains: those with a copy first, the others in
    /// an order that differs from object to object. Nodes without resources come and go with a driver, and
    /// are left out, except for this one.
    #[must_use]
    pub fn keepers(&self, object: ObjectId, holders: &[NodeId]) -> Vec<NodeId> {
        let seed = object.task.mixed() ^ u64::from(object.index);
        let stays = self.members.iter().filter(|member| !self.is_draining(member.node));
        let mut keepers: Vec<_> = stays
            .filter(|member| member.node == self.me || member.resources != Resources::default())
            .map(|member| {
                let is_last = member.resources == Resources::default();
                (is_last, !holders.contains(&member.node), mixed(member.node.0, seed), member.node)
            })
            .collect();
        keepers.sort_unstable();
        keepers.into_iter().map(|(.., node)| node).take(MOVE_TARGETS_MAX).collect()
    }
}
