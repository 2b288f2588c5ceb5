//! Programs of Debian that tests start or run under: what is missing is installed before the build.

use super::selection::Selection;
use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

/// A program that tests need.
#[derive(Debug, PartialEq, Eq)]
pub struct Needed {
    /// The file's name.
    pub program: &'static str,
    /// The package of Debian that has it.
    pub package: &'static str,
    /// Folders of the packages of this workspace whose tests need it.
    pub folders: &'static [&'static str],
}

/// The programs that tests need. A test compares the list with what the sources start.
pub const NEEDED: &[Needed] = &[
    Needed { program: "etcd", package: "etcd-server", folders: &["tests/cluster", "tests/conformance"] },
    Needed { program: "sshd", package: "openssh-server", folders: &["cli"] },
    Needed { program: "valgrind", package: "valgrind", folders: &["tests/costs"] },
];

/// Installs what the selected tests need and the machine has not.
///
/// # Errors
/// If a program cannot be installed.
pub fn install_for(selection: &Selection) -> Result<()> {
    missing(selection, &path()).into_iter().try_for_each(install)
}

/// The folders of programs: those of the user, and those of servers, which need not be among them.
fn path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

/// The programs that the selected tests need and that are in no folder of a path.
fn missing(selection: &Selection, path: &OsStr) -> Vec<&'static Needed> {
    let is_needed = |needed: &&Needed| needed.folders.iter().any(|folder| selection.may_be_in(folder));
    NEEDED.iter().filter(is_needed).filter(|needed| !is_there(needed.program, path)).collect()
}

fn is_there(program: &str, path: &OsStr) -> bool {
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}

fn install(needed: &Needed) -> Result<()> {
    let Needed { program, package, .. } = needed;
    let why = || format!("the tests need {program}: install Debian's package {package}, or its like");
    eprintln!("{program} is not installed; installing Debian's {package}");
    let words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package];
    as_root(&["apt-get", "update", "-qq"]).with_context(why)?;
    // RUNLEVEL=1 keeps the package from starting a server of its own: the tests start theirs on free ports.
    let quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"];
    as_root(&[quiet.as_slice(), &words].concat()).with_context(why)?;
    if is_there(program, &path()) { Ok(()) } else { Err(anyhow::anyhow!(why())) }
}

/// Runs a command as the user who may install.
fn as_root(words: &[&str]) -> Result<()> {
    let sudo: &[&str] = if rustix::process::getuid().is_root() { &[] } else { &["sudo"] };
    let words = [sudo, words].concat();
    let mut command = Command::new(words[0]);
    let status = command.args(&words[1..]).stdout(Stdio::null()).status();
    if !status.with_context(|| format!("cannot start {}", words[0]))?.success() {
        bail!("{} failed", words.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{NEEDED, missing};
    use crate::test::selection::Selection;
    use crate::test::workspace::Workspace;
    use std::ffi::OsStr;

    /// Programs that a pattern needs on a machine that has none in its path.
    fn needed(pattern: &[&str]) -> Vec<&'static str> {
        let packages = Workspace::read(&crate::root()).unwrap().packages;
        let words: Vec<String> = pattern.iter().map(|word| (*word).to_owned()).collect();
        let selection = Selection::find(&packages, &words).unwrap();
        missing(&selection, OsStr::new("")).into_iter().map(|needed| needed.program).collect()
    }

    #[test]
    fn a_package_needs_what_its_tests_start() {
        assert!(needed(&["types"]).is_empty() && needed(&["tharsis-types", "drain"]).is_empty());
        assert_eq!(needed(&["tests/costs"]), ["valgrind"]);
        assert_eq!(needed(&["tests/cluster", "drain"]), ["etcd"]);
        assert_eq!(needed(&[]), ["etcd", "sshd", "valgrind"]);
        assert_eq!(needed(&["drain"]), needed(&[]), "a part of names may be one of any test");
    }

    #[test]
    fn what_the_path_has_is_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("valgrind"), "").unwrap();
        let packages = Workspace::read(&crate::root()).unwrap().packages;
        let selection = Selection::find(&packages, &["tests/costs".to_owned()]).unwrap();
        assert!(missing(&selection, folder.path().as_os_str()).is_empty());
    }

    #[test]
    fn folders_that_need_programs_are_packages() {
        let packages = Workspace::read(&crate::root()).unwrap().packages;
        for folder in NEEDED.iter().flat_map(|needed| needed.folders) {
            assert!(packages.iter().any(|package| package.folder == *folder), "{folder}");
        }
    }
}
