//! Metrics of predicted numbers.

use super::inputs::{Pass, Total, common_length, divisor, floats, settled, shape_text, value_error};
use super::options::defaults;
use super::score::Score;
use crate::Result;
use tharsis_numeric::{Tensor, concatenate, where_};

/// Reduction of the values of several outputs to one.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MultiOutput {
    /// No reduction: a value for each output.
    RawValues,
    /// The mean.
    #[default]
    UniformAverage,
    /// The mean, weighted by the variances of the true values; of R² and the like only.
    VarianceWeighted,
    /// The mean with these weights, one for each output.
    Weights(Vec<f64>),
}

/// Options of the errors of predicted numbers.
#[derive(Clone, Debug, Default)]
pub struct Regression {
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// Reduction of the values of outputs to one.
    pub multioutput: MultiOutput,
}

/// Options of [`mean_pinball_loss`] and [`d2_pinball_score`](super::d2_pinball_score).
#[derive(Clone, Debug)]
pub struct Pinball {
    /// The quantile that is predicted.
    pub alpha: f64,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// Reduction of the values of outputs to one.
    pub multioutput: MultiOutput,
}

impl Default for Pinball {
    fn default() -> Pinball {
        Pinball { alpha: 0.5, sample_weight: None, multioutput: MultiOutput::UniformAverage }
    }
}

defaults!(Pinball, Regression);

/// The defaults with this reduction of outputs.
impl From<MultiOutput> for Regression {
    fn from(multioutput: MultiOutput) -> Regression {
        Regression { multioutput, ..Regression::default() }
    }
}

/// scikit-learn's `mean_squared_error`; (n,) or (n, outputs).
///
/// ```
/// use tharsis_learn::metrics::mean_squared_error;
/// use tharsis_numeric::array;
/// let found = mean_squared_error(&array([3.0, -0.5, 2.0, 7.0]), &array([2.5, 0.0, 2.0, 8.0]), ..)?;
/// assert_eq!(found.value(), 0.375);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for different shapes, no samples, values or weights that are not finite, and options that do
/// not fit; `ZeroDivisionError` if weights sum to zero.
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn mean_squared_error(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Regression>) -> Result<Score> {
    Targets::mean(y_true, y_pred, options.into(), |y_true, y_pred, _| y_true.subtract(y_pred).square())
}

/// scikit-learn's `root_mean_squared_error`: the root of the mean squared error of each output.
///
/// ```
/// use tharsis_learn::metrics::root_mean_squared_error;
/// use tharsis_numeric::array;
/// let found = root_mean_squared_error(&array([3.0, -0.5]), &array([2.5, 0.0]), ..)?;
/// assert_eq!(found.value(), 0.5);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`].
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn root_mean_squared_error(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<Regression>,
) -> Result<Score> {
    let Regression { sample_weight, multioutput } = options.into();
    let raw = Regression { sample_weight, multioutput: MultiOutput::RawValues };
    let squares = mean_squared_error(y_true, y_pred, raw)?;
    reduced(squares.values().iter().map(|square| square.sqrt()).collect(), &multioutput)
}

/// scikit-learn's `mean_absolute_error`; (n,) or (n, outputs).
///
/// ```
/// use tharsis_learn::metrics::mean_absolute_error;
/// use tharsis_numeric::array;
/// let found = mean_absolute_error(&array([3.0, -0.5, 2.0, 7.0]), &array([2.5, 0.0, 2.0, 8.0]), ..)?;
/// assert_eq!(found.value(), 0.5);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`].
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn mean_absolute_error(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<Regression>,
) -> Result<Score> {
    Targets::mean(y_true, y_pred, options.into(), |y_true, y_pred, _| y_true.subtract(y_pred).abs())
}

/// scikit-learn's `mean_absolute_percentage_error`: the mean of errors relative to the true values, as
/// fractions; 2^-52 is the smallest divisor.
///
/// ```
/// use tharsis_learn::metrics::mean_absolute_percentage_error;
/// use tharsis_numeric::array;
/// let found = mean_absolute_percentage_error(&array([4.0, 2.0]), &array([5.0, 2.0]), ..)?;
/// assert_eq!(found.value(), 0.125);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`].
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn mean_absolute_percentage_error(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<Regression>,
) -> Result<Score> {
    Targets::mean(y_true, y_pred, options.into(), |y_true, y_pred, _| {
        y_pred.subtract(y_true).abs().divide(y_true.abs().maximum(f64::EPSILON))
    })
}

/// scikit-learn's `mean_squared_log_error`: the mean squared error of `log(1 + y)`.
///
/// ```
/// use tharsis_learn::metrics::mean_squared_log_error;
/// use tharsis_numeric::array;
/// let found = mean_squared_log_error(&array([3.0, 5.0, 2.5, 7.0]), &array([2.5, 5.0, 4.0, 8.0]), ..)?;
/// assert!((found.value() - 0.0397).abs() < 1e-4);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`]; `ValueError` for values of -1 or less.
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn mean_squared_log_error(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<Regression>,
) -> Result<Score> {
    Targets::mean(y_true, y_pred, options.into(), log_errors)
}

/// The squared errors of logarithms.
fn log_errors(y_true: &Tensor, y_pred: &Tensor, pass: &mut Pass) -> Tensor {
    let mut log = |y: &Tensor| {
        let is_valid = y.greater(-1.0);
        let text = "Mean Squared Logarithmic Error cannot be used when targets contain values less than or equal to -1.";
        pass.require(&is_valid, text);
        where_(&is_valid, y, 0.0).log1p()
    };
    log(y_true).subtract(log(y_pred)).square()
}

/// scikit-learn's `root_mean_squared_log_error`: the root of the mean squared error of `log(1 + y)`.
///
/// ```
/// use tharsis_learn::metrics::root_mean_squared_log_error;
/// use tharsis_numeric::array;
/// let found = root_mean_squared_log_error(&array([3.0, 1.0]), &array([1.0, 3.0]), ..)?;
/// assert!((found.value() - 2f64.ln()).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_log_error`].
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn root_mean_squared_log_error(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<Regression>,
) -> Result<Score> {
    let Regression { sample_weight, multioutput } = options.into();
    let raw = Regression { sample_weight, multioutput: MultiOutput::RawValues };
    let squares = mean_squared_log_error(y_true, y_pred, raw)?;
    reduced(squares.values().iter().map(|square| square.sqrt()).collect(), &multioutput)
}

/// scikit-learn's `mean_pinball_loss`: the loss whose best prediction is the quantile `alpha`.
///
/// ```
/// use tharsis_learn::metrics::{Pinball, mean_pinball_loss};
/// use tharsis_numeric::array;
/// let options = Pinball { alpha: 0.1, ..Pinball::default() };
/// let found = mean_pinball_loss(&array([1.0, 2.0, 3.0]), &array([0.0, 2.0, 3.0]), options)?;
/// assert!((found.value() - 0.1 / 3.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`]; `ValueError` for `alpha` beyond 0 and 1.
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn mean_pinball_loss(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Pinball>) -> Result<Score> {
    let Pinball { alpha, sample_weight, multioutput } = options.into();
    check_alpha(alpha)?;
    let options = Regression { sample_weight, multioutput };
    Targets::mean(y_true, y_pred, options, |y_true, y_pred, _| pinball(y_true, y_pred, alpha))
}

#[track_caller]
pub(super) fn check_alpha(alpha: f64) -> Result<()> {
    if (0.0..=1.0).contains(&alpha) {
        return Ok(());
    }
    let text = format!("The 'alpha' parameter must be a float in the range [0, 1]. Got {alpha} instead.");
    Err(value_error(text))
}

pub(super) fn pinball(y_true: &Tensor, y_pred: &Tensor, alpha: f64) -> Tensor {
    let above = y_true.subtract(y_pred);
    where_(&above.greater_equal(0.0), above.multiply(alpha), above.multiply(alpha - 1.0))
}

/// scikit-learn's `max_error`: the largest absolute error; (n,).
///
/// ```
/// use tharsis_learn::metrics::max_error;
/// use tharsis_numeric::array;
/// assert_eq!(max_error(&array([3.0, 2.0, 7.0, 1.0]), &array([4.0, 2.0, 7.0, 1.0]))?, 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`]; `ValueError` for more than one output.
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn max_error(y_true: &Tensor, y_pred: &Tensor) -> Result<f64> {
    let Targets { y_true, y_pred, mut pass, .. } = Targets::new(y_true, y_pred, None)?;
    if y_true.shape()?[1] != 1 {
        return Err(value_error("Multioutput not supported in max_error"));
    }
    pass.want(y_true.subtract(y_pred).abs().max(..));
    pass.run()?.one()
}

/// scikit-learn's `median_absolute_error`; (n,) or (n, outputs). The median of weighted samples has half of
/// the weight on each side.
///
/// ```
/// use tharsis_learn::metrics::median_absolute_error;
/// use tharsis_numeric::array;
/// let found = median_absolute_error(&array([3.0, -0.5, 2.0, 7.0]), &array([2.5, 0.0, 2.0, 8.0]), ..)?;
/// assert_eq!(found.value(), 0.5);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`].
///
/// # Distributed
/// As [`Tensor::median`]; as [`Tensor::argsort`] with weights.
#[track_caller]
pub fn median_absolute_error(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<Regression>,
) -> Result<Score> {
    let Regression { sample_weight, multioutput } = options.into();
    let Targets { y_true, y_pred, mut pass, weights, .. } =
        Targets::new(y_true, y_pred, sample_weight.as_ref())?;
    let errors = y_true.subtract(y_pred).abs();
    pass.want(match &weights {
        None => errors.median(0),
        Some(weights) => weighted_quantile(&errors, weights, 0.5, Neighbours::Mean)?,
    });
    reduced(pass.run()?.next()?, &multioutput)
}

/// The quantile where the weights are cut between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Neighbours {
    /// The lower one.
    Lower,
    /// The mean of both.
    Mean,
}

/// The quantile of each column of (n, outputs), with as many of the weights below it. (outputs,)
#[track_caller]
pub(crate) fn weighted_quantile(
    x: &Tensor,
    weights: &Tensor,
    alpha: f64,
    neighbours: Neighbours,
) -> Result<Tensor> {
    let lost = || value_error("a quantile has been lost");
    weighted_quantiles(x, weights, &[alpha], neighbours)?.pop().ok_or_else(lost)
}

/// As [`weighted_quantile`], of several parts of the weights by one sort of each column.
#[track_caller]
pub(crate) fn weighted_quantiles(
    x: &Tensor,
    weights: &Tensor,
    alphas: &[f64],
    neighbours: Neighbours,
) -> Result<Vec<Tensor>> {
    let last = x.shape()?[0] as i64 - 1;
    let mut columns: Vec<Vec<Tensor>> = alphas.iter().map(|_| Vec::new()).collect();
    for column in x.unstack(1)? {
        let order = column.argsort(0);
        let sums = weights.take_at(&order, 0).cumsum(0);
        let sorted = column.take_at(&order, 0);
        let total = sums.get(&[tharsis_numeric::Index::At(-1)]).reshape(&[1]);
        // Rounding of sums does not decide whether the weights are cut between two samples.
        let slack = total.multiply(2.0 * f64::EPSILON);
        for (alpha, made) in alphas.iter().zip(&mut columns) {
            let rank = total.multiply(*alpha);
            // Nor is a sample without weight the first or the last one.
            let low = rank.subtract(&slack).maximum(f64::MIN_POSITIVE);
            let low = sums.searchsorted(&low).minimum(last);
            if neighbours == Neighbours::Lower {
                made.push(sorted.take_at(&low, 0));
                continue;
            }
            let high = sums.searchsorted_right(&rank.add(&slack));
            let high = where_(&high.greater(last), &low, &high);
            made.push(sorted.take_at(&low, 0).add(sorted.take_at(&high, 0)).multiply(0.5));
        }
    }
    Ok(columns.iter().map(|parts| concatenate(&parts.iter().collect::<Vec<_>>(), 0)).collect())
}

/// True and predicted numbers (n, outputs), checked in the pass that reads them.
pub(super) struct Targets {
    pub(super) y_true: Tensor,
    pub(super) y_pred: Tensor,
    pub(super) weights: Option<Tensor>,
    pub(super) count: usize,
    pub(super) pass: Pass,
}

impl Targets {
    #[track_caller]
    pub(super) fn new(y_true: &Tensor, y_pred: &Tensor, sample_weight: Option<&Tensor>) -> Result<Targets> {
        let known = settled(&[y_true, y_pred])?;
        let count = common_length(&[&known[0], &known[1]])?;
        let (y_true, y_pred) = (in_columns(&known[0], "y_true")?, in_columns(&known[1], "y_pred")?);
        let widths = [y_true.shape()?[1], y_pred.shape()?[1]];
        if widths[0] != widths[1] {
            let text =
                format!("y_true and y_pred have different number of output ({}!={})", widths[0], widths[1]);
            return Err(value_error(text));
        }
        let mut pass = Pass::default();
        pass.require_finite(&y_true, "y_true");
        pass.require_finite(&y_pred, "y_pred");
        let weights = pass.weights(sample_weight, count)?;
        Ok(Targets { y_true, y_pred, weights, count, pass })
    }

    /// The mean of an error (n, outputs), reduced to one.
    #[track_caller]
    fn mean(
        y_true: &Tensor,
        y_pred: &Tensor,
        options: Regression,
        error: impl FnOnce(&Tensor, &Tensor, &mut Pass) -> Tensor,
    ) -> Result<Score> {
        let Regression { sample_weight, multioutput } = options;
        let Targets { y_true, y_pred, weights, mut pass, .. } =
            Targets::new(y_true, y_pred, sample_weight.as_ref())?;
        let errors = error(&y_true, &y_pred, &mut pass);
        reduced(pass.total(&errors, weights.as_ref(), Total::Mean)?, &multioutput)
    }

    /// Values (n, outputs) times the weights of their samples.
    pub(super) fn weighted(&self, values: &Tensor) -> Tensor {
        match &self.weights {
            None => values.clone(),
            Some(weights) => values.multiply(weights.expand_dims(1)),
        }
    }

    /// The means of columns; (outputs,).
    pub(super) fn mean_of(&self, values: &Tensor) -> Tensor {
        let sums = self.weighted(values).sum(0);
        match &self.weights {
            None => sums.divide(self.count as f64),
            Some(weights) => sums.divide(weights.sum(..)),
        }
    }
}

#[track_caller]
fn in_columns(x: &Tensor, name: &str) -> Result<Tensor> {
    let x = floats(x, name)?;
    match x.shape()? {
        [_] => Ok(x.expand_dims(1)),
        [_, _] => Ok(x),
        shape => {
            let text = format!("{name} has shape {}, (n,) or (n, outputs) is expected", shape_text(shape));
            Err(value_error(text))
        }
    }
}

/// The values of outputs, reduced to one.
#[track_caller]
pub(super) fn reduced(values: Vec<f64>, outputs: &MultiOutput) -> Result<Score> {
    match outputs {
        MultiOutput::RawValues => Ok(Score::Each(values)),
        MultiOutput::UniformAverage => Ok(Score::One(values.iter().sum::<f64>() / values.len() as f64)),
        MultiOutput::VarianceWeighted => {
            Err(value_error("multioutput='variance_weighted' is for R² and explained variance only"))
        }
        MultiOutput::Weights(weights) if weights.len() == values.len() => {
            let sum: f64 = values.iter().zip(weights).map(|(value, weight)| value * weight).sum();
            Ok(Score::One(sum / divisor(weights.iter().sum())?))
        }
        MultiOutput::Weights(weights) => {
            let (given, count) = (weights.len(), values.len());
            let text = format!("There must be equally many custom weights ({given}) as outputs ({count}).");
            Err(value_error(text))
        }
    }
}
