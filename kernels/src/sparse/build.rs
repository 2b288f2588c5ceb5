//! Tiles made of dense ones, of sorted places, and of random numbers.

use super::{Filling, Values, malformed, piece, with_number};
use crate::chunk::Chunk;
use crate::element::Element;
use crate::error::KernelError;
use crate::random::{Key, open_unit};
use crate::site::Site;
use crate::ufunc::Number;

/// The elements of a dense tile that are not zero.
pub(super) fn from_dense<T: Element>(site: Site<'_>, x: &Chunk) -> Result<Vec<Chunk>, KernelError> {
    let elements = x.elements::<T>()?;
    let (mut tile, mut values) = (Filling::new(site), Values::<T>::new(site));
    for row in 0..site.rows() {
        let row = &elements[row * site.columns()..(row + 1) * site.columns()];
        let stored = || row.iter().zip(0u32..).filter(|(x, _)| **x != T::zeroed());
        tile.add_row(stored().map(|(_, column)| column))?;
        values.extend(stored().map(|(&x, _)| x))?;
    }
    tile.finish(vec![values.finish()?])
}

/// The number of distinct keys.
pub(super) fn distinct(tables: &[Vec<Chunk>]) -> Result<usize, KernelError> {
    let keys = piece(tables, 0, 0)?.elements::<i64>()?;
    let changes = keys.windows(2).filter(|pair| pair[0] != pair[1]).count();
    Ok(if keys.is_empty() { 0 } else { 1 + changes })
}

/// Elements at the places of sorted keys.
pub(super) fn assemble(
    site: Site<'_>,
    tables: &[Vec<Chunk>],
    width: i64,
    span: i64,
) -> Result<Vec<Chunk>, KernelError> {
    let (keys, values) = (piece(tables, 0, 0)?, piece(tables, 1, 0)?);
    let keys = keys.elements::<i64>()?;
    let local: Vec<i64> = keys.iter().map(|key| key.rem_euclid(span.max(1))).collect();
    with_number!("coo", values.dtype(), T => added_up::<T>(site, &local, &values.elements::<T>()?, width))
}

fn added_up<T: Number>(
    site: Site<'_>,
    keys: &[i64],
    given: &[T],
    width: i64,
) -> Result<Vec<Chunk>, KernelError> {
    let (mut tile, mut values) = (Filling::new(site), Values::<T>::new(site));
    let mut groups = keys.chunk_by(|a, b| a == b).peekable();
    let mut at = 0;
    for row in 0..site.rows() as i64 {
        let mut columns = Vec::new();
        while let Some(group) = groups.next_if(|group| group[0] / width == row) {
            columns.push((group[0] % width) as u32);
            let equal =
                given.get(at..at + group.len()).ok_or_else(|| malformed("fewer values than places"))?;
            values.extend(equal.iter().copied().reduce(T::plus))?;
            at += group.len();
        }
        tile.add_row(columns)?;
    }
    tile.finish(vec![values.finish()?])
}

/// Random places with random numbers from 0 to 1.
pub(super) fn random(
    site: Site<'_>,
    key: Key,
    share: f64,
    columns: usize,
) -> Result<Vec<Chunk>, KernelError> {
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); site.rows()];
    let mut values = Values::<f64>::new(site);
    let origin = site.place.origin;
    let mut made = Ok(());
    each_place(site, key, share, columns, |row, column| {
        rows[row].push(column as u32);
        let position = (origin[0] + row) as u64 * columns as u64 + (origin[1] + column) as u64;
        made = made.clone().and(values.extend([key.uniform(!position)]));
    });
    made?;
    let mut tile = Filling::new(site);
    for row in rows {
        tile.add_row(row)?;
    }
    tile.finish(vec![values.finish()?])
}

/// Calls a function with the row and the column within the tile of each random place, in C order. Distances
/// between places of a row are drawn, from the beginning of the row: which places there are does not depend
/// on how the matrix is cut.
pub(super) fn each_place(
    site: Site<'_>,
    key: Key,
    share: f64,
    columns: usize,
    mut visit: impl FnMut(usize, usize),
) {
    let (origin, end) = (site.place.origin, site.place.origin[1] + site.columns());
    let rate = (-share).ln_1p();
    for row in 0..site.rows() {
        let draws = Key::of_bits(key.bits((origin[0] + row) as u64));
        let mut column = 0usize;
        for draw in 0.. {
            // Of a chance of 1 the rate is infinite and no place is left out; of 0 the distance is infinite.
            let distance = (open_unit(draws.bits(draw)).ln() / rate).floor();
            column = if distance < columns as f64 { column + distance as usize } else { break };
            if end.min(columns) <= column {
                break;
            }
            if origin[1] <= column {
                visit(row, column - origin[1]);
            }
            column += 1;
        }
    }
}
