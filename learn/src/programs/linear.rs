//! Linear models.

use super::args::{COPY_X, N_JOBS, RANDOM_STATE, VERBOSE, WARM_START, class};
use super::model::{array, classes, model, numbers, one_or_all, real, supervised_score, whole, wholes};
use super::object::{Class, Instance};
use crate::linear_model::{
    ElasticNet, FittedElasticNet, FittedHuberRegressor, FittedLinearRegression, FittedLogisticRegression,
    FittedRidge, FittedRidgeClassifier, HuberRegressor, Lasso, LinearRegression, LogisticRegression, Ridge,
    RidgeClassifier,
};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static LINEAR_REGRESSION: Class = Class::supervised("LinearRegression");
static RIDGE: Class = Class { absent: &["solver_"], ..Class::supervised("Ridge") };
static RIDGE_CLASSIFIER: Class = Class { absent: &["solver_"], ..Class::supervised("RidgeClassifier") };
static LASSO: Class = Class { absent: &["sparse_coef_"], ..Class::supervised("Lasso") };
static ELASTIC_NET: Class = Class { absent: &["sparse_coef_"], ..Class::supervised("ElasticNet") };
static HUBER: Class = Class { absent: &["outliers_"], ..Class::supervised("HuberRegressor") };
static LOGISTIC_REGRESSION: Class = Class::supervised("LogisticRegression");

const ALPHA: Param = Param::new("alpha", Kind::Real, Preset::Real(1.0));
const FIT_INTERCEPT: Param = Param::new("fit_intercept", Kind::Boolean, Preset::Boolean(true)).keyword();
const POSITIVE: Param = Param::new("positive", Kind::Boolean, Preset::Boolean(false)).keyword();
const TOL: Param = Param::new("tol", Kind::Real, Preset::Real(1e-4)).keyword();
const MAX_ITER: Param =
    Param::new("max_iter", Kind::OneOf(&[Kind::Integer, Kind::None]), Preset::Integer(1000))
        .keyword()
        .only(Kind::Integer);
const PRECOMPUTE: Param =
    Param::new("precompute", Kind::OneOf(&[Kind::Boolean, Kind::Array]), Preset::Boolean(false))
        .keyword()
        .fixed();
const SELECTION: Param =
    Param::new("selection", Kind::Choice(&["cyclic", "random"]), Preset::Text("cyclic")).keyword().fixed();

const STEPS_OR_NONE: Param =
    Param::new("max_iter", Kind::OneOf(&[Kind::Integer, Kind::None]), Preset::None).keyword().fixed();
const RIDGE_SOLVER: Param = Param::new(
    "solver",
    Kind::Choice(&["auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"]),
    Preset::Text("auto"),
)
.keyword()
.only(Kind::Choice(&["auto", "cholesky"]));

/// The linear models.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.linear_model.LinearRegression",
        &[
            FIT_INTERCEPT,
            COPY_X,
            Param::new("tol", Kind::Real, Preset::Real(1e-6)).keyword(),
            N_JOBS,
            POSITIVE.fixed(),
        ],
        "least squares",
        |args, _| Instance::made::<LinearRegression>(&LINEAR_REGRESSION, args),
    ),
    class(
        "sk.linear_model.Ridge",
        &[
            Param::new("alpha", Kind::OneOf(&[Kind::Real, Kind::Array]), Preset::Real(1.0)).only(Kind::Real),
            FIT_INTERCEPT,
            COPY_X,
            STEPS_OR_NONE,
            TOL.fixed(),
            RIDGE_SOLVER,
            POSITIVE.fixed(),
            RANDOM_STATE,
        ],
        "least squares with a penalty on the squares of the coefficients",
        |args, _| Instance::made::<Ridge>(&RIDGE, args),
    ),
    class(
        "sk.linear_model.RidgeClassifier",
        &[
            ALPHA,
            FIT_INTERCEPT,
            COPY_X,
            STEPS_OR_NONE,
            TOL.fixed(),
            Param::new("class_weight", Kind::Anything, Preset::None).keyword().fixed(),
            RIDGE_SOLVER,
            POSITIVE.fixed(),
            RANDOM_STATE,
        ],
        "classes by least squares on targets of -1 and 1",
        |args, _| Instance::made::<RidgeClassifier>(&RIDGE_CLASSIFIER, args),
    ),
    class(
        "sk.linear_model.Lasso",
        &[
            ALPHA,
            FIT_INTERCEPT,
            PRECOMPUTE,
            COPY_X,
            MAX_ITER,
            TOL,
            WARM_START,
            POSITIVE,
            RANDOM_STATE,
            SELECTION,
        ],
        "least squares with a penalty on the absolute values of the coefficients",
        |args, _| Instance::made::<Lasso>(&LASSO, args),
    ),
    class(
        "sk.linear_model.ElasticNet",
        &[
            ALPHA,
            Param::new("l1_ratio", Kind::Real, Preset::Real(0.5)).keyword(),
            FIT_INTERCEPT,
            PRECOMPUTE,
            MAX_ITER,
            COPY_X,
            TOL,
            WARM_START,
            POSITIVE,
            RANDOM_STATE,
            SELECTION,
        ],
        "least squares with both penalties",
        |args, _| Instance::made::<ElasticNet>(&ELASTIC_NET, args),
    ),
    class(
        "sk.linear_model.HuberRegressor",
        &[
            Param::new("epsilon", Kind::Real, Preset::Real(1.35)).keyword(),
            Param::new("max_iter", Kind::Integer, Preset::Integer(100)).keyword(),
            Param::new("alpha", Kind::Real, Preset::Real(1e-4)).keyword(),
            WARM_START,
            FIT_INTERCEPT,
            Param::new("tol", Kind::Real, Preset::Real(1e-5)).keyword(),
        ],
        "a line that samples far from it do not bend",
        |args, _| Instance::made::<HuberRegressor>(&HUBER, args),
    ),
    class("sk.linear_model.LogisticRegression", LOGISTIC_PARAMS, "probabilities of classes", |args, _| {
        Instance::made::<LogisticRegression>(&LOGISTIC_REGRESSION, args)
    }),
];

const LOGISTIC_PARAMS: &[Param] = &[
    Param::new(
        "penalty",
        Kind::OneOf(&[Kind::Choice(&["l1", "l2", "elasticnet", "deprecated"]), Kind::None]),
        Preset::Text("deprecated"),
    )
    .only(Kind::Choice(&["l2", "deprecated"])),
    Param::new("C", Kind::Real, Preset::Real(1.0)).keyword(),
    Param::new("l1_ratio", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::Real(0.0)).keyword().fixed(),
    Param::new("dual", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
    TOL,
    FIT_INTERCEPT,
    Param::new("intercept_scaling", Kind::Real, Preset::Integer(1)).keyword().fixed(),
    Param::new("class_weight", Kind::Anything, Preset::None).keyword().fixed(),
    RANDOM_STATE,
    Param::new(
        "solver",
        Kind::Choice(&["lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"]),
        Preset::Text("lbfgs"),
    )
    .keyword()
    .fixed(),
    Param::new("max_iter", Kind::Integer, Preset::Integer(100)).keyword(),
    VERBOSE,
    WARM_START,
    N_JOBS,
];

model!(
    FittedLinearRegression,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "rank_" => whole(m.rank),
        "singular_" => array(&m.singular),
    },
);

model!(
    FittedRidge,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "n_iter_" => Value::None,
    },
);

model!(
    FittedRidgeClassifier,
    maps: [decision_function, predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "coef_" => if m.coef.nrows() == 1 { array(&m.coef.row(0).to_owned()) } else { array(&m.coef) },
        "intercept_" => array(&m.intercept),
        "n_iter_" => Value::None,
    },
);

model!(
    FittedElasticNet,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.converged,
    attributes: |m| {
        "coef_" => array(&m.coef),
        "dual_gap_" => one_or_all(&m.dual_gap, real, numbers),
        "intercept_" => array(&m.intercept),
        "n_iter_" => one_or_all(&m.n_iter, whole, wholes),
    },
);

model!(
    FittedHuberRegressor,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.converged,
    attributes: |m| {
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "n_iter_" => whole(m.n_iter),
        "scale_" => real(m.scale),
    },
);

model!(
    FittedLogisticRegression,
    maps: [decision_function, predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.converged,
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "n_iter_" => wholes(&[m.n_iter]),
    },
);
