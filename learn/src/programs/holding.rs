//! Estimators that hold others.

use super::args::{INTEGER_OR_NONE, N_JOBS, RANDOM_STATE, Run, VERBOSE, WARM_START, class, integer_if_given};
use super::held::{any, any_if_given, mapping_if_given, named};
use super::model::{Described, Model, array, classes, model, numbers, real, supervised_score, whole};
use super::object::{Class, Instance};
use crate::base::{FitOptions, Task};
use crate::calibration::{CalibratedClassifierCV, FittedCalibratedClassifierCV};
use crate::compose::{FittedTransformedTargetRegressor, TransformedTargetRegressor};
use crate::ensemble::{
    AdaBoostClassifier, AdaBoostRegressor, BaggingClassifier, BaggingRegressor, FittedAdaBoostClassifier,
    FittedAdaBoostRegressor, FittedBaggingClassifier, FittedBaggingRegressor, FittedStackingClassifier,
    FittedStackingRegressor, FittedVotingClassifier, FittedVotingRegressor, StackingClassifier,
    StackingRegressor, VotingClassifier, VotingRegressor,
};
use crate::isotonic::{FittedIsotonicRegression, IsotonicRegression};
use crate::multiclass::{
    FittedOneVsOneClassifier, FittedOneVsRestClassifier, OneVsOneClassifier, OneVsRestClassifier,
};
use crate::multioutput::{
    FittedMultiOutputClassifier, FittedMultiOutputRegressor, MultiOutputClassifier, MultiOutputRegressor,
};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Bound, Kind, Param, Preset, Row};

static VOTING_CLASSIFIER: Class =
    Class { absent: MEMBERS_AND_ENCODER, ..Class::supervised("VotingClassifier") };
static VOTING_REGRESSOR: Class = Class { absent: MEMBERS, ..Class::supervised("VotingRegressor") };
static STACKING_CLASSIFIER: Class = Class { absent: STACK, ..Class::supervised("StackingClassifier") };
static STACKING_REGRESSOR: Class = Class { absent: STACK, ..Class::supervised("StackingRegressor") };
static BAGGING_CLASSIFIER: Class = Class { absent: BAG, ..Class::supervised("BaggingClassifier") };
static BAGGING_REGRESSOR: Class = Class { absent: BAG, ..Class::supervised("BaggingRegressor") };
static ADA_CLASSIFIER: Class = Class { absent: ONE, ..Class::supervised("AdaBoostClassifier") };
static ADA_REGRESSOR: Class = Class { absent: ONE, ..Class::supervised("AdaBoostRegressor") };
static ONE_VS_REST: Class =
    Class { absent: &["estimators_", "label_binarizer_"], ..Class::supervised("OneVsRestClassifier") };
static ONE_VS_ONE: Class =
    Class { absent: &["estimators_", "pairwise_indices_"], ..Class::supervised("OneVsOneClassifier") };
static OUTPUT_REGRESSOR: Class =
    Class { absent: &["estimators_"], ..Class::supervised("MultiOutputRegressor") };
static OUTPUT_CLASSIFIER: Class =
    Class { absent: &["classes_", "estimators_"], ..Class::supervised("MultiOutputClassifier") };
static TARGETS: Class =
    Class { absent: &["regressor_", "transformer_"], ..Class::supervised("TransformedTargetRegressor") };
static CALIBRATED: Class =
    Class { absent: &["calibrated_classifiers_"], ..Class::supervised("CalibratedClassifierCV") };
static ISOTONIC: Class = Class { absent: &["f_"], ..Class::supervised("IsotonicRegression") };

const MEMBERS: &[&str] = &["estimators_", "named_estimators_"];
const MEMBERS_AND_ENCODER: &[&str] = &["estimators_", "le_", "named_estimators_"];
const STACK: &[&str] = &["estimators_", "final_estimator_", "named_estimators_", "stack_method_"];
const BAG: &[&str] = &[
    "estimator_",
    "estimators_",
    "estimators_features_",
    "estimators_samples_",
    "oob_decision_function_",
    "oob_prediction_",
];
const ONE: &[&str] = &["estimator_", "estimators_"];

const ESTIMATORS: Param = Param::needed("estimators", Kind::Sequence);
const ESTIMATOR: Param = Param::needed("estimator", Kind::Object);
const ESTIMATOR_OR_NONE: Param = Param::new("estimator", OBJECT_OR_NONE, Preset::None);
const OBJECT_OR_NONE: Kind = Kind::OneOf(&[Kind::Object, Kind::None]);
const WEIGHTS: Param = Param::new("weights", Kind::OneOf(&[Kind::Array, Kind::None]), Preset::None).keyword();
/// A number of folds.
const CV: Param = Param::new("cv", INTEGER_OR_NONE, Preset::None).keyword();
const PASSTHROUGH: Param = Param::new("passthrough", Kind::Boolean, Preset::Boolean(false)).keyword();
const FINAL: Param = Param::new("final_estimator", OBJECT_OR_NONE, Preset::None);
const LEARNING_RATE: Param = Param::new("learning_rate", Kind::Real, Preset::Real(1.0)).keyword();
const ROUNDS: Param = Param::new("n_estimators", Kind::Integer, Preset::Integer(50)).keyword();

/// A number of samples or features, or a part of them.
const SHARE: Kind = Kind::OneOf(&[Kind::Integer, Kind::Real]);

const BAGGING: &[Param] = &[
    ESTIMATOR_OR_NONE,
    Param::new("n_estimators", Kind::Integer, Preset::Integer(10)),
    Param::new("max_samples", Kind::OneOf(&[Kind::Integer, Kind::Real, Kind::None]), Preset::None).keyword(),
    Param::new("max_features", SHARE, Preset::Real(1.0)).keyword(),
    Param::new("bootstrap", Kind::Boolean, Preset::Boolean(true)).keyword(),
    Param::new("bootstrap_features", Kind::Boolean, Preset::Boolean(false)).keyword(),
    Param::new("oob_score", Kind::Boolean, Preset::Boolean(false)).keyword(),
    WARM_START,
    N_JOBS,
    RANDOM_STATE,
    VERBOSE,
];

/// The estimators that hold others, and those of calibration.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.ensemble.VotingClassifier",
        &[
            ESTIMATORS,
            Param::new("voting", Kind::Choice(&["soft", "hard"]), Preset::Text("hard")).keyword(),
            WEIGHTS,
            N_JOBS,
            Param::new("flatten_transform", Kind::Boolean, Preset::Boolean(true)).keyword(),
            VERBOSE_FLAG,
        ],
        "the class that most of several classifiers predict",
        |args, _| {
            let all = named(args, "estimators")?.into_iter();
            let voting =
                all.fold(VotingClassifier::new(), |voting, (name, any)| voting.any_or_none(&name, any));
            Instance::made_from(&VOTING_CLASSIFIER, args, voting)
        },
    ),
    class(
        "sk.ensemble.VotingRegressor",
        &[ESTIMATORS, WEIGHTS, N_JOBS, VERBOSE_FLAG],
        "the mean of what several regressors predict",
        |args, _| {
            let all = named(args, "estimators")?.into_iter();
            let voting =
                all.fold(VotingRegressor::new(), |voting, (name, any)| voting.any_or_none(&name, any));
            Instance::made_from(&VOTING_REGRESSOR, args, voting)
        },
    ),
    class(
        "sk.ensemble.StackingClassifier",
        &[
            ESTIMATORS,
            FINAL,
            CV,
            Param::new(
                "stack_method",
                Kind::Choice(&["auto", "predict_proba", "decision_function", "predict"]),
                Preset::Text("auto"),
            )
            .keyword(),
            N_JOBS,
            PASSTHROUGH,
            VERBOSE,
        ],
        "a classifier of what several classifiers tell of samples that they have not seen",
        |args, _| {
            let all = named(args, "estimators")?.into_iter();
            let mut stack =
                all.fold(StackingClassifier::new(), |stack, (name, any)| stack.any_or_none(&name, any));
            if let Some(last) = any_if_given(args, "final_estimator")? {
                stack = stack.any_final(last);
            }
            if let Some(folds) = folds(args)? {
                stack = stack.cv(folds);
            }
            Instance::made_from(&STACKING_CLASSIFIER, args, stack)
        },
    ),
    class(
        "sk.ensemble.StackingRegressor",
        &[ESTIMATORS, FINAL, CV, N_JOBS, PASSTHROUGH, VERBOSE],
        "a regressor of what several regressors predict for samples that they have not seen",
        |args, _| {
            let all = named(args, "estimators")?.into_iter();
            let mut stack =
                all.fold(StackingRegressor::new(), |stack, (name, any)| stack.any_or_none(&name, any));
            if let Some(last) = any_if_given(args, "final_estimator")? {
                stack = stack.any_final(last);
            }
            if let Some(folds) = folds(args)? {
                stack = stack.cv(folds);
            }
            Instance::made_from(&STACKING_REGRESSOR, args, stack)
        },
    ),
    class("sk.ensemble.BaggingClassifier", BAGGING, "a classifier on many draws of samples", |args, _| {
        let bagging = BaggingClassifier::new();
        let bagging = match any_if_given(args, "estimator")? {
            Some(estimator) => bagging.any(estimator),
            None => bagging,
        };
        Instance::made_from(&BAGGING_CLASSIFIER, args, bagging)
    }),
    class("sk.ensemble.BaggingRegressor", BAGGING, "a regressor on many draws of samples", |args, _| {
        let bagging = BaggingRegressor::new();
        let bagging = match any_if_given(args, "estimator")? {
            Some(estimator) => bagging.any(estimator),
            None => bagging,
        };
        Instance::made_from(&BAGGING_REGRESSOR, args, bagging)
    }),
    class(
        "sk.ensemble.AdaBoostClassifier",
        &[ESTIMATOR_OR_NONE, ROUNDS, LEARNING_RATE, RANDOM_STATE],
        "classifiers, each for the samples that those before have wrong",
        |args, _| {
            let boosting = AdaBoostClassifier::new();
            let boosting = match any_if_given(args, "estimator")? {
                Some(estimator) => boosting.any(estimator),
                None => boosting,
            };
            Instance::made_from(&ADA_CLASSIFIER, args, boosting)
        },
    ),
    class(
        "sk.ensemble.AdaBoostRegressor",
        &[
            ESTIMATOR_OR_NONE,
            ROUNDS,
            LEARNING_RATE,
            Param::new("loss", Kind::Choice(&["linear", "square", "exponential"]), Preset::Text("linear"))
                .keyword(),
            RANDOM_STATE,
        ],
        "regressors, each for the samples that those before have wrong",
        |args, _| {
            let boosting = AdaBoostRegressor::new();
            let boosting = match any_if_given(args, "estimator")? {
                Some(estimator) => boosting.any(estimator),
                None => boosting,
            };
            Instance::made_from(&ADA_REGRESSOR, args, boosting)
        },
    ),
    class(
        "sk.multiclass.OneVsRestClassifier",
        &[ESTIMATOR, N_JOBS, VERBOSE],
        "a classifier for each class, against all others",
        |args, _| one(args, |estimator| (&ONE_VS_REST, OneVsRestClassifier::any(estimator))),
    ),
    class(
        "sk.multiclass.OneVsOneClassifier",
        &[ESTIMATOR, N_JOBS],
        "a classifier for each pair of classes",
        |args, _| one(args, |estimator| (&ONE_VS_ONE, OneVsOneClassifier::any(estimator))),
    ),
    class(
        "sk.multioutput.MultiOutputRegressor",
        &[ESTIMATOR, N_JOBS],
        "a regressor for each target",
        |args, _| {
            let estimator = MultiOutputRegressor::any(any(args.value("estimator")?)?);
            Instance::made_from(&OUTPUT_REGRESSOR, args, estimator)
        },
    ),
    class(
        "sk.multioutput.MultiOutputClassifier",
        &[ESTIMATOR, N_JOBS],
        "a classifier for each target",
        |args, _| one(args, |estimator| (&OUTPUT_CLASSIFIER, MultiOutputClassifier::any(estimator))),
    ),
    class("sk.compose.TransformedTargetRegressor", OF_TARGETS, "a regressor of mapped targets", MAPPED),
    class(
        "sk.calibration.CalibratedClassifierCV",
        &[
            ESTIMATOR_OR_NONE,
            Param::new(
                "method",
                Kind::Choice(&["isotonic", "sigmoid", "temperature"]),
                Preset::Text("sigmoid"),
            )
            .keyword(),
            CV,
            N_JOBS,
            Param::new(
                "ensemble",
                Kind::OneOf(&[Kind::Boolean, Kind::Choice(&["auto"])]),
                Preset::Text("auto"),
            )
            .keyword(),
        ],
        "probabilities from what a classifier tells of samples that it has not seen",
        |args, _| {
            let mut estimator = CalibratedClassifierCV::new();
            if let Some(own) = any_if_given(args, "estimator")? {
                estimator = estimator.any(own);
            }
            if let Some(folds) = folds(args)? {
                estimator = estimator.cv(folds);
            }
            Instance::made_from(&CALIBRATED, args, estimator)
        },
    ),
    class(
        "sk.isotonic.IsotonicRegression",
        &[
            Param::new("y_min", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
            Param::new("y_max", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
            Param::new(
                "increasing",
                Kind::OneOf(&[Kind::Boolean, Kind::Choice(&["auto"])]),
                Preset::Boolean(true),
            )
            .keyword(),
            Param::new("out_of_bounds", Kind::Choice(&["nan", "clip", "raise"]), Preset::Text("nan"))
                .keyword(),
        ],
        "a line that never falls, or never rises",
        |args, _| Instance::made::<IsotonicRegression>(&ISOTONIC, args),
    ),
];

const VERBOSE_FLAG: Param = Param::new("verbose", Kind::Boolean, Preset::Boolean(false)).keyword().fixed();

const OF_TARGETS: &[Param] = &[
    Param::new("regressor", OBJECT_OR_NONE, Preset::None),
    Param::new("transformer", OBJECT_OR_NONE, Preset::None).keyword(),
    Param::new("func", Kind::Anything, Preset::None).keyword().fixed(),
    Param::new("inverse_func", Kind::Anything, Preset::None).keyword().fixed(),
    // Only a warning depends on it.
    Param::new("check_inverse", Kind::Boolean, Preset::Boolean(true)).keyword(),
];

const MAPPED: Run = |args, _| {
    let mut estimator = TransformedTargetRegressor::new();
    if let Some(regressor) = any_if_given(args, "regressor")? {
        estimator = estimator.any(regressor);
    }
    if let Some(map) = mapping_if_given(args, "transformer")? {
        estimator = estimator.mapping(map);
    }
    Instance::made_from(&TARGETS, args, estimator)
};

/// A number of folds, if there is one.
fn folds(args: &Bound<Value>) -> Result<Option<usize>, Failure> {
    match integer_if_given(args, "cv")? {
        None => Ok(None),
        Some(_) => super::args::count(args, "cv", 2).map(Some),
    }
}

/// An estimator that holds one classifier.
fn one<E>(
    args: &Bound<Value>,
    make: impl FnOnce(crate::AnyClassifier) -> (&'static Class, E),
) -> Result<Value, Failure>
where
    E: crate::base::Estimator + crate::Params + Clone + Send + Sync + 'static,
    E::Fitted: super::model::Described + 'static,
{
    let (class, estimator) = make(any(args.value("estimator")?)?);
    Instance::made_from(class, args, estimator)
}

model!(
    FittedVotingClassifier,
    maps: [predict, transform],
    options: [predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| { "classes_" => classes(&m.classes) },
);

model!(
    FittedVotingRegressor,
    maps: [predict, transform],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |_m| {},
);

model!(
    FittedStackingClassifier,
    maps: [predict, transform],
    options: [decision_function, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| { "classes_" => classes(&m.classes) },
);

model!(
    FittedStackingRegressor,
    maps: [predict, transform],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |_m| {},
);

model!(
    FittedBaggingClassifier,
    maps: [predict, predict_log_proba, predict_proba],
    options: [decision_function],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "n_classes_" => whole(m.classes.len()),
        "oob_score_" => real(m.oob_score()?),
    },
);

model!(
    FittedBaggingRegressor,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| { "oob_score_" => real(m.oob_score()?) },
);

model!(
    FittedAdaBoostClassifier,
    maps: [decision_function, predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "estimator_errors_" => numbers(&m.estimator_errors),
        "estimator_weights_" => numbers(&m.estimator_weights),
        "feature_importances_" => array(&m.feature_importances()?),
        "n_classes_" => whole(m.classes.len()),
    },
);

model!(
    FittedAdaBoostRegressor,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "estimator_errors_" => numbers(&m.estimator_errors),
        "estimator_weights_" => numbers(&m.estimator_weights),
        "feature_importances_" => array(&m.feature_importances()?),
    },
);

model!(
    FittedOneVsRestClassifier,
    maps: [predict],
    options: [decision_function, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "multilabel_" => Value::Number(tharsis_numeric::Scalar::Bool(m.multilabel)),
        "n_classes_" => whole(m.classes.len()),
    },
);

model!(
    FittedOneVsOneClassifier,
    maps: [decision_function, predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "classes_" => classes(&m.classes),
        "n_classes_" => whole(m.classes.len()),
    },
);

model!(
    FittedMultiOutputRegressor,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |_m| {},
);

model!(
    FittedMultiOutputClassifier,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |_m| {},
);

model!(
    FittedTransformedTargetRegressor,
    maps: [predict],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |_m| {},
);

model!(
    FittedCalibratedClassifierCV,
    maps: [predict, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| { "classes_" => classes(&m.classes) },
);

impl Described for FittedIsotonicRegression {
    const METHODS: &'static [&'static str] = &["predict", "transform", "score"];
    const TASK: Task = Task::Regression;
    const HAS_NAMES: bool = true;
}

impl Model for FittedIsotonicRegression {
    /// The line has one axis, also as a map.
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor> {
        ["predict", "transform"].contains(&method).then(|| self.predict(x))
    }

    fn score(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> crate::Result<f64> {
        let y = y.ok_or_else(|| crate::checks::refused("y should be a 1d array, got None instead."))?;
        FittedIsotonicRegression::score(self, x, y, options)
    }

    fn names(&self, names: &[String]) -> Option<Vec<String>> {
        crate::base::Transform::feature_names_out(self, names)
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        match name {
            "X_max_" => Some(real(self.x_max)),
            "X_min_" => Some(real(self.x_min)),
            "X_thresholds_" => Some(array(&self.x_thresholds)),
            "increasing_" => Some(Value::Number(tharsis_numeric::Scalar::Bool(self.increasing))),
            "y_thresholds_" => Some(array(&self.y_thresholds)),
            _ => None,
        }
    }
}
