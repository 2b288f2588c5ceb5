//! Products of matrices and vectors, and running sums.

use crate::error::{Blame, Error, Result};
use crate::late::late;
use crate::tensor::Tensor;
use tharsis_graph::ops::{Cumulative, MatMul};
use tharsis_graph::shape::{agree, is_known, normalize_axis};
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::chunkwise::Scan;
use tharsis_kernels::promote;

impl Tensor {
    /// The matrix product: (.., m, k) x (.., k, n) to (.., m, n). A vector on the left counts as a row, on
    /// the right as a column, and its axis is dropped from the result; leading axes are broadcast.
    ///
    /// # Errors
    /// `ValueError` if the shapes do not fit or a tensor has no axes.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        if self.ndim() == 0 || other.ndim() == 0 {
            return Err(mismatch("matmul", self, other, "both need at least one axis"));
        }
        let (depth, other_depth) =
            (self.shape()[self.ndim() - 1], other.shape()[other.ndim().saturating_sub(2)]);
        if !agree(depth, other_depth) {
            return Err(mismatch("matmul", self, other, "the axes that are summed over differ in extent"));
        }
        match (self.ndim(), other.ndim()) {
            (1, 1) => self.multiply(other)?.sum(())?.astype(promote(self.dtype(), other.dtype())),
            (1, _) => Tensor::apply(MatMul, &[&self.expand_dims(0)?, other])?.squeeze(Some(&[-2])),
            (_, 1) => Tensor::apply(MatMul, &[self, &other.expand_dims(1)?])?.squeeze(Some(&[-1])),
            _ => Tensor::apply(MatMul, &[self, other]),
        }
    }

    /// NumPy's `dot`: the product of vectors and matrices; of more axes the sum over the last of the one and
    /// the last but one of the other.
    ///
    /// # Errors
    /// `ValueError` if the shapes do not fit.
    #[track_caller]
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        if self.ndim() == 0 || other.ndim() == 0 {
            return self.multiply(other);
        }
        if self.ndim() <= 2 && other.ndim() <= 2 {
            return self.matmul(other);
        }
        let right = other.ndim() as i64 - 2;
        self.tensordot(other, &[-1], &[right.max(0)])
    }

    /// The sum of products over pairs of axes: `axes[i]` of this tensor with `other_axes[i]` of the other.
    /// What is left of this tensor's axes comes first in the result.
    ///
    /// # Errors
    /// `ValueError` if the axes do not fit, `AxisError` if one does not exist.
    #[track_caller]
    pub fn tensordot(&self, other: &Tensor, axes: &[i64], other_axes: &[i64]) -> Result<Tensor> {
        if axes.len() != other_axes.len() {
            return Err(mismatch("tensordot", self, other, "as many axes are needed of each"));
        }
        let summed = |tensor: &Tensor, axes: &[i64]| {
            axes.iter()
                .map(|&axis| normalize_axis(axis, tensor.ndim()))
                .collect::<std::result::Result<Vec<_>, _>>()
        };
        let (left, right) = (summed(self, axes).blame()?, summed(other, other_axes).blame()?);
        if left.iter().zip(&right).any(|(&a, &b)| !agree(self.shape()[a], other.shape()[b])) {
            return Err(mismatch("tensordot", self, other, "the axes that are summed over differ in extent"));
        }
        let free = |tensor: &Tensor, summed: &[usize]| -> Vec<usize> {
            (0..tensor.ndim()).filter(|axis| !summed.contains(axis)).collect()
        };
        let (left_free, right_free) = (free(self, &left), free(other, &right));
        if !is_known(self.shape()) || !is_known(other.shape()) {
            let free_extents = |tensor: &Tensor, axes: &[usize]| -> Vec<usize> {
                axes.iter().map(|&axis| tensor.shape()[axis]).collect()
            };
            let shape = [free_extents(self, &left_free), free_extents(other, &right_free)].concat();
            let meta = Meta { shape, dtype: promote(self.dtype(), other.dtype()) };
            let axes = (axes.to_vec(), other_axes.to_vec());
            let text = format!("{axes:?}");
            return late("tensordot", text, meta, &[self, other], move |x| {
                x[0].tensordot(&x[1], &axes.0, &axes.1)
            });
        }
        let extents = |tensor: &Tensor, axes: &[usize]| -> Vec<i64> {
            axes.iter().map(|&axis| tensor.shape()[axis] as i64).collect()
        };
        let depth: i64 = extents(self, &left).iter().product();
        let (rows, columns) = (extents(self, &left_free), extents(other, &right_free));
        let order =
            |axes: &[&[usize]]| -> Vec<i64> { axes.concat().iter().map(|&axis| axis as i64).collect() };
        let a = self.transpose(&order(&[&left_free, &left]))?.reshape(&[rows.iter().product(), depth])?;
        let b =
            other.transpose(&order(&[&right, &right_free]))?.reshape(&[depth, columns.iter().product()])?;
        a.matmul(&b)?.reshape(&[rows, columns].concat())
    }

    /// Running sums along an axis; small integers are summed in 64 bits.
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    #[track_caller]
    pub fn cumsum(&self, axis: i64) -> Result<Tensor> {
        self.cumulative(Scan::Sum, axis)
    }

    /// Running products along an axis.
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    #[track_caller]
    pub fn cumprod(&self, axis: i64) -> Result<Tensor> {
        self.cumulative(Scan::Prod, axis)
    }

    #[track_caller]
    fn cumulative(&self, scan: Scan, axis: i64) -> Result<Tensor> {
        if self.ndim() == 0 && matches!(axis, 0 | -1) {
            return self.ravel()?.cumulative(scan, 0);
        }
        let axis = normalize_axis(axis, self.ndim()).blame()?;
        Tensor::apply(Cumulative { scan, axis }, &[self])
    }
}

#[track_caller]
fn mismatch(function: &'static str, a: &Tensor, b: &Tensor, reason: &str) -> Error {
    let shapes = vec![a.shape().to_vec(), b.shape().to_vec()];
    Error::here(GraphError::Shape { function, shapes, reason: reason.to_owned() })
}
