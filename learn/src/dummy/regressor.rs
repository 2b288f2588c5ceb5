//! Numbers without regard to the samples.

use crate::Setting;
use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::bounds::check;
use crate::checks::{Nan, Training, refused, samples_of_any};
use crate::dense::tensor;
use crate::metrics::regression::{Neighbours, weighted_quantile};
use crate::params::{Parameter, parameters, words};
use crate::saved::saved;
use crate::score::check_some_weight;
use crate::show;
use crate::states::{all_finite, lost, vector};
use ndarray::Array1;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::quantile::Method;
use tharsis_numeric::{DType, Error, Result, Tensor};

/// The number that is predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetStrategy {
    /// The parameter `constant`.
    Constant,
    /// The mean of the targets.
    #[default]
    Mean,
    /// Their median.
    Median,
    /// Their quantile that the parameter `quantile` names.
    Quantile,
}

words!(
    TargetStrategy,
    [
        "constant" => TargetStrategy::Constant, "mean" => TargetStrategy::Mean,
        "median" => TargetStrategy::Median, "quantile" => TargetStrategy::Quantile
    ]
);

/// A number for each target.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant(Vec<f64>);

impl From<f64> for Constant {
    fn from(number: f64) -> Constant {
        Constant(vec![number])
    }
}

impl From<&[f64]> for Constant {
    fn from(numbers: &[f64]) -> Constant {
        Constant(numbers.to_vec())
    }
}

impl Parameter for Constant {
    fn words(_: usize) -> String {
        "a float in the range (-inf, inf) or an array-like".to_owned()
    }

    fn of(value: &Setting) -> Option<Constant> {
        f64::of(value).map(|number| vec![number]).or_else(|| Vec::of(value)).map(Constant)
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<Constant>> {
        if let Some(number) = f64::of(value) {
            return Ok(Some(Constant(vec![number])));
        }
        Ok(Vec::read(value)?.map(Constant))
    }

    fn setting(&self) -> Setting {
        match self.0[..] {
            [number] => Setting::Real(number),
            _ => Setting::Numbers(self.0.clone()),
        }
    }
}

/// scikit-learn's `DummyRegressor`: predicts the same numbers for all samples.
///
/// Samples are not read, so they may be NaN or infinite, and predictions take any number of features.
///
/// ```
/// use tharsis_learn::dummy::{DummyRegressor, TargetStrategy};
/// use tharsis_numeric::{array, zeros};
/// let (x, y) = (zeros(&[3, 1]), array([1.0, 2.0, 6.0]));
/// assert_eq!(DummyRegressor::new().fit(&x, &y, ..)?.constant[0], 3.0);
/// let model = DummyRegressor::new().strategy(TargetStrategy::Median).fit(&x, &y, ..)?;
/// assert_eq!(model.predict(&zeros(&[2, 1])).to_vec::<f64>()?, [2.0, 2.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct DummyRegressor {
    strategy: TargetStrategy,
    constant: Option<Constant>,
    quantile: Option<f64>,
}

/// A fitted [`DummyRegressor`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedDummyRegressor {
    /// scikit-learn's `constant_`: the number for each target; (k,).
    pub constant: Array1<f64>,
}

parameters!(
    DummyRegressor,
    "DummyRegressor",
    ["strategy" => strategy, "constant" => constant, "quantile" => quantile]
);

impl DummyRegressor {
    /// An estimator with scikit-learn's defaults: the mean of the targets.
    pub fn new() -> DummyRegressor {
        DummyRegressor::default()
    }

    /// scikit-learn's `strategy`: the number that is predicted.
    pub fn strategy(self, strategy: TargetStrategy) -> DummyRegressor {
        DummyRegressor { strategy, ..self }
    }

    /// scikit-learn's `constant`: the number of the strategy `constant`, or one for each target.
    pub fn constant(self, constant: impl Into<Constant>) -> DummyRegressor {
        DummyRegressor { constant: Some(constant.into()), ..self }
    }

    /// scikit-learn's `quantile`: the share of targets below the number of the strategy `quantile`.
    pub fn quantile(self, quantile: f64) -> DummyRegressor {
        DummyRegressor { quantile: Some(quantile), ..self }
    }

    /// Fits the model on targets (n,) or (n, k), of any real dtype; of the samples (n, d) the number is read.
    /// One pass over the targets for their mean, one sort of them for the others.
    ///
    /// # Errors
    /// `ValueError` for a quantile out of its range, a constant that is not one number for each target,
    /// shapes that do not fit, no samples, no features, complex numbers, targets with NaN or infinity, and
    /// weights that are negative or all zero; `TypeError` for the strategy `constant` without a constant;
    /// `OverflowError` for sums beyond float64; errors of the pass.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedDummyRegressor> {
        self.fit_any(x, Some(y), &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        if let Some(quantile) = self.quantile {
            let is_sound = (0.0..=1.0).contains(&quantile);
            check(
                "DummyRegressor",
                "quantile",
                is_sound,
                "a float in the range [0.0, 1.0] or None",
                quantile,
            )?;
        }
        match (self.strategy, self.quantile, &self.constant) {
            (TargetStrategy::Quantile, None, _) => Err(refused(
                "When using `strategy='quantile', you have to specify the desired quantile in the range [0, 1].",
            )),
            (TargetStrategy::Constant, _, None) => {
                let text = "Constant target value has to be specified when the constant strategy is used.";
                Err(Error::here(tharsis_graph::Error::Type(text.to_owned())))
            }
            (TargetStrategy::Constant, _, Some(constant)) if !constant.0.iter().all(|n| n.is_finite()) => {
                Err(refused("Input contains NaN or infinity."))
            }
            _ => Ok(()),
        }
    }
}

impl Estimator for DummyRegressor {
    type Fitted = FittedDummyRegressor;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedDummyRegressor> {
        self.check()?;
        let training = Training::supervised("DummyRegressor", x, y, options)?;
        let targets = training.target_columns()?;
        let weight = training.weight.as_ref();
        let quantile = |share: f64| match weight {
            None => Ok(targets.quantile(share, 0, Method::Linear)),
            Some(weight) => weighted_quantile(&targets, weight, share, Neighbours::Lower),
        };
        let made = match (self.strategy, weight) {
            (TargetStrategy::Constant, _) => targets.max(0),
            (TargetStrategy::Mean, None) => targets.mean(0),
            (TargetStrategy::Mean, Some(weight)) => {
                (&targets * weight.expand_dims(1)).sum(0) / weight.sum(..)
            }
            (TargetStrategy::Median, _) => quantile(0.5)?,
            (TargetStrategy::Quantile, _) => quantile(self.quantile.unwrap_or(0.5))?,
        };
        let all = weight.map_or_else(|| Tensor::number(1.0), |weight| weight.sum(..));
        let is_finite = targets.isfinite().all(..);
        let states = training.engine.run(&[&made, &all, &is_finite])?;
        let [made, all, is_finite] = <[_; 3]>::try_from(states).map_err(|_| lost())?;
        check_some_weight(all.sum())?;
        if is_finite.sum() == 0.0 || !all_finite([&made, &all]) {
            return Err(training.not_finite(Nan::Missing));
        }
        let mut constant = vector(made)?;
        if let (TargetStrategy::Constant, Some(Constant(given))) = (self.strategy, &self.constant) {
            if given.len() != constant.len() {
                let shape = format!("(1, {})", constant.len());
                return Err(refused(format!("Constant target value should have shape {shape}.")));
            }
            constant = Array1::from(given.clone());
        }
        Ok(FittedDummyRegressor { constant })
    }
}

impl FittedDummyRegressor {
    /// The numbers for samples (n, d), as an expression; (n,), or (n, k) for several targets.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let first = match samples_of_any(x) {
            Ok(samples) => samples.get(&[(..).into(), (..1i64).into()]),
            Err(error) => return Tensor::from(error),
        };
        let none = first.isnan().any(1).logical_and(false).astype(DType::F64);
        match self.constant.as_slice() {
            Some(&[number]) => none + number,
            _ => none.expand_dims(1) + tensor(&self.constant),
        }
    }

    /// R² of the predictions for samples (n, d), averaged over targets. NaN for fewer than two samples.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, and targets with NaN or infinity; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

saved!(FittedDummyRegressor, "DummyRegressor", |model| !model.constant.is_empty());

predicts!(FittedDummyRegressor, Regression, "DummyRegressor");

impl fmt::Display for FittedDummyRegressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DummyRegressor of {} targets", self.constant.len())?;
        show::line(f, "constant", &self.constant)
    }
}
