//! Classes with normal distributions.

use super::args::{ARRAY_OR_NONE, INTEGER_OR_NONE, class};
use super::model::{array, classes, model, supervised_score};
use super::object::{Class, Instance};
use crate::discriminant_analysis::{
    FittedLinearDiscriminantAnalysis, FittedQuadraticDiscriminantAnalysis, LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static LINEAR: Class = Class::supervised("LinearDiscriminantAnalysis");
static QUADRATIC: Class =
    Class { absent: &["rotations_"], ..Class::supervised("QuadraticDiscriminantAnalysis") };

const SHRINKAGE: Param =
    Param::new("shrinkage", Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Real, Kind::None]), Preset::None)
        .fixed();
const SOLVER: Param =
    Param::new("solver", Kind::Choice(&["svd", "lsqr", "eigen"]), Preset::Text("svd")).fixed();
const PRIORS: Param = Param::new("priors", ARRAY_OR_NONE, Preset::None);
const STORE_COVARIANCE: Param = Param::new("store_covariance", Kind::Boolean, Preset::Boolean(false)).fixed();
const TOL: Param = Param::new("tol", Kind::Real, Preset::Real(1e-4));
const COVARIANCE_ESTIMATOR: Param = Param::new("covariance_estimator", Kind::Anything, Preset::None).fixed();

/// The classes with normal distributions.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.discriminant_analysis.LinearDiscriminantAnalysis",
        &[
            SOLVER,
            SHRINKAGE,
            PRIORS,
            Param::new("n_components", INTEGER_OR_NONE, Preset::None),
            STORE_COVARIANCE,
            TOL,
            COVARIANCE_ESTIMATOR,
        ],
        "classes with normal distributions that differ in their means",
        |args, _| Instance::made::<LinearDiscriminantAnalysis>(&LINEAR, args),
    ),
    class(
        "sk.discriminant_analysis.QuadraticDiscriminantAnalysis",
        &[
            SOLVER.keyword(),
            SHRINKAGE.keyword(),
            PRIORS.keyword(),
            Param::new("reg_param", Kind::Real, Preset::Real(0.0)).keyword(),
            STORE_COVARIANCE.keyword(),
            TOL.keyword(),
            COVARIANCE_ESTIMATOR.keyword(),
        ],
        "classes with normal distributions",
        |args, _| Instance::made::<QuadraticDiscriminantAnalysis>(&QUADRATIC, args),
    ),
];

model!(
    FittedLinearDiscriminantAnalysis,
    maps: [decision_function, predict, predict_log_proba, predict_proba, transform],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "coef_" => array(&m.coef),
        "explained_variance_ratio_" => array(&m.explained_variance_ratio),
        "intercept_" => array(&m.intercept),
        "means_" => array(&m.means),
        "priors_" => array(&m.priors),
        "scalings_" => array(&m.scalings),
        "xbar_" => array(&m.xbar),
    },
);

model!(
    FittedQuadraticDiscriminantAnalysis,
    maps: [decision_function, predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "means_" => array(&m.means),
        "priors_" => array(&m.priors),
        "scalings_" => array(&m.scalings),
    },
);
