"""Writes the HDF5 files of these tests with h5py, in the oldest and in the newest form of the format."""

import pathlib

import h5py
import numpy as np

folder = pathlib.Path(__file__).parent / "hdf5"
folder.mkdir(exist_ok=True)
x = np.arange(35).reshape(5, 7) / 4.0
for version in ("earliest", "latest"):
    with h5py.File(folder / f"{version}.h5", "w", libver=version) as file:
        file["contiguous"] = x
        file.create_dataset(
            "group/chunked", data=x.astype(">f4"), chunks=(2, 3), compression="gzip", shuffle=True, fletcher32=True
        )
        file.create_dataset("partial", shape=(9,), chunks=(2,), dtype="i2", fillvalue=-1)[2:4] = [5, 6]
        file.create_dataset("grows", data=np.arange(20, dtype="u4"), chunks=(3,), maxshape=(None,))
        # 64 MB, of which one chunk is stored.
        wide = file.create_dataset("wide", shape=(8_000_000,), chunks=(100_000,), dtype="i8", fillvalue=3, compression=9)
        wide[100_000:200_000] = 4
        file.create_dataset("lzf", data=x, compression="lzf")
        file["scalar"] = np.uint8(7)
        file["empty"] = np.zeros((3, 0), "i4")
        file["bools"] = np.array([True, False])
        file["complex"] = np.array([1 + 2j])
        file["text"] = "abc"
        file["half"] = np.arange(3, dtype="f2")
        file["elsewhere"] = h5py.ExternalLink("other.h5", "x")

# Types of the usual sizes whose bits lie elsewhere, and such as lie where they always do.
with h5py.File(folder / "types.h5", "w", libver="earliest") as file:
    def of_type(name, base, change=lambda kind: None):
        kind = base.copy()
        change(kind)
        dataset = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((3,)))
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(3, dtype="f8"))

    def precise(bits, offset):
        def change(kind):
            kind.set_precision(bits)
            kind.set_offset(offset)
        return change

    def fields(kind):
        kind.set_fields(31, 20, 11, 0, 20)
        kind.set_ebias(127)

    of_type("int", h5py.h5t.STD_I32LE)
    of_type("int of 24 bits", h5py.h5t.STD_I32LE, precise(24, 0))
    of_type("int of 24 bits behind 4", h5py.h5t.STD_I32LE, precise(24, 4))
    of_type("uint of 63 bits", h5py.h5t.STD_U64BE, precise(63, 0))
    of_type("float", h5py.h5t.IEEE_F64BE)
    of_type("float of other fields", h5py.h5t.IEEE_F32LE, fields)
    of_type("float of another bias", h5py.h5t.IEEE_F64LE, lambda kind: kind.set_ebias(1000))
    of_type("float of another order", h5py.h5t.IEEE_F32LE, lambda kind: kind.set_order(h5py.h5t.ORDER_VAX))
    of_type("float without the implied bit", h5py.h5t.IEEE_F32LE, lambda kind: kind.set_norm(h5py.h5t.NORM_NONE))
