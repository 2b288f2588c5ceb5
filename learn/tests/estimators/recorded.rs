//! Fits against recorded answers of scikit-learn, each for several ways to cut the samples.

use crate::oracle::each;
use ndarray::{Array1, ArrayD};
use tharsis_learn::cluster::KMeans;
use tharsis_learn::decomposition::{PCA, TruncatedSVD};
use tharsis_learn::linear_model::{ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge};
use tharsis_learn::naive_bayes::{BernoulliNB, GaussianNB, MultinomialNB};
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::{Binarizer, MaxAbsScaler, MinMaxScaler, Norm, Normalizer, StandardScaler};
use tharsis_numeric::Tensor;

/// Tolerance where an answer is a formula of sums.
const EXACT: f64 = 1e-10;
/// Tolerance of least squares whose columns lie a million from zero: their condition takes digits.
const FAR: f64 = 1e-6;
/// Tolerance where both sides search for an optimum.
const SEARCHED: f64 = 1e-6;

fn classes(classes: &[i64]) -> ArrayD<f64> {
    classes.iter().map(|&class| class as f64).collect::<Array1<f64>>().into_dyn()
}

fn one(number: f64) -> ArrayD<f64> {
    ndarray::arr0(number).into_dyn()
}

#[test]
fn standard_scaler() {
    each("StandardScaler", |case, x| {
        let model = StandardScaler::new().fit(x, case.options()).unwrap();
        let tolerance = if case.set() == "far" { 1e-8 } else { EXACT };
        case.attribute("mean", model.mean.clone().into_dyn(), tolerance);
        case.attribute("var", model.var.clone().into_dyn(), tolerance);
        if case.set() == "missing" {
            case.attribute("scale", model.scale.clone().into_dyn(), EXACT);
            case.attribute("n_samples_seen", model.n_samples_seen.clone().into_dyn(), EXACT);
        }
        let made = model.transform(x);
        case.method("transform", &made, tolerance);
        let back = model.inverse_transform(&made).fetch::<f64>().unwrap();
        for (back, x) in back.iter().zip(&case.x()) {
            assert!((back - x).abs() <= 1e-12 * x.abs() || x.is_nan() && back.is_nan(), "{back}, not {x}");
        }
    });
}

#[test]
fn min_max_scaler() {
    each("MinMaxScaler", |case, x| {
        let range = case.numbers("feature_range").unwrap();
        let model = MinMaxScaler::new().feature_range(range[0], range[1]).fit(x, ..).unwrap();
        case.attribute("data_min", model.data_min.clone().into_dyn(), 0.0);
        case.attribute("data_max", model.data_max.clone().into_dyn(), 0.0);
        case.attribute("data_range", model.data_range.clone().into_dyn(), 0.0);
        case.attribute("scale", model.scale.clone().into_dyn(), EXACT);
        case.attribute("min", model.min.clone().into_dyn(), EXACT);
        case.method("transform", &model.transform(x), EXACT);
        let clipped = MinMaxScaler::new().clip(true).fit(x, ..).unwrap().transform(&(x * 100.0));
        assert!(clipped.nanmax(..).item().unwrap().to_f64() <= 1.0);
    });
}

#[test]
fn max_abs_scaler() {
    each("MaxAbsScaler", |case, x| {
        let model = MaxAbsScaler::new().fit(x, ..).unwrap();
        case.attribute("max_abs", model.max_abs.clone().into_dyn(), 0.0);
        case.attribute("scale", model.scale.clone().into_dyn(), 0.0);
        case.method("transform", &model.transform(x), EXACT);
    });
}

#[test]
fn normalizer_and_binarizer() {
    each("Normalizer", |case, x| {
        let norm = match case.text("norm").unwrap() {
            "l1" => Norm::L1,
            "l2" => Norm::L2,
            _ => Norm::Max,
        };
        case.method("transform", &Normalizer::new().norm(norm).transform(x), EXACT);
    });
    each("Binarizer", |case, x| {
        let threshold = case.number("threshold").unwrap();
        case.method("transform", &Binarizer::new().threshold(threshold).transform(x), 0.0);
    });
}

#[test]
fn linear_regression() {
    each("LinearRegression", |case, x| {
        let tolerance = if case.set() == "far" { FAR } else { 1e-8 };
        let estimator = LinearRegression::new().fit_intercept(case.is("fit_intercept").unwrap_or(true));
        let model = estimator.fit(x, &case.y(), case.options()).unwrap();
        case.attribute("coef", model.coef.clone(), tolerance);
        if case.set() != "far" {
            case.attribute("intercept", model.intercept.clone(), tolerance);
        }
        case.attribute("rank", one(model.rank as f64), 0.0);
        case.attribute("singular", model.singular.clone().into_dyn(), tolerance);
        case.method("predict", &model.predict(x), tolerance);
        if !matches!(case.set(), "dependent" | "wide") {
            case.score(model.score(x, &case.y(), case.options()).unwrap(), 1e-9);
        }
    });
}

#[test]
fn ridge() {
    each("Ridge", |case, x| {
        let estimator = Ridge::new().alpha(case.number("alpha").unwrap());
        let estimator = estimator.fit_intercept(case.is("fit_intercept").unwrap_or(true));
        let model = estimator.fit(x, &case.y(), case.options()).unwrap();
        case.attribute("coef", model.coef.clone(), 1e-8);
        case.attribute("intercept", model.intercept.clone(), 1e-8);
        case.method("predict", &model.predict(x), 1e-8);
        case.score(model.score(x, &case.y(), case.options()).unwrap(), 1e-9);
    });
}

#[test]
fn lasso_and_elastic_net() {
    each("Lasso", |case, x| {
        let estimator = Lasso::new().alpha(case.number("alpha").unwrap()).tol(1e-12).max_iter(100_000);
        let model = estimator.fit(x, &case.y(), case.options()).unwrap();
        assert!(model.converged, "{:?}", model.dual_gap);
        case.attribute("coef", model.coef.clone(), SEARCHED);
        case.attribute("intercept", model.intercept.clone(), 1e-3 * SEARCHED.sqrt());
        case.method("predict", &model.predict(x), SEARCHED);
        case.score(model.score(x, &case.y(), case.options()).unwrap(), SEARCHED);
    });
    each("ElasticNet", |case, x| {
        let estimator = ElasticNet::new().alpha(case.number("alpha").unwrap()).tol(1e-12).max_iter(100_000);
        let estimator = estimator.l1_ratio(case.number("l1_ratio").unwrap_or(0.5));
        let estimator = estimator.positive(case.is("positive").unwrap_or(false));
        let model = estimator.fit(x, &case.y(), case.options()).unwrap();
        assert!(model.converged, "{:?}", model.dual_gap);
        case.attribute("coef", model.coef.clone(), SEARCHED);
        case.method("predict", &model.predict(x), SEARCHED);
        case.score(model.score(x, &case.y(), case.options()).unwrap(), SEARCHED);
    });
}

#[test]
fn logistic_regression() {
    each("LogisticRegression", |case, x| {
        let estimator = LogisticRegression::new().tol(1e-10).max_iter(10_000);
        let estimator = estimator.c(case.number("C").unwrap_or(1.0));
        let estimator = estimator.fit_intercept(case.is("fit_intercept").unwrap_or(true));
        let model = estimator.fit(x, &case.labels(), case.options()).unwrap();
        assert!(model.converged);
        case.attribute("classes", classes(&model.classes), 0.0);
        case.attribute("coef", model.coef.clone().into_dyn(), SEARCHED);
        case.attribute("intercept", model.intercept.clone().into_dyn(), SEARCHED);
        case.method("predict", &model.predict(x), 0.0);
        case.method("decision_function", &model.decision_function(x), 1e-5);
        case.method("predict_proba", &model.predict_proba(x), 1e-5);
        case.method("predict_log_proba", &model.predict_log_proba(x), 1e-5);
        case.score(model.score(x, &case.labels(), case.options()).unwrap(), EXACT);
    });
}

#[test]
fn pca() {
    each("PCA", |case, x| {
        let estimator = match case.number("n_components") {
            None => PCA::new(),
            Some(share) if share < 1.0 => PCA::new().n_components(share),
            Some(count) => PCA::new().n_components(count as usize),
        };
        let model = estimator.whiten(case.is("whiten").unwrap_or(false)).fit(x, ..).unwrap();
        case.attribute("components", model.components.clone().into_dyn(), 1e-8);
        case.attribute("explained_variance", model.explained_variance.clone().into_dyn(), 1e-8);
        case.attribute("explained_variance_ratio", model.explained_variance_ratio.clone().into_dyn(), EXACT);
        case.attribute("singular_values", model.singular_values.clone().into_dyn(), 1e-8);
        case.attribute("mean", model.mean.clone().into_dyn(), EXACT);
        case.attribute("noise_variance", one(model.noise_variance), 1e-8);
        case.method("transform", &model.transform(x), 1e-8);
        if case.is("whiten").is_none() {
            // scikit-learn scales the components twice there.
            case.method("score_samples", &model.score_samples(x).unwrap(), 1e-6);
        }
        if case.number("n_components").is_none() {
            let back = model.inverse_transform(&model.transform(x));
            assert!(back.isclose(x, 1e-9, 1e-9).all(..).item().unwrap().is_true());
        }
    });
}

#[test]
fn truncated_svd() {
    each("TruncatedSVD", |case, x| {
        let model = TruncatedSVD::new().fit(x, ..).unwrap();
        case.attribute("components", model.components.clone().into_dyn(), 1e-8);
        case.attribute("explained_variance", model.explained_variance.clone().into_dyn(), 1e-8);
        case.attribute("explained_variance_ratio", model.explained_variance_ratio.clone().into_dyn(), 1e-8);
        case.attribute("singular_values", model.singular_values.clone().into_dyn(), 1e-8);
        case.method("transform", &model.transform(x), 1e-8);
    });
}

#[test]
fn k_means() {
    each("KMeans", |case, x| {
        let init = case.array("init").unwrap();
        let estimator = KMeans::new().n_clusters(init.shape()[0]).tol(0.0).init(&Tensor::from_array(&init));
        let model = estimator.fit(x, case.options()).unwrap();
        assert!(model.converged);
        case.attribute("cluster_centers", model.cluster_centers.clone().into_dyn(), EXACT);
        case.attribute("inertia", one(model.inertia), EXACT);
        case.attribute("n_iter", one(model.n_iter as f64), 0.0);
        let labels = model.labels.to_vec::<i64>().unwrap();
        case.attribute("labels", classes(&labels), 0.0);
        assert_eq!(model.predict(x).to_vec::<i64>().unwrap(), labels);
        case.method("predict", &model.predict(x), 0.0);
        case.method("transform", &model.transform(x), 1e-8);
        let score = model.score(x, case.options()).unwrap();
        assert!((score + model.inertia).abs() < 1e-9 * model.inertia, "{score}, {}", model.inertia);
    });
}

#[test]
fn gaussian_naive_bayes() {
    each("GaussianNB", |case, x| {
        let mut estimator = GaussianNB::new();
        if let Some(smoothing) = case.number("var_smoothing") {
            estimator = estimator.var_smoothing(smoothing);
        }
        if let Some(priors) = case.numbers("priors") {
            estimator = estimator.priors(&priors);
        }
        let model = estimator.fit(x, &case.labels(), case.options()).unwrap();
        case.attribute("theta", model.theta.clone().into_dyn(), EXACT);
        case.attribute("var", model.var.clone().into_dyn(), EXACT);
        case.attribute("class_prior", model.class_prior.clone().into_dyn(), EXACT);
        case.method("predict", &model.predict(x), 0.0);
        case.method("predict_proba", &model.predict_proba(x), EXACT);
        if case.numbers("priors").is_none() {
            case.attribute("classes", classes(&model.classes), 0.0);
            case.attribute("class_count", model.class_count.clone().into_dyn(), EXACT);
            case.attribute("epsilon", one(model.epsilon), EXACT);
            case.method("predict_log_proba", &model.predict_log_proba(x), EXACT);
            case.score(model.score(x, &case.labels(), case.options()).unwrap(), EXACT);
        }
    });
}

#[test]
fn multinomial_naive_bayes() {
    each("MultinomialNB", |case, x| {
        let estimator = MultinomialNB::new().alpha(case.number("alpha").unwrap_or(1.0));
        let estimator = estimator.fit_prior(case.is("fit_prior").unwrap_or(true));
        let model = estimator.fit(x, &case.labels(), case.options()).unwrap();
        case.attribute("classes", classes(&model.classes), 0.0);
        case.attribute("class_count", model.class_count.clone().into_dyn(), EXACT);
        case.attribute("feature_count", model.feature_count.clone().into_dyn(), EXACT);
        case.attribute("class_log_prior", model.class_log_prior.clone().into_dyn(), EXACT);
        case.attribute("feature_log_prob", model.feature_log_prob.clone().into_dyn(), EXACT);
        case.method("predict", &model.predict(x), 0.0);
        case.method("predict_proba", &model.predict_proba(x), EXACT);
        case.method("predict_log_proba", &model.predict_log_proba(x), EXACT);
        case.score(model.score(x, &case.labels(), case.options()).unwrap(), EXACT);
    });
}

#[test]
fn bernoulli_naive_bayes() {
    each("BernoulliNB", |case, x| {
        let mut estimator = BernoulliNB::new().alpha(case.number("alpha").unwrap_or(1.0));
        estimator = estimator.fit_prior(case.is("fit_prior").unwrap_or(true));
        let threshold = case.number("binarize");
        if let Some(threshold) = threshold {
            estimator = estimator.binarize(threshold);
        }
        let model = estimator.fit(x, &case.labels(), case.options()).unwrap();
        case.attribute("feature_log_prob", model.feature_log_prob.clone().into_dyn(), EXACT);
        case.method("predict", &model.predict(x), 0.0);
        case.method("predict_proba", &model.predict_proba(x), EXACT);
        if threshold.is_none() {
            case.attribute("class_count", model.class_count.clone().into_dyn(), EXACT);
            case.attribute("feature_count", model.feature_count.clone().into_dyn(), EXACT);
            case.attribute("class_log_prior", model.class_log_prior.clone().into_dyn(), EXACT);
            case.method("predict_log_proba", &model.predict_log_proba(x), EXACT);
            case.score(model.score(x, &case.labels(), case.options()).unwrap(), EXACT);
        }
    });
}

#[test]
fn a_pipeline() {
    each("Pipeline", |case, x| {
        let last = LogisticRegression::new().tol(1e-10).max_iter(10_000);
        let pipeline = Pipeline::new()
            .step("scale", StandardScaler::new())
            .step("pca", PCA::new().n_components(2))
            .last("model", last);
        let model = pipeline.fit(x, &case.labels(), ..).unwrap();
        case.method("predict", &model.predict(x), 0.0);
        case.method("predict_proba", &model.predict_proba(x), SEARCHED);
        case.score(model.score(x, &case.labels(), ..).unwrap(), EXACT);
    });
}
