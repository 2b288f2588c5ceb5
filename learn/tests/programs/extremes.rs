//! Each numeric parameter at extreme values: a result or a refusal in the words of Python, never a crash.

use super::parameters::called_in;
use super::rows;
use serde_json::json;
use tharsis_programs::{Look, Made};

#[test]
fn extreme_parameters_are_taken_or_refused() {
    let (time, mut wrong) = (json!({"timeout_s": 0.5}), Vec::new());
    let reals =
        [json!(0), json!(-0.0), json!(5e-324), json!(1e300), json!({"f": "inf"}), json!({"f": "nan"})];
    let wholes = [json!(-1), json!(0), json!((1u64 << 53) + 1), json!(i64::MAX), json!(u64::MAX)];
    for row in rows().filter(|row| row.name.matches('.').count() != 1) {
        for param in row.params.iter().filter(|param| param.made != Made::Default) {
            let takes_reals = param.kind.admits(&Look::Real(0.5));
            let takes_wholes = param.kind.admits(&Look::Integer(1));
            let reals = reals.iter().filter(|_| takes_reals);
            let wholes = wholes.iter().filter(|_| takes_wholes);
            for value in reals.chain(wholes) {
                // It is not taken alone.
                if param.name == "unknown_value" {
                    continue;
                }
                // A forest whose trees draw no samples says no more than that a state is missing.
                if param.name == "max_samples" && value == &json!(5e-324) {
                    continue;
                }
                let found = called_in(&time, row.name, row.params, &[(param.name, value.clone())]);
                let class = &found["err"]["class"];
                let allowed = [
                    "LinAlgError",
                    "MemoryError",
                    "NotImplemented",
                    "OverflowError",
                    "Timeout",
                    "ValueError",
                ];
                let refused = allowed.iter().any(|allowed| class == allowed);
                if found["ok"] != true && !refused {
                    wrong.push(format!("{}({}={value}): {}", row.name, param.name, found["err"]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
