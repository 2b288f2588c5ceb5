//! Means that are linear in the features, or whose logarithms are: generalized linear models.

use super::minimize::Measure;
use super::penalized::{Penalized, Solution};
use super::{Ridge, line};
use crate::base::{Estimator, FitOptions, Predict, Task};
use crate::bounds::{check, check_count, check_not_negative, check_positive};
use crate::checks::{Nan, Training, refused};
use crate::metrics::deviance::deviance;
use crate::params::{parameters, words};
use crate::passes::{LinearPass, Link, in_fixed_chunks};
use crate::saved::{EstimatorName, name_among, saved};
use crate::score::check_some_weight;
use crate::states::{all_finite, lost};
use ndarray::{Array1, Array2, ArrayD};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result, Tensor, where_};

/// The function of the mean that is linear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TweedieLink {
    /// The logarithm of the mean for a positive power, else the mean.
    #[default]
    Auto,
    /// The mean, for a power of zero.
    Identity,
    /// The logarithm of the mean.
    Log,
}

words!(
    TweedieLink,
    ["auto" => TweedieLink::Auto, "identity" => TweedieLink::Identity, "log" => TweedieLink::Log]
);

/// A model: what all regressors of this file have.
#[derive(Clone, Debug)]
struct Parameters {
    alpha: f64,
    fit_intercept: bool,
    max_iter: usize,
    tol: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { alpha: 1.0, fit_intercept: true, max_iter: 100, tol: 1e-4 }
    }
}

/// A fitted generalized linear model.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedGeneralized {
    /// scikit-learn's `coef_`; (d,).
    pub coef: ArrayD<f64>,
    /// scikit-learn's `intercept_`; ().
    pub intercept: ArrayD<f64>,
    /// scikit-learn's `n_iter_`: steps of the solver. Each reads the samples once, rarely more often.
    pub n_iter: usize,
    /// Whether the solver has found the minimum within `tol`.
    pub converged: bool,
    #[serde(deserialize_with = "regressor_name")]
    name: EstimatorName,
    power: f64,
    is_log: bool,
}

/// A regressor: its name, its distribution, and parameters beside those of all.
macro_rules! regressor {
    ($(#[$doc:meta])* $name:ident { $($(#[$told:meta])* $field:ident $word:literal: $kind:ty = $default:expr),* }, $family:expr) => {
        $(#[$doc])*
        #[must_use]
        #[derive(Clone, Debug)]
        pub struct $name {
            parameters: Parameters,
            $($field: $kind,)*
        }

        parameters!(
            $name,
            stringify!($name),
            [
                $($word => $field,)* "alpha" => parameters.alpha, "fit_intercept" => parameters.fit_intercept,
                "max_iter" => parameters.max_iter >= 1, "tol" => parameters.tol
            ]
        );

        impl Default for $name {
            fn default() -> $name {
                $name { parameters: Parameters::default(), $($field: $default,)* }
            }
        }

        impl $name {
            /// An estimator with scikit-learn's defaults: `alpha` is 1, `max_iter` 100, `tol` 1e-4.
            pub fn new() -> $name {
                $name::default()
            }

            $($(#[$told])* pub fn $field(self, $field: $kind) -> $name {
                $name { $field, ..self }
            })*

            /// scikit-learn's `alpha`: the weight of the penalty on the squares of the coefficients.
            pub fn alpha(mut self, alpha: f64) -> $name {
                self.parameters.alpha = alpha;
                self
            }

            /// scikit-learn's `fit_intercept`: whether scores need not be zero at zero.
            pub fn fit_intercept(mut self, fit_intercept: bool) -> $name {
                self.parameters.fit_intercept = fit_intercept;
                self
            }

            /// scikit-learn's `max_iter`: the most steps of the solver.
            pub fn max_iter(mut self, max_iter: usize) -> $name {
                self.parameters.max_iter = max_iter;
                self
            }

            /// scikit-learn's `tol`: the largest part of the slope at the minimum.
            pub fn tol(mut self, tol: f64) -> $name {
                self.parameters.tol = tol;
                self
            }

            /// Fits the model on samples (n, d) and targets (n,), of real dtypes, by L-BFGS: a pass for each
            /// step, rarely more. With the identity as link by least squares, in a pass or two.
            ///
            /// # Errors
            /// `ValueError` for parameters out of their ranges, targets that the distribution does not have,
            /// shapes that do not fit, no samples, no features, complex numbers, NaN, infinity, and weights
            /// that are negative or all zero; `OverflowError` for sums beyond float64; `NotImplemented` for
            /// the identity as link of another power than 0; errors of the passes.
            #[track_caller]
            pub fn fit(
                &self,
                x: &Tensor,
                y: &Tensor,
                options: impl Into<FitOptions>,
            ) -> Result<FittedGeneralized> {
                self.fit_any(x, Some(y), &options.into())
            }
        }

        impl Estimator for $name {
            type Fitted = FittedGeneralized;

            #[track_caller]
            fn fit_any(
                &self,
                x: &Tensor,
                y: Option<&Tensor>,
                options: &FitOptions,
            ) -> Result<FittedGeneralized> {
                let family: fn(&$name) -> (f64, TweedieLink) = $family;
                self.parameters.fit(stringify!($name), family(self), (x, y, options))
            }
        }
    };
}

regressor! {
    /// scikit-learn's `PoissonRegressor`: the logarithm of the mean of counts is linear.
    ///
    /// ```
    /// use tharsis_learn::linear_model::PoissonRegressor;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 2.0, 3.0]).reshape(&[4, 1]);
    /// let model = PoissonRegressor::new().alpha(0.0).fit(&x, &array([1.0, 2.0, 4.0, 8.0]), ..)?;
    /// assert!((model.coef[[0]] - 2f64.ln()).abs() < 1e-3);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    PoissonRegressor {}, |_| (1.0, TweedieLink::Log)
}

regressor! {
    /// scikit-learn's `GammaRegressor`: the logarithm of the mean of positive numbers is linear, and their
    /// deviation proportional to it.
    ///
    /// ```
    /// use tharsis_learn::linear_model::GammaRegressor;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 2.0, 3.0]).reshape(&[4, 1]);
    /// let model = GammaRegressor::new().alpha(0.0).fit(&x, &array([1.0, 2.0, 4.0, 8.0]), ..)?;
    /// assert!((model.coef[[0]] - 2f64.ln()).abs() < 1e-3);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    GammaRegressor {}, |_| (2.0, TweedieLink::Log)
}

regressor! {
    /// scikit-learn's `TweedieRegressor`: a variance that is proportional to a power of the mean.
    ///
    /// ```
    /// use tharsis_learn::linear_model::TweedieRegressor;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 2.0, 3.0]).reshape(&[4, 1]);
    /// let model = TweedieRegressor::new().power(1.5).alpha(0.0).fit(&x, &array([1.0, 2.0, 4.0, 8.0]), ..)?;
    /// assert!((model.coef[[0]] - 2f64.ln()).abs() < 1e-3);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    TweedieRegressor {
        /// scikit-learn's `power`: 0 for the normal distribution, 1 for Poisson's, 2 for the gamma
        /// distribution, 3 for the inverse Gaussian one. No distribution has one between 0 and 1, but the
        /// loss has a minimum.
        power "power": f64 = 0.0,
        /// scikit-learn's `link`: the function of the mean that is linear.
        link "link": TweedieLink = TweedieLink::Auto
    }, |regressor| (regressor.power, regressor.link)
}

impl Parameters {
    /// Checks the parameters; whether the link is the logarithm.
    #[track_caller]
    fn check(&self, name: &str, power: f64, link: TweedieLink) -> Result<bool> {
        check_not_negative(name, "alpha", self.alpha)?;
        check_positive(name, "tol", self.tol)?;
        check_count(name, "max_iter", self.max_iter, 1)?;
        check(name, "power", power.is_finite(), "a float in the range (-inf, inf)", power)?;
        match link {
            TweedieLink::Log => Ok(true),
            TweedieLink::Auto if 0.0 < power => Ok(true),
            _ if power == 0.0 => Ok(false),
            TweedieLink::Auto | TweedieLink::Identity => {
                let text = format!("the identity as link of the power {power} of {name}");
                Err(Error::here(GraphError::NotImplemented(text)))
            }
        }
    }

    /// Fits the distribution of a power.
    #[track_caller]
    fn fit(
        &self,
        name: &'static str,
        (power, link): (f64, TweedieLink),
        (x, y, options): (&Tensor, Option<&Tensor>, &FitOptions),
    ) -> Result<FittedGeneralized> {
        let is_log = self.check(name, power, link)?;
        let training = Training::supervised(name, x, y, options)?;
        let targets = training.one_target()?;
        let (mean, weight) = mean_target(&training, &targets, power)?;
        if !is_log {
            return self.least_squares(name, &training, weight);
        }
        let link = Link::Log(power);
        let pass = LinearPass::new(&training, targets, link);
        let start = if self.fit_intercept { mean.ln() } else { 0.0 };
        if !start.is_finite() {
            return Err(refused("the mean of y is not positive, and has no logarithm"));
        }
        let problem = Penalized {
            penalty: self.alpha,
            intercept_penalty: 0.0,
            fit_intercept: self.fit_intercept,
            tol: (self.tol, Measure::One),
            max_iter: self.max_iter,
        };
        let start = (&Array2::zeros((1, training.columns)), &Array1::from_elem(1, start));
        let Solution { coef, intercept, rounds, converged } = problem.solve(&pass, start, weight)?;
        let coef = coef.row(0).to_owned().into_dyn();
        let intercept = ndarray::arr0(intercept[0]).into_dyn();
        Ok(FittedGeneralized { coef, intercept, n_iter: rounds, converged, name, power, is_log })
    }

    /// Fits the normal distribution with the identity as link: least squares, which need no steps.
    #[track_caller]
    fn least_squares(
        &self,
        name: &'static str,
        training: &Training,
        weight: f64,
    ) -> Result<FittedGeneralized> {
        let ridge = Ridge::new().alpha(self.alpha * weight).fit_intercept(self.fit_intercept);
        let model = ridge.fitted(training)?;
        let coef = model.coef.into_iter().collect::<Array1<f64>>().into_dyn();
        let intercept = ndarray::arr0(model.intercept.sum()).into_dyn();
        Ok(FittedGeneralized { coef, intercept, n_iter: 1, converged: true, name, power: 0.0, is_log: false })
    }
}

/// The weighted mean of the targets, all of which the distribution has, and the sum of the weights. One pass.
#[track_caller]
fn mean_target(training: &Training, targets: &Tensor, power: f64) -> Result<(f64, f64)> {
    let (sum, all) = match &training.weight {
        None => (targets.sum(..), Tensor::number(training.rows as f64)),
        Some(weight) => ((targets * weight.expand_dims(1)).sum(..), weight.sum(..)),
    };
    let states = training.engine.run(&[&sum, &all, &targets.min(..)])?;
    if !all_finite(&states) {
        return Err(training.not_finite(Nan::Refused));
    }
    let [sum, all, least] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
    let (all, least) = (all.sum(), least.sum());
    let is_sound = match power {
        _ if power <= 0.0 => true,
        _ if power < 2.0 => 0.0 <= least,
        _ => 0.0 < least,
    };
    if !is_sound {
        let loss = match power {
            1.0 => "HalfPoissonLoss",
            2.0 => "HalfGammaLoss",
            _ => "HalfTweedieLoss",
        };
        return Err(refused(format!("Some value(s) of y are out of the valid range of the loss '{loss}'.")));
    }
    check_some_weight(all)?;
    Ok((sum.sum() / all, all))
}

impl FittedGeneralized {
    /// The means for samples (n, d), as an expression; (n,), float64. Carries a `ValueError` for another
    /// number of features.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let scores = line::predict(self.name, x, &self.coef, &self.intercept);
        if self.is_log { scores.exp() } else { scores }
    }

    /// scikit-learn's `score`, D²: the share of the deviance of targets that the model explains. NaN for
    /// fewer than two samples. Two passes.
    ///
    /// # Errors
    /// `ValueError` for targets that the distribution does not have, shapes that do not fit, NaN and
    /// infinity; errors of the passes.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        let training = Training::supervised(self.name, x, Some(y), &options.into())?;
        let targets = training.one_target()?;
        let (mean, _) = mean_target(&training, &targets, self.power)?;
        let predicted = in_fixed_chunks(&self.predict(&training.x).expand_dims(1), 1);
        let of = |predicted: &Tensor| {
            let deviances = deviance(&targets, predicted, self.power);
            match &training.weight {
                None => deviances.sum(..),
                Some(weight) => {
                    let weight = weight.expand_dims(1);
                    where_(&weight.equal(0.0), 0.0, deviances * &weight).sum(..)
                }
            }
        };
        let states = training.engine.run(&[&of(&predicted), &of(&Tensor::number(mean))])?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let [left, all] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        Ok(if training.rows < 2 { f64::NAN } else { 1.0 - left.sum() / all.sum() })
    }
}

/// The estimators of such models.
const REGRESSORS: &[&str] = &["PoissonRegressor", "GammaRegressor", "TweedieRegressor"];

fn regressor_name<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<&'static str, D::Error> {
    name_among(deserializer, REGRESSORS)
}

saved!(FittedGeneralized, "GeneralizedLinearModel", |model| {
    model.coef.ndim() == 1 && line::is_sound(&model.coef, &model.intercept)
});

impl Predict for FittedGeneralized {
    const TASK: Task = Task::Regression;

    fn name(&self) -> &'static str {
        self.name
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedGeneralized::predict(self, x)
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        self.score(x, y, options)
    }
}

impl fmt::Display for FittedGeneralized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line::show(f, self.name, &self.coef, &self.intercept)?;
        let state = if self.converged { "converged" } else { "not converged" };
        write!(f, "\n  {state} after {} iterations", self.n_iter)
    }
}
