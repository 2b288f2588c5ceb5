"""Records what scikit-learn answers of estimators that hold others, and of lines that never fall:
`python record_ensembles.py` writes `ensembles.json` beside it.

Data and format are those of `record.py`. Nothing is drawn, and solvers go on until nothing changes.
"""

import numpy as np
from sklearn import (
    calibration, cluster, compose, decomposition, ensemble, feature_selection, isotonic, linear_model, multiclass, multioutput, naive_bayes, preprocessing,
    tree,
)

import record
from record import case, plain

record.CASES.clear()

TIGHT = {"tol": 1e-10, "max_iter": 10000}


def base(name):
    return {
        "bayes": naive_bayes.GaussianNB(),
        "line": linear_model.LogisticRegression(**TIGHT),
        "plane": linear_model.RidgeClassifier(),
        "stump": tree.DecisionTreeClassifier(max_depth=1, random_state=0),
        "ridge": linear_model.Ridge(),
        "least": linear_model.LinearRegression(),
        "tree": tree.DecisionTreeRegressor(max_depth=2, random_state=0),
    }[name]


def bases(names):
    return [(name, base(name)) for name in names.split()]


class Calibrated(calibration.CalibratedClassifierCV):
    """Labels from 0 on: for others scikit-learn's temperature is not that of the classes."""

    def fit(self, x, y, sample_weight=None):
        return super().fit(x, np.unique(y, return_inverse=True)[1], sample_weight)

    def score(self, x, y, sample_weight=None):
        return super().score(x, np.unique(y, return_inverse=True)[1], sample_weight)


for on in ("two", "three"):
    for weights in (False, True):
        # Of a negative sum, and of one that is zero.
        for params in ({"weights": [0.5, -2.0, 0.25]}, {"weights": [1.0, -2.0, 1.0]}):
            case("VotingClassifier", ensemble.VotingClassifier(bases("bayes line stump"), **params), on, params,
                 ("classes_",), ("predict", "score"), weights)
        for params in ({}, {"weights": [1.0, 1.0, 2.5]}):
            case("VotingClassifier", ensemble.VotingClassifier(bases("bayes line stump"), **params), on, params,
                 ("classes_",), ("predict", "transform", "score"), weights)
            soft = {**params, "voting": "soft"}
            case("VotingClassifier", ensemble.VotingClassifier(bases("bayes line stump"), **soft), on, soft,
                 ("classes_",), ("predict", "predict_proba", "transform", "score"), weights)
        for params in ({}, {"passthrough": True}, {"stack_method": "predict"}):
            case("StackingClassifier",
                 ensemble.StackingClassifier(bases("bayes plane"), base("line"), **params), on, params, ("classes_",),
                 ("predict", "predict_proba", "decision_function", "transform", "score"), weights)
        case("BaggingClassifier",
             ensemble.BaggingClassifier(base("bayes"), n_estimators=3, bootstrap=False), on,
             {"estimator": "bayes", "n_estimators": 3, "bootstrap": False}, ("classes_",),
             ("predict", "predict_proba", "score"))
        for params in ({"n_estimators": 5}, {"n_estimators": 20, "learning_rate": 0.5}):
            case("AdaBoostClassifier", ensemble.AdaBoostClassifier(base("stump"), **params), on, params,
                 ("classes_", "estimator_weights_", "estimator_errors_", "feature_importances_"),
                 ("predict", "predict_proba", "decision_function", "score"), weights)
        for name in ("bayes", "line", "plane"):
            for method in ("sigmoid", "isotonic", "temperature"):
                # Few, as each is many fits.
                if (name, method) == ("plane", "isotonic") or name == "line" and method != "sigmoid":
                    continue
                # The temperature of a fold without mistakes has no optimum.
                for together in (False,) if method == "temperature" else (True, False):
                    params = {"estimator": name, "method": method, "ensemble": together}
                    case("CalibratedClassifierCV",
                         Calibrated(base(name), method=method, ensemble=together), on, params,
                         ("classes_",), ("predict", "predict_proba", "score"), weights)
    for name in ("bayes", "line", "plane"):
        params = {"estimator": name}
        methods = {"bayes": ("predict_proba",), "line": ("predict_proba", "decision_function"),
                   "plane": ("decision_function",)}[name]
        case("OneVsRestClassifier", multiclass.OneVsRestClassifier(base(name)), on, params, ("classes_",),
             ("predict", "score") + methods)
        case("OneVsOneClassifier", multiclass.OneVsOneClassifier(base(name)), on, params, ("classes_",),
             ("predict", "decision_function", "score"))


class Labels(multiclass.OneVsRestClassifier):
    def fit(self, x, y):
        return super().fit(x, (y > np.median(y, axis=0)).astype(int))

    def score(self, x, y):
        return super().score(x, (y > np.median(y, axis=0)).astype(int))


class Outputs(multioutput.MultiOutputClassifier):
    def fit(self, x, y, sample_weight=None):
        return super().fit(x, (y > np.median(y, axis=0)).astype(int), sample_weight)

    def score(self, x, y, sample_weight=None):
        return super().score(x, (y > np.median(y, axis=0)).astype(int))


for name in ("bayes", "line"):
    chances = ("predict_proba",) if name == "bayes" else ()
    case("Labels", Labels(base(name)), "several", {"estimator": name}, (), ("predict", "score") + chances)
    case("MultiOutputClassifier", Outputs(base(name)), "several", {"estimator": name}, (), ("predict", "score"))
for weights in (False, True):
    for params in ({}, {"weights": [1.0, 3.0]}):
        case("VotingRegressor", ensemble.VotingRegressor(bases("ridge tree"), **params), "plain", params, (),
             ("predict", "transform", "score"), weights)
    for params in ({}, {"passthrough": True}):
        case("StackingRegressor", ensemble.StackingRegressor(bases("ridge tree"), base("ridge"), **params), "plain",
             params, (), ("predict", "transform", "score"), weights)
    case("BaggingRegressor", ensemble.BaggingRegressor(base("ridge"), n_estimators=2, bootstrap=False), "plain",
         {"n_estimators": 2, "bootstrap": False}, (), ("predict", "score"))
    case("MultiOutputRegressor", multioutput.MultiOutputRegressor(base("ridge")), "several", {}, (),
         ("predict", "score"), weights)
    for on in ("plain", "several"):
        case("TransformedTargetRegressor",
             compose.TransformedTargetRegressor(base("ridge"), transformer=preprocessing.StandardScaler()), on,
             {"transformer": "scale"}, (), ("predict", "score"), weights)
    case("TransformedTargetRegressor",
         compose.TransformedTargetRegressor(base("ridge"), func=np.log, inverse_func=np.exp), "amounts",
         {"func": "log"}, (), ("predict", "score"), weights)
    case("TransformedTargetRegressor", compose.TransformedTargetRegressor(), "plain", {}, (), ("predict", "score"),
         weights)


class Line(isotonic.IsotonicRegression):
    def fit(self, x, y, sample_weight=None):
        # Some places stand several times.
        return super().fit(np.round(x[:, 0], 1), y, sample_weight)

    def predict(self, x):
        return super().predict(x[:, 0])


for weights in (False, True):
    for params in ({}, {"increasing": False}, {"increasing": "auto"}, {"y_min": -20.0, "y_max": 25.0},
                   {"out_of_bounds": "clip"}):
        for on in ("plain", "three"):
            case("IsotonicRegression", Line(**params), on, params,
                 ("X_min_", "X_max_", "X_thresholds_", "y_thresholds_", "increasing_"), ("predict",), weights)


class Batches(cluster.MiniBatchKMeans):
    def fit(self, x, y, sample_weight=None):
        for rows in (slice(0, 20), slice(20, 21), slice(21, 61)):
            self.partial_fit(x[rows], None, None if sample_weight is None else sample_weight[rows])
        return self


def fit(self, x, y, sample_weight=None):
    selected(self, x, y, sample_weight=sample_weight)
    self.chosen_ = self.get_support()
    return self


selected = feature_selection.SelectFromModel.fit
feature_selection.SelectFromModel.fit = fit

init = np.array([[0.5, 0.0, 1.0], [3.0, 1.0, 0.5], [1.0, 4.0, -1.0]])
for weights in (False, True):
    case("MiniBatchKMeans", Batches(3, init=init, n_init=1, reassignment_ratio=0.0), "three", {"init": plain(init)},
         ("cluster_centers_", "labels_", "inertia_", "n_steps_"), ("predict", "transform"), weights)
for weights in (False, True):
    case("BisectingKMeans", cluster.BisectingKMeans(1), "three", {"n_clusters": 1},
         ("cluster_centers_", "labels_", "inertia_"), ("predict", "transform"), weights)

for weights in (False, True):
    for params in ({}, {"n_features_to_select": 1}, {"n_features_to_select": 0.5, "step": 0.4}):
        case("RFE", feature_selection.RFE(base("ridge"), **params), "plain", params, ("ranking_", "support_"),
             ("predict", "transform", "score"))
    case("RFE", feature_selection.RFE(base("plane")), "three", {"estimator": "plane"}, ("ranking_", "support_"),
         ("predict", "transform", "score"))
    for params in ({}, {"threshold": "median"}, {"threshold": "0.5*mean", "max_features": 1}, {"threshold": 3.0}):
        case("SelectFromModel", feature_selection.SelectFromModel(base("ridge"), **params), "plain", params,
             ("threshold_", "chosen_"), ("transform",), weights)
    for params in ({}, {"norm_order": 2}):
        case("SelectFromModel", feature_selection.SelectFromModel(base("plane"), **params), "three",
             {"estimator": "plane", **params}, ("threshold_", "chosen_"), ("transform",), weights)
for params in ({}, {"n_features_to_select": 1}, {"direction": "backward"}, {"tol": 0.01},
               {"n_features_to_select": 0.75}, {"direction": "backward", "tol": -0.05}):
    case("SequentialFeatureSelector", feature_selection.SequentialFeatureSelector(base("ridge"), **params), "plain",
         params, ("support_",), ("transform",))



class Parts(decomposition.NMF):
    """From given factors, where scikit-learn draws random vectors."""

    def fit(self, x, y):
        self.weights_ = self.fit_transform(x, W=START[0].copy(), H=START[1].copy())
        return self


start = np.random.default_rng(5)
START = record.rounded(start.uniform(0.1, 2.0, (61, 2))), record.rounded(start.uniform(0.1, 2.0, (2, 4)))
for params in ({"max_iter": 3}, {"max_iter": 500, "tol": 1e-9}, {"alpha_W": 0.01, "l1_ratio": 0.5},
               {"alpha_W": 0.02, "alpha_H": 0.1}):
    case("NMF", Parts(2, init="custom", **params), "counts", {**params, "W": plain(START[0]), "H": plain(START[1])},
         ("components_", "weights_", "reconstruction_err_", "n_iter_"))
# Singular vectors: without chance, as there are as many as features.
case("NMF", decomposition.NMF(4, init="nndsvd", max_iter=2, random_state=0), "counts", {"init": "nndsvd", "max_iter": 2},
     ("components_", "reconstruction_err_", "n_iter_"))
for on in ("two", "three"):
    for weights in (False, True):
        for params in ({"Cs": [0.01, 1.0, 10.0]}, {"Cs": 4, "scoring": "neg_log_loss"},
                       {"Cs": [0.1, 1.0], "refit": False, "fit_intercept": False}):
            case("LogisticRegressionCV",
                 linear_model.LogisticRegressionCV(**params, **TIGHT, cv=3, l1_ratios=(0.0,), use_legacy_attributes=False),
                 on, {**params, **TIGHT, "cv": 3}, ("Cs_", "C_", "table_", "coef_", "intercept_"),
                 ("predict", "predict_proba", "decision_function", "score"), weights)


def scores(self):
    return np.asarray(self.scores_)[:, 0]


linear_model.LogisticRegressionCV.table_ = property(scores)

if __name__ == "__main__":
    record.write("ensembles.json")
