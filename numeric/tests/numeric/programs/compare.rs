//! Comparison of results of tensors with those of the plain evaluator.

use super::plain::{Kind, Plain};
use tharsis_kernels::element::Bool;
use tharsis_kernels::{Chunk, DType};

/// A chunk as a plain array.
pub fn plain_of(chunk: &Chunk) -> Plain {
    let (kind, data) = match chunk.dtype() {
        DType::Bool => (Kind::Bool, chunk.to_vec::<Bool>().unwrap().iter().map(|b| f64::from(b.0)).collect()),
        DType::I64 => (Kind::Int, chunk.to_vec::<i64>().unwrap().iter().map(|x| *x as f64).collect()),
        DType::F64 => (Kind::Float, chunk.to_vec::<f64>().unwrap()),
        other => panic!("programs have no {other}"),
    };
    Plain { kind, shape: chunk.shape().to_vec(), data }
}

/// Whether a result equals that of the plain evaluator, up to rounding.
pub fn is_equal(found: &Plain, expected: &Plain) -> bool {
    let close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-9 * b.abs().max(1.0);
    let same = found.kind == expected.kind && found.shape == expected.shape;
    same && found.data.iter().zip(&expected.data).all(close)
}
