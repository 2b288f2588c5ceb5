//! States of passes: small arrays.

use ndarray::{Array1, Array2, ArrayD, Ix1, Ix2};
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result};

/// Whether all numbers of several arrays are finite.
pub(crate) fn all_finite<'a>(states: impl IntoIterator<Item = &'a ArrayD<f64>>) -> bool {
    states.into_iter().all(|state| state.iter().all(|value| value.is_finite()))
}

/// A state of two axes.
///
/// # Errors
/// `Internal` for another number of axes.
#[track_caller]
pub(crate) fn matrix(state: ArrayD<f64>) -> Result<Array2<f64>> {
    state.into_dimensionality::<Ix2>().map_err(|error| Error::here(GraphError::Internal(error.to_string())))
}

/// A state of one axis.
///
/// # Errors
/// `Internal` for another number of axes.
#[track_caller]
pub(crate) fn vector(state: ArrayD<f64>) -> Result<Array1<f64>> {
    state.into_dimensionality::<Ix1>().map_err(|error| Error::here(GraphError::Internal(error.to_string())))
}

/// The error of a state that a pass has not made.
#[track_caller]
pub(crate) fn lost() -> Error {
    Error::here(GraphError::Internal("a state of a pass is missing".to_owned()))
}
