//! Precision, recall, F and Jaccard scores, of each class or averaged over classes.

use super::classification::check_distinct;
use super::contingency::{Contingency, Labels, OfLabel};
use super::inputs::{listed, value_error};
use super::options::{Average, defaults};
use super::score::Score;
use crate::Result;
use tharsis_numeric::Tensor;

/// Options of [`precision_score`], [`recall_score`], [`f1_score`], [`fbeta_score`] and [`jaccard_score`].
#[derive(Clone, Debug)]
pub struct Averaged {
    /// The classes that count, in the order of their values; those of the samples, ascending, if none are
    /// given. Without effect for [`Average::Binary`].
    pub labels: Option<Vec<i64>>,
    /// The class whose value is returned for [`Average::Binary`].
    pub pos_label: i64,
    /// Reduction of the values of classes to one.
    pub average: Average,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// The value of a fraction whose divisor is 0: 0, 1, or NaN, which leaves a class out of averages.
    pub zero_division: f64,
}

impl Default for Averaged {
    fn default() -> Averaged {
        Averaged {
            labels: None,
            pos_label: 1,
            average: Average::Binary,
            sample_weight: None,
            zero_division: 0.0,
        }
    }
}

/// The defaults with this average.
impl From<Average> for Averaged {
    fn from(average: Average) -> Averaged {
        Averaged { average, ..Averaged::default() }
    }
}

/// Options of [`precision_recall_fscore_support`].
#[derive(Clone, Debug)]
pub struct PrecisionRecall {
    /// The weight of recall in the F score.
    pub beta: f64,
    /// As in [`Averaged`].
    pub labels: Option<Vec<i64>>,
    /// As in [`Averaged`].
    pub pos_label: i64,
    /// As in [`Averaged`], but [`Average::Each`] is the default.
    pub average: Average,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// As in [`Averaged`].
    pub zero_division: f64,
}

impl Default for PrecisionRecall {
    fn default() -> PrecisionRecall {
        PrecisionRecall {
            beta: 1.0,
            labels: None,
            pos_label: 1,
            average: Average::Each,
            sample_weight: None,
            zero_division: 0.0,
        }
    }
}

/// The defaults with this average.
impl From<Average> for PrecisionRecall {
    fn from(average: Average) -> PrecisionRecall {
        PrecisionRecall { average, ..PrecisionRecall::default() }
    }
}

defaults!(Averaged, PrecisionRecall);

/// Result of [`precision_recall_fscore_support`].
#[derive(Clone, Debug, PartialEq)]
pub struct PrecisionRecallFscore {
    /// The classes of the values of [`Average::Each`], and of the support.
    pub labels: Vec<i64>,
    /// True positives among predicted ones.
    pub precision: Score,
    /// True positives among those of the class.
    pub recall: Score,
    /// Weighted harmonic mean of both.
    pub fscore: Score,
    /// The true samples of each class, or their weight; none for an average.
    pub support: Option<Vec<f64>>,
}

/// scikit-learn's `precision_score`: the fraction of samples predicted as a class that are of it.
///
/// ```
/// use tharsis_learn::metrics::{Average, precision_score};
/// use tharsis_numeric::array;
/// let (y_true, y_pred) = (array([0i64, 1, 2, 0, 1, 2]), array([0i64, 2, 1, 0, 0, 1]));
/// let found = precision_score(&y_true, &y_pred, Average::Each)?;
/// assert_eq!(found.values(), [2.0 / 3.0, 0.0, 0.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`](super::accuracy_score); `ValueError` for the average of two classes if there are
/// more or `pos_label` is none of them, for repeated labels, and if `zero_division` is not 0, 1 or NaN.
///
/// # Distributed
/// As [`confusion_matrix`](super::confusion_matrix).
#[track_caller]
pub fn precision_score(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Averaged>) -> Result<Score> {
    let counts = Counts::of(y_true, y_pred, options.into())?;
    Ok(counts.score(|label| (label.true_positive, label.in_pred)))
}

/// scikit-learn's `recall_score`: the fraction of the samples of a class that are predicted as it.
///
/// ```
/// use tharsis_learn::metrics::{Average, recall_score};
/// use tharsis_numeric::array;
/// let (y_true, y_pred) = (array([0i64, 1, 2, 0, 1, 2]), array([0i64, 2, 1, 0, 0, 1]));
/// assert_eq!(recall_score(&y_true, &y_pred, Average::Macro)?.value(), 1.0 / 3.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`precision_score`].
///
/// # Distributed
/// As [`confusion_matrix`](super::confusion_matrix).
#[track_caller]
pub fn recall_score(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Averaged>) -> Result<Score> {
    let counts = Counts::of(y_true, y_pred, options.into())?;
    Ok(counts.score(|label| (label.true_positive, label.in_true)))
}

/// scikit-learn's `f1_score`: the harmonic mean of precision and recall.
///
/// ```
/// use tharsis_learn::metrics::{Average, f1_score};
/// use tharsis_numeric::array;
/// let (y_true, y_pred) = (array([0i64, 1, 2, 0, 1, 2]), array([0i64, 2, 1, 0, 0, 1]));
/// assert_eq!(f1_score(&y_true, &y_pred, Average::Each)?.values(), [0.8, 0.0, 0.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`precision_score`].
///
/// # Distributed
/// As [`confusion_matrix`](super::confusion_matrix).
#[track_caller]
pub fn f1_score(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Averaged>) -> Result<Score> {
    fbeta_score(y_true, y_pred, 1.0, options)
}

/// scikit-learn's `fbeta_score`: the harmonic mean of precision and recall, with weight `beta` of recall.
///
/// ```
/// use tharsis_learn::metrics::{Average, fbeta_score};
/// use tharsis_numeric::array;
/// let (y_true, y_pred) = (array([0i64, 1, 2, 0, 1, 2]), array([0i64, 2, 1, 0, 0, 1]));
/// let found = fbeta_score(&y_true, &y_pred, 0.5, Average::Macro)?;
/// assert!((found.value() - 0.238).abs() < 1e-3);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`precision_score`]; `ValueError` for a negative `beta` or NaN.
///
/// # Distributed
/// As [`confusion_matrix`](super::confusion_matrix).
#[track_caller]
pub fn fbeta_score(
    y_true: &Tensor,
    y_pred: &Tensor,
    beta: f64,
    options: impl Into<Averaged>,
) -> Result<Score> {
    check_beta(beta)?;
    let counts = Counts::of(y_true, y_pred, options.into())?;
    Ok(counts.score(fscore_of(beta)))
}

/// scikit-learn's `jaccard_score`: of the samples that are of a class or predicted as it, the fraction that
/// are both.
///
/// ```
/// use tharsis_learn::metrics::jaccard_score;
/// use tharsis_numeric::array;
/// assert_eq!(jaccard_score(&array([0i64, 1, 1]), &array([1i64, 1, 1]), ..)?.value(), 2.0 / 3.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`precision_score`].
///
/// # Distributed
/// As [`confusion_matrix`](super::confusion_matrix).
#[track_caller]
pub fn jaccard_score(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Averaged>) -> Result<Score> {
    let counts = Counts::of(y_true, y_pred, options.into())?;
    let either = |label: &OfLabel| label.in_true + label.in_pred - label.true_positive;
    Ok(counts.score(move |label| (label.true_positive, either(label))))
}

/// scikit-learn's `precision_recall_fscore_support`: all of it in the passes of one.
///
/// ```
/// use tharsis_learn::metrics::precision_recall_fscore_support;
/// use tharsis_numeric::array;
/// let (y_true, y_pred) = (array([0i64, 1, 2, 0, 1, 2]), array([0i64, 2, 1, 0, 0, 1]));
/// let found = precision_recall_fscore_support(&y_true, &y_pred, ..)?;
/// assert_eq!(found.recall.values(), [1.0, 0.0, 0.0]);
/// assert_eq!(found.support, Some(vec![2.0; 3]));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`fbeta_score`].
///
/// # Distributed
/// As [`confusion_matrix`](super::confusion_matrix).
#[track_caller]
pub fn precision_recall_fscore_support(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<PrecisionRecall>,
) -> Result<PrecisionRecallFscore> {
    let PrecisionRecall { beta, labels, pos_label, average, sample_weight, zero_division } = options.into();
    check_beta(beta)?;
    let averaged = Averaged { labels, pos_label, average, sample_weight, zero_division };
    Ok(Counts::of(y_true, y_pred, averaged)?.all(beta))
}

#[track_caller]
fn check_beta(beta: f64) -> Result<()> {
    if 0.0 <= beta {
        return Ok(());
    }
    let text = format!("The 'beta' parameter must be a float in the range [0.0, inf]. Got {beta} instead.");
    Err(value_error(text))
}

/// The F score as a fraction of counts.
fn fscore_of(beta: f64) -> impl Fn(&OfLabel) -> (f64, f64) {
    let square = beta * beta;
    move |label: &OfLabel| {
        let divisor = square * label.in_true + label.in_pred;
        if !divisor.is_finite() {
            // The limit: recall alone.
            return (label.true_positive, label.in_true);
        }
        ((1.0 + square) * label.true_positive, divisor)
    }
}

/// The counts of classes, and what becomes of them.
pub(super) struct Counts {
    pub(super) labels: Vec<i64>,
    pub(super) of_labels: Vec<OfLabel>,
    pub(super) average: Average,
    pub(super) zero_division: f64,
}

impl Counts {
    #[track_caller]
    fn of(y_true: &Tensor, y_pred: &Tensor, options: Averaged) -> Result<Counts> {
        let Averaged { labels, pos_label, average, sample_weight, zero_division } = options;
        check_zero_division(zero_division)?;
        let table = Contingency::of(&Labels::new(y_true, y_pred)?, sample_weight.as_ref())?;
        let labels = match (average, labels) {
            (Average::Binary, _) => vec![positive_of(&table.labels(), pos_label)?],
            (_, Some(labels)) => {
                check_distinct(&labels)?;
                labels
            }
            (_, None) => table.labels(),
        };
        Ok(Counts { of_labels: table.of_labels(&labels), labels, average, zero_division })
    }

    /// A fraction of each class, averaged.
    pub(super) fn score(&self, fraction: impl Fn(&OfLabel) -> (f64, f64)) -> Score {
        let divided = |label: &OfLabel| match fraction(label) {
            (_, 0.0) => self.zero_division,
            (dividend, divisor) => dividend / divisor,
        };
        let each = || self.of_labels.iter().map(&divided);
        match self.average {
            Average::Each => Score::Each(each().collect()),
            Average::Micro => Score::One(divided(&self.of_labels.iter().copied().sum())),
            Average::Binary | Average::Macro => Score::One(mean_of_numbers(each().map(|value| (value, 1.0)))),
            Average::Weighted => {
                let weighted = each().zip(&self.of_labels).map(|(value, label)| (value, label.in_true));
                Score::One(mean_of_numbers(weighted))
            }
        }
    }

    /// Precision, recall, F score and support.
    pub(super) fn all(&self, beta: f64) -> PrecisionRecallFscore {
        let support = self.of_labels.iter().map(|label| label.in_true).collect();
        PrecisionRecallFscore {
            labels: self.labels.clone(),
            precision: self.score(|label| (label.true_positive, label.in_pred)),
            recall: self.score(|label| (label.true_positive, label.in_true)),
            fscore: self.score(fscore_of(beta)),
            support: (self.average == Average::Each).then_some(support),
        }
    }
}

impl std::iter::Sum for OfLabel {
    fn sum<I: Iterator<Item = OfLabel>>(labels: I) -> OfLabel {
        labels.fold(OfLabel::default(), |sum, label| OfLabel {
            true_positive: sum.true_positive + label.true_positive,
            in_true: sum.in_true + label.in_true,
            in_pred: sum.in_pred + label.in_pred,
        })
    }
}

/// The weighted mean of values that are not NaN, the plain one if their weights sum to zero; NaN if there are
/// none.
fn mean_of_numbers(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let numbers: Vec<(f64, f64)> = values.filter(|(value, _)| !value.is_nan()).collect();
    let weights: f64 = numbers.iter().map(|(_, weight)| weight).sum();
    if weights == 0.0 {
        return numbers.iter().map(|(value, _)| value).sum::<f64>() / numbers.len() as f64;
    }
    numbers.iter().map(|(value, weight)| value * weight).sum::<f64>() / weights
}

#[track_caller]
pub(super) fn check_zero_division(zero_division: f64) -> Result<()> {
    if zero_division.is_nan() || zero_division == 0.0 || zero_division == 1.0 {
        return Ok(());
    }
    let text = format!(
        "The 'zero_division' parameter must be a float among {{0.0, 1.0, nan}}. Got {zero_division} instead."
    );
    Err(value_error(text))
}

/// The class whose value is the score of two classes.
#[track_caller]
fn positive_of(present: &[i64], pos_label: i64) -> Result<i64> {
    if 2 < present.len() {
        let text = "Target is multiclass but average='binary'. Please choose another average setting, one of [None, 'micro', 'macro', 'weighted'].";
        return Err(value_error(text));
    }
    if present.len() == 2 && !present.contains(&pos_label) {
        let present = listed(present, " ");
        let text = format!("pos_label={pos_label} is not a valid label. It should be one of [{present}]");
        return Err(value_error(text));
    }
    Ok(pos_label)
}
