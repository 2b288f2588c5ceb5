//! The files in `deploy/`, each against the types or the tools of the system that reads it.

#![forbid(unsafe_code)]

mod container;
mod kubernetes;
mod systemd;

use std::path::PathBuf;

/// The root of the workspace. Cargo names the package when the tests run, so that a program that another
/// clone built reads the files of this one.
fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}
