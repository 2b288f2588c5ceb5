//! Writes one object to disk: its blocks, then its header.
//!
//! For a larger object, a second thread prepares blocks (copies unaligned bytes, compresses, hashes) while
//! this one writes the earlier ones. So the disk never waits for the processor.

use super::buffer::{BufferPool, PooledBuffer};
use super::codec::{self, CompressedSample, SAMPLE_PIECE_BYTES};
use super::file::SegmentFile;
use super::header::{ALIGN, BLOCK_BYTES, BlockRecord, Codec, Header};
use std::hash::Hasher;
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use twox_hash::XxHash3_64;

/// Blocks copied or compressed ahead of the disk.
const AHEAD_COUNT: usize = 1;
/// Bytes copied and hashed in turn; they stay in the second-level cache.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// An object in memory, in one or several parts.
pub(crate) struct Parts<'a> {
    parts: &'a [&'a [u8]],
    len: u64,
}

/// A block that can be written.
enum Ready<'a> {
    /// The object's bytes in place.
    InPlace(&'a [u8]),
    /// A copy of this many bytes, padding included.
    Copied(PooledBuffer<'a>, usize),
}

impl<'a> Parts<'a> {
    pub(crate) fn new(parts: &'a [&'a [u8]]) -> Parts<'a> {
        Parts { parts, len: parts.iter().map(|part| part.len() as u64).sum() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Offset and length of block `index`.
    fn block(&self, index: u64) -> (u64, usize) {
        let start = index * u64::from(BLOCK_BYTES);
        assert!(start <= self.len, "block {index} of an object of {} bytes", self.len);
        (start, self.len.saturating_sub(start).min(BLOCK_BYTES.into()) as usize)
    }

    /// Bytes `start..start + len`, if they lie in one part.
    fn slice(&self, start: u64, len: usize) -> Option<&'a [u8]> {
        let mut before = 0;
        for part in self.parts {
            let inside = start.checked_sub(before).and_then(|at| usize::try_from(at).ok());
            if let Some(inside) = inside
                && inside < part.len()
            {
                return part.get(inside..inside + len);
            }
            before += part.len() as u64;
        }
        None
    }

    /// Copies from `start` on until `target` is full or the object ends, and returns the number of bytes.
    fn gather(&self, start: u64, target: &mut [u8]) -> usize {
        let (mut before, mut filled) = (0, 0);
        for part in self.parts {
            let skip = (start + filled as u64).saturating_sub(before).min(part.len() as u64) as usize;
            let take = (part.len() - skip).min(target.len() - filled);
            target[filled..filled + take].copy_from_slice(&part[skip..skip + take]);
            filled += take;
            before += part.len() as u64;
        }
        filled
    }
}

impl Ready<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Ready::InPlace(bytes) => bytes,
            Ready::Copied(buffer, len) => buffer.get(..*len).unwrap_or_default(),
        }
    }
}

/// Writes an object at `offset`, completes its header with the blocks, and returns how long the disk took.
///
/// The header goes last: a write that fails before leaves nothing that could be taken for an object.
pub(crate) fn write_object(
    file: &SegmentFile,
    pool: &BufferPool,
    object: &Parts<'_>,
    header: &mut Header,
    offset: u64,
) -> io::Result<Duration> {
    let codec = header.codec;
    let count = object.len.div_ceil(BLOCK_BYTES.into());
    let header_bytes = super::header::header_bytes(count);
    let mut disk_time = Duration::ZERO;
    let mut write = |parts: &[&[u8]], at| {
        let started = Instant::now();
        let written = file.write_at(parts, at);
        disk_time += started.elapsed();
        written
    };
    let mut head = pool.take();
    if count <= 1 {
        let ready = (count == 1).then(|| prepare(file, pool, object, codec, 0)).transpose()?;
        header.blocks = ready.iter().map(|(_, record)| *record).collect();
        let head_len = header.encode(&mut head).ok_or(io::ErrorKind::InvalidInput)?;
        write(&[&head[..head_len], ready.as_ref().map_or(&[], |(ready, _)| ready.bytes())], offset)?;
        return Ok(disk_time);
    }
    // Blocks that are written in place need no buffers, so the disk need not wait for their hashes.
    let ahead_count = if in_place(file, object, codec, 0).is_some() { count as usize } else { AHEAD_COUNT };
    header.blocks = thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Ready<'_>>(ahead_count);
        let helper = thread::Builder::new().name("spill-prepare".into()).spawn_scoped(scope, move || {
            // Nobody receives when a write failed: that error is the one to report.
            let send = |ready| sender.send(ready).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe));
            let mut lying = Vec::new();
            for index in 0..count {
                match in_place(file, object, codec, index) {
                    Some(bytes) => {
                        send(Ready::InPlace(bytes))?;
                        lying.push(Ok(bytes));
                    }
                    None => {
                        let (ready, record) = prepare(file, pool, object, codec, index)?;
                        send(ready)?;
                        lying.push(Err(record));
                    }
                }
            }
            drop(sender);
            Ok(lying.into_iter().map(|block| block.map_or_else(|record| record, record_of)).collect())
        })?;
        write_all(receiver, offset + header_bytes, &mut write)?;
        helper.join().unwrap_or_else(|_| Err(io::Error::other("the thread that prepares blocks died")))
    })?;
    assert_eq!(header.blocks.len() as u64, count, "a block has no record");
    let head_len = header.encode(&mut head).ok_or(io::ErrorKind::InvalidInput)?;
    assert_eq!(head_len as u64, header_bytes, "a header is not as long as its place");
    write(&[&head[..head_len]], offset)?;
    Ok(disk_time)
}

/// Compresses a little of an object, to see what that gives.
pub(crate) fn sample(pool: &BufferPool, object: &Parts<'_>) -> CompressedSample {
    let (mut raw, mut packed) = (pool.take(), pool.take());
    let mut len = 0;
    for quarter in [1, 3] {
        let piece = &mut raw[len..len + SAMPLE_PIECE_BYTES];
        len += object.gather(object.len / 4 * quarter, piece);
    }
    let started = Instant::now();
    let stored_len = codec::compress(&raw[..len], &mut packed).unwrap_or(len);
    let elapsed_ns = started.elapsed().as_nanos() as u64;
    CompressedSample { raw_bytes: len as u64, stored_bytes: stored_len as u64, elapsed_ns }
}

fn write_all(
    receiver: Receiver<Ready<'_>>,
    offset: u64,
    write: &mut impl FnMut(&[&[u8]], u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut at = offset;
    for ready in receiver {
        write(&[ready.bytes()], at)?;
        at += ready.bytes().len() as u64;
    }
    Ok(())
}

/// Block `index`, if it can be written from where it lies.
fn in_place<'a>(file: &SegmentFile, object: &Parts<'a>, codec: Codec, index: u64) -> Option<&'a [u8]> {
    let (start, len) = object.block(index);
    object.slice(start, len).filter(|bytes| codec == Codec::Raw && file.device().takes(bytes))
}

fn prepare<'a>(
    file: &SegmentFile,
    pool: &'a BufferPool,
    object: &Parts<'a>,
    codec: Codec,
    index: u64,
) -> io::Result<(Ready<'a>, BlockRecord)> {
    if let Some(bytes) = in_place(file, object, codec, index) {
        return Ok((Ready::InPlace(bytes), record_of(bytes)));
    }
    let (start, len) = object.block(index);
    let mut buffer = pool.take();
    let packed_len = match (codec, object.slice(start, len)) {
        (Codec::Raw, _) => None,
        (Codec::Lz4, Some(bytes)) => codec::compress(bytes, &mut buffer),
        (Codec::Lz4, None) => {
            let mut raw = pool.take();
            object.gather(start, &mut raw[..len]);
            codec::compress(&raw[..len], &mut buffer)
        }
    };
    // A block that saves no page is stored as it was.
    let pages = |len: usize| len.div_ceil(ALIGN);
    let packed_len = packed_len.filter(|packed_len| pages(*packed_len) < pages(len));
    let stored_len = packed_len.unwrap_or(len);
    let padded_len = stored_len.next_multiple_of(ALIGN);
    buffer[stored_len..padded_len].fill(0);
    let mut hasher = XxHash3_64::new();
    // Copied and hashed in turn, while the bytes are in the cache.
    for at in (0..padded_len).step_by(PIECE_BYTES) {
        let end = padded_len.min(at + PIECE_BYTES);
        if packed_len.is_none() {
            let piece = &mut buffer[at..end.min(len)];
            let filled = object.gather(start + at as u64, piece);
            assert_eq!(filled, piece.len(), "an object ends inside a block");
        }
        hasher.write(&buffer[at..end]);
    }
    let stored_len = u32::try_from(stored_len).map_err(io::Error::other)?;
    Ok((Ready::Copied(buffer, padded_len), BlockRecord { checksum: hasher.finish(), stored_len }))
}

fn record_of(bytes: &[u8]) -> BlockRecord {
    assert!(bytes.len() <= BLOCK_BYTES as usize, "a block is longer than a block");
    BlockRecord { checksum: XxHash3_64::oneshot(bytes), stored_len: bytes.len() as u32 }
}
