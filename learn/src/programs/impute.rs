//! Numbers in the place of missing ones.

use super::args::{COPY, class};
use super::model::{array, model, wholes};
use super::object::{Class, Instance};
use crate::impute::{
    FittedKNNImputer, FittedMissingIndicator, FittedSimpleImputer, KNNImputer, MissingIndicator,
    SimpleImputer,
};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static SIMPLE_IMPUTER: Class = Class { absent: &["indicator_"], ..Class::unsupervised("SimpleImputer") };
static KNN_IMPUTER: Class = Class { absent: &["indicator_"], ..Class::unsupervised("KNNImputer") };
static MISSING_INDICATOR: Class = Class::unsupervised("MissingIndicator");

const MISSING_VALUES: Param = Param::new("missing_values", Kind::Real, Preset::Real(f64::NAN)).keyword();

/// The estimators of missing numbers.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.impute.SimpleImputer",
        &[
            MISSING_VALUES,
            Param::new(
                "strategy",
                Kind::Choice(&["mean", "median", "most_frequent", "constant"]),
                Preset::Text("mean"),
            )
            .keyword(),
            Param::new("fill_value", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
            COPY,
            Param::new("add_indicator", Kind::Boolean, Preset::Boolean(false)).keyword(),
            Param::new("keep_empty_features", Kind::Boolean, Preset::Boolean(false)).keyword(),
        ],
        "missing numbers filled with a number for each feature",
        |args, _| Instance::made::<SimpleImputer>(&SIMPLE_IMPUTER, args),
    ),
    class(
        "sk.impute.KNNImputer",
        &[
            MISSING_VALUES,
            Param::new("n_neighbors", Kind::Integer, Preset::Integer(5)).keyword(),
            Param::new("weights", Kind::Choice(&["uniform", "distance"]), Preset::Text("uniform")).keyword(),
            Param::new("metric", Kind::Choice(&["nan_euclidean"]), Preset::Text("nan_euclidean")).keyword(),
            COPY,
            Param::new("add_indicator", Kind::Boolean, Preset::Boolean(false)).keyword(),
            Param::new("keep_empty_features", Kind::Boolean, Preset::Boolean(false)).keyword(),
        ],
        "missing numbers filled with those of the nearest samples",
        |args, _| Instance::made::<KNNImputer>(&KNN_IMPUTER, args),
    ),
    class(
        "sk.impute.MissingIndicator",
        &[
            MISSING_VALUES,
            Param::new("features", Kind::Choice(&["missing-only", "all"]), Preset::Text("missing-only"))
                .keyword(),
            Param::new(
                "sparse",
                Kind::OneOf(&[Kind::Boolean, Kind::Choice(&["auto"])]),
                Preset::Text("auto"),
            )
            .keyword()
            .fixed(),
            Param::new("error_on_new", Kind::Boolean, Preset::Boolean(true)).keyword(),
        ],
        "whether numbers are missing",
        |args, _| Instance::made::<MissingIndicator>(&MISSING_INDICATOR, args),
    ),
];

model!(
    FittedSimpleImputer,
    maps: [transform],
    attributes: |m| {
        "statistics_" => array(&m.statistics),
    },
);

model!(
    FittedMissingIndicator,
    maps: [transform],
    attributes: |m| {
        "features_" => wholes(&m.features),
    },
);

model!(
    FittedKNNImputer,
    maps: [transform],
    attributes: |_m| {},
);
