//! Functions along one axis of a chunk, of which the chunk has all elements: sorting, taking and putting by
//! position, searching.

use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::element::{Element, with_words};
use crate::error::KernelError;
use crate::order::{Direction, Key, Ordered, in_order, sort_elements};
use crate::with_element;
use serde::{Deserialize, Serialize};

/// A function along an axis. Positions are int64; negative ones count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Lines {
    /// The elements in order; equal ones keep theirs. Any shape to the same.
    Sort { axis: usize, direction: Direction },
    /// The positions of the elements in order, int64. Any shape to the same.
    Order { axis: usize, direction: Direction },
    /// The parts of the first argument at the positions in the second: (.., n, 1, .., ..) and (1, .., i, j,
    /// .., 1, ..) to (.., i, j, .., ..), where the positions have `rank` axes from `axis` on.
    Take { axis: usize, rank: usize },
    /// For each position in the second argument the element there on the same line: (.., n, ..) and (.., k,
    /// ..) to (.., k, ..).
    TakeAlong { axis: usize },
    /// The first argument with the parts of the third put at the positions in the second, the last one of
    /// equal positions: (.., n, ..), (1, .., k, .., 1) and (.., k, ..) to (.., n, ..).
    Put { axis: usize },
    /// As `Put`, with positions for each line: (.., n, ..), (.., k, ..) and (.., k, ..) to (.., n, ..).
    PutAlong { axis: usize },
    /// For each element of the second argument, the number of elements of the first that come before it;
    /// with `right` also those equal to it. (n, 1) and (1, k) to (1, k), int64.
    Search { right: bool },
}

impl Lines {
    /// Applies the function.
    ///
    /// # Errors
    /// `Index` for a position beyond its axis.
    pub fn run(self, args: &[Chunk]) -> Result<Chunk, KernelError> {
        let x = &args[0];
        match self {
            Lines::Sort { axis, direction } => with_element!(x.dtype(), T => sort::<T>(x, axis, direction)),
            Lines::Order { axis, direction } => with_element!(x.dtype(), T => order::<T>(x, axis, direction)),
            Lines::Take { .. } | Lines::TakeAlong { .. } | Lines::Put { .. } | Lines::PutAlong { .. } => {
                args.iter().skip(2).try_for_each(|values| values.expect_dtype(x.dtype()))?;
                let words = [&x.as_words(), &args[1]];
                let values = args.get(2).map(Chunk::as_words);
                with_words!(x.dtype(), T => self.moved::<T>(words, values.as_ref()))?.of_words(x.dtype())
            }
            Lines::Search { right } => with_element!(x.dtype(), T => search::<T>(x, &args[1], right)),
        }
    }

    /// The functions that move elements to or from positions: of an argument, and with `values` into it.
    fn moved<T: Element>(
        self,
        [x, positions]: [&Chunk; 2],
        values: Option<&Chunk>,
    ) -> Result<Chunk, KernelError> {
        match (self, values) {
            (Lines::Take { axis, rank }, None) => take::<T>(x, positions, axis, rank),
            (Lines::TakeAlong { axis }, None) => take_along::<T>(x, positions, axis),
            (Lines::Put { axis }, Some(values)) => put::<T>(x, positions, values, axis),
            (Lines::PutAlong { axis }, Some(values)) => put_along::<T>(x, positions, values, axis),
            _ => Err(KernelError::Malformed(format!("{self:?} moves other arguments"))),
        }
    }
}

/// Extents before, along and behind an axis.
fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// A position counted from the front.
///
/// # Errors
/// `Index` if it is beyond the axis.
pub fn normalized(position: i64, axis: usize, extent: usize) -> Result<usize, KernelError> {
    let from_front = if position < 0 { position.wrapping_add(extent as i64) } else { position };
    if 0 <= from_front && from_front < extent as i64 {
        Ok(from_front as usize)
    } else {
        Err(KernelError::Index { index: position, axis, extent })
    }
}

fn sort<T: Ordered>(x: &Chunk, axis: usize, direction: Direction) -> Result<Chunk, KernelError> {
    let (outer, len, inner) = around(x.shape(), axis);
    let from = x.elements::<T>()?;
    let mut out = Buffer::for_overwrite(from.len() * size_of::<T>());
    let elements = &mut out.elements_mut::<T>()[..from.len()];
    elements.copy_from_slice(&from);
    if inner == 1 {
        elements.chunks_mut(len.max(1)).for_each(|line| sort_elements(line, direction));
        return Chunk::contiguous(T::DTYPE, x.shape(), out);
    }
    let mut line = Vec::with_capacity(len);
    for at in (0..outer).flat_map(|row| (0..inner).map(move |column| row * len * inner + column)) {
        line.clear();
        line.extend((0..len).map(|i| elements[at + i * inner]));
        sort_elements(&mut line, direction);
        line.iter().enumerate().for_each(|(i, &element)| elements[at + i * inner] = element);
    }
    Chunk::contiguous(T::DTYPE, x.shape(), out)
}

fn order<T: Ordered>(x: &Chunk, axis: usize, direction: Direction) -> Result<Chunk, KernelError> {
    let (outer, len, inner) = around(x.shape(), axis);
    let elements = x.elements::<T>()?;
    let mut out = Buffer::for_overwrite(elements.len() * size_of::<i64>());
    let to = out.elements_mut::<i64>();
    let mut line = Vec::with_capacity(len);
    for at in (0..outer).flat_map(|row| (0..inner).map(move |column| row * len * inner + column)) {
        line.clear();
        line.extend((0..len).map(|i| elements[at + i * inner]));
        let mut places = (at..).step_by(inner);
        in_order(&line, direction, |position| {
            if let Some(place) = places.next() {
                to[place] = position as i64;
            }
        });
    }
    Chunk::contiguous(DType::I64, x.shape(), out)
}

fn take<T: Element>(x: &Chunk, positions: &Chunk, axis: usize, rank: usize) -> Result<Chunk, KernelError> {
    let (outer, len, inner) = around(x.shape(), axis);
    let from = x.elements::<T>()?;
    let rows = positions.elements::<i64>()?;
    let rows = rows.iter().map(|&position| normalized(position, axis, len));
    let rows = rows.collect::<Result<Vec<usize>, _>>()?;
    let shape =
        [&x.shape()[..axis], &positions.shape()[axis..axis + rank], &x.shape()[axis + rank..]].concat();
    let mut out = Buffer::for_overwrite(outer * rows.len() * inner * size_of::<T>());
    let to = &mut out.elements_mut::<T>()[..outer * rows.len() * inner];
    if inner == 1 {
        for (block, to) in from.chunks(len.max(1)).zip(to.chunks_mut(rows.len().max(1))) {
            to.iter_mut().zip(&rows).for_each(|(place, &row)| *place = block[row]);
        }
        return Chunk::contiguous(T::DTYPE, &shape, out);
    }
    let mut at = 0;
    for block in from.chunks((len * inner).max(1)) {
        for &row in &rows {
            to[at..at + inner].copy_from_slice(&block[row * inner..(row + 1) * inner]);
            at += inner;
        }
    }
    Chunk::contiguous(T::DTYPE, &shape, out)
}

fn take_along<T: Element>(x: &Chunk, positions: &Chunk, axis: usize) -> Result<Chunk, KernelError> {
    let (_, len, inner) = around(x.shape(), axis);
    let count = positions.shape()[axis];
    let (from, positions_of) = (x.to_vec::<T>()?, positions.to_vec::<i64>()?);
    let mut out = Vec::with_capacity(positions_of.len());
    for (at, &position) in positions_of.iter().enumerate() {
        let (row, column) = (at / (count * inner), at % inner);
        out.push(from[(row * len + normalized(position, axis, len)?) * inner + column]);
    }
    Chunk::from_elements(positions.shape(), &out)
}

fn put<T: Element>(x: &Chunk, positions: &Chunk, values: &Chunk, axis: usize) -> Result<Chunk, KernelError> {
    let (_, len, inner) = around(x.shape(), axis);
    let (mut elements, values) = (x.to_vec::<T>()?, values.to_vec::<T>()?);
    let rows = positions.to_vec::<i64>()?.into_iter().map(|position| normalized(position, axis, len));
    let rows = rows.collect::<Result<Vec<usize>, _>>()?;
    if !values.is_empty() {
        for (block, given) in elements.chunks_mut(len * inner).zip(values.chunks(rows.len() * inner)) {
            for (&row, value) in rows.iter().zip(given.chunks(inner)) {
                block[row * inner..(row + 1) * inner].copy_from_slice(value);
            }
        }
    }
    Chunk::from_elements(x.shape(), &elements)
}

fn put_along<T: Element>(
    x: &Chunk,
    positions: &Chunk,
    values: &Chunk,
    axis: usize,
) -> Result<Chunk, KernelError> {
    let (_, len, inner) = around(x.shape(), axis);
    let count = positions.shape()[axis];
    let (mut elements, values) = (x.to_vec::<T>()?, values.to_vec::<T>()?);
    for (at, (&position, &value)) in positions.to_vec::<i64>()?.iter().zip(&values).enumerate() {
        let (row, column) = (at / (count * inner), at % inner);
        elements[(row * len + normalized(position, axis, len)?) * inner + column] = value;
    }
    Chunk::from_elements(x.shape(), &elements)
}

fn search<T: Ordered>(sorted: &Chunk, wanted: &Chunk, right: bool) -> Result<Chunk, KernelError> {
    let keys: Vec<T::Key> = sorted.to_vec::<T>()?.into_iter().map(T::key).collect();
    let before = |key: T::Key| {
        if right {
            keys.partition_point(|other| *other <= key)
        } else {
            keys.partition_point(|other| *other < key)
        }
    };
    let counts: Vec<i64> = wanted.to_vec::<T>()?.into_iter().map(|x| before(x.key()) as i64).collect();
    assert_eq!(DType::I64, <i64 as Element>::DTYPE, "counts are int64");
    Chunk::from_elements(wanted.shape(), &counts)
}

/// Positions on several axes as positions in the flattened array: (..) of int64 for each of `extents` to
/// (..).
///
/// # Errors
/// `Index` for a position beyond its axis.
pub fn flat_positions(args: &[Chunk], extents: &[usize]) -> Result<Chunk, KernelError> {
    let mut flat = vec![0i64; args[0].len()];
    for ((axis, &extent), positions) in extents.iter().enumerate().zip(args) {
        for (flat, position) in flat.iter_mut().zip(positions.to_vec::<i64>()?) {
            *flat = *flat * extent as i64 + normalized(position, axis, extent)? as i64;
        }
    }
    Chunk::from_elements(args[0].shape(), &flat)
}

/// The first `count` elements of each line in order, fewer if there are fewer, and their positions: (.., n,
/// ..) and positions of the same shape to two of (.., k, ..). Of equal elements those at smaller positions
/// come first.
///
/// # Errors
/// `WrongDType` unless positions are int64.
pub fn top(
    args: &[Chunk],
    axis: usize,
    count: usize,
    direction: Direction,
) -> Result<Vec<Chunk>, KernelError> {
    with_element!(args[0].dtype(), T => top_of::<T>(args, axis, count, direction))
}

fn top_of<T: Ordered>(
    args: &[Chunk],
    axis: usize,
    count: usize,
    direction: Direction,
) -> Result<Vec<Chunk>, KernelError> {
    let (outer, len, inner) = around(args[0].shape(), axis);
    let count = count.min(len);
    let (elements, positions) = (args[0].to_vec::<T>()?, args[1].to_vec::<i64>()?);
    let mut shape = args[0].shape().to_vec();
    shape[axis] = count;
    let (mut values, mut places) =
        (vec![T::zeroed(); outer * count * inner], vec![0i64; outer * count * inner]);
    let mut line: Vec<(T::Key, i64, usize)> = Vec::with_capacity(len);
    for (row, column) in (0..outer).flat_map(|row| (0..inner).map(move |column| (row, column))) {
        line.clear();
        line.extend((0..len).map(|i| {
            let at = (row * len + i) * inner + column;
            (elements[at].key(), positions[at], at)
        }));
        keep_first(&mut line, count, direction);
        for (i, &(_, position, from)) in line.iter().enumerate() {
            let at = (row * count + i) * inner + column;
            (values[at], places[at]) = (elements[from], position);
        }
    }
    Ok(vec![Chunk::from_elements(&shape, &values)?, Chunk::from_elements(&shape, &places)?])
}

/// Leaves the first `count` of keys with their positions, in order. Compiled for each type of keys, not for
/// each of elements.
fn keep_first<K: Key>(line: &mut Vec<(K, i64, usize)>, count: usize, direction: Direction) {
    let compare =
        |a: &(K, i64, usize), b: &(K, i64, usize)| direction.compare(&a.0, &b.0).then(a.1.cmp(&b.1));
    if count < line.len() && 0 < count {
        line.select_nth_unstable_by(count - 1, compare);
    }
    line.truncate(count);
    line.sort_unstable_by(compare);
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Ascending, Descending};

    fn chunk<T: Element>(shape: &[usize], elements: &[T]) -> Chunk {
        Chunk::from_elements(shape, elements).unwrap()
    }

    #[test]
    fn lines_are_sorted_along_any_axis_and_nan_is_last() {
        let x = chunk(&[2, 3], &[3.0, f64::NAN, 1.0, 2.0, 0.0, 5.0]);
        let sorted = |axis, direction| {
            Lines::Sort { axis, direction }.run(std::slice::from_ref(&x)).unwrap().to_vec::<f64>().unwrap()
        };
        let rows = sorted(1, Ascending);
        assert!(rows[2].is_nan() && rows[..2] == [1.0, 3.0] && rows[3..] == [0.0, 2.0, 5.0]);
        let columns = sorted(0, Descending);
        assert!(columns[1].is_nan() && columns[4] == 0.0 && columns[0] == 3.0 && columns[5] == 1.0);
    }

    #[test]
    fn equal_elements_keep_their_order_in_both_directions() {
        let x = chunk(&[5], &[1.0, -0.0, 1.0, 0.0, -0.0]);
        let order = |direction| {
            Lines::Order { axis: 0, direction }
                .run(std::slice::from_ref(&x))
                .unwrap()
                .to_vec::<i64>()
                .unwrap()
        };
        assert_eq!(order(Ascending), [1, 3, 4, 0, 2]);
        assert_eq!(order(Descending), [0, 2, 1, 3, 4]);
        let signs = Lines::Sort { axis: 0, direction: Ascending }.run(&[x]).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(signs[..3].iter().map(|x| x.is_sign_negative()).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn parts_are_taken_at_positions_from_either_end() {
        let x = chunk(&[2, 3, 1, 2], &(0..12).collect::<Vec<i64>>());
        let positions = chunk(&[1, 2, 2, 1], &[2i64, 0, -1, 1]);
        let taken = Lines::Take { axis: 1, rank: 2 }.run(&[x, positions]).unwrap();
        assert_eq!(taken.shape(), [2, 2, 2, 2]);
        assert_eq!(taken.to_vec::<i64>().unwrap()[..8], [4, 5, 0, 1, 4, 5, 2, 3]);
        let x = chunk(&[3], &[1.0, 2.0, 3.0]);
        let beyond = Lines::Take { axis: 0, rank: 1 }.run(&[x, chunk(&[1], &[3i64])]).unwrap_err();
        assert_eq!(beyond, KernelError::Index { index: 3, axis: 0, extent: 3 });
    }

    #[test]
    fn each_line_has_positions_of_its_own() {
        let x = chunk(&[2, 3], &[10, 11, 12, 20, 21, 22i32]);
        let positions = chunk(&[2, 2], &[2i64, 0, -1, 1]);
        let taken = Lines::TakeAlong { axis: 1 }.run(&[x.clone(), positions.clone()]).unwrap();
        assert_eq!(taken.to_vec::<i32>().unwrap(), [12, 10, 22, 21]);
        let put = Lines::PutAlong { axis: 1 }.run(&[x.clone(), positions, chunk(&[2, 2], &[1, 2, 3, 4i32])]);
        assert_eq!(put.unwrap().to_vec::<i32>().unwrap(), [2, 11, 1, 20, 4, 3]);
        let rows = chunk(&[3, 1], &[0i64, 1, 0]);
        let put = Lines::Put { axis: 0 }.run(&[x, rows, chunk(&[3, 3], &(0..9).collect::<Vec<i32>>())]);
        assert_eq!(put.unwrap().to_vec::<i32>().unwrap(), [6, 7, 8, 3, 4, 5]);
    }

    #[test]
    fn positions_on_several_axes_are_checked_on_each() {
        let (first, second) = (chunk(&[2], &[1i64, -1]), chunk(&[2], &[0i64, 2]));
        let flat = flat_positions(&[first.clone(), second], &[2, 3]).unwrap();
        assert_eq!(flat.to_vec::<i64>().unwrap(), [3, 5]);
        let beyond = flat_positions(&[first, chunk(&[2], &[0i64, 3])], &[2, 3]).unwrap_err();
        assert_eq!(beyond, KernelError::Index { index: 3, axis: 1, extent: 3 });
    }

    #[test]
    fn the_first_of_each_line_come_with_their_positions() {
        let x = chunk(&[2, 4], &[3.0, 9.0, 9.0, f64::NAN, 1.0, 0.0, 1.0, 1.0]);
        let positions = chunk(&[2, 4], &[4i64, 5, 6, 7, 0, 1, 2, 3]);
        let made = top(&[x.clone(), positions.clone()], 1, 2, Descending).unwrap();
        assert_eq!(made[1].to_vec::<i64>().unwrap(), [7, 5, 0, 2]);
        assert_eq!(made[0].to_vec::<f64>().unwrap()[1..], [9.0, 1.0, 1.0]);
        let made = top(&[x, positions], 0, 9, Ascending).unwrap();
        assert_eq!(made[0].shape(), [2, 4]);
        assert_eq!(made[1].to_vec::<i64>().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_search_counts_what_comes_before() {
        let sorted = chunk(&[4, 1], &[1.0, 2.0, 2.0, f64::NAN]);
        let wanted = chunk(&[1, 4], &[2.0, 0.0, f64::NAN, 9.0]);
        let found = |right| {
            let made = Lines::Search { right }.run(&[sorted.clone(), wanted.clone()]).unwrap();
            made.to_vec::<i64>().unwrap()
        };
        assert_eq!((found(false), found(true)), (vec![1, 0, 3, 3], vec![3, 0, 4, 3]));
    }
}
