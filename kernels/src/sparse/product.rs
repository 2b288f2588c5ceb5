//! Products of tiles with tiles, and with dense matrices.

use super::{Filling, Pattern, Values, dtype_of, malformed, piece, with_number};
use crate::chunk::{Buffer, Chunk};
use crate::element::Element;
use crate::error::KernelError;
use crate::site::Site;
use crate::stream;
use crate::ufunc::Number;
use std::borrow::Cow;

/// A row of tiles and a column of tiles.
struct Factors<'a> {
    left: Vec<Pattern<'a>>,
    right: Vec<Pattern<'a>>,
    starts: &'a [usize],
    ends: &'a [usize],
}

impl<'a> Factors<'a> {
    /// The tables of the second factor begin at `second`.
    fn new(
        tables: &'a [Vec<Chunk>],
        second: usize,
        starts: &'a [usize],
        ends: &'a [usize],
    ) -> Result<Factors<'a>, KernelError> {
        let (left, right) = (Pattern::all(tables, 0)?, Pattern::all(tables, second)?);
        if left.len() == starts.len() && right.len() == ends.len() {
            Ok(Factors { left, right, starts, ends })
        } else {
            Err(malformed("a product of another number of tiles"))
        }
    }

    /// Calls a function with each element of a row of the left factor, as the number of its tile and its
    /// place there, and the row of the right factor that it is multiplied with, as the number of the tile and
    /// of the row there.
    fn each_pair(&self, row: usize, mut visit: impl FnMut((usize, usize), (usize, usize))) {
        for (tile, (pattern, start)) in self.left.iter().zip(self.starts).enumerate() {
            for at in pattern.of_row(row) {
                let depth = start + pattern.columns[at] as usize;
                let other = match self.ends {
                    [_] => 0,
                    ends => ends.partition_point(|&end| end <= depth),
                };
                let first = if other == 0 { 0 } else { self.ends[other - 1] };
                visit((tile, at), (other, depth - first));
            }
        }
    }
}

/// The number of elements of a product.
pub(super) fn count(
    site: Site<'_>,
    tables: &[Vec<Chunk>],
    starts: &[usize],
    ends: &[usize],
) -> Result<usize, KernelError> {
    let factors = Factors::new(tables, 2, starts, ends)?;
    let mut marks = vec![0u32; site.columns()];
    let mut count = 0;
    for row in 0..site.rows() {
        let mark = row as u32 + 1;
        factors.each_pair(row, |_, (other, of_other)| {
            for &column in factors.right[other].columns_of(of_other) {
                let known = &mut marks[column as usize];
                count += usize::from(*known != mark);
                *known = mark;
            }
        });
    }
    Ok(count)
}

/// The product of a row of tiles with a column of tiles.
pub(super) fn sparse(
    site: Site<'_>,
    tables: &[Vec<Chunk>],
    starts: &[usize],
    ends: &[usize],
) -> Result<Vec<Chunk>, KernelError> {
    let factors = Factors::new(tables, 3, starts, ends)?;
    let Some(dtype) = tables.get(2).and_then(|pieces| pieces.first()).map(Chunk::dtype) else {
        return Err(malformed("a product without values"));
    };
    with_number!("matmul", dtype, T => multiplied::<T>(site, &factors, tables))
}

/// The values of all pieces of a table.
fn values<T: Element>(tables: &[Vec<Chunk>], table: usize) -> Result<Vec<Cow<'_, [T]>>, KernelError> {
    let count = tables.get(table).map_or(0, Vec::len);
    (0..count).map(|index| piece(tables, table, index)?.elements::<T>()).collect()
}

/// Each row is added up in a dense line, of which the places that were met are then taken in order.
fn multiplied<T: Number>(
    site: Site<'_>,
    factors: &Factors<'_>,
    tables: &[Vec<Chunk>],
) -> Result<Vec<Chunk>, KernelError> {
    let (left, right) = (values::<T>(tables, 2)?, values::<T>(tables, 5)?);
    let (mut tile, mut made) = (Filling::new(site), Values::<T>::new(site));
    let mut line = vec![(T::ZERO, 0u32); site.columns()];
    let mut met: Vec<u32> = Vec::new();
    for row in 0..site.rows() {
        let mark = row as u32 + 1;
        met.clear();
        factors.each_pair(row, |(of_left, at), (other, of_other)| {
            let (factor, pattern) = (left[of_left][at], &factors.right[other]);
            let elements = pattern.of_row(of_other);
            for (&column, &x) in pattern.columns[elements.clone()].iter().zip(&right[other][elements]) {
                let place = &mut line[column as usize];
                let x = factor.times(x);
                if place.1 == mark {
                    place.0 = place.0.plus(x);
                } else {
                    *place = (x, mark);
                    met.push(column);
                }
            }
        });
        if met.len() * DENSE_SHARE < site.columns() {
            met.sort_unstable();
        } else {
            // A walk through a line that is nearly full costs less than a sort.
            met.clear();
            met.extend((0u32..).zip(&line).filter(|(_, place)| place.1 == mark).map(|(column, _)| column));
        }
        tile.add_row(met.iter().copied())?;
        made.extend(met.iter().map(|&column| line[column as usize].0))?;
    }
    tile.finish(vec![made.finish()?])
}

/// A line with at least this part of its places met is walked through.
const DENSE_SHARE: usize = 16;

/// The product of a row of tiles with a dense matrix (n, k).
pub(super) fn dense(
    site: Site<'_>,
    x: &Chunk,
    tables: &[Vec<Chunk>],
    starts: &[usize],
) -> Result<Vec<Chunk>, KernelError> {
    let left = Pattern::all(tables, 0)?;
    if left.len() != starts.len() || x.shape().len() != 2 {
        return Err(malformed("a product of another number of tiles"));
    }
    with_number!("matmul", dtype_of(tables, 2)?, T => with_dense::<T>(site, x, &left, tables, starts))
}

fn with_dense<T: Number>(
    site: Site<'_>,
    x: &Chunk,
    left: &[Pattern<'_>],
    tables: &[Vec<Chunk>],
    starts: &[usize],
) -> Result<Vec<Chunk>, KernelError> {
    let (given, x_elements) = (values::<T>(tables, 2)?, x.elements::<T>()?);
    let (rows, width) = (site.rows(), site.columns());
    let mut data = Buffer::for_overwrite(rows * width * size_of::<T>());
    let to = &mut data.elements_mut::<T>()[..rows * width];
    to.fill(T::ZERO);
    let is_far = NEAR_BYTES < size_of_val(&*x_elements);
    for ((pattern, given), &start) in left.iter().zip(&given).zip(starts) {
        let from = &x_elements[start * width..];
        for (line, elements) in to.chunks_exact_mut(width.max(1)).zip(pattern.each_row()) {
            let ahead = if is_far { pattern.ahead_of(&elements, AHEAD) } else { &[] };
            ahead.iter().for_each(|&column| stream::prefetch(from, column as usize * width));
            let factors = (&pattern.columns[elements.clone()], &given[elements]);
            match line {
                [sum] => *sum = add_product(*sum, factors, from),
                line => add_rows(line, factors, from),
            }
        }
    }
    Ok(vec![Chunk::contiguous(T::DTYPE, &[rows, width], data)?])
}

/// Number of elements by which rows of the dense matrix are fetched before they are read.
const AHEAD: usize = 48;

/// A dense matrix of so many bytes stays in the second-level cache, and needs no fetches ahead.
const NEAR_BYTES: usize = 256 << 10;

/// The sum and the products of the elements of a row, given as columns and values, with those of a vector.
fn add_product<T: Number>(sum: T, (columns, values): (&[u32], &[T]), vector: &[T]) -> T {
    let pairs = columns.iter().zip(values);
    pairs.fold(sum, |sum, (&column, &y)| sum.plus(y.times(vector[column as usize])))
}

/// Adds the products of the elements of a row with rows of a dense matrix.
fn add_rows<T: Number>(line: &mut [T], factors: (&[u32], &[T]), matrix: &[T]) {
    let width = line.len();
    let mut first = 0;
    while first < width {
        let others = |column: usize| &matrix[column * width + first..];
        let line = &mut line[first..];
        first += match line.len() {
            16.. => add_columns::<T, 16>(line, factors, others),
            4.. => add_columns::<T, 4>(line, factors, others),
            _ => add_columns::<T, 1>(line, factors, others),
        };
    }
}

/// As [`add_rows`], for the first `WIDTH` columns, whose sums stay in registers; returns their number.
fn add_columns<'x, T: Number, const WIDTH: usize>(
    line: &mut [T],
    (columns, values): (&[u32], &[T]),
    others: impl Fn(usize) -> &'x [T],
) -> usize {
    let Some(line) = line.first_chunk_mut::<WIDTH>() else { return WIDTH };
    let mut sums = *line;
    for (&column, &y) in columns.iter().zip(values) {
        let Some(others) = others(column as usize).first_chunk::<WIDTH>() else { continue };
        sums.iter_mut().zip(others).for_each(|(sum, &x)| *sum = sum.plus(y.times(x)));
    }
    *line = sums;
    WIDTH
}
