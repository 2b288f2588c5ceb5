//! Chunks of what a pass makes of its samples.

use tharsis_numeric::{Chunks, Tensor};

/// Elements of a chunk.
const CHUNK_ELEMENTS: usize = 1 << 16;

/// A matrix of so many columns, (n, columns), in chunks that depend on nothing else. The chunks of a product
/// are otherwise chosen by the number of threads, and so would be the roundings of sums of it.
#[track_caller]
pub(crate) fn in_fixed_chunks(matrix: &Tensor, columns: usize) -> Tensor {
    let rows = (CHUNK_ELEMENTS / columns.max(1)).max(1);
    matrix.rechunk(Chunks::PerAxis(vec![rows, columns.max(1)]))
}
