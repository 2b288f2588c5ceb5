//! Random projections, and features whose products are nearly kernels.

use super::args::{N_JOBS, RANDOM_STATE, class};
use super::model::{array, model, real, whole, wholes};
use super::object::{Class, Instance};
use crate::kernel_approximation::{
    AdditiveChi2Sampler, FittedAdditiveChi2Sampler, FittedNystroem, FittedPolynomialCountSketch,
    FittedRBFSampler, FittedSkewedChi2Sampler, Nystroem, PolynomialCountSketch, RBFSampler,
    SkewedChi2Sampler,
};
use crate::random_projection::{FittedRandomProjection, GaussianRandomProjection, SparseRandomProjection};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static GAUSSIAN: Class =
    Class { absent: &["inverse_components_"], ..Class::unsupervised("GaussianRandomProjection") };
static SPARSE: Class =
    Class { absent: &["inverse_components_"], ..Class::unsupervised("SparseRandomProjection") };
static RBF: Class = Class::unsupervised("RBFSampler");
static SKEWED: Class = Class::unsupervised("SkewedChi2Sampler");
static ADDITIVE: Class = Class::unsupervised("AdditiveChi2Sampler");
static SKETCH: Class = Class::unsupervised("PolynomialCountSketch");
static NYSTROEM: Class = Class::unsupervised("Nystroem");

const AUTO: Kind = Kind::Choice(&["auto"]);
const REAL_OR_NONE: Kind = Kind::OneOf(&[Kind::Real, Kind::None]);
/// The dimensions of a projection.
const PROJECTED: Param =
    Param::new("n_components", Kind::OneOf(&[Kind::Integer, AUTO]), Preset::Text("auto"));
const EPS: Param = Param::new("eps", Kind::Real, Preset::Real(0.1)).keyword();
/// Whether the inverse is kept; it is made where it is used.
const INVERSE: Param =
    Param::new("compute_inverse_components", Kind::Boolean, Preset::Boolean(false)).keyword();
const COMPONENTS: Param = Param::new("n_components", Kind::Integer, Preset::Integer(100)).keyword();
/// The kernels of scikit-learn, and those that are here.
const KERNELS: Kind = Kind::Choice(&[
    "additive_chi2",
    "chi2",
    "cosine",
    "laplacian",
    "linear",
    "poly",
    "polynomial",
    "precomputed",
    "rbf",
    "sigmoid",
]);
const KERNELS_HERE: Kind =
    Kind::Choice(&["cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid"]);

/// The maps.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.random_projection.GaussianRandomProjection",
        &[PROJECTED, EPS, INVERSE, RANDOM_STATE],
        "samples times a matrix of normal numbers",
        |args, _| Instance::made::<GaussianRandomProjection>(&GAUSSIAN, args),
    ),
    class(
        "sk.random_projection.SparseRandomProjection",
        &[
            PROJECTED,
            Param::new("density", Kind::OneOf(&[Kind::Real, AUTO]), Preset::Text("auto")).keyword(),
            EPS,
            // The result is dense.
            Param::new("dense_output", Kind::Boolean, Preset::Boolean(false)).keyword(),
            INVERSE,
            RANDOM_STATE,
        ],
        "samples times a matrix of few numbers of one size",
        |args, _| Instance::made::<SparseRandomProjection>(&SPARSE, args),
    ),
    class(
        "sk.kernel_approximation.RBFSampler",
        &[
            Param::new("gamma", Kind::OneOf(&[Kind::Choice(&["scale"]), Kind::Real]), Preset::Real(1.0))
                .keyword(),
            COMPONENTS,
            RANDOM_STATE,
        ],
        "features whose products are nearly a kernel of squared distances",
        |args, _| Instance::made::<RBFSampler>(&RBF, args),
    ),
    class(
        "sk.kernel_approximation.SkewedChi2Sampler",
        &[Param::new("skewedness", Kind::Real, Preset::Real(1.0)).keyword(), COMPONENTS, RANDOM_STATE],
        "features whose products are nearly the skewed chi squared kernel",
        |args, _| Instance::made::<SkewedChi2Sampler>(&SKEWED, args),
    ),
    class(
        "sk.kernel_approximation.AdditiveChi2Sampler",
        &[
            Param::new("sample_steps", Kind::Integer, Preset::Integer(2)).keyword(),
            Param::new("sample_interval", REAL_OR_NONE, Preset::None).keyword(),
        ],
        "features whose products are nearly the additive chi squared kernel",
        |args, _| Instance::made::<AdditiveChi2Sampler>(&ADDITIVE, args),
    ),
    class(
        "sk.kernel_approximation.PolynomialCountSketch",
        &[
            Param::new("gamma", Kind::Real, Preset::Real(1.0)).keyword(),
            Param::new("degree", Kind::Integer, Preset::Integer(2)).keyword(),
            Param::new("coef0", Kind::Real, Preset::Real(0.0)).keyword(),
            COMPONENTS,
            RANDOM_STATE,
        ],
        "features whose products are nearly a power of products",
        |args, _| Instance::made::<PolynomialCountSketch>(&SKETCH, args),
    ),
    class(
        "sk.kernel_approximation.Nystroem",
        &[
            Param::new("kernel", KERNELS, Preset::Text("rbf")).only(KERNELS_HERE),
            Param::new("gamma", REAL_OR_NONE, Preset::None).keyword(),
            Param::new("coef0", REAL_OR_NONE, Preset::None).keyword(),
            Param::new("degree", REAL_OR_NONE, Preset::None).keyword(),
            Param::new("kernel_params", Kind::Anything, Preset::None).keyword().fixed(),
            COMPONENTS,
            RANDOM_STATE,
            N_JOBS,
        ],
        "features whose products are nearly a kernel, by some of the samples",
        |args, _| Instance::made::<Nystroem>(&NYSTROEM, args),
    ),
];

model!(
    FittedRandomProjection,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "components_" => Value::Tensor(m.components()),
        "density_" => m.density.map_or(Value::None, real),
        "n_components_" => whole(m.n_components),
    },
);

model!(
    FittedRBFSampler,
    maps: [transform],
    attributes: |m| {
        "random_offset_" => Value::Tensor(m.random_offset()),
        "random_weights_" => Value::Tensor(m.random_weights()),
    },
);

model!(
    FittedSkewedChi2Sampler,
    maps: [transform],
    attributes: |m| {
        "random_offset_" => Value::Tensor(m.random_offset()),
        "random_weights_" => Value::Tensor(m.random_weights()),
    },
);

model!(FittedAdditiveChi2Sampler, maps: [transform], attributes: |_m| {});

model!(
    FittedPolynomialCountSketch,
    maps: [transform],
    attributes: |m| {
        "bitHash_" => Value::Tensor(m.bit_hash()),
        "indexHash_" => Value::Tensor(m.index_hash()),
    },
);

model!(
    FittedNystroem,
    maps: [transform],
    attributes: |m| {
        "component_indices_" => wholes(&m.component_indices),
        "components_" => array(&m.components),
        "normalization_" => array(&m.normalization),
    },
);
