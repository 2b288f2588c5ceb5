//! Distinct elements, with their places and numbers, and operations on sets of elements.
//!
//! All of it stands on sorting, which is distributed: equal elements are neighbours then.

use crate::index::Index;
use crate::joined::all_known;
use crate::late::late;
use crate::manipulate::concatenate;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Meta;
use tharsis_graph::ops::{LINE_ELEMENTS_MAX, Select, Selection};
use tharsis_graph::shape::{UNKNOWN, normalize_axis};
use tharsis_graph::tiling::Chunks;
use tharsis_kernels::{DType, promote};

/// One answer about distinct elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Values,
    /// The place of the first of each.
    First,
    /// For each element the place of its equal among the distinct ones.
    Inverse,
    Counts,
}

/// Distinct elements as [`Tensor::unique_all`] gives them.
#[derive(Clone, Debug)]
pub struct Unique {
    /// The distinct elements in ascending order; (found,).
    pub values: Tensor,
    /// The place of the first of each, as if flattened; (found,), int64.
    pub indices: Tensor,
    /// For each element the place of its equal in `values`; the shape of the tensor, int64.
    pub inverse_indices: Tensor,
    /// The number of times that each is there; (found,), int64.
    pub counts: Tensor,
}

impl Tensor {
    /// NumPy's `unique`: the distinct elements in ascending order, with one NaN last if there are any;
    /// (found,), the dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([2.0, 1.0, 2.0]).unique().to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Distributed
    /// The distinct elements of each chunk are counted first. If all of these are more than 2^20, they are
    /// sorted as [`Tensor::sort`] does it; if they are most of the elements, all elements are.
    #[track_caller]
    pub fn unique(&self) -> Tensor {
        let flat = self.in_one_axis();
        distinct_of(&Tensor::apply(Select::new(Selection::DistinctOfChunks), &[&flat]), &flat)
    }

    /// NumPy's `unique_all`: the distinct elements, their places and how often they are there. Each NaN is
    /// distinct from all others, unless `equal_nan`, as in NumPy's `unique`.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let found = array([7i64, 3, 7]).unique_all(false);
    /// assert_eq!(found.values.to_vec::<i64>()?, [3, 7]);
    /// assert_eq!(found.indices.to_vec::<i64>()?, [1, 0]);
    /// assert_eq!(found.inverse_indices.to_vec::<i64>()?, [1, 0, 1]);
    /// assert_eq!(found.counts.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Distributed
    /// As [`Tensor::sort`].
    #[track_caller]
    pub fn unique_all(&self, equal_nan: bool) -> Unique {
        let part = |part| self.unique_part(part, equal_nan);
        Unique {
            values: part(Part::Values),
            indices: part(Part::First),
            inverse_indices: part(Part::Inverse),
            counts: part(Part::Counts),
        }
    }

    /// NumPy's `unique_values`: the distinct elements in ascending order, each NaN distinct from all others.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([f64::NAN, 1.0, f64::NAN]).unique_values().size()?, u64::MAX);
    /// assert_eq!(array([f64::NAN, 1.0, f64::NAN]).unique_values().to_vec::<f64>()?.len(), 3);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_values(&self) -> Tensor {
        if carry!(self.dtype()).kind() < tharsis_kernels::Kind::Float {
            self.unique()
        } else {
            self.unique_part(Part::Values, false)
        }
    }

    #[track_caller]
    fn unique_part(&self, part: Part, equal_nan: bool) -> Tensor {
        let meta = carry!(self.meta());
        if !all_known(&[self]) {
            let shape = if part == Part::Inverse { meta.shape.clone() } else { vec![UNKNOWN] };
            let dtype = if part == Part::Values { meta.dtype } else { DType::I64 };
            let meta = Meta { shape, dtype };
            return late("unique", (part, equal_nan), meta, &[self], move |x| {
                x[0].unique_part(part, equal_nan)
            });
        }
        let flat = self.in_one_axis();
        let count = carry!(flat.size()) as usize;
        let sorted = flat.sort(0);
        let first = is_first(&sorted, equal_nan);
        match part {
            Part::Values => sorted.filter(&first),
            Part::First => flat.argsort(0).filter(&first),
            Part::Counts => distances(&first.flatnonzero(), count),
            Part::Inverse => {
                let groups = cast(&first, DType::I64).cumsum(0).subtract(1);
                let shape: Vec<i64> = meta.shape.iter().map(|&extent| extent as i64).collect();
                flat.argsort(0).inverse_order(&groups).reshape(&shape)
            }
        }
    }

    /// NumPy's `unique(axis=..)`: the distinct parts along an axis, in the order of their first elements, of
    /// equal ones of their second, and so on; with their places, and how often they are there. `values` has
    /// (.., found, ..), the others one axis. Parts with NaN are distinct from all others.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([3i64, 1, 2, 5, 3, 1]).reshape(&[3, 2]);
    /// let found = x.unique_along(0);
    /// assert_eq!(found.values.to_vec::<i64>()?, [2, 5, 3, 1]);
    /// assert_eq!(found.indices.to_vec::<i64>()?, [1, 0]);
    /// assert_eq!(found.inverse_indices.to_vec::<i64>()?, [1, 0, 1]);
    /// assert_eq!(found.counts.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    ///
    /// # Distributed
    /// As [`lexsort`](crate::parts::lexsort), with a key for each element of a part.
    #[track_caller]
    pub fn unique_along(&self, axis: i64) -> Unique {
        let part = |part| self.part_along(part, axis);
        Unique {
            values: part(Part::Values),
            indices: part(Part::First),
            inverse_indices: part(Part::Inverse),
            counts: part(Part::Counts),
        }
    }

    #[track_caller]
    fn part_along(&self, part: Part, axis: i64) -> Tensor {
        let meta = carry!(self.meta());
        let at = carry!(normalize_axis(axis, meta.shape.len()), self);
        if !all_known(&[self]) {
            let mut shape = meta.shape.clone();
            shape[at] = UNKNOWN;
            let meta = match part {
                Part::Values => Meta { shape, dtype: meta.dtype },
                Part::Inverse => Meta { shape: vec![meta.shape[at]], dtype: DType::I64 },
                Part::First | Part::Counts => Meta { shape: vec![UNKNOWN], dtype: DType::I64 },
            };
            return late("unique", (part, axis), meta, &[self], move |x| x[0].part_along(part, axis));
        }
        let (count, moved) = (meta.shape[at], self.moveaxis(axis, 0));
        let width = carry!(moved.shape())[1..].iter().product::<usize>();
        let rows = moved.reshape(&[count as i64, width as i64]);
        let columns: Vec<Tensor> =
            (0..width).rev().map(|column| rows.get(&[Index::from(..), Index::At(column as i64)])).collect();
        let order = if columns.is_empty() {
            // Parts without elements are all the same.
            crate::create::arange(count)
        } else {
            crate::parts::lexsort(&columns.iter().collect::<Vec<_>>(), 0)
        };
        let sorted = rows.take_at(&order, 0);
        let (behind, before) = (sorted.get(&[Index::from(1..)]), sorted.get(&[Index::from(..-1)]));
        let differs = behind.not_equal(&before).any(1);
        let first = match count {
            0 => crate::create::full(&[0], false, DType::Bool),
            _ => concatenate(&[&Tensor::number(true).reshape(&[1]), &differs], 0),
        };
        match part {
            Part::Values => self.take_at(&order.filter(&first), axis),
            Part::First => order.filter(&first),
            Part::Counts => distances(&first.flatnonzero(), count),
            Part::Inverse => order.inverse_order(&cast(&first, DType::I64).cumsum(0).subtract(1)),
        }
    }

    /// Values that stand in the order of these positions, in the order of the positions themselves.
    #[track_caller]
    fn inverse_order(&self, values: &Tensor) -> Tensor {
        let zeros = values.zeros_like();
        zeros.set(&[crate::advanced::Selector::Positions(self.clone())], values)
    }

    /// NumPy's `isin`: whether each element is among those of another tensor; NaN is not. bool, the shape
    /// stays.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array};
    /// assert_eq!(arange(3).isin(&array([2i64, 0])).to_vec::<bool>()?, [true, false, true]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Distributed
    /// As [`Tensor::sort`] of the other tensor, and [`Tensor::searchsorted`].
    #[track_caller]
    pub fn isin(&self, among: &Tensor) -> Tensor {
        let dtype = promote(carry!(self.dtype()), carry!(among.dtype()));
        let (x, known) = (cast(self, dtype), cast(&among.in_one_axis(), dtype).sort(0));
        let found = known.searchsorted_right(&x).not_equal(known.searchsorted(&x));
        if dtype.kind() < tharsis_kernels::Kind::Float { found } else { found.logical_and(x.equal(&x)) }
    }

    /// NumPy's `union1d`: the distinct elements of both, ascending.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([3i64, 1]).union1d(&array([1i64, 2])).to_vec::<i64>()?, [1, 2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn union1d(&self, other: &Tensor) -> Tensor {
        concatenate(&[&self.in_one_axis(), &other.in_one_axis()], 0).unique()
    }

    /// NumPy's `intersect1d`: the distinct elements that are in both, ascending; the common dtype.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([3i64, 1]).intersect1d(&array([1i64, 2])).to_vec::<i64>()?, [1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn intersect1d(&self, other: &Tensor) -> Tensor {
        let dtype = promote(carry!(self.dtype()), carry!(other.dtype()));
        let own = cast(self, dtype).unique();
        own.filter(&own.isin(other))
    }

    /// NumPy's `setdiff1d`: the distinct elements that are not in the other, ascending.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([3i64, 1]).setdiff1d(&array([1i64, 2])).to_vec::<i64>()?, [3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn setdiff1d(&self, other: &Tensor) -> Tensor {
        let own = self.unique();
        own.filter(&own.isin(other).logical_not())
    }

    /// NumPy's `setxor1d`: the distinct elements that are in one of both, ascending.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([3i64, 1]).setxor1d(&array([1i64, 2])).to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn setxor1d(&self, other: &Tensor) -> Tensor {
        concatenate(&[&self.setdiff1d(other), &other.setdiff1d(self)], 0).sort(0)
    }

    #[track_caller]
    pub(crate) fn in_one_axis(&self) -> Tensor {
        if carry!(self.ndim()) == 1 { self.clone() } else { self.ravel() }
    }
}

/// The distances of places from the next ones, and of the last one from the end.
#[track_caller]
fn distances(starts: &Tensor, end: usize) -> Tensor {
    if end == 0 {
        return starts.clone();
    }
    let end = Tensor::number(end as i64).reshape(&[1]);
    concatenate(&[&starts.get(&[(1..).into()]), &end], 0).subtract(starts)
}

/// The distinct elements among those of all chunks, which are elements of `all`.
#[track_caller]
fn distinct_of(of_chunks: &Tensor, all: &Tensor) -> Tensor {
    let meta = carry!(of_chunks.meta());
    match meta.shape[0] {
        UNKNOWN => late("unique", (), meta.clone(), &[of_chunks, all], |x| distinct_of(&x[0], &x[1])),
        count if count <= LINE_ELEMENTS_MAX => {
            let together = of_chunks.rechunk(Chunks::Each(count.max(1)));
            Tensor::apply(Select::new(Selection::Distinct), &[&together])
        }
        count => {
            let few = 2 * count < carry!(all.size()) as usize;
            let sorted = if few { of_chunks.sort(0) } else { all.sort(0) };
            sorted.filter(&is_first(&sorted, true))
        }
    }
}

/// Whether each of sorted elements differs from the one before it.
#[track_caller]
fn is_first(sorted: &Tensor, equal_nan: bool) -> Tensor {
    let (behind, before) = (sorted.get(&[Index::from(1..)]), sorted.get(&[Index::from(..-1)]));
    let mut differs = behind.not_equal(&before);
    if equal_nan && tharsis_kernels::Kind::Float <= carry!(sorted.dtype()).kind() {
        differs = differs.logical_and(behind.isnan().logical_and(before.isnan()).logical_not());
    }
    match carry!(sorted.shape())[0] {
        0 => crate::create::full(&[0], false, DType::Bool),
        _ => concatenate(&[&Tensor::number(true).reshape(&[1]), &differs], 0),
    }
}
