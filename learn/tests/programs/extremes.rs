//! Each numeric parameter at extreme values: a result or a refusal in the words of Python, never a crash.

use super::parameters::called_in;
use super::rows;
use serde_json::{Value as Json, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Look, Made, Param, Row};
use tharsis_trials::{is_long, part};

/// Calls under way at the same time. Dozens of them run until their time ends, a half second each.
const AT_ONCE: usize = 12;

/// The classes of errors by which a value may be refused.
const REFUSALS: [&str; 6] =
    ["LinAlgError", "MemoryError", "NotImplemented", "OverflowError", "Timeout", "ValueError"];

/// The extreme values that a parameter takes. Whole numbers that a float is near to are tried as floats.
fn values(param: &Param) -> Vec<Json> {
    let mut values = Vec::new();
    if param.kind.admits(&Look::Real(0.5)) {
        let wholes = [json!(-1), json!(0), json!((1u64 << 53) + 1), json!(u64::MAX)];
        let reals = [json!(-0.0), json!(5e-324), json!(1e300), json!({"f": "inf"}), json!({"f": "nan"})];
        values.extend(wholes.into_iter().chain(reals));
    } else if param.kind.admits(&Look::Integer(1)) {
        let large = [json!((1u64 << 53) + 1), json!(i64::MAX), json!(u64::MAX)];
        values.extend([json!(-1), json!(0)].into_iter().chain(large));
    }
    // It is not taken alone.
    values.retain(|_| param.name != "unknown_value");
    // A forest whose trees draw no samples says no more than that a state is missing.
    values.retain(|value| param.name != "max_samples" || value != &json!(5e-324));
    values
}

/// The mistake in the reply to a call with this value.
fn mistake(row: &Row<Value, Scope>, param: &Param, value: &Json) -> Option<String> {
    let found = called_in(&json!({"timeout_s": 0.5}), row.name, row.params, &[(param.name, value.clone())]);
    let is_refused = REFUSALS.iter().any(|refusal| found["err"]["class"] == *refusal);
    let is_sound = found["ok"] == true || is_refused;
    (!is_sound).then(|| format!("{}({}={value}): {}", row.name, param.name, found["err"]))
}

#[test]
fn extreme_parameters_are_taken_or_refused() {
    let all = rows().filter(|row| row.name.matches('.').count() != 1);
    let params = all.flat_map(|row| row.params.iter().map(move |param| (row, param)));
    let cases: Vec<_> = params
        .filter(|(_, param)| param.made != Made::Default)
        .flat_map(|(row, param)| values(param).into_iter().map(move |value| (row, param, value)))
        .collect();
    assert!(1_000 < cases.len(), "{} cases", cases.len());
    // Of those a usual run tries a third, which is another one for the next commit.
    let turn = part(3) as usize;
    let numbered = cases.into_iter().enumerate();
    let cases: Vec<_> =
        numbered.filter(|(at, _)| is_long() || at % 3 == turn).map(|(_, case)| case).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((row, param, value)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = mistake(row, param, value);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
