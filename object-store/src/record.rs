//! The layout of one record in a ring, and the only place that reads a record header.
//!
//! ```text
//! 0        4        8
//! +--------+--------+----------------------+---------+
//! | len    | tag    | len bytes            | to 8    |
//! +--------+--------+----------------------+---------+
//! ```
//! `tag` is a constant with the kind in its low byte, so that a stray write is not taken for a record.
//! Records start at multiples of 8 and never wrap: a record that does not fit before the end of the ring is
//! preceded by a pad. The first fragment of a large message begins with its total length (8 bytes).

/// Alignment of records and of positions.
pub(crate) const RECORD_ALIGN: u64 = 8;
/// Bytes of a record header.
pub(crate) const HEADER_BYTES: u64 = 8;
/// Bytes of the total length at the start of a first fragment.
pub(crate) const TOTAL_BYTES: u64 = 8;

const TAG: u32 = 0x5448_5200;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// A whole message.
    Message = 1,
    /// Padding up to the end of the ring.
    Pad = 2,
    /// The first part of a large message.
    First = 3,
    /// A part that is neither first nor last.
    Middle = 4,
    /// The part that completes the message.
    Last = 5,
}

impl Kind {
    #[inline]
    fn from_tag(tag: u32) -> Option<Kind> {
        match tag ^ TAG {
            1 => Some(Kind::Message),
            2 => Some(Kind::Pad),
            3 => Some(Kind::First),
            4 => Some(Kind::Middle),
            5 => Some(Kind::Last),
            _ => None,
        }
    }
}

/// The header word of a record.
#[inline]
pub(crate) fn encode(kind: Kind, len: u32) -> u64 {
    u64::from(len) | u64::from(TAG | kind as u32) << 32
}

/// Kind and length in a header word, if it is valid.
#[inline]
pub(crate) fn decode(word: u64) -> Option<(Kind, u32)> {
    Kind::from_tag((word >> 32) as u32).map(|kind| (kind, word as u32))
}

/// Bytes that a record with `len` bytes of content takes in the ring.
#[inline]
pub(crate) fn record_bytes(len: u64) -> u64 {
    HEADER_BYTES + len.next_multiple_of(RECORD_ALIGN)
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_round_trip_and_noise_does_not_pass() {
        for kind in [Kind::Message, Kind::Pad, Kind::First, Kind::Middle, Kind::Last] {
            assert_eq!(decode(encode(kind, 77)), Some((kind, 77)));
        }
        for word in [0, u64::MAX, 1 << 32, encode(Kind::Last, 1) + (1 << 32)] {
            assert_eq!(decode(word), None);
        }
        assert_eq!((record_bytes(0), record_bytes(1), record_bytes(8), record_bytes(32)), (8, 16, 16, 40));
    }
}
