//! Maps of features against recorded answers of scikit-learn, each for several ways to cut the samples.

use crate::oracle::{Answers, Case, each};
use ndarray::{Array1, ArrayD, Axis};
use tharsis_learn::base::Estimator;
use tharsis_learn::feature_selection::{
    FittedSelect, ScoreFunction, SelectFdr, SelectFpr, SelectFwe, SelectKBest, SelectPercentile,
    VarianceThreshold,
};
use tharsis_learn::impute::{IndicatedFeatures, MissingIndicator, SimpleImputer, Statistic};
use tharsis_learn::preprocessing::{
    OutputDistribution, PolynomialFeatures, PowerMethod, PowerTransformer, QuantileTransformer, RobustScaler,
};
use tharsis_numeric::errstate::{ErrState, errstate};
use tharsis_numeric::{DType, Tensor, array};

/// Tolerance where an answer is a formula of sums.
const EXACT: f64 = 1e-10;
/// Tolerance of exponents, which scikit-learn searches by values of a flat function.
const SEARCHED: f64 = 1e-5;

/// Whether a map and its inverse lead back to the samples.
fn assert_back(x: &ArrayD<f64>, back: &Tensor, tolerance: f64) {
    for (back, x) in back.fetch::<f64>().unwrap().iter().zip(x) {
        assert!(
            (back - x).abs() <= tolerance * (1.0 + x.abs()) || x.is_nan() && back.is_nan(),
            "{back}, not {x}"
        );
    }
}

#[test]
fn robust_scaler() {
    each("RobustScaler", |case, x| {
        let mut estimator = RobustScaler::new().unit_variance(case.is("unit_variance").unwrap_or(false));
        if let Some(range) = case.numbers("quantile_range") {
            estimator = estimator.quantile_range(range[0], range[1]);
        }
        let model = estimator.fit(x, ..).unwrap();
        case.attribute("center", model.center.clone().into_dyn(), EXACT);
        case.attribute("scale", model.scale.clone().into_dyn(), EXACT);
        let made = model.transform(x);
        case.method("transform", &made, EXACT);
        assert_back(&case.x(), &model.inverse_transform(&made), 1e-12);
    });
}

#[test]
fn quantile_transformer() {
    each("QuantileTransformer", |case, x| {
        let is_normal = case.text("output_distribution") == Some("normal");
        let distribution = if is_normal { OutputDistribution::Normal } else { OutputDistribution::Uniform };
        let estimator = QuantileTransformer::new().n_quantiles(20).output_distribution(distribution);
        let model = estimator.fit(x, ..).unwrap();
        case.attribute("quantiles", model.quantiles.clone().into_dyn(), EXACT);
        case.attribute("references", model.references.clone().into_dyn(), EXACT);
        let made = model.transform(x);
        case.method("transform", &made, 1e-9);
        assert_back(&case.x(), &model.inverse_transform(&made), 1e-9);
    });
}

#[test]
fn equal_quantiles_divide_by_nothing() {
    let x = array([1.0, 1.0, 1.0, 2.0, 4.0, 4.0, 4.0]).reshape(&[7, 1]);
    let model = QuantileTransformer::new().n_quantiles(7).fit(&x, ..).unwrap();
    let guard = errstate(ErrState::default());
    let wide = array([0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0]).reshape(&[7, 1]);
    // The numbers of scikit-learn.
    let expected = [0.0, 0.0, 5.0 / 12.0, 0.5, 7.0 / 12.0, 1.0, 1.0];
    for (made, expected) in model.transform(&wide).to_vec::<f64>().unwrap().iter().zip(expected) {
        assert!((made - expected).abs() < 1e-12, "{made}, not {expected}");
    }
    assert_eq!(guard.take(), [""; 0]);
}

#[test]
fn polynomial_features() {
    each("PolynomialFeatures", |case, x| {
        let mut estimator = PolynomialFeatures::new()
            .interaction_only(case.is("interaction_only").unwrap_or(false))
            .include_bias(case.is("include_bias").unwrap_or(true));
        if let Some(degrees) = case.numbers("degree") {
            estimator = estimator.degrees(degrees[0] as usize, degrees[1] as usize);
        }
        let model = estimator.fit(x, ..).unwrap();
        case.attribute("powers", model.powers().astype(DType::F64).fetch::<f64>().unwrap(), 0.0);
        case.method("transform", &model.transform(x), 1e-12);
    });
}

#[test]
fn power_transformer() {
    each("PowerTransformer", |case, x| {
        let is_box_cox = case.text("method") == Some("box-cox");
        let method = if is_box_cox { PowerMethod::BoxCox } else { PowerMethod::YeoJohnson };
        let estimator = PowerTransformer::new().method(method);
        let model = estimator.standardize(case.is("standardize").unwrap_or(true)).fit(x, ..).unwrap();
        case.attribute("lambdas", model.lambdas.clone().into_dyn(), SEARCHED);
        let made = model.transform(x);
        case.method("transform", &made, 1e-3);
        assert_back(&case.x(), &model.inverse_transform(&made), 1e-6);
    });
}

/// Numbers from 1000 - 0.1 to 1000 + 0.1, whose powers are equal to ten digits and more: scikit-learn stops
/// at an exponent of -3.3, where the likelihood is less.
#[test]
fn powers_far_from_zero_keep_their_digits() {
    let x = Answers::read().data("plain", "x");
    let numbers: Vec<f64> = x.index_axis(Axis(1), 2).iter().copied().collect();
    let logs: Vec<f64> = numbers.iter().map(|x| x.ln_1p()).collect();
    let count = logs.len() as f64;
    let center = logs.iter().sum::<f64>() / count;
    // Up to a constant that no exponent changes.
    let standardized = |lambda: f64| -> (f64, Vec<f64>) {
        let bent: Vec<f64> = logs.iter().map(|log| ((log - center) * lambda).exp_m1() / lambda).collect();
        let mean = bent.iter().sum::<f64>() / count;
        let variance = bent.iter().map(|bent| (bent - mean).powi(2)).sum::<f64>() / count;
        (-0.5 * count * variance.ln(), bent.iter().map(|bent| (bent - mean) / variance.sqrt()).collect())
    };
    // Of arithmetic with sixty digits.
    let best = -905.831_117;
    for sign in [1.0, -1.0] {
        let signed: Vec<f64> = numbers.iter().map(|x| x * sign).collect();
        let samples = Tensor::from_elements(&[signed.len(), 1], &signed);
        let model = PowerTransformer::new().fit(&samples, ..).unwrap();
        let lambda = if sign < 0.0 { 2.0 - model.lambdas[0] } else { model.lambdas[0] };
        let (likelihood, expected) = standardized(lambda);
        assert!((lambda - best).abs() < 0.1, "{lambda}");
        assert!(standardized(best).0 - 1e-7 < likelihood && standardized(-3.305_3).0 + 0.05 < likelihood);
        let made = model.transform(&samples);
        for (made, expected) in made.to_vec::<f64>().unwrap().iter().zip(&expected) {
            assert!((made - sign * expected).abs() < 1e-9, "{made}, not {}", sign * expected);
        }
        assert_back(&samples.fetch::<f64>().unwrap(), &model.inverse_transform(&made), 1e-13);
    }
}

#[test]
fn numbers_of_the_other_sign_come_back() {
    for sign in [1.0, -1.0] {
        let samples = array([1.0, 2.0, 3.0, 5.0, 9.0]).reshape(&[5, 1]) * sign;
        let others = array([-0.001, -3.0, 0.0, 4.0]).reshape(&[4, 1]) * sign;
        let model = PowerTransformer::new().fit(&samples, ..).unwrap();
        let plain = PowerTransformer::new().standardize(false).fit(&samples, ..).unwrap();
        let made = model.transform(&others);
        assert_back(&others.fetch::<f64>().unwrap(), &model.inverse_transform(&made), 1e-9);
        assert_back(
            &others.fetch::<f64>().unwrap(),
            &plain.inverse_transform(&plain.transform(&others)),
            1e-9,
        );
        // Standardized numbers are those of the power, but for an offset and a factor.
        let ratios = |of: &Tensor| -> f64 {
            let of = of.to_vec::<f64>().unwrap();
            (of[1] - of[0]) / (of[3] - of[0])
        };
        assert!((ratios(&made) - ratios(&plain.transform(&others))).abs() < 1e-9);
    }
}

#[test]
fn simple_imputer() {
    each("SimpleImputer", |case, x| {
        let strategy = match case.text("strategy") {
            Some("median") => Statistic::Median,
            Some("most_frequent") => Statistic::MostFrequent,
            Some("constant") => Statistic::Constant(case.number("fill_value").unwrap()),
            _ => Statistic::Mean,
        };
        let model = SimpleImputer::new()
            .missing_values(case.number("missing_values").unwrap_or(f64::NAN))
            .strategy(strategy)
            .add_indicator(case.is("add_indicator").unwrap_or(false))
            .fit(x, ..)
            .unwrap();
        case.attribute("statistics", model.statistics.clone().into_dyn(), EXACT);
        let made = model.transform(x);
        case.method("transform", &made, EXACT);
        if model.indicator.is_some() {
            assert_back(&case.x(), &model.inverse_transform(&made).unwrap(), 0.0);
        }
    });
}

#[test]
fn features_without_numbers_are_left_out_or_kept() {
    let nan = f64::NAN;
    let x = array([1.0, nan, 4.0, nan, nan, 6.0]).reshape(&[2, 3]);
    let model = SimpleImputer::new().add_indicator(true).fit(&x, ..).unwrap();
    assert!(model.statistics[1].is_nan());
    let made = model.transform(&x);
    assert_eq!(made.to_vec::<f64>().unwrap(), [1.0, 4.0, 0.0, 1.0, 1.0, 6.0, 1.0, 1.0]);
    let back = model.inverse_transform(&made).unwrap().to_vec::<f64>().unwrap();
    assert_eq!((back[0], back[2], back[5]), (1.0, 4.0, 6.0));
    assert!([1, 3, 4].iter().all(|&at| back[at].is_nan()));
    let kept = SimpleImputer::new().keep_empty_features(true).fit(&x, ..).unwrap();
    assert_eq!(kept.transform(&x).to_vec::<f64>().unwrap(), [1.0, 0.0, 4.0, 1.0, 0.0, 6.0]);
    let kept = SimpleImputer::new().strategy(Statistic::Constant(7.0)).keep_empty_features(true);
    assert_eq!(kept.fit(&x, ..).unwrap().transform(&x).to_vec::<f64>().unwrap()[1], 7.0);
}

#[test]
fn missing_numbers_of_other_features_are_refused() {
    let nan = f64::NAN;
    let (x, other) = (array([nan, 1.0, 2.0, 3.0]).reshape(&[2, 2]), array([1.0, nan]).reshape(&[1, 2]));
    let model = MissingIndicator::new().fit(&x, ..).unwrap();
    let error = model.transform(&other).execute().unwrap_err();
    assert!(error.to_string().starts_with("The features have missing values in transform but"), "{error}");
    let model = MissingIndicator::new().error_on_new(false).fit(&x, ..).unwrap();
    assert_eq!(model.transform(&other).to_vec::<bool>().unwrap(), [false]);
    let model = MissingIndicator::new().features(IndicatedFeatures::All).fit(&x, ..).unwrap();
    assert_eq!(model.transform(&other).to_vec::<bool>().unwrap(), [false, true]);
}

#[test]
fn variance_threshold() {
    each("VarianceThreshold", |case, x| {
        let model = VarianceThreshold::new().fit(x, ..).unwrap();
        case.attribute("variances", model.variances.clone().into_dyn(), EXACT);
        case.method("transform", &model.transform(x), 0.0);
    });
    let error = VarianceThreshold::new().fit(&array([1.0, 1.0]).reshape(&[2, 1]), ..).unwrap_err();
    assert!(error.to_string().starts_with("No feature in X meets the variance threshold 0.00000"), "{error}");
}

fn score_func(case: &Case<'_>) -> ScoreFunction {
    match case.text("score_func").unwrap() {
        "chi2" => ScoreFunction::Chi2,
        "f_regression" => ScoreFunction::FRegression,
        _ => ScoreFunction::FClassif,
    }
}

fn selected(name: &str, fit: impl Fn(&Case<'_>, &Tensor, &Tensor) -> FittedSelect) {
    each(name, |case, x| {
        let model = fit(case, x, &case.y());
        // scikit-learn takes the means off sums of squares, which costs it digits of columns far from zero.
        let tolerance = if case.text("score_func") == Some("f_regression") { 1e-6 } else { 1e-9 };
        case.attribute("scores", model.scores.clone().into_dyn(), tolerance);
        let pvalues = model.pvalues.clone().into_dyn();
        case.attribute("pvalues", pvalues, tolerance);
        let made = model.transform(x);
        case.method("transform", &made, 0.0);
        // The way back has zeros for features that were left out.
        let chosen: Array1<f64> = model.support().iter().map(|&chosen| f64::from(u8::from(chosen))).collect();
        assert_back(&(case.x() * &chosen), &model.inverse_transform(&made), 0.0);
    });
}

#[test]
fn selectors() {
    let alpha = |case: &Case<'_>| case.number("alpha").unwrap();
    selected("SelectKBest", |case, x, y| {
        SelectKBest::new().k(2).score_func(score_func(case)).fit_any(x, Some(y), &(..).into()).unwrap()
    });
    selected("SelectPercentile", |case, x, y| {
        SelectPercentile::new().percentile(60.0).score_func(score_func(case)).fit(x, y, ..).unwrap()
    });
    selected("SelectFpr", |case, x, y| {
        SelectFpr::new().alpha(alpha(case)).score_func(score_func(case)).fit(x, y, ..).unwrap()
    });
    selected("SelectFdr", |case, x, y| {
        SelectFdr::new().alpha(alpha(case)).score_func(score_func(case)).fit(x, y, ..).unwrap()
    });
    selected("SelectFwe", |case, x, y| {
        SelectFwe::new().alpha(alpha(case)).score_func(score_func(case)).fit(x, y, ..).unwrap()
    });
}
