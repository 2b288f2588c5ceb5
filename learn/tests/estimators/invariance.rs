//! Models are the same for any dtypes and any number of threads, and up to rounding for any chunks.

use ndarray::ArrayD;
use std::sync::Arc;
use tharsis_learn::FitOptions;
use tharsis_learn::cluster::{Init, KMeans};
use tharsis_learn::covariance::LedoitWolf;
use tharsis_learn::decomposition::{PCA, TruncatedSVD};
use tharsis_learn::discriminant_analysis::{LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis};
use tharsis_learn::feature_selection::SelectKBest;
use tharsis_learn::linear_model::{Lasso, LinearRegression, LogisticRegression, PoissonRegressor, Ridge};
use tharsis_learn::naive_bayes::GaussianNB;
use tharsis_learn::neighbors::NearestCentroid;
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::{
    MaxAbsScaler, MinMaxScaler, PowerTransformer, QuantileTransformer, StandardScaler,
};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, array};

const ROWS: usize = 5_000;

/// Samples in three groups, and the number of the group of each.
fn samples() -> (Tensor, Tensor) {
    let generator = default_rng(3);
    let group = generator.integers(0, 3, &[ROWS]);
    let x = generator.normal(0.0, 1.0, &[ROWS, 5]) + group.expand_dims(1) * 3.0;
    (x, group)
}

/// The states of a model of each kind, one behind the other.
fn models(x: &Tensor, y: &Tensor, options: &FitOptions) -> Vec<(&'static str, Vec<f64>)> {
    let flat = |arrays: &[ArrayD<f64>]| -> Vec<f64> { arrays.iter().flatten().copied().collect() };
    let scaler = StandardScaler::new().fit(x, options).unwrap();
    let line = LinearRegression::new().fit(x, y, options).unwrap();
    let ridge = Ridge::new().fit(x, y, options).unwrap();
    let lasso = Lasso::new().alpha(0.01).fit(x, y, options).unwrap();
    let logistic = LogisticRegression::new().max_iter(5).fit(x, y, options).unwrap();
    let pca = PCA::new().fit(x, options).unwrap();
    let svd = TruncatedSVD::new().fit(x, options).unwrap();
    let bayes = GaussianNB::new().fit(x, y, options).unwrap();
    let clusters = KMeans::new().n_clusters(3).random_state(5).fit(x, options).unwrap();
    let random = KMeans::new().n_clusters(3).init(Init::Random).max_iter(2).fit(x, options).unwrap();
    let score = ridge.score(x, y, options).unwrap();
    let quantiles = QuantileTransformer::new().n_quantiles(20).fit(x, options).unwrap();
    let power = PowerTransformer::new().fit(x, options).unwrap();
    let linear = LinearDiscriminantAnalysis::new().fit(x, y, options).unwrap();
    let quadratic = QuadraticDiscriminantAnalysis::new().fit(x, y, options).unwrap();
    let shrunk = LedoitWolf::new().fit(x, options).unwrap();
    let scores = SelectKBest::new().fit(x, y, options).unwrap().scores;
    let near = NearestCentroid::new().fit(x, y, options).unwrap();
    let poisson = PoissonRegressor::new().max_iter(5).fit(x, y, options).unwrap();
    let deviance = poisson.score(x, y, options).unwrap();
    vec![
        ("QuantileTransformer", flat(&[quantiles.quantiles.into_dyn()])),
        ("PowerTransformer", flat(&[power.lambdas.into_dyn()])),
        ("LinearDiscriminantAnalysis", flat(&[linear.coef.into_dyn(), linear.intercept.into_dyn()])),
        ("QuadraticDiscriminantAnalysis", flat(&[quadratic.scalings.into_dyn(), quadratic.means.into_dyn()])),
        ("LedoitWolf", flat(&[shrunk.covariance.into_dyn(), shrunk.precision.into_dyn()])),
        ("NearestCentroid", flat(&[near.centroids.into_dyn(), near.deviations.into_dyn()])),
        ("SelectKBest", flat(&[(scores / 1e4).into_dyn()])),
        ("PoissonRegressor", flat(&[poisson.coef, poisson.intercept])),
        ("score of PoissonRegressor", vec![deviance]),
        ("score of Ridge", vec![score]),
        ("StandardScaler", flat(&[scaler.mean.into_dyn(), scaler.var.into_dyn()])),
        ("LinearRegression", flat(&[line.coef, line.intercept, line.singular.into_dyn()])),
        ("Ridge", flat(&[ridge.coef, ridge.intercept])),
        ("Lasso", flat(&[lasso.coef, lasso.intercept])),
        ("LogisticRegression", flat(&[logistic.coef.into_dyn(), logistic.intercept.into_dyn()])),
        ("PCA", flat(&[pca.components.into_dyn(), pca.explained_variance.into_dyn()])),
        ("TruncatedSVD", flat(&[svd.components.into_dyn(), svd.explained_variance.into_dyn()])),
        ("GaussianNB", flat(&[bayes.theta.into_dyn(), bayes.var.into_dyn()])),
        ("KMeans", flat(&[clusters.cluster_centers.into_dyn(), ndarray::arr0(clusters.inertia).into_dyn()])),
        ("KMeans, random", flat(&[random.cluster_centers.into_dyn()])),
    ]
}

fn on(threads: usize) -> FitOptions {
    FitOptions::new().executor(Arc::new(LocalExecutor::sized(threads, 1 << 28)))
}

#[test]
fn bits_do_not_depend_on_threads() {
    let (x, y) = samples();
    let x = x.rechunk(Chunks::PerAxis(vec![300, 5])).execute().unwrap();
    let y = y.execute().unwrap();
    let one = models(&x, &y, &on(1));
    for threads in [2, 4, 16] {
        for ((name, one), (_, several)) in one.iter().zip(models(&x, &y, &on(threads))) {
            let bits = |state: &[f64]| -> Vec<u64> { state.iter().map(|number| number.to_bits()).collect() };
            assert_eq!(bits(one), bits(&several), "{name} on {threads} threads");
        }
    }
}

/// A projection keeps float32, so this is no model of the list above.
#[test]
fn bits_behind_a_projection_do_not_depend_on_threads() {
    let (x, y) = samples();
    let pipeline = Pipeline::new().step("pca", PCA::new()).last("ridge", Ridge::new());
    let fitted = |threads: usize| pipeline.fit(&x, &y, on(threads)).unwrap().last().coef.mapv(f64::to_bits);
    let one = fitted(1);
    for threads in [2, 4, 16] {
        assert_eq!(one, fitted(threads), "{threads} threads");
    }
}

#[test]
fn chunks_change_roundings_alone() {
    let (x, y) = samples();
    let whole = models(&x.execute().unwrap(), &y, &on(2));
    for rows in [vec![1, 999, 4_000], vec![2_500, 2_500], vec![64; 78].into_iter().chain([8]).collect()] {
        let cut = x.rechunk(Chunks::Lengths(vec![rows, vec![2, 3]])).execute().unwrap();
        for ((name, whole), (_, cut)) in whole.iter().zip(models(&cut, &y, &on(2))) {
            let distance = whole.iter().zip(&cut).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(distance < 1e-8, "{name} differs by {distance}");
        }
    }
}

#[test]
fn samples_that_are_not_computed_are_the_same() {
    let (x, y) = samples();
    let lazy = models(&x, &y, &on(2));
    let whole = models(&x.execute().unwrap(), &y.execute().unwrap(), &on(2));
    for ((name, lazy), (_, whole)) in lazy.iter().zip(whole) {
        let distance = lazy.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(distance < 1e-8, "{name} differs by {distance}");
    }
}

#[test]
fn integers_and_float32_are_computed_in_float64() {
    let (x, y) = samples();
    let whole = (&x * 8.0).round(0).execute().unwrap();
    let wide = models(&whole, &y, &on(2));
    for dtype in [DType::F32, DType::I64, DType::I16] {
        for ((name, wide), (_, narrow)) in wide.iter().zip(models(&whole.astype(dtype), &y, &on(2))) {
            assert_eq!(wide, &narrow, "{name} of {dtype}");
        }
    }
    let narrow = whole.astype(DType::F32);
    let made = StandardScaler::new().fit(&narrow, ..).unwrap().transform(&narrow);
    assert_eq!(made.dtype().unwrap(), DType::F32);
    let made =
        MinMaxScaler::new().fit(&whole.astype(DType::I64), ..).unwrap().transform(&whole.astype(DType::I64));
    assert_eq!(made.dtype().unwrap(), DType::F64);
}

#[test]
fn scalers_of_batches_are_those_of_all_samples() {
    let nan = f64::NAN;
    let x = array([1.0, nan, -3.0, 4.0, nan, 2.0, 7.0, 5.0, 1e3, 6.0, -1.0, 1e3]).reshape(&[6, 2]);
    let part = |start: i64, end: i64| x.get(&[(start..end).into()]);
    let ends = MinMaxScaler::new().feature_range(-1.0, 1.0);
    let (whole, all_ends) = (StandardScaler::new().fit(&x, ..).unwrap(), ends.fit(&x, ..).unwrap());
    let largest = MaxAbsScaler::new().fit(&x, ..).unwrap();
    // The second feature begins without numbers.
    let mut model = StandardScaler::new().fit(&part(0, 1), ..).unwrap();
    let (mut some_ends, mut some) =
        (ends.fit(&part(0, 1), ..).unwrap(), MaxAbsScaler::new().fit(&part(0, 1), ..).unwrap());
    for batch in [part(1, 4), part(0, 1) * nan, part(4, 6)] {
        model.partial_fit(&batch, ..).unwrap();
        some_ends.partial_fit(&batch, ..).unwrap();
        some.partial_fit(&batch, ..).unwrap();
    }
    assert_eq!(model.n_samples_seen, whole.n_samples_seen);
    for (found, expected) in
        [(&model.mean, &whole.mean), (&model.var, &whole.var), (&model.scale, &whole.scale)]
    {
        let mut both = found.iter().zip(expected);
        assert!(both.all(|(found, expected)| (found / expected - 1.0).abs() < 1e-12), "{found} {expected}");
    }
    assert_eq!((&some_ends.scale, &some_ends.min), (&all_ends.scale, &all_ends.min));
    assert_eq!(some.scale, largest.scale);
    let wide = x.reshape(&[4, 3]);
    for error in [model.partial_fit(&wide, ..), some_ends.partial_fit(&wide, ..), some.partial_fit(&wide, ..)]
    {
        assert!(error.unwrap_err().to_string().starts_with("X has 3 features, but"));
    }
    assert_eq!(some.scale, largest.scale);
}

#[test]
fn sizes_may_be_unknown_before_a_run() {
    let (x, y) = samples();
    let mask = x.get(&[(..).into(), 0.into()]).greater(1.0);
    let (chosen, labels) = (x.filter(&mask), y.filter(&mask));
    let known = chosen.compute_chunk_sizes().unwrap();
    let rows = known.shape().unwrap()[0];
    assert!(rows < ROWS);
    let model = Ridge::new().fit(&chosen, &labels, ..).unwrap();
    let expected = Ridge::new().fit(&known, &labels.compute_chunk_sizes().unwrap(), ..).unwrap();
    let distance = (&model.coef - &expected.coef).mapv(f64::abs).sum();
    assert!(distance < 1e-10, "{distance}");
    let made = StandardScaler::new().fit(&chosen, ..).unwrap().transform(&chosen);
    assert_eq!(made.compute_chunk_sizes().unwrap().shape().unwrap(), [rows, 5]);
}

#[test]
fn a_weight_counts_as_so_many_samples() {
    let (x, y) = samples();
    let times = default_rng(8).integers(0, 4, &[ROWS]).execute().unwrap();
    let (many, labels) = (x.repeat_each(&times, 0), y.repeat_each(&times, 0));
    let (many, labels) = (many.compute_chunk_sizes().unwrap(), labels.compute_chunk_sizes().unwrap());
    let weighted = FitOptions::new().sample_weight(&times);
    let near = |a: &ArrayD<f64>, b: &ArrayD<f64>, tolerance: f64| {
        let distance = (a - b).mapv(f64::abs).sum();
        assert!(distance < tolerance, "{distance}");
    };
    let close = |a: &ArrayD<f64>, b: &ArrayD<f64>| near(a, b, 1e-7);
    let scaler =
        (StandardScaler::new().fit(&x, &weighted).unwrap(), StandardScaler::new().fit(&many, ..).unwrap());
    close(&scaler.0.var.into_dyn(), &scaler.1.var.into_dyn());
    let line = LinearRegression::new();
    close(&line.fit(&x, &y, &weighted).unwrap().coef, &line.fit(&many, &labels, ..).unwrap().coef);
    let lasso = Lasso::new().alpha(0.01).tol(1e-10);
    close(&lasso.fit(&x, &y, &weighted).unwrap().coef, &lasso.fit(&many, &labels, ..).unwrap().coef);
    let logistic = LogisticRegression::new().tol(1e-9).max_iter(1_000);
    let (a, b) = (logistic.fit(&x, &y, &weighted).unwrap(), logistic.fit(&many, &labels, ..).unwrap());
    // Both end where the loss is flat.
    near(&a.coef.into_dyn(), &b.coef.into_dyn(), 1e-5);
    let init = x.get(&[(..3).into()]);
    let clusters = KMeans::new().n_clusters(3).init(&init).tol(0.0);
    let (a, b) = (clusters.fit(&x, &weighted).unwrap(), clusters.fit(&many, ..).unwrap());
    close(&a.cluster_centers.into_dyn(), &b.cluster_centers.into_dyn());
}

#[test]
fn drawn_centers_find_the_groups() {
    let (x, _) = samples();
    let best = KMeans::new().n_clusters(3).init(&Tensor::from_elements(
        &[3, 5],
        &[0.0; 5].into_iter().chain([3.0; 5]).chain([6.0; 5]).collect::<Vec<_>>(),
    ));
    let best = best.fit(&x, ..).unwrap().inertia;
    for seed in 0..5 {
        let model = KMeans::new().n_clusters(3).random_state(seed).fit(&x, ..).unwrap();
        assert!(model.converged && model.inertia < best * (1.0 + 1e-3), "{}, not {best}", model.inertia);
    }
    // As many clusters as samples, some of which are equal.
    let few = Tensor::from_elements(&[4, 1], &[1.0, 1.0, 2.0, 5.0]);
    assert_eq!(KMeans::new().n_clusters(4).fit(&few, ..).unwrap().inertia, 0.0);
}

#[test]
fn a_step_is_computed_in_the_passes_of_the_next() {
    let (x, y) = samples();
    let x = x.execute().unwrap();
    let pipeline = Pipeline::new().step("scale", StandardScaler::new()).last("line", Ridge::new());
    let fused = pipeline.fit(&x, &y, ..).unwrap();
    let scaled = StandardScaler::new().fit(&x, ..).unwrap().transform(&x).execute().unwrap();
    let apart = Ridge::new().fit(&scaled, &y, ..).unwrap();
    let distance = (&fused.last().coef - &apart.coef).mapv(f64::abs).sum();
    assert!(distance < 1e-10, "{distance}");
}

#[test]
fn bits_of_sums_over_several_tiles_do_not_depend_on_threads() {
    let generator = default_rng(4);
    let x =
        generator.normal(0.0, 1.0, &[60_000, 5]).rechunk(Chunks::PerAxis(vec![4_000, 5])).execute().unwrap();
    let y = x.sum(1).greater(0.0).astype(DType::I64).execute().unwrap();
    let states = |threads: usize| {
        let options = on(threads);
        let scaler = StandardScaler::new().fit(&x, &options).unwrap();
        let ridge = Ridge::new().fit(&x, &y, &options).unwrap();
        let logistic = LogisticRegression::new().max_iter(3).fit(&x, &y, &options).unwrap();
        let bayes = GaussianNB::new().fit(&x, &y, &options).unwrap();
        [scaler.var.into_dyn(), ridge.coef, logistic.coef.into_dyn(), bayes.var.into_dyn()]
    };
    let one = states(1);
    for threads in [2, 3, 8] {
        for (at, (one, several)) in one.iter().zip(states(threads)).enumerate() {
            assert_eq!(one.mapv(f64::to_bits), several.mapv(f64::to_bits), "state {at}, {threads} threads");
        }
    }
}
