//! QR, singular values and Cholesky factors of matrices.
//!
//! A tall matrix (many more rows than columns) is never held as a whole: blocks of its rows are factored by
//! reflections, then the matrix of their upper factors below each other, which is tall again or small (TSQR).
//! An orthonormal factor is the product of those of the blocks with that of the small matrix. So the factors
//! are as accurate as those of one task for any matrix: graded, singular, or of huge numbers. Other matrices
//! are factored in one task.

use crate::error::{Blame, Result};
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::{BasisOfBlocks, Factorize, UpperOfBlocks};
use tharsis_graph::shape::{element_count, require_known};
use tharsis_kernels::DType;
use tharsis_kernels::factor::Factor;
use tharsis_kernels::linear::{Linear, QrMode};

/// A matrix with at least this many times more rows than columns is tall.
const TALL_RATIO: usize = 4;
/// Elements of a block of rows. A matrix of fewer than two blocks is factored in one task whatever its shape.
const BLOCK_ELEMENTS: usize = 1 << 18;
/// Rows of a block for each column, if there are so many: the upper factors have this part of the elements.
const BLOCK_RATIO: usize = 8;
/// The same for blocks of many elements, of which a task holds several copies. With fewer, blocks would not
/// be factored by products of matrices.
const BLOCK_RATIO_MIN: usize = 4;
/// Elements of a block from which it has fewer rows.
const LARGE_BLOCK_ELEMENTS: usize = 1 << 24;

/// The factors of a tall matrix: its orthonormal factor is that of its blocks times `basis`, a matrix for
/// each block below each other.
struct TallQr {
    blocks: usize,
    basis: Tensor,
    upper: Tensor,
}

impl Tensor {
    /// The number of blocks of rows by which this matrix is factored, if it is: a large real one with many
    /// more rows than columns.
    fn tall_blocks(&self) -> Result<Option<usize>> {
        let meta = self.meta()?;
        require_known("factorization", &meta.shape).blame()?;
        let is_half = matches!(meta.dtype, DType::F16 | DType::BF16);
        if meta.dtype.is_complex() || is_half || element_count(&meta.shape) < 2 * BLOCK_ELEMENTS as u64 {
            return Ok(None);
        }
        let [m, n] = meta.shape[..] else { return Ok(None) };
        Ok(blocks_of(m, n))
    }

    /// Whether this is a matrix that is factored by blocks of rows.
    pub(crate) fn is_tall(&self) -> Result<bool> {
        Ok(self.tall_blocks()?.is_some())
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
    /// `ValueError` without two axes. NaN and infinity give NaN.
    ///
    /// # Memory
    /// A tall matrix is read twice by blocks of rows; it is never in memory as a whole. Others are held by
    /// one task, which makes both factors.
    #[track_caller]
    pub fn qr(&self) -> (Tensor, Tensor) {
        match self.tall_blocks() {
            Err(error) => (Tensor::from(error.clone()), Tensor::from(error)),
            Ok(None) => {
                let function = Linear::Qr(QrMode::Reduced);
                (self.linear(function, 0, None), self.linear(function, 1, None))
            }
            Ok(Some(blocks)) => {
                let (x, dtype) = (cast(self, DType::F64), self.dtype().map_or(DType::F64, factor_dtype));
                let TallQr { basis, upper, .. } = x.tall_qr(blocks).signed(&x);
                (cast(&x.basis_of_blocks(blocks, &basis), dtype), cast(&upper, dtype))
            }
        }
    }

    /// NumPy's `linalg.qr(mode='r')`: the upper factor alone, that of [`Tensor::qr`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([3.0, 1.0, 4.0, 2.0]).reshape(&[2, 2]);
    /// assert!(x.qr_upper().isclose(x.qr().1, 1e-12, 0.0).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::qr`].
    #[track_caller]
    pub fn qr_upper(&self) -> Tensor {
        if carry!(self.is_tall()) { self.qr().1 } else { self.linear(Linear::Qr(QrMode::R), 0, None) }
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
    /// `ValueError` without two axes; `LinAlgError` (when run) for NaN or infinity.
    ///
    /// # Memory
    /// As [`Tensor::qr`].
    #[track_caller]
    pub fn svd(&self) -> (Tensor, Tensor, Tensor) {
        match self.tall_blocks() {
            Err(error) => (Tensor::from(error.clone()), Tensor::from(error.clone()), Tensor::from(error)),
            Ok(None) => {
                let function = Linear::Svd { full: false };
                let (u, s) = (self.linear(function, 0, None), self.linear(function, 1, None));
                (u, s, self.linear(function, 2, None))
            }
            Ok(Some(blocks)) => {
                let (x, dtype) = (cast(self, DType::F64), self.dtype().map_or(DType::F64, factor_dtype));
                let TallQr { basis, upper, .. } = x.tall_qr(blocks);
                // The rotation is merged into the small matrices, so that the rows are read no third time.
                let basis = basis.matmul(&upper.factor(Factor::SvdU));
                let (s, vt) = (upper.factor(Factor::SvdS), upper.factor(Factor::SvdVt));
                (cast(&x.basis_of_blocks(blocks, &basis), dtype), cast(&s, dtype), cast(&vt, dtype))
            }
        }
    }

    /// The singular values of a tall matrix.
    #[track_caller]
    pub(crate) fn tall_singular_values(&self) -> Tensor {
        let Some(blocks) = carry!(self.tall_blocks()) else {
            return self.linear(Linear::SingularValues, 0, None);
        };
        let TallQr { upper, .. } = cast(self, DType::F64).tall_qr(blocks);
        let dtype = self.dtype().map_or(DType::F64, factor_dtype);
        cast(&upper.factor(Factor::SvdS), dtype)
    }

    /// The factors of this matrix, float64, by so many blocks of rows.
    #[track_caller]
    fn tall_qr(&self, blocks: usize) -> TallQr {
        let below = Tensor::apply(UpperOfBlocks { blocks }, &[self]);
        let again = below.shape().ok().and_then(|shape| blocks_of(shape[0], shape[1]));
        match again {
            Some(fewer) => {
                let TallQr { basis, upper, .. } = below.tall_qr(fewer);
                TallQr { blocks, basis: below.basis_of_blocks(fewer, &basis), upper }
            }
            None => {
                let function = Linear::Qr(QrMode::Reduced);
                let (basis, upper) = (below.linear(function, 0, None), below.linear(function, 1, None));
                TallQr { blocks, basis, upper }
            }
        }
    }

    /// The orthonormal factors of blocks of rows, each times its part of `basis`, (blocks n, n).
    #[track_caller]
    fn basis_of_blocks(&self, blocks: usize, basis: &Tensor) -> Tensor {
        let flat = basis.reshape(&[blocks as i64, -1]);
        Tensor::apply(BasisOfBlocks { blocks }, &[self, &flat])
    }
}

impl TallQr {
    /// These factors with the signs that reflections of the whole matrix give, as those of NumPy do.
    #[track_caller]
    fn signed(self, x: &Tensor) -> TallQr {
        let TallQr { blocks, basis, upper } = self;
        let (Ok(&[m, _]), Ok(&[n, _])) = (x.shape(), upper.shape()) else {
            return TallQr { blocks, basis, upper };
        };
        let (first, n) = ((m / blocks) as i64, n as i64);
        let of_first = x.get(&[(..first).into()]).basis_of_blocks(1, &basis.get(&[(..n).into()]));
        let signs = of_first.get(&[(..n).into()]).factor(Factor::ReflectionSigns);
        TallQr { blocks, basis: &basis * &signs, upper: &signs.expand_dims(1) * &upper }
    }
}

/// The number of blocks of rows for a matrix, if there are to be several: as many as leave each of them
/// enough rows.
fn blocks_of(m: usize, n: usize) -> Option<usize> {
    if n == 0 || m / n < TALL_RATIO {
        return None;
    }
    let ratio = (LARGE_BLOCK_ELEMENTS / n / n).clamp(BLOCK_RATIO_MIN, BLOCK_RATIO);
    let rows = (BLOCK_ELEMENTS / n).max((ratio * n).min(m / 2));
    let blocks = m / rows.max(1);
    (1 < blocks).then_some(blocks)
}

/// The dtype of the factors of a tall matrix.
fn factor_dtype(dtype: DType) -> DType {
    if dtype == DType::F32 { DType::F32 } else { DType::F64 }
}

#[cfg(test)]
mod tests {
    use super::blocks_of;

    #[test]
    fn blocks_have_enough_rows_and_leave_few() {
        assert_eq!(blocks_of(1 << 20, 8), Some(32));
        assert_eq!(blocks_of(1 << 15, 8), None, "it is small");
        assert_eq!(blocks_of(8_000, 2_000), Some(2));
        assert_eq!(blocks_of(1 << 20, 1_000), Some(131));
        assert_eq!(blocks_of(1 << 20, 1_448), Some(90), "eight times more rows than columns");
        assert_eq!(blocks_of(120_000, 3_000), Some(10), "four times, as a block has 288 MB");
        assert_eq!(blocks_of(3_000, 1_000), None, "it is not tall");
        assert_eq!(blocks_of(10, 0), None);
        assert_eq!(blocks_of(1 << 30, 1), Some(1 << 12));
    }
}
