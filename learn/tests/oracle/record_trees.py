"""Records what scikit-learn's trees answer: `python record_trees.py` writes `trees.json` beside it.

Data are rounded to two digits and written with the answers. NaN is written as null. Leaves have several
samples, so that no two splits are equally good. Of forests, whose draws are others, scores are recorded: of
every fourth row of scikit-learn's small data sets, where the others are trained with.
"""

import json
import pathlib

import numpy as np
import sklearn
from sklearn import datasets, ensemble, tree

rng = np.random.default_rng(41)
ROWS = 240
# Rows of a result that are recorded.
SHOWN = 60


def data():
    x = np.round(rng.normal(size=(ROWS, 4)) * [1.0, 3.0, 0.3, 20.0] + [0.0, 5.0, 10.0, -3.0], 2)
    noise = rng.normal(size=ROWS)
    y = np.round(np.sin(2 * x[:, 0]) * 3 + (x[:, 1] > 5) * 2 + 0.05 * x[:, 3] + 0.5 * noise, 2)
    w = np.round(rng.uniform(0.5, 2.0, ROWS), 2)
    missing = x.copy()
    missing[rng.uniform(size=x.shape) < 0.2] = np.nan
    # What is missing tells something.
    missing[y > 3, 2] = np.nan
    score = np.sin(2 * x[:, 0]) + 0.2 * (x[:, 1] - 5) + 0.3 * noise
    three = np.digitize(score, [-0.5, 0.7])
    return {
        "plain": {"x": x, "y": y, "w": w},
        "missing": {"x": missing, "y": y, "w": w},
        "counts": {"x": x, "y": rng.poisson(np.exp(0.4 * np.sin(x[:, 0]) + 0.03 * x[:, 3] + 1)), "w": w},
        "positive": {"x": x, "y": np.round(np.exp(0.4 * y / 3 + 0.1), 2), "w": w},
        "two": {"x": x, "y": np.array([4, 9])[(score > 0.1).astype(int)], "w": w},
        "two_missing": {"x": missing, "y": np.array([4, 9])[(score > 0.1).astype(int)], "w": w},
        "three": {"x": x, "y": np.array([-2, 3, 10])[three], "w": w},
    }


def plain(value):
    value = np.asarray(value, dtype=float)
    return {"shape": list(value.shape), "values": [None if np.isnan(v) else float(v) for v in value.ravel()]}


CASES = []


def case(estimator, on, params, methods, weights=False, attributes=()):
    CASES.append((estimator, on, params, methods, weights, attributes))


HGR, HGC = ensemble.HistGradientBoostingRegressor, ensemble.HistGradientBoostingClassifier
for weights in (False, True):
    for on in ("plain", "missing"):
        case(HGR, on, {"max_iter": 12, "min_samples_leaf": 7}, ("predict", "score"), weights)
        case(HGR, on, {"max_iter": 8, "max_leaf_nodes": 5, "l2_regularization": 0.7, "learning_rate": 0.3},
             ("predict", "score"), weights)
    case(HGR, "plain", {"max_iter": 8, "max_leaf_nodes": None, "max_depth": 3, "min_samples_leaf": 9},
         ("predict", "score"), weights)
    case(HGR, "counts", {"loss": "poisson", "max_iter": 9, "min_samples_leaf": 9}, ("predict", "score"), weights)
    case(HGR, "positive", {"loss": "gamma", "max_iter": 9, "min_samples_leaf": 9}, ("predict", "score"), weights)
    for on in ("two", "two_missing", "three"):
        case(HGC, on, {"max_iter": 9, "min_samples_leaf": 11},
             ("predict", "predict_proba", "decision_function", "score"), weights)
case(HGR, "plain", {"max_iter": 9, "max_bins": 12, "min_samples_leaf": 9}, ("predict", "score"))
case(HGR, "plain", {"max_iter": 400, "max_leaf_nodes": 4, "early_stopping": True, "validation_fraction": None,
                    "tol": 0.01, "n_iter_no_change": 4, "min_samples_leaf": 9}, ("predict",), False,
     ("n_iter_", "train_score_"))

DTC, DTR = tree.DecisionTreeClassifier, tree.DecisionTreeRegressor
for weights in (False, True):
    for params in ({"max_depth": 3, "min_samples_leaf": 9}, {"max_leaf_nodes": 6, "min_samples_leaf": 11},
                   {"min_impurity_decrease": 0.02, "min_samples_leaf": 7, "min_samples_split": 40}):
        case(DTR, "plain", params, ("predict", "score"), weights, ("feature_importances_",))
        case(DTR, "missing", params, ("predict", "score"), weights, ("feature_importances_",))
        for criterion in ("gini", "entropy"):
            case(DTC, "three", {**params, "criterion": criterion}, ("predict", "predict_proba", "score"), weights,
                 ("feature_importances_",))
        case(DTC, "two_missing", params, ("predict", "predict_proba", "score"), weights, ("feature_importances_",))


def held_out():
    """Scores of models with five seeds, on rows that they have not seen."""
    sets = {"breast_cancer": datasets.load_breast_cancer, "wine": datasets.load_wine, "digits": datasets.load_digits}
    classifiers = {
        "RandomForestClassifier": ensemble.RandomForestClassifier,
        "ExtraTreesClassifier": ensemble.ExtraTreesClassifier,
        "HistGradientBoostingClassifier": HGC,
    }
    regressors = {
        "RandomForestRegressor": ensemble.RandomForestRegressor,
        "ExtraTreesRegressor": ensemble.ExtraTreesRegressor,
        "HistGradientBoostingRegressor": HGR,
    }
    todo = [(name, made, of, sets[of]()) for of in sets for name, made in classifiers.items()]
    diabetes = datasets.load_diabetes(scaled=False)
    todo += [(name, made, "diabetes", diabetes) for name, made in regressors.items()]
    rows = []
    for name, made, of, loaded in todo:
        test = np.arange(len(loaded.target)) % 4 == 0
        seeds = range(1 if name.startswith("Hist") else 5)
        scores = [
            made(random_state=seed).fit(loaded.data[~test], loaded.target[~test]).score(
                loaded.data[test], loaded.target[test])
            for seed in seeds
        ]
        rows.append({"estimator": name, "data": of, "scores": scores})
    return rows


def isolation():
    """Scores of samples of a blob and of some far away, by many trees."""
    x = np.round(np.concatenate([rng.normal(size=(400, 3)), rng.uniform(-7, 7, size=(20, 3))]), 2)
    forest = ensemble.IsolationForest(n_estimators=1000, random_state=0).fit(x)
    return {"x": plain(x), "score_samples": plain(forest.score_samples(x)), "offset": forest.offset_}


def main():
    sets = data()
    cases = []
    for made, on, params, methods, weights, attributes in CASES:
        x, y, w = (sets[on][part] for part in ("x", "y", "w"))
        model = made(random_state=0, **params).fit(x, y, sample_weight=w if weights else None)
        found = {}
        for method in methods:
            if method == "score":
                found[method] = plain(model.score(x, y))
            else:
                found[method] = plain(np.asarray(getattr(model, method)(x))[:SHOWN])
        cases.append({
            "estimator": made.__name__, "data": on, "weights": weights, "params": params, "methods": found,
            "attributes": {name.rstrip("_"): plain(getattr(model, name)) for name in attributes},
        })
    made = {
        "scikit-learn": sklearn.__version__,
        "data": {name: {part: plain(value) for part, value in parts.items()} for name, parts in sets.items()},
        "cases": cases, "held_out": held_out(), "isolation": isolation(),
    }
    path = pathlib.Path(__file__).parent / "trees.json"
    path.write_text(json.dumps(made, separators=(",", ":")) + "\n")


main()
