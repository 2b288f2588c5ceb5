//! Distances and gaps at their limits: rows without direction, distances without a reciprocal, features
//! without numbers.

use tharsis_learn::FitOptions;
use tharsis_learn::cluster::DBSCAN;
use tharsis_learn::impute::KNNImputer;
use tharsis_learn::neighbors::{KNeighborsRegressor, Metric, RadiusNeighborsRegressor, Weights};
use tharsis_numeric::array;
use tharsis_numeric::random::default_rng;

/// Labels of scikit-learn 1.9.1.
#[test]
fn a_sample_is_around_itself_by_any_metric() {
    let x = array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0001, 0.0, 0.0]).reshape(&[4, 2]);
    let clusters = DBSCAN::new().metric(Metric::Cosine).eps(0.5).min_samples(1);
    assert_eq!(clusters.fit(&x, ..).unwrap().labels, [0, 1, 1, 2]);
    let near = DBSCAN::new().metric(Metric::Cosine).eps(1e-300).min_samples(1);
    let rows = default_rng(2).random(&[40, 3]).execute().unwrap();
    assert_eq!(near.fit(&rows, ..).unwrap().labels, (0..40).collect::<Vec<i64>>());
    // A zero row that is a core by its weight alone.
    let weights = array([5.0, 1.0, 1.0, 1.0]);
    let options = FitOptions::new().sample_weight(&weights);
    let clusters = DBSCAN::new().metric(Metric::Cosine).eps(0.5).min_samples(5);
    assert_eq!(clusters.fit(&x, options).unwrap().labels, [0, -1, -1, -1]);
}

#[test]
fn neighbors_whose_weights_have_no_number_count_alike() {
    let (x, y) = (array([0.0, 1e-310, 1.0]).reshape(&[3, 1]), array([1.0, 3.0, 100.0]));
    let query = array([2e-310]).reshape(&[1, 1]);
    let nearest =
        KNeighborsRegressor::new().n_neighbors(3).weights(Weights::Distance).metric(Metric::Manhattan);
    assert_eq!(nearest.fit(&x, &y, ..).unwrap().predict(&query).to_vec::<f64>().unwrap(), [2.0]);
    let around =
        RadiusNeighborsRegressor::new().radius(2.0).weights(Weights::Distance).metric(Metric::Manhattan);
    assert_eq!(around.fit(&x, &y, ..).unwrap().predict(&query).to_vec::<f64>().unwrap(), [2.0]);
}

/// As scikit-learn 1.9.1.
#[test]
fn features_that_were_empty_are_zero_if_they_are_kept() {
    let nan = f64::NAN;
    let x = array([1.0, nan, 2.0, nan, 3.0, nan]).reshape(&[3, 2]);
    let new = array([nan, 7.0, 5.0, nan]).reshape(&[2, 2]);
    let model = KNNImputer::new().keep_empty_features(true).fit(&x, ..).unwrap();
    assert_eq!(model.transform(&new).to_vec::<f64>().unwrap(), [2.0, 0.0, 5.0, 0.0]);
}
