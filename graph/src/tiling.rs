//! Cuts of axes into chunks.

use crate::error::Error;
use serde::{Deserialize, Serialize};

/// The most tasks that a plan may have, and so the most chunks of a tensor.
pub const TASKS_MAX: u64 = 10_000_000;

/// Cut of one axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum AxisTiling {
    /// Pieces of `chunk` elements; the last one may be shorter.
    Even { len: usize, chunk: usize },
    /// Pieces between neighbouring bounds; the first bound is 0, the last the length.
    Bounds(Vec<usize>),
}

impl AxisTiling {
    /// The whole axis in one piece.
    pub fn whole(len: usize) -> AxisTiling {
        AxisTiling::Even { len, chunk: len.max(1) }
    }

    /// Pieces of at most `chunk` elements, as equal as can be.
    pub fn balanced(len: usize, chunk: usize) -> AxisTiling {
        let pieces = len.div_ceil(chunk.max(1)).max(1);
        let even = len.div_ceil(pieces).max(1);
        assert!(even <= chunk.max(1), "pieces of {even} elements, longer than {chunk}");
        AxisTiling::Even { len, chunk: even }
    }

    /// Pieces of these lengths.
    pub fn from_lengths(lengths: &[usize]) -> AxisTiling {
        let mut bounds = vec![0];
        let mut at = 0;
        for length in lengths {
            at += length;
            bounds.push(at);
        }
        assert_eq!(bounds.len(), lengths.len() + 1, "a piece has no end");
        AxisTiling::Bounds(bounds)
    }

    /// Pieces of these lengths, merged with their neighbours up to the length of the longest one, or up to
    /// `PIECE_ELEMENTS_MIN` if that is more. A piece is empty only if it is the only one.
    pub fn put_together(lengths: &[usize]) -> AxisTiling {
        let longest = lengths.iter().copied().max().unwrap_or(0).max(PIECE_ELEMENTS_MIN);
        let mut pieces: Vec<usize> = Vec::new();
        for &length in lengths.iter().filter(|&&length| length != 0) {
            match pieces.last_mut() {
                Some(last) if *last + length <= longest => *last += length,
                _ => pieces.push(length),
            }
        }
        if pieces.is_empty() {
            return AxisTiling::whole(0);
        }
        let sum = |lengths: &[usize]| lengths.iter().sum::<usize>();
        assert_eq!(sum(&pieces), sum(lengths), "elements are lost between pieces");
        AxisTiling::from_lengths(&pieces)
    }

    /// Elements along the axis.
    pub fn len(&self) -> usize {
        match self {
            AxisTiling::Even { len, .. } => *len,
            AxisTiling::Bounds(bounds) => bounds.last().copied().unwrap_or(0),
        }
    }

    /// Whether the axis has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of pieces; at least one, which may be empty.
    pub fn count(&self) -> usize {
        match self {
            AxisTiling::Even { len, chunk } => len.div_ceil(*chunk).max(1),
            AxisTiling::Bounds(bounds) => (bounds.len() - 1).max(1),
        }
    }

    /// First element and length of piece `index`.
    pub fn piece(&self, index: usize) -> (usize, usize) {
        match self {
            AxisTiling::Even { len, chunk } => {
                let start = index * chunk;
                assert!(start <= *len, "piece {index} begins at {start}, behind the end at {len}");
                (start, (*chunk).min(len - start))
            }
            AxisTiling::Bounds(bounds) => match bounds.get(index + 1) {
                Some(end) => (bounds[index], end - bounds[index]),
                None => (0, 0),
            },
        }
    }

    /// The piece that holds element `at`.
    pub fn find(&self, at: usize) -> usize {
        match self {
            AxisTiling::Even { chunk, .. } => at / chunk,
            AxisTiling::Bounds(bounds) => bounds.partition_point(|&bound| bound <= at).saturating_sub(1),
        }
    }

    /// Length of the longest piece, in elements.
    pub fn longest(&self) -> usize {
        match self {
            AxisTiling::Even { len, chunk } => (*chunk).min(*len),
            AxisTiling::Bounds(bounds) => bounds.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0),
        }
    }
}

/// Cut of every axis of a tensor. Chunks are numbered in C order of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tiling {
    /// One per axis.
    pub axes: Vec<AxisTiling>,
}

impl Tiling {
    /// One chunk for all.
    pub fn whole(shape: &[usize]) -> Tiling {
        Tiling { axes: shape.iter().map(|&len| AxisTiling::whole(len)).collect() }
    }

    /// Chunks of at most `elements` elements, each contiguous in C order.
    pub fn rows(shape: &[usize], elements: u64) -> Tiling {
        let mut left = elements.max(1);
        let mut axes: Vec<AxisTiling> = Vec::with_capacity(shape.len());
        let mut inner: u64 = shape.iter().map(|&extent| extent.max(1) as u64).product();
        for &len in shape {
            inner /= len.max(1) as u64;
            let chunk = (left / inner).clamp(1, len.max(1) as u64);
            left = if inner < left { inner } else { left };
            axes.push(AxisTiling::balanced(len, chunk as usize));
        }
        assert_eq!(inner, 1, "extents of {shape:?} are left");
        Tiling { axes }
    }

    /// Number of chunks in the grid.
    pub fn count(&self) -> usize {
        self.axes.iter().map(AxisTiling::count).product()
    }

    /// Chunks along each axis.
    pub fn grid(&self) -> Vec<usize> {
        self.axes.iter().map(AxisTiling::count).collect()
    }

    /// Elements along each axis.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(AxisTiling::len).collect()
    }

    /// Origin and extents of the chunk of this number.
    pub fn chunk(&self, mut index: usize, origin: &mut Vec<usize>, extents: &mut Vec<usize>) {
        origin.clear();
        extents.clear();
        origin.resize(self.axes.len(), 0);
        extents.resize(self.axes.len(), 0);
        for (axis, tiling) in self.axes.iter().enumerate().rev() {
            let count = tiling.count();
            (origin[axis], extents[axis]) = tiling.piece(index % count);
            index /= count;
        }
        assert_eq!(index, 0, "a chunk outside of its grid");
    }

    /// Elements of the chunk of this number.
    pub fn chunk_elements(&self, mut index: usize) -> u64 {
        let mut elements = 1;
        for axis in self.axes.iter().rev() {
            let count = axis.count();
            elements *= axis.piece(index % count).1 as u64;
            index /= count;
        }
        assert_eq!(index, 0, "a chunk outside of its grid");
        elements
    }

    /// Elements of the largest chunk.
    pub fn largest(&self) -> u64 {
        self.axes.iter().map(|axis| axis.longest() as u64).product()
    }

    /// The number of the chunk at these grid coordinates.
    pub fn number(&self, coordinates: &[usize]) -> usize {
        assert_eq!(coordinates.len(), self.axes.len(), "a place in a grid of another rank");
        self.axes.iter().zip(coordinates).fold(0, |number, (axis, &at)| number * axis.count() + at)
    }
}

/// Chunk sizes as a user asks for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// Chosen from shape, cores and memory.
    Auto,
    /// At most this number of elements along every axis.
    Each(usize),
    /// At most these numbers of elements, axis by axis.
    PerAxis(Vec<usize>),
    /// The lengths of all pieces of each axis.
    Lengths(Vec<Vec<usize>>),
}

impl Chunks {
    /// The requested tiling of `shape`; `None` for `Auto`.
    ///
    /// # Errors
    /// `Value` for chunks of zero, of the wrong number of axes, or not adding up to the shape;
    /// `TooManyTasks`.
    pub fn tiling(&self, shape: &[usize]) -> Result<Option<Tiling>, Error> {
        let wrong_rank = |found: usize| {
            Error::Value(format!("chunks given for {found} axes, the array has {}", shape.len()))
        };
        let even = |len: usize, chunk: usize| match chunk {
            0 => Err(Error::Value("chunk sizes must be positive, found 0".to_owned())),
            chunk => Ok(AxisTiling::Even { len, chunk: chunk.min(len.max(1)) }),
        };
        let axes: Result<Vec<AxisTiling>, Error> = match self {
            Chunks::Auto => return Ok(None),
            Chunks::Each(chunk) => shape.iter().map(|&len| even(len, *chunk)).collect(),
            Chunks::PerAxis(chunks) if chunks.len() != shape.len() => return Err(wrong_rank(chunks.len())),
            Chunks::PerAxis(chunks) => {
                shape.iter().zip(chunks).map(|(&len, &chunk)| even(len, chunk)).collect()
            }
            Chunks::Lengths(axes) if axes.len() != shape.len() => return Err(wrong_rank(axes.len())),
            Chunks::Lengths(axes) => {
                shape.iter().zip(axes).map(|(&len, lengths)| pieces(len, lengths)).collect()
            }
        };
        let axes = axes?;
        let chunks = axes.iter().fold(1u64, |count, axis| count.saturating_mul(axis.count() as u64));
        if TASKS_MAX < chunks {
            return Err(Error::TooManyTasks { tasks: chunks, limit: TASKS_MAX });
        }
        Ok(Some(Tiling { axes }))
    }
}

fn pieces(len: usize, lengths: &[usize]) -> Result<AxisTiling, Error> {
    let sum = lengths.iter().try_fold(0usize, |sum, &length| sum.checked_add(length));
    if sum != Some(len) {
        return Err(Error::Value(format!("chunks {lengths:?} do not add up to the axis length {len}")));
    }
    if lengths.contains(&0) && len != 0 {
        return Err(Error::Value("chunk sizes must be positive, found 0".to_owned()));
    }
    let tiling = AxisTiling::from_lengths(lengths);
    assert_eq!(tiling.len(), len, "pieces of another axis");
    Ok(tiling)
}

/// Shorter pieces are merged with their neighbours.
const PIECE_ELEMENTS_MIN: usize = 1 << 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_empty_pieces_are_put_together() {
        let lengths = [0, 3, 0, 10_000, 2, 9_000, 0, 1_000, 0];
        assert_eq!(AxisTiling::put_together(&lengths), AxisTiling::from_lengths(&[3, 10_000, 9_002, 1_000]));
        assert_eq!(AxisTiling::put_together(&[0, 0]), AxisTiling::whole(0));
        assert_eq!(AxisTiling::put_together(&[1; 9]).count(), 1);
    }

    #[test]
    fn pieces_cover_the_axis_and_are_found_again() {
        for tiling in [
            AxisTiling::Even { len: 10, chunk: 3 },
            AxisTiling::from_lengths(&[4, 1, 5]),
            AxisTiling::balanced(10, 4),
        ] {
            let mut next = 0;
            for index in 0..tiling.count() {
                let (start, len) = tiling.piece(index);
                assert_eq!(start, next);
                (start..start + len).for_each(|at| assert_eq!(tiling.find(at), index));
                next = start + len;
            }
            assert_eq!(next, 10);
        }
    }

    #[test]
    fn an_empty_axis_is_one_empty_piece() {
        assert_eq!(AxisTiling::whole(0).count(), 1);
        assert_eq!(AxisTiling::whole(0).piece(0), (0, 0));
        assert_eq!(Tiling::rows(&[0, 5], 100).count(), 1);
    }

    #[test]
    fn rows_are_contiguous_and_bounded() {
        let tiling = Tiling::rows(&[1000, 1000], 10_000);
        assert_eq!(tiling.grid(), [100, 1]);
        let tiling = Tiling::rows(&[10, 1000], 300);
        assert_eq!(tiling.grid(), [10, 4]);
        assert!(tiling.largest() <= 300);
    }

    #[test]
    fn unusable_chunks_are_refused() {
        assert!(Chunks::Each(0).tiling(&[3]).is_err());
        assert!(Chunks::Each(1).tiling(&[1 << 40]).is_err());
        assert!(Chunks::PerAxis(vec![1]).tiling(&[3, 3]).is_err());
        assert!(Chunks::Lengths(vec![vec![1, 1]]).tiling(&[3]).is_err());
    }

    #[test]
    fn balanced_pieces_are_as_long_as_each_other_and_no_longer_than_asked() {
        for (len, chunk) in [(10, 4), (100, 33), (7, 7), (7, 100), (0, 3), (5, 0)] {
            let tiling = AxisTiling::balanced(len, chunk);
            assert!(tiling.longest() <= chunk.max(1), "{len} in pieces of {chunk}");
            let lengths: Vec<usize> = (0..tiling.count()).map(|index| tiling.piece(index).1).collect();
            let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
            assert!(most - least <= lengths.len(), "{lengths:?}");
        }
    }

    #[test]
    fn an_element_behind_empty_pieces_is_found_in_its_own() {
        let tiling = AxisTiling::from_lengths(&[2, 0, 0, 3]);
        assert_eq!((0..5).map(|at| tiling.find(at)).collect::<Vec<_>>(), [0, 0, 3, 3, 3]);
    }

    #[test]
    fn a_chunk_has_the_number_of_its_coordinates() {
        let tiling =
            Tiling { axes: vec![AxisTiling::from_lengths(&[1, 4]), AxisTiling::Even { len: 9, chunk: 4 }] };
        assert_eq!((tiling.grid(), tiling.count(), tiling.shape()), (vec![2, 3], 6, vec![5, 9]));
        let (mut origin, mut extents) = (Vec::new(), Vec::new());
        for index in 0..tiling.count() {
            tiling.chunk(index, &mut origin, &mut extents);
            let coordinates: Vec<usize> =
                tiling.axes.iter().zip(&origin).map(|(axis, &at)| axis.find(at)).collect();
            assert_eq!(tiling.number(&coordinates), index);
        }
        assert_eq!((origin, extents), (vec![1, 8], vec![4, 1]));
    }

    #[test]
    fn the_largest_chunk_is_as_long_as_the_longest_piece_of_each_axis() {
        let tiling = Tiling { axes: vec![AxisTiling::from_lengths(&[1, 4, 2]), AxisTiling::whole(10)] };
        assert_eq!(tiling.largest(), 40);
    }

    #[test]
    fn an_array_of_no_axes_is_one_chunk() {
        assert_eq!((Tiling::whole(&[]).count(), Tiling::whole(&[]).largest()), (1, 1));
        assert_eq!(Tiling::rows(&[], 10).count(), 1);
    }

    #[test]
    fn chunks_are_cut_as_asked_and_to_the_axis() {
        assert_eq!(Chunks::Auto.tiling(&[5]), Ok(None));
        let grid = |chunks: Chunks, shape: &[usize]| chunks.tiling(shape).unwrap().unwrap().grid();
        assert_eq!(grid(Chunks::Each(4), &[10, 3, 0]), [3, 1, 1]);
        assert_eq!(grid(Chunks::PerAxis(vec![4, 1]), &[10, 3]), [3, 3]);
        assert_eq!(grid(Chunks::Lengths(vec![vec![3, 7], vec![3]]), &[10, 3]), [2, 1]);
    }

    #[test]
    fn chunks_of_no_length_are_for_axes_of_no_length() {
        assert!(Chunks::Lengths(vec![vec![0]]).tiling(&[0]).is_ok());
        assert!(Chunks::Lengths(vec![vec![0, 3]]).tiling(&[3]).is_err());
        assert!(Chunks::Lengths(vec![vec![usize::MAX, 1]]).tiling(&[0]).is_err(), "the sum overflows");
    }

    #[test]
    fn more_chunks_than_a_plan_may_have_are_refused_with_their_number() {
        let refused = Chunks::Each(1).tiling(&[20_000, 1_000]);
        assert_eq!(refused, Err(Error::TooManyTasks { tasks: 20_000_000, limit: TASKS_MAX }));
    }
}
