"""Makes ufuncs.jsonl: programs about numbers beside arrays, dtypes and special values, and what NumPy answers. Run with NumPy 2: python make_ufuncs.py > ufuncs.jsonl"""
import base64
import json
import warnings

import numpy as np

warnings.simplefilter("ignore")
INF, NAN = np.inf, np.nan


def raw(a):
    a = np.asarray(a)
    return {"dtype": a.dtype.str, "shape": list(a.shape), "raw": base64.b64encode(a.tobytes()).decode()}


def encode(v):
    """A Python value as an argument of a program."""
    if isinstance(v, np.dtype):
        return {"dt": v.name}
    if isinstance(v, tuple):
        return {"t": [encode(x) for x in v]}
    if isinstance(v, bool) or v is None:
        return v
    if isinstance(v, int):
        return v if abs(v) < 2**53 else {"i": str(v)}
    if isinstance(v, float):
        return {"f": v.hex() if np.isfinite(v) else str(v)}
    if isinstance(v, complex):
        return {"c": [encode(v.real), encode(v.imag)]}
    return v


def row(op, *args, ulps=0, text=False, whole=False, **kw):
    """Arrays among the arguments are inputs; `text` also asks for the words of the error; `whole` leaves arrays in one chunk."""
    inputs = {f"x{i}": raw(a) for i, a in enumerate(args) if isinstance(a, np.ndarray)}
    encoded = [{"$": f"x{i}"} if isinstance(a, np.ndarray) else encode(a) for i, a in enumerate(args)]
    function = np
    for part in op.split(".")[1:]:
        function = getattr(function, part)
    try:
        expect = raw(function(*args, **kw))
    except Exception as e:
        expect = {"error": type(e).__name__}
        if text:
            expect["text"] = str(e)
    request = {"in": inputs, "prog": [["r", op, encoded, {k: encode(v) for k, v in kw.items()}]], "out": ["r"], "ctx": {"inline": "raw"}}
    print(json.dumps({"request": request, "expect": expect, "ulps": ulps, "scale": 0.0, "signs": True, "whole": whole}))


def a(values, dtype):
    return np.array(values, dtype=dtype)


# Numbers beside float16 are rounded to it first.
h = a([7, 0, -0.0, INF, NAN, 65504, 1e-7, 3.7], "float16")
for op in ["multiply", "divide", "floor_divide", "remainder", "fmod", "subtract", "add", "arctan2", "greater", "less_equal", "equal", "not_equal", "maximum", "copysign"]:
    for number in [3.7, 70000, 5e9, 1e-9, 2049, -3]:
        ulps = 1 if op == "arctan2" else 0
        row(f"np.{op}", h, number, ulps=ulps)
        row(f"np.{op}", number, h, ulps=ulps)
for y in [3.7, 70000, 1e-7, 0]:
    row("np.isclose", h, y)
row("np.isclose", h, np.nextafter(h, np.float16(0)))
row("np.isclose", a([1, 2, 300], "int16"), 2.000001)
row("np.isclose", a([1, 2, 3], "float32"), a([1, 2.00001, 3.1], "float32"))
# What float16 functions know of their own numbers.
every = np.arange(0, 65536, 37, dtype="uint16").view("float16")
row("np.spacing", every)
for toward in [0.0, INF, -INF, 1.0]:
    row("np.nextafter", every, np.full(every.shape, toward, "float16"))
for dtype in ["bool", "int8", "uint8"]:
    row("np.spacing", a([0, 1, 1], dtype))
    row("np.nextafter", a([0, 1, 1], dtype), a([1, 0, 1], dtype))
for dtype in ["float16", "float32", "float64", "int8", "bool", "complex128"]:
    row("np.sinc", a([0, 1, 0.5, -2.25] if dtype not in ("int8", "bool") else [0, 1], dtype), ulps=32)

# Whole numbers beyond the dtype beside them, and beyond 64 bits.
BIG, HUGE = 2**64, 10**400
ARRAYS = [a([1, 5], "uint8"), a([-1, 5], "int8"), a([1, 5], "int64"), a([2**64 - 1, 0], "uint64"), a([True, False], "bool"), a([1.5, -2], "float64"), a([1.5, -2], "float32"), a([1j, 2], "complex64")]
for x in ARRAYS:
    for number in [300, -1, 2**40, BIG, -BIG, HUGE]:
        for op in ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "add", "divide", "maximum"]:
            # Overflow of Python's own conversion is left to float64.
            row(f"np.{op}", x, number, text=True)
        row("np.less", number, x)
    for number in [300, -1]:
        for op in ["arctan2", "hypot", "copysign", "logical_and", "floor_divide", "left_shift", "gcd", "bitwise_and", "power", "float_power"]:
            # NumPy takes complex powers step by step in float32.
            row(f"np.{op}", x, number, ulps=256 if x.dtype.kind == "c" else 4)
row("np.arctan2", 300, a([1, 5], "uint8"), ulps=1)
row("np.ldexp", a([1.5, 2], "float32"), 3)
for low, high in [(-1, 3), (2, 300), (-1, 300), (300, 400), (None, 3), (2, None), (None, None), (1.5, 3), (1.5, -1), (0, BIG)]:
    row("np.clip", a([1, 5], "uint8"), low, high)
    row("np.clip", a([1, 5], "float32"), low, high)
for low, high in [(0, a([1], "int8")), (a([0], "bool"), 1), (0, 1), (a([-3], "int8"), 300)]:
    row("np.clip", a([True], "bool"), low, high)
    row("np.clip", a([7], "uint8"), low, high)

# Signed beside unsigned integers of 64 bits.
signed = a([2**63 - 1, -1, 2**62, 2**62 + 1, 0, -(2**63)], "int64")
unsigned = a([2**63, 2**64 - 1, 2**62 + 1, 2**62, 0, 2**63], "uint64")
for op in ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]:
    row(f"np.{op}", signed, unsigned)
    row(f"np.{op}", unsigned, signed)
    row(f"np.{op}", a([-1, 1, 7], "int8"), a([2**64 - 1, 1, 2**63], "uint64"))

# Integers where the result does not fit.
for dtype in ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]:
    row("np.reciprocal", a([0, 1, 2, 3], dtype))
for dtype in ["int8", "int32", "int64", "uint8"]:
    info = np.iinfo(dtype)
    row("np.lcm", a([info.max, info.min, info.max, 0, 12], dtype), a([100, 3, info.max - 1, 5, 18], dtype))
    row("np.gcd", a([info.max, info.min, info.min, 0, 12], dtype), a([100, 3, info.min, 5, 18], dtype))

# Complex numbers in parts.
z = a([complex(1.25, NAN), complex(NAN, INF), complex(-0.0, 1.25), complex(-INF, 2.675), 1 + 0j], "complex128")
for dtype in ["complex128", "complex64"]:
    w = z.astype(dtype)
    row("np.negative", w)
    row("np.nan_to_num", w)
    for decimals in [0, 1, 2]:
        row("np.round", w, decimals)
        row("np.around", w, decimals=decimals)
    for op in ["nanmin", "nanmax"]:
        row(f"np.{op}", w)
        row(f"np.{op}", a([complex(1, NAN), complex(NAN, 2)], dtype))
        row(f"np.{op}", a([complex(NAN, 2), complex(1, NAN)], dtype))
        row(f"np.{op}", a([complex(-INF, -5), complex(NAN, 2)], dtype))

# Dtypes of results.
row("np.angle", a([True], "bool"))
row("np.angle", a([-1, 1], "int8"), ulps=1)
row("np.linalg.cholesky", a([[4.0]], "float32"))
row("np.linalg.cholesky", a([[4.0]], "float16"), text=True)
row("np.linalg.svdvals", a([[4.0]], "float16"), text=True)
row("np.linalg.svdvals", a([[3.0, 0], [0, 4]], "float32"), ulps=4)
row("np.linalg.svdvals", a([[1e-310, 0], [0, 1e-310]], "float64"), ulps=4)
row("np.linalg.svdvals", a([[3e200, 0], [0, 4e200]], "float64"), ulps=4)

# Axes.
zero = np.array(5.0)
for op in ["sum", "prod", "max", "min", "any", "all", "ptp", "nansum", "nanprod", "nanmax", "nanmin", "argmax", "argmin", "count_nonzero", "cumsum", "cumprod", "cumulative_sum", "cumulative_prod", "mean", "var", "std"]:
    for axis in [0, -1, 1, (0,)]:
        if not (isinstance(axis, tuple) and (op.startswith("arg") or op.startswith("cum"))):
            row(f"np.{op}", zero, axis=axis)
for op in ["max", "min", "argmax", "argmin"]:
    for shape, axis in [((0, 0), 1), ((0, 3), 1), ((0, 3), 0), ((3, 0), 1)]:
        row(f"np.{op}", np.zeros(shape), axis=axis, text=True)
row("np.cumulative_sum", a([[1, 2], [3, 4]], "int64"), text=True)
row("np.cumulative_sum", a([[1, 2], [3, 4]], "int64"), axis=0)
row("np.cumulative_prod", a([1, 2, 3], "int8"))
for axis in [(0, -1), (0, 1, 2), (0, 0), (0, 5), -2, (1,)]:
    row("np.expand_dims", a([1, 5], "int64"), axis)
x = np.arange(24, dtype="int16").reshape(2, 3, 4)
for source, target in [((0, 1), (1, 0)), ((0, 2), (1, 0)), (2, 0), ((0, 1, 2), (-1, -2, -3)), ((0, 1), (1,)), ((0, 0), (1, 0)), ((0, 1), (0, 0)), ((5,), (0,))]:
    row("np.moveaxis", x, source, target)
row("np.round", a([True], "bool"), decimals=1)
row("np.round", a([True], "bool"))
# What chunks add up to is a sum of its own, and sums of zeros are plus zero.
row("np.cumsum", a([-0.0, -0.0, -0.0, 1, -1], "float64"), whole=True)
row("np.cumsum", a([-0.0, -0.0, -0.0, -0.0], "float32"), whole=True)
row("np.cumsum", a([-0.0, -0.0 - 0j], "complex128"), whole=True)
row("np.cumprod", a([complex(INF, 1), 1, 2], "complex128"), whole=True)
row("np.arange", 0, 3, 0, text=True)
row("np.arange", 5, dtype=np.dtype("bool"), text=True)
row("np.arange", 2, dtype=np.dtype("bool"))
