//! One release of Rust: what names it names the same one. Releases of ours: workflows, the image and the
//! changelog name what the chores make.

use crate::{manifest, root};
use std::collections::BTreeSet;
use std::fs;
use xtask::release::{BESIDE, CPUS, FORMS, PROGRAM, SUMS, archive, released, stem};
use xtask::test::RELEASE;

/// The file of the image that has the program of a release.
const IMAGE: &str = "deploy/container/Containerfile.release";

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
    for (path, text) in workflows() {
        let mut builds = false;
        // Each job has a machine of its own.
        for job in text.split("    runs-on: ").skip(1) {
            let at = |words: &str| job.lines().position(|line| line.contains(words));
            let Some(build) = ["cargo ", ".ci/run"].into_iter().filter_map(at).min() else { continue };
            assert!(at(&takes).is_some_and(|line| line < build), "{path} takes any release");
            builds = true;
        }
        assert!(builds, "{path} builds nothing");
        let images = text.split("library/rust:").skip(1);
        let others: Vec<_> =
            images.filter(|image| !image.starts_with(&format!("{RELEASE}-bookworm\n"))).collect();
        assert!(others.is_empty(), "{path} has an image of another release");
    }
    assert_eq!(workflows().len(), 3, "workflows");
}

/// The workflows, by their paths below the root.
fn workflows() -> Vec<(String, String)> {
    let folder = ".github/workflows";
    let names = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| format!("{folder}/{}", name.display())).map(|path| (path.clone(), text(&path))).collect()
}

#[test]
fn workflows_name_files_that_are_there() {
    let folders = [".ci/", "benches/", "deploy/", "tools/", "xtask/"];
    let mut named = BTreeSet::new();
    for (path, text) in workflows() {
        let words = text.split_whitespace();
        for word in words.filter(|word| folders.iter().any(|folder| word.starts_with(folder))) {
            assert!(root().join(word).is_file(), "{path} names {word}, which is not there");
            named.insert(word.to_owned());
        }
    }
    assert_eq!(named, BTreeSet::from([".ci/run", IMAGE].map(str::to_owned)));
}

#[test]
fn workflows_call_chores_with_what_they_take() {
    let takes = |chore: &str| {
        let command = clap::Command::new("chore");
        match chore {
            "publish" => <xtask::publish::Options as clap::Args>::augment_args(command),
            "release" => <xtask::release::Options as clap::Args>::augment_args(command),
            _ => panic!("no workflow calls {chore}, or this test does not know it"),
        }
    };
    let mut called = BTreeSet::new();
    for (path, text) in workflows() {
        for words in text.lines().filter_map(|line| line.split_once("cargo xtask ")) {
            let words: Vec<&str> = words.1.split_whitespace().map(|word| word.trim_matches('"')).collect();
            if let Err(error) = takes(words[0]).try_get_matches_from(&words) {
                panic!("{path}: {words:?}: {error}");
            }
            called.insert(words[0].to_owned());
        }
    }
    assert_eq!(called, BTreeSet::from(["publish", "release"].map(str::to_owned)));
}

#[test]
fn the_image_takes_files_by_the_names_that_a_release_gives_them() {
    let image = text(IMAGE);
    for (cpu, of_images) in CPUS {
        let case = format!("{of_images}) cpu={cpu} ;;");
        assert!(image.lines().any(|line| line.trim().trim_end_matches(" \\") == case), "no case for {cpu}");
    }
    let name = format!("name=\"{}\"", stem("$FORM", "$VERSION", "$cpu"));
    assert!(image.contains(&format!("&& {name} \\\n")), "{name}");
    let archive = archive("$name");
    assert!(
        image.contains(&format!("--fixed-strings \"  {archive}\" {SUMS} | sha256sum")),
        "sums are checked"
    );
    assert!(image.contains(&format!("--file \"{archive}\"")), "the archive is taken");
    assert!(image.contains(&format!("mv \"$name/{PROGRAM}\" ")), "the program is taken");
    assert!(image.lines().any(|line| line == format!("ARG FORM={}", FORMS[0].name)), "the form");
    assert!(image.contains(&format!("`--build-arg FORM={}`", FORMS[1].name)), "the other form");
}

#[test]
fn an_archive_has_files_that_are_there() {
    for file in BESIDE {
        assert!(root().join(file).is_file(), "{file}");
    }
}

/// A tag asks for the day as well.
#[test]
fn the_changelog_has_the_version_of_the_workspace() {
    let version = manifest("")["workspace"]["package"]["version"].as_str().unwrap().to_owned();
    let changelog = text("CHANGELOG.md");
    let heading = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    let day = heading.strip_prefix(&format!("{version} - ")).unwrap_or_else(|| panic!("{heading}"));
    assert!(day == "not released yet" || released(&changelog, &version) == Some(day), "{heading}");
}

#[test]
fn pages_and_manifests_name_the_version_of_the_workspace() {
    let version = manifest("")["workspace"]["package"]["version"].as_str().unwrap().to_owned();
    for (file, words) in [
        ("README.md", format!("Version {version} runs on Linux")),
        ("docs/upgrade.md", format!("\ntharsis {version}, protocol ")),
        ("docs/kubernetes.md", format!("--build-arg VERSION={version} ")),
        ("docs/kubernetes.md", format!("tharsis:{version}")),
        ("deploy/kubernetes/head.yaml", format!("image: tharsis:{version}\n")),
        ("deploy/kubernetes/workers.yaml", format!("image: tharsis:{version}\n")),
    ] {
        let text = text(file);
        assert!(text.contains(&words), "{file} has no {words:?}");
        let is_other = |rest: &&str| {
            rest.starts_with(|letter: char| letter.is_ascii_digit()) && !rest.starts_with(&version)
        };
        assert!(
            !text.split("tharsis:").skip(1).any(|rest| is_other(&rest)),
            "{file} has an image of another version"
        );
    }
}
