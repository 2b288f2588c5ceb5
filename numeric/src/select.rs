//! What is chosen by its values: masks, positions of what is not zero, distinct elements.
//!
//! How much is chosen only running tells, so the results have an axis of [`UNKNOWN`] extent. They can be used
//! all the same: whatever needs to know the size says so, see [`Tensor::compute_chunk_sizes`].

use crate::create::arange;
use crate::error::{Blame, Error, Result};
use crate::late::late;
use crate::operand::cast;
use crate::run::{default_executor, settle};
use crate::tensor::Tensor;
use tharsis_graph::ops::{Select, Selection};
pub use tharsis_graph::shape::UNKNOWN;
use tharsis_graph::shape::{agree, is_known, normalize_axis};
use tharsis_graph::tiling::Chunks;
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::DType;

impl Tensor {
    /// Whether the shape is known: some extents only running tells.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let x = arange(10)?;
    /// let odd = x.filter(&x.remainder(2)?.equal(1)?)?;
    /// assert!(!odd.is_known());
    /// assert_eq!(odd.sum(())?.item()?.to_f64(), 25.0);
    /// assert_eq!(odd.reshape(&[5, -1])?.sum(())?.item()?.to_f64(), 25.0);
    /// assert_eq!(odd.compute_chunk_sizes()?.shape(), [5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn is_known(&self) -> bool {
        is_known(self.shape())
    }

    /// The same tensor with its shape known. Runs, on the default executor, what its sizes depend on and no
    /// more.
    ///
    /// # Errors
    /// As [`execute`](crate::execute).
    #[track_caller]
    pub fn compute_chunk_sizes(&self) -> Result<Tensor> {
        let (mut tensors, _) = settle(&[self], &*default_executor())?;
        tensors.pop().ok_or_else(|| Error::here(GraphError::Internal("no result".to_owned())))
    }

    /// NumPy's `x[mask]`: the elements, or rows, where a mask over the leading axes is true.
    ///
    /// # Errors
    /// `TypeError` if the mask is not of bool, `IndexError` if it does not fit.
    #[track_caller]
    pub fn filter(&self, mask: &Tensor) -> Result<Tensor> {
        if mask.dtype() != DType::Bool {
            let text = format!("filter: a mask is of bool, found {}", mask.dtype());
            return Err(Error::here(GraphError::Type(text)));
        }
        let axes = mask.ndim();
        if self.ndim() < axes || mask.shape().iter().zip(self.shape()).any(|(&a, &b)| !agree(a, b)) {
            let (shape, mask) = (self.shape().to_vec(), mask.shape().to_vec());
            return Err(Error::here(GraphError::Mask { shape, mask }));
        }
        match axes {
            0 => self.expand_dims(0)?.choose(&mask.reshape(&[1])?),
            1 => self.choose(mask),
            _ => {
                if !is_known(self.shape()) || !is_known(mask.shape()) {
                    let meta = self.meta_of([&[UNKNOWN], &self.shape()[axes..]].concat());
                    return late("filter", (), meta, &[self, mask], |x| x[0].filter(&x[1]));
                }
                let rest = self.shape()[axes..].iter().map(|&extent| extent as i64);
                let rows = mask.size() as i64;
                let rows: Vec<i64> = std::iter::once(rows).chain(rest).collect();
                self.reshape(&rows)?.choose(&mask.ravel()?)
            }
        }
    }

    /// NumPy's `compress`: the slices along an axis where a condition of one axis is true; of the flattened
    /// array without an axis. What the condition does not reach is left out.
    ///
    /// # Errors
    /// `ValueError` unless the condition has one axis, `AxisError`, `IndexError` if the condition is too
    /// long.
    #[track_caller]
    pub fn compress(&self, condition: &Tensor, axis: Option<i64>) -> Result<Tensor> {
        if condition.ndim() != 1 {
            return Err(Error::here(GraphError::Value("condition must be a 1-d array".to_owned())));
        }
        let Some(axis) = axis else { return self.in_one_axis()?.compress(condition, Some(0)) };
        let axis = normalize_axis(axis, self.ndim()).blame()? as i64;
        let mut rows = self.moveaxis(axis, 0)?;
        let mask = cast(condition, DType::Bool)?;
        let (len, reach) = (rows.shape()[0], mask.shape()[0]);
        if !agree(len, reach) && reach < len {
            rows = rows.get(&[crate::index::slice(0, reach as i64, 1)])?;
        }
        rows.choose(&mask)?.moveaxis(0, axis)
    }

    /// The positions, in the flattened array, of what is not zero.
    ///
    /// # Errors
    /// None in practice.
    #[track_caller]
    pub fn flatnonzero(&self) -> Result<Tensor> {
        if !is_known(self.shape()) {
            let meta = Meta { shape: vec![UNKNOWN], dtype: DType::I64 };
            return late("flatnonzero", (), meta, &[self], |x| x[0].flatnonzero());
        }
        let mask = cast(self, DType::Bool)?.ravel()?;
        arange(mask.shape()[0])?.choose(&mask)
    }

    /// The coordinates of what is not zero: a tensor for each axis.
    ///
    /// # Errors
    /// `ValueError` for no axes.
    #[track_caller]
    pub fn nonzero(&self) -> Result<Vec<Tensor>> {
        if self.ndim() == 0 {
            let text =
                "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead";
            return Err(Error::here(GraphError::Value(text.to_owned())));
        }
        if !is_known(self.shape()) {
            let meta = Meta { shape: vec![UNKNOWN], dtype: DType::I64 };
            let along = |axis: usize| {
                late("nonzero", axis, meta.clone(), &[self], move |x| Ok(x[0].nonzero()?.swap_remove(axis)))
            };
            return (0..self.ndim()).map(along).collect();
        }
        let flat = self.flatnonzero()?;
        let mut inner = 1i64;
        let mut coordinates = Vec::with_capacity(self.ndim());
        for &extent in self.shape().iter().rev() {
            let along = if inner == 1 { flat.clone() } else { flat.floor_divide(inner)? };
            // There is nothing along an axis without elements, and no remainder either.
            coordinates.push(along.remainder(extent.max(1) as i64)?);
            inner = inner.saturating_mul(extent.max(1) as i64);
        }
        coordinates.reverse();
        Ok(coordinates)
    }

    /// The coordinates of what is not zero: (found, axes).
    ///
    /// # Errors
    /// As [`Tensor::nonzero`].
    #[track_caller]
    pub fn argwhere(&self) -> Result<Tensor> {
        if self.ndim() == 0 {
            let none = self.expand_dims(0)?.argwhere()?;
            return none.get(&[crate::Index::from(..), crate::index::slice(0, 0, 1)]);
        }
        let coordinates = self.nonzero()?;
        crate::manipulate::stack(&coordinates.iter().collect::<Vec<_>>(), 1)
    }

    /// The distinct elements in ascending order; NaN is last and there once.
    ///
    /// # Errors
    /// `TypeError` for a dtype without an order.
    ///
    /// # Memory
    /// The distinct elements of all chunks come together in one task.
    #[track_caller]
    pub fn unique(&self) -> Result<Tensor> {
        let of_chunks = Tensor::apply(Select::new(Selection::DistinctOfChunks), &[&self.in_one_axis()?])?;
        Tensor::apply(Select::new(Selection::Distinct), &[&of_chunks.rechunk(Chunks::Each(UNKNOWN))?])
    }

    /// The rows where a mask of one axis is true.
    #[track_caller]
    fn choose(&self, mask: &Tensor) -> Result<Tensor> {
        Tensor::apply(Select::new(Selection::Compress), &[self, mask])
    }

    #[track_caller]
    fn in_one_axis(&self) -> Result<Tensor> {
        if self.ndim() == 1 { Ok(self.clone()) } else { self.ravel() }
    }
}
