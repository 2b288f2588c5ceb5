"""Records what scikit-learn answers of clusters and mixtures: `python record_clusters.py` writes `clusters.json`
beside it.

Data and format are those of `record.py`. Fits start from given numbers, or have one optimum.
"""

import numpy as np
from sklearn import cluster, mixture

import record
from record import case, plain

record.CASES.clear()

for params in (
    {"eps": 1.0, "min_samples": 3}, {"eps": 1.4}, {"eps": 0.7, "min_samples": 2},
    {"eps": 1.5, "metric": "manhattan", "min_samples": 4}, {"eps": 0.02, "metric": "cosine"},
    {"eps": 1.2, "metric": "minkowski", "p": 3.0}, {"eps": 0.01}, {"eps": 100.0}, {"eps": 1.0, "min_samples": 1},
):
    for weights in (False, True):
        case("DBSCAN", cluster.DBSCAN(**params), "three", params,
             ("labels_", "core_sample_indices_", "components_"), (), weights)
for linkage in ("ward", "complete", "average", "single"):
    for count in (1, 2, 5, 17, 61):
        params = {"linkage": linkage, "n_clusters": count}
        case("AgglomerativeClustering", cluster.AgglomerativeClustering(**params, compute_distances=True), "three",
             params, ("labels_", "children_", "distances_", "n_clusters_"))
    params = {"linkage": linkage, "n_clusters": None, "distance_threshold": 3.0}
    case("AgglomerativeClustering", cluster.AgglomerativeClustering(**params), "plain", params,
         ("labels_", "children_", "distances_", "n_clusters_"))
for metric in ("manhattan", "chebyshev", "cosine"):
    params = {"linkage": "average", "n_clusters": 4, "metric": metric}
    case("AgglomerativeClustering", cluster.AgglomerativeClustering(**params, compute_distances=True), "three",
         params, ("labels_", "children_", "distances_", "n_clusters_"))

means = np.array([[0.5, 0.0, 1.0], [3.0, 1.0, 0.5], [1.0, 4.0, -1.0]])
start = {"weights_init": plain([0.3, 0.3, 0.4]), "means_init": plain(means)}
given = {"weights_init": [0.3, 0.3, 0.4], "means_init": means}
PRECISIONS = {
    "full": np.stack([np.eye(3), 0.5 * np.eye(3) + 0.1, 2.0 * np.eye(3)]), "tied": np.eye(3) + 0.2,
    "diag": np.array([[1.0, 0.5, 2.0], [1.0, 1.0, 1.0], [0.5, 2.0, 1.0]]), "spherical": np.array([1.0, 0.5, 2.0]),
}
FOUND = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bound_", "n_iter_")


class Mixture(mixture.GaussianMixture):
    def criteria(self, x):
        return [self.aic(x), self.bic(x)]


for form, precisions in PRECISIONS.items():
    for params in ({}, {"tol": 1e-8, "reg_covar": 0.01}, {"tol": 0.0, "max_iter": 3}):
        params = {"covariance_type": form, **params}
        case("GaussianMixture", Mixture(3, **params, **given, precisions_init=precisions), "three",
             {**params, **start, "n_components": 3, "precisions_init": plain(precisions)}, FOUND,
             ("predict", "predict_proba", "score_samples", "score", "criteria"))
    # One component has one optimum, and needs no start.
    case("GaussianMixture", Mixture(1, covariance_type=form), "plain", {"covariance_type": form, "n_components": 1},
         FOUND[:-1], ("predict", "score_samples", "score", "criteria"))

if __name__ == "__main__":
    record.write("clusters.json")
