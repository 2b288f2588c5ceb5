//! Import circles: files of one crate that cannot be read one after the other because each needs the next.

use crate::modules::{Crate, Imports, Module};
use crate::sources;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Circles that stand today. The list may only shrink: a new circle fails the test, and so does a line whose
/// circle is gone.
const KNOWN: &[(&str, &[&str])] = &[
    // The entries of tasks, objects, classes and shapes name each other by slots, which are typed.
    (
        "core",
        &[
            "owner/classes",
            "owner/graphs",
            "owner/graphs/graph",
            "owner/groups/known",
            "owner/references/dependents",
            "owner/references/object",
            "owner/schedule",
            "owner/schedule/leases",
            "owner/schedule/line",
            "owner/schedule/queue",
            "owner/schedule/shape",
            "owner/tasks",
            "owner/tasks/lineage",
            "owner/tasks/state",
        ],
    ),
];

#[test]
fn imports_make_no_new_circle() {
    let known: BTreeSet<(String, Vec<String>)> = KNOWN
        .iter()
        .map(|(krate, files)| ((*krate).to_owned(), files.iter().map(|f| (*f).to_owned()).collect()))
        .collect();
    let mut found = BTreeMap::new();
    for (krate, files) in crates() {
        let imports = Crate::read(&files).imports();
        for circle in circles(&imports) {
            let arrows = arrows(&imports, &circle);
            found.insert((krate.clone(), circle), arrows);
        }
    }
    let new = found.iter().filter(|(circle, _)| !known.contains(circle));
    let new = new.map(|((krate, circle), arrows)| {
        format!("{krate}: files that import each other in a circle: {circle:?}\n  {}", arrows.join("\n  "))
    });
    let gone = known.iter().filter(|circle| !found.contains_key(circle));
    let gone = gone.map(|(krate, circle)| format!("{krate}: gone, take it off the list: {circle:?}"));
    let wrong: Vec<String> = new.chain(gone).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The imports of a circle, as one reads them.
fn arrows(imports: &Imports, circle: &[String]) -> Vec<String> {
    let mut arrows = Vec::new();
    for (module, needed) in imports.iter().filter(|(module, _)| circle.contains(&module.join("/"))) {
        for (other, path) in needed.iter().filter(|(other, _)| circle.contains(&other.join("/"))) {
            arrows.push(format!("{} -> {} ({path})", module.join("/"), other.join("/")));
        }
    }
    arrows
}

/// The circles of a crate of these files.
fn planted(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let files = files.iter().map(|(path, text)| (module(Path::new(path)), (*text).to_owned())).collect();
    circles(&Crate::read(&files).imports())
}

#[test]
fn circles_of_every_kind_are_found() {
    let b = ("b.rs", "use crate::a::one;\npub fn two() { one() }");
    let kinds: &[(&str, &[(&str, &str)])] = &[
        ("use items", &[("a.rs", "use crate::b::{Three, two};\npub fn one() { two() }"), b]),
        ("an inline path", &[("a.rs", "pub fn one() { super::b::two() }"), b]),
        ("a module by its name", &[("a.rs", "use crate::b;\npub fn one() { b::two() }"), b]),
        ("a glob", &[("a.rs", "use super::b::*;\npub fn one() { two() }"), b]),
        ("a use in a function", &[("a.rs", "pub fn one() { use crate::b::two; two() }"), b]),
        (
            "a name that the ancestor hands on",
            &[("lib.rs", "mod a;\nmod b;\npub use b::two;"), ("a.rs", "pub fn one() { crate::two() }"), b],
        ),
        (
            "a name that the ancestor imports for itself",
            &[
                ("lib.rs", "mod a;\nmod b;\nuse self::b::two as three;"),
                ("a.rs", "use super::three;\npub fn one() { three() }"),
                b,
            ],
        ),
    ];
    for (kind, files) in kinds {
        assert_eq!(planted(files), [["a", "b"]], "{kind}");
    }
    let named = planted(&[
        ("contests.rs", "pub fn one() { super::b::two() }"),
        ("b.rs", "use crate::contests::one;\npub fn two() { one() }"),
    ]);
    assert_eq!(named, [["b", "contests"]], "a name that ends like one of tests");
    let inline = planted(&[
        ("f/a.rs", "mod c { pub fn d() { super::super::b::two() } }\npub fn one() {}"),
        ("f/b.rs", "use super::a::one;\npub fn two() { one() }"),
    ]);
    assert_eq!(inline, [["f/a", "f/b"]]);
    let through_a_folder = planted(&[
        ("a/mod.rs", "mod deep;\npub fn one() { deep::two() }"),
        ("a/deep.rs", "pub fn two() { crate::b::three() }"),
        ("b.rs", "use super::a::one;\npub fn three() { one() }"),
    ]);
    assert_eq!(through_a_folder, [["a", "a/deep", "b"]]);
}

#[test]
fn orders_that_one_can_read_are_no_circles() {
    let b = ("b.rs", "use crate::a::one;\npub fn two() { one() }");
    let kinds: &[(&str, &[(&str, &str)])] = &[
        ("a comment and a text", &[("a.rs", "// crate::b::two\npub fn one() { say(\"crate::b::two\") }"), b]),
        (
            "tests",
            &[
                (
                    "a.rs",
                    "pub fn one() {}\n#[cfg(test)]\nuse crate::b::two;\n#[test]\nfn t() { super::b::two() }",
                ),
                b,
            ],
        ),
        ("another crate", &[("a.rs", "use b::two;\npub fn one() { c::b::two() }"), b]),
        (
            "a part of a folder that names what the folder defines",
            &[
                ("a/mod.rs", "mod c;\npub fn one() { c::d() }"),
                ("a/c.rs", "use super::one;\npub fn d() {}"),
                b,
            ],
        ),
        (
            "a folder that hands on its parts",
            &[
                ("a/mod.rs", "mod c;\npub use c::d;\npub fn one() {}"),
                ("a/c.rs", "pub fn d() { crate::b::two() }"),
                b,
            ],
        ),
    ];
    for (kind, files) in kinds {
        assert_eq!(planted(files), Vec::<Vec<String>>::new(), "{kind}");
    }
}

/// The product files of every crate, by module. A program beside a library is a module of it.
fn crates() -> BTreeMap<String, BTreeMap<Module, String>> {
    let mut crates: BTreeMap<String, BTreeMap<Module, String>> = BTreeMap::new();
    let files = sources();
    for (path, text) in &files {
        let relative = path.strip_prefix(crate::root()).expect("sources lie below the root").to_owned();
        let Some((krate, inner)) = relative.to_str().and_then(|file| file.split_once("/src/")) else {
            continue;
        };
        let is_beside = inner == "main.rs" && files.contains_key(&path.with_file_name("lib.rs"));
        let module = if is_beside { vec!["main".to_owned()] } else { module(Path::new(inner)) };
        crates.entry(krate.to_owned()).or_default().insert(module, text.clone());
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
    let mut ahead: Vec<&Module> = imports.get(from).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(module) = ahead.pop() {
        if reached.insert(module) {
            ahead.extend(imports.get(module).into_iter().flat_map(BTreeMap::keys));
        }
    }
    reached
}
