//! Neighbours beside a search through all pairs, by more rows than a block has, and what is refused.

use std::sync::Arc;
use tharsis_learn::impute::KNNImputer;
use tharsis_learn::neighbors::{
    KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor, NearestNeighbors, OutlierLabel,
    RadiusNeighborsClassifier, RadiusNeighborsRegressor,
};
use tharsis_learn::{Error, FitOptions};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, arange, array, concatenate, ones, zeros};

fn within(bytes: u64) -> FitOptions {
    FitOptions::new().executor(Arc::new(LocalExecutor::sized(2, bytes)))
}

/// Whole numbers, so that many distances are equal: of these the first row is nearest.
fn samples(rows: usize, seed: u64) -> Tensor {
    default_rng(seed).integers(0, 12, &[rows, 2]).execute().unwrap()
}

/// The nearest others of each row, by squared distances and numbers.
fn searched(rows: &[f64], others: &[f64], count: usize) -> Vec<i64> {
    let of = |row: &[f64]| {
        let distance = |other: &[f64]| -> f64 { row.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum() };
        let mut all: Vec<(f64, usize)> = others.chunks(2).map(distance).zip(0..).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        all.into_iter().take(count).map(|(_, number)| number as i64).collect::<Vec<_>>()
    };
    rows.chunks(2).flat_map(of).collect()
}

/// More samples than eight blocks have, so that states are merged twice, and more rows than one block.
#[test]
fn blocks_are_merged_as_one() {
    let [x, others] = [(129, 1), (8_300, 2)].map(|(rows, seed)| samples(rows, seed).astype(DType::F64));
    let cut = others.rechunk(Chunks::PerAxis(vec![3_001, 1])).execute().unwrap();
    let numbers = |tensor: &Tensor| tensor.to_vec::<f64>().unwrap();
    let model = NearestNeighbors::new().fit(&cut, ..).unwrap();
    let found = model.kneighbors(Some(&x), 7).unwrap().indices.to_vec::<i64>().unwrap();
    let (rows, others) = (numbers(&x), numbers(&others));
    for row in [0, 1, 127, 128] {
        let expected = searched(&rows[2 * row..2 * row + 2], &others, 7);
        assert_eq!(found[7 * row..7 * row + 7], expected, "{row}");
    }
}

#[test]
fn no_sample_is_its_own_neighbor() {
    // All but one lie on each other.
    let x = concatenate(&[&zeros(&[600, 1]), &ones(&[1, 1])], 0).execute().unwrap();
    let model = NearestNeighbors::new().n_neighbors(2).fit(&x, ..).unwrap();
    let found = model.kneighbors(None, None).unwrap().indices.to_vec::<i64>().unwrap();
    assert_eq!((&found[..6], &found[1_200..]), (&[1, 2, 0, 2, 0, 1][..], &[0, 1][..]));
    let within = model.radius_neighbors(None, 0.5).unwrap();
    assert_eq!((within.indices.len(), within.starts.last()), (600 * 599, Some(&(600 * 599))));
    assert!(
        within.starts.windows(2).zip(0..).all(|(ends, row)| !within.indices[ends[0]..ends[1]].contains(&row))
    );
    let far = model.radius_neighbors(Some(&(ones(&[2, 1]) * 7.0)), None).unwrap();
    assert_eq!((far.starts, far.indices.len()), (vec![0, 0, 0], 0));
}

/// A matrix of all pairs would take 50 MB.
#[test]
fn pairs_are_not_held() {
    let x = default_rng(5).normal(0.0, 1.0, &[2_500, 3]).execute().unwrap();
    let y = x.sum(1).greater(0.0);
    let executor = LocalExecutor::sized(2, 24 << 20);
    let model = KNeighborsClassifier::new().fit(&x, &y, within(24 << 20)).unwrap();
    let chances = model.predict_proba(&x).fetch_on::<f64>(&executor).unwrap();
    assert_eq!(chances.shape(), [2_500, 2]);
    assert!(LocalOutlierFactor::new().fit(&x, within(24 << 20)).is_ok());
}

#[test]
fn equal_shares_have_the_first_class() {
    let (x, y) = (array([0.0, 1.0, 2.0, 3.0]).reshape(&[4, 1]), array([7i64, 5, 5, 7]));
    let model = KNeighborsClassifier::new().n_neighbors(4).fit(&x, &y, ..).unwrap();
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [5; 4]);
}

#[test]
fn samples_without_neighbors() {
    let (x, y) = (array([0.0, 0.5, 9.0]).reshape(&[3, 1]), array([1i64, 1, 2]));
    let new = array([0.2, 5.0]).reshape(&[2, 1]);
    let labels = |label: OutlierLabel| {
        let model = RadiusNeighborsClassifier::new().outlier_label(label).fit(&x, &y, ..).unwrap();
        model.predict(&new).to_vec::<i64>()
    };
    assert_eq!(labels(OutlierLabel::Label(-4)).unwrap(), [1, -4]);
    assert_eq!(labels(OutlierLabel::Label(2)).unwrap(), [1, 2]);
    assert_eq!(labels(OutlierLabel::MostFrequent).unwrap(), [1, 1]);
    let error = labels(OutlierLabel::None).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().starts_with("No neighbors found for"), "{error}");
    let model = RadiusNeighborsRegressor::new().fit(&x, &y, ..).unwrap();
    let made = model.predict(&new).to_vec::<f64>().unwrap();
    assert!(made[0] == 1.0 && made[1].is_nan(), "{made:?}");
    let told =
        RadiusNeighborsClassifier::new().outlier_label(OutlierLabel::Label(2)).fit(&x, &y, ..).unwrap();
    assert_eq!(told.predict_proba(&new).to_vec::<f64>().unwrap(), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn several_targets_and_sizes_that_are_not_known() {
    let x = arange(8).reshape(&[8, 1]);
    let y = concatenate(&[&x, &(&x * 10)], 1);
    let model = KNeighborsRegressor::new().n_neighbors(1).fit(&x, &y, ..).unwrap();
    let some = x.filter(&x.squeeze(Some(&[1])).greater(5));
    assert_eq!(model.predict(&some).to_vec::<f64>().unwrap(), [6.0, 60.0, 7.0, 70.0]);
    let few = KNeighborsRegressor::new().n_neighbors(2).fit(&some, &some, ..).unwrap();
    assert_eq!(few.predict(&x).to_vec::<f64>().unwrap(), [6.5; 8]);
}

#[test]
fn imputers_of_columns_without_numbers_and_without_donors() {
    let nan = f64::NAN;
    let x = array([nan, 1.0, 2.0, nan, 3.0, nan, nan, nan, 6.0]).reshape(&[3, 3]);
    let model = KNNImputer::new().fit(&x, ..).unwrap();
    // The first column has no numbers; of the second one both donors are as far.
    let made = model.transform(&x).to_vec::<f64>().unwrap();
    assert_eq!(made, [1.0, 2.0, 3.0, 2.0, 1.0, 6.0]);
    let kept = KNNImputer::new().keep_empty_features(true).fit(&x, ..).unwrap();
    assert_eq!(kept.transform(&x).to_vec::<f64>().unwrap()[..3], [0.0, 1.0, 2.0]);
    // A row without any number has no neighbours: the means of the fit.
    let none = array([nan, nan, nan]).reshape(&[1, 3]);
    assert_eq!(model.transform(&none).to_vec::<f64>().unwrap(), [2.0, 4.0]);
}

#[test]
fn mistakes() {
    let (x, y) = (arange(6).reshape(&[3, 2]), array([0i64, 1, 0]));
    let texts: Vec<(Result<(), Error>, &str)> = vec![
        (
            NearestNeighbors::new().n_neighbors(0).fit(&x, ..).map(drop),
            "The 'n_neighbors' parameter of NearestNeighbors must be an int in the range [1, inf). Got 0 instead.",
        ),
        (
            NearestNeighbors::new().radius(-1.0).fit(&x, ..).map(drop),
            "The 'radius' parameter of NearestNeighbors must be a float in the range [0.0, inf). Got -1 instead.",
        ),
        (
            KNeighborsRegressor::new().p(0.0).fit(&x, &y, ..).map(drop),
            "The 'p' parameter of KNeighborsRegressor must be a float in the range (0.0, inf] or None. Got 0",
        ),
        (
            LocalOutlierFactor::new().contamination(0.6).fit(&x, ..).map(drop),
            "The 'contamination' parameter of LocalOutlierFactor must be a str among {'auto'} or a float in the \
             range (0.0, 0.5]. Got 0.6 instead.",
        ),
        (
            KNeighborsClassifier::new().fit(&x, &y, ..).unwrap().predict(&x).check().map(drop),
            "Expected n_neighbors <= n_samples_fit, but n_neighbors = 5, n_samples_fit = 3, n_samples = 3",
        ),
        (
            NearestNeighbors::new().n_neighbors(3).fit(&x, ..).unwrap().kneighbors(None, None).map(drop),
            "Expected n_neighbors < n_samples_fit, but n_neighbors = 3, n_samples_fit = 3, n_samples = 3",
        ),
        (
            LocalOutlierFactor::new().fit(&ones(&[1, 2]), ..).map(drop),
            "Expected n_neighbors < n_samples_fit, but n_neighbors = 1, n_samples_fit = 1, n_samples = 1",
        ),
        (
            LocalOutlierFactor::new().fit(&x, ..).unwrap().predict(&x).check().map(drop),
            "score_samples is not available when novelty=False.",
        ),
        (
            LocalOutlierFactor::new().novelty(true).fit_predict(&x, ..).map(drop),
            "fit_predict is not available when novelty=True.",
        ),
        (
            KNNImputer::new().n_neighbors(0).fit(&x, ..).map(drop),
            "The 'n_neighbors' parameter of KNNImputer must be an int in the range [1, inf). Got 0 instead.",
        ),
    ];
    for (at, (made, text)) in texts.into_iter().enumerate() {
        let error = made.err().unwrap_or_else(|| panic!("mistake {at} is not refused"));
        assert_eq!(error.class(), "ValueError", "{at}: {error}");
        assert!(error.to_string().starts_with(text), "{at}: {error}");
    }
    let nan = array([f64::NAN, 1.0]).reshape(&[1, 2]);
    let model = NearestNeighbors::new().n_neighbors(1).fit(&x, ..).unwrap();
    let error = model.kneighbors(Some(&nan), None).unwrap().indices.execute().map(drop).unwrap_err();
    assert!(error.to_string().starts_with("Input X contains NaN"), "{error}");
    assert!(model.radius_neighbors(Some(&nan), None).is_err());
}
