//! Names of the features that transformers make, as scikit-learn 1.9.1 has them.

use super::names::members;
use super::{classes, error, is_of_labels, params, run, samples_of, target};
use serde_json::{Value as Json, json};

const METHOD: &str = "sk.get_feature_names_out";

#[test]
fn transformers_have_a_name_for_each_column() {
    for class in classes() {
        let (known, _) = members(class);
        let bare = class.rsplit('.').next().unwrap();
        let made = json!(["m", class, [], params(class)]);
        let fit = json!(["_", "sk.fit", [{"$": "m"}, samples_of(class), target(class)]]);
        let named = json!(["n", METHOD, [{"$": "m"}]]);
        if !known.contains(&"transform") || is_of_labels(class) {
            let lacks = format!("AttributeError: '{bare}' object has no attribute 'get_feature_names_out'");
            assert_eq!(error(json!([made, fit, named])), lacks);
            continue;
        }
        let before = error(json!([made, named]));
        assert!(before.starts_with(&format!("NotFittedError: This {bare} instance")), "{before}");
        let mapped = json!(["t", "sk.transform", [{"$": "m"}, samples_of(class)]]);
        let found = run(json!([made, fit, named, mapped]), json!(["n", "t"]));
        let names = found["n"]["t"].as_array().unwrap();
        // A line has one axis.
        let columns = found["t"]["arr"]["shape"][1].as_u64().unwrap_or(1);
        assert_eq!(names.len() as u64, columns, "{class}: {names:?}");
        assert!(names.iter().all(Json::is_string), "{class}: {names:?}");
    }
}

/// The names of the estimator `m` of some steps, after a fit to labels.
fn names_of(steps: &[Json], labels: &Json, given: &Json) -> Json {
    let mut program = steps.to_vec();
    program.push(json!(["_", "sk.fit", [{"$": "m"}, {"$": "x"}, labels]]));
    program.push(json!(["n", METHOD, [{"$": "m"}, given]]));
    run(json!(program), json!(["n"]))["n"]["t"].clone()
}

#[test]
fn names_are_those_of_scikit_learn() {
    let own = json!(["x0", "x1", "x2", "x3"]);
    let [scaler, bayes] = ["member_scaler", "member_bayes"].map(|name| json!({"$": name}));
    let members = json!([{"t": ["a", bayes]}, {"t": ["b", bayes]}]);
    let of = |class: &str, params: Json| vec![json!(["m", class, [], params])];
    let cases = [
        (of("sk.preprocessing.StandardScaler", json!({})), own.clone()),
        (of("sk.decomposition.PCA", json!({"n_components": 2})), json!(["pca0", "pca1"])),
        (
            of("sk.preprocessing.PolynomialFeatures", json!({"interaction_only": true})),
            json!(["1", "x0", "x1", "x2", "x3", "x0 x1", "x0 x2", "x0 x3", "x1 x2", "x1 x3", "x2 x3"]),
        ),
        (
            of("sk.ensemble.VotingClassifier", json!({"estimators": members})),
            json!(["votingclassifier_a", "votingclassifier_b"]),
        ),
        (
            of("sk.ensemble.VotingClassifier", json!({"estimators": members, "voting": "soft"})),
            json!([
                "votingclassifier_a0",
                "votingclassifier_a1",
                "votingclassifier_b0",
                "votingclassifier_b1"
            ]),
        ),
        (
            of("sk.ensemble.StackingClassifier", json!({"estimators": [members[0]], "passthrough": true})),
            json!(["stackingclassifier_a", "x0", "x1", "x2", "x3"]),
        ),
        (
            of("sk.compose.ColumnTransformer", params("sk.compose.ColumnTransformer")),
            json!(["a__x0", "remainder__x1", "remainder__x2", "remainder__x3"]),
        ),
        (
            of("sk.pipeline.FeatureUnion", params("sk.pipeline.FeatureUnion")),
            json!(["a__x0", "a__x1", "a__x2", "a__x3", "b__x0", "b__x1", "b__x2", "b__x3"]),
        ),
        (
            vec![
                json!(["p", "sk.decomposition.PCA", [1]]),
                json!(["m", "sk.pipeline.Pipeline", [[{"t": ["s", scaler]}, {"t": ["p", {"$": "p"}]}]]]),
            ],
            json!(["pca0"]),
        ),
    ];
    for (steps, expected) in cases {
        assert_eq!(names_of(&steps, &json!({"$": "y"}), &Json::Null), expected, "{steps:?}");
    }
    let three: Vec<usize> = (0..12).map(|row| row % 3).collect();
    let stack = of("sk.ensemble.StackingClassifier", json!({"estimators": [members[0]], "cv": 3}));
    let names = json!(["stackingclassifier_a0", "stackingclassifier_a1", "stackingclassifier_a2"]);
    assert_eq!(names_of(&stack, &json!(three), &Json::Null), names);
    let given = json!(["a", "b", "c", "d"]);
    let scaled = of("sk.preprocessing.StandardScaler", json!({}));
    assert_eq!(names_of(&scaled, &Json::Null, &given), given);
    let refused = |given: Json| {
        let fit = json!(["_", "sk.fit", [{"$": "m"}, {"$": "x"}]]);
        error(json!([scaled[0], fit, ["n", METHOD, [{"$": "m"}, given]]]))
    };
    assert_eq!(
        refused(json!(["a", "b", "c"])),
        "ValueError: input_features should have length equal to number of features (4), got 3"
    );
    assert!(refused(json!([1, 2, 3, 4])).starts_with("TypeError: "));
}
