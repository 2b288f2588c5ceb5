//! Estimators that choose among others, as members of those that hold them.

use super::{error, inputs, labels, reply, run, samples};
use serde_json::{Value as Json, json};
use tharsis_learn::AnyClassifier;
use tharsis_learn::compose::{ColumnTransformer, Remainder};
use tharsis_learn::ensemble::{BaggingClassifier, StackingClassifier};
use tharsis_learn::feature_selection::RFE;
use tharsis_learn::linear_model::{LogisticRegression, Ridge};
use tharsis_learn::model_selection::{
    GridSearchCV, HalvingGridSearchCV, MinResources, ParamGrid, Validation,
};
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::StandardScaler;
use tharsis_numeric::Tensor;

fn numbers(result: &Json) -> Vec<f64> {
    match result {
        Json::Array(parts) => parts.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

/// A step that makes a search or an elimination around the estimator `m`.
fn around(class: &str, param: &str) -> Json {
    match class {
        "sk.model_selection.GridSearchCV" => {
            json!(["s", class, [{"$": "m"}, {"o": {param: [0.5, 2.0]}}], {"cv": 2}])
        }
        _ => json!(["s", class, [{"$": "m"}]]),
    }
}

const CHOOSING: [&str; 2] = ["sk.model_selection.GridSearchCV", "sk.feature_selection.RFE"];

#[test]
fn what_chooses_among_regressors_is_a_regressor() {
    for class in CHOOSING {
        let of = |holder: &str, arguments: Json, params: Json| {
            json!([
                ["m", "sk.linear_model.Ridge", []],
                around(class, "alpha"),
                ["h", holder, arguments, params],
                ["_", "sk.fit", [{"$": "h"}, {"$": "x"}, {"$": "y"}]],
                ["r", "sk.predict", [{"$": "h"}, {"$": "x"}]],
            ])
        };
        let named = json!([[{"t": ["a", {"$": "s"}]}]]);
        let holders = [
            ("sk.ensemble.VotingRegressor", named.clone(), json!({})),
            ("sk.ensemble.StackingRegressor", named.clone(), json!({"cv": 2})),
            ("sk.ensemble.BaggingRegressor", json!([{"$": "s"}, 2]), json!({})),
            (
                "sk.model_selection.GridSearchCV",
                json!([{"$": "s"}, {"o": {"estimator__alpha": [1.0]}}]),
                json!({"cv": 2}),
            ),
            ("sk.feature_selection.SequentialFeatureSelector", json!([{"$": "s"}]), json!({"cv": 2})),
        ];
        for (holder, arguments, params) in holders {
            let mut program = of(holder, arguments, params);
            if holder.ends_with("Selector") {
                program.as_array_mut().unwrap().pop();
            }
            // It begins with one feature, of which RFE has none to leave out, in scikit-learn as well.
            if holder.ends_with("Selector") && class.ends_with("RFE") {
                assert!(error(program).contains("a minimum of 2 is required by RFE"));
                continue;
            }
            let found = reply(&json!({"in": inputs(), "prog": program, "out": []}));
            assert_eq!(found["ok"], true, "{holder} of {class}: {found}");
        }
        let bare = class.rsplit('.').next().unwrap();
        let refused = error(of("sk.ensemble.VotingClassifier", named, json!({})));
        assert_eq!(refused, format!("ValueError: The estimator {bare} should be a classifier."));
        // As in scikit-learn, a regressor has no methods of classes.
        let program = json!([
            ["m", "sk.linear_model.Ridge", []],
            around(class, "alpha"),
            ["_", "sk.fit", [{"$": "s"}, {"$": "x"}, {"$": "y"}]],
            ["r", "sk.predict_proba", [{"$": "s"}, {"$": "x"}]],
        ]);
        assert_eq!(
            error(program),
            format!("AttributeError: '{bare}' object has no attribute 'predict_proba'")
        );
    }
}

#[test]
fn members_may_be_left_out() {
    let program = json!([
        ["m", "sk.linear_model.Ridge", []],
        ["v", "sk.ensemble.VotingRegressor", [[{"t": ["a", {"$": "m"}]}, {"t": ["b", "drop"]}]], {"weights": [2.0, 1.0]}],
        ["_", "sk.fit", [{"$": "v"}, {"$": "x"}, {"$": "y"}]],
        ["r", "sk.predict", [{"$": "v"}, {"$": "x"}]],
        ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]],
        ["own", "sk.predict", [{"$": "m"}, {"$": "x"}]],
    ]);
    let found = run(program, json!(["r", "own"]));
    assert_eq!(found["r"], found["own"]);
}

#[test]
fn what_chooses_among_classifiers_tells_its_classes() {
    let x = Tensor::from_elements(&[12, 4], &samples().concat());
    let y = Tensor::from_elements(&[12], &labels());
    let line = LogisticRegression::new;
    for class in CHOOSING {
        let any = if class.ends_with("RFE") {
            AnyClassifier::new(RFE::new(line()))
        } else {
            let grid = ParamGrid::new().values("C", [0.5, 2.0]);
            let validation = Validation { cv: 2.into(), ..Validation::default() };
            AnyClassifier::new(GridSearchCV::new(line(), grid).validation(validation))
        };
        let program = json!([
            ["m", "sk.linear_model.LogisticRegression", []],
            around(class, "C"),
            ["stack", "sk.ensemble.StackingClassifier", [[{"t": ["a", {"$": "s"}]}]], {"cv": 2}],
            ["_", "sk.fit", [{"$": "stack"}, {"$": "x"}, {"$": "y"}]],
            ["told", "sk.transform", [{"$": "stack"}, {"$": "x"}]],
            ["bag", "sk.ensemble.BaggingClassifier", [{"$": "s"}, 3], {"random_state": 5}],
            ["_", "sk.fit", [{"$": "bag"}, {"$": "x"}, {"$": "y"}]],
            ["chances", "sk.predict_proba", [{"$": "bag"}, {"$": "x"}]],
            ["_", "sk.fit", [{"$": "s"}, {"$": "x"}, {"$": "y"}]],
            ["classes", "sk.attr", [{"$": "s"}, "classes_"]],
        ]);
        let found = run(program, json!(["told", "chances", "classes"]));
        assert_eq!(found["classes"]["arr"]["lit"], json!([0, 1]));
        let stack = StackingClassifier::new().any("a", any.clone()).cv(2).fit(&x, &y, ..).unwrap();
        let told = numbers(&found["told"]["arr"]["lit"]);
        // Probabilities, and no labels.
        assert!(told.iter().all(|&chance| 0.0 < chance && chance < 1.0), "{class}: {told:?}");
        assert_eq!(told, stack.transform(&x).ravel().to_vec::<f64>().unwrap(), "{class}");
        let bag = BaggingClassifier::new().any(any).n_estimators(3).random_state(5).fit(&x, &y, ..).unwrap();
        let chances = bag.predict_proba(&x).ravel().to_vec::<f64>().unwrap();
        assert_eq!(numbers(&found["chances"]["arr"]["lit"]), chances, "{class}");
    }
}

#[test]
fn pipelines_are_those_of_rust() {
    let x = Tensor::from_elements(&[12, 4], &samples().concat());
    let y = Tensor::from_elements(&[12], &labels());
    let program = json!([
        ["s", "sk.preprocessing.StandardScaler", []],
        ["m", "sk.linear_model.LogisticRegression", []],
        ["p", "sk.pipeline.Pipeline", [[{"t": ["scale", {"$": "s"}]}, {"t": ["none", "passthrough"]}, {"t": ["line", {"$": "m"}]}]]],
        ["_", "sk.fit", [{"$": "p"}, {"$": "x"}, {"$": "y"}]],
        ["chances", "sk.predict_proba", [{"$": "p"}, {"$": "x"}]],
        ["score", "sk.score", [{"$": "p"}, {"$": "x"}, {"$": "y"}]],
        ["classes", "sk.attr", [{"$": "p"}, "classes_"]],
        ["g", "sk.model_selection.GridSearchCV", [{"$": "p"}, {"o": {"line__C": [0.5, 2.0]}}], {"cv": 2}],
        ["_", "sk.fit", [{"$": "g"}, {"$": "x"}, {"$": "y"}]],
        ["best", "sk.attr", [{"$": "g"}, "best_score_"]],
    ]);
    let found = run(program, json!(["chances", "score", "classes", "best"]));
    let pipeline =
        Pipeline::new().step("scale", StandardScaler::new()).last("line", LogisticRegression::new());
    let model = pipeline.fit(&x, &y, ..).unwrap();
    let chances = model.predict_proba(&x).ravel().to_vec::<f64>().unwrap();
    assert_eq!(numbers(&found["chances"]["arr"]["lit"]), chances);
    assert_eq!(found["score"], model.score(&x, &y, ..).unwrap());
    assert_eq!(found["classes"]["arr"]["lit"], json!([0, 1]));
    let grid = ParamGrid::new().values("line__C", [0.5, 2.0]);
    let validation = Validation { cv: 2.into(), ..Validation::default() };
    let search = GridSearchCV::new(pipeline, grid).validation(validation).fit(&x, &y, ..).unwrap();
    assert_eq!(found["best"], search.best_score);
    // Maps alone, of which no targets are needed.
    let program = json!([
        ["s", "sk.preprocessing.StandardScaler", []],
        ["p", "sk.pipeline.Pipeline", [[{"t": ["a", {"$": "s"}]}, {"t": ["b", {"$": "s"}]}]]],
        ["r", "sk.fit_transform", [{"$": "p"}, {"$": "x"}]],
    ]);
    let found = run(program, json!(["r"]));
    let maps = Pipeline::new().step("a", StandardScaler::new()).last("b", StandardScaler::new());
    let made = maps.fit_unsupervised(&x, ..).unwrap().transform(&x).ravel().to_vec::<f64>().unwrap();
    assert_eq!(numbers(&found["r"]["arr"]["lit"]), made);
    let wrong = json!([
        ["m", "sk.linear_model.Ridge", []],
        ["p", "sk.pipeline.Pipeline", [[{"t": ["a", {"$": "m"}]}, {"t": ["b", {"$": "m"}]}]]],
    ]);
    assert!(error(wrong).starts_with("TypeError: All intermediate steps should be transformers"));
}

#[test]
fn searches_by_halving_are_those_of_rust() {
    let program = json!([
        ["m", "sk.linear_model.Ridge", []],
        ["g", "sk.model_selection.HalvingGridSearchCV", [{"$": "m"}, {"o": {"alpha": [0.1, 1.0, 10.0]}}],
            {"cv": 2, "factor": 2, "min_resources": 6, "random_state": 3}],
        ["_", "sk.fit", [{"$": "g"}, {"$": "x"}, {"$": "y"}]],
        ["r", "sk.predict", [{"$": "g"}, {"$": "x"}]],
        ["best", "sk.attr", [{"$": "g"}, "best_score_"]],
        ["table", "sk.attr", [{"$": "g"}, "cv_results_"]],
        ["rounds", "sk.attr", [{"$": "g"}, "n_resources_"]],
    ]);
    let found = run(program, json!(["r", "best", "table", "rounds"]));
    let x = Tensor::from_elements(&[12, 4], &samples().concat());
    let y = Tensor::from_elements(&[12], &labels());
    let grid = ParamGrid::new().values("alpha", [0.1, 1.0, 10.0]);
    let validation = Validation { cv: 2.into(), ..Validation::default() };
    let search = HalvingGridSearchCV::new(Ridge::new(), grid).validation(validation).factor(2.0);
    let model = search.min_resources(MinResources::Count(6)).random_state(3).fit(&x, &y, ..).unwrap();
    assert_eq!(numbers(&found["r"]["arr"]["lit"]), model.predict(&x).to_vec::<f64>().unwrap());
    assert_eq!(found["best"], model.search.best_score);
    assert_eq!(found["rounds"]["arr"]["lit"], json!([6, 12]));
    let column = |name: &str| {
        let entries = found["table"]["o"].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry[0] == name).unwrap_or_else(|| panic!("{name}"));
        &entry[1]["arr"]
    };
    // They are whole numbers, as in scikit-learn: rounds are places.
    for (name, expected) in [("iter", json!([0, 0, 0, 1, 1])), ("n_resources", json!([6, 6, 6, 12, 12]))] {
        assert_eq!((&column(name)["dtype"], &column(name)["lit"]), (&json!("<i8"), &expected), "{name}");
    }
    assert_eq!(numbers(&column("mean_test_score")["lit"]), model.search.cv_results.mean_test_score.to_vec());
    let refused = json!([
        ["m", "sk.linear_model.Ridge", []],
        ["g", "sk.model_selection.HalvingGridSearchCV", [{"$": "m"}, 3]],
    ]);
    assert_eq!(
        error(refused),
        "ValueError: The 'param_grid' parameter of HalvingGridSearchCV must be an instance of 'dict' or an \
         instance of 'list'. Got 3 instead."
    );
}

#[test]
fn transformers_of_columns_are_those_of_rust() {
    let of = |columns: Json| {
        json!([
            ["s", "sk.preprocessing.StandardScaler", []],
            ["c", "sk.compose.ColumnTransformer", [columns], {"remainder": "passthrough"}],
            ["r", "sk.fit_transform", [{"$": "c"}, {"$": "x"}]],
        ])
    };
    let found = run(
        of(json!([
            {"t": ["a", {"$": "s"}, [0, -1]]},
            {"t": ["b", "passthrough", [true, false, false, false]]},
            {"t": ["c", "drop", [1]]},
            {"t": ["d", "passthrough", {"s": [3, null, -2]}]},
        ])),
        json!(["r"]),
    );
    let x = Tensor::from_elements(&[12, 4], &samples().concat());
    let columns = ColumnTransformer::new()
        .part("a", StandardScaler::new(), [0, -1])
        .passthrough("b", [true, false, false, false])
        .dropped("c", [1])
        .passthrough("d", [3, 1])
        .remainder(Remainder::passthrough());
    let made = columns.fit(&x, ..).unwrap().transform(&x);
    assert_eq!(made.shape().unwrap(), [12, 6]);
    assert_eq!(numbers(&found["r"]["arr"]["lit"]), made.ravel().to_vec::<f64>().unwrap());
    let named = error(of(json!([{"t": ["a", {"$": "s"}, ["width"]]}])));
    assert!(named.starts_with("ValueError: Specifying the columns using strings is only"), "{named}");
    let one = error(of(json!([{"t": ["a", {"$": "s"}, 0]}])));
    assert!(one.starts_with("NotImplemented: one column"), "{one}");
    let other = error(of(json!([{"t": ["a", {"$": "s"}]}])));
    assert!(
        other.starts_with("ValueError: 'transformers' should be a list of tuples of 3 elements"),
        "{other}"
    );
    let halves = error(of(json!([{"t": ["a", {"$": "s"}, [0.5]]}])));
    assert!(halves.starts_with("ValueError: No valid specification of the columns."), "{halves}");
}

#[test]
fn parts_of_unions_have_names_of_their_own() {
    let of = |second: Json| {
        json!([
            ["s", "sk.preprocessing.StandardScaler", []],
            ["u", "sk.pipeline.FeatureUnion", [[{"t": ["a", {"$": "s"}]}, {"t": [second, "drop"]}]]],
            ["r", "sk.fit_transform", [{"$": "u"}, {"$": "x"}]],
        ])
    };
    assert_eq!(run(of(json!("b")), json!(["r"]))["r"]["arr"]["shape"], json!([12, 4]));
    let twice = error(of(json!("a")));
    assert!(twice.starts_with("ValueError: Names provided are not unique"), "{twice}");
}

#[test]
fn features_of_nets_are_chosen_by_the_part_that_was_chosen() {
    let threshold = |ratios: Json| {
        let program = json!([
            ["m", "sk.linear_model.ElasticNetCV", [], {"l1_ratio": ratios}],
            ["s", "sk.feature_selection.SelectFromModel", [{"$": "m"}]],
            ["_", "sk.fit", [{"$": "s"}, {"$": "x"}, {"$": "y"}]],
            ["r", "sk.attr", [{"$": "s"}, "threshold_"]],
        ]);
        run(program, json!(["r"]))["r"].as_f64().unwrap()
    };
    for ratios in [json!(1.0), json!([0.999_995, 1.0])] {
        assert_eq!(threshold(ratios), 1e-5);
    }
    assert_ne!(threshold(json!(0.5)), 1e-5);
}
