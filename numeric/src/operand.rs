//! What may stand beside a tensor: another tensor, or a number of the program.

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::Full;
use tharsis_kernels::{Complex, DType, Kind, Scalar, to_complex};

/// An argument of an element-wise function.
///
/// Numbers are *weak*, as Python's are in NumPy: `1` and `1.0` take the dtype of the tensor beside them if it is of their
/// kind or a higher one.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A tensor, with a dtype of its own.
    Tensor(Tensor),
    /// A number.
    Number(Scalar),
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl From<$t> for Operand {
            fn from(value: $t) -> Operand {
                Operand::Number(Scalar::from(value))
            }
        }
    )*};
}
numbers!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f64>);

impl From<Scalar> for Operand {
    fn from(value: Scalar) -> Operand {
        Operand::Number(value)
    }
}

impl From<Tensor> for Operand {
    fn from(tensor: Tensor) -> Operand {
        Operand::Tensor(tensor)
    }
}

impl From<&Tensor> for Operand {
    fn from(tensor: &Tensor) -> Operand {
        Operand::Tensor(tensor.clone())
    }
}

impl Operand {
    /// This operand as a tensor beside one of `dtype`.
    ///
    /// # Errors
    /// `Overflow` if an integer does not fit an integer `dtype`.
    #[track_caller]
    pub(crate) fn beside(self, dtype: DType) -> Result<Tensor> {
        match self {
            Operand::Tensor(tensor) => Ok(tensor),
            Operand::Number(scalar) => {
                let dtype = weak_dtype(scalar, dtype);
                if !fits(scalar, dtype) {
                    return Err(Error::here(GraphError::Overflow(format!(
                        "{scalar} is out of bounds for {dtype}"
                    ))));
                }
                constant(scalar, dtype)
            }
        }
    }

    /// This operand as a tensor on its own.
    #[track_caller]
    pub(crate) fn alone(self) -> Result<Tensor> {
        match self {
            Operand::Tensor(tensor) => Ok(tensor),
            Operand::Number(scalar) => constant(scalar, scalar.dtype()),
        }
    }

    /// The dtype of a tensor operand.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self {
            Operand::Tensor(tensor) => Some(tensor.dtype()),
            Operand::Number(_) => None,
        }
    }
}

/// Both operands as tensors, each number beside the other operand.
#[track_caller]
pub(crate) fn pair(a: Operand, b: Operand) -> Result<(Tensor, Tensor)> {
    match (a.dtype(), b.dtype()) {
        (Some(dtype), _) => Ok((a.alone()?, b.beside(dtype)?)),
        (None, Some(dtype)) => Ok((a.beside(dtype)?, b.alone()?)),
        (None, None) => Ok((a.alone()?, b.alone()?)),
    }
}

#[track_caller]
fn constant(value: Scalar, dtype: DType) -> Result<Tensor> {
    Tensor::apply(Full { shape: vec![], value, dtype }, &[])
}

/// The dtype of a weak number beside a tensor of `dtype`.
fn weak_dtype(scalar: Scalar, dtype: DType) -> DType {
    match (scalar, dtype.kind()) {
        (Scalar::Bool(_), _) => DType::Bool,
        (Scalar::Int(_) | Scalar::Unsigned(_), Kind::Bool) => DType::I64,
        (Scalar::Int(_) | Scalar::Unsigned(_), _) => dtype,
        (Scalar::Float(_), Kind::Float | Kind::Complex) => dtype,
        (Scalar::Float(_), _) => DType::F64,
        (Scalar::Complex(..), Kind::Complex) => dtype,
        (Scalar::Complex(..), Kind::Float) => to_complex(dtype),
        (Scalar::Complex(..), _) => DType::C128,
    }
}

fn fits(scalar: Scalar, dtype: DType) -> bool {
    let value = match scalar {
        Scalar::Int(_) | Scalar::Unsigned(_) => scalar.to_i128(),
        _ => return true,
    };
    let bits = dtype.size_bytes() as u32 * 8;
    match dtype.kind() {
        Kind::Unsigned => 0 <= value && value < 1i128 << bits,
        Kind::Signed => -(1i128 << (bits - 1)) <= value && value < 1i128 << (bits - 1),
        _ => true,
    }
}

/// `tensor` in another dtype.
#[track_caller]
pub(crate) fn cast(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    if tensor.dtype() == dtype {
        return Ok(tensor.clone());
    }
    Tensor::apply(tharsis_graph::ops::Cast(dtype), &[tensor])
}
