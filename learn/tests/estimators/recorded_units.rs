//! Models in other units of samples and targets, and of targets that are nearly linear, against recorded
//! answers of scikit-learn: each part up to its largest number.

use crate::oracle::{Answers, Case, cut, ways};
use ndarray::{ArrayD, Axis};
use tharsis_learn::decomposition::{Contrast, FactorAnalysis, FastICA};
use tharsis_learn::discriminant_analysis::QuadraticDiscriminantAnalysis;
use tharsis_learn::linear_model::{
    ARDRegression, BayesianRidge, Criterion, HuberRegressor, LassoLarsCV, LassoLarsIC,
    OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV, RidgeCV,
};
use tharsis_learn::svm::{LinearSVC, LinearSVR, TubeLoss};
use tharsis_numeric::{Tensor, array, eye, where_};

/// The unit of a feature in which it is far larger than the others.
const UNIT: f64 = 1e8;

/// Runs a check on each recorded fit of an estimator, with its samples and its targets in their units.
fn each(estimator: &str, check: impl Fn(&Case<'_>, &Tensor, &Tensor)) {
    let answers = Answers::alone("units.json");
    let cases = answers.of(estimator);
    for (at, case) in cases.iter().enumerate() {
        let mut x = case.x() * case.number("x_unit").unwrap_or(1.0);
        let mut second = x.index_axis_mut(Axis(1), 1);
        second *= case.number("column_unit").unwrap_or(1.0);
        let y = case.y() * case.number("y_unit").unwrap_or(1.0);
        for way in ways(at, cases.len()) {
            check(case, &cut(&x, way), &y);
        }
    }
}

fn one(number: f64) -> ArrayD<f64> {
    ndarray::arr0(number).into_dyn()
}

/// Samples, and targets or labels, of a set.
fn set(name: &str) -> (Tensor, Tensor) {
    let answers = Answers::alone("units.json");
    let part = |part: &str| Tensor::from_array(&answers.data(name, part));
    (part("x"), part("y"))
}

fn near(found: &ArrayD<f64>, expected: &ArrayD<f64>, tolerance: f64) -> bool {
    let largest = expected.iter().fold(0.0, |largest: f64, part| largest.max(part.abs()));
    found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= tolerance * largest)
}

#[test]
fn information_criteria_of_targets_that_are_nearly_linear() {
    each("LassoLarsIC", |case, x, y| {
        let criterion = if case.text("criterion") == Some("bic") { Criterion::Bic } else { Criterion::Aic };
        let estimator =
            LassoLarsIC::new().criterion(criterion).positive(case.is("positive").unwrap_or(false));
        let model = estimator.fit(x, y, ..).unwrap();
        // scikit-learn's path without negative coefficients does not lead to the minimum.
        if case.is("positive").is_none() {
            case.relative("coef", model.coef.clone(), 1e-12);
        }
        case.relative("noise_variance", one(model.noise_variance), 1e-7);
    });
    // Targets without noise leave rounding: the whole path is followed.
    let (x, y) = set("exact");
    let model = LassoLarsIC::new().fit(&x, &y, ..).unwrap();
    let expected = ArrayD::from_shape_vec(vec![6], vec![1e3, 0.0, 2.0, -5.0, 0.0, 1.0]).unwrap();
    assert!(near(&model.coef, &expected, 1e-9), "{model}");
    let none = LassoLarsIC::new().fit(&x, &(&y * 0.0), ..).unwrap();
    assert!(none.coef.iter().all(|&coef| coef == 0.0), "{none}");
}

#[test]
fn folds_of_targets_that_are_nearly_linear() {
    each("LassoLarsCV", |case, x, y| {
        let model = LassoLarsCV::new().cv(3).fit(x, y, ..).unwrap();
        let means = model.mse_path.mean_axis(Axis(1)).unwrap();
        case.relative("cv_alphas", model.cv_alphas.clone().into_dyn(), 1e-12);
        case.attribute("logs", means.mapv(f64::ln).into_dyn(), 1e-4);
        case.relative("alpha", one(model.alpha), 1e-4);
        case.relative("coef", model.coef.clone(), 1e-12);
    });
    each("OrthogonalMatchingPursuitCV", |case, x, y| {
        let model = OrthogonalMatchingPursuitCV::new().cv(3).fit(x, y, ..).unwrap();
        case.relative("n_nonzero_coefs", one(model.n_nonzero_coefs as f64), 0.0);
        case.relative("coef", model.coef.clone(), 1e-12);
    });
}

#[test]
fn evidence_of_fewer_samples_than_features() {
    each("BayesianRidge", |case, x, y| {
        if case.set() != "broad" {
            return;
        }
        let model = BayesianRidge::new().fit(x, y, ..).unwrap();
        case.relative("alpha", one(model.alpha), 1e-6);
        case.relative("coef", model.coef.clone(), 1e-6);
    });
    each("ARDRegression", |case, x, y| {
        if case.set() == "broad" {
            let model = ARDRegression::new().fit(x, y, ..).unwrap();
            case.relative("coef", model.coef.clone(), 1e-5);
        }
    });
}

#[test]
fn evidence_in_any_unit() {
    each("BayesianRidge", |case, x, y| {
        let model = BayesianRidge::new().fit(x, y, ..).unwrap();
        case.relative("coef", model.coef.clone(), 1e-6);
        case.relative("alpha", one(model.alpha), 1e-6);
        case.relative("lambda", one(model.lambda), 1e-6);
        case.relative("n_iter", one(model.n_iter as f64), 0.0);
        let deviations = model.predict_std(x).to_vec::<f64>().unwrap();
        assert!(deviations.iter().all(|&deviation| 0.0 < deviation), "{deviations:?}");
    });
    each("ARDRegression", |case, x, y| {
        let model = ARDRegression::new().fit(x, y, ..).unwrap();
        case.relative("coef", model.coef.clone(), 1e-5);
        // Of the largest samples all coefficients are taken away. scikit-learn does so later, as its own do
        // not solve the system to the digits that the variance needs.
        if case.number("x_unit").is_none_or(|unit| unit == 1.0) {
            case.relative("alpha", one(model.alpha), 1e-4);
            case.relative("n_iter", one(model.n_iter as f64), 0.0);
        }
    });
}

#[test]
fn support_vector_machines_in_any_unit() {
    each("LinearSVR", |case, x, y| {
        let model = LinearSVR::new().loss(TubeLoss::SquaredEpsilonInsensitive).fit(x, y, ..).unwrap();
        assert!(model.converged && 0 < model.n_iter);
        case.relative("coef", model.coef.clone(), 1e-3);
        let estimator = LinearSVR::new().loss(TubeLoss::SquaredEpsilonInsensitive).tol(1e-9);
        let model = estimator.fit(x, y, ..).unwrap();
        assert!(model.converged, "{}", model.n_iter);
        case.relative("coef", model.coef.clone(), 1e-6);
    });
    each("LinearSVC", |case, x, y| {
        let labels = y.astype(tharsis_numeric::DType::I64);
        let model = LinearSVC::new().fit_intercept(false).fit(x, &labels, ..).unwrap();
        assert!(model.converged && 0 < model.n_iter);
        // The penalty is next to nothing beside large samples, along which the slope has fallen long before.
        case.relative("coef", model.coef.clone().into_dyn(), 0.1);
        let model = LinearSVC::new().fit_intercept(false).tol(1e-9).fit(x, &labels, ..).unwrap();
        assert!(model.converged, "{}", model.n_iter);
        case.relative("coef", model.coef.clone().into_dyn(), 1e-5);
    });
}

#[test]
fn huber_regression_in_any_unit() {
    each("HuberRegressor", |case, x, y| {
        let model = HuberRegressor::new().fit(x, y, ..).unwrap();
        assert!(model.converged && model.n_iter < 60, "{} of {:?}", model.n_iter, case.number("y_unit"));
        case.relative("coef", model.coef.clone(), 1e-3);
        case.relative("scale", one(model.scale), 1e-3);
        case.relative("intercept", model.intercept.clone(), 2e-2);
    });
}

#[test]
fn pursuit_in_any_unit() {
    each("OrthogonalMatchingPursuit", |case, x, y| {
        let most = case.number("n_nonzero_coefs").map(|count| count as usize);
        let model = OrthogonalMatchingPursuit::new().n_nonzero_coefs(most).fit(x, y, ..).unwrap();
        case.relative("coef", model.coef.clone(), 1e-9);
        case.relative("n_iter", one(model.n_iter as f64), 0.0);
    });
    let (x, y) = set("noisy");
    let pursuit = OrthogonalMatchingPursuit::new().n_nonzero_coefs(3);
    let (folds, whole) = (OrthogonalMatchingPursuitCV::new(), pursuit.fit(&x, &y, ..).unwrap());
    let chosen = folds.fit(&x, &y, ..).unwrap();
    for unit in [1e-9, 1e-3, 1e9] {
        let model = pursuit.fit(&(&x * unit), &y, ..).unwrap();
        assert!(near(&(model.coef * unit), &whole.coef, 1e-12), "{unit}");
        let model = folds.fit(&(&x * unit), &y, ..).unwrap();
        assert!(near(&(model.coef * unit), &chosen.coef, 1e-12), "{unit}");
    }
}

#[test]
fn independent_sources_of_features_in_unlike_units() {
    each("FastICA", |case, x, _| {
        let fun = if case.text("fun") == Some("cube") { Contrast::Cube } else { Contrast::Logcosh };
        let estimator = FastICA::new().fun(fun).w_init(&eye(2, 2, 0)).tol(1e-10).max_iter(1000);
        let model = estimator.fit(x, ..).unwrap();
        assert!(model.converged);
        case.method("transform", &model.transform(x), 1e-5);
    });
    // A feature without variance is none, however far from zero it lies.
    let x = set("sources").0;
    let still = where_(&array([false, true]), 1e9 + 0.1, &x);
    let error = FastICA::new().fit(&still, ..).unwrap_err();
    assert!(error.to_string().starts_with("the samples vary in 1 directions"), "{error}");
}

/// Samples, the same with one feature in another unit, and targets.
fn unlike() -> (Tensor, Tensor, Tensor) {
    let (x, y) = set("noisy");
    let unlike = (&x * array([1.0, UNIT, 1.0, 1.0, 1.0, 1.0])).execute().unwrap();
    (x, unlike, y)
}

#[test]
fn discriminants_of_features_in_unlike_units() {
    let (x, unlike, _) = unlike();
    let labels = set("sides").1.astype(tharsis_numeric::DType::I64);
    let sides = |x: &Tensor| {
        let model = QuadraticDiscriminantAnalysis::new().fit(x, &labels, ..).unwrap();
        model.decision_function(x).fetch::<f64>().unwrap()
    };
    assert!(near(&sides(&unlike), &sides(&x), 1e-6));
}

#[test]
fn penalties_of_features_in_unlike_units() {
    let (x, unlike, y) = unlike();
    let line = |x: &Tensor| {
        let model = RidgeCV::new().alphas([1e-10, 1e-9]).fit(x, &y, ..).unwrap();
        (model.predict(x).fetch::<f64>().unwrap(), model.best_score)
    };
    let ((found, score), (expected, best)) = (line(&unlike), line(&x));
    assert!(near(&found, &expected, 1e-6) && (score / best - 1.0).abs() < 1e-6, "{score} {best}");
}

#[test]
fn factors_of_features_in_unlike_units() {
    let (x, unlike, _) = unlike();
    // The score has the logarithm of the unit.
    let factors = |x: &Tensor, unit: f64| {
        let first = [1.0, unit * unit, 1.0, 1.0, 1.0, 1.0];
        let factors = FactorAnalysis::new().n_components(2).noise_variance_init(&first).max_iter(20);
        factors.fit(x, ..).unwrap().score(x, ..).unwrap() + unit.ln()
    };
    let (found, expected) = (factors(&unlike, UNIT), factors(&x, 1.0));
    assert!((found - expected).abs() < 1e-5, "{found} {expected}");
}
