//! Products of matrices and vectors, and running sums.

use crate::late::late;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::{Cumulative, MatMul};
use tharsis_graph::shape::{agree, is_known, normalize_axis};
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::chunkwise::Scan;
use tharsis_kernels::{DType, promote};

impl Tensor {
    /// NumPy's `matmul`: (.., m, k) x (.., k, n) to (.., m, n), the common dtype. A vector on the left counts
    /// as a row, on the right as a column, and its axis is dropped from the result; leading axes are
    /// broadcast.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.matmul(&x).to_vec::<f64>()?, [7.0, 10.0, 15.0, 22.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shapes do not fit or a tensor has no axes.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        let (a, b) = (carry!(self.meta()), carry!(other.meta()));
        let (Some(&depth), Some(&other_depth)) =
            (a.shape.last(), b.shape.get(b.shape.len().saturating_sub(2)))
        else {
            return mismatch("matmul", self, other, "both need at least one axis");
        };
        if !agree(depth, other_depth) {
            return mismatch("matmul", self, other, "the axes that are summed over differ in extent");
        }
        match (a.shape.len(), b.shape.len()) {
            (1, 1) => products_to_sum(self, other).sum(..).astype(promote(a.dtype, b.dtype)),
            (1, _) => Tensor::apply(MatMul, &[&self.expand_dims(0), other]).squeeze(Some(&[-2])),
            (_, 1) => Tensor::apply(MatMul, &[self, &other.expand_dims(1)]).squeeze(Some(&[-1])),
            _ => Tensor::apply(MatMul, &[self, other]),
        }
    }

    /// NumPy's `matvec`: products of matrices with vectors; (.., m, n) and (.., n) to (.., m), the common
    /// dtype; leading axes are broadcast.
    ///
    /// ```
    /// use tharsis_numeric::{arange, ones};
    /// let a = arange(4).reshape(&[2, 2]);
    /// assert_eq!(a.matvec(&arange(2)).to_vec::<i64>()?, [1, 3]);
    /// assert_eq!(a.matvec(&ones(&[5, 2])).shape()?, [5, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shapes do not fit or there are too few axes.
    #[track_caller]
    pub fn matvec(&self, vectors: &Tensor) -> Tensor {
        if carry!(self.ndim()) < 2 || carry!(vectors.ndim()) < 1 {
            return mismatch("matvec", self, vectors, "a matrix and a vector are needed");
        }
        self.matmul(&vectors.expand_dims(-1)).squeeze(Some(&[-1]))
    }

    /// NumPy's `vecmat`: products of the conjugates of vectors with matrices; this tensor (.., n) and (.., n,
    /// m) to (.., m), the common dtype; leading axes are broadcast.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let a = arange(4).reshape(&[2, 2]);
    /// assert_eq!(arange(2).vecmat(&a).to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::matvec`].
    #[track_caller]
    pub fn vecmat(&self, matrices: &Tensor) -> Tensor {
        if carry!(self.ndim()) < 1 || carry!(matrices.ndim()) < 2 {
            return mismatch("vecmat", self, matrices, "a vector and a matrix are needed");
        }
        let rows = if carry!(self.dtype()).is_complex() { self.conj() } else { self.clone() };
        rows.expand_dims(-2).matmul(matrices).squeeze(Some(&[-2]))
    }

    /// NumPy's `dot`: the product of vectors and matrices; with more axes, the sum over the last axis of the
    /// one and the last but one of the other; the common dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let v = arange(4);
    /// assert_eq!(v.dot(&v).item()?.to_f64(), 14.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shapes do not fit.
    #[track_caller]
    pub fn dot(&self, other: &Tensor) -> Tensor {
        match (carry!(self.ndim()), carry!(other.ndim())) {
            (0, _) | (_, 0) => self.multiply(other),
            (1 | 2, 1 | 2) => self.matmul(other),
            (_, 1) => self.tensordot(other, &[-1], &[0]),
            _ => self.tensordot(other, &[-1], &[-2]),
        }
    }

    /// NumPy's `tensordot`: the sum of products over pairs of axes, `axes[i]` of this tensor with
    /// `other_axes[i]` of the other; the common dtype. The remaining axes of this tensor come first in the
    /// result.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// let product = ones(&[2, 3, 4]).tensordot(&ones(&[4, 3, 5]), &[1, 2], &[1, 0]);
    /// assert_eq!(product.shape()?, [2, 5]);
    /// assert_eq!(product.max(..).item()?.to_f64(), 12.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the axes do not fit, `AxisError` if one does not exist.
    #[track_caller]
    pub fn tensordot(&self, other: &Tensor, axes: &[i64], other_axes: &[i64]) -> Tensor {
        if axes.len() != other_axes.len() {
            return mismatch("tensordot", self, other, "as many axes are needed of each");
        }
        let (a, b) = (carry!(self.meta()), carry!(other.meta()));
        let summed = |of: &Meta, axes: &[i64]| {
            axes.iter()
                .map(|&axis| normalize_axis(axis, of.shape.len()))
                .collect::<std::result::Result<Vec<_>, _>>()
        };
        let (left, right) = (carry!(summed(a, axes), self), carry!(summed(b, other_axes), other));
        if left.iter().zip(&right).any(|(&i, &k)| !agree(a.shape[i], b.shape[k])) {
            return mismatch("tensordot", self, other, "the axes that are summed over differ in extent");
        }
        let free = |of: &Meta, summed: &[usize]| -> Vec<usize> {
            (0..of.shape.len()).filter(|axis| !summed.contains(axis)).collect()
        };
        let (left_free, right_free) = (free(a, &left), free(b, &right));
        if !is_known(&a.shape) || !is_known(&b.shape) {
            let free_extents = |of: &Meta, axes: &[usize]| -> Vec<usize> {
                axes.iter().map(|&axis| of.shape[axis]).collect()
            };
            let shape = [free_extents(a, &left_free), free_extents(b, &right_free)].concat();
            let meta = Meta { shape, dtype: promote(a.dtype, b.dtype) };
            let axes = (axes.to_vec(), other_axes.to_vec());
            let text = format!("{axes:?}");
            return late("tensordot", text, meta, &[self, other], move |x| {
                x[0].tensordot(&x[1], &axes.0, &axes.1)
            });
        }
        let extents = |of: &Meta, axes: &[usize]| -> Vec<i64> {
            axes.iter().map(|&axis| of.shape[axis] as i64).collect()
        };
        let depth: i64 = extents(a, &left).iter().product();
        let (rows, columns) = (extents(a, &left_free), extents(b, &right_free));
        let order =
            |axes: &[&[usize]]| -> Vec<i64> { axes.concat().iter().map(|&axis| axis as i64).collect() };
        let first = self.transpose(&order(&[&left_free, &left])).reshape(&[rows.iter().product(), depth]);
        let second = other.transpose(&order(&[&right, &right_free]));
        let second = second.reshape(&[depth, columns.iter().product()]);
        first.matmul(&second).reshape(&[rows, columns].concat())
    }

    /// NumPy's `cumsum`: running sums along an axis, in the same shape; small integers in 64 bits.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).cumsum(0).to_vec::<i64>()?, [0, 1, 3, 6]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    #[track_caller]
    pub fn cumsum(&self, axis: i64) -> Tensor {
        self.cumulative(Scan::Sum, axis)
    }

    /// NumPy's `cumprod`: running products along an axis, in the same shape; small integers in 64 bits.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!((arange(4) + 1).cumprod(0).to_vec::<i64>()?, [1, 2, 6, 24]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    #[track_caller]
    pub fn cumprod(&self, axis: i64) -> Tensor {
        self.cumulative(Scan::Prod, axis)
    }

    #[track_caller]
    fn cumulative(&self, scan: Scan, axis: i64) -> Tensor {
        let rank = carry!(self.ndim());
        if rank == 0 && matches!(axis, 0 | -1) {
            return self.ravel().cumulative(scan, 0);
        }
        let axis = carry!(normalize_axis(axis, rank), self);
        Tensor::apply(Cumulative { scan, axis }, &[self])
    }
}

/// The products of elements, to be summed: those of half precision in float32, in which their sums are made.
/// Rounded to half precision they lose digits, and leave its range.
#[track_caller]
pub(crate) fn products_to_sum(a: &Tensor, b: &Tensor) -> Tensor {
    match promote(carry!(a.dtype()), carry!(b.dtype())) {
        DType::F16 | DType::BF16 => cast(a, DType::F32).multiply(cast(b, DType::F32)),
        _ => a.multiply(b),
    }
}

#[track_caller]
fn mismatch(function: &'static str, a: &Tensor, b: &Tensor, reason: &str) -> Tensor {
    let shapes = vec![carry!(a.shape()).to_vec(), carry!(b.shape()).to_vec()];
    Tensor::refused(GraphError::Shape { function, shapes, reason: reason.to_owned() }, &[a, b])
}
