"""Records scikit-learn's answers for the metrics of tharsis-learn.

    pip install scikit-learn==1.9.1
    python learn/tests/oracle/record_metrics.py > learn/tests/oracle/metrics.json

Each case is [metric, arguments, keywords, answer]. Arguments and keywords that are arrays are places in the
list of arrays. An answer is a number, numbers in rows, a text, or {"error": class}.
"""

import json
import math
import sys
import warnings

import numpy as np
import sklearn
from sklearn import metrics

warnings.simplefilter("ignore")
CASES = []
ARRAYS = []
LISTS = ("sample_weight", "labels", "Y")


def plain(value):
    """A value for JSON; numbers that JSON lacks are text."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        value = float(value)
        return value if math.isfinite(value) else str(value)
    return value


def place(array):
    """Place of an array in the list of all."""
    # As text 1, 1.0 and True differ.
    array = json.dumps(plain(np.asarray(array)), separators=(",", ":"))
    if array not in ARRAYS:
        ARRAYS.append(array)
    return ARRAYS.index(array)


def record(name, *args, **keywords):
    if name == "classification_report" and not np.any(np.asarray(args[0]) == np.asarray(args[1])):
        # Without a right prediction scikit-learn writes counts as floats.
        return
    function = getattr(metrics, name, None) or getattr(metrics.pairwise, name)
    places = [place(a) for a in args]
    options = {key: place(v) if key in LISTS and v is not None else plain(v) for key, v in keywords.items()}
    try:
        arrays = [np.asarray(a) for a in args]
        if name == "fbeta_score":
            keywords["beta"] = float(arrays.pop())
        answer = plain(function(*arrays, **array_options(keywords)))
    except (ValueError, ZeroDivisionError, NotImplementedError, TypeError) as error:
        # A parameter out of range has a class of its own, which is a ValueError.
        kind = "ValueError" if isinstance(error, ValueError) else type(error).__name__
        kind = kind.replace("NotImplementedError", "NotImplemented")
        answer = {"error": kind}
    case = [name, places, {key: v for key, v in options.items() if v is not None or key == "average"}, answer]
    case = json.dumps(case, separators=(",", ":"))
    if case not in CASES:
        CASES.append(case)


def array_options(keywords):
    return {key: np.asarray(v) if key in LISTS and v is not None else v for key, v in keywords.items()}


def pairs_of_labels():
    """True and predicted labels: of two, three and many classes, one class, far apart, negative."""
    rng = np.random.default_rng(7)
    yield [0], [0]
    yield [1], [0]
    yield [1, 1, 1], [1, 1, 1]
    yield [0, 0, 0], [0, 0, 0]
    yield [0, 1, 1, 0], [0, 1, 1, 0]
    yield [0, 1, 2, 0, 1, 2], [0, 2, 1, 0, 0, 1]
    yield [-1, 1, 1, -1, -1], [1, 1, -1, -1, -1]
    yield [True, False, True, True], [True, True, False, True]
    yield [-(2**62), 5, 2**62, 5, 5], [5, 5, 2**62, 7, -(2**62)]
    yield [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0]
    yield [0, 0, 0, 0], [0, 1, 2, 3]
    for count, classes in [(7, 2), (30, 2), (30, 3), (41, 5), (64, 9)]:
        y_true = rng.integers(0, classes, count)
        noise = rng.integers(0, classes, count)
        yield y_true.tolist(), np.where(rng.random(count) < 0.6, y_true, noise).tolist()
    y_true = rng.integers(0, 2, 25)
    yield y_true.tolist(), (y_true + (rng.random(25) < 0.2)).tolist()


def weights(count, seed=3):
    drawn = np.random.default_rng(seed + count).random(count)
    drawn[:: max(count // 3, 2)] = 0.0
    drawn[-1] = 2.5
    return drawn.tolist()


def record_classification():
    for y_true, y_pred in pairs_of_labels():
        count = len(y_true)
        every = sorted({int(label) for label in y_true + y_pred})
        for weight in (None, weights(count)):
            record("accuracy_score", y_true, y_pred, sample_weight=weight)
            record("zero_one_loss", y_true, y_pred, sample_weight=weight, normalize=False)
            record("hamming_loss", y_true, y_pred, sample_weight=weight)
            record("confusion_matrix", y_true, y_pred, sample_weight=weight)
            record("balanced_accuracy_score", y_true, y_pred, sample_weight=weight)
            record("matthews_corrcoef", y_true, y_pred, sample_weight=weight)
            record("cohen_kappa_score", y_true, y_pred, sample_weight=weight)
            record("precision_recall_fscore_support", y_true, y_pred, sample_weight=weight)
            # Exact numbers: the text has all digits of their sums.
            exact = None if weight is None else (np.round(np.multiply(weight, 8)) / 8).tolist()
            record("classification_report", y_true, y_pred, sample_weight=exact)
        record("accuracy_score", y_true, y_pred, normalize=False, sample_weight=weights(count))
        record("multilabel_confusion_matrix", y_true, y_pred, sample_weight=weights(count))
        record("multilabel_confusion_matrix", y_true, y_pred, labels=every[:1] + [99])
        record("balanced_accuracy_score", y_true, y_pred, adjusted=True)
        for normalize in ("true", "pred", "all"):
            record("confusion_matrix", y_true, y_pred, normalize=normalize, sample_weight=weights(count))
        record("confusion_matrix", y_true, y_pred, labels=every[::-1])
        record("confusion_matrix", y_true, y_pred, labels=every[:1] + [99])
        for kind in ("linear", "quadratic"):
            record("cohen_kappa_score", y_true, y_pred, weights=kind, sample_weight=weights(count))
        record("cohen_kappa_score", y_true, y_pred, labels=every[:2], replace_undefined_by=0.25)
        record("classification_report", y_true, y_pred, labels=every[:1] + [99], digits=4)
        names = [f"the class {label}" for label in every]
        record("classification_report", y_true, y_pred, target_names=names, zero_division=1.0)
        for average in ("binary", "micro", "macro", "weighted", None):
            for name in ("precision_score", "recall_score", "jaccard_score"):
                record(name, y_true, y_pred, average=average)
            record("f1_score", y_true, y_pred, average=average, sample_weight=weights(count))
            record("fbeta_score", y_true, y_pred, 0.5, average=average, zero_division=float("nan"))
            record("fbeta_score", y_true, y_pred, 2.0, average=average, zero_division=1.0)
            if average != "binary":
                record("jaccard_score", y_true, y_pred, average=average, labels=every[:1] + [99])
                record("precision_score", y_true, y_pred, average=average, labels=every[::-1], zero_division=1.0)
        record("recall_score", y_true, y_pred, pos_label=0)
        record("f1_score", y_true, y_pred, average="macro", zero_division=0.5)
    record("accuracy_score", [1, 2, 3], [1, 2, 3, 4])
    record("accuracy_score", [], [])
    record("accuracy_score", [1, 2], [1, 2], sample_weight=[1.0, float("nan")])
    record("accuracy_score", [1, 2], [1, 2], sample_weight=[1.0])
    record("accuracy_score", [1, 2], [1, 2], sample_weight=[0.0, 0.0])
    record("confusion_matrix", [1, 2], [1, 2], labels=[])
    record("confusion_matrix", [1, 2], [1, 2], labels=[3])
    record("classification_report", [1, 2], [1, 2], target_names=["one"])


def record_clustering():
    for a, b in pairs_of_labels():
        for name in (
            "rand_score",
            "adjusted_rand_score",
            "fowlkes_mallows_score",
            "mutual_info_score",
            "homogeneity_score",
            "completeness_score",
            "v_measure_score",
            "homogeneity_completeness_v_measure",
        ):
            record(name, a, b)
        record("v_measure_score", a, b, beta=0.3)
        for method in ("arithmetic", "geometric", "max", "min"):
            record("normalized_mutual_info_score", a, b, average_method=method)
            record("adjusted_mutual_info_score", a, b, average_method=method)
    rng = np.random.default_rng(11)
    record("adjusted_mutual_info_score", rng.integers(0, 3, 300), rng.integers(0, 4, 300))
    for name in ("rand_score", "adjusted_rand_score", "fowlkes_mallows_score", "v_measure_score"):
        record(name, np.array([], dtype=int), np.array([], dtype=int))
    record("rand_score", [1, 2, 3], [1, 2])


def record_probabilities():
    rng = np.random.default_rng(5)
    for count, classes in [(2, 2), (9, 2), (30, 2), (12, 3), (40, 4)]:
        y_true = np.concatenate([np.arange(classes), rng.integers(0, classes, count - classes)]) if classes <= count else None
        table = rng.random((count, classes)) ** 3
        table /= table.sum(axis=1, keepdims=True)
        decisions = rng.normal(size=(count, classes)) * 2
        for weight in (None, weights(count)):
            if classes == 2:
                one = table[:, 1]
                record("log_loss", y_true, one, sample_weight=weight)
                record("log_loss", y_true * 2 - 1, one, sample_weight=weight, normalize=False)
                record("brier_score_loss", y_true, one, sample_weight=weight)
                record("brier_score_loss", y_true, one, sample_weight=weight, pos_label=0)
                record("brier_score_loss", y_true + 4, one, sample_weight=weight, scale_by_half=False)
                record("hinge_loss", y_true, decisions[:, 0], sample_weight=weight)
                record("hinge_loss", y_true * 2 - 1, decisions[:, 0], sample_weight=weight)
            else:
                record("hinge_loss", y_true, decisions, sample_weight=weight)
                record("hinge_loss", y_true[:5] % 2, decisions[:5], labels=list(range(classes)))
            record("log_loss", y_true, table, sample_weight=weight)
            record("brier_score_loss", y_true, table, sample_weight=weight)
            record("brier_score_loss", y_true, table, sample_weight=weight, scale_by_half=True)
    record("log_loss", [0, 1, 1], [0.0, 1.0, 0.0])
    record("log_loss", [1, 1], [0.5, 0.25], labels=[0, 1])
    record("log_loss", [1, 1], [0.5, 0.25])
    record("log_loss", [1, 0], [1.5, 0.25])
    record("log_loss", [1, 0], [-0.5, 0.25])
    record("log_loss", [1, 0], [float("nan"), 0.25])
    record("log_loss", [1, 0, 2], [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    record("log_loss", [1, 0, 2], [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], labels=[0, 1])
    record("brier_score_loss", [1, 1], [0.5, 0.25])
    record("brier_score_loss", [0, 0], [0.5, 0.25])
    record("brier_score_loss", [0, 1, 2], [0.5, 0.25, 0.5])
    record("hinge_loss", [1, 1], [0.5, -0.25])
    record("hinge_loss", [0, 1, 2], [0.5, -0.25, 1.0])


def scores_of_two():
    """Labels and scores: ties, all equal, one class, one sample, perfect, integers."""
    rng = np.random.default_rng(9)
    yield [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    yield [0, 1], [0.5, 0.5]
    yield [0, 1, 0, 1, 1], [3, 3, 3, 3, 3]
    yield [1], [0.3]
    yield [0], [0.3]
    yield [1, 1, 1], [0.1, 0.2, 0.3]
    yield [0, 0, 0], [0.1, 0.2, 0.2]
    yield [0, 0, 1, 1, 1], [1, 2, 3, 4, 5]
    yield [1, 1, 0, 0], [1, 2, 3, 4]
    yield [0, 1, 0, 1], [-0.0, 0.0, -1e300, 1e300]
    for count, levels in [(10, 4), (33, 6), (50, 1000), (64, 12)]:
        scores = rng.integers(0, levels, count) / 8
        y_true = (rng.random(count) < (scores - scores.min()) / (np.ptp(scores) + 1e-9) * 0.7 + 0.15).astype(int)
        y_true[:2] = [0, 1]
        yield y_true.tolist(), scores.tolist()


def record_ranking():
    for y_true, scores in scores_of_two():
        count = len(y_true)
        for weight in (None, weights(count)):
            record("roc_curve", y_true, scores, sample_weight=weight)
            record("roc_curve", y_true, scores, sample_weight=weight, drop_intermediate=False)
            record("precision_recall_curve", y_true, scores, sample_weight=weight)
            record("precision_recall_curve", y_true, scores, sample_weight=weight, drop_intermediate=True)
            record("roc_auc_score", y_true, scores, sample_weight=weight)
            record("average_precision_score", y_true, scores, sample_weight=weight)
        record("roc_auc_score", y_true, scores, max_fpr=0.4)
        record("roc_curve", y_true, scores, pos_label=0)
        record("top_k_accuracy_score", y_true, scores, k=1, labels=[0, 1])
    record("roc_curve", [2, 3, 3], [0.1, 0.2, 0.3])
    record("roc_curve", [1, 2, 3], [0.1, 0.2, 0.3])
    record("roc_curve", [1, 2, 3, 3], [0.1, 0.2, 0.3, 0.2], pos_label=3)
    record("roc_auc_score", [2, 3, 3], [0.1, 0.2, 0.15])
    record("roc_auc_score", [0, 1], [0.1, float("nan")])
    record("roc_auc_score", [0, 1], [0.1, 0.2], max_fpr=1.5)
    record("roc_auc_score", [0, 1, 2], [0.1, 0.2])
    record("average_precision_score", [0, 1], [0.1, 0.2], pos_label=3)
    record("auc", [0, 0.5, 1], [0, 1, 1])
    record("auc", [1, 0.5, 0.5, 0], [0, 1, 0.25, 1])
    record("auc", [1, 0.5, 0.6], [0, 1, 1])
    record("auc", [1], [0])
    rng = np.random.default_rng(13)
    for count, classes in [(12, 3), (40, 4), (60, 3)]:
        y_true = np.concatenate([np.arange(classes), rng.integers(0, classes, count - classes)])
        likely = np.full((count, classes), 1.0)
        likely[np.arange(count), y_true] = 2.0
        likely /= likely.sum(axis=1, keepdims=True)
        # Exact numbers, so that ties are ties.
        table = rng.multinomial(16, likely) / 16
        for average in ("macro", "weighted", "micro", None):
            for weight in (None, weights(count)):
                record("roc_auc_score", y_true, table, multi_class="ovr", average=average, sample_weight=weight)
                record("average_precision_score", y_true, table, average=average, sample_weight=weight)
            record("roc_auc_score", y_true, table, multi_class="ovo", average=average)
        record("roc_auc_score", y_true, table)
        record("roc_auc_score", y_true, table * 2, multi_class="ovr")
        record("roc_auc_score", y_true % (classes - 1), table, multi_class="ovo", labels=list(range(classes)))
        for k in (1, 2, classes):
            record("top_k_accuracy_score", y_true, table, k=k)
        record("top_k_accuracy_score", y_true, table, k=1, normalize=False)
        record("top_k_accuracy_score", y_true, table, k=1, sample_weight=weights(count))
        record("top_k_accuracy_score", y_true % 2, table)
        record("top_k_accuracy_score", y_true % 2, table, labels=list(range(classes)))


def record_regression():
    rng = np.random.default_rng(17)
    names = [
        "mean_squared_error",
        "root_mean_squared_error",
        "mean_absolute_error",
        "mean_absolute_percentage_error",
        "median_absolute_error",
        "r2_score",
        "explained_variance_score",
        "d2_absolute_error_score",
        "mean_squared_log_error",
        "root_mean_squared_log_error",
        "mean_pinball_loss",
    ]
    targets = [
        ([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]),
        ([1.0], [2.0]),
        ([1, 2, 3], [1, 2, 3]),
        ([2.0, 2.0, 2.0], [2.0, 2.0, 2.0]),
        ([2.0, 2.0, 2.0], [1.0, 2.0, 2.0]),
        ([0.0, 1.0], [1.0, 1.0]),
        ([1e8, 1e8 + 1, 1e8 + 3], [1e8, 1e8 + 2, 1e8 + 2]),
    ]
    for count, outputs in [(10, 1), (31, 1), (20, 2), (33, 3)]:
        shape = (count, outputs) if outputs > 1 else (count,)
        y_true = np.round(rng.gamma(2.0, 2.0, shape), 3)
        targets.append((y_true, np.round(y_true + rng.normal(size=shape) * 0.7, 3).clip(0.01)))
    for y_true, y_pred in targets:
        count = len(y_true)
        for name in names:
            for weight in (None, weights(count)):
                record(name, y_true, y_pred, sample_weight=weight)
            if np.ndim(y_true) == 2:
                outputs = np.shape(y_true)[1]
                record(name, y_true, y_pred, multioutput="raw_values", sample_weight=weights(count))
                record(name, y_true, y_pred, multioutput=[0.5, 2.0, 1.0][:outputs])
        for name in ("r2_score", "explained_variance_score"):
            record(name, y_true, y_pred, multioutput="variance_weighted")
            record(name, y_true, y_pred, force_finite=False)
        for alpha in (0.1, 0.5, 0.8):
            record("mean_pinball_loss", y_true, y_pred, alpha=alpha)
            record("d2_pinball_score", y_true, y_pred, alpha=alpha)
            record("d2_pinball_score", y_true, y_pred, alpha=alpha, sample_weight=weights(count))
        record("max_error", y_true, y_pred)
        for power in (-1.5, 0, 1, 1.5, 2, 3):
            record("mean_tweedie_deviance", y_true, y_pred, power=power)
            record("mean_tweedie_deviance", y_true, y_pred, power=power, sample_weight=weights(count))
            # Of equal values all that is left for another power is rounding.
            if power in (0, 1, 2) or np.ptp(y_true) > 1e-6 * np.max(np.abs(y_true)):
                record("d2_tweedie_score", y_true, y_pred, power=power)
        record("mean_poisson_deviance", y_true, y_pred)
        record("mean_gamma_deviance", y_true, y_pred, sample_weight=weights(count))
    record("mean_squared_error", [1.0, 2.0], [1.0])
    record("mean_squared_error", [1.0, 2.0], [1.0, float("nan")])
    record("mean_squared_error", [1.0, float("inf")], [1.0, 2.0])
    record("mean_squared_error", [[1.0, 2.0]], [[1.0]])
    record("mean_squared_error", [[1.0, 2.0]], [[1.0, 3.0]], multioutput=[1.0])
    record("r2_score", [], [])
    record("mean_pinball_loss", [1.0, 2.0], [1.0, 2.0], alpha=1.5)
    record("mean_poisson_deviance", [0.0, 2.0], [1.0, 2.0])
    record("mean_poisson_deviance", [-1.0, 2.0], [1.0, 2.0])
    record("mean_gamma_deviance", [0.0, 2.0], [1.0, 2.0])


def record_pairwise():
    rng = np.random.default_rng(19)
    for rows, others, features in [(1, 1, 1), (4, 3, 2), (7, 5, 6)]:
        x, y = np.round(rng.normal(size=(rows, features)), 4), np.round(rng.normal(size=(others, features)), 4)
        y[0] = 0.0
        for beside in (None, y):
            for name in (
                "euclidean_distances",
                "manhattan_distances",
                "cosine_similarity",
                "cosine_distances",
                "linear_kernel",
                "polynomial_kernel",
                "sigmoid_kernel",
                "rbf_kernel",
                "laplacian_kernel",
            ):
                record(name, x, Y=beside)
            record("euclidean_distances", x, Y=beside, squared=True)
            record("rbf_kernel", x, Y=beside, gamma=0.3)
            record("polynomial_kernel", x, Y=beside, gamma=0.3, degree=2, coef0=0.5)
            record("haversine_distances", x[:, :2], Y=None if beside is None else beside[:, :2])
    record("euclidean_distances", [[1.0, 2.0]], Y=[[1.0]])
    record("euclidean_distances", [1.0, 2.0])


record_classification()
record_clustering()
record_probabilities()
record_ranking()
record_regression()
record_pairwise()
lines = {"arrays": ARRAYS, "cases": CASES}
sys.stdout.write('{"scikit-learn": "%s"' % sklearn.__version__)
for key, items in lines.items():
    sys.stdout.write(',\n"%s": [\n' % key)
    sys.stdout.write(",\n".join(items))
    sys.stdout.write("\n]")
sys.stdout.write("}\n")
