//! Linear models by steps for one sample after the other: stochastic gradient descent, the perceptron, and
//! passive-aggressive ones.

use super::args::{INTEGER_OR_NONE, N_JOBS, RANDOM_STATE, VERBOSE, WARM_START, class};
use super::model::{array, classes, model, real, supervised_score, whole};
use super::object::{Class, Instance};
use crate::linear_model::{
    FittedStochasticClassifier, FittedStochasticRegressor, PassiveAggressiveClassifier,
    PassiveAggressiveRegressor, Perceptron, SGDClassifier, SGDRegressor,
};
use ndarray::Array1;
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

// Those with `predict_proba` for some losses alone have it in Rust.
static SGD_CLASSIFIER: Class = Class::supervised("SGDClassifier");
static SGD_REGRESSOR: Class = Class::supervised("SGDRegressor");
static PERCEPTRON: Class = Class::supervised("Perceptron");
static PASSIVE_CLASSIFIER: Class = Class::supervised("PassiveAggressiveClassifier");
static PASSIVE_REGRESSOR: Class = Class::supervised("PassiveAggressiveRegressor");

const PENALTY_KIND: Kind = Kind::OneOf(&[Kind::Choice(&["l2", "l1", "elasticnet"]), Kind::None]);
const PENALTY: Param = Param::new("penalty", PENALTY_KIND, Preset::Text("l2")).keyword();
const ALPHA: Param = Param::new("alpha", Kind::Real, Preset::Real(1e-4)).keyword();
const L1_RATIO: Param = Param::new("l1_ratio", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::Real(0.15))
    .keyword()
    .only(Kind::Real);
const FIT_INTERCEPT: Param = Param::new("fit_intercept", Kind::Boolean, Preset::Boolean(true)).keyword();
const MAX_ITER: Param = Param::new("max_iter", Kind::Integer, Preset::Integer(1000)).keyword();
const TOL: Param = Param::new("tol", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::Real(1e-3)).keyword();
const SHUFFLE: Param = Param::new("shuffle", Kind::Boolean, Preset::Boolean(true)).keyword();
const EPSILON: Param = Param::new("epsilon", Kind::Real, Preset::Real(0.1)).keyword();
const ETA0: Param = Param::new("eta0", Kind::Real, Preset::Real(0.01)).keyword();
const POWER_T: Param = Param::new("power_t", Kind::Real, Preset::Real(0.5)).keyword();
const EARLY_STOPPING: Param =
    Param::new("early_stopping", Kind::Boolean, Preset::Boolean(false)).keyword().fixed();
const VALIDATION_FRACTION: Param =
    Param::new("validation_fraction", Kind::Real, Preset::Real(0.1)).keyword().fixed();
const N_ITER_NO_CHANGE: Param = Param::new("n_iter_no_change", Kind::Integer, Preset::Integer(5)).keyword();
const CLASS_WEIGHT: Param = Param::new("class_weight", Kind::Anything, Preset::None).keyword().fixed();
const AVERAGE: Param =
    Param::new("average", Kind::OneOf(&[Kind::Boolean, Kind::Integer]), Preset::Boolean(false))
        .keyword()
        .fixed();
const C: Param = Param::new("C", Kind::Real, Preset::Real(1.0)).keyword();

const fn learning_rate(default: &'static str) -> Param {
    let words = &["constant", "optimal", "invscaling", "adaptive", "pa1", "pa2"];
    Param::new("learning_rate", Kind::Choice(words), Preset::Text(default)).keyword()
}

/// The linear models by steps.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.linear_model.SGDClassifier",
        &[
            Param::new(
                "loss",
                Kind::Choice(&[
                    "hinge",
                    "log_loss",
                    "modified_huber",
                    "squared_hinge",
                    "perceptron",
                    "squared_error",
                    "huber",
                    "epsilon_insensitive",
                    "squared_epsilon_insensitive",
                ]),
                Preset::Text("hinge"),
            ),
            PENALTY,
            ALPHA,
            L1_RATIO,
            FIT_INTERCEPT,
            MAX_ITER,
            TOL,
            SHUFFLE,
            VERBOSE,
            EPSILON,
            N_JOBS,
            RANDOM_STATE,
            learning_rate("optimal"),
            ETA0,
            POWER_T,
            EARLY_STOPPING,
            VALIDATION_FRACTION,
            N_ITER_NO_CHANGE,
            CLASS_WEIGHT,
            WARM_START,
            AVERAGE,
        ],
        "classes by steps for one sample after the other",
        |args, _| Instance::made::<SGDClassifier>(&SGD_CLASSIFIER, args),
    ),
    class(
        "sk.linear_model.SGDRegressor",
        &[
            Param::new(
                "loss",
                Kind::Choice(&[
                    "squared_error",
                    "huber",
                    "epsilon_insensitive",
                    "squared_epsilon_insensitive",
                ]),
                Preset::Text("squared_error"),
            ),
            PENALTY,
            ALPHA,
            L1_RATIO,
            FIT_INTERCEPT,
            MAX_ITER,
            TOL,
            SHUFFLE,
            VERBOSE,
            EPSILON,
            RANDOM_STATE,
            learning_rate("invscaling"),
            ETA0,
            Param::new("power_t", Kind::Real, Preset::Real(0.25)).keyword(),
            EARLY_STOPPING,
            VALIDATION_FRACTION,
            N_ITER_NO_CHANGE,
            WARM_START,
            AVERAGE,
        ],
        "a line by steps for one sample after the other",
        |args, _| Instance::made::<SGDRegressor>(&SGD_REGRESSOR, args),
    ),
    class(
        "sk.linear_model.Perceptron",
        &[
            Param::new("penalty", PENALTY_KIND, Preset::None).keyword(),
            ALPHA,
            L1_RATIO,
            FIT_INTERCEPT,
            MAX_ITER,
            TOL,
            SHUFFLE,
            VERBOSE,
            Param::new("eta0", Kind::Real, Preset::Real(1.0)).keyword(),
            N_JOBS,
            Param::new("random_state", INTEGER_OR_NONE, Preset::Integer(0)).keyword(),
            EARLY_STOPPING,
            VALIDATION_FRACTION,
            N_ITER_NO_CHANGE,
            CLASS_WEIGHT,
            WARM_START,
        ],
        "classes by steps of one length for samples on the wrong side",
        |args, _| Instance::made::<Perceptron>(&PERCEPTRON, args),
    ),
    class(
        "sk.linear_model.PassiveAggressiveClassifier",
        &[
            C,
            FIT_INTERCEPT,
            MAX_ITER,
            TOL,
            EARLY_STOPPING,
            VALIDATION_FRACTION,
            N_ITER_NO_CHANGE,
            SHUFFLE,
            VERBOSE,
            Param::new("loss", Kind::Choice(&["hinge", "squared_hinge"]), Preset::Text("hinge")).keyword(),
            N_JOBS,
            RANDOM_STATE,
            WARM_START,
            CLASS_WEIGHT,
            AVERAGE,
        ],
        "classes by steps as long as samples need to be right",
        |args, _| Instance::made::<PassiveAggressiveClassifier>(&PASSIVE_CLASSIFIER, args),
    ),
    class(
        "sk.linear_model.PassiveAggressiveRegressor",
        &[
            C,
            FIT_INTERCEPT,
            MAX_ITER,
            TOL,
            EARLY_STOPPING,
            VALIDATION_FRACTION,
            N_ITER_NO_CHANGE,
            SHUFFLE,
            VERBOSE,
            Param::new(
                "loss",
                Kind::Choice(&["epsilon_insensitive", "squared_epsilon_insensitive"]),
                Preset::Text("epsilon_insensitive"),
            )
            .keyword(),
            EPSILON,
            RANDOM_STATE,
            WARM_START,
            AVERAGE,
        ],
        "a line by steps as long as samples need to be near",
        |args, _| Instance::made::<PassiveAggressiveRegressor>(&PASSIVE_REGRESSOR, args),
    ),
];

model!(
    FittedStochasticClassifier,
    maps: [decision_function, predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.converged,
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "n_iter_" => whole(m.n_iter),
        "t_" => real(m.t),
    },
);

model!(
    FittedStochasticRegressor,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.converged,
    attributes: |m| {
        "coef_" => array(&m.coef),
        "intercept_" => array(&Array1::from_elem(1, m.intercept.sum())),
        "n_iter_" => whole(m.n_iter),
        "t_" => real(m.t),
    },
);
