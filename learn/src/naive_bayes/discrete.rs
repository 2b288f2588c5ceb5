//! Features that count, and features that are there or not.

use super::counts::{Counts, Range};
use super::family::{likely_classes, smoothing_parameters};
use super::likelihood::{check_count, check_signs};
use crate::base::{Estimator, FitOptions};
use crate::checks::{Training, refused, samples_for};
use crate::dense::tensor;
use crate::labels::Classes;
use crate::params::parameters;
use crate::saved::saved;
use crate::show;
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Result, Tensor, concatenate, where_};

/// Smallest smoothing: without any, a feature that a class has never had would make the logarithm of zero.
const ALPHA_MIN: f64 = f64::MIN_POSITIVE;

/// Parameters of both models.
#[derive(Clone, Debug)]
pub(super) struct Smoothing {
    pub(super) alpha: f64,
    pub(super) fit_prior: bool,
    pub(super) class_prior: Option<Vec<f64>>,
}

impl Default for Smoothing {
    fn default() -> Smoothing {
        Smoothing { alpha: 1.0, fit_prior: true, class_prior: None }
    }
}

impl Smoothing {
    #[track_caller]
    pub(super) fn checked_alpha(&self, estimator: &str) -> Result<f64> {
        let is_sound = 0.0 <= self.alpha && self.alpha.is_finite();
        if is_sound {
            if let Some(given) = &self.class_prior {
                check_signs(given)?;
            }
            return Ok(self.alpha.max(ALPHA_MIN));
        }
        Err(refused(format!(
            "The 'alpha' parameter of {estimator} must be a float in the range [0.0, inf). Got {} instead.",
            self.alpha
        )))
    }

    /// The logarithms of the probabilities of the classes.
    #[track_caller]
    pub(super) fn log_priors(&self, counts: &Counts) -> Result<Array1<f64>> {
        match &self.class_prior {
            Some(given) => Ok(check_count(given, counts.class.len())?.mapv(f64::ln)),
            None => Ok(counts.log_priors(self.fit_prior)),
        }
    }
}

/// scikit-learn's `MultinomialNB`: features are counts, such as those of words.
///
/// Labels are whole numbers of any dtype. An `alpha` of 0 counts as the smallest normal float, so that
/// what a class never had is very unlikely instead of NaN.
///
/// ```
/// use tharsis_learn::naive_bayes::MultinomialNB;
/// use tharsis_numeric::array;
/// let x = array([5i64, 0, 0, 5]).reshape(&[2, 2]);
/// let model = MultinomialNB::new().fit(&x, &array([7i64, 9]), ..)?;
/// assert!((model.feature_log_prob[[0, 0]] - (6.0f64 / 7.0).ln()).abs() < 1e-12);
/// assert_eq!(model.predict(&x).to_vec::<i64>()?, [7, 9]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct MultinomialNB {
    smoothing: Smoothing,
}

/// A fitted [`MultinomialNB`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedMultinomialNB {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `class_count_`: the samples of each class, or their weights; (k,).
    pub class_count: Array1<f64>,
    /// scikit-learn's `feature_count_`: the sums of each feature in each class; (k, d).
    pub feature_count: Array2<f64>,
    /// scikit-learn's `class_log_prior_`: the logarithm of the probability of each class; (k,).
    pub class_log_prior: Array1<f64>,
    /// scikit-learn's `feature_log_prob_`: the logarithm of the smoothed probability of each feature in each
    /// class; (k, d).
    pub feature_log_prob: Array2<f64>,
}

parameters!(
    MultinomialNB,
    "MultinomialNB",
    [
        "alpha" => smoothing.alpha, "fit_prior" => smoothing.fit_prior, "class_prior" => smoothing.class_prior
    ]
);

smoothing_parameters!(MultinomialNB);

impl MultinomialNB {
    /// An estimator with scikit-learn's defaults: `alpha` is 1, classes are as likely as in the samples.
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::MultinomialNB;
    /// use tharsis_numeric::{arange, array};
    /// let x = arange(4).reshape(&[2, 2]);
    /// let model = MultinomialNB::new().fit(&x, &array([0i64, 1]), ..)?;
    /// assert_eq!(model.class_count.to_vec(), [1.0, 1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> MultinomialNB {
        MultinomialNB::default()
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. One pass over the
    /// samples, behind one that finds the classes.
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::MultinomialNB;
    /// use tharsis_numeric::{arange, array};
    /// let refused = MultinomialNB::new().fit(&arange(4).reshape(&[2, 2]), &array([1i64]), ..);
    /// assert!(refused.unwrap_err().to_string().starts_with("Found input variables with inconsistent"));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, labels that are not whole, shapes that do not fit, no
    /// samples, no features, complex numbers, NaN, infinity, negative samples, and negative weights; errors
    /// of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedMultinomialNB> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl FittedMultinomialNB {
    /// The joint log likelihood of samples and classes; (n, k).
    #[track_caller]
    fn joint(&self, x: &Tensor) -> Result<Tensor> {
        let samples = samples_for("MultinomialNB", x, self.feature_log_prob.ncols())?;
        Ok(samples.matmul(&tensor(&self.feature_log_prob).t()) + tensor(&self.class_log_prior))
    }
}

impl Estimator for MultinomialNB {
    type Fitted = FittedMultinomialNB;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedMultinomialNB> {
        let alpha = self.smoothing.checked_alpha("MultinomialNB")?;
        let training = Training::supervised("MultinomialNB", x, y, options)?;
        let classes = Classes::of(&training)?;
        let counts = Counts::of(&training, &training.x, &classes, Range::NotNegative)?;
        let class_log_prior = self.smoothing.log_priors(&counts)?;
        let smoothed = &counts.feature + alpha;
        let all = smoothed.sum_axis(Axis(1)).mapv(f64::ln).insert_axis(Axis(1));
        Ok(FittedMultinomialNB {
            classes: classes.values,
            class_count: counts.class,
            feature_log_prob: smoothed.mapv(f64::ln) - all,
            feature_count: counts.feature,
            class_log_prior,
        })
    }
}

saved!(FittedMultinomialNB, "MultinomialNB", |model| {
    let shape = (model.classes.len(), model.feature_count.ncols());
    0 < shape.0
        && 0 < shape.1
        && model.feature_count.dim() == shape
        && model.feature_log_prob.dim() == shape
        && model.class_log_prior.len() == shape.0
        && model.class_count.len() == shape.0
});

likely_classes!(FittedMultinomialNB, "MultinomialNB", "NaN");

impl fmt::Display for FittedMultinomialNB {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (features, classes) = (self.feature_count.ncols(), &self.classes);
        write!(f, "MultinomialNB of {features} features, classes {classes:?}")?;
        show::line(f, "class_log_prior", &self.class_log_prior)?;
        show::rows(f, "feature_log_prob", &self.feature_log_prob.clone().into_dyn())
    }
}

/// scikit-learn's `BernoulliNB`: features are there or not.
///
/// Labels are whole numbers of any dtype. An `alpha` of 0 counts as the smallest normal float, so that
/// what a class never had is very unlikely instead of NaN.
///
/// ```
/// use tharsis_learn::naive_bayes::BernoulliNB;
/// use tharsis_numeric::array;
/// let x = array([5i64, 0, 0, 5]).reshape(&[2, 2]);
/// let model = BernoulliNB::new().fit(&x, &array([7i64, 9]), ..)?;
/// assert!((model.feature_log_prob[[0, 0]] - (2.0f64 / 3.0).ln()).abs() < 1e-12);
/// assert_eq!(model.predict(&x).to_vec::<i64>()?, [7, 9]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct BernoulliNB {
    smoothing: Smoothing,
    binarize: f64,
}

/// A fitted [`BernoulliNB`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedBernoulliNB {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `class_count_`: the samples of each class, or their weights; (k,).
    pub class_count: Array1<f64>,
    /// scikit-learn's `feature_count_`: the samples of each class that have the feature; (k, d).
    pub feature_count: Array2<f64>,
    /// scikit-learn's `class_log_prior_`: the logarithm of the probability of each class; (k,).
    pub class_log_prior: Array1<f64>,
    /// scikit-learn's `feature_log_prob_`: the logarithm of the smoothed probability of each feature in each
    /// class; (k, d).
    pub feature_log_prob: Array2<f64>,
    /// The logarithm of the probability that each feature is not there; (k, d).
    absent_log_prob: Array2<f64>,
    binarize: f64,
}

parameters!(
    BernoulliNB,
    "BernoulliNB",
    [
        "alpha" => smoothing.alpha, "binarize" => binarize, "fit_prior" => smoothing.fit_prior,
        "class_prior" => smoothing.class_prior
    ]
);

impl Default for BernoulliNB {
    fn default() -> BernoulliNB {
        BernoulliNB { smoothing: Smoothing::default(), binarize: 0.0 }
    }
}

smoothing_parameters!(BernoulliNB);

impl BernoulliNB {
    /// An estimator with scikit-learn's defaults: `alpha` is 1, features are there above 0, classes are as
    /// likely as in the samples.
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::BernoulliNB;
    /// use tharsis_numeric::{arange, array};
    /// let x = arange(4).reshape(&[2, 2]);
    /// let model = BernoulliNB::new().fit(&x, &array([0i64, 1]), ..)?;
    /// assert_eq!(model.class_count.to_vec(), [1.0, 1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> BernoulliNB {
        BernoulliNB::default()
    }

    /// scikit-learn's `binarize`: the largest number of a feature that is not there.
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::BernoulliNB;
    /// use tharsis_numeric::{arange, array};
    /// let x = arange(4).reshape(&[2, 2]);
    /// let model = BernoulliNB::new().binarize(2.5).fit(&x, &array([0i64, 1]), ..)?;
    /// assert_eq!(model.feature_count.row(1).to_vec(), [0.0, 1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn binarize(self, binarize: f64) -> BernoulliNB {
        BernoulliNB { binarize, ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. One pass over the
    /// samples, behind one that finds the classes.
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::BernoulliNB;
    /// use tharsis_numeric::{arange, array};
    /// let refused = BernoulliNB::new().fit(&arange(4).reshape(&[2, 2]), &array([1i64]), ..);
    /// assert!(refused.unwrap_err().to_string().starts_with("Found input variables with inconsistent"));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, labels that are not whole, shapes that do not fit, no
    /// samples, no features, complex numbers, NaN, infinity, and negative weights; errors of the
    /// passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedBernoulliNB> {
        self.fit_any(x, Some(y), &options.into())
    }
}

impl FittedBernoulliNB {
    /// The joint log likelihood of samples and classes; (n, k).
    #[track_caller]
    fn joint(&self, x: &Tensor) -> Result<Tensor> {
        let samples = samples_for("BernoulliNB", x, self.feature_log_prob.ncols())?;
        // NaN is no feature that is missing: it stays NaN, to be refused.
        let is_there = samples.greater(self.binarize).astype(DType::F64);
        let is_there = where_(&samples.isnan(), f64::NAN, is_there);
        let absent = &self.absent_log_prob;
        let constant = &self.class_log_prior + absent.sum_axis(Axis(1));
        Ok(is_there.matmul(&tensor(&(&self.feature_log_prob - absent)).t()) + tensor(&constant))
    }
}

impl Estimator for BernoulliNB {
    type Fitted = FittedBernoulliNB;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedBernoulliNB> {
        let alpha = self.smoothing.checked_alpha("BernoulliNB")?;
        let training = Training::supervised("BernoulliNB", x, y, options)?;
        let classes = Classes::of(&training)?;
        let is_there = training.x.greater(self.binarize).astype(DType::F64);
        // Samples without the feature are counted too: the difference of two sums may be rounding alone.
        let is_absent = training.x.less_equal(self.binarize).astype(DType::F64);
        let both = concatenate(&[&is_there, &is_absent], 1);
        let mut counts = Counts::of(&training, &both, &classes, Range::Any)?;
        let (there, absent) = counts.feature.view().split_at(Axis(1), training.columns);
        let (there, absent) = (there.to_owned(), absent.to_owned());
        counts.feature = there;
        let class_log_prior = self.smoothing.log_priors(&counts)?;
        // A sample with the feature, and one without, are added to each class.
        let smoothed = (&counts.class + 2.0 * alpha).mapv(f64::ln).insert_axis(Axis(1));
        Ok(FittedBernoulliNB {
            classes: classes.values,
            class_count: counts.class,
            feature_log_prob: (&counts.feature + alpha).mapv(f64::ln) - &smoothed,
            absent_log_prob: (absent + alpha).mapv(f64::ln) - smoothed,
            feature_count: counts.feature,
            class_log_prior,
            binarize: self.binarize,
        })
    }
}

saved!(FittedBernoulliNB, "BernoulliNB", |model| {
    let shape = (model.classes.len(), model.feature_count.ncols());
    0 < shape.0
        && 0 < shape.1
        && model.feature_count.dim() == shape
        && model.feature_log_prob.dim() == shape
        && model.class_log_prior.len() == shape.0
        && model.class_count.len() == shape.0
        && model.absent_log_prob.dim() == shape
});

likely_classes!(FittedBernoulliNB, "BernoulliNB", "NaN");

impl fmt::Display for FittedBernoulliNB {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (features, classes) = (self.feature_count.ncols(), &self.classes);
        write!(f, "BernoulliNB of {features} features, classes {classes:?}")?;
        show::line(f, "class_log_prior", &self.class_log_prior)?;
        show::rows(f, "feature_log_prob", &self.feature_log_prob.clone().into_dyn())
    }
}
