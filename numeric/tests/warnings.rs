//! What NumPy warns of reaches the reply of a program however it runs, and can be ignored or made an error.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use tharsis_numeric::protocol::answer;

/// The reply to one step over these inputs.
fn reply(ctx: Value, inputs: Value, operation: &str, arguments: Value) -> Value {
    let program = json!([["r", operation, arguments, {}]]);
    answer(&json!({"ctx": ctx, "in": inputs, "prog": program, "out": ["r"]}), std::path::Path::new("."))
}

fn texts(reply: &Value) -> Vec<&str> {
    assert_eq!(reply["ok"], true, "{reply}");
    reply["warnings"].as_array().map_or(Vec::new(), |texts| texts.iter().filter_map(Value::as_str).collect())
}

#[test]
fn conditions_are_told_in_the_words_of_numpy_once_per_function() {
    let (x, y) = (json!({"$": "x"}), json!({"$": "y"}));
    let floats = json!({"x": {"lit": [1.0, 0.0, -1.0, 1.0, 0.0]}, "y": {"lit": [0.0, 0.0, 2.0, 0.0, 1.0]}});
    let cases = [
        (
            "np.divide",
            json!([x, y]),
            &["divide by zero encountered in divide", "invalid value encountered in divide"][..],
        ),
        (
            "np.floor_divide",
            json!([x, y]),
            &["divide by zero encountered in floor_divide", "invalid value encountered in floor_divide"],
        ),
        ("np.remainder", json!([x, y]), &["invalid value encountered in remainder"]),
        ("np.log", json!([x]), &["divide by zero encountered in log", "invalid value encountered in log"]),
        ("np.sqrt", json!([x]), &["invalid value encountered in sqrt"]),
        ("np.reciprocal", json!([x]), &["divide by zero encountered in reciprocal"]),
        ("np.arctanh", json!([x]), &["divide by zero encountered in arctanh"]),
        ("np.power", json!([y, -1.0]), &["divide by zero encountered in power"]),
        ("np.exp", json!([x]), &[]),
        ("np.add", json!([x, y]), &[]),
    ];
    for chunks in [json!("auto"), json!(1), json!(2)] {
        for mode in ["lazy", "eager"] {
            for (operation, arguments, expected) in &cases {
                let ctx = json!({"chunks": chunks, "mode": mode});
                let reply = reply(ctx, floats.clone(), operation, arguments.clone());
                let found: Vec<_> =
                    texts(&reply).iter().filter_map(|text| text.strip_prefix("RuntimeWarning: ")).collect();
                assert_eq!(&found, expected, "{operation} {mode} {chunks}");
            }
        }
    }
}

#[test]
fn infinite_and_nan_arguments_warn_of_nothing_that_they_bring() {
    let odd = json!({"x": {"lit": [{"f": "inf"}, {"f": "nan"}, {"f": "inf"}]}});
    for operation in ["np.log", "np.sqrt", "np.exp", "np.reciprocal", "np.cosh"] {
        assert_eq!(
            texts(&reply(json!({}), odd.clone(), operation, json!([{"$": "x"}]))),
            [""; 0],
            "{operation}"
        );
    }
    let sine = reply(json!({}), odd, "np.sin", json!([{"$": "x"}]));
    assert_eq!(texts(&sine), ["RuntimeWarning: invalid value encountered in sin"]);
}

#[test]
fn results_beyond_the_largest_number_and_integers_by_zero_are_told() {
    let large = reply(json!({}), json!({"x": {"lit": [1000.0, 1.0]}}), "np.exp", json!([{"$": "x"}]));
    assert_eq!(texts(&large), ["RuntimeWarning: overflow encountered in exp"]);
    let whole = json!({"x": {"lit": [7, 8], "dtype": "int16"}, "y": {"lit": [0, 2], "dtype": "int16"}});
    let quotient = reply(json!({}), whole, "np.floor_divide", json!([{"$": "x"}, {"$": "y"}]));
    assert_eq!(texts(&quotient), ["RuntimeWarning: divide by zero encountered in floor_divide"]);
    assert_eq!(quotient["out"]["r"]["arr"]["lit"], json!([0, 4]));
}

#[test]
fn conditions_can_be_ignored_or_raised() {
    let of = |errstate: Value| {
        let inputs = json!({"x": {"lit": [1.0, 0.0]}});
        reply(json!({"errstate": errstate}), inputs, "np.divide", json!([{"$": "x"}, 0.0]))
    };
    assert_eq!(texts(&of(json!("ignore"))), [""; 0]);
    assert_eq!(
        texts(&of(json!({"divide": "ignore"}))),
        ["RuntimeWarning: invalid value encountered in divide"]
    );
    assert_eq!(
        texts(&of(json!({"all": "ignore", "divide": "warn"}))),
        ["RuntimeWarning: divide by zero encountered in divide"]
    );
    let raised = of(json!({"invalid": "raise"}));
    assert_eq!(raised["err"]["class"], "FloatingPointError");
    assert_eq!(raised["err"]["msg"], "invalid value encountered in divide");
    assert_eq!(of(json!("shout"))["err"]["class"], "ValueError");
    assert_eq!(of(json!({"under": "warn"}))["err"]["class"], "ValueError");
}
