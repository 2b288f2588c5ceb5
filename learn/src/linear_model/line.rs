//! Coefficients and intercepts: their shapes, and the predictions that they make.

use crate::base::FitOptions;
use crate::checks::{Training, samples_for};
use crate::dense::tensor;
use crate::passes::Around;
use crate::score::r2;
use crate::show;
use ndarray::{Array1, Array2, ArrayD, Axis};
use std::fmt;
use tharsis_numeric::{Result, Tensor};

/// Coefficients and intercepts in scikit-learn's shapes: (d,) and () for a target of one axis, (k, d) and
/// (k,) for several targets.
pub(crate) struct Line {
    pub(crate) coef: ArrayD<f64>,
    pub(crate) intercept: ArrayD<f64>,
}

impl Line {
    /// The line through the means with these slopes (d, k).
    pub(crate) fn through(
        slopes: &Array2<f64>,
        mean: &Array1<f64>,
        target_mean: &Array1<f64>,
        one_axis: bool,
    ) -> Line {
        let intercept = target_mean - &slopes.t().dot(mean);
        if one_axis {
            let intercept = intercept.sum();
            return Line {
                coef: slopes.sum_axis(Axis(1)).into_dyn(),
                intercept: ndarray::arr0(intercept).into_dyn(),
            };
        }
        Line { coef: slopes.t().to_owned().into_dyn(), intercept: intercept.into_dyn() }
    }
}

/// The point around which the moments of a fit are taken.
pub(crate) fn around(fit_intercept: bool) -> Around {
    if fit_intercept { Around::Mean } else { Around::Zero }
}

/// Number of features of a model.
pub(crate) fn columns(coef: &ArrayD<f64>) -> usize {
    coef.shape().last().copied().unwrap_or(0)
}

/// The predictions of a linear model, as an expression.
#[track_caller]
pub(crate) fn predict(model: &str, x: &Tensor, coef: &ArrayD<f64>, intercept: &ArrayD<f64>) -> Tensor {
    match samples_for(model, x, columns(coef)) {
        Ok(samples) => samples.matmul(&tensor(coef).t()) + tensor(intercept),
        Err(error) => Tensor::from(error),
    }
}

/// R² of predictions, by one pass.
///
/// # Errors
/// `ValueError` for shapes that do not fit, or for NaN or infinity; errors of the pass.
#[track_caller]
pub(crate) fn score(
    model: &'static str,
    x: &Tensor,
    y: &Tensor,
    options: &FitOptions,
    predict: impl Fn(&Tensor) -> Tensor,
) -> Result<f64> {
    let training = Training::supervised(model, x, Some(y), options)?;
    r2(&training, &predict(&training.x))
}

/// Text of a linear model.
pub(crate) fn show(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    coef: &ArrayD<f64>,
    intercept: &ArrayD<f64>,
) -> fmt::Result {
    write!(f, "{name} of {} features", columns(coef))?;
    show::rows(f, "coef", coef)?;
    show::line(f, "intercept", intercept)
}
