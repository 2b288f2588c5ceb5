//! Triangular factors of a matrix with its rows exchanged.

use super::field::{Field, is_finite};
use faer::{Mat, MatMut, MatRef};

/// The rows `order` of a matrix (m, n) are the product of a unit lower triangle, whose elements below the
/// diagonal stand there in `packed`, with the upper triangle, which stands on and above it.
pub(super) struct Lu<T: Field> {
    pub(super) order: Vec<usize>,
    pub(super) packed: Mat<T>,
}

impl<T: Field> Lu<T> {
    /// The factors. No more is in memory than this matrix and another one of its size.
    pub(super) fn of(a: Mat<T>) -> Lu<T> {
        Lu::checked(a, |_| true)
    }

    /// As [`Lu::of`] for those to whom a pivot of zero says all: what is behind the first one is not defined.
    pub(super) fn until_zero(a: Mat<T>) -> Lu<T> {
        Lu::checked(a, |lu| !lu.pivots().contains(&T::zero_impl()))
    }

    /// Factors that are finite if the matrix is, where that is asked for.
    fn checked(a: Mat<T>, must_be_finite: impl FnOnce(&Lu<T>) -> bool) -> Lu<T> {
        let mut packed = a.as_ref().to_owned();
        let order = T::lu(packed.as_mut());
        let lu = Lu { order, packed };
        // faer multiplies with the inverse of each pivot, which is infinite for one that is zero or below the
        // normal numbers.
        if is_finite(lu.packed.as_ref()) || !is_finite(a.as_ref()) || !must_be_finite(&lu) {
            return lu;
        }
        drop(lu);
        Lu::divided(a)
    }

    /// Column by column, with divisions. Below a pivot of zero all elements are zero, and so are their
    /// factors.
    fn divided(a: Mat<T>) -> Lu<T> {
        let (m, n) = (a.nrows(), a.ncols());
        let mut packed = a;
        let mut order: Vec<usize> = (0..m).collect();
        for step in 0..m.min(n) {
            // Of complex numbers the sum of the parts, as faer and LAPACK have it.
            let size = |packed: &Mat<T>, i: usize| T::abs1_impl(&packed[(i, step)]);
            let first = |best: usize, i: usize| {
                if size(&packed, best) < size(&packed, i) { i } else { best }
            };
            let largest = (step + 1..m).fold(step, first);
            order.swap(step, largest);
            for j in 0..n {
                let above = packed[(step, j)];
                packed[(step, j)] = packed[(largest, j)];
                packed[(largest, j)] = above;
            }
            let pivot = packed[(step, step)];
            if pivot == T::zero_impl() {
                continue;
            }
            (step + 1..m).for_each(|i| packed[(i, step)] = packed[(i, step)].divided_by(pivot));
            for j in step + 1..n {
                let above = packed[(step, j)];
                for i in step + 1..m {
                    let product = packed[(i, step)] * above;
                    packed[(i, j)] -= product;
                }
            }
        }
        Lu { order, packed }
    }

    /// The diagonal of the upper triangle.
    pub(super) fn pivots(&self) -> Vec<T> {
        (0..self.packed.nrows().min(self.packed.ncols())).map(|i| self.packed[(i, i)]).collect()
    }

    /// Element (i, j) of the lower triangle.
    pub(super) fn lower(&self, i: usize, j: usize) -> T {
        match i.cmp(&j) {
            std::cmp::Ordering::Greater => self.packed[(i, j)],
            std::cmp::Ordering::Equal => T::one_impl(),
            std::cmp::Ordering::Less => T::zero_impl(),
        }
    }

    /// Element (i, j) of the upper triangle.
    pub(super) fn upper(&self, i: usize, j: usize) -> T {
        if i <= j { self.packed[(i, j)] } else { T::zero_impl() }
    }

    /// The solutions for right sides, of a square matrix.
    pub(super) fn solve(&self, sides: MatRef<'_, T>) -> Mat<T> {
        let mut x = Mat::from_fn(sides.nrows(), sides.ncols(), |i, j| sides[(self.order[i], j)]);
        let both: [(bool, bool); 2] = [(true, true), (false, false)];
        for (lower, unit) in both {
            let to: MatMut<'_, T> = x.as_mut();
            T::solve_triangle(self.packed.as_ref(), to, lower, unit);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    fn check<T: Field>(rows: &[&[T]], order: &[usize], packed: &[&[T]]) {
        let a = Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j]);
        let lu = Lu::of(a);
        assert_eq!(lu.order, order);
        let found: Vec<Vec<T>> =
            (0..rows.len()).map(|i| (0..rows[0].len()).map(|j| lu.packed[(i, j)]).collect()).collect();
        assert_eq!(found, packed);
    }

    #[test]
    fn singular_matrices_have_factors() {
        check(&[&[0.0, 1.0], &[0.0, 2.0]], &[0, 1], &[&[0.0, 1.0], &[0.0, 2.0]]);
        let zeros: [&[f32]; 3] = [&[0.0; 3]; 3];
        check(&zeros, &[0, 1, 2], &zeros);
        let packed: [&[f64]; 3] = [&[4.0, 8.0], &[0.5, 0.0], &[0.25, 0.0]];
        check(&[&[1.0, 2.0], &[2.0, 4.0], &[4.0, 8.0]], &[2, 1, 0], &packed);
    }

    #[test]
    fn a_pivot_of_zero_is_the_last_that_some_ask_for() {
        let until_zero = |rows: [[f64; 2]; 2]| Lu::until_zero(Mat::from_fn(2, 2, |i, j| rows[i][j])).pivots();
        assert_eq!(until_zero([[0.0, 1.0], [0.0, 2.0]])[0], 0.0);
        assert_eq!(until_zero([[4e-310, 1.0], [1e-310, 2.0]]), [4e-310, 1.75]);
    }

    #[test]
    fn pivots_below_the_normal_numbers_are_divided_by() {
        check(&[&[4e-310, 1.0], &[1e-310, 2.0]], &[0, 1], &[&[4e-310, 1.0], &[0.25, 1.75]]);
        let tiny = |factor: f32| Complex::new(0.0f32, factor * 1e-40);
        let one = Complex::new(1.0f32, 0.0);
        check(
            &[&[tiny(4.0), one], &[tiny(1.0), one * 2.0]],
            &[0, 1],
            &[&[tiny(4.0), one], &[one * 0.25, one * 1.75]],
        );
    }
}
