#!/usr/bin/env python3
"""The same jobs over tables on Tharsis, DataFusion, DuckDB, Polars, pandas and Dask, in one run, as one table of seconds.

    python3 -m venv .venv && .venv/bin/pip install -r benches/requirements-frames.txt
    cargo build --release -p tharsis-cli
    .venv/bin/python benches/compare_frames.py --data FOLDER [--on threads|embedded|workers] [--quick]
    .venv/bin/python benches/compare_frames.py --data FOLDER --jobs groupby,join --size 100000000 --memory 4GB --rounds 1

Each engine answers in a process of its own, one after the other, with a thread for each CPU; seconds are sums of the medians of
each question. Tharsis is measured by its own `tharsis bench --json`, which also makes the files that all engines read, and has
DataFusion alone as its floor. The others are in `benches/frames`, written as their users would. `peak` is the most memory that
an engine's processes had.

With `--memory`, the questions of `groupby` and `join` are asked of files, and an answer becomes one row that depends on each
value. DuckDB has the same limit; the others have none, and pandas and Dask are not asked.

Each engine reports a digest of each answer (rows, and the sum of all numbers), and answers that differ are told.
"""
import argparse
import json
import math
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["DuckDB", "Polars", "pandas", "Dask"]
# Bench of Tharsis, its flag for the size, full size and quick size, and the folder of its data by size.
JOBS = {
    "tpch": ("tpch", 10, 1, "tpch-{}"),
    "groupby": ("frame-groupby", 10**7, 10**6, "groupby-{}"),
    "join": ("frame-join", 10**7, 10**6, "join-{}"),
    "sort": ("frame-sort", 10**8, 10**7, "sort-{}"),
    "csv": ("frame-csv", 5, 1, "csv-{}"),
    "parquet": ("frame-parquet", 10**7, 10**6, "groupby-{}"),
}
# What is not written for these: 22 questions in the words of each.
NOT_ASKED = {("tpch", "pandas"), ("tpch", "Dask")}
# Jobs that `--memory` asks of files.
OF_FILES = {"groupby", "join"}
DIFFERENCE = 1e-6


def tharsis(job, size, arguments):
    program = os.environ.get("THARSIS", os.path.join(HERE, "..", "target", "release", "tharsis"))
    command = [program, "bench", JOBS[job][0], "--json", "--on", arguments.on, "--size", str(size), "--data", arguments.data]
    if job in OF_FILES:
        command += ["--rounds", str(arguments.rounds)]
    if arguments.memory:
        command += ["--memory", arguments.memory]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    measured = json.loads(output.strip().splitlines()[-1])
    seconds = {key[:-2]: value for key, value in measured["detail"].items() if key.endswith("_s") and key != "gb_per_s"}
    library = {key: seconds[key] / measured["detail"][key] for key in seconds}
    return {"seconds": seconds, "peak_mb": measured["detail"]["peak_mb"]}, {"seconds": library, "peak_mb": None}


def peer(engine, job, folder, arguments):
    command = [sys.executable, os.path.join(HERE, "frames", "run.py"), engine, job, folder, str(arguments.rounds)]
    if arguments.memory and job in OF_FILES:
        command.append(arguments.memory)
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        last = (ended.stderr.strip().splitlines() or [f"status {ended.returncode}"])[-1]
        print(f"{job} on {engine}: {last}", file=sys.stderr)
        return None
    return json.loads(ended.stdout.strip().splitlines()[-1])


def differences(job, results):
    """Questions whose answers are not those of the first engine that has digests."""
    told = []
    digests = [(engine, result["digests"]) for engine, result in results.items() if result and "digests" in result]
    for engine, digest in digests[1:]:
        for question in digest:
            (rows, total), (other_rows, other) = digest[question], digests[0][1][question]
            if rows != other_rows or not math.isclose(total, other, rel_tol=DIFFERENCE, abs_tol=DIFFERENCE):
                told.append(f"{job} {question}: {engine} has {rows} rows, {total}; {digests[0][0]} {other_rows}, {other}")
    return told


def machine():
    with open("/proc/cpuinfo") as info:
        model = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}, Python {platform.python_version()}"


def versions():
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in ["duckdb", "polars", "pandas", "dask", "pyarrow"])


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True, help="folder that keeps the files; what is there is not made again")
    parser.add_argument("--on", choices=["threads", "embedded", "workers"], default="threads")
    parser.add_argument("--jobs", default=",".join(JOBS), help="with commas between them")
    parser.add_argument("--engines", default=",".join(PEERS), help="peers, with commas between them")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--size", type=int, help="size of each job, in its unit")
    parser.add_argument("--memory", help="limit of Tharsis and DuckDB, such as 2GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", action="store_true", help="a row for each question as well")
    return parser.parse_args()


def cells(results, value):
    return "".join(f" {value(result) if result else '-':>12}" for result in results.values())


def told(job, size, results, questions):
    asked = set(results["Tharsis"]["seconds"])

    def total(result):
        mark = "" if asked <= set(result["seconds"]) else "*"
        return f"{sum(result['seconds'].values()):.2f}{mark}"

    others = [result for engine, result in results.items() if engine != "Tharsis" and result]
    best = min(sum(result["seconds"].values()) for result in others if asked <= set(result["seconds"]))
    ratio = sum(results["Tharsis"]["seconds"].values()) / best
    print(f"{job + ' ' + str(size):<20}{cells(results, total)} {ratio:>8.2f}")
    peak = cells(results, lambda result: f"{result['peak_mb']:.0f}" if result["peak_mb"] else "-")
    print(f"{'  peak, MB':<20}{peak}")
    for question in results["Tharsis"]["seconds"] if questions else []:
        one = lambda result: f"{result['seconds'][question]:.3f}" if question in result["seconds"] else "-"
        print(f"{'  ' + question:<20}{cells(results, one)}")


def main():
    arguments = parsed()
    engines = arguments.engines.split(",") if arguments.engines else []
    print(f"{machine()}; {versions()}; Tharsis --on {arguments.on}")
    names = ["Tharsis", "DataFusion", *engines]
    print("Seconds; * without the questions that an engine has no words for; the last column is Tharsis beside the best other one")
    print(f"{'job':<20}" + "".join(f" {name:>12}" for name in names) + f" {'of best':>8}")
    for job in arguments.jobs.split(","):
        _, full, quick, folder = JOBS[job]
        size = arguments.size or (quick if arguments.quick else full)
        ours, library = tharsis(job, size, arguments)
        folder = os.path.join(arguments.data, folder.format(size * 1000 if job == "csv" else size))
        results = {"Tharsis": ours, "DataFusion": library}
        for engine in engines:
            asked = (job, engine) not in NOT_ASKED
            if arguments.memory and job in OF_FILES:
                asked = asked and engine in ("DuckDB", "Polars")
            results[engine] = peer(engine, job, folder, arguments) if asked else None
        told(job, size, results, arguments.questions)
        for difference in differences(job, results):
            print(f"ANSWERS DIFFER: {difference}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
