"""Runs random programs beside pandas, and prints where `tharsis eval` gives something else.

    python random_programs.py target/release/tharsis --count 2000 --seed 7 --only 'Series.rank' --show 2

Needs pandas as `record.py` does. Lines worth keeping go into a file beside this one, and `record.py` writes their
results. Counted are equal results (`same`), both refused (`refused`), other results (`differ`), operations or options
that are not there (`missing`). Known differences are listed in docs/programs-over-frames.md.
"""

import argparse
import collections
import json
import random
import re
import subprocess
import warnings

import record

warnings.simplefilter("ignore")

MISSING = {"na": 1}
NUMBERS = ("n", "m", "f", "h", "g")
TEXTS = ("a", "b", "B", "", "zz", "a b", "Ab1", " pad ", "x-y-z", "12", "ñ")
REDUCTIONS = "sum mean min max count std var median prod nunique sem skew kurt any all idxmin idxmax".split()
AGGREGATES = "sum mean min max count std var median nunique".split()
SO_FAR = "cumsum cumprod cummin cummax".split()
OPERATORS = "add sub mul div floordiv mod pow radd rsub rmul rdiv rfloordiv rmod eq ne lt le gt ge".split()
INTERPOLATIONS = ["linear", "lower", "higher", "nearest", "midpoint"]
SORT = {"ascending": [True, False], "na_position": ["first", "last"], "ignore_index": [True]}
KEEP = {"keep": ["first", "last", False], "ignore_index": [True]}
RANK = {
    "method": ["average", "min", "max", "first", "dense"],
    "ascending": [True, False],
    "na_option": ["keep", "top", "bottom"],
    "pct": [True, False],
}
SKIPNA = {"skipna": [True, False]}
LIMIT = {"limit": [1, 2]}
LINE = {"limit": [1, 2], "limit_direction": ["forward", "backward", "both"]}
COUNTS = {"normalize": [True], "sort": [True, False], "ascending": [True, False], "dropna": [True, False]}
ROLLING = {"min_periods": [0, 1, 2], "center": [True], "closed": ["left", "right", "both", "neither"]}
EWM = {"adjust": [True, False], "ignore_na": [True, False], "min_periods": [0, 2]}
CUT = {"labels": [False], "right": [True, False], "include_lowest": [True], "precision": [1, 2]}

# Methods of a series of numbers: name, arguments, options. Arguments are lists to choose from.
OF_NUMBERS = [
    *((name, [], SKIPNA) for name in REDUCTIONS if name not in ("count", "nunique")),
    *((name, [], SKIPNA) for name in SO_FAR),
    *((name, [[0, 1, 2, -1, 0.5]], {"fill_value": [0, 2]}) for name in OPERATORS),
    ("diff", [[1, -1, 2]], {}),
    ("pct_change", [[1, -1, 2]], {}),
    ("nlargest", [[1, 2, 3, 20]], {"keep": ["first", "last", "all"]}),
    ("nsmallest", [[1, 2, 3, 20]], {"keep": ["first", "last", "all"]}),
    ("describe", [], {}),
    ("quantile", [[0.5, 0, 1, [0.25, 0.75]]], {"interpolation": INTERPOLATIONS}),
    ("clip", [[-1, 0], [1, 2]], {}),
    ("between", [[-1], [2]], {"inclusive": ["both", "neither", "left", "right"]}),
    ("interpolate", [], LINE),
    ("round", [[0, 1, -1]], {}),
    ("replace", [[{"o": [[1, 10], [0, 20]]}]], {}),
    ("map", [[{"o": [[1, 10], [2, 20], [0, 0]]}]], {}),
    ("agg", [[["sum", "max"], ["count", "min"], "mean"]], {}),
    ("astype", [["float64", "str", "bool"]], {}),
]
# Methods of any series.
OF_ALL = [
    ("sort_values", [], SORT),
    ("sort_index", [], {"ascending": [True, False]}),
    ("head", [[0, 1, 3, -2]], {}),
    ("tail", [[0, 1, 3, -2]], {}),
    ("drop_duplicates", [], KEEP),
    ("duplicated", [], {"keep": KEEP["keep"]}),
    ("value_counts", [], COUNTS),
    ("mode", [], {"dropna": [True, False]}),
    ("nunique", [], {"dropna": [True, False]}),
    ("shift", [[1, -1, 2, 0]], {}),
    ("rank", [], RANK),
    ("isna", [], {}),
    ("dropna", [], {"ignore_index": [True]}),
    ("ffill", [], LIMIT),
    ("bfill", [], LIMIT),
    ("isin", [[[1, 2], ["a", "x", ""], []]], {}),
    ("reset_index", [], {"drop": [True, False], "name": ["q"]}),
    ("factorize", [], {"sort": [True], "use_na_sentinel": [True, False]}),
    ("iloc", [[{"s": [None, 3, None]}, {"s": [-3, None, 2]}, {"s": [None, None, -1]}, [0]]], {}),
    ("drop", [[[0], ["a"]]], {"errors": ["ignore"]}),
    ("repeat", [[0, 1, 2]], {}),
]
# Methods of `.str` and `.dt`.
OF_TEXTS = [
    *((name, [], {}) for name in "len lower upper title capitalize swapcase strip isalpha isdigit istitle".split()),
    ("contains", [["a", "A.", "[ab]"]], {"case": [False], "na": [True, False]}),
    ("match", [["a", "[ab]"]], {"case": [False]}),
    ("startswith", [["a", "x"]], {"na": [True]}),
    ("find", [["b"], [0, 1], [3]], {}),
    ("replace", [["a"], ["Q"]], {"n": [1], "case": [False]}),
    ("split", [["-", "a"]], {"n": [1]}),
    ("rsplit", [["-", "a"]], {"n": [1]}),
    ("slice", [[0, 1, -2], [3]], {}),
    ("pad", [[5]], {"side": ["both", "right"], "fillchar": ["*"]}),
    ("count", [["[ab]"]], {}),
]
OF_TIMES = [
    *((name, [], {}) for name in "year month day hour dayofweek quarter is_month_end normalize day_name date".split()),
    ("floor", [["D", "6h"]], {}),
    ("round", [["D"]], {}),
    ("strftime", [["%Y/%m/%d %H:%M", "%j %A"]], {}),
]
OF_ZONES = [
    *((name, [], {}) for name in "year day hour dayofweek normalize day_name is_month_start date".split()),
    ("floor", [["D", "6h"]], {}),
    ("ceil", [["D"]], {}),
    ("tz_convert", [["UTC", "America/New_York", "Asia/Kolkata"]], {}),
    ("tz_localize", [[None]], {}),
    ("strftime", [["%Y/%m/%d %H:%M"]], {}),
]
OF_LENGTHS = [
    *((name, [], {}) for name in "total_seconds days seconds microseconds nanoseconds".split()),
    *((name, [["D", "h", "15min", "s", "ms"]], {}) for name in ("floor", "ceil", "round")),
]
# Methods of a series of durations, and of its groups.
LENGTHS = "sum mean min max count std median sem var prod".split()
OF_LENGTHS_ALL = [
    *((name, [], SKIPNA) for name in LENGTHS if name != "count"),
    *((name, [], {}) for name in ("cumsum", "cummin", "cummax", "abs")),
    ("diff", [[1, -1]], {}),
    ("quantile", [[0.5, 0.25]], {}),
    *((name, [[2, -1, 0.5]], {}) for name in ("mul", "rmul", "truediv", "floordiv")),
    *((name, [[{"td": [90, "s"]}, {"td": [1, "ms"]}]], {}) for name in "add sub rsub truediv floordiv mod lt eq".split()),
    ("mod", [[2, 7]], {}),
    ("astype", [["str"]], {}),
    ("mode", [], {"dropna": [True, False]}),
]
OF_LENGTH_GROUPS = [
    *((name, [], {}) for name in LENGTHS if name not in ("var", "prod")),
    *((name, [], {}) for name in ("cumsum", "cummin", "cummax", "first", "last", "nunique")),
    ("transform", [["sum", "mean", "min", "max", "count"]], {}),
    ("shift", [[1, -1]], {}),
]
OF_GROUPS = [
    *((name, [], {}) for name in REDUCTIONS),
    *((name, [], {}) for name in SO_FAR),
    ("agg", [[["sum", "max"], "mean"]], {}),
    ("transform", [AGGREGATES], {}),
    ("rank", [], RANK),
    ("shift", [[1, -1]], {}),
    ("diff", [[1, -1]], {}),
    ("ffill", [], LIMIT),
    ("head", [[1, 2, -1]], {}),
    ("tail", [[1, 2, -1]], {}),
    ("nth", [[0, 1, -1]], {}),
    ("quantile", [[0.5, [0.25, 0.75]]], {}),
    ("cumcount", [], {}),
    ("ngroup", [], {}),
    ("size", [], {}),
    ("describe", [], {}),
]


class Source:
    """Random tables and programs over them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tables, self.steps = {}, []

    def some(self, values):
        """Some of the values, one at least."""
        return self.random.sample(values, self.random.randint(1, len(values)))

    def options(self, choices):
        """Some options, each with one of its values."""
        return {name: self.random.choice(values) for name, values in choices.items() if self.random.random() < 0.5}

    def time(self):
        """A time of the first quarter of 2024."""
        day, hour = self.random.randint(0, 60), self.random.choice([0, 0, 6, 23])
        return {"ts": f"2024-{1 + day // 28:02}-{1 + day % 28:02}T{hour:02}:00:00", "tz": None, "u": "ns"}

    def instant(self):
        """A time in a zone, around a change of its clocks."""
        hour = self.random.choice([0, 1, 3, 12, 22, 23])
        offset = "+01:00" if self.random.random() < 0.5 else "+02:00"
        day = self.random.randint(1, 30) if offset == "+01:00" else self.random.randint(1, 26)
        month = "03" if offset == "+01:00" else "10"
        return {"ts": f"2024-{month}-{day:02}T{hour:02}:00:00{offset}", "tz": "Europe/Berlin", "u": "ns"}

    def length(self):
        """A duration."""
        unit = self.random.choice([86_400_000, 3_600_000, 1000, 1])
        return {"td": [self.random.choice([-3, -1, 0, 1, 2, 7]) * unit + self.random.choice([0, 0, 500]), "ms"]}

    def column(self, kind, rows):
        """Values of a column, and their type."""
        makes = {
            "n": (lambda: self.random.randint(-4, 4), "int64"),
            "h": (lambda: self.random.randint(-5, 5), "int8"),
            "g": (lambda: self.random.choice([0.5, -1.25, 2.0, 0.0, 8.0]), "float32"),
            "z": (self.instant, "datetime64[ns, Europe/Berlin]"),
            "m": (lambda: self.random.randint(0, 2), "int64"),
            "f": (lambda: self.random.choice([round(self.random.gauss(0, 10), 2), 0.5, -1.5, 2.0, 0.0]), "float64"),
            "s": (lambda: self.random.choice(TEXTS), "str"),
            "k": (lambda: self.random.choice("xyz"), "str"),
            "b": (lambda: self.random.random() < 0.5, "bool"),
            "d": (self.time, "datetime64[ns]"),
            "l": (self.length, "timedelta64[ns]"),
        }
        make, dtype = makes[kind]
        lacks = kind in "fgskdlz" and self.random.random() < 0.6
        return [MISSING if lacks and self.random.random() < 0.25 else make() for _ in range(rows)], dtype

    def index(self, rows):
        """Labels of rows, and their type; none for positions."""
        chosen = self.random.randint(0, 5)
        if chosen == 0:
            return self.random.sample(range(-5, 30), rows), "int64"
        if chosen == 1:
            return [self.random.randint(0, 4) for _ in range(rows)], "int64"
        if chosen == 2:
            return self.random.sample("abcdefghijklmnopqrstuvw", rows), "str"
        return None

    def table(self):
        """A table of up to 14 rows."""
        rows = self.random.choice([0, 1, 2, 3, 5, 7, 9, 12, 14])
        kinds = self.some(list("nmfskbdlhgz")) if self.random.random() < 0.5 else self.some(list("nmfskbdl"))
        if not set(kinds) & set(NUMBERS):
            kinds.append("f")
        made = [self.column(kind, rows) for kind in kinds]
        table = {"columns": kinds, "lit": [lit for lit, _ in made], "dtypes": [dtype for _, dtype in made]}
        index = self.index(rows)
        if index:
            table = {"columns": ["i", *kinds], "lit": [index[0], *table["lit"]], "dtypes": [index[1], *table["dtypes"]]}
            table["index"] = ["i"]
        return table

    def step(self, operation, args, options=None):
        """Adds a step; returns a reference to its result."""
        name = f"v{len(self.steps)}"
        self.steps.append([name, operation, args, options or {}])
        return {"$": name}

    def one_of(self, prefix, methods, owner):
        """A step of one of some methods."""
        name, args, options = self.random.choice(methods)
        chosen = self.options(options) | ({"expand": True} if name in ("split", "rsplit") else {})
        if name.startswith("sort_"):
            chosen["kind"] = "stable"
        return self.step(prefix + name, [owner, *map(self.random.choice, args)], chosen)

    def of_series(self, owner, kind):
        """A step of a series of a kind of column."""
        if kind == "s" and self.random.random() < 0.5:
            return self.one_of("pd.Series.str.", OF_TEXTS, owner)
        if kind == "d" and self.random.random() < 0.5:
            return self.one_of("pd.Series.dt.", OF_TIMES, owner)
        if kind == "z" and self.random.random() < 0.5:
            return self.one_of("pd.Series.dt.", OF_ZONES, owner)
        if kind == "l" and self.random.random() < 0.6:
            chosen = self.random.random() < 0.5
            methods = ("pd.Series.dt.", OF_LENGTHS) if chosen else ("pd.Series.", OF_LENGTHS_ALL)
            return self.one_of(*methods, owner)
        if kind in NUMBERS and self.random.random() < 0.15:
            return self.window(owner, "Series")
        if kind in NUMBERS and self.random.random() < 0.05:
            return self.step("pd.cut", [owner, self.random.choice([[-5, 0.5, 2, 5], 3])], self.options(CUT))
        methods = OF_ALL + OF_NUMBERS if kind in NUMBERS else OF_ALL
        return self.one_of("pd.Series.", methods, owner)

    def window(self, owner, kind):
        """A window of rows and an aggregate of it."""
        aggregates = "sum mean min max count std var median skew rank".split()
        chosen = self.random.randint(0, 2)
        if chosen == 0:
            made = self.step(f"pd.{kind}.rolling", [owner, self.random.choice([1, 2, 3])], self.options(ROLLING))
            return self.step("pd.Rolling." + self.random.choice(aggregates), [made])
        if chosen == 1:
            made = self.step(f"pd.{kind}.expanding", [owner], self.options({"min_periods": [0, 1, 2]}))
            return self.step("pd.Expanding." + self.random.choice(aggregates), [made])
        made = self.step(f"pd.{kind}.ewm", [owner], {"alpha": 0.3} | self.options(EWM))
        return self.step("pd.EWM." + self.random.choice(["mean", "std", "var"]), [made])

    def of_spans(self, owner, columns):
        """Spans of time of a frame, and a step of them."""
        label = self.random.choice([column for column in columns if column in "dz"])
        values = [column for column in columns if column in NUMBERS]
        owner = self.step("pd.DataFrame.dropna", [owner], {"subset": [label]})
        owner = self.step("pd.DataFrame.sort_values", [owner, label], {"kind": "stable"})
        owner = self.step("pd.DataFrame.set_index", [owner, label])
        owner = self.step("getitem", [owner, self.some(values)])
        rule = self.random.choice(["D", "12h", "2D", "W", "MS", "6h"])
        spans = self.step("pd.DataFrame.resample", [owner, rule])
        return self.step("pd.Resampler." + self.random.choice(AGGREGATES[:6] + ["first", "last", "size"]), [spans])

    def of_categories(self, owner, columns):
        """A step of a series of categories."""
        series = self.step("getitem", [owner, self.random.choice([column for column in columns if column in "sk"])])
        made = self.step("pd.Series.astype", [series, "category"])
        if self.random.random() < 0.3:
            made = self.step("pd.Series.cat.set_categories", [made, ["y", "x", "b", "zz", "z"]])
        chosen = self.random.choice(["value_counts", "sort_values", "codes", "unique", "nunique", "isna", "categories"])
        if chosen in ("codes", "categories"):
            return self.step(f"pd.Series.cat.{chosen}", [made])
        return self.step(f"pd.Series.{chosen}", [made], {"kind": "stable"} if chosen == "sort_values" else {})

    def near(self, owner):
        """A join by the nearest times."""
        sides = [self.step("pd.DataFrame.dropna", [side], {"subset": ["d"]}) for side in (owner, {"$": "U"})]
        sides = [self.step("pd.DataFrame.sort_values", [side, "d"], {"kind": "stable"}) for side in sides]
        tolerance = [{"td": [hours * 3_600_000, "ms"]} for hours in (6, 48, 240)]
        options = {"direction": ["backward", "forward", "nearest"], "allow_exact_matches": [True, False]}
        chosen = self.options(options | {"tolerance": tolerance})
        return self.step("pd.merge_asof", sides, chosen | {"on": "d"})

    def of_groups(self, owner, columns):
        """Groups of a frame and a step of them."""
        keys = self.some(columns)[:2]
        values = [column for column in columns if column in NUMBERS and column not in keys]
        flags = {"sort": [True, False], "dropna": [True, False], "as_index": [True, False]}
        groups = self.step("pd.DataFrame.groupby", [owner, keys], self.options(flags))
        if "l" in columns and "l" not in keys and self.random.random() < 0.3:
            return self.one_of("pd.GroupBy.", OF_LENGTH_GROUPS, self.step("getitem", [groups, "l"]))
        if not values:
            return self.step("pd.GroupBy.size", [groups])
        chosen = self.some(values)
        single = chosen[0] if self.random.random() < 0.5 else chosen
        return self.one_of("pd.GroupBy.", OF_GROUPS, self.step("getitem", [groups, single]))

    def of_frame(self, owner, columns):
        """A step of a frame."""
        some, numbers = self.some(columns), [column for column in columns if column in NUMBERS]
        other = [column for column in columns if column in self.tables.get("U", {"columns": []})["columns"]]
        steps = [
            ("sort_values", [owner, some], SORT),
            ("drop_duplicates", [owner], KEEP | {"subset": [some]}),
            ("dropna", [owner], {"subset": [some], "how": ["any", "all"], "ignore_index": [True]}),
            ("value_counts", [owner], COUNTS | {"subset": [some]}),
            ("nunique", [owner], {"dropna": [True, False], "axis": [0, 1]}),
            ("mode", [owner], {"dropna": [True, False], "numeric_only": [True]}),
            ("set_index", [owner, some], {"drop": [True, False], "append": [True, False]}),
            ("reset_index", [owner], {"drop": [True, False]}),
            (self.random.choice(REDUCTIONS[:13]), [owner], SKIPNA | {"numeric_only": [True], "axis": [0, 1]}),
        ]
        if numbers:
            steps.append(("nlargest", [owner, 2, self.some(numbers)], {"keep": ["first", "last", "all"]}))
            names = ("rank", RANK), ("interpolate", LINE), ("describe", {}), ("cumsum", SKIPNA), ("diff", {})
            chosen = self.step("getitem", [owner, numbers])
            steps.extend((name, [chosen], options) for name, options in names)
        if other:
            how = {"how": ["inner", "left", "right", "outer"], "sort": [True], "indicator": [True]}
            side = owner if self.random.random() < 0.2 else {"$": "U"}
            steps.append(("merge", [owner, side], how | {"on": [other[:1]]}))
        name, args, options = self.random.choice(steps)
        chosen = self.options(options)
        if name == "merge":
            chosen["on"] = other[:1]
        return self.step("pd.DataFrame." + name, args, chosen | ({"kind": "stable"} if "sort" in name else {}))

    def program(self):
        """A program of one to three operations, with its tables."""
        self.steps = []
        self.tables = {"T": self.table(), "U": self.table()}
        columns = [column for column in self.tables["T"]["columns"] if column != "i"]
        owner = {"$": "T"}
        for _ in range(self.random.randint(0, 2)):
            numbers = [column for column in columns if column in NUMBERS]
            label, bound = self.random.choice(numbers), self.random.choice([-1, 0, 1])
            if self.random.random() < 0.5:
                owner = self.step("pd.DataFrame.sort_values", [owner, label], {"kind": "stable"})
            series = self.step("getitem", [owner, label])
            if self.random.random() < 0.5:
                owner = self.step("getitem", [owner, self.step("pd.Series.ge", [series, bound])])
            else:
                owner = self.step("pd.DataFrame.assign", [owner], {label: self.step("pd.Series.rsub", [series, bound])})
        chosen = self.random.random()
        has_times = any(column in "dz" for column in columns)
        if chosen < 0.05 and has_times:
            self.of_spans(owner, columns)
        elif chosen < 0.08 and any(column in "sk" for column in columns):
            self.of_categories(owner, columns)
        elif chosen < 0.12 and "d" in columns and "d" in self.tables["U"]["columns"]:
            self.near(owner)
        elif chosen < 0.2:
            self.of_groups(owner, columns)
        elif chosen < 0.4:
            self.of_frame(owner, columns)
        else:
            kind = self.random.choice(columns)
            self.of_series(self.step("getitem", [owner, kind]), kind)
        return {"in": ["T", "U"], "prog": self.steps, "tables": self.tables}


def cell(value):
    """A value of a reply in the form of `record.py`."""
    if not isinstance(value, dict):
        return value
    if "na" in value:
        return None
    if "f" in value:
        return None if value["f"] == "nan" else value["f"]
    if "ts" in value:
        clock, fraction, offset = re.fullmatch(r"([^.Z+]*?)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d)?", value["ts"]).groups("")
        return f"ts:{clock}.{fraction:0<9}{offset.replace('Z', '+00:00')}"
    if "td" in value:
        return "td:%d" % (value["td"][0] * {"s": 10**9, "ms": 10**6, "us": 1000}.get(value["td"][1], 1))
    return int(value["i"]) if "i" in value else value


def normal(value):
    """A result of a reply in the form of `record.py`."""
    if isinstance(value, list):
        return [normal(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "tbl" in value:
        table, columns = value["tbl"], normal(value["tbl"]["lit"])
        levels = len(table["index"])
        rows = len(columns[0]) if columns else 0
        names = table.get("names", table["index"]) if levels else [None]
        made = {"names": names, "index": columns[:levels] or [list(range(rows))], "lit": columns[levels:]}
        return made | ({"name": table["name"]} if "name" in table else {"columns": table["columns"][levels:]})
    if "arr" in value:
        return {"arr": normal(value["arr"]["lit"])}
    if "t" in value:
        return normal(value["t"])
    if "o" in value:
        return {"dict": normal(value["o"])}
    return cell(value)


def same(want, found, part=1e-9):
    """Whether a result is what pandas gave, but for the rounding of sums."""
    if isinstance(want, dict) and isinstance(found, dict):
        if "labels" in want and "lit" in found:
            return same(want["labels"], found["lit"], part)
        return want.keys() == found.keys() and all(same(want[key], found[key], part) for key in want)
    if isinstance(want, dict) and isinstance(found, list):
        return same(want.get("arr", want.get("labels")), found if "arr" in want else [found], part)
    if isinstance(want, list) and isinstance(found, dict):
        return same(want, found["arr"] if "arr" in found else (found.get("lit") or [None])[0], part)
    if isinstance(want, list) and isinstance(found, list):
        return len(want) == len(found) and all(same(*pair, part) for pair in zip(want, found))
    if isinstance(want, bool) or isinstance(found, bool):
        return want is found
    if isinstance(want, (int, float)) and isinstance(found, (int, float)):
        return want == found or abs(want - found) <= part * max(abs(want), abs(found), 1)
    return want == found


def judged(case, reply):
    """The word for a reply, and the result in the form of `record.py`."""
    want = record.run(case, case["tables"])
    last = case["prog"][-1][0]
    found = {"ok": normal(reply["out"][last])} if reply["ok"] else {"err": reply["err"]["class"]}
    if "err" in want and "err" in found:
        return "refused", want, found
    if found.get("err") == "NotImplemented":
        return "missing", want, found
    # pandas rounds steps over 32 bits to 32 bits.
    narrow = "float32" in json.dumps(case["tables"])
    return "same" if same(want, found, 1e-6 if narrow else 1e-9) else "differ", want, found


def main():
    """Runs programs and prints the counts, and differences by the last operation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tharsis", help="the binary")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--only", default="", help="a regular expression that the program must match")
    parser.add_argument("--show", type=int, default=1, help="differences to print for each operation")
    asked = parser.parse_args()
    print("seed", asked.seed)
    source, counts, shown = Source(asked.seed), collections.Counter(), collections.Counter()
    evaluator = subprocess.Popen([asked.tharsis, "eval"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for number in range(asked.count):
        case = source.program()
        while not re.search(asked.only, json.dumps(case["prog"])):
            case = source.program()
        context = {"chunks": source.random.choice([1, 2, 3, 100]), "mode": source.random.choice(["eager", "lazy"])}
        request = {"v": 1, "id": str(number), "ctx": context, "in": case["tables"], "prog": case["prog"]}
        evaluator.stdin.write(json.dumps(request | {"out": [case["prog"][-1][0]]}) + "\n")
        evaluator.stdin.flush()
        reply = json.loads(evaluator.stdout.readline())
        word, want, found = judged(case, reply)
        counts[word] += 1
        operation = case["prog"][-1][1]
        shown[operation] += word in ("differ", "missing")
        if word in ("differ", "missing") and shown[operation] <= asked.show:
            print(json.dumps({"in": case["tables"], "prog": case["prog"], "ctx": context}, ensure_ascii=False))
            print("  pandas ", json.dumps(want, ensure_ascii=False))
            print("  tharsis", json.dumps(found, ensure_ascii=False), reply.get("err", {}).get("msg", ""))
    print(dict(counts))


if __name__ == "__main__":
    main()
