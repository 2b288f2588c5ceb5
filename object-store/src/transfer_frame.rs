//! The fixed-size headers of the transfer protocol, and the only place that parses them.
//!
//! ```text
//! hello    magic[8] version:u32 busy:u32                                               16 bytes
//! request  "TREQ" kind:u32 key[20] zero:u32 request:u64 offset:u64 len:u64              56 bytes
//! chunk    "TCHK" status:u32 request:u64 offset:u64 len:u64 total_len:u64 checksum:u64   48 bytes
//! ```
//! All numbers are little-endian. Nothing here allocates.

/// First bytes of a transfer connection; HTTP/2 begins with `PRI * HT`.
pub const MAGIC: [u8; 8] = *b"THARSIS\x01";
/// Version of the protocol.
pub const VERSION: u32 = 1;

pub(crate) const HELLO_BYTES: usize = 16;
pub(crate) const REQUEST_BYTES: usize = 56;
pub(crate) const CHUNK_HEADER_BYTES: usize = 48;

const REQUEST_TAG: [u8; 4] = *b"TREQ";
const CHUNK_TAG: [u8; 4] = *b"TCHK";

/// Name of an object on the wire; only the caller knows its meaning.
pub type ObjectKey = [u8; 20];

/// The kind of request that the receiver sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Send the range.
    Fetch = 1,
    /// Everything of this request has arrived; the sender may release the object.
    Done = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: RequestKind,
    pub(crate) key: ObjectKey,
    pub(crate) request: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// The kind of data that follows a chunk header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// `len` bytes.
    Chunk = 0,
    /// Nothing: the object is not here, or cannot be read.
    NotFound = 1,
    /// Nothing: the object ends before the range does.
    OutOfRange = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub(crate) status: Status,
    pub(crate) request: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) total_len: u64,
    pub(crate) checksum: u64,
}

pub(crate) fn encode_hello(is_busy: bool) -> [u8; HELLO_BYTES] {
    let mut writer = Writer { bytes: [0; HELLO_BYTES], at: 0 };
    writer.put(&MAGIC);
    writer.put(&VERSION.to_le_bytes());
    writer.put(&u32::from(is_busy).to_le_bytes());
    writer.finish()
}

/// The peer's version and whether it is busy, if this is a hello.
pub(crate) fn decode_hello(bytes: &[u8; HELLO_BYTES]) -> Option<(u32, bool)> {
    let mut reader = Reader { rest: bytes };
    (reader.take::<8>()? == MAGIC).then_some(())?;
    Some((reader.u32()?, reader.u32()? != 0))
}

impl Request {
    pub(crate) fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut writer = Writer { bytes: [0; REQUEST_BYTES], at: 0 };
        writer.put(&REQUEST_TAG);
        writer.put(&(self.kind as u32).to_le_bytes());
        writer.put(&self.key);
        writer.put(&[0; 4]);
        for number in [self.request, self.offset, self.len] {
            writer.put(&number.to_le_bytes());
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Request> {
        let mut reader = Reader { rest: bytes };
        (reader.take()? == REQUEST_TAG).then_some(())?;
        let kind = match reader.u32()? {
            1 => RequestKind::Fetch,
            2 => RequestKind::Done,
            _ => return None,
        };
        let key = reader.take()?;
        (reader.u32()? == 0).then_some(())?;
        Some(Request { kind, key, request: reader.u64()?, offset: reader.u64()?, len: reader.u64()? })
    }
}

impl ChunkHeader {
    pub(crate) fn encode(&self) -> [u8; CHUNK_HEADER_BYTES] {
        let mut writer = Writer { bytes: [0; CHUNK_HEADER_BYTES], at: 0 };
        writer.put(&CHUNK_TAG);
        writer.put(&(self.status as u32).to_le_bytes());
        for number in [self.request, self.offset, self.len, self.total_len, self.checksum] {
            writer.put(&number.to_le_bytes());
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8; CHUNK_HEADER_BYTES]) -> Option<ChunkHeader> {
        let mut reader = Reader { rest: bytes };
        (reader.take()? == CHUNK_TAG).then_some(())?;
        let status = match reader.u32()? {
            0 => Status::Chunk,
            1 => Status::NotFound,
            2 => Status::OutOfRange,
            _ => return None,
        };
        Some(ChunkHeader {
            status,
            request: reader.u64()?,
            offset: reader.u64()?,
            len: reader.u64()?,
            total_len: reader.u64()?,
            checksum: reader.u64()?,
        })
    }
}

struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    fn put(&mut self, part: &[u8]) {
        self.bytes[self.at..self.at + part.len()].copy_from_slice(part);
        self.at += part.len();
    }

    fn finish(self) -> [u8; N] {
        assert_eq!(self.at, N, "a header has room left");
        self.bytes
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_survive_the_round_trip(
            key in any::<[u8; 20]>(),
            numbers in any::<[u64; 5]>(),
            which in 0..3_u8,
        ) {
            let kind = if which == 0 { RequestKind::Fetch } else { RequestKind::Done };
            let request = Request { kind, key, request: numbers[0], offset: numbers[1], len: numbers[2] };
            prop_assert_eq!(Request::decode(&request.encode()), Some(request));
            let status = [Status::Chunk, Status::NotFound, Status::OutOfRange][which as usize];
            let [request, offset, len, total_len, checksum] = numbers;
            let header = ChunkHeader { status, request, offset, len, total_len, checksum };
            prop_assert_eq!(ChunkHeader::decode(&header.encode()), Some(header));
        }

        #[test]
        fn noise_is_refused_quietly(
            mut noise in any::<[u8; REQUEST_BYTES]>(),
            tag in prop_oneof![Just(REQUEST_TAG), Just(CHUNK_TAG), Just(*b"THAR")],
        ) {
            noise[..4].copy_from_slice(&tag);
            let _ = Request::decode(&noise);
            let _ = noise.first_chunk().map(ChunkHeader::decode);
            prop_assert_eq!(noise.first_chunk().and_then(decode_hello), None);
        }
    }

    #[test]
    fn a_hello_names_its_version() {
        for is_busy in [false, true] {
            assert_eq!(decode_hello(&encode_hello(is_busy)), Some((VERSION, is_busy)));
        }
    }
}
