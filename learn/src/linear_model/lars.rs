//! Least angle regression: the path of coefficients along which one feature after the other joins. One pass
//! makes the Gram matrix, on which the path is followed.
//!
//! Efron, Hastie, Johnstone and Tibshirani, "Least Angle Regression" (2004): all features that have joined
//! are equally correlated with what is left of the target, until another one is as much. The lasso is the
//! same path if a feature whose coefficient crosses zero leaves.

use super::active::Active;
use super::line::{self, Line, line_model};
use super::sums::{Remainder, Sums};
use crate::base::{Estimator, FitOptions};
use crate::bounds::{check_count, check_not_negative};
use crate::checks::{Training, refused};
use crate::params::{estimator, words};
use ndarray::{Array1, Array2, ArrayD, Axis};
use serde::{Deserialize, Serialize};
use tharsis_numeric::{Result, Tensor};

/// Correlations that are equal: scikit-learn's bound, the digits of float32.
const EQUAL: f64 = f32::EPSILON as f64;
/// The length of the part of a feature that the others do not have, below which it does not join.
const LEAST_LENGTH: f64 = 1e-7;

/// The penalty on the number of coefficients that are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Criterion {
    /// Akaike's information criterion: 2 for each.
    #[default]
    Aic,
    /// The Bayesian information criterion: the logarithm of the number of samples for each.
    Bic,
}

words!(Criterion, ["aic" => Criterion::Aic, "bic" => Criterion::Bic]);

estimator! {
    /// scikit-learn's `Lars`: features join the line one after the other, the one first that goes with the
    /// target most.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Lars;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 1.0, 0.0, 0.0, 1.0, 1.0]).reshape(&[3, 2]);
    /// let model = Lars::new().n_nonzero_coefs(1).fit(&x, &array([-1.0, 0.0, -1.0]), ..)?;
    /// assert_eq!((model.active, model.coef[[0]]), (vec![1], 0.0));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    Lars {
        /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
        fit_intercept "fit_intercept": bool, bool = true;
        /// scikit-learn's `n_nonzero_coefs`: the most features that join.
        n_nonzero_coefs "n_nonzero_coefs" >= 1: usize, usize = 500;
    }
}

estimator! {
    /// scikit-learn's `LassoLars`: [`Lasso`](super::Lasso) by its path, to the last digit.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LassoLars;
    /// use tharsis_numeric::array;
    /// let x = array([-1.0, 0.1, 1.0, 0.1, 0.0, -0.2]).reshape(&[3, 2]);
    /// let model = LassoLars::new().alpha(0.5).fit(&x, &array([-2.0, 2.0, 0.0]), ..)?;
    /// assert!((model.coef[[0]] - 1.25).abs() < 1e-12 && model.coef[[1]] == 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    LassoLars {
        /// scikit-learn's `alpha`: the penalty at which the path ends; not negative.
        alpha "alpha": f64, f64 = 1.0;
        /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
        fit_intercept "fit_intercept": bool, bool = true;
        /// scikit-learn's `max_iter`: the most steps of the path.
        max_iter "max_iter": usize, usize = 500;
        /// scikit-learn's `positive`: whether coefficients may not be negative.
        positive "positive": bool, bool = false;
    }
}

estimator! {
    /// scikit-learn's `LassoLarsIC`: the place of the lasso's path that an information criterion likes best.
    ///
    /// ```
    /// use tharsis_learn::linear_model::{Criterion, LassoLarsIC};
    /// use tharsis_numeric::array;
    /// let x = array([-2.0, 2.0, -1.0, -1.0, 0.0, -2.0, 1.0, -1.0, 2.0, 2.0]).reshape(&[5, 2]);
    /// let y = array([-4.0, -2.1, 0.0, 2.1, 4.0]);
    /// let model = LassoLarsIC::new().criterion(Criterion::Bic).fit(&x, &y, ..)?;
    /// assert!((model.coef[[0]] - 2.0).abs() < 0.1 && model.coef[[1]] == 0.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    LassoLarsIC {
        /// scikit-learn's `criterion`.
        criterion "criterion": Criterion, Criterion = Criterion::Aic;
        /// scikit-learn's `fit_intercept`: whether the line need not go through zero.
        fit_intercept "fit_intercept": bool, bool = true;
        /// scikit-learn's `max_iter`: the most steps of the path.
        max_iter "max_iter": usize, usize = 500;
        /// scikit-learn's `positive`: whether coefficients may not be negative.
        positive "positive": bool, bool = false;
        /// scikit-learn's `noise_variance`: the variance of the targets around the line; by default that of
        /// least squares.
        noise_variance "noise_variance": Option<f64>, impl Into<Option<f64>> = None;
    }
}

/// A fitted [`Lars`] or [`LassoLars`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLars {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `alphas_`: the penalty at each place of the path; (places,), descending.
    pub alphas: Array1<f64>,
    /// scikit-learn's `active_`: the features that have joined, in the order in which they did.
    pub active: Vec<usize>,
    /// scikit-learn's `coef_path_`: the coefficients at each place; (d, places).
    pub coef_path: Array2<f64>,
    /// scikit-learn's `n_iter_`: the steps.
    pub n_iter: usize,
    is_lasso: bool,
}

/// A fitted [`LassoLarsIC`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLassoLarsIC {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `alpha_`: the penalty that was chosen.
    pub alpha: f64,
    /// scikit-learn's `alphas_`: the penalty at each place of the path; (places,), descending.
    pub alphas: Array1<f64>,
    /// scikit-learn's `criterion_`: the criterion at each place; (places,).
    pub criterion: Array1<f64>,
    /// scikit-learn's `noise_variance_`: the variance of the targets around the line.
    pub noise_variance: f64,
    /// scikit-learn's `n_iter_`: the steps.
    pub n_iter: usize,
}

/// The kind and the end of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) is_lasso: bool,
    pub(super) positive: bool,
    pub(super) alpha: f64,
    pub(super) max_iter: usize,
}

/// Places of a path.
#[derive(Debug, Default)]
pub(super) struct Path {
    pub(super) alphas: Vec<f64>,
    pub(super) coefs: Vec<Array1<f64>>,
    pub(super) active: Active,
}

/// A path under way.
struct Walk<'a> {
    gram: &'a Array2<f64>,
    cross: &'a Array1<f64>,
    rule: Rule,
    path: Path,
    coef: Array1<f64>,
    /// Features that are others' sums.
    is_out: Vec<bool>,
}

impl Walk<'_> {
    /// The feature that goes most with what is left of the target among those that may join, and how much.
    fn next(&self, left: &Array1<f64>) -> (Option<usize>, f64) {
        let (mut found, mut most) = (None, 0.0);
        for (column, &left) in left.iter().enumerate() {
            let size = if self.rule.positive { left } else { left.abs() };
            if !self.is_out[column] && !self.path.active.columns.contains(&column) && most < size {
                (found, most) = (Some(column), size);
            }
        }
        (found, most)
    }

    /// Ends the path at its penalty, between this place and the one before.
    fn end(&mut self, alpha: f64) {
        let end = self.rule.alpha;
        if (alpha - end).abs() <= EQUAL {
            return;
        }
        let places = self.path.coefs.len();
        if let Some(before) = places.checked_sub(2) {
            let share = (self.path.alphas[before] - end) / (self.path.alphas[before] - alpha);
            let start = &self.path.coefs[before];
            self.coef = start + &((&self.coef - start) * share);
        }
        if let (Some(last), Some(own)) = (self.path.coefs.last_mut(), self.path.alphas.last_mut()) {
            (*last, *own) = (self.coef.clone(), end);
        }
    }

    /// Goes on until another feature is as correlated as those that have joined, or one leaves.
    fn step(&mut self, left: &Array1<f64>, most: f64) -> Option<usize> {
        let active = &self.path.active;
        let signs: Vec<f64> = active
            .columns
            .iter()
            .map(|&column| if self.rule.positive { 1.0 } else { left[column].signum() })
            .collect();
        let toward = active.solve(signs.clone());
        let length: f64 = toward.iter().zip(&signs).map(|(part, sign)| part * sign).sum();
        let pace = 1.0 / length.sqrt();
        let toward = toward * pace;
        let direction = active.spread(&toward, self.coef.len());
        let turn = self.gram.dot(&direction);
        let mut stride = most / pace;
        let mut shorten = |found: f64| {
            if 0.0 < found && found < stride {
                stride = found;
            }
        };
        for (column, (&left, &turn)) in left.iter().zip(&turn).enumerate() {
            if active.columns.contains(&column) || self.is_out[column] {
                continue;
            }
            shorten((most - left) / (pace - turn));
            if !self.rule.positive {
                shorten((most + left) / (pace + turn));
            }
        }
        let mut leaving = None;
        if self.rule.is_lasso {
            for (at, &column) in active.columns.iter().enumerate() {
                let zero = -self.coef[column] / direction[column];
                if 0.0 < zero && zero < stride {
                    (stride, leaving) = (zero, Some(at));
                }
            }
        }
        self.coef.scaled_add(stride, &direction);
        leaving
    }
}

/// The path of coefficients. `look` fails if there is no time left.
pub(super) fn path(sums: &Sums, rule: Rule, mut look: impl FnMut() -> Result<()>) -> Result<Path> {
    let (gram, cross, count) = (&sums.gram, &sums.cross.column(0).to_owned(), sums.mean.len());
    let (coef, is_out) = (Array1::zeros(count), vec![false; count]);
    let mut walk = Walk { gram, cross, rule, path: Path::default(), coef, is_out };
    let mut has_left = false;
    loop {
        look()?;
        let left = walk.cross - walk.gram.dot(&walk.coef);
        let (next, most) = walk.next(&left);
        let alpha = most / sums.weight;
        let before = walk.path.alphas.last().copied();
        walk.path.alphas.push(alpha);
        walk.path.coefs.push(walk.coef.clone());
        if alpha <= rule.alpha + EQUAL {
            walk.end(alpha);
            break;
        }
        let steps = walk.path.alphas.len() - 1;
        if rule.max_iter <= steps || walk.path.active.columns.len() == count {
            break;
        }
        if !has_left
            && let Some(next) = next
            && !walk.path.active.push(gram, next, LEAST_LENGTH)
        {
            walk.is_out[next] = true;
            walk.path.alphas.pop();
            walk.path.coefs.pop();
            continue;
        }
        // Rounding: what is left of the target no longer shrinks.
        if rule.is_lasso && before.is_some_and(|before| before < alpha) {
            break;
        }
        let leaving = walk.step(&left, most);
        has_left = leaving.is_some();
        if let Some(at) = leaving {
            walk.coef[walk.path.active.columns[at]] = 0.0;
            walk.path.active.remove(gram, at);
        }
    }
    Ok(walk.path)
}

impl Path {
    /// The coefficients of so many features at each place; (d, places).
    pub(super) fn matrix(&self, count: usize) -> Array2<f64> {
        Array2::from_shape_fn((count, self.coefs.len()), |(row, place)| self.coefs[place][row])
    }
}

/// The path of data, and their moments.
#[track_caller]
fn followed(training: &Training, fit_intercept: bool, rule: Rule) -> Result<(Sums, Path)> {
    let sums = Sums::of(training, &training.one_target()?, line::around(fit_intercept))?;
    // A place for each step.
    training.check_held(training.columns, training.columns.min(rule.max_iter))?;
    let path = path(&sums, rule, || training.engine.check_time())?;
    if path.coefs.iter().flatten().chain(&path.alphas).any(|number| !number.is_finite()) {
        return Err(training.beyond_float64());
    }
    Ok((sums, path))
}

/// The model of the end of a path.
#[track_caller]
fn fitted(training: &Training, fit_intercept: bool, rule: Rule) -> Result<FittedLars> {
    let (sums, path) = followed(training, fit_intercept, rule)?;
    let slopes = path.coefs.last().cloned().unwrap_or_else(|| Array1::zeros(training.columns));
    let Line { coef, intercept } =
        Line::through(&slopes.insert_axis(Axis(1)), &sums.mean, &sums.target_mean, true);
    Ok(FittedLars {
        coef,
        intercept,
        coef_path: path.matrix(training.columns),
        n_iter: path.alphas.len() - 1,
        alphas: path.alphas.into(),
        active: path.active.columns,
        is_lasso: rule.is_lasso,
    })
}

/// The method `fit` of an estimator.
macro_rules! fits {
    ($($estimator:ident, $fitted:ident;)*) => {$(
        impl $estimator {
            /// Fits the model on samples (n, d) and targets (n,), of real dtypes. One pass, rarely more.
            ///
            /// # Errors
            /// `ValueError` for parameters out of their ranges, shapes that do not fit, several targets, no
            /// samples, no features, complex numbers, NaN and infinity; `TypeError` for weights, which
            /// scikit-learn does not take either; `OverflowError` for sums beyond float64; errors of the
            /// passes.
            #[track_caller]
            pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<$fitted> {
                self.fit_any(x, Some(y), &options.into())
            }
        }
    )*};
}
pub(super) use fits;

fits! {
    Lars, FittedLars;
    LassoLars, FittedLars;
    LassoLarsIC, FittedLassoLarsIC;
}

impl Estimator for Lars {
    type Fitted = FittedLars;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedLars> {
        check_count("Lars", "n_nonzero_coefs", self.n_nonzero_coefs, 1)?;
        let training = Training::supervised("Lars", x, y, options)?.without_weights()?;
        let rule = Rule { is_lasso: false, positive: false, alpha: 0.0, max_iter: self.n_nonzero_coefs };
        fitted(&training, self.fit_intercept, rule)
    }
}

impl Estimator for LassoLars {
    type Fitted = FittedLars;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedLars> {
        check_not_negative("LassoLars", "alpha", self.alpha)?;
        let training = Training::supervised("LassoLars", x, y, options)?.without_weights()?;
        let LassoLars { alpha, max_iter, positive, .. } = *self;
        fitted(&training, self.fit_intercept, Rule { is_lasso: true, positive, alpha, max_iter })
    }
}

impl Estimator for LassoLarsIC {
    type Fitted = FittedLassoLarsIC;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedLassoLarsIC> {
        check_not_negative("LassoLarsIC", "noise_variance", self.noise_variance.unwrap_or(0.0))?;
        let training = Training::supervised("LassoLarsIC", x, y, options)?.without_weights()?;
        let rule = Rule { is_lasso: true, positive: self.positive, alpha: 0.0, max_iter: self.max_iter };
        let unknown = training.columns + usize::from(self.fit_intercept);
        if self.noise_variance.is_none() && training.rows <= unknown {
            return Err(refused(
                "You are using LassoLarsIC in the case where the number of samples is smaller than the number of \
                 features. In this setting, getting a good estimate for the variance of the noise is not \
                 possible. Provide an estimate of the noise variance in the constructor.",
            ));
        }
        let (sums, path) = followed(&training, self.fit_intercept, rule)?;
        let remainder = sums.remainder(&training, &training.one_target()?)?;
        let rows = training.rows as f64;
        let noise_variance = match self.noise_variance {
            Some(variance) => variance,
            None => {
                // Of targets that are linear, rounding is left: a path does not end where nothing is.
                let rounding = sums.squares[0] * f64::EPSILON * f64::EPSILON;
                self.least(&training, &sums, &remainder)?.max(rounding) / (rows - unknown as f64)
            }
        };
        let each = if self.criterion == Criterion::Aic { 2.0 } else { rows.ln() };
        let criterion: Array1<f64> = path
            .coefs
            .iter()
            .map(|coef| {
                let count = coef.iter().filter(|coef| f64::EPSILON < coef.abs()).count();
                let left = remainder.at(&sums.gram, coef) / noise_variance;
                rows * (std::f64::consts::TAU * noise_variance).ln() + left + each * count as f64
            })
            .collect();
        let mut best = 0;
        for (place, &found) in criterion.iter().enumerate() {
            if found < criterion[best] {
                best = place;
            }
        }
        let slopes = path.coefs[best].clone().insert_axis(Axis(1));
        let Line { coef, intercept } = Line::through(&slopes, &sums.mean, &sums.target_mean, true);
        Ok(FittedLassoLarsIC {
            coef,
            intercept,
            alpha: path.alphas[best],
            n_iter: path.alphas.len() - 1,
            alphas: path.alphas.into(),
            criterion,
            noise_variance,
        })
    }
}

impl LassoLarsIC {
    /// The squares that least squares leave, among the lines that the estimator may choose.
    #[track_caller]
    fn least(&self, training: &Training, sums: &Sums, remainder: &Remainder) -> Result<f64> {
        if !self.positive {
            return remainder.least(sums);
        }
        let rule = Rule { is_lasso: true, positive: true, alpha: 0.0, max_iter: usize::MAX };
        let path = path(sums, rule, || training.engine.check_time())?;
        Ok(path.coefs.last().map_or(sums.squares[0], |coef| remainder.at(&sums.gram, coef)))
    }
}

line_model!(FittedLars, "Lars", |model| if model.is_lasso { "LassoLars" } else { "Lars" }, |model| {
    let (columns, places) = (model.coef.len(), model.alphas.len());
    model.coef.ndim() == 1
        && model.coef_path.dim() == (columns, places)
        && model.active.iter().all(|&column| column < columns)
});
line_model!(FittedLassoLarsIC, "LassoLarsIC", |_model| "LassoLarsIC", |model| {
    model.coef.ndim() == 1 && model.alphas.len() == model.criterion.len()
});
