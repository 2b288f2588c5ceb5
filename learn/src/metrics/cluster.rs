//! Metrics of clusterings, whose labels have no order and no names.

use super::contingency::{Contingency, Labels};
use super::inputs::{equal_lengths, settled, value_error};
use super::options::defaults;
use crate::Result;
use tharsis_numeric::Tensor;

/// Mean of two entropies by which mutual information is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AverageMethod {
    /// Their mean.
    #[default]
    Arithmetic,
    /// The root of their product.
    Geometric,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
}

impl AverageMethod {
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            AverageMethod::Arithmetic => (a + b) / 2.0,
            AverageMethod::Geometric => (a * b).sqrt(),
            AverageMethod::Max => a.max(b),
            AverageMethod::Min => a.min(b),
        }
    }
}

/// Options of [`normalized_mutual_info_score`] and [`adjusted_mutual_info_score`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MutualInfo {
    /// Mean of two entropies by which mutual information is divided.
    pub average_method: AverageMethod,
}

/// Options of [`v_measure_score`] and [`homogeneity_completeness_v_measure`].
#[derive(Clone, Copy, Debug)]
pub struct VMeasure {
    /// The weight of completeness: above 1 it counts more than homogeneity.
    pub beta: f64,
}

impl Default for VMeasure {
    fn default() -> VMeasure {
        VMeasure { beta: 1.0 }
    }
}

defaults!(MutualInfo, VMeasure);

/// scikit-learn's `contingency_matrix`: the number of samples of each class (row) in each cluster (column);
/// (classes, clusters), int64.
///
/// ```
/// use tharsis_learn::metrics::contingency_matrix;
/// use tharsis_numeric::array;
/// let found = contingency_matrix(&array([0i64, 0, 1, 1]), &array([5i64, 5, 5, 7]))?;
/// assert_eq!(found.to_vec::<i64>()?, [2, 0, 1, 1]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for different lengths, more than one column and more than 2^22 cells; `TypeError` for labels
/// that are neither integers nor booleans.
///
/// # Distributed
/// Two passes over both tensors; three if their labels are far apart.
#[track_caller]
pub fn contingency_matrix(labels_true: &Tensor, labels_pred: &Tensor) -> Result<Tensor> {
    let Some(table) = table(labels_true, labels_pred)? else {
        return Ok(Tensor::from_elements::<i64>(&[0, 0], &[]));
    };
    let counts: Vec<i64> = table.weights.iter().map(|&count| count as i64).collect();
    Ok(Tensor::from_elements(&[table.rows.len(), table.columns.len()], &counts))
}

/// scikit-learn's `pair_confusion_matrix`: the ordered pairs of different samples that are apart (first) or
/// together in the true clustering (row) and in the predicted one (column); (2, 2), int64.
///
/// ```
/// use tharsis_learn::metrics::pair_confusion_matrix;
/// use tharsis_numeric::array;
/// let found = pair_confusion_matrix(&array([0i64, 0, 1, 2]), &array([0i64, 0, 1, 1]))?;
/// assert_eq!(found.to_vec::<i64>()?, [8, 2, 0, 2]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`]; `ValueError` for more pairs than int64 counts.
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn pair_confusion_matrix(labels_true: &Tensor, labels_pred: &Tensor) -> Result<Tensor> {
    let Some(table) = table(labels_true, labels_pred)? else {
        return Ok(Tensor::from_elements(&[2, 2], &[0i64; 4]));
    };
    let Pairs { together, only_true, only_pred, apart } = Pairs::of(&table);
    let mut counts = [0; 4];
    for (count, pairs) in counts.iter_mut().zip([apart, only_pred, only_true, together]) {
        *count = i64::try_from(pairs).map_err(|_| value_error(format!("{pairs} pairs exceed int64")))?;
    }
    Ok(Tensor::from_elements(&[2, 2], &counts))
}

/// scikit-learn's `rand_score`: the fraction of pairs of samples that are together or apart in both
/// clusterings; 1 for no samples.
///
/// ```
/// use tharsis_learn::metrics::rand_score;
/// use tharsis_numeric::array;
/// assert_eq!(rand_score(&array([0i64, 0, 1, 1]), &array([1i64, 1, 0, 0]))?, 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn rand_score(labels_true: &Tensor, labels_pred: &Tensor) -> Result<f64> {
    let Some(table) = table(labels_true, labels_pred)? else { return Ok(1.0) };
    let pairs = Pairs::of(&table);
    let (agreed, all) = (pairs.together + pairs.apart, pairs.all());
    Ok(if agreed == all { 1.0 } else { agreed as f64 / all as f64 })
}

/// scikit-learn's `adjusted_rand_score`: the Rand score less that of chance; 0 for random labels, 1 for equal
/// clusterings and for no samples.
///
/// ```
/// use tharsis_learn::metrics::adjusted_rand_score;
/// use tharsis_numeric::array;
/// let found = adjusted_rand_score(&array([0i64, 0, 1, 2]), &array([0i64, 0, 1, 1]))?;
/// assert!((found - 4.0 / 7.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn adjusted_rand_score(labels_true: &Tensor, labels_pred: &Tensor) -> Result<f64> {
    let Some(table) = table(labels_true, labels_pred)? else { return Ok(1.0) };
    let Pairs { together, only_true, only_pred, apart } = Pairs::of(&table);
    if only_true == 0 && only_pred == 0 {
        return Ok(1.0);
    }
    let [together, only_true, only_pred, apart] =
        [together, only_true, only_pred, apart].map(|pairs| pairs as f64);
    let both = together * apart - only_true * only_pred;
    let expected =
        (together + only_true) * (only_true + apart) + (together + only_pred) * (only_pred + apart);
    Ok(2.0 * both / expected)
}

/// scikit-learn's `fowlkes_mallows_score`: the geometric mean of the precision and the recall of pairs that
/// are together; 0 for no samples.
///
/// ```
/// use tharsis_learn::metrics::fowlkes_mallows_score;
/// use tharsis_numeric::array;
/// assert_eq!(fowlkes_mallows_score(&array([0i64, 0, 1, 1]), &array([1i64, 1, 0, 0]))?, 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn fowlkes_mallows_score(labels_true: &Tensor, labels_pred: &Tensor) -> Result<f64> {
    let Some(table) = table(labels_true, labels_pred)? else { return Ok(0.0) };
    let pairs = Pairs::of(&table);
    if pairs.together == 0 {
        return Ok(0.0);
    }
    let share = |others: i128| pairs.together as f64 / (pairs.together + others) as f64;
    Ok(share(pairs.only_pred).sqrt() * share(pairs.only_true).sqrt())
}

/// scikit-learn's `mutual_info_score`: the information that one clustering has of the other, in nats.
///
/// ```
/// use tharsis_learn::metrics::mutual_info_score;
/// use tharsis_numeric::array;
/// let found = mutual_info_score(&array([0i64, 0, 1, 1]), &array([1i64, 1, 0, 0]))?;
/// assert!((found - 2f64.ln()).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn mutual_info_score(labels_true: &Tensor, labels_pred: &Tensor) -> Result<f64> {
    Ok(table(labels_true, labels_pred)?.map_or(0.0, |table| Entropies::of(&table).mutual))
}

/// scikit-learn's `normalized_mutual_info_score`: mutual information divided by a mean of the entropies; from
/// 0 to 1.
///
/// ```
/// use tharsis_learn::metrics::normalized_mutual_info_score;
/// use tharsis_numeric::array;
/// let found = normalized_mutual_info_score(&array([0i64, 0, 1, 1]), &array([1i64, 1, 0, 0]), ..)?;
/// assert!((found - 1.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn normalized_mutual_info_score(
    labels_true: &Tensor,
    labels_pred: &Tensor,
    options: impl Into<MutualInfo>,
) -> Result<f64> {
    let MutualInfo { average_method } = options.into();
    let Some(table) = table(labels_true, labels_pred)? else { return Ok(1.0) };
    if table.rows.len() == 1 && table.columns.len() == 1 {
        return Ok(1.0);
    }
    let Entropies { mutual, of_true, of_pred } = Entropies::of(&table);
    Ok(if mutual == 0.0 { 0.0 } else { mutual / average_method.of(of_true, of_pred) })
}

/// scikit-learn's `adjusted_mutual_info_score`: normalized mutual information less that of chance (Vinh, Epps
/// and Bailey, 2010).
///
/// ```
/// use tharsis_learn::metrics::adjusted_mutual_info_score;
/// use tharsis_numeric::array;
/// let found = adjusted_mutual_info_score(&array([0i64, 0, 1, 1]), &array([1i64, 1, 0, 0]), ..)?;
/// assert!((found - 1.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`]; then up to n steps for each class and each cluster on the caller.
#[track_caller]
pub fn adjusted_mutual_info_score(
    labels_true: &Tensor,
    labels_pred: &Tensor,
    options: impl Into<MutualInfo>,
) -> Result<f64> {
    let MutualInfo { average_method } = options.into();
    let Some(table) = table(labels_true, labels_pred)? else { return Ok(1.0) };
    match (table.rows.len(), table.columns.len()) {
        (1, 1) => return Ok(1.0),
        (1, _) | (_, 1) => return Ok(0.0),
        (_, _) => {}
    }
    let Entropies { mutual, of_true, of_pred } = Entropies::of(&table);
    let expected = expected_mutual_info(&table.row_sums(), &table.column_sums());
    // Rounding makes neither of the differences of equal numbers 0.
    let away = |x: f64| if x < 0.0 { x.min(-f64::EPSILON) } else { x.max(f64::EPSILON) };
    Ok(away(mutual - expected) / away(average_method.of(of_true, of_pred) - expected))
}

/// Result of [`homogeneity_completeness_v_measure`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Homogeneity {
    /// Whether each cluster has samples of one class only: 1 if all do.
    pub homogeneity: f64,
    /// Whether all samples of a class are in one cluster: 1 if those of all classes are.
    pub completeness: f64,
    /// Harmonic mean of both.
    pub v_measure: f64,
}

/// scikit-learn's `homogeneity_completeness_v_measure`: all three in the passes of one; 1 for no samples.
///
/// ```
/// use tharsis_learn::metrics::homogeneity_completeness_v_measure;
/// use tharsis_numeric::array;
/// let found = homogeneity_completeness_v_measure(&array([0i64, 0, 1, 1]), &array([0i64, 0, 1, 2]), ..)?;
/// assert!((found.homogeneity - 1.0).abs() < 1e-12);
/// assert!((found.completeness - 2.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn homogeneity_completeness_v_measure(
    labels_true: &Tensor,
    labels_pred: &Tensor,
    options: impl Into<VMeasure>,
) -> Result<Homogeneity> {
    let VMeasure { beta } = options.into();
    let Some(table) = table(labels_true, labels_pred)? else {
        return Ok(Homogeneity { homogeneity: 1.0, completeness: 1.0, v_measure: 1.0 });
    };
    let Entropies { mutual, of_true, of_pred } = Entropies::of(&table);
    let share = |entropy: f64| if entropy == 0.0 { 1.0 } else { mutual / entropy };
    let (homogeneity, completeness) = (share(of_true), share(of_pred));
    let v_measure = match homogeneity + completeness {
        0.0 => 0.0,
        _ => (1.0 + beta) * homogeneity * completeness / (beta * homogeneity + completeness),
    };
    Ok(Homogeneity { homogeneity, completeness, v_measure })
}

/// scikit-learn's `homogeneity_score`: 1 if each cluster has samples of one class only.
///
/// ```
/// use tharsis_learn::metrics::homogeneity_score;
/// use tharsis_numeric::array;
/// assert_eq!(homogeneity_score(&array([0i64, 0, 1, 1]), &array([0i64, 0, 0, 0]))?, 0.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn homogeneity_score(labels_true: &Tensor, labels_pred: &Tensor) -> Result<f64> {
    Ok(homogeneity_completeness_v_measure(labels_true, labels_pred, ..)?.homogeneity)
}

/// scikit-learn's `completeness_score`: 1 if all samples of each class are in one cluster.
///
/// ```
/// use tharsis_learn::metrics::completeness_score;
/// use tharsis_numeric::array;
/// assert_eq!(completeness_score(&array([0i64, 0, 1, 1]), &array([0i64, 0, 0, 0]))?, 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn completeness_score(labels_true: &Tensor, labels_pred: &Tensor) -> Result<f64> {
    Ok(homogeneity_completeness_v_measure(labels_true, labels_pred, ..)?.completeness)
}

/// scikit-learn's `v_measure_score`: the harmonic mean of homogeneity and completeness.
///
/// ```
/// use tharsis_learn::metrics::v_measure_score;
/// use tharsis_numeric::array;
/// let found = v_measure_score(&array([0i64, 0, 1, 1]), &array([0i64, 0, 1, 2]), ..)?;
/// assert!((found - 0.8).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`contingency_matrix`].
///
/// # Distributed
/// As [`contingency_matrix`].
#[track_caller]
pub fn v_measure_score(
    labels_true: &Tensor,
    labels_pred: &Tensor,
    options: impl Into<VMeasure>,
) -> Result<f64> {
    Ok(homogeneity_completeness_v_measure(labels_true, labels_pred, options)?.v_measure)
}

/// The counts of pairs of labels; none without samples.
#[track_caller]
fn table(labels_true: &Tensor, labels_pred: &Tensor) -> Result<Option<Contingency>> {
    let known = settled(&[labels_true, labels_pred])?;
    if equal_lengths(&[&known[0], &known[1]])? == 0 {
        return Ok(None);
    }
    Contingency::of(&Labels::new(&known[0], &known[1])?, None).map(Some)
}

/// Ordered pairs of different samples.
struct Pairs {
    together: i128,
    /// Together in the true clustering only.
    only_true: i128,
    only_pred: i128,
    apart: i128,
}

impl Pairs {
    fn of(table: &Contingency) -> Pairs {
        let squares = |counts: &[f64]| counts.iter().map(|&count| (count as i128).pow(2)).sum::<i128>();
        let count = table.total() as i128;
        let both = squares(&table.weights);
        let (in_true, in_pred) = (squares(&table.row_sums()), squares(&table.column_sums()));
        Pairs {
            together: both - count,
            only_true: in_true - both,
            only_pred: in_pred - both,
            apart: count * count - in_true - in_pred + both,
        }
    }

    fn all(&self) -> i128 {
        self.together + self.only_true + self.only_pred + self.apart
    }
}

/// Entropies in nats.
struct Entropies {
    mutual: f64,
    of_true: f64,
    of_pred: f64,
}

impl Entropies {
    fn of(table: &Contingency) -> Entropies {
        let (rows, columns, total) = (table.row_sums(), table.column_sums(), table.total());
        let entropy = |counts: &[f64]| {
            if counts.len() < 2 {
                return 0.0;
            }
            -counts.iter().map(|count| count / total * (count.ln() - total.ln())).sum::<f64>()
        };
        let mutual = |(row, column, count): (usize, usize, f64)| {
            if count == 0.0 {
                return 0.0;
            }
            let chance = rows[row].ln() + columns[column].ln() - total.ln();
            let term = count / total * (count.ln() - chance);
            // Independent labels have no information; rounding leaves some.
            if term.abs() < f64::EPSILON { 0.0 } else { term }
        };
        let is_split = 1 < rows.len() && 1 < columns.len();
        let sum: f64 = if is_split { table.cells().map(mutual).sum() } else { 0.0 };
        Entropies { mutual: sum.max(0.0), of_true: entropy(&rows), of_pred: entropy(&columns) }
    }
}

/// The mean mutual information of all pairs of clusterings with these sizes of clusters, each as likely as
/// the others.
fn expected_mutual_info(rows: &[f64], columns: &[f64]) -> f64 {
    let total: f64 = rows.iter().sum();
    let factorial = |count: f64| ln_factorial(count as u64);
    let mut expected = 0.0;
    for &row in rows {
        for &column in columns {
            let fixed =
                factorial(row) + factorial(column) + factorial(total - row) + factorial(total - column)
                    - factorial(total);
            let least = (row + column - total).max(1.0) as u64;
            for both in least..=row.min(column) as u64 {
                let both = both as f64;
                let ways = factorial(both)
                    + factorial(row - both)
                    + factorial(column - both)
                    + factorial(total - row - column + both);
                let information = both / total * (total * both / (row * column)).ln();
                expected += information * (fixed - ways).exp();
            }
        }
    }
    expected
}

/// The logarithm of `count!`.
fn ln_factorial(count: u64) -> f64 {
    if count < 32 {
        return (2..=count).map(|factor| (factor as f64).ln()).sum();
    }
    // Stirling's series; the next term is below 1e-14.
    let n = count as f64;
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3)) + 1.0 / (1260.0 * n.powi(5));
    (n + 0.5) * n.ln() - n + 0.5 * std::f64::consts::TAU.ln() + series
}
