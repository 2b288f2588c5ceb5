//! Values of programs, and their JSON encodings.

use super::Failure;
use super::bounds::check_number;
use super::object::Object;
use crate::index::Index;
use crate::integer::LargeInteger;
use crate::operand::Operand;
use crate::random::Generator;
use crate::sparse::Sparse;
use crate::tensor::Tensor;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tharsis_kernels::{Buffer, Chunk, DType, Element, Scalar, with_element};

/// Values of names in a program, and arguments of operations.
#[derive(Clone, Debug)]
pub enum Value {
    /// Python's `None`.
    None,
    /// A number.
    Number(Scalar),
    /// A whole number beyond 64 bits.
    Large(LargeInteger),
    /// A word.
    Text(String),
    /// A dtype.
    DType(DType),
    /// A part of an index expression.
    Index(Index),
    /// A tensor.
    Tensor(Tensor),
    /// A tuple.
    Tuple(Vec<Value>),
    /// A list: an array where an array is expected; as an index it is not the same as a tuple.
    List(Vec<Value>),
    /// A dictionary whose keys are texts, in its order.
    Dictionary(Vec<(String, Value)>),
    /// A tuple whose parts have names.
    Fields(&'static [&'static str], Vec<Value>),
    /// A source of random numbers.
    Generator(Arc<Generator>),
    /// A sparse matrix.
    Sparse(Box<Sparse>),
    /// An object of another crate, such as an estimator. All names for it see its changes.
    Object(Arc<dyn Object>),
}

impl Value {
    /// Visits the tensors in this value, in the order of its parts.
    pub(super) fn tensors(&self, visit: &mut impl FnMut(&Tensor)) {
        match self {
            Value::Tensor(tensor) => visit(tensor),
            Value::Sparse(matrix) => matrix.ordered_triplets().iter().for_each(visit),
            Value::List(parts) | Value::Tuple(parts) | Value::Fields(_, parts) => {
                parts.iter().for_each(|part| part.tensors(visit))
            }
            Value::Dictionary(entries) => entries.iter().for_each(|(_, value)| value.tensors(visit)),
            _ => {}
        }
    }

    /// Whether a tensor in this value has a size that is known only after a run.
    pub(super) fn awaits_size(&self) -> bool {
        let mut awaits = false;
        self.tensors(&mut |tensor| awaits |= tensor.is_known().is_ok_and(|known| !known));
        awaits
    }

    /// This value as an operand: a tensor, a number, or nested lists of numbers.
    ///
    /// ```
    /// use tharsis_numeric::Operand;
    /// use tharsis_numeric::protocol::Value;
    /// assert!(matches!(Value::Number(2.into()).operand(), Ok(Operand::Number(_))));
    /// ```
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub fn operand(self) -> Result<Operand, Failure> {
        match self {
            Value::Tensor(tensor) => Ok(Operand::Tensor(tensor)),
            Value::Number(scalar) => Ok(Operand::Number(scalar)),
            Value::Large(number) => Ok(Operand::Large(number)),
            Value::List(parts) | Value::Tuple(parts) | Value::Fields(_, parts) => {
                Ok(Operand::Tensor(stack_values(parts)?))
            }
            other => Err(Failure::kind(format!("expected an array, found {other:?}"))),
        }
    }

    /// This value as a tensor.
    ///
    /// ```
    /// use tharsis_numeric::protocol::Value;
    /// let list = Value::List(vec![Value::Number(1.into()), Value::Number(2.into())]);
    /// assert_eq!(list.tensor().expect("numbers").to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Value::operand`].
    pub fn tensor(self) -> Result<Tensor, Failure> {
        let tensor = self.operand()?.alone();
        tensor.check()?;
        Ok(tensor)
    }

    /// This value as a whole number.
    ///
    /// ```
    /// use tharsis_numeric::protocol::Value;
    /// assert_eq!(Value::Number(2.into()).integer().ok(), Some(2));
    /// assert_eq!(Value::Number(2.5.into()).integer().unwrap_err().class, "TypeError");
    /// ```
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub fn integer(&self) -> Result<i64, Failure> {
        match self {
            Value::Number(Scalar::Int(i)) => Ok(*i),
            Value::Number(Scalar::Bool(b)) => Ok(i64::from(*b)),
            other => Err(Failure::kind(format!("expected an integer, found {other:?}"))),
        }
    }

    /// This value as a real number.
    ///
    /// ```
    /// use tharsis_numeric::protocol::Value;
    /// assert_eq!(Value::Number(2.into()).real().ok(), Some(2.0));
    /// ```
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub fn real(&self) -> Result<f64, Failure> {
        match self {
            Value::Number(Scalar::Complex(..)) => Err(Failure::kind("must be a real number, not complex")),
            Value::Number(number) => Ok(number.to_f64()),
            other => Err(Failure::kind(format!("expected a number, found {other:?}"))),
        }
    }

    /// This value as a list of whole numbers; a single one counts as a list of one.
    ///
    /// ```
    /// use tharsis_numeric::protocol::Value;
    /// assert_eq!(Value::Number(2.into()).integers().ok(), Some(vec![2]));
    /// ```
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub fn integers(&self) -> Result<Vec<i64>, Failure> {
        match self {
            Value::List(parts) | Value::Tuple(parts) => parts.iter().map(Value::integer).collect(),
            other => Ok(vec![other.integer()?]),
        }
    }
}

fn stack_values(parts: Vec<Value>) -> Result<Tensor, Failure> {
    let tensors = parts.into_iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
    if tensors.is_empty() {
        return Ok(crate::create::zeros(&[0]));
    }
    Ok(crate::manipulate::stack(&tensors.iter().collect::<Vec<_>>(), 0))
}

/// Decodes the value of an argument.
pub(super) fn decode(json: &Json, names: &HashMap<String, Value>) -> Result<Value, Failure> {
    match json {
        Json::Null => Ok(Value::None),
        Json::Bool(b) => Ok(Value::Number(Scalar::Bool(*b))),
        Json::Number(number) => Ok(Value::Number(number_of(number)?)),
        Json::String(text) => Ok(Value::Text(text.clone())),
        Json::Array(parts) => {
            Ok(Value::List(parts.iter().map(|part| decode(part, names)).collect::<Result<_, _>>()?))
        }
        Json::Object(object) => {
            let (Some((tag, body)), 1) = (object.iter().next(), object.len()) else {
                return Err(Failure::missing(format!("the argument {json} is not implemented")));
            };
            tagged(tag, body, names)
        }
    }
}

fn tagged(tag: &str, body: &Json, names: &HashMap<String, Value>) -> Result<Value, Failure> {
    let text = || body.as_str().ok_or_else(|| Failure::value(format!("{tag}: expected text, found {body}")));
    match tag {
        "$" => {
            let name = text()?;
            names
                .get(name)
                .cloned()
                .ok_or_else(|| Failure::new("KeyError", format!("no value named {name:?}")))
        }
        "dt" => Ok(Value::DType(parse_dtype(text()?)?)),
        "t" => match decode(body, names)? {
            Value::List(parts) => Ok(Value::Tuple(parts)),
            _ => Err(Failure::value(format!("t: expected a list, found {body}"))),
        },
        "o" => dictionary(body, names),
        "e" => Ok(Value::Index(Index::Ellipsis)),
        "n" => Ok(Value::Index(Index::NewAxis)),
        "s" => {
            let [start, stop, step] = body.as_array().map(Vec::as_slice).unwrap_or_default() else {
                return Err(Failure::value(format!("a slice is [start, stop, step], found {body}")));
            };
            let part = |json: &Json| match json {
                Json::Null => Ok(None),
                bound => bound.as_i64().map(Some).ok_or_else(|| {
                    Failure::kind(format!("slice indices must be integers or null, found {bound}"))
                }),
            };
            Ok(Value::Index(Index::Slice {
                start: part(start)?,
                stop: part(stop)?,
                step: part(step)?.unwrap_or(1),
            }))
        }
        "i" if number(&serde_json::json!({ tag: body })).is_err() => {
            let large = body.as_str().and_then(LargeInteger::parse).map(Value::Large);
            large.ok_or_else(|| Failure::value(format!("expected a whole number, found {body}")))
        }
        "f" | "c" | "i" => Ok(Value::Number(number(&serde_json::json!({ tag: body }))?)),
        other => Err(Failure::missing(format!("the encoding {other:?} is not implemented"))),
    }
}

/// A dictionary as an object, or as a list of pairs.
fn dictionary(body: &Json, names: &HashMap<String, Value>) -> Result<Value, Failure> {
    let wrong = || Failure::missing(format!("the dictionary {body}: its keys are texts"));
    let entries: Vec<(&str, &Json)> = match body {
        Json::Object(object) => object.iter().map(|(key, value)| (key.as_str(), value)).collect(),
        Json::Array(pairs) => {
            let pair = |pair: &'_ Json| match pair.as_array().map(Vec::as_slice) {
                Some([Json::String(_), _]) => Ok(()),
                _ => Err(wrong()),
            };
            pairs.iter().try_for_each(pair)?;
            pairs.iter().filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?))).collect()
        }
        _ => return Err(wrong()),
    };
    let decoded = entries.into_iter().map(|(key, value)| Ok((key.to_owned(), decode(value, names)?)));
    Ok(Value::Dictionary(decoded.collect::<Result<_, Failure>>()?))
}

pub(super) fn parse_dtype(text: &str) -> Result<DType, Failure> {
    text.parse::<DType>().map_err(|error| Failure::kind(error.to_string()))
}

fn number_of(number: &serde_json::Number) -> Result<Scalar, Failure> {
    if let Some(i) = number.as_i64() {
        return Ok(Scalar::Int(i));
    }
    if let Some(u) = number.as_u64() {
        return Ok(Scalar::Unsigned(u));
    }
    number.as_f64().map(Scalar::Float).ok_or_else(|| Failure::value(format!("number {number}")))
}

/// A number in any of its encodings.
fn number(json: &Json) -> Result<Scalar, Failure> {
    let bad = || Failure::value(format!("expected a number, found {json}"));
    match json {
        Json::Bool(b) => Ok(Scalar::Bool(*b)),
        Json::Number(number) => number_of(number),
        Json::Object(object) => match (object.get("f"), object.get("c"), object.get("i")) {
            (Some(float), ..) => parse_float(float).map(Scalar::Float).ok_or_else(bad),
            (_, Some(Json::Array(parts)), _) => {
                let part = |i: usize| parts.get(i).map_or(Ok(Scalar::Float(0.0)), number);
                Ok(Scalar::Complex(part(0)?.to_f64(), part(1)?.to_f64()))
            }
            (.., Some(Json::String(digits))) => {
                let whole: i128 = digits.parse().map_err(|_| bad())?;
                let small = i64::try_from(whole).map(Scalar::Int);
                small.or_else(|_| u64::try_from(whole).map(Scalar::Unsigned)).map_err(|_| bad())
            }
            _ => Err(bad()),
        },
        _ => Err(bad()),
    }
}

/// `nan`, `inf`, `-inf`, a hexadecimal float, or a decimal one.
fn parse_float(json: &Json) -> Option<f64> {
    let text = match json {
        Json::Number(number) => return number.as_f64(),
        other => other.as_str()?.to_ascii_lowercase(),
    };
    let (sign, bare) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(&text)),
    };
    let Some(hex) = bare.strip_prefix("0x") else {
        return bare.parse::<f64>().ok().map(|value| sign * value);
    };
    let (mantissa, exponent) = hex.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let exponent = exponent.parse::<i32>().ok()? - 4 * fraction.len() as i32;
    // Scaled in two steps, so that subnormal results are rounded once.
    let half = exponent / 2;
    Some(sign * (digits as f64 * 2f64.powi(half)) * 2f64.powi(exponent - half))
}

/// A tensor given with the request; harmless irregularities are added to `warnings`.
pub(super) fn input(json: &Json, folder: &Path, warnings: &mut Vec<String>) -> Result<Tensor, Failure> {
    let dtype = json.get("dtype").and_then(Json::as_str).map(parse_dtype).transpose()?;
    if let Some(literal) = json.get("lit") {
        return literal_tensor(literal, dtype);
    }
    if let Some(raw) = json.get("raw").and_then(Json::as_str) {
        let shape = json.get("shape").and_then(Json::as_array).cloned().unwrap_or_default();
        let extent = |json: &Json| json.as_u64().map(|extent| extent as usize);
        let shape: Option<Vec<usize>> = shape.iter().map(extent).collect();
        let shape = shape.ok_or_else(|| Failure::value("negative dimensions are not allowed"))?;
        let dtype = dtype.ok_or_else(|| Failure::value("raw input without dtype"))?;
        return raw_tensor(raw, dtype, &shape);
    }
    // A name with `://` in it is that of a file as well: programs reach no servers.
    let path = |file: &str| Path::new(".").join(folder).join(file);
    if let Some(file) = json.get("zarr").and_then(Json::as_str) {
        return Ok(crate::zarr::open(path(file))?.tensor());
    }
    if let Some(file) = json.get("hdf5").and_then(Json::as_str) {
        let dataset = json.get("dataset").and_then(Json::as_str);
        let dataset =
            dataset.ok_or_else(|| Failure::value("an input of HDF5 needs \"dataset\", its path"))?;
        return dataset_tensor(&path(file), dataset);
    }
    if let Some(file) = json.get("npy").and_then(Json::as_str) {
        let found = crate::npy::open(path(file))?;
        if found.extra_bytes() != 0 {
            warnings.push(format!("{file}: {} bytes behind the elements are not read", found.extra_bytes()));
        }
        return Ok(found.tensor());
    }
    Err(Failure::missing(format!("the input {json} is not implemented")))
}

#[cfg(feature = "hdf5")]
fn dataset_tensor(path: &Path, dataset: &str) -> Result<Tensor, Failure> {
    Ok(crate::hdf5::open(path, dataset)?.tensor())
}

#[cfg(not(feature = "hdf5"))]
fn dataset_tensor(_: &Path, _: &str) -> Result<Tensor, Failure> {
    Err(Failure::missing("HDF5 is not read without the feature hdf5"))
}

fn literal_tensor(json: &Json, dtype: Option<DType>) -> Result<Tensor, Failure> {
    let (mut shape, mut numbers) = (Vec::new(), Vec::new());
    flatten(json, 0, &mut shape, &mut numbers)?;
    let natural = |numbers: &[Scalar]| {
        let dtypes = numbers.iter().map(|number| number.dtype());
        dtypes.reduce(tharsis_kernels::promote).unwrap_or(DType::F64)
    };
    let dtype = dtype.unwrap_or_else(|| natural(&numbers));
    numbers.iter().try_for_each(|number| check_number(*number, dtype))?;
    with_element!(dtype, T => {
        let elements: Vec<T> = numbers.into_iter().map(T::from_scalar).collect();
        Ok(Tensor::from_elements(&shape, &elements))
    })
}

fn flatten(
    json: &Json,
    depth: usize,
    shape: &mut Vec<usize>,
    numbers: &mut Vec<Scalar>,
) -> Result<(), Failure> {
    let Json::Array(parts) = json else {
        if depth != shape.len() {
            return Err(Failure::value("the literal is not rectangular"));
        }
        numbers.push(number(json)?);
        return Ok(());
    };
    if shape.len() == depth && numbers.is_empty() {
        shape.push(parts.len());
    } else if shape.get(depth) != Some(&parts.len()) {
        return Err(Failure::value("the literal is not rectangular"));
    }
    parts.iter().try_for_each(|part| flatten(part, depth + 1, shape, numbers))
}

fn raw_tensor(text: &str, dtype: DType, shape: &[usize]) -> Result<Tensor, Failure> {
    let bytes = decode_base64(text).ok_or_else(|| Failure::value("raw input is not base64"))?;
    let expected = tharsis_graph::shape::element_count(shape) as usize * dtype.size_bytes();
    if bytes.len() != expected {
        return Err(Failure::value(format!(
            "raw input has {} bytes, its shape needs {expected}",
            bytes.len()
        )));
    }
    let mut data = Buffer::zeroed(expected);
    data.elements_mut::<u8>()[..expected].copy_from_slice(&bytes);
    Ok(Tensor::from_chunk(Chunk::contiguous(dtype, shape, data).map_err(tharsis_graph::Error::from)?))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for byte in text.bytes().filter(|&byte| byte != b'=') {
        let value = ALPHABET.iter().position(|&letter| letter == byte)? as u32;
        bits = bits << 6 | value;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

pub(super) fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for i in 0..4 {
            let letter = ALPHABET[(word >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= group.len() { letter as char } else { '=' });
        }
    }
    text
}

/// Refuses numbers of nested lists that a dtype cannot hold, as NumPy does when it makes an array of them.
///
/// # Errors
/// As [`check_number`].
pub(super) fn check_numbers(value: &Value, dtype: DType) -> Result<(), Failure> {
    match value {
        Value::Number(number) => check_number(*number, dtype),
        Value::List(parts) | Value::Tuple(parts) => {
            parts.iter().try_for_each(|part| check_numbers(part, dtype))
        }
        _ => Ok(()),
    }
}
