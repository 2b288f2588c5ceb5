//! Random operations of programs: NumPy's `Generator` methods.
//!
//! The first argument may be a generator made by `np.random.default_rng`; without one, the generator of the
//! request is used, whose seed is in its context.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor};
use super::value::Value;
use crate::random::{Generator, default_rng, default_rng_words};
use crate::tensor::Tensor;
use std::sync::Arc;
use tharsis_kernels::Scalar;

/// All operations with random numbers.
pub(super) const DRAWS: &[Row] = &[
    ("np.random.default_rng", "(seed)", "a generator; the numbers are not NumPy's", |_, args| {
        let negative = || Failure::value("expected non-negative integer");
        let generator = match args.need(0, "seed")? {
            Value::Large(seed) if !seed.is_negative() => default_rng_words(&seed.words()),
            Value::Large(_) => return Err(negative()),
            Value::Number(Scalar::Unsigned(seed)) => default_rng(seed),
            seed => default_rng(u64::try_from(seed.integer()?).map_err(|_| negative())?),
        };
        Ok(Value::Generator(Arc::new(generator)))
    }),
    ("rng.choice", "(rng, a, size=None, replace=True, axis=0)", "parts chosen at random", |_, args| {
        let rng = args.generator();
        let from = args.need(0, "a")?;
        let size = args.size(1)?;
        let replace = args.flag(2, "replace", true)?;
        match args.take(3, "p") {
            None | Some(Value::None) => {}
            Some(_) => return Err(Failure::missing("choice with probabilities")),
        }
        let axis = args.integer_or(4, "axis", 0)?;
        match from {
            Value::Number(Scalar::Int(count)) => {
                let count = usize::try_from(count);
                let refused = |_| Failure::value("a must be a positive integer unless no samples are taken");
                tensor(rng.choice(count.map_err(refused)?, &size, replace))
            }
            from => {
                let x = from.tensor()?;
                let at = tharsis_graph::shape::normalize_axis(axis, x.ndim()?)?;
                let chosen = rng.choice(x.shape()?[at], &size, replace);
                chosen.check()?;
                tensor(x.take_at(&chosen, axis))
            }
        }
    }),
    ("rng.exponential", "(rng, scale=1.0, size=None)", "exponential", |_, args| {
        scaled(args, Generator::exponential)
    }),
    ("rng.gumbel", "(rng, loc=0.0, scale=1.0, size=None)", "Gumbel", |_, args| {
        placed(args, ["loc", "scale"], Generator::gumbel)
    }),
    ("rng.integers", "(rng, low, high=None, size=None)", "integers, all equally likely", |_, args| {
        let rng = args.generator();
        let low = args.need(0, "low")?.integer()?;
        let (low, high) = match args.take(1, "high") {
            None | Some(Value::None) => (0, low),
            Some(high) => (low, high.integer()?),
        };
        tensor(rng.integers(low, high, &args.size(2)?))
    }),
    ("rng.laplace", "(rng, loc=0.0, scale=1.0, size=None)", "Laplace", |_, args| {
        placed(args, ["loc", "scale"], Generator::laplace)
    }),
    ("rng.logistic", "(rng, loc=0.0, scale=1.0, size=None)", "logistic", |_, args| {
        placed(args, ["loc", "scale"], Generator::logistic)
    }),
    (
        "rng.lognormal",
        "(rng, mean=0.0, sigma=1.0, size=None)",
        "exponentials of normal numbers",
        |_, args| placed(args, ["mean", "sigma"], Generator::lognormal),
    ),
    ("rng.normal", "(rng, loc=0.0, scale=1.0, size=None)", "normal", |_, args| {
        placed(args, ["loc", "scale"], Generator::normal)
    }),
    ("rng.pareto", "(rng, a, size=None)", "Pareto", |_, args| shaped(args, Generator::pareto)),
    ("rng.permutation", "(rng, x, axis=0)", "parts in a random order", |_, args| {
        let rng = args.generator();
        let from = args.need(0, "x")?;
        let axis = args.integer_or(1, "axis", 0)?;
        match from {
            Value::Number(Scalar::Int(count)) => {
                let count = usize::try_from(count);
                tensor(rng.permutation(count.map_err(|_| Failure::value("x must be non-negative"))?))
            }
            from => {
                let x = from.tensor()?;
                let at = tharsis_graph::shape::normalize_axis(axis, x.ndim()?)?;
                tensor(x.take_at(&rng.permutation(x.shape()?[at]), axis))
            }
        }
    }),
    ("rng.power", "(rng, a, size=None)", "powers of uniform numbers", |_, args| {
        shaped(args, Generator::power)
    }),
    ("rng.random", "(rng, size=None)", "uniform on [0, 1)", |_, args| {
        let rng = args.generator();
        tensor(rng.random(&args.size(0)?))
    }),
    ("rng.rayleigh", "(rng, scale=1.0, size=None)", "Rayleigh", |_, args| scaled(args, Generator::rayleigh)),
    ("rng.standard_cauchy", "(rng, size=None)", "Cauchy", |_, args| {
        let rng = args.generator();
        tensor(rng.standard_cauchy(&args.size(0)?))
    }),
    ("rng.standard_exponential", "(rng, size=None)", "exponential with mean 1", |_, args| {
        let rng = args.generator();
        tensor(rng.standard_exponential(&args.size(0)?))
    }),
    ("rng.standard_normal", "(rng, size=None)", "normal with mean 0 and deviation 1", |_, args| {
        let rng = args.generator();
        tensor(rng.standard_normal(&args.size(0)?))
    }),
    ("rng.triangular", "(rng, left, mode, right, size=None)", "triangular", |_, args| {
        let rng = args.generator();
        let (left, mode) = (args.need(0, "left")?.real()?, args.need(1, "mode")?.real()?);
        let right = args.need(2, "right")?.real()?;
        tensor(rng.triangular(left, mode, right, &args.size(3)?))
    }),
    ("rng.uniform", "(rng, low=0.0, high=1.0, size=None)", "uniform on [low, high)", |_, args| {
        let rng = args.generator();
        let (low, high) = (args.number_or(0, "low", 0.0)?, args.number_or(1, "high", 1.0)?);
        tensor(rng.uniform(low, high, &args.size(2)?))
    }),
    ("rng.weibull", "(rng, a, size=None)", "Weibull", |_, args| shaped(args, Generator::weibull)),
];

type Scaled = fn(&Generator, f64, &[usize]) -> Tensor;
type Placed = fn(&Generator, f64, f64, &[usize]) -> Tensor;

fn scaled(args: &mut Args, draw: Scaled) -> Result<Value, Failure> {
    let rng = args.generator();
    let scale = args.number_or(0, "scale", 1.0)?;
    tensor(draw(&rng, scale, &args.size(1)?))
}

fn shaped(args: &mut Args, draw: Scaled) -> Result<Value, Failure> {
    let rng = args.generator();
    let a = args.need(0, "a")?.real()?;
    tensor(draw(&rng, a, &args.size(1)?))
}

fn placed(args: &mut Args, names: [&str; 2], draw: Placed) -> Result<Value, Failure> {
    let rng = args.generator();
    let (place, scale) = (args.number_or(0, names[0], 0.0)?, args.number_or(1, names[1], 1.0)?);
    tensor(draw(&rng, place, scale, &args.size(2)?))
}
