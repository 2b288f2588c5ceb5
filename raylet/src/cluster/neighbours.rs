//! Neighbours of a node: those next to it in the order of ids, around the end.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use tharsis_types::NodeId;

/// The member before a node in the order of ids, around the end.
pub(super) fn before<V>(table: &BTreeMap<NodeId, V>, node: NodeId) -> Option<NodeId> {
    table.range(..node).next_back().or_else(|| table.iter().next_back()).map(|(id, _)| *id)
}

/// The member after a node in the order of ids, around the end.
pub(super) fn after<V>(table: &BTreeMap<NodeId, V>, node: NodeId) -> Option<NodeId> {
    table.range((Excluded(node), Unbounded)).next().or_else(|| table.iter().next()).map(|(id, _)| *id)
}

/// Whether another member is next to this one, which is not in the table.
pub(super) fn is_neighbour<V>(table: &BTreeMap<NodeId, V>, me: NodeId, node: NodeId) -> bool {
    before(table, me) == Some(node) || after(table, me) == Some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_one_neighbour_on_either_side() {
        let table: BTreeMap<NodeId, ()> = [2, 4, 6, 8].map(|id| (NodeId(id), ())).into();
        let next_to = |me: u64| -> Vec<u64> {
            table.keys().filter(|node| is_neighbour(&table, NodeId(me), **node)).map(|node| node.0).collect()
        };
        assert_eq!((next_to(5), next_to(1), next_to(9)), (vec![4, 6], vec![2, 8], vec![2, 8]));
        assert_eq!(before(&BTreeMap::<NodeId, ()>::new(), NodeId(1)), None);
    }
}
