//! Choice of the loop of a function of two arguments, by dtype.

use super::BinaryOp;
use super::functions as f;
use super::map::{Arg, BinaryFn, Map2, Operand};
use super::number::Integer;
use crate::chunk::Buffer;
use crate::cpu;
use crate::dtype::{DType, Kind};
use crate::element::{Bool, Element};
use crate::error::KernelError;
use num_complex::Complex;

macro_rules! by_dtype {
    ($call:ident, $f:ty: $($dtype:ident => $t:ty),*) => {
        match $call.dtype {
            $(DType::$dtype => $call.map::<$t, $f>(),)*
            _ => $call.refuse(),
        }
    };
}
macro_rules! everything {
    ($call:ident, $f:ty) => {
        by_dtype!($call, $f: Bool => Bool, I8 => i8, I16 => i16, I32 => i32, I64 => i64, U8 => u8, U16 => u16,
            U32 => u32, U64 => u64, F32 => f32, F64 => f64, C64 => Complex<f32>, C128 => Complex<f64>)
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

/// Applies `op` to the first `n` elements of `a` and `b`, both of the compute dtype of the op's signature.
pub(crate) fn run_binary(
    op: BinaryOp,
    dtype: DType,
    [a, b]: [Operand<'_>; 2],
    out: &mut Buffer,
    n: usize,
) -> Result<(), KernelError> {
    let mut call = Call { op, dtype, a, b, out, n };
    match op {
        BinaryOp::Equal => everything!(call, f::Equal),
        BinaryOp::NotEqual => everything!(call, f::NotEqual),
        BinaryOp::Less => everything!(call, f::Less),
        BinaryOp::LessEqual => everything!(call, f::LessEqual),
        BinaryOp::Greater => everything!(call, f::Greater),
        BinaryOp::GreaterEqual => everything!(call, f::GreaterEqual),
        BinaryOp::Add => everything!(call, f::Add),
        BinaryOp::Subtract => everything!(call, f::Subtract),
        BinaryOp::Multiply => everything!(call, f::Multiply),
        BinaryOp::Maximum => everything!(call, f::Maximum),
        BinaryOp::Minimum => everything!(call, f::Minimum),
        BinaryOp::Fmax => everything!(call, f::Fmax),
        BinaryOp::Fmin => everything!(call, f::Fmin),
        _ => match dtype.kind() {
            Kind::Bool => call.on_bool(),
            Kind::Signed | Kind::Unsigned => call.on_integers(),
            Kind::Float => call.on_floats(),
            Kind::Complex => call.on_complex(),
        },
    }
}

struct Call<'a> {
    op: BinaryOp,
    dtype: DType,
    a: Operand<'a>,
    b: Operand<'a>,
    out: &'a mut Buffer,
    n: usize,
}

impl Call<'_> {
    fn map<T: Element, F: BinaryFn<T>>(&mut self) -> Result<(), KernelError> {
        let out = &mut self.out.elements_mut::<F::Out>()[..self.n];
        cpu::dispatch(Map2::<T, F> { a: self.a.arg(self.n), b: self.b.arg(self.n), out });
        Ok(())
    }

    fn refuse(&self) -> Result<(), KernelError> {
        Err(KernelError::NoLoop { function: self.op.name(), dtypes: vec![self.dtype] })
    }

    fn on_bool(&mut self) -> Result<(), KernelError> {
        use BinaryOp::*;
        match self.op {
            LogicalAnd | BitwiseAnd => self.map::<Bool, f::Multiply>(),
            LogicalOr | BitwiseOr => self.map::<Bool, f::Add>(),
            LogicalXor | BitwiseXor => self.map::<Bool, f::Subtract>(),
            _ => self.refuse(),
        }
    }

    fn on_integers(&mut self) -> Result<(), KernelError> {
        use BinaryOp::*;
        match self.op {
            BitwiseAnd => integers!(self, f::BitAnd),
            BitwiseOr => integers!(self, f::BitOr),
            BitwiseXor => integers!(self, f::BitXor),
            FloorDivide => integers!(self, f::IntFloorDivide),
            Fmod => integers!(self, f::IntFmod),
            Gcd => integers!(self, f::Gcd),
            Lcm => integers!(self, f::Lcm),
            LeftShift => integers!(self, f::ShiftLeft),
            Power => self.integer_power(),
            Remainder => integers!(self, f::IntRemainder),
            RightShift => integers!(self, f::ShiftRight),
            _ => self.refuse(),
        }
    }

    fn on_floats(&mut self) -> Result<(), KernelError> {
        use BinaryOp::*;
        match self.op {
            Arctan2 => floats!(self, f::Arctan2),
            Copysign => floats!(self, f::Copysign),
            Divide => floats!(self, f::Divide),
            FloorDivide => floats!(self, f::FloorDivide),
            Fmod => floats!(self, f::Fmod),
            FromParts => floats!(self, f::FromParts),
            Heaviside => floats!(self, f::Heaviside),
            Hypot => floats!(self, f::Hypot),
            KlDiv => floats!(self, f::KlDiv),
            Ldexp => floats!(self, f::Ldexp),
            Logaddexp => floats!(self, f::Logaddexp),
            Logaddexp2 => floats!(self, f::Logaddexp2),
            Nextafter => floats!(self, f::Nextafter),
            NextafterHalf => floats!(self, f::NextafterHalf),
            Power => floats!(self, f::Power),
            RelEntr => floats!(self, f::RelEntr),
            Remainder => floats!(self, f::Remainder),
            Xlog1py => floats!(self, f::Xlog1py),
            Xlogy => floats!(self, f::Xlogy),
            _ => self.refuse(),
        }
    }

    fn on_complex(&mut self) -> Result<(), KernelError> {
        match (self.op, self.dtype) {
            (BinaryOp::Divide, DType::C64) => self.map::<Complex<f32>, f::Divide>(),
            (BinaryOp::Divide, _) => self.map::<Complex<f64>, f::Divide>(),
            (BinaryOp::Power, DType::C64) => self.map::<Complex<f32>, f::Power>(),
            (BinaryOp::Power, _) => self.map::<Complex<f64>, f::Power>(),
            _ => self.refuse(),
        }
    }

    fn integer_power(&mut self) -> Result<(), KernelError> {
        match self.dtype {
            DType::I8 => self.power::<i8>(),
            DType::I16 => self.power::<i16>(),
            DType::I32 => self.power::<i32>(),
            DType::I64 => self.power::<i64>(),
            DType::U8 => self.power::<u8>(),
            DType::U16 => self.power::<u16>(),
            DType::U32 => self.power::<u32>(),
            _ => self.power::<u64>(),
        }
    }

    fn power<T: Integer>(&mut self) -> Result<(), KernelError> {
        let at = |arg: Arg<'_, T>, i: usize| match arg {
            Arg::Block(values) => values[i],
            Arg::One(value) => value,
        };
        let (a, b) = (self.a.arg::<T>(self.n), self.b.arg::<T>(self.n));
        for (i, out) in self.out.elements_mut::<T>()[..self.n].iter_mut().enumerate() {
            *out = at(a, i).power(at(b, i)).ok_or_else(|| {
                KernelError::Value("integers to negative integer powers are not allowed".to_owned())
            })?;
        }
        Ok(())
    }
}
