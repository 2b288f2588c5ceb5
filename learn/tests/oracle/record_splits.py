"""Records scikit-learn's splits for those of tharsis-learn that do not depend on random numbers.

    pip install scikit-learn==1.9.1
    python learn/tests/oracle/record_splits.py > learn/tests/oracle/splits.json

Each case is [splitter, parameters, labels or the number of rows, splits]. A split is [train, test] in
positions; the splits of refused parameters are null.
"""

import json
import sys
import warnings

import numpy as np
import sklearn
from sklearn import model_selection

warnings.simplefilter("ignore")
CASES = []


def record(name, rows, **parameters):
    splitter = getattr(model_selection, name)(**parameters) if name == "LeaveOneOut" else None
    try:
        splitter = splitter or getattr(model_selection, name)(**parameters)
        x = np.zeros((rows if isinstance(rows, int) else len(rows), 1))
        labels = None if isinstance(rows, int) else np.asarray(rows)
        given = splitter.split(x, labels, labels)
        splits = [[train.tolist(), test.tolist()] for train, test in given]
    except ValueError:
        splits = None
    rows = rows if isinstance(rows, int) else np.asarray(rows).tolist()
    CASES.append(json.dumps([name, parameters, rows, splits], separators=(",", ":")))


for rows, n_splits in [(2, 2), (5, 2), (10, 3), (11, 5), (4, 5), (3, 1)]:
    record("KFold", rows, n_splits=n_splits)
for rows in (1, 2, 5):
    record("LeaveOneOut", rows)
for rows, parameters in [
    (6, {}),
    (12, {"n_splits": 3}),
    (12, {"n_splits": 3, "test_size": 2}),
    (12, {"n_splits": 3, "test_size": 2, "gap": 2}),
    (12, {"n_splits": 3, "max_train_size": 4}),
    (15, {"n_splits": 2, "max_train_size": 3, "gap": 1}),
    (12, {"n_splits": 3, "test_size": 4}),
    (4, {"n_splits": 5}),
]:
    record("TimeSeriesSplit", rows, **parameters)
rng = np.random.default_rng(23)
for labels, n_splits in [
    ([0, 0, 1, 1], 2),
    ([1, 1, 0, 0, 1, 0, 1], 2),
    ([5, -3, 5, 5, -3, 9, 9, 5, -3], 3),
    ([0, 0, 1, 1], 3),
    (rng.integers(0, 3, 23), 4),
    (rng.integers(0, 4, 40), 5),
    (np.sort(rng.integers(0, 3, 31))[::-1], 5),
]:
    record("StratifiedKFold", labels, n_splits=n_splits)
for groups, n_splits in [
    ([0, 0, 2, 2, 3, 3], 2),
    ([7, 7, 7, 1, 2, 2, -5], 3),
    ([1, 2, 3, 4, 5, 6], 3),
    ([1, 1, 1], 2),
    (rng.integers(0, 9, 40), 4),
]:
    record("GroupKFold", groups, n_splits=n_splits)
sys.stdout.write('{"scikit-learn": "%s", "cases": [\n' % sklearn.__version__)
sys.stdout.write(",\n".join(CASES))
sys.stdout.write("\n]}\n")
