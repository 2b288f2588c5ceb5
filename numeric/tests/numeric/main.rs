//! Tests of tensors from outside: against NumPy, against plain evaluators, over files, and of what is
//! refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod batches;
mod carried;
mod complex;
mod distribution_functions;
mod distributions;
mod extremes;
mod factor;
mod golden;
#[cfg(feature = "hdf5")]
mod hdf5;
mod matrices;
mod names;
mod npy;
mod npz;
#[cfg(feature = "object-storage")]
mod object_storage;
mod operations;
mod products;
mod programs;
mod properties;
mod seeds;
mod sorting;
mod sparse;
mod tiles;
mod transforms;
mod unknown;
mod warnings;
#[cfg(not(feature = "dense"))]
mod without_dense;
mod zarr;
mod zarr_shards;

/// The folder of the crate. Read when the tests run: a program may have been compiled in another clone.
fn folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR").into()
}
