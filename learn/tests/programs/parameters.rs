//! Each row, called with each of its parameters at its default and at one other value.

use super::{
    OF_SETS, chosen, classes, inputs, labels, member, params, reply, rows, samples, samples_of, target,
};
use serde_json::{Value as Json, json};
use tharsis_programs::{Kind, Look, Made, Param, Place};
use tharsis_trials::is_long;

/// A value as JSON.
fn json_of(look: &Look<'_>) -> Json {
    match look {
        Look::None => Json::Null,
        Look::Boolean(is_true) => json!(is_true),
        Look::Integer(whole) => json!(i64::try_from(*whole).unwrap()),
        Look::Real(number) if number.is_nan() => json!({"f": "nan"}),
        Look::Real(number) => json!(number),
        Look::Text(text) => json!(text),
        Look::Tuple(parts) => json!({"t": parts.iter().map(json_of).collect::<Vec<_>>()}),
        other => panic!("{other} is no default"),
    }
}

/// A value that is not the default, of a kind.
fn other_of(kind: Kind, default: &Look<'_>) -> Option<Json> {
    let number = match default {
        Look::Real(number) if number.is_finite() => *number,
        Look::Integer(whole) => *whole as f64,
        _ => 0.0,
    };
    match kind {
        Kind::Anything => Some(json!({"t": [1]})),
        Kind::Boolean => Some(json!(*default != Look::Boolean(true))),
        Kind::Choice(words) => {
            words.iter().find(|word| !default.equals(&Look::Text(word))).map(|word| json!(word))
        }
        Kind::Integer => Some(json!(number as i64 + 1)),
        Kind::None => (*default != Look::None).then_some(Json::Null),
        Kind::OneOf(kinds) => kinds.iter().find_map(|kind| other_of(*kind, default)),
        Kind::Real => Some(json!(if number == 0.0 { 0.5 } else { number / 2.0 })),
        Kind::Array | Kind::Sequence | Kind::Tuple => Some(json!([0.5, 0.5])),
        Kind::Text => Some(json!("other")),
        Kind::Object => None,
    }
}

/// Values that the data need, by parameter.
fn fitting(row: &str, param: &str) -> Option<Json> {
    Some(match (row, param) {
        (_, "sample_weight") => json!((1..=12).collect::<Vec<i64>>()),
        (_, "labels") => json!([0, 1]),
        (OF_SETS, "classes") => json!([2, 0]),
        ("sk.metrics.pairwise.haversine_distances", "X" | "Y") => json!([[0.5, 0.25], [1.0, 0.5]]),
        (_, "Y") => json!(samples()[..3]),
        (_, "stratify") => json!(labels()),
        (_, "class_prior" | "priors") => json!([0.25, 0.75]),
        (_, "unknown_value") => json!(-1),
        (_, "n_bins") => json!(3),
        (_, "eps") if row.contains("random_projection") => json!(0.5),
        ("sk.kernel_approximation.Nystroem", "degree") => json!(2.5),
        (_, "min_categories") => json!([3, 9, 3, 3]),
        (_, "quantile_range") => json!({"t": [10, 60]}),
        (_, "degree") if row.contains("preprocessing") => json!(3),
        (_, "feature_range") => json!({"t": [-1, 1]}),
        ("sk.dummy.DummyClassifier", "strategy") => json!("uniform"),
        ("sk.dummy.DummyRegressor", "strategy") => json!("median"),
        (_, "target_names") => json!(["no", "yes"]),
        ("sk.feature_selection.VarianceThreshold", "threshold") => json!(0.01),
        ("sk.linear_model.TweedieRegressor", "power") => json!(1.5),
        (_, "power") => json!(2.0),
        (row, "weights") if row.contains("Voting") => json!([2.0]),
        (row, "n_features_to_select") if row.contains("feature_selection") => json!(2),
        (row, "max_samples" | "max_features") if row.contains("Bagging") => json!(0.5),
        (_, "init") if row.contains("MiniBatch") => json!("random"),
        ("sk.linear_model.LogisticRegressionCV", "scoring") => json!("balanced_accuracy"),
        ("sk.linear_model.LogisticRegressionCV", "refit") => json!(false),
        (_, "scoring" | "refit") => json!("r2"),
        (_, "resource") => json!("alpha"),
        (_, "max_resources") => json!(12),
        ("sk.model_selection.HalvingRandomSearchCV", "min_resources") => json!(11),
        ("sk.feature_selection.SelectFromModel", "threshold") => json!("0.5*median"),
        ("sk.isotonic.IsotonicRegression", "y_min" | "y_max") => json!(0.25),
        (_, "k" | "zero_division") => json!(1),
        (_, "cv" | "n_clusters") => json!(3),
        (_, "means_init") => json!([[1.0, 1.0, 1.5, 2.0]]),
        (_, "noise_variance_init") => json!([0.5, 1.0, 2.0, 0.25]),
        (_, "precisions_init") => {
            json!([[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]])
        }
        (_, "weights_init") => json!([1.0]),
        (_, "w_init") => {
            json!([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
        }
        ("sk.linear_model.HuberRegressor", "epsilon") => json!(2.0),
        (_, "max_leaf_nodes") => json!(5),
        (_, "max_bins") => json!(16),
        ("sk.ensemble.HistGradientBoostingRegressor", "loss") => json!("poisson"),
        // Models of a program are small.
        (_, "n_estimators") => json!(7),
        // Of labels 0 and 1 both can be the one that is looked for.
        ("sk.preprocessing.LabelBinarizer", "pos_label") => json!(3),
        ("sk.preprocessing.TargetEncoder", "target_type") => json!("multiclass"),
        (_, "neg_label") => json!(-1),
        (_, "pos_label") => json!(0),
        (_, "name") => json!("alpha"),
        (_, "X") => json!(samples()),
        _ => return None,
    })
}

/// A value of a parameter that a call must give.
fn needed(row: &str, param: &str) -> Json {
    // Regressions need positive numbers.
    let words = ["mean_", "median_", "max_", "d2_", "r2_", "explained_"];
    let is_regression =
        words.iter().any(|word| row.strip_prefix("sk.metrics.").is_some_and(|n| n.contains(word)));
    if let Some(value) = fitting(row, param) {
        return value;
    }
    let shifted = |by: f64| -> Json { (0..12).map(|at| json!(f64::from(at % 5) + by)).collect() };
    match param {
        "estimator" if row.contains('.') => member(row),
        "param_grid" | "param_distributions" if row.contains("Halving") => {
            json!({"o": {"fit_intercept": [true, false]}})
        }
        "param_grid" | "param_distributions" => json!({"o": {"alpha": [0.5, 1.0]}}),
        "transformers" | "transformer_list" => params(row)[param].clone(),
        "estimators" | "steps" => json!([{"t": ["a", member(row)]}]),
        "y_true" if is_regression => shifted(1.5),
        "y_pred" if is_regression => shifted(2.25),
        "y_true" | "y1" | "labels_true" => json!(labels()),
        "y_pred" | "y2" | "labels_pred" => labels()
            .iter()
            .enumerate()
            .map(|(at, label)| json!(if at < 3 { 1 - label } else { *label }))
            .collect(),
        "y_score" | "y_proba" | "pred_decision" => labels()
            .iter()
            .enumerate()
            .map(|(at, &label)| json!(0.3 + 0.04 * at as f64 * label as f64))
            .collect(),
        "x" => (0..12).collect(),
        "y" => json!(labels()),
        "beta" => json!(0.5),
        "arrays" => json!(labels()),
        other => panic!("{row} needs {other}"),
    }
}

/// The reply to a call of a row with these keywords beside what it needs. Estimators are fitted.
fn called(row: &str, params: &[Param], extra: &[(&str, Json)]) -> Json {
    called_in(&json!({}), row, params, extra)
}

/// As [`called`], in a context.
pub(super) fn called_in(context: &Json, row: &str, params: &[Param], extra: &[(&str, Json)]) -> Json {
    let mut keywords = chosen(row).as_object().cloned().unwrap_or_default();
    let mut positional = Vec::new();
    for param in params {
        if param.place == Place::Rest {
            positional.push(needed(row, param.name));
        } else if param.default.look().is_none() {
            keywords.insert(param.name.to_owned(), needed(row, param.name));
        }
    }
    for (name, value) in extra {
        keywords.insert((*name).to_owned(), value.clone());
    }
    let mut program = vec![json!(["r", row, positional, keywords])];
    let mut out = vec!["r"];
    if classes().contains(&row) || row == OF_SETS {
        let mut x = samples_of(row);
        if row.contains("random_projection") {
            // As many features as distances of twelve samples need.
            program.push(json!(["wide", "np.ones", [[12, 2200]]]));
            x = json!({"$": "wide"});
        }
        program.push(json!(["f", "sk.fit", [{"$": "r"}, x, target(row)]]));
        out.clear();
    }
    reply(&json!({"ctx": context, "in": inputs(), "prog": program, "out": out}))
}

/// Whether a call with all parameters at their defaults gives what the call without them does.
fn takes_all_defaults(row: &str, params: &[Param], bare: &Json) -> bool {
    let defaults = params.iter().filter_map(|param| Some((param, param.default.look()?)));
    let taken = defaults.filter(|(param, default)| param.has(default));
    let given: Vec<_> = taken.map(|(param, default)| (param.name, json_of(&default))).collect();
    let found = called(row, params, &given);
    found["ok"] == true && found["out"] == bare["out"]
}

/// The defaults of a row are given at once, and one by one in a long run, and where something is wrong with
/// one of them.
#[test]
fn each_parameter_is_taken_at_its_default_and_at_another_value() {
    let mut wrong = Vec::new();
    // Methods have a test for each class.
    for row in rows().filter(|row| row.name.matches('.').count() != 1) {
        let bare = called(row.name, row.params, &[]);
        if bare["ok"] != true {
            wrong.push(format!("{}: {}", row.name, bare["err"]));
            continue;
        }
        let has_defaults = !is_long() && takes_all_defaults(row.name, row.params, &bare);
        for param in row.params {
            let Some(default) = param.default.look() else { continue };
            let given = || called(row.name, row.params, &[(param.name, json_of(&default))]);
            let is_refused = !param.has(&default);
            if is_refused {
                let given = given();
                if given["err"]["class"] != "NotImplemented" {
                    wrong.push(format!("{}({}={default}) is not refused: {given}", row.name, param.name));
                }
            } else if !has_defaults {
                let given = given();
                if given["out"] != bare["out"] {
                    wrong.push(format!("{}({}={default}): {given}, {bare}", row.name, param.name));
                }
            }
            let kind = if let Made::Only(kind) = param.made { kind } else { param.kind };
            let fitting = fitting(row.name, param.name).filter(|_| param.made != Made::Default);
            // A parameter may have no other value here.
            let Some(other) = fitting.or_else(|| other_of(kind, &default)) else { continue };
            let mut extra = vec![(param.name, other.clone())];
            // Of two parameters neither is taken alone.
            if row.name.ends_with("OrdinalEncoder") {
                match param.name {
                    "handle_unknown" => extra.push(("unknown_value", json!(-1))),
                    "unknown_value" => extra.push(("handle_unknown", json!("use_encoded_value"))),
                    _ => {}
                }
            }
            // Samples that are drawn for a tree.
            let draws = |param: &&Param| param.name == "bootstrap" && param.made == Made::All;
            // A number of clusters, or a distance that tells it.
            let tells = |other: &str| row.params.iter().any(|param| param.name == other);
            if param.name == "distance_threshold" && tells("n_clusters") {
                extra.push(("n_clusters", Json::Null));
            }
            // Ward's linkage has one metric.
            if param.name == "metric" && tells("linkage") {
                extra.push(("linkage", json!("average")));
            }
            if param.name == "resource" {
                extra.push(("max_resources", json!(3)));
            }
            if param.name == "max_samples" && row.params.iter().any(|param| draws(&param)) {
                extra.push(("bootstrap", json!(true)));
            }
            let found = called(row.name, row.params, &extra);
            let (class, named) = (&found["err"]["class"], format!("'{}'", param.name));
            let as_it_should = if param.made == Made::Default {
                class == "NotImplemented" && found["err"]["msg"].as_str().unwrap().contains(&named)
            } else {
                found["ok"] == true
            };
            if !as_it_should {
                wrong.push(format!("{}({}={other}): {found}", row.name, param.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn values_outside_what_exists_here_are_not_implemented() {
    let mut seen = 0;
    for row in rows() {
        for param in row.params {
            let Made::Only(made) = param.made else { continue };
            let values = match param.kind {
                Kind::Choice(words) => words.iter().map(|word| Look::Text(word)).collect(),
                Kind::OneOf(kinds) => kinds.iter().flat_map(example).collect(),
                _ => Vec::new(),
            };
            for value in values.iter().filter(|value| !made.admits(value)) {
                seen += 1;
                let json = if let Look::List(_) = value { json!([0.5, 0.5]) } else { json_of(value) };
                let found = called(row.name, row.params, &[(param.name, json)]);
                assert_eq!(
                    found["err"]["class"], "NotImplemented",
                    "{}({}={value}): {found}",
                    row.name, param.name
                );
            }
        }
    }
    assert!(20 < seen, "{seen}");
}

/// Values of a kind.
fn example(kind: &Kind) -> Vec<Look<'static>> {
    match kind {
        Kind::Choice(words) => words.iter().map(|word| Look::Text(word)).collect(),
        Kind::Text => vec![Look::Text("other")],
        Kind::None => vec![Look::None],
        Kind::Real => vec![Look::Real(0.5)],
        Kind::Integer => vec![Look::Integer(1)],
        Kind::Array => vec![Look::List(vec![Look::Real(0.5), Look::Real(0.5)])],
        _ => Vec::new(),
    }
}
