//! Least squares with a penalty on the squares of the slopes, from none to any.
//!
//! Products of columns are enough where the system that they make is well conditioned, which the penalty or
//! its eigenvalues tell. Otherwise factors of the samples themselves are made, whose condition is the root.

use crate::checks::{Nan, Training};
use crate::dense::{eigh, solve_positive, svd, tensor};
use crate::passes::{Around, Centred, Moments};
use crate::states::{all_finite, lost, matrix};
use ndarray::{Array1, Array2, Axis, Slice};
use tharsis_numeric::{Result, Tensor, concatenate};

/// Largest ratio of eigenvalues of a system that is solved by products of columns: half of the digits.
pub(super) const CONDITION_MAX: f64 = 1e8;

/// Slopes, and the means through which the line goes.
pub(crate) struct Least {
    /// (d, k).
    pub(crate) slopes: Array2<f64>,
    /// The means of the columns, or zeros; (d,).
    pub(crate) mean: Array1<f64>,
    /// The means of the targets, or zeros; (k,).
    pub(crate) target_mean: Array1<f64>,
}

impl Least {
    /// The slopes for targets (n, k), with the penalty that belongs to a sum of weights. One pass, or a few
    /// more if there are fewer samples than features, or the system is close to singular. Without a penalty
    /// the shortest one of several solutions.
    ///
    /// # Errors
    /// `ValueError` for NaN, infinity, negative weights, and weights that are all zero; `OverflowError` for
    /// sums beyond float64; `MemoryError` for too many features; errors of the passes.
    #[track_caller]
    pub(crate) fn of(
        training: &Training,
        targets: &Tensor,
        around: Around,
        penalty: impl Fn(f64) -> f64,
    ) -> Result<Least> {
        if training.columns <= training.rows {
            let moments = Moments::of(training, Some(targets), around)?;
            let penalty = penalty(moments.weight);
            // The products of a column that is constant are rounding, as large as it may be.
            let varies = !(0..training.columns).any(|column| moments.is_constant(column));
            if (varies || is_covered(&moments.gram, penalty))
                && let Some(slopes) = solved(&moments.gram, &moments.cross, penalty)?
            {
                return Least { slopes, mean: moments.mean, target_mean: moments.target_mean }
                    .checked(training);
            }
        }
        let centred = Centred::of(training, targets, around)?;
        let penalty = penalty(centred.weight);
        let by_samples = if training.rows < training.columns {
            by_products_of_samples(training, &centred, penalty)?
        } else {
            None
        };
        let slopes = match by_samples {
            Some(slopes) => slopes,
            None => by_factors(training, &centred, penalty)?,
        };
        Least { slopes, mean: centred.mean, target_mean: centred.target_mean }.checked(training)
    }

    #[track_caller]
    fn checked(self, training: &Training) -> Result<Least> {
        if self.slopes.iter().all(|slope| slope.is_finite()) {
            return Ok(self);
        }
        Err(training.beyond_float64())
    }
}

/// The solution of a system with a symmetric matrix that has no negative eigenvalue, plus `penalty` on its
/// diagonal; `None` if it is too close to singular.
#[track_caller]
pub(crate) fn solved(square: &Array2<f64>, right: &Array2<f64>, penalty: f64) -> Result<Option<Array2<f64>>> {
    let mut penalized = square.clone();
    penalized.diag_mut().mapv_inplace(|square| square + penalty);
    if is_covered(square, penalty)
        && let Some(solution) = solve_positive(&penalized, right)?
    {
        return Ok(Some(solution));
    }
    let Some(own) = well_conditioned(&penalized)? else { return Ok(None) };
    let Unitless { scale, values, vectors } = own;
    let rows = scale.view().insert_axis(Axis(1));
    let along = vectors.t().dot(&(right * &rows)) / values.insert_axis(Axis(1));
    Ok(Some(vectors.dot(&along) * rows))
}

/// Products of columns in units of the lengths of these: how columns are measured is no matter of condition.
pub(super) struct Unitless {
    /// One by the lengths; (d,).
    scale: Array1<f64>,
    /// Eigenvalues, ascending; (d,).
    values: Array1<f64>,
    /// Their vectors; (d, d).
    vectors: Array2<f64>,
}

/// Products of columns (d, d) in units of their lengths. `None` if they are close to singular.
#[track_caller]
pub(super) fn well_conditioned(products: &Array2<f64>) -> Result<Option<Unitless>> {
    let scale = products.diag().mapv(|square| 1.0 / square.sqrt());
    if scale.iter().any(|scale| !scale.is_finite() || *scale == 0.0) {
        return Ok(None);
    }
    let (values, vectors) = eigh(&(products * &scale.view().insert_axis(Axis(1)) * &scale))?;
    let (Some(&least), Some(&most)) = (values.first(), values.last()) else { return Ok(None) };
    let is_sound = 0.0 < least && most <= CONDITION_MAX * least;
    Ok(is_sound.then_some(Unitless { scale, values, vectors }))
}

/// Whether a penalty alone makes a system well conditioned.
fn is_covered(square: &Array2<f64>, penalty: f64) -> bool {
    square.diag().iter().all(|&square| square <= CONDITION_MAX * penalty)
}

/// The slopes by products of samples, (n, n), of which there are fewer than features. Two passes.
#[track_caller]
fn by_products_of_samples(
    training: &Training,
    centred: &Centred,
    penalty: f64,
) -> Result<Option<Array2<f64>>> {
    training.check_square(training.rows)?;
    let states = training.engine.run(&[&centred.x.matmul(&centred.x.t()), &centred.y])?;
    if !all_finite(&states) {
        return Err(training.not_finite(Nan::Refused));
    }
    let [kernel, right] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
    let Some(shares) = solved(&matrix(kernel)?, &matrix(right)?, penalty)? else { return Ok(None) };
    let slopes = centred.x.t().matmul(&tensor(&shares));
    matrix(training.engine.run(&[&slopes])?.pop().ok_or_else(lost)?).map(Some)
}

/// The slopes by singular values of the samples. Directions whose singular value is rounding are left out.
#[track_caller]
fn by_factors(training: &Training, centred: &Centred, penalty: f64) -> Result<Array2<f64>> {
    let Factors { singular, vectors, along, .. } = Factors::of(training, centred)?;
    let factors = singular.mapv(|value| if 0.0 < value { 1.0 / (value + penalty / value) } else { 0.0 });
    Ok(vectors.dot(&(along * factors.insert_axis(Axis(1)))))
}

/// The upper factor of samples beside their targets: products of its columns are those of theirs. (r, d + k).
/// One pass, by blocks of rows if there are many.
#[track_caller]
pub(super) fn upper_factor(training: &Training, centred: &Centred) -> Result<Array2<f64>> {
    let upper = concatenate(&[&centred.x, &centred.y], 1).qr_upper();
    let states = training.engine.run(&[&upper])?;
    if !all_finite(&states) {
        return Err(training.not_finite(Nan::Refused));
    }
    matrix(states.into_iter().next().ok_or_else(lost)?)
}

/// Singular values of samples, whose condition is the root of that of their products.
pub(super) struct Factors {
    /// Descending, 0 for those that are rounding; (r,).
    pub(super) singular: Array1<f64>,
    /// The directions of features that belong to them; (d, r).
    pub(super) vectors: Array2<f64>,
    /// The targets along the directions of samples that belong to them; (r, k).
    pub(super) along: Array2<f64>,
    /// The squares of the targets beside these directions; (k,).
    pub(super) beside: Array1<f64>,
}

impl Factors {
    /// One pass, by blocks of rows if there are many.
    #[track_caller]
    pub(super) fn of(training: &Training, centred: &Centred) -> Result<Factors> {
        let columns = training.columns;
        let upper = upper_factor(training, centred)?;
        let own = upper.slice_axis(Axis(1), Slice::from(..columns));
        let projected = upper.slice_axis(Axis(1), Slice::from(columns..));
        let (left, singular, right) = svd(&own.to_owned())?;
        let largest = singular.first().copied().unwrap_or(0.0);
        let bound = largest * f64::EPSILON * training.rows.max(columns) as f64;
        let singular = singular.mapv(|value| if bound < value { value } else { 0.0 });
        let along = left.t().dot(&projected);
        let beside = (&projected - &left.dot(&along)).mapv(|part| part * part).sum_axis(Axis(0));
        Ok(Factors { singular, vectors: right.reversed_axes(), along, beside })
    }
}
