//! Reads a range of an object from disk; every block is verified before the range is returned.
//!
//! For a larger range, a second thread verifies (and copies, decompresses) blocks while this one reads the
//! next ones. If there can be no second thread, this one does both.

use super::buffer::{BufferPool, PooledBuffer};
use super::codec;
use super::error::{CorruptPart, SpillError};
use super::file::{Operation, SegmentFile};
use super::header::{Codec, Header, align_up};
use super::write::PIECE_BYTES;
use crate::copy::copy_away;
use std::hash::Hasher;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use twox_hash::XxHash3_64;

/// Number of blocks in buffers that wait for their verification.
const AHEAD_COUNT: usize = 1;

/// An object on disk.
#[derive(Clone, Copy)]
pub(crate) struct Extent<'a> {
    pub(crate) file: &'a SegmentFile,
    pub(crate) pool: &'a BufferPool,
    pub(crate) header: &'a Header,
    pub(crate) offset: u64,
}

/// A block that was read.
struct Landed<'t, 'p> {
    index: usize,
    /// The part of the caller's memory for it.
    target: &'t mut [u8],
    /// Offset of that part in the block.
    skip: usize,
    /// The bytes read; `None` if they were read directly into `target`.
    buffer: Option<PooledBuffer<'p>>,
}

impl Extent<'_> {
    /// Reads `target.len()` bytes from `start` on. On an error the contents of `target` are unspecified.
    /// Whole blocks are read, so ranges along multiples of a block cost the least.
    pub(crate) fn read(&self, start: u64, target: &mut [u8]) -> Result<(), SpillError> {
        let header = self.header;
        let len = target.len() as u64;
        if start.checked_add(len).is_none_or(|end| header.len < end) {
            return Err(SpillError::OutOfRange { offset: start, len, object_bytes: header.len });
        }
        if header.blocks.is_empty() {
            return self.check_header();
        }
        if target.is_empty() {
            return Ok(());
        }
        let block_bytes = u64::from(header.block_bytes);
        let first = start / block_bytes;
        let last = (start + len - 1) / block_bytes;
        assert!(last < header.blocks.len() as u64, "an object has more bytes than blocks");
        if first == last {
            let mut landed = self.land(first as usize, (start - first * block_bytes) as usize, target)?;
            return self.verify(&mut landed);
        }
        // A block that is read directly into its target needs no buffer, so the disk need not wait for its
        // verification.
        let block_start = target.get(..target.len().min(block_bytes as usize)).unwrap_or_default();
        let in_place = self.header.codec == Codec::Raw && self.file.device().takes(block_start);
        let ahead_count = if in_place { (last - first) as usize } else { AHEAD_COUNT };
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(ahead_count);
            let begun = match self.file.device().fault(Operation::Thread, self.offset) {
                Ok(()) => thread::Builder::new()
                    .name("spill-verify".into())
                    .spawn_scoped(scope, move || self.verify_all(receiver)),
                Err(refused) => Err(refused),
            };
            // A process that may have no more threads has not lost the object.
            let Ok(helper) = begun else { return self.read_alone(start, target) };
            let mut rest = target;
            let mut at = start;
            let mut result = Ok(());
            while !rest.is_empty() {
                let (index, skip) = (at / block_bytes, at % block_bytes);
                let take = (block_bytes - skip).min(rest.len() as u64) as usize;
                let (piece, behind) = rest.split_at_mut(take);
                assert_eq!(at - start + (take + behind.len()) as u64, len, "a piece is left out");
                match self.land(index as usize, skip as usize, piece) {
                    // The receiver is gone after a bad block: that error is the one to report.
                    Ok(landed) => {
                        if sender.send(landed).is_err() {
                            break;
                        }
                    }
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
                rest = behind;
                at += take as u64;
            }
            drop(sender);
            let verified = helper.join().unwrap_or_else(|_| {
                Err(self.io_error(std::io::Error::other("the thread that verifies blocks died")))
            });
            result.and(verified)
        })
    }

    /// Reads a range that lies within the object, block after block.
    fn read_alone(&self, start: u64, target: &mut [u8]) -> Result<(), SpillError> {
        let block_bytes = u64::from(self.header.block_bytes);
        let (mut rest, mut at) = (target, start);
        while !rest.is_empty() {
            let (index, skip) = (at / block_bytes, at % block_bytes);
            let take = (block_bytes - skip).min(rest.len() as u64) as usize;
            let (piece, behind) = rest.split_at_mut(take);
            let mut landed = self.land(index as usize, skip as usize, piece)?;
            self.verify(&mut landed)?;
            rest = behind;
            at += take as u64;
        }
        Ok(())
    }

    /// Reads the stored form of block `index` into the front of `buffer`, verifies it, and returns its length
    /// with padding.
    pub(crate) fn read_stored(&self, index: usize, buffer: &mut [u8]) -> Result<usize, SpillError> {
        let stored_bytes = self.stored_bytes(index);
        let target = buffer.get_mut(..stored_bytes).ok_or_else(|| self.corrupt_block(index))?;
        self.read_exact(&mut [target], self.header.block_offset(index))?;
        if XxHash3_64::oneshot(target) != self.checksum(index) {
            return Err(self.corrupt_block(index));
        }
        Ok(stored_bytes)
    }

    /// Reads the header and compares it with the one that was written.
    pub(crate) fn check_header(&self) -> Result<(), SpillError> {
        let mut head = self.pool.take();
        let head_len = self.header.stored_bytes() as usize;
        self.read_exact(&mut [&mut head[..head_len]], 0)?;
        self.compare_header(&head[..head_len])
    }

    /// Reads the part of block `index` that `target` needs; the first block is read together with the header.
    fn land<'t>(
        &self,
        index: usize,
        skip: usize,
        target: &'t mut [u8],
    ) -> Result<Landed<'t, '_>, SpillError> {
        let stored_bytes = self.stored_bytes(index);
        let block_bytes = self.header.block_bytes as usize;
        assert!(skip + target.len() <= block_bytes, "a read passes the end of its block");
        let in_place = self.header.codec == Codec::Raw
            && stored_bytes == target.len()
            && self.file.device().takes(target);
        let mut landed = Landed { index, target, skip, buffer: (!in_place).then(|| self.pool.take()) };
        let block = match &mut landed.buffer {
            None => &mut *landed.target,
            Some(buffer) => buffer.get_mut(..stored_bytes).ok_or_else(|| self.corrupt_block(index))?,
        };
        if index == 0 {
            let mut head = self.pool.take();
            let head_len = self.header.stored_bytes() as usize;
            self.read_exact(&mut [&mut head[..head_len], block], 0)?;
            self.compare_header(&head[..head_len])?;
        } else {
            self.read_exact(&mut [block], self.header.block_offset(index))?;
        }
        Ok(landed)
    }

    fn verify_all(&self, receiver: Receiver<Landed<'_, '_>>) -> Result<(), SpillError> {
        receiver.into_iter().try_for_each(|mut landed| self.verify(&mut landed))
    }

    fn verify(&self, landed: &mut Landed<'_, '_>) -> Result<(), SpillError> {
        let Landed { index, target, skip, buffer } = landed;
        let index = *index;
        let check = |stored: &[u8]| {
            if XxHash3_64::oneshot(stored) == self.checksum(index) {
                Ok(())
            } else {
                Err(self.corrupt_block(index))
            }
        };
        let Some(buffer) = buffer else { return check(target) };
        let undecodable = || self.corrupt(CorruptPart::Compression { index: index as u32 }, index);
        let padded = buffer.get(..self.stored_bytes(index)).ok_or_else(undecodable)?;
        let raw_len = self.header.block_len(index) as usize;
        let stored_len = self.header.blocks.get(index).map_or(0, |block| block.stored_len as usize);
        let stored = padded.get(..stored_len).ok_or_else(undecodable)?;
        let wanted = *skip..*skip + target.len();
        if stored_len == raw_len {
            // Copied and hashed in turn, while the bytes are in the cache.
            let mut hasher = XxHash3_64::new();
            for (at, piece) in (0..).step_by(PIECE_BYTES).zip(padded.chunks(PIECE_BYTES)) {
                hasher.write(piece);
                let (from, to) = (wanted.start.max(at), wanted.end.min(at + piece.len()));
                if from < to {
                    copy_away(
                        &mut target[from - wanted.start..to - wanted.start],
                        &piece[from - at..to - at],
                    );
                }
            }
            let is_sound = hasher.finish() == self.checksum(index) && wanted.end <= raw_len;
            return if is_sound { Ok(()) } else { Err(self.corrupt_block(index)) };
        }
        check(padded)?;
        if target.len() == raw_len {
            codec::decompress(stored, target).ok_or_else(undecodable)?;
        } else {
            let mut raw = self.pool.take();
            let raw = raw.get_mut(..raw_len).ok_or_else(undecodable)?;
            codec::decompress(stored, raw).ok_or_else(undecodable)?;
            target.copy_from_slice(raw.get(wanted).ok_or_else(undecodable)?);
        }
        Ok(())
    }

    fn compare_header(&self, bytes: &[u8]) -> Result<(), SpillError> {
        let corrupt = |part| SpillError::Corrupt {
            key: self.header.key,
            part,
            offset: self.offset,
            path: self.file.path(),
        };
        let found = Header::decode(bytes).map_err(|error| corrupt(error.into()))?;
        if found == *self.header { Ok(()) } else { Err(corrupt(CorruptPart::WrongObject)) }
    }

    /// `at` counts from the header.
    fn read_exact(&self, parts: &mut [&mut [u8]], at: u64) -> Result<(), SpillError> {
        let wanted_bytes = parts.iter().map(|part| part.len() as u64).sum();
        let offset = self.offset + at;
        let read_bytes = self.file.read_at(parts, offset).map_err(|cause| self.io_error(cause))?;
        if read_bytes < wanted_bytes {
            let (key, path) = (self.header.key, self.file.path());
            return Err(SpillError::ShortRead { key, offset, wanted_bytes, read_bytes, path });
        }
        Ok(())
    }

    fn stored_bytes(&self, index: usize) -> usize {
        self.header.blocks.get(index).map_or(0, |block| align_up(block.stored_len.into()) as usize)
    }

    fn checksum(&self, index: usize) -> u64 {
        self.header.blocks.get(index).map_or(0, |block| block.checksum)
    }

    fn corrupt_block(&self, index: usize) -> SpillError {
        self.corrupt(CorruptPart::Block { index: index as u32 }, index)
    }

    fn corrupt(&self, part: CorruptPart, index: usize) -> SpillError {
        let offset = self.offset + self.header.block_offset(index);
        SpillError::Corrupt { key: self.header.key, part, offset, path: self.file.path() }
    }

    fn io_error(&self, cause: std::io::Error) -> SpillError {
        SpillError::Io { action: "read spill file", path: self.file.path(), cause }
    }
}
