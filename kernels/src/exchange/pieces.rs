//! Pieces that a task makes for the tasks of a later stage.

use crate::chunk::{Buffer, Chunk, LINE_BYTES};
use crate::element::Element;
use crate::error::KernelError;
use crate::evaluate::Scratch;
use crate::layout::c_strides;
use std::marker::PhantomData;
use std::sync::Arc;

/// Bytes of memory that pieces share: enough that it comes from the pool of pages, and of one size so that it
/// is used again.
const BLOCK_BYTES: usize = 1 << 20;

/// Pieces of rows that are filled beside one another.
pub(super) struct Pieces<T> {
    blocks: Vec<Block>,
    element: PhantomData<T>,
}

/// Memory of some pieces, one behind the other.
struct Block {
    buffer: Buffer,
    /// The number of elements of each piece.
    lengths: Vec<usize>,
}

impl<T: Element> Pieces<T> {
    /// Pieces of these numbers of rows, each of `width` elements, all of which must be written: in memory
    /// that the scratch was offered, or else in memory that they share if they may.
    pub(super) fn new(counts: &[usize], width: usize, scratch: &mut Scratch) -> Pieces<T> {
        if scratch.has_offers() {
            let place = |count: &usize| {
                let length = count * width;
                Block { buffer: scratch.result(length * size_of::<T>()), lengths: vec![length] }
            };
            return Pieces { blocks: counts.iter().map(place).collect(), element: PhantomData };
        }
        let block_bytes = if scratch.shares_pieces() { BLOCK_BYTES } else { 0 };
        let mut blocks = Vec::new();
        let mut lengths: Vec<usize> = Vec::new();
        let mut used = 0;
        for length in counts.iter().map(|count| count * width) {
            let bytes = padded::<T>(length) * size_of::<T>();
            if block_bytes < used + bytes && !lengths.is_empty() {
                blocks.push(Block::new(std::mem::take(&mut lengths), used.max(block_bytes)));
                used = 0;
            }
            used += bytes;
            lengths.push(length);
        }
        // Nothing comes behind it that could use a rest of it.
        blocks.push(Block::new(lengths, used));
        Pieces { blocks, element: PhantomData }
    }

    /// The places of each piece, in order.
    pub(super) fn ends(&mut self) -> Vec<std::slice::IterMut<'_, T>> {
        self.blocks.iter_mut().flat_map(Block::pieces::<T>).map(|piece| piece.iter_mut()).collect()
    }

    /// The pieces, of rows with the extents `rest`.
    pub(super) fn finish(self, counts: &[usize], rest: &[usize]) -> Result<Vec<Chunk>, KernelError> {
        let mut made = Vec::with_capacity(counts.len());
        let mut counts = counts.iter();
        for Block { buffer, lengths } in self.blocks {
            let memory = Arc::new(buffer);
            let mut start = 0;
            for (length, &count) in lengths.into_iter().zip(&mut counts) {
                let shape = [&[count], rest].concat();
                made.push(Chunk::strided(T::DTYPE, &shape, &c_strides(&shape), start, memory.clone())?);
                start += padded::<T>(length);
            }
        }
        Ok(made)
    }
}

impl Block {
    fn new(lengths: Vec<usize>, bytes: usize) -> Block {
        Block { buffer: Buffer::for_overwrite(bytes), lengths }
    }

    /// The places of each piece.
    fn pieces<T: Element>(&mut self) -> Vec<&mut [T]> {
        let mut rest = self.buffer.elements_mut::<T>();
        let mut pieces = Vec::with_capacity(self.lengths.len());
        for &length in &self.lengths {
            let (piece, behind) = rest.split_at_mut(padded::<T>(length).min(rest.len()));
            pieces.push(&mut piece[..length]);
            rest = behind;
        }
        pieces
    }
}

/// The number of elements of a piece and of the space behind it: each piece begins at a cache line.
fn padded<T>(length: usize) -> usize {
    length.next_multiple_of(LINE_BYTES / size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of these lengths, in which each element is the number of its piece.
    fn filled(counts: &[usize], width: usize, shares: bool) -> Vec<Chunk> {
        let mut scratch = Scratch::new();
        if shares {
            scratch.share_pieces();
        }
        let mut pieces = Pieces::<i16>::new(counts, width, &mut scratch);
        for (number, end) in (0..).zip(pieces.ends()) {
            end.for_each(|place| *place = number);
        }
        pieces.finish(counts, &[width]).unwrap()
    }

    #[test]
    fn pieces_share_memory_if_they_may_and_no_element() {
        // A million elements are two blocks; some pieces are empty, and one is larger than a block.
        let counts: Vec<usize> =
            (0..60).map(|at| [0, 1, 31, 40_000, 32][at % 5]).chain([900_000, 0, 7]).collect();
        for (width, shares) in [(1, true), (0, true), (3, true), (1, false), (0, false), (3, false)] {
            let made = filled(&counts, width, shares);
            assert_eq!(made.len(), counts.len());
            for (number, (piece, &count)) in (0..).zip(made.iter().zip(&counts)) {
                assert_eq!(piece.shape(), [count, width]);
                let elements = piece.as_slice::<i16>().unwrap();
                assert!(elements.iter().all(|&x| x == number), "piece {number} of width {width}");
                assert!(piece.offset().is_multiple_of(LINE_BYTES / size_of::<i16>()));
            }
            let full: Vec<&Chunk> = made.iter().filter(|piece| !piece.is_empty()).collect();
            let shared = full.windows(2).filter(|pair| Arc::ptr_eq(pair[0].buffer(), pair[1].buffer()));
            assert_eq!(shares && width != 0, 30 < shared.count(), "width {width}, {shares}");
        }
        assert!(filled(&[], 1, true).is_empty());
    }
}
