//! Every package has the lints of the workspace, or a table of its own that leaves out what is named here.

use crate::manifest;

/// Packages with tables of their own, and the lints of the workspace that these do not have.
const OWN: &[(&[&str], &[&str])] = &[
    // They print, and have no unsafe code at all.
    (
        &["examples", "examples/frames", "learn/examples"],
        &[
            "print_stderr",
            "print_stdout",
            "undocumented_unsafe_blocks",
            "unexpected_cfgs",
            "unsafe_op_in_unsafe_fn",
        ],
    ),
    // All of it is test code.
    (
        &["tests/cluster", "tests/conformance", "tests/deploy", "tests/scenarios"],
        &["expect_used", "panic", "print_stderr", "print_stdout", "unexpected_cfgs", "unwrap_used"],
    ),
];

/// The faults of a package's lints beside those of the workspace.
fn faults(folder: &str, lints: Option<&toml::Value>, of_all: &toml::Table) -> Vec<String> {
    let own = OWN.iter().find(|(folders, _)| folders.contains(&folder));
    let Some(lints) = lints.and_then(toml::Value::as_table) else {
        return vec![format!("{folder} has no lints")];
    };
    let Some((_, without)) = own else {
        let is_theirs =
            lints.get("workspace").and_then(toml::Value::as_bool) == Some(true) && lints.len() == 1;
        return if is_theirs {
            Vec::new()
        } else {
            vec![format!("{folder} has not the lints of the workspace")]
        };
    };
    let mut faults = Vec::new();
    for (tool, table) in of_all {
        let here = lints.get(tool).and_then(toml::Value::as_table);
        for (lint, level) in table.as_table().into_iter().flatten() {
            let wanted = (!without.contains(&lint.as_str())).then_some(level);
            let found = here.and_then(|here| here.get(lint));
            if found != wanted {
                faults.push(format!("{folder} has {lint} as {found:?}, not {wanted:?}"));
            }
        }
    }
    faults
}

fn of_all() -> toml::Table {
    manifest("")["workspace"]["lints"].as_table().expect("lints").clone()
}

#[test]
fn every_package_has_the_lints_of_the_workspace_or_says_which_not() {
    let workspace = manifest("");
    let members = workspace["workspace"]["members"].as_array().expect("members");
    let members: Vec<_> = members.iter().map(|member| member.as_str().expect("a folder")).collect();
    let of_all = of_all();
    let found: Vec<_> =
        members.iter().flat_map(|folder| faults(folder, manifest(folder).get("lints"), &of_all)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    for (folders, without) in OWN {
        let unknown: Vec<_> = folders.iter().filter(|folder| !members.contains(folder)).collect();
        assert!(unknown.is_empty(), "no packages: {unknown:?}");
        let is_lint = |lint: &&&str| of_all.values().any(|table| table.get(**lint).is_some());
        let unknown: Vec<_> = without.iter().filter(|lint| !is_lint(lint)).collect();
        assert!(unknown.is_empty(), "no lints of the workspace: {unknown:?}");
    }
}

#[test]
fn a_package_without_a_lint_is_found() {
    let of_all = of_all();
    let of = |folder: &str, text: &str| {
        let manifest: toml::Table = text.parse().unwrap();
        faults(folder, manifest.get("lints"), &of_all).len()
    };
    assert_eq!(of("core", "[package]"), 1, "none at all");
    assert_eq!(of("core", "[lints]\nworkspace = true"), 0);
    assert_eq!(of("core", "[lints]\nworkspace = false"), 1);
    assert_eq!(of("core", "[lints.clippy]\npanic = \"deny\""), 1, "its own, and nobody says which not");
    let examples = manifest("examples")["lints"].clone();
    let own = |lints: &toml::Value| faults("examples", Some(lints), &of_all).len();
    assert_eq!(own(&examples), 0);
    let mut less = examples.clone();
    let clippy = less.get_mut("clippy").and_then(toml::Value::as_table_mut).unwrap();
    clippy.remove("match_bool");
    clippy.insert("panic".to_owned(), "warn".into());
    assert_eq!(own(&less), 2, "one is gone, and one only warns");
}
