//! A run of one package's tests builds with the features of the whole workspace.

use crate::{packages, root};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use xtask::test::UNIFIED;

/// The packages that cargo builds for a selection, each with its features.
fn built(selection: &[&str]) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["tree", "--offline", "--prefix=none", "--edges=normal,build,dev", "--format={p}|{f}"];
    let output = Command::new(cargo).args(words).args(selection).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("names");
    // A package that was shown before has a mark.
    lines.lines().map(|line| line.replace(" (*)", "")).filter(|line| !line.is_empty()).collect()
}

/// Names of the packages that nothing can depend on.
fn without_library() -> BTreeSet<String> {
    let has_library = |package: &serde_json::Value| {
        package["targets"].as_array().expect("targets").iter().any(|target| {
            let kinds = target["kind"].as_array().expect("kinds");
            kinds.iter().any(|kind| kind == "lib" || kind == "proc-macro")
        })
    };
    let programs = packages().into_iter().filter(|package| !has_library(package));
    programs.map(|package| package["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn the_tests_of_one_package_are_built_with_the_features_of_all() {
    let unified = built(&["--package", UNIFIED]);
    let programs = without_library();
    let is_program = |line: &String| line.split(' ').next().is_some_and(|name| programs.contains(name));
    let missing: Vec<_> = built(&["--workspace"]).into_iter().filter(|line| !is_program(line)).collect();
    let missing: Vec<_> = missing.into_iter().filter(|line| !unified.contains(line)).collect();
    assert!(missing.is_empty(), "tests/unified/Cargo.toml has not, with these features: {missing:#?}");
}

#[test]
fn all_features_of_a_package_are_tested() {
    let unified = built(&["--package", UNIFIED]);
    let programs = without_library();
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        let features = package["features"].as_object().expect("features");
        let features: BTreeSet<_> = features.keys().map(String::as_str).collect();
        if features.is_empty() || programs.contains(name) {
            continue;
        }
        let is_own = |line: &&String| line.split(' ').next() == Some(name);
        let line = unified.iter().find(is_own).unwrap_or_else(|| panic!("{UNIFIED} does not use {name}"));
        let tested: BTreeSet<_> = line.rsplit('|').next().unwrap_or_default().split(',').collect();
        let missing: Vec<_> = features.difference(&tested).collect();
        let manifest = package["manifest_path"].as_str().map(Path::new).expect("a path");
        assert!(missing.is_empty(), "no test of {} has the features {missing:?}", manifest.display());
    }
}
