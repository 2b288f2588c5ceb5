//! Factorizations of one matrix, by faer, in float64.

#[cfg(feature = "dense")]
mod steps;

#[cfg(feature = "dense")]
use crate::{chunk::Chunk, error::KernelError};
use serde::{Deserialize, Serialize};

/// One result of a factorization of a matrix (m, n), with k = min(m, n).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Factor {
    /// The lower factor of a symmetric positive definite matrix: (n, n) to (n, n).
    Cholesky,
    /// The upper factor R with R'R = G for the Gram matrix G of `rows` rows. If G is nearly singular, a bound
    /// on its rounding error is added to the diagonal. Then R exists, and X R^-1 is much better conditioned
    /// than X.
    GramUpper {
        /// Rows of the matrix whose Gram matrix this is.
        rows: u64,
    },
    /// The inverse of an upper triangle: (n, n) to (n, n).
    InverseUpper,
    /// The orthonormal factor: (m, n) to (m, k).
    QrQ,
    /// The upper triangular factor: (m, n) to (k, n).
    QrR,
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
            Factor::Cholesky | Factor::GramUpper { .. } | Factor::InverseUpper => vec![n, n],
            Factor::QrQ | Factor::SvdU => vec![m, k],
            Factor::QrR | Factor::SvdVt => vec![k, n],
            Factor::SvdS => vec![k],
        }
    }

    /// Computes the result for a float64 matrix.
    ///
    /// # Errors
    /// `Singular` where NumPy raises `LinAlgError`: not positive definite, not finite, no convergence.
    #[cfg(feature = "dense")]
    pub fn run(self, matrix: &Chunk) -> Result<Chunk, KernelError> {
        steps::run(self, matrix)
    }
}
