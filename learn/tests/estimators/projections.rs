//! Random maps, whose numbers are not scikit-learn's: their distributions, and what they keep.

use std::f64::consts::TAU;
use tharsis_learn::kernel_approximation::{
    Gamma, Nystroem, PolynomialCountSketch, RBFSampler, SkewedChi2Sampler,
};
use tharsis_learn::metrics::{Rbf, euclidean_distances, rbf_kernel};
use tharsis_learn::random_projection::{
    GaussianRandomProjection, SparseRandomProjection, johnson_lindenstrauss_min_dim,
};
use tharsis_learn::{Result, Save};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, DType, Tensor, arange, array, ones, zeros};

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.astype(DType::F64).ravel().to_vec::<f64>().unwrap()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn samples(rows: usize, columns: usize) -> Tensor {
    default_rng(17).normal(0.0, 1.0, &[rows, columns]).execute().unwrap()
}

/// The largest distance of the numbers of two arrays.
fn apart(a: &Tensor, b: &Tensor) -> f64 {
    numbers(a).iter().zip(numbers(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Numbers of scikit-learn 1.9.1.
#[test]
fn dimensions_that_keep_distances() {
    assert_eq!(johnson_lindenstrauss_min_dim(1000, 0.1).unwrap(), 5920);
    assert_eq!(johnson_lindenstrauss_min_dim(1_000_000, 0.5).unwrap(), 663);
    assert_eq!(johnson_lindenstrauss_min_dim(1, 0.99).unwrap(), 0);
    for eps in [0.0, 1.0, 1.5, f64::NAN] {
        let error = johnson_lindenstrauss_min_dim(10, eps).unwrap_err();
        assert!(error.to_string().starts_with("The JL bound is defined for eps in ]0, 1["), "{error}");
    }
    let model = GaussianRandomProjection::new().eps(0.5).fit(&zeros(&[5, 2000]), ..).unwrap();
    assert_eq!(model.n_components, 77);
}

#[test]
fn matrices_have_their_distributions() {
    let (rows, columns) = (200, 500);
    let x = zeros(&[3, columns]);
    let gaussian = GaussianRandomProjection::new().n_components(rows).fit(&x, ..).unwrap();
    let found = numbers(&gaussian.components());
    let count = (rows * columns) as f64;
    // The mean of so many, and the mean of their squares.
    assert!(mean(&found).abs() < 5.0 / (rows as f64 * count).sqrt());
    let squares: Vec<f64> = found.iter().map(|number| number * number * rows as f64).collect();
    assert!((mean(&squares) - 1.0).abs() < 5.0 * (2.0 / count).sqrt(), "{}", mean(&squares));
    for density in [None, Some(0.1), Some(1.0)] {
        let mut estimator = SparseRandomProjection::new().n_components(rows);
        if let Some(density) = density {
            estimator = estimator.density(density);
        }
        let model = estimator.fit(&x, ..).unwrap();
        let share = density.unwrap_or(1.0 / (columns as f64).sqrt());
        assert!((model.density.unwrap() - share).abs() < 1e-15);
        let size = 1.0 / (share * rows as f64).sqrt();
        let found = numbers(&model.components());
        let of = |wanted: f64| found.iter().filter(|number| (**number - wanted).abs() < 1e-12).count() as f64;
        assert_eq!(of(0.0) + of(size) + of(-size), count);
        for (found, expected) in [(of(size), share / 2.0), (of(-size), share / 2.0)] {
            let deviation = (count * expected * (1.0 - expected)).sqrt();
            assert!((found - count * expected).abs() < 5.0 * deviation, "{found} of {count}, {share}");
        }
    }
    let other = GaussianRandomProjection::new().n_components(rows).random_state(1).fit(&x, ..).unwrap();
    assert!(0.01 < apart(&other.components(), &gaussian.components()));
}

#[test]
fn projections_keep_distances_and_come_back() {
    let x = samples(12, 3000);
    let cut = x.rechunk(Chunks::PerAxis(vec![5, 700])).execute().unwrap();
    for sparse in [false, true] {
        let fit = |count: Option<usize>, x: &Tensor| match (sparse, count) {
            (false, None) => GaussianRandomProjection::new().eps(0.3).fit(x, ..),
            (true, None) => SparseRandomProjection::new().eps(0.3).fit(x, ..),
            (false, Some(count)) => GaussianRandomProjection::new().n_components(count).fit(x, ..),
            (true, Some(count)) => SparseRandomProjection::new().n_components(count).density(0.5).fit(x, ..),
        };
        let model = fit(None, &x).unwrap();
        let made = model.transform(&x);
        assert_eq!(made.shape().unwrap(), [12, model.n_components]);
        let [before, after] = [&x, &made].map(|x| numbers(&euclidean_distances(x, ..)));
        for (before, after) in before.iter().zip(&after).filter(|(before, _)| 0.0 < **before) {
            let ratio = (after / before).powi(2);
            assert!((0.7..1.3).contains(&ratio), "{ratio}");
        }
        // The matrix is that of the model, however samples are cut.
        let product = x.matmul(&model.components().t());
        assert!(apart(&made, &product) < 1e-9 && apart(&model.transform(&cut), &product) < 1e-9);
        assert_eq!(model.transform(&x.astype(DType::F32)).dtype().unwrap(), DType::F32);
        // More components than features have the samples, fewer have their projections.
        let few = x.get(&[(..).into(), (..6i64).into()]);
        let wide = fit(Some(40), &few).unwrap();
        assert!(apart(&wide.inverse_transform(&wide.transform(&few)), &few) < 1e-9);
        let narrow = fit(Some(3), &few).unwrap();
        let made = narrow.transform(&few);
        assert!(apart(&narrow.transform(&narrow.inverse_transform(&made)), &made) < 1e-9);
    }
}

#[test]
fn mistakes_of_random_maps_are_refused_as_by_scikit_learn() {
    let x = samples(30, 5);
    let refusals: Vec<(Result<()>, &str)> = vec![
        (
            GaussianRandomProjection::new().fit(&x, ..).map(drop),
            "eps=0.100000 and n_samples=30 lead to a target dimension of 2915 which is larger than the original space \
             with n_features=5",
        ),
        (
            SparseRandomProjection::new().eps(0.99).fit(&zeros(&[1, 200]), ..).map(drop),
            "eps=0.990000 and n_samples=1 lead to a target dimension of 0 which is invalid",
        ),
        (
            GaussianRandomProjection::new().eps(1.5).fit(&x, ..).map(drop),
            "The JL bound is defined for eps in ]0, 1[",
        ),
        (
            GaussianRandomProjection::new().eps(-1.0).fit(&x, ..).map(drop),
            "The 'eps' parameter of GaussianRandomProjection must be a float in the range (0.0, inf). Got -1 instead.",
        ),
        (
            SparseRandomProjection::new().density(1.5).fit(&x, ..).map(drop),
            "The 'density' parameter of SparseRandomProjection must be a float in the range (0.0, 1.0] or a str among \
             {'auto'}. Got 1.5 instead.",
        ),
        (
            RBFSampler::new().gamma(-1.0).fit(&x, ..).map(drop),
            "The 'gamma' parameter of RBFSampler must be a str among {'scale'} or a float in the range [0.0, inf).",
        ),
        (
            SkewedChi2Sampler::new().n_components(0).fit(&x, ..).map(drop),
            "The 'n_components' parameter of SkewedChi2Sampler must be an int in the range [1, inf). Got 0 instead.",
        ),
        (
            PolynomialCountSketch::new().degree(0).fit(&x, ..).map(drop),
            "The 'degree' parameter of PolynomialCountSketch must be an int in the range [1, inf). Got 0 instead.",
        ),
        (
            Nystroem::new().degree(0.5).fit(&x, ..).map(drop),
            "The 'degree' parameter of Nystroem must be a float in the range [1.0, inf) or None. Got 0.5 instead.",
        ),
        (RBFSampler::new().fit(&(&x * f64::NAN), ..).map(drop), "Input X contains NaN"),
    ];
    for (made, text) in refusals {
        let error = made.unwrap_err();
        assert_eq!(error.class(), "ValueError");
        assert!(error.to_string().starts_with(text), "{error}");
    }
    let model = SkewedChi2Sampler::new().fit(&x, ..).unwrap();
    let error = model.transform(&(ones(&[1, 5]) * -1.0)).execute().map(drop).unwrap_err();
    assert!(error.to_string().starts_with("X may not contain entries smaller than -skewedness."), "{error}");
}

#[test]
fn products_of_random_cosines_are_the_kernel() {
    let components = 20_000;
    let bound = 5.0 / (components as f64).sqrt();
    let x = samples(8, 3);
    let model = RBFSampler::new().gamma(0.3).n_components(components).random_state(2).fit(&x, ..).unwrap();
    let made = model.transform(&x);
    let expected = rbf_kernel(&x, Rbf { gamma: Some(0.3), y: None });
    assert!(apart(&made.matmul(&made.t()), &expected) < bound);
    // The scale is that of all numbers.
    let model = RBFSampler::new().gamma(Gamma::Scale).fit(&x, ..).unwrap();
    assert!((model.gamma * 3.0 * numbers(&x.var(..))[0] - 1.0).abs() < 1e-12);
    assert_eq!(RBFSampler::new().gamma(Gamma::Scale).fit(&ones(&[4, 3]), ..).unwrap().gamma, 1.0);
    // The product of 2 √(x + c) √(y + c) / (x + y + 2 c) over features.
    let positive = x.abs();
    let model = SkewedChi2Sampler::new().skewedness(0.5).n_components(components).fit(&positive, ..).unwrap();
    let made = model.transform(&positive);
    let shifted = (&positive + 0.5).expand_dims(1);
    let others = (&positive + 0.5).expand_dims(0);
    let expected = ((&shifted * &others).sqrt() * 2.0 / (shifted + others)).prod(2);
    assert!(apart(&made.matmul(&made.t()), &expected) < bound);
}

/// Angles that are made of the numbers of directions would depend on them.
#[test]
fn directions_and_angles_are_independent() {
    let components = 20_000;
    let x = zeros(&[2, 1]);
    let rbf = RBFSampler::new().n_components(components).fit(&x, ..).unwrap();
    let skewed = SkewedChi2Sampler::new().n_components(components).fit(&x, ..).unwrap();
    let pairs = [
        (numbers(&rbf.random_weights()), numbers(&rbf.random_offset())),
        (numbers(&skewed.random_weights()), numbers(&skewed.random_offset())),
    ];
    for (weights, offsets) in pairs {
        assert!(offsets.iter().all(|offset| (0.0..TAU).contains(offset)));
        assert!((mean(&offsets) - TAU / 2.0).abs() < 5.0 * TAU / (12.0 * components as f64).sqrt());
        // The signs of both around their middles agree in half of all places.
        let agree = weights
            .iter()
            .zip(&offsets)
            .filter(|(weight, offset)| (**weight < 0.0) == (**offset < TAU / 2.0));
        let share = agree.count() as f64 / components as f64;
        assert!((share - 0.5).abs() < 2.5 / (components as f64).sqrt(), "{share}");
    }
}

/// The sum over all tuples of features, by hand.
#[test]
fn sketches_are_those_of_their_places_and_signs() {
    let (columns, degree, components) = (3, 3, 7);
    let x = samples(4, columns);
    let estimator =
        PolynomialCountSketch::new().degree(degree).gamma(0.5).coef0(2.0).n_components(components);
    let model = estimator.random_state(9).fit(&x, ..).unwrap();
    let (places, signs) = (numbers(&model.index_hash()), numbers(&model.bit_hash()));
    let (width, rows) = (columns + 1, numbers(&x));
    let made = numbers(&model.transform(&x));
    for row in 0..4 {
        let mut values: Vec<f64> = (0..columns).map(|at| rows[row * columns + at] * 0.5f64.sqrt()).collect();
        values.push(2f64.sqrt());
        let mut expected = vec![0.0; components];
        for tuple in 0..width.pow(degree as u32) {
            let (mut place, mut product, mut left) = (0, 1.0, tuple);
            for factor in 0..degree {
                let feature = left % width;
                left /= width;
                place += places[factor * width + feature] as usize;
                product *= values[feature] * signs[factor * width + feature];
            }
            expected[place % components] += product;
        }
        for (at, expected) in expected.iter().enumerate() {
            let found = made[row * components + at];
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        }
    }
}

#[test]
fn products_of_sketches_are_the_kernel_on_average() {
    let x = samples(5, 4);
    let exact = numbers(&(x.matmul(&x.t()) * 0.5 + 1.0).square());
    let runs = 30;
    let estimator = PolynomialCountSketch::new().gamma(0.5).coef0(1.0).n_components(256);
    let mut sums = vec![0.0; exact.len()];
    for seed in 0..runs {
        let made = estimator.clone().random_state(seed).fit(&x, ..).unwrap().transform(&x);
        for (sum, found) in sums.iter_mut().zip(numbers(&made.matmul(&made.t()))) {
            *sum += found / runs as f64;
        }
    }
    for (at, (found, exact_pair)) in sums.iter().zip(&exact).enumerate() {
        // The deviation of one sketch is at most about √(3 / components) of the lengths.
        let lengths = (exact[at / 5 * 6] * exact[at % 5 * 6]).sqrt();
        let bound = 5.0 * (3.0f64 / 256.0 / runs as f64).sqrt() * lengths;
        assert!((found - exact_pair).abs() < bound, "{found}, not {exact_pair}");
    }
}

#[test]
fn chosen_samples_have_their_kernel() {
    let x = samples(80, 3);
    let model = Nystroem::new().gamma(0.4).n_components(20).random_state(3).fit(&x, ..).unwrap();
    let rows = model.component_indices.clone();
    let mut distinct = rows.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 20);
    let chosen =
        x.take_at(&Tensor::from_elements(&[20], &rows.iter().map(|row| *row as i64).collect::<Vec<_>>()), 0);
    assert_eq!(apart(&chosen, &Tensor::from_array(&model.components.clone().into_dyn())), 0.0);
    let made = model.transform(&chosen);
    let expected = rbf_kernel(&chosen, Rbf { gamma: Some(0.4), y: None });
    assert!(apart(&made.matmul(&made.t()), &expected) < 1e-6);
    let other = Nystroem::new().n_components(20).random_state(4).fit(&x, ..).unwrap();
    assert_ne!(other.component_indices, rows);
    // As many as there are, if more are wanted.
    assert_eq!(Nystroem::new().fit(&arange(6).reshape(&[3, 2]), ..).unwrap().components.nrows(), 3);
}

#[test]
fn a_saved_map_has_the_same_numbers() {
    let x = array([0.5, 2.0, 1.0, 4.0]).reshape(&[2, 2]);
    let model = SparseRandomProjection::new().n_components(4).random_state(8).fit(&x, ..).unwrap();
    let read =
        tharsis_learn::random_projection::FittedRandomProjection::from_bytes(&model.to_bytes().unwrap());
    assert_eq!(numbers(&read.unwrap().components()), numbers(&model.components()));
}
