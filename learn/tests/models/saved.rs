//! Models as files: what is read is the model that was written, to the bit; other bytes are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tharsis_learn::base::{Estimator, Predict, Task};
use tharsis_learn::calibration::*;
use tharsis_learn::cluster::*;
use tharsis_learn::compose::*;
use tharsis_learn::covariance::*;
use tharsis_learn::decomposition::*;
use tharsis_learn::discriminant_analysis::*;
use tharsis_learn::dummy::*;
use tharsis_learn::ensemble::*;
use tharsis_learn::feature_selection::*;
use tharsis_learn::impute::*;
use tharsis_learn::isotonic::*;
use tharsis_learn::kernel_approximation::*;
use tharsis_learn::linear_model::*;
use tharsis_learn::mixture::*;
use tharsis_learn::model_selection::{GridSearchCV, HalvingGridSearchCV, ParamGrid, Validation};
use tharsis_learn::multiclass::*;
use tharsis_learn::multioutput::*;
use tharsis_learn::naive_bayes::*;
use tharsis_learn::neighbors::*;
use tharsis_learn::pipeline::{FeatureUnion, FittedPipeline, Pipeline};
use tharsis_learn::preprocessing::*;
use tharsis_learn::random_projection::*;
use tharsis_learn::svm::*;
use tharsis_learn::tree::*;
use tharsis_learn::{AnyClassifier, Classifies, FitOptions, FittedAny, Params, Result, Save, Setting};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Tensor, arange};

fn samples() -> [Tensor; 3] {
    let generator = default_rng(11);
    let labels = arange(80) % 3;
    let x = generator.normal(0.0, 1.0, &[80, 4]).abs() + labels.expand_dims(1);
    let y = x.sum(1) + generator.normal(0.0, 0.1, &[80]);
    [x, labels, y].map(|tensor| tensor.execute().unwrap())
}

fn bits(tensor: &Tensor) -> Vec<u64> {
    let numbers = tensor.astype(DType::F64).ravel().to_vec::<f64>().unwrap();
    numbers.into_iter().map(f64::to_bits).collect()
}

/// The model that is read from the bytes of a model, whose text and outputs must be the same.
fn checked<M: Save + std::fmt::Debug>(model: &M, outputs: impl Fn(&M) -> Vec<Tensor>) {
    let bytes = model.to_bytes().unwrap();
    let read = M::from_bytes(&bytes).unwrap();
    for (own, other) in outputs(model).iter().zip(&outputs(&read)) {
        assert_eq!(bits(own), bits(other), "{}", M::KIND);
    }
    assert_eq!(read.to_bytes().unwrap(), bytes, "{}", M::KIND);
    // No part of a file is a file, and no changed byte goes unseen.
    let step = 1 + bytes.len() / 50;
    for at in (0..bytes.len()).step_by(step) {
        assert!(M::from_bytes(&bytes[..at]).is_err(), "{}", M::KIND);
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        assert!(M::from_bytes(&changed).is_err(), "{}", M::KIND);
    }
    // Bodies that somebody has made: a result or none, but no panic, also where the model is used.
    let body = model.body().unwrap();
    for at in (0..body.len()).step_by(1 + body.len() / 60) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = body.clone();
            changed[at] = value;
            if let Some(made) = M::of_body(&changed) {
                for output in outputs(&made) {
                    let _ = output.astype(DType::F64).ravel().to_vec::<f64>();
                }
            }
        }
    }
}

/// A search through two values of a parameter.
fn search<E>(estimator: E, param: &str, values: [impl Into<Setting>; 2]) -> GridSearchCV<E> {
    let validation = Validation { cv: 2.into(), ..Validation::default() };
    GridSearchCV::new(estimator, ParamGrid::new().values(param, values)).validation(validation)
}

/// A line of one feature, here the first one.
#[derive(Debug)]
struct OfTarget(FittedIsotonicRegression);

impl OfTarget {
    fn predict(&self, x: &Tensor) -> Tensor {
        self.0.predict(&x.get(&[(..).into(), 0.into()]))
    }
}

impl Save for OfTarget {
    const KIND: &'static str = FittedIsotonicRegression::KIND;

    fn body(&self) -> Result<Vec<u8>> {
        self.0.body()
    }

    fn of_body(body: &[u8]) -> Option<OfTarget> {
        FittedIsotonicRegression::of_body(body).map(OfTarget)
    }
}

macro_rules! round_trips {
    ($($name:ident: $fit:expr, [$($method:ident),+];)+) => {
        $(#[test]
        fn $name() {
            let [x, labels, y] = samples();
            let fit: fn(&Tensor, &Tensor, &Tensor) -> Result<_> = $fit;
            let model = fit(&x, &labels, &y).unwrap();
            check_layout(stringify!($name), &model);
            checked(&model, |model| vec![$(model.$method(&x)),+]);
        })+

        const NAMES: &[&str] = &[$(stringify!($name)),+];

        /// The version of the format and the layout of each model.
        fn layouts() -> Vec<(u32, String)> {
            let [x, labels, y] = samples();
            let mut all = Vec::new();
            $({
                let fit: fn(&Tensor, &Tensor, &Tensor) -> Result<_> = $fit;
                let model = fit(&x, &labels, &y).unwrap();
                all.push((version_of(&model), model.layout().unwrap()));
            })+
            all
        }
    };
}

/// The file of layouts: the version of the format, and a line for each model.
fn layouts_file() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    PathBuf::from(folder).join("tests/models/layouts.txt")
}

/// The version and the lines of a file of layouts.
fn recorded_layouts() -> (u32, BTreeMap<String, String>) {
    let text = std::fs::read_to_string(layouts_file()).unwrap_or_else(|_| "version 0\n".to_owned());
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| line.strip_prefix("version ")?.parse().ok());
    let models = lines.map(|line| line.split_once(": ").unwrap());
    (version.unwrap(), models.map(|(name, layout)| (name.to_owned(), layout.to_owned())).collect())
}

/// The version of the format, behind the mark of eight bytes.
fn version_of<M: Save>(model: &M) -> u32 {
    u32::from_le_bytes(model.to_bytes().unwrap()[8..12].try_into().unwrap())
}

/// Checks that a file of a model is laid out as the recorded one.
fn check_layout<M: Save>(name: &str, model: &M) {
    if std::env::var_os(UPDATE).is_some() {
        return;
    }
    let (version, recorded) = recorded_layouts();
    let own = model.layout().unwrap();
    let Some(layout) = recorded.get(name) else {
        panic!("{name} has no recorded layout: {UPDATE}=1 writes it")
    };
    let what_to_do = if version == version_of(model) {
        "files of this version were laid out in another way: raise VERSION in src/saved.rs, then"
    } else {
        "the version is another one as well:"
    };
    assert_eq!(own, *layout, "{name}: {what_to_do} {UPDATE}=1 records the layouts");
}

/// The variable of the environment that has the layouts recorded.
const UPDATE: &str = "UPDATE_LAYOUTS";

#[test]
fn layouts_of_files_are_those_of_their_version() {
    let (version, recorded) = recorded_layouts();
    if std::env::var_os(UPDATE).is_none() {
        assert!(recorded.keys().eq(NAMES.iter().collect::<BTreeSet<_>>()), "{UPDATE}=1 records the layouts");
        return;
    }
    let all = layouts();
    let own = all[0].0;
    let mut text = format!("version {own}\n");
    for (name, (_, layout)) in NAMES.iter().zip(&all).collect::<BTreeMap<_, _>>() {
        let is_as_before = recorded.get(*name).is_none_or(|before| before == layout);
        assert!(
            is_as_before || version != own,
            "the layout of {name} has changed: raise VERSION in src/saved.rs"
        );
        text += &format!("{name}: {layout}\n");
    }
    std::fs::write(layouts_file(), text).unwrap();
}

round_trips! {
    linear_regression: |x, _, y| LinearRegression::new().fit(x, y, ..), [predict];
    ridge: |x, _, y| Ridge::new().fit(x, y, ..), [predict];
    lasso: |x, _, y| Lasso::new().alpha(0.1).fit(x, y, ..), [predict];
    elastic_net: |x, _, y| ElasticNet::new().alpha(0.1).fit(x, y, ..), [predict];
    logistic_regression: |x, labels, _| LogisticRegression::new().fit(x, labels, ..), [predict, predict_proba];
    logistic_regression_cv: |x, labels, _| LogisticRegressionCV::new().cs([0.1, 1.0]).cv(2).fit(x, labels, ..),
        [predict, predict_proba];
    gaussian_nb: |x, labels, _| GaussianNB::new().fit(x, labels, ..), [predict, predict_log_proba];
    multinomial_nb: |x, labels, _| MultinomialNB::new().fit(x, labels, ..), [predict, predict_log_proba];
    bernoulli_nb: |x, labels, _| BernoulliNB::new().binarize(1.0).fit(x, labels, ..), [predict, predict_log_proba];
    complement_nb: |x, labels, _| ComplementNB::new().norm(true).fit(x, labels, ..), [predict, predict_log_proba];
    categorical_nb: |x, labels, _| CategoricalNB::new().fit(x, labels, ..), [predict, predict_log_proba];
    tree_classifier: |x, labels, _| DecisionTreeClassifier::new().fit(x, labels, ..), [predict, predict_proba];
    tree_regressor: |x, _, y| DecisionTreeRegressor::new().fit(x, y, ..), [predict];
    forest_classifier: |x, labels, _| RandomForestClassifier::new().n_estimators(3).fit(x, labels, ..), [predict_proba];
    forest_regressor: |x, _, y| RandomForestRegressor::new().n_estimators(3).fit(x, y, ..), [predict];
    extra_classifier: |x, labels, _| ExtraTreesClassifier::new().n_estimators(3).fit(x, labels, ..), [predict_proba];
    extra_regressor: |x, _, y| ExtraTreesRegressor::new().n_estimators(3).fit(x, y, ..), [predict];
    boosting_classifier: |x, labels, _| HistGradientBoostingClassifier::new().max_iter(3).fit(x, labels, ..),
        [predict, predict_proba];
    boosting_regressor: |x, _, y| HistGradientBoostingRegressor::new().loss(RegressionLoss::Poisson).max_iter(3).fit(x, y, ..),
        [predict];
    isolation_forest: |x, _, _| IsolationForest::new().n_estimators(3).fit(x, ..), [predict, score_samples];
    k_means: |x, _, _| KMeans::new().n_clusters(3).fit(x, ..), [predict, transform];
    mini_batch_k_means: |x, _, _| MiniBatchKMeans::new().n_clusters(3).fit(x, ..), [predict, transform];
    bisecting_k_means: |x, _, _| BisectingKMeans::new().n_clusters(4).fit(x, ..), [predict, transform];
    isotonic: |_, labels, y| IsotonicRegression::new().fit(y, labels, ..).map(OfTarget), [predict];
    voting_classifier: |x, labels, _| {
        let voting = VotingClassifier::new().estimator("tree", DecisionTreeClassifier::new().max_depth(2));
        let line = Pipeline::new().step("scale", StandardScaler::new()).last("line", LogisticRegression::new());
        voting.estimator("line", line).voting(Voting::Soft).fit(x, labels, ..)
    }, [predict, transform];
    voting_regressor: |x, _, y| {
        let voting = VotingRegressor::new().estimator("near", KNeighborsRegressor::new());
        voting.estimator("line", Ridge::new()).fit(x, y, ..)
    }, [predict, transform];
    voting_of_searches: |x, labels, _| {
        let tree = search(DecisionTreeClassifier::new(), "max_depth", [1i64, 2]);
        let line = RFE::new(LogisticRegression::new());
        let scaled = Pipeline::new().step("scale", StandardScaler::new()).last("line", line.clone());
        let voting = VotingClassifier::new().estimator("tree", tree).estimator("line", line);
        voting.estimator("scaled", scaled).voting(Voting::Soft).fit(x, labels, ..)
    }, [predict, transform];
    bagging_of_searches: |x, _, y| {
        let line = search(RFE::new(Ridge::new()), "estimator__alpha", [0.5, 2.0]);
        BaggingRegressor::new().estimator(line).n_estimators(2).fit(x, y, ..)
    }, [predict];
    halving: |x, labels, _| {
        let grid = ParamGrid::new().values("max_depth", [1i64, 2]);
        HalvingGridSearchCV::new(DecisionTreeClassifier::new(), grid).factor(2.0).fit(x, labels, ..)
    }, [predict];
    chosen_features: |x, labels, _| SelectFromModel::new(LogisticRegression::new()).fit(x, labels, ..), [transform];
    stacking_classifier: |x, labels, _| StackingClassifier::new().estimator("bayes", GaussianNB::new()).fit(x, labels, ..),
        [predict, transform];
    stacking_regressor: |x, _, y| StackingRegressor::new().estimator("line", Ridge::new()).fit(x, y, ..), [predict, transform];
    bagging_classifier: |x, labels, _| BaggingClassifier::new().n_estimators(2).fit(x, labels, ..), [predict, predict_proba];
    bagging_regressor: |x, _, y| BaggingRegressor::new().n_estimators(2).fit(x, y, ..), [predict];
    ada_boost_classifier: |x, labels, _| AdaBoostClassifier::new().n_estimators(3).fit(x, labels, ..),
        [predict, decision_function];
    ada_boost_regressor: |x, _, y| AdaBoostRegressor::new().n_estimators(3).fit(x, y, ..), [predict];
    one_vs_rest: |x, labels, _| OneVsRestClassifier::new(GaussianNB::new()).fit(x, labels, ..), [predict];
    one_vs_one: |x, labels, _| OneVsOneClassifier::new(GaussianNB::new()).fit(x, labels, ..), [predict, decision_function];
    multi_output_regressor: |x, _, y| {
        MultiOutputRegressor::new(Ridge::new()).fit(x, &tharsis_numeric::stack(&[y, y], 1), ..)
    }, [predict];
    multi_output_classifier: |x, labels, _| {
        MultiOutputClassifier::new(GaussianNB::new()).fit(x, &tharsis_numeric::stack(&[labels, labels], 1), ..)
    }, [predict];
    mapped_targets: |x, _, y| TransformedTargetRegressor::new().transformer(StandardScaler::new()).fit(x, y, ..), [predict];
    calibrated: |x, labels, _| CalibratedClassifierCV::new().cv(2).fit(x, labels, ..), [predict, predict_proba];
    calibrated_lines: |x, labels, _| {
        CalibratedClassifierCV::new().method(CalibrationMethod::Isotonic).ensemble(false).cv(2).fit(x, labels, ..)
    }, [predict, predict_proba];
    pca: |x, _, _| PCA::new().n_components(2).whiten(true).fit(x, ..), [transform];
    truncated_svd: |x, _, _| TruncatedSVD::new().fit(x, ..), [transform];
    standard_scaler: |x, _, _| StandardScaler::new().fit(x, ..), [transform, inverse_transform];
    min_max_scaler: |x, _, _| MinMaxScaler::new().clip(true).fit(x, ..), [transform, inverse_transform];
    max_abs_scaler: |x, _, _| MaxAbsScaler::new().fit(x, ..), [transform, inverse_transform];
    robust_scaler: |x, _, _| RobustScaler::new().fit(x, ..), [transform, inverse_transform];
    quantile_transformer: |x, _, _| QuantileTransformer::new().n_quantiles(9).fit(x, ..), [transform, inverse_transform];
    power_transformer: |x, _, _| PowerTransformer::new().fit(x, ..), [transform, inverse_transform];
    polynomial_features: |x, _, _| PolynomialFeatures::new().fit(x, ..), [transform];
    simple_imputer: |x, _, _| SimpleImputer::new().missing_values(0.5).add_indicator(true).fit(x, ..), [transform];
    missing_indicator: |x, _, _| MissingIndicator::new().features(IndicatedFeatures::All).fit(x, ..), [transform];
    variance_threshold: |x, _, _| VarianceThreshold::new().fit(x, ..), [transform];
    select: |x, labels, _| SelectKBest::new().k(2).fit(x, labels, ..), [transform];
    ridge_cv: |x, _, y| RidgeCV::new().fit(x, y, ..), [predict];
    ridge_classifier_cv: |x, labels, _| RidgeClassifierCV::new().fit(x, labels, ..), [predict, decision_function];
    lasso_cv: |x, _, y| LassoCV::new().alphas(5).fit(x, y, ..), [predict];
    elastic_net_cv: |x, _, y| ElasticNetCV::new().l1_ratio([0.5, 0.9]).alphas(5).fit(x, y, ..), [predict];
    bayesian_ridge: |x, _, y| BayesianRidge::new().fit(x, y, ..), [predict, predict_std];
    ard_regression: |x, _, y| ARDRegression::new().fit(x, y, ..), [predict, predict_std];
    lars: |x, _, y| Lars::new().fit(x, y, ..), [predict];
    lasso_lars_ic: |x, _, y| LassoLarsIC::new().fit(x, y, ..), [predict];
    sgd_classifier: |x, labels, _| SGDClassifier::new().loss(StochasticLoss::LogLoss).max_iter(5).fit(x, labels, ..),
        [predict, predict_proba];
    sgd_regressor: |x, _, y| SGDRegressor::new().max_iter(5).fit(x, y, ..), [predict];
    lasso_lars_cv: |x, _, y| LassoLarsCV::new().fit(x, y, ..), [predict];
    pursuit_cv: |x, _, y| OrthogonalMatchingPursuitCV::new().fit(x, y, ..), [predict];
    huber_regressor: |x, _, y| HuberRegressor::new().fit(x, y, ..), [predict];
    linear_svc: |x, labels, _| LinearSVC::new().fit(x, labels, ..), [predict, decision_function];
    linear_svr: |x, _, y| LinearSVR::new().loss(TubeLoss::SquaredEpsilonInsensitive).fit(x, y, ..), [predict];
    matching_pursuit: |x, _, y| OrthogonalMatchingPursuit::new().fit(x, y, ..), [predict];
    covariance: |x, _, _| LedoitWolf::new().fit(x, ..), [mahalanobis];
    linear_discriminants: |x, labels, _| LinearDiscriminantAnalysis::new().fit(x, labels, ..),
        [predict, predict_log_proba, transform];
    quadratic_discriminants: |x, labels, _| QuadraticDiscriminantAnalysis::new().fit(x, labels, ..),
        [predict, predict_log_proba];
    ridge_classifier: |x, labels, _| RidgeClassifier::new().fit(x, labels, ..), [predict, decision_function];
    tweedie_regressor: |x, _, y| TweedieRegressor::new().power(1.5).fit(x, y, ..), [predict];
    dummy_classifier: |x, labels, _| DummyClassifier::new().strategy(ClassStrategy::Stratified).fit(x, labels, ..),
        [predict, predict_log_proba];
    dummy_regressor: |x, _, y| DummyRegressor::new().fit(x, y, ..), [predict];
    nearest_centroid: |x, labels, _| NearestCentroid::new().priors(CentroidPriors::Empirical).fit(x, labels, ..),
        [predict, decision_function, predict_log_proba];
    one_hot_encoder: |x, _, _| {
        let encoder = OneHotEncoder::new().drop(DropCategories::First).handle_unknown(HandleUnknown::Ignore);
        encoder.min_frequency(7usize).fit(&x.round(0), ..)
    }, [transform];
    ordinal_encoder: |x, _, _| OrdinalEncoder::new().fit(x, ..), [transform, inverse_transform];
    k_bins_discretizer: |x, _, _| KBinsDiscretizer::new().encode(BinEncoding::Ordinal).fit(x, ..), [transform];
    kernel_centerer: |x, _, _| KernelCenterer::new().fit(&x.get(&[(..4i64).into()]), ..), [transform];
    target_encoder: |x, labels, _| TargetEncoder::new().fit(&x.round(0), labels, ..), [transform];
    spline_transformer: |x, _, _| SplineTransformer::new().extrapolation(Extrapolation::Periodic).fit(x, ..), [transform];
    random_projection: |x, _, _| SparseRandomProjection::new().n_components(3).fit(x, ..), [transform];
    rbf_sampler: |x, _, _| RBFSampler::new().gamma(Gamma::Scale).n_components(3).fit(x, ..), [transform];
    skewed_chi2_sampler: |x, _, _| SkewedChi2Sampler::new().n_components(3).fit(x, ..), [transform];
    additive_chi2_sampler: |x, _, _| AdditiveChi2Sampler::new().fit(x, ..), [transform];
    polynomial_count_sketch: |x, _, _| PolynomialCountSketch::new().coef0(1.0).n_components(3).fit(x, ..), [transform];
    nystroem: |x, _, _| Nystroem::new().kernel(Kernel::Poly).n_components(3).fit(x, ..), [transform];
    factor_analysis: |x, _, _| FactorAnalysis::new().n_components(2).fit(x, ..), [transform];
    nmf: |x, _, _| NMF::new().n_components(2).fit(x, ..), [transform];
    fast_ica: |x, _, _| FastICA::new().n_components(2).max_iter(5).fit(x, ..), [transform];
    full_mixture: |x, _, _| GaussianMixture::new().n_components(2).fit(x, ..), [predict_proba, score_samples];
    tied_mixture: |x, _, _| {
        GaussianMixture::new().n_components(2).covariance_type(CovarianceType::Tied).fit(x, ..)
    }, [score_samples];
    spherical_mixture: |x, _, _| {
        GaussianMixture::new().n_components(2).covariance_type(CovarianceType::Spherical).fit(x, ..)
    }, [score_samples];
    incremental_pca: |x, _, _| IncrementalPCA::new().n_components(2).whiten(true).fit(x, ..), [transform];
    knn_imputer: |x, _, _| KNNImputer::new().missing_values(0.5).add_indicator(true).fit(x, ..), [transform];
    k_neighbors_classifier: |x, labels, _| KNeighborsClassifier::new().p(3.0).fit(x, labels, ..), [predict_proba];
    k_neighbors_regressor: |x, _, y| KNeighborsRegressor::new().weights(Weights::Distance).fit(x, y, ..), [predict];
    local_outlier_factor: |x, _, _| LocalOutlierFactor::new().novelty(true).fit(x, ..), [score_samples];
    radius_classifier: |x, labels, _| RadiusNeighborsClassifier::new().radius(9.0).fit(x, labels, ..), [predict_proba];
    radius_regressor: |x, _, y| RadiusNeighborsRegressor::new().fit(x, y, ..), [predict];
    sequential_selector: |x, _, y| SequentialFeatureSelector::new(Ridge::new()).fit(x, y, ..), [transform];
    column_transformer: |x, labels, _| {
        let inner = FeatureUnion::new().part("scale", StandardScaler::new()).passthrough("same").weight("same", 2.0);
        let outer = ColumnTransformer::new().part("code", TargetEncoder::new(), [1]).part("both", inner, [0, 2]);
        outer.remainder(Remainder::passthrough()).fit_any(&x.round(0), Some(labels), &(..).into())
    }, [transform];
    normalizer: |_, _, _| Ok(Normalizer::new().norm(Norm::Max)), [transform];
    binarizer: |_, _, _| Ok(Binarizer::new().threshold(1.25)), [transform];
}

/// A model of a type that no file of an ensemble is read with.
#[derive(Clone, Debug)]
struct Own(FittedGaussianNB);

impl Predict for Own {
    const TASK: Task = Task::Classification;

    fn name(&self) -> &'static str {
        "Own"
    }

    fn predict(&self, x: &Tensor) -> Tensor {
        self.0.predict(x)
    }
}

impl Save for Own {
    const KIND: &'static str = "Own";

    fn body(&self) -> Result<Vec<u8>> {
        self.0.body()
    }

    fn of_body(body: &[u8]) -> Option<Own> {
        FittedGaussianNB::of_body(body).map(Own)
    }
}

/// Its estimator.
#[derive(Clone, Debug)]
struct OwnEstimator;

impl Estimator for OwnEstimator {
    type Fitted = Own;

    fn fit_any(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Result<Own> {
        GaussianNB::new().fit_any(x, y, options).map(Own)
    }
}

impl Params for OwnEstimator {
    fn estimator(&self) -> &'static str {
        "Own"
    }

    fn params(&self) -> Vec<(String, Setting)> {
        Vec::new()
    }

    fn set(&mut self, _: &str, _: &Setting) -> Result<()> {
        Ok(())
    }
}

#[test]
fn what_cannot_be_read_again_is_not_written() {
    let [x, labels, _] = samples();
    let of_other_crates =
        VotingClassifier::new().estimator("own", OwnEstimator).fit(&x, &labels, ..).unwrap();
    let error = of_other_crates.to_bytes().unwrap_err();
    assert_eq!(error.class(), "NotImplemented");
    let text = error.to_string();
    assert!(text.contains("a file of a model of the type Own in another one"), "{text}");
    // As deep as files may be, and deeper.
    let mut any = AnyClassifier::new(GaussianNB::new());
    let mut deepest = 0;
    for depth in 1..20 {
        any = AnyClassifier::new(VotingClassifier::new().any("inner", any));
        let bytes = any.fit_any(&x, Some(&labels), &(..).into()).unwrap().to_bytes();
        match bytes {
            Ok(bytes) => {
                assert!(FittedAny::<Classifies>::from_bytes(&bytes).is_ok(), "{depth}");
                deepest = depth;
            }
            Err(error) => assert_eq!(error.class(), "NotImplemented", "{depth}"),
        }
    }
    assert_eq!(deepest, 15);
}

#[test]
fn labels_come_back() {
    let [_, labels, _] = samples();
    let model = LabelEncoder::new().fit(&labels, ..).unwrap();
    checked(&model, |model| vec![model.transform(&labels)]);
    let model = LabelBinarizer::new().neg_label(-3).fit(&labels, ..).unwrap();
    checked(&model, |model| vec![model.transform(&labels)]);
}

#[test]
fn attributes_come_back() {
    let [x, labels, y] = samples();
    let mut model = KMeans::new().n_clusters(3).fit(&x, ..).unwrap();
    let bytes = model.to_bytes().unwrap();
    // Labels are not in files, and saving does not compute them.
    let read = FittedKMeans::from_bytes(&bytes).unwrap();
    assert_eq!(read.labels.to_vec::<i64>().unwrap_err().class(), "ValueError");
    assert_eq!(bits(&read.predict(&x)), bits(&model.labels));
    model.labels = read.labels.clone();
    assert_eq!(model.to_bytes().unwrap(), bytes);
    assert_eq!((read.inertia, read.n_iter, read.converged), (model.inertia, model.n_iter, model.converged));
    let model = Lasso::new().fit(&x, &y, ..).unwrap();
    let read = FittedElasticNet::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(
        (read.to_string(), read.n_iter, read.dual_gap),
        (model.to_string(), model.n_iter, model.dual_gap)
    );
    let model = LogisticRegression::new().fit(&x, &labels, ..).unwrap();
    let read = FittedLogisticRegression::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!((read.classes, read.converged), (model.classes, model.converged));
    let model = PCA::new().fit(&x, ..).unwrap();
    let read = FittedPCA::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!((read.noise_variance, read.n_samples), (model.noise_variance, model.n_samples));
    assert!(FittedTruncatedSVD::from_bytes(&model.to_bytes().unwrap()).is_err());
}

/// Clusters that have labels alone.
#[test]
fn labels_of_trees_and_dense_places_come_back() {
    let [x, ..] = samples();
    let model = DBSCAN::new().eps(1.0).fit(&x, ..).unwrap();
    let read = FittedDBSCAN::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!((&read.labels, &read.core_sample_indices), (&model.labels, &model.core_sample_indices));
    assert_eq!(bits(&read.components), bits(&model.components));
    let model = AgglomerativeClustering::new().fit(&x, ..).unwrap();
    let read = FittedAgglomerativeClustering::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!((read.labels, read.children, read.distances), (model.labels, model.children, model.distances));
}

fn place(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("learn-saved-{}-{name}", std::process::id()))
}

#[test]
fn files_are_written_whole_and_read_as_their_type() {
    let [x, _, y] = samples();
    let path = place("ridge");
    let model = Ridge::new().fit(&x, &y, ..).unwrap();
    model.save(&path).unwrap();
    let other = Ridge::new().alpha(100.0).fit(&x, &y, ..).unwrap();
    // The second takes the place of the first.
    other.save(&path).unwrap();
    assert_eq!(FittedRidge::load(&path).unwrap().coef, other.coef);
    let error = FittedElasticNet::load(&path).unwrap_err();
    assert!(
        error.to_string().starts_with("expected a saved model of ElasticNet, found one of Ridge"),
        "{error}"
    );
    std::fs::write(&path, b"no model at all").unwrap();
    let error = FittedRidge::load(&path).unwrap_err();
    assert_eq!(error.class(), "DataCorrupt");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(FittedRidge::load(&path).unwrap_err().class(), "OSError");
    let error = model.save(place("no/such/folder")).unwrap_err();
    assert_eq!(error.class(), "OSError");
    // An endless file is no model.
    assert_eq!(FittedRidge::load("/dev/zero").unwrap_err().class(), "DataCorrupt");
    // Nothing else is left beside a file.
    let folder = place("folder");
    std::fs::create_dir(&folder).unwrap();
    model.save(folder.join("ridge")).unwrap();
    std::fs::create_dir(folder.join("taken")).unwrap();
    assert_eq!(model.save(folder.join("taken")).unwrap_err().class(), "OSError");
    let left = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<std::collections::BTreeSet<_>>(), ["ridge", "taken"].map(Into::into).into());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_later_version_is_told() {
    let [x, _, y] = samples();
    let mut bytes = Ridge::new().fit(&x, &y, ..).unwrap().to_bytes().unwrap();
    bytes[8] = 3;
    let error = FittedRidge::from_bytes(&bytes).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().starts_with("a saved model has version 3 of the format"), "{error}");
}

#[test]
fn pipelines_come_back_with_their_steps() {
    let [x, labels, _] = samples();
    let pipeline =
        Pipeline::new().step("scale", StandardScaler::new()).step("pca", PCA::new().n_components(2));
    let model = pipeline.last("bayes", GaussianNB::new()).fit(&x, &labels, ..).unwrap();
    checked(&model, |model| vec![model.predict(&x), model.predict_proba(&x)]);
    // Another last model is another type.
    let bytes = model.to_bytes().unwrap();
    assert_eq!(FittedPipeline::<FittedRidge>::from_bytes(&bytes).unwrap_err().class(), "DataCorrupt");
    assert!(FittedGaussianNB::from_bytes(&bytes).is_err());
}

#[test]
fn steps_of_every_type_come_back() {
    let [x, labels, _] = samples();
    let pipeline = Pipeline::new()
        .step("impute", SimpleImputer::new())
        .step("robust", RobustScaler::new())
        .step("vary", VarianceThreshold::new())
        .step("quantiles", QuantileTransformer::new().n_quantiles(20))
        .step("powers", PowerTransformer::new())
        .step("products", PolynomialFeatures::new().include_bias(false))
        .step("nystroem", Nystroem::new().n_components(9))
        .step("project", GaussianRandomProjection::new().n_components(7))
        .step("fourier", RBFSampler::new().n_components(6))
        .step("positive", MinMaxScaler::new())
        .step("chi2", AdditiveChi2Sampler::new().sample_steps(1))
        .step("select", SelectKBest::new().k(3))
        .step("discriminants", LinearDiscriminantAnalysis::new());
    let model = pipeline.last("model", QuadraticDiscriminantAnalysis::new()).fit(&x, &labels, ..).unwrap();
    let read = FittedPipeline::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let _: &FittedQuadraticDiscriminantAnalysis = read.last();
    assert_eq!(bits(&model.predict_proba(&x)), bits(&read.predict_proba(&x)));
    let pipeline = Pipeline::new().step("missing", MissingIndicator::new().features(IndicatedFeatures::All));
    let model = pipeline.last("scale", MaxAbsScaler::new()).fit_unsupervised(&x, ..).unwrap();
    let read: FittedPipeline<FittedMaxAbsScaler> =
        FittedPipeline::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(bits(&model.transform(&x)), bits(&read.transform(&x)));
}

#[test]
fn models_that_hold_each_other_without_end_are_refused() {
    // A bagging of a bagging, and so on: each holds the one before.
    let [x, labels, _] = samples();
    let mut held = tharsis_learn::AnyClassifier::new(GaussianNB::new());
    for depth in 0..20 {
        let bagging = BaggingClassifier::new().any(held).n_estimators(1).bootstrap(false);
        // A file that would not be read again is not written.
        let written = bagging.fit(&x, &labels, ..).unwrap().to_bytes();
        assert_eq!(written.is_ok(), depth < 16, "{depth}");
        let is_read = written.is_ok_and(|bytes| FittedBaggingClassifier::from_bytes(&bytes).is_ok());
        assert_eq!(is_read, depth < 16, "{depth}");
        held = tharsis_learn::AnyClassifier::new(bagging);
    }
}

#[test]
fn a_model_that_tells_numbers_is_no_classifier_in_a_file() {
    let [x, labels, y] = samples();
    let numbers = VotingRegressor::new().estimator("a", Ridge::new()).fit(&x, &y, ..).unwrap();
    let classes = VotingClassifier::new().estimator("a", GaussianNB::new()).fit(&x, &labels, ..).unwrap();
    assert!(FittedVotingRegressor::from_bytes(&classes.to_bytes().unwrap()).is_err());
    // A body with the name of a regressor where a classifier is wanted.
    let body = numbers.body().unwrap();
    assert!(FittedVotingClassifier::of_body(&body).is_none());
}
