//! Each distribution of a generator: the moments that it has by definition, and the same numbers for any
//! chunks.

use std::f64::consts::{E, PI};
use tharsis_numeric::random::{Generator, default_rng};
use tharsis_numeric::{Chunks, LocalExecutor, Tensor};

const COUNT: usize = 200_000;
/// Euler's constant.
const GAMMA: f64 = 0.577_215_664_901_532_9;

struct Distribution {
    name: &'static str,
    draw: fn(&Generator, &[usize]) -> Tensor,
    mean: f64,
    variance: f64,
}

/// Distributions with their textbook means and variances.
fn distributions() -> Vec<Distribution> {
    let of = |name, draw, mean, variance| Distribution { name, draw, mean, variance };
    vec![
        of("random", |g, n| g.random(n), 0.5, 1.0 / 12.0),
        of("uniform", |g, n| g.uniform(-2.0, 4.0, n), 1.0, 3.0),
        of("standard_normal", |g, n| g.standard_normal(n), 0.0, 1.0),
        of("normal", |g, n| g.normal(3.0, 2.0, n), 3.0, 4.0),
        of("exponential", |g, n| g.exponential(2.0, n), 2.0, 4.0),
        of(
            "lognormal",
            |g, n| g.lognormal(0.0, 0.5, n),
            (0.125f64).exp(),
            0.25f64.exp() * (0.25f64.exp() - 1.0),
        ),
        of("logistic", |g, n| g.logistic(1.0, 2.0, n), 1.0, 4.0 * PI * PI / 3.0),
        of("gumbel", |g, n| g.gumbel(1.0, 2.0, n), 1.0 + 2.0 * GAMMA, 4.0 * PI * PI / 6.0),
        of("rayleigh", |g, n| g.rayleigh(2.0, n), 2.0 * (PI / 2.0).sqrt(), 2.0 * (4.0 - PI)),
        of("weibull", |g, n| g.weibull(1.0, n), 1.0, 1.0),
        of("laplace", |g, n| g.laplace(1.0, 2.0, n), 1.0, 8.0),
        of("pareto", |g, n| g.pareto(10.0, n), 1.0 / 9.0, 10.0 / (81.0 * 8.0)),
        of("power", |g, n| g.power(2.0, n), 2.0 / 3.0, 1.0 / 18.0),
        of("standard_exponential", |g, n| g.standard_exponential(n), 1.0, 1.0),
        of("triangular", |g, n| g.triangular(-1.0, 0.0, 4.0, n), 1.0, 21.0 / 18.0),
        of("integers", |g, n| g.integers(-3, 4, n).astype(tharsis_numeric::DType::F64), 0.0, 4.0),
    ]
}

fn values(tensor: &Tensor) -> Vec<f64> {
    let executor = LocalExecutor::new(2, 1 << 30).unwrap();
    let (results, _) = tharsis_numeric::execute(&[tensor], &executor).unwrap();
    results[0].to_chunk(&executor).unwrap().to_vec::<f64>().unwrap()
}

#[test]
fn every_distribution_has_its_mean_and_its_variance() {
    for Distribution { name, draw, mean, variance } in distributions() {
        let drawn = values(&draw(&default_rng(11), &[COUNT]));
        assert!(drawn.iter().all(|x| x.is_finite()), "{name} has values that are not finite");
        let n = COUNT as f64;
        let found = drawn.iter().sum::<f64>() / n;
        let spread = drawn.iter().map(|x| (x - found).powi(2)).sum::<f64>() / n;
        // The mean within five standard errors; the variance within 3 %, which even the heaviest tail here
        // satisfies.
        assert!((found - mean).abs() < 5.0 * (variance / n).sqrt(), "{name}: mean {found}, not {mean}");
        assert!((spread / variance - 1.0).abs() < 0.03, "{name}: variance {spread}, not {variance}");
    }
}

#[test]
fn numbers_do_not_depend_on_chunks_or_on_what_is_computed_with_them() {
    for Distribution { name, draw, .. } in distributions() {
        let whole = values(&draw(&default_rng(5), &[4_001]));
        let cut = draw(&default_rng(5), &[4_001]).rechunk(Chunks::PerAxis(vec![997]));
        assert!(
            whole.iter().zip(&values(&cut)).all(|(a, b)| a.to_bits() == b.to_bits()),
            "{name} depends on chunks"
        );
    }
}

#[test]
fn what_two_generators_of_one_seed_draw_from_different_distributions_is_unrelated() {
    const COUNT: usize = 50_000;
    let drawn: Vec<(&str, Vec<f64>)> = distributions()
        .into_iter()
        .map(|Distribution { name, draw, mean, variance }| {
            let drawn = values(&draw(&default_rng(8), &[COUNT]));
            (name, drawn.iter().map(|x| (x - mean) / variance.sqrt()).collect())
        })
        .collect();
    // These are made of others by definition: of the same draw, of normal, exponential and uniform numbers.
    let same = |a: &str, b: &str| {
        let family = |name: &str| match name {
            "random" | "uniform" => 1,
            "standard_normal" | "normal" | "lognormal" => 2,
            "exponential" | "standard_exponential" => 3,
            _ => 0,
        };
        family(a) != 0 && family(a) == family(b)
    };
    for (i, (a, x)) in drawn.iter().enumerate() {
        for (b, y) in drawn[..i].iter().filter(|(b, _)| !same(a, b)) {
            let product = x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>() / COUNT as f64;
            assert!(product.abs() < 0.03, "{a} and {b} are correlated: {product}");
        }
    }
}

#[test]
fn a_source_that_several_steps_read_is_the_same_for_all_of_them() {
    let u = default_rng(3).logistic(0.0, 1.0, &[1_000]);
    let e = &u + E;
    let back = values(&(e - &u));
    assert!(back.iter().all(|x| (x - E).abs() < 1e-14), "{:?}", &back[..4]);
}
