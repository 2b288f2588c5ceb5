//! SciPy's `fft.dct` and `fft.dst`: discrete cosine and sine transforms along any axes; float32 stays
//! float32.
//!
//! As with [`crate::fft`], a task has the lines whole along the axis that is transformed, and other axes are
//! cut.

use crate::elementwise::binary;
use crate::error::Result;
use crate::fft::Norm;
use crate::joined::all_known;
use crate::late::late;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::CosineAlong;
use tharsis_graph::shape::{UNKNOWN, normalize_axis};
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::cosine::Cosine;
pub use tharsis_kernels::cosine::CosineType;
use tharsis_kernels::{BinaryOp, DType};

/// One transform, but for the length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CosineCall {
    pub kind: CosineType,
    pub is_inverse: bool,
    pub norm: Norm,
    /// Whether the matrix of the transform is made orthogonal; by default with [`Norm::Ortho`] alone.
    pub orthogonalize: Option<bool>,
    /// Whether it is a sine transform.
    pub sine: bool,
}

impl CosineCall {
    fn cosine(self, axis: usize, len: usize) -> Cosine {
        let kind = match (self.kind, self.is_inverse) {
            (CosineType::Two, true) => CosineType::Three,
            (CosineType::Three, true) => CosineType::Two,
            (kind, _) => kind,
        };
        let whole = match kind {
            CosineType::One if self.sine => 2 * (len + 1),
            CosineType::One => 2 * (len - 1),
            _ => 2 * len,
        };
        let scale = self.norm.scale(self.is_inverse, whole);
        let orthogonal = self.orthogonalize.unwrap_or(self.norm == Norm::Ortho);
        Cosine { kind, axis, len, scale, orthogonal, sine: self.sine }
    }
}

impl Tensor {
    /// SciPy's `fft.dct`: the cosine transform of a type along an axis, of length `len` or as long as that
    /// is. float32 and complex64 keep their dtype, float16 becomes float32, complex128 is transformed by
    /// parts, all others become float64.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// use tharsis_numeric::{cosine::CosineType, fft::Norm};
    /// let x = array([1.0, 1.0]).dct(CosineType::Two, None, -1, Norm::Backward);
    /// assert_eq!(x.to_vec::<f64>()?, [4.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a length of 0, or of 1 with [`CosineType::One`]; `IndexError` or `AxisError` if there
    /// is no such axis.
    ///
    /// # Distributed
    /// Each task has whole lines along the axis.
    #[track_caller]
    pub fn dct(&self, kind: CosineType, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.cosine(CosineCall { kind, is_inverse: false, norm, orthogonalize: None, sine: false }, len, axis)
    }

    /// SciPy's `fft.idct`: the inverse of [`Tensor::dct`] of the same type.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// use tharsis_numeric::{cosine::CosineType, fft::Norm};
    /// let x = array([4.0, 0.0]).idct(CosineType::Two, None, -1, Norm::Backward);
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dct`].
    #[track_caller]
    pub fn idct(&self, kind: CosineType, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.cosine(CosineCall { kind, is_inverse: true, norm, orthogonalize: None, sine: false }, len, axis)
    }

    /// SciPy's `fft.dctn`: transforms along several axes, all of them if none are given, of the lengths
    /// given.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// use tharsis_numeric::{cosine::CosineType, fft::Norm};
    /// let x = ones(&[1, 2]).dctn(CosineType::Two, None, None, Norm::Backward);
    /// assert_eq!(x.to_vec::<f64>()?, [8.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dct`]; `ValueError` for other numbers of lengths and axes.
    #[track_caller]
    pub fn dctn(&self, kind: CosineType, lens: Option<&[i64]>, axes: Option<&[i64]>, norm: Norm) -> Tensor {
        let call = CosineCall { kind, is_inverse: false, norm, orthogonalize: None, sine: false };
        carry!(self.cosines(call, lens, axes), self)
    }

    /// SciPy's `fft.idctn`: the inverse of [`Tensor::dctn`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// use tharsis_numeric::{cosine::CosineType, fft::Norm};
    /// let x = array([8.0, 0.0]).reshape(&[1, 2]).idctn(CosineType::Two, None, None, Norm::Backward);
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dctn`].
    #[track_caller]
    pub fn idctn(&self, kind: CosineType, lens: Option<&[i64]>, axes: Option<&[i64]>, norm: Norm) -> Tensor {
        let call = CosineCall { kind, is_inverse: true, norm, orthogonalize: None, sine: false };
        carry!(self.cosines(call, lens, axes), self)
    }

    /// Transforms along several axes.
    #[track_caller]
    pub(crate) fn cosines(
        &self,
        call: CosineCall,
        lens: Option<&[i64]>,
        axes: Option<&[i64]>,
    ) -> Result<Tensor> {
        let (lens, axes) = self.lengths(lens, axes)?;
        let mut made = self.clone();
        for (&len, &axis) in lens.iter().zip(&axes).rev() {
            made = made.cosine(call, len, axis);
        }
        Ok(made)
    }

    /// One transform along an axis.
    #[track_caller]
    pub(crate) fn cosine(&self, call: CosineCall, len: Option<usize>, axis: i64) -> Tensor {
        let meta = carry!(self.meta());
        let axis = match (normalize_axis(axis, meta.shape.len()), len) {
            (Ok(axis), _) => axis,
            (Err(_), None) => {
                return Tensor::refused(GraphError::Indices("tuple index out of range".to_owned()), &[self]);
            }
            (Err(error), Some(_)) => return Tensor::refused(error, &[self]),
        };
        if meta.dtype.is_complex() {
            let part = |part: Tensor| part.cosine(call, len, axis as i64);
            return binary(BinaryOp::FromParts, part(self.real()), part(self.imag()));
        }
        let dtype = match meta.dtype {
            DType::F16 | DType::BF16 | DType::F32 => DType::F32,
            _ => DType::F64,
        };
        if !all_known(&[self]) {
            let mut shape = meta.shape.clone();
            shape[axis] = len.unwrap_or(UNKNOWN);
            return late(
                if call.sine { "dst" } else { "dct" },
                (call, len, axis),
                Meta { shape, dtype },
                &[self],
                move |x| x[0].cosine(call, len, axis as i64),
            );
        }
        let len = len.unwrap_or(meta.shape[axis]);
        match (len, call.kind) {
            (0, _) => Tensor::bad_value("invalid number of data points (0) specified", &[self]),
            (1, CosineType::One) if !call.sine => {
                Tensor::bad_value("the first cosine transform needs at least two elements", &[self])
            }
            _ => Tensor::apply(CosineAlong(call.cosine(axis, len)), &[&cast(self, dtype)]),
        }
    }
}
