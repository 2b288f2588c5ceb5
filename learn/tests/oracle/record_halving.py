"""Records what scikit-learn answers to searches by halving: `python record_halving.py`.

Writes `halving.json` beside itself. Of searches whose resource are samples only the rounds are recorded, as
draws differ. Data are scikit-learn's iris and diabetes.
"""

import json
import os
import warnings

import numpy as np
import sklearn
from sklearn.datasets import load_diabetes, load_iris
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import HalvingGridSearchCV, HalvingRandomSearchCV, KFold
from sklearn.tree import DecisionTreeRegressor

warnings.simplefilter("ignore")
iris = load_iris(return_X_y=True)
diabetes = load_diabetes(return_X_y=True)


def rounds(search):
    return {
        "n_resources": [int(count) for count in search.n_resources_],
        "n_candidates": [int(count) for count in search.n_candidates_],
        **{
            name: int(getattr(search, name + "_"))
            for name in [
                "n_remaining_candidates", "max_resources", "min_resources", "n_required_iterations",
                "n_possible_iterations",
            ]
        },
    }


def ridges(count, **options):
    grid = {"alpha": [at / 8 for at in range(1, count + 1)]}
    return rounds(HalvingGridSearchCV(Ridge(), grid, random_state=0, **options).fit(*diabetes))


class Uniform:
    def rvs(self, random_state=None):
        return random_state.uniform(0.1, 2.0)


trees = HalvingGridSearchCV(
    DecisionTreeRegressor(random_state=0),
    {"min_samples_leaf": [1, 5, 20, 40], "min_samples_split": [2, 30]},
    cv=KFold(4), factor=2, resource="max_depth", max_resources=6, min_resources=1,
).fit(*diabetes)
answers = {
    "sklearn": sklearn.__version__,
    "rounds": {
        "default": ridges(20),
        "factor": ridges(20, factor=2),
        "part": ridges(20, factor=2.5),
        "smallest": ridges(20, min_resources="smallest"),
        "few": ridges(20, max_resources=100, min_resources=20),
        "aggressive": ridges(20, max_resources=100, min_resources=20, aggressive_elimination=True),
        "one": ridges(1),
        "classes": rounds(
            HalvingGridSearchCV(
                LogisticRegression(), {"C": [0.1, 1.0, 10.0, 100.0]}, cv=3, min_resources="smallest", random_state=0
            ).fit(*iris)
        ),
        "random": rounds(HalvingRandomSearchCV(Ridge(), {"alpha": Uniform()}, random_state=0).fit(*diabetes)),
        "random_few": rounds(
            HalvingRandomSearchCV(
                Ridge(), {"alpha": Uniform()}, n_candidates=7, min_resources="exhaust", random_state=0
            ).fit(*diabetes)
        ),
    },
    "scores": {
        "rounds": rounds(trees),
        "params": [[f"{name}={value!r}" for name, value in params.items()] for params in trees.cv_results_["params"]],
        "mean": [float(score) for score in np.asarray(trees.cv_results_["mean_test_score"])],
        "best_index": int(trees.best_index_),
        "best_score": float(trees.best_score_),
    },
}
place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "halving.json")
with open(place, "w") as file:
    json.dump(answers, file, indent=0)
    file.write("\n")
