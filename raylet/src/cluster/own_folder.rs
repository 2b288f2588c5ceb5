//! A folder of one node beside those of others: nodes whose sockets lie in one folder share its parent.
//!
//! The folder is locked for as long as its node lives; the kernel releases the lock when the process ends in
//! any way. So whoever starts there can tell the folders of living nodes, even of other containers, from
//! those of nodes that were killed, and removes the latter alone.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use tharsis_types::{Failure, FailureKind, NodeId};

/// Tries to make a folder: another node may remove it, or its parent, before it is locked. More than a few
/// losses in a row are no accident.
const MAKE_TRIES: u32 = 20;

/// A folder that goes when this value does.
pub struct OwnFolder {
    path: PathBuf,
    /// The open folder, locked.
    _lock: File,
}

impl OwnFolder {
    /// The folder of a node for programs that come from other nodes.
    ///
    /// # Errors
    /// `InvalidArgument` if the system refuses.
    pub fn for_programs(folder: &Path, me: NodeId) -> Result<Self, Failure> {
        let parent = folder.join("code");
        Self::make(&parent, &me.to_string()).map_err(|e| {
            Failure::new(FailureKind::InvalidArgument, format!("folder {}: {e}", parent.display()))
        })
    }

    /// Removes what nodes that were killed left in `parent`, and makes a folder there.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn make(parent: &Path, name: &str) -> io::Result<Self> {
        remove_left_over(parent);
        let path = parent.join(name);
        for _ in 0..MAKE_TRIES {
            match make_locked(&path) {
                Ok(Some(lock)) => return Ok(Self { path, _lock: lock }),
                Ok(None) => {}
                // The parent, which may be gone between the look that finds it and the next one.
                Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => {}
                Err(cause) => return Err(cause),
            }
        }
        Err(io::Error::new(ErrorKind::NotFound, "somebody removes the folder again and again"))
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _removed = fs::remove_dir_all(&self.path);
        // It goes with the last one.
        if let Some(parent) = self.path.parent() {
            let _others_are_there = fs::remove_dir(parent);
        }
    }
}

/// Makes a folder and locks it; `None` if another node removed it in between.
fn make_locked(path: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let folder = File::open(path)?;
    // Waits for another node that is looking at it. Where a file system has no locks, nothing is removed.
    let _locked = folder.lock();
    let is_same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    Ok(is_same(&folder.metadata()?, &fs::metadata(path)?).then_some(folder))
}

/// Removes the folders that nobody has locked.
fn remove_left_over(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let Some(folder) = is_folder.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        // The lock is held until the folder is gone.
        if matches!(folder.try_lock(), Ok(()))
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::debug!(%error, folder = %entry.path().display(), "what a killed node left stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_start_and_end_leave_the_folders_of_living_ones() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("code");
        // One was killed: its folder is there, and nobody has locked it.
        DirBuilder::new().recursive(true).create(parent.join("dead")).unwrap();
        fs::write(parent.join("dead/program"), "x").unwrap();
        let first = OwnFolder::make(&parent, "first").unwrap();
        assert!(!parent.join("dead").exists());
        fs::write(first.path().join("program"), "x").unwrap();
        let second = OwnFolder::make(&parent, "second").unwrap();
        assert!(first.path().join("program").exists(), "another one started");
        drop(second);
        assert!(first.path().join("program").exists(), "another one ended");
        assert!(!parent.join("second").exists());
        drop(first);
        assert!(!parent.exists());
    }

    #[test]
    fn nodes_start_and_end_beside_each_other() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("code");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let parent = &parent;
                scope.spawn(move || {
                    for round in 0..50 {
                        let folder = OwnFolder::make(parent, &format!("{thread}-{round}")).unwrap();
                        fs::write(folder.path().join("program"), "x").unwrap();
                        assert!(folder.path().join("program").exists());
                    }
                });
            }
        });
        assert!(!parent.exists());
    }
}
