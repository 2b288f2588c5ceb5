//! Clusters.

use super::args::{RANDOM_STATE, VERBOSE, class};
use super::model::{array, model, real, whole};
use super::object::{Class, Instance, Labels};
use crate::cluster::{FittedKMeans, KMeans};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static K_MEANS: Class =
    Class { fit_predict: Some(Labels::Attribute("labels_")), ..Class::unsupervised("KMeans") };

/// The estimators of clusters.
pub(super) const ROWS: &[Row<Value, Scope>] = &[class(
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
)];

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
