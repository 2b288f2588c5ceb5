//! Numbers that are missing as true and false.

use super::missing::Missing;
use crate::base::{Estimator, FitOptions, Transform};
use crate::checks::{Training, checked_for, refused};
use crate::dense::positions;
use crate::params::{parameters, words};
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::ops::Require;
use tharsis_numeric::{Result, Tensor};

/// Features that are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndicatedFeatures {
    /// All of them.
    All,
    /// Those that had missing numbers in the fit.
    #[default]
    MissingOnly,
}

/// scikit-learn's `MissingIndicator`: whether each number is missing.
///
/// ```
/// use tharsis_learn::impute::MissingIndicator;
/// use tharsis_numeric::array;
/// let x = array([f64::NAN, 1.0, 2.0, 3.0]).reshape(&[2, 2]);
/// let model = MissingIndicator::new().fit(&x, ..)?;
/// assert_eq!(model.features, [0]);
/// assert_eq!(model.transform(&x).to_vec::<bool>()?, [true, false]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct MissingIndicator {
    missing_values: f64,
    features: IndicatedFeatures,
    error_on_new: bool,
}

/// A fitted [`MissingIndicator`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedMissingIndicator {
    /// scikit-learn's `features_`: the features that are looked at, ascending; (k,).
    pub features: Vec<usize>,
    columns: usize,
    missing: Missing,
    /// Features without missing numbers in the fit, which must stay so.
    complete: Vec<usize>,
}

words!(
    IndicatedFeatures,
    ["missing-only" => IndicatedFeatures::MissingOnly, "all" => IndicatedFeatures::All]
);
parameters!(
    MissingIndicator,
    "MissingIndicator",
    ["missing_values" => missing_values, "features" => features, "error_on_new" => error_on_new]
);

impl Default for MissingIndicator {
    fn default() -> MissingIndicator {
        let features = IndicatedFeatures::MissingOnly;
        MissingIndicator { missing_values: f64::NAN, features, error_on_new: true }
    }
}

impl MissingIndicator {
    /// An estimator with scikit-learn's defaults: NaN is missing, in features where the fit has seen it.
    pub fn new() -> MissingIndicator {
        MissingIndicator::default()
    }

    /// scikit-learn's `missing_values`: the number that stands for a missing one.
    pub fn missing_values(self, missing_values: f64) -> MissingIndicator {
        MissingIndicator { missing_values, ..self }
    }

    /// scikit-learn's `features`: the features that are looked at.
    pub fn features(self, features: IndicatedFeatures) -> MissingIndicator {
        MissingIndicator { features, ..self }
    }

    /// scikit-learn's `error_on_new`: whether missing numbers of other features are refused later.
    pub fn error_on_new(self, error_on_new: bool) -> MissingIndicator {
        MissingIndicator { error_on_new, ..self }
    }

    /// Fits the indicator on samples (n, d), of any real dtype. Two passes.
    ///
    /// # Errors
    /// `ValueError` for samples of other than two axes, without rows or features, complex or infinite, and
    /// with NaN if another number stands for missing ones; `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedMissingIndicator> {
        self.fit_any(x, None, &options.into())
    }

    /// The indicator of samples that have been checked, also as they were given. One pass.
    #[track_caller]
    pub(crate) fn fitted(&self, training: &Training, x: &Tensor) -> Result<FittedMissingIndicator> {
        let missing = Missing(self.missing_values);
        let states = training.engine.run(&[&missing.mask(&training.x, x).any(0)])?;
        let is_missing: Vec<bool> = states.iter().flatten().map(|&found| found != 0.0).collect();
        let of = |wanted: bool| -> Vec<usize> {
            (0..is_missing.len()).filter(|&at| is_missing[at] == wanted).collect()
        };
        let columns = training.columns;
        let (features, complete) = match self.features {
            IndicatedFeatures::All => ((0..columns).collect(), Vec::new()),
            IndicatedFeatures::MissingOnly if self.error_on_new => (of(true), of(false)),
            IndicatedFeatures::MissingOnly => (of(true), Vec::new()),
        };
        Ok(FittedMissingIndicator { features, columns, missing, complete })
    }
}

impl Estimator for MissingIndicator {
    type Fitted = FittedMissingIndicator;

    fn takes_weights(&self) -> bool {
        false
    }

    fn takes_nan(&self) -> bool {
        self.missing_values.is_nan()
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedMissingIndicator> {
        if self.missing_values.is_infinite() {
            return Err(refused("infinity stands for no missing number"));
        }
        let training = Training::unsupervised("MissingIndicator", x, options)?.without_weights()?;
        Missing(self.missing_values).check(&training)?;
        self.fitted(&training, x)
    }
}

impl FittedMissingIndicator {
    /// Whether all features are there, for samples of so many.
    pub(super) fn is_sound(&self, columns: usize) -> bool {
        let is_there = |features: &[usize]| features.iter().all(|&feature| feature < columns);
        0 < columns && self.columns == columns && is_there(&self.features) && is_there(&self.complete)
    }

    /// Whether each number of the features that are looked at is missing, as an expression: (n, d) to (n, k),
    /// bool. Carries a `ValueError` for another number of features; when run for missing numbers of features
    /// that had none in the fit, for infinity, and for NaN unless it stands for missing numbers.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        match checked_for("MissingIndicator", x, self.columns, self.missing.nan()) {
            Ok(samples) => self.indicate(&samples, x),
            Err(error) => Tensor::from(error),
        }
    }

    /// As [`FittedMissingIndicator::transform`], of samples that fit, also as they were given.
    #[track_caller]
    pub(crate) fn indicate(&self, samples: &Tensor, x: &Tensor) -> Tensor {
        let mut mask = self.missing.mask(samples, x);
        if !self.complete.is_empty() {
            let is_new = mask.take_at(&positions(&self.complete), 1).any(1).expand_dims(1);
            let message = "The features have missing values in transform but have no missing values in fit.";
            let is_sound = is_new.logical_not();
            // Asked of all features: of none that are looked at, no number would be read.
            mask = Tensor::apply(Require { message: message.to_owned() }, &[&mask, &is_sound]);
        }
        mask.take_at(&positions(&self.features), 1)
    }
}

saved!(FittedMissingIndicator, "MissingIndicator", |model| model.is_sound(model.columns));

impl Transform for FittedMissingIndicator {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedMissingIndicator::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        let own = crate::feature_names::at(names, &self.features, self.columns)?;
        Some(own.into_iter().map(|name| format!("missingindicator_{name}")).collect())
    }
}

impl fmt::Display for FittedMissingIndicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MissingIndicator of {} of {} features", self.features.len(), self.columns)
    }
}
