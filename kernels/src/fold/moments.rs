//! Count, mean and sum of squared deviations, merged by Chan's formula: stable where a sum of squares is not.

use super::{Accumulate, block_sum, stretch};
use crate::chunk::Chunk;
use crate::cpu::{self, Kernel};
use crate::error::KernelError;
use crate::ufunc::Operand;

/// The three parts per slot.
pub(super) struct Moments {
    count: Vec<f64>,
    mean: Vec<f64>,
    squares: Vec<f64>,
}

impl Moments {
    pub(super) fn new(slots: usize) -> Moments {
        Moments { count: vec![0.0; slots], mean: vec![0.0; slots], squares: vec![0.0; slots] }
    }

    #[inline]
    fn merge(&mut self, slot: usize, count: f64, mean: f64, squares: f64) {
        if count == 0.0 {
            return;
        }
        let total = self.count[slot] + count;
        let delta = mean - self.mean[slot];
        self.mean[slot] += delta * (count / total);
        // Deviations from an infinite mean are NaN: the term is NaN then, and zero otherwise.
        let infinite = delta * 0.0;
        self.squares[slot] += squares + delta * delta * (self.count[slot] * count / total) + infinite;
        self.count[slot] = total;
    }
}

struct Deviations<'a>(&'a [f64], f64);

impl Kernel for Deviations<'_> {
    type Output = (f64, f64);

    /// Sums of deviations and of their squares.
    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let (mut sums, mut squares) = ([0.0f64; 16], [0.0f64; 16]);
        let mut blocks = self.0.chunks_exact(16);
        for block in &mut blocks {
            for i in 0..16 {
                let d = block[i] - self.1;
                sums[i] += d;
                squares[i] += d * d;
            }
        }
        for (i, &x) in blocks.remainder().iter().enumerate() {
            let d = x - self.1;
            sums[i] += d;
            squares[i] += d * d;
        }
        let mut half = 8;
        while half > 0 {
            for i in 0..half {
                sums[i] += sums[i + half];
                squares[i] += squares[i + half];
            }
            half /= 2;
        }
        (sums[0], squares[0])
    }
}

impl Accumulate for Moments {
    fn segment(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let block = stretch::<f64>(args[0], at, len);
        let count = len as f64;
        let mean = block_sum(block) / count;
        let (rest, squares) = cpu::dispatch(Deviations(block, mean));
        // The second term corrects for the rounding of the mean.
        self.merge(slot, count, mean + rest / count, squares - rest * rest / count);
    }

    fn rowwise(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        for (i, &x) in stretch::<f64>(args[0], at, len).iter().enumerate() {
            self.merge(slot + i, 1.0, x, 0.0);
        }
    }

    fn finish(self: Box<Self>, shape: &[usize]) -> Result<Vec<Chunk>, KernelError> {
        [self.count, self.mean, self.squares].iter().map(|part| Chunk::from_elements(shape, part)).collect()
    }
}

/// Merges moments that were computed separately.
pub(super) struct Merge(pub(super) Moments);

impl Accumulate for Merge {
    fn segment(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let [counts, means, squares] = [0, 1, 2].map(|part| stretch::<f64>(args[part], at, len));
        for i in 0..len {
            self.0.merge(slot, counts[i], means[i], squares[i]);
        }
    }

    fn rowwise(&mut self, slot: usize, args: &[Operand<'_>], at: usize, len: usize) {
        let [counts, means, squares] = [0, 1, 2].map(|part| stretch::<f64>(args[part], at, len));
        for i in 0..len {
            self.0.merge(slot + i, counts[i], means[i], squares[i]);
        }
    }

    fn finish(self: Box<Self>, shape: &[usize]) -> Result<Vec<Chunk>, KernelError> {
        Box::new(self.0).finish(shape)
    }
}
