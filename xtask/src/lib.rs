//! Chores of this workspace, in Rust so that they run wherever it builds.

#![forbid(unsafe_code)]

pub mod comments;
pub mod commits;
pub mod costs;
mod dep_info;
pub mod format;
pub mod lint;
pub mod protos;
pub mod publish;
pub mod release;
pub mod scan;
pub mod test;

use anyhow::Context;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the tree that cargo runs this in. With a shared target folder the program may have been
/// compiled in another.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    manifest.as_deref().and_then(Path::parent).map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// A command of the cargo that runs this program, without what that tells about this package in the
/// environment. Build scripts look at it (that of `ring` does), so what they make, and half of the registry
/// with it, would be made again in each clone and by each other way to start cargo.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_a_package(name)) {
        command.env_remove(name);
    }
    command
}

/// Whether cargo sets the variable for a package that it runs. See "Environment variables" in the Cargo book.
fn is_of_a_package(name: &OsStr) -> bool {
    const OTHERS: [&str; 6] = [
        "CARGO_BIN_NAME",
        "CARGO_CRATE_NAME",
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_LINKS",
        "CARGO_MANIFEST_PATH",
        "CARGO_PRIMARY_PACKAGE",
    ];
    name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || OTHERS.contains(&name))
}

/// File that marks a folder as one of files that can be made again, such as a target folder of any name.
pub const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Packages that are no members of the workspace: one for a fuzzer, and one that `tools/protoc` builds.
pub const ELSEWHERE: [&str; 2] = ["fuzz", "tools/protoc-shim"];

/// Folders of code that is generated, of programs that must not compile, and cargo's own by its usual name.
const NOT_OURS: &[&str] = &["protos/src/generated", "target", "tharsis/tests/misuse"];

/// Our sources below a folder, without what git ignores, what is generated, target folders, and programs that
/// must not compile.
pub fn sources(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut found = BTreeMap::new();
    for path in files(root)? {
        let inner = path.strip_prefix(root).unwrap_or(&path);
        let is_other = NOT_OURS.iter().any(|other| inner.starts_with(other));
        if !is_other && path.extension() == Some(OsStr::new("rs")) && !is_in_cache(root, inner) {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            found.insert(path, text);
        }
    }
    Ok(found)
}

/// All files of the tree that may give a test its name, with what is in them: cases of tests are files of
/// data, too. A word on a page is none.
pub fn files_of_names(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut found = BTreeMap::new();
    for path in files(root)? {
        if path.extension() != Some(OsStr::new("md"))
            && !is_in_cache(root, path.strip_prefix(root).unwrap_or(&path))
        {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            found.insert(path, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(found)
}

/// Whether a file below a root lies in a folder of files that can be made again.
fn is_in_cache(root: &Path, file: &Path) -> bool {
    let folders = file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders.into_iter().any(|folder| root.join(folder).join(CACHE_TAG).exists())
}

/// The files that git knows or would add; without a repository, all of them.
fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
    let listed = Command::new("git").current_dir(root).args(words).output();
    if let Ok(listed) = listed
        && listed.status.success()
    {
        let names = listed.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let files = names.map(|name| root.join(OsStr::from_bytes(name)));
        // The index also has files that were removed.
        return Ok(files.filter(|file| file.is_file()).collect());
    }
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if !path.is_dir() {
                found.push(path);
            } else if !path.join(CACHE_TAG).exists() {
                folders.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cargo_that_is_started_knows_nothing_of_this_package() {
        let removed: Vec<_> =
            cargo().get_envs().filter(|(_, value)| value.is_none()).map(|(n, _)| n.to_owned()).collect();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
            assert!(removed.iter().any(|found| found == name), "{name} stays: {removed:?}");
        }
        assert!(!is_of_a_package("CARGO_TARGET_DIR".as_ref()) && !is_of_a_package("CARGO_HOME".as_ref()));
    }

    #[test]
    fn sources_are_what_git_does_not_ignore_and_cargo_did_not_make() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for path in [
            "a.rs",
            "a.txt",
            "b/c.rs",
            "b/generated/d.rs",
            "protos/src/generated/e.rs",
            "ignored/f.rs",
            "out/debug/g.rs",
            "b/made/debug/h.rs",
        ] {
            write(path, "");
        }
        let names = || -> Vec<String> {
            let found = sources(folder.path()).unwrap();
            let names = found.keys().map(|path| path.strip_prefix(folder.path()).unwrap());
            names.map(|name| name.display().to_string()).collect()
        };
        write("out/CACHEDIR.TAG", "");
        write("b/made/CACHEDIR.TAG", "");
        assert_eq!(names(), ["a.rs", "b/c.rs", "b/generated/d.rs", "ignored/f.rs"], "no repository");
        let all = files_of_names(folder.path()).unwrap();
        assert!(all.contains_key(&folder.path().join("a.txt")), "of any kind");
        assert!(all.contains_key(&folder.path().join("protos/src/generated/e.rs")));
        assert!(!all.contains_key(&folder.path().join("out/debug/g.rs")));
        write(".gitignore", "/ignored\n");
        let made =
            Command::new("git").args(["init", "--quiet", "--template="]).current_dir(folder.path()).status();
        assert!(made.unwrap().success());
        assert_eq!(names(), ["a.rs", "b/c.rs", "b/generated/d.rs"]);
    }
}
