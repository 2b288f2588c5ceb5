//! The class of most of the samples within a radius.

use super::block::Summed;
use super::metric::{Distance, Metric, Weights};
use super::reference::{Reference, saves};
use super::setters::setters;
use crate::base::{Estimator, FitOptions, Predict, classifies};
use crate::bounds::check_not_negative;
use crate::checks::Training;
use crate::labels::{Classes, largest};
use crate::params::{Parameter, Setting, parameters};
use crate::states::{lost, vector};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::ops::Require;
use tharsis_numeric::{Axes, DType, Result, Tensor, arange, where_};

const NAME: &str = "RadiusNeighborsClassifier";

/// scikit-learn's `RadiusNeighborsClassifier`: the class that most of the samples of the fit within a radius
/// have, of several the first.
///
/// ```
/// use tharsis_learn::neighbors::{OutlierLabel, RadiusNeighborsClassifier};
/// use tharsis_numeric::array;
/// let (x, y) = (array([0.0, 1.0, 2.0, 8.0, 9.0]).reshape(&[5, 1]), array([3i64, 3, 4, 4, 4]));
/// let estimator = RadiusNeighborsClassifier::new().radius(1.5).outlier_label(OutlierLabel::Label(-1));
/// let new = array([0.5, 8.5, 5.0]).reshape(&[3, 1]);
/// assert_eq!(estimator.fit(&x, &y, ..)?.predict(&new).to_vec::<i64>()?, [3, 4, -1]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct RadiusNeighborsClassifier {
    radius: f64,
    weights: Weights,
    metric: Metric,
    p: f64,
    outlier_label: OutlierLabel,
}

/// scikit-learn's `outlier_label`: the label of a sample without neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutlierLabel {
    /// There is none: such samples are an error.
    #[default]
    None,
    /// This one.
    Label(i64),
    /// The one that most samples of the fit have, of several the first.
    MostFrequent,
}

impl Parameter for OutlierLabel {
    fn words(_: usize) -> String {
        "an int, a str among {'most_frequent'} or None".to_owned()
    }

    fn of(value: &Setting) -> Option<OutlierLabel> {
        match value {
            Setting::None => Some(OutlierLabel::None),
            Setting::Integer(label) => Some(OutlierLabel::Label(*label)),
            Setting::Text(text) if text == "most_frequent" => Some(OutlierLabel::MostFrequent),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        match self {
            OutlierLabel::None => Setting::None,
            OutlierLabel::Label(label) => Setting::Integer(*label),
            OutlierLabel::MostFrequent => "most_frequent".into(),
        }
    }
}

/// A fitted [`RadiusNeighborsClassifier`]. It holds the samples as the expression that the fit was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedRadiusNeighborsClassifier {
    /// scikit-learn's `classes_`, ascending.
    pub classes: Vec<i64>,
    /// scikit-learn's `outlier_label_`: the label of a sample without neighbours, if it has one.
    pub outlier_label: Option<i64>,
    /// scikit-learn's `n_samples_fit_`.
    pub n_samples_fit: usize,
    radius: f64,
    weights: Weights,
    reference: Reference,
}

parameters!(
    RadiusNeighborsClassifier,
    NAME,
    [
        "radius" => radius, "weights" => weights, "metric" => metric, "p" => p,
        "outlier_label" => outlier_label
    ]
);

impl Default for RadiusNeighborsClassifier {
    fn default() -> RadiusNeighborsClassifier {
        RadiusNeighborsClassifier {
            radius: 1.0,
            weights: Weights::default(),
            metric: Metric::default(),
            p: 2.0,
            outlier_label: OutlierLabel::None,
        }
    }
}

setters!(RadiusNeighborsClassifier: radius, weights, metric);

impl RadiusNeighborsClassifier {
    /// An estimator with scikit-learn's defaults: radius 1, neighbours that count alike, Euclidean distances,
    /// and no label for a sample without neighbours.
    pub fn new() -> RadiusNeighborsClassifier {
        RadiusNeighborsClassifier::default()
    }

    /// scikit-learn's `outlier_label`: the label of a sample without neighbours.
    pub fn outlier_label(self, outlier_label: OutlierLabel) -> RadiusNeighborsClassifier {
        RadiusNeighborsClassifier { outlier_label, ..self }
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
    ) -> Result<FittedRadiusNeighborsClassifier> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The label of a sample without neighbours.
    #[track_caller]
    fn label_of_outliers(&self, training: &Training, classes: &Classes) -> Result<Option<i64>> {
        match self.outlier_label {
            OutlierLabel::None => Ok(None),
            OutlierLabel::Label(label) => Ok(Some(label)),
            OutlierLabel::MostFrequent => {
                let counts = training.engine.run(&[&classes.indicators().sum(0)])?.pop().ok_or_else(lost)?;
                let counts = vector(counts)?;
                let most = counts.iter().copied().fold(0.0, f64::max);
                let first = counts.iter().position(|&count| count == most);
                Ok(first.and_then(|at| classes.values.get(at)).copied())
            }
        }
    }
}

impl Estimator for RadiusNeighborsClassifier {
    type Fitted = FittedRadiusNeighborsClassifier;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedRadiusNeighborsClassifier> {
        check_not_negative(NAME, "radius", self.radius)?;
        let distance = Distance::of(NAME, self.metric, self.p)?;
        let training = Training::supervised(NAME, x, y, options)?.without_weights()?;
        let classes = Classes::of(&training)?;
        let outlier_label = self.label_of_outliers(&training, &classes)?;
        let reference =
            Reference::of(&training, Some(&classes.positions().astype(DType::F64).expand_dims(1)), distance)?;
        Ok(FittedRadiusNeighborsClassifier {
            classes: classes.values,
            outlier_label,
            n_samples_fit: training.rows,
            radius: self.radius,
            weights: self.weights,
            reference,
        })
    }
}

impl FittedRadiusNeighborsClassifier {
    /// The class of each sample (m, d), as an expression; (m,), int64.
    ///
    /// # Errors
    /// `ValueError` for another number of features; when run for NaN and infinity, and for a sample without
    /// neighbours if these have no label.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let chances = self.predict_proba(x);
        let labels = largest(&chances, &self.classes);
        match self.outlier_label {
            None => labels,
            Some(label) => where_(&chances.sum(1).equal(0.0), label, labels),
        }
    }

    /// The shares of the classes among the neighbours of each sample (m, d), or of their weights, as an
    /// expression; (m, k), float64. All are zero of a sample without neighbours whose label is no class.
    ///
    /// # Errors
    /// As [`predict`](FittedRadiusNeighborsClassifier::predict).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        let classes = self.classes.len();
        let around = (self.radius, self.weights, Summed::Classes(classes));
        let states = match self.reference.around(NAME, Some(x), around) {
            Ok(states) => states,
            Err(error) => return Tensor::from(error),
        };
        let sum = |votes: &Tensor| votes.sum(Axes::from(1).keepdims());
        let votes = match self.weights {
            Weights::Uniform => states,
            Weights::Distance => {
                let half = classes as i64;
                let equal = states.get(&[(..).into(), (..half).into()]);
                let other = states.get(&[(..).into(), (half..).into()]);
                where_(&sum(&equal).greater(0.0), equal, other)
            }
        };
        let all = sum(&votes);
        let is_alone = all.equal(0.0);
        let shares = votes / where_(&is_alone, 1.0, &all);
        let Some(label) = self.outlier_label else {
            let message =
                "No neighbors found for some test samples, you can try using larger radius, giving a \
                           label for outliers, or considering removing them from your dataset."
                    .to_owned();
            return Tensor::apply(Require { message }, &[&shares, &is_alone.logical_not()]);
        };
        // No class has the number behind the last.
        let place = self.classes.iter().position(|&class| class == label).unwrap_or(classes);
        let of_outliers = arange(classes).equal(place as i64).astype(DType::F64);
        where_(&is_alone, of_outliers, shares)
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

classifies!(FittedRadiusNeighborsClassifier, NAME);

saves!(FittedRadiusNeighborsClassifier, NAME, |read| read.reference.carried() == 1
    && !read.classes.is_empty());

impl fmt::Display for FittedRadiusNeighborsClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, rows) = (self.reference.columns(), self.reference.rows());
        write!(f, "{NAME} of {columns} features, {rows} samples, classes {:?}", self.classes)
    }
}
