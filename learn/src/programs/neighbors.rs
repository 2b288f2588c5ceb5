//! Nearest samples.

use super::args::{N_JOBS, class};
use super::model::{Described, Model, array, classes, model, real, supervised_score, whole};
use super::object::{Class, Instance, Labels};
use crate::Result;
use crate::base::{Predict, Task};
use crate::neighbors::{
    FittedKNeighborsClassifier, FittedKNeighborsRegressor, FittedLocalOutlierFactor, FittedNearestCentroid,
    FittedNearestNeighbors, FittedRadiusNeighborsClassifier, FittedRadiusNeighborsRegressor,
    KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor, NearestCentroid, NearestNeighbors,
    Neighbors, RadiusNeighborsClassifier, RadiusNeighborsRegressor,
};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

/// The metric that scikit-learn chooses, and what it has for several targets.
const OF_METRIC: &[&str] = &["effective_metric_", "effective_metric_params_", "outputs_2d_"];

static NEAREST: Class = Class { absent: OF_METRIC, ..Class::unsupervised("NearestNeighbors") };
static NEAREST_CENTROID: Class = Class::supervised("NearestCentroid");
static K_CLASSIFIER: Class = Class { absent: OF_METRIC, ..Class::supervised("KNeighborsClassifier") };
static K_REGRESSOR: Class = Class { absent: OF_METRIC, ..Class::supervised("KNeighborsRegressor") };
static RADIUS_CLASSIFIER: Class =
    Class { absent: OF_METRIC, ..Class::supervised("RadiusNeighborsClassifier") };
static RADIUS_REGRESSOR: Class = Class { absent: OF_METRIC, ..Class::supervised("RadiusNeighborsRegressor") };
static OUTLIERS: Class = Class {
    absent: OF_METRIC,
    fit_predict: Some(Labels::Attribute("labels_")),
    ..Class::unsupervised("LocalOutlierFactor")
};

const N_NEIGHBORS: Param = Param::new("n_neighbors", Kind::Integer, Preset::Integer(5));
const RADIUS: Param = Param::new("radius", Kind::Real, Preset::Real(1.0));
const WEIGHTS: Param = Param::new(
    "weights",
    Kind::OneOf(&[Kind::Choice(&["uniform", "distance"]), Kind::None]),
    Preset::Text("uniform"),
)
.keyword()
.only(Kind::Choice(&["uniform", "distance"]));
/// All algorithms find the same neighbours.
const ALGORITHM: Param =
    Param::new("algorithm", Kind::Choice(&["auto", "ball_tree", "kd_tree", "brute"]), Preset::Text("auto"))
        .keyword();
const LEAF_SIZE: Param = Param::new("leaf_size", Kind::Integer, Preset::Integer(30)).keyword();
const P: Param =
    Param::new("p", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::Integer(2)).keyword().only(Kind::Real);
const METRIC: Param =
    Param::new("metric", Kind::Text, Preset::Text("minkowski")).keyword().only(Kind::Choice(&[
        "minkowski",
        "euclidean",
        "l2",
        "manhattan",
        "cityblock",
        "l1",
        "chebyshev",
        "cosine",
    ]));
const METRIC_PARAMS: Param =
    Param::new("metric_params", Kind::OneOf(&[Kind::Sequence, Kind::None]), Preset::None).keyword().fixed();

/// The estimators of nearest samples.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.neighbors.NearestNeighbors",
        &[N_NEIGHBORS.keyword(), RADIUS.keyword(), ALGORITHM, LEAF_SIZE, METRIC, P, METRIC_PARAMS, N_JOBS],
        "the nearest samples of a fit",
        |args, _| Instance::made::<NearestNeighbors>(&NEAREST, args),
    ),
    class(
        "sk.neighbors.KNeighborsClassifier",
        &[N_NEIGHBORS, WEIGHTS, ALGORITHM, LEAF_SIZE, P, METRIC, METRIC_PARAMS, N_JOBS],
        "the class of most of the nearest samples",
        |args, _| Instance::made::<KNeighborsClassifier>(&K_CLASSIFIER, args),
    ),
    class(
        "sk.neighbors.KNeighborsRegressor",
        &[N_NEIGHBORS, WEIGHTS, ALGORITHM, LEAF_SIZE, P, METRIC, METRIC_PARAMS, N_JOBS],
        "the mean target of the nearest samples",
        |args, _| Instance::made::<KNeighborsRegressor>(&K_REGRESSOR, args),
    ),
    class(
        "sk.neighbors.RadiusNeighborsClassifier",
        &[
            RADIUS,
            WEIGHTS,
            ALGORITHM,
            LEAF_SIZE,
            P,
            METRIC,
            Param::new(
                "outlier_label",
                Kind::OneOf(&[Kind::Integer, Kind::Text, Kind::Array, Kind::None]),
                Preset::None,
            )
            .keyword()
            .only(Kind::OneOf(&[Kind::Integer, Kind::Choice(&["most_frequent"]), Kind::None])),
            METRIC_PARAMS,
            N_JOBS,
        ],
        "the class of most of the samples within a radius",
        |args, _| Instance::made::<RadiusNeighborsClassifier>(&RADIUS_CLASSIFIER, args),
    ),
    class(
        "sk.neighbors.RadiusNeighborsRegressor",
        &[RADIUS, WEIGHTS, ALGORITHM, LEAF_SIZE, P, METRIC, METRIC_PARAMS, N_JOBS],
        "the mean target of the samples within a radius",
        |args, _| Instance::made::<RadiusNeighborsRegressor>(&RADIUS_REGRESSOR, args),
    ),
    class(
        "sk.neighbors.LocalOutlierFactor",
        &[
            Param::new("n_neighbors", Kind::Integer, Preset::Integer(20)),
            ALGORITHM,
            LEAF_SIZE,
            METRIC,
            P,
            METRIC_PARAMS,
            Param::new(
                "contamination",
                Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Real]),
                Preset::Text("auto"),
            )
            .keyword(),
            Param::new("novelty", Kind::Boolean, Preset::Boolean(false)).keyword(),
            N_JOBS,
        ],
        "samples in thinner places than their neighbours",
        |args, _| Instance::made::<LocalOutlierFactor>(&OUTLIERS, args),
    ),
    class(
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
    ),
];

model!(
    FittedNearestNeighbors,
    maps: [],
    neighbors: kneighbors,
    attributes: |m| {
        "n_samples_fit_" => whole(m.n_samples_fit),
    },
);

model!(
    FittedKNeighborsClassifier,
    maps: [predict, predict_proba],
    neighbors: kneighbors,
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "n_samples_fit_" => whole(m.n_samples_fit),
    },
);

model!(
    FittedKNeighborsRegressor,
    maps: [predict],
    neighbors: kneighbors,
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "n_samples_fit_" => whole(m.n_samples_fit),
    },
);

model!(
    FittedRadiusNeighborsClassifier,
    maps: [predict, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "n_samples_fit_" => whole(m.n_samples_fit),
        "outlier_label_" => m.outlier_label.map_or(Value::None, |label| classes(&[label])),
    },
);

model!(
    FittedRadiusNeighborsRegressor,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "n_samples_fit_" => whole(m.n_samples_fit),
    },
);

impl Described for FittedLocalOutlierFactor {
    const METHODS: &'static [&'static str] = &["decision_function", "kneighbors", "predict", "score_samples"];
    const TASK: Task = <Self as Predict>::TASK;
}

/// As scikit-learn's, it has methods of other samples for `novelty` alone, and labels of its own without.
impl Model for FittedLocalOutlierFactor {
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor> {
        match method {
            _ if !self.is_for_novelty() => None,
            "decision_function" => Some(self.decision_function(x)),
            "predict" => Some(self.predict(x)),
            "score_samples" => Some(self.score_samples(x)),
            _ => None,
        }
    }

    fn kneighbors(&self, x: Option<&Tensor>, count: Option<usize>) -> Option<Result<Neighbors>> {
        Some(FittedLocalOutlierFactor::kneighbors(self, x, count))
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        Some(match name {
            "labels_" if !self.is_for_novelty() => Value::Tensor(self.labels()),
            "n_neighbors_" => whole(self.n_neighbors),
            "n_samples_fit_" => whole(self.negative_outlier_factor.len()),
            "negative_outlier_factor_" => array(&self.negative_outlier_factor),
            "offset_" => real(self.offset),
            _ => return None,
        })
    }
}

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
