//! Free ranges of the arena.
//!
//! Metadata lives outside the arena, so a client that scribbles cannot corrupt it. Any part of an allocated
//! range can be freed by itself: a client carves a region into objects that die one by one.
//!
//! Small ranges are taken from the low end, the lowest hole first; large ones from the high end of the
//! smallest hole that is large enough. A small object that outlives its neighbours would otherwise stand in
//! the middle of room for a large one. Best fit for all ranges would be simpler, but then a store is full at
//! 83 % if objects are freed in the order in which they came. With two ends it is full at 93 % (the traces
//! are in `extents_tests.rs`). Both ends reuse ranges before they take the untouched middle, whose pages cost
//! ten times as much at the first touch.

use std::collections::BTreeMap;
use tharsis_types::Extent;
use tharsis_types::limits::{MIB, OBJECT_ALIGN};

const ALIGN: u64 = OBJECT_ALIGN as u64;
/// Size of the pages by which memory protection changes, and of the blocks by which disks are written around
/// the page cache.
const PAGE: u64 = 4096;
/// Ranges of this size and above begin at a page.
const PAGED: u64 = MIB as u64;
/// Ranges above this are taken from the high end. Regions from which clients carve small objects are not
/// above it.
const SMALL_MAX: u64 = 16 * MIB as u64;
/// Number of holes of each class that are tried for a small range, lowest first.
const NEAR_FITS: usize = 8;
/// A class of holes per power of two.
const CLASSES: usize = 64;

/// Free ranges of an arena.
#[derive(Debug)]
pub struct Extents {
    capacity_bytes: u64,
    free_bytes: u64,
    by_offset: BTreeMap<u64, u64>,
    /// The same ranges: those of 2^n to 2^(n+1) - 1 bytes in class n, by offset.
    by_class: [BTreeMap<u64, u64>; CLASSES],
    /// Bit n is set where class n has holes.
    classes: u64,
}

/// A hole, and the offset at which a range is cut from it.
#[derive(Clone, Copy, Debug)]
struct Cut {
    hole: Extent,
    offset: u64,
}

/// A range that was given back is not in use as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("range {offset}+{len} is not in use as a whole")]
pub struct NotInUse {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Bytes that an object of `len` bytes takes.
#[must_use]
pub fn rounded(len: u64) -> u64 {
    len.max(1).next_multiple_of(ALIGN)
}

impl Extents {
    /// An arena with nothing in it.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let capacity_bytes = capacity_bytes / ALIGN * ALIGN;
        let mut new = Self {
            capacity_bytes,
            free_bytes: 0,
            by_offset: BTreeMap::new(),
            by_class: std::array::from_fn(|_| BTreeMap::new()),
            classes: 0,
        };
        if capacity_bytes > 0 {
            new.add(0, capacity_bytes);
            new.free_bytes = capacity_bytes;
        }
        new
    }

    /// Takes a range of at least `len` bytes, which begins at a page if it has `PAGED` bytes or more;
    /// `None` if no hole is large enough.
    pub fn take(&mut self, len: u64) -> Option<Extent> {
        let align = if len < PAGED { ALIGN } else { PAGE };
        self.take_aligned(len.max(1).checked_next_multiple_of(ALIGN)?, align)
    }

    /// Takes whole pages, for a region whose protection differs from its neighbours'.
    pub fn take_pages(&mut self, len: u64) -> Option<Extent> {
        self.take_aligned(len.max(1).checked_next_multiple_of(PAGE)?, PAGE)
    }

    fn take_aligned(&mut self, len: u64, align: u64) -> Option<Extent> {
        let cut = if len <= SMALL_MAX { self.lowest(len, align)? } else { self.tightest(len, align)? };
        let (hole, offset) = (cut.hole, cut.offset);
        self.cut(hole.offset, hole.len);
        if hole.offset < offset {
            self.add(hole.offset, offset - hole.offset);
        }
        let (end, hole_end) = (offset + len, hole.offset + hole.len);
        if end < hole_end {
            self.add(end, hole_end - end);
        }
        self.free_bytes -= len;
        Some(Extent { offset, len })
    }

    /// The low end of the lowest hole that is large enough. Only the first few holes of each class are tried,
    /// unless none of them fits.
    fn lowest(&self, len: u64, align: u64) -> Option<Cut> {
        let at_low_end = |hole: Extent| {
            let offset = hole.offset.checked_next_multiple_of(align)?;
            (offset + len <= hole.offset + hole.len).then_some(Cut { hole, offset })
        };
        let near =
            self.classes_from(len).filter_map(|class| self.holes(class).take(NEAR_FITS).find_map(at_low_end));
        let near = near.min_by_key(|cut| cut.offset);
        near.or_else(|| self.classes_from(len).flat_map(|class| self.holes(class)).find_map(at_low_end))
    }

    /// The high end of the smallest hole that is large enough.
    fn tightest(&self, len: u64, align: u64) -> Option<Cut> {
        let at_high_end = |hole: Extent| {
            let offset = (hole.offset + hole.len).checked_sub(len)? / align * align;
            (hole.offset <= offset).then_some(Cut { hole, offset })
        };
        let of_class = |class| self.holes(class).filter_map(at_high_end).min_by_key(|cut| cut.hole.len);
        self.classes_from(len).find_map(of_class)
    }

    /// Gives a range back, all or part of one that was taken.
    ///
    /// # Errors
    /// [`NotInUse`] if any of it is free already, or outside the arena.
    pub fn give(&mut self, extent: Extent) -> Result<(), NotInUse> {
        let (mut offset, mut len) = (extent.offset, rounded(extent.len));
        let wrong = NotInUse { offset, len };
        let end = offset.checked_add(len).filter(|end| *end <= self.capacity_bytes).ok_or(wrong)?;
        let before = self.by_offset.range(..=offset).next_back().map(|(o, l)| (*o, *l));
        let after = self.by_offset.range(offset..).next().map(|(o, l)| (*o, *l));
        let overlaps = before.is_some_and(|(o, l)| o + l > offset) || after.is_some_and(|(o, _)| o < end);
        if overlaps || !offset.is_multiple_of(ALIGN) {
            return Err(wrong);
        }
        self.free_bytes += len;
        if let Some((o, l)) = before.filter(|(o, l)| o + l == offset) {
            self.cut(o, l);
            offset = o;
            len += l;
        }
        if let Some((o, l)) = after.filter(|(o, _)| *o == end) {
            self.cut(o, l);
            len += l;
        }
        self.add(offset, len);
        Ok(())
    }

    /// Bytes that are in use.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.capacity_bytes - self.free_bytes
    }

    /// Bytes in all, used and free.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// The largest free range.
    #[must_use]
    pub fn largest_free_bytes(&self) -> u64 {
        let largest =
            self.classes.checked_ilog2().and_then(|class| self.by_class[class as usize].values().max());
        largest.copied().unwrap_or(0)
    }

    /// The free ranges, by offset.
    pub fn free(&self) -> impl Iterator<Item = Extent> {
        self.by_offset.iter().map(|(offset, len)| Extent { offset: *offset, len: *len })
    }

    /// Classes with holes, from that of `len` upwards.
    fn classes_from(&self, len: u64) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.classes >> class_of(len) << class_of(len);
        std::iter::from_fn(move || {
            let class = left.trailing_zeros() as usize;
            // Clears the lowest bit; nothing is left at zero.
            left &= left.checked_sub(1)?;
            Some(class)
        })
    }

    /// Holes of a class, lowest first.
    fn holes(&self, class: usize) -> impl Iterator<Item = Extent> {
        self.by_class[class].iter().map(|(offset, len)| Extent { offset: *offset, len: *len })
    }

    fn add(&mut self, offset: u64, len: u64) {
        self.by_offset.insert(offset, len);
        self.by_class[class_of(len)].insert(offset, len);
        self.classes |= 1 << class_of(len);
    }

    fn cut(&mut self, offset: u64, len: u64) {
        let class = class_of(len);
        self.by_offset.remove(&offset);
        self.by_class[class].remove(&offset);
        if self.by_class[class].is_empty() {
            self.classes &= !(1 << class);
        }
    }
}

/// Class of a hole that is not empty.
fn class_of(len: u64) -> usize {
    len.ilog2() as usize
}

#[cfg(test)]
#[path = "extents_tests.rs"]
mod tests;
