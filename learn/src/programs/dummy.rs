//! Predictions that do not read the samples.

use super::args::{RANDOM_STATE, class};
use super::model::{array, classes, model, supervised_score, whole};
use super::object::{Class, Instance};
use crate::dummy::{DummyClassifier, DummyRegressor, FittedDummyClassifier, FittedDummyRegressor};
use ndarray::Axis;
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static CLASSIFIER: Class = Class::supervised("DummyClassifier");
static REGRESSOR: Class = Class::supervised("DummyRegressor");

const CLASS_STRATEGIES: Kind = Kind::Choice(&["constant", "most_frequent", "prior", "stratified", "uniform"]);
const TARGET_STRATEGIES: Kind = Kind::Choice(&["constant", "mean", "median", "quantile"]);

/// The estimators.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.dummy.DummyClassifier",
        &[
            Param::new("strategy", CLASS_STRATEGIES, Preset::Text("prior")).keyword(),
            RANDOM_STATE,
            Param::new(
                "constant",
                Kind::OneOf(&[Kind::Integer, Kind::Text, Kind::Array, Kind::None]),
                Preset::None,
            )
            .keyword()
            .only(Kind::OneOf(&[Kind::Integer, Kind::None])),
        ],
        "classes without regard to the samples",
        |args, _| Instance::made::<DummyClassifier>(&CLASSIFIER, args),
    ),
    class(
        "sk.dummy.DummyRegressor",
        &[
            Param::new("strategy", TARGET_STRATEGIES, Preset::Text("mean")).keyword(),
            Param::new("constant", Kind::OneOf(&[Kind::Real, Kind::Array, Kind::None]), Preset::None)
                .keyword(),
            Param::new("quantile", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
        ],
        "numbers without regard to the samples",
        |args, _| Instance::made::<DummyRegressor>(&REGRESSOR, args),
    ),
];

model!(
    FittedDummyClassifier,
    maps: [predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "class_prior_" => array(&m.class_prior),
        "classes_" => classes(&m.classes),
        "n_classes_" => whole(m.classes.len()),
        "n_outputs_" => whole(1),
    },
);

model!(
    FittedDummyRegressor,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "constant_" => array(&m.constant.clone().insert_axis(Axis(0))),
        "n_outputs_" => whole(m.constant.len()),
    },
);
