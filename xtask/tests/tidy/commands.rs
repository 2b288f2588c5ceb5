//! The commands of `CONTRIBUTING.md` run something: what they name is there.

use crate::{packages, root, sources};
use std::path::Path;

/// The words after `./test` of each command in a page.
fn commands(page: &str) -> Vec<Vec<&str>> {
    let quoted = page.split('`').skip(1).step_by(2);
    let of_test = quoted.filter_map(|command| command.strip_prefix("./test "));
    of_test.map(|words| words.split_whitespace().filter(|word| !word.starts_with('-')).collect()).collect()
}

/// Whether a test of a folder may have a word in its name: a function, or a file whose name is a part of it.
fn is_part_of_a_name(folder: &Path, word: &str, sources: &crate::Sources) -> bool {
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

#[test]
fn commands_that_are_recommended_run_something() {
    let page = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let folders: Vec<_> = packages()
        .iter()
        .map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
            manifest.parent().unwrap().canonicalize().unwrap()
        })
        .collect();
    let sources: crate::Sources =
        sources().into_iter().map(|(path, text)| (path.canonicalize().unwrap(), text)).collect();
    let here = root().canonicalize().unwrap();
    let commands = commands(&page);
    assert!(10 < commands.len(), "{commands:?}");
    // Words in capitals stand for any.
    let stands_for_any = |word: &str| word.chars().any(char::is_uppercase);
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
