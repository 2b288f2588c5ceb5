//! Mistakes are refused before any pass where that can be, with the texts of scikit-learn.

use tharsis_learn::base::Estimator;
use tharsis_learn::cluster::{Init, KMeans};
use tharsis_learn::covariance::ShrunkCovariance;
use tharsis_learn::decomposition::{FastICA, PCA, TruncatedSVD};
use tharsis_learn::discriminant_analysis::{LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis};
use tharsis_learn::feature_selection::{
    RFE, ScoreFunction, SelectFpr, SelectKBest, SelectPercentile, SequentialFeatureSelector,
    VarianceThreshold,
};
use tharsis_learn::impute::{SimpleImputer, Statistic};
use tharsis_learn::isotonic::IsotonicRegression;
use tharsis_learn::linear_model::*;
use tharsis_learn::mixture::GaussianMixture;
use tharsis_learn::naive_bayes::{BernoulliNB, GaussianNB, MultinomialNB};
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::{
    Binarizer, MaxAbsScaler, MinMaxScaler, Normalizer, PolynomialFeatures, PowerMethod, PowerTransformer,
    QuantileTransformer, RobustScaler, SplineTransformer, StandardScaler,
};
use tharsis_learn::{Error, FitOptions};
use tharsis_numeric::{DType, Tensor, arange, array, ones, zeros};

/// The error of a fit by each estimator, with its name. Scalers take NaN for a value that is missing.
fn errors(x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Vec<(&'static str, Error)> {
    let outcomes = outcomes(x, y, options).into_iter();
    outcomes.map(|(name, made)| (name, made.expect_err("it is refused"))).collect()
}

/// The outcome of a fit by each estimator, with its name; the first three are scalers.
fn outcomes(x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> Vec<(&'static str, Result<(), Error>)> {
    fn fit<E: Estimator>(
        name: &'static str,
        estimator: &E,
        (x, y, options): (&Tensor, Option<&Tensor>, &FitOptions),
    ) -> (&'static str, Result<(), Error>) {
        (name, estimator.fit_any(x, y, options).map(drop))
    }
    let data = (x, y, options);
    vec![
        fit("StandardScaler", &StandardScaler::new(), data),
        fit("MinMaxScaler", &MinMaxScaler::new(), data),
        fit("MaxAbsScaler", &MaxAbsScaler::new(), data),
        fit("LinearRegression", &LinearRegression::new(), data),
        fit("Ridge", &Ridge::new(), data),
        fit("Lasso", &Lasso::new(), data),
        fit("ElasticNet", &ElasticNet::new(), data),
        fit("LogisticRegression", &LogisticRegression::new(), data),
        fit("PCA", &PCA::new(), data),
        fit("TruncatedSVD", &TruncatedSVD::new().n_components(1), data),
        fit("KMeans", &KMeans::new().n_clusters(1), data),
        fit("GaussianNB", &GaussianNB::new(), data),
        fit("MultinomialNB", &MultinomialNB::new(), data),
        fit("BernoulliNB", &BernoulliNB::new(), data),
    ]
}

fn begins(error: &Error, text: &str) -> bool {
    error.to_string().starts_with(text)
}

#[test]
fn shapes_and_dtypes() {
    let y = array([0i64, 1, 0]);
    for (name, error) in errors(&zeros(&[3]), Some(&y), &(..).into()) {
        assert_eq!(error.class(), "ValueError", "{name}");
        assert!(begins(&error, "Expected 2D array, got 1D array instead."), "{name}: {error}");
    }
    for (name, error) in errors(&zeros(&[3, 1, 1]), Some(&y), &(..).into()) {
        assert!(begins(&error, "Found array with dim 3, while dim <= 2 is required"), "{name}: {error}");
    }
    for (name, error) in errors(&zeros(&[0, 2]), Some(&zeros(&[0])), &(..).into()) {
        let text = format!(
            "Found array with 0 sample(s) (shape=(0, 2)) while a minimum of 1 is required by {name}."
        );
        assert!(begins(&error, &text), "{name}: {error}");
    }
    for (name, error) in errors(&zeros(&[3, 0]), Some(&y), &(..).into()) {
        let text = format!(
            "Found array with 0 feature(s) (shape=(3, 0)) while a minimum of 1 is required by {name}."
        );
        assert!(begins(&error, &text), "{name}: {error}");
    }
    for (name, error) in errors(&zeros(&[3, 1]).astype(DType::C128), Some(&y), &(..).into()) {
        assert!(begins(&error, "Complex data not supported"), "{name}: {error}");
    }
}

#[test]
fn targets() {
    let x = ones(&[3, 2]);
    let refused = Ridge::new().fit(&x, &zeros(&[4]), ..).unwrap_err();
    assert!(begins(&refused, "Found input variables with inconsistent numbers of samples: [3, 4]"));
    let refused = Ridge::new().fit(&x, &zeros(&[3, 1, 1]), ..).unwrap_err();
    assert!(begins(&refused, "y should be a 1d array"));
    let refused = GaussianNB::new().fit_any(&x, None, &(..).into()).unwrap_err();
    assert!(begins(&refused, "This GaussianNB estimator requires y to be passed, but the target y is None."));
    let refused = LogisticRegression::new().fit(&x, &ones(&[3]), ..).unwrap_err();
    assert!(begins(&refused, "This solver needs samples of at least 2 classes in the data"), "{refused}");
    let refused = LogisticRegression::new().fit(&x, &array([0.0, 0.5, 1.0]), ..).unwrap_err();
    assert!(begins(&refused, "Unknown label type: continuous."));
    let refused = LogisticRegression::new().fit(&x, &array([0.0, f64::NAN, 1.0]), ..).unwrap_err();
    assert!(begins(&refused, "Input y contains NaN."), "{refused}");
    let refused = Ridge::new().fit(&x, &array([0.0, f64::NAN, 1.0]), ..).unwrap_err();
    assert!(begins(&refused, "Input y contains NaN."), "{refused}");
    let refused = GaussianNB::new().fit(&x, &array([0u64, u64::MAX, 1]), ..).unwrap_err();
    assert!(begins(&refused, "Unknown label type"), "{refused}");
}

#[test]
fn nan_and_infinity_are_named_with_their_column() {
    let y = array([0i64, 1, 0]);
    let x = array([1.0, 2.0, 3.0, f64::NAN, 5.0, 6.0]).reshape(&[3, 2]);
    for (at, (name, made)) in outcomes(&x, Some(&y), &(..).into()).into_iter().enumerate() {
        if at < 3 {
            assert!(made.is_ok(), "{name}: NaN is missing");
            continue;
        }
        let error = made.expect_err(name);
        assert!(begins(&error, "Input X contains NaN (first in column 1)."), "{name}: {error}");
    }
    let x = array([1.0, 2.0, f64::INFINITY, 4.0, 5.0, 6.0]).reshape(&[3, 2]);
    for (name, error) in errors(&x, Some(&y), &(..).into()) {
        let text = "Input X contains infinity or a value too large for dtype('float64') (first in column 0).";
        assert!(begins(&error, text), "{name}: {error}");
    }
}

#[test]
fn nan_has_no_label() {
    let x = array([-1.0, -2.0, 1.0, 2.0]).reshape(&[4, 1]);
    let y = array([0i64, 0, 1, 1]);
    let wrong = array([f64::NAN]).reshape(&[1, 1]);
    let bayes = GaussianNB::new().fit(&x, &y, ..).unwrap().predict(&wrong);
    let logistic = LogisticRegression::new().fit(&x, &y, ..).unwrap().predict(&wrong);
    let bernoulli = BernoulliNB::new().fit(&x, &y, ..).unwrap().predict(&wrong);
    for labels in [bayes, logistic, bernoulli] {
        let error = labels.execute().unwrap_err();
        assert!(begins(&error, "Input X contains NaN."), "{error}");
    }
}

#[test]
fn weights() {
    let (x, y) = (arange(6).reshape(&[3, 2]), array([0i64, 1, 0]));
    let weighted = |weights: &Tensor| FitOptions::new().sample_weight(weights);
    for (name, error) in errors(&x, Some(&y), &weighted(&ones(&[4]))) {
        assert!(begins(&error, "sample_weight.shape == (4,), expected (3,)!"), "{name}: {error}");
    }
    for (name, error) in errors(&x, Some(&y), &weighted(&ones(&[3, 1]))) {
        assert!(begins(&error, "Sample weights must be 1D array or scalar"), "{name}: {error}");
    }
    for (name, error) in errors(&x, Some(&y), &weighted(&array([1.0, -1.0, 1.0]))) {
        let is_without = matches!(name, "MinMaxScaler" | "MaxAbsScaler" | "PCA" | "TruncatedSVD");
        let text = if is_without {
            format!("{name}.fit() got an unexpected keyword argument 'sample_weight'")
        } else {
            "Input sample_weight contains NaN or negative values.".to_owned()
        };
        assert!(begins(&error, &text), "{name}: {error}");
    }
    let none = weighted(&zeros(&[3]));
    for refused in [
        StandardScaler::new().fit(&x, &none).map(drop),
        Ridge::new().fit(&x, &y, &none).map(drop),
        LinearRegression::new().fit(&x, &y, &none).map(drop),
        LogisticRegression::new().fit(&x, &y, &none).map(drop),
        KMeans::new().n_clusters(1).fit(&x, &none).map(drop),
    ] {
        assert!(begins(&refused.unwrap_err(), "Weights sum to zero"));
    }
    let classes = array([0i64, 1, 0]);
    for refused in [
        MultinomialNB::new().fit(&x, &classes, &none).map(drop),
        BernoulliNB::new().fit(&x, &classes, &none).map(drop),
        Ridge::new().fit(&x, &y, ..).unwrap().score(&x, &y, &none).map(drop),
        GaussianNB::new().fit(&x, &classes, ..).unwrap().score(&x, &classes, &none).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(begins(&error, "Sample weights must contain at least one non-zero number"), "{error}");
    }
}

#[test]
fn parameters_are_checked_before_anything_runs() {
    let (x, y) = (arange(6).reshape(&[3, 2]), array([0i64, 1, 0]));
    let refusals = [
        Ridge::new().alpha(f64::NAN).fit(&x, &y, ..).map(drop),
        Lasso::new().alpha(-1.0).fit(&x, &y, ..).map(drop),
        ElasticNet::new().l1_ratio(1.5).fit(&x, &y, ..).map(drop),
        LinearRegression::new().tol(-1.0).fit(&x, &y, ..).map(drop),
        ElasticNet::new().max_iter(0).fit(&x, &y, ..).map(drop),
        LogisticRegression::new().c(0.0).fit(&x, &y, ..).map(drop),
        LogisticRegression::new().tol(f64::NAN).fit(&x, &y, ..).map(drop),
        PCA::new().n_components(0).fit(&x, ..).map(drop),
        PCA::new().n_components(1.5).fit(&x, ..).map(drop),
        TruncatedSVD::new().n_components(3).fit(&x, ..).map(drop),
        KMeans::new().n_clusters(4).fit(&x, ..).map(drop),
        KMeans::new().n_clusters(2).init(Init::Centers(zeros(&[3, 2]))).fit(&x, ..).map(drop),
        KMeans::new().n_clusters(2).init(Init::Centers(zeros(&[2, 3]))).fit(&x, ..).map(drop),
        KMeans::new().n_clusters(1).tol(-1.0).fit(&x, ..).map(drop),
        GaussianNB::new().var_smoothing(-1.0).fit(&x, &y, ..).map(drop),
        GaussianNB::new().priors(&[0.5, 0.25, 0.25]).fit(&x, &y, ..).map(drop),
        MultinomialNB::new().alpha(-1.0).fit(&x, &y, ..).map(drop),
        MultinomialNB::new().fit(&(&x - 3), &y, ..).map(drop),
        MinMaxScaler::new().feature_range(1.0, 1.0).fit(&x, ..).map(drop),
        RobustScaler::new().quantile_range(75.0, 25.0).fit(&x, ..).map(drop),
        QuantileTransformer::new().n_quantiles(0).fit(&x, ..).map(drop),
        PowerTransformer::new().method(PowerMethod::BoxCox).fit(&(&x - 3), ..).map(drop),
        PolynomialFeatures::new().degrees(3, 2).fit(&x, ..).map(drop),
        PolynomialFeatures::new().degree(0).include_bias(false).fit(&x, ..).map(drop),
        PolynomialFeatures::new().degree(usize::MAX).fit(&x, ..).map(drop),
        SimpleImputer::new().missing_values(f64::INFINITY).fit(&x, ..).map(drop),
        SimpleImputer::new().strategy(Statistic::Constant(f64::NAN)).fit(&x, ..).map(drop),
        VarianceThreshold::new().threshold(-1.0).fit(&x, ..).map(drop),
        VarianceThreshold::new().threshold(100.0).fit(&x, ..).map(drop),
        SelectPercentile::new().percentile(101.0).fit(&x, &y, ..).map(drop),
        SelectFpr::new().alpha(f64::NAN).fit(&x, &y, ..).map(drop),
        SelectKBest::new().score_func(ScoreFunction::Chi2).fit(&(&x - 3), &y, ..).map(drop),
        ShrunkCovariance::new().shrinkage(1.5).fit(&x, ..).map(drop),
        LinearDiscriminantAnalysis::new().n_components(2).fit(&x, &y, ..).map(drop),
        LinearDiscriminantAnalysis::new().priors(&[1.0, -1.0]).fit(&x, &y, ..).map(drop),
        LinearDiscriminantAnalysis::new().priors(&[1.0]).fit(&x, &y, ..).map(drop),
        LinearDiscriminantAnalysis::new().fit(&x, &arange(3), ..).map(drop),
        QuadraticDiscriminantAnalysis::new().reg_param(-0.5).fit(&x, &y, ..).map(drop),
        QuadraticDiscriminantAnalysis::new().fit(&x, &y, ..).map(drop),
        QuadraticDiscriminantAnalysis::new().fit(&x, &ones(&[3]), ..).map(drop),
        RidgeClassifier::new().alpha(-1.0).fit(&x, &y, ..).map(drop),
        PoissonRegressor::new().alpha(-1.0).fit(&x, &y, ..).map(drop),
        PoissonRegressor::new().fit(&x, &(&y - 1), ..).map(drop),
        GammaRegressor::new().fit(&x, &y, ..).map(drop),
        TweedieRegressor::new().power(f64::NAN).fit(&x, &y, ..).map(drop),
        TweedieRegressor::new().power(f64::NEG_INFINITY).fit(&x, &y, ..).map(drop),
        RidgeCV::new().alphas([0.0]).fit(&x, &y, ..).map(drop),
        RidgeCV::new().alphas([-1.0]).cv(2).fit(&x, &y, ..).map(drop),
        RidgeCV::new().alphas([]).fit(&x, &y, ..).map(drop),
        RidgeCV::new().cv(1).fit(&x, &y, ..).map(drop),
        RidgeCV::new().cv(4).fit(&x, &y, ..).map(drop),
        RidgeClassifierCV::new().alphas([f64::NAN]).fit(&x, &y, ..).map(drop),
        LassoCV::new().alphas(0).fit(&x, &y, ..).map(drop),
        LassoCV::new().alphas([1.0, -1.0]).fit(&x, &y, ..).map(drop),
        LassoCV::new().eps(0.0).fit(&x, &y, ..).map(drop),
        LassoCV::new().fit(&x, &y, ..).map(drop),
        LassoCV::new().cv(2).fit(&x, &x, ..).map(drop),
        ElasticNetCV::new().l1_ratio(0.0).fit(&x, &y, ..).map(drop),
        ElasticNetCV::new().l1_ratio([0.5, 1.5]).fit(&x, &y, ..).map(drop),
        BayesianRidge::new().alpha_1(-1.0).fit(&x, &y, ..).map(drop),
        BayesianRidge::new().lambda_init(-1.0).fit(&x, &y, ..).map(drop),
        BayesianRidge::new().tol(0.0).fit(&x, &y, ..).map(drop),
        ARDRegression::new().threshold_lambda(-1.0).fit(&x, &y, ..).map(drop),
        ARDRegression::new().max_iter(0).fit(&x, &y, ..).map(drop),
        Lars::new().n_nonzero_coefs(0).fit(&x, &y, ..).map(drop),
        LassoLars::new().alpha(-1.0).fit(&x, &y, ..).map(drop),
        LassoLarsIC::new().fit(&x, &y, ..).map(drop),
        OrthogonalMatchingPursuit::new().n_nonzero_coefs(3).fit(&x, &y, ..).map(drop),
        OrthogonalMatchingPursuit::new().n_nonzero_coefs(0).fit(&x, &y, ..).map(drop),
        LassoLarsCV::new().cv(1).fit(&x, &y, ..).map(drop),
        LassoLarsCV::new().max_n_alphas(0).fit(&x, &y, ..).map(drop),
        OrthogonalMatchingPursuitCV::new().max_iter(3).fit(&x, &y, ..).map(drop),
        OrthogonalMatchingPursuitCV::new().max_iter(0).fit(&x, &y, ..).map(drop),
        OrthogonalMatchingPursuitCV::new().fit(&x, &y, ..).map(drop),
        OrthogonalMatchingPursuit::new().tol(-1.0).fit(&x, &y, ..).map(drop),
    ];
    for (at, refused) in refusals.into_iter().enumerate() {
        let error = refused.err().unwrap_or_else(|| panic!("mistake {at} is not refused"));
        assert_eq!(
            (error.class(), error.location().file()),
            ("ValueError", file!()),
            "mistake {at}: {error}"
        );
    }
}

/// scikit-learn fits these; the solver here has no such links.
#[test]
fn links_that_do_not_exist_are_not_implemented() {
    let (x, y) = (arange(6).reshape(&[3, 2]), array([1i64, 2, 1]));
    for (power, link) in [
        (-1.0, TweedieLink::Auto),
        (-0.5, TweedieLink::Identity),
        (0.5, TweedieLink::Identity),
        (2.0, TweedieLink::Identity),
    ] {
        let error = TweedieRegressor::new().power(power).link(link).fit(&x, &y, ..).map(drop).unwrap_err();
        assert_eq!((error.class(), error.location().file()), ("NotImplemented", file!()), "{error}");
        let text = format!("the identity as link of the power {power} of TweedieRegressor");
        assert!(error.to_string().contains(&text), "{error}");
    }
}

#[test]
fn models_tell_how_many_features_they_know() {
    let (x, y, wide) = (arange(6).reshape(&[3, 2]), array([0i64, 1, 0]), ones(&[1, 3]));
    let text = |name: &str| format!("X has 3 features, but {name} is expecting 2 features as input.");
    let refused = [
        ("StandardScaler", StandardScaler::new().fit(&x, ..).unwrap().transform(&wide)),
        ("MinMaxScaler", MinMaxScaler::new().fit(&x, ..).unwrap().inverse_transform(&wide)),
        ("MaxAbsScaler", MaxAbsScaler::new().fit(&x, ..).unwrap().transform(&wide)),
        ("Ridge", Ridge::new().fit(&x, &y, ..).unwrap().predict(&wide)),
        ("Lasso", Lasso::new().fit(&x, &y, ..).unwrap().predict(&wide)),
        ("LinearRegression", LinearRegression::new().fit(&x, &y, ..).unwrap().predict(&wide)),
        ("LogisticRegression", LogisticRegression::new().fit(&x, &y, ..).unwrap().predict_proba(&wide)),
        ("PCA", PCA::new().fit(&x, ..).unwrap().transform(&wide)),
        ("KMeans", KMeans::new().n_clusters(1).fit(&x, ..).unwrap().predict(&wide)),
        ("GaussianNB", GaussianNB::new().fit(&x, &y, ..).unwrap().predict(&wide)),
        ("MultinomialNB", MultinomialNB::new().fit(&x, &y, ..).unwrap().predict_proba(&wide)),
    ];
    for (name, refused) in refused {
        let error = refused.check().unwrap_err();
        assert!(begins(&error, &text(name)), "{name}: {error}");
        assert_eq!(error.location().file(), file!(), "{name}");
    }
}

#[test]
fn names_of_a_pipeline_are_unique() {
    let pipeline = Pipeline::new().step("scale", StandardScaler::new()).last("scale", StandardScaler::new());
    let error = pipeline.fit_unsupervised(&ones(&[2, 2]), ..).unwrap_err();
    assert!(begins(&error, "Names provided are not unique"), "{error}");
}

#[test]
fn one_sample() {
    let (x, y) = (array([3.0, 4.0]).reshape(&[1, 2]), array([2.0]));
    assert_eq!(StandardScaler::new().fit(&x, ..).unwrap().transform(&x).to_vec::<f64>().unwrap(), [0.0, 0.0]);
    let model = LinearRegression::new().fit(&x, &y, ..).unwrap();
    assert_eq!((model.coef.sum(), model.intercept.sum(), model.rank), (0.0, 2.0, 0));
    assert_eq!(Ridge::new().fit(&x, &y, ..).unwrap().intercept.sum(), 2.0);
    assert!(model.score(&x, &y, ..).unwrap().is_nan());
    let clusters = KMeans::new().n_clusters(1).fit(&x, ..).unwrap();
    assert_eq!((clusters.cluster_centers.sum(), clusters.inertia), (7.0, 0.0));
    // A sample has a place, and no variance.
    let pca = PCA::new().fit(&x, ..).unwrap();
    assert!(pca.explained_variance[0].is_nan() && pca.components.dim() == (1, 2), "{pca:?}");
    assert_eq!(pca.transform(&array([5.0, 9.0]).reshape(&[1, 2])).to_vec::<f64>().unwrap(), [2.0]);
}

/// Found by fits of one row and of one feature beside those of scikit-learn.
#[test]
fn two_samples_or_features_are_the_least_for_some() {
    let (row, one) = (array([3.0, 4.0]).reshape(&[1, 2]), arange(4).reshape(&[4, 1]));
    let y = arange(4);
    let rows = [
        ARDRegression::new().fit(&row, &array([2.0]), ..).map(drop),
        SplineTransformer::new().fit(&row, ..).map(drop),
        FastICA::new().fit(&row, ..).map(drop),
        GaussianMixture::new().fit(&row, ..).map(drop),
    ];
    for error in rows.map(Result::unwrap_err) {
        let text = "Found array with 1 sample(s) (shape=(1, 2)) while a minimum of 2 is required by ";
        assert!(begins(&error, text), "{error}");
    }
    let features = [
        RFE::new(Ridge::new()).fit(&one, &y, ..).map(drop),
        SequentialFeatureSelector::new(Ridge::new()).fit(&one, &y, ..).map(drop),
    ];
    for error in features.map(Result::unwrap_err) {
        let text = "Found array with 1 feature(s) (shape=(4, 1)) while a minimum of 2 is required by ";
        assert!(begins(&error, text), "{error}");
    }
    let error = IsotonicRegression::new().fit(&one, &y.reshape(&[4, 1]), ..).unwrap_err();
    assert!(begins(&error, "y should be a 1d array"), "{error}");
}

/// Labels and zeros and ones do not show of what they were made.
#[test]
fn what_is_not_finite_gets_no_label() {
    let x = arange(6).reshape(&[3, 2]);
    let clusters = KMeans::new().n_clusters(2).fit(&x, ..).unwrap();
    let clipped = MinMaxScaler::new().clip(true).fit(&x, ..).unwrap();
    let binary = Binarizer::new();
    let bad = |number: f64| array([0.0, number]).reshape(&[1, 2]);
    let of =
        |number: f64| if number.is_nan() { "Input X contains NaN." } else { "Input X contains infinity" };
    for number in [f64::NAN, f64::INFINITY] {
        for made in [clusters.predict(&bad(number)), binary.transform(&bad(number))] {
            let error = made.to_vec::<f64>().unwrap_err();
            assert!(begins(&error, of(number)), "{error}");
        }
    }
    let classes = [array([0i64, 1, 0]), array([0i64, 1, 2])];
    for (y, number) in classes.iter().flat_map(|y| [(y, f64::NAN), (y, f64::INFINITY)]) {
        let x = array([1.0, 2.0, 3.0, 7.0, 5.0, 4.0]).reshape(&[3, 2]);
        let new = bad(number);
        for (at, told) in [
            LogisticRegression::new().fit(&x, y, ..).unwrap().predict(&new),
            RidgeClassifier::new().fit(&x, y, ..).unwrap().predict(&new),
            SGDClassifier::new().fit(&x, y, ..).unwrap().predict(&new),
        ]
        .into_iter()
        .enumerate()
        {
            let error = told.to_vec::<i64>().unwrap_err();
            assert!(begins(&error, of(number)), "{at}: {error}");
        }
    }
    assert!(clipped.transform(&bad(f64::INFINITY)).to_vec::<f64>().is_err());
    assert!(clipped.transform(&bad(f64::NAN)).to_vec::<f64>().unwrap()[1].is_nan());
}

#[test]
fn no_penalty_keeps_all_directions() {
    let x = array([1.0, 1e7, -1.0, 3e7, 2.0, -5e7, 0.5, 2e7]).reshape(&[4, 2]);
    let y = x.matmul(&array([3.0, 1e-7]));
    let model = Ridge::new().alpha(0.0).fit(&x, &y, ..).unwrap();
    assert!((model.coef[[0]] - 3.0).abs() < 1e-6 && (model.coef[[1]] - 1e-7).abs() < 1e-13, "{model:?}");
}

#[test]
fn lengths_of_large_and_small_samples() {
    let x = array([3e160, 4e160, 3e-170, 4e-170]).reshape(&[2, 2]);
    let made = Normalizer::new().transform(&x).to_vec::<f64>().unwrap();
    assert!(
        made.iter().zip([0.6, 0.8, 0.6, 0.8]).all(|(made, share)| (made - share).abs() < 1e-15),
        "{made:?}"
    );
}
