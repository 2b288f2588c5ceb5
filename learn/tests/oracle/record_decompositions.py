"""Records what scikit-learn answers of decompositions: `python record_decompositions.py` writes
`decompositions.json` beside it.

Data and format are those of `record.py`.
"""

import numpy as np
from sklearn import decomposition

import record
from record import case, plain

record.CASES.clear()

for params in ({"n_components": 2}, {"n_components": 1, "tol": 1e-6, "max_iter": 50}, {}, {"n_components": 2, "max_iter": 2},
               {"n_components": 2, "noise_variance_init": [0.5, 1.0, 2.0]}):
    for on in ("skewed", "three"):
        case("FactorAnalysis", decomposition.FactorAnalysis(svd_method="lapack", **params), on, params,
             ("components_", "noise_variance_", "mean_", "loglike_", "n_iter_"),
             ("transform", "score_samples", "score", "get_covariance"))
PCA = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_", "var_",
       "noise_variance_", "n_samples_seen_")
for on in ("plain", "three", "wide"):
    for params in ({}, {"n_components": 2}, {"n_components": 2, "batch_size": 7}, {"n_components": 3, "batch_size": 10},
                   {"n_components": 2, "batch_size": 20, "whiten": True}):
        # Three samples vary in two directions: a third one is rounding.
        if on != "wide" or params == {"n_components": 2}:
            case("IncrementalPCA", decomposition.IncrementalPCA(**params), on, params, PCA, ("transform",))
first = np.array([[1.0, 0.25, -0.5], [0.0, 1.0, 0.75], [0.5, -1.0, 1.0]])
for fun in ("logcosh", "exp", "cube"):
    for params in ({}, {"n_components": 2}, {"whiten": "arbitrary-variance"}, {"max_iter": 3}):
        count = params.get("n_components", 3)
        # An odd number of steps beyond which cubes of few samples turn for ever.
        given = {"fun": fun, "max_iter": 7, **params}
        case("FastICA", decomposition.FastICA(w_init=first[:count, :count], **given), "skewed",
             {**given, "w_init": plain(first[:count, :count])},
             ("components_", "mixing_", "mean_", "whitening_", "n_iter_"), ("transform",))


def get_covariance(self, x):
    return covariance(self)


covariance = decomposition.FactorAnalysis.get_covariance
decomposition.FactorAnalysis.get_covariance = get_covariance

if __name__ == "__main__":
    record.write("decompositions.json")
