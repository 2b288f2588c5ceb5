//! Tests of frames from outside: on every executor, against plain rows and pandas, over files and servers.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common_types;
mod copies;
mod display;
mod elementwise;
mod executors;
mod file_forms;
mod foreign;
mod frames;
mod functions;
mod grammar;
mod groups;
mod json_arrays;
mod large_sorts;
mod numbers;
mod pandas;
mod pandas_names;
mod plain;
mod programs;
mod programs_files;
mod ranks;
mod reading;
mod reshape;
mod server;
mod skew;
mod small_memory;
mod sql;
mod sql_columns;
mod sql_frames;
mod sql_mistakes;
#[cfg(feature = "sqlite")]
mod sqlite;
mod storage;
mod streaming;
mod surface;
mod texts;
mod times;
mod times_joined;
mod windows;
mod writing;
mod zones;

/// The folder of the crate. Read when the tests run: a program may have been compiled in another clone.
fn folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR").into()
}
