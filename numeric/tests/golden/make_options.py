"""Makes options.jsonl: reductions of numbers with all options, distinct parts, and what NumPy answers. Run with NumPy 2.4: python make_options.py > options.jsonl"""
import warnings

import numpy as np

from rows import INF, NAN, a, row, some

warnings.simplefilter("ignore")
HOLED = a([[3, NAN, 1, 7, 2], [NAN, NAN, NAN, NAN, NAN], [5, 4, NAN, NAN, -1]])
MASK = a([[1, 1, 0, 1, 0], [1, 0, 1, 1, 0], [0, 1, 1, 1, 1]], "bool")
COLUMN = a([[1], [0], [1]], "bool")
F32 = np.dtype("float32")

for op in ["np.nansum", "np.nanprod", "np.nanmean", "np.nanvar", "np.nanstd", "np.nanmax", "np.nanmin"]:
    extreme, moment = op in ("np.nanmax", "np.nanmin"), op in ("np.nanvar", "np.nanstd")
    for x in [HOLED, HOLED.astype("float32"), HOLED * (1 + 2j), np.nan_to_num(HOLED).astype("int32"), HOLED.astype("float16")]:
        if extreme and x.dtype.kind == "c":
            continue
        for where in [{}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1)}]:
            row(op, x, ulps=8, scale=8.0, **where)
            for mask in [MASK, COLUMN, True]:
                more = {"initial": 2} if extreme else {}
                row(op, x, where=mask, ulps=8, scale=8.0, **where, **more)
                row(op, x, where=mask, **where) if extreme else None
            if op in ("np.nansum", "np.nanprod", "np.nanmax", "np.nanmin"):
                row(op, x, initial=3, ulps=8, scale=8.0, **where)
            # NumPy rounds the mean of float16 to float16 there, whatever dtype is asked for.
            if not extreme and x.dtype.kind != "c" and not (moment and x.dtype == "float16"):
                row(op, x, dtype=F32, ulps=8, scale=8.0, **where)
            if moment:
                row(op, x, ddof=1, ulps=16, scale=8.0, **where)
                row(op, x, ddof=3, where=MASK, ulps=16, scale=8.0, **where)
                row(op, x, correction=1, ulps=16, scale=8.0, **where)
    row(op, a([]))
    row(op, a([[], []]), axis=1)
    row(op, a([[], []]), axis=0)
    row(op, HOLED, axis=2)
    row(op, HOLED, where=some((2, 2)) > 0)
    row(op, a(NAN))
    row(op, a([NAN, INF, -INF]))
row("np.nanmax", a([]), initial=3.0)
row("np.nanvar", HOLED, ddof=1, correction=1)
for op in ["np.nanargmax", "np.nanargmin"]:
    for x in [HOLED[[0, 2]], HOLED[[0, 2]].astype("float32"), a([3, 1, 4], "int64"), a([NAN, INF, -INF]), a([1, NAN, 1]), HOLED[[0, 2]] * (1 + 1j)]:
        row(op, x)
        row(op, x, axis=-1)
        row(op, x, axis=-1, keepdims=True)
    row(op, HOLED)
    row(op, HOLED, axis=1)
    row(op, a([]))
    row(op, a([NAN]))
for op in ["np.nancumsum", "np.nancumprod"]:
    row(op, HOLED, axis=1, dtype=F32, ulps=2)
    row(op, HOLED, ulps=2)

# Distinct parts.
rows = some((6, 2), "int32") % 2
for x in [rows, rows.astype("float64"), rows.astype("bool"), rows * (1 + 1j), some((3, 4, 2)).round(), rows[:1], rows[:0], rows[:, :0], a([3, 1, 3, 2]), a([[NAN, 1], [0, 1], [NAN, 1]])]:
    for axis in range(x.ndim):
        row("np.unique", x, axis=axis)
        row("np.unique", x, axis=axis - x.ndim, return_index=True, return_inverse=True, return_counts=True)
        row("np.unique", x, axis=axis, return_counts=True)
row("np.unique", rows, axis=2)
row("np.unique", a(3.0), axis=0)

# Norms of nothing: the largest of no sizes is zero.
for ord in [1, -1, 2, -2, INF, -INF, "fro", "nuc"]:
    for shape in [(0, 2), (2, 0), (0, 0), (3, 0, 2), (0, 2, 2)]:
        row("np.linalg.matrix_norm", np.zeros(shape), ord=ord, keepdims=shape == (2, 0))
for ord in [0, 1, -1, 2, 3, INF, -INF]:
    row("np.linalg.vector_norm", np.zeros((2, 0), "float32"), ord=ord, axis=1)
    row("np.linalg.vector_norm", np.zeros((2, 0)), ord=ord, axis=0)
for copy in [True, False, None]:
    row("np.reshape", HOLED, (5, 3), copy=copy)

# The share of the largest singular value up to which others are left out: None is not what no word is.
steep = a([[1.0, 0.0], [0.0, 7e-16]])
row("np.linalg.pinv", steep)
for options in [{"rtol": None}, {"rtol": 0.5}, {"rtol": 1e-17}, {"rcond": 1e-17}, {"rcond": None}, {"rcond": 0.5, "rtol": 0.5}, {"rcond": 0.5, "rtol": None}]:
    row("np.linalg.pinv", steep, ulps=4, **options)
for options in [{"tol": 0.5}, {"rtol": 0.5}, {"tol": 0.5, "rtol": 0.5}, {"tol": 0.5, "rtol": None}]:
    row("np.linalg.matrix_rank", steep, **options)
