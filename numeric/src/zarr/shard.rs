//! Shards: files of many chunks, each encoded by itself, with an index of where each of them is. A task reads
//! the index, and then the chunks that it needs.
//!
//! Nothing in the index is believed: a chunk is in the file, beside the index and the other chunks, and not
//! longer than its encoder makes it, or the shard is refused before memory is taken for it.

use super::codec::{crc32c, stored_max};
use super::metadata::Metadata;
use super::sharding::{ABSENT, Entry, Sharding};
use crate::storage::{self, Border, Stored, Stretch, corrupt};
use std::path::{Path, PathBuf};
use tharsis_graph::Error as GraphError;

/// A shard whose index was read and checked.
#[derive(Debug)]
pub(super) struct Shard<'a> {
    path: PathBuf,
    metadata: &'a Metadata,
    sharding: &'a Sharding,
    entries: Vec<Entry>,
}

/// A shard that is put together. Its index is at its end.
pub(super) struct Builder<'a> {
    metadata: &'a Metadata,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

/// The most bytes that are held while chunks of a shard are read: its index, as stored and in several forms,
/// and chunks as stored, one of them twice.
pub(super) fn held_bytes(chunks: usize, stored_max: u64) -> u64 {
    128 * chunks as u64 + BATCH_BYTES.max(stored_max) + stored_max
}

/// Stored bytes that are read together.
const BATCH_BYTES: u64 = 4 << 20;

impl<'a> Shard<'a> {
    /// Reads and checks the index of a shard; `None` if there is no such file.
    pub(super) fn open(path: &Path, metadata: &'a Metadata) -> Stored<Option<Shard<'a>>> {
        let Some(sharding) = &metadata.sharding else {
            return Err(GraphError::Internal("an array without shards has one".to_owned()));
        };
        let index_bytes = sharding.index_bytes(&metadata.chunks);
        let found = storage::of(path)?.read_border(path, sharding.border, index_bytes as u64)?;
        let Some((index, size)) = found else { return Ok(None) };
        if index.len() != index_bytes {
            let reason = format!("a shard of {size} bytes, its index alone has {index_bytes}");
            return Err(corrupt(path, reason));
        }
        let entries = sharding.entries(&index).map_err(|reason| corrupt(path, reason))?;
        let shard = Shard { path: path.to_owned(), metadata, sharding, entries };
        shard.check(size).map_err(|reason| corrupt(path, reason))?;
        Ok(Some(shard))
    }

    /// Refuses chunks that are too long, beyond the file, or on bytes of the index or of each other.
    fn check(&self, size: u64) -> Result<(), String> {
        let index_bytes = self.sharding.index_bytes(&self.metadata.chunks) as u64;
        let allowed = match self.sharding.border {
            Border::First => index_bytes..size,
            Border::Last => 0..size - index_bytes,
        };
        let bytes_max = stored_max(&self.metadata.codecs, self.metadata.chunk_bytes() as u64);
        let mut ranges = Vec::new();
        for &(start, len) in self.entries.iter().flatten() {
            let end = start.checked_add(len).filter(|&end| allowed.start <= start && end <= allowed.end);
            let Some(end) = end else {
                return Err(format!("a chunk of {len} bytes from {start} on in a shard of {size}"));
            };
            if bytes_max < len {
                return Err(format!("more than {bytes_max} bytes for a chunk"));
            }
            ranges.push((start, end));
        }
        ranges.sort_unstable();
        match ranges.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            Some(pair) => Err(format!("two chunks share the bytes from {}", pair[1].0)),
            None => Ok(()),
        }
    }

    /// Gives the chunks at these coordinates to `put`, decoded, in any order; `None` for those that are not
    /// there.
    pub(super) fn read(
        &self,
        wanted: Vec<Vec<usize>>,
        put: &mut impl FnMut(&[usize], Option<&[u8]>),
    ) -> Stored<()> {
        let entry =
            |coordinates: &[usize]| self.entries[self.sharding.number(&self.metadata.chunks, coordinates)];
        let mut present = Vec::new();
        for coordinates in wanted {
            match entry(&coordinates) {
                Some((start, len)) => present.push((start, len, coordinates)),
                None => put(&coordinates, None),
            }
        }
        present.sort_unstable();
        let mut rest = present.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |(_, len, _): &&(u64, u64, Vec<usize>)| {
                bytes += len;
                bytes <= BATCH_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (batch, later) = rest.split_at(count);
            self.read_batch(batch, put)?;
            rest = later;
        }
        Ok(())
    }

    fn read_batch(
        &self,
        batch: &[(u64, u64, Vec<usize>)],
        put: &mut impl FnMut(&[usize], Option<&[u8]>),
    ) -> Stored<()> {
        let mut stretches: Vec<Stretch> = Vec::with_capacity(batch.len());
        let mut end = 0;
        for (start, len, _) in batch {
            stretches.push((*start, end..end + *len as usize));
            end += *len as usize;
        }
        let mut stored = vec![0; end];
        storage::of(&self.path)?.read_stretches(&self.path, &stretches, &mut stored)?;
        for ((_, range), (_, _, coordinates)) in stretches.into_iter().zip(batch) {
            let chunk = self.metadata.decode(stored[range].to_vec());
            let chunk = chunk.map_err(|error| corrupt(&self.path, error.to_string()))?;
            put(coordinates, Some(&chunk));
        }
        Ok(())
    }
}

impl<'a> Builder<'a> {
    pub(super) fn new(metadata: &'a Metadata) -> Builder<'a> {
        let count = metadata.sharding.as_ref().map_or(0, |sharding| sharding.chunk_count(&metadata.chunks));
        Builder { metadata, entries: vec![None; count], bytes: Vec::new() }
    }

    /// Adds a chunk.
    pub(super) fn push(&mut self, coordinates: &[usize], encoded: &[u8]) {
        let Some(sharding) = &self.metadata.sharding else { return };
        let number = sharding.number(&self.metadata.chunks, coordinates);
        self.entries[number] = Some((self.bytes.len() as u64, encoded.len() as u64));
        self.bytes.extend_from_slice(encoded);
    }

    /// The bytes of the shard; `None` if it has no chunk.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        if self.entries.iter().all(Option::is_none) {
            return None;
        }
        let pairs = self.entries.iter().map(|entry| entry.unwrap_or((ABSENT, ABSENT)));
        let index: Vec<u8> = pairs.flat_map(|(start, len)| [start, len]).flat_map(u64::to_le_bytes).collect();
        self.bytes.extend_from_slice(&index);
        self.bytes.extend_from_slice(&crc32c(&index).to_le_bytes());
        Some(self.bytes)
    }
}
