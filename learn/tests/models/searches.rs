//! Validations and searches beside recorded answers of scikit-learn, and what is refused.

use serde_json::Value;
use std::sync::Arc;
use tharsis_graph::Error as GraphError;
use tharsis_learn::base::{Estimator, Predict, PredictProba};
use tharsis_learn::cluster::KMeans;
use tharsis_learn::datasets::{load_breast_cancer, load_diabetes, load_iris};
use tharsis_learn::discriminant_analysis::LinearDiscriminantAnalysis;
use tharsis_learn::linear_model::{
    FittedLinearRegression, FittedRidge, LinearRegression, LogisticRegression, PassiveAggressiveClassifier,
    Perceptron, Ridge, RidgeClassifier, RidgeClassifierCV, SGDClassifier, StochasticLoss,
};
use tharsis_learn::model_selection::{
    Distribution, ErrorScore, FittedSearch, GridSearchCV, GroupKFold, KFold, ParamDistributions, ParamGrid,
    RandomizedSearchCV, Rows, Scoring, Split, StratifiedKFold, TimeSeriesSplit, Validation,
    cross_val_predict, cross_val_predict_proba, cross_val_score, cross_validate, learning_curve,
    validation_curve,
};
use tharsis_learn::multioutput::MultiOutputClassifier;
use tharsis_learn::naive_bayes::GaussianNB;
use tharsis_learn::neighbors::NearestCentroid;
use tharsis_learn::pipeline::Pipeline;
use tharsis_learn::preprocessing::StandardScaler;
use tharsis_learn::svm::LinearSVC;
use tharsis_learn::{Error, FitOptions, Params, Save, Setting};
use tharsis_numeric::run::with_default;
use tharsis_numeric::{DType, LocalExecutor, Tensor, arange, stack, zeros};

fn answers() -> Value {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    let path = std::path::Path::new(&folder).join("tests/oracle/searches.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn diabetes() -> [Tensor; 2] {
    let data = load_diabetes().unwrap();
    [data.data, data.target]
}

fn iris() -> [Tensor; 2] {
    let data = load_iris().unwrap();
    [data.data, data.target]
}

#[track_caller]
fn close(found: &[f64], recorded: &Value, tolerance: f64) {
    let recorded: Vec<f64> =
        recorded.as_array().unwrap().iter().map(|number| number.as_f64().unwrap_or(f64::NAN)).collect();
    assert_eq!(found.len(), recorded.len());
    for (at, (found, recorded)) in found.iter().zip(&recorded).enumerate() {
        let is_close = (found - recorded).abs() <= tolerance * recorded.abs().max(1.0)
            || (found.is_nan() && recorded.is_nan());
        assert!(is_close, "{at}: {found}, recorded {recorded}");
    }
}

fn named(name: &str) -> Scoring {
    Scoring::named(name).unwrap()
}

#[test]
fn scores_of_folds_are_those_of_scikit_learn() {
    let recorded = &answers()["validated"];
    let ([x, y], ridge) = (diabetes(), Ridge::new().alpha(0.5));
    let groups = arange(442) % 13;
    let weights = arange(442) % 3 + 1.0;
    let default = Validation::default;
    let cases = [
        ("ridge", default()),
        ("ridge_mse", Validation { scoring: named("neg_mean_squared_error"), cv: 3.into(), ..default() }),
        (
            "ridge_groups",
            Validation { cv: GroupKFold { n_splits: 4 }.into(), groups: Some(groups), ..default() },
        ),
        (
            "ridge_times",
            Validation {
                cv: TimeSeriesSplit { n_splits: 4, ..TimeSeriesSplit::default() }.into(),
                ..default()
            },
        ),
        (
            "ridge_weights",
            Validation { cv: 4.into(), fit: FitOptions::new().sample_weight(&weights), ..default() },
        ),
    ];
    for (name, options) in cases {
        let options = Validation { return_train_score: true, ..options };
        let found = cross_validate(&ridge, &x, &y, options).unwrap();
        close(&found.test_score, &recorded[name]["test"], 1e-9);
        close(&found.train_score, &recorded[name]["train"], 1e-9);
        assert!(found.failures.is_empty());
    }
    let [x, y] = iris();
    let options = Validation { return_train_score: true, ..default() };
    let found = cross_validate(&GaussianNB::new(), &x, &y, options).unwrap();
    close(&found.test_score, &recorded["bayes"]["test"], 1e-12);
    close(&found.train_score, &recorded["bayes"]["train"], 1e-12);
    let options = Validation { scoring: named("f1_macro"), cv: 7.into(), ..default() };
    let found = cross_val_score(&GaussianNB::new(), &x, &y, options).unwrap();
    close(&found, &recorded["bayes_f1"]["test"], 1e-12);
}

#[track_caller]
fn as_recorded<M: tharsis_learn::base::Predict>(search: &FittedSearch<M>, x: &Tensor, recorded: &Value) {
    let results = &search.cv_results;
    let texts: Vec<Vec<String>> = results
        .params
        .iter()
        .map(|candidate| candidate.iter().map(|(name, value)| format!("{name}={value}")).collect())
        .collect();
    assert_eq!(serde_json::json!(texts), recorded["params"]);
    close(&results.mean_test_score.to_vec(), &recorded["mean"], 1e-9);
    close(&results.std_test_score.to_vec(), &recorded["std"], 1e-9);
    close(&results.column("split0_test_score").unwrap().to_vec(), &recorded["split0"], 1e-9);
    assert_eq!(serde_json::json!(results.rank_test_score), recorded["rank"]);
    assert_eq!(search.best_index as u64, recorded["best_index"].as_u64().unwrap());
    close(&[search.best_score], &Value::from(vec![recorded["best_score"].clone()]), 1e-9);
    let predictions = search.predict(x).astype(DType::F64).to_vec::<f64>().unwrap();
    close(&predictions[..20], &recorded["predictions"], 1e-9);
}

const ALPHAS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

#[test]
fn grids_are_searched_as_by_scikit_learn() {
    let recorded = &answers()["searched"];
    let [x, y] = diabetes();
    let grid = ParamGrid::new().values("fit_intercept", [true, false]).values("alpha", ALPHAS);
    let folds = Validation { cv: KFold { n_splits: 4, ..KFold::default() }.into(), ..Validation::default() };
    let search = GridSearchCV::new(Ridge::new(), grid).validation(folds).fit(&x, &y, ..).unwrap();
    as_recorded(&search, &x, &recorded["ridge"]);

    let grids =
        vec![ParamGrid::new().values("alpha", [1.0, 0.1]), ParamGrid::new().values("fit_intercept", [false])];
    let errors = Validation { scoring: named("neg_mean_absolute_error"), ..Validation::default() };
    let search = GridSearchCV::new(Ridge::new(), grids).validation(errors).fit(&x, &y, ..).unwrap();
    as_recorded(&search, &x, &recorded["lines"]);
    // The score of a search is the one by which it searched.
    assert!(search.score(&x, &y, ..).unwrap() < -40.0);

    let pipeline = Pipeline::new().step("scale", StandardScaler::new()).last("ridge", Ridge::new());
    let grid = ParamGrid::new().values("ridge__alpha", ALPHAS).values("scale__with_std", [true, false]);
    let search = GridSearchCV::new(pipeline, grid).fit(&x, &y, ..).unwrap();
    as_recorded(&search, &x, &recorded["pipeline"]);

    let [x, y] = iris();
    let grid = ParamGrid::new().values("var_smoothing", [0.5, 1e-9, 1e-10, 1e-11]);
    let search = GridSearchCV::new(GaussianNB::new(), grid).fit(&x, &y, ..).unwrap();
    as_recorded(&search, &x, &recorded["ties"]);
}

#[test]
fn searches_score_by_the_weights_of_fits() {
    let recorded = &answers()["weighted"];
    let [x, y] = diabetes();
    let weights = (arange(442) % 17 - 8).square();
    let options = FitOptions::new().sample_weight(&weights);
    for (name, scoring) in [
        ("score", Scoring::default()),
        ("neg_mean_absolute_error", named("neg_mean_absolute_error")),
        ("neg_max_error", named("neg_max_error")),
        ("explained_variance", named("explained_variance")),
    ] {
        let validation =
            Validation { scoring, cv: 4.into(), return_train_score: true, ..Validation::default() };
        let grid = ParamGrid::new().values("alpha", ALPHAS);
        let search =
            GridSearchCV::new(Ridge::new(), grid).validation(validation).fit(&x, &y, &options).unwrap();
        as_recorded(&search, &x, &recorded[name]);
        let train = search.cv_results.column("mean_train_score").unwrap();
        close(&train.to_vec(), &recorded[name]["train"], 1e-9);
    }
    let [x, y] = iris();
    let options = FitOptions::new().sample_weight(&(arange(150) % 7 + 0.5));
    for name in ["accuracy", "balanced_accuracy", "f1_weighted", "precision_macro"] {
        let validation = Validation { scoring: named(name), ..Validation::default() };
        let grid = ParamGrid::new().values("var_smoothing", [0.5, 1e-9]);
        let search = GridSearchCV::new(GaussianNB::new(), grid).validation(validation);
        as_recorded(&search.fit(&x, &y, &options).unwrap(), &x, &recorded[name]);
    }
}

/// Scores of five folds by all names of the record.
fn scored<E: Estimator<Fitted: Predict>>(estimator: &E, [x, y]: &[Tensor; 2], record: &str) {
    let recorded = &answers()["scored"][record];
    for (name, recorded) in recorded.as_object().unwrap() {
        let options =
            Validation { scoring: named(name), error_score: ErrorScore::Raise, ..Validation::default() };
        let found = cross_val_score(estimator, x, y, options).unwrap_or_else(|e| panic!("{name}: {e}"));
        for (found, recorded) in found.iter().zip(recorded.as_array().unwrap()) {
            let recorded = recorded.as_f64().unwrap();
            let is_close = (found - recorded).abs() <= 1e-7 * recorded.abs().max(1.0);
            assert!(is_close, "{record}, {name}: {found}, recorded {recorded}");
        }
    }
}

#[test]
fn scores_have_the_names_and_values_of_scikit_learn() {
    let data = load_breast_cancer().unwrap();
    let cancer = [data.data, data.target];
    scored(&GaussianNB::new(), &cancer, "bayes_of_two");
    scored(&LinearDiscriminantAnalysis::new(), &cancer, "discriminant_of_two");
    scored(&RidgeClassifier::new(), &cancer, "ridge_of_two");
    scored(&GaussianNB::new(), &iris(), "bayes_of_three");
    let [x, y] = diabetes();
    scored(&Ridge::new(), &[x, y / 3.0], "ridge");
    let [x, y] = iris();
    let centers = x.take(&[0, 60, 120], 0);
    scored(&KMeans::new().n_clusters(3).init(&centers), &[x, y], "clusters");
}

#[test]
fn pipelines_and_searches_tell_what_their_last_models_tell() {
    let data = load_breast_cancer().unwrap();
    let (x, y) = (data.data, data.target);
    let ridge = Pipeline::new().step("scale", StandardScaler::new()).last("ridge", RidgeClassifier::new());
    let options = || Validation { scoring: named("roc_auc"), cv: 3.into(), ..Validation::default() };
    let areas = cross_val_score(&ridge, &x, &y, options()).unwrap();
    assert!(areas.iter().all(|area| 0.98 < *area), "{areas:?}");
    let search = GridSearchCV::new(GaussianNB::new(), ParamGrid::new().values("var_smoothing", [1e-9, 0.5]));
    let search = search.validation(Validation { scoring: named("neg_log_loss"), ..options() });
    let losses = cross_val_score(&search, &x, &y, options()).unwrap();
    assert_eq!(losses.len(), 3);
    assert!(losses.iter().all(|area| 0.9 < *area), "{losses:?}");
}

/// The mean score of folds of two classes of the breast cancer data, with these labels.
fn score_of<E: Estimator<Fitted: Predict>>(
    estimator: &E,
    name: &str,
    labels: [i64; 2],
) -> Result<f64, Error> {
    let data = load_breast_cancer().unwrap();
    let y = data.target.astype(DType::I64) * (labels[1] - labels[0]) + labels[0];
    let x = StandardScaler::new().fit(&data.data, ..).unwrap().transform(&data.data);
    let options = Validation {
        scoring: named(name),
        cv: 3.into(),
        error_score: ErrorScore::Raise,
        ..Validation::default()
    };
    Ok(cross_val_score(estimator, &x, &y, options)?.iter().sum::<f64>() / 3.0)
}

/// scikit-learn looks for the label 1, whichever of the two it is.
#[test]
fn average_precision_is_of_the_label_one() {
    let (regression, bayes) = (LogisticRegression::new(), GaussianNB::new());
    for labels in [[0, 1], [-1, 1], [1, 2]] {
        let areas = [
            score_of(&regression, "average_precision", labels),
            score_of(&bayes, "average_precision", labels),
        ];
        assert!(areas.iter().all(|area| 0.9 < *area.as_ref().unwrap()), "{labels:?}: {areas:?}");
    }
    for labels in [[0, 2], [3, 5]] {
        let error = score_of(&regression, "average_precision", labels).unwrap_err();
        let [a, b] = labels;
        let text = format!("pos_label=1 is not a valid label: It should be one of [{a} {b}]");
        assert!(error.to_string().starts_with(&text), "{error}");
        // Others look for the greater label.
        for name in ["roc_auc", "neg_brier_score", "neg_log_loss"] {
            let [found, usual] = [labels, [0, 1]].map(|labels| score_of(&bayes, name, labels).unwrap());
            assert_eq!(found, usual, "{name}");
        }
    }
}

#[test]
fn classifiers_with_decisions_are_ranked_by_them() {
    for name in ["roc_auc", "average_precision"] {
        let scores = [
            score_of(&LinearSVC::new(), name, [0, 1]),
            score_of(&SGDClassifier::new(), name, [0, 1]),
            score_of(&Perceptron::new(), name, [0, 1]),
            score_of(&PassiveAggressiveClassifier::new(), name, [0, 1]),
            score_of(&RidgeClassifier::new(), name, [0, 1]),
            score_of(&RidgeClassifierCV::new(), name, [0, 1]),
            score_of(&NearestCentroid::new(), name, [0, 1]),
        ];
        for (at, score) in scores.into_iter().enumerate() {
            assert!(0.9 < score.unwrap(), "{name} of {at}");
        }
    }
    let told = score_of(&SGDClassifier::new().loss(StochasticLoss::LogLoss), "neg_log_loss", [0, 1]);
    assert!(told.unwrap() < 0.0);
    let error = score_of(&SGDClassifier::new(), "neg_log_loss", [0, 1]).unwrap_err();
    assert!(
        error.to_string().starts_with("SGDClassifier has none of the following attributes: predict_proba.")
    );
}

#[test]
fn models_without_what_a_score_reads_are_refused() {
    let [x, y] = diabetes();
    let y = y.greater(100.0);
    let score = |name| {
        let options =
            Validation { scoring: named(name), error_score: ErrorScore::Raise, ..Validation::default() };
        cross_val_score(&Ridge::new(), &x, &y, options).unwrap_err()
    };
    let found = score("neg_log_loss");
    assert_eq!(found.class(), "ValueError");
    let text = "Ridge has none of the following attributes: ";
    assert!(found.to_string().starts_with(&format!("{text}predict_proba.")), "{found}");
    let found = score("roc_auc").to_string();
    assert!(found.starts_with(&format!("{text}decision_function, predict_proba.")), "{found}");
}

#[test]
fn a_test_set_that_lacks_a_class_is_scored_by_those_of_the_model() {
    let [x, y] = iris();
    let score = |name| {
        let rows = |count: usize| Rows::at(&(0..count).collect::<Vec<usize>>(), 150).unwrap();
        let split = Split { train: rows(150), test: rows(50) };
        let options = Validation {
            scoring: named(name),
            cv: vec![split].into(),
            error_score: ErrorScore::Raise,
            ..Validation::default()
        };
        cross_val_score(&LogisticRegression::new().max_iter(300), &x, &y, options).unwrap()[0]
    };
    assert!((-0.1..0.0).contains(&score("neg_log_loss")));
    assert!((-0.1..0.0).contains(&score("neg_brier_score")));
    assert!(0.9 < score("top_k_accuracy"));
}

#[test]
fn labels_may_be_whole_floats() {
    let recorded = &answers()["validated"]["bayes_f1"]["test"];
    let [x, y] = iris();
    let options = || Validation { scoring: named("f1_macro"), cv: 7.into(), ..Validation::default() };
    for dtype in [DType::F64, DType::F32] {
        let found = cross_validate(&GaussianNB::new(), &x, &y.astype(dtype), options()).unwrap();
        close(&found.test_score, recorded, 1e-12);
        assert!(found.failures.is_empty());
    }
    // Targets that are no labels have no such score.
    let [x, y] = diabetes();
    let options =
        Validation { error_score: ErrorScore::Raise, scoring: named("accuracy"), ..Validation::default() };
    let error = cross_validate(&Ridge::new(), &x, &(y / 3.0), options).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(
        error.to_string().starts_with("Supported target types are: ('binary', 'multiclass')."),
        "{error}"
    );
}

#[test]
fn fits_that_fail_have_the_error_score() {
    let recorded = &answers()["searched"]["failing"];
    let [x, y] = diabetes();
    let search = |alphas: &[f64], error_score| {
        let grid = ParamGrid::new().values("alpha", alphas.iter().copied());
        let validation = Validation { cv: 3.into(), error_score, ..Validation::default() };
        GridSearchCV::new(Ridge::new(), grid).validation(validation).fit(&x, &y, ..)
    };
    let found = search(&[-1.0, 1.0, 2.0], ErrorScore::Number(f64::NAN)).unwrap();
    as_recorded(&found, &x, recorded);
    assert_eq!(found.failures.len(), 3);
    assert!(found.failures[0].to_string().starts_with("The 'alpha' parameter of Ridge must be"));
    let found = search(&[-1.0, 1.0], ErrorScore::Number(-7.5)).unwrap();
    assert_eq!(found.cv_results.mean_test_score[0], -7.5);
    let error = search(&[1.0, -1.0], ErrorScore::Raise).unwrap_err().to_string();
    assert!(error.starts_with("The 'alpha' parameter of Ridge"), "{error}");
    let error = search(&[-1.0, -2.0], ErrorScore::Number(0.0)).unwrap_err().to_string();
    assert!(error.starts_with("All the 6 fits failed.\nIt is very likely that your model is"), "{error}");
    assert!(error.contains("ValueError: The 'alpha' parameter of Ridge must be"), "{error}");
}

#[test]
fn the_best_model_is_the_fit_by_hand() {
    let [x, y] = diabetes();
    let weights = arange(442) % 5 + 0.5;
    let options = FitOptions::new().sample_weight(&weights);
    let grid = ParamGrid::new().values("alpha", ALPHAS);
    let search = GridSearchCV::new(Ridge::new(), grid).fit(&x, &y, &options).unwrap();
    let alpha = ALPHAS[search.best_index];
    let hand = Ridge::new().alpha(alpha).fit(&x, &y, &options).unwrap();
    let bits = |model: &tharsis_learn::linear_model::FittedRidge| -> Vec<u64> {
        model.coef.iter().chain(&model.intercept).map(|number| number.to_bits()).collect()
    };
    assert_eq!(bits(search.best_model()), bits(&hand));
    // And each score that of a fit by hand on the rows of the split.
    let folds = KFold { n_splits: 5, ..KFold::default() }.split(&x).unwrap();
    for (at, Split { train, test }) in folds.enumerate() {
        let options = FitOptions::new().sample_weight(&train.of(&weights));
        let model = Ridge::new().alpha(alpha).fit(&train.of(&x), &train.of(&y), &options).unwrap();
        let options = FitOptions::new().sample_weight(&test.of(&weights));
        let score = model.score(&test.of(&x), &test.of(&y), options).unwrap();
        assert_eq!(score, search.cv_results.split_test_score[[search.best_index, at]]);
    }
    // A search without a last fit has the same results.
    let grid = ParamGrid::new().values("alpha", ALPHAS);
    let results = GridSearchCV::new(Ridge::new(), grid).search(&x, &y, &options).unwrap();
    assert_eq!(results.cv_results.mean_test_score, search.cv_results.mean_test_score);
}

#[test]
fn predictions_of_folds_are_those_of_scikit_learn() {
    let recorded = &answers()["predicted"];
    let [x, y] = diabetes();
    let options = Validation { cv: 4.into(), ..Validation::default() };
    let found = cross_val_predict(&LinearRegression::new(), &x, &y, options).unwrap();
    close(&found.to_vec::<f64>().unwrap(), &recorded["line"], 1e-8);
    let [x, y] = iris();
    let labels = cross_val_predict(&GaussianNB::new(), &x, &y, ..).unwrap().to_vec::<i64>().unwrap();
    let labels: Vec<f64> = labels.into_iter().map(|label| label as f64).collect();
    close(&labels, &recorded["bayes"], 0.0);
    let chances = cross_val_predict_proba(&GaussianNB::new(), &x, &y, ..).unwrap();
    close(&chances.ravel().to_vec::<f64>().unwrap(), &recorded["bayes_proba"], 1e-9);
}

#[test]
fn curves_are_those_of_scikit_learn() {
    let answers = answers();
    let [x, y] = diabetes();
    let folds =
        |n_splits| Validation { cv: KFold { n_splits, ..KFold::default() }.into(), ..Validation::default() };
    let curve = validation_curve(&Ridge::new(), &x, &y, "alpha", ALPHAS, folds(3)).unwrap();
    close(&curve.train_scores.into_iter().collect::<Vec<_>>(), &answers["validation"]["train"], 1e-9);
    close(&curve.test_scores.into_iter().collect::<Vec<_>>(), &answers["validation"]["test"], 1e-9);
    let shares = [0.1, 0.325, 0.55, 0.775, 1.0];
    let curve = learning_curve(&Ridge::new().alpha(0.1), &x, &y, &shares, folds(4)).unwrap();
    assert_eq!(serde_json::json!(curve.train_sizes), answers["learning"]["sizes"]);
    let least = learning_curve(&Ridge::new(), &x, &y, &[1e-6, 0.5], folds(4)).unwrap();
    assert_eq!(least.train_sizes, [1, 165]);
    close(&curve.train_scores.into_iter().collect::<Vec<_>>(), &answers["learning"]["train"], 1e-9);
    close(&curve.test_scores.into_iter().collect::<Vec<_>>(), &answers["learning"]["test"], 1e-9);
}

#[test]
fn curves_run_on_the_executor_of_their_options() {
    let [x, y] = iris();
    let large = FitOptions::new().executor(Arc::new(LocalExecutor::sized(1, 1 << 26)));
    // Only a run tells how many rows a training set of groups has.
    let (cv, groups) = (GroupKFold { n_splits: 5 }.into(), Some(arange(150) % 5));
    let options = Validation { cv, groups, fit: large, ..Validation::default() };
    // Whatever runs on the default one is refused.
    let none = Arc::new(LocalExecutor::sized(1, 1));
    let curve =
        with_default(none, || learning_curve(&GaussianNB::new(), &x, &y, &[0.5, 1.0], options)).unwrap();
    assert_eq!(curve.train_sizes, [60, 120]);
}

#[test]
fn logarithms_of_probabilities_are_those_of_the_model() {
    let [x, y] = iris();
    let far = &x * 100.0;
    let model = GaussianNB::new().fit(&x, &y, ..).unwrap();
    let own = model.predict_log_proba(&far).to_vec::<f64>().unwrap();
    assert!(own.iter().all(|chance| chance.is_finite()) && own.iter().any(|&chance| chance < -2e4));
    let pipeline = Pipeline::new().last("bayes", GaussianNB::new()).fit(&x, &y, ..).unwrap();
    assert_eq!(PredictProba::predict_log_proba(&pipeline, &far).to_vec::<f64>().unwrap(), own);
    let search = GridSearchCV::new(GaussianNB::new(), ParamGrid::new()).fit(&x, &y, ..).unwrap();
    assert_eq!(search.predict_log_proba(&far).to_vec::<f64>().unwrap(), own);
}

#[test]
fn errors_of_runs_end_a_search() {
    let lost =
        || Error::here(GraphError::File { path: "priors".to_owned(), reason: "the disk is gone".to_owned() });
    let priors = Setting::Array(Tensor::from(lost()));
    let error = GaussianNB::new().set("priors", &priors).unwrap_err();
    assert_eq!(error.class(), lost().class());
    let grid = ParamGrid::new().values("priors", [Setting::None, priors]);
    let [x, y] = iris();
    let error = GridSearchCV::new(GaussianNB::new(), grid).fit(&x, &y, ..).unwrap_err();
    assert_eq!(error.class(), lost().class());
}

#[test]
fn draws_are_functions_of_the_seed() {
    let lists = ParamDistributions::new()
        .draw("alpha", Distribution::Choice(ALPHAS.map(Into::into).to_vec()))
        .draw("fit_intercept", Distribution::Choice(vec![true.into(), false.into()]));
    let texts = |distributions: &ParamDistributions, count, seed| -> Vec<String> {
        let candidates = distributions.candidates(count, seed).unwrap();
        candidates
            .iter()
            .map(|candidate| format!("{} {}", candidate[0].1, candidate.last().unwrap().1))
            .collect()
    };
    // Of eight to the power of seven combinations only those are made that are drawn.
    let mut many = ParamDistributions::new();
    for param in ["a", "b", "c", "d", "e", "f", "g"] {
        many = many.draw(param, Distribution::Choice((0..8i64).map(Into::into).collect()));
    }
    let all: std::collections::BTreeSet<_> =
        many.candidates(50, 1).unwrap().iter().map(|candidate| format!("{candidate:?}")).collect();
    assert_eq!(all.len(), 50);
    for param in 0..20 {
        let values = (0..8i64).map(Into::into).collect();
        many = many.draw(&format!("p{param}"), Distribution::Choice(values));
    }
    let error = many.candidates(1, 0).unwrap_err().to_string();
    assert!(error.starts_with("a grid of more than 2^64 - 1 combinations"), "{error}");
    // Different combinations, and all of them in the end.
    let mut drawn = texts(&lists, 5, 3);
    assert_eq!((texts(&lists, 5, 3), texts(&lists, 100, 3).len()), (drawn.clone(), 8));
    assert_ne!(drawn, texts(&lists, 5, 4));
    drawn.sort();
    drawn.dedup();
    assert_eq!(drawn.len(), 5);
    let numbers = ParamDistributions::new()
        .draw("alpha", Distribution::LogUniform { low: 1e-3, high: 1e3 })
        .draw("max_iter", Distribution::Integers { low: -2, high: 3 });
    let mut seen = std::collections::BTreeSet::new();
    let mut below_1 = 0;
    for candidate in numbers.candidates(400, 1).unwrap() {
        let alpha: f64 = candidate[0].1.to_string().parse().unwrap();
        assert!((1e-3..=1e3).contains(&alpha));
        below_1 += usize::from(alpha < 1.0);
        seen.insert(candidate[1].1.to_string());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["-1", "-2", "0", "1", "2"]);
    assert!((150..250).contains(&below_1), "{below_1}");
    let [x, y] = diabetes();
    let search = || {
        RandomizedSearchCV::new(
            Ridge::new(),
            ParamDistributions::new().draw("alpha", Distribution::Uniform { low: 0.0, high: 1.0 }),
        )
    };
    let found = search().n_iter(3).random_state(5).fit(&x, &y, ..).unwrap();
    let again = search().n_iter(3).random_state(5).fit(&x, &y, ..).unwrap();
    assert_eq!(found.cv_results.mean_test_score, again.cv_results.mean_test_score);
}

#[test]
fn mistakes_are_told_before_a_fit() {
    let [x, y] = diabetes();
    let grid = |name: &str| ParamGrid::new().values(name, [1.0]);
    let text = |grids: Vec<ParamGrid>, validation: Validation| {
        let search = GridSearchCV::new(Ridge::new(), grids).validation(validation);
        search.fit(&x, &y, ..).err().unwrap().to_string()
    };
    let default = Validation::default;
    let found = text(vec![grid("alpha"), grid("alhpa")], default());
    assert!(
        found.starts_with("Invalid parameter 'alhpa' for estimator Ridge(). Valid parameters"),
        "{found}"
    );
    let found = text(vec![ParamGrid::new().values("alpha", [0.0; 0])], default());
    assert!(found.starts_with("Parameter grid for parameter 'alpha' need a non-empty sequence"), "{found}");
    assert!(text(Vec::new(), default()).starts_with("No fits were performed."));
    let found = text(vec![grid("alpha")], Validation { cv: 1.into(), ..default() });
    assert!(found.starts_with("k-fold cross-validation requires at least one train/test split"), "{found}");
    let found = text(vec![grid("alpha")], Validation { cv: 443.into(), ..default() });
    assert!(found.contains("n_splits=443 greater than the number of samples: n_samples=442"), "{found}");
    let found = text(vec![grid("alpha")], Validation { cv: GroupKFold::default().into(), ..default() });
    assert!(found.starts_with("The 'groups' parameter should not be None."), "{found}");
    let error = cross_val_score(&Ridge::new(), &x, &zeros(&[3]), ..).unwrap_err().to_string();
    assert!(
        error.starts_with("Found input variables with inconsistent numbers of samples: [442, 3]"),
        "{error}"
    );
    assert!(
        text(vec![grid("alpha")], Validation { cv: Vec::new().into(), ..default() })
            .starts_with("No fits were")
    );
    for (groups, cv) in [
        (Some(arange(3)), GroupKFold { n_splits: 2 }.into()),
        (None, {
            let rows = |count| Split {
                train: Rows::at(&[0, 1], count).unwrap(),
                test: Rows::at(&[2], count).unwrap(),
            };
            vec![rows(442), rows(3)].into()
        }),
    ] {
        let found = text(vec![grid("alpha")], Validation { groups, cv, ..default() });
        assert!(
            found.starts_with("Found input variables with inconsistent numbers of samples: [442, 3]"),
            "{found}"
        );
    }
    let strata = Validation { cv: StratifiedKFold::default().into(), ..default() };
    let error = cross_val_score(&Ridge::new(), &x, &(&y / 3.0), strata).unwrap_err().to_string();
    assert!(error.starts_with("Supported target types are: ('binary', 'multiclass')."), "{error}");
    let rows = |positions: &[usize]| Rows::at(positions, 442).unwrap();
    let splits = vec![Split { train: rows(&[0, 1, 2]), test: rows(&[3, 3]) }];
    let options = Validation { cv: splits.into(), ..default() };
    let error = cross_val_predict(&Ridge::new(), &x, &y, options).unwrap_err().to_string();
    assert!(error.starts_with("cross_val_predict only works for partitions"), "{error}");
    assert!(Scoring::named("mean_squared_error").is_err());
    for shares in [[0.0], [1.5], [-0.1], [f64::NAN]] {
        assert!(learning_curve(&Ridge::new(), &x, &y, &shares, ..).is_err(), "{shares:?}");
    }
    for source in [
        Distribution::Choice(Vec::new()),
        Distribution::Integers { low: 3, high: 3 },
        Distribution::Uniform { low: 2.0, high: 1.0 },
        Distribution::Uniform { low: 0.0, high: f64::NAN },
        Distribution::Uniform { low: f64::MIN, high: f64::MAX },
        Distribution::LogUniform { low: 0.0, high: 1.0 },
    ] {
        assert!(
            ParamDistributions::new().draw("alpha", source.clone()).candidates(2, 0).is_err(),
            "{source:?}"
        );
    }
    assert!(ParamDistributions::new().candidates(0, 0).is_err());
}

#[test]
fn several_scores_are_those_of_as_many_searches() {
    let [x, y] = iris();
    let search = |scoring: &str, further: &[&str]| {
        let grid = ParamGrid::new().values("var_smoothing", [1e-9, 0.5, 1e3]);
        let validation = Validation {
            scoring: named(scoring),
            further_scoring: further.iter().map(|name| named(name)).collect(),
            return_train_score: true,
            ..Validation::default()
        };
        GridSearchCV::new(GaussianNB::new(), grid).validation(validation).fit(&x, &y, ..).unwrap()
    };
    let many = search("accuracy", &["f1_macro", "neg_log_loss"]);
    for name in ["f1_macro", "neg_log_loss"] {
        let one = search(name, &[]);
        for column in ["mean_test", "std_test", "rank_test", "split3_test", "mean_train", "split0_train"] {
            let [found, own] = [
                many.cv_results.column(&format!("{column}_{name}")),
                one.cv_results.column(&format!("{column}_score")),
            ];
            assert_eq!(found.unwrap(), own.unwrap(), "{column} of {name}");
        }
    }
    assert!(many.cv_results.column("mean_test_r2").is_none());
    assert_eq!(many.best_index, search("accuracy", &[]).best_index);
    let options = Validation { further_scoring: vec![named("f1_macro")], ..Validation::default() };
    let found = cross_validate(&GaussianNB::new(), &x, &y, options).unwrap();
    assert_eq!((found.further[0].name, found.further[0].test_score.len()), ("f1_macro", 5));
}

#[test]
fn a_number_of_folds_is_of_consecutive_rows_for_labels_of_several_columns() {
    let [x, y] = iris();
    // Rows of the three classes by turns.
    let order = (arange(150) % 3) * 50 + arange(150).floor_divide(3);
    let (x, y) = (x.take_at(&order, 0), y.take_at(&order, 0));
    let (model, two) =
        (MultiOutputClassifier::new(GaussianNB::new()), stack(&[&y, &y.equal(1).astype(DType::I64)], 1));
    let scores = |cv| cross_val_score(&model, &x, &two, Validation { cv, ..Validation::default() }).unwrap();
    assert_eq!(scores(3.into()), scores(KFold { n_splits: 3, ..KFold::default() }.into()));
}

#[test]
fn searches_come_back_from_files() {
    let [x, y] = diabetes();
    let grid = ParamGrid::new().values("alpha", [0.1, 10.0]).values("fit_intercept", [true, false]);
    let validation = Validation {
        scoring: named("neg_mean_squared_error"),
        further_scoring: vec![named("r2")],
        ..Validation::default()
    };
    let search = GridSearchCV::new(Ridge::new(), grid).validation(validation).fit(&x, &y, ..).unwrap();
    let bytes = search.to_bytes().unwrap();
    let read = FittedSearch::<FittedRidge>::from_bytes(&bytes).unwrap();
    assert_eq!(read.to_string(), search.to_string());
    assert_eq!(read.score(&x, &y, ..).unwrap(), search.score(&x, &y, ..).unwrap());
    assert_eq!(read.cv_results.column("mean_test_r2"), search.cv_results.column("mean_test_r2"));
    assert_eq!(read.to_bytes().unwrap(), bytes);
    assert!(FittedSearch::<FittedLinearRegression>::from_bytes(&bytes).is_err());
    for at in (0..bytes.len()).step_by(1 + bytes.len() / 80) {
        assert!(FittedSearch::<FittedRidge>::from_bytes(&bytes[..at]).is_err());
    }
    // Bodies that somebody has made: a result or none.
    let body = search.body().unwrap();
    for at in (0..body.len()).step_by(1 + body.len() / 60) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = body.clone();
            changed[at] = value;
            if let Some(made) = FittedSearch::<FittedRidge>::of_body(&changed) {
                let _ =
                    (made.predict(&x).execute(), made.to_string(), made.cv_results.column("split4_test_r2"));
            }
        }
    }
}
