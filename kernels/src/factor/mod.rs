//! Factorizations of one matrix, by faer, in float64.

#[cfg(feature = "dense")]
mod steps;

use crate::chunk::Chunk;
use crate::error::KernelError;
use serde::{Deserialize, Serialize};

/// One result of a factorization of a matrix (m, n), with k = min(m, n).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Factor {
    /// The lower factor of a symmetric positive definite matrix: (n, n) to (n, n).
    Cholesky,
    /// The orthonormal factor: (m, n) to (m, k).
    QrQ,
    /// The upper triangular factor: (m, n) to (k, n).
    QrR,
    /// The signs by which an orthonormal factor, of which this is the top, becomes that of reflections: 1 or
    /// -1 for each column, (n, n) to (n,).
    ReflectionSigns,
    /// Singular values, descending: (m, n) to (k,).
    SvdS,
    /// Left singular vectors: (m, n) to (m, k).
    SvdU,
    /// Right singular vectors, one a row: (m, n) to (k, n).
    SvdVt,
}

impl Factor {
    /// The shape of the result for a matrix (m, n).
    pub fn shape(self, m: usize, n: usize) -> Vec<usize> {
        let k = m.min(n);
        match self {
            Factor::Cholesky => vec![n, n],
            Factor::ReflectionSigns => vec![n],
            Factor::QrQ | Factor::SvdU => vec![m, k],
            Factor::QrR | Factor::SvdVt => vec![k, n],
            Factor::SvdS => vec![k],
        }
    }

    /// The most bytes that are held beside a matrix (m, n) and the result.
    pub fn scratch_bytes(self, m: usize, n: usize) -> u64 {
        // A copy in columns that becomes the factors, and the result in another order than it is returned in.
        4 * (m as u64 * n as u64 * 8) + 8 * (n as u64 * n as u64 * 8)
    }

    /// Computes the result for a float64 matrix.
    ///
    /// # Errors
    /// `Singular` where NumPy raises `LinAlgError`: not positive definite, no convergence, and for all but
    /// those of `qr`, which then have NaN, not finite.
    #[cfg(feature = "dense")]
    pub fn run(self, matrix: &Chunk) -> Result<Chunk, KernelError> {
        steps::run(self, matrix)
    }
}

/// Refuses, since the program was built without dense linear algebra.
///
/// # Errors
/// Always `NotBuilt`.
#[cfg(not(feature = "dense"))]
pub fn basis_rows(_: &Chunk, _: &Chunk) -> Result<Chunk, KernelError> {
    Err(KernelError::NotBuilt("linear algebra"))
}

/// Rows of an orthonormal matrix: the orthonormal factor of `rows` (m, n) times the elements of a matrix (n,
/// n), which is flat, (1, n n).
///
/// # Errors
/// `Malformed` for other shapes.
#[cfg(feature = "dense")]
pub fn basis_rows(rows: &Chunk, flat: &Chunk) -> Result<Chunk, KernelError> {
    steps::basis_rows(rows, flat)
}
