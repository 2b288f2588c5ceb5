//! Choice of the loop of a function of one argument, by dtype.

use super::UnaryOp;
use super::functions as f;
use super::map::{Map1, Operand, UnaryFn};
use super::required::required;
use crate::chunk::Buffer;
use crate::cpu;
use crate::dtype::{DType, Kind};
use crate::element::{Bool, Element};
use crate::error::KernelError;
use num_complex::Complex;

/// Applies `op` to the first `n` elements of `x`, whose dtype is the compute dtype of the op's signature.
pub(crate) fn run_unary(
    op: UnaryOp,
    dtype: DType,
    x: Operand<'_>,
    out: &mut Buffer,
    n: usize,
) -> Result<(), KernelError> {
    let mut call = Call { op, dtype, x, out, n };
    match dtype.kind() {
        Kind::Bool => call.on_bool(),
        Kind::Signed | Kind::Unsigned => call.on_integers(),
        Kind::Float => call.on_floats(),
        Kind::Complex => call.on_complex(),
    }
}

struct Call<'a> {
    op: UnaryOp,
    dtype: DType,
    x: Operand<'a>,
    out: &'a mut Buffer,
    n: usize,
}

macro_rules! by_dtype {
    ($call:ident, $f:ty: $($dtype:ident => $t:ty),*) => {
        match $call.dtype {
            $(DType::$dtype => $call.map::<$t, $f>(),)*
            _ => $call.refuse(),
        }
    };
}
macro_rules! integers {
    ($call:ident, $f:ty) => {
        by_dtype!($call, $f: I8 => i8, I16 => i16, I32 => i32, I64 => i64, U8 => u8, U16 => u16, U32 => u32, U64 => u64)
    };
}
macro_rules! floats {
    ($call:ident, $f:ty) => { by_dtype!($call, $f: F32 => f32, F64 => f64) };
}
macro_rules! complexes {
    ($call:ident, $f:ty) => { by_dtype!($call, $f: C64 => Complex<f32>, C128 => Complex<f64>) };
}

impl Call<'_> {
    fn map<T: Element, F: UnaryFn<T>>(&mut self) -> Result<(), KernelError> {
        let out = &mut self.out.elements_mut::<F::Out>()[..self.n];
        cpu::dispatch(Map1::<T, F> { x: self.x.arg(self.n), out });
        Ok(())
    }

    fn refuse(&self) -> Result<(), KernelError> {
        Err(KernelError::NoLoop { function: self.op.name(), dtypes: vec![self.dtype] })
    }

    fn on_bool(&mut self) -> Result<(), KernelError> {
        use UnaryOp::*;
        match self.op {
            LogicalNot | Invert => self.map::<Bool, BoolNot>(),
            Absolute | Real | Positive | Floor | Ceil | Trunc => self.map::<Bool, Same>(),
            Imag => self.map::<Bool, Nothing>(),
            _ => self.refuse(),
        }
    }

    fn on_integers(&mut self) -> Result<(), KernelError> {
        use UnaryOp::*;
        match self.op {
            Absolute => integers!(self, f::Magnitude),
            BitwiseCount => integers!(self, f::CountOnes),
            Conjugate | Positive | Real | Floor | Ceil | Trunc => integers!(self, Same),
            Imag => integers!(self, Nothing),
            Invert => integers!(self, f::Not),
            Negative => integers!(self, f::Negative),
            Reciprocal => integers!(self, f::IntReciprocal),
            Sign => integers!(self, f::Sign),
            Square => integers!(self, f::Square),
            _ => self.refuse(),
        }
    }

    fn on_floats(&mut self) -> Result<(), KernelError> {
        use UnaryOp::*;
        match self.op {
            Absolute | Fabs => floats!(self, f::Abs),
            Arccos => floats!(self, f::Arccos),
            Arccosh => floats!(self, f::Arccosh),
            Arcsin => floats!(self, f::Arcsin),
            Arcsinh => floats!(self, f::Arcsinh),
            Arctan => floats!(self, f::Arctan),
            Arctanh => floats!(self, f::Arctanh),
            Cbrt => floats!(self, f::Cbrt),
            Ceil => floats!(self, f::Ceil),
            Conjugate | Positive | Real => floats!(self, Same),
            Cos => floats!(self, f::Cos),
            Cosh => floats!(self, f::Cosh),
            Degrees => floats!(self, f::Degrees),
            Entr => floats!(self, f::Entr),
            Erf => floats!(self, f::Erf),
            Erfc => floats!(self, f::Erfc),
            Erfcinv => floats!(self, f::Erfcinv),
            Erfinv => floats!(self, f::Erfinv),
            Exp => floats!(self, f::Exp),
            Exp2 => floats!(self, f::Exp2),
            Expit => floats!(self, f::Expit),
            Expm1 => floats!(self, f::Expm1),
            Floor => floats!(self, f::Floor),
            FrexpExponent => floats!(self, f::FrexpExponent),
            FrexpMantissa => floats!(self, f::FrexpMantissa),
            Gamma => floats!(self, f::Gamma),
            Gammaln => floats!(self, f::Gammaln),
            Gammasgn => floats!(self, f::Gammasgn),
            I0 => floats!(self, f::I0),
            Imag => floats!(self, Nothing),
            Isfinite => floats!(self, f::IsFinite),
            Isinf => floats!(self, f::IsInf),
            Isnan => floats!(self, f::IsNan),
            Log => floats!(self, f::Log),
            Log10 => floats!(self, f::Log10),
            Log1p => floats!(self, f::Log1p),
            Log2 => floats!(self, f::Log2),
            Logit => floats!(self, f::Logit),
            Negative => floats!(self, f::Negative),
            NormalQuantile => floats!(self, f::NormalQuantile),
            Radians => floats!(self, f::Radians),
            Reciprocal => floats!(self, f::Reciprocal),
            RequireFinite | RequireNotInfinite => self.require(),
            Rgamma => floats!(self, f::Rgamma),
            Rint => floats!(self, f::Rint),
            Sign => floats!(self, f::FloatSign),
            Signbit => floats!(self, f::Signbit),
            Sin => floats!(self, f::Sin),
            Sinh => floats!(self, f::Sinh),
            Spacing => floats!(self, f::Spacing),
            SpacingHalf => floats!(self, f::SpacingHalf),
            Sqrt => floats!(self, f::Sqrt),
            Square => floats!(self, f::Square),
            Tan => floats!(self, f::Tan),
            Tanh => floats!(self, f::Tanh),
            Trunc => floats!(self, f::Trunc),
            BitwiseCount | Invert | LogicalNot => self.refuse(),
        }
    }

    fn require(&mut self) -> Result<(), KernelError> {
        let takes_nan = self.op == UnaryOp::RequireNotInfinite;
        match self.dtype {
            DType::F32 => required::<f32>(self.x.arg(self.n), self.out, self.n, takes_nan),
            DType::F64 => required::<f64>(self.x.arg(self.n), self.out, self.n, takes_nan),
            _ => self.refuse(),
        }
    }

    fn on_complex(&mut self) -> Result<(), KernelError> {
        use UnaryOp::*;
        match self.op {
            Absolute => complexes!(self, f::Abs),
            Arccos => complexes!(self, f::Arccos),
            Arccosh => complexes!(self, f::Arccosh),
            Arcsin => complexes!(self, f::Arcsin),
            Arcsinh => complexes!(self, f::Arcsinh),
            Arctan => complexes!(self, f::Arctan),
            Arctanh => complexes!(self, f::Arctanh),
            Conjugate => complexes!(self, f::Conjugate),
            Cos => complexes!(self, f::Cos),
            Cosh => complexes!(self, f::Cosh),
            Exp => complexes!(self, f::Exp),
            Exp2 => complexes!(self, f::Exp2),
            Expm1 => complexes!(self, f::Expm1),
            Imag => complexes!(self, f::ImagPart),
            Isfinite => complexes!(self, f::IsFinite),
            Isinf => complexes!(self, f::IsInf),
            Isnan => complexes!(self, f::IsNan),
            Log => complexes!(self, f::Log),
            Log10 => complexes!(self, f::Log10),
            Log1p => complexes!(self, f::Log1p),
            Log2 => complexes!(self, f::Log2),
            Negative => complexes!(self, f::Negative),
            Positive => complexes!(self, Same),
            Real => complexes!(self, f::RealPart),
            Reciprocal => complexes!(self, f::ComplexReciprocal),
            Rint => complexes!(self, f::Rint),
            Sign => complexes!(self, f::ComplexSign),
            Sin => complexes!(self, f::Sin),
            Sinh => complexes!(self, f::Sinh),
            Sqrt => complexes!(self, f::Sqrt),
            Square => complexes!(self, f::Square),
            Tan => complexes!(self, f::Tan),
            Tanh => complexes!(self, f::Tanh),
            _ => self.refuse(),
        }
    }
}

struct Same;
impl<T: Element> UnaryFn<T> for Same {
    type Out = T;
    #[inline(always)]
    fn apply(x: T) -> T {
        x
    }
}

struct Nothing;
impl<T: Element> UnaryFn<T> for Nothing {
    type Out = T;
    #[inline(always)]
    fn apply(_: T) -> T {
        T::zeroed()
    }
}

struct BoolNot;
impl UnaryFn<Bool> for BoolNot {
    type Out = Bool;
    #[inline(always)]
    fn apply(x: Bool) -> Bool {
        Bool(x.0 ^ 1)
    }
}
