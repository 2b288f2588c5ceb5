//! The packages of the workspace and its target folder, as cargo knows them.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The name for the unit tests of a library.
pub const LIBRARY: &str = "lib";

/// A package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name for cargo.
    pub name: String,
    /// Its folder below the root.
    pub folder: String,
    /// Names of its commands and examples, which its tests may start.
    pub programs: BTreeSet<String>,
    /// Names of its test programs; [`LIBRARY`] for the unit tests of its library.
    pub tests: BTreeSet<String>,
    /// The name of its library, if examples in the documentation of that are tests.
    pub documented: Option<String>,
}

/// The workspace at a root.
pub struct Workspace {
    /// Its members.
    pub packages: Vec<Package>,
    /// Cargo's target folder, which variables and settings of the user may have put anywhere.
    pub target: PathBuf,
}

impl Workspace {
    /// Asks cargo for the workspace at this root.
    pub fn read(root: &Path) -> Result<Self> {
        let words = ["metadata", "--no-deps", "--format-version", "1"];
        let mut cargo = crate::cargo();
        let output = cargo.args(words).current_dir(root).output().context("cannot start cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let all: Value = serde_json::from_slice(&output.stdout).context("cargo metadata wrote no JSON")?;
        let target = all["target_directory"].as_str().context("cargo metadata has no target folder")?;
        let packages = all["packages"].as_array().context("cargo metadata has no packages")?.iter();
        let packages = packages.filter_map(|about| package(root, about)).collect();
        Ok(Self { packages, target: PathBuf::from(target) })
    }
}

/// The package that cargo's metadata are about.
fn package(root: &Path, about: &Value) -> Option<Package> {
    let folder = Path::new(about["manifest_path"].as_str()?).parent()?;
    let folder = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().into_owned();
    let targets = about["targets"].as_array()?;
    Some(Package {
        name: about["name"].as_str()?.to_owned(),
        folder,
        programs: targets.iter().filter_map(program).collect(),
        tests: targets.iter().filter_map(test).collect(),
        documented: targets.iter().find_map(documented),
    })
}

/// The name of a target with tests that is a test program or a library.
fn test(target: &Value) -> Option<String> {
    let name = match target["kind"][0].as_str()? {
        "test" => target["name"].as_str()?,
        "lib" | "proc-macro" => LIBRARY,
        _ => return None,
    };
    (target["test"] == true).then(|| name.to_owned())
}

/// The name of a target in whose documentation examples are tests.
fn documented(target: &Value) -> Option<String> {
    // Doc tests name the crate; cargo has both ways to write it.
    (target["doctest"] == true).then(|| target["name"].as_str().map(|name| name.replace('-', "_")))?
}

/// The name of a target that is a command or an example.
pub fn program(target: &Value) -> Option<String> {
    let kind = target["kind"][0].as_str()?;
    matches!(kind, "bin" | "example").then(|| target["name"].as_str().map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::package;
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn the_tests_of_a_package_are_those_that_cargo_runs() {
        let target = |kind: &str, name: &str, test: bool, doctest: bool| json!({"kind": [kind], "name": name, "test": test, "doctest": doctest});
        let found = |targets: &[serde_json::Value]| {
            let about = json!({"name": "a", "manifest_path": "/w/tests/a/Cargo.toml", "targets": targets});
            package(Path::new("/w"), &about).unwrap()
        };
        let all = found(&[
            target("lib", "a-b", true, true),
            target("bin", "c", true, false),
            target("test", "d", true, false),
            target("test", "left_out", false, false),
        ]);
        assert_eq!((&*all.folder, all.documented.as_deref()), ("tests/a", Some("a_b")));
        assert_eq!(all.tests, BTreeSet::from(["d".to_owned(), "lib".to_owned()]));
        assert_eq!(all.programs, BTreeSet::from(["c".to_owned()]));
        let none = found(&[target("proc-macro", "a_b", false, false)]);
        assert!(none.tests.is_empty() && none.documented.is_none());
    }
}
