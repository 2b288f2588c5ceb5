//! Linear algebra of small matrices in this process, on one thread: the same bits wherever a pass runs.

use crate::states::{matrix, vector};
use ndarray::{Array1, Array2, ArrayView1, Axis};
use tharsis_numeric::{LocalExecutor, Result, Tensor, execute};

/// A plan for small matrices may take this many times their bytes.
const MEMORY_TIMES: u64 = 64;
/// And this many bytes in any case.
const MEMORY_LEAST_BYTES: u64 = 64 << 20;
/// Columns are in unlike units if the squares of their lengths differ by more: eigenvalues are exact to the
/// largest one, so those of short columns have less than ten digits.
const UNLIKE: f64 = 1e6;
/// Rows of a factor up to which they are turned in pairs. More of them would take seconds in each round.
const TURNED_MAX: usize = 256;
/// Rounds in which all pairs are turned, at most. Some ten are enough.
const ROUNDS_MAX: usize = 60;
/// The least number of products whose rounding hides an angle.
const ROUNDED_LEAST: usize = 16;
/// A slope whose square is so much more than 1 that their sum is rounded to it.
const STEEP: f64 = 1e8;

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
/// of columns in unlike units: they are the squares of the singular values of a factor. Of more than 256
/// columns in unlike units a singular value is exact to the largest one.
///
/// # Errors
/// `LinAlgError` if an element is not finite.
#[track_caller]
pub(crate) fn spectrum(products: &Array2<f64>, rank: usize) -> Result<(Array1<f64>, Array2<f64>)> {
    let factor = factor(products, rank)?;
    if products.nrows() <= TURNED_MAX && has_unlike_units(products) {
        let is_direction = |column: &ArrayView1<'_, f64>| column.iter().any(|&part| part != 0.0);
        let directions = factor.columns().into_iter().filter(is_direction).count();
        let (mut values, vectors) = turned(&factor);
        values.iter_mut().skip(directions).for_each(|value| *value = 0.0);
        return Ok((values, vectors));
    }
    let (vectors, singular, _) = svd(&factor)?;
    let bound = singular[0] * f64::EPSILON * singular.len() as f64;
    Ok((singular.mapv(|value| if bound < value { value * value } else { 0.0 }), vectors))
}

/// Whether columns with these products (d, d) are in units so unlike that eigenvalues of short ones lose
/// digits to those of long ones.
pub(crate) fn has_unlike_units(products: &Array2<f64>) -> bool {
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for &square in products.diag().iter().filter(|square| 0.0 < **square) {
        (least, most) = (least.min(square), most.max(square));
    }
    UNLIKE * least < most
}

/// The squares of the singular values of a factor (d, r), descending, and its left vectors, one a column. Its
/// rows are turned in pairs until all are at right angles (Jacobi's method, from one side). So a short row
/// keeps its digits beside long ones, as Demmel and Veselić show (1992).
fn turned(factor: &Array2<f64>) -> (Array1<f64>, Array2<f64>) {
    let (count, extent) = factor.dim();
    // Behind a row stand the turns that have made it.
    let row = |at: usize| -> Vec<f64> {
        let turns = (0..count).map(|other| f64::from(u8::from(other == at)));
        factor.row(at).iter().copied().chain(turns).collect()
    };
    let mut rows: Vec<Vec<f64>> = (0..count).map(row).collect();
    for _ in 0..ROUNDS_MAX {
        rows.sort_by(|a, b| square(b, extent).total_cmp(&square(a, extent)));
        let mut is_done = true;
        for at in 1..count {
            let (longer, rest) = rows.split_at_mut(at);
            for longer in longer {
                is_done &= !turn(longer, &mut rest[0], extent);
            }
        }
        if is_done {
            break;
        }
    }
    rows.sort_by(|a, b| square(b, extent).total_cmp(&square(a, extent)));
    let values = rows.iter().map(|row| square(row, extent)).collect();
    (values, Array2::from_shape_fn((count, count), |(row, column)| rows[column][extent + row]))
}

/// Turns two rows in their plane until their first parts are at right angles. Whether they were not.
fn turn(longer: &mut [f64], shorter: &mut [f64], extent: usize) -> bool {
    let (long, short) = (square(longer, extent), square(shorter, extent));
    let together: f64 = longer.iter().zip(&*shorter).take(extent).map(|(a, b)| a * b).sum();
    let rounding = f64::EPSILON * extent.max(ROUNDED_LEAST) as f64;
    if together.abs() <= rounding * long.sqrt() * short.sqrt() {
        return false;
    }
    let slope = (short - long) / (2.0 * together);
    let size = slope.abs();
    let root = if size < STEEP { (1.0 + size * size).sqrt() } else { size };
    let tangent = slope.signum() / (size + root);
    let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
    let sine = cosine * tangent;
    for (a, b) in longer.iter_mut().zip(shorter) {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    }
    true
}

/// The square of the length of the first part of a row.
fn square(row: &[f64], extent: usize) -> f64 {
    row[..extent].iter().map(|part| part * part).sum()
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
        assert!((values[0] / 1e16 - 1.0).abs() < 1e-12 && (values[1] / 0.75 - 1.0).abs() < 1e-12, "{values}");
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
