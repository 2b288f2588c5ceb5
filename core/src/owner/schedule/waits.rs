//! Requests that wait at nodes, so that an idle lease finds the one for which it makes way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{LeaseId, NodeId};

/// Requests that are looked at for one idle lease. The first is served first, and does not always need what
/// the lease holds.
const LOOKS_MAX: usize = 4;

/// The requests that wait at each node and for which no lease has made way yet, first those that are served
/// first.
#[derive(Debug, Default)]
pub(super) struct Waits(BTreeMap<NodeId, BTreeSet<(Reverse<i32>, LeaseId)>>);

impl Waits {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A request waits.
    pub(super) fn add(&mut self, node: NodeId, urgency: i32, lease: LeaseId) {
        self.0.entry(node).or_default().insert((Reverse(urgency), lease));
    }

    /// A request waits no more, or a lease has made way for it.
    pub(super) fn remove(&mut self, node: NodeId, urgency: i32, lease: LeaseId) {
        if let Some(at_node) = self.0.get_mut(&node) {
            at_node.remove(&(Reverse(urgency), lease));
            if at_node.is_empty() {
                self.0.remove(&node);
            }
        }
    }

    /// The first requests that wait at a node.
    pub(super) fn first(&self, node: NodeId) -> impl Iterator<Item = LeaseId> {
        let at_node = self.0.get(&node).into_iter().flatten();
        at_node.map(|(_, lease)| *lease).take(LOOKS_MAX)
    }

    /// Asserts that only requests that wait are here; `request` tells the node and the urgency of one.
    pub(super) fn check(&self, request: impl Fn(LeaseId) -> Option<(NodeId, i32)>) {
        for (node, at_node) in &self.0 {
            for (Reverse(urgency), lease) in at_node {
                assert_eq!(request(*lease), Some((*node, *urgency)), "{lease:?} does not wait as it says");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_of_a_node_come_first_then_the_oldest() {
        let (here, there) = (NodeId(1), NodeId(2));
        let mut waits = Waits::default();
        for (node, urgency, lease) in [(here, 0, 1), (here, 7, 3), (there, 9, 4), (here, 0, 2)] {
            waits.add(node, urgency, LeaseId(lease));
        }
        assert_eq!(waits.first(here).collect::<Vec<_>>(), [3, 1, 2].map(LeaseId));
        waits.remove(here, 7, LeaseId(3));
        waits.remove(here, 7, LeaseId(3));
        assert_eq!(waits.first(here).collect::<Vec<_>>(), [1, 2].map(LeaseId));
        waits.remove(there, 9, LeaseId(4));
        assert_eq!(waits.first(there).count(), 0);
        assert!(!waits.is_empty());
    }
}
