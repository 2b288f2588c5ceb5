"""Rows of programs and of what NumPy answers, for the scripts beside this one."""
import base64
import importlib
import json

import numpy as np

INF, NAN = np.inf, np.nan
rng = np.random.default_rng(7)


def raw(a):
    a = np.asarray(a)
    return {"dtype": a.dtype.str, "shape": list(a.shape), "raw": base64.b64encode(a.tobytes()).decode()}


def encode(v, inputs):
    """A Python value as an argument of a program; arrays become inputs."""
    if isinstance(v, np.ndarray):
        inputs[f"x{len(inputs)}"] = raw(v)
        return {"$": f"x{len(inputs) - 1}"}
    if isinstance(v, np.dtype):
        return {"dt": v.name}
    if isinstance(v, slice):
        return {"s": [v.start, v.stop, v.step]}
    if isinstance(v, tuple):
        return {"t": [encode(x, inputs) for x in v]}
    if isinstance(v, list):
        return [encode(x, inputs) for x in v]
    if isinstance(v, float):
        return {"f": v.hex() if np.isfinite(v) else str(v)}
    if isinstance(v, complex):
        return {"c": [encode(v.real, inputs), encode(v.imag, inputs)]}
    return v


def row(op, *args, ulps=0, scale=0.0, **kw):
    inputs = {}
    encoded = [encode(a, inputs) for a in args]
    keywords = {k: encode(v, inputs) for k, v in kw.items()}
    module, name = op.rsplit(".", 1)
    function = getattr(importlib.import_module("numpy" + module[2:] if module.split(".")[0] == "np" else module), name)
    try:
        found = function(*args, **kw)
        if isinstance(found, (tuple, list)):
            flat = [part for some in found for part in (some if isinstance(some, list) else [some])]
            expect = {"parts": [raw(part) for part in flat]}
        else:
            expect = raw(found)
    except Exception as e:
        expect = {"error": type(e).__name__}
    request = {"in": inputs, "prog": [["r", op, encoded, keywords]], "out": ["r"], "ctx": {"inline": "raw"}}
    print(json.dumps({"request": request, "expect": expect, "ulps": ulps, "scale": scale}))


def a(values, dtype="float64"):
    return np.array(values, dtype=dtype)


def some(shape, dtype="float64"):
    """Numbers with equals among them."""
    return (rng.integers(-8, 9, size=shape) / (1 if np.dtype(dtype).kind in "iu" else 2)).astype(dtype)
