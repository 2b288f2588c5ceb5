//! Element-wise programs without a kernel of their own, each compared with a loop by hand.
//!
//! The loop by hand is one pass in registers, compiled for the same vector instructions, on as many threads.
//! It computes the same random numbers in the same way and the exponential with the same function, so the
//! ratio is that of the evaluation alone. `axpb` compares the random numbers with another generator.

use super::tensor_floors::on_threads;
use super::tensors::{THREADS, compare, expect};
use super::{Measurement, Options};
use anyhow::Result;
use std::marker::PhantomData;
use tharsis_kernels::cpu::{Kernel, dispatch};
use tharsis_kernels::{DType, Key, vector_exp};
use tharsis_numeric::Tensor;
use tharsis_numeric::random::default_rng;

const MEMORY_BYTES: u64 = 1_000_000_000;

/// `sqrt((x + 1) * 3 - y)`, added up.
pub fn sqrt(options: &Options) -> Result<Measurement> {
    root::<f64>("sqrt", options)
}

/// `sqrt((x + 1) * 3 - y)` of float32, added up.
pub fn sqrt_f32(options: &Options) -> Result<Measurement> {
    root::<f32>("sqrt-f32", options)
}

/// The largest of `abs(x - y)`.
pub fn max_abs(options: &Options) -> Result<Measurement> {
    largest_difference::<f64>("max-abs", options)
}

/// The largest of `abs(x - y)` of float32.
pub fn max_abs_f32(options: &Options) -> Result<Measurement> {
    largest_difference::<f32>("max-abs-f32", options)
}

/// `exp(-x * x)`, added up.
pub fn exp(options: &Options) -> Result<Measurement> {
    bell::<f64>("exp", options)
}

/// `exp(-x * x)` of float32, added up.
pub fn exp_f32(options: &Options) -> Result<Measurement> {
    bell::<f32>("exp-f32", options)
}

fn root<T: Float>(name: &str, options: &Options) -> Result<Measurement> {
    // No argument of the root is negative.
    let job = || {
        ((operand::<T>(1, options.size) + 1.0) * 3.0).subtract(operand::<T>(2, options.size)).sqrt().sum(..)
    };
    measure::<T, Root, 32>(name, options, job, (1.986_52, 1e-3))
}

fn largest_difference<T: Float>(name: &str, options: &Options) -> Result<Measurement> {
    let job = || operand::<T>(1, options.size).subtract(operand::<T>(2, options.size)).abs().max(..);
    measure::<T, Difference, 32>(name, options, job, (1.0, 2e-3))
}

fn bell<T: Float>(name: &str, options: &Options) -> Result<Measurement> {
    let job = || {
        let x = operand::<T>(1, options.size);
        x.negative().multiply(&x).exp().sum(..)
    };
    measure::<T, Bell, 16>(name, options, job, (0.746_824, 1e-3))
}

fn operand<T: Float>(seed: u64, n: usize) -> Tensor {
    default_rng(seed).random(&[n]).astype(T::DTYPE)
}

/// `LANES` is the number that is fastest for the function.
fn measure<T: Float, F: Function<T>, const LANES: usize>(
    name: &str,
    options: &Options,
    job: impl Fn() -> Tensor,
    (expected, tolerance): (f64, f64),
) -> Result<Measurement> {
    let n = options.size;
    let side = compare(options, MEMORY_BYTES, job, || by_hand::<T, F, LANES>(n))?;
    let scale = if F::IS_SUM { n as f64 } else { 1.0 };
    expect(side.value / scale, expected, tolerance)?;
    expect(by_hand::<T, F, LANES>(n) / scale, expected, tolerance)?;
    Ok(side.measurement(name, n as f64 / 1e6, "Melements/s"))
}

/// A float whose functions of a row are written out.
trait Float: Copy + Send + Sync {
    const DTYPE: DType;
    /// One of the numbers that both sides make.
    fn of(x: f64) -> Self;
    fn root(x: Self, y: Self) -> Self;
    fn difference(x: Self, y: Self) -> Self;
    fn bell(x: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn wide(self) -> f64;
}

macro_rules! float {
    ($t:ty, $dtype:ident) => {
        impl Float for $t {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn of(x: f64) -> $t {
                x as $t
            }
            #[inline(always)]
            fn root(x: $t, y: $t) -> $t {
                ((x + 1.0) * 3.0 - y).sqrt()
            }
            #[inline(always)]
            fn difference(x: $t, y: $t) -> $t {
                (x - y).abs()
            }
            /// Computed in float64, as exponentials of float32 are.
            #[inline(always)]
            fn bell(x: $t) -> $t {
                vector_exp((-x * x) as f64) as $t
            }
            #[inline(always)]
            fn larger(self, other: $t) -> $t {
                if self < other { other } else { self }
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
        }
    };
}
float!(f32, F32);
float!(f64, F64);

/// The function of a row, of one operand or of two, and how its values are reduced.
trait Function<T>: Send + Sync {
    const IS_SUM: bool;
    fn apply(x: impl Fn() -> T, y: impl Fn() -> T) -> T;
}

struct Root;
impl<T: Float> Function<T> for Root {
    const IS_SUM: bool = true;
    #[inline(always)]
    fn apply(x: impl Fn() -> T, y: impl Fn() -> T) -> T {
        T::root(x(), y())
    }
}

struct Difference;
impl<T: Float> Function<T> for Difference {
    const IS_SUM: bool = false;
    #[inline(always)]
    fn apply(x: impl Fn() -> T, y: impl Fn() -> T) -> T {
        T::difference(x(), y())
    }
}

struct Bell;
impl<T: Float> Function<T> for Bell {
    const IS_SUM: bool = true;
    #[inline(always)]
    fn apply(x: impl Fn() -> T, _: impl Fn() -> T) -> T {
        T::bell(x())
    }
}

/// The loop by hand over some of the elements, in blocks: sums are made in float64, as those of the
/// tensors are.
struct ByHand<T, F, const LANES: usize> {
    range: std::ops::Range<u64>,
    function: PhantomData<(T, F)>,
}

impl<T: Float, F: Function<T>, const LANES: usize> Kernel for ByHand<T, F, LANES> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let (x, y) = (Key::new(1, 0), Key::new(2, 0));
        let steps: [u64; LANES] = std::array::from_fn(|lane| Key::scale(lane as u64));
        let mut scaled = Key::scale(self.range.start);
        let mut sums = [0.0; LANES];
        let mut largest = [T::of(0.0); LANES];
        for _ in 0..(self.range.end - self.range.start) / LANES as u64 {
            for lane in 0..LANES {
                let at = scaled.wrapping_add(steps[lane]);
                let value = F::apply(|| T::of(x.uniform_scaled(at)), || T::of(y.uniform_scaled(at)));
                if F::IS_SUM {
                    sums[lane] += value.wide();
                } else {
                    largest[lane] = largest[lane].larger(value);
                }
            }
            scaled = scaled.wrapping_add(Key::scale(LANES as u64));
        }
        if F::IS_SUM { sums.iter().sum() } else { largest.iter().fold(0.0, |most, &x| x.wide().max(most)) }
    }
}

fn by_hand<T: Float, F: Function<T>, const LANES: usize>(n: usize) -> f64 {
    let share = (n / THREADS) as u64;
    let parts = on_threads(THREADS, |thread| {
        dispatch(ByHand::<T, F, LANES> { range: thread * share..(thread + 1) * share, function: PhantomData })
    });
    if F::IS_SUM { parts.iter().sum() } else { parts.iter().copied().fold(0.0, f64::max) }
}
