"""Records what scikit-learn answers of neighbours: `python record_neighbors.py` writes `neighbors.json` beside it.

Data and format are those of `record.py`.
"""

import numpy as np
from sklearn import impute, neighbors

import record
from record import case

record.CASES.clear()
sets = record.data()
gaps = np.random.default_rng(7)


def data():
    """As there, and samples with gaps of which no two distances are equal."""
    x = gaps.normal(size=(61, 4)) * [1.0, 2.0, 0.5, 3.0] + gaps.normal(size=(61, 1))
    x = record.rounded(x + [0.0, 5.0, -1.0, 10.0])
    x[gaps.uniform(size=x.shape) < 0.2] = np.nan
    return {**sets, "gaps": {"x": x, "y": sets["plain"]["y"], "w": sets["plain"]["w"]}}


record.data = data


class Nearest(neighbors.NearestNeighbors):
    """Neighbours as rows: distances, and numbers behind them."""

    def near(self, x):
        return np.concatenate(self.kneighbors(x[3:12] + 0.125), axis=1)

    def own(self, x):
        return np.concatenate(self.kneighbors(), axis=1)

    def within(self, x):
        found = zip(*self.radius_neighbors(x, sort_results=True))
        return [[len(near), near.sum(), numbers[len(numbers) // 2]] for near, numbers in found]

    def own_within(self, x):
        found = zip(*self.radius_neighbors(sort_results=True))
        return [[len(near), near.sum(), numbers.sum()] for near, numbers in found]


METRICS = [
    {}, {"metric": "manhattan"}, {"metric": "chebyshev"}, {"metric": "cosine"}, {"metric": "minkowski", "p": 3},
    {"p": 1}, {"p": 1.5},
]
for metric in METRICS:
    for on, radius in (("three", 2.0), ("plain", 4.0)):
        radius = 0.02 if metric.get("metric") == "cosine" else radius
        params = {"n_neighbors": 4, "radius": radius, **metric}
        case("NearestNeighbors", Nearest(**params), on, params, (), ("near", "own", "within", "own_within"))
    for weights in ("uniform", "distance"):
        params = {"n_neighbors": 7, "weights": weights, **metric}
        for on in ("two", "three"):
            case("KNeighborsClassifier", neighbors.KNeighborsClassifier(**params), on, params, ("classes_",),
                 ("predict", "predict_proba", "score"))
        case("KNeighborsRegressor", neighbors.KNeighborsRegressor(**params), "several", params, (),
             ("predict", "score"))
        radius = 0.05 if metric.get("metric") == "cosine" else 1.5
        params = {"radius": radius, "weights": weights, **metric}
        case("RadiusNeighborsClassifier", neighbors.RadiusNeighborsClassifier(**params), "three", params, (),
             ("predict", "predict_proba", "score"))
        case("RadiusNeighborsRegressor", neighbors.RadiusNeighborsRegressor(**params), "rates", params, (),
             ("predict", "score"))
    params = {"n_neighbors": 5, "novelty": True, **metric}
    for on in ("three", "plain"):
        case("LocalOutlierFactor", neighbors.LocalOutlierFactor(**params), on, params,
             ("negative_outlier_factor_", "offset_"), ("score_samples", "decision_function", "predict"))
params = {"contamination": 0.15, "novelty": True}
case("LocalOutlierFactor", neighbors.LocalOutlierFactor(**params), "three", params,
     ("negative_outlier_factor_", "offset_"), ("score_samples", "decision_function", "predict"))
case("KNeighborsRegressor", neighbors.KNeighborsRegressor(3), "plain", {"n_neighbors": 3}, (), ("predict", "score"))
for params in ({}, {"n_neighbors": 2}, {"n_neighbors": 100}, {"weights": "distance"}, {"add_indicator": True}):
    case("KNNImputer", impute.KNNImputer(**params), "gaps", params, (), ("transform",))

if __name__ == "__main__":
    record.write("neighbors.json")
