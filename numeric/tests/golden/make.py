"""Makes cases.jsonl: programs, and what NumPy answers. Run with NumPy 2: python make.py > cases.jsonl"""
import base64, json, sys, warnings
import numpy as np

warnings.simplefilter("ignore")
rng = np.random.default_rng(20240601)
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-300, 1e300, 7.25, -7.75, 3.0, np.inf, -np.inf, np.nan]


def raw(a):
    a = np.asarray(a)
    return {"dtype": a.dtype.str, "shape": list(a.shape), "raw": base64.b64encode(a.tobytes()).decode()}


def values(dtype, shape, special=False):
    n = int(np.prod(shape))
    kind = np.dtype(dtype).kind
    if kind == "b":
        flat = rng.integers(0, 2, n)
    elif kind in "iu":
        info = np.iinfo(dtype)
        flat = rng.integers(max(info.min, -9), 10, n)
        if special and n >= 4:
            flat = flat.astype(dtype)
            flat[0], flat[1], flat[2] = info.max, info.min, 0
    elif kind == "f":
        flat = rng.normal(0, 3, n)
        if special:
            flat[: min(n, len(SPECIAL))] = SPECIAL[: min(n, len(SPECIAL))]
    else:
        flat = rng.normal(0, 2, n) + 1j * rng.normal(0, 2, n)
    return flat.astype(dtype).reshape(shape)


def case(prog, inputs, compute, ulps=0, scale=0.0):
    try:
        out = compute()
        expect = raw(np.asarray(out))
    except Exception as e:  # the class is what is compared
        expect = {"error": type(e).__name__}
    request = {"in": {k: raw(v) for k, v in inputs.items()}, "prog": prog, "out": ["r"], "ctx": {"inline": "raw"}}
    print(json.dumps({"request": request, "expect": expect, "ulps": ulps, "scale": float(scale)}))


def ref(name):
    return {"$": name}


EXACT = ["absolute", "negative", "positive", "sign", "square", "rint", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite",
         "signbit", "logical_not", "invert", "conjugate", "fabs", "spacing", "reciprocal", "real", "imag", "bitwise_count"]
INEXACT = ["sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
           "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "cbrt", "degrees", "radians"]
BINARY_EXACT = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin",
                "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
                "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd", "lcm", "copysign", "nextafter", "heaviside"]
BINARY_INEXACT = ["arctan2", "hypot", "logaddexp", "logaddexp2", "power"]

for dtype in DTYPES:
    complex_ = dtype.startswith("complex")
    for op in EXACT:
        # Half precision is computed in float32 and rounded; its own neighbours are refused.
        if op == "spacing" and dtype in ("bool", "int8", "uint8", "float16"):
            continue
        x = values(dtype, (17,), special=True)
        # Reciprocals of integers are undefined at zero.
        if op == "reciprocal" and not dtype.startswith(("float", "complex")):
            x = np.where(x == 0, 1, x).astype(dtype)
        case([["r", f"np.{op}", [ref("x")], {}]], {"x": x}, lambda: getattr(np, op)(x), 4 if complex_ else 0)
    for op in INEXACT:
        x = values(dtype, (17,), special=not complex_)
        case([["r", f"np.{op}", [ref("x")], {}]], {"x": x}, lambda: getattr(np, op)(x), 64 if complex_ else 4)

for op in BINARY_EXACT + BINARY_INEXACT:
    for a, b in [(d, d) for d in DTYPES] + [("int8", "uint8"), ("int64", "uint64"), ("int32", "float32"), ("bool", "int16"), ("float16", "float32"),
                                            ("float64", "complex64"), ("int16", "float16"), ("uint32", "int32")]:
        x, y = values(a, (17,)), values(b, (17,))
        if op == "power":
            y = np.abs(y).astype(b)
        if "shift" in op:
            y = (y % 7 if np.dtype(b).kind in "iu" else y).astype(b)
        if op in ("floor_divide", "remainder", "fmod") and np.dtype(np.result_type(a, b)).kind in "iu":
            y = np.where(y == 0, 3, y).astype(b)
        # NumPy's own float32 sums of logarithms are a few units off near zero.
        ulps = 16 if op.startswith("logadd") else 4 if op in BINARY_INEXACT else 0
        if op == "nextafter" and np.result_type(x.astype(a), y.astype(b)).itemsize < 4:
            continue
        if np.dtype(np.result_type(a, b)).kind == "c":
            ulps = 256 if op == "power" else 4
        case([["r", f"np.{op}", [ref("x"), ref("y")], {}]], {"x": x, "y": y}, lambda: getattr(np, op)(x, y), ulps)

for sx, sy in [((), ()), ((), (3,)), ((0,), (1,)), ((5, 1), (7,)), ((2, 1, 3), (4, 1)), ((1,), (1, 1)), ((2, 3), (3, 2)), ((0, 3), (3,))]:
    x, y = values("float64", sx), values("int32", sy)
    case([["r", "np.add", [ref("x"), ref("y")], {}]], {"x": x, "y": y}, lambda: x + y)

SCALARS = [("float32", 1.5), ("int8", 3), ("int8", 300), ("uint8", -1), ("int16", 2.5), ("bool", 2), ("float16", 2), ("complex64", 1.5)]
for dtype, number in SCALARS:
    x = values(dtype, (5,))
    case([["r", "np.multiply", [ref("x"), number], {}]], {"x": x}, lambda: x * number)

REDUCTIONS = ["sum", "prod", "min", "max", "mean", "any", "all", "argmin", "argmax", "var", "std", "count_nonzero", "ptp", "nansum", "nanmax", "nanmin", "nanmean", "nanprod"]
SHAPES = [((), [None]), ((1,), [None, 0]), ((17,), [None, 0, -1]), ((0,), [None]), ((3, 5), [None, 0, 1]), ((2, 3, 4), [None, 0, 1, 2, (0, 2), (1, 2), (-3, 1)]), ((0, 3), [None, 0, 1]),
          ((5, 0), [0, 1]), ((1, 7, 1), [0, 1]), ((3, 5), [2, -3, (0, 0)]), ((40, 13), [None, 0, 1])]
for op in REDUCTIONS:
    for shape, axes in SHAPES:
        for axis in axes:
            for dtype in ["bool", "int8", "uint32", "int64", "float16", "float32", "float64", "complex128"]:
                if isinstance(axis, tuple) and op.startswith("arg"):
                    continue
                if shape not in [(2, 3, 4), (17,), (0, 3)] and dtype not in ("float64", "int8"):
                    continue
                # float16 sums in NumPy round at every step; ours round once.
                if dtype == "float16" and op in ("sum", "prod", "mean", "var", "std", "nansum", "nanmean", "nanprod"):
                    continue
                # Complex NaN rules of products and ptp on bool differ by NumPy version.
                if op == "ptp" and dtype == "bool":
                    continue
                x = values(dtype, shape)
                if op.startswith("nan") and dtype == "float64" and x.size > 3:
                    x.reshape(-1)[1] = np.nan
                encoded = {"t": list(axis)} if isinstance(axis, tuple) else axis
                keep = bool(rng.integers(0, 2))
                kw = {"axis": encoded, "keepdims": keep}
                ulps = {"sum": 4, "prod": 64, "mean": 4, "var": 16, "std": 16, "nansum": 4, "nanmean": 4, "nanprod": 16}.get(op, 0)
                case([["r", f"np.{op}", [ref("x")], kw]], {"x": x}, lambda: getattr(np, op)(x, axis=axis, keepdims=keep), ulps * (8 if dtype.startswith("c") else 1), np.nansum(np.abs(x)) if "sum" in op else np.nanmean(np.abs(x)) if "mean" in op and x.size else 0)
for op in ["min", "max", "argmin", "argmax", "sum", "any"]:
    x = np.array([1.0, np.nan, -3.0, np.nan, 9.0])
    case([["r", f"np.{op}", [ref("x")], {}]], {"x": x}, lambda: getattr(np, op)(x))
for op in ["cumsum", "cumprod"]:
    for shape, axis in [((17,), 0), ((3, 5), 0), ((3, 5), 1), ((3, 5), None), ((2, 3, 4), 1), ((0,), 0)]:
        for dtype in ["int8", "uint16", "float64", "complex128"]:
            x = values(dtype, shape)
            case([["r", f"np.{op}", [ref("x")], {"axis": axis}]], {"x": x}, lambda: getattr(np, op)(x, axis=axis), 64, np.abs(x).sum() if op == "cumsum" else 0)

for a in DTYPES:
    for b in DTYPES:
        x = values(a, (17,), special=np.dtype(a).kind in "iu")
        case([["r", "np.astype", [ref("x"), {"dt": b}], {}]], {"x": x}, lambda: x.astype(b))

S = lambda *a: {"s": list(a)}
INDICES = [([S(None, None, -1)], np.s_[::-1]), ([2], np.s_[2]), ([-1, S(1, 4, None)], np.s_[-1, 1:4]), ([{"e": 1}, 0], np.s_[..., 0]), ([{"n": 1}, S(None, None, 3)], np.s_[None, ::3]),
           ([S(5, 1, -2), S(None, None, None)], np.s_[5:1:-2, :]), ([S(10, None, None)], np.s_[10:]), ([99], np.s_[99]), ([S(0, 5, 0)], slice(0, 5, 0)), ([0, 0, 0, 0], np.s_[0, 0, 0, 0]),
           ([S(-3, None, None), S(None, -2, 2), S(None, None, -1)], np.s_[-3:, :-2:2, ::-1]), ([{"e": 1}, {"n": 1}, S(1, 2, None)], np.s_[..., None, 1:2])]
x = values("int32", (7, 5, 3))
for encoded, index in INDICES:
    case([["r", "getitem", [ref("x"), {"t": encoded}], {}]], {"x": x}, lambda: x[index])
    case([["s", "getitem", [ref("x"), {"t": encoded}], {}], ["r", "np.sum", [ref("s")], {"axis": 0}]], {"x": x}, lambda: x[index].sum(axis=0))
for shape in [[105], [5, 7, 3], [3, -1], [-1], [7, 15], [1, 105, 1], [4, -1], [-1, -1], [2, 3], [0, -1]]:
    case([["r", "np.reshape", [ref("x"), {"t": shape}], {}]], {"x": x}, lambda: x.reshape(shape))
    case([["t", "np.transpose", [ref("x")], {}], ["r", "np.reshape", [ref("t"), {"t": shape}], {}]], {"x": x}, lambda: x.T.reshape(shape))
for axes in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 0, 1], [0, 1], [0, 1, 3]]:
    case([["r", "np.transpose", [ref("x"), {"t": axes}], {}]], {"x": x}, lambda: x.transpose(axes))
case([["r", "np.swapaxes", [ref("x"), 0, -1], {}]], {"x": x}, lambda: x.swapaxes(0, -1))
case([["r", "np.moveaxis", [ref("x"), 0, 2], {}]], {"x": x}, lambda: np.moveaxis(x, 0, 2))
case([["r", "np.flip", [ref("x")], {"axis": 1}]], {"x": x}, lambda: np.flip(x, 1))
case([["r", "np.expand_dims", [ref("x"), 1], {}]], {"x": x}, lambda: np.expand_dims(x, 1))
case([["r", "np.squeeze", [ref("x")], {"axis": 1}]], {"x": x}, lambda: np.squeeze(x, 1))
case([["r", "np.clip", [ref("x"), -2, 3], {}]], {"x": x}, lambda: np.clip(x, -2, 3))
case([["r", "np.broadcast_to", [ref("x"), {"t": [2, 7, 5, 3]}], {}]], {"x": x}, lambda: np.broadcast_to(x, (2, 7, 5, 3)))
case([["r", "np.broadcast_to", [ref("x"), {"t": [7, 5, 4]}], {}]], {"x": x}, lambda: np.broadcast_to(x, (7, 5, 4)))
y = values("float32", (7, 5, 3))
for axis in [0, 1, 2, -1, 3]:
    case([["r", "np.concatenate", [{"t": [ref("x"), ref("y"), ref("x")]}], {"axis": axis}]], {"x": x, "y": y}, lambda: np.concatenate([x, y, x], axis=axis))
    case([["r", "np.stack", [{"t": [ref("x"), ref("y")]}], {"axis": axis}]], {"x": x, "y": y}, lambda: np.stack([x, y], axis=axis))
z = values("int32", (2, 5, 3))
case([["r", "np.concatenate", [{"t": [ref("x"), ref("z")]}], {}]], {"x": x, "z": z}, lambda: np.concatenate([x, z]))
case([["r", "np.concatenate", [{"t": [ref("x"), ref("z")]}], {"axis": 1}]], {"x": x, "z": z}, lambda: np.concatenate([x, z], axis=1))
case([["r", "np.where", [ref("c"), ref("x"), ref("y")], {}]], {"c": x > 0, "x": x, "y": y}, lambda: np.where(x > 0, x, y))

for dtype in ["bool", "int8", "int64", "float32", "float64", "complex64", "complex128", "float16"]:
    for sa, sb in [((3, 4), (4, 5)), ((17, 13), (13, 11)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 1, 3, 4), (5, 4, 2)), ((3, 0), (0, 2)), ((3, 4), (3, 4)), ((), (3,))]:
        a, b = values(dtype, sa), values(dtype, sb)
        tolerance = 2048 if dtype in ("float16",) else 64
        case([["r", "np.matmul", [ref("a"), ref("b")], {}]], {"a": a, "b": b}, lambda: np.matmul(a, b), tolerance, np.abs(a).max(initial=0) * np.abs(b).max(initial=0))
a, b = values("float64", (3, 4, 5)), values("float64", (4, 3, 2))
case([["r", "np.tensordot", [ref("a"), ref("b")], {"axes": {"t": [{"t": [1, 0]}, {"t": [0, 1]}]}}]], {"a": a, "b": b}, lambda: np.tensordot(a, b, axes=([1, 0], [0, 1])), 64)
a, b = values("float64", (2, 3, 4)), values("float64", (4, 5))
case([["r", "np.dot", [ref("a"), ref("b")], {}]], {"a": a, "b": b}, lambda: np.dot(a, b), 64)

for prog, compute in [
    ([["r", "np.arange", [10], {}]], lambda: np.arange(10)), ([["r", "np.arange", [2, 11, 3], {}]], lambda: np.arange(2, 11, 3)),
    ([["r", "np.arange", [0.0, 1.0, 0.1], {}]], lambda: np.arange(0.0, 1.0, 0.1)), ([["r", "np.arange", [5, 1, -1], {}]], lambda: np.arange(5, 1, -1)),
    ([["r", "np.linspace", [0.0, 1.0, 7], {}]], lambda: np.linspace(0.0, 1.0, 7)), ([["r", "np.linspace", [3.0, 1.0, 1], {}]], lambda: np.linspace(3.0, 1.0, 1)),
    ([["r", "np.linspace", [0.0, 1.0, 5], {"endpoint": False}]], lambda: np.linspace(0.0, 1.0, 5, endpoint=False)), ([["r", "np.linspace", [0.0, 1.0, -1], {}]], lambda: np.linspace(0, 1, -1)),
    ([["r", "np.eye", [4, 5], {"k": -1}]], lambda: np.eye(4, 5, k=-1)), ([["r", "np.eye", [3], {"dtype": {"dt": "int8"}}]], lambda: np.eye(3, dtype="int8")),
    ([["r", "np.full", [{"t": [2, 3]}, 7], {}]], lambda: np.full((2, 3), 7)), ([["r", "np.zeros", [{"t": [0, 3]}], {}]], lambda: np.zeros((0, 3))),
    ([["r", "np.ones", [{"t": [-1]}], {}]], lambda: np.ones((-1,))), ([["r", "np.ones", [3], {"dtype": {"dt": "uint16"}}]], lambda: np.ones(3, dtype="uint16")),
]:
    case(prog, {}, compute)

# Every element-wise function on awkward shapes, from the front and from the back.
AWKWARD = [(), (0, 3), (1,), (3, 5), (2, 1, 7)]
for op in EXACT + INEXACT:
    for shape in AWKWARD:
        x = np.asarray(values("int32" if op in ("invert", "bitwise_count") else "float64", shape))
        tolerance = 0 if op in EXACT else 4
        case([["r", f"np.{op}", [ref("x")], {}]], {"x": x}, lambda: getattr(np, op)(x), tolerance)
        if shape:
            case([["y", "getitem", [ref("x"), {"t": [{"e": 1}, S(None, None, -1)]}], {}], ["r", f"np.{op}", [ref("y")], {}]], {"x": x}, lambda: getattr(np, op)(x[..., ::-1]), tolerance)
PAIRS = [((), (3,)), ((0, 3), (1, 1)), ((5, 1), (7,)), ((2, 1, 3), (4, 1)), ((3, 5), (3, 5))]
for op in BINARY_EXACT + BINARY_INEXACT:
    whole = op in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd", "lcm")
    for sx, sy in PAIRS:
        x, y = (np.asarray(values("int16" if whole else "float64", shape)) for shape in (sx, sy))
        y = np.abs(y) % 5 if "shift" in op else np.abs(y) if op == "power" else y
        case([["z", "np.transpose", [ref("y")], {}], ["w", "np.transpose", [ref("z")], {}], ["r", f"np.{op}", [ref("x"), ref("w")], {}]], {"x": x, "y": y}, lambda: getattr(np, op)(x, y), 16 if op.startswith("logadd") else 4 if op in BINARY_INEXACT else 0)

# Sizes that only running tells.
for dtype in DTYPES:
    for shape in [(17,), (3, 5), (0,), (1,), (2, 0, 3)]:
        x = values(dtype, shape, special=True)
        m = values("bool", shape)
        case([["r", "getitem", [ref("x"), ref("m")], {}]], {"x": x, "m": m}, lambda: x[m])
        # Which of two zeros of different sign stays, NumPy does not say.
        y = np.where(x == 0, np.zeros_like(x), x) + np.zeros_like(x) if np.dtype(dtype).kind in "fc" else x
        case([["r", "np.unique", [ref("y")], {}]], {"y": y}, lambda: np.unique(y))
        case([["r", "np.flatnonzero", [ref("x")], {}]], {"x": x}, lambda: np.flatnonzero(x))
x, row, flat = values("int32", (7, 5, 3)), values("bool", (7,)), values("bool", (7, 5))
MASKED = [("getitem", row, lambda: x[row]), ("getitem", flat, lambda: x[flat]), ("getitem", x > 2, lambda: x[x > 2]), ("getitem", x > 99, lambda: x[x > 99]), ("getitem", row[:5], lambda: x[row[:5]]),
          ("getitem", np.ones((7, 5, 3, 1), bool), lambda: x[np.ones((7, 5, 3, 1), bool)]), ("getitem", np.array(True), lambda: x[np.array(True)]), ("getitem", np.array(False), lambda: x[np.array(False)])]
for op, m, compute in MASKED:
    case([["r", op, [ref("x"), ref("m")], {}]], {"x": x, "m": m}, compute)
m = x > 1
THEN = [("np.sum", [], {}, lambda a: a.sum()), ("np.max", [], {}, lambda a: a.max()), ("np.argmin", [], {}, lambda a: a.argmin()), ("np.cumsum", [], {"axis": 0}, lambda a: a.cumsum(0)),
        ("np.mean", [], {}, lambda a: a.mean()), ("np.std", [], {}, lambda a: a.std()), ("np.negative", [], {}, lambda a: -a), ("np.expand_dims", [0], {}, lambda a: a[None]), ("np.unique", [], {}, np.unique)]
for op, more, kw, compute in THEN:
    case([["y", "getitem", [ref("x"), ref("m")], {}], ["r", op, [ref("y")] + more, kw]], {"x": x, "m": m}, lambda: compute(x[m]), 16)
    case([["y", "getitem", [ref("x"), ref("m")], {}], ["r", op, [ref("y")] + more, kw]], {"x": x, "m": x > 99}, lambda: compute(x[x > 99]), 16)
case([["a", "getitem", [ref("x"), ref("m")], {}], ["b", "getitem", [ref("x"), ref("n")], {}], ["r", "np.concatenate", [{"t": [ref("a"), ref("b")]}], {}]], {"x": x, "m": m, "n": x < -4}, lambda: np.concatenate([x[m], x[x < -4]]))
case([["a", "getitem", [ref("x"), ref("m")], {}], ["b", "getitem", [ref("x"), ref("m")], {}], ["r", "np.subtract", [ref("a"), ref("b")], {}]], {"x": x, "m": m}, lambda: x[m] - x[m])
case([["a", "getitem", [ref("x"), ref("m")], {}], ["b", "getitem", [ref("x"), ref("n")], {}], ["r", "np.add", [ref("a"), ref("b")], {}]], {"x": x, "m": m, "n": x < -4}, lambda: x[m] + x[x < -4])
case([["a", "getitem", [ref("x"), ref("m")], {}], ["n", "np.greater", [ref("a"), 3], {}], ["r", "getitem", [ref("a"), ref("n")], {}]], {"x": x, "m": m}, lambda: x[m][x[m] > 3])
case([["r", "np.argwhere", [ref("x")], {}]], {"x": x}, lambda: np.argwhere(x))
case([["r", "np.argwhere", [ref("x")], {}]], {"x": np.array(3)}, lambda: np.argwhere(np.array(3)))
case([["r", "np.nonzero", [ref("x")], {}]], {"x": np.array(3)}, lambda: np.nonzero(np.array(3)))
for axis in range(3):
    case([["n", "np.nonzero", [ref("x")], {}], ["r", "getitem", [ref("n"), axis], {}]], {"x": x}, lambda: np.nonzero(x)[axis])
    case([["n", "np.where", [ref("m")], {}], ["r", "getitem", [ref("n"), axis], {}]], {"m": m}, lambda: np.where(m)[axis])
for condition, axis in [(row, 0), (row[:4], 0), (np.array([1, 0, 2, 0, 1]), 1), (np.array([0, 1, 1]), -1), (values("bool", (50,)), None), (row, 3), (flat, 0)]:
    case([["r", "np.compress", [ref("c"), ref("x")], {"axis": axis}]], {"x": x, "c": condition}, lambda: np.compress(condition, x, axis=axis))
case([["r", "np.extract", [ref("m"), ref("x")], {}]], {"x": x, "m": m}, lambda: np.extract(m, x))

# Element-wise functions made of others.
for dtype in ["int8", "int64", "float16", "float32", "float64"]:
    x, y = values(dtype, (17,), special=dtype.startswith("f")), values(dtype, (17,))
    y = np.where(y == 0, 3, y).astype(dtype)
    # NumPy rounds to half precision at more steps.
    ulps = 4 if dtype != "float16" else 32
    for op in ["modf", "divmod"]:
        for part in (0, 1):
            args = [ref("x")] if op == "modf" else [ref("x"), ref("y")]
            case([["t", f"np.{op}", args, {}], ["r", "getitem", [ref("t"), part], {}]], {"x": x, "y": y}, lambda: (np.modf(x) if op == "modf" else np.divmod(x, y))[part])
    for op in ["fix", "isneginf", "isposinf", "nan_to_num", "round", "angle"]:
        case([["r", f"np.{op}", [ref("x")], {}]], {"x": x}, lambda: getattr(np, op)(x))
    case([["r", "np.sinc", [ref("y")], {}]], {"y": y}, lambda: np.sinc(y), ulps, 1e-16)
    case([["r", "np.isclose", [ref("x"), ref("y")], {}]], {"x": x, "y": y}, lambda: np.isclose(x, y))
    case([["r", "np.isclose", [ref("x"), ref("x")], {"rtol": 0.5, "atol": 0.25}]], {"x": x}, lambda: np.isclose(x, x, 0.5, 0.25))
    case([["r", "np.float_power", [ref("a"), ref("y")], {}]], {"a": np.abs(y), "y": y}, lambda: np.float_power(np.abs(y), y), 4)
    case([["r", "np.round", [ref("y"), 2], {}]], {"y": y}, lambda: np.round(y, 2))
z = values("complex128", (17,))
case([["r", "np.angle", [ref("z")], {}]], {"z": z}, lambda: np.angle(z), 4)
case([["r", "np.angle", [ref("z")], {"deg": True}]], {"z": z}, lambda: np.angle(z, deg=True), 4)

# Numbers at the ends of their types.
with np.errstate(all="ignore"):
    small = np.array([127, -128, 100, -100, 1], dtype="int8")
    case([["r", "np.add", [ref("x"), ref("x")], {}]], {"x": small}, lambda: small + small)
    case([["r", "np.multiply", [ref("x"), ref("x")], {}]], {"x": small}, lambda: small * small)
    large = np.array([2**62, 2**62, 2**62, 5], dtype="int64")
    case([["r", "np.sum", [ref("x")], {}]], {"x": large}, lambda: large.sum())
    for dtype in ["int8", "int64", "uint16"]:
        x = np.array([7, 0, 3, 100], dtype=dtype)
        for op in ["floor_divide", "remainder", "fmod"]:
            case([["r", f"np.{op}", [ref("x"), ref("z")], {}]], {"x": x, "z": np.zeros(4, dtype)}, lambda: getattr(np, op)(x, np.zeros(4, dtype)))
    zeros = np.array([0.0, -0.0, 0.0, -0.0])
    tiny = np.array([5e-324, 1e-310, -2.5e-320, 2.2e-308])
    case([["r", "np.multiply", [ref("x"), 0.5], {}]], {"x": tiny}, lambda: tiny * 0.5)
    case([["r", "np.add", [ref("x"), ref("x")], {}]], {"x": tiny}, lambda: tiny + tiny)
    for op in ["sqrt", "negative", "exp", "sin"]:
        case([["r", f"np.{op}", [ref("x")], {}]], {"x": tiny}, lambda: getattr(np, op)(tiny), 1)
    wide = np.array([1e300, -1e300, 1e-300, 65520.0, 1e39, np.nan])
    for dtype in ["float32", "float16"]:
        case([["r", "np.astype", [ref("x"), {"dt": dtype}], {}]], {"x": wide}, lambda: wide.astype(dtype))
    beyond = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300])
    for dtype in ["int64", "int32"]:
        case([["r", "np.astype", [ref("x"), {"dt": dtype}], {}]], {"x": beyond}, lambda: beyond.astype(dtype))

# Numbers taken apart into mantissa and power of two, and put together.
for dtype in DTYPES:
    x = values(dtype, (17,), special=dtype.startswith("f"))
    for part in (0, 1):
        case([["t", "np.frexp", [ref("x")], {}], ["r", "getitem", [ref("t"), part], {}]], {"x": x}, lambda: np.frexp(x)[part])
    for power_dtype in ["bool", "int8", "int64", "uint8", "uint64", "float64"]:
        power = values(power_dtype, (17,), special=power_dtype == "int8")
        case([["r", "np.ldexp", [ref("x"), ref("i")], {}]], {"x": x, "i": power}, lambda: np.ldexp(x, power))
powers = np.array([-(2**40), -1080, -1074, -140, 0, 127, 1023, 2**40])
for dtype in ["float32", "float64"]:
    case([["r", "np.ldexp", [ref("x"), ref("i")], {}]], {"x": np.full(8, 1.25, dtype), "i": powers}, lambda: np.ldexp(np.full(8, 1.25, dtype), powers))
