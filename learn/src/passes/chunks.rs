//! Chunks of what a pass makes of its samples.

use tharsis_numeric::{Chunks, Tensor};

/// Elements of a chunk.
const CHUNK_ELEMENTS: usize = 1 << 16;
/// The fewest rows of a chunk: a task for a few rows of many columns would cost more than what it computes.
const CHUNK_ROWS_MIN: usize = 512;
/// A call of a function of rows reads at least so many numbers for each that it makes.
const STATE_PARTS: usize = 8;

/// Elements that one call of a function of rows reads.
const PIECE_ELEMENTS: usize = 1 << 17;

/// Rows for one call of a function that makes a state of so many numbers of samples (rows, columns): the
/// states of all calls are to be small beside what they are made of.
pub(crate) fn piece_rows((rows, columns): (usize, usize), state: usize) -> usize {
    (PIECE_ELEMENTS.max(STATE_PARTS * state) / columns.max(1)).clamp(1, rows.max(1))
}

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

#[cfg(test)]
mod tests {
    use super::{PIECE_ELEMENTS, piece_rows};

    #[test]
    fn pieces_are_large_beside_their_states_and_no_larger_than_the_samples() {
        assert_eq!(piece_rows((1_000_000, 16), 100), PIECE_ELEMENTS / 16);
        assert_eq!(piece_rows((1_000_000, 256), 40_000), 1_250);
        assert_eq!((piece_rows((7, 16), 100), piece_rows((7, 1 << 30), 0)), (7, 1));
    }
}
