//! The mean of the targets of the nearest samples.

use super::means::Means;
use super::metric::{Distance, Metric, Weights};
use super::reference::{Reference, finds, saves};
use super::setters::setters;
use crate::base::{Estimator, FitOptions, Predict, predicts};
use crate::bounds::check_count;
use crate::checks::Training;
use crate::params::parameters;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

const NAME: &str = "KNeighborsRegressor";

/// scikit-learn's `KNeighborsRegressor`: the mean of the targets of the nearest samples of the fit.
///
/// ```
/// use tharsis_learn::neighbors::KNeighborsRegressor;
/// use tharsis_numeric::array;
/// let (x, y) = (array([0.0, 1.0, 2.0, 3.0]).reshape(&[4, 1]), array([0.0, 0.0, 1.0, 1.0]));
/// let model = KNeighborsRegressor::new().n_neighbors(2).fit(&x, &y, ..)?;
/// assert_eq!(model.predict(&array([1.4]).reshape(&[1, 1])).to_vec::<f64>()?, [0.5]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct KNeighborsRegressor {
    n_neighbors: usize,
    weights: Weights,
    metric: Metric,
    p: f64,
}

/// A fitted [`KNeighborsRegressor`]. It holds the samples as the expression that the fit was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedKNeighborsRegressor {
    /// scikit-learn's `n_samples_fit_`.
    pub n_samples_fit: usize,
    n_neighbors: usize,
    weights: Weights,
    /// Whether targets have one axis.
    one_axis: bool,
    reference: Reference,
}

parameters!(
    KNeighborsRegressor,
    NAME,
    ["n_neighbors" => n_neighbors >= 1, "weights" => weights, "metric" => metric, "p" => p]
);

impl Default for KNeighborsRegressor {
    fn default() -> KNeighborsRegressor {
        let (weights, metric) = (Weights::default(), Metric::default());
        KNeighborsRegressor { n_neighbors: 5, weights, metric, p: 2.0 }
    }
}

setters!(KNeighborsRegressor: n_neighbors, weights, metric);

impl KNeighborsRegressor {
    /// An estimator with scikit-learn's defaults: 5 neighbours that count alike, Euclidean distances.
    pub fn new() -> KNeighborsRegressor {
        KNeighborsRegressor::default()
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
    ) -> Result<FittedKNeighborsRegressor> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl Estimator for KNeighborsRegressor {
    type Fitted = FittedKNeighborsRegressor;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedKNeighborsRegressor> {
        check_count(NAME, "n_neighbors", self.n_neighbors, 1)?;
        let distance = Distance::of(NAME, self.metric, self.p)?;
        let training = Training::supervised(NAME, x, y, options)?.without_weights()?;
        training.check_finite_target()?;
        let one_axis = training.target()?.ndim()? == 1;
        let reference = Reference::of(&training, Some(&training.target_columns()?), distance)?;
        Ok(FittedKNeighborsRegressor {
            n_samples_fit: training.rows,
            n_neighbors: self.n_neighbors,
            weights: self.weights,
            one_axis,
            reference,
        })
    }
}

impl FittedKNeighborsRegressor {
    /// The targets of samples (m, d), as an expression; (m,) or (m, k), float64.
    ///
    /// # Errors
    /// `ValueError` for another number of features, and for more neighbours than samples; when run for NaN
    /// and infinity.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let (count, distance, weights) = (self.n_neighbors, self.reference.distance(), self.weights);
        let means = Means { distance, count, weights, classes: None, carried: self.reference.carried() };
        match self.reference.nearest(NAME, Some(x), (count, None)) {
            Ok(states) if self.one_axis => means.of(&states).squeeze(Some(&[1])),
            Ok(states) => means.of(&states),
            Err(error) => Tensor::from(error),
        }
    }

    /// R² of the predictions for samples (m, d) with these targets.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, NaN and infinity; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

predicts!(FittedKNeighborsRegressor, Regression, NAME);

finds!(FittedKNeighborsRegressor);
saves!(FittedKNeighborsRegressor, NAME, |read| {
    let targets = read.reference.carried();
    0 < targets && (targets == 1 || !read.one_axis) && 0 < read.n_neighbors
});

impl fmt::Display for FittedKNeighborsRegressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, rows) = (self.reference.columns(), self.reference.rows());
        write!(f, "{NAME} of {columns} features, {rows} samples")
    }
}
