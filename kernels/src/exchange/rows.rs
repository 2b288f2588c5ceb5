//! Rows of many chunks, taken or put by position.

use super::sorting::joined;
use crate::chunk::{Buffer, Chunk};
use crate::element::Element;
use crate::error::KernelError;
use crate::lines::normalized;
use crate::with_element;
use serde::{Deserialize, Serialize};

/// The place of rows that positions name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowMap {
    /// The axis of the tensor that the rows are on, for errors.
    pub axis: usize,
    /// The end of each chunk of rows, as the number of a row.
    pub ends: Vec<u64>,
}

impl RowMap {
    /// The number of the row that each position names.
    fn rows(&self, positions: &Chunk) -> Result<Vec<u64>, KernelError> {
        let extent = self.ends.last().copied().unwrap_or(0) as usize;
        let row = |position| Ok(normalized(position, self.axis, extent)? as u64);
        positions.to_vec::<i64>()?.into_iter().map(row).collect()
    }

    /// The chunk that holds a row, and the first row of that chunk.
    fn place(&self, row: u64) -> (usize, u64) {
        let chunk = self.ends.partition_point(|&end| end <= row);
        (chunk, if chunk == 0 { 0 } else { self.ends[chunk - 1] })
    }

    /// For each chunk of rows, the positions within it that are asked for, and where among all they are.
    fn split(&self, positions: &Chunk) -> Result<Vec<Vec<(i64, usize)>>, KernelError> {
        let mut split = vec![Vec::new(); self.ends.len()];
        for (at, row) in self.rows(positions)?.into_iter().enumerate() {
            let (chunk, first) = self.place(row);
            split[chunk].push(((row - first) as i64, at));
        }
        Ok(split)
    }

    /// See [`Measure::CountRequests`](super::Measure::CountRequests).
    pub(super) fn count(&self, args: &[Chunk]) -> Result<Chunk, KernelError> {
        let rows = self.rows(&args[0])?;
        let mut counts = vec![0i64; self.ends.len()];
        rows.iter().for_each(|&row| counts[self.place(row).0] += 1);
        let head = [rows.len() as i64, self.ends.len() as i64];
        let ends = self.ends.iter().map(|&end| end as i64);
        let words: Vec<i64> = head.into_iter().chain(ends).chain(counts).collect();
        Chunk::from_elements(&[1, words.len()], &words)
    }

    /// See [`Exchange::Requests`](super::Exchange::Requests).
    pub(super) fn requests(&self, args: &[Chunk]) -> Result<Vec<Chunk>, KernelError> {
        self.split(&args[0])?.iter().map(|asked| positions_of(asked)).collect()
    }

    /// See [`Exchange::Arrange`](super::Exchange::Arrange).
    pub(super) fn arrange(&self, args: &[Chunk], answers: &[Chunk]) -> Result<Chunk, KernelError> {
        let Some(first) = answers.first() else {
            return Err(KernelError::Malformed("rows of no chunk".to_owned()));
        };
        with_element!(first.dtype(), T => self.arranged::<T>(args, answers))
    }

    fn arranged<T: Element>(&self, args: &[Chunk], answers: &[Chunk]) -> Result<Chunk, KernelError> {
        let rest = &answers[0].shape()[1..];
        let width: usize = rest.iter().product();
        let split = self.split(&args[0])?;
        let count: usize = split.iter().map(Vec::len).sum();
        let mut out = Buffer::for_overwrite(count * width * std::mem::size_of::<T>());
        let to = out.elements_mut::<T>();
        for (asked, answer) in split.iter().zip(answers) {
            let answer = answer.to_contiguous()?;
            let rows = answer.as_slice::<T>().unwrap_or_default();
            for (&(_, at), row) in asked.iter().zip(rows.chunks(width.max(1))) {
                to[at * width..(at + 1) * width].copy_from_slice(row);
            }
        }
        Chunk::contiguous(T::DTYPE, &[&[count], rest].concat(), out)
    }

    /// See [`Exchange::Updates`](super::Exchange::Updates).
    pub(super) fn updates(&self, args: &[Chunk]) -> Result<Vec<Chunk>, KernelError> {
        let split = self.split(&args[0])?;
        let mut made = split.iter().map(|given| positions_of(given)).collect::<Result<Vec<_>, _>>()?;
        for given in &split {
            let rows: Vec<i64> = given.iter().map(|&(_, at)| at as i64).collect();
            made.push(with_element!(args[1].dtype(), T => chosen::<T>(&args[1], &rows))?);
        }
        Ok(made)
    }
}

fn positions_of(asked: &[(i64, usize)]) -> Result<Chunk, KernelError> {
    let positions: Vec<i64> = asked.iter().map(|&(position, _)| position).collect();
    Chunk::from_elements(&[positions.len()], &positions)
}

/// The rows of a chunk at these positions, which are in it.
fn chosen<T: Element>(x: &Chunk, positions: &[i64]) -> Result<Chunk, KernelError> {
    let rest = &x.shape()[1..];
    let width: usize = rest.iter().product();
    let x = x.to_contiguous()?;
    let rows = x.as_slice::<T>().unwrap_or_default();
    let mut out = Buffer::for_overwrite(positions.len() * width * std::mem::size_of::<T>());
    let to = out.elements_mut::<T>();
    for (at, &position) in positions.iter().enumerate() {
        let from = position as usize * width;
        to[at * width..(at + 1) * width].copy_from_slice(&rows[from..from + width]);
    }
    Chunk::contiguous(T::DTYPE, &[&[positions.len()], rest].concat(), out)
}

/// See [`Exchange::Answers`](super::Exchange::Answers).
pub(super) fn answers(x: &Chunk, requests: &[Chunk]) -> Result<Vec<Chunk>, KernelError> {
    let answer = |request: &Chunk| {
        let positions = request.to_vec::<i64>()?;
        with_element!(x.dtype(), T => chosen::<T>(x, &positions))
    };
    requests.iter().map(answer).collect()
}

/// See [`Exchange::Update`](super::Exchange::Update).
pub(super) fn update(x: &Chunk, positions: &[Chunk], rows: &[Chunk]) -> Result<Chunk, KernelError> {
    with_element!(x.dtype(), T => updated::<T>(x, positions, rows))
}

fn updated<T: Element>(x: &Chunk, positions: &[Chunk], rows: &[Chunk]) -> Result<Chunk, KernelError> {
    let width: usize = x.shape()[1..].iter().product();
    let mut elements = x.to_vec::<T>()?;
    let (positions, rows): (Vec<i64>, Vec<T>) = (joined(positions)?, joined(rows)?);
    for (position, row) in positions.into_iter().zip(rows.chunks(width.max(1))) {
        let at = position as usize * width;
        elements[at..at + width].copy_from_slice(row);
    }
    Chunk::from_elements(x.shape(), &elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Exchange, Measure};

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
        let counts = Measure::CountRequests(map.clone()).run(std::slice::from_ref(&asked)).unwrap();
        assert_eq!(counts.to_vec::<i64>().unwrap(), [5, 3, 2, 2, 6, 3, 0, 2]);
        let requests = Exchange::Requests(map.clone()).run(std::slice::from_ref(&asked), &[]).unwrap();
        let answer = |(x, request): (&Chunk, Chunk)| {
            Exchange::Answers.run(std::slice::from_ref(x), &[vec![request]]).unwrap().remove(0)
        };
        let answers: Vec<Chunk> = chunks.iter().zip(requests).map(answer).collect();
        let made = Exchange::Arrange(map).run(&[asked], &[answers]).unwrap().remove(0);
        assert_eq!(made.shape(), [5, 2]);
        assert_eq!(made.to_vec::<i32>().unwrap(), [10, 11, 0, 1, 8, 9, 2, 3, 0, 1]);
    }

    #[test]
    fn of_rows_for_one_place_the_last_one_stays() {
        let (map, chunks) = rows();
        let values = chunk(&[3, 2], &[50, 51, 60, 61, 70, 71i32]);
        let mut made = Exchange::Updates(map).run(&[chunk(&[3], &[1i64, 4, 1]), values], &[]).unwrap();
        let values = made.split_off(3);
        let updated = |at: usize| {
            let tables = [vec![made[at].clone()], vec![values[at].clone()]];
            let new = Exchange::Update.run(std::slice::from_ref(&chunks[at]), &tables).unwrap().remove(0);
            new.to_vec::<i32>().unwrap()
        };
        assert_eq!(updated(0), [0, 1, 70, 71]);
        assert_eq!(updated(2), [4, 5, 6, 7, 60, 61, 10, 11]);
    }

    #[test]
    fn a_position_beyond_the_last_row_is_refused() {
        let map = RowMap { axis: 1, ends: vec![2, 3] };
        let beyond = Exchange::Requests(map).run(&[chunk(&[2], &[0i64, -4])], &[]).unwrap_err();
        assert_eq!(beyond, KernelError::Index { index: -4, axis: 1, extent: 3 });
    }
}
