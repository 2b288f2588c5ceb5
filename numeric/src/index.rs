//! Basic indexing: integers, slices, new axes, an ellipsis.

use crate::late::late;
use crate::manipulate::concatenate;
use crate::tensor::{Tensor, carry};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};
use tharsis_graph::Error as GraphError;
use tharsis_graph::lower::View;
use tharsis_graph::ops::Viewed;
use tharsis_graph::plan::AxisMap;
use tharsis_graph::shape::{UNKNOWN, normalize_axis, require_known};

/// One part of an index expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// One coordinate; the axis is dropped. Negative ones count from the end.
    At(i64),
    /// Whole axes for all that the other parts leave.
    Ellipsis,
    /// A new axis of extent 1.
    NewAxis,
    /// Python's `start:stop:step`.
    Slice {
        /// First coordinate. Default: the beginning of the axis, or its end if the step is negative.
        start: Option<i64>,
        /// The coordinate before which to stop.
        stop: Option<i64>,
        /// Distance from each coordinate to the next.
        step: i64,
    },
}

impl Index {
    /// Every `step`-th coordinate of a slice: Python's `start:stop:step`.
    ///
    /// ```
    /// use tharsis_numeric::{Index, arange};
    /// assert_eq!(arange(9).get(&[Index::from(1..8).step(3)]).to_vec::<i64>()?, [1, 4, 7]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn step(self, step: i64) -> Index {
        match self {
            Index::Slice { start, stop, .. } => Index::Slice { start, stop, step },
            other => other,
        }
    }
}

/// Python's `start:stop:step`, `None` where Python leaves a part out.
///
/// ```
/// use tharsis_numeric::arange;
/// use tharsis_numeric::index::slice;
/// assert_eq!(arange(5).get(&[slice(None, None, -2)]).to_vec::<i64>()?, [4, 2, 0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
pub fn slice(start: impl Into<Option<i64>>, stop: impl Into<Option<i64>>, step: i64) -> Index {
    Index::Slice { start: start.into(), stop: stop.into(), step }
}

impl From<i64> for Index {
    fn from(at: i64) -> Index {
        Index::At(at)
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        slice(None, None, 1)
    }
}

impl From<Range<i64>> for Index {
    fn from(range: Range<i64>) -> Index {
        slice(range.start, range.end, 1)
    }
}

impl From<RangeFrom<i64>> for Index {
    fn from(range: RangeFrom<i64>) -> Index {
        slice(range.start, None, 1)
    }
}

impl From<RangeTo<i64>> for Index {
    fn from(range: RangeTo<i64>) -> Index {
        slice(None, range.end, 1)
    }
}

impl From<RangeInclusive<i64>> for Index {
    fn from(range: RangeInclusive<i64>) -> Index {
        let stop = if *range.end() == -1 { None } else { Some(range.end() + 1) };
        slice(*range.start(), stop, 1)
    }
}

/// An index expression: `index![0, 1..5, .., slice(None, None, -1)]`.
///
/// ```
/// use tharsis_numeric::{arange, index, Index, index::slice};
/// let x = arange(24).reshape(&[2, 3, 4]);
/// assert_eq!(x.get(&index![0, .., slice(None, None, -2)]).shape()?, [3, 2]);
/// assert_eq!(x.get(&index![Index::Ellipsis, 1..3]).shape()?, [2, 3, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
#[macro_export]
macro_rules! index {
    ($($part:expr),* $(,)?) => { [$($crate::Index::from($part)),*] };
}

impl Tensor {
    /// NumPy's `x[..]` with integers and slices: the part of this tensor that an index expression selects,
    /// without a copy; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::{arange, index};
    /// let x = arange(6).reshape(&[2, 3]);
    /// assert_eq!(x.get(&index![-1, 1..]).to_vec::<i64>()?, [4, 5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `IndexError` for too many indices or a coordinate out of range, `ValueError` for a step of zero.
    #[track_caller]
    pub fn get(&self, indices: &[Index]) -> Tensor {
        let shape = carry!(self.shape());
        let view = match view_of(shape, indices) {
            Err(GraphError::UnknownSize { .. }) => {
                let (shape, later) = (shape_before_sizes(shape, indices), indices.to_vec());
                let meta = carry!(self.meta_with(shape));
                return late("getitem", indices, meta, &[self], move |x| x[0].get(&later));
            }
            view => carry!(view, self),
        };
        Tensor::apply(Viewed { name: "getitem", view }, &[self])
    }
}

impl Tensor {
    /// The parts of this tensor at these positions along an axis, in this order; negative ones count from the
    /// end. NumPy's `take`, and `x[[2, 0]]` for the first axis.
    ///
    /// Each run of consecutive positions is one part of the plan: this is for lists, not for millions of
    /// positions.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(5).take(&[4, 0, 1], 0).fetch::<i64>()?.as_slice(), Some(&[4, 0, 1][..]));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis, `IndexError` for a position out of range.
    #[track_caller]
    pub fn take(&self, positions: &[i64], axis: i64) -> Tensor {
        let from = carry!(self.shape());
        let axis = carry!(normalize_axis(axis, from.len()), self);
        let extent = from[axis];
        if extent == UNKNOWN {
            let mut shape = from.to_vec();
            shape[axis] = positions.len();
            let later = positions.to_vec();
            let meta = carry!(self.meta_with(shape));
            return late("take", (positions, axis), meta, &[self], move |x| x[0].take(&later, axis as i64));
        }
        let mut runs: Vec<Range<i64>> = Vec::new();
        for &index in positions {
            let at = if index < 0 { index.saturating_add(extent as i64) } else { index };
            if at < 0 || extent as i64 <= at {
                return Tensor::refused(GraphError::Index { index, axis, extent }, &[self]);
            }
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
        if runs.is_empty() {
            runs.push(0..0);
        }
        let part = |run: Range<i64>| {
            let mut index = vec![Index::from(..); axis];
            index.push(Index::from(run));
            self.get(&index)
        };
        let parts: Vec<Tensor> = runs.into_iter().map(part).collect();
        concatenate(&parts.iter().collect::<Vec<_>>(), axis as i64)
    }
}

/// The shape of an indexed tensor as far as it is known, if the index needs extents that are unknown.
fn shape_before_sizes(from: &[usize], indices: &[Index]) -> Vec<usize> {
    let used = indices.iter().filter(|index| matches!(index, Index::At(_) | Index::Slice { .. })).count();
    let (rest, mut axis, mut shape) = (from.len() - used, 0, Vec::new());
    let implied = if indices.contains(&Index::Ellipsis) { &[][..] } else { &[Index::Ellipsis] };
    for index in indices.iter().chain(implied) {
        match *index {
            Index::Ellipsis => {
                shape.extend_from_slice(&from[axis..axis + rest]);
                axis += rest;
            }
            Index::NewAxis => shape.push(1),
            Index::At(_) => axis += 1,
            Index::Slice { start, stop, step } => {
                let whole = (start, stop, step) == (None, None, 1);
                let count = || resolve(from[axis], start, stop, step).map_or(UNKNOWN, |(_, count)| count);
                shape.push(if whole {
                    from[axis]
                } else if from[axis] == UNKNOWN {
                    UNKNOWN
                } else {
                    count()
                });
                axis += 1;
            }
        }
    }
    shape
}

fn view_of(from: &[usize], indices: &[Index]) -> std::result::Result<View, GraphError> {
    let used = indices.iter().filter(|index| matches!(index, Index::At(_) | Index::Slice { .. })).count();
    let ellipses = indices.iter().filter(|index| **index == Index::Ellipsis).count();
    if 1 < ellipses {
        return Err(GraphError::Index { index: 1, axis: 0, extent: ellipses });
    }
    if from.len() < used {
        return Err(GraphError::Index { index: used as i64, axis: from.len(), extent: from.len() });
    }
    let rest = from.len() - used;
    let mut view = View { shape: Vec::new(), axes: Vec::new() };
    let implied = if ellipses == 0 { &[Index::Ellipsis][..] } else { &[] };
    for index in indices.iter().chain(implied) {
        let axis = view.axes.len();
        match *index {
            Index::Ellipsis => {
                for &extent in &from[axis..axis + rest] {
                    view.axes.push(AxisMap::identity(view.shape.len()));
                    view.shape.push(extent);
                }
            }
            Index::NewAxis => view.shape.push(1),
            Index::At(at) => {
                let extent = from[axis];
                require_known("getitem", &[extent])?;
                let start = if at < 0 { at + extent as i64 } else { at };
                if start < 0 || extent as i64 <= start {
                    return Err(GraphError::Index { index: at, axis, extent });
                }
                view.axes.push(AxisMap { start: start as usize, step: 0, axis: None });
            }
            Index::Slice { start, stop, step } => {
                let (start, count) = match (start, stop, step) {
                    // The whole axis, whatever its extent.
                    (None, None, 1) => (0, from[axis]),
                    _ => {
                        require_known("getitem", &[from[axis]])?;
                        resolve(from[axis], start, stop, step)?
                    }
                };
                view.axes.push(AxisMap { start, step, axis: Some(view.shape.len()) });
                view.shape.push(count);
            }
        }
    }
    Ok(view)
}

/// First coordinate and number of coordinates of a Python slice.
pub(crate) fn resolve(
    extent: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> std::result::Result<(usize, usize), GraphError> {
    if step == 0 {
        return Err(GraphError::Value("slice step cannot be zero".to_owned()));
    }
    let extent = extent as i64;
    let (low, high) = if step < 0 { (-1, extent - 1) } else { (0, extent) };
    let place = |at: i64| if at < 0 { (at.saturating_add(extent)).max(low) } else { at.min(high) };
    let start = start.map_or(if step < 0 { high } else { low }, place);
    let stop = stop.map_or(if step < 0 { low } else { high }, place);
    let distance = if step < 0 { start - stop } else { stop - start };
    let count = if distance <= 0 { 0 } else { (distance - 1) / step.saturating_abs() + 1 };
    Ok((if count == 0 { 0 } else { start as usize }, count as usize))
}
