"""DuckDB: the questions in SQL, of tables in memory or of files; answers stay in tables."""
import atexit
import glob
import os

import duckdb

QUERIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cli", "src", "bench")
# Of all columns of the table of groups, so that each value is read.
READ = """select count(*), max(id1), max(id2), max(id3), sum(id4), sum(id5), sum(id6), sum(v1), sum(v2), sum(v3) from {}"""
connection = duckdb.connect()


def sql(path):
    with open(os.path.join(QUERIES, path)) as file:
        return file.read()


def numbered(pattern):
    paths = sorted(glob.glob(os.path.join(QUERIES, pattern)))
    return {os.path.basename(path)[-7:-4]: sql(path) for path in paths}


def load(folder):
    for table in os.listdir(folder):
        connection.execute(f"create table {table} as select * from read_parquet('{folder}/{table}/*.parquet')")


def views(folder):
    for table in os.listdir(folder):
        connection.execute(f"create view {table} as select * from read_parquet('{folder}/{table}/*.parquet')")


def kept(query):
    def answer():
        connection.execute("drop table if exists answer")
        connection.execute(f"create table answer as {query}")
        return "answer"

    return answer


def fetched(query):
    return lambda: connection.execute(query).fetchall()


def one_row(query):
    """Depends on each value of the answer."""
    columns = ["count(*)"]
    for name, kind, *_ in connection.execute(f"describe {query}").fetchall():
        of = f'min("{name}"), max("{name}")' if kind == "VARCHAR" else f'sum("{name}"::double)'
        columns.append(f'count("{name}"), {of}')
    return f"select {', '.join(columns)} from ({query})"


def of_files(job, folder, memory):
    connection.execute(f"set memory_limit = '{memory}'")
    connection.execute(f"set temp_directory = '{os.path.dirname(os.path.abspath(folder))}/duckdb'")
    views(folder)
    return {name: fetched(one_row(query)) for name, query in numbered(f"frames/queries/{job}_q*.sql").items()}


def questions(job, folder, threads, memory=None):
    connection.execute(f"set threads = {threads}")
    if memory is not None:
        return of_files(job, folder, memory)
    if job == "tpch":
        views(folder)
        return {name: fetched(query) for name, query in numbered("tpch/queries/q*.sql").items()}
    if job == "csv":
        return {"read": fetched(READ.format(f"read_csv('{folder}/x.csv')"))}
    load(folder)
    if job == "sort":
        return {"sort": kept("select * from x order by k")}
    if job == "parquet":
        file = os.path.join(os.path.dirname(os.path.abspath(folder)), "duckdb.parquet")
        write = f"copy x to '{file}' (format parquet, compression zstd, compression_level 1)"
        atexit.register(lambda: os.path.exists(file) and os.remove(file))
        read = fetched(READ.format(f"read_parquet('{file}')"))
        return {"write": lambda: connection.execute(write) and None, "read": read}
    return {name: kept(query) for name, query in numbered(f"frames/queries/{job}_q*.sql").items()}


def digest(answer):
    if answer is None:
        return None
    if answer == "answer":
        columns = connection.execute("select name, type from pragma_table_info('answer')").fetchall()
        numbers = [name for name, kind in columns if kind not in ("VARCHAR", "BOOLEAN", "DATE")]
        total = " + ".join(f'coalesce(sum("{name}"::double), 0)' for name in numbers) or "0"
        rows, total = connection.execute(f"select count(*), {total} from answer").fetchone()
        return [rows, float(total)]
    total = 0.0
    for row in answer:
        total += sum(float(value) for value in row if not isinstance(value, (str, bool)) and hasattr(value, "__float__"))
    return [len(answer), total]
