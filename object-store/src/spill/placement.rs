//! The segment and offset for each object, the live bytes of each segment, and the quota. No I/O.
//!
//! A segment has at most one writer at a time, so that its file is written front to back; several writers get
//! several segments. A claim has the largest size that the object can have on disk, and shrinks when it is
//! committed: nothing is behind it yet.

use super::compaction::SegmentFill;
use std::collections::BTreeMap;

/// Segments with room that are kept open beside those being written; more would only scatter objects.
const OPEN_COUNT_MAX: usize = 4;

/// Place of a write that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Whether the file has yet to be made.
    pub(crate) fresh: bool,
}

/// A claim that does not fit the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverQuota {
    pub(crate) needed_bytes: u64,
    pub(crate) available_bytes: u64,
}

/// The next operation on a segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Fate {
    /// Keep the file.
    Keep,
    /// Delete the file: it has no living object, and the segment is removed from the books already.
    Delete,
}

/// The segments of one directory.
#[derive(Debug)]
pub(crate) struct Placement {
    quota_bytes: u64,
    segment_bytes: u64,
    used_bytes: u64,
    /// The part of these bytes that is in no segment.
    aside_bytes: u64,
    next_segment: u64,
    segments: BTreeMap<u64, SegmentUse>,
}

#[derive(Debug, Default)]
struct SegmentUse {
    tail: u64,
    live_bytes: u64,
    dead_bytes: u64,
    /// Bytes from each offset; claims are in neither map.
    live: BTreeMap<u64, u64>,
    dead: BTreeMap<u64, u64>,
    busy: bool,
    sealed: bool,
}

impl Placement {
    pub(crate) fn new(quota_bytes: u64, segment_bytes: u64) -> Placement {
        let segments = BTreeMap::new();
        Placement { quota_bytes, segment_bytes, used_bytes: 0, aside_bytes: 0, next_segment: 0, segments }
    }

    /// Counts `bytes` of the directory that are in no segment.
    pub(crate) fn set_aside(&mut self, bytes: u64) -> Result<(), OverQuota> {
        let available_bytes = self.free_bytes();
        if available_bytes < bytes {
            return Err(OverQuota { needed_bytes: bytes, available_bytes });
        }
        self.used_bytes += bytes;
        self.aside_bytes += bytes;
        self.check_quota();
        Ok(())
    }

    /// Subtracts bytes that were [set aside](Placement::set_aside).
    pub(crate) fn give_back(&mut self, bytes: u64) {
        assert!(bytes <= self.aside_bytes, "{bytes} bytes come back of {} set aside", self.aside_bytes);
        self.used_bytes -= bytes;
        self.aside_bytes -= bytes;
        self.check_quota();
    }

    /// Finds a place for `bytes`; an object larger than a segment gets its own.
    pub(crate) fn claim(&mut self, bytes: u64) -> Result<Claim, OverQuota> {
        let available_bytes = self.free_bytes();
        if available_bytes < bytes {
            return Err(OverQuota { needed_bytes: bytes, available_bytes });
        }
        self.used_bytes += bytes;
        self.check_quota();
        let segment_bytes = self.segment_bytes;
        let fits = |segment: &SegmentUse| {
            !segment.busy && !segment.sealed && bytes <= segment_bytes.saturating_sub(segment.tail)
        };
        if let Some((&id, segment)) = self.segments.iter_mut().find(|(_, segment)| fits(segment)) {
            let offset = segment.tail;
            segment.tail += bytes;
            segment.busy = true;
            return Ok(Claim { segment: id, offset, bytes, fresh: false });
        }
        self.seal_surplus();
        let id = self.next_segment;
        self.next_segment += 1;
        let segment = SegmentUse { tail: bytes, busy: true, ..SegmentUse::default() };
        let replaced = self.segments.insert(id, segment);
        assert!(replaced.is_none(), "two segments have the number {id}");
        Ok(Claim { segment: id, offset: 0, bytes, fresh: true })
    }

    /// Commits a claim: the object is on disk and took `bytes` of the claim.
    pub(crate) fn commit(&mut self, claim: Claim, bytes: u64) {
        assert!(bytes <= claim.bytes, "{bytes} bytes are committed of {claim:?}");
        self.used_bytes -= claim.bytes - bytes;
        let segment = self.claimed(&claim);
        segment.tail = claim.offset + bytes;
        let replaced = segment.live.insert(claim.offset, bytes);
        assert!(replaced.is_none(), "two objects lie at the place of {claim:?}");
        segment.live_bytes += bytes;
        segment.busy = false;
        segment.check();
    }

    /// Ends a claim whose write failed; nothing more is appended to its segment.
    pub(crate) fn abort(&mut self, claim: Claim) -> Fate {
        let segment = self.claimed(&claim);
        segment.tail = claim.offset;
        segment.busy = false;
        segment.sealed = true;
        segment.check();
        self.used_bytes -= claim.bytes;
        self.settle(claim.segment)
    }

    /// Removes the object at `offset`.
    pub(crate) fn remove(&mut self, id: u64, offset: u64) -> Fate {
        let Some(segment) = self.segments.get_mut(&id) else { return Fate::Keep };
        let Some(bytes) = segment.live.remove(&offset) else { return Fate::Keep };
        segment.live_bytes -= bytes;
        segment.dead_bytes += bytes;
        let (mut start, mut end) = (offset, offset + bytes);
        if let Some((&before, &len)) = segment.dead.range(..offset).next_back() {
            assert!(before + len <= start, "the object at {offset} of segment {id} was dead before");
            if before + len == start {
                start = before;
            }
        }
        if let Some(len) = segment.dead.remove(&end) {
            end += len;
        }
        segment.dead.insert(start, end - start);
        segment.check();
        self.settle(id)
    }

    /// Prevents appends to a segment whose objects are about to be moved or punched, or are in doubt.
    pub(crate) fn hold(&mut self, id: u64) -> bool {
        match self.segments.get_mut(&id) {
            Some(segment) if !segment.busy => {
                segment.busy = true;
                true
            }
            _ => false,
        }
    }

    /// Ends a hold.
    pub(crate) fn unhold(&mut self, id: u64) -> Fate {
        if let Some(segment) = self.segments.get_mut(&id) {
            assert!(segment.busy, "segment {id} is let go of and nobody held it");
            segment.busy = false;
        }
        self.settle(id)
    }

    /// Prevents all further appends to a segment.
    pub(crate) fn seal(&mut self, id: u64) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.sealed = true;
        }
    }

    /// Notes that a hole was punched in place of a dead run.
    pub(crate) fn punched(&mut self, id: u64, offset: u64, bytes: u64) {
        let Some(segment) = self.segments.get_mut(&id) else { return };
        // The run may have grown at its end in the meantime; the new part stays.
        let Some(len) = segment.dead.remove(&offset) else { return };
        assert!(bytes <= len, "{bytes} bytes were punched of a dead run of {len}");
        if bytes < len {
            segment.dead.insert(offset + bytes, len - bytes);
        }
        segment.dead_bytes -= bytes;
        segment.check();
        self.used_bytes -= bytes;
        self.check_quota();
    }

    /// The dead runs of a segment: offset and bytes.
    pub(crate) fn dead_runs(&self, id: u64) -> Vec<(u64, u64)> {
        let segment = self.segments.get(&id);
        segment.map(|s| s.dead.iter().map(|(&offset, &bytes)| (offset, bytes)).collect()).unwrap_or_default()
    }

    pub(crate) fn fills(&self) -> Vec<SegmentFill> {
        let fill = |(&segment, use_): (&u64, &SegmentUse)| SegmentFill {
            segment,
            live_bytes: use_.live_bytes,
            dead_bytes: use_.dead_bytes,
            dead_runs: use_.dead.len() as u64,
            busy: use_.busy,
        };
        self.segments.iter().map(fill).collect()
    }

    /// Bytes on disk: living, dead but not freed, claimed, and set aside.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// The part of these bytes that was set aside.
    pub(crate) fn aside_bytes(&self) -> u64 {
        self.aside_bytes
    }

    /// Bytes until the quota.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.quota_bytes.saturating_sub(self.used_bytes)
    }

    /// The segment of a claim; the claim is at its end. A missing segment fails the first assertion.
    fn claimed(&mut self, claim: &Claim) -> &mut SegmentUse {
        let segment = self.segments.entry(claim.segment).or_default();
        assert!(segment.busy, "{claim:?} ends and nobody writes to its segment");
        assert_eq!(segment.tail, claim.offset + claim.bytes, "something lies behind {claim:?}");
        segment
    }

    fn check_quota(&self) {
        assert!(self.used_bytes <= self.quota_bytes, "more bytes are used than the quota has");
        assert!(self.aside_bytes <= self.used_bytes, "more bytes are set aside than are used");
    }

    /// Deletes a segment without a living object, unless it is busy.
    fn settle(&mut self, id: u64) -> Fate {
        match self.segments.get(&id) {
            Some(segment) if segment.live.is_empty() && !segment.busy => {
                assert_eq!(segment.live_bytes, 0, "segment {id} has no object, and living bytes");
                self.used_bytes -= segment.dead_bytes;
                self.segments.remove(&id);
                Fate::Delete
            }
            _ => Fate::Keep,
        }
    }

    fn seal_surplus(&mut self) {
        let open = self.segments.values_mut().filter(|segment| !segment.busy && !segment.sealed);
        let mut open: Vec<&mut SegmentUse> = open.collect();
        if OPEN_COUNT_MAX <= open.len()
            && let Some(fullest) = open.iter_mut().max_by_key(|segment| segment.tail)
        {
            fullest.sealed = true;
        }
    }
}

impl SegmentUse {
    /// Checks that living, dead and punched bytes are before the tail.
    fn check(&self) {
        let bytes = self.live_bytes + self.dead_bytes;
        assert!(bytes <= self.tail, "{bytes} bytes lie in the {} bytes of a segment", self.tail);
        assert!(self.dead.len() as u64 <= self.dead_bytes, "a dead run is empty");
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks what must hold after every step.
    fn check(placement: &Placement, claims: &[Claim]) {
        let mut used_bytes = placement.aside_bytes;
        for (id, segment) in &placement.segments {
            assert_eq!(segment.live_bytes, segment.live.values().sum::<u64>());
            assert_eq!(segment.dead_bytes, segment.dead.values().sum::<u64>());
            let own: Vec<&Claim> = claims.iter().filter(|claim| claim.segment == *id).collect();
            assert_eq!((own.len() == 1, own.len() <= 1), (segment.busy, true));
            assert!(segment.busy || !segment.live.is_empty(), "segment {id} is empty");
            let mut runs: Vec<(u64, u64)> =
                segment.live.iter().chain(&segment.dead).map(|(&at, &bytes)| (at, bytes)).collect();
            runs.extend(own.iter().map(|claim| (claim.offset, claim.bytes)));
            runs.sort_unstable();
            assert!(runs.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{runs:?}");
            let end = runs.last().map_or(0, |run| run.0 + run.1);
            assert!(end <= segment.tail && (end <= placement.segment_bytes || runs.len() == 1));
            used_bytes += runs.iter().map(|run| run.1).sum::<u64>();
        }
        assert_eq!(placement.used_bytes, used_bytes);
        assert!(used_bytes <= placement.quota_bytes);
    }

    proptest! {
        #[test]
        fn any_order_of_steps_keeps_ranges_apart_and_the_quota(
            steps in prop::collection::vec((0..8_u8, any::<prop::sample::Index>(), 1..150_u64), 1..200),
        ) {
            let mut placement = Placement::new(1000, 100);
            let mut claims = Vec::new();
            let mut objects = Vec::new();
            let mut aside_bytes = 0;
            for (step, which, bytes) in steps {
                match step {
                    0 | 1 => match placement.claim(bytes) {
                        Ok(claim) => claims.push(claim),
                        Err(refused) => prop_assert!(refused.available_bytes < refused.needed_bytes),
                    },
                    2 if !claims.is_empty() => {
                        let claim: Claim = claims.swap_remove(which.index(claims.len()));
                        placement.commit(claim, bytes.min(claim.bytes));
                        objects.push((claim.segment, claim.offset));
                    }
                    3 if !claims.is_empty() => {
                        let _ = placement.abort(claims.swap_remove(which.index(claims.len())));
                    }
                    4 if !objects.is_empty() => {
                        let (segment, offset) = objects.swap_remove(which.index(objects.len()));
                        let _ = placement.remove(segment, offset);
                    }
                    5 => match placement.set_aside(bytes) {
                        Ok(()) => aside_bytes += bytes,
                        Err(refused) => prop_assert!(refused.available_bytes < refused.needed_bytes),
                    },
                    6 => {
                        placement.give_back(bytes.min(aside_bytes));
                        aside_bytes -= bytes.min(aside_bytes);
                    }
                    _ => {
                        if let Some(fill) = placement.fills().iter().find(|fill| fill.dead_bytes != 0) {
                            for (offset, bytes) in placement.dead_runs(fill.segment) {
                                placement.punched(fill.segment, offset, bytes);
                            }
                        }
                    }
                }
                // A segment without living objects stays only while it has a writer.
                check(&placement, &claims);
                prop_assert_eq!(placement.aside_bytes(), aside_bytes);
            }
            placement.give_back(aside_bytes);
            for claim in claims {
                let _ = placement.abort(claim);
            }
            for (segment, offset) in objects {
                let _ = placement.remove(segment, offset);
            }
            prop_assert_eq!((placement.used_bytes(), placement.segments.len()), (0, 0));
        }
    }

    #[test]
    fn writers_at_once_get_segments_of_their_own_and_large_objects_too() {
        let mut placement = Placement::new(10_000, 100);
        let first = placement.claim(40).unwrap();
        let second = placement.claim(40).unwrap();
        assert_ne!(first.segment, second.segment);
        placement.commit(first, 30);
        let third = placement.claim(70).unwrap();
        assert_eq!((third.segment, third.offset, third.fresh), (first.segment, 30, false));
        let large = placement.claim(500).unwrap();
        assert_eq!((large.offset, large.fresh), (0, true));
        placement.commit(large, 500);
        assert_ne!(placement.claim(1).unwrap().segment, large.segment);
    }

    #[test]
    fn a_segment_is_deleted_with_its_last_object_but_not_under_a_writer() {
        let mut placement = Placement::new(1000, 100);
        let first = placement.claim(40).unwrap();
        placement.commit(first, 40);
        let second = placement.claim(40).unwrap();
        assert_eq!(placement.remove(first.segment, 0), Fate::Keep);
        assert_eq!(placement.abort(second), Fate::Delete);
        assert_eq!(placement.used_bytes(), 0);
    }
}
