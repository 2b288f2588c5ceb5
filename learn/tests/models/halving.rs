//! Searches by halving beside recorded answers of scikit-learn, and what is refused.

use serde_json::{Value, json};
use tharsis_learn::datasets::{load_diabetes, load_iris};
use tharsis_learn::linear_model::{Lasso, LogisticRegression, Ridge};
use tharsis_learn::model_selection::{
    Distribution, FittedHalving, HalvingGridSearchCV, HalvingRandomSearchCV, KFold, MinResources,
    ParamDistributions, ParamGrid, Validation,
};
use tharsis_learn::tree::DecisionTreeRegressor;
use tharsis_numeric::Tensor;

fn answers() -> Value {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    let path = std::path::Path::new(&folder).join("tests/oracle/halving.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn diabetes() -> [Tensor; 2] {
    let data = load_diabetes().unwrap();
    [data.data, data.target]
}

/// The numbers of the rounds.
fn rounds<M>(found: &FittedHalving<M>) -> Value {
    json!({
        "n_resources": found.n_resources,
        "n_candidates": found.n_candidates,
        "n_remaining_candidates": found.n_remaining_candidates,
        "max_resources": found.max_resources,
        "min_resources": found.min_resources,
        "n_required_iterations": found.n_required_iterations,
        "n_possible_iterations": found.n_possible_iterations,
    })
}

/// A search through so many penalties.
fn ridges(count: i64) -> HalvingGridSearchCV<Ridge> {
    let alphas = (1..=count).map(|at| at as f64 / 8.0);
    HalvingGridSearchCV::new(Ridge::new(), ParamGrid::new().values("alpha", alphas))
}

#[test]
fn rounds_are_those_of_scikit_learn() {
    let recorded = &answers()["rounds"];
    let [x, y] = diabetes();
    let check = |name: &str, search: HalvingGridSearchCV<Ridge>| {
        assert_eq!(rounds(&search.fit(&x, &y, ..).unwrap()), recorded[name], "{name}");
    };
    check("default", ridges(20));
    check("factor", ridges(20).factor(2.0));
    check("part", ridges(20).factor(2.5));
    check("smallest", ridges(20).min_resources(MinResources::Smallest));
    check("few", ridges(20).max_resources(100).min_resources(MinResources::Count(20)));
    check(
        "aggressive",
        ridges(20).max_resources(100).min_resources(MinResources::Count(20)).aggressive_elimination(true),
    );
    check("one", ridges(1));
    // Two samples for each fold and class.
    let iris = load_iris().unwrap();
    let grid = ParamGrid::new().values("C", [0.1, 1.0, 10.0, 100.0]);
    let search = HalvingGridSearchCV::new(LogisticRegression::new(), grid);
    let validation = Validation { cv: 3.into(), ..Validation::default() };
    let search = search.min_resources(MinResources::Smallest).validation(validation);
    let found = search.fit(&iris.data, &iris.target, ..).unwrap();
    assert_eq!(rounds(&found), recorded["classes"]);
    let drawn = ParamDistributions::new().draw("alpha", Distribution::Uniform { low: 0.1, high: 2.0 });
    let random = || HalvingRandomSearchCV::new(Ridge::new(), drawn.clone());
    assert_eq!(rounds(&random().fit(&x, &y, ..).unwrap()), recorded["random"]);
    let few = random().n_candidates(7).min_resources(MinResources::Exhaust);
    assert_eq!(rounds(&few.fit(&x, &y, ..).unwrap()), recorded["random_few"]);
}

#[test]
fn scores_of_another_resource_are_those_of_scikit_learn() {
    let recorded = &answers()["scores"];
    let [x, y] = diabetes();
    let grid = ParamGrid::new()
        .values("min_samples_leaf", [1i64, 5, 20, 40])
        .values("min_samples_split", [2i64, 30]);
    let validation =
        Validation { cv: KFold { n_splits: 4, ..KFold::default() }.into(), ..Validation::default() };
    let search = HalvingGridSearchCV::new(DecisionTreeRegressor::new(), grid).validation(validation);
    let search =
        search.factor(2.0).resource("max_depth").max_resources(6).min_resources(MinResources::Count(1));
    let found = search.fit(&x, &y, ..).unwrap();
    assert_eq!(rounds(&found), recorded["rounds"]);
    let results = &found.search.cv_results;
    let texts: Vec<Vec<String>> = results
        .params
        .iter()
        .map(|candidate| candidate.iter().map(|(name, value)| format!("{name}={value}")).collect())
        .collect();
    assert_eq!(json!(texts), recorded["params"]);
    assert_eq!(found.search.best_index, recorded["best_index"]);
    for (found, recorded) in results.mean_test_score.iter().zip(recorded["mean"].as_array().unwrap()) {
        assert!((found - recorded.as_f64().unwrap()).abs() < 1e-9, "{found} {recorded}");
    }
    assert!((found.search.best_score - recorded["best_score"].as_f64().unwrap()).abs() < 1e-9);
    assert_eq!(found.predict(&x).shape().unwrap(), [442]);
}

#[test]
fn draws_of_samples_are_functions_of_the_seed() {
    let [x, y] = diabetes();
    let scores = |seed| {
        let found = ridges(9).random_state(seed).fit(&x, &y, ..).unwrap();
        found.search.cv_results.mean_test_score.to_vec()
    };
    assert_eq!(scores(1), scores(1));
    assert_ne!(scores(1), scores(2));
    // The last round of all samples has the scores of a search of all samples.
    let found = ridges(1).fit(&x, &y, ..).unwrap();
    let grid = ParamGrid::new().values("alpha", [0.125]);
    let plain =
        tharsis_learn::model_selection::GridSearchCV::new(Ridge::new(), grid).fit(&x, &y, ..).unwrap();
    assert_eq!(found.search.best_score, plain.best_score);
}

#[test]
fn mistakes_are_told_as_scikit_learn_does() {
    let [x, y] = diabetes();
    let text = |search: HalvingGridSearchCV<Ridge>| search.fit(&x, &y, ..).unwrap_err().to_string();
    let lines = [
        (
            ridges(3).resource("max_depth").max_resources(9),
            "Cannot use resource=max_depth which is not supported by estimator Ridge()",
        ),
        (
            ridges(3).resource("alpha").max_resources(9),
            "Cannot use parameter alpha as the resource since it is part of the searched parameters.",
        ),
        (ridges(3).resource("alpha"), "resource can only be 'n_samples' when max_resources='auto'"),
        (
            ridges(3).max_resources(5).min_resources(MinResources::Count(6)),
            "min_resources_=6 is greater than max_resources_=5.",
        ),
        (
            ridges(3).min_resources(MinResources::Count(0)),
            "min_resources_=0: you might have passed an empty dataset X.",
        ),
        (
            ridges(3).max_resources(5_000),
            "Cannot sample 1330 out of arrays with dim 353 when replace is False",
        ),
        (ridges(3).factor(1.0), "The 'factor' parameter of HalvingGridSearchCV must be"),
        (ridges(0), "Parameter grid for parameter 'alpha' need a non-empty sequence"),
    ];
    for (search, expected) in lines {
        let found = text(search);
        assert!(found.starts_with(expected), "{found}");
    }
    let drawn = ParamDistributions::new().draw("alpha", Distribution::Uniform { low: 0.1, high: 2.0 });
    let both = HalvingRandomSearchCV::new(Lasso::new(), drawn).min_resources(MinResources::Exhaust);
    let found = both.fit(&x, &y, ..).unwrap_err().to_string();
    assert!(found.starts_with("n_candidates and min_resources cannot be both set to 'exhaust'."), "{found}");
}
