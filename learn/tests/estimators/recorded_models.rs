//! Models of distributions against recorded answers of scikit-learn, each for several ways to cut the
//! samples.

use crate::oracle::{Case, each};
use ndarray::{Array1, ArrayD};
use tharsis_learn::covariance::{EmpiricalCovariance, FittedCovariance, LedoitWolf, OAS, ShrunkCovariance};
use tharsis_learn::discriminant_analysis::{LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis};
use tharsis_learn::linear_model::{
    FittedGeneralized, GammaRegressor, PoissonRegressor, RidgeClassifier, TweedieLink, TweedieRegressor,
};
use tharsis_numeric::Tensor;

/// Tolerance where an answer is a formula of sums.
const EXACT: f64 = 1e-9;
/// Tolerance where both sides search for an optimum.
const SEARCHED: f64 = 1e-6;

fn classes(classes: &[i64]) -> ArrayD<f64> {
    classes.iter().map(|&class| class as f64).collect::<Array1<f64>>().into_dyn()
}

#[test]
fn covariances() {
    fn same(name: &str, fit: impl Fn(&Case<'_>, &Tensor) -> FittedCovariance) {
        each(name, |case, x| {
            let model = fit(case, x);
            case.attribute("location", model.location.clone().into_dyn(), EXACT);
            case.attribute("covariance", model.covariance.clone().into_dyn(), EXACT);
            // The inverse of a matrix whose variances differ by 10^5.
            case.attribute("precision", model.precision.clone().into_dyn(), 1e-6);
            case.method("mahalanobis", &model.mahalanobis(x), 1e-6);
            case.score(model.score(x, ..).unwrap(), 1e-6);
        });
    }
    same("EmpiricalCovariance", |case, x| {
        let is_centered = case.is("assume_centered").unwrap_or(false);
        EmpiricalCovariance::new().assume_centered(is_centered).fit(x, ..).unwrap()
    });
    same("ShrunkCovariance", |case, x| {
        ShrunkCovariance::new().shrinkage(case.number("shrinkage").unwrap()).fit(x, ..).unwrap()
    });
    same("LedoitWolf", |_, x| LedoitWolf::new().fit(x, ..).unwrap());
    same("OAS", |_, x| OAS::new().fit(x, ..).unwrap());
}

#[test]
fn linear_discriminant_analysis() {
    each("LinearDiscriminantAnalysis", |case, x| {
        let mut estimator = LinearDiscriminantAnalysis::new();
        if let Some(priors) = case.numbers("priors") {
            estimator = estimator.priors(&priors);
        }
        let model = estimator.fit(x, &case.labels(), ..).unwrap();
        case.attribute("coef", model.coef.clone().into_dyn(), EXACT);
        case.attribute("intercept", model.intercept.clone().into_dyn(), EXACT);
        case.attribute("means", model.means.clone().into_dyn(), EXACT);
        case.attribute("xbar", model.xbar.clone().into_dyn(), EXACT);
        case.attribute("priors", model.priors.clone().into_dyn(), EXACT);
        case.attribute("explained_variance_ratio", model.explained_variance_ratio.clone().into_dyn(), EXACT);
        case.method("predict", &model.predict(x), 0.0);
        case.method("decision_function", &model.decision_function(x), EXACT);
        case.method("predict_proba", &model.predict_proba(x), EXACT);
        case.method("predict_log_proba", &model.predict_log_proba(x), 1e-8);
        // Directions have no sign.
        case.lengths("transform", &model.transform(x), EXACT);
        case.score(model.score(x, &case.labels(), ..).unwrap(), EXACT);
    });
}

#[test]
fn quadratic_discriminant_analysis() {
    each("QuadraticDiscriminantAnalysis", |case, x| {
        let mut estimator = QuadraticDiscriminantAnalysis::new().reg_param(case.number("reg_param").unwrap());
        if let Some(priors) = case.numbers("priors") {
            estimator = estimator.priors(&priors);
        }
        let model = estimator.fit(x, &case.labels(), ..).unwrap();
        case.attribute("means", model.means.clone().into_dyn(), EXACT);
        case.attribute("priors", model.priors.clone().into_dyn(), EXACT);
        case.attribute("scalings", model.scalings.clone().into_dyn(), EXACT);
        case.method("predict", &model.predict(x), 0.0);
        case.method("decision_function", &model.decision_function(x), EXACT);
        case.method("predict_proba", &model.predict_proba(x), EXACT);
        case.method("predict_log_proba", &model.predict_log_proba(x), 1e-8);
        case.score(model.score(x, &case.labels(), ..).unwrap(), EXACT);
    });
}

#[test]
fn ridge_classifier() {
    each("RidgeClassifier", |case, x| {
        let estimator = RidgeClassifier::new().alpha(case.number("alpha").unwrap_or(1.0));
        let estimator = estimator.fit_intercept(case.is("fit_intercept").unwrap_or(true));
        let model = estimator.fit(x, &case.labels(), case.options()).unwrap();
        // One row for two classes, where scikit-learn has no rows.
        let rows = if model.classes.len() == 2 {
            model.coef.row(0).to_owned().into_dyn()
        } else {
            model.coef.clone().into_dyn()
        };
        case.attribute("coef", rows, EXACT);
        case.attribute("classes", classes(&model.classes), 0.0);
        if case.is("fit_intercept").is_none() {
            case.attribute("intercept", model.intercept.clone().into_dyn(), EXACT);
        }
        case.method("predict", &model.predict(x), 0.0);
        case.method("decision_function", &model.decision_function(x), EXACT);
        case.score(model.score(x, &case.labels(), case.options()).unwrap(), EXACT);
    });
}

#[test]
fn generalized_linear_models() {
    fn same(name: &str, fit: impl Fn(&Case<'_>, &Tensor) -> FittedGeneralized) {
        each(name, |case, x| {
            let model = fit(case, x);
            assert!(model.converged, "{name}");
            case.attribute("coef", model.coef.clone(), SEARCHED);
            case.attribute("intercept", model.intercept.clone(), SEARCHED);
            case.method("predict", &model.predict(x), SEARCHED);
            case.score(model.score(x, &case.y(), case.options()).unwrap(), SEARCHED);
        });
    }
    same("PoissonRegressor", |case, x| {
        PoissonRegressor::new().tol(1e-9).max_iter(10_000).fit(x, &case.y(), case.options()).unwrap()
    });
    same("GammaRegressor", |case, x| {
        let estimator = GammaRegressor::new().alpha(case.number("alpha").unwrap()).tol(1e-9);
        estimator.max_iter(10_000).fit(x, &case.y(), case.options()).unwrap()
    });
    same("TweedieRegressor", |case, x| {
        let link = if case.text("link") == Some("log") { TweedieLink::Log } else { TweedieLink::Auto };
        TweedieRegressor::new()
            .power(case.number("power").unwrap())
            .alpha(case.number("alpha").unwrap_or(1.0))
            .fit_intercept(case.is("fit_intercept").unwrap_or(true))
            .link(link)
            .tol(1e-9)
            .max_iter(10_000)
            .fit(x, &case.y(), case.options())
            .unwrap()
    });
}
