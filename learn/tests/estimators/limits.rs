//! Sizes: many features, many classes, and parameters that are refused before anything runs.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use tharsis_learn::FitOptions;
use tharsis_learn::cluster::{Init, KMeans};
use tharsis_learn::decomposition::{PCA, TruncatedSVD};
use tharsis_learn::ensemble::RandomForestRegressor;
use tharsis_learn::linear_model::{ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge};
use tharsis_learn::model_selection::{
    KFold, Share, ShuffleSplit, StratifiedKFold, TimeSeriesSplit, TrainTestSplit, train_test_split,
};
use tharsis_learn::naive_bayes::{BernoulliNB, GaussianNB, MultinomialNB};
use tharsis_learn::preprocessing::MinMaxScaler;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Cancel, DType, Error, LocalExecutor, Tensor, arange, array, ones, zeros};

fn within(bytes: u64) -> FitOptions {
    FitOptions::new().executor(Arc::new(LocalExecutor::sized(2, bytes)))
}

/// A matrix of all pairs of 3 000 features would take 72 MB.
#[test]
fn features_of_few_samples_are_not_paired() {
    let x = default_rng(1).normal(0.0, 1.0, &[5, 3_000]).execute().unwrap();
    let y = array([1.0, 2.0, 3.0, 4.0, 6.0]);
    let options = within(64 << 20);
    let ridge = Ridge::new().alpha(1e-3).fit(&x, &y, &options).unwrap();
    assert!((ridge.score(&x, &y, ..).unwrap() - 1.0).abs() < 1e-6);
    assert!(Lasso::new().alpha(0.1).fit(&x, &y, &options).unwrap().converged);
    assert_eq!(ElasticNet::new().l1_ratio(0.0).fit(&x, &y, &options).unwrap().coef.len(), 3_000);
    assert_eq!(LinearRegression::new().fit(&x, &y, &options).unwrap().rank, 4);
    let pca = PCA::new().n_components(2).fit(&x, &options).unwrap();
    assert_eq!(pca.components.dim(), (2, 3_000));
    assert_eq!(pca.score_samples(&x).unwrap().to_vec::<f64>().unwrap().len(), 5);
}

#[test]
fn more_features_than_memory_are_refused_with_both_sizes() {
    // Nothing of this is read.
    let x = zeros(&[100_000_000, 5_000]);
    let y = zeros(&[100_000_000]);
    for made in [
        Ridge::new().fit(&x, &y, within(256 << 20)).map(drop),
        Lasso::new().fit(&x, &y, within(256 << 20)).map(drop),
        LinearRegression::new().fit(&x, &y, within(256 << 20)).map(drop),
        PCA::new().fit(&x, within(256 << 20)).map(drop),
    ] {
        let error = made.unwrap_err();
        assert_eq!((error.class(), error.location().file()), ("MemoryError", file!()), "{error}");
        let text = error.to_string();
        assert!(text.contains("800000000 bytes") && text.contains("268435456 are allowed"), "{text}");
    }
}

#[test]
fn a_regression_target_is_no_class_each() {
    let (x, y) = (ones(&[40_000, 1]), arange(40_000));
    for made in [
        LogisticRegression::new().fit(&x, &y, ..).map(drop),
        GaussianNB::new().fit(&x, &y, ..).map(drop),
        MultinomialNB::new().fit(&x, &y, ..).map(drop),
        BernoulliNB::new().fit(&x, &y, ..).map(drop),
    ] {
        let error = made.unwrap_err();
        assert_eq!(error.class(), "ValueError", "{error}");
        assert!(error.to_string().starts_with("y has 40000 classes, "), "{error}");
        assert_eq!(error.location().file(), file!());
    }
}

/// Fits and searches of models end wherever they are; so do those whose passes are few.
#[test]
fn a_cancelled_fit_ends() {
    let x = default_rng(3).normal(0.0, 1.0, &[400, 5]).execute().unwrap();
    let y = x.sum(1).execute().unwrap();
    for (name, fit) in [
        ("k-means", &(|| KMeans::new().n_clusters(9).tol(0.0).fit(&x, ..).map(drop)) as &dyn Fn() -> _),
        ("lasso", &|| Lasso::new().alpha(1e-9).fit(&x, &y, ..).map(drop)),
        ("logistic", &|| LogisticRegression::new().fit(&x, &y.greater(0.0).astype(DType::I64), ..).map(drop)),
        ("forest", &|| RandomForestRegressor::new().n_estimators(20).fit(&x, &y, ..).map(drop)),
    ] {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = looks.clone();
        let done: Result<(), Error> =
            Cancel::when(move || counted.fetch_add(1, Relaxed) == usize::MAX).run(fit);
        done.unwrap();
        let all = looks.load(Relaxed);
        for part in [0, all / 4, all / 2] {
            let looks = AtomicUsize::new(0);
            let cancel = Cancel::when(move || part <= looks.fetch_add(1, Relaxed));
            assert_eq!(cancel.run(fit).unwrap_err().class(), "Cancelled", "{name}, after {part} of {all}");
        }
    }
}

/// Samples that fail when they run, which they must to tell how many there are.
fn poisoned() -> Tensor {
    let rows = arange(6).reshape(&[3, 2]).take_at(&(arange(3) + 99), 0);
    rows.filter(&rows.get(&[(..).into(), 0.into()]).greater(-1))
}

#[test]
fn parameters_are_refused_before_sizes_are_found() {
    let x = poisoned();
    let y = x.get(&[(..).into(), 0.into()]);
    assert_eq!(Ridge::new().fit(&x, &y, ..).unwrap_err().class(), "IndexError");
    let kfold = KFold { n_splits: 1, ..KFold::default() };
    let strata = StratifiedKFold { n_splits: 1, ..StratifiedKFold::default() };
    let shuffle = ShuffleSplit { test_size: Some(Share::Fraction(1.5)), ..ShuffleSplit::default() };
    let series = TimeSeriesSplit { n_splits: 1, ..TimeSeriesSplit::default() };
    let unshuffled =
        TrainTestSplit { shuffle: false, stratify: Some(y.clone()), ..TrainTestSplit::default() };
    let refusals = [
        Ridge::new().alpha(-1.0).fit(&x, &y, ..).map(drop),
        Lasso::new().alpha(f64::NAN).fit(&x, &y, ..).map(drop),
        ElasticNet::new().l1_ratio(2.0).fit(&x, &y, ..).map(drop),
        LinearRegression::new().tol(-1.0).fit(&x, &y, ..).map(drop),
        LogisticRegression::new().c(0.0).fit(&x, &y, ..).map(drop),
        PCA::new().n_components(0).fit(&x, ..).map(drop),
        PCA::new().n_components(1.0).fit(&x, ..).map(drop),
        TruncatedSVD::new().n_components(0).fit(&x, ..).map(drop),
        KMeans::new().n_clusters(0).fit(&x, ..).map(drop),
        KMeans::new().n_init(0).fit(&x, ..).map(drop),
        KMeans::new().tol(f64::NAN).fit(&x, ..).map(drop),
        KMeans::new().n_clusters(2).init(Init::Centers(zeros(&[3, 2]))).fit(&x, ..).map(drop),
        GaussianNB::new().var_smoothing(-1.0).fit(&x, &y, ..).map(drop),
        GaussianNB::new().priors(&[0.5, 0.6]).fit(&x, &y, ..).map(drop),
        MultinomialNB::new().class_prior(&[-1.0, 2.0]).fit(&x, &y, ..).map(drop),
        BernoulliNB::new().alpha(f64::INFINITY).fit(&x, &y, ..).map(drop),
        MinMaxScaler::new().feature_range(1.0, 0.0).fit(&x, ..).map(drop),
        kfold.split(&x).map(drop),
        strata.split(&y).map(drop),
        shuffle.split(&x).map(drop),
        series.split(&x).map(drop),
        train_test_split([&x], unshuffled).map(drop),
    ];
    for (at, refused) in refusals.into_iter().enumerate() {
        let error = refused.err().unwrap_or_else(|| panic!("mistake {at} is not refused"));
        assert_eq!(error.class(), "ValueError", "mistake {at}: {error}");
    }
}

#[test]
fn sums_of_priors_may_be_rounded() {
    let x = array([0.0, 1.0, 5.0, 7.0]).reshape(&[4, 1]);
    let y = array([0i64, 0, 1, 1]);
    assert!(GaussianNB::new().priors(&[0.333_33, 0.666_665]).fit(&x, &y, ..).is_ok());
    let refused = GaussianNB::new().priors(&[0.333, 0.666]).fit(&x, &y, ..).unwrap_err();
    assert!(refused.to_string().starts_with("The sum of the priors should be 1."), "{refused}");
    let refused = GaussianNB::new().priors(&[1.0]).fit(&x, &y, ..).unwrap_err();
    assert!(refused.to_string().starts_with("Number of priors must match number of classes."), "{refused}");
    // As in scikit-learn, those of counts are shares of any sum.
    let model = MultinomialNB::new().class_prior(&[1.0, 3.0]).fit(&x, &y, ..).unwrap();
    let chances = model.predict_proba(&zeros(&[1, 1])).to_vec::<f64>().unwrap();
    assert!((chances[0] - 0.25).abs() < 1e-12, "{chances:?}");
}
