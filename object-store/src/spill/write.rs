//! One object to disk: its blocks, then its header.
//!
//! Of a larger object a second thread prepares blocks (copies what is not aligned, compresses, hashes) while
//! this one writes those before, so that the disk never waits for the processor.

use super::buffer::{BufferPool, PooledBuffer};
use super::codec::{self, CompressedSample, SAMPLE_PIECE_BYTES};
use super::file::SegmentFile;
use super::header::{ALIGN, BLOCK_BYTES, BlockRecord, Codec, Header};
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

/// Blocks prepared ahead of the disk.
const AHEAD_COUNT: usize = 1;

/// An object in memory, in one or several parts.
pub(crate) struct Parts<'a> {
    parts: &'a [&'a [u8]],
    len: u64,
}

/// A block that can be written.
enum Ready<'a> {
    /// Where the object lies.
    InPlace(&'a [u8]),
    /// A copy of so many bytes, padding included.
    Copied(PooledBuffer<'a>, usize),
}

impl<'a> Parts<'a> {
    pub(crate) fn new(parts: &'a [&'a [u8]]) -> Parts<'a> {
        Parts { parts, len: parts.iter().map(|part| part.len() as u64).sum() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
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
    header.blocks = thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Ready<'_>>(AHEAD_COUNT);
        let helper = thread::Builder::new().name("spill-prepare".into()).spawn_scoped(scope, move || {
            (0..count)
                .map(|index| {
                    let (ready, record) = prepare(file, pool, object, codec, index)?;
                    // Nobody receives when a write failed: that error is the one to report.
                    sender.send(ready).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
                    Ok(record)
                })
                .collect::<io::Result<Box<[BlockRecord]>>>()
        })?;
        write_all(receiver, offset + header_bytes, &mut write)?;
        helper.join().unwrap_or_else(|_| Err(io::Error::other("the thread that prepares blocks died")))
    })?;
    let head_len = header.encode(&mut head).ok_or(io::ErrorKind::InvalidInput)?;
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

fn prepare<'a>(
    file: &SegmentFile,
    pool: &'a BufferPool,
    object: &Parts<'a>,
    codec: Codec,
    index: u64,
) -> io::Result<(Ready<'a>, BlockRecord)> {
    let start = index * u64::from(BLOCK_BYTES);
    let len = object.len.saturating_sub(start).min(BLOCK_BYTES.into()) as usize;
    let (ready, stored_len) = match object.slice(start, len) {
        Some(bytes) if codec == Codec::Raw && file.device().takes(bytes) => (Ready::InPlace(bytes), len),
        slice => {
            let mut buffer = pool.take();
            let packed_len = match (codec, slice) {
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
            let stored_len = match packed_len.filter(|packed_len| pages(*packed_len) < pages(len)) {
                Some(packed_len) => packed_len,
                None => object.gather(start, &mut buffer[..len]),
            };
            let padded_len = stored_len.next_multiple_of(ALIGN);
            buffer[stored_len..padded_len].fill(0);
            (Ready::Copied(buffer, padded_len), stored_len)
        }
    };
    let stored_len = u32::try_from(stored_len).map_err(io::Error::other)?;
    let record = BlockRecord { checksum: xxh3_64(ready.bytes()), stored_len };
    Ok((ready, record))
}
