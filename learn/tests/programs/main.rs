//! Estimators, metrics and splits in programs: JSON through the evaluator of tensors, beside the same calls
//! in Rust, and beside what scikit-learn has.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod extremes;
mod fits;
mod label_sets;
mod members;
mod names;
mod outputs;
mod parameters;
mod refusals;
mod sklearn_names;

use serde_json::{Value as Json, json};
use tharsis_learn::programs::TABLES;
use tharsis_numeric::protocol::{Here, Scope, Value, answer_on};
use tharsis_programs::Row;

/// The reply to a request.
fn reply(request: &Json) -> Json {
    // As a client sends it.
    let mut request: Json = serde_json::from_str(&request.to_string()).unwrap();
    with_members(&mut request);
    answer_on(&request, ".".as_ref(), &Here, TABLES)
}

/// Puts steps in front of a program that make the estimators `member_bayes` and `member_ridge`, for those
/// that hold one.
fn with_members(request: &mut Json) {
    let text = request.to_string();
    let members = [
        ("member_bayes", "sk.naive_bayes.GaussianNB"),
        ("member_ridge", "sk.linear_model.Ridge"),
        ("member_scaler", "sk.preprocessing.StandardScaler"),
    ];
    for (name, class) in members {
        if let (true, Some(steps)) = (text.contains(name), request["prog"].as_array_mut()) {
            steps.insert(0, json!([name, class, []]));
        }
    }
}

/// The estimator that a class may hold.
fn member(class: &str) -> Json {
    let bare = class.rsplit('.').next().unwrap();
    json!({"$": if bare.contains("Classifier") { "member_bayes" } else { "member_ridge" }})
}

/// The results of a program over samples `x` and labels `y`.
fn run(program: Json, out: Json) -> Json {
    let found = reply(&json!({"in": inputs(), "prog": program, "out": out}));
    assert_eq!(found["ok"], true, "{found}");
    found["out"].clone()
}

/// The class and the text of the error of a program over samples `x` and labels `y`.
fn error(program: Json) -> String {
    let found = reply(&json!({"in": inputs(), "prog": program, "out": []}));
    assert_eq!(found["ok"], false, "{found}");
    format!("{}: {}", found["err"]["class"].as_str().unwrap(), found["err"]["msg"].as_str().unwrap())
}

/// All operations of this crate.
fn rows() -> impl Iterator<Item = &'static Row<Value, Scope>> {
    TABLES.iter().copied().flatten()
}

/// Twelve samples of four features, not negative, and labels 0 and 1. Their decimal digits are few, so that
/// any reader of JSON finds the same numbers.
fn inputs() -> Json {
    let positive: Vec<f64> = labels().into_iter().map(|label| label as f64 + 0.5).collect();
    json!({"x": {"lit": samples()}, "y": {"lit": labels()}, "positive": {"lit": positive}})
}

/// The class whose samples are sets of labels, which are no array. It has tests of its own.
const OF_SETS: &str = "sk.preprocessing.MultiLabelBinarizer";

/// Samples that a class takes: four for a kernel of samples with themselves, or labels.
fn samples_of(class: &str) -> Json {
    match class {
        OF_SETS => labels().into_iter().map(|label| json!([label, 2])).collect(),
        _ if is_of_labels(class) => json!({"$": "y"}),
        "sk.preprocessing.KernelCenterer" => json!(samples()[..4]),
        "sk.isotonic.IsotonicRegression" => samples().iter().map(|row| json!([row[0]])).collect(),
        _ => json!({"$": "x"}),
    }
}

/// Whether a class takes labels in the place of samples.
fn is_of_labels(class: &str) -> bool {
    ["sk.preprocessing.LabelBinarizer", "sk.preprocessing.LabelEncoder"].contains(&class)
}

/// Parameters without which a class takes no samples of four features.
fn params(class: &str) -> Json {
    match class {
        _ if class.contains("random_projection") => json!({"n_components": 2}),
        _ if class.contains("Voting") || class.contains("Stacking") => {
            json!({"estimators": [{"t": ["a", member(class)]}]})
        }
        "sk.model_selection.HalvingGridSearchCV" => {
            json!({"estimator": member(class), "param_grid": {"o": {"fit_intercept": [true, false]}}})
        }
        "sk.model_selection.GridSearchCV" => {
            json!({"estimator": member(class), "param_grid": {"o": {"alpha": [0.5, 1.0]}}})
        }
        "sk.model_selection.HalvingRandomSearchCV" => {
            let drawn = json!({"o": {"fit_intercept": [true, false]}});
            json!({"estimator": member(class), "param_distributions": drawn})
        }
        "sk.model_selection.RandomizedSearchCV" => {
            json!({"estimator": member(class), "param_distributions": {"o": [["alpha", [0.5, 1.0]]]}})
        }
        "sk.compose.ColumnTransformer" => {
            json!({"transformers": [{"t": ["a", {"$": "member_scaler"}, [0]]}], "remainder": "passthrough"})
        }
        "sk.pipeline.FeatureUnion" => {
            json!({"transformer_list": [{"t": ["a", {"$": "member_scaler"}]}, {"t": ["b", "passthrough"]}]})
        }
        "sk.pipeline.Pipeline" => json!({"steps": [{"t": ["a", member(class)]}]}),
        _ if NEEDS_MEMBER.contains(&class) => json!({"estimator": member(class)}),
        _ => chosen(class),
    }
}

/// Parameters that a class has to be given, since it refuses their defaults.
fn chosen(class: &str) -> Json {
    if class.ends_with("LinearSVR") { json!({"loss": "squared_epsilon_insensitive"}) } else { json!({}) }
}

/// Classes that cannot be made without an estimator.
const NEEDS_MEMBER: [&str; 7] = [
    "sk.feature_selection.RFE",
    "sk.feature_selection.SelectFromModel",
    "sk.feature_selection.SequentialFeatureSelector",
    "sk.multiclass.OneVsOneClassifier",
    "sk.multiclass.OneVsRestClassifier",
    "sk.multioutput.MultiOutputClassifier",
    "sk.multioutput.MultiOutputRegressor",
];

/// Targets that a class takes.
fn target(class: &str) -> Json {
    if class.contains("MultiOutput") {
        return labels().iter().map(|label| json!([label, 1 - label])).collect();
    }
    json!({"$": if class.ends_with("GammaRegressor") { "positive" } else { "y" }})
}

fn samples() -> Vec<Vec<f64>> {
    let element = |row: usize, column: usize| {
        // Not linear in the row, so that each class varies in all directions.
        let noise = ((row * row * 7 + column * 5 + row * column * column * 3) * 31 % 23) as f64 / 32.0;
        noise + if row % 2 == column % 2 { 1.5 } else { 0.25 } + (row * column) as f64 / 16.0
    };
    (0..12).map(|row| (0..4).map(|column| element(row, column)).collect()).collect()
}

fn labels() -> Vec<i64> {
    (0..12).map(|row| row % 2).collect()
}

/// The classes of estimators of arrays: the names of their rows.
fn classes() -> Vec<&'static str> {
    let is_class = |name: &&str| {
        name.rsplit('.').next().unwrap().starts_with(|c: char| c.is_uppercase()) && *name != OF_SETS
    };
    rows().map(|row| row.name).filter(is_class).collect()
}
