//! QR, singular values and Cholesky factors of matrices.
//!
//! A tall matrix (many more rows than columns) is never held as a whole: its Gram matrix is summed up over
//! blocks of rows, and its orthonormal factor is three times corrected (shifted CholeskyQR3), which is as
//! exact as Householder's way up to condition numbers of about 1e14. Other matrices are factored in one task.

use crate::error::{Blame, Error, Result};
use crate::operand::cast;
use crate::tensor::Tensor;
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::Factorize;
use tharsis_graph::shape::require_known;
use tharsis_kernels::DType;
use tharsis_kernels::factor::Factor;

/// A matrix with at least so many times more rows than columns is tall.
const TALL_RATIO: usize = 4;
/// A matrix with fewer elements is factored in one task whatever its shape.
const TALL_ELEMENTS_MIN: u64 = 1 << 16;

/// Q = x * inverses[0] * inverses[1] * ..., and R.
struct TallQr {
    inverses: Vec<Tensor>,
    upper: Tensor,
}

impl Tensor {
    /// The dtype of the results: factors are computed in float64.
    #[track_caller]
    fn factor_dtype(&self) -> Result<DType> {
        match self.dtype() {
            dtype @ (DType::F16 | DType::BF16) => {
                let text = format!("array type {dtype} is unsupported in linalg");
                Err(Error::here(GraphError::Type(text)))
            }
            DType::F32 => Ok(DType::F32),
            _ => Ok(DType::F64),
        }
    }

    #[track_caller]
    fn factor(&self, factor: Factor) -> Result<Tensor> {
        Tensor::apply(Factorize(factor), &[self])
    }

    /// The lower Cholesky factor of a symmetric positive definite matrix: (n, n) to (n, n), float32 of
    /// float32, else float64.
    ///
    /// # Errors
    /// `TypeError` for float16;
    /// `LinAlgError` if the matrix is not square, or (when run) not positive definite.
    #[track_caller]
    pub fn cholesky(&self) -> Result<Tensor> {
        let dtype = self.factor_dtype()?;
        cast(&self.factor(Factor::Cholesky)?, dtype)
    }

    /// The reduced QR factorization: (m, n) to Q (m, k) and R (k, n), k = min(m, n); dtypes as
    /// [`Tensor::cholesky`].
    ///
    /// # Errors
    /// `ValueError` without two axes; `LinAlgError` (when run) for NaN or infinity.
    ///
    /// # Memory
    /// A tall matrix is read three times by blocks of rows; it is not held.
    #[track_caller]
    pub fn qr(&self) -> Result<(Tensor, Tensor)> {
        let dtype = self.factor_dtype()?;
        let (q, r) = if self.is_tall()? {
            let x = cast(self, DType::F64)?;
            let TallQr { inverses, upper } = x.tall_qr()?;
            (x.times(&inverses)?, upper)
        } else {
            (self.factor(Factor::QrQ)?, self.factor(Factor::QrR)?)
        };
        Ok((cast(&q, dtype)?, cast(&r, dtype)?))
    }

    /// The reduced singular value decomposition: (m, n) to U (m, k), s (k,) descending, and Vt (k, n); dtypes
    /// as [`Tensor::cholesky`].
    ///
    /// # Errors
    /// As [`Tensor::qr`].
    ///
    /// # Memory
    /// As [`Tensor::qr`].
    #[track_caller]
    pub fn svd(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let dtype = self.factor_dtype()?;
        let (u, s, vt) = self.wide_svd()?;
        Ok((cast(&u, dtype)?, cast(&s, dtype)?, cast(&vt, dtype)?))
    }

    #[track_caller]
    fn wide_svd(&self) -> Result<(Tensor, Tensor, Tensor)> {
        if !self.is_tall()? {
            return Ok((self.factor(Factor::SvdU)?, self.factor(Factor::SvdS)?, self.factor(Factor::SvdVt)?));
        }
        let x = cast(self, DType::F64)?;
        let TallQr { mut inverses, upper } = x.tall_qr()?;
        // The last correction is nearly the identity, so the small rotation may be joined to it.
        if let Some(last) = inverses.pop() {
            inverses.push(last.matmul(&upper.factor(Factor::SvdU)?)?);
        }
        Ok((x.times(&inverses)?, upper.factor(Factor::SvdS)?, upper.factor(Factor::SvdVt)?))
    }

    #[track_caller]
    fn is_tall(&self) -> Result<bool> {
        require_known("factorization", self.shape()).blame()?;
        match *self.shape() {
            [m, n] => Ok(n * TALL_RATIO <= m
                && TALL_ELEMENTS_MIN <= self.size()
                && 0 < n
                && !self.dtype().is_complex()),
            _ => {
                let shapes = vec![self.shape().to_vec()];
                let reason = "a matrix of two axes is needed".to_owned();
                Err(Error::here(GraphError::Shape { function: "factorization", shapes, reason }))
            }
        }
    }

    #[track_caller]
    fn tall_qr(&self) -> Result<TallQr> {
        let rows = self.shape()[0] as u64;
        let mut qr: Option<TallQr> = None;
        for _ in 0..3 {
            let known = qr.as_ref().map_or(&[][..], |qr| &qr.inverses);
            let basis = self.times(known)?;
            let upper = basis.t()?.matmul(&basis)?.factor(Factor::GramUpper { rows })?;
            let inverse = upper.factor(Factor::InverseUpper)?;
            qr = Some(match qr {
                None => TallQr { inverses: vec![inverse], upper },
                Some(TallQr { mut inverses, upper: before }) => {
                    inverses.push(inverse);
                    TallQr { inverses, upper: upper.matmul(&before)? }
                }
            });
        }
        qr.ok_or_else(|| Error::here(GraphError::Internal("no factorization".to_owned())))
    }

    /// This matrix times each of `factors` in turn.
    #[track_caller]
    fn times(&self, factors: &[Tensor]) -> Result<Tensor> {
        factors.iter().try_fold(self.clone(), |product, factor| product.matmul(factor))
    }
}
