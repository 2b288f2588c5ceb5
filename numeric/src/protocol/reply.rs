//! Results as JSON.

use super::Failure;
use super::value::{Value, encode_base64};
use crate::index::Index;
use crate::tensor::Tensor;
use serde_json::{Value as Json, json};
use tharsis_graph::Resident;
use tharsis_kernels::{Chunk, Element, Scalar, with_element};

/// A value as JSON; its tensors are taken from `results` in order.
pub(super) fn encode(
    value: &Value,
    results: &mut impl Iterator<Item = Resident>,
    raw: bool,
) -> Result<Json, Failure> {
    Ok(match value {
        Value::None => Json::Null,
        Value::Number(scalar) => number(*scalar),
        Value::Text(text) => json!(text),
        Value::DType(dtype) => json!({"dt": dtype.name()}),
        Value::Index(Index::At(at)) => json!(at),
        Value::Index(_) => return Err(Failure::missing("an index expression as a result")),
        Value::Tuple(parts) => {
            let parts = parts.iter().map(|part| encode(part, results, raw)).collect::<Result<Vec<_>, _>>()?;
            json!({"t": parts})
        }
        Value::Tensor(_) => {
            let resident = results.next().ok_or_else(|| Failure::new("Internal", "a result is missing"))?;
            let tensor = Tensor::apply(resident, &[])?;
            json!({"arr": array(&tensor.to_chunk(crate::run::default_executor())?, raw)?})
        }
    })
}

fn array(chunk: &Chunk, raw: bool) -> Result<Json, Failure> {
    let mut array = json!({"dtype": chunk.dtype().typestr(), "shape": chunk.shape()});
    with_element!(chunk.dtype(), T => {
        let elements = chunk.to_vec::<T>().map_err(tharsis_graph::Error::from)?;
        if raw {
            array["raw"] = json!(encode_base64(bytemuck::cast_slice(&elements)));
        } else {
            let mut numbers = elements.iter().map(|x| number(x.to_scalar()));
            array["lit"] = nest(chunk.shape(), &mut numbers);
        }
    });
    Ok(array)
}

fn nest(shape: &[usize], numbers: &mut impl Iterator<Item = Json>) -> Json {
    match shape {
        [] => numbers.next().unwrap_or(Json::Null),
        [extent, inner @ ..] => (0..*extent).map(|_| nest(inner, numbers)).collect(),
    }
}

fn number(scalar: Scalar) -> Json {
    match scalar {
        Scalar::Bool(b) => json!(b),
        Scalar::Int(i) => json!(i),
        Scalar::Unsigned(u) => json!(u),
        Scalar::Float(x) if x.is_finite() => json!(x),
        Scalar::Float(x) if x.is_nan() => json!({"f": "nan"}),
        Scalar::Float(x) => json!({"f": if x < 0.0 { "-inf" } else { "inf" }}),
        Scalar::Complex(re, im) => json!({"c": [number(Scalar::Float(re)), number(Scalar::Float(im))]}),
    }
}
