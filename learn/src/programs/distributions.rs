//! Maps of features by their distributions, and products of them.

use super::args::{COPY, INTEGER_OR_NONE, RANDOM_STATE, class};
use super::model::{array, model, whole};
use super::object::{Class, Instance};
use crate::preprocessing::{
    FittedPolynomialFeatures, FittedPowerTransformer, FittedQuantileTransformer, FittedRobustScaler,
    PolynomialFeatures, PowerTransformer, QuantileTransformer, RobustScaler,
};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static ROBUST_SCALER: Class = Class {
    hidden: &[("center_", &["with_centering"]), ("scale_", &["with_scaling"])],
    ..Class::unsupervised("RobustScaler")
};
static QUANTILE_TRANSFORMER: Class = Class::unsupervised("QuantileTransformer");
static POWER_TRANSFORMER: Class = Class::unsupervised("PowerTransformer");
static POLYNOMIAL_FEATURES: Class = Class::unsupervised("PolynomialFeatures");

/// The maps by distributions, and the products.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.preprocessing.RobustScaler",
        &[
            Param::new("with_centering", Kind::Boolean, Preset::Boolean(true)).keyword(),
            Param::new("with_scaling", Kind::Boolean, Preset::Boolean(true)).keyword(),
            Param::new(
                "quantile_range",
                Kind::Sequence,
                Preset::Tuple(&[Preset::Real(25.0), Preset::Real(75.0)]),
            )
            .keyword(),
            COPY,
            Param::new("unit_variance", Kind::Boolean, Preset::Boolean(false)).keyword(),
        ],
        "features less their medians, divided by the distance of two quantiles",
        |args, _| Instance::made::<RobustScaler>(&ROBUST_SCALER, args),
    ),
    class(
        "sk.preprocessing.QuantileTransformer",
        &[
            Param::new("n_quantiles", Kind::Integer, Preset::Integer(1000)).keyword(),
            Param::new("output_distribution", Kind::Choice(&["uniform", "normal"]), Preset::Text("uniform"))
                .keyword(),
            Param::new("ignore_implicit_zeros", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
            // All samples make the quantiles.
            Param::new("subsample", INTEGER_OR_NONE, Preset::Integer(10_000)).keyword(),
            RANDOM_STATE,
            COPY,
        ],
        "features as shares of samples, or as normal ones",
        |args, _| Instance::made::<QuantileTransformer>(&QUANTILE_TRANSFORMER, args),
    ),
    class(
        "sk.preprocessing.PowerTransformer",
        &[
            Param::new("method", Kind::Choice(&["yeo-johnson", "box-cox"]), Preset::Text("yeo-johnson")),
            Param::new("standardize", Kind::Boolean, Preset::Boolean(true)).keyword(),
            COPY,
        ],
        "features bent by powers that make them most likely to be normal",
        |args, _| Instance::made::<PowerTransformer>(&POWER_TRANSFORMER, args),
    ),
    class(
        "sk.preprocessing.PolynomialFeatures",
        &[
            Param::new("degree", Kind::OneOf(&[Kind::Integer, Kind::Sequence]), Preset::Integer(2)),
            Param::new("interaction_only", Kind::Boolean, Preset::Boolean(false)).keyword(),
            Param::new("include_bias", Kind::Boolean, Preset::Boolean(true)).keyword(),
            // The order of elements in memory, which programs do not see.
            Param::new("order", Kind::Choice(&["C", "F"]), Preset::Text("C")).keyword(),
        ],
        "products of features",
        |args, _| Instance::made::<PolynomialFeatures>(&POLYNOMIAL_FEATURES, args),
    ),
];

model!(
    FittedRobustScaler,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "center_" => array(&m.center),
        "scale_" => array(&m.scale),
    },
);

model!(
    FittedQuantileTransformer,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "n_quantiles_" => whole(m.references.len()),
        "quantiles_" => array(&m.quantiles),
        "references_" => array(&m.references),
    },
);

model!(
    FittedPowerTransformer,
    maps: [inverse_transform, transform],
    converged: |m| m.converged,
    attributes: |m| {
        "lambdas_" => array(&m.lambdas),
    },
);

model!(
    FittedPolynomialFeatures,
    maps: [transform],
    attributes: |m| {
        "n_output_features_" => whole(m.n_output_features()),
        "powers_" => Value::Tensor(m.powers()),
    },
);
