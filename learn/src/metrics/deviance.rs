//! Deviances of distributions of the Tweedie family.

use super::inputs::{Pass, Total, divisor, value_error};
use super::options::{Weighted, defaults};
use super::regression::Targets;
use crate::Result;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Tensor, ones, where_};

/// Options of [`mean_tweedie_deviance`] and [`d2_tweedie_score`].
#[derive(Clone, Debug, Default)]
pub struct Tweedie {
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// Power of the mean to which the variance is proportional: 0 for the normal distribution, 1 for
    /// Poisson's, 2 for the gamma distribution, 3 for the inverse Gaussian one; none between 0 and 1.
    pub power: f64,
}

defaults!(Tweedie);

/// scikit-learn's `mean_tweedie_deviance`: the mean deviance of a distribution of the Tweedie family; (n,).
///
/// ```
/// use tharsis_learn::metrics::{Tweedie, mean_tweedie_deviance};
/// use tharsis_numeric::array;
/// let options = Tweedie { power: 1.0, ..Tweedie::default() };
/// let found = mean_tweedie_deviance(&array([2.0, 0.0, 1.0]), &array([0.5, 0.5, 2.0]), options)?;
/// assert!((found - 4f64.ln()).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_squared_error`](super::mean_squared_error); `ValueError` for more than one output, a power
/// between 0 and 1, and values that the distribution does not have.
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn mean_tweedie_deviance(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Tweedie>) -> Result<f64> {
    let Tweedie { sample_weight, power } = options.into();
    let single = Single::new(y_true, y_pred, sample_weight.as_ref())?;
    let Single { y_true, y_pred, weights, mut pass, .. } = single;
    require_support(&y_true, &y_pred, power, &mut pass)?;
    Ok(pass.total(&deviance(&y_true, &y_pred, power), weights.as_ref(), Total::Mean)?[0])
}

/// scikit-learn's `mean_poisson_deviance`: the mean Tweedie deviance of power 1.
///
/// ```
/// use tharsis_learn::metrics::mean_poisson_deviance;
/// use tharsis_numeric::array;
/// let found = mean_poisson_deviance(&array([2.0, 0.0, 1.0]), &array([0.5, 0.5, 2.0]), ..)?;
/// assert!((found - 4f64.ln()).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_tweedie_deviance`].
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn mean_poisson_deviance(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Weighted>) -> Result<f64> {
    let Weighted { sample_weight } = options.into();
    mean_tweedie_deviance(y_true, y_pred, Tweedie { sample_weight, power: 1.0 })
}

/// scikit-learn's `mean_gamma_deviance`: the mean Tweedie deviance of power 2.
///
/// ```
/// use tharsis_learn::metrics::mean_gamma_deviance;
/// use tharsis_numeric::array;
/// let found = mean_gamma_deviance(&array([2.0, 0.5, 1.0]), &array([0.5, 0.5, 2.0]), ..)?;
/// assert!((found - 1.2046).abs() < 1e-3);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_tweedie_deviance`].
///
/// # Distributed
/// One pass.
#[track_caller]
pub fn mean_gamma_deviance(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Weighted>) -> Result<f64> {
    let Weighted { sample_weight } = options.into();
    mean_tweedie_deviance(y_true, y_pred, Tweedie { sample_weight, power: 2.0 })
}

/// scikit-learn's `d2_tweedie_score`: 1 less the deviance divided by that of the mean of the true values; R²
/// for power 0. NaN for a single sample.
///
/// ```
/// use tharsis_learn::metrics::d2_tweedie_score;
/// use tharsis_numeric::array;
/// assert_eq!(d2_tweedie_score(&array([1.0, 2.0, 3.0]), &array([2.0, 2.0, 2.0]), ..)?, 0.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`mean_tweedie_deviance`]; `ZeroDivisionError` if all true values are equal.
///
/// # Distributed
/// Two passes: the mean, and the deviances.
#[track_caller]
pub fn d2_tweedie_score(y_true: &Tensor, y_pred: &Tensor, options: impl Into<Tweedie>) -> Result<f64> {
    let Tweedie { sample_weight, power } = options.into();
    let Single { y_true, y_pred, weights, mut pass, count } =
        Single::new(y_true, y_pred, sample_weight.as_ref())?;
    require_support(&y_true, &y_pred, power, &mut pass)?;
    pass.want(y_true.min(..));
    pass.want(y_true.max(..));
    let weight = weights.clone().unwrap_or_else(|| ones(&[count]));
    pass.want(y_true.multiply(&weight).sum(..));
    pass.want(weight.sum(..));
    let mut found = pass.run()?;
    let (least, most, sum, weight) = (found.one()?, found.one()?, found.one()?, found.one()?);
    if count < 2 {
        return Ok(f64::NAN);
    }
    if least == most {
        let text = "float division by zero: all true values are equal".to_owned();
        return Err(Error::here(GraphError::ZeroDivision(text)));
    }
    let mean = Tensor::number(sum / divisor(weight)?);
    let of = |y_pred: &Tensor| {
        Pass::default().total(&deviance(&y_true, y_pred, power), weights.as_ref(), Total::Mean)
    };
    Ok(1.0 - of(&y_pred)?[0] / of(&mean)?[0])
}

/// Targets of one output; (n,).
struct Single {
    y_true: Tensor,
    y_pred: Tensor,
    weights: Option<Tensor>,
    count: usize,
    pass: Pass,
}

impl Single {
    #[track_caller]
    fn new(y_true: &Tensor, y_pred: &Tensor, sample_weight: Option<&Tensor>) -> Result<Single> {
        let Targets { y_true, y_pred, weights, count, pass } = Targets::new(y_true, y_pred, sample_weight)?;
        if y_true.shape()?[1] != 1 {
            return Err(value_error("Multioutput not supported in mean_tweedie_deviance"));
        }
        let flat = |x: &Tensor| x.reshape(&[count as i64]);
        Ok(Single { y_true: flat(&y_true), y_pred: flat(&y_pred), weights, count, pass })
    }
}

/// Requires values that the distribution has.
#[track_caller]
fn require_support(y_true: &Tensor, y_pred: &Tensor, power: f64, pass: &mut Pass) -> Result<()> {
    if power.is_nan() || (0.0 < power && power < 1.0) {
        let text = format!("no distribution of the Tweedie family has power {power}");
        return Err(value_error(text));
    }
    let text = format!("Mean Tweedie deviance error with power={power} can only be used on ");
    if power != 0.0 {
        let rest = match power {
            _ if power < 0.0 => "strictly positive y_pred.",
            _ if power < 2.0 => "non-negative y and strictly positive y_pred.",
            _ => "strictly positive y and y_pred.",
        };
        let text = text + rest;
        pass.require(&y_pred.greater(0.0), text.clone());
        if 2.0 <= power {
            pass.require(&y_true.greater(0.0), text);
        } else if 0.0 < power {
            pass.require(&y_true.greater_equal(0.0), text);
        }
    }
    Ok(())
}

/// The deviance of each sample. Values that the distribution does not have give some number, without a
/// warning: a pass refuses them.
pub(crate) fn deviance(y_true: &Tensor, y_pred: &Tensor, power: f64) -> Tensor {
    if power == 0.0 {
        return y_true.subtract(y_pred).square();
    }
    let positive = |y: &Tensor| where_(&y.greater(0.0), y, 1.0);
    let (above, predicted) = (positive(y_true), positive(y_pred));
    if power == 1.0 {
        // The limit of y log y at 0 is 0, as that of its stand-in 1 log 1 times 0 is.
        let ratio = above.divide(&predicted).log();
        return y_true.multiply(ratio).subtract(y_true).add(&predicted).multiply(2.0);
    }
    if power == 2.0 {
        let ratio = predicted.divide(&above).log();
        return ratio.add(above.divide(&predicted)).subtract(1.0).multiply(2.0);
    }
    let (one, two) = (1.0 - power, 2.0 - power);
    let own = where_(&y_true.greater(0.0), above.power(two), 0.0).divide(one * two);
    let cross = y_true.multiply(predicted.power(one)).divide(one);
    own.subtract(cross).add(predicted.power(two).divide(two)).multiply(2.0)
}
