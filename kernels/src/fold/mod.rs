//! Reductions of many elements to one, whose partial results per chunk can be folded again.
//!
//! To add one: a variant of [`Fold`], its dtypes in [`Fold::components`], its [`Fold::merge`], and an
//! accumulator (`segment`: a stretch of elements into one slot; `rowwise`: each element of a stretch into its
//! own slot).
//!
//! Sums of floats are pairwise inside a block (32 lanes) and compensated between blocks, so the error does
//! not grow with the number of elements. The order of additions depends on the chunk alone.

mod arg;
mod extreme;
mod moments;
mod sum;

pub(crate) use extreme::better;
pub(crate) use sum::{LANES, add_lanes, block_sum};

use crate::chunk::Chunk;
use crate::cpu::Raised;
use crate::dtype::DType;
use crate::element::Bool;
use crate::error::KernelError;
use crate::layout::{Layout, Run, c_strides};
use crate::ufunc::Operand;
use num_complex::Complex;
use serde::{Deserialize, Serialize};

/// The primitive reductions; others are composed of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fold {
    /// Whether all are true; bool to bool.
    All,
    /// Whether any is true; bool to bool.
    Any,
    /// Position of the largest: (value, int64 position) to the same. Of equals the first one; the first NaN
    /// wins.
    ArgMax,
    /// Position of the smallest: as `ArgMax`.
    ArgMin,
    /// Number of true elements; bool to int64.
    CountTrue,
    /// The largest; NaN if any is.
    Max,
    /// Three parts of a merged variance: (count, mean, sum of squared deviations), all float64.
    MergeMoments,
    /// The smallest; NaN if any is.
    Min,
    /// float64 to (count, mean, sum of squared deviations from the mean).
    Moments,
    /// The product of 64-bit integers, float64 or complex128.
    Prod,
    /// The sum of 64-bit integers, float64 or complex128.
    Sum,
}

impl Fold {
    /// The dtypes of the partial result, one per component, for a first argument of `dtype`.
    pub fn components(self, dtype: DType) -> Vec<DType> {
        match self {
            Fold::All | Fold::Any => vec![DType::Bool],
            Fold::ArgMax | Fold::ArgMin => vec![dtype, DType::I64],
            Fold::CountTrue => vec![DType::I64],
            Fold::Max | Fold::Min | Fold::Prod | Fold::Sum => vec![dtype],
            Fold::MergeMoments | Fold::Moments => vec![DType::F64; 3],
        }
    }

    /// The fold that merges partial results of this one.
    pub fn merge(self) -> Fold {
        match self {
            Fold::CountTrue => Fold::Sum,
            Fold::Moments => Fold::MergeMoments,
            other => other,
        }
    }

    /// NumPy's name of the reduction, for plans.
    pub fn name(self) -> &'static str {
        match self {
            Fold::All => "all",
            Fold::Any => "any",
            Fold::ArgMax => "argmax",
            Fold::ArgMin => "argmin",
            Fold::CountTrue => "count_nonzero",
            Fold::Max => "max",
            Fold::MergeMoments => "merge_moments",
            Fold::Min => "min",
            Fold::Moments => "moments",
            Fold::Prod => "prod",
            Fold::Sum => "sum",
        }
    }
}

/// The slots of a running reduction. Arguments are blocks; `at..at + len` are positions in them.
pub(crate) trait Accumulate {
    /// Folds a stretch of elements into one slot.
    fn segment(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize);
    /// Folds each element of a stretch into its own slot, the first into `slot`.
    fn rowwise(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize);
    /// Whether the arithmetic is that of NumPy, so that the flags of the CPU tell what NumPy would warn of.
    fn is_watched(&self) -> bool {
        false
    }
    /// Whether the compensation of sums may raise `invalid` too. Then `invalid` counts only if a sum has
    /// become NaN.
    fn is_compensated(&self) -> bool {
        false
    }
    /// Whether a slot holds NaN; with an argument, whether one of its first `len` elements is NaN.
    fn any_nan(&self, _arg: Option<(Operand<'_>, usize)>) -> bool {
        false
    }
    /// Adds the sum of a stretch of float64 that was computed elsewhere. Only sums implement it.
    fn add_float(&mut self, _slot: usize, _value: f64) {}
    /// The components, each of `shape`.
    fn finish(self: Box<Self>, shape: &[usize]) -> Result<Vec<Chunk>, KernelError>;
}

/// A reduction over some axes of a task's domain, fed block by block in C order.
pub(crate) struct Folder {
    accumulator: Box<dyn Accumulate>,
    slots: Layout,
    shape: Vec<usize>,
}

impl Folder {
    pub(crate) fn new(
        fold: Fold,
        dtype: DType,
        extents: &[usize],
        axes: &[usize],
    ) -> Result<Folder, KernelError> {
        let mut shape = extents.to_vec();
        axes.iter().for_each(|&axis| shape[axis] = 1);
        let mut strides = c_strides(&shape);
        axes.iter().for_each(|&axis| strides[axis] = 0);
        let accumulator = accumulator(fold, dtype, shape.iter().product())?;
        Ok(Folder { accumulator, slots: Layout::new(extents, &strides, 0), shape })
    }

    /// Folds the elements `start..end` of the domain, which are the first elements of `args`.
    pub(crate) fn feed(&mut self, args: &[Operand<'_>], start: usize, end: usize) {
        let mut at = 0;
        self.slots.for_each_run(start, end, |Run { offset, stride, len }| {
            if stride == 0 || len == 1 {
                self.accumulator.segment(offset as usize, args, at, len);
            } else {
                self.accumulator.rowwise(offset as usize, args, at, len);
            }
            at += len;
        });
    }

    /// The conditions that NumPy would report, of those raised by the CPU while the first `len` elements of
    /// `arg` were folded. An infinite sum makes its compensation NaN, which is no warning. A sum that becomes
    /// NaN without a NaN among the elements is one. If a slot was NaN before, an infinite element in another
    /// slot may give a false warning.
    pub(crate) fn met(&self, raised: Raised, arg: Operand<'_>, len: usize) -> Raised {
        if !raised.any() || !self.accumulator.is_watched() {
            return Raised::default();
        }
        let nan = |arg| self.accumulator.any_nan(arg);
        let invalid = !self.accumulator.is_compensated() || (nan(None) && !nan(Some((arg, len))));
        Raised { invalid: raised.invalid && invalid, ..raised }
    }

    /// Whether all elements go into one slot.
    pub(crate) fn is_total(&self) -> bool {
        self.slots.single_run().is_some_and(|run| run.stride == 0 || run.len == 1)
    }

    /// Folds the first `len` elements of an argument, if all elements go into one slot.
    pub(crate) fn feed_total(&mut self, arg: Operand<'_>, len: usize) {
        self.accumulator.segment(0, &[arg], 0, len);
    }

    /// Adds the sum of a block that was computed elsewhere, if all elements go into one slot.
    pub(crate) fn add_total(&mut self, value: f64) {
        self.accumulator.add_float(0, value);
    }

    pub(crate) fn finish(self) -> Result<Vec<Chunk>, KernelError> {
        self.accumulator.finish(&self.shape)
    }
}

fn accumulator(fold: Fold, dtype: DType, slots: usize) -> Result<Box<dyn Accumulate>, KernelError> {
    use extreme::Extreme;
    let refused = || KernelError::NoLoop { function: fold.name(), dtypes: vec![dtype] };
    Ok(match (fold, dtype) {
        (Fold::Any, DType::Bool) => Box::new(Extreme::<Bool, true>::new(slots)),
        (Fold::All, DType::Bool) => Box::new(Extreme::<Bool, false>::new(slots)),
        (Fold::CountTrue, DType::Bool) => Box::new(sum::Count::new(slots)),
        (Fold::Sum, DType::I64) => Box::new(sum::Sum::<i64>::new(slots)),
        (Fold::Sum, DType::U64) => Box::new(sum::Sum::<u64>::new(slots)),
        (Fold::Sum, DType::F64) => Box::new(sum::Sum::<f64>::new(slots)),
        (Fold::Sum, DType::C128) => Box::new(sum::Sum::<Complex<f64>>::new(slots)),
        (Fold::Prod, DType::I64) => Box::new(sum::Prod::<i64>::new(slots)),
        (Fold::Prod, DType::U64) => Box::new(sum::Prod::<u64>::new(slots)),
        (Fold::Prod, DType::F64) => Box::new(sum::Prod::<f64>::new(slots)),
        (Fold::Prod, DType::C128) => Box::new(sum::Prod::<Complex<f64>>::new(slots)),
        (Fold::Moments, DType::F64) => Box::new(moments::Moments::new(slots)),
        (Fold::MergeMoments, DType::F64) => Box::new(moments::Merge(moments::Moments::new(slots))),
        (Fold::Max, _) => extreme::boxed::<true>(dtype, slots).ok_or_else(refused)?,
        (Fold::Min, _) => extreme::boxed::<false>(dtype, slots).ok_or_else(refused)?,
        (Fold::ArgMax, _) => arg::boxed::<true>(dtype, slots).ok_or_else(refused)?,
        (Fold::ArgMin, _) => arg::boxed::<false>(dtype, slots).ok_or_else(refused)?,
        _ => return Err(refused()),
    })
}

/// The stretch `at..at + len` of a block argument.
#[inline]
fn stretch<'a, T: crate::element::Element>(arg: Operand<'a>, at: usize, len: usize) -> &'a [T] {
    match arg {
        Operand::Block(buffer, offset) => &buffer.elements::<T>()[offset + at..offset + at + len],
        Operand::One(_) => &[],
    }
}
