//! Count, mean and sum of squared deviations, merged by Chan's formula: stable where a sum of squares is not.

use super::{Accumulate, block_sum, stretch};
use crate::chunk::Chunk;
use crate::cpu::{self, Kernel, Level};
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
        if self.count[slot] == 0.0 {
            // Deviations from an infinite mean are NaN.
            (self.count[slot], self.mean[slot], self.squares[slot]) = (count, mean, squares + mean * 0.0);
            return;
        }
        let total = self.count[slot] + count;
        let delta = mean - self.mean[slot];
        self.mean[slot] += delta * (count / total);
        // Deviations from an infinite mean are NaN: the term is NaN then, and zero otherwise.
        let infinite = delta * 0.0;
        // The share first: the square of a large distance may be infinite where the term is not.
        let share = self.count[slot] * (count / total);
        self.squares[slot] += squares + delta * (delta * share) + infinite;
        self.count[slot] = total;
    }
}

struct Deviations<'a>(&'a [f64], f64);

impl Kernel for Deviations<'_> {
    type Output = (f64, f64);
    const LEVEL: Level = Level::Avx2;

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
        let correction = rest * (rest / count);
        // Infinite squares of finite deviations stay infinite.
        let is_number = correction.is_finite() || !rest.is_finite();
        self.merge(slot, count, mean + rest / count, if is_number { squares - correction } else { squares });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variances_of_huge_numbers_are_numbers() {
        let merged = |parts: &[(f64, f64, f64)]| {
            let mut moments = Moments::new(1);
            parts.iter().for_each(|&(count, mean, squares)| moments.merge(0, count, mean, squares));
            (moments.count[0], moments.mean[0], moments.squares[0])
        };
        assert_eq!(merged(&[(4.0, 1e160, 0.0), (2.0, 1e160, 0.0)]), (6.0, 1e160, 0.0));
        let (_, mean, squares) = merged(&[(1.0, 2e153, 0.0), (3.0, -2e153, 0.0)]);
        assert!((mean / -1e153 - 1.0).abs() < 1e-15, "{mean}");
        assert!((squares / 12e306 - 1.0).abs() < 1e-15, "{squares}");
        assert!(merged(&[(1.0, f64::INFINITY, 0.0)]).2.is_nan());
        assert!(merged(&[(1.0, 1.0, 0.0), (1.0, f64::INFINITY, 0.0)]).2.is_nan());
    }
}
