//! Tiles made of others: aligned, transposed, cut, without zeros, and dense.

use super::{Filling, Pattern, Site, Values, malformed, piece};
use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::element::Element;
use crate::error::KernelError;
use std::cmp::Ordering;
use std::ops::Range;

/// A place of one of two tiles or of both: the column, and where each has its element.
type Met = (u32, Option<usize>, Option<usize>);

/// The places of a row of two tiles, in order.
fn merged<'a>(
    a: &'a Pattern<'_>,
    b: &'a Pattern<'_>,
    row: usize,
    both: bool,
) -> impl Iterator<Item = Met> + 'a {
    let (mut i, mut k) = (a.of_row(row), b.of_row(row));
    let mut next = move || {
        let left = i.clone().next().map(|at| (a.columns[at], at));
        let right = k.clone().next().map(|at| (b.columns[at], at));
        let order = match (left, right) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((x, _)), Some((y, _))) => x.cmp(&y),
        };
        let from_left = if order.is_le() { i.next().zip(left) } else { None };
        let from_right = if order.is_ge() { k.next().zip(right) } else { None };
        let column = from_left.or(from_right).map_or(0, |(_, (column, _))| column);
        Some((column, from_left.map(|(at, _)| at), from_right.map(|(at, _)| at)))
    };
    std::iter::from_fn(move || {
        loop {
            let met = next()?;
            if !both || (met.1.is_some() && met.2.is_some()) {
                return Some(met);
            }
        }
    })
}

/// Both tiles of a function of two, whose tables are `stride` apart.
fn two(tables: &[Vec<Chunk>], stride: usize) -> Result<[Pattern<'_>; 2], KernelError> {
    let (a, b) = (Pattern::of(tables, 0, 0)?, Pattern::of(tables, stride, 0)?);
    match a.rows() == b.rows() {
        true => Ok([a, b]),
        false => Err(malformed("tiles of different numbers of rows")),
    }
}

pub(super) fn count_aligned(site: Site<'_>, tables: &[Vec<Chunk>], both: bool) -> Result<usize, KernelError> {
    let [a, b] = two(tables, 2)?;
    Ok((0..site.rows().min(a.rows())).map(|row| merged(&a, &b, row, both).count()).sum())
}

/// The places of two tiles, and the values of each there.
pub(super) fn align<T: Element>(
    site: Site<'_>,
    tables: &[Vec<Chunk>],
    both: bool,
) -> Result<Vec<Chunk>, KernelError> {
    let [a, b] = two(tables, 3)?;
    let (left, right) = (piece(tables, 2, 0)?.elements::<T>()?, piece(tables, 5, 0)?.elements::<T>()?);
    let mut tile = Filling::new(site);
    let (mut of_a, mut of_b) = (Values::<T>::new(site), Values::<T>::new(site));
    for row in 0..site.rows() {
        tile.add_row(merged(&a, &b, row, both).map(|(column, _, _)| column))?;
        let value = |from: &[T], at: Option<usize>| at.map_or(T::zeroed(), |at| from[at]);
        of_a.extend(merged(&a, &b, row, both).map(|(_, at, _)| value(&left, at)))?;
        of_b.extend(merged(&a, &b, row, both).map(|(_, _, at)| value(&right, at)))?;
    }
    tile.finish(vec![of_a.finish()?, of_b.finish()?])
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
