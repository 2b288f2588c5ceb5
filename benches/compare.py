#!/usr/bin/env python3
"""The same small jobs on Tharsis and on Ray, in one run, as one table.

    python3 -m venv .venv && .venv/bin/pip install -r benches/requirements.txt
    cargo build --release -p tharsis-cli
    .venv/bin/python benches/compare.py

Tharsis is measured by its own `tharsis bench --json`; Ray by the loops below, which do the same work in the same way:
two workers, a closed loop of no-ops, many no-ops at once, a put of 1 KB, a put of 1 GB into warm memory.
"""
import json
import os
import platform
import statistics
import subprocess
import time

BENCHES = ["task-latency", "task-throughput", "object-small", "object-large"]
UNITS = {"task-latency": "us", "task-throughput": "tasks/s", "object-small": "us", "object-large": "GB/s"}


def tharsis(name):
    program = os.path.join(os.path.dirname(__file__), "..", "target", "release", "tharsis")
    out = subprocess.run([program, "bench", name, "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])["value"]


def ray_figures():
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import numpy as np
    import ray

    ray.init(num_cpus=2, object_store_memory=3 * 10**9, include_dashboard=False, logging_level="ERROR")

    @ray.remote
    def noop():
        return None

    def median_us(body, rounds):
        for _ in range(rounds // 10):
            body()
        samples = []
        for _ in range(rounds):
            start = time.perf_counter()
            body()
            samples.append((time.perf_counter() - start) * 1e6)
        return statistics.median(samples)

    figures = {"task-latency": median_us(lambda: ray.get(noop.remote()), 1000)}
    rates = []
    for _ in range(3):
        start = time.perf_counter()
        ray.get([noop.remote() for _ in range(10_000)])
        rates.append(10_000 / (time.perf_counter() - start))
    figures["task-throughput"] = statistics.median(rates)
    small = b"x" * 1000
    figures["object-small"] = median_us(lambda: ray.put(small), 1000)
    large = np.full(10**9, 7, dtype=np.uint8)
    rates = []
    for _ in range(4):
        start = time.perf_counter()
        ref = ray.put(large)
        rates.append(1.0 / (time.perf_counter() - start))
        del ref
        time.sleep(0.5)
    figures["object-large"] = statistics.median(rates[1:])
    version = ray.__version__
    ray.shutdown()
    return version, figures


def machine():
    with open("/proc/cpuinfo") as info:
        model = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}"


def main():
    ours = {name: tharsis(name) for name in BENCHES}
    version, theirs = ray_figures()
    print(f"{machine()}; Ray {version}; Python {platform.python_version()}")
    print(f"{'bench':<18} {'unit':<8} {'Tharsis':>14} {'Ray':>14} {'times better':>13}")
    for name in BENCHES:
        smaller_is_better = UNITS[name] == "us"
        better = theirs[name] / ours[name] if smaller_is_better else ours[name] / theirs[name]
        print(f"{name:<18} {UNITS[name]:<8} {ours[name]:>14.2f} {theirs[name]:>14.2f} {better:>13.1f}")


if __name__ == "__main__":
    main()
