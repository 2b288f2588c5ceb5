//! The fill of the arena, and eviction to make room.

use super::{Extents, Store, rounded};
use crate::journal::{About, Fact};
use tharsis_types::{Extent, Failure, FailureKind, ObjectId};

/// At most 1 / `RESERVE_SHARE` of the arena is kept free to read back copies on disk.
const RESERVE_SHARE: u64 = 4;

/// The fill of the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes in use, regions included.
    pub used_bytes: u64,
    /// Bytes in all.
    pub capacity_bytes: u64,
    /// Objects.
    pub object_count: usize,
    /// Objects that are pinned.
    pub pinned_count: usize,
    /// Objects with a copy on disk.
    pub spilled_count: usize,
    /// Bytes of the copies on disk.
    pub spilled_bytes: u64,
    /// Bytes that are being written to disk.
    pub writing_bytes: u64,
    /// Bytes of the annex in use.
    pub annex_used_bytes: u64,
    /// Bytes of the annex in all.
    pub annex_capacity_bytes: u64,
}

impl Store {
    /// Bytes that a region of `bytes` leaves free, so that the largest copy on disk can be read back even
    /// when the disk takes no more. At most a quarter of the arena, and nothing if the region takes all of
    /// it.
    #[must_use]
    pub fn reserve_beside(&self, bytes: u64) -> u64 {
        let capacity = self.extents.capacity_bytes();
        rounded(self.disk.largest_bytes()).min(capacity / RESERVE_SHARE).min(capacity.saturating_sub(bytes))
    }

    /// Bytes that are free, or would be if copies that exist elsewhere were evicted.
    #[must_use]
    pub fn spare_bytes(&self) -> u64 {
        self.extents.capacity_bytes() - self.extents.used_bytes() + self.evictable_bytes
    }

    /// The fill of the arena.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let pinned_count = self.objects.values().filter(|s| s.pins > 0).count();
        Usage { pinned_count, ..self.fill() }
    }

    /// The fill of the arena without the number of pinned objects, for which all would have to be looked at.
    #[must_use]
    pub fn fill(&self) -> Usage {
        Usage {
            used_bytes: self.extents.used_bytes(),
            capacity_bytes: self.extents.capacity_bytes(),
            object_count: self.objects.len(),
            pinned_count: 0,
            spilled_count: self.disk.there_count(),
            spilled_bytes: self.disk.there_bytes(),
            writing_bytes: self.disk.writing_bytes(),
            annex_used_bytes: self.annex.used_bytes(),
            annex_capacity_bytes: self.annex.capacity_bytes(),
        }
    }

    /// Sizes of tables that must be empty once there are no references.
    pub(crate) fn leftovers(&self) -> [(&'static str, usize); 7] {
        [
            ("stored objects", self.objects.len()),
            ("spilled objects", self.disk.there_count()),
            ("clients with regions", self.regions.len()),
            ("clients with pins", self.pins.len()),
            ("transfers of what was written here meanwhile", self.superseded.len()),
            ("freed copies of what was made again", self.replaced.len()),
            ("values that were written again", self.doubles.len()),
        ]
    }

    /// Free ranges, whose pages can go back to the system when the node is idle.
    pub fn free_ranges(&self) -> impl Iterator<Item = Extent> {
        self.extents.free()
    }

    /// Bytes that are free, or would be if all unpinned copies were evicted or written to disk.
    #[must_use]
    pub fn receivable_bytes(&self) -> u64 {
        let free = self.extents.capacity_bytes() - self.extents.used_bytes();
        free + self.evictable_bytes + self.spillable_bytes + self.disk.writing_bytes()
    }

    /// Bytes in use that cannot be evicted, even when the writes to disk that are under way have ended.
    #[must_use]
    pub fn settled_bytes(&self) -> u64 {
        let (used, leaving) = (self.extents.used_bytes(), self.evictable_bytes + self.disk.writing_bytes());
        assert!(leaving <= used, "{leaving} bytes can go of {used} that are in use");
        used - leaving
    }

    /// Whether a range of this size will be free when the writes to disk that are under way have ended. This
    /// is an estimate: evicted copies need not lie side by side.
    #[must_use]
    pub fn will_have_room(&self, bytes: u64) -> bool {
        bytes <= self.extents.largest_free_bytes() + self.evictable_bytes + self.disk.writing_bytes()
    }

    pub(super) fn allocate(
        &mut self,
        bytes: u64,
        take: fn(&mut Extents, u64) -> Option<Extent>,
        evicted: &mut Vec<ObjectId>,
    ) -> Result<Extent, Failure> {
        let capacity = self.extents.capacity_bytes();
        if bytes > capacity {
            return self.allocate_in_annex(bytes, evicted);
        }
        loop {
            if let Some(extent) = take(&mut self.extents, bytes) {
                return Ok(extent);
            }
            let free = capacity - self.extents.used_bytes();
            let oldest = self.evictable.first_key_value().filter(|_| bytes <= free + self.evictable_bytes);
            let Some((_, oldest)) = oldest else { return Err(self.full(bytes)) };
            let oldest = *oldest;
            self.journal.note(About::Object(oldest), Fact::Evicted);
            self.drop_object(oldest);
            if !self.disk.is_there(oldest) {
                evicted.push(oldest);
            }
        }
    }

    fn allocate_in_annex(&mut self, bytes: u64, evicted: &mut Vec<ObjectId>) -> Result<Extent, Failure> {
        let (memory, annex) = (self.extents.capacity_bytes(), self.annex.capacity_bytes());
        if bytes > annex {
            let mut text = format!("{bytes} bytes do not fit into a store of {memory} bytes");
            if annex > 0 {
                text += &format!(", nor into its file of {annex} bytes for larger values");
            }
            return Err(Failure::new(FailureKind::ObjectTooLarge, text));
        }
        loop {
            if let Some(extent) = self.annex.take(bytes) {
                return Ok(extent);
            }
            let Some(oldest) = self.annex.victim(bytes) else {
                let used = self.annex.used_bytes();
                let text = format!(
                    "{bytes} bytes needed, more than the store has, and {used} of {annex} bytes in use of its file for larger values"
                );
                return Err(Failure::new(FailureKind::StoreFull, text));
            };
            self.journal.note(About::Object(oldest), Fact::Evicted);
            self.drop_object(oldest);
            evicted.push(oldest);
        }
    }

    pub(super) fn full(&self, bytes: u64) -> Failure {
        let (used, capacity) = (self.extents.used_bytes(), self.extents.capacity_bytes());
        let mut text = format!(
            "{bytes} bytes needed, {used} of {capacity} bytes in use by {} objects, largest hole {} bytes",
            self.objects.len(),
            self.extents.largest_free_bytes()
        );
        let reserve = self.reserve_beside(bytes);
        if reserve > 0 {
            text += &format!(", {reserve} bytes kept free to read back what is on disk");
        }
        Failure::new(FailureKind::StoreFull, text)
    }
}
