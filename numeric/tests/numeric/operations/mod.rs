//! Every operation that programs may name, in random programs over all kinds of numbers, NaN and infinities
//! among them: in any chunks, lazily or step by step, a program gives the same.
//!
//! Results of single operations are compared with NumPy elsewhere (`golden.rs`). Here the reference for
//! tiling, fusion and merging is each step computed alone, on arrays of one chunk. A name without a generator
//! fails. `THARSIS_PROGRAMS=100000 cargo test -p tharsis-numeric --test numeric operations` tries more.

mod calls;
mod generate;

use crate::seeds::{quarters, seeds};
use generate::{Dice, NOT_GENERATED, Signature, signature_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use tharsis_numeric::protocol::{answer, list};

/// Names and signatures of all operations.
fn operations() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    list(&mut lines).unwrap();
    let text = |json: &Value| json.as_str().unwrap().to_owned();
    let rows = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let rows = rows.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    rows.map(|row| (text(&row["name"]), text(&row["signature"]))).collect()
}

#[test]
fn every_operation_is_generated_or_left_out_for_a_reason() {
    let all = operations();
    let is_left_out = |name: &str| NOT_GENERATED.iter().any(|(left_out, _)| name.starts_with(left_out));
    let missing = all.iter().filter(|(name, signature)| signature_of(name, signature).is_none());
    let missing: Vec<_> = missing.filter(|(name, _)| !is_left_out(name)).collect();
    assert!(missing.is_empty(), "neither a generator nor a reason: {missing:?}");
    let names: BTreeSet<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    for (left_out, _) in NOT_GENERATED {
        assert!(names.iter().any(|name| name.starts_with(left_out)), "{left_out} is no operation");
    }
}

fn run(request: &Value, mode: &str, chunks: Value) -> Value {
    let mut request = request.clone();
    request["ctx"] = json!({"mode": mode, "chunks": chunks, "errstate": "ignore"});
    answer(&request, Path::new("."))
}

/// Whether it is a complex number with a NaN part.
fn is_nan(number: &serde_json::Map<String, Value>) -> bool {
    let parts = number.get("c").and_then(Value::as_array);
    parts.is_some_and(|parts| parts.iter().any(|part| part["f"] == "nan"))
}

/// Whether two replies are the same, apart from the order in which numbers were added up.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        // Of several NaN, which one is the largest may depend on the chunks if one part is a number.
        (Value::Object(a), Value::Object(b)) if is_nan(a) && is_nan(b) => true,
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (Value::Number(x), Value::Number(y)) => match (x.as_f64(), y.as_f64()) {
            (Some(x), Some(y)) => x == y || (x - y).abs() <= 2e-3 * x.abs().max(y.abs()).max(1e-3),
            _ => x == y,
        },
        _ => a == b,
    }
}

/// Operations that ask for the shape or the dtype of an array alone.
const ABOUT_ARRAYS: &[&str] = &[
    "nd.device",
    "nd.dtype",
    "nd.itemsize",
    "nd.nbytes",
    "np.can_cast",
    "np.finfo",
    "np.iinfo",
    "np.iscomplexobj",
    "np.isrealobj",
    "np.issubdtype",
    "np.min_scalar_type",
    "np.ndim",
    "np.promote_types",
    "np.result_type",
    "np.shape",
    "np.size",
];

/// Whether the result of a program depends on the values of a step.
fn is_needed(request: &Value, step: usize) -> bool {
    fn reads(args: &Value, name: &str) -> bool {
        match args {
            Value::Array(parts) => parts.iter().any(|part| reads(part, name)),
            Value::Object(parts) => {
                parts.get("$").is_some_and(|found| found == name)
                    || parts.values().any(|part| reads(part, name))
            }
            _ => false,
        }
    }
    let steps = request["prog"].as_array().unwrap();
    let name = steps[step][0].as_str().unwrap();
    let looks_at_values = |user: &usize| {
        let operation = steps[*user][1].as_str().unwrap();
        !operation.ends_with("_like") && !ABOUT_ARRAYS.contains(&operation)
    };
    let users = (step + 1..steps.len()).filter(|&user| reads(&steps[user], name)).filter(looks_at_values);
    step + 1 == steps.len() || users.into_iter().any(|user| is_needed(request, user))
}

fn check(seed: u64, operations: &[(String, Signature)]) -> bool {
    let mut dice = Dice::new(seed);
    let request = generate::program(&mut dice, operations);
    let alone = run(&request, "eager", json!(1 << 20));
    for (mode, chunks) in
        [("lazy", json!("auto")), ("lazy", json!(1)), ("lazy", json!(2)), ("eager", json!(2))]
    {
        let found = run(&request, mode, chunks.clone());
        let told = |reply: &Value| {
            if reply["ok"] == true { reply["out"].clone() } else { reply["err"]["class"].clone() }
        };
        // A position out of range is found when it is used: lazily, a step that nobody reads does not run.
        let unread = alone["err"]["step"].as_u64().is_some_and(|step| !is_needed(&request, step as usize));
        // And before it is found, a later step may have been refused by its shapes.
        let later = found["err"]["step"].as_u64() > alone["err"]["step"].as_u64();
        let later = later && alone["ok"] == false;
        let same = (mode == "lazy" && (unread || later)) || is_same(&told(&found), &told(&alone));
        assert!(same, "seed {seed}, {mode}, chunks {chunks}\n{request}\nalone {alone}\nfound {found}");
        assert_ne!(found["err"]["class"], "Crash", "seed {seed}\n{request}");
    }
    alone["ok"] == true
}

quarters!(random_programs_over_all_operations_are_the_same_in_every_mode, are_the_same);

fn are_the_same(part: [u64; 2]) {
    let generated: Vec<_> = operations()
        .into_iter()
        .filter_map(|(name, signature)| Some((name.clone(), signature_of(&name, &signature)?)))
        .collect();
    let outcomes: Vec<bool> = seeds(0, [400, 1_000], part).map(|seed| check(seed, &generated)).collect();
    let (count, computed) = (outcomes.len(), outcomes.iter().filter(|&&gives| gives).count());
    // Others are refused, in the same words in every mode.
    assert!(count / 3 < computed, "{computed} of {count} programs gave values");
}
