//! Random programs of Fourier and cosine transforms, views and sums against a plain evaluator, in chunks of
//! all sizes. `THARSIS_PROGRAMS=10000 cargo test -p tharsis-numeric --test numeric transforms` tries more.

use crate::seeds::{quarters, seeds};
use std::f64::consts::PI;
use tharsis_kernels::Complex;
use tharsis_numeric::cosine::CosineType;
use tharsis_numeric::fft::Norm;
use tharsis_numeric::{Chunks, Tensor, concatenate};

type C = Complex<f64>;

/// A sequence of numbers from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// The plain evaluator: all elements in C order.
#[derive(Clone, Debug)]
struct Plain {
    shape: Vec<usize>,
    elements: Vec<C>,
}

impl Plain {
    /// Puts the result of a function in the place of each line along an axis.
    fn lines(&self, axis: usize, f: impl Fn(&[C]) -> Vec<C>) -> Plain {
        let inner: usize = self.shape[axis + 1..].iter().product();
        let len = self.shape[axis];
        let line = |block: &[C], column: usize| {
            f(&block[column..].iter().step_by(inner).copied().collect::<Vec<C>>())
        };
        let mut elements = Vec::new();
        for block in self.elements.chunks(len * inner) {
            let made: Vec<Vec<C>> = (0..inner).map(|column| line(block, column)).collect();
            (0..made[0].len()).for_each(|at| elements.extend(made.iter().map(|line| line[at])));
        }
        let count: usize = self.shape[..axis].iter().product();
        let mut shape = self.shape.clone();
        shape[axis] = elements.len() / count / inner;
        Plain { shape, elements }
    }

    fn transposed(&self) -> Plain {
        let [m, n] = self.shape[..] else { panic!("a matrix") };
        let elements = (0..n).flat_map(|k| (0..m).map(move |i| self.elements[i * n + k]));
        Plain { shape: vec![n, m], elements: elements.collect() }
    }
}

/// The sum by which the Fourier transform is defined, of a line that is cut or has zeros behind it.
fn fourier(line: &[C], len: usize, sign: f64) -> Vec<C> {
    let line = || line.iter().take(len).enumerate();
    let turn = |at: usize| C::from_polar(1.0, sign * 2.0 * PI * (at % len) as f64 / len as f64);
    (0..len).map(|k| line().map(|(n, x)| x * turn(n * k)).sum()).collect()
}

/// The sum by which the cosine transform of the second type is defined.
fn cosine(line: &[C]) -> Vec<C> {
    let len = line.len() as f64;
    let factor = |k: usize, n: usize| 2.0 * (PI * k as f64 * (n as f64 + 0.5) / len).cos();
    (0..line.len()).map(|k| line.iter().enumerate().map(|(n, x)| x * factor(k, n)).sum()).collect()
}

const EXTENTS: [usize; 6] = [1, 2, 3, 5, 8, 13];

fn chunks(dice: &mut Dice, shape: &[usize]) -> Chunks {
    let uneven = |extent: usize| if extent < 3 { vec![extent] } else { vec![1, extent - 2, 1] };
    match dice.below(5) {
        0 => Chunks::Auto,
        1 => Chunks::Lengths(shape.iter().map(|&extent| uneven(extent)).collect()),
        2 => Chunks::PerAxis(vec![2, 5]),
        each => Chunks::Each(each - 2),
    }
}

/// One step of a program on both sides.
fn step(dice: &mut Dice, x: &Tensor, plain: &Plain) -> (Tensor, Plain) {
    let axis = dice.below(2);
    let at = axis as i64 - 2 * dice.below(2) as i64;
    let extent = plain.shape[axis];
    match dice.below(8) {
        0 => {
            let len = EXTENTS[dice.below(EXTENTS.len())];
            (x.fft(Some(len), at, Norm::Backward), plain.lines(axis, |line| fourier(line, len, -1.0)))
        }
        1 => {
            let scaled = |line: &[C]| fourier(line, extent, 1.0).iter().map(|x| x / extent as f64).collect();
            (x.ifft(None, at, Norm::Backward), plain.lines(axis, scaled))
        }
        2 => (x.dct(CosineType::Two, None, at, Norm::Backward), plain.lines(axis, cosine)),
        3 => (x.t(), plain.transposed()),
        4 => (x.flip(Some(&[at])), plain.lines(axis, |line| line.iter().rev().copied().collect())),
        5 => {
            let twice = |line: &[C]| [line, line].concat();
            (concatenate(&[x, x], axis as i64), plain.lines(axis, twice))
        }
        6 => (x.rechunk(chunks(dice, &plain.shape)), plain.clone()),
        _ => (x.cumsum(axis as i64), plain.lines(axis, running)),
    }
}

fn running(line: &[C]) -> Vec<C> {
    let add = |sum: &mut C, x: &C| {
        *sum += x;
        Some(*sum)
    };
    line.iter().scan(C::new(0.0, 0.0), add).collect()
}

fn check(seed: u64) {
    let dice = &mut Dice(seed);
    let shape = vec![EXTENTS[dice.below(EXTENTS.len())], EXTENTS[dice.below(EXTENTS.len())]];
    let number = |dice: &mut Dice| C::new(dice.below(7) as f64 - 3.0, dice.below(7) as f64 - 3.0);
    let elements: Vec<C> = (0..shape.iter().product()).map(|_| number(dice)).collect();
    let mut plain = Plain { shape, elements };
    let mut x = Tensor::from_elements(&plain.shape, &plain.elements).rechunk(chunks(dice, &plain.shape));
    for _ in 0..2 + dice.below(4) {
        (x, plain) = step(dice, &x, &plain);
    }
    assert_eq!(x.shape().unwrap(), plain.shape, "seed {seed}");
    let found = x.to_vec::<C>().unwrap();
    let largest = plain.elements.iter().map(|x| x.norm()).fold(1.0, f64::max);
    for (at, (found, wanted)) in found.iter().zip(&plain.elements).enumerate() {
        assert!((found - wanted).norm() <= 1e-11 * largest, "seed {seed}: {found} at {at}, not {wanted}");
    }
}

quarters!(programs_of_transforms_are_those_of_their_definitions_in_any_chunks, |part| {
    seeds(0, [160, 400], part).for_each(check);
});
