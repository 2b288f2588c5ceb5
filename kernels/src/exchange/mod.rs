//! Kernels of exchanges, in which each task of one stage makes a piece for each task of a later one: sorting
//! by value, and taking and putting rows by position, where the elements lie in many chunks.
//!
//! Sizes of pieces depend on values. So the elements are counted first, by kernels that go through the same
//! chunks in the same way, and a plan has exact sizes.

mod buckets;
mod pieces;
#[cfg(test)]
mod placed;
mod rows;
mod sorting;

pub use buckets::Splitter;
pub use rows::RowMap;
pub use sorting::{SAMPLE_WORDS, SortMap};

use crate::chunk::Chunk;
use crate::error::KernelError;
use crate::evaluate::Scratch;
use crate::order::Direction;
use crate::site::Site;
use crate::sparse::Sparse;
use serde::{Deserialize, Serialize};

/// A kernel that makes pieces, or reads them. The pieces that it reads are a column of each table: one of
/// each task that made them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Exchange {
    /// (n) and the number of the chunk to the elements for each bucket; with positions, a second table of
    /// their positions, int64.
    Deal(SortMap),
    /// As `Deal`, of some buckets only.
    Pick {
        /// All buckets.
        map: SortMap,
        /// Whether each of them is wanted.
        wanted: Vec<bool>,
    },
    /// The elements of a bucket to those at some places of their order (k).
    Ranked {
        /// The order.
        direction: Direction,
        /// The places in each bucket, those of one bucket behind those of the other.
        ranks: Vec<u64>,
    },
    /// The elements of a bucket, and perhaps their positions, to one sorted chunk (n), and its positions.
    Sort(SortMap),
    /// Positions (k), and all chunks of rows where they lie, to rows in the order of the positions (k, ..).
    Gather(RowMap),
    /// Positions (k) of rows to positions within each chunk of rows.
    Requests(RowMap),
    /// A chunk of rows (n, ..), and requests, to the rows asked for: a piece for each request.
    Answers,
    /// The positions again, and the answers, to rows in the order of the positions (k, ..).
    Arrange(RowMap),
    /// Positions (k) and rows (k, ..) to a table of positions and a table of rows, for each chunk of rows.
    Updates(RowMap),
    /// A chunk of rows (n, ..), positions, and rows to put there, in the order of the pieces.
    Update,
    /// A function of tiles of sparse matrices.
    Sparse(Sparse),
    /// The number of elements that it would store.
    CountSparse(Sparse),
}

/// A kernel that measures an exchange before it is planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Measure {
    /// (n) to (1 + samples, 3) of uint64: the number of elements and of buckets, then the keys and places of
    /// some elements.
    Sample {
        /// Samples of each chunk; fewer if it has fewer elements.
        count: usize,
        /// The number of buckets that the plan wants.
        buckets: usize,
    },
    /// The arguments of `Exchange::Deal` to (1, 1 + buckets) of int64: the number of elements, and of those
    /// for each bucket.
    CountDealt(SortMap),
    /// Positions (k) of rows to (1, 2 + 2 s) of int64 for s chunks of rows: the number of
    /// positions, s, where each chunk ends, and the number of requests to each.
    CountRequests(RowMap),
}

impl Exchange {
    /// Applies the kernel to chunks, and to the pieces of each table that it reads. What is made of sparse
    /// matrices depends on the site.
    ///
    /// # Errors
    /// `Index` for a position beyond its axis.
    pub fn run(
        &self,
        site: Site<'_>,
        args: &[Chunk],
        tables: &[Vec<Chunk>],
        scratch: &mut Scratch,
    ) -> Result<Vec<Chunk>, KernelError> {
        match self {
            Exchange::Sparse(function) => function.run(site, args, tables),
            Exchange::CountSparse(function) => Ok(vec![function.count(site, args, tables)?]),
            Exchange::Deal(map) => map.deal(args, scratch),
            Exchange::Pick { map, wanted } => map.pick(args, wanted),
            Exchange::Ranked { direction, ranks } => sorting::ranked(site, *direction, ranks, tables),
            Exchange::Sort(map) => map.sort(tables, scratch),
            Exchange::Gather(map) => Ok(vec![map.gather(args, &tables[0], scratch)?]),
            Exchange::Requests(map) => map.requests(args, scratch),
            Exchange::Answers => rows::answers(&args[0], &tables[0], scratch),
            Exchange::Arrange(map) => Ok(vec![map.arrange(args, &tables[0], scratch)?]),
            Exchange::Updates(map) => map.updates(args, scratch),
            Exchange::Update => Ok(vec![rows::update(&args[0], &tables[0], &tables[1], scratch)?]),
        }
    }

    /// Whether the kernel makes its results in memory that the scratch was offered for them.
    pub fn takes_places(&self) -> bool {
        match self {
            Exchange::Deal(_)
            | Exchange::Sort(_)
            | Exchange::Gather(_)
            | Exchange::Requests(_)
            | Exchange::Answers
            | Exchange::Arrange(_)
            | Exchange::Updates(_)
            | Exchange::Update => true,
            // They store few elements, or those of sparse tiles.
            Exchange::Pick { .. }
            | Exchange::Ranked { .. }
            | Exchange::Sparse(_)
            | Exchange::CountSparse(_) => false,
        }
    }

    /// Bytes that a task needs beside its arguments and pieces, of which it has `bytes`, for `rows` rows of
    /// its arguments.
    pub fn scratch_bytes(&self, rows: u64, bytes: u64) -> u64 {
        match self {
            // The number of the bucket of each element, in two bytes.
            Exchange::Deal(_) => 2 * rows,
            Exchange::Sort(map) => SortMap::scratch_share(map.with_positions) * bytes,
            // The elements in one piece too.
            Exchange::Ranked { .. } => (1 + SortMap::scratch_share(false)) * bytes,
            // Rows are read where they lie.
            Exchange::Gather(_) => 0,
            Exchange::Sparse(_) | Exchange::CountSparse(_) => bytes,
            _ => 3 * bytes,
        }
    }
}

impl Measure {
    /// Applies the kernel.
    ///
    /// # Errors
    /// As [`Exchange::run`].
    pub fn run(&self, args: &[Chunk]) -> Result<Chunk, KernelError> {
        match self {
            Measure::Sample { count, buckets } => sorting::sample(&args[0], *count, *buckets),
            Measure::CountDealt(map) => map.count(args),
            Measure::CountRequests(map) => map.count(args),
        }
    }
}
