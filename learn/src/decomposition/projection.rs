//! Samples along directions, and back.

use crate::checks::{in_dtype_of, samples_for};
use crate::dense::tensor;
use crate::passes::in_fixed_chunks;
use ndarray::{Array1, Array2};
use tharsis_numeric::{Result, Tensor};

/// Coordinates of samples (n, d) along directions (k, d), from an origin (d,), as an expression; (n, k).
/// Floats keep their dtype.
///
/// # Errors
/// `ValueError` for another number of features.
#[track_caller]
pub(super) fn coordinates(
    model: &str,
    x: &Tensor,
    origin: &Array1<f64>,
    directions: &Array2<f64>,
) -> Result<Tensor> {
    let samples = samples_for(model, x, origin.len())?;
    let made = (samples - tensor(origin)).matmul(&tensor(directions).t());
    Ok(in_dtype_of(x, in_fixed_chunks(&made, directions.nrows())))
}

/// The samples with these coordinates (n, k), as an expression; (n, d).
///
/// # Errors
/// `ValueError` for another number of coordinates.
#[track_caller]
pub(super) fn samples_at(
    model: &str,
    x: &Tensor,
    origin: &Array1<f64>,
    directions: &Array2<f64>,
) -> Result<Tensor> {
    let samples = samples_for(model, x, directions.nrows())?;
    Ok(in_dtype_of(x, samples.matmul(&tensor(directions)) + tensor(origin)))
}

/// The deviations along directions with these variances; (k,). Of a direction without variance scikit-learn
/// divides by the smallest step instead.
pub(super) fn deviations(variances: &Array1<f64>) -> Array1<f64> {
    variances.mapv(|variance| variance.sqrt().max(f64::EPSILON))
}
