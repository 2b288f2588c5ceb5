//! Elements shifted around, and repeated.

use crate::index::Index;
use crate::late::late;
use crate::manipulate::concatenate;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::{Count, Require};
use tharsis_graph::shape::{UNKNOWN, is_known, normalize_axis};
use tharsis_kernels::{DType, Kind};

impl Tensor {
    /// NumPy's `roll`: elements moved along axes by a number of places, those that leave at one end coming in
    /// at the other; any dtype, the shape stays. Shifts of an axis that is given several times add up.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(5).roll(&[(0, 2)]).to_vec::<i64>()?, [3, 4, 0, 1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    #[track_caller]
    pub fn roll(&self, axes_and_shifts: &[(i64, i64)]) -> Tensor {
        let meta = carry!(self.meta());
        let rank = meta.shape.len();
        let mut shifts = vec![0i64; rank];
        for &(axis, shift) in axes_and_shifts {
            let axis = carry!(normalize_axis(axis, rank), self);
            shifts[axis] = shifts[axis].wrapping_add(shift);
        }
        if shifts.iter().zip(&meta.shape).any(|(&shift, &extent)| shift != 0 && extent == UNKNOWN) {
            let later = axes_and_shifts.to_vec();
            return late("roll", axes_and_shifts, meta.clone(), &[self], move |x| x[0].roll(&later));
        }
        let mut rolled = self.clone();
        for (axis, (&shift, &extent)) in shifts.iter().zip(&meta.shape).enumerate() {
            let first = if extent == 0 { 0 } else { shift.rem_euclid(extent as i64) };
            if first != 0 {
                let cut = extent as i64 - first;
                let part = |range: Index| {
                    let mut index = vec![Index::from(..); axis];
                    index.push(range);
                    rolled.get(&index)
                };
                let (end, start) = (part((cut..).into()), part((..cut).into()));
                rolled = concatenate(&[&end, &start], axis as i64);
            }
        }
        rolled
    }

    /// NumPy's `roll` without an axis: as if flattened; the shape stays.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).reshape(&[2, 2]).roll_flat(1).to_vec::<i64>()?, [3, 0, 1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn roll_flat(&self, shift: i64) -> Tensor {
        let meta = carry!(self.meta());
        if !is_known(&meta.shape) {
            return late("roll", shift, meta.clone(), &[self], move |x| x[0].roll_flat(shift));
        }
        let shape: Vec<i64> = meta.shape.iter().map(|&extent| extent as i64).collect();
        self.ravel().roll(&[(0, shift)]).reshape(&shape)
    }

    /// NumPy's `repeat` of each element by one number, along an axis; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).repeat(2, 0).to_vec::<i64>()?, [0, 0, 1, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    #[track_caller]
    pub fn repeat(&self, times: usize, axis: i64) -> Tensor {
        let from = carry!(self.shape());
        let axis = carry!(normalize_axis(axis, from.len()), self);
        let mut shape = from.to_vec();
        shape[axis] = if from[axis] == UNKNOWN { UNKNOWN } else { from[axis].saturating_mul(times) };
        if !is_known(from) {
            let meta = carry!(self.meta_with(shape));
            return late("repeat", (times, axis), meta, &[self], move |x| x[0].repeat(times, axis as i64));
        }
        let mut wide = from.to_vec();
        wide.insert(axis + 1, times);
        let copies = self.expand_dims(axis as i64 + 1).broadcast_to(&wide);
        copies.reshape(&shape.iter().map(|&extent| extent as i64).collect::<Vec<_>>())
    }

    /// NumPy's `repeat` of each element by a number of its own, (n,) of whole numbers, along an axis of
    /// extent n; one number is for all. Any dtype. The size of the result is known after a run.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array};
    /// assert_eq!(arange(3).repeat_each(&array([2i64, 0, 1]), 0).to_vec::<i64>()?, [0, 0, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis; `TypeError` unless the numbers are whole; `ValueError` if there
    /// are more or fewer than elements, or (when run) if one is negative.
    #[track_caller]
    pub fn repeat_each(&self, times: &Tensor, axis: i64) -> Tensor {
        let from = carry!(self.shape());
        let axis = carry!(normalize_axis(axis, from.len()), self);
        let given = carry!(times.meta());
        if 1 < given.shape.len() {
            let text = "object too deep for desired array".to_owned();
            return Tensor::refused(GraphError::Value(text), &[self, times]);
        }
        if Kind::Float <= given.dtype.kind() || given.dtype == DType::U64 {
            let text =
                format!("Cannot cast array data from {} to int64 according to the rule 'safe'", given.dtype);
            return Tensor::refused(GraphError::Type(text), &[self, times]);
        }
        if !is_known(from) || !is_known(&given.shape) {
            let mut shape = from.to_vec();
            shape[axis] = UNKNOWN;
            let meta = carry!(self.meta_with(shape));
            return late("repeat", axis, meta, &[self, times], move |x| x[0].repeat_each(&x[1], axis as i64));
        }
        let extent = from[axis];
        let counts = match given.shape.as_slice() {
            [] | [1] => times.reshape(&[1]).broadcast_to(&[extent]),
            [count] if *count == extent => times.clone(),
            _ => {
                let text = format!(
                    "operands could not be broadcast together with shape ({extent},) {}",
                    tharsis_graph::error::shape_text(&given.shape)
                );
                return Tensor::refused(GraphError::Value(text), &[self, times]);
            }
        };
        if extent == 0 {
            return self.clone();
        }
        let counts = cast(&counts, DType::I64);
        let message = "repeats may not contain negative values.".to_owned();
        let counts = Tensor::apply(Require { message }, &[&counts, &counts.greater_equal(0)]);
        let ends = counts.cumsum(0);
        let total = ends.get(&[Index::At(-1)]);
        let places = Tensor::lazily(Count::default(), &[&total]);
        self.take_at(&ends.searchsorted_right(&places), axis as i64)
    }

    /// NumPy's `tile`: this tensor repeated as a whole, as often as given for each axis; any dtype. Axes are
    /// counted from the last; where one side has more, the other is taken to have 1 there.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).tile(&[2, 2]).to_vec::<i64>()?, [0, 1, 0, 1, 0, 1, 0, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn tile(&self, times: &[usize]) -> Tensor {
        let from = carry!(self.shape());
        let rank = from.len().max(times.len());
        let before = rank - from.len();
        let extents = [&vec![1; before][..], from].concat();
        let times = [&vec![1; rank - times.len()][..], times].concat();
        let product = |(&extent, &times): (&usize, &usize)| match extent {
            UNKNOWN => UNKNOWN,
            extent => extent.saturating_mul(times),
        };
        let shape: Vec<usize> = extents.iter().zip(&times).map(product).collect();
        if !is_known(from) {
            let meta = carry!(self.meta_with(shape));
            let text = format!("{times:?}");
            return late("tile", text, meta, &[self], move |x| x[0].tile(&times));
        }
        let wide: Vec<usize> =
            times.iter().zip(&extents).flat_map(|(&times, &extent)| [times, extent]).collect();
        let apart: Vec<i64> = extents.iter().flat_map(|&extent| [1, extent as i64]).collect();
        let copies = self.reshape(&apart).broadcast_to(&wide);
        copies.reshape(&shape.iter().map(|&extent| extent as i64).collect::<Vec<_>>())
    }

    /// NumPy's `resize`: the elements in C order in another shape, from the first one on again where there
    /// are not enough, zeros if there are none; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(3).resize(&[2, 2]).to_vec::<i64>()?, [0, 1, 2, 0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shape is too big.
    #[track_caller]
    pub fn resize(&self, shape: &[usize]) -> Tensor {
        carry!(tharsis_graph::shape::check_shape(shape), self);
        let meta = carry!(self.meta());
        if !is_known(&meta.shape) {
            let (meta, to) = (carry!(self.meta_with(shape.to_vec())), shape.to_vec());
            return late("resize", shape, meta, &[self], move |x| x[0].resize(&to));
        }
        let wanted: usize = shape.iter().product();
        let size: usize = meta.shape.iter().product();
        if size == 0 || wanted == 0 {
            return crate::create::full(shape, 0i64, meta.dtype);
        }
        let copies = self.ravel().tile(&[wanted.div_ceil(size)]).get(&[(..wanted as i64).into()]);
        copies.reshape(&shape.iter().map(|&extent| extent as i64).collect::<Vec<_>>())
    }

    /// NumPy's `delete` of positions along an axis: the parts at all other positions; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).delete(&[0, -1], 0).to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis, `IndexError` for a position out of range.
    #[track_caller]
    pub fn delete(&self, positions: &[i64], axis: i64) -> Tensor {
        let from = carry!(self.shape());
        let axis = carry!(normalize_axis(axis, from.len()), self);
        let extent = from[axis];
        if extent == UNKNOWN {
            let meta = carry!(self.meta()).clone();
            let later = positions.to_vec();
            return late("delete", (positions, axis), meta, &[self], move |x| {
                x[0].delete(&later, axis as i64)
            });
        }
        let mut gone = Vec::with_capacity(positions.len());
        for &index in positions {
            let at = if index < 0 { index.saturating_add(extent as i64) } else { index };
            if at < 0 || extent as i64 <= at {
                return Tensor::refused(GraphError::Index { index, axis, extent }, &[self]);
            }
            gone.push(at);
        }
        gone.sort_unstable();
        gone.dedup();
        let mut parts = Vec::with_capacity(gone.len() + 1);
        let mut start = 0;
        for at in gone.into_iter().chain([extent as i64]) {
            let mut index = vec![Index::from(..); axis];
            index.push(Index::from(start..at));
            parts.push(self.get(&index));
            start = at + 1;
        }
        concatenate(&parts.iter().collect::<Vec<_>>(), axis as i64)
    }
}
