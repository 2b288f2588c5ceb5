//! Every operation against NumPy: programs and answers in `golden/cases.jsonl`, `ufuncs.jsonl`,
//! `statistics.jsonl` and others, made by the scripts of the same names beside them.
//!
//! Each case runs under several chunkings; all must agree with NumPy.

use crate::seeds::quarters;
use serde_json::{Value, json};
use tharsis_kernels::{Bool, Complex, DType, Element, Scalar, f16};
use tharsis_numeric::protocol::answer;
use tharsis_trials::is_long;

/// The elements of a base64 array as scalars.
fn elements(array: &Value) -> (DType, Vec<Scalar>) {
    let dtype: DType = array["dtype"].as_str().unwrap().parse().unwrap();
    let bytes = base64(array["raw"].as_str().unwrap());
    fn all<T: Element>(bytes: &[u8]) -> Vec<Scalar> {
        let width = std::mem::size_of::<T>();
        bytes.chunks_exact(width).map(|chunk| bytemuck::pod_read_unaligned::<T>(chunk).to_scalar()).collect()
    }
    let scalars = match dtype {
        DType::Bool => all::<Bool>(&bytes),
        DType::I8 => all::<i8>(&bytes),
        DType::I16 => all::<i16>(&bytes),
        DType::I32 => all::<i32>(&bytes),
        DType::I64 => all::<i64>(&bytes),
        DType::U8 => all::<u8>(&bytes),
        DType::U16 => all::<u16>(&bytes),
        DType::U32 => all::<u32>(&bytes),
        DType::U64 => all::<u64>(&bytes),
        DType::F16 | DType::BF16 => all::<f16>(&bytes),
        DType::F32 => all::<f32>(&bytes),
        DType::F64 => all::<f64>(&bytes),
        DType::C64 => all::<Complex<f32>>(&bytes),
        DType::C128 => all::<Complex<f64>>(&bytes),
    };
    (dtype, scalars)
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

/// Distance in units of the last place of the dtype.
fn ulps(a: f64, b: f64, dtype: DType, scale: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    let digits = match dtype {
        DType::F16 => 11,
        DType::F32 | DType::C64 => 24,
        _ => 53,
    };
    let magnitude = a.abs().max(b.abs()).max(scale);
    if !magnitude.is_finite() {
        return f64::INFINITY;
    }
    let least = match dtype {
        DType::F16 => 2f64.powi(-24),
        DType::F32 | DType::C64 => 2f64.powi(-149),
        _ => f64::from_bits(1),
    };
    (a - b).abs() / (2f64.powi(magnitude.log2().floor() as i32 + 1 - digits)).max(least)
}

fn distance(a: Scalar, b: Scalar, dtype: DType, size: f64) -> f64 {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => ulps(a, b, dtype, size),
        (Scalar::Complex(a, ai), Scalar::Complex(b, bi)) => {
            // Parts are judged by the size of the whole, unless that is infinite.
            let whole = a.hypot(ai);
            let scale = if whole.is_finite() { whole.max(size) } else { size };
            ulps(a, b, dtype, scale).max(ulps(ai, bi, dtype, scale))
        }
        (a, b) if a == b => 0.0,
        _ => f64::INFINITY,
    }
}

/// Whether zeros have different signs.
fn signs_differ(a: Scalar, b: Scalar) -> bool {
    let differ = |a: f64, b: f64| a == 0.0 && b == 0.0 && a.is_sign_negative() != b.is_sign_negative();
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => differ(a, b),
        (Scalar::Complex(a, ai), Scalar::Complex(b, bi)) => differ(a, b) || differ(ai, bi),
        _ => false,
    }
}

fn mismatch(reply: &Value, expect: &Value, [tolerance, size]: [f64; 2], signs: bool) -> Option<String> {
    if let Some(class) = expect["error"].as_str() {
        let found = reply["err"]["class"].as_str().unwrap_or("a value");
        // NumPy raises subclasses of its own for some type errors.
        let same = found == class
            || (class == "UFuncTypeError" || class == "_UFuncNoLoopError") && found == "TypeError";
        let text = expect["text"].as_str().filter(|&text| reply["err"]["msg"] != text);
        return (!same || text.is_some())
            .then(|| format!("expected {class} {text:?}, found {found}: {reply}"));
    }
    let found = &reply["out"]["r"];
    let pairs = match expect["parts"].as_array() {
        None => vec![(&found["arr"], expect)],
        Some(parts) => {
            let told: Vec<&Value> = found["t"].as_array().map(|told| leaves(told)).unwrap_or_default();
            if told.len() != parts.len() {
                return Some(format!("expected {} arrays: {reply}", parts.len()));
            }
            told.into_iter().map(|found| &found["arr"]).zip(parts).collect()
        }
    };
    pairs.into_iter().find_map(|(found, wanted)| differs(found, wanted, [tolerance, size], signs))
}

/// The arrays in nested lists.
fn leaves(parts: &[Value]) -> Vec<&Value> {
    parts
        .iter()
        .flat_map(|part| match part {
            nested if nested["t"].is_array() => nested["t"].as_array().map(|parts| leaves(parts)).unwrap(),
            array => vec![array],
        })
        .collect()
}

/// Why an array is not the one that was expected.
fn differs(array: &Value, expect: &Value, [tolerance, size]: [f64; 2], signs: bool) -> Option<String> {
    if array["dtype"] != expect["dtype"] || array["shape"] != expect["shape"] {
        return Some(format!("expected {} {}, found {array}", expect["dtype"], expect["shape"]));
    }
    let ((dtype, found), (_, wanted)) = (elements(array), elements(expect));
    let wrong = |a, b| tolerance < distance(a, b, dtype, size) || signs && signs_differ(a, b);
    let worst = found.iter().zip(&wanted).find(|&(&a, &b)| wrong(a, b));
    worst.map(|(a, b)| format!("expected {b}, found {a} ({} ulps)", distance(*a, *b, dtype, size)))
}

quarters!(programs_agree_with_numpy_under_every_chunking, agree_with_numpy);

/// The chunkings of a case. Chunks of 1 and 3, and of 2 and 1000, alternate in a usual run; a long run has
/// all.
fn chunkings(index: usize) -> Vec<Value> {
    let cuts = [1, 2, 3, 1000].into_iter().enumerate();
    let mut chunkings = vec![json!("auto")];
    chunkings.extend(
        cuts.filter(|(at, _)| is_long() || (index / 4 + at).is_multiple_of(2)).map(|(_, cut)| json!(cut)),
    );
    chunkings
}

/// Runs the cases of a part.
fn agree_with_numpy([part, parts]: [u64; 2]) {
    let folder = crate::folder();
    let read = |file: &str| std::fs::read_to_string(folder.join("tests/golden").join(file)).unwrap();
    let cases = [
        "cases.jsonl",
        "ufuncs.jsonl",
        "statistics.jsonl",
        "histograms.jsonl",
        "contractions.jsonl",
        "options.jsonl",
        "names.jsonl",
        "special.jsonl",
    ]
    .map(read)
    .concat();
    let mut failures = Vec::new();
    let mut count = 0;
    let is_of_part = |at: usize| at as u64 % parts == part;
    for (index, line) in cases.lines().enumerate().filter(|(at, _)| is_of_part(*at)) {
        let case: Value = serde_json::from_str(line).unwrap();
        let (tolerance, size) = (case["ulps"].as_f64().unwrap(), case["scale"].as_f64().unwrap());
        for chunks in chunkings(index) {
            // One report per case is enough.
            if failures.last().is_some_and(|&(failed, _): &(usize, String)| failed == index) {
                break;
            }
            let mut request = case["request"].clone();
            if case["whole"] == true && chunks != "auto" {
                continue;
            }
            request["ctx"]["chunks"] = chunks.clone();
            count += 1;
            let signs = case["signs"] == true;
            let reply = answer(&request, &folder);
            if let Some(reason) = mismatch(&reply, &case["expect"], [tolerance, size], signs) {
                let inputs: Vec<_> = request["in"]
                    .as_object()
                    .unwrap()
                    .values()
                    .map(|x| format!("{}{}", x["dtype"], x["shape"]))
                    .collect();
                failures.push((index, format!("{} {inputs:?} chunks {chunks}: {reason}", request["prog"])));
            }
        }
    }
    let shown: Vec<_> = failures.iter().take(60).map(|(_, text)| text.as_str()).collect();
    assert!(failures.is_empty(), "{} cases of {count} runs failed:\n{}", failures.len(), shown.join("\n"));
}
