//! Scores of predicted numbers: the part of the spread of true values that predictions explain.

use super::inputs::divisor;
use super::options::defaults;
use super::regression::{
    MultiOutput, Neighbours, Pinball, Regression, Targets, check_alpha, pinball, reduced, weighted_quantile,
};
use super::score::Score;
use crate::Result;
use tharsis_numeric::Tensor;
use tharsis_numeric::quantile::Method;

/// Options of [`r2_score`] and [`explained_variance_score`].
#[derive(Clone, Debug)]
pub struct Explained {
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// Reduction of the values of outputs to one.
    pub multioutput: MultiOutput,
    /// Whether the score of constant true values is 1 for perfect predictions and 0 for others, and not NaN
    /// and minus infinity.
    pub force_finite: bool,
}

impl Default for Explained {
    fn default() -> Explained {
        Explained { sample_weight: None, multioutput: MultiOutput::UniformAverage, force_finite: true }
    }
}

defaults!(Explained);

/// The defaults with this reduction of outputs.
impl From<MultiOutput> for Explained {
    fn from(multioutput: MultiOutput) -> Explained {
        Explained { multioutput, ..Explained::default() }
    }
}

/// scikit-learn's `r2_score`, the coefficient of determination: 1 less the squared errors divided by those of
/// the mean. NaN for a single sample.
///
/// ```
/// use tharsis_learn::metrics::r2_score;
/// use tharsis_numeric::array;
/// assert_eq!(r2_score(&array([1.0, 2.0, 3.0]), &array([1.0, 2.0, 3.0]), ..)?.value(), 1.0);
/// assert_eq!(r2_score(&array([1.0, 2.0, 3.0]), &array([2.0, 2.0, 2.0]), ..)?.value(), 0.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`](super::mean_squared_error).
///
/// # Distributed
/// Two passes in one plan: means, and sums of squares around them.
#[track_caller]
pub fn r2_score(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Explained>) -> Result<Score> {
    let options = options.into();
    let mut targets = Targets::new(y_true, y_pred, options.sample_weight.as_ref())?;
    let errors = targets.y_true.subtract(&targets.y_pred).square();
    let around = targets.y_true.subtract(targets.mean_of(&targets.y_true)).square();
    let (errors, around) = (targets.weighted(&errors).sum(0), targets.weighted(&around).sum(0));
    targets.pass.want(errors);
    targets.pass.want(around);
    unless_single(targets.count, explained(targets, &options)?)
}

/// scikit-learn's `explained_variance_score`: 1 less the variance of errors divided by that of true values.
///
/// ```
/// use tharsis_learn::metrics::explained_variance_score;
/// use tharsis_numeric::array;
/// let found = explained_variance_score(&array([1.0, 2.0, 3.0]), &array([2.0, 3.0, 4.0]), ..)?;
/// assert_eq!(found.value(), 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`](super::mean_squared_error).
///
/// # Distributed
/// As [`r2_score`].
#[track_caller]
pub fn explained_variance_score(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<Explained>,
) -> Result<Score> {
    let options = options.into();
    let mut targets = Targets::new(y_true, y_pred, options.sample_weight.as_ref())?;
    let errors = targets.y_true.subtract(&targets.y_pred);
    let variance = |x: &Tensor| {
        let squares = x.subtract(targets.mean_of(x)).square();
        targets.mean_of(&squares)
    };
    let (errors, around) = (variance(&errors), variance(&targets.y_true));
    targets.pass.want(errors);
    targets.pass.want(around);
    explained(targets, &options)
}

/// NaN for a single sample, which has no variance.
fn unless_single(count: usize, score: Score) -> Result<Score> {
    Ok(if count < 2 { Score::One(f64::NAN) } else { score })
}

/// Scores of a pass that wants the unexplained part of each output and the whole.
#[track_caller]
fn explained(targets: Targets, options: &Explained) -> Result<Score> {
    let Targets { weights, mut pass, .. } = targets;
    if let Some(weights) = &weights {
        pass.want(weights.sum(..));
    }
    let mut found = pass.run()?;
    let (left, whole) = (found.next::<f64>()?, found.next::<f64>()?);
    if weights.is_some() {
        divisor(found.one()?)?;
    }
    fractions(&left, &whole, &options.multioutput, options.force_finite)
}

/// 1 less `left` over `whole` for each output, reduced.
#[track_caller]
fn fractions(left: &[f64], whole: &[f64], outputs: &MultiOutput, force_finite: bool) -> Result<Score> {
    let score = |(&left, &whole): (&f64, &f64)| match (force_finite, left == 0.0, whole == 0.0) {
        (true, true, _) => 1.0,
        (true, false, true) => 0.0,
        (false, _, _) | (true, false, false) => 1.0 - left / whole,
    };
    let scores: Vec<f64> = left.iter().zip(whole).map(score).collect();
    if *outputs != MultiOutput::VarianceWeighted {
        return reduced(scores, outputs);
    }
    if whole.iter().all(|&whole| whole == 0.0) {
        return reduced(scores, &MultiOutput::UniformAverage);
    }
    reduced(scores, &MultiOutput::Weights(whole.to_vec()))
}

/// scikit-learn's `d2_pinball_score`: 1 less the pinball loss divided by that of the quantile `alpha` of the
/// true values; the mean absolute error of the median for 0.5. NaN for a single sample.
///
/// ```
/// use tharsis_learn::metrics::d2_pinball_score;
/// use tharsis_numeric::array;
/// assert_eq!(d2_pinball_score(&array([1.0, 2.0, 3.0]), &array([1.0, 3.0, 3.0]), ..)?.value(), 0.5);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_pinball_loss`](super::mean_pinball_loss).
///
/// # Distributed
/// As [`median_absolute_error`](super::median_absolute_error), and one pass.
#[track_caller]
pub fn d2_pinball_score(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Pinball>) -> Result<Score> {
    let Pinball { alpha, sample_weight, multioutput } = options.into();
    check_alpha(alpha)?;
    let mut targets = Targets::new(y_true, y_pred, sample_weight.as_ref())?;
    let quantile = match &targets.weights {
        None => targets.y_true.quantile(alpha, 0, Method::AveragedInvertedCdf),
        Some(weights) => weighted_quantile(&targets.y_true, weights, alpha, Neighbours::Mean)?,
    };
    let losses = [&targets.y_pred, &quantile].map(|y_pred| pinball(&targets.y_true, y_pred, alpha));
    for losses in &losses {
        let sum = targets.weighted(losses).sum(0);
        targets.pass.want(sum);
    }
    unless_single(targets.count, explained(targets, &Explained { multioutput, ..Explained::default() })?)
}

/// scikit-learn's `d2_absolute_error_score`: 1 less the absolute errors divided by those of the median.
///
/// ```
/// use tharsis_learn::metrics::d2_absolute_error_score;
/// use tharsis_numeric::array;
/// let found = d2_absolute_error_score(&array([1.0, 2.0, 3.0]), &array([1.0, 3.0, 3.0]), ..)?;
/// assert_eq!(found.value(), 0.5);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`](super::mean_squared_error).
///
/// # Distributed
/// As [`d2_pinball_score`].
#[track_caller]
pub fn d2_absolute_error_score(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<Regression>,
) -> Result<Score> {
    let Regression { sample_weight, multioutput } = options.into();
    d2_pinball_score(y_true, y_pred, Pinball { alpha: 0.5, sample_weight, multioutput })
}
