//! Discrete Fourier transforms of the lines of a chunk along one axis, by rustfft and realfft.

#[cfg(feature = "dense")]
pub(crate) mod lines;

use crate::DType;
use crate::along::{TOGETHER_BYTES, TOGETHER_MIN};
use crate::chunk::Chunk;
use crate::error::KernelError;
use serde::{Deserialize, Serialize};

/// A transform of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transform {
    /// Complex to complex.
    Forward,
    /// Complex to complex, with the other sign in the exponent.
    Inverse,
    /// Real to the first half of the complex result, which is Hermitian.
    RealForward,
    /// The first half of a Hermitian line to real.
    RealInverse,
}

/// A transform along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fourier {
    /// The transform.
    pub transform: Transform,
    /// The axis.
    pub axis: usize,
    /// Length of the transform, not 0: longer lines are cut, shorter ones have zeros behind them.
    pub len: usize,
    /// Factor of the result.
    pub scale: f64,
}

impl Transform {
    /// Elements of the result along the axis, of a transform of length `len`.
    pub fn extent(self, len: usize) -> usize {
        match self {
            Transform::RealForward => len / 2 + 1,
            _ => len,
        }
    }

    /// The dtype of the result, of an argument whose parts are of `real`.
    pub fn dtype(self, real: DType) -> DType {
        match self {
            Transform::RealInverse => real,
            _ => crate::to_complex(real),
        }
    }

    /// Whether the argument is complex.
    pub fn takes_complex(self) -> bool {
        self != Transform::RealForward
    }
}

impl Fourier {
    /// Transforms each line along the axis: any shape to the same with another extent there. Computes in
    /// float32 or float64, as the argument is.
    ///
    /// # Errors
    /// `NoLoop` for other dtypes.
    pub fn run(&self, x: &Chunk) -> Result<Chunk, KernelError> {
        self.run_parts(std::slice::from_ref(x))
    }

    /// As [`Fourier::run`], of a chunk in parts that follow each other along the axis.
    ///
    /// # Errors
    /// As [`Fourier::run`]; `Malformed` without a part.
    #[cfg(feature = "dense")]
    pub fn run_parts(&self, parts: &[Chunk]) -> Result<Chunk, KernelError> {
        let Some(first) = parts.first() else {
            return Err(KernelError::Malformed("a transform of nothing".to_owned()));
        };
        match (first.dtype(), self.transform.takes_complex()) {
            (DType::C64, true) | (DType::F32, false) => self.lines::<f32>(parts),
            (DType::C128, true) | (DType::F64, false) => self.lines::<f64>(parts),
            (dtype, _) => Err(KernelError::NoLoop { function: "fft", dtypes: vec![dtype] }),
        }
    }

    /// Bytes that a task needs beside its argument and result.
    pub fn scratch_bytes(&self) -> u64 {
        scratch_bytes(self.len)
    }
}

/// Bytes that transforms of length `len` need beside their argument and result.
pub(crate) fn scratch_bytes(len: usize) -> u64 {
    let line = len as u64 * DType::C128.size_bytes() as u64;
    LINES * line + (2 * TOGETHER_MIN as u64 * line).max(2 * TOGETHER_BYTES as u64)
}

/// Lines that a task holds beside its argument and result: what plans need, and one of each.
const LINES: u64 = 8;
