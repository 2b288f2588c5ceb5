//! Losses of predicted probabilities and decisions.

use super::contingency::classes_of;
use super::inputs::{
    Pass, Total, column, common_length, floats, labels, listed, settled, shape_text, value_error,
};
use super::options::defaults;
use crate::Result;
use tharsis_kernels::DType;
use tharsis_numeric::{Tensor, where_};

/// Options of [`log_loss`].
#[derive(Clone, Debug)]
pub struct LogLoss {
    /// Whether the mean is returned, and not the sum.
    pub normalize: bool,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// The classes of the columns, if `y_true` may lack some.
    pub labels: Option<Vec<i64>>,
}

impl Default for LogLoss {
    fn default() -> LogLoss {
        LogLoss { normalize: true, sample_weight: None, labels: None }
    }
}

/// Options of [`brier_score_loss`].
#[derive(Clone, Debug, Default)]
pub struct Brier {
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// The class whose probabilities a single column has: 1 for labels 0 and 1 or -1 and 1, else the greater
    /// one.
    pub pos_label: Option<i64>,
    /// The classes of several columns, if `y_true` may lack some.
    pub labels: Option<Vec<i64>>,
    /// Whether the loss is from 0 to 1, and not to 2; the default is to do so for two classes.
    pub scale_by_half: Option<bool>,
}

/// Options of [`hinge_loss`].
#[derive(Clone, Debug, Default)]
pub struct Hinge {
    /// The classes of the columns, if `y_true` may lack some.
    pub labels: Option<Vec<i64>>,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
}

defaults!(Brier, Hinge, LogLoss);

/// scikit-learn's `log_loss`: the negative logarithm of the probability that a model gave to the true class,
/// (n,) for the greater of two classes or (n, classes) in ascending order of classes. Probabilities are
/// clipped to 2^-52 and its complement; that rows sum to one is not checked.
///
/// ```
/// use tharsis_learn::metrics::log_loss;
/// use tharsis_numeric::array;
/// let found = log_loss(&array([0i64, 1]), &array([0.5, 0.25]), ..)?;
/// assert!((found - (2f64.ln() + 4f64.ln()) / 2.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`accuracy_score`](super::accuracy_score); `ValueError` for probabilities beyond 0 and 1, another
/// number of columns than of classes, fewer than two classes, and labels that are not among the given ones.
///
/// # Distributed
/// One pass, and one over the labels if the classes are not given.
#[track_caller]
pub fn log_loss(y_true: &Tensor, y_proba: &Tensor, options: impl Into<LogLoss>) -> Result<f64> {
    let LogLoss { normalize, sample_weight, labels } = options.into();
    let Outputs { y_true, values, count } = Outputs::new(y_true, y_proba, "y_prob")?;
    let classes = two_or_more(&y_true, labels)?;
    let mut pass = Pass::default();
    let weights = pass.weights(sample_weight.as_ref(), count)?;
    let is_class = columns_of(&y_true, &classes, &mut pass);
    let probabilities = one_of_each(&values, &classes)?;
    require_probabilities(&probabilities, &mut pass);
    let logs = probabilities.clip(f64::EPSILON, 1.0 - f64::EPSILON).log();
    let losses = where_(&is_class, &logs, 0.0).sum(1).negative();
    Ok(pass.total(&losses, weights.as_ref(), Total::normalized(normalize))?[0])
}

/// scikit-learn's `brier_score_loss`: the mean square of the distance of probabilities from the true classes;
/// (n,) for one of two classes or (n, classes) in ascending order of classes.
///
/// ```
/// use tharsis_learn::metrics::brier_score_loss;
/// use tharsis_numeric::array;
/// let found = brier_score_loss(&array([0i64, 1]), &array([0.5, 0.75]), ..)?;
/// assert_eq!(found, (0.25 + 0.0625) / 2.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`log_loss`].
///
/// # Distributed
/// As [`log_loss`].
#[track_caller]
pub fn brier_score_loss(y_true: &Tensor, y_proba: &Tensor, options: impl Into<Brier>) -> Result<f64> {
    let Brier { sample_weight, pos_label, labels, scale_by_half } = options.into();
    let Outputs { y_true, values, count } = Outputs::new(y_true, y_proba, "y_prob")?;
    let width = values.shape()?[1];
    let classes = match width {
        1 => vec![positive_class(&y_true, pos_label)?],
        _ => two_or_more(&y_true, labels)?,
    };
    let mut pass = Pass::default();
    let weights = pass.weights(sample_weight.as_ref(), count)?;
    require_probabilities(&values, &mut pass);
    let is_class = match width {
        1 => y_true.equal(classes[0]).expand_dims(1),
        _ => {
            check_width(&classes, width)?;
            columns_of(&y_true, &classes, &mut pass)
        }
    };
    let losses = is_class.astype(DType::F64).subtract(&values).square().sum(1);
    let loss = pass.total(&losses, weights.as_ref(), Total::Mean)?[0];
    // A single column stands for two, each with the same square.
    let (columns, is_halved) = (if width == 1 { 2.0 } else { 1.0 }, scale_by_half.unwrap_or(width < 3));
    Ok(loss * columns * if is_halved { 0.5 } else { 1.0 })
}

/// scikit-learn's `hinge_loss`: the mean of `max(0, 1 - margin)`. The margin of two classes is the decision
/// (n,), positive for the greater one; that of more classes the decision (n, classes) for the true class less
/// the largest of the others.
///
/// ```
/// use tharsis_learn::metrics::hinge_loss;
/// use tharsis_numeric::array;
/// assert_eq!(hinge_loss(&array([-1i64, 1]), &array([-2.0, 0.5]), ..)?, 0.25);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`log_loss`], but any finite decision will do.
///
/// # Distributed
/// As [`log_loss`].
#[track_caller]
pub fn hinge_loss(y_true: &Tensor, pred_decision: &Tensor, options: impl Into<Hinge>) -> Result<f64> {
    let Hinge { labels, sample_weight } = options.into();
    let Outputs { y_true, values, count } = Outputs::new(y_true, pred_decision, "pred_decision")?;
    let classes = sorted(labels, &y_true)?;
    let mut pass = Pass::default();
    let weights = pass.weights(sample_weight.as_ref(), count)?;
    pass.require_finite(&values, "pred_decision");
    let margins = if 2 < classes.len() {
        check_width(&classes, values.shape()?[1])?;
        let is_class = columns_of(&y_true, &classes, &mut pass);
        let own = where_(&is_class, &values, 0.0).sum(1);
        own.subtract(where_(&is_class, f64::NEG_INFINITY, &values).max(1))
    } else {
        let present = classes_of(&y_true)?;
        let decision = column(&values)?;
        let is_greater = match present[..] {
            [_, greater] => y_true.equal(greater),
            // Of a single class every sample counts as the lesser one.
            _ => y_true.not_equal(&y_true),
        };
        where_(&is_greater, &decision, decision.negative())
    };
    let losses = (1.0 - margins).maximum(0.0);
    Ok(pass.total(&losses, weights.as_ref(), Total::Mean)?[0])
}

/// Labels and values for each class.
pub(super) struct Outputs {
    /// (n,), int64.
    pub(super) y_true: Tensor,
    /// (n, columns), float64.
    pub(super) values: Tensor,
    pub(super) count: usize,
}

impl Outputs {
    /// Labels (n,), and values (n,) or (n, columns).
    #[track_caller]
    pub(super) fn new(y_true: &Tensor, values: &Tensor, name: &str) -> Result<Outputs> {
        let known = settled(&[y_true, values])?;
        let count = common_length(&[&known[0], &known[1]])?;
        let y_true = labels(&known[0], "y_true")?;
        let values = floats(&known[1], name)?;
        let values = match values.shape()? {
            [_] => values.expand_dims(1),
            [_, _] => values,
            shape => {
                let shape = shape_text(shape);
                return Err(value_error(format!(
                    "{name} has shape {shape}, (n,) or (n, classes) is expected"
                )));
            }
        };
        Ok(Outputs { y_true, values, count })
    }
}

/// Whether each sample is of each class; (n, classes). Every sample must be of one.
pub(super) fn columns_of(y_true: &Tensor, classes: &[i64], pass: &mut Pass) -> Tensor {
    let classes = Tensor::from_elements(&[classes.len()], classes);
    let is_class = y_true.expand_dims(1).equal(classes);
    pass.require(&is_class.any(1), "y_true contains labels not in parameter 'labels'");
    is_class
}

fn require_probabilities(values: &Tensor, pass: &mut Pass) {
    pass.require_finite(values, "y_prob");
    pass.require(&values.less_equal(1.0), "y_prob contains values greater than 1");
    pass.require(&values.greater_equal(0.0), "y_prob contains values less than 0");
}

/// The given classes in ascending order, or those of the samples.
#[track_caller]
pub(super) fn sorted(labels: Option<Vec<i64>>, y_true: &Tensor) -> Result<Vec<i64>> {
    let Some(mut labels) = labels else { return classes_of(y_true) };
    labels.sort_unstable();
    labels.dedup();
    Ok(labels)
}

#[track_caller]
fn two_or_more(y_true: &Tensor, labels: Option<Vec<i64>>) -> Result<Vec<i64>> {
    let are_given = labels.is_some();
    let classes = sorted(labels, y_true)?;
    if 2 <= classes.len() {
        return Ok(classes);
    }
    let found = listed(&classes, ", ");
    Err(value_error(if are_given {
        format!("The labels array needs to contain at least two labels, got [{found}].")
    } else {
        format!(
            "y_true contains only one label ({found}). Please provide the list of all expected class labels explicitly through the labels argument."
        )
    }))
}

#[track_caller]
pub(super) fn check_width(classes: &[i64], width: usize) -> Result<()> {
    if classes.len() == width {
        return Ok(());
    }
    let (count, found) = (classes.len(), listed(classes, " "));
    let text = format!(
        "y_true and y_prob contain different number of classes: {count} vs {width}. Please provide the true labels explicitly through the labels argument. Classes found in y_true: [{found}]"
    );
    Err(value_error(text))
}

/// A column for each class: of a single column, that of the greater class, and its complement.
#[track_caller]
fn one_of_each(values: &Tensor, classes: &[i64]) -> Result<Tensor> {
    let width = values.shape()?[1];
    if width != 1 {
        check_width(classes, width)?;
        return Ok(values.clone());
    }
    check_width(classes, 2)?;
    Ok(tharsis_numeric::concatenate(&[&(1.0 - values), values], 1))
}

/// The class that a single column is about.
#[track_caller]
fn positive_class(y_true: &Tensor, pos_label: Option<i64>) -> Result<i64> {
    let classes = classes_of(y_true)?;
    if 2 < classes.len() {
        let text = "The type of the target inferred from y_true is multiclass but should be binary according to the shape of y_prob.";
        return Err(value_error(text));
    }
    Ok(match (pos_label, &classes[..]) {
        (Some(label), _) => label,
        (None, [-1] | [0]) => 1,
        (None, [.., greater]) => *greater,
        (None, []) => 1,
    })
}
