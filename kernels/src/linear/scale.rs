//! Scaling of matrices whose elements are so large or small that their products would overflow.

use super::field::{Field, num_real::Number};
use faer::{Mat, MatRef};

/// A power of two by which a matrix is to be multiplied, or 1 if its largest element is neither huge nor
/// tiny.
pub(super) fn scale_of<T: Field>(matrix: MatRef<'_, T>) -> f64 {
    let largest = T::norm_max(matrix).to_float();
    let is_double = T::DTYPE.size_bytes() / if T::DTYPE.is_complex() { 2 } else { 1 } == 8;
    let easy = if is_double { 1e-100..1e100 } else { 1e-12..1e12 };
    if largest == 0.0 || easy.contains(&largest) {
        return 1.0;
    }
    // The inverse of a subnormal number would be infinite.
    let least = if is_double { f64::MIN_POSITIVE * 4.0 } else { f64::from(f32::MIN_POSITIVE) * 4.0 };
    let inverse = (1.0 / largest).clamp(least, 1.0 / least);
    2f64.powi(libm::frexp(inverse).1 - 1)
}

/// The matrix times a power of two.
pub(super) fn scaled<T: Field>(matrix: MatRef<'_, T>, scale: f64) -> Mat<T> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| matrix[(i, j)].times_real(scale))
}
