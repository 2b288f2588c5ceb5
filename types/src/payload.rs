//! Payload frames: how an encoded value lies in memory, in a record or in the store.
//!
//! A frame has two forms. The **compact** form is one zero byte and then the in-band bytes: a small value
//! costs one byte. The **full** form carries buffers beside the in-band bytes, each aligned so that it can be
//! read where it lies:
//!
//! ```text
//!      0  magic "THO1"
//!      4  version, 1
//!      5  kind
//!      6  encoding (dtype of a tensor, else 0), u16
//!      8  in-band bytes, u64
//!     16  buffers, u32
//!     20  zero, u32
//!     24  bytes of the whole frame, u64
//!     32  xxh3 of everything after the header, u64; 0 means that none was computed
//!     40  zero, 24 bytes
//!     64  buffer table: (offset u64, bytes u64) each
//!         in-band bytes
//!         buffers, each at a multiple of 64, ascending
//! ```
//!
//! All numbers are little-endian. References nested in a value stand in the in-band bytes and travel once
//! more beside the frame, in the record, so that a node can count them without decoding values.
//!
//! Nothing here trusts its input: [`Frame::parse`] checks every length, offset and alignment.

use crate::limits::OBJECT_ALIGN;

/// Bytes of the header of a full frame.
pub const HEADER_BYTES: usize = 64;
/// Bytes of one entry of the buffer table.
pub const BUFFER_ENTRY_BYTES: usize = 16;
/// Buffers of one frame.
pub const BUFFERS_MAX: usize = 1 << 20;
/// First byte of a compact frame.
pub const COMPACT: u8 = 0;

const MAGIC: [u8; 4] = *b"THO1";
const VERSION: u8 = 1;

/// The kind of content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// An Arrow record batch: its message in band, its body in a buffer.
    Arrow,
    /// Plain bytes: one buffer.
    Bytes,
    /// Anything that serde can encode, with buffers for the zero-copy parts.
    Serde,
    /// An array: dtype in the header, shape in band, contiguous data in one buffer.
    Tensor,
}

/// A frame that is not what its header says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// A buffer does not begin at a multiple of the alignment.
    #[error("buffer {index} begins at {offset}, which is not a multiple of {OBJECT_ALIGN}")]
    Alignment {
        /// Index of the buffer.
        index: usize,
        /// Offset at which it begins.
        offset: u64,
    },
    /// A buffer overlaps what is before it or ends outside the frame.
    #[error("buffer {index} at {offset} with {len} bytes does not fit a frame of {total} bytes")]
    Buffer {
        /// Index of the buffer.
        index: usize,
        /// Offset at which it begins.
        offset: u64,
        /// Its length.
        len: u64,
        /// Bytes of the frame.
        total: u64,
    },
    /// The bytes are not those that were written.
    #[error("checksum is {found:016x}, written was {written:016x}")]
    Checksum {
        /// The checksum in the header.
        written: u64,
        /// The checksum of the bytes.
        found: u64,
    },
    /// There is no such kind.
    #[error("unknown kind of payload {0}")]
    Kind(u8),
    /// The header promises another length than there is.
    #[error("frame says {expected} bytes, there are {found}")]
    Length {
        /// The length in the header.
        expected: u64,
        /// The length of the bytes.
        found: u64,
    },
    /// It does not begin like a frame.
    #[error("not a payload frame")]
    Magic,
    /// A length or a count is beyond its limit.
    #[error("a frame with {buffers} buffers and {in_band} bytes in band is beyond the limits")]
    TooLarge {
        /// Number of the buffers.
        buffers: u64,
        /// In-band bytes.
        in_band: u64,
    },
    /// The frame is of another version.
    #[error("frame version {0}, known is {VERSION}")]
    Version(u8),
}

/// The offset of each part of a frame, so that a value is written once, directly to its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameLayout {
    kind: PayloadKind,
    encoding: u16,
    in_band_len: usize,
    buffers: Vec<(usize, usize)>,
    total_len: usize,
}

/// A frame that was checked: borrowed parts of the bytes it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    kind: PayloadKind,
    encoding: u16,
    checksum: u64,
    bytes: &'a [u8],
    table: &'a [u8],
    in_band: &'a [u8],
}

impl FrameLayout {
    /// Lays out `in_band_len` bytes and buffers of the lengths given.
    ///
    /// # Errors
    /// [`BadFrame::TooLarge`] for too many buffers or a total that does not fit an address.
    pub fn new(
        kind: PayloadKind,
        encoding: u16,
        in_band_len: usize,
        buffer_lens: impl IntoIterator<Item = usize>,
    ) -> Result<Self, BadFrame> {
        let lens: Vec<usize> = buffer_lens.into_iter().collect();
        let too_large = BadFrame::TooLarge { buffers: lens.len() as u64, in_band: in_band_len as u64 };
        if lens.len() > BUFFERS_MAX {
            return Err(too_large);
        }
        if lens.is_empty() && kind == PayloadKind::Serde {
            let total_len = in_band_len.checked_add(1).ok_or(too_large)?;
            return Ok(Self { kind, encoding, in_band_len, buffers: Vec::new(), total_len });
        }
        let mut end = (HEADER_BYTES + lens.len() * BUFFER_ENTRY_BYTES).checked_add(in_band_len);
        let mut buffers = Vec::with_capacity(lens.len());
        for len in lens {
            let offset = end.and_then(|end| end.checked_next_multiple_of(OBJECT_ALIGN));
            end = offset.and_then(|offset| offset.checked_add(len));
            buffers.push((offset.ok_or_else(|| too_large.clone())?, len));
        }
        let total_len = end.filter(|end| isize::try_from(*end).is_ok()).ok_or(too_large)?;
        Ok(Self { kind, encoding, in_band_len, buffers, total_len })
    }

    /// The same with its only buffer at `offset`: for a buffer that was written before the rest was known.
    /// `None` if that is no place for it, or there is not one buffer.
    #[must_use]
    pub fn with_buffer_at(mut self, offset: usize) -> Option<Self> {
        let [(least, len)] = self.buffers[..] else { return None };
        if offset < least || !offset.is_multiple_of(OBJECT_ALIGN) {
            return None;
        }
        self.total_len = offset.checked_add(len)?;
        self.buffers[0].0 = offset;
        Some(self)
    }

    /// Bytes of the whole frame.
    #[must_use]
    pub fn total_len(&self) -> usize {
        self.total_len
    }

    /// Whether the frame has the one-byte header.
    #[must_use]
    pub fn is_compact(&self) -> bool {
        self.buffers.is_empty() && self.kind == PayloadKind::Serde
    }

    /// Offset of each buffer, in the order given.
    pub fn buffer_offsets(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.buffers.iter().map(|(offset, _)| *offset)
    }

    /// Header and buffer table; the in-band bytes follow them directly.
    #[must_use]
    pub fn head(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.head_len());
        self.push_head(&mut out);
        out
    }

    /// Bytes before the in-band bytes.
    #[must_use]
    pub fn head_len(&self) -> usize {
        if self.is_compact() { 1 } else { HEADER_BYTES + self.buffers.len() * BUFFER_ENTRY_BYTES }
    }

    /// Appends header and buffer table.
    pub fn push_head(&self, out: &mut Vec<u8>) {
        if self.is_compact() {
            out.push(COMPACT);
            return;
        }
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, kind_to_byte(self.kind)]);
        out.extend_from_slice(&self.encoding.to_le_bytes());
        out.extend_from_slice(&(self.in_band_len as u64).to_le_bytes());
        out.extend_from_slice(&(self.buffers.len() as u64).to_le_bytes());
        out.extend_from_slice(&(self.total_len as u64).to_le_bytes());
        out.resize(start + HEADER_BYTES, 0);
        for (offset, len) in &self.buffers {
            out.extend_from_slice(&(*offset as u64).to_le_bytes());
            out.extend_from_slice(&(*len as u64).to_le_bytes());
        }
    }

    /// Appends a whole frame; for values small enough to travel in a record.
    pub fn push_frame(&self, in_band: &[u8], buffers: &[impl AsRef<[u8]>], out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.total_len);
        self.push_head(out);
        out.extend_from_slice(in_band);
        for (offset, buffer) in self.buffer_offsets().zip(buffers) {
            out.resize(start + offset, 0);
            out.extend_from_slice(buffer.as_ref());
        }
    }
}

impl<'a> Frame<'a> {
    /// Checks a frame; `bytes` must be exactly the frame.
    ///
    /// # Errors
    /// [`BadFrame`] for anything that does not fit; the bytes are never trusted. The checksum is not looked
    /// at, see [`Frame::verify`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BadFrame> {
        if let Some((&COMPACT, in_band)) = bytes.split_first() {
            return Ok(Self {
                kind: PayloadKind::Serde,
                encoding: 0,
                checksum: 0,
                bytes,
                table: &[],
                in_band,
            });
        }
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(BadFrame::Magic)?;
        let field = |at: usize| u64_at(header, at);
        if header[..4] != MAGIC {
            return Err(BadFrame::Magic);
        }
        if header[4] != VERSION {
            return Err(BadFrame::Version(header[4]));
        }
        let kind = kind_from_byte(header[5])?;
        let (in_band_len, count, total) = (field(8), field(16), field(24));
        if total != bytes.len() as u64 {
            return Err(BadFrame::Length { expected: total, found: bytes.len() as u64 });
        }
        let too_large = BadFrame::TooLarge { buffers: count, in_band: in_band_len };
        if count > BUFFERS_MAX as u64 || in_band_len > total {
            return Err(too_large);
        }
        let (table_end, in_band_len) =
            (HEADER_BYTES + count as usize * BUFFER_ENTRY_BYTES, in_band_len as usize);
        let table = bytes.get(HEADER_BYTES..table_end).ok_or_else(|| too_large.clone())?;
        let in_band_end = table_end.checked_add(in_band_len).ok_or_else(|| too_large.clone())?;
        let in_band = bytes.get(table_end..in_band_end).ok_or(too_large)?;
        check_table(table, in_band_end as u64, total)?;
        let encoding = u16::from_le_bytes([header[6], header[7]]);
        Ok(Self { kind, encoding, checksum: field(32), bytes, table, in_band })
    }

    /// The kind of content: a value, a failure, or bytes of a buffer.
    #[must_use]
    pub fn kind(&self) -> PayloadKind {
        self.kind
    }

    /// The dtype of a tensor.
    #[must_use]
    pub fn encoding(&self) -> u16 {
        self.encoding
    }

    /// The in-band bytes of the frame, without its buffers.
    #[must_use]
    pub fn in_band(&self) -> &'a [u8] {
        self.in_band
    }

    /// Number of buffers in the frame.
    #[must_use]
    pub fn buffer_count(&self) -> usize {
        self.table.len() / BUFFER_ENTRY_BYTES
    }

    /// Range of a buffer in the frame, if it exists.
    #[must_use]
    pub fn buffer_range(&self, index: usize) -> Option<std::ops::Range<usize>> {
        let entry = self.table.chunks_exact(BUFFER_ENTRY_BYTES).nth(index)?;
        let (offset, len) = (u64_at(entry, 0) as usize, u64_at(entry, 8) as usize);
        Some(offset..offset + len)
    }

    /// A buffer, if it exists.
    #[must_use]
    pub fn buffer(&self, index: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.buffer_range(index)?)
    }

    /// Compares the bytes with the checksum, if one was written.
    ///
    /// # Errors
    /// [`BadFrame::Checksum`] if they differ.
    pub fn verify(&self) -> Result<(), BadFrame> {
        if self.checksum == 0 {
            return Ok(());
        }
        let found = checksum(&self.bytes[HEADER_BYTES..]);
        if found == self.checksum {
            Ok(())
        } else {
            Err(BadFrame::Checksum { written: self.checksum, found })
        }
    }
}

/// Writes the checksum into a complete full frame; a compact frame has none.
pub fn seal_checksum(frame: &mut [u8]) {
    if frame.len() >= HEADER_BYTES && frame[0] != COMPACT {
        let sum = checksum(&frame[HEADER_BYTES..]);
        frame[32..40].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Never 0, which means that there is none.
fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes).max(1)
}

fn check_table(table: &[u8], in_band_end: u64, total: u64) -> Result<(), BadFrame> {
    let mut end = in_band_end;
    for (index, entry) in table.chunks_exact(BUFFER_ENTRY_BYTES).enumerate() {
        let (offset, len) = (u64_at(entry, 0), u64_at(entry, 8));
        if !offset.is_multiple_of(OBJECT_ALIGN as u64) {
            return Err(BadFrame::Alignment { index, offset });
        }
        end = match offset.checked_add(len) {
            Some(buffer_end) if end <= offset && buffer_end <= total => buffer_end,
            _ => return Err(BadFrame::Buffer { index, offset, len, total }),
        };
    }
    if end == total { Ok(()) } else { Err(BadFrame::Length { expected: end, found: total }) }
}

/// Reads a number from bytes whose length the caller has checked.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn kind_to_byte(kind: PayloadKind) -> u8 {
    match kind {
        PayloadKind::Serde => 1,
        PayloadKind::Bytes => 2,
        PayloadKind::Tensor => 3,
        PayloadKind::Arrow => 4,
    }
}

fn kind_from_byte(byte: u8) -> Result<PayloadKind, BadFrame> {
    match byte {
        1 => Ok(PayloadKind::Serde),
        2 => Ok(PayloadKind::Bytes),
        3 => Ok(PayloadKind::Tensor),
        4 => Ok(PayloadKind::Arrow),
        other => Err(BadFrame::Kind(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: PayloadKind, in_band: &[u8], buffers: &[Vec<u8>]) -> Vec<u8> {
        let layout = FrameLayout::new(kind, 7, in_band.len(), buffers.iter().map(Vec::len)).unwrap();
        let mut out = Vec::new();
        layout.push_frame(in_band, buffers, &mut out);
        assert_eq!(out.len(), layout.total_len());
        out
    }

    /// A small generator, so that this crate needs no further dependency.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }
    }

    #[test]
    fn a_buffer_may_lie_further_on() {
        let layout = FrameLayout::new(PayloadKind::Serde, 0, 3, [100]).unwrap();
        let moved = layout.clone().with_buffer_at(512).unwrap();
        let mut bytes = moved.head();
        bytes.extend([1, 2, 3]);
        bytes.resize(512, 0);
        bytes.extend([7; 100]);
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!((frame.in_band(), frame.buffer(0)), (&[1, 2, 3][..], Some(&[7; 100][..])));
        assert!(layout.clone().with_buffer_at(64).is_none() && layout.with_buffer_at(513).is_none());
        let two = FrameLayout::new(PayloadKind::Serde, 0, 3, [100, 1]).unwrap();
        assert!(two.with_buffer_at(512).is_none());
    }

    #[test]
    fn any_parts_come_back_as_they_were() {
        let mut numbers = Numbers(1);
        for _ in 0..500 {
            let kinds = [PayloadKind::Serde, PayloadKind::Bytes, PayloadKind::Tensor, PayloadKind::Arrow];
            let kind = kinds[numbers.below(kinds.len())];
            let in_band = vec![numbers.below(256) as u8; numbers.below(200)];
            let buffers: Vec<Vec<u8>> =
                (0..numbers.below(4)).map(|i| vec![i as u8 + 1; numbers.below(300)]).collect();
            let bytes = frame(kind, &in_band, &buffers);
            let parsed = Frame::parse(&bytes).unwrap();
            assert_eq!(parsed.kind(), kind);
            assert_eq!(parsed.in_band(), in_band);
            assert_eq!(parsed.buffer_count(), buffers.len());
            for (index, buffer) in buffers.iter().enumerate() {
                assert_eq!(parsed.buffer(index).unwrap(), buffer);
                assert!(parsed.buffer_range(index).unwrap().start.is_multiple_of(OBJECT_ALIGN));
            }
            assert_eq!(parsed.buffer(buffers.len()), None);
        }
    }

    #[test]
    fn a_small_value_costs_one_byte() {
        assert_eq!(frame(PayloadKind::Serde, b"abc", &[]), b"\0abc");
        assert_eq!(frame(PayloadKind::Bytes, b"", &[]).len(), HEADER_BYTES);
    }

    #[test]
    fn every_cut_and_extension_is_refused() {
        let bytes = frame(PayloadKind::Tensor, b"shape", &[vec![1; 100], vec![2; 64]]);
        for end in 0..bytes.len() {
            assert!(Frame::parse(&bytes[..end]).is_err(), "{end}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(matches!(Frame::parse(&longer), Err(BadFrame::Length { .. })));
    }

    #[test]
    fn changed_bytes_never_panic_and_never_reach_outside() {
        let good = frame(PayloadKind::Serde, b"in band", &[vec![1; 10], vec![], vec![2; 70]]);
        let mut numbers = Numbers(7);
        for round in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..=round % 3 {
                let at = numbers.below(HEADER_BYTES + 3 * BUFFER_ENTRY_BYTES);
                bytes[at] = numbers.below(256) as u8;
            }
            if let Ok(frame) = Frame::parse(&bytes) {
                assert!((0..frame.buffer_count()).all(|i| frame.buffer(i).is_some()));
            }
        }
    }

    #[test]
    fn each_defect_has_its_name() {
        let good = frame(PayloadKind::Bytes, b"", &[vec![1; 10]]);
        let changed = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            Frame::parse(&bytes).map(|_| ()).unwrap_err()
        };
        assert_eq!(changed(0, b'X'), BadFrame::Magic);
        assert_eq!(changed(4, 9), BadFrame::Version(9));
        assert_eq!(changed(5, 9), BadFrame::Kind(9));
        assert!(matches!(changed(24, 9), BadFrame::Length { expected: 9, .. }));
        assert!(matches!(changed(64, 129), BadFrame::Alignment { index: 0, offset: 129 }));
        assert!(matches!(changed(64, 0), BadFrame::Buffer { index: 0, .. }));
        assert!(matches!(changed(22, 255), BadFrame::TooLarge { .. }));
        assert!(FrameLayout::new(PayloadKind::Bytes, 0, usize::MAX, [1]).is_err());
        assert!(FrameLayout::new(PayloadKind::Bytes, 0, 1, [usize::MAX - 200, 200]).is_err());
    }

    #[test]
    fn a_checksum_finds_a_changed_byte() {
        let mut bytes = frame(PayloadKind::Bytes, b"", &[vec![1; 10]]);
        Frame::parse(&bytes).unwrap().verify().unwrap();
        seal_checksum(&mut bytes);
        Frame::parse(&bytes).unwrap().verify().unwrap();
        *bytes.last_mut().unwrap() = 3;
        assert!(matches!(Frame::parse(&bytes).unwrap().verify(), Err(BadFrame::Checksum { .. })));
    }
}
