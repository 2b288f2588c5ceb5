//! Sets of labels in programs, with the answers of scikit-learn 1.9.1.

use super::{OF_SETS, error, inputs, reply};
use serde_json::{Value as Json, json};

#[test]
fn sets_are_rows_and_rows_are_sets() {
    let m = json!({"$": "m"});
    let program = json!([
        ["m", OF_SETS, []],
        ["t", "sk.fit_transform", [m, [[7, 3, 7], [], [5]]]],
        ["c", "sk.attr", [m, "classes_"]],
        ["i", "sk.inverse_transform", [m, {"$": "t"}]],
        ["u", "sk.transform", [m, [[5, 10, 9], [3]]]],
        ["given", OF_SETS, [], {"classes": [7, 4, 3]}],
        ["_", "sk.fit", [{"$": "given"}, []]],
        ["g", "sk.transform", [{"$": "given"}, [[3, 7]]]],
    ]);
    let found = reply(&json!({"in": inputs(), "prog": program, "out": ["t", "c", "i", "u", "g"]}));
    assert_eq!(found["ok"], true, "{found}");
    let out = &found["out"];
    assert_eq!(out["t"]["arr"]["lit"], json!([[1, 0, 1], [0, 0, 0], [0, 1, 0]]));
    assert_eq!(out["c"]["arr"]["lit"], json!([3, 5, 7]));
    assert_eq!(out["i"], json!({"t": [{"t": [3, 7]}, {"t": []}, {"t": [5]}]}));
    assert_eq!(out["u"]["arr"]["lit"], json!([[0, 1, 0], [1, 0, 0]]));
    assert_eq!(out["g"]["arr"]["lit"], json!([[1, 0, 1]]));
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("UserWarning: unknown class(es) [10, 9] will be ignored"), "{warnings}");
}

#[test]
fn what_is_no_set_of_labels_is_refused() {
    let of = |method: &str, x: Json| {
        let fit = json!(["_", "sk.fit", [{"$": "m"}, [[1, 2], [3]]]]);
        error(json!([["m", OF_SETS, []], fit, ["r", method, [{"$": "m"}, x]]]))
    };
    for (method, x, text) in [
        ("sk.fit", json!([1, 2]), "TypeError: "),
        ("sk.fit", json!({"$": "x"}), "NotImplemented: "),
        ("sk.transform", json!([["a"]]), "NotImplemented: "),
        ("sk.transform", json!([[0.5]]), "NotImplemented: "),
        ("sk.inverse_transform", json!([[0, 1]]), "ValueError: Expected indicator for 3 classes, but got 2"),
        (
            "sk.predict",
            json!([[1]]),
            "AttributeError: 'MultiLabelBinarizer' object has no attribute 'predict'",
        ),
        ("sk.attr", json!("n_features_in_"), "AttributeError: "),
    ] {
        let found = of(method, x);
        assert!(found.starts_with(text), "{method}: {found}");
    }
    let twice = error(json!([["m", OF_SETS, [], {"classes": [1, 1]}], ["_", "sk.fit", [{"$": "m"}, []]]]));
    assert!(twice.starts_with("ValueError: The classes argument contains duplicate classes."), "{twice}");
    let before = error(json!([["m", OF_SETS, []], ["r", "sk.transform", [{"$": "m"}, []]]]));
    assert!(before.starts_with("NotFittedError: This MultiLabelBinarizer instance"), "{before}");
    let weighted = json!(["_", "sk.fit", [{"$": "m"}, [[1]]], {"sample_weight": [1.0]}]);
    let weighted = error(json!([["m", OF_SETS, []], weighted]));
    assert!(weighted.starts_with("TypeError: MultiLabelBinarizer.fit() got an unexpected"), "{weighted}");
    // Steps of pipelines map arrays.
    let steps = json!([{"t": ["a", {"$": "m"}]}, {"t": ["b", {"$": "member_ridge"}]}]);
    let piped = error(json!([
        ["m", OF_SETS, []],
        ["p", "sk.pipeline.Pipeline", [steps]],
        ["_", "sk.fit", [{"$": "p"}, {"$": "x"}, {"$": "y"}]],
    ]));
    assert!(piped.starts_with("ValueError: MultiLabelBinarizer takes a list of labels"), "{piped}");
}

/// 10 000 sets of as many labels would be 800 MB.
#[test]
fn rows_that_do_not_fit_are_refused() {
    let sets: Vec<[i64; 1]> = (0..10_000).map(|label| [label]).collect();
    let program = json!([["m", OF_SETS, []], ["r", "sk.fit_transform", [{"$": "m"}, sets]]]);
    let found = reply(&json!({"ctx": {"memory": 100_000_000}, "in": {}, "prog": program, "out": ["r"]}));
    assert_eq!(found["err"]["class"], "MemoryError", "{found}");
}
