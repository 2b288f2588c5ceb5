//! Numbers in the place of missing ones.

use super::args::{COPY, class, real_if_given};
use super::model::{array, model, wholes};
use super::object::{Class, Instance};
use crate::impute::{
    FittedMissingIndicator, FittedSimpleImputer, IndicatedFeatures, MissingIndicator, SimpleImputer,
    Statistic,
};
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Bound, Kind, Param, Preset, Row};

static SIMPLE_IMPUTER: Class = Class { absent: &["indicator_"], ..Class::unsupervised("SimpleImputer") };
static MISSING_INDICATOR: Class = Class::unsupervised("MissingIndicator");

const MISSING_VALUES: Param = Param::new("missing_values", Kind::Real, Preset::Real(f64::NAN)).keyword();

/// The estimators of missing numbers.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.impute.SimpleImputer",
        &[
            MISSING_VALUES,
            Param::new(
                "strategy",
                Kind::Choice(&["mean", "median", "most_frequent", "constant"]),
                Preset::Text("mean"),
            )
            .keyword(),
            Param::new("fill_value", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
            COPY,
            Param::new("add_indicator", Kind::Boolean, Preset::Boolean(false)).keyword(),
            Param::new("keep_empty_features", Kind::Boolean, Preset::Boolean(false)).keyword(),
        ],
        "missing numbers filled with a number for each feature",
        |args, _| Ok(Instance::value(&SIMPLE_IMPUTER, args, simple_imputer(args)?)),
    ),
    class(
        "sk.impute.MissingIndicator",
        &[
            MISSING_VALUES,
            Param::new("features", Kind::Choice(&["missing-only", "all"]), Preset::Text("missing-only"))
                .keyword(),
            Param::new(
                "sparse",
                Kind::OneOf(&[Kind::Boolean, Kind::Choice(&["auto"])]),
                Preset::Text("auto"),
            )
            .keyword()
            .fixed(),
            Param::new("error_on_new", Kind::Boolean, Preset::Boolean(true)).keyword(),
        ],
        "whether numbers are missing",
        |args, _| {
            let features = match args.text("features")? {
                "all" => IndicatedFeatures::All,
                _ => IndicatedFeatures::MissingOnly,
            };
            let estimator = MissingIndicator::new()
                .missing_values(args.real("missing_values")?)
                .features(features)
                .error_on_new(args.boolean("error_on_new")?);
            Ok(Instance::value(&MISSING_INDICATOR, args, estimator))
        },
    ),
];

fn simple_imputer(args: &Bound<Value>) -> Result<SimpleImputer, Failure> {
    let strategy = match args.text("strategy")? {
        "median" => Statistic::Median,
        "most_frequent" => Statistic::MostFrequent,
        "constant" => Statistic::Constant(real_if_given(args, "fill_value")?.unwrap_or(0.0)),
        _ => Statistic::Mean,
    };
    Ok(SimpleImputer::new()
        .missing_values(args.real("missing_values")?)
        .strategy(strategy)
        .add_indicator(args.boolean("add_indicator")?)
        .keep_empty_features(args.boolean("keep_empty_features")?))
}

model!(
    FittedSimpleImputer,
    maps: [transform],
    attributes: |m| {
        "statistics_" => array(&m.statistics),
    },
);

model!(
    FittedMissingIndicator,
    maps: [transform],
    attributes: |m| {
        "features_" => wholes(&m.features),
    },
);
