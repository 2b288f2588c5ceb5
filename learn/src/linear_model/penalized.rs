//! Coefficients that make the mean loss of a linear model least, with a penalty on their squares.

use super::minimize::{Measure, Minimum, Point, minimize};
use crate::passes::LinearPass;
use ndarray::{Array1, Array2};
use tharsis_numeric::Result;

/// A problem: all but the data.
pub(crate) struct Penalized {
    /// Half of it times the squares of the coefficients is added to the mean loss.
    pub(crate) penalty: f64,
    /// Half of it times the squares of the intercepts is added as well.
    pub(crate) intercept_penalty: f64,
    pub(crate) fit_intercept: bool,
    /// The largest part of the slope at the minimum, and its measure.
    pub(crate) tol: (f64, Measure),
    pub(crate) max_iter: usize,
}

/// A solution.
pub(crate) struct Solution {
    /// (k, d).
    pub(crate) coef: Array2<f64>,
    /// (k,).
    pub(crate) intercept: Array1<f64>,
    /// Steps of the solver.
    pub(crate) rounds: usize,
    pub(crate) converged: bool,
}

impl Penalized {
    /// The solution from coefficients of zero and these intercepts (k,) on. Intercepts that are not fitted
    /// have no slope: they stay.
    ///
    /// # Errors
    /// `OverflowError` for a loss or a slope beyond float64; those of the passes.
    #[track_caller]
    pub(crate) fn solve(
        &self,
        pass: &LinearPass<'_>,
        (start, columns): (&Array1<f64>, usize),
        weight: f64,
    ) -> Result<Solution> {
        let scores = start.len();
        let evaluate = |at: &Array1<f64>| {
            let (coef, intercept) = parts(at, scores, columns);
            let loss = pass.at(&coef, &intercept)?;
            let squares = coef.iter().map(|coef| coef * coef).sum::<f64>();
            let own = if self.fit_intercept { self.intercept_penalty } else { 0.0 };
            let value = loss.sum / weight + 0.5 * (self.penalty * squares + own * intercept.dot(&intercept));
            let by_coef = loss.coef / weight + coef * self.penalty;
            let none = Array1::zeros(scores);
            let by_intercept =
                if self.fit_intercept { loss.intercept / weight + &intercept * own } else { none };
            let slopes = by_coef.outer_iter().zip(&by_intercept);
            Ok((value, slopes.flat_map(|(row, &last)| row.to_vec().into_iter().chain([last])).collect()))
        };
        let mut from = Array1::zeros(scores * (columns + 1));
        start.iter().enumerate().for_each(|(score, &start)| from[score * (columns + 1) + columns] = start);
        let Minimum { point, rounds, converged } = minimize(from, self.tol, self.max_iter, evaluate)?;
        let Point { at, value, slope } = &point;
        // Steps are measured by the square of the slope.
        let square = slope.dot(slope);
        if !at.iter().chain([value, &square]).all(|number| number.is_finite()) {
            return Err(pass.beyond_float64());
        }
        let (coef, intercept) = parts(at, scores, columns);
        Ok(Solution { coef, intercept, rounds, converged })
    }
}

/// Coefficients (k, d) and intercepts (k,) from the parameters of the solver: a row for each score, with the
/// intercept last.
fn parts(at: &Array1<f64>, scores: usize, columns: usize) -> (Array2<f64>, Array1<f64>) {
    let coef = Array2::from_shape_fn((scores, columns), |(score, column)| at[score * (columns + 1) + column]);
    let intercept = Array1::from_shape_fn(scores, |score| at[score * (columns + 1) + columns]);
    (coef, intercept)
}
