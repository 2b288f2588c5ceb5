//! NumPy's `fft`: discrete Fourier transforms along any axes; float32 stays float32.
//!
//! A task has the lines whole along the axis that is transformed; other axes are cut. So in several
//! dimensions chunks are exchanged between the axes, and only a line must fit into the memory of a task: the
//! bound of a plan has its bytes before anything runs.

use crate::create::arange;
use crate::error::{Blame, Error, Result};
use crate::joined::all_known;
use crate::late::late;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::FourierAlong;
use tharsis_graph::shape::{UNKNOWN, normalize_axis};
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::fourier::{Fourier, Transform};
use tharsis_kernels::{DType, to_complex};

/// NumPy's `norm`: which of a transform and its inverse is divided by the length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// The inverse.
    #[default]
    Backward,
    /// Both by the root of the length.
    Ortho,
    /// The transform.
    Forward,
}

impl Norm {
    /// The norm of this name.
    ///
    /// # Errors
    /// `ValueError` for another name.
    #[track_caller]
    pub fn named(name: &str) -> Result<Norm> {
        match name {
            "backward" => Ok(Norm::Backward),
            "ortho" => Ok(Norm::Ortho),
            "forward" => Ok(Norm::Forward),
            other => {
                let text =
                    format!("Invalid norm value {other}; should be \"backward\", \"ortho\" or \"forward\".");
                Err(GraphError::Value(text)).blame()
            }
        }
    }

    /// Factor of a transform of length `len`.
    pub(crate) fn scale(self, is_inverse: bool, len: usize) -> f64 {
        match (self, is_inverse) {
            (Norm::Backward, false) | (Norm::Forward, true) => 1.0,
            (Norm::Ortho, _) => 1.0 / (len as f64).sqrt(),
            _ => 1.0 / len as f64,
        }
    }

    fn swapped(self) -> Norm {
        match self {
            Norm::Backward => Norm::Forward,
            Norm::Forward => Norm::Backward,
            Norm::Ortho => Norm::Ortho,
        }
    }
}

/// The real dtype in which a transform is computed.
fn computed(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 | DType::C64 => DType::F32,
        _ => DType::F64,
    }
}

impl Tensor {
    /// One transform along an axis. `len` is the length of the transform.
    #[track_caller]
    fn fourier(&self, transform: Transform, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        let meta = carry!(self.meta());
        let rank = meta.shape.len();
        let axis = match (normalize_axis(axis, rank), len) {
            (Ok(axis), _) => axis,
            (Err(_), None) => {
                return Tensor::refused(GraphError::Indices("tuple index out of range".to_owned()), &[self]);
            }
            (Err(error), Some(_)) => return Tensor::refused(error, &[self]),
        };
        let real = computed(meta.dtype);
        if !all_known(&[self]) {
            let mut shape = meta.shape.clone();
            shape[axis] = len.map_or(UNKNOWN, |len| transform.extent(len));
            let dtype = match (transform, meta.dtype) {
                (Transform::RealInverse, half @ (DType::F16 | DType::BF16)) => half,
                _ => transform.dtype(real),
            };
            let meta = Meta { shape, dtype };
            return late("fft", (transform, len, axis, norm), meta, &[self], move |x| {
                x[0].fourier(transform, len, axis as i64, norm)
            });
        }
        let whole = match transform {
            Transform::RealInverse => (meta.shape[axis].saturating_sub(1)) * 2,
            _ => meta.shape[axis],
        };
        let len = len.unwrap_or(whole);
        if len == 0 {
            let text = "Invalid number of FFT data points (0) specified.".to_owned();
            return Tensor::refused(GraphError::Value(text), &[self]);
        }
        if transform == Transform::RealForward && meta.dtype.is_complex() {
            let text = format!("rfft: {} cannot be taken for real numbers", meta.dtype);
            return Tensor::refused(GraphError::Type(text), &[self]);
        }
        let is_inverse = matches!(transform, Transform::Inverse | Transform::RealInverse);
        let scale = norm.scale(is_inverse, len);
        let from = if transform.takes_complex() { to_complex(real) } else { real };
        let made = Tensor::apply(FourierAlong(Fourier { transform, axis, len, scale }), &[&cast(self, from)]);
        match (transform, meta.dtype) {
            (Transform::RealInverse, DType::F16 | DType::BF16) => cast(&made, meta.dtype),
            _ => made,
        }
    }

    /// NumPy's `fft.fft`: the discrete Fourier transform along an axis, of length `len` or as long as that
    /// is; complex64 for float32 and complex64, else complex128.
    ///
    /// ```
    /// use tharsis_numeric::{array, fft::Norm};
    /// let x = array([1.0, 1.0]).fft(None, -1, Norm::Backward);
    /// assert_eq!(x.real().to_vec::<f64>()?, [2.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a length of 0, `IndexError` or `AxisError` if there is no such axis.
    ///
    /// # Distributed
    /// Each task has whole lines along the axis.
    #[track_caller]
    pub fn fft(&self, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.fourier(Transform::Forward, len, axis, norm)
    }

    /// NumPy's `fft.ifft`: the inverse of [`Tensor::fft`].
    ///
    /// ```
    /// use tharsis_numeric::{array, fft::Norm};
    /// let x = array([2.0, 0.0]).ifft(None, -1, Norm::Backward);
    /// assert_eq!(x.real().to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn ifft(&self, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.fourier(Transform::Inverse, len, axis, norm)
    }

    /// NumPy's `fft.rfft`: the first half of the transform of real numbers, `len / 2 + 1` along the axis.
    ///
    /// ```
    /// use tharsis_numeric::{array, fft::Norm};
    /// let x = array([1.0, 1.0, 1.0]).rfft(None, -1, Norm::Backward);
    /// assert_eq!(x.shape()?, [2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`]; `TypeError` for complex numbers.
    #[track_caller]
    pub fn rfft(&self, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.fourier(Transform::RealForward, len, axis, norm)
    }

    /// NumPy's `fft.irfft`: the inverse of [`Tensor::rfft`]; of length `len`, or an even one.
    ///
    /// ```
    /// use tharsis_numeric::{array, fft::Norm};
    /// let x = array([3.0, 0.0]).irfft(Some(3), -1, Norm::Backward);
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 1.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn irfft(&self, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.fourier(Transform::RealInverse, len, axis, norm)
    }

    /// NumPy's `fft.hfft`: the transform, which is real, of a Hermitian line of which the first half is
    /// given.
    ///
    /// ```
    /// use tharsis_numeric::{array, fft::Norm};
    /// assert_eq!(array([1.0, 1.0]).hfft(None, -1, Norm::Backward).to_vec::<f64>()?, [2.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn hfft(&self, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.conj().irfft(len, axis, norm.swapped())
    }

    /// NumPy's `fft.ihfft`: the inverse of [`Tensor::hfft`].
    ///
    /// ```
    /// use tharsis_numeric::{array, fft::Norm};
    /// assert_eq!(array([2.0, 0.0]).ihfft(None, -1, Norm::Backward).real().to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::rfft`].
    #[track_caller]
    pub fn ihfft(&self, len: Option<usize>, axis: i64, norm: Norm) -> Tensor {
        self.rfft(len, axis, norm.swapped()).conj()
    }

    /// The lengths and axes of a transform in several dimensions; -1 is the length of the axis.
    #[track_caller]
    pub(crate) fn lengths(
        &self,
        lens: Option<&[i64]>,
        axes: Option<&[i64]>,
    ) -> Result<(Vec<Option<usize>>, Vec<i64>)> {
        let rank = self.ndim()? as i64;
        let axes: Vec<i64> = match (axes, lens) {
            (Some(axes), _) => axes.to_vec(),
            (None, Some(lens)) => (-(lens.len() as i64)..0).collect(),
            (None, None) => (0..rank).collect(),
        };
        let Some(lens) = lens else {
            if let Some(axis) = axes.iter().find(|&&axis| axis < -rank || rank <= axis) {
                let text = format!("index {axis} is out of bounds for axis 0 with size {rank}");
                return Err(Error::here(GraphError::Indices(text)));
            }
            return Ok((vec![None; axes.len()], axes));
        };
        if lens.len() != axes.len() {
            let text = "Shape and axes have different lengths.".to_owned();
            return Err(Error::here(GraphError::Value(text)));
        }
        let len = |&len: &i64| match len {
            -1 => Ok(None),
            len => usize::try_from(len).map(Some).map_err(|_| {
                let text = format!("Invalid number of FFT data points ({len}) specified.");
                Error::here(GraphError::Value(text))
            }),
        };
        Ok((lens.iter().map(len).collect::<Result<_>>()?, axes))
    }

    /// NumPy's `fft.fftn`: transforms along several axes, all of them if none are given, of the lengths
    /// given.
    ///
    /// ```
    /// use tharsis_numeric::{fft::Norm, ones};
    /// let x = ones(&[2, 2]).fftn(None, None, Norm::Backward);
    /// assert_eq!(x.real().to_vec::<f64>()?, [4.0, 0.0, 0.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`]; `ValueError` for other numbers of lengths and axes.
    #[track_caller]
    pub fn fftn(&self, lens: Option<&[i64]>, axes: Option<&[i64]>, norm: Norm) -> Tensor {
        self.several(Transform::Forward, lens, axes, norm)
    }

    /// NumPy's `fft.ifftn`: the inverse of [`Tensor::fftn`].
    ///
    /// ```
    /// use tharsis_numeric::{fft::Norm, ones};
    /// let x = ones(&[2, 2]).ifftn(None, None, Norm::Backward);
    /// assert_eq!(x.real().to_vec::<f64>()?, [1.0, 0.0, 0.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fftn`].
    #[track_caller]
    pub fn ifftn(&self, lens: Option<&[i64]>, axes: Option<&[i64]>, norm: Norm) -> Tensor {
        self.several(Transform::Inverse, lens, axes, norm)
    }

    #[track_caller]
    fn several(
        &self,
        transform: Transform,
        lens: Option<&[i64]>,
        axes: Option<&[i64]>,
        norm: Norm,
    ) -> Tensor {
        let (lens, axes) = carry!(self.lengths(lens, axes), self);
        let mut made = self.clone();
        for (&len, &axis) in lens.iter().zip(&axes).rev() {
            made = made.fourier(transform, len, axis, norm);
        }
        made
    }

    /// NumPy's `fft.rfftn`: as [`Tensor::fftn`] of real numbers, the first half along the last of the axes.
    ///
    /// ```
    /// use tharsis_numeric::{fft::Norm, ones};
    /// assert_eq!(ones(&[3, 4]).rfftn(None, None, Norm::Backward).shape()?, [3, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fftn`] and [`Tensor::rfft`].
    #[track_caller]
    pub fn rfftn(&self, lens: Option<&[i64]>, axes: Option<&[i64]>, norm: Norm) -> Tensor {
        let (lens, axes) = carry!(self.lengths(lens, axes), self);
        let (Some((&len, first)), Some((&axis, others))) = (lens.split_last(), axes.split_last()) else {
            let text = "list index out of range".to_owned();
            return Tensor::refused(GraphError::Indices(text), &[self]);
        };
        let mut made = self.rfft(len, axis, norm);
        for (&len, &axis) in first.iter().zip(others).rev() {
            made = made.fft(len, axis, norm);
        }
        made
    }

    /// NumPy's `fft.irfftn`: the inverse of [`Tensor::rfftn`].
    ///
    /// ```
    /// use tharsis_numeric::{fft::Norm, ones};
    /// assert_eq!(ones(&[3, 3]).irfftn(None, None, Norm::Backward).shape()?, [3, 4]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fftn`].
    #[track_caller]
    pub fn irfftn(&self, lens: Option<&[i64]>, axes: Option<&[i64]>, norm: Norm) -> Tensor {
        let (lens, axes) = carry!(self.lengths(lens, axes), self);
        let (Some((&len, first)), Some((&axis, others))) = (lens.split_last(), axes.split_last()) else {
            let text = "list index out of range".to_owned();
            return Tensor::refused(GraphError::Indices(text), &[self]);
        };
        let mut made = self.clone();
        for (&len, &axis) in first.iter().zip(others) {
            made = made.ifft(len, axis, norm);
        }
        made.irfft(len, axis, norm)
    }

    /// NumPy's `fft.fftshift`: frequency zero moved to the middle of each axis, or of those given.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(5).fftshift(None).to_vec::<i64>()?, [3, 4, 0, 1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    #[track_caller]
    pub fn fftshift(&self, axes: Option<&[i64]>) -> Tensor {
        self.shifted(axes, 1)
    }

    /// NumPy's `fft.ifftshift`: the inverse of [`Tensor::fftshift`].
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(5).fftshift(None).ifftshift(None).to_vec::<i64>()?, [0, 1, 2, 3, 4]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    #[track_caller]
    pub fn ifftshift(&self, axes: Option<&[i64]>) -> Tensor {
        self.shifted(axes, -1)
    }

    #[track_caller]
    fn shifted(&self, axes: Option<&[i64]>, sign: i64) -> Tensor {
        let meta = carry!(self.meta());
        let all: Vec<i64> = (0..meta.shape.len() as i64).collect();
        let axes = axes.unwrap_or(&all).to_vec();
        if !all_known(&[self]) {
            let later = axes.clone();
            return late("fftshift", (&axes, sign), meta.clone(), &[self], move |x| {
                x[0].shifted(Some(&later), sign)
            });
        }
        let mut shifts = Vec::with_capacity(axes.len());
        for axis in axes {
            let at = carry!(normalize_axis(axis, meta.shape.len()), self);
            shifts.push((axis, sign * (meta.shape[at] / 2) as i64));
        }
        self.roll(&shifts)
    }
}

/// NumPy's `fft.fftfreq`: the frequencies of a transform of `count` samples at distances of `distance`;
/// (count,), float64.
///
/// ```
/// use tharsis_numeric::fft::fftfreq;
/// assert_eq!(fftfreq(4, 0.5).to_vec::<f64>()?, [0.0, 0.5, -1.0, -0.5]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ZeroDivisionError` for no samples or no distance.
#[track_caller]
pub fn fftfreq(count: usize, distance: f64) -> Tensor {
    let step = carry!(frequency(count, distance));
    let place = arange(count);
    let wrapped = crate::elementwise::where_(
        &place.less(count.div_ceil(2) as i64),
        &place,
        place.subtract(count as i64),
    );
    wrapped.multiply(step)
}

/// NumPy's `fft.rfftfreq`: as [`fftfreq`], of the first half of a transform of real numbers.
///
/// ```
/// use tharsis_numeric::fft::rfftfreq;
/// assert_eq!(rfftfreq(4, 0.5).to_vec::<f64>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// As [`fftfreq`].
#[track_caller]
pub fn rfftfreq(count: usize, distance: f64) -> Tensor {
    let step = carry!(frequency(count, distance));
    arange(count / 2 + 1).multiply(step)
}

fn frequency(count: usize, distance: f64) -> std::result::Result<f64, GraphError> {
    match count as f64 * distance {
        0.0 => Err(GraphError::ZeroDivision("float division by zero".to_owned())),
        length => Ok(1.0 / length),
    }
}
