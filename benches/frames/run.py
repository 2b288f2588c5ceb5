"""Runs a job on one engine: `run.py ENGINE JOB FOLDER ROUNDS [MEMORY]`. Prints median seconds and a digest of each question, and the peak of
memory, as one line of JSON. `benches/compare_frames.py` starts it."""
import importlib
import json
import os
import statistics
import sys
import time

THREADS = os.cpu_count()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"):
    os.environ[variable] = str(THREADS)

MODULES = {"DuckDB": "on_duckdb", "Polars": "on_polars", "pandas": "on_pandas", "Dask": "on_dask"}


def peak_mb():
    with open("/proc/self/status") as status:
        kib = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
    return int(kib) * 1024 / 1e6


def main():
    engine, job, folder, rounds, *memory = sys.argv[1:]
    module = importlib.import_module(MODULES[engine])
    seconds, digests = {}, {}
    for question, answer in module.questions(job, folder, THREADS, *memory).items():
        samples = []
        for _ in range(int(rounds)):
            start = time.perf_counter()
            found = answer()
            samples.append(time.perf_counter() - start)
        seconds[question] = statistics.median(samples)
        digest = module.digest(found)
        if digest is not None:
            digests[question] = digest
        del found
    print(json.dumps({"seconds": seconds, "digests": digests, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
