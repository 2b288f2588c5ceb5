//! Clusters.

use super::args::{INTEGER_OR_NONE, N_JOBS, RANDOM_STATE, VERBOSE, class};
use super::model::{array, model, real, whole, wholes};
use super::object::{Class, Instance, Labels};
use crate::cluster::{
    AgglomerativeClustering, BisectingKMeans, DBSCAN, FittedAgglomerativeClustering, FittedBisectingKMeans,
    FittedDBSCAN, FittedKMeans, FittedMiniBatchKMeans, KMeans, MiniBatchKMeans,
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
static MINI_BATCH: Class =
    Class { fit_predict: Some(Labels::Attribute("labels_")), ..Class::unsupervised("MiniBatchKMeans") };
static BISECTING: Class =
    Class { fit_predict: Some(Labels::Attribute("labels_")), ..Class::unsupervised("BisectingKMeans") };

/// The estimators of clusters.
pub(super) const ROWS: &[Row<Value, Scope>] =
    &[AGGLOMERATIVE_ROW, BISECTING_ROW, DBSCAN_ROW, K_MEANS_ROW, MINI_BATCH_ROW];

const N_CLUSTERS: Param = Param::new("n_clusters", Kind::Integer, Preset::Integer(8));
/// First centres: a way to draw them, or an array.
const INIT: Param = Param::new(
    "init",
    Kind::OneOf(&[Kind::Choice(&["k-means++", "random"]), Kind::Array]),
    Preset::Text("k-means++"),
)
.keyword();

const N_INIT: Param =
    Param::new("n_init", Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Integer]), Preset::Text("auto"))
        .keyword();

const MINI_BATCH_ROW: Row<Value, Scope> = class(
    "sk.cluster.MiniBatchKMeans",
    &[
        N_CLUSTERS,
        INIT,
        Param::new("max_iter", Kind::Integer, Preset::Integer(100)).keyword(),
        Param::new("batch_size", Kind::Integer, Preset::Integer(1024)).keyword(),
        VERBOSE,
        Param::new("compute_labels", Kind::Boolean, Preset::Boolean(true)).keyword(),
        RANDOM_STATE,
        Param::new("tol", Kind::Real, Preset::Real(0.0)).keyword(),
        Param::new("max_no_improvement", INTEGER_OR_NONE, Preset::Integer(10)).keyword(),
        Param::new("init_size", INTEGER_OR_NONE, Preset::None).keyword(),
        N_INIT,
        Param::new("reassignment_ratio", Kind::Real, Preset::Real(0.01)).keyword(),
    ],
    "clusters around means that few samples at a time move",
    |args, _| Instance::made::<MiniBatchKMeans>(&MINI_BATCH, args),
);

const BISECTING_ROW: Row<Value, Scope> = class(
    "sk.cluster.BisectingKMeans",
    &[
        N_CLUSTERS,
        Param::new("init", Kind::Choice(&["k-means++", "random"]), Preset::Text("random")).keyword(),
        Param::new("n_init", Kind::Integer, Preset::Integer(1)).keyword(),
        RANDOM_STATE,
        Param::new("max_iter", Kind::Integer, Preset::Integer(300)).keyword(),
        VERBOSE,
        Param::new("tol", Kind::Real, Preset::Real(1e-4)).keyword(),
        Param::new("copy_x", Kind::Boolean, Preset::Boolean(true)).keyword(),
        Param::new("algorithm", Kind::Choice(&["lloyd", "elkan"]), Preset::Text("lloyd")).keyword().fixed(),
        Param::new(
            "bisecting_strategy",
            Kind::Choice(&["biggest_inertia", "largest_cluster"]),
            Preset::Text("biggest_inertia"),
        )
        .keyword(),
    ],
    "clusters that are split in two until there are enough",
    |args, _| Instance::made::<BisectingKMeans>(&BISECTING, args),
);

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
        N_CLUSTERS,
        INIT,
        N_INIT,
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

model!(
    FittedMiniBatchKMeans,
    maps: [predict, transform],
    score: |m, x, _y, options| m.score(x, options),
    attributes: |m| {
        "cluster_centers_" => array(&m.cluster_centers),
        "inertia_" => real(m.inertia),
        "labels_" => Value::Tensor(m.labels.clone()),
        "n_iter_" => whole(m.n_iter),
        "n_steps_" => whole(m.n_steps),
    },
);

model!(
    FittedBisectingKMeans,
    maps: [predict, transform],
    score: |m, x, _y, options| m.score(x, options),
    attributes: |m| {
        "cluster_centers_" => array(&m.cluster_centers),
        "inertia_" => real(m.inertia),
        "labels_" => Value::Tensor(m.labels.clone()),
    },
);
