//! Points on curves and surfaces.

use crate::Result;
use crate::metrics::inputs::value_error;
use crate::metrics::options::defaults;
use std::f64::consts::{PI, TAU};
use tharsis_kernels::DType;
use tharsis_numeric::random::{Generator, default_rng};
use tharsis_numeric::{Tensor, arange, stack, where_};

/// Samples and their targets.
#[derive(Clone, Debug)]
pub struct Samples {
    /// The samples; (n, features), float64.
    pub data: Tensor,
    /// Their classes, int64, or their targets, float64; (n,).
    pub target: Tensor,
}

/// Options of [`make_moons`].
#[derive(Clone, Debug)]
pub struct Moons {
    /// Whether samples are in a random order; else those of the first class come first.
    pub shuffle: bool,
    /// The standard deviation of what is added to each coordinate.
    pub noise: f64,
    /// The seed.
    pub random_state: u64,
}

impl Default for Moons {
    fn default() -> Moons {
        Moons { shuffle: true, noise: 0.0, random_state: 0 }
    }
}

/// Options of [`make_circles`].
#[derive(Clone, Debug)]
pub struct Circles {
    /// Whether samples are in a random order; else those of the outer circle come first.
    pub shuffle: bool,
    /// The standard deviation of what is added to each coordinate.
    pub noise: f64,
    /// The seed.
    pub random_state: u64,
    /// The radius of the inner circle, from 0 to less than 1; that of the outer one is 1.
    pub factor: f64,
}

impl Default for Circles {
    fn default() -> Circles {
        Circles { shuffle: true, noise: 0.0, random_state: 0, factor: 0.8 }
    }
}

/// Options of [`make_s_curve`] and [`make_swiss_roll`].
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// The standard deviation of what is added to each coordinate.
    pub noise: f64,
    /// The seed.
    pub random_state: u64,
}

defaults!(Circles, Curve, Moons);

/// scikit-learn's `make_moons`: two interleaved half circles; (n, 2).
///
/// ```
/// use tharsis_learn::datasets::{Moons, make_moons};
/// let moons = make_moons(4, Moons { shuffle: false, ..Moons::default() })?;
/// assert_eq!(moons.target.to_vec::<i64>()?, [0, 0, 1, 1]);
/// assert_eq!(moons.data.t().to_vec::<f64>()?[..4], [1.0, -1.0, 0.0, 2.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for negative noise; errors of the tensors that they carry.
#[track_caller]
pub fn make_moons(n_samples: usize, options: impl Into<Moons>) -> Result<Samples> {
    let Moons { shuffle, noise, random_state } = options.into();
    let halves = Halves::new(n_samples, shuffle, noise, random_state);
    // Both ends of a half circle are on it.
    let angle = halves.fraction(|count| (count.max(2) - 1) as f64).multiply(PI);
    let (cos, sin) = (angle.cos(), angle.sin());
    let x = where_(&halves.is_second, 1.0 - &cos, &cos);
    let y = where_(&halves.is_second, 0.5 - &sin, &sin);
    halves.samples([x, y])
}

/// scikit-learn's `make_circles`: a circle within another one; (n, 2).
///
/// ```
/// use tharsis_learn::datasets::make_circles;
/// let circles = make_circles(100, ..)?;
/// let radii = circles.data.square().sum(1).sqrt();
/// assert!((radii.min(..).item()?.to_f64() - 0.8).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for negative noise and for a factor beyond 0 and 1.
#[track_caller]
pub fn make_circles(n_samples: usize, options: impl Into<Circles>) -> Result<Samples> {
    let Circles { shuffle, noise, random_state, factor } = options.into();
    if !(0.0..1.0).contains(&factor) {
        let text =
            format!("The 'factor' parameter must be a float in the range [0.0, 1.0). Got {factor} instead.");
        return Err(value_error(text));
    }
    let halves = Halves::new(n_samples, shuffle, noise, random_state);
    let angle = halves.fraction(|count| count.max(1) as f64).multiply(TAU);
    let radius = where_(&halves.is_second, factor, 1.0);
    halves.samples([angle.cos().multiply(&radius), angle.sin().multiply(&radius)])
}

/// scikit-learn's `make_s_curve`: points on a surface bent like an S; (n, 3). The target is the place along
/// the curve.
///
/// ```
/// use tharsis_learn::datasets::make_s_curve;
/// let curve = make_s_curve(50, ..)?;
/// let x = curve.data.get(&[(..).into(), 0.into()]);
/// assert!(x.allclose(curve.target.sin(), 1e-12, 1e-12, false).item()?.is_true());
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for negative noise.
#[track_caller]
pub fn make_s_curve(n_samples: usize, options: impl Into<Curve>) -> Result<Samples> {
    let Curve { noise, random_state } = options.into();
    let generator = default_rng(random_state);
    let place = generator.random(&[n_samples]).subtract(0.5).multiply(3.0 * PI);
    let width = generator.random(&[n_samples]).multiply(2.0);
    let z = place.sign().multiply(place.cos().subtract(1.0));
    let data = noisy(&[&place.sin(), &width, &z], noise, &generator)?;
    Ok(Samples { data, target: place })
}

/// scikit-learn's `make_swiss_roll`: points on a rolled surface; (n, 3). The target is the place along the
/// roll.
///
/// ```
/// use tharsis_learn::datasets::make_swiss_roll;
/// let roll = make_swiss_roll(50, ..)?;
/// let z = roll.data.get(&[(..).into(), 2.into()]);
/// let expected = roll.target.sin() * &roll.target;
/// assert!(z.allclose(expected, 1e-12, 1e-12, false).item()?.is_true());
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for negative noise.
#[track_caller]
pub fn make_swiss_roll(n_samples: usize, options: impl Into<Curve>) -> Result<Samples> {
    let Curve { noise, random_state } = options.into();
    let generator = default_rng(random_state);
    let place = generator.random(&[n_samples]).multiply(2.0).add(1.0).multiply(1.5 * PI);
    let width = generator.random(&[n_samples]).multiply(21.0);
    let (x, z) = (place.cos().multiply(&place), place.sin().multiply(&place));
    let data = noisy(&[&x, &width, &z], noise, &generator)?;
    Ok(Samples { data, target: place })
}

/// Columns as (n, columns), with noise.
#[track_caller]
fn noisy(columns: &[&Tensor], noise: f64, generator: &Generator) -> Result<Tensor> {
    if noise.is_nan() || noise < 0.0 {
        let text =
            format!("The 'noise' parameter must be a float in the range [0.0, inf). Got {noise} instead.");
        return Err(value_error(text));
    }
    let data = stack(columns, 1);
    if noise == 0.0 {
        return Ok(data);
    }
    let shape = data.shape()?.to_vec();
    Ok(data.add(generator.normal(0.0, noise, &shape)))
}

/// The place of each row before rows were shuffled.
pub(super) fn places(n_samples: usize, shuffle: bool, generator: &Generator) -> Tensor {
    if shuffle { generator.permutation(n_samples) } else { arange(n_samples) }
}

/// Samples of two classes, each on a curve.
struct Halves {
    place: Tensor,
    is_second: Tensor,
    first: usize,
    second: usize,
    noise: f64,
    generator: Generator,
}

impl Halves {
    fn new(n_samples: usize, shuffle: bool, noise: f64, random_state: u64) -> Halves {
        let generator = default_rng(random_state);
        let place = places(n_samples, shuffle, &generator);
        let first = n_samples / 2;
        let is_second = place.greater_equal(first as i64);
        Halves { place, is_second, first, second: n_samples - first, noise, generator }
    }

    /// The place of each sample among those of its class, divided by a number for the class.
    fn fraction(&self, divisor: impl Fn(usize) -> f64) -> Tensor {
        let second = self.place.subtract(self.first as i64).divide(divisor(self.second));
        where_(&self.is_second, second, self.place.divide(divisor(self.first)))
    }

    #[track_caller]
    fn samples(self, columns: [Tensor; 2]) -> Result<Samples> {
        let data = noisy(&[&columns[0], &columns[1]], self.noise, &self.generator)?;
        Ok(Samples { data, target: self.is_second.astype(DType::I64) })
    }
}
