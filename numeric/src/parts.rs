//! Parts put in and put together: NumPy's `insert`, `block`, `partition` and `lexsort`.

use crate::create::arange;
use crate::joined::all_known;
use crate::late::late;
use crate::manipulate::concatenate;
use crate::operand::{Operand, cast};
use crate::tensor::{Tensor, carry};
use tharsis_graph::shape::{UNKNOWN, normalize_axis};
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::{DType, Kind};

/// A tensor, or blocks beside one another, for [`block`].
#[derive(Clone, Debug)]
pub enum Block {
    /// One block.
    Tensor(Tensor),
    /// Blocks along an axis: the innermost lists along the last one.
    List(Vec<Block>),
}

impl From<&Tensor> for Block {
    fn from(tensor: &Tensor) -> Block {
        Block::Tensor(tensor.clone())
    }
}

impl<const N: usize> From<[Block; N]> for Block {
    fn from(blocks: [Block; N]) -> Block {
        Block::List(blocks.into())
    }
}

/// NumPy's `block`: nested lists of blocks put together, the innermost ones along the last axis.
///
/// ```
/// use tharsis_numeric::parts::{Block, block};
/// use tharsis_numeric::{arange, zeros};
/// let (a, b) = (arange(2), zeros(&[1]));
/// let row = Block::from([Block::from(&a), Block::from(&b)]);
/// assert_eq!(block(&row).to_vec::<f64>()?, [0.0, 1.0, 0.0]);
/// assert_eq!(block(&Block::from([row.clone(), row])).shape()?, [2, 3]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for empty lists, lists of different depths, and blocks whose extents do not fit.
#[track_caller]
pub fn block(blocks: &Block) -> Tensor {
    let Some(depth) = depth(blocks) else {
        return Tensor::bad_value("List depths are mismatched, or a list is empty", &[]);
    };
    let rank = carry!(rank_of(blocks)).max(depth);
    joined(blocks, depth, rank)
}

/// The number of lists around each tensor, if it is the same for all.
fn depth(blocks: &Block) -> Option<usize> {
    match blocks {
        Block::Tensor(_) => Some(0),
        Block::List(parts) => {
            let first = depth(parts.first()?)?;
            parts.iter().all(|part| depth(part) == Some(first)).then_some(first + 1)
        }
    }
}

fn rank_of(blocks: &Block) -> crate::Result<usize> {
    match blocks {
        Block::Tensor(tensor) => tensor.ndim(),
        Block::List(parts) => parts.iter().try_fold(0, |rank, part| Ok(rank.max(rank_of(part)?))),
    }
}

#[track_caller]
fn joined(blocks: &Block, depth: usize, rank: usize) -> Tensor {
    match blocks {
        Block::Tensor(tensor) => {
            let missing = rank - carry!(tensor.ndim());
            tensor.expand_all_dims(&(0..missing as i64).collect::<Vec<_>>())
        }
        Block::List(parts) => {
            let mut made = Vec::with_capacity(parts.len());
            for part in parts {
                made.push(joined(part, depth - 1, rank));
            }
            concatenate(&made.iter().collect::<Vec<_>>(), -(depth as i64))
        }
    }
}

impl Tensor {
    /// NumPy's `insert`: values put before these positions along an axis, negative ones counted from the end;
    /// those for one position in their order. The dtype stays; values are broadcast.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array};
    /// let x = arange(3).insert(&array([1i64, 1]), &array([7i64, 8]), 0);
    /// assert_eq!(x.to_vec::<i64>()?, [0, 7, 8, 1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `IndexError` for positions that are not integers, and when it runs for one out of range;
    /// `ValueError` for positions of several axes and values that do not fit.
    ///
    /// # Distributed
    /// As [`Tensor::argsort`] of as many numbers as the axis has in the end, and [`Tensor::take_at`].
    #[track_caller]
    pub fn insert(&self, positions: &Tensor, values: impl Into<Operand>, axis: i64) -> Tensor {
        let (meta, places) = (carry!(self.meta()), carry!(positions.meta()));
        let axis = carry!(normalize_axis(axis, meta.shape.len()), self);
        let values = values.into().beside(meta.dtype);
        let values = cast(&values, meta.dtype);
        if Kind::Float <= places.dtype.kind() && places.shape != [0] {
            let text = "arrays used as indices must be of integer (or boolean) type".to_owned();
            return Tensor::refused(GraphError::Indices(text), &[self, positions, &values]);
        }
        if places.dtype == DType::Bool {
            return self.insert(&positions.flatnonzero(), &values, axis as i64);
        }
        if 1 < places.shape.len() {
            let text = "index array argument obj to insert must be one dimensional or scalar".to_owned();
            return Tensor::bad_value(text, &[self, positions, &values]);
        }
        if !all_known(&[self, positions, &values]) {
            let mut shape = meta.shape.clone();
            shape[axis] = UNKNOWN;
            let meta = Meta { shape, dtype: meta.dtype };
            return late("insert", axis, meta, &[self, positions, &values], move |x| {
                x[0].insert(&x[1], &x[2], axis as i64)
            });
        }
        let extent = meta.shape[axis];
        let rank = carry!(values.ndim());
        let (mut values, mut places) = (values.clone(), cast(&positions.in_one_axis(), DType::I64));
        let count = carry!(places.shape())[0];
        if count == 1 {
            // For a single position there may be any number of values.
            let missing = meta.shape.len().saturating_sub(rank);
            values = values.expand_all_dims(&(0..missing as i64).collect::<Vec<_>>());
            if carry!(positions.ndim()) == 0 {
                values = values.moveaxis(0, axis as i64);
            }
            let several = carry!(values.shape())[axis.min(carry!(values.ndim()) - 1)];
            places = places.broadcast_to(&[several]);
        }
        let mut shape = meta.shape.clone();
        shape[axis] = carry!(places.shape())[0];
        let new = values.broadcast_to(&shape);
        if new.check().is_err() {
            let given = carry!(values.shape());
            let text = format!("could not broadcast input array from shape {given:?} into shape {shape:?}");
            return Tensor::bad_value(text, &[self, positions, &values]);
        }
        let limit = extent as i64;
        let from_front = crate::elementwise::where_(&places.less(0), places.add(limit), &places);
        // Taking places from their list refuses those that are out of range; what is still negative is.
        let checked = crate::elementwise::where_(&from_front.less(0), limit + 1, &from_front);
        let places = arange(extent + 1).take_at(&checked, 0);
        // Old elements are behind the new ones of their position; equal keys keep their order.
        let keys = concatenate(&[&arange(extent).multiply(2).add(1), &places.multiply(2)], 0);
        concatenate(&[self, &new], axis as i64).take_at(&keys.argsort(0), axis as i64)
    }

    /// NumPy's `partition`: elements along an axis so that each at a position of `kth` is where it would be
    /// in order, with none larger before it and none smaller behind it. Here all are in order.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([3i64, 1, 2]).partition(&[1], 0).to_vec::<i64>()?[1], 2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `ValueError` for positions out of range.
    ///
    /// # Distributed
    /// As [`Tensor::sort`].
    #[track_caller]
    pub fn partition(&self, kth: &[i64], axis: i64) -> Tensor {
        carry!(self.check_kth(kth, axis), self);
        self.sort(axis)
    }

    /// NumPy's `argpartition`: the positions of elements in the order of [`Tensor::partition`]; int64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([3i64, 1, 2]).argpartition(&[1], 0).to_vec::<i64>()?[1], 2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::partition`].
    ///
    /// # Distributed
    /// As [`Tensor::sort`].
    #[track_caller]
    pub fn argpartition(&self, kth: &[i64], axis: i64) -> Tensor {
        carry!(self.check_kth(kth, axis), self);
        self.argsort(axis)
    }

    fn check_kth(&self, kth: &[i64], axis: i64) -> Result<(), GraphError> {
        let reason = |error: crate::Error| error.cause().clone();
        let shape = self.shape().map_err(reason)?;
        let extent = shape[normalize_axis(axis, shape.len())?];
        if extent == UNKNOWN {
            return Ok(());
        }
        match kth.iter().find(|&&at| at < -(extent as i64) || extent as i64 <= at) {
            Some(at) => Err(GraphError::Value(format!("kth(={at}) out of bounds ({extent})"))),
            None => Ok(()),
        }
    }
}

/// NumPy's `lexsort`: the positions of elements in the order of several keys, of which the last one counts
/// first; int64, the shape of the keys.
///
/// ```
/// use tharsis_numeric::array;
/// use tharsis_numeric::parts::lexsort;
/// let (last, first) = (array([3i64, 1, 2]), array([5i64, 5, 4]));
/// assert_eq!(lexsort(&[&last, &first], -1).to_vec::<i64>()?, [2, 1, 0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `TypeError` without keys; `ValueError` if their shapes differ; `AxisError`.
///
/// # Distributed
/// As [`Tensor::argsort`] and [`Tensor::take_along_axis`], once for each key.
#[track_caller]
pub fn lexsort(keys: &[&Tensor], axis: i64) -> Tensor {
    let Some((first, rest)) = keys.split_first() else {
        let text = "need sequence of keys with len > 0 in lexsort".to_owned();
        return Tensor::refused(GraphError::Type(text), &[]);
    };
    let shape = carry!(first.shape());
    for key in rest {
        if carry!(key.shape()) != shape {
            let text = "all keys need to be the same shape".to_owned();
            return Tensor::refused(GraphError::Value(text), keys);
        }
    }
    let mut order = first.argsort(axis);
    for key in rest {
        order = order.take_along_axis(&key.take_along_axis(&order, axis).argsort(axis), axis);
    }
    order
}
