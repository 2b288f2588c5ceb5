//! Trees, forests and boosting.

use super::args::{
    ARRAY_OR_NONE, INTEGER_OR_NONE, N_JOBS, RANDOM_STATE, VERBOSE, WARM_START, class, count, kept,
    real_if_given, seed,
};
use super::model::{array, classes, model, real, supervised_score, whole};
use super::object::{Class, Instance, Labels};
use crate::base::PredictProba;
use crate::ensemble::{
    EarlyStopping, ExtraTreesClassifier, ExtraTreesRegressor, FittedExtraTreesClassifier,
    FittedExtraTreesRegressor, FittedHistGradientBoostingClassifier, FittedHistGradientBoostingRegressor,
    FittedIsolationForest, FittedRandomForestClassifier, FittedRandomForestRegressor,
    HistGradientBoostingClassifier, HistGradientBoostingRegressor, IsolationForest, RandomForestClassifier,
    RandomForestRegressor, RegressionLoss,
};
use crate::tree::{
    ClassCriterion, DecisionTreeClassifier, DecisionTreeRegressor, FittedDecisionTreeClassifier,
    FittedDecisionTreeRegressor, MaxFeatures,
};
use tharsis_numeric::Tensor;
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
const N_ESTIMATORS: Param = Param::new("n_estimators", Kind::Integer, Preset::Integer(100));
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

/// An estimator with the parameters that all trees have.
macro_rules! grown {
    ($estimator:expr, $args:ident) => {
        $estimator
            .max_depth(limit($args, "max_depth", 1)?)
            .min_samples_split(count($args, "min_samples_split", 2)?)
            .min_samples_leaf(count($args, "min_samples_leaf", 1)?)
            .max_features(features($args)?)
            .max_leaf_nodes(limit($args, "max_leaf_nodes", 2)?)
            .min_impurity_decrease($args.real("min_impurity_decrease")?)
            .random_state(seed($args)?)
    };
}

/// As [`grown`], with the parameters of forests.
macro_rules! planted {
    ($estimator:expr, $args:ident) => {
        grown!($estimator, $args)
            .n_estimators(kept($args, "n_estimators", 1)?)
            .bootstrap($args.boolean("bootstrap")?)
            .max_samples(share_if_given($args, "max_samples")?)
    };
}

/// An estimator with the parameters of boosting.
macro_rules! boosted {
    ($estimator:expr, $args:ident) => {
        $estimator
            .learning_rate($args.real("learning_rate")?)
            .max_iter(count($args, "max_iter", 1)?)
            .max_leaf_nodes(limit($args, "max_leaf_nodes", 2)?)
            .max_depth(limit($args, "max_depth", 1)?)
            .min_samples_leaf(count($args, "min_samples_leaf", 1)?)
            .l2_regularization($args.real("l2_regularization")?)
            .max_bins(count($args, "max_bins", 2)?)
            .early_stopping(early_stopping($args)?)
            .validation_fraction(share_if_given($args, "validation_fraction")?)
            .n_iter_no_change(count($args, "n_iter_no_change", 1)?)
            .tol($args.real("tol")?)
            .random_state(seed($args)?)
    };
}

/// Trees, forests and boosting.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class("sk.tree.DecisionTreeClassifier", TREE_CLASSIFIER_PARAMS, "a tree of classes", |args, _| {
        let estimator = grown!(DecisionTreeClassifier::new(), args).criterion(criterion(args)?);
        Ok(Instance::value(&TREE_CLASSIFIER, args, estimator))
    }),
    class("sk.tree.DecisionTreeRegressor", TREE_REGRESSOR_PARAMS, "a tree of numbers", |args, _| {
        Ok(Instance::value(&TREE_REGRESSOR, args, grown!(DecisionTreeRegressor::new(), args)))
    }),
    class(
        "sk.ensemble.RandomForestClassifier",
        &forest_classifier(true),
        "classes by many trees on drawn samples",
        |args, _| {
            let estimator = planted!(RandomForestClassifier::new(), args).criterion(criterion(args)?);
            Ok(Instance::value(&FOREST_CLASSIFIER, args, estimator))
        },
    ),
    class(
        "sk.ensemble.RandomForestRegressor",
        &forest_regressor(true),
        "the mean of many trees on drawn samples",
        |args, _| Ok(Instance::value(&FOREST_REGRESSOR, args, planted!(RandomForestRegressor::new(), args))),
    ),
    class(
        "sk.ensemble.ExtraTreesClassifier",
        &forest_classifier(false),
        "classes by many trees with drawn splits",
        |args, _| {
            let estimator = planted!(ExtraTreesClassifier::new(), args).criterion(criterion(args)?);
            Ok(Instance::value(&EXTRA_CLASSIFIER, args, estimator))
        },
    ),
    class(
        "sk.ensemble.ExtraTreesRegressor",
        &forest_regressor(false),
        "the mean of many trees with drawn splits",
        |args, _| Ok(Instance::value(&EXTRA_REGRESSOR, args, planted!(ExtraTreesRegressor::new(), args))),
    ),
    class(
        "sk.ensemble.HistGradientBoostingClassifier",
        &BOOSTED_CLASSIFIER_PARAMS,
        "classes by trees on bins, each along the slopes of the loss",
        |args, _| {
            let estimator = boosted!(HistGradientBoostingClassifier::new(), args);
            Ok(Instance::value(&BOOSTED_CLASSIFIER, args, estimator))
        },
    ),
    class(
        "sk.ensemble.HistGradientBoostingRegressor",
        &BOOSTED_REGRESSOR_PARAMS,
        "numbers by trees on bins, each along the slopes of the loss",
        |args, _| {
            let loss = match args.text("loss")? {
                "gamma" => RegressionLoss::Gamma,
                "poisson" => RegressionLoss::Poisson,
                _ => RegressionLoss::SquaredError,
            };
            let estimator = boosted!(HistGradientBoostingRegressor::new().loss(loss), args);
            Ok(Instance::value(&BOOSTED_REGRESSOR, args, estimator))
        },
    ),
    class(
        "sk.ensemble.IsolationForest",
        ISOLATION_PARAMS,
        "outliers, by how few splits part them",
        |args, _| {
            let samples = match args.value("max_samples")?.look() {
                Look::Text(_) => None,
                _ => Some(count(args, "max_samples", 1)?),
            };
            let contamination = match args.value("contamination")?.look() {
                Look::Text(_) => None,
                _ => Some(args.real("contamination")?),
            };
            let estimator = IsolationForest::new()
                .n_estimators(kept(args, "n_estimators", 1)?)
                .max_samples(samples)
                .contamination(contamination)
                .random_state(seed(args)?);
            Ok(Instance::value(&ISOLATION_FOREST, args, estimator))
        },
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

fn criterion(args: &Bound<Value>) -> Result<ClassCriterion, Failure> {
    Ok(if args.text("criterion")? == "gini" { ClassCriterion::Gini } else { ClassCriterion::Entropy })
}

fn features(args: &Bound<Value>) -> Result<MaxFeatures, Failure> {
    Ok(match args.value("max_features")?.look() {
        Look::None => MaxFeatures::All,
        Look::Text("sqrt") => MaxFeatures::Sqrt,
        Look::Text(_) => MaxFeatures::Log2,
        Look::Real(share) => MaxFeatures::Share(share),
        _ => MaxFeatures::Count(count(args, "max_features", 1)?),
    })
}

/// A whole number that is at least `least`, or no limit.
fn limit(args: &Bound<Value>, name: &str, least: usize) -> Result<Option<usize>, Failure> {
    if args.some(name)?.is_none() {
        return Ok(None);
    }
    Ok(Some(count(args, name, least)?))
}

/// A share of the samples. A number of them, which scikit-learn takes as well, is a whole number.
fn share_if_given(args: &Bound<Value>, name: &str) -> Result<Option<f64>, Failure> {
    match args.value(name)?.look() {
        Look::Integer(_) | Look::Boolean(_) => Err(Failure::missing(format!(
            "{name} of {} as a number of samples is not implemented",
            args.owner()
        ))),
        _ => real_if_given(args, name),
    }
}

fn early_stopping(args: &Bound<Value>) -> Result<EarlyStopping, Failure> {
    Ok(match args.value("early_stopping")?.look() {
        Look::Boolean(is_on) => is_on.into(),
        _ => EarlyStopping::Auto,
    })
}

/// The logarithms of probabilities.
trait LogProba: PredictProba {
    fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.predict_proba(x).log()
    }
}

impl<M: PredictProba> LogProba for M {}

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
