//! Nodes that one part of a node notes for another part, which waits for them.

use crate::registry::lock;
use std::sync::Mutex;
use tharsis_types::NodeId;
use tokio::sync::Notify;

/// Nodes that nobody has taken yet, each once.
#[derive(Debug, Default)]
pub(super) struct Noted {
    nodes: Mutex<Vec<NodeId>>,
    news: Notify,
}

impl Noted {
    /// Adds a node for whoever waits.
    pub(super) fn add(&self, node: NodeId) {
        let mut nodes = lock(&self.nodes);
        if !nodes.contains(&node) {
            nodes.push(node);
        }
        drop(nodes);
        self.news.notify_one();
    }

    /// Waits until there are nodes, and takes them.
    pub(super) async fn take(&self) -> Vec<NodeId> {
        loop {
            let taken = std::mem::take(&mut *lock(&self.nodes));
            if !taken.is_empty() {
                return taken;
            }
            self.news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_node_is_taken_once_however_often_it_was_noted() {
        let noted = Noted::default();
        [1, 2, 1].map(NodeId).into_iter().for_each(|node| noted.add(node));
        assert_eq!(noted.take().await, [1, 2].map(NodeId));
        let (taken, ()) = tokio::join!(noted.take(), async { noted.add(NodeId(1)) });
        assert_eq!(taken, [NodeId(1)]);
    }
}
