"""Polars: lazy questions of frames in memory or of files."""
import atexit
import os

import polars as pl
import polars.selectors as cs

import polars_tpch

NUMBERS = ["id4", "id5", "id6", "v1", "v2", "v3"]
TEXTS = ["id1", "id2", "id3"]
# The right table of each question about joins, its key, and the kind of join.
JOINS = {
    "q01": ("small", "id1", "inner"),
    "q02": ("medium", "id2", "inner"),
    "q03": ("medium", "id2", "left"),
    "q04": ("medium", "id5", "inner"),
    "q05": ("big", "id3", "inner"),
}


def groups(x):
    c = pl.col
    return {
        "q01": x.group_by("id1").agg(c("v1").sum()),
        "q02": x.group_by("id1", "id2").agg(c("v1").sum()),
        "q03": x.group_by("id3").agg(c("v1").sum(), c("v3").mean()),
        "q04": x.group_by("id4").agg(c("v1", "v2", "v3").mean()),
        "q05": x.group_by("id6").agg(c("v1", "v2", "v3").sum()),
        "q06": x.group_by("id4", "id5").agg(c("v3").median().alias("median_v3"), c("v3").std().alias("sd_v3")),
        "q07": x.group_by("id3").agg((c("v1").max() - c("v2").min()).alias("range_v1_v2")),
        "q08": x.group_by("id6").agg(c("v3").top_k(2)).explode("v3"),
        "q09": x.group_by("id2", "id4").agg((pl.corr("v1", "v2") ** 2).alias("r2")),
        "q10": x.group_by("id1", "id2", "id3", "id4", "id5", "id6").agg(c("v3").sum(), pl.len().alias("rows")),
    }


def joins(tables):
    return {name: tables["x"].join(tables[right], on=key, how=kind) for name, (right, key, kind) in JOINS.items()}


def read(table):
    sums = [pl.col(name).cast(pl.Int64 if name != "v3" else pl.Float64).sum() for name in NUMBERS]
    return table.select(pl.len(), *[pl.col(name).max() for name in TEXTS], *sums)


def collected(question, **options):
    return lambda: question.collect(**options)


def one_row(question):
    """Depends on each value of the answer."""
    sums = cs.numeric().cast(pl.Float64).sum()
    counts = cs.all().count().name.suffix("_count")
    texts = [cs.string().min().name.suffix("_min"), cs.string().max().name.suffix("_max")]
    return question.select(pl.len().alias("answers"), counts, sums, *texts)


def of_files(job, folder):
    """Polars has no limit of memory; its streaming engine needs the least."""
    tables = {table: pl.scan_parquet(f"{folder}/{table}/*.parquet") for table in os.listdir(folder)}
    asked = groups(tables["x"]) if job == "groupby" else joins(tables)
    return {name: collected(one_row(question), engine="streaming") for name, question in asked.items()}


def questions(job, folder, threads, memory=None):
    if memory is not None:
        return of_files(job, folder)
    if job == "tpch":
        tables = {table: pl.scan_parquet(f"{folder}/{table}/*.parquet") for table in os.listdir(folder)}
        return {name: collected(question) for name, question in polars_tpch.questions(tables).items()}
    if job == "csv":
        return {"read": collected(read(pl.scan_csv(f"{folder}/x.csv")), engine="streaming")}
    tables = {table: pl.read_parquet(f"{folder}/{table}/*.parquet") for table in os.listdir(folder)}
    x = tables["x"]
    if job == "sort":
        return {"sort": lambda: x.sort("k")}
    if job == "parquet":
        file = os.path.join(os.path.dirname(os.path.abspath(folder)), "polars.parquet")
        atexit.register(lambda: os.path.exists(file) and os.remove(file))
        write = lambda: x.write_parquet(file, compression="zstd", compression_level=1)
        return {"write": write, "read": lambda: read(pl.scan_parquet(file)).collect()}
    if job == "groupby":
        return {name: collected(question) for name, question in groups(x.lazy()).items()}
    lazy = {name: table.lazy() for name, table in tables.items()}
    return {name: collected(question) for name, question in joins(lazy).items()}


def digest(answer):
    if answer is None:
        return None
    sums = answer.select(cs.numeric().cast(pl.Float64).sum()).fill_nan(0)
    return [answer.height, float(sum(value or 0.0 for value in sums.row(0))) if sums.width else 0.0]
