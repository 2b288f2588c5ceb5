//! Generalized linear models.

use super::args::{VERBOSE, WARM_START, class};
use super::model::{array, model, supervised_score, whole};
use super::object::{Class, Instance};
use crate::linear_model::{FittedGeneralized, GammaRegressor, PoissonRegressor, TweedieRegressor};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static POISSON: Class = Class::supervised("PoissonRegressor");
static GAMMA: Class = Class::supervised("GammaRegressor");
static TWEEDIE: Class = Class::supervised("TweedieRegressor");

const ALPHA: Param = Param::new("alpha", Kind::Real, Preset::Real(1.0)).keyword();
const FIT_INTERCEPT: Param = Param::new("fit_intercept", Kind::Boolean, Preset::Boolean(true)).keyword();
const SOLVER: Param =
    Param::new("solver", Kind::Choice(&["lbfgs", "newton-cholesky"]), Preset::Text("lbfgs"))
        .keyword()
        .fixed();
const MAX_ITER: Param = Param::new("max_iter", Kind::Integer, Preset::Integer(100)).keyword();
const TOL: Param = Param::new("tol", Kind::Real, Preset::Real(1e-4)).keyword();

/// The generalized linear models.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.linear_model.PoissonRegressor",
        &[ALPHA, FIT_INTERCEPT, SOLVER, MAX_ITER, TOL, WARM_START, VERBOSE],
        "means of counts, whose logarithms are linear",
        |args, _| Instance::made::<PoissonRegressor>(&POISSON, args),
    ),
    class(
        "sk.linear_model.GammaRegressor",
        &[ALPHA, FIT_INTERCEPT, SOLVER, MAX_ITER, TOL, WARM_START, VERBOSE],
        "means of positive numbers, whose logarithms are linear",
        |args, _| Instance::made::<GammaRegressor>(&GAMMA, args),
    ),
    class(
        "sk.linear_model.TweedieRegressor",
        &[
            Param::new("power", Kind::Real, Preset::Real(0.0)).keyword(),
            ALPHA,
            FIT_INTERCEPT,
            Param::new("link", Kind::Choice(&["auto", "identity", "log"]), Preset::Text("auto")).keyword(),
            SOLVER,
            MAX_ITER,
            TOL,
            WARM_START,
            VERBOSE,
        ],
        "means of numbers whose variance is a power of them",
        |args, _| Instance::made::<TweedieRegressor>(&TWEEDIE, args),
    ),
];

model!(
    FittedGeneralized,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.converged,
    attributes: |m| {
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "n_iter_" => whole(m.n_iter),
    },
);
