//! Estimators that say whether they take weights, beside what their fits do with them.

use tharsis_learn::base::Estimator;
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
use tharsis_learn::model_selection::{GridSearchCV, ParamGrid};
use tharsis_learn::multiclass::*;
use tharsis_learn::multioutput::*;
use tharsis_learn::naive_bayes::*;
use tharsis_learn::neighbors::*;
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::*;
use tharsis_learn::random_projection::*;
use tharsis_learn::svm::*;
use tharsis_learn::tree::*;
use tharsis_learn::{AnyClassifier, AnyRegressor, Error, FitOptions};
use tharsis_numeric::{Tensor, arange, ones};

/// Whether this is the error of weights that nothing takes.
fn is_of_weights(error: &Error) -> bool {
    let text = error.to_string();
    let texts = ["unexpected keyword argument 'sample_weight'", "sample weights", "support sample_weight"];
    texts.iter().any(|known| text.contains(known))
}

fn check<E: Estimator>(name: &str, estimator: &E, x: &Tensor, y: &Tensor) {
    let weighted = FitOptions::new().sample_weight(&ones(&[12]));
    let refused = estimator.fit_any(x, Some(y), &weighted).err().is_some_and(|error| is_of_weights(&error));
    assert_eq!(estimator.takes_weights(), !refused, "{name}");
}

macro_rules! check_all {
    ($x:expr, $y:expr, [$($estimator:expr),* $(,)?]) => {
        $(check(stringify!($estimator), &$estimator, $x, $y);)*
    };
}

/// Samples and labels.
fn data() -> (Tensor, Tensor) {
    ((arange(48) * 7 % 11).reshape(&[12, 4]).execute().unwrap(), (arange(12) % 2).execute().unwrap())
}

#[test]
fn supervised_estimators_say_whether_they_take_weights() {
    let (x, y) = data();
    check_all!(
        &x,
        &y,
        [
            ARDRegression::new(),
            BayesianRidge::new(),
            BernoulliNB::new(),
            CalibratedClassifierCV::new(),
            CategoricalNB::new(),
            ComplementNB::new(),
            DecisionTreeClassifier::new(),
            DecisionTreeRegressor::new(),
            DummyClassifier::new(),
            DummyRegressor::new(),
            ElasticNet::new(),
            ElasticNetCV::new(),
            ExtraTreesClassifier::new(),
            ExtraTreesRegressor::new(),
            GammaRegressor::new(),
            GaussianNB::new(),
            HistGradientBoostingClassifier::new(),
            HistGradientBoostingRegressor::new(),
            HuberRegressor::new(),
            KNeighborsClassifier::new(),
            KNeighborsRegressor::new(),
            Lars::new(),
            Lasso::new(),
            LassoCV::new(),
            LassoLars::new(),
            LassoLarsCV::new(),
            LassoLarsIC::new(),
            LinearDiscriminantAnalysis::new(),
            LinearRegression::new(),
            LinearSVC::new(),
            LinearSVR::new().loss(TubeLoss::SquaredEpsilonInsensitive),
            LogisticRegression::new(),
            LogisticRegressionCV::new(),
            MultinomialNB::new(),
            NearestCentroid::new(),
            OrthogonalMatchingPursuit::new(),
            OrthogonalMatchingPursuitCV::new(),
            Perceptron::new(),
            PoissonRegressor::new(),
            QuadraticDiscriminantAnalysis::new(),
            RadiusNeighborsClassifier::new(),
            RadiusNeighborsRegressor::new(),
            RandomForestClassifier::new(),
            RandomForestRegressor::new(),
            Ridge::new(),
            RidgeCV::new(),
            RidgeClassifier::new(),
            RidgeClassifierCV::new(),
            SGDClassifier::new(),
            SGDRegressor::new(),
            SelectKBest::new(),
            SelectPercentile::new(),
            TargetEncoder::new(),
            TweedieRegressor::new(),
        ]
    );
}

#[test]
fn maps_and_clusterings_say_whether_they_take_weights() {
    let (x, y) = data();
    check_all!(
        &x,
        &y,
        [
            AdditiveChi2Sampler::new(),
            AgglomerativeClustering::new(),
            Binarizer::new(),
            BisectingKMeans::new(),
            DBSCAN::new(),
            EmpiricalCovariance::new(),
            FactorAnalysis::new(),
            FastICA::new(),
            GaussianMixture::new(),
            GaussianRandomProjection::new().n_components(2),
            IncrementalPCA::new(),
            IsolationForest::new(),
            KBinsDiscretizer::new(),
            KMeans::new(),
            KNNImputer::new(),
            KernelCenterer::new(),
            LedoitWolf::new(),
            LocalOutlierFactor::new(),
            MaxAbsScaler::new(),
            MinMaxScaler::new(),
            MiniBatchKMeans::new(),
            MissingIndicator::new(),
            NMF::new(),
            NearestNeighbors::new(),
            Normalizer::new(),
            Nystroem::new(),
            OAS::new(),
            OneHotEncoder::new(),
            OrdinalEncoder::new(),
            PCA::new(),
            PolynomialCountSketch::new(),
            PolynomialFeatures::new(),
            PowerTransformer::new(),
            QuantileTransformer::new(),
            RBFSampler::new(),
            RobustScaler::new(),
            ShrunkCovariance::new(),
            SimpleImputer::new(),
            SkewedChi2Sampler::new(),
            SparseRandomProjection::new().n_components(2),
            SplineTransformer::new(),
            StandardScaler::new(),
            TruncatedSVD::new(),
            VarianceThreshold::new(),
        ]
    );
    check_all!(&(arange(12) % 3), &y, [LabelBinarizer::new(), LabelEncoder::new()]);
    let place = arange(12).reshape(&[12, 1]);
    check_all!(&place, &y, [IsotonicRegression::new()]);
}

#[test]
fn holders_say_what_their_members_do() {
    let (x, y) = data();
    let two = tharsis_numeric::stack(&[&y, &y], 1);
    macro_rules! of {
        ($classifier:expr, $regressor:expr) => {
            check_all!(
                &x,
                &y,
                [
                    AnyClassifier::new($classifier),
                    AnyRegressor::new($regressor),
                    VotingClassifier::new().estimator("a", $classifier),
                    VotingRegressor::new().estimator("a", $regressor),
                    StackingClassifier::new().estimator("a", $classifier),
                    StackingRegressor::new().estimator("a", $regressor),
                    StackingRegressor::new().estimator("a", Ridge::new()).final_estimator($regressor),
                    BaggingClassifier::new().estimator($classifier),
                    BaggingRegressor::new().estimator($regressor),
                    AdaBoostRegressor::new().estimator($regressor),
                    OneVsOneClassifier::new($classifier),
                    OneVsRestClassifier::new($classifier),
                    TransformedTargetRegressor::new().regressor($regressor),
                    CalibratedClassifierCV::new().estimator($classifier),
                    Pipeline::new().step("scale", MaxAbsScaler::new()).last("line", $regressor),
                    GridSearchCV::new($regressor, ParamGrid::new()),
                    SequentialFeatureSelector::new($regressor),
                ]
            );
            check_all!(
                &x,
                &two,
                [MultiOutputClassifier::new($classifier), MultiOutputRegressor::new($regressor)]
            );
        };
    }
    of!(GaussianNB::new(), Ridge::new());
    of!(KNeighborsClassifier::new().n_neighbors(2), KNeighborsRegressor::new().n_neighbors(2));
    check_all!(&x, &y, [RFE::new(Ridge::new()), RFE::new(Lars::new()), SelectFromModel::new(Lars::new())]);
    let refused = AdaBoostClassifier::new().estimator(KNeighborsClassifier::new()).fit(&x, &y, ..);
    assert!(
        refused.unwrap_err().to_string().starts_with("KNeighborsClassifier doesn't support sample_weight.")
    );
}
