//! Directions of samples.

use super::args::{COPY, INTEGER_OR_NONE, RANDOM_STATE, class};
use super::model::{array, model, numbers, real, whole};
use super::object::{Class, Instance};
use crate::decomposition::{
    FactorAnalysis, FastICA, FittedFactorAnalysis, FittedFastICA, FittedIncrementalPCA, FittedNMF, FittedPCA,
    FittedTruncatedSVD, IncrementalPCA, NMF, PCA, TruncatedSVD,
};
use tharsis_graph::Error as GraphError;
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_numeric::{DType, Error, Tensor};
use tharsis_programs::{Kind, Param, Preset, Row};

static FACTORS: Class = Class::unsupervised("FactorAnalysis");
static INDEPENDENT: Class = Class::unsupervised("FastICA");
static INCREMENTAL: Class = Class { absent: &["batch_size_"], ..Class::unsupervised("IncrementalPCA") };
static NMF_CLASS: Class = Class::unsupervised("NMF");
static PCA_CLASS: Class = Class::unsupervised("PCA");
static TRUNCATED_SVD: Class = Class::unsupervised("TruncatedSVD");

const AUTO_OR_INTEGER: Kind = Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Integer]);
const N_OVERSAMPLES: Param =
    Param::new("n_oversamples", Kind::Integer, Preset::Integer(10)).keyword().fixed();
const NORMALIZER: Param = Param::new(
    "power_iteration_normalizer",
    Kind::Choice(&["auto", "LU", "QR", "none"]),
    Preset::Text("auto"),
)
.keyword()
.fixed();
const TOL: Param = Param::new("tol", Kind::Real, Preset::Real(0.0)).keyword().fixed();

const NMF_INITS: &[&str] = &["random", "nndsvd", "nndsvda", "nndsvdar", "custom"];

/// The directions of samples.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.decomposition.FactorAnalysis",
        &[
            Param::new("n_components", INTEGER_OR_NONE, Preset::None),
            Param::new("tol", Kind::Real, Preset::Real(0.01)).keyword(),
            COPY,
            Param::new("max_iter", Kind::Integer, Preset::Integer(1000)).keyword(),
            Param::new("noise_variance_init", Kind::OneOf(&[Kind::Array, Kind::None]), Preset::None)
                .keyword(),
            // Both are exact.
            Param::new("svd_method", Kind::Choice(&["lapack", "randomized"]), Preset::Text("randomized"))
                .keyword(),
            Param::new("iterated_power", Kind::Integer, Preset::Integer(3)).keyword(),
            Param::new(
                "rotation",
                Kind::OneOf(&[Kind::Choice(&["varimax", "quartimax"]), Kind::None]),
                Preset::None,
            )
            .keyword()
            .fixed(),
            Param::new("random_state", INTEGER_OR_NONE, Preset::Integer(0)).keyword(),
        ],
        "few factors behind many features",
        |args, _| Instance::made::<FactorAnalysis>(&FACTORS, args),
    ),
    class(
        "sk.decomposition.FastICA",
        &[
            Param::new("n_components", INTEGER_OR_NONE, Preset::None),
            Param::new("algorithm", Kind::Choice(&["parallel", "deflation"]), Preset::Text("parallel"))
                .keyword()
                .fixed(),
            Param::new(
                "whiten",
                Kind::OneOf(&[Kind::Choice(&["arbitrary-variance", "unit-variance"]), Kind::Boolean]),
                Preset::Text("unit-variance"),
            )
            .keyword()
            .only(Kind::Choice(&["arbitrary-variance", "unit-variance"])),
            Param::new("fun", Kind::Choice(&["logcosh", "exp", "cube"]), Preset::Text("logcosh")).keyword(),
            Param::new("fun_args", Kind::OneOf(&[Kind::Sequence, Kind::None]), Preset::None)
                .keyword()
                .fixed(),
            Param::new("max_iter", Kind::Integer, Preset::Integer(200)).keyword(),
            Param::new("tol", Kind::Real, Preset::Real(1e-4)).keyword(),
            Param::new("w_init", Kind::OneOf(&[Kind::Array, Kind::None]), Preset::None).keyword(),
            // Both find the same directions.
            Param::new("whiten_solver", Kind::Choice(&["eigh", "svd"]), Preset::Text("svd")).keyword(),
            RANDOM_STATE,
        ],
        "independent sources of samples",
        |args, _| Instance::made::<FastICA>(&INDEPENDENT, args),
    ),
    class(
        "sk.decomposition.IncrementalPCA",
        &[
            Param::new("n_components", INTEGER_OR_NONE, Preset::None),
            Param::new("whiten", Kind::Boolean, Preset::Boolean(false)).keyword(),
            COPY,
            Param::new("batch_size", INTEGER_OR_NONE, Preset::None).keyword(),
        ],
        "directions of the largest variance, of a batch of samples after the other",
        |args, _| Instance::made::<IncrementalPCA>(&INCREMENTAL, args),
    ),
    class(
        "sk.decomposition.NMF",
        &[
            Param::new(
                "n_components",
                Kind::OneOf(&[Kind::Integer, Kind::Choice(&["auto"]), Kind::None]),
                Preset::Text("auto"),
            )
            .only(Kind::OneOf(&[Kind::Integer, Kind::Choice(&["auto"])])),
            Param::new("init", Kind::OneOf(&[Kind::Choice(NMF_INITS), Kind::None]), Preset::None)
                .keyword()
                .only(Kind::OneOf(&[Kind::Choice(&["random", "nndsvd", "nndsvda", "nndsvdar"]), Kind::None])),
            Param::new("solver", Kind::Choice(&["mu", "cd"]), Preset::Text("cd")).keyword().fixed(),
            Param::new(
                "beta_loss",
                Kind::OneOf(&[Kind::Choice(&["frobenius", "kullback-leibler", "itakura-saito"]), Kind::Real]),
                Preset::Text("frobenius"),
            )
            .keyword()
            .fixed(),
            Param::new("tol", Kind::Real, Preset::Real(1e-4)).keyword(),
            Param::new("max_iter", Kind::Integer, Preset::Integer(200)).keyword(),
            RANDOM_STATE,
            Param::new("alpha_W", Kind::Real, Preset::Real(0.0)).keyword(),
            Param::new("alpha_H", Kind::OneOf(&[Kind::Real, Kind::Choice(&["same"])]), Preset::Text("same"))
                .keyword(),
            Param::new("l1_ratio", Kind::Real, Preset::Real(0.0)).keyword(),
            super::args::VERBOSE,
            Param::new("shuffle", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
        ],
        "samples as sums of parts, none of which is negative",
        |args, _| Instance::made::<NMF>(&NMF_CLASS, args),
    ),
    class(
        "sk.decomposition.PCA",
        &[
            Param::new(
                "n_components",
                Kind::OneOf(&[Kind::Integer, Kind::Real, Kind::Choice(&["mle"]), Kind::None]),
                Preset::None,
            )
            .only(Kind::OneOf(&[Kind::Real, Kind::None])),
            COPY,
            Param::new("whiten", Kind::Boolean, Preset::Boolean(false)).keyword(),
            Param::new(
                "svd_solver",
                Kind::Choice(&["auto", "full", "covariance_eigh", "arpack", "randomized"]),
                Preset::Text("auto"),
            )
            .keyword()
            .only(Kind::Choice(&["auto", "covariance_eigh"])),
            TOL,
            Param::new("iterated_power", AUTO_OR_INTEGER, Preset::Text("auto")).keyword().fixed(),
            N_OVERSAMPLES,
            NORMALIZER,
            RANDOM_STATE,
        ],
        "directions of the largest variance",
        |args, _| Instance::made::<PCA>(&PCA_CLASS, args),
    ),
    class(
        "sk.decomposition.TruncatedSVD",
        &[
            Param::new("n_components", Kind::Integer, Preset::Integer(2)),
            Param::new("algorithm", Kind::Choice(&["arpack", "randomized"]), Preset::Text("randomized"))
                .keyword(),
            Param::new("n_iter", Kind::Integer, Preset::Integer(5)).keyword().fixed(),
            N_OVERSAMPLES,
            NORMALIZER,
            RANDOM_STATE,
            TOL,
        ],
        "directions of the largest sums of squares; exact under both names of algorithms",
        |args, _| Instance::made::<TruncatedSVD>(&TRUNCATED_SVD, args),
    ),
];

/// scikit-learn's `score` of a PCA: the mean logarithm of the likelihoods of samples.
///
/// # Errors
/// `TypeError` for weights, as in scikit-learn; errors of the pass.
fn mean_likelihood(model: &FittedPCA, x: &Tensor, options: &crate::FitOptions) -> crate::Result<f64> {
    if options.weights().is_some() {
        let text = "PCA.score() got an unexpected keyword argument 'sample_weight'";
        return Err(Error::here(GraphError::Type(text.to_owned())));
    }
    let mean = model.score_samples(x)?.mean(..).astype(DType::F64);
    Ok(mean.fetch_on::<f64>(&*options.chosen_executor())?.sum())
}

model!(
    FittedPCA,
    maps: [inverse_transform, transform],
    results: [score_samples],
    score: |m, x, _y, options| mean_likelihood(m, x, options),
    attributes: |m| {
        "components_" => array(&m.components),
        "explained_variance_" => array(&m.explained_variance),
        "explained_variance_ratio_" => array(&m.explained_variance_ratio),
        "mean_" => array(&m.mean),
        "n_components_" => whole(m.components.nrows()),
        "n_samples_" => whole(m.n_samples),
        "noise_variance_" => real(m.noise_variance),
        "singular_values_" => array(&m.singular_values),
    },
);

model!(
    FittedTruncatedSVD,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "components_" => array(&m.components),
        "explained_variance_" => array(&m.explained_variance),
        "explained_variance_ratio_" => array(&m.explained_variance_ratio),
        "singular_values_" => array(&m.singular_values),
    },
);

model!(
    FittedFactorAnalysis,
    maps: [transform],
    results: [score_samples],
    score: |m, x, _y, options| m.score(x, options),
    converged: |m| m.converged,
    attributes: |m| {
        "components_" => array(&m.components),
        "loglike_" => numbers(&m.loglike),
        "mean_" => array(&m.mean),
        "n_iter_" => whole(m.n_iter),
        "noise_variance_" => array(&m.noise_variance),
    },
);

model!(
    FittedFastICA,
    maps: [inverse_transform, transform],
    converged: |m| m.converged,
    attributes: |m| {
        "components_" => array(&m.components),
        "mean_" => array(&m.mean),
        "mixing_" => array(&m.mixing),
        "n_iter_" => whole(m.n_iter),
        "whitening_" => array(&m.whitening),
    },
);

model!(
    FittedIncrementalPCA,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "components_" => array(&m.components),
        "explained_variance_" => array(&m.explained_variance),
        "explained_variance_ratio_" => array(&m.explained_variance_ratio),
        "mean_" => array(&m.mean),
        "n_components_" => whole(m.components.nrows()),
        "n_samples_seen_" => whole(m.n_samples_seen),
        "noise_variance_" => real(m.noise_variance),
        "singular_values_" => array(&m.singular_values),
        "var_" => array(&m.var),
    },
);

model!(
    FittedNMF,
    maps: [inverse_transform, transform],
    converged: |m| m.converged,
    attributes: |m| {
        "components_" => array(&m.components),
        "n_components_" => whole(m.components.nrows()),
        "n_iter_" => whole(m.n_iter),
        "reconstruction_err_" => real(m.reconstruction_err),
    },
);
