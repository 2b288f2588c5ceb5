//! Selections by values: masks, positions of non-zero elements, distinct elements.
//!
//! The size of a selection is known only after a run, so the results have an axis of [`UNKNOWN`] extent. Most
//! operations accept them; the error of one that does not names [`Tensor::compute_chunk_sizes`].

use crate::create::arange;
use crate::error::{Error, Result};
use crate::late::late;
use crate::operand::cast;
use crate::run::{default_executor, settle};
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::{Select, Selection};
pub use tharsis_graph::shape::UNKNOWN;
use tharsis_graph::shape::{agree, element_count, is_known, normalize_axis};
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::DType;

impl Tensor {
    /// Whether the shape is known: some extents are known only after a run.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let x = arange(10);
    /// let odd = x.filter(&(&x % 2).equal(1));
    /// assert!(!odd.is_known()?);
    /// assert_eq!(odd.sum(..).item()?.to_f64(), 25.0);
    /// assert_eq!(odd.reshape(&[5, -1]).sum(..).item()?.to_f64(), 25.0);
    /// assert_eq!(odd.compute_chunk_sizes()?.shape()?, [5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that it carries.
    pub fn is_known(&self) -> Result<bool> {
        self.shape().map(is_known)
    }

    /// The same tensor with its shape known. Runs only the parts that its sizes depend on, on the default
    /// executor; NumPy's shapes are always known.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let x = arange(5);
    /// assert_eq!(x.filter(&x.greater(2)).compute_chunk_sizes()?.shape()?, [2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`](crate::execute).
    #[track_caller]
    pub fn compute_chunk_sizes(&self) -> Result<Tensor> {
        let (mut tensors, _) = settle(&[self], &*default_executor())?;
        tensors.pop().ok_or_else(|| Error::here(GraphError::Internal("no result".to_owned())))
    }

    /// NumPy's `x[mask]`: the elements, or rows, where a mask of bool over the leading axes is true; any
    /// dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let x = arange(5);
    /// assert_eq!(x.filter(&x.greater(2)).to_vec::<i64>()?, [3, 4]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` if the mask is not of bool, `IndexError` if it does not fit.
    #[track_caller]
    pub fn filter(&self, mask: &Tensor) -> Tensor {
        let (from, chosen) = (carry!(self.shape()), carry!(mask.meta()));
        if chosen.dtype != DType::Bool {
            let text = format!("filter: a mask is of bool, found {}", chosen.dtype);
            return Tensor::refused(GraphError::Type(text), &[self, mask]);
        }
        let axes = chosen.shape.len();
        if from.len() < axes || chosen.shape.iter().zip(from).any(|(&a, &b)| !agree(a, b)) {
            let refusal = GraphError::Mask { shape: from.to_vec(), mask: chosen.shape.clone() };
            return Tensor::refused(refusal, &[self, mask]);
        }
        match axes {
            0 => self.expand_dims(0).choose(&mask.reshape(&[1])),
            1 => self.choose(mask),
            _ => {
                if !is_known(from) || !is_known(&chosen.shape) {
                    let meta = carry!(self.meta_with([&[UNKNOWN], &from[axes..]].concat()));
                    return late("filter", (), meta, &[self, mask], |x| x[0].filter(&x[1]));
                }
                let rest = from[axes..].iter().map(|&extent| extent as i64);
                let rows = element_count(&chosen.shape) as i64;
                let rows: Vec<i64> = std::iter::once(rows).chain(rest).collect();
                self.reshape(&rows).choose(&mask.ravel())
            }
        }
    }

    /// NumPy's `compress`: the slices along an axis where a condition of one axis is true; of the flattened
    /// array without an axis; any dtype. Slices beyond the end of the condition are left out.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array};
    /// let x = arange(4).reshape(&[2, 2]);
    /// assert_eq!(x.compress(&array([false, true]), Some(1)).to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the condition has one axis, `AxisError`, `IndexError` if the condition is too
    /// long.
    #[track_caller]
    pub fn compress(&self, condition: &Tensor, axis: Option<i64>) -> Tensor {
        let rank = carry!(self.ndim());
        if carry!(condition.ndim()) != 1 {
            let text = "condition must be a 1-d array";
            return Tensor::refused(GraphError::Value(text.to_owned()), &[self, condition]);
        }
        let Some(axis) = axis else { return self.in_one_axis().compress(condition, Some(0)) };
        let axis = carry!(normalize_axis(axis, rank), self) as i64;
        let mut rows = self.moveaxis(axis, 0);
        let mask = cast(condition, DType::Bool);
        let (len, reach) = (carry!(rows.shape())[0], carry!(mask.shape())[0]);
        if !agree(len, reach) && reach < len {
            rows = rows.get(&[crate::index::slice(0, reach as i64, 1)]);
        }
        rows.choose(&mask).moveaxis(0, axis)
    }

    /// NumPy's `flatnonzero`: the positions of nonzero elements in the flattened array; (found,), int64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([0.0, 5.0, 7.0]).flatnonzero().to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn flatnonzero(&self) -> Tensor {
        let shape = carry!(self.shape());
        if !is_known(shape) {
            let meta = Meta { shape: vec![UNKNOWN], dtype: DType::I64 };
            return late("flatnonzero", (), meta, &[self], |x| x[0].flatnonzero());
        }
        let mask = cast(self, DType::Bool).ravel();
        arange(element_count(shape) as usize).choose(&mask)
    }

    /// NumPy's `nonzero`: the coordinates of nonzero elements, a tensor for each axis; (found,) each, int64.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let found = arange(4).reshape(&[2, 2]).nonzero()?;
    /// assert_eq!(found[0].to_vec::<i64>()?, [0, 1, 1]);
    /// assert_eq!(found[1].to_vec::<i64>()?, [1, 0, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for no axes.
    #[track_caller]
    pub fn nonzero(&self) -> Result<Vec<Tensor>> {
        let shape = self.shape()?;
        if shape.is_empty() {
            let text =
                "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead";
            return Err(Error::here(GraphError::Value(text.to_owned())));
        }
        if !is_known(shape) {
            let meta = Meta { shape: vec![UNKNOWN], dtype: DType::I64 };
            let along =
                |axis: usize| late("nonzero", axis, meta.clone(), &[self], move |x| x[0].coordinate(axis));
            return Ok((0..shape.len()).map(along).collect());
        }
        let flat = self.flatnonzero();
        let mut inner = 1i64;
        let mut coordinates = Vec::with_capacity(shape.len());
        for &extent in shape.iter().rev() {
            let along = if inner == 1 { flat.clone() } else { flat.floor_divide(inner) };
            // An axis without elements has no coordinates; 1 avoids a remainder by zero.
            coordinates.push(along.remainder(extent.max(1) as i64));
            inner = inner.saturating_mul(extent.max(1) as i64);
        }
        coordinates.reverse();
        Ok(coordinates)
    }

    /// The coordinates of nonzero elements along one axis.
    fn coordinate(&self, axis: usize) -> Tensor {
        carry!(self.nonzero()).swap_remove(axis)
    }

    /// NumPy's `argwhere`: the coordinates of nonzero elements; (found, axes), int64.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(3).argwhere().to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::nonzero`].
    #[track_caller]
    pub fn argwhere(&self) -> Tensor {
        if carry!(self.ndim()) == 0 {
            let none = self.expand_dims(0).argwhere();
            return none.get(&[crate::Index::from(..), crate::index::slice(0, 0, 1)]);
        }
        let coordinates = carry!(self.nonzero());
        crate::manipulate::stack(&coordinates.iter().collect::<Vec<_>>(), 1)
    }

    /// The rows where a mask of one axis is true.
    #[track_caller]
    fn choose(&self, mask: &Tensor) -> Tensor {
        Tensor::apply(Select::new(Selection::Compress), &[self, mask])
    }
}
