"""Makes stored.npz and deflated.npz beside this file: `python make_npz.py`, with NumPy as in benches/requirements.txt."""

import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).parent
ARRAYS = {
    "x": np.arange(105, dtype="<f8").reshape(7, 5, 3) / 8,
    "columns": np.asfortranarray(np.arange(12, dtype="<i4").reshape(3, 4)),
    "swapped": np.arange(5, dtype=">i2"),
    "scalar": np.float32(1.5),
    "empty": np.zeros((0, 4)),
}

np.savez(FOLDER / "stored.npz", **ARRAYS)
np.savez_compressed(FOLDER / "deflated.npz", **ARRAYS)
