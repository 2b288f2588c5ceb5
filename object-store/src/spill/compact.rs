//! Compaction of one directory, carried out as planned.

use super::books::{Slot, Stored};
use super::compaction::{CompactionLimits, CompactionStep, plan_compaction};
use super::dir::SpillDir;
use super::error::SpillError;
use super::file::SegmentFile;
use super::placement::Claim;
use crate::transfer::ObjectKey;
use std::sync::Arc;

/// The result of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes that were freed.
    pub freed_bytes: u64,
    /// Bytes that were written again.
    pub moved_bytes: u64,
    /// Objects found corrupt on the way; they are still listed, and lost unless another copy exists.
    pub corrupt: Vec<ObjectKey>,
}

impl SpillDir {
    /// Frees space of removed objects, and moves at most `move_bytes_max` bytes of living ones.
    ///
    /// Readers and writers go on meanwhile.
    ///
    /// # Errors
    /// The errors of [`write`](SpillDir::write) and [`read_into`](SpillDir::read_into), except corruption,
    /// which is part of the result. An error loses no data.
    pub fn compact(&self, move_bytes_max: u64) -> Result<Compacted, SpillError> {
        let mut done = Compacted::default();
        let steps = {
            let books = self.books();
            let limits = CompactionLimits {
                can_punch: books.can_punch,
                move_bytes_max,
                room_bytes: books.placement.free_bytes(),
            };
            plan_compaction(&books.placement.fills(), &limits)
        };
        for step in steps {
            match step {
                CompactionStep::Punch { segment } => done.freed_bytes += self.punch(segment)?,
                CompactionStep::Rewrite { segment } => self.rewrite(segment, &mut done)?,
            }
        }
        Ok(done)
    }

    /// Punches all dead runs, for a write that has no room, and returns whether anything was freed.
    pub(super) fn punch_all(&self) -> bool {
        let fills = self.books().placement.fills();
        let dead = fills.iter().filter(|fill| fill.dead_bytes != 0 && !fill.busy);
        let freed = dead.map(|fill| self.punch(fill.segment).unwrap_or(0));
        freed.sum::<u64>() != 0
    }

    fn punch(&self, segment: u64) -> Result<u64, SpillError> {
        let (runs, file) = {
            let mut books = self.books();
            let Some(file) = books.files.get(&segment).map(Arc::clone) else { return Ok(0) };
            if !books.can_punch || !books.placement.hold(segment) {
                return Ok(0);
            }
            (books.placement.dead_runs(segment), file)
        };
        let mut freed_bytes = 0;
        let mut result = Ok(());
        for (offset, bytes) in runs {
            assert!(0 < bytes, "a dead run of segment {segment} is empty");
            // Objects are never overwritten, so no object can begin in a dead run meanwhile.
            match file.punch(offset, bytes) {
                Ok(()) => {
                    self.books().placement.punched(segment, offset, bytes);
                    freed_bytes += bytes;
                }
                Err(cause) if cause.kind() == std::io::ErrorKind::Unsupported => {
                    self.books().can_punch = false;
                    break;
                }
                Err(cause) => {
                    result = Err(self.write_error("punch spill file", file.path(), cause, 0));
                    break;
                }
            }
        }
        self.unhold(segment);
        result.map(|()| freed_bytes)
    }

    fn rewrite(&self, segment: u64, done: &mut Compacted) -> Result<(), SpillError> {
        let (objects, file, dead_bytes) = {
            let mut books = self.books();
            let Some(file) = books.files.get(&segment).map(Arc::clone) else { return Ok(()) };
            if !books.placement.hold(segment) {
                return Ok(());
            }
            let inside = |slot: &Slot| match slot {
                Slot::Stored(stored) if stored.segment == segment => Some(stored.clone()),
                _ => None,
            };
            let objects: Vec<(ObjectKey, Stored)> =
                books.objects.iter().filter_map(|(key, slot)| Some((*key, inside(slot)?))).collect();
            let dead = books.placement.dead_runs(segment);
            (objects, file, dead.iter().map(|run| run.1).sum::<u64>())
        };
        let mut result = Ok(());
        let mut all_moved = true;
        for (key, stored) in &objects {
            match self.relocate(key, stored, &file) {
                Ok(moved_bytes) => done.moved_bytes += moved_bytes,
                Err(error) if error.is_lost() => {
                    all_moved = false;
                    done.corrupt.push(*key);
                }
                Err(error) => {
                    all_moved = false;
                    result = Err(error);
                    break;
                }
            }
        }
        self.unhold(segment);
        if all_moved {
            done.freed_bytes += dead_bytes;
        }
        result
    }

    /// Copies an object as it is stored, verified, to another segment, and returns the bytes moved.
    fn relocate(&self, key: &ObjectKey, stored: &Stored, file: &SegmentFile) -> Result<u64, SpillError> {
        let bytes = stored.header.stored_bytes() + stored.header.blocks_bytes();
        let claimed = self.books().placement.claim(bytes);
        // There was room when this was planned, but other writers took it. A later compaction will move the
        // object.
        let Ok(claim) = claimed else { return Ok(0) };
        let copied = self.file_of(&claim).and_then(|target| {
            let copied = self.copy(stored, file, &target, &claim);
            if copied.is_err() {
                let _ = target.truncate(claim.offset);
            }
            copied
        });
        assert_ne!(claim.segment, stored.segment, "an object moves within the segment that it leaves");
        let mut books = self.books();
        let is_current = books.is_current(key, stored);
        if copied.is_err() || !is_current {
            let fate = books.placement.abort(claim);
            self.carry_out(books, claim.segment, fate);
            return copied.map(|()| 0);
        }
        books.placement.commit(claim, bytes);
        let moved =
            Stored { segment: claim.segment, offset: claim.offset, header: Arc::clone(&stored.header) };
        books.objects.insert(*key, Slot::Stored(moved));
        // The old segment is held, so this deletes nothing yet.
        let fate = books.placement.remove(stored.segment, stored.offset);
        self.carry_out(books, stored.segment, fate);
        Ok(bytes)
    }

    fn copy(
        &self,
        stored: &Stored,
        source: &SegmentFile,
        target: &SegmentFile,
        claim: &Claim,
    ) -> Result<(), SpillError> {
        let extent = self.extent(stored, source);
        let failed = |cause| self.write_error("move object to", target.path(), cause, claim.bytes);
        extent.check_header()?;
        let mut buffer = self.pool.take();
        let mut at = claim.offset + stored.header.stored_bytes();
        for index in 0..stored.header.blocks.len() {
            let len = extent.read_stored(index, &mut buffer)?;
            target.write_at(&[&buffer[..len]], at).map_err(failed)?;
            at += len as u64;
        }
        let moved_bytes = at - claim.offset;
        assert_eq!(moved_bytes, claim.bytes, "an object changes its length while it moves");
        let head_len = stored.header.encode(&mut buffer).unwrap_or(0);
        assert_eq!(head_len as u64, stored.header.stored_bytes(), "a header does not fit a buffer");
        target.write_at(&[&buffer[..head_len]], claim.offset).map_err(failed)?;
        target.settle(claim.offset, moved_bytes).map_err(failed)
    }

    fn unhold(&self, segment: u64) {
        let mut books = self.books();
        let fate = books.placement.unhold(segment);
        self.carry_out(books, segment, fate);
    }
}
