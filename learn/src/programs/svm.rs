//! Linear support vector machines.

use super::args::{RANDOM_STATE, VERBOSE, class};
use super::model::{array, classes, model, supervised_score, whole};
use super::object::{Class, Instance};
use crate::svm::{FittedLinearSVC, FittedLinearSVR, LinearSVC, LinearSVR};
use ndarray::Array1;
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static LINEAR_SVC: Class = Class::supervised("LinearSVC");
static LINEAR_SVR: Class = Class::supervised("LinearSVR");

const FIT_INTERCEPT: Param = Param::new("fit_intercept", Kind::Boolean, Preset::Boolean(true)).keyword();
const TOL: Param = Param::new("tol", Kind::Real, Preset::Real(1e-4)).keyword();
const C: Param = Param::new("C", Kind::Real, Preset::Real(1.0)).keyword();
const DUAL: Param =
    Param::new("dual", Kind::OneOf(&[Kind::Boolean, Kind::Choice(&["auto"])]), Preset::Text("auto"))
        .keyword()
        .fixed();
const MAX_ITER: Param = Param::new("max_iter", Kind::Integer, Preset::Integer(1000)).keyword();

/// The support vector machines.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.svm.LinearSVC",
        &[
            Param::new("penalty", Kind::Choice(&["l1", "l2"]), Preset::Text("l2"))
                .only(Kind::Choice(&["l2"])),
            Param::new("loss", Kind::Choice(&["hinge", "squared_hinge"]), Preset::Text("squared_hinge"))
                .only(Kind::Choice(&["squared_hinge"])),
            DUAL,
            TOL,
            C,
            Param::new("multi_class", Kind::Choice(&["ovr", "crammer_singer"]), Preset::Text("ovr"))
                .keyword()
                .fixed(),
            FIT_INTERCEPT,
            Param::new("intercept_scaling", Kind::Real, Preset::Integer(1)).keyword(),
            Param::new("class_weight", Kind::Anything, Preset::None).keyword().fixed(),
            VERBOSE,
            RANDOM_STATE,
            MAX_ITER,
        ],
        "classes on the sides of planes with a wide margin",
        |args, _| Instance::made::<LinearSVC>(&LINEAR_SVC, args),
    ),
    class(
        "sk.svm.LinearSVR",
        &[
            Param::new("epsilon", Kind::Real, Preset::Real(0.0)).keyword(),
            TOL,
            C,
            Param::new(
                "loss",
                Kind::Choice(&["epsilon_insensitive", "squared_epsilon_insensitive"]),
                // Refused by a fit: each call has to choose the other one.
                Preset::Text("epsilon_insensitive"),
            )
            .keyword()
            .only(Kind::Choice(&["squared_epsilon_insensitive"])),
            FIT_INTERCEPT,
            Param::new("intercept_scaling", Kind::Real, Preset::Real(1.0)).keyword(),
            DUAL,
            VERBOSE,
            RANDOM_STATE,
            MAX_ITER,
        ],
        "a line that forgives small distances",
        |args, _| Instance::made::<LinearSVR>(&LINEAR_SVR, args),
    ),
];

model!(
    FittedLinearSVC,
    maps: [decision_function, predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.converged,
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "coef_" => array(&m.coef),
        "intercept_" => array(&m.intercept),
        "n_iter_" => whole(m.n_iter),
    },
);

model!(
    FittedLinearSVR,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    converged: |m| m.converged,
    attributes: |m| {
        "coef_" => array(&m.coef),
        "intercept_" => array(&Array1::from_elem(1, m.intercept.sum())),
        "n_iter_" => whole(m.n_iter),
    },
);
