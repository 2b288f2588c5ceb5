"""Records what scikit-learn answers to validations and searches: `python record_searches.py`.

Writes `searches.json` beside itself. Data are scikit-learn's iris and diabetes.
"""

import json
import os
import warnings

import numpy as np
import sklearn
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

warnings.simplefilter("ignore")
iris = load_iris(return_X_y=True)
diabetes = load_diabetes(return_X_y=True)
cancer = load_breast_cancer(return_X_y=True)
groups = np.arange(442) % 13


def numbers(array):
    return [None if np.isnan(x) else float(x) for x in np.asarray(array, dtype=float).ravel()]


def validated(estimator, data, **options):
    found = cross_validate(estimator, *data, return_train_score=True, **options)
    return {"test": numbers(found["test_score"]), "train": numbers(found["train_score"])}


def scored(estimator, data, names):
    return {name: numbers(cross_validate(estimator, *data, scoring=name)["test_score"]) for name in names}


def averages(name):
    return [f"{name}_{average}" for average in ["macro", "micro", "weighted"]]


def searched(estimator, grid, data, weights=None, **options):
    options = {"return_train_score": True, **options}
    params = {} if weights is None else {"sample_weight": weights}
    search = GridSearchCV(estimator, grid, **options).fit(*data, **params)
    results = search.cv_results_
    return {
        "params": [[f"{name}={value!r}" for name, value in params.items()] for params in results["params"]],
        "mean": numbers(results["mean_test_score"]),
        "std": numbers(results["std_test_score"]),
        "train": numbers(results["mean_train_score"]),
        "rank": [int(rank) for rank in results["rank_test_score"]],
        "split0": numbers(results["split0_test_score"]),
        "best_index": int(search.best_index_),
        "best_score": float(search.best_score_),
        "predictions": numbers(search.predict(data[0])[:20]),
    }


pipeline = Pipeline([("scale", StandardScaler()), ("ridge", Ridge())])
sizes, learn_train, learn_test = learning_curve(
    Ridge(alpha=0.1), *diabetes, train_sizes=[0.1, 0.325, 0.55, 0.775, 1.0], cv=KFold(4)
)
alphas = [0.01, 0.1, 1.0, 10.0]
valid_train, valid_test = validation_curve(Ridge(), *diabetes, param_name="alpha", param_range=alphas, cv=KFold(3))
answers = {
    "sklearn": sklearn.__version__,
    "validated": {
        "ridge": validated(Ridge(alpha=0.5), diabetes),
        "ridge_mse": validated(Ridge(alpha=0.5), diabetes, scoring="neg_mean_squared_error", cv=3),
        "ridge_groups": validated(Ridge(alpha=0.5), diabetes, cv=GroupKFold(4), groups=groups),
        "ridge_times": validated(Ridge(alpha=0.5), diabetes, cv=TimeSeriesSplit(4)),
        "ridge_weights": validated(
            Ridge(alpha=0.5), diabetes, cv=4, params={"sample_weight": 1.0 + np.arange(442) % 3}
        ),
        "bayes": validated(GaussianNB(), iris),
        "bayes_f1": validated(GaussianNB(), iris, scoring="f1_macro", cv=7),
    },
    "scored": {
        "bayes_of_two": scored(
            GaussianNB(),
            cancer,
            ["average_precision", "neg_brier_score", "neg_log_loss", "roc_auc", "roc_auc_ovo", "roc_auc_ovr_weighted"]
            + ["f1", "jaccard", "precision", "recall", "matthews_corrcoef", "accuracy"],
        ),
        "discriminant_of_two": scored(LinearDiscriminantAnalysis(), cancer, ["average_precision", "roc_auc"]),
        "ridge_of_two": scored(RidgeClassifier(), cancer, ["average_precision", "roc_auc", "f1"]),
        "bayes_of_three": scored(
            GaussianNB(),
            iris,
            ["neg_brier_score", "neg_log_loss", "roc_auc_ovo", "roc_auc_ovo_weighted", "roc_auc_ovr"]
            + ["roc_auc_ovr_weighted", "top_k_accuracy"]
            + [name for score in ["f1", "jaccard", "precision", "recall"] for name in averages(score)],
        ),
        "ridge": scored(
            Ridge(),
            (diabetes[0], diabetes[1] / 3),
            ["d2_absolute_error_score", "explained_variance", "neg_max_error", "neg_mean_absolute_percentage_error"]
            + ["neg_mean_gamma_deviance", "neg_mean_poisson_deviance", "neg_mean_squared_log_error"]
            + ["neg_median_absolute_error", "neg_root_mean_squared_error", "neg_root_mean_squared_log_error", "r2"],
        ),
        "clusters": scored(
            KMeans(3, init=iris[0][[0, 60, 120]], n_init=1),
            iris,
            ["adjusted_mutual_info_score", "adjusted_rand_score", "completeness_score", "fowlkes_mallows_score"]
            + ["homogeneity_score", "mutual_info_score", "normalized_mutual_info_score", "rand_score"]
            + ["v_measure_score"],
        ),
    },
    "searched": {
        "ridge": searched(
            Ridge(), {"fit_intercept": [True, False], "alpha": alphas}, diabetes, cv=KFold(4)
        ),
        "lines": searched(
            Ridge(), [{"alpha": [1.0, 0.1]}, {"fit_intercept": [False]}], diabetes, scoring="neg_mean_absolute_error"
        ),
        "failing": searched(Ridge(), {"alpha": [-1.0, 1.0, 2.0]}, diabetes, cv=3),
        "ties": searched(GaussianNB(), {"var_smoothing": [0.5, 1e-9, 1e-10, 1e-11]}, iris),
        "pipeline": searched(pipeline, {"ridge__alpha": alphas, "scale__with_std": [True, False]}, diabetes),
    },
    "weighted": {
        **{
            name: searched(
                Ridge(),
                {"alpha": alphas},
                diabetes,
                (np.arange(442) % 17 - 8) ** 2,
                cv=4,
                scoring=None if name == "score" else name,
            )
            for name in ["score", "neg_mean_absolute_error", "neg_max_error", "explained_variance"]
        },
        **{
            name: searched(
                GaussianNB(), {"var_smoothing": [0.5, 1e-9]}, iris, np.arange(150) % 7 + 0.5, scoring=name
            )
            for name in ["accuracy", "balanced_accuracy", "f1_weighted", "precision_macro"]
        },
    },
    "predicted": {
        "line": numbers(cross_val_predict(LinearRegression(), *diabetes, cv=4)),
        "bayes": numbers(cross_val_predict(GaussianNB(), *iris)),
        "bayes_proba": numbers(cross_val_predict(GaussianNB(), *iris, method="predict_proba")),
    },
    "learning": {"sizes": sizes.tolist(), "train": numbers(learn_train), "test": numbers(learn_test)},
    "validation": {"train": numbers(valid_train), "test": numbers(valid_test)},
}
place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "searches.json")
with open(place, "w") as file:
    json.dump(answers, file, indent=0)
    file.write("\n")
