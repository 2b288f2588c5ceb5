//! Classes by the nearest of their centres.

use super::args::class;
use super::model::{array, classes, model, supervised_score};
use super::object::{Class, Instance};
use crate::neighbors::{FittedNearestCentroid, NearestCentroid};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static NEAREST_CENTROID: Class = Class::supervised("NearestCentroid");

/// The estimators.
pub(super) const ROWS: &[Row<Value, Scope>] = &[class(
    "sk.neighbors.NearestCentroid",
    &[
        Param::new("metric", Kind::Choice(&["manhattan", "euclidean"]), Preset::Text("euclidean")),
        Param::new("shrink_threshold", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
        Param::new(
            "priors",
            Kind::OneOf(&[Kind::Array, Kind::Choice(&["uniform", "empirical"])]),
            Preset::Text("uniform"),
        )
        .keyword(),
    ],
    "the class whose centre is nearest",
    |args, _| Instance::made::<NearestCentroid>(&NEAREST_CENTROID, args),
)];

model!(
    FittedNearestCentroid,
    maps: [decision_function, predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "centroids_" => array(&m.centroids),
        "class_prior_" => array(&m.class_prior),
        "classes_" => classes(&m.classes),
        "deviations_" => array(&m.deviations),
        "within_class_std_dev_" => array(&m.within_class_std_dev),
    },
);
