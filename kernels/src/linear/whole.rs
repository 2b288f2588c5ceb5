//! The work of a task on one matrix of a stack.

use super::field::{Field, columns_of, is_finite, num_real::Number, real_diagonal, write_rows};
use super::hermitian::{Wanted, hermitian};
use super::lu::Lu;
use super::scale::{scale_of, scaled};
use super::{Linear, QrMode, Results, singular};
use crate::chunk::Chunk;
use crate::error::KernelError;
use crate::product::Matrix;
use faer::{Mat, MatRef};

/// Computes the results for matrix number `index`.
pub(super) fn run<T: Field>(
    function: Linear,
    args: &[Chunk],
    index: usize,
    threads: usize,
    results: &mut Results,
) -> Result<(), KernelError> {
    let first = || columns_of::<T>(&args[0], index);
    match function {
        Linear::Cholesky => {
            let lower = cholesky(first()?.as_ref())?;
            write_rows::<T, T>(results.of(0, index), lower.as_ref());
        }
        Linear::Determinant => determinant(first()?, index, results),
        Linear::Eigen => eigen(first()?.as_ref(), index, results)?,
        // Reads the matrix where it lies.
        Linear::Hermitian { .. } | Linear::HermitianValues { .. } if args[0].is_empty() => {}
        Linear::Hermitian { upper } | Linear::HermitianValues { upper } => {
            let with_vectors = matches!(function, Linear::Hermitian { .. });
            let matrix = Matrix::<T>::new(&args[0], index)?;
            hermitian(matrix.as_faer(), Wanted { upper, with_vectors, threads }, index, results)?;
        }
        Linear::Inverse => {
            let a = first()?;
            let n = a.nrows();
            let inverse = solved(a, Mat::identity(n, n))?;
            write_rows::<T, T>(results.of(0, index), inverse.as_ref());
        }
        Linear::Lu => lu(first()?, index, results),
        Linear::Qr(mode) => qr(first()?.as_ref(), mode, index, results),
        Linear::Solve => {
            let x = solved(first()?, columns_of::<T>(&args[1], index)?)?;
            write_rows::<T, T>(results.of(0, index), x.as_ref());
        }
        Linear::SolveTriangular { lower, unit } => {
            let mut x = columns_of::<T>(&args[1], index)?;
            solve_triangular(first()?.as_ref(), x.as_mut(), lower, unit)?;
            write_rows::<T, T>(results.of(0, index), x.as_ref());
        }
        Linear::Svd { full } => svd(first()?.as_ref(), full, index, results)?,
        Linear::SingularValues => {
            let values = singular_values(first()?.as_ref())?;
            results.of::<T::Size>(0, index).copy_from_slice(&values);
        }
    }
    Ok(())
}

/// The lower factor.
pub(super) fn cholesky<T: Field>(a: MatRef<'_, T>) -> Result<Mat<T>, KernelError> {
    let refused = || singular("Matrix is not positive definite");
    let mut a = a.to_owned();
    take_real_diagonal(&mut a);
    let lower = T::cholesky(a.as_ref()).ok_or_else(refused)?;
    // NaN is no pivot at which a factorization would stop.
    if (0..a.nrows()).all(|i| lower[(i, i)].is_finite_number()) { Ok(lower) } else { Err(refused()) }
}

fn determinant<T: Field>(a: Mat<T>, index: usize, results: &mut Results) {
    let lu = Lu::until_zero(a);
    let (product, sign, log) = determinant_of(&lu.pivots(), is_odd(&lu.order));
    results.of::<T>(0, index)[0] = product;
    results.of::<T>(1, index)[0] = sign;
    results.of::<T::Size>(2, index)[0] = Number::of_float(log);
}

/// The determinant, its sign and the logarithm of its absolute value, from pivots and whether rows were
/// exchanged an odd number of times.
pub(super) fn determinant_of<T: Field>(pivots: &[T], is_odd: bool) -> (T, T, f64) {
    let one = T::one_impl();
    let mut sign = if is_odd { -one } else { one };
    let (mut product, mut log) = (sign, 0.0f64);
    let normal = <T::Size as Number>::MIN_POSITIVE;
    let mut is_lost = false;
    for &pivot in pivots {
        // A product below the normal numbers has lost digits, which further pivots do not bring back.
        is_lost |= Field::size(product) < normal;
        let size = Field::size(pivot);
        if size == 0.0 {
            // Pivots behind one of zero are not defined.
            return (T::zero_impl(), T::zero_impl(), f64::NEG_INFINITY);
        }
        product *= pivot;
        log += size.ln();
        sign *= Field::sign(pivot);
    }
    is_lost |= Field::size(product) == 0.0 || !product.is_finite_number();
    if is_lost && log.is_finite() {
        // The product has left the range on its way.
        product = sign.times_real(log.exp());
    }
    (product, sign, log)
}

/// Leaves out the imaginary parts of a diagonal: that of a Hermitian matrix has none.
fn take_real_diagonal<T: Field>(a: &mut Mat<T>) {
    if T::DTYPE.is_complex() {
        (0..a.nrows().min(a.ncols())).for_each(|i| a[(i, i)] = T::from_real(a[(i, i)].real_part()));
    }
}

/// Whether an order is made by an odd number of exchanges.
pub(super) fn is_odd(order: &[usize]) -> bool {
    let mut seen = vec![false; order.len()];
    let mut is_odd = false;
    for start in 0..order.len() {
        let mut at = start;
        while !std::mem::replace(&mut seen[at], true) {
            at = order[at];
            // A cycle of n takes n - 1 exchanges.
            is_odd ^= at != start;
        }
    }
    is_odd
}

fn eigen<T: Field>(a: MatRef<'_, T>, index: usize, results: &mut Results) -> Result<(), KernelError> {
    if a.nrows() == 0 {
        return Ok(());
    }
    if !is_finite(a) {
        return Err(singular("Array must not contain infs or NaNs"));
    }
    let (values, vectors) = T::unit_eigen(a).ok_or_else(|| singular("Eigenvalues did not converge"))?;
    results.of::<T::Pair>(0, index).copy_from_slice(&values);
    results.of::<T::Pair>(1, index).copy_from_slice(&vectors);
    Ok(())
}

fn lu<T: Field>(a: Mat<T>, index: usize, results: &mut Results) {
    let (m, n) = (a.nrows(), a.ncols());
    if m == 0 || n == 0 {
        results.of::<i64>(0, index).iter_mut().zip(0..).for_each(|(to, i)| *to = i);
        return;
    }
    let (lu, k) = (Lu::of(a), m.min(n));
    results.of::<i64>(0, index).iter_mut().zip(&lu.order).for_each(|(to, &row)| *to = row as i64);
    let lower = results.of(1, index);
    (0..m).for_each(|i| (0..k).for_each(|j| lower[i * k + j] = lu.lower(i, j)));
    let upper = results.of(2, index);
    (0..k).for_each(|i| (0..n).for_each(|j| upper[i * n + j] = lu.upper(i, j)));
}

/// The solution of a x = b.
fn solved<T: Field>(a: Mat<T>, b: Mat<T>) -> Result<Mat<T>, KernelError> {
    if a.nrows() == 0 {
        return Ok(b);
    }
    let lu = Lu::until_zero(a);
    if lu.pivots().contains(&T::zero_impl()) {
        return Err(singular("Singular matrix"));
    }
    Ok(if b.ncols() == 0 { b } else { lu.solve(b.as_ref()) })
}

/// Replaces the right side by the solution.
pub(super) fn solve_triangular<T: Field>(
    a: MatRef<'_, T>,
    x: faer::MatMut<'_, T>,
    lower: bool,
    unit: bool,
) -> Result<(), KernelError> {
    if a.nrows() == 0 || x.ncols() == 0 {
        return Ok(());
    }
    if !unit && (0..a.nrows()).any(|i| a[(i, i)] == T::zero_impl()) {
        return Err(singular("Singular matrix"));
    }
    T::solve_triangle(a, x, lower, unit);
    Ok(())
}

fn qr<T: Field>(a: MatRef<'_, T>, mode: QrMode, index: usize, results: &mut Results) {
    let (m, n) = (a.nrows(), a.ncols());
    if m == 0 || n == 0 {
        if mode == QrMode::Complete {
            write_rows::<T, T>(results.of(0, index), Mat::identity(m, m).as_ref());
        }
        return;
    }
    match mode {
        QrMode::Raw => raw_qr(a, index, results),
        QrMode::R => write_rows::<T, T>(results.of(0, index), T::qr(a).thin_R()),
        QrMode::Reduced => {
            let qr = T::qr(a);
            write_rows::<T, T>(results.of(0, index), T::thin_q(&qr).as_ref());
            write_rows::<T, T>(results.of(1, index), qr.thin_R());
        }
        QrMode::Complete => {
            let qr = T::qr(a);
            write_rows::<T, T>(results.of(0, index), T::whole_q(&qr).as_ref());
            // Rows below the triangle are zeros.
            let upper = qr.R();
            let to = results.of(1, index);
            to.fill(T::zero_impl());
            write_rows::<T, T>(to, upper.get(..upper.nrows().min(m), ..));
        }
    }
}

/// Reflectors one by one: their factors are the inverses of faer's.
fn raw_qr<T: Field>(a: MatRef<'_, T>, index: usize, results: &mut Results) {
    let (m, n) = (a.nrows(), a.ncols());
    let mut packed = a.to_owned();
    let mut factors = Mat::<T>::zeros(1, m.min(n));
    T::reflections(packed.as_mut(), factors.as_mut());
    write_rows::<T, T>(results.of(0, index), packed.as_ref().transpose());
    for (j, to) in results.of::<T>(1, index).iter_mut().enumerate() {
        *to = T::from_real(1.0 / factors[(0, j)].real_part());
    }
}

fn svd<T: Field>(
    a: MatRef<'_, T>,
    full: bool,
    index: usize,
    results: &mut Results,
) -> Result<(), KernelError> {
    let (m, n) = (a.nrows(), a.ncols());
    if m == 0 || n == 0 {
        if full {
            write_rows::<T, T>(results.of(0, index), Mat::identity(m, m).as_ref());
            write_rows::<T, T>(results.of(2, index), Mat::identity(n, n).as_ref());
        }
        return Ok(());
    }
    let (scale, scaled) = ready(a)?;
    let svd = T::svd(scaled.as_ref(), full).ok_or_else(|| singular(NO_SVD))?;
    write_rows::<T, T>(results.of(0, index), svd.U());
    let values = real_diagonal::<T>(svd.S().column_vector().iter().copied());
    for (to, value) in results.of::<T::Size>(1, index).iter_mut().zip(values) {
        *to = Number::of_float(value.to_float() / scale);
    }
    write_rows(results.of::<T>(2, index), svd.V().adjoint());
    Ok(())
}

fn singular_values<T: Field>(a: MatRef<'_, T>) -> Result<Vec<T::Size>, KernelError> {
    if a.nrows() == 0 || a.ncols() == 0 {
        return Ok(Vec::new());
    }
    let (scale, scaled) = ready(a)?;
    let values = T::singular_values(scaled.as_ref()).ok_or_else(|| singular(NO_SVD))?;
    Ok(values.into_iter().map(|value: T::Size| Number::of_float(value.to_float() / scale)).collect())
}

/// A finite matrix, scaled so that its products neither overflow nor underflow.
fn ready<T: Field>(a: MatRef<'_, T>) -> Result<(f64, Mat<T>), KernelError> {
    if !is_finite(a) {
        return Err(singular(NO_SVD));
    }
    let scale = scale_of(a);
    Ok((scale, scaled(a, scale)))
}

const NO_SVD: &str = "SVD did not converge";

#[cfg(test)]
mod tests {
    use super::determinant_of;
    use num_complex::Complex;

    #[test]
    fn signs_of_determinants_are_those_of_pivots_of_any_size() {
        assert_eq!(determinant_of(&[1e-310], false), (1e-310, 1.0, 1e-310f64.ln()));
        assert_eq!(determinant_of(&[f64::INFINITY], true), (f64::NEG_INFINITY, -1.0, f64::INFINITY));
        let (product, sign, log) = determinant_of(&[-1e-40f32], false);
        assert_eq!((product, sign), (-1e-40, -1.0));
        assert!((log - 1e-40f64.ln()).abs() < 1e-4, "{log}");
        // The product leaves the range on its way and comes back.
        let (product, sign, _) = determinant_of(&[1e-310, -1e300, 1e-310, 1e300], false);
        assert!(sign == -1.0 && (product / -1e-20f64 - 1.0).abs() < 1e-9, "{product}");
        let (_, sign, _) = determinant_of(&[Complex::new(0.0, 1e-310)], false);
        assert_eq!(sign, Complex::new(0.0, 1.0));
    }
}
