//! Reductions over axes.

use crate::elementwise::where_;
use crate::error::Blame;
use crate::operand::{Operand, cast};
use crate::tensor::{Tensor, carry};
use std::ops::RangeFull;
use tharsis_graph::Error as GraphError;
use tharsis_graph::Meta;
use tharsis_graph::ops::{ArgExtreme, CountReduced, Moment, Reduce};
use tharsis_graph::shape::{UNKNOWN, normalize_axes};
use tharsis_kernels::{DType, Fold, Kind, Scalar};

/// The axes of a reduction: `..` for all, a number, or an array of numbers; negative ones count from the end.
///
/// ```
/// use tharsis_numeric::{Axes, ones};
/// let x = ones(&[2, 3]);
/// assert!(x.sum(..).shape()?.is_empty());
/// assert_eq!(x.sum(-1).shape()?, [2]);
/// assert_eq!(x.sum(Axes::from([0, 1]).keepdims()).shape()?, [1, 1]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Axes {
    axes: Option<Vec<i64>>,
    /// Whether one axis was given as a number: NumPy lets 0 and -1 stand for no axis of a number.
    alone: bool,
    keepdims: bool,
}

impl Axes {
    /// NumPy's `keepdims=True`: reduced axes stay, with extent 1.
    ///
    /// ```
    /// use tharsis_numeric::{Axes, ones};
    /// assert_eq!(ones(&[2, 3]).sum(Axes::from(1).keepdims()).shape()?, [2, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn keepdims(self) -> Axes {
        Axes { keepdims: true, ..self }
    }

    /// Whether the axes are kept with extent 1.
    pub(crate) fn keeps(&self) -> bool {
        self.keepdims
    }

    /// The selected axes; those of a tensor without axes cannot be named.
    #[track_caller]
    pub(crate) fn named(&self, x: &Tensor) -> crate::Result<Vec<usize>> {
        self.of(x.meta()?).blame()
    }

    /// The selected axes of a tensor, counted from the front.
    fn of(&self, meta: &Meta) -> Result<Vec<usize>, GraphError> {
        normalize_axes(self.axes.as_deref(), meta.shape.len())
    }

    /// The axes of a fold of this tensor.
    #[track_caller]
    pub(crate) fn of_tensor(&self, x: &Tensor) -> crate::Result<Vec<usize>> {
        self.folded(x.meta()?).blame()
    }

    /// The axes of a fold; none if a single axis is selected of a tensor without axes.
    fn folded(&self, meta: &Meta) -> Result<Vec<usize>, GraphError> {
        match self.axes.as_deref() {
            Some(&[0 | -1]) if self.alone && meta.shape.is_empty() => Ok(Vec::new()),
            _ => self.of(meta),
        }
    }
}

impl From<RangeFull> for Axes {
    fn from(_: RangeFull) -> Axes {
        Axes::default()
    }
}

impl From<i64> for Axes {
    fn from(axis: i64) -> Axes {
        Axes { axes: Some(vec![axis]), alone: true, keepdims: false }
    }
}

impl<const N: usize> From<[i64; N]> for Axes {
    fn from(axes: [i64; N]) -> Axes {
        Axes { axes: Some(axes.to_vec()), alone: false, keepdims: false }
    }
}

impl From<Vec<i64>> for Axes {
    fn from(axes: Vec<i64>) -> Axes {
        Axes { axes: Some(axes), alone: false, keepdims: false }
    }
}

impl Tensor {
    /// NumPy's `sum`. Small integers are summed in 64 bits; the error of float sums is a rounding or two for
    /// any number of elements.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.sum(..).item()?.to_f64(), 10.0);
    /// assert_eq!(x.sum(0).to_vec::<f64>()?, [4.0, 6.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`, or `ValueError` for repeated axes.
    #[track_caller]
    pub fn sum(&self, axes: impl Into<Axes>) -> Tensor {
        self.reduce(Fold::Sum, axes.into())
    }

    /// NumPy's `prod`: the product; small integers in 64 bits.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.prod(1).to_vec::<f64>()?, [2.0, 12.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn prod(&self, axes: impl Into<Axes>) -> Tensor {
        self.reduce(Fold::Prod, axes.into())
    }

    /// NumPy's `min`: the smallest, NaN if any is; the dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.min(1).to_vec::<f64>()?, [1.0, 3.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`]; `ValueError` if there is nothing to choose from.
    #[track_caller]
    pub fn min(&self, axes: impl Into<Axes>) -> Tensor {
        self.reduce(Fold::Min, axes.into())
    }

    /// NumPy's `max`: the largest, NaN if any is; the dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.max(0).to_vec::<f64>()?, [3.0, 4.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::min`].
    #[track_caller]
    pub fn max(&self, axes: impl Into<Axes>) -> Tensor {
        self.reduce(Fold::Max, axes.into())
    }

    /// NumPy's `all`: whether all are true; any dtype, gives bool.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.greater(1.0).all(1).to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn all(&self, axes: impl Into<Axes>) -> Tensor {
        self.reduce(Fold::All, axes.into())
    }

    /// NumPy's `any`: whether any is true; any dtype, gives bool.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.greater(3.0).any(1).to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn any(&self, axes: impl Into<Axes>) -> Tensor {
        self.reduce(Fold::Any, axes.into())
    }

    /// NumPy's `count_nonzero`: the number of nonzero elements; any dtype, gives int64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.less(3.5).count_nonzero(..).item()?.to_f64(), 3.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn count_nonzero(&self, axes: impl Into<Axes>) -> Tensor {
        self.reduce(Fold::CountTrue, axes.into())
    }

    /// NumPy's `mean`: float64 for integers, else the dtype stays; NaN if there are no elements.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.mean(1).to_vec::<f64>()?, [1.5, 3.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn mean(&self, axes: impl Into<Axes>) -> Tensor {
        let axes = axes.into();
        let meta = carry!(self.meta());
        let reduced = carry!(axes.of(meta), self);
        let dtype = if meta.dtype.kind() < Kind::Float { DType::F64 } else { meta.dtype };
        let wide = match dtype {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        };
        let count: Operand = if reduced.iter().any(|&axis| meta.shape[axis] == UNKNOWN) {
            let keepdims = axes.keepdims;
            cast(&Tensor::apply(CountReduced { axes: reduced, keepdims }, &[self]), wide).into()
        } else {
            reduced.iter().map(|&axis| meta.shape[axis] as f64).product::<f64>().into()
        };
        cast(&cast(self, wide).sum(axes).divide(count), dtype)
    }

    /// NumPy's `var`: the variance around the mean, with divisor n; floats.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.var(..).item()?.to_f64(), 1.25);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn var(&self, axes: impl Into<Axes>) -> Tensor {
        self.var_ddof(axes, 0.0)
    }

    /// NumPy's `var(.., ddof=..)`: the variance around the mean, with divisor n - `ddof`; floats.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.var_ddof(1, 1.0).to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn var_ddof(&self, axes: impl Into<Axes>, ddof: f64) -> Tensor {
        self.moment(axes.into(), ddof, false)
    }

    /// NumPy's `std`: the standard deviation, with divisor n; floats.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.std(1).to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn std(&self, axes: impl Into<Axes>) -> Tensor {
        self.std_ddof(axes, 0.0)
    }

    /// NumPy's `std(.., ddof=..)`: the standard deviation, with divisor n - `ddof`; floats.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.std_ddof(.., 3.0).item()?.to_f64(), 5f64.sqrt());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn std_ddof(&self, axes: impl Into<Axes>, ddof: f64) -> Tensor {
        self.moment(axes.into(), ddof, true)
    }

    /// NumPy's `argmin`: the position of the smallest, the first of equals; over one axis, or all as if
    /// flattened; int64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.argmin(0).to_vec::<i64>()?, [0, 0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `ValueError` if there is nothing to choose from or several axes are given.
    #[track_caller]
    pub fn argmin(&self, axes: impl Into<Axes>) -> Tensor {
        self.arg_extreme(Fold::ArgMin, axes.into())
    }

    /// NumPy's `argmax`: the position of the largest; as [`Tensor::argmin`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.argmax(..).item()?.to_f64(), 3.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::argmin`].
    #[track_caller]
    pub fn argmax(&self, axes: impl Into<Axes>) -> Tensor {
        self.arg_extreme(Fold::ArgMax, axes.into())
    }

    /// NumPy's `ptp`: difference of the largest and the smallest; the dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.ptp(0).to_vec::<f64>()?, [2.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::min`].
    #[track_caller]
    pub fn ptp(&self, axes: impl Into<Axes>) -> Tensor {
        let axes = axes.into();
        self.max(axes.clone()).subtract(self.min(axes))
    }

    /// NumPy's `nansum`: the sum of elements that are not NaN; as [`Tensor::sum`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, f64::NAN, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.nansum(1).to_vec::<f64>()?, [1.0, 7.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn nansum(&self, axes: impl Into<Axes>) -> Tensor {
        self.without_nan(Scalar::Int(0)).sum(axes)
    }

    /// NumPy's `nanprod`: the product of elements that are not NaN; as [`Tensor::prod`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, f64::NAN, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.nanprod(1).to_vec::<f64>()?, [1.0, 12.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn nanprod(&self, axes: impl Into<Axes>) -> Tensor {
        self.without_nan(Scalar::Int(1)).prod(axes)
    }

    /// NumPy's `nanmean`: the mean of elements that are not NaN; as [`Tensor::mean`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, f64::NAN, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.nanmean(1).to_vec::<f64>()?, [1.0, 3.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sum`].
    #[track_caller]
    pub fn nanmean(&self, axes: impl Into<Axes>) -> Tensor {
        let dtype = carry!(self.dtype());
        if dtype.kind() < Kind::Float {
            return self.mean(axes);
        }
        let axes = axes.into();
        let count = self.isnan().logical_not().count_nonzero(axes.clone());
        let mean = self.nansum(axes).divide(count);
        cast(&mean, dtype)
    }

    /// NumPy's `nanmin`: the smallest element that is not NaN, NaN if all are; the dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, f64::NAN, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.nanmin(..).item()?.to_f64(), 1.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::min`].
    #[track_caller]
    pub fn nanmin(&self, axes: impl Into<Axes>) -> Tensor {
        self.nan_extreme(axes.into(), f64::INFINITY, Fold::Min)
    }

    /// NumPy's `nanmax`: the largest element that is not NaN, NaN if all are; the dtype stays.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, f64::NAN, 3.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.nanmax(1).to_vec::<f64>()?, [1.0, 4.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max`].
    #[track_caller]
    pub fn nanmax(&self, axes: impl Into<Axes>) -> Tensor {
        self.nan_extreme(axes.into(), f64::NEG_INFINITY, Fold::Max)
    }

    #[track_caller]
    fn nan_extreme(&self, axes: Axes, worst: f64, fold: Fold) -> Tensor {
        let dtype = carry!(self.dtype());
        if dtype.kind() < Kind::Float {
            return self.reduce(fold, axes);
        }
        if dtype.is_complex() {
            let best = self.without_nan(Scalar::Complex(worst, worst)).reduce(fold, axes.clone());
            // If all numbers are NaN, the first one is kept, with its part that is not NaN.
            return where_(&self.isnan().all(axes.clone()), self.reduce(fold, axes), &best);
        }
        let best = self.without_nan(Scalar::Float(worst)).reduce(fold, axes.clone());
        where_(&self.isnan().all(axes), cast(&Tensor::number(f64::NAN), dtype), &best)
    }

    #[track_caller]
    fn without_nan(&self, replacement: Scalar) -> Tensor {
        if carry!(self.dtype()).kind() < Kind::Float {
            self.clone()
        } else {
            where_(&self.isnan(), replacement, self)
        }
    }

    #[track_caller]
    fn reduce(&self, fold: Fold, axes: Axes) -> Tensor {
        let keepdims = axes.keepdims;
        Tensor::apply(
            Reduce { fold, axes: carry!(axes.folded(carry!(self.meta())), self), keepdims },
            &[self],
        )
    }

    #[track_caller]
    fn moment(&self, axes: Axes, ddof: f64, root: bool) -> Tensor {
        let keepdims = axes.keepdims;
        Tensor::apply(
            Moment { axes: carry!(axes.of(carry!(self.meta())), self), keepdims, ddof, root },
            &[self],
        )
    }

    #[track_caller]
    fn arg_extreme(&self, fold: Fold, axes: Axes) -> Tensor {
        let folded = carry!(axes.folded(carry!(self.meta())), self);
        let axis = match (&axes.axes, folded.as_slice()) {
            (None, _) | (Some(_), []) => None,
            (Some(_), &[axis]) => Some(axis),
            _ => {
                let text = "argmin and argmax take one axis or none";
                return Tensor::refused(GraphError::Value(text.to_owned()), &[self]);
            }
        };
        Tensor::apply(ArgExtreme { fold, axis, keepdims: axes.keepdims }, &[self])
    }
}
