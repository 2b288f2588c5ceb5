"""Makes complex.jsonl: what NumPy answers for complex functions on a table of special points. Run with NumPy 2: python make_complex.py > complex.jsonl"""
import base64
import json
import warnings

import numpy as np

warnings.simplefilter("ignore")
MAGNITUDES = {
    "complex128": [0.0, 1e-300, 1e-160, 1e-20, 1e-8, 0.3, 0.6, 0.8, 1.0, 1.0 + 2.0**-52, 2.0, 22.5, 400.0, 711.0, 1e8, 1e17, 1e160, 1e300, np.inf],
    "complex64": [0.0, 1e-40, 1e-20, 1e-4, 0.3, 0.6, 0.8, 1.0, 1.0 + 2.0**-23, 2.0, 22.5, 90.0, 1e8, 1e20, 3e38, np.inf],
}
UNARY = ["arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cos", "cosh", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "negative", "reciprocal",
         "rint", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "nan_to_num", "absolute"]
# Products (square, multiply) are not here: NumPy fuses their steps where the CPU can.
# NumPy's own steps in float32 lose digits here, or overflow: the rows are its answers in complex128, rounded.
WIDE = ["exp2", "expm1", "log1p", "sign"]
BINARY = ["divide", "power"]
POWERS = [0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, 1.5 - 0.5j, 1j, 7.0, complex(np.inf, 0.0)]


def raw(a):
    return {"dtype": a.dtype.str, "shape": list(a.shape), "raw": base64.b64encode(a.tobytes()).decode()}


def points(dtype):
    parts = np.array(MAGNITUDES[dtype] + [np.nan])
    parts = np.concatenate([parts, -parts[:-1]])
    z = np.empty((parts.size, parts.size), dtype="complex128")
    z.real, z.imag = parts[:, None], parts[None, :]
    return z.reshape(-1).astype(dtype)


for dtype in MAGNITUDES:
    z = points(dtype)
    print(json.dumps({"dtype": dtype, "x": raw(z)}))
    for op in UNARY:
        wide = z.astype("complex128") if op in WIDE else z
        expect = getattr(np, op)(wide)
        print(json.dumps({"op": op, "dtype": dtype, "expect": raw(expect.astype(dtype) if op in WIDE else expect)}))
    few = z[::7]
    for op in BINARY:
        for other in POWERS:
            y = np.full(few.shape, other, dtype=dtype)
            print(json.dumps({"op": op, "dtype": dtype, "other": repr(other), "y": raw(y), "expect": raw(getattr(np, op)(few, y))}))
