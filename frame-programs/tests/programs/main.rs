//! Tests of programs over frames from outside: their replies, their files, and pandas' answers.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod files;
mod left_tasks;
mod pandas;
mod pandas_names;
mod replies;
mod surface;

/// The folder of the crate. Read when the tests run: a program may have been compiled in another clone.
fn folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR").into()
}
