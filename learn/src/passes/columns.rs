//! Sums and ends of each feature, by one plan that reads the samples once.

use crate::checks::{Nan, Training};
use crate::dense::tensor;
use crate::passes::chunks::piece_rows;
use crate::passes::functions::{Of, RowFunction};
use crate::passes::moments::{any_lost, first_rows_mean};
use crate::passes::rows::RowPass;
use crate::states::{all_finite, lost, vector};
use ndarray::Array1;
use std::sync::Arc;
use tharsis_numeric::{Result, Tensor};

/// Weighted sums of the numbers of each feature that are not NaN.
pub(crate) struct ColumnSums {
    /// The sums of the weights, or the number of samples; (d,).
    pub(crate) count: Array1<f64>,
    /// The sums of the numbers less the shift; (d,).
    pub(crate) sum: Array1<f64>,
    /// The sums of their squares; (d,).
    pub(crate) squares: Array1<f64>,
    /// Subtracted from the numbers before; (d,).
    shift: Array1<f64>,
}

impl ColumnSums {
    /// One pass, around the mean of the first rows; a second one, around the means, if `squares` are wanted
    /// and that of the first rows is so far from the others that digits were lost. Sums may be infinite.
    ///
    /// # Errors
    /// `ValueError` for infinity, where NaN is missing, and for weights that are NaN or negative; errors of
    /// the passes.
    #[track_caller]
    pub(crate) fn of(training: &Training, weight: Option<&Tensor>, squares: bool) -> Result<ColumnSums> {
        ColumnSums::found(training, weight, squares, Nan::Missing)
    }

    #[track_caller]
    fn found(training: &Training, weight: Option<&Tensor>, squares: bool, nan: Nan) -> Result<ColumnSums> {
        let guess = first_rows_mean(&training.x, weight);
        let sums = ColumnSums::around(training, weight, guess, nan)?;
        if !squares || !sums.have_lost_digits() {
            return Ok(sums);
        }
        // A feature without numbers has no mean.
        let mean = sums.mean().mapv(|mean| if mean.is_finite() { mean } else { 0.0 });
        ColumnSums::around(training, weight, tensor(&mean), nan)
    }

    /// The sums of samples without weights, of which none may be missing. Passes as of [`ColumnSums::of`].
    ///
    /// # Errors
    /// `ValueError` for NaN and infinity; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub(crate) fn of_all(training: &Training) -> Result<ColumnSums> {
        let sums = ColumnSums::found(training, None, true, Nan::Refused)?;
        // NaN is left out of the sums.
        let has_all = sums.count.iter().all(|&count| count == training.rows as f64);
        if has_all && sums.are_finite(true) { Ok(sums) } else { Err(training.not_finite(Nan::Refused)) }
    }

    /// One pass over numbers less this shift.
    #[track_caller]
    fn around(training: &Training, weight: Option<&Tensor>, shift: Tensor, nan: Nan) -> Result<ColumnSums> {
        let columns = training.columns;
        let rows = piece_rows((training.rows, columns), 3 * columns);
        let function =
            RowFunction { of: Of::ColumnSums { weighted: weight.is_some() }, held: 2 * rows * (columns + 1) };
        let row = shift.expand_dims(0);
        let inputs: Vec<&Tensor> = std::iter::once(&training.x).chain(weight).chain([&row]).collect();
        let pass = RowPass { function: Arc::new(function), rows, whole: 1 };
        let sums = pass.state(&inputs, 3 * columns, Arc::new(RowFunction::ADD));
        let states = training.engine.run(&[&sums, &shift])?;
        if !all_finite(&states) {
            training.explain_not_finite(nan)?;
        }
        let [sums, shift] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        let sums = vector(sums)?.to_vec();
        let (count, rest) = sums.split_at(columns.min(sums.len()));
        let (sum, squares) = rest.split_at(columns.min(rest.len()));
        let [count, sum, squares] = [count, sum, squares].map(|part| Array1::from(part.to_vec()));
        Ok(ColumnSums { count, sum, squares, shift: vector(shift)? })
    }

    /// The means less the shift; NaN for a feature without numbers.
    fn offset(&self) -> Array1<f64> {
        &self.sum / &self.count
    }

    /// The means; NaN for a feature without numbers.
    pub(crate) fn mean(&self) -> Array1<f64> {
        &self.shift + &self.offset()
    }

    /// The variances, with divisor n. Rounding may leave a negative number, which is 0; NaN of a feature
    /// without numbers stays.
    pub(crate) fn variance(&self) -> Array1<f64> {
        let var = &self.squares / &self.count - self.offset().mapv(|offset| offset * offset);
        var.mapv(|var| if var < 0.0 { 0.0 } else { var })
    }

    /// Whether a variance has lost digits to the distance of its mean from the shift.
    fn have_lost_digits(&self) -> bool {
        any_lost(&self.offset(), &self.variance(), &self.mean())
    }

    /// Whether the sums are within the range of float64; of squares only if they are wanted.
    pub(crate) fn are_finite(&self, squares: bool) -> bool {
        let first = self.count.iter().chain(&self.sum);
        first.chain(self.squares.iter().filter(|_| squares)).all(|number| number.is_finite())
    }
}

/// The least and the largest number of each feature (d,), NaN for one without numbers. One pass.
///
/// # Errors
/// `ValueError` for infinity; errors of the pass.
#[track_caller]
pub(crate) fn column_ends(training: &Training) -> Result<(Array1<f64>, Array1<f64>)> {
    let columns = training.columns;
    let rows = piece_rows((training.rows, columns), 3 * columns);
    let function = RowFunction { of: Of::ColumnEnds, held: rows * columns };
    let pass = RowPass { function: Arc::new(function), rows, whole: 0 };
    let ends = pass.state(&[&training.x], 2 * columns, Arc::new(RowFunction::LEAST));
    let ends = vector(training.engine.run(&[&ends])?.pop().ok_or_else(lost)?)?.to_vec();
    let (least, largest) = ends.split_at(columns.min(ends.len()));
    let (mut least, mut largest) =
        (Array1::from(least.to_vec()), Array1::from(largest.to_vec()).mapv(|x| -x));
    for (least, largest) in least.iter_mut().zip(&mut largest) {
        if *largest < *least {
            (*least, *largest) = (f64::NAN, f64::NAN);
        }
    }
    if least.iter().chain(&largest).any(|end| end.is_infinite()) {
        training.explain_not_finite(Nan::Missing)?;
    }
    Ok((least, largest))
}
