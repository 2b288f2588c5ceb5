//! The class whose centre is nearest.

use crate::Setting;
use crate::base::{Estimator, FitOptions, Predict, classifies};
use crate::bounds::{check, check_positive};
use crate::checks::{Nan, Training, refused, samples_for};
use crate::dense::tensor;
use crate::labels::{Classes, largest, log_sum_exp};
use crate::metrics::manhattan_distances;
use crate::params::{Parameter, parameters, words};
use crate::passes::{in_fixed_chunks, is_constant, relative_distances};
use crate::saved::saved;
use crate::show;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor, concatenate, where_};

/// The distance of a sample from the centre of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CentroidMetric {
    /// The root of the sum of squares; centres are means.
    #[default]
    Euclidean,
    /// The sum of absolute differences; centres are medians.
    Manhattan,
}

words!(
    CentroidMetric,
    ["manhattan" => CentroidMetric::Manhattan, "euclidean" => CentroidMetric::Euclidean]
);

/// The probabilities of classes before a sample is seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CentroidPriors {
    /// The same for all classes.
    #[default]
    Uniform,
    /// The shares of the classes among the samples.
    Empirical,
    /// These, in ascending order of the classes; they are divided by their sum.
    Given(Vec<f64>),
}

impl From<&[f64]> for CentroidPriors {
    fn from(given: &[f64]) -> CentroidPriors {
        CentroidPriors::Given(given.to_vec())
    }
}

impl Parameter for CentroidPriors {
    fn words(_: usize) -> String {
        "an array-like or a str among {'uniform', 'empirical'}".to_owned()
    }

    fn of(value: &Setting) -> Option<CentroidPriors> {
        match value {
            Setting::Text(text) if text == "uniform" => Some(CentroidPriors::Uniform),
            Setting::Text(text) if text == "empirical" => Some(CentroidPriors::Empirical),
            other => Vec::of(other).map(CentroidPriors::Given),
        }
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<CentroidPriors>> {
        match CentroidPriors::of(value) {
            Some(found) => Ok(Some(found)),
            None => Ok(Vec::read(value)?.map(CentroidPriors::Given)),
        }
    }

    fn setting(&self) -> Setting {
        match self {
            CentroidPriors::Uniform => "uniform".into(),
            CentroidPriors::Empirical => "empirical".into(),
            CentroidPriors::Given(given) => Setting::Numbers(given.clone()),
        }
    }
}

/// scikit-learn's `NearestCentroid`: the class whose centre is nearest.
///
/// Labels are whole numbers of any dtype. With other priors than equal ones distances are measured in
/// deviations within classes, and the logarithms of the priors are added twice.
///
/// ```
/// use tharsis_learn::neighbors::NearestCentroid;
/// use tharsis_numeric::array;
/// let (x, y) = (array([0.0, 2.0, 8.0, 10.0]).reshape(&[4, 1]), array([5i64, 5, 7, 7]));
/// let model = NearestCentroid::new().fit(&x, &y, ..)?;
/// assert_eq!(model.centroids.column(0).to_vec(), [1.0, 9.0]);
/// assert_eq!(model.predict(&array([4.0, 6.0]).reshape(&[2, 1])).to_vec::<i64>()?, [5, 7]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct NearestCentroid {
    metric: CentroidMetric,
    shrink_threshold: Option<f64>,
    priors: CentroidPriors,
}

/// A fitted [`NearestCentroid`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedNearestCentroid {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `class_prior_`: the probability of each class; (k,).
    pub class_prior: Array1<f64>,
    /// scikit-learn's `centroids_`: the centre of each class; (k, d).
    pub centroids: Array2<f64>,
    /// scikit-learn's `within_class_std_dev_`: the deviation within classes, 0 of a feature that varies in
    /// none, and NaN if each class has one sample; (d,).
    pub within_class_std_dev: Array1<f64>,
    /// scikit-learn's `deviations_`: the distances of the centres from the mean of all samples, less the
    /// threshold, in units of deviations; (k, d).
    pub deviations: Array2<f64>,
    metric: CentroidMetric,
}

parameters!(
    NearestCentroid,
    "NearestCentroid",
    ["metric" => metric, "shrink_threshold" => shrink_threshold, "priors" => priors]
);

impl NearestCentroid {
    /// An estimator with scikit-learn's defaults: Euclidean distances, equal priors, centres that stay.
    pub fn new() -> NearestCentroid {
        NearestCentroid::default()
    }

    /// scikit-learn's `metric`: the distance of a sample from a centre.
    pub fn metric(self, metric: CentroidMetric) -> NearestCentroid {
        NearestCentroid { metric, ..self }
    }

    /// scikit-learn's `shrink_threshold`: by how much centres are moved to the mean of all samples, in units
    /// of deviations. A feature that varies in no class moves no centre, where scikit-learn makes it NaN.
    pub fn shrink_threshold(self, shrink_threshold: f64) -> NearestCentroid {
        NearestCentroid { shrink_threshold: Some(shrink_threshold), ..self }
    }

    /// scikit-learn's `priors`: the probabilities of classes before a sample is seen.
    pub fn priors(self, priors: impl Into<CentroidPriors>) -> NearestCentroid {
        NearestCentroid { priors: priors.into(), ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. Two passes behind
    /// those that find the classes; with the metric `manhattan` a sort of each feature for each class.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, a single class, features none of which varies, labels
    /// that are not whole, shapes that do not fit, no samples, no features, complex numbers, NaN and
    /// infinity; `TypeError` for weights; `OverflowError` for sums beyond float64; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedNearestCentroid> {
        self.fit_any(x, Some(y), &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        if let Some(threshold) = self.shrink_threshold {
            check_positive("NearestCentroid", "shrink_threshold", threshold)?;
        }
        if let CentroidPriors::Given(given) = &self.priors {
            if given.iter().any(|prior| !(0.0..f64::INFINITY).contains(prior)) {
                return Err(refused("priors must be non-negative"));
            }
            let sum: f64 = given.iter().sum();
            check("NearestCentroid", "priors", 0.0 < sum, "an array-like of which one is positive", sum)?;
        }
        Ok(())
    }

    /// The probabilities of classes with these numbers of samples.
    #[track_caller]
    fn class_prior(&self, count: &Array1<f64>) -> Result<Array1<f64>> {
        let classes = count.len();
        match &self.priors {
            CentroidPriors::Uniform => Ok(Array1::from_elem(classes, 1.0 / classes as f64)),
            CentroidPriors::Empirical => Ok(count / count.sum()),
            CentroidPriors::Given(given) if given.len() == classes => {
                let given = Array1::from(given.clone());
                // As NumPy's `isclose` has it.
                let is_one = (given.sum() - 1.0).abs() <= 1e-8 + 1e-5;
                Ok(if is_one { given } else { &given / given.sum() })
            }
            CentroidPriors::Given(_) => Err(refused("Number of priors must match number of classes.")),
        }
    }
}

/// The medians of classes; (k, d).
#[track_caller]
fn medians(training: &Training, member: &Tensor, classes: usize) -> Tensor {
    let of_class = |class: usize| {
        let is_other = member.get(&[(..).into(), (class as i64).into()]).equal(0.0).expand_dims(1);
        where_(&is_other, f64::NAN, &training.x).nanmedian(0).expand_dims(0)
    };
    let medians: Vec<Tensor> = (0..classes).map(of_class).collect();
    concatenate(&medians.iter().collect::<Vec<_>>(), 0)
}

/// Numbers of the samples of a fit.
struct Sums {
    count: Array1<f64>,
    mean: Array1<f64>,
    centers: Array2<f64>,
    /// Whether a feature varies.
    varies: bool,
}

impl Sums {
    #[track_caller]
    fn of(training: &Training, member: &Tensor, classes: usize, metric: CentroidMetric) -> Result<Sums> {
        let x = &training.x;
        let count = member.sum(0);
        let centers = match metric {
            CentroidMetric::Euclidean => member.t().matmul(x) / count.expand_dims(1),
            CentroidMetric::Manhattan => medians(training, member, classes),
        };
        let states = training.engine.run(&[&count, &x.mean(0), &centers, &x.min(0), &x.max(0)])?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let [count, mean, centers, least, most] = <[_; 5]>::try_from(states).map_err(|_| lost())?;
        let (count, mean, centers) = (vector(count)?, vector(mean)?, matrix(centers)?);
        Ok(Sums { count, mean, centers, varies: least != most })
    }

    /// The deviations within classes; (d,).
    #[track_caller]
    fn within(&self, training: &Training, member: &Tensor) -> Result<Array1<f64>> {
        let rest = &training.x - in_fixed_chunks(&member.matmul(&tensor(&self.centers)), training.columns);
        let states = training.engine.run(&[&rest.square().sum(0)])?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let squares = vector(states.into_iter().next().ok_or_else(lost)?)?;
        let freedom = training.rows as f64 - self.count.len() as f64;
        let mut variance = squares / freedom;
        for (variance, mean) in variance.iter_mut().zip(&self.mean) {
            // Rounding of the mean of equal numbers is no deviation.
            if is_constant(*variance, *mean) {
                *variance = 0.0;
            }
        }
        Ok(variance.mapv(f64::sqrt))
    }
}

/// The middle number, or the mean of the two in the middle; NaN if there is a NaN.
fn median(numbers: &Array1<f64>) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        Some(high) if sorted.len().is_multiple_of(2) => 0.5 * (sorted[middle - 1] + high),
        Some(high) => *high,
        None => f64::NAN,
    }
}

impl Estimator for NearestCentroid {
    type Fitted = FittedNearestCentroid;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedNearestCentroid> {
        self.check()?;
        let training = Training::supervised("NearestCentroid", x, y, options)?.without_weights()?;
        let classes = Classes::of(&training)?;
        if classes.values.len() < 2 {
            return Err(refused("The number of classes has to be greater than one; got 1 class"));
        }
        training.check_held(classes.values.len(), training.columns)?;
        let member = classes.indicators();
        let sums = Sums::of(&training, &member, classes.values.len(), self.metric)?;
        let class_prior = self.class_prior(&sums.count)?;
        if !sums.varies {
            return Err(refused("All features have zero variance. Division by zero."));
        }
        let within_class_std_dev = sums.within(&training, &member)?;
        let rows = training.rows as f64;
        let unit = &within_class_std_dev + median(&within_class_std_dev);
        let errors = sums.count.mapv(|count| (1.0 / count - 1.0 / rows).sqrt()).insert_axis(Axis(1));
        let units = &errors * &unit.insert_axis(Axis(0));
        let mut deviations = (&sums.centers - &sums.mean) / &units;
        let mut centroids = sums.centers;
        if let Some(threshold) = self.shrink_threshold {
            deviations.mapv_inplace(|far| far.signum() * (far.abs() - threshold).max(0.0));
            let moved = &sums.mean + &(&units * &deviations);
            ndarray::Zip::from(&mut centroids).and(&moved).and(&units).for_each(|center, &moved, &unit| {
                // A feature without deviation has no unit to move by.
                if unit != 0.0 {
                    *center = moved;
                }
            });
        }
        Ok(FittedNearestCentroid {
            classes: classes.values,
            class_prior,
            centroids,
            within_class_std_dev,
            deviations,
            metric: self.metric,
        })
    }
}

impl FittedNearestCentroid {
    /// The labels of samples (n, d), as an expression; (n,), int64. Carries a `ValueError` for another number
    /// of features; when run for NaN.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        let near = 1.0 / self.classes.len() as f64;
        // As NumPy's `isclose` has it.
        let is_uniform = self.class_prior.iter().all(|prior| (prior - near).abs() <= 1e-8 + 1e-5 * near);
        if !is_uniform {
            return self.scores(x).map_or_else(Tensor::from, |scores| largest(&scores, &self.classes));
        }
        let distances =
            samples_for("NearestCentroid", x, self.centroids.ncols()).map(|samples| match self.metric {
                CentroidMetric::Euclidean => {
                    let first = self.centroids.row(0).to_owned();
                    relative_distances(&(samples - tensor(&first)), &(&self.centroids - &first))
                }
                CentroidMetric::Manhattan => manhattan_distances(&samples, &tensor(&self.centroids)),
            });
        distances.map_or_else(Tensor::from, |distances| largest(&distances.negative(), &self.classes))
    }

    /// scikit-learn's `decision_function`: the logarithms of the joint likelihoods of samples (n, d) and
    /// classes, up to a summand, as an expression; (n, k), for two classes the difference, (n,). Carries a
    /// `ValueError` for another number of features, and for the metric `manhattan`.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        let scores = match self.likelihoods(x) {
            Ok(scores) => scores,
            Err(error) => return Tensor::from(error),
        };
        if self.classes.len() != 2 {
            return scores;
        }
        let column = |at: i64| scores.get(&[(..).into(), at.into()]);
        column(1) - column(0)
    }

    /// The probability of each class, in ascending order, for samples (n, d), as an expression; (n, k). As
    /// [`decision_function`](FittedNearestCentroid::decision_function).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.predict_log_proba(x).exp()
    }

    /// The logarithms of [`predict_proba`](FittedNearestCentroid::predict_proba).
    #[track_caller]
    pub fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.likelihoods(x).map_or_else(Tensor::from, |scores| &scores - log_sum_exp(&scores))
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }

    /// The scores of Euclidean distances, which are likelihoods; (n, k).
    #[track_caller]
    fn likelihoods(&self, x: &Tensor) -> Result<Tensor> {
        match self.metric {
            CentroidMetric::Euclidean => self.scores(x),
            CentroidMetric::Manhattan => {
                Err(refused("decision_function and predict_proba need the metric 'euclidean'"))
            }
        }
    }

    /// The scores of samples and classes: twice the logarithm of the prior less the squared distance in
    /// deviations; (n, k).
    #[track_caller]
    fn scores(&self, x: &Tensor) -> Result<Tensor> {
        let samples = samples_for("NearestCentroid", x, self.centroids.ncols())?;
        let unit = self.within_class_std_dev.mapv(|unit| if unit == 0.0 { 1.0 } else { unit });
        // Around one of the centres: those of features far from zero keep their digits.
        let first = self.centroids.row(0).to_owned();
        let samples = (samples - tensor(&first)) / tensor(&unit);
        let centers = (&self.centroids - &first) / &unit;
        let squares = match self.metric {
            CentroidMetric::Euclidean => {
                let between = samples.expand_dims(1) - tensor(&centers);
                in_fixed_chunks(&between.square().sum(2), centers.nrows())
            }
            CentroidMetric::Manhattan => manhattan_distances(&samples, &tensor(&centers)).square(),
        };
        Ok(tensor(&self.class_prior.mapv(|prior| 2.0 * prior.ln())) - squares)
    }
}

saved!(FittedNearestCentroid, "NearestCentroid", |model| {
    let shape = (model.classes.len(), model.within_class_std_dev.len());
    1 < shape.0
        && 0 < shape.1
        && model.centroids.dim() == shape
        && model.deviations.dim() == shape
        && model.class_prior.len() == shape.0
});

classifies!(FittedNearestCentroid, "NearestCentroid", predict_log_proba; decision_function);

impl fmt::Display for FittedNearestCentroid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (features, classes) = (self.centroids.ncols(), &self.classes);
        write!(f, "NearestCentroid of {features} features, classes {classes:?}")?;
        show::rows(f, "centroids", &self.centroids.clone().into_dyn())
    }
}
