//! The class of most of the nearest samples.

use super::means::Means;
use super::metric::{Distance, Metric, Weights};
use super::reference::{Reference, finds, saves};
use super::setters::setters;
use crate::base::{Estimator, FitOptions, Predict, classifies};
use crate::bounds::check_count;
use crate::checks::Training;
use crate::labels::{Classes, largest};
use crate::params::parameters;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Result, Tensor};

const NAME: &str = "KNeighborsClassifier";

/// scikit-learn's `KNeighborsClassifier`: the class that most of the nearest samples of the fit have, of
/// several the first.
///
/// ```
/// use tharsis_learn::neighbors::KNeighborsClassifier;
/// use tharsis_numeric::array;
/// let (x, y) = (array([0.0, 1.0, 2.0, 8.0, 9.0]).reshape(&[5, 1]), array([3i64, 3, 3, 4, 4]));
/// let model = KNeighborsClassifier::new().n_neighbors(3).fit(&x, &y, ..)?;
/// let new = array([0.5, 9.5]).reshape(&[2, 1]);
/// assert_eq!(model.predict(&new).to_vec::<i64>()?, [3, 4]);
/// assert_eq!(model.predict_proba(&new).to_vec::<f64>()?, [1.0, 0.0, 1.0 / 3.0, 2.0 / 3.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct KNeighborsClassifier {
    n_neighbors: usize,
    weights: Weights,
    metric: Metric,
    p: f64,
}

/// A fitted [`KNeighborsClassifier`]. It holds the samples as the expression that the fit was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedKNeighborsClassifier {
    /// scikit-learn's `classes_`, ascending.
    pub classes: Vec<i64>,
    /// scikit-learn's `n_samples_fit_`.
    pub n_samples_fit: usize,
    n_neighbors: usize,
    weights: Weights,
    reference: Reference,
}

parameters!(
    KNeighborsClassifier,
    NAME,
    ["n_neighbors" => n_neighbors >= 1, "weights" => weights, "metric" => metric, "p" => p]
);

impl Default for KNeighborsClassifier {
    fn default() -> KNeighborsClassifier {
        let (weights, metric) = (Weights::default(), Metric::default());
        KNeighborsClassifier { n_neighbors: 5, weights, metric, p: 2.0 }
    }
}

setters!(KNeighborsClassifier: n_neighbors, weights, metric);

impl KNeighborsClassifier {
    /// An estimator with scikit-learn's defaults: 5 neighbours that count alike, Euclidean distances.
    pub fn new() -> KNeighborsClassifier {
        KNeighborsClassifier::default()
    }

    /// Fits the model to samples (n, d), of any real dtype, and whole labels (n,): checks them.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, shapes that do not fit, labels that are not whole,
    /// samples that are complex, NaN or infinite; `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedKNeighborsClassifier> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl Estimator for KNeighborsClassifier {
    type Fitted = FittedKNeighborsClassifier;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedKNeighborsClassifier> {
        check_count(NAME, "n_neighbors", self.n_neighbors, 1)?;
        let distance = Distance::of(NAME, self.metric, self.p)?;
        let training = Training::supervised(NAME, x, y, options)?.without_weights()?;
        let classes = Classes::of(&training)?;
        let reference =
            Reference::of(&training, Some(&classes.positions().astype(DType::F64).expand_dims(1)), distance)?;
        Ok(FittedKNeighborsClassifier {
            classes: classes.values,
            n_samples_fit: training.rows,
            n_neighbors: self.n_neighbors,
            weights: self.weights,
            reference,
        })
    }
}

impl FittedKNeighborsClassifier {
    /// The class of each sample (m, d), as an expression; (m,), int64.
    ///
    /// # Errors
    /// `ValueError` for another number of features, and for more neighbours than samples; when run for NaN
    /// and infinity.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        largest(&self.predict_proba(x), &self.classes)
    }

    /// The shares of the classes among the neighbours of each sample (m, d), or of their weights, as an
    /// expression; (m, k), float64.
    ///
    /// # Errors
    /// As [`predict`](FittedKNeighborsClassifier::predict).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        let (count, distance, weights) = (self.n_neighbors, self.reference.distance(), self.weights);
        let means = Means { distance, count, weights, classes: Some(self.classes.len()), carried: 1 };
        match self.reference.nearest(NAME, Some(x), (count, None)) {
            Ok(states) => means.of(&states),
            Err(error) => Tensor::from(error),
        }
    }

    /// The share of samples (m, d) whose label is predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

classifies!(FittedKNeighborsClassifier, NAME);

finds!(FittedKNeighborsClassifier);
saves!(FittedKNeighborsClassifier, NAME, |read| read.reference.carried() == 1
    && !read.classes.is_empty()
    && 0 < read.n_neighbors);

impl fmt::Display for FittedKNeighborsClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, rows) = (self.reference.columns(), self.reference.rows());
        write!(f, "{NAME} of {columns} features, {rows} samples, classes {:?}", self.classes)
    }
}
