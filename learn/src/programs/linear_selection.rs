//! Linear models that choose their penalty or their features: by samples that are left out, by how likely the
//! samples are, or along a path.

use super::args::{COPY, COPY_X, INTEGER_OR_NONE, N_JOBS, RANDOM_STATE, class};
use super::model::{array, classes, model, numbers, real, supervised_score, whole, wholes};
use super::object::{Class, Instance};
use crate::linear_model::{
    ARDRegression, BayesianRidge, ElasticNetCV, FittedARDRegression, FittedBayesianRidge, FittedElasticNetCV,
    FittedLars, FittedLassoLarsCV, FittedLassoLarsIC, FittedLogisticRegressionCV,
    FittedOrthogonalMatchingPursuit, FittedOrthogonalMatchingPursuitCV, FittedRidgeCV,
    FittedRidgeClassifierCV, Lars, LassoCV, LassoLars, LassoLarsCV, LassoLarsIC, LogisticRegressionCV,
    OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV, RidgeCV, RidgeClassifierCV,
};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static RIDGE_CV: Class = Class::supervised("RidgeCV");
static RIDGE_CLASSIFIER_CV: Class = Class::supervised("RidgeClassifierCV");
static LASSO_CV: Class = Class::supervised("LassoCV");
static ELASTIC_NET_CV: Class = Class::supervised("ElasticNetCV");
static BAYESIAN_RIDGE: Class =
    Class { absent: &["scores_", "X_scale_"], ..Class::supervised("BayesianRidge") };
static ARD_REGRESSION: Class =
    Class { absent: &["scores_", "X_scale_"], ..Class::supervised("ARDRegression") };
static LOGISTIC_CV: Class =
    Class { absent: &["coefs_paths_", "scores_"], ..Class::supervised("LogisticRegressionCV") };
static LARS: Class = Class::supervised("Lars");
static LASSO_LARS: Class = Class::supervised("LassoLars");
static LASSO_LARS_CV: Class = Class::supervised("LassoLarsCV");
static LASSO_LARS_IC: Class = Class::supervised("LassoLarsIC");
static ORTHOGONAL_MATCHING_PURSUIT_CV: Class = Class::supervised("OrthogonalMatchingPursuitCV");
static ORTHOGONAL_MATCHING_PURSUIT: Class = Class::supervised("OrthogonalMatchingPursuit");

/// The default of `eps` in the paths of scikit-learn.
const EPSILON: Preset = Preset::Real(f64::EPSILON);
const REAL_OR_NONE: Kind = Kind::OneOf(&[Kind::Real, Kind::None]);
const ALPHAS: Param = Param::new(
    "alphas",
    Kind::Array,
    Preset::Tuple(&[Preset::Real(0.1), Preset::Real(1.0), Preset::Real(10.0)]),
);
const FIT_INTERCEPT: Param = Param::new("fit_intercept", Kind::Boolean, Preset::Boolean(true)).keyword();
const POSITIVE: Param = Param::new("positive", Kind::Boolean, Preset::Boolean(false)).keyword();
const SCORING: Param =
    Param::new("scoring", Kind::OneOf(&[Kind::Text, Kind::None]), Preset::None).keyword().fixed();
/// The number of folds, where scikit-learn takes splitters as well.
const CV: Param = Param::new("cv", Kind::OneOf(&[Kind::Integer, Kind::Sequence, Kind::None]), Preset::None)
    .keyword()
    .only(INTEGER_OR_NONE);
const STORE: Param = Param::new("store_cv_results", Kind::Boolean, Preset::Boolean(false)).keyword().fixed();
const VERBOSE: Param =
    Param::new("verbose", Kind::OneOf(&[Kind::Boolean, Kind::Integer]), Preset::Boolean(false))
        .keyword()
        .fixed();
const PRECOMPUTE: Param = Param::new(
    "precompute",
    Kind::OneOf(&[Kind::Boolean, Kind::Choice(&["auto"]), Kind::Array]),
    Preset::Text("auto"),
)
.keyword()
.fixed();
const EPS: Param = Param::new("eps", Kind::Real, Preset::Real(1e-3)).keyword();
const TRIED: Param =
    Param::new("alphas", Kind::OneOf(&[Kind::Integer, Kind::Array]), Preset::Integer(100)).keyword();
const ROUNDS: Param = Param::new("max_iter", Kind::Integer, Preset::Integer(1000)).keyword();
const TOL: Param = Param::new("tol", Kind::Real, Preset::Real(1e-4)).keyword();
const SELECTION: Param =
    Param::new("selection", Kind::Choice(&["cyclic", "random"]), Preset::Text("cyclic")).keyword().fixed();
const PATH_STEPS: Param = Param::new("max_iter", Kind::Integer, Preset::Integer(500)).keyword();
const PATH_EPS: Param = Param::new("eps", Kind::Real, EPSILON).keyword().fixed();
const FIT_PATH: Param = Param::new("fit_path", Kind::Boolean, Preset::Boolean(true)).keyword().fixed();
const JITTER: Param = Param::new("jitter", REAL_OR_NONE, Preset::None).keyword().fixed();

const fn small(name: &'static str) -> Param {
    Param::new(name, Kind::Real, Preset::Real(1e-6)).keyword()
}

const LOGISTIC: &[Param] = &[
    Param::new("Cs", Kind::OneOf(&[Kind::Integer, Kind::Array]), Preset::Integer(10)).keyword(),
    Param::new("l1_ratios", Kind::OneOf(&[WARN, Kind::Array, Kind::None]), Preset::Text("warn"))
        .keyword()
        .fixed(),
    FIT_INTERCEPT,
    CV,
    Param::new("dual", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
    Param::new(
        "penalty",
        Kind::Choice(&["l1", "l2", "elasticnet", "deprecated"]),
        Preset::Text("deprecated"),
    )
    .keyword()
    .only(Kind::Choice(&["l2", "deprecated"])),
    Param::new("scoring", Kind::OneOf(&[Kind::Text, Kind::None]), Preset::Text("warn")).keyword(),
    Param::new(
        "solver",
        Kind::Choice(&["lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"]),
        Preset::Text("lbfgs"),
    )
    .keyword()
    .fixed(),
    TOL,
    Param::new("max_iter", Kind::Integer, Preset::Integer(100)).keyword(),
    Param::new("class_weight", Kind::Anything, Preset::None).keyword().fixed(),
    N_JOBS,
    super::args::VERBOSE,
    Param::new("refit", Kind::Boolean, Preset::Boolean(true)).keyword(),
    Param::new("intercept_scaling", Kind::Real, Preset::Real(1.0)).keyword().fixed(),
    RANDOM_STATE,
    // Attributes as they were before scikit-learn 1.8, where it has not been told otherwise.
    Param::new("use_legacy_attributes", Kind::OneOf(&[WARN, Kind::Boolean]), Preset::Text("warn"))
        .keyword()
        .fixed(),
];

/// A default of scikit-learn that is to change.
const WARN: Kind = Kind::Choice(&["warn"]);

/// The linear models that choose their penalty or their features.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.linear_model.RidgeCV",
        &[
            ALPHAS,
            FIT_INTERCEPT,
            SCORING,
            CV,
            Param::new(
                "gcv_mode",
                Kind::OneOf(&[Kind::Choice(&["auto", "svd", "eigen"]), Kind::None]),
                Preset::None,
            )
            .keyword()
            .fixed(),
            STORE,
            Param::new("alpha_per_target", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
        ],
        "ridge regression whose penalty is chosen by samples that are left out",
        |args, _| Instance::made::<RidgeCV>(&RIDGE_CV, args),
    ),
    class(
        "sk.linear_model.RidgeClassifierCV",
        &[
            ALPHAS,
            FIT_INTERCEPT,
            SCORING,
            CV.fixed(),
            Param::new("class_weight", Kind::Anything, Preset::None).keyword().fixed(),
            STORE,
        ],
        "classes by ridge regression whose penalty is chosen by samples that are left out",
        |args, _| Instance::made::<RidgeClassifierCV>(&RIDGE_CLASSIFIER_CV, args),
    ),
    class(
        "sk.linear_model.LassoCV",
        &[
            EPS,
            TRIED,
            FIT_INTERCEPT,
            PRECOMPUTE,
            ROUNDS,
            TOL,
            COPY_X.keyword(),
            CV,
            VERBOSE,
            N_JOBS,
            POSITIVE,
            RANDOM_STATE,
            SELECTION,
        ],
        "a lasso whose penalty is chosen by folds",
        |args, _| Instance::made::<LassoCV>(&LASSO_CV, args),
    ),
    class(
        "sk.linear_model.ElasticNetCV",
        &[
            Param::new("l1_ratio", Kind::OneOf(&[Kind::Real, Kind::Array]), Preset::Real(0.5)).keyword(),
            EPS,
            TRIED,
            FIT_INTERCEPT,
            PRECOMPUTE,
            ROUNDS,
            TOL,
            CV,
            COPY_X,
            super::args::VERBOSE,
            N_JOBS,
            POSITIVE,
            RANDOM_STATE,
            SELECTION,
        ],
        "an elastic net whose penalty is chosen by folds",
        |args, _| Instance::made::<ElasticNetCV>(&ELASTIC_NET_CV, args),
    ),
    class(
        "sk.linear_model.LogisticRegressionCV",
        LOGISTIC,
        "probabilities of classes, with a penalty that is chosen by folds",
        |args, _| Instance::made::<LogisticRegressionCV>(&LOGISTIC_CV, args),
    ),
    class(
        "sk.linear_model.BayesianRidge",
        &[
            Param::new("max_iter", Kind::Integer, Preset::Integer(300)).keyword(),
            Param::new("tol", Kind::Real, Preset::Real(1e-3)).keyword(),
            small("alpha_1"),
            small("alpha_2"),
            small("lambda_1"),
            small("lambda_2"),
            Param::new("alpha_init", REAL_OR_NONE, Preset::None).keyword(),
            Param::new("lambda_init", REAL_OR_NONE, Preset::None).keyword(),
            Param::new("compute_score", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
            FIT_INTERCEPT,
            COPY_X,
            VERBOSE,
        ],
        "ridge regression with the penalty under which the samples are most likely",
        |args, _| Instance::made::<BayesianRidge>(&BAYESIAN_RIDGE, args),
    ),
    class(
        "sk.linear_model.ARDRegression",
        &[
            Param::new("max_iter", Kind::Integer, Preset::Integer(300)).keyword(),
            Param::new("tol", Kind::Real, Preset::Real(1e-3)).keyword(),
            small("alpha_1"),
            small("alpha_2"),
            small("lambda_1"),
            small("lambda_2"),
            Param::new("compute_score", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
            Param::new("threshold_lambda", Kind::Real, Preset::Real(10_000.0)).keyword(),
            FIT_INTERCEPT,
            COPY_X,
            VERBOSE,
        ],
        "least squares with a penalty for each coefficient, under which the samples are most likely",
        |args, _| Instance::made::<ARDRegression>(&ARD_REGRESSION, args),
    ),
    class(
        "sk.linear_model.Lars",
        &[
            FIT_INTERCEPT,
            VERBOSE,
            PRECOMPUTE,
            Param::new("n_nonzero_coefs", Kind::Integer, Preset::Integer(500)).keyword(),
            PATH_EPS,
            COPY_X,
            FIT_PATH,
            JITTER,
            RANDOM_STATE,
        ],
        "least squares on features that join one after the other",
        |args, _| Instance::made::<Lars>(&LARS, args),
    ),
    class(
        "sk.linear_model.LassoLars",
        &[
            Param::new("alpha", Kind::Real, Preset::Real(1.0)),
            FIT_INTERCEPT,
            VERBOSE,
            PRECOMPUTE,
            PATH_STEPS,
            PATH_EPS,
            COPY_X,
            FIT_PATH,
            POSITIVE,
            JITTER,
            RANDOM_STATE,
        ],
        "a lasso by its path",
        |args, _| Instance::made::<LassoLars>(&LASSO_LARS, args),
    ),
    class(
        "sk.linear_model.LassoLarsCV",
        &[
            FIT_INTERCEPT,
            VERBOSE,
            PATH_STEPS,
            PRECOMPUTE,
            CV,
            Param::new("max_n_alphas", Kind::Integer, Preset::Integer(1000)).keyword(),
            N_JOBS,
            PATH_EPS,
            COPY_X,
            POSITIVE,
        ],
        "a lasso by its path, whose penalty is chosen by folds",
        |args, _| Instance::made::<LassoLarsCV>(&LASSO_LARS_CV, args),
    ),
    class(
        "sk.linear_model.OrthogonalMatchingPursuitCV",
        &[
            COPY,
            FIT_INTERCEPT,
            Param::new("max_iter", INTEGER_OR_NONE, Preset::None).keyword(),
            CV,
            N_JOBS,
            VERBOSE,
        ],
        "least squares on few features, whose number is chosen by folds",
        |args, _| Instance::made::<OrthogonalMatchingPursuitCV>(&ORTHOGONAL_MATCHING_PURSUIT_CV, args),
    ),
    class(
        "sk.linear_model.LassoLarsIC",
        &[
            Param::new("criterion", Kind::Choice(&["aic", "bic"]), Preset::Text("aic")),
            FIT_INTERCEPT,
            VERBOSE,
            PRECOMPUTE,
            PATH_STEPS,
            PATH_EPS,
            COPY_X,
            POSITIVE,
            Param::new("noise_variance", REAL_OR_NONE, Preset::None).keyword(),
        ],
        "a lasso whose penalty is chosen by an information criterion",
        |args, _| Instance::made::<LassoLarsIC>(&LASSO_LARS_IC, args),
    ),
    class(
        "sk.linear_model.OrthogonalMatchingPursuit",
        &[
            Param::new("n_nonzero_coefs", INTEGER_OR_NONE, Preset::None).keyword(),
            Param::new("tol", REAL_OR_NONE, Preset::None).keyword(),
            FIT_INTERCEPT,
            PRECOMPUTE,
        ],
        "least squares on few features, chosen one after the other",
        |args, _| Instance::made::<OrthogonalMatchingPursuit>(&ORTHOGONAL_MATCHING_PURSUIT, args),
    ),
];

model!(
    FittedRidgeCV,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "alpha_" => real(m.alpha),
        "best_score_" => real(m.best_score),
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
    },
);

model!(
    FittedRidgeClassifierCV,
    maps: [decision_function, predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "alpha_" => real(m.alpha),
        "best_score_" => real(m.best_score),
        "classes_" => classes(&m.classes),
        "coef_" => if m.coef.nrows() == 1 { array(&m.coef.row(0).to_owned()) } else { array(&m.coef) },
        "intercept_" => array(&m.intercept),
    },
);

model!(
    FittedElasticNetCV,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.converged,
    attributes: |m| {
        "alpha_" => real(m.alpha),
        "alphas_" => array(&m.alphas),
        "coef_" => array(&m.coef),
        "dual_gap_" => real(m.dual_gap),
        "intercept_" => array(&m.intercept),
        "l1_ratio_" => real(m.l1_ratio),
        "mse_path_" => array(&m.mse_path),
        "n_iter_" => whole(m.n_iter),
    },
);

model!(
    FittedBayesianRidge,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "X_offset_" => array(&m.x_offset),
        "alpha_" => real(m.alpha),
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "lambda_" => real(m.lambda),
        "n_iter_" => whole(m.n_iter),
        "sigma_" => array(&m.sigma),
    },
);

model!(
    FittedARDRegression,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "X_offset_" => array(&m.x_offset),
        "alpha_" => real(m.alpha),
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "lambda_" => array(&m.lambda),
        "n_iter_" => whole(m.n_iter),
        "sigma_" => array(&m.sigma),
    },
);

model!(
    FittedLars,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "active_" => wholes(&m.active),
        "alphas_" => array(&m.alphas),
        "coef_" => array(&m.coef),
        "coef_path_" => array(&m.coef_path),
        "intercept_" => array(&m.intercept),
        "n_iter_" => whole(m.n_iter),
    },
);

model!(
    FittedLassoLarsCV,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "active_" => wholes(&m.active),
        "alpha_" => real(m.alpha),
        "alphas_" => array(&m.alphas),
        "coef_" => array(&m.coef),
        "coef_path_" => array(&m.coef_path),
        "cv_alphas_" => array(&m.cv_alphas),
        "intercept_" => array(&m.intercept),
        "mse_path_" => array(&m.mse_path),
        "n_iter_" => whole(m.n_iter),
    },
);

model!(
    FittedOrthogonalMatchingPursuitCV,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "n_iter_" => whole(m.n_iter),
        "n_nonzero_coefs_" => whole(m.n_nonzero_coefs),
    },
);

model!(
    FittedLassoLarsIC,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "alpha_" => real(m.alpha),
        "alphas_" => array(&m.alphas),
        "coef_" => array(&m.coef),
        "criterion_" => numbers(&m.criterion.to_vec()),
        "intercept_" => array(&m.intercept),
        "n_iter_" => whole(m.n_iter),
        "noise_variance_" => real(m.noise_variance),
    },
);

model!(
    FittedOrthogonalMatchingPursuit,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "n_iter_" => whole(m.n_iter),
        "n_nonzero_coefs_" => m.n_nonzero_coefs.map_or(Value::None, whole),
    },
);

model!(
    FittedLogisticRegressionCV,
    maps: [decision_function, predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.model.converged,
    attributes: |m| {
        "C_" => numbers(&vec![m.c; m.model.coef.nrows()]),
        "Cs_" => numbers(&m.cs),
        "classes_" => classes(&m.model.classes),
        "coef_" => array(&m.model.coef),
        "intercept_" => array(&m.model.intercept),
        "l1_ratio_" => numbers(&vec![0.0; m.model.coef.nrows()]),
        "l1_ratios_" => numbers(&[0.0]),
        "n_iter_" => steps(m),
    },
);

/// Steps of the fits; (1, folds, values), int64.
fn steps(model: &FittedLogisticRegressionCV) -> Value {
    let (folds, values) = model.n_iter.dim();
    let steps: Vec<i64> = model.n_iter.iter().map(|&steps| steps as i64).collect();
    Value::Tensor(Tensor::from_elements(&[1, folds, values], &steps))
}
