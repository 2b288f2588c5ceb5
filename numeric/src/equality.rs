//! Whether whole tensors are equal, or close: one bool for two tensors.

use crate::create::full;
use crate::joined::all_known;
use crate::late::late;
use crate::operand::Operand;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Meta;
use tharsis_graph::shape::broadcast;
use tharsis_kernels::DType;

impl Tensor {
    /// NumPy's `allclose`: whether all elements are as close as `atol + rtol * |other|`; shapes are
    /// broadcast; a bool without axes. NaN are close to NaN if `equal_nan`.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0]);
    /// assert!(x.allclose(&x + 1e-9, 1e-5, 1e-8, false).item()?.is_true());
    /// assert!(!x.allclose(1.0, 1e-5, 1e-8, false).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::isclose`].
    #[track_caller]
    pub fn allclose(&self, other: impl Into<Operand>, rtol: f64, atol: f64, equal_nan: bool) -> Tensor {
        self.isclose_or_nan(other.into(), rtol, atol, equal_nan).all(..)
    }

    /// As [`Tensor::isclose`], where NaN are close to NaN if `equal_nan`.
    #[track_caller]
    pub(crate) fn isclose_or_nan(&self, other: Operand, rtol: f64, atol: f64, equal_nan: bool) -> Tensor {
        let near = self.isclose(other.clone(), rtol, atol);
        if !equal_nan {
            return near;
        }
        let other = other.beside(carry!(self.dtype()));
        near.logical_or(self.isnan().logical_and(other.isnan()))
    }

    /// NumPy's `array_equal`: whether the shapes and all elements are equal; a bool without axes. NaN are
    /// equal to NaN if `equal_nan`.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert!(arange(3).array_equal(&(arange(3) * 1.0), false).item()?.is_true());
    /// assert!(!arange(3).array_equal(&arange(1), false).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn array_equal(&self, other: &Tensor, equal_nan: bool) -> Tensor {
        if !all_known(&[self, other]) {
            let meta = Meta { shape: vec![], dtype: DType::Bool };
            return late("array_equal", equal_nan, meta, &[self, other], move |x| {
                x[0].array_equal(&x[1], equal_nan)
            });
        }
        if carry!(self.shape()) != carry!(other.shape()) {
            return full(&[], false, DType::Bool);
        }
        let equal = self.equal(other);
        let equal = if equal_nan { equal.logical_or(self.isnan().logical_and(other.isnan())) } else { equal };
        equal.all(..)
    }

    /// NumPy's `array_equiv`: whether the shapes broadcast and all elements are equal then; a bool without
    /// axes.
    ///
    /// ```
    /// use tharsis_numeric::{arange, ones};
    /// assert!(ones(&[2, 3]).array_equiv(&ones(&[3])).item()?.is_true());
    /// assert!(!ones(&[2, 3]).array_equiv(&arange(2)).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn array_equiv(&self, other: &Tensor) -> Tensor {
        if !all_known(&[self, other]) {
            let meta = Meta { shape: vec![], dtype: DType::Bool };
            return late("array_equiv", (), meta, &[self, other], |x| x[0].array_equiv(&x[1]));
        }
        match broadcast("array_equiv", &[carry!(self.shape()), carry!(other.shape())]) {
            Ok(_) => self.equal(other).all(..),
            Err(_) => full(&[], false, DType::Bool),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{arange, array};

    #[test]
    fn tensors_of_unknown_size_are_compared_once_their_sizes_are_known() {
        let x = arange(9);
        let odd = x.filter(&x.remainder(2).equal(1));
        let told = |tensor: crate::Tensor| tensor.item().unwrap().is_true();
        assert!(told(odd.array_equal(&array([1i64, 3, 5, 7]), false)));
        assert!(!told(odd.array_equal(&arange(3), false)));
        assert!(!told(odd.array_equiv(&arange(3))));
        assert!(told(odd.subtract(&odd).array_equiv(&array([0i64]))));
    }
}
