//! Curves of scores that order samples, and the areas under them.

use super::contingency::classes_of;
use super::inputs::{Pass, column, common_length, floats, listed, settled, value_error};
use super::options::defaults;
use super::probability::Outputs;
use crate::Result;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::DType;
use tharsis_numeric::{Error, Index, Tensor, array, concatenate, where_};

/// Options of [`roc_curve`].
#[derive(Clone, Debug)]
pub struct Roc {
    /// The label of positive samples: 1 for labels among 0 and 1 or -1 and 1 if none is given.
    pub pos_label: Option<i64>,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// Whether points on a line between two others are left out.
    pub drop_intermediate: bool,
}

impl Default for Roc {
    fn default() -> Roc {
        Roc { pos_label: None, sample_weight: None, drop_intermediate: true }
    }
}

/// Options of [`precision_recall_curve`].
#[derive(Clone, Debug, Default)]
pub struct PrecisionRecallOptions {
    /// As in [`Roc`].
    pub pos_label: Option<i64>,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// Whether points with the recall of both neighbours are left out.
    pub drop_intermediate: bool,
}

defaults!(PrecisionRecallOptions, Roc);

/// Points of a receiver operating characteristic; (points,), float64.
#[derive(Clone, Debug)]
pub struct RocCurve {
    /// False positive rates, ascending from 0; NaN without negative samples.
    pub fpr: Tensor,
    /// True positive rates, ascending from 0; NaN without positive samples.
    pub tpr: Tensor,
    /// Scores from which on samples are positive, descending from infinity.
    pub thresholds: Tensor,
}

/// Points of a curve of precision and recall; float64.
#[derive(Clone, Debug)]
pub struct PrecisionRecallCurve {
    /// Precisions, with 1 at the end; (points + 1,).
    pub precision: Tensor,
    /// Recalls, descending, with 0 at the end; (points + 1,).
    pub recall: Tensor,
    /// Scores from which on samples are positive, ascending; (points,).
    pub thresholds: Tensor,
}

/// scikit-learn's `roc_curve`: the true and false positive rates for each score as a threshold. The curve
/// stays where tensors are: nothing of it is collected.
///
/// ```
/// use tharsis_learn::metrics::roc_curve;
/// use tharsis_numeric::array;
/// let curve = roc_curve(&array([0i64, 0, 1, 1]), &array([0.1, 0.4, 0.35, 0.8]), ..)?;
/// assert_eq!(curve.fpr.to_vec::<f64>()?, [0.0, 0.0, 0.5, 0.5, 1.0]);
/// assert_eq!(curve.tpr.to_vec::<f64>()?, [0.0, 0.5, 0.5, 1.0, 1.0]);
/// assert_eq!(curve.thresholds.to_vec::<f64>()?, [f64::INFINITY, 0.8, 0.4, 0.35, 0.1]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`](super::accuracy_score); `ValueError` for scores that are not finite or of more than
/// one column, and without `pos_label` for labels beyond 0 and 1 or -1 and 1.
///
/// # Distributed
/// One pass for the labels; the scores are sorted as by [`Tensor::argsort`].
#[track_caller]
pub fn roc_curve(y_true: &Tensor, y_score: &Tensor, options: impl Into<Roc>) -> Result<RocCurve> {
    let Roc { pos_label, sample_weight, drop_intermediate } = options.into();
    let ranked = Ranked::new(y_true, y_score, pos_label, sample_weight.as_ref())?;
    let mut steps = ranked.steps()?;
    if drop_intermediate {
        steps = steps.kept(|steps| {
            let bent = |rates: &Tensor| rates.diff(2, 0).not_equal(0.0);
            bent(&steps.fps).logical_or(bent(&steps.tps))
        })?;
    }
    let rate = |count: &Tensor, total: f64| {
        // By the last count, which is the total up to rounding: the last rate is 1.
        let rate = if total <= 0.0 { count.multiply(f64::NAN) } else { parts_of_last(count) };
        let start = if total <= 0.0 { f64::NAN } else { 0.0 };
        concatenate(&[&array([start]), &rate], 0)
    };
    Ok(RocCurve {
        fpr: rate(&steps.fps, ranked.negatives),
        tpr: rate(&steps.tps, ranked.positives),
        thresholds: concatenate(&[&array([f64::INFINITY]), &steps.thresholds], 0),
    })
}

/// scikit-learn's `precision_recall_curve`: precision and recall for each score as a threshold. The curve
/// stays where tensors are.
///
/// ```
/// use tharsis_learn::metrics::precision_recall_curve;
/// use tharsis_numeric::array;
/// let curve = precision_recall_curve(&array([0i64, 0, 1, 1]), &array([0.1, 0.4, 0.35, 0.8]), ..)?;
/// assert_eq!(curve.precision.to_vec::<f64>()?, [0.5, 2.0 / 3.0, 0.5, 1.0, 1.0]);
/// assert_eq!(curve.recall.to_vec::<f64>()?, [1.0, 1.0, 0.5, 0.5, 0.0]);
/// assert_eq!(curve.thresholds.to_vec::<f64>()?, [0.1, 0.35, 0.4, 0.8]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`roc_curve`].
///
/// # Distributed
/// As [`roc_curve`].
#[track_caller]
pub fn precision_recall_curve(
    y_true: &Tensor,
    y_score: &Tensor,
    options: impl Into<PrecisionRecallOptions>,
) -> Result<PrecisionRecallCurve> {
    let PrecisionRecallOptions { pos_label, sample_weight, drop_intermediate } = options.into();
    let ranked = Ranked::new(y_true, y_score, pos_label, sample_weight.as_ref())?;
    let mut steps = ranked.steps()?;
    if drop_intermediate {
        steps = steps.kept(|steps| {
            let tps = steps.tps.diff(1, 0).not_equal(0.0);
            tps.get(&[Index::from(..-1)]).logical_or(tps.get(&[Index::from(1..)]))
        })?;
    }
    let (precision, recall) = steps.precision_and_recall(ranked.positives);
    Ok(PrecisionRecallCurve {
        precision: concatenate(&[&precision.flip(None), &array([1.0])], 0),
        recall: concatenate(&[&recall.flip(None), &array([0.0])], 0),
        thresholds: steps.thresholds.flip(None),
    })
}

/// scikit-learn's `auc`: the area under a curve with points (`x`, `y`) by the trapezoidal rule; (n,) each.
///
/// ```
/// use tharsis_learn::metrics::auc;
/// use tharsis_numeric::array;
/// assert_eq!(auc(&array([0.0, 0.0, 0.5, 1.0]), &array([0.0, 0.5, 1.0, 1.0]))?, 0.875);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for different lengths, fewer than two points, values that are not finite, and `x` that is
/// neither ascending nor descending.
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn auc(x: &Tensor, y: &Tensor) -> Result<f64> {
    let known = settled(&[x, y])?;
    let count = common_length(&[&known[0], &known[1]])?;
    if count < 2 {
        let text =
            format!("At least 2 points are needed to compute area under curve, but x.shape = ({count},)");
        return Err(value_error(text));
    }
    let (x, y) = (floats(&column(&known[0])?, "x")?, floats(&column(&known[1])?, "y")?);
    let widths = x.diff(1, 0);
    let mut pass = Pass::default();
    pass.require_finite(&x, "x");
    pass.require_finite(&y, "y");
    pass.want(widths.less(0.0).any(..));
    pass.want(widths.greater(0.0).any(..));
    pass.want(area(&widths, &y));
    let mut found = pass.run()?;
    let (falls, rises, area) = (found.one()? != 0.0, found.one()? != 0.0, found.one()?);
    match (falls, rises) {
        (true, true) => Err(value_error("x is neither increasing nor decreasing")),
        (true, false) => Ok(-area),
        (false, _) => Ok(area),
    }
}

/// Ascending counts as parts of the last one.
fn parts_of_last(count: &Tensor) -> Tensor {
    count.divide(count.get(&[Index::from(-1)]))
}

/// The area of trapezoids.
fn area(widths: &Tensor, y: &Tensor) -> Tensor {
    let heights = y.get(&[Index::from(1..)]).add(y.get(&[Index::from(..-1)]));
    widths.multiply(heights).sum(..).multiply(0.5)
}

/// Positive and negative samples with their scores.
pub(super) struct Ranked {
    /// Whether each sample is positive; (n,).
    is_positive: Tensor,
    scores: Tensor,
    weights: Option<Tensor>,
    /// Weight of all positive samples.
    positives: f64,
    negatives: f64,
}

impl Ranked {
    /// Samples with labels (n,) and scores (n,) or (n, 1).
    #[track_caller]
    pub(super) fn new(
        y_true: &Tensor,
        y_score: &Tensor,
        pos_label: Option<i64>,
        sample_weight: Option<&Tensor>,
    ) -> Result<Ranked> {
        let Outputs { y_true, values, count } = Outputs::new(y_true, y_score, "y_score")?;
        let pos_label = match pos_label {
            Some(label) => label,
            None => implied_positive(&classes_of(&y_true)?)?,
        };
        let mut pass = Pass::default();
        let weights = pass.weights(sample_weight, count)?;
        let scores = column(&values)?;
        pass.require_finite(&scores, "y_score");
        Ranked::of(pass, y_true.equal(pos_label), scores, weights)
    }

    /// Counts both kinds of samples, in the pass that checks them.
    #[track_caller]
    pub(super) fn of(
        mut pass: Pass,
        is_positive: Tensor,
        scores: Tensor,
        weights: Option<Tensor>,
    ) -> Result<Ranked> {
        let count = is_positive.size()? as f64;
        let Some(weights) = weights else {
            pass.want(is_positive.count_nonzero(..));
            let positives = pass.run()?.one()?;
            let negatives = count - positives;
            return Ok(Ranked { is_positive, scores, weights, positives, negatives });
        };
        pass.want(where_(&is_positive, &weights, 0.0).sum(..));
        pass.want(where_(&is_positive, 0.0, &weights).sum(..));
        pass.want(weights.count_nonzero(..));
        let mut found = pass.run()?;
        let (positives, negatives) = (found.one()?, found.one()?);
        if found.one()? == count {
            return Ok(Ranked { is_positive, scores, weights: Some(weights), positives, negatives });
        }
        // Samples without weight are no points of a curve.
        let counts = weights.not_equal(0.0);
        let part = |of: &Tensor| of.filter(&counts);
        let mut known = settled(&[&part(&is_positive), &part(&scores), &part(&weights)])?.into_iter();
        let (Some(is_positive), Some(scores), weights) = (known.next(), known.next(), known.next()) else {
            return Err(Error::here(GraphError::Internal("three tensors were settled".to_owned())));
        };
        Ok(Ranked { is_positive, scores, weights, positives, negatives })
    }

    /// The weights of samples at or above each distinct score, the highest score first.
    #[track_caller]
    fn steps(&self) -> Result<Steps> {
        let order = self.scores.argsort_descending(0);
        let scores = self.scores.take_at(&order, 0);
        let is_positive = self.is_positive.take_at(&order, 0);
        let is_last = scores.get(&[Index::from(1..)]).not_equal(scores.get(&[Index::from(..-1)]));
        let is_last = concatenate(&[&is_last, &array([true])], 0);
        let sums = |of: &Tensor| of.cumsum(0).filter(&is_last).astype(DType::F64);
        let (tps, fps) = match &self.weights {
            None => {
                (sums(&is_positive.astype(DType::I64)), sums(&is_positive.logical_not().astype(DType::I64)))
            }
            Some(weights) => {
                let weights = weights.take_at(&order, 0);
                (sums(&where_(&is_positive, &weights, 0.0)), sums(&where_(&is_positive, 0.0, &weights)))
            }
        };
        Ok(Steps { tps, fps, thresholds: scores.filter(&is_last) })
    }

    /// The area under the receiver operating characteristic, up to a false positive rate; NaN if only one
    /// class has weight.
    #[track_caller]
    pub(super) fn area(&self, max_fpr: Option<f64>) -> Result<f64> {
        if self.positives == 0.0 || self.negatives == 0.0 {
            return Ok(f64::NAN);
        }
        let limit = max_fpr.unwrap_or(1.0);
        let steps = self.steps()?;
        let zero = array([0.0]);
        let x = concatenate(&[&zero, &parts_of_last(&steps.fps)], 0);
        let y = concatenate(&[&zero, &parts_of_last(&steps.tps)], 0);
        if limit == 1.0 {
            return Ok(area(&x.diff(1, 0), &y).item()?.to_f64());
        }
        let (from, to) = (x.get(&[Index::from(..-1)]), x.get(&[Index::from(1..)]));
        let (low, high) = (y.get(&[Index::from(..-1)]), y.get(&[Index::from(1..)]));
        let widths = to.minimum(limit).subtract(&from).maximum(0.0);
        let whole = to.subtract(&from);
        let share = widths.divide(where_(&whole.equal(0.0), 1.0, &whole));
        let mean = low.add(high.subtract(&low).multiply(share).multiply(0.5));
        let partial = widths.multiply(mean).sum(..).item()?.to_f64();
        let (least, most) = (0.5 * limit * limit, limit);
        Ok(0.5 * (1.0 + (partial - least) / (most - least)))
    }

    /// The mean of precisions, weighted by the increase of recall.
    #[track_caller]
    pub(super) fn average_precision(&self) -> Result<f64> {
        let (precision, recall) = self.steps()?.precision_and_recall(self.positives);
        let gains = concatenate(&[&array([0.0]), &recall], 0).diff(1, 0);
        Ok(gains.multiply(precision).sum(..).item()?.to_f64().max(0.0))
    }
}

/// The positive label of labels for which none is given.
#[track_caller]
fn implied_positive(classes: &[i64]) -> Result<i64> {
    if 2 < classes.len() {
        return Err(value_error("multiclass format is not supported"));
    }
    if matches!(classes, [0, 1] | [-1, 1] | [0] | [-1] | [1]) {
        return Ok(1);
    }
    let classes = listed(classes, ", ");
    let text = format!(
        "y_true takes value in {{{classes}}} and pos_label is not specified: either make y_true take value in {{0, 1}} or {{-1, 1}} or pass pos_label explicitly."
    );
    Err(value_error(text))
}

/// Sums of weights at each distinct score, which descend; (thresholds,).
struct Steps {
    tps: Tensor,
    fps: Tensor,
    thresholds: Tensor,
}

impl Steps {
    /// The steps that a mask of all but the first and the last keeps; those two stay.
    #[track_caller]
    fn kept(self, mask: impl FnOnce(&Steps) -> Tensor) -> Result<Steps> {
        let mut known = settled(&[&self.tps, &self.fps, &self.thresholds])?.into_iter();
        let (Some(tps), Some(fps), Some(thresholds)) = (known.next(), known.next(), known.next()) else {
            return Err(Error::here(GraphError::Internal("three tensors were settled".to_owned())));
        };
        let steps = Steps { tps, fps, thresholds };
        if steps.tps.size()? <= 2 {
            return Ok(steps);
        }
        let kept = concatenate(&[&array([true]), &mask(&steps), &array([true])], 0);
        let part = |of: &Tensor| of.filter(&kept);
        Ok(Steps { tps: part(&steps.tps), fps: part(&steps.fps), thresholds: part(&steps.thresholds) })
    }

    /// Precision and recall at each score; recall is 1 if nothing is positive.
    fn precision_and_recall(&self, positives: f64) -> (Tensor, Tensor) {
        let all = self.tps.add(&self.fps);
        let precision = where_(&all.equal(0.0), 0.0, self.tps.divide(where_(&all.equal(0.0), 1.0, &all)));
        let recall =
            if positives == 0.0 { self.tps.multiply(0.0).add(1.0) } else { parts_of_last(&self.tps) };
        (precision, recall)
    }
}
