//! Linear algebra on stacks of matrices, by faer, in the dtype of the matrices.
//!
//! [`Linear`] has what one task does with whole matrices, [`crate::factor`] the steps of the factorization of
//! tall matrices.

#[cfg(feature = "dense")]
mod divide;
#[cfg(feature = "dense")]
pub(crate) mod field;
#[cfg(feature = "dense")]
mod hermitian;
#[cfg(feature = "dense")]
mod lu;
#[cfg(feature = "dense")]
mod real;
#[cfg(feature = "dense")]
mod results;
#[cfg(feature = "dense")]
mod scale;
#[cfg(feature = "dense")]
mod secular;
#[cfg(test)]
#[cfg(feature = "dense")]
mod tests_of_eigen;
pub mod tile;
#[cfg(feature = "dense")]
mod tridiagonal;
#[cfg(feature = "dense")]
mod whole;

use crate::chunk::Chunk;
use crate::dtype::{DType, to_complex};
use crate::error::KernelError;
#[cfg(feature = "dense")]
use field::with_field;
#[cfg(feature = "dense")]
use results::{Results, singular};
use serde::{Deserialize, Serialize};

/// A function of matrices, each of which one task holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Linear {
    /// The lower factor of a Hermitian positive definite matrix, of which the lower triangle is read.
    Cholesky,
    /// The determinant, its sign, and the logarithm of its absolute value.
    Determinant,
    /// Eigenvalues and right eigenvectors, complex.
    Eigen,
    /// Eigenvalues, ascending, and eigenvectors of a Hermitian matrix, of which one triangle is read.
    Hermitian {
        /// Whether it is the upper triangle.
        upper: bool,
    },
    /// The eigenvalues alone.
    HermitianValues {
        /// Whether the upper triangle is read.
        upper: bool,
    },
    /// The inverse.
    Inverse,
    /// The order of rows, and the factors of the rows in this order: unit lower and upper triangle.
    Lu,
    /// The orthonormal factor Q and the upper triangle R.
    Qr(QrMode),
    /// The solution of a X = b.
    Solve,
    /// The solution of a X = b, where a triangle of the matrix is read.
    SolveTriangular {
        /// Whether it is the lower triangle.
        lower: bool,
        /// Whether its diagonal is taken to be of ones.
        unit: bool,
    },
    /// Left singular vectors U, singular values, and right ones V^H.
    Svd {
        /// Whether U and V are square.
        full: bool,
    },
    /// Singular values, descending.
    SingularValues,
}

/// Extent of the factors of a matrix (m, n), with k = min(m, n).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QrMode {
    /// Q (m, k) and R (k, n).
    Reduced,
    /// Q (m, m) and R (m, n).
    Complete,
    /// R (k, n) alone.
    R,
    /// As LAPACK has it: the transpose (n, m) of R and the reflectors below it, and their factors (k,).
    Raw,
}

impl Linear {
    /// Shape and dtype of each result for a matrix (m, n), and `columns` of the right side.
    pub fn results(self, [m, n]: [usize; 2], columns: usize, dtype: DType) -> Vec<(Vec<usize>, DType)> {
        let k = m.min(n);
        let size = size_dtype(dtype);
        match self {
            Linear::Cholesky | Linear::Inverse => vec![(vec![n, n], dtype)],
            Linear::Determinant => vec![(vec![], dtype), (vec![], dtype), (vec![], size)],
            Linear::Eigen => vec![(vec![n], to_complex(dtype)), (vec![n, n], to_complex(dtype))],
            Linear::Hermitian { .. } => vec![(vec![n], size), (vec![n, n], dtype)],
            Linear::HermitianValues { .. } => vec![(vec![n], size)],
            Linear::Lu => vec![(vec![m], DType::I64), (vec![m, k], dtype), (vec![k, n], dtype)],
            Linear::Qr(QrMode::Reduced) => vec![(vec![m, k], dtype), (vec![k, n], dtype)],
            Linear::Qr(QrMode::Complete) => vec![(vec![m, m], dtype), (vec![m, n], dtype)],
            Linear::Qr(QrMode::R) => vec![(vec![k, n], dtype)],
            Linear::Qr(QrMode::Raw) => vec![(vec![n, m], dtype), (vec![k], dtype)],
            Linear::Solve | Linear::SolveTriangular { .. } => vec![(vec![n, columns], dtype)],
            Linear::Svd { full: false } => vec![(vec![m, k], dtype), (vec![k], size), (vec![k, n], dtype)],
            Linear::Svd { full: true } => vec![(vec![m, m], dtype), (vec![k], size), (vec![n, n], dtype)],
            Linear::SingularValues => vec![(vec![k], size)],
        }
    }

    /// Whether there are results for square matrices only.
    pub fn is_square(self) -> bool {
        !matches!(self, Linear::Lu | Linear::Qr(_) | Linear::Svd { .. } | Linear::SingularValues)
    }

    /// Applies the function to each matrix of a stack (.., m, n), float32, float64 or complex of them, with
    /// the right sides (.., n, columns) if it takes any. [`Linear::takes_threads`] says of which functions
    /// the time depends on `threads`; the results never do.
    ///
    /// # Errors
    /// `Singular` where NumPy raises `LinAlgError`; `NoLoop` for other dtypes.
    #[cfg(feature = "dense")]
    pub fn run(self, args: &[Chunk], threads: usize) -> Result<Vec<Chunk>, KernelError> {
        let &[ref lead @ .., m, n] = args[0].shape() else {
            return Err(KernelError::Malformed(format!("matrices of shape {:?}", args[0].shape())));
        };
        let columns = args.get(1).and_then(|right| right.shape().last().copied()).unwrap_or(0);
        let mut results = Results::new(lead, self.results([m, n], columns, args[0].dtype()));
        let count: usize = lead.iter().product();
        let dtype = args[0].dtype();
        for index in 0..count {
            with_field!(dtype, "linalg", T => whole::run::<T>(self, args, index, threads, &mut results))?;
        }
        results.finish()
    }

    /// The numbered results for each matrix of a stack, as [`Linear::run`]. Values alone are found without
    /// the vectors.
    ///
    /// # Errors
    /// As [`Linear::run`]; `Malformed` if there is no such result.
    pub fn run_parts(
        self,
        parts: &[usize],
        args: &[Chunk],
        threads: usize,
    ) -> Result<Vec<Chunk>, KernelError> {
        let values = match (self, parts) {
            (Linear::Hermitian { upper }, [0]) => Some(Linear::HermitianValues { upper }),
            (Linear::Svd { .. }, [1]) => Some(Linear::SingularValues),
            _ => None,
        };
        if let Some(values) = values {
            return values.run(args, threads);
        }
        let made = self.run(args, threads)?;
        let part = |&part: &usize| {
            let found = made.get(part).cloned();
            found.ok_or_else(|| KernelError::Malformed(format!("result {part} of {self:?}")))
        };
        parts.iter().map(part).collect()
    }

    /// Whether a matrix is done by several threads if they are granted.
    pub fn takes_threads(self) -> bool {
        matches!(self, Linear::Hermitian { .. } | Linear::HermitianValues { .. })
    }

    /// Bytes that a task needs beside its arguments and results, for a matrix (m, n) of elements of `size`
    /// bytes: copies in columns, and what faer works on.
    pub fn scratch_bytes(self, [m, n]: [usize; 2], columns: usize, size: usize) -> u64 {
        let (m, n, k) = (m as u64, n as u64, m.min(n) as u64);
        let elements = match self {
            Linear::Cholesky | Linear::Determinant => 2 * n * n,
            Linear::Eigen => 10 * n * n,
            // The matrix, its eigenvectors, a copy of them and two for their last product; faer needs six for
            // complex matrices. Pairs of a panel and factors of blocks have 256 columns at most.
            Linear::Hermitian { .. } => 6 * n * n + 256 * n,
            Linear::HermitianValues { .. } => 3 * n * n + 256 * n,
            Linear::Inverse | Linear::Lu => 3 * m * n,
            Linear::Qr(QrMode::Complete) => 3 * m * n + 2 * m * m,
            Linear::Qr(_) => 5 * m * n,
            Linear::Solve | Linear::SolveTriangular { .. } => 2 * n * n + 2 * n * columns as u64,
            Linear::Svd { full: false } => 3 * m * n + 8 * k * k,
            Linear::Svd { full: true } => 3 * m * n + m * m + n * n + 8 * k * k,
            Linear::SingularValues => 3 * m * n + 4 * k * k,
        };
        elements * size as u64 + SCRATCH_BYTES
    }

    /// Estimated multiplications and additions for a matrix (m, n).
    pub fn flops(self, [m, n]: [usize; 2], columns: usize) -> f64 {
        let (large, small) = (m.max(n) as f64, m.min(n) as f64);
        let base = large * small * small;
        match self {
            Linear::Cholesky => base / 3.0,
            Linear::Determinant | Linear::Lu => base,
            Linear::Inverse | Linear::Qr(_) => 2.0 * base,
            Linear::Solve => base + small * small * columns as f64,
            Linear::SolveTriangular { .. } => small * small * columns as f64,
            Linear::Hermitian { .. } => 5.0 * base,
            Linear::HermitianValues { .. } => 4.0 / 3.0 * base,
            Linear::SingularValues => 4.0 * base,
            Linear::Svd { .. } => 12.0 * base,
            Linear::Eigen => 25.0 * base,
        }
    }
}

/// Memory of faer for small matrices.
const SCRATCH_BYTES: u64 = 64 << 10;

/// The dtype of absolute values.
fn size_dtype(dtype: DType) -> DType {
    if dtype.is_complex() { dtype.real_part() } else { dtype }
}
