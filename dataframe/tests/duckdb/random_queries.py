"""Runs random queries beside DuckDB, and prints where the `sql` step of `tharsis eval` gives other rows.

    python random_queries.py target/release/tharsis --count 10000 --seed 7 --only 'exists' --show 3

Needs the packages duckdb and pyarrow. Each query runs with its tables in one, two, three and eight parts, which must not
change its rows; where it has an order of all rows, that order is compared too. Counted are equal rows (`same`), both
refused (`refused`), other rows (`differ`), errors where DuckDB has rows (`failed`, `missing` if the class is
NotImplemented), and rows where DuckDB has an error (`only here`). Queries worth keeping go into `tests/sqllogic/cases`.
"""

import argparse
import collections
import datetime
import decimal
import json
import math
import random
import re
import subprocess

import duckdb
import pyarrow

TYPES = {
    "i": ("int64", pyarrow.int64()),
    "a": ("int64", pyarrow.int64()),
    "b": ("int64", pyarrow.int64()),
    "n": ("int32", pyarrow.int32()),
    "f": ("float64", pyarrow.float64()),
    "s": ("str", pyarrow.string()),
    "p": ("bool", pyarrow.bool_()),
    "d": ("datetime64[us]", pyarrow.timestamp("us")),
    "e": ("date32", pyarrow.date32()),
}
ALL = ", ".join(TYPES)
TEXTS = ("x", "y", "xy", "", "Z", "x%", "a b", "ñx")
FLOATS = (0.5, 1.5, -2.25, 0.0, 3.0, 1e9, -0.125)
PARTS = (1, 2, 3, 8)
EPOCH = datetime.datetime(1970, 1, 1)
FRAMES = (
    "rows between 1 preceding and 1 following",
    "rows unbounded preceding",
    "rows between unbounded preceding and unbounded following",
    "rows between 2 preceding and 1 preceding",
    "rows between current row and 2 following",
    "range between unbounded preceding and current row",
    "groups between 1 preceding and current row",
)


class Source:
    """Random tables and queries over them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0
        self.tables = ["t", "u"]
        # Whether the last query says the order of all rows.
        self.in_order = False

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, part):
        return self.random.random() < part

    def one_of(self, *makes):
        return self.random.choice(makes)()

    def table(self):
        """Rows with a key `i`, and values of which some are missing."""
        rows = self.pick(0, 1, 3, 5, 8, 12, 12, 12, 40)
        if self.chance(0.02):
            rows = 700
        makes = {
            "a": lambda: self.random.randint(0, 4),
            "b": lambda: self.random.randint(-3, 3),
            "n": lambda: self.random.randint(-2, 6),
            "f": lambda: self.pick(*FLOATS),
            "s": lambda: self.pick(*TEXTS),
            "p": lambda: self.chance(0.5),
            "d": lambda: EPOCH + datetime.timedelta(days=self.random.randint(19_700, 19_760), hours=self.pick(0, 6, 23)),
            "e": lambda: EPOCH.date() + datetime.timedelta(days=self.random.randint(-3, 60)),
        }
        columns = {"i": list(range(rows))}
        for name, make in makes.items():
            lacking = self.pick(0, 0, 0.2, 0.5, 1 if self.chance(0.1) else 0)
            columns[name] = [None if self.chance(lacking) else make() for _ in range(rows)]
        return columns

    # Expressions. `scope` has the names of tables whose columns may stand in them.

    def column(self, scope, *names):
        return f"{self.pick(*scope)}.{self.pick(*names)}"

    def number(self, scope, depth=2):
        """A whole number."""
        chosen = self.random.random()
        if not depth or chosen < 0.3:
            return self.column(scope, *"ababni") if self.chance(0.75) else str(self.random.randint(-2, 5))
        deeper = lambda: self.number(scope, depth - 1)
        return self.one_of(
            lambda: f"({deeper()} {self.pick('+', '-', '*')} {deeper()})",
            lambda: f"({deeper()} % nullif({deeper()}, 0))",
            lambda: f"coalesce({deeper()}, {deeper()})",
            lambda: f"nullif({deeper()}, {deeper()})",
            lambda: f"{self.pick('abs', '-', 'sign')}({deeper()})",
            lambda: f"{self.pick('greatest', 'least')}({deeper()}, {deeper()})",
            lambda: f"(case when {self.condition(scope, depth - 1)} then {deeper()} else {deeper()} end)",
            lambda: f"(case {deeper()} when {deeper()} then {deeper()} end)",
            lambda: self.scalar(scope),
            lambda: f"length({self.text(scope, depth - 1)})",
            lambda: f"strpos({self.text(scope, depth - 1)}, 'x')",
            lambda: f"extract({self.pick('year', 'month', 'day', 'hour', 'dow', 'quarter')} from {self.time(scope)})",
            lambda: f"cast({self.pick('round', 'floor', 'ceil')}({self.fraction(scope)}) as bigint)",
            lambda: f"cast({self.condition(scope, 0)} as integer)",
        )

    def fraction(self, scope, depth=1):
        """A float."""
        if not depth or self.chance(0.4):
            return self.column(scope, "f")
        deeper = lambda: self.fraction(scope, depth - 1)
        return self.one_of(
            lambda: f"({deeper()} {self.pick('+', '-', '*')} {deeper()})",
            lambda: f"({deeper()} + {self.number(scope, depth - 1)})",
            lambda: f"{self.pick('abs', 'floor', 'ceil')}({deeper()})",
            lambda: f"cast({self.number(scope, depth - 1)} as double)",
            lambda: f"(cast({self.number(scope, depth - 1)} as double) / {self.pick('2', '4.0')})",
        )

    def exact(self, scope):
        """A decimal."""
        made = f"cast({self.number(scope, 0)} as decimal(12, 2))"
        return self.pick(made, f"({made} * 0.25)", f"({made} + 1.5)", f"round({made} * 0.125, 2)")

    def text(self, scope, depth=1):
        chosen = self.random.random()
        if not depth or chosen < 0.4:
            return self.column(scope, "s") if self.chance(0.7) else f"'{self.pick(*TEXTS)}'"
        deeper = lambda: self.text(scope, depth - 1)
        return self.one_of(
            lambda: f"{self.pick('upper', 'lower', 'trim', 'reverse')}({deeper()})",
            lambda: f"({deeper()} || {deeper()})",
            lambda: f"concat({deeper()}, {deeper()})",
            lambda: f"coalesce({deeper()}, 'n')",
            lambda: f"substr({deeper()}, {self.pick(1, 2)}, {self.pick(0, 1, 2)})",
            lambda: f"{self.pick('left', 'right')}({deeper()}, {self.pick(0, 1, 2)})",
            lambda: f"replace({deeper()}, 'x', '-')",
            lambda: f"lpad({deeper()}, 3, '*')",
            lambda: f"cast({self.number(scope, depth - 1)} as varchar)",
            lambda: f"(case when {self.condition(scope, 0)} then {deeper()} end)",
        )

    def time(self, scope):
        made = self.column(scope, "d")
        return self.pick(
            made,
            made,
            f"date_trunc('{self.pick('day', 'month', 'year', 'hour')}', {made})",
            f"({made} {self.pick('+', '-')} interval '{self.pick('1 day', '2 month', '90 minute')}')",
            f"cast({self.column(scope, 'e')} as timestamp)",
        )

    def name(self):
        self.names += 1
        return f"q{self.names}"

    def alias(self):
        """A name for a table of a subquery, which may be that of a table around it."""
        return self.pick("x", "y", "t") if self.chance(0.08) else self.name()

    def correlated(self, scope, name):
        """A condition of a subquery on a row around it."""
        operator = "=" if self.chance(0.85) else self.pick("<", ">=", "<>")
        return f"{name}.{self.pick('a', 'b')} {operator} {self.column(scope, 'a', 'b')}"

    def scalar(self, scope):
        """A subquery of one value."""
        name = self.alias()
        made = self.pick("max({0}.a)", "min({0}.b)", "count(*)", "sum({0}.a)", "count({0}.b)").format(name)
        where = self.correlated(scope, name) if self.chance(0.5) else self.condition([name], 0)
        if self.chance(0.2):
            made = self.pick("max(c)", "min(c)", "count(c)", "count(*)", "sum(c)", "coalesce(max(c), -1)")
            return f"(select {made} from ({self.dependent(scope)}) {name})"
        if self.chance(0.1):
            within = f"select {self.window([name])} as a, {name}.b from {self.pick(*self.tables)} {name} where {where}"
            name = self.name()
            return f"(select {self.pick('max', 'sum', 'count')}({name}.a) from ({within}) {name})"
        return f"(select {made} from {self.pick(*self.tables)} {name} where {where})"

    def rows(self, scope, depth):
        """A subquery of one column of numbers."""
        name = self.alias()
        if depth and self.chance(0.12):
            return f"(select c from ({self.dependent(scope)}) {name})"
        value = self.number([name], min(depth, 1)) if self.chance(0.4) else f"{name}.{self.pick('a', 'b')}"
        where = "" if self.chance(0.3) else f" where {self.condition([name], max(depth - 1, 0))}"
        if where and self.chance(0.25):
            where += f" and {self.correlated(scope, name)}"
        more = ""
        if self.chance(0.1):
            # Windows are of the rows for one row around, and some aggregates have a value of no rows.
            makes = (
                self.window([name]),
                f"{self.pick('max', 'min', 'count')}({name}.{self.pick('a', 'b')})",
                f"coalesce(cast(sum({name}.a) as bigint), {self.pick('0', '1')})",
                "count(*)",
            )
            value = self.pick(makes[0], *makes)
            if "over (" not in value and self.chance(0.2):
                where += f" having count(*) {self.pick('= 0', '> 1', '<> 1')}"
        if self.chance(0.1):
            more = f" {self.pick('union', 'except', 'intersect', 'union all')} select b from {self.pick(*self.tables)}"
        return f"(select {value} from {self.pick(*self.tables)} {name}{where}{more})"

    def exists(self, scope, depth):
        if depth and self.chance(0.2):
            return f"exists ({self.dependent(scope)})"
        name = self.alias()
        if self.chance(0.1):
            whole = f"select {self.pick('max', 'min')}(a) as a, {self.pick('count(*)', 'min(b)')} as b from {self.pick(*self.tables)}"
            return f"exists (select 1 from ({whole}) {name} where {self.correlated(scope, name)})"
        where = self.correlated(scope, name)
        if self.chance(0.4):
            where += f" and {self.condition([name], max(depth - 1, 0))}"
        more = ""
        shown = self.pick("1", "1", "1", f"{name}.a", "count(*)" if self.chance(0.2) else "1")
        if self.chance(0.15):
            order = f"{name}.i nulls last"
            more = self.pick(
                f" order by {order} offset {self.pick(0, 1, 2)}",
                f" limit 1 offset {self.pick(0, 1)}",
                f" limit {self.pick(0, 1, 2)}",
                f" qualify row_number() over (partition by {name}.{self.pick('a', 'p')} order by {order}) = {self.pick(1, 2)}",
                f" having count(*) {self.pick('= 0', '> 1')}",
            )
            shown = "1" if "having" in more or "qualify" in more or "order" in more else shown
        return f"exists (select {shown} from {self.pick(*self.tables)} {name} where {where}{more})"

    def dependent(self, scope, depth=1):
        """A query of one column `c` of whole numbers, whose rows depend on a row around it."""
        name, key, table = self.alias(), self.pick("a", "b"), self.pick(*self.tables)
        rows = f"from {table} {name} where {self.correlated(scope, name)}"
        order = f"{name}.{key} nulls last, {name}.i nulls last"
        simple = f"select {name}.{key} as c {rows}"
        if not depth:
            return simple
        deeper = lambda: self.dependent(scope, depth - 1)
        made = self.pick("count(*)", f"count({name}.b)", f"max({name}.a)", f"cast(sum({name}.b) as bigint)")
        having = self.pick("", "", f" having count(*) {self.pick('> 1', '= 0', '<> 1')}")
        within = self.name()
        return self.one_of(
            lambda: simple,
            lambda: f"select distinct {name}.{key} as c {rows}",
            lambda: f"select distinct on ({name}.p) {name}.{key} as c {rows} order by {name}.p nulls last, {order}",
            lambda: f"select {name}.{key} + {self.column(scope, 'a', 'b')} as c {rows}",
            lambda: f"select {self.window([name])} as c {rows}",
            lambda: f"select c from (select {name}.{key} as c {rows} order by {order}{self.part()}) {within}",
            lambda: f"select {made} as c {rows}{having}",
            lambda: f"select {made} as c {rows} group by {name}.{self.pick('a', 'n', 'p')}{having}",
            lambda: f"select {made} as c {rows} group by {self.column(scope, 'a', 'b')}{self.pick('', f', {name}.a')}{having}",
            lambda: f"{deeper()} {self.pick('union', 'union all', 'except', 'intersect', 'except all')} {deeper()}",
            lambda: (
                f"select {self.pick(f'{name}.{key}', f'{within}.c')} as c from {table} {name}"
                f" {self.pick('left', 'right', 'full', 'inner')} join ({deeper()}) {within} on {name}.{key} = {within}.c"
            ),
            lambda: f"{simple} and {self.pick('', 'not ')}exists ({self.dependent([name, *scope], depth - 1)})",
            lambda: f"{simple} and {name}.b < (select max(c) from ({self.dependent([name, *scope], depth - 1)}) {within})",
        )

    def part(self):
        """Some of the rows of an order."""
        return self.pick(" limit 1", " limit 2", " limit 1 offset 1", " offset 1", " limit 0")

    def compared(self, scope):
        """A comparison with the rows of a subquery."""
        rows = self.rows(scope, 1)
        compare = f"{self.pick('=', '<>', '<', '<=', '>', '>=')} {self.pick('any', 'all')}"
        return f"{self.number(scope, 0)} {self.pick(compare, compare, 'in', 'not in')} {rows}"

    def condition(self, scope, depth=2):
        number = lambda: self.number(scope, max(depth - 1, 0))
        compare = lambda: self.pick("=", "<>", "<", "<=", ">", ">=")
        simple = (
            lambda: f"{number()} {compare()} {number()}",
            lambda: f"{self.column(scope, *TYPES)} is {self.pick('', 'not ')}null",
            lambda: f"{self.column(scope, *'abni')} {self.pick('', 'not ')}in (1, 2, {self.pick('3', 'null')})",
            lambda: self.column(scope, "p"),
            lambda: f"{self.column(scope, 'f')} {compare()} {self.pick('0.5', '1.5', '0')}",
            lambda: f"{self.column(scope, 's')} {compare()} '{self.pick(*TEXTS)}'",
            lambda: f"{self.column(scope, 'd')} {compare()} timestamp '2024-01-{self.pick('05', '20')} 06:00:00'",
            lambda: f"{self.column(scope, 'e')} {compare()} date '1970-01-{self.pick('01', '09')}'",
            lambda: f"{self.exact(scope)} {compare()} {self.pick('0.5', '1', '0.25')}",
        )
        if not depth:
            return self.one_of(*simple)
        deeper = lambda: self.condition(scope, depth - 1)
        return self.one_of(
            *simple,
            lambda: f"({deeper()} and {deeper()})",
            lambda: f"({deeper()} or {deeper()})",
            lambda: f"(not {deeper()})",
            lambda: f"({deeper()}) is {self.pick('', 'not ')}{self.pick('true', 'false', 'null')}",
            lambda: f"{number()} {self.pick('', 'not ')}in {self.rows(scope, depth)}",
            lambda: f"{self.pick('', 'not ')}{self.exists(scope, depth)}",
            lambda: f"{number()} {compare()} {self.pick('any', 'all')} {self.rows(scope, depth)}",
            lambda: f"{number()} {self.pick('', 'not ')}between {number()} and {number()}",
            lambda: f"{number()} is {self.pick('', 'not ')}distinct from {number()}",
            lambda: f"{self.text(scope)} {self.pick('like', 'not like', 'ilike')} '{self.pick('x%', '%y', '_', '%')}'",
        )

    def value(self, scope):
        return self.random.choices(
            [self.number, self.condition, self.text, self.fraction, self.exact, self.time], [45, 22, 12, 8, 5, 8]
        )[0](scope)

    # Rows. Each of these has the columns of the tables.

    def body(self):
        """A query with the columns of the tables, over one of them."""
        name, table = self.name(), self.pick(*self.tables)
        where = f" where {self.condition([name], 1)}" if self.chance(0.6) else ""
        rest = f"{name}.n, {name}.f, {name}.s, {name}.p, {name}.d, {name}.e"
        other, others = self.pick(*self.tables), ALL.removeprefix("i, ")
        return self.one_of(
            lambda: f"select {ALL} from {table} {name}{where}",
            lambda: f"select {ALL} from {table} {name}{where} order by {ALL} limit {self.pick(2, 4)}",
            lambda: f"select distinct {name}.i, {self.number([name], 1)} as a, {name}.b, {rest} from {table} {name}{where}",
            lambda: f"select {name}.i, {name}.a, {self.window([name])} as b, {rest} from {table} {name}{where}",
            lambda: f"select {ALL} from {table} {name}{where} {self.pick('except', 'intersect')} select {ALL} from {other}",
            # Keys stay keys.
            lambda: (
                f"select i * 2 as i, {others} from {table} {name}{where}"
                f" union all select i * 2 + 1, {others} from {other} where a > 1"
            ),
            lambda: (
                f"select min({name}.i) as i, {name}.a, cast(sum({name}.b) as bigint) as b, max(n) as n, min(f) as f,"
                f" max(s) as s, bool_or(p) as p, min(d) as d, max(e) as e from {table} {name}{where} group by {name}.a"
            ),
        )

    def source(self):
        """Tables, and the names of those whose columns may be read. Some end with a condition and a blank."""
        chosen, tables = self.random.random(), self.tables
        if chosen < 0.45:
            return f"{self.pick(*tables)} x", ["x"]
        if chosen < 0.6:
            return f"({self.body()}) x", ["x"]
        kind = self.pick("join", "left join", "right join", "full join", "join", "left join")
        left, right = self.pick(*tables), self.pick(*tables)
        on = f"x.{self.pick(*'abin')} = y.{self.pick(*'abin')}"
        if self.chance(0.4):
            on += f" and {self.condition([self.pick('x', 'y')] if self.chance(0.8) else ['x', 'y'], 1)}"
        if chosen < 0.9:
            return f"{left} x {kind} {right} y on {on}", ["x", "y"]
        return self.one_of(
            lambda: (f"{left} x {kind} ({self.body()}) y on {on}", ["x", "y"]),
            lambda: (f"{left} x cross join (select {ALL} from {right} where i < 3) y", ["x", "y"]),
            lambda: (f"{left} x join {right} y on {on} {kind} {left} z on y.a = z.{self.pick('a', 'b')}", ["x", "y", "z"]),
            lambda: (f"{left} x, {right} y where {on} and x.i < 20 ", ["x", "y"]),
            lambda: self.laterals(left, right, on),
        )

    def laterals(self, left, right, on):
        """A table and lateral queries behind it."""
        join = lambda: self.pick("join", "left join")
        on = on.split(" and ")[0] if self.chance(0.4) else "true"
        if self.chance(0.25):
            # Tables before the comma are seen, too.
            made = f"{self.pick(*self.tables)} z, {left} x {join()} lateral ({self.lateral(right, ['x', 'z'])}) y on {on}"
            return made, ["x", "y", "z"]
        made = f"{left} x {join()} lateral ({self.lateral(right, ['x'])}) y on {on}"
        if self.chance(0.6):
            return made, ["x", "y"]
        last = self.lateral(self.pick(*self.tables), ["x", "y"])
        return f"{made} {join()} lateral ({last}) z on {self.pick('true', 'z.b = y.a', 'z.a = x.b')}", ["x", "y", "z"]

    def lateral(self, table, scope):
        """A query with the columns of the tables, whose rows depend on a row of others."""
        name = self.name()
        rows = f"select {ALL} from {table} {name} where {self.correlated(scope, name)}"
        order = ", ".join(f"{name}.{column} nulls last" for column in TYPES)
        return self.one_of(
            lambda: rows,
            lambda: rows.replace("select ", "select distinct ", 1),
            lambda: f"{rows} order by {order}{self.part()}",
            lambda: f"{rows} {self.pick('except', 'union', 'intersect')} {rows.replace(name, self.name())}",
        )

    def aggregate(self, scope):
        number = self.number(scope, 1)
        made = self.pick(
            "count(*)",
            f"count({self.value(scope)})",
            f"{self.pick('sum', 'min', 'max', 'avg')}({number})",
            f"{self.pick('sum', 'min', 'max')}({self.exact(scope)})",
            f"{self.pick('min', 'max')}({self.pick(self.text(scope), self.time(scope), self.fraction(scope))})",
            f"count(distinct {self.value(scope)})",
            f"sum(distinct {number})",
            f"{self.pick('bool_and', 'bool_or')}({self.condition(scope, 1)})",
            f"{self.pick('stddev', 'var_pop', 'median')}({self.fraction(scope, 0)})",
            f"string_agg({self.text(scope, 0)}, ',' order by {', '.join(f'{name}.i' for name in scope)})",
        )
        if self.chance(0.15) and "string_agg" not in made:
            made += f" filter (where {self.condition(scope, 1)})"
        return made

    def window(self, scope):
        """A window function of a whole number."""
        over = []
        if self.chance(0.08):
            over.append(f"partition by {self.compared(scope)}")
        elif self.chance(0.6):
            over.append(f"partition by {self.value(scope)}")
        order = ", ".join(f"{name}.i nulls last" for name in scope)
        frame = f" {self.pick(*FRAMES)}" if self.chance(0.5) else ""
        if self.chance(0.3):
            order = f"{self.value(scope)} {self.pick('', 'desc ')}nulls {self.pick('first', 'last')}, {order}"
        number = self.number(scope, 1)
        if self.chance(0.08):
            number = f"(case when {self.compared(scope)} then {number} end)"
        made = f"{self.pick('sum', 'count', 'min', 'max', 'first_value', 'last_value')}({number})"
        if not frame:
            made = self.pick(
                made,
                f"{self.pick('row_number', 'rank', 'dense_rank')}()",
                f"{self.pick('lag', 'lead')}({number}, {self.pick(1, 2)}, {self.pick('null', '7')})",
                f"ntile({self.pick(2, 3)})",
            )
            if self.chance(0.2) and "(" in made and made[:3] in ("ran", "den", "sum", "cou", "min", "max"):
                # Peers have one value.
                order = f"{self.column(scope, 'a', 'p', 's')} nulls last"
        over.append(f"order by {order}{frame}")
        return f"cast({made} over ({' '.join(over)}) as bigint)"

    def select(self):
        """The shown values of a query, and the rest of it."""
        tables, scope = self.source()
        where = f"{'and' if tables.endswith(' ') else ' where'} {self.condition(scope)}" if self.chance(0.6) else ""
        kind = self.random.random()
        if kind < 0.33:
            return self.grouped(tables, scope, where)
        if kind < 0.55:
            over = [self.window(scope), self.value(scope)]
            if self.chance(0.1):
                last = ", ".join(f"{name}.i nulls last" for name in scope)
                return over, f" from {tables}{where} qualify row_number() over (partition by x.a order by {last}) = 1"
            return over, f" from {tables}{where}"
        shown = [self.value(scope) for _ in range(self.pick(1, 2, 3))]
        if kind < 0.62:
            return ["distinct " + shown[0], *shown[1:]], f" from {tables}{where}"
        order = ", ".join(f"{name}.i nulls last" for name in scope)
        key = f"coalesce({self.value(scope)}, null)"
        order = f"{key} {self.pick('', 'desc ')}nulls {self.pick('first', 'last')}, {order}"
        if kind < 0.66:
            key = self.column(scope, "a", "s", "p")
            order = f"{key} nulls last, {order}"
            return [f"distinct on ({key}) {shown[0]}", *shown[1:]], f" from {tables}{where} order by {order}"
        if kind < 0.82:
            self.in_order = True
            limit = self.pick("", " limit 1", " limit 2", " limit 5", " limit 3 offset 2", " offset 1")
            return shown, f" from {tables}{where} order by {order}{limit}"
        return shown, f" from {tables}{where}"

    def grouped(self, tables, scope, where):
        # Numbers alone are places of columns, and the parser takes `((select` for a list.
        keys = [f"coalesce({self.value(scope)}, null)" for _ in range(self.pick(0, 1, 1, 2))]
        shown = keys + [self.aggregate(scope) for _ in range(self.pick(1, 2))]
        group = f" group by {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
        if keys and self.chance(0.25):
            group = f" group by {self.pick('rollup', 'cube')} ({', '.join(keys)})"
        elif keys and self.chance(0.1):
            group = f" group by grouping sets (({', '.join(keys)}), ({keys[0]}), ())"
        if self.chance(0.15):
            # Keys that are written in two ways.
            column, rows = self.column(["x"], "a", "b", "n"), self.rows(["x"], 0)
            again = self.pick(column.upper(), column.replace("x", "X"), column[2:] if scope == ["x"] else column)
            operator = self.pick("in", "not in", "= any", "< all")
            keys = [f"{column} {operator} {rows}", *keys]
            shown = [f"{again} {operator} {rows}", *shown]
            group = f" group by {', '.join(keys)}"
            if self.chance(0.3):
                shown.append(f"count(case when {again} {operator} {rows} then 1 end)")
        having = ""
        if keys and self.chance(0.25):
            counted = f"count({self.number(scope, 1)})"
            having = self.pick(
                f" having {counted} {self.pick('>', '<')} {self.pick('1', '2')}",
                f" having {counted} {self.pick('', 'not ')}in (select a from {self.pick(*self.tables)})",
                f" having {counted} > (select min(b) from {self.pick(*self.tables)})",
            )
        return shown, f" from {tables}{where}{group}{having}"

    def simple(self):
        shown, rest = self.select()
        return f"select {', '.join(f'{value} as c{at}' for at, value in enumerate(shown))}{rest}"

    def union(self):
        """Two queries with equal types."""
        makes = [self.pick(self.number, self.text, self.condition, self.time) for _ in range(self.pick(1, 2))]
        sides = []
        for _ in range(2):
            tables, scope = self.source()
            sides.append(f"select {', '.join(f'{make(scope)} as c{at}' for at, make in enumerate(makes))} from {tables}")
        operator = self.pick("union", "union all", "intersect", "except", "intersect all", "except all")
        order = ""
        if self.chance(0.4):
            order = " order by " + ", ".join(f"{at + 1} nulls {self.pick('first', 'last')}" for at in range(len(makes)))
            order += self.pick("", " limit 3", " limit 2 offset 1")
            self.in_order = True
        return f"{sides[0]} {operator} {sides[1]}{order}"

    def query(self):
        self.names, self.in_order, self.tables = 0, False, ["t", "u"]
        views = []
        for name in ("v", "w")[: self.pick(0, 0, 0, 1, 2)]:
            views.append(f"{name} as ({self.body()})")
            self.tables.append(name)
        made = self.union() if self.chance(0.1) else self.simple()
        return f"with {', '.join(views)} {made}" if views else made


def encoded(value):
    """A value as programs write it."""
    if value is None:
        return {"na": 1}
    if isinstance(value, datetime.datetime):
        return {"ts": value.isoformat(), "tz": None, "u": "us"}
    if isinstance(value, datetime.date):
        return {"ts": f"{value.isoformat()}T00:00:00", "tz": None, "u": "us"}
    return value


def request(tables, query, parts):
    """A request for the rows of a query."""
    made = {}
    for name, columns in tables.items():
        lit = [[encoded(value) for value in column] for column in columns.values()]
        made[name] = {"columns": list(columns), "lit": lit, "dtypes": [TYPES[column][0] for column in columns]}
    given = {"o": {name: {"$": name} for name in tables}}
    prog = [["r", "sql", [query], {"tables": given}]]
    rows = max(len(columns["i"]) for columns in tables.values())
    ctx = {"workers": parts, "chunks": max(-(-rows // parts), 1)}
    return {"v": 1, "ctx": ctx, "in": made, "prog": prog, "out": ["r"]}


def cell(value):
    """A value of a reply, or of DuckDB, in one form."""
    if isinstance(value, dict):
        if "na" in value:
            return None
        if "ts" in value:
            return str(datetime.datetime.fromisoformat(value["ts"]))
        if "td" in value:
            return value["td"][0] * {"s": 10**6, "ms": 1000, "us": 1, "ns": 0.001}[value["td"][1]]
        value = float(value["f"]) if "f" in value else int(value["i"])
    if isinstance(value, datetime.datetime):
        return str(value)
    if isinstance(value, datetime.date):
        return f"{value} 00:00:00"
    if isinstance(value, datetime.timedelta):
        return value / datetime.timedelta(microseconds=1)
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return value


def keyed(rows, in_order):
    """Rows that can be compared, in an order of their own unless they have one."""
    def key(value):
        value = cell(value)
        if value is None:
            return (0, "")
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            return (1, f"{value} 00:00:00")
        if isinstance(value, (bool, str)):
            return (1, str(value))
        return (2, f"{0.0 if abs(value) < 1e-12 else float(value):+.9e}")
    rows = [tuple(key(value) for value in row) for row in rows]
    return rows if in_order else sorted(rows)


def expected(tables, query):
    """The rows of DuckDB, or its error."""
    session = duckdb.connect(config={"threads": 1})
    for name, columns in tables.items():
        arrays = [pyarrow.array(values, TYPES[column][1]) for column, values in columns.items()]
        session.register(f"{name}_given", pyarrow.table(arrays, list(columns)))
        session.execute(f"create table {name} as select * from {name}_given")
    try:
        return session.execute(query).fetchall()
    except duckdb.Error as error:
        return error


def judged(want, reply, in_order):
    """The word for a reply, and its rows."""
    if not reply["ok"]:
        error = reply["err"]
        if isinstance(want, duckdb.Error):
            return "refused", None
        return "missing" if error["class"] == "NotImplemented" else "failed", f"{error['class']}: {error['msg']}"
    table = reply["out"]["r"]["tbl"]
    columns = [
        [float(value) if isinstance(value, str) else value for value in column] if dtype.startswith("decimal") else column
        for column, dtype in zip(table["lit"], table["dtypes"])
    ]
    rows = list(zip(*columns))
    if isinstance(want, duckdb.Error):
        return "only here", rows
    return "same" if keyed(rows, in_order) == keyed(want, in_order) else "differ", rows


def one(source, evaluator, counts, asked):
    """Runs a query, counts its outcome, and prints it if its rows are others."""
    tables = {"t": source.table(), "u": source.table()}
    query = source.query()
    while not re.search(asked.only, query):
        query = source.query()
    want = expected(tables, query)
    words = {}
    for parts in PARTS:
        evaluator.stdin.write(json.dumps(request(tables, query, parts)) + "\n")
        evaluator.stdin.flush()
        word, found = judged(want, json.loads(evaluator.stdout.readline()), source.in_order)
        words.setdefault(word, (parts, found))
    word = next((word for word in ("differ", "failed", "missing", "only here") if word in words), None)
    word = word or next(iter(words))
    counts[word] += 1
    if word not in ("same", "refused") and counts[word] <= asked.show:
        print(word, query, "" if len(words) == 1 else f"[with some numbers of parts alone: {sorted(words)}]")
        if len(tables["t"]["i"]) + len(tables["u"]["i"]) < 30:
            print("  tables ", json.dumps(tables, default=str))
        print("  duckdb ", str(want)[:2000])
        print("  tharsis", *(str(part)[:2000] for part in words[word]), flush=True)


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
