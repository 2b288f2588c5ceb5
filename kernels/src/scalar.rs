//! One value of any dtype.

use crate::dtype::DType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A number whose dtype is given by its context: a literal of an expression or an element of a result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Complex(f64, f64),
}

impl Scalar {
    /// The dtype that NumPy gives to a Python number of this kind.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Unsigned(_) => DType::U64,
            Scalar::Float(_) => DType::F64,
            Scalar::Complex(..) => DType::C128,
        }
    }

    /// The value as a float; the real part of complex numbers.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::Unsigned(u) => u as f64,
            Scalar::Float(f) | Scalar::Complex(f, _) => f,
        }
    }

    /// The imaginary part; 0 for a real number.
    pub fn imaginary(self) -> f64 {
        match self {
            Scalar::Complex(_, im) => im,
            _ => 0.0,
        }
    }

    /// The value as an integer wide enough for all integer dtypes; floats are truncated.
    pub fn to_i128(self) -> i128 {
        match self {
            Scalar::Bool(b) => i128::from(b),
            Scalar::Int(i) => i128::from(i),
            Scalar::Unsigned(u) => i128::from(u),
            Scalar::Float(f) | Scalar::Complex(f, _) => f as i128,
        }
    }

    /// Whether the value is other than zero.
    pub fn is_true(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Unsigned(u) => u != 0,
            Scalar::Float(f) => f != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }
}

macro_rules! from_number {
    ($($ty:ty => $variant:ident as $wide:ty),*) => {$(
        impl From<$ty> for Scalar {
            fn from(value: $ty) -> Scalar {
                Scalar::$variant(<$wide>::from(value))
            }
        }
    )*};
}
from_number!(bool => Bool as bool, i8 => Int as i64, i16 => Int as i64, i32 => Int as i64, i64 => Int as i64,
    u8 => Unsigned as u64, u16 => Unsigned as u64, u32 => Unsigned as u64, u64 => Unsigned as u64,
    f32 => Float as f64, f64 => Float as f64);

impl From<num_complex::Complex64> for Scalar {
    fn from(value: num_complex::Complex64) -> Scalar {
        Scalar::Complex(value.re, value.im)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Unsigned(u) => write!(f, "{u}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
            Scalar::Complex(re, im) => write!(f, "({re:?}{im:+?}j)"),
        }
    }
}
