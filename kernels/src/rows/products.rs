//! Products of columns: a Gram matrix of which half is computed, and products with other columns.
//!
//! Columns are packed in panels as they are read: shifted and weighted there, in memory that stays in the
//! second cache.

use super::block::{FOUR, WIDE, add_products, for_this_cpu};
use super::{Around, TILE_ROWS, check_beside};
use crate::cpu::{Kernel, Level};
use crate::error::KernelError;

/// Sums over rows x around a point, and rows y beside them around another one, with weights w.
#[derive(Clone, Debug, PartialEq)]
pub struct Products {
    /// The sums of w x xᵀ: of each row of the matrix the part from the diagonal on.
    pub gram: Vec<f64>,
    /// The sums of w x; (d,).
    pub sum: Vec<f64>,
    /// The sums of w y xᵀ; (k, d).
    pub cross: Vec<f64>,
    /// The sums of w y; (k,).
    pub other_sum: Vec<f64>,
    /// The sums of w y²; (k,).
    pub other_squares: Vec<f64>,
}

/// The sums of products over rows and others beside them, as many. `other` may have no columns.
///
/// ```
/// use tharsis_kernels::rows::{Around, products};
/// let x = Around::new(&[1.0, 2.0, 3.0, 5.0], &[0.0, 0.0])?;
/// let y = Around::new(&[1.0, 2.0], &[1.0])?;
/// let sums = products(x, y, None)?;
/// assert_eq!((sums.gram, sums.sum), (vec![10.0, 17.0, 29.0], vec![4.0, 7.0]));
/// assert_eq!((sums.cross, sums.other_sum, sums.other_squares), (vec![3.0, 5.0], vec![1.0], vec![1.0]));
/// # Ok::<(), tharsis_kernels::KernelError>(())
/// ```
///
/// # Errors
/// [`KernelError::Value`] if there are not as many others or weights as rows.
pub fn products(
    rows: Around<'_>,
    other: Around<'_>,
    weights: Option<&[f64]>,
) -> Result<Products, KernelError> {
    let (count, columns, others) = (rows.rows(), rows.columns(), other.columns());
    check_beside("others", if others == 0 { count } else { other.rows() }, count)?;
    rows.check_weights(weights)?;
    let (panels, beside) = (columns.div_ceil(WIDE), (1 + others).div_ceil(WIDE));
    let width = panels * WIDE;
    let mut tile = vec![0.0; (panels + beside) * TILE_ROWS * WIDE];
    let mut gram = vec![0.0; width * width];
    let mut cross = vec![0.0; beside * WIDE * width];
    let (mut other_sum, mut other_squares) = (vec![0.0; others], vec![0.0; others]);
    for first in (0..count).step_by(TILE_ROWS) {
        let tile_rows = TILE_ROWS.min(count - first);
        let mut roots = [1.0; TILE_ROWS];
        if let Some(weights) = weights {
            let weights = &weights[first..first + tile_rows];
            roots.iter_mut().zip(weights).for_each(|(root, weight)| *root = weight.sqrt());
        }
        let (own, aside) = tile.split_at_mut(panels * TILE_ROWS * WIDE);
        for (at, (beside, root)) in other_rows(other, first, tile_rows).zip(&roots).enumerate() {
            put(aside, at, 0, *root);
            for (column, (y, point)) in beside.iter().zip(other.point).enumerate() {
                let y = (y - point) * root;
                put(aside, at, 1 + column, y);
                other_sum[column] += y * root;
                other_squares[column] += y * y;
            }
        }
        let (part, point) = (rows.part(first, tile_rows), rows.point);
        for_this_cpu!(AddTile {
            rows: part,
            point: point,
            roots: weights.is_some().then_some(&roots),
            own: &mut *own,
            aside: &*aside,
            factors: 1 + others,
            gram: &mut gram,
            cross: &mut cross,
        });
    }
    let row =
        |matrix: &[f64], row: usize, from: usize| matrix[row * width + from..row * width + columns].to_vec();
    Ok(Products {
        gram: (0..columns).flat_map(|at| row(&gram, at, at)).collect(),
        sum: row(&cross, 0, 0),
        cross: (0..others).flat_map(|at| row(&cross, 1 + at, 0)).collect(),
        other_sum,
        other_squares,
    })
}

/// Rows of `other`, which may have no columns.
fn other_rows<'a>(other: Around<'a>, first: usize, count: usize) -> impl Iterator<Item = &'a [f64]> {
    let (part, columns) = (other.part(first, count), other.columns());
    (0..count).map(move |at| &part[at * columns..(at + 1) * columns])
}

/// Puts a number into a row and column of panels.
fn put(panels: &mut [f64], row: usize, column: usize, number: f64) {
    panels[(column / WIDE * TILE_ROWS + row) * WIDE + column % WIDE] = number;
}

/// Packs a tile and adds its products, with `L` numbers of a row of sums in registers.
struct AddTile<'a, const FUSED: bool, const L: usize> {
    rows: &'a [f64],
    point: &'a [f64],
    /// The roots of weights.
    roots: Option<&'a [f64; TILE_ROWS]>,
    /// Panels of the rows; numbers behind the last column are zeros, and stay so.
    own: &'a mut [f64],
    /// Panels of what the rows are multiplied by beside themselves.
    aside: &'a [f64],
    /// Columns of these panels.
    factors: usize,
    gram: &'a mut [f64],
    cross: &'a mut [f64],
}

impl<const FUSED: bool, const L: usize> Kernel for AddTile<'_, FUSED, L> {
    type Output = ();
    const LEVEL: Level = if L == WIDE { Level::Avx512 } else { Level::Avx2 };

    #[inline(always)]
    fn run(self) {
        let AddTile { rows, point, roots, own, aside, factors, gram, cross } = self;
        let (columns, panel) = (point.len(), TILE_ROWS * WIDE);
        for (at, row) in rows.chunks_exact(columns.max(1)).enumerate() {
            let root = roots.map(|roots| roots[at]);
            let parts = row.chunks(WIDE).zip(point.chunks(WIDE)).zip(own.chunks_exact_mut(panel));
            for ((row, point), panel) in parts {
                let to = &mut panel[at * WIDE..(at + 1) * WIDE];
                match (row.first_chunk::<WIDE>(), point.first_chunk::<WIDE>(), to.first_chunk_mut::<WIDE>()) {
                    (Some(row), Some(point), Some(to)) => pack(row, point, root, to),
                    _ => pack(row, point, root, to),
                }
            }
        }
        let count = rows.len() / columns.max(1);
        let width = columns.next_multiple_of(WIDE);
        for (left, panel_of) in own.chunks_exact(panel).enumerate() {
            for at in (0..WIDE.min(columns - left * WIDE)).step_by(FOUR) {
                let to = &mut gram[(left * WIDE + at) * width..];
                for (right, other) in own.chunks_exact(panel).enumerate().skip(left) {
                    add_panels::<FUSED, L>((panel_of, at), other, count, &mut to[right * WIDE..], width);
                }
            }
        }
        for (left, panel_of) in aside.chunks_exact(panel).enumerate() {
            for at in (0..WIDE.min(factors - left * WIDE)).step_by(FOUR) {
                let to = &mut cross[(left * WIDE + at) * width..];
                for (right, other) in own.chunks_exact(panel).enumerate() {
                    add_panels::<FUSED, L>((panel_of, at), other, count, &mut to[right * WIDE..], width);
                }
            }
        }
    }
}

#[inline(always)]
fn pack(row: &[f64], point: &[f64], root: Option<f64>, to: &mut [f64]) {
    let shifted = to.iter_mut().zip(row).zip(point);
    match root {
        None => shifted.for_each(|((to, x), point)| *to = x - point),
        Some(root) => shifted.for_each(|((to, x), point)| *to = (x - point) * root),
    }
}

/// Adds the products of four columns of a panel and all of another to four rows of sums, `width` apart.
#[inline(always)]
fn add_panels<const FUSED: bool, const L: usize>(
    (left, at): (&[f64], usize),
    right: &[f64],
    count: usize,
    to: &mut [f64],
    width: usize,
) {
    for half in (0..WIDE).step_by(L) {
        let mut sums = [[0.0; L]; FOUR];
        for (sums, to) in sums.iter_mut().zip(to.chunks(width)) {
            sums.copy_from_slice(&to[half..half + L]);
        }
        let rows = left.as_chunks::<WIDE>().0.iter().zip(right.as_chunks::<WIDE>().0).take(count);
        let steps = rows.filter_map(|(left, right)| {
            Some((left[at..].first_chunk::<FOUR>()?, right[half..].first_chunk::<L>()?))
        });
        add_products::<FUSED, L>(steps, &mut sums);
        for (sums, to) in sums.iter().zip(to.chunks_mut(width)) {
            to[half..half + L].copy_from_slice(sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    /// The sums by the plain formula.
    fn plain(x: &[f64], y: &[f64], (d, k): (usize, usize), points: [&[f64]; 2], weights: &[f64]) -> Products {
        let (x_at, y_at) = (
            |row: usize, column: usize| x[row * d + column] - points[0][column],
            |row: usize, column: usize| y[row * k + column] - points[1][column],
        );
        let over =
            |of: &dyn Fn(usize) -> f64| (0..weights.len()).map(|row| weights[row] * of(row)).sum::<f64>();
        Products {
            gram: (0..d)
                .flat_map(|i| (i..d).map(move |j| (i, j)))
                .map(|(i, j)| over(&|row| x_at(row, i) * x_at(row, j)))
                .collect(),
            sum: (0..d).map(|i| over(&|row| x_at(row, i))).collect(),
            cross: (0..k)
                .flat_map(|j| (0..d).map(move |i| (i, j)))
                .map(|(i, j)| over(&|row| x_at(row, i) * y_at(row, j)))
                .collect(),
            other_sum: (0..k).map(|j| over(&|row| y_at(row, j))).collect(),
            other_squares: (0..k).map(|j| over(&|row| y_at(row, j) * y_at(row, j))).collect(),
        }
    }

    fn near(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()))
    }

    #[test]
    fn products_are_those_of_the_formula_for_all_shapes_of_tiles() {
        let key = Key::new(5, 0);
        let numbers = |from: u64, count: usize| -> Vec<f64> {
            (0..count).map(|at| key.uniform(from + at as u64) - 0.25).collect()
        };
        for rows in [0, 1, TILE_ROWS - 1, TILE_ROWS, TILE_ROWS + 1, 2 * TILE_ROWS + 3] {
            for (d, k) in [(1, 0), (1, 1), (3, 2), (15, 1), (16, 15), (17, 16), (33, 0)] {
                let (x, y) = (numbers(0, rows * d), numbers(1 << 20, rows * k));
                let (point, other) = (numbers(7, d), numbers(9, k));
                for weights in [None, Some(numbers(3, rows).iter().map(|w| w.abs()).collect::<Vec<_>>())] {
                    let x_rows = Around::new(&x, &point).unwrap();
                    let y_rows = Around::new(&y, &other).unwrap();
                    let made = products(x_rows, y_rows, weights.as_deref()).unwrap();
                    let weights = weights.unwrap_or_else(|| vec![1.0; rows]);
                    let expected = plain(&x, &y, (d, k), [&point, &other], &weights);
                    let case = format!("{rows} rows, {d} and {k} columns");
                    assert!(near(&made.gram, &expected.gram) && near(&made.sum, &expected.sum), "{case}");
                    assert!(near(&made.cross, &expected.cross), "{case}");
                    assert!(near(&made.other_sum, &expected.other_sum), "{case}");
                    assert!(near(&made.other_squares, &expected.other_squares), "{case}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_a_number_reaches_the_sums_of_its_column() {
        let x = [1.0, f64::NAN, 2.0, 3.0, f64::INFINITY, 0.0];
        let (rows, none) = (Around::new(&x, &[0.0; 3]).unwrap(), Around::new(&[], &[]).unwrap());
        let made = products(rows, none, None).unwrap();
        assert!(made.sum[0] == 4.0 && made.sum[1].is_nan() && made.sum[2] == 2.0, "{made:?}");
        let made = products(rows, none, Some(&[1.0, f64::NAN])).unwrap();
        assert!(made.sum.iter().all(|sum| sum.is_nan()), "{made:?}");
    }
}
