//! Draws of each distribution against its distribution function: the largest distance between the shares of
//! draws up to a point and the function there (Kolmogorov and Smirnov), and the moments. The functions'
//! values in `golden/distributions.jsonl` are SciPy's, by `make_distributions.py` beside it.

use serde_json::Value;
use tharsis_numeric::distributions::Factoring;
use tharsis_numeric::random::{Generator, default_rng};
use tharsis_numeric::{Chunks, DType, Tensor, arange, array};

const COUNT: usize = 40_000;

/// A draw of this distribution with these parameters.
fn drawn(rng: &Generator, name: &str, args: &[f64]) -> Tensor {
    let n = &[COUNT][..];
    let whole = |at: usize| args[at] as i64;
    match name {
        "beta" => rng.beta(args[0], args[1], n),
        "binomial" => rng.binomial(whole(0), args[1], n),
        "chisquare" => rng.chisquare(args[0], n),
        "exponential" => rng.exponential(args[0], n),
        "f" => rng.f(args[0], args[1], n),
        "gamma" => rng.gamma(args[0], args[1], n),
        "geometric" => rng.geometric(args[0], n),
        "gumbel" => rng.gumbel(args[0], args[1], n),
        "hypergeometric" => rng.hypergeometric(whole(0), whole(1), whole(2), n),
        "laplace" => rng.laplace(args[0], args[1], n),
        "logistic" => rng.logistic(args[0], args[1], n),
        "lognormal" => rng.lognormal(args[0], args[1], n),
        "logseries" => rng.logseries(args[0], n),
        "negative_binomial" => rng.negative_binomial(args[0], args[1], n),
        "noncentral_chisquare" => rng.noncentral_chisquare(args[0], args[1], n),
        "noncentral_f" => rng.noncentral_f(args[0], args[1], args[2], n),
        "normal" => rng.normal(args[0], args[1], n),
        "pareto" => rng.pareto(args[0], n),
        "poisson" => rng.poisson(args[0], n),
        "power" => rng.power(args[0], n),
        "rayleigh" => rng.rayleigh(args[0], n),
        "standard_cauchy" => rng.standard_cauchy(n),
        "standard_t" => rng.standard_t(args[0], n),
        "triangular" => rng.triangular(args[0], args[1], args[2], n),
        "vonmises" => rng.vonmises(args[0], args[1], n),
        "wald" => rng.wald(args[0], args[1], n),
        "weibull" => rng.weibull(args[0], n),
        "zipf" => rng.zipf(args[0], n),
        other => panic!("no distribution {other}"),
    }
}

fn values(x: &Tensor) -> Vec<f64> {
    x.astype(DType::F64).to_vec::<f64>().unwrap()
}

fn numbers(json: &Value) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn draws_have_the_distribution_function_and_the_moments_of_their_distribution() {
    let text = include_str!("../golden/distributions.jsonl");
    let mut failures = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let law: Value = serde_json::from_str(line).unwrap();
        let (name, args) = (law["name"].as_str().unwrap(), numbers(&law["args"]));
        let mut found = values(&drawn(&default_rng(17), name, &args));
        found.sort_by(f64::total_cmp);
        let share = |point: f64| found.partition_point(|&x| x <= point) as f64 / COUNT as f64;
        let (points, shares) = (numbers(&law["points"]), numbers(&law["cdf"]));
        let apart = points.iter().zip(shares).map(|(&point, expected)| (share(point) - expected).abs());
        let apart = apart.fold(0.0, f64::max) * (COUNT as f64).sqrt();
        // Of draws that are right, one in 10^5 is farther away.
        if 2.5 < apart {
            failures.push(format!("{index} {name} {args:?}: Kolmogorov-Smirnov {apart}"));
        }
        let mean = found.iter().sum::<f64>() / COUNT as f64;
        if let (Some(expected), Some(variance)) = (law["mean"].as_f64(), law["variance"].as_f64()) {
            let error = (mean - expected).abs() / (variance / COUNT as f64).sqrt().max(1e-300);
            if 5.0 < error && mean != expected {
                failures.push(format!("{index} {name} {args:?}: mean {mean}, not {expected}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn rows_have_their_means_and_covariances() {
    let rng = default_rng(23);
    let covariance = |x: &Tensor| {
        let away = x.subtract(x.mean(0));
        values(&away.t().matmul(&away).divide(COUNT as f64))
    };
    let near = |found: &[f64], expected: &[f64], tolerance: f64| {
        let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(found.len() == expected.len() && apart < tolerance, "{found:?}, not {expected:?}");
    };
    let x = rng.multinomial(20, &[0.2, 0.3, 0.5], &[COUNT]).astype(DType::F64);
    near(&values(&x.mean(0)), &[4.0, 6.0, 10.0], 0.06);
    near(&covariance(&x), &[3.2, -1.2, -2.0, -1.2, 4.2, -3.0, -2.0, -3.0, 5.0], 0.2);
    assert!(x.sum(1).equal(20.0).all(..).item().unwrap().is_true());
    for scale in [1.0, 0.01] {
        let alpha = [1.0, 2.0, 3.0].map(|a| a * scale);
        let x = rng.dirichlet(&alpha, &[COUNT]);
        let means = [1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0];
        near(&values(&x.mean(0)), &means, 0.012);
        let spread = |i: usize, j: usize| {
            (if i == j { means[i] } else { 0.0 } - means[i] * means[j]) / (6.0 * scale + 1.0)
        };
        let expected: Vec<f64> = (0..9).map(|at| spread(at / 3, at % 3)).collect();
        near(&covariance(&x), &expected, 0.006);
        assert!(x.sum(1).isclose(1.0, 1e-12, 0.0).all(..).item().unwrap().is_true());
    }
    let x = rng.multivariate_hypergeometric(&[30, 50, 20], 40, &[COUNT]).astype(DType::F64);
    near(&values(&x.mean(0)), &[12.0, 20.0, 8.0], 0.06);
    let scale = 40.0 * 60.0 / 99.0;
    let expected = [0.21, -0.15, -0.06, -0.15, 0.25, -0.1, -0.06, -0.1, 0.16].map(|share| share * scale);
    near(&covariance(&x), &expected, 0.2);
    let (mean, cov) = (array([1.0, -2.0]), array([4.0, 1.5, 1.5, 1.0]).reshape(&[2, 2]));
    for factoring in [Factoring::Cholesky, Factoring::Eigen, Factoring::Svd] {
        let x = rng.multivariate_normal(&mean, &cov, &[COUNT], factoring);
        near(&values(&x.mean(0)), &[1.0, -2.0], 0.06);
        near(&covariance(&x), &[4.0, 1.5, 1.5, 1.0], 0.12);
    }
    assert_eq!(rng.multivariate_normal(&mean, &cov, &[2, 3], Factoring::Svd).shape().unwrap(), [2, 3, 2]);
}

#[test]
fn choices_have_their_chances_and_permutations_lose_nothing() {
    let p = array([0.1, 0.0, 0.3, 0.6]);
    let rng = default_rng(29);
    let shares = |x: &Tensor| -> Vec<f64> {
        values(&x.bincount(None, 4)).iter().map(|count| count / COUNT as f64).collect()
    };
    let found = shares(&rng.choice_weighted(&p, &[COUNT], true));
    assert!(found.iter().zip([0.1, 0.0, 0.3, 0.6]).all(|(a, b)| (a - b).abs() < 0.012), "{found:?}");
    // The first of two without replacement has the same chances, the second one those that are left.
    let mut seconds = [0.0; 4];
    let draws = 2_000;
    for _ in 0..draws {
        let pair = rng.choice_weighted(&p, &[2], false).to_vec::<i64>().unwrap();
        assert_ne!(pair[0], pair[1]);
        seconds[pair[1] as usize] += 1.0 / f64::from(draws);
    }
    let second = |i: usize, p: [f64; 4]| -> f64 {
        (0..4).filter(|&first| first != i).map(|first| p[first] * p[i] / (1.0 - p[first])).sum()
    };
    let expected = [0, 1, 2, 3].map(|i| second(i, [0.1, 0.0, 0.3, 0.6]));
    assert!(seconds.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.05), "{seconds:?} {expected:?}");
    let x = arange(60).reshape(&[3, 4, 5]).rechunk(Chunks::Each(2));
    let lines = rng.permuted(&x, Some(1));
    assert_eq!(lines.sort(1).to_vec::<i64>().unwrap(), x.to_vec::<i64>().unwrap());
    let apart = lines.get(&[(0..1).into()]).not_equal(x.get(&[(0..1).into()]));
    assert!(apart.any(..).item().unwrap().is_true());
    let parts = rng.permutation_of(&x, 2);
    assert_eq!(parts.sort(2).to_vec::<i64>().unwrap(), x.to_vec::<i64>().unwrap());
    // Parts stay together.
    let steps = parts.diff(1, 0);
    assert!(steps.equal(20).all(..).item().unwrap().is_true());
    let all = rng.permuted(&x, None);
    assert_eq!(all.ravel().sort(0).to_vec::<i64>().unwrap(), (0..60).collect::<Vec<i64>>());
    let some = x.filter(&x.get(&[tharsis_numeric::Index::from(..), 0.into(), 0.into()]).less(30));
    assert_eq!(rng.permutation_of(&some, 0).sort(0).to_vec::<i64>().unwrap(), (0..40).collect::<Vec<i64>>());
}

#[test]
fn draws_do_not_depend_on_chunks_and_different_calls_are_unrelated() {
    type Draw = fn(&Generator) -> Tensor;
    let draws: [(&str, Draw); 6] = [
        ("gamma", |rng| rng.gamma(0.7, 2.0, &[5_001])),
        ("poisson", |rng| rng.poisson(30.0, &[5_001])),
        ("binomial", |rng| rng.binomial(100, 0.4, &[5_001])),
        ("dirichlet", |rng| rng.dirichlet(&[1.0, 2.0], &[5_001])),
        ("vonmises", |rng| rng.vonmises(0.0, 2.0, &[5_001])),
        ("choice", |rng| rng.choice_weighted(&array([0.25, 0.75]), &[5_001], true)),
    ];
    let mut columns: Vec<(&str, Vec<f64>)> = Vec::new();
    for (name, draw) in draws {
        let rng = default_rng(31);
        let (first, second) = (draw(&rng), draw(&rng));
        let cut = draw(&default_rng(31)).rechunk(Chunks::Each(900));
        assert_eq!(values(&first), values(&cut), "{name} depends on chunks");
        for x in [first, second] {
            let x = if x.ndim().unwrap() == 2 { x.get(&[(..).into(), 0.into()]) } else { x };
            let x = x.astype(DType::F64);
            columns.push((name, values(&x.subtract(x.mean(..)).divide(x.std(..)))));
        }
    }
    for (at, (a, x)) in columns.iter().enumerate() {
        for (b, y) in &columns[..at] {
            let product = x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>() / x.len() as f64;
            assert!(product.abs() < 0.08, "{a} and {b} are correlated: {product}");
        }
    }
}

#[test]
fn parameters_that_are_none_are_refused_as_numpy_does() {
    let rng = default_rng(1);
    let n = &[3][..];
    let refused = [
        (rng.gamma(-1.0, 1.0, n), "shape < 0"),
        (rng.gamma(1.0, -1.0, n), "scale < 0"),
        (rng.beta(0.0, 1.0, n), "a <= 0"),
        (rng.chisquare(0.0, n), "df <= 0"),
        (rng.f(1.0, 0.0, n), "dfden <= 0"),
        (rng.noncentral_f(1.0, 1.0, -1.0, n), "nonc < 0"),
        (rng.vonmises(0.0, -1.0, n), "kappa < 0"),
        (rng.wald(0.0, 1.0, n), "mean <= 0"),
        (rng.poisson(-1.0, n), "lam < 0 or lam is NaN"),
        (rng.poisson(1e30, n), "lam value too large"),
        (rng.binomial(-1, 0.5, n), "n < 0"),
        (rng.binomial(1, 1.5, n), "p < 0, p > 1 or p is NaN"),
        (rng.negative_binomial(1.0, 0.0, n), "p <= 0, p > 1 or p contains NaNs"),
        (rng.geometric(0.0, n), "p <= 0, p > 1 or p contains NaNs"),
        (rng.hypergeometric(1, 2, 5, n), "ngood + nbad < nsample"),
        (rng.logseries(1.0, n), "p < 0, p >= 1 or p is NaN"),
        (rng.zipf(1.0, n), "a <= 1 or a is NaN"),
        (rng.multinomial(3, &[0.5, -0.1], n), "pvals < 0, pvals > 1 or pvals contains NaNs"),
        (rng.dirichlet(&[-1.0], n), "alpha < 0"),
        (rng.multivariate_hypergeometric(&[3, 2], 6, n), "nsample > sum(colors)"),
        (
            rng.multivariate_normal(&arange(2), &arange(4), n, Factoring::Svd),
            "cov must be 2 dimensional and square",
        ),
        (rng.choice_weighted(&arange(4).reshape(&[2, 2]), n, true), "p must be 1-dimensional"),
    ];
    for (made, text) in refused {
        let error = made.check().unwrap_err();
        assert_eq!(error.class(), "ValueError");
        assert!(error.to_string().starts_with(text), "{error}, not {text}");
    }
    for (p, text) in [
        ([0.5, 0.6], "Probabilities do not sum to 1"),
        ([-0.5, 1.5], "Probabilities are not non-negative"),
        ([f64::NAN, 0.5], "Probabilities contain NaN"),
    ] {
        let error = rng.choice_weighted(&array(p), n, true).to_vec::<i64>().unwrap_err();
        assert_eq!((error.class(), error.to_string().contains(text)), ("ValueError", true), "{error}");
    }
    let error = rng.choice_weighted(&array([1.0, 0.0]), &[2], false).to_vec::<i64>().unwrap_err();
    assert!(error.to_string().contains("Fewer non-zero entries in p than size"), "{error}");
}
