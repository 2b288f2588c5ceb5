//! Clusters.

use super::args::{INTEGER_OR_NONE, N_JOBS, RANDOM_STATE, VERBOSE, class};
use super::model::{array, model, real, whole, wholes};
use super::object::{Class, Instance, Labels};
use crate::cluster::{
    AgglomerativeClustering, DBSCAN, FittedAgglomerativeClustering, FittedDBSCAN, FittedKMeans, KMeans,
};
use crate::labels::class_tensor;
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static AGGLOMERATIVE: Class = Class {
    fit_predict: Some(Labels::Attribute("labels_")),
    absent: &["n_connected_components_"],
    ..Class::unsupervised("AgglomerativeClustering")
};
static DENSE: Class =
    Class { fit_predict: Some(Labels::Attribute("labels_")), ..Class::unsupervised("DBSCAN") };
static K_MEANS: Class =
    Class { fit_predict: Some(Labels::Attribute("labels_")), ..Class::unsupervised("KMeans") };

/// The estimators of clusters.
pub(super) const ROWS: &[Row<Value, Scope>] = &[AGGLOMERATIVE_ROW, DBSCAN_ROW, K_MEANS_ROW];

/// Metrics of clusterings.
const METRIC: Param =
    Param::new("metric", Kind::Text, Preset::Text("euclidean")).keyword().only(Kind::Choice(&[
        "euclidean",
        "l2",
        "manhattan",
        "cityblock",
        "l1",
        "chebyshev",
        "cosine",
        "minkowski",
    ]));

const AGGLOMERATIVE_ROW: Row<Value, Scope> = class(
    "sk.cluster.AgglomerativeClustering",
    &[
        Param::new("n_clusters", INTEGER_OR_NONE, Preset::Integer(2)),
        METRIC,
        Param::new("memory", Kind::OneOf(&[Kind::Text, Kind::None]), Preset::None).keyword().fixed(),
        Param::new("connectivity", Kind::OneOf(&[Kind::Array, Kind::None]), Preset::None).keyword().fixed(),
        Param::new(
            "compute_full_tree",
            Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Boolean]),
            Preset::Text("auto"),
        )
        .keyword()
        .fixed(),
        Param::new("linkage", Kind::Choice(&["ward", "complete", "average", "single"]), Preset::Text("ward"))
            .keyword(),
        Param::new("distance_threshold", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
        // Distances are there in any case.
        Param::new("compute_distances", Kind::Boolean, Preset::Boolean(false)).keyword(),
    ],
    "clusters of clusters, of at most 36 000 samples",
    |args, _| Instance::made::<AgglomerativeClustering>(&AGGLOMERATIVE, args),
);

const DBSCAN_ROW: Row<Value, Scope> = class(
    "sk.cluster.DBSCAN",
    &[
        Param::new("eps", Kind::Real, Preset::Real(0.5)),
        Param::new("min_samples", Kind::Integer, Preset::Integer(5)).keyword(),
        METRIC,
        Param::new("metric_params", Kind::OneOf(&[Kind::Sequence, Kind::None]), Preset::None)
            .keyword()
            .fixed(),
        Param::new(
            "algorithm",
            Kind::Choice(&["auto", "ball_tree", "kd_tree", "brute"]),
            Preset::Text("auto"),
        )
        .keyword(),
        Param::new("leaf_size", Kind::Integer, Preset::Integer(30)).keyword(),
        Param::new("p", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
        N_JOBS,
    ],
    "clusters of samples in dense places",
    |args, _| Instance::made::<DBSCAN>(&DENSE, args),
);

const K_MEANS_ROW: Row<Value, Scope> = class(
    "sk.cluster.KMeans",
    &[
        Param::new("n_clusters", Kind::Integer, Preset::Integer(8)),
        Param::new(
            "init",
            Kind::OneOf(&[Kind::Choice(&["k-means++", "random"]), Kind::Array]),
            Preset::Text("k-means++"),
        )
        .keyword(),
        Param::new("n_init", Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Integer]), Preset::Text("auto"))
            .keyword(),
        Param::new("max_iter", Kind::Integer, Preset::Integer(300)).keyword(),
        Param::new("tol", Kind::Real, Preset::Real(1e-4)).keyword(),
        VERBOSE,
        RANDOM_STATE,
        Param::new("copy_x", Kind::Boolean, Preset::Boolean(true)).keyword(),
        Param::new("algorithm", Kind::Choice(&["lloyd", "elkan"]), Preset::Text("lloyd")).keyword().fixed(),
    ],
    "clusters around their means; first centres by k-means||",
    |args, _| Instance::made::<KMeans>(&K_MEANS, args),
);

model!(
    FittedAgglomerativeClustering,
    maps: [],
    attributes: |m| {
        "children_" => {
            let children: Vec<i64> = m.children.iter().flatten().map(|&child| child as i64).collect();
            Value::Tensor(Tensor::from_elements(&[m.children.len(), 2], &children))
        },
        "distances_" => array(&m.distances),
        "labels_" => Value::Tensor(class_tensor(&m.labels)),
        "n_clusters_" => whole(m.n_clusters),
        "n_leaves_" => whole(m.labels.len()),
    },
);

model!(
    FittedDBSCAN,
    maps: [],
    attributes: |m| {
        "components_" => Value::Tensor(m.components.clone()),
        "core_sample_indices_" => wholes(&m.core_sample_indices),
        "labels_" => Value::Tensor(class_tensor(&m.labels)),
    },
);

model!(
    FittedKMeans,
    maps: [predict, transform],
    score: |m, x, _y, options| m.score(x, options),
    attributes: |m| {
        "cluster_centers_" => array(&m.cluster_centers),
        "inertia_" => real(m.inertia),
        "labels_" => Value::Tensor(m.labels.clone()),
        "n_iter_" => whole(m.n_iter),
    },
);
