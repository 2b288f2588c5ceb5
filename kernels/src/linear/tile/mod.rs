//! The work of a task on tiles of a matrix that lies in many.
//!
//! A Cholesky factor is made tile by tile, each from those to its left. For an LU factorization a task holds
//! a block of columns as a whole, so that pivots are chosen among all rows, as LAPACK does.

#[cfg(feature = "dense")]
mod steps;

#[cfg(feature = "dense")]
use super::field::with_field;
use super::size_dtype;
use crate::dtype::DType;
#[cfg(feature = "dense")]
use crate::{chunk::Chunk, error::KernelError};
use serde::{Deserialize, Serialize};

/// A step of a factorization by tiles. Exchanges of rows are as in LAPACK: row `i` of the matrix is exchanged
/// with row `swaps[i]`, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tile {
    /// x with x l^H = a, for a (m, b) and a lower triangle l (b, b); (m, b).
    SolveRight,
    /// Factors a block of columns (m, b) that begins at row `start` of the matrix: both factors packed (m,
    /// b), exchanges (b, 1), the upper triangle (b, b), and its diagonal (b, 1).
    Panel {
        /// The first row.
        start: usize,
    },
    /// Applies a factored block of columns (m, b) and its exchanges (b, 1) to a block (m, w) beside it: the
    /// rows of the upper factor (b, w), and what is left to factor (m - b, w).
    Update {
        /// The first row.
        start: usize,
    },
    /// The lower factor (rows, b) of a packed block of columns (m, b), after the exchanges (k, 1) of blocks
    /// behind it, if any.
    Lower {
        /// Rows of the matrix.
        rows: usize,
    },
    /// The order of rows (rows,) that exchanges (k, 1) make.
    Order {
        /// Rows of the matrix.
        rows: usize,
    },
    /// The determinant, its sign and the logarithm of its absolute value, from the diagonal (n, 1) of the
    /// upper factor and the exchanges (n, 1).
    Determinant,
}

impl Tile {
    /// Does the step: the results as each step names them, and its arguments in the order named there.
    ///
    /// # Errors
    /// `NoLoop` for a dtype that is not factored, `Malformed` for arguments of other shapes.
    #[cfg(feature = "dense")]
    pub fn run(self, args: &[Chunk]) -> Result<Vec<Chunk>, KernelError> {
        let is_matrix = |arg: &Chunk| arg.shape().len() == 2;
        if args.is_empty() || !args.iter().all(is_matrix) {
            let shapes: Vec<&[usize]> = args.iter().map(Chunk::shape).collect();
            return Err(KernelError::Malformed(format!("{self:?} of {shapes:?}")));
        }
        match self {
            Tile::Order { rows } => steps::order_chunk(&args[0], rows),
            _ => with_field!(args[0].dtype(), "linalg", T => steps::run::<T>(self, args)),
        }
    }

    /// Bytes that a task needs beside its arguments and results: copies of both in other layouts.
    pub fn scratch_bytes(self, argument_bytes: u64) -> u64 {
        match self {
            Tile::Order { rows } | Tile::Lower { rows } => 2 * argument_bytes + 8 * rows as u64,
            _ => 2 * argument_bytes,
        }
    }
}

/// The dtypes of the results of [`Tile::Determinant`].
pub fn determinant_dtypes(dtype: DType) -> [DType; 3] {
    [dtype, dtype, size_dtype(dtype)]
}
