//! The nearest of some centres, and what is summed of the rows that have it. Distances are not stored.

use super::block::{FOUR, NARROW, PORTABLE_FUSED, WIDE, add_rows};
use super::{Around, TILE_ROWS, check_whole};
use crate::cpu::{Kernel, Level, dispatch, level};
use crate::error::KernelError;

/// Centres, around the same point as the rows that look for the nearest one.
#[derive(Clone, Debug)]
pub struct Centers<'a> {
    /// (k, d).
    elements: &'a [f64],
    columns: usize,
    /// Numbers of a panel: centres beside each other.
    width: usize,
    /// The centres in panels, a row for each column; times -2 for distances by products.
    panels: Vec<f64>,
    /// Their squared lengths for distances by products, else zeros; infinite behind the last centre.
    starts: Vec<f64>,
    by_products: bool,
}

/// Sums over the rows that are nearest to each centre, with weights w.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// The sums of w x around the point; (k, d).
    pub sums: Vec<f64>,
    /// The sums of w; (k,).
    pub weights: Vec<f64>,
}

impl<'a> Centers<'a> {
    /// Centres (k, d), at least one. The nearest is found by |c|² - 2 x c if `by_products`, else by squares
    /// of differences; of several, it is the first.
    ///
    /// # Errors
    /// [`KernelError::Value`] if the elements fill no whole number of centres, or none.
    pub fn new(elements: &'a [f64], columns: usize, by_products: bool) -> Result<Centers<'a>, KernelError> {
        check_whole(elements, columns)?;
        if elements.is_empty() {
            return Err(KernelError::Value(format!("no centers of {columns} columns")));
        }
        let count = elements.len() / columns;
        let width = if NARROW < count { WIDE } else { NARROW };
        let padded = count.next_multiple_of(width);
        let (mut panels, mut starts) = (vec![0.0; padded * columns], vec![f64::INFINITY; padded]);
        let factor = if by_products { -2.0 } else { 1.0 };
        for (at, center) in elements.chunks_exact(columns).enumerate() {
            let panel = &mut panels[at / width * width * columns..];
            for (column, part) in center.iter().enumerate() {
                panel[column * width + at % width] = part * factor;
            }
            starts[at] = if by_products { center.iter().map(|part| part * part).sum() } else { 0.0 };
        }
        Ok(Centers { elements, columns, width, panels, starts, by_products })
    }

    /// Number of centres.
    fn count(&self) -> usize {
        self.elements.len() / self.columns
    }

    /// The sums of the rows that are nearest to each centre.
    ///
    /// ```
    /// use tharsis_kernels::rows::{Around, Centers};
    /// let rows = Around::new(&[0.0, 1.0, 5.0, 6.0], &[0.0])?;
    /// let found = Centers::new(&[0.0, 7.0], 1, true)?.clusters(rows, None)?;
    /// assert_eq!((found.sums, found.weights), (vec![1.0, 11.0], vec![2.0, 2.0]));
    /// # Ok::<(), tharsis_kernels::KernelError>(())
    /// ```
    ///
    /// # Errors
    /// [`KernelError::Value`] if rows have another number of columns, or there are not as many weights.
    pub fn clusters(&self, rows: Around<'_>, weights: Option<&[f64]>) -> Result<Clusters, KernelError> {
        let (mut sums, mut sizes) = (vec![0.0; self.elements.len()], vec![0.0; self.count()]);
        self.each_tile(rows, weights, |tile, nearest, weights| {
            dispatch(AddToClusters { tile, nearest, weights, sums: &mut sums, sizes: &mut sizes });
        })?;
        Ok(Clusters { sums, weights: sizes })
    }

    /// The squared distance of each row to its nearest centre, of differences, times its weight.
    ///
    /// ```
    /// use tharsis_kernels::rows::{Around, Centers};
    /// let rows = Around::new(&[1.0, 2.0, 3.0], &[1.0])?;
    /// let found = Centers::new(&[0.0, 3.0], 1, true)?.distances(rows, Some(&[1.0, 2.0, 3.0]))?;
    /// assert_eq!(found, [0.0, 2.0, 3.0]);
    /// # Ok::<(), tharsis_kernels::KernelError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Centers::clusters`].
    pub fn distances(&self, rows: Around<'_>, weights: Option<&[f64]>) -> Result<Vec<f64>, KernelError> {
        let mut found = Vec::with_capacity(rows.rows());
        self.each_tile(rows, weights, |tile, nearest, weights| {
            let from = found.len();
            found.resize(from + nearest.len(), 0.0);
            let to = &mut found[from..];
            dispatch(Distances { tile, nearest, centers: self.elements, to });
            if let Some(weights) = weights {
                to.iter_mut().zip(weights).for_each(|(distance, weight)| *distance *= weight);
            }
        })?;
        Ok(found)
    }

    /// Calls `with` for tiles of rows less their point, with the numbers of the nearest centres, and weights.
    ///
    /// # Errors
    /// As [`Centers::clusters`].
    fn each_tile(
        &self,
        rows: Around<'_>,
        weights: Option<&[f64]>,
        mut with: impl FnMut(&[f64], &[u32], Option<&[f64]>),
    ) -> Result<(), KernelError> {
        let (count, columns) = (rows.rows(), self.columns);
        if rows.columns() != columns {
            let text = format!("centers of {columns} columns for rows of {}", rows.columns());
            return Err(KernelError::Value(text));
        }
        rows.check_weights(weights)?;
        // A block is of whole rows: those behind the last one of a tile are not looked at.
        let (mut tile, mut nearest) = (vec![0.0; TILE_ROWS * columns], [0; TILE_ROWS]);
        let padded = self.starts.len();
        let mut distances = vec![0.0; TILE_ROWS * padded];
        for first in (0..count).step_by(TILE_ROWS) {
            let tile_rows = TILE_ROWS.min(count - first);
            let part = rows.part(first, tile_rows);
            let to = (&mut tile[..part.len()], &mut distances[..tile_rows * padded]);
            let is_fused = PORTABLE_FUSED || Level::Portable < level();
            match (self.width, is_fused, self.by_products) {
                (WIDE, true, true) => self.measure::<true, false, WIDE>(part, rows.point, to),
                (WIDE, true, false) => self.measure::<true, true, WIDE>(part, rows.point, to),
                (WIDE, false, true) => self.measure::<false, false, WIDE>(part, rows.point, to),
                (WIDE, false, false) => self.measure::<false, true, WIDE>(part, rows.point, to),
                (_, true, true) => self.measure::<true, false, NARROW>(part, rows.point, to),
                (_, true, false) => self.measure::<true, true, NARROW>(part, rows.point, to),
                (_, false, true) => self.measure::<false, false, NARROW>(part, rows.point, to),
                (_, false, false) => self.measure::<false, true, NARROW>(part, rows.point, to),
            }
            let (distances, nearest) = (&distances[..tile_rows * padded], &mut nearest[..tile_rows]);
            dispatch(FindLeast { distances, padded, nearest });
            let weights = weights.map(|weights| &weights[first..first + tile_rows]);
            with(&tile[..part.len()], nearest, weights);
        }
        Ok(())
    }

    fn measure<const FUSED: bool, const SQUARES: bool, const L: usize>(
        &self,
        part: &[f64],
        point: &[f64],
        (tile, distances): (&mut [f64], &mut [f64]),
    ) {
        let measure = Measure::<FUSED, SQUARES, L> { centers: self, part, point, tile, distances };
        if FUSED { dispatch(measure) } else { measure.run() }
    }
}

/// Takes the point off rows, and finds their distances to all centres, as far as they differ.
struct Measure<'a, const FUSED: bool, const SQUARES: bool, const L: usize> {
    centers: &'a Centers<'a>,
    part: &'a [f64],
    point: &'a [f64],
    tile: &'a mut [f64],
    /// (rows, numbers of all panels).
    distances: &'a mut [f64],
}

impl<const FUSED: bool, const SQUARES: bool, const L: usize> Kernel for Measure<'_, FUSED, SQUARES, L> {
    type Output = ();
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        let Measure { centers, part, point, tile, distances } = self;
        let columns = point.len();
        for (to, row) in tile.chunks_exact_mut(columns).zip(part.chunks_exact(columns)) {
            to.iter_mut().zip(row).zip(point).for_each(|((to, x), point)| *to = x - point);
        }
        let padded = centers.starts.len();
        for (rows, distances) in tile.chunks(FOUR * columns).zip(distances.chunks_mut(FOUR * padded)) {
            // The rows of a block that is not whole are its first one.
            let row = |at: usize| rows.chunks_exact(columns).nth(at).unwrap_or(&rows[..columns]);
            let four = [row(0), row(1), row(2), row(3)];
            let panels = centers.panels.chunks_exact(L * columns).zip(centers.starts.as_chunks::<L>().0);
            for (at, (panel, starts)) in panels.enumerate() {
                let mut sums = [*starts; FOUR];
                add_rows::<FUSED, SQUARES, L>(four, panel, &mut sums);
                for (sums, to) in sums.iter().zip(distances.chunks_exact_mut(padded)) {
                    to[at * L..(at + 1) * L].copy_from_slice(sums);
                }
            }
        }
    }
}

/// Finds the first of the centres with the least distance, for each row.
struct FindLeast<'a> {
    /// (rows, padded).
    distances: &'a [f64],
    padded: usize,
    nearest: &'a mut [u32],
}

impl Kernel for FindLeast<'_> {
    type Output = ();
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        if self.padded == NARROW {
            for (row, nearest) in self.distances.as_chunks::<NARROW>().0.iter().zip(self.nearest) {
                *nearest = first_least(row, |lane| lane as u32);
            }
            return;
        }
        for (row, nearest) in self.distances.chunks_exact(self.padded).zip(self.nearest) {
            // The least of each lane, and the panel of it: floats, which are as wide as the distances.
            let (mut least, mut panels) = ([f64::INFINITY; NARROW], [0.0; NARROW]);
            for (at, distances) in row.as_chunks::<NARROW>().0.iter().enumerate() {
                let at = at as f64;
                for ((least, panel), &distance) in least.iter_mut().zip(&mut panels).zip(distances) {
                    let is_less = distance < *least;
                    *panel = if is_less { at } else { *panel };
                    *least = if is_less { distance } else { *least };
                }
            }
            *nearest = first_least(&least, |lane| panels[lane] as u32 * NARROW as u32 + lane as u32);
        }
    }
}

/// The least of the numbers that lanes name which have the least distance.
#[inline(always)]
fn first_least(distances: &[f64; NARROW], number: impl Fn(usize) -> u32) -> u32 {
    let (mut least, mut found) = (distances[0], number(0));
    for (lane, &distance) in distances.iter().enumerate().skip(1) {
        let other = number(lane);
        // Without branches, which the processor could not foresee.
        let is_better = (distance < least) | ((distance == least) & (other < found));
        found = if is_better { other } else { found };
        least = if is_better { distance } else { least };
    }
    found
}

/// Adds rows to the sums of their centres.
struct AddToClusters<'a> {
    tile: &'a [f64],
    nearest: &'a [u32],
    weights: Option<&'a [f64]>,
    sums: &'a mut [f64],
    sizes: &'a mut [f64],
}

impl Kernel for AddToClusters<'_> {
    type Output = ();
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        let AddToClusters { tile, nearest, weights, sums, sizes } = self;
        let columns = sums.len() / sizes.len();
        for (at, (row, &center)) in tile.chunks_exact(columns).zip(nearest).enumerate() {
            let center = center as usize;
            let to = sums[center * columns..(center + 1) * columns].iter_mut().zip(row);
            match weights {
                None => {
                    sizes[center] += 1.0;
                    to.for_each(|(sum, x)| *sum += x);
                }
                Some(weights) => {
                    let weight = weights[at];
                    sizes[center] += weight;
                    to.for_each(|(sum, x)| *sum += x * weight);
                }
            }
        }
    }
}

/// The squared distances of rows to their centres.
struct Distances<'a> {
    tile: &'a [f64],
    nearest: &'a [u32],
    centers: &'a [f64],
    to: &'a mut [f64],
}

impl Kernel for Distances<'_> {
    type Output = ();
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        let Distances { tile, nearest, centers, to } = self;
        let columns = tile.len() / nearest.len();
        for ((row, &center), to) in tile.chunks_exact(columns).zip(nearest).zip(to) {
            let center = &centers[center as usize * columns..(center as usize + 1) * columns];
            let (parts, rest) = row.as_chunks::<NARROW>();
            let (centers, rest_of_center) = center.as_chunks::<NARROW>();
            let mut sums = [0.0; NARROW];
            for (part, center) in parts.iter().zip(centers) {
                for ((sum, x), c) in sums.iter_mut().zip(part).zip(center) {
                    *sum += (x - c) * (x - c);
                }
            }
            let last = rest.iter().zip(rest_of_center).map(|(x, c)| (x - c) * (x - c));
            *to = last.fold(sums.iter().sum::<f64>(), |sum, square| sum + square);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    /// The squared distance of a row less the point to a centre.
    fn distance(row: &[f64], point: &[f64], center: &[f64]) -> f64 {
        row.iter().zip(point).zip(center).map(|((x, point), c)| (x - point - c) * (x - point - c)).sum()
    }

    /// The first of the nearest centres, by differences.
    fn plain(row: &[f64], point: &[f64], centers: &[f64]) -> usize {
        let of = |at: usize| distance(row, point, &centers[at * point.len()..][..point.len()]);
        (1..centers.len() / point.len()).fold(0, |best, at| if of(at) < of(best) { at } else { best })
    }

    #[test]
    fn rows_are_added_to_the_nearest_of_any_number_of_centers() {
        let key = Key::new(7, 0);
        let numbers = |from: u64, count: usize| -> Vec<f64> {
            (0..count).map(|at| key.uniform(from + at as u64) - 0.25).collect()
        };
        for rows in [0, 1, 3, 4, 5, TILE_ROWS - 1, TILE_ROWS, TILE_ROWS + 1, 2 * TILE_ROWS + 6] {
            for (k, d) in [(1, 1), (2, 3), (7, 16), (8, 8), (9, 1), (16, 5), (17, 9), (40, 2)] {
                let (x, point, centers) =
                    (numbers(0, rows * d), numbers(1 << 20, d), numbers(1 << 21, k * d));
                let weights = numbers(1 << 22, rows);
                for (by_products, weights) in
                    [(true, None), (false, None), (true, Some(&weights[..])), (false, Some(&weights[..]))]
                {
                    let around = Around::new(&x, &point).unwrap();
                    let of = Centers::new(&centers, d, by_products).unwrap();
                    let made = of.clusters(around, weights).unwrap();
                    let distances = of.distances(around, weights).unwrap();
                    let mut sums = vec![0.0; k * d];
                    let mut sizes = vec![0.0; k];
                    for (at, row) in x.chunks_exact(d).enumerate() {
                        let center = plain(row, &point, &centers);
                        let weight = weights.map_or(1.0, |weights| weights[at]);
                        sizes[center] += weight;
                        for column in 0..d {
                            sums[center * d + column] += (row[column] - point[column]) * weight;
                        }
                        let expected = distance(row, &point, &centers[center * d..][..d]) * weight;
                        assert!((distances[at] - expected).abs() < 1e-12, "{rows} rows, {k} of {d}, {at}");
                    }
                    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
                    assert!(near(&made.weights, &sizes) && near(&made.sums, &sums), "{rows}, {k} of {d}");
                    assert_eq!(distances.len(), rows);
                }
            }
        }
    }

    #[test]
    fn of_equal_distances_the_first_center_counts_and_nan_reaches_a_sum() {
        let of = Centers::new(&[1.0, -1.0, 1.0], 1, false).unwrap();
        let rows = |elements| Around::new(elements, &[0.0]).unwrap();
        assert_eq!(of.clusters(rows(&[0.0, 1.0]), None).unwrap().weights, [2.0, 0.0, 0.0]);
        let found = of.clusters(rows(&[f64::NAN, f64::INFINITY]), None).unwrap();
        assert!(found.sums[0].is_nan());
        assert!(of.distances(rows(&[f64::NAN]), None).unwrap()[0].is_nan());
    }
}
