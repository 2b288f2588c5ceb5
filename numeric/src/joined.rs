//! Tensors broadcast together, joined by rows and columns, and cut into parts.

use crate::error::{Blame, Error, Result};
use crate::index::Index;
use crate::late::late;
use crate::linear::products_to_sum;
use crate::manipulate::concatenate;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::shape::{UNKNOWN, broadcast, is_known, normalize_axis, require_known};
use tharsis_kernels::{BinaryOp, DType};

/// NumPy's `broadcast_shapes`: the shape that all of `shapes` broadcast to.
///
/// ```
/// use tharsis_numeric::joined::broadcast_shapes;
/// assert_eq!(broadcast_shapes(&[&[3, 1], &[4]])?, [3, 4]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if they do not broadcast.
#[track_caller]
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Vec<usize>> {
    broadcast("broadcast_shapes", shapes).blame()
}

/// NumPy's `broadcast_arrays`: tensors repeated to one shape; dtypes stay.
///
/// ```
/// use tharsis_numeric::{arange, joined::broadcast_arrays, ones};
/// let wide = broadcast_arrays(&[&arange(3), &ones(&[2, 1])])?;
/// assert_eq!((wide[0].shape()?, wide[1].shape()?), (&[2, 3][..], &[2, 3][..]));
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if they do not broadcast, or if a size is not known: the common shape depends on it.
#[track_caller]
pub fn broadcast_arrays(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
    let shapes = tensors.iter().map(|tensor| tensor.shape()).collect::<Result<Vec<_>>>()?;
    for shape in &shapes {
        require_known("broadcast_arrays", shape).blame()?;
    }
    let shape = broadcast("broadcast_arrays", &shapes).blame()?;
    Ok(tensors.iter().map(|tensor| tensor.broadcast_to(&shape)).collect())
}

impl Tensor {
    /// NumPy's `matrix_transpose`, `mT`: the last two axes exchanged, without a copy; (.., m, n) to (.., n,
    /// m), any dtype.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 3, 4]).matrix_transpose().shape()?, [2, 4, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for fewer than two axes.
    #[track_caller]
    pub fn matrix_transpose(&self) -> Tensor {
        let rank = carry!(self.ndim());
        if rank < 2 {
            let text = format!("Input array must be at least 2-dimensional, but it is {rank}");
            return Tensor::refused(GraphError::Value(text), &[self]);
        }
        self.swapaxes(-2, -1)
    }

    /// NumPy's `unstack`: the parts of this tensor along an axis, which they do not have; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let rows = arange(4).reshape(&[2, 2]).unstack(0)?;
    /// assert_eq!(rows[1].to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `ValueError` without axes, or if the size of the axis is not known.
    #[track_caller]
    pub fn unstack(&self, axis: i64) -> Result<Vec<Tensor>> {
        let from = self.shape()?;
        if from.is_empty() {
            return Err(Error::here(GraphError::Value("Input array must be at least 1-d.".to_owned())));
        }
        let axis = normalize_axis(axis, from.len()).blame()?;
        require_known("unstack", &from[axis..=axis]).blame()?;
        let part = |at: usize| {
            let mut index = vec![Index::from(..); axis];
            index.push(Index::At(at as i64));
            self.get(&index)
        };
        Ok((0..from[axis]).map(part).collect())
    }

    /// NumPy's `split` at positions: the parts before, between and behind them; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let parts = arange(5).split_at(&[2, 4], 0)?;
    /// assert_eq!(parts[1].to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    #[track_caller]
    pub fn split_at(&self, positions: &[i64], axis: i64) -> Result<Vec<Tensor>> {
        let axis = normalize_axis(axis, self.ndim()?).blame()?;
        let ends = positions.iter().map(|&end| Some(end)).chain([None]);
        let mut start = Some(0);
        let part = |stop: Option<i64>| {
            let mut index = vec![Index::from(..); axis];
            index.push(crate::index::slice(std::mem::replace(&mut start, stop), stop, 1));
            self.get(&index)
        };
        Ok(ends.map(part).collect())
    }

    /// NumPy's `array_split`: parts of about equal length along an axis, the longer ones first; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let parts = arange(5).array_split(2, 0)?;
    /// assert_eq!((parts[0].shape()?, parts[1].shape()?), (&[3][..], &[2][..]));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `ValueError` for no parts, or if the size of the axis is not known.
    #[track_caller]
    pub fn array_split(&self, parts: usize, axis: i64) -> Result<Vec<Tensor>> {
        if parts == 0 {
            let text = "number sections must be larger than 0.".to_owned();
            return Err(Error::here(GraphError::Value(text)));
        }
        let from = self.shape()?;
        let at = normalize_axis(axis, from.len()).blame()?;
        require_known("array_split", &from[at..=at]).blame()?;
        let (each, longer) = (from[at] / parts, from[at] % parts);
        let end = |part: usize| (part * each + part.min(longer)) as i64;
        self.split_at(&(1..parts).map(end).collect::<Vec<_>>(), axis)
    }

    /// NumPy's `atleast_1d`, `atleast_2d`, `atleast_3d`: with axes of extent 1 added, up to `rank`.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(3).atleast(2).shape()?, [1, 3]);
    /// assert_eq!(arange(3).atleast(3).shape()?, [1, 3, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn atleast(&self, rank: usize) -> Tensor {
        let own = carry!(self.ndim());
        match (own, rank) {
            (0, 3) => self.expand_all_dims(&[0, 1, 2]),
            (0, 2) => self.expand_all_dims(&[0, 1]),
            (0, 1) => self.expand_dims(0),
            (1, 3) => self.expand_all_dims(&[0, 2]),
            (1, 2) => self.expand_dims(0),
            (2, 3) => self.expand_dims(2),
            _ => self.clone(),
        }
    }

    /// NumPy's `rot90`: turned by right angles from the first of two axes towards the second; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).reshape(&[2, 2]).rot90(1, [0, 1]).to_vec::<i64>()?, [1, 3, 0, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the axes are the same or out of range.
    #[track_caller]
    pub fn rot90(&self, times: i64, axes: [i64; 2]) -> Tensor {
        let rank = carry!(self.ndim()) as i64;
        let [a, b] = axes;
        if a == b || (a - b).abs() == rank {
            return Tensor::bad_value("Axes must be different.", &[self]);
        }
        if [a, b].iter().any(|&axis| axis < -rank || rank <= axis) {
            return Tensor::bad_value(
                format!("Axes=({a}, {b}) out of range for array of ndim={rank}."),
                &[self],
            );
        }
        match times.rem_euclid(4) {
            0 => self.clone(),
            1 => self.flip(Some(&[b])).swapaxes(a, b),
            2 => self.flip(Some(&[a])).flip(Some(&[b])),
            _ => self.swapaxes(a, b).flip(Some(&[b])),
        }
    }

    /// NumPy's `diff`: differences of neighbours along an axis, `times` over; bool gives where they differ.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1i64, 4, 9, 16]).diff(2, -1).to_vec::<i64>()?, [2, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `ValueError` without axes.
    #[track_caller]
    pub fn diff(&self, times: usize, axis: i64) -> Tensor {
        let from = carry!(self.shape());
        if times == 0 {
            return self.clone();
        }
        if from.is_empty() {
            let text = "diff requires input that is at least one dimensional".to_owned();
            return Tensor::refused(GraphError::Value(text), &[self]);
        }
        let axis = carry!(normalize_axis(axis, from.len()), self);
        if from[axis] == UNKNOWN {
            let meta = carry!(self.meta()).clone();
            return late("diff", (times, axis), meta, &[self], move |x| x[0].diff(times, axis as i64));
        }
        let op = match carry!(self.dtype()) {
            DType::Bool => BinaryOp::NotEqual,
            _ => BinaryOp::Subtract,
        };
        let mut made = self.clone();
        for _ in 0..times.min(from[axis]) {
            let part = |range: Index| {
                let mut index = vec![Index::from(..); axis];
                index.push(range);
                made.get(&index)
            };
            let (behind, before) = (part((1..).into()), part((..-1).into()));
            made = crate::elementwise::binary(op, behind, before);
        }
        made
    }

    /// NumPy's `ediff1d`: differences of neighbours, as if flattened.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1i64, 4, 9]).ediff1d().to_vec::<i64>()?, [3, 5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn ediff1d(&self) -> Tensor {
        let flat = self.ravel();
        flat.get(&[(1..).into()]).subtract(flat.get(&[(..-1).into()]))
    }

    /// NumPy's `vecdot`: sums of products along an axis, those of the conjugate of this tensor with the
    /// other; other axes are broadcast. (.., n) and (.., n) to (..), the common dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let x = arange(4).reshape(&[2, 2]);
    /// assert_eq!(x.vecdot(&x, -1).to_vec::<i64>()?, [1, 13]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` without axes, or if the extents differ; `AxisError`.
    #[track_caller]
    pub fn vecdot(&self, other: &Tensor, axis: i64) -> Tensor {
        let (a, b) = (carry!(self.meta()), carry!(other.meta()));
        if a.shape.is_empty() || b.shape.is_empty() {
            let text = "vecdot: Input operand does not have enough dimensions (at least 1 is needed)";
            return Tensor::refused(GraphError::Value(text.to_owned()), &[self, other]);
        }
        let (left, right) = (self.moveaxis(axis, -1), other.moveaxis(axis, -1));
        let extent = |x: &Tensor| x.shape().map(|shape| shape[shape.len() - 1]);
        let (m, n) = (carry!(extent(&left)), carry!(extent(&right)));
        if !tharsis_graph::shape::agree(m, n) {
            let (shapes, reason) =
                (vec![a.shape.clone(), b.shape.clone()], format!("size {n} is different from {m}"));
            return Tensor::refused(GraphError::Shape { function: "vecdot", shapes, reason }, &[self, other]);
        }
        let dtype = tharsis_kernels::promote(a.dtype, b.dtype);
        if dtype == DType::Bool {
            return left.logical_and(&right).any(-1);
        }
        let left = if a.dtype.is_complex() { left.conj() } else { left };
        cast(&products_to_sum(&cast(&left, dtype), &cast(&right, dtype)).sum(-1), dtype)
    }
}

/// NumPy's `vstack`: tensors below one another, those of one axis as rows.
///
/// ```
/// use tharsis_numeric::{arange, joined::vstack};
/// assert_eq!(vstack(&[&arange(2), &arange(2)]).shape()?, [2, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`concatenate`].
#[track_caller]
pub fn vstack(tensors: &[&Tensor]) -> Tensor {
    let rows: Vec<Tensor> = tensors.iter().map(|tensor| tensor.atleast(2)).collect();
    concatenate(&rows.iter().collect::<Vec<_>>(), 0)
}

/// NumPy's `hstack`: tensors beside one another, those of one axis behind one another.
///
/// ```
/// use tharsis_numeric::{arange, joined::hstack};
/// assert_eq!(hstack(&[&arange(2), &arange(2)]).shape()?, [4]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`concatenate`].
#[track_caller]
pub fn hstack(tensors: &[&Tensor]) -> Tensor {
    let parts: Vec<Tensor> = tensors.iter().map(|tensor| tensor.atleast(1)).collect();
    let axis = match parts.first() {
        Some(first) => i64::from(carry!(first.ndim()) != 1),
        None => 0,
    };
    concatenate(&parts.iter().collect::<Vec<_>>(), axis)
}

/// NumPy's `dstack`: tensors behind one another along the third axis.
///
/// ```
/// use tharsis_numeric::{arange, joined::dstack};
/// assert_eq!(dstack(&[&arange(2), &arange(2)]).shape()?, [1, 2, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`concatenate`].
#[track_caller]
pub fn dstack(tensors: &[&Tensor]) -> Tensor {
    let parts: Vec<Tensor> = tensors.iter().map(|tensor| tensor.atleast(3)).collect();
    concatenate(&parts.iter().collect::<Vec<_>>(), 2)
}

/// NumPy's `column_stack`: tensors beside one another, those of one axis as columns.
///
/// ```
/// use tharsis_numeric::{arange, joined::column_stack};
/// assert_eq!(column_stack(&[&arange(2), &arange(2)]).to_vec::<i64>()?, [0, 0, 1, 1]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`concatenate`].
#[track_caller]
pub fn column_stack(tensors: &[&Tensor]) -> Tensor {
    let column = |tensor: &&Tensor| match tensor.ndim() {
        Ok(0 | 1) => tensor.atleast(2).t(),
        _ => Tensor::clone(tensor),
    };
    let columns: Vec<Tensor> = tensors.iter().map(column).collect();
    concatenate(&columns.iter().collect::<Vec<_>>(), 1)
}

/// NumPy's `append`: the other tensor behind this one along an axis; without an axis both are flattened.
///
/// ```
/// use tharsis_numeric::{arange, joined::append};
/// assert_eq!(append(&arange(2), &arange(1), None).to_vec::<i64>()?, [0, 1, 0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`concatenate`].
#[track_caller]
pub fn append(x: &Tensor, other: &Tensor, axis: Option<i64>) -> Tensor {
    match axis {
        Some(axis) => concatenate(&[x, other], axis),
        None => {
            let flat = |x: &Tensor| match x.is_known() {
                Ok(false) if x.ndim().is_ok_and(|rank| rank == 1) => x.clone(),
                _ => x.ravel(),
            };
            concatenate(&[&flat(x), &flat(other)], 0)
        }
    }
}

/// Whether the sizes of all tensors are known.
pub(crate) fn all_known(tensors: &[&Tensor]) -> bool {
    tensors.iter().all(|tensor| tensor.shape().map_or(true, is_known))
}
