"""Dask: the questions of frames that are persisted in memory, on threads."""
import atexit
import os
import shutil

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from on_pandas import JOINS, NUMBERS, TEXTS


def groups(x):
    by = lambda *keys: x.groupby(list(keys), sort=False)

    def correlation():
        sums = x[["id2", "id4", "v1", "v2"]].assign(n=1.0, xy=x.v1 * x.v2, xx=x.v1 * x.v1, yy=x.v2 * x.v2)
        s = sums.groupby(["id2", "id4"], sort=False).sum().compute()
        r2 = (s.n * s.xy - s.v1 * s.v2) ** 2 / ((s.n * s.xx - s.v1**2) * (s.n * s.yy - s.v2**2))
        return r2.rename("r2").reset_index()

    def range_of():
        found = by("id3").agg({"v1": "max", "v2": "min"}).compute()
        return (found.v1 - found.v2).rename("range_v1_v2").reset_index()

    every = ["id1", "id2", "id3", "id4", "id5", "id6"]
    plain = lambda found: lambda: found.compute().reset_index()

    def middle():
        groups = by("id4", "id5").v3
        median, deviation = dask.compute(groups.median(), groups.std())
        return pd.DataFrame({"median_v3": median, "sd_v3": deviation}).reset_index()

    # The largest rows of each group (q08) would be a function of pandas over each of them.
    return {
        "q01": plain(by("id1").agg({"v1": "sum"})),
        "q02": plain(by("id1", "id2").agg({"v1": "sum"})),
        "q03": plain(by("id3").agg({"v1": "sum", "v3": "mean"})),
        "q04": plain(by("id4").agg({"v1": "mean", "v2": "mean", "v3": "mean"})),
        "q05": plain(by("id6").agg({"v1": "sum", "v2": "sum", "v3": "sum"})),
        "q06": middle,
        "q07": range_of,
        "q09": correlation,
        "q10": plain(by(*every).agg({"v3": "sum", "v1": "count"})),
    }


def read(table):
    found = [table.shape[0], *[table[name].max() for name in TEXTS], *[table[name].sum() for name in NUMBERS]]
    return pd.DataFrame([dask.compute(*found)], columns=["rows", *TEXTS, *NUMBERS])


def questions(job, folder, threads):
    dask.config.set(scheduler="threads", num_workers=threads)
    if job == "csv":
        return {"read": lambda: read(dd.read_csv(f"{folder}/x.csv"))}
    tables = {table: dd.read_parquet(f"{folder}/{table}").persist() for table in os.listdir(folder)}
    x = tables["x"]
    if job == "sort":
        return {"sort": lambda: x.sort_values("k").compute()}
    if job == "parquet":
        target = os.path.join(os.path.dirname(os.path.abspath(folder)), "dask.parquet")
        atexit.register(lambda: shutil.rmtree(target, ignore_errors=True))
        write = lambda: x.to_parquet(target, compression="zstd", write_index=False, overwrite=True)
        return {"write": write, "read": lambda: read(dd.read_parquet(target))}
    if job == "groupby":
        return groups(x)
    merge = lambda right, key, kind: lambda: x.merge(tables[right], on=key, how=kind, suffixes=("", "_right")).compute()
    return {name: merge(*asked) for name, asked in JOINS.items()}


def digest(answer):
    if answer is None:
        return None
    numbers = answer.select_dtypes("number").astype("float64")
    return [len(answer), float(np.nansum(numbers.to_numpy()))]
