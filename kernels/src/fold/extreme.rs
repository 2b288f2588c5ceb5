//! Smallest and largest element; also `any` and `all`.

use super::{Accumulate, stretch};
use crate::chunk::Chunk;
use crate::cpu::{self, Kernel, Level};
use crate::dtype::DType;
use crate::element::Bool;
use crate::error::KernelError;
use crate::ufunc::{Compare, Operand};
use num_complex::Complex;

/// The neutral values of extremes.
pub(super) trait Bounded: Compare {
    const LOWEST: Self;
    const HIGHEST: Self;
}

macro_rules! bounded {
    ($($t:ty, $lowest:expr, $highest:expr;)*) => {$(
        impl Bounded for $t {
            const LOWEST: $t = $lowest;
            const HIGHEST: $t = $highest;
        }
    )*};
}
bounded! {
    Bool, Bool(0), Bool(1);
    i8, i8::MIN, i8::MAX; i16, i16::MIN, i16::MAX; i32, i32::MIN, i32::MAX; i64, i64::MIN, i64::MAX;
    u8, 0, u8::MAX; u16, 0, u16::MAX; u32, 0, u32::MAX; u64, 0, u64::MAX;
    f32, f32::NEG_INFINITY, f32::INFINITY; f64, f64::NEG_INFINITY, f64::INFINITY;
    Complex<f32>, Complex::new(f32::NEG_INFINITY, f32::NEG_INFINITY), Complex::new(f32::INFINITY, f32::INFINITY);
    Complex<f64>, Complex::new(f64::NEG_INFINITY, f64::NEG_INFINITY), Complex::new(f64::INFINITY, f64::INFINITY);
}

/// Running extremes, one per slot: the largest if `MAX`, else the smallest.
pub(super) struct Extreme<T, const MAX: bool>(Vec<T>);

impl<T: Bounded, const MAX: bool> Extreme<T, MAX> {
    pub(super) fn new(slots: usize) -> Extreme<T, MAX> {
        Extreme(vec![if MAX { T::LOWEST } else { T::HIGHEST }; slots])
    }
}

/// An accumulator for any dtype with an order.
pub(super) fn boxed<const MAX: bool>(dtype: DType, slots: usize) -> Option<Box<dyn Accumulate>> {
    Some(match dtype {
        DType::Bool => Box::new(Extreme::<Bool, MAX>::new(slots)),
        DType::I8 => Box::new(Extreme::<i8, MAX>::new(slots)),
        DType::I16 => Box::new(Extreme::<i16, MAX>::new(slots)),
        DType::I32 => Box::new(Extreme::<i32, MAX>::new(slots)),
        DType::I64 => Box::new(Extreme::<i64, MAX>::new(slots)),
        DType::U8 => Box::new(Extreme::<u8, MAX>::new(slots)),
        DType::U16 => Box::new(Extreme::<u16, MAX>::new(slots)),
        DType::U32 => Box::new(Extreme::<u32, MAX>::new(slots)),
        DType::U64 => Box::new(Extreme::<u64, MAX>::new(slots)),
        DType::F32 => Box::new(Extreme::<f32, MAX>::new(slots)),
        DType::F64 => Box::new(Extreme::<f64, MAX>::new(slots)),
        DType::C64 => Box::new(Extreme::<Complex<f32>, MAX>::new(slots)),
        DType::C128 => Box::new(Extreme::<Complex<f64>, MAX>::new(slots)),
        DType::F16 | DType::BF16 => return None,
    })
}

/// The larger of two if `MAX`, else the smaller; of equals the first one. The first NaN wins over all
/// numbers.
#[inline(always)]
pub(crate) fn better<T: Compare, const MAX: bool>(a: T, b: T) -> T {
    if MAX { a.larger(b) } else { a.smaller(b) }
}

struct Segment<'a, T, const MAX: bool>(T, &'a [T]);

impl<T: Bounded, const MAX: bool> Kernel for Segment<'_, T, MAX> {
    type Output = T;
    // With 512 bits floats take 1.2 times as long, integers many times.
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) -> T {
        let mut lanes = [self.0; 32];
        let mut blocks = self.1.chunks_exact(32);
        for block in &mut blocks {
            lanes.iter_mut().zip(block).for_each(|(lane, &x)| *lane = better::<T, MAX>(*lane, x));
        }
        let rest = blocks.remainder().iter().fold(self.0, |best, &x| better::<T, MAX>(best, x));
        lanes.iter().fold(rest, |best, &x| better::<T, MAX>(best, x))
    }
}

impl<T: Bounded, const MAX: bool> Accumulate for Extreme<T, MAX> {
    fn segment(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        self.0[slot] = cpu::dispatch(Segment::<T, MAX>(self.0[slot], stretch(args[0], at, len)));
    }

    fn rowwise(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let row = stretch::<T>(args[0], at, len);
        self.0[slot..].iter_mut().zip(row).for_each(|(best, &x)| *best = better::<T, MAX>(*best, x));
    }

    fn finish(self: Box<Self>, shape: &[usize]) -> Result<Vec<Chunk>, KernelError> {
        Ok(vec![Chunk::from_elements(shape, &self.0)?])
    }
}
