//! Weights, missing values, one class, constant features, and limits of trees.

use tharsis_learn::FitOptions;
use tharsis_learn::base::{Estimator, Predict};
use tharsis_learn::ensemble::{
    ExtraTreesClassifier, ExtraTreesRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor,
    IsolationForest, RandomForestClassifier, RandomForestRegressor, RegressionLoss,
};
use tharsis_learn::tree::{DecisionTreeClassifier, DecisionTreeRegressor, MaxFeatures};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Tensor, arange, array, concatenate, full, ones, where_, zeros};

fn samples(rows: usize, seed: u64) -> (Tensor, Tensor) {
    let generator = default_rng(seed);
    let x = generator.normal(0.0, 1.0, &[rows, 4]).execute().unwrap();
    let y = (x.get(&[(..).into(), 0i64.into()]) + x.get(&[(..).into(), 2i64.into()])).greater(0.0);
    (x, y.astype(DType::I64).execute().unwrap())
}

/// The predictions of a model of an estimator.
fn predicted<E>(estimator: &E, x: &Tensor, y: &Tensor, options: &FitOptions, new: &Tensor) -> Vec<f64>
where
    E: Estimator,
    E::Fitted: Predict,
{
    let model = estimator.fit_any(x, Some(y), options).unwrap();
    model.predict(new).astype(DType::F64).to_vec::<f64>().unwrap()
}

/// Runs a check on the predictions of an estimator of each kind that takes all samples alike.
fn each_kind(check: impl Fn(&str, &dyn Fn(&Tensor, &Tensor, &FitOptions, &Tensor) -> Vec<f64>)) {
    let boosted = HistGradientBoostingRegressor::new().max_iter(10).min_samples_leaf(1);
    check("boosting", &|x, y, options, new| predicted(&boosted, x, y, options, new));
    let classes = HistGradientBoostingClassifier::new().max_iter(10).min_samples_leaf(1);
    check("boosting of classes", &|x, y, options, new| predicted(&classes, x, y, options, new));
    let tree = DecisionTreeRegressor::new().max_depth(4);
    check("tree", &|x, y, options, new| predicted(&tree, x, y, options, new));
    let tree = DecisionTreeClassifier::new().max_depth(4);
    check("tree of classes", &|x, y, options, new| predicted(&tree, x, y, options, new));
    let extra = ExtraTreesRegressor::new().n_estimators(5).max_depth(4);
    check("extra trees", &|x, y, options, new| predicted(&extra, x, y, options, new));
}

fn far(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn a_weight_of_two_is_a_sample_that_is_there_twice() {
    let (x, y) = samples(120, 1);
    let weight = (arange(120) % 3).execute().unwrap();
    let rows: Vec<i64> = (0..120).flat_map(|row| vec![row; row as usize % 3]).collect();
    let rows = Tensor::from_elements(&[rows.len()], &rows);
    let (many, of_many) = (x.take_at(&rows, 0), y.take_at(&rows, 0));
    each_kind(|name, fit| {
        let weighted = fit(&x, &y, &FitOptions::new().sample_weight(&weight), &x);
        let repeated = fit(&many, &of_many, &FitOptions::new(), &x);
        assert!(far(&weighted, &repeated) < 1e-9, "{name}: {}", far(&weighted, &repeated));
    });
}

#[test]
fn samples_without_weight_have_no_part() {
    let (x, y) = samples(100, 2);
    let weight = (arange(100) % 2).execute().unwrap();
    // Wild values where the weight is zero.
    let wild = where_(&weight.equal(0).expand_dims(1), 1e9, &x);
    let half = x.filter(&weight.equal(1));
    let of_half = y.filter(&weight.equal(1));
    each_kind(|name, fit| {
        let weighted = fit(&wild, &y, &FitOptions::new().sample_weight(&weight), &x);
        let part = fit(&half, &of_half, &FitOptions::new(), &x);
        assert!(far(&weighted, &part) < 1e-9, "{name}");
    });
}

#[test]
fn missing_values_tell_the_class() {
    let x = arange(80).reshape(&[40, 2]) * 0.0;
    let x = where_(&arange(40).less(15).expand_dims(1), f64::NAN, &x).execute().unwrap();
    let y = arange(40).less(15).astype(DType::I64);
    let expected = y.astype(DType::F64).to_vec::<f64>().unwrap();
    each_kind(|name, fit| {
        let found = fit(&x, &y, &FitOptions::new(), &x);
        assert!(far(&found, &expected) < 0.4, "{name}: {found:?}");
    });
    let forest = RandomForestClassifier::new().n_estimators(9).fit(&x, &y, ..).unwrap();
    assert_eq!(forest.score(&x, &y, ..).unwrap(), 1.0);
}

#[test]
fn new_missing_values_go_with_most_samples() {
    let x = arange(10).reshape(&[10, 1]);
    let y = array([0i64, 0, 0, 1, 1, 1, 1, 1, 1, 1]);
    let nan = array([f64::NAN]).reshape(&[1, 1]);
    let tree = DecisionTreeClassifier::new().fit(&x, &y, ..).unwrap();
    assert_eq!(tree.predict(&nan).to_vec::<i64>().unwrap(), [1]);
    let boosted = HistGradientBoostingClassifier::new().min_samples_leaf(1).fit(&x, &y, ..).unwrap();
    assert_eq!(boosted.predict(&nan).to_vec::<i64>().unwrap(), [1]);
}

#[test]
fn one_class_and_constant_features_are_fine() {
    let (x, _) = samples(30, 3);
    let one = full(&[30], 7i64, DType::I64);
    let classifier = HistGradientBoostingClassifier::new().fit(&x, &one, ..).unwrap();
    assert_eq!(classifier.predict(&x).to_vec::<i64>().unwrap(), [7; 30]);
    assert_eq!(classifier.predict_proba(&x).to_vec::<f64>().unwrap(), [1.0; 30]);
    let forest = RandomForestClassifier::new().n_estimators(3).fit(&x, &one, ..).unwrap();
    assert_eq!(forest.predict_proba(&x).shape().unwrap(), [30, 1]);
    assert_eq!(forest.predict(&x).to_vec::<i64>().unwrap(), [7; 30]);
    let constant = ones(&[30, 3]);
    let y = arange(30);
    each_kind(|name, fit| {
        let found = fit(&constant, &(&y % 2), &FitOptions::new(), &constant);
        assert!(found.iter().all(|&found| found == found.round() || (found - 0.5).abs() < 1e-9), "{name}");
    });
    for x in [full(&[30, 2], f64::NAN, DType::F64), constant.clone()] {
        let tree = DecisionTreeRegressor::new().fit(&x, &y, ..).unwrap();
        assert_eq!((tree.get_n_leaves(), tree.feature_importances.sum()), (1, 0.0));
        let forest = RandomForestRegressor::new().n_estimators(2).fit(&x, &y, ..).unwrap();
        assert!(forest.predict(&x).to_vec::<f64>().unwrap().iter().all(|y| (5.0..25.0).contains(y)));
    }
    // Samples that are all the same are no outliers.
    let isolation = IsolationForest::new().n_estimators(3).fit(&constant, ..).unwrap();
    assert_eq!(isolation.predict(&constant).to_vec::<i64>().unwrap(), [1; 30]);
}

#[test]
fn one_sample_is_a_leaf() {
    let (x, y) = (array([1.0, 2.0]).reshape(&[1, 2]), array([3.0]));
    let boosted = HistGradientBoostingRegressor::new().fit(&x, &y, ..).unwrap();
    assert_eq!(boosted.predict(&x).to_vec::<f64>().unwrap(), [3.0]);
    let forest = RandomForestRegressor::new().n_estimators(7).fit(&x, &y, ..).unwrap();
    assert!((forest.predict(&zeros(&[2, 2])).to_vec::<f64>().unwrap()[1] - 3.0).abs() < 1e-12);
    let isolation = IsolationForest::new().fit(&x, ..).unwrap();
    assert_eq!(isolation.score_samples(&x).to_vec::<f64>().unwrap(), [-0.5]);
    assert_eq!(forest.predict(&zeros(&[0, 2])).to_vec::<f64>().unwrap(), [0.0; 0]);
}

#[test]
fn targets_far_from_zero_lose_no_digits() {
    let x = arange(64).reshape(&[64, 1]);
    let y = arange(64) * 1e-3 + 1e6;
    let tree = DecisionTreeRegressor::new().fit(&x, &y, ..).unwrap();
    assert_eq!(tree.get_n_leaves(), 64);
    let left = (tree.predict(&x) - &y).abs().max(..).item().unwrap().to_f64();
    assert!(left < 1e-9, "{left}");
}

#[test]
fn limits_of_trees_hold() {
    let (x, y) = samples(500, 4);
    let noise = default_rng(9).integers(0, 2, &[500]).execute().unwrap();
    let tree = DecisionTreeClassifier::new().max_leaf_nodes(9).fit(&x, &noise, ..).unwrap();
    assert_eq!(tree.get_n_leaves(), 9);
    let tree = DecisionTreeClassifier::new().max_depth(3).fit(&x, &noise, ..).unwrap();
    assert!(tree.get_depth() == 3 && tree.get_n_leaves() <= 8);
    let tree = DecisionTreeClassifier::new().min_samples_leaf(60).fit(&x, &noise, ..).unwrap();
    assert!(tree.get_n_leaves() <= 8);
    let whole = DecisionTreeClassifier::new().fit(&x, &noise, ..).unwrap();
    assert!((0.0..0.2).contains(&(1.0 - whole.score(&x, &noise, ..).unwrap())));
    // Drawn features: other trees for other seeds, the same for the same.
    let drawn = |seed: u64| {
        let tree = DecisionTreeClassifier::new().max_features(MaxFeatures::Sqrt).random_state(seed);
        tree.max_depth(4).fit(&x, &y, ..).unwrap().predict_proba(&x).to_vec::<f64>().unwrap()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn early_stopping_ends_when_nothing_is_learned() {
    let (x, y) = samples(400, 5);
    let noise = default_rng(6).normal(0.0, 1.0, &[400]).execute().unwrap();
    let estimator = HistGradientBoostingRegressor::new().early_stopping(true).n_iter_no_change(3);
    let model = estimator.fit(&x, &noise, ..).unwrap();
    assert!(model.n_iter < 50, "{}", model.n_iter);
    assert_eq!(model.validation_score.len(), model.n_iter + 1);
    let model = HistGradientBoostingClassifier::new().early_stopping(true).fit(&x, &y, ..).unwrap();
    assert!(0.9 < model.score(&x, &y, ..).unwrap());
}

#[test]
fn infinite_values_are_ordered_by_boosting() {
    let x = array([f64::NEG_INFINITY, 1.0, 2.0, f64::INFINITY]).reshape(&[4, 1]);
    let y = array([5.0, 1.0, 2.0, -4.0]);
    let estimator = HistGradientBoostingRegressor::new().min_samples_leaf(1).learning_rate(1.0);
    let model = estimator.fit(&x, &y, ..).unwrap();
    let left = (model.predict(&x) - &y).abs().max(..).item().unwrap().to_f64();
    assert!(left < 1e-6, "{left}");
}

#[test]
fn many_values_share_bins_and_are_learned_all_the_same() {
    let x = default_rng(8).random(&[20_000, 2]).execute().unwrap();
    let first = x.get(&[(..).into(), 0i64.into()]);
    let y = (&first * 40.0).sin().execute().unwrap();
    let tree = DecisionTreeRegressor::new().min_samples_leaf(20).fit(&x, &y, ..).unwrap();
    assert!(0.98 < tree.score(&x, &y, ..).unwrap());
    assert!(0.95 < tree.feature_importances[0]);
    let extra = ExtraTreesClassifier::new().n_estimators(5).fit(&x, &y.greater(0.0), ..).unwrap();
    assert!(0.97 < extra.score(&x, &y.greater(0.0), ..).unwrap());
}

#[test]
fn samples_out_of_the_bag_tell_how_good_a_forest_is() {
    let (x, y) = samples(600, 13);
    let noise = default_rng(14).integers(0, 2, &[600]).execute().unwrap();
    let forest = RandomForestClassifier::new().n_estimators(30).oob_score(true);
    let (model, chance) = (forest.fit(&x, &y, ..).unwrap(), forest.fit(&x, &noise, ..).unwrap());
    let (new, of_new) = samples(600, 15);
    let held_out = model.score(&new, &of_new, ..).unwrap();
    assert!((model.oob_score().unwrap() - held_out).abs() < 0.05, "{:?} {held_out}", model.oob_score());
    // A forest knows the noise that it has seen, and not that which it has not.
    assert!(0.95 < chance.score(&x, &noise, ..).unwrap());
    assert!((0.4..0.6).contains(&chance.oob_score().unwrap()), "{:?}", chance.oob_score());
    let of_numbers = x.get(&[(..).into(), 1i64.into()]) * 3.0 + 1e6;
    let means = RandomForestRegressor::new().n_estimators(20).oob_score(true);
    let found = means.fit(&x, &of_numbers, ..).unwrap().oob_score().unwrap();
    assert!((0.97..1.0).contains(&found), "{found}");
    assert_eq!(RandomForestRegressor::new().n_estimators(1).fit(&x, &y, ..).unwrap().oob_score(), None);
}

#[test]
fn extreme_numbers_end_in_finite_models() {
    let sizes = [1e-300, 1e-5, 1.0, 1e150, 1e300];
    let x = default_rng(12).normal(0.0, 1.0, &[80, 3]).execute().unwrap();
    for size in sizes {
        for (x, y) in [(&x * size, arange(80) % 7), (x.clone(), (arange(80) % 7) * size)] {
            each_kind(|name, fit| {
                let y = if name.contains("classes") { arange(80) % 2 } else { y.clone() };
                let found = fit(&x, &y, &FitOptions::new(), &x);
                assert!(found.iter().all(|found| found.is_finite()), "{name} of {size}: {found:?}");
            });
        }
        let weight = FitOptions::new().sample_weight(&(arange(80) * (size / 80.0)));
        each_kind(|name, fit| {
            let found = fit(&x, &(arange(80) % 2), &weight, &x);
            assert!(found.iter().all(|found| found.is_finite()), "{name} with weights of {size}");
        });
    }
    for size in [1e-300, 1e-120, 1e120, 1e300] {
        let y = (arange(80) % 7) * size;
        let tree = DecisionTreeRegressor::new().fit(&x, &y, ..).unwrap();
        assert!(((tree.predict(&x) - &y) / size).abs().max(..).item().unwrap().to_f64() < 1e-9, "{size}");
    }
    let wide = array([-f64::MAX, f64::MAX, 0.0, 1.0]).reshape(&[4, 1]);
    let tree = DecisionTreeRegressor::new().fit(&wide, &array([1.0, 2.0, 3.0, 4.0]), ..).unwrap();
    assert_eq!(tree.predict(&wide).to_vec::<f64>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let isolation = IsolationForest::new().n_estimators(4).fit(&wide, ..).unwrap();
    assert!(isolation.score_samples(&wide).to_vec::<f64>().unwrap().iter().all(|score| score.is_finite()));
}

#[test]
fn other_dtypes_are_like_float64() {
    let (x, y) = samples(90, 7);
    let whole = (&x * 4.0).round(0).astype(DType::I8).execute().unwrap();
    let of_float = whole.astype(DType::F64);
    each_kind(|name, fit| {
        let expected = fit(&of_float, &y, &FitOptions::new(), &of_float);
        for dtype in [DType::I8, DType::I64, DType::F32] {
            let (x, y) = (whole.astype(dtype), y.astype(DType::Bool));
            assert_eq!(fit(&x, &y, &FitOptions::new(), &x), expected, "{name} of {dtype}");
        }
    });
}

#[test]
fn outliers_are_found() {
    let inside = default_rng(3).normal(0.0, 1.0, &[2_000, 3]);
    let x = concatenate(&[&inside, &full(&[20, 3], 6.0, DType::F64)], 0).execute().unwrap();
    let model = IsolationForest::new().contamination(0.01).fit(&x, ..).unwrap();
    let found = model.predict(&x).to_vec::<i64>().unwrap();
    assert!(found[2_000..].iter().all(|&label| label == -1));
    assert!(found[..2_000].iter().filter(|&&label| label == -1).count() < 10);
}

#[test]
fn nodes_of_equal_targets_are_leaves() {
    // The means of these targets are no exact numbers, and neither are the targets around them.
    let x = (default_rng(3).random(&[3_000, 3]) * 20.0).floor();
    let column = x.get(&[(..).into(), 0.into()]);
    let above = |value: f64| column.greater(value).astype(DType::F64);
    for (y, leaves) in [(above(12.0), 2), ((above(5.0) + above(14.0)) * 0.1 + 7.3, 3)] {
        let tree = DecisionTreeRegressor::new().fit(&x, &y, ..).unwrap();
        assert_eq!((tree.get_n_leaves(), tree.get_depth()), (leaves, leaves - 1));
    }
}

#[test]
fn the_least_decrease_is_in_units_of_squares_of_the_targets() {
    let x = arange(8).reshape(&[8, 1]);
    // A split lowers the mean of the squares by the square of the size.
    for (size, decrease, leaves) in
        [(1e-120, 0.01, 1), (1e-120, 1e-250, 2), (1.0, 0.01, 2), (1e120, 1e200, 2), (1e120, 1e250, 1)]
    {
        let y = (arange(8).less(4).astype(DType::F64) * 2.0 - 1.0) * size;
        let tree = DecisionTreeRegressor::new().min_impurity_decrease(decrease).fit(&x, &y, ..).unwrap();
        assert_eq!(tree.get_n_leaves(), leaves, "{size} and {decrease}");
    }
}

#[test]
fn absent_classes_have_no_probability_whatever_the_weights() {
    let x = default_rng(4).random(&[900, 2]);
    let sum = x.sum(1);
    let y = sum.greater(0.7).astype(DType::I64) + sum.greater(1.2).astype(DType::I64);
    // Weights as those that balance classes.
    let weights = where_(&y.equal(0), 900.0 / (3.0 * 217.0), where_(&y.equal(1), 1.0 / 3.0, 0.7));
    let options = FitOptions::new().sample_weight(&weights);
    let tree = DecisionTreeClassifier::new().fit(&x, &y, &options).unwrap();
    let found = tree.predict_proba(&x).to_vec::<f64>().unwrap();
    assert!(
        found.iter().all(|&part| part == 0.0 || part == 1.0),
        "a tree without bounds is sure of all it saw"
    );
    // One sample beside weights that leave it no digits.
    let (x, y) = (array([0.0, 0.0, 1.0]).reshape(&[3, 1]), array([0i64, 1, 0]));
    let options = FitOptions::new().sample_weight(&array([1e20, 1e20, 1.0]));
    let tree = DecisionTreeClassifier::new().fit(&x, &y, &options).unwrap();
    assert!(tree.predict_proba(&x).to_vec::<f64>().unwrap().iter().all(|part| (0.0..=1.0).contains(part)));
}

#[test]
fn small_shares_of_few_samples_draw_one_at_least() {
    let (x, y) = samples(50, 6);
    for share in [0.001, 0.02, 0.05] {
        let forest = RandomForestClassifier::new().max_samples(share).fit(&x, &y, ..).unwrap();
        assert_eq!(forest.predict(&x).shape().unwrap(), [50]);
    }
    // One of a thousand has a weight: each tree has it.
    let (x, y) = samples(1_000, 7);
    let weight = arange(1_000).equal(123).astype(DType::F64).execute().unwrap();
    let options = FitOptions::new().sample_weight(&weight);
    let forest =
        RandomForestRegressor::new().n_estimators(20).max_samples(0.001).fit(&x, &y, &options).unwrap();
    let expected = y.to_vec::<i64>().unwrap()[123] as f64;
    assert_eq!(forest.predict(&x).to_vec::<f64>().unwrap(), vec![expected; 1_000]);
}

#[test]
fn bins_of_many_samples_are_those_of_the_few_with_a_weight() {
    // More than bins are made of, in debug builds.
    let rows = 25_000;
    let x = arange(rows).reshape(&[-1, 1]).execute().unwrap();
    let y = (arange(rows) % 2).execute().unwrap();
    let weighted =
        |picked: Tensor| FitOptions::new().sample_weight(&picked.astype(DType::F64).execute().unwrap());
    for seed in 0..4 {
        let three = (arange(rows) % 10_000).equal(77);
        let tree = DecisionTreeRegressor::new().random_state(seed).fit(&x, &y, weighted(three)).unwrap();
        assert_eq!(tree.get_n_leaves(), 1);
        let two = arange(rows).equal(5).logical_or(arange(rows).equal(20_000));
        let tree =
            DecisionTreeRegressor::new().random_state(seed).fit(&x, &arange(rows), weighted(two)).unwrap();
        let found = tree.predict(&array([0.0, 10_002.0, 10_003.0, 1e9]).reshape(&[4, 1]));
        assert_eq!(found.to_vec::<f64>().unwrap(), [5.0, 5.0, 20_000.0, 20_000.0]);
    }
}

#[test]
fn counts_that_are_all_zero_but_for_those_left_out_have_a_finite_score() {
    let (x, _) = samples(20, 8);
    for positive in 0..20 {
        let y = arange(20).equal(positive).astype(DType::F64).execute().unwrap();
        let poisson = HistGradientBoostingRegressor::new().loss(RegressionLoss::Poisson).max_iter(2);
        let model = poisson.early_stopping(true).min_samples_leaf(1).fit(&x, &y, ..).unwrap();
        let scores = model.train_score.iter().chain(&model.validation_score);
        assert!(scores.into_iter().all(|score| score.is_finite()), "{positive}: {:?}", model.train_score);
        assert!(model.predict(&x).to_vec::<f64>().unwrap().iter().all(|y| y.is_finite()), "{positive}");
    }
}
