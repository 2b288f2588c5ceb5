//! Models are the same to the bit for any threads, chunks and bounds of memory.

use std::sync::Arc;
use tharsis_learn::FitOptions;
use tharsis_learn::ensemble::{
    ExtraTreesClassifier, HistGradientBoostingClassifier, HistGradientBoostingRegressor, IsolationForest,
    RandomForestClassifier, RandomForestRegressor,
};
use tharsis_learn::tree::{DecisionTreeClassifier, DecisionTreeRegressor};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, LocalExecutor, Tensor, where_};

/// So many that, in debug builds, trees are made by passes, whose sums are of several pieces.
const ROWS: usize = 11_000;

/// Samples with missing values, their classes and weights.
fn samples(rows: usize) -> [Tensor; 3] {
    let generator = default_rng(11);
    let group = generator.integers(0, 3, &[rows]);
    let x = generator.normal(0.0, 1.0, &[rows, 6]) + group.expand_dims(1);
    let x = where_(&generator.random(&[rows, 6]).less(0.1), f64::NAN, &x);
    let weight = generator.random(&[rows]);
    [x, group, weight].map(|tensor| tensor.execute().unwrap())
}

/// The predictions of a model of each kind for the first rows, one behind the other.
fn models([x, y, weight]: &[Tensor; 3], executor: LocalExecutor) -> Vec<(&'static str, Vec<u64>)> {
    let options = &FitOptions::new().sample_weight(weight).executor(Arc::new(executor));
    let plain = &FitOptions::new().executor(Arc::new(LocalExecutor::sized(2, 1 << 28)));
    let new = &x.get(&[(..500i64).into()]);
    let bits =
        |made: Tensor| -> Vec<u64> { made.fetch::<f64>().unwrap().iter().map(|x| x.to_bits()).collect() };
    let boosted = HistGradientBoostingRegressor::new().max_iter(4).fit(x, y, options).unwrap();
    let classes = HistGradientBoostingClassifier::new().max_iter(3).fit(x, y, options).unwrap();
    let tree = DecisionTreeRegressor::new().max_depth(7).fit(x, y, options).unwrap();
    let best = DecisionTreeClassifier::new().max_leaf_nodes(20).fit(x, y, options).unwrap();
    let forest = RandomForestClassifier::new().n_estimators(4).max_depth(6).fit(x, y, options).unwrap();
    let means = RandomForestRegressor::new().n_estimators(2).max_depth(5).fit(x, y, options).unwrap();
    let extra = ExtraTreesClassifier::new().n_estimators(3).max_depth(6).fit(x, y, options).unwrap();
    let full = where_(&x.isnan(), 0.0, x);
    let isolation = IsolationForest::new().n_estimators(5).fit(&full, plain).unwrap();
    vec![
        ("boosting", bits(boosted.predict(new))),
        ("boosting of classes", bits(classes.decision_function(new))),
        ("tree", bits(tree.predict(new))),
        ("best first", bits(best.predict_proba(new))),
        ("forest", bits(forest.predict_proba(new))),
        ("forest of means", bits(means.predict(new))),
        ("extra trees", bits(extra.predict_proba(new))),
        ("isolation", bits(isolation.score_samples(&full.get(&[(..500i64).into()])))),
    ]
}

#[test]
fn bits_do_not_depend_on_threads_chunks_and_memory() {
    let samples = samples(ROWS);
    let one = models(&samples, LocalExecutor::sized(1, 1 << 28));
    let cut = |rows: usize, columns: usize| {
        let [x, y, weight] = &samples;
        let x = x.rechunk(Chunks::PerAxis(vec![rows, columns]));
        let one = Chunks::PerAxis(vec![rows]);
        [x, y.rechunk(one.clone()), weight.rechunk(one)].map(|tensor| tensor.execute().unwrap())
    };
    let others = [
        ("four threads and chunks", models(&cut(7_001, 4), LocalExecutor::sized(4, 1 << 28))),
        // The sums of a pass have room for a few nodes.
        ("two threads and little memory", models(&samples, LocalExecutor::sized(2, 20 << 20))),
    ];
    for (way, others) in others {
        for ((name, one), (_, other)) in one.iter().zip(&others) {
            assert_eq!(one, other, "{name} with {way}");
        }
    }
}

#[test]
fn ragged_chunks_and_late_sizes_are_like_others() {
    let [x, y, weight] = samples(60);
    let lengths = vec![1, 1, 20, 38];
    let cut = x.rechunk(Chunks::Lengths(vec![lengths.clone(), vec![6]]));
    let options = FitOptions::new().sample_weight(&weight);
    let fit = |x: &Tensor, y: &Tensor| {
        let model = RandomForestClassifier::new().n_estimators(5).fit(x, y, &options).unwrap();
        let boosted = HistGradientBoostingRegressor::new().min_samples_leaf(3).fit(x, y, &options).unwrap();
        (model.predict_proba(x).to_vec::<f64>().unwrap(), boosted.predict(x).to_vec::<f64>().unwrap())
    };
    assert_eq!(fit(&x, &y), fit(&cut, &y.rechunk(Chunks::Lengths(vec![lengths]))));
    // A size that only running tells.
    let all = x.filter(&y.greater_equal(0));
    assert_eq!(fit(&x, &y).0, fit(&all, &y.filter(&y.greater_equal(0))).0);
}
