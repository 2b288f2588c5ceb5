//! Layout of one spilled object, and the only place that parses it.
//!
//! ```text
//! offset  bytes
//!      0      8  magic "THSPILL\x01"
//!      8      4  version
//!     12      4  codec: 0 as it was, 1 lz4
//!     16     20  object key
//!     36      4  block count
//!     40      8  session: random, one per spill directory and process
//!     48      8  sequence: one per write
//!     56      8  length of the object
//!     64      8  stored length: the blocks with their padding
//!     72      4  block bytes: length of every block but the last, before compression
//!     76      4  zero
//!     80      8  xxh3 of the whole header, padding included, these eight bytes as zero
//!     88   16 n  per block: xxh3 of what is stored, padding included; stored length; zero
//! zeros up to a multiple of 4096
//! blocks, each followed by zeros up to a multiple of 4096
//! ```
//! All numbers are little-endian. A checksum covers every byte of an object on disk, padding too, so every
//! flipped bit is found. A block that compression does not make smaller is stored uncompressed, which its
//! stored length shows.

use super::error::HeaderError;
use crate::transfer::ObjectKey;
use std::hash::Hasher;
use twox_hash::XxHash3_64;

/// Alignment of a direct read or write, in memory and on disk.
pub(crate) const ALIGN: usize = 4096;
/// Length of a block before compression: large enough for the full speed of a disk, small enough to have
/// several in memory.
pub(crate) const BLOCK_BYTES: u32 = 4 << 20;
/// Largest object: its block table stays below a mebibyte.
pub(crate) const OBJECT_BYTES_MAX: u64 = (1 << 16) * BLOCK_BYTES as u64;

const MAGIC: [u8; 8] = *b"THSPILL\x01";
const VERSION: u32 = 1;
const FIXED_BYTES: usize = 88;
const CHECKSUM_AT: usize = 80;
const RECORD_BYTES: usize = 16;

/// The encoding of an object's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not compressed.
    Raw = 0,
    /// Each block compressed with lz4.
    Lz4 = 1,
}

/// One block as it lies on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRecord {
    pub(crate) checksum: u64,
    /// Without padding.
    pub(crate) stored_len: u32,
}

/// Facts about an object, except its bytes and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) key: ObjectKey,
    pub(crate) session: u64,
    pub(crate) sequence: u64,
    pub(crate) len: u64,
    pub(crate) block_bytes: u32,
    pub(crate) codec: Codec,
    pub(crate) blocks: Box<[BlockRecord]>,
}

impl Header {
    /// Bytes of the header with its padding.
    pub(crate) fn stored_bytes(&self) -> u64 {
        header_bytes(self.blocks.len() as u64)
    }

    /// Bytes of all blocks with their padding.
    pub(crate) fn blocks_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| align_up(block.stored_len.into())).sum()
    }

    /// Offset of block `index` from the header.
    pub(crate) fn block_offset(&self, index: usize) -> u64 {
        let before = self.blocks.iter().take(index).map(|block| align_up(block.stored_len.into()));
        self.stored_bytes() + before.sum::<u64>()
    }

    /// Length of block `index` before compression.
    pub(crate) fn block_len(&self, index: usize) -> u64 {
        let start = index as u64 * u64::from(self.block_bytes);
        self.len.saturating_sub(start).min(self.block_bytes.into())
    }

    /// Writes the header to the front of `target` and returns its length, or `None` if it does not fit.
    pub(crate) fn encode(&self, target: &mut [u8]) -> Option<usize> {
        let stored_bytes = usize::try_from(self.stored_bytes()).ok()?;
        let target = target.get_mut(..stored_bytes)?;
        let count = u32::try_from(self.blocks.len()).ok()?;
        target.fill(0);
        let (fixed, table) = target.split_at_mut(FIXED_BYTES);
        let mut at = 0;
        let mut put = |part: &[u8]| {
            fixed[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&(self.codec as u32).to_le_bytes());
        put(&self.key);
        put(&count.to_le_bytes());
        for number in [self.session, self.sequence, self.len, self.blocks_bytes()] {
            put(&number.to_le_bytes());
        }
        put(&self.block_bytes.to_le_bytes());
        for (place, block) in table.chunks_exact_mut(RECORD_BYTES).zip(&self.blocks) {
            place[..8].copy_from_slice(&block.checksum.to_le_bytes());
            place[8..12].copy_from_slice(&block.stored_len.to_le_bytes());
        }
        let checksum = XxHash3_64::oneshot(target);
        target[CHECKSUM_AT..FIXED_BYTES].copy_from_slice(&checksum.to_le_bytes());
        Some(stored_bytes)
    }

    /// Writes the right checksum into the header in `bytes`, if `bytes` is long enough for its block count.
    #[cfg(feature = "inputs")]
    pub(crate) fn seal(bytes: &mut [u8]) {
        let count =
            bytes.get(36..40).and_then(|count| count.first_chunk()).map(|count| u32::from_le_bytes(*count));
        let end = count.and_then(|count| usize::try_from(header_bytes(count.into())).ok());
        if let Some(whole) = end.and_then(|end| bytes.get_mut(..end)) {
            whole[CHECKSUM_AT..FIXED_BYTES].fill(0);
            let checksum = XxHash3_64::oneshot(whole);
            whole[CHECKSUM_AT..FIXED_BYTES].copy_from_slice(&checksum.to_le_bytes());
        }
    }

    /// Reads a header from the front of `bytes`. Allocates no more than the block table in `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Header, HeaderError> {
        let short = |needed_bytes| HeaderError::Short { needed_bytes, found_bytes: bytes.len() as u64 };
        let Some(fixed) = bytes.first_chunk::<FIXED_BYTES>() else { return Err(short(ALIGN as u64)) };
        let mut reader = Reader { rest: fixed };
        if reader.take::<8>() != MAGIC {
            return Err(HeaderError::Magic);
        }
        match reader.u32() {
            VERSION => {}
            found => return Err(HeaderError::Version { found }),
        }
        let codec = reader.u32();
        let key = reader.take();
        let count = reader.u32();
        let (session, sequence) = (reader.u64(), reader.u64());
        let (len, blocks_bytes) = (reader.u64(), reader.u64());
        let block_bytes = reader.u32();
        // The count is checked against the given bytes before anything is allocated for it.
        let stored_bytes = header_bytes(count.into());
        let whole = usize::try_from(stored_bytes).ok().and_then(|end| bytes.get(..end));
        let Some(whole) = whole else { return Err(short(stored_bytes)) };
        check_sum(whole, fixed)?;
        let codec = match codec {
            0 => Codec::Raw,
            1 => Codec::Lz4,
            found => return Err(HeaderError::Codec { found }),
        };
        let wrong = |what| Err(HeaderError::Length { what });
        if block_bytes == 0 || !(block_bytes as usize).is_multiple_of(ALIGN) {
            return wrong("block length");
        }
        if u64::from(count) != len.div_ceil(block_bytes.into()) {
            return wrong("block count");
        }
        let table = whole[FIXED_BYTES..].chunks_exact(RECORD_BYTES).take(count as usize);
        let blocks = table.map(|record| {
            let mut reader = Reader { rest: record };
            BlockRecord { checksum: reader.u64(), stored_len: reader.u32() }
        });
        let header = Header { key, session, sequence, len, block_bytes, codec, blocks: blocks.collect() };
        for (index, block) in header.blocks.iter().enumerate() {
            let (stored_len, raw_len) = (u64::from(block.stored_len), header.block_len(index));
            if raw_len < stored_len || stored_len == 0 || (codec == Codec::Raw && stored_len != raw_len) {
                return wrong("stored length of a block");
            }
        }
        if header.blocks_bytes() != blocks_bytes {
            return wrong("stored length");
        }
        Ok(header)
    }
}

/// Bytes of a header with `count` blocks, with its padding.
pub(crate) fn header_bytes(count: u64) -> u64 {
    align_up(FIXED_BYTES as u64 + count * RECORD_BYTES as u64)
}

/// The next multiple of [`ALIGN`]; lengths here are far from the end of `u64`.
pub(crate) fn align_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN as u64)
}

/// Upper bound on the bytes that an object of `len` bytes takes on disk.
pub(crate) fn extent_bytes_max(len: u64) -> u64 {
    header_bytes(len.div_ceil(BLOCK_BYTES.into())) + align_up(len)
}

fn check_sum(whole: &[u8], fixed: &[u8; FIXED_BYTES]) -> Result<(), HeaderError> {
    let mut hasher = XxHash3_64::new();
    hasher.write(&whole[..CHECKSUM_AT]);
    hasher.write(&[0; FIXED_BYTES - CHECKSUM_AT]);
    hasher.write(&whole[FIXED_BYTES..]);
    let mut stored = Reader { rest: &fixed[CHECKSUM_AT..] };
    if hasher.finish() == stored.u64() { Ok(()) } else { Err(HeaderError::Checksum) }
}

/// Takes numbers from the front of a slice that is known to be long enough; zeros beyond its end.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.rest.split_first_chunk() {
            Some((head, rest)) => {
                self.rest = rest;
                *head
            }
            None => [0; N],
        }
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(len: u64, codec: Codec, seed: u64) -> Header {
        let count = len.div_ceil(BLOCK_BYTES.into());
        let mut header = Header {
            key: [seed as u8; 20],
            session: seed,
            sequence: !seed,
            len,
            block_bytes: BLOCK_BYTES,
            codec,
            blocks: vec![BlockRecord { checksum: seed, stored_len: 0 }; count as usize].into(),
        };
        for index in 0..header.blocks.len() {
            let raw_len = header.block_len(index) as u32;
            let less = if codec == Codec::Raw { 0 } else { seed as u32 % raw_len };
            header.blocks[index].stored_len = raw_len - less;
        }
        header
    }

    fn encoded(header: &Header) -> Vec<u8> {
        let mut bytes = vec![0xAA; header.stored_bytes() as usize];
        assert_eq!(header.encode(&mut bytes), Some(bytes.len()));
        bytes
    }

    proptest! {
        #[test]
        fn a_header_survives_the_round_trip(len in 0..1_u64 << 33, lz4: bool, seed: u64) {
            let header = header(len, if lz4 { Codec::Lz4 } else { Codec::Raw }, seed);
            let bytes = encoded(&header);
            prop_assert!(bytes.len().is_multiple_of(ALIGN));
            prop_assert_eq!(Header::decode(&bytes), Ok(header));
        }

        #[test]
        fn noise_is_refused_quietly(
            mut noise in prop::collection::vec(any::<u8>(), 0..3 * ALIGN),
            depth in 0..4_u8,
            sum: bool,
        ) {
            // Right magic, version, codec and checksum in turn let the noise reach every check.
            if FIXED_BYTES < noise.len() {
                let parts: [&[u8]; 3] = [&MAGIC, &VERSION.to_le_bytes(), &1_u32.to_le_bytes()];
                let right = parts.concat();
                let until = [0, 8, 12, 16][depth as usize];
                noise[..until].copy_from_slice(&right[..until]);
                if sum {
                    noise[36..40].copy_from_slice(&3_u32.to_le_bytes());
                    noise[CHECKSUM_AT..FIXED_BYTES].fill(0);
                    let checksum = XxHash3_64::oneshot(&noise[..noise.len().min(ALIGN)]);
                    noise[CHECKSUM_AT..FIXED_BYTES].copy_from_slice(&checksum.to_le_bytes());
                }
            }
            prop_assert!(Header::decode(&noise).is_err());
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_of_a_header_is_found() {
        let good = encoded(&header(3 * u64::from(BLOCK_BYTES) - 5, Codec::Lz4, 77));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&bad).is_err(), "bit {bit}");
        }
        for len in 0..good.len() {
            assert!(Header::decode(&good[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused_even_under_a_right_checksum() {
        let good = header(10_000, Codec::Lz4, 3);
        let absurd = 4_699_037_094_196_886_216;
        let mut longer = good.clone();
        longer.len = absurd;
        let mut bomb = good.clone();
        bomb.blocks[0].stored_len = u32::MAX;
        let mut none = good.clone();
        none.block_bytes = 0;
        let mut raw = good.clone();
        raw.codec = Codec::Raw;
        for bad in [longer, bomb, none, raw] {
            let mut bytes = vec![0; ALIGN];
            bad.encode(&mut bytes).unwrap();
            assert!(matches!(Header::decode(&bytes), Err(HeaderError::Length { .. })), "{bad:?}");
        }
        let mut many = encoded(&good);
        many[36..40].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(Header::decode(&many), Err(HeaderError::Short { .. })));
    }
}
