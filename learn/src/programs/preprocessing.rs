//! Maps of features.

use super::args::{COPY, class};
use super::model::{array, model, real, whole};
use super::object::{Class, Instance};
use crate::preprocessing::{
    Binarizer, FittedMaxAbsScaler, FittedMinMaxScaler, FittedStandardScaler, MaxAbsScaler, MinMaxScaler,
    Normalizer, StandardScaler,
};
use ndarray::Array1;
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static STANDARD_SCALER: Class = Class {
    hidden: &[("mean_", &["with_mean", "with_std"]), ("scale_", &["with_std"]), ("var_", &["with_std"])],
    ..Class::unsupervised("StandardScaler")
};
static MIN_MAX_SCALER: Class =
    Class { samples: Some("n_samples_seen_"), ..Class::unsupervised("MinMaxScaler") };
static MAX_ABS_SCALER: Class =
    Class { samples: Some("n_samples_seen_"), ..Class::unsupervised("MaxAbsScaler") };
static NORMALIZER: Class = Class::unsupervised("Normalizer");
static BINARIZER: Class = Class::unsupervised("Binarizer");

/// The maps of features.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.preprocessing.StandardScaler",
        &[
            COPY,
            Param::new("with_mean", Kind::Boolean, Preset::Boolean(true)).keyword(),
            Param::new("with_std", Kind::Boolean, Preset::Boolean(true)).keyword(),
        ],
        "features less their means, divided by their standard deviations",
        |args, _| Instance::made::<StandardScaler>(&STANDARD_SCALER, args),
    ),
    class(
        "sk.preprocessing.MinMaxScaler",
        &[
            Param::new(
                "feature_range",
                Kind::Tuple,
                Preset::Tuple(&[Preset::Integer(0), Preset::Integer(1)]),
            ),
            COPY,
            Param::new("clip", Kind::Boolean, Preset::Boolean(false)).keyword(),
        ],
        "features scaled to a range",
        |args, _| Instance::made::<MinMaxScaler>(&MIN_MAX_SCALER, args),
    ),
    class(
        "sk.preprocessing.MaxAbsScaler",
        &[COPY, Param::new("clip", Kind::Boolean, Preset::Boolean(false)).keyword().fixed()],
        "features divided by their largest absolute values",
        |args, _| Instance::made::<MaxAbsScaler>(&MAX_ABS_SCALER, args),
    ),
    class(
        "sk.preprocessing.Normalizer",
        &[Param::new("norm", Kind::Choice(&["l1", "l2", "max"]), Preset::Text("l2")), COPY],
        "samples divided by their lengths",
        |args, _| Instance::made_fitted::<Normalizer>(&NORMALIZER, args),
    ),
    class(
        "sk.preprocessing.Binarizer",
        &[Param::new("threshold", Kind::Real, Preset::Real(0.0)).keyword(), COPY],
        "1 where a feature is above a threshold, else 0",
        |args, _| Instance::made_fitted::<Binarizer>(&BINARIZER, args),
    ),
];

/// scikit-learn's `n_samples_seen_`: one number where all features have the same.
fn samples_seen(seen: &Array1<f64>) -> Value {
    match seen.first() {
        Some(&first) if seen.iter().all(|&count| count == first) => {
            if first.fract() == 0.0 {
                whole(first as usize)
            } else {
                real(first)
            }
        }
        _ => array(seen),
    }
}

model!(
    FittedStandardScaler,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "mean_" => array(&m.mean),
        "n_samples_seen_" => samples_seen(&m.n_samples_seen),
        "scale_" => array(&m.scale),
        "var_" => array(&m.var),
    },
);

model!(
    FittedMinMaxScaler,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "data_max_" => array(&m.data_max),
        "data_min_" => array(&m.data_min),
        "data_range_" => array(&m.data_range),
        "min_" => array(&m.min),
        "scale_" => array(&m.scale),
    },
);

model!(
    FittedMaxAbsScaler,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "max_abs_" => array(&m.max_abs),
        "scale_" => array(&m.scale),
    },
);

model!(Normalizer, maps: [transform], attributes: |_m| {});

model!(Binarizer, maps: [transform], attributes: |_m| {});
