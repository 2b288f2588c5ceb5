//! Element-wise functions, reductions and products of sparse matrices.

use super::{Function, Sparse};
use crate::create::ones;
use crate::elementwise::binary;
use crate::error::{Blame, Result};
use crate::manipulate::concatenate;
use crate::operand::{Operand, cast};
use crate::tensor::{Tensor, carry};
use std::sync::Arc;
use tharsis_graph::ops::{SparseCall, SparseFrom, SparsePart};
use tharsis_graph::shape::require_known;
use tharsis_graph::tiling::AxisTiling;
use tharsis_graph::{Chunks, Error as GraphError};
use tharsis_kernels::{BinaryOp, DType, promote};

/// The dtype in which values of one are added up and multiplied.
pub(super) fn worked(dtype: DType) -> DType {
    dtype.compute()
}

impl Sparse {
    /// A function of the stored elements, which must give zero for zero and the same number of elements: the
    /// places that are stored stay. All element-wise methods of tensors can be used in it.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(2, 2, 0, Chunks::Auto)?.map(|x| (x * 4.0).sqrt())?;
    /// assert_eq!(a.to_dense().to_vec::<f64>()?, [2.0, 0.0, 0.0, 2.0]);
    /// assert_eq!(a.map(|x| x.cos()).unwrap_err().class(), "ValueError");
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the function of zero is not zero, or the shape is another; errors of the function.
    #[track_caller]
    pub fn map(&self, f: impl Fn(&Tensor) -> Tensor) -> Result<Sparse> {
        let zero = crate::create::full(&[1], 0i64, self.dtype()?);
        let of_zero = f(&zero);
        if of_zero.shape()? != [1] || of_zero.not_equal(0).any(..).item()?.is_true() {
            let text = "a function of a sparse matrix must give zero for zero: use to_dense before";
            return Err(GraphError::Value(text.to_owned())).blame();
        }
        let values = f(&self.values);
        if values.shape()? == self.values.shape()? {
            Ok(self.with_values(values))
        } else {
            Err(GraphError::Value("a function of elements keeps their number".to_owned())).blame()
        }
    }

    /// The matrix in another dtype.
    ///
    /// # Errors
    /// The error that the values carry.
    #[track_caller]
    pub fn astype(&self, dtype: DType) -> Result<Sparse> {
        self.map(|x| x.astype(dtype))
    }

    /// The product with a number, in NumPy's dtype for it.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(2, 2, 0, Chunks::Auto)?.scale(3.0)?;
    /// assert_eq!(a.sum(None).item()?.to_f64(), 6.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for NaN and infinity, by which places that are not stored would be no zeros.
    #[track_caller]
    pub fn scale(&self, factor: impl Into<Operand>) -> Result<Sparse> {
        let factor = factor.into();
        self.map(|x| x.multiply(factor.clone()))
    }

    /// The sum; the places that either stores are stored; the common dtype.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(2, 2, 0, Chunks::Auto)?;
    /// assert_eq!(a.add(&a.transpose())?.to_dense().to_vec::<f64>()?, [2.0, 0.0, 0.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another shape; if the matrices are cut differently, as [`Sparse::rechunk`].
    #[track_caller]
    pub fn add(&self, other: &Sparse) -> Result<Sparse> {
        self.combined(BinaryOp::Add, other, false)
    }

    /// The difference; as [`Sparse::add`].
    ///
    /// # Errors
    /// As [`Sparse::add`].
    #[track_caller]
    pub fn subtract(&self, other: &Sparse) -> Result<Sparse> {
        self.combined(BinaryOp::Subtract, other, false)
    }

    /// The product element by element; the places that both store are stored; the common dtype.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, ones, sparse::Sparse};
    /// let a = ones(&[2, 2]).to_sparse(Chunks::Auto)?;
    /// assert_eq!(a.multiply(&Sparse::eye(2, 2, 0, Chunks::Auto)?)?.nnz()?, 2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sparse::add`].
    #[track_caller]
    pub fn multiply(&self, other: &Sparse) -> Result<Sparse> {
        self.combined(BinaryOp::Multiply, other, true)
    }

    /// The larger of each two elements; as [`Sparse::add`].
    ///
    /// # Errors
    /// As [`Sparse::add`].
    #[track_caller]
    pub fn maximum(&self, other: &Sparse) -> Result<Sparse> {
        self.combined(BinaryOp::Maximum, other, false)
    }

    /// The smaller of each two elements; as [`Sparse::add`].
    ///
    /// # Errors
    /// As [`Sparse::add`].
    #[track_caller]
    pub fn minimum(&self, other: &Sparse) -> Result<Sparse> {
        self.combined(BinaryOp::Minimum, other, false)
    }

    #[track_caller]
    fn combined(&self, op: BinaryOp, other: &Sparse, both: bool) -> Result<Sparse> {
        if self.shape() != other.shape() {
            let shapes = vec![self.shape().to_vec(), other.shape().to_vec()];
            let reason = "sparse matrices are not broadcast".to_owned();
            return Err(GraphError::Shape { function: op.name(), shapes, reason }).blame();
        }
        let lengths = |cut: &AxisTiling| (0..cut.count()).map(|at| cut.piece(at).1).collect::<Vec<_>>();
        let cut = |matrix: &Sparse| vec![lengths(&matrix.rows), lengths(&matrix.columns)];
        let other = if cut(self) == cut(other) {
            other.clone()
        } else {
            other.rechunk(Chunks::Lengths(cut(self)))?
        };
        let dtype = promote(self.dtype()?, other.dtype()?);
        let (left, right) = (cast(&self.values, dtype), cast(&other.values, dtype));
        let call = SparseCall {
            grids: vec![self.grid(), other.grid()],
            ..self.call(Function::Align { both }, self.rows.clone(), self.columns.clone())
        };
        let inputs = [&self.ends, &self.places, &left, &other.ends, &other.places, &right];
        let aligned = Tensor::apply(SparsePart::new(Arc::new(call.clone()), 3), &inputs);
        let made = Sparse::made(call, &inputs);
        let values = binary(op, &made.values, &aligned);
        values.check()?;
        Ok(made.with_values(values))
    }

    /// NumPy's `sum` of all elements, or along an axis (0 adds up each column, 1 each row); small integers in
    /// 64 bits.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(2, 3, 0, Chunks::Auto)?;
    /// assert_eq!(a.sum(Some(0)).to_vec::<f64>()?, [1.0, 1.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` for another axis; `TypeError` as [`Tensor::sum`].
    #[track_caller]
    pub fn sum(&self, axis: Option<i64>) -> Tensor {
        let whole = self.values.sum(..);
        let Some(axis) = axis else { return whole };
        let axis = carry!(tharsis_graph::shape::normalize_axis(axis, 2));
        let dtype = carry!(whole.dtype());
        // Floats are added up in float64, as sums of dense tensors are.
        let wide = match dtype {
            DType::F16 | DType::BF16 | DType::F32 => DType::F64,
            DType::C64 => DType::C128,
            other => other,
        };
        let wide = self.with_values(cast(&self.values, wide));
        let of = |matrix: &Sparse| matrix.dot(&cast(&ones(&[matrix.shape()[1]]), carry!(matrix.dtype())));
        cast(&if axis == 1 { of(&wide) } else { of(&wide.transpose()) }, dtype)
    }

    /// NumPy's `mean`, of all elements or along an axis as [`Sparse::sum`]; floats.
    ///
    /// # Errors
    /// As [`Sparse::sum`].
    #[track_caller]
    pub fn mean(&self, axis: Option<i64>) -> Tensor {
        let [m, n] = self.shape();
        let count = match axis {
            None => m * n,
            Some(0 | -2) => m,
            Some(_) => n,
        };
        self.sum(axis).divide(count as f64)
    }

    /// NumPy's `max` of all elements, also those that are not stored.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(2, 2, 0, Chunks::Auto)?.scale(-1.0)?;
    /// assert_eq!((a.max()?.item()?.to_f64(), a.min()?.item()?.to_f64()), (0.0, -1.0));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sparse::nnz`].
    #[track_caller]
    pub fn max(&self) -> Result<Tensor> {
        Ok(self.with_zero()?.max(..))
    }

    /// NumPy's `min` of all elements; as [`Sparse::max`].
    ///
    /// # Errors
    /// As [`Sparse::nnz`].
    #[track_caller]
    pub fn min(&self) -> Result<Tensor> {
        Ok(self.with_zero()?.min(..))
    }

    /// The stored values, and a zero if there are places that are not stored.
    #[track_caller]
    fn with_zero(&self) -> Result<Tensor> {
        let [m, n] = self.shape();
        if self.nnz()? == m as u64 * n as u64 {
            return Ok(self.values.clone());
        }
        let zero = crate::create::full(&[1], 0i64, self.dtype()?);
        Ok(concatenate(&[&self.values, &zero], 0))
    }

    /// The product with a dense vector (n,) or matrix (n, k): (m,) or (m, k), the common dtype.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, arange, sparse::Sparse};
    /// let a = Sparse::eye(2, 3, 1, Chunks::Auto)?;
    /// assert_eq!(a.dot(&arange(3)).to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shapes do not fit.
    ///
    /// # Distributed
    /// A task has a row of tiles, and the columns of the dense matrix that it multiplies as a whole: it is
    /// cut into as many columns as fit.
    #[track_caller]
    pub fn dot(&self, x: &Tensor) -> Tensor {
        let shape = carry!(x.shape());
        let mismatch = |reason: &str| {
            let shapes = vec![self.shape().to_vec(), shape.to_vec()];
            let cause = GraphError::Shape { function: "matmul", shapes, reason: reason.to_owned() };
            Tensor::refused(cause, &[x])
        };
        carry!(require_known("matmul", shape), x);
        match *shape {
            [depth] | [depth, _] if depth != self.columns.len() => {
                return mismatch("the axes that are summed over differ in extent");
            }
            [_] => return self.dot(&x.expand_dims(1)).squeeze(Some(&[-1])),
            [_, _] => {}
            _ => return mismatch("a vector or a matrix is needed"),
        }
        let dtype = promote(carry!(self.dtype()), carry!(x.dtype()));
        let (values, x) = (cast(&self.values, worked(dtype)), cast(x, worked(dtype)));
        let function = Function::DenseProduct { starts: starts(&self.columns) };
        let call = self.call(function, self.rows.clone(), AxisTiling::whole(shape[1]));
        let inputs = [&self.ends, &self.places, &values, &x];
        cast(&Tensor::apply(SparsePart::new(Arc::new(call), 0), &inputs), dtype)
    }

    /// The product of a dense vector (m,) or matrix (k, m) with this matrix: (n,) or (k, n), the common
    /// dtype.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, arange, sparse::Sparse};
    /// let a = Sparse::eye(2, 3, 1, Chunks::Auto)?;
    /// assert_eq!(a.dot_left(&arange(2)).to_vec::<f64>()?, [0.0, 0.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sparse::dot`].
    #[track_caller]
    pub fn dot_left(&self, x: &Tensor) -> Tensor {
        self.transpose().dot(&x.t()).t()
    }

    /// The matrix product; (m, k) x (k, n) to (m, n), the common dtype. Places that products fall on are
    /// stored, also where they add up to zero.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(3, 3, 1, Chunks::Auto)?;
    /// assert_eq!(a.matmul(&a)?.nnz()?, 1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shapes do not fit.
    ///
    /// # Distributed
    /// A task has a row of tiles of this matrix and a column of tiles of the other one, which must fit its
    /// part of the memory, and makes a tile of the result. The elements of each tile are counted first.
    #[track_caller]
    pub fn matmul(&self, other: &Sparse) -> Result<Sparse> {
        if self.columns.len() != other.rows.len() {
            let shapes = vec![self.shape().to_vec(), other.shape().to_vec()];
            let reason = "the axes that are summed over differ in extent".to_owned();
            return Err(GraphError::Shape { function: "matmul", shapes, reason }).blame();
        }
        let dtype = promote(self.dtype()?, other.dtype()?);
        let (left, right) = (cast(&self.values, worked(dtype)), cast(&other.values, worked(dtype)));
        let end = |tile: usize| other.rows.piece(tile).0 + other.rows.piece(tile).1;
        let ends = (0..other.rows.count()).map(end).collect();
        let function = Function::Product { starts: starts(&self.columns), ends };
        let call = SparseCall {
            function,
            rows: self.rows.clone(),
            columns: other.columns.clone(),
            grids: vec![self.grid(), other.grid()],
            from: SparseFrom::All,
        };
        let inputs = [&self.ends, &self.places, &left, &other.ends, &other.places, &right];
        let made = Sparse::made(call, &inputs);
        let values = cast(&made.values, dtype);
        Ok(made.with_values(values))
    }
}

/// The first element of each piece.
fn starts(cut: &AxisTiling) -> Vec<usize> {
    (0..cut.count()).map(|piece| cut.piece(piece).0).collect()
}
