"""Records what further linear models of scikit-learn answer: `python record_linear.py` writes `linear.json` beside
it. Data are those of `record.py`, and a set whose features go together, so that some leave a path again.
"""

import json
import pathlib

import numpy as np
import sklearn
from sklearn import linear_model, svm

import record
from record import LINEAR, case, rounded

record.CASES.clear()
TIGHT = {"tol": 1e-12, "max_iter": 100000}


def correlated():
    rng = np.random.default_rng(7)
    common = rng.normal(size=(record.ROWS, 3))
    x = rounded(common @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(record.ROWS, 8)) + 5.0)
    y = rounded(x @ [1.0, -2.0, 0.0, 1.5, 0.0, 0.5, -1.0, 0.0] + rng.normal(size=record.ROWS))
    w = rounded(rng.uniform(0.0, 2.0, record.ROWS))
    return {"x": x, "y": y, "w": w}


CHOSEN = LINEAR + ("alpha_", "best_score_")
for weights in (False, True):
    for on, params in (("plain", {}), ("several", {"alphas": [0.01, 3.0, 200.0]}), ("dependent", {"alphas": [0.5]}),
                       ("plain", {"fit_intercept": False}), ("plain", {"cv": 4}), ("several", {"cv": 3}),
                       ("plain", {"cv": 5, "fit_intercept": False, "alphas": [0.1, 50.0]}), ("correlated", {})):
        case("RidgeCV", linear_model.RidgeCV(**params), on, params, CHOSEN, ("predict", "score"), weights)
    for on in ("two", "three"):
        for params in ({}, {"alphas": [0.5, 20.0], "fit_intercept": False}):
            case("RidgeClassifierCV", linear_model.RidgeClassifierCV(**params), on, params,
                 CHOSEN + ("classes_",), ("predict", "decision_function", "score"), weights)
    for on, params in (("plain", {"alphas": 20}), ("correlated", {"alphas": 30, "cv": 4, "eps": 0.01}),
                       ("plain", {"alphas": [0.01, 2.0, 0.3], "fit_intercept": False}),
                       ("correlated", {"alphas": 10, "positive": True})):
        case("LassoCV", linear_model.LassoCV(**params, **TIGHT), on, params,
             LINEAR + ("alpha_", "alphas_", "mse_path_"), ("predict", "score"), weights)
    for on, params in (("plain", {"l1_ratio": [0.2, 0.8], "alphas": 12}), ("correlated", {"l1_ratio": 0.4, "alphas": 9}),
                       ("plain", {"l1_ratio": [0.3, 0.6], "alphas": [0.01, 0.2], "cv": 3})):
        case("ElasticNetCV", linear_model.ElasticNetCV(**params, **TIGHT), on, params,
             LINEAR + ("alpha_", "l1_ratio_", "alphas_", "mse_path_"), ("predict", "score"), weights)
    for on, params in (("plain", {}), ("dependent", {}), ("correlated", {"alpha_init": 0.5, "lambda_init": 2.0}),
                       ("wide", {"max_iter": 5}), ("plain", {"fit_intercept": False, "alpha_1": 0.1, "lambda_2": 0.3})):
        case("BayesianRidge", linear_model.BayesianRidge(**params), on, params,
             LINEAR + ("alpha_", "lambda_", "sigma_", "n_iter_", "X_offset_"), ("predict", "score"), weights)
for on, params in (("plain", {}), ("correlated", {}), ("correlated", {"threshold_lambda": 20.0}),
                   ("plain", {"fit_intercept": False, "tol": 1e-6})):
    case("ARDRegression", linear_model.ARDRegression(**params), on, params,
         LINEAR + ("alpha_", "lambda_", "sigma_", "n_iter_"), ("predict", "score"))
PATH = LINEAR + ("alphas_", "active_", "coef_path_", "n_iter_")
for on in ("plain", "correlated"):
    # Where a coefficient crosses zero, scikit-learn's path of `Lars` turns away from least squares.
    for params in ({}, {"n_nonzero_coefs": 2}, {"fit_intercept": False}) if on == "plain" else ({"n_nonzero_coefs": 2},):
        case("Lars", linear_model.Lars(**params), on, params, PATH, ("predict", "score"))
    # With `positive` scikit-learn's path does not lead to the minimum.
    for params in ({"alpha": 0.001}, {"alpha": 0.3}, {"alpha": 0.0},
                   {"alpha": 0.01, "max_iter": 3, "fit_intercept": False}, {"alpha": 1000.0}):
        case("LassoLars", linear_model.LassoLars(**params), on, params, PATH, ("predict", "score"))
    for params in ({}, {"criterion": "bic"}, {"noise_variance": 4.0, "fit_intercept": False}):
        case("LassoLarsIC", linear_model.LassoLarsIC(**params), on, params,
             LINEAR + ("alphas_", "alpha_", "criterion_", "noise_variance_", "n_iter_"), ("predict", "score"))
    for params in ({}, {"n_nonzero_coefs": 3}, {"tol": 100.0}, {"n_nonzero_coefs": 2, "fit_intercept": False}):
        case("OrthogonalMatchingPursuit", linear_model.OrthogonalMatchingPursuit(**params), on, params,
             LINEAR + ("n_iter_",), ("predict", "score"))

# Steps in the order of the samples.
STEPS = {"shuffle": False}
for weights in (False, True):
    for on in ("two", "three"):
        for params in ({}, {"loss": "log_loss", "alpha": 0.01}, {"loss": "modified_huber", "alpha": 0.1},
                       {"loss": "squared_hinge", "alpha": 0.1, "penalty": "l1", "learning_rate": "invscaling", "eta0": 0.01},
                       {"penalty": "elasticnet", "alpha": 0.05, "l1_ratio": 0.4},
                       {"loss": "hinge", "learning_rate": "pa1", "penalty": "l1", "alpha": 0.01, "eta0": 0.5},
                       {"loss": "hinge", "learning_rate": "pa2", "penalty": None, "eta0": 0.5},
                       {"learning_rate": "adaptive", "eta0": 0.1, "alpha": 0.01, "fit_intercept": False},
                       {"max_iter": 7, "tol": None, "learning_rate": "constant"}):
            proba = ("predict_proba",) if params.get("loss") in ("log_loss", "modified_huber") else ()
            case("SGDClassifier", linear_model.SGDClassifier(**params, **STEPS), on, params,
                 LINEAR + ("classes_", "n_iter_", "t_"), ("predict", "decision_function", "score") + proba, weights)
        if not weights:
            for params in ({}, {"penalty": "l2", "alpha": 0.01, "eta0": 0.5}, {"penalty": "l1", "alpha": 0.01}):
                case("Perceptron", linear_model.Perceptron(**params, **STEPS), on, params,
                     LINEAR + ("n_iter_", "t_"), ("predict", "decision_function", "score"))
            for params in ({}, {"C": 0.1}, {"C": 0.5, "loss": "squared_hinge"}):
                case("PassiveAggressiveClassifier", linear_model.PassiveAggressiveClassifier(**params, **STEPS), on,
                     params, LINEAR + ("n_iter_", "t_"), ("predict", "decision_function", "score"))
    for params in ({}, {"loss": "huber", "epsilon": 0.5}, {"loss": "epsilon_insensitive", "penalty": "l1", "alpha": 0.01},
                   {"loss": "squared_epsilon_insensitive", "penalty": "elasticnet"},
                   {"loss": "epsilon_insensitive", "learning_rate": "pa1", "penalty": None, "eta0": 0.3},
                   {"learning_rate": "adaptive", "eta0": 0.05, "fit_intercept": False}):
        case("SGDRegressor", linear_model.SGDRegressor(**params, **STEPS), "rates", params, ("coef_", "n_iter_", "t_"),
             ("predict", "score"), weights)
for params in ({}, {"C": 0.05, "epsilon": 0.3}, {"loss": "squared_epsilon_insensitive", "C": 0.5}):
    case("PassiveAggressiveRegressor", linear_model.PassiveAggressiveRegressor(**params, **STEPS), "rates", params,
         ("coef_", "n_iter_", "t_"), ("predict", "score"))


for weights in (False, True):
    # Where features lie far from zero, scikit-learn's solver ends before the minimum.
    for on, params in (("rates", {}), ("amounts", {"epsilon": 1.1, "alpha": 0.5}), ("three", {"fit_intercept": False}),
                       ("amounts", {})):
        case("HuberRegressor", linear_model.HuberRegressor(**params, tol=1e-9, max_iter=10000), on, params,
             LINEAR + ("scale_",), ("predict", "score"), weights)
    tight = {"tol": 1e-12, "max_iter": 1000000}
    for on in ("two", "three"):
        for params in ({}, {"C": 0.05}, {"C": 3.0, "intercept_scaling": 4.0}, {"fit_intercept": False}):
            case("LinearSVC", svm.LinearSVC(**params, **tight), on, params, LINEAR + ("classes_",),
                 ("predict", "decision_function", "score"), weights)
    for on, params in (("rates", {}), ("rates", {"epsilon": 0.5, "C": 0.1}), ("correlated", {"intercept_scaling": 5.0}),
                       ("correlated", {"fit_intercept": False, "epsilon": 1.0})):
        loss = {"loss": "squared_epsilon_insensitive"}
        case("LinearSVR", svm.LinearSVR(**params, **loss, **tight), on, params, ("coef_",), ("predict", "score"), weights)

for on in ("plain", "correlated"):
    for params in ({}, {"cv": 3, "fit_intercept": False}, {"max_n_alphas": 5}):
        case("LassoLarsCV", linear_model.LassoLarsCV(**params), on, params,
             PATH + ("alpha_", "cv_alphas_", "mse_path_"), ("predict", "score"))
    for params in ({"max_iter": 3}, {"cv": 4}, {"cv": 3, "fit_intercept": False}):
        given = {"max_iter": 4, **params} if on == "plain" else params
        case("OrthogonalMatchingPursuitCV", linear_model.OrthogonalMatchingPursuitCV(**given), on, given,
             LINEAR + ("n_iter_", "n_nonzero_coefs_"), ("predict", "score"))


def main():
    own = {"correlated": correlated()}
    sets = record.data() | own
    shown = {name: {part: record.plain(value) for part, value in parts.items()} for name, parts in own.items()}
    made = [record.answer(sets, *case) for case in record.CASES]
    lines = ["{", f' "version": {json.dumps(sklearn.__version__)},', f' "data": {json.dumps(shown)},', ' "cases": [']
    lines += [",\n".join("  " + json.dumps(one) for one in made), " ]", "}", ""]
    pathlib.Path(__file__).with_name("linear.json").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
