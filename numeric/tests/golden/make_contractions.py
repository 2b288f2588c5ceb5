"""Makes contractions.jsonl: sums of products, and what NumPy answers. Run with NumPy 2.4: python make_contractions.py > contractions.jsonl"""
import warnings

import numpy as np

from rows import INF, NAN, a, row, some

warnings.simplefilter("ignore")
rng = np.random.default_rng(5)
TYPES = ["float64", "float32", "int64", "int8", "uint64", "complex128", "bool"]

# Einstein's convention.
SIZES = {"i": 2, "j": 3, "k": 4, "l": 2, "m": 3, "A": 2, "b": 3, "C": 4}


def x(labels, dtype="float64"):
    return some(tuple(SIZES[label] for label in labels), dtype)


for text in ["ij,jk->ik", "ij,jk", "ij,jk->ki", "ij->ji", "ji", "ij->", "ij->i", "ij->j", "i,i", "i,i->i", "i,j->ij", "i,j->ji", "i,j->", "ij,ij->", "ij,ij->j", "ij,kj->ik", "ijk,ikl->ijl", "ijk,kl->ijl", "ijk,jl,lm->im", "ij,jk,kl,lm->im", "ij,jk,kl->", "i,i,i->", "i,j,k->ijk", "ij,j", "ij,i->j", "ijk,jk->i", "ijk->kij", "ijk,ijk->jk", "Ab,bC", "bA", "ijk,lm,lk->jm", " i j , j k -> i k ", "ij,jk,ik->ijk", "ijk,il->jkl", "kij,lj,m->mil"]:
    for dtype in TYPES if len(text) < 10 else TYPES[:1]:
        operands = [x(part.strip().replace(" ", ""), dtype) for part in text.split("->")[0].split(",")]
        row("np.einsum", text, *operands, ulps=32, scale=64.0)
square, stack = some((3, 3)), some((2, 3, 3))
for text in ["ii", "ii->i", "ij->", "ii->", "...ii->...", "i...i", "...ij->...ji", "...", "...->...", "ij...->ij...", "...j"]:
    row("np.einsum", text, square, ulps=16, scale=32.0)
for text in ["iij->j", "jii->j", "jii", "jii->ij", "...ii->...i", "i...->i...", "...i->i..."]:
    row("np.einsum", text, stack, ulps=16, scale=32.0)
row("np.einsum", "ii,ii->i", square, square, ulps=16, scale=32.0)
row("np.einsum", "iii->i", some((3, 3, 3)))
row("np.einsum", "iijj->ij", some((2, 2, 3, 3)))
row("np.einsum", "ijij->", some((2, 3, 2, 3)), ulps=16, scale=32.0)
row("np.einsum", "...ij,...jk->...ik", stack, square, ulps=16, scale=32.0)
row("np.einsum", "...ij,...jk", some((2, 1, 2, 3)), stack, ulps=16, scale=32.0)
row("np.einsum", "...,...", square, some(3))
row("np.einsum", "i...,j...->ij...", some((2, 3)), some((4, 3)))
row("np.einsum", "...i,...i->...", stack, some(3), ulps=16, scale=32.0)
row("np.einsum", "i,i", some(1), some(4), ulps=16, scale=32.0)
row("np.einsum", "ij,jk", some((2, 1)), some((4, 3)), ulps=16, scale=32.0)
row("np.einsum", "ij,ij->ij", some((2, 1)), some((1, 3)))
row("np.einsum", "i,ij->j", some(3), some((3, 0)))
row("np.einsum", "ij,jk", some((2, 0)), some((0, 3)))
row("np.einsum", "", a(3.0))
row("np.einsum", ",", a(3.0), a(4.0))
row("np.einsum", ",ij", a(3.0), square)
row("np.einsum", square, [0, 1], square, [1, 2], [0, 2], ulps=16, scale=32.0)
row("np.einsum", square, [0, 1], square, [1, 2], ulps=16, scale=32.0)
row("np.einsum", square, [30, 2])
row("np.einsum", square, [60, 2])
row("np.einsum", "ij,jk", square.astype("float32"), square, ulps=16, scale=32.0)
row("np.einsum", "ij,jk", square.astype("int8"), square.astype("float32"), ulps=16, scale=32.0)
row("np.einsum", "ij,jk", square.astype("float32"), square.astype("float32"), dtype=np.dtype("float64"), ulps=16, scale=32.0)
row("np.einsum", "ij,jk", square, square, dtype=np.dtype("float32"))
row("np.einsum", "ij,jk,kl", square, square, square, optimize=True, ulps=16, scale=64.0)
for text in ["i%j", "ij,jk", "ijk", "i", "ij->ii", "ij->k", "i...->i", "i..", "ij->->", "......", "ii->ij", "ij->i...", "", "..i.", "ij,"]:
    row("np.einsum", text, some((3, 4)))
row("np.einsum", "ij", square, square)
row("np.einsum", "ij,ik", some((2, 3)), some((3, 4)))
row("np.einsum", "ii", some((2, 3)))
row("np.einsum", "ii", some((1, 3)))

# Chains of matrices.
for shapes in [[(2, 3), (3, 4)], [(2, 3), (3, 4), (4, 2)], [(4, 1), (1, 5), (5, 2), (2, 3)], [(3,), (3, 4), (4, 2)], [(2, 3), (3, 4), (4,)], [(3,), (3, 4), (4,)], [(3,), (3,)], [(2, 3), (3,)]]:
    for dtype in ["float64", "int32", "complex64"]:
        row("np.linalg.multi_dot", [some(shape, dtype) for shape in shapes], ulps=64, scale=256.0)
row("np.linalg.multi_dot", [some((2, 3))])
row("np.linalg.multi_dot", [some((2, 3)), some(3), some((3, 2))])
row("np.linalg.multi_dot", [some((2, 3)), some((3, 4)), some((2, 3))])
row("np.linalg.multi_dot", [some((2, 2, 2)), some((2, 2)), some((2, 2))])

# Lines beneath lines.
for mode in ["full", "same", "valid"]:
    for n, k in [(7, 3), (7, 4), (3, 7), (4, 7), (5, 5), (6, 6), (1, 1), (9, 1), (1, 4), (20, 11)]:
        for op in ["np.convolve", "np.correlate"]:
            row(op, some(n), some(k), mode, ulps=16, scale=64.0)
    for dtype in TYPES + ["float16", "complex64", "int16"]:
        for op in ["np.convolve", "np.correlate"]:
            row(op, some(6, dtype), some(3, dtype), mode, ulps=16, scale=64.0)
    row("np.correlate", some(5) * (1 + 1j), some(3) * (2 - 1j), mode, ulps=16, scale=64.0)
    row("np.correlate", some(3) * (1 + 1j), some(6) * (2 - 1j), mode, ulps=16, scale=64.0)
    row("np.convolve", some(5, "int8"), some(3, "float32"), mode, ulps=16, scale=64.0)
row("np.convolve", some(5), some(3), ulps=16, scale=64.0)
row("np.correlate", some(5), some(3), ulps=16, scale=64.0)
row("np.convolve", some(5), some(3), 1, ulps=16, scale=64.0)
row("np.convolve", a([1, NAN, 3]), a([1, 2]))
row("np.convolve", a([1, INF, 3]), a([1, 2]))
row("np.convolve", some(5), some(3), 3)
row("np.convolve", some(5), some(3), "some")
row("np.convolve", a(3.0), some(3))
row("np.convolve", a([]), some(3))
row("np.convolve", some(3), a([]))
row("np.convolve", some((2, 2)), some(3))
row("np.correlate", a(3.0), some(3))
row("np.correlate", a([]), some(3))
row("np.correlate", some(3), a([]))
row("np.correlate", some(3), some((2, 2)))
