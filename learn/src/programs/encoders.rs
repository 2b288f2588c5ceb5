//! Categories, bins and splines of features, labels, and kernels around their means.

use super::args::{INTEGER_OR_NONE, RANDOM_STATE, class};
use super::model::{array, classes, model, real, whole, wholes};
use super::object::{Class, Instance};
use crate::preprocessing::{
    Categories, FittedKBinsDiscretizer, FittedKernelCenterer, FittedLabelBinarizer, FittedLabelEncoder,
    FittedOneHotEncoder, FittedOrdinalEncoder, FittedSplineTransformer, FittedTargetEncoder,
    KBinsDiscretizer, KernelCenterer, LabelBinarizer, LabelEncoder, OneHotEncoder, OrdinalEncoder,
    SplineTransformer, TargetEncoder, TargetType,
};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static ONE_HOT: Class = Class { hidden: &[("drop_idx_", &["drop"])], ..Class::unsupervised("OneHotEncoder") };
static ORDINAL: Class = Class::unsupervised("OrdinalEncoder");
static BINS: Class = Class::unsupervised("KBinsDiscretizer");
static LABELS: Class = Class::unsupervised("LabelEncoder");
static BINARIZER: Class =
    Class { absent: &["sparse_input_", "y_type_"], ..Class::unsupervised("LabelBinarizer") };
static SPLINES: Class = Class { absent: &["bsplines_"], ..Class::unsupervised("SplineTransformer") };
static TARGETS: Class = Class::supervised("TargetEncoder");
static CENTERER: Class = Class::unsupervised("KernelCenterer");

const AUTO: Kind = Kind::Choice(&["auto"]);
const DROPS: Kind = Kind::Choice(&["first", "if_binary"]);
const CATEGORIES: Param =
    Param::new("categories", Kind::OneOf(&[AUTO, Kind::Array]), Preset::Text("auto")).keyword().only(AUTO);
const MIN_FREQUENCY: Param =
    Param::new("min_frequency", Kind::OneOf(&[Kind::Integer, Kind::Real, Kind::None]), Preset::None)
        .keyword();
const MAX_CATEGORIES: Param = Param::new("max_categories", INTEGER_OR_NONE, Preset::None).keyword();
const DEPRECATED: Kind = Kind::Choice(&["deprecated"]);
const KNOTS: Kind = Kind::Choice(&["uniform", "quantile"]);
const METHODS: Kind = Kind::Choice(&[
    "averaged_inverted_cdf",
    "closest_observation",
    "hazen",
    "interpolated_inverted_cdf",
    "inverted_cdf",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "weibull",
]);

/// The encoders.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.preprocessing.OneHotEncoder",
        &[
            CATEGORIES,
            Param::new("drop", Kind::OneOf(&[DROPS, Kind::Array, Kind::None]), Preset::None)
                .keyword()
                .only(Kind::OneOf(&[DROPS, Kind::None])),
            // The result is dense.
            Param::new("sparse_output", Kind::Boolean, Preset::Boolean(true)).keyword(),
            Param::new(
                "handle_unknown",
                Kind::Choice(&["error", "ignore", "infrequent_if_exist", "warn"]),
                Preset::Text("error"),
            )
            .keyword(),
            MIN_FREQUENCY,
            MAX_CATEGORIES,
            // A function that combines them is no value of a program.
            Param::new("feature_name_combiner", Kind::Choice(&["concat"]), Preset::Text("concat")).keyword(),
        ],
        "a column for each category of each feature",
        |args, _| Instance::made::<OneHotEncoder>(&ONE_HOT, args),
    ),
    class(
        "sk.preprocessing.OrdinalEncoder",
        &[
            CATEGORIES,
            Param::new(
                "handle_unknown",
                Kind::Choice(&["error", "use_encoded_value"]),
                Preset::Text("error"),
            )
            .keyword(),
            Param::new("unknown_value", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
            Param::new("encoded_missing_value", Kind::Real, Preset::Real(f64::NAN)).keyword(),
            MIN_FREQUENCY,
            MAX_CATEGORIES,
        ],
        "the position of each number among the categories of its feature",
        |args, _| Instance::made::<OrdinalEncoder>(&ORDINAL, args),
    ),
    class(
        "sk.preprocessing.KBinsDiscretizer",
        &[
            Param::new("n_bins", Kind::OneOf(&[Kind::Integer, Kind::Array]), Preset::Integer(5)),
            Param::new(
                "encode",
                Kind::Choice(&["onehot", "onehot-dense", "ordinal"]),
                Preset::Text("onehot"),
            )
            .keyword(),
            Param::new(
                "strategy",
                Kind::Choice(&["uniform", "quantile", "kmeans"]),
                Preset::Text("quantile"),
            )
            .keyword(),
            Param::new("quantile_method", METHODS, Preset::Text("averaged_inverted_cdf")).keyword(),
            Param::new("dtype", Kind::Anything, Preset::None).keyword().fixed(),
            // All samples make the edges.
            Param::new("subsample", INTEGER_OR_NONE, Preset::Integer(200_000)).keyword(),
            RANDOM_STATE,
        ],
        "the bin of each number",
        |args, _| Instance::made::<KBinsDiscretizer>(&BINS, args),
    ),
    class("sk.preprocessing.LabelEncoder", &[], "the position of each label among all of them", |args, _| {
        Instance::made::<LabelEncoder>(&LABELS, args)
    }),
    class(
        "sk.preprocessing.LabelBinarizer",
        &[
            Param::new("neg_label", Kind::Integer, Preset::Integer(0)).keyword(),
            Param::new("pos_label", Kind::Integer, Preset::Integer(1)).keyword(),
            Param::new("sparse_output", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
        ],
        "a column for each label, or one for two of them",
        |args, _| Instance::made::<LabelBinarizer>(&BINARIZER, args),
    ),
    class(
        "sk.preprocessing.SplineTransformer",
        &[
            Param::new("n_knots", Kind::Integer, Preset::Integer(5)),
            Param::new("degree", Kind::Integer, Preset::Integer(3)),
            Param::new("knots", Kind::OneOf(&[KNOTS, Kind::Array]), Preset::Text("uniform"))
                .keyword()
                .only(KNOTS),
            Param::new(
                "extrapolation",
                Kind::Choice(&["error", "constant", "linear", "continue", "periodic"]),
                Preset::Text("constant"),
            )
            .keyword(),
            Param::new("include_bias", Kind::Boolean, Preset::Boolean(true)).keyword(),
            // The order of elements in memory, which programs do not see.
            Param::new("order", Kind::Choice(&["C", "F"]), Preset::Text("C")).keyword(),
            Param::new("handle_missing", Kind::Choice(&["error", "zeros"]), Preset::Text("error")).keyword(),
            Param::new("sparse_output", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
        ],
        "the B-splines of each feature",
        |args, _| Instance::made::<SplineTransformer>(&SPLINES, args),
    ),
    class(
        "sk.preprocessing.TargetEncoder",
        &[
            Param::new("categories", Kind::OneOf(&[AUTO, Kind::Array]), Preset::Text("auto")).only(AUTO),
            Param::new(
                "target_type",
                Kind::Choice(&["auto", "continuous", "binary", "multiclass"]),
                Preset::Text("auto"),
            ),
            Param::new("smooth", Kind::OneOf(&[AUTO, Kind::Real]), Preset::Text("auto")),
            Param::new("cv", Kind::Integer, Preset::Integer(5)),
            Param::new("shuffle", Kind::OneOf(&[Kind::Boolean, DEPRECATED]), Preset::Text("deprecated"))
                .fixed(),
            Param::new(
                "random_state",
                Kind::OneOf(&[INTEGER_OR_NONE, DEPRECATED]),
                Preset::Text("deprecated"),
            )
            .fixed(),
        ],
        "the mean of the targets of each category",
        |args, _| Instance::made::<TargetEncoder>(&TARGETS, args),
    ),
    class("sk.preprocessing.KernelCenterer", &[], "a kernel around the mean of its samples", |args, _| {
        Instance::made::<KernelCenterer>(&CENTERER, args)
    }),
];

/// Categories as a value; (k,), in their own type.
fn values(categories: &Categories) -> Value {
    Value::Tensor(categories.to_tensor())
}

/// The categories that are rare, for each feature; none where there are none.
fn rare(categories: &[Categories]) -> Value {
    let of_feature = |rare: &Categories| if rare.is_empty() { Value::None } else { values(rare) };
    Value::List(categories.iter().map(of_feature).collect())
}

model!(
    FittedOneHotEncoder,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "categories_" => Value::List(m.categories.iter().map(values).collect()),
        "drop_idx_" => dropped(&m.drop_idx()),
        "infrequent_categories_" => rare(&m.infrequent_categories()),
    },
);

/// The position of the category of each feature that is left out.
fn dropped(positions: &[Option<usize>]) -> Value {
    Value::List(positions.iter().map(|position| position.map_or(Value::None, whole)).collect())
}

model!(
    FittedOrdinalEncoder,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "categories_" => Value::List(m.categories.iter().map(values).collect()),
        "infrequent_categories_" => rare(&m.infrequent_categories()),
    },
);

model!(
    FittedKBinsDiscretizer,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "bin_edges_" => Value::List(m.bin_edges.iter().map(array).collect()),
        "n_bins_" => wholes(&m.n_bins()),
    },
);

model!(
    FittedKernelCenterer,
    maps: [transform],
    attributes: |m| {
        "K_fit_all_" => real(m.k_fit_all),
        "K_fit_rows_" => array(&m.k_fit_rows),
    },
);

model!(
    FittedLabelEncoder,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "classes_" => classes(&m.classes),
    },
);

model!(
    FittedLabelBinarizer,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "classes_" => classes(&m.classes),
    },
);

model!(
    FittedSplineTransformer,
    maps: [transform],
    attributes: |m| {
        "n_features_out_" => whole(m.n_features_out()),
    },
);

model!(
    FittedTargetEncoder,
    maps: [transform],
    attributes: |m| {
        "categories_" => Value::List(m.categories.iter().map(values).collect()),
        "classes_" => m.classes.as_deref().map_or(Value::None, classes),
        "encodings_" => encodings(m),
        "target_mean_" => match m.target_type {
            TargetType::Multiclass => array(&m.target_mean),
            _ => real(m.target_mean.sum()),
        },
        "target_type_" => Value::Text(target_type(m.target_type).to_owned()),
    },
);

/// A list of the numbers of categories, for each class of each feature.
fn encodings(model: &FittedTargetEncoder) -> Value {
    let columns = model.encodings.iter().flat_map(|encodings| encodings.columns());
    Value::List(columns.map(|column| array(&column.to_owned())).collect())
}

fn target_type(kind: TargetType) -> &'static str {
    match kind {
        TargetType::Auto => "auto",
        TargetType::Binary => "binary",
        TargetType::Continuous => "continuous",
        TargetType::Multiclass => "multiclass",
    }
}
