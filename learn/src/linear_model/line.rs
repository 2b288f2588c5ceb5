//! Coefficients and intercepts: their shapes, and the predictions that they make.

use crate::checks::samples_for;
use crate::dense::tensor;
use crate::passes::Around;
use crate::show;
use ndarray::{Array1, Array2, ArrayD, Axis};
use std::fmt;
use tharsis_numeric::Tensor;

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

/// Whether the shapes of coefficients and intercepts fit each other: (d,) and (), or (k, d) and (k,).
pub(crate) fn is_sound(coef: &ArrayD<f64>, intercept: &ArrayD<f64>) -> bool {
    match (coef.shape(), intercept.shape()) {
        ([features], []) => 0 < *features,
        ([targets, features], [found]) => 0 < *features && targets == found,
        _ => false,
    }
}

/// The predictions of a linear model, as an expression.
#[track_caller]
pub(crate) fn predict(model: &str, x: &Tensor, coef: &ArrayD<f64>, intercept: &ArrayD<f64>) -> Tensor {
    match samples_for(model, x, columns(coef)) {
        Ok(samples) => samples.matmul(&tensor(coef).t()) + tensor(intercept),
        Err(error) => Tensor::from(error),
    }
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

/// The methods of a fitted linear regressor, and what all models have. `is_sound` tells of one that is read
/// whether its further parts fit its coefficients.
macro_rules! line_model {
    ($fitted:ty, $kind:literal, |$named:ident| $name:expr, |$read:ident| $is_sound:expr) => {
        impl $fitted {
            /// The predictions for samples (n, d), as an expression: (n,), or (n, k) for several targets;
            /// float64. Carries a `ValueError` for another number of features; when run for NaN and infinity.
            #[track_caller]
            pub fn predict(&self, x: &Tensor) -> Tensor {
                let $named = self;
                $crate::linear_model::line::predict($name, x, &self.coef, &self.intercept)
            }

            /// R² of the predictions for samples (n, d) with these targets.
            ///
            /// # Errors
            /// `ValueError` for shapes that do not fit, NaN and infinity; errors of the pass.
            #[track_caller]
            pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
                $crate::base::Predict::score_any(self, x, y, &options.into())
            }
        }

        $crate::saved::saved!($fitted, $kind, |$read| {
            $crate::linear_model::line::is_sound(&$read.coef, &$read.intercept) && $is_sound
        });

        $crate::base::predicts!($fitted, Regression, |$named| $name);

        impl std::fmt::Display for $fitted {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $named = self;
                $crate::linear_model::line::show(f, $name, &self.coef, &self.intercept)
            }
        }
    };
}
pub(crate) use line_model;
