//! Metrics of predicted numbers.

use super::args::{function, pair, reals, weights};
use super::classification::{WEIGHT, Y_PRED, Y_TRUE, score, weighted};
use super::model::real;
use crate::metrics::{
    Explained, MultiOutput, Pinball, Regression, Score, Tweedie, d2_absolute_error_score, d2_pinball_score,
    d2_tweedie_score, explained_variance_score, max_error, mean_absolute_error,
    mean_absolute_percentage_error, mean_gamma_deviance, mean_pinball_loss, mean_poisson_deviance,
    mean_squared_error, mean_squared_log_error, mean_tweedie_deviance, median_absolute_error, r2_score,
    root_mean_squared_error, root_mean_squared_log_error,
};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Argument, Bound, Kind, Look, Param, Preset, Row};

type Args<'a> = &'a Bound<Value>;

/// Reductions of the values of several outputs.
const OUTPUTS: Kind = Kind::OneOf(&[Kind::Choice(&["raw_values", "uniform_average"]), Kind::Array]);
const OUTPUTS_BY_VARIANCE: Kind =
    Kind::OneOf(&[Kind::Choice(&["raw_values", "uniform_average", "variance_weighted"]), Kind::Array]);
const MULTIOUTPUT: Param = Param::new("multioutput", OUTPUTS, Preset::Text("uniform_average")).keyword();
const ALPHA: Param = Param::new("alpha", Kind::Real, Preset::Real(0.5)).keyword();

const ERRORS: &[Param] = &[Y_TRUE, Y_PRED, WEIGHT, MULTIOUTPUT];
const PINBALL: &[Param] = &[Y_TRUE, Y_PRED, WEIGHT, ALPHA, MULTIOUTPUT];
const WEIGHTED: &[Param] = &[Y_TRUE, Y_PRED, WEIGHT];
const TWEEDIE: &[Param] =
    &[Y_TRUE, Y_PRED, WEIGHT, Param::new("power", Kind::Real, Preset::Integer(0)).keyword()];
const EXPLAINED: &[Param] = &[
    Y_TRUE,
    Y_PRED,
    WEIGHT,
    Param::new("multioutput", OUTPUTS_BY_VARIANCE, Preset::Text("uniform_average")).keyword(),
    Param::new("force_finite", Kind::Boolean, Preset::Boolean(true)).keyword(),
];

/// The metrics of predicted numbers.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    function("sk.metrics.mean_squared_error", ERRORS, "mean square of errors", |args, _| {
        errors(args, mean_squared_error)
    }),
    function("sk.metrics.root_mean_squared_error", ERRORS, "root of the mean square of errors", |args, _| {
        errors(args, root_mean_squared_error)
    }),
    function("sk.metrics.mean_absolute_error", ERRORS, "mean of absolute errors", |args, _| {
        errors(args, mean_absolute_error)
    }),
    function(
        "sk.metrics.mean_absolute_percentage_error",
        ERRORS,
        "mean of errors in parts of the true values",
        |args, _| errors(args, mean_absolute_percentage_error),
    ),
    function(
        "sk.metrics.mean_squared_log_error",
        ERRORS,
        "mean square of errors of logarithms",
        |args, _| errors(args, mean_squared_log_error),
    ),
    function(
        "sk.metrics.root_mean_squared_log_error",
        ERRORS,
        "root of the mean square of errors of logarithms",
        |args, _| errors(args, root_mean_squared_log_error),
    ),
    function(
        "sk.metrics.median_absolute_error",
        &[Y_TRUE, Y_PRED, MULTIOUTPUT, WEIGHT],
        "median of absolute errors",
        |args, _| errors(args, median_absolute_error),
    ),
    function(
        "sk.metrics.d2_absolute_error_score",
        ERRORS,
        "share of absolute errors explained",
        |args, _| errors(args, d2_absolute_error_score),
    ),
    function("sk.metrics.mean_pinball_loss", PINBALL, "loss of a quantile", |args, _| {
        pinball(args, mean_pinball_loss)
    }),
    function(
        "sk.metrics.d2_pinball_score",
        PINBALL,
        "share of the loss of a quantile explained",
        |args, _| pinball(args, d2_pinball_score),
    ),
    function("sk.metrics.r2_score", EXPLAINED, "share of the variance explained", |args, _| {
        explained(args, r2_score)
    }),
    function(
        "sk.metrics.explained_variance_score",
        EXPLAINED,
        "as r2_score, with the mean of errors left out",
        |args, _| explained(args, explained_variance_score),
    ),
    function("sk.metrics.max_error", &[Y_TRUE, Y_PRED], "largest absolute error", |args, _| {
        let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
        Ok(real(max_error(&y_true, &y_pred)?))
    }),
    function(
        "sk.metrics.mean_tweedie_deviance",
        TWEEDIE,
        "mean deviance of a Tweedie distribution",
        |args, _| tweedie(args, mean_tweedie_deviance),
    ),
    function("sk.metrics.d2_tweedie_score", TWEEDIE, "share of a Tweedie deviance explained", |args, _| {
        tweedie(args, d2_tweedie_score)
    }),
    function("sk.metrics.mean_poisson_deviance", WEIGHTED, "mean deviance of counts", |args, _| {
        weighted(args, mean_poisson_deviance)
    }),
    function(
        "sk.metrics.mean_gamma_deviance",
        WEIGHTED,
        "mean deviance of the gamma distribution",
        |args, _| weighted(args, mean_gamma_deviance),
    ),
];

fn multioutput(args: Args<'_>) -> Result<MultiOutput, Failure> {
    let value = args.value("multioutput")?;
    Ok(match value.look() {
        Look::Text("raw_values") => MultiOutput::RawValues,
        Look::Text("uniform_average") => MultiOutput::UniformAverage,
        Look::Text(_) => MultiOutput::VarianceWeighted,
        _ => MultiOutput::Weights(reals(value)?),
    })
}

fn errors(
    args: Args<'_>,
    metric: fn(&Tensor, &Tensor, Regression) -> crate::Result<Score>,
) -> Result<Value, Failure> {
    let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
    let options = Regression { sample_weight: weights(args)?, multioutput: multioutput(args)? };
    Ok(score(metric(&y_true, &y_pred, options)?))
}

fn pinball(
    args: Args<'_>,
    metric: fn(&Tensor, &Tensor, Pinball) -> crate::Result<Score>,
) -> Result<Value, Failure> {
    let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
    let options = Pinball {
        alpha: args.real("alpha")?,
        sample_weight: weights(args)?,
        multioutput: multioutput(args)?,
    };
    Ok(score(metric(&y_true, &y_pred, options)?))
}

fn explained(
    args: Args<'_>,
    metric: fn(&Tensor, &Tensor, Explained) -> crate::Result<Score>,
) -> Result<Value, Failure> {
    let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
    let options = Explained {
        sample_weight: weights(args)?,
        multioutput: multioutput(args)?,
        force_finite: args.boolean("force_finite")?,
    };
    Ok(score(metric(&y_true, &y_pred, options)?))
}

fn tweedie(
    args: Args<'_>,
    metric: fn(&Tensor, &Tensor, Tweedie) -> crate::Result<f64>,
) -> Result<Value, Failure> {
    let (y_true, y_pred) = pair(args, "y_true", "y_pred")?;
    let options = Tweedie { sample_weight: weights(args)?, power: args.real("power")? };
    Ok(real(metric(&y_true, &y_pred, options)?))
}
