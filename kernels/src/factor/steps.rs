//! The computation of each factorization.

use super::Factor;
use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::error::KernelError;
use crate::product::Matrix;
use faer::{Accum, Mat, MatMut, MatRef};
use tharsis_dense::DenseField;

/// Computes the result for a float64 matrix.
pub(super) fn run(factor: Factor, matrix: &Chunk) -> Result<Chunk, KernelError> {
    let &[m, n] = matrix.shape() else {
        return Err(KernelError::Malformed(format!("a factorization of shape {:?}", matrix.shape())));
    };
    let shape = factor.shape(m, n);
    if m == 0 || n == 0 {
        return Chunk::from_elements::<f64>(&shape, &vec![0.0; shape.iter().product()]);
    }
    let matrix = Matrix::<f64>::new(matrix, 0)?;
    let a = matrix.as_faer();
    let passes_nan = matches!(factor, Factor::QrQ | Factor::QrR | Factor::ReflectionSigns);
    if !passes_nan && !(0..n).all(|j| (0..m).all(|i| a[(i, j)].is_finite())) {
        return Err(KernelError::Singular("the matrix contains NaN or infinity".to_owned()));
    }
    match factor {
        Factor::Cholesky => rows_of(&shape, cholesky(a)?.as_ref()),
        Factor::QrQ => rows_of(&shape, thin_qr(a).0.as_ref()),
        Factor::QrR => rows_of(&shape, thin_qr(a).1.as_ref()),
        Factor::ReflectionSigns => Chunk::from_elements(&shape, &reflection_signs(a)),
        Factor::SvdS | Factor::SvdU | Factor::SvdVt => svd(factor, a, &shape),
    }
}

fn svd(factor: Factor, a: MatRef<'_, f64>, shape: &[usize]) -> Result<Chunk, KernelError> {
    // Scaling by a power of two brings the largest element near one, so that products of tiny or huge
    // elements keep their precision.
    let largest = f64::norm_max(a);
    let scale =
        if EASY.contains(&largest) || largest == 0.0 { 1.0 } else { power_of_two_near(1.0 / largest) };
    let scaled;
    let a = if scale == 1.0 {
        a
    } else {
        scaled = Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * scale);
        scaled.as_ref()
    };
    let svd = f64::svd(a, false).ok_or_else(|| KernelError::Singular("SVD did not converge".to_owned()))?;
    match factor {
        Factor::SvdU => rows_of(shape, svd.U()),
        Factor::SvdVt => rows_of(shape, svd.V().transpose()),
        _ => {
            let values: Vec<f64> = (0..shape[0]).map(|i| svd.S()[i] / scale).collect();
            Chunk::from_elements(shape, &values)
        }
    }
}

/// The largest power of two not above `x`, within the range where its inverse is normal.
fn power_of_two_near(x: f64) -> f64 {
    2f64.powi((libm::frexp(x.clamp(MIN_SCALE, 1.0 / MIN_SCALE)).1) - 1)
}

/// Elements in this range need no scaling: their products neither overflow nor underflow.
const EASY: std::ops::Range<f64> = 1e-100..1e100;
const MIN_SCALE: f64 = f64::MIN_POSITIVE * 4.0;

fn rows_of(shape: &[usize], matrix: MatRef<'_, f64>) -> Result<Chunk, KernelError> {
    let elements: Vec<f64> = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| matrix[(i, j)])).collect();
    Chunk::from_elements(shape, &elements)
}

fn cholesky(a: MatRef<'_, f64>) -> Result<Mat<f64>, KernelError> {
    let refused = || KernelError::Singular("Matrix is not positive definite".to_owned());
    f64::cholesky(a).ok_or_else(refused)
}

/// The orthonormal and the upper factor, of which no diagonal element is negative. One task makes the one and
/// another task the other, perhaps on another kind of CPU: signs that reflections choose by the last digit of
/// an element would differ, and the product would be another matrix.
fn thin_qr(a: MatRef<'_, f64>) -> (Mat<f64>, Mat<f64>) {
    qr_of_gram(a).unwrap_or_else(|| {
        let qr = f64::qr(a);
        let (mut q, mut upper) = (f64::thin_q(&qr), qr.thin_R().to_owned());
        for j in 0..upper.nrows() {
            if upper[(j, j)] < 0.0 {
                (0..q.nrows()).for_each(|i| q[(i, j)] = -q[(i, j)]);
                (j..upper.ncols()).for_each(|k| upper[(j, k)] = -upper[(j, k)]);
            }
        }
        (q, upper)
    })
}

/// The factors of many rows by products of matrices, several times as fast as reflections: two rounds of the
/// Cholesky factor of the Gram matrix, by which the rows are divided, not multiplied with its inverse. None
/// unless the first round left columns that are nearly orthonormal, of which the second makes orthonormal
/// ones: columns that are zero, tiny, huge or nearly dependent are for reflections.
fn qr_of_gram(a: MatRef<'_, f64>) -> Option<(Mat<f64>, Mat<f64>)> {
    let n = a.ncols();
    if a.nrows() / n < GRAM_RATIO {
        return None;
    }
    let mut q = a.to_owned();
    let mut upper = Mat::<f64>::identity(n, n);
    for round in 0..2 {
        let mut gram = Mat::<f64>::zeros(n, n);
        f64::multiply_lower(gram.as_mut(), Accum::Replace, q.as_ref().transpose(), q.as_ref());
        if round == 1 && !is_near_identity(gram.as_ref()) {
            return None;
        }
        let lower = f64::cholesky(gram.as_ref())?;
        f64::solve_triangle(lower.as_ref(), q.as_mut().transpose_mut(), true, false);
        let mut product = Mat::<f64>::zeros(n, n);
        f64::multiply(product.as_mut(), Accum::Replace, lower.as_ref().transpose(), upper.as_ref(), 1.0);
        upper = product;
    }
    // Sums of zeros below the diagonal are zeros, of one sign or the other.
    (0..n).for_each(|j| (j + 1..n).for_each(|i| upper[(i, j)] = 0.0));
    Some((q, upper))
}

/// Whether the symmetric matrix of a lower triangle is so near to the identity that its condition is below
/// two.
fn is_near_identity(lower: MatRef<'_, f64>) -> bool {
    let n = lower.nrows();
    let of_row = |i: usize| -> f64 {
        (0..n).map(|j| (lower[(i.max(j), i.min(j))] - if i == j { 1.0 } else { 0.0 }).abs()).sum()
    };
    (0..n).all(|i| of_row(i) < 0.25)
}

/// From this number of rows for each column on, products of matrices are worth their rounds.
const GRAM_RATIO: usize = 4;

/// Ballard et al., 2014: elimination of Q - S without exchanges of rows, where each sign of S is that which
/// makes its pivot larger, gives the reflections whose orthonormal factor is Q S.
fn reflection_signs(top: MatRef<'_, f64>) -> Vec<f64> {
    let n = top.nrows();
    let mut rest = top.to_owned();
    let mut signs = Vec::with_capacity(n);
    for j in 0..n {
        let sign = if 0.0 < rest[(j, j)] { -1.0 } else { 1.0 };
        signs.push(sign);
        rest[(j, j)] -= sign;
        for i in j + 1..n {
            rest[(i, j)] /= rest[(j, j)];
        }
        for k in j + 1..n {
            let above = rest[(j, k)];
            for i in j + 1..n {
                rest[(i, k)] -= rest[(i, j)] * above;
            }
        }
    }
    signs
}

/// The orthonormal factor of some rows times a small matrix, which is flat.
pub(super) fn basis_rows(rows: &Chunk, flat: &Chunk) -> Result<Chunk, KernelError> {
    let &[m, n] = rows.shape() else {
        return Err(KernelError::Malformed(format!("rows of shape {:?}", rows.shape())));
    };
    let flat_len = flat.len();
    if m < n || n == 0 || flat_len != n * n {
        return Err(KernelError::Malformed(format!("a basis of {m} rows, {n} columns, {flat_len} elements")));
    }
    let small = flat.to_vec::<f64>()?;
    let (q, _) = thin_qr(Matrix::<f64>::new(rows, 0)?.as_faer());
    let mut made = Buffer::for_overwrite(m * n * size_of::<f64>());
    let to = MatMut::from_row_major_slice_mut(&mut made.elements_mut::<f64>()[..m * n], m, n);
    let small = MatRef::from_row_major_slice(&small, n, n);
    f64::multiply(to, Accum::Replace, q.as_ref(), small, 1.0);
    Chunk::contiguous(DType::F64, &[m, n], made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(factor: Factor, m: usize, n: usize, elements: &[f64]) -> Vec<f64> {
        factor.run(&Chunk::from_elements(&[m, n], elements).unwrap()).unwrap().to_vec().unwrap()
    }

    #[test]
    fn signs_of_an_orthonormal_factor_are_those_of_its_reflections() {
        let random = |at: u64| crate::random::Key::new(4, 0).uniform(at) - 0.5;
        let (m, n) = (9, 4);
        let x: Vec<f64> = (0..(m * n) as u64).map(random).collect();
        let q = f64::thin_q(&f64::qr(MatRef::from_row_major_slice(&x, m, n)));
        for flips in 0..16 {
            let sign = |j: usize| if flips >> j & 1 == 0 { 1.0 } else { -1.0 };
            let top: Vec<f64> = (0..n * n).map(|at| q[(at / n, at % n)] * sign(at % n)).collect();
            let found = factor(Factor::ReflectionSigns, n, n, &top);
            assert_eq!(found, (0..n).map(sign).collect::<Vec<_>>(), "they lead back to what was flipped");
        }
    }

    #[test]
    fn columns_of_any_size_become_orthonormal() {
        let (m, n) = (400, 5);
        let random = |at: usize| crate::random::Key::new(9, 0).uniform(at as u64) - 0.5;
        /// The size of a column.
        type Size = fn(usize) -> f64;
        let sizes: [(&str, Size, bool); 6] = [
            ("even", |_| 1.0, true),
            ("graded", |j| 10f64.powi(-4 * j as i32), true),
            ("steep", |j| 10f64.powi(-60 * j as i32), false),
            ("a zero", |j| if j == 2 { 0.0 } else { 1.0 }, false),
            ("huge", |_| 1e200, false),
            ("zeros", |_| 0.0, false),
        ];
        for (name, size, by_gram) in sizes {
            let x: Vec<f64> = (0..m * n).map(|at| random(at) * size(at % n)).collect();
            let chunk = Chunk::from_elements(&[m, n], &x).unwrap();
            let matrix = Matrix::<f64>::new(&chunk, 0).unwrap();
            assert_eq!(qr_of_gram(matrix.as_faer()).is_some(), by_gram, "{name}");
            let (q, r) = (factor(Factor::QrQ, m, n, &x), factor(Factor::QrR, m, n, &x));
            for (i, k) in (0..n).flat_map(|i| (0..n).map(move |k| (i, k))) {
                let product: f64 = (0..m).map(|row| q[row * n + i] * q[row * n + k]).sum();
                assert!((product - f64::from(u8::from(i == k))).abs() < 1e-14, "{name}: {i} {k} {product}");
                assert!(i <= k || r[i * n + k] == 0.0, "{name}");
                assert!(i != k || 0.0 <= r[i * n + k], "{name}: both ways make the same signs");
            }
            for (at, &expected) in x.iter().enumerate() {
                let (row, j) = (at / n, at % n);
                let back: f64 = (0..n).map(|k| q[row * n + k] * r[k * n + j]).sum();
                assert!((back - expected).abs() <= 1e-14 * size(j), "{name}: {back} {expected}");
            }
        }
    }

    #[test]
    fn nearly_dependent_columns_are_left_to_reflections() {
        let x: Vec<f64> =
            (0..400).flat_map(|i| [f64::from(i), f64::from(i) + 1e-9 * f64::from(i % 7)]).collect();
        let chunk = Chunk::from_elements(&[400, 2], &x).unwrap();
        assert!(qr_of_gram(Matrix::<f64>::new(&chunk, 0).unwrap().as_faer()).is_none());
    }

    #[test]
    fn nan_is_no_error_of_a_qr_factorization() {
        assert!(factor(Factor::QrR, 2, 1, &[1.0, f64::NAN])[0].is_nan());
        let refused = Factor::SvdS.run(&Chunk::from_elements(&[1, 1], &[f64::NAN]).unwrap());
        assert!(matches!(refused, Err(KernelError::Singular(_))), "{refused:?}");
    }
}
