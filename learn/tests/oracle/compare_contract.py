"""Compares all estimators of programs with scikit-learn at the edges of what they take.

    python compare_contract.py target/release/tharsis --only 'Ridge*' --edge far --show 3

Each class that `tharsis eval --list` names is fitted to each set of samples, and its methods are asked, here and there.
A line is printed for each difference that `MEANT` does not explain, and the number of those for each reason. The exit
status is 1 if lines were printed. `docs/learn.md` has the reasons under "Answers at the edges".
"""

import argparse
import base64
import collections
import fnmatch
import importlib
import json
import subprocess
import sys
import warnings

import numpy as np
from sklearn.experimental import enable_halving_search_cv  # noqa: F401

METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples", "score")
# Members of estimators that hold others, and the steps of a program that make them.
MEMBERS = {"bayes": "sk.naive_bayes.GaussianNB", "ridge": "sk.linear_model.Ridge", "scaler": "sk.preprocessing.StandardScaler"}
# Classes whose samples are labels, sets of them, or a kernel.
SKIPPED = ("LabelEncoder", "LabelBinarizer", "MultiLabelBinarizer", "KernelCenterer")
# Classes that draw: the numbers are others here.
DRAW = (
    "*Forest*", "ExtraTrees*", "Bagging*", "AdaBoostRegressor", "*KMeans", "SGD*", "Perceptron", "PassiveAggressive*",
    "*RandomProjection", "RBFSampler", "SkewedChi2Sampler", "PolynomialCountSketch", "Nystroem", "Halving*", "Randomized*",
    "TargetEncoder", "GaussianMixture", "FastICA",
)
# Classes whose directions have no sign.
UNSIGNED = ("FactorAnalysis", "FastICA", "IncrementalPCA", "PCA", "TruncatedSVD", "LinearDiscriminantAnalysis")
TREES = ("*Tree*", "*Forest*", "ExtraTrees*", "AdaBoost*", "Bagging*", "*GradientBoosting*")
NEAR = ("*KMeans", "*Neighbors*", "NearestCentroid", "LocalOutlierFactor", "DBSCAN", "KNNImputer", "*Covariance", "OAS",
        "LedoitWolf", "QuadraticDiscriminantAnalysis", "GaussianMixture", "AgglomerativeClustering", "RBFSampler", "Nystroem")
GENERALIZED = ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
SOLVED = GENERALIZED + (
    "LogisticRegression*", "HuberRegressor", "Lars", "LassoLars*", "Lasso*", "ElasticNet*", "LinearSV*", "CalibratedClassifierCV",
    "StackingClassifier", "NMF", "FactorAnalysis", "FastICA", "PowerTransformer", "ARDRegression", "BayesianRidge",
)
ALL = ("*",)
EQUAL = ("the same column twice", "each row twice", "two rows", "four rows", "wide", "constant", "zeros", "a constant column",
         "a column of zeros", "a column of tenths", "one feature")

# Differences that are meant: the reason, the classes, the sets of samples, the methods, and the kinds.
MEANT = (
    ("sums and squares beyond float64 are an OverflowError", ALL, ("huge", "huge targets", "large"), ALL, ALL),
    ("trees compare float64, and scikit-learn's float32", TREES, ("far", "huge", "large", "tiny"), ALL, ALL),
    ("of equally good splits and equal distances the first one counts", TREES + NEAR, EQUAL, ALL, ("values",)),
    ("distances are made of differences, and squares around means", NEAR, ("far",), ALL, ("values",)),
    ("solvers end within `tol` at other places, or have several solutions", SOLVED, ALL, ALL, ("values",)),
    ("scikit-learn divides by zero or by what rounding leaves",
     ("GaussianNB", "PoissonRegressor", "GammaRegressor", "PCA", "FastICA", "TruncatedSVD", "GaussianMixture"),
     EQUAL + ("one row", "one class", "tiny"), ALL, ("refused", "values")),
    ("a single class has no direction", ("LinearDiscriminantAnalysis",), ("one class", "one row"), ALL, ALL),
    ("a column of probabilities for each class", ("HistGradientBoostingClassifier", "OneVsRestClassifier"),
     ("one class", "one row"), ("predict_proba",), ("shape",)),
    ("NaN where no sample is near", ("RadiusNeighborsRegressor",), ALL, ("predict", "score"), ALL),
    ("dummies need a feature and whole labels", ("Dummy*",), ("no columns", "fractional targets", "one axis"), ALL, ALL),
    ("maps without a fit take any number of features, and read nothing before", ("Binarizer", "Normalizer"),
     ("another number of columns", "nan", "inf", "no rows", "no columns"), ALL, ALL),
    ("constant targets and columns of targets are errors of NumPy there",
     ("LassoLarsCV", "OrthogonalMatchingPursuitCV") + GENERALIZED, ("one class", "a column of targets", "one row"), ALL,
     ("taken",)),
    ("a table of all categories", ("CategoricalNB",), ("far", "large", "huge"), ALL, ALL),
)


class Member(str):
    """The name of a member."""


def spec(bare):
    """The parameters of a class without which it takes no samples of four features, or is large."""
    member = Member("bayes" if "Classifier" in bare else "ridge")
    if "RandomProjection" in bare:
        return {"n_components": 2}
    if "Voting" in bare or "Stacking" in bare:
        return {"estimators": [("a", member)]}
    if bare == "HalvingGridSearchCV":
        return {"estimator": member, "param_grid": {"fit_intercept": [True, False]}}
    if bare == "HalvingRandomSearchCV":
        return {"estimator": member, "param_distributions": {"fit_intercept": [True, False]}}
    if bare == "GridSearchCV":
        return {"estimator": member, "param_grid": {"alpha": [0.5, 1.0]}}
    if bare == "RandomizedSearchCV":
        return {"estimator": member, "param_distributions": {"alpha": [0.5, 1.0]}, "n_iter": 2}
    if bare == "ColumnTransformer":
        return {"transformers": [("a", Member("scaler"), [0])], "remainder": "passthrough"}
    if bare == "FeatureUnion":
        return {"transformer_list": [("a", Member("scaler")), ("b", "passthrough")]}
    if bare == "Pipeline":
        return {"steps": [("a", member)]}
    if bare in ("RFE", "SelectFromModel", "SequentialFeatureSelector", "OneVsOneClassifier", "OneVsRestClassifier",
                "MultiOutputClassifier", "MultiOutputRegressor"):
        return {"estimator": member}
    if bare == "LinearSVR":
        return {"loss": "squared_epsilon_insensitive"}
    if "HistGradient" in bare:
        return {"max_iter": 7}
    if "Forest" in bare or "ExtraTrees" in bare or "AdaBoost" in bare:
        return {"n_estimators": 7}
    return {}


def found(name):
    module, _, bare = name.removeprefix("sk.").rpartition(".")
    return getattr(importlib.import_module("sklearn." + module), bare)


def theirs_of(value):
    """A parameter for scikit-learn."""
    if isinstance(value, Member):
        return found(MEMBERS[value])()
    if isinstance(value, tuple):
        return tuple(theirs_of(part) for part in value)
    if isinstance(value, list):
        return [theirs_of(part) for part in value]
    return value


def ours_of(value):
    """A parameter for a program."""
    if isinstance(value, Member):
        return {"$": str(value)}
    if isinstance(value, tuple):
        return {"t": [ours_of(part) for part in value]}
    if isinstance(value, list):
        return [ours_of(part) for part in value]
    if isinstance(value, dict):
        return {"o": [[key, ours_of(part)] for key, part in value.items()]}
    return value


def samples():
    """Twelve samples of four positive features, and labels that the first feature nearly tells."""
    rng = np.random.default_rng(39)
    x = np.round(rng.uniform(0.5, 4.0, size=(12, 4)), 3)
    x[:, 0] = np.round(np.arange(12) % 2 * 1.5 + rng.uniform(0.5, 2.5, 12), 3)
    return x, np.arange(12) % 2


def edges():
    """Sets of samples: the samples and targets of the fit, and the samples that are asked."""
    x, y = samples()
    new = x[[7, 2, 11]]

    def put(of, row, column, number):
        other = of.astype(float)
        other[row, column] = number
        return other

    def column(numbers):
        other = x.copy()
        other[:, 1] = numbers
        return other

    sets = {
        "plain": (x, y, new),
        "whole numbers": (np.round(x).astype(np.int64), y, np.round(new).astype(np.int64)),
        "float32": (x.astype(np.float32), y, new.astype(np.float32)),
        "negative": (-x, y, -new),
        "constant": (np.full_like(x, 2.0), y, np.full_like(new, 2.0)),
        "zeros": (np.zeros_like(x), y, np.zeros_like(new)),
        "huge": (x * 1e300, y, new * 1e300),
        "large": (x * 1e100, y, new * 1e100),
        "tiny": (x * 1e-300, y, new * 1e-300),
        "far": (x + 1e9, y, new + 1e9),
        "wide": (x[:3].repeat(2, axis=1), y[:3], x[:2].repeat(2, axis=1)),
        "one row": (x[:1], y[:1], new),
        "two rows": (x[:2], y[:2], new),
        "four rows": (x[:4], y[:4], new),
        "one feature": (x[:, :1], y, new[:, :1]),
        "one class": (x, np.ones(12, dtype=np.int64), new),
        "three classes": (x, np.arange(12) % 3, new),
        "classes far apart": (x, y * 10**12 - 7, new),
        "a constant column": (column(2.0), y, new),
        "a column of zeros": (column(0.0), y, new),
        "a column of tenths": (column(0.1), y, new),
        "the same column twice": (column(x[:, 0]), y, put(new, slice(None), 1, new[:, 0])),
        "each row twice": (x.repeat(2, axis=0), y.repeat(2), new),
        "a column of targets": (x, y.reshape(-1, 1), new),
        "fractional targets": (x, y * 0.75 + 0.3, new),
        "huge targets": (x, y * 1e300, new),
        "nan": (put(x, 3, 1, np.nan), y, new),
        "inf": (put(x, 3, 1, np.inf), y, new),
        "a nan target": (x, put(y.reshape(-1, 1), 3, 0, np.nan).ravel(), new),
        "an inf target": (x, put(y.reshape(-1, 1), 3, 0, np.inf).ravel(), new),
        "nan that is new": (x, y, put(new, 1, 1, np.nan)),
        "inf that is new": (x, y, put(new, 1, 1, np.inf)),
        "another number of columns": (x, y, new[:, :3]),
        "one new axis": (x, y, new[0]),
        "no rows": (x[:0], y[:0], new),
        "no columns": (x[:, :0], y, new[:, :0]),
        "fewer targets": (x, y[:-1], new),
        "one axis": (x[:, 0], y, new[:, 0]),
        "three axes": (x.reshape(12, 2, 2), y, new.reshape(3, 2, 2)),
    }
    return sets


def shaped(bare, edge):
    """The data of a set as a class takes them."""
    x, y, new = edge
    if bare == "IsotonicRegression" and x.ndim == 2:
        x, new = x[:, :1], new[:, :1]
    if "MultiOutput" in bare and y.ndim == 1:
        y = np.stack([y, 1 - y], axis=1)
    if bare == "GammaRegressor":
        y = y + 0.5
    return np.ascontiguousarray(x), np.ascontiguousarray(y), np.ascontiguousarray(new)


def raw(array):
    text = base64.b64encode(array.tobytes()).decode()
    return {"raw": text, "dtype": array.dtype.str, "shape": list(array.shape)}


def request(name, params, data, method):
    """A program that fits a class, and asks it a method, if there is one."""
    x, y, new = data
    steps = [[member, made, []] for member, made in MEMBERS.items()]
    steps.append(["m", name, [], {key: ours_of(value) for key, value in params.items()}])
    steps.append(["f", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]])
    if method == "score":
        steps.append(["r", "sk.score", [{"$": "m"}, {"$": "x"}, {"$": "y"}]])
    elif method:
        steps.append(["r", "sk." + method, [{"$": "m"}, {"$": "new"}]])
    inputs = {"x": raw(x), "y": raw(y), "new": raw(new)}
    ctx = {"inline": "raw", "timeout_s": 20}
    return {"in": inputs, "prog": steps, "out": ["r"] if method else [], "ctx": ctx}


def told(reply):
    """What a reply says: the class and the text of an error, or numbers."""
    if not reply["ok"]:
        return reply["err"]["class"], reply["err"].get("msg", "")
    result = reply["out"].get("r")
    if result is None:
        return None
    if isinstance(result, dict) and "arr" in result:
        array = result["arr"]
        numbers = np.frombuffer(base64.b64decode(array["raw"]), dtype=array["dtype"])
        return numbers.reshape(array["shape"]).astype(float)
    if isinstance(result, dict) and "f" in result:
        return np.asarray(float(result["f"]))
    return None if isinstance(result, dict) else np.asarray(result, dtype=float)


def asked(name, params, data, methods):
    """What scikit-learn says to the fit and to each method that the fitted estimator has."""
    x, y, new = data
    made = found(name)(**{key: theirs_of(value) for key, value in params.items()})
    if "random_state" in made.get_params(deep=False):
        made.set_params(random_state=0)
    says = {}
    try:
        made.fit(x, y)
        says["fit"] = None
    except Exception as error:
        says["fit"] = (type(error).__name__, str(error))
        return says
    for method in methods:
        if not hasattr(made, method):
            continue
        try:
            result = made.score(x, y) if method == "score" else getattr(made, method)(new)
            result = result.toarray() if hasattr(result, "toarray") else result
            says[method] = np.asarray(result, dtype=float)
        except Exception as error:
            says[method] = (type(error).__name__, str(error))
    return says


def difference(bare, method, own, other):
    """The kind of a difference, and its text; none if there is none."""
    own_fails, other_fails = isinstance(own, tuple), isinstance(other, tuple)
    if own_fails and other_fails:
        # Errors of NumPy and SciPy are no promise of scikit-learn.
        same = own[0] == other[0] or other[0] not in ("ValueError", "TypeError", "NotFittedError", "AttributeError")
        return None if same else ("class", f"{own[0]}: {own[1]}; {other[0]} there: {other[1]}")
    if own_fails:
        return "refused", f"{own[0]}: {own[1]}"
    if other_fails:
        return "taken", f"{other[0]} there: {other[1]}"
    if own is None or other is None:
        return None
    if own.shape != other.shape:
        return "shape", f"{list(own.shape)}, {list(other.shape)} there"
    if any(fnmatch.fnmatch(bare, one) for one in DRAW):
        return None
    if method == "transform" and bare in UNSIGNED:
        own, other = np.abs(own), np.abs(other)
    finite = np.abs(other[np.isfinite(other)])
    scale = max(finite.max(initial=0.0), np.finfo(float).tiny)
    if np.allclose(own, other, rtol=0.0, atol=1e-6 * scale, equal_nan=True):
        return None
    return "values", f"{own.ravel()[:4].tolist()}, {other.ravel()[:4].tolist()} there"


def reason(bare, edge, method, kind):
    def fits(value, patterns):
        return any(fnmatch.fnmatch(value, pattern) for pattern in patterns)

    for text, classes, sets, methods, kinds in MEANT:
        if fits(bare, classes) and fits(edge, sets) and fits(method, methods) and fits(kind, kinds):
            return text
    return None


def classes(tharsis):
    listed = subprocess.run([tharsis, "eval", "--list"], check=True, capture_output=True, text=True).stdout
    names = [json.loads(line)["name"] for line in listed.splitlines()]
    bare = [(name, name.rpartition(".")[2]) for name in names if name.startswith("sk.")]
    return [(name, short) for name, short in bare if short[:1].isupper() and short not in SKIPPED]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tharsis", help="the built command")
    parser.add_argument("--only", default="*", help="a pattern of classes")
    parser.add_argument("--edge", default="*", help="a pattern of sets of samples")
    parser.add_argument("--show", type=int, default=None, help="at most so many lines for each class")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    cases = []
    for name, bare in classes(options.tharsis):
        if not fnmatch.fnmatch(bare, options.only):
            continue
        for edge, data in edges().items():
            if fnmatch.fnmatch(edge, options.edge):
                data = shaped(bare, data)
                says = asked(name, spec(bare), data, METHODS)
                for method, other in says.items():
                    wanted = None if method == "fit" else method
                    cases.append((bare, edge, method, other, request(name, spec(bare), data, wanted)))
    lines = "".join(json.dumps(case[-1]) + "\n" for case in cases)
    replies = subprocess.run([options.tharsis, "eval"], input=lines, check=True, capture_output=True, text=True).stdout
    meant, shown, unfitted = collections.Counter(), collections.Counter(), set()
    # Letters that end lines elsewhere may stand in texts.
    for (bare, edge, method, other, _), line in zip(cases, replies.split("\n")[:-1], strict=True):
        own = told(json.loads(line))
        if (bare, edge) in unfitted:
            continue
        if method == "fit" and isinstance(own, tuple):
            unfitted.add((bare, edge))
        missing = isinstance(own, tuple) and own[0] in ("AttributeError", "NotImplemented")
        apart = None if missing and method != "fit" else difference(bare, method, own, other)
        if apart is None:
            continue
        why = reason(bare, edge, method, apart[0])
        if why:
            meant[why] += 1
            continue
        shown[bare] += 1
        if options.show is None or shown[bare] <= options.show:
            print(f"{bare} | {edge} | {method} | {apart[0]} | {apart[1]}")
    print(f"{shown.total()} of {len(cases)} differ without a reason", file=sys.stderr)
    for why, count in meant.most_common():
        print(f"{count}: {why}", file=sys.stderr)
    return 1 if shown.total() else 0


if __name__ == "__main__":
    sys.exit(main())
