//! Matching pursuit: features are chosen one after the other, each the one that goes most with what those
//! before leave of the target. One pass makes the Gram matrix.

use super::active::Active;
use super::lars::fits;
use super::line::{self, Line, line_model};
use super::sums::Sums;
use crate::base::{Estimator, FitOptions};
use crate::bounds::{check, check_not_negative};
use crate::checks::{Training, refused};
use crate::params::estimator;
use ndarray::{Array1, ArrayD, Axis};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{Result, Tensor};

/// The cosine between a feature and what is left of the target below which it is rounding of their sums.
const UNCORRELATED: f64 = 1e-12;
/// A part in so many of the features is chosen by default.
const SHARE: usize = 10;

estimator! {
    /// scikit-learn's `OrthogonalMatchingPursuit`: least squares on few features, chosen one after the other.
    ///
    /// ```
    /// use tharsis_learn::linear_model::OrthogonalMatchingPursuit;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0, 0.0, 0.0, 1.0, 1.0]).reshape(&[3, 2]);
    /// let model = OrthogonalMatchingPursuit::new().fit(&x, &array([-2.0, 0.0, 2.0]), ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 1e-12 && model.coef[[1]] == 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    OrthogonalMatchingPursuit {
        /// scikit-learn's `n_nonzero_coefs`: the number of features, at least 1; a tenth of all by default.
        /// It has no effect beside `tol`.
        n_nonzero_coefs "n_nonzero_coefs" >= 1: Option<usize>, impl Into<Option<usize>> = None;
        /// scikit-learn's `tol`: the squares of what is left of the target at which the choice ends.
        tol "tol": Option<f64>, impl Into<Option<f64>> = None;
        /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
        fit_intercept "fit_intercept": bool, bool = true;
    }
}

/// A fitted [`OrthogonalMatchingPursuit`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedOrthogonalMatchingPursuit {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `n_iter_`: the number of features that were chosen.
    pub n_iter: usize,
    /// scikit-learn's `n_nonzero_coefs_`: the number that was asked for, without `tol`.
    pub n_nonzero_coefs: Option<usize>,
}

fits! {
    OrthogonalMatchingPursuit, FittedOrthogonalMatchingPursuit;
}

impl Estimator for OrthogonalMatchingPursuit {
    type Fitted = FittedOrthogonalMatchingPursuit;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedOrthogonalMatchingPursuit> {
        let name = "OrthogonalMatchingPursuit";
        check_not_negative(name, "tol", self.tol.unwrap_or(0.0))?;
        let is_sound = self.n_nonzero_coefs != Some(0);
        check(name, "n_nonzero_coefs", is_sound, "an int in the range [1, inf) or None", 0)?;
        let training = Training::supervised(name, x, y, options)?.without_weights()?;
        let columns = training.columns;
        let n_nonzero_coefs = match self.tol {
            Some(_) => None,
            None => Some(self.n_nonzero_coefs.unwrap_or((columns / SHARE).max(1))),
        };
        if n_nonzero_coefs.is_some_and(|count| columns < count) {
            return Err(refused("The number of atoms cannot be more than the number of features"));
        }
        let sums = Sums::of(&training, &training.one_target()?, line::around(self.fit_intercept))?;
        let most = n_nonzero_coefs.unwrap_or(columns);
        let path = pursued(&sums, most, self.tol, || training.engine.check_time())?;
        let n_iter = path.len();
        let coef = path.into_iter().last().unwrap_or_else(|| Array1::zeros(columns));
        if coef.iter().any(|coef| !coef.is_finite()) {
            return Err(training.beyond_float64());
        }
        let Line { coef, intercept } =
            Line::through(&coef.insert_axis(Axis(1)), &sums.mean, &sums.target_mean, true);
        Ok(FittedOrthogonalMatchingPursuit { coef, intercept, n_iter, n_nonzero_coefs })
    }
}

/// The coefficients of a pursuit of at most so many features, to a square of what is left: those of each
/// number of features, ascending. `look` fails if there is no time left.
pub(super) fn pursued(
    sums: &Sums,
    most: usize,
    tol: Option<f64>,
    mut look: impl FnMut() -> Result<()>,
) -> Result<Vec<Array1<f64>>> {
    let (cross, columns) = (sums.cross.column(0), sums.mean.len());
    let mut active = Active::default();
    let mut path: Vec<Array1<f64>> = Vec::new();
    while active.columns.len() < most {
        look()?;
        let left = path.last().map_or_else(|| cross.to_owned(), |coef| &cross - &sums.gram.dot(coef));
        let (mut next, mut largest) = (None, 0.0);
        for (column, left) in left.iter().enumerate() {
            if !active.columns.contains(&column) && largest < left.abs() {
                (next, largest) = (Some(column), left.abs());
            }
        }
        // The rest has nothing of the features, or those that are left are others' sums.
        let Some(next) = next else { break };
        let length = sums.gram[[next, next]].sqrt();
        if largest <= UNCORRELATED * length * sums.squares[0].sqrt()
            || !active.push(&sums.gram, next, f64::EPSILON.sqrt() * length)
        {
            break;
        }
        let own = active.solve(active.columns.iter().map(|&column| cross[column]).collect());
        let coef = active.spread(&own, columns);
        let squares = sums.squares[0] - cross.dot(&coef);
        path.push(coef);
        if tol.is_some_and(|tol| squares <= tol) {
            break;
        }
    }
    Ok(path)
}

line_model!(
    FittedOrthogonalMatchingPursuit,
    "OrthogonalMatchingPursuit",
    |_model| "OrthogonalMatchingPursuit",
    |model| model.coef.ndim() == 1
);
