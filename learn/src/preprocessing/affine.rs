//! Features less an offset, divided by a scale: the map of scalers, and back.

use crate::checks::{Nan, checked_for, in_dtype_of};
use crate::dense::tensor;
use ndarray::Array1;
use tharsis_numeric::Tensor;

/// An offset and a scale for each feature; (d,) each.
pub(crate) struct Affine<'a> {
    pub(crate) model: &'static str,
    /// Number of features.
    pub(crate) columns: usize,
    pub(crate) offset: Option<&'a Array1<f64>>,
    pub(crate) scale: Option<&'a Array1<f64>>,
}

impl Affine<'_> {
    /// Samples (n, d) less the offset, divided by the scale; floats keep their dtype. NaN is a
    /// value that is missing. Carries a `ValueError` for another number of features; when run for infinity.
    #[track_caller]
    pub(crate) fn forward(&self, x: &Tensor) -> Tensor {
        let mut made = match checked_for(self.model, x, self.columns, Nan::Missing) {
            Ok(made) => made,
            Err(error) => return Tensor::from(error),
        };
        if let Some(offset) = self.offset {
            made -= tensor(offset);
        }
        if let Some(scale) = self.scale {
            made /= tensor(scale);
        }
        in_dtype_of(x, made)
    }

    /// The samples that [`Affine::forward`] maps to these.
    #[track_caller]
    pub(crate) fn back(&self, x: &Tensor) -> Tensor {
        let mut made = match checked_for(self.model, x, self.columns, Nan::Missing) {
            Ok(made) => made,
            Err(error) => return Tensor::from(error),
        };
        if let Some(scale) = self.scale {
            made *= tensor(scale);
        }
        if let Some(offset) = self.offset {
            made += tensor(offset);
        }
        in_dtype_of(x, made)
    }
}
