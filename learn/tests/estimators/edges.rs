//! Data at the edges of what maps and scores of features take, with numbers of scikit-learn 1.9.1.

use tharsis_learn::base::Estimator;
use tharsis_learn::covariance::{EmpiricalCovariance, ShrunkCovariance};
use tharsis_learn::discriminant_analysis::QuadraticDiscriminantAnalysis;
use tharsis_learn::ensemble::VotingRegressor;
use tharsis_learn::feature_selection::{
    FittedSelectFromModel, RFE, ScoreFunction, SelectFromModel, SelectKBest, SelectPercentile,
    SequentialFeatureSelector, chi2, f_classif, f_regression,
};
use tharsis_learn::impute::{MissingIndicator, SimpleImputer};
use tharsis_learn::linear_model::{
    BayesianRidge, ElasticNet, Lasso, LinearRegression, LogisticRegression, LogisticRegressionCV,
    OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV, PoissonRegressor, Ridge, RidgeCV,
    RidgeClassifier,
};
use tharsis_learn::preprocessing::{
    PolynomialFeatures, PowerMethod, PowerTransformer, QuantileTransformer, RobustScaler,
};
use tharsis_learn::svm::LinearSVC;
use tharsis_learn::tree::DecisionTreeRegressor;
use tharsis_learn::{FitOptions, Save};
use tharsis_numeric::{DType, Tensor, arange, array, concatenate, ones, stack, where_};

/// Samples of one feature.
fn column(numbers: &[f64]) -> Tensor {
    Tensor::from_elements(&[numbers.len(), 1], numbers)
}

/// 21 numbers from exp(-2) to exp(2), evenly on a scale of logarithms.
fn logarithmic() -> Vec<f64> {
    (0..21).map(|at| (-2.0 + 0.2 * f64::from(at)).exp()).collect()
}

/// scikit-learn's scores of 0.1 are what rounding makes of them: 8.67 for 1000 samples, -3.5 for 10.
#[test]
fn a_constant_that_is_no_binary_fraction_is_not_chosen() {
    for rows in [10, 1000, 100_000] {
        let x = stack(&[&(ones(&[rows]) * 0.1), &(arange(rows) % 7).astype(DType::F64)], 1);
        let y = arange(rows) % 3;
        let found = f_classif(&x, &y, ..).unwrap();
        assert!(found.scores[0].is_nan() && found.pvalues[0].is_nan(), "{found:?}");
        if rows == 1000 {
            assert!((found.scores[1] - 5.24611632e-3).abs() < 1e-10, "{found:?}");
        }
        let model = SelectKBest::new().k(1).fit(&x, &y, ..).unwrap();
        assert_eq!(model.support(), [false, true]);
    }
}

#[test]
fn numbers_for_missing_ones_are_of_the_dtype_of_samples() {
    let x = array([1e20f32, 1.0, 2.0, 0.1, 4.0, 3.0]).reshape(&[3, 2]);
    let model = SimpleImputer::new().missing_values(1e20).add_indicator(true).fit(&x, ..).unwrap();
    assert_eq!(model.statistics[0], 3.0);
    assert_eq!(model.transform(&x).to_vec::<f32>().unwrap()[..3], [3.0, 1.0, 1.0]);
    let model = SimpleImputer::new().missing_values(0.1).fit(&x, ..).unwrap();
    assert_eq!(model.statistics[1], 2.0);
    assert_eq!(model.transform(&x).to_vec::<f32>().unwrap()[3], 2.0);
    let model = MissingIndicator::new().missing_values(0.1).fit(&x, ..).unwrap();
    assert_eq!(model.features, [1]);
    assert_eq!(model.transform(&x).to_vec::<bool>().unwrap(), [false, true, false]);
    assert_eq!(model.transform(&x.astype(DType::F64)).to_vec::<bool>().unwrap(), [false; 3]);
}

#[test]
fn missing_numbers_are_new_to_a_fit_without_any() {
    let complete = ones(&[3, 2]);
    let model = MissingIndicator::new().fit(&complete, ..).unwrap();
    assert_eq!(*model.transform(&complete).execute().unwrap().shape().unwrap(), [3, 0]);
    let error = model.transform(&(&complete * f64::NAN)).execute().map(drop).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().contains("have missing values in transform"), "{error}");
}

#[test]
fn exponents_of_small_numbers_are_far_away() {
    for (scale, exponent) in [(1e-3, -406.90044668), (1e-5, -40629.21154752)] {
        let x: Vec<f64> = logarithmic().iter().map(|number| number * scale).collect();
        let model = PowerTransformer::new().fit(&column(&x), ..).unwrap();
        assert!(model.converged && (model.lambdas[0] / exponent - 1.0).abs() < 1e-5, "{}", model.lambdas);
    }
}

#[test]
fn exponents_of_products_are_an_expression() {
    let powers = |columns: usize, degree: usize| {
        PolynomialFeatures::new().degree(degree).fit(&ones(&[1, columns]), ..).unwrap().powers()
    };
    let small = powers(2, 2);
    assert_eq!(small.dtype().unwrap(), DType::I64);
    assert_eq!(small.to_vec::<i64>().unwrap(), [0, 0, 1, 0, 0, 1, 2, 0, 1, 1, 0, 2]);
    // 8 TB.
    let error = powers(1_000_000, 1).execute().map(drop).unwrap_err();
    assert_eq!(error.class(), "MemoryError", "{error}");
}

/// Nine samples of two features; three of each class.
fn classes() -> (Tensor, Tensor) {
    let x = [0, 0, 1, 2, 2, 1, 4, 4, 5, 7, 6, 5, 8, 1, 9, 3, 9, 0];
    (array(x).reshape(&[9, 2]).astype(DType::F64), array([0i64, 0, 0, 1, 1, 1, 2, 2, 2]))
}

#[test]
fn exponents_of_numbers_far_from_one() {
    let shifted: Vec<f64> = logarithmic().iter().map(|number| number + 100.0).collect();
    let tiny: Vec<f64> = logarithmic().iter().map(|number| number * 1e-170).collect();
    let box_cox = PowerTransformer::new().method(PowerMethod::BoxCox);
    for (x, exponent) in [(shifted, -41.22995951), (tiny, 0.0)] {
        let found = box_cox.fit(&column(&x), ..).unwrap().lambdas[0];
        assert!((found - exponent).abs() < 1e-3, "{found}, not {exponent}");
    }
    for constant in [3.0, 0.1] {
        let error = box_cox.fit(&column(&[constant; 5]), ..).map(drop).unwrap_err();
        assert!(error.to_string().starts_with("Data must not be constant."), "{error}");
    }
}

#[test]
fn two_samples_tell_nothing() {
    let x = array([1.0, 2.0, 3.0, 2.0]).reshape(&[2, 2]);
    let found = f_regression(&x, &array([1.0, 2.0]), ..).unwrap();
    assert!(found.scores.iter().all(|&score| score == 0.0), "{found:?}");
    assert!(found.pvalues.iter().all(|p| p.is_nan()), "{found:?}");
    let found = chi2(&x, &ones(&[2]), ..).unwrap();
    assert!(found.scores.iter().chain(&found.pvalues).all(|number| number.is_nan()), "{found:?}");
}

/// 90 in a hundred of 11 features are 9.9; 1 less 0.9 is less than 0.1.
#[test]
fn percentiles_are_those_of_numpy() {
    let x = (arange(66).reshape(&[6, 11]) * arange(66).reshape(&[6, 11]) % 23).astype(DType::F64);
    let y = array([0.0, 1.0, 0.5, 3.0, 2.0, 7.0]);
    let select = SelectPercentile::new().percentile(90.0).score_func(ScoreFunction::FRegression);
    let model = select.fit(&x, &y, ..).unwrap();
    assert_eq!(model.support().iter().filter(|chosen| **chosen).count(), 9);
}

#[test]
fn numbers_that_are_not_finite_are_refused_by_maps() {
    let (x, y) = classes();
    let bad = |number: f64| array([number, 1.0]).reshape(&[1, 2]);
    let quantile = QuantileTransformer::new().n_quantiles(3).fit(&x, ..).unwrap();
    let best = SelectKBest::new().k(1).fit(&x, &y, ..).unwrap();
    let indicator = MissingIndicator::new().error_on_new(false).fit(&x, ..).unwrap();
    let imputer = SimpleImputer::new().fit(&x, ..).unwrap();
    let infinite = bad(f64::INFINITY);
    let by_all = [
        quantile.transform(&infinite),
        best.transform(&infinite),
        best.transform(&bad(f64::NAN)),
        indicator.transform(&infinite),
        imputer.transform(&infinite),
    ];
    for (at, made) in by_all.into_iter().enumerate() {
        let error = made.execute().map(drop).unwrap_err();
        assert!(error.to_string().starts_with("Input X contains"), "{at}: {error}");
    }
    assert!(quantile.transform(&bad(f64::NAN)).to_vec::<f64>().unwrap()[0].is_nan());
}

#[test]
fn chances_given_to_quadratic_models_stay() {
    let (x, y) = classes();
    let model = QuadraticDiscriminantAnalysis::new().priors(&[1.0, 1.0, 2.0]).fit(&x, &y, ..).unwrap();
    assert_eq!(model.priors.to_vec(), [1.0, 1.0, 2.0]);
    let scores = model.decision_function(&x).to_vec::<f64>().unwrap();
    for (score, wanted) in scores.iter().zip([-0.45069386, -21.60151948, -170.75754668]) {
        assert!((score - wanted).abs() < 1e-7, "{score}, not {wanted}");
    }
}

#[test]
fn ridge_classifier_without_penalty_and_of_one_class() {
    let (x, y) = classes();
    let model = RidgeClassifier::new().alpha(0.0).fit(&x, &y.greater(0), ..).unwrap();
    assert!((model.coef[[0, 0]] - 0.23793538).abs() < 1e-7, "{}", model.coef);
    assert!((model.intercept[0] + 1.24653798).abs() < 1e-7, "{}", model.intercept);
    let model = RidgeClassifier::new().fit(&x, &ones(&[9]).astype(DType::I64), ..).unwrap();
    assert_eq!((model.coef.sum(), model.intercept[0]), (0.0, -1.0));
    assert_eq!(model.predict(&x).to_vec::<i64>().unwrap(), [1; 9]);
}

/// scikit-learn keeps the column for `LinearRegression` alone.
#[test]
fn one_column_of_targets_is_as_one_axis() {
    let (x, _) = classes();
    let y = x.matmul(&array([0.5, -2.0]).reshape(&[2, 1]));
    let shape = |made: Tensor| made.shape().unwrap().to_vec();
    for alpha in [0.0, 1.0] {
        let model = Ridge::new().alpha(alpha).fit(&x, &y, ..).unwrap();
        assert_eq!((model.coef.shape(), model.intercept.shape()), (&[2][..], &[][..]), "{alpha}");
        assert_eq!(shape(model.predict(&x)), [9]);
        let flat = Ridge::new().alpha(alpha).fit(&x, &y.squeeze(Some(&[1])), ..).unwrap();
        let distance = (&model.coef - &flat.coef).mapv(f64::abs).sum();
        assert!(distance < 1e-12 && model.score(&x, &y, ..).unwrap() > 0.9, "{alpha}: {distance}");
    }
    assert_eq!(shape(RidgeCV::new().fit(&x, &y, ..).unwrap().predict(&x)), [9]);
    assert_eq!(shape(Lasso::new().fit(&x, &y, ..).unwrap().predict(&x)), [9]);
    assert_eq!(shape(ElasticNet::new().fit(&x, &y, ..).unwrap().predict(&x)), [9]);
    assert_eq!(shape(LinearRegression::new().fit(&x, &y, ..).unwrap().predict(&x)), [9, 1]);
}

#[test]
fn one_quantile_has_no_distance_of_a_normal_distribution() {
    let x = column(&[1.0, 2.0, 4.0]);
    let model = RobustScaler::new().quantile_range(50.0, 50.0).unit_variance(true).fit(&x, ..).unwrap();
    assert_eq!(model.scale[0], f64::INFINITY);
    assert_eq!(model.transform(&x).to_vec::<f64>().unwrap(), [0.0; 3]);
}

#[test]
fn collinear_samples_have_no_likelihood() {
    let x = array([0.0, 1.5, 4.0, 7.25]).reshape(&[4, 1]);
    let collinear = tharsis_numeric::concatenate(&[&x, &(&x * 3.0), &(&x * -0.7 + 2.0)], 1);
    for samples in [&collinear, &ones(&[4, 2])] {
        let model = EmpiricalCovariance::new().fit(samples, ..).unwrap();
        assert_eq!(model.score(samples, ..).unwrap(), f64::NEG_INFINITY);
    }
    let model = ShrunkCovariance::new().shrinkage(0.5).fit(&collinear, ..).unwrap();
    assert!(model.score(&collinear, ..).unwrap().is_finite());
}

/// scikit-learn takes groups by any numbers.
#[test]
fn groups_of_scores_need_no_whole_numbers() {
    let (x, y) = classes();
    let whole = f_classif(&x, &y, ..).unwrap();
    let fractions = f_classif(&x, &(&y * 0.75 - 0.3), ..).unwrap();
    assert_eq!((whole.scores, whole.pvalues), (fractions.scores, fractions.pvalues));
    let gap = where_(&y.equal(1), f64::NAN, y.astype(DType::F64));
    let error = f_classif(&x, &gap, ..).unwrap_err().to_string();
    assert!(error.starts_with("Input y contains NaN."), "{error}");
    // Counts are of labels.
    let error = chi2(&x, &(&y * 0.75), ..).unwrap_err().to_string();
    assert!(error.starts_with("Unknown label type: continuous."), "{error}");
}

/// Twelve samples of two features, and two classes that their difference tells apart, but for one sample.
fn leaning() -> (Tensor, Tensor) {
    let rows = [0.0, 0.75, 2.0, 1.5, 0.25, 3.0, 1.0, 2.5, 3.5, 0.5, 1.25, 2.25];
    let others = [1.0, 0.0, 1.25, 3.0, 1.5, 2.0, 2.75, 0.5, 1.0, 2.0, 3.25, 3.5];
    let [a, b] = [rows, others].map(|numbers| array(numbers));
    let y = (&a - &b).greater(0.0).astype(DType::I64);
    let y = where_(&arange(12).equal(3), 1, &y);
    (stack(&[&a, &b], 1), y)
}

fn assert_near(found: &Tensor, wanted: &Tensor, tolerance: f64) {
    let [found, wanted] = [found, wanted].map(|numbers| numbers.to_vec::<f64>().unwrap());
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * (1.0 + b.abs());
    assert!(found.iter().zip(&wanted).all(near), "{found:?}, not {wanted:?}");
}

/// The penalty of an intercept that is the coefficient of one more feature forbids large ones, so that of
/// samples far from zero only directions across their mean are left: here one, with any intercept.
#[test]
fn planes_of_samples_far_from_zero_lie_along_their_mean() {
    let (x, y) = leaning();
    let column = |at: i64| x.get(&[(..).into(), (at..at + 1).into()]);
    let across = (column(0) - column(1)) * std::f64::consts::FRAC_1_SQRT_2;
    let machine = || LinearSVC::new().tol(1e-7).max_iter(10_000);
    let near = machine().intercept_scaling(1e6).fit(&across, &y, ..).unwrap();
    let wanted = near.decision_function(&across);
    for far in [1e7, 1e9] {
        let samples = (&x + far).execute().unwrap();
        let model = machine().fit(&samples, &y, ..).unwrap();
        assert!(model.converged && model.n_iter < 100, "{model:?}");
        assert_near(&model.decision_function(&samples), &wanted, 1e-5);
        assert!(0.9 < model.score(&samples, &y, ..).unwrap());
    }
}

/// A sample at zero among those is a matter of the intercept alone, and others lie as without it.
#[test]
fn planes_of_far_samples_do_not_depend_on_one_at_zero() {
    let (x, y) = leaning();
    let others = arange(12).not_equal(5);
    let machine = || LinearSVC::new().tol(1e-7).max_iter(10_000);
    let samples = where_(&others.expand_dims(1), &x + 1e9, 0.0).execute().unwrap();
    let without = machine().fit(&(&x + 1e9).filter(&others), &y.filter(&others), ..).unwrap();
    let wanted = without.decision_function(&(&x + 1e9).filter(&others));
    for weight in [0.0, 1.0] {
        let weights = where_(&others, 1.0, weight).execute().unwrap();
        let model = machine().fit(&samples, &y, FitOptions::new().sample_weight(&weights)).unwrap();
        assert!(model.n_iter < 200, "{model:?}");
        assert_near(&model.decision_function(&samples.filter(&others)), &wanted, 1e-4);
    }
}

/// An intercept without penalty takes any distance from zero off.
#[test]
fn samples_far_from_zero_have_the_models_of_near_ones() {
    let (x, y) = leaning();
    let logistic = || LogisticRegression::new().tol(1e-7).max_iter(10_000);
    let poisson = || PoissonRegressor::new().tol(1e-7).max_iter(10_000);
    let near = logistic().fit(&x, &y, ..).unwrap();
    let counts = poisson().fit(&x, &y, ..).unwrap();
    for far in [1e6, 1e9] {
        let samples = (&x + far).execute().unwrap();
        let model = logistic().fit(&samples, &y, ..).unwrap();
        assert!(model.converged && model.n_iter < 100, "{model:?}");
        assert_near(&model.decision_function(&samples), &near.decision_function(&x), 1e-5);
        let model = poisson().fit(&samples, &y, ..).unwrap();
        assert!(model.converged && model.n_iter < 100, "{model:?}");
        assert_near(&model.predict(&samples), &counts.predict(&x), 1e-5);
    }
}

/// Without an intercept the coefficients along the samples tell it, which are as small as these are far: any
/// intercept costs nothing, and only directions across are left, here one.
#[test]
fn lines_through_zero_have_the_models_of_near_samples() {
    let (x, y) = leaning();
    let column = |at: i64| x.get(&[(..).into(), (at..at + 1).into()]);
    let across = (column(0) - column(1)) * std::f64::consts::FRAC_1_SQRT_2;
    let logistic = || LogisticRegression::new().tol(1e-7).max_iter(10_000);
    let poisson = || PoissonRegressor::new().tol(1e-7).max_iter(10_000);
    let near = logistic().fit(&across, &y, ..).unwrap();
    let counts = poisson().fit(&across, &y, ..).unwrap();
    for far in [1e7, 1e9] {
        let samples = (&x + far).execute().unwrap();
        let model = logistic().fit_intercept(false).fit(&samples, &y, ..).unwrap();
        assert!(model.converged && model.n_iter < 100 && model.intercept[0] == 0.0, "{model:?}");
        assert_near(&model.decision_function(&samples), &near.decision_function(&across), 1e-5);
        let model = poisson().fit_intercept(false).fit(&samples, &y, ..).unwrap();
        assert!(model.converged && model.n_iter < 100 && model.intercept.sum() == 0.0, "{model:?}");
        assert_near(&model.predict(&samples), &counts.predict(&across), 1e-5);
    }
}

/// Least squares through zero, by samples whose products have lost all digits across their mean.
#[test]
fn penalties_of_lines_through_zero_are_those_of_near_samples() {
    let (x, _) = leaning();
    let column = |at: i64| x.get(&[(..).into(), (at..at + 1).into()]);
    let across = (column(0) - column(1)) * std::f64::consts::FRAC_1_SQRT_2;
    let y = array([-0.5, 1.0, 0.25, -2.0, -1.5, 1.25, -1.0, 2.5, 2.0, -2.25, -1.0, -2.0]);
    let alphas = [0.1, 1.0, 10.0];
    let near = RidgeCV::new().alphas(alphas).fit(&across, &y, ..).unwrap();
    let line = LinearRegression::new().fit(&across, &y, ..).unwrap();
    for far in [1e7, 1e9] {
        let samples = (&x + far).execute().unwrap();
        let model = RidgeCV::new().alphas(alphas).fit_intercept(false).fit(&samples, &y, ..).unwrap();
        assert_eq!((model.alpha, model.intercept.sum()), (near.alpha, 0.0));
        assert!((model.best_score - near.best_score).abs() < 1e-5, "{model:?}, not {near:?}");
        assert_near(&model.predict(&samples), &near.predict(&across), 1e-5);
        let ridge = Ridge::new().alpha(near.alpha).fit_intercept(false).fit(&samples, &y, ..).unwrap();
        assert_near(&ridge.predict(&samples), &near.predict(&across), 1e-5);
        // Its default, as that of scikit-learn, leaves directions out that are so narrow.
        let model = LinearRegression::new().tol(1e-12).fit_intercept(false);
        let model = model.fit(&samples, &y, ..).unwrap();
        assert_near(&model.predict(&samples), &line.predict(&across), 1e-5);
    }
}

/// With the numbers of scikit-learn, which takes singular values of the samples. Their products are off by
/// 1e-2.
#[test]
fn variances_of_lines_through_zero_keep_digits_of_far_samples() {
    let (x, _) = leaning();
    let y = array([-0.5, 1.0, 0.25, -2.0, -1.5, 1.25, -1.0, 2.5, 2.0, -2.25, -1.0, -2.0]);
    let model = BayesianRidge::new().fit_intercept(false).fit(&(&x + 1e7), &y, ..).unwrap();
    let found = [model.coef[[0]], model.coef[[1]], model.alpha, model.lambda];
    let expected = [0.93602708, -0.93602708, 2.4326187120188845, 1.1226244201800037];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}, not {expected:?}");
    assert_eq!((model.n_iter, model.intercept.sum()), (5, 0.0));
}

/// The third part of the target is across all features, so that the least squares on the first two are half
/// their difference exactly. A pursuit of products is off by 1e-2.
#[test]
fn a_pursuit_through_zero_keeps_digits_of_far_samples() {
    let sign = |half: i64| (arange(8).floor_divide(half) % 2) * -2.0 + 1.0;
    let [a, b, c] = [sign(1), sign(2), sign(4)];
    let x = stack(&[&(&a * 2.0), &(&b * 0.75), &(&a * &b)], 1) + 3e7;
    let y = &a - &b * 0.375 + &c;
    let pursuit = OrthogonalMatchingPursuit::new().fit_intercept(false);
    for estimator in [pursuit.clone().n_nonzero_coefs(2), pursuit.clone().tol(8.5)] {
        let model = estimator.fit(&x, &y, ..).unwrap();
        let (found, expected) = ([model.coef[[0]], model.coef[[1]], model.coef[[2]]], [0.5, -0.5, 0.0]);
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
        assert_eq!((model.n_iter, model.intercept.sum()), (2, 0.0));
    }
    // The first one of equal columns, and no more features than have a part of the target.
    let twice = stack(&[&(&a * 2.0), &(&a * 2.0), &b], 1);
    let model = pursuit.n_nonzero_coefs(3).fit(&twice, &(&a + &b * 0.5), ..).unwrap();
    let (found, expected) = ([model.coef[[0]], model.coef[[1]], model.coef[[2]]], [0.5, 0.0, 0.5]);
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    assert_eq!(model.n_iter, 2);
    // Each fold has the same samples, so that its pursuit is that of all.
    let thrice = |of: &Tensor| concatenate(&[of, of, of], 0);
    let folds = OrthogonalMatchingPursuitCV::new().fit_intercept(false).max_iter(2).cv(3);
    let model = folds.fit(&thrice(&x), &thrice(&y), ..).unwrap();
    let (found, expected) = ([model.coef[[0]], model.coef[[1]], model.coef[[2]]], [0.5, -0.5, 0.0]);
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
    assert_eq!((model.n_nonzero_coefs, model.n_iter), (2, 2));
}

/// 49 times a 49th is less than 1.
#[test]
fn the_largest_number_has_all_shares() {
    let numbers: Vec<f64> = (0..50).map(|at| 1.5f64.powi(at)).collect();
    let x = column(&numbers);
    let model = QuantileTransformer::new().fit(&x, ..).unwrap();
    let made = model.transform(&x);
    assert_eq!(made.to_vec::<f64>().unwrap()[49], 1.0);
    assert_eq!(model.inverse_transform(&made).to_vec::<f64>().unwrap()[49], numbers[49]);
}

/// Steps for a value of `C` begin where those for the value before have ended, as in scikit-learn.
#[test]
fn steps_of_a_path_begin_at_the_model_before() {
    let (x, y) = leaning();
    let estimator = LogisticRegressionCV::new().cv(3).tol(1e-6).max_iter(1_000);
    let twice = estimator.clone().cs([1.0, 1.0]).fit(&x, &y, ..).unwrap();
    for steps in twice.n_iter.rows() {
        assert!(2 < steps[0] && steps[1] <= 1, "{steps}");
    }
    let far = estimator.clone().cs([1.0, 1.0]).fit(&(&x + 1e9), &y, ..).unwrap();
    assert!(far.n_iter.rows().into_iter().all(|steps| steps[1] <= 1 && 2 < steps[0]), "{}", far.n_iter);
    // The refit begins at the mean of the models of the folds, which agree if each has the same samples.
    let thrice = |of: &Tensor| concatenate(&[of, of, of], 0);
    let (all, labels) = (thrice(&x), thrice(&y));
    let agreed = estimator.clone().cs([1e6]).fit(&all, &labels, ..).unwrap();
    let cold = LogisticRegression::new().c(1e6).tol(1e-6).max_iter(1_000).fit(&all, &labels, ..).unwrap();
    assert!(agreed.model.n_iter <= 2 && 4 < cold.n_iter, "{} {}", agreed.model.n_iter, cold.n_iter);
    assert_near(&agreed.decision_function(&x), &cold.decision_function(&x), 1e-3);
    let path = estimator.cs([1.0, 1.001]).fit(&x, &y, ..).unwrap();
    assert!(path.n_iter.rows().into_iter().all(|steps| steps[1] < steps[0]), "{}", path.n_iter);
}

/// Selectors hand on what the estimator takes by which they choose, also from a file.
#[test]
fn selectors_take_nan_if_their_estimators_do() {
    let (x, y) = classes();
    let gaps = where_(&x.equal(9.0), f64::NAN, &x).execute().unwrap();
    let by_trees = SelectFromModel::new(DecisionTreeRegressor::new()).fit(&gaps, &y, ..).unwrap();
    let read = FittedSelectFromModel::from_bytes(&by_trees.to_bytes().unwrap()).unwrap();
    for model in [&by_trees, &read] {
        assert_eq!(*model.transform(&gaps).execute().unwrap().shape().unwrap(), [9, 1]);
    }
    let by_lines = [
        SelectFromModel::new(Ridge::new()).fit(&x, &y, ..).unwrap().transform(&gaps),
        RFE::new(Ridge::new()).fit(&x, &y, ..).unwrap().transform(&gaps),
    ];
    for made in by_lines {
        let error = made.execute().map(drop).unwrap_err();
        assert!(error.to_string().starts_with("Input X contains NaN."), "{error}");
    }
    let error = SequentialFeatureSelector::new(Ridge::new()).fit(&gaps, &y, ..).unwrap_err();
    assert!(error.to_string().starts_with("Input X contains NaN (first in column 0)."), "{error}");
    let voting = VotingRegressor::new().estimator("tree", DecisionTreeRegressor::new());
    assert!(voting.takes_nan() && !voting.estimator("line", Ridge::new()).takes_nan());
}
