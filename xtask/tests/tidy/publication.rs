//! Crates that are published are what the registry takes, and a release tells all that its programs are made
//! of.

use crate::{manifest, packages, products, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use xtask::publish::{complaints, crates, order};
use xtask::release::{Contents, FORMS, Form, Id, checksums, contents, document};

#[test]
fn the_registry_takes_each_crate_of_the_product_and_no_other() {
    let crates = crates(&Value::Array(packages()));
    let wrong = complaints(&crates);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let published: BTreeSet<_> = crates.iter().filter(|one| one.is_published).map(|one| &*one.name).collect();
    let names = products()
        .into_iter()
        .map(|folder| manifest(&folder)["package"]["name"].as_str().unwrap().to_owned());
    let names: BTreeSet<String> = names.collect();
    assert_eq!(
        published,
        names.iter().map(String::as_str).collect(),
        "`publish = false` is missing, or too many"
    );
    let order = order(&crates).unwrap();
    assert_eq!(order.len(), names.len());
    for (at, name) in order.iter().enumerate() {
        let needs = &crates.iter().find(|one| one.name == *name).unwrap().needs;
        let early: Vec<_> = needs.iter().filter(|needed| !order[..at].contains(&needed.as_str())).collect();
        assert!(early.is_empty(), "{name} is published before {early:?}");
    }
}

#[test]
fn checksums_are_those_of_the_lock_file() {
    let text = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let lock: toml::Table = text.parse().unwrap();
    let package = |package: &toml::Value| {
        let field = |name: &str| Some(package.get(name)?.as_str()?.to_owned());
        Some((Id { name: field("name")?, version: field("version")? }, field("checksum")?))
    };
    let expected: BTreeMap<_, _> = lock["package"].as_array().unwrap().iter().filter_map(package).collect();
    assert!(100 < expected.len());
    assert_eq!(checksums(&text), expected);
}

/// The packages of a form for the CPU of this machine.
fn of_form(form: &Form) -> Contents {
    contents(&root(), form, &format!("{}-unknown-linux-gnu", std::env::consts::ARCH)).unwrap()
}

#[test]
fn a_release_lists_what_is_in_its_programs_and_nothing_else() {
    let [all, node] = FORMS.each_ref().map(of_form);
    let has = |contents: &Contents, name: &str| contents.parts.keys().any(|id| id.name == name);
    for name in ["tokio", "ring", "etcd-client", "tharsis-raylet", "libmimalloc-sys"] {
        assert!(has(&all, name) && has(&node, name), "{name} is in both");
    }
    for name in ["datafusion", "tharsis-dataframe", "libsqlite3-sys", "tharsis-numeric"] {
        assert!(has(&all, name) && !has(&node, name), "{name} is in one");
    }
    // Of tests, of build scripts, of macros.
    for name in ["proptest", "tharsis-trials", "cc", "prost-build", "serde_derive", "tharsis-macros"] {
        assert!(!has(&all, name) && !has(&node, name), "{name} is in none");
    }
    for (form, contents) in FORMS.iter().zip([&all, &node]) {
        assert_eq!(contents.program.name, "tharsis-cli");
        let listed = document(contents, "1.95.0").unwrap();
        for component in listed["components"].as_array().unwrap() {
            let license = component["licenses"][0]["expression"].as_str().unwrap();
            assert!(spdx::Expression::parse(license).is_ok(), "{component}");
        }
        let refs = |value: &Value| value["bom-ref"].as_str().unwrap().to_owned();
        let mut known: BTreeSet<String> = listed["components"].as_array().unwrap().iter().map(refs).collect();
        assert_eq!(known.len(), listed["components"].as_array().unwrap().len(), "each once");
        known.insert(refs(&listed["metadata"]["component"]));
        for dependency in listed["dependencies"].as_array().unwrap() {
            let ends = dependency["dependsOn"].as_array().unwrap().iter().chain([&dependency["ref"]]);
            let unknown: Vec<_> = ends.filter(|end| !known.contains(end.as_str().unwrap())).collect();
            assert!(unknown.is_empty(), "{unknown:?} are in no component");
        }
        let text = listed.to_string();
        assert!(!text.contains(&*root().to_string_lossy()), "a path of this machine is in {}", form.name);
    }
}
