//! Classes with covariances of their own: quadratic borders.

use super::priors;
use crate::base::{Estimator, FitOptions, classifies};
use crate::bounds::{check, check_not_negative};
use crate::checks::{Training, refused, samples_for};
use crate::dense::{spectrum, tensor};
use crate::labels::{Classes, largest, log_sum_exp};
use crate::params::parameters;
use crate::passes::{ClassMeans, in_fixed_chunks};
use crate::saved::saved;
use crate::score::accuracy;
use crate::show;
use crate::states::{all_finite, matrix};
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::KernelError;
use tharsis_numeric::{Error, Result, Tensor, stack};

const NAME: &str = "QuadraticDiscriminantAnalysis";

/// scikit-learn's `QuadraticDiscriminantAnalysis` with its default solver `svd`: a normal distribution for
/// each class.
///
/// The singular values are the roots of eigenvalues of the (d, d) covariance of each class, which one pass
/// makes.
///
/// ```
/// use tharsis_learn::discriminant_analysis::QuadraticDiscriminantAnalysis;
/// use tharsis_numeric::array;
/// let x = array([-0.1, 0.0, 0.1, -9.0, 0.5, 9.0]).reshape(&[6, 1]);
/// let y = array([0i64, 0, 0, 1, 1, 1]);
/// let model = QuadraticDiscriminantAnalysis::new().fit(&x, &y, ..)?;
/// assert_eq!(model.predict(&array([-5.0, 0.0, 5.0]).reshape(&[3, 1])).to_vec::<i64>()?, [1, 0, 1]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct QuadraticDiscriminantAnalysis {
    priors: Option<Vec<f64>>,
    reg_param: f64,
    tol: f64,
}

/// A fitted [`QuadraticDiscriminantAnalysis`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedQuadraticDiscriminantAnalysis {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `means_`: the mean of each class; (k, d).
    pub means: Array2<f64>,
    /// scikit-learn's `priors_`: the chance of each class; (k,).
    pub priors: Array1<f64>,
    /// scikit-learn's `scalings_`: the variances of each class along its directions, descending; (k, d).
    pub scalings: Array2<f64>,
    /// scikit-learn's `rotations_`: the directions of each class, one a column, up to their signs; (d, d)
    /// each.
    pub rotations: Vec<Array2<f64>>,
}

parameters!(
    QuadraticDiscriminantAnalysis,
    NAME,
    ["priors" => priors, "reg_param" => reg_param, "tol" => tol]
);

impl Default for QuadraticDiscriminantAnalysis {
    fn default() -> QuadraticDiscriminantAnalysis {
        QuadraticDiscriminantAnalysis { priors: None, reg_param: 0.0, tol: 1e-4 }
    }
}

impl QuadraticDiscriminantAnalysis {
    /// An estimator with scikit-learn's defaults: classes are as likely as in the samples.
    pub fn new() -> QuadraticDiscriminantAnalysis {
        QuadraticDiscriminantAnalysis::default()
    }

    /// scikit-learn's `priors`: the chances of the classes, in ascending order of these.
    pub fn priors(self, priors: &[f64]) -> QuadraticDiscriminantAnalysis {
        QuadraticDiscriminantAnalysis { priors: Some(priors.to_vec()), ..self }
    }

    /// scikit-learn's `reg_param`: the part of the identity in each covariance, from 0 to 1.
    pub fn reg_param(self, reg_param: f64) -> QuadraticDiscriminantAnalysis {
        QuadraticDiscriminantAnalysis { reg_param, ..self }
    }

    /// scikit-learn's `tol`: the variance up to which a direction counts as none.
    pub fn tol(self, tol: f64) -> QuadraticDiscriminantAnalysis {
        QuadraticDiscriminantAnalysis { tol, ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. Two passes over
    /// the samples, and one or two over the labels.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, one class, a class of one sample, labels that are not
    /// whole, shapes that do not fit, no samples, no features, complex numbers, NaN and infinity;
    /// `LinAlgError` for a class without variance in some direction; `OverflowError` for sums beyond float64;
    /// `MemoryError` for too many features and classes; `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedQuadraticDiscriminantAnalysis> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The error of a class without variance in some direction.
    #[track_caller]
    fn not_full_rank(&self, class: i64, samples: usize, columns: usize) -> Error {
        let advice = if samples <= columns {
            format!(
                "When using `solver='svd'` the number of samples in each class should be more than the number \
                 of features, but class {class} has {samples} samples and {columns} features. Try using \
                 `solver='eigen'` and setting the parameter `shrinkage` for regularization."
            )
        } else {
            "Increase the value of `reg_param` to reduce the collinearity.".to_owned()
        };
        Error::here(GraphError::from(KernelError::Singular(format!(
            "The covariance matrix of class {class} is not full rank. {advice}"
        ))))
    }
}

impl Estimator for QuadraticDiscriminantAnalysis {
    type Fitted = FittedQuadraticDiscriminantAnalysis;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedQuadraticDiscriminantAnalysis> {
        let is_sound = (0.0..=1.0).contains(&self.reg_param);
        check(NAME, "reg_param", is_sound, "a float in the range [0.0, 1.0]", self.reg_param)?;
        check_not_negative(NAME, "tol", self.tol)?;
        priors::check(self.priors.as_ref())?;
        let training = Training::supervised(NAME, x, y, options)?.without_weights()?;
        let classes = Classes::of(&training)?;
        let (count, columns) = (classes.values.len(), training.columns);
        if count < 2 {
            return Err(refused(format!(
                "The number of classes has to be greater than one. Got {count} class."
            )));
        }
        training.check_held(count.saturating_mul(columns), columns)?;
        let means = ClassMeans::of(&training, &classes)?;
        if let Some(at) = means.count.iter().position(|&samples| samples < 2.0) {
            return Err(refused(format!(
                "y has only 1 sample in class {}, covariance is ill defined.",
                classes.values[at]
            )));
        }
        let priors = priors::of(self.priors.as_ref(), &means.count)?;
        let scatters: Vec<Tensor> = (0..count as i64)
            .map(|class| {
                let own = &means.rest * means.member.get(&[(..).into(), (class..class + 1).into()]);
                own.t().matmul(&means.rest)
            })
            .collect();
        let states = training.engine.run(&scatters.iter().collect::<Vec<_>>())?;
        if !all_finite(&states) {
            return Err(training.beyond_float64());
        }
        let mut scalings = Array2::zeros((count, columns));
        let mut rotations = Vec::with_capacity(count);
        for (at, state) in states.into_iter().enumerate() {
            let (values, vectors) = spectrum(&(matrix(state)? / means.count[at]), columns)?;
            for (scaling, value) in scalings.row_mut(at).iter_mut().zip(&values) {
                *scaling = (1.0 - self.reg_param) * value + self.reg_param;
            }
            if scalings.row(at).iter().any(|&scaling| scaling <= self.tol) {
                return Err(self.not_full_rank(classes.values[at], means.count[at] as usize, columns));
            }
            rotations.push(vectors);
        }
        let (classes, means) = (classes.values, means.mean);
        Ok(FittedQuadraticDiscriminantAnalysis { classes, means, priors, scalings, rotations })
    }
}

impl FittedQuadraticDiscriminantAnalysis {
    /// The logarithm of the likelihood of each class and sample, up to a constant; (n, k).
    #[track_caller]
    fn joint(&self, x: &Tensor) -> Result<Tensor> {
        let samples = samples_for(NAME, x, self.means.ncols())?;
        let distances: Vec<Tensor> = self
            .rotations
            .iter()
            .enumerate()
            .map(|(class, rotation)| {
                let scaled = rotation / &self.scalings.row(class).mapv(f64::sqrt);
                let around = &samples - tensor(&self.means.row(class).to_owned());
                in_fixed_chunks(&around.matmul(&tensor(&scaled)), rotation.ncols()).square().sum(1)
            })
            .collect();
        let distances = stack(&distances.iter().collect::<Vec<_>>(), 1);
        let constant = self.priors.mapv(f64::ln) - self.scalings.mapv(f64::ln).sum_axis(Axis(1)) * 0.5;
        Ok(distances * -0.5 + tensor(&constant))
    }

    /// scikit-learn's `decision_function`: the scores of samples (n, d), as an expression; (n,) for two
    /// classes, else (n, k). Carries a `ValueError` for another number of features.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        match self.joint(x) {
            Ok(joint) if self.classes.len() == 2 => {
                let of = |class: i64| joint.get(&[(..).into(), class.into()]);
                of(1) - of(0)
            }
            Ok(joint) => joint,
            Err(error) => Tensor::from(error),
        }
    }

    /// The labels of samples (n, d), as an expression; (n,), int64. Carries a `ValueError` for another number
    /// of features; when run for NaN.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        match self.joint(x) {
            Ok(joint) => largest(&joint, &self.classes),
            Err(error) => Tensor::from(error),
        }
    }

    /// The chance of each class, in ascending order, for samples (n, d), as an expression; (n, k).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.predict_log_proba(x).exp()
    }

    /// The logarithms of [`predict_proba`](FittedQuadraticDiscriminantAnalysis::predict_proba).
    #[track_caller]
    pub fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        match self.joint(x) {
            Ok(joint) => &joint - log_sum_exp(&joint),
            Err(error) => Tensor::from(error),
        }
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        let training = Training::supervised(NAME, x, Some(y), &options.into())?;
        accuracy(&training, &self.predict(&training.x))
    }
}

saved!(FittedQuadraticDiscriminantAnalysis, NAME, |model| {
    let (count, columns) = model.means.dim();
    2 <= count
        && 0 < columns
        && model.classes.len() == count
        && model.priors.len() == count
        && model.scalings.dim() == (count, columns)
        && model.rotations.len() == count
        && model.rotations.iter().all(|rotation| rotation.dim() == (columns, columns))
});

classifies!(FittedQuadraticDiscriminantAnalysis, NAME, predict_log_proba; decision_function);

impl fmt::Display for FittedQuadraticDiscriminantAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} of {} features, classes {:?}", self.means.ncols(), self.classes)?;
        show::line(f, "priors", &self.priors)?;
        show::rows(f, "means", &self.means.clone().into_dyn())
    }
}
