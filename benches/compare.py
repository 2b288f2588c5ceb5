#!/usr/bin/env python3
"""The same small jobs on Tharsis and on Ray, in one run, as one table.

    python3 -m venv .venv && .venv/bin/pip install -r benches/requirements.txt
    cargo build --release -p tharsis-cli
    .venv/bin/python benches/compare.py

Tharsis is measured by its own `tharsis bench --json`; Ray by the functions below, which do the same work in the same
way: two workers, the same number of calls at once, the same bytes. What takes Ray too long is done in a smaller
number and given as a rate: actors, and the tasks of the graph. `--only NAME,...` measures some rows.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import time

# Name of the row, bench of Tharsis, key of its detail (None: the figure itself), unit.
ROWS = [
    ("task-latency", "task-latency", None, "us"),
    ("task-throughput", "task-throughput", None, "tasks/s"),
    ("object-small", "object-small", None, "us"),
    ("object-large", "object-large", None, "GB/s"),
    ("actor-latency", "actor-latency", None, "us"),
    ("actor-throughput", "actor-throughput", None, "calls/s"),
    ("actor n:n", "actor-throughput", "n_to_n", "calls/s"),
    ("actor-create", "actor-create", "own_per_s", "actors/s"),
    ("wait", "wait", None, "ms"),
    ("stream 100 B", "stream", None, "items/s"),
    ("stream 1 MB", "stream", "large_gb_s", "GB/s"),
    ("pg", "pg", "at_once_per_s", "groups/s"),
    ("graph", "graph", None, "tasks/s"),
]
SMALLER_IS_BETTER = {"us", "ms"}


def tharsis(bench):
    program = os.path.join(os.path.dirname(__file__), "..", "target", "release", "tharsis")
    out = subprocess.run([program, "bench", bench, "--json"], check=True, capture_output=True, text=True).stdout
    figure = json.loads(out.strip().splitlines()[-1])
    figures = {None: figure["value"], **figure["detail"]}
    if bench == "actor-create":
        figures["own_per_s"] = figures["actors"] / figure["value"]
    return figures


def median_of(rounds, rate):
    return statistics.median([rate() for _ in range(rounds + 1)][1:])


def median_us(body, rounds):
    samples = []
    for _ in range(rounds + rounds // 10):
        start = time.perf_counter()
        body()
        samples.append((time.perf_counter() - start) * 1e6)
    return statistics.median(samples[rounds // 10:])


def per_second(count, body):
    start = time.perf_counter()
    body()
    return count / (time.perf_counter() - start)


class Ray:
    """The jobs of each row. A method has the name of its row with underscores."""

    def __init__(self):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import numpy
        import ray

        self.ray, self.numpy, self.version = ray, numpy, ray.__version__
        ray.init(num_cpus=2, object_store_memory=3 * 10**9, include_dashboard=False, logging_level="ERROR", log_to_driver=False)

        @ray.remote
        def noop(*_):
            return None

        @ray.remote(num_cpus=0)
        class Count:
            def __init__(self):
                self.calls = 0

            def next(self):
                self.calls += 1
                return self.calls

        @ray.remote
        def call_often(count, calls):
            return ray.get([count.next.remote() for _ in range(calls)])[-1]

        @ray.remote(num_returns="streaming", num_cpus=0)
        def items(count, size):
            item = b"\7" * size
            for _ in range(count):
                yield item

        self.noop, self.count, self.call_often, self.items = noop, Count, call_often, items

    def measure(self, row):
        return getattr(self, row.translate(str.maketrans("- :", "___")))()

    def task_latency(self):
        return median_us(lambda: self.ray.get(self.noop.remote()), 1000)

    def task_throughput(self):
        tasks = 10_000
        return median_of(3, lambda: per_second(tasks, lambda: self.ray.get([self.noop.remote() for _ in range(tasks)])))

    def object_small(self):
        small = b"x" * 1000
        return median_us(lambda: self.ray.put(small), 1000)

    def object_large(self):
        large = self.numpy.full(10**9, 7, dtype=self.numpy.uint8)

        def rate():
            start = time.perf_counter()
            reference = self.ray.put(large)
            seconds = time.perf_counter() - start
            del reference
            time.sleep(0.5)
            return 1.0 / seconds

        return median_of(3, rate)

    def actor_latency(self):
        count = self.count.remote()
        return median_us(lambda: self.ray.get(count.next.remote()), 1000)

    def actor_throughput(self):
        count, calls = self.count.remote(), 10_000
        return median_of(3, lambda: per_second(calls, lambda: self.ray.get([count.next.remote() for _ in range(calls)])))

    def actor_n_n(self):
        counts, calls = [self.count.remote() for _ in range(2)], 5_000
        run = lambda: self.ray.get([self.call_often.remote(count, calls) for count in counts])
        return median_of(3, lambda: per_second(2 * calls, run))

    def actor_create(self):
        actors = 50
        run = lambda: self.ray.get([count.next.remote() for count in [self.count.remote() for _ in range(actors)]])
        return per_second(actors, run)

    def wait(self):
        def run():
            start, left = time.perf_counter(), [self.noop.remote() for _ in range(1000)]
            while left:
                _, left = self.ray.wait(left)
            return (time.perf_counter() - start) * 1e3

        return median_of(3, run)

    def stream(self, count, size):
        def run():
            stream = self.items.remote(count + 1, size)
            self.ray.get(next(stream))
            return per_second(count, lambda: [len(self.ray.get(item)) for item in stream])

        return median_of(3, run)

    def stream_100_B(self):
        return self.stream(2_000, 100)

    def stream_1_MB(self):
        return self.stream(200, 1_000_000) / 1e3

    def pg(self):
        from ray.util import placement_group, remove_placement_group

        def run():
            groups = [placement_group([{"CPU": 0.01}, {"CPU": 0.01}]) for _ in range(100)]
            for group in groups:
                group.wait(30)
            for group in groups:
                remove_placement_group(group)

        return median_of(3, lambda: per_second(100, run))

    def graph(self):
        import random

        layers, width = 20, 500

        def run():
            draws = random.Random(1)
            layer = [self.noop.remote() for _ in range(width)]
            for _ in range(1, layers):
                layer = [self.noop.remote(draws.choice(layer), draws.choice(layer)) for _ in range(width)]
            self.ray.get(self.noop.remote(*layer))

        return median_of(3, lambda: per_second(layers * width, run))


def machine():
    with open("/proc/cpuinfo") as info:
        model = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="names of rows, with commas between them")
    only = parser.parse_args().only
    rows = [row for row in ROWS if only is None or row[0] in only.split(",")]
    ours = {bench: tharsis(bench) for bench in dict.fromkeys(row[1] for row in rows)}
    ray = Ray()
    print(f"{machine()}; Ray {ray.version}; Python {platform.python_version()}")
    print(f"{'bench':<18} {'unit':<9} {'Tharsis':>14} {'Ray':>14} {'times better':>13}")
    for name, bench, key, unit in rows:
        mine, theirs = ours[bench][key], ray.measure(name)
        better = theirs / mine if unit in SMALLER_IS_BETTER else mine / theirs
        print(f"{name:<18} {unit:<9} {mine:>14.2f} {theirs:>14.2f} {better:>13.1f}", flush=True)
    ray.ray.shutdown()


if __name__ == "__main__":
    main()
