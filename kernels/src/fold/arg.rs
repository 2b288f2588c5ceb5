//! Position of the smallest or largest element.

use super::{Accumulate, stretch};
use crate::chunk::Chunk;
use crate::dtype::DType;
use crate::element::Bool;
use crate::error::KernelError;
use crate::ufunc::{Compare, Operand};
use num_complex::Complex;

/// The best value so far and its position, per slot; position -1 while there is none.
struct Arg<T, const MAX: bool> {
    value: Vec<T>,
    position: Vec<i64>,
}

/// An accumulator for any dtype with an order.
pub(super) fn boxed<const MAX: bool>(dtype: DType, slots: usize) -> Option<Box<dyn Accumulate>> {
    fn new<T: Compare, const MAX: bool>(slots: usize) -> Box<dyn Accumulate> {
        Box::new(Arg::<T, MAX> { value: vec![T::zeroed(); slots], position: vec![-1; slots] })
    }
    Some(match dtype {
        DType::Bool => new::<Bool, MAX>(slots),
        DType::I8 => new::<i8, MAX>(slots),
        DType::I16 => new::<i16, MAX>(slots),
        DType::I32 => new::<i32, MAX>(slots),
        DType::I64 => new::<i64, MAX>(slots),
        DType::U8 => new::<u8, MAX>(slots),
        DType::U16 => new::<u16, MAX>(slots),
        DType::U32 => new::<u32, MAX>(slots),
        DType::U64 => new::<u64, MAX>(slots),
        DType::F32 => new::<f32, MAX>(slots),
        DType::F64 => new::<f64, MAX>(slots),
        DType::C64 => new::<Complex<f32>, MAX>(slots),
        DType::C128 => new::<Complex<f64>, MAX>(slots),
        DType::F16 | DType::BF16 => return None,
    })
}

impl<T: Compare, const MAX: bool> Arg<T, MAX> {
    #[inline]
    fn offer(&mut self, slot: usize, value: T, position: i64) {
        let (best, held) = (self.value[slot], self.position[slot]);
        let beats = || if MAX { best.lt(value) } else { value.lt(best) };
        let wins = if held < 0 {
            true
        } else if position < 0 {
            false
        } else if best.is_nan() || value.is_nan() {
            value.is_nan() && (!best.is_nan() || position < held)
        } else {
            beats() || (value == best && position < held)
        };
        if wins {
            self.value[slot] = value;
            self.position[slot] = position;
        }
    }
}

impl<T: Compare, const MAX: bool> Accumulate for Arg<T, MAX> {
    fn segment(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let positions = stretch::<i64>(args[1], at, len);
        for (&value, &position) in stretch::<T>(args[0], at, len).iter().zip(positions) {
            self.offer(slot, value, position);
        }
    }

    fn rowwise(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let positions = stretch::<i64>(args[1], at, len);
        for (i, (&value, &position)) in stretch::<T>(args[0], at, len).iter().zip(positions).enumerate() {
            self.offer(slot + i, value, position);
        }
    }

    fn finish(self: Box<Self>, shape: &[usize]) -> Result<Vec<Chunk>, KernelError> {
        Ok(vec![Chunk::from_elements(shape, &self.value)?, Chunk::from_elements(shape, &self.position)?])
    }
}
