//! Linear algebra of small matrices in this process, on one thread: the same bits wherever a pass runs.

use crate::states::{matrix, vector};
use ndarray::{Array1, Array2};
use tharsis_numeric::{LocalExecutor, Result, Tensor, execute};

/// A plan for small matrices may take this many times their bytes.
const MEMORY_TIMES: u64 = 64;
/// And this many bytes in any case.
const MEMORY_LEAST_BYTES: u64 = 64 << 20;

/// A small array as a tensor.
#[track_caller]
pub(crate) fn tensor<D: ndarray::Dimension>(array: &ndarray::Array<f64, D>) -> Tensor {
    Tensor::from_array(&array.clone().into_dyn())
}

/// Columns as positions; (k,), int64.
#[track_caller]
pub(crate) fn positions(columns: &[usize]) -> Tensor {
    let columns: Vec<i64> = columns.iter().map(|&column| column as i64).collect();
    Tensor::from_elements(&[columns.len()], &columns)
}

/// Eigenvalues in ascending order and eigenvectors, one a column, of a symmetric matrix.
///
/// # Errors
/// `LinAlgError` if an element is not finite.
#[track_caller]
pub(crate) fn eigh(symmetric: &Array2<f64>) -> Result<(Array1<f64>, Array2<f64>)> {
    let (values, vectors) = tensor(symmetric).eigh(false);
    let local = local(symmetric.len());
    let (made, _) = execute(&[&values, &vectors], &local)?;
    Ok((vector(made[0].fetch_on::<f64>(&local)?)?, matrix(made[1].fetch_on::<f64>(&local)?)?))
}

/// The reduced singular value decomposition: (m, n) to (m, k), (k,) descending, and (k, n).
///
/// # Errors
/// `LinAlgError` if an element is not finite.
#[track_caller]
pub(crate) fn svd(x: &Array2<f64>) -> Result<(Array2<f64>, Array1<f64>, Array2<f64>)> {
    let (left, values, right) = tensor(x).svd();
    let local = local(x.len());
    let (made, _) = execute(&[&left, &values, &right], &local)?;
    let [left, right] = [0, 2].map(|at: usize| made[at].fetch_on::<f64>(&local).and_then(matrix));
    Ok((left?, vector(made[1].fetch_on::<f64>(&local)?)?, right?))
}

/// The solution of a system with a symmetric positive definite matrix; `None` if it is not definite up to
/// rounding.
///
/// # Errors
/// Errors of a run other than that.
#[track_caller]
pub(crate) fn solve_positive(positive: &Array2<f64>, right: &Array2<f64>) -> Result<Option<Array2<f64>>> {
    let lower = tensor(positive).cholesky();
    let upper = lower.t();
    let half = lower.solve_triangular(&tensor(right), true, false);
    let solution = upper.solve_triangular(&half, false, false);
    match solution.fetch_on::<f64>(&local(positive.len() + right.len())) {
        Ok(solution) => matrix(solution).map(Some),
        Err(error) if error.class() == "LinAlgError" => Ok(None),
        Err(error) => Err(error),
    }
}

/// The lower triangle L of a symmetric positive definite matrix L Lᵀ, and the inverse of L; `None` if it is
/// not definite up to rounding.
///
/// # Errors
/// Errors of a run other than that.
#[track_caller]
pub(crate) fn cholesky(positive: &Array2<f64>) -> Result<Option<(Array2<f64>, Array2<f64>)>> {
    let lower = tensor(positive).cholesky();
    let inverse = lower.solve_triangular(&tensor(&Array2::eye(positive.nrows())), true, false);
    let local = local(positive.len());
    let made = execute(&[&lower, &inverse], &local);
    match made {
        Ok((made, _)) => {
            let fetched = |at: usize| made[at].fetch_on::<f64>(&local).and_then(matrix);
            Ok(Some((fetched(0)?, fetched(1)?)))
        }
        Err(error) if error.class() == "LinAlgError" => Ok(None),
        Err(error) => Err(error),
    }
}

fn local(elements: usize) -> LocalExecutor {
    let bytes = elements as u64 * size_of::<f64>() as u64;
    LocalExecutor::sized(1, bytes.saturating_mul(MEMORY_TIMES).max(MEMORY_LEAST_BYTES))
}
