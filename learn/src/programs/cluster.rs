//! Clusters.

use super::args::{RANDOM_STATE, VERBOSE, array as array_of, class, count, seed};
use super::model::{array, model, real, whole};
use super::object::{Class, Instance, Labels};
use crate::cluster::{FittedKMeans, Init, KMeans};
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Argument, Bound, Kind, Look, Param, Preset, Row};

static K_MEANS: Class =
    Class { fit_predict: Some(Labels::Attribute("labels_")), ..Class::unsupervised("KMeans") };

/// Runs of which scikit-learn keeps the best one, for first centres at random.
const RANDOM_RUNS: usize = 10;

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
    |args, _| Ok(Instance::value(&K_MEANS, args, k_means(args)?)),
)];

fn k_means(args: &Bound<Value>) -> Result<KMeans, Failure> {
    let (init, runs) = match args.value("init")?.look() {
        Look::Text("random") => (Init::Random, RANDOM_RUNS),
        Look::Text(_) => (Init::Parallel, 1),
        _ => (Init::Centers(array_of(args, "init")?), 1),
    };
    let runs = match args.value("n_init")?.look() {
        Look::Text(_) => runs,
        _ => count(args, "n_init", 1)?,
    };
    Ok(KMeans::new()
        .n_clusters(count(args, "n_clusters", 1)?)
        .init(init)
        .n_init(runs)
        .max_iter(count(args, "max_iter", 1)?)
        .tol(args.real("tol")?)
        .random_state(seed(args)?))
}

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
