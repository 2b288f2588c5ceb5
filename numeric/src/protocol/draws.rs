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
use tharsis_kernels::{DType, Scalar};

/// Generators, and distributions that take one random number for each element.
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
    (
        "rng.integers",
        "(rng, low, high=None, size=None, dtype=int64, endpoint=False)",
        "integers, all equally likely",
        |_, args| integers(args),
    ),
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

fn integers(args: &mut Args) -> Result<Value, Failure> {
    let rng = args.generator();
    let low = args.need(0, "low")?.integer()?;
    let (low, high) = match args.take(1, "high") {
        None | Some(Value::None) => (0, low),
        Some(high) => (low, high.integer()?),
    };
    let size = args.size(2)?;
    let dtype = args.dtype(3, "dtype")?.unwrap_or(DType::I64);
    let last = if args.flag(4, "endpoint", false)? { high } else { high.saturating_sub(1) };
    if !(dtype.is_integer() || dtype == DType::Bool) {
        return Err(Failure::kind(format!("Unsupported dtype dtype('{dtype}') for integers")));
    }
    if low <= last {
        for (name, bound) in [("low", low), ("high", last)] {
            if !is_within(bound, dtype) {
                return Err(Failure::value(format!("{name} is out of bounds for {dtype}")));
            }
        }
    }
    let made = match last.checked_add(1) {
        Some(end) => rng.integers(low, end, &size),
        None => return Err(Failure::missing("integers up to the largest int64")),
    };
    tensor(crate::operand::cast(&made, dtype))
}

/// Whether a dtype has this number.
fn is_within(number: i64, dtype: DType) -> bool {
    tharsis_kernels::with_element!(dtype, T => {
        let nearest = <T as tharsis_kernels::Element>::from_scalar(Scalar::Int(number));
        tharsis_kernels::Element::to_scalar(nearest).to_f64() == number as f64
    })
}

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
