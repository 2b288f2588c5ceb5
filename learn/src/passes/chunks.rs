//! Chunks of what a pass makes of its samples.

use tharsis_numeric::{Chunks, Tensor};

/// Elements of a chunk.
const CHUNK_ELEMENTS: usize = 1 << 16;
/// The fewest rows of a chunk: a task for a few rows of many columns would cost more than what it computes.
const CHUNK_ROWS_MIN: usize = 512;

/// A matrix of so many columns, (n, columns), in chunks that depend on nothing else. The chunks of a product
/// are otherwise chosen by the number of threads, and so would be the roundings of sums of it. A matrix of
/// which only running tells the size stays as it is.
#[track_caller]
pub(crate) fn in_fixed_chunks(matrix: &Tensor, columns: usize) -> Tensor {
    in_chunks_for(matrix, columns, columns)
}

/// As [`in_fixed_chunks`], for a pass that makes `width` elements of each row.
#[track_caller]
pub(crate) fn in_chunks_for(matrix: &Tensor, columns: usize, width: usize) -> Tensor {
    if !matrix.is_known().unwrap_or(false) {
        return matrix.clone();
    }
    let rows = (CHUNK_ELEMENTS / width.max(1)).max(CHUNK_ROWS_MIN);
    matrix.rechunk(Chunks::PerAxis(vec![rows, columns.max(1)]))
}
