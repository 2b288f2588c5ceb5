//! Steps of expectation and maximization.

use super::covariances::{CovarianceType, Roots};
use crate::checks::{Nan, Training, refused};
use crate::dense::tensor;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, ArrayD};
use tharsis_numeric::{Error, Result, Tensor};

/// A mixture while it is fitted.
pub(super) struct Parts {
    pub(super) weights: Array1<f64>,
    pub(super) means: Array2<f64>,
    pub(super) covariances: ArrayD<f64>,
    pub(super) roots: Roots,
    pub(super) bound: f64,
    pub(super) n_iter: usize,
    pub(super) converged: bool,
}

impl Parts {
    /// The mixture that a run starts from.
    pub(super) fn first(weights: Array1<f64>, means: Array2<f64>, roots: Roots) -> Parts {
        let covariances = ArrayD::zeros(roots.of_precisions.shape());
        let bound = f64::NEG_INFINITY;
        Parts { weights, means, covariances, roots, bound, n_iter: 0, converged: false }
    }

    /// The logarithms of the joint densities of samples and components; (n, k).
    #[track_caller]
    pub(super) fn joint(&self, x: &Tensor) -> Tensor {
        self.roots.log_densities(x, &self.means) + tensor(&self.weights.mapv(f64::ln))
    }
}

/// The pass of a step.
pub(super) struct Step<'a> {
    pub(super) training: &'a Training,
    pub(super) form: CovarianceType,
    pub(super) reg_covar: f64,
}

impl Step<'_> {
    /// The mixture that is likeliest for these shares (n, k). Squares are summed around means that are near,
    /// and moved to the new ones, so that no digits are lost where steps are small.
    #[track_caller]
    pub(super) fn maximized(
        &self,
        shares: &Tensor,
        near: &Array2<f64>,
        likelihood: Option<&Tensor>,
    ) -> Result<Parts> {
        let (training, components) = (self.training, near.nrows());
        let mut wanted = Vec::with_capacity(2 * components + 2);
        for component in 0..components {
            let at = component as i64;
            let share = shares.get(&[(..).into(), (at..at + 1).into()]);
            let around = &training.x - tensor(&near.row(component).to_owned());
            wanted.push((&around * &share).sum(0));
            wanted.push(self.form.scatter(&around, &share));
        }
        wanted.push(shares.sum(0));
        wanted.extend(likelihood.cloned());
        let states = training.engine.run(&wanted.iter().collect::<Vec<_>>())?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let mut states = states.into_iter();
        let mut next = || states.next().ok_or_else(lost);
        let mut sums = Vec::with_capacity(components);
        for _ in 0..components {
            sums.push((vector(next()?)?, matrix(next()?)?));
        }
        let counts = vector(next()?)?.mapv(|count| count + 10.0 * f64::EPSILON);
        let bound = next().map_or(f64::NEG_INFINITY, |bound| bound.sum());
        let mut means = near.clone();
        let mut scatters = Vec::with_capacity(components);
        for ((mut mean, (sum, mut scatter)), &count) in means.outer_iter_mut().zip(sums).zip(&counts) {
            let moved = &sum / count;
            mean += &moved;
            for ((row, column), part) in scatter.indexed_iter_mut() {
                // Squares alone are in one row.
                let row = if self.form.is_square() { row } else { column };
                *part -= count * (moved[row] * moved[column]);
                if row == column {
                    *part = part.max(0.0);
                }
            }
            scatters.push(scatter);
        }
        let covariances = self.form.covariances(&scatters, &counts, self.reg_covar);
        let Some(roots) = self.form.roots(&covariances)? else { return Err(collapsed()) };
        let weights = &counts / counts.sum();
        Ok(Parts { weights, means, covariances, roots, bound, n_iter: 0, converged: false })
    }
}

#[track_caller]
fn collapsed() -> Error {
    refused(
        "Fitting the mixture model failed because some components have ill-defined empirical covariance (for \
         instance caused by singleton or collapsed samples). Try to decrease the number of components, increase \
         reg_covar, or scale the input data.",
    )
}
