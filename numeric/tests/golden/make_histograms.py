"""Makes histograms.jsonl: programs of histograms, and what NumPy answers. Run with NumPy 2.4: python make_histograms.py > histograms.jsonl"""
import warnings

import numpy as np

from rows import INF, NAN, a, row, some

warnings.simplefilter("ignore")
rng = np.random.default_rng(11)
ESTIMATORS = ["auto", "fd", "doane", "scott", "rice", "sturges", "sqrt"]

# Numbers of bins, over the range of the elements or a given one.
for dtype in ["float64", "float32", "float16", "int8", "int32", "uint8", "int64", "uint64"]:
    x = np.abs(some(23, dtype))
    for keywords in [{}, {"bins": 1}, {"bins": 7}, {"bins": 3, "range": (1, 5)}, {"bins": 4, "range": (0.5, 2.75)}]:
        row("np.histogram", x, ulps=1, **keywords)
        row("np.histogram_bin_edges", x, ulps=1, **keywords)
    row("np.histogram", x, 5, density=True, ulps=2)
    row("np.histogram", x.reshape(23, 1)[:22].reshape(2, 11), 5, weights=some((2, 11)))
    row("np.histogram", x, a([0, 1, 1, 3, 4.5]))
    row("np.histogram", x, a([0, 2, 4], "int64"), weights=some(23, "int32"))
    row("np.histogram", x, a([0, 2, 4], "float32"), density=True, ulps=2)
for n in [1, 2, 10, 100, 1000]:
    row("np.histogram", rng.random(2000), n)
    row("np.histogram", np.linspace(0, 1, n + 1), n)
    row("np.histogram", np.linspace(-0.1, 0.7, 3 * n + 1).astype("float32"), n)
    row("np.histogram", np.arange(300) * 0.1, n, range=(0.0, 30.0))
x = some(12)
for dtype in ["float64", "float32", "int64", "uint64", "complex128", "complex64", "bool"]:
    w = np.abs(some(12, "int64")).astype(dtype)
    row("np.histogram", x, 4, weights=w, ulps=2, scale=8.0)
    if dtype != "bool":
        row("np.histogram", x, a([-3, -1, 0, 2]), weights=w, ulps=2, scale=8.0)
        row("np.histogram", x, 3, weights=w, density=True, ulps=8, scale=1.0)
row("np.histogram", a([NAN, 1, 2, INF]), 3, range=(0.0, 4.0))
row("np.histogram", a([NAN, 1, 2, INF, -INF]), a([-INF, 0, 1.5, INF]))
row("np.histogram", a([NAN, 1, 2]), 3)
row("np.histogram", a([1, INF]), 3)
row("np.histogram", a([]), 3)
row("np.histogram", a([], "int32"), 3, density=True)
row("np.histogram", a(2.0), 3)
row("np.histogram", a([4, 4, 4], "int16"), 3)
row("np.histogram", a([True, False, True, True], "bool"), 2)
row("np.histogram", x, 0)
row("np.histogram", x, -1)
row("np.histogram", x, 2.5)
row("np.histogram", x, a([3, 1, 2.0]))
row("np.histogram", x, a([1.0]))
row("np.histogram", x, a([[1.0, 2.0]]))
row("np.histogram", x, 3, range=(2.0, 1.0))
row("np.histogram", x, 3, range=(0.0, INF))
row("np.histogram", x, 3, range=(2.0, 2.0))
row("np.histogram", x, 3, weights=some(5))
row("np.histogram", a([1.0, np.nextafter(1.0, 2.0)]), 10)
row("np.histogram", a([2**62, 2**62 + 1, 2**63 - 1], "int64"), a([0, 2**62 + 1, 2**63 - 1], "int64"))

# Rules for the number of bins.
for name in ESTIMATORS:
    for y in [rng.normal(size=200), rng.exponential(size=97), rng.integers(0, 9, size=60), a([1, 1, 1, 1]), a([5.0]), a([]), a([1, 2], "int32")]:
        row("np.histogram_bin_edges", y, name, ulps=1)
    row("np.histogram", rng.normal(size=300), name, range=(-1.0, 2.0))
row("np.histogram", x, "few")
row("np.histogram", x, "auto", weights=x)
row("np.histogram", a([NAN, 1.0]), "auto")

# Two axes and several.
x, y, w = some(15), some(15), some(15)
for keywords in [{}, {"bins": 3}, {"bins": [2, 5]}, {"bins": a([-2, 0, 0, 1.5])}, {"bins": [4, a([-2, 0, 3.0])]}, {"bins": [a([-2, 0, 3.0]), a([-1, 1.0])]}]:
    row("np.histogram2d", x, y, ulps=1, **keywords)
    row("np.histogram2d", x, y, weights=w, ulps=1, **keywords)
    row("np.histogram2d", x, y, density=True, ulps=4, **keywords)
row("np.histogram2d", x, y, bins=3, range=[[-2, 2], [0, 3]])
row("np.histogram2d", x.astype("float32"), y.astype("int32"), bins=3, ulps=1)
row("np.histogram2d", x.astype("float32"), y.astype("float32"), bins=3, range=[[0.1, 0.7], [0.2, 1.1]], ulps=1)
row("np.histogram2d", x, y[:4])
row("np.histogram2d", x, y, bins=0)
row("np.histogram2d", x, y, bins=[2, 2.5])
row("np.histogram2d", x, y, range=[[0, 1]])
row("np.histogram2d", x, y, bins=[3, a([3, 1.0])])
row("np.histogram2d", x, y, weights=w[:3])
row("np.histogram2d", a([]), a([]), bins=2)
points = some((20, 3))
for keywords in [{"bins": 2}, {"bins": [2, 3, 4]}, {"bins": [2, a([-2, 0, 0, 1.5]), 1]}, {"bins": 2, "density": True}, {"bins": 3, "weights": some(20)}, {"bins": 3, "range": [[-2, 2], [0, 3], [1, 4]]}, {"bins": [2, 2]}, {"bins": 2, "range": [[0, 1]]}, {"bins": 2, "weights": some(4)}]:
    row("np.histogramdd", points, ulps=4, **keywords)
row("np.histogramdd", some(9), bins=3)
row("np.histogramdd", [some(9), some(9, "int32")], bins=[3, 2])

# Numbers.
for dtype in ["int64", "int8", "uint16", "bool"]:
    x = np.abs(some(14, "int64")).astype(dtype)
    row("np.bincount", x)
    row("np.bincount", x, minlength=12)
    row("np.bincount", x, weights=some(14), minlength=3)
    row("np.bincount", x, weights=some(14, "int32"))
    row("np.bincount", x, weights=some(14, "float32"))
row("np.bincount", a([], "int64"), minlength=2)
row("np.bincount", a([], "int64"), weights=a([]))
row("np.bincount", a([0], "int64"))
row("np.bincount", a([3, -1, 2], "int64"))
row("np.bincount", a([-5], "int64"))
row("np.bincount", a([1.0, 2.0]))
row("np.bincount", a([[1, 2]], "int64"))
row("np.bincount", a(1, "int64"))
row("np.bincount", a([1, 2], "int64"), weights=a([1.0]))
row("np.bincount", a([1, 2], "int64"), weights=a([1j, 2.0], "complex128"))
row("np.bincount", a([1, 2], "int64"), minlength=-1)
