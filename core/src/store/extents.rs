//! Which ranges of the arena are free.
//!
//! Metadata lives outside the arena, so a client that scribbles cannot corrupt it. Any part of an allocated range
//! can be freed by itself: a client carves a region into objects that die one by one. Best fit, lowest offset
//! first: holes are used before the untouched rest, whose pages cost ten times as much at the first touch.

use crate::event::Extent;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::limits::OBJECT_ALIGN;

const ALIGN: u64 = OBJECT_ALIGN as u64;
/// Protection of memory changes by pages of this size.
const PAGE: u64 = 4096;
/// Holes of nearly the right size that are tried before a larger one is cut.
const NEAR_FITS: usize = 8;

/// Free ranges of an arena.
#[derive(Debug)]
pub struct Extents {
    capacity_bytes: u64,
    free_bytes: u64,
    by_offset: BTreeMap<u64, u64>,
    by_len: BTreeSet<(u64, u64)>,
}

/// A range was given back that is not in use as a whole.
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
        let mut new =
            Self { capacity_bytes, free_bytes: 0, by_offset: BTreeMap::new(), by_len: BTreeSet::new() };
        if capacity_bytes > 0 {
            new.add(0, capacity_bytes);
            new.free_bytes = capacity_bytes;
        }
        new
    }

    /// Takes a range of at least `len` bytes; `None` if no hole is large enough.
    pub fn take(&mut self, len: u64) -> Option<Extent> {
        self.take_aligned(rounded(len), ALIGN)
    }

    /// Takes whole pages, for a region whose protection differs from its neighbours'.
    pub fn take_pages(&mut self, len: u64) -> Option<Extent> {
        self.take_aligned(len.max(1).checked_next_multiple_of(PAGE)?, PAGE)
    }

    fn take_aligned(&mut self, len: u64, align: u64) -> Option<Extent> {
        let fits = |hole: u64, offset: u64| offset.next_multiple_of(align) + len <= offset + hole;
        let near = self.by_len.range((len, 0)..).take(NEAR_FITS).find(|(hole, offset)| fits(*hole, *offset));
        let &(hole, start) = near.or_else(|| self.by_len.range((len + align, 0)..).next())?;
        let offset = start.next_multiple_of(align);
        self.cut(start, hole);
        if offset > start {
            self.add(start, offset - start);
        }
        if start + hole > offset + len {
            self.add(offset + len, start + hole - offset - len);
        }
        self.free_bytes -= len;
        Some(Extent { offset, len })
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

    /// Bytes in use.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.capacity_bytes - self.free_bytes
    }

    /// Bytes in all.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// The largest range that could be taken.
    #[must_use]
    pub fn largest_free_bytes(&self) -> u64 {
        self.by_len.last().map_or(0, |(len, _)| *len)
    }

    /// The free ranges, by offset.
    pub fn free(&self) -> impl Iterator<Item = Extent> {
        self.by_offset.iter().map(|(offset, len)| Extent { offset: *offset, len: *len })
    }

    fn add(&mut self, offset: u64, len: u64) {
        self.by_offset.insert(offset, len);
        self.by_len.insert((len, offset));
    }

    fn cut(&mut self, offset: u64, len: u64) {
        self.by_offset.remove(&offset);
        self.by_len.remove(&(len, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_never_overlap_and_all_comes_back(ops in proptest::collection::vec((0u64..5000, any::<u16>()), 1..400)) {
            let mut extents = Extents::new(1 << 17);
            let mut taken: Vec<Extent> = Vec::new();
            for (len, choice) in ops {
                if choice % 3 > 0 {
                    let new = if choice % 3 == 1 { extents.take(len) } else { extents.take_pages(len) };
                    if let Some(new) = new {
                        prop_assert!(new.len >= len);
                        prop_assert!(choice % 3 == 1 || (new.offset % PAGE == 0 && new.len % PAGE == 0));
                        prop_assert!(taken.iter().all(|t| t.offset + t.len <= new.offset || new.offset + new.len <= t.offset));
                        taken.push(new);
                    }
                } else if !taken.is_empty() {
                    let old = taken.swap_remove(choice as usize % taken.len());
                    let half = rounded(old.len / 2).min(old.len);
                    extents.give(Extent { offset: old.offset, len: half }).unwrap();
                    let first_half = Extent { offset: old.offset, len: half };
                    prop_assert!(extents.give(first_half).is_err(), "given twice");
                    if half < old.len {
                        extents.give(Extent { offset: old.offset + half, len: old.len - half }).unwrap();
                    }
                }
                prop_assert_eq!(extents.used_bytes(), taken.iter().map(|t| t.len).sum::<u64>());
            }
            for t in taken {
                extents.give(t).unwrap();
            }
            prop_assert_eq!(extents.largest_free_bytes(), 1 << 17);
        }
    }

    #[test]
    fn ranges_outside_are_refused() {
        let mut extents = Extents::new(4096);
        assert!(extents.give(Extent { offset: 0, len: 64 }).is_err());
        assert!(extents.give(Extent { offset: u64::MAX - 63, len: 64 }).is_err());
        assert!(extents.take(4097).is_none());
        assert_eq!(extents.take(1), Some(Extent { offset: 0, len: 64 }));
    }
}
