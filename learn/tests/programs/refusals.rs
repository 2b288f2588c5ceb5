//! Calls that are refused: arguments that do not bind, other kinds, unknown names.

use super::{error, inputs, reply, run};
use serde_json::json;

#[test]
fn calls_that_do_not_bind_have_the_texts_of_python() {
    let (m, x, y) = (json!({"$": "m"}), json!({"$": "x"}), json!({"$": "y"}));
    let ridge = |step: serde_json::Value| json!([["m", "sk.linear_model.Ridge", []], step]);
    let cases = [
        (
            json!([["m", "sk.linear_model.Ridge", [], {"alhpa": 1.0}]]),
            "Ridge.__init__() got an unexpected keyword argument 'alhpa'",
        ),
        (
            json!([["m", "sk.linear_model.Ridge", [1.0], {"alpha": 1.0}]]),
            "Ridge.__init__() got multiple values for argument 'alpha'",
        ),
        (
            json!([["m", "sk.linear_model.Ridge", [1.0, true]]]),
            "Ridge.__init__() takes from 1 to 2 positional arguments but 3 were given",
        ),
        (
            json!([["m", "sk.preprocessing.StandardScaler", [true]]]),
            "StandardScaler.__init__() takes 1 positional argument but 2 were given",
        ),
        (ridge(json!(["_", "sk.fit", [m, x]])), "Ridge.fit() missing 1 required positional argument: 'y'"),
        (ridge(json!(["_", "sk.fit", [m]])), "Ridge.fit() missing 1 required positional argument: 'X'"),
        (
            ridge(json!(["_", "sk.fit", [m, x, y], {"weights": x}])),
            "Ridge.fit() got an unexpected keyword argument 'weights'",
        ),
        (
            ridge(json!(["_", "sk.predict", [m, x, y]])),
            "Ridge.predict() takes 2 positional arguments but 3 were given",
        ),
        (
            json!([["r", "sk.metrics.fbeta_score", [y, y]]]),
            "fbeta_score() missing 1 required keyword-only argument: 'beta'",
        ),
        (
            json!([["m", "sk.preprocessing.MinMaxScaler", []], ["_", "sk.fit", [m, x], {"sample_weight": y}]]),
            "MinMaxScaler.fit() got an unexpected keyword argument 'sample_weight'",
        ),
        (
            json!([
                ["m", "sk.decomposition.PCA", [2]],
                ["_", "sk.fit", [m, x]],
                ["r", "sk.score", [m, x], {"sample_weight": y}],
            ]),
            "PCA.score() got an unexpected keyword argument 'sample_weight'",
        ),
    ];
    for (program, text) in cases {
        assert_eq!(error(program), format!("TypeError: {text}"));
    }
    let program = [
        json!(["m", "sk.linear_model.Ridge", []]),
        json!(["_", "sk.fit", [m, x, y]]),
        json!(["s", "sk.score", [m, x]]),
    ];
    assert_eq!(error(json!(program)), "TypeError: Ridge.score() missing 1 required positional argument: 'y'");
}

#[test]
fn wrong_kinds_have_the_texts_of_scikit_learn() {
    let cases = [
        (
            json!([["m", "sk.linear_model.Ridge", ["1"]]]),
            "ValueError: The 'alpha' parameter of Ridge must be a float or an array-like. Got '1' instead.",
        ),
        (
            json!([["m", "sk.linear_model.Ridge", [], {"fit_intercept": 1}]]),
            "ValueError: The 'fit_intercept' parameter of Ridge must be an instance of 'bool'. Got 1 instead.",
        ),
        (
            json!([["m", "sk.linear_model.Lasso", [], {"max_iter": 10.0}]]),
            "ValueError: The 'max_iter' parameter of Lasso must be an int or None. Got 10.0 instead.",
        ),
        (
            json!([["m", "sk.linear_model.Lasso", [], {"max_iter": -1}]]),
            "ValueError: The 'max_iter' parameter of Lasso must be an int in the range [1, inf). Got -1 instead.",
        ),
        (
            json!([["m", "sk.preprocessing.Normalizer", ["l3"]]]),
            "ValueError: The 'norm' parameter of Normalizer must be a str among {'l1', 'l2', 'max'}. Got 'l3' \
             instead.",
        ),
        (
            json!([["m", "sk.cluster.KMeans", [], {"random_state": -1}]]),
            "ValueError: The 'random_state' parameter of KMeans must be an int in the range [0, \
             4294967295] or None. Got -1 instead.",
        ),
        (
            json!([["r", "sk.predict", [{"$": "x"}, {"$": "x"}]]]),
            "ValueError: The 'estimator' parameter of predict must be an estimator. Got an array instead.",
        ),
        (
            json!([["m", "sk.linear_model.Ridge", []], ["_", "sk.fit", [{"$": "m"}, 3, {"$": "y"}]]]),
            "ValueError: The 'X' parameter of Ridge.fit must be an array-like. Got 3 instead.",
        ),
        (
            json!([["m", "sk.linear_model.Ridge", []], ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, null]]]),
            "ValueError: This Ridge estimator requires y to be passed, but the target y is None.",
        ),
        (
            json!([["m", "sk.linear_model.Ridge", []], ["r", "np.add", [{"$": "m"}, 1]]]),
            "TypeError: expected an array, found Object(Ridge())",
        ),
    ];
    for (program, text) in cases {
        assert_eq!(error(program), text);
    }
}

#[test]
fn what_does_not_exist_is_not_implemented() {
    let cases = [
        (
            json!([["m", "sk.linear_model.Ridge", [], {"positive": true}]]),
            "the value True of the parameter 'positive' of Ridge is not implemented",
        ),
        (
            json!([["m", "sk.linear_model.Ridge", [], {"solver": "sag"}]]),
            "the value 'sag' of the parameter 'solver' of Ridge is not implemented",
        ),
        (
            json!([["m", "sk.linear_model.Ridge", [[1.0, 2.0]]]]),
            "the value [1.0, 2.0] of the parameter 'alpha' of Ridge is not implemented",
        ),
        (
            json!([["m", "sk.decomposition.PCA", ["mle"]]]),
            "the value 'mle' of the parameter 'n_components' of PCA is not implemented",
        ),
        (
            json!([["m", "sk.linear_model.Rigde", []]]),
            "sk.linear_model.Rigde is not implemented; the nearest name is sk.linear_model.Ridge",
        ),
        (json!([["m", "sk.svm.SVC", []]]), "sk.svm.SVC is not implemented"),
        (
            json!([["r", "sk.metrics.accuracy_score", [{"$": "y"}, {"$": "y"}]], ["s", "sk.metrics.dcg_score", []]]),
            "sk.metrics.dcg_score is not implemented; the nearest name is sk.metrics.f1_score",
        ),
    ];
    for (program, text) in cases {
        assert_eq!(error(program), format!("NotImplemented: {text}"));
    }
    // An estimator is no result; its attributes are.
    let program = json!([["m", "sk.linear_model.Ridge", [], {"alpha": 2.0}]]);
    let found = reply(&json!({"prog": program, "out": ["m"]}));
    assert_eq!(found["err"]["msg"], "an object as a result: Ridge(alpha=2.0)");
}

#[test]
fn failures_name_their_steps() {
    let program = json!([
        ["m", "sk.linear_model.Ridge", []],
        ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]],
        ["r", "sk.predict", [{"$": "m"}, [[1.0, 2.0]]]],
    ]);
    let found = reply(&json!({"in": inputs(), "prog": program, "out": ["r"]}));
    assert_eq!((&found["err"]["step"], &found["err"]["op"]), (&json!(2), &json!("sk.predict")));
    assert_eq!(found["err"]["msg"], "X has 2 features, but Ridge is expecting 4 features as input.");
}

#[test]
fn a_fit_ends_at_the_time_limit_of_its_request() {
    let program = json!([
        ["m", "sk.linear_model.LogisticRegression", []],
        ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]],
    ]);
    let found = reply(&json!({"ctx": {"timeout_s": 0}, "in": inputs(), "prog": program, "out": []}));
    assert_eq!((&found["err"]["class"], &found["err"]["step"]), (&json!("Timeout"), &json!(1)), "{found}");
}

#[test]
fn a_fit_takes_no_more_than_the_memory_of_its_request() {
    let program = json!([
        ["x", "np.zeros", [[4000, 400]]],
        ["m", "sk.linear_model.Ridge", []],
        ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "x"}]],
    ]);
    let found = reply(&json!({"ctx": {"memory": "64KiB"}, "prog": program, "out": []}));
    assert_eq!(found["err"]["class"], "MemoryError", "{found}");
}

#[test]
fn parameters_are_attributes() {
    let program = json!([
        ["m", "sk.linear_model.Ridge", [], {"alpha": 2.0}],
        ["a", "sk.attr", [{"$": "m"}, "alpha"]],
        ["s", "sk.attr", [{"$": "m"}, "solver"]],
    ]);
    assert_eq!(run(program, json!(["a", "s"])), json!({"a": 2.0, "s": "auto"}));
}

#[test]
fn of_several_wrong_names_the_same_one_is_told() {
    let program =
        json!([["m", "sk.linear_model.Ridge", [], {"e": 1, "d": 2, "c": 3, "b": 4, "a": 5, "f": 6}]]);
    let first = error(program.clone());
    assert!(first.starts_with("TypeError: Ridge.__init__() got an unexpected keyword argument"), "{first}");
    for _ in 0..40 {
        assert_eq!(error(program.clone()), first);
    }
}

#[test]
fn labels_that_are_texts_are_not_implemented() {
    let (texts, x) = (json!(["a", "b", "a"]), json!([[1.0], [2.0], [3.0]]));
    let programs = [
        json!([["r", "sk.metrics.accuracy_score", [texts, texts]]]),
        json!([["r", "sk.metrics.f1_score", [[0, 1, 1], texts]]]),
        json!([["m", "sk.naive_bayes.GaussianNB", []], ["_", "sk.fit", [{"$": "m"}, x, texts]]]),
        json!([["r", "sk.model_selection.train_test_split", [texts]]]),
        json!([["r", "sk.model_selection.train_test_split", [x], {"stratify": texts}]]),
    ];
    for program in programs {
        let found = error(program);
        assert!(found.starts_with("NotImplemented: labels and other elements that are texts"), "{found}");
    }
}

#[test]
fn ranges_are_those_of_scikit_learn() {
    let cases = [
        (
            json!([["m", "sk.preprocessing.MinMaxScaler", [[0, 1]]]]),
            "ValueError: The 'feature_range' parameter of MinMaxScaler must be an instance of 'tuple'. Got [0, 1] \
             instead.",
        ),
        (
            json!([["m", "sk.cluster.KMeans", [], {"random_state": 4_294_967_296u64}]]),
            "ValueError: The 'random_state' parameter of KMeans must be an int in the range [0, 4294967295] or \
             None. Got 4294967296 instead.",
        ),
        (
            json!([["r", "sk.model_selection.train_test_split", [[1, 2, 3]], {"random_state": 4_294_967_296u64}]]),
            "ValueError: The 'random_state' parameter of train_test_split must be an int in the range [0, \
             4294967295] or None. Got 4294967296 instead.",
        ),
    ];
    for (program, text) in cases {
        assert_eq!(error(program), text);
    }
}

#[test]
fn whole_numbers_beyond_int64_are_no_smaller_ones() {
    let large = json!(["u", "np.add", [[u64::MAX, u64::MAX - 1], 0]]);
    let params = json!({"labels": {"$": "u"}});
    let labels = json!([large, ["r", "sk.metrics.confusion_matrix", [{"$": "y"}, {"$": "y"}], params]]);
    let text = "labels has 18446744073709551615: labels are whole numbers within int64";
    assert_eq!(error(labels), format!("NotImplemented: {text}"));
    let columns = json!([
        large,
        ["c", "sk.compose.ColumnTransformer", [[{"t": ["a", {"$": "member_scaler"}, {"$": "u"}]}]]],
        ["_", "sk.fit", [{"$": "c"}, {"$": "x"}]],
    ]);
    assert_eq!(error(columns), "ValueError: all features must be in [0, 3] or [-4, 0]");
    // Penalties are floats.
    let grid = json!([
        large,
        ["m", "sk.linear_model.Ridge", []],
        ["g", "sk.model_selection.GridSearchCV", [{"$": "m"}, {"o": {"alpha": {"$": "u"}}}], {"cv": 2}],
        ["_", "sk.fit", [{"$": "g"}, {"$": "x"}, {"$": "y"}]],
        ["best", "sk.attr", [{"$": "g"}, "best_params_"]],
    ]);
    let found = run(grid, json!(["best"]));
    assert_eq!(found["best"]["o"][0][1].as_f64(), Some(u64::MAX as f64), "{found}");
}
