//! Dependencies keep the rules of `deny.toml`: licences, sources, second versions and crates that are not
//! wanted.
//!
//! `cargo deny check` reads the same file and looks for advisories as well, which needs its database and the
//! network. This test needs neither, so it runs with every other one.

use crate::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Source of released crates. A package of any other source counts as not released.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The platform whose builds are looked at.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// A package that a build of the workspace may need.
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// None for the workspace's own.
    source: Option<String>,
}

struct Dependencies {
    packages: Vec<Package>,
    /// The packages that each package needs, by package id.
    needs: BTreeMap<String, Vec<String>>,
    /// Name and version of what is built. Cargo's metadata also have optional dependencies that nobody
    /// enables.
    built: BTreeSet<(String, String)>,
}

/// The part of `deny.toml` that is checked here.
struct Rules(toml::Table);

#[test]
fn licences_are_allowed() {
    let allowed: BTreeSet<String> = Rules::read().strings("licenses", "allow").into_iter().collect();
    let is_allowed = |text: &str| {
        // Cargo's older form of `OR`, which some crates still have.
        let expression = spdx::Expression::parse(&text.replace('/', " OR "));
        expression.is_ok_and(|e| e.evaluate(|requirement| allowed.contains(&requirement.to_string())))
    };
    let refused: Vec<String> = Dependencies::read()
        .others()
        .filter(|p| !p.license.as_deref().is_some_and(is_allowed))
        .map(|p| format!("{} {}: {}", p.name, p.version, p.license.as_deref().unwrap_or("no licence")))
        .collect();
    assert!(refused.is_empty(), "licences that deny.toml does not allow:\n{}", refused.join("\n"));
}

#[test]
fn crates_come_from_the_registry() {
    let dependencies = Dependencies::read();
    let elsewhere: Vec<_> =
        dependencies.others().filter(|p| p.source.as_deref() != Some(REGISTRY)).map(|p| &p.id).collect();
    assert!(elsewhere.is_empty(), "not from the registry: {elsewhere:?}");
}

#[test]
fn no_crate_is_denied() {
    let denied = Rules::read().crates("deny");
    let dependencies = Dependencies::read();
    let found: Vec<_> = dependencies.others().filter(|p| denied.contains(&p.name)).map(|p| &p.id).collect();
    assert!(found.is_empty(), "deny.toml does not want: {found:?}");
}

#[test]
fn second_versions_are_known() {
    let rules = Rules::read();
    let dependencies = Dependencies::read();
    let skipped = rules.crates("skip");
    let below: BTreeSet<&str> =
        rules.trees().iter().flat_map(|(name, depth)| dependencies.below(name, *depth)).collect();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in dependencies.others() {
        let is_skipped = names(package).iter().any(|known| skipped.contains(known));
        if !is_skipped && !below.contains(package.id.as_str()) {
            versions.entry(&package.name).or_default().push(&package.version);
        }
    }
    versions.retain(|_, of_one| 1 < of_one.len());
    assert!(versions.is_empty(), "second versions that deny.toml does not argue: {versions:?}");
}

#[test]
fn second_versions_that_are_argued_are_there() {
    let dependencies = Dependencies::read();
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    dependencies.others().for_each(|package| *versions.entry(&package.name).or_default() += 1);
    let is_second = |known: &String| {
        dependencies.others().any(|package| 1 < versions[&*package.name] && names(package).contains(known))
    };
    let stale: Vec<_> = Rules::read().crates("skip").into_iter().filter(|known| !is_second(known)).collect();
    assert!(stale.is_empty(), "deny.toml argues for versions that no build has twice: {stale:?}");
}

/// The names that a list of versions may have for a package.
fn names(package: &Package) -> [String; 2] {
    let (major, minor) = release(&package.version);
    [format!("{}@{major}", package.name), format!("{}@{major}.{minor}", package.name)]
}

impl Rules {
    fn read() -> Self {
        let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml is there");
        Self(text.parse().expect("deny.toml is TOML"))
    }

    fn list(&self, table: &str, key: &str) -> Vec<toml::Value> {
        let list = self.0.get(table).and_then(|t| t.get(key)).and_then(toml::Value::as_array);
        list.unwrap_or_else(|| panic!("deny.toml has no list {table}.{key}")).clone()
    }

    fn strings(&self, table: &str, key: &str) -> Vec<String> {
        self.list(table, key).iter().map(|v| v.as_str().expect("a text").to_owned()).collect()
    }

    /// The crates of a list of bans.
    fn crates(&self, key: &str) -> BTreeSet<String> {
        let name = |entry: &toml::Value| Some(entry.get("crate")?.as_str()?.to_owned());
        self.list("bans", key).iter().filter_map(name).collect()
    }

    /// Crates whose own dependencies may be second versions, and how deep.
    fn trees(&self) -> Vec<(String, usize)> {
        let tree = |entry: &toml::Value| {
            let depth = usize::try_from(entry.get("depth")?.as_integer()?).ok()?;
            Some((entry.get("crate")?.as_str()?.to_owned(), depth))
        };
        self.list("bans", "skip-tree").iter().filter_map(tree).collect()
    }
}

impl Dependencies {
    fn read() -> Self {
        let all = cargo(&["metadata", "--format-version", "1", "--filter-platform", PLATFORM]);
        let all: Value = serde_json::from_str(&all).expect("cargo writes JSON");
        let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
        let packages = all["packages"].as_array().expect("packages").iter().map(|p| Package {
            id: text(p, "id").expect("an id"),
            name: text(p, "name").expect("a name"),
            version: text(p, "version").expect("a version"),
            license: text(p, "license"),
            source: text(p, "source"),
        });
        let needs = all["resolve"]["nodes"].as_array().expect("nodes").iter().map(|node| {
            let needed = node["dependencies"].as_array().expect("dependencies");
            let needed = needed.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
            (text(node, "id").expect("an id"), needed)
        });
        let tree = cargo(&["tree", "--workspace", "--prefix", "none", "--target", PLATFORM]);
        let built = tree.lines().filter_map(|line| {
            let (name, rest) = line.split_once(" v")?;
            Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
        });
        Self { packages: packages.collect(), needs: needs.collect(), built: built.collect() }
    }

    /// Packages that are not the workspace's own and that a build on the platform needs.
    fn others(&self) -> impl Iterator<Item = &Package> {
        let is_member = |p: &Package| p.source.is_none() && p.id.starts_with("path+");
        let is_built = |p: &Package| self.built.contains(&(p.name.clone(), p.version.clone()));
        self.packages.iter().filter(move |p| is_built(p) && !is_member(p))
    }

    /// The package of a name and what it needs, down to a depth.
    fn below(&self, name: &str, depth: usize) -> BTreeSet<&str> {
        let mut layer: Vec<&str> =
            self.packages.iter().filter(|p| p.name == name).map(|p| p.id.as_str()).collect();
        let mut found: BTreeSet<&str> = layer.iter().copied().collect();
        for _ in 0..depth {
            let next = layer.iter().filter_map(|id| self.needs.get(*id)).flatten();
            layer = next.map(String::as_str).filter(|id| !found.contains(id)).collect();
            found.extend(&layer);
        }
        found
    }
}

/// Output of cargo for the locked dependencies with all features.
pub(crate) fn cargo(args: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let command =
        Command::new(cargo).args(args).args(["--locked", "--all-features"]).current_dir(root()).output();
    let output = command.expect("cargo runs");
    assert!(output.status.success(), "cargo {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

/// Major and minor number of a version.
fn release(version: &str) -> (&str, &str) {
    let mut parts = version.split('.');
    (parts.next().unwrap_or(""), parts.next().unwrap_or(""))
}
