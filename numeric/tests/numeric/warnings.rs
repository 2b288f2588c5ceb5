//! NumPy's warnings reach the reply of a program however it runs, and can be ignored or made an error.

use serde_json::{Value, json};
use tharsis_numeric::errstate::{ErrState, Reaction, errstate};
use tharsis_numeric::protocol::answer;
use tharsis_numeric::{ones, zeros};

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

/// A function, its arguments, and the warnings of NumPy 2.4.6.
type Row = (&'static str, &'static [&'static [f64]], &'static [&'static str]);

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

const ARITHMETIC: &[Row] = &[
    ("np.add", &[&[INF, 1.0], &[-INF, 2.0]], &["invalid value encountered in add"]),
    ("np.add", &[&[1e308], &[1e308]], &["overflow encountered in add"]),
    ("np.add", &[&[NAN], &[INF]], &[]),
    ("np.subtract", &[&[INF], &[INF]], &["invalid value encountered in subtract"]),
    ("np.subtract", &[&[-1e308], &[1e308]], &["overflow encountered in subtract"]),
    ("np.multiply", &[&[0.0], &[INF]], &["invalid value encountered in multiply"]),
    ("np.multiply", &[&[1e200], &[1e200]], &["overflow encountered in multiply"]),
    ("np.multiply", &[&[NAN], &[0.0]], &[]),
    ("np.multiply", &[&[1e-200], &[1e-200]], &[]),
    ("np.square", &[&[1e200]], &["overflow encountered in square"]),
    ("np.sum", &[&[1e308, 1e308]], &["overflow encountered in reduce"]),
    ("np.sum", &[&[INF, -INF]], &["invalid value encountered in reduce"]),
    ("np.sum", &[&[INF, 1.0]], &[]),
    ("np.sum", &[&[NAN, INF]], &[]),
    ("np.prod", &[&[1e200, 1e200]], &["overflow encountered in reduce"]),
    ("np.prod", &[&[0.0, INF]], &["invalid value encountered in reduce"]),
    ("np.prod", &[&[INF, 2.0]], &[]),
    ("np.mean", &[&[INF, -INF]], &["invalid value encountered in reduce"]),
    ("np.nansum", &[&[NAN, 1e308, 1e308]], &["overflow encountered in reduce"]),
    ("np.max", &[&[NAN, INF]], &[]),
    ("np.isfinite", &[&[NAN, INF]], &[]),
    ("np.negative", &[&[INF, NAN]], &[]),
    ("np.greater", &[&[NAN, INF], &[1.0, NAN]], &[]),
    ("np.sign", &[&[NAN, 1.0]], &[]),
    ("np.maximum", &[&[NAN, INF], &[1.0, NAN]], &[]),
    ("np.floor", &[&[NAN, INF]], &[]),
];

fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { json!({"f": x.to_string().to_lowercase()}) }
}

fn literal(row: &[f64]) -> Value {
    json!({"lit": row.iter().map(|&x| number(x)).collect::<Vec<_>>(), "dtype": "float64"})
}

#[test]
fn plain_arithmetic_and_reductions_warn_as_numpy_does() {
    for chunks in [json!("auto"), json!(1)] {
        for (operation, arguments, expected) in ARITHMETIC {
            let mut inputs = json!({});
            let names: Vec<Value> = arguments
                .iter()
                .zip(["x", "y"])
                .map(|(row, name)| {
                    inputs[name] = literal(row);
                    json!({ "$": name })
                })
                .collect();
            let reply = reply(json!({"chunks": chunks}), inputs, operation, json!(names));
            let found: Vec<_> =
                texts(&reply).iter().filter_map(|text| text.strip_prefix("RuntimeWarning: ")).collect();
            assert_eq!(&found, expected, "{operation} {arguments:?} {chunks}");
        }
    }
}

/// Sums of float32 are computed in float64: their overflow is noticed only when they are narrowed.
#[test]
fn an_overflow_of_a_narrow_reduction_is_the_reductions() {
    for (operation, chunks) in [("np.sum", 1), ("np.sum", 3), ("np.prod", 1), ("np.prod", 3)] {
        let x = json!({"lit": [3e38, 3e38, 2.0], "dtype": "float32"});
        let reply = reply(json!({"chunks": chunks}), json!({"x": x}), operation, json!([{"$": "x"}]));
        assert_eq!(texts(&reply), ["RuntimeWarning: overflow encountered in reduce"], "{operation} {chunks}");
    }
    let rows = json!({"x": {"lit": [[3e38, 3e38], [1.0, 2.0]], "dtype": "float32"}});
    let sums = reply(json!({}), rows, "np.sum", json!([{"$": "x"}, 1]));
    assert_eq!(texts(&sums), ["RuntimeWarning: overflow encountered in reduce"]);
}

#[test]
fn integers_that_stand_for_no_float_are_told() {
    let warned = |dtype: &str, x: f64| {
        let rest = [x, 1.0, 2.0, 3.0, 4.0];
        let arguments = json!([{"$": "x"}, {"dt": dtype}]);
        !texts(&reply(json!({}), json!({"x": literal(&rest)}), "np.astype", arguments)).is_empty()
    };
    // From NumPy 2.4.6 on x86-64.
    let cases = [
        ("int8", &[NAN, INF, 3e9, -3e9, 1e19][..], &[-1.0, 300.0][..]),
        ("int32", &[NAN, -INF, 3e9, -3e9], &[-1.0, 300.0]),
        ("int64", &[NAN, INF, 1e19, -1e19, 1e300], &[-1.0, 3e9, -3e9]),
        ("uint8", &[NAN, 3e9, -3e9], &[-1.0, 300.0]),
        ("uint32", &[NAN, INF, 5e9, -3e9], &[-1.0, 300.0, 3e9]),
        ("uint64", &[NAN, INF, -1e19, 1e20], &[-1.0, 3e9, 1e19]),
        ("float32", &[1e300], &[NAN, INF, 3e9]),
    ];
    for (dtype, invalid, valid) in cases {
        invalid.iter().for_each(|&x| assert!(warned(dtype, x), "{dtype} {x}"));
        valid.iter().for_each(|&x| assert!(!warned(dtype, x), "{dtype} {x}"));
    }
}

#[test]
fn operations_in_one_loop_are_told_apart() {
    let run = |x: f64, first: &str, second: &str, by: [f64; 2]| {
        let program = json!([
            ["a", first, [{"$": "x"}, number(by[0])], {}],
            ["b", second, [{"$": "a"}, number(by[1])], {}],
            ["r", "np.sum", [{"$": "b"}], {}],
        ]);
        let inputs = json!({"x": literal(&[x, 1.0, 2.0])});
        let reply = answer(&json!({"in": inputs, "prog": program, "out": ["r"]}), std::path::Path::new("."));
        texts(&reply).join("; ").replace("RuntimeWarning: ", "")
    };
    assert_eq!(run(1e308, "np.add", "np.multiply", [1e308, 0.5]), "overflow encountered in add");
    assert_eq!(run(1e308, "np.add", "np.multiply", [1.0, 3.0]), "overflow encountered in multiply");
    assert_eq!(run(INF, "np.multiply", "np.add", [2.0, -INF]), "invalid value encountered in add");
    assert_eq!(run(1e308, "np.multiply", "np.add", [1.0, 1.0]), "");
    assert_eq!(run(NAN, "np.multiply", "np.add", [INF, 1.0]), "");
}

#[test]
fn scans_warn_whole_or_in_chunks() {
    for chunks in [json!("auto"), json!(1)] {
        let of = |row: &[f64]| {
            let inputs = json!({"x": literal(row)});
            let reply = reply(json!({"chunks": chunks}), inputs, "np.cumsum", json!([{"$": "x"}]));
            texts(&reply).join(" ")
        };
        assert!(of(&[1e308, 1e308]).contains("overflow encountered in accumulate"));
        assert!(of(&[INF, -INF]).contains("invalid value encountered in accumulate"));
        assert_eq!(of(&[INF, 1.0, NAN]), "");
    }
}

#[test]
fn values_that_are_fetched_tell_their_warnings_to_the_guard_of_the_thread() {
    use tharsis_numeric::{ones, zeros};
    let quotient = || ones(&[3]) / zeros(&[3]);
    // Without a guard the computation succeeds.
    assert!(quotient().fetch::<f64>().unwrap()[[0]].is_infinite());
    let outer = errstate(ErrState::default());
    quotient().fetch::<f64>().unwrap();
    {
        let inner = errstate(ErrState::all(Reaction::Raise));
        let error = quotient().sum(..).item().unwrap_err();
        assert_eq!((error.class(), error.location().file()), ("FloatingPointError", file!()));
        assert_eq!(inner.take(), [""; 0]);
    }
    let _computed = quotient().execute().unwrap();
    assert_eq!(outer.take(), ["divide by zero encountered in divide"; 2]);
    assert_eq!(outer.take(), [""; 0]);
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

/// Divides by zero, twice on one line and once on another; run by the test below.
#[test]
#[ignore = "the process of the test below"]
fn divisions_without_a_guard() {
    let quotient = || ones(&[3]) / zeros(&[3]);
    for _ in 0..2 {
        quotient().fetch::<f64>().unwrap();
    }
    let _computed = quotient().execute().unwrap();
    let _guard = errstate(ErrState::all(Reaction::Ignore));
    quotient().fetch::<f64>().unwrap();
}

#[test]
fn without_a_guard_each_line_warns_once_on_standard_error() {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "warnings::divisions_without_a_guard", "--ignored", "--nocapture"];
    let output = std::process::Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let warned: Vec<_> = text.lines().filter(|line| line.contains("RuntimeWarning: ")).collect();
    let place = |line: &str| {
        let (place, text) = line.split_once(": RuntimeWarning: ").unwrap();
        assert_eq!(text, "divide by zero encountered in divide");
        let (file, line) = place.rsplit_once(':').unwrap();
        assert!(file.ends_with("numeric/warnings.rs"), "{place}");
        line.parse::<u32>().unwrap()
    };
    let lines: Vec<_> = warned.iter().map(|line| place(line)).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0] < lines[1], "{text}");
}

/// Warnings of NumPy 2.4.6 for special arguments (`golden/make_warnings.py`).
#[test]
fn special_arguments_are_told_as_numpy_tells_them() {
    let mut wrong = Vec::new();
    for line in include_str!("../golden/warnings.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let operation = row["np"].as_str().unwrap();
        for case in row["cases"].as_array().unwrap() {
            let (arguments, expected) = (case[0].as_array().unwrap(), &case[1]);
            let inputs = arguments
                .iter()
                .zip(["x", "y"])
                .map(|(x, name)| (name.to_owned(), json!({"lit": [x], "dtype": row["dtype"]})))
                .collect();
            let names = [json!({"$": "x"}), json!({"$": "y"})];
            let reply = reply(json!({}), Value::Object(inputs), operation, json!(names[..arguments.len()]));
            let found: Vec<_> =
                texts(&reply).iter().map(|text| text.trim_start_matches("RuntimeWarning: ")).collect();
            if json!(found) != *expected {
                wrong
                    .push(format!("{operation} {} {arguments:?}: {found:?}, NumPy {expected}", row["dtype"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_root_that_is_compared_warns_as_one_that_is_not() {
    let x = json!({"x": {"lit": [-1.0, 4.0]}});
    let program = json!([["s", "np.sqrt", [{"$": "x"}], {}], ["r", "np.greater", [{"$": "s"}, 1.0], {}]]);
    let of = |ctx: Value| {
        let request = json!({"ctx": ctx, "in": x.clone(), "prog": program.clone(), "out": ["r"]});
        answer(&request, std::path::Path::new("."))
    };
    assert_eq!(texts(&of(json!({}))), ["RuntimeWarning: invalid value encountered in sqrt"]);
    assert_eq!(of(json!({"errstate": "raise"}))["err"]["class"], "FloatingPointError");
}

#[test]
fn singular_values_that_are_thrown_away_are_not_divided_by() {
    let x = json!({"x": {"lit": [[1.0, 0.0], [0.0, 0.0]]}, "b": {"lit": [1.0, 2.0]}});
    for (operation, arguments) in
        [("np.linalg.pinv", json!([{"$": "x"}])), ("np.linalg.cond", json!([{"$": "x"}]))]
    {
        let reply = reply(json!({}), x.clone(), operation, arguments);
        assert_eq!(texts(&reply), Vec::<&str>::new(), "{operation}");
    }
}

#[test]
fn numbers_of_what_is_no_covariance_are_warned_of() {
    let reply = |cov: Value, options: Value| {
        let step = json!(["r", "rng.multivariate_normal", [[0.0, 0.0], {"$": "cov"}, 3], options]);
        let request = json!({"in": {"cov": {"lit": cov}}, "prog": [step], "out": ["r"]});
        answer(&request, std::path::Path::new("."))
    };
    let (valid, invalid) = (json!([[2.0, 1.0], [1.0, 2.0]]), json!([[1.0, 2.0], [2.0, 1.0]]));
    for method in ["svd", "eigh"] {
        let warned = reply(invalid.clone(), json!({"method": method}));
        let expected = "RuntimeWarning: covariance is not symmetric positive-semidefinite.";
        assert_eq!(texts(&warned), [expected], "{method}");
        assert!(texts(&reply(valid.clone(), json!({"method": method}))).is_empty());
        let ignored = reply(invalid.clone(), json!({"method": method, "check_valid": "ignore"}));
        assert!(texts(&ignored).is_empty());
        let refused = reply(invalid.clone(), json!({"method": method, "check_valid": "raise"}));
        assert_eq!(refused["err"]["class"], "ValueError", "{refused}");
    }
}
