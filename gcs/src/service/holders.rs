//! Holders of code units: each node has a bounded number of entries.
//!
//! A node says of each program that it holds it, and not when it lets go of it: a node that lives for long
//! would add an entry for each program that was ever run there, and one that means it would fill the tables
//! with programs that do not exist. So of a node's entries the oldest are removed, but for programs that jobs
//! run: a job may go on for months, and a node that joins then has to find its program.

use super::Shared;
use crate::error::StoreError;
use crate::tables;
use std::collections::{HashMap, HashSet};
use tharsis_types::NodeId;

/// Entries of one node.
pub(super) const HELD_MAX: usize = 1024;
/// Entries that stay when there are more, beside those of programs that jobs run.
const HELD_KEPT: usize = HELD_MAX * 3 / 4;

/// Upper bounds on the entries that nodes have made here since they were last counted, but for those of
/// programs that jobs ran then.
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

    /// Removes the oldest entries of a node above [`HELD_KEPT`], of programs that no job runs; how many of
    /// these it has then.
    async fn forget_oldest_code_of(&self, node: NodeId) -> Result<usize, StoreError> {
        let in_use = self.held_for_jobs(node).await?;
        let (mut held, mut after) = (Vec::new(), None);
        loop {
            let result = self.backend.txn(tables::code_keys(after)).await?;
            let (entries, more) = tables::ranged(&result, 0);
            let of_node = entries.iter().filter(|entry| tables::node_of_key(&entry.key) == Some(node));
            held.extend(of_node.filter(|entry| !in_use.contains(&entry.key)).cloned());
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

    /// The keys of the entries of a node, if it has them, of programs that jobs run.
    async fn held_for_jobs(&self, node: NodeId) -> Result<HashSet<Vec<u8>>, StoreError> {
        let (mut keys, mut after) = (HashSet::new(), None);
        loop {
            let result = self.backend.txn(tables::programs(after)).await?;
            let (programs, more) = tables::ranged(&result, 0);
            keys.extend(tables::holding_keys(node, programs));
            after = programs.last().map(|program| program.key.clone());
            if !more {
                return Ok(keys);
            }
        }
    }
}
