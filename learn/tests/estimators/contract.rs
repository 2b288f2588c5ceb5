//! The contract of all estimators, each held by one test for all of them, as scikit-learn's
//! `check_estimator`.
//!
//! A new estimator gets a line in [`subjects`].

use ndarray::ArrayD;
use std::sync::Arc;
use tharsis_learn::cluster::KMeans;
use tharsis_learn::compose::TransformedTargetRegressor;
use tharsis_learn::covariance::{EmpiricalCovariance, LedoitWolf, OAS, ShrunkCovariance};
use tharsis_learn::decomposition::{FactorAnalysis, IncrementalPCA, PCA, TruncatedSVD};
use tharsis_learn::discriminant_analysis::{LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis};
use tharsis_learn::dummy::{DummyClassifier, DummyRegressor};
use tharsis_learn::ensemble::{
    AdaBoostClassifier, BaggingRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor,
    Voting, VotingClassifier, VotingRegressor,
};
use tharsis_learn::feature_selection::{SelectKBest, VarianceThreshold};
use tharsis_learn::impute::{KNNImputer, MissingIndicator, SimpleImputer};
use tharsis_learn::kernel_approximation::{AdditiveChi2Sampler, Nystroem, PolynomialCountSketch, RBFSampler};
use tharsis_learn::linear_model::{
    ARDRegression, BayesianRidge, ElasticNet, HuberRegressor, Lars, Lasso, LassoLars, LassoLarsIC,
    LinearRegression, LogisticRegression, OrthogonalMatchingPursuit, PoissonRegressor, Ridge,
    RidgeClassifier, TweedieRegressor,
};
use tharsis_learn::mixture::GaussianMixture;
use tharsis_learn::multiclass::{OneVsOneClassifier, OneVsRestClassifier};
use tharsis_learn::naive_bayes::{BernoulliNB, ComplementNB, GaussianNB, MultinomialNB};
use tharsis_learn::neighbors::{
    KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor, NearestCentroid, OutlierLabel,
    RadiusNeighborsClassifier, RadiusNeighborsRegressor, Weights,
};
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::{
    KBinsDiscretizer, MaxAbsScaler, MinMaxScaler, OneHotEncoder, OrdinalEncoder, PolynomialFeatures,
    PowerTransformer, QuantileTransformer, RobustScaler, SplineTransformer, StandardScaler, TargetEncoder,
};
use tharsis_learn::random_projection::GaussianRandomProjection;
use tharsis_learn::svm::{LinearSVC, LinearSVR, TubeLoss};
use tharsis_learn::tree::{DecisionTreeClassifier, DecisionTreeRegressor};
use tharsis_learn::{Error, FitOptions, Result};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{
    Chunks, DType, LocalExecutor, Tensor, arange, array, concatenate, ones, where_, zeros,
};

const ROWS: usize = 90;
const COLUMNS: usize = 3;

/// A fitted model.
struct Model {
    /// Its numbers, one behind the other.
    state: Vec<f64>,
    /// Predictions and maps, as expressions.
    outputs: Outputs,
    /// Its score on samples and targets, if it has one.
    score: Option<Score>,
}

type Outputs = Box<dyn Fn(&Tensor) -> Vec<Tensor>>;
type Score = Box<dyn Fn(&Tensor, &Tensor) -> Result<f64>>;
type Fit = Box<dyn Fn(&Tensor, &Tensor, &FitOptions) -> Result<Model>>;

/// An estimator, and how it differs from others.
struct Subject {
    name: &'static str,
    fit: Fit,
    /// Whether it reads targets.
    is_supervised: bool,
    /// Whether samples may have weights.
    has_weights: bool,
    /// Whether NaN is a value that is missing.
    takes_nan: bool,
    /// Whether its outputs are the same if a number is added to all samples.
    is_shiftable: bool,
}

fn subject(
    name: &'static str,
    [is_supervised, has_weights, takes_nan, is_shiftable]: [bool; 4],
    fit: impl Fn(&Tensor, &Tensor, &FitOptions) -> Result<Model> + 'static,
) -> Subject {
    Subject { name, fit: Box::new(fit), is_supervised, has_weights, takes_nan, is_shiftable }
}

fn flat(arrays: &[ArrayD<f64>]) -> Vec<f64> {
    arrays.iter().flatten().copied().collect()
}

/// A model of arrays and of methods that give tensors.
macro_rules! model {
    ($model:expr, [$($field:ident),*], [$($method:ident),+] $(, $score:ident)?) => {{
        let model = $model;
        let state = flat(&[$(model.$field.clone().into_dyn()),*]);
        let kept = Arc::new(model);
        let own = kept.clone();
        let outputs: Outputs = Box::new(move |x: &Tensor| vec![$(own.$method(x)),+]);
        #[allow(unused_mut, unused_assignments)]
        let mut score: Option<Score> = None;
        $(score = Some(Box::new(move |x: &Tensor, y: &Tensor| kept.$score(x, y, ..)));)?
        Ok(Model { state, outputs, score })
    }};
}

/// All estimators: their name; whether they have targets, weights, missing values, and outputs that do not
/// depend on where zero is.
fn subjects() -> Vec<Subject> {
    let mut all = maps();
    all.extend(encoders());
    all.extend(distributions());
    all.extend(models());
    all.extend(lines());
    all.extend(neighbors());
    all.extend(holders());
    all
}

/// Estimators that hold others.
fn holders() -> Vec<Subject> {
    vec![
        subject("VotingClassifier", [true, true, false, true], |x, y, options| {
            let voting = VotingClassifier::new()
                .estimator("bayes", GaussianNB::new().var_smoothing(0.0))
                .estimator("tree", DecisionTreeClassifier::new().max_depth(2))
                .voting(Voting::Soft);
            model!(voting.fit(x, y, options)?, [], [predict, transform], score)
        }),
        subject("VotingRegressor", [true, true, false, true], |x, y, options| {
            let voting = VotingRegressor::new()
                .estimator("ridge", Ridge::new())
                .estimator("tree", DecisionTreeRegressor::new().max_depth(2));
            model!(voting.fit(x, y, options)?, [], [predict, transform], score)
        }),
        subject("BaggingRegressor", [true, true, false, true], |x, y, options| {
            let bagging = BaggingRegressor::new().estimator(Ridge::new()).n_estimators(2).bootstrap(false);
            model!(bagging.fit(x, y, options)?, [], [predict], score)
        }),
        subject("AdaBoostClassifier", [true, true, false, true], |x, y, options| {
            let model = AdaBoostClassifier::new().n_estimators(6).fit(x, y, options)?;
            let [weights, errors] = [&model.estimator_weights, &model.estimator_errors]
                .map(|of| ndarray::Array1::from(of.clone()));
            let state = flat(&[weights.into_dyn(), errors.into_dyn()]);
            let kept = Arc::new(model);
            let own = kept.clone();
            let outputs: Outputs = Box::new(move |x| vec![own.predict(x), own.decision_function(x)]);
            let score: Score = Box::new(move |x, y| kept.score(x, y, ..));
            Ok(Model { state, outputs, score: Some(score) })
        }),
        subject("OneVsRestClassifier", [true, false, false, true], |x, y, options| {
            let estimator = OneVsRestClassifier::new(RidgeClassifier::new());
            model!(estimator.fit(x, y, options)?, [], [predict], score)
        }),
        subject("OneVsOneClassifier", [true, false, false, true], |x, y, options| {
            let estimator = OneVsOneClassifier::new(RidgeClassifier::new());
            model!(estimator.fit(x, y, options)?, [], [predict, decision_function], score)
        }),
        subject("TransformedTargetRegressor", [true, true, false, true], |x, y, options| {
            let estimator = TransformedTargetRegressor::new().transformer(StandardScaler::new());
            model!(estimator.fit(x, y, options)?, [], [predict], score)
        }),
    ]
}

/// Further linear models.
fn lines() -> Vec<Subject> {
    vec![
        subject("HuberRegressor", [true, true, false, true], |x, y, options| {
            let estimator = HuberRegressor::new().tol(1e-10).max_iter(2_000);
            model!(estimator.fit(x, y, options)?, [coef], [predict], score)
        }),
        subject("LinearSVC", [true, true, false, false], |x, y, options| {
            let estimator = LinearSVC::new().tol(1e-10).max_iter(2_000);
            model!(estimator.fit(x, y, options)?, [coef, intercept], [predict, decision_function], score)
        }),
        subject("LinearSVR", [true, true, false, false], |x, y, options| {
            let estimator = LinearSVR::new().loss(TubeLoss::SquaredEpsilonInsensitive);
            let estimator = estimator.tol(1e-10).max_iter(2_000);
            model!(estimator.fit(x, y, options)?, [coef, intercept], [predict], score)
        }),
        subject("BayesianRidge", [true, true, false, true], |x, y, options| {
            model!(BayesianRidge::new().fit(x, y, options)?, [coef, sigma], [predict, predict_std], score)
        }),
        subject("ARDRegression", [true, false, false, true], |x, y, options| {
            model!(ARDRegression::new().fit(x, y, options)?, [coef], [predict, predict_std], score)
        }),
        subject("Lars", [true, false, false, true], |x, y, options| {
            model!(Lars::new().fit(x, y, options)?, [coef, alphas], [predict], score)
        }),
        subject("LassoLars", [true, false, false, true], |x, y, options| {
            model!(LassoLars::new().alpha(0.01).fit(x, y, options)?, [coef, coef_path], [predict], score)
        }),
        subject("LassoLarsIC", [true, false, false, true], |x, y, options| {
            model!(LassoLarsIC::new().fit(x, y, options)?, [coef], [predict], score)
        }),
        subject("OrthogonalMatchingPursuit", [true, false, false, true], |x, y, options| {
            let estimator = OrthogonalMatchingPursuit::new().n_nonzero_coefs(2);
            model!(estimator.fit(x, y, options)?, [coef], [predict], score)
        }),
    ]
}

/// Models that hold their samples.
fn neighbors() -> Vec<Subject> {
    vec![
        subject("KNNImputer", [false, false, true, false], |x, _, options| {
            model!(KNNImputer::new().fit(x, options)?, [], [transform])
        }),
        subject("KNeighborsClassifier", [true, false, false, true], |x, y, options| {
            let estimator = KNeighborsClassifier::new().weights(Weights::Distance);
            model!(estimator.fit(x, y, options)?, [], [predict, predict_proba], score)
        }),
        subject("KNeighborsRegressor", [true, false, false, true], |x, y, options| {
            model!(KNeighborsRegressor::new().fit(x, y, options)?, [], [predict], score)
        }),
        subject("LocalOutlierFactor", [false, false, false, true], |x, _, options| {
            let model = LocalOutlierFactor::new().novelty(true).fit(x, options)?;
            model!(model, [negative_outlier_factor], [score_samples, predict])
        }),
        subject("RadiusNeighborsClassifier", [true, false, false, true], |x, y, options| {
            let estimator =
                RadiusNeighborsClassifier::new().radius(2.5).outlier_label(OutlierLabel::Label(9));
            model!(estimator.fit(x, y, options)?, [], [predict, predict_proba], score)
        }),
        subject("RadiusNeighborsRegressor", [true, false, false, true], |x, y, options| {
            let estimator = RadiusNeighborsRegressor::new().radius(2.5).weights(Weights::Distance);
            model!(estimator.fit(x, y, options)?, [], [predict], score)
        }),
    ]
}

/// Maps of features.
fn maps() -> Vec<Subject> {
    vec![
        subject("RobustScaler", [false, false, true, true], |x, _, options| {
            model!(RobustScaler::new().fit(x, options)?, [scale], [transform])
        }),
        subject("QuantileTransformer", [false, false, true, false], |x, _, options| {
            let model = QuantileTransformer::new().n_quantiles(10).fit(x, options)?;
            model!(model, [quantiles], [transform])
        }),
        subject("PowerTransformer", [false, false, true, false], |x, _, options| {
            model!(PowerTransformer::new().fit(x, options)?, [lambdas], [transform])
        }),
        subject("PolynomialFeatures", [false, false, false, false], |x, _, options| {
            model!(PolynomialFeatures::new().fit(x, options)?, [], [transform])
        }),
        subject("SimpleImputer", [false, false, true, false], |x, _, options| {
            model!(SimpleImputer::new().fit(x, options)?, [statistics], [transform])
        }),
        subject("MissingIndicator", [false, false, true, false], |x, _, options| {
            model!(MissingIndicator::new().fit(x, options)?, [], [transform])
        }),
        subject("VarianceThreshold", [false, false, true, false], |x, _, options| {
            model!(VarianceThreshold::new().fit(x, options)?, [variances], [transform])
        }),
        subject("SelectKBest", [true, false, false, false], |x, y, options| {
            model!(SelectKBest::new().k(2).fit(x, y, options)?, [scores, pvalues], [transform])
        }),
    ]
}

/// Categories, bins, and random maps.
fn encoders() -> Vec<Subject> {
    vec![
        subject("OneHotEncoder", [false, false, true, true], |x, _, options| {
            model!(OneHotEncoder::new().fit(x, options)?, [], [transform])
        }),
        subject("OrdinalEncoder", [false, false, true, true], |x, _, options| {
            model!(OrdinalEncoder::new().fit(x, options)?, [], [transform])
        }),
        subject("KBinsDiscretizer", [false, true, false, true], |x, _, options| {
            model!(KBinsDiscretizer::new().n_bins(3).fit(x, options)?, [], [transform])
        }),
        subject("SplineTransformer", [false, true, false, true], |x, _, options| {
            model!(SplineTransformer::new().fit(x, options)?, [], [transform])
        }),
        subject("TargetEncoder", [true, false, true, true], |x, y, options| {
            model!(TargetEncoder::new().fit(x, y, options)?, [target_mean], [transform])
        }),
        subject("GaussianRandomProjection", [false, false, false, false], |x, _, options| {
            model!(GaussianRandomProjection::new().n_components(2).fit(x, options)?, [], [transform])
        }),
        subject("RBFSampler", [false, false, false, false], |x, _, options| {
            model!(RBFSampler::new().n_components(5).fit(x, options)?, [], [transform])
        }),
        subject("AdditiveChi2Sampler", [false, false, false, false], |x, _, options| {
            model!(AdditiveChi2Sampler::new().fit(x, options)?, [], [transform])
        }),
        subject("PolynomialCountSketch", [false, false, false, false], |x, _, options| {
            model!(PolynomialCountSketch::new().n_components(5).fit(x, options)?, [], [transform])
        }),
        subject("Nystroem", [false, false, false, false], |x, _, options| {
            let model = Nystroem::new().gamma(0.05).n_components(4).fit(x, options)?;
            model!(model, [components, normalization], [transform])
        }),
    ]
}

/// Models of distributions.
fn distributions() -> Vec<Subject> {
    vec![
        subject("EmpiricalCovariance", [false, false, false, true], |x, _, options| {
            model!(EmpiricalCovariance::new().fit(x, options)?, [covariance, precision], [mahalanobis])
        }),
        subject("ShrunkCovariance", [false, false, false, true], |x, _, options| {
            model!(ShrunkCovariance::new().fit(x, options)?, [covariance, precision], [mahalanobis])
        }),
        subject("LedoitWolf", [false, false, false, true], |x, _, options| {
            model!(LedoitWolf::new().fit(x, options)?, [covariance, precision], [mahalanobis])
        }),
        subject("OAS", [false, false, false, true], |x, _, options| {
            model!(OAS::new().fit(x, options)?, [covariance, precision], [mahalanobis])
        }),
        subject("LinearDiscriminantAnalysis", [true, false, false, true], |x, y, options| {
            let model = LinearDiscriminantAnalysis::new().fit(x, y, options)?;
            model!(model, [coef, explained_variance_ratio], [predict, predict_proba], score)
        }),
        subject("QuadraticDiscriminantAnalysis", [true, false, false, true], |x, y, options| {
            let model = QuadraticDiscriminantAnalysis::new().fit(x, y, options)?;
            model!(model, [scalings, priors], [predict, predict_proba], score)
        }),
        subject("NearestCentroid", [true, false, false, true], |x, y, options| {
            let model = NearestCentroid::new().fit(x, y, options)?;
            model!(model, [within_class_std_dev, deviations], [predict, predict_proba], score)
        }),
        subject("DummyClassifier", [true, true, true, true], |x, y, options| {
            model!(DummyClassifier::new().fit(x, y, options)?, [class_prior], [predict, predict_proba], score)
        }),
        subject("DummyRegressor", [true, true, true, true], |x, y, options| {
            model!(DummyRegressor::new().fit(x, y, options)?, [constant], [predict], score)
        }),
        subject("FactorAnalysis", [false, false, false, true], |x, _, options| {
            let model = FactorAnalysis::new().n_components(1).fit(x, options)?;
            model!(model, [noise_variance], [transform])
        }),
        subject("GaussianMixture", [false, false, false, true], |x, _, options| {
            let model = GaussianMixture::new().n_components(3).tol(1e-9).fit(x, options)?;
            model!(model, [weights, covariances], [predict, score_samples])
        }),
        subject("IncrementalPCA", [false, false, false, true], |x, _, options| {
            model!(IncrementalPCA::new().n_components(2).fit(x, options)?, [components, var], [transform])
        }),
        subject("PoissonRegressor", [true, true, false, false], |x, y, options| {
            let estimator = PoissonRegressor::new().tol(1e-10).max_iter(2_000);
            model!(estimator.fit(x, y, options)?, [coef, intercept], [predict], score)
        }),
        subject("TweedieRegressor", [true, true, false, false], |x, y, options| {
            let estimator = TweedieRegressor::new().power(1.5).tol(1e-10).max_iter(2_000);
            model!(estimator.fit(x, y, options)?, [coef, intercept], [predict], score)
        }),
    ]
}

fn models() -> Vec<Subject> {
    vec![
        subject("RidgeClassifier", [true, true, false, true], |x, y, options| {
            model!(RidgeClassifier::new().fit(x, y, options)?, [coef], [predict, decision_function], score)
        }),
        subject("StandardScaler", [false, true, true, true], |x, _, options| {
            model!(StandardScaler::new().fit(x, options)?, [var, scale, n_samples_seen], [transform])
        }),
        subject("MinMaxScaler", [false, false, true, true], |x, _, options| {
            model!(MinMaxScaler::new().fit(x, options)?, [data_range, scale], [transform])
        }),
        subject("MaxAbsScaler", [false, false, true, false], |x, _, options| {
            model!(MaxAbsScaler::new().fit(x, options)?, [max_abs, scale], [transform])
        }),
        subject("LinearRegression", [true, true, false, true], |x, y, options| {
            model!(LinearRegression::new().fit(x, y, options)?, [coef, singular], [predict], score)
        }),
        subject("Ridge", [true, true, false, true], |x, y, options| {
            model!(Ridge::new().fit(x, y, options)?, [coef], [predict], score)
        }),
        subject("Lasso", [true, true, false, true], |x, y, options| {
            model!(Lasso::new().alpha(0.01).tol(1e-12).fit(x, y, options)?, [coef], [predict], score)
        }),
        subject("ElasticNet", [true, true, false, true], |x, y, options| {
            model!(ElasticNet::new().alpha(0.01).tol(1e-12).fit(x, y, options)?, [coef], [predict], score)
        }),
        subject("LogisticRegression", [true, true, false, false], |x, y, options| {
            let estimator = LogisticRegression::new().tol(1e-10).max_iter(2_000);
            model!(estimator.fit(x, y, options)?, [coef, intercept], [predict, predict_proba], score)
        }),
        subject("PCA", [false, false, false, true], |x, _, options| {
            model!(PCA::new().fit(x, options)?, [components, explained_variance], [transform])
        }),
        subject("TruncatedSVD", [false, false, false, false], |x, _, options| {
            model!(TruncatedSVD::new().fit(x, options)?, [components, explained_variance], [transform])
        }),
        subject("KMeans", [false, true, false, true], |x, _, options| {
            let mut estimator = KMeans::new().n_clusters(3).tol(0.0);
            if x.shape()?[0] != 0 {
                // From the least number of each feature on; samples that are not finite are for the fit.
                let low = x.astype(DType::F64).min(0);
                let low = where_(&low.isfinite(), &low, 0.0);
                let init = concatenate(&[&low, &(&low + 6.0), &(&low + 12.0)], 0).reshape(&[3, -1]);
                estimator = estimator.init(&init);
            }
            model!(estimator.fit(x, options)?, [cluster_centers], [predict, transform])
        }),
        subject("GaussianNB", [true, true, false, true], |x, y, options| {
            let estimator = GaussianNB::new().var_smoothing(0.0);
            model!(estimator.fit(x, y, options)?, [class_prior, var], [predict, predict_proba], score)
        }),
        subject("MultinomialNB", [true, true, false, false], |x, y, options| {
            model!(
                MultinomialNB::new().fit(x, y, options)?,
                [class_log_prior, feature_log_prob],
                [predict, predict_proba],
                score
            )
        }),
        subject("BernoulliNB", [true, true, false, false], |x, y, options| {
            model!(
                BernoulliNB::new().binarize(6.0).fit(x, y, options)?,
                [class_log_prior, feature_log_prob],
                [predict, predict_proba],
                score
            )
        }),
        subject("ComplementNB", [true, true, false, false], |x, y, options| {
            let model = ComplementNB::new().fit(x, y, options)?;
            model!(model, [class_log_prior, feature_log_prob], [predict, predict_proba], score)
        }),
        subject("DecisionTreeRegressor", [true, true, true, true], |x, y, options| {
            let model = DecisionTreeRegressor::new().max_depth(4).fit(x, y, options)?;
            model!(model, [feature_importances], [predict], score)
        }),
        subject("DecisionTreeClassifier", [true, true, true, true], |x, y, options| {
            let model = DecisionTreeClassifier::new().max_depth(4).fit(x, y, options)?;
            model!(model, [feature_importances], [predict, predict_proba], score)
        }),
        subject("HistGradientBoostingRegressor", [true, true, true, true], |x, y, options| {
            let estimator = HistGradientBoostingRegressor::new().max_iter(5).min_samples_leaf(1);
            model!(estimator.fit(x, y, options)?, [train_score], [predict], score)
        }),
        subject("HistGradientBoostingClassifier", [true, true, true, true], |x, y, options| {
            let estimator = HistGradientBoostingClassifier::new().max_iter(5).min_samples_leaf(1);
            model!(estimator.fit(x, y, options)?, [train_score], [predict, predict_proba], score)
        }),
        subject("Pipeline", [true, false, false, true], |x, y, options| {
            let scaler = Pipeline::new().step("scale", StandardScaler::new());
            let fitted = scaler.last("ridge", Ridge::new()).fit(x, y, options)?;
            let state = flat(&[fitted.last().coef.clone()]);
            let kept = Arc::new(fitted);
            let own = kept.clone();
            let score: Score = Box::new(move |x, y| kept.score(x, y, ..));
            Ok(Model { state, outputs: Box::new(move |x| vec![own.predict(x)]), score: Some(score) })
        }),
    ]
}

/// Whole numbers from 0 to 16, which all dtypes hold, in three groups, and the group of each.
fn samples() -> (Tensor, Tensor) {
    let generator = default_rng(11);
    let group = generator.integers(0, 3, &[ROWS]);
    let x = generator.integers(0, 6, &[ROWS, COLUMNS]) + group.expand_dims(1) * 5;
    (x.astype(DType::F64).execute().unwrap(), group.execute().unwrap())
}

/// The error of a fit.
fn refusal(made: Result<Model>, name: &str) -> Error {
    made.err().unwrap_or_else(|| panic!("{name}: it is not refused"))
}

/// Tolerance of a model: a search ends where its function is flat.
fn tolerance(name: &str, exact: f64) -> f64 {
    let is_searched = [
        "HuberRegressor",
        "LinearSVC",
        "LinearSVR",
        "LogisticRegression",
        "PoissonRegressor",
        "PowerTransformer",
        "TweedieRegressor",
    ]
    .contains(&name);
    if is_searched { 1e-5 } else { exact }
}

fn assert_near(name: &str, a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len(), "{name}");
    for (at, (a, b)) in a.iter().zip(b).enumerate() {
        let near = (a - b).abs() <= tolerance * (1.0 + a.abs());
        assert!(near || a.is_nan() && b.is_nan(), "{name}: [{at}] {b}, not {a}");
    }
}

fn assert_same(name: &str, a: &Model, b: &Model, x: &Tensor, tolerance: f64) {
    assert_near(name, &a.state, &b.state, tolerance);
    for (a, b) in (a.outputs)(x).iter().zip((b.outputs)(x)) {
        let numbers = |x: &Tensor| x.astype(DType::F64).to_vec::<f64>().unwrap();
        assert_near(name, &numbers(a), &numbers(&b), tolerance);
    }
}

fn weighted(weights: &Tensor) -> FitOptions {
    FitOptions::new().sample_weight(weights)
}

fn on(threads: usize) -> FitOptions {
    FitOptions::new().executor(Arc::new(LocalExecutor::sized(threads, 1 << 28)))
}

#[test]
fn another_number_of_features_is_refused() {
    let (x, y) = samples();
    for Subject { name, fit, .. } in subjects() {
        // As in scikit-learn, those do not read the features.
        if name.starts_with("Dummy") {
            continue;
        }
        let model = fit(&x, &y, &(..).into()).unwrap();
        for output in (model.outputs)(&ones(&[2, COLUMNS + 1])) {
            let error = output.execute().unwrap_err();
            assert!(error.to_string().starts_with("X has 4 features, but "), "{name}: {error}");
        }
    }
}

#[test]
fn nan_and_infinity_are_refused_in_samples_and_targets() {
    let (x, y) = samples();
    let at_end = |bad: f64, width: usize| {
        let row = Tensor::from_elements(&[1, width], &vec![bad; width]);
        let target = array([bad]);
        let (x, y) = (concatenate(&[&x, &row], 0), concatenate(&[&y.astype(DType::F64), &target], 0));
        (x, y)
    };
    let one = array([1i64]);
    for Subject { name, fit, is_supervised, takes_nan, .. } in subjects() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let (wrong, wrong_y) = at_end(bad, COLUMNS);
            let made = fit(&wrong, &concatenate(&[&y, &one], 0), &(..).into());
            // Bins of boosted trees have infinite ends, as in scikit-learn, and dummies read no samples.
            let takes_all = name.starts_with("HistGradient") || name.starts_with("Dummy");
            if takes_nan && (bad.is_nan() || takes_all) {
                assert!(made.is_ok(), "{name}, {bad}");
            } else {
                let error = refusal(made, name);
                assert!(error.to_string().starts_with("Input X contains "), "{name}, {bad}: {error}");
            }
            if !is_supervised {
                continue;
            }
            let whole = concatenate(&[&x, &ones(&[1, COLUMNS])], 0);
            let error = refusal(fit(&whole, &wrong_y, &(..).into()), name);
            assert!(error.to_string().starts_with("Input y contains "), "{name}, {bad}: {error}");
            if let Some(score) = fit(&x, &y, &(..).into()).unwrap().score {
                let error = score(&whole, &wrong_y).unwrap_err();
                assert!(error.to_string().starts_with("Input y contains "), "{name}, {bad}: {error}");
            }
        }
    }
}

#[test]
fn nothing_is_refused() {
    for Subject { name, fit, .. } in subjects() {
        let error = refusal(fit(&zeros(&[0, COLUMNS]), &zeros(&[0]), &(..).into()), name);
        assert!(error.to_string().starts_with("Found array with 0 sample(s)"), "{name}: {error}");
        let error = refusal(fit(&zeros(&[4, 0]), &zeros(&[4]), &(..).into()), name);
        assert!(error.to_string().starts_with("Found array with 0 feature(s)"), "{name}: {error}");
    }
}

#[test]
fn chunks_change_roundings_alone() {
    let (x, y) = samples();
    let mut cuts: Vec<Tensor> = [vec![1; ROWS], vec![1, 50, 2, 37]]
        .into_iter()
        .map(|rows| x.rechunk(Chunks::Lengths(vec![rows, vec![2, 1]])).execute().unwrap())
        .collect();
    // Some chunks without rows, known and not.
    let none = zeros(&[60, COLUMNS]) - 1.0;
    let all = concatenate(&[&none, &x.get(&[(..40).into()]), &none, &x.get(&[(40..).into()]), &none], 0);
    let all = all.rechunk(Chunks::PerAxis(vec![20, COLUMNS])).execute().unwrap();
    let left = all.filter(&all.greater_equal(0.0).all(1));
    cuts.extend([left.compute_chunk_sizes().unwrap(), left]);
    for Subject { name, fit, .. } in subjects() {
        let whole = fit(&x, &y, &(..).into()).unwrap();
        for cut in &cuts {
            let made = fit(cut, &y, &(..).into()).unwrap();
            assert_same(name, &whole, &made, &x, tolerance(name, 1e-9));
        }
    }
}

#[test]
fn samples_without_weight_do_not_count() {
    let (x, y) = samples();
    // Before all others, and far from them.
    let far = ones(&[300, COLUMNS]) * 1e6;
    let all = concatenate(&[&far, &x], 0).execute().unwrap();
    let all_y = concatenate(&[&(arange(300) % 3), &y], 0).execute().unwrap();
    let weights = concatenate(&[&zeros(&[300]), &ones(&[ROWS])], 0).execute().unwrap();
    for Subject { name, fit, has_weights, .. } in subjects() {
        if !has_weights {
            continue;
        }
        let (few, many) =
            (fit(&x, &y, &(..).into()).unwrap(), fit(&all, &all_y, &weighted(&weights)).unwrap());
        assert_same(name, &few, &many, &x, tolerance(name, 1e-8));
        let error = refusal(fit(&x, &y, &weighted(&zeros(&[ROWS]))), name);
        assert_eq!(error.class(), "ValueError", "{name}: {error}");
    }
}

#[test]
fn a_weight_of_two_is_a_sample_twice() {
    let (x, y) = samples();
    let part = |x: &Tensor| x.get(&[(..30).into()]);
    let (twice, twice_y) = (concatenate(&[&x, &part(&x)], 0), concatenate(&[&y, &part(&y)], 0));
    let weights = concatenate(&[&(ones(&[30]) * 2.0), &ones(&[ROWS - 30])], 0);
    for Subject { name, fit, has_weights, .. } in subjects() {
        if has_weights {
            let heavy = fit(&x, &y, &weighted(&weights)).unwrap();
            let many = fit(&twice, &twice_y, &(..).into()).unwrap();
            assert_same(name, &many, &heavy, &x, tolerance(name, 1e-9));
        } else if name != "Pipeline" {
            // Those of a pipeline are weights of its last estimator alone.
            let error = refusal(fit(&x, &y, &weighted(&weights)), name);
            assert!(error.to_string().contains("unexpected keyword argument 'sample_weight'"), "{error}");
        }
    }
}

#[test]
fn dtypes_are_computed_in_float64() {
    let (x, y) = samples();
    for Subject { name, fit, .. } in subjects() {
        let wide = fit(&x, &y, &(..).into()).unwrap();
        for dtype in [DType::F32, DType::I64, DType::U8] {
            let made = fit(&x.astype(dtype), &y, &(..).into()).unwrap();
            // Scalers hand on float32, as in scikit-learn.
            let is_rounded = name == "Pipeline" && dtype == DType::F32;
            assert_near(name, &wide.state, &made.state, if is_rounded { 1e-6 } else { 0.0 });
        }
        // Booleans: columns that are not constant in any class.
        let truths = (&x % 2.0).not_equal(0.0);
        let (of_truths, of_floats) =
            (fit(&truths, &y, &(..).into()), fit(&truths.astype(DType::F64), &y, &(..).into()));
        assert_eq!(of_truths.unwrap().state, of_floats.unwrap().state, "{name} of bool");
    }
}

#[test]
fn columns_far_from_zero_lose_no_digits() {
    let (x, y) = samples();
    let far = (&x + 1e8).execute().unwrap();
    for Subject { name, fit, is_shiftable, .. } in subjects() {
        let made = fit(&far, &y, &(..).into());
        if !is_shiftable {
            assert!(made.is_ok(), "{name}");
            continue;
        }
        let (near, made) = (fit(&x, &y, &(..).into()).unwrap(), made.unwrap());
        for (a, b) in (near.outputs)(&x).iter().zip((made.outputs)(&far)) {
            let numbers = |x: &Tensor| x.astype(DType::F64).to_vec::<f64>().unwrap();
            // A mean at 1e8 has 8 digits behind the point.
            assert_near(name, &numbers(a), &numbers(&b), 1e-6);
        }
    }
}

#[test]
fn sums_beyond_float64_are_refused() {
    let (x, y) = samples();
    for Subject { name, fit, .. } in subjects() {
        for scale in [1e155, 1e306] {
            match fit(&(&x * scale), &y, &(..).into()) {
                Ok(model) => {
                    assert!(model.state.iter().all(|number| number.is_finite()), "{name} at {scale}");
                }
                Err(error) => assert_eq!(error.class(), "OverflowError", "{name} at {scale}: {error}"),
            }
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let (x, y) = samples();
    let x = x.rechunk(Chunks::PerAxis(vec![7, COLUMNS])).execute().unwrap();
    for Subject { name, fit, .. } in subjects() {
        let bits = |threads: usize| -> Vec<u64> {
            let model = fit(&x, &y, &on(threads)).unwrap();
            model.state.iter().map(|number| number.to_bits()).collect()
        };
        assert_eq!(bits(1), bits(4), "{name}");
    }
}

#[test]
fn a_target_may_be_a_column() {
    let (x, y) = samples();
    for Subject { name, fit, is_supervised, .. } in subjects() {
        if !is_supervised {
            continue;
        }
        let Some(score) = fit(&x, &y, &(..).into()).unwrap().score else { continue };
        assert_eq!(score(&x, &y).unwrap(), score(&x, &y.expand_dims(1)).unwrap(), "{name}");
    }
}
