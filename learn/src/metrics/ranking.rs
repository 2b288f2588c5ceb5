//! Scores of an order of samples: areas under curves, and hits among the first.

use super::contingency::classes_of;
use super::curves::Ranked;
use super::inputs::{Pass, Total, listed, settled, value_error};
use super::options::{Average, defaults};
use super::probability::{Outputs, check_width, columns_of};
use super::score::Score;
use crate::Result;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::DType;
use tharsis_numeric::{Error, Index, Tensor, where_};

/// Reduction of the area of more than two classes to areas of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiClass {
    /// Each pair of classes.
    OneVersusOne,
    /// Each class and all others.
    OneVersusRest,
}

/// Options of [`roc_auc_score`].
#[derive(Clone, Debug)]
pub struct RocAuc {
    /// Reduction of the areas of classes or pairs, for more than two classes.
    pub average: Average,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// The false positive rate up to which the area counts, for two classes; the area is scaled so that
    /// chance gives 0.5.
    pub max_fpr: Option<f64>,
    /// Must be given for more than two classes.
    pub multi_class: Option<MultiClass>,
    /// The classes of the columns, ascending, if `y_true` may lack some.
    pub labels: Option<Vec<i64>>,
}

impl Default for RocAuc {
    fn default() -> RocAuc {
        RocAuc {
            average: Average::Macro,
            sample_weight: None,
            max_fpr: None,
            multi_class: None,
            labels: None,
        }
    }
}

/// Options of [`average_precision_score`].
#[derive(Clone, Debug)]
pub struct AveragePrecision {
    /// Reduction of the values of classes, for more than two classes.
    pub average: Average,
    /// The label of positive samples, for two classes.
    pub pos_label: i64,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
}

impl Default for AveragePrecision {
    fn default() -> AveragePrecision {
        AveragePrecision { average: Average::Macro, pos_label: 1, sample_weight: None }
    }
}

/// Options of [`top_k_accuracy_score`].
#[derive(Clone, Debug)]
pub struct TopK {
    /// The number of scores among which the one of the true class must be.
    pub k: usize,
    /// Whether the fraction is returned, and not the number or weight of samples.
    pub normalize: bool,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// The classes of the columns, ascending, if `y_true` may lack some.
    pub labels: Option<Vec<i64>>,
}

impl Default for TopK {
    fn default() -> TopK {
        TopK { k: 2, normalize: true, sample_weight: None, labels: None }
    }
}

defaults!(AveragePrecision, RocAuc, TopK);

/// scikit-learn's `roc_auc_score`: the area under the receiver operating characteristic; scores (n,) for two
/// classes, the greater one positive, and probabilities (n, classes) for more. NaN if there is only one
/// class.
///
/// ```
/// use tharsis_learn::metrics::roc_auc_score;
/// use tharsis_numeric::array;
/// let found = roc_auc_score(&array([0i64, 0, 1, 1]), &array([0.1, 0.4, 0.35, 0.8]), ..)?;
/// assert_eq!(found.value(), 0.75);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`roc_curve`](super::roc_curve); `ValueError` for more than two classes without `multi_class`, another
/// number of columns than of classes, rows that do not sum to 1, and options that do not fit.
///
/// # Distributed
/// As [`roc_curve`](super::roc_curve), for each class or pair of classes.
#[track_caller]
pub fn roc_auc_score(y_true: &Tensor, y_score: &Tensor, options: impl Into<RocAuc>) -> Result<Score> {
    let options = options.into();
    let is_part = options.max_fpr.is_none_or(|limit| 0.0 < limit && limit <= 1.0);
    if !is_part {
        let limit = options.max_fpr.unwrap_or_default();
        return Err(value_error(format!("Expected max_fpr in range (0, 1], got: {limit}")));
    }
    let Outputs { y_true, values, count } = Outputs::new(y_true, y_score, "y_score")?;
    let classes = classes_of(&y_true)?;
    if classes.len() <= 2 && values.shape()?[1] == 1 {
        let Some(&positive) = classes.last() else { return Ok(Score::One(f64::NAN)) };
        let ranked = Ranked::new(&y_true, &values, Some(positive), options.sample_weight.as_ref())?;
        return Ok(Score::One(ranked.area(options.max_fpr)?));
    }
    let Some(multi_class) = options.multi_class else {
        return Err(value_error("multi_class must be in ('ovo', 'ovr')"));
    };
    if options.max_fpr.is_some_and(|max_fpr| max_fpr != 1.0) {
        let text = "Partial AUC computation not available in multiclass setting, 'max_fpr' must be set to `None`, received `max_fpr`";
        return Err(value_error(format!("{text}={:?} instead", options.max_fpr)));
    }
    let classes = ascending(options.labels, classes)?;
    check_width(&classes, values.shape()?[1])?;
    let mut pass = Pass::default();
    let weights = pass.weights(options.sample_weight.as_ref(), count)?;
    let is_class = columns_of(&y_true, &classes, &mut pass);
    pass.require_finite(&values, "y_score");
    let away = values.sum(1).subtract(1.0).abs();
    let text = "Target scores need to be probabilities for multiclass roc_auc, i.e. they should sum up to 1.0 over classes";
    pass.require(&away.less_equal(1e-5 + 1e-8), text);
    let table = Columns { is_class, values, weights };
    match multi_class {
        MultiClass::OneVersusRest => table.averaged(pass, options.average, |ranked| ranked.area(None)),
        MultiClass::OneVersusOne if table.weights.is_some() => {
            let text = "sample_weight is not supported for multiclass one-vs-one ROC AUC, 'sample_weight' must be None in this case.";
            Err(value_error(text))
        }
        MultiClass::OneVersusOne => table.pairs(pass, options.average),
    }
}

/// scikit-learn's `average_precision_score`: the mean of precisions, weighted by the increase of recall;
/// scores (n,) for two classes and (n, classes) for more.
///
/// ```
/// use tharsis_learn::metrics::average_precision_score;
/// use tharsis_numeric::array;
/// let found = average_precision_score(&array([0i64, 0, 1, 1]), &array([0.1, 0.4, 0.35, 0.8]), ..)?;
/// assert!((found.value() - 5.0 / 6.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`roc_curve`](super::roc_curve); `ValueError` for another number of columns than of classes.
///
/// # Distributed
/// As [`roc_curve`](super::roc_curve), for each class.
#[track_caller]
pub fn average_precision_score(
    y_true: &Tensor,
    y_score: &Tensor,
    options: impl Into<AveragePrecision>,
) -> Result<Score> {
    let AveragePrecision { average, pos_label, sample_weight } = options.into();
    let Outputs { y_true, values, count } = Outputs::new(y_true, y_score, "y_score")?;
    let classes = classes_of(&y_true)?;
    if classes.len() <= 2 {
        if classes.len() == 2 && !classes.contains(&pos_label) {
            let classes = listed(&classes, " ");
            let text = format!("pos_label={pos_label} is not a valid label. It should be one of [{classes}]");
            return Err(value_error(text));
        }
        let ranked = Ranked::new(&y_true, &values, Some(pos_label), sample_weight.as_ref())?;
        return Ok(Score::One(ranked.average_precision()?));
    }
    if pos_label != 1 {
        let text = "Parameter pos_label is fixed to 1 for multiclass y_true. Do not set pos_label or set pos_label to 1.";
        return Err(value_error(text));
    }
    check_width(&classes, values.shape()?[1])?;
    let mut pass = Pass::default();
    let weights = pass.weights(sample_weight.as_ref(), count)?;
    let is_class = columns_of(&y_true, &classes, &mut pass);
    pass.require_finite(&values, "y_score");
    Columns { is_class, values, weights }.averaged(pass, average, |ranked| ranked.average_precision())
}

/// scikit-learn's `top_k_accuracy_score`: the fraction of samples whose true class is among the `k` classes
/// with the highest scores (n, classes); of equal scores the one of the later class is higher. Scores (n,) of
/// two classes are positive for the greater class, from 0.5 on if all are from 0 to 1.
///
/// ```
/// use tharsis_learn::metrics::top_k_accuracy_score;
/// use tharsis_numeric::array;
/// let scores = array([0.5, 0.2, 0.2, 0.3, 0.4, 0.2, 0.2, 0.4, 0.3, 0.7, 0.2, 0.1]).reshape(&[4, 3]);
/// assert_eq!(top_k_accuracy_score(&array([0i64, 1, 2, 2]), &scores, ..)?, 0.75);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`](super::accuracy_score); `ValueError` for scores that are not finite, another number
/// of columns than of classes, `k` of 0, and labels that are not among the given ones.
///
/// # Distributed
/// One pass, and one over the labels if the classes are not given.
#[track_caller]
pub fn top_k_accuracy_score(y_true: &Tensor, y_score: &Tensor, options: impl Into<TopK>) -> Result<f64> {
    let TopK { k, normalize, sample_weight, labels } = options.into();
    if k == 0 {
        let text = "The 'k' parameter must be an int in the range [1, inf). Got 0 instead.";
        return Err(value_error(text));
    }
    let Outputs { y_true, values, count } = Outputs::new(y_true, y_score, "y_score")?;
    let present = if labels.is_some() { Vec::new() } else { classes_of(&y_true)? };
    let classes = ascending(labels, present)?;
    let width = values.shape()?[1];
    check_width(&classes, if width == 1 { 2 } else { width })?;
    let mut pass = Pass::default();
    let weights = pass.weights(sample_weight.as_ref(), count)?;
    let is_class = columns_of(&y_true, &classes, &mut pass);
    pass.require_finite(&values, "y_score");
    let hits = if width == 1 {
        let within = values.greater_equal(0.0).logical_and(values.less_equal(1.0)).all(..);
        let threshold = where_(&within, 0.5, 0.0);
        let is_greater = values.greater(&threshold);
        is_greater.equal(is_class.get(&[Index::from(..), Index::from(1..)])).any(1).logical_or(1 < k)
    } else {
        let places = tharsis_numeric::arange(width);
        let score = where_(&is_class, &values, 0.0).sum(1).expand_dims(1);
        let place = where_(&is_class, &places, 0i64).sum(1).expand_dims(1);
        let later = values.equal(&score).logical_and(places.greater(place));
        values.greater(score).logical_or(later).count_nonzero(1).less(k as i64)
    };
    Ok(pass.total(&hits, weights.as_ref(), Total::normalized(normalize))?[0])
}

/// The given labels, which must be ascending, or those of the samples.
#[track_caller]
fn ascending(labels: Option<Vec<i64>>, present: Vec<i64>) -> Result<Vec<i64>> {
    let Some(labels) = labels else { return Ok(present) };
    if labels.is_sorted_by(|a, b| a < b) {
        return Ok(labels);
    }
    Err(value_error("Parameter 'labels' must be unique and ordered"))
}

/// Scores of more than two classes.
struct Columns {
    /// Whether each sample is of each class; (n, classes).
    is_class: Tensor,
    values: Tensor,
    weights: Option<Tensor>,
}

impl Columns {
    /// A metric of two classes for each class and all others, averaged.
    #[track_caller]
    fn averaged(
        &self,
        mut pass: Pass,
        average: Average,
        metric: impl Fn(&Ranked) -> Result<f64>,
    ) -> Result<Score> {
        let count = self.values.shape()?[1];
        let of_classes = match &self.weights {
            None => self.is_class.count_nonzero(0),
            Some(weights) => where_(&self.is_class, weights.expand_dims(1), 0.0).sum(0),
        };
        pass.want(of_classes.astype(DType::F64));
        let weights = pass.run()?.next::<f64>()?;
        if average == Average::Micro {
            let each = self.weights.as_ref().map(|weights| weights.repeat(count, 0));
            let ranked = Ranked::of(Pass::default(), self.is_class.ravel(), self.values.ravel(), each)?;
            return Ok(Score::One(metric(&ranked)?));
        }
        let mut found = Vec::new();
        for class in 0..count as i64 {
            let of = |x: &Tensor| x.get(&[Index::from(..), Index::At(class)]);
            let weights = self.weights.clone();
            let ranked = Ranked::of(Pass::default(), of(&self.is_class), of(&self.values), weights)?;
            found.push(metric(&ranked)?);
        }
        match average {
            Average::Each => Ok(Score::Each(found)),
            Average::Macro => Ok(Score::One(found.iter().sum::<f64>() / count as f64)),
            Average::Weighted if weights.iter().sum::<f64>() == 0.0 => Ok(Score::One(0.0)),
            Average::Weighted => Ok(Score::One(weighted_mean(&found, &weights))),
            Average::Binary | Average::Micro => Err(bad_average()),
        }
    }

    /// The mean area of each pair of classes (Hand and Till, 2001).
    #[track_caller]
    fn pairs(&self, mut pass: Pass, average: Average) -> Result<Score> {
        pass.want(self.is_class.count_nonzero(0));
        let samples = pass.run()?.next::<i64>()?;
        let is_weighted = match average {
            Average::Macro => false,
            Average::Weighted => true,
            Average::Each => {
                let text = "average=None for multi_class='ovo'".to_owned();
                return Err(Error::here(GraphError::NotImplemented(text)));
            }
            Average::Binary | Average::Micro => return Err(bad_average()),
        };
        let present: Vec<usize> = (0..samples.len()).filter(|&class| samples[class] != 0).collect();
        let (mut areas, mut weights) = (Vec::new(), Vec::new());
        for (at, &a) in present.iter().enumerate() {
            for &b in &present[at + 1..] {
                areas.push((self.area_of(a, b)? + self.area_of(b, a)?) / 2.0);
                let both = (samples[a] + samples[b]) as f64;
                weights.push(if is_weighted { both } else { 1.0 });
            }
        }
        Ok(Score::One(weighted_mean(&areas, &weights)))
    }

    /// The area for the samples of two classes, by the scores of the first one.
    #[track_caller]
    fn area_of(&self, positive: usize, negative: usize) -> Result<f64> {
        let of = |x: &Tensor, class: usize| x.get(&[Index::from(..), Index::At(class as i64)]);
        let is_positive = of(&self.is_class, positive);
        let either = is_positive.logical_or(of(&self.is_class, negative));
        let scores = of(&self.values, positive);
        let known = settled(&[&is_positive.filter(&either), &scores.filter(&either)])?;
        Ranked::of(Pass::default(), known[0].clone(), known[1].clone(), None)?.area(None)
    }
}

fn weighted_mean(values: &[f64], weights: &[f64]) -> f64 {
    let sum: f64 = values.iter().zip(weights).map(|(value, weight)| value * weight).sum();
    sum / weights.iter().sum::<f64>()
}

#[track_caller]
fn bad_average() -> Error {
    value_error("average must be one of ('micro', 'macro', 'weighted', None) for multiclass problems")
}
