//! Linear algebra of small matrices in this process, on one thread: the same bits wherever a pass runs.

use crate::states::{matrix, vector};
use ndarray::{Array1, Array2, Axis};
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

/// A matrix F (d, d) with F Fᵀ the products of columns (d, d), which have no more than `rank` directions; its
/// columns of directions that are rounding are zero.
///
/// Columns are measured by their lengths first, as eigenvalues are exact to the largest one: products of
/// columns whose units differ by 10⁸ would have one direction.
///
/// # Errors
/// `LinAlgError` if an element is not finite.
#[track_caller]
pub(crate) fn factor(products: &Array2<f64>, rank: usize) -> Result<Array2<f64>> {
    let columns = products.nrows();
    let lengths = products.diag().mapv(|square| square.max(0.0).sqrt());
    let units = lengths.mapv(|length| if 0.0 < length { length } else { 1.0 });
    let (values, vectors) = eigh(&Array2::from_shape_fn((columns, columns), |(row, column)| {
        products[[row, column]] / units[row] / units[column]
    }))?;
    let bound = values.last().map_or(0.0, |largest| largest * f64::EPSILON * columns as f64);
    let roots = Array1::from_shape_fn(columns, |at| {
        if bound < values[at] && columns - rank.min(columns) <= at { values[at].sqrt() } else { 0.0 }
    });
    Ok(vectors * &roots * &units.insert_axis(Axis(1)))
}

/// The eigenvalues of products of columns (d, d), which have no more than `rank` directions, descending, and
/// their vectors, one a column. Those of directions that are rounding are zero. All others have digits, also
/// of columns in unlike units: they are the squares of the singular values of a factor.
///
/// # Errors
/// `LinAlgError` if an element is not finite.
#[track_caller]
pub(crate) fn spectrum(products: &Array2<f64>, rank: usize) -> Result<(Array1<f64>, Array2<f64>)> {
    let (vectors, singular, _) = svd(&factor(products, rank)?)?;
    let bound = singular[0] * f64::EPSILON * singular.len() as f64;
    Ok((singular.mapv(|value| if bound < value { value * value } else { 0.0 }), vectors))
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

#[cfg(test)]
mod tests {
    use super::spectrum;
    use ndarray::{Array2, arr2};

    #[test]
    fn spectra_of_columns_in_unlike_units() {
        // Columns of length 1 halfway between parallel and upright, the second one in units of 10⁻⁸.
        let products = arr2(&[[1.0, 0.5e8, 0.0], [0.5e8, 1e16, 0.0], [0.0, 0.0, 0.0]]);
        let (values, vectors) = spectrum(&products, 3).unwrap();
        assert!((values[0] / 1e16 - 1.0).abs() < 1e-12 && (values[1] / 0.75 - 1.0).abs() < 1e-6, "{values}");
        assert_eq!(values[2], 0.0);
        let small = vectors.column(1);
        assert!((small[0].abs() - 1.0).abs() < 1e-12 && small[1].abs() < 1e-7, "{small}");
        let unit = &vectors.t().dot(&vectors) - &Array2::<f64>::eye(3);
        assert!(unit.iter().all(|part| part.abs() < 1e-12), "{unit}");
        assert_eq!(spectrum(&products, 1).unwrap().0[1], 0.0);
        // A column twice has one direction.
        let (values, _) = spectrum(&arr2(&[[1.0, 2.0], [2.0, 4.0]]), 2).unwrap();
        assert!((values[0] - 5.0).abs() < 1e-12 && values[1] == 0.0, "{values}");
        assert_eq!(spectrum(&arr2(&[[0.0]]), 1).unwrap().0[0], 0.0);
    }
}
