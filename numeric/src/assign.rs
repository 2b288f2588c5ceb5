//! Assignment to parts of tensors. Tensors do not change: each function gives a new one.

use crate::advanced::{Selector, aligned, basic_only, flat_along, resolve, tensors, text, with_tensors};
use crate::create::{arange, position_along};
use crate::elementwise::where_;
use crate::index::{Index, resolve as resolve_slice};
use crate::late::late;
use crate::manipulate::concatenate;
use crate::operand::{Operand, cast};
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::error::shape_text;
use tharsis_graph::ops::{AlongLine, FlatPositions, LINE_ELEMENTS_MAX, Require, Scatter};
use tharsis_graph::shape::{broadcast, normalize_axis};
use tharsis_kernels::DType;

/// A box of a tensor: along each axis the first coordinate, the distance to the next, and their number. Steps
/// are positive.
struct Region {
    axes: Vec<(usize, usize, usize)>,
}

impl Tensor {
    /// NumPy's `x[..] = values` as a new tensor: this one with `values`, which are broadcast, in the part
    /// that an index expression selects. Of positions that are given several times the last value counts. The
    /// dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array, selectors};
    /// let x = arange(5);
    /// assert_eq!(x.set(&selectors![1..3], 9).to_vec::<i64>()?, [0, 9, 9, 3, 4]);
    /// assert_eq!(x.set(&selectors![x.greater(2)], -1).to_vec::<i64>()?, [0, 1, 2, -1, -1]);
    /// let positions = array([4i64, 0, 4]);
    /// assert_eq!(x.set(&selectors![positions], array([7i64, 8, 9])).to_vec::<i64>()?, [8, 1, 2, 3, 9]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::select`]; `ValueError` if the values do not broadcast to the part, `OverflowError` for a
    /// number that does not fit an integer dtype.
    ///
    /// # Distributed
    /// Parts given by slices and masks are chosen chunk by chunk. Values at positions are dealt to the chunks
    /// that hold them.
    #[track_caller]
    pub fn set(&self, parts: &[Selector], values: impl Into<Operand>) -> Tensor {
        let values = cast(&values.into().beside(carry!(self.dtype())), carry!(self.dtype()));
        carry!(values.check());
        let inputs: Vec<&Tensor> = [self, &values].into_iter().chain(tensors(parts)).collect();
        if !inputs.iter().all(|input| input.is_known().unwrap_or(true)) {
            let (meta, later) = (carry!(self.meta()).clone(), parts.to_vec());
            return late("setitem", text(parts), meta, &inputs, move |x| {
                x[0].set(&with_tensors(&later, &x[2..]), &x[1])
            });
        }
        if let Some(basic) = basic_only(parts) {
            return self.set_basic(&basic, &values);
        }
        if let [Selector::Mask(mask)] = parts
            && let Some(chosen) = self.set_where(mask, &values)
        {
            return chosen;
        }
        let resolved = carry!(resolve(carry!(self.shape()), parts), self);
        let part = self.get(&resolved.basic);
        let taken: Vec<&Tensor> = resolved.positions.iter().map(|(_, positions)| positions).collect();
        let axes: Vec<usize> = resolved.positions.iter().map(|(axis, _)| *axis).collect();
        let changed = part.set_on(&axes, &taken, resolved.beside, &values);
        self.set_basic(&resolved.basic, &changed)
    }

    /// The values where a mask is true, if they can be told without knowing how often it is.
    #[track_caller]
    fn set_where(&self, mask: &Tensor, values: &Tensor) -> Option<Tensor> {
        let (from, chosen, given) = (self.shape().ok()?, mask.shape().ok()?, values.shape().ok()?);
        let rest = from.len().checked_sub(chosen.len())?;
        let fits = chosen == &from[..chosen.len()];
        let lead = given.len().saturating_sub(rest);
        if !fits || chosen.is_empty() || given[..lead].iter().any(|&extent| extent != 1) {
            return None;
        }
        let values = values.squeeze(Some(&(0..lead as i64).collect::<Vec<_>>()));
        let behind: Vec<i64> = (0..rest as i64).map(|i| chosen.len() as i64 + i).collect();
        // Values are broadcast to the rest of the axes first, so that they cannot widen the result.
        let values = values.broadcast_to(&from[chosen.len()..]);
        Some(where_(&mask.expand_all_dims(&behind), &values, self))
    }

    /// `values` put at positions of one shape on several axes; their axes come first in the values, or in the
    /// place of the first of the axes.
    #[track_caller]
    fn set_on(&self, axes: &[usize], positions: &[&Tensor], in_place: bool, values: &Tensor) -> Tensor {
        let from = carry!(self.shape());
        let inputs: Vec<&Tensor> = [self, values].into_iter().chain(positions.iter().copied()).collect();
        if !inputs.iter().all(|input| input.is_known().unwrap_or(true)) {
            let (meta, later) = (carry!(self.meta()).clone(), axes.to_vec());
            return late("setitem", (axes, in_place), meta, &inputs, move |x| {
                x[0].set_on(&later, &x[2..].iter().collect::<Vec<_>>(), in_place, &x[1])
            });
        }
        let shape = carry!(positions[0].shape());
        if let Some(&axis) = axes.iter().find(|&&axis| from[axis] == 0)
            && !shape.contains(&0)
        {
            return Tensor::refused(GraphError::Index { index: 0, axis, extent: 0 }, &inputs);
        }
        let rest: Vec<usize> =
            (0..from.len()).filter(|axis| !axes.contains(axis)).map(|axis| from[axis]).collect();
        let at = if in_place { axes[0] } else { 0 };
        let mut target = rest.clone();
        target.splice(at..at, shape.iter().copied());
        let wide = carry!(spread(values, &target), self, values);
        // The axes of the positions to the front, and flattened.
        let rank = shape.len() as i64;
        let places: Vec<i64> = (0..rank).map(|i| at as i64 + i).collect();
        let count: usize = shape.iter().product();
        let rows: Vec<i64> = std::iter::once(count).chain(rest).map(|extent| extent as i64).collect();
        let wide = wide.moveaxes(&places, &(0..rank).collect::<Vec<_>>()).reshape(&rows);
        let extents: Vec<usize> = axes.iter().map(|&axis| from[axis]).collect();
        let flat = match positions {
            [only] => only.ravel(),
            several => Tensor::apply(FlatPositions { extents: extents.clone() }, several).ravel(),
        };
        let moved: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        let front: Vec<i64> = (0..axes.len() as i64).collect();
        let changed = self.in_front(axes, &extents).put_rows(&flat, &wide, axes[0]);
        let behind = carry!(changed.shape())[1..].iter();
        let whole: Vec<i64> = extents.iter().chain(behind).map(|&extent| extent as i64).collect();
        changed.reshape(&whole).moveaxes(&front, &moved)
    }

    /// The rows of this tensor, with others put at positions: (n, ..), (k,), (k, ..).
    #[track_caller]
    fn put_rows(&self, positions: &Tensor, rows: &Tensor, axis: usize) -> Tensor {
        let (extent, count) = (carry!(self.shape())[0], carry!(positions.shape())[0]);
        if extent.max(count) <= LINE_ELEMENTS_MAX {
            Tensor::apply(AlongLine { axis: 0, own: false }, &[self, positions, rows])
        } else {
            Tensor::apply(Scatter::new(axis), &[self, positions, rows])
        }
    }

    /// `values` in the part that a basic index expression selects.
    #[track_caller]
    fn set_basic(&self, indices: &[Index], values: &Tensor) -> Tensor {
        let from = carry!(self.shape());
        let part = self.get(indices);
        let target = carry!(part.shape());
        if carry!(values.shape()).is_empty() {
            let region = carry!(region_of(from, indices), self);
            return where_(&region.inside(from), values, self);
        }
        let values = carry!(spread(values, target), self, values);
        let (region, values) = carry!(boxed(from, indices, &values), self);
        if region.axes.iter().any(|&(_, _, count)| count == 0) {
            // Nothing is put there, if the values themselves exist.
            return match values.check() {
                Ok(_) => self.clone(),
                Err(error) => Tensor::from(error),
            };
        }
        self.paste(&region, &self.filled(&region, &values), 0)
    }

    /// The contiguous box around a region, with values in place of its elements.
    #[track_caller]
    fn filled(&self, region: &Region, values: &Tensor) -> Tensor {
        if region.axes.iter().all(|&(_, step, _)| step == 1) {
            return values.clone();
        }
        let around: Vec<Index> = region.axes.iter().map(|axis| Index::from(axis_range(axis))).collect();
        let old = self.get(&around);
        let mut wide = values.clone();
        for (axis, &(_, step, count)) in region.axes.iter().enumerate().filter(|(_, axis)| 1 < axis.1) {
            // Each value `step` times; of the copies only the first is in the region.
            let mut shape = carry!(wide.shape()).to_vec();
            shape.insert(axis + 1, step);
            let mut flat: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
            flat.splice(axis..axis + 2, [(count * step) as i64]);
            let copies = wide.expand_dims(axis as i64 + 1).broadcast_to(&shape).reshape(&flat);
            let mut cut = vec![Index::from(..); axis];
            cut.push(Index::from(..((count - 1) * step + 1) as i64));
            wide = copies.get(&cut);
        }
        let steps = Region { axes: region.axes.iter().map(|&(_, step, count)| (0, step, count)).collect() };
        where_(&steps.inside(carry!(old.shape())), &wide, &old)
    }

    /// This tensor with a contiguous box of others, from `axis` on.
    #[track_caller]
    fn paste(&self, region: &Region, values: &Tensor, axis: usize) -> Tensor {
        let from = carry!(self.shape());
        let whole = |at: usize| {
            let range = axis_range(&region.axes[at]);
            range.start == 0 && range.end == from[at] as i64
        };
        let Some(axis) = (axis..from.len()).find(|&at| !whole(at)) else { return values.clone() };
        let range = axis_range(&region.axes[axis]);
        let part = |range: std::ops::Range<i64>| {
            let mut index = vec![Index::from(..); axis];
            index.push(Index::from(range));
            self.get(&index)
        };
        let end = from[axis] as i64;
        let middle = part(range.clone()).paste(region, values, axis + 1);
        let parts = [part(0..range.start), middle, part(range.end..end)];
        concatenate(&parts.iter().collect::<Vec<_>>(), axis as i64)
    }

    /// NumPy's `put` as a new tensor: values at positions in the flattened tensor, repeated as often as there
    /// are positions. The shape and the dtype stay.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array};
    /// let x = arange(4).reshape(&[2, 2]);
    /// assert_eq!(x.put(&array([3i64, 0, 1]), array([7i64, 8])).to_vec::<i64>()?, [8, 7, 2, 7]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::set`].
    #[track_caller]
    pub fn put(&self, positions: &Tensor, values: impl Into<Operand>) -> Tensor {
        let values = values.into().beside(carry!(self.dtype()));
        let inputs = [self, positions, &values];
        if !inputs.iter().all(|input| input.is_known().unwrap_or(true)) {
            let meta = carry!(self.meta()).clone();
            return late("put", (), meta, &inputs, |x| x[0].put(&x[1], &x[2]));
        }
        let (positions, values) = (positions.ravel(), values.ravel());
        let (count, given) = (carry!(positions.size()) as usize, carry!(values.size()) as usize);
        if count == 0 || given == 0 {
            return self.clone();
        }
        let values = match given {
            1 => values,
            _ => values.take_at(&arange(count).remainder(given as i64), 0),
        };
        let shape: Vec<i64> = carry!(self.shape()).iter().map(|&extent| extent as i64).collect();
        self.ravel().set(&[Selector::Positions(positions)], values).reshape(&shape)
    }

    /// NumPy's `put_along_axis` as a new tensor: for each position a value there on the same line; other axes
    /// and values are broadcast. The dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::{Axes, arange};
    /// let x = arange(4).reshape(&[2, 2]);
    /// let largest = x.argmax(Axes::from(1).keepdims());
    /// assert_eq!(x.put_along_axis(&largest, 0, 1).to_vec::<i64>()?, [0, 0, 2, 0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::take_along_axis`] and [`Tensor::set`].
    #[track_caller]
    pub fn put_along_axis(&self, positions: &Tensor, values: impl Into<Operand>, axis: i64) -> Tensor {
        let dtype = carry!(self.dtype());
        let values = cast(&values.into().beside(dtype), dtype);
        let from = carry!(self.shape());
        let axis = carry!(normalize_axis(axis, from.len()), self);
        if !carry!(positions.dtype()).is_integer() {
            let text = "arrays used as indices must be of integer (or boolean) type".to_owned();
            return Tensor::refused(GraphError::Indices(text), &[self, positions]);
        }
        let positions = cast(positions, DType::I64);
        let (_, positions) = carry!(aligned("put_along_axis", self, &positions, axis), self, &positions);
        let inputs = [self, &positions, &values];
        if !inputs.iter().all(|input| input.is_known().unwrap_or(true)) {
            let meta = carry!(self.meta()).clone();
            return late("put_along_axis", axis, meta, &inputs, move |x| {
                x[0].put_along_axis(&x[1], &x[2], axis as i64)
            });
        }
        let shape = carry!(positions.shape());
        if (0..from.len()).any(|at| at != axis && shape[at] != from[at]) {
            let shapes = vec![from.to_vec(), shape.to_vec()];
            let reason = "the positions are for more lines than there are".to_owned();
            return Tensor::refused(
                GraphError::Shape { function: "put_along_axis", shapes, reason },
                &[self, &positions],
            );
        }
        let values = carry!(spread(&values, shape), self, &values);
        if from[axis].max(shape[axis]) <= LINE_ELEMENTS_MAX {
            return Tensor::apply(AlongLine { axis, own: true }, &[self, &positions, &values]);
        }
        let flat = flat_along(shape, &positions, axis, from).ravel();
        let whole: Vec<i64> = from.iter().map(|&extent| extent as i64).collect();
        self.ravel().put_rows(&flat, &values.ravel(), axis).reshape(&whole)
    }

    /// NumPy's `putmask` as a new tensor: where a mask of this shape is true, the value whose place is that
    /// of the element in the flattened tensor, values repeated. The dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array};
    /// let x = arange(4);
    /// assert_eq!(x.putmask(&x.greater(0), array([7i64, 8])).to_vec::<i64>()?, [0, 8, 7, 8]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the mask has another number of elements.
    #[track_caller]
    pub fn putmask(&self, mask: &Tensor, values: impl Into<Operand>) -> Tensor {
        let values = values.into().beside(carry!(self.dtype()));
        self.put_masked("putmask", mask, &values, |x, _| arange(carry!(x.size()) as usize))
    }

    /// NumPy's `place` as a new tensor: the first true element of a mask of this shape gets the first value,
    /// the second the second, and so on, values repeated. The dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::{arange, array};
    /// let x = arange(4);
    /// assert_eq!(x.place(&x.greater(0), array([7i64, 8])).to_vec::<i64>()?, [0, 7, 8, 7]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::putmask`].
    #[track_caller]
    pub fn place(&self, mask: &Tensor, values: impl Into<Operand>) -> Tensor {
        let values = values.into().beside(carry!(self.dtype()));
        self.put_masked(PLACE, mask, &values, |_, mask| {
            cast(mask, DType::I64).cumsum(0).subtract(1).maximum(0)
        })
    }

    /// The values at places that depend on the element and the mask, where the mask is true.
    #[track_caller]
    fn put_masked(
        &self,
        name: &'static str,
        mask: &Tensor,
        values: &Tensor,
        place: fn(&Tensor, &Tensor) -> Tensor,
    ) -> Tensor {
        let inputs = [self, mask, values];
        if !inputs.iter().all(|input| input.is_known().unwrap_or(true)) {
            let meta = carry!(self.meta()).clone();
            return late(name, (), meta, &inputs, move |x| x[0].put_masked(name, &x[1], &x[2], place));
        }
        let (count, given) = (carry!(self.size()), carry!(values.size()));
        if carry!(mask.size()) != count {
            let text = format!("{name}: mask and data must be the same size");
            return Tensor::refused(GraphError::Value(text), &inputs);
        }
        let flat = cast(mask, DType::Bool).ravel();
        if given == 0 && name == PLACE {
            let message = "Cannot insert from an empty array!".to_owned();
            return Tensor::apply(Require { message }, &[self, &flat.any(..).logical_not()]);
        }
        if count == 0 || given == 0 {
            return self.clone();
        }
        let dtype = carry!(self.dtype());
        let values = cast(values, dtype).ravel();
        let chosen = match given {
            1 => values,
            _ => values.take_at(&place(self, &flat).remainder(given as i64), 0),
        };
        let shape: Vec<i64> = carry!(self.shape()).iter().map(|&extent| extent as i64).collect();
        where_(&flat, &chosen, self.ravel()).reshape(&shape)
    }
}

/// The name of [`Tensor::place`], which refuses to do nothing where [`Tensor::putmask`] does so.
const PLACE: &str = "place";

fn axis_range(&(start, step, count): &(usize, usize, usize)) -> std::ops::Range<i64> {
    let reach = if count == 0 { 0 } else { (count - 1) * step + 1 };
    start as i64..(start + reach) as i64
}

impl Region {
    /// Whether each element of a tensor of this shape is in the region; the shape broadcasts to that.
    #[track_caller]
    fn inside(&self, shape: &[usize]) -> Tensor {
        let mut inside = Tensor::number(true);
        for (axis, region) in self.axes.iter().enumerate() {
            let &(start, step, _) = region;
            let range = axis_range(region);
            if range == (0..shape[axis] as i64) && step == 1 {
                continue;
            }
            let mut alone = vec![1; shape.len()];
            alone[axis] = shape[axis];
            let at = position_along(&alone, axis);
            let mut along = at.greater_equal(range.start).logical_and(at.less(range.end));
            if 1 < step {
                along = along.logical_and(at.subtract(start as i64).remainder(step as i64).equal(0));
            }
            inside = inside.logical_and(&along);
        }
        inside
    }
}

/// The region that a basic index expression selects; steps backwards are turned around.
fn region_of(from: &[usize], indices: &[Index]) -> Result<Region, GraphError> {
    let used = indices.iter().filter(|index| matches!(index, Index::At(_) | Index::Slice { .. })).count();
    let rest = from.len().saturating_sub(used);
    let mut axes = Vec::with_capacity(from.len());
    let implied = if indices.contains(&Index::Ellipsis) { &[][..] } else { &[Index::Ellipsis] };
    for index in indices.iter().chain(implied) {
        let axis = axes.len();
        match *index {
            Index::NewAxis => {}
            Index::Ellipsis => axes.extend(from[axis..axis + rest].iter().map(|&extent| (0, 1, extent))),
            Index::At(at) => {
                let start = if at < 0 { at + from[axis] as i64 } else { at };
                axes.push((start.max(0) as usize, 1, 1));
            }
            Index::Slice { start, stop, step } => {
                let (start, count) = resolve_slice(from[axis], start, stop, step)?;
                let distance = step.unsigned_abs() as usize;
                let first = if step < 0 && count != 0 { start - (count - 1) * distance } else { start };
                // The distance does not matter for fewer than two.
                axes.push((first, if count < 2 { 1 } else { distance }, count));
            }
        }
    }
    Ok(Region { axes })
}

/// The region that a basic index expression selects, and values of the shape of the selection in the shape
/// and order of the region.
#[track_caller]
fn boxed(from: &[usize], indices: &[Index], values: &Tensor) -> Result<(Region, Tensor), GraphError> {
    let region = region_of(from, indices)?;
    let (mut picks, mut axis) = (Vec::new(), 0);
    let used = indices.iter().filter(|index| matches!(index, Index::At(_) | Index::Slice { .. })).count();
    for index in indices {
        match *index {
            Index::NewAxis => picks.push(Index::At(0)),
            Index::At(_) => picks.push(Index::NewAxis),
            Index::Ellipsis => {
                let rest = from.len() - used;
                picks.extend(vec![Index::from(..); rest]);
                axis += rest;
                continue;
            }
            Index::Slice { step, .. } => {
                picks.push(Index::Slice { start: None, stop: None, step: if step < 0 { -1 } else { 1 } });
            }
        }
        axis += usize::from(*index != Index::NewAxis);
    }
    let _ = axis;
    Ok((region, values.get(&picks)))
}

/// Values broadcast to the shape of the part that they replace; leading axes of extent 1 are left out.
#[track_caller]
fn spread(values: &Tensor, target: &[usize]) -> Result<Tensor, GraphError> {
    let reason = |error: crate::Error| error.cause().clone();
    let given = values.shape().map_err(reason)?;
    let lead = given.len().saturating_sub(target.len());
    let refused = || {
        let (from, to) = (shape_text(given), shape_text(target));
        GraphError::Value(format!("could not broadcast input array from shape {from} into shape {to}"))
    };
    if given[..lead].iter().any(|&extent| extent != 1) {
        return Err(refused());
    }
    let both = broadcast("setitem", &[&given[lead..], target]).map_err(|_| refused())?;
    if both != target {
        return Err(refused());
    }
    Ok(values.squeeze(Some(&(0..lead as i64).collect::<Vec<_>>())).broadcast_to(target))
}
