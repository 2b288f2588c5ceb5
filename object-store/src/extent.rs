//! Which bytes of the arena are free.
//!
//! Pure bookkeeping: the allocator never touches the arena, so nothing that a client writes there can harm it. Space
//! is given out in granules of 64 bytes. An allocation has no identity: any granule-aligned part of what is
//! allocated can be freed by itself, which is how a region granted to a client is carved into objects.
//!
//! Below the *frontier* lies what was given out at least once: its pages are warm, writing to them is ten times as
//! fast as to fresh ones. An allocation takes the smallest free range below the frontier that fits (the lowest of
//! several), and moves the frontier only when there is none. Best fit keeps large ranges whole for large
//! objects; the refused alternative, first fit by address, needs a second index to be logarithmic and is no better in
//! the mixes of sizes that chunks have.
//!
//! All operations take O(log n) steps, n being the number of free ranges.

use crate::error::NoSpace;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::limits::OBJECT_ALIGN;

/// Sizes and offsets are multiples of this.
pub const GRANULE_BYTES: u64 = OBJECT_ALIGN as u64;
const PLACE: &str = "the object arena";

/// Why the allocator refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtentError {
    /// An alignment that is no power of two, or an offset between granules.
    #[error("{value} is not a power of two, or not a multiple of {granule_bytes}")]
    Misaligned {
        /// What was given.
        value: u64,
        /// The granule.
        granule_bytes: u64,
    },
    /// No free range is large enough.
    #[error(transparent)]
    NoSpace(#[from] NoSpace),
    /// Some of the range is free already or was never given out.
    #[error("range {offset}+{len} is not allocated, at least not all of it")]
    NotAllocated {
        /// First byte of the range.
        offset: u64,
        /// Bytes of the range.
        len: u64,
    },
}

/// A range of bytes in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Bytes, a multiple of the granule.
    pub len: u64,
}

/// The free and used ranges of one arena.
#[derive(Debug)]
pub struct ExtentAllocator {
    capacity_bytes: u64,
    /// Everything above was never given out.
    frontier: u64,
    len_by_offset: BTreeMap<u64, u64>,
    by_len: BTreeSet<(u64, u64)>,
    free_below_frontier_bytes: u64,
}

impl ExtentAllocator {
    /// All of `capacity_bytes` (rounded down to granules) is free.
    pub fn new(capacity_bytes: u64) -> ExtentAllocator {
        ExtentAllocator {
            capacity_bytes: capacity_bytes / GRANULE_BYTES * GRANULE_BYTES,
            frontier: 0,
            len_by_offset: BTreeMap::new(),
            by_len: BTreeSet::new(),
            free_below_frontier_bytes: 0,
        }
    }

    /// Takes `len` bytes, rounded up to granules (an empty one takes a granule), at a multiple of `align`.
    ///
    /// # Errors
    /// [`NoSpace`] with the largest range that is free, `Misaligned` if `align` is no power of two.
    pub fn alloc(&mut self, len: u64, align: u64) -> Result<Extent, ExtentError> {
        if !align.is_power_of_two() {
            return Err(ExtentError::Misaligned { value: align, granule_bytes: GRANULE_BYTES });
        }
        if self.capacity_bytes < len || self.capacity_bytes < align {
            return Err(self.no_space(len.max(align)));
        }
        let align = align.max(GRANULE_BYTES);
        let len = len.max(1).next_multiple_of(GRANULE_BYTES);
        match self.alloc_warm(len, align) {
            Some(extent) => Ok(extent),
            None => self.alloc_fresh(len, align),
        }
    }

    /// Gives a range back; it may be any part of what was allocated.
    ///
    /// # Errors
    /// `NotAllocated` if some of it is free, `Misaligned` if the offset lies within a granule. Then nothing changes.
    pub fn free(&mut self, offset: u64, len: u64) -> Result<(), ExtentError> {
        if !offset.is_multiple_of(GRANULE_BYTES) {
            return Err(ExtentError::Misaligned { value: offset, granule_bytes: GRANULE_BYTES });
        }
        let refused = ExtentError::NotAllocated { offset, len };
        let rounded = len.max(1).checked_next_multiple_of(GRANULE_BYTES).ok_or(refused)?;
        let end = offset.checked_add(rounded).filter(|end| *end <= self.frontier).ok_or(refused)?;
        let before = self.len_by_offset.range(..end).next_back().map(|(&o, &l)| (o, l));
        if before.is_some_and(|(o, l)| offset < o + l) {
            return Err(refused);
        }
        let (mut start, mut free_end) = (offset, end);
        if let Some((o, l)) = before.filter(|(o, l)| o + l == offset) {
            self.remove(o, l);
            start = o;
        }
        if let Some(&l) = self.len_by_offset.get(&end) {
            self.remove(end, l);
            free_end = end + l;
        }
        self.insert(start, free_end - start);
        Ok(())
    }

    /// Bytes given out.
    pub fn used_bytes(&self) -> u64 {
        self.frontier - self.free_below_frontier_bytes
    }

    /// Bytes that could be given out in all.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Largest single range that could be given out now.
    pub fn largest_free(&self) -> u64 {
        let warm = self.by_len.last().map_or(0, |(len, _)| *len);
        warm.max(self.capacity_bytes - self.fresh_start())
    }

    /// Everything at and above this offset was never given out.
    pub fn high_water(&self) -> u64 {
        self.frontier
    }

    /// Free ranges below the high-water mark, lowest first: candidates for giving their pages back.
    pub fn free_ranges(&self) -> impl Iterator<Item = Extent> + '_ {
        self.len_by_offset.iter().map(|(&offset, &len)| Extent { offset, len })
    }

    fn alloc_warm(&mut self, len: u64, align: u64) -> Option<Extent> {
        // The smallest range may fit as it happens to lie; if not, this much room fits wherever it lies.
        let worst = len.checked_add(align - GRANULE_BYTES)?;
        let fits =
            |(free_len, offset): &(u64, u64)| offset.next_multiple_of(align) + len <= offset + free_len;
        let tightest = self.by_len.range((len, 0)..).next().copied().filter(fits);
        let (free_len, offset) = tightest.or_else(|| self.by_len.range((worst, 0)..).next().copied())?;
        Some(self.carve(offset, free_len, len, align))
    }

    fn alloc_fresh(&mut self, len: u64, align: u64) -> Result<Extent, ExtentError> {
        let start = self.fresh_start();
        let at = start.checked_next_multiple_of(align);
        let end = at.and_then(|at| at.checked_add(len)).filter(|end| *end <= self.capacity_bytes);
        let Some(end) = end else { return Err(self.no_space(len)) };
        let warm_len = self.frontier - start;
        if 0 < warm_len {
            self.remove(start, warm_len);
        }
        self.frontier = self.frontier.max(end);
        let free_len = self.frontier - start;
        self.insert(start, free_len);
        Ok(self.carve(start, free_len, len, align))
    }

    /// Takes `len` out of a free range in which it fits.
    fn carve(&mut self, offset: u64, free_len: u64, len: u64, align: u64) -> Extent {
        let at = offset.next_multiple_of(align);
        debug_assert!(at + len <= offset + free_len, "{len} fits {offset}+{free_len}");
        self.remove(offset, free_len);
        if offset < at {
            self.insert(offset, at - offset);
        }
        let rest = offset + free_len - (at + len);
        if 0 < rest {
            self.insert(at + len, rest);
        }
        Extent { offset: at, len }
    }

    /// Where the free range that touches the frontier begins, or the frontier itself.
    fn fresh_start(&self) -> u64 {
        match self.len_by_offset.last_key_value() {
            Some((&offset, &len)) if offset + len == self.frontier => offset,
            _ => self.frontier,
        }
    }

    fn insert(&mut self, offset: u64, len: u64) {
        self.len_by_offset.insert(offset, len);
        self.by_len.insert((len, offset));
        self.free_below_frontier_bytes += len;
    }

    fn remove(&mut self, offset: u64, len: u64) {
        let known = self.len_by_offset.remove(&offset) == Some(len) && self.by_len.remove(&(len, offset));
        debug_assert!(known, "both indices hold {offset}+{len}");
        self.free_below_frontier_bytes -= len;
    }

    fn no_space(&self, needed_bytes: u64) -> ExtentError {
        NoSpace { needed_bytes, available_bytes: self.largest_free(), place: PLACE }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn warm_ranges_come_before_fresh_ones() {
        let mut allocator = ExtentAllocator::new(1 << 20);
        let a = allocator.alloc(1000, 64).unwrap();
        let b = allocator.alloc(64, 64).unwrap();
        assert_eq!((a, b.offset), (Extent { offset: 0, len: 1024 }, 1024));
        allocator.free(a.offset, 1000).unwrap();
        assert_eq!(allocator.alloc(512, 64).unwrap().offset, 0);
        assert_eq!(allocator.high_water(), 1088);
        assert_eq!(allocator.alloc(4096, 4096).unwrap().offset, 4096);
        assert_eq!(allocator.free_ranges().map(|e| e.offset).collect::<Vec<_>>(), [512, 1088]);
        assert_eq!(allocator.used_bytes(), 512 + 64 + 4096);
    }

    #[test]
    fn parts_are_freed_by_themselves_and_never_twice() {
        let mut allocator = ExtentAllocator::new(4096);
        let all = allocator.alloc(4096, 64).unwrap();
        assert!(matches!(allocator.alloc(1, 64), Err(ExtentError::NoSpace(n)) if n.available_bytes == 0));
        allocator.free(1024, 512).unwrap();
        for (offset, len) in
            [(1024, 1), (960, 128), (1472, 128), (4096, 64), (0, 4096), (0, u64::MAX), (u64::MAX - 63, 64)]
        {
            assert_eq!(allocator.free(offset, len), Err(ExtentError::NotAllocated { offset, len }));
        }
        assert!(matches!(allocator.free(1, 1), Err(ExtentError::Misaligned { .. })));
        assert!(matches!(allocator.alloc(1, 48), Err(ExtentError::Misaligned { .. })));
        allocator.free(1536, all.len - 1536).unwrap();
        allocator.free(0, 1024).unwrap();
        assert_eq!((allocator.used_bytes(), allocator.largest_free()), (0, 4096));
        assert!(allocator.alloc(u64::MAX, 64).is_err() && allocator.alloc(1, 1 << 63).is_err());
    }

    proptest! {
        #[test]
        fn never_overlaps_and_coalesces_fully(
            steps in prop::collection::vec((0..5_u8, 0..3000_u64, 0..8_u32, any::<u16>()), 1..200),
        ) {
            const GRANULES: usize = 1024;
            let mut allocator = ExtentAllocator::new(GRANULES as u64 * GRANULE_BYTES);
            let mut used = [false; GRANULES];
            let granules = |e: &Extent| {
                (e.offset / GRANULE_BYTES) as usize..((e.offset + e.len) / GRANULE_BYTES) as usize
            };
            let mut live: Vec<Extent> = Vec::new();
            for (what, len, align, pick) in steps {
                if what < 3 || live.is_empty() {
                    let Ok(extent) = allocator.alloc(len, 64 << align) else {
                        let need = (len.max(1).div_ceil(64) + (1 << align)) as usize;
                        prop_assert!(used.split(|u| *u).all(|gap| gap.len() < need));
                        continue;
                    };
                    prop_assert!(extent.offset % (64 << align) == 0 && len <= extent.len);
                    prop_assert!(used[granules(&extent)].iter().all(|u| !u));
                    used[granules(&extent)].fill(true);
                    live.push(extent);
                    continue;
                }
                let index = pick as usize % live.len();
                let mut extent = live.swap_remove(index);
                if what == 3 && GRANULE_BYTES < extent.len {
                    let tail = extent.len / GRANULE_BYTES / 2 * GRANULE_BYTES;
                    extent.len -= tail;
                    live.push(extent);
                    extent = Extent { offset: extent.offset + extent.len, len: tail };
                }
                allocator.free(extent.offset, extent.len).unwrap();
                prop_assert!(allocator.free(extent.offset, extent.len).is_err());
                used[granules(&extent)].fill(false);
                let used_count = used.iter().filter(|u| **u).count() as u64;
                prop_assert_eq!(allocator.used_bytes(), used_count * GRANULE_BYTES);
            }
            for extent in live {
                allocator.free(extent.offset, extent.len).unwrap();
            }
            prop_assert_eq!(allocator.used_bytes(), 0);
            prop_assert_eq!(allocator.largest_free(), allocator.capacity_bytes());
            prop_assert!(allocator.free_ranges().count() <= 1);
        }
    }
}
