//! Sorting, and searching in what is sorted.

use crate::joined::all_known;
use crate::late::late;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::{LINE_ELEMENTS_MAX, SearchSorted, Sort, SortLines, Sorted};
use tharsis_graph::shape::normalize_axis;
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::order::Direction;
use tharsis_kernels::{DType, promote};

impl Tensor {
    /// NumPy's `sort`: elements in ascending order along an axis, NaN last; any dtype, the shape stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([2.0, 0.5, 1.0]).sort(0).to_vec::<f64>()?, [0.5, 1.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    ///
    /// # Distributed
    /// Lines of up to 2^20 elements are sorted by one task each. A longer line is cut by samples into as many
    /// ranges as it has chunks; each chunk deals its elements to these, and a task for each range merges
    /// them. Among several axes, a longer line is sorted so one by one.
    #[track_caller]
    pub fn sort(&self, axis: i64) -> Tensor {
        self.ordered(axis, Direction::Ascending, Sorted::Values)
    }

    /// NumPy's `argsort`: the positions of elements in ascending order along an axis; equal elements keep
    /// their order. int64, the shape stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([2.0, 0.5, 1.0]).argsort(0).to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sort`].
    ///
    /// # Distributed
    /// As [`Tensor::sort`].
    #[track_caller]
    pub fn argsort(&self, axis: i64) -> Tensor {
        self.ordered(axis, Direction::Ascending, Sorted::Positions)
    }

    /// As [`Tensor::sort`], the largest first and NaN before it.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([2.0, 0.5, 1.0]).sort_descending(0).to_vec::<f64>()?, [2.0, 1.0, 0.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sort`].
    #[track_caller]
    pub fn sort_descending(&self, axis: i64) -> Tensor {
        self.ordered(axis, Direction::Descending, Sorted::Values)
    }

    /// As [`Tensor::argsort`], the largest first and NaN before it; equal elements keep their order.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1.0, 2.0, 1.0]).argsort_descending(0).to_vec::<i64>()?, [1, 0, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sort`].
    #[track_caller]
    pub fn argsort_descending(&self, axis: i64) -> Tensor {
        self.ordered(axis, Direction::Descending, Sorted::Positions)
    }

    #[track_caller]
    fn ordered(&self, axis: i64, direction: Direction, what: Sorted) -> Tensor {
        let meta = carry!(self.meta());
        let from = &meta.shape;
        let axis = carry!(normalize_axis(axis, from.len()), self);
        let (name, dtype) = match what {
            Sorted::Values => ("sort", meta.dtype),
            Sorted::Positions => ("argsort", DType::I64),
        };
        if !all_known(&[self]) {
            let meta = Meta { shape: from.clone(), dtype };
            return late(name, (axis, direction), meta, &[self], move |x| {
                x[0].ordered(axis as i64, direction, what)
            });
        }
        if from[axis] <= LINE_ELEMENTS_MAX {
            let positions = what == Sorted::Positions;
            return Tensor::apply(SortLines { axis, direction, positions }, &[self]);
        }
        if from.len() == 1 {
            return Tensor::apply(Sort::new(direction, what), &[self]);
        }
        // Line by line, each of them in many chunks.
        let (first, rest) = if axis == 0 { (1, axis as i64) } else { (0, axis as i64 - 1) };
        let lines = carry!(self.unstack(first));
        if lines.is_empty() {
            return crate::create::full(from, 0i64, dtype);
        }
        let sorted: Vec<Tensor> = lines.iter().map(|line| line.ordered(rest, direction, what)).collect();
        crate::manipulate::stack(&sorted.iter().collect::<Vec<_>>(), first)
    }

    /// NumPy's `searchsorted(.., side='left')`: for each element of `wanted` the place in this sorted tensor
    /// (n,) before which it would have to be put, before all that are equal to it; int64, the shape of
    /// `wanted`.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 2.0, 5.0]);
    /// assert_eq!(x.searchsorted(&array([2.0, 9.0])).to_vec::<i64>()?, [1, 4]);
    /// assert_eq!(x.searchsorted_right(&array([2.0, 9.0])).to_vec::<i64>()?, [3, 4]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless this tensor has one axis.
    ///
    /// # Distributed
    /// Each chunk of the sorted tensor counts those of its elements that come before, and these are summed.
    #[track_caller]
    pub fn searchsorted(&self, wanted: &Tensor) -> Tensor {
        self.search(wanted, false)
    }

    /// NumPy's `searchsorted(.., side='right')`: as [`Tensor::searchsorted`], behind all that are equal.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(3).searchsorted_right(&arange(2)).to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::searchsorted`].
    #[track_caller]
    pub fn searchsorted_right(&self, wanted: &Tensor) -> Tensor {
        self.search(wanted, true)
    }

    #[track_caller]
    fn search(&self, wanted: &Tensor, right: bool) -> Tensor {
        let (own, other) = (carry!(self.meta()), carry!(wanted.meta()));
        if own.shape.len() != 1 {
            let text = match own.shape.len() {
                0 => "object of too small depth for desired array",
                _ => "object too deep for desired array",
            };
            return Tensor::refused(GraphError::Value(text.to_owned()), &[self, wanted]);
        }
        if !all_known(&[self, wanted]) {
            let meta = Meta { shape: other.shape.clone(), dtype: DType::I64 };
            return late("searchsorted", right, meta, &[self, wanted], move |x| x[0].search(&x[1], right));
        }
        let dtype = promote(own.dtype, other.dtype);
        let flat = if other.shape.len() == 1 { wanted.clone() } else { wanted.ravel() };
        let found = Tensor::apply(SearchSorted { right }, &[&cast(self, dtype), &cast(&flat, dtype)]);
        match other.shape.len() {
            1 => found,
            _ => found.reshape(&other.shape.iter().map(|&extent| extent as i64).collect::<Vec<_>>()),
        }
    }
}
