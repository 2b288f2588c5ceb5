"""Writes warnings.jsonl: what NumPy warns of at special arguments, one line per function and dtype."""

import json
import pathlib
import warnings

import numpy as np

UNARY = """exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan arcsin arccos arctan sinh cosh
tanh arcsinh arccosh arctanh cbrt floor negative sign""".split()
BINARY = """add subtract multiply divide floor_divide remainder fmod power hypot arctan2 logaddexp logaddexp2
maximum minimum""".split()


def told(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return sorted({str(warning.message) for warning in caught})


def number(x):
    return {"f": float(x).hex() if np.isfinite(x) else str(float(x))}


def rows():
    for dtype in (np.float32, np.float64):
        largest = float(np.finfo(dtype).max)
        special = [np.inf, -np.inf, np.nan, 0.0, 1.0, -1.0, 2.0, largest]
        for name in UNARY + BINARY:
            function = getattr(np, name)
            count = 1 if name in UNARY else 2
            cases = []
            for x in special:
                for y in special if count == 2 else [None]:
                    if name == "power" and x == largest and y == np.inf:
                        # Only some mathematical libraries raise the flag here.
                        continue
                    arguments = [x, y][:count]
                    found = told(lambda: function(*(np.array([a], dtype) for a in arguments)))
                    cases.append([[number(a) for a in arguments], found])
            yield {"np": "np." + name, "dtype": np.dtype(dtype).name, "cases": cases}


lines = [json.dumps(row) + "\n" for row in rows()]
pathlib.Path(__file__).with_name("warnings.jsonl").write_text("".join(lines))
