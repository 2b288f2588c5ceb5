//! Features that count, told by the samples of all other classes.

use super::counts::{Counts, Range};
use super::discrete::Smoothing;
use super::family::{likely_classes, smoothing_parameters};
use crate::base::{Estimator, FitOptions};
use crate::checks::{Training, samples_for};
use crate::dense::tensor;
use crate::labels::Classes;
use crate::params::parameters;
use crate::saved::saved;
use crate::show;
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `ComplementNB`: features are counts, and a class is as likely as the samples of all others
/// are unlike it. It is for classes of very different sizes.
///
/// Labels are whole numbers of any dtype. An `alpha` of 0 counts as the smallest normal float, so that
/// what other classes never had is very unlikely instead of NaN. Priors have no part in the choice of a class
/// but where there is a single one, as in scikit-learn.
///
/// ```
/// use tharsis_learn::naive_bayes::ComplementNB;
/// use tharsis_numeric::array;
/// let x = array([5i64, 0, 0, 5]).reshape(&[2, 2]);
/// let model = ComplementNB::new().fit(&x, &array([7i64, 9]), ..)?;
/// assert!((model.feature_log_prob[[0, 0]] - 7f64.ln()).abs() < 1e-12);
/// assert_eq!(model.predict(&x).to_vec::<i64>()?, [7, 9]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct ComplementNB {
    smoothing: Smoothing,
    norm: bool,
}

/// A fitted [`ComplementNB`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedComplementNB {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `class_count_`: the samples of each class, or their weights; (k,).
    pub class_count: Array1<f64>,
    /// scikit-learn's `class_log_prior_`: the logarithm of the probability of each class; (k,).
    pub class_log_prior: Array1<f64>,
    /// scikit-learn's `feature_all_`: the sums of each feature; (d,).
    pub feature_all: Array1<f64>,
    /// scikit-learn's `feature_count_`: the sums of each feature in each class; (k, d).
    pub feature_count: Array2<f64>,
    /// scikit-learn's `feature_log_prob_`: the weight of each feature for each class, which is the negative
    /// logarithm of its smoothed probability in all others; (k, d).
    pub feature_log_prob: Array2<f64>,
}

parameters!(
    ComplementNB,
    "ComplementNB",
    [
        "alpha" => smoothing.alpha, "fit_prior" => smoothing.fit_prior,
        "class_prior" => smoothing.class_prior, "norm" => norm
    ]
);

smoothing_parameters!(ComplementNB);

impl ComplementNB {
    /// An estimator with scikit-learn's defaults: `alpha` is 1, weights are not normalized.
    pub fn new() -> ComplementNB {
        ComplementNB::default()
    }

    /// scikit-learn's `norm`: whether the weights of each class are divided by their sum.
    pub fn norm(self, norm: bool) -> ComplementNB {
        ComplementNB { norm, ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. One pass over the
    /// samples, behind one that finds the classes.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, labels that are not whole, shapes that do not fit, no
    /// samples, no features, complex numbers, NaN, infinity, negative samples, and negative weights; errors
    /// of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedComplementNB> {
        self.fit_any(x, Some(y), &options.into())
    }
}

/// The sums of all rows but each one. They are sums of positive numbers, where a difference from the sum of
/// all would be rounding if the others are small.
fn of_others(counts: &Array2<f64>) -> Array2<f64> {
    let mut others = Array2::zeros(counts.dim());
    let mut sum = Array1::<f64>::zeros(counts.ncols());
    for (mut row, own) in others.outer_iter_mut().zip(counts.outer_iter()) {
        row += &sum;
        sum += &own;
    }
    sum.fill(0.0);
    for (mut row, own) in others.outer_iter_mut().zip(counts.outer_iter()).rev() {
        row += &sum;
        sum += &own;
    }
    others
}

impl Estimator for ComplementNB {
    type Fitted = FittedComplementNB;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedComplementNB> {
        let alpha = self.smoothing.checked_alpha("ComplementNB")?;
        let training = Training::supervised("ComplementNB", x, y, options)?;
        let classes = Classes::of(&training)?;
        let counts = Counts::of(&training, &training.x, &classes, Range::NotNegative)?;
        let class_log_prior = self.smoothing.log_priors(&counts)?;
        let smoothed = of_others(&counts.feature) + alpha;
        let all = smoothed.sum_axis(Axis(1)).mapv(f64::ln).insert_axis(Axis(1));
        let logs = smoothed.mapv(f64::ln) - all;
        let feature_log_prob = if self.norm {
            // With one feature all logarithms are 0, and so are the weights: scikit-learn's are NaN, which
            // its predictions take for equal as well.
            let sums = logs.sum_axis(Axis(1)).mapv(|sum| if sum == 0.0 { 1.0 } else { sum });
            logs / sums.insert_axis(Axis(1))
        } else {
            -logs
        };
        Ok(FittedComplementNB {
            classes: classes.values,
            class_count: counts.class,
            class_log_prior,
            feature_all: counts.feature.sum_axis(Axis(0)),
            feature_count: counts.feature,
            feature_log_prob,
        })
    }
}

impl FittedComplementNB {
    /// The weights of samples and classes; (n, k).
    #[track_caller]
    fn joint(&self, x: &Tensor) -> Result<Tensor> {
        let samples = samples_for("ComplementNB", x, self.feature_log_prob.ncols())?;
        let joint = samples.matmul(&tensor(&self.feature_log_prob).t());
        Ok(if self.classes.len() == 1 { joint + tensor(&self.class_log_prior) } else { joint })
    }
}

saved!(FittedComplementNB, "ComplementNB", |model| {
    let shape = (model.classes.len(), model.feature_all.len());
    0 < shape.0
        && 0 < shape.1
        && model.feature_count.dim() == shape
        && model.feature_log_prob.dim() == shape
        && model.class_log_prior.len() == shape.0
        && model.class_count.len() == shape.0
});

likely_classes!(FittedComplementNB, "ComplementNB", "NaN");

impl fmt::Display for FittedComplementNB {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (features, classes) = (self.feature_all.len(), &self.classes);
        write!(f, "ComplementNB of {features} features, classes {classes:?}")?;
        show::rows(f, "feature_log_prob", &self.feature_log_prob.clone().into_dyn())
    }
}

#[cfg(test)]
mod tests {
    use super::of_others;
    use ndarray::arr2;

    #[test]
    fn a_row_that_is_nearly_all_takes_no_digits_from_others() {
        let others = of_others(&arr2(&[[1.0, 0.0], [1e20, 2.0], [3.0, 4.0]]));
        assert_eq!(others, arr2(&[[1e20 + 3.0, 6.0], [4.0, 4.0], [1e20, 2.0]]));
        assert_eq!(of_others(&arr2(&[[5.0, 7.0]])), arr2(&[[0.0, 0.0]]));
    }
}
