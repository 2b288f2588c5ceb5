//! NumPy's advanced indexing: positions and masks beside integers and slices, on any axes.

use crate::create::position_along;
use crate::index::Index;
use crate::late::late;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};
use tharsis_graph::Error as GraphError;
use tharsis_graph::error::shape_text;
use tharsis_graph::ops::{FlatPositions, Gather, LINE_ELEMENTS_MAX, Take, TakeAlong};
use tharsis_graph::shape::{agree, broadcast, is_known, normalize_axis};
use tharsis_kernels::{DType, Kind};

/// One part of an index expression, positions and masks among them.
#[derive(Clone, Debug)]
pub enum Selector {
    /// A coordinate, a slice, a new axis or an ellipsis.
    Basic(Index),
    /// Positions along an axis, of an integer dtype; those of several axes are broadcast.
    Positions(Tensor),
    /// The places where a mask of bool is true, along as many axes as it has.
    Mask(Tensor),
}

macro_rules! basic {
    ($($t:ty),*) => {$(
        impl From<$t> for Selector {
            fn from(part: $t) -> Selector {
                Selector::Basic(Index::from(part))
            }
        }
    )*};
}
basic!(i64, RangeFull, Range<i64>, RangeFrom<i64>, RangeTo<i64>, RangeInclusive<i64>);

impl From<Index> for Selector {
    fn from(part: Index) -> Selector {
        Selector::Basic(part)
    }
}

/// A mask if the tensor is of bool, else positions.
impl From<&Tensor> for Selector {
    fn from(part: &Tensor) -> Selector {
        match part.dtype() {
            Ok(DType::Bool) => Selector::Mask(part.clone()),
            _ => Selector::Positions(part.clone()),
        }
    }
}

impl From<Tensor> for Selector {
    fn from(part: Tensor) -> Selector {
        Selector::from(&part)
    }
}

/// An index expression with positions and masks: `selectors![0, &positions, 1.., &mask]`.
///
/// ```
/// use tharsis_numeric::{arange, array, selectors};
/// let x = arange(6).reshape(&[2, 3]);
/// assert_eq!(x.select(&selectors![1, array([2i64, 0])]).to_vec::<i64>()?, [5, 3]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
#[macro_export]
macro_rules! selectors {
    ($($part:expr),* $(,)?) => { [$($crate::advanced::Selector::from($part)),*] };
}

/// An index expression in terms of a basic one and of positions on axes of its result.
pub(crate) struct Resolved {
    /// The basic part; it takes the axes whole that positions are on.
    pub basic: Vec<Index>,
    /// The axes of the basic part's result that positions are on, ascending, and the positions, int64, all of
    /// one shape.
    pub positions: Vec<(usize, Tensor)>,
    /// Whether the positions stand beside one another, so that their axes stay in place in the result.
    pub beside: bool,
}

/// A part of an expression whose masks are positions.
enum Step {
    Basic(Index),
    Positions(Tensor),
    /// Positions along a new axis of extent 1, those of a mask without axes.
    OnNewAxis(Tensor),
}

type Checked<T> = std::result::Result<T, GraphError>;

/// The basic parts, if all are basic.
pub(crate) fn basic_only(parts: &[Selector]) -> Option<Vec<Index>> {
    let index = |part: &Selector| match part {
        Selector::Basic(index) => Some(*index),
        _ => None,
    };
    parts.iter().map(index).collect()
}

/// The tensors in an index expression.
pub(crate) fn tensors(parts: &[Selector]) -> Vec<&Tensor> {
    let tensor = |part| match part {
        &Selector::Basic(_) => None,
        Selector::Positions(tensor) | Selector::Mask(tensor) => Some(tensor),
    };
    parts.iter().filter_map(tensor).collect()
}

/// The same expression with other tensors in the places of its own.
pub(crate) fn with_tensors(parts: &[Selector], tensors: &[Tensor]) -> Vec<Selector> {
    let mut tensors = tensors.iter();
    let replaced = |part: &Selector| match part {
        Selector::Basic(index) => Selector::Basic(*index),
        Selector::Positions(old) => Selector::Positions(tensors.next().unwrap_or(old).clone()),
        Selector::Mask(old) => Selector::Mask(tensors.next().unwrap_or(old).clone()),
    };
    parts.iter().map(replaced).collect()
}

/// Text of an expression without its tensors, for equality of placeholders.
pub(crate) fn text(parts: &[Selector]) -> String {
    let word = |part: &Selector| match part {
        Selector::Basic(index) => format!("{index:?}"),
        Selector::Positions(_) => "positions".to_owned(),
        Selector::Mask(_) => "mask".to_owned(),
    };
    parts.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// The axes of the tensor that a part takes.
fn taken(part: &Selector) -> Checked<usize> {
    match part {
        Selector::Basic(Index::At(_) | Index::Slice { .. }) | Selector::Positions(_) => Ok(1),
        Selector::Basic(Index::Ellipsis | Index::NewAxis) => Ok(0),
        Selector::Mask(mask) => mask.ndim().map_err(|error| error.cause().clone()),
    }
}

/// Checks that an expression fits a shape, and turns its masks into positions.
fn steps_of(from: &[usize], parts: &[Selector]) -> Checked<Vec<Step>> {
    let used = parts.iter().map(taken).sum::<Checked<usize>>()?;
    let is_ellipsis = |part: &&Selector| matches!(part, Selector::Basic(Index::Ellipsis));
    if 1 < parts.iter().filter(is_ellipsis).count() {
        let text = "an index can only have a single ellipsis ('...')".to_owned();
        return Err(GraphError::Indices(text));
    }
    if from.len() < used {
        let rank = from.len();
        let text =
            format!("too many indices for array: array is {rank}-dimensional, but {used} were indexed");
        return Err(GraphError::Indices(text));
    }
    let (mut steps, mut axis) = (Vec::new(), 0);
    for part in parts {
        match part {
            Selector::Mask(mask) => steps.extend(positions_of(mask, from, axis)?),
            Selector::Positions(positions) => steps.push(Step::Positions(whole(positions)?)),
            Selector::Basic(index) => steps.push(Step::Basic(*index)),
        }
        axis += if is_ellipsis(&part) { from.len() - used } else { taken(part)? };
    }
    Ok(steps)
}

/// Positions as int64.
fn whole(positions: &Tensor) -> Checked<Tensor> {
    let reason = |error: crate::Error| error.cause().clone();
    let meta = positions.meta().map_err(reason)?;
    // An empty list is of float64 in NumPy, and taken all the same.
    if Kind::Float <= meta.dtype.kind() && meta.shape != [0] {
        let text = "arrays used as indices must be of integer (or boolean) type".to_owned();
        return Err(GraphError::Indices(text));
    }
    Ok(cast(positions, DType::I64))
}

/// The coordinates of the true elements of a mask on the axes from `axis` on, one step for each of its axes.
fn positions_of(mask: &Tensor, from: &[usize], axis: usize) -> Checked<Vec<Step>> {
    let reason = |error: crate::Error| error.cause().clone();
    let shape = mask.shape().map_err(reason)?;
    let own = &from[axis..axis + shape.len()];
    if !shape.iter().zip(own).all(|(&a, &b)| agree(a, b)) {
        return Err(GraphError::Mask { shape: from.to_vec(), mask: shape.to_vec() });
    }
    if shape.is_empty() {
        return Ok(vec![Step::OnNewAxis(mask.reshape(&[1]).flatnonzero())]);
    }
    Ok(mask.nonzero().map_err(reason)?.into_iter().map(Step::Positions).collect())
}

/// Splits an expression into its basic part and positions. A coordinate beside positions is one of them.
///
/// # Errors
/// `IndexError` for an expression that does not fit the shape, or positions that do not broadcast.
pub(crate) fn resolve(from: &[usize], parts: &[Selector]) -> Checked<Resolved> {
    let steps = steps_of(from, parts)?;
    let used = |step: &Step| match step {
        Step::Basic(Index::At(_) | Index::Slice { .. }) | Step::Positions(_) => 1,
        _ => 0,
    };
    let rest = from.len() - steps.iter().map(used).sum::<usize>();
    let (mut basic, mut found, mut axis) = (Vec::new(), Vec::new(), 0);
    let (mut beside, mut last) = (true, None);
    for (at, step) in steps.into_iter().enumerate() {
        let (index, positions) = match step {
            Step::Basic(Index::At(coordinate)) => (Index::from(..), Tensor::number(coordinate)),
            Step::Positions(positions) => (Index::from(..), positions),
            Step::OnNewAxis(positions) => (Index::NewAxis, positions),
            Step::Basic(index) => {
                basic.push(index);
                axis += if index == Index::Ellipsis { rest } else { 1 };
                continue;
            }
        };
        beside &= last.is_none_or(|last: usize| last + 1 == at);
        last = Some(at);
        basic.push(index);
        found.push((axis, positions));
        axis += 1;
    }
    let reason = |error: crate::Error| error.cause().clone();
    let shapes = found.iter().map(|(_, positions)| positions.shape().map_err(reason));
    let shapes = shapes.collect::<Checked<Vec<&[usize]>>>()?;
    let shape = broadcast("getitem", &shapes).map_err(|_| {
        let shapes: Vec<String> = shapes.iter().map(|shape| shape_text(shape)).collect();
        let text = "shape mismatch: indexing arrays could not be broadcast together with shapes";
        GraphError::Indices(format!("{text} {}", shapes.join(" ")))
    })?;
    // Sizes that are not known are those of a sum.
    let zeros = found.iter().map(|(_, positions)| positions.multiply(0));
    let zeros = zeros.reduce(|sum, zeros| sum.add(zeros)).filter(|_| !is_known(&shape));
    let wide = |positions: Tensor| match &zeros {
        None => positions.broadcast_to(&shape),
        Some(zeros) => positions.add(zeros),
    };
    let positions = found.into_iter().map(|(axis, positions)| (axis, wide(positions)));
    Ok(Resolved { basic, positions: positions.collect(), beside })
}

impl Tensor {
    /// NumPy's `x[..]` with positions and masks: the part of this tensor that an index expression selects;
    /// any dtype.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array, selectors};
    /// let x = arange(12).reshape(&[3, 4]);
    /// let (rows, columns) = (array([0i64, 2]), array([3i64, -4]));
    /// assert_eq!(x.select(&selectors![&rows, &columns]).to_vec::<i64>()?, [3, 8]);
    /// assert_eq!(x.select(&selectors![1.., &columns]).shape()?, [2, 2]);
    /// assert_eq!(x.select(&selectors![0, x.get(&[0.into()]).greater(1)]).to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `IndexError` for too many parts, masks of another shape, or positions out of range; the last is found
    /// when the program runs.
    #[track_caller]
    pub fn select(&self, parts: &[Selector]) -> Tensor {
        if let Some(basic) = basic_only(parts) {
            return self.get(&basic);
        }
        if let [Selector::Mask(mask)] = parts {
            return self.filter(mask);
        }
        let from = carry!(self.shape());
        let resolved = carry!(resolve(from, parts), self);
        let part = self.get(&resolved.basic);
        let taken: Vec<&Tensor> = resolved.positions.iter().map(|(_, positions)| positions).collect();
        let axes: Vec<usize> = resolved.positions.iter().map(|(axis, _)| *axis).collect();
        part.taken_on(&axes, &taken, resolved.beside)
    }

    /// The elements at positions of one shape on several axes; the axes of the positions come first, or in
    /// the place of the first of the axes.
    #[track_caller]
    pub(crate) fn taken_on(&self, axes: &[usize], positions: &[&Tensor], in_place: bool) -> Tensor {
        let from = carry!(self.shape());
        let shape = carry!(positions[0].shape());
        let inputs: Vec<&Tensor> = std::iter::once(self).chain(positions.iter().copied()).collect();
        if !inputs.iter().all(|input| input.is_known().unwrap_or(true)) {
            let rest = (0..from.len()).filter(|axis| !axes.contains(axis)).map(|axis| from[axis]);
            let mut known: Vec<usize> = rest.collect();
            let at = if in_place { axes[0] } else { 0 };
            known.splice(at..at, shape.iter().copied());
            let meta = carry!(self.meta_with(known));
            let later = axes.to_vec();
            return late("getitem", (axes, in_place), meta, &inputs, move |x| {
                x[0].taken_on(&later, &x[1..].iter().collect::<Vec<_>>(), in_place)
            });
        }
        if let [axis] = axes {
            let taken = self.take_at(positions[0], *axis as i64);
            let rank = shape.len() as i64;
            let (from, to): (Vec<i64>, Vec<i64>) =
                ((0..rank).map(|i| *axis as i64 + i).collect(), (0..rank).collect());
            return if in_place { taken } else { taken.moveaxes(&from, &to) };
        }
        let extents: Vec<usize> = axes.iter().map(|&axis| from[axis]).collect();
        let flat = Tensor::apply(FlatPositions { extents: extents.clone() }, positions);
        let rows = self.in_front(axes, &extents);
        let taken = rows.take_at(&flat, 0);
        let (first, rank) = (axes[0] as i64, shape.len() as i64);
        if in_place {
            taken.moveaxes(&(0..rank).collect::<Vec<_>>(), &(first..first + rank).collect::<Vec<_>>())
        } else {
            taken
        }
    }

    /// The axes moved to the front and flattened into one.
    #[track_caller]
    pub(crate) fn in_front(&self, axes: &[usize], extents: &[usize]) -> Tensor {
        let from: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        let moved = self.moveaxes(&from, &(0..axes.len() as i64).collect::<Vec<_>>());
        let rows: usize = extents.iter().product();
        let rest = carry!(moved.shape())[axes.len()..].iter().map(|&extent| extent as i64);
        moved.reshape(&std::iter::once(rows as i64).chain(rest).collect::<Vec<_>>())
    }

    /// NumPy's `take`: the parts of this tensor at positions along an axis, of any integer dtype and shape;
    /// negative ones count from the end. (.., n, ..) and (i, j) to (.., i, j, ..), any dtype.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array};
    /// assert_eq!(arange(5).take_at(&array([4i64, 0, -1]), 0).to_vec::<i64>()?, [4, 0, 4]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis, `IndexError` if positions are no integers; when the program
    /// runs, for positions out of range.
    ///
    /// # Distributed
    /// A task takes from all of the axis if that has up to 2^20 elements. Else positions are counted first,
    /// and each chunk gives what is taken from it.
    #[track_caller]
    pub fn take_at(&self, positions: &Tensor, axis: i64) -> Tensor {
        let from = carry!(self.shape());
        let axis = carry!(normalize_axis(axis, from.len()), self);
        let positions = carry!(whole(positions), self, positions);
        let shape = carry!(positions.shape());
        if !is_known(from) || !is_known(shape) {
            let known = [&from[..axis], shape, &from[axis + 1..]].concat();
            let meta = carry!(self.meta_with(known));
            return late("take", axis, meta, &[self, &positions], move |x| x[0].take_at(&x[1], axis as i64));
        }
        if from[axis] == 0 && !shape.contains(&0) {
            let text = "cannot do a non-empty take from an empty axes.".to_owned();
            return Tensor::refused(GraphError::Indices(text), &[self, &positions]);
        }
        if shape.is_empty() {
            let one = self.take_at(&positions.reshape(&[1]), axis as i64);
            return one.squeeze(Some(&[axis as i64]));
        }
        if from[axis] <= LINE_ELEMENTS_MAX {
            return Tensor::apply(Take { axis }, &[self, &positions]);
        }
        let rows = self.moveaxis(axis as i64, 0);
        let taken = Tensor::apply(Gather::new(axis), &[&rows, &positions.ravel()]);
        let rest = carry!(rows.shape())[1..].iter();
        let wide: Vec<i64> = shape.iter().chain(rest).map(|&extent| extent as i64).collect();
        let rank = shape.len() as i64;
        let to: Vec<i64> = (0..rank).map(|i| axis as i64 + i).collect();
        taken.reshape(&wide).moveaxes(&(0..rank).collect::<Vec<_>>(), &to)
    }

    /// NumPy's `take_along_axis`: for each position the element there on the same line; other axes are
    /// broadcast. (.., n, ..) and (.., k, ..) to (.., k, ..), any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let x = arange(6).reshape(&[2, 3]);
    /// let last = x.argsort(1).get(&[(..).into(), (2..).into()]);
    /// assert_eq!(x.take_along_axis(&last, 1).to_vec::<i64>()?, [2, 5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`, `ValueError` for another number of axes, `IndexError` if positions are no integers; when
    /// the program runs, for positions out of range.
    #[track_caller]
    pub fn take_along_axis(&self, positions: &Tensor, axis: i64) -> Tensor {
        let from = carry!(self.shape());
        let axis = carry!(normalize_axis(axis, from.len()), self);
        let positions = carry!(whole(positions), self, positions);
        let (x, positions) = carry!(aligned("take_along_axis", self, &positions, axis), self, &positions);
        let (from, shape) = (carry!(x.shape()), carry!(positions.shape()).to_vec());
        if !is_known(from) || !is_known(&shape) {
            let meta = carry!(self.meta_with(shape));
            return late("take_along_axis", axis, meta, &[&x, &positions], move |x| {
                x[0].take_along_axis(&x[1], axis as i64)
            });
        }
        if from.len() == 1 {
            return x.take_at(&positions, 0);
        }
        if from[axis] <= LINE_ELEMENTS_MAX {
            return Tensor::apply(TakeAlong { axis }, &[&x, &positions]);
        }
        let flat = flat_along(&shape, &positions, axis, from);
        x.ravel().take_at(&flat, 0)
    }
}

/// Positions along an axis as positions in the flattened tensor of shape `from`.
#[track_caller]
pub(crate) fn flat_along(shape: &[usize], positions: &Tensor, axis: usize, from: &[usize]) -> Tensor {
    let mut coordinates = Vec::with_capacity(shape.len());
    for other in 0..shape.len() {
        coordinates.push(if other == axis { positions.clone() } else { position_along(shape, other) });
    }
    let coordinates: Vec<&Tensor> = coordinates.iter().collect();
    Tensor::apply(FlatPositions { extents: from.to_vec() }, &coordinates)
}

/// Two tensors with all axes but one broadcast together.
#[track_caller]
pub(crate) fn aligned(
    function: &'static str,
    x: &Tensor,
    other: &Tensor,
    axis: usize,
) -> Checked<(Tensor, Tensor)> {
    let reason = |error: crate::Error| error.cause().clone();
    let (from, to) = (x.shape().map_err(reason)?, other.shape().map_err(reason)?);
    if from.len() != to.len() {
        let text = format!("{function}: `indices` and `arr` must have the same number of dimensions");
        return Err(GraphError::Value(text));
    }
    let without = |shape: &[usize]| [&shape[..axis], &[1], &shape[axis + 1..]].concat();
    let common = broadcast(function, &[&without(from), &without(to)])?;
    let wide = |tensor: &Tensor, shape: &[usize]| {
        let mut whole = common.clone();
        whole[axis] = shape[axis];
        // Extents that are not known yet are broadcast when they are.
        if whole == shape || !is_known(&whole) { tensor.clone() } else { tensor.broadcast_to(&whole) }
    };
    Ok((wide(x, from), wide(other, to)))
}
