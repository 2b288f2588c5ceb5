//! Neighbours against recorded answers of scikit-learn, each for several ways to cut the samples.

use crate::oracle::{Case, each};
use ndarray::{Array1, Array2};
use tharsis_learn::impute::KNNImputer;
use tharsis_learn::neighbors::{
    KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor, Metric, NearestNeighbors, Neighbors,
    NeighborsWithin, RadiusNeighborsClassifier, RadiusNeighborsRegressor, Weights,
};
use tharsis_numeric::{DType, Tensor, concatenate};

const EXACT: f64 = 1e-10;

fn metric(case: &Case<'_>) -> Metric {
    match case.text("metric") {
        Some("manhattan") => Metric::Manhattan,
        Some("chebyshev") => Metric::Chebyshev,
        Some("cosine") => Metric::Cosine,
        _ => Metric::Minkowski,
    }
}

fn p(case: &Case<'_>) -> f64 {
    case.number("p").unwrap_or(2.0)
}

fn weights(case: &Case<'_>) -> Weights {
    if case.text("weights") == Some("distance") { Weights::Distance } else { Weights::Uniform }
}

fn count(case: &Case<'_>) -> usize {
    case.number("n_neighbors").map_or(5, |count| count as usize)
}

fn rows(found: &Neighbors) -> Tensor {
    concatenate(&[&found.distances, &found.indices.astype(DType::F64)], 1)
}

/// Of each sample the number of neighbours, the sum of their distances, and a number that tells which they
/// are.
fn sums(found: &NeighborsWithin, tell: impl Fn(&[usize]) -> usize) -> Tensor {
    let rows = found.starts.windows(2).flat_map(|ends| {
        let (near, numbers) = (&found.distances[ends[0]..ends[1]], &found.indices[ends[0]..ends[1]]);
        [near.len() as f64, near.iter().sum(), tell(numbers) as f64]
    });
    let rows: Vec<f64> = rows.collect();
    Tensor::from_array(&Array2::from_shape_vec((rows.len() / 3, 3), rows).unwrap().into_dyn())
}

#[test]
fn nearest_neighbors() {
    each("NearestNeighbors", |case, x| {
        let estimator = NearestNeighbors::new().n_neighbors(count(case)).metric(metric(case)).p(p(case));
        let model = estimator.radius(case.number("radius").unwrap()).fit(x, ..).unwrap();
        let others = &x.get(&[(3i64..12).into()]) + 0.125;
        case.method("near", &rows(&model.kneighbors(Some(&others), None).unwrap()), EXACT);
        case.method("own", &rows(&model.kneighbors(None, None).unwrap()), EXACT);
        let within = model.radius_neighbors(Some(x), None).unwrap();
        case.method("within", &sums(&within, |numbers| numbers[numbers.len() / 2]), EXACT);
        let own = model.radius_neighbors(None, None).unwrap();
        case.method("own_within", &sums(&own, |numbers| numbers.iter().sum()), EXACT);
    });
}

#[test]
fn k_neighbors() {
    each("KNeighborsClassifier", |case, x| {
        let estimator = KNeighborsClassifier::new().n_neighbors(count(case)).metric(metric(case)).p(p(case));
        let model = estimator.weights(weights(case)).fit(x, &case.labels(), ..).unwrap();
        let classes: Array1<f64> = model.classes.iter().map(|&class| class as f64).collect();
        case.attribute("classes", classes.into_dyn(), 0.0);
        case.method("predict", &model.predict(x), 0.0);
        case.method("predict_proba", &model.predict_proba(x), EXACT);
        case.score(model.score(x, &case.labels(), ..).unwrap(), EXACT);
    });
    each("KNeighborsRegressor", |case, x| {
        let estimator = KNeighborsRegressor::new().n_neighbors(count(case)).metric(metric(case)).p(p(case));
        let model = estimator.weights(weights(case)).fit(x, &case.y(), ..).unwrap();
        case.method("predict", &model.predict(x), EXACT);
        case.score(model.score(x, &case.y(), ..).unwrap(), EXACT);
    });
}

#[test]
fn radius_neighbors() {
    each("RadiusNeighborsClassifier", |case, x| {
        let estimator = RadiusNeighborsClassifier::new().radius(case.number("radius").unwrap());
        let estimator = estimator.metric(metric(case)).p(p(case)).weights(weights(case));
        let model = estimator.fit(x, &case.labels(), ..).unwrap();
        case.method("predict", &model.predict(x), 0.0);
        case.method("predict_proba", &model.predict_proba(x), EXACT);
        case.score(model.score(x, &case.labels(), ..).unwrap(), EXACT);
    });
    each("RadiusNeighborsRegressor", |case, x| {
        let estimator = RadiusNeighborsRegressor::new().radius(case.number("radius").unwrap());
        let estimator = estimator.metric(metric(case)).p(p(case)).weights(weights(case));
        let model = estimator.fit(x, &case.y(), ..).unwrap();
        case.method("predict", &model.predict(x), EXACT);
        case.score(model.score(x, &case.y(), ..).unwrap(), EXACT);
    });
}

#[test]
fn local_outlier_factor() {
    each("LocalOutlierFactor", |case, x| {
        let estimator = LocalOutlierFactor::new().metric(metric(case)).p(p(case)).novelty(true);
        let estimator = estimator.contamination(case.number("contamination"));
        let estimator =
            case.number("n_neighbors").map_or(estimator.clone(), |_| estimator.n_neighbors(count(case)));
        let model = estimator.fit(x, ..).unwrap();
        // Means of reciprocals of distances of cosines, which have lost digits.
        let tolerance = if metric(case) == Metric::Cosine { 1e-6 } else { 1e-9 };
        case.attribute(
            "negative_outlier_factor",
            model.negative_outlier_factor.clone().into_dyn(),
            tolerance,
        );
        case.attribute("offset", ndarray::arr0(model.offset).into_dyn(), tolerance);
        case.method("score_samples", &model.score_samples(x), tolerance);
        case.method("decision_function", &model.decision_function(x), tolerance);
        case.method("predict", &model.predict(x), 0.0);
    });
}

#[test]
fn knn_imputer() {
    each("KNNImputer", |case, x| {
        let estimator = KNNImputer::new().n_neighbors(count(case)).weights(weights(case));
        let model = estimator.add_indicator(case.is("add_indicator").unwrap_or(false)).fit(x, ..).unwrap();
        case.method("transform", &model.transform(x), EXACT);
    });
}
