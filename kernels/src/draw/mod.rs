//! Random numbers that are made of several others: distributions drawn by rejection, and rows of numbers that
//! depend on each other.
//!
//! Each element has a `Source` of its own, a sequence of bits that follows from its random number. So the
//! number of bits that it takes makes no difference to its neighbours, and a value does not depend on chunks.

mod counts;
mod log_chance;
mod rows;

use crate::chunk::Chunk;
use crate::dtype::DType;
use crate::error::KernelError;
use crate::random::{Key, open_unit};
use crate::ufunc::normal_quantile;
use serde::{Deserialize, Serialize};
use std::f64::consts::{PI, TAU};

/// A distribution with its parameters, which are valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Draw {
    Beta {
        a: f64,
        b: f64,
    },
    Binomial {
        count: i64,
        p: f64,
    },
    Chisquare {
        df: f64,
    },
    /// A row of shares that add up to 1.
    Dirichlet {
        alpha: Vec<f64>,
    },
    F {
        numerator: f64,
        denominator: f64,
        noncentral: f64,
    },
    Gamma {
        shape: f64,
    },
    Hypergeometric {
        good: i64,
        bad: i64,
        sample: i64,
    },
    LogSeries {
        p: f64,
    },
    /// A row of counts that add up to `count`.
    Multinomial {
        count: i64,
        p: Vec<f64>,
    },
    /// A row of counts that add up to `sample`.
    MultivariateHypergeometric {
        colors: Vec<i64>,
        sample: i64,
    },
    NegativeBinomial {
        count: f64,
        p: f64,
    },
    NoncentralChisquare {
        df: f64,
        noncentral: f64,
    },
    Poisson {
        mean: f64,
    },
    StudentT {
        df: f64,
    },
    VonMises {
        centre: f64,
        concentration: f64,
    },
    Wald {
        mean: f64,
        scale: f64,
    },
    Zipf {
        a: f64,
    },
}

impl Draw {
    /// The dtype of the numbers: int64 for counts, else float64.
    pub fn dtype(&self) -> DType {
        match self {
            Draw::Binomial { .. }
            | Draw::Hypergeometric { .. }
            | Draw::LogSeries { .. }
            | Draw::Multinomial { .. }
            | Draw::MultivariateHypergeometric { .. }
            | Draw::NegativeBinomial { .. }
            | Draw::Poisson { .. }
            | Draw::Zipf { .. } => DType::I64,
            _ => DType::F64,
        }
    }

    /// The length of a row, if rows are drawn.
    pub fn row(&self) -> Option<usize> {
        match self {
            Draw::Dirichlet { alpha } => Some(alpha.len()),
            Draw::Multinomial { p, .. } => Some(p.len()),
            Draw::MultivariateHypergeometric { colors, .. } => Some(colors.len()),
            _ => None,
        }
    }

    /// A draw for each of these random bits, uint64: any shape to the same, with the row as one more axis.
    ///
    /// # Errors
    /// `WrongDType` for other elements.
    pub fn run(&self, bits: &Chunk) -> Result<Chunk, KernelError> {
        let bits_of = bits.to_vec::<u64>()?;
        let sources = bits_of.into_iter().map(Source::new);
        let mut shape = bits.shape().to_vec();
        shape.extend(self.row());
        match self.dtype() {
            DType::I64 => {
                let mut made = Vec::with_capacity(shape.iter().product());
                sources.for_each(|mut source| self.counts(&mut source, &mut made));
                Chunk::from_elements(&shape, &made)
            }
            _ => {
                let mut made = Vec::with_capacity(shape.iter().product());
                match self {
                    Draw::Dirichlet { alpha } => {
                        sources.for_each(|mut source| rows::dirichlet(&mut source, alpha, &mut made));
                    }
                    _ => made.extend(sources.map(|mut source| self.real(&mut source))),
                }
                Chunk::from_elements(&shape, &made)
            }
        }
    }

    /// The counts of one draw.
    fn counts(&self, source: &mut Source, made: &mut Vec<i64>) {
        match self {
            Draw::Multinomial { count, p } => rows::multinomial(source, *count, p, made),
            Draw::MultivariateHypergeometric { colors, sample } => {
                rows::multivariate_hypergeometric(source, colors, *sample, made);
            }
            _ => made.push(self.count(source)),
        }
    }

    /// The count of one draw.
    fn count(&self, source: &mut Source) -> i64 {
        match self {
            Draw::Binomial { count, p } => counts::binomial(source, *count, *p),
            Draw::Hypergeometric { good, bad, sample } => {
                counts::hypergeometric(source, *good, *bad, *sample)
            }
            Draw::LogSeries { p } => counts::log_series(source, *p),
            // None fails, of however many: infinitely many times no chance is no number.
            Draw::NegativeBinomial { p, .. } if *p == 1.0 => 0,
            Draw::NegativeBinomial { count, p } => {
                let mean = gamma(source, *count) * (1.0 - p) / p;
                counts::poisson(source, mean) as i64
            }
            Draw::Poisson { mean } => counts::poisson(source, *mean) as i64,
            Draw::Zipf { a } => counts::zipf(source, *a),
            _ => 0,
        }
    }

    /// The number of one draw.
    fn real(&self, source: &mut Source) -> f64 {
        match *self {
            Draw::Beta { a, b } => beta(source, a, b),
            Draw::Chisquare { df } => chisquare(source, df),
            Draw::F { numerator, denominator, noncentral } => {
                let above = noncentral_chisquare(source, numerator, noncentral) / numerator;
                above / (chisquare(source, denominator) / denominator)
            }
            Draw::Gamma { shape } => gamma(source, shape),
            Draw::NoncentralChisquare { df, noncentral } => noncentral_chisquare(source, df, noncentral),
            Draw::StudentT { df } => source.normal() / (gamma(source, df / 2.0) / (df / 2.0)).sqrt(),
            Draw::VonMises { centre, concentration } => von_mises(source, centre, concentration),
            Draw::Wald { mean, scale } => wald(source, mean, scale),
            _ => f64::NAN,
        }
    }
}

/// The random bits of one element.
#[derive(Clone, Debug)]
struct Source {
    key: Key,
    drawn: u64,
}

impl Source {
    fn new(bits: u64) -> Source {
        Source { key: Key::of_bits(bits), drawn: 0 }
    }

    /// Uniform on (0, 1).
    fn unit(&mut self) -> f64 {
        self.drawn += 1;
        open_unit(self.key.bits(self.drawn))
    }

    /// Normal with mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        normal_quantile(self.unit())
    }
}

/// Gamma with scale 1: Marsaglia and Tsang, 2000. A shape below 1 is that of the next one, scaled down.
fn gamma(source: &mut Source, shape: f64) -> f64 {
    if !shape.is_finite() || shape == 0.0 {
        return shape;
    }
    if shape < 1.0 {
        let share = source.unit().ln() / shape;
        return gamma(source, shape + 1.0) * share.exp();
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = source.normal();
        let v = (1.0 + c * x).powi(3);
        if 0.0 < v && source.unit().ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            return d * v;
        }
    }
}

fn chisquare(source: &mut Source, df: f64) -> f64 {
    2.0 * gamma(source, df / 2.0)
}

/// A share of two gamma numbers; small shapes, for which these may both be zero, by Jöhnk, 1964, and tiny
/// ones, for which all shares are 0 or 1, by their chances.
fn beta(source: &mut Source, a: f64, b: f64) -> f64 {
    if 1.0 < a || 1.0 < b {
        let (x, y) = (gamma(source, a), gamma(source, b));
        // The sum of finite numbers may not be finite.
        return 0.5 * x / (0.5 * x + 0.5 * y);
    }
    if a < ALL_OR_NOTHING && b < ALL_OR_NOTHING {
        return if source.unit() * (a + b) < a { 1.0 } else { 0.0 };
    }
    loop {
        let (log_x, log_y) = (source.unit().ln() / a, source.unit().ln() / b);
        if log_x.exp() + log_y.exp() <= 1.0 {
            // Relative to the larger one, since both may be too small for numbers.
            let largest = log_x.max(log_y);
            let (x, y) = ((log_x - largest).exp(), (log_y - largest).exp());
            return x / (x + y);
        }
    }
}

fn noncentral_chisquare(source: &mut Source, df: f64, noncentral: f64) -> f64 {
    if noncentral == 0.0 {
        return chisquare(source, df);
    }
    if 1.0 < df {
        let shifted = source.normal() + noncentral.sqrt();
        return chisquare(source, df - 1.0) + shifted * shifted;
    }
    let more = counts::poisson(source, noncentral / 2.0);
    chisquare(source, df + 2.0 * more)
}

/// Angles around a centre: Best and Fisher, 1979.
fn von_mises(source: &mut Source, centre: f64, concentration: f64) -> f64 {
    let wrapped = |angle: f64| (angle + PI).rem_euclid(TAU) - PI;
    if concentration < CIRCULAR {
        return wrapped(centre + PI * (2.0 * source.unit() - 1.0));
    }
    if NARROW < concentration {
        return wrapped(centre + source.normal() / concentration.sqrt());
    }
    let tau = 1.0 + (1.0 + 4.0 * concentration * concentration).sqrt();
    let rho = (tau - (2.0 * tau).sqrt()) / (2.0 * concentration);
    // For small concentrations the difference above cancels out.
    let r = if concentration < 1e-5 {
        1.0 / concentration + concentration
    } else {
        (1.0 + rho * rho) / (2.0 * rho)
    };
    loop {
        let z = (PI * source.unit()).cos();
        let f = (1.0 + r * z) / (r + z);
        let c = concentration * (r - f);
        let u = source.unit();
        if 0.0 < c * (2.0 - c) - u || 0.0 <= (c / u).ln() + 1.0 - c {
            let angle = f.clamp(-1.0, 1.0).acos();
            return wrapped(centre + if source.unit() < 0.5 { -angle } else { angle });
        }
    }
}

/// The inverse Gaussian distribution: Michael, Schucany and Haas, 1976.
fn wald(source: &mut Source, mean: f64, scale: f64) -> f64 {
    if scale.is_infinite() {
        return mean;
    }
    let y = mean * source.normal().powi(2);
    // The smaller root of a quadratic equation, in the form that does not cancel, and by its share of the
    // mean: products of parameters and the square of y may leave the range where the root does not.
    let share = scale / (scale + 0.5 * y + y.sqrt() * (scale + 0.25 * y).sqrt());
    let x = mean * share;
    if source.unit() * (1.0 + share) <= 1.0 { x } else { mean / share }
}

/// Below these parameters beta numbers are 0 or 1, but for fewer than can be seen.
const ALL_OR_NOTHING: f64 = 3e-103;
/// Below this concentration all angles are equally likely.
const CIRCULAR: f64 = 1e-8;
/// Above it angles are normal: the rejection loses its digits.
const NARROW: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_its_own_bits_alone() {
        let bits: Vec<u64> = (0..64).map(|i| Key::new(3, 0).bits(i)).collect();
        let draws = [
            Draw::Gamma { shape: 0.3 },
            Draw::Poisson { mean: 40.0 },
            Draw::Multinomial { count: 9, p: vec![0.2, 0.3, 0.5] },
            Draw::Dirichlet { alpha: vec![0.01, 0.02] },
        ];
        for draw in draws {
            let all = draw.run(&Chunk::from_elements(&[8, 8], &bits).unwrap()).unwrap();
            let (row, shape) = (draw.row(), all.shape().to_vec());
            assert_eq!(shape, [&[8, 8][..], row.as_slice()].concat());
            let width = row.unwrap_or(1) * 8;
            for (i, one) in bits.iter().enumerate() {
                let alone = draw.run(&Chunk::from_elements(&[1], &[*one]).unwrap()).unwrap();
                let bytes = alone.buffer().bytes();
                assert_eq!(&all.buffer().bytes()[i * width..(i + 1) * width], &bytes[..width], "{draw:?}");
            }
        }
    }

    /// Every distribution with these two parameters where it takes them.
    fn with(a: f64, b: f64) -> Vec<Draw> {
        let (count, chance) = (a.min(1e18) as i64, b.clamp(5e-324, 1.0 - 1e-16));
        vec![
            Draw::Beta { a, b },
            Draw::Binomial { count, p: b.min(1.0) },
            Draw::Chisquare { df: a },
            Draw::Dirichlet { alpha: vec![a, b, 0.0] },
            Draw::F { numerator: a, denominator: b, noncentral: b },
            Draw::Gamma { shape: a },
            Draw::Hypergeometric { good: count.min(999_999_999), bad: 7, sample: 5 },
            Draw::LogSeries { p: chance },
            Draw::Multinomial { count, p: vec![b.min(1.0), 0.5] },
            Draw::NegativeBinomial { count: a, p: 1.0 },
            Draw::NegativeBinomial { count: a, p: chance },
            Draw::NoncentralChisquare { df: a, noncentral: b },
            Draw::Poisson { mean: a },
            Draw::StudentT { df: a },
            Draw::VonMises { centre: b, concentration: a },
            Draw::Wald { mean: a, scale: b },
            Draw::Zipf { a: 1.0 + a.max(f64::EPSILON) },
            Draw::Zipf { a: 1.0 + f64::EPSILON * (1.0 + a.min(100.0)) },
        ]
    }

    #[test]
    fn every_distribution_ends_for_every_parameter() {
        let sizes =
            [5e-324, 1e-310, 1e-103, 1e-5, 0.5, 1.0, 11.0, 9_007_199_254_740_993.0, 1e300, f64::INFINITY];
        let mut sources: Vec<Source> = (0..20).map(Source::new).collect();
        for (a, b) in sizes.iter().flat_map(|&a| sizes.map(|b| (a, b))) {
            for draw in with(a, b) {
                for source in &mut sources {
                    let before = source.drawn;
                    match draw.dtype() {
                        DType::I64 => draw.counts(source, &mut Vec::new()),
                        _ if draw.row().is_some() => rows::dirichlet(source, &[a, b, 0.0], &mut Vec::new()),
                        _ => {
                            let _drawn = draw.real(source);
                        }
                    }
                    let used = source.drawn - before;
                    assert!(used < 10_000, "{used} numbers for one of {draw:?}");
                }
            }
        }
    }

    #[test]
    fn infinite_parameters_give_the_limits() {
        let mut source = Source::new(1);
        assert_eq!(gamma(&mut source, f64::INFINITY), f64::INFINITY);
        assert_eq!(chisquare(&mut source, f64::INFINITY), f64::INFINITY);
        assert_eq!(noncentral_chisquare(&mut source, 1.0, f64::INFINITY), f64::INFINITY);
        assert!(Draw::StudentT { df: f64::INFINITY }.real(&mut source).is_nan());
        assert!(beta(&mut source, f64::INFINITY, 1.0).is_nan());
        assert_eq!(Draw::NegativeBinomial { count: f64::INFINITY, p: 1.0 }.count(&mut source), 0);
    }

    /// Mean, variance and kurtosis of draws in units of their own mean and deviation.
    fn moments(draw: &Draw, mean: f64, deviation: f64) -> [f64; 3] {
        let n = 40_000;
        let mut sums = [0.0; 3];
        for bits in 0..n {
            let mut source = Source::new(Key::new(11, 0).bits(bits));
            let value = if draw.dtype() == DType::I64 {
                draw.count(&mut source) as f64
            } else {
                draw.real(&mut source)
            };
            let away = (value - mean) / deviation;
            sums.iter_mut().zip([1, 2, 4]).for_each(|(sum, power)| *sum += away.powi(power));
        }
        sums.map(|sum| sum / n as f64)
    }

    #[test]
    fn large_counts_have_the_moments_of_their_distributions() {
        let mut cases = Vec::new();
        for n in [1e6f64, 1e12, 1e15, 1e16, 1e17, 4.6e18] {
            cases.push((Draw::Binomial { count: n as i64, p: 0.5 }, n / 2.0, n.sqrt() / 2.0));
            cases.push((Draw::Binomial { count: n as i64, p: 0.1 }, n / 10.0, n.sqrt() * 0.3));
            cases.push((Draw::Poisson { mean: n }, n, n.sqrt()));
            cases.push((Draw::Gamma { shape: n }, n, n.sqrt()));
        }
        for (draw, mean, deviation) in cases {
            let [first, second, fourth] = moments(&draw, mean, deviation);
            // Five standard errors each.
            assert!(first.abs() < 0.025, "{draw:?}: {first}");
            assert!((second - 1.0).abs() < 0.036, "{draw:?}: {second}");
            assert!((fourth - 3.0).abs() < 0.25, "{draw:?}: {fourth}");
        }
    }

    #[test]
    fn zipf_numbers_of_small_exponents_are_even_in_their_logarithms() {
        let mut mean = 0.0;
        let n = 10_000;
        for bits in 0..n {
            let mut source = Source::new(Key::new(12, 0).bits(bits));
            mean += (Draw::Zipf { a: 1.0 + 1e-12 }.count(&mut source) as f64).ln() / n as f64;
        }
        // The chance of k is in proportion to 1 / k below 2^63. The standard error is 0.13.
        let end = 63.0 * std::f64::consts::LN_2;
        let expected = end * end / 2.0 / (end + 0.577);
        assert!((mean - expected).abs() < 0.65, "{mean} {expected}");
    }

    #[test]
    fn inverse_gaussian_numbers_of_huge_parameters_are_those_of_the_limits() {
        let median = |mean: f64, scale: f64| {
            let draw = |bits| Draw::Wald { mean, scale }.real(&mut Source::new(Key::new(13, 0).bits(bits)));
            let mut draws: Vec<f64> = (0..10_001).map(draw).collect();
            draws.sort_by(f64::total_cmp);
            assert!(draws.iter().all(|draw| 0.0 <= *draw), "{mean} {scale}: {:?}", draws.last());
            draws[5_000]
        };
        // Of an endless mean it is that of the inverse of the square of a normal number.
        for scale in [1.0, 1e-10, 1e100] {
            assert!((median(1e300, scale) / scale / 2.198 - 1.0).abs() < 0.15, "{scale}");
        }
        // It has the same form wherever scale and mean have the same ratio.
        let even = median(1.0, 1.0);
        assert!((median(1e200, 1e200) / 1e200 / even - 1.0).abs() < 1e-9);
        assert!((median(1e-200, 1e-200) / 1e-200 / even - 1.0).abs() < 1e-9);
        // It is the mean where the scale is far above.
        assert_eq!([median(1.0, 1e308), median(2.0, f64::INFINITY)], [1.0, 2.0]);
    }

    #[test]
    fn tiny_parameters_choose_one_of_the_ends() {
        let mut source = Source::new(5);
        let draws: Vec<f64> = (0..10_000).map(|_| beta(&mut source, 3e-310, 1e-310)).collect();
        assert!(draws.iter().all(|&share| share == 0.0 || share == 1.0));
        let ones = draws.iter().sum::<f64>() / 10_000.0;
        assert!((ones - 0.75).abs() < 0.025, "{ones}");
        let mut row = Vec::new();
        rows::dirichlet(&mut source, &[0.0, 0.0], &mut row);
        assert_eq!(row, [0.0, 0.0]);
    }

    #[test]
    fn extreme_parameters_end_and_stay_in_their_ranges() {
        let mut source = Source::new(7);
        for _ in 0..1000 {
            let share = beta(&mut source, 1e-3, 1e-3);
            assert!((0.0..=1.0).contains(&share), "{share}");
            assert!(gamma(&mut source, 1e-4) >= 0.0);
            assert!(wald(&mut source, 1e6, 1e-3) > 0.0);
            assert!(von_mises(&mut source, 3.0, 1e-7).abs() <= PI);
            assert!(von_mises(&mut source, 3.0, 1e9).abs() <= PI);
        }
    }
}
