//! Tiles made of others: aligned, transposed, cut, without zeros, and dense.

use super::{Filling, Pattern, Values, malformed, piece};
use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::element::Element;
use crate::error::KernelError;
use crate::site::Site;
use std::ops::Range;

/// Calls a function with each place of a row that one of two tiles stores, or that both do, in order: the
/// column, and where each has its element.
#[inline(always)]
fn each_met(
    [a, b]: &[Pattern<'_>; 2],
    row: usize,
    both: bool,
    mut visit: impl FnMut(u32, Option<usize>, Option<usize>),
) {
    let (left, right) = (a.columns_of(row), b.columns_of(row));
    let starts = [a.of_row(row).start, b.of_row(row).start];
    let (mut i, mut k) = (0, 0);
    loop {
        // Columns are less than this where there are any.
        let next = |columns: &[u32], at: usize| columns.get(at).map_or(u64::MAX, |&column| column.into());
        let (x, y) = (next(left, i), next(right, k));
        let column = x.min(y);
        if column == u64::MAX {
            return;
        }
        let (in_left, in_right) = (x == column, y == column);
        if !both || in_left && in_right {
            let [of_left, of_right] = [starts[0] + i, starts[1] + k];
            visit(column as u32, in_left.then_some(of_left), in_right.then_some(of_right));
        }
        i += usize::from(in_left);
        k += usize::from(in_right);
    }
}

/// Both tiles of a function of two, whose tables are `stride` apart.
fn two(tables: &[Vec<Chunk>], stride: usize) -> Result<[Pattern<'_>; 2], KernelError> {
    let (a, b) = (Pattern::of(tables, 0, 0)?, Pattern::of(tables, stride, 0)?);
    if a.rows() == b.rows() { Ok([a, b]) } else { Err(malformed("tiles of different numbers of rows")) }
}

pub(super) fn count_aligned(site: Site<'_>, tables: &[Vec<Chunk>], both: bool) -> Result<usize, KernelError> {
    let tiles = two(tables, 2)?;
    let mut count = 0;
    for row in 0..site.rows().min(tiles[0].rows()) {
        each_met(&tiles, row, both, |_, _, _| count += 1);
    }
    Ok(count)
}

/// The places of two tiles, and the values of each there.
pub(super) fn align<T: Element>(
    site: Site<'_>,
    tables: &[Vec<Chunk>],
    both: bool,
) -> Result<Vec<Chunk>, KernelError> {
    let tiles = two(tables, 3)?;
    let (left, right) = (piece(tables, 2, 0)?.elements::<T>()?, piece(tables, 5, 0)?.elements::<T>()?);
    let (rows, stored) = (site.rows().min(tiles[0].rows()), site.stored);
    let mut ends = vec![0u32; rows + 1];
    let mut columns = Buffer::for_overwrite(stored * size_of::<u32>());
    let mut values = [(); 2].map(|()| Buffer::for_overwrite(stored * size_of::<T>()));
    let to_columns = &mut columns.elements_mut::<u32>()[..stored];
    let [of_left, of_right] = values.each_mut().map(|buffer| &mut buffer.elements_mut::<T>()[..stored]);
    let mut at = 0;
    for row in 0..rows {
        each_met(&tiles, row, both, |column, i, k| {
            if let Some(to) = to_columns.get_mut(at) {
                *to = column;
                of_left[at] = i.map_or(T::zeroed(), |i| left[i]);
                of_right[at] = k.map_or(T::zeroed(), |k| right[k]);
            }
            at += 1;
        });
        ends[row + 1] = at as u32;
    }
    if at != stored || rows != site.rows() {
        return Err(super::other_count());
    }
    let [of_left, of_right] = values.map(|data| Chunk::contiguous(T::DTYPE, &[stored], data));
    Ok(vec![
        Chunk::from_elements(&[rows + 1], &ends)?,
        Chunk::contiguous(DType::U32, &[stored], columns)?,
        of_left?,
        of_right?,
    ])
}

/// Rows and columns exchanged.
pub(super) fn transpose<T: Element>(
    site: Site<'_>,
    tables: &[Vec<Chunk>],
) -> Result<Vec<Chunk>, KernelError> {
    let tile = Pattern::of(tables, 0, 0)?;
    let given = piece(tables, 2, 0)?.elements::<T>()?;
    let rows = site.rows();
    let mut ends = vec![0u32; rows + 1];
    for &column in tile.columns.iter() {
        *ends.get_mut(column as usize + 1).ok_or_else(|| malformed("a column out of a tile"))? += 1;
    }
    for row in 0..rows {
        ends[row + 1] += ends[row];
    }
    let mut next = ends.clone();
    let mut columns = Buffer::for_overwrite(site.stored * size_of::<u32>());
    let mut values = Buffer::for_overwrite(site.stored * size_of::<T>());
    if tile.columns.len() != site.stored || given.len() != site.stored {
        return Err(super::other_count());
    }
    let (to_columns, to_values) = (columns.elements_mut::<u32>(), values.elements_mut::<T>());
    for row in 0..tile.rows() {
        for at in tile.of_row(row) {
            let place = &mut next[tile.columns[at] as usize];
            to_columns[*place as usize] = row as u32;
            to_values[*place as usize] = given[at];
            *place += 1;
        }
    }
    Ok(vec![
        Chunk::from_elements(&[rows + 1], &ends)?,
        Chunk::contiguous(DType::U32, &[site.stored], columns)?,
        Chunk::contiguous(T::DTYPE, &[site.stored], values)?,
    ])
}

/// The elements that are not zero.
pub(super) fn prune<T: Element>(site: Site<'_>, tables: &[Vec<Chunk>]) -> Result<Vec<Chunk>, KernelError> {
    let tile = Pattern::of(tables, 0, 0)?;
    let given = piece(tables, 2, 0)?.elements::<T>()?;
    let (mut kept, mut values) = (Filling::new(site), Values::<T>::new(site));
    for row in 0..site.rows() {
        let stored = || tile.of_row(row).filter(|&at| given[at] != T::zeroed());
        kept.add_row(stored().map(|at| tile.columns[at]))?;
        values.extend(stored().map(|at| given[at]))?;
    }
    kept.finish(vec![values.finish()?])
}

/// The rows of a tile that are part of a result which begins at row `first` of its first tile.
pub(super) fn local_rows(site: Site<'_>, first: usize) -> Range<usize> {
    let start = if site.place.origin[0] == 0 { first } else { 0 };
    start..start + site.rows()
}

/// Some rows of a tile.
pub(super) fn rows<T: Element>(
    site: Site<'_>,
    tables: &[Vec<Chunk>],
    first: usize,
) -> Result<Vec<Chunk>, KernelError> {
    let tile = Pattern::of(tables, 0, 0)?;
    let given = piece(tables, 2, 0)?.elements::<T>()?;
    let chosen = local_rows(site, first);
    let elements = tile.of_rows(chosen.clone())?;
    let (mut kept, mut values) = (Filling::new(site), Values::<T>::new(site));
    for row in chosen {
        kept.add_row(tile.columns_of(row).iter().copied())?;
    }
    values.extend(given[elements].iter().copied())?;
    kept.finish(vec![values.finish()?])
}

/// A dense tile.
pub(super) fn to_dense<T: Element>(site: Site<'_>, tables: &[Vec<Chunk>]) -> Result<Vec<Chunk>, KernelError> {
    let tile = Pattern::of(tables, 0, 0)?;
    let given = piece(tables, 2, 0)?.elements::<T>()?;
    let (rows, columns) = (site.rows(), site.columns());
    let mut data = Buffer::for_overwrite(rows * columns * size_of::<T>());
    let to = &mut data.elements_mut::<T>()[..rows * columns];
    to.fill(T::zeroed());
    for row in 0..rows {
        let line = &mut to[row * columns..(row + 1) * columns];
        for at in tile.of_row(row) {
            line[tile.columns[at] as usize] = given[at];
        }
    }
    Ok(vec![Chunk::contiguous(T::DTYPE, &[rows, columns], data)?])
}

/// The row and the column of each element in the matrix.
pub(super) fn coordinates(site: Site<'_>, tables: &[Vec<Chunk>]) -> Result<Vec<Chunk>, KernelError> {
    let tile = Pattern::of(tables, 0, 0)?;
    let origin = site.place.origin;
    let (mut rows, mut columns) = (Values::<i64>::new(site), Values::<i64>::new(site));
    for row in 0..tile.rows() {
        rows.extend(tile.of_row(row).map(|_| (origin[0] + row) as i64))?;
    }
    columns.extend(tile.columns.iter().map(|&column| origin[1] as i64 + i64::from(column)))?;
    Ok(vec![rows.finish()?, columns.finish()?])
}
