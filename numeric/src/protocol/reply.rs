//! Results as JSON, large ones as files.

use super::Failure;
use super::context::Context;
use super::value::{Value, encode_base64};
use crate::index::Index;
use crate::tensor::Tensor;
use serde_json::{Value as Json, json};
use std::path::Path;
use tharsis_graph::{Error as GraphError, Resident};
use tharsis_kernels::{Chunk, DType, Element, Scalar, with_element};

/// Results with more bytes go to files, if the request names a folder.
pub const INLINE_BYTES_MAX: usize = 64 << 10;

/// Turns values into JSON; their tensors are taken from the results in order.
pub(super) struct Encoder<'a> {
    results: std::vec::IntoIter<Resident>,
    context: &'a Context,
    files: usize,
}

impl<'a> Encoder<'a> {
    pub fn new(results: Vec<Resident>, context: &'a Context) -> Encoder<'a> {
        Encoder { results: results.into_iter(), context, files: 0 }
    }

    pub fn encode(&mut self, name: &str, value: &Value) -> Result<Json, Failure> {
        Ok(match value {
            Value::None => Json::Null,
            Value::Number(scalar) => number(*scalar),
            Value::Large(number) => json!({"i": number.to_string()}),
            Value::Text(text) => json!(text),
            Value::DType(dtype) => json!({"dt": dtype.name()}),
            Value::Index(Index::At(at)) => json!(at),
            Value::Index(_) => return Err(Failure::missing("an index expression as a result")),
            Value::Generator(_) => return Err(Failure::missing("a generator as a result")),
            Value::Object(object) => {
                return Err(Failure::missing(format!("an object as a result: {object:?}")));
            }
            Value::List(parts) | Value::Tuple(parts) => json!({"t": self.parts(name, parts)?}),
            Value::Fields(names, parts) => json!({"t": self.parts(name, parts)?, "names": names}),
            Value::Dictionary(entries) => {
                let encoded = entries.iter().map(|(key, value)| Ok(json!([key, self.encode(name, value)?])));
                json!({"o": encoded.collect::<Result<Vec<Json>, Failure>>()?})
            }
            Value::Tensor(_) => self.next(name)?,
            Value::Sparse(matrix) => {
                let [row, col, data] = [self.next(name)?, self.next(name)?, self.next(name)?];
                json!({"coo": {"shape": matrix.shape(), "row": row, "col": col, "data": data}})
            }
        })
    }

    /// The next tensor of the results.
    fn next(&mut self, name: &str) -> Result<Json, Failure> {
        let resident = self.results.next().ok_or_else(|| Failure::new("Internal", "a result is missing"))?;
        let tensor = Tensor::apply(resident, &[]);
        Ok(json!({"arr": self.array(name, &tensor.to_chunk(&*self.context.executor)?)?}))
    }

    fn parts(&mut self, name: &str, parts: &[Value]) -> Result<Vec<Json>, Failure> {
        parts.iter().map(|part| self.encode(name, part)).collect()
    }

    fn array(&mut self, name: &str, chunk: &Chunk) -> Result<Json, Failure> {
        let mut array = json!({"dtype": chunk.dtype().typestr(), "shape": chunk.shape()});
        let bytes = chunk.shape().iter().product::<usize>() * chunk.dtype().size_bytes();
        match &self.context.results {
            Some(folder) if INLINE_BYTES_MAX < bytes && chunk.dtype() != DType::BF16 => {
                let file = format!("{}.{}.npy", file_stem(name), self.files);
                self.files += 1;
                write(folder, &file, chunk)?;
                array["npy"] = json!(file);
            }
            _ => with_element!(chunk.dtype(), T => {
                let elements = chunk.to_vec::<T>().map_err(GraphError::from)?;
                if self.context.raw {
                    array["raw"] = json!(encode_base64(bytemuck::cast_slice(&elements)));
                } else {
                    let mut numbers = elements.iter().map(|x| number(x.to_scalar()));
                    array["lit"] = nest(chunk.shape(), &mut numbers);
                }
            }),
        }
        Ok(array)
    }
}

/// A name of a program as a part of a file's name: it must not lead out of the folder.
fn file_stem(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    name.chars().take(64).map(kept).collect()
}

fn write(folder: &Path, file: &str, chunk: &Chunk) -> Result<(), Failure> {
    let path = folder.join(file);
    let failed = |error: std::io::Error| Failure::new("OSError", format!("{}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    crate::npy::write(&path, chunk).map_err(failed)
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
