"""Makes the arrays in zarr/. Run with zarr 3.1: python make_zarr.py"""
import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec

x = np.arange(35).reshape(5, 7) / 4
zarr.create_array("zarr/zstd", data=x, chunks=(2, 3), overwrite=True)
codecs = {"serializer": BytesCodec(endian="big"), "compressors": [GzipCodec(level=5), Crc32cCodec()]}
zarr.create_array("zarr/gzip_crc32c_big", data=x.astype("f4"), chunks=(5, 4), overwrite=True, **codecs)
keys = {"name": "v2", "separator": "."}
partial = zarr.create_array("zarr/partial_v2_keys", shape=8, chunks=4, dtype="f8", fill_value=np.nan, compressors=None, chunk_key_encoding=keys, overwrite=True)
partial[:4] = 1
zarr.create_array("zarr/complex", data=np.array([1 - 1j, 2j, 0.5j]), chunks=2, overwrite=True)
