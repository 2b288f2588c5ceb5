//! Conventions that a test can check: who may know whom, headers, no marks of unfinished work, readable
//! lengths, no import circles, and what may be depended on.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod circles;
mod commands;
mod comments;
mod dependencies;
mod descriptors;
mod drawing;
mod forms;
mod lengths;
mod lints;
mod modules;
mod orphans;
mod pages;
mod programs;
mod publication;
mod release;
mod unified;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::test::NEEDED;

/// Crates of this workspace that each crate uses, exactly: a crate that is not here, or that uses another one
/// or one less, fails the test.
const ALLOWED: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("cancel", &[]),
    ("core", &["tharsis-types"]),
    ("identity", &[]),
    ("protos", &["tharsis-identity", "tharsis-types"]),
    ("object-store", &["tharsis-types"]),
    ("dataframe", &["tharsis-cancel", "tharsis-text-scan"]),
    ("dense", &[]),
    ("frame-programs", &["tharsis-dataframe", "tharsis-programs"]),
    ("gcs", &["tharsis-protos", "tharsis-types"]),
    ("graph", &["tharsis-cancel", "tharsis-kernels"]),
    ("kernels", &["tharsis-dense"]),
    ("macros", &[]),
    ("learn", &["tharsis-cancel", "tharsis-graph", "tharsis-kernels", "tharsis-numeric", "tharsis-programs"]),
    ("numeric", &["tharsis-cancel", "tharsis-graph", "tharsis-kernels", "tharsis-programs", "tharsis-types"]),
    ("programs", &[]),
    ("remote", &["tharsis-object-store", "tharsis-protos", "tharsis-types"]),
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
    ("text-scan", &[]),
];

/// Crates of the product that may use all others: what users call.
const ON_TOP: &[&str] = &["cli", "tharsis"];

/// Folders whose packages are no part of the product, and such packages in the folders of others.
const BESIDE: &[&str] =
    &["examples", "learn/examples", "object-store/models", "protos/codegen", "tests", "xtask"];

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
    ("text-scan", &["arrow", "datafusion", "futures", "object_store", "tokio"]),
];

/// The tree that is checked: the one that cargo runs the test for. With a shared target folder the test may
/// have been compiled in another.
fn root() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    Path::new(&folder).parent().unwrap().to_owned()
}

fn manifest(folder: &str) -> toml::Table {
    let path = root().join(folder).join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The packages that a crate needs, for itself and its build script, on every platform; not for its tests.
fn dependencies(folder: &str) -> Vec<String> {
    let manifest = manifest(folder);
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let of_targets = targets.into_iter().flat_map(toml::Table::values).filter_map(toml::Value::as_table);
    let tables = [&manifest].into_iter().chain(of_targets);
    let lists = tables.flat_map(|table| ["dependencies", "build-dependencies"].map(|kind| table.get(kind)));
    let named = lists.flatten().filter_map(toml::Value::as_table).flatten();
    let package = |(name, how): (&String, &toml::Value)| {
        // A dependency may have another name in the crate.
        let package = how.get("package").and_then(toml::Value::as_str);
        package.unwrap_or(name).to_owned()
    };
    named.map(package).collect()
}

/// The folders of the crates of the product.
fn products() -> BTreeSet<String> {
    let manifest = manifest("");
    let members = manifest["workspace"]["members"].as_array().expect("members").iter();
    let members = members.map(|member| member.as_str().expect("a folder").to_owned());
    members.filter(|member| !BESIDE.iter().any(|folder| Path::new(member).starts_with(folder))).collect()
}

/// The packages of the workspace, as cargo tells them.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let output = Command::new(cargo).args(words).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    all["packages"].as_array().expect("packages").clone()
}

/// Files with what is in them.
type Sources = BTreeMap<PathBuf, String>;

/// Our sources, without what is generated.
fn sources() -> Sources {
    xtask::sources(&root()).expect("the tree can be read")
}

#[test]
fn crates_know_only_what_they_may() {
    let listed = ALLOWED.iter().map(|(folder, _)| *folder).chain(ON_TOP.iter().copied());
    assert_eq!(listed.map(str::to_owned).collect::<BTreeSet<_>>(), products(), "listed, and there");
    for (folder, allowed) in ALLOWED {
        let ours: BTreeSet<_> =
            dependencies(folder).into_iter().filter(|name| name.starts_with("tharsis")).collect();
        let allowed: BTreeSet<_> = allowed.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(ours, allowed, "{folder} uses, and may use");
    }
    for (folder, forbidden) in FORBIDDEN {
        for dependency in dependencies(folder) {
            assert!(!forbidden.contains(&dependency.as_str()), "{folder} must not know {dependency}");
        }
    }
}

#[test]
fn every_name_of_a_list_names_something() {
    let lock: toml::Table = fs::read_to_string(root().join("Cargo.lock")).unwrap().parse().unwrap();
    let packages = lock["package"].as_array().expect("packages").iter();
    let packages: BTreeSet<_> = packages.filter_map(|package| package["name"].as_str()).collect();
    for (folder, forbidden) in FORBIDDEN {
        assert!(products().contains(*folder), "{folder} is no crate of the product");
        let unknown: Vec<_> = forbidden.iter().filter(|name| !packages.contains(*name)).collect();
        assert!(unknown.is_empty(), "no package of any build: {unknown:?}");
    }
    for folder in BESIDE {
        assert!(root().join(folder).is_dir(), "{folder} is no folder");
    }
}

/// A run of the tests installs servers for the packages that start them.
#[test]
fn a_run_knows_who_needs_a_server() {
    let signs = [
        ("etcd", [concat!("Command::new(\"et", "cd\")"), concat!("tharsis_conformance::", "etcd")]),
        ("sshd", [concat!("\"/usr/sbin/", "sshd\""), concat!("Command::new(\"ss", "hd\")")]),
        ("valgrind", [concat!("Command::new(\"val", "grind\")"), concat!("tharsis_costs::", "callgrind")]),
    ];
    for (server, signs) in signs {
        let mut users = BTreeSet::new();
        for (path, text) in sources().iter().filter(|(_, text)| signs.iter().any(|sign| text.contains(sign)))
        {
            let package = path.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").exists()).unwrap();
            let is_bench = path.starts_with(package.join("src/bench"));
            // The chore that writes the ledger asks for it.
            let is_chore = package == root().join("xtask");
            if !is_bench && !is_chore && !text.is_empty() {
                users.insert(package.strip_prefix(root()).unwrap().display().to_string());
            }
        }
        let needed =
            NEEDED.iter().find(|needed| needed.program == server).expect("a server that is installed");
        let listed: BTreeSet<String> = needed.folders.iter().map(|folder| (*folder).to_owned()).collect();
        assert_eq!(users, listed, "packages that start {server}, and listed in xtask/src/test/debian.rs");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in sources() {
        let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
        assert!(first.starts_with("//!"), "{} has no header", path.display());
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
