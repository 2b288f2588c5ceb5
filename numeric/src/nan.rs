//! Variances and places of extremes among elements that are numbers, and means and variances where a mask is
//! true.

use crate::elementwise::where_;
use crate::operand::cast;
use crate::reduction::Axes;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::Require;
use tharsis_kernels::{DType, Kind, Scalar};

impl Tensor {
    /// NumPy's `nanvar`: the variance of elements that are not NaN, with divisor n - `ddof`; as
    /// [`Tensor::var_ddof`], NaN where that divisor is not positive.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1.0, f64::NAN, 3.0]).nanvar(.., 0.0).to_vec::<f64>()?, [1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn nanvar(&self, axes: impl Into<Axes>, ddof: f64) -> Tensor {
        let axes = axes.into();
        if carry!(self.dtype()).kind() < Kind::Float {
            self.var_ddof(axes, ddof)
        } else {
            let variance = variance_where(self, &self.isnan().logical_not(), &axes, ddof, true);
            cast(&variance, moment_dtype(carry!(self.dtype())))
        }
    }

    /// NumPy's `nanstd`: the root of [`Tensor::nanvar`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1.0, f64::NAN, 5.0]).nanstd(.., 0.0).to_vec::<f64>()?, [2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn nanstd(&self, axes: impl Into<Axes>, ddof: f64) -> Tensor {
        let axes = axes.into();
        if carry!(self.dtype()).kind() < Kind::Float {
            self.std_ddof(axes, ddof)
        } else {
            let variance = variance_where(self, &self.isnan().logical_not(), &axes, ddof, true);
            cast(&variance.sqrt(), moment_dtype(carry!(self.dtype())))
        }
    }

    /// NumPy's `nanargmax`: where the largest element that is not NaN is; as [`Tensor::argmax`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1.0, f64::NAN, 3.0]).nanargmax(..).to_vec::<i64>()?, [2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::argmax`]; `ValueError` when it runs if there is nothing but NaN.
    #[track_caller]
    pub fn nanargmax(&self, axes: impl Into<Axes>) -> Tensor {
        self.nan_place(axes.into(), f64::NEG_INFINITY, Tensor::argmax)
    }

    /// NumPy's `nanargmin`: where the smallest element that is not NaN is; as [`Tensor::argmin`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([f64::NAN, 2.0, 1.0]).nanargmin(..).to_vec::<i64>()?, [2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::nanargmax`].
    #[track_caller]
    pub fn nanargmin(&self, axes: impl Into<Axes>) -> Tensor {
        self.nan_place(axes.into(), f64::INFINITY, Tensor::argmin)
    }

    #[track_caller]
    fn nan_place(&self, axes: Axes, worst: f64, of: fn(&Tensor, Axes) -> Tensor) -> Tensor {
        let dtype = carry!(self.dtype());
        if dtype.kind() < Kind::Float {
            return of(self, axes);
        }
        let worst = if dtype.is_complex() { Scalar::Complex(worst, worst) } else { Scalar::Float(worst) };
        let is_nan = self.isnan();
        let found = of(&where_(&is_nan, worst, self), axes.clone());
        let message = "All-NaN slice encountered".to_owned();
        Tensor::apply(Require { message }, &[&found, &is_nan.all(axes).logical_not()])
    }
}

/// The sum of elements where a mask is true, in the float dtype of means, and their number.
#[track_caller]
pub(crate) fn sum_and_count(x: &Tensor, mask: &Tensor, axes: &Axes) -> (Tensor, Tensor) {
    let dtype = match x.dtype() {
        Ok(own) if own.kind() < Kind::Float => DType::F64,
        Ok(DType::F16 | DType::BF16) => DType::F32,
        Ok(own) => own,
        Err(error) => return (Tensor::from(error.clone()), Tensor::from(error)),
    };
    let zero = cast(&Tensor::number(Scalar::Int(0)), dtype);
    let sum = where_(mask, cast(x, dtype), zero).sum(axes.clone());
    let everywhere = mask.logical_and(x.ones_like());
    (sum, cast(&everywhere.count_nonzero(axes.clone()), dtype))
}

/// The variance of elements where a mask is true, in the dtype in which it is computed. A divisor that is
/// not positive counts as 0, or gives NaN if `strict`.
#[track_caller]
pub(crate) fn variance_where(x: &Tensor, mask: &Tensor, axes: &Axes, ddof: f64, strict: bool) -> Tensor {
    let (sum, count) = sum_and_count(x, mask, &axes.clone().keepdims());
    let away = cast(x, carry!(sum.dtype())).subtract(sum.divide(&count));
    let square = if carry!(away.dtype()).is_complex() {
        away.real().square().add(away.imag().square())
    } else {
        away.square()
    };
    let zero = cast(&Tensor::number(Scalar::Int(0)), carry!(square.dtype()));
    let squares = where_(mask, &square, zero).sum(axes.clone());
    let left = sum_and_count(x, mask, axes).1.real().subtract(ddof);
    let variance = squares.divide(left.maximum(0.0));
    let none = cast(&Tensor::number(f64::NAN), carry!(variance.dtype()));
    if strict { where_(&left.greater(0.0), &variance, none) } else { variance }
}

/// The dtype of the variance of elements of this one.
pub(crate) fn moment_dtype(dtype: DType) -> DType {
    if dtype.kind() < Kind::Float { DType::F64 } else { dtype.real_part() }
}
