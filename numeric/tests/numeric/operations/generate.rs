//! Programs of the protocol, made from a seed: a number decides everything.

use super::calls::CALLS;
use serde_json::{Value, json};

/// Names, or beginnings of names, that are not generated, and the reason.
pub const NOT_GENERATED: &[(&str, &str)] = &[
    ("np.linalg.cholesky", "refuses nearly all matrices; `matrices.rs` has those that it takes"),
    ("np.linalg.cond", "rounds differently where a matrix is nearly singular; `matrices.rs`"),
    ("np.linalg.det", "rounds differently where a matrix is nearly singular; `matrices.rs`"),
    ("np.linalg.eig", "signs of vectors depend on rounding; `matrices.rs`"),
    ("np.linalg.inv", "rounds differently where a matrix is nearly singular; `matrices.rs`"),
    ("np.linalg.lstsq", "depends on the rounding of small singular values; `golden.rs`"),
    ("np.linalg.matrix_rank", "depends on the rounding of small singular values; `matrices.rs`"),
    ("np.linalg.pinv", "depends on the rounding of small singular values; `matrices.rs`"),
    ("np.linalg.qr", "signs of columns depend on the chunks; `factor.rs` and `matrices.rs`"),
    ("np.linalg.slogdet", "rounds differently where a matrix is nearly singular; `matrices.rs`"),
    ("np.linalg.solve", "rounds differently where a matrix is nearly singular; `matrices.rs`"),
    ("np.linalg.svd", "signs of vectors depend on the chunks; `factor.rs` and `matrices.rs`"),
    ("np.linalg.tensorinv", "rounds differently where a matrix is nearly singular; `golden.rs`"),
    ("np.linalg.tensorsolve", "rounds differently where a matrix is nearly singular; `golden.rs`"),
    ("np.random.default_rng", "gives a generator, not an array"),
    ("rng.", "draws depend on the place of an element alone; `distributions.rs` and `properties.rs`"),
];

/// Parts of a call of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Signature {
    Unary,
    Binary,
    Clip,
    Where,
    /// With an axis and perhaps keepdims.
    Reduction,
    Scan,
    AsType,
    BroadcastTo,
    /// A list of arrays and an axis.
    Join,
    /// An array and an axis.
    Axis,
    /// An array and two axes.
    Axes,
    Transpose,
    Reshape,
    Index,
    /// A condition along one axis, and an array.
    Choose,
    Tensordot,
    /// A shape.
    Shape,
    Full,
    Range,
    Eye,
    Array,
    /// One of the calls in `calls.rs`.
    Calls(&'static [&'static str]),
}

/// Generator of calls of an operation, if they are generated.
pub fn signature_of(name: &str, signature: &str) -> Option<Signature> {
    if NOT_GENERATED.iter().any(|(left_out, _)| name.starts_with(left_out)) {
        return None;
    }
    if let Some((_, calls)) = CALLS.iter().find(|(known, _)| *known == name) {
        return Some(Signature::Calls(calls));
    }
    Some(match name {
        "getitem" => Signature::Index,
        "np.arange" => Signature::Range,
        "np.array" => Signature::Array,
        "np.astype" => Signature::AsType,
        "np.broadcast_to" => Signature::BroadcastTo,
        "np.clip" => Signature::Clip,
        "np.concat" | "np.concatenate" | "np.stack" => Signature::Join,
        "np.compress" | "np.extract" => Signature::Choose,
        "np.dot" | "np.matmul" | "np.linalg.matmul" | "np.isclose" => Signature::Binary,
        "np.cumprod" | "np.cumsum" | "np.cumulative_prod" | "np.cumulative_sum" => Signature::Scan,
        "np.expand_dims" | "np.flip" | "np.squeeze" => Signature::Axis,
        "np.eye" => Signature::Eye,
        "np.full" => Signature::Full,
        "np.moveaxis" | "np.swapaxes" => Signature::Axes,
        "np.ones" | "np.zeros" => Signature::Shape,
        "np.reshape" => Signature::Reshape,
        "np.tensordot" => Signature::Tensordot,
        "np.transpose" | "np.permute_dims" => Signature::Transpose,
        "np.where" => Signature::Where,
        "np.angle" | "np.around" | "np.nan_to_num" | "np.ravel" | "np.round" | "np.argwhere"
        | "np.flatnonzero" | "np.nonzero" => Signature::Unary,
        _ if signature.contains("keepdims") => Signature::Reduction,
        _ => match signature {
            "(x)" => Signature::Unary,
            "(x1, x2)" => Signature::Binary,
            _ => return None,
        },
    })
}

/// A sequence of numbers from a seed (SplitMix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const DTYPES: [&str; 9] =
    ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64", "complex128"];

/// Small shapes that often broadcast.
const SHAPES: [&[usize]; 9] = [&[], &[3], &[4], &[1], &[3, 4], &[1, 4], &[2, 3, 4], &[0], &[3, 3]];

/// A request without a context: two inputs and up to four steps, of which all but the last one are exact.
pub fn program(dice: &mut Dice, operations: &[(String, Signature)]) -> Value {
    let shape = dice.pick(&SHAPES);
    let other = if dice.below(2) == 0 { shape } else { dice.pick(&SHAPES) };
    let inputs = json!({"x": input(dice, shape), "y": input(dice, other)});
    let exact: Vec<&(String, Signature)> =
        operations.iter().filter(|(name, _)| EXACT.contains(&name.as_str())).collect();
    let (mut steps, mut names) = (Vec::new(), vec!["x", "y"]);
    for name in ["a", "b", "c"].into_iter().take(dice.below(4)) {
        let (operation, signature) = exact[dice.below(exact.len())];
        steps.push(step(dice, name, operation, *signature, &names));
        names.push(name);
    }
    let (operation, signature) = &operations[dice.below(operations.len())];
    steps.push(step(dice, "r", operation, *signature, &names));
    json!({"in": inputs, "prog": steps, "out": ["r"], "want": ["values"]})
}

/// Operations whose results are the same in any order of additions, on the numbers that inputs have.
const EXACT: &[&str] = &[
    "getitem",
    "np.abs",
    "np.add",
    "np.all",
    "np.any",
    "np.argmax",
    "np.argmin",
    "np.astype",
    "np.broadcast_to",
    "np.clip",
    "np.concatenate",
    "np.count_nonzero",
    "np.equal",
    "np.expand_dims",
    "np.flip",
    "np.floor",
    "np.greater",
    "np.isnan",
    "np.less",
    "np.logical_not",
    "np.max",
    "np.maximum",
    "np.min",
    "np.minimum",
    "np.moveaxis",
    "np.nanmax",
    "np.nanmin",
    "np.nansum",
    "np.negative",
    "np.ravel",
    "np.repeat",
    "np.reshape",
    "np.roll",
    "np.sign",
    "np.sort",
    "np.stack",
    "np.subtract",
    "np.sum",
    "np.swapaxes",
    "np.take",
    "np.tile",
    "np.transpose",
    "np.where",
    "setitem",
];

/// Small numbers, halves among floats, and NaN and infinities.
fn number(dice: &mut Dice, dtype: &str) -> Value {
    let small = dice.below(9) as i64 - 4;
    let real = |dice: &mut Dice| match dice.below(12) {
        0 => json!({"f": "nan"}),
        1 => json!({"f": "inf"}),
        2 => json!({"f": "-inf"}),
        at => json!((at as f64 - 7.0) / 2.0),
    };
    match dtype {
        "bool" => json!(small < 0),
        "uint8" => json!(small.abs() * 60),
        // No infinities: the NaN parts of a product of infinite numbers depend on the order of the factors.
        "complex128" => match dice.below(12) {
            0 => json!({"c": [{"f": "nan"}, {"f": "nan"}]}),
            at => json!({"c": [(at as f64 - 7.0) / 2.0, small as f64 / 2.0]}),
        },
        _ if dtype.starts_with("float") => real(dice),
        _ => json!(small),
    }
}

fn input(dice: &mut Dice, shape: &[usize]) -> Value {
    fn nest(dice: &mut Dice, dtype: &str, shape: &[usize]) -> Value {
        match shape {
            [] => number(dice, dtype),
            [extent, rest @ ..] => (0..*extent).map(|_| nest(dice, dtype, rest)).collect(),
        }
    }
    let dtype = dice.pick(&DTYPES);
    json!({"lit": nest(dice, dtype, shape), "dtype": dtype})
}

fn step(dice: &mut Dice, name: &str, operation: &str, signature: Signature, names: &[&str]) -> Value {
    let value = |dice: &mut Dice| {
        let at = if dice.below(2) == 0 { names.len() - 1 } else { dice.below(names.len()) };
        json!({"$": names[at]})
    };
    let axis = |dice: &mut Dice| json!(dice.pick(&[0i64, 0, -1, -1, 1]));
    let x = value(dice);
    let mut keywords = json!({});
    let positional = match signature {
        Signature::Unary => json!([x]),
        Signature::Binary => json!([x, value(dice)]),
        Signature::Clip => json!([x, -1, 2]),
        Signature::Where => json!([value(dice), x, value(dice)]),
        Signature::Reduction => {
            if dice.below(2) == 0 {
                keywords["axis"] = axis(dice);
            }
            if dice.below(3) == 0 {
                keywords["keepdims"] = json!(true);
            }
            json!([x])
        }
        Signature::Scan => {
            keywords["axis"] = axis(dice);
            json!([x])
        }
        Signature::AsType => json!([x, {"dt": dice.pick(&DTYPES)}]),
        Signature::BroadcastTo => {
            json!([x, {"t": dice.pick(&[&[2usize, 3, 4][..], &[3, 4], &[3, 3], &[4]])}])
        }
        Signature::Join => json!([[x, value(dice)], axis(dice)]),
        Signature::Axis => json!([x, axis(dice)]),
        Signature::Axes => json!([x, axis(dice), axis(dice)]),
        Signature::Transpose => json!([x]),
        Signature::Reshape => json!([x, {"t": dice.pick(&[&[-1i64][..], &[4, -1], &[2, 2, -1], &[1, -1]])}]),
        Signature::Index => {
            let index = dice.pick(&[
                r#"{"s": [1, null, null]}"#,
                r#"{"s": [null, null, -1]}"#,
                r#"{"s": [null, null, 2]}"#,
                "0",
                "-1",
                "null",
                "[0, 2, 0]",
                r#"{"t": [{"e": 1}, [0, -1]]}"#,
                r#"{"t": [[0, 1], null, [1, 0]]}"#,
                "[[0, 1], [2, 0]]",
            ]);
            json!([x, serde_json::from_str::<Value>(index).unwrap()])
        }
        Signature::Choose => json!([value(dice), x]),
        Signature::Tensordot => json!([x, value(dice), 1]),
        Signature::Shape => json!([{"t": dice.pick(&[&[3usize][..], &[2, 3], &[]])}]),
        Signature::Full => json!([{"t": [2, 3]}, number(dice, "int8")]),
        Signature::Range => json!([dice.below(9), dice.below(30), 1 + dice.below(3)]),
        Signature::Eye => json!([1 + dice.below(4), 1 + dice.below(4)]),
        Signature::Array => json!([[number(dice, "float64"), number(dice, "float64")]]),
        Signature::Calls(calls) => {
            let call: Value = serde_json::from_str(dice.pick(calls)).unwrap();
            keywords = with_values(&call[1], &mut || value(dice));
            with_values(&call[0], &mut || value(dice))
        }
    };
    json!([name, operation, positional, keywords])
}

/// A call with a value of the program wherever it has `"@"`.
fn with_values(call: &Value, value: &mut impl FnMut() -> Value) -> Value {
    match call {
        Value::String(text) if text == "@" => value(),
        Value::Array(parts) => parts.iter().map(|part| with_values(part, value)).collect(),
        Value::Object(parts) => {
            parts.iter().map(|(key, part)| (key.clone(), with_values(part, value))).collect()
        }
        other => other.clone(),
    }
}
