//! Texts of what is refused.

use std::sync::Arc;
use tharsis_learn::FitOptions;
use tharsis_learn::ensemble::{
    ExtraTreesRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor, IsolationForest,
    RandomForestClassifier, RegressionLoss,
};
use tharsis_learn::tree::{DecisionTreeClassifier, DecisionTreeRegressor, MaxFeatures};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Error, LocalExecutor, Tensor, arange, array, full, ones, zeros};

fn says<T>(result: Result<T, Error>, text: &str) {
    match result {
        Ok(_) => panic!("nothing is refused; expected {text}"),
        Err(error) => {
            assert_eq!(error.class(), "ValueError", "{error}");
            assert!(error.to_string().contains(text), "{error}, not {text}");
        }
    }
}

fn xy() -> (Tensor, Tensor) {
    (arange(6).reshape(&[6, 1]), array([0i64, 1, 0, 1, 0, 1]))
}

#[test]
fn parameters_out_of_their_ranges() {
    let (x, y) = xy();
    let boosted = HistGradientBoostingRegressor::new;
    says(boosted().learning_rate(f64::NAN).fit(&x, &y, ..), "'learning_rate' parameter");
    says(boosted().max_iter(0).fit(&x, &y, ..), "must be an int in the range [1, inf). Got 0");
    says(boosted().max_leaf_nodes(1).fit(&x, &y, ..), "must be an int in the range [2, inf) or None. Got 1");
    says(boosted().max_depth(0).fit(&x, &y, ..), "'max_depth' parameter of HistGradientBoostingRegressor");
    says(boosted().min_samples_leaf(0).fit(&x, &y, ..), "'min_samples_leaf'");
    says(boosted().l2_regularization(-1.0).fit(&x, &y, ..), "'l2_regularization'");
    says(boosted().max_bins(1).fit(&x, &y, ..), "must be an int in the range [2, 255]. Got 1");
    says(boosted().validation_fraction(1.0).fit(&x, &y, ..), "'validation_fraction'");
    says(boosted().n_iter_no_change(0).fit(&x, &y, ..), "'n_iter_no_change'");
    says(boosted().tol(f64::INFINITY).fit(&x, &y, ..), "'tol'");
    let tree = DecisionTreeRegressor::new;
    says(tree().min_samples_split(1).fit(&x, &y, ..), "must be an int in the range [2, inf) or a float");
    says(tree().min_samples_leaf(0).fit(&x, &y, ..), "'min_samples_leaf' parameter of DecisionTreeRegressor");
    says(tree().max_features(MaxFeatures::Share(1.5)).fit(&x, &y, ..), "'max_features'");
    says(tree().max_features(0).fit(&x, &y, ..), "Got 0");
    says(tree().min_impurity_decrease(-0.1).fit(&x, &y, ..), "'min_impurity_decrease'");
    let forest = RandomForestClassifier::new;
    says(forest().n_estimators(0).fit(&x, &y, ..), "'n_estimators' parameter of RandomForestClassifier");
    says(forest().max_samples(0.0).fit(&x, &y, ..), "'max_samples'");
    says(forest().max_samples(0.5).bootstrap(false).fit(&x, &y, ..), "cannot be set if `bootstrap=False`");
    says(ExtraTreesRegressor::new().oob_score(true).fit(&x, &y, ..), "only available if bootstrap=True");
    says(IsolationForest::new().contamination(0.6).fit(&x, ..), "'contamination'");
    says(IsolationForest::new().max_samples(0).fit(&x, ..), "'max_samples'");
}

#[test]
fn samples_targets_and_weights_that_do_not_fit() {
    let (x, y) = xy();
    let tree = DecisionTreeClassifier::new();
    says(tree.fit(&arange(6), &y, ..), "Expected 2D array");
    says(tree.fit(&zeros(&[0, 2]), &zeros(&[0]), ..), "Found array with 0 sample(s)");
    says(tree.fit(&zeros(&[2, 0]), &zeros(&[2]), ..), "Found array with 0 feature(s)");
    says(tree.fit(&x, &arange(5), ..), "inconsistent numbers of samples: [6, 5]");
    says(tree.fit(&x, &(&y * 0.3), ..), "Unknown label type: continuous");
    says(tree.fit(&x, &ones(&[6, 2]), ..), "y should be a 1d array");
    says(DecisionTreeRegressor::new().fit(&x, &ones(&[6, 2]), ..), "y should be a 1d array");
    let infinite = &x / 0.0;
    says(
        tree.fit(&array([1.0, 2.0, 1.0, f64::INFINITY]).reshape(&[2, 2]), &array([0i64, 1]), ..),
        "infinity",
    );
    says(ExtraTreesRegressor::new().fit(&infinite, &y, ..), "contains infinity");
    says(
        DecisionTreeRegressor::new().fit(&x, &full(&[6], f64::NAN, DType::F64), ..),
        "Input y contains NaN.",
    );
    let boosted = HistGradientBoostingRegressor::new();
    says(boosted.fit(&infinite, &full(&[6], f64::INFINITY, DType::F64), ..), "Input y contains infinity");
    let weighted = |weight: Tensor| boosted.fit(&x, &y, FitOptions::new().sample_weight(&weight));
    says(
        weighted(array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0])),
        "Input sample_weight contains NaN or negative values.",
    );
    says(weighted(zeros(&[6])), "must contain at least one non-zero number");
    says(weighted(ones(&[5])), "sample_weight.shape == (5,), expected (6,)!");
    let poisson = HistGradientBoostingRegressor::new().loss(RegressionLoss::Poisson);
    says(poisson.fit(&x, &(&y - 1), ..), "requires non-negative y and sum(y) > 0.");
    says(poisson.fit(&x, &zeros(&[6]), ..), "requires non-negative y and sum(y) > 0.");
    let gamma = HistGradientBoostingRegressor::new().loss(RegressionLoss::Gamma);
    says(gamma.fit(&x, &y, ..), "requires strictly positive y.");
    let all = HistGradientBoostingRegressor::new().early_stopping(true).validation_fraction(0.99);
    says(all.fit(&x, &y, ..), "the resulting train set will be empty");
    assert!(IsolationForest::new().fit(&infinite, ..).is_ok());
    says(IsolationForest::new().fit(&x, FitOptions::new().sample_weight(&ones(&[6]))), "sample_weight");
}

#[test]
fn new_samples_that_do_not_fit() {
    let (x, y) = xy();
    let wide = zeros(&[1, 2]);
    let forest = RandomForestClassifier::new().n_estimators(2).fit(&x, &y, ..).unwrap();
    let text = "X has 2 features, but RandomForestClassifier is expecting 1 features as input.";
    says(forest.predict(&wide).fetch::<i64>(), text);
    says(
        forest.predict_proba(&array([f64::INFINITY]).reshape(&[1, 1])).fetch::<f64>(),
        "Input X contains infinity",
    );
    let boosted = HistGradientBoostingClassifier::new().fit(&x, &y, ..).unwrap();
    says(boosted.predict(&wide).fetch::<i64>(), "X has 2 features");
    let isolation = IsolationForest::new().fit(&x, ..).unwrap();
    says(isolation.score_samples(&wide).fetch::<f64>(), "X has 2 features");
    let odd = array([f64::NAN, f64::INFINITY]).reshape(&[2, 1]);
    assert!(isolation.score_samples(&odd).to_vec::<f64>().unwrap().iter().all(|score| score.is_finite()));
}

#[test]
fn more_classes_than_memory_has_room_for() {
    let x = arange(30_000).reshape(&[10_000, 3]);
    let little = FitOptions::new().executor(Arc::new(LocalExecutor::sized(2, 64 << 20)));
    let error = DecisionTreeClassifier::new().fit(&x, &arange(10_000), &little).unwrap_err();
    assert_eq!(error.class(), "MemoryError", "{error}");
    // A hundred classes fit: sums of a node by feature go through several passes.
    let x = default_rng(5).random(&[2_000, 40]).execute().unwrap();
    let y = arange(2_000) % 100;
    let model = DecisionTreeClassifier::new().max_depth(2).fit(&x, &y, &little).unwrap();
    assert_eq!(model.classes.len(), 100);
}
