//! The release of Rust that all tests are for: lints, format, recorded messages of the compiler and counts of
//! instructions are those of one release.
//!
//! No `rust-toolchain.toml` says it: rustup would want a toolchain of that very name and stop where the same
//! release is installed as `stable` and there is no network.

use super::selection::Selection;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// The release. `tidy` compares what else names it.
pub const RELEASE: &str = "1.95.0";

/// Parts of the toolchain that a run calls, besides cargo and rustc: the file and rustup's component.
const PARTS: &[(&str, &str)] = &[("clippy-driver", "clippy"), ("rustfmt", "rustfmt")];

/// Fails before the build if all tests would fail with this toolchain after it; of a part of the tests most
/// pass with another release, so there it is said only.
///
/// # Errors
///
/// If rustc cannot be asked, is of another release and all tests are selected, or a part is missing.
pub fn check(selection: &Selection, folder: &Path) -> Result<()> {
    let output = Command::new("rustc").arg("--version").output().context("cannot start rustc")?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let has = |part: &str| folder.join("bin").join(part).is_file();
    if let Some(problem) = missing(has) {
        bail!(problem);
    }
    match another(&said) {
        Some(problem) if selection.is_everything() => bail!(problem),
        Some(problem) => eprintln!("{problem}"),
        None => {}
    }
    Ok(())
}

/// The advice about a compiler of another release, from the words in which it tells its own.
fn another(said: &str) -> Option<String> {
    let release = said.strip_prefix("rustc ").and_then(|rest| rest.split(' ').next());
    (release != Some(RELEASE)).then(|| {
        format!(
            "lints, recorded messages and counts are those of Rust {RELEASE}, and this is {said}: `rustup override \
             set {RELEASE}` in this folder takes the other one, and fetches it if it is missing"
        )
    })
}

/// The advice about parts of the toolchain that are not there.
fn missing(has: impl Fn(&str) -> bool) -> Option<String> {
    let parts: Vec<&str> =
        PARTS.iter().filter(|(file, _)| !has(file)).map(|(_, component)| *component).collect();
    (!parts.is_empty()).then(|| {
        let parts = parts.join(" ");
        format!("this toolchain lacks {parts}: `rustup component add {parts}`")
    })
}

#[cfg(test)]
mod tests {
    use super::{RELEASE, another, missing};

    #[test]
    fn another_release_is_named_with_what_to_do() {
        assert_eq!(another("rustc 1.95.0 (59807616e 2026-04-14)"), None);
        assert_eq!(another("rustc 1.95.0"), None, "of a distribution");
        for other in
            ["rustc 1.95.1 (1 2026-05-01)", "rustc 1.95.0-nightly (1 2026-01-01)", "rustc 1.96.0", ""]
        {
            let problem = another(other).unwrap();
            assert!(
                problem.contains(other) && problem.contains(&format!("override set {RELEASE}`")),
                "{problem}"
            );
        }
    }

    #[test]
    fn parts_that_are_missing_are_named_by_what_installs_them() {
        assert_eq!(missing(|_| true), None);
        let problem = missing(|file| file == "rustfmt").unwrap();
        assert!(problem.ends_with("`rustup component add clippy`"), "{problem}");
        let problem = missing(|_| false).unwrap();
        assert!(problem.ends_with("`rustup component add clippy rustfmt`"), "{problem}");
    }
}
