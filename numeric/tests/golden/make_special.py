"""Makes special.jsonl: special functions and what SciPy answers. Run with SciPy 1: python make_special.py > special.jsonl"""
import numpy as np
from scipy import special

from rows import INF, NAN, a, row

EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-310, 1e-20, 1e-8, 0.5, -0.5, 1.0, -1.0, 2.0, -2.5, -3.0, 30.0, -30.0, 171.5, 172.0, -170.5, -200.5, 2.0**53 + 1, 1e300, -1e300, INF, -INF, NAN]
INNER = np.linspace(-6, 6, 97)
SHARE = np.linspace(0, 1, 101)
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint64", "float16", "float32"]
# Units in the last place.
ULPS = {"gamma": 32, "rgamma": 32, "erfinv": 16, "erfcinv": 16, "gammaln": 16, "logit": 4}
# These take complex numbers in SciPy, and not here.
TAKE_COMPLEX = ["erf", "erfc", "gamma", "rgamma", "xlog1py", "xlogy"]
# Where SciPy leaves the range on the way; the kernels' own tests have these.
LOST = {"gammaln": [5e-324, -5e-324, 1e-310], "rgamma": [5e-324, -5e-324, 172.0], "erfcinv": [5e-324]}

for name in ["entr", "erf", "erfc", "erfcinv", "erfinv", "expit", "gamma", "gammaln", "gammasgn", "logit", "rgamma"]:
    op, ulps = f"scipy.special.{name}", ULPS.get(name, 8)
    # Near its zeros a logarithm is as exact as the number that it is of.
    scale = 1.0 if name in ("gammaln", "logit") else 0.0
    row(op, a([x for x in EXTREMES if x not in LOST.get(name, [])]), ulps=ulps, scale=scale)
    row(op, a(INNER), ulps=ulps, scale=scale)
    row(op, a(SHARE), ulps=ulps, scale=scale)
    row(op, a(1 - SHARE[1:40] ** 8), ulps=ulps, scale=scale)
    for dtype in DTYPES + ([] if name in TAKE_COMPLEX else ["complex64"]):
        row(op, a([0, 1, 1, 0], dtype), ulps=ulps, scale=scale)

few = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-300, 0.3, -0.5, 1.7, 1e10, 1e200]
left, right = (a(x) for x in zip(*[(x, y) for x in few for y in few]))
near = a(np.linspace(0.5, 2.5, 41))
for name in ["kl_div", "rel_entr", "xlog1py", "xlogy"]:
    op = f"scipy.special.{name}"
    # SciPy's quotient leaves the range where that of the numbers does.
    with np.errstate(all="ignore"):
        fits = ~((np.abs(left / right) > 1e300) | (np.abs(left / right) < 1e-290)) | (left == 0) | (right == 0) | ~np.isfinite(left) | ~np.isfinite(right)
    row(op, left[fits], right[fits], ulps=8)
    # A difference is as exact as its terms.
    row(op, near, a(1.25), ulps=8, scale=1.0 if name == "kl_div" else 0.0)
    row(op, a([[0.5], [2.0]]), a([1.0, 2.0, 4.0]), ulps=8)
    for dtype in DTYPES + ([] if name in TAKE_COMPLEX else ["complex128"]):
        row(op, a([0, 1, 1], dtype), a([1, 1, 0], dtype), ulps=8)
        row(op, a([0, 1, 1], dtype), a([1, 1, 2], "float32"), ulps=8)
    if name not in TAKE_COMPLEX:
        # The others take a number of Python for one of float64, unlike functions of NumPy.
        row(op, a([0, 0.5], "float32"), 2.0, ulps=8)
