//! The computation of each factorization.

use super::Factor;
use crate::chunk::Chunk;
use crate::error::KernelError;
use crate::product::Matrix;
use faer::{Mat, MatRef};
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
    if !(0..n).all(|j| (0..m).all(|i| a[(i, j)].is_finite())) {
        return Err(KernelError::Singular("the matrix contains NaN or infinity".to_owned()));
    }
    match factor {
        Factor::Cholesky => rows_of(&shape, cholesky(a)?.as_ref()),
        Factor::GramUpper { rows } => rows_of(&shape, gram_upper(a, rows)?.transpose()),
        Factor::InverseUpper => rows_of(&shape, inverse_upper(a)?.as_ref()),
        Factor::QrQ => rows_of(&shape, f64::thin_q(&f64::qr(a)).as_ref()),
        Factor::QrR => rows_of(&shape, f64::qr(a).thin_R()),
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

/// The lower factor of a Gram matrix, shifted if need be (Fukaya et al., shifted CholeskyQR).
fn gram_upper(gram: MatRef<'_, f64>, rows: u64) -> Result<Mat<f64>, KernelError> {
    let n = gram.nrows();
    let plain = cholesky(gram).ok().filter(|lower| {
        let diagonal = || (0..n).map(|i| lower[(i, i)]);
        let (least, most) = (diagonal().fold(f64::INFINITY, f64::min), diagonal().fold(0.0, f64::max));
        CONDITION_MIN * most < least
    });
    if let Some(lower) = plain {
        return Ok(lower);
    }
    let trace: f64 = (0..n).map(|i| gram[(i, i)]).sum();
    let terms = rows as f64 * n as f64 + n as f64 * (n as f64 + 1.0);
    let shift = (11.0 * terms * f64::EPSILON * trace).max(f64::MIN_POSITIVE);
    // The bound is far above rounding errors in practice; the smallest shift that works gives the best
    // condition.
    for scale in [1e-6, 1e-4, 1e-2, 1.0] {
        let shifted = Mat::from_fn(n, n, |i, j| gram[(i, j)] + if i == j { scale * shift } else { 0.0 });
        if let Ok(lower) = cholesky(shifted.as_ref()) {
            return Ok(lower);
        }
    }
    Err(KernelError::Singular("the matrix has no Cholesky factor even when shifted".to_owned()))
}

/// Below this ratio of diagonal elements, the factor of a Gram matrix has lost half of its digits.
const CONDITION_MIN: f64 = 1e-6;

fn inverse_upper(upper: MatRef<'_, f64>) -> Result<Mat<f64>, KernelError> {
    let n = upper.nrows();
    let mut inverse = Mat::<f64>::zeros(n, n);
    for column in 0..n {
        for row in (0..=column).rev() {
            let known: f64 = (row + 1..=column).map(|k| upper[(row, k)] * inverse[(k, column)]).sum();
            let wanted = if row == column { 1.0 } else { 0.0 };
            inverse[(row, column)] = (wanted - known) / upper[(row, row)];
        }
    }
    if (0..n).any(|i| !inverse[(i, i)].is_finite()) {
        return Err(KernelError::Singular("Singular matrix".to_owned()));
    }
    Ok(inverse)
}
