"""pandas: the questions of frames in memory. Keys of text with few values are categories, as its users have them."""
import atexit
import os

import numpy as np
import pandas as pd
import pyarrow

# The right table of each question about joins, its key, and the kind of join.
JOINS = {
    "q01": ("small", "id1", "inner"),
    "q02": ("medium", "id2", "inner"),
    "q03": ("medium", "id2", "left"),
    "q04": ("medium", "id5", "inner"),
    "q05": ("big", "id3", "inner"),
}
NUMBERS = ["id4", "id5", "id6", "v1", "v2", "v3"]
TEXTS = ["id1", "id2", "id3"]


def groups(x):
    by = lambda *keys: x.groupby(list(keys), sort=False, observed=True, as_index=False)

    def range_of(found):
        return found.assign(range_v1_v2=found.v1 - found.v2)[["id3", "range_v1_v2"]]

    def correlation():
        sums = x[["id2", "id4"]].assign(n=1.0, x=x.v1 * 1.0, y=x.v2 * 1.0)
        sums["xy"], sums["xx"], sums["yy"] = sums.x * sums.y, sums.x * sums.x, sums.y * sums.y
        s = sums.groupby(["id2", "id4"], sort=False, observed=True, as_index=False).sum()
        r2 = (s.n * s.xy - s.x * s.y) ** 2 / ((s.n * s.xx - s.x**2) * (s.n * s.yy - s.y**2))
        return s[["id2", "id4"]].assign(r2=r2)

    def largest():
        return x[["id6", "v3"]].sort_values("v3", ascending=False).groupby("id6", sort=False).head(2)

    every = ["id1", "id2", "id3", "id4", "id5", "id6"]
    return {
        "q01": lambda: by("id1").agg({"v1": "sum"}),
        "q02": lambda: by("id1", "id2").agg({"v1": "sum"}),
        "q03": lambda: by("id3").agg({"v1": "sum", "v3": "mean"}),
        "q04": lambda: by("id4").agg({"v1": "mean", "v2": "mean", "v3": "mean"}),
        "q05": lambda: by("id6").agg({"v1": "sum", "v2": "sum", "v3": "sum"}),
        "q06": lambda: by("id4", "id5").agg(median_v3=("v3", "median"), sd_v3=("v3", "std")),
        "q07": lambda: range_of(by("id3").agg({"v1": "max", "v2": "min"})),
        "q08": largest,
        "q09": correlation,
        "q10": lambda: by(*every).agg(v3=("v3", "sum"), rows=("v1", "size")),
    }


def read(table):
    found = {"rows": [len(table)]}
    found.update({name: [table[name].max()] for name in TEXTS})
    found.update({name: [table[name].sum()] for name in NUMBERS})
    return pd.DataFrame(found)


def questions(job, folder, threads):
    pyarrow.set_cpu_count(threads)
    if job == "csv":
        return {"read": lambda: read(pd.read_csv(f"{folder}/x.csv", engine="pyarrow"))}
    tables = {table: pd.read_parquet(f"{folder}/{table}") for table in os.listdir(folder)}
    x = tables["x"]
    if job == "sort":
        return {"sort": lambda: x.sort_values("k", ignore_index=True)}
    if job == "parquet":
        file = os.path.join(os.path.dirname(os.path.abspath(folder)), "pandas.parquet")
        atexit.register(lambda: os.path.exists(file) and os.remove(file))
        write = lambda: x.to_parquet(file, compression="zstd", compression_level=1, index=False)
        return {"write": write, "read": lambda: read(pd.read_parquet(file))}
    if job == "groupby":
        for key in TEXTS:
            x[key] = x[key].astype("category")
        return groups(x)
    merge = lambda right, key, kind: lambda: x.merge(tables[right], on=key, how=kind, suffixes=("", "_right"))
    return {name: merge(*asked) for name, asked in JOINS.items()}


def digest(answer):
    if answer is None:
        return None
    numbers = answer.select_dtypes("number").astype("float64")
    return [len(answer), float(np.nansum(numbers.to_numpy()))]
