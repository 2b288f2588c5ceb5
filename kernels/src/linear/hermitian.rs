//! Eigenvalues and eigenvectors of Hermitian matrices.
//!
//! faer does complex and small matrices. A large real one is reduced to tridiagonal form
//! ([`super::tridiagonal`]), which is divided ([`super::divide`]); its eigenvectors then go through the
//! reflections of the reduction. faer's reduction changes the rest of the matrix at each step, and takes two
//! to three times as long on one thread (n = 4096). The steps here go by several threads where the executor
//! grants them, and give the same bits for any number.

use super::divide::divide;
use super::field::{Field, num_real::Number};
use super::real::Real;
use super::scale::scale_of;
use super::tridiagonal::reduce;
use super::{Results, singular};
use crate::chunk::Buffer;
use crate::element::Element;
use crate::error::KernelError;
use crate::team::each;
use faer::prelude::ReborrowMut;
use faer::traits::ComplexField;
use faer::{Mat, MatMut, MatRef};
use tharsis_dense::DenseField;

/// The results that are asked for, and how to find them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Whether the upper triangle is read.
    pub(super) upper: bool,
    /// Whether eigenvectors are the second result.
    pub(super) with_vectors: bool,
    /// Threads that may be used.
    pub(super) threads: usize,
}

/// Writes the results for matrix number `index`.
pub(super) fn hermitian<T: Field>(
    matrix: MatRef<'_, T>,
    wanted: Wanted,
    index: usize,
    results: &mut Results,
) -> Result<(), KernelError> {
    let n = matrix.nrows();
    let failed = || singular("Eigenvalues did not converge");
    let mut memory = zeros::<T>(n);
    let mut lower = square::<T>(&mut memory, n);
    if !copy_triangle(lower.rb_mut(), matrix, wanted.upper) {
        return Err(failed());
    }
    let scale = scale_of(lower.as_ref());
    if scale != 1.0 {
        (0..n).for_each(|j| (j..n).for_each(|i| lower[(i, j)] = lower[(i, j)].times_real(scale)));
    }
    let vectors = wanted.with_vectors.then(|| results.of::<T>(1, index));
    let values = match T::as_real((lower, vectors)) {
        Ok((lower, vectors)) if ROWS_MIN <= n => symmetric(lower, vectors, wanted.threads),
        Ok((lower, vectors)) => by_faer(lower.as_ref(), vectors),
        Err((lower, vectors)) => by_faer(lower.as_ref(), vectors),
    };
    let values = values.ok_or_else(failed)?;
    for (to, value) in results.of::<T::Size>(0, index).iter_mut().zip(values) {
        *to = Number::of_float(value.to_float() / scale);
    }
    Ok(())
}

/// Eigenvalues by faer, from the lower triangle, and eigenvectors row by row if there is a place for them.
pub(super) fn by_faer<T: Element + DenseField>(
    lower: MatRef<'_, T>,
    vectors: Option<&mut [T]>,
) -> Option<Vec<T::Real>> {
    let Some(to) = vectors else { return T::hermitian_eigenvalues(lower) };
    let eigen = T::hermitian_eigen(lower)?;
    MatMut::from_row_major_slice_mut(to, lower.nrows(), lower.ncols()).copy_from(eigen.U());
    Some(eigen.S().column_vector().iter().map(T::real_part_impl).collect())
}

/// As [`by_faer`], for real matrices, of [`ROWS_MIN`] rows at least.
pub(super) fn symmetric<T: Real + Element>(
    mut lower: MatMut<'_, T>,
    vectors: Option<&mut [T]>,
    threads: usize,
) -> Option<Vec<T>> {
    let n = lower.nrows();
    let made = reduce(lower.rb_mut(), threads);
    let Some(to) = vectors else { return values_alone(&made.diagonal, made.beside) };
    let mut values = made.diagonal;
    let mut memory = zeros::<T>(n);
    let mut vectors = square::<T>(&mut memory, n);
    divide(&mut values, &made.beside, vectors.rb_mut(), threads)?;
    reflect(lower.as_ref(), &made.factors, vectors, to, threads);
    Some(values)
}

fn values_alone<T: Real>(diagonal: &[T], mut beside: Vec<T>) -> Option<Vec<T>> {
    let n = diagonal.len();
    beside.push(T::zero_impl());
    let mut values = vec![T::zero_impl(); n];
    T::tridiagonal_eigen(diagonal, &beside, &mut values, None)?;
    Some(values)
}

/// Applies the reflections below the diagonal of `lower` to vectors, and writes them row by row.
fn reflect<T: Real>(
    lower: MatRef<'_, T>,
    factors: &[T],
    vectors: MatMut<'_, T>,
    to: &mut [T],
    threads: usize,
) {
    let n = lower.nrows();
    let reflections = lower.submatrix(1, 0, n - 1, n - 1);
    let blocks = block_factors(reflections, factors);
    let mut items = Vec::with_capacity(n.div_ceil(COLUMNS));
    let mut rest = (vectors, MatMut::from_row_major_slice_mut(to, n, n));
    for first in (0..n).step_by(COLUMNS) {
        let width = COLUMNS.min(n - first);
        let ((own, vectors), (to, others)) = (rest.0.split_at_col_mut(width), rest.1.split_at_col_mut(width));
        items.push((own, to));
        rest = (vectors, others);
    }
    each(threads, items, |(mut own, mut to)| {
        T::apply_blocks(reflections, blocks.as_ref(), own.rb_mut().subrows_mut(1, n - 1));
        for i in 0..n {
            (0..own.ncols()).for_each(|j| to[(i, j)] = own[(i, j)]);
        }
    });
}

/// The triangular factors of blocks of reflections, beside each other (b, n - 1).
fn block_factors<T: Real>(reflections: MatRef<'_, T>, factors: &[T]) -> Mat<T> {
    let (rows, count) = (reflections.nrows(), factors.len());
    let mut blocks = Mat::zeros(REFLECTIONS, count);
    for first in (0..count).step_by(REFLECTIONS) {
        let width = REFLECTIONS.min(count - first);
        let mut block = blocks.as_mut().submatrix_mut(0, first, width, width);
        (0..width).for_each(|j| block[(j, j)] = factors[first + j]);
        let reflections = reflections.submatrix(first, first, rows - first, width);
        T::complete_block(block, reflections);
    }
    blocks
}

/// Copies the triangle that is read below the diagonal, which becomes real; whether all of it is finite.
fn copy_triangle<T: Field>(mut to: MatMut<'_, T>, matrix: MatRef<'_, T>, upper: bool) -> bool {
    let n = matrix.nrows();
    let from = if upper { matrix.transpose() } else { matrix };
    let mut is_finite = true;
    // Some columns at a time: one of both matrices lies by rows as a rule.
    for first in (0..n).step_by(COPIED_COLUMNS) {
        for i in first..n {
            for j in first..(first + COPIED_COLUMNS).min(i + 1) {
                let x = if upper { T::conj_impl(&from[(i, j)]) } else { from[(i, j)] };
                is_finite &= x.is_finite_number();
                to[(i, j)] = if i == j { T::from_real(x.real_part()) } else { x };
            }
        }
    }
    is_finite
}

/// Memory of a matrix (n, n), in large pages if it is large.
fn zeros<T: Element + ComplexField>(n: usize) -> Buffer {
    let mut memory = Buffer::for_overwrite(padded_rows(n) * n * size_of::<T>());
    memory.elements_mut::<T>()[..padded_rows(n) * n].fill(T::zero_impl());
    memory
}

fn square<T: Element>(memory: &mut Buffer, n: usize) -> MatMut<'_, T> {
    let (rows, elements) = (padded_rows(n), memory.elements_mut::<T>());
    MatMut::from_column_major_slice_mut(&mut elements[..rows * n], rows, n).subrows_mut(0, n)
}

/// Rows for a matrix of n rows, so that elements of a row do not all map to the same set of a cache.
fn padded_rows(n: usize) -> usize {
    (n.div_ceil(ROW_STEP) | 1) * ROW_STEP
}

/// Rows from which on a real matrix is reduced here.
const ROWS_MIN: usize = 128;
/// Reflections that are applied together.
const REFLECTIONS: usize = 64;
/// Eigenvectors that a thread takes through all reflections at once.
const COLUMNS: usize = 128;
const COPIED_COLUMNS: usize = 32;
const ROW_STEP: usize = 16;
