//! Classes with the same covariance: linear borders.

use super::priors;
use crate::base::{Estimator, FitOptions, Transform, classifies};
use crate::bounds::check_not_negative;
use crate::checks::{Training, in_dtype_of, refused, samples_for};
use crate::dense::{eigh, svd, tensor};
use crate::labels::{Classes, chosen_label, largest, linear_scores, log_chances};
use crate::params::parameters;
use crate::passes::{ClassMeans, in_fixed_chunks, is_constant};
use crate::saved::{Save, saved};
use crate::score::accuracy;
use crate::show;
use crate::states::{all_finite, lost, matrix};
use ndarray::{Array1, Array2, Axis, Slice};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// scikit-learn's `LinearDiscriminantAnalysis` with its default solver `svd`: normal distributions that
/// differ in their means alone, and the directions that tell them apart best.
///
/// The singular values are the roots of eigenvalues of the (d, d) covariance within classes, which one pass
/// makes: the samples are not held.
///
/// ```
/// use tharsis_learn::discriminant_analysis::LinearDiscriminantAnalysis;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 2.0, 7.0, 8.0, 9.0]).reshape(&[6, 1]);
/// let y = array([0i64, 0, 0, 1, 1, 1]);
/// let model = LinearDiscriminantAnalysis::new().fit(&x, &y, ..)?;
/// assert_eq!(model.predict(&array([4.0, 5.0]).reshape(&[2, 1])).to_vec::<i64>()?, [0, 1]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct LinearDiscriminantAnalysis {
    priors: Option<Vec<f64>>,
    n_components: Option<usize>,
    tol: f64,
}

/// A fitted [`LinearDiscriminantAnalysis`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLinearDiscriminantAnalysis {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    /// scikit-learn's `coef_`; (1, d) for two classes, else (k, d).
    pub coef: Array2<f64>,
    /// scikit-learn's `intercept_`; (1,) for two classes, else (k,).
    pub intercept: Array1<f64>,
    /// scikit-learn's `means_`: the mean of each class; (k, d).
    pub means: Array2<f64>,
    /// scikit-learn's `priors_`: the chance of each class; (k,).
    pub priors: Array1<f64>,
    /// scikit-learn's `xbar_`: the mean of the means, weighted by the chances; (d,).
    pub xbar: Array1<f64>,
    /// scikit-learn's `scalings_`: directions in which the samples of a class have variance 1, one a column,
    /// up to their signs; (d, r).
    pub scalings: Array2<f64>,
    /// scikit-learn's `explained_variance_ratio_`: the part of the variance between classes along each
    /// direction.
    pub explained_variance_ratio: Array1<f64>,
    components: usize,
}

parameters!(
    LinearDiscriminantAnalysis,
    "LinearDiscriminantAnalysis",
    ["priors" => priors, "n_components" => n_components >= 1, "tol" => tol]
);

impl Default for LinearDiscriminantAnalysis {
    fn default() -> LinearDiscriminantAnalysis {
        LinearDiscriminantAnalysis { priors: None, n_components: None, tol: 1e-4 }
    }
}

impl LinearDiscriminantAnalysis {
    /// An estimator with scikit-learn's defaults: classes are as likely as in the samples, `tol` is 1e-4.
    pub fn new() -> LinearDiscriminantAnalysis {
        LinearDiscriminantAnalysis::default()
    }

    /// scikit-learn's `priors`: the chances of the classes, in ascending order of these.
    pub fn priors(self, priors: &[f64]) -> LinearDiscriminantAnalysis {
        LinearDiscriminantAnalysis { priors: Some(priors.to_vec()), ..self }
    }

    /// scikit-learn's `n_components`: directions of `transform`, at most one less than classes.
    pub fn n_components(self, n_components: usize) -> LinearDiscriminantAnalysis {
        LinearDiscriminantAnalysis { n_components: Some(n_components), ..self }
    }

    /// scikit-learn's `tol`: the singular value up to which a direction has no variance. These are roots of
    /// eigenvalues, and have noise of about the root of d times 2^-52: a smaller bound keeps that noise.
    pub fn tol(self, tol: f64) -> LinearDiscriminantAnalysis {
        LinearDiscriminantAnalysis { tol, ..self }
    }

    /// Fits the model on samples (n, d), of any real dtype, and labels (n,), whole numbers. Two passes over
    /// the samples, and one or two over the labels.
    ///
    /// # Errors
    /// `ValueError` for parameters out of their ranges, one class, as many classes as samples, labels that
    /// are not whole, shapes that do not fit, no samples, no features, complex numbers, NaN and infinity;
    /// `OverflowError` for sums beyond float64; `MemoryError` for too many features; `TypeError` for weights;
    /// errors of the passes.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedLinearDiscriminantAnalysis> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// The number of directions of `transform`.
    #[track_caller]
    fn components(&self, classes: usize, columns: usize) -> Result<usize> {
        let most = (classes - 1).min(columns);
        match self.n_components {
            None => Ok(most),
            Some(count) if count <= most => Ok(count),
            Some(_) => Err(refused("n_components cannot be larger than min(n_features, n_classes - 1).")),
        }
    }

    /// Directions in which samples around the means of their classes have variance 1, one a column.
    #[track_caller]
    fn whitening(&self, training: &Training, classes: &ClassMeans) -> Result<Array2<f64>> {
        let states = training.engine.run(&[&classes.rest.t().matmul(&classes.rest)])?;
        if !all_finite(&states) {
            return Err(training.beyond_float64());
        }
        let within = matrix(states.into_iter().next().ok_or_else(lost)?)? / training.rows as f64;
        let mean = classes.mean.map_axis(Axis(0), |means| means.iter().fold(0.0, |a: f64, b| a.max(b.abs())));
        let deviations = Array1::from_shape_fn(within.nrows(), |at| {
            let variance = within[[at, at]];
            if is_constant(variance, mean[at]) { 1.0 } else { variance.sqrt() }
        });
        let rows = deviations.view().insert_axis(Axis(1));
        let (values, vectors) = eigh(&(&within / &rows / &deviations))?;
        // From the largest one on, as singular values come.
        let kept = values.iter().rev().take_while(|value| self.tol < value.max(0.0).sqrt()).count();
        let mut directions = vectors.slice_axis(Axis(1), Slice::from(vectors.ncols() - kept..)).to_owned();
        directions.invert_axis(Axis(1));
        let roots: Array1<f64> = values.iter().rev().take(kept).map(|value| value.sqrt()).collect();
        Ok(directions / rows / roots)
    }
}

impl Estimator for LinearDiscriminantAnalysis {
    type Fitted = FittedLinearDiscriminantAnalysis;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedLinearDiscriminantAnalysis> {
        const NAME: &str = "LinearDiscriminantAnalysis";
        check_not_negative(NAME, "tol", self.tol)?;
        priors::check(self.priors.as_ref())?;
        let training = Training::supervised(NAME, x, y, options)?.without_weights()?;
        training.check_square(training.columns)?;
        let classes = Classes::of(&training)?.at_least_two()?;
        let count = classes.values.len();
        if count == training.rows {
            return Err(refused("The number of samples must be more than the number of classes."));
        }
        let components = self.components(count, training.columns)?;
        let means = ClassMeans::of(&training, &classes)?;
        let priors = priors::normalised(priors::of(self.priors.as_ref(), &means.count)?);
        let whitening = self.whitening(&training, &means)?;
        if whitening.ncols() == 0 {
            return Err(refused("The samples of each class are equal: there is no variance within classes."));
        }
        let xbar = priors.dot(&means.mean);
        let around = &means.mean - &xbar;
        // The variance between classes, in units of that within them.
        let weights = (&priors * (training.rows as f64 / (count as f64 - 1.0))).mapv(f64::sqrt);
        let between = (&around * &weights.insert_axis(Axis(1))).dot(&whitening);
        let (_, singular, right) = svd(&between)?;
        let squares = singular.mapv(|value| value * value);
        let ratio = (&squares / squares.sum())
            .slice_axis(Axis(0), Slice::from(..components.min(squares.len())))
            .to_owned();
        let rank = singular.iter().filter(|value| self.tol * singular[0] < **value).count();
        let scalings = whitening.dot(&right.slice_axis(Axis(0), Slice::from(..rank)).t());
        let along = around.dot(&scalings);
        let coef = along.dot(&scalings.t());
        let half = along.mapv(|part| part * part).sum_axis(Axis(1)) * 0.5;
        let intercept = priors.mapv(f64::ln) - half - coef.dot(&xbar);
        let (coef, intercept) = one_for_two(coef, intercept);
        Ok(FittedLinearDiscriminantAnalysis {
            classes: classes.values,
            coef,
            intercept,
            means: means.mean,
            priors,
            xbar,
            scalings,
            explained_variance_ratio: ratio,
            components,
        })
    }
}

/// Of two classes the score of the second one against the first.
fn one_for_two(coef: Array2<f64>, intercept: Array1<f64>) -> (Array2<f64>, Array1<f64>) {
    if coef.nrows() != 2 {
        return (coef, intercept);
    }
    let difference = &coef.row(1) - &coef.row(0);
    (difference.insert_axis(Axis(0)), Array1::from_elem(1, intercept[1] - intercept[0]))
}

impl FittedLinearDiscriminantAnalysis {
    /// scikit-learn's `decision_function`: the scores of samples (n, d), as an expression; (n,) for two
    /// classes, else (n, k). Carries a `ValueError` for another number of features.
    #[track_caller]
    pub fn decision_function(&self, x: &Tensor) -> Tensor {
        linear_scores("LinearDiscriminantAnalysis", x, &self.coef, &self.intercept)
    }

    /// The labels of samples (n, d), as an expression; (n,), int64. Carries a `ValueError` for another number
    /// of features; when run for NaN.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        if self.classes.len() == 2 && self.intercept.iter().any(|score| score.is_infinite()) {
            // A class without a chance: the decision is infinite for all samples, and known.
            return largest(&self.predict_log_proba(x), &self.classes);
        }
        chosen_label(&self.decision_function(x), &self.classes)
    }

    /// The chance of each class, in ascending order, for samples (n, d), as an expression; (n, k).
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.predict_log_proba(x).exp()
    }

    /// The logarithms of [`predict_proba`](FittedLinearDiscriminantAnalysis::predict_proba).
    #[track_caller]
    pub fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        log_chances(&self.decision_function(x), &self.classes)
    }

    /// Samples (n, d) along the directions that tell classes apart best, as an expression; (n, c), up to the
    /// signs of the columns. Floats keep their dtype. Carries a `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples_for("LinearDiscriminantAnalysis", x, self.coef.ncols()) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let count = self.components.min(self.scalings.ncols());
        let scalings = self.scalings.slice_axis(Axis(1), Slice::from(..count)).to_owned();
        let made = (samples - tensor(&self.xbar)).matmul(&tensor(&scalings));
        in_dtype_of(x, in_fixed_chunks(&made, count))
    }

    /// The share of samples (n, d) whose label is predicted, or of their weights.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit; errors of the pass.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        let training = Training::supervised("LinearDiscriminantAnalysis", x, Some(y), &options.into())?;
        accuracy(&training, &self.predict(&training.x))
    }
}

saved!(FittedLinearDiscriminantAnalysis, "LinearDiscriminantAnalysis", |model| {
    let (count, columns) = model.means.dim();
    let scores = if count == 2 { 1 } else { count };
    2 <= count
        && 0 < columns
        && model.classes.len() == count
        && model.priors.len() == count
        && model.coef.dim() == (scores, columns)
        && model.intercept.len() == scores
        && model.xbar.len() == columns
        && model.scalings.nrows() == columns
});

impl Transform for FittedLinearDiscriminantAnalysis {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedLinearDiscriminantAnalysis::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, _: &[String]) -> Option<Vec<String>> {
        Some(crate::feature_names::numbered(
            "LinearDiscriminantAnalysis",
            self.components.min(self.scalings.ncols()),
        ))
    }
}

classifies!(FittedLinearDiscriminantAnalysis, "LinearDiscriminantAnalysis", predict_log_proba; decision_function);

impl fmt::Display for FittedLinearDiscriminantAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (features, classes) = (self.coef.ncols(), &self.classes);
        write!(f, "LinearDiscriminantAnalysis of {features} features, classes {classes:?}")?;
        show::line(f, "priors", &self.priors)?;
        show::rows(f, "means", &self.means.clone().into_dyn())
    }
}
