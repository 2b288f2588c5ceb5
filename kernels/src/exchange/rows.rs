//! Rows of many chunks, taken or put by position.

use super::pieces::Pieces;
use crate::chunk::{Chunk, as_words};
use crate::element::{Element, with_words};
use crate::error::KernelError;
use crate::evaluate::Scratch;
use crate::lines::normalized;
use crate::stream;
use serde::{Deserialize, Serialize};

/// The place of rows that positions name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowMap {
    /// The axis of the tensor that the rows are on, for errors.
    pub axis: usize,
    /// The end of each chunk of rows, as the number of a row.
    pub ends: Vec<u64>,
}

/// Finds the chunk of a row by a table over equal parts of all rows: a search would be most of the work.
struct Places<'a> {
    map: &'a RowMap,
    extent: usize,
    shift: u32,
    /// The chunk that holds the first row of each part.
    first: Vec<u32>,
}

/// A row by its chunk.
#[derive(Clone, Copy)]
struct Place {
    chunk: usize,
    row: i64,
}

impl RowMap {
    fn places(&self) -> Places<'_> {
        let extent = self.ends.last().copied().unwrap_or(0);
        let parts = (PARTS_PER_CHUNK * self.ends.len() as u64).min(PARTS_MAX);
        let shift = (extent / parts).max(1).ilog2();
        let holder = |part: u64| self.ends.partition_point(|&end| end <= part << shift) as u32;
        let first = (0..=extent >> shift).map(holder).collect();
        Places { map: self, extent: extent as usize, shift, first }
    }

    /// The number of positions in each chunk of rows.
    fn counts(&self, positions: &[i64]) -> Result<Vec<usize>, KernelError> {
        let places = self.places();
        let mut counts = vec![0; self.ends.len()];
        for &position in positions {
            counts[places.find(position)?.chunk] += 1;
        }
        Ok(counts)
    }

    /// See [`Measure::CountRequests`](super::Measure::CountRequests).
    pub(super) fn count(&self, args: &[Chunk]) -> Result<Chunk, KernelError> {
        let positions = args[0].elements::<i64>()?;
        let counts = self.counts(&positions)?;
        let head = [positions.len() as i64, self.ends.len() as i64];
        let ends = self.ends.iter().map(|&end| end as i64);
        let words: Vec<i64> =
            head.into_iter().chain(ends).chain(counts.into_iter().map(|count| count as i64)).collect();
        Chunk::from_elements(&[1, words.len()], &words)
    }

    /// See [`Exchange::Requests`](super::Exchange::Requests).
    pub(super) fn requests(&self, args: &[Chunk], scratch: &mut Scratch) -> Result<Vec<Chunk>, KernelError> {
        let positions = args[0].elements::<i64>()?;
        let counts = self.counts(&positions)?;
        let places = self.places();
        let mut pieces = Pieces::<i64>::new(&counts, 1, scratch);
        let mut ends = pieces.ends();
        for &position in positions.iter() {
            let Place { chunk, row } = places.find(position)?;
            if let Some(place) = ends[chunk].next() {
                *place = row;
            }
        }
        pieces.finish(&counts, &[])
    }

    /// See [`Exchange::Arrange`](super::Exchange::Arrange).
    pub(super) fn arrange(
        &self,
        args: &[Chunk],
        answers: &[Chunk],
        scratch: &mut Scratch,
    ) -> Result<Chunk, KernelError> {
        let Some(first) = answers.first() else {
            return Err(KernelError::Malformed("rows of no chunk".to_owned()));
        };
        let dtype = first.dtype();
        let answers = as_words(answers, dtype)?;
        with_words!(dtype, T => self.arranged::<T>(args, &answers, scratch))?.of_words(dtype)
    }

    /// The answers of each chunk are in the order of the positions that asked for them.
    fn arranged<T: Element>(
        &self,
        args: &[Chunk],
        answers: &[Chunk],
        scratch: &mut Scratch,
    ) -> Result<Chunk, KernelError> {
        let rest = &answers[0].shape()[1..];
        let width: usize = rest.iter().product();
        let positions = args[0].elements::<i64>()?;
        let places = self.places();
        let mut out = scratch.result(positions.len() * width * size_of::<T>());
        let to = &mut out.elements_mut::<T>()[..positions.len() * width];
        let answers = answers.iter().map(Chunk::elements::<T>).collect::<Result<Vec<_>, _>>()?;
        let missing = || KernelError::Malformed("a row that was not asked for".to_owned());
        if width == 1 {
            let mut answers: Vec<_> = answers.iter().map(|answer| answer.iter()).collect();
            for (place, &position) in to.iter_mut().zip(positions.iter()) {
                *place = *answers[places.find(position)?.chunk].next().ok_or_else(missing)?;
            }
        } else if width != 0 {
            let mut answers: Vec<_> = answers.iter().map(|answer| answer.chunks_exact(width)).collect();
            for (place, &position) in to.chunks_exact_mut(width).zip(positions.iter()) {
                let row = answers[places.find(position)?.chunk].next().ok_or_else(missing)?;
                place.copy_from_slice(row);
            }
        }
        Chunk::contiguous(T::DTYPE, &[&[positions.len()], rest].concat(), out)
    }

    /// See [`Exchange::Gather`](super::Exchange::Gather).
    pub(super) fn gather(
        &self,
        args: &[Chunk],
        rows: &[Chunk],
        scratch: &mut Scratch,
    ) -> Result<Chunk, KernelError> {
        match rows.first() {
            Some(first) if rows.len() == self.ends.len() => {
                let dtype = first.dtype();
                let rows = as_words(rows, dtype)?;
                with_words!(dtype, T => self.gathered::<T>(&args[0], &rows, scratch))?.of_words(dtype)
            }
            _ => Err(KernelError::Malformed("rows of another number of chunks".to_owned())),
        }
    }

    /// The places of several rows are found before the first of them is read, and each is fetched as soon as
    /// it is known, so that the processor waits for many at a time.
    fn gathered<T: Element>(
        &self,
        positions: &Chunk,
        rows: &[Chunk],
        scratch: &mut Scratch,
    ) -> Result<Chunk, KernelError> {
        let rest = &rows[0].shape()[1..];
        let width: usize = rest.iter().product();
        let (positions, places) = (positions.elements::<i64>()?, self.places());
        let mut out = scratch.result(positions.len() * width * size_of::<T>());
        let to = &mut out.elements_mut::<T>()[..positions.len() * width];
        let rows = rows.iter().map(Chunk::elements::<T>).collect::<Result<Vec<_>, _>>()?;
        let rows: Vec<&[T]> = rows.iter().map(|elements| &**elements).collect();
        let mut found = [Place { chunk: 0, row: 0 }; TOGETHER];
        let mut to = to.chunks_mut(TOGETHER * width.max(1));
        for positions in positions.chunks(TOGETHER) {
            for (place, &position) in found.iter_mut().zip(positions) {
                *place = places.find(position)?;
                stream::prefetch(rows[place.chunk], place.row as usize * width);
            }
            let (found, to) = (&found[..positions.len()], to.next().unwrap_or_default());
            if width == 1 {
                for (to, place) in to.iter_mut().zip(found) {
                    *to = rows[place.chunk][place.row as usize];
                }
                continue;
            }
            for (to, place) in to.chunks_exact_mut(width.max(1)).zip(found) {
                let from = place.row as usize * width;
                to.copy_from_slice(&rows[place.chunk][from..from + width]);
            }
        }
        Chunk::contiguous(T::DTYPE, &[&[positions.len()], rest].concat(), out)
    }

    /// See [`Exchange::Updates`](super::Exchange::Updates).
    pub(super) fn updates(&self, args: &[Chunk], scratch: &mut Scratch) -> Result<Vec<Chunk>, KernelError> {
        let mut made = self.requests(&args[..1], scratch)?;
        let (dtype, rows) = (args[1].dtype(), args[1].as_words());
        for dealt in with_words!(dtype, T => self.dealt::<T>(&args[0], &rows, scratch))? {
            made.push(dealt.of_words(dtype)?);
        }
        Ok(made)
    }

    /// The rows for each chunk, of those for all positions.
    fn dealt<T: Element>(
        &self,
        positions: &Chunk,
        rows: &Chunk,
        scratch: &mut Scratch,
    ) -> Result<Vec<Chunk>, KernelError> {
        let rest = &rows.shape()[1..];
        let width: usize = rest.iter().product();
        let (positions, rows) = (positions.elements::<i64>()?, rows.elements::<T>()?);
        let (places, counts) = (self.places(), self.counts(&positions)?);
        let mut pieces = Pieces::<T>::new(&counts, width, scratch);
        if width != 0 {
            let mut ends = pieces.ends();
            for (&position, row) in positions.iter().zip(rows.chunks_exact(width)) {
                let end = &mut ends[places.find(position)?.chunk];
                end.by_ref().zip(row).take(width).for_each(|(place, &x)| *place = x);
            }
        }
        pieces.finish(&counts, rest)
    }
}

impl Places<'_> {
    /// # Errors
    /// `Index` for a position beyond the rows.
    #[inline(always)]
    fn find(&self, position: i64) -> Result<Place, KernelError> {
        let row = normalized(position, self.map.axis, self.extent)? as u64;
        let mut chunk = self.first[(row >> self.shift) as usize] as usize;
        while self.map.ends[chunk] <= row {
            chunk += 1;
        }
        let start = if chunk == 0 { 0 } else { self.map.ends[chunk - 1] };
        Ok(Place { chunk, row: (row - start) as i64 })
    }
}

/// See [`Exchange::Answers`](super::Exchange::Answers).
pub(super) fn answers(
    x: &Chunk,
    requests: &[Chunk],
    scratch: &mut Scratch,
) -> Result<Vec<Chunk>, KernelError> {
    let words = x.as_words();
    with_words!(x.dtype(), T => {
        let rows = words.elements::<T>()?;
        let mut chosen = |request| chosen::<T>(&rows, &x.shape()[1..], request, scratch)?.of_words(x.dtype());
        requests.iter().map(&mut chosen).collect()
    })
}

/// The rows at the positions of a request, which are in this chunk.
fn chosen<T: Element>(
    rows: &[T],
    rest: &[usize],
    request: &Chunk,
    scratch: &mut Scratch,
) -> Result<Chunk, KernelError> {
    let width: usize = rest.iter().product();
    let positions = request.elements::<i64>()?;
    let mut out = scratch.result(positions.len() * width * size_of::<T>());
    let to = &mut out.elements_mut::<T>()[..positions.len() * width];
    if width == 1 {
        for (place, &position) in to.iter_mut().zip(positions.iter()) {
            *place = rows[position as usize];
        }
    } else if width != 0 {
        for (place, &position) in to.chunks_exact_mut(width).zip(positions.iter()) {
            let from = position as usize * width;
            place.copy_from_slice(&rows[from..from + width]);
        }
    }
    Chunk::contiguous(T::DTYPE, &[&[positions.len()], rest].concat(), out)
}

/// See [`Exchange::Update`](super::Exchange::Update).
pub(super) fn update(
    x: &Chunk,
    positions: &[Chunk],
    rows: &[Chunk],
    scratch: &mut Scratch,
) -> Result<Chunk, KernelError> {
    let (words, rows) = (x.as_words(), as_words(rows, x.dtype())?);
    with_words!(x.dtype(), T => updated::<T>(&words, positions, &rows, scratch))?.of_words(x.dtype())
}

fn updated<T: Element>(
    x: &Chunk,
    positions: &[Chunk],
    rows: &[Chunk],
    scratch: &mut Scratch,
) -> Result<Chunk, KernelError> {
    let width: usize = x.shape()[1..].iter().product();
    let from = x.elements::<T>()?;
    let mut out = scratch.result(from.len() * size_of::<T>());
    let to = &mut out.elements_mut::<T>()[..from.len()];
    to.copy_from_slice(&from);
    for (positions, rows) in positions.iter().zip(rows) {
        let (positions, rows) = (positions.elements::<i64>()?, rows.elements::<T>()?);
        for (&position, row) in positions.iter().zip(rows.chunks_exact(width.max(1))) {
            let at = position as usize * width;
            to[at..at + width].copy_from_slice(row);
        }
    }
    Chunk::contiguous(T::DTYPE, x.shape(), out)
}

/// Rows whose places are found before they are read.
const TOGETHER: usize = 256;
/// Parts of the table of places for each chunk: a row is in the first chunk of its part but for one in so
/// many.
const PARTS_PER_CHUNK: u64 = 16;
/// A larger table would not stay in the first-level cache.
const PARTS_MAX: u64 = 1 << 13;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::placed::run_placed;
    use crate::exchange::{Exchange, Measure};
    use std::slice::from_ref;

    fn chunk<T: Element>(shape: &[usize], elements: &[T]) -> Chunk {
        Chunk::from_elements(shape, elements).unwrap()
    }

    /// Six rows of two, in chunks of two, none and four rows.
    fn rows() -> (RowMap, [Chunk; 3]) {
        let x: Vec<i32> = (0..12).collect();
        let chunks = [chunk(&[2, 2], &x[..4]), chunk(&[0, 2], &x[..0]), chunk(&[4, 2], &x[4..])];
        (RowMap { axis: 0, ends: vec![2, 2, 6] }, chunks)
    }

    #[test]
    fn rows_come_from_the_chunks_that_hold_them_in_the_order_asked_for() {
        let (map, chunks) = rows();
        let asked = chunk(&[5], &[5i64, 0, -2, 1, 0]);
        let counts = Measure::CountRequests(map.clone()).run(from_ref(&asked)).unwrap();
        assert_eq!(counts.to_vec::<i64>().unwrap(), [5, 3, 2, 2, 6, 3, 0, 2]);
        let requests = run_placed(&Exchange::Requests(map.clone()), from_ref(&asked), &[]).unwrap();
        let answer = |(x, request): (&Chunk, Chunk)| {
            run_placed(&Exchange::Answers, from_ref(x), &[vec![request]]).unwrap().remove(0)
        };
        let answers: Vec<Chunk> = chunks.iter().zip(requests).map(answer).collect();
        let in_place =
            run_placed(&Exchange::Gather(map.clone()), from_ref(&asked), &[chunks.to_vec()]).unwrap();
        let made = run_placed(&Exchange::Arrange(map), &[asked], &[answers]).unwrap().remove(0);
        assert_eq!(in_place[0].to_vec::<i32>().unwrap(), made.to_vec::<i32>().unwrap());
        assert_eq!(made.shape(), [5, 2]);
        assert_eq!(made.to_vec::<i32>().unwrap(), [10, 11, 0, 1, 8, 9, 2, 3, 0, 1]);
    }

    #[test]
    fn of_rows_for_one_place_the_last_one_stays() {
        let (map, chunks) = rows();
        let values = chunk(&[3, 2], &[50, 51, 60, 61, 70, 71i32]);
        let args = [chunk(&[3], &[1i64, 4, 1]), values];
        let mut made = run_placed(&Exchange::Updates(map), &args, &[]).unwrap();
        let values = made.split_off(3);
        let updated = |at: usize| {
            let tables = [vec![made[at].clone()], vec![values[at].clone()]];
            let new = run_placed(&Exchange::Update, from_ref(&chunks[at]), &tables).unwrap().remove(0);
            new.to_vec::<i32>().unwrap()
        };
        assert_eq!(updated(0), [0, 1, 70, 71]);
        assert_eq!(updated(2), [4, 5, 6, 7, 60, 61, 10, 11]);
    }

    #[test]
    fn a_position_beyond_the_last_row_is_refused() {
        let map = RowMap { axis: 1, ends: vec![2, 3] };
        let beyond = run_placed(&Exchange::Requests(map), &[chunk(&[2], &[0i64, -4])], &[]).unwrap_err();
        assert_eq!(beyond, KernelError::Index { index: -4, axis: 1, extent: 3 });
    }
}
