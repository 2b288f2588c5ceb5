"""Writes what pandas gives for the programs of the files beside this one.

    python record.py labels.jsonl index.jsonl ...

Each line of a file is {"in": names of tables in tables.json, "prog": steps, "want": the result}. Steps are those
of `tharsis eval`; the last one is the result. The tests of this folder read the lines and need no Python.
"""

import datetime
import json
import math
import pathlib
import sys
import warnings

import numpy as np
import pandas as pd

warnings.simplefilter("ignore")


def scalar(value):
    """A value of a program."""
    if not isinstance(value, dict):
        return value
    if "na" in value:
        return None
    if "f" in value:
        return float(value["f"])
    if "ts" in value:
        return pd.Timestamp(value["ts"], tz=value.get("tz")).as_unit(value.get("u", "ns"))
    if "td" in value:
        return pd.Timedelta(*value["td"])
    return int(value["i"])


def column(values, dtype):
    """A column of a table."""
    values = [scalar(value) for value in values]
    if dtype == "str":
        return pd.Series(values, dtype="str")
    if dtype in ("int64", "float64"):
        missing = None in values
        values = [np.nan if value is None else value for value in values]
        return pd.Series(values, dtype="float64" if missing else dtype)
    if dtype == "bool":
        return pd.Series(values, dtype="object" if None in values else "bool")
    if dtype.startswith("datetime64") and ", " not in dtype:
        return pd.to_datetime(pd.Series(values, dtype="object")).astype(dtype)
    return pd.Series(values, dtype=dtype)


def table(given):
    """A table of a request."""
    columns = zip(given["columns"], given["lit"], given["dtypes"])
    frame = pd.DataFrame({label: column(values, dtype) for label, values, dtype in columns})
    return frame.set_index(given["index"]) if given.get("index") else frame


def decode(value, names):
    """An argument of a step."""
    if isinstance(value, list):
        return [decode(part, names) for part in value]
    if not isinstance(value, dict):
        return value
    if "$" in value:
        return names[value["$"]]
    if "t" in value:
        return tuple(decode(part, names) for part in value["t"])
    if "s" in value:
        return slice(*[scalar(part) for part in value["s"]])
    if "o" in value:
        return {decode(key, names): decode(part, names) for key, part in value["o"]}
    return scalar(value)


def step(operation, args, options):
    """The result of one step."""
    if operation == "getitem":
        return args[0][args[1]]
    space, *path = operation.split(".")
    if space == "np" or len(path) == 1:
        return getattr(np if space == "np" else pd, path[0])(*args, **options)
    owner, name = args[0], path[-1]
    if len(path) == 3:
        owner = getattr(owner, path[1])
    if not hasattr(owner, name):
        name = f"__{name}__"
    if name in ("update", "insert") and not isinstance(owner, pd.Index):
        changed = owner.copy()
        getattr(changed, name)(*args[1:], **options)
        return changed
    if name == "pop":
        owner = owner.copy()
    found = getattr(owner, name)
    if name in ("loc", "iloc", "at", "iat"):
        return found[args[1]] if 1 < len(args) else found
    if callable(found) and not isinstance(found, (pd.DataFrame, pd.Series, pd.Index, np.dtype)):
        found = found(*args[1:], **options)
    return list(found) if name in ("items", "itertuples") else found


def cell(value):
    """One value of a result."""
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        value = float(value)
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else str(value)
    if isinstance(value, pd.Timestamp):
        return "ts:" + value.isoformat(timespec="nanoseconds")
    if isinstance(value, pd.Timedelta):
        return f"td:{value.as_unit('ns').value}"
    if isinstance(value, np.datetime64):
        return cell(pd.Timestamp(value))
    if isinstance(value, np.timedelta64):
        return cell(pd.Timedelta(value))
    if isinstance(value, (str, pd.Interval, datetime.date, datetime.time)):
        return str(value)
    raise NotImplementedError(f"a result with {value!r}")


def levels(index):
    """The labels of each level of an index."""
    if isinstance(index, pd.MultiIndex):
        return [[cell(label) for label in index.get_level_values(level)] for level in range(index.nlevels)]
    return [[cell(label) for label in index]]


def label(name):
    """A label as the text that it is here."""
    return "_".join(str(part) for part in name) if isinstance(name, tuple) else str(name)


def names_of(index):
    """The names of the levels of an index."""
    return [None if name is None else str(name) for name in index.names]


def result(value):
    """A result as JSON."""
    if isinstance(value, pd.DataFrame):
        columns = [[cell(part) for part in value.iloc[:, at]] for at in range(value.shape[1])]
        labels = [label(name) for name in value.columns]
        index = {"names": names_of(value.index), "index": levels(value.index)}
        return {"columns": labels, "lit": columns, **index}
    if isinstance(value, pd.Series):
        name = None if value.name is None else label(value.name)
        index = {"names": names_of(value.index), "index": levels(value.index)}
        return {"name": name, "lit": [[cell(part) for part in value]], **index}
    if isinstance(value, pd.Index):
        return {"labels": levels(value), "names": names_of(value)}
    if isinstance(value, np.ndarray):
        return {"arr": [[cell(part) for part in row] if value.ndim == 2 else cell(row) for row in value]}
    if isinstance(value, pd.api.extensions.ExtensionArray):
        return [cell(part) for part in value]
    if isinstance(value, (list, tuple)):
        return [result(part) for part in value]
    if isinstance(value, slice):
        return {"s": [cell(part) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, dict):
        return {"dict": [[result(key), result(part)] for key, part in value.items()]}
    if isinstance(value, (np.dtype, pd.api.extensions.ExtensionDtype)):
        return {"dt": str(value)}
    return cell(value)


def run(case, tables):
    """What pandas gives for a program, or the name of the exception."""
    names = {name: table(tables[name]) for name in case["in"]}
    try:
        for name, operation, *arguments in case["prog"]:
            args = decode(arguments[0], names) if arguments else []
            options = arguments[1] if 1 < len(arguments) else {}
            names[name] = step(operation, args, {key: decode(part, names) for key, part in options.items()})
        return {"ok": result(names[name])}
    except Exception as error:
        return {"err": type(error).__name__}


def main(files):
    """Writes the results of files anew."""
    folder = pathlib.Path(__file__).parent
    tables = json.loads((folder / "tables.json").read_text())
    for file in files:
        lines = []
        for line in (folder / file).read_text().splitlines():
            case = json.loads(line)
            case["want"] = run(case, tables)
            lines.append(json.dumps(case, ensure_ascii=False))
        (folder / file).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
