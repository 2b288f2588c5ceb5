//! Import circles: files of one crate that cannot be read one after the other because each needs the next.

use crate::sources;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Circles that stand today. The list may only shrink: a new circle fails the test, and so does a line whose
/// circle is gone.
const KNOWN: &[(&str, &[&str])] = &[];

/// A module, by the names on the way to it from the root of its crate.
type Module = Vec<String>;
/// The modules from which each module imports. A module and its ancestors count as one place: imports between
/// them are left out.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn imports_make_no_new_circle() {
    let known: BTreeSet<(String, Vec<String>)> = KNOWN
        .iter()
        .map(|(krate, files)| ((*krate).to_owned(), files.iter().map(|f| (*f).to_owned()).collect()))
        .collect();
    let mut found = BTreeSet::new();
    for (krate, files) in crates() {
        for circle in circles(&imports(&files)) {
            found.insert((krate.clone(), circle));
        }
    }
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "files that import each other in a circle: {new:?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "circles that are gone: take them off the list: {gone:?}");
}

/// The product files of every crate, by module.
fn crates() -> BTreeMap<String, BTreeMap<Module, String>> {
    let mut crates: BTreeMap<String, BTreeMap<Module, String>> = BTreeMap::new();
    for (path, text) in sources() {
        let relative = path.strip_prefix(crate::root()).expect("sources lie below the root").to_owned();
        let mut parts = relative.components().map(|c| c.as_os_str().to_string_lossy().into_owned());
        let (Some(krate), Some(src)) = (parts.next(), parts.next()) else { continue };
        if src == "src" {
            crates.entry(krate).or_default().insert(module(&parts.collect::<PathBuf>()), text);
        }
    }
    crates
}

fn module(path: &Path) -> Module {
    let names = path.with_extension("");
    let mut module: Module =
        names.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

fn imports(files: &BTreeMap<Module, String>) -> Imports {
    let mut imports = Imports::new();
    for (module, text) in files.iter().filter(|(m, _)| !m.last().is_some_and(|n| n.ends_with("tests"))) {
        let product = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or("");
        let used = uses(product).into_iter().filter_map(|path| resolve(files, module, &path));
        let others = used.filter(|used| !used.starts_with(module) && !module.starts_with(used));
        imports.insert(module.clone(), others.collect());
    }
    imports
}

/// Paths that `use` items of a file name, relative to the crate or the file.
fn uses(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut item = String::new();
    for line in text.lines().map(str::trim) {
        let begins = line.strip_prefix("pub ").unwrap_or(line);
        let begins =
            begins.strip_prefix("pub(crate) ").or(begins.strip_prefix("pub(super) ")).unwrap_or(begins);
        if !item.is_empty() {
            item.push_str(line);
        } else if let Some(path) = begins.strip_prefix("use ")
            && ["crate::", "super::", "self::"].iter().any(|p| path.starts_with(p))
        {
            item = path.to_owned();
        }
        if item.ends_with(';') {
            expand(item.trim_end_matches(';'), &mut paths);
            item.clear();
        }
    }
    paths
}

/// Writes out the braces of a `use` path.
fn expand(path: &str, out: &mut Vec<String>) {
    let Some((before, rest)) = path.split_once('{') else {
        out.push(path.split(" as ").next().unwrap_or(path).trim().to_owned());
        return;
    };
    let (mut depth, mut part) = (0, String::new());
    for c in rest[..rest.rfind('}').unwrap_or(rest.len())].chars().chain([',']) {
        match c {
            ',' if depth == 0 => {
                if !part.trim().is_empty() {
                    expand(&format!("{before}{}", part.trim()), out);
                }
                part.clear();
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        part.push(c);
    }
}

/// The file that a path leads to: the longest part of it that is one.
fn resolve(files: &BTreeMap<Module, String>, from: &Module, path: &str) -> Option<Module> {
    let mut names: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut full = match names.first() {
        Some(&"crate") => Module::new(),
        _ => from.clone(),
    };
    while matches!(names.first(), Some(&"crate" | &"self" | &"super")) {
        if names.remove(0) == "super" {
            full.pop();
        }
    }
    full.extend(names.into_iter().map(str::to_owned));
    (0..=full.len()).rev().map(|n| full[..n].to_vec()).find(|module| files.contains_key(module))
}

/// Sets of modules of which each reaches all others, as sorted file names.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|module| (module, reached_from(imports, module))).collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        let circle: Vec<String> = others
            .iter()
            .filter(|other| reached.get(**other).is_some_and(|back| back.contains(module)))
            .map(|member| member.join("/"))
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reached_from<'a>(imports: &'a Imports, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut ahead: Vec<&Module> = imports.get(from).into_iter().flatten().collect();
    while let Some(module) = ahead.pop() {
        if reached.insert(module) {
            ahead.extend(imports.get(module).into_iter().flatten());
        }
    }
    reached
}
