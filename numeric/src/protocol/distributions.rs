//! Random operations of programs whose numbers are made of several others, and choices from arrays.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor};
use super::value::Value;
use crate::distributions::Factoring;
use crate::operand::cast;
use crate::random::Generator;
use crate::tensor::Tensor;
use tharsis_graph::ops::Require;
use tharsis_kernels::{DType, Scalar};

/// Distributions by rejection and in rows, permutations and choices.
pub(super) const DISTRIBUTIONS: &[Row] = &[
    ("rng.beta", "(rng, a, b, size=None)", "beta", |_, args| two(args, ["a", "b"], Generator::beta)),
    ("rng.binomial", "(rng, n, p, size=None)", "successes in n trials", |_, args| {
        let rng = args.generator();
        let (n, p) = (whole(args, 0, "n")?, args.need(1, "p")?.real()?);
        tensor(rng.binomial(n, p, &args.size(2)?))
    }),
    ("rng.chisquare", "(rng, df, size=None)", "chi-square", |_, args| one(args, "df", Generator::chisquare)),
    (
        "rng.choice",
        "(rng, a, size=None, replace=True, p=None, axis=0, shuffle=True)",
        "parts chosen at random",
        |_, args| choice(args),
    ),
    ("rng.dirichlet", "(rng, alpha, size=None)", "rows of shares", |_, args| {
        let rng = args.generator();
        let alpha = numbers(args, 0, "alpha")?;
        tensor(rng.dirichlet(&alpha, &args.size(1)?))
    }),
    ("rng.f", "(rng, dfnum, dfden, size=None)", "Fisher's F", |_, args| {
        two(args, ["dfnum", "dfden"], Generator::f)
    }),
    ("rng.gamma", "(rng, shape, scale=1.0, size=None)", "gamma", |_, args| {
        let rng = args.generator();
        let (shape, scale) = (args.need(0, "shape")?.real()?, args.number_or(1, "scale", 1.0)?);
        tensor(rng.gamma(shape, scale, &args.size(2)?))
    }),
    ("rng.geometric", "(rng, p, size=None)", "trials up to a success", |_, args| {
        one(args, "p", Generator::geometric)
    }),
    ("rng.hypergeometric", "(rng, ngood, nbad, nsample, size=None)", "good ones in a sample", |_, args| {
        let rng = args.generator();
        let (good, bad) = (whole(args, 0, "ngood")?, whole(args, 1, "nbad")?);
        let sample = whole(args, 2, "nsample")?;
        tensor(rng.hypergeometric(good, bad, sample, &args.size(3)?))
    }),
    ("rng.logseries", "(rng, p, size=None)", "logarithmic", |_, args| one(args, "p", Generator::logseries)),
    ("rng.multinomial", "(rng, n, pvals, size=None)", "how often each outcome occurs", |_, args| {
        let rng = args.generator();
        let (n, p) = (whole(args, 0, "n")?, numbers(args, 1, "pvals")?);
        tensor(rng.multinomial(n, &p, &args.size(2)?))
    }),
    (
        "rng.multivariate_hypergeometric",
        "(rng, colors, nsample, size=None)",
        "how many of each colour a sample has",
        |_, args| {
            let rng = args.generator();
            let colors = args.need(0, "colors")?.tensor()?;
            let colors = colors.compute_chunk_sizes()?.to_vec::<i64>()?;
            let sample = whole(args, 1, "nsample")?;
            tensor(rng.multivariate_hypergeometric(&colors, sample, &args.size(2)?))
        },
    ),
    (
        "rng.multivariate_normal",
        "(rng, mean, cov, size=None, check_valid='warn', tol=1e-08, *, method='svd')",
        "normal rows of a covariance",
        |_, args| {
            let rng = args.generator();
            let (mean, cov) = (args.tensor(0, "mean")?, args.tensor(1, "cov")?);
            let size = args.size(2)?;
            let factoring = match args.text_or(usize::MAX, "method", "svd")?.as_str() {
                "cholesky" => Factoring::Cholesky,
                "eigh" => Factoring::Eigen,
                "svd" => Factoring::Svd,
                _ => return Err(Failure::value("method must be one of {'eigh', 'svd', 'cholesky'}")),
            };
            let (check, tolerance) =
                (args.text_or(3, "check_valid", "warn")?, args.number_or(4, "tol", 1e-8)?);
            let cov = match check.as_str() {
                // That of a covariance which is not one fails.
                "raise" | "warn" if factoring == Factoring::Cholesky => cov,
                "raise" => {
                    let holds = is_semidefinite(&cov, tolerance, factoring);
                    Tensor::apply(Require { message: NOT_SEMIDEFINITE.to_owned() }, &[&cov, &holds])
                }
                "warn" => {
                    // Others have no factors, which is an error of its own.
                    if matches!(cov.shape()?, [rows, columns] if rows == columns) {
                        args.warn_unless(is_semidefinite(&cov, tolerance, factoring), NOT_SEMIDEFINITE);
                    }
                    cov
                }
                "ignore" => cov,
                _ => return Err(Failure::value("check_valid must equal 'warn', 'raise', or 'ignore'")),
            };
            tensor(rng.multivariate_normal(&mean, &cov, &size, factoring))
        },
    ),
    ("rng.negative_binomial", "(rng, n, p, size=None)", "failures before n successes", |_, args| {
        two(args, ["n", "p"], Generator::negative_binomial)
    }),
    (
        "rng.noncentral_chisquare",
        "(rng, df, nonc, size=None)",
        "chi-square around another centre",
        |_, args| two(args, ["df", "nonc"], Generator::noncentral_chisquare),
    ),
    ("rng.noncentral_f", "(rng, dfnum, dfden, nonc, size=None)", "F around another centre", |_, args| {
        let rng = args.generator();
        let (above, below) = (args.need(0, "dfnum")?.real()?, args.need(1, "dfden")?.real()?);
        let centre = args.need(2, "nonc")?.real()?;
        tensor(rng.noncentral_f(above, below, centre, &args.size(3)?))
    }),
    ("rng.permutation", "(rng, x, axis=0)", "parts in a random order", |_, args| {
        let rng = args.generator();
        let from = args.need(0, "x")?;
        let axis = args.integer_or(1, "axis", 0)?;
        match from {
            Value::Number(Scalar::Int(count)) => {
                let count = usize::try_from(count);
                tensor(rng.permutation(count.map_err(|_| Failure::value("x must be non-negative"))?))
            }
            from => tensor(rng.permutation_of(&from.tensor()?, axis)),
        }
    }),
    ("rng.permuted", "(rng, x, axis=None)", "lines in random orders of their own", |_, args| {
        let rng = args.generator();
        let x = args.need(0, "x")?.tensor()?;
        if x.ndim()? == 0 {
            return Err(Failure::kind("len() of unsized object"));
        }
        let axis = match args.take(1, "axis") {
            None | Some(Value::None) => None,
            Some(axis) => Some(axis.integer()?),
        };
        tensor(rng.permuted(&x, axis))
    }),
    ("rng.poisson", "(rng, lam=1.0, size=None)", "Poisson", |_, args| {
        let rng = args.generator();
        let mean = args.number_or(0, "lam", 1.0)?;
        tensor(rng.poisson(mean, &args.size(1)?))
    }),
    ("rng.standard_gamma", "(rng, shape, size=None)", "gamma with scale 1", |_, args| {
        one(args, "shape", Generator::standard_gamma)
    }),
    ("rng.standard_t", "(rng, df, size=None)", "Student's t", |_, args| {
        one(args, "df", Generator::standard_t)
    }),
    ("rng.vonmises", "(rng, mu, kappa, size=None)", "angles around a centre", |_, args| {
        two(args, ["mu", "kappa"], Generator::vonmises)
    }),
    ("rng.wald", "(rng, mean, scale, size=None)", "inverse Gaussian", |_, args| {
        two(args, ["mean", "scale"], Generator::wald)
    }),
    ("rng.zipf", "(rng, a, size=None)", "Zipf", |_, args| one(args, "a", Generator::zipf)),
];

/// Whether a covariance is symmetric and positive semidefinite, as the factors tell by which numbers are
/// made.
fn is_semidefinite(cov: &Tensor, tolerance: f64, factoring: Factoring) -> Tensor {
    let cov = cast(cov, DType::F64);
    if factoring == Factoring::Eigen {
        return cov.eigh(false).0.greater_equal(-tolerance).all(..);
    }
    let (_, values, rows) = cov.svd();
    let back = rows.matrix_transpose().multiply(&values).matmul(&rows);
    back.isclose(&cov, tolerance, tolerance).all(..)
}

const NOT_SEMIDEFINITE: &str = "covariance is not symmetric positive-semidefinite.";

fn one(args: &mut Args, name: &str, draw: fn(&Generator, f64, &[usize]) -> Tensor) -> Result<Value, Failure> {
    let rng = args.generator();
    let parameter = args.need(0, name)?.real()?;
    tensor(draw(&rng, parameter, &args.size(1)?))
}

type Two = fn(&Generator, f64, f64, &[usize]) -> Tensor;

fn two(args: &mut Args, names: [&str; 2], draw: Two) -> Result<Value, Failure> {
    let rng = args.generator();
    let (first, second) = (args.need(0, names[0])?.real()?, args.need(1, names[1])?.real()?);
    tensor(draw(&rng, first, second, &args.size(2)?))
}

/// A whole number; NumPy takes floats, and cuts their fractions off.
fn whole(args: &mut Args, position: usize, name: &str) -> Result<i64, Failure> {
    match args.need(position, name)? {
        Value::Number(Scalar::Float(number)) => Ok(number as i64),
        number => number.integer(),
    }
}

/// Few numbers, which are parameters of tasks: they are computed here.
fn numbers(args: &mut Args, position: usize, name: &str) -> Result<Vec<f64>, Failure> {
    let x = args.need(position, name)?.tensor()?;
    if x.ndim()? != 1 {
        return Err(Failure::missing(format!("{name} of other than one axis")));
    }
    Ok(cast(&x.compute_chunk_sizes()?, DType::F64).to_vec::<f64>()?)
}

fn choice(args: &mut Args) -> Result<Value, Failure> {
    let rng = args.generator();
    let from = args.need(0, "a")?;
    let size = args.size(1)?;
    let replace = args.flag(2, "replace", true)?;
    let p = super::statistics::other(args, 3, "p")?;
    let axis = args.integer_or(4, "axis", 0)?;
    // The order is random in any case.
    args.flag(5, "shuffle", true)?;
    let draw = |count: usize| -> Result<Tensor, Failure> {
        let Some(p) = &p else { return Ok(rng.choice(count, &size, replace)) };
        let shape = p.shape()?;
        if shape.len() == 1 && shape[0] != count && shape[0] != tharsis_graph::shape::UNKNOWN {
            return Err(Failure::value("a and p must have same size"));
        }
        Ok(rng.choice_weighted(&p.compute_chunk_sizes()?, &size, replace))
    };
    match from {
        Value::Number(Scalar::Int(count)) => {
            let refused = |_| Failure::value("a must be a positive integer unless no samples are taken");
            tensor(draw(usize::try_from(count).map_err(refused)?)?)
        }
        from => {
            let x = from.tensor()?;
            let at = tharsis_graph::shape::normalize_axis(axis, x.ndim()?)?;
            let x = x.compute_chunk_sizes()?;
            let chosen = draw(x.shape()?[at])?;
            chosen.check()?;
            tensor(x.take_at(&chosen, axis))
        }
    }
}
