//! Linear models by steps against recorded answers of scikit-learn, in the order of the samples and for
//! several ways to cut them.

use crate::oracle::{Case, each};
use ndarray::{Array1, ArrayD};
use tharsis_learn::Params;
use tharsis_learn::linear_model::{
    FittedStochasticClassifier, FittedStochasticRegressor, PassiveAggressiveClassifier,
    PassiveAggressiveRegressor, Perceptron, SGDClassifier, SGDRegressor,
};
use tharsis_numeric::{LocalExecutor, Tensor, array, ones};

/// The steps are the same; sums of products may differ in their last digits.
const SAME: f64 = 1e-9;

fn one(number: f64) -> ArrayD<f64> {
    ndarray::arr0(number).into_dyn()
}

/// The estimator with the parameters of a case, in the order of the samples.
fn set<E: Params>(mut estimator: E, case: &Case<'_>) -> E {
    estimator.set("shuffle", &false.into()).unwrap();
    case.configured(estimator)
}

fn same_classifier(case: &Case<'_>, x: &Tensor, model: &FittedStochasticClassifier) {
    case.attribute("coef", model.coef.clone().into_dyn(), SAME);
    case.attribute("intercept", model.intercept.clone().into_dyn(), SAME);
    case.attribute("n_iter", one(model.n_iter as f64), 0.0);
    case.attribute("t", one(model.t), 0.0);
    case.method("predict", &model.predict(x), 0.0);
    case.method("decision_function", &model.decision_function(x), SAME);
    case.score(model.score(x, &case.labels(), case.options()).unwrap(), SAME);
}

fn same_regressor(case: &Case<'_>, x: &Tensor, model: &FittedStochasticRegressor) {
    case.attribute("coef", model.coef.clone(), SAME);
    case.attribute("n_iter", one(model.n_iter as f64), 0.0);
    case.attribute("t", one(model.t), 0.0);
    case.method("predict", &model.predict(x), SAME);
    case.score(model.score(x, &case.y(), case.options()).unwrap(), SAME);
}

#[test]
fn classifiers() {
    each("SGDClassifier", |case, x| {
        let model = set(SGDClassifier::new(), case).fit(x, &case.labels(), case.options()).unwrap();
        same_classifier(case, x, &model);
        let classes: Array1<f64> = model.classes.iter().map(|&class| class as f64).collect();
        case.attribute("classes", classes.into_dyn(), 0.0);
        if matches!(case.text("loss"), Some("log_loss" | "modified_huber")) {
            case.method("predict_proba", &model.predict_proba(x), SAME);
        } else {
            let error = model.predict_proba(x).check().unwrap_err();
            assert!(error.to_string().starts_with("probability estimates are not available"), "{error}");
        }
    });
    each("Perceptron", |case, x| {
        same_classifier(case, x, &set(Perceptron::new(), case).fit(x, &case.labels(), ..).unwrap());
    });
    each("PassiveAggressiveClassifier", |case, x| {
        let estimator = set(PassiveAggressiveClassifier::new(), case);
        same_classifier(case, x, &estimator.fit(x, &case.labels(), ..).unwrap());
    });
}

#[test]
fn regressors() {
    each("SGDRegressor", |case, x| {
        let model = set(SGDRegressor::new(), case).fit(x, &case.y(), case.options()).unwrap();
        same_regressor(case, x, &model);
    });
    each("PassiveAggressiveRegressor", |case, x| {
        let model = set(PassiveAggressiveRegressor::new(), case).fit(x, &case.y(), ..).unwrap();
        same_regressor(case, x, &model);
    });
}

#[test]
fn orders_are_functions_of_the_seed() {
    each("Perceptron", |case, x| {
        let fit = |seed: u64, threads: usize| {
            let options =
                case.options().executor(std::sync::Arc::new(LocalExecutor::sized(threads, 1 << 28)));
            SGDClassifier::new().random_state(seed).fit(x, &case.labels(), options).unwrap()
        };
        assert_eq!(fit(1, 1).coef, fit(1, 3).coef);
        assert_ne!(fit(1, 1).coef, fit(2, 1).coef);
    });
}

#[test]
fn mistakes_are_told() {
    let (x, y) = (array([-2.0, -1.0, 1.0, 2.0]).reshape(&[4, 1]), array([0i64, 0, 1, 1]));
    let text = |error: tharsis_learn::Error| {
        assert_eq!((error.class(), error.location().file()), ("ValueError", file!()), "{error}");
        error.to_string()
    };
    let one_class = SGDClassifier::new().fit(&x, &ones(&[4]), ..).unwrap_err();
    assert!(text(one_class).starts_with("The number of classes has to be greater than one; got 1 class"));
    let far = SGDRegressor::new().fit(&(&x * 1e300), &y, ..).unwrap_err();
    assert!(text(far).starts_with("Floating-point under-/overflow occurred at epoch #1."));
    let nan = Perceptron::new().fit(&x, &array([0.0, 1.0, f64::NAN, 1.0]), ..).unwrap_err();
    assert!(text(nan).starts_with("Input y contains NaN."));
    let nan = PassiveAggressiveRegressor::new().fit(&(&x / 0.0), &y, ..).unwrap_err();
    assert!(text(nan).starts_with("Input X contains infinity"));
    for (refused, start) in [
        (SGDClassifier::new().alpha(0.0).fit(&x, &y, ..).err(), "alpha must be > 0 since learning_rate is"),
        (SGDClassifier::new().alpha(-1.0).fit(&x, &y, ..).err(), "The 'alpha' parameter of SGDClassifier"),
        (SGDClassifier::new().l1_ratio(2.0).fit(&x, &y, ..).err(), "The 'l1_ratio' parameter of SGD"),
        (SGDClassifier::new().eta0(0.0).fit(&x, &y, ..).err(), "The 'eta0' parameter of SGDClassifier"),
        (SGDClassifier::new().max_iter(0).fit(&x, &y, ..).err(), "The 'max_iter' parameter of SGD"),
        (SGDClassifier::new().tol(-1.0).fit(&x, &y, ..).err(), "The 'tol' parameter of SGDClassifier"),
        (Perceptron::new().n_iter_no_change(0).fit(&x, &y, ..).err(), "The 'n_iter_no_change' parameter"),
        (PassiveAggressiveClassifier::new().c(0.0).fit(&x, &y, ..).err(), "The 'C' parameter of Passive"),
    ] {
        let found = text(refused.expect("a mistake"));
        assert!(found.starts_with(start), "{found}");
    }
}
