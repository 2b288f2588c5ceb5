//! Operands of element-wise functions: a tensor, or a number of the program.

use crate::integer::LargeInteger;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::Full;
use tharsis_kernels::{BinaryOp, Complex, DType, Kind, Scalar, promote, to_complex};

/// An argument of an element-wise function.
///
/// Numbers are *weak*, as Python's are in NumPy: `1` and `1.0` take the dtype of the tensor beside them if it
/// is of their kind or a higher one.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A tensor, with a dtype of its own.
    Tensor(Tensor),
    /// A number.
    Number(Scalar),
    /// A whole number beyond 64 bits, which can only be combined with floats.
    Large(LargeInteger),
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

impl From<LargeInteger> for Operand {
    fn from(number: LargeInteger) -> Operand {
        Operand::Large(number)
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
    /// This operand as a tensor to be combined with one of `dtype`.
    ///
    /// # Errors
    /// `Overflow` if an integer does not fit an integer `dtype`.
    #[track_caller]
    pub(crate) fn beside(self, dtype: DType) -> Tensor {
        match self {
            Operand::Tensor(tensor) => tensor,
            Operand::Number(scalar) => {
                let dtype = weak_dtype(scalar, dtype);
                if !fits(scalar, dtype) {
                    let text = format!("Python integer {scalar} out of bounds for {dtype}");
                    return Tensor::refused(GraphError::Overflow(text), &[]);
                }
                constant(scalar, dtype)
            }
            Operand::Large(_) if dtype.kind() < Kind::Float => Tensor::refused(too_large(), &[]),
            Operand::Large(number) => constant(carry!(nearest(&number)), dtype),
        }
    }

    /// This operand as a tensor on its own.
    #[track_caller]
    pub(crate) fn alone(self) -> Tensor {
        match self {
            Operand::Tensor(tensor) => tensor,
            Operand::Number(scalar) => constant(scalar, scalar.dtype()),
            Operand::Large(_) => Tensor::refused(too_large(), &[]),
        }
    }

    /// As [`Operand::beside`], for the function `op`: if it computes integers as floats or truth values, the
    /// number need not fit the integer dtype.
    #[track_caller]
    fn beside_in(self, op: BinaryOp, dtype: DType) -> Tensor {
        let computed = op.signature(dtype, dtype).map_or(dtype, |signature| signature.args);
        let converted = dtype.is_integer() && !computed.is_integer();
        match self {
            Operand::Number(scalar @ (Scalar::Int(_) | Scalar::Unsigned(_))) if converted => {
                constant(scalar, computed)
            }
            Operand::Large(number) if computed.is_float() => constant(carry!(nearest(&number)), computed),
            other => other.beside(dtype),
        }
    }

    /// The common dtype of this operand and one of `dtype`.
    pub(crate) fn joined(&self, dtype: DType) -> DType {
        match self {
            Operand::Tensor(tensor) => tensor.dtype().map_or(dtype, |own| promote(own, dtype)),
            Operand::Number(scalar) => promote(weak_dtype(*scalar, dtype), dtype),
            Operand::Large(_) => dtype,
        }
    }

    /// The dtype of a tensor operand without an error.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self {
            Operand::Tensor(tensor) => tensor.dtype().ok(),
            Operand::Number(_) | Operand::Large(_) => None,
        }
    }
}

/// Both operands as tensors; a number takes its dtype from the other operand.
#[track_caller]
pub(crate) fn pair(a: Operand, b: Operand) -> (Tensor, Tensor) {
    match (a.dtype(), b.dtype()) {
        (Some(dtype), _) => (a.alone(), b.beside(dtype)),
        (None, Some(dtype)) => (a.beside(dtype), b.alone()),
        (None, None) => (a.alone(), b.alone()),
    }
}

/// As [`pair`], for the function `op`.
#[track_caller]
pub(crate) fn pair_in(op: BinaryOp, a: Operand, b: Operand) -> (Tensor, Tensor) {
    match (a.dtype(), b.dtype()) {
        // The exponent is an integer for every float dtype.
        _ if op == BinaryOp::Ldexp => (a.alone(), b.alone()),
        (Some(dtype), None) => (a.alone(), b.beside_in(op, dtype)),
        (None, Some(dtype)) => (a.beside_in(op, dtype), b.alone()),
        _ => pair(a, b),
    }
}

/// Whether a whole number is beyond the range of the integer `dtype`.
pub(crate) fn is_beyond(number: &Operand, dtype: Option<DType>) -> bool {
    let Some(dtype) = dtype else { return false };
    match number {
        Operand::Number(scalar) => dtype.is_integer() && !fits(*scalar, dtype),
        Operand::Large(_) => dtype.is_integer(),
        Operand::Tensor(_) => false,
    }
}

/// Whether a number is negative.
pub(crate) fn is_below(number: &Operand) -> bool {
    match number {
        Operand::Number(scalar) => scalar.to_f64() < 0.0,
        Operand::Large(number) => number.is_negative(),
        Operand::Tensor(_) => false,
    }
}

fn nearest(number: &LargeInteger) -> Result<Scalar, GraphError> {
    let nearest = number.to_f64().map(Scalar::Float);
    nearest.ok_or_else(|| GraphError::Overflow("int too large to convert to float".to_owned()))
}

fn too_large() -> GraphError {
    GraphError::Overflow("Python int too large to convert to C long".to_owned())
}

#[track_caller]
fn constant(value: Scalar, dtype: DType) -> Tensor {
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

/// Whether `dtype` holds an integer; floats always do.
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
pub(crate) fn cast(tensor: &Tensor, dtype: DType) -> Tensor {
    if tensor.dtype().is_ok_and(|own| own == dtype) {
        return tensor.clone();
    }
    Tensor::apply(tharsis_graph::ops::Cast(dtype), &[tensor])
}
