//! The transforms of lines, and plans that threads keep.

use super::{Fourier, Transform};
use crate::along::{LinesAlong, Scaled};
use crate::chunk::Chunk;
use crate::element::Element;
use crate::error::KernelError;
use bytemuck::Zeroable;
use num_complex::Complex;
use rustfft::{Fft, FftDirection};
use std::cell::RefCell;
use std::sync::Arc;
use tharsis_dense::Transformed;

impl Fourier {
    pub(super) fn lines<T: Part>(&self, x: &[Chunk]) -> Result<Chunk, KernelError>
    where
        Complex<T>: Scaled,
    {
        match self.transform {
            Transform::Forward | Transform::Inverse => {
                let direction = match self.transform {
                    Transform::Forward => FftDirection::Forward,
                    _ => FftDirection::Inverse,
                };
                let plan = T::kept_plan(self.len, direction);
                let mut scratch = vec![Complex::zeroed(); plan.get_outofplace_scratch_len()];
                self.each(x, |line: &mut [Complex<T>], out: &mut [Complex<T>]| {
                    plan.process_outofplace_with_scratch(line, out, &mut scratch);
                    Ok(())
                })
            }
            Transform::RealForward => {
                let plan = T::plan_real_forward(self.len);
                let mut scratch = plan.make_scratch_vec();
                self.each(x, |line: &mut [T], out: &mut [Complex<T>]| {
                    plan.process_with_scratch(line, out, &mut scratch).map_err(failed)
                })
            }
            Transform::RealInverse => {
                let plan = T::plan_real_inverse(self.len);
                let mut scratch = plan.make_scratch_vec();
                self.each(x, |line: &mut [Complex<T>], out: &mut [T]| {
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

    /// Elements that a transform takes of each line.
    fn wanted(&self) -> usize {
        match self.transform {
            Transform::RealInverse => self.len / 2 + 1,
            _ => self.len,
        }
    }

    /// Applies a transform to each line. It may change the line that it is given.
    fn each<A: Element, B: Scaled>(
        &self,
        x: &[Chunk],
        transform: impl FnMut(&mut [A], &mut [B]) -> Result<(), KernelError>,
    ) -> Result<Chunk, KernelError> {
        let made = self.transform.extent(self.len);
        LinesAlong { axis: self.axis, wanted: self.wanted(), made, scale: self.scale }.each(x, transform)
    }
}

pub(crate) fn failed(error: realfft::FftError) -> KernelError {
    KernelError::Malformed(error.to_string())
}

/// float32 or float64.
pub(crate) trait Part: Transformed + Scaled {
    /// The plan for a length, which each thread keeps until it needs another one: making it takes as long as
    /// some lines.
    fn kept_plan(len: usize, direction: FftDirection) -> Arc<dyn Fft<Self>>;

    /// The nearest number.
    fn nearest(x: f64) -> Self;
}

macro_rules! parts {
    ($($t:ty),*) => {$(
        impl Part for $t {
            fn kept_plan(len: usize, direction: FftDirection) -> Arc<dyn Fft<$t>> {
                thread_local! {
                    static LAST: RefCell<Option<Arc<dyn Fft<$t>>>> = const { RefCell::new(None) };
                }
                LAST.with_borrow_mut(|last| match last {
                    Some(plan) if plan.len() == len && plan.fft_direction() == direction => plan.clone(),
                    _ => last.insert(<$t>::plan(len, direction)).clone(),
                })
            }

            fn nearest(x: f64) -> $t {
                x as $t
            }
        }
    )*};
}
parts!(f32, f64);

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
    fn lines_across_are_transformed_as_lines_along() {
        // More columns than are done together, and more than one block of rows.
        let (rows, columns) = (6, 19);
        let x: Vec<f64> = (0..2 * rows * columns).map(|at| (at * 29 % 31) as f64).collect();
        let across = Chunk::from_elements(&[2, rows, columns], &x).unwrap();
        let along = across.transposed().unwrap();
        for len in [4, 6, 9] {
            let made = fourier(Transform::RealForward, 1, len, 0.5).run(&across).unwrap();
            let same = fourier(Transform::RealForward, 2, len, 0.5).run(&along).unwrap();
            let same = same.transposed().unwrap();
            assert_eq!(made.shape(), same.shape());
            let elements = |chunk: &Chunk| chunk.to_vec::<Complex<f64>>().unwrap();
            assert!(elements(&made) == elements(&same), "of length {len}");
            let back = fourier(Transform::RealInverse, 1, len, 2.0 / len as f64).run(&made).unwrap();
            for (at, found) in back.to_vec::<f64>().unwrap().into_iter().enumerate() {
                let (block, row, column) = (at / columns / len, at / columns % len, at % columns);
                let expected = if row < rows { x[(block * rows + row) * columns + column] } else { 0.0 };
                assert!((found - expected).abs() < 1e-12, "{found} at {row}, {column}");
            }
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
