//! `cargo xtask publish`: the crates of the workspace as the registry takes them, in the order in which it
//! can.
//!
//! The registry takes a crate when it has all that the crate needs. Without `--upload` nothing leaves the
//! machine: cargo packs the crates and builds each from its package, with the packages of the others.

#![allow(clippy::print_stdout, reason = "the order is for whoever asks for it")]

use crate::{cargo, release};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Most keywords of a crate, and most categories.
const WORDS_MAX: usize = 5;

/// Most characters of a keyword.
const WORD_CHARS_MAX: usize = 20;

/// Fields of a package without which the registry refuses it, or its page says too little.
const FIELDS: [&str; 5] = ["description", "documentation", "license", "readme", "rust_version"];

/// The arguments of the command line.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// Fail unless this is the tag of the version, and the changelog has the day of the release
    #[arg(long)]
    tag: Option<String>,
    /// Begin with this crate: the registry has those before it
    #[arg(long, value_name = "CRATE")]
    from: Option<String>,
    /// Only print the crates, each behind those that it needs
    #[arg(long, conflicts_with = "upload")]
    list: bool,
    /// Upload the crates, which cannot be undone; without it cargo packs and builds them
    #[arg(long)]
    upload: bool,
}

/// A crate of the workspace, as far as the registry is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crate {
    /// Its name for cargo.
    pub name: String,
    /// Whether it is meant for the registry.
    pub is_published: bool,
    /// Members of the workspace that its package names.
    pub needs: BTreeSet<String>,
    /// Reasons to refuse it that do not depend on others.
    pub lacks: Vec<String>,
}

/// Publishes the crates, or tries it.
///
/// # Errors
/// If a crate is not what the registry takes, if crates need each other in a circle, or if cargo fails.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let about = release::metadata(root)?;
    if let Some(tag) = &options.tag {
        release::check(root, &about, tag)?;
    }
    let crates = crates(&about["packages"]);
    let wrong = complaints(&crates);
    if !wrong.is_empty() {
        bail!("the registry would not take these crates:\n{}", wrong.join("\n"));
    }
    let order = order(&crates)?;
    let order = rest(&order, options.from.as_deref())?;
    if options.list {
        order.iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    let words = words(order, options.upload);
    let status = cargo().args(words).current_dir(root).status().context("cannot start cargo publish")?;
    if !status.success() {
        bail!(
            "cargo publish failed; `--from CRATE` goes on with a crate when the registry has those before it"
        );
    }
    Ok(())
}

/// The crates of the packages in cargo's metadata.
pub fn crates(packages: &Value) -> Vec<Crate> {
    let packages: Vec<&Value> = packages.as_array().into_iter().flatten().collect();
    let version = |package: &&Value| {
        let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
        Some((name.to_owned(), version.to_owned()))
    };
    let versions: BTreeMap<String, String> = packages.iter().filter_map(version).collect();
    packages.into_iter().filter_map(|package| of_package(package, &versions)).collect()
}

/// Reasons why the registry would refuse crates that are meant for it.
pub fn complaints(crates: &[Crate]) -> Vec<String> {
    let names: BTreeSet<&str> = published(crates).map(|one| one.name.as_str()).collect();
    let mut wrong = Vec::new();
    for one in published(crates) {
        let name = &one.name;
        wrong.extend(one.lacks.iter().map(|lack| format!("{name} {lack}")));
        let others = one.needs.iter().filter(|needed| !names.contains(needed.as_str()));
        wrong.extend(others.map(|needed| format!("{name} needs {needed}, which is not published")));
    }
    wrong
}

/// The crates that are published, each behind those that it needs; by name where there is a choice.
///
/// # Errors
/// If some need each other in a circle.
pub fn order(crates: &[Crate]) -> Result<Vec<&str>> {
    let mut left: BTreeMap<&str, &BTreeSet<String>> =
        published(crates).map(|one| (one.name.as_str(), &one.needs)).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_ready = |needs: &BTreeSet<String>| !needs.iter().any(|name| left.contains_key(name.as_str()));
        let ready = left.iter().find(|(_, needs)| is_ready(needs)).map(|(name, _)| *name);
        let Some(ready) = ready else {
            let names: Vec<&str> = left.into_keys().collect();
            bail!("crates need each other in a circle, which is among {}", names.join(", "));
        };
        left.remove(ready);
        order.push(ready);
    }
    Ok(order)
}

fn published(crates: &[Crate]) -> impl Iterator<Item = &Crate> {
    crates.iter().filter(|one| one.is_published)
}

/// A package of cargo's metadata, beside the versions of all members.
fn of_package(package: &Value, versions: &BTreeMap<String, String>) -> Option<Crate> {
    let mut lacks = missing_fields(package);
    let mut needs = BTreeSet::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let (needed, asked) = (dependency["name"].as_str()?, dependency["req"].as_str()?);
        let Some(version) = versions.get(needed).filter(|_| !dependency["path"].is_null()) else { continue };
        if asked == "*" {
            // Cargo leaves such a dependency of tests out of the package.
            if dependency["kind"] != "dev" {
                lacks.push(format!("asks for no version of {needed}"));
            }
            continue;
        }
        if asked != format!("^{version}") {
            lacks.push(format!("asks for version {asked} of {needed}, which is {version}"));
        }
        needs.insert(needed.to_owned());
    }
    // None for any registry, and an empty list for no registry.
    let is_published = package["publish"].as_array().is_none_or(|registries| !registries.is_empty());
    Some(Crate { name: package["name"].as_str()?.to_owned(), is_published, needs, lacks })
}

/// Fields that a package lacks, and words that the registry does not take.
fn missing_fields(package: &Value) -> Vec<String> {
    let has = |field: &str| package[field].as_str().is_some_and(|text| !text.is_empty());
    let missing = FIELDS.into_iter().filter(|field| !has(field));
    let mut lacks: Vec<String> = missing.map(|field| format!("has no {field}")).collect();
    for field in ["keywords", "categories"] {
        let words = package[field].as_array().into_iter().flatten();
        let words: Vec<&str> = words.filter_map(Value::as_str).collect();
        if words.is_empty() || WORDS_MAX < words.len() {
            lacks.push(format!("has {} {field}, and may have 1 to {WORDS_MAX}", words.len()));
        }
        let wrong = words.into_iter().filter(|word| field == "keywords" && !is_keyword(word));
        lacks.extend(wrong.map(|word| format!("has the keyword {word}, which the registry does not take")));
    }
    lacks
}

fn is_keyword(word: &str) -> bool {
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || "_-+".contains(letter);
    word.len() <= WORD_CHARS_MAX
        && word.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && word.chars().all(is_known)
}

/// The part of an order that begins with a crate.
fn rest<'a>(order: &'a [&'a str], from: Option<&str>) -> Result<&'a [&'a str]> {
    let Some(from) = from else { return Ok(order) };
    let at = order.iter().position(|name| *name == from);
    let at = at.with_context(|| format!("{from} is no crate that is published: {}", order.join(", ")))?;
    Ok(&order[at..])
}

/// The words of the command of cargo.
fn words<'a>(order: &[&'a str], is_upload: bool) -> Vec<&'a str> {
    let mode = (!is_upload).then_some("--dry-run");
    let packages = order.iter().flat_map(|name| ["--package", *name]);
    ["publish"].into_iter().chain(mode).chain(packages).collect()
}

#[cfg(test)]
mod tests {
    use super::{Crate, complaints, crates, order, rest, words};
    use serde_json::{Value, json};

    fn package(name: &str, dependencies: &[Value]) -> Value {
        json!({
            "name": name, "version": "0.1.0", "publish": null, "description": "a", "documentation": "b",
            "license": "Apache-2.0", "readme": "../README.md", "rust_version": "1.95",
            "keywords": ["tensors"], "categories": ["science"], "dependencies": dependencies,
        })
    }

    fn needed(name: &str, asked: &str, kind: Value) -> Value {
        json!({"name": name, "req": asked, "kind": kind, "path": "/w"})
    }

    #[test]
    fn a_package_that_the_registry_takes_has_no_complaint() {
        let dependencies = [
            needed("low", "^0.1.0", Value::Null),
            needed("high", "*", json!("dev")),
            json!({"name": "serde", "req": "^1", "kind": null}),
        ];
        let found = crates(&json!([package("high", &dependencies), package("low", &[])]));
        assert_eq!(complaints(&found), Vec::<String>::new());
        assert_eq!(order(&found).unwrap(), ["low", "high"]);
    }

    #[test]
    fn each_reason_to_refuse_a_package_is_named() {
        let dependencies = [
            needed("low", "*", Value::Null),
            needed("mid", "^0.0.9", Value::Null),
            needed("own", "^0.1.0", json!("dev")),
        ];
        let mut high = package("high", &dependencies);
        high["readme"] = Value::Null;
        high["license"] = json!("");
        high["keywords"] = json!(["a", "b", "c", "d", "e", "-f"]);
        high["categories"] = json!([]);
        let mut own = package("own", &[]);
        own["publish"] = json!([]);
        own["readme"] = Value::Null;
        let found = crates(&json!([high, package("low", &[]), package("mid", &[]), own]));
        let wrong = [
            "high has no license",
            "high has no readme",
            "high has 6 keywords, and may have 1 to 5",
            "high has the keyword -f, which the registry does not take",
            "high has 0 categories, and may have 1 to 5",
            "high asks for no version of low",
            "high asks for version ^0.0.9 of mid, which is 0.1.0",
            "high needs own, which is not published",
        ];
        assert_eq!(complaints(&found), wrong);
    }

    #[test]
    fn an_order_has_each_crate_behind_what_it_needs_or_names_the_circle() {
        let of = |name: &str, needs: &[&str]| Crate {
            name: name.to_owned(),
            is_published: true,
            needs: needs.iter().map(|name| (*name).to_owned()).collect(),
            lacks: Vec::new(),
        };
        let all = [of("a", &["c"]), of("b", &[]), of("c", &["d"]), of("d", &[])];
        assert_eq!(order(&all).unwrap(), ["b", "d", "c", "a"]);
        let circle = [of("a", &["c"]), of("b", &[]), of("c", &["a"]), of("d", &["d"])];
        assert!(order(&circle).unwrap_err().to_string().ends_with("among a, c, d"));
    }

    #[test]
    fn a_second_try_goes_on_where_the_first_one_ended() {
        let all = ["b", "d", "c"];
        assert_eq!(rest(&all, None).unwrap(), all);
        assert_eq!(rest(&all, Some("d")).unwrap(), ["d", "c"]);
        assert!(rest(&all, Some("e")).is_err());
        assert_eq!(words(&all[..1], false), ["publish", "--dry-run", "--package", "b"]);
        assert_eq!(words(&all[1..], true), ["publish", "--package", "d", "--package", "c"]);
    }
}
