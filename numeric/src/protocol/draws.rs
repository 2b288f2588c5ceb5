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
    ("rng.random", "(rng, size=None)", "uniform on [0, 1)", |_, args| {
        let rng = args.generator();
        tensor(rng.random(&args.size(0)?))
    }),
    ("rng.rayleigh", "(rng, scale=1.0, size=None)", "Rayleigh", |_, args| scaled(args, Generator::rayleigh)),
    ("rng.standard_normal", "(rng, size=None)", "normal with mean 0 and deviation 1", |_, args| {
        let rng = args.generator();
        tensor(rng.standard_normal(&args.size(0)?))
    }),
    ("rng.uniform", "(rng, low=0.0, high=1.0, size=None)", "uniform on [low, high)", |_, args| {
        let rng = args.generator();
        let (low, high) = (args.number_or(0, "low", 0.0)?, args.number_or(1, "high", 1.0)?);
        tensor(rng.uniform(low, high, &args.size(2)?))
    }),
    ("rng.weibull", "(rng, a, size=None)", "Weibull", |_, args| {
        let rng = args.generator();
        let a = args.need(0, "a")?.real()?;
        tensor(rng.weibull(a, &args.size(1)?))
    }),
];

type Scaled = fn(&Generator, f64, &[usize]) -> Tensor;
type Placed = fn(&Generator, f64, f64, &[usize]) -> Tensor;

fn scaled(args: &mut Args, draw: Scaled) -> Result<Value, Failure> {
    let rng = args.generator();
    let scale = args.number_or(0, "scale", 1.0)?;
    tensor(draw(&rng, scale, &args.size(1)?))
}

fn placed(args: &mut Args, names: [&str; 2], draw: Placed) -> Result<Value, Failure> {
    let rng = args.generator();
    let (place, scale) = (args.number_or(0, names[0], 0.0)?, args.number_or(1, names[1], 1.0)?);
    tensor(draw(&rng, place, scale, &args.size(2)?))
}
