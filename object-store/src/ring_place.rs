//! Place of a ring in a segment, and the errors of a ring.
//!
//! The layout and the protocol are described in [`ring`](crate::ring). Here is the arithmetic of addresses.
//! It is checked once when a side attaches, so that the two ends only use offsets within the data.

#![allow(unsafe_code)]

use crate::error::StoreError;
use crate::positions::{BadPosition, PositionWords};
use crate::record::HEADER_BYTES;
use crate::segment::Segment;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Bytes that a ring takes besides its capacity.
pub const RING_HEADER_BYTES: usize = 384;
/// Smallest capacity.
pub const RING_BYTES_MIN: usize = 256;
/// Largest capacity.
pub const RING_BYTES_MAX: usize = 1 << 30;

const PLACE_ALIGN: usize = 128;
const WORDS_OFFSET: usize = 128;
const MAGIC: u64 = u64::from_le_bytes(*b"THRING\x01\0");
#[cfg(not(models))]
const _: () = assert!(WORDS_OFFSET + size_of::<PositionWords>() == RING_HEADER_BYTES, "the header is full");

/// Place of a ring. Both sides must be given the same place.
#[derive(Clone)]
pub struct RingPlace {
    segment: Arc<Segment>,
    offset: usize,
    capacity: usize,
}

impl RingPlace {
    /// A ring of `capacity_bytes` at `offset` of a segment; the offset is a multiple of 128.
    ///
    /// # Errors
    /// `BadSize` unless the capacity is a power of two in [`RING_BYTES_MIN`]`..=`[`RING_BYTES_MAX`],
    /// `OutOfBounds` or `Misaligned` if it does not fit there.
    pub fn new(segment: Arc<Segment>, offset: usize, capacity_bytes: usize) -> Result<RingPlace, StoreError> {
        if !capacity_bytes.is_power_of_two() || !(RING_BYTES_MIN..=RING_BYTES_MAX).contains(&capacity_bytes) {
            return Err(StoreError::BadSize {
                what: "a ring",
                bytes: capacity_bytes as u64,
                min_bytes: RING_BYTES_MIN as u64,
                max_bytes: RING_BYTES_MAX as u64,
            });
        }
        segment.place(offset, RingPlace::bytes(capacity_bytes), PLACE_ALIGN)?;
        Ok(RingPlace { segment, offset, capacity: capacity_bytes })
    }

    /// Bytes of a segment that a ring of this capacity takes.
    pub const fn bytes(capacity_bytes: usize) -> usize {
        RING_HEADER_BYTES + capacity_bytes
    }

    /// Makes an empty ring here. Only before either side attaches.
    ///
    /// # Errors
    /// None in practice: the place was checked when it was made.
    pub fn format(&self) -> Result<(), StoreError> {
        let base = self.base()?;
        // SAFETY: the place is within the segment, aligned to 128 and, by contract, not in use yet; the words
        // are plain integers for which zero bytes are a value.
        unsafe {
            base.as_ptr().write_bytes(0, RING_HEADER_BYTES);
            base.cast::<u64>().write(MAGIC);
            base.cast::<u64>().add(1).write(self.capacity as u64);
        }
        Ok(())
    }

    pub(crate) fn base(&self) -> Result<NonNull<u8>, StoreError> {
        self.segment.place(self.offset, RingPlace::bytes(self.capacity), PLACE_ALIGN)
    }

    pub(crate) fn mapped(self) -> Result<Mapped, StoreError> {
        let base = self.base()?;
        // SAFETY: as in `format`: in bounds and aligned; the two fields are never written after `format`, and
        // a peer that does so anyway only changes which error we return.
        let (magic, capacity) =
            unsafe { (base.cast::<u64>().read_volatile(), base.cast::<u64>().add(1).read_volatile()) };
        if magic != MAGIC {
            return Err(StoreError::Mismatch { what: "the magic of a ring", found: magic, expected: MAGIC });
        }
        if capacity != self.capacity as u64 {
            let expected = self.capacity as u64;
            return Err(StoreError::Mismatch { what: "the capacity of a ring", found: capacity, expected });
        }
        // SAFETY: both offsets lie within the place, whose length was checked by `base`.
        let (words, data) = unsafe { (base.add(WORDS_OFFSET).cast(), base.add(RING_HEADER_BYTES)) };
        Ok(Mapped { words, data, capacity: self.capacity, _segment: self.segment })
    }
}

/// The violation that the consumer found instead of a message. The ring cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingCorrupt {
    /// Fragments out of order or of the wrong total length.
    #[error("fragment at {position} does not continue the message: {seen_bytes} of {total_bytes} bytes seen")]
    Fragment {
        /// Bytes since the ring was made.
        position: u64,
        /// Bytes of the message so far, with this fragment.
        seen_bytes: u64,
        /// Total bytes in the first fragment.
        total_bytes: u64,
    },
    /// A header word that no correct producer writes.
    #[error("no record header at {position}: {word:#018x}")]
    Header {
        /// Bytes since the ring was made.
        position: u64,
        /// The word that was found.
        word: u64,
    },
    /// A record longer than what was published or allowed.
    #[error("record of {len} bytes at {position}, at most {limit_bytes} possible")]
    Length {
        /// Bytes since the ring was made.
        position: u64,
        /// Length in its header.
        len: u64,
        /// Largest possible length at this position.
        limit_bytes: u64,
    },
    /// The peer's position is impossible.
    #[error("positions are impossible: {published} published, {consumed} consumed")]
    Positions {
        /// Position that the producer reports as published.
        published: u64,
        /// Position that the consumer reports as consumed.
        consumed: u64,
    },
    /// A large message above the bound.
    #[error("message of {total_bytes} bytes announced, limit {limit_bytes}")]
    TooLarge {
        /// Total bytes in the first fragment.
        total_bytes: u64,
        /// The bound given at construction.
        limit_bytes: u64,
    },
}

impl From<BadPosition> for RingCorrupt {
    fn from(bad: BadPosition) -> RingCorrupt {
        RingCorrupt::Positions { published: bad.published, consumed: bad.consumed }
    }
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// No room now; the consumer has to catch up.
    #[error("the ring is full")]
    Full,
    /// A large message is half sent; it has to be finished first.
    #[error("a large message is half sent; finish it before the next")]
    LargeUnderway,
    /// The consumer wrote an impossible position.
    #[error("the consumer of the ring is corrupt: {0}")]
    PeerCorrupt(RingCorrupt),
    /// More bytes than this call accepts.
    #[error("message of {len} bytes, limit {limit_bytes}")]
    TooLarge {
        /// Bytes of the message.
        len: usize,
        /// Largest accepted number of bytes.
        limit_bytes: usize,
    },
}

/// A large message on its way into a ring.
#[derive(Debug)]
pub struct PendingLarge {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent_bytes: usize,
}

impl PendingLarge {
    /// A message with nothing sent yet.
    pub fn new(bytes: Vec<u8>) -> PendingLarge {
        PendingLarge { bytes, sent_bytes: 0 }
    }

    /// Bytes that are not in the ring yet.
    pub fn remaining_bytes(&self) -> usize {
        self.bytes.len() - self.sent_bytes
    }
}

/// The addresses of an attached ring.
pub(crate) struct Mapped {
    words: NonNull<PositionWords>,
    data: NonNull<u8>,
    pub(crate) capacity: usize,
    /// Keeps the mapping.
    _segment: Arc<Segment>,
}

// SAFETY: the pointers lead into a mapping that `_segment` keeps; which thread follows them does not matter,
// only that one producer and one consumer do.
unsafe impl Send for Mapped {}

impl Mapped {
    #[inline]
    pub(crate) fn words(&self) -> &PositionWords {
        // SAFETY: in bounds, aligned, mapped while `self` lives; the words are atomics, so sharing them with
        // the peer is defined.
        unsafe { self.words.as_ref() }
    }

    /// The header word of the record at `at`, as an atomic: the peer may write it at any time.
    #[inline]
    pub(crate) fn header(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at + HEADER_BYTES as usize <= self.capacity && at.is_multiple_of(8), "header at {at}");
        // SAFETY: positions are multiples of 8 and masked by the capacity, itself a multiple of 8, so the
        // word lies in the data and is aligned.
        unsafe { AtomicU64::from_ptr(self.data.add(at).cast().as_ptr()) }
    }

    /// Record content at `at`; the caller has checked the bounds and owns the bytes by the protocol.
    #[inline]
    pub(crate) fn content(&self, at: usize, len: usize) -> NonNull<[u8]> {
        debug_assert!(at + HEADER_BYTES as usize + len <= self.capacity, "content at {at}+{len}");
        // SAFETY: within the data, as the caller checked.
        NonNull::slice_from_raw_parts(unsafe { self.data.add(at + HEADER_BYTES as usize) }, len)
    }

    #[inline]
    pub(crate) fn mask(&self, position: u64) -> usize {
        (position & (self.capacity as u64 - 1)) as usize
    }

    pub(crate) fn record_bytes_max(&self) -> usize {
        self.capacity / 4
    }
}

/// The error of a side that attaches to a ring with impossible positions.
pub(crate) fn map_attach(bad: BadPosition) -> StoreError {
    StoreError::Mismatch { what: "the positions of a ring", found: bad.published, expected: bad.consumed }
}

#[cfg(feature = "inputs")]
impl RingPlace {
    /// Overwrites the ring from `offset` on, as a hostile peer can; bytes beyond its end are left out.
    pub(crate) fn overwrite(&self, offset: usize, bytes: &[u8]) {
        let room_bytes = RingPlace::bytes(self.capacity).saturating_sub(offset);
        let Ok(base) = self.base() else { return };
        // SAFETY: within the place, and nobody is attached yet.
        unsafe { base.add(offset).as_ptr().copy_from(bytes.as_ptr(), bytes.len().min(room_bytes)) };
    }

    /// The bytes of the ring from `offset` on. Only while no other thread is attached.
    pub(crate) fn contents(&self, offset: usize) -> Vec<u8> {
        let len = RingPlace::bytes(self.capacity).saturating_sub(offset);
        let Ok(base) = self.base() else { return Vec::new() };
        // SAFETY: within the place, which no other thread changes meanwhile.
        unsafe { std::slice::from_raw_parts(base.add(offset).as_ptr(), len) }.to_vec()
    }
}

#[cfg(not(models))]
#[cfg(test)]
impl RingPlace {
    /// The ring without a check of its header, for tests that play a hostile peer.
    pub(crate) fn mapped_for_tests(self) -> Mapped {
        let base = self.base().unwrap();
        // SAFETY: as in `mapped`.
        let (words, data) = unsafe { (base.add(WORDS_OFFSET).cast(), base.add(RING_HEADER_BYTES)) };
        Mapped { words, data, capacity: self.capacity, _segment: self.segment }
    }
}
