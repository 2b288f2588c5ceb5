//! Clusters and mixtures of more samples than a block has, and what is refused.

use std::sync::Arc;
use tharsis_learn::cluster::{AgglomerativeClustering, DBSCAN, Linkage};
use tharsis_learn::mixture::{CovarianceType, GaussianMixture, MixtureInit};
use tharsis_learn::neighbors::Metric;
use tharsis_learn::{Error, FitOptions};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, arange, array, concatenate, ones, zeros};

fn on(threads: usize) -> FitOptions {
    FitOptions::new().executor(Arc::new(LocalExecutor::sized(threads, 1 << 28)))
}

/// A chain through all samples, whose order has nothing to do with their places: one cluster, after a few
/// passes and not one for each link.
#[test]
fn a_chain_is_one_cluster() {
    let rows = 1_100;
    let places = (arange(rows) * 791 % rows as i64).astype(DType::F64).reshape(&[rows as i64, 1]);
    let both = concatenate(&[&places, &(&places + 1e6)], 0);
    let x = both.rechunk(Chunks::PerAxis(vec![777, 1])).execute().unwrap();
    let fit = |threads| DBSCAN::new().eps(1.0).min_samples(3).fit(&x, on(threads)).unwrap();
    let model = fit(2);
    let expected: Vec<i64> = (0..2 * rows).map(|at| i64::from(rows <= at)).collect();
    assert_eq!(model.labels, expected);
    // The four ends have one sample beside them.
    assert_eq!(model.core_sample_indices.len(), 2 * rows - 4);
    assert_eq!(fit(1).labels, expected);
}

/// scikit-learn's numbers: a sample at the border of two clusters is of the first.
#[test]
fn borders_and_weights() {
    let x = array([0.0, 0.1, 0.2, 1.1, 2.0, 2.1, 2.2]).reshape(&[7, 1]);
    let model = DBSCAN::new().eps(0.95).min_samples(4).fit(&x, ..).unwrap();
    assert_eq!((model.labels, model.core_sample_indices), (vec![0, 0, 0, 0, 1, 1, 1], vec![2, 4]));
    let model = DBSCAN::new().eps(0.95).min_samples(3).fit(&x, ..).unwrap();
    assert_eq!((model.labels, model.core_sample_indices), (vec![0; 7], vec![0, 1, 2, 3, 4, 5, 6]));
    // No sample is dense by itself; one that weighs enough is.
    let weights = array([9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let weighted = FitOptions::new().sample_weight(&weights);
    let model = DBSCAN::new().eps(0.15).min_samples(9).fit(&x, weighted).unwrap();
    assert_eq!((model.labels, model.core_sample_indices), (vec![0, 0, 0, -1, -1, -1, -1], vec![0, 1]));
    let none = FitOptions::new().sample_weight(&zeros(&[7]));
    assert_eq!(DBSCAN::new().fit(&x, none).unwrap_err().class(), "ValueError");
}

#[test]
fn the_size_of_a_tree_is_limited() {
    // Nothing of this is read.
    let x = zeros(&[50_000, 2]);
    let error = AgglomerativeClustering::new().fit(&x, ..).unwrap_err();
    assert_eq!(error.class(), "MemoryError", "{error}");
    let within = FitOptions::new().executor(Arc::new(LocalExecutor::sized(1, 1 << 20)));
    let error = AgglomerativeClustering::new().fit(&zeros(&[1_000, 2]), within).unwrap_err();
    assert_eq!(error.class(), "MemoryError", "{error}");
    // All samples are equal: no distance tells which are joined first.
    for linkage in [Linkage::Ward, Linkage::Complete, Linkage::Average, Linkage::Single] {
        let model =
            AgglomerativeClustering::new().linkage(linkage).n_clusters(3).fit(&ones(&[40, 2]), ..).unwrap();
        let mut labels = model.labels.clone();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!((labels, model.distances.sum()), (vec![0, 1, 2], 0.0));
    }
}

fn groups() -> Tensor {
    let generator = default_rng(21);
    let group = generator.integers(0, 3, &[3_000]).expand_dims(1);
    (generator.normal(0.0, 1.0, &[3_000, 2]) + group * 20.0).execute().unwrap()
}

const FORMS: [CovarianceType; 4] =
    [CovarianceType::Full, CovarianceType::Tied, CovarianceType::Diag, CovarianceType::Spherical];

#[test]
fn mixtures_find_groups_for_any_chunks_and_threads() {
    let x = groups();
    let cut = x.rechunk(Chunks::Lengths(vec![vec![1, 1_700, 1_299], vec![1, 1]])).execute().unwrap();
    let shifted = &x + 1e7;
    for form in FORMS {
        let fit = |x: &Tensor, threads: usize| {
            GaussianMixture::new().n_components(3).covariance_type(form).fit(x, on(threads)).unwrap()
        };
        let model = fit(&x, 1);
        assert!(model.converged && model.weights.iter().all(|weight| (0.25..0.42).contains(weight)));
        let bits = |model: &tharsis_learn::mixture::FittedGaussianMixture| model.means.mapv(f64::to_bits);
        assert_eq!(bits(&model), bits(&fit(&x, 3)), "{form:?}");
        for (other, by) in [(fit(&cut, 2), 0.0), (fit(&shifted, 2), 1e7)] {
            let means = (&other.means - by - &model.means).mapv(f64::abs).sum();
            let spread = (&other.covariances - &model.covariances).mapv(f64::abs).sum();
            assert!(means < 1e-6 && spread < 1e-6, "{form:?}: {means}, {spread}");
        }
        // Samples that are drawn have the means and the shares.
        let (drawn, labels) = model.sample(4_000).unwrap();
        for component in 0..3 {
            let own: Vec<usize> = (0..4_000).filter(|&at| labels[at] == component as i64).collect();
            let mean = drawn.select(ndarray::Axis(0), &own).mean_axis(ndarray::Axis(0)).unwrap();
            let distance = (mean - model.means.row(component)).mapv(f64::abs).sum();
            let share = own.len() as f64 / 4_000.0 - model.weights[component];
            assert!(distance < 0.3 && share.abs() < 0.05, "{form:?}: {distance}, {share}");
        }
    }
    let random =
        GaussianMixture::new().n_components(3).init_params(MixtureInit::Random).n_init(8).max_iter(200);
    assert!(random.fit(&x, ..).unwrap().lower_bound.is_finite());
}

#[test]
fn mistakes() {
    let x = arange(6).reshape(&[3, 2]);
    let mixture = |count: usize| GaussianMixture::new().n_components(count);
    let texts: Vec<(Result<(), Error>, &str)> = vec![
        (
            DBSCAN::new().eps(0.0).fit(&x, ..).map(drop),
            "The 'eps' parameter of DBSCAN must be a float in the range (0.0, inf). Got 0 instead.",
        ),
        (
            DBSCAN::new().min_samples(0).fit(&x, ..).map(drop),
            "The 'min_samples' parameter of DBSCAN must be an int in the range [1, inf). Got 0 instead.",
        ),
        (
            AgglomerativeClustering::new().n_clusters(4).fit(&x, ..).map(drop),
            "Cannot extract more clusters than samples: 4 clusters were given for a tree with 3 leaves.",
        ),
        (
            AgglomerativeClustering::new().distance_threshold(1.0).fit(&x, ..).map(drop),
            "Exactly one of n_clusters and distance_threshold has to be set, and the other needs to be None.",
        ),
        (
            AgglomerativeClustering::new().metric(Metric::Cosine).fit(&x, ..).map(drop),
            "The 'metric' parameter of AgglomerativeClustering must be",
        ),
        (
            AgglomerativeClustering::new().fit(&ones(&[1, 2]), ..).map(drop),
            "Found array with 1 sample(s) (shape=(1, 2)) while a minimum of 2 is required by Agglomerative",
        ),
        (
            mixture(4).fit(&x, ..).map(drop),
            "Expected n_samples >= n_components but got n_components = 4, n_samples = 3",
        ),
        (
            mixture(1).reg_covar(0.0).fit(&ones(&[5, 2]), ..).map(drop),
            "Fitting the mixture model failed because some components have ill-defined empirical covariance",
        ),
        (
            mixture(2).means_init(&zeros(&[2, 3])).fit(&x, ..).map(drop),
            "The parameter 'means' should have the shape of [2, 2], but got [2, 3]",
        ),
        (
            mixture(2).weights_init(&array([0.5, 0.25])).fit(&x, ..).map(drop),
            "The 'weights' parameter of GaussianMixture must be numbers from 0 to 1 that sum to 1.",
        ),
        (
            mixture(1).precisions_init(&zeros(&[1, 2, 2])).fit(&x, ..).map(drop),
            "precisions_init should be positive-definite",
        ),
        (
            mixture(1).tol(-1.0).fit(&x, ..).map(drop),
            "The 'tol' parameter of GaussianMixture must be a float in",
        ),
        (mixture(1).fit(&x, ..).unwrap().sample(0).map(drop), "Invalid value for 'n_samples': 0"),
    ];
    for (at, (made, text)) in texts.into_iter().enumerate() {
        let error = made.err().unwrap_or_else(|| panic!("mistake {at} is not refused"));
        assert_eq!(error.class(), "ValueError", "{at}: {error}");
        assert!(error.to_string().starts_with(text), "{at}: {error}");
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let x = array([1.0, bad, 3.0, 4.0]).reshape(&[4, 1]);
        let weighted = FitOptions::new().sample_weight(&ones(&[4]));
        let refused = [
            DBSCAN::new().fit(&x, ..).map(drop),
            DBSCAN::new().fit(&x, weighted).map(drop),
            AgglomerativeClustering::new().fit(&x, ..).map(drop),
            mixture(2).fit(&x, ..).map(drop),
        ];
        for refused in refused {
            let error = refused.unwrap_err();
            assert!(error.to_string().starts_with("Input X contains "), "{error}");
        }
    }
}
