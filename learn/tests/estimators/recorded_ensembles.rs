//! Estimators that hold others against recorded answers of scikit-learn, each for several ways to cut the
//! samples.

use crate::oracle::{Case, each};
use ndarray::{Array1, ArrayD, arr0};
use tharsis_learn::base::{Predict, Transform};
use tharsis_learn::calibration::CalibratedClassifierCV;
use tharsis_learn::cluster::{BisectingKMeans, MiniBatchKMeans};
use tharsis_learn::compose::TransformedTargetRegressor;
use tharsis_learn::decomposition::NMF;
use tharsis_learn::ensemble::{
    AdaBoostClassifier, BaggingClassifier, BaggingRegressor, StackingClassifier, StackingRegressor,
    VotingClassifier, VotingRegressor,
};
use tharsis_learn::feature_selection::{RFE, SelectFromModel, SequentialFeatureSelector};
use tharsis_learn::isotonic::IsotonicRegression;
use tharsis_learn::linear_model::{
    LinearRegression, LogisticRegression, LogisticRegressionCV, Ridge, RidgeClassifier,
};
use tharsis_learn::model_selection::{KFold, LeaveOneOut};
use tharsis_learn::multiclass::{OneVsOneClassifier, OneVsRestClassifier};
use tharsis_learn::multioutput::{MultiOutputClassifier, MultiOutputRegressor};
use tharsis_learn::naive_bayes::GaussianNB;
use tharsis_learn::preprocessing::StandardScaler;
use tharsis_learn::tree::{DecisionTreeClassifier, DecisionTreeRegressor};
use tharsis_learn::{AnyClassifier, AnyRegressor, FitOptions, Params, Setting};
use tharsis_numeric::{DType, Index, Tensor, array, zeros};

/// Solvers end near the optimum.
const NEAR: f64 = 2e-5;

fn classifier(name: &str) -> AnyClassifier {
    match name {
        "bayes" => AnyClassifier::new(GaussianNB::new()),
        "line" => AnyClassifier::new(LogisticRegression::new().tol(1e-10).max_iter(10_000)),
        "plane" => AnyClassifier::new(RidgeClassifier::new()),
        "stump" => AnyClassifier::new(DecisionTreeClassifier::new().max_depth(1)),
        other => panic!("{other} is no classifier"),
    }
}

fn regressor(name: &str) -> AnyRegressor {
    match name {
        "ridge" => AnyRegressor::new(Ridge::new()),
        "least" => AnyRegressor::new(LinearRegression::new()),
        "tree" => AnyRegressor::new(DecisionTreeRegressor::new().max_depth(2)),
        other => panic!("{other} is no regressor"),
    }
}

/// The classifier of a case.
fn own(case: &Case<'_>) -> AnyClassifier {
    classifier(case.text("estimator").unwrap())
}

/// An estimator with the parameters of a case, but for those that name estimators.
fn set<E: Params>(mut estimator: E, case: &Case<'_>) -> E {
    for (name, value) in case.params() {
        let setting = match value {
            serde_json::Value::Bool(is_true) => Setting::from(*is_true),
            serde_json::Value::String(text) => text.as_str().into(),
            serde_json::Value::Array(_) => case.numbers(name).unwrap().into(),
            serde_json::Value::Object(_) => continue,
            number if number.is_i64() => number.as_i64().unwrap().into(),
            number => number.as_f64().unwrap().into(),
        };
        if !["estimator", "transformer", "func"].contains(&name) {
            estimator.set(name, &setting).unwrap();
        }
    }
    estimator
}

fn numbers(classes: &[i64]) -> ArrayD<f64> {
    classes.iter().map(|&class| class as f64).collect::<Array1<f64>>().into_dyn()
}

fn has(case: &Case<'_>, method: &str) -> bool {
    case.recorded().contains(&method)
}

/// The results of a model that are recorded; `scored` are the targets of the score.
fn same<M: Predict>(case: &Case<'_>, x: &Tensor, model: &M, scored: &Tensor) {
    case.method("predict", &model.predict(x), NEAR);
    if has(case, "predict_proba") {
        case.method("predict_proba", &model.probabilities(x).unwrap().1, NEAR);
    }
    if has(case, "decision_function") {
        case.method("decision_function", &model.decisions(x).unwrap().1, NEAR);
    }
    case.score(model.score_any(x, scored, &case.options()).unwrap(), NEAR);
}

fn same_map<M: Predict + Transform>(case: &Case<'_>, x: &Tensor, model: &M, scored: &Tensor) {
    same(case, x, model, scored);
    case.method("transform", &model.transform(x), NEAR);
}

#[test]
fn votes() {
    each("VotingClassifier", |case, x| {
        let names = ["bayes", "line", "stump"];
        let voting = names.iter().fold(VotingClassifier::new(), |all, name| all.any(name, classifier(name)));
        let y = case.labels();
        let model = set(voting, case).fit(x, &y, case.options()).unwrap();
        case.attribute("classes", numbers(&model.classes), 0.0);
        same(case, x, &model, &y);
        if has(case, "transform") {
            case.method("transform", &model.transform(x), NEAR);
        }
    });
    each("VotingRegressor", |case, x| {
        let voting = VotingRegressor::new().any("ridge", regressor("ridge")).any("tree", regressor("tree"));
        let model = set(voting, case).fit(x, &case.y(), case.options()).unwrap();
        same_map(case, x, &model, &case.y());
    });
}

#[test]
fn stacks() {
    each("StackingClassifier", |case, x| {
        let names = ["bayes", "plane"];
        let stacking = StackingClassifier::new().any_final(classifier("line"));
        let stacking = names.iter().fold(stacking, |all, name| all.any(name, classifier(name)));
        let y = case.labels();
        let model = set(stacking, case).fit(x, &y, case.options()).unwrap();
        case.attribute("classes", numbers(&model.classes), 0.0);
        same_map(case, x, &model, &y);
    });
    each("StackingRegressor", |case, x| {
        let stacking = StackingRegressor::new().any_final(regressor("ridge"));
        let stacking = stacking.any("ridge", regressor("ridge")).any("tree", regressor("tree"));
        let model = set(stacking, case).fit(x, &case.y(), case.options()).unwrap();
        same_map(case, x, &model, &case.y());
    });
}

#[test]
fn bags_of_all_samples() {
    each("BaggingClassifier", |case, x| {
        let bagging = set(BaggingClassifier::new().any(own(case)), case);
        let y = case.labels();
        let model = bagging.fit(x, &y, case.options()).unwrap();
        case.attribute("classes", numbers(&model.classes), 0.0);
        same(case, x, &model, &y);
    });
    each("BaggingRegressor", |case, x| {
        let bagging = set(BaggingRegressor::new().any(regressor("ridge")), case);
        same(case, x, &bagging.fit(x, &case.y(), case.options()).unwrap(), &case.y());
    });
}

#[test]
fn boosted_stumps() {
    each("AdaBoostClassifier", |case, x| {
        let boosting = set(AdaBoostClassifier::new(), case);
        let y = case.labels();
        let model = boosting.fit(x, &y, case.options()).unwrap();
        case.attribute("classes", numbers(&model.classes), 0.0);
        case.attribute("estimator_weights", Array1::from(model.estimator_weights.clone()).into_dyn(), 1e-9);
        case.attribute("estimator_errors", Array1::from(model.estimator_errors.clone()).into_dyn(), 1e-9);
        case.attribute("feature_importances", model.feature_importances().unwrap().into_dyn(), 1e-7);
        same(case, x, &model, &y);
    });
}

#[test]
fn calibrated_classifiers() {
    each("CalibratedClassifierCV", |case, x| {
        let calibrated = set(CalibratedClassifierCV::new().any(own(case)), case);
        // The answers are of labels from 0 on.
        let y = case.labels();
        let y = y.unique().searchsorted(&y).execute().unwrap();
        let model = calibrated.fit(x, &y, case.options()).unwrap();
        case.attribute("classes", numbers(&model.classes), 0.0);
        // scikit-learn's search ends earlier.
        case.method("predict_proba", &model.predict_proba(x), 1e-4);
        case.method("predict", &model.predict(x), 0.0);
        case.score(model.score(x, &y, case.options()).unwrap(), 1e-9);
    });
}

#[test]
fn classes_against_others() {
    each("OneVsRestClassifier", |case, x| {
        let y = case.labels();
        let model = OneVsRestClassifier::any(own(case)).fit(x, &y, ..).unwrap();
        case.attribute("classes", numbers(&model.classes), 0.0);
        same(case, x, &model, &y);
    });
    each("OneVsOneClassifier", |case, x| {
        let y = case.labels();
        let model = OneVsOneClassifier::any(own(case)).fit(x, &y, ..).unwrap();
        case.attribute("classes", numbers(&model.classes), 0.0);
        same(case, x, &model, &y);
    });
    each("Labels", |case, x| {
        let y = case.y().greater(case.y().median(0)).astype(DType::I64);
        let model = OneVsRestClassifier::any(own(case)).fit(x, &y, ..).unwrap();
        assert!(model.multilabel);
        same(case, x, &model, &y);
    });
}

#[test]
fn several_targets() {
    each("MultiOutputRegressor", |case, x| {
        let model = MultiOutputRegressor::any(regressor("ridge")).fit(x, &case.y(), case.options()).unwrap();
        same(case, x, &model, &case.y());
    });
    each("MultiOutputClassifier", |case, x| {
        let y = case.y().greater(case.y().median(0)).astype(DType::I64);
        let model = MultiOutputClassifier::any(own(case)).fit(x, &y, case.options()).unwrap();
        same(case, x, &model, &y);
    });
}

#[test]
fn mapped_targets() {
    each("TransformedTargetRegressor", |case, x| {
        let estimator = match (case.text("transformer"), case.text("func")) {
            (Some(_), _) => {
                TransformedTargetRegressor::new().any(regressor("ridge")).transformer(StandardScaler::new())
            }
            (_, Some(_)) => {
                TransformedTargetRegressor::new().any(regressor("ridge")).functions(Tensor::log, Tensor::exp)
            }
            _ => TransformedTargetRegressor::new(),
        };
        let model = estimator.fit(x, &case.y(), case.options()).unwrap();
        same(case, x, &model, &case.y());
    });
}

#[test]
fn lines_that_never_fall() {
    each("IsotonicRegression", |case, x| {
        let place = x.get(&[Index::from(..), Index::from(0)]);
        let model = set(IsotonicRegression::new(), case);
        let model = model.fit(&place.round(1), &case.y(), case.options()).unwrap();
        case.attribute("X_min", arr0(model.x_min).into_dyn(), 1e-12);
        case.attribute("X_max", arr0(model.x_max).into_dyn(), 1e-12);
        case.attribute("X_thresholds", model.x_thresholds.clone().into_dyn(), 1e-12);
        case.attribute("y_thresholds", model.y_thresholds.clone().into_dyn(), 1e-9);
        case.attribute("increasing", arr0(f64::from(u8::from(model.increasing))).into_dyn(), 0.0);
        case.method("predict", &model.predict(&place), 1e-9);
    });
}

#[test]
fn clusters_by_batches() {
    each("MiniBatchKMeans", |case, x| {
        let init = Tensor::from_array(&case.array("init").unwrap());
        let estimator = MiniBatchKMeans::new().n_clusters(3).init(&init);
        let all = case.options();
        let mut model = None;
        for (start, end) in [(0, 20), (20, 21), (21, 61)] {
            let part = |tensor: &Tensor| tensor.get(&[Index::from(start..end)]);
            let options = match case.weights() {
                Some(weights) => FitOptions::new().sample_weight(&part(&weights)),
                None => all.clone(),
            };
            let rows = part(x);
            model = Some(estimator.partial_fit(model.as_ref(), &rows, options).unwrap());
        }
        let model = model.unwrap();
        case.attribute("cluster_centers", model.cluster_centers.clone().into_dyn(), 1e-12);
        case.attribute("labels", model.labels.astype(DType::F64).fetch::<f64>().unwrap(), 0.0);
        case.attribute("inertia", arr0(model.inertia).into_dyn(), 1e-12);
        case.attribute("n_steps", arr0(model.n_steps as f64).into_dyn(), 0.0);
        case.method("predict", &model.predict(x), 0.0);
        case.method("transform", &model.transform(x), 1e-12);
    });
    each("BisectingKMeans", |case, x| {
        let model = set(BisectingKMeans::new(), case).fit(x, case.options()).unwrap();
        case.attribute("cluster_centers", model.cluster_centers.clone().into_dyn(), 1e-9);
        case.attribute("labels", model.labels.astype(DType::F64).fetch::<f64>().unwrap(), 0.0);
        case.attribute("inertia", arr0(model.inertia).into_dyn(), 1e-9);
        case.method("predict", &model.predict(x), 0.0);
        case.method("transform", &model.transform(x), 1e-9);
    });
}

#[test]
fn parts_that_are_not_negative() {
    each("NMF", |case, x| {
        let estimator = set(NMF::new(), case);
        let model = match (case.array("W"), case.array("H")) {
            (Some(weights), Some(parts)) => {
                let start = (&Tensor::from_array(&weights), &Tensor::from_array(&parts));
                let (model, weights) = estimator.n_components(2).fit_from(x, start, ..).unwrap();
                case.attribute("weights", weights.fetch::<f64>().unwrap(), 1e-7);
                model
            }
            _ => estimator.n_components(4).fit(x, ..).unwrap(),
        };
        case.attribute("components", model.components.clone().into_dyn(), 1e-7);
        case.attribute("reconstruction_err", arr0(model.reconstruction_err).into_dyn(), 1e-9);
        case.attribute("n_iter", arr0(model.n_iter as f64).into_dyn(), 0.0);
    });
}

#[test]
fn penalties_by_scores() {
    each("LogisticRegressionCV", |case, x| {
        let y = case.labels();
        let model = set(LogisticRegressionCV::new(), case).fit(x, &y, case.options()).unwrap();
        case.attribute("Cs", Array1::from(model.cs.clone()).into_dyn(), 1e-12);
        case.attribute("C", arr0(model.c).into_dyn(), 1e-12);
        case.attribute("table", model.scores.clone().into_dyn(), NEAR);
        case.attribute("coef", model.model.coef.clone().into_dyn(), NEAR);
        case.attribute("intercept", model.model.intercept.clone().into_dyn(), NEAR);
        same(case, x, &model, &y);
    });
}

fn mask(support: &[bool]) -> ArrayD<f64> {
    support.iter().map(|&chosen| f64::from(u8::from(chosen))).collect::<Array1<f64>>().into_dyn()
}

#[test]
fn features_by_models() {
    each("RFE", |case, x| {
        let (model, y) = match case.text("estimator") {
            None => {
                let model = set(RFE::new(regressor("ridge")), case).fit(x, &case.y(), ..).unwrap();
                same_map(case, x, &model, &case.y());
                ((model.ranking.clone(), mask(model.support())), case.y())
            }
            Some(name) => {
                let y = case.labels();
                let model = RFE::new(classifier(name)).fit(x, &y, ..).unwrap();
                same_map(case, x, &model, &y);
                ((model.ranking.clone(), mask(model.support())), y)
            }
        };
        assert!(!y.shape().unwrap().is_empty());
        let ranking: Array1<f64> = model.0.iter().map(|&rank| rank as f64).collect();
        case.attribute("ranking", ranking.into_dyn(), 0.0);
        case.attribute("support", model.1, 0.0);
    });
    each("SelectFromModel", |case, x| {
        let (threshold, support, made) = match case.text("estimator") {
            None => {
                let selector = set(SelectFromModel::new(regressor("ridge")), case);
                let model = selector.fit(x, &case.y(), case.options()).unwrap();
                (model.threshold, mask(model.support()), model.transform(x))
            }
            Some(name) => {
                let selector = set(SelectFromModel::new(classifier(name)), case);
                let model = selector.fit(x, &case.labels(), case.options()).unwrap();
                (model.threshold, mask(model.support()), model.transform(x))
            }
        };
        case.attribute("threshold", arr0(threshold).into_dyn(), 1e-9);
        case.attribute("chosen", support, 0.0);
        case.method("transform", &made, 0.0);
    });
}

#[test]
fn features_by_scores() {
    each("SequentialFeatureSelector", |case, x| {
        let selector = set(SequentialFeatureSelector::new(regressor("ridge")), case);
        let model = selector.fit(x, &case.y(), ..).unwrap();
        case.attribute("support", mask(model.support()), 0.0);
        case.method("transform", &model.transform(x), 0.0);
    });
}

#[test]
fn mistakes_have_the_texts_of_scikit_learn() {
    let x = array([0.0, 1.0, 2.0, 5.0, 3.0, 1.0]).reshape(&[6, 1]);
    let y = array([0i64, 1, 0, 1, 0, 1]);
    let bayes = || classifier("bayes");
    let weighted = || FitOptions::new().sample_weight(&array([1.0; 6]));
    let twice = VotingClassifier::new().any("a", bayes()).any("a", bayes());
    let lines = [
        (
            VotingClassifier::new().fit(&x, &y, ..).map(drop),
            "Invalid 'estimators' attribute, 'estimators' should be a non-empty list of (string, estimator) tuples.",
        ),
        (twice.fit(&x, &y, ..).map(drop), "Names provided are not unique: ['a', 'a']"),
        (
            VotingClassifier::new().any("a__b", bayes()).fit(&x, &y, ..).map(drop),
            "Estimator names must not contain __: got ['a__b']",
        ),
        (
            VotingClassifier::new().any("voting", bayes()).fit(&x, &y, ..).map(drop),
            "Estimator names conflict with constructor arguments: ['voting']",
        ),
        (
            VotingClassifier::new().any("a", bayes()).weights([1.0, 2.0]).fit(&x, &y, ..).map(drop),
            "Number of `estimators` and weights must be equal; got 2 weights, 1 estimators",
        ),
        (
            VotingClassifier::new().estimator("a", Ridge::new()).fit(&x, &y, ..).map(drop),
            "The estimator Ridge should be a classifier.",
        ),
        (
            VotingRegressor::new().estimator("a", GaussianNB::new()).fit(&x, &y, ..).map(drop),
            "The estimator GaussianNB should be a regressor.",
        ),
        (
            StackingClassifier::new()
                .any("a", bayes())
                .final_estimator(Ridge::new())
                .fit(&x, &y, ..)
                .map(drop),
            "'final_estimator' parameter should be a classifier. Got Ridge(",
        ),
        (
            BaggingClassifier::new().n_estimators(0).fit(&x, &y, ..).map(drop),
            "The 'n_estimators' parameter of BaggingClassifier must be an int in the range [1, inf). Got 0 instead.",
        ),
        (
            BaggingClassifier::new().bootstrap(false).oob_score(true).fit(&x, &y, ..).map(drop),
            "Out of bag estimation only available if bootstrap=True",
        ),
        (
            BaggingClassifier::new()
                .max_features(tharsis_learn::model_selection::Share::Count(2))
                .fit(&x, &y, ..)
                .map(drop),
            "max_features must be <= n_features",
        ),
        (
            AdaBoostClassifier::new().learning_rate(0.0).fit(&x, &y, ..).map(drop),
            "The 'learning_rate' parameter of AdaBoostClassifier must be a float in the range (0.0, inf).",
        ),
        (
            OneVsOneClassifier::any(bayes()).fit(&x, &zeros(&[6]), ..).map(drop),
            "OneVsOneClassifier can not be fit when only one class is present.",
        ),
        (
            OneVsRestClassifier::any(bayes()).fit(&x, &y, weighted()).map(drop),
            "OneVsRestClassifier.fit() got an unexpected keyword argument 'sample_weight'",
        ),
        (
            MultiOutputRegressor::new(Ridge::new()).fit(&x, &y, ..).map(drop),
            "y must have at least two dimensions for multi-output regression but has only one.",
        ),
        (
            CalibratedClassifierCV::new().cv(4).fit(&x, &y, ..).map(drop),
            "Requesting 4-fold cross-validation but provided less than 4 examples for at least one class.",
        ),
        (
            CalibratedClassifierCV::new()
                .cv(KFold { n_splits: 4, ..KFold::default() })
                .fit(&x, &y, ..)
                .map(drop),
            "Requesting 4-fold cross-validation but provided less than 4 examples for at least one class.",
        ),
        (
            CalibratedClassifierCV::new().cv(LeaveOneOut).fit(&x, &y, ..).map(drop),
            "LeaveOneOut cross-validation does not allow",
        ),
        (
            IsotonicRegression::new().fit(&x.reshape(&[3, 2]), &array([1.0, 2.0, 3.0]), ..).map(drop),
            "Isotonic regression input X should be a 1d array or 2d array with 1 feature",
        ),
        (
            MiniBatchKMeans::new().batch_size(0).fit(&x, ..).map(drop),
            "The 'batch_size' parameter of MiniBatchKMeans must be an int in the range [1, inf). Got 0 instead.",
        ),
        (MiniBatchKMeans::new().fit(&x, ..).map(drop), "n_samples=6 should be >= n_clusters=8."),
        (BisectingKMeans::new().fit(&x, ..).map(drop), "n_samples=6 should be >= n_clusters=8."),
    ];
    for (made, text) in lines {
        let error = made.unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
}
