//! Tensors made without other tensors.

use crate::elementwise::where_;
use crate::late::late;
use crate::native::Native;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::lower::View;
use tharsis_graph::ops::{Full, Indexed, Viewed};
use tharsis_graph::plan::AxisMap;
use tharsis_graph::shape::{check_shape, is_known};
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{DType, Kind, Scalar, promote};

/// NumPy's `array` of a list: a copy of the elements; (n,), in the dtype of their type.
///
/// ```
/// use tharsis_numeric::array;
/// assert_eq!((array([1.0, 2.0]) * 2.0).to_vec::<f64>()?, [2.0, 4.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
#[track_caller]
pub fn array<T: Native, const N: usize>(elements: [T; N]) -> Tensor {
    Tensor::from_elements(&[N], &elements.map(T::into_element))
}

/// NumPy's `full`: one number everywhere, in any shape and dtype.
///
/// ```
/// use tharsis_numeric::{DType, full};
/// assert_eq!(full(&[2], 7, DType::I64).to_vec::<i64>()?, [7, 7]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if the shape is too big.
#[track_caller]
pub fn full(shape: &[usize], value: impl Into<Scalar>, dtype: DType) -> Tensor {
    let value = value.into();
    carry!(check_shape(shape));
    Tensor::apply(Full { shape: shape.to_vec(), value, dtype }, &[])
}

/// NumPy's `zeros`: any shape; float64.
///
/// ```
/// use tharsis_numeric::zeros;
/// assert_eq!(zeros(&[2, 1]).to_vec::<f64>()?, [0.0, 0.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`full`].
#[track_caller]
pub fn zeros(shape: &[usize]) -> Tensor {
    full(shape, 0.0, DType::F64)
}

/// NumPy's `ones`: any shape; float64.
///
/// ```
/// use tharsis_numeric::ones;
/// assert_eq!(ones(&[2, 1]).to_vec::<f64>()?, [1.0, 1.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`full`].
#[track_caller]
pub fn ones(shape: &[usize]) -> Tensor {
    full(shape, 1.0, DType::F64)
}

/// NumPy's `arange(count)`: the whole numbers `0..count`; (count,), int64.
///
/// ```
/// use tharsis_numeric::arange;
/// assert_eq!(arange(3).to_vec::<i64>()?, [0, 1, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if there are too many.
#[track_caller]
pub fn arange(count: usize) -> Tensor {
    Tensor::apply(Indexed { shape: vec![count], map: IndexMap::Position }, &[])
}

/// NumPy's `arange(start, stop, step)`: numbers from `start` in steps of `step`, before `stop`; (n,), int64
/// if all three are integers, else float64.
///
/// ```
/// use tharsis_numeric::arange_step;
/// assert_eq!(arange_step(1, 8, 3).to_vec::<i64>()?, [1, 4, 7]);
/// assert_eq!(arange_step(1.0, 2.0, 0.5).to_vec::<f64>()?, [1.0, 1.5]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ZeroDivisionError` for a step of zero, `ValueError` if there are too many.
#[track_caller]
pub fn arange_step(start: impl Into<Scalar>, stop: impl Into<Scalar>, step: impl Into<Scalar>) -> Tensor {
    let (start, stop, step) = (start.into(), stop.into(), step.into());
    if step.to_f64() == 0.0 {
        let float = [start, stop, step].iter().any(|x| matches!(x, Scalar::Float(_)));
        let text = if float { "float division by zero" } else { "division by zero" };
        return Tensor::refused(GraphError::ZeroDivision(text.to_owned()), &[]);
    }
    let count = count_of_range(start, stop, step);
    if count.is_nan() {
        return Tensor::refused(GraphError::Value("arange: cannot compute length".to_owned()), &[]);
    }
    if count > tharsis_graph::shape::ELEMENTS_MAX as f64 {
        return Tensor::refused(GraphError::Value("Maximum allowed size exceeded".to_owned()), &[]);
    }
    let shape = vec![count.max(0.0) as usize];
    let float = |x: Scalar| matches!(x, Scalar::Float(_));
    if float(start) || float(stop) || float(step) {
        // As NumPy: the step is the difference of the first two elements after rounding.
        let first = start.to_f64();
        let step = (first + step.to_f64()) - first;
        return Tensor::apply(Indexed { shape, map: IndexMap::Ramp { start: first, step } }, &[]);
    }
    let position = Tensor::apply(Indexed { shape, map: IndexMap::Position }, &[]);
    position.multiply(step).add(start)
}

/// Number of values from `start` in steps of `step`, before `stop`; not positive if there are none. Integers
/// are subtracted exactly: as floats, those beyond 2^53 would be rounded before the subtraction.
fn count_of_range(start: Scalar, stop: Scalar, step: Scalar) -> f64 {
    let whole = |number: Scalar| match number {
        Scalar::Int(number) => Some(i128::from(number)),
        Scalar::Unsigned(number) => Some(i128::from(number)),
        _ => None,
    };
    let distance = match (whole(start), whole(stop)) {
        (Some(start), Some(stop)) => (stop - start) as f64,
        _ => stop.to_f64() - start.to_f64(),
    };
    (distance / step.to_f64()).ceil()
}

/// NumPy's `linspace`: `count` numbers evenly spaced from `start` to `stop`, both included; (count,),
/// float64.
///
/// ```
/// use tharsis_numeric::linspace;
/// assert_eq!(linspace(0.0, 1.0, 3).to_vec::<f64>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if there are too many.
#[track_caller]
pub fn linspace(start: f64, stop: f64, count: usize) -> Tensor {
    linspace_endpoint(start, stop, count, true)
}

/// NumPy's `linspace(.., endpoint=..)`: as [`linspace`]; without `endpoint` the last number is one step
/// before `stop`.
///
/// ```
/// use tharsis_numeric::linspace_endpoint;
/// assert_eq!(linspace_endpoint(0.0, 1.0, 2, false).to_vec::<f64>()?, [0.0, 0.5]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`linspace`].
#[track_caller]
pub fn linspace_endpoint(start: f64, stop: f64, count: usize, endpoint: bool) -> Tensor {
    let steps = if endpoint { count.saturating_sub(1) } else { count };
    let position = arange(count).astype(DType::F64);
    if steps == 0 {
        return position.multiply(0.0).add(start);
    }
    let step = (stop - start) / steps as f64;
    let scaled = if step == 0.0 {
        position.divide(steps as f64).multiply(stop - start)
    } else {
        position.multiply(step)
    };
    let values = scaled.add(start);
    if !endpoint {
        return values;
    }
    where_(&arange(count).equal(steps as i64), stop, values)
}

/// NumPy's `linspace` between tensors, which are broadcast: (..) and (..) to (count, ..); float or complex.
///
/// ```
/// use tharsis_numeric::{array, create::linspace_between};
/// let lines = linspace_between(&array([0.0, 10.0]), &array([1.0, 20.0]), 3, true);
/// assert_eq!(lines.to_vec::<f64>()?, [0.0, 10.0, 0.5, 15.0, 1.0, 20.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if the shapes do not broadcast, or if there are too many.
#[track_caller]
pub fn linspace_between(start: &Tensor, stop: &Tensor, count: usize, endpoint: bool) -> Tensor {
    let inexact = |dtype: DType| if dtype.kind() < Kind::Float { DType::F64 } else { dtype };
    let dtype = promote(inexact(carry!(start.dtype())), inexact(carry!(stop.dtype())));
    let (start, stop) = (cast(start, dtype), cast(stop, dtype));
    let distance = stop.subtract(&start);
    let steps = if endpoint { count.saturating_sub(1) } else { count };
    let rank = carry!(distance.ndim()) as i64;
    let position = cast(&arange(count), dtype).expand_all_dims(&(1..=rank).collect::<Vec<_>>());
    if steps == 0 {
        return position.multiply(&distance).add(&start);
    }
    let step = distance.divide(steps as f64);
    let values =
        where_(&step.equal(0.0), position.divide(steps as f64).multiply(&distance), position.multiply(&step));
    let values = values.add(&start);
    if !endpoint {
        return values;
    }
    let last = arange(count).equal(steps as i64).expand_all_dims(&(1..=rank).collect::<Vec<_>>());
    where_(&last, &stop, &values)
}

/// NumPy's `logspace`: `count` powers of `base`, with exponents evenly spaced from `start` to `stop`;
/// (count,), float64.
///
/// ```
/// use tharsis_numeric::create::logspace;
/// assert_eq!(logspace(0.0, 2.0, 3, true, 10.0).to_vec::<f64>()?, [1.0, 10.0, 100.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`linspace`].
#[track_caller]
pub fn logspace(start: f64, stop: f64, count: usize, endpoint: bool, base: f64) -> Tensor {
    Tensor::number(base).power(linspace_endpoint(start, stop, count, endpoint))
}

/// NumPy's `geomspace`: `count` numbers from `start` to `stop`, each the same multiple of the one before;
/// (count,), float64. Both ends are exact.
///
/// ```
/// use tharsis_numeric::create::geomspace;
/// assert_eq!(geomspace(1.0, 8.0, 4, true).round(9).to_vec::<f64>()?, [1.0, 2.0, 4.0, 8.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if either end is zero or their signs differ, or if there are too many.
#[track_caller]
pub fn geomspace(start: f64, stop: f64, count: usize, endpoint: bool) -> Tensor {
    if start == 0.0 || stop == 0.0 {
        let text = "Geometric sequence cannot include zero".to_owned();
        return Tensor::refused(GraphError::Value(text), &[]);
    }
    let sign = start.signum();
    if sign != stop.signum() {
        let text = "geomspace: start and stop of different signs need complex numbers".to_owned();
        return Tensor::refused(GraphError::Value(text), &[]);
    }
    let (first, last) = ((start * sign).log10(), (stop * sign).log10());
    let between = logspace(first, last, count, endpoint, 10.0).multiply(sign);
    let position = arange(count);
    let exact = where_(&position.equal(0), start, between);
    if endpoint && 1 < count { where_(&position.equal(count as i64 - 1), stop, exact) } else { exact }
}

/// NumPy's `eye`: ones on a diagonal, zeros elsewhere; `offset` 0 is the main diagonal, positive ones lie
/// above it; (rows, columns), float64.
///
/// ```
/// use tharsis_numeric::eye;
/// assert_eq!(eye(2, 2, 0).to_vec::<f64>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if the shape is too big.
#[track_caller]
pub fn eye(rows: usize, columns: usize, offset: i64) -> Tensor {
    let row = position_along(&[rows, columns], 0);
    let column = position_along(&[rows, columns], 1);
    row.add(offset).equal(column).astype(DType::F64)
}

/// One part of NumPy's `indices`: for each element its coordinate along `axis`; int64.
///
/// ```
/// use tharsis_numeric::position_along;
/// assert_eq!(position_along(&[2, 2], 1).to_vec::<i64>()?, [0, 1, 0, 1]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if the shape is too big, `AxisError` if there is no such axis.
#[track_caller]
pub fn position_along(shape: &[usize], axis: usize) -> Tensor {
    carry!(check_shape(shape));
    if shape.len() <= axis {
        return Tensor::refused(GraphError::Axis { axis: axis as i64, rank: shape.len() }, &[]);
    }
    let along = arange(shape[axis]);
    let view = View { shape: shape.to_vec(), axes: vec![AxisMap::identity(axis)] };
    Tensor::apply(Viewed { name: "indices", view }, &[&along])
}

/// NumPy's `fromfunction`: `f` gets one int64 tensor of coordinates per axis.
///
/// ```
/// use tharsis_numeric::fromfunction;
/// let sums = fromfunction(&[2, 2], |at| &at[0] + &at[1]);
/// assert_eq!(sums.to_vec::<i64>()?, [0, 1, 1, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// Error of `f`.
#[track_caller]
pub fn fromfunction(shape: &[usize], f: impl FnOnce(&[Tensor]) -> Tensor) -> Tensor {
    // A closure has no caller to blame, so the shape is checked here; the axes exist.
    carry!(check_shape(shape));
    f(&(0..shape.len()).map(|axis| position_along(shape, axis)).collect::<Vec<_>>())
}

/// NumPy's `empty`: a tensor in any shape and dtype; its elements are zero.
///
/// ```
/// use tharsis_numeric::{DType, create::empty};
/// assert_eq!(empty(&[2, 3], DType::I8).shape()?, [2, 3]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`full`].
#[track_caller]
pub fn empty(shape: &[usize], dtype: DType) -> Tensor {
    full(shape, 0i64, dtype)
}

impl Tensor {
    /// NumPy's `empty_like`: a tensor of this one's shape and dtype; its elements are zero.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).empty_like().shape()?, [2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn empty_like(&self) -> Tensor {
        self.zeros_like()
    }

    /// NumPy's `copy`. Tensors do not change, so it is the same one.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).copy().to_vec::<i64>()?, [0, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn copy(&self) -> Tensor {
        self.clone()
    }

    /// NumPy's `array` of a number: no axes; bool, int64, float64 or complex128.
    ///
    /// ```
    /// use tharsis_numeric::Tensor;
    /// assert_eq!(Tensor::number(3).item()?.to_f64(), 3.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn number(value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        Tensor::apply(Full { shape: vec![], value, dtype: value.dtype() }, &[])
    }

    /// NumPy's `zeros_like`: zeros of this tensor's shape and dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).zeros_like().to_vec::<i64>()?, [0, 0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        let meta = carry!(self.meta()).clone();
        if !is_known(&meta.shape) {
            return late("zeros_like", (), meta, &[self], |x| x[0].zeros_like());
        }
        full(&meta.shape, 0i64, meta.dtype)
    }

    /// NumPy's `ones_like`: ones of this tensor's shape and dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).ones_like().to_vec::<i64>()?, [1, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        let meta = carry!(self.meta()).clone();
        if !is_known(&meta.shape) {
            return late("ones_like", (), meta, &[self], |x| x[0].ones_like());
        }
        full(&meta.shape, 1i64, meta.dtype)
    }

    /// NumPy's `full_like`: one number in this tensor's shape and dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).full_like(7).to_vec::<i64>()?, [7, 7]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        let meta = carry!(self.meta()).clone();
        if !is_known(&meta.shape) {
            return late("full_like", value, meta, &[self], move |x| x[0].full_like(value));
        }
        cast(&full(&meta.shape, value, meta.dtype), meta.dtype)
    }
}
