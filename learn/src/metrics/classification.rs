//! Metrics of predicted labels.

use super::contingency::{Contingency, Labels, OfLabel};
use super::inputs::{Pass, Total, value_error};
use super::options::{Weighted, defaults};
use crate::Result;
use tharsis_numeric::Tensor;

/// Options of [`accuracy_score`] and [`zero_one_loss`].
#[derive(Clone, Debug)]
pub struct Accuracy {
    /// Whether the fraction is returned, and not the number or weight of samples.
    pub normalize: bool,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        Accuracy { normalize: true, sample_weight: None }
    }
}

/// Sums by which a confusion matrix is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalize {
    /// The sum of the matrix.
    All,
    /// Those of columns: the samples of each predicted label.
    Pred,
    /// Those of rows: the samples of each true label.
    True,
}

/// Options of [`confusion_matrix`].
#[derive(Clone, Debug, Default)]
pub struct Confusion {
    /// The labels of rows and columns, in this order; those of the samples, ascending, if none are given.
    pub labels: Option<Vec<i64>>,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// The sums by which cells are divided; cells of an empty sum are 0.
    pub normalize: Option<Normalize>,
}

/// Options of [`multilabel_confusion_matrix`].
#[derive(Clone, Debug, Default)]
pub struct ByClass {
    /// The classes, in this order; those of the samples, ascending, if none are given.
    pub labels: Option<Vec<i64>>,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
}

/// Options of [`balanced_accuracy_score`].
#[derive(Clone, Debug, Default)]
pub struct BalancedAccuracy {
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// Whether random guessing scores 0; a perfect score is 1 in any case.
    pub adjusted: bool,
}

/// Weight of a disagreement in [`cohen_kappa_score`], by the distance of labels in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// The distance.
    Linear,
    /// The square of the distance.
    Quadratic,
}

/// Options of [`cohen_kappa_score`].
#[derive(Clone, Debug)]
pub struct Kappa {
    /// The labels that count, in their order; those of the samples, ascending, if none are given.
    pub labels: Option<Vec<i64>>,
    /// Weight of a disagreement; all count the same if there is none.
    pub weights: Option<Disagreement>,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// The score of samples for which it is not defined.
    pub replace_undefined_by: f64,
}

impl Default for Kappa {
    fn default() -> Kappa {
        Kappa { labels: None, weights: None, sample_weight: None, replace_undefined_by: f64::NAN }
    }
}

defaults!(Accuracy, BalancedAccuracy, ByClass, Confusion, Kappa);

/// Weights of samples; (n,).
impl From<&Tensor> for Accuracy {
    fn from(sample_weight: &Tensor) -> Accuracy {
        Accuracy { sample_weight: Some(sample_weight.clone()), ..Accuracy::default() }
    }
}

/// scikit-learn's `accuracy_score`: the fraction of samples (n,) whose predicted label is the true one.
///
/// ```
/// use tharsis_learn::metrics::{Accuracy, accuracy_score};
/// use tharsis_numeric::array;
/// let (y_true, y_pred) = (array([0i64, 1, 2, 3]), array([0i64, 2, 1, 3]));
/// assert_eq!(accuracy_score(&y_true, &y_pred, ..)?, 0.5);
/// let count = Accuracy { normalize: false, ..Accuracy::default() };
/// assert_eq!(accuracy_score(&y_true, &y_pred, count)?, 2.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for different lengths, no samples, more than one column, or weights that are not finite;
/// `TypeError` for labels that are neither integers nor booleans; `ZeroDivisionError` if weights sum to zero.
///
/// # Distributed
/// One pass over both tensors.
#[track_caller]
pub fn accuracy_score(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Accuracy>) -> Result<f64> {
    let Accuracy { normalize, sample_weight } = options.into();
    let labels = Labels::new(y_true, y_pred)?;
    let equal = labels.y_true.equal(&labels.y_pred);
    fraction(&labels, &equal, sample_weight.as_ref(), Total::normalized(normalize))
}

/// scikit-learn's `zero_one_loss`: the fraction of samples whose predicted label is not the true one.
///
/// ```
/// use tharsis_learn::metrics::zero_one_loss;
/// use tharsis_numeric::array;
/// assert_eq!(zero_one_loss(&array([1i64, 2, 3, 4]), &array([2i64, 2, 3, 4]), ..)?, 0.25);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`].
///
/// # Distributed
/// One pass over both tensors.
#[track_caller]
pub fn zero_one_loss(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Accuracy>) -> Result<f64> {
    let Accuracy { normalize, sample_weight } = options.into();
    let labels = Labels::new(y_true, y_pred)?;
    let differs = labels.y_true.not_equal(&labels.y_pred);
    fraction(&labels, &differs, sample_weight.as_ref(), Total::normalized(normalize))
}

/// scikit-learn's `hamming_loss` of labels (n,): the fraction of samples whose predicted label is not the
/// true one.
///
/// ```
/// use tharsis_learn::metrics::hamming_loss;
/// use tharsis_numeric::array;
/// assert_eq!(hamming_loss(&array([2i64, 2, 3, 4]), &array([1i64, 2, 3, 4]), ..)?, 0.25);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`].
///
/// # Distributed
/// One pass over both tensors.
#[track_caller]
pub fn hamming_loss(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Weighted>) -> Result<f64> {
    let Weighted { sample_weight } = options.into();
    zero_one_loss(y_true, y_pred, Accuracy { sample_weight, normalize: true })
}

/// The mean or sum of a property of samples.
#[track_caller]
fn fraction(labels: &Labels, holds: &Tensor, weights: Option<&Tensor>, total: Total) -> Result<f64> {
    let mut pass = Pass::default();
    let Some(weights) = pass.weights(weights, labels.count)? else {
        let count = holds.count_nonzero(..).item()?.to_f64();
        return Ok(if total == Total::Mean { count / labels.count as f64 } else { count });
    };
    Ok(pass.total(holds, Some(&weights), total)?[0])
}

/// scikit-learn's `confusion_matrix`: the samples of each true label (row) that have each predicted label
/// (column); (labels, labels) of int64, of float64 if they are weighted or divided.
///
/// ```
/// use tharsis_learn::metrics::confusion_matrix;
/// use tharsis_numeric::array;
/// let matrix = confusion_matrix(&array([2i64, 0, 2, 2]), &array([0i64, 0, 2, 2]), ..)?;
/// assert_eq!(matrix.to_vec::<i64>()?, [1, 0, 1, 2]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`]; `ValueError` for an empty or repeated list of labels, if no sample has one of the
/// given labels, and for a matrix of more than 2^22 cells.
///
/// # Distributed
/// Two passes over both tensors; three if their labels are far apart.
#[track_caller]
pub fn confusion_matrix(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Confusion>) -> Result<Tensor> {
    let Confusion { labels, sample_weight, normalize } = options.into();
    let pair = Labels::new(y_true, y_pred)?;
    let table = Contingency::of(&pair, sample_weight.as_ref())?;
    let labels = chosen_labels(&table, labels)?;
    let (side, mut matrix) = (labels.len(), table.square(&labels)?);
    let Some(normalize) = normalize else {
        return Ok(counts_or_weights(&[side, side], &matrix, sample_weight.is_some()));
    };
    let sums = Sums::of(&matrix, side);
    for (at, cell) in matrix.iter_mut().enumerate() {
        let sum = match normalize {
            Normalize::All => sums.total,
            Normalize::Pred => sums.columns[at % side],
            Normalize::True => sums.rows[at / side],
        };
        *cell = if sum == 0.0 { 0.0 } else { *cell / sum };
    }
    Ok(Tensor::from_elements(&[side, side], &matrix))
}

/// scikit-learn's `multilabel_confusion_matrix` of labels (n,): for each class the true negatives and false
/// positives, and below them the false negatives and true positives; (classes, 2, 2) of int64, of float64 if
/// samples are weighted.
///
/// ```
/// use tharsis_learn::metrics::multilabel_confusion_matrix;
/// use tharsis_numeric::array;
/// let found = multilabel_confusion_matrix(&array([0i64, 0, 1, 1]), &array([0i64, 1, 1, 1]), ..)?;
/// assert_eq!(found.to_vec::<i64>()?, [2, 0, 1, 1, 1, 1, 0, 2]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`]; `ValueError` for repeated labels.
///
/// # Distributed
/// As [`confusion_matrix`].
#[track_caller]
pub fn multilabel_confusion_matrix(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<ByClass>,
) -> Result<Tensor> {
    let ByClass { labels, sample_weight } = options.into();
    let table = Contingency::of(&Labels::new(y_true, y_pred)?, sample_weight.as_ref())?;
    let labels = labels.unwrap_or_else(|| table.labels());
    check_distinct(&labels)?;
    let total = table.total();
    let quarters = |label: &OfLabel| {
        let OfLabel { true_positive, in_true, in_pred } = *label;
        let (false_positive, false_negative) = (in_pred - true_positive, in_true - true_positive);
        [total - in_true - false_positive, false_positive, false_negative, true_positive]
    };
    let cells: Vec<f64> = table.of_labels(&labels).iter().flat_map(quarters).collect();
    Ok(counts_or_weights(&[labels.len(), 2, 2], &cells, sample_weight.is_some()))
}

/// Counts as int64, weights as float64.
fn counts_or_weights(shape: &[usize], cells: &[f64], are_weights: bool) -> Tensor {
    if are_weights {
        return Tensor::from_elements(shape, cells);
    }
    let counts: Vec<i64> = cells.iter().map(|&count| count as i64).collect();
    Tensor::from_elements(shape, &counts)
}

/// The labels given, or those of the samples.
///
/// # Errors
/// `ValueError` for an empty or repeated list, and if no true label is in it.
#[track_caller]
fn chosen_labels(table: &Contingency, given: Option<Vec<i64>>) -> Result<Vec<i64>> {
    let Some(labels) = given else { return Ok(table.labels()) };
    if labels.is_empty() {
        return Err(value_error("'labels' should contain at least one label."));
    }
    check_distinct(&labels)?;
    if !table.rows.iter().any(|row| labels.contains(row)) {
        return Err(value_error("At least one label specified must be in y_true"));
    }
    Ok(labels)
}

/// Refuses a list of labels with one more than once.
#[track_caller]
pub(super) fn check_distinct(labels: &[i64]) -> Result<()> {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() < labels.len() {
        return Err(value_error("Parameter 'labels' must be unique"));
    }
    Ok(())
}

/// The sums of a square matrix.
struct Sums {
    rows: Vec<f64>,
    columns: Vec<f64>,
    total: f64,
}

impl Sums {
    fn of(matrix: &[f64], side: usize) -> Sums {
        let mut sums = Sums { rows: vec![0.0; side], columns: vec![0.0; side], total: 0.0 };
        for (at, &cell) in matrix.iter().enumerate() {
            sums.rows[at / side] += cell;
            sums.columns[at % side] += cell;
            sums.total += cell;
        }
        sums
    }
}

/// scikit-learn's `balanced_accuracy_score`: the mean recall of the classes that are in `y_true`.
///
/// ```
/// use tharsis_learn::metrics::balanced_accuracy_score;
/// use tharsis_numeric::array;
/// let (y_true, y_pred) = (array([0i64, 1, 0, 0, 1, 0]), array([0i64, 1, 0, 0, 0, 1]));
/// assert_eq!(balanced_accuracy_score(&y_true, &y_pred, ..)?, 0.625);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`].
///
/// # Distributed
/// As [`confusion_matrix`].
#[track_caller]
pub fn balanced_accuracy_score(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<BalancedAccuracy>,
) -> Result<f64> {
    let BalancedAccuracy { sample_weight, adjusted } = options.into();
    let table = Contingency::of(&Labels::new(y_true, y_pred)?, sample_weight.as_ref())?;
    let recalls: Vec<f64> = table
        .of_labels(&table.rows)
        .iter()
        .filter(|label| label.in_true != 0.0)
        .map(|label| label.true_positive / label.in_true)
        .collect();
    let count = recalls.len() as f64;
    let score = recalls.iter().sum::<f64>() / count;
    let chance = if adjusted { 1.0 / count } else { 0.0 };
    Ok((score - chance) / (1.0 - chance))
}

/// scikit-learn's `matthews_corrcoef`: the correlation of true and predicted labels, of two or more classes;
/// 0 if either has one class only.
///
/// ```
/// use tharsis_learn::metrics::matthews_corrcoef;
/// use tharsis_numeric::array;
/// let found = matthews_corrcoef(&array([1i64, 1, 1, -1]), &array([1i64, -1, 1, 1]), ..)?;
/// assert!((found + 1.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`].
///
/// # Distributed
/// As [`confusion_matrix`].
#[track_caller]
pub fn matthews_corrcoef(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Weighted>) -> Result<f64> {
    let Weighted { sample_weight } = options.into();
    let table = Contingency::of(&Labels::new(y_true, y_pred)?, sample_weight.as_ref())?;
    let labels = table.of_labels(&table.labels());
    let sum = |of: fn(&_) -> f64| labels.iter().map(of).sum::<f64>();
    let total = table.total();
    let correct = sum(|label: &OfLabel| label.true_positive);
    let both = correct * total - sum(|label| label.in_true * label.in_pred);
    let of_pred = total * total - sum(|label| label.in_pred * label.in_pred);
    let of_true = total * total - sum(|label| label.in_true * label.in_true);
    let product = of_pred * of_true;
    Ok(if product == 0.0 { 0.0 } else { both / product.sqrt() })
}

/// scikit-learn's `cohen_kappa_score`: the agreement of two labellings beyond that of chance.
///
/// ```
/// use tharsis_learn::metrics::cohen_kappa_score;
/// use tharsis_numeric::array;
/// let found = cohen_kappa_score(&array([0i64, 0, 1, 1]), &array([0i64, 1, 1, 1]), ..)?;
/// assert!((found - 0.5).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`confusion_matrix`].
///
/// # Distributed
/// As [`confusion_matrix`].
#[track_caller]
pub fn cohen_kappa_score(y1: &Tensor, y2: &Tensor, options: impl Into<Kappa>) -> Result<f64> {
    let Kappa { labels, weights, sample_weight, replace_undefined_by } = options.into();
    let table = Contingency::of(&Labels::new(y1, y2)?, sample_weight.as_ref())?;
    let labels = chosen_labels(&table, labels)?;
    let (side, matrix) = (labels.len(), table.square(&labels)?);
    let sums = Sums::of(&matrix, side);
    if sums.total == 0.0 {
        return Ok(replace_undefined_by);
    }
    let (mut found, mut expected) = (0.0, 0.0);
    for (at, &cell) in matrix.iter().enumerate() {
        let (row, column) = (at / side, at % side);
        let distance = row.abs_diff(column) as f64;
        let weight = match weights {
            None => distance.min(1.0),
            Some(Disagreement::Linear) => distance,
            Some(Disagreement::Quadratic) => distance * distance,
        };
        found += weight * cell;
        expected += weight * (sums.columns[column] * sums.rows[row] / sums.total);
    }
    Ok(if expected == 0.0 { replace_undefined_by } else { 1.0 - found / expected })
}
