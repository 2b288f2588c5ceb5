//! Trees, forests and boosting.

use super::args::{
    ARRAY_OR_NONE, INTEGER_OR_NONE, N_ESTIMATORS, N_JOBS, RANDOM_STATE, VERBOSE, WARM_START, class,
};
use super::model::{Described, array, classes, model, real, supervised_score, whole};
use super::object::{Class, Instance, Labels};
use crate::base::{Estimator, PredictProba};
use crate::ensemble::{
    ExtraTreesClassifier, ExtraTreesRegressor, FittedExtraTreesClassifier, FittedExtraTreesRegressor,
    FittedHistGradientBoostingClassifier, FittedHistGradientBoostingRegressor, FittedIsolationForest,
    FittedRandomForestClassifier, FittedRandomForestRegressor, HistGradientBoostingClassifier,
    HistGradientBoostingRegressor, IsolationForest, RandomForestClassifier, RandomForestRegressor,
};
use crate::params::Params;
use crate::tree::{
    DecisionTreeClassifier, DecisionTreeRegressor, FittedDecisionTreeClassifier, FittedDecisionTreeRegressor,
};
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Argument, Bound, Kind, Look, Param, Preset, Row};

const OF_TREES: &[&str] = &["max_features_", "tree_"];
const OF_FORESTS: &[&str] = &["estimator_", "estimators_", "estimators_samples_"];
const OF_BOOSTING: &[&str] = &["do_early_stopping_", "is_categorical_", "n_trees_per_iteration_"];

static TREE_CLASSIFIER: Class = Class { absent: OF_TREES, ..Class::supervised("DecisionTreeClassifier") };
static TREE_REGRESSOR: Class = Class { absent: OF_TREES, ..Class::supervised("DecisionTreeRegressor") };
static FOREST_CLASSIFIER: Class = Class { absent: OF_FORESTS, ..Class::supervised("RandomForestClassifier") };
static FOREST_REGRESSOR: Class = Class { absent: OF_FORESTS, ..Class::supervised("RandomForestRegressor") };
static EXTRA_CLASSIFIER: Class = Class { absent: OF_FORESTS, ..Class::supervised("ExtraTreesClassifier") };
static EXTRA_REGRESSOR: Class = Class { absent: OF_FORESTS, ..Class::supervised("ExtraTreesRegressor") };
static BOOSTED_CLASSIFIER: Class =
    Class { absent: OF_BOOSTING, ..Class::supervised("HistGradientBoostingClassifier") };
static BOOSTED_REGRESSOR: Class =
    Class { absent: OF_BOOSTING, ..Class::supervised("HistGradientBoostingRegressor") };
static ISOLATION_FOREST: Class = Class {
    fit_predict: Some(Labels::Method("predict")),
    absent: &["estimator_", "estimators_", "estimators_features_", "estimators_samples_"],
    ..Class::unsupervised("IsolationForest")
};

const INTEGER_OR_SHARE: Kind = Kind::OneOf(&[Kind::Integer, Kind::Real]);
const CLASS_CRITERION: Param =
    Param::new("criterion", Kind::Choice(&["gini", "entropy", "log_loss"]), Preset::Text("gini")).keyword();
const CRITERION: Param = Param::new(
    "criterion",
    Kind::Choice(&["squared_error", "absolute_error", "poisson"]),
    Preset::Text("squared_error"),
)
.keyword()
.fixed();
const SPLITTER: Param =
    Param::new("splitter", Kind::Choice(&["best", "random"]), Preset::Text("best")).keyword().fixed();
const MAX_DEPTH: Param = Param::new("max_depth", INTEGER_OR_NONE, Preset::None).keyword();
const MIN_SAMPLES_SPLIT: Param =
    Param::new("min_samples_split", INTEGER_OR_SHARE, Preset::Integer(2)).keyword().only(Kind::Integer);
const MIN_SAMPLES_LEAF: Param =
    Param::new("min_samples_leaf", INTEGER_OR_SHARE, Preset::Integer(1)).keyword().only(Kind::Integer);
const MIN_WEIGHT: Param =
    Param::new("min_weight_fraction_leaf", Kind::Real, Preset::Real(0.0)).keyword().fixed();
const FEATURES: Kind = Kind::OneOf(&[Kind::Integer, Kind::Real, Kind::Choice(&["sqrt", "log2"]), Kind::None]);
const MAX_LEAF_NODES: Param = Param::new("max_leaf_nodes", INTEGER_OR_NONE, Preset::None).keyword();
const MIN_DECREASE: Param = Param::new("min_impurity_decrease", Kind::Real, Preset::Real(0.0)).keyword();
const OOB_SCORE: Param = Param::new("oob_score", Kind::Boolean, Preset::Boolean(false)).keyword().fixed();
const CLASS_WEIGHT: Param = Param::new("class_weight", Kind::Anything, Preset::None).keyword().fixed();
const CCP_ALPHA: Param = Param::new("ccp_alpha", Kind::Real, Preset::Real(0.0)).keyword().fixed();
const MAX_SAMPLES: Param =
    Param::new("max_samples", Kind::OneOf(&[Kind::Integer, Kind::Real, Kind::None]), Preset::None)
        .keyword()
        .only(Kind::OneOf(&[Kind::Real, Kind::None]));
const MONOTONIC: Param = Param::new("monotonic_cst", ARRAY_OR_NONE, Preset::None).keyword().fixed();

const fn max_features(default: Preset) -> Param {
    Param::new("max_features", FEATURES, default).keyword()
}

const fn bootstrap(default: bool) -> Param {
    Param::new("bootstrap", Kind::Boolean, Preset::Boolean(default)).keyword()
}

/// The parameters of forests of classifiers.
const fn forest_classifier(is_bootstrapped: bool) -> [Param; 19] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] =
        forest(CLASS_CRITERION, max_features(Preset::Text("sqrt")), is_bootstrapped);
    [N_ESTIMATORS, a, b, c, d, e, f, g, h, i, j, k, l, m, n, CLASS_WEIGHT, o, p, q]
}

/// The parameters of forests of regressors.
const fn forest_regressor(is_bootstrapped: bool) -> [Param; 18] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] =
        forest(CRITERION, max_features(Preset::Real(1.0)), is_bootstrapped);
    [N_ESTIMATORS, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q]
}

const fn forest(criterion: Param, max_features: Param, is_bootstrapped: bool) -> [Param; 17] {
    [
        criterion,
        MAX_DEPTH,
        MIN_SAMPLES_SPLIT,
        MIN_SAMPLES_LEAF,
        MIN_WEIGHT,
        max_features,
        MAX_LEAF_NODES,
        MIN_DECREASE,
        bootstrap(is_bootstrapped),
        OOB_SCORE,
        N_JOBS,
        RANDOM_STATE,
        VERBOSE,
        WARM_START,
        CCP_ALPHA,
        MAX_SAMPLES,
        MONOTONIC,
    ]
}

const TREE_CLASSIFIER_PARAMS: &[Param] = &[
    CLASS_CRITERION,
    SPLITTER,
    MAX_DEPTH,
    MIN_SAMPLES_SPLIT,
    MIN_SAMPLES_LEAF,
    MIN_WEIGHT,
    max_features(Preset::None),
    RANDOM_STATE,
    MAX_LEAF_NODES,
    MIN_DECREASE,
    CLASS_WEIGHT,
    CCP_ALPHA,
    MONOTONIC,
];
const TREE_REGRESSOR_PARAMS: &[Param] = &[
    CRITERION,
    SPLITTER,
    MAX_DEPTH,
    MIN_SAMPLES_SPLIT,
    MIN_SAMPLES_LEAF,
    MIN_WEIGHT,
    max_features(Preset::None),
    RANDOM_STATE,
    MAX_LEAF_NODES,
    MIN_DECREASE,
    CCP_ALPHA,
    MONOTONIC,
];

/// The parameters of boosting behind the loss.
const BOOSTED: [Param; 19] = [
    Param::new("learning_rate", Kind::Real, Preset::Real(0.1)).keyword(),
    Param::new("max_iter", Kind::Integer, Preset::Integer(100)).keyword(),
    Param::new("max_leaf_nodes", INTEGER_OR_NONE, Preset::Integer(31)).keyword(),
    MAX_DEPTH,
    Param::new("min_samples_leaf", Kind::Integer, Preset::Integer(20)).keyword(),
    Param::new("l2_regularization", Kind::Real, Preset::Real(0.0)).keyword(),
    Param::new("max_features", Kind::Real, Preset::Real(1.0)).keyword().fixed(),
    Param::new("max_bins", Kind::Integer, Preset::Integer(255)).keyword(),
    Param::new("categorical_features", Kind::Anything, Preset::Text("from_dtype")).keyword().fixed(),
    Param::new("monotonic_cst", Kind::Anything, Preset::None).keyword().fixed(),
    Param::new("interaction_cst", Kind::Anything, Preset::None).keyword().fixed(),
    WARM_START,
    Param::new(
        "early_stopping",
        Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Boolean]),
        Preset::Text("auto"),
    )
    .keyword(),
    Param::new("scoring", Kind::OneOf(&[Kind::Text, Kind::None]), Preset::Text("loss")).keyword().fixed(),
    Param::new(
        "validation_fraction",
        Kind::OneOf(&[Kind::Real, Kind::Integer, Kind::None]),
        Preset::Real(0.1),
    )
    .keyword(),
    Param::new("n_iter_no_change", Kind::Integer, Preset::Integer(10)).keyword(),
    Param::new("tol", Kind::Real, Preset::Real(1e-7)).keyword(),
    VERBOSE,
    RANDOM_STATE,
];

const fn boosted<const N: usize>(first: [Param; N], last: Option<Param>) -> [Param; 21] {
    let mut params = [BOOSTED[0]; 21];
    let mut at = 0;
    while at < N {
        params[at] = first[at];
        at += 1;
    }
    while at < N + BOOSTED.len() {
        params[at] = BOOSTED[at - N];
        at += 1;
    }
    if let Some(last) = last {
        params[at] = last;
    }
    params
}

const BOOSTED_CLASSIFIER_PARAMS: [Param; 21] =
    boosted([Param::new("loss", Kind::Choice(&["log_loss"]), Preset::Text("log_loss"))], Some(CLASS_WEIGHT));
const BOOSTED_REGRESSOR_PARAMS: [Param; 21] = boosted(
    [
        Param::new(
            "loss",
            Kind::Choice(&["squared_error", "absolute_error", "gamma", "poisson", "quantile"]),
            Preset::Text("squared_error"),
        )
        .only(Kind::Choice(&["squared_error", "gamma", "poisson"])),
        Param::new("quantile", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword().fixed(),
    ],
    None,
);

/// Trees, forests and boosting.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class("sk.tree.DecisionTreeClassifier", TREE_CLASSIFIER_PARAMS, "a tree of classes", |args, _| {
        Instance::made::<DecisionTreeClassifier>(&TREE_CLASSIFIER, args)
    }),
    class("sk.tree.DecisionTreeRegressor", TREE_REGRESSOR_PARAMS, "a tree of numbers", |args, _| {
        Instance::made::<DecisionTreeRegressor>(&TREE_REGRESSOR, args)
    }),
    class(
        "sk.ensemble.RandomForestClassifier",
        &forest_classifier(true),
        "classes by many trees on drawn samples",
        |args, _| drawn::<RandomForestClassifier>(&FOREST_CLASSIFIER, args),
    ),
    class(
        "sk.ensemble.RandomForestRegressor",
        &forest_regressor(true),
        "the mean of many trees on drawn samples",
        |args, _| drawn::<RandomForestRegressor>(&FOREST_REGRESSOR, args),
    ),
    class(
        "sk.ensemble.ExtraTreesClassifier",
        &forest_classifier(false),
        "classes by many trees with drawn splits",
        |args, _| drawn::<ExtraTreesClassifier>(&EXTRA_CLASSIFIER, args),
    ),
    class(
        "sk.ensemble.ExtraTreesRegressor",
        &forest_regressor(false),
        "the mean of many trees with drawn splits",
        |args, _| drawn::<ExtraTreesRegressor>(&EXTRA_REGRESSOR, args),
    ),
    class(
        "sk.ensemble.HistGradientBoostingClassifier",
        &BOOSTED_CLASSIFIER_PARAMS,
        "classes by trees on bins, each along the slopes of the loss",
        |args, _| drawn::<HistGradientBoostingClassifier>(&BOOSTED_CLASSIFIER, args),
    ),
    class(
        "sk.ensemble.HistGradientBoostingRegressor",
        &BOOSTED_REGRESSOR_PARAMS,
        "numbers by trees on bins, each along the slopes of the loss",
        |args, _| drawn::<HistGradientBoostingRegressor>(&BOOSTED_REGRESSOR, args),
    ),
    class(
        "sk.ensemble.IsolationForest",
        ISOLATION_PARAMS,
        "outliers, by how few splits part them",
        |args, _| Instance::made::<IsolationForest>(&ISOLATION_FOREST, args),
    ),
];

const ISOLATION_PARAMS: &[Param] = &[
    N_ESTIMATORS.keyword(),
    Param::new(
        "max_samples",
        Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Integer, Kind::Real]),
        Preset::Text("auto"),
    )
    .keyword()
    .only(Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Integer])),
    Param::new("contamination", Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Real]), Preset::Text("auto"))
        .keyword(),
    Param::new("max_features", INTEGER_OR_SHARE, Preset::Real(1.0)).keyword().fixed(),
    bootstrap(false).fixed(),
    N_JOBS,
    RANDOM_STATE,
    VERBOSE,
    WARM_START,
];

/// An estimator on drawn samples. A number of these, which scikit-learn takes beside a share, is a whole
/// number.
fn drawn<E>(class: &'static Class, args: &Bound<Value>) -> Result<Value, Failure>
where
    E: Estimator + Params + Default + Clone + Send + Sync + 'static,
    E::Fitted: Described + 'static,
{
    for (name, value) in args.iter().filter(|(name, _)| ["max_samples", "validation_fraction"].contains(name))
    {
        if matches!(value.look(), Look::Integer(_) | Look::Boolean(_)) {
            return Err(Failure::missing(format!(
                "{name} of {} as a number of samples is not implemented",
                args.owner()
            )));
        }
    }
    Instance::made::<E>(class, args)
}

/// Models of classes.
macro_rules! classifiers {
    ($($fitted:ty),*) => {$(
        model!(
            $fitted,
            maps: [predict, predict_log_proba, predict_proba],
            score: |m, x, y, options| supervised_score(m, x, y, options),
            attributes: |m| {
                "classes_" => classes(&m.classes),
                "feature_importances_" => array(&m.feature_importances),
                "n_classes_" => whole(m.classes.len()),
                "n_outputs_" => whole(1),
            },
        );
    )*};
}

/// Models of numbers.
macro_rules! regressors {
    ($($fitted:ty),*) => {$(
        model!(
            $fitted,
            maps: [predict],
            score: |m, x, y, options| supervised_score(m, x, y, options),
            attributes: |m| {
                "feature_importances_" => array(&m.feature_importances),
                "n_outputs_" => whole(1),
            },
        );
    )*};
}

classifiers!(FittedDecisionTreeClassifier, FittedRandomForestClassifier, FittedExtraTreesClassifier);
regressors!(FittedDecisionTreeRegressor, FittedRandomForestRegressor, FittedExtraTreesRegressor);

model!(
    FittedHistGradientBoostingClassifier,
    maps: [decision_function, predict, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "n_iter_" => whole(m.n_iter),
        "train_score_" => array(&m.train_score),
        "validation_score_" => array(&m.validation_score),
    },
);

model!(
    FittedHistGradientBoostingRegressor,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "n_iter_" => whole(m.n_iter),
        "train_score_" => array(&m.train_score),
        "validation_score_" => array(&m.validation_score),
    },
);

model!(
    FittedIsolationForest,
    maps: [decision_function, predict, score_samples],
    attributes: |m| {
        "max_samples_" => whole(m.max_samples),
        "offset_" => real(m.offset),
    },
);
