//! The transforms of lines, each by one of Fourier.

use super::{Cosine, CosineType};
use crate::along::{LinesAlong, Scaled};
use crate::chunk::Chunk;
use crate::error::KernelError;
use crate::fourier::lines::{Part, failed};
use num_complex::Complex;
use rustfft::FftDirection;
use std::f64::consts::{PI, SQRT_2};

impl Cosine {
    pub(super) fn lines<T: Part>(&self, x: &[Chunk]) -> Result<Chunk, KernelError>
    where
        Complex<T>: Scaled,
    {
        match self.kind {
            CosineType::One if self.sine => self.first_of_sines::<T>(x),
            CosineType::One => self.first::<T>(x),
            CosineType::Two => self.second::<T>(x),
            CosineType::Three => self.third::<T>(x),
            CosineType::Four if self.len.is_multiple_of(2) => self.fourth::<T>(x),
            CosineType::Four => self.fourth_of_odd_length::<T>(x),
        }
    }

    fn along(&self) -> LinesAlong {
        LinesAlong { axis: self.axis, wanted: self.len, made: self.len, scale: self.scale }
    }

    /// Applies a cosine transform to each line, or what it is for sines.
    fn each<T: Part>(
        &self,
        x: &[Chunk],
        mut transform: impl FnMut(&mut [T], &mut [T]) -> Result<(), KernelError>,
    ) -> Result<Chunk, KernelError> {
        let (alternates_before, reverses_before) = match (self.sine, self.kind) {
            (false, _) => (false, false),
            (true, CosineType::Two) => (true, false),
            (true, _) => (false, true),
        };
        self.along().each(x, |line: &mut [T], out: &mut [T]| {
            if alternates_before {
                alternate(line);
            }
            if reverses_before {
                line.reverse();
            }
            transform(line, out)?;
            if alternates_before {
                out.reverse();
            }
            if reverses_before {
                alternate(out);
            }
            Ok(())
        })
    }

    /// A line between zeros is continued by its mirror image with the other sign.
    fn first_of_sines<T: Part>(&self, x: &[Chunk]) -> Result<Chunk, KernelError> {
        let len = self.len;
        let plan = T::plan_real_forward(2 * len + 2);
        let (mut odd, mut half) = (plan.make_input_vec(), plan.make_output_vec());
        let mut scratch = plan.make_scratch_vec();
        self.along().each(x, |line: &mut [T], out: &mut [T]| {
            odd.fill(T::zero());
            odd[1..=len].copy_from_slice(line);
            odd[len + 2..].iter_mut().zip(line.iter().rev()).for_each(|(to, &x)| *to = -x);
            plan.process_with_scratch(&mut odd, &mut half, &mut scratch).map_err(failed)?;
            out.iter_mut().zip(&half[1..]).for_each(|(to, x)| *to = -x.im);
            Ok(())
        })
    }

    /// A line is continued by its mirror image.
    fn first<T: Part>(&self, x: &[Chunk]) -> Result<Chunk, KernelError> {
        let last = self.len - 1;
        let plan = T::plan_real_forward(2 * last);
        let (mut even, mut half) = (plan.make_input_vec(), plan.make_output_vec());
        let mut scratch = plan.make_scratch_vec();
        self.along().each(x, |line: &mut [T], out: &mut [T]| {
            if self.orthogonal {
                line[0] = line[0].scaled(SQRT_2);
                line[last] = line[last].scaled(SQRT_2);
            }
            even[..=last].copy_from_slice(line);
            even[last..].iter_mut().zip(line[1..].iter().rev()).for_each(|(to, &x)| *to = x);
            plan.process_with_scratch(&mut even, &mut half, &mut scratch).map_err(failed)?;
            out.iter_mut().zip(&half).for_each(|(to, x)| *to = x.re);
            if self.orthogonal {
                out[0] = out[0].scaled(1.0 / SQRT_2);
                out[last] = out[last].scaled(1.0 / SQRT_2);
            }
            Ok(())
        })
    }

    /// Even elements in order and odd ones in reverse make a line whose transform is, but for a turn of each
    /// element, the result.
    fn second<T: Part>(&self, x: &[Chunk]) -> Result<Chunk, KernelError> {
        let len = self.len;
        let plan = T::plan_real_forward(len);
        let (mut folded, mut half) = (plan.make_input_vec(), plan.make_output_vec());
        let mut scratch = plan.make_scratch_vec();
        let turns: Vec<Complex<T>> = (0..half.len()).map(|k| turn(k as f64, 2 * len)).collect();
        self.each(x, |line: &mut [T], out: &mut [T]| {
            let (front, back) = folded.split_at_mut(len.div_ceil(2));
            front.iter_mut().zip(line.iter().step_by(2)).for_each(|(to, &x)| *to = x);
            back.iter_mut().rev().zip(line.iter().skip(1).step_by(2)).for_each(|(to, &x)| *to = x);
            plan.process_with_scratch(&mut folded, &mut half, &mut scratch).map_err(failed)?;
            for (k, (&x, &turn)) in half.iter().zip(&turns).enumerate() {
                let x = x * turn;
                // The first element has no mirror image; the middle one is its own.
                if k != 0 {
                    out[len - k] = -(x.im + x.im);
                }
                out[k] = x.re + x.re;
            }
            if self.orthogonal {
                out[0] = out[0].scaled(1.0 / SQRT_2);
            }
            Ok(())
        })
    }

    /// The steps of the second type in reverse.
    fn third<T: Part>(&self, x: &[Chunk]) -> Result<Chunk, KernelError> {
        let len = self.len;
        let plan = T::plan_real_inverse(len);
        let (mut half, mut folded) = (plan.make_input_vec(), plan.make_output_vec());
        let mut scratch = plan.make_scratch_vec();
        let turns: Vec<Complex<T>> = (0..half.len()).map(|k| turn(k as f64, 2 * len).conj()).collect();
        self.each(x, |line: &mut [T], out: &mut [T]| {
            if self.orthogonal {
                line[0] = line[0].scaled(SQRT_2);
            }
            half[0] = Complex::new(line[0], T::zero());
            for k in 1..half.len() {
                half[k] = Complex::new(line[k], -line[len - k]) * turns[k];
            }
            if len.is_multiple_of(2) {
                half[len / 2].im = T::zero();
            }
            plan.process_with_scratch(&mut half, &mut folded, &mut scratch).map_err(failed)?;
            let (front, back) = folded.split_at(len.div_ceil(2));
            out.iter_mut().step_by(2).zip(front).for_each(|(to, &x)| *to = x);
            out.iter_mut().skip(1).step_by(2).zip(back.iter().rev()).for_each(|(to, &x)| *to = x);
            Ok(())
        })
    }

    /// Pairs of elements from both ends are complex numbers of a line of half the length.
    fn fourth<T: Part>(&self, x: &[Chunk]) -> Result<Chunk, KernelError>
    where
        Complex<T>: Scaled,
    {
        let len = self.len;
        let plan = T::kept_plan(len / 2, FftDirection::Forward);
        let mut scratch = vec![Complex::new(T::zero(), T::zero()); plan.get_inplace_scratch_len()];
        let mut pairs = vec![Complex::new(T::zero(), T::zero()); len / 2];
        let before: Vec<Complex<T>> = (0..len / 2).map(|n| turn((4 * n + 1) as f64, 4 * len)).collect();
        let after: Vec<Complex<T>> = (0..len / 2).map(|n| turn(n as f64, len)).collect();
        self.each(x, |line: &mut [T], out: &mut [T]| {
            for (n, (pair, &turn)) in pairs.iter_mut().zip(&before).enumerate() {
                *pair = Complex::new(line[2 * n], line[len - 1 - 2 * n]) * turn;
            }
            plan.process_with_scratch(&mut pairs, &mut scratch);
            for (k, (&pair, &turn)) in pairs.iter().zip(&after).enumerate() {
                let x = pair * turn;
                out[2 * k] = x.re + x.re;
                out[len - 1 - 2 * k] = -(x.im + x.im);
            }
            Ok(())
        })
    }

    /// Half of a transform of twice the length.
    fn fourth_of_odd_length<T: Part>(&self, x: &[Chunk]) -> Result<Chunk, KernelError>
    where
        Complex<T>: Scaled,
    {
        let len = self.len;
        let zero = Complex::new(T::zero(), T::zero());
        let plan = T::kept_plan(2 * len, FftDirection::Forward);
        let mut scratch = vec![zero; plan.get_inplace_scratch_len()];
        let mut wide = vec![zero; 2 * len];
        let before: Vec<Complex<T>> = (0..len).map(|n| turn(n as f64, 2 * len)).collect();
        let after: Vec<Complex<T>> = (0..len).map(|k| turn((2 * k + 1) as f64, 4 * len)).collect();
        self.each(x, |line: &mut [T], out: &mut [T]| {
            let turned = line.iter().zip(&before).map(|(&x, &turn)| turn * x);
            wide.iter_mut().zip(turned.chain(std::iter::repeat(zero))).for_each(|(to, x)| *to = x);
            plan.process_with_scratch(&mut wide, &mut scratch);
            for ((to, &x), &turn) in out.iter_mut().zip(&wide).zip(&after) {
                let x = x * turn;
                *to = x.re + x.re;
            }
            Ok(())
        })
    }
}

/// Changes the sign of every other element, from the second on.
fn alternate<T: Part>(line: &mut [T]) {
    line.iter_mut().skip(1).step_by(2).for_each(|x| *x = -*x);
}

/// exp(-i pi steps / whole).
fn turn<T: Part>(steps: f64, whole: usize) -> Complex<T> {
    let angle = -PI * steps / whole as f64;
    Complex::new(T::nearest(angle.cos()), T::nearest(angle.sin()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [CosineType; 4] = [CosineType::One, CosineType::Two, CosineType::Three, CosineType::Four];

    /// The sum by which a transform is defined.
    fn defined(kind: CosineType, x: &[f64], k: usize) -> f64 {
        let len = x.len();
        let sum = |half_k: f64, half_n: f64, whole: usize, ends: &[usize]| -> f64 {
            let term = |(n, x): (usize, &f64)| {
                let angle = PI * (k as f64 + half_k) * (n as f64 + half_n) / whole as f64;
                x * angle.cos() * if ends.contains(&n) { 1.0 } else { 2.0 }
            };
            x.iter().enumerate().map(term).sum()
        };
        match kind {
            CosineType::One => sum(0.0, 0.0, len - 1, &[0, len - 1]),
            CosineType::Two => sum(0.0, 0.5, len, &[]),
            CosineType::Three => sum(0.5, 0.0, len, &[0]),
            CosineType::Four => sum(0.5, 0.5, len, &[]),
        }
    }

    #[test]
    fn a_transform_is_the_sum_of_the_definition() {
        for kind in KINDS {
            let least = if kind == CosineType::One { 2 } else { 1 };
            for len in (least..9).chain([13, 16]) {
                let x: Vec<f64> = (0..len).map(|i| (i * i % 7) as f64 - 2.0).collect();
                let chunk = Chunk::from_elements(&[len, 1], &x).unwrap();
                let cosine = Cosine { kind, axis: 0, len, scale: 1.0, orthogonal: false, sine: false };
                let made = cosine.run(&chunk).unwrap().to_vec::<f64>().unwrap();
                for (k, found) in made.into_iter().enumerate() {
                    let wanted = defined(kind, &x, k);
                    assert!((found - wanted).abs() < 1e-11, "{kind:?} of {len} at {k}: {found} {wanted}");
                }
            }
        }
    }

    /// As [`defined`], of sines.
    fn defined_of_sines(kind: CosineType, x: &[f64], k: usize) -> f64 {
        let len = x.len();
        let sum = |k: f64, shift: f64, whole: usize, end: bool| -> f64 {
            let term = |(n, x): (usize, &f64)| {
                let factor = if end && n + 1 == len { 1.0 } else { 2.0 };
                x * factor * (PI * k * (n as f64 + shift) / whole as f64).sin()
            };
            x.iter().enumerate().map(term).sum()
        };
        let k = k as f64;
        match kind {
            CosineType::One => sum(k + 1.0, 1.0, len + 1, false),
            CosineType::Two => sum(k + 1.0, 0.5, len, false),
            CosineType::Three => sum(k + 0.5, 1.0, len, true),
            CosineType::Four => sum(k + 0.5, 0.5, len, false),
        }
    }

    #[test]
    fn a_transform_of_sines_is_the_sum_of_the_definition() {
        for kind in KINDS {
            for len in (1..9).chain([13, 16]) {
                let x: Vec<f64> = (0..len).map(|i| (i * i % 7) as f64 - 2.0).collect();
                let chunk = Chunk::from_elements(&[1, len], &x).unwrap();
                let cosine = Cosine { kind, axis: 1, len, scale: 1.0, orthogonal: false, sine: true };
                let made = cosine.run(&chunk).unwrap().to_vec::<f64>().unwrap();
                for (k, found) in made.into_iter().enumerate() {
                    let wanted = defined_of_sines(kind, &x, k);
                    assert!((found - wanted).abs() < 1e-11, "{kind:?} of {len} at {k}: {found} {wanted}");
                }
            }
        }
    }

    #[test]
    fn an_orthogonal_transform_keeps_the_length_of_a_line() {
        for kind in KINDS {
            for len in [2usize, 5, 8] {
                let x: Vec<f64> = (0..len).map(|i| (i * 3 % 5) as f64 + 0.5).collect();
                let whole = if kind == CosineType::One { 2 * (len - 1) } else { 2 * len };
                let scale = 1.0 / (whole as f64).sqrt();
                let chunk = Chunk::from_elements(&[len], &x).unwrap();
                for sine in [false, true] {
                    let scale = if sine && kind == CosineType::One {
                        1.0 / (2.0 * (len as f64 + 1.0)).sqrt()
                    } else {
                        scale
                    };
                    let cosine = Cosine { kind, axis: 0, len, scale, orthogonal: true, sine };
                    let squares = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
                    let made = squares(&cosine.run(&chunk).unwrap().to_vec::<f64>().unwrap());
                    assert!((made - squares(&x)).abs() < 1e-12, "{kind:?} of {len}, {sine}: {made}");
                }
            }
        }
    }
}
