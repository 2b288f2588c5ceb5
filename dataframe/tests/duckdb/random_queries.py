"""Runs random queries beside DuckDB, and prints where the `sql` step of `tharsis eval` gives other rows.

    python random_queries.py target/release/tharsis --count 10000 --seed 7 --only 'exists' --show 3

Needs the package duckdb. Each query runs with several numbers of workers and of rows in a part, which must not change
its rows. Counted are equal rows (`same`), both refused (`refused`), other rows (`differ`), errors where DuckDB has rows
(`failed`), and what is not implemented (`missing`). Queries worth keeping go into `tests/sqllogic/cases`.
"""

import argparse
import collections
import json
import math
import random
import re
import subprocess

import duckdb

TYPES = {"int64": "BIGINT", "float64": "DOUBLE", "str": "VARCHAR", "bool": "BOOLEAN"}
COLUMNS = {"i": "int64", "a": "int64", "b": "int64", "f": "float64", "s": "str", "p": "bool"}
TEXTS = ("x", "y", "xy", "", "Z", "x%")
PLACES = [(1, 100), (2, 3), (3, 1), (8, 2)]


class Source:
    """Random tables and queries over them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, part):
        return self.random.random() < part

    def table(self):
        """Rows with a key `i`, and values of which some are missing."""
        rows = self.pick(0, 1, 3, 5, 8, 12)
        makes = {
            "i": None,
            "a": lambda: self.random.randint(0, 4),
            "b": lambda: self.random.randint(-3, 3),
            "f": lambda: self.pick(0.5, 1.5, -2.25, 0.0, 3.0),
            "s": lambda: self.pick(*TEXTS),
            "p": lambda: self.chance(0.5),
        }
        lacking = self.pick(0, 0.2, 0.5)
        columns = []
        for name, make in makes.items():
            if make is None:
                columns.append(list(range(rows)))
            else:
                columns.append([None if self.chance(lacking) else make() for _ in range(rows)])
        return columns

    # Expressions. `scope` has the names of tables whose columns may stand in them.

    def column(self, scope, *names):
        return f"{self.pick(*scope)}.{self.pick(*names)}"

    def number(self, scope, depth=2):
        """A whole number."""
        chosen = self.random.randint(0, 11) if depth else self.random.randint(0, 3)
        if chosen < 3:
            return self.column(scope, "a", "b", "a", "b", "i")
        if chosen == 3:
            return str(self.random.randint(-2, 5))

        def deeper():
            return self.number(scope, depth - 1)

        return [
            lambda: f"({deeper()} {self.pick('+', '-', '*')} {deeper()})",
            lambda: f"coalesce({deeper()}, {deeper()})",
            lambda: f"nullif({deeper()}, {deeper()})",
            lambda: f"abs({deeper()})",
            lambda: f"(case when {self.condition(scope, depth - 1)} then {deeper()} else {deeper()} end)",
            lambda: f"(case {deeper()} when {deeper()} then {deeper()} end)",
            lambda: self.scalar(scope),
            lambda: f"length({self.text(scope, depth - 1)})",
        ][chosen - 4]()

    def text(self, scope, depth=1):
        chosen = self.random.randint(0, 5) if depth else self.random.randint(0, 2)
        if chosen < 2:
            return self.column(scope, "s")
        if chosen == 2:
            return f"'{self.pick(*TEXTS)}'"

        def deeper():
            return self.text(scope, depth - 1)

        return self.pick(f"upper({deeper()})", f"({deeper()} || {deeper()})", f"coalesce({deeper()}, 'n')")

    def name(self):
        self.names += 1
        return f"q{self.names}"

    def correlated(self, scope, name):
        """A condition of a subquery on a row around it."""
        return f"{name}.{self.pick('a', 'b')} = {self.column(scope, 'a', 'b')}"

    def scalar(self, scope):
        """A subquery of one value."""
        name = self.name()
        made = self.pick("max({0}.a)", "min({0}.b)", "count(*)", "sum({0}.a)", "count({0}.b)").format(name)
        where = self.correlated(scope, name) if self.chance(0.5) else self.condition([name], 0)
        return f"(select {made} from {self.pick('t', 'u')} {name} where {where})"

    def rows(self, scope, depth):
        """A subquery of one column of numbers."""
        name = self.name()
        value = self.number([name], min(depth, 1)) if self.chance(0.4) else f"{name}.{self.pick('a', 'b')}"
        where = "" if self.chance(0.3) else f" where {self.condition([name], max(depth - 1, 0))}"
        if where and self.chance(0.25):
            where += f" and {self.correlated(scope, name)}"
        return f"(select {value} from {self.pick('t', 'u')} {name}{where})"

    def exists(self, scope, depth):
        name = self.name()
        where = self.correlated(scope, name)
        if self.chance(0.4):
            where += f" and {self.condition([name], max(depth - 1, 0))}"
        return f"exists (select 1 from {self.pick('t', 'u')} {name} where {where})"

    def condition(self, scope, depth=2):
        chosen = self.random.randint(0, 12) if depth else self.random.randint(0, 4)

        def number():
            return self.number(scope, max(depth - 1, 0))

        if chosen == 0:
            return f"{number()} {self.pick('=', '<>', '<', '<=', '>', '>=')} {number()}"
        if chosen == 1:
            return f"{self.column(scope, 'a', 'b', 'f', 's', 'p')} is {self.pick('', 'not ')}null"
        if chosen == 2:
            return f"{self.column(scope, 'a', 'b', 'i')} {self.pick('', 'not ')}in (1, 2, {self.pick('3', 'null')})"
        if chosen == 3:
            return self.column(scope, "p")
        if chosen == 4:
            return f"{self.column(scope, 'f')} {self.pick('<', '>=', '=')} {self.pick('0.5', '1.5', '0')}"

        def deeper():
            return self.condition(scope, depth - 1)

        return [
            lambda: f"({deeper()} and {deeper()})",
            lambda: f"({deeper()} or {deeper()})",
            lambda: f"(not {deeper()})",
            lambda: f"({deeper()}) is {self.pick('', 'not ')}{self.pick('true', 'false', 'null')}",
            lambda: f"{number()} {self.pick('', 'not ')}in {self.rows(scope, depth)}",
            lambda: f"{self.pick('', 'not ')}{self.exists(scope, depth)}",
            lambda: f"{number()} between {number()} and {number()}",
            lambda: f"{self.text(scope)} like '{self.pick('x%', '%y', '_', '%')}'",
        ][chosen - 5]()

    def value(self, scope):
        chosen = self.random.random()
        if chosen < 0.5:
            return self.number(scope)
        if chosen < 0.75:
            return f"({self.condition(scope)})"
        return self.text(scope) if chosen < 0.9 else self.column(scope, "f")

    def source(self):
        """Tables, and the names of those whose columns may be read."""
        chosen = self.random.random()
        if chosen < 0.45:
            return self.pick("t", "u"), None
        if chosen < 0.6:
            below = f"select i, a, b, f, s, p from {self.pick('t', 'u')} v where {self.condition(['v'])}"
            return f"({below})", None
        kind = self.pick("join", "left join", "right join", "full join", "join", "left join")
        on = f"x.{self.pick('a', 'b', 'i')} = y.{self.pick('a', 'b', 'i')}"
        if self.chance(0.4):
            on += f" and {self.condition([self.pick('x', 'y')], 1)}"
        return f"t x {kind} u y on {on}", ["x", "y"]

    def aggregate(self, scope):
        made = self.pick("count(*)", "count({})", "sum({})", "min({})", "max({})", "avg({})", "count(distinct {})")
        made = made.format(self.number(scope, 1))
        if self.chance(0.15):
            made += f" filter (where {self.condition(scope, 1)})"
        return made

    def window(self, scope):
        over = []
        if self.chance(0.6):
            over.append(f"partition by {self.value(scope)}")
        order = ", ".join(f"{name}.i nulls last" for name in scope)
        frame = self.pick("", "", " rows between 1 preceding and 1 following", " rows unbounded preceding")
        if self.chance(0.3):
            order = f"{self.value(scope)} {self.pick('', 'desc ')}nulls {self.pick('first', 'last')}, {order}"
        over.append(f"order by {order}{frame}")
        number = self.number(scope, 1)
        made = self.pick(f"sum({number})", f"count({number})", f"min({number})", f"max({number})")
        if not frame:
            made = self.pick(made, "row_number()", f"lag({number})", f"first_value({number})", f"lead({number}, 2)")
        return f"{made} over ({' '.join(over)})"

    def select(self):
        """A query, with the number of its columns."""
        tables, scope = self.source()
        if scope is None:
            scope = ["x"]
            tables = f"{tables} x"
        where = f" where {self.condition(scope)}" if self.chance(0.6) else ""
        kind = self.random.random()
        if kind < 0.35:
            # Numbers alone are places of columns, and the parser takes `((select` for a list.
            keys = [f"coalesce({self.value(scope)}, null)" for _ in range(self.pick(0, 1, 1, 2))]
            shown = keys + [self.aggregate(scope) for _ in range(self.pick(1, 2))]
            group = f" group by {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
            if keys and self.chance(0.25):
                group = f" group by {self.pick('rollup', 'cube')} ({', '.join(keys)})"
            having = f" having {self.aggregate(scope)} {self.pick('>', '<')} 1" if keys and self.chance(0.2) else ""
            return shown, f" from {tables}{where}{group}{having}"
        if kind < 0.55:
            return [self.window(scope), self.value(scope)], f" from {tables}{where}"
        shown = [self.value(scope) for _ in range(self.pick(1, 2, 3))]
        if kind < 0.65:
            return ["distinct " + shown[0], *shown[1:]], f" from {tables}{where}"
        order = ", ".join(f"{name}.i nulls last" for name in scope)
        if kind < 0.8:
            key = f"coalesce({self.value(scope)}, null)"
            order = f"{key} {self.pick('', 'desc ')}nulls {self.pick('first', 'last')}, {order}"
            return shown, f" from {tables}{where} order by {order} limit {self.pick(1, 2, 5)}"
        return shown, f" from {tables}{where}"

    def query(self):
        self.names = 0
        shown, rest = self.select()
        shown = ", ".join(f"{value} as c{at}" for at, value in enumerate(shown))
        return f"select {shown}{rest}"


def request(tables, query, workers, rows):
    """A request for the rows of a query."""
    made = {}
    for name, columns in tables.items():
        lit = [[{"na": 1} if value is None else value for value in column] for column in columns]
        made[name] = {"columns": list(COLUMNS), "lit": lit, "dtypes": list(COLUMNS.values())}
    given = {"o": {name: {"$": name} for name in tables}}
    prog = [["r", "sql", [query], {"tables": given}]]
    return {"v": 1, "ctx": {"workers": workers, "chunks": rows}, "in": made, "prog": prog, "out": ["r"]}


def cell(value):
    if isinstance(value, dict):
        if "na" in value:
            return None
        value = float(value["f"]) if "f" in value else int(value["i"])
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return value


def ordered(rows):
    """Rows in an order of their own; numbers are compared as floats, but for truth values."""
    def key(value):
        if value is None:
            return (0, "")
        if isinstance(value, (bool, str)):
            return (1, str(value))
        return (2, f"{float(value):+.9e}")
    return sorted(tuple(key(value) for value in row) for row in rows)


def expected(tables, query):
    """The rows of DuckDB; none if it refuses the query."""
    session = duckdb.connect()
    for name, columns in tables.items():
        session.execute(f"create table {name} ({', '.join(f'{c} {TYPES[d]}' for c, d in COLUMNS.items())})")
        for row in zip(*columns):
            session.execute(f"insert into {name} values ({', '.join('?' * len(row))})", list(row))
    try:
        return session.execute(query).fetchall()
    except duckdb.Error:
        return None


def judged(want, reply):
    """The word for a reply, and its rows."""
    if not reply["ok"]:
        error = reply["err"]
        if want is None:
            return "refused", None
        return "missing" if error["class"] == "NotImplemented" else "failed", f"{error['class']}: {error['msg']}"
    columns = reply["out"]["r"]["tbl"]["lit"]
    rows = list(zip(*[[cell(value) for value in column] for column in columns]))
    if want is None:
        return "only here", rows
    return "same" if ordered(rows) == ordered(want) else "differ", rows


def one(source, evaluator, counts, asked):
    """Runs a query, counts its outcome, and prints it if its rows are others."""
    tables = {"t": source.table(), "u": source.table()}
    query = source.query()
    while not re.search(asked.only, query):
        query = source.query()
    want = expected(tables, query)
    words = {}
    for workers, rows in source.random.sample(PLACES, 2):
        evaluator.stdin.write(json.dumps(request(tables, query, workers, rows)) + "\n")
        evaluator.stdin.flush()
        word, found = judged(want, json.loads(evaluator.stdout.readline()))
        words[word] = (workers, rows, found)
    word = next((word for word in ("differ", "failed", "missing", "only here") if word in words), None)
    word = word or next(iter(words))
    counts[word] += 1
    if word not in ("same", "refused") and counts[word] <= asked.show:
        print(word, query)
        print("  tables ", json.dumps(tables))
        print("  duckdb ", want)
        print("  tharsis", *words[word], flush=True)


def main():
    """Runs queries and prints the counts, and those with other rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tharsis", help="the binary")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--only", default="", help="a regular expression that the query must match")
    parser.add_argument("--show", type=int, default=3, help="queries to print for each outcome")
    asked = parser.parse_args()
    print("seed", asked.seed)
    source, counts = Source(asked.seed), collections.Counter()
    evaluator = subprocess.Popen([asked.tharsis, "eval"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        for _ in range(asked.count):
            one(source, evaluator, counts, asked)
    except KeyboardInterrupt:
        print("interrupted")
    print(dict(counts))


if __name__ == "__main__":
    main()
