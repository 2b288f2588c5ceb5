//! Tensors out of nothing.

use crate::elementwise::where_;
use crate::late::late;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::lower::View;
use tharsis_graph::ops::{Full, Indexed, Viewed};
use tharsis_graph::plan::AxisMap;
use tharsis_graph::shape::{check_shape, is_known};
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{DType, Scalar};

/// A tensor of one number everywhere.
///
/// # Errors
/// `ValueError` if the shape is too big.
#[track_caller]
pub fn full(shape: &[usize], value: impl Into<Scalar>, dtype: DType) -> Tensor {
    let value = value.into();
    carry!(check_shape(shape));
    Tensor::apply(Full { shape: shape.to_vec(), value, dtype }, &[])
}

/// float64 zeros.
///
/// # Errors
/// As [`full`].
#[track_caller]
pub fn zeros(shape: &[usize]) -> Tensor {
    full(shape, 0.0, DType::F64)
}

/// float64 ones.
///
/// # Errors
/// As [`full`].
#[track_caller]
pub fn ones(shape: &[usize]) -> Tensor {
    full(shape, 1.0, DType::F64)
}

/// Whole numbers `0..count`, int64.
///
/// # Errors
/// `ValueError` if there are too many.
#[track_caller]
pub fn arange(count: usize) -> Tensor {
    Tensor::apply(Indexed { shape: vec![count], map: IndexMap::Position }, &[])
}

/// Numbers from `start` in steps of `step`, before `stop`: integers if all three are integers.
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
        // As NumPy: the step is the difference of the first two elements as they are rounded.
        let first = start.to_f64();
        let step = (first + step.to_f64()) - first;
        return Tensor::apply(Indexed { shape, map: IndexMap::Ramp { start: first, step } }, &[]);
    }
    let position = Tensor::apply(Indexed { shape, map: IndexMap::Position }, &[]);
    position.multiply(step).add(start)
}

/// How many numbers there are from `start` in steps of `step`, before `stop`; not positive if none. The
/// distance of integers is exact: as floats, those beyond 2^53 would be rounded before they are subtracted.
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

/// `count` numbers evenly spaced from `start` to `stop`, both included; float64.
///
/// # Errors
/// `ValueError` if there are too many.
#[track_caller]
pub fn linspace(start: f64, stop: f64, count: usize) -> Tensor {
    linspace_endpoint(start, stop, count, true)
}

/// As [`linspace`]; without `endpoint` the last number is one step before `stop`.
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

/// Ones on a diagonal, zeros elsewhere: `offset` 0 is the main diagonal, positive ones lie above it; float64.
///
/// # Errors
/// `ValueError` if the shape is too big.
#[track_caller]
pub fn eye(rows: usize, columns: usize, offset: i64) -> Tensor {
    let row = position_along(&[rows, columns], 0);
    let column = position_along(&[rows, columns], 1);
    row.add(offset).equal(column).astype(DType::F64)
}

/// For each element its coordinate along `axis`, int64: what functions of the index are made of.
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

/// A tensor computed from the coordinates of its elements: `f` gets one int64 tensor per axis.
///
/// # Errors
/// What `f` refuses.
#[track_caller]
pub fn fromfunction(shape: &[usize], f: impl FnOnce(&[Tensor]) -> Tensor) -> Tensor {
    // The axes exist, and the closure has no caller to blame for a shape that is too big.
    carry!(check_shape(shape));
    f(&(0..shape.len()).map(|axis| position_along(shape, axis)).collect::<Vec<_>>())
}

impl Tensor {
    /// A 0-d tensor.
    ///
    /// # Errors
    /// None in practice.
    #[track_caller]
    pub fn number(value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        Tensor::apply(Full { shape: vec![], value, dtype: value.dtype() }, &[])
    }

    /// Zeros of this tensor's shape and dtype.
    ///
    /// # Errors
    /// None in practice.
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        let meta = carry!(self.meta()).clone();
        if !is_known(&meta.shape) {
            return late("zeros_like", (), meta, &[self], |x| x[0].zeros_like());
        }
        full(&meta.shape, 0i64, meta.dtype)
    }

    /// Ones of this tensor's shape and dtype.
    ///
    /// # Errors
    /// None in practice.
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        let meta = carry!(self.meta()).clone();
        if !is_known(&meta.shape) {
            return late("ones_like", (), meta, &[self], |x| x[0].ones_like());
        }
        full(&meta.shape, 1i64, meta.dtype)
    }

    /// One number in this tensor's shape and dtype.
    ///
    /// # Errors
    /// None in practice.
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
