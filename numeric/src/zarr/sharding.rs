//! Sharding as metadata have it: the chunks of a shard, and its index of where each of them is.

use super::codec::{Fault, crc32c};
use super::coding::{Coding, Parsed, bytes_codec, codecs, extents, is_big, malformed, named, unsupported};
use crate::storage::Border;
use serde_json::{Map, Value as Json, json};
use tharsis_kernels::DType;

/// The most chunks of a shard: a task holds its index as a whole.
pub const SHARD_CHUNKS_MAX: usize = 1 << 20;

/// Grouping of the chunks of an array into files.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sharding {
    /// Extents of a shard, multiples of those of a chunk.
    pub(super) extents: Vec<usize>,
    /// The end of the file at which the index is.
    pub(super) border: Border,
    /// Whether the numbers of the index have their bytes in reverse order.
    pub(super) is_swapped: bool,
    /// Whether a checksum is behind the index.
    pub(super) has_checksum: bool,
}

/// Start and length of a chunk in its shard; `None` if it is not there.
pub(super) type Entry = Option<(u64, u64)>;

/// The start and the length in an entry for a chunk that is not there.
pub(super) const ABSENT: u64 = u64::MAX;
const ENTRY_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;
impl Sharding {
    /// The form in which arrays are written here.
    pub(super) fn new(extents: &[usize]) -> Sharding {
        Sharding { extents: extents.to_vec(), border: Border::Last, is_swapped: false, has_checksum: true }
    }

    /// Reads the configuration of the codec `sharding_indexed`: the sharding, the extents of a chunk, whether
    /// its bytes are swapped, and its codecs.
    pub(super) fn parse(
        shard: &[usize],
        configuration: &Map<String, Json>,
        dtype: DType,
    ) -> Parsed<(Sharding, Vec<usize>, Coding)> {
        let part = |name: &str| {
            let missing = || Fault::Malformed(format!("the codec sharding_indexed without {name}"));
            configuration.get(name).ok_or_else(missing)
        };
        let chunks = extents(part("chunk_shape")?)?;
        let coding = codecs(part("codecs")?, dtype)?;
        let border = match configuration.get("index_location").map_or(Some("end"), Json::as_str) {
            Some("end") => Border::Last,
            Some("start") => Border::First,
            _ => return malformed("an index of shards that is neither at the start nor at the end"),
        };
        let Some(of_index) = part("index_codecs")?.as_array() else {
            return malformed("codecs of an index that are no list");
        };
        let of_index = of_index.iter().map(named).collect::<Parsed<Vec<_>>>()?;
        let (is_swapped, has_checksum) = match of_index.as_slice() {
            [("bytes", order)] => (is_big(order)?, false),
            [("bytes", order), ("crc32c", _)] => (is_big(order)?, true),
            _ => {
                let names: Vec<_> = of_index.iter().map(|(name, _)| *name).collect();
                return unsupported(format!("the codecs {names:?} of the index of a shard"));
            }
        };
        let sharding = Sharding { extents: shard.to_vec(), border, is_swapped, has_checksum };
        sharding.check(&chunks)?;
        Ok((sharding, chunks, coding))
    }

    /// Refuses shards that do not consist of whole chunks, or of too many.
    pub(super) fn check(&self, chunks: &[usize]) -> Parsed<()> {
        let extents = &self.extents;
        let is_whole = |(shard, chunk): (&usize, &usize)| *chunk != 0 && shard.is_multiple_of(*chunk);
        if extents.len() != chunks.len() || !extents.iter().zip(chunks).all(is_whole) {
            return malformed(format!("shards of {extents:?} of chunks of {chunks:?}"));
        }
        let mut axes = extents.iter().zip(chunks).map(|(shard, chunk)| shard / chunk);
        let count = axes.try_fold(1, |count: usize, axis| {
            count.checked_mul(axis).filter(|&count| 0 < count && count <= SHARD_CHUNKS_MAX)
        });
        match count {
            Some(_) => Ok(()),
            None => unsupported(format!("shards of none or more than {SHARD_CHUNKS_MAX} chunks")),
        }
    }

    pub(super) fn to_json(&self, chunks: &[usize], codecs: Vec<Json>) -> Json {
        let mut of_index = vec![bytes_codec(DType::U64, self.is_swapped)];
        if self.has_checksum {
            of_index.push(json!({"name": "crc32c"}));
        }
        let location = if self.border == Border::First { "start" } else { "end" };
        json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunks,
            "codecs": codecs,
            "index_codecs": of_index,
            "index_location": location,
        }})
    }

    pub(super) fn chunk_count(&self, chunks: &[usize]) -> usize {
        self.extents.iter().zip(chunks).map(|(shard, chunk)| shard / chunk).product()
    }

    /// The number of a chunk in its shard.
    pub(super) fn number(&self, chunks: &[usize], coordinates: &[usize]) -> usize {
        let axes = self.extents.iter().zip(chunks).zip(coordinates);
        axes.fold(0, |number, ((shard, chunk), at)| number * (shard / chunk) + at % (shard / chunk))
    }

    pub(super) fn index_bytes(&self, chunks: &[usize]) -> usize {
        let checksum_bytes = if self.has_checksum { CHECKSUM_BYTES } else { 0 };
        self.chunk_count(chunks) * ENTRY_BYTES + checksum_bytes
    }

    /// The entries of an index, or what is wrong with it.
    pub(super) fn entries(&self, index: &[u8]) -> Result<Vec<Entry>, &'static str> {
        let mut entries = index;
        if self.has_checksum {
            let (rest, sum) = index.split_at(index.len() - CHECKSUM_BYTES);
            if sum != crc32c(rest).to_le_bytes() {
                return Err("the checksum of its index is that of other bytes");
            }
            entries = rest;
        }
        let number = |bytes: &[u8]| {
            let number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
            if self.is_swapped { number.swap_bytes() } else { number }
        };
        let entry = |bytes: &[u8]| match (number(&bytes[..8]), number(&bytes[8..])) {
            (ABSENT, ABSENT) => None,
            found => Some(found),
        };
        Ok(entries.chunks_exact(ENTRY_BYTES).map(entry).collect())
    }
}
