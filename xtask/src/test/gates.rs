//! The gates that cost seconds: format, tidy, and commit subjects. They come before the build, so that a
//! comment's width is not refused after half an hour.

use super::processes::Run;
use super::workspace::{LIBRARY, Package};
use crate::commits::Range;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// The test programs of this package that are gates.
const GATES: &[&str] = &[LIBRARY, "ci", "runs", "shared_target", "tidy"];

/// Longest time of a gate. Usually they take a minute, with the compiler.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Variables with which a test writes what it compares with, and passes. `CONTRIBUTING.md` has the commands.
const UPDATES: &[&str] = &[
    "UPDATE_COSTS",
    "UPDATE_DRAWING",
    "UPDATE_LAYOUTS",
    "UPDATE_MISUSE",
    "UPDATE_PAGE",
    "UPDATE_PLANS",
    "UPDATE_SCRIPTS",
    "UPDATE_SETTINGS",
    "UPDATE_TABLES",
];

/// Fails at the first gate that is not passed, or is none any more.
pub fn check(root: &Path, packages: &[Package], run: &Run) -> Result<()> {
    let updates: Vec<&str> =
        UPDATES.iter().copied().filter(|name| std::env::var_os(name).is_some()).collect();
    if !updates.is_empty() {
        bail!("with {} tests write what they compare with, and compare nothing", updates.join(", "));
    }
    let left_out = left_out(packages);
    if !left_out.is_empty() {
        bail!("cargo does not run these tests of xtask: {}", left_out.join(", "));
    }
    crate::format::run(true)?;
    crate::commits::check(root, Range::New)?;
    cargo(root, run, &["test", "--quiet", "--package", "xtask"])
}

/// The gates that cargo would not run.
fn left_out(packages: &[Package]) -> Vec<&'static str> {
    let xtask = packages.iter().find(|package| package.folder == "xtask");
    let has = |gate: &&str| xtask.is_some_and(|package| package.tests.contains(*gate));
    GATES.iter().copied().filter(|gate| !has(gate)).collect()
}

/// Runs cargo in the root of the workspace; its output goes to ours.
fn cargo(root: &Path, run: &Run, words: &[&str]) -> Result<()> {
    let mut cargo = crate::cargo();
    cargo.args(words).current_dir(root).stdin(Stdio::null());
    let job = run.start(&mut cargo).with_context(|| format!("cannot start cargo {}", words.join(" ")))?;
    match job.wait_within(LIMIT).context("cargo was lost")? {
        Some(status) if status.success() => Ok(()),
        Some(_) => bail!("cargo {} failed", words.join(" ")),
        None => bail!("cargo {} still ran after {} s, so it was ended", words.join(" "), LIMIT.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::{UPDATES, left_out};
    use crate::test::workspace::Workspace;
    use std::collections::BTreeSet;

    #[test]
    fn a_gate_that_cargo_would_not_run_is_found() {
        let mut packages = Workspace::read(&crate::root()).unwrap().packages;
        assert!(left_out(&packages).is_empty());
        for package in &mut packages {
            package.tests.remove("tidy");
        }
        assert_eq!(left_out(&packages), ["tidy"]);
        assert!(left_out(&[]).contains(&"lib"));
    }

    #[test]
    fn variables_that_write_what_is_compared_are_listed_and_on_the_page() {
        let beginning = "UPDATE_";
        let mut found = BTreeSet::new();
        for text in crate::sources(&crate::root()).unwrap().values() {
            let words = text.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_');
            let names = words.filter(|word| word.starts_with(beginning) && *word != beginning);
            found.extend(names.map(str::to_owned));
        }
        assert_eq!(found, UPDATES.iter().map(|name| (*name).to_owned()).collect());
        let page = std::fs::read_to_string(crate::root().join("CONTRIBUTING.md")).unwrap();
        // `cargo xtask costs` sets the one that is not there.
        let missing: Vec<_> =
            UPDATES.iter().filter(|name| !page.contains(&format!("`{name}=1 cargo test "))).collect();
        assert_eq!(missing, [&"UPDATE_COSTS"]);
    }
}
