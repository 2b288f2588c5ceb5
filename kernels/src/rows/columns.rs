//! Sums and ends of each column. NaN is left out.
//!
//! Columns lie beside each other in a row, so a loop over rows that are short would be one over few numbers.
//! Several rows are taken at once, each with sums of its own.

use super::{Around, check_whole};
use crate::cpu::{Kernel, Level, dispatch};
use crate::error::KernelError;

/// Sums of the numbers of each column that are not NaN, less the point, with weights w; (d,) each.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// The sums of w, or the number of them.
    pub count: Vec<f64>,
    /// The sums of w x.
    pub sum: Vec<f64>,
    /// The sums of w x².
    pub squares: Vec<f64>,
}

/// The least and the largest number of each column; infinite, with the signs of none, for a column of NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// (d,)
    pub least: Vec<f64>,
    /// (d,)
    pub largest: Vec<f64>,
}

/// The sums of columns.
///
/// ```
/// use tharsis_kernels::rows::{Around, column_sums};
/// let rows = Around::new(&[1.0, 2.0, f64::NAN, 4.0], &[1.0, 0.0])?;
/// let sums = column_sums(rows, None)?;
/// assert_eq!((sums.count, sums.sum, sums.squares), (vec![1.0, 2.0], vec![0.0, 6.0], vec![0.0, 20.0]));
/// # Ok::<(), tharsis_kernels::KernelError>(())
/// ```
///
/// # Errors
/// [`KernelError::Value`] if there are not as many weights as rows.
pub fn column_sums(rows: Around<'_>, weights: Option<&[f64]>) -> Result<Sums, KernelError> {
    let (count, columns) = (rows.rows(), rows.columns());
    rows.check_weights(weights)?;
    if weights.is_none() {
        let beside = rows_at_once(columns);
        let point = rows.point.repeat(beside);
        let (mut sum, mut squares) = (vec![0.0; point.len()], vec![0.0; point.len()]);
        dispatch(AddRows { rows: rows.elements, point: &point, sum: &mut sum, squares: &mut squares });
        // A sum with NaN is NaN; others that are, of infinite numbers, are found so again.
        if !sum.iter().any(|sum| sum.is_nan()) {
            let folded = |sums: &[f64]| folded(sums, columns, |a, b| a + b);
            let (sum, squares) = (folded(&sum), folded(&squares));
            return Ok(Sums { count: vec![count as f64; columns], sum, squares });
        }
    }
    let none = || vec![0.0; columns];
    let mut sums = Sums { count: none(), sum: none(), squares: none() };
    dispatch(AddThere { rows, weights, sums: &mut sums });
    Ok(sums)
}

/// The ends of columns.
///
/// ```
/// use tharsis_kernels::rows::column_ends;
/// let ends = column_ends(&[1.0, 2.0, f64::NAN, -4.0], 2)?;
/// assert_eq!((ends.least, ends.largest), (vec![1.0, -4.0], vec![1.0, 2.0]));
/// # Ok::<(), tharsis_kernels::KernelError>(())
/// ```
///
/// # Errors
/// [`KernelError::Value`] if the elements fill no whole number of rows.
pub fn column_ends(elements: &[f64], columns: usize) -> Result<Ends, KernelError> {
    check_whole(elements, columns)?;
    let beside = rows_at_once(columns) * columns;
    let (mut least, mut largest) = (vec![f64::INFINITY; beside], vec![f64::NEG_INFINITY; beside]);
    dispatch(FindEnds { elements, least: &mut least, largest: &mut largest });
    Ok(Ends { least: folded(&least, columns, lesser), largest: folded(&largest, columns, larger) })
}

/// Rows that fill at least [`AT_ONCE`] numbers and whole vectors.
fn rows_at_once(columns: usize) -> usize {
    if AT_ONCE <= columns { 1 } else { AT_ONCE.div_ceil(VECTOR * columns.max(1)) * VECTOR }
}

/// Numbers that are added to as many sums before the first sum is needed again.
const AT_ONCE: usize = 64;
/// Numbers of the widest vectors.
const VECTOR: usize = 8;

/// One number for each column, of one for each column of several rows.
fn folded(sums: &[f64], columns: usize, fold: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let mut rows = sums.chunks_exact(columns.max(1));
    let mut folded = rows.next().unwrap_or_default().to_vec();
    for row in rows {
        folded.iter_mut().zip(row).for_each(|(folded, number)| *folded = fold(*folded, *number));
    }
    folded
}

#[inline(always)]
fn lesser(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a < b { b } else { a }
}

/// Adds as many rows at once as there are numbers in the sums.
struct AddRows<'a> {
    rows: &'a [f64],
    point: &'a [f64],
    sum: &'a mut [f64],
    squares: &'a mut [f64],
}

impl Kernel for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for rows in self.rows.chunks(self.point.len().max(1)) {
            let sums = self.sum.iter_mut().zip(self.squares.iter_mut());
            for (((sum, squares), x), point) in sums.zip(rows).zip(self.point) {
                let rest = x - point;
                *sum += rest;
                *squares += rest * rest;
            }
        }
    }
}

/// Adds the numbers that are not NaN.
struct AddThere<'a> {
    rows: Around<'a>,
    weights: Option<&'a [f64]>,
    sums: &'a mut Sums,
}

impl Kernel for AddThere<'_> {
    type Output = ();
    // With 512 bits it takes 1.4 times as long.
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        let Sums { count, sum, squares } = self.sums;
        for (at, row) in self.rows.elements.chunks_exact(self.rows.columns().max(1)).enumerate() {
            let weight = self.weights.map_or(1.0, |weights| weights[at]);
            let sums = count.iter_mut().zip(sum.iter_mut()).zip(squares.iter_mut());
            for ((((count, sum), squares), x), point) in sums.zip(row).zip(self.rows.point) {
                let rest = if x.is_nan() { 0.0 } else { x - point };
                *count += if x.is_nan() { 0.0 } else { weight };
                *sum += rest * weight;
                *squares += rest * weight * rest;
            }
        }
    }
}

/// Finds the ends of as many rows at once as there are numbers in them.
struct FindEnds<'a> {
    elements: &'a [f64],
    least: &'a mut [f64],
    largest: &'a mut [f64],
}

impl Kernel for FindEnds<'_> {
    type Output = ();
    // With 256 bits it takes 2.9 times as long, with 512 bits a fifth less.
    const LEVEL: Level = Level::Portable;

    #[inline(always)]
    fn run(self) {
        for rows in self.elements.chunks(self.least.len().max(1)) {
            let ends = self.least.iter_mut().zip(self.largest.iter_mut());
            for ((least, largest), &x) in ends.zip(rows) {
                *least = lesser(*least, x);
                *largest = larger(*largest, x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    #[test]
    fn sums_and_ends_are_those_of_each_column_alone() {
        let key = Key::new(3, 0);
        for rows in [0, 1, 7, 8, 9, 63, 64, 65, 200] {
            for d in [1, 2, 3, 8, 63, 64, 65] {
                for missing in [0.0, 0.2, 1.0] {
                    let number = |at: usize| {
                        if key.uniform(1000 + at as u64) < missing {
                            f64::NAN
                        } else {
                            key.uniform(at as u64)
                        }
                    };
                    let x: Vec<f64> = (0..rows * d).map(number).collect();
                    let point: Vec<f64> = (0..d).map(|at| key.uniform(5 * at as u64)).collect();
                    let weights: Vec<f64> = (0..rows).map(|at| key.uniform(7 * at as u64)).collect();
                    let ends = column_ends(&x, d).unwrap();
                    for weights in [None, Some(&weights[..])] {
                        let sums = column_sums(Around::new(&x, &point).unwrap(), weights).unwrap();
                        for column in 0..d {
                            let there = (0..rows).filter(|row| !x[row * d + column].is_nan());
                            let numbers: Vec<(f64, f64)> = there
                                .map(|row| (weights.map_or(1.0, |weights| weights[row]), x[row * d + column]))
                                .collect();
                            let sum = |of: &dyn Fn(f64, f64) -> f64| {
                                numbers.iter().map(|&(w, x)| of(w, x - point[column])).sum::<f64>()
                            };
                            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12;
                            assert!(near(sums.count[column], sum(&|w, _| w)), "{rows} by {d}");
                            assert!(near(sums.sum[column], sum(&|w, x| w * x)), "{rows} by {d}");
                            assert!(near(sums.squares[column], sum(&|w, x| w * x * x)), "{rows} by {d}");
                            let least = numbers.iter().fold(f64::INFINITY, |a, b| a.min(b.1));
                            let largest = numbers.iter().fold(f64::NEG_INFINITY, |a, b| a.max(b.1));
                            assert_eq!((ends.least[column], ends.largest[column]), (least, largest));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn infinite_numbers_and_wrong_weights_reach_the_sums() {
        let of = |x: &[f64], weights: Option<&[f64]>| {
            column_sums(Around::new(x, &[0.0]).unwrap(), weights).unwrap()
        };
        assert!(of(&[1.0, f64::INFINITY], None).sum[0].is_infinite());
        assert!(of(&[f64::NEG_INFINITY, f64::INFINITY], None).sum[0].is_nan());
        assert!(of(&[f64::NAN], Some(&[f64::NAN])).sum[0].is_nan());
        assert_eq!(of(&[f64::NAN, 2.0], None), Sums { count: vec![1.0], sum: vec![2.0], squares: vec![4.0] });
    }
}
