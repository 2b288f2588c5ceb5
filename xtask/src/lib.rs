//! Chores of this workspace, in Rust so that they run wherever it builds.

#![forbid(unsafe_code)]

pub mod comments;
pub mod commits;
pub mod costs;
pub mod format;
pub mod protos;
pub mod scan;
pub mod test;

use anyhow::Context;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the tree that cargo runs this in. With a shared target folder the program may have been
/// compiled in another.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    manifest.as_deref().and_then(Path::parent).map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// The cargo that runs this program.
pub fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Our sources below a folder, without what is generated and without programs that must not compile.
pub fn sources(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && !["target", ".git", "generated", "misuse"].contains(&name.as_str()) {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                found.insert(path, text);
            }
        }
    }
    Ok(found)
}
