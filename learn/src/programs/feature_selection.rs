//! Features that tell something.

use super::args::class;
use super::model::{array, model};
use super::object::{Class, Instance};
use crate::feature_selection::{
    FittedSelect, FittedVarianceThreshold, SelectFdr, SelectFpr, SelectFwe, SelectKBest, SelectPercentile,
    VarianceThreshold,
};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static VARIANCE_THRESHOLD: Class = Class::unsupervised("VarianceThreshold");
static K_BEST: Class = Class::supervised("SelectKBest");
static PERCENTILE: Class = Class::supervised("SelectPercentile");
static FPR: Class = Class::supervised("SelectFpr");
static FDR: Class = Class::supervised("SelectFdr");
static FWE: Class = Class::supervised("SelectFwe");

/// The name of a function, where scikit-learn has the function.
const SCORE_FUNC: Param =
    Param::new("score_func", Kind::Choice(&["chi2", "f_classif", "f_regression"]), Preset::Text("f_classif"));
const ALPHA: Param = Param::new("alpha", Kind::Real, Preset::Real(0.05)).keyword();

/// The selectors of features.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.feature_selection.VarianceThreshold",
        &[Param::new("threshold", Kind::Real, Preset::Real(0.0))],
        "features whose variance is above a threshold",
        |args, _| Instance::made::<VarianceThreshold>(&VARIANCE_THRESHOLD, args),
    ),
    class(
        "sk.feature_selection.SelectKBest",
        &[
            SCORE_FUNC,
            Param::new("k", Kind::OneOf(&[Kind::Choice(&["all"]), Kind::Integer]), Preset::Integer(10))
                .keyword(),
        ],
        "the features with the largest scores",
        |args, _| Instance::made::<SelectKBest>(&K_BEST, args),
    ),
    class(
        "sk.feature_selection.SelectPercentile",
        &[SCORE_FUNC, Param::new("percentile", Kind::Real, Preset::Integer(10)).keyword()],
        "a share of the features, those with the largest scores",
        |args, _| Instance::made::<SelectPercentile>(&PERCENTILE, args),
    ),
    class(
        "sk.feature_selection.SelectFpr",
        &[SCORE_FUNC, ALPHA],
        "features whose p-values are below a bound",
        |args, _| Instance::made::<SelectFpr>(&FPR, args),
    ),
    class(
        "sk.feature_selection.SelectFdr",
        &[SCORE_FUNC, ALPHA],
        "features, of which a bounded share is chosen wrongly",
        |args, _| Instance::made::<SelectFdr>(&FDR, args),
    ),
    class(
        "sk.feature_selection.SelectFwe",
        &[SCORE_FUNC, ALPHA],
        "features, of which one is chosen wrongly with a bounded chance",
        |args, _| Instance::made::<SelectFwe>(&FWE, args),
    ),
];

model!(
    FittedVarianceThreshold,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "variances_" => array(&m.variances),
    },
);

model!(
    FittedSelect,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "pvalues_" => array(&m.pvalues),
        "scores_" => array(&m.scores),
    },
);
