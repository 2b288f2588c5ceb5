//! One release of Rust: what names it names the same one.

use crate::{manifest, root};
use std::fs;
use xtask::test::RELEASE;

/// The text of a file of the tree.
fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn the_ledger_the_image_and_the_workspace_are_of_the_release_of_the_tests() {
    let ledger: toml::Table = text("benches/costs.toml").parse().unwrap();
    let compiled_by = ledger["compiled_by"].as_str().unwrap();
    assert!(compiled_by.starts_with(&format!("rustc {RELEASE} (")), "the ledger: {compiled_by}");
    let image = text("deploy/container/Containerfile");
    assert!(
        image.lines().any(|line| line == format!("ARG RUST={RELEASE}")),
        "the image is of another release"
    );
    let least = manifest("")["workspace"]["package"]["rust-version"].as_str().unwrap().to_owned();
    assert!(
        RELEASE.starts_with(&format!("{least}.")),
        "the tests do not run with the oldest release, {least}"
    );
    for page in ["README.md", "CONTRIBUTING.md"] {
        assert!(text(page).contains(&format!("rustup override set {RELEASE}")), "{page}");
    }
}

#[test]
fn every_workflow_takes_the_release() {
    let takes = format!("- run: rustup default {RELEASE} && rustup component add clippy rustfmt");
    let mut count = 0;
    for entry in fs::read_dir(root().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let at = |words: &str| text.lines().position(|line| line.contains(words));
        let builds = ["cargo build", ".ci/run"].into_iter().filter_map(at).min();
        let builds = builds.unwrap_or_else(|| panic!("{} builds nothing", path.display()));
        assert!(at(&takes).is_some_and(|line| line < builds), "{} takes any release", path.display());
        count += 1;
    }
    assert_eq!(count, 3, "workflows");
}
