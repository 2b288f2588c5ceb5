//! The packages of the workspace and its target folder, as cargo knows them.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name for cargo.
    pub name: String,
    /// Its folder below the root.
    pub folder: String,
    /// Names of its commands and examples, which its tests may start.
    pub programs: BTreeSet<String>,
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
        let package = |package: &Value| {
            let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
            let folder = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().into_owned();
            let targets = package["targets"].as_array()?.iter();
            Some(Package {
                name: package["name"].as_str()?.to_owned(),
                folder,
                programs: targets.filter_map(program).collect(),
            })
        };
        Ok(Self { packages: packages.filter_map(package).collect(), target: PathBuf::from(target) })
    }
}

/// The name of a target that is a command or an example.
pub fn program(target: &Value) -> Option<String> {
    let kind = target["kind"][0].as_str()?;
    matches!(kind, "bin" | "example").then(|| target["name"].as_str().map(str::to_owned))?
}
