//! Discrete Fourier transforms of the lines of a chunk along one axis, by rustfft and realfft.

use crate::DType;
use crate::chunk::{Buffer, Chunk};
use crate::element::Element;
use crate::error::KernelError;
use bytemuck::Zeroable;
use num_complex::Complex;
use realfft::RealFftPlanner;
use rustfft::{FftNum, FftPlanner};
use serde::{Deserialize, Serialize};

/// A transform of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transform {
    /// Complex to complex.
    Forward,
    /// Complex to complex, with the other sign in the exponent.
    Inverse,
    /// Real to the first half of the complex result, which is Hermitian.
    RealForward,
    /// The first half of a Hermitian line to real.
    RealInverse,
}

/// A transform along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fourier {
    /// The transform.
    pub transform: Transform,
    /// The axis.
    pub axis: usize,
    /// Length of the transform, not 0: longer lines are cut, shorter ones have zeros behind them.
    pub len: usize,
    /// Factor of the result.
    pub scale: f64,
}

impl Transform {
    /// Elements of the result along the axis, of a transform of length `len`.
    pub fn extent(self, len: usize) -> usize {
        match self {
            Transform::RealForward => len / 2 + 1,
            _ => len,
        }
    }

    /// The dtype of the result, of an argument whose parts are of `real`.
    pub fn dtype(self, real: DType) -> DType {
        match self {
            Transform::RealInverse => real,
            _ => crate::to_complex(real),
        }
    }

    /// Whether the argument is complex.
    pub fn takes_complex(self) -> bool {
        self != Transform::RealForward
    }
}

impl Fourier {
    /// Transforms each line along the axis: any shape to the same with another extent there. Computes in
    /// float32 or float64, as the argument is.
    ///
    /// # Errors
    /// `NoLoop` for other dtypes.
    pub fn run(&self, x: &Chunk) -> Result<Chunk, KernelError> {
        match (x.dtype(), self.transform.takes_complex()) {
            (DType::C64, true) | (DType::F32, false) => self.lines::<f32>(x),
            (DType::C128, true) | (DType::F64, false) => self.lines::<f64>(x),
            (dtype, _) => Err(KernelError::NoLoop { function: "fft", dtypes: vec![dtype] }),
        }
    }

    /// Bytes that a task needs beside its argument and result.
    pub fn scratch_bytes(&self) -> u64 {
        LINES * self.len as u64 * DType::C128.size_bytes() as u64
    }

    fn lines<T: Part>(&self, x: &Chunk) -> Result<Chunk, KernelError>
    where
        Complex<T>: Scaled,
    {
        match self.transform {
            Transform::Forward | Transform::Inverse => {
                let mut planner = FftPlanner::<T>::new();
                let plan = match self.transform {
                    Transform::Forward => planner.plan_fft_forward(self.len),
                    _ => planner.plan_fft_inverse(self.len),
                };
                let mut scratch = vec![Complex::zeroed(); plan.get_inplace_scratch_len()];
                self.each(x, |line: &mut Vec<Complex<T>>, out: &mut Vec<Complex<T>>| {
                    out.clone_from(line);
                    plan.process_with_scratch(out, &mut scratch);
                    Ok(())
                })
            }
            Transform::RealForward => {
                let plan = RealFftPlanner::<T>::new().plan_fft_forward(self.len);
                let mut scratch = plan.make_scratch_vec();
                self.each(x, |line: &mut Vec<T>, out: &mut Vec<Complex<T>>| {
                    out.resize(self.len / 2 + 1, Complex::zeroed());
                    plan.process_with_scratch(line, out, &mut scratch).map_err(failed)
                })
            }
            Transform::RealInverse => {
                let plan = RealFftPlanner::<T>::new().plan_fft_inverse(self.len);
                let mut scratch = plan.make_scratch_vec();
                self.each(x, |line: &mut Vec<Complex<T>>, out: &mut Vec<T>| {
                    out.resize(self.len, <T as Zeroable>::zeroed());
                    line.resize(self.len / 2 + 1, Complex::zeroed());
                    // These have no imaginary parts in a Hermitian line; as in NumPy, what is there is left
                    // out.
                    line[0].im = <T as Zeroable>::zeroed();
                    if self.len.is_multiple_of(2) {
                        line[self.len / 2].im = <T as Zeroable>::zeroed();
                    }
                    plan.process_with_scratch(line, out, &mut scratch).map_err(failed)
                })
            }
        }
    }

    /// Applies a transform to each line.
    fn each<A: Element, B: Scaled>(
        &self,
        x: &Chunk,
        mut transform: impl FnMut(&mut Vec<A>, &mut Vec<B>) -> Result<(), KernelError>,
    ) -> Result<Chunk, KernelError> {
        let shape = x.shape();
        let (len, inner) = (shape[self.axis], shape[self.axis + 1..].iter().product::<usize>());
        let outer: usize = shape[..self.axis].iter().product();
        let wanted = match self.transform {
            Transform::RealInverse => self.len / 2 + 1,
            _ => self.len,
        };
        let made = self.transform.extent(self.len);
        let mut to = shape.to_vec();
        to[self.axis] = made;
        let elements = x.to_vec::<A>()?;
        let mut data = Buffer::for_overwrite(outer * made * inner * std::mem::size_of::<B>());
        let out = data.elements_mut::<B>();
        let (mut line, mut result) = (Vec::with_capacity(wanted), Vec::with_capacity(made));
        for (row, column) in (0..outer).flat_map(|row| (0..inner).map(move |column| (row, column))) {
            line.clear();
            line.extend((0..len.min(wanted)).map(|i| elements[(row * len + i) * inner + column]));
            line.resize(wanted, A::zeroed());
            transform(&mut line, &mut result)?;
            for (i, &value) in result.iter().enumerate() {
                out[(row * made + i) * inner + column] = value.scaled(self.scale);
            }
        }
        Chunk::contiguous(B::DTYPE, &to, data)
    }
}

fn failed(error: realfft::FftError) -> KernelError {
    KernelError::Malformed(error.to_string())
}

/// float32 or float64.
trait Part: FftNum + Scaled {}
impl Part for f32 {}
impl Part for f64 {}

/// A result that is multiplied by a factor.
trait Scaled: Element {
    fn scaled(self, factor: f64) -> Self;
}

macro_rules! scaled {
    ($($t:ty),*) => {$(
        impl Scaled for $t {
            fn scaled(self, factor: f64) -> $t {
                if factor == 1.0 { self } else { self * factor as $t }
            }
        }
        impl Scaled for Complex<$t> {
            fn scaled(self, factor: f64) -> Complex<$t> {
                if factor == 1.0 { self } else { Complex::new(self.re.scaled(factor), self.im.scaled(factor)) }
            }
        }
    )*};
}
scaled!(f32, f64);

/// Lines that a task holds beside its argument and result: the argument, the result, and what plans need.
const LINES: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn fourier(transform: Transform, axis: usize, len: usize, scale: f64) -> Fourier {
        Fourier { transform, axis, len, scale }
    }

    #[test]
    fn a_transform_is_the_sum_of_the_definition() {
        for len in [1usize, 2, 3, 7, 8, 13] {
            let x: Vec<Complex<f64>> = (0..len).map(|i| Complex::new(i as f64, (i * i % 5) as f64)).collect();
            let chunk = Chunk::from_elements(&[len], &x).unwrap();
            let made = fourier(Transform::Forward, 0, len, 1.0).run(&chunk).unwrap();
            for (k, found) in made.to_vec::<Complex<f64>>().unwrap().into_iter().enumerate() {
                let turn = |i: usize| -2.0 * std::f64::consts::PI * (i * k) as f64 / len as f64;
                let sum: Complex<f64> =
                    x.iter().enumerate().map(|(i, &x)| x * Complex::new(turn(i).cos(), turn(i).sin())).sum();
                assert!((found - sum).norm() < 1e-10, "{len} {k}: {found} {sum}");
            }
            let back = fourier(Transform::Inverse, 0, len, 1.0 / len as f64).run(&made).unwrap();
            let back = back.to_vec::<Complex<f64>>().unwrap();
            assert!(back.iter().zip(&x).all(|(a, b)| (a - b).norm() < 1e-12));
        }
    }

    #[test]
    fn real_lines_have_half_a_result_and_come_back_from_it() {
        for len in [1usize, 2, 5, 6] {
            let x: Vec<f64> = (0..2 * len).map(|i| (i * 7 % 11) as f64).collect();
            let chunk = Chunk::from_elements(&[len, 2], &x).unwrap();
            let half = fourier(Transform::RealForward, 0, len, 1.0).run(&chunk).unwrap();
            assert_eq!(half.shape(), [len / 2 + 1, 2]);
            let back = fourier(Transform::RealInverse, 0, len, 1.0 / len as f64).run(&half).unwrap();
            assert!(back.to_vec::<f64>().unwrap().iter().zip(&x).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    #[test]
    fn lines_are_cut_or_filled_to_the_length_asked_for() {
        let chunk = Chunk::from_elements(&[3], &[1.0f32, 2.0, 4.0]).unwrap();
        let sum = |len: usize| {
            let made = fourier(Transform::RealForward, 0, len, 0.5).run(&chunk).unwrap();
            made.to_vec::<Complex<f32>>().unwrap()[0].re
        };
        assert_eq!((sum(2), sum(3), sum(5)), (1.5, 3.5, 3.5));
    }
}
