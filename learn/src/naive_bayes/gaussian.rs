//! Features with a normal distribution in each class.

use super::family::likely_classes;
use super::likelihood::{check_count, check_shares};
use crate::base::{Estimator, FitOptions};
use crate::checks::{Nan, Training, refused, samples_for};
use crate::dense::tensor;
use crate::labels::Classes;
use crate::params::parameters;
use crate::saved::saved;
use crate::show;
use crate::states::{all_finite, lost, matrix, vector};
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `GaussianNB`: the mean and the variance of each feature in each class.
///
/// Labels are whole numbers of any dtype.
///
/// ```
/// use tharsis_learn::naive_bayes::GaussianNB;
/// use tharsis_numeric::array;
/// let x = array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]);
/// let model = GaussianNB::new().fit(&x, &array([7i64, 7, 9, 9]), ..)?;
/// assert_eq!((model.theta[[0, 0]], model.class_prior[0]), (-1.5, 0.5));
/// assert_eq!(model.predict(&array([-3.0, 5.0]).reshape(&[2, 1])).to_vec::<i64>()?, [7, 9]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct GaussianNB {
    priors: Option<Vec<f64>>,
    var_smoothing: f64,
}

/// A fitted [`GaussianNB`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedGaussianNB {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `class_count_`: the samples of each class, or their weights; (k,).
    pub class_count: Array1<f64>,
    /// scikit-learn's `class_prior_`: the probability of each class; (k,).
    pub class_prior: Array1<f64>,
    /// scikit-learn's `theta_`: the mean of each feature in each class; (k, d).
    pub theta: Array2<f64>,
    /// scikit-learn's `var_`: the variance of each feature in each class, with `epsilon` added; (k, d).
    pub var: Array2<f64>,
    /// scikit-learn's `epsilon_`: the part of the largest variance that is added to all.
    pub epsilon: f64,
}

parameters!(GaussianNB, "GaussianNB", ["priors" => priors, "var_smoothing" => var_smoothing]);

impl Default for GaussianNB {
    fn default() -> GaussianNB {
        GaussianNB { priors: None, var_smoothing: 1e-9 }
    }
}

impl GaussianNB {
    /// An estimator with scikit-learn's defaults: classes are as likely as in the samples, `var_smoothing` is
    /// 1e-9.
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::GaussianNB;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 2.0, 9.0]).reshape(&[3, 1]);
    /// let model = GaussianNB::new().fit(&x, &array([0i64, 0, 1]), ..)?;
    /// assert!((model.var[[0, 0]] - 1.0).abs() < 1e-6);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> GaussianNB {
        GaussianNB::default()
    }

    /// scikit-learn's `priors`: the probabilities of the classes, in ascending order of these.
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::GaussianNB;
    /// use tharsis_numeric::array;
    /// let (x, y) = (array([0.0, 9.0]).reshape(&[2, 1]), array([0i64, 1]));
    /// assert_eq!(GaussianNB::new().priors(&[0.1, 0.9]).fit(&x, &y, ..)?.class_prior[1], 0.9);
    /// assert!(GaussianNB::new().priors(&[0.1, 0.1]).fit(&x, &y, ..).is_err());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn priors(self, priors: &[f64]) -> GaussianNB {
        GaussianNB { priors: Some(priors.to_vec()), ..self }
    }

    /// scikit-learn's `var_smoothing`: the part of the largest variance of all features that is added to each
    /// variance.
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::GaussianNB;
    /// use tharsis_numeric::array;
    /// let (x, y) = (array([0.0, 2.0]).reshape(&[2, 1]), array([0i64, 1]));
    /// assert_eq!(GaussianNB::new().var_smoothing(0.5).fit(&x, &y, ..)?.epsilon, 0.5);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn var_smoothing(self, var_smoothing: f64) -> GaussianNB {
        GaussianNB { var_smoothing, ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. One plan, which
    /// reads the samples for the means and then for the squares around them.
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::GaussianNB;
    /// use tharsis_numeric::array;
    /// let (x, y) = (array([0.0, 9.0]).reshape(&[2, 1]), array([0.5, 1.0]));
    /// let refused = GaussianNB::new().fit(&x, &y, ..);
    /// assert!(refused.unwrap_err().to_string().starts_with("Unknown label type: continuous."));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, labels that are not whole, shapes that do not fit, no
    /// samples, no features, complex numbers, NaN, infinity, and weights that are negative or zero for a
    /// whole class; errors of the passes.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedGaussianNB> {
        self.fit_any(x, Some(y), &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        if let Some(priors) = &self.priors {
            check_shares(priors)?;
        }
        let is_sound = 0.0 <= self.var_smoothing && self.var_smoothing.is_finite();
        if is_sound {
            return Ok(());
        }
        Err(refused(format!(
            "The 'var_smoothing' parameter of GaussianNB must be a float in the range [0.0, inf). Got {} \
             instead.",
            self.var_smoothing
        )))
    }
}

impl FittedGaussianNB {
    /// The joint log likelihood of samples and classes; (n, k).
    #[track_caller]
    fn joint(&self, x: &Tensor) -> Result<Tensor> {
        let samples = samples_for("GaussianNB", x, self.theta.ncols())?.expand_dims(1);
        let scaled = (samples - tensor(&self.theta)).square() / tensor(&self.var);
        let normal = self.var.mapv(|var| (2.0 * PI * var).ln()).sum_axis(Axis(1));
        let constant = self.class_prior.mapv(f64::ln) - normal * 0.5;
        Ok(scaled.sum(2) * -0.5 + tensor(&constant))
    }
}

impl Estimator for GaussianNB {
    type Fitted = FittedGaussianNB;

    #[track_caller]
    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<FittedGaussianNB> {
        self.check()?;
        let training = Training::supervised("GaussianNB", x, y, options)?;
        let classes = Classes::of(&training)?;
        let priors = match &self.priors {
            Some(given) => Some(check_count(given, classes.values.len())?),
            None => None,
        };
        let x = &training.x;
        let member = classes.indicators();
        let weighted = match &training.weight {
            None => member.clone(),
            Some(weight) => &member * weight.expand_dims(1),
        };
        let count = weighted.sum(0);
        // The squares are taken around the means of the classes, so no digits are lost.
        let mean = weighted.t().matmul(x) / count.expand_dims(1);
        let rest = x - member.matmul(&mean);
        let variance = weighted.t().matmul(&rest.square()) / count.expand_dims(1);
        let largest = x.var(0).max(..);
        let states = training.engine.run(&[&count, &mean, &variance, &largest])?;
        // A class without weight has no mean, which is no mistake of a sum.
        let has_weight = states.first().is_some_and(|count| count.iter().all(|&count| count != 0.0));
        if !all_finite(&states) && has_weight {
            return Err(training.not_finite(Nan::Refused));
        }
        if !has_weight {
            training.explain_not_finite(Nan::Refused)?;
            return Err(refused("Weights of a class sum to zero, can't be normalized"));
        }
        let [count, mean, variance, largest] = <[_; 4]>::try_from(states).map_err(|_| lost())?;
        let class_count = vector(count)?;
        let epsilon = self.var_smoothing * largest.sum();
        let class_prior = priors.unwrap_or_else(|| &class_count / class_count.sum());
        let (theta, var) = (matrix(mean)?, matrix(variance)? + epsilon);
        if let Some(((class, feature), _)) = var.indexed_iter().find(|(_, variance)| **variance == 0.0) {
            return Err(refused(format!(
                "Feature {feature} has variance 0 in class {}, which is no normal distribution. Raise \
                 var_smoothing, or leave out features that are constant.",
                classes.values[class]
            )));
        }
        Ok(FittedGaussianNB { classes: classes.values, class_count, class_prior, theta, var, epsilon })
    }
}

saved!(FittedGaussianNB, "GaussianNB", |model| {
    let shape = (model.classes.len(), model.theta.ncols());
    0 < shape.0
        && 0 < shape.1
        && model.theta.dim() == shape
        && model.var.dim() == shape
        && model.class_prior.len() == shape.0
        && model.class_count.len() == shape.0
});

likely_classes!(FittedGaussianNB, "GaussianNB", "NaN");

impl fmt::Display for FittedGaussianNB {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GaussianNB of {} features, classes {:?}", self.theta.ncols(), self.classes)?;
        show::line(f, "class_prior", &self.class_prior)?;
        show::rows(f, "theta", &self.theta.clone().into_dyn())?;
        show::rows(f, "var", &self.var.clone().into_dyn())
    }
}
