//! Positions of both sides of a ring: the only words that both sides touch.
//!
//! Two words, each on cache lines of its own, count bytes since the ring was made. They never wrap: a word of
//! [`POSITION_MAX`] or more, which no ring reaches, is refused.
//!
//! * `published`: written by the producer alone. Bytes below it are complete; the release store that moves it
//!   and the consumer's acquire load make the bytes visible with it.
//! * `consumed`: written by the consumer alone. Bytes below it may be overwritten; its release store and the
//!   producer's acquire load make sure that no byte is overwritten while it is still being read.
//!
//! `published - consumed <= capacity` holds at all times. Each side keeps its own position and a copy of the
//! peer's locally and loads the peer's word only when the copy says "full" or "empty", so in steady state the
//! lines move between cores once per batch, not once per message. A word that breaks the relation (a hostile
//! or confused peer) is an error and nothing is read or written through it.
//!
//! A side may die between any two instructions: its word then simply stops moving. Bytes that are staged but
//! not published are never seen.

use crate::sync::{AtomicU64, Ordering};

/// More than any ring carries: at 100 GB/s it would take almost three years.
const POSITION_MAX: u64 = 1 << 63;

/// Two 64-byte lines: adjacent lines are fetched in pairs.
#[repr(C, align(128))]
pub(crate) struct Line(pub(crate) AtomicU64);

/// The shared words.
#[repr(C)]
pub(crate) struct PositionWords {
    pub(crate) published: Line,
    pub(crate) consumed: Line,
}

/// The peer's word has an impossible value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadPosition {
    pub(crate) published: u64,
    pub(crate) consumed: u64,
}

/// The positions as known to the producer.
pub(crate) struct ProducerPositions {
    capacity: u64,
    staged: u64,
    published: u64,
    consumed_seen: u64,
}

impl ProducerPositions {
    /// Continues from the stored positions, as producer.
    pub(crate) fn attach(words: &PositionWords, capacity: u64) -> Result<ProducerPositions, BadPosition> {
        let published = words.published.0.load(Ordering::Acquire);
        let consumed_seen = words.consumed.0.load(Ordering::Acquire);
        check(published, consumed_seen, capacity)?;
        Ok(ProducerPositions { capacity, staged: published, published, consumed_seen })
    }

    /// Whether `need` more bytes fit behind what is staged.
    #[inline]
    pub(crate) fn has_room(&mut self, words: &PositionWords, need: u64) -> Result<bool, BadPosition> {
        if need <= self.capacity - (self.staged - self.consumed_seen) {
            return Ok(true);
        }
        let consumed = words.consumed.0.load(Ordering::Acquire);
        check(self.published, consumed, self.capacity)?;
        if consumed < self.consumed_seen {
            return Err(BadPosition { published: self.published, consumed });
        }
        debug_assert!(consumed <= self.published, "more was consumed than was published");
        self.consumed_seen = consumed;
        Ok(need <= self.capacity - (self.staged - consumed))
    }

    /// Adds complete bytes that stay invisible for now.
    #[inline]
    pub(crate) fn stage(&mut self, bytes: u64) {
        self.staged += bytes;
        debug_assert!(
            self.staged - self.consumed_seen <= self.capacity,
            "staged more than there was room for"
        );
    }

    /// Shows the consumer everything staged; false if there was nothing.
    #[inline]
    pub(crate) fn publish(&mut self, words: &PositionWords) -> bool {
        if self.staged == self.published {
            return false;
        }
        debug_assert!(self.published < self.staged, "positions go backward");
        self.published = self.staged;
        words.published.0.store(self.staged, Ordering::Release);
        true
    }

    /// Position at which the next record is written.
    #[inline]
    pub(crate) fn staged(&self) -> u64 {
        self.staged
    }
}

/// The positions as known to the consumer.
pub(crate) struct ConsumerPositions {
    capacity: u64,
    consumed: u64,
    released: u64,
    published_seen: u64,
}

impl ConsumerPositions {
    /// Continues from the stored positions, as consumer.
    pub(crate) fn attach(words: &PositionWords, capacity: u64) -> Result<ConsumerPositions, BadPosition> {
        let consumed = words.consumed.0.load(Ordering::Acquire);
        let published_seen = words.published.0.load(Ordering::Acquire);
        check(published_seen, consumed, capacity)?;
        Ok(ConsumerPositions { capacity, consumed, released: consumed, published_seen })
    }

    /// Bytes that may be read; loads the shared word only when the known bytes are used up.
    #[inline]
    pub(crate) fn readable(&mut self, words: &PositionWords) -> Result<u64, BadPosition> {
        if self.consumed < self.published_seen {
            return Ok(self.published_seen - self.consumed);
        }
        let published = words.published.0.load(Ordering::Acquire);
        check(published, self.consumed, self.capacity)?;
        debug_assert!(self.published_seen <= published, "what was published is taken back");
        self.published_seen = published;
        Ok(published - self.consumed)
    }

    /// Advances past `bytes`, without telling the producer yet.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.consumed += bytes;
        debug_assert!(self.consumed <= self.published_seen, "consumed what was not published");
    }

    /// Releases all consumed bytes to the producer; false if there were none.
    #[inline]
    pub(crate) fn release(&mut self, words: &PositionWords) -> bool {
        if self.released == self.consumed {
            return false;
        }
        debug_assert!(self.released < self.consumed, "positions go backward");
        self.released = self.consumed;
        words.consumed.0.store(self.consumed, Ordering::Release);
        true
    }

    /// Consumed bytes that are not released to the producer yet.
    #[inline]
    pub(crate) fn unreleased(&self) -> u64 {
        self.consumed - self.released
    }

    /// Position at which the next record is read.
    #[inline]
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }
}

#[inline]
fn check(published: u64, consumed: u64, capacity: u64) -> Result<(), BadPosition> {
    let aligned = (published | consumed).is_multiple_of(crate::record::RECORD_ALIGN);
    match published.checked_sub(consumed) {
        Some(used) if used <= capacity && aligned && published <= POSITION_MAX => Ok(()),
        _ => Err(BadPosition { published, consumed }),
    }
}

#[cfg(models)]
#[cfg(test)]
#[allow(unsafe_code)]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Shared {
        words: PositionWords,
        slots: [UnsafeCell<u64>; 2],
    }

    /// Slots of 8 bytes in a ring of two: loom reports any unordered access to one of them.
    #[test]
    fn loom_every_slot_is_read_once_and_in_order() {
        loom::model(|| {
            let line = || Line(AtomicU64::new(0));
            let shared = Arc::new(Shared {
                words: PositionWords { published: line(), consumed: line() },
                slots: [UnsafeCell::new(0), UnsafeCell::new(0)],
            });
            let producer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let mut positions = ProducerPositions::attach(&shared.words, 16).unwrap();
                    for value in 1..=3_u64 {
                        while !positions.has_room(&shared.words, 8).unwrap() {
                            thread::yield_now();
                        }
                        let slot = (positions.staged() / 8 % 2) as usize;
                        // SAFETY: the room belongs to the producer; loom checks exactly this claim.
                        shared.slots[slot].with_mut(|p| unsafe { *p = value });
                        positions.stage(8);
                        positions.publish(&shared.words);
                    }
                })
            };
            let mut positions = ConsumerPositions::attach(&shared.words, 16).unwrap();
            for value in 1..=3_u64 {
                while positions.readable(&shared.words).unwrap() == 0 {
                    positions.release(&shared.words);
                    thread::yield_now();
                }
                let slot = (positions.consumed() / 8 % 2) as usize;
                // SAFETY: published bytes belong to the consumer; loom checks exactly this claim.
                shared.slots[slot].with(|p| assert_eq!(unsafe { *p }, value));
                positions.advance(8);
                positions.release(&shared.words);
            }
            producer.join().unwrap();
        });
    }
}
