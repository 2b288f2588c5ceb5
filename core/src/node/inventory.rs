//! Contents of a node's store and the holders of each object: a read-only view for people.
//!
//! Every byte of the arena is counted exactly once: in an object, in the unused part of a region that a
//! client was granted, as superseded, or as free.

use super::Node;
use crate::owner::Holders;
use crate::store::{Content, Unowned, Usage};
use std::cmp::Reverse;
use tharsis_types::ClientId;

/// The contents of a store.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// The store as a whole.
    pub usage: Usage,
    /// The largest objects, largest first.
    pub objects: Vec<Item>,
    /// All others.
    pub others: Others,
    /// Bytes in use that belong to no object.
    pub unowned: Unowned,
}

/// One object and its holders.
#[derive(Clone, Debug)]
pub struct Item {
    /// The object in the store.
    pub content: Content,
    /// Clients that have it pinned, and the number of their pins.
    pub pins: Vec<(ClientId, u32)>,
    /// References to it by kind; empty if the ledger does not know it.
    pub holders: Holders,
}

/// Objects that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Number of objects.
    pub count: usize,
    /// Bytes of the arena that they take.
    pub arena_bytes: u64,
    /// Bytes of the annex that they take.
    pub annex_bytes: u64,
    /// Bytes that they take on disk.
    pub disk_bytes: u64,
}

impl Node {
    /// Contents of the store: the `max` largest objects with their holders, the others as a sum.
    #[must_use]
    pub fn inventory(&self, max: usize) -> Inventory {
        let mut contents: Vec<_> = self.store.contents().collect();
        contents.sort_unstable_by_key(|c| (Reverse(c.len), c.object));
        let mut others = Others::default();
        for content in contents.drain(max.min(contents.len())..) {
            others.count += 1;
            others.arena_bytes += content.arena_bytes;
            others.annex_bytes += content.annex_bytes;
            others.disk_bytes += content.disk_bytes;
        }
        let mut pins = self.store.pins_by_object();
        let item = |content: Content| Item {
            content,
            pins: pins.remove(&content.object).unwrap_or_default(),
            holders: self.owner.holders(content.object).unwrap_or_default(),
        };
        let objects = contents.into_iter().map(item).collect();
        Inventory { usage: self.store.usage(), objects, others, unowned: self.store.unowned() }
    }

    /// Asserts that the inventory counts every byte in use once, even if it lists a single object.
    pub(super) fn check_inventory(&self) {
        let Inventory { usage, objects, others, unowned } = self.inventory(1);
        let listed: u64 = objects.iter().map(|item| item.content.arena_bytes).sum();
        let granted: u64 = unowned.granted.values().sum();
        let sum = listed + others.arena_bytes + granted + unowned.superseded_bytes;
        assert_eq!(sum, usage.used_bytes, "bytes of the arena that the inventory does not explain");
        let in_annex = objects.iter().map(|item| item.content.annex_bytes).sum::<u64>();
        let in_annex = in_annex + others.annex_bytes + unowned.annex_bytes;
        assert_eq!(
            in_annex, usage.annex_used_bytes,
            "bytes of the annex that the inventory does not explain"
        );
        let on_disk = objects.iter().map(|item| item.content.disk_bytes).sum::<u64>() + others.disk_bytes;
        assert_eq!(on_disk, usage.spilled_bytes, "bytes on disk that the inventory does not explain");
    }
}
