//! Eigenvalues of a diagonal matrix changed by one of rank one, D + r z z^T with r > 0.
//!
//! They are the roots of 1 + r sum z_j^2 / (d_j - x), one behind each d_j (Golub & Van Loan, section 8.4). A
//! root is found as its distance from the nearer pole, so that its digits are those of the distance. The
//! iteration fits a rational function to the parts of the sum on both sides of the root ("the middle way" of
//! R.-C. Li, LAPACK working note 89); a bracket that shrinks in each step makes sure that it ends.
//!
//! [`weights`] then finds the z for which these roots are exact (Gu & Eisenstat 1995): eigenvectors made of
//! it are orthogonal however close the roots are.

use super::real::Real;
use crate::cpu::{Kernel, Level, dispatch};
use crate::team::each;

/// D + r z z^T without equal elements of D or zeros in z.
pub(super) struct Secular<'a, T> {
    /// D, ascending (k,).
    pub(super) poles: &'a [T],
    /// z (k,).
    pub(super) z: &'a [T],
    /// r, positive.
    pub(super) r: T,
}

/// A root: `poles[pole] + beyond`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root<T> {
    pub(super) pole: usize,
    pub(super) beyond: T,
}

/// All roots, ascending.
pub(super) fn roots<T: Real>(of: &Secular<'_, T>, threads: usize) -> Vec<Root<T>> {
    let mut roots = vec![Root { pole: 0, beyond: T::zero_impl() }; of.poles.len()];
    let stretches = roots.chunks_mut(STRETCH).enumerate().collect();
    each(threads, stretches, |(index, to)| dispatch(FindRoots { of, first: index * STRETCH, to }));
    roots
}

/// The z of which the roots are exact, with the signs of the given one.
pub(super) fn weights<T: Real>(of: &Secular<'_, T>, roots: &[Root<T>], threads: usize) -> Vec<T> {
    let mut weights = vec![T::zero_impl(); roots.len()];
    let stretches = weights.chunks_mut(STRETCH).enumerate().collect();
    each(threads, stretches, |(index, to)| dispatch(FindWeights { of, roots, first: index * STRETCH, to }));
    weights
}

struct FindRoots<'a, T> {
    of: &'a Secular<'a, T>,
    first: usize,
    to: &'a mut [Root<T>],
}

impl<T: Real> Kernel for FindRoots<'_, T> {
    type Output = ();
    // Quotients keep the divider busy with 256 bits already.
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        for (index, to) in self.to.iter_mut().enumerate() {
            *to = root(self.of, self.first + index);
        }
    }
}

/// The sum on both sides of a root, each with its derivative, and 1 / r.
struct Sides<T> {
    below: [T; 2],
    above: [T; 2],
    rest: T,
}

impl<T: Real> Sides<T> {
    fn value(&self) -> T {
        self.rest + self.below[0] + self.above[0]
    }

    fn slope(&self) -> T {
        self.below[1] + self.above[1]
    }

    /// Bound on the error of the value.
    fn error(&self, at: T) -> T {
        let sums = self.below[0].magnitude() + self.above[0].magnitude();
        T::EPSILON * (T::of(8.0) * sums + T::of(2.0) * self.rest + at.magnitude() * self.slope())
    }
}

#[inline(always)]
fn root<T: Real>(of: &Secular<'_, T>, index: usize) -> Root<T> {
    let (poles, k) = (of.poles, of.poles.len());
    let is_last = index + 1 == k;
    let two = T::of(2.0);
    let norm = of.z.iter().fold(T::zero_impl(), |sum, &z| sum + z * z);
    if k == 1 {
        return Root { pole: 0, beyond: of.r * norm };
    }
    // The two poles that the fitted function has: on both sides of the root, or both below the last one.
    let upper = if is_last { index } else { index + 1 };
    let width = if is_last { of.r * norm } else { poles[upper] - poles[index] };
    let (mut pole, mut at) = (index, width / two);
    let mut sides = sums(of, upper, poles[pole], at);
    let (mut low, mut high) = (T::zero_impl(), width);
    if T::zero_impl() <= sides.value() {
        high = at;
    } else if is_last {
        low = at;
    } else {
        (pole, at) = (upper, at - width);
        (low, high) = (at, T::zero_impl());
    }
    for _ in 0..STEPS_MAX {
        if sides.value().magnitude() <= sides.error(at) {
            break;
        }
        let near = [poles[upper - 1] - poles[pole] - at, poles[upper] - poles[pole] - at];
        let mut next = at + step(&sides, near, is_last);
        if !(low < next && next < high) {
            next = (low + high) / two;
        }
        if (next - at).magnitude() <= T::EPSILON * at.magnitude() || next <= low || high <= next {
            break;
        }
        at = next;
        sides = sums(of, upper, poles[pole], at);
        if sides.value() < T::zero_impl() { low = at } else { high = at }
    }
    Root { pole, beyond: at }
}

/// The step to the root of the fitted function, with poles at these distances; Newton's if that goes astray.
#[inline(always)]
fn step<T: Real>(sides: &Sides<T>, [lower, upper]: [T; 2], is_last: bool) -> T {
    let (value, zero) = (sides.value(), T::zero_impl());
    let c = value - lower * sides.below[1] - upper * sides.above[1];
    let a = (lower + upper) * value - lower * upper * sides.slope();
    let b = lower * upper * value;
    let root = (a * a - T::of(4.0) * b * c).magnitude().root();
    let two = T::of(2.0);
    let step = if is_last {
        if zero <= a { (a + root) / (two * c) } else { two * b / (a - root) }
    } else if a <= zero {
        (a - root) / (two * c)
    } else {
        two * b / (a + root)
    };
    // Towards the root, since the value grows.
    if step * value < zero { step } else { -value / sides.slope() }
}

/// The sums of z_j^2 / (d_j - x) below pole `upper` and from it on, at x = `pole` + `at`.
#[inline(always)]
fn sums<T: Real>(of: &Secular<'_, T>, upper: usize, pole: T, at: T) -> Sides<T> {
    let side = |poles: &[T], z: &[T]| {
        let (mut values, mut slopes) = ([T::zero_impl(); LANES], [T::zero_impl(); LANES]);
        let (whole_poles, rest_poles) = poles.as_chunks::<LANES>();
        let (whole_z, rest_z) = z.as_chunks::<LANES>();
        for (poles, z) in whole_poles.iter().zip(whole_z) {
            for lane in 0..LANES {
                let term = z[lane] / ((poles[lane] - pole) - at);
                values[lane] += z[lane] * term;
                slopes[lane] += term * term;
            }
        }
        for (lane, (&d, &z)) in rest_poles.iter().zip(rest_z).enumerate() {
            let term = z / ((d - pole) - at);
            values[lane] += z * term;
            slopes[lane] += term * term;
        }
        [values, slopes].map(|lanes| lanes.iter().fold(T::zero_impl(), |sum, &lane| sum + lane))
    };
    let below = side(&of.poles[..upper], &of.z[..upper]);
    let above = side(&of.poles[upper..], &of.z[upper..]);
    Sides { below, above, rest: T::one_impl() / of.r }
}

struct FindWeights<'a, T> {
    of: &'a Secular<'a, T>,
    roots: &'a [Root<T>],
    first: usize,
    to: &'a mut [T],
}

impl<T: Real> Kernel for FindWeights<'_, T> {
    type Output = ();
    // As for the roots.
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        let FindWeights { of, roots, first, to } = self;
        let origins: Vec<T> = roots.iter().map(|root| of.poles[root.pole]).collect();
        let beyond: Vec<T> = roots.iter().map(|root| root.beyond).collect();
        let last = roots.len() - 1;
        for (index, to) in to.iter_mut().enumerate() {
            let i = first + index;
            let pole = of.poles[i];
            // The roots below pole i with the poles before them, the others with the poles behind them: each
            // quotient lies between 0 and 1.
            let below = quotients(&origins[..i], &beyond[..i], &of.poles[..i], pole);
            let above = quotients(&origins[i..last], &beyond[i..last], &of.poles[i + 1..], pole);
            let size = (below * above * ((origins[last] - pole) + beyond[last]) / of.r).magnitude().root();
            *to = if of.z[i] < T::zero_impl() { -size } else { size };
        }
    }
}

/// The product of (x_j - d) / (d_j - d) for roots x and poles d.
#[inline(always)]
fn quotients<T: Real>(origins: &[T], beyond: &[T], poles: &[T], pole: T) -> T {
    let mut products = [T::one_impl(); LANES];
    let (whole, rest) = origins.as_chunks::<LANES>();
    let (whole_beyond, rest_beyond) = beyond.as_chunks::<LANES>();
    let (whole_poles, rest_poles) = poles.as_chunks::<LANES>();
    for ((origins, beyond), poles) in whole.iter().zip(whole_beyond).zip(whole_poles) {
        for lane in 0..LANES {
            products[lane] *= ((origins[lane] - pole) + beyond[lane]) / (poles[lane] - pole);
        }
    }
    for (lane, ((&origin, &beyond), &d)) in rest.iter().zip(rest_beyond).zip(rest_poles).enumerate() {
        products[lane] *= ((origin - pole) + beyond) / (d - pole);
    }
    products.iter().fold(T::one_impl(), |product, &lane| product * lane)
}

const LANES: usize = 8;
/// Roots that a thread finds at once.
const STRETCH: usize = 64;
/// More than halving of a bracket takes in float64.
const STEPS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copies::compare;

    #[test]
    fn roots_lie_between_the_poles_and_add_up() {
        for k in [1, 2, 3, 17, 100] {
            let poles: Vec<f64> = (0..k).map(|j| (j as f64).powi(2) - 3.0).collect();
            let z: Vec<f64> = (0..k).map(|j| if j % 2 == 0 { 0.5 } else { -1e-7 }).collect();
            let of = Secular { poles: &poles, z: &z, r: 2.5 };
            let found = roots(&of, 2);
            let values: Vec<f64> = found.iter().map(|root| poles[root.pole] + root.beyond).collect();
            let trace: f64 = poles.iter().sum::<f64>() + of.r * z.iter().map(|z| z * z).sum::<f64>();
            assert!((values.iter().sum::<f64>() - trace).abs() < 1e-13 * trace.abs() * k as f64, "{k}");
            for (j, &value) in values.iter().enumerate() {
                assert!(poles[j] <= value && poles.get(j + 1).is_none_or(|&next| value <= next), "{k} {j}");
            }
            for (weight, z) in weights(&of, &found, 2).iter().zip(&z) {
                assert!((weight - z).abs() < 1e-13 * z.abs() * k as f64, "{weight} is not {z}");
            }
        }
    }

    #[test]
    #[ignore = "a measurement; say --ignored"]
    fn copies_of_roots_and_weights() {
        let poles: Vec<f64> = (0..STRETCH).map(|j| (j as f64).powi(2)).collect();
        let z = vec![0.5; STRETCH];
        let of = Secular { poles: &poles, z: &z, r: 2.5 };
        let found = roots(&of, 1);
        compare("eigenvalues: roots", || drop(roots(&of, 1)));
        compare("eigenvalues: weights", || drop(weights(&of, &found, 1)));
    }
}
