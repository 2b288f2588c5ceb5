//! Errors of the kernels.

use crate::dtype::DType;

/// Why a kernel could not be built or run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum KernelError {
    /// The function is not defined for these dtypes.
    #[error("{function} is not defined for {}", dtypes.iter().map(|d| d.name()).collect::<Vec<_>>().join(" and "))]
    NoLoop { function: &'static str, dtypes: Vec<DType> },
    /// An array of this shape does not fit its buffer.
    #[error("an array of shape {shape:?} does not fit a buffer of {capacity} elements")]
    OutOfBounds { shape: Vec<usize>, capacity: usize },
    /// A value of another dtype was asked for.
    #[error("expected elements of {expected}, found {found}")]
    WrongDType { expected: DType, found: DType },
    /// A program with a reference that does not exist or does not match. Always a defect of the planner.
    #[error("malformed program: {0}")]
    Malformed(String),
    /// A value outside the function's domain where NumPy raises.
    #[error("{0}")]
    Value(String),
    /// A division for which NumPy raises `ZeroDivisionError`.
    #[error("{0}")]
    ZeroDivision(String),
    /// A position beyond its axis, found among the elements of positions.
    #[error("index {index} is out of bounds for axis {axis} with size {extent}")]
    Index { index: i64, axis: usize, extent: usize },
    /// The factorization or solution does not exist.
    #[error("{0}")]
    Singular(String),
    /// The program was built without dense linear algebra.
    #[error("this program was built without {0}; build it with the feature `tensor` of tharsis")]
    NotBuilt(&'static str),
    /// The system refused memory.
    #[error("{needed_bytes} bytes could not be allocated")]
    NoMemory { needed_bytes: usize },
}
