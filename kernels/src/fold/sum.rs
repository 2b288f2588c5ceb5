//! Sums, products and counts.

use super::{Accumulate, stretch};
use crate::chunk::Chunk;
use crate::cpu::{self, Kernel, Level};
use crate::dtype::{DType, Kind};
use crate::element::Bool;
use crate::error::KernelError;
use crate::ufunc::{Arg, Number, Operand};
use num_complex::Complex;

/// Running sum that keeps the rounding errors (compensated summation).
pub(crate) trait Compensated: Number {
    /// The rounded `sum + x`, and its rounding error.
    fn add_exactly(sum: Self, x: Self) -> (Self, Self);
    /// The sum corrected by the accumulated rounding error.
    fn restore(sum: Self, lost: Self) -> Self;
    /// Whether a part is NaN.
    fn has_nan(self) -> bool;
}

macro_rules! exact {
    ($($t:ty),*) => {$(
        impl Compensated for $t {
            #[inline(always)]
            fn add_exactly(sum: $t, x: $t) -> ($t, $t) { (sum.plus(x), 0) }
            #[inline(always)]
            fn restore(sum: $t, _: $t) -> $t { sum }
            fn has_nan(self) -> bool { false }
        }
    )*};
}
exact!(i64, u64);

impl Compensated for f64 {
    #[inline(always)]
    fn add_exactly(sum: f64, x: f64) -> (f64, f64) {
        let total = sum + x;
        let back = total - sum;
        (total, (sum - (total - back)) + (x - back))
    }

    #[inline(always)]
    fn restore(sum: f64, lost: f64) -> f64 {
        // If the sum is infinite, `lost` is NaN and must be ignored.
        if lost.is_nan() { sum } else { sum + lost }
    }

    fn has_nan(self) -> bool {
        self.is_nan()
    }
}

impl Compensated for Complex<f64> {
    #[inline(always)]
    fn add_exactly(sum: Self, x: Self) -> (Self, Self) {
        let (re, lost_re) = f64::add_exactly(sum.re, x.re);
        let (im, lost_im) = f64::add_exactly(sum.im, x.im);
        (Complex::new(re, im), Complex::new(lost_re, lost_im))
    }

    #[inline(always)]
    fn restore(sum: Self, lost: Self) -> Self {
        Complex::new(f64::restore(sum.re, lost.re), f64::restore(sum.im, lost.im))
    }

    fn has_nan(self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }
}

/// Number of running sums into which a block is added.
pub(crate) const LANES: usize = 32;

struct BlockSum<'a, T>(&'a [T]);

impl<T: Number> Kernel for BlockSum<'_, T> {
    type Output = T;
    const LEVEL: Level = level_of_lanes(T::DTYPE);

    #[inline(always)]
    fn run(self) -> T {
        let mut lanes = [T::ZERO; LANES];
        let mut blocks = self.0.chunks_exact(LANES);
        for block in &mut blocks {
            for (lane, &x) in lanes.iter_mut().zip(block) {
                *lane = lane.plus(x);
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(blocks.remainder()) {
            *lane = lane.plus(x);
        }
        add_lanes(lanes)
    }
}

/// The best level for a loop that folds a block into lanes. Integers of 32 and 64 bits take 17 times as long
/// in the loops that the compiler (1.95) makes with 512 bits as in those with 256.
const fn level_of_lanes(dtype: DType) -> Level {
    match dtype.kind() {
        Kind::Bool | Kind::Signed | Kind::Unsigned => Level::Avx2,
        Kind::Float | Kind::Complex => Level::Avx512,
    }
}

/// The sum of all lanes, as a tree.
#[inline(always)]
pub(crate) fn add_lanes<T: Number>(mut lanes: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = lanes[i].plus(lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The sum of a block that fits the cache, in 32 lanes that are added up as a tree.
#[inline]
pub(crate) fn block_sum<T: Number>(block: &[T]) -> T {
    cpu::dispatch(BlockSum(block))
}

/// Running sums, one per slot.
pub(super) struct Sum<T> {
    sum: Vec<T>,
    lost: Vec<T>,
}

impl<T: Compensated> Sum<T> {
    pub(super) fn new(slots: usize) -> Sum<T> {
        Sum { sum: vec![T::ZERO; slots], lost: vec![T::ZERO; slots] }
    }
}

struct AddRow<'a, T> {
    sum: &'a mut [T],
    lost: &'a mut [T],
    row: &'a [T],
}

impl<T: Compensated> Kernel for AddRow<'_, T> {
    type Output = ();
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        for ((sum, lost), &x) in self.sum.iter_mut().zip(self.lost).zip(self.row) {
            let (total, rest) = T::add_exactly(*sum, x);
            *sum = total;
            *lost = lost.plus(rest);
        }
    }
}

impl<T: Compensated> Accumulate for Sum<T> {
    fn is_watched(&self) -> bool {
        !T::DTYPE.is_integer()
    }

    fn is_compensated(&self) -> bool {
        true
    }

    fn any_nan(&self, arg: Option<(Operand<'_>, usize)>) -> bool {
        match arg.map(|(arg, len)| arg.arg::<T>(len)) {
            None => self.sum.iter().any(|sum| sum.has_nan()),
            Some(Arg::Block(block)) => block.iter().any(|x| x.has_nan()),
            Some(Arg::One(x)) => x.has_nan(),
        }
    }

    fn add_float(&mut self, slot: usize, value: f64) {
        let (total, rest) = T::add_exactly(self.sum[slot], T::from_scalar(value.into()));
        self.sum[slot] = total;
        self.lost[slot] = self.lost[slot].plus(rest);
    }

    fn segment(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let (total, rest) = T::add_exactly(self.sum[slot], block_sum(stretch::<T>(args[0], at, len)));
        self.sum[slot] = total;
        self.lost[slot] = self.lost[slot].plus(rest);
    }

    fn rowwise(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let row = stretch(args[0], at, len);
        let (sum, lost) = (&mut self.sum[slot..slot + len], &mut self.lost[slot..slot + len]);
        cpu::dispatch(AddRow { sum, lost, row });
    }

    fn finish(self: Box<Self>, shape: &[usize]) -> Result<Vec<Chunk>, KernelError> {
        let total: Vec<T> =
            self.sum.iter().zip(&self.lost).map(|(&sum, &lost)| T::restore(sum, lost)).collect();
        Ok(vec![Chunk::from_elements(shape, &total)?])
    }
}

/// Running products, one per slot.
pub(super) struct Prod<T>(Vec<T>);

impl<T: Number> Prod<T> {
    pub(super) fn new(slots: usize) -> Prod<T> {
        Prod(vec![T::ONE; slots])
    }
}

impl<T: Number> Accumulate for Prod<T> {
    fn is_watched(&self) -> bool {
        !T::DTYPE.is_integer()
    }

    fn segment(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        // Four lanes break the dependency chain of the multiplications.
        let mut lanes = [T::ONE; 4];
        for (i, &x) in stretch::<T>(args[0], at, len).iter().enumerate() {
            lanes[i % 4] = lanes[i % 4].times(x);
        }
        let product = lanes[0].times(lanes[1]).times(lanes[2].times(lanes[3]));
        self.0[slot] = self.0[slot].times(product);
    }

    fn rowwise(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let row = stretch::<T>(args[0], at, len);
        self.0[slot..].iter_mut().zip(row).for_each(|(product, &x)| *product = product.times(x));
    }

    fn finish(self: Box<Self>, shape: &[usize]) -> Result<Vec<Chunk>, KernelError> {
        Ok(vec![Chunk::from_elements(shape, &self.0)?])
    }
}

/// Running counts of true elements, one per slot.
pub(super) struct Count(Vec<i64>);

impl Count {
    pub(super) fn new(slots: usize) -> Count {
        Count(vec![0; slots])
    }
}

struct CountBlock<'a>(&'a [Bool]);

impl Kernel for CountBlock<'_> {
    type Output = i64;

    #[inline(always)]
    fn run(self) -> i64 {
        // Counts in bytes as long as they cannot overflow: 64 at a time, up to 255 rounds.
        let mut total = 0i64;
        for part in self.0.chunks(64 * 255) {
            let mut lanes = [0u8; 64];
            let mut rows = part.chunks_exact(64);
            for row in &mut rows {
                lanes.iter_mut().zip(row).for_each(|(lane, b)| *lane += b.0);
            }
            total += lanes.iter().map(|&lane| i64::from(lane)).sum::<i64>();
            total += rows.remainder().iter().map(|b| i64::from(b.0)).sum::<i64>();
        }
        total
    }
}

impl Accumulate for Count {
    fn segment(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        self.0[slot] += cpu::dispatch(CountBlock(stretch(args[0], at, len)));
    }

    fn rowwise(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let row = stretch::<Bool>(args[0], at, len);
        self.0[slot..].iter_mut().zip(row).for_each(|(count, b)| *count += i64::from(b.0));
    }

    fn finish(self: Box<Self>, shape: &[usize]) -> Result<Vec<Chunk>, KernelError> {
        Ok(vec![Chunk::from_elements(shape, &self.0)?])
    }
}
