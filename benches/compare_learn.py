#!/usr/bin/env python3
"""Fits of Tharsis and of scikit-learn on the same data, in one run, as one table.

    python3 -m venv .venv && .venv/bin/pip install -r benches/requirements-learn.txt
    .venv/bin/python benches/compare_learn.py [--rows N] [JOB..]

The data are made from a seed and written as `.npy` files, which `learn/benches/fits.rs` reads; both sides start their clocks
with the data in memory. Both use two threads. Each figure is the median of three runs. `ratio` is scikit-learn's wall time in
units of ours, `cpu` the same for processor seconds; `must` and `aim` are targets of the wall ratio. `quality` is a figure of the
model on each side: inertia, explained variance, score, sum of scales. The peer of the job `lightgbm` is LightGBM. `--rows` fits
this many rows, for small inputs.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = 2
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)

import numpy as np
from sklearn import metrics
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MinMaxScaler, StandardScaler

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
RUNS = 3


def blobs(rows, columns):
    rng = np.random.default_rng(1)
    centers = rng.uniform(-4, 4, (8, columns))
    x = centers[rng.integers(0, 8, rows)] + rng.normal(size=(rows, columns))
    return {"x": x, "centers": x[:8].copy()}


def decaying(rows, columns):
    rng = np.random.default_rng(2)
    return {"x": rng.normal(size=(rows, columns)) * 0.9 ** np.arange(columns) + 1}


def line(rows, columns):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(rows, columns)) + 1
    return {"x": x, "y": x @ rng.normal(size=columns) + rng.normal(size=rows)}


def two_classes(rows, columns):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(rows, columns))
    y = (x @ rng.normal(size=columns) * 0.3 + rng.logistic(size=rows) > 0).astype(np.int64)
    return {"x": x, "y": y}


def plain(rows, columns):
    return {"x": np.random.default_rng(5).normal(3, 2, (rows, columns))}


def labels(rows, _):
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, rows)
    return {"x": np.where(rng.random(rows) < 0.9, y, 1 - y), "y": y}


def scores(rows, _):
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, rows)
    return {"x": rng.normal(size=rows) + y, "y": y}


def pair(rows, _):
    rng = np.random.default_rng(8)
    y = rng.normal(size=rows)
    return {"x": y + rng.normal(size=rows), "y": y}


def explained(model, _):
    return model.explained_variance_ratio_.sum()


def score(model, d):
    return model.score(d["x"], d["y"])


def scale(model, _):
    return model.scale_.sum()


def itself(found, _):
    return found


def given_centers(d):
    return KMeans(8, init=d["centers"], n_init=1, max_iter=20, tol=0).fit(d["x"])


def split(d):
    return train_test_split(d["x"], random_state=0)


def forest(d):
    return RandomForestClassifier(20, random_state=0, n_jobs=THREADS).fit(d["x"], d["y"])


def boosting(d):
    return HistGradientBoostingClassifier(early_stopping=False).fit(d["x"], d["y"])


def lightgbm(d):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=THREADS, verbose=-1).fit(d["x"], d["y"])


# Jobs of ours by other names.
SAME = {"lightgbm": "boosting"}

# name: (data, rows, columns, job, quality, must, aim)
JOBS = {
    "kmeans-init": (blobs, 10**6, 16, given_centers, lambda m, _: m.inertia_, 2, 3),
    "kmeans": (blobs, 10**6, 16, lambda d: KMeans(8, random_state=0).fit(d["x"]), lambda m, _: m.inertia_, 2, 4),
    "mini-batch": (blobs, 10**6, 16, lambda d: MiniBatchKMeans(8, random_state=0).fit(d["x"]), lambda m, _: m.inertia_, 20, 100),
    "pca": (decaying, 10**6, 64, lambda d: PCA(10).fit(d["x"]), explained, 1.8, 3.5),
    "truncated-svd": (decaying, 10**6, 64, lambda d: TruncatedSVD(10).fit(d["x"]), explained, 8, 30),
    "linear": (line, 10**6, 64, lambda d: LinearRegression().fit(d["x"], d["y"]), score, 25, 35),
    "ridge": (line, 10**6, 64, lambda d: Ridge().fit(d["x"], d["y"]), score, 3, 5),
    "lasso": (line, 10**6, 64, lambda d: Lasso(0.1).fit(d["x"], d["y"]), score, 8, 12),
    "logistic": (two_classes, 10**6, 32, lambda d: LogisticRegression().fit(d["x"], d["y"]), score, 2, 3.5),
    "gaussian-nb": (two_classes, 10**6, 32, lambda d: GaussianNB().fit(d["x"], d["y"]), score, None, None),
    "forest": (two_classes, 10**5, 16, forest, score, None, None),
    "boosting": (two_classes, 3 * 10**5, 32, boosting, score, None, None),
    "lightgbm": (two_classes, 3 * 10**5, 32, lightgbm, score, None, None),
    "scaler-fit": (plain, 10**7, 8, lambda d: StandardScaler().fit(d["x"]), scale, 8, 15),
    "scaler-transform": (
        plain,
        10**7,
        8,
        lambda d: StandardScaler().fit(d["x"]).transform(d["x"]),
        lambda x, _: np.square(x).sum(),
        None,
        None,
    ),
    "min-max-fit": (plain, 10**7, 8, lambda d: MinMaxScaler().fit(d["x"]), scale, 5, 8),
    "split": (plain, 10**7, 8, split, lambda s, _: len(s[1]) / len(s[0]), 2, 6),
    "accuracy": (labels, 10**7, 1, lambda d: metrics.accuracy_score(d["y"], d["x"]), itself, 10, 25),
    "mse": (pair, 10**7, 1, lambda d: metrics.mean_squared_error(d["y"], d["x"]), itself, 2, 4),
    "roc-auc": (scores, 10**7, 1, lambda d: metrics.roc_auc_score(d["y"], d["x"]), itself, 10, 20),
}


def theirs(job, quality, data):
    wall, cpu = [], []
    for _ in range(RUNS):
        started, spent = time.perf_counter(), time.process_time()
        found = job(data)
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - spent)
    return {"seconds": statistics.median(wall), "cpu": statistics.median(cpu), "quality": float(quality(found, data))}


def ours(program, folder, name):
    run = subprocess.run([program, folder, name], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def built():
    """The program of `learn/benches/fits.rs`, built by cargo."""
    command = ["cargo", "bench", "-p", "tharsis-learn", "--bench", "fits", "--no-run", "--message-format", "json"]
    run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    made = (json.loads(line) for line in run.stdout.splitlines())
    return next(m["executable"] for m in made if m.get("target", {}).get("name") == "fits" and m.get("executable"))


def machine():
    with open("/proc/cpuinfo") as info:
        model = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}"


def target(value):
    return "" if value is None else f"{value:g}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int)
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    options = parser.parse_args()
    unknown = set(options.jobs) - set(JOBS)
    if unknown:
        sys.exit(f"no such job: {', '.join(sorted(unknown))}; there are {', '.join(JOBS)}")
    program = os.environ.get("FITS") or built()
    print(f"{machine()}; Python {platform.python_version()}; medians of {RUNS} runs")
    print(f"{'job':<17} {'size':>13} {'ours s':>9} {'sklearn s':>9} {'ratio':>6} {'cpu':>6} {'must':>5} {'aim':>4}  quality")
    for name in options.jobs or JOBS:
        make, rows, columns, job, quality, must, aim = JOBS[name]
        data = make(options.rows or rows, columns)
        with tempfile.TemporaryDirectory() as folder:
            for key, values in data.items():
                np.save(os.path.join(folder, f"{key}.npy"), values)
            us = ours(program, folder, SAME.get(name, name))
        them = theirs(job, quality, data)
        size = f"{options.rows or rows} x {columns}"
        ratio, cpu = them["seconds"] / us["seconds"], them["cpu"] / max(us["cpu"], 0.01)
        print(
            f"{name:<17} {size:>13} {us['seconds']:>9.4f} {them['seconds']:>9.4f} {ratio:>6.2f} {cpu:>6.2f}"
            f" {target(must):>5} {target(aim):>4}  {us['quality']:.6g} / {them['quality']:.6g}"
        )


if __name__ == "__main__":
    main()
