//! Parameters by name: each has the value that was set, and refuses what it does not take.

use tharsis_learn::cluster::{AgglomerativeClustering, BisectingKMeans, DBSCAN, KMeans, MiniBatchKMeans};
use tharsis_learn::covariance::{EmpiricalCovariance, LedoitWolf, OAS, ShrunkCovariance};
use tharsis_learn::decomposition::{FactorAnalysis, FastICA, IncrementalPCA, NMF, PCA, TruncatedSVD};
use tharsis_learn::discriminant_analysis::{LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis};
use tharsis_learn::dummy::{DummyClassifier, DummyRegressor};
use tharsis_learn::ensemble::{
    ExtraTreesClassifier, ExtraTreesRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor,
    IsolationForest, RandomForestClassifier, RandomForestRegressor,
};
use tharsis_learn::feature_selection::{
    SelectFdr, SelectFpr, SelectFwe, SelectKBest, SelectPercentile, VarianceThreshold,
};
use tharsis_learn::impute::{KNNImputer, MissingIndicator, SimpleImputer};
use tharsis_learn::isotonic::IsotonicRegression;
use tharsis_learn::kernel_approximation::{
    AdditiveChi2Sampler, Nystroem, PolynomialCountSketch, RBFSampler, SkewedChi2Sampler,
};
use tharsis_learn::linear_model::*;
use tharsis_learn::mixture::GaussianMixture;
use tharsis_learn::naive_bayes::{BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB};
use tharsis_learn::neighbors::{
    KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor, NearestCentroid, NearestNeighbors,
    RadiusNeighborsClassifier, RadiusNeighborsRegressor,
};
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::{
    Binarizer, KBinsDiscretizer, KernelCenterer, LabelBinarizer, LabelEncoder, MaxAbsScaler, MinMaxScaler,
    Normalizer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures, PowerTransformer, QuantileTransformer,
    RobustScaler, SplineTransformer, StandardScaler, TargetEncoder,
};
use tharsis_learn::random_projection::{GaussianRandomProjection, SparseRandomProjection};
use tharsis_learn::svm::{LinearSVC, LinearSVR};
use tharsis_learn::tree::{DecisionTreeClassifier, DecisionTreeRegressor};
use tharsis_learn::{Params, Setting};
use tharsis_numeric::{Tensor, arange};

fn all() -> Vec<Box<dyn Params>> {
    vec![
        Box::new(LinearRegression::new()),
        Box::new(Ridge::new()),
        Box::new(Lasso::new()),
        Box::new(ElasticNet::new()),
        Box::new(LogisticRegression::new()),
        Box::new(GaussianNB::new()),
        Box::new(MultinomialNB::new()),
        Box::new(BernoulliNB::new()),
        Box::new(ComplementNB::new()),
        Box::new(CategoricalNB::new()),
        Box::new(AgglomerativeClustering::new()),
        Box::new(DBSCAN::new()),
        Box::new(BisectingKMeans::new()),
        Box::new(MiniBatchKMeans::new()),
        Box::new(NMF::new()),
        Box::new(IsotonicRegression::new()),
        Box::new(LogisticRegressionCV::new()),
        Box::new(FactorAnalysis::new()),
        Box::new(FastICA::new()),
        Box::new(GaussianMixture::new()),
        Box::new(IncrementalPCA::new()),
        Box::new(KNNImputer::new()),
        Box::new(KNeighborsClassifier::new()),
        Box::new(KNeighborsRegressor::new()),
        Box::new(LocalOutlierFactor::new()),
        Box::new(NearestNeighbors::new()),
        Box::new(RadiusNeighborsClassifier::new()),
        Box::new(RadiusNeighborsRegressor::new()),
        Box::new(DecisionTreeClassifier::new()),
        Box::new(DecisionTreeRegressor::new()),
        Box::new(RandomForestClassifier::new()),
        Box::new(RandomForestRegressor::new()),
        Box::new(ExtraTreesClassifier::new()),
        Box::new(ExtraTreesRegressor::new()),
        Box::new(HistGradientBoostingClassifier::new()),
        Box::new(HistGradientBoostingRegressor::new()),
        Box::new(IsolationForest::new()),
        Box::new(KMeans::new()),
        Box::new(PCA::new()),
        Box::new(TruncatedSVD::new()),
        Box::new(StandardScaler::new()),
        Box::new(MinMaxScaler::new()),
        Box::new(MaxAbsScaler::new()),
        Box::new(Normalizer::new()),
        Box::new(Binarizer::new()),
        Box::new(OneHotEncoder::new()),
        Box::new(OrdinalEncoder::new()),
        Box::new(KBinsDiscretizer::new()),
        Box::new(KernelCenterer::new()),
        Box::new(LabelEncoder::new()),
        Box::new(LabelBinarizer::new()),
        Box::new(SplineTransformer::new()),
        Box::new(TargetEncoder::new()),
        Box::new(GaussianRandomProjection::new()),
        Box::new(SparseRandomProjection::new()),
        Box::new(RBFSampler::new()),
        Box::new(SkewedChi2Sampler::new()),
        Box::new(AdditiveChi2Sampler::new()),
        Box::new(PolynomialCountSketch::new()),
        Box::new(Nystroem::new()),
        Box::new(RobustScaler::new()),
        Box::new(QuantileTransformer::new()),
        Box::new(PowerTransformer::new()),
        Box::new(PolynomialFeatures::new()),
        Box::new(SimpleImputer::new()),
        Box::new(MissingIndicator::new()),
        Box::new(VarianceThreshold::new()),
        Box::new(SelectKBest::new()),
        Box::new(SelectPercentile::new()),
        Box::new(SelectFpr::new()),
        Box::new(SelectFdr::new()),
        Box::new(SelectFwe::new()),
        Box::new(EmpiricalCovariance::new()),
        Box::new(ShrunkCovariance::new()),
        Box::new(LedoitWolf::new()),
        Box::new(OAS::new()),
        Box::new(LinearDiscriminantAnalysis::new()),
        Box::new(QuadraticDiscriminantAnalysis::new()),
        Box::new(DummyClassifier::new()),
        Box::new(DummyRegressor::new()),
        Box::new(NearestCentroid::new()),
        Box::new(RidgeClassifier::new()),
        Box::new(PoissonRegressor::new()),
        Box::new(GammaRegressor::new()),
        Box::new(TweedieRegressor::new()),
        Box::new(RidgeCV::new()),
        Box::new(RidgeClassifierCV::new()),
        Box::new(LassoCV::new()),
        Box::new(ElasticNetCV::new()),
        Box::new(BayesianRidge::new()),
        Box::new(ARDRegression::new()),
        Box::new(Lars::new()),
        Box::new(LassoLars::new()),
        Box::new(LassoLarsIC::new()),
        Box::new(OrthogonalMatchingPursuit::new()),
        Box::new(LassoLarsCV::new()),
        Box::new(OrthogonalMatchingPursuitCV::new()),
        Box::new(HuberRegressor::new()),
        Box::new(LinearSVC::new()),
        Box::new(LinearSVR::new()),
        Box::new(SGDClassifier::new()),
        Box::new(SGDRegressor::new()),
        Box::new(Perceptron::new()),
        Box::new(PassiveAggressiveClassifier::new()),
        Box::new(PassiveAggressiveRegressor::new()),
    ]
}

/// Values of all kinds.
fn values() -> Vec<Setting> {
    let words = [
        "auto",
        "nndsvd",
        "same",
        "clip",
        "largest_cluster",
        "gini",
        "entropy",
        "sqrt",
        "log2",
        "l1",
        "random",
        "poisson",
        "normal",
        "box-cox",
        "constant",
        "median",
        "ignore",
        "use_encoded_value",
        "ordinal",
        "binary",
        "periodic",
        "zeros",
        "uniform",
        "hazen",
        "cosine",
        "manhattan",
        "empirical",
        "all",
        "chi2",
        "identity",
        "bic",
        "uniform",
        "cosine",
        "most_frequent",
        "single",
        "tied",
        "unit-variance",
        "cube",
        "kmeans",
        "hinge",
        "epsilon_insensitive",
    ]
    .map(Setting::from);
    let numbers = [Setting::from(3i64), Setting::from(0.25), Setting::from(true), Setting::from(false)];
    let lists = [Setting::from(vec![0.25, 0.75]), Setting::None, Setting::Array(arange(2))];
    words.into_iter().chain(numbers).chain(lists).collect()
}

#[test]
fn a_value_that_is_taken_is_the_value_of_the_parameter() {
    for mut estimator in all() {
        for (name, default) in estimator.params() {
            let mut taken = 0;
            for value in values() {
                let before = estimator.params();
                match estimator.set(&name, &value) {
                    Ok(()) => {
                        taken += 1;
                        let after = estimator.params();
                        let found = &after.iter().find(|(known, _)| *known == name).unwrap().1;
                        let is_same = found.to_string() == value.to_string()
                            || matches!((found, &value), (Setting::Real(_) | Setting::Integer(_), _))
                            || matches!(value, Setting::Array(_))
                            // Two words for one thing.
                            || (found.to_string(), value.to_string()) == ("'manhattan'".into(), "'l1'".into());
                        assert!(is_same, "{name} of {}: {found}, not {value}", estimator.estimator());
                        // No other one has changed.
                        for (before, after) in before.iter().zip(&after).filter(|(one, _)| one.0 != name) {
                            assert_eq!(before.1.to_string(), after.1.to_string());
                        }
                    }
                    Err(error) => {
                        let start = format!("The '{name}' parameter of {} must be ", estimator.estimator());
                        assert!(error.to_string().starts_with(&start), "{error}");
                        assert_eq!(error.class(), "ValueError");
                    }
                }
            }
            assert!(0 < taken, "{name} of {}", estimator.estimator());
            // The default is a value of the parameter.
            estimator.set(&name, &default).unwrap();
        }
    }
}

#[test]
fn unknown_names_have_the_text_of_scikit_learn() {
    for mut estimator in all() {
        let error = estimator.set("alhpa", &Setting::None).unwrap_err().to_string();
        let start = format!("Invalid parameter 'alhpa' for estimator {}(). Valid", estimator.estimator());
        assert!(error.starts_with(&start), "{error}");
    }
    let mut lasso = Lasso::new().alpha(2.0).positive(true);
    let error = lasso.set("beta", &Setting::None).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "Invalid parameter 'beta' for estimator Lasso(alpha=2.0, positive=True). Valid parameters are: \
             ['alpha', 'fit_intercept', 'max_iter', 'positive', 'tol']."
        ),
        "{error}"
    );
}

#[test]
fn steps_of_pipelines_have_their_parameters() {
    let pipeline = Pipeline::new().step("scale", StandardScaler::new()).last("ridge", Ridge::new());
    let mut other = pipeline.clone();
    other.set("ridge__alpha", &0.5.into()).unwrap();
    other.set("scale__with_std", &false.into()).unwrap();
    let texts = |pipeline: &Pipeline<Ridge>| -> Vec<String> {
        pipeline.params().into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    };
    assert_eq!(
        texts(&other),
        ["scale__with_mean=True", "scale__with_std=False", "ridge__alpha=0.5", "ridge__fit_intercept=True"]
    );
    // The one that was copied is as it was.
    assert!(texts(&pipeline).contains(&"ridge__alpha=1.0".to_owned()));
    let error = other.set("scael__with_std", &false.into()).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "Invalid parameter 'scael' for estimator Pipeline(scale, ridge). Valid parameters are: [\"scale\", \
             \"ridge\"]."
        ),
        "{error}"
    );
    let error = other.set("scale__std", &false.into()).unwrap_err().to_string();
    assert!(
        error.starts_with("Invalid parameter 'std' for estimator StandardScaler(with_std=False)."),
        "{error}"
    );
}

#[test]
fn values_of_two_kinds_come_back() {
    let mut imputer = SimpleImputer::new();
    imputer.set("strategy", &"constant".into()).unwrap();
    imputer.set("fill_value", &7.5.into()).unwrap();
    let x = Tensor::from_elements(&[2, 1], &[1.0, f64::NAN]);
    assert_eq!(imputer.fit(&x, ..).unwrap().transform(&x).to_vec::<f64>().unwrap(), [1.0, 7.5]);
    let mut products = PolynomialFeatures::new();
    products.set("degree", &vec![2.0, 3.0].into()).unwrap();
    assert_eq!(products.params()[0].1.to_string(), "[2.0, 3.0]");
    products.set("degree", &Setting::Array(Tensor::from_elements(&[2], &[1i64, 3]))).unwrap();
    assert_eq!(products.params()[0].1.to_string(), "[1.0, 3.0]");
    products.set("degree", &3i64.into()).unwrap();
    assert_eq!(products.fit(&arange(2).reshape(&[2, 1]), ..).unwrap().n_output_features(), 4);
    for refused in [vec![0.5, 2.0], vec![-1.0, 2.0], vec![1.0, f64::NAN], vec![1.0]] {
        assert!(products.set("degree", &refused.into()).is_err());
    }
}

#[test]
fn parts_of_samples_are_no_whole_numbers() {
    let mut forest = RandomForestClassifier::new();
    forest.set("max_samples", &0.5.into()).unwrap();
    // In scikit-learn 1 is one sample, and 1.0 is all of them.
    for value in [Setting::from(1i64), Setting::from(true)] {
        let error = forest.set("max_samples", &value).unwrap_err().to_string();
        let text = "The 'max_samples' parameter of RandomForestClassifier must be a float in the range (0.0, 1.0] or None.";
        assert!(error.starts_with(text), "{error}");
        assert!(HistGradientBoostingRegressor::new().set("validation_fraction", &value).is_err());
    }
    forest.set("max_samples", &Setting::None).unwrap();
}

#[test]
fn names_of_steps_have_no_two_underlines() {
    let x = arange(4).reshape(&[4, 1]);
    let pipeline = Pipeline::new().step("a__b", StandardScaler::new()).last("ridge", Ridge::new());
    let error = pipeline.fit(&x, &arange(4), ..).unwrap_err().to_string();
    assert!(error.starts_with("Estimator names must not contain __: got [\"a__b\"]"), "{error}");
}
