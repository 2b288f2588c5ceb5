//! QR, singular values and Cholesky factors of matrices.
//!
//! A tall matrix (many more rows than columns) is never held as a whole: its Gram matrix is summed over
//! blocks of rows, and its orthonormal factor is corrected three times (shifted CholeskyQR3), which is as
//! accurate as Householder's method up to condition numbers of about 1e14. Other matrices are factored in one
//! task.

use crate::error::{Blame, Error, Result};
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::Factorize;
use tharsis_graph::shape::{element_count, require_known};
use tharsis_kernels::DType;
use tharsis_kernels::factor::Factor;
use tharsis_kernels::linear::{Linear, QrMode};

/// A matrix with at least this many times more rows than columns is tall.
const TALL_RATIO: usize = 4;
/// A matrix with fewer elements is factored in one task whatever its shape.
const TALL_ELEMENTS_MIN: u64 = 1 << 16;

/// `Q = x * inverses[0] * inverses[1] * ...`, and R.
struct TallQr {
    inverses: Vec<Tensor>,
    upper: Tensor,
}

impl Tensor {
    /// Whether this is a matrix that is factored by blocks of rows: a large real one with many more rows than
    /// columns.
    pub(crate) fn is_tall(&self) -> Result<bool> {
        let meta = self.meta()?;
        require_known("factorization", &meta.shape).blame()?;
        let [m, n] = meta.shape[..] else { return Ok(false) };
        let is_large = TALL_ELEMENTS_MIN <= element_count(&meta.shape);
        let is_half = matches!(meta.dtype, DType::F16 | DType::BF16);
        Ok(n * TALL_RATIO <= m && is_large && 0 < n && !meta.dtype.is_complex() && !is_half)
    }

    #[track_caller]
    fn factor(&self, factor: Factor) -> Tensor {
        Tensor::apply(Factorize(factor), &[self])
    }

    /// NumPy's `linalg.cholesky`: the lower Cholesky factors of symmetric or Hermitian positive definite
    /// matrices, of which the lower triangle is read; (.., n, n) to (.., n, n); float32 and complex stay,
    /// other dtypes give float64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([4.0, 2.0, 2.0, 5.0]).reshape(&[2, 2]);
    /// assert_eq!(x.cholesky().to_vec::<f64>()?, [2.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` for float16;
    /// `LinAlgError` if the matrix is not square, or (when run) not positive definite.
    ///
    /// # Distributed
    /// A matrix of 1024 rows or more, or in smaller chunks, is factored tile by tile, each from those to its
    /// left. A task holds three tiles.
    #[track_caller]
    pub fn cholesky(&self) -> Tensor {
        self.linear(Linear::Cholesky, 0, None)
    }

    /// NumPy's `linalg.cholesky(upper=True)`: as [`Tensor::cholesky`], the upper factor, from the upper
    /// triangle.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([4.0, 2.0, 2.0, 5.0]).reshape(&[2, 2]);
    /// assert_eq!(x.cholesky_upper().to_vec::<f64>()?, [2.0, 1.0, 0.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::cholesky`].
    #[track_caller]
    pub fn cholesky_upper(&self) -> Tensor {
        carry!(self.matrix_extents(true), self);
        self.matrix_transpose().conj().cholesky().matrix_transpose().conj()
    }

    /// NumPy's `linalg.qr`, reduced: (.., m, n) to Q (.., m, k) and R (.., k, n), k = min(m, n); dtypes as
    /// [`Tensor::cholesky`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([3.0, 1.0, 4.0, 2.0]).reshape(&[2, 2]);
    /// let (q, r) = x.qr();
    /// assert!(q.matmul(&r).isclose(&x, 1e-12, 0.0).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` without two axes; `LinAlgError` (when run) for NaN or infinity.
    ///
    /// # Memory
    /// A tall matrix is read three times by blocks of rows; it is never in memory as a whole. Others are
    /// held by one task, which makes both factors.
    #[track_caller]
    pub fn qr(&self) -> (Tensor, Tensor) {
        let refused = |error: Error| (Tensor::from(error.clone()), Tensor::from(error));
        match self.is_tall() {
            Err(error) => return refused(error),
            Ok(false) => {
                let function = Linear::Qr(QrMode::Reduced);
                return (self.linear(function, 0, None), self.linear(function, 1, None));
            }
            Ok(true) => {}
        }
        let x = cast(self, DType::F64);
        let TallQr { inverses, upper } = x.tall_qr();
        let (q, r) = (x.times(&inverses), upper);
        let dtype = self.dtype().map_or(DType::F64, factor_dtype);
        (cast(&q, dtype), cast(&r, dtype))
    }

    /// NumPy's `linalg.svd`, reduced: (.., m, n) to U (.., m, k), s (.., k) descending, Vt (.., k, n); dtypes
    /// as [`Tensor::cholesky`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 2.0, 3.0, 0.0]).reshape(&[2, 2]);
    /// let (_, s, _) = x.svd();
    /// assert!(s.isclose(array([3.0, 2.0]), 1e-12, 0.0).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::qr`].
    ///
    /// # Memory
    /// As [`Tensor::qr`].
    #[track_caller]
    pub fn svd(&self) -> (Tensor, Tensor, Tensor) {
        match self.is_tall() {
            Err(error) => {
                return (Tensor::from(error.clone()), Tensor::from(error.clone()), Tensor::from(error));
            }
            Ok(false) => {
                let function = Linear::Svd { full: false };
                let (u, s) = (self.linear(function, 0, None), self.linear(function, 1, None));
                return (u, s, self.linear(function, 2, None));
            }
            Ok(true) => {}
        }
        let x = cast(self, DType::F64);
        let TallQr { mut inverses, upper } = x.tall_qr();
        // The last correction is nearly the identity, so the small rotation can be merged into it.
        if let Some(last) = inverses.pop() {
            inverses.push(last.matmul(&upper.factor(Factor::SvdU)));
        }
        let (u, s, vt) = (x.times(&inverses), upper.factor(Factor::SvdS), upper.factor(Factor::SvdVt));
        let dtype = self.dtype().map_or(DType::F64, factor_dtype);
        (cast(&u, dtype), cast(&s, dtype), cast(&vt, dtype))
    }

    /// The singular values of a tall matrix.
    #[track_caller]
    pub(crate) fn tall_singular_values(&self) -> Tensor {
        let TallQr { upper, .. } = cast(self, DType::F64).tall_qr();
        let dtype = self.dtype().map_or(DType::F64, factor_dtype);
        cast(&upper.factor(Factor::SvdS), dtype)
    }

    #[track_caller]
    fn tall_qr(&self) -> TallQr {
        let rows = self.shape().map_or(0, |shape| shape[0]) as u64;
        let mut upper = self.gram_upper(rows);
        let mut inverses = vec![upper.factor(Factor::InverseUpper)];
        for _ in 0..2 {
            let correction = self.times(&inverses).gram_upper(rows);
            inverses.push(correction.factor(Factor::InverseUpper));
            upper = correction.matmul(&upper);
        }
        TallQr { inverses, upper }
    }

    /// The upper factor of the Gram matrix.
    #[track_caller]
    fn gram_upper(&self, rows: u64) -> Tensor {
        self.t().matmul(self).factor(Factor::GramUpper { rows })
    }

    /// This matrix times each of `factors` in turn.
    #[track_caller]
    fn times(&self, factors: &[Tensor]) -> Tensor {
        let mut product = self.clone();
        for factor in factors {
            product = product.matmul(factor);
        }
        product
    }
}

/// The dtype of the factors of a tall matrix.
fn factor_dtype(dtype: DType) -> DType {
    if dtype == DType::F32 { DType::F32 } else { DType::F64 }
}
