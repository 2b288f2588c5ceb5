"""Records what scikit-learn answers: `python record.py` writes `answers.json` beside it.

Data are rounded to three digits and written with the answers, so that a test needs no generator. NaN is
written as null. Of results with a row for each sample the first ones are recorded. Solvers that iterate are told to go on until nothing changes, so that the answers are those
of the optimum.
"""

import json
import pathlib

import numpy as np
import sklearn
from sklearn import (
    cluster, covariance, decomposition, discriminant_analysis, dummy, feature_selection, impute, kernel_approximation,
    linear_model, model_selection, naive_bayes, neighbors, pipeline, preprocessing,
)

rng = np.random.default_rng(39)
ROWS = 61
# Rows of a result that are recorded.
SHOWN = 9


def rounded(x):
    return np.round(x, 3)


def data():
    scale, offset = np.array([1.0, 3.0, 0.05, 20.0]), np.array([0.0, 5.0, 1000.0, -0.3])
    x = rounded(rng.normal(size=(ROWS, 4)) * scale + offset)
    w = rounded(rng.uniform(0.0, 2.0, ROWS))
    w[[3, 17]] = 0.0
    y = rounded(x @ np.array([2.0, -1.0, 30.0, 0.1]) + rng.normal(size=ROWS))
    two = rounded(np.stack([y, x @ np.array([0.5, 0.0, 10.0, -0.2]) + 3], axis=1))
    missing = x.copy()
    missing[rng.uniform(size=x.shape) < 0.2] = np.nan
    missing[:, 1] = 2.5
    centers = np.array([[0.0, 0.0, 1.0], [4.0, 1.0, 0.0], [1.0, 5.0, -2.0]])
    kind = rng.integers(0, 3, ROWS)
    points = rounded(centers[kind] + rng.normal(size=(ROWS, 3)))
    counts = rng.poisson([1.0, 4.0, 0.5, 7.0], size=(ROWS, 4))
    counts[kind == 1, 0] += 5
    rank = x.copy()
    rank[:, 3] = x[:, 0] + x[:, 1]
    skewed = rounded(np.exp(rng.normal(size=(ROWS, 3)) * [0.3, 1.0, 0.5]) + 0.001)
    rates = rng.poisson(np.exp(points @ [0.2, -0.1, 0.3]))
    own = np.random.default_rng(7)
    kinds = np.stack([own.choice(5, ROWS, p=[0.4, 0.3, 0.15, 0.1, 0.05]), own.choice([1, 2], ROWS),
                      own.choice([10, 20, 30, np.nan], ROWS), np.full(ROWS, 7)], axis=1)
    amounts = rounded(np.exp(points @ [0.2, -0.1, 0.3]) * rng.gamma(3.0, 0.4, ROWS) + 0.001)
    return {
        "plain": {"x": x, "y": y, "w": w},
        "several": {"x": x, "y": two, "w": w},
        "missing": {"x": missing, "y": y, "w": w},
        "three": {"x": points, "y": np.array([-2, 3, 10])[kind], "w": w},
        "two": {"x": points, "y": np.array([4, 9])[(kind == 1).astype(int)], "w": w},
        "counts": {"x": counts, "y": np.array([-2, 3, 10])[kind], "w": w},
        "kinds": {"x": kinds, "y": rounded(kinds[:, 0] + own.normal(size=ROWS)), "w": w},
        "kernel": {"x": rounded(np.exp(-((points[:25, None] - points[None, :25]) ** 2).sum(2) / 9)), "y": y[:25], "w": w[:25]},
        "portions": {"x": counts / 4, "y": y, "w": w},
        "dependent": {"x": rank, "y": y, "w": w},
        "wide": {"x": x[:3], "y": y[:3], "w": w[4:7]},
        "far": {"x": x + 1e6, "y": y, "w": w},
        "skewed": {"x": skewed, "y": y, "w": w},
        "rates": {"x": points, "y": rates, "w": w},
        "amounts": {"x": points, "y": amounts, "w": w},
    }


def plain(value):
    if isinstance(value, list) or getattr(value, "dtype", None) == object:
        # Of features with different numbers of categories or edges: one behind the other.
        value = np.concatenate([np.ravel(part) for part in value if part is not None] or [[]])
    value = np.asarray(value, dtype=float)
    return {"shape": list(value.shape), "values": [None if np.isnan(v) else float(v) for v in value.ravel()]}


CASES = []


def case(name, estimator, on, params=None, attributes=(), methods=(), weights=False, shown=None):
    CASES.append((name, estimator, on, params or {}, attributes, methods, weights, shown or {}))


LINEAR = ("coef_", "intercept_")
for weights in (False, True):
    case("StandardScaler", preprocessing.StandardScaler(), "plain", None,
         ("mean_", "var_", "scale_"), ("transform",), weights)
    case("StandardScaler", preprocessing.StandardScaler(), "missing", None,
         ("mean_", "var_", "scale_", "n_samples_seen_"), ("transform",), weights)
    case("StandardScaler", preprocessing.StandardScaler(), "far", None, ("mean_", "var_"), ("transform",), weights)
    for on in ("plain", "several", "far"):
        case("LinearRegression", linear_model.LinearRegression(), on, None,
             LINEAR + ("rank_", "singular_"), ("predict", "score"), weights)
    for on in ("dependent", "wide"):
        case("LinearRegression", linear_model.LinearRegression(), on, None,
             LINEAR + ("rank_", "singular_"), ("predict",), weights)
    case("LinearRegression", linear_model.LinearRegression(fit_intercept=False), "plain",
         {"fit_intercept": False}, LINEAR + ("rank_", "singular_"), ("predict", "score"), weights)
    for on in ("plain", "several", "dependent"):
        case("Ridge", linear_model.Ridge(alpha=2.0), on, {"alpha": 2.0}, LINEAR, ("predict", "score"), weights)
    case("Ridge", linear_model.Ridge(alpha=0.5, fit_intercept=False), "plain",
         {"alpha": 0.5, "fit_intercept": False}, LINEAR, ("predict", "score"), weights)
    tight = {"tol": 1e-12, "max_iter": 100000}
    for on in ("plain", "several"):
        if on == "several" and weights:
            continue
        case("Lasso", linear_model.Lasso(alpha=0.1, **tight), on, {"alpha": 0.1, **tight},
             LINEAR, ("predict", "score"), weights)
        case("ElasticNet", linear_model.ElasticNet(alpha=0.3, l1_ratio=0.7, **tight), on,
             {"alpha": 0.3, "l1_ratio": 0.7, **tight}, LINEAR, ("predict", "score"), weights)
    case("ElasticNet", linear_model.ElasticNet(alpha=0.3, positive=True, **tight), "plain",
         {"alpha": 0.3, "positive": True, **tight}, LINEAR, ("predict", "score"), weights)
    tight = {"tol": 1e-10, "max_iter": 10000}
    for on in ("two", "three"):
        for params in ({}, {"C": 0.01}, {"C": 5.0, "fit_intercept": False}):
            case("LogisticRegression", linear_model.LogisticRegression(**params, **tight), on, {**params, **tight},
                 ("coef_", "intercept_", "classes_"),
                 ("predict", "decision_function", "predict_proba", "predict_log_proba", "score"), weights)
    for on in ("two", "three"):
        case("GaussianNB", naive_bayes.GaussianNB(), on, None,
             ("theta_", "var_", "class_prior_", "class_count_", "classes_", "epsilon_"),
             ("predict", "predict_proba", "predict_log_proba", "score"), weights)
    case("GaussianNB", naive_bayes.GaussianNB(var_smoothing=0.1, priors=[0.2, 0.5, 0.3]), "three",
         {"var_smoothing": 0.1, "priors": [0.2, 0.5, 0.3]},
         ("theta_", "var_", "class_prior_"), ("predict", "predict_proba"), weights)
    for params in ({}, {"alpha": 0.1, "fit_prior": False}):
        case("MultinomialNB", naive_bayes.MultinomialNB(**params), "counts", params,
             ("class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_", "classes_"),
             ("predict", "predict_proba", "predict_log_proba", "score"), weights)
        case("BernoulliNB", naive_bayes.BernoulliNB(**params), "counts", params,
             ("class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_", "classes_"),
             ("predict", "predict_proba", "predict_log_proba", "score"), weights)
    for params in ({}, {"alpha": 0.1, "norm": True}, {"class_prior": [0.2, 0.5, 0.3]}):
        case("ComplementNB", naive_bayes.ComplementNB(**params), "counts", params,
             ("class_count_", "feature_count_", "feature_all_", "class_log_prior_", "feature_log_prob_", "classes_"),
             ("predict", "predict_proba", "predict_log_proba", "score"), weights)
    for params in ({}, {"alpha": 0.1, "fit_prior": False}, {"min_categories": 20}, {"min_categories": [3, 30, 8, 25]}):
        case("CategoricalNB", naive_bayes.CategoricalNB(**params), "counts", params,
             ("class_count_", "class_log_prior_", "classes_", "n_categories_"),
             ("predict", "predict_proba", "predict_log_proba", "score"), weights)
    case("BernoulliNB", naive_bayes.BernoulliNB(binarize=3.0), "counts", {"binarize": 3.0},
         ("feature_log_prob_",), ("predict", "predict_proba"), weights)
    init = np.array([[0.5, 0.0, 1.0], [3.0, 1.0, 0.5], [1.0, 4.0, -1.0]])
    for name, init in (("near", init), ("empty", np.vstack([init, [[90.0, 90.0, 90.0]]]))):
        case("KMeans", cluster.KMeans(len(init), init=init, n_init=1, tol=0.0), "three",
             {"init": plain(init), "tol": 0.0}, ("cluster_centers_", "labels_", "inertia_", "n_iter_"),
             ("predict", "transform"), weights)
for on in ("plain", "missing"):
    case("MinMaxScaler", preprocessing.MinMaxScaler(feature_range=(-1, 2)), on, {"feature_range": [-1, 2]},
         ("data_min_", "data_max_", "data_range_", "scale_", "min_"), ("transform",))
    case("MaxAbsScaler", preprocessing.MaxAbsScaler(), on, None, ("max_abs_", "scale_"), ("transform",))
for norm in ("l1", "l2", "max"):
    case("Normalizer", preprocessing.Normalizer(norm=norm), "plain", {"norm": norm}, (), ("transform",))
case("Binarizer", preprocessing.Binarizer(threshold=1.5), "counts", {"threshold": 1.5}, (), ("transform",))
for params in ({}, {"drop": "first"}, {"drop": "if_binary"}, {"min_frequency": 7}, {"max_categories": 3},
               {"min_frequency": 0.2, "drop": "first"}, {"handle_unknown": "ignore"},
               {"handle_unknown": "infrequent_if_exist", "max_categories": 2}):
    for on in ("kinds", "counts"):
        rare = ("infrequent_categories_",) if "min_frequency" in params or "max_categories" in params else ()
        case("OneHotEncoder", preprocessing.OneHotEncoder(sparse_output=False, **params), on, params,
             ("categories_",) + rare, ("transform",))
for params in ({}, {"encoded_missing_value": -1.0}, {"min_frequency": 7}, {"max_categories": 3},
               {"min_frequency": 0.2, "encoded_missing_value": 9.0}):
    for on in ("kinds", "counts"):
        rare = ("infrequent_categories_",) if "min_frequency" in params or "max_categories" in params else ()
        case("OrdinalEncoder", preprocessing.OrdinalEncoder(**params), on, params, ("categories_",) + rare, ("transform",))
for weights in (False, True):
    for strategy in ("uniform", "quantile", "kmeans"):
        for on, params in (("plain", {"encode": "ordinal"}), ("three", {"encode": "onehot-dense", "n_bins": [2, 3, 7]}),
                           ("skewed", {"encode": "ordinal", "n_bins": 4}), ("counts", {"encode": "ordinal", "n_bins": 4})):
            if on == "counts" and strategy == "kmeans":
                # Whole numbers lie in the middle of two centres, where rounding tells the nearer one.
                continue
            params = {**params, "strategy": strategy}
            case("KBinsDiscretizer", preprocessing.KBinsDiscretizer(**params), on, params, ("bin_edges_", "n_bins_"),
                 ("transform",), weights)
    params = {"encode": "ordinal", "quantile_method": "inverted_cdf"}
    case("KBinsDiscretizer", preprocessing.KBinsDiscretizer(**params), "plain", params, ("bin_edges_", "n_bins_"),
         ("transform",), weights)
for weights in (False, True):
    for params in ({}, {"degree": 1, "n_knots": 3}, {"knots": "quantile"}, {"knots": "quantile", "degree": 0, "n_knots": 4},
                   {"extrapolation": "periodic", "include_bias": False}, {"extrapolation": "linear", "degree": 2},
                   {"extrapolation": "continue", "n_knots": 4}):
        for on in ("three", "skewed"):
            case("SplineTransformer", preprocessing.SplineTransformer(**params), on, params, (), ("transform",), weights)
    params = {"handle_missing": "zeros", "extrapolation": "continue"}
    case("SplineTransformer", preprocessing.SplineTransformer(**params), "missing", params, (), ("transform",), weights)
given = np.array([[-3.0, -2.0, -5.0], [0.5, 1.0, -1.0], [2.0, 3.0, 2.5], [8.0, 9.0, 7.0]])
case("SplineTransformer", preprocessing.SplineTransformer(knots=given, degree=2), "three", {"given": plain(given), "degree": 2},
     (), ("transform",))
for params in ({}, {"smooth": 3.0}, {"of": "binary"}, {"of": "several"}, {"of": "several", "smooth": 0.5}):
    folds = model_selection.StratifiedKFold if "of" in params else model_selection.KFold
    given = {name: value for name, value in params.items() if name != "of"}
    case("TargetEncoder", preprocessing.TargetEncoder(cv=folds(5), **given), "kinds", params, ("encodings_", "target_mean_"),
         ("transform", "fit_transform"))
params = {"encode": "ordinal", "quantile_method": "linear"}
case("KBinsDiscretizer", preprocessing.KBinsDiscretizer(**params), "plain", params, ("bin_edges_", "n_bins_"), ("transform",))
case("KernelCenterer", preprocessing.KernelCenterer(), "kernel", None, ("K_fit_rows_", "K_fit_all_"), ("transform",))
for params in ({}, {"sample_steps": 1}, {"sample_steps": 3}, {"sample_steps": 4, "sample_interval": 0.3}):
    for on in ("portions", "skewed"):
        case("AdditiveChi2Sampler", kernel_approximation.AdditiveChi2Sampler(**params), on, params, (), ("transform",))
for params in ({"gamma": 0.5}, {"kernel": "laplacian"}, {"kernel": "poly", "degree": 2.0, "coef0": 0.5},
               {"kernel": "sigmoid", "gamma": 0.01}, {"kernel": "cosine"}, {"kernel": "linear"}, {}):
    case("Nystroem", kernel_approximation.Nystroem(n_components=ROWS, **params), "three", params, (), ("transform",))
for weights in (False, True):
    for params in ({}, {"strategy": "most_frequent"}, {"strategy": "constant", "constant": 3}):
        case("DummyClassifier", dummy.DummyClassifier(**params), "three", params, ("classes_", "class_prior_"),
             ("predict", "predict_proba", "score") + (() if params else ("predict_log_proba",)), weights)
    for on in ("plain", "several"):
        for params in ({}, {"strategy": "median"}, {"strategy": "quantile", "quantile": 0.3}):
            case("DummyRegressor", dummy.DummyRegressor(**params), on, params, ("constant_",), ("predict", "score"), weights)
    case("DummyRegressor", dummy.DummyRegressor(strategy="constant", constant=[4.0, -1.0]), "several",
         {"strategy": "constant", "constant": [4.0, -1.0]}, ("constant_",), ("predict", "score"), weights)
CENTROID = ("centroids_", "class_prior_", "classes_", "within_class_std_dev_", "deviations_")
for on in ("two", "three"):
    given = [0.25, 0.75] if on == "two" else [0.5, 0.125, 0.375]
    for params in ({}, {"shrink_threshold": 0.4}, {"priors": "empirical"}, {"priors": given}):
        case("NearestCentroid", neighbors.NearestCentroid(**params), on, params, CENTROID,
             ("predict", "decision_function", "predict_proba", "predict_log_proba", "score"))
    for params in ({"metric": "manhattan"}, {"metric": "manhattan", "shrink_threshold": 0.4, "priors": "empirical"}):
        case("NearestCentroid", neighbors.NearestCentroid(**params), on, params, CENTROID, ("predict", "score"))
PCA = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_",
       "noise_variance_")
for params in ({}, {"n_components": 2}, {"n_components": 0.99}, {"n_components": 2, "whiten": True}):
    for on in ("plain", "three"):
        case("PCA", decomposition.PCA(svd_solver="full", **params), on,
             params, PCA, ("transform", "score_samples"))
for on in ("plain", "three"):
    case("TruncatedSVD", decomposition.TruncatedSVD(2, algorithm="arpack"), on, None,
         ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_"), ("transform",))
for on in ("plain", "missing"):
    for params in ({}, {"quantile_range": (10.0, 80.0), "unit_variance": True}):
        case("RobustScaler", preprocessing.RobustScaler(**params), on, {**params}, ("center_", "scale_"), ("transform",))
    for params in ({}, {"output_distribution": "normal"}):
        case("QuantileTransformer", preprocessing.QuantileTransformer(n_quantiles=20, **params), on, params,
             ("quantiles_", "references_"), ("transform",))
    case("VarianceThreshold", feature_selection.VarianceThreshold(), on, None, ("variances_",), ("transform",))
for params in ({}, {"degree": [2, 3]}, {"degree": [0, 3], "interaction_only": True, "include_bias": False}):
    given = {**params, "degree": tuple(params["degree"])} if params else {}
    case("PolynomialFeatures", preprocessing.PolynomialFeatures(**given), "three", params,
         ("powers_", "n_output_features_"), ("transform",))
for on, params in (("three", {}), ("skewed", {"method": "box-cox"}),
                   ("skewed", {"method": "box-cox", "standardize": False}), ("skewed", {})):
    case("PowerTransformer", preprocessing.PowerTransformer(**params), on, params, ("lambdas_",), ("transform",))
for params in ({}, {"strategy": "median"}, {"strategy": "most_frequent"},
               {"strategy": "constant", "fill_value": -1.5}, {"add_indicator": True}):
    case("SimpleImputer", impute.SimpleImputer(**params), "missing", params, ("statistics_",), ("transform",))
case("SimpleImputer", impute.SimpleImputer(missing_values=0, strategy="most_frequent"), "counts",
     {"missing_values": 0, "strategy": "most_frequent"}, ("statistics_",), ("transform",))
for on, function in (("three", "f_classif"), ("two", "f_classif"), ("plain", "f_regression"), ("counts", "chi2")):
    score_func = getattr(feature_selection, function)
    for name, params in (("SelectKBest", {"k": 2}), ("SelectPercentile", {"percentile": 60}),
                         ("SelectFpr", {"alpha": 0.05}), ("SelectFdr", {"alpha": 0.05}), ("SelectFwe", {"alpha": 0.05})):
        case(name, getattr(feature_selection, name)(score_func, **params), on, {"score_func": function, **params},
             ("scores_", "pvalues_"), ("transform",))
for on in ("plain", "three"):
    for name, params in (("EmpiricalCovariance", {}), ("EmpiricalCovariance", {"assume_centered": True}),
                         ("ShrunkCovariance", {"shrinkage": 0.25}), ("LedoitWolf", {}), ("OAS", {})):
        case(name, getattr(covariance, name)(**params), on, params, ("location_", "covariance_", "precision_"),
             ("mahalanobis", "score"))
for on in ("two", "three"):
    for params in ({}, {"priors": [0.25, 0.75] if on == "two" else [0.5, 0.125, 0.375]}):
        case("LinearDiscriminantAnalysis", discriminant_analysis.LinearDiscriminantAnalysis(**params), on, params,
             ("coef_", "intercept_", "means_", "xbar_", "priors_", "explained_variance_ratio_"),
             ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform", "score"))
        case("QuadraticDiscriminantAnalysis", discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1, **params),
             on, {"reg_param": 0.1, **params}, ("means_", "priors_", "scalings_"),
             ("predict", "decision_function", "predict_proba", "predict_log_proba", "score"))
for weights in (False, True):
    for on in ("two", "three"):
        for params in ({}, {"alpha": 5.0, "fit_intercept": False}):
            case("RidgeClassifier", linear_model.RidgeClassifier(**params), on, params, ("coef_", "intercept_", "classes_"),
                 ("predict", "decision_function", "score"), weights)
    tight = {"tol": 1e-10, "max_iter": 10000}
    for name, on, params in (("PoissonRegressor", "rates", {}), ("GammaRegressor", "amounts", {"alpha": 0.1}),
                             ("TweedieRegressor", "rates", {"power": 1.5, "alpha": 0.1}),
                             ("TweedieRegressor", "rates", {"power": 0.5}),
                             ("TweedieRegressor", "rates", {"power": -1.0, "link": "log"}),
                             ("TweedieRegressor", "amounts", {"power": 3.0, "fit_intercept": False}),
                             ("TweedieRegressor", "amounts", {"power": 0.0, "link": "log"})):
        case(name, getattr(linear_model, name)(**params, **tight), on, params, LINEAR, ("predict", "score"), weights)
    # Newton's steps reach the optimum; L-BFGS stops 3e-6 before it.
    params = {"power": 0.0, "alpha": 1.0}
    case("TweedieRegressor", linear_model.TweedieRegressor(**params, **tight, solver="newton-cholesky"), "plain", params,
         LINEAR, ("predict", "score"), weights)
case("Pipeline", pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2),
                                        linear_model.LogisticRegression(tol=1e-10, max_iter=10000)), "three",
     None, (), ("predict", "predict_proba", "score"))


def answer(sets, name, estimator, on, params, attributes, methods, weights, shown):
    given = sets[on]
    x, y, w = given["x"], given["y"], given["w"]
    if params.get("of") == "binary":
        y = (y > 2).astype(int)
    elif params.get("of") == "several":
        y = (y > 1) * 3 + (y > 2.5)
    if weights:
        estimator.fit(x, y, sample_weight=w)
    else:
        estimator.fit(x, y)
    made = {"estimator": name, "data": on, "params": params, "weights": weights, "attributes": {}, "methods": {}}
    for attribute in attributes:
        made["attributes"][attribute.rstrip("_")] = plain(getattr(estimator, attribute))
    for method in methods:
        function = getattr(estimator, method)
        arguments = (x, y) if method in ("score", "fit_transform") else (x,)
        if method == "score" and weights:
            arguments += (w,)
        result = np.asarray(function(*arguments))
        made["methods"][method] = plain(result if method == "score" else result[:SHOWN])
    return made


def write(name):
    sets = data()
    answers = {
        "version": sklearn.__version__,
        "data": {name: {part: plain(value) for part, value in parts.items()} for name, parts in sets.items()},
        "cases": [answer(sets, *case) for case in CASES],
    }
    lines = ["{", f' "version": {json.dumps(answers["version"])},', ' "data": {']
    rows = [f"  {json.dumps(name)}: {json.dumps(parts)}" for name, parts in answers["data"].items()]
    lines += [",\n".join(rows), " },", ' "cases": [']
    lines += [",\n".join("  " + json.dumps(made) for made in answers["cases"]), " ]", "}", ""]
    pathlib.Path(__file__).with_name(name).write_text("\n".join(lines))


if __name__ == "__main__":
    write("answers.json")
