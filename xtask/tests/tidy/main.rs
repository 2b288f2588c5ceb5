//! Conventions that a test can check: who may know whom, headers, no marks of unfinished work, readable
//! lengths, no import circles, and what may be depended on.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod circles;
mod dependencies;
mod drawing;
mod forms;
mod lengths;
mod modules;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Dependencies that each crate may have: crates of this workspace, and packages that only one crate may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("core", &["tharsis-types"]),
    ("identity", &[]),
    ("protos", &["tharsis-identity", "tharsis-types"]),
    ("object-store", &["tharsis-types"]),
    ("dataframe", &[]),
    ("dense", &[]),
    ("gcs", &["tharsis-protos", "tharsis-types"]),
    ("graph", &["tharsis-kernels"]),
    ("kernels", &["tharsis-dense"]),
    ("macros", &[]),
    ("numeric", &["tharsis-graph", "tharsis-kernels", "tharsis-types"]),
    ("remote", &["tharsis-macros", "tharsis-object-store", "tharsis-protos", "tharsis-types"]),
    (
        "raylet",
        &[
            "tharsis-core",
            "tharsis-gcs",
            "tharsis-identity",
            "tharsis-object-store",
            "tharsis-protos",
            "tharsis-types",
        ],
    ),
];

/// Dependencies that a crate must not have, because its decisions must not know them.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("types", &["tokio", "tonic", "prost", "arrow-array", "rustix"]),
    ("core", &["tokio", "tonic", "prost", "rustix", "parking_lot"]),
    ("dataframe", &["tonic", "rustix"]),
    ("kernels", &["tokio", "rustix"]),
    ("graph", &["tokio", "rustix"]),
    ("identity", &["tokio", "tokio-rustls", "tonic", "prost"]),
    ("object-store", &["tokio", "tonic", "prost"]),
    ("remote", &["tonic", "prost", "tharsis-core", "tharsis-gcs", "tharsis-raylet"]),
    ("raylet", &["etcd-client", "arrow-array", "ndarray"]),
];

/// The tree that is checked: the one that cargo runs the test for. With a shared target folder the test may
/// have been compiled in another.
fn root() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    Path::new(&folder).parent().unwrap().to_owned()
}

fn dependencies(folder: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    let from = manifest.split("\n[dependencies]").nth(1).unwrap_or("");
    let table = from.split("\n[").next().unwrap_or("");
    table
        .lines()
        .filter_map(|l| l.split(['.', ' ', '=']).next())
        .filter(|n| !n.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Our sources, without what is generated.
fn sources() -> BTreeMap<PathBuf, String> {
    xtask::sources(&root()).expect("the tree can be read")
}

#[test]
fn crates_know_only_what_they_may() {
    for (folder, allowed) in ALLOWED {
        let ours = dependencies(folder).into_iter().filter(|d| d.starts_with("tharsis"));
        for dependency in ours {
            assert!(allowed.contains(&dependency.as_str()), "{folder} must not know {dependency}");
        }
    }
    for (folder, forbidden) in FORBIDDEN {
        for dependency in dependencies(folder) {
            assert!(!forbidden.contains(&dependency.as_str()), "{folder} must not know {dependency}");
        }
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in sources() {
        let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
        assert!(first.starts_with("//!") || first.starts_with("#!"), "{} has no header", path.display());
    }
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX:")];
    for (path, text) in sources() {
        for mark in marks {
            assert!(!text.contains(mark), "{} has a {mark}", path.display());
        }
    }
}

/// A target folder may hold a program that was compiled in another clone. Examples in docs are compiled
/// where they run.
#[test]
fn programs_look_for_their_folder_when_they_run() {
    let mark = concat!("env!(\"CARGO_", "MANIFEST_DIR\")");
    for (path, text) in sources() {
        let line = text.lines().find(|line| line.contains(mark) && !line.trim_start().starts_with("//"));
        assert!(line.is_none(), "{}: read the variable at run time: {line:?}", path.display());
    }
}
