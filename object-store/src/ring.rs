//! A ring of messages between one producer and one consumer, in shared memory, without locks or system calls.
//!
//! ```text
//! place:  | magic, capacity | published | consumed | data: capacity bytes, a power of two |
//! bytes:  0                 128         256        384
//! ```
//! *Protocol.* One [`Producer`] and one [`Consumer`] exist per ring, in any two threads of any two processes.
//! The producer reserves room, fills it, commits it (staged, invisible) and publishes a batch with one
//! release store. The consumer shows a copy of a record, advances, and gives the room back with one release
//! store now and then. Two words determine which side owns which byte; see `positions`. Records are laid out
//! by `record`.
//!
//! *Large messages.* A message of more than a quarter of the ring is sent as fragments and assembled by the
//! consumer. So a ring of one mebibyte carries messages of many: the consumer empties the ring while the
//! producer refills it. Messages come out whole and in order: while a large one is half sent, the producer
//! refuses others.
//!
//! *Trust.* The consumer trusts nothing: positions, tags, lengths, bounds and the order of fragments are
//! checked before a byte is used, and a violation is a permanent [`RingCorrupt`]. The producer checks the one
//! word it reads. A peer may die between any two instructions; everything published stays readable, a record
//! half-written is never seen. A hostile peer can change a record *while it is being read*. So each byte is
//! read once, into memory of the consumer, and checked there, where it cannot change any more.
//!
//! *Waiting* is not part of a ring. A producer that got [`PushError::Full`] sleeps on a [`crate::Bell`] that
//! the consumer rings whenever [`Consumer::take_released`] returns true.

#![allow(unsafe_code)]

use crate::error::StoreError;
use crate::positions::{ConsumerPositions, ProducerPositions};
use crate::record::{self, HEADER_BYTES, Kind, RECORD_ALIGN, TOTAL_BYTES};
use crate::ring_place::{Mapped, map_attach};
use std::sync::atomic::Ordering;

pub use crate::ring_place::{
    PendingLarge, PushError, RING_BYTES_MAX, RING_BYTES_MIN, RING_HEADER_BYTES, RingCorrupt, RingPlace,
};

/// The writing end of a ring.
pub struct Producer {
    ring: Mapped,
    positions: ProducerPositions,
    reserved: Option<usize>,
    large_underway: bool,
    message_bytes_max: usize,
}

impl Producer {
    /// Takes the writing end; there must be no other.
    ///
    /// # Errors
    /// `Mismatch` if no ring of this capacity was made there or its words are impossible.
    pub fn attach(place: RingPlace, message_bytes_max: usize) -> Result<Producer, StoreError> {
        let ring = place.mapped()?;
        let positions = ProducerPositions::attach(ring.words(), ring.capacity as u64).map_err(map_attach)?;
        Ok(Producer { ring, positions, reserved: None, large_underway: false, message_bytes_max })
    }

    /// Room for a message of `len` bytes, to be filled and then committed.
    ///
    /// A reservation that is not committed has no effect.
    ///
    /// # Errors
    /// [`PushError::Full`] if there is no room now, `TooLarge` above [`Producer::record_bytes_max`].
    #[inline]
    pub fn try_reserve(&mut self, len: usize) -> Result<&mut [u8], PushError> {
        if self.large_underway {
            return Err(PushError::LargeUnderway);
        }
        self.reserve(len)
    }

    /// Completes the reserved message with its first `len` bytes; it stays invisible until
    /// [`Producer::publish`].
    ///
    /// # Panics
    /// If nothing is reserved, or `len` is more than the reservation.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        self.stage(Kind::Message, len);
    }

    /// Shows the consumer everything committed, with one store; false if there was nothing.
    #[inline]
    pub fn publish(&mut self) -> bool {
        self.positions.publish(self.ring.words())
    }

    /// Commits one message made of `parts`; it stays invisible until [`Producer::publish`].
    ///
    /// # Errors
    /// As [`Producer::try_reserve`].
    #[inline]
    pub fn try_push(&mut self, parts: &[&[u8]]) -> Result<(), PushError> {
        let len = parts.iter().map(|p| p.len()).sum();
        let mut room = self.try_reserve(len)?;
        for part in parts {
            let (head, rest) = room.split_at_mut(part.len());
            head.copy_from_slice(part);
            room = rest;
        }
        self.commit(len);
        Ok(())
    }

    /// Publishes as much of a message of any size as fits; true once all of it is in the ring.
    ///
    /// Call it again with the same message until it returns true; it never waits.
    ///
    /// # Errors
    /// `TooLarge` above the bound given at construction, `LargeUnderway` if another message is half sent.
    pub fn try_push_large(&mut self, message: &mut PendingLarge) -> Result<bool, PushError> {
        let len = message.bytes.len();
        if self.message_bytes_max < len {
            return Err(PushError::TooLarge { len, limit_bytes: self.message_bytes_max });
        }
        if self.large_underway != (0 < message.sent_bytes) {
            return Err(PushError::LargeUnderway);
        }
        if len <= self.record_bytes_max() {
            return match self.try_push(&[&message.bytes]) {
                Ok(()) => {
                    self.publish();
                    Ok(true)
                }
                Err(PushError::Full) => Ok(false),
                Err(error) => Err(error),
            };
        }
        let pushed = self.push_fragments(message);
        self.publish();
        match pushed {
            Err(PushError::Full) => Ok(false),
            Err(error) => Err(error),
            Ok(()) => Ok(true),
        }
    }

    /// Largest message that is sent as one record; larger ones go through [`Producer::try_push_large`].
    pub fn record_bytes_max(&self) -> usize {
        self.ring.record_bytes_max()
    }

    fn push_fragments(&mut self, message: &mut PendingLarge) -> Result<(), PushError> {
        // An eighth of the ring: small enough that several are in flight, large compared with a header.
        let fragment_bytes = self.ring.capacity / 8;
        let total = message.bytes.len();
        while message.sent_bytes < total {
            let rest = &message.bytes[message.sent_bytes..];
            let is_first = message.sent_bytes == 0;
            let lead = if is_first { TOTAL_BYTES as usize } else { 0 };
            assert!(lead < fragment_bytes, "a fragment has no room for content");
            let take = rest.len().min(fragment_bytes - lead);
            let room = self.reserve(lead + take)?;
            room[..lead].copy_from_slice(&(total as u64).to_le_bytes()[..lead]);
            room[lead..].copy_from_slice(&rest[..take]);
            let kind = match (is_first, take == rest.len()) {
                (true, _) => Kind::First,
                (false, false) => Kind::Middle,
                (false, true) => Kind::Last,
            };
            self.stage(kind, lead + take);
            message.sent_bytes += take;
            self.large_underway = message.sent_bytes < total;
        }
        Ok(())
    }

    #[inline]
    fn reserve(&mut self, len: usize) -> Result<&mut [u8], PushError> {
        let limit_bytes = self.ring.record_bytes_max();
        if limit_bytes < len {
            return Err(PushError::TooLarge { len, limit_bytes });
        }
        let capacity = self.ring.capacity as u64;
        let record = record::record_bytes(len as u64);
        let mut at = self.ring.mask(self.positions.staged());
        let to_end = capacity - at as u64;
        let pad = if record <= to_end { 0 } else { to_end };
        match self.positions.has_room(self.ring.words(), pad + record) {
            Ok(true) => {}
            Ok(false) => return Err(PushError::Full),
            Err(bad) => return Err(PushError::PeerCorrupt(bad.into())),
        }
        if 0 < pad {
            let header = record::encode(Kind::Pad, (pad - HEADER_BYTES) as u32);
            self.ring.header(at).store(header, Ordering::Relaxed);
            self.positions.stage(pad);
            at = 0;
        }
        debug_assert!(at as u64 + record <= capacity, "a record passes the end of the ring");
        self.reserved = Some(len);
        // SAFETY: `has_room` tells that these bytes are the producer's alone until published; with `&mut
        // self`, no other code of this process has them.
        Ok(unsafe { self.ring.content(at, len).as_mut() })
    }

    #[inline]
    fn stage(&mut self, kind: Kind, len: usize) {
        let reserved = self.reserved.take();
        assert!(reserved.is_some_and(|r| len <= r), "commit of {len} bytes, reserved {reserved:?}");
        let at = self.ring.mask(self.positions.staged());
        // The release store in `publish` makes this visible together with the content.
        self.ring.header(at).store(record::encode(kind, len as u32), Ordering::Relaxed);
        self.positions.stage(record::record_bytes(len as u64));
    }
}

#[derive(Clone, Copy)]
enum Current {
    None,
    /// Still in the ring, where it takes this many bytes.
    InRing {
        record: u64,
    },
    /// Assembled from fragments, which have left the ring.
    Assembled,
}

/// The reading end of a ring.
pub struct Consumer {
    ring: Mapped,
    positions: ConsumerPositions,
    current: Current,
    /// The current message, or the received part of a large one.
    copied: Vec<u8>,
    /// Length promised by the first fragment, while a large message is underway.
    total_bytes: Option<usize>,
    message_bytes_max: usize,
    released: bool,
    corrupt: Option<RingCorrupt>,
}

impl Consumer {
    /// Takes the reading end; there must be no other.
    ///
    /// If the former consumer died, messages that it had consumed but not released are delivered again.
    ///
    /// # Errors
    /// `Mismatch` if no ring of this capacity was made there or its words are impossible.
    pub fn attach(place: RingPlace, message_bytes_max: usize) -> Result<Consumer, StoreError> {
        let ring = place.mapped()?;
        let positions = ConsumerPositions::attach(ring.words(), ring.capacity as u64).map_err(map_attach)?;
        Ok(Consumer {
            ring,
            positions,
            current: Current::None,
            copied: Vec::new(),
            total_bytes: None,
            message_bytes_max,
            released: false,
            corrupt: None,
        })
    }

    /// Bytes that the ring holds.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.ring.capacity
    }

    /// The next message. It stays the same until [`Consumer::advance`], whatever the producer does.
    ///
    /// # Errors
    /// [`RingCorrupt`] if the producer broke the protocol; from then on, always.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<&[u8]>, RingCorrupt> {
        if let Current::None = self.current {
            if let Some(corrupt) = self.corrupt {
                return Err(corrupt);
            }
            if let Err(corrupt) = self.find_next() {
                self.corrupt = Some(corrupt);
                return Err(corrupt);
            }
        }
        Ok((!matches!(self.current, Current::None)).then_some(&self.copied[..]))
    }

    /// Advances past the message of the last [`Consumer::peek`]; does nothing if there was none.
    #[inline]
    pub fn advance(&mut self) {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None => {}
            Current::InRing { record } => {
                debug_assert!(self.copied.len() as u64 <= record, "a record is longer than its room");
                self.copied.clear();
                self.skip(record);
            }
            Current::Assembled => self.copied = Vec::new(),
        }
    }

    /// Passes up to `count_max` messages to `take`, advances past them, and returns their number.
    ///
    /// # Errors
    /// As [`Consumer::peek`]; messages before the corrupt place have been handed over.
    pub fn drain(&mut self, count_max: usize, mut take: impl FnMut(&[u8])) -> Result<usize, RingCorrupt> {
        for count in 0..count_max {
            match self.peek()? {
                None => return Ok(count),
                Some(message) => take(message),
            }
            self.advance();
        }
        Ok(count_max)
    }

    /// Releases all consumed room to the producer now.
    ///
    /// It also happens by itself after each eighth of the ring and whenever the ring is found empty.
    #[inline]
    pub fn release(&mut self) {
        self.released |= self.positions.release(self.ring.words());
    }

    /// Whether room was released since the last call: then a sleeping producer must be woken.
    #[inline]
    pub fn take_released(&mut self) -> bool {
        std::mem::take(&mut self.released)
    }

    /// Whether there is a message or an error to read, by one check; for use as a bell's condition.
    #[inline]
    pub fn has_news(&mut self) -> bool {
        !matches!(self.current, Current::None)
            || self.corrupt.is_some()
            || self.positions.readable(self.ring.words()) != Ok(0)
    }

    fn find_next(&mut self) -> Result<(), RingCorrupt> {
        loop {
            let readable = self.positions.readable(self.ring.words())?;
            if readable == 0 {
                self.release();
                return Ok(());
            }
            let at = self.ring.mask(self.positions.consumed());
            let (kind, len, record) = self.check_header(at, readable)?;
            match kind {
                Kind::Message if self.total_bytes.is_none() => {
                    // SAFETY: `check_header` checked the bounds; a correct producer does not write published
                    // bytes until they are released. If a hostile one does, its write is copied or not, and
                    // each byte is read once.
                    self.copied.extend_from_slice(unsafe { self.ring.content(at, len).as_ref() });
                    self.current = Current::InRing { record };
                    return Ok(());
                }
                Kind::Message => return Err(self.bad_fragment(len)),
                Kind::Pad => self.skip(record),
                Kind::First | Kind::Middle | Kind::Last => {
                    self.take_fragment(kind, at, len)?;
                    self.skip(record);
                    if kind == Kind::Last {
                        self.total_bytes = None;
                        self.current = Current::Assembled;
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Kind, content length and record length, all within what was published and within the ring.
    #[inline]
    fn check_header(&self, at: usize, readable: u64) -> Result<(Kind, usize, u64), RingCorrupt> {
        let position = self.positions.consumed();
        let word = self.ring.header(at).load(Ordering::Relaxed);
        let Some((kind, len)) = record::decode(word) else {
            return Err(RingCorrupt::Header { position, word });
        };
        let record = record::record_bytes(u64::from(len));
        let to_end = (self.ring.capacity - at) as u64;
        let is_sound = match kind {
            Kind::Pad => record == to_end,
            _ => len as usize <= self.ring.record_bytes_max(),
        };
        let limit_bytes = readable.min(to_end);
        if !is_sound || limit_bytes < record {
            return Err(RingCorrupt::Length { position, len: u64::from(len), limit_bytes });
        }
        Ok((kind, len as usize, record))
    }

    fn take_fragment(&mut self, kind: Kind, at: usize, len: usize) -> Result<(), RingCorrupt> {
        // SAFETY: `check_header` checked the bounds; the bytes are copied once, before the room is released.
        let mut content = unsafe { self.ring.content(at, len).as_ref() };
        if kind == Kind::First {
            let Some((total, rest)) = content.split_first_chunk() else {
                return Err(self.bad_fragment(len));
            };
            self.start_large(u64::from_le_bytes(*total), len)?;
            content = rest;
        }
        let Some(total) = self.total_bytes else { return Err(self.bad_fragment(len)) };
        let seen = self.copied.len() + content.len();
        let is_sound = if kind == Kind::Last { seen == total } else { seen < total };
        if !is_sound {
            return Err(self.bad_fragment(content.len()));
        }
        self.copied.extend_from_slice(content);
        Ok(())
    }

    fn start_large(&mut self, total_bytes: u64, len: usize) -> Result<(), RingCorrupt> {
        if self.total_bytes.is_some() {
            return Err(self.bad_fragment(len));
        }
        let limit_bytes = self.message_bytes_max as u64;
        if limit_bytes < total_bytes || self.copied.try_reserve_exact(total_bytes as usize).is_err() {
            return Err(RingCorrupt::TooLarge { total_bytes, limit_bytes });
        }
        self.total_bytes = Some(total_bytes as usize);
        Ok(())
    }

    fn bad_fragment(&self, len: usize) -> RingCorrupt {
        RingCorrupt::Fragment {
            position: self.positions.consumed(),
            seen_bytes: (self.copied.len() + len) as u64,
            total_bytes: self.total_bytes.unwrap_or(0) as u64,
        }
    }

    #[inline]
    fn skip(&mut self, record: u64) {
        debug_assert!(record.is_multiple_of(RECORD_ALIGN), "records keep positions aligned");
        self.positions.advance(record);
        if self.ring.capacity as u64 / 8 <= self.positions.unreleased() {
            self.release();
        }
    }
}

#[cfg(not(models))]
#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
