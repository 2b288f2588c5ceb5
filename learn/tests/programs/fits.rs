//! Programs beside the same calls in Rust: the same bits.

use super::{error, inputs, labels, reply, run, samples};
use serde_json::{Value as Json, json};
use tharsis_learn::cluster::{Init, KMeans};
use tharsis_learn::datasets::load_digits;
use tharsis_learn::decomposition::{PCA, TruncatedSVD};
use tharsis_learn::ensemble::{
    ExtraTreesRegressor, HistGradientBoostingRegressor, IsolationForest, RandomForestClassifier,
    RegressionLoss,
};
use tharsis_learn::linear_model::{ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge};
use tharsis_learn::metrics::{Average, confusion_matrix, f1_score};
use tharsis_learn::model_selection::{
    GridSearchCV, ParamGrid, Scoring, TrainTestSplit, Validation, train_test_split,
};
use tharsis_learn::naive_bayes::{BernoulliNB, GaussianNB, MultinomialNB};
use tharsis_learn::preprocessing::{Binarizer, MaxAbsScaler, MinMaxScaler, Norm, Normalizer, StandardScaler};
use tharsis_learn::tree::ClassCriterion;
use tharsis_numeric::{DType, Tensor};

/// The elements of an array in a reply, as bits.
fn bits(result: &Json) -> Vec<u64> {
    fn collect(json: &Json, found: &mut Vec<u64>) {
        match json {
            Json::Array(parts) => parts.iter().for_each(|part| collect(part, found)),
            Json::Object(object) => panic!("{object:?} is no number"),
            number => found.push(number.as_f64().unwrap().to_bits()),
        }
    }
    let mut found = Vec::new();
    let elements = if result.is_number() { result } else { &result["arr"]["lit"] };
    assert!(!elements.is_null(), "{result} is no array");
    collect(elements, &mut found);
    found
}

fn bits_of(tensor: &Tensor) -> Vec<u64> {
    tensor.astype(DType::F64).to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

fn bits_in<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> Vec<u64> {
    numbers.into_iter().map(|number| number.to_bits()).collect()
}

/// The samples and the labels of the programs.
fn data() -> (Tensor, Tensor) {
    let samples: Vec<f64> = samples().into_iter().flatten().collect();
    (Tensor::from_elements(&[12, 4], &samples), Tensor::from_elements(&[12], &labels()))
}

/// Results of a class with these parameters, fitted: `r` of a method, and attributes.
fn fitted(class: &str, params: Json, method: &str, attributes: &[&str]) -> Json {
    let mut program = vec![
        json!(["m", class, [], params]),
        json!(["f", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]]),
        json!(["r", format!("sk.{method}"), [{"$": "f"}, {"$": "x"}]]),
    ];
    let mut out = vec!["r"];
    for attribute in attributes {
        program.push(json!([attribute, "sk.attr", [{"$": "m"}, attribute]]));
        out.push(attribute);
    }
    run(json!(program), json!(out))
}

#[test]
fn digits_are_told_apart_as_in_rust_to_the_bit() {
    let digits = load_digits().unwrap();
    let data = digits.data.astype(DType::F64).to_vec::<f64>().unwrap();
    let rows: Vec<&[f64]> = data.chunks(64).take(600).collect();
    let target: Vec<i64> = digits.target.astype(DType::I64).to_vec().unwrap().into_iter().take(600).collect();
    let request = json!({
        "in": {"x": {"lit": rows}, "y": {"lit": target}},
        "prog": [
            ["s", "sk.model_selection.train_test_split", [{"$": "x"}, {"$": "y"}], {"random_state": 3}],
            ["a", "getitem", [{"$": "s"}, 0]], ["b", "getitem", [{"$": "s"}, 1]],
            ["c", "getitem", [{"$": "s"}, 2]], ["d", "getitem", [{"$": "s"}, 3]],
            ["scale", "sk.preprocessing.StandardScaler", []],
            ["train", "sk.fit_transform", [{"$": "scale"}, {"$": "a"}]],
            ["test", "sk.transform", [{"$": "scale"}, {"$": "b"}]],
            ["m", "sk.linear_model.LogisticRegression", [], {"C": 0.1, "max_iter": 15}],
            ["_", "sk.fit", [{"$": "m"}, {"$": "train"}, {"$": "c"}]],
            ["coef", "sk.attr", [{"$": "m"}, "coef_"]],
            ["labels", "sk.predict", [{"$": "m"}, {"$": "test"}]],
            ["chances", "sk.predict_proba", [{"$": "m"}, {"$": "test"}]],
            ["score", "sk.score", [{"$": "m"}, {"$": "test"}, {"$": "d"}]],
            ["matrix", "sk.metrics.confusion_matrix", [{"$": "d"}, {"$": "labels"}]],
            ["f1", "sk.metrics.f1_score", [{"$": "d"}, {"$": "labels"}], {"average": "macro"}],
        ],
        "out": ["coef", "labels", "chances", "score", "matrix", "f1"],
    });
    let found = reply(&request);
    assert_eq!(found["ok"], true, "{found}");
    let warnings = found["warnings"].as_array().unwrap();
    assert!(
        warnings[0].as_str().unwrap().starts_with("ConvergenceWarning: the solver of LogisticRegression")
    );
    let out = &found["out"];

    let x = Tensor::from_elements(&[600, 64], &rows.concat());
    let y = Tensor::from_elements(&[600], &target);
    let options = TrainTestSplit { random_state: 3, ..TrainTestSplit::default() };
    let [x, y] = train_test_split([&x, &y], options).unwrap();
    let scaler = StandardScaler::new().fit(&x.train, ..).unwrap();
    let estimator = LogisticRegression::new().c(0.1).max_iter(15);
    let model = estimator.fit(&scaler.transform(&x.train), &y.train, ..).unwrap();
    let test = scaler.transform(&x.test);
    let predicted = model.predict(&test);
    assert_eq!(bits(&out["coef"]), bits_in(&model.coef));
    assert_eq!(bits(&out["labels"]), bits_of(&predicted));
    assert_eq!(bits(&out["chances"]), bits_of(&model.predict_proba(&test)));
    assert_eq!(bits(&out["score"]), bits_in(&[model.score(&test, &y.test, ..).unwrap()]));
    assert_eq!(bits(&out["matrix"]), bits_of(&confusion_matrix(&y.test, &predicted, ..).unwrap()));
    let f1 = f1_score(&y.test, &predicted, Average::Macro).unwrap();
    assert_eq!(bits(&out["f1"]), bits_in(f1.values()));
    assert!(0.85 < f1.value());
}

#[test]
fn linear_models_read_their_parameters() {
    let (x, y) = data();
    let found =
        fitted("sk.linear_model.LinearRegression", json!({"fit_intercept": false}), "predict", &["coef_"]);
    let model = LinearRegression::new().fit_intercept(false).fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["coef_"]), bits_in(&model.coef));
    assert_eq!(bits(&found["r"]), bits_of(&model.predict(&x)));

    let params = json!({"alpha": 3, "fit_intercept": false});
    let found = fitted("sk.linear_model.Ridge", params, "predict", &["coef_", "n_iter_"]);
    let model = Ridge::new().alpha(3.0).fit_intercept(false).fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["coef_"]), bits_in(&model.coef));
    assert_eq!(bits(&found["r"]), bits_of(&model.predict(&x)));
    assert_eq!(found["n_iter_"], Json::Null);

    let params = json!({"alpha": 0.01, "fit_intercept": false, "max_iter": 3, "tol": 0.5, "positive": true});
    let found =
        fitted("sk.linear_model.Lasso", params.clone(), "predict", &["coef_", "n_iter_", "dual_gap_"]);
    let lasso = Lasso::new().alpha(0.01).fit_intercept(false).max_iter(3).tol(0.5).positive(true);
    let model = lasso.fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["coef_"]), bits_in(&model.coef));
    assert_eq!(found["n_iter_"], model.n_iter[0]);
    assert_eq!(bits(&found["dual_gap_"]), bits_in(&model.dual_gap));

    let mut params = params;
    params["l1_ratio"] = json!(0.25);
    let found = fitted("sk.linear_model.ElasticNet", params, "predict", &["coef_"]);
    let net = ElasticNet::new().alpha(0.01).l1_ratio(0.25).fit_intercept(false).max_iter(3).tol(0.5);
    let model = net.positive(true).fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["coef_"]), bits_in(&model.coef));

    let params = json!({"C": 0.5, "fit_intercept": false, "tol": 0.01, "max_iter": 7});
    let attributes = ["coef_", "intercept_", "n_iter_", "classes_"];
    let found = fitted("sk.linear_model.LogisticRegression", params, "decision_function", &attributes);
    let logistic = LogisticRegression::new().c(0.5).fit_intercept(false).tol(0.01).max_iter(7);
    let model = logistic.fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["coef_"]), bits_in(&model.coef));
    assert_eq!(found["classes_"]["arr"]["lit"], json!(model.classes));
    assert_eq!(found["n_iter_"]["arr"]["lit"], json!([model.n_iter]));
    assert_eq!(bits(&found["r"]), bits_of(&model.decision_function(&x)));
}

#[test]
fn transformers_read_their_parameters() {
    let (x, _) = data();
    let params = json!({"with_mean": false, "with_std": true});
    let found =
        fitted("sk.preprocessing.StandardScaler", params, "transform", &["scale_", "n_samples_seen_"]);
    let model = StandardScaler::new().with_mean(false).fit(&x, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.transform(&x)));
    assert_eq!(found["n_samples_seen_"], 12);

    let params = json!({"with_mean": true, "with_std": false});
    let found = fitted("sk.preprocessing.StandardScaler", params, "transform", &["mean_", "scale_", "var_"]);
    let model = StandardScaler::new().with_std(false).fit(&x, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.transform(&x)));
    assert_eq!(bits(&found["mean_"]), bits_in(&model.mean));
    assert_eq!((&found["scale_"], &found["var_"]), (&Json::Null, &Json::Null));

    let params = json!({"feature_range": {"t": [-1, 3]}, "clip": true});
    let found = fitted("sk.preprocessing.MinMaxScaler", params, "transform", &["min_", "n_samples_seen_"]);
    let model = MinMaxScaler::new().feature_range(-1.0, 3.0).clip(true).fit(&x, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.transform(&x)));
    assert_eq!(bits(&found["min_"]), bits_in(&model.min));
    assert_eq!(found["n_samples_seen_"], 12);

    let found = fitted("sk.preprocessing.MaxAbsScaler", json!({}), "transform", &["max_abs_"]);
    let model = MaxAbsScaler::new().fit(&x, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.transform(&x)));

    for (name, norm) in [("l1", Norm::L1), ("l2", Norm::L2), ("max", Norm::Max)] {
        let found = fitted("sk.preprocessing.Normalizer", json!({"norm": name}), "transform", &[]);
        assert_eq!(bits(&found["r"]), bits_of(&Normalizer::new().norm(norm).transform(&x)));
    }
    let found = fitted("sk.preprocessing.Binarizer", json!({"threshold": 1.25}), "transform", &[]);
    assert_eq!(bits(&found["r"]), bits_of(&Binarizer::new().threshold(1.25).transform(&x)));

    let params = json!({"n_components": 2, "whiten": true});
    let found = fitted("sk.decomposition.PCA", params, "transform", &["components_", "noise_variance_"]);
    let model = PCA::new().n_components(2).whiten(true).fit(&x, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.transform(&x)));
    assert_eq!(bits(&found["noise_variance_"]), bits_in(&[model.noise_variance]));
    let found = fitted("sk.decomposition.PCA", json!({"n_components": 0.5}), "transform", &["n_components_"]);
    let model = PCA::new().n_components(0.5).fit(&x, ..).unwrap();
    assert_eq!(found["n_components_"], model.components.nrows());

    let found = fitted("sk.decomposition.TruncatedSVD", json!({"n_components": 3}), "transform", &[]);
    let model = TruncatedSVD::new().n_components(3).fit(&x, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.transform(&x)));
}

#[test]
fn clusters_and_naive_bayes_read_their_parameters() {
    let (x, y) = data();
    let params = json!({"n_clusters": 3, "init": "random", "max_iter": 4, "tol": 0.01, "random_state": 9});
    let found = fitted("sk.cluster.KMeans", params, "predict", &["cluster_centers_", "inertia_", "labels_"]);
    let k_means = KMeans::new().n_clusters(3).init(Init::Random).n_init(10).max_iter(4).tol(0.01);
    let model = k_means.random_state(9).fit(&x, ..).unwrap();
    assert_eq!(bits(&found["cluster_centers_"]), bits_in(&model.cluster_centers));
    assert_eq!(bits(&found["inertia_"]), bits_in(&[model.inertia]));
    assert_eq!(bits(&found["labels_"]), bits_of(&model.labels));
    assert_eq!(found["labels_"], found["r"]);

    let centers = [[0.5, 1.0, 0.5, 1.0], [2.0, 1.0, 2.0, 1.0]];
    let params = json!({"n_clusters": 2, "init": centers, "n_init": 1});
    let found = fitted("sk.cluster.KMeans", params, "transform", &["n_iter_"]);
    let init = Tensor::from_elements(&[2, 4], &centers.concat());
    let model = KMeans::new().n_clusters(2).init(&init).n_init(1).fit(&x, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.transform(&x)));
    assert_eq!(found["n_iter_"], model.n_iter);

    let params = json!({"priors": [0.25, 0.75], "var_smoothing": 0.1});
    let found = fitted("sk.naive_bayes.GaussianNB", params, "predict_proba", &["theta_"]);
    let model = GaussianNB::new().priors(&[0.25, 0.75]).var_smoothing(0.1).fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.predict_proba(&x)));

    let params = json!({"alpha": 0.5, "fit_prior": false});
    let found = fitted("sk.naive_bayes.MultinomialNB", params, "predict_log_proba", &[]);
    let model = MultinomialNB::new().alpha(0.5).fit_prior(false).fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.predict_log_proba(&x)));

    let params = json!({"alpha": 0.5, "binarize": 1.25, "class_prior": [0.125, 0.875]});
    let found = fitted("sk.naive_bayes.BernoulliNB", params, "predict_proba", &["class_log_prior_"]);
    let bernoulli = BernoulliNB::new().alpha(0.5).binarize(1.25).class_prior(&[0.125, 0.875]);
    let model = bernoulli.fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.predict_proba(&x)));
    assert_eq!(bits(&found["class_log_prior_"]), bits_in(&model.class_log_prior));
}

#[test]
fn trees_read_their_parameters() {
    let (x, y) = data();
    let params = json!({
        "n_estimators": 9, "criterion": "entropy", "max_depth": 2, "min_samples_split": 3,
        "min_samples_leaf": 2, "max_features": 0.5, "bootstrap": false, "random_state": 4,
    });
    let attributes = ["feature_importances_", "classes_"];
    let found = fitted("sk.ensemble.RandomForestClassifier", params, "predict_proba", &attributes);
    let forest =
        RandomForestClassifier::new().n_estimators(9).criterion(ClassCriterion::Entropy).max_depth(2);
    let forest = forest.min_samples_split(3).min_samples_leaf(2).max_features(0.5).bootstrap(false);
    let model = forest.random_state(4).fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.predict_proba(&x)));
    assert_eq!(bits(&found["feature_importances_"]), bits_in(&model.feature_importances));

    let params =
        json!({"bootstrap": true, "max_samples": 0.5, "max_leaf_nodes": 4, "min_impurity_decrease": 0.001});
    let found = fitted("sk.ensemble.ExtraTreesRegressor", params, "predict", &[]);
    let forest = ExtraTreesRegressor::new()
        .bootstrap(true)
        .max_samples(0.5)
        .max_leaf_nodes(4)
        .min_impurity_decrease(0.001);
    assert_eq!(bits(&found["r"]), bits_of(&forest.fit(&x, &y, ..).unwrap().predict(&x)));

    let params = json!({
        "loss": "poisson", "learning_rate": 0.25, "max_iter": 7, "max_leaf_nodes": 3, "min_samples_leaf": 2,
        "l2_regularization": 0.5, "max_bins": 8,
    });
    let found = fitted("sk.ensemble.HistGradientBoostingRegressor", params, "predict", &["n_iter_"]);
    let boosting = HistGradientBoostingRegressor::new().loss(RegressionLoss::Poisson).learning_rate(0.25);
    let boosting = boosting.max_iter(7).max_leaf_nodes(3).min_samples_leaf(2).l2_regularization(0.5);
    let model = boosting.max_bins(8).fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.predict(&x)));
    assert_eq!(found["n_iter_"], 7);

    let params = json!({"n_estimators": 9, "max_samples": 8, "contamination": 0.25, "random_state": 4});
    let found = fitted("sk.ensemble.IsolationForest", params, "decision_function", &["offset_"]);
    let forest = IsolationForest::new().n_estimators(9).max_samples(8).contamination(0.25).random_state(4);
    let model = forest.fit(&x, ..).unwrap();
    assert_eq!(bits(&found["r"]), bits_of(&model.decision_function(&x)));
    assert_eq!(bits(&found["offset_"]), bits_in(&[model.offset]));

    let program = json!([["m", "sk.ensemble.RandomForestClassifier", [], {"max_samples": 5}]]);
    assert_eq!(
        error(program),
        "NotImplemented: max_samples of RandomForestClassifier as a number of samples is not implemented"
    );
}

#[test]
fn a_fit_changes_its_estimator_and_a_second_one_replaces_the_model() {
    let found = run(
        json!([
            ["m", "sk.preprocessing.MaxAbsScaler", []],
            ["a", "sk.fit", [{"$": "m"}, [[2.0], [4.0]]]],
            ["before", "sk.transform", [{"$": "m"}, [[8.0]]]],
            ["b", "sk.fit", [{"$": "a"}, [[16.0, 1.0], [8.0, 2.0]]]],
            ["after", "sk.transform", [{"$": "a"}, [[8.0, 8.0]]]],
            ["scale", "sk.attr", [{"$": "m"}, "scale_"]],
            ["seen", "sk.attr", [{"$": "m"}, "n_features_in_"]],
        ]),
        json!(["before", "after", "scale", "seen"]),
    );
    // The expression is that of the model at its step, although it runs after the second fit.
    assert_eq!(found["before"]["arr"]["lit"], json!([[2.0]]));
    assert_eq!(found["after"]["arr"]["lit"], json!([[0.5, 4.0]]));
    assert_eq!(found["scale"]["arr"]["lit"], json!([16.0, 2.0]));
    assert_eq!(found["seen"], 2);
}

#[test]
fn weights_reach_fits_and_scores() {
    let (x, y) = data();
    let weights: Vec<f64> = (1..=12).map(f64::from).collect();
    let found = run(
        json!([
            ["m", "sk.linear_model.LinearRegression", []],
            ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}, weights]],
            ["r", "sk.score", [{"$": "m"}, {"$": "x"}, {"$": "y"}], {"sample_weight": weights}],
        ]),
        json!(["r"]),
    );
    let options = tharsis_learn::FitOptions::new().sample_weight(&Tensor::from_elements(&[12], &weights));
    let model = LinearRegression::new().fit(&x, &y, options.clone()).unwrap();
    assert_eq!(bits(&found["r"]), bits_in(&[model.score(&x, &y, options).unwrap()]));
}

#[test]
fn programs_run_alike_in_each_mode_and_any_chunks() {
    let program = json!([
        ["m", "sk.linear_model.Ridge", []],
        ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]],
        ["r", "sk.predict", [{"$": "m"}, {"$": "x"}]],
    ]);
    let in_context = |ctx: Json| {
        let found = reply(&json!({"ctx": ctx, "in": inputs(), "prog": program, "out": ["r"]}));
        assert_eq!(found["ok"], true, "{found}");
        found["out"]["r"]["arr"]["lit"].clone()
    };
    let lazy = in_context(json!({"mode": "lazy"}));
    assert_eq!(lazy, in_context(json!({"mode": "eager"})));
    assert_eq!(lazy, in_context(json!({"workers": 1})));
    for (a, b) in lazy.as_array().unwrap().iter().zip(in_context(json!({"chunks": 5})).as_array().unwrap()) {
        assert!((a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-12);
    }
}

#[test]
fn samples_of_unknown_number_are_fitted() {
    let found = run(
        json!([
            ["is", "np.greater", [{"$": "y"}, 0]],
            ["some", "np.compress", [{"$": "is"}, {"$": "x"}], {"axis": 0}],
            ["m", "sk.preprocessing.MinMaxScaler", []],
            ["r", "sk.fit_transform", [{"$": "m"}, {"$": "some"}]],
            ["n", "sk.attr", [{"$": "m"}, "n_samples_seen_"]],
        ]),
        json!(["r", "n"]),
    );
    assert_eq!(found["n"], 6);
    assert_eq!(found["r"]["arr"]["shape"], json!([6, 4]));
}

#[test]
fn splits_take_any_number_of_arrays() {
    let found = run(
        json!([["s", "sk.model_selection.train_test_split",
            [{"$": "y"}, {"$": "y"}, {"$": "x"}], {"test_size": 5, "shuffle": false}]]),
        json!(["s"]),
    );
    let parts = found["s"]["t"].as_array().unwrap();
    let shapes: Vec<&Json> = parts.iter().map(|part| &part["arr"]["shape"]).collect();
    assert_eq!(json!(shapes), json!([[7], [5], [7], [5], [7, 4], [5, 4]]));
    assert_eq!(
        error(json!([["s", "sk.model_selection.train_test_split", []]])),
        "ValueError: At least one array required as input"
    );
    let uneven = json!([["s", "sk.model_selection.train_test_split", [{"$": "y"}, {"$": "y"}, [1, 2]]]]);
    assert!(error(uneven).starts_with("ValueError: "));
}

#[test]
fn results_without_axes_are_numbers_for_parameters() {
    let found = run(
        json!([
            ["a", "np.mean", [[0.25, 0.75]]],
            ["k", "np.max", [[1, 2]]],
            ["yes", "np.any", [[true, false]]],
            ["m", "sk.linear_model.Lasso", [{"$": "a"}], {"positive": {"$": "yes"}}],
            ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]],
            ["alpha", "sk.attr", [{"$": "m"}, "alpha"]],
            ["c", "sk.cluster.KMeans", [], {"n_clusters": {"$": "k"}}],
            ["__", "sk.fit", [{"$": "c"}, {"$": "x"}]],
            ["n", "sk.attr", [{"$": "c"}, "n_clusters"]],
            ["r", "sk.linear_model.Ridge", [{"$": "a"}]],
            ["s", "sk.attr", [{"$": "r"}, "alpha"]],
        ]),
        json!(["alpha", "n", "s"]),
    );
    assert_eq!(found, json!({"alpha": 0.5, "n": 2, "s": 0.5}));
}

#[test]
fn one_weight_is_that_of_all_samples() {
    let fit = |weight: Json| {
        let program = json!([
            ["m", "sk.naive_bayes.GaussianNB", []],
            ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}, weight]],
            ["r", "sk.attr", [{"$": "m"}, "class_count_"]],
        ]);
        run(program, json!(["r"]))
    };
    assert_eq!(fit(json!(2.5)), fit(json!(vec![2.5; 12])));
    // A number of rows that only a run tells.
    let program = json!([
        ["all", "np.greater", [{"$": "y"}, -1]],
        ["few", "np.compress", [{"$": "all"}, {"$": "x"}], {"axis": 0}],
        ["m", "sk.naive_bayes.GaussianNB", []],
        ["_", "sk.fit", [{"$": "m"}, {"$": "few"}, {"$": "y"}, 2.5]],
        ["r", "sk.attr", [{"$": "m"}, "class_count_"]],
    ]);
    assert_eq!(run(program, json!(["r"])), fit(json!(2.5)));
    // Scores of scikit-learn have no such weight.
    let program = json!([
        ["m", "sk.naive_bayes.GaussianNB", []],
        ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]],
        ["s", "sk.score", [{"$": "m"}, {"$": "x"}, {"$": "y"}], {"sample_weight": 2}],
    ]);
    let text =
        "ValueError: The 'sample_weight' parameter of score must be an array-like or None. Got 2 instead.";
    assert!(error(program).starts_with(text));
}

#[test]
fn large_whole_numbers_are_numbers() {
    let program = json!([
        ["m", "sk.linear_model.Ridge", [{"i": "1000000000000000000000000000000"}]],
        ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]],
        ["r", "sk.predict", [{"$": "m"}, {"$": "x"}]],
    ]);
    assert!(
        bits(&run(program, json!(["r"]))["r"]).iter().all(|&bits| (f64::from_bits(bits) - 0.5).abs() < 1e-9)
    );
}

#[test]
fn searches_are_those_of_rust() {
    let program = json!([
        ["m", "sk.linear_model.Ridge", []],
        ["g", "sk.model_selection.GridSearchCV", [{"$": "m"}, {"o": {"alpha": [0.1, 1.0], "fit_intercept": [true, false]}}],
            {"cv": 3, "scoring": ["r2", "neg_mean_squared_error"], "refit": "r2", "return_train_score": true}],
        ["_", "sk.fit", [{"$": "g"}, {"$": "x"}, {"$": "y"}]],
        ["best", "sk.attr", [{"$": "g"}, "best_params_"]],
        ["score", "sk.attr", [{"$": "g"}, "best_score_"]],
        ["table", "sk.attr", [{"$": "g"}, "cv_results_"]],
        ["r", "sk.predict", [{"$": "g"}, {"$": "x"}]],
    ]);
    let found = run(program, json!(["best", "score", "table", "r"]));
    let (x, y) = data();
    let grid = ParamGrid::new().values("alpha", [0.1, 1.0]).values("fit_intercept", [true, false]);
    let validation = Validation {
        cv: 3.into(),
        scoring: Scoring::named("r2").unwrap(),
        further_scoring: vec![Scoring::named("neg_mean_squared_error").unwrap()],
        return_train_score: true,
        ..Validation::default()
    };
    let search = GridSearchCV::new(Ridge::new(), grid).validation(validation).fit(&x, &y, ..).unwrap();
    assert_eq!(bits(&found["score"]), bits_in(&[search.best_score]));
    assert_eq!(bits(&found["r"]), bits_of(&search.predict(&x)));
    let names: Vec<&str> =
        found["best"]["o"].as_array().unwrap().iter().map(|e| e[0].as_str().unwrap()).collect();
    assert_eq!(names, ["alpha", "fit_intercept"]);
    let column = |name: &str| {
        let entries = found["table"]["o"].as_array().unwrap().iter();
        let entry = entries.clone().find(|entry| entry[0] == name).unwrap_or_else(|| panic!("{name}"));
        bits(&entry[1])
    };
    for (shown, own) in [("r2", "score"), ("neg_mean_squared_error", "neg_mean_squared_error")] {
        for start in ["mean_test", "rank_test", "split2_test", "std_train"] {
            let own = search.cv_results.column(&format!("{start}_{own}")).unwrap();
            assert_eq!(column(&format!("{start}_{shown}")), bits_in(&own), "{start} of {shown}");
        }
    }
    let several = json!([
        ["m", "sk.linear_model.Ridge", []],
        ["g", "sk.model_selection.GridSearchCV", [{"$": "m"}, {"o": {}}], {"scoring": ["r2"]}],
    ]);
    assert!(
        error(several).starts_with("ValueError: For multi-metric scoring, the parameter refit must be set")
    );
    let other = json!([["m", "sk.linear_model.Ridge", []], ["g", "sk.model_selection.GridSearchCV", [{"$": "m"}, 3]]]);
    assert_eq!(
        error(other),
        "ValueError: The 'param_grid' parameter of GridSearchCV must be an instance of 'dict' or an instance of \
         'list'. Got 3 instead."
    );
}

#[test]
fn categories_that_are_left_out_are_told_where_any_may_be() {
    for (drop, expected) in [
        (json!(null), json!(null)),
        (json!("if_binary"), json!({"t": [null, 0]})),
        (json!("first"), json!({"t": [0, 0]})),
    ] {
        let program = json!([
            ["m", "sk.preprocessing.OneHotEncoder", [], {"drop": drop}],
            ["_", "sk.fit", [{"$": "m"}, [[1.0, 5.0], [2.0, 6.0], [3.0, 5.0]]]],
            ["d", "sk.attr", [{"$": "m"}, "drop_idx_"]],
        ]);
        assert_eq!(run(program, json!(["d"]))["d"], expected);
    }
}
