//! Features that tell something.

use super::args::{INTEGER_OR_NONE, N_JOBS, VERBOSE, class, integer_if_given};
use super::held::{Around, around};
use super::model::{Described, Model, array, classes, model, real, supervised_score, whole, wholes};
use super::object::{Class, Instance};
use crate::base::{FitOptions, Predict, Task};
use crate::feature_selection::{
    FittedRFE, FittedSelect, FittedSelectFromModel, FittedSequentialFeatureSelector, FittedVarianceThreshold,
    RFE, SelectFdr, SelectFpr, SelectFromModel, SelectFwe, SelectKBest, SelectPercentile,
    SequentialFeatureSelector, VarianceThreshold,
};
use crate::held::{AnyEstimator, FittedAny, Tells};
use crate::model_selection::{Folds, Scoring, Validation};
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_numeric::{DType, Tensor};
use tharsis_programs::{Bound, Kind, Param, Preset, Row};

static VARIANCE_THRESHOLD: Class = Class::unsupervised("VarianceThreshold");
static K_BEST: Class = Class::supervised("SelectKBest");
static PERCENTILE: Class = Class::supervised("SelectPercentile");
static FPR: Class = Class::supervised("SelectFpr");
static FDR: Class = Class::supervised("SelectFdr");
static FWE: Class = Class::supervised("SelectFwe");
static STEPS: Class = Class { absent: &["estimator_"], ..Class::supervised("RFE") };
static BY_MODEL: Class = Class { absent: &["estimator_"], ..Class::supervised("SelectFromModel") };
static SEQUENTIAL: Class = Class::supervised("SequentialFeatureSelector");

const ESTIMATOR: Param = Param::needed("estimator", Kind::Object);
const IMPORTANCE_GETTER: Param =
    Param::new("importance_getter", Kind::Text, Preset::Text("auto")).keyword().fixed();

/// The name of a function, where scikit-learn has the function.
const SCORE_FUNC: Param =
    Param::new("score_func", Kind::Choice(&["chi2", "f_classif", "f_regression"]), Preset::Text("f_classif"));
const ALPHA: Param = Param::new("alpha", Kind::Real, Preset::Real(0.05)).keyword();

/// The selectors of features.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.feature_selection.VarianceThreshold",
        &[Param::new("threshold", Kind::Real, Preset::Real(0.0))],
        "features whose variance is above a threshold",
        |args, _| Instance::made::<VarianceThreshold>(&VARIANCE_THRESHOLD, args),
    ),
    class(
        "sk.feature_selection.SelectKBest",
        &[
            SCORE_FUNC,
            Param::new("k", Kind::OneOf(&[Kind::Choice(&["all"]), Kind::Integer]), Preset::Integer(10))
                .keyword(),
        ],
        "the features with the largest scores",
        |args, _| Instance::made::<SelectKBest>(&K_BEST, args),
    ),
    class(
        "sk.feature_selection.SelectPercentile",
        &[SCORE_FUNC, Param::new("percentile", Kind::Real, Preset::Integer(10)).keyword()],
        "a share of the features, those with the largest scores",
        |args, _| Instance::made::<SelectPercentile>(&PERCENTILE, args),
    ),
    class(
        "sk.feature_selection.SelectFpr",
        &[SCORE_FUNC, ALPHA],
        "features whose p-values are below a bound",
        |args, _| Instance::made::<SelectFpr>(&FPR, args),
    ),
    class(
        "sk.feature_selection.SelectFdr",
        &[SCORE_FUNC, ALPHA],
        "features, of which a bounded share is chosen wrongly",
        |args, _| Instance::made::<SelectFdr>(&FDR, args),
    ),
    class(
        "sk.feature_selection.SelectFwe",
        &[SCORE_FUNC, ALPHA],
        "features, of which one is chosen wrongly with a bounded chance",
        |args, _| Instance::made::<SelectFwe>(&FWE, args),
    ),
    class(
        "sk.feature_selection.RFE",
        &[
            ESTIMATOR,
            Param::new(
                "n_features_to_select",
                Kind::OneOf(&[Kind::Integer, Kind::Real, Kind::None]),
                Preset::None,
            )
            .keyword(),
            Param::new("step", Kind::OneOf(&[Kind::Integer, Kind::Real]), Preset::Integer(1)).keyword(),
            VERBOSE,
            IMPORTANCE_GETTER,
        ],
        "features without which a model does worse, step by step",
        |args, _| around::<ByRanks>(&STEPS, args),
    ),
    class(
        "sk.feature_selection.SelectFromModel",
        &[
            ESTIMATOR,
            Param::new("threshold", Kind::OneOf(&[Kind::Real, Kind::Text, Kind::None]), Preset::None)
                .keyword(),
            Param::new("prefit", Kind::Boolean, Preset::Boolean(false)).keyword().fixed(),
            Param::new("norm_order", Kind::Real, Preset::Integer(1)).keyword(),
            Param::new("max_features", INTEGER_OR_NONE, Preset::None).keyword(),
            IMPORTANCE_GETTER,
        ],
        "features that count enough for a model",
        |args, _| around::<ByModels>(&BY_MODEL, args),
    ),
    class(
        "sk.feature_selection.SequentialFeatureSelector",
        &[
            ESTIMATOR,
            Param::new(
                "n_features_to_select",
                Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Integer, Kind::Real]),
                Preset::Text("auto"),
            )
            .keyword(),
            Param::new("tol", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::None).keyword(),
            Param::new("direction", Kind::Choice(&["forward", "backward"]), Preset::Text("forward"))
                .keyword(),
            Param::new("scoring", Kind::OneOf(&[Kind::Text, Kind::None]), Preset::None).keyword(),
            Param::new("cv", INTEGER_OR_NONE, Preset::Integer(5)).keyword(),
            N_JOBS,
        ],
        "features that are added, or left out, as scores on folds say",
        |args, _| around::<ByScores>(&SEQUENTIAL, args),
    ),
];

/// The folds and the score of a call.
fn validation(args: &Bound<Value>) -> Result<Validation, Failure> {
    let cv = match integer_if_given(args, "cv")? {
        None => Folds::default(),
        Some(_) => super::args::count(args, "cv", 2)?.into(),
    };
    let scoring = match args.some("scoring")? {
        None => Scoring::default(),
        Some(_) => Scoring::named(args.text("scoring")?)?,
    };
    Ok(Validation { cv, scoring, ..Validation::default() })
}

struct ByRanks;

impl Around for ByRanks {
    type Of<T: Tells> = RFE<AnyEstimator<T>>;

    fn of<T: Tells>(_: &Bound<Value>, estimator: AnyEstimator<T>) -> Result<Self::Of<T>, Failure> {
        Ok(RFE::new(estimator))
    }
}

struct ByModels;

impl Around for ByModels {
    type Of<T: Tells> = SelectFromModel<AnyEstimator<T>>;

    fn of<T: Tells>(_: &Bound<Value>, estimator: AnyEstimator<T>) -> Result<Self::Of<T>, Failure> {
        Ok(SelectFromModel::new(estimator))
    }
}

struct ByScores;

impl Around for ByScores {
    type Of<T: Tells> = SequentialFeatureSelector<AnyEstimator<T>>;

    fn of<T: Tells>(args: &Bound<Value>, estimator: AnyEstimator<T>) -> Result<Self::Of<T>, Failure> {
        Ok(SequentialFeatureSelector::new(estimator).validation(validation(args)?))
    }
}

/// Whether each feature is chosen, as a value; (d,), bool.
fn support(mask: &[bool]) -> Value {
    let numbers: Vec<i64> = mask.iter().map(|&chosen| i64::from(chosen)).collect();
    Value::Tensor(Tensor::from_elements(&[mask.len()], &numbers).astype(DType::Bool))
}

model!(
    FittedVarianceThreshold,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "variances_" => array(&m.variances),
    },
);

model!(
    FittedSelect,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "pvalues_" => array(&m.pvalues),
        "scores_" => array(&m.scores),
    },
);

impl<T: Tells> Described for FittedRFE<FittedAny<T>> {
    const METHODS: &'static [&'static str] = match T::TASK {
        Task::Classification => {
            &["inverse_transform", "predict", "transform", "decision_function", "predict_proba", "score"]
        }
        Task::Regression | Task::Unsupervised => &["inverse_transform", "predict", "transform", "score"],
    };
    const TASK: Task = T::TASK;
    const HAS_NAMES: bool = true;
}

impl<T: Tells> Model for FittedRFE<FittedAny<T>> {
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor> {
        match method {
            "decision_function" => self.decision_function(x),
            "inverse_transform" => Some(self.inverse_transform(x)),
            "predict" => Some(self.predict(x)),
            "predict_proba" => self.predict_proba(x),
            "transform" => Some(self.transform(x)),
            _ => None,
        }
    }

    fn score(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> crate::Result<f64> {
        supervised_score(self, x, y, options)
    }

    fn names(&self, names: &[String]) -> Option<Vec<String>> {
        crate::base::Transform::feature_names_out(self, names)
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        match name {
            "classes_" => self.class_labels().map(classes),
            "n_features_" => Some(whole(self.n_features())),
            "ranking_" => Some(wholes(&self.ranking)),
            "support_" => Some(support(self.support())),
            _ => None,
        }
    }
}

impl<T: Tells> Described for FittedSelectFromModel<FittedAny<T>> {
    const METHODS: &'static [&'static str] = &["inverse_transform", "transform"];
    const TASK: Task = Task::Unsupervised;
    const HAS_NAMES: bool = true;
}

impl<T: Tells> Model for FittedSelectFromModel<FittedAny<T>> {
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor> {
        match method {
            "inverse_transform" => Some(self.inverse_transform(x)),
            "transform" => Some(self.transform(x)),
            _ => None,
        }
    }

    fn names(&self, names: &[String]) -> Option<Vec<String>> {
        crate::base::Transform::feature_names_out(self, names)
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        (name == "threshold_").then(|| real(self.threshold))
    }
}

model!(
    FittedSequentialFeatureSelector,
    maps: [inverse_transform, transform],
    attributes: |m| {
        "n_features_to_select_" => whole(m.support().iter().filter(|chosen| **chosen).count()),
        "support_" => support(m.support()),
    },
);
