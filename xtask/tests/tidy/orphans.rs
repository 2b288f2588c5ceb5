//! Each source file belongs to a crate: a file of tests without its `mod` would never be compiled, and nobody
//! would miss it. Nor would anybody miss tests in a crate whose tests cargo does not run.

use crate::{packages, root, sources};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use xtask::ELSEWHERE;
use xtask::scan::tokens;

/// The crates of the workspace, as cargo tells them.
fn targets() -> Vec<Value> {
    let targets = packages().into_iter().flat_map(|package| package["targets"].as_array().cloned());
    targets.flatten().collect()
}

/// The files that crates begin with.
fn roots<'a>(targets: impl IntoIterator<Item = &'a Value>) -> BTreeSet<PathBuf> {
    let files = targets.into_iter().map(|target| target["src_path"].as_str().expect("a path"));
    files.map(|file| Path::new(file).canonicalize().unwrap()).collect()
}

/// The files of the crates that begin with these, which are some of all such files.
fn reached(begin: BTreeSet<PathBuf>, roots: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let (mut reached, mut ahead) = (BTreeSet::new(), begin.into_iter().collect::<Vec<_>>());
    while let Some(path) = ahead.pop() {
        if !reached.insert(path.clone()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let files = brought_in(&path, &text, roots.contains(&path));
        ahead.extend(
            files
                .into_iter()
                .filter_map(|file| file.canonicalize().ok())
                .filter(|file| file.extension().is_some_and(|ending| ending == "rs")),
        );
    }
    reached
}

/// Our files, without those of packages that are no members.
fn members() -> Vec<(PathBuf, String)> {
    let others = ELSEWHERE.map(|folder| root().join(folder).canonicalize().unwrap());
    let files = sources().into_iter().map(|(path, text)| (path.canonicalize().unwrap(), text));
    files.filter(|(path, _)| !others.iter().any(|folder| path.starts_with(folder))).collect()
}

/// The files that a file may bring in as modules or as text. Those of a module in braces lie in its folder.
fn brought_in(path: &Path, text: &str, is_root: bool) -> Vec<PathBuf> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(""));
    let inner = if is_root || stem == "mod" { folder.to_owned() } else { folder.join(stem) };
    let mut found = Vec::new();
    // Folders of modules in braces, with the spaces before each.
    let mut open: Vec<(usize, PathBuf)> = Vec::new();
    for line in text.lines() {
        let (spaces, line) = (line.len() - line.trim_start().len(), line.trim());
        if line == "}" {
            open.retain(|(at, _)| *at < spaces);
        }
        let quoted = |mark: &str| Some(line.split_once(mark)?.1.split_once('"')?.0);
        for mark in ["path = \"", "include!(\"", "include_str!(\""] {
            found.extend(quoted(mark).map(|file| folder.join(file)));
        }
        let Some((before, name)) = line.split_once("mod ") else { continue };
        if !(before.is_empty() || before.starts_with("pub")) {
            continue;
        }
        let at = open.last().map_or(&inner, |(_, folder)| folder).clone();
        if let Some(name) = name.strip_suffix(';') {
            found.extend([at.join(format!("{name}.rs")), at.join(name).join("mod.rs")]);
        } else if let Some(name) = name.strip_suffix(" {") {
            open.push((spaces, at.join(name)));
        }
    }
    found
}

#[test]
fn every_file_belongs_to_a_crate() {
    let roots = roots(&targets());
    let reached = reached(roots.clone(), &roots);
    let orphans: Vec<_> = members().into_iter().filter(|(path, _)| !reached.contains(path)).collect();
    let orphans: Vec<_> = orphans.iter().map(|(path, _)| path).collect();
    assert!(orphans.is_empty(), "no crate has them: {orphans:#?}");
}

/// The other file that a module in `mod.rs` may be in.
fn twin(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|_| path.file_name().is_some_and(|name| name == "mod.rs"))?;
    Some(folder.with_extension("rs"))
}

/// Cargo does not look at a crate again for a file that it does not know: only those who compile everything
/// see a second file of a module.
#[test]
fn no_module_has_two_files() {
    let twins: Vec<_> =
        sources().into_keys().filter_map(|path| twin(&path)).filter(|twin| twin.exists()).collect();
    assert!(twins.is_empty(), "their modules have a mod.rs as well: {twins:#?}");
    assert_eq!(twin(Path::new("a/src/b/mod.rs")), Some(PathBuf::from("a/src/b.rs")));
    assert_eq!(twin(Path::new("a/src/b.rs")), None);
}

/// Whether a text has a function that is a test.
fn has_test(text: &str) -> bool {
    let marks: [&[&str]; 2] = [&["#", "[", "test", "]"], &["#", "[", "tokio", "::", "test"]];
    let tokens = tokens(text);
    (0..tokens.len()).any(|at| marks.iter().any(|mark| tokens[at..].starts_with(mark)))
}

#[test]
fn tests_lie_where_cargo_runs_them() {
    let targets = targets();
    let is_tested = |target: &&Value| target["test"] == true;
    let programs = targets.iter().filter(|target| target["kind"][0] == "test");
    let left_out: Vec<_> =
        programs.filter(|target| !is_tested(target)).map(|target| &target["name"]).collect();
    assert!(left_out.is_empty(), "cargo does not run these programs of tests: {left_out:?}");
    let tested = reached(roots(targets.iter().filter(is_tested)), &roots(&targets));
    let members = members().into_iter().filter(|(path, text)| has_test(text) && !tested.contains(path));
    let lost: Vec<_> = members.map(|(path, _)| path).collect();
    assert!(lost.is_empty(), "their crates have `test = false`: {lost:#?}");
    assert!(has_test("#[test]\nfn a() {}") && has_test("#[tokio::test(flavor = \"b\")]\nasync fn a() {}"));
    assert!(!has_test("// #[test]\nconst A: &str = \"#[test]\";\n#[cfg(test)]\nmod b;"));
}

#[test]
fn modules_are_found_where_they_lie() {
    let of = |path: &str, text: &str, is_root| {
        let found = brought_in(Path::new(path), text, is_root);
        found.iter().map(|file| file.display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of("a/src/lib.rs", "pub mod b;", true), ["a/src/b.rs", "a/src/b/mod.rs"]);
    assert_eq!(of("a/src/b.rs", "pub(crate) mod c;", false), ["a/src/b/c.rs", "a/src/b/c/mod.rs"]);
    let inline = "mod tests {\n    mod c;\n}\nmod d;";
    assert_eq!(
        of("a/b.rs", inline, false),
        ["a/b/tests/c.rs", "a/b/tests/c/mod.rs", "a/b/d.rs", "a/b/d/mod.rs"]
    );
    assert_eq!(of("a/b.rs", "#[path = \"c_tests.rs\"]", false), ["a/c_tests.rs"]);
    assert!(of("a/b.rs", "// A mod c;\nlet mod_d = 1;", false).is_empty());
}
