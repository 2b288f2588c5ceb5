//! The mean of the targets of samples within a radius.

use super::block::Summed;
use super::metric::{Distance, Metric, Weights};
use super::reference::{Reference, saves};
use super::setters::setters;
use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::bounds::check_not_negative;
use crate::checks::Training;
use crate::params::parameters;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor, where_};

const NAME: &str = "RadiusNeighborsRegressor";

/// scikit-learn's `RadiusNeighborsRegressor`: the mean of the targets of the samples of the fit within a
/// radius; NaN if there is none.
///
/// ```
/// use tharsis_learn::neighbors::RadiusNeighborsRegressor;
/// use tharsis_numeric::array;
/// let (x, y) = (array([0.0, 1.0, 2.0, 8.0]).reshape(&[4, 1]), array([0.0, 2.0, 4.0, 9.0]));
/// let model = RadiusNeighborsRegressor::new().fit(&x, &y, ..)?;
/// let made = model.predict(&array([1.0, 1.5, 5.0]).reshape(&[3, 1])).to_vec::<f64>()?;
/// assert!(made[..2] == [2.0, 3.0] && made[2].is_nan());
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RadiusNeighborsRegressor {
    radius: f64,
    weights: Weights,
    metric: Metric,
    p: f64,
}

/// A fitted [`RadiusNeighborsRegressor`]. It holds the samples as the expression that the fit was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedRadiusNeighborsRegressor {
    /// scikit-learn's `n_samples_fit_`.
    pub n_samples_fit: usize,
    radius: f64,
    weights: Weights,
    /// Whether targets have one axis.
    one_axis: bool,
    reference: Reference,
}

parameters!(
    RadiusNeighborsRegressor,
    NAME,
    ["radius" => radius, "weights" => weights, "metric" => metric, "p" => p]
);

impl Default for RadiusNeighborsRegressor {
    fn default() -> RadiusNeighborsRegressor {
        let (weights, metric) = (Weights::default(), Metric::default());
        RadiusNeighborsRegressor { radius: 1.0, weights, metric, p: 2.0 }
    }
}

setters!(RadiusNeighborsRegressor: radius, weights, metric);

impl RadiusNeighborsRegressor {
    /// An estimator with scikit-learn's defaults: radius 1, neighbours that count alike, Euclidean distances.
    pub fn new() -> RadiusNeighborsRegressor {
        RadiusNeighborsRegressor::default()
    }

    /// Fits the model to samples (n, d) and targets (n,) or (n, k), of real dtypes: checks them by a pass.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, shapes that do not fit, samples and targets that are
    /// complex, NaN or infinite; `TypeError` for weights; errors of the pass.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedRadiusNeighborsRegressor> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl Estimator for RadiusNeighborsRegressor {
    type Fitted = FittedRadiusNeighborsRegressor;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedRadiusNeighborsRegressor> {
        check_not_negative(NAME, "radius", self.radius)?;
        let distance = Distance::of(NAME, self.metric, self.p)?;
        let training = Training::supervised(NAME, x, y, options)?.without_weights()?;
        training.check_finite_target()?;
        let one_axis = training.target()?.ndim()? == 1;
        let reference = Reference::of(&training, Some(&training.target_columns()?), distance)?;
        let (radius, weights) = (self.radius, self.weights);
        Ok(FittedRadiusNeighborsRegressor {
            n_samples_fit: training.rows,
            radius,
            weights,
            one_axis,
            reference,
        })
    }
}

impl FittedRadiusNeighborsRegressor {
    /// The targets of samples (m, d), as an expression; (m,) or (m, k), float64; NaN of a sample without
    /// neighbours.
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for NaN and infinity.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let targets = self.reference.carried();
        let around = (self.radius, self.weights, Summed::Columns(targets));
        let states = match self.reference.around(NAME, Some(x), around) {
            Ok(states) => states,
            Err(error) => return Tensor::from(error),
        };
        let columns = |start: usize, count: usize| {
            states.get(&[(..).into(), (start as i64..(start + count) as i64).into()])
        };
        let (all, sums) = match self.weights {
            Weights::Uniform => (columns(0, 1), columns(1, targets)),
            Weights::Distance => {
                let (equal, other) = (columns(0, 1), columns(1 + targets, 1));
                let is_equal = equal.greater(0.0);
                let sums = where_(&is_equal, columns(1, targets), columns(2 + targets, targets));
                (where_(&is_equal, &equal, other), sums)
            }
        };
        let is_alone = all.equal(0.0);
        let mean = where_(&is_alone, f64::NAN, sums / where_(&is_alone, 1.0, &all));
        if self.one_axis { mean.squeeze(Some(&[1])) } else { mean }
    }

    /// R² of the predictions for samples (m, d) with these targets.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, NaN and infinity, and for samples without neighbours; errors
    /// of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

predicts!(FittedRadiusNeighborsRegressor, Regression, NAME);

saves!(FittedRadiusNeighborsRegressor, NAME, |read| {
    let targets = read.reference.carried();
    0 < targets && (targets == 1 || !read.one_axis)
});

impl fmt::Display for FittedRadiusNeighborsRegressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, rows) = (self.reference.columns(), self.reference.rows());
        write!(f, "{NAME} of {columns} features, {rows} samples")
    }
}
