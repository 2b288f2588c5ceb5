"""Makes statistics.jsonl: programs of statistics, parts and random shapes, and what NumPy answers. Run with NumPy 2.4: python make_statistics.py > statistics.jsonl"""
import warnings

import numpy as np

from rows import INF, NAN, a, row, some

warnings.simplefilter("ignore")

METHODS = ["inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest"]
HOLED = a([[3, NAN, 1, 7, 2], [NAN, NAN, NAN, NAN, NAN], [5, 4, NAN, NAN, -1]])

# Quantiles.
for method in METHODS:
    for q in [0.0, 0.1, 0.3, 0.5, 0.62, 1.0, [0.25, 0.5, 0.9]]:
        row("np.quantile", some(7), q, method=method, ulps=8, scale=8.0)
        row("np.quantile", some((4, 3)), q, axis=0, method=method, ulps=8, scale=8.0)
        row("np.nanquantile", HOLED, q, axis=1, method=method, ulps=8, scale=8.0)
    row("np.quantile", some((3, 4, 2), "int32"), 0.4, axis=(0, 2), keepdims=True, method=method, ulps=8, scale=8.0)
    row("np.quantile", some(9, "float32"), 0.3, method=method, ulps=8, scale=8.0)
    row("np.quantile", HOLED, [[0.5], [0.2]], axis=0, method=method, ulps=8, scale=8.0)
    row("np.quantile", a([True, False, True], "bool"), 0.4, method=method)
    row("np.percentile", some(6), [10, 50.0], method=method, ulps=8, scale=8.0)
for op in ["np.quantile", "np.nanquantile", "np.percentile"]:
    row(op, a([]), 0.5)
    row(op, a([[], []]), 0.5, axis=0)
    row(op, some(4), -0.1)
    row(op, some(4), 101)
    row(op, some(4), 0.5, axis=1)
    row(op, some(4), 0.5, method="cubic")
    row(op, a([1j, 2], "complex128"), 0.5)
    row(op, a(4.0), 0.5)
for op in ["np.median", "np.nanmedian"]:
    for x in [some(5), some(6), some(6, "float32"), some(6, "int16"), a([True, False], "bool"), HOLED, a(3.0), a([]), a([[], []])]:
        row(op, x, ulps=1)
        row(op, x, axis=-1, ulps=1)
        row(op, x, axis=0, keepdims=True, ulps=1)
    row(op, some((3, 4, 2)), axis=(0, 2))
    row(op, some(4), axis=2)
row("np.median", a([1j, 2, 3 + 1j, 2j], "complex128"))

# Averages and covariances.
x, w = some((3, 4)), a([1, 2, 0.5, 3])
for dtype in ["float32", "float64", "int64", "complex128"]:
    row("np.average", x.astype(dtype), ulps=4, scale=8.0)
    row("np.average", x.astype(dtype), axis=1, weights=w, ulps=4, scale=8.0)
    row("np.average", x.astype(dtype), axis=0, weights=np.abs(some((3, 4))) + 1, returned=True, ulps=4, scale=8.0)
    row("np.average", x.astype(dtype), axis=1, weights=a([1, 2, 1, 2], "int64"), keepdims=True, returned=True, ulps=4, scale=8.0)
    row("np.cov", x.astype(dtype), ulps=32, scale=32.0)
    row("np.corrcoef", x.astype(dtype), ulps=32, scale=1.0)
row("np.average", some((2, 3, 4)), axis=(0, 2), weights=np.abs(some((2, 4))) + 1, ulps=4, scale=8.0)
row("np.average", x, weights=w)
row("np.average", x, axis=0, weights=w)
row("np.average", x, axis=3)
row("np.average", x, axis=1, returned=True, ulps=4, scale=8.0)
for keywords in [{}, {"rowvar": False}, {"bias": True}, {"ddof": 0}, {"ddof": 2}, {"fweights": a([1, 2, 3, 1], "int64")}, {"aweights": w}, {"fweights": a([1, 2, 3, 1], "int64"), "aweights": w}, {"aweights": w, "ddof": 0}, {"fweights": a([1, -2, 3, 1], "int64")}, {"fweights": w}, {"ddof": 1.5}, {"y": some(4)}, {"y": some((2, 4))}, {"y": some(3)}]:
    row("np.cov", x, ulps=64, scale=32.0, **keywords)
row("np.cov", some(5), ulps=16, scale=32.0)
row("np.cov", some(5), some(5), ulps=16, scale=32.0)
row("np.cov", some((2, 2, 2)))
row("np.corrcoef", some(5), some(5), ulps=16, scale=1.0)
row("np.corrcoef", some((5, 2)), rowvar=False, ulps=16, scale=1.0)
row("np.corrcoef", some(5), ulps=1)

# Slopes and integrals.
for dtype in ["float32", "float64", "int32", "uint8", "complex64"]:
    x = np.abs(some((4, 5), "float64")).astype(dtype)
    for keywords in [{}, {"axis": 0}, {"axis": (1, 0)}, {"edge_order": 2}, {"axis": -1, "edge_order": 2}]:
        row("np.gradient", x, ulps=8, scale=8.0, **keywords)
    row("np.gradient", x, 2.0, ulps=8, scale=8.0)
    row("np.gradient", x, 2.0, 0.5, ulps=8, scale=8.0)
row("np.gradient", some((4, 5)), a([0, 1, 3, 4]), a([0, 0.5, 2, 3, 5]), ulps=64, scale=8.0)
row("np.gradient", some((4, 5)), a([0, 1, 3, 4]), axis=0, edge_order=2, ulps=64, scale=8.0)
row("np.gradient", some((4, 5)), a([0, 1, 3]), axis=0)
row("np.gradient", some((4, 5)), 1.0, 2.0, 3.0)
row("np.gradient", some(1))
row("np.gradient", some(2), edge_order=2)
row("np.gradient", some(5), edge_order=3)
row("np.gradient", a([True, False, True], "bool"))
for keywords in [{}, {"dx": 0.5}, {"axis": 0}, {"x": a([0, 1, 3, 4, 7])}, {"x": some((4, 5))}, {"x": a([0, 1])}]:
    row("np.trapezoid", some((4, 5)), ulps=16, scale=32.0, **keywords)
row("np.trapezoid", some(6, "int32"), ulps=4)

# Intervals, and values between points.
for x in [some(9), some((2, 3), "int32"), a([NAN, 1, INF, -INF]), a(1.0)]:
    for bins in [a([-2, 0, 0, 1.5]), a([3, 1, 1, -2]), a([]), a([1]), a([2, 1, 3]), a([1, 2], "int32")]:
        row("np.digitize", x, bins)
        row("np.digitize", x, bins, right=True)
row("np.digitize", a([1j], "complex128"), a([1.0]))
xp, fp = a([-3, -1, 0, 2.5]), a([1, 5, -2, 0.5])
for x in [some(12), some((3, 3), "int32"), a([NAN, INF, -INF, 2.5, -3]), a(0.5), a([])]:
    row("np.interp", x, xp, fp, ulps=4, scale=8.0)
    row("np.interp", x, xp, fp, left=-9.0, right=NAN, ulps=4, scale=8.0)
    row("np.interp", x, xp, fp, period=4.0, ulps=16, scale=8.0)
    row("np.interp", x, xp, fp * (1 + 2j), ulps=16, scale=16.0)
    row("np.interp", x, xp, a([1, INF, -2, 0.5]))
    row("np.interp", x, a([1.0]), a([7.0]))
row("np.interp", some(3), xp, fp[:3])
row("np.interp", some(3), xp, fp, period=0.0)
row("np.interp", some(3), a([]), a([]))
row("np.interp", some(3), xp.reshape(2, 2), fp)

# Borders, insertions, blocks, orders.
for x in [some(4), some((3, 2), "int32"), some(1), some((2, 3, 2), "float32")]:
    for width in [0, 2, 7, (1, 3)]:
        for mode in ["constant", "edge", "wrap", "reflect", "symmetric", "maximum", "mean", "median", "minimum", "linear_ramp"]:
            row("np.pad", x, width, mode, ulps=4, scale=8.0)
        for mode in ["reflect", "symmetric"]:
            row("np.pad", x, width, mode, reflect_type="odd")
x = some((3, 4))
for keywords in [{"constant_values": 7}, {"constant_values": ((1, 2), (3, 4))}, {"mode": "mean", "stat_length": 2}, {"mode": "linear_ramp", "end_values": (9, -9)}, {"mode": "shrink"}]:
    row("np.pad", x, ((1, 2), (0, 3)), ulps=4, scale=8.0, **keywords)
row("np.pad", x, -1)
row("np.pad", x, 1.5)
row("np.pad", a([]), 2, "edge")
row("np.pad", a([]), 2)
for x in [some(5), some((3, 4), "int32")]:
    row("np.insert", x, 1, 7)
    row("np.insert", x, -1, a([7, 8, 9]))
    row("np.insert", x, [0, 2, 2], [5, 6, 7])
    row("np.insert", x, [5, 0, -1], 9)
    row("np.insert", x, 1, 7, axis=0)
    row("np.insert", x, [1], 7, axis=-1)
    row("np.insert", x, 99, 7)
    row("np.insert", x, 0, 7, axis=2)
row("np.insert", some((3, 4)), 1, some(3), axis=1)
row("np.insert", some((3, 4)), [1, 3], some((3, 2)), axis=1)
row("np.insert", some((3, 4)), [1, 3], some(3), axis=1)
row("np.block", [some(2), some(3)])
row("np.block", [[some((2, 2)), some((2, 1))], [some((1, 2)), some((1, 1))]])
row("np.block", [some((2, 2)), [some(2)]])
row("np.lexsort", a([[3, 1, 1, 2], [1, 2, 1, 2]]))
row("np.lexsort", (some(9), some(9, "int32"), some(9)))
row("np.lexsort", (some(3), some(2)))
row("np.partition", some(4), 9)
row("np.argpartition", some(4), -5)
row("np.partition", some(4), 1, axis=1)
