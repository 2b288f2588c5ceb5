//! Holders of code units: each node has a bounded number of entries.
//!
//! A node says of each program that it holds it, and not when it lets go of it: a node that lives for long
//! would add an entry for each program that was ever run there, and one that means it would fill the tables
//! with programs that do not exist. So of a node's entries the oldest are removed. A program that jobs run is
//! named again by each of them, and is no old one then.

use super::Shared;
use crate::error::StoreError;
use crate::tables;
use std::collections::HashMap;
use tharsis_types::NodeId;

/// Entries of one node.
pub(super) const HELD_MAX: usize = 1024;
/// Entries that stay when there are more.
const HELD_KEPT: usize = HELD_MAX * 3 / 4;

/// Upper bounds on the entries that nodes have made here since they were last counted.
pub(super) type Holders = HashMap<NodeId, usize>;

impl Shared {
    /// Notes that a node has made an entry, and removes its oldest if there may be too many.
    pub(super) async fn note_held(&self, node: NodeId) -> Result<(), StoreError> {
        let made = {
            let mut holders = self.holders.lock();
            let made = holders.entry(node).or_default();
            *made += 1;
            *made
        };
        if made < HELD_MAX {
            return Ok(());
        }
        let kept = self.forget_oldest_code_of(node).await?;
        self.holders.lock().insert(node, kept);
        Ok(())
    }

    /// Removes the oldest entries of a node above [`HELD_KEPT`]; how many it has then.
    async fn forget_oldest_code_of(&self, node: NodeId) -> Result<usize, StoreError> {
        let (mut held, mut after) = (Vec::new(), None);
        loop {
            let result = self.backend.txn(tables::code_keys(after)).await?;
            let (entries, more) = tables::ranged(&result, 0);
            let of_node = entries.iter().filter(|entry| tables::node_of_key(&entry.key) == Some(node));
            held.extend(of_node.cloned());
            after = entries.last().map(|entry| entry.key.clone());
            if !more {
                break;
            }
        }
        held.sort_unstable_by_key(|entry| entry.revision);
        let excess = held.len().saturating_sub(HELD_KEPT);
        for txn in tables::forget_code_of(node, &held[..excess]) {
            self.backend.txn(txn).await?;
        }
        Ok(held.len() - excess)
    }
}
