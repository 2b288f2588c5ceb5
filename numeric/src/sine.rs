//! SciPy's `fft.dst`: discrete sine transforms along any axes, as the cosine transforms that they are made of
//! ([`crate::cosine`]).

use crate::cosine::{CosineCall, CosineType};
use crate::fft::Norm;
use crate::tensor::{Tensor, carry};

impl Tensor {
    /// SciPy's `fft.dst`: the sine transform of a type along an axis, of length `len` or as long as that
    /// is. float32 and complex64 keep their dtype, float16 becomes float32, complex128 is transformed by
    /// parts, all others become float64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// use tharsis_numeric::{cosine::CosineType, fft::Norm};
    /// let x = array([3.0]).dst(CosineType::One, None, -1, Norm::Backward);
    /// assert_eq!(x.to_vec::<f64>()?, [6.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a length of 0, `IndexError` or `AxisError` if there is no such axis.
    ///
    /// # Distributed
    /// Each task has whole lines along the axis.
    #[track_caller]
    pub fn dst(&self, kind: CosineType, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.cosine(CosineCall { kind, is_inverse: false, norm, orthogonalize: None, sine: true }, len, axis)
    }

    /// SciPy's `fft.idst`: the inverse of [`Tensor::dst`] of the same type.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// use tharsis_numeric::{cosine::CosineType, fft::Norm};
    /// let x = array([6.0]).idst(CosineType::One, None, -1, Norm::Backward);
    /// assert_eq!(x.to_vec::<f64>()?, [3.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dst`].
    #[track_caller]
    pub fn idst(&self, kind: CosineType, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.cosine(CosineCall { kind, is_inverse: true, norm, orthogonalize: None, sine: true }, len, axis)
    }

    /// SciPy's `fft.dstn`: transforms along several axes, all of them if none are given, of the lengths
    /// given.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// use tharsis_numeric::{cosine::CosineType, fft::Norm};
    /// let x = ones(&[1, 1]).dstn(CosineType::One, None, None, Norm::Backward);
    /// assert_eq!(x.to_vec::<f64>()?, [4.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dst`]; `ValueError` for other numbers of lengths and axes.
    #[track_caller]
    pub fn dstn(&self, kind: CosineType, lens: Option<&[i64]>, axes: Option<&[i64]>, norm: Norm) -> Tensor {
        let call = CosineCall { kind, is_inverse: false, norm, orthogonalize: None, sine: true };
        carry!(self.cosines(call, lens, axes), self)
    }

    /// SciPy's `fft.idstn`: the inverse of [`Tensor::dstn`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// use tharsis_numeric::{cosine::CosineType, fft::Norm};
    /// let x = array([4.0]).reshape(&[1, 1]).idstn(CosineType::One, None, None, Norm::Backward);
    /// assert_eq!(x.to_vec::<f64>()?, [1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dstn`].
    #[track_caller]
    pub fn idstn(&self, kind: CosineType, lens: Option<&[i64]>, axes: Option<&[i64]>, norm: Norm) -> Tensor {
        let call = CosineCall { kind, is_inverse: true, norm, orthogonalize: None, sine: true };
        carry!(self.cosines(call, lens, axes), self)
    }
}
