"""Makes names.jsonl: cosine transforms, equality of arrays, coordinates, products, and what NumPy and SciPy answer. Run with NumPy 2.4 and SciPy 1.17: python make_names.py > names.jsonl"""
import warnings

import numpy as np

from rows import INF, NAN, a, row, some

warnings.simplefilter("ignore")

# Cosine transforms.
DCT, IDCT = "scipy.fft.dct", "scipy.fft.idct"
for op in [DCT, IDCT]:
    for kind in [1, 2, 3, 4]:
        for n in [2, 3, 4, 5, 8, 13]:
            for norm in [None, "ortho", "forward"]:
                row(op, some(n), kind, norm=norm, ulps=64, scale=64.0)
        for dtype in ["float32", "float16", "int8", "bool", "complex64", "complex128", "uint8"]:
            row(op, some((3, 4), dtype), kind, ulps=64, scale=64.0)
        for axis in [0, 1, -1]:
            row(op, some((3, 4, 2)), kind, axis=axis, ulps=64, scale=64.0)
        for n in [2, 7]:
            row(op, some((4, 3)), kind, n, 0, "ortho", ulps=64, scale=64.0)
        row(op, some(6), kind, norm="ortho", orthogonalize=False, ulps=64, scale=64.0)
        row(op, some(6), kind, orthogonalize=True, ulps=64, scale=64.0)
    row(op, some(1), ulps=8)
    row(op, some(1), 4, ulps=8)
    row(op, some((0, 3)), axis=1)
    row(op, some(0))
    row(op, some(3), n=0)
    row(op, some(3), 5)
    row(op, some(3), norm="some")
    row(op, some(3), axis=1)
    row(op, a(3.0))
for op in ["scipy.fft.dctn", "scipy.fft.idctn"]:
    for kind in [1, 2, 3, 4]:
        row(op, some((3, 4)), kind, ulps=64, scale=256.0)
        row(op, some((3, 4, 2)), kind, axes=(0, -1), norm="ortho", ulps=64, scale=256.0)
        row(op, some((3, 4)), kind, (2, 5), ulps=64, scale=256.0)
    row(op, some((3, 4)), 2, (2,), (0, 1))

# Equality of arrays.
x = some((3, 4))
odd = a([1, NAN, INF, -INF])
for op in ["np.allclose", "np.isclose"]:
    row(op, x, x + 1e-9)
    row(op, x, x + 1e-3)
    row(op, x, x + 1e-3, 0.0, 0.01)
    row(op, x, x[0])
    row(op, odd, odd)
    row(op, odd, odd, equal_nan=True)
    row(op, odd, 1.0, equal_nan=True)
    row(op, a([1, NAN], "complex128"), a([1, NAN], "complex128"), equal_nan=True)
    row(op, a([1, 2], "int64"), a([1, 2], "int64"))
    row(op, some((0, 3)), some((1, 3)))
    row(op, x, some(3))
for op in ["np.array_equal", "np.array_equiv"]:
    row(op, x, x)
    row(op, x, x + 1)
    row(op, x, some(3))
    row(op, x[:1] * 0, x * 0)
    row(op, x, x.astype("int64"))
    row(op, odd, odd)
    row(op, a([], "int8"), a([]))
    row(op, a(1.0), a(1.0))
row("np.array_equal", odd, odd, equal_nan=True)
row("np.array_equal", a([1, 2], "int64"), a([1, 2], "int64"), equal_nan=True)

# Products of vectors and matrices.
for dtype in ["float64", "float32", "int8", "bool", "complex128"]:
    m, v, w = some((3, 4), dtype), some(4, dtype), some(3, dtype)
    if dtype == "complex128":
        m, v, w = m * (1 + 2j), v * (2 - 1j), w * (1j - 1)
    row("np.matvec", m, v, ulps=8, scale=64.0)
    row("np.vecmat", w, m, ulps=8, scale=64.0)
row("np.matvec", some((2, 1, 3, 4)), some((5, 4)), ulps=8, scale=64.0)
row("np.vecmat", some((2, 1, 3)), some((5, 3, 4)), ulps=8, scale=64.0)
row("np.matvec", some((3, 4), "int8"), some(4), ulps=8, scale=64.0)
row("np.matvec", some((3, 4)), some(3))
row("np.vecmat", some(4), some((3, 4)))
row("np.matvec", some(4), some(4))
row("np.vecmat", some(4), some(4))
row("np.matvec", some((3, 0)), some(0))

# Least squares, and equations between tensors.
LSTSQ = "np.linalg.lstsq"
tall = a([[1, 0], [1, 1], [1, 2], [2, 5]])
for b in [a([1, 3, 5, 4]), a([[1, 2, 0], [3, 4, 1], [5, 5, 5], [0, 1, 2]])]:
    for dtype in ["float64", "float32"]:
        row(LSTSQ, tall.astype(dtype), b.astype(dtype), ulps=64, scale=16.0)
    row(LSTSQ, tall, b, -1, ulps=64, scale=16.0)
    row(LSTSQ, tall, b, 0.3, ulps=64, scale=16.0)
row(LSTSQ, tall.T, a([1, 2]), ulps=64, scale=16.0)
row(LSTSQ, a([[1, 1], [1, 1], [1, 1]]), a([1, 2, 3]), ulps=64, scale=16.0)
row(LSTSQ, a([[2, 1], [0, 4]]), a([1, 2]), ulps=64, scale=16.0)
row(LSTSQ, a([[2, 1], [0, 4]], "int64"), a([1, 2], "int64"), ulps=64, scale=16.0)
row(LSTSQ, tall * (1 + 1j), a([1, 2, 1, 0], "complex128"), ulps=64, scale=16.0)
row(LSTSQ, tall, a([1, 2]))
row(LSTSQ, a([1, 2]), a([1, 2]))
square = np.eye(6) * 2 + np.ones((6, 6))
row("np.linalg.tensorsolve", square.reshape(2, 3, 6), some((2, 3)), ulps=64, scale=16.0)
row("np.linalg.tensorsolve", square.reshape(6, 3, 2), some(6), ulps=64, scale=16.0)
row("np.linalg.tensorsolve", square.reshape(2, 3, 6).transpose(2, 0, 1), some((2, 3)), axes=(0,), ulps=64, scale=16.0)
row("np.linalg.tensorsolve", square.reshape(2, 3, 6), some(3))
row("np.linalg.tensorinv", square.reshape(2, 3, 6), ulps=64, scale=4.0)
row("np.linalg.tensorinv", square.reshape(6, 3, 2), 1, ulps=64, scale=4.0)
row("np.linalg.tensorinv", square.reshape(6, 3, 2), 0)
row("np.linalg.tensorinv", square.reshape(6, 3, 2), 2)

# Coordinates.
row("np.unravel_index", a([22, 41, 37], "int64"), (7, 6))
row("np.unravel_index", a([[0, 5], [3, 1]], "int32"), (2, 1, 3))
row("np.unravel_index", a(3, "int64"), (2, 3))
row("np.unravel_index", a([22], "int64"), (7, 3))
row("np.unravel_index", a([-1], "int64"), (7, 3))
row("np.unravel_index", a([1.0]), (7, 3))
grid = [a([3, 6, 6], "int64"), a([4, 5, 1], "int64")]
row("np.ravel_multi_index", grid, (7, 6))
row("np.ravel_multi_index", [grid[0], a(2, "int64")], (7, 6))
row("np.ravel_multi_index", grid, (4, 6), "clip")
row("np.ravel_multi_index", grid, (4, 4), ("clip", "wrap"))
row("np.ravel_multi_index", grid, (4, 6))
row("np.ravel_multi_index", grid, (4, 6), "some")
row("np.ravel_multi_index", grid, (4,))
for op in ["np.tril_indices", "np.triu_indices"]:
    row(op, 4)
    row(op, 3, 1, 5)
    row(op, 3, -2)
    row(op, 0)
    row(op + "_from", some((3, 4)), 1)
    row(op + "_from", some(3))
row("np.diag_indices", 3)
row("np.diag_indices", 2, 3)
row("np.diag_indices_from", some((3, 3)))
row("np.diag_indices_from", some((3, 4)))
row("np.diag_indices_from", some(3))
row("np.ix_", a([0, 2], "int64"), a([1, 3, 0], "int64"))
row("np.ix_", a([True, False, True], "bool"), a([1], "int64"))
row("np.ix_", some((2, 2)))

# Choices.
row("np.choose", a([2, 3, 1, 0], "int64"), [some(4), some(4), some(4), some(4)])
row("np.choose", a([[1, 0], [0, 1]], "int64"), [some(2), a(7.0)])
row("np.choose", a([5, -3, 1], "int64"), [some(3), some(3)], mode="clip")
row("np.choose", a([5, -3, 1], "int64"), [some(3), some(3)], mode="wrap")
row("np.choose", a([5, 0, 1], "int64"), [some(3), some(3)])
row("np.choose", a([0, 0], "int64"), [a(3.0)])
row("np.choose", a([0.5, 1]), [some(2), some(2)])
row("np.select", [x < 0, x < 2], [x, x * 10], -1)
row("np.select", [x < 0, x < 2], [x.astype("int8"), x.astype("float32")])
row("np.select", [x < 0], [a(3, "int64")], 2.5)
row("np.select", [x < 0], [])
row("np.select", [], [])
row("np.select", [x], [x])
row("np.iscomplex", a([1 + 1j, 2], "complex128"))
row("np.isreal", a([1 + 1j, 2], "complex128"))
row("np.iscomplex", odd)
row("np.isreal", some(3, "int8"))
for dtype in ["int8", "uint16", "int32", "float32", "float64", "complex64"]:
    row("np.sort_complex", some(5, dtype))
row("np.sort_complex", some((2, 3)))
row("np.asarray_chkfinite", some(3))
row("np.asarray_chkfinite", some(3, "int8"), dtype=np.dtype("float32"))
row("np.asarray_chkfinite", odd)

# Sine transforms, and a Bessel function.
for op in ["scipy.fft.dst", "scipy.fft.idst"]:
    for kind in [1, 2, 3, 4]:
        for n in [1, 2, 3, 5, 8]:
            for norm in [None, "ortho", "forward"]:
                row(op, some(n), kind, norm=norm, ulps=64, scale=64.0)
        for dtype in ["float32", "float16", "int8", "bool", "complex64", "complex128"]:
            row(op, some((3, 4), dtype), kind, ulps=64, scale=64.0)
        for n in [2, 7]:
            row(op, some((4, 3)), kind, n, 0, "ortho", ulps=64, scale=64.0)
        row(op, some(6), kind, norm="ortho", orthogonalize=False, ulps=64, scale=64.0)
        row(op, some(6), kind, orthogonalize=True, ulps=64, scale=64.0)
    row(op, some((0, 3)), axis=1)
    row(op, some(0))
    row(op, some(3), 5)
    row(op, some(3), axis=1)
for op in ["scipy.fft.dstn", "scipy.fft.idstn"]:
    for kind in [1, 2, 3, 4]:
        row(op, some((3, 4)), kind, ulps=64, scale=256.0)
        row(op, some((3, 4, 2)), kind, axes=(0, -1), norm="ortho", ulps=64, scale=256.0)
for dtype in ["float64", "float32", "float16", "int8", "uint16", "bool"]:
    row("np.i0", some((3, 4), dtype), ulps=8)
row("np.i0", a([0.0, -0.0, 1e-300, 3.5, -7.9, 8.1, 24.0, 25.0, 25.5, 30.0, 100.0, 700.0, INF, -INF, NAN]), ulps=32)
row("np.i0", a([1], "complex128"))
