//! Mistakes of users with tensors, as programs: each is refused with the exception that a NumPy user
//! knows, before any work is done, or does what NumPy does.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tharsis_numeric::protocol::answer;
use tharsis_numeric::{Chunks, LocalExecutor, arange, execute, ones, zeros};

/// The reply to a program of one step over `x` = [[1, 2, 3], [4, 5, 6]] and `v` = [1, 2].
fn reply(operation: &str, positional: Value, keywords: Value) -> Value {
    reply_within(json!({}), operation, positional, keywords)
}

fn reply_within(ctx: Value, operation: &str, positional: Value, keywords: Value) -> Value {
    let inputs = json!({"x": {"lit": [[1, 2, 3], [4, 5, 6]]}, "v": {"lit": [1, 2]}});
    let step = json!(["r", operation, positional, keywords]);
    let started = Instant::now();
    let reply =
        answer(&json!({"ctx": ctx, "in": inputs, "prog": [step], "out": ["r"]}), std::path::Path::new("."));
    assert!(started.elapsed() < Duration::from_secs(60), "{operation} took {:?}", started.elapsed());
    reply
}

/// Refused with this exception, in words that contain `part`.
#[track_caller]
fn assert_refused(operation: &str, positional: Value, keywords: Value, class: &str, part: &str) {
    let reply = reply(operation, positional, keywords);
    assert_eq!(reply["err"]["class"], class, "{reply}");
    assert!(reply["err"]["msg"].as_str().unwrap().contains(part), "{reply}");
}

fn x() -> Value {
    json!({"$": "x"})
}

fn v() -> Value {
    json!({"$": "v"})
}

#[test]
fn shapes_that_no_array_has_are_refused() {
    assert_refused("np.ones", json!([[-1]]), json!({}), "ValueError", "negative dimensions");
    let many = vec![1; 65];
    assert_refused("np.ones", json!([many]), json!({}), "ValueError", "maximum supported dimension");
    assert_refused("np.ones", json!([[1u64 << 40, 1u64 << 40]]), json!({}), "ValueError", "too big");
    assert_refused("np.ones", json!([[0, i64::MAX]]), json!({}), "ValueError", "too big");
    assert_refused("np.linspace", json!([0, 1, -1]), json!({}), "ValueError", "non-negative");
    assert_refused("np.arange", json!([0, 1, 0]), json!({}), "ZeroDivisionError", "division by zero");
    assert_refused("np.arange", json!([0, 1e300]), json!({}), "ValueError", "size");
    assert_eq!(zeros(&[usize::MAX, 2]).check().unwrap_err().class(), "ValueError");
    assert_eq!(arange(usize::MAX).check().unwrap_err().class(), "ValueError");
}

#[test]
fn more_workers_than_there_may_be_are_refused_and_the_bound_is_named() {
    let reply = reply_within(json!({"workers": 100_000}), "np.sum", json!([x()]), json!({}));
    assert_eq!(reply["err"]["class"], "ValueError");
    assert_eq!(reply["err"]["msg"], "workers: 100000; at most 64 are started");
}

#[test]
fn seeds_are_whole_numbers_of_any_size() {
    let draw = |seed: Value| {
        let steps =
            json!([["g", "np.random.default_rng", [seed], {}], ["r", "rng.random", [{"$": "g"}, 3], {}]]);
        answer(&json!({"prog": steps, "out": ["r"]}), std::path::Path::new("."))
    };
    let values = |seed: Value| draw(seed)["out"]["r"]["arr"]["lit"].clone();
    let seeds = [
        json!(0),
        json!(u64::MAX),
        json!({"i": "18446744073709551616"}),
        json!({"i": "18446744073709551617"}),
        json!({"i": "340282366920938463463374607431768211456"}),
    ];
    for (i, seed) in seeds.iter().enumerate() {
        assert_eq!(values(seed.clone()).as_array().unwrap().len(), 3, "{seed}");
        assert_eq!(values(seed.clone()), values(seed.clone()));
        assert!(seeds[..i].iter().all(|other| values(other.clone()) != values(seed.clone())), "{seed}");
    }
    assert_eq!(values(json!({"i": "18446744073709551615"})), values(json!(u64::MAX)));
    for negative in [json!(-1), json!({"i": "-18446744073709551616"})] {
        assert_eq!(draw(negative)["err"]["msg"], "expected non-negative integer");
    }
}

#[test]
fn chunks_that_cannot_be_are_refused() {
    let with = |chunks: Value| {
        reply_within(json!({"chunks": chunks}), "np.sum", json!([x()]), json!({}))["err"]["class"].clone()
    };
    assert_eq!(with(json!(0)), "ValueError");
    assert_eq!(with(json!(-1)), "ValueError");
    assert_eq!(with(json!([2, 0])), "ValueError");
    assert_eq!(with(json!("many")), "ValueError");
    let t = ones(&[3, 4]);
    let wrong = [
        Chunks::Each(0),
        Chunks::PerAxis(vec![1]),
        Chunks::PerAxis(vec![1, 0]),
        Chunks::Lengths(vec![vec![1, 1], vec![4]]),
        Chunks::Lengths(vec![vec![3, 0], vec![4]]),
        Chunks::Lengths(vec![vec![usize::MAX, 4], vec![4]]),
    ];
    for chunks in wrong {
        assert_eq!(t.rechunk(chunks.clone()).check().unwrap_err().class(), "ValueError", "{chunks:?}");
    }
    let tasks = ones(&[1 << 13, 1 << 13]).rechunk(Chunks::Each(1)).check().unwrap_err();
    assert!(tasks.to_string().contains("67108864 tasks, the limit is 10000000"), "{tasks}");
}

#[test]
fn memory_that_does_not_do_is_refused_before_any_work() {
    let with = |memory: Value| {
        let reply = reply_within(json!({"memory": memory}), "np.ones", json!([[3000, 1000]]), json!({}));
        (reply["err"]["class"].clone(), reply["err"]["msg"].clone())
    };
    assert_eq!(with(json!(0)).0, "ValueError");
    assert_eq!(with(json!("lots")).0, "ValueError");
    let (class, text) = with(json!("1MiB"));
    assert_eq!(class, "MemoryError");
    assert!(text.as_str().unwrap().contains("allow at least"), "{text}");
    let huge = ones(&[1 << 20, 1 << 20]);
    assert_eq!(execute(&[&huge], &LocalExecutor::sized(2, 1 << 30)).unwrap_err().class(), "MemoryError");
    assert!(LocalExecutor::new(0, 1).is_err() && LocalExecutor::new(1, 0).is_err());
}

#[test]
fn shapes_that_do_not_fit_each_other_are_refused() {
    assert_refused("np.add", json!([x(), v()]), json!({}), "ValueError", "(2,3) (2,)");
    assert_refused("np.matmul", json!([x(), x()]), json!({}), "ValueError", "(2,3)");
    assert_refused("np.tensordot", json!([x(), x(), 1]), json!({}), "ValueError", "differ");
    assert_refused("np.reshape", json!([x(), [4, 2]]), json!({}), "ValueError", "cannot reshape");
    assert_refused("np.reshape", json!([x(), [-1, -1]]), json!({}), "ValueError", "one unknown");
    assert_refused("np.reshape", json!([x(), [0, -1]]), json!({}), "ValueError", "cannot reshape");
    assert_refused("np.concatenate", json!([[x(), v()]]), json!({}), "ValueError", "");
}

#[test]
fn axes_and_indices_that_are_not_there_are_refused() {
    assert_refused("np.sum", json!([x()]), json!({"axis": 2}), "AxisError", "out of bounds");
    assert_refused("np.sum", json!([x()]), json!({"axis": [0, 0]}), "ValueError", "repeated");
    assert_refused("getitem", json!([x(), 2]), json!({}), "IndexError", "out of bounds");
    assert_refused("getitem", json!([x(), {"s": [0, 2, 0]}]), json!({}), "ValueError", "zero");
    let mask = json!([{"$": "v"}, [true, false, true]]);
    let request = json!({"in": {"v": {"lit": [1, 2]}, "m": {"lit": [true, false, true]}},
        "prog": [["r", "getitem", [{"$": "v"}, {"$": "m"}], {}]], "out": ["r"]});
    let refused = answer(&request, std::path::Path::new("."));
    assert_eq!(refused["err"]["class"], "IndexError", "{mask} {refused}");
}

#[test]
fn an_unknown_size_that_is_needed_is_awaited_within_the_bound() {
    let request = json!({"in": {"v": {"lit": [1, 2, 3]}, "m": {"lit": [true, false, true]}},
        "prog": [["a", "getitem", [{"$": "v"}, {"$": "m"}], {}], ["r", "np.reshape", [{"$": "a"}, [2, 1]], {}],
            ["s", "np.broadcast_to", [{"$": "a"}, {"t": [5]}], {}]],
        "out": ["r"], "want": ["values", "plan", "metrics"], "ctx": {"chunks": 1}});
    let found = answer(&request, std::path::Path::new("."));
    assert_eq!(found["out"]["r"]["arr"]["lit"], json!([[1], [3]]), "{found}");
    let (bound, peak) = (&found["plan"]["peak_bytes_bound"], &found["metrics"]["peak_bytes"]);
    assert!(peak.as_u64().unwrap() <= bound.as_u64().unwrap(), "{found}");
    let mut misfit = request;
    misfit["out"] = json!(["s"]);
    assert_eq!(answer(&misfit, std::path::Path::new("."))["err"]["class"], "ValueError");
}

#[test]
fn nothing_to_choose_from_is_refused_and_the_mean_of_nothing_is_nan() {
    let empty = json!([{"$": "e"}]);
    let of = |operation: &str| {
        let request = json!({"in": {"e": {"lit": [], "dtype": "float64"}}, "prog": [["r", operation, empty, {}]], "out": ["r"]});
        answer(&request, std::path::Path::new("."))
    };
    for operation in ["np.max", "np.min", "np.argmax", "np.argmin"] {
        assert_eq!(of(operation)["err"]["class"], "ValueError", "{operation}");
    }
    for operation in ["np.mean", "np.var"] {
        assert_eq!(of(operation)["out"]["r"]["arr"]["lit"], json!({"f": "nan"}), "{operation}");
    }
}

#[test]
fn dtypes_and_seeds_that_do_not_exist_are_refused() {
    let dtype = json!({"dtype": {"dt": "int32"}});
    assert_refused("np.fft.fftfreq", json!([4]), dtype, "ValueError", "not int32");
    assert_refused("np.astype", json!([x(), {"dt": "float99"}]), json!({}), "TypeError", "float99");
    assert_refused("np.astype", json!([x(), {"dt": "object"}]), json!({}), "TypeError", "object");
    assert_refused("np.random.default_rng", json!([-1]), json!({}), "ValueError", "non-negative");
    let seed = reply_within(json!({"seed": -1}), "np.sum", json!([x()]), json!({}));
    assert_eq!(seed["err"]["class"], "ValueError", "{seed}");
    let large = json!([x(), {"i": "99999999999999999999"}]);
    assert_refused("np.multiply", large, json!({}), "OverflowError", "too large to convert to C long");
}

#[test]
fn factors_that_do_not_exist_are_refused() {
    let of = |operation: &str, matrix: Value| {
        let request = json!({"in": {"a": {"lit": matrix, "dtype": "float64"}},
            "prog": [["r", operation, [{"$": "a"}], {}], ["s", "np.linalg.svdvals", [{"$": "a"}], {}]], "out": ["r", "s"]});
        answer(&request, std::path::Path::new("."))["err"]["class"].clone()
    };
    assert_eq!(of("np.linalg.cholesky", json!([[1, 2], [2, 1]])), "LinAlgError");
    assert_eq!(of("np.linalg.cholesky", json!([[1, 2, 3], [2, 1, 3]])), "LinAlgError");
    assert_eq!(of("np.linalg.svdvals", json!([[1, {"f": "nan"}], [2, 1]])), "LinAlgError");
    assert_eq!(of("np.linalg.svdvals", json!([[1, {"f": "inf"}], [2, 1]])), "LinAlgError");
}
