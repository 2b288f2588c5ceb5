"""Records what scikit-learn answers where units and digits matter: `python record_units.py` writes `units.json` beside it.

`x_unit`, `y_unit` and `column_unit` (of the second feature) are what the data of a case are multiplied by. Data are
written to their last digit.
"""

import json
import pathlib

import numpy as np
import sklearn
from sklearn import decomposition, linear_model, svm

from record import plain

rng = np.random.default_rng(46)
X = np.round(rng.normal(size=(60, 6)), 3)
NEAR = 1e3 * X[:, 0] + 1e-6 * np.round(rng.normal(size=60), 3)
EXACT = X @ [1e3, 0.0, 2.0, -5.0, 0.0, 1.0]
NOISY = np.round(X @ [1.0, 2.0, 0.0, 3.0, 0.0, 0.0] + rng.normal(size=60), 3)
BROAD = np.round(rng.normal(size=(20, 50)), 3)
OUTLIERS = np.round(X[:, :3] @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=60) + 100.0 * (np.arange(60) % 10 == 0), 3)
SIDES = (0.2 * rng.normal(size=60) < X[:, 0] - X[:, 1]).astype(int)
SOURCES = np.round(rng.uniform(size=(200, 2)) @ [[1.0, 0.5], [0.25, 1.0]], 4)
SETS = {
    "near": {"x": X, "y": NEAR},
    "exact": {"x": X, "y": EXACT},
    "noisy": {"x": X, "y": NOISY},
    "broad": {"x": BROAD, "y": np.round(BROAD[:, :3] @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=20), 3)},
    "outliers": {"x": X[:, :3], "y": OUTLIERS},
    "sides": {"x": X, "y": SIDES},
    "sources": {"x": SOURCES, "y": SOURCES[:, 0]},
}
MADE = []


def case(name, estimator, on, params, attributes, methods=("predict",), factors=(), **units):
    """Factors are those of attributes, of an answer that is made in other units than the ones that are told."""
    x, y = SETS[on]["x"] * units.get("x_unit", 1.0), SETS[on]["y"] * units.get("y_unit", 1.0)
    x[:, 1] *= units.get("column_unit", 1.0)
    estimator.fit(x, y)
    if hasattr(estimator, "mse_path_"):
        estimator.logs_ = np.log(estimator.mse_path_.mean(axis=-1))
    factors = dict(factors)
    MADE.append({
        "estimator": name, "data": on, "params": {**params, **units, **dict(factors.pop("params", {}))}, "weights": False,
        "attributes": {part.rstrip("_"): plain(getattr(estimator, part) * factors.get(part, 1.0)) for part in attributes},
        "methods": {method: plain(getattr(estimator, method)(x)[:9]) for method in methods},
    })


LINEAR = ("coef_", "intercept_")
for on in ("near", "noisy"):
    for params in ({}, {"criterion": "bic"}, {"positive": True}):
        case("LassoLarsIC", linear_model.LassoLarsIC(**params), on, params, LINEAR + ("noise_variance_", "alphas_"))
case("LassoLarsCV", linear_model.LassoLarsCV(cv=3), "near", {}, LINEAR + ("alpha_", "cv_alphas_", "logs_"))
case("OrthogonalMatchingPursuitCV", linear_model.OrthogonalMatchingPursuitCV(cv=3), "near", {},
     LINEAR + ("n_nonzero_coefs_",))
for on in ("near", "exact"):
    case("BayesianRidge", linear_model.BayesianRidge(), on, {}, LINEAR + ("alpha_", "lambda_", "n_iter_"))
    case("ARDRegression", linear_model.ARDRegression(), on, {}, LINEAR + ("alpha_", "lambda_", "n_iter_"))
for unit in (1.0, 1e6, 1e8):
    case("BayesianRidge", linear_model.BayesianRidge(), "broad", {}, LINEAR + ("alpha_", "lambda_", "n_iter_"), x_unit=unit)
    case("ARDRegression", linear_model.ARDRegression(), "broad", {}, LINEAR + ("alpha_", "lambda_", "n_iter_"), x_unit=unit)
case("BayesianRidge", linear_model.BayesianRidge(), "noisy", {}, LINEAR + ("alpha_", "lambda_", "n_iter_"), column_unit=1e8)
tight = {"tol": 1e-12, "max_iter": 1000000}
for unit in (1e-6, 1.0, 1e6):
    case("LinearSVR", svm.LinearSVR(loss="squared_epsilon_insensitive", **tight), "noisy", {}, ("coef_",), y_unit=unit)
for unit in (1e-6, 1.0, 1e3):
    case("LinearSVC", svm.LinearSVC(fit_intercept=False, **tight), "sides", {"fit_intercept": False}, ("coef_",), x_unit=unit)
for unit in (1e-7, 1.0, 1e4, 1e6, 1e9):
    # The penalty has the square of the unit and the rest of the objective the unit. scikit-learn's solver ends
    # elsewhere in other units.
    huber = linear_model.HuberRegressor(alpha=1e-4 * unit, tol=1e-10, max_iter=100000)
    factors = {name: unit for name in LINEAR + ("scale_",)} | {"params": {"y_unit": unit}}
    case("HuberRegressor", huber, "outliers", {}, LINEAR + ("scale_",), (), factors)
for unit in (1e-9, 1.0, 1e9):
    # scikit-learn chooses no second feature as short as that.
    for params in ({},) if unit < 1.0 else ({}, {"n_nonzero_coefs": 3}):
        case("OrthogonalMatchingPursuit", linear_model.OrthogonalMatchingPursuit(**params), "noisy", params,
             LINEAR + ("n_iter_",), x_unit=unit)
for unit in (1e-8, 1.0, 1e8):
    for fun in ("logcosh", "cube"):
        ica = decomposition.FastICA(fun=fun, w_init=np.eye(2), tol=1e-10, max_iter=1000)
        case("FastICA", ica, "sources", {"fun": fun}, ("mean_",), ("transform",), column_unit=unit)


def main():
    shown = {name: {part: plain(value) for part, value in parts.items()} for name, parts in SETS.items()}
    lines = ["{", f' "version": {json.dumps(sklearn.__version__)},', f' "data": {json.dumps(shown)},', ' "cases": [']
    lines += [",\n".join("  " + json.dumps(one) for one in MADE), " ]", "}", ""]
    pathlib.Path(__file__).with_name("units.json").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
