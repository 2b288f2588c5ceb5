//! The annex: the part of the arena that is a file on disk, for copies that are larger than its memory.
//!
//! Its offsets are those behind the memory. Its copies are on disk already: they are never spilled, and
//! evicting them makes no room in memory. They take whole pages, so that no disk block belongs to two of
//! them. A freed range is used again when its blocks were returned to the disk.

use super::Extents;
use std::collections::BTreeMap;
use tharsis_types::{Extent, ObjectId};

/// Size of disk blocks, and of the pages by which clients may write.
const PAGE: u64 = 4096;

/// The copies and the free ranges of the file.
#[derive(Debug)]
pub(super) struct Annex {
    /// Its first byte in the arena.
    base: u64,
    extents: Extents,
    /// Copies without pins that exist on other nodes, oldest first.
    evictable: BTreeMap<u64, ObjectId>,
    evictable_bytes: u64,
    /// Freed ranges whose return to the disk was not requested yet.
    unneeded: Vec<Extent>,
    /// Bytes of these, and of ranges whose return to the disk is under way.
    leaving_bytes: u64,
}

impl Annex {
    /// An empty one behind `base` bytes of memory.
    pub(super) fn new(base: u64, capacity_bytes: u64) -> Self {
        Self {
            base,
            extents: Extents::new(capacity_bytes / PAGE * PAGE),
            evictable: BTreeMap::new(),
            evictable_bytes: 0,
            unneeded: Vec::new(),
            leaving_bytes: 0,
        }
    }

    /// Whether a range lies in it.
    pub(super) fn holds(&self, extent: Extent) -> bool {
        self.base <= extent.offset && self.extents.capacity_bytes() > 0
    }

    /// Bytes that a copy of `len` bytes takes.
    pub(super) fn rounded(len: u64) -> u64 {
        len.max(1).next_multiple_of(PAGE)
    }

    /// Whether an object may begin at this offset.
    pub(super) fn is_aligned(extent: Extent) -> bool {
        extent.offset.is_multiple_of(PAGE)
    }

    /// Takes a range of whole pages.
    pub(super) fn take(&mut self, len: u64) -> Option<Extent> {
        let taken = self.extents.take_pages(len)?;
        Some(Extent { offset: self.base + taken.offset, len: taken.len })
    }

    /// The oldest copy that may be evicted to make room for `bytes`. `None` if evicting all copies would not
    /// be enough, or if the ranges on their way back to the disk will be.
    pub(super) fn victim(&self, bytes: u64) -> Option<ObjectId> {
        let soon = self.free_bytes() + self.leaving_bytes;
        let helps = (soon < bytes || self.leaving_bytes == 0) && bytes <= soon + self.evictable_bytes;
        self.evictable.first_key_value().filter(|_| helps).map(|(_, object)| *object)
    }

    /// Frees a range: its blocks are to be returned to the disk.
    pub(super) fn give(&mut self, extent: Extent) {
        self.leaving_bytes += extent.len;
        self.unneeded.push(extent);
    }

    /// Takes the ranges whose blocks are to be returned to the disk.
    pub(super) fn take_unneeded(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.unneeded)
    }

    /// The blocks of a range were returned to the disk.
    pub(super) fn blocks_freed(&mut self, extent: Extent) {
        let offset = extent.offset.saturating_sub(self.base);
        let given = self.extents.give(Extent { offset, len: extent.len });
        debug_assert!(given.is_ok(), "{given:?}");
        self.leaving_bytes -= extent.len;
    }

    /// A copy may be evicted.
    pub(super) fn rest(&mut self, age: u64, object: ObjectId, bytes: u64) {
        self.evictable.insert(age, object);
        self.evictable_bytes += bytes;
    }

    /// A copy must stay, or is gone.
    pub(super) fn hold(&mut self, age: u64, bytes: u64) {
        if self.evictable.remove(&age).is_some() {
            self.evictable_bytes -= bytes;
        }
    }

    /// Bytes in use, including ranges on their way back to the disk.
    pub(super) fn used_bytes(&self) -> u64 {
        self.extents.used_bytes()
    }

    /// Bytes in all.
    pub(super) fn capacity_bytes(&self) -> u64 {
        self.extents.capacity_bytes()
    }

    /// Bytes of ranges on their way back to the disk.
    pub(super) fn leaving_bytes(&self) -> u64 {
        self.leaving_bytes
    }

    /// Copies that may be evicted, and their bytes.
    pub(super) fn evictable(&self) -> (impl Iterator<Item = (u64, ObjectId)>, u64) {
        (self.evictable.iter().map(|(age, object)| (*age, *object)), self.evictable_bytes)
    }

    fn free_bytes(&self) -> u64 {
        self.extents.capacity_bytes() - self.extents.used_bytes()
    }
}
