#!/usr/bin/env python3
"""The headline tensor jobs on Tharsis, NumPy, numexpr and Dask, in one run, as one table of seconds.

    python3 -m venv .venv && .venv/bin/pip install -r benches/requirements-tensors.txt
    cargo build --release -p tharsis-cli
    .venv/bin/python benches/compare_tensors.py [--on threads|embedded|workers]

Tharsis is measured by its own `tharsis bench --json`; the others by the functions below, written as their tutorials have
it. All use two threads (NumPy where its library does), sizes that the slowest ends in some seconds, the better of two runs.
"""
import argparse
import json
import os
import platform
import subprocess
import time

THREADS = 2
SIZES = {"pi": 10**8, "axpb": 10**8, "gemm-std": 3000, "svd": 10**6}
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[variable] = str(THREADS)


def tharsis(name, on):
    program = os.path.join(os.path.dirname(__file__), "..", "target", "release", "tharsis")
    program = os.environ.get("THARSIS", program)
    command = [program, "bench", name, "--json", "--on", on, "--size", str(SIZES[name])]
    measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if name == "gemm-std":
        return 2 * SIZES[name] ** 3 / measured["value"] / 1e9
    return measured["detail"]["seconds"]


def numpy_jobs():
    import numpy as np

    def pi(n):
        x = np.random.default_rng(1).random((n, 2))
        return np.count_nonzero(np.sqrt((x * x).sum(axis=1)) < 1)

    def axpb(n):
        return ((np.random.default_rng(1).random(n) + 1) * 2).sum()

    def gemm_std(n):
        a = np.random.default_rng(1).random((n, n))
        return (a.dot(a.T) - a).std()

    def svd(n):
        x = np.random.default_rng(1).random((n, 32))
        u, s, vt = np.linalg.svd(x, full_matrices=False)
        return abs((u * s) @ vt - x).max()

    return {"pi": pi, "axpb": axpb, "gemm-std": gemm_std, "svd": svd}


def numexpr_jobs():
    import numexpr as ne
    import numpy as np

    def pi(n):
        x, y = np.random.default_rng(1).random((2, n))
        return np.count_nonzero(ne.evaluate("sqrt(x * x + y * y) < 1"))

    def axpb(n):
        x = np.random.default_rng(1).random(n)
        return ne.evaluate("sum((x + 1) * 2)")

    return {"pi": pi, "axpb": axpb}


def dask_jobs():
    import dask
    import dask.array as da

    dask.config.set(scheduler="threads", num_workers=THREADS)

    def random(*shape, chunks):
        return da.random.default_rng(1).random(shape, chunks=chunks)

    def pi(n):
        x = random(n, 2, chunks=(10**6, 2))
        return (da.sqrt((x * x).sum(axis=1)) < 1).sum().compute()

    def axpb(n):
        return ((random(n, chunks=10**6) + 1) * 2).sum().compute()

    def gemm_std(n):
        a = random(n, n, chunks=(1000, 1000))
        return (a.dot(a.T) - a).std().compute()

    def svd(n):
        x = random(n, 32, chunks=(10**5, 32))
        u, s, vt = da.linalg.svd(x)
        return abs((u * s) @ vt - x).max().compute()

    return {"pi": pi, "axpb": axpb, "gemm-std": gemm_std, "svd": svd}


def seconds(job, size):
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        job(size)
        best = min(best, time.perf_counter() - start)
    return best


def machine():
    with open("/proc/cpuinfo") as info:
        model = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--on", choices=["threads", "embedded", "workers"], default="embedded")
    on = parser.parse_args().on
    peers = {"NumPy": numpy_jobs(), "numexpr": numexpr_jobs(), "Dask": dask_jobs()}
    print(f"{machine()}; Python {platform.python_version()}; Tharsis --on {on}")
    print(f"{'job':<10} {'size':>10} {'Tharsis':>9}" + "".join(f" {peer:>9} {'ratio':>6}" for peer in peers))
    for name, size in SIZES.items():
        ours = tharsis(name, on)
        row = f"{name:<10} {size:>10} {ours:>9.3f}"
        for jobs in peers.values():
            theirs = seconds(jobs[name], size) if name in jobs else None
            row += f" {theirs:>9.3f} {theirs / ours:>6.1f}" if theirs else f" {'-':>9} {'-':>6}"
        print(row)


if __name__ == "__main__":
    main()
