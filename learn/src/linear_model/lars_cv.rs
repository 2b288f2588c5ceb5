//! Paths whose end is chosen by folds: one read of the samples, a path on the Gram matrix of each training
//! set.

use super::lars::{Path, Rule, path};
use super::least::well_conditioned;
use super::line::{self, Line, line_model};
use super::pursuit::{Coordinates, pursued};
use super::sums::Sums;
use crate::base::{Estimator, FitOptions};
use crate::bounds::{check, check_count, check_folds};
use crate::checks::{Training, refused};
use crate::params::estimator;
use ndarray::{Array1, Array2, ArrayD, Axis};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{Result, Tensor};

/// The folds if no number is given.
const FOLDS: usize = 5;
/// The features that a pursuit tries: a part in so many of all, and at least so many.
const SHARE: usize = 10;
const TRIED_LEAST: usize = 5;

estimator! {
    /// scikit-learn's `LassoLarsCV`: [`LassoLars`](super::LassoLars) to the place of its path that tells
    /// folds best which it has not seen.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LassoLarsCV;
    /// use tharsis_numeric::arange;
    /// let x = arange(20).reshape(&[10, 2]) % 7;
    /// let y = x.take_at(&arange(1), 1).ravel() * 2.0 + 1.0;
    /// let model = LassoLarsCV::new().fit(&x, &y, ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 1e-6);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    LassoLarsCV {
        /// As [`LassoLars::fit_intercept`](super::LassoLars::fit_intercept).
        fit_intercept "fit_intercept": bool, bool = true;
        /// As [`LassoLars::max_iter`](super::LassoLars::max_iter).
        max_iter "max_iter": usize, usize = 500;
        /// scikit-learn's `cv`: the number of consecutive folds, at least 2; 5 by default.
        cv "cv" >= 2: Option<usize>, impl Into<Option<usize>> = None;
        /// scikit-learn's `max_n_alphas`: about so many penalties are tried at most.
        max_n_alphas "max_n_alphas" >= 1: usize, usize = 1000;
        /// As [`LassoLars::positive`](super::LassoLars::positive).
        positive "positive": bool, bool = false;
    }
}

estimator! {
    /// scikit-learn's `OrthogonalMatchingPursuitCV`:
    /// [`OrthogonalMatchingPursuit`](super::OrthogonalMatchingPursuit) of as many features as tell folds best
    /// which it has not seen.
    ///
    /// ```
    /// use tharsis_learn::linear_model::OrthogonalMatchingPursuitCV;
    /// use tharsis_numeric::arange;
    /// let x = arange(20).reshape(&[10, 2]) % 7;
    /// let y = x.take_at(&arange(1), 1).ravel() * 2.0 + 1.0;
    /// let model = OrthogonalMatchingPursuitCV::new().fit(&x, &y, ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 1e-6);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    OrthogonalMatchingPursuitCV {
        /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
        fit_intercept "fit_intercept": bool, bool = true;
        /// scikit-learn's `max_iter`: the most features that are tried; a tenth of all by default, at
        /// least 5.
        max_iter "max_iter": Option<usize>, impl Into<Option<usize>> = None;
        /// As [`LassoLarsCV::cv`].
        cv "cv" >= 2: Option<usize>, impl Into<Option<usize>> = None;
    }
}

/// A fitted [`LassoLarsCV`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLassoLarsCV {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `alpha_`: the penalty that was chosen.
    pub alpha: f64,
    /// scikit-learn's `cv_alphas_`: the penalties that were tried, ascending; (alphas,).
    pub cv_alphas: Array1<f64>,
    /// scikit-learn's `mse_path_`: the mean of squares of each fold; (alphas, folds).
    pub mse_path: Array2<f64>,
    /// scikit-learn's `alphas_`: the penalty at each place of the last path; (places,), descending.
    pub alphas: Array1<f64>,
    /// scikit-learn's `active_`: the features that have joined, in the order in which they did.
    pub active: Vec<usize>,
    /// scikit-learn's `coef_path_`: the coefficients at each place; (d, places).
    pub coef_path: Array2<f64>,
    /// scikit-learn's `n_iter_`: the steps of the last path.
    pub n_iter: usize,
}

/// A fitted [`OrthogonalMatchingPursuitCV`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedOrthogonalMatchingPursuitCV {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `n_nonzero_coefs_`: the number of features that was chosen.
    pub n_nonzero_coefs: usize,
    /// scikit-learn's `n_iter_`: the number of features of the last pursuit.
    pub n_iter: usize,
}

super::lars::fits! {
    LassoLarsCV, FittedLassoLarsCV;
    OrthogonalMatchingPursuitCV, FittedOrthogonalMatchingPursuitCV;
}

/// The place of the least mean.
fn least(means: impl Iterator<Item = f64>) -> usize {
    let (mut best, mut lowest) = (0, f64::INFINITY);
    for (at, mean) in means.enumerate() {
        if mean < lowest {
            (best, lowest) = (at, mean);
        }
    }
    best
}

/// The coefficients of a path at a penalty, between the two places around it. Before the first place they are
/// those of the first, behind the last those of the last.
fn between(path: &Path, alpha: f64) -> Array1<f64> {
    let behind = path.alphas.iter().position(|&own| own <= alpha);
    match behind {
        Some(0) => path.coefs[0].clone(),
        None => path.coefs[path.coefs.len() - 1].clone(),
        Some(at) => {
            let (start, end) = (path.alphas[at - 1], path.alphas[at]);
            let share = (start - alpha) / (start - end);
            &path.coefs[at - 1] + &((&path.coefs[at] - &path.coefs[at - 1]) * share)
        }
    }
}

impl Estimator for LassoLarsCV {
    type Fitted = FittedLassoLarsCV;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedLassoLarsCV> {
        let name = "LassoLarsCV";
        check_folds(name, self.cv)?;
        check_count(name, "max_n_alphas", self.max_n_alphas, 1)?;
        let training = Training::supervised(name, x, y, options)?.without_weights()?;
        let around = line::around(self.fit_intercept);
        let parts = Sums::of_folds(&training, &training.one_target()?, self.cv.unwrap_or(FOLDS))?;
        training.check_held(training.columns, training.columns.min(self.max_iter))?;
        let follow = |sums: &Sums, alpha: f64| {
            let rule = Rule { is_lasso: true, positive: self.positive, alpha, max_iter: self.max_iter };
            path(sums, rule, || training.engine.check_time())
        };
        let trains = (0..parts.len()).map(|fold| Ok(Sums::without(&parts, Some(fold))?.around(around)));
        let trains: Vec<Sums> = trains.collect::<Result<_>>()?;
        let paths: Vec<Path> = trains.iter().map(|train| follow(train, 0.0)).collect::<Result<_>>()?;
        let mut tried: Vec<f64> = paths.iter().flat_map(|path| path.alphas.iter().copied()).collect();
        tried.sort_by(f64::total_cmp);
        tried.dedup();
        let stride = (tried.len() / self.max_n_alphas).max(1);
        let cv_alphas: Array1<f64> = tried.into_iter().step_by(stride).collect();
        let mse_path = Array2::from_shape_fn((cv_alphas.len(), parts.len()), |(at, fold)| {
            parts[fold].left(&between(&paths[fold], cv_alphas[at]), &trains[fold], 0)
        });
        let alpha = cv_alphas[least(mse_path.outer_iter().map(|squares| squares.sum()))];
        let sums = Sums::without(&parts, None)?.around(around);
        let path = follow(&sums, alpha)?;
        if path.coefs.iter().flatten().chain(&mse_path).any(|number| !number.is_finite()) {
            return Err(training.beyond_float64());
        }
        let slopes = path.coefs[path.coefs.len() - 1].clone().insert_axis(Axis(1));
        let Line { coef, intercept } = Line::through(&slopes, &sums.mean, &sums.target_mean, true);
        Ok(FittedLassoLarsCV {
            coef,
            intercept,
            alpha,
            cv_alphas,
            mse_path,
            coef_path: path.matrix(training.columns),
            n_iter: path.alphas.len() - 1,
            alphas: path.alphas.into(),
            active: path.active.columns,
        })
    }
}

/// The number of features that leaves folds least on average, and the pursuit of so many on all samples.
/// `pursue` makes one without a fold, or on all samples, `left` tells the mean of squares of a fold.
#[track_caller]
fn chosen(
    folds: usize,
    most: usize,
    pursue: impl Fn(Option<usize>, usize) -> Result<Vec<Array1<f64>>>,
    left: impl Fn(usize, &Array1<f64>) -> f64,
) -> Result<(usize, Vec<Array1<f64>>)> {
    let mut squares: Vec<Vec<f64>> = Vec::with_capacity(folds);
    for fold in 0..folds {
        squares.push(pursue(Some(fold), most)?.iter().map(|coef| left(fold, coef)).collect());
    }
    // Pursuits may end before: as many as all have.
    let shared = squares.iter().map(Vec::len).min().unwrap_or(0);
    let count = 1 + least((0..shared).map(|at| squares.iter().map(|own| own[at]).sum()));
    Ok((count, pursue(None, count)?))
}

impl Estimator for OrthogonalMatchingPursuitCV {
    type Fitted = FittedOrthogonalMatchingPursuitCV;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedOrthogonalMatchingPursuitCV> {
        let name = "OrthogonalMatchingPursuitCV";
        check_folds(name, self.cv)?;
        check(name, "max_iter", self.max_iter != Some(0), "an int in the range [1, inf) or None", 0)?;
        let training = Training::supervised(name, x, y, options)?.without_weights()?;
        let columns = training.columns;
        let most = self.max_iter.unwrap_or((columns / SHARE).max(TRIED_LEAST).min(columns));
        if columns < most {
            return Err(refused("The number of atoms cannot be more than the number of features"));
        }
        let (around, folds) = (line::around(self.fit_intercept), self.cv.unwrap_or(FOLDS));
        let target = training.one_target()?;
        let parts = Sums::of_folds(&training, &target, folds)?;
        let sums = Sums::without(&parts, None)?.around(around);
        let look = || training.engine.check_time();
        // As in a single pursuit; of the smallest training set as well.
        let has_lost = !self.fit_intercept
            && columns <= training.rows - training.rows.div_ceil(folds)
            && well_conditioned(&sums.gram)?.is_none();
        let (n_nonzero_coefs, path) = if has_lost {
            let parts = Coordinates::of_folds(&training, &target, folds)?;
            let pursue = |left_out, most| Coordinates::without(&parts, left_out)?.pursued(most, None, look);
            chosen(folds, most, pursue, |fold, coef| parts[fold].left(coef))?
        } else {
            let trains = (0..folds).map(|fold| Ok(Sums::without(&parts, Some(fold))?.around(around)));
            let trains: Vec<Sums> = trains.collect::<Result<_>>()?;
            let pursue = |left_out: Option<usize>, most| {
                pursued(left_out.map_or(&sums, |fold| &trains[fold]), most, None, look)
            };
            chosen(folds, most, pursue, |fold, coef| parts[fold].left(coef, &trains[fold], 0))?
        };
        let slopes = path.last().cloned().unwrap_or_else(|| Array1::zeros(columns));
        if slopes.iter().any(|slope| !slope.is_finite()) {
            return Err(training.beyond_float64());
        }
        let Line { coef, intercept } =
            Line::through(&slopes.insert_axis(Axis(1)), &sums.mean, &sums.target_mean, true);
        Ok(FittedOrthogonalMatchingPursuitCV { coef, intercept, n_nonzero_coefs, n_iter: path.len() })
    }
}

line_model!(FittedLassoLarsCV, "LassoLarsCV", |_model| "LassoLarsCV", |model| {
    let (columns, places) = (model.coef.len(), model.alphas.len());
    model.coef.ndim() == 1
        && model.coef_path.dim() == (columns, places)
        && model.cv_alphas.len() == model.mse_path.nrows()
        && model.active.iter().all(|&column| column < columns)
});
line_model!(
    FittedOrthogonalMatchingPursuitCV,
    "OrthogonalMatchingPursuitCV",
    |_model| "OrthogonalMatchingPursuitCV",
    |model| model.coef.ndim() == 1
);
