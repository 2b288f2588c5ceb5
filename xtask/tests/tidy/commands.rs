//! The commands of `CONTRIBUTING.md` run something: what they name is there.

use crate::{Sources, packages, root, sources};
use std::path::Path;

/// The words after `./test` of each command in a page.
fn commands(page: &str) -> Vec<Vec<&str>> {
    let quoted = page.split('`').skip(1).step_by(2);
    let of_test = quoted.filter_map(|command| command.strip_prefix("./test "));
    of_test.map(|words| words.split_whitespace().filter(|word| !word.starts_with('-')).collect()).collect()
}

/// Whether a test of a folder may have a word in its name: a function, or a file whose name is a part of it.
fn is_part_of_a_name(folder: &Path, word: &str, sources: &Sources) -> bool {
    let file = word.strip_suffix("::").unwrap_or(word);
    sources.iter().filter(|(path, _)| path.starts_with(folder)).any(|(path, text)| {
        let is_file = path.file_stem().is_some_and(|stem| stem == file);
        let is_function = |line: &str| {
            let name = line.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
            name.is_some_and(|name| name.contains(word))
        };
        is_file || text.lines().any(is_function)
    })
}

/// The words after `cargo test` of each command in a page, without those for the tests.
fn commands_of_cargo(page: &str) -> Vec<Vec<&str>> {
    let quoted = page.split('`').skip(1).step_by(2);
    let of_test = quoted.filter_map(|command| Some(command.split_once("cargo test ")?.1));
    of_test.map(|words| words.split_whitespace().take_while(|word| *word != "--").collect()).collect()
}

/// The page, and the sources by their whole paths.
fn page_and_sources() -> (String, Sources) {
    let page = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let sources = sources().into_iter().map(|(path, text)| (path.canonicalize().unwrap(), text));
    (page, sources.collect())
}

/// Words in capitals stand for any.
fn stands_for_any(word: &str) -> bool {
    word.chars().any(char::is_uppercase)
}

#[test]
fn commands_that_are_recommended_run_something() {
    let (page, sources) = page_and_sources();
    let folders: Vec<_> = packages()
        .iter()
        .map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
            manifest.parent().unwrap().canonicalize().unwrap()
        })
        .collect();
    let here = root().canonicalize().unwrap();
    let commands = commands(&page);
    assert!(10 < commands.len(), "{commands:?}");
    for words in commands {
        let [first, rest @ ..] = &*words else { continue };
        if stands_for_any(first) {
            continue;
        }
        let folder = here.join(first);
        let is_package = folders.contains(&folder);
        assert!(is_package || rest.is_empty(), "{words:?}: {first} is no package");
        let (folder, part) = if is_package { (folder, rest.first()) } else { (here.clone(), Some(first)) };
        if let Some(part) = part.filter(|part| !stands_for_any(part)) {
            assert!(is_part_of_a_name(&folder, part, &sources), "{words:?}: no test has {part} in its name");
        }
    }
}

#[test]
fn commands_of_cargo_that_are_recommended_run_something() {
    let (page, sources) = page_and_sources();
    let packages = packages();
    let commands = commands_of_cargo(&page);
    assert!(10 < commands.len(), "{commands:?}");
    for words in commands {
        let (mut package, mut program, mut part) = (None, None, None);
        let mut left = words.iter().copied();
        while let Some(word) = left.next() {
            match word {
                "-p" | "--package" => package = left.next(),
                "--test" => program = left.next(),
                _ if word.starts_with('-') => {}
                _ => part = Some(word),
            }
        }
        let of = |name: &str| packages.iter().find(|package| package["name"] == name);
        let about = package.and_then(of).unwrap_or_else(|| panic!("{words:?}: no package {package:?}"));
        let mut targets = about["targets"].as_array().expect("targets").iter();
        let has = |name: &str| targets.any(|target| target["kind"][0] == "test" && target["name"] == name);
        assert!(program.is_none_or(has), "{words:?}: {package:?} has no program {program:?}");
        let manifest = Path::new(about["manifest_path"].as_str().expect("a path")).canonicalize().unwrap();
        let is_there = |part: &str| is_part_of_a_name(manifest.parent().unwrap(), part, &sources);
        let part = part.filter(|part| !stands_for_any(part));
        assert!(part.is_none_or(is_there), "{words:?}: no test has {part:?} in its name");
    }
}
