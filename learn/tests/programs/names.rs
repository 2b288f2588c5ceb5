//! Names, signatures, methods and attributes beside those of scikit-learn.

use super::{classes, error, inputs, is_of_labels, params, reply, rows, run, samples_of, target};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use tharsis_learn::programs::TABLES;
use tharsis_numeric::protocol::{list_further, registry};
use tharsis_trials::{is_long, part};

/// Written by `learn/tests/oracle/record_signatures.py` with scikit-learn 1.9.1.
const SIGNATURES: &str = include_str!("signatures.txt");

/// Signatures that differ, and ours.
const DIFFERENT: &[(&str, &str)] = &[
    // `y_pred` is the old name of `y_proba` there, and goes away.
    ("sk.metrics.log_loss", "(y_true, y_proba, *, normalize=True, sample_weight=None, labels=None)"),
    // The dtype of a matrix of counts is int64.
    ("sk.metrics.cluster.contingency_matrix", "(labels_true, labels_pred, *, eps=None, sparse=False)"),
    // The dtype of codes is float64.
    (
        "sk.preprocessing.OneHotEncoder",
        "(*, categories='auto', drop=None, sparse_output=True, handle_unknown='error', min_frequency=None, \
         max_categories=None, feature_name_combiner='concat')",
    ),
    (
        "sk.preprocessing.OrdinalEncoder",
        "(*, categories='auto', handle_unknown='error', unknown_value=None, encoded_missing_value=nan, \
         min_frequency=None, max_categories=None)",
    ),
    // The name of a function, where scikit-learn has the function.
    ("sk.feature_selection.SelectKBest", "(score_func='f_classif', *, k=10)"),
    ("sk.feature_selection.SelectPercentile", "(score_func='f_classif', *, percentile=10)"),
    ("sk.feature_selection.SelectFpr", "(score_func='f_classif', *, alpha=0.05)"),
    ("sk.feature_selection.SelectFdr", "(score_func='f_classif', *, alpha=0.05)"),
    ("sk.feature_selection.SelectFwe", "(score_func='f_classif', *, alpha=0.05)"),
];

/// Methods, and attributes of models, in scikit-learn 1.9.1.
const MEMBERS: &[(&str, &str, &str)] = &[
    ("LinearRegression", "predict score", "coef_ intercept_ n_features_in_ rank_ singular_"),
    ("Ridge", "predict score", "coef_ intercept_ n_features_in_ n_iter_ solver_"),
    (
        "RidgeClassifier",
        "decision_function predict score",
        "classes_ coef_ intercept_ n_features_in_ n_iter_ solver_",
    ),
    ("RidgeCV", "predict score", "alpha_ best_score_ coef_ intercept_ n_features_in_"),
    (
        "RidgeClassifierCV",
        "decision_function predict score",
        "alpha_ best_score_ classes_ coef_ intercept_ n_features_in_",
    ),
    (
        "LassoCV",
        "predict score",
        "alpha_ alphas_ coef_ dual_gap_ intercept_ mse_path_ n_features_in_ n_iter_",
    ),
    (
        "ElasticNetCV",
        "predict score",
        "alpha_ alphas_ coef_ dual_gap_ intercept_ l1_ratio_ mse_path_ n_features_in_ n_iter_",
    ),
    ("BayesianRidge", "predict score", OF_BAYESIAN),
    ("ARDRegression", "predict score", OF_BAYESIAN),
    ("Lars", "predict score", OF_PATHS),
    ("LassoLars", "predict score", OF_PATHS),
    (
        "LassoLarsIC",
        "predict score",
        "alpha_ alphas_ coef_ criterion_ intercept_ n_features_in_ n_iter_ noise_variance_",
    ),
    (
        "OrthogonalMatchingPursuit",
        "predict score",
        "coef_ intercept_ n_features_in_ n_iter_ n_nonzero_coefs_",
    ),
    (
        "LassoLarsCV",
        "predict score",
        "active_ alpha_ alphas_ coef_ coef_path_ cv_alphas_ intercept_ mse_path_ n_features_in_ n_iter_",
    ),
    (
        "OrthogonalMatchingPursuitCV",
        "predict score",
        "coef_ intercept_ n_features_in_ n_iter_ n_nonzero_coefs_",
    ),
    ("HuberRegressor", "predict score", "coef_ intercept_ n_features_in_ n_iter_ outliers_ scale_"),
    ("LinearSVC", "decision_function predict score", "classes_ coef_ intercept_ n_features_in_ n_iter_"),
    ("LinearSVR", "predict score", "coef_ intercept_ n_features_in_ n_iter_"),
    ("SGDClassifier", "decision_function predict score", OF_STEPPING_CLASSIFIERS),
    ("SGDRegressor", "predict score", OF_STEPPING_REGRESSORS),
    ("Perceptron", "decision_function predict score", OF_STEPPING_CLASSIFIERS),
    ("PassiveAggressiveClassifier", "decision_function predict score", OF_STEPPING_CLASSIFIERS),
    ("PassiveAggressiveRegressor", "predict score", OF_STEPPING_REGRESSORS),
    ("PoissonRegressor", "predict score", OF_GENERALIZED),
    ("GammaRegressor", "predict score", OF_GENERALIZED),
    ("TweedieRegressor", "predict score", OF_GENERALIZED),
    (
        "LinearDiscriminantAnalysis",
        "decision_function fit_transform predict predict_log_proba predict_proba score transform",
        "classes_ coef_ explained_variance_ratio_ intercept_ means_ n_features_in_ priors_ scalings_ xbar_",
    ),
    (
        "QuadraticDiscriminantAnalysis",
        "decision_function predict predict_log_proba predict_proba score",
        "classes_ means_ n_features_in_ priors_ rotations_ scalings_",
    ),
    ("DummyClassifier", PREDICTS_CHANCES, "class_prior_ classes_ n_classes_ n_features_in_ n_outputs_"),
    ("DummyRegressor", "predict score", "constant_ n_features_in_ n_outputs_"),
    (
        "NearestCentroid",
        "decision_function predict predict_log_proba predict_proba score",
        "centroids_ class_prior_ classes_ deviations_ n_features_in_ within_class_std_dev_",
    ),
    ("EmpiricalCovariance", "score", "covariance_ location_ n_features_in_ precision_"),
    ("ShrunkCovariance", "score", "covariance_ location_ n_features_in_ precision_"),
    ("LedoitWolf", "score", "covariance_ location_ n_features_in_ precision_ shrinkage_"),
    ("OAS", "score", "covariance_ location_ n_features_in_ precision_ shrinkage_"),
    ("OneHotEncoder", MAPS_BACK, "categories_ drop_idx_ infrequent_categories_ n_features_in_"),
    ("OrdinalEncoder", MAPS_BACK, "categories_ infrequent_categories_ n_features_in_"),
    ("KBinsDiscretizer", MAPS_BACK, "bin_edges_ n_bins_ n_features_in_"),
    ("LabelEncoder", MAPS_BACK, "classes_"),
    ("LabelBinarizer", MAPS_BACK, "classes_ sparse_input_ y_type_"),
    ("SplineTransformer", "fit_transform transform", "bsplines_ n_features_in_ n_features_out_"),
    (
        "TargetEncoder",
        "fit_transform transform",
        "categories_ classes_ encodings_ n_features_in_ target_mean_ target_type_",
    ),
    ("KernelCenterer", "fit_transform transform", "K_fit_all_ K_fit_rows_ n_features_in_"),
    ("GaussianRandomProjection", MAPS_BACK, "components_ n_components_ n_features_in_"),
    ("SparseRandomProjection", MAPS_BACK, "components_ density_ n_components_ n_features_in_"),
    ("RBFSampler", "fit_transform transform", "n_features_in_ random_offset_ random_weights_"),
    ("SkewedChi2Sampler", "fit_transform transform", "n_features_in_ random_offset_ random_weights_"),
    ("AdditiveChi2Sampler", "fit_transform transform", "n_features_in_"),
    ("PolynomialCountSketch", "fit_transform transform", "bitHash_ indexHash_ n_features_in_"),
    ("Nystroem", "fit_transform transform", "component_indices_ components_ n_features_in_ normalization_"),
    ("RobustScaler", MAPS_BACK, "center_ n_features_in_ scale_"),
    ("QuantileTransformer", MAPS_BACK, "n_features_in_ n_quantiles_ quantiles_ references_"),
    ("PowerTransformer", MAPS_BACK, "lambdas_ n_features_in_"),
    ("PolynomialFeatures", "fit_transform transform", "n_features_in_ n_output_features_ powers_"),
    // Its `inverse_transform` needs indicators, which are not there by default.
    ("SimpleImputer", "fit_transform transform", "indicator_ n_features_in_ statistics_"),
    ("MissingIndicator", "fit_transform transform", "features_ n_features_in_"),
    ("KNNImputer", "fit_transform transform", "indicator_ n_features_in_"),
    (
        "AgglomerativeClustering",
        "fit_predict",
        "children_ labels_ n_clusters_ n_connected_components_ n_features_in_ n_leaves_",
    ),
    ("DBSCAN", "fit_predict", "components_ core_sample_indices_ labels_ n_features_in_"),
    (
        "GaussianMixture",
        "fit_predict predict predict_proba score score_samples",
        "converged_ covariances_ lower_bound_ lower_bounds_ means_ n_features_in_ n_iter_ precisions_ \
         precisions_cholesky_ weights_",
    ),
    (
        "FactorAnalysis",
        "fit_transform score score_samples transform",
        "components_ loglike_ mean_ n_features_in_ n_iter_ noise_variance_",
    ),
    ("NMF", MAPS_BACK, "components_ n_components_ n_features_in_ n_iter_ reconstruction_err_"),
    ("FastICA", MAPS_BACK, "components_ mean_ mixing_ n_features_in_ n_iter_ whitening_"),
    (
        "IncrementalPCA",
        MAPS_BACK,
        "batch_size_ components_ explained_variance_ explained_variance_ratio_ mean_ n_components_ n_features_in_ \
         n_samples_seen_ noise_variance_ singular_values_ var_",
    ),
    ("NearestNeighbors", "kneighbors", OF_NEIGHBORS),
    (
        "KNeighborsClassifier",
        "kneighbors predict predict_proba score",
        "classes_ effective_metric_ effective_metric_params_ n_features_in_ n_samples_fit_ outputs_2d_",
    ),
    ("KNeighborsRegressor", "kneighbors predict score", OF_NEIGHBORS),
    (
        "RadiusNeighborsClassifier",
        "predict predict_proba score",
        "classes_ effective_metric_ effective_metric_params_ n_features_in_ n_samples_fit_ outlier_label_ outputs_2d_",
    ),
    ("RadiusNeighborsRegressor", "predict score", OF_NEIGHBORS),
    (
        "LocalOutlierFactor",
        "fit_predict kneighbors",
        "effective_metric_ effective_metric_params_ n_features_in_ n_neighbors_ n_samples_fit_ \
         negative_outlier_factor_ offset_",
    ),
    ("VarianceThreshold", MAPS_BACK, "n_features_in_ variances_"),
    ("SelectKBest", MAPS_BACK, "n_features_in_ pvalues_ scores_"),
    ("SelectPercentile", MAPS_BACK, "n_features_in_ pvalues_ scores_"),
    ("SelectFpr", MAPS_BACK, "n_features_in_ pvalues_ scores_"),
    ("SelectFdr", MAPS_BACK, "n_features_in_ pvalues_ scores_"),
    ("SelectFwe", MAPS_BACK, "n_features_in_ pvalues_ scores_"),
    ("Lasso", "predict score", "coef_ dual_gap_ intercept_ n_features_in_ n_iter_ sparse_coef_"),
    ("ElasticNet", "predict score", "coef_ dual_gap_ intercept_ n_features_in_ n_iter_ sparse_coef_"),
    (
        "LogisticRegression",
        "decision_function predict predict_log_proba predict_proba score",
        "classes_ coef_ intercept_ n_features_in_ n_iter_",
    ),
    (
        "StandardScaler",
        "fit_transform inverse_transform transform",
        "mean_ n_features_in_ n_samples_seen_ scale_ var_",
    ),
    (
        "MinMaxScaler",
        "fit_transform inverse_transform transform",
        "data_max_ data_min_ data_range_ min_ n_features_in_ n_samples_seen_ scale_",
    ),
    (
        "MaxAbsScaler",
        "fit_transform inverse_transform transform",
        "max_abs_ n_features_in_ n_samples_seen_ scale_",
    ),
    ("Normalizer", "fit_transform transform", "n_features_in_"),
    ("Binarizer", "fit_transform transform", "n_features_in_"),
    (
        "PCA",
        "fit_transform inverse_transform score score_samples transform",
        "components_ explained_variance_ explained_variance_ratio_ mean_ n_components_ n_features_in_ n_samples_ \
         noise_variance_ singular_values_",
    ),
    (
        "TruncatedSVD",
        "fit_transform inverse_transform transform",
        "components_ explained_variance_ explained_variance_ratio_ n_features_in_ singular_values_",
    ),
    (
        "KMeans",
        "fit_predict fit_transform predict score transform",
        "cluster_centers_ inertia_ labels_ n_features_in_ n_iter_",
    ),
    (
        "GaussianNB",
        "predict predict_log_proba predict_proba score",
        "class_count_ class_prior_ classes_ epsilon_ n_features_in_ theta_ var_",
    ),
    (
        "MultinomialNB",
        "predict predict_log_proba predict_proba score",
        "class_count_ class_log_prior_ classes_ feature_count_ feature_log_prob_ n_features_in_",
    ),
    (
        "BernoulliNB",
        "predict predict_log_proba predict_proba score",
        "class_count_ class_log_prior_ classes_ feature_count_ feature_log_prob_ n_features_in_",
    ),
    (
        "ComplementNB",
        PREDICTS_CHANCES,
        "class_count_ class_log_prior_ classes_ feature_all_ feature_count_ feature_log_prob_ n_features_in_",
    ),
    (
        "CategoricalNB",
        PREDICTS_CHANCES,
        "category_count_ class_count_ class_log_prior_ classes_ feature_log_prob_ n_categories_ n_features_in_",
    ),
    (
        "DecisionTreeClassifier",
        "predict predict_log_proba predict_proba score",
        "classes_ feature_importances_ max_features_ n_classes_ n_features_in_ n_outputs_ tree_",
    ),
    (
        "DecisionTreeRegressor",
        "predict score",
        "feature_importances_ max_features_ n_features_in_ n_outputs_ tree_",
    ),
    ("RandomForestClassifier", "predict predict_log_proba predict_proba score", OF_FOREST_CLASSIFIERS),
    ("RandomForestRegressor", "predict score", OF_FOREST_REGRESSORS),
    ("ExtraTreesClassifier", "predict predict_log_proba predict_proba score", OF_FOREST_CLASSIFIERS),
    ("ExtraTreesRegressor", "predict score", OF_FOREST_REGRESSORS),
    (
        "HistGradientBoostingClassifier",
        "decision_function predict predict_proba score",
        "classes_ do_early_stopping_ is_categorical_ n_features_in_ n_iter_ n_trees_per_iteration_ train_score_ \
         validation_score_",
    ),
    (
        "HistGradientBoostingRegressor",
        "predict score",
        "do_early_stopping_ is_categorical_ n_features_in_ n_iter_ n_trees_per_iteration_ train_score_ \
         validation_score_",
    ),
    (
        "VotingClassifier",
        "fit_transform predict score transform",
        "classes_ estimators_ le_ n_features_in_ named_estimators_",
    ),
    (
        "VotingRegressor",
        "fit_transform predict score transform",
        "estimators_ n_features_in_ named_estimators_",
    ),
    (
        "StackingClassifier",
        "decision_function fit_transform predict predict_proba score transform",
        "classes_ estimators_ final_estimator_ n_features_in_ named_estimators_ stack_method_",
    ),
    (
        "StackingRegressor",
        "fit_transform predict score transform",
        "estimators_ final_estimator_ n_features_in_ named_estimators_ stack_method_",
    ),
    (
        "BaggingClassifier",
        PREDICTS_CHANCES,
        "classes_ estimator_ estimators_ estimators_features_ estimators_samples_ n_classes_ n_features_in_",
    ),
    (
        "BaggingRegressor",
        "predict score",
        "estimator_ estimators_ estimators_features_ estimators_samples_ n_features_in_",
    ),
    (
        "AdaBoostClassifier",
        "decision_function predict predict_log_proba predict_proba score",
        "classes_ estimator_ estimator_errors_ estimator_weights_ estimators_ feature_importances_ n_classes_ \
         n_features_in_",
    ),
    (
        "AdaBoostRegressor",
        "predict score",
        "estimator_ estimator_errors_ estimator_weights_ estimators_ feature_importances_ n_features_in_",
    ),
    // Of a member that tells probabilities and no decisions.
    (
        "OneVsRestClassifier",
        "predict predict_proba score",
        "classes_ estimators_ label_binarizer_ multilabel_ n_classes_ n_features_in_",
    ),
    (
        "OneVsOneClassifier",
        "decision_function predict score",
        "classes_ estimators_ n_classes_ n_features_in_ pairwise_indices_",
    ),
    ("MultiOutputRegressor", "predict score", "estimators_ n_features_in_"),
    ("MultiOutputClassifier", "predict score", "classes_ estimators_ n_features_in_"),
    ("TransformedTargetRegressor", "predict score", "n_features_in_ regressor_ transformer_"),
    (
        "CalibratedClassifierCV",
        "predict predict_proba score",
        "calibrated_classifiers_ classes_ n_features_in_",
    ),
    (
        "IsotonicRegression",
        "fit_transform predict score transform",
        "X_max_ X_min_ X_thresholds_ f_ increasing_ y_thresholds_",
    ),
    (
        "MiniBatchKMeans",
        "fit_predict fit_transform predict score transform",
        "cluster_centers_ inertia_ labels_ n_features_in_ n_iter_ n_steps_",
    ),
    (
        "BisectingKMeans",
        "fit_predict fit_transform predict score transform",
        "cluster_centers_ inertia_ labels_ n_features_in_",
    ),
    (
        "RFE",
        "fit_transform inverse_transform predict score transform",
        "estimator_ n_features_ n_features_in_ ranking_ support_",
    ),
    (
        "ColumnTransformer",
        "fit_transform transform",
        "n_features_in_ named_transformers_ output_indices_ sparse_output_ transformers_",
    ),
    ("FeatureUnion", "fit_transform transform", "n_features_in_ named_transformers"),
    ("Pipeline", "predict score", "n_features_in_ named_steps"),
    (
        "GridSearchCV",
        "predict score",
        "best_estimator_ best_index_ best_params_ best_score_ cv_results_ multimetric_ n_features_in_ n_splits_ \
         refit_time_ scorer_",
    ),
    (
        "RandomizedSearchCV",
        "predict score",
        "best_estimator_ best_index_ best_params_ best_score_ cv_results_ multimetric_ n_features_in_ n_splits_ \
         refit_time_ scorer_",
    ),
    ("HalvingGridSearchCV", "predict score", OF_HALVING),
    ("HalvingRandomSearchCV", "predict score", OF_HALVING),
    (
        "LogisticRegressionCV",
        "decision_function predict predict_log_proba predict_proba score",
        "C_ Cs_ classes_ coef_ coefs_paths_ intercept_ l1_ratio_ l1_ratios_ n_features_in_ n_iter_ scores_",
    ),
    ("SelectFromModel", MAPS_BACK, "estimator_ n_features_in_ threshold_"),
    ("SequentialFeatureSelector", MAPS_BACK, "n_features_in_ n_features_to_select_ support_"),
    (
        "IsolationForest",
        "decision_function fit_predict predict score_samples",
        "estimator_ estimators_ estimators_features_ estimators_samples_ max_samples_ n_features_in_ offset_",
    ),
];

const PREDICTS_CHANCES: &str = "predict predict_log_proba predict_proba score";
const OF_NEIGHBORS: &str = "effective_metric_ effective_metric_params_ n_features_in_ n_samples_fit_";
const OF_HALVING: &str = "best_estimator_ best_index_ best_params_ best_score_ cv_results_ max_resources_ min_resources_ \
                          multimetric_ n_candidates_ n_features_in_ n_iterations_ n_possible_iterations_ \
                          n_remaining_candidates_ n_required_iterations_ n_resources_ n_splits_ refit_time_ scorer_";
const MAPS_BACK: &str = "fit_transform inverse_transform transform";
const OF_BAYESIAN: &str =
    "X_offset_ X_scale_ alpha_ coef_ intercept_ lambda_ n_features_in_ n_iter_ scores_ sigma_";
const OF_PATHS: &str = "active_ alphas_ coef_ coef_path_ intercept_ n_features_in_ n_iter_";
const OF_STEPPING_CLASSIFIERS: &str = "classes_ coef_ intercept_ n_features_in_ n_iter_ t_";
const OF_STEPPING_REGRESSORS: &str = "coef_ intercept_ n_features_in_ n_iter_ t_";
const OF_GENERALIZED: &str = "coef_ intercept_ n_features_in_ n_iter_";
const OF_FOREST_CLASSIFIERS: &str = "classes_ estimator_ estimators_ estimators_samples_ feature_importances_ \
                                     n_classes_ n_features_in_ n_outputs_";
const OF_FOREST_REGRESSORS: &str =
    "estimator_ estimators_ estimators_samples_ feature_importances_ n_features_in_ n_outputs_";

/// Classes that need no fit.
const STATELESS: [&str; 2] = ["Normalizer", "Binarizer"];

pub(super) fn members(class: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let bare = class.rsplit('.').next().unwrap();
    let found = MEMBERS.iter().find(|(name, ..)| *name == bare);
    let (_, methods, attributes) = found.unwrap_or_else(|| panic!("{class} has no line of members"));
    (methods.split(' ').collect(), attributes.split_whitespace().collect())
}

/// The methods of estimators that programs have.
fn methods() -> Vec<&'static str> {
    let names = rows().map(|row| row.name.strip_prefix("sk.").unwrap());
    // Names of features have a test of their own.
    let others = ["attr", "fit", "get_feature_names_out"];
    names.filter(|name| !name.contains('.') && !others.contains(name)).collect()
}

#[test]
fn signatures_are_those_of_scikit_learn() {
    let recorded: BTreeMap<&str, &str> =
        SIGNATURES.lines().map(|line| line.split_once(' ').unwrap()).collect();
    let different: BTreeMap<&str, &str> = DIFFERENT.iter().copied().collect();
    for row in rows().filter(|row| row.name.matches('.').count() != 1) {
        let known = different.get(row.name).or_else(|| recorded.get(row.name));
        let known = known.unwrap_or_else(|| panic!("{} has no recorded signature", row.name));
        assert_eq!(row.signature(), *known, "{}", row.name);
    }
    for (name, ours) in DIFFERENT {
        assert_ne!(recorded[name], *ours, "{name} does not differ");
    }
}

#[test]
fn the_list_has_the_parameters_that_bind_calls() {
    let mut text = Vec::new();
    list_further(&mut text, TABLES).unwrap();
    let lines: Vec<Json> =
        String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), rows().count());
    for (line, row) in lines.iter().zip(rows()) {
        assert_eq!(line["name"], row.name);
        assert_eq!(line["signature"], row.signature());
        let params = line["params"].as_array().unwrap();
        let names: Vec<&str> = params.iter().map(|param| param["name"].as_str().unwrap()).collect();
        assert_eq!(names, row.params.iter().map(|param| param.name).collect::<Vec<_>>());
        assert!(params.iter().all(|param| !param["kind"].as_str().unwrap().is_empty()));
    }
    let ridge = lines.iter().find(|line| line["name"] == "sk.linear_model.Ridge").unwrap();
    let param = |name: &str| {
        let params = ridge["params"].as_array().unwrap();
        params.iter().find(|param| param["name"] == name).unwrap().clone()
    };
    assert_eq!(
        param("alpha"),
        json!({"name": "alpha", "kind": "a float or an array-like", "only": "a float", "default": "1.0"})
    );
    assert_eq!(param("tol"), json!({"name": "tol", "kind": "a float", "default": "0.0001", "fixed": true}));
}

#[test]
fn names_are_unique_among_all_operations() {
    let mut names = BTreeSet::new();
    let tensors = registry::all().into_iter().map(|operation| operation.name);
    for name in tensors.chain(rows().map(|row| row.name.to_owned())) {
        assert!(names.insert(name.clone()), "{name} stands twice");
    }
}

/// A program that fits the estimator `m` of a class.
fn fitted(class: &str) -> Vec<Json> {
    vec![
        json!(["m", class, [], params(class)]),
        json!(["_", "sk.fit", [{"$": "m"}, samples_of(class), target(class)]]),
    ]
}

/// The arguments of a method of `m`.
fn arguments(class: &str, method: &str) -> Vec<Json> {
    let has_target = ["fit_transform", "fit_predict", "score"].contains(&method);
    let own = [json!({"$": "m"}), samples_of(class)];
    own.into_iter().chain(has_target.then(|| target(class))).collect()
}

/// One fit of each class tells all its methods; those that it lacks, it lacks before a fit, and one of them
/// in turn, or in a long run each, behind it.
#[test]
fn classes_have_the_methods_of_scikit_learn() {
    for (at, class) in classes().into_iter().enumerate() {
        let (known, _) = members(class);
        let bare = class.rsplit('.').next().unwrap();
        let (had, lacking): (Vec<_>, Vec<_>) =
            methods().into_iter().partition(|method| known.contains(method));
        let mut program = fitted(class);
        for method in &had {
            let mut given = arguments(class, method);
            if *method == "inverse_transform" && known.contains(&"transform") {
                program.push(json!(["t", "sk.transform", [{"$": "m"}, samples_of(class)]]));
                given[1] = json!({"$": "t"});
            }
            program.push(json!([method, format!("sk.{method}"), given]));
        }
        run(json!(program), json!(had));
        let count = lacking.len() as u64;
        let turn = (at as u64 + part(count)).checked_rem(count);
        for (number, method) in (0..).zip(lacking) {
            let unfitted = json!(["m", class, [], params(class)]);
            let call = json!(["r", format!("sk.{method}"), arguments(class, method)]);
            let expected = format!("AttributeError: '{bare}' object has no attribute '{method}'");
            // Some have a method for a choice of a parameter, at which they look behind a fit only.
            let before = error(json!([unfitted, call]));
            let is_late = before.starts_with("NotFittedError");
            assert!(is_late || before == expected, "{before}");
            if is_long() || is_late || Some(number) == turn {
                let program: Vec<Json> = fitted(class).into_iter().chain([call]).collect();
                assert_eq!(error(json!(program)), expected, "behind a fit");
            }
        }
    }
}

#[test]
fn methods_before_a_fit_say_so() {
    for class in classes() {
        let (known, _) = members(class);
        let bare = class.rsplit('.').next().unwrap();
        for method in known.iter().filter(|method| !method.starts_with("fit")) {
            let mut arguments = vec![json!({"$": "m"}), json!({"$": "x"})];
            if *method == "score" {
                arguments.push(target(class));
            }
            let program = json!([["m", class, [], params(class)], ["r", format!("sk.{method}"), arguments]]);
            if STATELESS.contains(&bare) {
                run(program, json!(["r"]));
                continue;
            }
            assert_eq!(
                error(program),
                format!(
                    "NotFittedError: This {bare} instance is not fitted yet. Call 'fit' with appropriate \
                     arguments before using this estimator."
                )
            );
        }
    }
}

#[test]
fn models_have_the_attributes_of_scikit_learn() {
    for class in classes() {
        let (_, attributes) = members(class);
        let bare = class.rsplit('.').next().unwrap();
        for attribute in &attributes {
            let before = json!([["m", class, [], params(class)], ["a", "sk.attr", [{"$": "m"}, attribute]]]);
            let lacks = format!("AttributeError: '{bare}' object has no attribute '{attribute}'");
            assert_eq!(error(before), lacks);
        }
        let told = |attributes: &[&str]| {
            let steps = attributes.iter().map(|name| json!([name, "sk.attr", [{"$": "m"}, name]]));
            let program: Vec<Json> = fitted(class).into_iter().chain(steps).collect();
            let found = reply(&json!({"in": inputs(), "prog": program, "out": attributes}));
            let is_known = found["ok"] == true || found["err"]["class"] == "NotImplemented";
            assert!(is_known, "{bare}.{attributes:?}: {found}");
            found
        };
        // One fit tells all of those that are there. Where one is an object, which is no result, each has a
        // fit of its own.
        let mut left = attributes;
        loop {
            let found = told(&left);
            let Some(text) = found["err"]["msg"].as_str() else { break };
            let absent = left.iter().position(|name| text.starts_with(&format!("the attribute {name} of ")));
            let Some(absent) = absent else {
                left.iter().for_each(|name| drop(told(&[*name])));
                break;
            };
            left.remove(absent);
        }
        let mut program = fitted(class);
        program.push(json!(["n", "sk.attr", [{"$": "m"}, "n_features_in_"]]));
        let program = json!(program);
        if is_of_labels(class) {
            let lacks = format!("AttributeError: '{bare}' object has no attribute 'n_features_in_'");
            assert_eq!(error(program), lacks);
            continue;
        }
        let features = if bare == "IsotonicRegression" { 1 } else { 4 };
        assert_eq!(run(program.clone(), json!(["n"]))["n"], features, "{bare}");
        let mut wrong = program.as_array().unwrap().clone();
        wrong.push(json!(["a", "sk.attr", [{"$": "m"}, "coefs_"]]));
        let lacks = format!("AttributeError: '{bare}' object has no attribute 'coefs_'");
        assert_eq!(error(json!(wrong)), lacks);
    }
}
