//! Coefficients that make the mean loss of a linear model least, with a penalty on their squares.

use super::far::Far;
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
    /// The solution from these coefficients (k, d) and intercepts (k,) on. Intercepts that are not fitted
    /// have no slope: they stay. Samples far from zero are read around their middle, see [`Far`].
    ///
    /// # Errors
    /// `OverflowError` for a loss or a slope beyond float64; those of the passes.
    #[track_caller]
    pub(crate) fn solve(
        &self,
        pass: &LinearPass<'_>,
        (coef, intercept): (&Array2<f64>, &Array1<f64>),
        weight: f64,
    ) -> Result<Solution> {
        let (scores, columns) = coef.dim();
        let far = self.far(pass, intercept)?;
        let shifted = far.as_ref().map(|far| pass.around(&far.middle));
        let pass = shifted.as_ref().unwrap_or(pass);
        // Around a middle there is an intercept in any case.
        let is_fitted = self.fit_intercept || far.is_some();
        let own = match &far {
            Some(far) => far.penalty(self.penalty, self.intercept_penalty),
            None => self.intercept_penalty,
        };
        let coef_at = |w: &Array2<f64>, b: &Array1<f64>| match &far {
            Some(far) => far.coef(w, b),
            None => w.clone(),
        };
        let evaluate = |at: &Array1<f64>| {
            let (w, b) = parts(at, scores, columns);
            let loss = pass.at(&coef_at(&w, &b), &b)?;
            let squares = w.iter().map(|w| w * w).sum::<f64>();
            let squares_b = if is_fitted { b.dot(&b) } else { 0.0 };
            let value = loss.sum / weight + 0.5 * (self.penalty * squares + own * squares_b);
            let (mut by_w, mut by_b) = (loss.coef / weight, loss.intercept / weight);
            if let Some(far) = &far {
                far.slopes(&mut by_w, &mut by_b);
            }
            by_w += &(w * self.penalty);
            by_b = if is_fitted { by_b + b * own } else { Array1::zeros(scores) };
            Ok((value, joined(&by_w, &by_b)))
        };
        let from = match &far {
            Some(far) => {
                let (w, b) = far.coordinates(coef, intercept);
                joined(&w, &b)
            }
            None => joined(coef, intercept),
        };
        let Minimum { point, rounds, converged } = minimize(from, self.tol, self.max_iter, evaluate)?;
        let Point { at, value, slope } = &point;
        // Steps are measured by the square of the slope.
        let square = slope.dot(slope);
        if !at.iter().chain([value, &square]).all(|number| number.is_finite()) {
            return Err(pass.beyond_float64());
        }
        let (w, b) = parts(at, scores, columns);
        let coef = coef_at(&w, &b);
        let intercept = match &far {
            Some(far) if self.fit_intercept => far.intercept(&coef, &b),
            Some(_) => intercept.clone(),
            None => b,
        };
        Ok(Solution { coef, intercept, rounds, converged })
    }

    /// The coordinates for samples far from zero, if these are. Intercepts that stay have to be zero for it.
    #[track_caller]
    fn far(&self, pass: &LinearPass<'_>, intercept: &Array1<f64>) -> Result<Option<Far>> {
        let has_other = intercept.iter().any(|intercept| *intercept != 0.0);
        if !self.fit_intercept && has_other {
            return Ok(None);
        }
        let Some(middle) = pass.far_middles()? else { return Ok(None) };
        if !self.fit_intercept {
            return Ok(Far::through_zero(middle));
        }
        let ratio = if self.intercept_penalty == 0.0 { 0.0 } else { self.intercept_penalty / self.penalty };
        Ok(Far::new(middle, ratio))
    }
}

/// Coefficients (k, d) and intercepts (k,) from the parameters of the solver: a row for each score, with the
/// intercept last.
fn parts(at: &Array1<f64>, scores: usize, columns: usize) -> (Array2<f64>, Array1<f64>) {
    let coef = Array2::from_shape_fn((scores, columns), |(score, column)| at[score * (columns + 1) + column]);
    let intercept = Array1::from_shape_fn(scores, |score| at[score * (columns + 1) + columns]);
    (coef, intercept)
}

/// The way back of [`parts`].
fn joined(coef: &Array2<f64>, intercept: &Array1<f64>) -> Array1<f64> {
    let rows = coef.outer_iter().zip(intercept);
    rows.flat_map(|(row, &last)| row.to_vec().into_iter().chain([last])).collect()
}
