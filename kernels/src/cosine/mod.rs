//! Discrete cosine and sine transforms of the lines of a chunk along one axis, by transforms of rustfft and
//! realfft of the same length.
//!
//! A sine transform is a cosine transform of the reversed line, or of the line with every other sign changed,
//! and of its result the other of both; but for the first type.

#[cfg(feature = "dense")]
mod lines;

#[cfg(feature = "dense")]
use crate::DType;
use crate::chunk::Chunk;
use crate::error::KernelError;
use crate::fourier::scratch_bytes;
use serde::{Deserialize, Serialize};

/// The cosines that are summed, as SciPy's `fft.dct` counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CosineType {
    /// Of a line that is even about its first and its last element.
    One,
    /// The one that is meant by "the" transform.
    Two,
    /// The inverse of the second but for a factor.
    Three,
    /// With halves of steps on both sides; its own inverse but for a factor.
    Four,
}

/// A transform along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cosine {
    /// The cosines.
    pub kind: CosineType,
    /// The axis.
    pub axis: usize,
    /// Length of the transform, not 0, and not 1 of the first type: longer lines are cut, shorter ones have
    /// zeros behind them.
    pub len: usize,
    /// Factor of the result.
    pub scale: f64,
    /// Whether elements at the ends have the factors by which the matrix of the transform becomes orthogonal.
    pub orthogonal: bool,
    /// Whether sines are summed in place of cosines, as SciPy's `fft.dst` does; of the first type the length
    /// may then be 1.
    pub sine: bool,
}

impl Cosine {
    /// Transforms each line along the axis: any shape to the same with `len` elements there, of the same
    /// dtype.
    ///
    /// # Errors
    /// `NoLoop` for other dtypes than float32 and float64.
    pub fn run(&self, x: &Chunk) -> Result<Chunk, KernelError> {
        self.run_parts(std::slice::from_ref(x))
    }

    /// As [`Cosine::run`], of a chunk in parts that follow each other along the axis.
    ///
    /// # Errors
    /// As [`Cosine::run`]; `Malformed` without a part.
    #[cfg(feature = "dense")]
    pub fn run_parts(&self, parts: &[Chunk]) -> Result<Chunk, KernelError> {
        let Some(first) = parts.first() else {
            return Err(KernelError::Malformed("a transform of nothing".to_owned()));
        };
        match first.dtype() {
            DType::F32 => self.lines::<f32>(parts),
            DType::F64 => self.lines::<f64>(parts),
            dtype => Err(KernelError::NoLoop { function: "dct", dtypes: vec![dtype] }),
        }
    }

    /// Bytes that a task needs beside its argument and result.
    pub fn scratch_bytes(&self) -> u64 {
        scratch_bytes(2 * self.len + 2)
    }
}
