//! Coordinates of elements and positions in flattened tensors, and choices between tensors.

use crate::elementwise::where_;
use crate::error::{Error, Result};
use crate::operand::{Operand, cast};
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::Require;
use tharsis_graph::shape::element_count;
use tharsis_kernels::DType;

/// NumPy's `ravel_multi_index`: positions in a flattened tensor of a shape, from coordinates on each of its
/// axes; shapes are broadcast; int64.
///
/// ```
/// use tharsis_numeric::{array, coordinates::ravel_multi_index};
/// let at = ravel_multi_index(&[&array([0i64, 1]), &array([2i64, 0])], &[2, 3]);
/// assert_eq!(at.to_vec::<i64>()?, [2, 3]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for another number of axes, for a shape of more than 2^63 - 1 elements, or (when run) for a
/// coordinate out of range; `TypeError` unless they are integers.
#[track_caller]
pub fn ravel_multi_index(coordinates: &[&Tensor], shape: &[usize]) -> Tensor {
    if coordinates.len() != shape.len() || shape.is_empty() {
        let text = format!("parameter multi_index must be a sequence of length {}", shape.len());
        return Tensor::bad_value(text, coordinates);
    }
    let size = shape.iter().try_fold(1i64, |size, &extent| size.checked_mul(i64::try_from(extent).ok()?));
    if size.is_none() {
        let text = "invalid dims: array size defined by dims is larger than the maximum possible size.";
        return Tensor::bad_value(text, coordinates);
    }
    let mut flat = Tensor::number(0i64);
    let mut is_inside = Tensor::number(true);
    for (&along, &extent) in coordinates.iter().zip(shape) {
        let along = carry!(whole(along), along);
        is_inside = is_inside
            .logical_and(along.greater_equal(0).all(..))
            .logical_and(along.less(extent as i64).all(..));
        flat = flat.multiply(extent as i64).add(&along);
    }
    let message = "invalid entry in coordinates array".to_owned();
    Tensor::apply(Require { message }, &[&flat, &is_inside])
}

impl Tensor {
    /// NumPy's `unravel_index`: the coordinates on each axis of a shape, from positions in a flattened tensor
    /// of that shape; a tensor of this one's shape for each axis, int64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let at = array([2i64, 3]).unravel_index(&[2, 3])?;
    /// assert_eq!(at[0].to_vec::<i64>()?, [0, 1]);
    /// assert_eq!(at[1].to_vec::<i64>()?, [2, 0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `TypeError` unless positions are integers; `ValueError` when it runs if one is out of range.
    #[track_caller]
    pub fn unravel_index(&self, shape: &[usize]) -> Result<Vec<Tensor>> {
        let flat = whole(self)?;
        let count = i64::try_from(element_count(shape)).unwrap_or(i64::MAX);
        let is_inside = flat.greater_equal(0).all(..).logical_and(flat.less(count).all(..));
        let message = format!("index is out of bounds for array with size {count}");
        let mut rest = Tensor::apply(Require { message }, &[&flat, &is_inside]);
        let mut coordinates = Vec::with_capacity(shape.len());
        for (axis, &extent) in shape.iter().enumerate().rev() {
            // Positions in a shape without elements are refused; 1 avoids a remainder by zero.
            let extent = extent.max(1) as i64;
            coordinates.push(if axis == 0 { rest.clone() } else { rest.remainder(extent) });
            rest = rest.floor_divide(extent);
        }
        coordinates.reverse();
        Ok(coordinates)
    }

    /// NumPy's `choose`: each element says which of the choices gives the element of the result; shapes are
    /// broadcast; the common dtype of the choices.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([0i64, 1, 1]).choose_from(&[7.into(), array([1i64, 2, 3]).into()]);
    /// assert_eq!(x.to_vec::<i64>()?, [7, 2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` without choices, if shapes do not broadcast, or (when run) for a number that is none of a
    /// choice; `TypeError` unless the elements are integers.
    #[track_caller]
    pub fn choose_from(&self, choices: &[Operand]) -> Tensor {
        let number = carry!(whole(self), self);
        let is_inside =
            number.greater_equal(0).all(..).logical_and(number.less(choices.len() as i64).all(..));
        let message = "invalid entry in choice array".to_owned();
        let number = Tensor::apply(Require { message }, &[&number, &is_inside]);
        let conditions: Vec<Tensor> = (0..choices.len() as i64).map(|at| number.equal(at)).collect();
        let Some((last, first)) = choices.split_last() else {
            return Tensor::bad_value("0-length sequence.", &[self]);
        };
        let conditions: Vec<&Tensor> = conditions[..first.len()].iter().collect();
        let dtype = carry!(crate::dtypes::result_type(choices.iter().cloned()), self);
        let chosen = chosen(&conditions, first, last, dtype);
        // A single choice is broadcast to the shape of the numbers too.
        where_(&number.equal(0).logical_or(true), chosen, cast(&Tensor::number(0i64), dtype))
    }
}

/// NumPy's `select`: of each choice the elements where its condition is the first that is true, and `default`
/// where none is; shapes are broadcast; the common dtype.
///
/// ```
/// use tharsis_numeric::{arange, coordinates::select};
/// let x = arange(4);
/// let made = select(&[&x.less(1), &x.less(3)], &[7.into(), (&x * 10).into()], -1);
/// assert_eq!(made.to_vec::<i64>()?, [7, 10, 20, -1]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for another number of choices, none, or shapes that do not broadcast; `TypeError` unless
/// conditions are bool.
#[track_caller]
pub fn select(conditions: &[&Tensor], choices: &[Operand], default: impl Into<Operand>) -> Tensor {
    if conditions.len() != choices.len() {
        return Tensor::bad_value("list of cases must be same length as list of conditions", conditions);
    }
    if conditions.is_empty() {
        return Tensor::bad_value("select with an empty condition list is not possible", &[]);
    }
    for (at, condition) in conditions.iter().enumerate() {
        if carry!(condition.dtype()) != DType::Bool {
            let text = format!("invalid entry {at} in condlist: should be boolean ndarray");
            return Tensor::refused(GraphError::Type(text), &[condition]);
        }
    }
    let default = default.into();
    let all = choices.iter().chain([&default]).cloned();
    let dtype = carry!(crate::dtypes::result_type(all));
    chosen(conditions, choices, &default, dtype)
}

/// The first choice whose condition is true, or the default.
#[track_caller]
fn chosen(conditions: &[&Tensor], choices: &[Operand], default: &Operand, dtype: DType) -> Tensor {
    let of = |operand: &Operand| cast(&operand.clone().beside(dtype), dtype);
    let mut made = of(default);
    for (condition, choice) in conditions.iter().zip(choices).rev() {
        made = where_(condition, of(choice), made);
    }
    made
}

/// NumPy's `ix_`: positions on each axis of a tensor in shapes that broadcast to their grid; a mask stands
/// for the positions where it is true. Of n tensors each is in n axes, as long as it was on its own.
///
/// ```
/// use tharsis_numeric::{arange, coordinates::ix};
/// let grid = ix(&[&arange(2), &arange(3)])?;
/// assert_eq!((grid[0].shape()?, grid[1].shape()?), (&[2, 1][..], &[1, 3][..]));
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` unless each tensor has one axis.
#[track_caller]
pub fn ix(axes: &[&Tensor]) -> Result<Vec<Tensor>> {
    let rank = axes.len();
    let mut made = Vec::with_capacity(rank);
    for (at, axis) in axes.iter().enumerate() {
        if axis.ndim()? != 1 {
            return Err(Error::here(GraphError::Value("Cross index must be 1 dimensional".to_owned())));
        }
        let positions = match axis.dtype()? {
            DType::Bool => axis.flatnonzero(),
            _ => (*axis).clone(),
        };
        let others: Vec<i64> = (0..rank as i64).filter(|&other| other != at as i64).collect();
        made.push(positions.expand_all_dims(&others));
    }
    Ok(made)
}

/// Integers as int64.
#[track_caller]
fn whole(x: &Tensor) -> Result<Tensor> {
    match x.dtype()? {
        dtype if dtype.is_integer() => Ok(cast(x, DType::I64)),
        _ => Err(Error::here(GraphError::Type("only int indices permitted".to_owned()))),
    }
}
