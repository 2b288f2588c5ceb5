//! Fits against what `oracle/record_trees.py` has recorded of scikit-learn.

use ndarray::{ArrayD, IxDyn};
use serde_json::Value;
use tharsis_learn::FitOptions;
use tharsis_learn::datasets::{Dataset, load_breast_cancer, load_diabetes, load_digits, load_wine};
use tharsis_learn::ensemble::{
    ExtraTreesClassifier, ExtraTreesRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor,
    IsolationForest, RandomForestClassifier, RandomForestRegressor, RegressionLoss,
};
use tharsis_learn::tree::{ClassCriterion, DecisionTreeClassifier, DecisionTreeRegressor};
use tharsis_numeric::{DType, Tensor, arange};

/// Tolerance of the sums of many slopes.
const BOOSTED: f64 = 1e-8;
const EXACT: f64 = 1e-9;

fn recorded() -> Value {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    let path = std::path::Path::new(&folder).join("tests/oracle/trees.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn array(value: &Value) -> ArrayD<f64> {
    let shape: Vec<usize> =
        value["shape"].as_array().expect("an array").iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let values = value["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap_or(f64::NAN));
    ArrayD::from_shape_vec(IxDyn(&shape), values.collect()).unwrap()
}

/// One fit.
struct Case<'a> {
    facts: &'a Value,
    x: Tensor,
    y: ArrayD<f64>,
    options: FitOptions,
    tolerance: f64,
}

/// Runs a check on each recorded fit of an estimator.
fn each(estimator: &str, tolerance: f64, check: impl Fn(&Case<'_>)) {
    let all = recorded();
    let mut count = 0;
    for facts in all["cases"].as_array().unwrap().iter().filter(|facts| facts["estimator"] == *estimator) {
        let set = &all["data"][facts["data"].as_str().unwrap()];
        let options = if facts["weights"] == true {
            FitOptions::new().sample_weight(&Tensor::from_array(&array(&set["w"])))
        } else {
            FitOptions::new()
        };
        let (x, y) = (Tensor::from_array(&array(&set["x"])), array(&set["y"]));
        check(&Case { facts, x, y, options, tolerance });
        count += 1;
    }
    assert!(5 < count, "{count} fits of {estimator} are recorded");
}

impl Case<'_> {
    fn number(&self, parameter: &str) -> Option<f64> {
        self.facts["params"][parameter].as_f64()
    }

    fn count(&self, parameter: &str) -> Option<usize> {
        self.number(parameter).map(|number| number as usize)
    }

    /// Whether a parameter is recorded as `None`.
    fn is_none(&self, parameter: &str) -> bool {
        self.facts["params"].get(parameter).is_some_and(Value::is_null)
    }

    fn text(&self, parameter: &str) -> Option<&str> {
        self.facts["params"][parameter].as_str()
    }

    fn targets(&self) -> Tensor {
        Tensor::from_array(&self.y)
    }

    fn labels(&self) -> Tensor {
        Tensor::from_array(&self.y.mapv(|label| label as i64))
    }

    fn method(&self, name: &str, found: &Tensor) {
        let expected = array(&self.facts["methods"][name]);
        let found = found.astype(DType::F64).fetch::<f64>().unwrap();
        let first =
            found.slice_axis(ndarray::Axis(0), ndarray::Slice::from(..expected.shape()[0])).to_owned();
        self.same(name, &expected, &first);
    }

    fn score(&self, found: f64) {
        self.same("score", &array(&self.facts["methods"]["score"]), &ndarray::arr0(found).into_dyn());
    }

    fn attribute(&self, name: &str, found: ArrayD<f64>) {
        if let Some(expected) = self.facts["attributes"].get(name) {
            self.same(name, &array(expected), &found);
        }
    }

    fn same(&self, name: &str, expected: &ArrayD<f64>, found: &ArrayD<f64>) {
        let Value::Object(facts) = self.facts else { panic!("facts are an object") };
        let case = format!("{name} of {} {} {}", facts["data"], facts["weights"], facts["params"]);
        assert_eq!(expected.shape(), found.shape(), "{case}");
        for (at, (&expected, &found)) in expected.iter().zip(found).enumerate() {
            let near = (expected - found).abs() <= self.tolerance * (1.0 + expected.abs());
            assert!(near, "{case}: [{at}] {found}, not {expected}");
        }
    }
}

#[test]
fn boosting_of_regressors() {
    each("HistGradientBoostingRegressor", BOOSTED, |case| {
        let mut estimator = HistGradientBoostingRegressor::new()
            .max_iter(case.count("max_iter").unwrap())
            .min_samples_leaf(case.count("min_samples_leaf").unwrap_or(20))
            .learning_rate(case.number("learning_rate").unwrap_or(0.1))
            .l2_regularization(case.number("l2_regularization").unwrap_or(0.0))
            .max_depth(case.count("max_depth"))
            .max_bins(case.count("max_bins").unwrap_or(255))
            .tol(case.number("tol").unwrap_or(1e-7))
            .n_iter_no_change(case.count("n_iter_no_change").unwrap_or(10))
            .early_stopping(case.facts["params"]["early_stopping"] == true);
        estimator = match case.text("loss") {
            Some("poisson") => estimator.loss(RegressionLoss::Poisson),
            Some("gamma") => estimator.loss(RegressionLoss::Gamma),
            _ => estimator,
        };
        if case.count("max_leaf_nodes").is_some() || case.is_none("max_leaf_nodes") {
            estimator = estimator.max_leaf_nodes(case.count("max_leaf_nodes"));
        }
        if case.is_none("validation_fraction") {
            estimator = estimator.validation_fraction(None);
        }
        let model = estimator.fit(&case.x, &case.targets(), &case.options).unwrap();
        case.method("predict", &model.predict(&case.x));
        if case.facts["methods"].get("score").is_some() {
            case.score(model.score(&case.x, &case.targets(), ..).unwrap());
        }
        case.attribute("n_iter", ndarray::arr0(model.n_iter as f64).into_dyn());
        case.attribute("train_score", model.train_score.into_dyn());
    });
}

#[test]
fn boosting_of_classifiers() {
    each("HistGradientBoostingClassifier", BOOSTED, |case| {
        let estimator = HistGradientBoostingClassifier::new()
            .max_iter(case.count("max_iter").unwrap())
            .min_samples_leaf(case.count("min_samples_leaf").unwrap());
        let model = estimator.fit(&case.x, &case.labels(), &case.options).unwrap();
        case.method("predict", &model.predict(&case.x));
        case.method("predict_proba", &model.predict_proba(&case.x));
        case.method("decision_function", &model.decision_function(&case.x));
        case.score(model.score(&case.x, &case.labels(), ..).unwrap());
    });
}

#[test]
fn trees_of_regressors() {
    each("DecisionTreeRegressor", EXACT, |case| {
        let mut estimator = DecisionTreeRegressor::new()
            .max_depth(case.count("max_depth"))
            .max_leaf_nodes(case.count("max_leaf_nodes"))
            .min_samples_leaf(case.count("min_samples_leaf").unwrap())
            .min_samples_split(case.count("min_samples_split").unwrap_or(2));
        estimator = estimator.min_impurity_decrease(case.number("min_impurity_decrease").unwrap_or(0.0));
        let model = estimator.fit(&case.x, &case.targets(), &case.options).unwrap();
        case.method("predict", &model.predict(&case.x));
        case.score(model.score(&case.x, &case.targets(), ..).unwrap());
        case.attribute("feature_importances", model.feature_importances.into_dyn());
    });
}

#[test]
fn trees_of_classifiers() {
    each("DecisionTreeClassifier", EXACT, |case| {
        let criterion = match case.text("criterion") {
            Some("entropy") => ClassCriterion::Entropy,
            _ => ClassCriterion::Gini,
        };
        let mut estimator = DecisionTreeClassifier::new()
            .criterion(criterion)
            .max_depth(case.count("max_depth"))
            .max_leaf_nodes(case.count("max_leaf_nodes"))
            .min_samples_leaf(case.count("min_samples_leaf").unwrap())
            .min_samples_split(case.count("min_samples_split").unwrap_or(2));
        estimator = estimator.min_impurity_decrease(case.number("min_impurity_decrease").unwrap_or(0.0));
        let model = estimator.fit(&case.x, &case.labels(), &case.options).unwrap();
        case.method("predict", &model.predict(&case.x));
        case.method("predict_proba", &model.predict_proba(&case.x));
        case.score(model.score(&case.x, &case.labels(), ..).unwrap());
        case.attribute("feature_importances", model.feature_importances.into_dyn());
    });
}

/// The mean score of scikit-learn's models, and the rows to train and to test with.
fn held_out(estimator: &str, name: &str) -> (f64, [Tensor; 4]) {
    let all = recorded();
    let mut rows = all["held_out"].as_array().unwrap().iter();
    let row = rows.find(|row| row["estimator"] == *estimator && row["data"] == *name).unwrap();
    let scores: Vec<f64> = row["scores"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
    let Dataset { data, target, .. } = match name {
        "breast_cancer" => load_breast_cancer(),
        "wine" => load_wine(),
        "digits" => load_digits(),
        _ => load_diabetes(),
    }
    .unwrap();
    let is_test = (arange(target.shape().unwrap()[0]) % 4).equal(0);
    let is_train = is_test.logical_not();
    let parts =
        [data.filter(&is_train), target.filter(&is_train), data.filter(&is_test), target.filter(&is_test)];
    (scores.iter().sum::<f64>() / scores.len() as f64, parts)
}

#[test]
fn classifiers_tell_new_samples_as_well() {
    for name in ["breast_cancer", "wine"] {
        let check = |estimator: &str, fit: &dyn Fn(&[Tensor; 4]) -> f64| {
            let (expected, parts) = held_out(estimator, name);
            let found = fit(&parts);
            assert!(expected - 0.02 < found, "{estimator} of {name}: {found}, scikit-learn {expected}");
        };
        check("RandomForestClassifier", &|[x, y, new, expected]| {
            RandomForestClassifier::new()
                .n_estimators(60)
                .fit(x, y, ..)
                .unwrap()
                .score(new, expected, ..)
                .unwrap()
        });
        check("ExtraTreesClassifier", &|[x, y, new, expected]| {
            ExtraTreesClassifier::new()
                .n_estimators(60)
                .fit(x, y, ..)
                .unwrap()
                .score(new, expected, ..)
                .unwrap()
        });
        check("HistGradientBoostingClassifier", &|[x, y, new, expected]| {
            HistGradientBoostingClassifier::new().fit(x, y, ..).unwrap().score(new, expected, ..).unwrap()
        });
    }
}

#[test]
fn regressors_tell_new_samples_as_well() {
    let check = |estimator: &str, fit: &dyn Fn(&[Tensor; 4]) -> f64| {
        let (expected, parts) = held_out(estimator, "diabetes");
        let found = fit(&parts);
        assert!(expected - 0.05 < found, "{estimator}: {found}, scikit-learn {expected}");
    };
    check("RandomForestRegressor", &|[x, y, new, expected]| {
        RandomForestRegressor::new().n_estimators(40).fit(x, y, ..).unwrap().score(new, expected, ..).unwrap()
    });
    check("ExtraTreesRegressor", &|[x, y, new, expected]| {
        ExtraTreesRegressor::new().n_estimators(40).fit(x, y, ..).unwrap().score(new, expected, ..).unwrap()
    });
    check("HistGradientBoostingRegressor", &|[x, y, new, expected]| {
        HistGradientBoostingRegressor::new().fit(x, y, ..).unwrap().score(new, expected, ..).unwrap()
    });
}

#[test]
fn isolation_scores_are_those_of_many_trees() {
    let all = recorded();
    let x = Tensor::from_array(&array(&all["isolation"]["x"]));
    let expected = array(&all["isolation"]["score_samples"]);
    let model = IsolationForest::new().n_estimators(1000).random_state(5).fit(&x, ..).unwrap();
    assert_eq!(model.offset, all["isolation"]["offset"].as_f64().unwrap());
    let found = model.score_samples(&x).fetch::<f64>().unwrap();
    let far = expected.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(far < 0.025, "{far}");
}
