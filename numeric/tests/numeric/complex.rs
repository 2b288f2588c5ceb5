//! Complex functions against NumPy on a table of special points: all quadrants, magnitudes from the smallest
//! to the largest, signed zeros, infinities and NaN. `golden/complex.jsonl` is made by
//! `golden/make_complex.py`.

use serde_json::{Value, json};
use tharsis_numeric::protocol::answer;

/// The parts of complex or real numbers, widened.
fn parts(array: &Value) -> Vec<f64> {
    let bytes = base64(array["raw"].as_str().unwrap());
    match array["dtype"].as_str().unwrap() {
        "<f4" | "<c8" => {
            bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
        }
        _ => bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0u32, 0);
    for byte in text.bytes().filter(|&byte| byte != b'=') {
        bits = bits << 6 | u32::from(value(byte));
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

/// Whether `found` is within some units in the last place of `wanted`. Zeros and infinities have their sign,
/// unless the other part is NaN: then C99 leaves it open.
fn agree(found: f64, wanted: f64, single: bool, sign_open: bool, absolute: f64) -> bool {
    if found.is_nan() || wanted.is_nan() {
        return found.is_nan() && wanted.is_nan();
    }
    if sign_open && found.abs() == wanted.abs() {
        return true;
    }
    if found.is_sign_negative() != wanted.is_sign_negative() && absolute == 0.0 {
        return false;
    }
    let (epsilon, least) = if single { (2f64.powi(-23), 1e-45) } else { (2f64.powi(-52), 5e-324) };
    found == wanted || (found - wanted).abs() <= 8.0 * (epsilon * wanted.abs()).max(least).max(absolute)
}

#[test]
fn complex_functions_agree_with_numpy_in_every_part() {
    let folder = crate::folder().join("tests/golden");
    let rows = std::fs::read_to_string(folder.join("complex.jsonl")).unwrap();
    let (mut x, mut failures) = (Value::Null, Vec::new());
    for row in rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if !row["x"].is_null() {
            x = row["x"].clone();
            continue;
        }
        let op = row["op"].as_str().unwrap();
        let few = json!(["z", "getitem", [{"$": "x"}, {"s": [null, null, 7]}], {}]);
        let mut steps = json!([few, ["r", format!("np.{op}"), [{"$": "z"}, {"$": "y"}], {}]]);
        let mut inputs = json!({"x": x, "y": row["y"]});
        if row["y"].is_null() {
            steps = json!([["r", format!("np.{op}"), [{"$": "x"}], {}]]);
            inputs = json!({"x": x});
        }
        let request = json!({"in": inputs, "prog": steps, "out": ["r"], "ctx": {"inline": "raw"}});
        let reply = answer(&request, &folder);
        let found = &reply["out"]["r"]["arr"];
        assert_eq!(found["dtype"], row["expect"]["dtype"], "{op}: {reply}");
        let single = row["dtype"] == "complex64";
        // NumPy computes log1p by a textbook formula, with an absolute error as for numbers near one.
        let absolute = if op == "log1p" { 2f64.powi(-52) } else { 0.0 };
        // NumPy's power is the exponential of a logarithm, whose error grows with its size.
        let relative = match op {
            "power" if single => 2f64.powi(-16),
            "power" => 2f64.powi(-45),
            _ => 0.0,
        };
        let width = if op == "absolute" { 1 } else { 2 };
        let stride = if row["y"].is_null() { 1 } else { 7 };
        let (found, wanted, arguments) = (parts(found), parts(&row["expect"]), parts(&x));
        for (i, (found, wanted)) in found.chunks(width).zip(wanted.chunks(width)).enumerate() {
            let open = wanted.iter().any(|part| part.is_nan());
            let size = wanted.iter().fold(0.0, |size: f64, part| size.hypot(*part));
            let absolute = if size.is_finite() { absolute.max(relative * size) } else { absolute };
            if !(0..width).all(|part| agree(found[part], wanted[part], single, open, absolute)) {
                let z = &arguments[2 * i * stride..][..2];
                failures.push(format!(
                    "{op} {} {z:?} {}: {found:?}, NumPy {wanted:?}",
                    row["dtype"], row["other"]
                ));
            }
        }
    }
    let shown: Vec<_> = failures.iter().take(60).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} points differ:\n{}", failures.len(), shown.join("\n"));
}
