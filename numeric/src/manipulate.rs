//! Views, reshapes, and concatenation of tensors.

use crate::error::Result;
use crate::late::late;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::lower::View;
use tharsis_graph::ops::{Concatenate, Rechunk, Reshape, Viewed};
use tharsis_graph::plan::AxisMap;
use tharsis_graph::shape::{
    UNKNOWN, agree, broadcast, check_shape, element_count, is_known, normalize_axes, normalize_axis,
};
use tharsis_graph::tiling::Chunks;
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::promote_all;

impl Tensor {
    /// A shape, and the dtype of this tensor.
    pub(crate) fn meta_with(&self, shape: Vec<usize>) -> Result<Meta> {
        Ok(Meta { shape, dtype: self.dtype()? })
    }

    #[track_caller]
    fn viewed(&self, name: &'static str, view: View) -> Tensor {
        Tensor::apply(Viewed { name, view }, &[self])
    }

    /// NumPy's `T`: axes in reverse order, without a copy; (m, n) to (n, m), any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).reshape(&[2, 2]).t().to_vec::<i64>()?, [0, 2, 1, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn t(&self) -> Tensor {
        let shape = carry!(self.shape());
        let order: Vec<usize> = (0..shape.len()).rev().collect();
        self.viewed("transpose", View::permute(shape, &order))
    }

    /// NumPy's `transpose(axes)`: axis `i` of the result is axis `order[i]` of this tensor, without a copy;
    /// any dtype.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 3, 4]).transpose(&[2, 0, 1]).shape()?, [4, 2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if `order` is no permutation of the axes, `AxisError` if an axis does not exist.
    #[track_caller]
    pub fn transpose(&self, order: &[i64]) -> Tensor {
        let shape = carry!(self.shape());
        let order = order.iter().map(|&axis| normalize_axis(axis, shape.len()));
        let order = carry!(order.collect::<std::result::Result<Vec<_>, _>>(), self);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != (0..shape.len()).collect::<Vec<_>>() {
            return Tensor::refused(GraphError::Value("axes don't match array".to_owned()), &[self]);
        }
        self.viewed("transpose", View::permute(shape, &order))
    }

    /// NumPy's `swapaxes`: two axes exchanged, without a copy; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 3, 4]).swapaxes(0, -1).shape()?, [4, 3, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if an axis does not exist.
    #[track_caller]
    pub fn swapaxes(&self, a: i64, b: i64) -> Tensor {
        let shape = carry!(self.shape());
        let a = carry!(normalize_axis(a, shape.len()), self);
        let b = carry!(normalize_axis(b, shape.len()), self);
        let mut order: Vec<usize> = (0..shape.len()).collect();
        order.swap(a, b);
        self.viewed("swapaxes", View::permute(shape, &order))
    }

    /// NumPy's `moveaxis` of one axis: moved to another position, without a copy; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 3, 4]).moveaxis(0, -1).shape()?, [3, 4, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if an axis does not exist.
    #[track_caller]
    pub fn moveaxis(&self, from: i64, to: i64) -> Tensor {
        self.moveaxes(&[from], &[to])
    }

    /// NumPy's `moveaxis`: each axis of `from` moved to the place in `to`; the others stay in order; any
    /// dtype.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 3, 4]).moveaxes(&[0, 1], &[1, 2]).shape()?, [4, 2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if an axis does not exist; `ValueError` for repeated ones, or if there are not as many
    /// places as axes.
    #[track_caller]
    pub fn moveaxes(&self, from: &[i64], to: &[i64]) -> Tensor {
        if from.len() != to.len() {
            let message = "`source` and `destination` arguments must have the same number of elements";
            return Tensor::refused(GraphError::Value(message.to_owned()), &[self]);
        }
        let shape = carry!(self.shape());
        let sources = carry!(distinct("source", from, shape.len()), self);
        let targets = carry!(distinct("destination", to, shape.len()), self);
        let mut moves: Vec<_> = targets.into_iter().zip(&sources).collect();
        moves.sort_unstable();
        let mut order: Vec<usize> = (0..shape.len()).filter(|axis| !sources.contains(axis)).collect();
        moves.into_iter().for_each(|(to, &from)| order.insert(to, from));
        self.viewed("moveaxis", View::permute(shape, &order))
    }

    /// NumPy's `broadcast_to`: repeated to a larger shape without a copy; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).broadcast_to(&[2, 2]).to_vec::<i64>()?, [0, 1, 0, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if this tensor does not broadcast to `shape`.
    #[track_caller]
    pub fn broadcast_to(&self, shape: &[usize]) -> Tensor {
        carry!(check_shape(shape), self);
        let from = carry!(self.shape());
        let both = carry!(broadcast("broadcast_to", &[from, shape]), self);
        if both.len() != shape.len() || !both.iter().zip(shape).all(|(&a, &b)| agree(a, b)) {
            let shapes = vec![from.to_vec(), shape.to_vec()];
            let reason = "the array does not broadcast to the shape".to_owned();
            return Tensor::refused(GraphError::Shape { function: "broadcast_to", shapes, reason }, &[self]);
        }
        if !is_known(from) {
            // An unknown extent may turn out to be neither 1 nor that of the shape.
            let (meta, to) = (carry!(self.meta_with(shape.to_vec())), shape.to_vec());
            return late("broadcast_to", shape, meta, &[self], move |x| x[0].broadcast_to(&to));
        }
        self.viewed("broadcast_to", View::broadcast(from, shape))
    }

    /// NumPy's `expand_dims` for one axis: a new axis of extent 1 at position `axis` of the result; any
    /// dtype.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 3]).expand_dims(1).shape()?, [2, 1, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there can be no such axis.
    #[track_caller]
    pub fn expand_dims(&self, axis: i64) -> Tensor {
        self.expand_all_dims(&[axis])
    }

    /// NumPy's `expand_dims`: new axes of extent 1 at these positions of the result; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2]).expand_all_dims(&[0, 2]).shape()?, [1, 2, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there can be no such axis; `ValueError` for repeated ones.
    #[track_caller]
    pub fn expand_all_dims(&self, axes: &[i64]) -> Tensor {
        let shape = carry!(self.shape());
        let axes = carry!(normalize_axes(Some(axes), shape.len() + axes.len()), self);
        self.viewed("expand_dims", View::insert(shape, &axes))
    }

    /// NumPy's `squeeze`: without axes of extent 1, all of them or those given; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[1, 2, 1]).squeeze(None).shape()?, [2]);
    /// assert_eq!(ones(&[1, 2, 1]).squeeze(Some(&[0])).shape()?, [2, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if a given axis is longer, `AxisError` if it does not exist.
    #[track_caller]
    pub fn squeeze(&self, axes: Option<&[i64]>) -> Tensor {
        let from = carry!(self.shape());
        let axes = match axes {
            Some(_) => carry!(normalize_axes(axes, from.len()), self),
            None => (0..from.len()).filter(|&axis| from[axis] == 1).collect(),
        };
        if axes.iter().any(|&axis| from[axis] == UNKNOWN) {
            let shape = (0..from.len()).filter(|axis| !axes.contains(axis)).map(|axis| from[axis]);
            let chosen: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
            let meta = carry!(self.meta_with(shape.collect()));
            return late("squeeze", axes, meta, &[self], move |x| x[0].squeeze(Some(&chosen)));
        }
        if axes.iter().any(|&axis| from[axis] != 1) {
            let message = "cannot select an axis to squeeze out which has size not equal to one";
            return Tensor::refused(GraphError::Value(message.to_owned()), &[self]);
        }
        self.viewed("squeeze", View::squeeze(from, &axes))
    }

    /// NumPy's `flip`: the order of elements reversed along these axes, along all if none are given; any
    /// dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(3).flip(None).to_vec::<i64>()?, [2, 1, 0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`, or `ValueError` for repeated axes.
    #[track_caller]
    pub fn flip(&self, axes: Option<&[i64]>) -> Tensor {
        let meta = carry!(self.meta());
        let shape = &meta.shape;
        let axes = carry!(normalize_axes(axes, shape.len()), self);
        if axes.iter().any(|&axis| shape[axis] == UNKNOWN) {
            let turned: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
            let meta = meta.clone();
            return late("flip", axes, meta, &[self], move |x| x[0].flip(Some(&turned)));
        }
        let map = |axis: usize| match shape[axis] {
            extent if axes.contains(&axis) && extent != 0 => {
                AxisMap { start: extent - 1, step: -1, axis: Some(axis) }
            }
            _ => AxisMap::identity(axis),
        };
        let view = View { shape: shape.clone(), axes: (0..shape.len()).map(map).collect() };
        self.viewed("flip", view)
    }

    /// NumPy's `reshape`: the same elements in C order in another shape; one extent may be -1, to be found
    /// from the others; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(6).reshape(&[2, -1]).shape()?, [2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the numbers of elements differ.
    #[track_caller]
    pub fn reshape(&self, shape: &[i64]) -> Tensor {
        let from = carry!(self.shape());
        if !is_known(from) {
            if shape == [-1] && from.len() == 1 {
                return self.clone();
            }
            let extents = shape.iter().map(|&extent| usize::try_from(extent).unwrap_or(UNKNOWN));
            let (meta, to) = (carry!(self.meta_with(extents.collect())), shape.to_vec());
            return late("reshape", shape, meta, &[self], move |x| x[0].reshape(&to));
        }
        let shape = carry!(complete_shape(element_count(from), shape), self);
        Tensor::apply(Reshape { shape }, &[self])
    }

    /// NumPy's `ravel`: all elements in C order in one axis; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 3]).ravel().shape()?, [6]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn ravel(&self) -> Tensor {
        self.reshape(&[-1])
    }

    /// The same tensor with the requested chunks, where stages have a choice; NumPy has no chunks.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, ones};
    /// let rows = ones(&[6, 4]).rechunk(Chunks::PerAxis(vec![2, 4])).execute()?;
    /// assert!(format!("{rows:?}").contains("3 chunks (3,1) of up to (2,4)"));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for chunks of zero, of the wrong number of axes, or that do not add up to the shape.
    #[track_caller]
    pub fn rechunk(&self, chunks: Chunks) -> Tensor {
        Tensor::apply(Rechunk(chunks), &[self])
    }

    /// NumPy's `diagonal` of the last two axes; `offset` above the main one if positive; (.., m, n) to (..,
    /// k), any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).reshape(&[2, 2]).diagonal(0).to_vec::<i64>()?, [0, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for fewer than two axes.
    #[track_caller]
    pub fn diagonal(&self, offset: i64) -> Tensor {
        let from = carry!(self.shape());
        let rank = from.len();
        if rank < 2 {
            let message = "diag requires an array of at least two dimensions";
            return Tensor::refused(GraphError::Value(message.to_owned()), &[self]);
        }
        if !is_known(&from[rank - 2..]) {
            let meta = carry!(self.meta_with([&from[..rank - 2], &[UNKNOWN]].concat()));
            return late("diagonal", offset, meta, &[self], move |x| x[0].diagonal(offset));
        }
        let (rows, columns) = (from[rank - 2] as i64, from[rank - 1] as i64);
        let (row, column) = ((-offset).max(0), offset.max(0));
        let len = (rows - row).min(columns - column).max(0) as usize;
        let mut axes: Vec<AxisMap> = (0..rank - 2).map(AxisMap::identity).collect();
        axes.extend([row, column].map(|start| AxisMap {
            start: start as usize,
            step: 1,
            axis: Some(rank - 2),
        }));
        let mut shape = from[..rank - 2].to_vec();
        shape.push(len);
        self.viewed("diagonal", View { shape, axes })
    }
}

/// Axes counted from the front, in the order given.
fn distinct(argument: &str, axes: &[i64], rank: usize) -> std::result::Result<Vec<usize>, GraphError> {
    let mut normal = Vec::with_capacity(axes.len());
    for &axis in axes {
        let axis = normalize_axis(axis, rank)?;
        if normal.contains(&axis) {
            return Err(GraphError::Value(format!("repeated axis in `{argument}` argument")));
        }
        normal.push(axis);
    }
    Ok(normal)
}

fn complete_shape(size: u64, shape: &[i64]) -> std::result::Result<Vec<usize>, GraphError> {
    let refuse = || GraphError::Value(format!("cannot reshape array of size {size} into shape {shape:?}"));
    let unknown = shape.iter().filter(|&&extent| extent == -1).count();
    if 1 < unknown {
        return Err(GraphError::Value("can only specify one unknown dimension".to_owned()));
    }
    if shape.iter().any(|&extent| extent < -1) {
        return Err(GraphError::Value("negative dimensions are not allowed".to_owned()));
    }
    let known: Vec<usize> =
        shape.iter().filter(|&&extent| extent != -1).map(|&extent| extent as usize).collect();
    check_shape(&known)?;
    let product = element_count(&known);
    let missing = match unknown {
        0 => 1,
        _ if product == 0 || !size.is_multiple_of(product) => return Err(refuse()),
        _ => size / product,
    };
    if product * missing != size {
        return Err(refuse());
    }
    Ok(shape.iter().map(|&extent| if extent == -1 { missing as usize } else { extent as usize }).collect())
}

/// NumPy's `concatenate`: tensors joined along an existing axis; dtypes are promoted.
///
/// ```
/// use tharsis_numeric::{arange, concatenate};
/// assert_eq!(concatenate(&[&arange(2), &arange(1)], 0).to_vec::<i64>()?, [0, 1, 0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if there are none or their other extents differ, `AxisError` if there is no such axis.
#[track_caller]
pub fn concatenate(tensors: &[&Tensor], axis: i64) -> Tensor {
    let Some(first) = tensors.first() else {
        return Tensor::refused(GraphError::Value("need at least one array to concatenate".to_owned()), &[]);
    };
    let rank = carry!(first.ndim());
    if rank == 0 {
        let message = "zero-dimensional arrays cannot be concatenated";
        return Tensor::refused(GraphError::Value(message.to_owned()), tensors);
    }
    let axis = carry!(normalize_axis(axis, rank), first);
    let dtypes = carry!(tensors.iter().map(|tensor| tensor.dtype()).collect::<Result<Vec<_>>>());
    let dtype = promote_all(dtypes);
    let parts: Vec<Tensor> = tensors.iter().map(|tensor| cast(tensor, dtype)).collect();
    Tensor::apply(Concatenate { axis }, &parts.iter().collect::<Vec<_>>())
}

/// NumPy's `stack`: tensors of one shape along a new axis; dtypes are promoted.
///
/// ```
/// use tharsis_numeric::{arange, stack};
/// assert_eq!(stack(&[&arange(2), &arange(2)], 1).to_vec::<i64>()?, [0, 0, 1, 1]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if there are none or their shapes differ, `AxisError` if there can be no such axis.
#[track_caller]
pub fn stack(tensors: &[&Tensor], axis: i64) -> Tensor {
    let Some(first) = tensors.first() else {
        return Tensor::refused(GraphError::Value("need at least one array to stack".to_owned()), &[]);
    };
    let first = carry!(first.shape());
    let shapes = carry!(tensors.iter().map(|tensor| tensor.shape()).collect::<Result<Vec<_>>>());
    let agrees =
        |shape: &[usize]| shape.len() == first.len() && shape.iter().zip(first).all(|(&a, &b)| agree(a, b));
    if !shapes.into_iter().all(agrees) {
        let message = "all input arrays must have the same shape";
        return Tensor::refused(GraphError::Value(message.to_owned()), tensors);
    }
    let mut wide = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        wide.push(tensor.expand_dims(axis));
    }
    concatenate(&wide.iter().collect::<Vec<_>>(), axis)
}
