//! Clusters and mixtures against recorded answers of scikit-learn, each for several ways to cut the samples.

use crate::oracle::{Case, each};
use ndarray::{Array1, ArrayD, arr0};
use tharsis_learn::cluster::{AgglomerativeClustering, DBSCAN, Linkage};
use tharsis_learn::mixture::{CovarianceType, GaussianMixture};
use tharsis_learn::neighbors::Metric;
use tharsis_numeric::Tensor;

const EXACT: f64 = 1e-9;

fn numbers<T: Copy + TryInto<i64>>(all: &[T]) -> ArrayD<f64> {
    let number = |&one: &T| one.try_into().unwrap_or(i64::MAX) as f64;
    all.iter().map(number).collect::<Array1<f64>>().into_dyn()
}

fn metric(case: &Case<'_>) -> Metric {
    match case.text("metric") {
        Some("manhattan") => Metric::Manhattan,
        Some("chebyshev") => Metric::Chebyshev,
        Some("cosine") => Metric::Cosine,
        Some("minkowski") => Metric::Minkowski,
        _ => Metric::Euclidean,
    }
}

#[test]
fn dbscan() {
    each("DBSCAN", |case, x| {
        let estimator =
            DBSCAN::new().eps(case.number("eps").unwrap()).metric(metric(case)).p(case.number("p"));
        let count = case.number("min_samples").map_or(5, |count| count as usize);
        let model = estimator.min_samples(count).fit(x, case.options()).unwrap();
        case.attribute("labels", numbers(&model.labels), 0.0);
        case.attribute("core_sample_indices", numbers(&model.core_sample_indices), 0.0);
        case.attribute("components", model.components.fetch::<f64>().unwrap(), 0.0);
    });
}

#[test]
fn agglomerative_clustering() {
    each("AgglomerativeClustering", |case, x| {
        let linkage = match case.text("linkage").unwrap() {
            "complete" => Linkage::Complete,
            "average" => Linkage::Average,
            "single" => Linkage::Single,
            _ => Linkage::Ward,
        };
        let estimator = AgglomerativeClustering::new().linkage(linkage).metric(metric(case));
        let estimator = estimator.n_clusters(case.number("n_clusters").map(|count| count as usize));
        let model = estimator.distance_threshold(case.number("distance_threshold")).fit(x, ..).unwrap();
        case.attribute("n_clusters", arr0(model.n_clusters as f64).into_dyn(), 0.0);
        case.attribute("distances", model.distances.clone().into_dyn(), EXACT);
        let children = model.children.iter().flatten().map(|&child| child as f64).collect::<Array1<f64>>();
        let children = children.into_shape_with_order((model.children.len(), 2)).unwrap();
        case.attribute("children", children.into_dyn(), 0.0);
        case.attribute("labels", numbers(&model.labels), 0.0);
    });
}

#[test]
fn gaussian_mixture() {
    each("GaussianMixture", |case, x| {
        let form = match case.text("covariance_type").unwrap() {
            "tied" => CovarianceType::Tied,
            "diag" => CovarianceType::Diag,
            "spherical" => CovarianceType::Spherical,
            _ => CovarianceType::Full,
        };
        let tensor = |name: &str| case.array(name).map(|array| Tensor::from_array(&array));
        let count = case.number("n_components").unwrap() as usize;
        let mut estimator = GaussianMixture::new().n_components(count).covariance_type(form);
        estimator = estimator.tol(case.number("tol").unwrap_or(1e-3));
        estimator = estimator.reg_covar(case.number("reg_covar").unwrap_or(1e-6));
        estimator = estimator.max_iter(case.number("max_iter").map_or(100, |count| count as usize));
        if let Some(weights) = tensor("weights_init") {
            estimator = estimator.weights_init(&weights).means_init(&tensor("means_init").unwrap());
            estimator = estimator.precisions_init(&tensor("precisions_init").unwrap());
            let n_iter = arr0(estimator.fit(x, ..).unwrap().n_iter as f64);
            case.attribute("n_iter", n_iter.into_dyn(), 0.0);
        }
        let model = estimator.fit(x, ..).unwrap();
        // Of data far from zero scikit-learn's sums of squares have lost digits.
        let tolerance = if case.set() == "plain" { 1e-6 } else { 1e-8 };
        case.attribute("weights", model.weights.clone().into_dyn(), tolerance);
        case.attribute("means", model.means.clone().into_dyn(), tolerance);
        case.attribute("covariances", model.covariances.clone(), tolerance);
        case.attribute("precisions", model.precisions(), 1e-5);
        case.attribute("precisions_cholesky", model.precisions_cholesky(), 1e-5);
        case.attribute("lower_bound", arr0(model.lower_bound).into_dyn(), tolerance);
        case.method("predict", &model.predict(x), 0.0);
        case.method("score_samples", &model.score_samples(x), 1e-5);
        case.score(model.score(x, ..).unwrap(), 1e-6);
        let criteria = [model.aic(x, ..).unwrap(), model.bic(x, ..).unwrap()];
        case.method("criteria", &Tensor::from_elements(&[2], &criteria), 1e-6);
        if 1 < count {
            case.method("predict_proba", &model.predict_proba(x), tolerance);
        }
    });
}
