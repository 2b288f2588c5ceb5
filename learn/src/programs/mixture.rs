//! Mixtures of distributions.

use super::args::{RANDOM_STATE, VERBOSE, WARM_START, class};
use super::model::{array, model, real, whole};
use super::object::{Class, Instance, Labels};
use crate::mixture::{FittedGaussianMixture, GaussianMixture};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static GAUSSIAN: Class = Class {
    fit_predict: Some(Labels::Method("predict")),
    absent: &["lower_bounds_"],
    ..Class::unsupervised("GaussianMixture")
};

const ARRAY_OR_NONE: Kind = Kind::OneOf(&[Kind::Array, Kind::None]);

/// The mixtures.
pub(super) const ROWS: &[Row<Value, Scope>] = &[class(
    "sk.mixture.GaussianMixture",
    &[
        Param::new("n_components", Kind::Integer, Preset::Integer(1)),
        Param::new(
            "covariance_type",
            Kind::Choice(&["full", "tied", "diag", "spherical"]),
            Preset::Text("full"),
        )
        .keyword(),
        Param::new("tol", Kind::Real, Preset::Real(1e-3)).keyword(),
        Param::new("reg_covar", Kind::Real, Preset::Real(1e-6)).keyword(),
        Param::new("max_iter", Kind::Integer, Preset::Integer(100)).keyword(),
        Param::new("n_init", Kind::Integer, Preset::Integer(1)).keyword(),
        Param::new(
            "init_params",
            Kind::Choice(&["kmeans", "random", "random_from_data", "k-means++"]),
            Preset::Text("kmeans"),
        )
        .keyword()
        .only(Kind::Choice(&["kmeans", "random"])),
        Param::new("weights_init", ARRAY_OR_NONE, Preset::None).keyword(),
        Param::new("means_init", ARRAY_OR_NONE, Preset::None).keyword(),
        Param::new("precisions_init", ARRAY_OR_NONE, Preset::None).keyword(),
        RANDOM_STATE,
        WARM_START,
        VERBOSE,
        Param::new("verbose_interval", Kind::Integer, Preset::Integer(10)).keyword(),
    ],
    "samples of several normal distributions",
    |args, _| Instance::made::<GaussianMixture>(&GAUSSIAN, args),
)];

model!(
    FittedGaussianMixture,
    maps: [predict, predict_proba, score_samples],
    score: |m, x, _y, options| m.score(x, options),
    converged: |m| m.converged,
    attributes: |m| {
        "converged_" => Value::Number(tharsis_numeric::Scalar::Bool(m.converged)),
        "covariances_" => array(&m.covariances),
        "lower_bound_" => real(m.lower_bound),
        "means_" => array(&m.means),
        "n_iter_" => whole(m.n_iter),
        "precisions_" => array(&m.precisions()),
        "precisions_cholesky_" => array(&m.precisions_cholesky()),
        "weights_" => array(&m.weights),
    },
);
